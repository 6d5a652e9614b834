// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a process that gives hints is heard for its own threads and nothing else, for as long as it is there;
//! whatever else comes to the socket is refused. What the scheduler makes of hints is tested in a VM.

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::hints::{Server, answer, dial, request, server};
use cosched_rules::intf::{COSCHED_HINT_MAGIC, COSCHED_HINT_THREADS, cosched_hint_place};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::socket::{MsgFlags, send};
use scx_cosched::control::hints::HintSocket;
use scx_cosched::hints::client::{self, Waits};
use scx_cosched::hints::{Change, Done};
use scx_cosched::scheduler::requests::Request;

const EPROTO: i32 = 71;
const EUSERS: i32 = 87;
const ESRCH: i32 = 3;

/// A scheduler that only takes notes.
#[derive(Default)]
struct Notes {
    alive: Arc<()>,
    pages: BTreeMap<u64, MapHandle>,
    places: Vec<cosched_hint_place>,
    /// Does what it is asked for, but too late: whoever asks hears that it has not.
    is_late: bool,
}

impl Notes {
    fn take(&mut self, change: Change) -> Done {
        match change {
            Change::Add(page, map) => assert!(self.pages.insert(page, map).is_none(), "a number that was given before"),
            Change::Place(place) if place.is_over != 0 => {
                let seat = |of: &cosched_hint_place| (of.page, of.process, of.thread, of.slot);
                self.places.retain(|other| seat(other) != seat(&place));
            }
            Change::Place(place) => self.places.push(place),
            Change::Remove(page) => assert!(self.pages.remove(&page).is_some(), "a page that was not there"),
        }
        Arc::downgrade(&self.alive)
    }

    /// What the thread that was placed last says: waits, and pending.
    fn last_hint(&self) -> (u32, u32) {
        let place = self.places.last().unwrap();
        let hint = self.pages[&place.page].lookup(&place.slot.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        let word = |at| u32::from_ne_bytes(hint[at..at + 4].try_into().unwrap());
        (word(0), word(4))
    }
}

/// A server with such a scheduler behind it.
struct Scene {
    notes: Arc<Mutex<Notes>>,
    server: Server,
}

fn scene() -> Scene {
    let notes = Arc::new(Mutex::new(Notes::default()));
    let theirs = notes.clone();
    let server = server(move |request| {
        let Request::Hint(change, answer) = request else { panic!("it was asked for something else") };
        let mut notes = theirs.lock().unwrap();
        let done = notes.take(change);
        // What is taken back waits for no answer.
        let _ = answer.send(if notes.is_late { Err("it has not answered".into()) } else { Ok(done) });
    });
    Scene { notes, server }
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "not so after 30 s: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn own_request() -> Vec<u8> {
    request(COSCHED_HINT_MAGIC, std::process::id(), 0, 0)
}

/// The error that `message` is answered with; None if the connection ends instead.
fn ask(fd: &OwnedFd, message: &[u8]) -> Option<i32> {
    send(fd.as_raw_fd(), message, MsgFlags::MSG_NOSIGNAL).unwrap();
    answer(fd)
}

#[test]
fn what_a_thread_says_stands_in_its_page() {
    let scene = scene();
    // SAFETY: the only test that uses the library, which alone reads it.
    unsafe { std::env::set_var("COSCHED_HINTS_SOCKET", &scene.server.path) };
    let hint = || scene.notes.lock().unwrap().last_hint();
    client::with_thread(|thread| {
        assert!(client::is_heard());
        assert_eq!(hint(), (0, 0));
        let outer = Waits::begin();
        assert_eq!(hint(), (1, 0));
        drop(Waits::begin());
        assert_eq!(hint(), (1, 0), "the outermost counts");
        thread::scope(|scope| drop(scope.spawn(|| thread.message_pending())));
        assert_eq!(hint(), (1, 1));
        drop(outer);
        assert_eq!(hint(), (2, 0));
        thread.message_pending();
        let _waits = Waits::begin();
        assert_eq!(hint(), (3, 0), "what was there before is found by the next look");
    });
    let of_thread = || {
        thread::spawn(|| client::with_thread(|_| (client::is_heard(), nix::unistd::gettid().as_raw() as u32)))
            .join()
            .unwrap()
    };
    for _ in 0..3 {
        let (heard, number) = of_thread();
        let place = *scene.notes.lock().unwrap().places.last().unwrap();
        assert!(heard);
        assert_eq!((place.process, place.thread), (std::process::id(), number));
        assert_eq!(place.slot, 1, "the place of one that has ended is free again");
    }

    // Another scheduler: it knows nothing, and the process tells it when it next looks.
    *scene.notes.lock().unwrap() = Notes::default();
    eventually("the next scheduler hears us", || {
        drop(Waits::begin());
        !scene.notes.lock().unwrap().places.is_empty()
    });
    eventually("we know that", client::is_heard);
    let _waits = Waits::begin();
    assert_eq!(hint().0 % 2, 1);
}

#[test]
fn what_is_no_request_ends_the_connection() {
    let scene = scene();
    let own = own_request();
    let wrong = [
        vec![1],
        own[..15].to_vec(),
        [&own[..], &[0]].concat(),
        vec![0xff; 16],
        vec![0; 9000],
        request(COSCHED_HINT_MAGIC ^ 1, std::process::id(), 0, 0),
        request(COSCHED_HINT_MAGIC, std::process::id(), COSCHED_HINT_THREADS, 0),
        request(COSCHED_HINT_MAGIC, std::process::id(), u32::MAX, 0),
        request(COSCHED_HINT_MAGIC, std::process::id(), 0, 1),
    ];
    for message in wrong {
        let fd = dial(&scene.server.path);
        assert_eq!(ask(&fd, &message), Some(EPROTO), "{message:?}");
        assert_eq!(answer(&fd), None, "{message:?}");
    }
    let notes = scene.notes.lock().unwrap();
    assert!(notes.pages.is_empty() && notes.places.is_empty());
}

#[test]
fn threads_of_others_are_not_heard() {
    let scene = scene();
    let fd = dial(&scene.server.path);
    for thread in [0, 1, u32::MAX, std::os::unix::process::parent_id()] {
        assert_eq!(ask(&fd, &request(COSCHED_HINT_MAGIC, thread, 0, 0)), Some(ESRCH), "{thread}");
    }
    assert!(scene.notes.lock().unwrap().places.is_empty());
    assert_eq!(ask(&fd, &own_request()), Some(0));
    assert_eq!(scene.notes.lock().unwrap().places.len(), 1);
}

#[test]
fn a_page_goes_with_its_process() {
    let scene = scene();
    let pages = || scene.notes.lock().unwrap().pages.len();
    let (first, second) = (dial(&scene.server.path), dial(&scene.server.path));
    assert_eq!((ask(&first, &own_request()), ask(&second, &own_request())), (Some(0), Some(0)));
    assert_eq!((ask(&first, &own_request()), pages()), (Some(0), 2), "one page however often it asks");
    drop(first);
    eventually("the first page is gone", || pages() == 1);
    drop(second);
    eventually("the second page is gone", || pages() == 0);
}

#[test]
fn a_page_that_comes_too_late_is_taken_back() {
    let scene = scene();
    scene.notes.lock().unwrap().is_late = true;
    let fd = dial(&scene.server.path);
    assert_eq!(ask(&fd, &own_request()), Some(libc::EAGAIN));
    assert_eq!(answer(&fd), None, "it is to begin anew");
    eventually("the page is gone", || scene.notes.lock().unwrap().pages.is_empty());
    scene.notes.lock().unwrap().is_late = false;
    assert_eq!(ask(&dial(&scene.server.path), &own_request()), Some(0));
}

#[test]
fn threads_are_forgotten_with_their_connection() {
    let scene = scene();
    let threads =
        || scene.notes.lock().unwrap().places.iter().map(|place| (place.thread, place.slot)).collect::<Vec<_>>();
    let own = |slot| request(COSCHED_HINT_MAGIC, std::process::id(), slot, 0);
    let (first, second) = (dial(&scene.server.path), dial(&scene.server.path));
    let this = nix::unistd::gettid().as_raw() as u32;
    assert_eq!(ask(&first, &own(7)), Some(0));
    assert_eq!(ask(&first, &request(COSCHED_HINT_MAGIC, this, 8, 0)), Some(0));
    assert_eq!(ask(&second, &own(9)), Some(0));
    assert_eq!(threads(), [(std::process::id(), 7), (this, 8), (std::process::id(), 9)]);
    // They live on, and so does what was said in another page.
    drop(first);
    eventually("two are forgotten", || threads() == [(std::process::id(), 9)]);
    // A slot is one thread's.
    assert_eq!(ask(&second, &request(COSCHED_HINT_MAGIC, this, 9, 0)), Some(0));
    assert_eq!(threads(), [(this, 9)]);
    // What is no request ends the connection as well.
    assert_eq!(ask(&second, &[1]), Some(EPROTO));
    eventually("nobody is heard", || threads().is_empty());
}

#[test]
fn one_user_cannot_have_all_the_room() {
    let scene = scene();
    let mut connected = Vec::new();
    let refused = (0..513).find_map(|_| {
        let fd = dial(&scene.server.path);
        // Whoever is welcome is told nothing until he asks.
        let said = if connected.len() < 512 { ask(&fd, &request(COSCHED_HINT_MAGIC, 0, 0, 0)) } else { answer(&fd) };
        connected.push(fd);
        (said != Some(ESRCH)).then_some(said)
    });
    assert_eq!(refused, Some(Some(EUSERS)));
    assert_eq!(connected.len(), 513);
    connected.clear();
    eventually("there is room again", || ask(&dial(&scene.server.path), &own_request()) == Some(0));
}

#[test]
fn a_process_that_asks_all_the_time_does_not_keep_others_of_its_user_from_being_heard() {
    let scene = scene();
    let dial = || dial(&scene.server.path);
    let (busy, other) = (dial(), dial());
    assert_eq!((ask(&busy, &own_request()), ask(&other, &own_request())), (Some(0), Some(0)));
    // Its requests fill the socket, and it takes no answer.
    let is_heard = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + Duration::from_secs(5);
            while !is_heard.load(Ordering::Relaxed) {
                assert!(Instant::now() < end, "the other one waits for the busy one");
                send(busy.as_raw_fd(), &own_request(), MsgFlags::MSG_NOSIGNAL).unwrap();
            }
        });
        for _ in 0..20 {
            assert_eq!(ask(&other, &own_request()), Some(0));
        }
        is_heard.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_socket_that_is_in_use_is_not_replaced() {
    let scene = scene();
    let error = HintSocket::bind(&scene.server.path).map(drop).unwrap_err().to_string();
    assert!(error.contains("another program listens") && error.contains("--hints-socket"), "{error}");
    let file = scene.server.path.with_extension("txt");
    File::create(&file).unwrap().write_all(b"dear").unwrap();
    let error = HintSocket::bind(&file).map(drop).unwrap_err().to_string();
    assert!(error.contains("is not a socket"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"dear");
}
