//! Experiments as TOML files, and the points that a scale of one consists of.

use super::columns::COLUMNS;
use super::failure::{Failure, USAGE};
use super::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Names of scales, smallest first.
pub(crate) const SCALES: [&str; 4] = ["tiny", "laptop", "node", "cluster"];

/// One experiment, as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Experiment {
    pub(crate) name: String,
    pub(crate) title: String,
    /// A circuit that the program has.
    circuit: Option<String>,
    /// A circuit that the program may have one day; without it, the experiment is skipped.
    requires_circuit: Option<String>,
    /// Files of the paper's data that the figure shows.
    pub(crate) paper: Vec<String>,
    /// The column or parameter on the horizontal axis.
    pub(crate) x: String,
    /// The columns on the vertical axes, one panel each.
    pub(crate) y: Vec<String>,
    /// The column or parameter whose values are the curves.
    pub(crate) series: String,
    pub(crate) claims: Vec<String>,
    /// The parameter that counts what is proved at once, for `units_per_second`.
    pub(crate) units: Option<String>,
    input: Option<Input>,
    /// Whether points that differ in their cores alone are measured one after the other, because
    /// ratios between them are of interest.
    #[serde(default)]
    paired: bool,
    #[serde(default)]
    scale: Scales,
}

/// The input of a circuit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Input {
    /// Bytes, as many as the product of these parameters.
    Bytes(Vec<String>),
    /// This text.
    Text(String),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scales {
    tiny: Option<Scale>,
    laptop: Option<Scale>,
    node: Option<Scale>,
    cluster: Option<Scale>,
}

/// The points of one scale: all combinations of subcircuits, cores, and listed parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Scale {
    parameters: BTreeMap<String, Setting>,
    /// Combinations of parameters that take too long are left out.
    #[serde(default)]
    limits: Vec<Limit>,
    /// Without these or the next, the circuit has as many as it needs.
    subcircuits: Option<Vec<u64>>,
    /// The number of subcircuits grows with the cores instead.
    subcircuits_per_core: Option<u64>,
    cores: Vec<usize>,
    /// Ranks of this many provers instead of threads of one process.
    provers_per_rank: Option<usize>,
    #[serde(default = "yes")]
    root_proves: bool,
    /// How ranks get subcircuits: from each other's queues, or a fixed share each.
    #[serde(default)]
    schedule: Schedule,
    /// Whether points may have more cores than the machine, which their provers then share.
    #[serde(default)]
    oversubscribe: bool,
    pub(crate) repetitions: usize,
}

/// Where a parameter has a value, others have at most these.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Limit {
    when: BTreeMap<String, u64>,
    most: BTreeMap<String, u64>,
}

impl Limit {
    fn excludes(&self, parameters: &BTreeMap<String, u64>) -> bool {
        self.when.iter().all(|(name, value)| parameters.get(name) == Some(value))
            && self.most.iter().any(|(name, most)| parameters.get(name).is_some_and(|v| v > most))
    }
}

/// How subcircuits are assigned to ranks.
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
enum Setting {
    Number(u64),
    List(Vec<u64>),
    Formula(String),
}

/// One combination of parameters, which is measured several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) id: String,
    pub(crate) experiment: String,
    pub(crate) scale: String,
    pub(crate) circuit: String,
    pub(crate) parameters: BTreeMap<String, u64>,
    pub(crate) input: Input,
    /// The number that the circuit must have, if the experiment says it.
    pub(crate) subcircuits: Option<u64>,
    pub(crate) cores: usize,
    /// Provers per rank; without it, one process with `cores` threads.
    pub(crate) provers_per_rank: Option<usize>,
    pub(crate) root_proves: bool,
    pub(crate) schedule: Schedule,
    /// Whether provers may outnumber the machine's cores.
    #[serde(default)]
    pub(crate) oversubscribe: bool,
    /// What points have in common that are measured one after the other.
    #[serde(default)]
    element: Option<String>,
    pub(crate) units: Option<u64>,
}

impl Point {
    /// A point of one process that belongs to no experiment, whose input has as many bytes as the
    /// product of these parameters.
    pub(crate) fn alone(
        id: String,
        circuit: &str,
        parameters: BTreeMap<String, u64>,
        input: &[String],
        cores: usize,
    ) -> Self {
        Self {
            id,
            experiment: String::new(),
            scale: String::new(),
            circuit: circuit.to_owned(),
            parameters,
            input: Input::Bytes(input.to_vec()),
            subcircuits: None,
            cores,
            provers_per_rank: None,
            root_proves: true,
            schedule: Schedule::default(),
            oversubscribe: false,
            element: None,
            units: None,
        }
    }

    /// The name of the points that are measured one after the other.
    pub(crate) fn element(&self) -> &str {
        self.element.as_deref().unwrap_or(&self.id)
    }

    /// The number of ranks that prove; 1 without MPI.
    pub(crate) fn ranks(&self) -> usize {
        self.provers_per_rank.map_or(1, |provers| self.cores.div_ceil(provers))
    }

    /// The number of processes to start.
    pub(crate) fn processes(&self) -> usize {
        self.ranks() + usize::from(self.provers_per_rank.is_some() && !self.root_proves)
    }

    /// The parameters as `-p NAME=VALUE`.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let pairs = self.parameters.iter();
        pairs.flat_map(|(name, value)| ["-p".to_owned(), format!("{name}={value}")]).collect()
    }

    /// The bytes of the input. They vary, so that bits in the circuit are as mixed as in a file.
    pub(crate) fn input_bytes(&self) -> Vec<u8> {
        match &self.input {
            Input::Text(text) => text.clone().into_bytes(),
            Input::Bytes(names) => {
                let length: u64 =
                    names.iter().filter_map(|name| self.parameters.get(name)).product();
                (0..length).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13).to_le_bytes()[0]).collect()
            }
        }
    }
}

impl Experiment {
    /// Reads and checks a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let found: Self = files::read_toml(path)?;
        let fail = |why: String| Err(Failure::file(path, why));
        if path.file_stem().and_then(|s| s.to_str()) != Some(&found.name) {
            return fail(format!("the name is {:?}, and must be that of the file", found.name));
        }
        if found.circuit.is_some() == found.requires_circuit.is_some() {
            return fail("needs either \"circuit\" or \"requires-circuit\"".into());
        }
        if let Some(y) = found.y.iter().find(|y| !COLUMNS.contains(&y.as_str())) {
            return fail(format!("unknown column {y:?} in \"y\"; known: {}", COLUMNS.join(", ")));
        }
        for (scale, given) in SCALES.iter().filter_map(|s| Some((*s, found.scale(s)?))) {
            if given.repetitions == 0 || given.cores.is_empty() || given.cores.contains(&0) {
                return fail(format!("[scale.{scale}] needs cores and repetitions of at least 1"));
            }
            if given.provers_per_rank == Some(0) {
                return fail(format!("[scale.{scale}] needs at least one prover per rank"));
            }
            if given.subcircuits.is_some() && given.subcircuits_per_core.is_some() {
                let names = "\"subcircuits\" and \"subcircuits-per-core\"";
                return fail(format!("[scale.{scale}] has both {names}"));
            }
            let limits =
                given.limits.iter().flat_map(|limit| limit.when.keys().chain(limit.most.keys()));
            if let Some(name) =
                limits.into_iter().find(|name| !given.parameters.contains_key(*name))
            {
                let why = format!("{name:?} in \"limits\" is not a parameter in [scale.{scale}]");
                return fail(why);
            }
            for axis in [&found.x, &found.series] {
                if !COLUMNS.contains(&axis.as_str()) && !given.parameters.contains_key(axis) {
                    let known = COLUMNS.join(", ");
                    let why =
                        format!("{axis:?} is neither a parameter in [scale.{scale}] nor a column");
                    return fail(format!("{why}; known columns: {known}"));
                }
            }
            found.points(scale).map_err(|e| Failure::file(path, e.message))?;
        }
        Ok(found)
    }

    /// The circuit's name.
    pub(crate) fn circuit(&self) -> &str {
        self.circuit.as_ref().or(self.requires_circuit.as_ref()).map_or("", String::as_str)
    }

    /// Whether a missing circuit is no error.
    pub(crate) fn may_lack_circuit(&self) -> bool {
        self.requires_circuit.is_some()
    }

    /// The description of a scale, if the file has it.
    pub(crate) fn scale(&self, name: &str) -> Option<&Scale> {
        match name {
            "tiny" => self.scale.tiny.as_ref(),
            "laptop" => self.scale.laptop.as_ref(),
            "node" => self.scale.node.as_ref(),
            "cluster" => self.scale.cluster.as_ref(),
            _ => None,
        }
    }

    /// The points of a scale.
    ///
    /// # Errors
    /// If the file does not have the scale, or a formula cannot be computed.
    pub(crate) fn points(&self, scale: &str) -> Result<Vec<Point>, Failure> {
        let usage = |why: String| Failure::new(USAGE, format!("{}: {why}", self.name));
        let given = self.scale(scale).ok_or_else(|| {
            let what = self.circuit();
            usage(format!("no [scale.{scale}]: add parameters of the circuit {what:?} to the file"))
        })?;
        let input = self.input.clone().ok_or_else(|| usage("\"input\" is missing".into()))?;
        let lists = given.parameters.iter().filter_map(|(name, setting)| match setting {
            Setting::List(values) => Some((name.clone(), values.clone())),
            _ => None,
        });
        let lists: Vec<(String, Vec<u64>)> = lists.collect();
        let mut points = Vec::new();
        for &cores in &given.cores {
            let sizes: Vec<Option<u64>> = match (&given.subcircuits, given.subcircuits_per_core) {
                (Some(sizes), _) => sizes.iter().copied().map(Some).collect(),
                (None, Some(each)) => vec![Some(each * cores as u64)],
                (None, None) => vec![None],
            };
            for subcircuits in sizes {
                for choice in combinations(&lists) {
                    let of_size = subcircuits.map(|n| format!(".s{n}")).unwrap_or_default();
                    let mut id = format!("{}.c{cores}{of_size}", self.name);
                    let mut element = self.name.clone();
                    if given.subcircuits_per_core.is_none() {
                        element += &of_size;
                    }
                    for (name, value) in &choice {
                        id += &format!(".{name}{value}");
                        element += &format!(".{name}{value}");
                    }
                    let mut parameters = choice;
                    for (name, setting) in &given.parameters {
                        let value = match setting {
                            Setting::List(_) => continue,
                            Setting::Number(value) => *value,
                            Setting::Formula(text) => {
                                let missing =
                                    "\"subcircuits\" is missing, and a parameter needs it";
                                let subcircuits =
                                    subcircuits.ok_or_else(|| usage(missing.into()))?;
                                formula(text, subcircuits).map_err(usage)?
                            }
                        };
                        parameters.insert(name.clone(), value);
                    }
                    if given.limits.iter().any(|limit| limit.excludes(&parameters)) {
                        continue;
                    }
                    if let Input::Bytes(names) = &input
                        && let Some(name) = names.iter().find(|n| !parameters.contains_key(*n))
                    {
                        return Err(usage(format!("\"input\" needs the parameter {name:?}")));
                    }
                    let units = self.units.as_ref().and_then(|name| parameters.get(name).copied());
                    points.push(Point {
                        id,
                        experiment: self.name.clone(),
                        scale: scale.to_owned(),
                        circuit: self.circuit().to_owned(),
                        parameters,
                        input: input.clone(),
                        subcircuits,
                        cores,
                        provers_per_rank: given.provers_per_rank.map(|p| p.min(cores)),
                        root_proves: given.root_proves,
                        schedule: given.schedule,
                        oversubscribe: given.oversubscribe,
                        element: self.paired.then_some(element),
                        units,
                    });
                }
            }
        }
        Ok(points)
    }
}

/// All ways to choose one value per name; one empty choice if there is no name.
fn combinations(lists: &[(String, Vec<u64>)]) -> Vec<BTreeMap<String, u64>> {
    let mut all = vec![BTreeMap::new()];
    for (name, values) in lists {
        all = (all.iter())
            .flat_map(|choice| {
                values.iter().map(|value| {
                    let mut longer = choice.clone();
                    longer.insert(name.clone(), *value);
                    longer
                })
            })
            .collect();
    }
    all
}

/// "subcircuits" or "subcircuits/N".
fn formula(text: &str, subcircuits: u64) -> Result<u64, String> {
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

/// Reads all experiments of a directory, sorted as the paper has them.
pub(crate) fn read_all(directory: &Path) -> Result<Vec<Experiment>, Failure> {
    let paths = files::entries(directory)?;
    let tomls = paths.iter().filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let mut all: Vec<Experiment> =
        tomls.map(|path| Experiment::read(path)).collect::<Result<_, _>>()?;
    let order = ["fig7", "fig8", "fig9", "fig10", "table2", "proof", "overhead", "memory", "ranks"];
    let place = |name: &str| order.iter().position(|o| *o == name).unwrap_or(order.len());
    all.sort_by_key(|e| (place(&e.name), e.name.clone()));
    Ok(all)
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
        let limit = Limit { when: map(&[("memory", 1)]), most: map(&[("cycles", 64)]) };
        for (memory, cycles, excluded) in [(1, 64, false), (1, 65, true), (0, 65, false)] {
            let point = map(&[("memory", memory), ("cycles", cycles)]);
            assert_eq!(limit.excludes(&point), excluded, "{memory} {cycles}");
        }
    }

    #[test]
    fn the_committed_experiments_are_valid() {
        let all =
            read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../paper-results/experiments"));
        let all = all.unwrap_or_else(|e| panic!("{}", e.message));
        assert_eq!(all.len(), 9);
        for experiment in all.iter().filter(|e| !e.may_lack_circuit()) {
            for scale in SCALES {
                let points = experiment.points(scale).unwrap_or_else(|e| panic!("{}", e.message));
                let mut ids: Vec<&str> = points.iter().map(|p| p.id.as_str()).collect();
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), points.len(), "{} {scale}", experiment.name);
            }
        }
    }
}
