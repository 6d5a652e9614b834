// SPDX-License-Identifier: GPL-2.0-only
//! What an experiment found, for people.

use comfy_table::{CellAlignment, Table, presets};

use crate::stats::Spread;
use crate::summary::{Row, Total, Which};

/// A line for each row.
pub fn table(rows: &[Row]) -> Table {
    let load = match rows.iter().any(|row| row.which.is_some()) {
        true => ["scenario", "job"],
        false => ["receiver", "others"],
    };
    let figures = [
        "scheduler",
        "gate",
        "round trips/s",
        "quartiles",
        "min-max",
        "x EEVDF",
        "CPU",
        "F by node",
        "efficiency",
        "p50 ms",
        "p99 ms",
        "max ms",
        "others' least F",
    ];
    let mut table = empty_table();
    table.set_header(load.iter().chain(&figures));
    for row in rows {
        table.add_row(cells(row));
    }
    right_align(&mut table, 4);
    table
}

/// A line for each total.
pub fn totals_table(totals: &[Total]) -> Table {
    let mut table = empty_table();
    table.set_header(["scenario, all jobs", "scheduler", "round trips/s", "quartiles", "min-max", "x EEVDF"]);
    for Total { scenario, scheduler, round_trips_per_s, ratio_to_eevdf } in totals {
        let [median, quartiles, range] = spread(round_trips_per_s);
        table.add_row([scenario.clone(), scheduler.clone(), median, quartiles, range, optional(*ratio_to_eevdf)]);
    }
    right_align(&mut table, 2);
    table
}

pub fn empty_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table
}

/// From this column on.
pub fn right_align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |v| format!("{v:.2}"))
}

fn spread(rate: &Spread) -> [String; 3] {
    let from_to = |from: f64, to: f64| format!("{from:.0}-{to:.0}");
    [format!("{:.0}", rate.median), from_to(rate.q1, rate.q3), from_to(rate.min, rate.max)]
}

fn cells(row: &Row) -> [String; 15] {
    let ms = |us: f64| format!("{:.2}", us / 1e3);
    let [median, quartiles, range] = spread(&row.round_trips_per_s);
    let by_node: Vec<String> = row.fairness_by_node.iter().map(|f| format!("{f:.3}")).collect();
    let efficiency = if row.not_measured.is_some() { "not measured".into() } else { optional(row.efficiency) };
    let [load, job] = match &row.which {
        None => [row.receiver.to_string(), row.competitors.to_string()],
        Some(Which { scenario, jobs: 1, .. }) => [scenario.clone(), "-".into()],
        Some(Which { scenario, jobs, job, .. }) => [scenario.clone(), format!("{job} of {jobs}")],
    };
    [
        load,
        job,
        row.scheduler.clone(),
        row.gate.clone(),
        median,
        quartiles,
        range,
        optional(row.ratio_to_eevdf),
        format!("{:.1}%", 100.0 * row.cpu_share),
        by_node.join(" "),
        efficiency,
        ms(row.p50_us),
        ms(row.p99_us),
        ms(row.max_us),
        optional(row.competitor_fairness_min),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::tests::{runs, runs_of_two};
    use crate::sanity::Tolerance;
    use crate::summary::{Jobs, rows, totals};

    #[test]
    fn the_table_has_a_line_for_each_row() {
        let time = Tolerance::of(true);
        let text = table(&rows(&runs(), Jobs::One, time)).to_string();
        assert!(text.contains("dcs") && text.contains("1000-2000") && text.contains("20.0%"), "{text}");
        assert!(text.contains("receiver"), "{text}");
        let text = table(&rows(&runs_of_two(), Jobs::Several, time)).to_string();
        assert!(text.contains("spin-2x2") && text.contains("1 of 2"), "{text}");
    }

    #[test]
    fn totals_have_a_table_of_their_own() {
        let text = totals_table(&totals(&runs_of_two())).to_string();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(lines.contains(&vec!["|", "spin-2x2", "eevdf", "300", "300-300", "300-300", "1.00", "|"]), "{text}");
        assert!(lines.contains(&vec!["|", "spin-2x2", "dcs", "1500", "1400-1600", "1400-1600", "5.00", "|"]), "{text}");
        assert!(!text.contains("spin-4"), "one job has no total: {text}");
    }
}
