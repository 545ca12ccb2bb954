//! `hekaton doctor`: checks this machine and this job, and reports what to fix.

use crate::app::App;
use crate::options::Doctor;
use crate::ranks::{build, processor};
use hekaton_core::Backend;
#[cfg(feature = "gpu")]
use hekaton_gpu::Error;
use hekaton_mpi::launch::{Launch, default_provers};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::output;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
#[cfg(feature = "gpu")]
use std::time::Instant;

/// The verdict on one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    /// works, but not as well as it could, or is missing and not always needed
    Note,
    /// must be fixed before ranks can prove
    Bad,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "BAD",
        }
    }
}

/// A fact that was checked, with the result and a remedy.
struct Finding {
    what: &'static str,
    state: State,
    found: String,
    mend: String,
}

fn finding(what: &'static str, state: State, found: impl ToString, mend: &str) -> Finding {
    Finding { what, state, found: found.to_string(), mend: mend.to_owned() }
}

pub(crate) fn run(command: &Doctor, app: &App, json: bool) -> Result<(), Failure> {
    let mut findings = vec![
        program(app),
        mpi(),
        process_manager(),
        slurm(),
        launch(),
        cores(),
        features(),
        locked_memory(),
    ];
    findings.extend(gpus());
    findings.extend(command.paths.iter().map(|path| file_system(path)));
    let bad = findings.iter().filter(|f| f.state == State::Bad).count();
    let list: Vec<Value> = findings
        .iter()
        .map(|f| {
            json!({
                "what": f.what, "state": f.state.name(), "found": f.found, "mend": f.mend,
            })
        })
        .collect();
    let node = node();
    // Launchers mix the lines of all nodes.
    let is_one_of_many = Launch::of_environment().announced() > 1;
    let place = node.as_ref().filter(|_| is_one_of_many);
    let lines = lines(&findings, &place.map_or_else(String::new, |node| format!("{node}: ")));
    let object = json!({ "ok": bad == 0, "node": node, "findings": list });
    output::result(json, &object, lines.trim_end())?;
    match bad {
        0 => Ok(()),
        1 => {
            Err(Failure::new(exit::FAILED, "one problem must be fixed before ranks can prove here"))
        }
        n => Err(Failure::new(
            exit::FAILED,
            format!("{n} problems must be fixed before ranks can prove here"),
        )),
    }
}

/// The name of this machine, where the system says it in a file.
fn node() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(output::one_line(name.trim()).into_owned())
}

/// The findings for people. Each line begins with `place`.
fn lines(findings: &[Finding], place: &str) -> String {
    let mut lines = String::new();
    for f in findings {
        lines.push_str(&format!("{place}{:<5} {:<16} {}\n", f.state.name(), f.what, f.found));
        if !f.mend.is_empty() {
            lines.push_str(&format!("{place}{:22} -> {}\n", "", f.mend));
        }
    }
    lines
}

/// The first line that a program prints, if it can be run and succeeds.
fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    // Some programs print their version on standard error.
    let both = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&both).into_owned();
    Some(text.lines().find(|line| !line.trim().is_empty())?.trim().to_owned())
}

fn program(app: &App) -> Finding {
    match cfg!(feature = "mpi") {
        true => finding("program", State::Good, format!("{}, with MPI", build()), ""),
        false => finding(
            "program",
            State::Bad,
            format!("{}, without MPI", build()),
            &format!("{} (not needed on a single machine)", app.with_mpi()),
        ),
    }
}

#[cfg(not(feature = "gpu"))]
fn gpus() -> Vec<Finding> {
    vec![finding("GPU", State::Note, crate::gpu::WITHOUT, crate::gpu::BUILD)]
}

/// The GPUs, each with a test of its arithmetic.
#[cfg(feature = "gpu")]
fn gpus() -> Vec<Finding> {
    const WHAT: &str = "GPU";
    match hekaton_gpu::count() {
        Err(Error::NoDriver) => {
            let found = "there is no NVIDIA driver";
            vec![finding(WHAT, State::Note, found, "not needed: the cores prove")]
        }
        Err(error) => {
            let mend = "compare with nvidia-smi; `prove --gpu off` does without GPUs";
            vec![finding(WHAT, State::Bad, error, mend)]
        }
        Ok(0) => {
            let mend = "on a cluster, ask for one: sbatch --gres=gpu:1";
            vec![finding(WHAT, State::Note, "a driver, but no GPU", mend)]
        }
        Ok(count) => (0..count).map(gpu).collect(),
    }
}

#[cfg(feature = "gpu")]
fn gpu(number: usize) -> Finding {
    let since = Instant::now();
    let tested = || -> Result<(String, u64), String> {
        let device = hekaton_gpu::open(number).map_err(|e| e.to_string())?;
        let mut check = hekaton_gpu::check::Check::new(&device, 1);
        check.fields(1000).and_then(|()| check.points(1000)).map_err(|e| e.to_string())?;
        Ok((device.name(), device.free_memory().map_err(|e| e.to_string())?))
    };
    match tested() {
        Ok((name, free)) => {
            let (free, took) = (output::bytes(free), output::seconds(since.elapsed()));
            let found = format!("{number}: {name}, {free} free, opened and tested in {took}");
            finding("GPU", State::Good, found, "")
        }
        Err(why) => {
            let mend = "compare with nvidia-smi; `prove --gpu off` does without GPUs";
            finding("GPU", State::Bad, format!("{number}: {why}"), mend)
        }
    }
}

fn mpi() -> Finding {
    match first_line("mpirun", &["--version"]) {
        Some(version) => finding("mpirun", State::Good, version, ""),
        None => finding(
            "mpirun",
            State::Note,
            "not found",
            "sudo apt-get install openmpi-bin, or on a cluster: module load openmpi; not needed with \
             `srun --mpi=pmix`",
        ),
    }
}

fn process_manager() -> Finding {
    let Ok(output) = Command::new("srun").arg("--mpi=list").output() else {
        return finding("srun", State::Note, "not found", "without SLURM, start ranks with mpirun");
    };
    // Without PMIx, srun starts processes that do not find each other: each is the only rank of its own job.
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let kinds: Vec<&str> =
        text.split_whitespace().filter(|word| word.starts_with("pmi") || *word == "none").collect();
    match kinds.iter().find(|kind| kind.starts_with("pmix")) {
        Some(_) => finding("srun --mpi", State::Good, kinds.join(" "), ""),
        None if kinds.is_empty() => {
            let said =
                text.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing").trim();
            finding(
                "srun --mpi",
                State::Note,
                format!("srun --mpi=list printed: {said}"),
                "without SLURM, start ranks with mpirun",
            )
        }
        None => finding(
            "srun --mpi",
            State::Note,
            format!("no pmix among: {}", kinds.join(" ")),
            "use mpirun in the batch script (LAUNCHER=mpirun), or ask for SLURM's PMIx plugin",
        ),
    }
}

fn slurm() -> Finding {
    let names = [
        "SLURM_JOB_ID",
        "SLURM_STEP_ID",
        "SLURM_JOB_NUM_NODES",
        "SLURM_NTASKS",
        "SLURM_CPUS_PER_TASK",
        "SLURM_RESTART_COUNT",
    ];
    let found: Vec<String> = names
        .iter()
        .filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)))
        .collect();
    match found.is_empty() {
        true => finding("SLURM job", State::Note, "none", "sbatch slurm/prove.sbatch starts one"),
        false => finding("SLURM job", State::Good, found.join(" "), ""),
    }
}

fn launch() -> Finding {
    let launch = Launch::of_environment();
    match launch.check_before() {
        Ok(()) if launch.announced() > 1 => {
            finding("launch", State::Good, format!("one of {} ranks", launch.announced()), "")
        }
        Ok(()) => finding("launch", State::Good, "started by hand, one process", ""),
        Err(e) => finding("launch", State::Bad, e, "srun --mpi=pmix"),
    }
}

fn cores() -> Finding {
    let provers = default_provers(1);
    // Only Linux has this file.
    let load = match std::fs::read_to_string("/proc/loadavg") {
        Ok(text) => text.split_whitespace().next().unwrap_or("unknown").to_owned(),
        Err(_) => "unknown".to_owned(),
    };
    finding("cores", State::Good, format!("{provers} for one rank here (load {load})"), "")
}

fn features() -> Finding {
    let found = processor();
    // Without these, Montgomery multiplication has one chain of carries instead of two.
    let old = !found.contains("adx") || !found.contains("bmi2");
    let fastest = Backend::fastest();
    if found.starts_with("x86_64") && old {
        finding(
            "processor",
            State::Note,
            found,
            "without adx and bmi2, proving takes about twice as long",
        )
    } else if !found.starts_with("x86_64") {
        let hint = "there are kernels for x86-64 only: on other processors proving takes several times as long";
        finding("processor", State::Note, found, hint)
    // A variable that was set for a test may have been forgotten in a profile.
    } else if Backend::choose() != Ok(fastest) {
        let hint = format!("unset HEKATON_ARITH: the {fastest} kernels are faster here");
        finding("processor", State::Note, found, &hint)
    } else {
        finding("processor", State::Good, found, "")
    }
}

fn locked_memory() -> Finding {
    let limits = match std::fs::read_to_string("/proc/self/limits") {
        Ok(limits) => limits,
        Err(e) => {
            let found = format!("the limit cannot be read: {e}");
            return finding("locked memory", State::Note, found, "");
        }
    };
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    match soft.map(|soft| (soft, soft.parse::<u64>())) {
        None => finding("locked memory", State::Note, "the limit cannot be read", ""),
        // The default of most distributions is 64 kB to 8 MB; verbs register the buffers of each connection.
        Some((_, Ok(bytes))) if bytes < 64 << 20 => finding(
            "locked memory",
            State::Note,
            output::bytes(bytes),
            "InfiniBand needs more (TCP does not): ulimit -l unlimited, and \
             PropagateResourceLimitsExcept=MEMLOCK in slurm.conf",
        ),
        Some((soft, _)) => finding("locked memory", State::Good, soft, ""),
    }
}

/// File systems that nodes of a cluster usually share, as Linux names them.
const SHARED: [&str; 11] = [
    "nfs",
    "nfs4",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "fuse.sshfs",
    "afs",
    "cifs",
    "panfs",
    "wekafs",
];

/// The kind of file system of a path: that of the longest mount point above it.
fn kind_of_file_system(path: &Path) -> String {
    // Other systems do not have this file.
    let Ok(mounts) = std::fs::read_to_string("/proc/mounts") else { return "unknown".to_owned() };
    let above = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (_, at, kind) = (words.next()?, words.next()?, words.next()?);
        path.starts_with(at).then(|| (at.len(), kind.to_owned()))
    });
    // Of the mounts above a path, the one with the longest path is the one that it is on.
    above.max_by_key(|(length, _)| *length).map_or_else(|| "unknown".to_owned(), |(_, kind)| kind)
}

fn file_system(path: &Path) -> Finding {
    let path = match path.canonicalize() {
        Ok(path) => path,
        Err(e) => {
            return finding(
                "file system",
                State::Bad,
                format!("{}: {e}", path.display()),
                "create it, or pass the directory that the run will use",
            );
        }
    };
    let kind = kind_of_file_system(&path);
    let found = format!("{} is on {kind}", path.display());
    // Mount options and permissions do not show quotas or root squash: only writing does.
    let writable = tempfile::NamedTempFile::new_in(if path.is_dir() {
        &path
    } else {
        path.parent().unwrap_or(&path)
    });
    if let Err(e) = writable {
        return finding(
            "file system",
            State::Note,
            format!("{found}: not writable ({e})"),
            "fine for keys; a run directory must be writable",
        );
    }
    if SHARED.contains(&kind.as_str()) {
        finding("file system", State::Good, format!("{found}, which nodes usually share"), "")
    } else {
        finding(
            "file system",
            State::Note,
            found,
            "unless nodes share it: use --keys-from-root for the keys, and put the run directory \
             where rank 0 of the next job can read it",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_many_nodes_are_told_apart() {
        let findings = [
            finding("cores", State::Good, "32", ""),
            finding("MPI", State::Bad, "missing", "load the module"),
        ];
        let expected = "n7: ok    cores            32\nn7: BAD   MPI              missing\n\
                        n7:                        -> load the module\n";
        assert_eq!(lines(&findings, "n7: "), expected);
        assert!(node().is_some_and(|name| !name.is_empty()));
    }

    #[test]
    fn file_systems_are_recognized() {
        let there = file_system(Path::new("/"));
        assert!(there.found.starts_with("/ is on "), "{}", there.found);
        assert_eq!(file_system(Path::new("/no/such/place")).state, State::Bad);
    }
}
