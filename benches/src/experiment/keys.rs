//! Inputs and keys, generated once per circuit and parameters.

use super::failure::{At, FAILED, Failure};
use super::files;
use super::process::Stop;
use super::program::Program;
use super::spec::Point;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An input with its keys and public values.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    directory: PathBuf,
    /// The public values as `hekaton hash` prints them.
    pub(crate) public: String,
    /// The answer that `hekaton setup` printed.
    pub(crate) setup: Value,
}

impl Case {
    /// The input file.
    pub(crate) fn input(&self) -> PathBuf {
        self.directory.join("input")
    }

    /// The key store.
    pub(crate) fn keys(&self) -> PathBuf {
        self.directory.join("keys")
    }

    /// The small verifying key.
    pub(crate) fn verifying_key(&self) -> PathBuf {
        self.keys().join("verifying.key")
    }
}

/// Returns the folder of the keys of a point. Keys belong to the code, so a new build has new ones.
fn directory(program: &Program, point: &Point, work: &Path) -> PathBuf {
    let Point { circuit, parameters, options, input, .. } = point;
    let text = format!("{} {circuit} {parameters:?} {options:?} {input:?}", program.digest);
    work.join(format!("{}-{}", point.circuit, &files::digest(text.as_bytes())[..16]))
}

/// Reports whether the keys of a point exist.
pub(crate) fn exist(program: &Program, point: &Point, work: &Path) -> bool {
    directory(program, point, work).is_dir()
}

/// Opens the keys of a point, and generates them first if they are missing. They have a private
/// name until they are complete, so that several array elements may do this at once.
pub(crate) fn prepare(
    program: &Program,
    point: &Point,
    work: &Path,
    stop: &Stop,
) -> Result<Case, Failure> {
    let complete = directory(program, point, work);
    if !complete.is_dir() {
        fs::create_dir_all(work).at(work)?;
        let own = complete.with_extension(format!("unfinished-{}", std::process::id()));
        let generated = generate(program, point, &own, stop);
        if let Err(e) = generated {
            let _ = fs::remove_dir_all(&own);
            return Err(e);
        }
        if let Err(e) = fs::rename(&own, &complete) {
            let _ = fs::remove_dir_all(&own);
            // Another process was faster; its keys are just as good.
            if !complete.is_dir() {
                return Err(Failure::file(&complete, e));
            }
        }
    }
    let public = complete.join("public");
    Ok(Case {
        public: fs::read_to_string(&public).at(&public)?,
        setup: files::read_json(&complete.join("setup.json"))?,
        directory: complete,
    })
}

fn generate(program: &Program, point: &Point, own: &Path, stop: &Stop) -> Result<(), Failure> {
    let _ = fs::remove_dir_all(own);
    fs::create_dir_all(own).at(own)?;
    let (input, keys) = (own.join("input"), own.join("keys"));
    fs::write(&input, point.input_bytes()?).at(&input)?;
    let (output, log) = (own.join("setup.json"), own.join("log"));
    let mut command = Command::new(&program.path);
    command.args(["setup", &point.circuit]).args(point.arguments()?);
    command.arg("--keys").arg(&keys).arg("--json");
    let ended = program.run(&mut command, &output, &log, stop, None)?;
    if !ended.status.success() {
        let text = fs::read_to_string(&log).at(&log)?;
        let said = text.trim().lines().last().unwrap_or("nothing");
        let why = format!("setup of {} ended with {}: {said}", point.id, ended.status);
        return Err(Failure::new(FAILED, why));
    }
    let mut arguments = vec!["hash".as_ref(), input.as_os_str(), "--keys".as_ref()];
    arguments.extend([keys.as_os_str(), "--json".as_ref()]);
    let hash = program.ask(arguments)?;
    let public = hash["public"].as_str().ok_or_else(|| {
        Failure::new(FAILED, format!("hash of {} printed no public values", point.id))
    })?;
    let path = own.join("public");
    fs::write(&path, public).at(&path)
}
