// SPDX-License-Identifier: GPL-2.0-only
//! From what the workers of all nodes report to the figures of a job in a run, and from runs to medians.

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::protocol::NodeReport;
use crate::worker::Report;

/// The figures of one job in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    pub round_trips_per_s: f64,
    /// Of the job, the mean over its nodes, 0 to 1.
    pub cpu_share: f64,
    /// Of the job, the mean over its nodes; 1 is fair.
    pub fairness: f64,
    /// Of the job on each of its nodes.
    pub fairness_by_node: Vec<f64>,
    /// Of the competitor that got the least of all nodes.
    pub competitor_fairness_min: Option<f64>,
    /// What part of a CPU each competitor had, the mean over the nodes, in the order of their names.
    pub competitor_shares: Vec<f64>,
    /// Per CPU second of the job on all its nodes.
    pub round_trips_per_cpu_s: f64,
    /// How fast the slowest node was: its competitors' loops per CPU second. What somebody outside takes
    /// from a virtual CPU passes for CPU time inside it, and shows here alone.
    pub node_speed_min: Option<f64>,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    /// By length: bucket i counts those of at most 2^i us that are longer than those of the bucket before.
    pub round_trips_by_log2_us: Vec<u64>,
    /// How long those of each bucket took together.
    pub ms_by_log2_us: Vec<f64>,
}

impl Figures {
    /// Of the job with this number.
    pub fn of(nodes: &[NodeReport], job: usize) -> Result<Figures> {
        let tokens = nodes.iter().map(|node| node.tokens.get(job)).collect::<Option<Vec<_>>>();
        let tokens = tokens.filter(|tokens| !tokens.is_empty()).context("a node has not reported a job")?;
        let trips = tokens.iter().find_map(|token| token.round_trips.as_ref());
        let trips = trips.context("no node has measured round trips")?;
        let job_cpu_seconds: f64 = tokens.iter().map(|token| token.cpu_seconds).sum();
        if job_cpu_seconds <= 0.0 {
            bail!("the job did not run at all");
        }

        let fairness_by_node: Vec<f64> = nodes.iter().zip(&tokens).map(|(node, token)| fairness(token, node)).collect();
        let hogs = nodes.iter().flat_map(|node| node.hogs.iter().map(|hog| fairness(hog, node)));
        let of_each = |place: usize| nodes.iter().map(move |node| node.hogs.get(place).map_or(0.0, cpu_share));
        let competitors = nodes.iter().map(|node| node.hogs.len()).max().unwrap_or(0);
        Ok(Figures {
            round_trips_per_s: trips.count as f64 / tokens[0].seconds,
            cpu_share: mean(tokens.iter().map(|token| cpu_share(token))),
            fairness: mean(fairness_by_node.iter().copied()),
            fairness_by_node,
            competitor_fairness_min: hogs.reduce(f64::min),
            competitor_shares: (0..competitors).map(|place| mean(of_each(place))).collect(),
            round_trips_per_cpu_s: trips.count as f64 / job_cpu_seconds,
            node_speed_min: nodes.iter().filter_map(speed).reduce(f64::min),
            p50_us: trips.p50_us,
            p99_us: trips.p99_us,
            max_us: trips.max_us,
            round_trips_by_log2_us: trips.by_log2_us.clone(),
            ms_by_log2_us: trips.ms_by_log2_us.clone(),
        })
    }
}

/// N, how many tasks want its CPU: those of all jobs, and the competitors.
fn tasks_on(node: &NodeReport) -> usize {
    node.tokens.iter().chain(&node.hogs).map(|report| report.tasks).sum()
}

/// T_C / T_E: what part of its node's CPU a process has used.
fn cpu_share(report: &Report) -> f64 {
    report.cpu_seconds / report.seconds
}

/// F = N T_C / T_E (thesis 5.1) of a task, where N tasks run on the node. Of a process with several it is
/// their mean, so 1 is a fair share of each task and not of each process.
fn fairness(report: &Report, node: &NodeReport) -> f64 {
    tasks_on(node) as f64 * cpu_share(report) / report.tasks as f64
}

/// None if there was no competitor, or none that ran.
fn speed(node: &NodeReport) -> Option<f64> {
    let loops: u64 = node.hogs.iter().filter_map(|hog| hog.loops).sum();
    let cpu_seconds: f64 = node.hogs.iter().map(|hog| hog.cpu_seconds).sum();
    (cpu_seconds > 0.0).then(|| loops as f64 / cpu_seconds)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

/// The middle of `values`, or the mean of the two in the middle. Of nothing it is 0.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).median
}

/// A median with its quartiles and its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// A quarter of the values is less.
    pub q1: f64,
    /// A quarter of the values is greater.
    pub q3: f64,
    /// How many values there are.
    pub n: usize,
}

impl Spread {
    /// Of nothing all is 0.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let [min, .., max] = sorted[..] else {
            let only = sorted.first().copied().unwrap_or_default();
            return Spread { median: only, min: only, max: only, q1: only, q3: only, n: sorted.len() };
        };
        let n = sorted.len();
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        Spread { median, min, max, q1: quantile(&sorted, 0.25), q3: quantile(&sorted, 0.75), n }
    }

    /// The range over the median; 0 where there is nothing to differ.
    pub fn range_ratio(&self) -> f64 {
        if self.median > 0.0 { (self.max - self.min) / self.median } else { 0.0 }
    }
}

/// The value below which `part` of a distribution lies, estimated from two `sorted` values or more: definition 8 of
/// Hyndman and Fan (1996), which they recommend since its median is unbiased whatever the distribution is.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let n = sorted.len();
    let rank = ((n as f64 + 1.0 / 3.0) * part + 1.0 / 3.0).clamp(1.0, n as f64);
    let below = (rank as usize).min(n - 1);
    let (low, high) = (sorted[below - 1], sorted[below]);
    low + (rank - below as f64) * (high - low)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::worker::RoundTrips;

    fn report(cpu_seconds: f64, count: Option<u64>) -> Report {
        let trips = |count| RoundTrips {
            count,
            by_log2_us: vec![count],
            ms_by_log2_us: vec![],
            p50_us: 60.0,
            p99_us: 90.0,
            max_us: 80_000.0,
        };
        Report { seconds: 4.0, cpu_seconds, tasks: 1, round_trips: count.map(trips), loops: Some(1000) }
    }

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
        let Spread { median, min, max, n, .. } = Spread::of([5.0, 1.0, 3.0]);
        assert_eq!((median, min, max, n), (3.0, 1.0, 5.0, 3));
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn quartiles_cut_off_a_quarter_each() {
        let spread = Spread::of((1..=15).rev().map(f64::from));
        assert_eq!((spread.median, spread.min, spread.max), (8.0, 1.0, 15.0));
        assert!((4.0..=4.5).contains(&spread.q1) && (11.5..=12.0).contains(&spread.q3), "{spread:?}");
        assert_eq!(spread.range_ratio(), 14.0 / 8.0);
    }

    #[test]
    fn quantiles_are_those_of_others() {
        // The values that the tests of the crate statrs have from R (type 8) and Math.NET, and its examples.
        let sorted = [-3.0, -1.0, -0.5, 0.0, 0.2, 1.0, 4.0, 5.0, 6.0, 10.0];
        for (part, wanted) in [
            (0.01, -3.0),
            (0.2, -4.0 / 5.0),
            (0.325, -37.0 / 240.0),
            (0.52, 287.0 / 375.0),
            (0.7, 137.0 / 30.0),
            (0.99, 10.0),
        ] {
            let is = quantile(&sorted, part);
            assert!((is - wanted).abs() < 1e-12, "{part}: {is} is not {wanted}");
        }
        let spread = Spread::of([2.0, 1.0, 3.0, 4.0]);
        assert!((spread.q1 - 1.416_666_666_666_666).abs() < 1e-12, "{spread:?}");
        assert!((spread.q3 - 3.583_333_333_333_333_3).abs() < 1e-12, "{spread:?}");
        let Spread { q1, median, q3, .. } = Spread::of([7.0]);
        assert_eq!((q1, median, q3), (7.0, 7.0, 7.0));
    }

    #[test]
    fn a_fifth_of_the_cpu_among_five_is_fair() {
        let nodes = [
            NodeReport { tokens: vec![report(0.8, Some(4000))], hogs: vec![report(0.8, None); 4] },
            NodeReport { tokens: vec![report(0.6, None)], hogs: vec![report(0.85, None); 4] },
        ];
        let figures = Figures::of(&nodes, 0).unwrap();
        assert_eq!(figures.round_trips_per_s, 1000.0);
        assert!((figures.cpu_share - 0.175).abs() < 1e-9);
        assert!((figures.fairness - 0.875).abs() < 1e-9, "the mean of 1 and 0.75");
        assert!((figures.competitor_fairness_min.unwrap() - 1.0).abs() < 1e-9);
        assert!(figures.competitor_shares.iter().all(|share| (share - 0.20625).abs() < 1e-9), "0.2 and 0.2125");
        assert_eq!(figures.competitor_shares.len(), 4);
        assert!((figures.node_speed_min.unwrap() - 1000.0 / 0.85).abs() < 1e-6, "the second is slower");
        assert!((figures.round_trips_per_cpu_s - 4000.0 / 1.4).abs() < 1e-6);
    }

    #[test]
    fn two_jobs_and_two_competitors_are_four() {
        let node = |counts: [Option<u64>; 2]| NodeReport {
            tokens: vec![report(1.2, counts[0]), report(0.8, counts[1])],
            hogs: vec![report(1.0, None); 2],
        };
        let nodes = [node([Some(4000), Some(2000)]), node([None, None])];
        let [first, second] = [0, 1].map(|job| Figures::of(&nodes, job).unwrap());
        assert_eq!((first.round_trips_per_s, second.round_trips_per_s), (1000.0, 500.0));
        assert!((first.fairness - 1.2).abs() < 1e-9 && (second.fairness - 0.8).abs() < 1e-9);
        assert_eq!(second.competitor_fairness_min, Some(1.0));
        assert!((second.round_trips_per_cpu_s - 1250.0).abs() < 1e-9);
    }

    #[test]
    fn every_task_is_due_the_same() {
        // A job with three threads, one with one, and four competitors: eight tasks, half a second for each.
        let of_three = |count| Report { tasks: 3, ..report(1.5, count) };
        let node = |counts: [Option<u64>; 2]| NodeReport {
            tokens: vec![of_three(counts[0]), report(0.5, counts[1])],
            hogs: vec![report(0.5, None); 4],
        };
        let nodes = [node([Some(3000), Some(1000)]), node([None, None])];
        let [three, one] = [0, 1].map(|job| Figures::of(&nodes, job).unwrap());
        assert_eq!((three.fairness, three.cpu_share), (1.0, 0.375));
        assert_eq!((one.fairness, one.cpu_share), (1.0, 0.125));
        assert_eq!(three.competitor_fairness_min, Some(1.0));
        assert_eq!(three.round_trips_per_cpu_s, 1000.0);
    }

    #[test]
    fn alone_the_whole_cpu_is_fair() {
        let alone = |count| NodeReport { tokens: vec![report(4.0, count)], hogs: vec![] };
        let figures = Figures::of(&[alone(Some(64_000)), alone(None)], 0).unwrap();
        assert_eq!((figures.cpu_share, figures.fairness), (1.0, 1.0));
        assert_eq!(figures.competitor_fairness_min, None);
    }

    #[test]
    fn what_did_not_run_is_not_measured() {
        let nodes = |cpu, count| [NodeReport { tokens: vec![report(cpu, count)], hogs: vec![] }];
        assert!(Figures::of(&nodes(0.0, Some(0)), 0).is_err());
        assert!(Figures::of(&nodes(0.8, None), 0).is_err());
        assert!(Figures::of(&nodes(0.8, Some(0)), 1).is_err(), "there is no second job");
        assert_eq!(Figures::of(&nodes(0.8, Some(0)), 0).unwrap().round_trips_per_s, 0.0);
    }
}
