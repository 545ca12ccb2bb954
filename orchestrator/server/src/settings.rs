//! The operator's settings: a file that is checked before anything starts.

use crate::backend::{Backend, Command, Exits, Hekaton, Helper, Slurm};
use crate::standstill::PATIENCE;
use hekaton_orchestrator_client::{Digest, Name};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The version of settings files.
const VERSION: u32 = 1;

/// The settings of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// 1.
    pub version: u32,
    /// The number of tasks that run at the same time.
    #[serde(default = "one")]
    pub slots: usize,
    /// The number of seconds without any event after which a block that is not published stands still.
    #[serde(default = "standstill")]
    pub standstill_seconds: u32,
    /// The number of days after which what has ended may be removed, if anything is to be removed.
    #[serde(default)]
    pub keep_days: Option<u32>,
    /// The back-ends that run tasks, by the names that workflows have for them.
    #[serde(default)]
    pub backends: BTreeMap<Name, BackendSettings>,
    /// The tenants, who may submit. Without any, everybody who can connect is the tenant `default`.
    #[serde(default)]
    pub tenants: BTreeMap<Name, Tenant>,
}

/// A back-end that runs tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum BackendSettings {
    /// `hekaton prove` on this machine.
    Hekaton {
        /// The key store or key family.
        keys: PathBuf,
        /// The program.
        #[serde(default = "hekaton")]
        program: PathBuf,
        /// More options of `hekaton prove`.
        #[serde(default)]
        options: Vec<String>,
    },
    /// `hekaton prove` as a job of SLURM.
    Slurm {
        /// The key store or key family, on a file system that all machines share.
        keys: PathBuf,
        /// The batch script, such as `slurm/prove.sbatch`.
        script: PathBuf,
        /// The program, which all machines have at this path.
        #[serde(default = "hekaton")]
        program: PathBuf,
        /// More options of `hekaton prove`.
        #[serde(default)]
        options: Vec<String>,
        /// The interval between SLURM queries about a job, in seconds.
        #[serde(default = "poll")]
        poll_seconds: u32,
        /// The time for which a job whose submission was not answered is looked for, in seconds.
        #[serde(default = "doubt")]
        doubt_seconds: u32,
    },
    /// Any program.
    Command {
        /// The program and its arguments, with `{input}`, `{inputs}`, `{output}` and `{folder}`.
        command: Vec<String>,
        /// A program that exits with 0 if the output is right and with 1 if it is wrong.
        #[serde(default)]
        verify: Option<Vec<String>>,
        /// `true` if the output is to count unverified. Only without `verify`.
        #[serde(default)]
        unverified: bool,
        /// The meanings of exit codes.
        #[serde(default)]
        exits: Exits,
        /// The address space that an attempt may have, in bytes.
        #[serde(default)]
        memory_bytes: Option<u64>,
    },
}

/// A tenant: the token and the limits of a client that may submit jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// The BLAKE3 digest of the token that requests must carry; the token itself is nowhere stored.
    pub token_digest: Digest,
    /// The number of jobs that may be open at the same time.
    #[serde(default = "jobs")]
    pub jobs: usize,
    /// The maximum number of chains, including chains of bundles.
    #[serde(default = "chains")]
    pub chains: usize,
    /// The number of tasks that may run at the same time in each process.
    #[serde(default)]
    pub slots: Option<usize>,
    /// The largest blob, in bytes.
    #[serde(default = "blob")]
    pub blob_bytes: u64,
    /// The number of bytes of new blobs that may be sent per day: all at once, and from then on at an even rate. Each service
    /// counts for itself, from its start on.
    #[serde(default)]
    pub bytes_per_day: Option<u64>,
    /// The number of jobs that may be submitted per second, on average.
    #[serde(default = "rate")]
    pub jobs_per_second: u32,
    /// The share of the slots, relative to the shares of other tenants.
    #[serde(default = "weight")]
    pub weight: u32,
}

impl Tenant {
    /// Returns the tenant of everybody who can connect, where the settings name none.
    pub(crate) fn anybody() -> Self {
        Self {
            token_digest: Digest::of(b""),
            jobs: jobs(),
            chains: chains(),
            slots: None,
            blob_bytes: blob(),
            bytes_per_day: None,
            // Clients without a token connect over the machine's loopback interface: the limit guards only against accidents.
            jobs_per_second: 10_000,
            weight: weight(),
        }
    }
}

fn standstill() -> u32 {
    u32::try_from(PATIENCE.as_secs()).expect("the patience is some minutes")
}
fn one() -> usize {
    1
}
fn hekaton() -> PathBuf {
    "hekaton".into()
}
fn poll() -> u32 {
    2
}
fn doubt() -> u32 {
    60
}
fn jobs() -> usize {
    10_000
}
fn chains() -> usize {
    1_000
}
fn blob() -> u64 {
    1 << 30
}
fn rate() -> u32 {
    100
}
fn weight() -> u32 {
    1
}

/// An error in the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The file is not a settings file.
    #[error("{}: {why}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The error, and where it is.
        why: String,
    },
    /// A value is invalid.
    #[error("{place}: {why}")]
    Bad {
        /// The setting.
        place: String,
        /// The error, and what would be right.
        why: String,
    },
}

impl Default for Settings {
    fn default() -> Self {
        let (backends, tenants) = (BTreeMap::new(), BTreeMap::new());
        Self {
            version: VERSION,
            slots: one(),
            standstill_seconds: standstill(),
            keep_days: None,
            backends,
            tenants,
        }
    }
}

impl Settings {
    /// Reads a TOML file and checks it. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| SettingsError::Io { path: path.to_owned(), error })?;
        let parsed = toml::from_str(&text);
        let mut settings: Self = parsed.map_err(|error| SettingsError::Parse {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for backend in settings.backends.values_mut() {
            let resolve = |program: &mut String| {
                // A name alone is looked for in PATH.
                if program.contains('/') {
                    let path = folder.join(&*program);
                    *program = std::path::absolute(&path).unwrap_or(path).display().to_string();
                }
            };
            match backend {
                BackendSettings::Hekaton { keys, program, .. }
                | BackendSettings::Slurm { keys, program, .. } => {
                    *keys = folder.join(&*keys);
                    let mut text = program.display().to_string();
                    resolve(&mut text);
                    *program = text.into();
                    if let BackendSettings::Slurm { script, .. } = backend {
                        *script = folder.join(&*script);
                    }
                }
                BackendSettings::Command { command, verify, .. } => {
                    command.first_mut().into_iter().for_each(resolve);
                    verify.iter_mut().flat_map(|verify| verify.first_mut()).for_each(resolve);
                }
            }
        }
        settings.check()?;
        Ok(settings)
    }

    /// Checks what comes from a file or the command line.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.version != VERSION {
            let why = format!("expected version {VERSION}, found version {}", self.version);
            return Err(bad("version".into(), &why));
        }
        // Each running program has a thread and several files.
        if self.slots > 4_096 {
            return Err(bad("slots".into(), "there can be at most 4,096"));
        }
        if self.standstill_seconds == 0 {
            return Err(bad("standstill_seconds".into(), "it must be above 0"));
        }
        if self.keep_days == Some(0) {
            return Err(bad(
                "keep_days".into(),
                "it must be above 0; without it, everything is kept",
            ));
        }
        for (name, backend) in &self.backends {
            check_backend(format!("backends.{name}"), backend)?;
        }
        let mut digests = BTreeSet::new();
        for (name, tenant) in &self.tenants {
            let place = format!("tenants.{name}");
            // A token names its tenant, so two with the same one could not be told apart.
            if !digests.insert(tenant.token_digest) {
                return Err(bad(place, "another tenant has the same token"));
            }
            check_tenant(place, tenant)?;
        }
        Ok(())
    }

    /// The back-ends, ready to be used.
    pub(crate) fn backends(&self, helper: &Helper) -> BTreeMap<Name, Arc<dyn Backend>> {
        let made = self.backends.iter().map(|(name, backend)| {
            let helper = helper.clone();
            let backend: Arc<dyn Backend> = match backend.clone() {
                BackendSettings::Hekaton { keys, program, options } => {
                    Arc::new(Hekaton { program, keys: absolute(keys), options, helper })
                }
                BackendSettings::Slurm {
                    keys,
                    script,
                    program,
                    options,
                    poll_seconds,
                    doubt_seconds,
                } => Arc::new(Slurm {
                    hekaton: Hekaton { program, keys: absolute(keys), options, helper },
                    script: absolute(script),
                    poll: Duration::from_secs(poll_seconds.into()),
                    doubt: Duration::from_secs(doubt_seconds.into()),
                }),
                BackendSettings::Command {
                    command, verify, exits, memory_bytes: memory, ..
                } => Arc::new(Command { command, verify, exits, memory, helper }),
            };
            (name.clone(), backend)
        });
        made.collect()
    }
}

fn bad(place: String, why: &str) -> SettingsError {
    SettingsError::Bad { place, why: why.into() }
}

/// Checks a back-end: its files, and that its programs are there.
fn check_backend(place: String, backend: &BackendSettings) -> Result<(), SettingsError> {
    match backend {
        BackendSettings::Hekaton { keys, .. } | BackendSettings::Slurm { keys, .. }
            if !keys.is_dir() =>
        {
            let why =
                format!("there are no keys in {}; `hekaton setup` makes some", keys.display());
            return Err(bad(place, &why));
        }
        BackendSettings::Slurm { script, .. } if !script.is_file() => {
            let why = format!("there is no batch script {}", script.display());
            return Err(bad(place, &why));
        }
        BackendSettings::Slurm { poll_seconds: 0, .. } => {
            return Err(bad(place, "'poll_seconds' must be above 0"));
        }
        BackendSettings::Command { verify, unverified, .. } if verify.is_some() == *unverified => {
            let why = "name a program in 'verify', or set 'unverified = true'";
            return Err(bad(place, why));
        }
        BackendSettings::Command { command, verify, .. } => {
            if command.is_empty() || verify.as_ref().is_some_and(Vec::is_empty) {
                return Err(bad(place, "a command must name at least a program"));
            }
            if !command.iter().any(|part| part.contains("{output}")) {
                return Err(bad(
                    place,
                    "the command must have an argument with {output}, the path to write to",
                ));
            }
        }
        BackendSettings::Hekaton { .. } | BackendSettings::Slurm { .. } => {}
    }
    let programs = match backend {
        BackendSettings::Hekaton { program, .. } => vec![program.as_path()],
        BackendSettings::Slurm { program, .. } => {
            // Not `sacct`: clusters without accounting do not have it.
            let ours = ["sbatch", "squeue", "scancel"].map(Path::new);
            [&[program.as_path()], &ours[..]].concat()
        }
        BackendSettings::Command { command, verify, .. } => {
            let first = [command.first(), verify.as_ref().and_then(|verify| verify.first())];
            first.into_iter().flatten().map(Path::new).collect()
        }
    };
    if let Some(missing) = programs.into_iter().find(|program| !is_there(program)) {
        let why =
            format!("there is no program '{}', neither as a file nor in PATH", missing.display());
        return Err(bad(place, &why));
    }
    Ok(())
}

/// Checks a tenant's token and limits.
fn check_tenant(place: String, tenant: &Tenant) -> Result<(), SettingsError> {
    // An empty file for a token is a mistake that would let in every request with an empty one.
    if tenant.token_digest == Digest::of(b"") {
        return Err(bad(place, "the digest is that of an empty token"));
    }
    if tenant.weight == 0 || tenant.weight > 1_000 {
        return Err(bad(place, "'weight' must be 1 to 1,000"));
    }
    let none = [Some(tenant.jobs), Some(tenant.chains), tenant.slots].contains(&Some(0));
    if tenant.jobs_per_second == 0 || none {
        return Err(bad(place, "limits must be above 0"));
    }
    // The bucket never holds more than a day, so such a blob could never be sent.
    if tenant.bytes_per_day.is_some_and(|bytes| bytes < tenant.blob_bytes) {
        return Err(bad(place, "'bytes_per_day' must allow a blob of 'blob_bytes'"));
    }
    Ok(())
}

/// Makes a path absolute, because programs run in folders of their own.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Reports whether a program is a file or, if it is a name alone, in `PATH`.
fn is_there(program: &Path) -> bool {
    if program.components().count() > 1 {
        return program.is_file();
    }
    // Without PATH, no program is found by its name alone.
    std::env::var_os("PATH").is_some_and(|folders| {
        std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Settings::read(&path).map_err(|error| error.to_string())
        };
        std::fs::create_dir(folder.path().join("keys")).unwrap();
        let good = "version = 1\nslots = 3\n[backends.prove]\nkind = \"hekaton\"\nprogram = \"sh\"\nkeys = \"keys\"\n";
        assert_eq!(read(good).unwrap().slots, 3);
        let token = Digest::of(b"secret");
        let tenant = |name: &str, rest: &str| {
            format!("[tenants.{name}]\ntoken_digest = \"{token}\"\n{rest}\n")
        };
        for (text, why) in [
            ("version = 2".to_owned(), "found version 2"),
            ("version = 1\nslot = 1".into(), "unknown field `slot`"),
            ("version = 1\nslots = 5000".into(), "4,096"),
            ("version = 1\nkeep_days = 0".into(), "everything is kept"),
            (good.replace("\"keys\"", "\"none\""), "there are no keys in"),
            (good.replace("\"sh\"", "\"./sh\""), "there is no program"),
            (
                "version = 1\n[backends.b]\nkind = \"command\"\ncommand = []\nunverified = true".into(),
                "at least a program",
            ),
            ("version = 1\n[backends.b]\nkind = \"command\"\ncommand = [\"a\"]\nunverified = true".into(), "{output}"),
            ("version = 1\n[backends.b]\nkind = \"command\"\ncommand = [\"a\", \"{output}\"]".into(), "'unverified = true'"),
            (format!("version = 1\n{}{}", tenant("a", ""), tenant("b", "")), "same token"),
            (format!("version = 1\n{}", tenant("a", "weight = 0")), "'weight'"),
            (format!("version = 1\n{}", tenant("a", "slots = 0")), "above 0"),
        ] {
            let found = read(&text).unwrap_err();
            assert!(found.contains(why), "{found}\nand not: {why}");
        }
    }
}
