// SPDX-License-Identifier: GPL-2.0-only
//! A policy is a rule on each axis, with parameters. It starts as a preset; single choices can be overridden, and
//! what then has no effect is refused with the name of the setting at fault.

use serde::{Deserialize, Serialize};

use crate::choices::{Arrival, Choices, Wait, row};
use crate::costs::Costs;
use crate::intf;
use crate::rows::{Fault, Need, Origin};

/// A rule on each axis, with parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The preset that it started as.
    pub preset: String,
    /// Exactly the choices that have an effect.
    pub choices: Choices,
    /// What the preset has, and the defaults for the rest: what a choice is that comes to have an effect.
    base: Choices,
}

/// A policy as every output shows it. Parameters that no rule of it uses are absent; the gate is there always.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyView {
    /// The preset, with what was overridden: `dcs`, `dcs+h_ms=-20`.
    pub name: String,
    /// Its choices.
    #[serde(flatten)]
    pub choices: Choices,
}

/// What messages and switches cost, as the spin rules reckon with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostsView {
    /// The values.
    #[serde(flatten)]
    pub costs: Costs,
    /// How they are known: "measured", "assumed", "set by hand".
    pub source: String,
}

/// Says of a choice that was made whether it has an effect, and if not, whose fault that is.
struct Moot<'a, F> {
    all: &'a Choices,
    overrides: &'a Choices,
    origin: F,
    preset_by_flag: bool,
}

impl<F: Fn(&str) -> Origin> Moot<'_, F> {
    /// A line of the configuration file which a flag has made moot is no error: it is passed over.
    fn check(&self, key: &str) -> Result<(), Fault> {
        let Some(need) = row(key).unmet(self.all) else { return Ok(()) };
        let origin = (self.origin)(key);
        if origin != Origin::Flag && self.made_by_flag(need) {
            return Ok(());
        }
        let (axis, rules) = need[0];
        let is = self.all.text(axis).unwrap_or_default();
        let needs = rules[0];
        let message = format!("it has no effect with {axis} '{is}' (leave it out, or choose {axis} '{needs}')");
        Err(row(key).fault(&origin, message))
    }

    fn made_by_flag(&self, need: Need) -> bool {
        let by_flag = |axis: &str| self.overrides.text(axis).map(|_| (self.origin)(axis) == Origin::Flag);
        let others = &need[1..];
        by_flag(need[0].0).unwrap_or(self.preset_by_flag) || others.iter().any(|(axis, _)| by_flag(axis) == Some(true))
    }
}

impl Policy {
    /// The preset called `preset`, which has `base`: every choice but for costs.
    pub fn new(preset: &str, base: Choices) -> Policy {
        Policy { preset: preset.into(), choices: base.effective(), base }
    }

    /// This policy with `overrides`, each of which was given at its `origin`. `preset_by_flag`: the preset was named on
    /// the command line.
    ///
    /// # Errors
    /// Names a setting that has no effect together with the others, and what to do about it.
    pub fn with(
        &self,
        overrides: &Choices,
        origin: impl Fn(&str) -> Origin,
        preset_by_flag: bool,
    ) -> Result<Policy, Fault> {
        let all = overrides.or(&self.complete());
        let moot = Moot { all: &all, overrides, origin, preset_by_flag };
        overrides.texts().try_for_each(|(key, _)| moot.check(key))?;
        Ok(Policy { choices: all.effective(), ..self.clone() })
    }

    /// With what the rules would take that are not in force.
    fn complete(&self) -> Choices {
        self.choices.or(&self.base)
    }

    /// The preset's name, followed by what differs from the preset.
    pub fn name(&self) -> String {
        let preset = self.base.effective();
        let differs = self.choices.texts().filter(|(key, value)| preset.text(key).as_ref() != Some(value));
        differs.fold(self.preset.clone(), |name, (key, value)| format!("{name}+{key}={value}"))
    }

    /// Does it want to see messages and waits? One that does not costs nothing for the hooks.
    pub fn needs_hooks(&self) -> bool {
        matches!(self.choices.arrival, Some(Arrival::Demand | Arrival::Periodic | Arrival::Beat))
            || self.choices.wait != Some(Wait::Busy)
    }

    /// As every output shows it.
    pub fn view(&self) -> PolicyView {
        PolicyView { name: self.name(), choices: Choices { gate: self.complete().gate, ..self.choices.clone() } }
    }

    /// What messages and switches cost: what is set by hand, and for the rest what the `node` takes.
    pub fn costs(&self, node: &CostsView) -> CostsView {
        let Choices { latency_us, overhead_us, switch_us, .. } = self.choices;
        let set = [("L", latency_us), ("o", overhead_us), ("W", switch_us)];
        let set: Vec<&str> = set.iter().filter(|(_, cost)| cost.is_some()).map(|(name, _)| *name).collect();
        let source = match set.len() {
            0 => node.source.clone(),
            3 => "set by hand".into(),
            _ => format!("{}, but {} set by hand", node.source, set.join(" and ")),
        };
        CostsView { costs: self.overlay(&node.costs), source }
    }

    fn overlay(&self, costs: &Costs) -> Costs {
        Costs {
            latency_us: self.choices.latency_us.unwrap_or(costs.latency_us),
            overhead_us: self.choices.overhead_us.unwrap_or(costs.overhead_us),
            switch_us: self.choices.switch_us.unwrap_or(costs.switch_us),
        }
    }

    /// As the BPF side reads it, on a node with these `costs`.
    pub fn to_bpf(&self, costs: &Costs) -> intf::cosched_policy {
        let Costs { latency_us, overhead_us, switch_us } = self.overlay(costs);
        let costs = [latency_us, overhead_us, switch_us].map(Some);
        let [latency_us, overhead_us, switch_us] = costs;
        Choices { latency_us, overhead_us, switch_us, ..self.complete() }.to_bpf()
    }
}

/// What `policy set` asks for, as it crosses the control socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChange {
    /// The preset to start from; absent: the policy in force.
    pub name: Option<String>,
    /// Single choices, other than that has them.
    #[serde(flatten)]
    pub choices: Choices,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::{Gate, ROWS};
    use crate::presets;

    const NODE: Costs = Costs { latency_us: 1.0, overhead_us: 2.0, switch_us: 3.0 };

    fn choices(toml: &str) -> Choices {
        toml::from_str(toml).unwrap()
    }

    fn change(preset: &str, toml: &str) -> Policy {
        presets::find(preset).unwrap().policy.with(&choices(toml), |_| Origin::Flag, false).unwrap()
    }

    #[test]
    fn what_has_no_effect_is_not_there() {
        let policy = change("dcs", "gate = 'rate'\nspin = 'baseline'");
        let wanted = "arrival = 'demand'\ngate = 'rate'\nrate_exponent = 0\nrate_average = false\nrate_constant_ms = 0
            epochs = false\nresidual_slice = false\nwait = 'spin'\nspin = 'baseline'\nslice_us = 20000";
        assert_eq!(policy.choices, choices(wanted));
    }

    #[test]
    fn what_comes_to_have_an_effect_is_what_the_preset_has() {
        let overrides = choices("arrival = 'none'\nwait = 'busy'");
        let idle = change("dcs", "slice_us = 5000").with(&overrides, |_| Origin::Flag, false).unwrap();
        assert_eq!(idle.choices, choices("arrival = 'none'\nwait = 'busy'\nslice_us = 5000"));
        let overrides = choices("arrival = 'demand'\nwait = 'spin'");
        assert_eq!(idle.with(&overrides, |_| Origin::Flag, false).unwrap(), change("dcs", "slice_us = 5000"));
    }

    #[test]
    fn a_task_that_yields_has_another_one_boosted() {
        let policy =
            change("local", "wait = 'spin-yield'\ngate = 'equalizing'\nh_ms = -5\nboost_choice = 'most-pending'");
        assert_eq!((policy.choices.gate, policy.choices.h_ms), (Some(Gate::Equalizing), Some(-5.0)));
        assert!(policy.needs_hooks());
    }

    #[test]
    fn the_view_has_a_gate_always() {
        let local = presets::find("local").unwrap().policy;
        assert_eq!((local.choices.gate, local.view().choices.gate), (None, Some(Gate::Always)));
        assert!(!local.needs_hooks());
    }

    #[test]
    fn a_flag_makes_a_line_moot_through_either_axis_of_a_need() {
        let dcs = presets::find("dcs").unwrap().policy;
        let line = || Origin::File { path: std::sync::Arc::new("c.toml".into()), line: 1 };
        let overrides = choices("arrival = 'none'\nboost_choice = 'most-pending'");
        let fault = dcs.with(&overrides, |_| line(), false).unwrap_err();
        let wanted = "c.toml:1: boost_choice: it has no effect with arrival 'none' \
                      (leave it out, or choose arrival 'periodic')";
        assert_eq!(fault.message(), wanted);
        let overrides = choices("wait = 'busy'").or(&overrides);
        let origin = |key: &str| if key == "wait" { Origin::Flag } else { line() };
        assert_eq!(dcs.with(&overrides, origin, false).unwrap().name(), "dcs+arrival=none+wait=busy");
    }

    #[test]
    fn costs_set_by_hand_win_over_those_of_the_node() {
        let node = CostsView { costs: NODE, source: "measured".into() };
        let source = |toml: &str| change("implicit", toml).costs(&node).source;
        assert_eq!(source(""), "measured");
        assert_eq!(source("latency_us = 9\nswitch_us = 9"), "measured, but L and W set by hand");
        assert_eq!(source("latency_us = 9\nswitch_us = 9\noverhead_us = 9"), "set by hand");

        let policy = change("implicit", "latency_us = 9.5");
        assert_eq!(policy.costs(&node).costs, Costs { latency_us: 9.5, ..NODE });
        let bpf = policy.to_bpf(&NODE);
        assert_eq!((bpf.latency_ns, bpf.overhead_ns, bpf.switch_ns), (9500, 2000, 3000));
    }

    #[test]
    fn every_choice_reaches_the_bpf_side() {
        let toml = "arrival = 'periodic'\ngate = 'rate'\nh_ms = -1.5\ntarget_fairness = 1.25\nrate_exponent = -3
            rate_average = true\nrate_constant_ms = 0.5\nepochs = true\nresidual_slice = true
            boost_choice = 'longest-waiting'\nwait = 'spin-yield'
            spin = 'adaptive-global'\nspin_us = 7\nrecheck_ms = 8\ninterval_us = 900\nquantum_ms = 10\nrows = 11
            slice_us = 1200\nlatency_us = 13\noverhead_us = 14\nswitch_us = 15";
        let base = choices(toml);
        assert_eq!(base.texts().count(), ROWS.len());
        // Those that have no effect now are there too, as the rules would take them.
        let wanted = intf::cosched_policy {
            arrival: intf::cosched_arrival_COSCHED_ARRIVAL_PERIODIC,
            gate: intf::cosched_gate_COSCHED_GATE_RATE,
            wait: intf::cosched_wait_COSCHED_WAIT_SPIN_YIELD,
            spin: intf::cosched_spin_COSCHED_SPIN_ADAPTIVE_GLOBAL,
            choice: intf::cosched_choice_COSCHED_CHOICE_LONGEST_WAITING,
            residual_slice: 1,
            slice_ns: 1_200_000,
            interval_ns: 900_000,
            h_ns: -1_500_000,
            rate_constant_ns: 500_000,
            rate_exponent: -3,
            target_permille: 1250,
            spin_ns: 7000,
            latency_ns: 13_000,
            overhead_ns: 14_000,
            switch_ns: 15_000,
            recheck_ns: 8_000_000,
            quantum_ns: 10_000_000,
            rows: 11,
            epochs: 1,
            rate_average: 1,
        };
        assert_eq!(format!("{:?}", Policy::new("all", base).to_bpf(&NODE)), format!("{wanted:?}"));
    }
}
