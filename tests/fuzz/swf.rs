// SPDX-License-Identifier: GPL-2.0-only
//! Traces of real clusters, and the sidecar that says what their jobs do.
//!
//! An input is a trace; behind a byte 0 the sidecar follows.

use std::fs;
use std::sync::OnceLock;

use cosched_sim::cluster::swf;
use tempfile::TempDir;

use super::is_one_line;

const NODES: u32 = 128;
/// Times are multiplied by it.
const SCALE: f64 = 0.5;

/// Files that are refused are named in one line. A trace that is taken has jobs that fit the cluster, in their order.
pub fn read(bytes: &[u8]) {
    static DIR: OnceLock<TempDir> = OnceLock::new();
    let dir = DIR.get_or_init(|| tempfile::tempdir().unwrap()).path();
    let (trace, sidecar) = match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (&bytes[..end], Some(&bytes[end + 1..])),
        None => (bytes, None),
    };
    let (trace_path, sidecar_path) = (dir.join("a.swf"), dir.join("mixes.toml"));
    fs::write(&trace_path, trace).unwrap();
    fs::write(&sidecar_path, sidecar.unwrap_or_default()).unwrap();
    match swf::read(&trace_path, sidecar.map(|_| sidecar_path.as_path()), SCALE, NODES) {
        Ok(trace) => {
            assert_eq!(trace.jobs[0].arrival_ns, 0);
            assert!(trace.jobs.is_sorted_by_key(|job| job.arrival_ns));
            for job in &trace.jobs {
                assert!((1..=NODES).contains(&job.size) && job.execution_ns > 0, "{job:?}");
                let parts = [job.mix.compute, job.mix.io, job.mix.communication];
                assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{job:?}");
                assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{job:?}");
            }
        }
        Err(error) => {
            is_one_line(&error);
            let message = format!("{error:#}");
            assert!(message.starts_with(dir.to_str().unwrap()), "{message:?}");
        }
    }
}
