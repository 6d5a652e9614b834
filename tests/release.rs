// SPDX-License-Identifier: GPL-2.0-only
//! Claim: `make release VERSION=X` commits and tags a release with its section of the changelog, and leaves the
//! checkout as it was if the version is wrong or a test fails.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn run(dir: &Path, program: &str, args: &[&str], make: &str) -> Output {
    let mut command = Command::new(program);
    let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
    command.current_dir(dir).args(args).env("MAKE", make).envs(names.map(|name| (name, "t@example.org")));
    command.output().unwrap_or_else(|e| panic!("{program}: {e}"))
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, "git", args, "");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// A repository with the files that a release changes, and with something that has changed.
fn checkout() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let package = "[package]\nname = \"p\"\nversion.workspace = true\nedition = \"2024\"\n";
    put("Cargo.toml", &format!("[workspace]\n\n[workspace.package]\nversion = \"0.1.9\"\n\n{package}"));
    put("src/lib.rs", "");
    put("CHANGELOG.md", "# Changes\n\n## Unreleased\n\n- It is better.\n\n## 0.1.9 - 2026-01-01\n\n- It is.\n");
    put("packaging/release", include_str!("../packaging/release"));
    git(dir.path(), &["init", "--quiet"]);
    assert!(run(dir.path(), "cargo", &["generate-lockfile", "--offline"], "").status.success());
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "--quiet", "-m", "start"]);
    dir
}

fn release(dir: &Path, version: &str, make: &str) -> Output {
    run(dir, "bash", &["packaging/release", version], make)
}

#[test]
fn a_release_is_a_commit_with_a_tag() {
    let dir = checkout();
    let output = release(dir.path(), "0.1.10", "true");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let changelog = git(dir.path(), &["show", "v0.1.10:CHANGELOG.md"]);
    let (_, section) = changelog.split_once("## Unreleased\n\n## 0.1.10 - 2").expect("a section of the release");
    assert!(section.contains("- It is better.\n\n## 0.1.9"), "{changelog}");
    for file in ["Cargo.toml", "Cargo.lock"] {
        let text = git(dir.path(), &["show", &format!("v0.1.10:{file}")]);
        assert!(text.contains("version = \"0.1.10\"") && !text.contains("0.1.9"), "{text}");
    }
    assert_eq!(git(dir.path(), &["status", "--porcelain"]), "");
}

#[test]
fn what_goes_wrong_is_said_in_a_line_and_changes_nothing() {
    for (version, make, what) in [
        ("", "true", "is no version"),
        ("0.2", "true", "is no version"),
        ("v0.2.0", "true", "is no version"),
        ("0.1.9", "true", "is not later than 0.1.9"),
        ("0.1.8", "true", "is not later than 0.1.9"),
        ("0.2.0", "false", ""),
    ] {
        let dir = checkout();
        let output = release(dir.path(), version, make);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains(what) && stderr.lines().count() <= 1,
            "{version}: {stderr}"
        );
        assert_eq!(git(dir.path(), &["status", "--porcelain"]), "", "{version}");
        assert_eq!(git(dir.path(), &["tag"]), "", "{version}");
    }
    let dir = checkout();
    fs::write(dir.path().join("new"), "").unwrap();
    let stderr = String::from_utf8(release(dir.path(), "0.2.0", "true").stderr).unwrap();
    assert!(stderr.contains("the checkout has changes"), "{stderr}");
}
