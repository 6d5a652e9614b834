// SPDX-License-Identifier: GPL-2.0-only
//! What the service manager is told: that the scheduler runs, that it still answers, and that it ends. Without a
//! service manager nobody is told anything.

use std::time::{Duration, Instant};

use log::debug;
use sd_notify::NotifyState;

/// The scheduler runs, under this policy.
pub fn ready(policy: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(&format!("policy {policy}"))]);
}

/// Another policy is in force.
pub fn policy(policy: &str) {
    tell(&[NotifyState::Status(&format!("policy {policy}"))]);
}

/// The scheduler is being unloaded.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    sd_notify::notify(states).unwrap_or_else(|error| debug!("the service manager is not told: {error}"));
}

/// Tells the service manager that the thread which owns the scheduler still works. If it does not, the process is ended
/// and started anew, and the kernel's own scheduler has the machine meanwhile.
#[derive(Debug)]
pub struct Watchdog {
    /// Between two calls; none if nobody listens.
    interval: Option<Duration>,
    called: Option<Instant>,
}

impl Watchdog {
    /// As the environment says.
    pub fn from_environment() -> Watchdog {
        // At a third of the time, one call may be late.
        Watchdog { interval: sd_notify::watchdog_enabled().map(|patience| patience / 3), called: None }
    }

    /// To be called often.
    pub fn alive(&mut self) {
        let Some(interval) = self.interval else { return };
        if self.called.is_none_or(|called| called.elapsed() >= interval) {
            self.called = Some(Instant::now());
            tell(&[NotifyState::Watchdog]);
        }
    }
}
