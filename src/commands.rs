// SPDX-License-Identifier: GPL-2.0-only
//! The subcommands that ask the running scheduler, or that need none.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets::NOTHING};
use serde::Serialize;

use crate::cli::{ClientArgs, ListArgs, SetArgs};
use crate::control::{self, Question};
use crate::jobs::JobView;
use crate::policy::{PolicyChange, PolicyView};
use crate::settings::DEFAULT_CONTROL_SOCKET;
use crate::snapshot::Snapshot;
use crate::{presets, report};

/// For programs whose output somebody may pipe into `head`: end without a word when it closes the pipe.
pub fn die_quietly_on_closed_pipe() {
    // SAFETY: sets a signal to its default before there are threads.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

fn socket(args: &ClientArgs) -> &Path {
    args.control_socket.as_deref().unwrap_or(Path::new(DEFAULT_CONTROL_SOCKET))
}

fn print(text: &str) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn print_json(value: &impl Serialize) -> Result<ExitCode> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table
}

fn right_align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(&line).trim_end())).collect()
}

/// `policy list`: needs no running scheduler.
///
/// # Errors
/// If nothing can be printed.
pub fn policy_list(args: &ListArgs) -> Result<ExitCode> {
    #[derive(Serialize)]
    struct Row<'a> {
        #[serde(flatten)]
        policy: PolicyView,
        summary: &'a str,
        source: &'a str,
        default: bool,
    }
    let presets = presets::all();
    if args.json {
        let row = |(name, preset): (&String, &'static presets::Preset)| Row {
            policy: preset.policy.view(),
            summary: &preset.summary,
            source: &preset.source,
            default: name == presets::DEFAULT,
        };
        return print_json(&presets.iter().map(row).collect::<Vec<_>>());
    }
    let mut table = table();
    table.set_header(["NAME", "ARRIVAL", "GATE", "WAIT", "PARAMETERS", "WHAT IT DOES"]);
    for preset in presets.values() {
        let view = preset.policy.view();
        let (arrival, gate, wait) = (view.arrival.to_string(), view.gate.to_string(), view.wait.to_string());
        table.add_row([view.name.clone(), arrival, gate, wait, parameters(&view), preset.summary.clone()]);
    }
    print(&lines(&table))
}

fn parameters(policy: &PolicyView) -> String {
    let mut all = Vec::new();
    all.extend(policy.h_ms.map(|v| format!("h_ms={v}")));
    all.extend(policy.rate_exponent.map(|v| format!("rate_exponent={v}")));
    all.extend(policy.rate_constant_ms.map(|v| format!("rate_constant_ms={v}")));
    all.extend(policy.spin_us.map(|v| format!("spin_us={v}")));
    all.push(format!("slice_us={}", policy.slice_us));
    all.join(" ")
}

fn policy_line(policy: &PolicyView) -> String {
    let PolicyView { name, arrival, gate, wait, .. } = policy;
    format!("{name} (arrival {arrival}, gate {gate}, wait {wait}, {})", parameters(policy))
}

/// `policy show`.
///
/// # Errors
/// If no scheduler is running.
pub fn policy_show(args: &ClientArgs) -> Result<ExitCode> {
    let snapshot: Snapshot = control::ask(socket(args), &Question::Status {})?;
    show(&snapshot.policy, args.json)
}

/// `policy set`: changes the policy of the running scheduler and shows the one that is in force then.
///
/// # Errors
/// One line that says why it is refused; nothing has changed then.
pub fn policy_set(args: &SetArgs) -> Result<ExitCode> {
    let change = args.axes.change(args.name.clone());
    if change == PolicyChange::default() {
        return Err(report::usage(
            "nothing to set (name a policy, or a choice such as --gate; 'policy list' shows them)",
        ));
    }
    if let Some(name) = &args.name {
        presets::find(name).map_err(report::usage)?;
    }
    let policy: PolicyView = control::ask(socket(&args.client), &Question::SetPolicy { change })?;
    show(&policy, args.client.json)
}

fn show(policy: &PolicyView, json: bool) -> Result<ExitCode> {
    match json {
        true => print_json(policy),
        false => print(&format!("{}\n", policy_line(policy))),
    }
}

/// `status`.
///
/// # Errors
/// If no scheduler is running.
pub fn status(args: &ClientArgs) -> Result<ExitCode> {
    let snapshot: Snapshot = control::ask(socket(args), &Question::Status {})?;
    match args.json {
        true => print_json(&snapshot),
        false => print(&status_text(&snapshot)),
    }
}

/// A snapshot for people.
pub fn status_text(snapshot: &Snapshot) -> String {
    let mut facts = table();
    let mut fact = |name: &str, value: String| {
        facts.add_row([name.to_string(), value]);
    };
    fact("scheduler", format!("scx_cosched {} on Linux {}", snapshot.version, snapshot.kernel));
    fact("process", format!("{}, up {:.0} s", snapshot.pid, snapshot.uptime_seconds));
    fact("policy", policy_line(&snapshot.policy));
    fact(
        "memory",
        format!("{} resident, {} in BPF maps", mib(snapshot.memory.resident_bytes), mib(snapshot.memory.maps_bytes)),
    );
    let hooks = &snapshot.hooks;
    let missing = if hooks.missing.is_empty() { "none".into() } else { hooks.missing.join(", ") };
    let resting = match hooks.resting.len() {
        0 => String::new(),
        n => format!(", {n} at rest, since the policy takes no arrivals"),
    };
    fact("hooks", format!("{} attached{resting}; missing: {missing}", hooks.attached.len()));
    fact(
        "coscheduled",
        snapshot.coscheduling_degree().map_or("no arrivals yet".into(), |d| {
            format!("{:.1}% of arrivals found their receiver running", 100.0 * d)
        }),
    );
    fact("arrival to run", latency(snapshot));

    let mut events = table();
    events.set_header(["EVENT", "COUNT"]);
    for (name, count) in &snapshot.counters {
        events.add_row([name.clone(), count.to_string()]);
    }
    for (kind, reasons) in [("granted", &snapshot.granted), ("denied", &snapshot.denied)] {
        for (reason, count) in reasons {
            events.add_row([format!("{kind}: {reason}"), count.to_string()]);
        }
    }
    right_align(&mut events, 1);
    format!("{}\n{}\n{}", lines(&facts), lines(&events), lines(&jobs_table(&snapshot.jobs)))
}

fn latency(snapshot: &Snapshot) -> String {
    let times = &snapshot.arrival_to_run;
    if times.count == 0 {
        return "none measured yet".into();
    }
    let bound = |q| times.quantile_bound(q).map_or("unknown".into(), |s| format!("<= {:.3} ms", 1e3 * s));
    let mean = 1e3 * times.sum_seconds / times.count as f64;
    format!("mean {mean:.3} ms, p50 {}, p99 {} of {}", bound(0.5), bound(0.99), times.count)
}

fn jobs_table(jobs: &[JobView]) -> Table {
    let mut table = table();
    table.set_header(["JOB", "CPU S", "FAIR SHARE S", "FAIRNESS", "BOOSTS"]);
    for job in jobs {
        table.add_row([
            printable(&job.job),
            format!("{:.3}", job.cpu_seconds),
            format!("{:.3}", job.fair_share_seconds),
            job.fairness_ratio.map_or("-".into(), |f| format!("{f:.3}")),
            job.boosts.to_string(),
        ]);
    }
    right_align(&mut table, 1);
    table
}

/// Whoever may make a cgroup chooses its name, and must not thereby control the terminal.
fn printable(name: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(escape).collect()
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
