// SPDX-License-Identifier: GPL-2.0-only
//! `sim sweep`: a model at every point of a grid, on all CPUs, and on many machines by shards.
//!
//! Points that have a result in the directory are not run again, so a sweep that was killed goes on where it was, and
//! one that has all its shards' files only makes their CSV.

mod grid;
mod store;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use self::grid::Point;
use self::store::{Store, key};
use super::cli::{Shard, SweepArgs};
use super::progress::progress;
use super::report;

/// Runs the points that have no result yet, and writes the CSV of all that have one.
///
/// # Errors
/// One line for a file that is not as it should be, in which case nothing is run or written, or for results that cannot
/// be read or written.
pub fn run(args: &SweepArgs) -> Result<ExitCode> {
    let points = grid::points(&args.file)?;
    let dir = &args.out;
    std::fs::create_dir_all(dir).with_context(|| format!("--out: {}: it cannot be made", dir.display()))?;
    let name = match args.shard {
        Some(Shard { place, count }) => format!("points-{place}-of-{count}"),
        None => "points".into(),
    };
    let store = Store::open(&dir.join(format!("{name}.jsonl")))?;
    let done = store::results(dir)?;
    let mine = points.iter().enumerate().filter(|(i, _)| args.shard.is_none_or(|shard| shard.has(*i)));
    let mine: Vec<&Point> = mine.map(|(_, point)| point).collect();
    let left: Vec<&Point> = mine.iter().copied().filter(|point| !done.contains_key(&key(point))).collect();
    let ran = left.len();
    run_all(left, &store)?;
    let csv = dir.join(format!("{name}.csv"));
    write_csv(&csv, &mine.iter().map(|point| (*point).clone()).collect::<Vec<_>>(), dir)?;
    println!("{} points: {ran} run, {} were there; {}", mine.len(), mine.len() - ran, csv.display());
    Ok(ExitCode::SUCCESS)
}

fn run_all(points: Vec<&Point>, store: &Store) -> Result<()> {
    let bar = progress("sweep", points.len() as u64);
    points.into_par_iter().try_for_each(|point| {
        store.add(point, &report::json(&point.run)?)?;
        bar.inc(1);
        Ok::<_, anyhow::Error>(())
    })?;
    bar.finish_and_clear();
    Ok(())
}

/// By another name first: a CSV is whole or not there.
fn write_csv(path: &Path, points: &[Point], dir: &Path) -> Result<()> {
    let text = store::csv(points, &store::results(dir)?);
    let new = path.with_extension("csv.new");
    std::fs::write(&new, text)
        .and_then(|()| std::fs::rename(&new, path))
        .with_context(|| format!("{}: it cannot be written", path.display()))
}
