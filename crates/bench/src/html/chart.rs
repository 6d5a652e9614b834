// SPDX-License-Identifier: GPL-2.0-only
//! Pictures: a bar for each scheduler with its spread, and the histograms of round trips.

use anyhow::Result;
use cosched_sim::paper::plot::COLOURS;
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::style::text_anchor::HPos;
use plotters::style::{BLACK, Color, RGBColor, ShapeStyle};

use super::read::{Group, Row};
use crate::picture::{Area, Drawn, picture};

/// In pixels: of a picture, of the names in front of it, and of the figures behind it.
const WIDTH: i32 = 900;
const NAMES: i32 = 300;
const BEHIND: i32 = 80;
/// Of a row of bars, and of a row of histograms.
const BAR: i32 = 24;
const HISTOGRAM: i32 = 52;
/// Below the rows, for the axis.
const AXIS: i32 = 24;
/// Sky blue and orange.
const OURS: RGBColor = COLOURS[5];
const KERNEL: RGBColor = COLOURS[4];

/// A bar for each row of `group`: the median. The thin line is the range, the thick one the quartiles, a circle a run.
pub fn bars(group: &Group) -> Result<String> {
    let height = BAR * group.rows.len() as i32 + AXIS;
    picture((WIDTH as u32, height as u32), |area| {
        let most = group.rows.iter().map(|row| row.rate.max).fold(f64::MIN_POSITIVE, f64::max);
        let x = |value: f64| NAMES + (value / most * f64::from(WIDTH - NAMES - BEHIND)) as i32;
        for (place, row) in (0..).zip(&group.rows) {
            let (top, middle) = (BAR * place, BAR * place + BAR / 2);
            text(area, &row.scheduler, (NAMES - 8, middle), HPos::Right)?;
            let fill = colour(row).mix(if row.doubt.is_some() { 0.3 } else { 1.0 }).filled();
            area.draw(&Rectangle::new([(NAMES, top + 3), (x(row.rate.median), top + BAR - 3)], fill))?;
            let line = |from: f64, to: f64, width| {
                PathElement::new([(x(from), middle), (x(to), middle)], BLACK.stroke_width(width))
            };
            area.draw(&line(row.rate.min, row.rate.max, 1))?;
            if let (Some(q1), Some(q3)) = (row.rate.q1, row.rate.q3) {
                area.draw(&line(q1, q3, 4))?;
            }
            for run in &row.runs {
                area.draw(&Circle::new((x(*run), middle), 3, ShapeStyle::from(BLACK.mix(0.6))))?;
            }
            text(area, &number(row.rate.median), (x(row.rate.max) + 8, middle), HPos::Left)?;
        }
        let bottom = BAR * group.rows.len() as i32;
        text(area, "0", (NAMES, bottom + AXIS / 2), HPos::Left)?;
        text(area, &format!("{} {}/s", number(most), group.unit), (x(most), bottom + AXIS / 2), HPos::Right)
    })
}

/// How long round trips took, for each row that says so; None if none does.
pub fn histograms(group: &Group) -> Result<Option<String>> {
    let rows: Vec<&Row> = group.rows.iter().filter(|row| row.round_trips_by_log2_us.iter().any(|n| *n > 0)).collect();
    let used = |row: &&Row| row.round_trips_by_log2_us.iter().rposition(|n| *n > 0).unwrap_or(0) + 1;
    let Some(buckets) = rows.iter().map(used).max() else { return Ok(None) };
    let wide = (WIDTH - NAMES - BEHIND) / buckets as i32;
    let height = HISTOGRAM * rows.len() as i32 + AXIS;
    let drawn = picture((WIDTH as u32, height as u32), |area| {
        for (place, row) in (0..).zip(&rows) {
            let floor = HISTOGRAM * (place + 1) - 2;
            text(area, &row.scheduler, (NAMES - 8, floor - HISTOGRAM / 2), HPos::Right)?;
            let most = row.round_trips_by_log2_us.iter().copied().max().unwrap_or(1).max(1);
            for (bucket, count) in (0..).zip(&row.round_trips_by_log2_us).filter(|(_, count)| **count > 0) {
                // Whatever happened shows, however rare it was.
                let tall = ((f64::from(HISTOGRAM - 8) * *count as f64 / most as f64) as i32).max(1);
                let left = NAMES + wide * bucket;
                let fill = colour(row).filled();
                area.draw(&Rectangle::new([(left, floor - tall), (left + wide - 1, floor)], fill))?;
            }
            area.draw(&PathElement::new([(NAMES, floor), (NAMES + wide * buckets as i32, floor)], BLACK.mix(0.3)))?;
        }
        let bottom = HISTOGRAM * rows.len() as i32 + AXIS / 2;
        for bucket in (0..buckets as i32).step_by(3) {
            text(area, &length(bucket), (NAMES + wide * (bucket + 1), bottom), HPos::Center)?;
        }
        Ok(())
    })?;
    Ok(Some(drawn))
}

/// The end of a bucket.
fn length(log2_us: i32) -> String {
    let us = 2f64.powi(log2_us);
    match us {
        us if us < 1e3 => format!("{us:.0} us"),
        us if us < 1e6 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.0} s", us / 1e6),
    }
}

/// Three digits, and all before the point.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn colour(row: &Row) -> RGBColor {
    if row.scheduler.starts_with("eevdf") { KERNEL } else { OURS }
}

fn text(area: &Area, words: &str, at: (i32, i32), anchor: HPos) -> Drawn {
    crate::picture::text(area, words, ("sans-serif", 14), at, anchor)
}
