// SPDX-License-Identifier: GPL-2.0-only
//! The subcommands that ask the running scheduler, or that need none.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, Table, presets::NOTHING};
use serde::Serialize;

use crate::control::recommend::{self, Advice, Confidence, Figures};
use crate::control::{self, Question};
use crate::hints::Hinted;
use crate::jobs::JobView;
use crate::prefetch::PrefetchView;
use crate::settings::{DEFAULT_CONTROL_SOCKET, Reloaded, limits};
use crate::snapshot::{GangSkew, Runnable, Snapshot};
use crate::trace::lines::printable;
use cosched_rules::choices::Choices;
use cosched_rules::costs::Costs;
use cosched_rules::policy::{CostsView, PolicyChange, PolicyView};
use cosched_rules::{presets, report};

/// Between two looks at what is runnable.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What looks at the running scheduler and changes nothing.
#[derive(Debug, Subcommand)]
pub enum Look {
    /// Show the policy of the running scheduler.
    Show(ClientArgs),
    /// Watch the running scheduler, and say which policy fits and why; change nothing.
    Recommend(RecommendArgs),
}

/// `policy list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Asks the running scheduler.
#[derive(Args, Debug)]
pub struct ClientArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// Where the running scheduler is talked to. [default: /run/scx_cosched.sock]
    #[arg(long, value_name = "PATH", value_parser = limits::socket)]
    pub control_socket: Option<PathBuf>,
}

/// `policy recommend`.
#[derive(Args, Debug)]
pub struct RecommendArgs {
    /// For how long to watch, in seconds, 0.1 to 3600.
    #[arg(long, value_name = "S", default_value = "5", value_parser = |s: &str| limits::WATCH.parse(s), allow_hyphen_values = true)]
    pub seconds: f64,

    /// Where and how to ask.
    #[command(flatten)]
    pub client: ClientArgs,
}

/// `policy set`.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// The preset to start from; without it, the policy in force is changed.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// Single choices, other than the policy has them.
    #[command(flatten)]
    pub choices: Choices,

    /// Where and how to ask.
    #[command(flatten)]
    pub client: ClientArgs,
}

/// Where the running scheduler is talked to.
pub fn socket(args: &ClientArgs) -> &Path {
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
    table.set_header(["NAME", "ARRIVAL", "GATE", "WAIT", "SPIN", "WHAT IT DOES"]);
    for (name, preset) in presets {
        // Rules that have no effect are none.
        let rules: BTreeMap<_, _> = preset.policy.choices.texts().collect();
        let rules = ["arrival", "gate", "wait", "spin"].map(|axis| rules.get(axis).map_or("-", String::as_str));
        table.add_row([&[name.as_str()], &rules[..], &[preset.summary.as_str()]].concat());
    }
    print(&lines(&table))
}

/// The rules on the axes first, then their parameters.
pub fn policy_line(policy: &PolicyView) -> String {
    let is_axis = |key: &str| ["arrival", "gate", "wait", "spin"].contains(&key);
    let (axes, parameters): (Vec<_>, Vec<_>) = policy.choices.texts().partition(|(key, _)| is_axis(key));
    let axes: String = axes.iter().map(|(axis, rule)| format!("{axis} {rule}, ")).collect();
    let parameters: Vec<String> = parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{} ({axes}{})", policy.name, parameters.join(" "))
}

/// `policy show` and `policy recommend`.
///
/// # Errors
/// If no scheduler is running.
pub fn policy_show(look: &Look) -> Result<ExitCode> {
    match look {
        Look::Show(args) => {
            let snapshot: Snapshot = control::ask(socket(args), &Question::Status {})?;
            show(&snapshot.policy, args.json)
        }
        Look::Recommend(args) => policy_recommend(args),
    }
}

/// Watches the running scheduler, and says what would fit.
fn policy_recommend(args: &RecommendArgs) -> Result<ExitCode> {
    let look = || control::ask::<Snapshot>(socket(&args.client), &Question::Status {});
    let duration = Duration::from_secs_f64(args.seconds);
    let before = look()?;
    let since = Instant::now();
    let (mut after, mut runnable) = (before.clone(), vec![before.runnable]);
    while since.elapsed() < duration {
        std::thread::sleep(LOOK_INTERVAL.min(duration.saturating_sub(since.elapsed())));
        after = look()?;
        runnable.push(after.runnable);
    }
    let advice = recommend::advise(&before, &after, &runnable, since.elapsed());
    match args.client.json {
        true => print_json(&advice),
        false => print(&advice_text(&advice, &after.policy.name)),
    }
}

fn advice_text(advice: &Advice, in_force: &str) -> String {
    let mut facts = table();
    let advised = match advice.preset {
        None => format!("none, {in_force} is in force"),
        Some(preset) if preset == in_force => format!("{preset}, which is in force"),
        Some(preset) => format!("{preset} (policy set {preset}), {in_force} is in force"),
    };
    facts.add_row(["advice", &advised]);
    if advice.preset.is_some() {
        facts.add_row(["confidence", if advice.confidence == Confidence::High { "high" } else { "low" }]);
    }
    let rows = |facts: &mut Table, name: &str, texts: &[String]| {
        for (i, text) in texts.iter().enumerate() {
            facts.add_row([if i == 0 { name } else { "" }, text]);
        }
    };
    rows(&mut facts, "reasons", &advice.reasons);
    rows(&mut facts, "judged by", &figures_lines(&advice.figures));
    lines(&facts)
}

fn figures_lines(figures: &Figures) -> Vec<String> {
    let Figures { seconds, messages, messages_unmapped, sleeps, spins, polls, parks, boosts, boosted_jobs, .. } =
        figures;
    let number = |value: Option<f64>, digits| value.map_or("unknown".into(), |value| format!("{value:.digits$}"));
    vec![
        format!("{messages} messages in {seconds:.1} s, and {messages_unmapped} for unknown receivers"),
        format!("messages per slice: {}", number(figures.messages_per_slice, 2)),
        format!(
            "messages that found their receiver running, %: {}",
            number(figures.coscheduling_degree.map(|d| 100.0 * d), 1)
        ),
        format!("receivers: {sleeps} sleeps, {spins} spins, {polls} polls, {parks} parks"),
        format!("runnable tasks on a busy CPU: {}", number(figures.tasks_per_busy_cpu, 2)),
        format!("{boosts} boosts, in {boosted_jobs} jobs"),
    ]
}

/// `policy set`: changes the policy of the running scheduler and shows the one that is in force then.
///
/// # Errors
/// One line that says why it is refused; nothing has changed then.
pub fn policy_set(args: &SetArgs) -> Result<ExitCode> {
    let change = PolicyChange { name: args.name.clone(), choices: args.choices.clone() };
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

/// `reload`: what the configuration file says is in force afterwards, as far as it can be without a restart.
///
/// # Errors
/// One line that says what is wrong with the file; nothing has changed then.
pub fn reload(args: &ClientArgs) -> Result<ExitCode> {
    let reloaded: Reloaded = control::ask(socket(args), &Question::Reload {})?;
    if args.json {
        return print_json(&reloaded);
    }
    let needs = match reloaded.restart_needed.as_slice() {
        [] => String::new(),
        keys => format!("a restart is needed for: {}\n", keys.join(", ")),
    };
    print(&format!("{}\n{needs}", policy_line(&reloaded.policy)))
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
    if snapshot.starting {
        fact("state", "it is starting: hooks are being attached".into());
    }
    fact("policy", policy_line(&snapshot.policy));
    fact("costs", costs_line(&snapshot.costs));
    fact(
        "memory",
        format!("{} resident, {} in BPF maps", mib(snapshot.memory.resident_bytes), mib(snapshot.memory.maps_bytes)),
    );
    let Runnable { tasks, busy_cpus, max, .. } = snapshot.runnable;
    fact("runnable", format!("{tasks} tasks on {busy_cpus} CPUs, {max} on the one with most"));
    let hooks = &snapshot.hooks;
    let missing = if hooks.missing.is_empty() { "none".into() } else { hooks.missing.join(", ") };
    let resting = match hooks.resting.len() {
        0 => String::new(),
        n => format!(", {n} at rest, since the policy takes no arrivals"),
    };
    let idle = match hooks.idle.len() {
        0 => String::new(),
        n => format!(", {n} of RDMA idle"),
    };
    fact("hooks", format!("{} attached{resting}{idle}; missing: {missing}", hooks.attached.len()));
    for line in &snapshot.limits_not_kept {
        fact("cpu.max", line.clone());
    }
    fact(
        "coscheduled",
        snapshot.coscheduling_degree().map_or("no arrivals yet".into(), |d| {
            format!("{:.1}% of arrivals found their receiver running", 100.0 * d)
        }),
    );
    fact("arrival to run", latency(snapshot));
    if let Some(PrefetchView { correspondents, port }) = snapshot.prefetch {
        fact("prefetch", format!("up to {correspondents} correspondents of a task, UDP port {port}"));
    }
    if let Some(Hinted { threads, processes }) = snapshot.hinted {
        fact("hints", format!("{threads} threads of {processes} processes say when they wait"));
    }
    if snapshot.gang_skew.turns > 0 {
        fact("gang skew", gang_skew(&snapshot.gang_skew));
    }

    if snapshot.clock_ahead_seconds > 0.0 {
        fact("clock of turns", format!("{:.1} ms ahead of TAI, after a peer's", 1e3 * snapshot.clock_ahead_seconds));
    }

    let mut events = table();
    events.set_header(["EVENT", "COUNT"]);
    for (name, count) in &snapshot.counters {
        events.add_row([name.clone(), count.to_string()]);
    }
    let decisions = [("granted", &snapshot.granted), ("denied", &snapshot.denied)];
    for (kind, reasons) in [("arrivals", &snapshot.endpoint_arrivals)].into_iter().chain(decisions) {
        for (reason, count) in reasons {
            events.add_row([format!("{kind}: {reason}"), count.to_string()]);
        }
    }
    right_align(&mut events, 1);
    format!("{}\n{}\n{}", lines(&facts), lines(&events), lines(&jobs_table(&snapshot.jobs)))
}

fn costs_line(view: &CostsView) -> String {
    let Costs { latency_us, overhead_us, switch_us } = view.costs;
    format!("L {latency_us:.1} us, o {overhead_us:.1} us, W {switch_us:.1} us ({})", view.source)
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

fn gang_skew(skew: &GangSkew) -> String {
    let GangSkew { turns, mean_seconds, max_seconds, .. } = skew;
    format!("mean {:.1} us, max {:.1} ms of {turns} turns", 1e6 * mean_seconds, 1e3 * max_seconds)
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

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
