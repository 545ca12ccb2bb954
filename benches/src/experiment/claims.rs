//! The claims C1 to C9, judged from medians alone.

use super::failure::Failure;
use super::measured::Measured;
use super::model::{self, Comparison};
use super::plan::Plan;
use super::session::Session;
use super::statistics::Fit;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Fails,
    /// The results do not suffice for a verdict.
    Skipped,
}

impl Verdict {
    /// The word for files and figures.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Skipped => "skipped",
        }
    }
}

/// One claim with its verdict.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) id: &'static str,
    pub(crate) text: &'static str,
    experiment: &'static str,
    condition: &'static str,
    pub(crate) verdict: Verdict,
    /// The figures that were measured, or the reason why there is no verdict.
    pub(crate) found: String,
}

impl Claim {
    /// The claim in `claims.json`.
    pub(crate) fn object(&self) -> Value {
        json!({
            "id": self.id, "claim": self.text, "experiment": self.experiment,
            "holds_when": self.condition, "verdict": self.verdict.word(), "found": self.found,
        })
    }
}

/// A verdict, or the reason why there is no verdict.
type Judged = Result<(bool, String), String>;

/// Text, experiment and condition of each claim.
const CLAIMS: [(&str, &str, &str, &str); 9] = [
    ("C1", "latency is linear in the size at fixed cores", "fig7", "r^2 >= 0.9858 on every curve"),
    (
        "C2",
        "constraints per core-second on 4 and 32 cores, relative to one core",
        "overhead",
        ">= 0.90 and >= 0.87",
    ),
    (
        "C3",
        "bytes per subcircuit in both rounds",
        "table2",
        "request <= 40 per wire + private input + 400; responses have one size",
    ),
    (
        "C4",
        "aggregation is at most linear in n, and is divided by the ranks",
        "fig8",
        "cost per further subcircuit rises by at most 10 %; for 2 ranks at most 1 / 1.75 of that for 1",
    ),
    (
        "C5",
        "proof size and verification time",
        "proof",
        "42 + 192 (10 + 6 log2 n) + 576 bytes exactly; <= 25 ms",
    ),
    ("C6", "memory per prover", "memory", "<= 0.8 kB per constraint, without the key"),
    ("C7", "key directory: updates per second rise with the batch", "fig9", "monotone"),
    (
        "C8",
        "RAM: memory argument over Poseidon Merkle tree",
        "fig10",
        "faster at every number of cycles",
    ),
    ("C9", "the model predicts the measured medians", "all", "90 % of the medians in its band"),
];

/// Judges all claims.
pub(crate) fn evaluate(
    session: &Session,
    plan: &Plan,
    measured: &[Measured],
    environment: &str,
) -> Result<Vec<Claim>, Failure> {
    let predictions = model::read(session, environment)?;
    let model = predictions.map(|found| model::comparisons(session, measured, &found));
    let claim = |(id, text, experiment, condition): (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
    )| {
        let is_own = |m: &&Measured| m.point.experiment == experiment && m.repetitions > 0;
        let own: Vec<&Measured> = measured.iter().filter(is_own).collect();
        let judged = match (plan.skipped.get(experiment), own.is_empty()) {
            (Some(why), true) => Err(why.clone()),
            (None, true) if id != "C9" => Err("not run".to_owned()),
            _ => judge(id, &own, model.as_deref()),
        };
        let (verdict, found) = match judged {
            Ok((true, found)) => (Verdict::Holds, found),
            Ok((false, found)) => (Verdict::Fails, found),
            Err(why) => (Verdict::Skipped, why),
        };
        Claim { id, text, experiment, condition, verdict, found }
    };
    Ok(CLAIMS.into_iter().map(claim).collect())
}

fn judge(id: &str, own: &[&Measured], model: Option<&[Comparison<'_>]>) -> Judged {
    match id {
        "C1" => linear(own),
        "C2" => overhead(own),
        "C3" => communication(own),
        "C4" => aggregation(own),
        "C5" => proof(own),
        "C6" => memory(own),
        "C7" => directory(own),
        "C8" => machine(own),
        _ => model_band(model),
    }
}

/// Points by the value of a column or parameter, each sorted by another one.
fn curves<'m>(own: &[&'m Measured], series: &str, x: &str) -> BTreeMap<String, Vec<&'m Measured>> {
    let mut curves: BTreeMap<String, Vec<&Measured>> = BTreeMap::new();
    for m in own {
        curves.entry(m.curve(series)).or_default().push(m);
    }
    let at = |m: &&Measured| m.value(x).unwrap_or(f64::NAN);
    curves.values_mut().for_each(|curve| curve.sort_by(|a, b| at(a).total_cmp(&at(b))));
    curves
}

/// Columns of points as pairs.
fn pairs(curve: &[&Measured], x: &str, y: &str) -> Vec<(f64, f64)> {
    curve.iter().filter_map(|m| m.value(x).zip(m.value(y))).collect()
}

fn linear(own: &[&Measured]) -> Judged {
    let curves = curves(own, "cores", "constraints");
    let fits = |y: &str| -> Vec<(String, f64)> {
        let fit = |curve: &[&Measured]| Fit::of(&pairs(curve, "constraints", y));
        curves.iter().filter_map(|(cores, curve)| Some((cores.clone(), fit(curve)?.r2))).collect()
    };
    let shown = |fits: &[(String, f64)]| {
        let each: Vec<String> =
            fits.iter().map(|(cores, r2)| format!("{r2:.4} ({cores} cores)")).collect();
        each.join(", ")
    };
    let (wall, cpu) = (fits("seconds"), fits("cpu_seconds"));
    let least = wall.iter().map(|fit| fit.1).min_by(f64::total_cmp);
    let worst = least.ok_or("a fit needs three sizes")?;
    let found = format!("r^2 {}; of CPU time {}", shown(&wall), shown(&cpu));
    Ok((worst >= 0.9858, found))
}

fn overhead(own: &[&Measured]) -> Judged {
    let at = |cores: f64| own.iter().filter(move |m| m.value("cores") == Some(cores));
    let ratio = |cores: f64, column: &str| {
        let pairs = at(cores).flat_map(|m| at(1.0).filter_map(|one| m.ratio_to(one, column)));
        pairs.max_by(|a, b| a.median.total_cmp(&b.median))
    };
    let shown = |cores: f64| {
        let wall = ratio(cores, "constraints_per_core_second")?.shown();
        let cpu = ratio(cores, "constraints_per_cpu_second")
            .map_or_else(String::new, |r| format!(", of CPU time {}", r.shown()));
        Some(format!("{wall} on {cores} cores{cpu}"))
    };
    let limits = [(4.0, 0.90), (32.0, 0.87)];
    let found: Vec<(f64, f64)> = (limits.into_iter())
        .filter_map(|(cores, least)| {
            Some((ratio(cores, "constraints_per_core_second")?.median, least))
        })
        .collect();
    if found.is_empty() {
        let two = shown(2.0).map_or_else(String::new, |two| format!("; measured: {two}"));
        return Err(format!("needs points on 1 and on 4 or 32 cores{two}"));
    }
    let text: Vec<String> = limits.iter().filter_map(|(cores, _)| shown(*cores)).collect();
    Ok((found.iter().all(|(ratio, least)| ratio >= least), text.join("; ")))
}

fn communication(own: &[&Measured]) -> Judged {
    let mut most: f64 = 0.0;
    for m in own {
        let wires = m.value("wires_per_subcircuit").zip(m.value("input_bytes_per_subcircuit"));
        let (wires, private) = wires.ok_or("no number of wires")?;
        let request = m.value("commit_request_bytes").zip(m.value("prove_request_bytes"));
        let (commit, prove) = request.ok_or("no messages between ranks")?;
        most = most.max((commit + prove) / (40.0 * wires + private + 400.0));
    }
    let commit = response(own, "first_rank_commit_answers", "first_rank_commit_bytes")?;
    let prove = response(own, "first_rank_prove_answers", "first_rank_prove_bytes")?;
    let shown =
        |size: Option<f64>| size.map_or("varying size".to_owned(), |s| format!("{s} bytes"));
    let found = format!(
        "requests up to {most:.2} of the limit; responses of {} and {}",
        shown(commit),
        shown(prove)
    );
    Ok((most <= 1.0 && commit.is_some() && prove.is_some(), found))
}

/// The size of a response, if all have the same: a rank then receives exactly this many bytes per
/// answer, plus a constant number of bytes, in every run.
fn response(own: &[&Measured], answers: &str, bytes: &str) -> Result<Option<f64>, String> {
    // A repetition may have shared the subcircuits out differently; medians then do not belong
    // together.
    let exact = |m: &&&Measured| {
        [answers, bytes].iter().all(|c| m.columns.get(c).is_some_and(|s| s.low == s.high))
    };
    let mut found: Vec<(f64, f64)> =
        own.iter().filter(exact).filter_map(|m| m.value(answers).zip(m.value(bytes))).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends = found.first().zip(found.last()).filter(|(a, b)| a.0 < b.0);
    let (first, last) = ends.ok_or("the response's size needs two sizes of runs")?;
    let size = (last.1 - first.1) / (last.0 - first.0);
    let same = found.iter().all(|p| p.1 == first.1 + size * (p.0 - first.0));
    Ok((same && size.fract() == 0.0).then_some(size))
}

fn aggregation(own: &[&Measured]) -> Judged {
    let curves = curves(own, "ranks", "subcircuits");
    // It may fall: the larger a product, the fewer additions it takes for each point.
    let rise = |column: &str| {
        let of_curve = |curve: &Vec<&Measured>| {
            let points = pairs(curve, "subcircuits", column);
            let slope = |p: &[(f64, f64)]| (p[1].1 - p[0].1) / (p[1].0 - p[0].0);
            let slopes: Vec<f64> = points.windows(2).map(slope).collect();
            let (first, last) = slopes.first().zip(slopes.last()).filter(|_| slopes.len() > 1)?;
            Some(last / first - 1.0)
        };
        curves.values().filter_map(of_curve).max_by(f64::total_cmp)
    };
    let wall = rise("aggregate_s").ok_or("a slope needs three sizes")?;
    let largest = |ranks: &str| curves.get(ranks).and_then(|curve| curve.last());
    let (one, two) = largest("1").zip(largest("2")).ok_or("needs 1 and 2 ranks")?;
    let gain = one
        .ratio_to(two, "aggregate_s")
        .ok_or("no repetition of 1 and 2 ranks at the largest size")?;
    let cpu = rise("cpu_seconds")
        .map_or_else(String::new, |c| format!(" (CPU time of the run {:+.0} %)", 100.0 * c));
    // Of what grows with the number of subcircuits: rounds of short vectors and the check of the result are
    // a fifth of the time of 512, and no rank can take them from another.
    let times = |ranks: &str| Some(pairs(curves.get(ranks)?, "subcircuits", "aggregate_s"));
    let (of_one, of_two) = times("1").zip(times("2")).ok_or("needs 1 and 2 ranks")?;
    // A size may lack the points of one of them.
    let both: Vec<(f64, f64)> = (of_one.iter())
        .filter_map(|(size, one)| Some((*one, of_two.iter().find(|two| two.0 == *size)?.1)))
        .collect();
    let (first, last) = both.first().zip(both.last()).ok_or("no common size of 1 and 2 ranks")?;
    let (of_one, of_two) = (last.0 - first.0, last.1 - first.1);
    let divided = of_one / of_two;
    let found = format!(
        "cost per further subcircuit changes by at most {:+.0} %{cpu}, and is divided by {divided:.2} on 2 ranks; the \
         largest run is {} times as fast",
        100.0 * wall,
        gain.shown()
    );
    // A time that does not grow is noise.
    Ok((wall <= 0.10 && of_two > 0.0 && divided >= 1.75, found))
}

fn proof(own: &[&Measured]) -> Judged {
    let (mut exact, mut slowest, mut sizes) = (true, 0f64, Vec::new());
    for m in own {
        let n = m.value("subcircuits").ok_or("no number of subcircuits")?;
        let bytes = m.value("proof_bytes").ok_or("no proof size")?;
        exact &= bytes == 42.0 + 192.0 * (10.0 + 6.0 * n.log2().ceil()) + 576.0;
        slowest = slowest.max(m.value("verify_ms").ok_or("no verification time")?);
        sizes.push(format!("{bytes} bytes at n = {n}"));
    }
    let found = format!("{}; slowest median {slowest:.1} ms", sizes.join(", "));
    Ok((exact && slowest <= 25.0, found))
}

fn memory(own: &[&Measured]) -> Judged {
    let points: Vec<(f64, f64)> = (own.iter())
        .filter_map(|m| {
            let each = m.value("constraints")? / m.value("subcircuits")?;
            Some((each, m.value("peak_memory_bytes")? - m.value("key_bytes")?))
        })
        .collect();
    let fit = Fit::of(&points).ok_or("a slope needs three sizes")?;
    let found = format!("{:.0} bytes per constraint, without the key", fit.slope);
    Ok((fit.slope <= 800.0, found))
}

fn directory(own: &[&Measured]) -> Judged {
    let curves = curves(own, "variant", "batch");
    let rates = |curve: &Vec<&Measured>| -> Vec<f64> {
        pairs(curve, "batch", "units_per_second").iter().map(|p| p.1).collect()
    };
    let rates: Vec<(&String, Vec<f64>)> =
        curves.iter().map(|(name, curve)| (name, rates(curve))).collect();
    if rates.iter().all(|(_, rates)| rates.len() < 2) {
        return Err("needs two batches".into());
    }
    let rising = rates.iter().all(|(_, rates)| rates.windows(2).all(|w| w[0] <= w[1]));
    let line = |(name, rates): &(&String, Vec<f64>)| {
        let figures: Vec<String> = rates.iter().map(|rate| format!("{rate:.3}")).collect();
        format!("{name} {}", figures.join(", "))
    };
    let shown: Vec<String> = rates.iter().map(line).collect();
    Ok((rising, format!("updates per second: {}", shown.join("; "))))
}

/// The parameter `memory` is 0 for the memory argument, and 1 for the Merkle tree.
fn machine(own: &[&Measured]) -> Judged {
    let curves = curves(own, "memory", "cycles");
    let (argument, merkle) = curves.get("0").zip(curves.get("1")).ok_or("needs both memories")?;
    let merkle = pairs(merkle, "cycles", "seconds");
    let ratios: Vec<f64> = (pairs(argument, "cycles", "seconds").iter())
        .filter_map(|(x, ours)| Some(merkle.iter().find(|p| p.0 == *x)?.1 / ours))
        .collect();
    let least = ratios.iter().copied().min_by(f64::total_cmp).ok_or("no common size")?;
    Ok((least > 1.0, format!("at least {least:.2} times as fast at {} sizes", ratios.len())))
}

/// Compares medians with the model's bands.
fn model_band(model: Option<&[Comparison<'_>]>) -> Judged {
    let found = model.ok_or("model: not run")?;
    if found.is_empty() {
        return Err("model.csv does not have the measured points".into());
    }
    let inside = |seconds: &dyn Fn(&Comparison<'_>) -> Option<f64>| {
        let known = found.iter().filter_map(|c| Some((seconds(c)?, c.band)));
        let inside = known.map(|(s, [_, low, high])| (low..=high).contains(&s));
        inside.fold((0usize, 0usize), |(yes, all), is| (yes + usize::from(is), all + 1))
    };
    let ((good, all), (adjusted, known)) = (inside(&|c| Some(c.seconds)), inside(&|c| c.adjusted));
    let mut text = format!(
        "{good} of {all} medians in the band; {adjusted} of {known} without the time that other \
         programs took"
    );
    let mut ratios: Vec<f64> = found.iter().filter_map(|c| c.ratio).collect();
    ratios.sort_by(f64::total_cmp);
    if let Some((low, high)) = ratios.first().zip(ratios.last()) {
        text += &format!("; predictions next to runs are {low:.2} to {high:.2} of these times");
    }
    Ok((10 * good >= 9 * all, text))
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Experiment, Point};
    use super::super::statistics::Summary;
    use super::*;
    use std::path::Path;

    /// Aggregations with a fixed part and a cost per subcircuit, on one rank and on two.
    fn aggregations(fixed: f64, each: [f64; 2]) -> Vec<Measured> {
        let file = "../paper-results/experiments/fig8.toml";
        let fig8 = Experiment::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
        let points = fig8.unwrap_or_else(|e| panic!("{}", e.message)).points("tiny");
        let points = points.unwrap_or_else(|e| panic!("{}", e.message));
        let measured = |point: Point| {
            let ranks = point.ranks();
            let subcircuits = point.parameters["links"] as f64;
            let seconds = fixed + each[ranks - 1] * subcircuits;
            let columns =
                [("aggregate_s", seconds), ("ranks", ranks as f64), ("subcircuits", subcircuits)];
            let columns = columns.map(|(name, value)| (name, Summary::of(&[value]).unwrap()));
            let each = BTreeMap::from([(1, BTreeMap::from([("aggregate_s", seconds)]))]);
            Measured { point, repetitions: 1, failed: 0, columns: columns.into(), each }
        };
        points.into_iter().map(measured).collect()
    }

    #[test]
    fn of_an_aggregation_what_grows_is_to_be_divided() {
        let judge = |fixed: f64, each: [f64; 2]| {
            let all = aggregations(fixed, each);
            aggregation(&all.iter().collect::<Vec<_>>()).unwrap()
        };
        let (holds, found) = judge(0.1, [4e-4, 2e-4]);
        assert!(holds && found.contains("divided by 2.00"), "{found}");
        assert!(found.contains("1.5"), "the largest run: {found}");
        assert!(!judge(0.1, [4e-4, 2.4e-4]).0);
        assert!(!judge(0.1, [4e-4, 0.0]).0, "a time that does not grow");
        // The cost of a further subcircuit rises, or falls, from 64 over 128 to 512 of them.
        let bent = |power: f64| {
            let mut all = aggregations(0.0, [4e-4, 2e-4]);
            for measured in &mut all {
                let seconds = measured.columns["aggregate_s"].median;
                let bent = Summary::of(&[seconds.powf(power)]).unwrap();
                measured.columns.insert("aggregate_s", bent);
            }
            aggregation(&all.iter().collect::<Vec<_>>()).unwrap()
        };
        let (holds, found) = bent(1.2);
        assert!(!holds && found.contains("changes by at most +"), "{found}");
        let (holds, found) = bent(0.9);
        assert!(holds && found.contains("changes by at most -"), "{found}");
        // Without the largest size on two ranks, smaller ones are compared.
        let mut all = aggregations(0.1, [4e-4, 4e-4]);
        all.retain(|m| m.point.id != "fig8.c2.s512");
        assert_eq!(all.len(), 5);
        let judged = aggregation(&all.iter().collect::<Vec<_>>());
        assert!(!judged.is_ok_and(|(holds, _)| holds));
    }
}
