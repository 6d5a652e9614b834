// SPDX-License-Identifier: GPL-2.0-only
//! From a [`Screen`] to widgets, and nothing else: no clock, no file, no environment.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, List, ListState, Paragraph, Sparkline, Wrap};

use super::panes;
use super::screen::Screen;
use super::theme::{Theme, number};
use crate::control::commands::policy_line;
use crate::trace::lines::printable;
use cosched_rules::presets;

/// What a terminal must have at least.
const LEAST: (u16, u16) = (80, 24);
/// Lines above the tables.
const HEAD: u16 = 6;
/// Columns of the table of reasons, with the space before it.
const REASONS: u16 = 27;

/// Columns of the names of presets.
const PRESET: u16 = 12;

/// Draws all of it.
pub fn draw(frame: &mut Frame, screen: &Screen) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (width, height) = LEAST;
        return frame.render_widget(format!("too small: {width} columns and {height} lines are needed"), area);
    }
    let theme = Theme { colours: screen.colours };
    let body = area.height - HEAD - 1;
    let lanes = (screen.cpus.len() as u16).saturating_add(1).clamp(2, body / 2);
    let rows = |from: u16, height: u16| Rect::new(area.x, area.y + from, area.width, height);
    let tables = rows(HEAD, body - lanes);
    let (jobs, reasons) = (area.width - REASONS, REASONS - 2);

    head(frame, rows(0, HEAD), screen, theme);
    panes::jobs(frame, Rect { width: jobs, ..tables }, screen, theme);
    panes::reasons(frame, Rect { x: area.x + jobs + 2, width: reasons, ..tables }, screen, theme);
    panes::lanes(frame, rows(HEAD + body - lanes, lanes), screen, theme);
    foot(frame, rows(area.height - 1, 1), screen, theme);
    if let Some(place) = screen.choosing {
        choose(frame, rows(HEAD - 1, body), place, theme);
    }
}

/// A length of time.
fn length(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1e-3 => format!("{:.0} us", 1e6 * seconds),
        seconds if seconds < 1.0 => format!("{:.1} ms", 1e3 * seconds),
        seconds => format!("{seconds:.1} s"),
    }
}

fn head(frame: &mut Frame, area: Rect, screen: &Screen, theme: Theme) {
    let now = &screen.now;
    let title = format!(
        "scx_cosched {} on Linux {}, process {}, up {:.0} s",
        now.version, now.kernel, now.pid, now.uptime_seconds
    );
    let named = |name: &str, text: String| Line::from(vec![Span::from(format!("{name:<9}")), Span::from(text)]);
    let policy = match now.starting {
        true => "it is starting: hooks are being attached".to_string(),
        false => policy_line(&now.policy),
    };
    let mut lines = vec![
        Line::styled(title, theme.heading()),
        named("policy", printable(&policy)),
        named("tasks", tasks(screen)),
        named("messages", messages(screen)),
        named("to run", to_run(screen)),
        named("", String::new()),
    ];
    if let Some(seconds) = now.kernel_events.bypass_seconds().filter(|seconds| *seconds >= 0.05) {
        lines[2].spans.insert(1, Span::styled(format!("bypassed {seconds:.1} s, "), theme.alert()));
    }
    frame.render_widget(Paragraph::new(lines), area);
    let (text, style) = span_of_time(screen, theme);
    let width = text.len() as u16;
    let corner = Rect { x: area.right().saturating_sub(width), width, height: 1, ..area };
    frame.render_widget(Line::styled(text, style), corner);
    latencies(frame, Rect { y: area.bottom() - 1, height: 1, ..area }, screen);
}

/// What the figures are of, in the corner; or that they are old.
fn span_of_time(screen: &Screen, theme: Theme) -> (String, Style) {
    match (screen.late_s, screen.figures.since_start) {
        (0, true) => ("  since the start".into(), theme.heading()),
        (0, false) => (format!("  last {:.1} s", screen.figures.seconds), theme.heading()),
        (late, _) => (format!("  no answer for {late} s"), theme.alert()),
    }
}

fn tasks(screen: &Screen) -> String {
    let runnable = &screen.now.runnable;
    let switches = number(screen.figures.switches);
    format!(
        "{} runnable on {} CPUs, at most {} on one; {switches} switches/s",
        runnable.tasks, runnable.busy_cpus, runnable.max
    )
}

fn messages(screen: &Screen) -> String {
    let figures = &screen.figures;
    match figures.coscheduled {
        None => "none arrived".into(),
        Some(degree) => {
            format!("{}/s, {:.1}% coscheduled (their receiver ran)", number(figures.arrivals), 100.0 * degree)
        }
    }
}

fn to_run(screen: &Screen) -> String {
    let times = &screen.figures.arrival_to_run;
    if times.count == 0 {
        return "no message waited for its receiver to run".into();
    }
    let bound =
        |quantile| times.quantile_bound(quantile).map_or("unknown".into(), |bound| format!("<= {}", length(bound)));
    let mean = length(times.sum_seconds / times.count as f64);
    format!("mean {mean}, p50 {}, p99 {} after a message", bound(0.5), bound(0.99))
}

/// The histogram of times from messages to runs: a column for each bucket.
fn latencies(frame: &mut Frame, area: Rect, screen: &Screen) {
    let buckets = &screen.figures.arrival_to_run.buckets;
    let bound = |place: Option<usize>| {
        let bound = place.and_then(|place| buckets.get(place)?.le_seconds);
        bound.map_or(String::new(), length)
    };
    let left = format!("{:9}{} ", "", bound(Some(0)));
    let bars = Rect { x: area.x + left.len() as u16, width: buckets.len() as u16, ..area };
    frame.render_widget(left, area);
    frame.render_widget(Sparkline::default().data(buckets.iter().map(|bucket| bucket.count)), bars);
    let right = bound(buckets.len().checked_sub(2));
    frame.render_widget(format!(" {right} and more"), Rect { x: bars.right(), width: 24, ..area });
}

fn foot(frame: &mut Frame, area: Rect, screen: &Screen, theme: Theme) {
    let (text, style) = match (screen.choosing, screen.message.as_str()) {
        (Some(_), _) => ("up, down: choose   Enter: put in force   Esc: leave it", theme.heading()),
        (None, "") => ("q: quit   p: policy   l: lanes on or off   up, down: CPUs", theme.heading()),
        (None, message) if message.starts_with("refused") => (message, theme.alert()),
        (None, message) => (message, Style::new()),
    };
    frame.render_widget(Line::styled(text, style), area);
}

/// The list of presets, open at `place`.
fn choose(frame: &mut Frame, area: Rect, place: usize, theme: Theme) {
    let presets = presets::all();
    let height = (presets.len() as u16 + 2).min(area.height);
    let area = Rect { x: area.x + 1, width: area.width - 2, height, ..area };
    let frame_of = Block::bordered().title(Line::styled(" policy ", theme.heading()));
    let inner = frame_of.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(frame_of, area);

    let list = List::new(presets.keys().map(String::as_str))
        .highlight_symbol("> ")
        .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let names = Rect { width: PRESET, ..inner };
    frame.render_stateful_widget(list, names, &mut ListState::default().with_selected(Some(place)));
    if let Some(preset) = presets.values().nth(place) {
        let text = format!("{}.\n\n{}", preset.summary, preset.source);
        let about = Rect { x: inner.x + PRESET + 2, width: inner.width - PRESET - 2, ..inner };
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), about);
    }
}
