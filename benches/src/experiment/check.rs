//! Checks whether the machine has what points require, by `hekaton estimate`.

use super::environment::memory_bytes;
use super::failure::{At, FAILED, Failure, USAGE};
use super::keys;
use super::program::Program;
use super::session::Session;
use super::spec::{Experiment, Point, SCALES};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

/// The resources of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    /// Bytes per node, if they are known.
    pub(crate) memory: Option<u64>,
    /// Ranks per node that share the memory; `usize::MAX` on one machine.
    pub(crate) ranks_per_node: usize,
    /// Free bytes for keys.
    pub(crate) disk: u64,
}

impl Machine {
    /// This machine.
    pub(crate) fn here(work: &Path) -> Result<Self, Failure> {
        Ok(Self {
            cores: available_parallelism().map_or(1, std::num::NonZero::get),
            memory: memory_bytes(),
            ranks_per_node: usize::MAX,
            disk: free_disk(work)?,
        })
    }
}

/// The free bytes of the file system that a directory is on, or will be on.
pub(crate) fn free_disk(work: &Path) -> Result<u64, Failure> {
    let existing = work.ancestors().find(|path| path.exists()).unwrap_or_else(|| Path::new("."));
    let found = rustix::fs::statvfs(existing).at(existing)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The requirements of one point.
#[derive(Clone, Debug)]
pub(crate) struct Requirement {
    pub(crate) point: Point,
    pub(crate) repetitions: usize,
    /// Bytes per rank.
    memory: u64,
    /// Bytes of keys, 0 if they exist.
    disk: u64,
    /// Seconds per repetition.
    pub(crate) seconds: f64,
}

impl Requirement {
    /// Returns whether the machine has the cores that the point asks for.
    pub(crate) fn has_cores(&self, machine: &Machine) -> bool {
        has_cores(&self.point, machine)
    }

    /// Returns the reason why the machine is too small for the point.
    fn lack(&self, machine: &Machine) -> Option<String> {
        if !self.has_cores(machine) {
            return Some(format!("{} cores of {}", self.point.cores, machine.cores));
        }
        let ranks = self.point.processes().min(machine.ranks_per_node) as u64;
        let memory = self.memory.saturating_mul(ranks);
        let available = machine.memory.filter(|available| memory > *available)?;
        Some(format!("{} of memory, of {}", bytes(memory), bytes(available)))
    }
}

fn has_cores(point: &Point, machine: &Machine) -> bool {
    point.cores <= machine.cores || point.oversubscribe
}

/// The circuit of a point.
fn named(point: &Point) -> String {
    format!("{} {:?} {:?}", point.circuit, point.parameters, point.options)
}

/// Asks `hekaton estimate` about all points of some experiments.
pub(crate) fn requirements(
    session: &Session,
    program: &Program,
    experiments: &[&Experiment],
    scale: &str,
    machine: &Machine,
) -> Result<Vec<Requirement>, Failure> {
    let mut known: BTreeMap<String, Option<serde_json::Value>> = BTreeMap::new();
    let mut all = Vec::new();
    for experiment in experiments {
        let repetitions = experiment.scale(scale).map_or(0, |s| s.repetitions);
        for point in experiment.points(scale)? {
            session.stop.check()?;
            let ranks = point.provers_per_rank.map(|_| point.ranks());
            let key = format!("{} {ranks:?} {}", named(&point), point.cores);
            if !known.contains_key(&key) {
                // Counting constraints of a large point takes a while, and is useless if there are
                // too few cores: the point is left out.
                let found = match has_cores(&point, machine) {
                    true => Some(program.estimate(&point)?),
                    false => None,
                };
                known.insert(key.clone(), found);
            }
            let number = |name: &str| match &known[&key] {
                None => Ok(0.0),
                Some(found) => found[name].as_f64().ok_or_else(|| {
                    Failure::new(FAILED, format!("{}: estimate printed no {name}", point.id))
                }),
            };
            let there = keys::exist(program, &point, &session.work);
            #[allow(clippy::cast_possible_truncation, reason = "bytes of one machine")]
            let (memory, key_bytes) =
                (number("peak_memory_bytes")? as u64, number("key_bytes")? as u64);
            let (disk, seconds) = (if there { 0 } else { key_bytes }, number("seconds")?);
            all.push(Requirement { repetitions, memory, disk, seconds, point });
        }
    }
    Ok(all)
}

/// Fails if the machine has the cores for no point of an experiment, or lacks memory or disk for
/// the others, and names the largest scale that fits.
pub(crate) fn refuse_too_large(
    session: &Session,
    program: &Program,
    experiments: &[&Experiment],
    found: &[Requirement],
    machine: &Machine,
) -> Result<(), Failure> {
    let Some(why) = too_large(found, machine) else { return Ok(()) };
    let here = SCALES
        .iter()
        .position(|s| *s == session.scale)
        .expect("the command line accepts only these scales");
    let mut fits = None;
    let known = |scale: &&&str| experiments.iter().all(|e| e.scale(scale).is_some());
    for scale in SCALES[..here].iter().rev().filter(known) {
        let smaller = requirements(session, program, experiments, scale, machine)?;
        if too_large(&smaller, machine).is_none() {
            fits = Some(*scale);
            break;
        }
    }
    let hint = match fits {
        Some(scale) => format!("the largest scale that fits is --scale {scale}"),
        None => "no scale fits".to_owned(),
    };
    Err(Failure::new(USAGE, format!("--scale {} does not fit: {why}; {hint}", session.scale)))
}

fn too_large(found: &[Requirement], machine: &Machine) -> Option<String> {
    let able: BTreeSet<&str> = found
        .iter()
        .filter(|r| r.has_cores(machine))
        .map(|r| r.point.experiment.as_str())
        .collect();
    let counts =
        |r: &&Requirement| r.has_cores(machine) || !able.contains(r.point.experiment.as_str());
    let lacks = found.iter().filter(counts).find_map(|r| Some((r, r.lack(machine)?)));
    if let Some((requirement, lack)) = lacks {
        return Some(format!("{} needs {lack}", requirement.point.id));
    }
    let disk = disk(found);
    (disk > machine.disk)
        .then(|| format!("keys need {} of disk, and {} are free", bytes(disk), bytes(machine.disk)))
}

/// The bytes of all keys, each counted once, with a tenth for proofs and events.
fn disk(found: &[Requirement]) -> u64 {
    let mut keys: BTreeMap<String, u64> = BTreeMap::new();
    for r in found {
        // Points of one circuit have the same keys; those that are left out were not estimated.
        let known = keys.entry(named(&r.point)).or_default();
        *known = r.disk.max(*known);
    }
    keys.values().sum::<u64>() / 10 * 11
}

/// The table that `check` prints.
pub(crate) fn table(found: &[Requirement], machine: &Machine) -> String {
    let mut out = format!(
        "{:<34} {:>5} {:>6} {:>11} {:>11} {:>11} {:>4}\n",
        "point", "cores", "ranks", "memory", "keys", "time", "runs"
    );
    for r in found {
        let memory =
            r.memory.saturating_mul(r.point.processes().min(machine.ranks_per_node) as u64);
        let there = r.disk == 0 && r.memory > 0;
        out += &format!(
            "{:<34} {:>5} {:>6} {:>11} {:>11} {:>9.1} s {:>4}{}\n",
            r.point.id,
            r.point.cores,
            r.point.ranks(),
            bytes(memory),
            if there { "exist".to_owned() } else { bytes(r.disk) },
            r.seconds,
            r.repetitions,
            match r.lack(machine) {
                None => String::new(),
                Some(lack) if r.has_cores(machine) => format!("  does not fit: {lack}"),
                Some(lack) => format!("  left out: {lack}"),
            },
        );
    }
    #[allow(clippy::cast_precision_loss, reason = "at most 15")]
    let seconds: f64 = found.iter().map(|r| r.seconds * r.repetitions as f64).sum();
    out += &format!(
        "about {:.0} s of proving, without setup; {} of disk, of {} free\n",
        seconds,
        bytes(disk(found)),
        bytes(machine.disk)
    );
    out
}

/// The load of this machine.
pub(crate) fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// Formats bytes: 12345678 as "12.3 MB".
#[allow(clippy::cast_precision_loss, reason = "for people")]
fn bytes(n: u64) -> String {
    match n as f64 {
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.1} GB", n / 1e9),
    }
}
