//! What the model predicts for the points of a result set, in `model.csv`, beside their medians.
//!
//! `hekaton estimate --cores` simulates each point from constants that `hekaton estimate
//! --calibrate` measures once per environment. The band is what it predicts from the ends of all
//! measured intervals.

use super::environment::{Environment, changes};
use super::failure::{At, FAILED, Failure};
use super::files;
use super::measured::Measured;
use super::plan::Plan;
use super::program::Program;
use super::session::Session;
use super::spec::Point;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

/// The columns of figures that a prediction has, with their names in `model.csv`.
const PREDICTED: [(&str, [&str; 3]); 2] = [
    ("seconds", ["seconds", "lo_s", "hi_s"]),
    ("aggregate_s", ["aggregate_s", "aggregate_lo_s", "aggregate_hi_s"]),
];
/// The phases that the column `seconds` of a measured run consists of. A run lays out its circuit
/// while it loads keys, and computes the digest of the layout while it executes.
const PHASES: [&str; 5] = ["layout", "execute", "commit", "prove", "aggregate"];

/// A predicted time: the middle and the ends of the band, in seconds.
pub(crate) type Band = [f64; 3];

/// What was predicted for one point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Predicted {
    bands: BTreeMap<&'static str, Band>,
}

impl Predicted {
    /// The column by which a point is compared, and its band: the aggregation where the figure shows
    /// that, otherwise the whole run.
    pub(crate) fn compared(&self, shown: &[String]) -> Option<(&'static str, Band)> {
        let column = PREDICTED.iter().rev().map(|(column, _)| *column);
        let mut column = column.filter(|c| *c == "seconds" || shown.iter().any(|y| y == c));
        column.find_map(|c| Some((c, *self.bands.get(c)?)))
    }
}

/// Where the model's constants are from.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The calibration; measured if it is missing.
    pub(crate) calibration: Option<PathBuf>,
    /// What is known of the cluster; without it, all points ran on this machine.
    pub(crate) cluster: Option<PathBuf>,
}

/// Whether a figure shows a time that the model predicts.
fn applies(y: &[String]) -> bool {
    let times = ["seconds", "aggregate_s", "constraints_per_core_second"];
    y.iter().any(|column| times.contains(&column.as_str()))
}

/// Predicts all points whose figures show times, and writes `model.csv`.
pub(crate) fn model(session: &Session, sources: &Sources) -> Result<(), Failure> {
    let program = session.program()?;
    let plan = Plan::read(&session.results)?;
    let environment = session.environment(&program)?;
    let set = Environment::read(&session.environment_file())?;
    if set.digest != environment.digest {
        let changed = changes(&set, &environment);
        let why = format!("the program or the machine differs from the result set's ({changed})");
        return Err(Failure::new(FAILED, format!("{}: {why}", session.results.display())));
    }
    let shows = |point: &&Point| {
        let experiment = session.experiments.iter().find(|e| e.name == point.experiment);
        experiment.is_some_and(|e| applies(&e.y))
    };
    let calibration = calibration(session, &program, &set, sources)?;
    let mut table = head();
    for point in plan.points.iter().filter(shows) {
        session.stop.check()?;
        let answer = ask(session, &program, point, &calibration, sources)?;
        let predicted = predicted(&answer).ok_or_else(|| {
            Failure::new(FAILED, format!("{}: estimate printed no prediction", point.id))
        })?;
        let [seconds, low, high] = predicted.bands["seconds"];
        eprintln!("{}: model {seconds:.2} s, from {low:.2} s to {high:.2} s", point.id);
        for note in answer["prediction"]["notes"].as_array().into_iter().flatten() {
            eprintln!("{}: note: {}", point.id, note.as_str().unwrap_or_default());
        }
        table += &line(&point.id, &predicted, &set.digest);
    }
    files::write(&session.results.join("model.csv"), table.as_bytes())
}

/// The calibration of this environment, measured if it does not exist yet.
fn calibration(
    session: &Session,
    program: &Program,
    set: &Environment,
    sources: &Sources,
) -> Result<PathBuf, Failure> {
    let own = || session.work.join(format!("calibration-{}.json", set.digest));
    let path = sources.calibration.clone().unwrap_or_else(own);
    if !path.exists() {
        eprintln!("measuring the model's constants: {}", path.display());
        program.ask([
            "estimate".as_ref(),
            "--calibrate".as_ref(),
            path.as_os_str(),
            "--json".as_ref(),
        ])?;
    }
    Ok(path)
}

/// The cores and provers per rank that a point has. On one machine, ranks that are oversubscribed
/// share its cores: the model gets what there is.
fn machine(point: &Point, cores: Option<usize>) -> (usize, usize) {
    let available = cores.map_or(point.cores, |cores| point.cores.min(cores)).max(1);
    let provers = point.provers_per_rank.unwrap_or(available).clamp(1, available);
    (available, if available.is_multiple_of(provers) { provers } else { 1 })
}

/// Asks the program for the prediction of one point.
fn ask(
    session: &Session,
    program: &Program,
    point: &Point,
    calibration: &Path,
    sources: &Sources,
) -> Result<Value, Failure> {
    let (mut cluster, here) = match &sources.cluster {
        Some(path) => (files::read_toml::<toml::Table>(path)?, None),
        None => {
            let here = available_parallelism().map_or(1, std::num::NonZero::get);
            let count = i64::try_from(here).unwrap_or(i64::MAX);
            let table = [("format", 1), ("cores_per_node", count)];
            let table = table.map(|(name, value)| (name.to_owned(), toml::Value::Integer(value)));
            (toml::Table::from_iter(table), Some(here))
        }
    };
    let (cores, provers) = machine(point, here);
    let count = i64::try_from(provers).unwrap_or(i64::MAX);
    cluster.insert("provers_per_rank".to_owned(), toml::Value::Integer(count));
    let file = session.work.join(format!("model-cluster-{}.toml", std::process::id()));
    fs::write(&file, cluster.to_string()).at(&file)?;
    let mut arguments = vec!["estimate".to_owned(), point.circuit.clone()];
    arguments.extend(point.arguments());
    arguments.extend(["--cores".to_owned(), cores.to_string()]);
    for (option, path) in [("--calibration", calibration), ("--cluster", &file)] {
        let path = path.to_str().ok_or("is not valid UTF-8").at(path)?;
        arguments.extend([option.to_owned(), path.to_owned()]);
    }
    arguments.push("--json".to_owned());
    let answer = program.ask(arguments);
    fs::remove_file(&file).at(&file)?;
    answer
}

/// The bands in an answer of `hekaton estimate --cores --json`.
fn predicted(answer: &Value) -> Option<Predicted> {
    let phases = answer["prediction"]["phases"].as_array()?;
    let band = |name: &str| -> Option<Band> {
        let phase = phases.iter().find(|p| p["phase"] == name)?;
        let end = |i: usize| phase["interval"][i].as_f64();
        Some([phase["seconds"].as_f64()?, end(0)?, end(1)?])
    };
    let add = |a: Band, b: Band| [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
    let all: Option<Vec<Band>> = PHASES.iter().map(|name| band(name)).collect();
    let seconds = all?.into_iter().fold([0.0; 3], add);
    let bands = [("seconds", seconds), ("aggregate_s", band("aggregate")?)];
    Some(Predicted { bands: BTreeMap::from(bands) })
}

fn head() -> String {
    let columns: Vec<&str> = PREDICTED.iter().flat_map(|(_, names)| *names).collect();
    format!("point,{},environment\n", columns.join(","))
}

fn line(id: &str, predicted: &Predicted, environment: &str) -> String {
    let numbers = PREDICTED.iter().flat_map(|(column, _)| predicted.bands[column]);
    let numbers: Vec<String> = numbers.map(|seconds| format!("{seconds:.6}")).collect();
    format!("{id},{},{environment}\n", numbers.join(","))
}

/// Reads `model.csv`; none if it does not exist.
///
/// # Errors
/// If it lacks a column, or has rows of another environment.
pub(crate) fn read(
    session: &Session,
    environment: &str,
) -> Result<Option<BTreeMap<String, Predicted>>, Failure> {
    let path = session.results.join("model.csv");
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).at(&path)?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let wrong = |what: String| Failure::file(&path, format!("{what}: run `experiment model`"));
    let mut all = BTreeMap::new();
    for line in lines {
        let row: BTreeMap<&str, &str> = names.iter().copied().zip(line.split(',')).collect();
        let id = row.get("point").ok_or_else(|| wrong("no column point".to_owned()))?;
        if row.get("environment") != Some(&environment) {
            return Err(wrong(format!("{id} was predicted in another environment")));
        }
        let mut predicted = Predicted::default();
        for (column, of_band) in PREDICTED {
            let band =
                of_band.map(|name| row.get(name).and_then(|field| field.parse::<f64>().ok()));
            let [Some(middle), Some(low), Some(high)] = band else {
                return Err(wrong(format!("{id} has no {}", of_band.join(", "))));
            };
            predicted.bands.insert(column, [middle, low, high]);
        }
        all.insert((*id).to_owned(), predicted);
    }
    Ok(Some(all))
}

/// A point with its prediction.
#[derive(Clone, Debug)]
pub(crate) struct Comparison<'m> {
    pub(crate) measured: &'m Measured,
    pub(crate) column: &'static str,
    pub(crate) band: Band,
    /// The median.
    pub(crate) seconds: f64,
    /// The median of the times without what other programs took; none where that is not known.
    pub(crate) adjusted: Option<f64>,
}

/// All points that were both measured and predicted.
pub(crate) fn comparisons<'m>(
    session: &Session,
    measured: &'m [Measured],
    model: &BTreeMap<String, Predicted>,
) -> Vec<Comparison<'m>> {
    let compare = |measured: &'m Measured| {
        let experiment =
            session.experiments.iter().find(|e| e.name == measured.point.experiment)?;
        let (column, band) = model.get(&measured.point.id)?.compared(&experiment.y)?;
        let adjusted = match column {
            "seconds" => "adjusted_s",
            _ => "adjusted_aggregate_s",
        };
        let (seconds, adjusted) = (measured.value(column)?, measured.value(adjusted));
        Some(Comparison { measured, column, band, seconds, adjusted })
    };
    measured.iter().filter_map(compare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_aggregation_is_compared_where_it_is_shown() {
        let bands = BTreeMap::from([("seconds", [2.0; 3]), ("aggregate_s", [1.0; 3])]);
        let predicted = Predicted { bands };
        let column = |shown: &[&str]| {
            let shown: Vec<String> = shown.iter().map(|y| (*y).to_owned()).collect();
            predicted.compared(&shown).map(|(column, _)| column)
        };
        assert_eq!(column(&["aggregate_s"]), Some("aggregate_s"));
        assert_eq!(column(&["seconds", "constraints_per_core_second"]), Some("seconds"));
        assert_eq!(column(&["constraints_per_core_second"]), Some("seconds"));
    }

    #[test]
    fn a_band_is_the_sum_of_its_phases() {
        let phase = |name: &str, seconds: f64| json!({ "phase": name, "seconds": seconds, "interval": [seconds / 2.0, seconds * 2.0] });
        let names = ["load_keys", "layout", "execute", "commit", "prove", "aggregate"];
        let phases: Vec<Value> = names.iter().map(|name| phase(name, 1.0)).collect();
        let found = predicted(&json!({ "prediction": { "phases": phases } })).unwrap();
        assert_eq!(found.bands["seconds"], [5.0, 2.5, 10.0], "without loading keys");
        assert_eq!(found.bands["aggregate_s"], [1.0, 0.5, 2.0]);
        assert!(predicted(&json!({ "prediction": { "phases": [phases[0]] } })).is_none());
        let no_interval = json!({ "phase": "layout", "seconds": 1.0 });
        assert!(predicted(&json!({ "prediction": { "phases": [no_interval] } })).is_none());
    }
}
