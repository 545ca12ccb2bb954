//! The scales of an experiment: which of its points there are on which machine.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scales {
    pub(super) tiny: Option<Scale>,
    pub(super) laptop: Option<Scale>,
    pub(super) node: Option<Scale>,
    pub(super) cluster: Option<Scale>,
}

/// The points of one scale: all combinations of subcircuits, cores, and listed parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Scale {
    pub(super) parameters: BTreeMap<String, Setting>,
    /// Circuits that are compared, by name; without any, the experiment's circuit alone.
    #[serde(default)]
    pub(super) variants: BTreeMap<String, Variant>,
    /// Points that only the model knows.
    pub(super) projection: Option<Projection>,
    /// Combinations of parameters that take too long are left out.
    #[serde(default)]
    pub(super) limits: Vec<Limit>,
    /// The numbers of subcircuits; without these or the next, the circuit has as many as it needs.
    pub(super) subcircuits: Option<Vec<u64>>,
    /// The number of subcircuits grows with the cores instead.
    pub(super) subcircuits_per_core: Option<u64>,
    pub(super) cores: Vec<usize>,
    /// Ranks of this many provers instead of threads of one process.
    pub(super) provers_per_rank: Option<usize>,
    #[serde(default = "yes")]
    pub(super) root_proves: bool,
    /// The way in which ranks get subcircuits: from each other's queues, or a fixed share each.
    #[serde(default)]
    pub(super) schedule: Schedule,
    /// `true` if points may have more cores than the machine, which their provers then share.
    #[serde(default)]
    pub(super) oversubscribe: bool,
    pub(crate) repetitions: usize,
}

/// A circuit that is compared with others in one figure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Variant {
    /// Another circuit than the experiment's.
    pub(super) circuit: Option<String>,
    /// Its own parameters, which no point varies.
    #[serde(default)]
    pub(super) options: BTreeMap<String, String>,
}

/// Points on machines that are not there, for the model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Projection {
    pub(super) cores: Vec<usize>,
    pub(super) provers_per_rank: usize,
    /// Other numbers of subcircuits than those of measured points.
    pub(super) subcircuits: Option<Vec<u64>>,
    /// Parameters with other values than those of measured points.
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, Setting>,
    #[serde(default)]
    pub(super) limits: Vec<Limit>,
}

/// Upper limits on parameters, for points of this variant whose parameters have the values of `when`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Limit {
    pub(super) variant: Option<String>,
    #[serde(default)]
    pub(super) when: BTreeMap<String, u64>,
    pub(super) most: BTreeMap<String, u64>,
}

impl Limit {
    pub(super) fn excludes(
        &self,
        variant: Option<&str>,
        parameters: &BTreeMap<String, u64>,
    ) -> bool {
        self.variant.as_deref().is_none_or(|own| Some(own) == variant)
            && self.when.iter().all(|(name, value)| parameters.get(name) == Some(value))
            && self.most.iter().any(|(name, most)| parameters.get(name).is_some_and(|v| v > most))
    }
}

/// The assignment of subcircuits to ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Schedule {
    #[default]
    Dynamic,
    Static,
}

impl Schedule {
    /// The value of `--schedule`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dynamic => "dynamic",
            Self::Static => "static",
        }
    }
}

fn yes() -> bool {
    true
}

/// The value of a parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, a list of numbers, \"subcircuits\", or \"subcircuits/N\""
)]
pub(super) enum Setting {
    Number(u64),
    List(Vec<u64>),
    Formula(String),
}

/// "subcircuits" or "subcircuits/N".
pub(super) fn formula(text: &str, subcircuits: u64) -> Result<u64, String> {
    let rest = text.trim().strip_prefix("subcircuits").map(str::trim);
    let divisor = match rest {
        Some("") => Some(1),
        Some(rest) => rest.strip_prefix('/').and_then(|n| n.trim().parse::<u64>().ok()),
        None => None,
    };
    match divisor {
        Some(divisor) if divisor > 0 && subcircuits.is_multiple_of(divisor) => {
            Ok(subcircuits / divisor)
        }
        Some(divisor) => Err(format!("{subcircuits} subcircuits are not divisible by {divisor}")),
        None => {
            Err(format!("cannot compute {text:?}: expected \"subcircuits\" or \"subcircuits/N\""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas() {
        assert_eq!(formula("subcircuits", 64), Ok(64));
        assert_eq!(formula("subcircuits / 2", 64), Ok(32));
        for text in ["leaves", "subcircuits/0", "subcircuits/3", "subcircuits*2", ""] {
            assert!(formula(text, 64).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_leave_combinations_out() {
        let map = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let limit =
            Limit { variant: None, when: map(&[("memory", 1)]), most: map(&[("cycles", 64)]) };
        for (memory, cycles, excluded) in [(1, 64, false), (1, 65, true), (0, 65, false)] {
            let point = map(&[("memory", memory), ("cycles", cycles)]);
            assert_eq!(limit.excludes(None, &point), excluded, "{memory} {cycles}");
        }
        let of_one = Limit { variant: Some("a".into()), ..limit };
        let large = map(&[("memory", 1), ("cycles", 65)]);
        for (variant, excluded) in [(None, false), (Some("a"), true), (Some("b"), false)] {
            assert_eq!(of_one.excludes(variant, &large), excluded, "{variant:?}");
        }
    }
}
