// SPDX-License-Identifier: GPL-2.0-only
//! What is shown: what was seen of the scheduler last, and what keys have chosen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::figures::Figures;
use super::lanes::Window;
use super::letters::Letters;
use crate::snapshot::Snapshot;
use cosched_rules::presets;

/// How many CPUs a page is.
const PAGE: usize = 8;

/// All that [`draw`](super::draw::draw) shows.
pub struct Screen {
    /// The last snapshot.
    pub now: Snapshot,
    /// What happened since the one before it.
    pub figures: Figures,
    /// The letters of its jobs.
    pub letters: Letters,
    /// Who ran on each CPU, or why that is not known.
    pub lanes: Result<Window, String>,
    /// Lanes are to be shown.
    pub wants_lanes: bool,
    /// The CPUs that are online.
    pub cpus: Vec<u32>,
    /// How many of them are scrolled past.
    pub first_cpu: usize,
    /// The place in the list of presets, if it is open.
    pub choosing: Option<usize>,
    /// What came of the last key that asked for something, until the next key.
    pub message: String,
    /// For how long the scheduler has owed an answer, in s.
    pub late_s: u64,
    /// With colours.
    pub colours: bool,
}

/// What a key asks of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// End.
    Quit,
    /// Put the preset of this name in force.
    SetPolicy(String),
    /// Trace switches.
    ShowLanes,
    /// No longer.
    HideLanes,
}

impl Screen {
    /// After the first look.
    pub fn new(now: Snapshot, cpus: Vec<u32>, colours: bool) -> Screen {
        let mut screen = Screen {
            figures: Figures::of(&now, None),
            now,
            letters: Letters::default(),
            lanes: Err("the first switches are awaited".into()),
            wants_lanes: true,
            cpus,
            first_cpu: 0,
            choosing: None,
            message: String::new(),
            late_s: 0,
            colours,
        };
        screen.name_jobs();
        screen
    }

    /// After another look, `seconds` after the last.
    pub fn look(&mut self, now: Snapshot, seconds: f64) {
        self.figures = Figures::of(&now, Some((&self.now, seconds)));
        self.now = now;
        self.name_jobs();
    }

    fn name_jobs(&mut self) {
        self.letters.follow(self.figures.jobs.iter().map(|job| &job.name));
    }

    /// There are no lanes, because of `why`.
    pub fn no_lanes(&mut self, why: &str) {
        self.lanes = Err(why.into());
    }

    /// Takes a key, and returns what it asks of the program.
    pub fn key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.message.clear();
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, self.choosing) {
            (KeyCode::Char('c'), _) if is_control => Some(Action::Quit),
            (code, Some(place)) => self.choose(code, place),
            (KeyCode::Char('q') | KeyCode::Esc, None) => Some(Action::Quit),
            (KeyCode::Char('p'), None) => {
                let is_in_force = |name: &String| self.now.policy.name.split('+').next() == Some(name);
                self.choosing = Some(presets::all().keys().position(is_in_force).unwrap_or(0));
                None
            }
            (KeyCode::Char('l'), None) => {
                self.wants_lanes = !self.wants_lanes;
                Some(if self.wants_lanes { Action::ShowLanes } else { Action::HideLanes })
            }
            (code, None) => {
                self.scroll(code);
                None
            }
        }
    }

    /// A key while the list of presets is open at `place`.
    fn choose(&mut self, code: KeyCode, place: usize) -> Option<Action> {
        let last = presets::all().len() - 1;
        self.choosing = match code {
            KeyCode::Up | KeyCode::Char('k') => Some(place.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => Some((place + 1).min(last)),
            KeyCode::Home => Some(0),
            KeyCode::End => Some(last),
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('p' | 'q') => None,
            _ => Some(place),
        };
        let name = presets::all().keys().nth(place).filter(|_| code == KeyCode::Enter)?;
        Some(Action::SetPolicy(name.clone()))
    }

    /// A key that may move through the CPUs.
    fn scroll(&mut self, code: KeyCode) {
        let last = self.cpus.len().saturating_sub(1);
        self.first_cpu = match code {
            KeyCode::Up | KeyCode::Char('k') => self.first_cpu.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (self.first_cpu + 1).min(last),
            KeyCode::PageUp => self.first_cpu.saturating_sub(PAGE),
            KeyCode::PageDown => (self.first_cpu + PAGE).min(last),
            KeyCode::Home => 0,
            _ => self.first_cpu,
        };
    }
}
