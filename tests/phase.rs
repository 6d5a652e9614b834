// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a task changes its phase as the table in policies/phase.h says, and in no other way.

use std::collections::HashMap;

use cosched_rules::native::{Answer, Phase, phase_calms, phase_message, phase_parks, phase_queued, phase_stops};

/// The rows of the table by their first words: where each phase leads to, in the order of their numbers.
fn table() -> HashMap<String, Vec<Phase>> {
    let text = include_str!("../policies/phase.h");
    let start = text.find("What happens, and where that leads to:").expect("the head of the table");
    let lines = text[start..].lines().map(|line| line.trim_start_matches(" *"));
    let rows = lines.skip_while(|line| !line.contains("BLOCKED")).take_while(|line| !line.is_empty());
    let mut rows = rows.map(|line| line.split('\t').filter(|cell| !cell.is_empty()).collect::<Vec<_>>());
    let head: Vec<Phase> = rows.next().expect("the line of phases").into_iter().map(named).collect();
    assert_eq!(head, Phase::ALL);
    let whole = rows.filter(|cells| cells.len() == 1 + head.len());
    whole
        .map(|cells| {
            let leads = cells[1..].iter().zip(head.iter());
            let leads = leads.map(|(cell, &from)| if *cell == "-" { from } else { named(cell) });
            (cells[0].to_string(), leads.collect())
        })
        .collect()
}

fn named(name: &str) -> Phase {
    let phase = Phase::ALL.into_iter().find(|phase| format!("{phase:?}").to_uppercase() == name);
    phase.unwrap_or_else(|| panic!("no phase '{name}'"))
}

#[test]
fn the_functions_are_the_table() {
    let table = table();
    let row = |name: &str, rule: &dyn Fn(Phase) -> Phase| {
        let expected = table.get(name).unwrap_or_else(|| panic!("no row '{name}'"));
        assert_eq!(&Phase::ALL.map(rule).to_vec(), expected, "{name}");
    };
    row("queued", &phase_queued);
    row("message: not asked", &|phase| phase_message(phase, Answer::NotAsked));
    row("denied", &|phase| phase_message(phase, Answer::Denied));
    row("given", &|phase| phase_message(phase, Answer::Given));
    row("parks", &phase_parks);
    row("calms down", &phase_calms);
    row("runs", &|_| Phase::Runs);
    row("stops", &|phase| phase_stops(phase, false));
    assert_eq!(table.len(), 8, "{:?}", table.keys());
}

#[test]
fn a_rest_of_a_boost_leads_to_granted() {
    assert_eq!(phase_stops(Phase::Runs, true), Phase::Granted);
    assert_eq!(phase_stops(Phase::Asks, true), Phase::Asks, "the gate has just denied it");
}

/// Who runs or does not want to run is not moved by a message, and nobody who has a message is parked.
#[test]
fn messages_move_those_that_wait() {
    for answer in [Answer::NotAsked, Answer::Denied, Answer::Given] {
        for phase in [Phase::Blocked, Phase::Granted, Phase::Runs] {
            assert_eq!(phase_message(phase, answer), phase);
        }
        for phase in Phase::ALL {
            assert_ne!(phase_message(phase, answer), Phase::Parked);
        }
    }
}
