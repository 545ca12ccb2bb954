//! Tables and JSON of cuts.

use super::cuts::Cuts;
use hekaton_plan::prover_bytes;
use hekaton_r1cs::directory::Summary;
use hekaton_r1cs::partition::{Considered, Depth, FIXED_ROWS, PartSizes};
use hekaton_r1cs::{Monolith, Template};
use hekaton_terminal::output::{bytes, count, seconds_f64};
use serde_json::{Value, json};

/// The maximum number of types, or templates, that a table lists.
const LISTED: usize = 20;

/// The types of an import, for people.
pub(super) fn types_table(summary: &Summary) -> String {
    let mut lines = format!(
        "{:<8} {:>7} {:>12} {:>9} {:>12} {:>6}\n",
        "type", "parts", "constraints", "slots", "own wires", "full"
    );
    for kind in summary.types.iter().take(LISTED) {
        let rows = u64::from(kind.rows) + u64::from(kind.slots) + FIXED_ROWS;
        #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
        let full = 100.0 * rows as f64 / summary.most as f64;
        lines += &format!(
            "{:<8} {:>7} {:>12} {:>9} {:>12} {:>4.0} %\n",
            kind.name,
            count(kind.parts.into()),
            count(kind.rows.into()),
            count(kind.slots.into()),
            count(kind.own.into()),
            full
        );
    }
    if let Some(more) = summary.types.len().checked_sub(LISTED).filter(|more| *more > 0) {
        lines += &format!("and {more} more types; --json lists all\n");
    }
    lines
}

/// A size that was considered, as JSON.
pub(super) fn cut_object(cuts: &Cuts, cut: &Considered) -> Value {
    let plan = &cuts.plan;
    let parts = match &cut.parts {
        Ok(parts) => parts,
        Err(error) => return json!({ "rows": cut.most, "error": error.to_string() }),
    };
    let cost = cuts.cost(parts);
    let known = match cut.depth {
        Depth::Bound => "bound",
        Depth::Draft => "draft",
        Depth::Plan => "plan",
    };
    let mut object = json!({
        "rows": cut.most, "known": known, "parts": parts.iter().map(|kind| kind.parts).sum::<u64>(),
        "types": parts.len(), "slots": slots(parts), "rows_added": added(&cuts.monolith, parts),
        "key_bytes": cost.key_bytes, "prover_bytes": memory(parts), "run_seconds": cost.run_seconds(),
        "setup_seconds": cost.setup_seconds, "cost_seconds": cost.seconds(),
        "chosen": cut.most == plan.most,
    });
    if cut.most == plan.most {
        let [sums, packs] = plan.parts.derived.counts();
        (object["sums"], object["packs"]) = (json!(sums), json!(packs));
    }
    object
}

fn slots(parts: &[PartSizes]) -> u64 {
    parts.iter().map(|kind| kind.parts * kind.slots).sum()
}

/// The rows of parts in addition to the constraints, as a fraction of these.
#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
fn added(monolith: &Monolith, parts: &[PartSizes]) -> f64 {
    let rows: u64 = parts.iter().map(|kind| kind.parts * kind.constraints).sum();
    let source = monolith.system().rows() as u64;
    (rows + slots(parts)).saturating_sub(source) as f64 / source.max(1) as f64
}

/// The memory of a prover of the largest part.
fn memory(parts: &[PartSizes]) -> u64 {
    // Each slot has a value and a LogUp term in the witness.
    let each =
        |kind: &PartSizes| prover_bytes(kind.constraints + kind.slots, kind.own + 2 * kind.slots);
    parts.iter().map(each).fold(0, u64::max)
}

/// The sizes that were considered, for people.
pub(super) fn cuts_table(cuts: &Cuts) -> String {
    let mut lines = format!(
        "{:>11} {:>8} {:>7} {:>12} {:>8} {:>11} {:>11} {:>9} {:>9}\n",
        "rows a part", "parts", "types", "slots", "added", "keys", "memory each", "setup", "run"
    );
    for cut in &cuts.considered {
        let parts = match &cut.parts {
            Ok(parts) => parts,
            Err(error) => {
                lines += &format!("{:>11}  {error}\n", count(cut.most));
                continue;
            }
        };
        let cost = cuts.cost(parts);
        let mark = match cut.depth {
            Depth::Plan if cut.most == cuts.plan.most => "  <- import takes this",
            Depth::Plan => "",
            Depth::Draft => "  (a quick cut)",
            Depth::Bound => "  (at least: not cut)",
        };
        lines += &format!(
            "{:>11} {:>8} {:>7} {:>12} {:>6.2} % {:>11} {:>11} {:>9} {:>9}{mark}\n",
            count(cut.most),
            count(parts.iter().map(|kind| kind.parts).sum()),
            count(parts.len() as u64),
            count(slots(parts)),
            100.0 * added(&cuts.monolith, parts),
            bytes(cost.key_bytes),
            bytes(memory(parts)),
            seconds_f64(cost.setup_seconds),
            seconds_f64(cost.run_seconds()),
        );
    }
    lines
}

/// The templates that repeat, for people.
pub(super) fn template_table(templates: &[Template]) -> String {
    if templates.is_empty() {
        return String::new();
    }
    let mut lines = format!(
        "\n{:>11} {:>12} {:>10}  templates that repeat, by their first component\n",
        "components", "constraints", "interface"
    );
    for template in templates.iter().take(LISTED) {
        lines += &format!(
            "{:>11} {:>12} {:>10}  {}\n",
            count(template.components),
            count(template.rows),
            count(template.interface),
            template.example
        );
    }
    if let Some(more) = templates.len().checked_sub(LISTED).filter(|more| *more > 0) {
        lines += &format!("and {more} more; --json lists all\n");
    }
    lines + "\n"
}
