// SPDX-License-Identifier: GPL-2.0-only
//! `top`: what the running scheduler does, in a terminal, until a key ends it.
//!
//! One thread asks the scheduler ([`asker`]), so that keys are answered while an answer is late. Another look is the
//! trace of switches, which becomes a lane for each CPU ([`watch`], [`lanes`]). What has been seen and what was typed
//! is the [`screen`]; [`figures`] are the differences of two snapshots. [`draw`] is a pure function from there to
//! widgets.

mod asker;
pub mod draw;
pub mod figures;
pub mod lanes;
pub mod letters;
mod panes;
pub mod screen;
pub mod terminal;
mod theme;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use scx_utils::read_cpulist;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};

use crate::settings::{DEFAULT_CONTROL_SOCKET, limits};
use crate::snapshot::Snapshot;
use asker::{Answer, Asker, Request};
use cosched_rules::policy::PolicyView;
use screen::{Action, Screen};
use watch::Watch;

/// Between two looks at what was typed, at signals and at the trace.
const TICK: Duration = Duration::from_millis(50);
const ONLINE_CPUS: &str = "/sys/devices/system/cpu/online";

/// `top`.
#[derive(Args, Debug)]
pub struct TopArgs {
    /// Between two looks, in seconds, 0.1 to 60.
    #[arg(long, value_name = "S", default_value = "1", value_parser = |s: &str| limits::INTERVAL.parse(s),
          allow_hyphen_values = true)]
    pub interval: f64,

    /// Use no colours. The environment's NO_COLOR does the same.
    #[arg(long, alias = "no-color")]
    pub no_colour: bool,

    /// Where the running scheduler is talked to. [default: /run/scx_cosched.sock]
    #[arg(long, value_name = "PATH", value_parser = limits::socket)]
    pub control_socket: Option<PathBuf>,
}

/// Shows the running scheduler until a key or a signal ends it.
///
/// # Errors
/// If no scheduler runs or answers, now or later, or if the output is no terminal.
pub fn run(args: &TopArgs) -> Result<ExitCode> {
    let told_to_stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, told_to_stop.clone()).context("cannot handle signals")?;
    }
    terminal::end_on_hang_up()?;
    let socket = args.control_socket.as_deref().unwrap_or(Path::new(DEFAULT_CONTROL_SOCKET));
    let first = asker::look(socket)?;
    terminal::require()?;
    let colours = !args.no_colour && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut top = Top {
        asker: Asker::start(socket)?,
        watch: None,
        interval: Duration::from_secs_f64(args.interval),
        screen: Screen::new(first, online_cpus()?, colours),
        looked_at: Instant::now(),
        asked: false,
    };
    terminal::with(|terminal| top.run(terminal, &told_to_stop))?;
    Ok(ExitCode::SUCCESS)
}

fn online_cpus() -> Result<Vec<u32>> {
    let list = std::fs::read_to_string(ONLINE_CPUS).with_context(|| format!("cannot read {ONLINE_CPUS}"))?;
    let cpus = read_cpulist(list.trim()).with_context(|| format!("cannot read {ONLINE_CPUS}"))?;
    Ok(cpus.into_iter().map(|cpu| cpu as u32).collect())
}

struct Top {
    asker: Asker,
    /// The trace of switches, while it lasts.
    watch: Option<Watch>,
    interval: Duration,
    screen: Screen,
    /// When the last snapshot came.
    looked_at: Instant,
    /// The next one has been asked for.
    asked: bool,
}

impl Top {
    fn run(&mut self, terminal: &mut DefaultTerminal, told_to_stop: &AtomicBool) -> Result<()> {
        self.asker.ask(Request::Trace);
        let mut late = None;
        let mut changed = true;
        while !told_to_stop.load(Ordering::Relaxed) {
            if changed {
                terminal.draw(|frame| draw::draw(frame, &self.screen)).context("cannot draw")?;
            }
            changed = false;
            if event::poll(TICK).context("cannot read the keyboard")? {
                // A change of size is no key, but it is drawn.
                changed = true;
                if let Event::Key(key) = event::read().context("cannot read the keyboard")? {
                    match self.screen.key(key) {
                        Some(Action::Quit) => return Ok(()),
                        action => self.act(action),
                    }
                }
            }
            changed |= self.hear()?;
            self.follow_trace();
            if !self.asked && self.looked_at.elapsed() >= self.interval {
                self.asker.ask(Request::Look);
                self.asked = true;
            }
            self.screen.late_s = self.looked_at.elapsed().saturating_sub(self.interval).as_secs();
            changed |= late.replace(self.screen.late_s) != Some(self.screen.late_s);
        }
        Ok(())
    }

    /// Does what a key asks for.
    fn act(&mut self, action: Option<Action>) {
        match action {
            Some(Action::SetPolicy(name)) => {
                self.screen.message = format!("policy {name} is being put in force");
                self.asker.ask(Request::SetPolicy(name));
            }
            Some(Action::HideLanes) => {
                self.watch = None;
                self.screen.no_lanes("off (l shows them)");
            }
            Some(Action::ShowLanes) => self.asker.ask(Request::Trace),
            Some(Action::Quit) | None => {}
        }
    }

    /// Takes what the scheduler has answered. Returns whether anything has.
    fn hear(&mut self) -> Result<bool> {
        let mut heard = false;
        while let Some(answer) = self.asker.answer()? {
            heard = true;
            match answer {
                Answer::Look(snapshot) => self.look(*snapshot?),
                Answer::Policy(policy) => self.screen.message = policy_message(policy),
                Answer::Trace(held) => {
                    let opened = held.and_then(|(outlet, held)| Watch::open(&outlet, held, self.screen.now.job_by));
                    match opened {
                        Ok(watch) => self.watch = self.screen.wants_lanes.then_some(watch),
                        // It was asked for twice, before the first answer came.
                        Err(_) if self.watch.is_some() => {}
                        Err(error) => self.screen.no_lanes(&format!("{error:#}")),
                    }
                }
            }
        }
        Ok(heard)
    }

    fn look(&mut self, snapshot: Snapshot) {
        let seconds = self.looked_at.elapsed().as_secs_f64();
        (self.looked_at, self.asked) = (Instant::now(), false);
        self.screen.look(snapshot, seconds);
        match &mut self.watch {
            Some(watch) => self.screen.lanes = watch.window(seconds).map_err(|error| format!("{error:#}")),
            // Whoever traces now may have ended, or the scheduler was loaded again.
            None if self.screen.wants_lanes => self.asker.ask(Request::Trace),
            None => {}
        }
    }

    fn follow_trace(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        if let Err(error) = watch.follow() {
            self.watch = None;
            self.screen.no_lanes(&format!("{error:#}"));
        }
    }
}

fn policy_message(policy: Result<PolicyView>) -> String {
    policy.map_or_else(|error| format!("refused: {error:#}"), |policy| format!("policy {} is in force", policy.name))
}
