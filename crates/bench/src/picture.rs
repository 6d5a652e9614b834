// SPDX-License-Identifier: GPL-2.0-only
//! Pictures as SVG, and the words in them: what the charts of the report and those of a dashboard have in common.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::prelude::SVGBackend;
use plotters::style::IntoTextStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A picture, or a part of it.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Whether something could be drawn.
pub type Drawn<T = ()> = std::result::Result<T, DrawingAreaErrorKind<std::io::Error>>;

/// A picture of that many pixels.
///
/// # Errors
/// If `draw` fails.
pub fn picture(size: (u32, u32), draw: impl FnOnce(&Area) -> Drawn) -> Result<String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    draw(&area).and_then(|()| area.present()).map_err(|error| anyhow!("a picture cannot be drawn: {error}"))?;
    drop(area);
    Ok(svg)
}

/// Words whose middle is as high as `at`, and which begin, end or have their middle there.
///
/// # Errors
/// If the picture takes no text.
pub fn text<'a>(area: &Area, words: &str, style: impl IntoTextStyle<'a>, at: (i32, i32), anchor: HPos) -> Drawn {
    area.draw_text(words, &style.into_text_style(area).pos(Pos::new(anchor, VPos::Center)), at)
}
