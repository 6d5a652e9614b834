// SPDX-License-Identifier: GPL-2.0-only
//! Claim: each header of bpf/ includes what it uses, so that it compiles alone and no order of includes matters.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::docs::{files_below, read};

/// clang and the flags with which build.rs compiles for BPF. scx_cargo notes them in what the build script says.
fn compiler() -> (String, Vec<String>) {
    let said = read(Path::new(env!("OUT_DIR")).join("../output"));
    let line = said.lines().find_map(|line| line.strip_prefix("scx_utils:clang=")).expect("scx_cargo says its flags");
    let clang = line.split('"').nth(1).expect("the name of clang").to_string();
    let flags = &line[line.find('[').expect("a list of flags")..];
    let mut flags: Vec<String> = serde_json::from_str(flags).expect("a list that is JSON too");
    // As in build.rs; and a header has functions that only others use.
    flags.extend(["-fms-extensions", "-Wno-microsoft-anon-tag", "-Wno-unused-function"].map(String::from));
    (clang, flags)
}

/// Writes the headers of libbpf below `dir`, as the build does.
fn write_libbpf_headers(dir: &Path) {
    fs::create_dir(dir.join("bpf")).unwrap();
    for (name, text) in libbpf_rs::libbpf_sys::API_HEADERS {
        fs::write(dir.join("bpf").join(name), text).unwrap();
    }
}

/// What clang says against `header` as a file of its own.
fn complaints(header: &Path, libbpf: &Path) -> String {
    let (clang, flags) = compiler();
    let mut command = Command::new(clang);
    command.args(["--target=bpf", "-fsyntax-only", "-Werror"]).args(flags).arg("-I").arg(libbpf);
    // From a file that includes it: clang warns of a header that is compiled itself.
    let source = libbpf.join("alone.bpf.c");
    fs::write(&source, format!("#include \"{}\"\n", header.canonicalize().unwrap().display())).unwrap();
    let output = command.arg(source).output().expect("clang is there, since build.rs needs it");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_header_compiles_alone() {
    let dir = tempfile::tempdir().unwrap();
    write_libbpf_headers(dir.path());
    let is_one = |path: &PathBuf| path.to_str().unwrap().ends_with(".bpf.h");
    let headers: Vec<PathBuf> = files_below("bpf").into_iter().filter(is_one).collect();
    assert!(headers.len() > 30, "{headers:?}");
    for header in headers {
        let complaints = complaints(&header, dir.path());
        assert!(complaints.is_empty(), "{}: {complaints}", header.display());
    }
}

#[test]
fn a_header_that_lacks_an_include_is_found() {
    let dir = tempfile::tempdir().unwrap();
    write_libbpf_headers(dir.path());
    let header = dir.path().join("lacking.bpf.h");
    fs::write(&header, "static u64 now(void)\n{\n\treturn scx_bpf_now();\n}\n").unwrap();
    assert!(complaints(&header, dir.path()).contains("unknown type name 'u64'"));
}
