// SPDX-License-Identifier: GPL-2.0-only
//! The socket on which processes ask to be heard: open to every user, and trusting none.
//!
//! One thread serves all of them. Of each user it hears one request at a time, from the process that was heard longest
//! ago. How many processes there may be is bounded, for one user to the half of it, and a process has one page however
//! often it asks. Whatever is no request ends the connection.
//!
//! A page is memory that whoever has got it can keep, or hand to others, after its process is gone. So pages count
//! until the kernel has freed them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, MapHandle};
use log::warn;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{PeerCredentials, PeerPidfd};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, connect, getsockopt,
    listen, recv, sendmsg, socket,
};

use crate::hints::{Change, Done, kernel, new_page, process};
use crate::node::privileges;
use crate::node::socket_file::{self, SocketFile};
use crate::scheduler::requests::Owner;
use cosched_rules::intf::{
    COSCHED_HINT_MAGIC, COSCHED_HINT_PROCESSES, COSCHED_HINT_THREADS, cosched_hint_answer, cosched_hint_place,
    cosched_hint_request,
};

const FLAG: &str = "--hints-socket";
/// How often to see whether the scheduler that knows the pages still runs.
const ALIVE_POLL: u16 = 250;
/// So many connections are accepted at once, before those that there are are heard again.
const ACCEPTED_MAX: usize = 64;
/// How many processes of one user are heard at once.
const USER_MAX: usize = COSCHED_HINT_PROCESSES as usize / 2;

/// The socket. It is removed when this is dropped.
pub struct HintSocket {
    _file: SocketFile,
    socket: OwnedFd,
}

impl HintSocket {
    /// Binds the socket, for everybody. One that a killed scheduler has left behind is replaced. Call it before there
    /// are threads: it sets the process's umask for a moment.
    ///
    /// # Errors
    /// If somebody listens there, or the path cannot be used.
    pub fn bind(path: &Path) -> Result<HintSocket> {
        let address = UnixAddr::new(path).map_err(|error| socket_file::cannot_create(path, FLAG, &error))?;
        let new = || socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None);
        if connect(new()?.as_raw_fd(), &address).is_ok() {
            bail!("another program listens at {} (choose another {FLAG})", path.display());
        }
        let (file, socket) = socket_file::bind(path, FLAG, 0o666, || {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
            bind(socket.as_raw_fd(), &address)?;
            listen(&socket, Backlog::MAXCONN).map(|()| socket)
        })?;
        Ok(HintSocket { _file: file, socket })
    }

    /// Serves processes on a thread of its own, for as long as this process lives.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn serve(&self, owner: Owner) -> Result<()> {
        let listener = self.socket.try_clone().context("cannot serve hints")?;
        allow_files();
        let mut server = Server { owner, clients: BTreeMap::new(), last: 0, pages: BTreeMap::new() };
        let serve = move || {
            loop {
                server.turn(&listener);
            }
        };
        // To make pages, and to know threads apart where /proc hides them.
        privileges::thread("hints", privileges::BPF | privileges::SYS_PTRACE, serve).map(drop)
    }
}

/// Each process that is heard takes a file descriptor.
fn allow_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads and writes nothing but `limit`. With fewer, the rest is turned away.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            let wanted = 4 * libc::rlim_t::from(COSCHED_HINT_PROCESSES);
            limit.rlim_cur = limit.rlim_cur.max(wanted.min(limit.rlim_max));
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// A process that is connected.
struct Client {
    socket: OwnedFd,
    process: u32,
    user: u32,
    page: Option<Page>,
}

/// What it shares with the scheduler.
struct Page {
    number: u64,
    done: Done,
    /// The thread that each slot is of.
    threads: BTreeMap<u32, u32>,
    /// Until the process has it.
    map: Option<MapHandle>,
}

struct Server {
    owner: Owner,
    /// By when each was heard last, or came.
    clients: BTreeMap<u64, Client>,
    /// The number that was given last, to a page or to when a client was heard.
    last: u64,
    /// Whose each page is that there may be yet, by the id of its map.
    pages: BTreeMap<u32, u32>,
}

impl Server {
    /// Waits until somebody wants something, and sees to it.
    fn turn(&mut self, listener: &OwnedFd) {
        let mut fds = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.clients.values().map(|client| PollFd::new(client.socket.as_fd(), PollFlags::POLLIN)));
        let timeout = if self.clients.is_empty() { PollTimeout::NONE } else { ALIVE_POLL.into() };
        let ready: Vec<bool> = match poll(&mut fds, timeout) {
            Ok(_) => fds.iter().map(|fd| fd.any().unwrap_or(true)).collect(),
            Err(_) => return,
        };
        let keys: Vec<u64> = self.clients.keys().copied().collect();
        // Of each user one in a turn: however much one wants, the others wait for no more than that.
        let mut heard = BTreeSet::new();
        for (key, wants) in keys.into_iter().zip(&ready[1..]) {
            let has_turn = *wants && heard.insert(self.clients[&key].user);
            if !self.is_current(key) || (has_turn && !self.hear(key)) {
                self.hang_up(key);
            } else if has_turn {
                let client = self.clients.remove(&key).expect("it is connected");
                let now = self.number();
                self.clients.insert(now, client);
            }
        }
        if ready[0] {
            (0..ACCEPTED_MAX).take_while(|_| self.accept(listener)).for_each(drop);
        }
    }

    /// One that has not been given before.
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Whether the scheduler that has the page of this process runs on. With another one it begins anew.
    fn is_current(&self, key: u64) -> bool {
        self.clients[&key].page.as_ref().is_none_or(|page| kernel::is_alive(&page.done))
    }

    /// Whether there may be another one to accept.
    fn accept(&mut self, listener: &OwnedFd) -> bool {
        let accepted = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK);
        let fd = match accepted {
            Ok(fd) => fd,
            Err(Errno::EAGAIN) => return false,
            Err(_) => {
                // Out of file descriptors, say: not at full speed, please.
                std::thread::sleep(Duration::from_millis(100));
                return false;
            }
        };
        // SAFETY: it has just been opened, for us.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let Ok(peer) = getsockopt(&socket, PeerCredentials) else { return true };
        let user = peer.uid();
        let of_user = self.clients.values().filter(|client| client.user == user).count();
        if of_user >= USER_MAX || self.clients.len() >= COSCHED_HINT_PROCESSES as usize {
            answer(&socket, Errno::EUSERS, None);
            return true;
        }
        // A process that is in no namespace of ours has no number.
        if let Ok(process @ 1..) = u32::try_from(peer.pid()) {
            let now = self.number();
            self.clients.insert(now, Client { socket, process, user, page: None });
        }
        true
    }

    /// Hears a request. False if this was the last of that process.
    fn hear(&mut self, key: u64) -> bool {
        let socket = &self.clients[&key].socket;
        let mut bytes = [0; size_of::<cosched_hint_request>()];
        let request = match recv(socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC) {
            Ok(length) if length == bytes.len() => read(&bytes),
            Ok(0) => return false,
            Ok(_) => None,
            Err(Errno::EAGAIN | Errno::EINTR) => return true,
            Err(_) => return false,
        };
        let Some(request) = request else {
            answer(socket, Errno::EPROTO, None);
            return false;
        };
        let placed = self.place(key, &request);
        let client = self.clients.get_mut(&key).expect("it is connected");
        match placed {
            Ok(()) => {
                let map = client.page.as_mut().and_then(|page| page.map.take());
                answer(&client.socket, Errno::UnknownErrno, map.as_ref())
            }
            Err(Fault::Thread) => answer(&client.socket, Errno::ESRCH, None),
            Err(Fault::Full) => {
                answer(&client.socket, Errno::EUSERS, None);
                false
            }
            Err(Fault::Scheduler(error)) => {
                log::debug!("hints of process {}: {error:#}", client.process);
                answer(&client.socket, Errno::EAGAIN, None);
                false
            }
        }
    }

    /// Whether `user` may have one page more.
    fn has_room(&self, user: u32) -> bool {
        let of_user = self.pages.values().filter(|owner| **owner == user).count();
        of_user < USER_MAX && self.pages.len() < COSCHED_HINT_PROCESSES as usize
    }

    /// Makes a page for `user`, if there is room for it once those are left out that are gone.
    fn make_page(&mut self, user: u32) -> Result<MapHandle, Fault> {
        if !self.has_room(user) {
            let freed = self.owner.freed(self.pages.keys().copied().collect()).map_err(Fault::Scheduler)?;
            self.pages.retain(|id, _| !freed.contains(id));
        }
        if !self.has_room(user) {
            return Err(Fault::Full);
        }
        let map = new_page().map_err(|e| Fault::Scheduler(e.into()))?;
        self.pages.insert(map.info().map_err(|e| Fault::Scheduler(e.into()))?.info.id, user);
        Ok(map)
    }

    /// Has the scheduler hear the thread that is meant.
    fn place(&mut self, key: u64, request: &cosched_hint_request) -> Result<(), Fault> {
        let Client { process, user, .. } = self.clients[&key];
        let thread = process::thread_of(process, request.thread).ok_or(Fault::Thread)?;
        let map = if self.clients[&key].page.is_none() { Some(self.make_page(user)?) } else { None };
        let number = self.number();
        let client = self.clients.get_mut(&key).expect("it is connected");
        if let Some(map) = map {
            let theirs = MapHandle::try_from(&map).map_err(|e| Fault::Scheduler(e.into()))?;
            let done = self.owner.hint(Change::Add(number, theirs)).map_err(|error| {
                // It may be done yet, by a scheduler that is being loaded, say.
                self.owner.take_back(number);
                Fault::Scheduler(error)
            })?;
            client.page = Some(Page { number, done, threads: BTreeMap::new(), map: Some(map) });
        }
        // What was read of this process was read of another if it has ended and its number was given away.
        if has_ended(&client.socket) {
            return Err(Fault::Thread);
        }
        let page = client.page.as_mut().expect("it has just been made");
        let (number, slot) = (page.number, request.slot);
        let place =
            |thread, is_over| Change::Place(cosched_hint_place { page: number, process, thread, slot, is_over });
        // A slot is one thread's: so no more are to be forgotten with a page than it has slots.
        if let Some(before) = page.threads.insert(slot, thread)
            && before != thread
        {
            self.owner.hint(place(before, 1)).map_err(Fault::Scheduler)?;
        }
        let placed = self.owner.hint(place(thread, 0));
        placed.map(drop).map_err(|_| Fault::Thread)
    }

    fn hang_up(&mut self, key: u64) {
        let Some(client) = self.clients.remove(&key) else { return };
        if let Some(page) = client.page
            && kernel::is_alive(&page.done)
            && let Err(error) = self.forget(client.process, &page)
        {
            warn!("a process that gives no hints any more may still be heard: {error:#}");
        }
    }

    /// Has the scheduler forget a page, and then the threads that had a place there: they may live on.
    fn forget(&self, process: u32, page: &Page) -> Result<()> {
        self.owner.hint(Change::Remove(page.number))?;
        for (&slot, &thread) in &page.threads {
            let place = cosched_hint_place { page: page.number, process, thread, slot, is_over: 1 };
            self.owner.hint(Change::Place(place))?;
        }
        Ok(())
    }
}

/// Why a thread is not heard.
enum Fault {
    /// The process has none of that number, or had until a moment ago.
    Thread,
    /// There are as many pages as there may be.
    Full,
    /// It is our fault: it may try again.
    Scheduler(anyhow::Error),
}

/// The request, if it is one.
fn read(bytes: &[u8; size_of::<cosched_hint_request>()]) -> Option<cosched_hint_request> {
    // SAFETY: four integers, for which any bits will do.
    let request: cosched_hint_request = unsafe { std::mem::transmute(*bytes) };
    let is_one = request.magic == COSCHED_HINT_MAGIC && request.slot < COSCHED_HINT_THREADS && request.reserved == 0;
    is_one.then_some(request)
}

/// Whether the process at the other end is gone.
fn has_ended(socket: &OwnedFd) -> bool {
    let Ok(pidfd) = getsockopt(socket, PeerPidfd) else { return true };
    let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    !matches!(poll(&mut fds, PollTimeout::ZERO), Ok(0))
}

/// Answers a request: [`Errno::UnknownErrno`], which is 0, if all is well. False if nobody takes the answer.
fn answer(socket: &OwnedFd, error: Errno, map: Option<&MapHandle>) -> bool {
    let answer = cosched_hint_answer { magic: COSCHED_HINT_MAGIC, error: error as i32 };
    // SAFETY: two integers without padding.
    let bytes: [u8; size_of::<cosched_hint_answer>()] = unsafe { std::mem::transmute(answer) };
    let fds: Vec<i32> = map.iter().map(|map| map.as_fd().as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&fds)];
    let control = if fds.is_empty() { &[][..] } else { &rights[..] };
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    sendmsg::<UnixAddr>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], control, flags, None).is_ok()
}
