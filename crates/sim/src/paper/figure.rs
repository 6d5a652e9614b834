// SPDX-License-Identifier: GPL-2.0-only
//! A figure or table of a paper, as it comes out here, with the paper's numbers where the text has them.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::stats::Estimate;

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// Whether it is logarithmic; then all values on it are above 0.
    pub log: bool,
}

/// A point of a curve, or a cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its place on the x axis.
    pub x: f64,
    /// Its column, in a table.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<String>,
    /// What came out here.
    pub y: f64,
    /// Half the width of its 90% confidence interval; none of what is computed or ran once.
    pub ci90: Option<f64>,
    /// What the paper has.
    pub paper: Option<f64>,
    /// How many iterations each job had, where that goes by the interval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub iterations: Option<u32>,
}

impl Point {
    /// A point of a curve.
    pub fn new(x: f64, y: Estimate) -> Point {
        Point { x, column: None, y: y.mean, ci90: y.ci90, paper: None, iterations: None }
    }

    /// How far this is off, as a share of the paper's number; none if there is none.
    pub fn error(&self) -> Option<f64> {
        self.paper.map(|paper| self.y / paper - 1.0)
    }
}

/// A curve, or the row of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// In which of several graphs it is; empty, if there is one.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub panel: String,
    /// What tells it from the others.
    pub name: String,
    /// In the order of x.
    pub points: Vec<Point>,
}

/// How the paper's number is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sense {
    /// That much.
    About,
    /// No more.
    AtMost,
    /// No less.
    AtLeast,
}

/// A number that is off by no more than this share is as the paper has it, unless it says what decides.
pub const CLOSE: f64 = 0.25;

/// Whether something is as the paper has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is, wherever in its interval it may be.
    Holds,
    /// One end of its interval holds and the other does not.
    Open,
    /// It is not.
    Fails,
}

/// From where to where something holds. An end that is missing is nowhere.
pub type Bounds = [Option<f64>; 2];

/// Whether what is somewhere from `ours` less `ci90` to `ours` and `ci90` is inside the bounds.
fn verdict([low, high]: Bounds, ours: f64, ci90: Option<f64>) -> Verdict {
    let inside = |value: f64| low.is_none_or(|low| value >= low) && high.is_none_or(|high| value <= high);
    let ci90 = ci90.unwrap_or(0.0);
    let (least, most) = (ours - ci90, ours + ci90);
    let apart = low.is_some_and(|low| most < low) || high.is_some_and(|high| least > high);
    match (inside(least) && inside(most), apart) {
        (true, _) => Verdict::Holds,
        (_, true) => Verdict::Fails,
        // It may be inside and outside. Without an interval that cannot be.
        _ => Verdict::Open,
    }
}

/// A number in the paper's text, and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// What is counted, with its unit.
    pub what: String,
    /// How the paper's number is meant.
    pub sense: Sense,
    /// The paper's.
    pub paper: f64,
    /// Ours.
    pub ours: f64,
    /// Half the width of its 90% confidence interval; none of what is computed or ran once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ci90: Option<f64>,
    /// From where to where it holds, if that is not what is [`CLOSE`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub holds: Option<Bounds>,
}

impl Claim {
    /// The paper says that `what` is about `paper`.
    pub fn about(what: impl Into<String>, paper: f64, ours: impl Into<Estimate>) -> Claim {
        let Estimate { mean, ci90 } = ours.into();
        Claim { what: what.into(), sense: Sense::About, paper, ours: mean, ci90, holds: None }
    }

    /// The paper says that `what` is no more than `paper`.
    pub fn at_most(what: impl Into<String>, paper: f64, ours: impl Into<Estimate>) -> Claim {
        Claim { sense: Sense::AtMost, ..Claim::about(what, paper, ours) }
    }

    /// The paper says that `what` is no less than `paper`.
    pub fn at_least(what: impl Into<String>, paper: f64, ours: impl Into<Estimate>) -> Claim {
        Claim { sense: Sense::AtLeast, ..Claim::about(what, paper, ours) }
    }

    /// It holds from `low` to `high`.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Claim {
        Claim { holds: Some([Some(low), Some(high)]), ..self }
    }

    /// It holds on the right side of its bound, and nowhere else.
    #[must_use]
    pub fn strictly(self) -> Claim {
        Claim { holds: Some(self.within(0.0)), ..self }
    }

    /// Where ours is if it is beyond the paper's number by no more than `share` of it.
    fn within(&self, share: f64) -> Bounds {
        let (low, high) = (Some(self.paper * (1.0 - share)), Some(self.paper * (1.0 + share)));
        match self.sense {
            Sense::About => [low, high],
            Sense::AtMost => [None, high],
            Sense::AtLeast => [low, None],
        }
    }

    /// Whether it holds.
    pub fn verdict(&self) -> Verdict {
        verdict(self.holds.unwrap_or_else(|| self.within(CLOSE)), self.ours, self.ci90)
    }

    /// Ours as text, with the interval if it has one.
    pub fn ours_text(&self) -> String {
        with_interval(self.ours, self.ci90)
    }

    /// How far ours is off, as a share of the paper's: 0 on the right side of a bound.
    pub fn error(&self) -> f64 {
        let error = self.ours / self.paper - 1.0;
        match self.sense {
            Sense::About => error,
            Sense::AtMost => error.max(0.0),
            Sense::AtLeast => error.min(0.0),
        }
    }

    /// The paper's number as text.
    pub fn paper_text(&self) -> String {
        let sense = match self.sense {
            Sense::About => "",
            Sense::AtMost => "at most ",
            Sense::AtLeast => "at least ",
        };
        format!("{sense}{}", number(self.paper))
    }
}

/// A figure or table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// As `sim paper` knows it.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The x axis.
    pub x: Axis,
    /// The y axis.
    pub y: Axis,
    /// What is in it.
    pub series: Vec<Series>,
    /// Bars, each of what the CPUs' time went to, with a column for each part.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub bars: Vec<Series>,
    /// What the paper's text says of it.
    pub claims: Vec<Claim>,
    /// How far a cell may be from the paper's, in its unit; if there is nothing here, it may be [`CLOSE`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub near: Option<f64>,
    /// How it was made: seed, runs, lengths.
    pub made: String,
}

impl Figure {
    /// How far the points are off that have a number of the paper, in the order of the size of that: as a share of the
    /// paper's, or in its unit where that decides.
    pub fn errors(&self) -> Vec<f64> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let error = |point: &Point| match self.near {
            Some(_) => point.paper.map(|paper| point.y - paper),
            None => point.error(),
        };
        let mut errors: Vec<f64> = points.filter_map(|point| error(point).map(f64::abs)).collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    /// How many of the cells and of the claims hold, and of how many. Of a cell its mean decides.
    pub fn verdicts(&self) -> [usize; 2] {
        let errors = self.errors();
        let near = errors.iter().filter(|error| **error <= self.near.unwrap_or(CLOSE)).count();
        let claims = self.claims.iter().filter(|claim| claim.verdict() == Verdict::Holds).count();
        [near + claims, errors.len() + self.claims.len()]
    }

    /// The bars alone, as parts of a whole that are set on each other.
    pub fn of_bars(&self) -> Figure {
        let axis = |label: &str| Axis { label: label.into(), log: false };
        Figure {
            name: format!("{}-time", self.name),
            title: format!("{}: the time of the CPUs", self.title),
            x: axis("g from fine to coarse, and in each v from 0 to 2 g"),
            y: axis("share of the time"),
            series: vec![],
            bars: self.bars.clone(),
            claims: vec![],
            near: None,
            made: self.made.clone(),
        }
    }

    /// As CSV: a line for each point, each part of a bar and each claim.
    pub fn csv(&self) -> String {
        let mut csv = String::from("kind,panel,name,x,column,ours,ci90,paper,sense,error,iterations\n");
        let text = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let kinds = [("point", &self.series), ("part", &self.bars)];
        for (kind, series) in kinds.into_iter().flat_map(|(kind, all)| all.iter().map(move |series| (kind, series))) {
            let (panel, name) = (quoted(&series.panel), quoted(&series.name));
            for point in &series.points {
                let Point { x, column, y, ci90, paper, iterations } = point;
                let column = quoted(column.as_deref().unwrap_or(""));
                let (ci90, sense) = (text(*ci90), if paper.is_some() { "about" } else { "" });
                let (paper, error, iterations) = (text(*paper), text(point.error()), text(iterations.map(f64::from)));
                let _ =
                    writeln!(csv, "{kind},{panel},{name},{x},{column},{y},{ci90},{paper},{sense},{error},{iterations}");
            }
        }
        for claim in &self.claims {
            let sense = match claim.sense {
                Sense::About => "about",
                Sense::AtMost => "at-most",
                Sense::AtLeast => "at-least",
            };
            let (what, error, ci90) = (quoted(&claim.what), claim.error(), text(claim.ci90));
            let _ = writeln!(csv, "claim,,{what},,,{},{ci90},{},{sense},{error},", claim.ours, claim.paper);
        }
        csv
    }
}

/// A field of CSV (RFC 4180).
pub fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

/// A number as a table has it: three digits that count.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.0995 => format!("{value:.2}"),
        size if size >= 0.000_995 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

/// The same with half the width of its interval, to the digits that the number has.
pub fn with_interval(value: f64, ci90: Option<f64>) -> String {
    let text = number(value);
    let Some(ci90) = ci90.filter(|_| !text.contains('e')) else { return text };
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    format!("{text} ± {ci90:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_count_on_the_wrong_side_only() {
        let close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        close(Claim::about("x", 2.0, 1.5).error(), -0.25);
        close(Claim::at_most("x", 2.0, 1.5).error(), 0.0);
        close(Claim::at_most("x", 2.0, 2.5).error(), 0.25);
        close(Claim::at_least("x", 2.0, 2.5).error(), 0.0);
        close(Claim::at_least("x", 2.0, 1.0).error(), -0.5);
    }

    #[test]
    fn an_interval_decides_or_leaves_it_open() {
        let of = |mean, ci90| Estimate { mean, ci90: Some(ci90) };
        let verdict = |ours: Estimate| Claim::at_most("x", 1.0, ours).strictly().verdict();
        assert_eq!(verdict(of(0.9, 0.05)), Verdict::Holds);
        assert_eq!(verdict(of(0.9, 0.2)), Verdict::Open);
        assert_eq!(verdict(of(1.1, 0.2)), Verdict::Open);
        assert_eq!(verdict(of(1.1, 0.05)), Verdict::Fails);
        let between = |ours: Estimate| Claim::about("x", 0.77, ours).between(0.7, 0.8).verdict();
        assert_eq!(between(of(0.75, 0.01)), Verdict::Holds);
        // Wider than what it is to be in.
        assert_eq!(between(of(0.75, 0.2)), Verdict::Open);
        assert_eq!(between(of(0.65, 0.02)), Verdict::Fails);
        assert_eq!(Claim::at_most("x", 1.0, 1.2).verdict(), Verdict::Holds);
        assert_eq!(Claim::at_most("x", 1.0, 1.3).verdict(), Verdict::Fails);
    }

    #[test]
    fn an_interval_has_the_digits_of_its_number() {
        assert_eq!(with_interval(12.34, Some(0.456)), "12.3 ± 0.5");
        assert_eq!(with_interval(592.3, Some(70.2)), "592 ± 70");
        assert_eq!(with_interval(0.5, None), "0.50");
    }

    #[test]
    fn fields_with_commas_and_quotes_are_one_field() {
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(quoted("plain"), "plain");
    }
}
