//! The program `hekaton`, called as a process.

use super::failure::{FAILED, Failure, USAGE};
use super::files;
use super::process::{self, Stop};
use super::spec::Point;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program and what it can do.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// SHA-256 of the file.
    pub(crate) digest: String,
    circuits: Vec<String>,
    /// The findings of `hekaton doctor`, by name.
    pub(crate) findings: Vec<(String, String)>,
    mpi: bool,
}

impl Program {
    /// Asks the program for its circuits and for the machine.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let absolute = path.canonicalize().map_err(|e| {
            let why = "build it with `cargo build --release -p hekaton-paper --features mpi`, or pass \
                       --hekaton PATH";
            Failure::new(USAGE, format!("{}: {e}: {why}", path.display()))
        })?;
        let digest = files::digest_of(&absolute)?;
        let (circuits, findings) = (Vec::new(), Vec::new());
        let mut program = Self { path: absolute, digest, circuits, findings, mpi: false };
        let circuits = program.ask(["circuits", "--json"])?;
        // Without this error, a program that answers in another form would look like one without circuits, and all
        // experiments would be skipped.
        let no_list = |what: &str| Failure::new(FAILED, format!("hekaton {what} printed no list"));
        let list = circuits["circuits"].as_array().ok_or_else(|| no_list("circuits"))?;
        program.circuits =
            list.iter().filter_map(|c| Some(c["name"].as_str()?.to_owned())).collect();
        // `doctor` fails if something is bad, for example without MPI, and still prints all findings.
        let doctor = program.output(["doctor", "--json"])?;
        for finding in doctor["findings"].as_array().ok_or_else(|| no_list("doctor"))? {
            if finding["what"] == "program" {
                program.mpi = finding["state"] != "BAD";
            }
            let both = finding["what"].as_str().zip(finding["found"].as_str());
            let (what, found) = both.ok_or_else(|| no_list("doctor"))?;
            program.findings.push((what.to_owned(), found.to_owned()));
        }
        Ok(program)
    }

    /// Returns the reason why a point cannot be run by this program.
    pub(crate) fn lacks(&self, circuit: &str, needs_mpi: bool) -> Option<&'static str> {
        if !self.circuits.iter().any(|name| name == circuit) {
            return Some("no circuit yet");
        }
        (needs_mpi && !self.mpi).then_some("the program was built without MPI (--features mpi)")
    }

    /// Returns a finding of `hekaton doctor`.
    pub(crate) fn finding(&self, what: &str) -> Option<&str> {
        self.findings.iter().find(|(name, _)| name == what).map(|(_, found)| found.as_str())
    }

    fn output<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Value, Failure> {
        let mut command = Command::new(&self.path);
        command.args(arguments).stdin(Stdio::null());
        let shown = format!("{command:?}");
        let output = command
            .output()
            .map_err(|e| Failure::new(FAILED, format!("cannot run {shown}: {e}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        // A command that prints its findings and then fails prints a second object.
        let line = text.lines().next().unwrap_or("");
        serde_json::from_str(line).map_err(|_| {
            let errors = String::from_utf8_lossy(&output.stderr);
            let said = errors.trim().lines().last().unwrap_or("nothing");
            Failure::new(FAILED, format!("{shown} ({}) printed no JSON: {said}", output.status))
        })
    }

    /// Runs a command and returns the JSON object that it prints.
    ///
    /// # Errors
    /// If the object says that the command failed.
    pub(crate) fn ask<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Value, Failure> {
        let all: Vec<A> = arguments.into_iter().collect();
        let words: Vec<String> =
            all.iter().map(|a| a.as_ref().to_string_lossy().into_owned()).collect();
        let answer = self.output(all)?;
        match answer["ok"] == true {
            true => Ok(answer),
            false => {
                let why = answer["error"].as_str().unwrap_or("no error message").to_owned();
                Err(Failure::new(FAILED, format!("hekaton {}: {why}", words.join(" "))))
            }
        }
    }

    /// Returns the requirements of a point, before its keys exist.
    pub(crate) fn estimate(&self, point: &Point) -> Result<Value, Failure> {
        let mut arguments = vec!["estimate".to_owned(), point.circuit.clone()];
        arguments.extend(point.arguments()?);
        let threads = point.provers_per_rank.unwrap_or(point.cores);
        if point.provers_per_rank.is_some() {
            arguments.extend(["--ranks".into(), point.ranks().to_string()]);
            arguments.extend(["--provers-per-rank".into(), threads.to_string()]);
        } else {
            arguments.extend(["--threads".into(), threads.to_string()]);
        }
        arguments.push("--json".into());
        self.ask(arguments)
    }

    /// Runs a command to its end with standard output and error in files.
    pub(crate) fn run(
        &self,
        command: &mut Command,
        output: &Path,
        log: &Path,
        stop: &Stop,
        pid_file: Option<&Path>,
    ) -> Result<process::Ended, Failure> {
        let out = File::create(output).map_err(|e| Failure::file(output, e))?;
        let opened = File::options().create(true).append(true).open(log);
        let errors = opened.map_err(|e| Failure::file(log, e))?;
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        process::watch(command, stop, pid_file)
    }

    /// The command of one process, or of all ranks.
    pub(crate) fn prove(&self, point: &Point, launcher: &[String]) -> Command {
        let Some(provers) = point.provers_per_rank else {
            let mut command = Command::new(&self.path);
            command.args(["prove", "--threads", &point.cores.to_string()]);
            return command;
        };
        let fill = |word: &String| {
            word.replace("{ranks}", &point.processes().to_string())
                .replace("{provers}", &provers.to_string())
        };
        let mut words = launcher.iter().map(fill);
        let mut command = Command::new(words.next().unwrap_or_else(|| "mpirun".into()));
        command.args(words).arg(&self.path);
        command.args(["prove", "--mpi", "--provers-per-rank", &provers.to_string()]);
        command.args(["--schedule", point.schedule.name()]);
        command.args(["--root-proves", if point.root_proves { "yes" } else { "no" }]);
        command
    }
}
