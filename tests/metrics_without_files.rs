// SPDX-License-Identifier: GPL-2.0-only
//! Claim: metrics are served again after the process has had no file descriptors left. By itself, since the limit is
//! that of the whole process.

use std::io::{Read, Write};
use std::net::TcpStream;

use scx_cosched::metrics::exporter::Exporter;
use scx_cosched::scheduler::requests::Owner;
use scx_cosched::settings::limits::MetricsListen;

const FILES: u64 = 64;

#[test]
fn metrics_outlive_a_process_without_file_descriptors() {
    let limit = libc::rlimit { rlim_cur: FILES, rlim_max: FILES };
    // SAFETY: reads its arguments.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let exporter = Exporter::bind(MetricsListen::At("127.0.0.1:0".parse().unwrap())).unwrap();
    let address = exporter.address().unwrap();
    exporter.serve(Owner::new().0).unwrap();

    let is_answered = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    };

    is_answered();
    let mut idle = Vec::new();
    while idle.len() < FILES as usize
        && let Ok(stream) = TcpStream::connect(address)
    {
        idle.push(stream);
    }
    assert!(idle.len() < FILES as usize, "there is no limit");
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(idle);

    is_answered();
}
