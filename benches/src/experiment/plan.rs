//! The contents of a result set: `plan.json`, and the names of files in `raw/`.

use super::failure::{Failure, USAGE};
use super::files;
use super::spec::Point;
use super::statistics::random;
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The schema of result sets. Sets of another schema are refused.
pub(crate) const SCHEMA: u64 = 1;
/// The seed of the order of repetitions unless the command line has another one.
pub(crate) const SEED: u64 = 20_241_208;
/// The largest number of repetitions of a noisy point.
pub(crate) const MOST_REPETITIONS: usize = 15;

/// One repetition of a point.
pub(crate) type Task = (String, usize);

/// The content of `plan.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    schema: u64,
    pub(crate) points: Vec<Point>,
    /// Planned repetitions by point.
    pub(crate) repetitions: BTreeMap<String, usize>,
    /// Experiments without points, and why.
    pub(crate) skipped: BTreeMap<String, String>,
    /// The order of each `run`.
    orders: Vec<Order>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    seed: u64,
    order: Vec<Task>,
}

impl Plan {
    /// Reads the plan of a result set; an empty plan if there is not one yet.
    pub(crate) fn read(results: &Path) -> Result<Self, Failure> {
        let path = results.join("plan.json");
        if !path.exists() {
            return Ok(Self { schema: SCHEMA, ..Self::default() });
        }
        let value: serde_json::Value = files::read_json(&path)?;
        if value["schema"] != SCHEMA {
            let found = &value["schema"];
            return Err(Failure::file(&path, format!("schema {found}, expected {SCHEMA}")));
        }
        serde_json::from_value(value).map_err(|e| Failure::file(&path, e))
    }

    /// Writes the plan of a result set.
    pub(crate) fn write(&self, results: &Path) -> Result<(), Failure> {
        files::write_json(&results.join("plan.json"), self)
    }

    /// The point with this name.
    pub(crate) fn point(&self, id: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.id == id)
    }

    /// Adds a point; one of the same name must be the same.
    pub(crate) fn add(&mut self, point: &Point, repetitions: usize) -> Result<(), Failure> {
        match self.point(&point.id) {
            Some(known) if known != point => {
                let why = format!(
                    "the result set has another point {} (scale {}): choose another --name or \
                     --results",
                    point.id, known.scale
                );
                return Err(Failure::new(USAGE, why));
            }
            Some(_) => {}
            None => self.points.push(point.clone()),
        }
        let planned = self.repetitions.entry(point.id.clone()).or_default();
        *planned = (*planned).max(repetitions);
        Ok(())
    }

    /// All planned repetitions of some experiments as elements, in a random order that the plan
    /// records; points that are left out have none. A random order keeps a drift of the machine from looking like a difference between
    /// points. The tasks of an element run one after the other, in alternating order, so that it does
    /// not look like a ratio, either.
    pub(crate) fn shuffled(
        &mut self,
        experiments: &[String],
        left_out: &BTreeSet<String>,
        seed: u64,
    ) -> Vec<Vec<Task>> {
        let is_wanted =
            |p: &&Point| experiments.contains(&p.experiment) && !left_out.contains(&p.id);
        let points = self.points.iter().filter(is_wanted);
        let mut elements: BTreeMap<(&str, usize), Vec<Task>> = BTreeMap::new();
        for point in points {
            for repetition in 1..=self.repetitions[&point.id] {
                let tasks = elements.entry((point.element(), repetition)).or_default();
                tasks.push((point.id.clone(), repetition));
            }
        }
        let alternate = |((_, repetition), mut tasks): ((&str, usize), Vec<Task>)| {
            if repetition % 2 == 0 {
                tasks.reverse();
            }
            tasks
        };
        let mut order: Vec<Vec<Task>> = elements.into_iter().map(alternate).collect();
        order.shuffle(&mut random(seed));
        self.orders.push(Order { seed, order: order.concat() });
        order
    }
}

/// The directory of a completed repetition.
pub(crate) fn directory(results: &Path, (id, repetition): &Task) -> PathBuf {
    results.join("raw").join(format!("{id}-{repetition}"))
}

/// The directory of a repetition that is being run.
pub(crate) fn unfinished(results: &Path, (id, repetition): &Task) -> PathBuf {
    results.join("raw").join(format!("{id}-{repetition}.part"))
}

/// A free name for a repetition that failed.
pub(crate) fn failed(results: &Path, (id, repetition): &Task) -> PathBuf {
    let name = |n: usize| results.join("raw").join(format!("{id}-{repetition}.failed-{n}"));
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}

/// The repetition that a directory in `raw/` belongs to, and whether it failed; `None` for
/// repetitions that are being run.
pub(crate) fn task_of(path: &Path) -> Option<(Task, bool)> {
    let name = path.file_name()?.to_str()?;
    let (name, failed) = match name.split_once(".failed-") {
        Some((name, _)) => (name, true),
        None => (name, false),
    };
    let (id, repetition) = name.rsplit_once('-')?;
    Some(((id.to_owned(), repetition.parse().ok()?), failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_tasks() {
        let results = tempfile::tempdir().unwrap();
        let task = ("fig7.c2.s16.leaf-bytes54".to_owned(), 3);
        assert_eq!(task_of(&directory(results.path(), &task)), Some((task.clone(), false)));
        assert_eq!(task_of(&failed(results.path(), &task)), Some((task.clone(), true)));
        assert_eq!(task_of(&unfinished(results.path(), &task)), None);
    }
}
