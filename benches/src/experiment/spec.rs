//! Experiments as TOML files, and the points that a scale of one consists of.

use super::columns::COLUMNS;
use super::combinations::Combination;
use super::epoch::Epoch;
use super::failure::{Failure, USAGE};
use super::files;
use super::scale::{Scale, Scales, Schedule};
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
    /// The message of the figure, in one sentence.
    pub(crate) shows: String,
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
    /// `true` if points that differ in their cores alone are measured one after the other, because
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
    /// The witness of an epoch of a directory, with as many updates and labels as the parameters `batch` and `labels` say.
    Epoch,
}

impl Input {
    /// The names of the parameters that it follows from.
    fn parameters(&self) -> impl Iterator<Item = &str> {
        let (own, of_epoch): (&[String], &[&str]) = match self {
            Self::Bytes(names) => (names, &[]),
            Self::Text(_) => (&[], &[]),
            Self::Epoch => (&[], &OF_EPOCH),
        };
        own.iter().map(String::as_str).chain(of_epoch.iter().copied())
    }
}

/// Parameters of a witness that are not parameters of the circuit.
pub(crate) const OF_EPOCH: [&str; 2] = ["batch", "labels"];

/// One combination of parameters, which is measured several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) id: String,
    pub(crate) experiment: String,
    pub(crate) scale: String,
    /// The circuit among those that are compared.
    #[serde(default)]
    pub(crate) variant: Option<String>,
    pub(crate) circuit: String,
    pub(crate) parameters: BTreeMap<String, u64>,
    /// Parameters of the circuit that belong to the variant.
    #[serde(default)]
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) input: Input,
    /// The number that the circuit must have, if the experiment states it.
    pub(crate) subcircuits: Option<u64>,
    pub(crate) cores: usize,
    /// Provers per rank; without it, one process with `cores` threads.
    pub(crate) provers_per_rank: Option<usize>,
    pub(crate) root_proves: bool,
    pub(crate) schedule: Schedule,
    /// `true` if provers may outnumber the machine's cores.
    #[serde(default)]
    pub(crate) oversubscribe: bool,
    /// The element of an array that points share if they are measured one after the other.
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
            variant: None,
            circuit: circuit.to_owned(),
            parameters,
            options: BTreeMap::new(),
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

    /// The circuit's parameters as `-p NAME=VALUE`.
    ///
    /// # Errors
    /// If the circuit for the input cannot be known.
    pub(crate) fn arguments(&self) -> Result<Vec<String>, Failure> {
        let of_input: &[&str] = if self.input == Input::Epoch { &OF_EPOCH } else { &[] };
        let of_circuit =
            self.parameters.iter().filter(|(name, _)| !of_input.contains(&name.as_str()));
        let own = of_circuit.map(|(name, value)| format!("{name}={value}"));
        let options = self.options.iter().map(|(name, value)| format!("{name}={value}"));
        let derived = match self.input {
            Input::Epoch => Some(self.epoch().parameter()?),
            _ => None,
        };
        Ok(own.chain(options).chain(derived).flat_map(|pair| ["-p".to_owned(), pair]).collect())
    }

    fn epoch(&self) -> Epoch<'_> {
        let [batch, labels] = OF_EPOCH.map(|name| self.parameters[name]);
        let (circuit, options) = (&self.circuit, &self.options);
        Epoch { point: &self.id, circuit, options, labels, batch }
    }

    /// The bytes of the input. They vary, so that bits in the circuit are as mixed as in a file.
    ///
    /// # Errors
    /// If there is no input.
    pub(crate) fn input_bytes(&self) -> Result<Vec<u8>, Failure> {
        match &self.input {
            Input::Text(text) => Ok(text.clone().into_bytes()),
            Input::Bytes(names) => {
                let length: u64 =
                    names.iter().filter_map(|name| self.parameters.get(name)).product();
                let byte = |i: u64| (i.wrapping_mul(0x9e37_79b9) >> 13).to_le_bytes()[0];
                Ok((0..length).map(byte).collect())
            }
            Input::Epoch => self.epoch().input(),
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
            let projected = given.projection.iter().flat_map(|projection| &projection.limits);
            let limits = given.limits.iter().chain(projected);
            let variants = limits.clone().filter_map(|limit| limit.variant.as_ref());
            if let Some(name) =
                variants.into_iter().find(|name| !given.variants.contains_key(*name))
            {
                let why = format!("{name:?} in \"limits\" is not a variant in [scale.{scale}]");
                return fail(why);
            }
            let mut limited = limits.flat_map(|limit| limit.when.keys().chain(limit.most.keys()));
            if let Some(name) = limited.find(|name| !given.parameters.contains_key(*name)) {
                let why = format!("{name:?} in \"limits\" is not a parameter in [scale.{scale}]");
                return fail(why);
            }
            for axis in [&found.x, &found.series] {
                let is_variant = axis == "variant" && !given.variants.is_empty();
                if !COLUMNS.contains(&axis.as_str())
                    && !given.parameters.contains_key(axis)
                    && !is_variant
                {
                    let known = COLUMNS.join(", ");
                    let why =
                        format!("{axis:?} is neither a parameter in [scale.{scale}] nor a column");
                    return fail(format!("{why}; known columns: {known}"));
                }
            }
            found.points(scale).map_err(|e| Failure::file(path, e.message))?;
            found.projected(scale).map_err(|e| Failure::file(path, e.message))?;
        }
        Ok(found)
    }

    /// The circuit's name.
    pub(crate) fn circuit(&self) -> &str {
        self.circuit.as_ref().or(self.requires_circuit.as_ref()).map_or("", String::as_str)
    }

    /// Reports whether a missing circuit is not an error.
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
        let given = self.scale(scale).ok_or_else(|| {
            let what = self.circuit();
            self.usage(format!(
                "no [scale.{scale}]: add parameters of the circuit {what:?} to the file"
            ))
        })?;
        self.points_of(scale, given)
    }

    /// The points of a scale that only the model knows.
    ///
    /// # Errors
    /// If a formula cannot be computed.
    pub(crate) fn projected(&self, scale: &str) -> Result<Vec<Point>, Failure> {
        let Some((given, projection)) =
            self.scale(scale).and_then(|given| Some((given, given.projection.as_ref()?)))
        else {
            return Ok(Vec::new());
        };
        let mut changed = given.clone();
        changed.parameters.extend(projection.parameters.clone());
        changed.cores.clone_from(&projection.cores);
        changed.limits.clone_from(&projection.limits);
        if projection.subcircuits.is_some() {
            changed.subcircuits.clone_from(&projection.subcircuits);
        }
        changed.provers_per_rank = Some(projection.provers_per_rank);
        self.points_of(scale, &changed)
    }

    fn usage(&self, why: String) -> Failure {
        Failure::new(USAGE, format!("{}: {why}", self.name))
    }

    fn points_of(&self, scale: &str, given: &Scale) -> Result<Vec<Point>, Failure> {
        let missing = || self.usage("\"input\" is missing".into());
        let input = self.input.as_ref().ok_or_else(missing)?;
        let mut points = Vec::new();
        for combination in Combination::all(given) {
            let parameters = combination.parameters(given).map_err(|why| self.usage(why))?;
            let name = combination.name();
            if given.limits.iter().any(|limit| limit.excludes(name, &parameters)) {
                continue;
            }
            if let Some(name) = input.parameters().find(|name| !parameters.contains_key(*name)) {
                return Err(self.usage(format!("\"input\" needs the parameter {name:?}")));
            }
            points.push(self.point(scale, given, input, &combination, parameters));
        }
        Ok(points)
    }

    /// The point of a combination whose parameters are known.
    fn point(
        &self,
        scale: &str,
        given: &Scale,
        input: &Input,
        combination: &Combination<'_>,
        parameters: BTreeMap<String, u64>,
    ) -> Point {
        let (of_size, of_choice) = (combination.of_size(), combination.of_choice());
        let (cores, variant) = (combination.cores, combination.variant());
        let mut element = self.name.clone();
        if given.subcircuits_per_core.is_none() {
            element += &of_size;
        }
        element += &of_choice;
        let circuit = variant.and_then(|variant| variant.circuit.as_deref());
        Point {
            id: format!("{}.c{cores}{of_size}{of_choice}", self.name),
            experiment: self.name.clone(),
            scale: scale.to_owned(),
            variant: combination.name().map(str::to_owned),
            circuit: circuit.unwrap_or(self.circuit()).to_owned(),
            options: variant.map_or_else(BTreeMap::new, |variant| variant.options.clone()),
            input: input.clone(),
            subcircuits: combination.subcircuits,
            cores,
            provers_per_rank: given.provers_per_rank.map(|p| p.min(cores)),
            root_proves: given.root_proves,
            schedule: given.schedule,
            oversubscribe: given.oversubscribe,
            element: self.paired.then_some(element),
            units: self.units.as_ref().and_then(|name| parameters.get(name).copied()),
            parameters,
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
    fn the_committed_experiments_are_valid() {
        let read =
            read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../paper-results/experiments"));
        let all = read.unwrap_or_else(|e| panic!("{}", e.message));
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
