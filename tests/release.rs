// SPDX-License-Identifier: GPL-2.0-only
//! Claim: `make release VERSION=X` commits and tags a release with its section of the changelog and with no version
//! left behind. It leaves the checkout as it was if the version is wrong or a test fails.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const NOW: &str = env!("CARGO_PKG_VERSION");
const UNRELEASED: &str = "## Unreleased\n\n";

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

/// A repository with the files of this one as they are now, and with something that has changed.
fn checkout() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let copy = "git ls-files -z | xargs -0 cp --parents --no-dereference --target-directory \"$0\"";
    assert!(run(Path::new("."), "sh", &["-c", copy, dir.path().to_str().unwrap()], "").status.success());
    let changelog = dir.path().join("CHANGELOG.md");
    let text = fs::read_to_string(&changelog).unwrap();
    // This one may have nothing new: it is so while a release is made.
    fs::write(&changelog, text.replacen(UNRELEASED, &format!("{UNRELEASED}- It is better.\n\n"), 1)).unwrap();
    git(dir.path(), &["init", "--quiet"]);
    git(dir.path(), &["add", "--force", "."]);
    git(dir.path(), &["commit", "--quiet", "-m", "start"]);
    dir
}

/// A version that is greater than that of the checkout.
fn greater() -> String {
    let numbers: Vec<u32> = NOW.split('.').map(|number| number.parse().unwrap()).collect();
    format!("{}.{}.0", numbers[0], numbers[1] + 9)
}

fn release(dir: &Path, version: &str, make: &str) -> Output {
    run(dir, "bash", &["packaging/release", version], make)
}

#[test]
fn a_release_is_a_commit_with_a_tag_and_leaves_no_version_behind() {
    let dir = checkout();
    let next = greater();
    // The first one may have the version of the checkout.
    for (before, version) in [(None, NOW), (Some(NOW), &next)] {
        if before.is_some() {
            let changelog = dir.path().join("CHANGELOG.md");
            let text = fs::read_to_string(&changelog).unwrap();
            fs::write(&changelog, text.replacen(UNRELEASED, &format!("{UNRELEASED}- It is faster.\n\n"), 1)).unwrap();
            git(dir.path(), &["commit", "--quiet", "--all", "-m", "faster"]);
        }
        let output = release(dir.path(), version, "true");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let of_tag = |file: &str| git(dir.path(), &["show", &format!("v{version}:{file}")]);
        let changelog = of_tag("CHANGELOG.md");
        let (_, section) =
            changelog.split_once(&format!("{UNRELEASED}## {version} - 2")).expect("a section of the release");
        assert!(section.contains(if before.is_some() { "- It is faster." } else { "- It is better." }), "{section}");
        assert!(of_tag("Cargo.toml").contains(&format!("\nversion = \"{version}\"\n")));
        let lock = of_tag("Cargo.lock");
        for package in ["cosched_bench", "cosched_rules", "cosched_sim", "scx_cosched"] {
            assert!(lock.contains(&format!("name = \"{package}\"\nversion = \"{version}\"\n")), "{package}");
        }
        let images = git(dir.path(), &["grep", "--only-matching", "-hE", "\\<scx-cosched:[0-9.]+"]);
        assert!(images.lines().count() >= 3, "{images}");
        assert!(images.lines().all(|image| image == format!("scx-cosched:{version}")), "{images}");
        assert_eq!(git(dir.path(), &["status", "--porcelain"]), "");
    }
}

#[test]
fn what_goes_wrong_is_said_in_a_line_and_changes_nothing() {
    let dir = checkout();
    let later = format!("is not later than {NOW}");
    let greater = greater();
    git(dir.path(), &["tag", &format!("v{NOW}")]);
    for (version, make, what) in [
        ("", "true", "is no version"),
        ("0.2", "true", "is no version"),
        ("v0.2.0", "true", "is no version"),
        (NOW, "true", &later),
        ("0.0.9", "true", &later),
        (&greater, "false", ""),
    ] {
        let output = release(dir.path(), version, make);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains(what) && stderr.lines().count() <= 1,
            "{version}: {stderr}"
        );
        assert_eq!(git(dir.path(), &["status", "--porcelain"]), "", "{version}");
        assert_eq!(git(dir.path(), &["tag"]), format!("v{NOW}"), "{version}");
    }
    fs::write(dir.path().join("new"), "").unwrap();
    let stderr = String::from_utf8(release(dir.path(), &greater, "true").stderr).unwrap();
    assert!(stderr.contains("the checkout has changes"), "{stderr}");
}
