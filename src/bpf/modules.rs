// SPDX-License-Identifier: GPL-2.0-only
//! Hooks on functions of kernel modules: those of RDMA (`bpf/rdma.bpf.h`).
//!
//! A module may be loaded long after the scheduler. A program that observes one of its functions is bound to it when
//! the program is loaded, not when it is attached. From then on the module cannot be unloaded. So these hooks are
//! loaded while some process has an RDMA device open. They come from a second copy of the scheduler's object. It leaves
//! out everything but these hooks, and shares all maps with the first. When the last device is closed they go, and the
//! modules may. To unload a module that is in use fails as it does without them, with one exception. `rdma_rxe` could
//! be taken from under the programs that use it, and now that takes closing them first.
//!
//! While the hooks were away they noted nothing. They find what they missed in the kernel's own structures.
//!
//! The verifier takes seconds for them on a slow machine. So a thread of their own loads them, and the one that owns
//! the scheduler goes on to answer.

use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys::{BTF_KIND_FUNC, btf, btf__find_by_name_kind, btf__free, btf__load_module_btf};
use libbpf_rs::{AsRawLibbpf, Btf, Link, MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenMapMut, OpenObject};
use log::{info, warn};

use crate::bpf;
use crate::bpf::hooks::{Hook, HookStates};
use cosched_rules::report::one_line;

/// Every program that uses RDMA in user space uses this module.
const GATE: &str = "ib_uverbs";
/// How often to see whether any program does.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);
/// The kernel takes a while to forget a program, and the reference to its module, after it has been let go.
const LEAVING: Duration = Duration::from_secs(5);

/// Hooks in modules that come and go.
#[derive(Default)]
pub struct ModuleHooks {
    /// What is being loaded.
    loading: Option<Loading>,
    /// What was loaded at the last change, for as long as the modules are used.
    loaded: Option<Loaded>,
    states: HookStates,
    looked_at: Option<Instant>,
    /// How many references were let go last, and when.
    leaving: Option<(usize, Instant)>,
}

struct Loading {
    /// The modules that were there when it began.
    modules: BTreeSet<String>,
    /// The names of the hooks.
    wanted: BTreeSet<String>,
    thread: JoinHandle<Result<Object>>,
}

struct Loaded {
    /// The modules that were there when it began to be loaded.
    modules: BTreeSet<String>,
    links: Vec<Link>,
    /// None if it did not load, which has been warned of.
    object: Option<Object>,
}

impl Loaded {
    /// How many references these hooks hold on the module that every user of RDMA uses: one for each program.
    fn references(&self) -> usize {
        let programs = self.object.iter().flat_map(Object::progs).filter(|program| program.autoload());
        let hooks = programs.filter_map(|program| Hook::of_program(program.name(), program.section()));
        hooks.filter(|hook| hook.module.as_deref() == Some(GATE)).count()
    }
}

impl ModuleHooks {
    /// Has the hooks loaded if they are `wanted` and the modules are used, and lets go of the modules if not. `main` is
    /// the scheduler, loaded. Attaches what has been loaded.
    pub fn follow(&mut self, main: &Object, wanted: bool) {
        if let Some(loading) = self.loading.take_if(|loading| loading.thread.is_finished()) {
            self.attach(loading);
        }
        if self.is_loading() || self.looked_at.is_some_and(|at| at.elapsed() < FOLLOW_INTERVAL) {
            return;
        }
        let begins = self.looked_at.replace(Instant::now()).is_none();
        let modules = if wanted && self.is_used() { present(main) } else { BTreeSet::new() };
        let before = self.loaded.as_ref().map(|loaded| &loaded.modules);
        if before == Some(&modules) || (before.is_none() && modules.is_empty() && !begins) {
            return;
        }
        self.let_go();
        self.states = HookStates { idle: hooks(main).map(|hook| hook.name).collect(), ..HookStates::default() };
        if !modules.is_empty() {
            self.begin_to_load(main, modules);
        }
    }

    /// Are hooks on their way? They need [`Self::follow`] to be attached.
    pub fn is_loading(&self) -> bool {
        self.loading.is_some()
    }

    /// Detaches them all, so that the modules may be unloaded. Those that are being loaded are let go of when they are.
    pub fn let_go(&mut self) {
        drop(self.loading.take());
        let Some(loaded) = self.loaded.take() else { return };
        self.leaving = Some((loaded.references(), Instant::now()));
        if !loaded.links.is_empty() {
            info!("{} hooks on RDMA are detached", loaded.links.len());
        }
    }

    /// Which observe, and which do not. Those that are being loaded are idle.
    pub fn states(&self) -> HookStates {
        let mut states = self.states.clone();
        states.idle.extend(self.loading.iter().flat_map(|loading| loading.wanted.iter().cloned()));
        states
    }

    /// Does any process have a device open? Other modules' references do not count, nor do those of our programs.
    fn is_used(&self) -> bool {
        let leaving =
            self.leaving.filter(|(_, since)| since.elapsed() < LEAVING).map_or(0, |(references, _)| references);
        let own = self.loaded.as_ref().map_or(0, Loaded::references) + leaving;
        is_module(GATE) && references(GATE).is_none_or(|references| references > own)
    }

    fn begin_to_load(&mut self, main: &Object, modules: BTreeSet<String>) {
        self.states = HookStates::default();
        let vmlinux = Btf::from_vmlinux().ok();
        let mut wanted = BTreeSet::new();
        for hook in hooks(main) {
            let module = hook.module.clone().filter(|module| modules.contains(module));
            match module {
                None => self.states.idle.push(hook.name),
                Some(module) if has_function(vmlinux.as_ref(), &module, &hook.function) => {
                    wanted.insert(hook.name);
                }
                Some(_) => self.states.miss(hook, "it is not there"),
            }
        }
        let names = wanted.clone();
        let begun = Shared::of(main).and_then(|shared| {
            let load = thread::Builder::new().name("modules".into());
            load.spawn(move || shared.load(&names)).context("cannot start a thread")
        });
        match begun {
            Ok(thread) => self.loading = Some(Loading { modules, wanted, thread }),
            Err(error) => self.fail(modules, wanted, &error),
        }
    }

    fn attach(&mut self, loading: Loading) {
        let Loading { modules, wanted, thread } = loading;
        let object = match thread.join().expect("it does not panic") {
            Ok(object) => object,
            Err(error) => return self.fail(modules, wanted, &error),
        };
        let mut links = Vec::new();
        for program in object.progs_mut().filter(|program| program.autoload()) {
            let Some(hook) = Hook::of_program(program.name(), program.section()) else { continue };
            links.extend(self.states.attach(&program, hook));
        }
        if !links.is_empty() {
            info!("{} hooks on RDMA are attached", links.len());
        }
        self.loaded = Some(Loaded { modules, links, object: Some(object) });
    }

    /// Warns that the `wanted` hooks do not load, which is not tried again as long as the modules stay.
    fn fail(&mut self, modules: BTreeSet<String>, wanted: BTreeSet<String>, error: &anyhow::Error) {
        let why = one_line(&format!("{error:#}"));
        warn!("the hooks on RDMA do not load, so its messages are not seen: {why}");
        self.states.missing.extend(wanted);
        self.loaded = Some(Loaded { modules, links: Vec::new(), object: None });
    }
}

/// The hooks in modules that an object has.
fn hooks(object: &Object) -> impl Iterator<Item = Hook> {
    let all = object.progs().filter_map(|program| Hook::of_program(program.name(), program.section()));
    all.filter(|hook| hook.module.is_some())
}

/// The modules that hooks are in and that are loaded.
fn present(main: &Object) -> BTreeSet<String> {
    hooks(main).filter_map(|hook| hook.module).filter(|module| is_module(module)).collect()
}

fn directory(module: &str) -> PathBuf {
    Path::new("/sys/module").join(module)
}

/// Is it loaded, and neither about to come nor to go? What is built into the kernel is no module.
fn is_module(name: &str) -> bool {
    fs::read_to_string(directory(name).join("initstate")).is_ok_and(|state| state.trim_end() == "live")
}

/// How often a module is used by anything but other modules; none if the kernel does not say.
fn references(module: &str) -> Option<usize> {
    let all: usize = fs::read_to_string(directory(module).join("refcnt")).ok()?.trim_end().parse().ok()?;
    Some(all.saturating_sub(fs::read_dir(directory(module).join("holders")).ok()?.count()))
}

/// Types of a module.
struct ModuleBtf(NonNull<btf>);

impl Drop for ModuleBtf {
    fn drop(&mut self) {
        // SAFETY: it was loaded, and nothing else has it.
        unsafe { btf__free(self.0.as_ptr()) }
    }
}

/// Whether `module` has the function, as far as its types tell. These build on the types of `vmlinux`.
fn has_function(vmlinux: Option<&Btf<'_>>, module: &str, function: &str) -> bool {
    let (Some(vmlinux), Ok(module), Ok(function)) = (vmlinux, CString::new(module), CString::new(function)) else {
        return false;
    };
    // SAFETY: the pointers are valid for the call. What it returns refers to `vmlinux`, which outlives it here.
    let types = unsafe { btf__load_module_btf(module.as_ptr(), vmlinux.as_libbpf_object().as_ptr()) };
    let Some(types) = NonNull::new(types).map(ModuleBtf) else { return false };
    // SAFETY: both pointers are valid for the call, and the call only reads.
    unsafe { btf__find_by_name_kind(types.0.as_ptr(), function.as_ptr(), BTF_KIND_FUNC) > 0 }
}

/// What a copy of the object shares with the first.
struct Shared {
    /// The object's name, which is a part of the names of its maps.
    name: String,
    maps: Vec<(OsString, MapHandle)>,
}

impl Shared {
    fn of(main: &Object) -> Result<Shared> {
        let name = main.name().and_then(|name| name.to_str()).context("the object has no name")?.to_owned();
        let maps = main.maps().filter(|map| map.map_type() != MapType::StructOps);
        let maps = maps.map(|map| Ok((map.name().to_owned(), MapHandle::try_from(&map)?)));
        Ok(Shared { name, maps: maps.collect::<Result<_>>()? })
    }

    /// Loads the hooks with these names from a copy of the object.
    fn load(&self, names: &BTreeSet<String>) -> Result<Object> {
        let mut copy: OpenObject = ObjectBuilder::default().name(&self.name)?.open_memory(bpf::OBJECT)?;
        for mut program in copy.progs_mut() {
            let wanted = program.name().to_str().is_some_and(|name| names.contains(name));
            program.set_autoload(wanted);
        }
        for mut map in copy.maps_mut() {
            match self.maps.iter().find(|(name, _)| name == map.name()) {
                Some((name, shared)) => share(&mut map, shared).with_context(|| format!("cannot share {name:?}"))?,
                None => map.set_autocreate(false)?,
            }
        }
        Ok(copy.load()?)
    }
}

/// Has the copy use the map `shared`.
///
/// libbpf keeps memory for what a map of variables holds, of the size that the object says. It takes over the size of
/// the map that is shared, but not its memory. Then it frees as much as that map has, and so also what lies behind. So
/// the sizes are made equal before.
fn share(map: &mut OpenMapMut<'_>, shared: &MapHandle) -> libbpf_rs::Result<()> {
    if map.value_size() != shared.value_size() {
        map.set_value_size(shared.value_size())?;
    }
    map.reuse_fd(shared.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_or_not_there_is_no_module() {
        assert!(!is_module("kernel") && !is_module("no_such_module"));
        assert_eq!(references("no_such_module"), None);
    }

    #[test]
    fn a_module_that_is_not_there_has_no_function() {
        let vmlinux = Btf::from_vmlinux().expect("this kernel has BTF");
        assert!(!has_function(Some(&vmlinux), "no_such_module", "sock_def_readable"));
    }
}
