// SPDX-License-Identifier: GPL-2.0-only
//! Claim: whatever is wrong with peers, their key and prefetching, the program says so in one line, says what to do
//! about it, and loads nothing.

mod common;

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;

use common::refusals::{Config, accepts, refuses, refuses_config};
use common::{error_of, needs_root};

#[test]
fn what_only_peers_are_for_is_refused_without_one() {
    let line = "it has no effect without a peer (leave it out, or name the peers' networks with --peer)";
    for (flag, value, toml) in [
        ("interface", "auto", "interfaces = [\"auto\"]"),
        ("cluster-key", "/no/such/key", "cluster_key = \"/no/such/key\""),
        ("node-number", "7", "node_number = 7"),
        ("prefetch", "1", "prefetch = 1"),
        ("prefetch-port", "9", "prefetch_port = 9"),
    ] {
        refuses(&["run", &format!("--{flag}"), value], &[&format!("--{flag}: {line}")]);
        let key = toml.split_once(' ').unwrap().0;
        refuses_config(&format!("\n{toml}\n"), &format!(":2: {key}: {line}"));
    }
    refuses_config("peers = [\n\"10.0.0.0/8\",\n\"10.0.0.1/8\"]\n", ":3: peers: '10.0.0.1/8': it takes a network");
    refuses_config("peers = [\"::/0\",\n\"::/0\"]\n", ":2: peers: '::/0' is given twice (give it once)");
    // Flags take the place of a list, and are not added to it.
    accepts(&["--config", Config::new("peers = [\"::/0\"]\n").path(), "--peer", "::/0"]);
}

#[test]
fn prefetching_without_a_key_or_its_port_without_prefetching_is_refused() {
    let key = "nobody believes what is not signed (leave it out, or name the cluster's key with --cluster-key)";
    let port = "it has no effect without --prefetch (leave it out, or give --prefetch 1 to 8)";
    refuses(&["run", "--peer", "::/0", "--prefetch", "1"], &[&format!("--prefetch: {key}")]);
    refuses(&["run", "--peer", "::/0", "--prefetch-port", "9"], &[&format!("--prefetch-port: {port}")]);
    refuses(
        &["run", "--peer", "::/0", "--cluster-key", "/no/such/key", "--prefetch", "0", "--prefetch-port", "9"],
        &[&format!("--prefetch-port: {port}")],
    );
    refuses_config("peers = [\"::/0\"]\nprefetch = 1\n", &format!(":2: prefetch: {key}"));
    refuses_config("peers = [\"::/0\"]\nprefetch_port = 9\n", &format!(":2: prefetch_port: {port}"));
}

#[test]
fn a_port_of_prefetches_that_is_taken_is_named() {
    needs_root();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    fs::write(&path, "0123456789abcdef0123456789abcdef\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let taken = UdpSocket::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let socket = dir.path().join("a.sock");
    let key = path.to_str().unwrap();
    let (message, code) = error_of(&[
        "run",
        "--peer",
        "::/0",
        "--cluster-key",
        key,
        "--prefetch",
        "1",
        "--prefetch-port",
        &port,
        "--metrics-listen",
        "none",
        "--control-socket",
        socket.to_str().unwrap(),
    ]);
    assert_eq!(code, 1, "{message}");
    assert!(message.starts_with(&format!("cannot hear prefetches at UDP port {port}: ")), "{message}");
    assert!(message.ends_with("(choose another --prefetch-port, the same on all nodes)"), "{message}");
}

#[test]
fn a_key_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    let refuses = |wanted: &str| {
        let (message, code) = error_of(&["run", "--peer", "::/0", "--cluster-key", path.to_str().unwrap()]);
        assert_eq!(code, 1);
        assert!(message.starts_with(&format!("{}: {wanted}", path.display())), "{message}");
        assert!(!message.contains("0123456789"), "{message}");
    };
    refuses("No such file or directory");
    fs::write(&path, "0123456789abcdef0123456789abcdeg\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    refuses("others may read it (chmod 600 ");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    refuses("not a file with 32 hexadecimal digits (--cluster-key takes ");
}
