// SPDX-License-Identifier: GPL-2.0-only
//! What an experiment says while it runs.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::plan::Step;
use crate::runs::{Run, disturbed};
use crate::stats::Figures;
use crate::summary::Jobs;

/// A bar where there is a terminal, and a line for each run everywhere.
pub struct Progress {
    bar: ProgressBar,
    steps: usize,
    jobs: Jobs,
    /// Of the longest name of a scenario.
    width: usize,
}

impl Progress {
    pub fn new(steps: &[Step], jobs: Jobs) -> Progress {
        let target = match std::io::stdout().is_terminal() {
            true => ProgressDrawTarget::stdout(),
            false => ProgressDrawTarget::hidden(),
        };
        let width = steps.iter().map(|step| step.scenario.to_string().len()).max().unwrap_or(0);
        let steps = steps.len();
        Progress { bar: ProgressBar::with_draw_target(Some(steps as u64), target), steps, jobs, width }
    }

    /// Shows the run in this place.
    pub fn report(&self, runs: &[Run], place: usize) {
        let disturbed = if disturbed(runs)[place] { "  disturbed" } else { "" };
        let line = self.line(place + 1, &runs[place]) + disturbed;
        self.bar.suspend(|| println!("{line}"));
        self.bar.inc(1);
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, done: usize, run: &Run) -> String {
        let Run { step, figures, .. } = run;
        let (steps, width) = (self.steps, self.steps.to_string().len());
        let what = match self.jobs {
            Jobs::One => format!("{:5} {:8}", step.scenario.receiver, step.scheduler),
            Jobs::Several => format!("{:name$} {:12}", step.scenario, step.scheduler, name = self.width),
        };
        let of_each = |figure: fn(&Figures) -> String| figures.iter().map(figure).collect::<Vec<_>>();
        let rates = of_each(|f| format!("{:.0}", f.round_trips_per_s)).join("+");
        let fairness = of_each(|f| format!("{:.2}", f.fairness)).join(" and ");
        let load = if step.scenario.competitors == 0 { "  no competitors" } else { "" };
        format!("[{done:width$}/{steps}] {what} {rates:>6} round trips/s  F {fairness}{load}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Rules;
    use std::time::Duration;

    fn figures(round_trips_per_s: f64, fairness: f64) -> Figures {
        Figures {
            round_trips_per_s,
            cpu_share: 0.2,
            fairness,
            fairness_by_node: vec![fairness],
            competitor_fairness_min: None,
            competitor_shares: vec![],
            round_trips_per_cpu_s: 0.0,
            node_speed_min: None,
            p50_us: 0.0,
            p99_us: 0.0,
            max_us: 0.0,
            round_trips_by_log2_us: vec![],
            ms_by_log2_us: vec![],
        }
    }

    fn run(scenario: &str, figures: Vec<Figures>) -> Run {
        let (scenario, scheduler) = (scenario.parse().unwrap(), "dcs".parse().unwrap());
        let step = Step { scenario, scheduler, length: Duration::ZERO, seed: 0 };
        Run { step, rules: Rules::none(), figures, again: false }
    }

    /// The line of the run in this place of 30, of which it is the one with the longest name.
    fn line(done: usize, run: &Run, jobs: Jobs) -> String {
        Progress::new(&vec![run.step.clone(); 30], jobs).line(done, run)
    }

    #[test]
    fn progress_is_a_line() {
        let run = run("spin-4", vec![figures(2441.4, 0.998)]);
        let wanted = "[ 7/30] spin  dcs        2441 round trips/s  F 1.00";
        assert_eq!(line(7, &run, Jobs::One), wanted);
    }

    #[test]
    fn of_several_jobs_it_shows_each() {
        let both = run("spin-2x2-t3", vec![figures(900.0, 1.1), figures(1100.0, 0.9)]);
        let wanted = "[ 7/30] spin-2x2-t3 dcs          900+1100 round trips/s  F 1.10 and 0.90";
        assert_eq!(line(7, &both, Jobs::Several), wanted);
        let alone = run("spin-0", vec![figures(16_000.0, 1.0)]);
        let wanted = "[ 1/30] spin-0 dcs           16000 round trips/s  F 1.00  no competitors";
        assert_eq!(line(1, &alone, Jobs::Several), wanted);
    }

    #[test]
    fn names_of_scenarios_line_up() {
        let runs = ["spin-0", "spin-2x2-mixed"].map(|name| run(name, vec![figures(1.0, 1.0)]));
        let progress = Progress::new(&runs.each_ref().map(|run| run.step.clone()), Jobs::Several);
        let places = runs.each_ref().map(|run| progress.line(1, run).find("dcs").unwrap());
        assert_eq!(places[0], places[1]);
    }
}
