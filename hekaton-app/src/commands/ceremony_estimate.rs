//! `hekaton estimate --ceremony`: what a setup ceremony for the keys of a circuit takes.

use hekaton_ceremony::{CeremonyCost, StepCost};
use hekaton_terminal::output::{bytes, count, seconds_f64};
use serde_json::{Value, json};

/// The memory that contributions and checks need beside the program, whatever their size: pieces of 2^16 points.
const MEMORY: u64 = 200 << 20;

/// The estimate of a ceremony with a number of contributors.
pub(crate) struct CeremonyEstimate {
    cost: CeremonyCost,
    contributors: u32,
    /// Bytes per second, for downloads and for uploads.
    bandwidth: u64,
}

impl CeremonyEstimate {
    pub(crate) fn new(cost: CeremonyCost, contributors: u32, bandwidth: u64) -> Self {
        Self { cost, contributors, bandwidth }
    }

    /// The turn of one contributor: download, computation, upload, and the coordinator's check.
    fn turn(&self, step: &StepCost) -> f64 {
        2.0 * step.bytes as f64 / self.bandwidth as f64 + step.contribute + step.add
    }

    fn duration(&self, step: &StepCost) -> f64 {
        step.new + f64::from(self.contributors) * self.turn(step) + step.verify
    }

    pub(crate) fn object(&self) -> Value {
        let step = |step: &StepCost| {
            json!({
                "points_g1": step.points[0], "points_g2": step.points[1], "bytes": step.bytes,
                "new_seconds": step.new, "contribute_seconds": step.contribute,
                "add_seconds": step.add, "verify_seconds": step.verify,
                "ceremony_seconds": self.duration(step),
            })
        };
        let types: Vec<Value> = (self.cost.types.iter())
            .map(|kind| {
                let [l, x, h, d] = kind.points;
                json!({
                    "type": kind.name, "rows": kind.rows, "domain": kind.domain,
                    "l": l, "x": x, "h": h, "d": d,
                })
            })
            .collect();
        json!({
            "rows": self.cost.domain, "subcircuits": self.cost.instances, "types": types,
            "powers": step(&self.cost.powers), "family": step(&self.cost.family),
            "contributors": self.contributors, "bandwidth": self.bandwidth,
            "memory": MEMORY, "disk": self.cost.disk,
        })
    }

    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "\n\na ceremony needs powers with --rows {} --subcircuits {} or more\n",
            self.cost.domain, self.cost.instances
        );
        for kind in &self.cost.types {
            let points: usize = kind.points.iter().sum();
            text += &format!(
                "  {:<20} {:>12} rows, domain {:>11}, {:>12} points\n",
                kind.name,
                count(kind.rows as u64),
                count(kind.domain as u64),
                count(points as u64)
            );
        }
        for (name, step) in [("powers", &self.cost.powers), ("family", &self.cost.family)] {
            if step.new > 0.0 {
                text += &format!("  {name}: `new` takes {}\n", seconds_f64(step.new));
            }
            text += &format!(
                "  {name}: a contributor reads and writes {} each, and computes {}; `add` takes {}\n\
                 \x20 {name}: {} contributors one after another and a check of everything, {}, take {}\n",
                bytes(step.bytes),
                seconds_f64(step.contribute),
                seconds_f64(step.add),
                count(self.contributors.into()),
                seconds_f64(step.verify),
                seconds_f64(self.duration(step)),
            );
        }
        text + &format!(
            "  on machines like this one with {} a second; contributors need less than {} of memory,\n  \
             the coordinator {} of disk",
            bytes(self.bandwidth),
            bytes(MEMORY),
            bytes(self.cost.disk),
        )
    }
}
