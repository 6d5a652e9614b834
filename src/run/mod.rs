// SPDX-License-Identifier: GPL-2.0-only
//! `run`: what starts when, and what ends how. Everything that can be refused is refused before anything
//! is loaded, the cheapest questions first.

pub mod check;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use log::{info, warn};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::control::hints::HintSocket;
use crate::control::{self, ControlSocket};
use crate::metrics::exporter::Exporter;
use crate::metrics::monitor;
use crate::node::host::Host;
use crate::node::privileges;
use crate::node::{process, service};
use crate::prefetch::Port;
use crate::scheduler::requests::{Inbox, Owner};
use crate::scheduler::{Ending, Session};
use crate::settings::RunArgs;
use crate::settings::Settings;
use cosched_rules::policy::PolicyView;

/// How many runs in a row may end in a restart: a kernel that asks for more is not helped by it.
const RESTARTS_MAX: usize = 100;
/// A run that is longer ends the row.
const RESTARTS_WITHIN: Duration = Duration::from_secs(60);

/// Runs the scheduler until it is told to stop.
///
/// # Errors
/// One line: what is wrong with the settings, with this machine, or why the kernel has thrown it out.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    process::save_memory();
    let settings = Settings::from_args(args)?;
    crate::node::logging::init(settings.values.verbose);

    check::require(check::root(nix::unistd::geteuid().as_raw()))?;
    control::refuse_second_instance(&settings.values.control_socket)?;
    let exporter = Exporter::bind(settings.values.metrics_listen)?;
    let port = Port::bind(settings.wire.as_ref())?;
    let host = Host::new(Path::new("/"));
    check::require(host.no_scheduler())?;
    host.requirements().try_for_each(check::require)?;

    // Before there are threads: see there. It is removed again however this ends.
    let control = ControlSocket::bind(&settings.values.control_socket)?;
    let hints = settings.values.hints_socket.as_deref().map(HintSocket::bind).transpose()?;
    scx_utils::try_set_rlimit_infinity();
    privileges::settle()?;
    let (owner, requests) = Owner::new();
    let mut inbox = Inbox::new(requests);
    owner.set_loading(true);
    stop_on_signals(owner.clone())?;
    let stats = settings.values.stats;
    // Before the costs of messages are measured and the scheduler is loaded: that takes seconds, and a client hears so
    // at once.
    control.serve(owner.clone())?;
    exporter.serve(owner.clone())?;
    let mut session = Session::new(settings, port, &host);
    drop(host);
    if let Some(hints) = &hints {
        hints.serve(owner.clone())?;
    }
    let mut server = None;
    let mut in_a_row = 0;
    while in_a_row < RESTARTS_MAX {
        let began = Instant::now();
        let ready = |policy: &PolicyView| announce(policy, stats, &owner, &mut server);
        match session.run(&mut inbox, &owner, ready)? {
            Ending::Restart => info!("the kernel asks for a restart"),
            Ending::Stopped => return Ok(ExitCode::SUCCESS),
            Ending::Unloaded => {
                warn!("somebody else has unloaded the scheduler");
                return Ok(ExitCode::SUCCESS);
            }
        }
        in_a_row = if began.elapsed() < RESTARTS_WITHIN { in_a_row + 1 } else { 0 };
    }
    anyhow::bail!("the kernel has asked for {RESTARTS_MAX} restarts in a row (see its log)")
}

/// The scheduler runs: says so, and starts what only makes sense now.
fn announce(policy: &PolicyView, stats: Option<f64>, owner: &Owner, server: &mut Option<monitor::Server>) {
    process::give_memory_back();
    info!("the scheduler runs, policy {}", policy.name);
    service::ready(&policy.name);
    if server.is_some() {
        return;
    }
    match monitor::Server::launch(owner.clone()) {
        Ok(launched) => *server = Some(launched),
        Err(error) => warn!("{error:#}"),
    }
    let Some(seconds) = stats else { return };
    let print = move || {
        if let Err(error) = monitor::print_forever(seconds) {
            warn!("no more statistics: {error:#}");
        }
    };
    if let Err(error) = privileges::thread("stats", 0, print) {
        warn!("no statistics: {error:#}");
    }
}

/// SIGINT and SIGTERM unload the scheduler. A second one ends the process at once: the kernel unloads the
/// scheduler of a process that is gone.
fn stop_on_signals(owner: Owner) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
    let wait = move || {
        for (n, signal) in signals.forever().enumerate() {
            if n > 0 {
                std::process::exit(128 + signal);
            }
            service::stopping();
            owner.stop();
        }
    };
    privileges::thread("signals", 0, wait).map(drop)
}
