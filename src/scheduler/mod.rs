// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler in the kernel, and the one thread that owns it.

mod burial;
pub mod loading;
pub mod requests;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use libbpf_rs::skel::Skel;
use libbpf_rs::{Link, MapHandle};
use log::{info, warn};
use scx_utils::{UserExitInfo, scx_ops_attach, uei_exited, uei_report};

use crate::bpf::hooks::Hooks;
use crate::bpf::modules::ModuleHooks;
use crate::bpf::{BpfSkel, types};
use crate::hints::kernel::{self, Pages};
use crate::hints::{Change, Done};
use crate::jobs::TopJobs;
use crate::jobs::gang::Gang;
use crate::jobs::owners::Owners;
use crate::jobs::totals::{JobTotals, Totals};
use crate::node::calibration;
use crate::node::cpu_max::Unkept;
use crate::node::host::Host;
use crate::node::kernel_events::KernelEvents;
use crate::node::service::{self, Watchdog};
use crate::prefetch::Port;
use crate::prefetch::worker::Worker;
use crate::scheduler::loading::{Start, Storage};
use crate::scheduler::requests::{Inbox, Owner, Request};
use crate::settings::{Reloaded, Settings};
use crate::snapshot::Snapshot;
use crate::trace::tap::{Client, Opened, Tap};
use crate::wire::{self, Wire};
use cosched_rules::costs::Costs;
use cosched_rules::policy::{CostsView, Policy, PolicyChange, PolicyView};

/// How often to see whether the kernel has thrown the scheduler out.
const EXIT_POLL: Duration = Duration::from_millis(250);
/// How often to see whether the hooks in modules have been loaded.
const GLANCE: Duration = Duration::from_millis(20);
/// How often jobs whose owners are gone are moved to "other". They must not fill the map.
const BURIAL_INTERVAL: Duration = Duration::from_secs(10);

/// What outlives a restart that the kernel asks for.
pub struct Session {
    settings: Settings,
    policy: Policy,
    /// What messages and switches cost on this node.
    costs: CostsView,
    started: Instant,
    kernel: String,
    /// What earlier runs of the scheduler have counted, and jobs that are gone.
    past: Totals,
    top: TopJobs,
    owners: Owners,
    runs: u32,
    /// Epochs on the wire, if there are peers and the kernel takes the programs.
    wire: Option<Wire>,
    /// Where prefetches are heard, if there are to be any.
    port: Option<Port>,
    /// The kernel lets BPF programs set timers.
    timers: bool,
    /// Limits of cgroups that are not kept.
    unkept: Unkept,
    /// Counters of full maps that have been warned of.
    full: BTreeSet<&'static str>,
    watchdog: Watchdog,
    /// What the kernel had counted of earlier runs, and of this one when it was last seen.
    past_events: KernelEvents,
    events: KernelEvents,
}

/// Why a run of the scheduler has ended.
pub enum Ending {
    /// Somebody asked for it.
    Stopped,
    /// The kernel wants it loaded again: a CPU came or went.
    Restart,
    /// The kernel or another program has unloaded it.
    Unloaded,
}

impl Session {
    /// Nothing is loaded yet, so that what messages cost can be measured under the kernel's own scheduler.
    pub fn new(settings: Settings, port: Option<Port>, host: &Host) -> Session {
        Session {
            policy: settings.policy.clone(),
            costs: node_costs(),
            started: Instant::now(),
            kernel: host.kernel(),
            past: Totals::default(),
            top: TopJobs::new(settings.values.jobs_top as usize),
            owners: Owners::new(settings.values.job_by, host.cgroup_root()),
            runs: 0,
            wire: settings.wire.as_ref().and_then(|wire| wire::load(wire, host.cgroup_root().as_deref())),
            port,
            timers: host.has_timers(),
            unkept: warned_of(Unkept::of(host)),
            full: BTreeSet::new(),
            watchdog: Watchdog::from_environment(),
            past_events: KernelEvents::default(),
            events: KernelEvents::default(),
            settings,
        }
    }

    /// What the kernel has counted of all runs.
    fn kernel_events(&mut self) -> KernelEvents {
        // If it has thrown the scheduler out, it shows nothing any more.
        self.events = KernelEvents::read().unwrap_or_else(|| self.events.clone());
        let mut all = self.past_events.clone();
        all.add(&self.events);
        all
    }

    fn start(&self) -> Start {
        Start {
            policy: self.policy.to_bpf(&self.costs.costs),
            job_by: self.settings.values.job_by.to_bpf(),
            arrivals: self.settings.values.arrivals.unwrap_or_default().to_bpf(),
            exit_dump_len: self.settings.values.exit_dump_len,
            // Without the programs on the wire it is not known who is a peer.
            prefetch: self.port.as_ref().filter(|_| self.wire.is_some()).map_or(0, Port::correspondents),
            timers: self.timers,
            quiet: self.runs > 0,
        }
    }

    /// Loads the scheduler, calls `ready` when it runs, and answers what comes by `inbox`, which `owner` fills, until
    /// it ends.
    ///
    /// # Errors
    /// If it does not load or attach, or if the kernel has thrown it out because of an error.
    pub fn run(&mut self, inbox: &mut Inbox, owner: &Owner, ready: impl FnOnce(&PolicyView)) -> Result<Ending> {
        let mut storage = Storage::default();
        let mut scheduler = Scheduler::attach(self, inbox, owner, &mut storage)?;
        scheduler.session.runs += 1;
        ready(&scheduler.session.policy.view());
        let stopped = scheduler.serve();
        // Nobody is answered from now on, and to detach hooks takes seconds on a slow machine.
        owner.set_loading(!stopped);
        let exit = scheduler.end()?;
        Ok(match stopped {
            true => Ending::Stopped,
            false if exit.should_restart() => Ending::Restart,
            false => Ending::Unloaded,
        })
    }
}

struct Scheduler<'a, 's> {
    session: &'s mut Session,
    inbox: &'s mut Inbox,
    skel: BpfSkel<'a>,
    struct_ops: Option<Link>,
    hooks: Hooks,
    module_hooks: ModuleHooks,
    gang: Gang,
    tap: Tap,
    hints: Pages,
    prefetch: Option<Worker>,
    /// What the jobs had used when it was last seen who is gone.
    buried_at: Instant,
    used_then: BTreeMap<u64, JobTotals>,
}

impl<'a, 's> Scheduler<'a, 's> {
    /// Loads and attaches. The hooks come first: they do nothing for a task that the scheduler has not seen
    /// yet, and a message that arrives while it takes over one task after the other is not lost.
    ///
    /// They are attached only while the policy wants to see messages or waits: one that does not pays nothing for them,
    /// once they are gone.
    fn attach(session: &'s mut Session, inbox: &'s mut Inbox, owner: &Owner, storage: &'a mut Storage) -> Result<Self> {
        let skel = loading::load(&session.start(), session.wire.as_ref(), storage)?;
        let mut scheduler = Scheduler {
            struct_ops: None,
            hooks: Hooks::of(skel.object(), session.settings.values.arrivals.unwrap_or_default().any()),
            module_hooks: ModuleHooks::default(),
            gang: Gang::new(session.settings.given_to_jobs.clone()),
            tap: Tap::default(),
            hints: Pages::default(),
            prefetch: None,
            buried_at: Instant::now(),
            used_then: BTreeMap::new(),
            session,
            inbox,
            skel,
        };
        owner.set_loading(false);
        if scheduler.session.policy.needs_hooks() {
            scheduler.wake_hooks();
        }
        scheduler.load_module_hooks();
        let Scheduler { session, skel, gang, .. } = &mut scheduler;
        gang.place(&session.policy, &mut session.owners, &skel.maps.jobs, &skel.maps.turns_of_jobs);
        // Attaches what the scx library brings along, too; the hooks are marked not to be.
        scheduler.struct_ops = Some(attach_struct_ops(&mut scheduler.skel)?);
        scheduler.prefetch = start_prefetching(scheduler.session, &scheduler.skel)?;
        Ok(scheduler)
    }

    /// Attaches the hooks. On a busy machine that takes longer than a client waits for a snapshot, and longer than the
    /// watchdog ought to wait: both are looked after in between.
    fn wake_hooks(&mut self) {
        while self.hooks.wake_one(self.skel.object()) {
            self.look_after_others();
        }
    }

    /// Has the hooks in modules loaded and attached. That takes as long.
    fn load_module_hooks(&mut self) {
        loop {
            self.module_hooks.follow(self.skel.object(), self.hooks.are_awake());
            if !self.module_hooks.is_loading() {
                return;
            }
            self.look_after_others();
            std::thread::sleep(GLANCE);
        }
    }

    /// Feeds the watchdog, and answers those that ask for a snapshot.
    fn look_after_others(&mut self) {
        self.session.watchdog.alive();
        while let Some(answer) = self.inbox.next_question() {
            self.answer_snapshot(&answer);
        }
    }

    fn answer_snapshot(&mut self, answer: &Sender<Result<Snapshot, String>>) {
        // Whoever asked may have gone away: then nobody takes the answer.
        let _ = answer.send(self.snapshot().map_err(|e| format!("{e:#}")));
    }

    /// Answers requests until one says stop (true) or the kernel has thrown the scheduler out (false).
    fn serve(&mut self) -> bool {
        while !uei_exited!(&self.skel, uei) {
            self.session.watchdog.alive();
            match self.inbox.next(EXIT_POLL) {
                Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => return true,
                Ok(Request::Snapshot(answer)) => self.answer_snapshot(&answer),
                Ok(Request::SetPolicy(change, answer)) => drop(answer.send(self.set_policy(&change))),
                Ok(Request::Reload(answer)) => drop(answer.send(self.reload())),
                Ok(Request::Trace(client, answer)) => {
                    drop(answer.send(self.trace(&client).map_err(|e| format!("{e:#}"))))
                }
                Ok(Request::Hint(change, answer)) => drop(answer.send(self.hint(change).map_err(|e| format!("{e:#}")))),
                Ok(Request::Freed(maps, answer)) => drop(answer.send(Ok(kernel::freed(maps)))),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Ok(flag) = trace_flag(&mut self.skel.maps.bss_data) {
                self.tap.close_if_left(&self.skel.maps.trace_rings, flag);
            }
            if let Some(wire) = &mut self.session.wire {
                wire.follow();
            }
            self.hooks.follow(self.session.policy.needs_hooks());
            self.module_hooks.follow(self.skel.object(), self.hooks.are_awake());
            if self.gang.is_due() {
                let Session { policy, owners, .. } = &mut *self.session;
                self.gang.place(policy, owners, &self.skel.maps.jobs, &self.skel.maps.turns_of_jobs);
            }
            if self.buried_at.elapsed() >= BURIAL_INTERVAL
                && let Err(error) = self.bury_the_gone()
            {
                warn!("jobs that are gone stay in the map: {error:#}");
            }
        }
        false
    }

    /// Unloads, keeps what was counted, and says why the kernel ended it.
    fn end(mut self) -> Result<UserExitInfo> {
        drop(self.prefetch.take());
        self.session.past_events = self.session.kernel_events();
        self.session.events = KernelEvents::default();
        drop(self.struct_ops.take());
        self.hooks.rest();
        self.module_hooks.let_go();
        match self.read() {
            Ok(totals) => self.session.past.add(&totals),
            Err(error) => warn!("the last counts are lost: {error:#}"),
        }
        uei_report!(&self.skel, uei)
    }

    fn read(&self) -> Result<Totals> {
        Totals::read(&self.skel.maps.cpu_stats, &self.skel.maps.jobs)
    }

    /// Makes the policy that `change` asks for the one in force. The scheduler reads the policy through an
    /// index, so the new one is written where nobody looks, and then the index is counted up.
    fn set_policy(&mut self, change: &PolicyChange) -> Result<PolicyView, String> {
        self.put_in_force(change.apply(&self.session.policy)?)
    }

    /// Puts the policy in force that the configuration file names now. What else has changed there waits for a restart.
    fn reload(&mut self) -> Result<Reloaded, String> {
        let new = self.session.settings.again().map_err(|e| format!("{e:#}"))?;
        let restart_needed = self.session.settings.changed(&new);
        let policy = self.put_in_force(new.policy)?;
        if !restart_needed.is_empty() {
            warn!("these settings wait for a restart: {}", restart_needed.join(", "));
        }
        Ok(Reloaded { policy, restart_needed })
    }

    fn put_in_force(&mut self, policy: Policy) -> Result<PolicyView, String> {
        let bpf = policy.to_bpf(&self.session.costs.costs);
        let maps = &self.skel.maps;
        self.gang.place(&policy, &mut self.session.owners, &maps.jobs, &maps.turns_of_jobs);
        if policy.needs_hooks() {
            self.wake_hooks();
        }
        let bss = self.skel.maps.bss_data.as_mut().ok_or("the object has no .bss")?;
        // SAFETY: valid for as long as bss is, and everybody who may write it does so here.
        let now = unsafe { AtomicU32::from_ptr(&raw mut bss.policy_now) };
        let next = now.load(Ordering::Relaxed).wrapping_add(1);
        wait_for_readers();
        // SAFETY: within the array; volatile, since the kernel reads it behind the compiler's back.
        unsafe { (&raw mut bss.policies[next as usize & 1]).write_volatile(loading::to_skeleton(&bpf)) };
        now.store(next, Ordering::Release);

        let view = policy.view();
        info!("policy {} is in force", view.name);
        service::policy(&view.name);
        self.session.policy = policy;
        Ok(view)
    }

    /// Has the BPF side write events for `client`.
    fn trace(&mut self, client: &Arc<Client>) -> Result<Opened> {
        let flag = trace_flag(&mut self.skel.maps.bss_data)?;
        self.tap.open(client, &self.skel.maps.trace_rings, &self.skel.maps.cpu_stats, flag)
    }

    /// Takes note of who gives hints.
    fn hint(&mut self, change: Change) -> Result<Done> {
        self.hints.apply(change, &self.skel.maps.hint_pages, &self.skel.progs.place_hint)
    }
}

/// Warns of the limits that are not kept.
fn warned_of(mut unkept: Unkept) -> Unkept {
    let remedy = unkept.remedy;
    for line in unkept.lines() {
        warn!("cpu.max: {line} ({remedy})");
    }
    unkept
}

/// Has correspondents asked for ahead of messages, if that is wanted.
fn start_prefetching(session: &Session, skel: &BpfSkel<'_>) -> Result<Option<Worker>> {
    let Some(port) = session.port.as_ref().filter(|_| session.wire.is_some()) else { return Ok(None) };
    let ring = MapHandle::try_from(&skel.maps.prefetch_ring).context("cannot prefetch")?;
    Worker::start(port, ring, &skel.progs.tell_prefetch).context("cannot prefetch").map(Some)
}

/// What messages and switches cost on this node, or if that cannot be measured, what they may cost on any.
fn node_costs() -> CostsView {
    match calibration::measure() {
        Ok(costs) => CostsView { costs, source: "measured".into() },
        Err(error) => {
            let costs = Costs::ASSUMED;
            warn!(
                "what messages cost here is unknown, so L = {} us, o = {} us and W = {} us are assumed (set \
                 --latency-us, --overhead-us and --switch-us): {error:#}",
                costs.latency_us, costs.overhead_us, costs.switch_us
            );
            CostsView { costs, source: "assumed".into() }
        }
    }
}

/// Which events the BPF side writes.
fn trace_flag<'b>(bss: &'b mut Option<&mut types::bss>) -> Result<&'b AtomicU32> {
    let bss = bss.as_mut().context("the object has no .bss")?;
    // SAFETY: valid for as long as bss is, and everybody who may write it does so through this.
    Ok(unsafe { AtomicU32::from_ptr(&raw mut bss.trace_on) })
}

fn attach_struct_ops(skel: &mut BpfSkel<'_>) -> Result<Link> {
    scx_ops_attach!(skel, cosched_ops).context("the scheduler does not attach")
}

/// Returns when every decision that began before has been made, so that none still reads a policy which
/// went out of force before.
fn wait_for_readers() {
    // SAFETY: takes three integers and touches no memory of ours. It waits for an RCU grace period.
    let waited = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if waited != 0 {
        // Not with nohz_full. A decision takes microseconds.
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_readers_ends() {
        wait_for_readers();
    }
}
