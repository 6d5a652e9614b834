// SPDX-License-Identifier: GPL-2.0-only
//! Hooks: the tracing programs that tell the scheduler what has arrived and which task receives where.
//!
//! Each observes one kernel function, and kernels differ in which functions they have. A hook that cannot
//! attach is therefore a warning with its consequence, never a reason not to run.

use std::ffi::{CString, OsStr};
use std::io::{self, Read};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys::{BTF_KIND_FUNC, btf__find_by_name_kind};
use libbpf_rs::{AsRawLibbpf, Btf, Iter, IterOpts, Link, Object, OpenObject, ProgramMut};
use log::warn;
use serde::{Deserialize, Serialize};

use cosched_rules::report::one_line;

/// The hook that observes only if `--arrivals` asks for it: it is called at every wake-up on the machine.
const ON_REQUEST: &str = "on_waking";

/// Programs whose name starts like this are hooks; others belong to the scx library.
const PREFIX: &str = "on_";

/// The program that notes which task has which sockets open. It is no hook, but run once the hooks are attached.
const FIND_RECEIVERS: &str = "find_receivers";

/// The pause between two hooks. To attach or detach one, the kernel patches its text on all CPUs; without a pause these
/// halts add up.
const PAUSE: Duration = Duration::from_millis(20);
/// For so long hooks stay after the last policy that wanted them. Whoever tries policies comes back soon, and to attach
/// hooks takes seconds on a busy machine.
const STAY: Duration = Duration::from_secs(10);

/// A tracing program and the kernel function that it observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The program's name, `on_<event>`.
    pub name: String,
    /// The kernel function's name.
    pub function: String,
    /// The kernel module that the function is in, if it is in one: see [`crate::bpf::modules`].
    pub module: Option<String>,
}

/// The hooks of a loaded object. They observe while they are awake, and cost nothing while they rest.
#[derive(Default)]
pub struct Hooks {
    /// Of the hooks that are attached, in the order of their names in `states`.
    links: Vec<Link>,
    states: HookStates,
    /// Since when they are not wanted.
    unwanted: Option<Instant>,
}

/// Which hooks are attached, and which are not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HookStates {
    /// Names of the hooks that observe.
    pub attached: Vec<String>,
    /// Names of the hooks that would, but need not: the policy wants to see neither messages nor waits.
    pub resting: Vec<String>,
    /// Names of the hooks in kernel modules that are not used, or that are not loaded.
    #[serde(default)]
    pub idle: Vec<String>,
    /// Names of the hooks that do not observe: see the warnings.
    pub missing: Vec<String>,
}

impl HookStates {
    /// Adds the hooks of another object.
    pub fn extend(&mut self, other: HookStates) {
        self.attached.extend(other.attached);
        self.resting.extend(other.resting);
        self.idle.extend(other.idle);
        self.missing.extend(other.missing);
    }

    /// Attaches `program`, which is `hook`. If that fails, it is missing.
    pub fn attach(&mut self, program: &ProgramMut<'_>, hook: Hook) -> Option<Link> {
        match program.attach() {
            Ok(link) => {
                self.attached.push(hook.name);
                sleep(PAUSE);
                Some(link)
            }
            Err(error) => {
                self.miss(hook, &one_line(&format!("{error:#}")));
                None
            }
        }
    }

    /// `hook` does not attach, for this reason: warns of it.
    pub fn miss(&mut self, hook: Hook, why: &str) {
        let Hook { name, function, module } = &hook;
        let place = match module {
            None => format!("kernel function {function}"),
            Some(_) => format!("function {function} of a module"),
        };
        warn!("hook {name} ({place}) does not attach: {why}: {}", hook.consequence());
        self.missing.push(hook.name);
    }
}

impl Hook {
    /// The hook that a program of this name and ELF section is, if it is one.
    pub fn of_program(name: &OsStr, section: &OsStr) -> Option<Hook> {
        let (name, section) = (name.to_str()?, section.to_str()?);
        if let Some(tracepoint) = section.strip_prefix("tp_btf/") {
            let function = format!("__traceiter_{tracepoint}");
            return name.starts_with(PREFIX).then(|| Hook { name: name.into(), function, module: None });
        }
        let target = section.strip_prefix("fentry/").or_else(|| section.strip_prefix("fexit/"))?;
        let (module, function) = target.split_once(':').map_or((None, target), |(module, f)| (Some(module.into()), f));
        name.starts_with(PREFIX).then(|| Hook { name: name.into(), function: function.into(), module })
    }

    /// Whether the kernel that `btf` describes has the function.
    pub fn is_possible(&self, btf: &Btf<'_>) -> bool {
        let Ok(function) = CString::new(self.function.as_str()) else { return false };
        // SAFETY: both pointers are valid for the call, and the call only reads.
        unsafe { btf__find_by_name_kind(btf.as_libbpf_object().as_ptr(), function.as_ptr(), BTF_KIND_FUNC) > 0 }
    }

    /// What does not work without it.
    pub fn consequence(&self) -> &'static str {
        match self.name.as_str() {
            "on_readable" => "arrivals are not seen, so nothing is boosted",
            "on_rxe_completion" => "arrivals at queues of soft RoCE are seen only if the program waits for an event",
            "on_rxe_send" => "the thread that made an RDMA queue counts as its receiver",
            "on_uverbs_completion" => "events of RDMA queues are not seen",
            "on_uverbs_read" | "on_uverbs_poll" => "who waits for events of RDMA queues is not known",
            "on_waking" => "what tasks of a job tell each other by waking is not taken for messages",
            "on_cq_end" | "on_channel_end" => "RDMA queues are forgotten late",
            "on_tcp_backlog" => "arrivals for a TCP receiver that was preempted inside receive are seen late",
            name if name.ends_with("_wait") => {
                "whoever sleeps in this receive does not spin before, and is known only if it made the socket"
            }
            "on_poll" | "on_epoll" | "on_epoll_wake" | "on_uring_poll" | "on_uring_receive" => {
                "a task that waits for sockets in this way is not known as their receiver"
            }
            name if name.ends_with("_accept") || name == "on_socket" => {
                "such a socket has no receiver until somebody receives there"
            }
            _ => "what it observes is not taken into account",
        }
    }
}

/// The hook that a program is, unless it is in a module.
fn in_kernel(name: &OsStr, section: &OsStr) -> Option<Hook> {
    Hook::of_program(name, section).filter(|hook| hook.module.is_none())
}

/// All hooks of an object that has been opened, but not loaded, that are not in modules.
pub fn of_object(object: &OpenObject) -> Vec<Hook> {
    object.progs().filter_map(|p| in_kernel(p.name(), p.section())).collect()
}

/// Before the load: keeps out each hook that this kernel cannot have, and those in modules. Without `arrivals` it keeps
/// out the hook on wake-ups, and unless `wanted` all hooks. The rest is loaded, but attached by hand, since the
/// skeleton would give up at the first failure.
pub fn prepare(object: &mut OpenObject, btf: &Btf<'_>, wanted: bool, arrivals: bool, quiet: bool) {
    for mut program in object.progs_mut() {
        if program.name() == FIND_RECEIVERS {
            program.set_autoattach(false);
            program.set_autoload(wanted);
        }
        let Some(hook) = Hook::of_program(program.name(), program.section()) else { continue };
        let in_module = hook.module.is_some();
        let asked_for = arrivals || hook.name != ON_REQUEST;
        let possible = !in_module && hook.is_possible(btf);
        program.set_autoattach(false);
        program.set_autoload(possible && wanted && asked_for);
        if !possible && !in_module && asked_for && !quiet {
            let Hook { name, function, .. } = &hook;
            warn!("hook {name} (kernel function {function}) is not in this kernel: {}", hook.consequence());
        }
    }
}

impl Hooks {
    /// The hooks of `object`, at rest. That on wake-ups is one of them if it is wanted for `arrivals`.
    pub fn of(object: &Object, arrivals: bool) -> Hooks {
        let mut states = HookStates::default();
        for program in object.progs() {
            let Some(hook) = in_kernel(program.name(), program.section()) else { continue };
            if hook.name == ON_REQUEST && !arrivals {
                continue;
            }
            let list = if program.autoload() { &mut states.resting } else { &mut states.missing };
            list.push(hook.name);
        }
        Hooks { states, ..Hooks::default() }
    }

    /// Which observe, and which do not.
    pub fn states(&self) -> &HookStates {
        &self.states
    }

    /// Whether any observes.
    pub fn are_awake(&self) -> bool {
        !self.links.is_empty()
    }

    /// Attaches one of the hooks that rest. After the last it makes the hooks know of the sockets that were made
    /// meanwhile. Returns whether there was one. All of them take seconds on a busy machine, so the caller has other
    /// work in between.
    pub fn wake_one(&mut self, object: &Object) -> bool {
        self.unwanted = None;
        let found = object.progs_mut().find_map(|program| {
            let hook = in_kernel(program.name(), program.section())?;
            self.states.resting.contains(&hook.name).then_some((program, hook))
        });
        let Some((program, hook)) = found else { return false };
        self.states.resting.retain(|name| *name != hook.name);
        self.links.extend(self.states.attach(&program, hook));
        if self.states.resting.is_empty() {
            self.tell_receivers(object);
        }
        true
    }

    fn tell_receivers(&self, object: &Object) {
        if let Err(error) = find_receivers(object) {
            warn!(
                "who reads the sockets that were there first is not known, and is found out more slowly: {}",
                one_line(&format!("{error:#}"))
            );
        }
    }

    /// To be called often. Lets one more hook rest if they have not been `wanted` for a while. It does not do so to all
    /// at once, since detaching takes as long as attaching does.
    pub fn follow(&mut self, wanted: bool) {
        if wanted {
            self.unwanted = None;
        } else if self.unwanted.get_or_insert_with(Instant::now).elapsed() >= STAY {
            self.rest_one();
        }
    }

    /// Detaches them all.
    pub fn rest(&mut self) {
        while self.rest_one() {}
    }

    /// Detaches the last that was attached, if any is.
    fn rest_one(&mut self) -> bool {
        let Some(link) = self.links.pop() else { return false };
        drop(link);
        sleep(PAUSE);
        self.states.resting.extend(self.states.attached.pop());
        true
    }
}

/// Tells the hooks which task has which sockets open (`bpf/sockets.bpf.h`).
fn find_receivers(object: &Object) -> Result<()> {
    let programs = || object.progs_mut().filter(|program| program.name() == FIND_RECEIVERS);
    let program = programs().next().context("the object has no program for it")?;
    let link = program.attach_iter_with_opts(IterOpts::None)?;
    // It writes nothing: it is run by reading to the end.
    io::copy(&mut Iter::new(&link)?.by_ref(), &mut io::sink())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(name: &str, section: &str) -> Option<Hook> {
        Hook::of_program(OsStr::new(name), OsStr::new(section))
    }

    #[test]
    fn only_tracing_programs_with_the_prefix_are_hooks() {
        let wanted = Hook { name: "on_readable".into(), function: "sock_def_readable".into(), module: None };
        assert_eq!(hook("on_readable", "fentry/sock_def_readable"), Some(wanted));
        let wanted = Hook { name: "on_end".into(), function: "end_it".into(), module: Some("a_module".into()) };
        assert_eq!(hook("on_end", "fexit/a_module:end_it"), Some(wanted));
        let wanted = Hook { name: "on_waking".into(), function: "__traceiter_sched_waking".into(), module: None };
        assert_eq!(hook("on_waking", "tp_btf/sched_waking"), Some(wanted));
        assert_eq!(hook("scx_lib_init_probe", "fentry/bpf_scx_reg"), None);
        assert_eq!(hook("on_readable", "struct_ops/on_readable"), None);
    }

    #[test]
    fn a_function_that_the_kernel_lacks_is_noticed() {
        let btf = Btf::from_vmlinux().expect("this kernel has BTF");
        assert!(hook("on_readable", "fentry/sock_def_readable").unwrap().is_possible(&btf));
        assert!(hook("on_waking", "tp_btf/sched_waking").unwrap().is_possible(&btf));
        assert!(!hook("on_nothing", "fentry/no_such_function").unwrap().is_possible(&btf));
        // A struct of that name is not a function.
        assert!(!hook("on_struct", "fentry/task_struct").unwrap().is_possible(&btf));
    }
}
