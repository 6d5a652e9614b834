// SPDX-License-Identifier: GPL-2.0-only
//! Builds the C side: the BPF scheduler with its skeleton, and the BPF object that runs the rules of policies/ for the
//! differential test.

fn main() {
    skeleton("bpf/main.bpf.c", "bpf");
    // Of this one only the object is used: aya loads it.
    skeleton("bpf/wire.bpf.c", "wire");
    skeleton("tests/policy_rows.bpf.c", "policy_rows");

    // libcosched, for programs in Rust (src/hints/client.rs); as a library of its own it is built by the Makefile.
    cc::Build::new().file("hints/cosched.c").warnings_into_errors(true).extra_warnings(true).compile("cosched_hints");

    // Headers reach these builds from both directories, which the builders do not all notice.
    for dir in ["policies", "bpf", "hints"] {
        println!("cargo:rerun-if-changed={dir}");
    }
}

/// Builds `source` into `OUT_DIR/<name>_skel.rs`.
fn skeleton(source: &str, name: &str) {
    scx_cargo::BpfBuilder::new()
        .expect("BPF needs clang 19 or newer: install it and set BPF_CLANG, e.g. BPF_CLANG=clang-19")
        // Kernel types use anonymous struct members of named types since 7.0, and so does vmlinux.h.
        .add_cflag("-fms-extensions")
        .add_cflag("-Wno-microsoft-anon-tag")
        .enable_skel(source, name)
        .build()
        .unwrap_or_else(|e| panic!("{source} does not build: {e:?}"));
}
