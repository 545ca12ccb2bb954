//! Other provers on the same machine: ark-groth16 by the benchmark `prover`, and the programs that
//! `peers/*.toml` describe. Provers that are not installed are skipped; results from elsewhere are never used.

use super::failure::{FAILED, Failure};
use super::files;
use super::keys;
use super::process::first_line;
use super::program::Program;
use super::session::Session;
use super::spec::Point;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The way in which a peer is built and run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Peer {
    name: String,
    title: String,
    /// The version or commit that `build` uses.
    version: String,
    /// Programs that must be there.
    #[serde(default)]
    requires: Vec<String>,
    /// The source: a directory next to the file, or one that an environment variable names.
    source: Option<String>,
    source_variable: Option<String>,
    /// Commands of a shell in the source directory, with {out}, {cores} and {subcircuits}.
    build: String,
    run: String,
    cores: Vec<usize>,
    subcircuits: Vec<usize>,
    /// The things that {subcircuits} counts, if not subcircuits.
    sizes: Option<String>,
    repetitions: usize,
    /// Columns, and the fields of the JSON line that `run` prints last.
    columns: BTreeMap<String, String>,
    /// The same amount of work for `hekaton`, which then runs in alternation.
    hekaton: Option<Own>,
}

/// The circuit that `hekaton` proves in comparison with a peer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Own {
    circuit: String,
    /// The input has as many bytes as the product of these parameters.
    input: Vec<String>,
    /// The values of each parameter, one per entry of `subcircuits`.
    parameters: BTreeMap<String, Vec<u64>>,
}

impl Own {
    /// The point for an entry of `subcircuits`.
    fn point(&self, peer: &str, index: usize, cores: usize) -> Result<Point, String> {
        let value = |(name, values): (&String, &Vec<u64>)| {
            let value = values.get(index).ok_or_else(|| format!("{name} has too few values"))?;
            Ok((name.clone(), *value))
        };
        let parameters = self.parameters.iter().map(value).collect::<Result<_, String>>()?;
        let id = format!("{peer}.c{cores}.{index}");
        Ok(Point::alone(id, &self.circuit, parameters, &self.input, cores))
    }
}

/// Proves a point, and returns what its phases without loading keys took: seconds, and CPU seconds.
/// The proof is verified.
fn prove(session: &Session, program: &Program, point: &Point) -> Result<[f64; 2], String> {
    let case =
        keys::prepare(program, point, &session.work, &session.stop).map_err(|e| e.message)?;
    let directory = tempfile::tempdir_in(&session.work).map_err(|e| e.to_string())?;
    let mut command = program.prove(point, &session.launcher);
    command.arg(case.input()).arg("--keys").arg(case.keys());
    command.args(["--proof", "proof", "--events", "events.jsonl", "--json"]);
    output(session, command.current_dir(directory.path()))?;
    let mut verify = Command::new(&program.path);
    verify.args(["verify", "proof", "--key"]).arg(case.verifying_key());
    verify.args(["--public", &case.public, "--json"]);
    output(session, verify.current_dir(directory.path()))?;
    let mut report = Command::new(&program.path);
    report.args(["report", "events.jsonl", "--json"]).current_dir(directory.path());
    let text = output(session, &mut report)?;
    let parsed: Value = serde_json::from_str(text.trim()).map_err(|e| e.to_string())?;
    let phases = parsed["phases"].as_array().ok_or("the report has no phases")?;
    let sum = |field: &str| {
        let counted = phases.iter().filter(|p| p["phase"] != "load_keys");
        counted.map(|p| p[field].as_f64()).sum::<Option<f64>>().filter(|s| *s > 0.0)
    };
    let times = sum("seconds").zip(sum("cpu_seconds")).ok_or("the report has no times")?;
    Ok([times.0, times.1])
}

/// A rate of `hekaton` in a column that a peer has; `None` if the column is not a rate.
fn own_rate(column: &str, size: usize, cores: usize, [seconds, cpu]: [f64; 2]) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let (size, cores) = (size as f64, cores as f64);
    if column.ends_with("_per_core_second") {
        Some(size / seconds / cores)
    } else {
        column.ends_with("_per_cpu_second").then_some(size / cpu)
    }
}

/// One line of `peers.csv`.
#[derive(Clone, Debug)]
struct Found {
    peer: String,
    title: String,
    cores: String,
    size: String,
    column: String,
    value: String,
    note: String,
}

impl Found {
    fn skipped(peer: &str, title: &str, why: &str) -> Self {
        Self {
            peer: peer.to_owned(),
            title: title.to_owned(),
            cores: String::new(),
            size: String::new(),
            column: String::new(),
            value: String::new(),
            note: format!("skipped: {why}"),
        }
    }

    /// The row in `peers.csv`, in the order of [`HEAD`].
    fn fields(&self) -> Vec<String> {
        let Self { peer, title, cores, size, column, value, note } = self.clone();
        vec![peer, title, cores, size, column, value, note]
    }
}

/// The columns of `peers.csv`.
const HEAD: [&str; 7] = ["peer", "title", "cores", "size", "column", "value", "note"];

/// Runs all peers that are installed, and writes `peers.csv`.
pub(crate) fn peers(session: &Session) -> Result<(), Failure> {
    let mut all = ark_groth16(session)?;
    let directory = session.directory.join("peers");
    for path in if directory.is_dir() { files::entries(&directory)? } else { vec![] } {
        if path.extension().is_some_and(|e| e == "toml") {
            session.stop.check()?;
            let peer: Peer = files::read_toml(&path)?;
            all.extend(run(session, &peer, &directory));
        }
    }
    for found in &all {
        match found.note.is_empty() {
            true => eprintln!(
                "{} ({} cores, {}): {} {}",
                found.title, found.cores, found.size, found.value, found.column
            ),
            false => eprintln!("{}: {}", found.title, found.note),
        }
    }
    std::fs::create_dir_all(&session.results).map_err(|e| Failure::new(FAILED, e))?;
    files::write_csv(&session.results.join("peers.csv"), HEAD, all.iter().map(Found::fields))
}

/// The worker's part of one subcircuit against ark-groth16 on the same constraints, in alternation
/// in one process.
fn ark_groth16(session: &Session) -> Result<Vec<Found>, Failure> {
    let (name, title) = ("ark-groth16", "ark-groth16");
    let own = std::env::current_exe().map_err(|e| Failure::new(FAILED, e))?;
    let bench = own.with_file_name("prover");
    if !bench.is_file() {
        let why = "build it with `cargo build --release -p benches --bin prover`";
        return Ok(vec![Found::skipped(name, title, why)]);
    }
    if cfg!(debug_assertions) {
        return Ok(vec![Found::skipped(name, title, "this is not a release build")]);
    }
    let mut command = Command::new(bench);
    command.args(["--json", "--only", "worker: SHA-256"]);
    let lines = match output(session, &mut command) {
        Ok(lines) => lines,
        Err(why) => return Ok(vec![Found::skipped(name, title, &why)]),
    };
    let mut all = Vec::new();
    for line in lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if line["bench"] != "worker: SHA-256" {
            continue;
        }
        let column = match line["unit"].as_str() {
            Some("constraints a core-second") => "constraints_per_core_second",
            Some("constraints a CPU-second") => "constraints_per_cpu_second",
            _ => continue,
        };
        let found = |peer: &str, title: &str, column: &str, value: &Value| Found {
            peer: peer.to_owned(),
            title: title.to_owned(),
            cores: line["threads"].to_string(),
            size: format!("{} constraints", line["size"]),
            column: column.to_owned(),
            value: value.to_string(),
            note: String::new(),
        };
        let rival = line["rival"].as_str().unwrap_or(title);
        all.push(found(name, rival, column, &line["theirs"]));
        all.push(found("hekaton", "Hekaton, a worker's part", column, &line["ours"]));
        all.push(found(name, rival, &format!("ratio_{column}"), &line["ratio"]));
    }
    if all.is_empty() {
        all.push(Found::skipped(name, title, "the benchmark printed no line"));
    }
    Ok(all)
}

/// Runs a command; returns its output, or the reason why there is none.
fn output(session: &Session, command: &mut Command) -> Result<String, String> {
    let out = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let file = out.reopen().map_err(|e| e.to_string())?;
    command.stdin(Stdio::null()).stdout(file);
    let ended = super::process::watch(command, &session.stop, None).map_err(|e| e.message)?;
    if !ended.status.success() {
        return Err(format!("ended with {}", ended.status));
    }
    std::fs::read_to_string(out.path()).map_err(|e| e.to_string())
}

fn source(peer: &Peer, directory: &Path) -> Result<PathBuf, String> {
    let variable = peer.source_variable.as_deref();
    let path = match (&peer.source, variable.and_then(std::env::var_os), variable) {
        (_, Some(path), _) => PathBuf::from(path),
        (Some(beside), _, _) => directory.join(beside),
        (None, None, Some(name)) => return Err(format!("no source: set {name} to its directory")),
        (None, None, None) => return Err("the file names no source".into()),
    };
    match path.is_dir() {
        true => Ok(path),
        false => Err(format!("no source in {}", path.display())),
    }
}

/// Builds and runs a peer; a peer that cannot be run is one line that says why.
fn run(session: &Session, peer: &Peer, directory: &Path) -> Vec<Found> {
    let found = Built::new(session, peer, directory).and_then(|built| built.all());
    found.unwrap_or_else(|why| vec![Found::skipped(&peer.name, &peer.title, &why)])
}

/// A peer that is ready to run.
struct Built<'a> {
    session: &'a Session,
    peer: &'a Peer,
    source: PathBuf,
    /// The directory of its own files.
    out: PathBuf,
    /// The circuit that `hekaton` proves in alternation with it, and the program for that.
    own: Option<(&'a Own, Program)>,
}

impl<'a> Built<'a> {
    fn new(session: &'a Session, peer: &'a Peer, directory: &Path) -> Result<Self, String> {
        for program in &peer.requires {
            if first_line("sh", &["-c", &format!("command -v {program}")]).is_none() {
                return Err(format!("{program} is not installed"));
            }
        }
        let source = source(peer, directory)?;
        let out = session.work.join(format!("peer-{}", peer.name));
        std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
        let mut built = Self { session, peer, source, out, own: None };
        output(session, &mut built.shell(&peer.build, 1, 1))
            .map_err(|why| format!("the build {why}"))?;
        if let Some(own) = &peer.hekaton {
            built.own = Some((own, session.program().map_err(|e| e.message)?));
        }
        Ok(built)
    }

    /// A command of the peer's file.
    fn shell(&self, text: &str, cores: usize, subcircuits: usize) -> Command {
        let script = text
            .replace("{out}", &self.out.to_string_lossy())
            .replace("{cores}", &cores.to_string())
            .replace("{subcircuits}", &subcircuits.to_string());
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).current_dir(&self.source);
        command
    }

    /// Measures all sizes on all numbers of cores that this machine has.
    fn all(&self) -> Result<Vec<Found>, String> {
        let most = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut all = Vec::new();
        for &cores in self.peer.cores.iter().filter(|cores| **cores <= most) {
            for index in 0..self.peer.subcircuits.len() {
                all.extend(self.medians(cores, index)?);
            }
        }
        Ok(all)
    }

    /// The medians of all columns for an entry of `subcircuits`.
    fn medians(&self, cores: usize, index: usize) -> Result<Vec<Found>, String> {
        let (peer, subcircuits) = (self.peer, self.peer.subcircuits[index]);
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for repetition in 0..peer.repetitions.max(1) {
            let (line, own) = self.pair(repetition, cores, index)?;
            for (column, field) in &peer.columns {
                let value = line[field]
                    .as_f64()
                    .ok_or_else(|| format!("a run printed no field {field:?}"))?;
                values.entry(column.clone()).or_default().push(value);
                let rate = own.and_then(|own| own_rate(column, subcircuits, cores, own));
                if let Some(rate) = rate {
                    values.entry(format!("hekaton_{column}")).or_default().push(rate);
                    values.entry(format!("ratio_{column}")).or_default().push(rate / value);
                }
            }
        }
        let found = values.into_iter().filter_map(|(column, values)| {
            let median = super::statistics::Summary::of(&values)?.median;
            Some(Found {
                peer: peer.name.clone(),
                title: format!("{} {}", peer.title, peer.version),
                cores: cores.to_string(),
                size: format!("{subcircuits} {}", peer.sizes.as_deref().unwrap_or("subcircuits")),
                column,
                value: median.to_string(),
                note: String::new(),
            })
        });
        Ok(found.collect())
    }

    /// One repetition: the line that the peer printed, and the times of `hekaton`.
    fn pair(
        &self,
        repetition: usize,
        cores: usize,
        index: usize,
    ) -> Result<(Value, Option<[f64; 2]>), String> {
        let theirs = || self.theirs(cores, self.peer.subcircuits[index]);
        let ours = || self.ours(cores, index);
        // In alternating order, so that a drift of the machine is in no ratio.
        let (theirs, ours) = if repetition.is_multiple_of(2) {
            let theirs = theirs();
            (theirs, ours())
        } else {
            let ours = ours();
            (theirs(), ours)
        };
        theirs.and_then(|line| Ok((line, ours?)))
    }

    fn theirs(&self, cores: usize, subcircuits: usize) -> Result<Value, String> {
        let mut command = self.shell(&self.peer.run, cores, subcircuits);
        let text = output(self.session, &mut command).map_err(|why| format!("a run {why}"))?;
        let line = text.lines().rev().find_map(|l| serde_json::from_str(l).ok());
        line.ok_or_else(|| "a run printed no JSON".to_owned())
    }

    fn ours(&self, cores: usize, index: usize) -> Result<Option<[f64; 2]>, String> {
        let Some((own, program)) = &self.own else { return Ok(None) };
        let point = own.point(&self.peer.name, index, cores)?;
        prove(self.session, program, &point).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_per_core_and_per_cpu_second() {
        let rate = |column: &str| own_rate(column, 8, 2, [4.0, 5.0]);
        assert_eq!(rate("blocks_per_core_second"), Some(1.0));
        assert_eq!(rate("blocks_per_cpu_second"), Some(1.6));
        assert_eq!(rate("seconds"), None);
    }

    #[test]
    fn the_committed_peers_are_valid() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../paper-results/peers");
        let all = files::entries(&directory).unwrap_or_else(|e| panic!("{}", e.message));
        let tomls = all.iter().filter(|path| path.extension().is_some_and(|e| e == "toml"));
        let peers: Vec<Peer> = tomls
            .map(|path| files::read_toml(path).unwrap_or_else(|e| panic!("{}", e.message)))
            .collect();
        assert_eq!(
            peers.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
            ["gnark", "hekaton-system"]
        );
        assert!(source(&peers[0], &directory).is_ok());
        if std::env::var_os("HEKATON_SYSTEM_SOURCE").is_none() {
            let why = source(&peers[1], &directory).unwrap_err();
            assert_eq!(why, "no source: set HEKATON_SYSTEM_SOURCE to its directory");
        }
        let own = peers[0].hekaton.as_ref().unwrap();
        for (index, blocks) in peers[0].subcircuits.iter().enumerate() {
            let point = own.point("gnark", index, 1).unwrap();
            let [leaves, bytes] = ["leaves", "leaf-bytes"].map(|name| point.parameters[name]);
            // Nine bytes of padding and length; an inner node hashes two digests, which is two blocks.
            let each = (bytes + 9).div_ceil(64);
            assert_eq!(leaves * each + 2 * (leaves - 1), *blocks as u64);
        }
        assert!(own.point("gnark", peers[0].subcircuits.len(), 1).is_err());
        let pinned = std::fs::read_to_string(directory.join("gnark/go.mod")).unwrap();
        assert!(pinned.contains(&format!("github.com/consensys/gnark v{}\n", peers[0].version)));
    }
}
