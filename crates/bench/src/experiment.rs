// SPDX-License-Identifier: GPL-2.0-only
//! An experiment from its plan to its table and its file of results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::{interrupt, machine};
use crate::agent::PHASES;
use crate::contender::Contender;
use crate::coordinator::{Coordinator, Setup};
use crate::plan::Step;
use crate::progress::Progress;
use crate::protocol::{NodeReport, Rules};
use crate::runs::{Run, disturbed};
use crate::sanity::{Tolerance, doubtful};
use crate::scenario::Scenario;
use crate::stats::Figures;
use crate::summary::{Jobs, Row, Summary, Total, costs, rows, totals};
use crate::table::{table, totals_table};
use crate::testbed::Testbed;
use cosched_rules::{VERSION, report};

/// From the last worker's beginning to the first measurement: how the processes start is not what they are like.
const WARM_UP: Duration = Duration::from_millis(500);
/// Gates look back two seconds (policies/window.h), and under gang the loader has to find the cgroups of the jobs
/// before these have their rows. The first two seconds of a spinning pair under dcs-sb make 8% less than what comes
/// then.
const AGREEMENT: Duration = Duration::from_secs(3);

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
        let all_measured = summary.results.iter().all(|row| row.not_measured.is_none());
        Ok(if all_measured { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn measure(&self) -> Result<Vec<Run>> {
        let started = self.testbed.start()?;
        let mut coordinator = Coordinator::gather(&started.listener, self.testbed.nodes(), self.testbed.kernels())?;

        let progress = Progress::new(&self.steps, self.jobs);
        let mut scheduled = None;
        let mut runs = Vec::new();
        for step in &self.steps {
            runs.push(measure(&mut coordinator, &mut scheduled, step)?);
            progress.report(&runs, runs.len() - 1);
        }
        for place in again(doubtful(&runs, self.tolerance()), runs.len()) {
            let run = measure(&mut coordinator, &mut scheduled, &self.steps[place])?;
            runs[place] = Run { again: true, ..run };
            progress.report(&runs, place);
        }
        progress.end();
        coordinator.end()?;
        Ok(runs)
    }

    fn tolerance(&self) -> Tolerance {
        Tolerance::of(machine::time().is_virtual)
    }

    fn summary(&self, runs: &[Run]) -> Summary {
        let time = machine::time();
        Summary {
            kernel: machine::kernel(),
            version: VERSION,
            commands: vec![std::env::args().collect::<Vec<_>>().join(" ")],
            testbed: self.testbed.to_string(),
            nodes: self.testbed.nodes(),
            time: time.name(),
            switch_price_ns: time.switch_price_ns,
            ipi_price_ns: time.ipi_price_ns,
            clocksource: machine::clocksource(),
            cpu: machine::cpu_model(),
            costs: costs(runs),
            seconds: self.length.as_secs_f64(),
            repeats: self.repeats,
            repeated: runs.iter().filter(|run| run.again).count(),
            disturbed: disturbed(runs).into_iter().filter(|&it| it).count(),
            results: rows(runs, self.jobs, self.tolerance()),
        }
    }

    fn print(&self, summary: &Summary, totals: &[Total]) {
        println!("\n{}", table(&summary.results));
        if !totals.is_empty() {
            println!("{}", totals_table(totals));
        }
        let clock = summary.clocksource.as_deref().unwrap_or("?");
        println!(
            "Medians of {} runs of {} s, which begin at random phases; max is that of all. Testbed {}, kernel {}, clock \
             source {clock}.",
            numbers(&summary.results),
            summary.seconds,
            summary.testbed,
            summary.kernel
        );
        println!("{}", what_time(summary));
        println!(
            "F = N T_C / T_E, 1 is fair. Efficiency: round trips per CPU second of the job over the most that it makes \
             alone."
        );
        warn(summary);
    }
}

/// Not after half an hour of measurements.
pub fn check_writable(file: &Path) -> Result<()> {
    let parent =
        file.parent().filter(|parent| *parent != Path::new("")).map_or_else(|| PathBuf::from("."), PathBuf::from);
    if file.is_dir() || file.file_name().is_none() || !parent.is_dir() {
        return Err(report::usage(format!("--out {}: give a file in a directory that exists", file.display())));
    }
    Ok(())
}

/// What is dropped of a run.
fn warm_up(scheduler: &Contender) -> Duration {
    if scheduler.coordinates() { AGREEMENT } else { WARM_UP }
}

/// The scheduler of all kernels, and its rules.
struct Scheduled {
    contender: Contender,
    /// Under gang a scenario has rows of its own.
    scenario: Scenario,
    rules: Rules,
}

fn measure(coordinator: &mut Coordinator, scheduled: &mut Option<Scheduled>, step: &Step) -> Result<Run> {
    let rules = match scheduled {
        Some(Scheduled { contender, scenario, rules })
            if *contender == step.scheduler && *scenario == step.scenario =>
        {
            rules.clone()
        }
        _ => {
            let rules = coordinator.schedule(&step.scheduler, step.scenario)?;
            let (contender, scenario) = (step.scheduler.clone(), step.scenario);
            *scheduled = Some(Scheduled { contender, scenario, rules: rules.clone() });
            rules
        }
    };
    let (scenario, length, seed) = (step.scenario, step.length, step.seed);
    let figures_of_group = |nodes: &[NodeReport]| (0..scenario.jobs).map(|job| Figures::of(nodes, job)).collect();
    let figures = coordinator
        .measure(Setup { scenario, warm_up: PHASES + warm_up(&step.scheduler), length, seed })
        .and_then(|reports| {
            let groups = reports.chunks(scenario.group(reports.len()));
            groups.map(figures_of_group).collect::<Result<Vec<Vec<_>>>>()
        })
        .map(|groups| groups.concat())
        .with_context(|| format!("{} under {}", step.scenario, step.scheduler))?;
    Ok(Run { step: step.clone(), rules, figures, again: false })
}

/// Which runs to measure again: those in doubt, once each, but on a machine that is never quiet not so many that it
/// takes for ever.
fn again(doubtful: Vec<usize>, runs: usize) -> Vec<usize> {
    doubtful.into_iter().take(runs.div_ceil(4)).collect()
}

/// How many runs the medians are of, but for those of runs alone: "15", or "8 or 15".
fn numbers(rows: &[Row]) -> String {
    let is_alone = |row: &&Row| row.competitors == 0 && row.which.as_ref().is_none_or(|which| which.jobs == 1);
    let all: BTreeSet<usize> = rows.iter().filter(|row| !is_alone(row)).map(|row| row.runs.len()).collect();
    all.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ")
}

/// What a second is.
fn what_time(summary: &Summary) -> String {
    match summary.time {
        "virtual" => format!(
            "Virtual time: each CPU executes an instruction in 4 ns, whatever the host does. A switch to another \
             address space takes {} ns besides its instructions, an interrupt from another CPU {} ns.",
            summary.switch_price_ns, summary.ipi_price_ns
        ),
        _ => "Real time: whatever else this machine did is in the figures.".into(),
    }
}

/// Says whether the figures can be believed.
fn warn(summary: &Summary) {
    if summary.repeated > 0 {
        println!("{} runs could not be true or were disturbed, and were measured a second time.", summary.repeated);
    }
    for row in &summary.results {
        if let Some(why) = &row.not_measured {
            println!("Not measured: {} beside {} under {}: {why}.", row.receiver, row.competitors, row.scheduler);
        }
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
    fn measures_again_what_is_in_doubt() {
        assert_eq!(again(vec![3], 8), [3]);
        assert_eq!(again((0..8).collect(), 8), [0, 1], "there is an end to it");
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
