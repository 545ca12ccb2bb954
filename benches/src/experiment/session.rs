//! The session that every command needs: experiments, program, and the result set.

use super::arguments::Places;
use super::environment::Environment;
use super::failure::{At, Failure, USAGE};
use super::files;
use super::process::Stop;
use super::program::Program;
use super::spec::{self, Experiment};
use std::fs;
use std::path::{Path, PathBuf};

/// Experiments and the result set.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) directory: PathBuf,
    pub(crate) results: PathBuf,
    pub(crate) work: PathBuf,
    pub(crate) scale: String,
    pub(crate) launcher: Vec<String>,
    pub(crate) hekaton: PathBuf,
    pub(crate) experiments: Vec<Experiment>,
    pub(crate) stop: Stop,
}

impl Session {
    /// Reads all experiments, and checks the paper's data.
    pub(crate) fn open(places: &Places) -> Result<Self, Failure> {
        let directory = &places.directory;
        if !directory.is_dir() {
            let why = "not a directory: start this program in the checkout, or pass --directory";
            return Err(Failure::new(USAGE, format!("{}: {why}", directory.display())));
        }
        files::check_paper_data(&directory.join("paper-data"))?;
        let experiments = spec::read_all(&directory.join("experiments"))?;
        for experiment in &experiments {
            for name in &experiment.paper {
                let path = directory.join("paper-data").join(name);
                fs::metadata(&path).at(&path)?;
            }
        }
        let results = match &places.results {
            Some(results) => results.clone(),
            None => {
                let name = places.name.clone().map_or_else(host, Ok)?;
                result_set(&directory.join("results"), &name)?
            }
        };
        Ok(Self {
            directory: directory.clone(),
            results,
            work: std::path::absolute(&places.work).at(&places.work)?,
            scale: places.scale.clone(),
            launcher: places.launcher.split_whitespace().map(str::to_owned).collect(),
            hekaton: places.hekaton.clone(),
            experiments,
            stop: Stop::listen()?,
        })
    }

    /// The program to measure.
    pub(crate) fn program(&self) -> Result<Program, Failure> {
        Program::open(&self.hekaton)
    }

    /// The experiments of these names, or all.
    pub(crate) fn chosen(&self, names: &[String]) -> Result<Vec<&Experiment>, Failure> {
        for name in names {
            if !self.experiments.iter().any(|e| e.name == *name) {
                let known: Vec<&str> = self.experiments.iter().map(|e| e.name.as_str()).collect();
                let why = format!("no experiment {name:?}; known: {}", known.join(", "));
                return Err(Failure::new(USAGE, why));
            }
        }
        let chosen = |e: &&Experiment| names.is_empty() || names.contains(&e.name);
        Ok(self.experiments.iter().filter(chosen).collect())
    }

    /// Returns the reason why an experiment cannot be run by this program at this scale.
    pub(crate) fn skips(&self, experiment: &Experiment, program: &Program) -> Option<&'static str> {
        let needs_mpi = experiment
            .points(&self.scale)
            .is_ok_and(|points| points.iter().any(|point| point.provers_per_rank.is_some()));
        program.lacks(experiment.circuit(), needs_mpi)
    }

    /// The environment of this machine and this program.
    pub(crate) fn environment(&self, program: &Program) -> Result<Environment, Failure> {
        fs::create_dir_all(&self.work).at(&self.work)?;
        Ok(Environment::capture(program, &self.directory, &self.work))
    }

    /// The file of the result set's environment.
    pub(crate) fn environment_file(&self) -> PathBuf {
        self.results.join("env.json")
    }
}

/// The latest result set of a machine, or the one of today.
fn result_set(directory: &Path, name: &str) -> Result<PathBuf, Failure> {
    let prefix = format!("{name}-");
    let is_date =
        |text: &str| text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let known = if directory.is_dir() { files::entries(directory)? } else { vec![] };
    let latest = known.into_iter().rfind(|path| {
        let name = path.file_name().and_then(|n| n.to_str());
        path.is_dir() && name.and_then(|name| name.strip_prefix(&prefix)).is_some_and(is_date)
    });
    Ok(latest.unwrap_or_else(|| directory.join(format!("{prefix}{}", files::today()))))
}

/// The host's name.
fn host() -> Result<String, Failure> {
    let path = Path::new("/proc/sys/kernel/hostname");
    let name = fs::read_to_string(path).map_err(|e| {
        Failure::new(USAGE, format!("cannot read the host's name ({e}): pass --name NAME"))
    })?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    Ok(name.trim().chars().map(plain).collect())
}
