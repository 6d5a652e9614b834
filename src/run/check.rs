// SPDX-License-Identifier: GPL-2.0-only
//! What this kernel has and lacks, one line each, with the remedy. `run` asks the same questions before it
//! loads anything and ends at the first that is answered with "missing".

use std::fmt;
use std::fs;
use std::io::Write;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use crate::bpf::BpfSkelBuilder;
use crate::bpf::hooks::{self, Hook};
use crate::node::core_scheduling;
use crate::node::cpu_max::{self, Unkept};
use crate::node::host::Host;
use crate::node::logging;
use crate::settings::{DEFAULT_CONTROL_SOCKET, limits};
use cosched_rules::intf;

/// `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Where the running scheduler would be talked to. [default: /run/scx_cosched.sock]
    #[arg(long, value_name = "PATH", value_parser = limits::socket)]
    pub control_socket: Option<PathBuf>,
}

/// How a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Ok,
    /// The scheduler runs, but something does not work.
    Warning,
    /// The scheduler cannot run.
    Missing,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How it was answered.
    pub level: Level,
    /// What was asked about.
    pub thing: String,
    /// What was found.
    pub detail: String,
    /// What to do about it; empty if it is as it should be.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Missing => "missing",
        };
        write!(f, "{level:<8} {}: {}", self.thing, self.detail)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

fn found(thing: impl Into<String>, level: Level, detail: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { level, thing: thing.into(), detail: detail.into(), remedy: remedy.into() }
}

fn ok(thing: impl Into<String>, detail: impl Into<String>) -> Finding {
    found(thing, Level::Ok, detail, "")
}

impl Host {
    fn btf(&self) -> Finding {
        match self.types() {
            Some(_) => ok("BTF", "/sys/kernel/btf/vmlinux"),
            None => found(
                "BTF",
                Level::Missing,
                "the kernel does not describe its types in /sys/kernel/btf/vmlinux",
                "use a kernel with CONFIG_DEBUG_INFO_BTF=y and mount /sys",
            ),
        }
    }

    fn sched_ext(&self) -> Finding {
        let known = self.types().is_some_and(|btf| btf.type_by_name::<Struct<'_>>("sched_ext_ops").is_some());
        if known && self.sysroot.join("sys/kernel/sched_ext").is_dir() {
            return ok("sched_ext", format!("kernel {}", self.kernel()));
        }
        found(
            "sched_ext",
            Level::Missing,
            format!("kernel {} cannot load schedulers", self.kernel()),
            "use Linux 6.16 or newer with CONFIG_SCHED_CLASS_EXT=y",
        )
    }

    /// For `run`: only one scheduler can be loaded, be it another one or this one.
    pub fn no_scheduler(&self) -> Finding {
        let state = self.read("sys/kernel/sched_ext/state").unwrap_or_else(|| "disabled".into());
        if state == "disabled" {
            return ok("other scheduler", "none is loaded");
        }
        let name = self.read("sys/kernel/sched_ext/root/ops").unwrap_or_else(|| "unknown".into());
        found(
            "other scheduler",
            Level::Missing,
            format!("the sched_ext scheduler '{name}' is loaded ({state})"),
            "only one can be: stop that one first",
        )
    }

    /// For `check`, which may be run while this one is.
    fn other_scheduler(&self) -> Finding {
        match self.read("sys/kernel/sched_ext/root/ops").filter(|name| name.starts_with("cosched")) {
            Some(name) => ok("other scheduler", format!("none is loaded but this one, '{name}'")),
            None => self.no_scheduler(),
        }
    }

    fn kernel_config(&self) -> Finding {
        let boot = format!("boot/config-{}", self.kernel());
        match [boot.as_str(), "proc/config.gz"].into_iter().find(|p| fs::File::open(self.sysroot.join(p)).is_ok()) {
            Some(path) => ok("kernel configuration", format!("/{path}")),
            None => found(
                "kernel configuration",
                Level::Missing,
                format!("neither /{boot} nor /proc/config.gz can be read, and with it the tick rate"),
                "install the kernel's config file there, or load the module 'configs'",
            ),
        }
    }

    fn tracer(&self) -> Finding {
        if self.sysroot.join("proc/sys/kernel/ftrace_enabled").exists() {
            return ok("function tracer", "present");
        }
        found(
            "function tracer",
            Level::Missing,
            "kernel functions cannot be observed",
            "use a kernel with CONFIG_FUNCTION_TRACER=y",
        )
    }

    fn cpus(&self) -> Finding {
        let possible = self.read("sys/devices/system/cpu/possible").unwrap_or_default();
        let last = possible.rsplit([',', '-']).next().and_then(|n| n.parse::<u32>().ok());
        match last.map(|n| n + 1) {
            Some(n) if n > intf::COSCHED_MAX_CPUS => found(
                "CPUs",
                Level::Missing,
                format!("{n} are possible"),
                format!(
                    "at most {} are supported: boot with possible_cpus={}",
                    intf::COSCHED_MAX_CPUS,
                    intf::COSCHED_MAX_CPUS
                ),
            ),
            Some(n) => ok("CPUs", format!("{n} of at most {}", intf::COSCHED_MAX_CPUS)),
            None => found("CPUs", Level::Missing, "/sys/devices/system/cpu/possible cannot be read", "mount /sys"),
        }
    }

    /// Everything that the kernel must have, cheapest questions first.
    pub fn requirements(&self) -> impl Iterator<Item = Finding> + '_ {
        let questions: [fn(&Host) -> Finding; 5] =
            [Host::btf, Host::sched_ext, Host::kernel_config, Host::tracer, Host::cpus];
        questions.into_iter().map(move |ask| ask(self))
    }

    fn cgroups(&self) -> Finding {
        match self.cgroup_root() {
            Some(path) => ok("cgroup v2", path.display().to_string()),
            None => found(
                "cgroup v2",
                Level::Warning,
                "not mounted, so jobs by cgroup are shown by number",
                "mount -t cgroup2 none /sys/fs/cgroup, or use --job-by session or process",
            ),
        }
    }

    fn timers(&self) -> Finding {
        match self.has_timers() {
            true => ok("timers", "yes"),
            false => found(
                "timers",
                Level::Warning,
                "PREEMPT_RT keeps BPF from setting any, so slices, turns and waits end at a timer tick",
                "use a kernel without PREEMPT_RT",
            ),
        }
    }

    fn limits(&self) -> Vec<Finding> {
        let Some(remedy) = cpu_max::remedy(self) else { return vec![ok("cpu.max", "kept")] };
        let warning = |line: &String| found("cpu.max", Level::Warning, line.as_str(), remedy);
        let unkept: Vec<_> = Unkept::of(self).lines().iter().map(warning).collect();
        match unkept.is_empty() {
            true => vec![ok("cpu.max", "not kept by this kernel, but no cgroup has one")],
            false => unkept,
        }
    }

    /// Tasks with a cookie of core scheduling, as `cookie_of` tells.
    fn cookies(&self, cookie_of: impl Fn(u32) -> Option<u64>) -> Finding {
        let thing = "core scheduling";
        if self.read("sys/devices/system/cpu/smt/active").is_none_or(|active| active != "1") {
            return ok(thing, "no hyperthreads, so its cookies have no effect");
        }
        match core_scheduling::tagged(&self.sysroot.join("proc"), cookie_of) {
            None => ok(thing, "no task has a cookie"),
            Some((count, first)) => found(
                thing,
                Level::Warning,
                format!("threads with a cookie: {count}, the first is {first}; with one the machine can hang"),
                core_scheduling::REMEDY,
            ),
        }
    }

    fn hook(&self, hook: &Hook) -> Finding {
        let thing = format!("hook {}", hook.name);
        if self.types().is_some_and(|btf| hook.is_possible(btf)) {
            return ok(thing, format!("kernel function {}", hook.function));
        }
        let detail = format!("no kernel function {}", hook.function);
        found(thing, Level::Warning, detail, format!("without it {}", hook.consequence()))
    }
}

/// Whether this process may load a scheduler.
pub fn root(euid: u32) -> Finding {
    match euid {
        0 => ok("root", "yes"),
        _ => found("root", Level::Missing, format!("the effective user is {euid}"), "run it as root, e.g. with sudo"),
    }
}

fn socket_dir(socket: &Path) -> Finding {
    let dir = socket.parent().unwrap_or(Path::new("/"));
    match nix::unistd::access(dir, nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK) {
        Ok(()) => ok("control socket", socket.display().to_string()),
        Err(error) => found(
            "control socket",
            Level::Missing,
            format!("{} is not a directory that can be written: {}", dir.display(), error.desc()),
            "create it, or choose another --control-socket",
        ),
    }
}

/// Fails if `finding` says that the scheduler cannot run.
///
/// # Errors
/// The finding, as one line.
pub fn require(finding: Finding) -> Result<()> {
    match finding.level {
        Level::Missing => Err(anyhow!("{}: {} ({})", finding.thing, finding.detail, finding.remedy)),
        _ => Ok(()),
    }
}

/// The hooks that the BPF object has, whatever this kernel makes of them.
fn hooks_of_the_object() -> Result<Vec<Hook>> {
    let mut object = MaybeUninit::uninit();
    let skel = BpfSkelBuilder::default().open(&mut object)?;
    Ok(hooks::of_object(skel.open_object()))
}

/// `check`: prints every finding. Exit code 1 if the scheduler cannot run.
///
/// # Errors
/// If the findings cannot be printed.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    logging::init(false);
    let host = Host::new(Path::new("/"));
    let socket = args.control_socket.as_deref().unwrap_or(Path::new(DEFAULT_CONTROL_SOCKET));

    let mut findings = vec![root(nix::unistd::geteuid().as_raw())];
    findings.extend(host.requirements());
    findings.push(host.other_scheduler());
    findings.push(socket_dir(socket));
    findings.push(host.cgroups());
    findings.push(host.timers());
    findings.extend(host.limits());
    findings.push(host.cookies(core_scheduling::cookie_of));
    findings.extend(hooks_of_the_object()?.iter().map(|hook| host.hook(hook)));

    let mut out = std::io::stdout().lock();
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    let missing = findings.iter().any(|f| f.level == Level::Missing);
    Ok(if missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
