// SPDX-License-Identifier: GPL-2.0-only
//! How the screen looks: its colours, and the form of its numbers.

use ratatui::style::{Color, Modifier, Style};

/// How things look, with colours or without.
#[derive(Clone, Copy)]
pub struct Theme {
    pub colours: bool,
}

/// Of jobs, by their letters.
const JOB_COLOURS: [Color; 6] =
    [Color::Cyan, Color::Green, Color::Magenta, Color::Blue, Color::LightRed, Color::LightYellow];

impl Theme {
    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// The headings of tables.
    pub fn heading(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// What somebody ought to look at.
    pub fn alert(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// The job with this letter, small or capital.
    pub fn job(self, letter: char) -> Style {
        if !letter.is_ascii_alphabetic() {
            return Style::new();
        }
        let place = (letter.to_ascii_lowercase() as usize - 'a' as usize) % JOB_COLOURS.len();
        let style = self.colour(JOB_COLOURS[place]);
        if letter.is_ascii_uppercase() { style.add_modifier(Modifier::BOLD) } else { style }
    }
}

/// A number that may be large, in at most six characters.
pub fn number(value: f64) -> String {
    match value {
        value if value < 999.95 => format!("{value:.1}"),
        value if value < 99_999.5 => format!("{value:.0}"),
        value if value < 9_999_500.0 => format!("{:.0}k", value / 1e3),
        value => format!("{:.0}M", value / 1e6),
    }
}
