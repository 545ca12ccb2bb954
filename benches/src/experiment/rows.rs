//! Rows of `points.csv`: one repetition, with all that was measured.

use super::columns::COLUMNS;
use super::predicted::Predicted;
use super::spec::{Input, Point};
use serde_json::Value;
use std::collections::BTreeMap;

/// One repetition.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) point: Point,
    pub(crate) repetition: usize,
    /// The known values of [`COLUMNS`].
    pub(crate) numbers: BTreeMap<&'static str, f64>,
    pub(crate) environment: String,
    /// The reason why this repetition does not count.
    pub(crate) failure: Option<String>,
}

impl Row {
    /// The names of the columns of `points.csv`.
    pub(crate) fn head() -> impl Iterator<Item = &'static str> {
        let before = ["experiment", "scale", "point", "repetition", "circuit", "parameters"];
        before.into_iter().chain(COLUMNS).chain(["environment", "ok", "reason"])
    }

    /// The row in `points.csv`.
    pub(crate) fn fields(&self) -> Vec<String> {
        let point = &self.point;
        let options = point.options.iter().map(|(name, value)| format!("{name}={value}"));
        let numbers = point.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let parameters: Vec<String> = numbers.chain(options).collect();
        let mut fields = vec![
            point.experiment.clone(),
            point.scale.clone(),
            point.id.clone(),
            self.repetition.to_string(),
            point.circuit.clone(),
            parameters.join(" "),
        ];
        // An unknown value is an empty field, never 0.
        fields.extend(
            COLUMNS.iter().map(|column| {
                self.numbers.get(column).map_or_else(String::new, ToString::to_string)
            }),
        );
        fields.push(self.environment.clone());
        fields.push(self.failure.is_none().to_string());
        fields.push(self.failure.as_deref().map_or_else(String::new, str::to_owned));
        fields
    }

    /// A row for a repetition that does not count.
    pub(crate) fn failed(point: &Point, repetition: usize, environment: &str, why: String) -> Self {
        let numbers = known(point);
        Self {
            point: point.clone(),
            repetition,
            numbers,
            environment: environment.to_owned(),
            failure: Some(why),
        }
    }
}

/// Returns the columns of a point that are known before it is run.
#[allow(clippy::cast_precision_loss, reason = "small numbers")]
fn known(point: &Point) -> BTreeMap<&'static str, f64> {
    let always = [("cores", point.cores as f64), ("ranks", point.ranks() as f64)];
    let subcircuits = point.subcircuits.map(|n| ("subcircuits", n as f64));
    always.into_iter().chain(subcircuits).collect()
}

/// The sum of a field over all ranks' accounts of a phase; `None` without accounts.
fn accounts(report: &Value, phase: Option<&str>, field: &str) -> Option<f64> {
    let all = report["rank_accounts"].as_array()?;
    let of_phase = all.iter().filter(|a| phase.is_none_or(|phase| a["phase"] == phase));
    let values: Vec<f64> = of_phase.filter_map(|a| a[field].as_f64()).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

/// Adds the times that the run would have taken had no other program used the processors. `share` is
/// the part of a processor that provers had. `shared` is the number of cores if provers may outnumber
/// them: what they take from each other is not another program's.
pub(crate) fn adjust(row: &mut BTreeMap<&'static str, f64>, share: f64, shared: Option<f64>) {
    row.insert("processor_share", share);
    let provers = row.get("cores").copied();
    let most = shared.zip(provers).map_or(1.0, |(cores, provers)| (cores / provers).min(1.0));
    let own = (share / most).min(1.0);
    for (name, adjusted) in [("seconds", "adjusted_s"), ("aggregate_s", "adjusted_aggregate_s")] {
        if let Some(seconds) = row.get(name).copied() {
            row.insert(adjusted, seconds * own);
        }
    }
}

/// Adds the predicted times over those without other programs.
pub(crate) fn compare(row: &mut BTreeMap<&'static str, f64>, predicted: &Predicted) {
    for (column, adjusted, ratio) in [
        ("seconds", "adjusted_s", "model_ratio"),
        ("aggregate_s", "adjusted_aggregate_s", "model_aggregate_ratio"),
    ] {
        let both = predicted.seconds(column).zip(row.get(adjusted).copied());
        if let Some((model, measured)) = both.filter(|(_, measured)| *measured > 0.0) {
            row.insert(ratio, model / measured);
        }
    }
}

/// The bytes of each subcircuit's messages, and the part of the first rank with accounts.
fn traffic(report: &Value) -> [(&'static str, Option<f64>); 8] {
    let each = |phase: &str, field: &str| {
        let answers = accounts(report, Some(phase), "subcircuits").filter(|n| *n > 0.0)?;
        Some(accounts(report, Some(phase), field)? / answers)
    };
    let first = |phase: &str, field: &str| {
        let all = report["rank_accounts"].as_array()?;
        all.iter().find(|a| a["phase"] == phase)?[field].as_f64()
    };
    [
        ("commit_request_bytes", each("commit", "sent_bytes")),
        ("prove_request_bytes", each("prove", "sent_bytes")),
        ("commit_response_bytes", each("commit", "received_bytes")),
        ("prove_response_bytes", each("prove", "received_bytes")),
        ("first_rank_commit_answers", first("commit", "subcircuits")),
        ("first_rank_commit_bytes", first("commit", "received_bytes")),
        ("first_rank_prove_answers", first("prove", "subcircuits")),
        ("first_rank_prove_bytes", first("prove", "received_bytes")),
    ]
}

/// The number of slots of all subcircuits; `None` if the setup lists no types.
fn wires(setup: &Value) -> Option<f64> {
    let types = setup["manifest"]["types"].as_array().filter(|types| !types.is_empty())?;
    types.iter().map(|t| Some(t["slots"].as_f64()? * t["instances"].as_f64()?)).sum()
}

/// Returns the measurements of one repetition, from its report, its verification, its setup, and its
/// account.
#[allow(clippy::cast_precision_loss, reason = "small numbers")]
pub(crate) fn numbers(
    point: &Point,
    report: &Value,
    verified: &Value,
    setup: &Value,
    account: &Value,
) -> BTreeMap<&'static str, f64> {
    let mut row = known(point);
    let mut put = |name: &'static str, value: Option<f64>| {
        if let Some(value) = value.filter(|v| v.is_finite()) {
            row.insert(name, value);
        }
    };
    // A value that is not in a report becomes an empty field.
    let phases = report["phases"].as_array().map_or(&[][..], Vec::as_slice);
    let phase = |name: &str, field: &str| {
        phases.iter().find(|p| p["phase"] == name).and_then(|p| p[field].as_f64())
    };
    let parts = ["execute", "commit", "prove", "aggregate"].map(|p| phase(p, "seconds"));
    let seconds = parts.iter().copied().sum::<Option<f64>>().filter(|s| *s > 0.0);
    let subcircuits = report["subcircuits"].as_f64();
    let constraints = report["constraints"].as_f64();
    let per_second = |amount: Option<f64>| Some(amount? / seconds?);
    put("subcircuits", subcircuits);
    put("constraints", constraints);
    put("seconds", seconds);
    put("load_keys_s", phase("load_keys", "seconds"));
    let names = ["execute_s", "commit_s", "prove_s", "aggregate_s"];
    names.into_iter().zip(parts).for_each(|(name, value)| put(name, value));
    put("constraints_per_core_second", per_second(constraints).map(|r| r / point.cores as f64));
    put("units_per_second", per_second(point.units.map(|u| u as f64)));
    let cpu = account["cpu_seconds"].as_f64();
    put("cpu_seconds", cpu);
    put("constraints_per_cpu_second", constraints.zip(cpu).map(|(n, cpu)| n / cpu));
    let of_phases: Option<f64> = phases.iter().map(|p| p["cpu_seconds"].as_f64()).sum();
    put("prover_cpu_seconds", of_phases.filter(|_| !phases.is_empty()));
    put("busy_s", accounts(report, None, "busy_seconds"));
    put("idle_s", accounts(report, None, "idle_seconds"));
    for (name, value) in traffic(report) {
        put(name, value);
    }
    put("peak_memory_bytes", report["peak_memory_bytes"].as_f64());
    put("key_bytes", setup["proving_key_bytes"].as_f64());
    put("wires_per_subcircuit", wires(setup).zip(subcircuits).map(|(w, n)| w / n));
    // A witness is made with some effort, and no figure shows its size.
    let input = (point.input != Input::Epoch).then(|| point.input_bytes().ok()).flatten();
    let of_each = input.zip(subcircuits).map(|(input, n)| input.len() as f64 / n);
    put("input_bytes_per_subcircuit", of_each);
    put("proof_bytes", report["proof_bytes"].as_f64());
    put("verify_ms", verified["seconds"].as_f64().map(|s| s * 1e3));
    put("setup_s", setup["seconds"].as_f64());
    put("utilization", report["utilisation"].as_f64());
    put("aggregate_per_subcircuit_ms", parts[3].zip(subcircuits).map(|(s, n)| s * 1e3 / n));
    put("load_at_start", account["load_at_start"].as_f64());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provers_that_share_cores_are_no_other_program() {
        let adjusted = |share: f64, provers: f64, shared: Option<f64>| {
            let mut row = BTreeMap::from([("seconds", 6.0), ("cores", provers)]);
            adjust(&mut row, share, shared);
            row["adjusted_s"]
        };
        assert_eq!(adjusted(1.0, 2.0, None), 6.0);
        assert_eq!(adjusted(0.5, 2.0, None), 3.0, "another program had half");
        assert_eq!(adjusted(0.5, 4.0, Some(2.0)), 6.0, "four provers on two cores");
        assert_eq!(adjusted(0.25, 4.0, Some(2.0)), 3.0);
        assert_eq!(adjusted(0.5, 1.0, Some(2.0)), 3.0, "a core is idle");
    }
}
