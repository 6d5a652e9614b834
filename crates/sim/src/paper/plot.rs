// SPDX-License-Identifier: GPL-2.0-only
//! Figures as pictures: SVG, and PNG for what cannot show that.
//!
//! Curves are ours, with their confidence intervals; circles are the paper's numbers. Both axes of the picture are
//! linear, and what is logarithmic is the number on them: so one kind of chart does for all.

use anyhow::{Result, anyhow};
use plotters::chart::{ChartBuilder, ChartContext, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::prelude::{DrawingBackend, SVGBackend};
use plotters::series::LineSeries;
use plotters::style::{BLACK, Color, IntoFont, RGBColor, WHITE};

use super::figure::{Axis, Figure, Point, Series, number};
use super::raster::Raster;

/// In pixels.
const HEIGHT: u32 = 600;
/// Of one graph, two, three.
const WIDTHS: [u32; 3] = [960, 1200, 1500];
/// What the key takes above bars, as a share of the whole bars.
const KEY: f64 = 0.3;
/// Eight colours that the colour-blind can tell apart (Okabe and Ito 2008).
pub const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 60),
];

type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// The figure as SVG.
///
/// # Errors
/// If it cannot be drawn, which no figure of this program makes happen.
pub fn svg(figure: &Figure) -> Result<String> {
    let mut text = String::new();
    draw(figure, &SVGBackend::with_string(&mut text, size(figure)).into_drawing_area())?;
    Ok(text)
}

/// The figure as PNG.
///
/// # Errors
/// As [`svg`].
pub fn png(figure: &Figure) -> Result<Vec<u8>> {
    let (width, height) = size(figure);
    let mut pixels = vec![255; width as usize * height as usize * 3];
    draw(figure, &Raster { pixels: &mut pixels, size: (width, height) }.into_drawing_area())?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(file)
}

/// Where a value is on its axis.
fn place(axis: &Axis, value: f64) -> f64 {
    if axis.log { value.log10() } else { value }
}

/// From the least to the largest of the places, with some room on both sides; a linear axis of what is never negative
/// begins at 0.
fn range(axis: &Axis, places: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, most) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), place| (a.min(place), b.max(place)));
    let room = if most > least { (most - least) * 0.04 } else { 0.5 };
    let begin = if !axis.log && least >= 0.0 { 0.0 } else { least - room };
    begin..most + room
}

fn points(figure: &Figure) -> impl Iterator<Item = &Point> {
    figure.series.iter().flat_map(|series| &series.points)
}

/// The graphs that the figure consists of, in their order.
fn panels(figure: &Figure) -> Vec<&str> {
    let all = if figure.series.is_empty() { &figure.bars } else { &figure.series };
    let mut panels: Vec<&str> = all.iter().map(|series| series.panel.as_str()).collect();
    panels.dedup();
    panels
}

fn size(figure: &Figure) -> (u32, u32) {
    (WIDTHS[panels(figure).len().min(3) - 1], HEIGHT)
}

fn draw<B: DrawingBackend>(figure: &Figure, area: &DrawingArea<B, Shift>) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| anyhow!("{}: it cannot be drawn: {error}", figure.name);
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let title = format!("{}: {}", figure.name, figure.title);
    let area = area.titled(&title, ("sans-serif", 22).into_font()).map_err(|error| failed(&error))?;
    let panels = panels(figure);
    for (panel, area) in panels.iter().zip(area.split_evenly((1, panels.len()))) {
        let draw = if figure.series.is_empty() { draw_bars } else { draw_panel };
        draw(figure, panel, &area).map_err(|error| failed(&error))?;
    }
    area.present().map_err(|error| failed(&error))
}

fn draw_panel<B: DrawingBackend>(figure: &Figure, panel: &str, area: &DrawingArea<B, Shift>) -> Drawn<B> {
    let values = |point: &Point| [Some(point.y), point.paper].into_iter().flatten().collect::<Vec<_>>();
    let x = range(&figure.x, points(figure).map(|point| place(&figure.x, point.x)));
    let y = range(&figure.y, points(figure).flat_map(values).map(|value| place(&figure.y, value)));
    let mut chart = ChartBuilder::on(area)
        .caption(panel, ("sans-serif", 16).into_font())
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(66)
        .build_cartesian_2d(x, y)?;
    axes(figure, &mut chart)?;
    let series = figure.series.iter().filter(|series| series.panel == panel);
    for (series, colour) in series.zip(COLOURS.iter().cycle()) {
        curve(figure, &mut chart, series, *colour)?;
    }
    key(&mut chart)
}

/// Bars side by side, and after each group with one g, which is up to the comma of their names, a gap.
fn draw_bars<B: DrawingBackend>(figure: &Figure, panel: &str, area: &DrawingArea<B, Shift>) -> Drawn<B> {
    let bars: Vec<&Series> = figure.bars.iter().filter(|bar| bar.panel == panel).collect();
    let group = |bar: &Series| bar.name.split(',').next().map(str::to_string);
    let mut lefts = Vec::new();
    for (i, bar) in bars.iter().enumerate() {
        let left: f64 = lefts.last().map_or(0.5, |left| left + 1.0);
        lefts.push(if i > 0 && group(bars[i - 1]) != group(bar) { left + 1.0 } else { left });
    }
    let mut chart = ChartBuilder::on(area)
        .caption(panel, ("sans-serif", 16).into_font())
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(66)
        .build_cartesian_2d(0.0..lefts.last().map_or(1.0, |left| left + 1.5), 0.0..1.0 + KEY)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(0)
        .y_labels(10)
        .y_label_formatter(&|share| if *share > 1.0 { String::new() } else { number(*share) })
        .x_desc(figure.x.label.as_str())
        .y_desc(figure.y.label.as_str())
        .label_style(("sans-serif", 14).into_font())
        .axis_desc_style(("sans-serif", 14).into_font())
        .draw()?;
    let parts = bars.first().map_or(0, |bar| bar.points.len());
    for (part, colour) in (0..parts).zip(COLOURS.iter().cycle()) {
        let name = bars[0].points[part].column.clone().unwrap_or_default();
        let rectangle = |(bar, left): (&&Series, &f64)| {
            let below: f64 = bar.points[..part].iter().map(|point| point.y).sum();
            Rectangle::new([(*left, below), (left + 0.9, below + bar.points[part].y)], colour.filled())
        };
        chart
            .draw_series(bars.iter().zip(&lefts).map(rectangle))?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled()));
    }
    key(&mut chart)
}

fn key<'a, B: DrawingBackend + 'a>(chart: &mut Chart<'a, B>) -> Drawn<B> {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14).into_font())
        .draw()
}

type Drawn<B> = std::result::Result<(), plotters::drawing::DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn axes<B: DrawingBackend>(figure: &Figure, chart: &mut Chart<'_, B>) -> Drawn<B> {
    let columns: Vec<&str> =
        figure.series.first().map_or(vec![], |s| s.points.iter().filter_map(|p| p.column.as_deref()).collect());
    let on = |axis: &Axis, value: f64| number(if axis.log { 10f64.powf(value) } else { value });
    let x_label = |value: &f64| match columns.get(value.round() as usize) {
        Some(column) if (value - value.round()).abs() < 1e-6 => (*column).to_string(),
        _ if columns.is_empty() => on(&figure.x, *value),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .max_light_lines(0)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(if columns.is_empty() { 10 } else { columns.len() })
        .y_labels(10)
        .x_desc(figure.x.label.as_str())
        .y_desc(figure.y.label.as_str())
        .x_label_formatter(&x_label)
        .y_label_formatter(&|value| on(&figure.y, *value))
        .label_style(("sans-serif", 14).into_font())
        .axis_desc_style(("sans-serif", 16).into_font())
        .draw()
}

fn curve<B: DrawingBackend>(figure: &Figure, chart: &mut Chart<'_, B>, series: &Series, colour: RGBColor) -> Drawn<B> {
    let at = |x: f64, y: f64| (place(&figure.x, x), place(&figure.y, y));
    let line = series.points.iter().map(|point| at(point.x, point.y));
    chart
        .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
        .label(series.name.as_str())
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    // An interval that reaches down to 0 has no place on a logarithmic axis.
    let intervals = series.points.iter().filter_map(|point| {
        let ci90 = point.ci90.filter(|ci90| !figure.y.log || point.y > *ci90)?;
        let ends = [at(point.x, point.y - ci90), at(point.x, point.y + ci90)];
        Some(PathElement::new(ends.to_vec(), colour))
    });
    chart.draw_series(intervals)?;
    let theirs = series.points.iter().filter_map(|point| Some(Circle::new(at(point.x, point.paper?), 4, colour)));
    chart.draw_series(theirs)?;
    Ok(())
}
