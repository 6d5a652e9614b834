// SPDX-License-Identifier: GPL-2.0-only
//! A picture of pixels with letters of its own, so that no font of the machine is needed and the same picture comes out
//! everywhere: 8 by 8 pixels each, doubled where the text is large.

use std::convert::Infallible;

use font8x8::{BASIC_FONTS, UnicodeFonts};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendTextStyle, DrawingBackend, DrawingErrorKind};

const GLYPH: i32 = 8;

/// RGB pixels, white at first.
pub struct Raster<'a> {
    /// Three bytes a pixel, by rows from the top.
    pub pixels: &'a mut [u8],
    /// Width and height.
    pub size: (u32, u32),
}

/// How many pixels wide each dot of a letter is.
fn dot(size: f64) -> i32 {
    if size >= 22.0 { 2 } else { 1 }
}

impl DrawingBackend for Raster<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn present(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Result<(), DrawingErrorKind<Infallible>> {
        let (width, height) = self.size;
        if x < 0 || y < 0 || x >= width as i32 || y >= height as i32 {
            return Ok(());
        }
        let place = (y as usize * width as usize + x as usize) * 3;
        let (red, green, blue) = color.rgb;
        for (old, new) in self.pixels[place..place + 3].iter_mut().zip([red, green, blue]) {
            *old = (f64::from(*old) * (1.0 - color.alpha) + f64::from(new) * color.alpha).round() as u8;
        }
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        let dot = dot(style.size());
        let (width, height) = (text.chars().count() as i32 * GLYPH * dot, GLYPH * dot);
        let left = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Center => -width / 2,
            HPos::Right => -width,
        };
        let top = match style.anchor().v_pos {
            VPos::Top => 0,
            VPos::Center => -height / 2,
            VPos::Bottom => -height,
        };
        for (i, letter) in text.chars().enumerate() {
            let rows = BASIC_FONTS.get(letter).or_else(|| BASIC_FONTS.get('?')).unwrap_or_default();
            for dy in 0..GLYPH * dot {
                for dx in 0..GLYPH * dot {
                    // The lowest bit is the leftmost dot.
                    if rows[(dy / dot) as usize] >> (dx / dot) & 1 == 1 {
                        let place = (left + i as i32 * GLYPH * dot + dx, top + dy);
                        let (turned_x, turned_y) = style.transform().transform(place.0, place.1);
                        self.draw_pixel((x + turned_x, y + turned_y), style.color())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let side = (GLYPH * dot(style.size())) as u32;
        Ok((text.chars().count() as u32 * side, side))
    }
}
