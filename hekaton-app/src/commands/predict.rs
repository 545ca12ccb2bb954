//! `hekaton estimate --cores`: a run on a cluster, predicted by simulating it.

use crate::options::PredictionOptions;
use hekaton_circuit::Masking;
use hekaton_core::system;
use hekaton_plan::Estimate;
use hekaton_plan::simulate::{
    Cluster, ClusterFile, Constant, ConstantError, ConstantValue, Constants, Design, Load,
    Prediction, Source, predict,
};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{bytes, count, seconds_f64};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The hint that is added to an error about a constant.
const HINT: &str = "measure it with `hekaton estimate --calibrate FILE` on a node of the cluster, \
                    or state it in the table [assumed] of the file of --cluster";

/// The files and options of a prediction, read before anything is measured.
pub(crate) struct PredictionInputs {
    cluster: Cluster,
    file: ClusterFile,
    design: Design,
    constants: Constants,
    subcircuits: Option<u64>,
}

/// A prediction, and the facts that a reader needs to judge it.
pub(crate) struct Predicted {
    inputs: PredictionInputs,
    load: Load,
    prediction: Prediction,
    /// The same run with every measured constant at its fastest, and at its slowest.
    bounds: [Prediction; 2],
}

/// Reads a file and parses it; errors name the file.
fn parsed<T, E: std::fmt::Display>(
    path: &Path,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, Failure> {
    let text = exit::read(path)?;
    let failure = |e: &dyn std::fmt::Display| {
        Failure::new(exit::BAD_FILE, format!("{}: {e}", path.display()))
    };
    let text = std::str::from_utf8(&text).map_err(|e| failure(&e))?;
    parse(text).map_err(|e| failure(&e))
}

fn with_hint(error: ConstantError) -> Failure {
    Failure::new(exit::BAD_FILE, format!("{error}; {HINT}"))
}

impl PredictionInputs {
    /// Reads the files, and checks that all constants of the design are there. Returns `None`
    /// without `--cores`.
    pub(crate) fn read(options: &PredictionOptions) -> Result<Option<Self>, Failure> {
        let (Some(cores), Some(calibration)) = (options.cores, &options.calibration) else {
            return Ok(None);
        };
        // Without a cluster file, all of its values are assumed, and the result says so.
        let file = match &options.cluster {
            Some(path) => parsed(path, ClusterFile::from_toml)?,
            None => ClusterFile::default(),
        };
        let cluster = file.cluster.with_cores(cores).or_fail(exit::USAGE)?;
        let mut constants = parsed(calibration, Constants::from_json)?;
        file.assumed.iter().for_each(|(constant, value)| constants.assume(*constant, *value));
        let design = options.design.unwrap_or_else(|| crate::ranks::design(cluster.ranks()));
        // Now, and not after the circuit was measured.
        for constant in Constant::of_design(&design) {
            constants.get(constant).map_err(with_hint)?;
        }
        Ok(Some(Self { cluster, file, design, constants, subcircuits: options.subcircuits }))
    }

    /// Predicts the run of an estimated circuit.
    pub(crate) fn predict(
        self,
        estimate: &Estimate,
        masking: Masking,
    ) -> Result<Predicted, Failure> {
        let occurrence = self.constants.get(Constant::ExecuteOccurrence).map_err(with_hint)?.value;
        let load = Load::of_estimate(estimate, masking.slots() as u64, occurrence);
        let load = self.subcircuits.map_or(load, |n| load.with_subcircuits(n));
        let of = |load: &Load, constants: &Constants| {
            predict(load, &self.cluster, &self.design, constants).map_err(with_hint)
        };
        let prediction = of(&load, &self.constants)?;
        let ([fast, slow], [low, high]) = (self.constants.bounds(), load.bounds(estimate));
        // The smallest load with the fastest constants, and the reverse, so that the interval
        // covers what is uncertain about both.
        let bounds = [of(&low, &fast)?, of(&high, &slow)?];
        Ok(Predicted { inputs: self, load, prediction, bounds })
    }
}

impl Predicted {
    /// Returns notes on facts that may make the prediction wrong.
    fn notes(&self) -> Vec<String> {
        let Constants { processor, program, .. } = &self.inputs.constants;
        let (here, version) = (system::processor(), env!("CARGO_PKG_VERSION"));
        let mut notes = Vec::new();
        if *processor != here {
            notes.push(format!(
                "the constants are from another processor ({processor}) than the times of the \
                 subcircuits, which were measured here ({here})"
            ));
        }
        if program != version {
            notes.push(format!(
                "the constants were measured by version {program}, this is version {version}"
            ));
        }
        let mut constants = self.prediction.constants.iter();
        let is_measured = |found: &ConstantValue| found.source != Source::Assumed;
        if constants.any(|(_, found)| is_measured(found) && found.interval.is_none()) {
            notes.push("the calibration has constants without an interval: measure again".into());
        }
        notes
    }

    /// The values of the cluster by name; `true` if the cluster file states them.
    fn cluster(&self) -> impl Iterator<Item = (&'static str, f64, bool)> {
        let stated = |name: &str| self.inputs.file.stated.contains(name);
        self.inputs.cluster.values().map(move |(name, value)| (name, value, stated(name)))
    }

    /// The lowest and the highest prediction of a time.
    fn interval(&self, of: impl Fn(&Prediction) -> f64) -> [f64; 2] {
        let found = [of(&self.bounds[0]), of(&self.prediction), of(&self.bounds[1])];
        // Rounds are simulated: by chance, a round of faster subcircuits can end later.
        found.into_iter().fold([f64::INFINITY, 0.0], |[low, high], t| [low.min(t), high.max(t)])
    }

    pub(crate) fn object(&self) -> Value {
        let p = &self.prediction;
        let phases: Vec<Value> = (p.phases.named().iter().enumerate())
            .map(|(i, (phase, seconds))| {
                let interval = self.interval(|p| p.phases.named()[i].1);
                json!({ "phase": phase, "seconds": seconds, "interval": interval })
            })
            .collect();
        let cluster: Map<String, Value> = (self.cluster())
            .map(|(name, value, stated)| {
                let source = if stated { "cluster file" } else { "assumed" };
                (name.to_owned(), json!({ "value": value, "source": source }))
            })
            .collect();
        json!({
            "design": p.design, "cores": p.cores, "ranks": p.ranks,
            "subcircuits": p.subcircuits, "constraints": self.load.constraints,
            "phases": phases, "seconds": p.seconds(),
            "interval": self.interval(Prediction::seconds), "ideal_seconds": p.ideal_seconds,
            "efficiency": p.efficiency(), "efficiency_of_rounds": p.efficiency_of_rounds(),
            "coordinator_busy": { "commit": p.coordinator_busy[0], "prove": p.coordinator_busy[1] },
            "constraints_per_core_second": p.constraints_per_core_second,
            "rank_0_memory_bytes": p.rank_0_bytes, "rank_memory_bytes": p.rank_bytes,
            "network_bytes": p.network_bytes, "expected_seconds": p.expected_seconds,
            "usd": p.cost, "bottleneck": p.bottleneck(),
            "load": {
                "wires_per_subcircuit": self.load.wires,
                "private_bytes_per_subcircuit": self.load.private_bytes,
                "alone_seconds_per_subcircuit": self.load.alone_seconds,
                "execute_seconds_per_subcircuit": self.load.execute_seconds,
                "source": "measured on this machine for the circuit",
            },
            "cluster": cluster, "constants": self.constants(),
            "calibration": {
                "processor": self.inputs.constants.processor,
                "program": self.inputs.constants.program,
            },
            "notes": self.notes(),
        })
    }

    /// The constants that were used, with their sources.
    fn constants(&self) -> Map<String, Value> {
        let entry = |found: &ConstantValue| match &found.source {
            Source::Measured(how) => {
                json!({
                    "value": found.value, "interval": found.interval, "source": "measured",
                    "how": how,
                })
            }
            Source::Assumed => json!({ "value": found.value, "source": "assumed" }),
        };
        let all = self.prediction.constants.iter();
        all.map(|(constant, found)| (constant.name().to_owned(), entry(found))).collect()
    }

    pub(crate) fn table(&self) -> String {
        let p = &self.prediction;
        let mut out = format!(
            "\n\npredicted on {} cores, {} ranks of {}, design {}, {} subcircuits\n\n",
            count(p.cores),
            count(p.ranks),
            self.inputs.cluster.provers_per_rank,
            p.design,
            count(p.subcircuits)
        );
        let mut row = |name: &str, value: String| out += &format!("{name:<22} {value:>10}\n");
        for (phase, seconds) in p.phases.named() {
            row(&phase.replace('_', " "), seconds_f64(seconds));
        }
        row("all", seconds_f64(p.seconds()));
        let [low, high] = self.interval(Prediction::seconds);
        row("at least", seconds_f64(low));
        row("at most", seconds_f64(high));
        row("all, with failures", seconds_f64(p.expected_seconds));
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        row("efficiency", percent(p.efficiency()));
        row("efficiency of rounds", percent(p.efficiency_of_rounds()));
        row("rank 0 busy, commit", percent(p.coordinator_busy[0]));
        row("rank 0 busy, prove", percent(p.coordinator_busy[1]));
        row("memory of rank 0", whole(p.rank_0_bytes));
        row("memory of a rank", whole(p.rank_bytes));
        row("network", whole(p.network_bytes));
        row("cost", format!("{:.2} USD", p.cost));
        row("bottleneck", p.bottleneck().replace('_', " "));
        out += &self.sources();
        out.trim_end().to_owned()
    }

    /// Describes in words the constants that are measured and those that are assumed.
    fn sources(&self) -> String {
        let names = |assumed: bool| -> Vec<&str> {
            let list = self.prediction.constants.iter();
            let wanted = list.filter(|(_, found)| (found.source == Source::Assumed) == assumed);
            wanted.map(|(constant, _)| constant.name()).collect()
        };
        let mut out = String::from("\nmeasured here   times of the subcircuits, execution\n");
        let mut list = |title: &str, names: &[String]| {
            if !names.is_empty() {
                out += &format!("{title:<15} {}\n", names.join("\n                "));
            }
        };
        let calibrated = format!(
            "{} constants of the calibration ({})",
            names(false).len(),
            self.inputs.constants.processor
        );
        list("measured", &[calibrated]);
        let values = |stated: bool| -> Vec<String> {
            let found = self.cluster().filter(|(_, _, s)| *s == stated);
            found.map(|(name, value, _)| format!("{name} = {}", short(value))).collect()
        };
        list("cluster file", &values(true));
        let constants = self.prediction.constants.iter();
        let stated = constants.filter(|(_, found)| found.source == Source::Assumed);
        let mut assumed: Vec<String> =
            stated.map(|(c, found)| format!("{} = {}", c.name(), short(found.value))).collect();
        assumed.extend(values(false));
        list("assumed", &assumed);
        list("note", &self.notes());
        out
    }
}

/// Formats a value so that it can be copied into a cluster file.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// Formats a predicted number of bytes.
#[allow(clippy::cast_possible_truncation, reason = "a rounded figure")]
fn whole(n: f64) -> String {
    bytes(n as u64)
}
