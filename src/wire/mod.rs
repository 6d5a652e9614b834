// SPDX-License-Identifier: GPL-2.0-only
//! Epochs on the wire: loads the programs of `bpf/wire.bpf.c`, which need no sched_ext, and attaches them.
//!
//! They are loaded before the scheduler and outlive its restarts: the scheduler takes over the maps that both use
//! ([`Wire::maps`]). Nothing is pinned. What holds them in the kernel are file descriptors of this process, so they are
//! gone when it ends, however it ends, and there is nothing to clean up.
//!
//! What cannot attach is a warning and shows as missing, never a reason not to run.

pub mod interfaces;
pub mod key;
pub mod network;
pub mod settings;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use aya::maps::lpm_trie::{Key as TrieKey, LpmTrie};
use aya::maps::{Map, MapData};
use aya::programs::links::{CgroupAttachMode, LinkOrder};
use aya::programs::tc::{SchedClassifierLinkId, TcAttachOptions};
use aya::programs::xdp::XdpLinkId;
use aya::programs::{Iter, SchedClassifier, SockOps, TcAttachType, Xdp, XdpMode};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use log::{info, warn};

use crate::bpf::hooks::HookStates;
use crate::bpf::lru_entries;
use cosched_rules::intf;
use cosched_rules::report::one_line;
use settings::WireSettings;

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/wire.bpf.o"));

/// On all architectures that sched_ext is on.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// How often to see whether an interface has come or gone.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(2);
/// The program on sockets, as `status` shows it.
const SOCK_OPS: &str = "on_tcp_option";
/// The program on connections that are there already.
const ITER: &str = "on_connection";
/// The program on packets that come in at an interface.
const XDP: &str = "on_xdp";
/// The program on datagrams that leave by one.
const TC: &str = "on_udp";
/// The maps that the scheduler takes over, by their names in both objects.
const SHARED: [&str; 4] = ["cpu_ctxs", "cpu_stats", "wire_notes", "wire_datagrams"];
/// Those that drop what was used least lately.
const DROPPING: [&str; 3] = ["wire_notes", "wire_datagrams", "wire_told"];

/// The key as aya puts it into the object.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Global(intf::cosched_wire_key);

// SAFETY: integers without padding.
unsafe impl aya::Pod for Global {}

/// A network interface that packets are looked at on.
struct Watched {
    /// Its number: another one by the same name is another interface.
    index: u32,
    /// None if it did not attach, which has been warned of.
    xdp: Option<XdpLinkId>,
    /// The same.
    tc: Option<SchedClassifierLinkId>,
}

/// The programs that put epochs on the wire and take them off.
pub struct Wire {
    settings: WireSettings,
    namespace: u64,
    ebpf: Ebpf,
    sock_ops: bool,
    interfaces: BTreeMap<String, Watched>,
    looked_at: Instant,
}

impl Wire {
    /// Loads the programs, and attaches that on sockets to the cgroup at `cgroup_root`, the root of cgroup v2, and that
    /// on packets to all interfaces that are wanted and there.
    ///
    /// # Errors
    /// If the kernel does not take them at all.
    pub fn load(settings: &WireSettings, cgroup_root: Option<&Path>) -> Result<Wire> {
        let key = Global(settings.key.map_or(key::NO_KEY, key::Key::to_bpf));
        let mut loader = EbpfLoader::new();
        let namespace = namespace_cookie().context("cannot tell this network namespace from others")?;
        loader.override_global("wire_key", &key, true).override_global("wire_namespace", &namespace, true);
        for name in DROPPING {
            loader.map_max_entries(name, lru_entries(intf::COSCHED_WIRE_CONNECTIONS));
        }
        let mut ebpf = loader.load(OBJECT)?;
        believe(&mut ebpf, settings)?;
        let sock_ops = match attach_sock_ops(&mut ebpf, cgroup_root) {
            Ok(()) => {
                if let Err(error) = adopt_connections(&mut ebpf) {
                    let error = one_line(&format!("{error:#}"));
                    warn!("{ITER} does not run: connections that are there already take no epoch along: {error}");
                }
                true
            }
            Err(error) => {
                warn!(
                    "{SOCK_OPS} does not attach: {}: no epoch is sent, and none is heard but from peers' segments that \
                     XDP sees on connections known to it",
                    one_line(&format!("{error:#}"))
                );
                false
            }
        };
        let interfaces = BTreeMap::new();
        let mut wire =
            Wire { settings: settings.clone(), namespace, ebpf, sock_ops, interfaces, looked_at: Instant::now() };
        if !settings.interfaces.is_empty() {
            if let Err(error) = program::<Xdp>(&mut wire.ebpf, XDP).and_then(|xdp| Ok(xdp.load()?)) {
                warn!("{XDP} does not load: {}", one_line(&format!("{error:#}")));
            }
            if let Err(error) = program::<SchedClassifier>(&mut wire.ebpf, TC).and_then(|tc| Ok(tc.load()?)) {
                warn!("{TC} does not load: {}", one_line(&format!("{error:#}")));
            }
        }
        wire.look();
        Ok(wire)
    }

    /// What the scheduler takes over: each map's name, and the map.
    ///
    /// # Errors
    /// If the object lacks one.
    pub fn maps(&self) -> Result<Vec<(&'static str, BorrowedFd<'_>)>> {
        SHARED.iter().map(|name| Ok((*name, data(self.ebpf.map(name), name)?.fd().as_fd()))).collect()
    }

    /// The number of this node's first CPU.
    pub fn node_number(&self) -> u32 {
        self.settings.node_number
    }

    /// The network namespace whose sockets are told and believed, as the kernel numbers it.
    pub fn namespace(&self) -> u64 {
        self.namespace
    }

    /// Which programs are attached where, and which are not.
    pub fn states(&self) -> HookStates {
        let mut states = HookStates::default();
        let mut sort = |name: String, attached| match attached {
            true => states.attached.push(name),
            false => states.missing.push(name),
        };
        sort(SOCK_OPS.into(), self.sock_ops);
        for name in interfaces::wanted(&self.settings.interfaces, &self.settings.peers) {
            let there = |watched: &&Watched| index_of(&name) == Some(watched.index);
            let watched = self.interfaces.get(&name).filter(there);
            sort(format!("{XDP}:{name}"), watched.is_some_and(|watched| watched.xdp.is_some()));
            sort(format!("{TC}:{name}"), watched.is_some_and(|watched| watched.tc.is_some()));
        }
        states
    }

    /// Now and then, sees whether an interface has come or gone.
    pub fn follow(&mut self) {
        if self.looked_at.elapsed() >= FOLLOW_INTERVAL {
            self.look();
        }
    }

    fn look(&mut self) {
        self.looked_at = Instant::now();
        let wanted = interfaces::wanted(&self.settings.interfaces, &self.settings.peers);
        let gone = |name: &String, watched: &Watched| !wanted.contains(name) || index_of(name) != Some(watched.index);
        let left: Vec<String> = self
            .interfaces
            .iter()
            .filter(|(name, watched)| gone(name, watched))
            .map(|(name, _)| name.clone())
            .collect();
        for name in left {
            self.leave(&name);
        }
        for name in wanted {
            if !self.interfaces.contains_key(&name)
                && let Some(index) = index_of(&name)
            {
                self.watch(name, index);
            }
        }
    }

    fn leave(&mut self, name: &str) {
        let Some(Watched { xdp, tc, .. }) = self.interfaces.remove(name) else { return };
        // The kernel has detached them if the interface is gone.
        if let (Some(link), Ok(xdp)) = (xdp, program::<Xdp>(&mut self.ebpf, XDP)) {
            let _ = xdp.detach(link);
        }
        if let (Some(link), Ok(tc)) = (tc, program::<SchedClassifier>(&mut self.ebpf, TC)) {
            let _ = tc.detach(link);
        }
        info!("{XDP} and {TC} have left interface {name}");
    }

    fn watch(&mut self, name: String, index: u32) {
        if !is_ethernet(&name) {
            warn!(
                "{XDP} and {TC} read Ethernet headers, which packets of {name} do not have: epochs are read there when \
                 TCP takes a segment up, and none of datagrams"
            );
            self.interfaces.insert(name, Watched { index, xdp: None, tc: None });
            return;
        }
        let xdp = match attach_xdp(&mut self.ebpf, index) {
            Ok((link, mode)) => {
                info!("{XDP} is on interface {name}, {mode} mode");
                Some(link)
            }
            Err(error) => {
                let error = one_line(&format!("{error:#}"));
                warn!(
                    "{XDP} does not attach to {name}, epochs are read there when TCP takes a segment up, and none of \
                     datagrams: {error}"
                );
                None
            }
        };
        let tc = match attach_tc(&mut self.ebpf, &name) {
            Ok(link) => Some(link),
            Err(error) => {
                let error = one_line(&format!("{error:#}"));
                warn!("{TC} does not attach to {name}, datagrams leave it without epochs: {error}");
                None
            }
        };
        self.interfaces.insert(name, Watched { index, xdp, tc });
    }
}

/// Loads the programs, or warns that they do not load: see [`Wire::load`].
pub fn load(settings: &WireSettings, cgroup_root: Option<&Path>) -> Option<Wire> {
    let wire = Wire::load(settings, cgroup_root);
    let warn = |error| warn!("no epoch is sent or heard, the rest works: {}", one_line(&format!("{error:#}")));
    wire.map_err(warn).ok()
}

/// Which programs are attached where, and which are not, if there are any.
pub fn states(wire: Option<&Wire>) -> HookStates {
    let none = || HookStates { missing: vec![SOCK_OPS.into(), XDP.into(), TC.into()], ..HookStates::default() };
    wire.map_or_else(none, Wire::states)
}

/// How the kernel numbers the network namespace of this thread.
fn namespace_cookie() -> io::Result<u64> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (mut cookie, mut length) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the pointers are valid for the call, which writes as many bytes as the cookie has.
    let result = unsafe {
        let (to, length) = ((&raw mut cookie).cast(), &raw mut length);
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, to, length)
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

/// The number of the interface of that name, if there is one.
fn index_of(name: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(name).ok()
}

/// Whether packets of an interface begin with an Ethernet header, as far as is known.
fn is_ethernet(name: &str) -> bool {
    let kind = std::fs::read_to_string(format!("/sys/class/net/{name}/type"));
    // ARPHRD_ETHER and ARPHRD_LOOPBACK.
    kind.map_or(true, |kind| matches!(kind.trim_end(), "1" | "772"))
}

fn program<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = aya::programs::ProgramError>,
{
    Ok(ebpf.program_mut(name).with_context(|| format!("the object has no program {name}"))?.try_into()?)
}

fn data<'a>(map: Option<&'a Map>, name: &str) -> Result<&'a MapData> {
    match map {
        Some(Map::Array(data) | Map::PerCpuArray(data) | Map::LruHashMap(data)) => Ok(data),
        _ => Err(anyhow!("the object has no map {name} of the right kind")),
    }
}

/// Fills the trie of networks that are believed.
fn believe(ebpf: &mut Ebpf, settings: &WireSettings) -> Result<()> {
    let map = ebpf.map_mut("wire_peers").context("the object has no map wire_peers")?;
    let mut peers: LpmTrie<_, [u8; 16], u32> = LpmTrie::try_from(map)?;
    for peer in &settings.peers {
        peers.insert(&TrieKey::new(peer.prefix(), peer.octets()), 1, 0)?;
    }
    Ok(())
}

fn attach_sock_ops(ebpf: &mut Ebpf, cgroup_root: Option<&Path>) -> Result<()> {
    let root = cgroup_root.context("cgroup v2 is not mounted (mount -t cgroup2 none /sys/fs/cgroup)")?;
    let cgroup = File::open(root).with_context(|| format!("cannot open {}", root.display()))?;
    let sock_ops: &mut SockOps = program(ebpf, SOCK_OPS)?;
    sock_ops.load()?;
    // By a link there may always be others besides.
    sock_ops.attach(cgroup, CgroupAttachMode::Single)?;
    Ok(())
}

/// Has TCP ask the program on sockets for connections of this network namespace that are there already.
fn adopt_connections(ebpf: &mut Ebpf) -> Result<()> {
    let iter: &mut Iter = program(ebpf, ITER)?;
    iter.load("tcp", &Btf::from_sys_fs()?)?;
    let link = iter.attach()?;
    // It runs while it is read, and has nothing to say.
    iter.take_link(link)?.into_file()?.read_to_end(&mut Vec::new())?;
    Ok(())
}

/// In native mode, else in generic mode.
fn attach_xdp(ebpf: &mut Ebpf, index: u32) -> Result<(XdpLinkId, &'static str)> {
    let xdp: &mut Xdp = program(ebpf, XDP)?;
    match xdp.attach_to_if_index(index, XdpMode::Driver) {
        Ok(link) => Ok((link, "native")),
        Err(_) => Ok((xdp.attach_to_if_index(index, XdpMode::Skb)?, "generic")),
    }
}

/// By a link, which goes with this process, as the others do; kernels before 6.6 have none for this.
fn attach_tc(ebpf: &mut Ebpf, name: &str) -> Result<SchedClassifierLinkId> {
    let tc: &mut SchedClassifier = program(ebpf, TC)?;
    Ok(tc.attach_with_options(name, TcAttachType::Egress, TcAttachOptions::TcxOrder(LinkOrder::default()))?)
}
