// SPDX-License-Identifier: GPL-2.0-only
//! Claim: what `top` draws is a function of what was seen, and fits on 80 columns and 24 lines. The screens are those
//! in tests/golden/, and the one of docs/monitoring.md is among them. Without colours it has none. Keys choose what is
//! shown, and no key puts a policy in force but Enter in the list. `make docs` writes the screens anew.

mod common;

use common::docs::{is_committed, read};
use common::snapshot;
use cosched_rules::presets;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use scx_cosched::jobs::JobView;
use scx_cosched::node::kernel_events::KernelEvents;
use scx_cosched::snapshot::{Histogram, Snapshot};
use scx_cosched::top::draw::draw;
use scx_cosched::top::lanes::Lanes;
use scx_cosched::top::screen::{Action, Screen};
use scx_cosched::trace::event::{Event, What};

const MS: u64 = 1_000_000;

/// A second before [`later`], with a second's worth of everything less.
fn earlier() -> Snapshot {
    let job = |name: &str, cpu, fair, waiting, boosts| JobView {
        job: name.into(),
        cpu_seconds: cpu,
        fair_share_seconds: fair,
        fairness_ratio: Some(cpu / fair),
        cpu_waiting_seconds: Some(waiting),
        boosts,
    };
    Snapshot {
        version: "0.1.0".into(),
        kernel: "6.18.0".into(),
        pid: 1234,
        uptime_seconds: 3600.0,
        kernel_events: KernelEvents::default(),
        counters: [("arrivals", 90_000), ("arrivals_coscheduled", 60_000), ("context_switches", 1_000_000)]
            .map(|(name, count)| (name.to_string(), count))
            .into(),
        granted: [("lags".to_string(), 20_000)].into(),
        denied: [("not_behind".to_string(), 9_000), ("starving".to_string(), 0)].into(),
        arrival_to_run: Histogram::from_powers_of_two(&[5; 26], 9_000_000),
        jobs: vec![
            job("/slurm/job_7/step_0/task_12", 730.0, 720.0, 100.0, 15_000),
            job("/system.slice/backup.service", 700.0, 720.0, 650.0, 0),
            JobView { cpu_waiting_seconds: None, ..job("other", 90.0, 60.0, 0.0, 5_000) },
        ],
        ..snapshot(&presets::find("dcs").unwrap().policy)
    }
}

fn later() -> Snapshot {
    let mut now = earlier();
    now.uptime_seconds += 1.0;
    for (name, count) in [("arrivals", 1_523), ("arrivals_coscheduled", 1_419), ("context_switches", 3_214)] {
        *now.counters.get_mut(name).unwrap() += count;
    }
    *now.granted.get_mut("lags").unwrap() += 104;
    *now.denied.get_mut("not_behind").unwrap() += 12;
    for (bucket, count) in now.arrival_to_run.buckets.iter_mut().skip(3).zip([3, 20, 41, 25, 9, 4, 1, 0, 0, 1]) {
        bucket.count += count;
        now.arrival_to_run.count += count;
    }
    now.arrival_to_run.sum_seconds += 0.006_2;
    for (job, (cpu, fair, waiting, boosts)) in
        now.jobs.iter_mut().zip([(0.99, 1.0, 0.13, 104), (0.76, 0.98, 0.92, 0), (0.21, 0.02, 0.0, 0)])
    {
        job.cpu_seconds += cpu;
        job.fair_share_seconds += fair;
        job.cpu_waiting_seconds = job.cpu_waiting_seconds.map(|seconds| seconds + waiting);
        job.boosts += boosts;
    }
    now
}

fn event(time_ms: u64, cpu: u32, job: &str, what: What) -> Event {
    let (pid, comm) = if job.starts_with("/slurm") { (4100 + cpu, "solver") } else { (977, "backup") };
    Event { time_ns: time_ms * MS, cpu, pid, comm: comm.into(), job: job.into(), what, cpu_ns: time_ms * MS }
}

/// A second on CPUs that two jobs share in turns of 20 ms, the second of which sleeps at times. Both CPUs have the
/// first job run by boosts at the same moments. CPU 2 is idle, and nothing is known of the others.
fn lanes() -> Lanes {
    let mut lanes = Lanes::default();
    let out = What::SwitchOut { boosted: false, parked: false, runnable: true, ran_ns: None };
    for turn in 0..25 {
        let begin = 40 * turn;
        for cpu in [0, 1] {
            let boosted = turn % 3 == 1;
            let job = "/slurm/job_7/step_0/task_12";
            lanes.follow(&mut event(begin, cpu, job, What::SwitchIn { boosted, parked: false }));
            lanes.follow(&mut event(begin + if boosted { 35 } else { 20 }, cpu, job, out));
            if turn % 5 != 0 {
                let begin = begin + if boosted { 35 } else { 20 };
                let backup = "/system.slice/backup.service";
                lanes.follow(&mut event(begin, cpu, backup, What::SwitchIn { boosted: false, parked: false }));
                if turn < 24 || cpu == 1 {
                    lanes.follow(&mut event(40 * turn + 40, cpu, backup, out));
                }
            }
        }
    }
    lanes.follow(&mut event(0, 2, "/", out));
    lanes
}

fn screen(cpus: u32, colours: bool) -> Screen {
    let mut screen = Screen::new(earlier(), (0..cpus).collect(), colours);
    screen.look(later(), 1.0);
    screen.lanes = Ok(lanes().window(0, 1000 * MS));
    screen
}

fn drawn(screen: &Screen, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, screen)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(screen: &Screen, width: u16, height: u16) -> String {
    let buffer = drawn(screen, width, height);
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_string() + "\n").collect()
}

fn press(screen: &mut Screen, code: KeyCode) -> Option<Action> {
    screen.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn two_cpus_fit_on_the_smallest_terminal() {
    let golden = text(&screen(2, true), 80, 24);
    is_committed("tests/golden/top-80x24.txt", &golden);
    let page = read("docs/monitoring.md");
    let (before, rest) = page.split_once("```text\n").expect("the page shows a screen");
    let (_, after) = rest.split_once("```").unwrap();
    is_committed("docs/monitoring.md", &format!("{before}```text\n{golden}```{after}"));
}

#[test]
fn many_cpus_and_jobs_are_cut_where_the_terminal_ends() {
    let mut screen = screen(64, true);
    for i in 0..60 {
        screen.figures.jobs.insert(2, screen.figures.jobs[i % 2].clone());
    }
    press(&mut screen, KeyCode::Down);
    is_committed("tests/golden/top-120x40.txt", &text(&screen, 120, 40));
    for _ in 0..20 {
        press(&mut screen, KeyCode::PageDown);
    }
    assert!(text(&screen, 120, 40).contains("CPUS 50 to 64 of 64"), "{}", text(&screen, 120, 40));
}

#[test]
fn before_there_is_anything_to_show_it_says_so() {
    let mut now = earlier();
    now.starting = true;
    now.counters.clear();
    now.granted.clear();
    now.denied.clear();
    now.arrival_to_run = Histogram::from_powers_of_two(&[0; 26], 0);
    now.jobs.clear();
    now.kernel_events = KernelEvents::parse("SCX_EV_BYPASS_DURATION 1500000000\n");
    let mut screen = Screen::new(now, vec![0, 1], true);
    screen.late_s = 3;
    screen.message = "refused: the gate 'always' has no h".into();
    screen.no_lanes("process 77 traces already (one can at a time: end that one first)");
    is_committed("tests/golden/top-nothing.txt", &text(&screen, 80, 24));
    assert_eq!(text(&screen, 79, 24).lines().next(), Some("too small: 80 columns and 24 lines are needed"));
    assert!(text(&screen, 80, 23).starts_with("too small"));
}

#[test]
fn policies_are_chosen_from_a_list() {
    let mut screen = screen(2, true);
    assert_eq!(press(&mut screen, KeyCode::Char('p')), None);
    is_committed("tests/golden/top-policies.txt", &text(&screen, 80, 24));

    let names: Vec<&String> = presets::all().keys().collect();
    let dcs = names.iter().position(|name| *name == "dcs").unwrap();
    assert_eq!(screen.choosing, Some(dcs), "the one in force is marked");
    for (code, place) in [
        (KeyCode::Up, dcs - 1),
        (KeyCode::Home, 0),
        (KeyCode::Up, 0),
        (KeyCode::End, names.len() - 1),
        (KeyCode::Char('j'), names.len() - 1),
        (KeyCode::Char('l'), names.len() - 1),
    ] {
        assert_eq!((press(&mut screen, code), screen.choosing), (None, Some(place)), "{code:?}");
    }
    assert_eq!((press(&mut screen, KeyCode::Esc), screen.choosing), (None, None));
    press(&mut screen, KeyCode::Char('p'));
    press(&mut screen, KeyCode::Down);
    assert_eq!(press(&mut screen, KeyCode::Enter), Some(Action::SetPolicy(names[dcs + 1].clone())));
    assert_eq!(screen.choosing, None);
    assert_eq!(press(&mut screen, KeyCode::Enter), None, "the list is closed");
}

#[test]
fn keys_end_it_and_turn_lanes_off_and_on() {
    let mut screen = screen(2, true);
    for (code, action) in [
        (KeyCode::Char('l'), Some(Action::HideLanes)),
        (KeyCode::Char('l'), Some(Action::ShowLanes)),
        (KeyCode::Char('x'), None),
        (KeyCode::Esc, Some(Action::Quit)),
        (KeyCode::Char('q'), Some(Action::Quit)),
        (KeyCode::Char('c'), None),
    ] {
        assert_eq!(press(&mut screen, code), action, "{code:?}");
    }
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(screen.key(control_c), Some(Action::Quit));
    press(&mut screen, KeyCode::Char('p'));
    assert_eq!(screen.key(control_c), Some(Action::Quit), "also from the list");
}

#[test]
fn without_colours_it_has_none_and_says_the_same() {
    let colours = |screen: &Screen| {
        let cells = drawn(screen, 80, 24).content;
        cells.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    for choosing in [None, Some(3)] {
        let (mut plain, mut coloured) = (screen(2, false), screen(2, true));
        (plain.choosing, coloured.choosing) = (choosing, choosing);
        assert_eq!(colours(&plain), 0);
        assert!(colours(&coloured) > 50);
        assert_eq!(text(&plain, 80, 24), text(&coloured, 80, 24));
    }
}

#[test]
fn names_that_others_chose_do_not_control_the_terminal() {
    let mut screen = screen(2, true);
    screen.figures.jobs[0].name = "/a\u{1b}[2J\n\u{7}".into();
    let text = text(&screen, 80, 24);
    assert!(text.contains("\\u{1b}[2J\\n\\u{7}"), "{text}");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
}

#[test]
fn another_scheduler_counts_from_its_own_start() {
    let mut screen = Screen::new(later(), vec![0], true);
    assert!(screen.figures.since_start);
    screen.look(Snapshot { pid: 99, uptime_seconds: 2.0, ..earlier() }, 1.0);
    assert!(screen.figures.since_start);
    assert_eq!((screen.figures.seconds, screen.figures.arrivals), (2.0, 45_000.0));
}
