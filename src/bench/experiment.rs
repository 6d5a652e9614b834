// SPDX-License-Identifier: GPL-2.0-only
//! An experiment from its plan to its table and its file of results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::contender::Contender;
use super::coordinator::{Coordinator, Setup};
use super::plan::Step;
use super::progress::Progress;
use super::protocol::Rules;
use super::runs::{Run, disturbed};
use super::stats::Figures;
use super::summary::{Jobs, Summary, Total, costs, rows, totals};
use super::table::{table, totals_table};
use super::testbed::Testbed;
use super::{interrupt, machine};
use crate::report;

/// What to measure, and where.
pub struct Experiment<'a> {
    pub testbed: Testbed,
    pub steps: Vec<Step>,
    pub jobs: Jobs,
    pub repeats: usize,
    pub length: Duration,
    /// The file for the results.
    pub out: Option<&'a Path>,
}

impl Experiment<'_> {
    /// Measures everything, prints what was found and writes it to the file.
    pub fn run(&self) -> Result<ExitCode> {
        self.out.map_or(Ok(()), check_writable)?;
        interrupt::catch()?;
        machine::lead();
        // Who is interrupted is wherever he happens to be, which is nobody's concern.
        let runs =
            self.measure().map_err(|error| if interrupt::happened() { anyhow!("interrupted") } else { error })?;

        let summary = self.summary(&runs);
        self.print(&summary, &totals(&runs));
        if let Some(file) = self.out {
            let json = serde_json::to_string_pretty(&summary)? + "\n";
            std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn measure(&self) -> Result<Vec<Run>> {
        // The agents go last: they unload the scheduler when the coordinator has left.
        let (listener, _agents) = self.testbed.start()?;
        let mut coordinator = Coordinator::gather(&listener, self.testbed.kernels())?;

        let progress = Progress::new(&self.steps, self.jobs);
        let mut scheduled = None;
        let mut runs = Vec::new();
        for step in &self.steps {
            runs.push(measure(&mut coordinator, &mut scheduled, step)?);
            progress.report(&runs, runs.len() - 1);
        }
        for place in again(&disturbed(&runs)) {
            let run = measure(&mut coordinator, &mut scheduled, &self.steps[place])?;
            runs[place] = Run { again: true, ..run };
            progress.report(&runs, place);
        }
        progress.end();
        coordinator.end()?;
        Ok(runs)
    }

    fn summary(&self, runs: &[Run]) -> Summary {
        Summary {
            kernel: machine::kernel(),
            testbed: self.testbed.to_string(),
            clocksource: machine::clocksource(),
            cpu: machine::cpu_model(),
            costs: costs(runs),
            seconds: self.length.as_secs_f64(),
            repeats: self.repeats,
            repeated: runs.iter().filter(|run| run.again).count(),
            disturbed: disturbed(runs).into_iter().filter(|&it| it).count(),
            results: rows(runs, self.jobs),
        }
    }

    fn print(&self, summary: &Summary, totals: &[Total]) {
        println!("\n{}", table(&summary.results));
        if !totals.is_empty() {
            println!("{}", totals_table(totals));
        }
        let clock = summary.clocksource.as_deref().unwrap_or("?");
        println!(
            "Medians of {} runs of {} s, except min-max and max. Testbed {}, kernel {}, clock source {clock}.",
            summary.repeats, summary.seconds, summary.testbed, summary.kernel
        );
        println!("F = N T_C / T_E, 1 is fair. Efficiency: round trips per CPU second of the job over the same alone.");
        warn(summary);
    }
}

/// Not after half an hour of measurements.
fn check_writable(file: &Path) -> Result<()> {
    let parent =
        file.parent().filter(|parent| *parent != Path::new("")).map_or_else(|| PathBuf::from("."), PathBuf::from);
    if file.is_dir() || file.file_name().is_none() || !parent.is_dir() {
        return Err(report::usage(format!("--out {}: give a file in a directory that exists", file.display())));
    }
    Ok(())
}

/// The scheduler of all kernels, and its rules.
struct Scheduled {
    contender: Contender,
    rules: Rules,
}

fn measure(coordinator: &mut Coordinator, scheduled: &mut Option<Scheduled>, step: &Step) -> Result<Run> {
    let rules = match scheduled {
        Some(Scheduled { contender, rules }) if *contender == step.scheduler => rules.clone(),
        _ => {
            let rules = coordinator.schedule(&step.scheduler, step.scenario)?;
            *scheduled = Some(Scheduled { contender: step.scheduler.clone(), rules: rules.clone() });
            rules
        }
    };
    let setup = Setup { scenario: step.scenario, warm_up: Duration::from_millis(500), length: step.length };
    let figures = coordinator
        .measure(setup)
        .and_then(|reports| (0..step.scenario.jobs).map(|job| Figures::of(&reports, job)).collect())
        .with_context(|| format!("{} under {}", step.scenario, step.scheduler))?;
    Ok(Run { step: step.clone(), rules, figures, again: false })
}

/// Which runs to measure again: those that were disturbed, once each, but on a machine that is never quiet
/// not so many that it takes for ever.
fn again(disturbed: &[bool]) -> Vec<usize> {
    let places = disturbed.iter().enumerate().filter(|(_, is)| **is).map(|(place, _)| place);
    places.take(disturbed.len() / 4).collect()
}

/// Says whether the figures can be believed.
fn warn(summary: &Summary) {
    if summary.repeated > 0 {
        println!("{} runs were disturbed and measured a second time.", summary.repeated);
    }
    if summary.disturbed > 0 {
        println!(
            "Somebody else used this machine's CPUs during {} of these runs: doubt the figures.",
            summary.disturbed
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_again_what_was_disturbed() {
        let mut runs = [false; 8];
        runs[3] = true;
        assert_eq!(again(&runs), [3]);
        assert_eq!(again(&[true; 8]), [0, 1], "there is an end to it");
    }

    #[test]
    fn knows_early_that_it_cannot_write() {
        for good in ["summary.json", "/tmp/summary.json"] {
            assert!(check_writable(Path::new(good)).is_ok(), "{good}");
        }
        for bad in ["", "/", "/tmp", "/nowhere/summary.json", "/etc/passwd/summary.json"] {
            let error = check_writable(Path::new(bad)).unwrap_err().to_string();
            assert!(error.contains(&format!("--out {bad}: give a file")), "{error}");
        }
    }
}
