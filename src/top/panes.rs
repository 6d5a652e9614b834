// SPDX-License-Identifier: GPL-2.0-only
//! The tables of jobs and of reasons, and the lanes of CPUs.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Row, Table};

use super::figures::{Job, Reason};
use super::lanes::Window;
use super::letters::NONE;
use super::screen::Screen;
use super::theme::{Theme, number};
use crate::trace::lines::printable;
use crate::trace::runs::Run;

/// F outside of this is marked, as the alert rules have it.
const FAIR: std::ops::RangeInclusive<f64> = 0.8..=1.2;
/// Columns of the figures of a job.
const FIGURES: [u16; 5] = [5, 5, 5, 6, 8];
/// "cpu 1234 "
const CPU_NAME: u16 = 9;
/// A command's name, and a process's number.
const TASK: u16 = 24;

/// The jobs, as many as there is room for.
pub fn jobs(frame: &mut Frame, area: Rect, screen: &Screen, theme: Theme) {
    let room = usize::from(area.height - 1);
    let all = &screen.figures.jobs;
    let title = match all.len() {
        n if n > room => format!("JOB ({room} of {n})"),
        _ => "JOB".into(),
    };
    let right = |text: &str| Text::from(text.to_string()).right_aligned();
    let heads = ["CPUS", "F", "F NOW", "WAIT %", "BOOSTS/S"].map(right);
    let header = Row::new([Text::from(""), Text::from(title)].into_iter().chain(heads)).style(theme.heading());
    // A letter before the name, and a space between two columns.
    let name_columns = area.width - 1 - FIGURES.iter().sum::<u16>() - (FIGURES.len() as u16 + 1);
    let widths = [1, name_columns].into_iter().chain(FIGURES).map(Constraint::Length);
    let rows = all.iter().take(room).map(|job| row(job, usize::from(name_columns), screen, theme));
    frame.render_widget(Table::new(rows, widths).header(header), area);
}

fn row(job: &Job, name_columns: usize, screen: &Screen, theme: Theme) -> Row<'static> {
    let letter = screen.letters.of(&job.name);
    let right = |text: String, style: Style| Text::styled(text, style).right_aligned();
    let plain = |text: String| right(text, Style::new());
    let fairness = |ratio: Option<f64>| match ratio {
        None => plain("-".into()),
        Some(f) => right(format!("{f:.2}"), if FAIR.contains(&f) { Style::new() } else { theme.alert() }),
    };
    Row::new([
        Text::styled(letter.to_string(), theme.job(letter)),
        Text::from(end_of(&printable(&job.name), name_columns)),
        plain(format!("{:.2}", job.cpus)),
        fairness(job.fairness),
        fairness(job.fairness_now),
        plain(job.waiting.map_or("-".into(), |waiting| format!("{:.1}", 100.0 * waiting))),
        plain(number(job.boosts)),
    ])
}

/// The end of `name`, which tells more than the beginning: paths of cgroups begin alike.
fn end_of(name: &str, columns: usize) -> String {
    let length = name.chars().count();
    match length > columns {
        true => "<".to_string() + &name.chars().skip(length + 1 - columns).collect::<String>(),
        false => name.into(),
    }
}

/// How often demands were granted and denied, by reason.
pub fn reasons(frame: &mut Frame, area: Rect, screen: &Screen, theme: Theme) {
    let width = usize::from(area.width);
    let line = |reason: &Reason| {
        let kind = if reason.grants { "granted" } else { "denied" };
        Line::from(format!("{kind:<8}{:<12}{:>2$}", reason.name, number(reason.rate), width - 20))
    };
    let heading = Line::styled(format!("{:<18}{:>2$}", "BOOSTS BY REASON", "/S", width - 18), theme.heading());
    let none = || Line::from("no demand yet");
    let mut lines: Vec<Line> = [heading].into_iter().chain(screen.figures.reasons.iter().map(line)).collect();
    if lines.len() == 1 {
        lines.push(none());
    }
    frame.render_widget(Text::from(lines), area);
}

/// A lane for each CPU.
pub fn lanes(frame: &mut Frame, area: Rect, screen: &Screen, theme: Theme) {
    let window = match &screen.lanes {
        Ok(window) => window,
        Err(why) => {
            let lines =
                vec![Line::styled("CPUS", theme.heading()), Line::from(format!("no lanes: {}", printable(why)))];
            return frame.render_widget(Text::from(lines), area);
        }
    };
    let room = usize::from(area.height - 1);
    let first = screen.first_cpu.min(screen.cpus.len().saturating_sub(room));
    let shown: Vec<u32> = screen.cpus.iter().copied().skip(first).take(room).collect();
    let which = match screen.cpus.len() {
        n if n > room => format!("CPUS {} to {} of {n}", first + 1, first + shown.len()),
        _ => "CPUS".into(),
    };
    let seconds = window.seconds();
    let heading =
        format!("{which}, last {seconds:.1} s: a letter is the job that ran, a capital by a boost, a dot none");
    let lines = shown.iter().map(|&cpu| lane(cpu, area.width, window, screen, theme));
    let lines: Vec<Line> = [Line::styled(heading, theme.heading())].into_iter().chain(lines).collect();
    frame.render_widget(Text::from(lines), area);
}

fn lane(cpu: u32, width: u16, window: &Window, screen: &Screen, theme: Theme) -> Line<'static> {
    let strip = window.strip(cpu, usize::from(width - CPU_NAME - TASK - 1), &screen.letters);
    let mut spans = vec![Span::from(format!("{:<1$}", format!("cpu {cpu}"), usize::from(CPU_NAME)))];
    for part in strip.split_inclusive(|_| true) {
        let letter = part.chars().next().unwrap_or(NONE);
        spans.push(Span::styled(part.to_string(), theme.job(letter)));
    }
    spans.push(Span::from(format!(" {}", window.current(cpu).map_or(String::new(), task))));
    Line::from(spans)
}

fn task(run: &Run) -> String {
    format!("{} {}", printable(&run.comm), run.pid)
}
