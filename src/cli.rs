// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, Id, Parser, Subcommand};

use crate::arrivals::Arrivals;
use crate::bench::BenchArgs;
use crate::choices::Choices;
use crate::gang;
use crate::given::{Fault, Given, Origin};
use crate::job_by::JobBy;
use crate::limits::{self, MetricsListen};
use crate::partial::Partial;
use crate::prefetch::settings as prefetch;
use crate::sim::cli::SimArgs;
use crate::trace::event::{JobPattern, Wanted};
use crate::wire::key::key_path;
use crate::wire::network::Network;
use crate::wire::settings::{self as wire, Interface};
use crate::{recommend, report};

/// Demand-based coscheduling: a scheduler that takes the arrival of a message as the demand to run its
/// receiver, so that the processes of a parallel job run at the same time on all nodes.
///
/// Without a command it runs the scheduler until it is told to stop, as 'run' does with the same flags. This is how
/// scx_loader and scx.service start a scheduler.
#[derive(Debug, Parser)]
#[command(name = "scx_cosched", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do. [default: run]
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Print statistics of the running scheduler every SEC seconds; load nothing.
    #[arg(long, value_name = "SEC", value_parser = |s: &str| limits::STATS.parse(s), allow_hyphen_values = true,
          conflicts_with_all = run_flags())]
    pub monitor: Option<f64>,

    /// Describe the statistics that --stats and --monitor print.
    #[arg(long, conflicts_with = "monitor", conflicts_with_all = run_flags())]
    pub help_stats: bool,

    /// The flags of 'run', if there is no command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The flags of what loads a scheduler, which therefore do not go with those that load nothing.
fn run_flags() -> Vec<Id> {
    RunArgs::augment_args(clap::Command::new("run")).get_arguments().map(|arg| arg.get_id().clone()).collect()
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load the scheduler and run it until it is told to stop.
    Run(Box<RunArgs>),
    /// List the policies, or show or change that of the running scheduler.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Show what the running scheduler does.
    Status(ClientArgs),
    /// Have the running scheduler read its configuration file again, and put the policy in force that it names.
    Reload(ClientArgs),
    /// Print arrivals of messages, decisions of the gate and switches as they happen, until Ctrl-C.
    Trace(TraceArgs),
    /// Say what this kernel has and lacks; fail if the scheduler cannot run.
    Check(CheckArgs),
    /// Programs that measure a scheduler.
    Bench(BenchArgs),
    /// Simulate the rules on many nodes.
    Sim(SimArgs),
}

/// `policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List the policies by name.
    List(ListArgs),
    /// Asks and changes nothing.
    #[command(flatten)]
    Show(Look),
    /// Change the policy of the running scheduler, without a reload.
    Set(SetArgs),
}

/// What looks at the running scheduler and changes nothing.
#[derive(Debug, Subcommand)]
pub enum Look {
    /// Show the policy of the running scheduler.
    Show(ClientArgs),
    /// Watch the running scheduler, and say which policy fits and why; change nothing.
    Recommend(RecommendArgs),
}

/// `run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The policy to start with; `policy list` shows them. [default: dcs-sb]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,

    /// Single choices, other than the policy has them.
    #[command(flatten)]
    pub choices: Choices,

    /// What makes two tasks members of one job: cgroup, session, process. [default: cgroup]
    #[arg(long, value_name = "WHAT")]
    pub job_by: Option<JobBy>,

    /// What counts as a message, besides what comes by sockets and RDMA, if it wakes another task of the same job: futex,
    /// pipe, eventfd, with commas between them. [default: nothing]
    #[arg(long, value_name = "LIST")]
    pub arrivals: Option<Arrivals>,

    /// Gang: the row of a job, 0 to 1023, modulo --rows; JOB is its name as status shows it, and a * at the end stands
    /// for any rest. May be given more than once; in a file it is the table gang_rows. All others are in the row of
    /// their name's hash, which is the same on all nodes for a cgroup's path, but not for a session or process.
    #[arg(long, value_name = "JOB=ROW", value_parser = gang::parse_flag)]
    pub gang_row: Vec<(String, u32)>,

    /// A network whose nodes run this scheduler too, such as 10.1.0.0/16: epochs and what is left of slices are sent there
    /// with TCP segments and UDP datagrams, and believed from there. May be given more than once; in a file it is the
    /// list peers.
    #[arg(long, value_name = "NET")]
    pub peer: Vec<Network>,

    /// With --peer: look at packets of this interface before the stack does, by XDP, and have datagrams that leave by it
    /// carry epochs, by tc; 'auto' is every one with a default route or one to a peer. May be given more than once; in a
    /// file it is the list interfaces.
    #[arg(long, value_name = "IF")]
    pub interface: Vec<Interface>,

    /// With --peer: sign what is sent, and believe nothing else, by the key in this file: 32 hexadecimal digits, the
    /// same on all nodes.
    #[arg(long, value_name = "FILE", value_parser = key_path)]
    pub cluster_key: Option<PathBuf>,

    /// With --peer: the number of this node's CPU 0 in epochs, 0 to 65535; CPU n has N + n, and no two CPUs of the cluster
    /// ought to have the same. [default: by the host's name]
    #[arg(long, value_name = "N", value_parser = |s: &str| wire::NODE_NUMBER.parse(s), allow_hyphen_values = true)]
    pub node_number: Option<u32>,

    /// With --peer and --cluster-key: when a task begins a slice, ask the nodes of up to N tasks that it has heard from lately
    /// to run these if their gates allow, 0 to 8; 0 turns it off. [default: 0]
    #[arg(long, value_name = "N", value_parser = |s: &str| prefetch::CORRESPONDENTS.parse(s), allow_hyphen_values = true)]
    pub prefetch: Option<u32>,

    /// With --prefetch: the UDP port where nodes ask each other, 1 to 65535, the same on all. [default: 9938]
    #[arg(long, value_name = "PORT", value_parser = |s: &str| prefetch::PORT.parse(s), allow_hyphen_values = true)]
    pub prefetch_port: Option<u16>,

    /// Serve OpenMetrics at /metrics on ADDRESS:PORT; 'none' turns it off. [default: 127.0.0.1:29937]
    #[arg(long, value_name = "ADDR")]
    pub metrics_listen: Option<MetricsListen>,

    /// How many jobs are shown under their own name. [default: 20]
    #[arg(long, value_name = "N", value_parser = |s: &str| limits::JOBS_TOP.parse(s), allow_hyphen_values = true)]
    pub jobs_top: Option<u32>,

    /// Read settings from a TOML file; its keys are these flags' names (h_ms for --h-ms). Flags win.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Print statistics every SEC seconds.
    #[arg(long, value_name = "SEC", value_parser = |s: &str| limits::STATS.parse(s), allow_hyphen_values = true)]
    pub stats: Option<f64>,

    /// Size in bytes of the debug dump after an error; 0 is the kernel's default.
    #[arg(long, value_name = "N", value_parser = |s: &str| limits::EXIT_DUMP_LEN.parse(s), allow_hyphen_values = true)]
    pub exit_dump_len: Option<u32>,

    /// Show debug messages, among them those of libbpf and the verifier.
    #[arg(short, long)]
    pub verbose: bool,

    /// Where the running scheduler is talked to. [default: /run/scx_cosched.sock]
    #[arg(long, value_name = "PATH", value_parser = limits::socket)]
    pub control_socket: Option<PathBuf>,

    /// Hear what programs of any user say of their waits (libcosched), through the socket PATH, which all may use. The
    /// library looks for /run/scx_cosched-hints.sock. [default: nobody is heard]
    #[arg(long, value_name = "PATH", value_parser = limits::socket)]
    pub hints_socket: Option<PathBuf>,
}

impl RunArgs {
    /// What the command line says, to be merged with the file.
    ///
    /// # Errors
    /// Names a job that was given two rows.
    pub fn partial(&self) -> Result<Partial> {
        Ok(Partial {
            policy: self.policy.clone().map(Given::flag),
            overrides: self.choices.given(|_| Origin::Flag),
            job_by: self.job_by,
            arrivals: self.arrivals,
            gang_rows: gang::from_flags(&self.gang_row).map_err(Fault::into_error)?,
            wire: wire::Partial {
                peers: self.peer.iter().copied().map(Given::flag).collect(),
                interfaces: self.interface.iter().cloned().map(Given::flag).collect(),
                cluster_key: self.cluster_key.clone().map(Given::flag),
                node_number: self.node_number.map(Given::flag),
                prefetch: self.prefetch.map(Given::flag),
                prefetch_port: self.prefetch_port.map(Given::flag),
            },
            metrics_listen: self.metrics_listen,
            jobs_top: self.jobs_top,
            stats: self.stats,
            exit_dump_len: self.exit_dump_len,
            verbose: self.verbose.then_some(true),
            control_socket: self.control_socket.clone(),
            hints_socket: self.hints_socket.clone(),
        })
    }
}

/// `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Where the running scheduler would be talked to. [default: /run/scx_cosched.sock]
    #[arg(long, value_name = "PATH", value_parser = limits::socket)]
    pub control_socket: Option<PathBuf>,
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

/// `trace`.
#[derive(Args, Debug)]
pub struct TraceArgs {
    /// What to print: any of arrivals, decisions and switches, with commas between them. The rest costs nothing.
    #[arg(long, value_name = "LIST", default_value = "arrivals,decisions,switches")]
    pub events: Wanted,

    /// Only the tasks of jobs with this name, as status shows it; a * stands for any part of it.
    #[arg(long, value_name = "JOB")]
    pub job: Option<JobPattern>,

    /// For how long, in seconds, 0.1 to 3600. [default: until Ctrl-C]
    #[arg(long, value_name = "S", value_parser = |s: &str| recommend::SECONDS.parse(s), allow_hyphen_values = true)]
    pub seconds: Option<f64>,

    /// Print nothing, and write a file of Chrome's trace events, which Perfetto shows. Those of several nodes, whose
    /// clocks agree, can be put together by joining their lists traceEvents.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub perfetto: Option<PathBuf>,

    /// Where and how to ask.
    #[command(flatten)]
    pub client: ClientArgs,
}

/// `policy recommend`.
#[derive(Args, Debug)]
pub struct RecommendArgs {
    /// For how long to watch, in seconds, 0.1 to 3600.
    #[arg(long, value_name = "S", default_value = "5", value_parser = |s: &str| recommend::SECONDS.parse(s), allow_hyphen_values = true)]
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

impl Cli {
    /// Parses the command line of this process.
    ///
    /// # Errors
    /// The exit code, after help, version or one line about what is wrong has been printed.
    pub fn from_command_line() -> std::result::Result<Cli, ExitCode> {
        Cli::try_parse().map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                let _ = error.print();
                ExitCode::SUCCESS
            }
            _ => report::error(&report::usage(one_line(&error))),
        })
    }
}

/// What clap says over several lines, in one, with what to do about it.
fn one_line(error: &clap::Error) -> String {
    let what = report::what_is_wrong(error);
    match error.get(ContextKind::SuggestedSubcommand).or_else(|| error.get(ContextKind::SuggestedArg)) {
        Some(suggestion) => format!("{what} (did you mean {suggestion}? --help shows all)"),
        None if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "no command (--help shows all)".into()
        }
        None if error.kind() == ErrorKind::ValueValidation => what,
        None => format!("{what} (--help shows what it takes)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
