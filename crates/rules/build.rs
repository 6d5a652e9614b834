// SPDX-License-Identifier: GPL-2.0-only
//! Builds the rules of policies/ as native code, with bindings, and the shapes that the C side and Rust share.

fn main() {
    scx_cargo::BpfBuilder::new()
        .expect("BPF needs clang 19 or newer: install it and set BPF_CLANG, e.g. BPF_CLANG=clang-19")
        // Kernel types use anonymous struct members of named types since 7.0, and so does vmlinux.h.
        .add_cflag("-fms-extensions")
        .add_cflag("-Wno-microsoft-anon-tag")
        // The rules as they are in native code.
        .add_cflag("-U__bpf__")
        .enable_intf("../../policies/native.h", "bpf_intf.rs")
        .build()
        .unwrap_or_else(|e| panic!("there are no bindings of policies/native.h: {e:?}"));

    cc::Build::new()
        .file("../../policies/native.c")
        .warnings_into_errors(true)
        .extra_warnings(true)
        .compile("cosched_policies");

    // What native.h includes, and no more of bpf/: all crates are built anew after this one.
    for path in ["../../policies", "../../bpf/intf.h", "../../bpf/counters.h", "../../hints/hint.h"] {
        println!("cargo:rerun-if-changed={path}");
    }
}
