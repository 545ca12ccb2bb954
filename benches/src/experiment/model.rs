//! Predictions of the model for the points of a result set, in `model.csv`, next to their medians, and for larger
//! machines, in `projection.csv`.
//!
//! `hekaton estimate --cores` simulates a point from constants that `hekaton estimate --calibrate`
//! measures once per environment, and from the times of its subcircuits, which it measures itself:
//! before or after each repetition, because the speed of a shared machine drifts. The band has the
//! predictions from the ends of all measured intervals.

use super::environment::{Environment, changes};
use super::failure::{At, FAILED, Failure};
use super::files;
use super::measured::Measured;
use super::outcome;
use super::plan::{self, Plan};
use super::predicted::{Band, PREDICTED, PREDICTION, Predicted};
use super::program::Program;
use super::session::Session;
use super::spec::Point;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread::available_parallelism;

/// The sources of the model's constants.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The calibration; measured if it is missing.
    pub(crate) calibration: Option<PathBuf>,
    /// The known properties of the cluster; without them, all points ran on this machine.
    pub(crate) cluster: Option<PathBuf>,
}

/// Asks the program for predictions.
#[derive(Debug)]
pub(crate) struct Predictor<'s> {
    session: &'s Session,
    program: &'s Program,
    calibration: PathBuf,
    cluster: Option<PathBuf>,
}

impl<'s> Predictor<'s> {
    /// Measures the constants of this environment if that was not done yet.
    pub(crate) fn new(
        session: &'s Session,
        program: &'s Program,
        environment: &Environment,
        sources: &Sources,
    ) -> Result<Self, Failure> {
        let own = || session.work.join(format!("calibration-{}.json", environment.digest));
        let path = sources.calibration.clone().unwrap_or_else(own);
        if !path.exists() {
            eprintln!("measuring the model's constants: {}", path.display());
            let (calibrate, json) = ("--calibrate".as_ref(), "--json".as_ref());
            program.ask(["estimate".as_ref(), calibrate, path.as_os_str(), json])?;
        }
        Ok(Self { session, program, calibration: path, cluster: sources.cluster.clone() })
    }

    /// Reports whether the figure of a point shows a time that the model predicts.
    pub(crate) fn applies(&self, point: &Point) -> bool {
        let times = ["seconds", "aggregate_s", "constraints_per_core_second"];
        let mut experiments = self.session.experiments.iter();
        let shown = experiments.find(|e| e.name == point.experiment).map(|e| &e.y);
        shown.is_some_and(|y| y.iter().any(|column| times.contains(&column.as_str())))
    }

    /// Asks the program for the prediction of one point.
    pub(crate) fn ask(&self, point: &Point) -> Result<Value, Failure> {
        let here = available_parallelism().map_or(1, std::num::NonZero::get);
        match &self.cluster {
            Some(path) => self.estimate(point, files::read_toml(path)?, machine(point, None)),
            None => self.estimate(point, cluster(here), machine(point, Some(here))),
        }
    }

    /// Asks for the prediction of a point on a machine with enough cores; without a cluster file, on nodes of 128.
    fn project(&self, point: &Point) -> Result<Value, Failure> {
        let table = match &self.cluster {
            Some(path) => files::read_toml(path)?,
            None => cluster(NODE.max(point.provers_per_rank.unwrap_or(1))),
        };
        self.estimate(point, table, machine(point, None))
    }

    fn estimate(
        &self,
        point: &Point,
        mut cluster: toml::Table,
        (cores, provers): (usize, usize),
    ) -> Result<Value, Failure> {
        let count = i64::try_from(provers).expect("numbers of provers are small");
        cluster.insert("provers_per_rank".to_owned(), toml::Value::Integer(count));
        let file = self.session.work.join(format!("model-cluster-{}.toml", std::process::id()));
        fs::write(&file, cluster.to_string()).at(&file)?;
        let mut arguments = vec!["estimate".to_owned(), point.circuit.clone()];
        arguments.extend(point.arguments()?);
        arguments.extend(["--cores".to_owned(), cores.to_string()]);
        for (option, path) in [("--calibration", &self.calibration), ("--cluster", &file)] {
            let name = path.to_str().ok_or("is not valid UTF-8").at(path)?;
            arguments.extend([option.to_owned(), name.to_owned()]);
        }
        arguments.push("--json".to_owned());
        let answer = self.program.ask(arguments);
        fs::remove_file(&file).at(&file)?;
        answer
    }
}

/// The default number of cores of a node.
const NODE: usize = 128;

/// A cluster file of nodes with this many cores.
fn cluster(cores: usize) -> toml::Table {
    let count = i64::try_from(cores).expect("numbers of cores are small");
    let table = [("format", 1), ("cores_per_node", count)];
    table.into_iter().map(|(name, value)| (name.to_owned(), toml::Value::Integer(value))).collect()
}

/// The cores and provers per rank that a point has. On one machine, ranks that are oversubscribed
/// share its cores: the model gets what there is.
fn machine(point: &Point, cores: Option<usize>) -> (usize, usize) {
    let available = cores.map_or(point.cores, |cores| point.cores.min(cores)).max(1);
    let provers = point.provers_per_rank.unwrap_or(available).clamp(1, available);
    (available, if available.is_multiple_of(provers) { provers } else { 1 })
}

/// Writes `model.csv`: for each point the predictions next to its repetitions, or a prediction that is made now.
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
    let predictor = Predictor::new(session, &program, &set, sources)?;
    let mut rows = Vec::new();
    for point in plan.points.iter().filter(|point| predictor.applies(point)) {
        session.stop.check()?;
        let mut all = beside(session, &plan, point, &set.digest);
        if all.is_empty() {
            let answer = predictor.ask(point)?;
            for note in answer["prediction"]["notes"].as_array().into_iter().flatten() {
                eprintln!("{}: note: {}", point.id, note.as_str().unwrap_or("(not a text)"));
            }
            all.extend(Predicted::from_answer(&answer));
        }
        let predicted = Predicted::of(&all).ok_or_else(|| {
            Failure::new(FAILED, format!("{}: estimate printed no prediction", point.id))
        })?;
        let [seconds, low, high] = predicted.bands["seconds"];
        eprintln!("{}: model {seconds:.2} s, from {low:.2} s to {high:.2} s", point.id);
        rows.push(fields(&point.id, &predicted, &set.digest));
    }
    files::write_csv(&session.results.join("model.csv"), head(), rows)?;
    projection(session, &plan, &predictor, &set.digest)
}

/// Writes `projection.csv`: what is predicted for the projected points of all experiments in the plan.
fn projection(
    session: &Session,
    plan: &Plan,
    predictor: &Predictor<'_>,
    environment: &str,
) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for experiment in &session.experiments {
        let mut scales: Vec<&str> = (plan.points.iter())
            .filter(|point| point.experiment == experiment.name)
            .map(|point| point.scale.as_str())
            .collect();
        scales.dedup();
        for scale in scales {
            for point in experiment.projected(scale)? {
                session.stop.check()?;
                let answer = predictor.project(&point)?;
                let predicted = Predicted::from_answer(&answer)
                    .ok_or_else(|| Failure::new(FAILED, format!("{}: no prediction", point.id)))?;
                let [seconds, low, high] = predicted.bands["seconds"];
                eprintln!("{}: model {seconds:.2} s, from {low:.2} s to {high:.2} s", point.id);
                let counted = |name: &str| {
                    let unknown = || Failure::new(FAILED, format!("{}: no {name}", point.id));
                    answer[name].as_u64().ok_or_else(unknown)
                };
                let x = match point.parameters.get(&experiment.x) {
                    Some(value) => *value,
                    None if experiment.x == "cores" => point.cores as u64,
                    None => counted(&experiment.x)?,
                };
                let numbers = [point.cores as u64, x, counted("constraints")?];
                // Without units, the field is empty.
                let units = point.units.map_or_else(String::new, |units| units.to_string());
                let variant = point.variant.as_deref().map_or_else(String::new, str::to_owned);
                let mut row = vec![experiment.name.clone(), point.id.clone(), variant, units];
                row.extend(numbers.map(|number| number.to_string()));
                let bands = PREDICTED.iter().flat_map(|(column, _)| predicted.bands[column]);
                row.extend(bands.map(|seconds| format!("{seconds:.6}")));
                row.push(environment.to_owned());
                rows.push(row);
            }
        }
    }
    let path = session.results.join("projection.csv");
    if rows.is_empty() {
        // An earlier one is of another plan, and figures would show it.
        return match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::file(&path, e)),
            _ => Ok(()),
        };
    }
    let first = ["experiment", "point", "variant", "units", "cores", "x", "constraints"];
    let head = first.into_iter().chain(head().skip(1));
    files::write_csv(&path, head, rows)
}

/// Returns the predictions next to the repetitions of a point that count.
fn beside(session: &Session, plan: &Plan, point: &Point, environment: &str) -> Vec<Predicted> {
    let repetitions = 1..=plan.repetitions.get(&point.id).map_or(0, |planned| *planned);
    let one = |repetition| {
        let task = (point.id.clone(), repetition);
        let directory = plan::directory(&session.results, &task);
        let answer = files::read_json::<Value>(&directory.join(PREDICTION)).ok()?;
        let row = outcome::judge(&directory, point, &task, environment);
        row.failure.is_none().then(|| Predicted::from_answer(&answer)).flatten()
    };
    repetitions.filter_map(one).collect()
}

/// The columns of `model.csv`.
fn head() -> impl Iterator<Item = &'static str> {
    let bands = PREDICTED.iter().flat_map(|(_, names)| *names);
    std::iter::once("point").chain(bands).chain(["environment"])
}

/// A row of `model.csv`.
fn fields(id: &str, predicted: &Predicted, environment: &str) -> Vec<String> {
    let numbers = PREDICTED.iter().flat_map(|(column, _)| predicted.bands[column]);
    let mut fields = vec![id.to_owned()];
    fields.extend(numbers.map(|seconds| format!("{seconds:.6}")));
    fields.push(environment.to_owned());
    fields
}

/// Reads `model.csv`; `None` if it does not exist.
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
    let mut table = csv::Reader::from_path(&path).at(&path)?;
    let wrong = |what: String| Failure::file(&path, format!("{what}: run `experiment model`"));
    let mut all = BTreeMap::new();
    for record in table.deserialize::<BTreeMap<String, String>>() {
        let row = record.at(&path)?;
        let id = row.get("point").ok_or_else(|| wrong("no column point".to_owned()))?;
        if row.get("environment").is_none_or(|found| found != environment) {
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
        all.insert(id.clone(), predicted);
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
    /// The median of the times without what other programs took; `None` where that is not known.
    pub(crate) adjusted: Option<f64>,
    /// The median of predicted over measured time within repetitions, other programs not counted.
    pub(crate) ratio: Option<f64>,
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
        let (adjusted, ratio) = match column {
            "seconds" => ("adjusted_s", "model_ratio"),
            _ => ("adjusted_aggregate_s", "model_aggregate_ratio"),
        };
        let seconds = measured.value(column)?;
        let (adjusted, ratio) = (measured.value(adjusted), measured.value(ratio));
        Some(Comparison { measured, column, band, seconds, adjusted, ratio })
    };
    measured.iter().filter_map(compare).collect()
}
