// SPDX-License-Identifier: GPL-2.0-only
//! Draws the panels of a dashboard for Grafana as SVG, each in its place, in its unit, with its legend:
//! `dashboard DASHBOARD ANSWERS >PICTURE`. No part of the program: only the documentation needs it.
//!
//! ANSWERS is what tests/vm/picture-dashboard leaves: the series of each panel, their step, and when the policy changed.

use std::env;
use std::fs;

use anyhow::{Context, Result, bail};
use cosched_bench::picture::{Area, Drawn, picture, text};
use cosched_sim::paper::plot::COLOURS;
use plotters::chart::ChartBuilder;
use plotters::data::float::pretty_print_float;
use plotters::element::{PathElement, Rectangle};
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, FontStyle, IntoTextStyle, RGBColor, TRANSPARENT, WHITE};
use serde::Deserialize;

/// In pixels, and twice what a page shows: a point of a line has whole ones.
const WIDTH: i32 = 2160;
/// Of the dashboard's grid, and of the title above it.
const ROW: i32 = 50;
const COLUMN: i32 = WIDTH / 24;
const HEAD: i32 = 68;
/// Around a panel, and in it.
const ROOM: i32 = 8;
const INSIDE: i32 = 20;
/// Of a legend: its lines, what a name has before it, and what behind it.
const LINE: i32 = 32;
const SAMPLE: i32 = 36;
const SPACE: i32 = 20;

const FONT: (&str, i32) = ("sans-serif", 30);
const LARGE: (&str, i32) = ("sans-serif", 35);
const PAGE: RGBColor = RGBColor(244, 245, 245);
const FRAME: RGBColor = RGBColor(176, 176, 176);
const GRID: RGBColor = RGBColor(228, 228, 228);
const GREY: RGBColor = RGBColor(136, 136, 136);

#[derive(Deserialize)]
struct Dashboard {
    title: String,
    panels: Vec<Panel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Panel {
    title: String,
    grid_pos: Place,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Deserialize)]
struct Place {
    x: i32,
    y: i32,
    w: i32,
    h: i32,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Kind {
    Row,
    Timeseries { field_config: FieldConfig },
}

#[derive(Deserialize)]
struct FieldConfig {
    defaults: Axis,
}

#[derive(Deserialize)]
struct Axis {
    unit: Unit,
    max: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    #[serde(rename = "percentunit")]
    Share,
    #[serde(rename = "s")]
    Seconds,
    Ops,
    Bytes,
    None,
}

impl Unit {
    /// Of an axis that reaches up to `most`: what it shows as 1, and its name.
    fn scale(self, most: f64) -> (f64, &'static str) {
        match self {
            Self::Share => (0.01, "%"),
            Self::Seconds if most >= 1.0 => (1.0, " s"),
            Self::Seconds if most >= 1e-3 => (1e-3, " ms"),
            Self::Seconds => (1e-6, " µs"),
            Self::Ops if most >= 1e3 => (1e3, "K ops/s"),
            Self::Ops => (1.0, " ops/s"),
            Self::Bytes if most >= 1048576.0 => (1048576.0, " MiB"),
            Self::Bytes => (1024.0, " KiB"),
            Self::None => (1.0, ""),
        }
    }
}

#[derive(Deserialize)]
struct Answers {
    changed: f64,
    step: f64,
    series: Vec<Series>,
}

/// With times in seconds, and values as Prometheus writes them.
#[derive(Deserialize)]
struct Series {
    panel: String,
    legend: String,
    points: Vec<(f64, String)>,
}

impl Series {
    fn numbers(&self) -> Result<Vec<(f64, f64)>> {
        let number = |(time, value): &(f64, String)| Ok((*time, value.parse()?));
        let points: Result<Vec<(f64, f64)>> = self.points.iter().map(number).collect();
        let points = points.with_context(|| format!("{}, {}: a value is no number", self.panel, self.legend))?;
        Ok(points.into_iter().filter(|(_, value)| value.is_finite()).collect())
    }
}

/// A series as it is drawn.
struct Curve<'a> {
    name: &'a str,
    points: Vec<(f64, f64)>,
    colour: RGBColor,
}

/// What all charts have in common.
struct Times {
    begin: f64,
    end: f64,
    changed: f64,
    /// The longest time between two points that a line connects.
    gap: f64,
}

fn main() -> Result<()> {
    let [_, dashboard, answers] = &env::args().collect::<Vec<_>>()[..] else {
        bail!("usage: dashboard DASHBOARD ANSWERS >PICTURE");
    };
    let read = |path| fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
    print!("{}", draw(&read(dashboard)?, &read(answers)?)?);
    Ok(())
}

fn draw(dashboard: &str, answers: &str) -> Result<String> {
    let Dashboard { title, panels } = serde_json::from_str(dashboard).context("no dashboard that can be drawn")?;
    let Answers { changed, step, series } = serde_json::from_str(answers).context("no answers to a dashboard")?;
    if let Some(stray) = series.iter().find(|one| panels.iter().all(|panel| panel.title != one.panel)) {
        bail!("the dashboard has no panel '{}'", stray.panel);
    }
    let curves: Vec<Vec<Curve>> = panels.iter().map(|panel| curves(&series, panel)).collect::<Result<_>>()?;
    let seen = || series.iter().flat_map(|one| &one.points).map(|(time, _)| *time);
    let (begin, end) = (seen().fold(f64::INFINITY, f64::min), seen().fold(f64::NEG_INFINITY, f64::max));
    let times = Times { begin, end, changed, gap: 1.5 * step };
    let rows = panels.iter().map(|Panel { grid_pos: place, .. }| place.y + place.h).max().unwrap_or(0);
    picture((WIDTH as u32, (HEAD + ROW * rows) as u32), |area| {
        area.fill(&PAGE)?;
        text(area, &title, ("sans-serif", 40, FontStyle::Bold), (16, HEAD / 2), HPos::Left)?;
        text(area, "dashed: the policy changes", FONT, (WIDTH - 20, HEAD / 2), HPos::Right)?;
        for (panel, curves) in panels.iter().zip(&curves) {
            let Place { x, y, w, h } = panel.grid_pos;
            let area = area.clone().shrink((COLUMN * x, HEAD + ROW * y), (COLUMN * w, ROW * h));
            match &panel.kind {
                Kind::Row => text(&area, &format!("▾ {}", panel.title), LARGE, (16, ROW / 2), HPos::Left)?,
                Kind::Timeseries { field_config } => {
                    let area = area.margin(ROOM, ROOM, ROOM, ROOM);
                    draw_panel(&area, &panel.title, &field_config.defaults, curves, &times)?;
                }
            }
        }
        Ok(())
    })
}

/// Of a panel, without what has no number.
fn curves<'a>(series: &'a [Series], panel: &Panel) -> Result<Vec<Curve<'a>>> {
    let its = series.iter().filter(|one| one.panel == panel.title);
    let named = its.map(|one| Ok((one.legend.as_str(), one.numbers()?))).collect::<Result<Vec<_>>>()?;
    let named = named.into_iter().filter(|(_, points)| !points.is_empty());
    Ok(named.zip(COLOURS.iter().cycle()).map(|((name, points), &colour)| Curve { name, points, colour }).collect())
}

fn size(area: &Area) -> (i32, i32) {
    let (width, height) = area.dim_in_pixel();
    (width as i32, height as i32)
}

fn draw_panel(area: &Area, title: &str, axis: &Axis, curves: &[Curve], times: &Times) -> Drawn {
    let (width, height) = size(area);
    area.fill(&WHITE)?;
    area.draw(&Rectangle::new([(0, 0), (width - 1, height - 1)], FRAME))?;
    text(area, title, ("sans-serif", 30, FontStyle::Bold), (INSIDE, 28), HPos::Left)?;
    if curves.is_empty() {
        return text(area, "No data", ("sans-serif", 30, &GREY), (width / 2, height / 2), HPos::Center);
    }
    let below = draw_legend(&area.margin(0, 16, INSIDE, INSIDE), curves)?;
    draw_chart(&area.margin(66, 16 + below, INSIDE, INSIDE), axis, curves, times)
}

/// At the bottom of `area`, in as many lines as it takes. Returns its height.
fn draw_legend(area: &Area, curves: &[Curve]) -> Drawn<i32> {
    let (width, height) = size(area);
    let style = FONT.into_text_style(area);
    let (mut x, mut line, mut places) = (0, 0, Vec::new());
    for curve in curves {
        let wide = SAMPLE + area.estimate_text_size(curve.name, &style)?.0 as i32;
        if x > 0 && x + wide > width {
            (x, line) = (0, line + 1);
        }
        places.push((x, line));
        x += wide + SPACE;
    }
    for (curve, (x, of)) in curves.iter().zip(places) {
        let y = height - LINE * (line - of) - LINE / 2;
        area.draw(&PathElement::new([(x, y), (x + SAMPLE - 8, y)], curve.colour.stroke_width(6)))?;
        text(area, curve.name, FONT, (x + SAMPLE, y), HPos::Left)?;
    }
    Ok(LINE * (line + 1))
}

fn draw_chart(area: &Area, axis: &Axis, curves: &[Curve], times: &Times) -> Drawn {
    let most = curves.iter().flat_map(|curve| &curve.points).map(|(_, value)| *value).fold(0.0, f64::max);
    let (scale, name) = axis.unit.scale(axis.max.unwrap_or(most));
    // Above the largest value is some room, and what is 0 all the time has an axis all the same.
    let top = axis.max.unwrap_or(if most > 0.0 { 1.05 * most } else { scale }) / scale;
    let minutes = |time: f64| (time - times.begin) / 60.0;
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .x_label_area_size(46)
        .y_label_area_size(132)
        .build_cartesian_2d(0.0..minutes(times.end), 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .bold_line_style(GRID.stroke_width(2))
        .axis_style(TRANSPARENT)
        .set_all_tick_mark_size(7)
        .x_labels(6)
        .y_labels(5)
        .x_label_formatter(&|minute| format!("{} min", pretty_print_float(*minute, false)))
        .y_label_formatter(&|value| match pretty_print_float(*value, false) {
            zero if zero == "0" => zero,
            number => number + name,
        })
        .label_style(FONT)
        .draw()?;
    let change = [0.0, top].map(|value| (minutes(times.changed), value));
    chart.draw_series(DashedLineSeries::new(change, 8, 6, GREY.stroke_width(2)))?;
    for curve in curves {
        for run in curve.points.chunk_by(|one, next| next.0 - one.0 <= times.gap) {
            let points = run.iter().map(|(time, value)| (minutes(*time), value / scale));
            // A point alone is a dot.
            let dot = if run.len() == 1 { 3 } else { 0 };
            chart.draw_series(LineSeries::new(points, curve.colour.filled().stroke_width(3)).point_size(dot))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A row, and below it a panel of times beside one of memory.
    fn dashboard() -> Value {
        let panel = |title: &str, x: i32, unit: &str| {
            json!({ "type": "timeseries", "title": title, "gridPos": { "x": x, "y": 1, "w": 12, "h": 8 },
                    "fieldConfig": { "defaults": { "unit": unit, "min": 0 }, "overrides": [] } })
        };
        let row = json!({ "type": "row", "title": "Node", "gridPos": { "x": 0, "y": 0, "w": 24, "h": 1 } });
        json!({ "title": "all", "panels": [row, panel("Waits", 0, "s"), panel("Memory", 12, "bytes")] })
    }

    fn series(panel: &str, legend: &str, points: &[(i32, &str)]) -> Value {
        json!({ "panel": panel, "legend": legend, "points": points })
    }

    fn drawn(dashboard: &Value, series: &[Value]) -> Result<String> {
        draw(&dashboard.to_string(), &json!({ "changed": 120, "step": 60, "series": series }).to_string())
    }

    fn words(svg: &str) -> Vec<&str> {
        svg.lines().filter(|line| !line.starts_with('<')).collect()
    }

    /// Where a word is.
    fn height(svg: &str, word: &str) -> i32 {
        let text = svg.lines().take_while(|line| *line != word).last().unwrap();
        text.split(" y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    }

    /// The points of each line of a colour, but for the sample in the legend, which comes first.
    fn lines(svg: &str, colour: RGBColor) -> Vec<Vec<(i32, i32)>> {
        let stroke = format!("stroke=\"#{:02X}{:02X}{:02X}\"", colour.0, colour.1, colour.2);
        let of_colour = svg.lines().filter(|line| line.starts_with("<polyline") && line.contains(&stroke));
        let points = of_colour.map(|line| line.split("points=\"").nth(1).unwrap().trim_end_matches("\"/>"));
        let point = |text: &str| text.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).unwrap();
        points.skip(1).map(|points| points.split_whitespace().map(point).collect()).collect()
    }

    #[test]
    fn two_series_have_two_legends_and_their_values() {
        let half = series("Waits", "half <&>", &[(0, "0.02"), (60, "0.04"), (120, "0"), (240, "0.04")]);
        let most = series("Waits", "most", &[(0, "0.08"), (60, "0.08"), (120, "0.08"), (180, "0.08"), (240, "0.08")]);
        let svg = drawn(&dashboard(), &[half, most]).unwrap();
        for word in ["all", "▾ Node", "Waits", "half &lt;&amp;&gt;", "most", "0", "80 ms", "0 min", "4 min"] {
            assert!(words(&svg).contains(&word), "{word} is not in {:?}", words(&svg));
        }
        let (half, most) = (lines(&svg, COLOURS[0]), lines(&svg, COLOURS[1]));
        assert_eq!((half.len(), most.len()), (2, 1), "a line ends before a gap");
        let is_at = |share: f64, y: i32| {
            let (floor, eighty) = (f64::from(height(&svg, "0")), f64::from(height(&svg, "80 ms")));
            assert!((f64::from(y) - floor - (eighty - floor) * share).abs() <= 1.0, "{share} {y} {floor} {eighty}");
        };
        is_at(1.0, most[0][0].1);
        is_at(0.25, half[0][0].1);
        is_at(0.5, half[0][1].1);
        is_at(0.0, half[0][2].1);
        is_at(0.5, half[1][0].1);
        let across: Vec<i32> = most[0].windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(across.iter().all(|wide| (wide - across[0]).abs() <= 1 && *wide > 100), "{across:?}");
        assert!(half[0][0].0 == most[0][0].0 && half[1][0].0 == most[0][4].0);
        assert_eq!(svg.matches("<circle").count(), 1, "the point behind the gap is a dot");
    }

    #[test]
    fn a_panel_without_an_answer_says_so() {
        let memory = series("Memory", "maps", &[(0, "0"), (60, "6291456")]);
        let svg = drawn(&dashboard(), &[series("Waits", "half", &[(0, "NaN"), (60, "NaN")]), memory]).unwrap();
        let said = words(&svg);
        assert_eq!(said.iter().filter(|word| **word == "No data").count(), 1, "{said:?}");
        assert!(said.contains(&"Waits") && said.contains(&"maps") && said.contains(&"6 MiB"), "{said:?}");
        assert!(!said.contains(&"half") && !svg.contains("NaN"), "{said:?}");
        assert_eq!(words(&drawn(&dashboard(), &[]).unwrap()).iter().filter(|word| **word == "No data").count(), 2);
    }

    #[test]
    fn the_same_answers_give_the_same_picture() {
        let answers = [series("Waits", "half", &[(0, "1"), (60, "2")])];
        assert_eq!(drawn(&dashboard(), &answers).unwrap(), drawn(&dashboard(), &answers).unwrap());
    }

    #[test]
    fn what_cannot_be_drawn_is_named() {
        let refused = |dashboard: &Value, series: &[Value]| format!("{:#}", drawn(dashboard, series).unwrap_err());
        assert!(refused(&dashboard(), &[series("Wait", "half", &[])]).contains("no panel 'Wait'"));
        assert!(refused(&dashboard(), &[series("Waits", "half", &[(0, "x")])]).contains("Waits, half: a value is no"));
        for (place, wrong) in [("/panels/1/type", "heatmap"), ("/panels/1/fieldConfig/defaults/unit", "days")] {
            let mut dashboard = dashboard();
            *dashboard.pointer_mut(place).unwrap() = json!(wrong);
            assert!(refused(&dashboard, &[]).contains(&format!("unknown variant `{wrong}`")));
        }
    }

    #[test]
    fn a_long_legend_has_lines_below_the_chart() {
        let all: Vec<Value> =
            (0..9).map(|n| series("Waits", &format!("node0 /batch-{n}"), &[(0, "1"), (60, "2")])).collect();
        let svg = drawn(&dashboard(), &all).unwrap();
        let y = |word| height(&svg, word);
        assert!(y("0 min") < y("node0 /batch-0") && y("node0 /batch-0") < y("node0 /batch-8"));
        assert_eq!(lines(&svg, COLOURS[0]).len(), 3, "two lines and a sample, since colours come again");
    }
}
