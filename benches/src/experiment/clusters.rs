//! Array jobs of SLURM: one array per number of ranks, one element per repetition of a point, or of
//! points between which ratios are formed.

use super::check::{Machine, Requirement};
use super::failure::{At, FAILED, Failure, USAGE};
use super::files;
use super::model::Sources;
use super::plan::{Plan, Task};
use super::session::Session;
use super::spec::Point;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The maximum number of elements of one array; SLURM's default limit is 1001.
const ELEMENTS: usize = 1000;

/// The resources of a site.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Cluster {
    name: String,
    nodes: usize,
    cores_per_node: usize,
    memory_per_node_gb: u64,
    /// The price of a core per hour, in US dollars.
    usd_per_core_hour: Option<f64>,
    /// The time limit of one element, as SLURM writes it.
    time: String,
    partition: Option<String>,
    account: Option<String>,
    /// Further options of sbatch.
    #[serde(default)]
    options: Vec<String>,
    /// Modules to load; the Open MPI must be the one that the program was built with.
    #[serde(default)]
    modules: Vec<String>,
    /// The command that starts ranks, with {ranks} and {provers}.
    launcher: String,
}

impl Cluster {
    /// Reads and checks a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let found: Self = files::read_toml(path)?;
        if found.cores_per_node == 0 || found.nodes == 0 {
            return Err(Failure::file(path, "nodes and cores-per-node must be at least 1"));
        }
        if found.usd_per_core_hour.is_some_and(|price| !price.is_finite() || price < 0.0) {
            return Err(Failure::file(path, "usd-per-core-hour must not be negative"));
        }
        // A script is generated from these.
        let one_each = [&found.name, &found.time, &found.launcher].into_iter();
        let optional = found.partition.iter().chain(&found.account);
        let lists = found.options.iter().chain(&found.modules);
        let texts: Vec<&String> = one_each.chain(optional).chain(lists).collect();
        if let Some(text) = texts.iter().find(|t| t.contains(['\n', '"', '$', '`', '\\'])) {
            let why = format!("{text:?}: quotes, $, and line ends are not possible here");
            return Err(Failure::file(path, why));
        }
        Ok(found)
    }

    /// The machine that points must fit.
    pub(crate) fn machine(&self, disk: u64, ranks_per_node: usize) -> Machine {
        Machine {
            cores: self.nodes * self.cores_per_node,
            memory: Some(self.memory_per_node_gb.saturating_mul(1_000_000_000)),
            ranks_per_node,
            disk,
        }
    }

    /// Describes the cost of points in whole nodes, as elements have them for themselves. Keys and
    /// the start of processes are not included.
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    pub(crate) fn cost(&self, found: &[Requirement]) -> String {
        let hours: f64 = (found.iter())
            .map(|r| {
                let provers = r.point.provers_per_rank.unwrap_or(r.point.cores);
                let nodes = r.point.processes().div_ceil(self.ranks_per_node(provers));
                let cores = nodes * self.cores_per_node * r.repetitions;
                cores as f64 * r.seconds / 3600.0
            })
            .sum();
        let price = self.usd_per_core_hour;
        let usd = price.map_or_else(String::new, |price| format!(", {:.2} USD", hours * price));
        format!("about {hours:.1} core-hours{usd}, without setup")
    }

    /// Returns the number of ranks with this many provers that share a node.
    pub(crate) fn ranks_per_node(&self, provers: usize) -> usize {
        (self.cores_per_node / provers.max(1)).max(1)
    }
}

/// One array.
#[derive(Clone, Debug)]
struct Array {
    processes: usize,
    cores_per_process: usize,
    elements: Vec<Vec<Task>>,
}

fn arrays(plan: &Plan, order: &[Vec<Task>]) -> Vec<Array> {
    let mut by_shape: BTreeMap<(usize, usize), Vec<Vec<Task>>> = BTreeMap::new();
    for element in order {
        let points = || element.iter().filter_map(|task| plan.point(&task.0));
        // Nodes must suffice for each of its points.
        let cores = |p: &Point| p.provers_per_rank.unwrap_or(p.cores);
        let shape = points().map(Point::processes).max().zip(points().map(cores).max());
        if let Some(shape) = shape {
            by_shape.entry(shape).or_default().push(element.clone());
        }
    }
    let of_shape = |((processes, cores_per_process), all): ((usize, usize), Vec<Vec<Task>>)| {
        let parts: Vec<Array> = all
            .chunks(ELEMENTS)
            .map(|elements| Array { processes, cores_per_process, elements: elements.to_vec() })
            .collect();
        parts
    };
    by_shape.into_iter().flat_map(of_shape).collect()
}

/// The number of times that an element of an array whose repetition failed starts again.
const RESTARTS: u32 = 5;

/// Lets SLURM start this element of an array again, if it is one and has not often been: on a
/// cluster, a repetition mostly fails because a node does. The failure stays recorded.
pub(crate) fn requeue() {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(job), Some(_)) = (variable("SLURM_JOB_ID"), variable("SLURM_ARRAY_TASK_ID")) else {
        return;
    };
    let restarts = variable("SLURM_RESTART_COUNT").and_then(|n| n.parse::<u32>().ok());
    if restarts.unwrap_or(0) < RESTARTS {
        let asked = Command::new("scontrol").args(["requeue", &job]).status();
        match asked {
            Ok(status) if status.success() => eprintln!("this element starts again"),
            _ => eprintln!("scontrol requeue {job} failed: this element does not start again"),
        }
    }
}

/// Writes a script per array, and submits it unless this is a dry run.
pub(crate) fn submit(
    session: &Session,
    cluster: &Cluster,
    plan: &Plan,
    order: &[Vec<Task>],
    sources: &Sources,
    dry_run: bool,
) -> Result<(), Failure> {
    let directory = session.results.join("arrays");
    fs::create_dir_all(&directory).at(&directory)?;
    for (i, array) in arrays(plan, order).iter().enumerate() {
        let line = |element: &Vec<Task>| {
            let ids: Vec<&str> = element.iter().map(|(id, _)| id.as_str()).collect();
            let repetition = element.first().map_or(1, |(_, repetition)| *repetition);
            format!("{repetition} {}\n", ids.join(" "))
        };
        let tasks: String = array.elements.iter().map(line).collect();
        let list = std::path::absolute(directory.join(format!("{i}.tasks"))).at(&directory)?;
        files::write(&list, tasks.as_bytes())?;
        let path = directory.join(format!("{i}.sbatch"));
        files::write(&path, script(session, cluster, array, &list, sources)?.as_bytes())?;
        let elements = format!("--array=0-{}%1", array.elements.len() - 1);
        if dry_run {
            println_line(&format!("sbatch {elements} {}", path.display()));
            continue;
        }
        let ran = Command::new("sbatch").arg(&elements).arg("--parsable").arg(&path).output();
        let output = ran.map_err(|e| Failure::new(FAILED, format!("cannot run sbatch: {e}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::new(FAILED, format!("sbatch {}: {said}", path.display())));
        }
        let job = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let (ranks, count) = (array.processes, array.elements.len());
        println_line(&format!("job {job}: {count} elements with {ranks} ranks"));
    }
    println_line("when all have ended: experiment status, collect, report");
    Ok(())
}

#[allow(clippy::print_stdout, reason = "the result of the command")]
fn println_line(line: &str) {
    println!("{line}");
}

/// An absolute path in quotes that bash leaves as they are.
fn quoted(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path).at(path)?;
    let text = path.to_str().ok_or("is not valid UTF-8").at(&path)?;
    Ok(format!("'{}'", text.replace('\'', "'\\''")))
}

fn script(
    session: &Session,
    cluster: &Cluster,
    array: &Array,
    list: &Path,
    sources: &Sources,
) -> Result<String, Failure> {
    let per_node = cluster.ranks_per_node(array.cores_per_process).min(array.processes);
    let nodes = array.processes.div_ceil(per_node);
    if nodes > cluster.nodes {
        let why = format!(
            "{} ranks need {nodes} nodes, and there are {}",
            array.processes, cluster.nodes
        );
        return Err(Failure::new(USAGE, format!("{}: {why}", cluster.name)));
    }
    let mut options = vec![
        format!("--job-name=hekaton-{}", cluster.name),
        format!("--nodes={nodes}"),
        format!("--ntasks={}", array.processes),
        format!("--ntasks-per-node={per_node}"),
        format!("--cpus-per-task={}", array.cores_per_process),
        format!("--time={}", cluster.time),
        "--exclusive".to_owned(),
        // An interrupted repetition is not a measurement, and starts again.
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        format!("--output={}/%A-%a.log", list.parent().unwrap_or(list).display()),
    ];
    options.extend(cluster.partition.iter().map(|p| format!("--partition={p}")));
    options.extend(cluster.account.iter().map(|a| format!("--account={a}")));
    options.extend(cluster.options.clone());
    let directives: String = options.iter().map(|o| format!("#SBATCH {o}\n")).collect();
    let modules: String = cluster.modules.iter().map(|m| format!("module load {m}\n")).collect();
    let mut model = String::new();
    for (option, path) in [("calibration", &sources.calibration), ("cluster", &sources.cluster)] {
        if let Some(path) = path {
            let _ = write!(model, " \\\n    --{option} {}", quoted(path)?);
        }
    }
    let own: PathBuf = std::env::current_exe().map_err(|e| Failure::new(FAILED, e))?;
    Ok(format!(
        "#!/usr/bin/env bash\n# Written by `experiment run --slurm`: one repetition of a point, or of several, per element.\n\
         {directives}set -euo pipefail\n{modules}\
         read -r repetition points < <(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" {list})\n\
         # exec: SLURM's signals reach the program, which ends its ranks.\n\
         # shellcheck disable=SC2086 # one word per point\n\
         exec {own} point $points --repetition \"$repetition\" --scale {scale} \\\n    \
         --directory {directory} --results {results} --work {work} --hekaton {hekaton} \\\n    \
         --launcher \"{launcher}\"{model}\n",
        list = quoted(list)?,
        own = quoted(&own)?,
        scale = session.scale,
        directory = quoted(&session.directory)?,
        results = quoted(&session.results)?,
        work = quoted(&session.work)?,
        hekaton = quoted(&session.hekaton)?,
        launcher = cluster.launcher,
    ))
}
