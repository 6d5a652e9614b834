// SPDX-License-Identifier: GPL-2.0-only
//! Everything that `run` is told: a flag wins over the configuration file, the file over the preset.
//!
//! What is no choice of the policy is one row of the table below; the choices are in [`choices`].

pub mod arrivals;
pub mod config;
pub mod limits;

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use serde::{Deserialize, Serialize};

use crate::jobs::gang;
use crate::jobs::job_by::JobBy;
use crate::jobs::names::{Patterns, Sayings};
use crate::settings::arrivals::Arrivals;
use crate::settings::limits::MetricsListen;
use crate::wire::key::{self, Key};
use crate::wire::network::Network;
use crate::wire::settings::{Interface, PrefetchSettings, WireSettings, default_node_number, once};
use cosched_rules::choices::{self, Choices};
use cosched_rules::intf::{COSCHED_MAX_JOBS, COSCHED_PREFETCH_MAX, COSCHED_WIRE_PEERS};
use cosched_rules::policy::{Policy, PolicyView};
use cosched_rules::presets::{self, Preset};
use cosched_rules::rows::{Entries, Fault, Given, Kind, Origin, Row, TEXT, Value, entries, merge, whole};

/// Where the running scheduler is talked to.
pub const DEFAULT_CONTROL_SOCKET: &str = "/run/scx_cosched.sock";

/// Each row: what it is for; its key and type, and its value unless somebody gives another (empty: there is none, and
/// the type is an Option, a list or a table); what `--help` calls its value; which values it takes; and, if there is
/// one, the setting without which it has no effect. The loader reads it as `settings.values.KEY`.
macro_rules! settings {
    ($($(#[doc = $help:literal])+ $key:ident: $type:ty = $default:expr, $value:literal, $kind:expr
       $(, with $with:ident)?;)+) => {
        /// What is no choice of the policy.
        #[derive(Clone, Debug)]
        pub struct Values {
            $($(#[doc = $help])+ pub $key: $type,)+
        }

        /// What is known of each setting that is no choice of the policy.
        pub static ROWS: &[Row] = &[$(Row {
            key: stringify!($key),
            help: concat!($($help),+),
            value: $value,
            kind: $kind,
            default: $default,
            needs: &[],
            with: concat!($(stringify!($with))?),
            check: <$type as Value>::check,
        }),+];

        impl Values {
            /// Those that were given, and the defaults of the rest.
            fn read(given: &Entries) -> Result<Values, Fault> {
                let row = |key: &str| ROWS.iter().find(|row| row.key == key).expect("every setting has a row");
                Ok(Values { $($key: row(stringify!($key)).value(given)?),+ })
            }

            /// The keys whose values `new` has otherwise.
            fn changed(&self, new: &Values) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $(if self.$key != new.$key { keys.push(stringify!($key)); })+
                keys
            }
        }
    };
}

settings! {
    /// The policy to start with; `policy list` shows them.
    policy: Given<String> = presets::DEFAULT, "NAME", TEXT;
    /// What makes two tasks members of one job: cgroup, session, process.
    job_by: JobBy = "cgroup", "WHAT", TEXT;
    /// What counts as a message besides what comes by sockets and RDMA: futex, pipe, eventfd, with commas between
    /// them. It has to wake another task of the same job. [default: nothing]
    arrivals: Option<Arrivals> = "", "LIST", TEXT;
    /// Gang: the row of a job, 0 to 1023, modulo --rows. JOB is its name as status shows it, and a * at the end stands
    /// for any rest. May be given more than once; in a file it is the table gang_rows. All others are in the row of
    /// their name's hash. For a cgroup's path that is the same on all nodes, but not for a session or process.
    gang_rows: Sayings<u32> = "", "JOB=ROW", Kind::Table;
    /// Gang, beat: the name of a job that all nodes have alike, where their cgroups' paths differ. JOB is its name here
    /// as status shows it, and a * at the end stands for any rest. May be given more than once; in a file it is the
    /// list job_names. Under beat Slurm's jobs and pods need none: what their paths have in common counts.
    job_names: Sayings<String> = "", "NAME=JOB", Kind::List;
    /// A network whose nodes run this scheduler too, such as 10.1.0.0/16. TCP segments and UDP datagrams take epochs
    /// and what is left of slices there, or under beat what nodes have to agree on. The same is believed from there.
    /// May be given more than once; in a file it is the list peers.
    peers: Vec<Given<Network>> = "", "NET", Kind::List;
    /// With --peer: look at packets of this interface before the stack does, by XDP, and have datagrams that leave by
    /// it carry the same, by tc. 'auto' is every interface with a default route or one to a peer. May be given more
    /// than once; in a file it is the list interfaces.
    interfaces: Vec<Given<Interface>> = "", "IF", Kind::List, with peers;
    /// With --peer: sign what is sent, and believe nothing else, by the key in this file. It has 32 hexadecimal digits,
    /// the same on all nodes.
    cluster_key: Option<PathBuf> = "", "FILE", Kind::Text(key::check_path), with peers;
    /// With --peer: the number of this node's CPU 0 in epochs and draws. CPU n has N + n, and no two CPUs of the
    /// cluster ought to have the same. [default: by the host's name]
    node_number: Option<u32> = "", "N", whole(0, 0xffff, "a whole number"), with peers;
    /// With --peer and --cluster-key: how many tasks that a task has heard from lately are asked for when it begins a
    /// slice. Their nodes run them if their gates allow. 0 turns it off.
    prefetch: Given<u32> = "0", "N", whole(0, COSCHED_PREFETCH_MAX as i64, "a whole number"), with peers;
    /// With --prefetch: the UDP port where nodes ask each other, the same on all.
    prefetch_port: Given<u16> = "9938", "PORT", whole(1, 0xffff, "a whole number"), with peers;
    /// Serve OpenMetrics at /metrics on ADDRESS:PORT; 'none' turns it off.
    // On this machine only. The ports from 9100 to 9999, which exporters have shared out among them, are all given
    // away; this one is below those that Linux gives to clients (32768).
    metrics_listen: MetricsListen = "127.0.0.1:29937", "ADDR", TEXT;
    /// How many jobs are shown under their own name.
    jobs_top: u32 = "20", "N", whole(0, COSCHED_MAX_JOBS as i64, "a whole number");
    /// Print statistics every SEC seconds.
    stats: Option<f64> = "", "SEC", Kind::Real(limits::STATS);
    /// Size in bytes of the debug dump after an error; 0 is the kernel's default.
    exit_dump_len: u32 = "0", "N", whole(0, 16 << 20, "a whole number of bytes");
    /// Show debug messages, among them those of libbpf and the verifier.
    verbose: bool = "false", "", Kind::Switch;
    /// Where the running scheduler is talked to.
    control_socket: PathBuf = DEFAULT_CONTROL_SOCKET, "PATH", Kind::Text(limits::check_socket);
    /// Hear what programs of any user say of their waits (libcosched), through the socket PATH, which all may use. The
    /// library looks for /run/scx_cosched-hints.sock. [default: nobody is heard]
    hints_socket: Option<PathBuf> = "", "PATH", Kind::Text(limits::check_socket);
}

/// The rows of all settings, the policy and its choices first.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    let (policy, rest) = ROWS.split_at(1);
    policy.iter().chain(choices::ROWS).chain(rest)
}

/// `run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Read settings from a TOML file; its keys are these flags' names (h_ms for --h-ms). Flags win.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The settings themselves.
    #[command(flatten)]
    pub flags: Flags,
}

/// What flags say of all settings.
#[derive(Clone, Debug, Default)]
pub struct Flags(Entries);

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(rows().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The flag of `row`, whose help says what holds without it, unless the row says so in its own words.
fn flag(row: &'static Row) -> Arg {
    let arg = row.arg();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if matches!(row.kind, Kind::Switch) || help.contains("[default: ") {
        return arg;
    }
    let is_choice = choices::ROWS.iter().any(|choice| choice.key == row.key);
    let default = if is_choice { presets::default_of(row.key) } else { "none".into() };
    arg.help(format!("{help} [default: {default}]"))
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Flags(entries(rows(), matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(entries(rows(), matches));
        Ok(())
    }
}

/// What has come of reading the configuration file again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The policy that is in force now.
    pub policy: PolicyView,
    /// Keys whose values have changed, and take effect when the scheduler is started again.
    pub restart_needed: Vec<String>,
}

/// Everything that `run` needs to know, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The command line, to read the file that it names again.
    pub args: RunArgs,
    /// The policy to start with.
    pub policy: Policy,
    /// The rows and names that jobs were given.
    pub given_to_jobs: gang::Given,
    /// Epochs on the wire, if there are peers.
    pub wire: Option<WireSettings>,
    /// All others.
    pub values: Values,
}

impl Settings {
    /// Reads the configuration file, if one is named, and merges it with the flags.
    ///
    /// # Errors
    /// One line that names the flag, or file and line, and what it takes.
    pub fn from_args(args: &RunArgs) -> Result<Settings> {
        let file = args.config.as_deref().map(|path| config::read(path, rows())).transpose()?.unwrap_or_default();
        // A flag does not hide that the file names a policy which there is not.
        preset(&Values::read(&file).map_err(Fault::into_error)?)?;
        let given = merge(file, args.flags.0.clone());
        let values = Values::read(&given).map_err(Fault::into_error)?;
        let choices = Choices::read(&given).map_err(Fault::into_error)?;

        let origin = |key: &str| given[key][0].origin.clone();
        let by_flag = values.policy.origin == Origin::Flag;
        let policy = preset(&values)?.policy.with(&choices, origin, by_flag).map_err(Fault::into_error)?;
        let rows = Patterns::new(&values.gang_rows, values.job_by).map_err(Fault::into_error)?;
        let names = Patterns::new(&values.job_names, values.job_by).map_err(Fault::into_error)?;
        let wire = wire(&values)?;
        if wire.is_none() {
            refuse_without_peers(&given).map_err(Fault::into_error)?;
        }
        Ok(Settings { args: args.clone(), policy, given_to_jobs: gang::Given { rows, names }, wire, values })
    }

    /// Reads the same configuration file again, under the same flags.
    ///
    /// # Errors
    /// If there is no such file, or as above.
    pub fn again(&self) -> Result<Settings> {
        if self.args.config.is_none() {
            bail!("no configuration file was named at the start (restart it with --config FILE)");
        }
        Settings::from_args(&self.args)
    }

    /// The keys whose values `new` has otherwise, but for those of the policy.
    pub fn changed(&self, new: &Settings) -> Vec<String> {
        let key = |settings: &Settings| settings.wire.as_ref().and_then(|wire| wire.key);
        let mut keys = self.values.changed(&new.values);
        // The file may have another key under the same name.
        if key(self) != key(new) && !keys.contains(&"cluster_key") {
            keys.push("cluster_key");
        }
        keys.into_iter().filter(|key| *key != "policy").map(String::from).collect()
    }
}

fn preset(given: &Values) -> Result<Preset> {
    presets::find(&given.policy.value).map_err(|unknown| given.policy.fault(unknown).into_error())
}

/// Epochs on the wire, if there is a peer.
fn wire(given: &Values) -> Result<Option<WireSettings>> {
    let peers = once(&given.peers).map_err(Fault::into_error)?;
    let interfaces = once(&given.interfaces).map_err(Fault::into_error)?;
    let Some(first) = given.peers.first() else { return Ok(None) };
    if peers.len() > COSCHED_WIRE_PEERS as usize {
        let message = format!("there are more than {COSCHED_WIRE_PEERS} (give larger networks)");
        return Err(first.fault(message).into_error());
    }
    let has_key = given.cluster_key.is_some();
    let prefetch = PrefetchSettings::new(&given.prefetch, &given.prefetch_port, has_key).map_err(Fault::into_error)?;
    let key = given.cluster_key.as_deref().map(Key::read).transpose().map_err(|e| anyhow!(e))?;
    let node_number = given.node_number.unwrap_or_else(default_node_number);
    Ok(Some(WireSettings { peers, interfaces, key, node_number, prefetch }))
}

fn refuse_without_peers(given: &Entries) -> Result<(), Fault> {
    let message = "it has no effect without a peer (leave it out, or name the peers' networks with --peer)";
    let mut lists = ROWS.iter().filter(|row| row.with == "peers").filter_map(|row| given.get(row.key));
    // A list in a file may be empty, and gives nothing then.
    lists.find_map(|entries| entries.first()).map_or(Ok(()), |first| Err(first.fault(message)))
}
