//! The folder of a directory: its parameters, its key, its database, and what is being proven.

use crate::exit::{self, Failure, OrFail};
use crate::family::OpenedFamily;
use crate::options::DirectoryInit;
use crate::terminal::output;
use ed25519_dalek::SigningKey;
use hekaton_core::Trust;
use hekaton_directory::{Parameters, Profile, SIGNED_LENGTH, SignedRecord};
use hekaton_directory_http::ParametersFile;
use hekaton_directory_server::{
    Error, MAX_STEPS_OF_ONE, Options, Outside, Server, fjall_opener, leave_head, read_head,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The largest file of parameters or of a key that is read.
const LIMIT: u64 = 1 << 16;

/// The circuit whose keys prove epochs.
pub(super) const CIRCUIT: &str = "epochs";

/// The folder of a directory.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) parameters: Parameters,
    key: SigningKey,
    settings: Settings,
}

/// The other settings that are fixed when a directory is made.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The version of this format.
    format: u32,
    /// The most steps of an epoch: what a proof under the keys has room for.
    max_steps: usize,
    /// The file of the head outside of the folder, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<PathBuf>,
}

/// The version of the format of [`Settings`].
const FORMAT: u32 = 1;

/// Reports whether there is something at a path, a link to nothing included. If that cannot be found out, nothing is done.
pub(super) fn is_there(path: &Path) -> Result<bool, Failure> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            let why = format!("cannot find out whether {} is there: {error}", path.display());
            Err(Failure::new(exit::BAD_FILE, why))
        }
    }
}

/// Options with which updates that wait are left alone.
pub(super) fn quiet() -> Options {
    Options { interval: None, ..Options::default() }
}

/// Reads the parameters of a directory.
pub(super) fn read_parameters(path: &Path) -> Result<Parameters, Failure> {
    let bytes = exit::read_at_most(path, LIMIT)?;
    let read = ParametersFile::read(&bytes).and_then(|file| file.parameters());
    read.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)
}

impl Folder {
    /// Reads the files of a folder other than the database.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let parameters = path.join("parameters.json");
        if !parameters.exists() {
            let why = "has no directory; `hekaton directory init` makes one";
            return Err(Failure::new(exit::BAD_FILE, format!("{} {why}", path.display())));
        }
        let parameters = read_parameters(&parameters)?;
        let key = read_key(&path.join("signing.key"))?;
        let file = path.join("settings.json");
        let settings: Settings = serde_json::from_slice(&exit::read_at_most(&file, LIMIT)?)
            .map_err(|e| format!("{}: {e}", file.display()))
            .or_fail(exit::BAD_FILE)?;
        if settings.format != FORMAT {
            let (path, found) = (file.display(), settings.format);
            let why = format!(
                "{path}: its format has version {found}, but this program reads version {FORMAT}"
            );
            return Err(Failure::new(exit::BAD_FILE, why));
        }
        Ok(Self { path: path.to_owned(), parameters, key, settings })
    }

    fn database(&self) -> PathBuf {
        self.path.join("data")
    }

    /// The head in the folder.
    pub(super) fn inner_head(&self) -> PathBuf {
        self.database().join("head")
    }

    /// The file of the head outside of the folder.
    pub(super) fn head(&self) -> Option<&Path> {
        self.settings.head.as_deref()
    }

    /// The place of a head outside of the folder, from the command line.
    pub(super) fn outside_path(&self, path: &Path) -> Result<PathBuf, Failure> {
        let refuse = |why: String| Failure::new(exit::USAGE, format!("{}: {why}", path.display()));
        let absolute = std::path::absolute(path).map_err(|e| refuse(e.to_string()))?;
        let parent = absolute.parent().unwrap_or(&absolute);
        let real =
            parent.canonicalize().map_err(|e| refuse(format!("{}: {e}", parent.display())))?;
        for inside in [&self.path, &self.database()] {
            // A new directory has no database yet.
            if is_there(inside)?
                && real.starts_with(inside.canonicalize().map_err(|e| refuse(e.to_string()))?)
            {
                let why = "it is in the folder, with which it would be restored: choose a place outside, on another disk";
                return Err(refuse(why.into()));
            }
        }
        if absolute.is_symlink() {
            let why = "is a symbolic link, which the next head would replace: give the file that it names";
            return Err(refuse(why.into()));
        }
        if absolute.is_dir() {
            return Err(refuse("is a directory, expected a file".into()));
        }
        Ok(absolute)
    }

    /// Checks that the folder still has everything that the head names: an older copy must not take its place.
    pub(super) fn check_head(&self, next: &Path) -> Result<(), Failure> {
        let Some(path) = self.head().filter(|path| *path != next) else { return Ok(()) };
        match is_there(path)? && !is_left(path, next) {
            true => self.open(quiet())?.close().or_fail(exit::FAILED),
            false => Ok(()),
        }
    }

    /// Keeps the place of the head outside of the folder, and says so in the one that it had: backups still name that.
    pub(super) fn keep_head(&mut self, path: PathBuf) -> Result<(), Failure> {
        match self.settings.head.replace(path.clone()) {
            Some(from) if from == path => return Ok(()),
            Some(from) if is_there(&from)? => leave_head(&from, &path).or_fail(exit::BAD_FILE)?,
            _ => {}
        }
        self.write_settings()
    }

    fn write_settings(&self) -> Result<(), Failure> {
        let settings = serde_json::to_vec_pretty(&self.settings).or_fail(exit::FAILED)?;
        output::write(&self.path.join("settings.json"), &settings)
    }

    /// Reads a record that a client keeps.
    pub(super) fn seen(&self, path: &Path) -> Result<SignedRecord, Failure> {
        let seen = exit::read_at_most(path, SIGNED_LENGTH as u64)?;
        let seen = SignedRecord::decode(&seen).map_err(|e| e.to_string()).and_then(|seen| {
            seen.verify(&self.parameters).map(|_| seen).map_err(|e| e.to_string())
        });
        seen.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)
    }

    /// Opens the database, with the head outside of the folder if there is one. Epochs are never larger than what can be proven.
    pub(super) fn open(&self, options: Options) -> Result<Server, Failure> {
        let outside = Outside { head: self.settings.head.clone(), ..Outside::default() };
        self.open_outside(options, &outside)
    }

    /// Opens the database with what is known of it from elsewhere.
    pub(super) fn open_outside(
        &self,
        options: Options,
        outside: &Outside,
    ) -> Result<Server, Failure> {
        let options = Options { max_steps: self.settings.max_steps, ..options };
        let (folder, parameters) = (self.database(), &self.parameters);
        let opener = fjall_opener(&folder, options.cache);
        let opened = Server::open_outside(&folder, parameters, &self.key, options, opener, outside);
        opened.map_err(|error| self.cannot_open(&error))
    }

    /// Opens the database to be read. A folder from a backup can be read, too.
    pub(super) fn open_to_read(&self) -> Result<Server, Failure> {
        let (folder, parameters) = (self.database(), &self.parameters);
        let opened = Server::read(&folder, parameters, &self.key, quiet());
        opened.map_err(|error| self.cannot_open(&error))
    }

    fn cannot_open(&self, error: &Error) -> Failure {
        let path = self.path.display();
        let hint = match error {
            Error::Locked(_) => "; while it is served, give the address of its service".into(),
            Error::NoOutsideHead(head) => format!(
                "; `hekaton directory head {path} {}` starts a new one from this database",
                head.display()
            ),
            Error::HeadLeft { to, .. } => format!(
                "; if this is the newest copy of the folder, `hekaton directory head {path} {}` continues there",
                to.display()
            ),
            _ => String::new(),
        };
        Failure::new(exit::BAD_FILE, format!("{path}: {error}{hint}"))
    }

    /// Returns the folder in which proofs are made.
    pub(super) fn proving(&self) -> PathBuf {
        self.path.join("proving")
    }
}

/// Reports whether a file of a head was left for another one, and the settings were not written then, or is only a link to it.
fn is_left(path: &Path, next: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let is_link = path.is_symlink() && real(path).is_some_and(|file| real(next) == Some(file));
    is_link || matches!(read_head(path), Err(Error::HeadLeft { to, .. }) if to == next)
}

fn read_key(path: &Path) -> Result<SigningKey, Failure> {
    let wrong = |why: &str| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
    let bytes = exit::read_at_most(path, LIMIT)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).map(|data| data.permissions().mode()).unwrap_or(0);
        if mode & 0o077 != 0 {
            return Err(wrong("others may read this secret key; chmod 600 it"));
        }
    }
    let digits = std::str::from_utf8(&bytes).ok().map(str::trim);
    let key = digits.and_then(|digits| hex::decode(digits).ok()?.try_into().ok());
    let key: [u8; 32] = key.ok_or_else(|| wrong("is no key: expected 64 hexadecimal digits"))?;
    Ok(SigningKey::from_bytes(&key))
}

/// Refuses keys that prove nothing.
pub(super) fn check_trust(family: &OpenedFamily, accept_test_keys: bool) -> Result<(), Failure> {
    let statement = Trust::InsecureSeed.statement();
    if family.manifest.trust == statement && !accept_test_keys {
        let why = format!(
            "{}: {statement}; a proof under these keys proves nothing",
            family.path.display()
        );
        return Err(Failure::new(exit::REFUSED, why));
    }
    Ok(())
}

/// The profile that keys of epochs are for.
pub(super) fn profile_of(family: &OpenedFamily) -> Result<Profile, Failure> {
    let wrong = |why: String| {
        let why = format!(
            "{}: {why}; `hekaton setup {CIRCUIT} --up-to SIZE` makes keys of epochs",
            family.path.display()
        );
        Failure::new(exit::BAD_FILE, why)
    };
    if family.manifest.circuit != CIRCUIT {
        return Err(wrong(format!("its keys are for circuit '{}'", family.manifest.circuit)));
    }
    let name = family.manifest.parameters["profile"].as_str().unwrap_or_default();
    let profile = Profile::ALL.into_iter().find(|profile| profile.name() == name);
    profile.ok_or_else(|| wrong(format!("its profile is '{name}'")))
}

/// The steps of a subcircuit under keys of epochs.
pub(super) fn steps_of(family: &OpenedFamily) -> Result<usize, Failure> {
    let steps = family.manifest.parameters["steps"].as_u64().and_then(|n| n.try_into().ok());
    let steps = steps.filter(|steps| *steps > 0);
    steps
        .ok_or_else(|| {
            format!("{}: the keys do not say the number of steps", family.path.display())
        })
        .or_fail(exit::BAD_FILE)
}

/// The most subcircuits with steps that there are keys for.
pub(super) fn most_subcircuits(family: &OpenedFamily) -> usize {
    family.manifest.max_instances.saturating_sub(1)
}

/// The most steps of a proof.
fn room(family: &OpenedFamily) -> Result<usize, Failure> {
    Ok(steps_of(family)?.saturating_mul(most_subcircuits(family)))
}

pub(super) fn init(command: &DirectoryInit, json: bool) -> Result<(), Failure> {
    let family = OpenedFamily::open(&command.keys)?;
    let profile = profile_of(&family)?;
    check_trust(&family, command.accept_test_keys)?;
    let digest = family.digest()?;
    let max_steps = room(&family)?;
    if max_steps < MAX_STEPS_OF_ONE {
        let why = format!(
            "{}: there is room for {max_steps} steps in a proof, and one update takes up to {MAX_STEPS_OF_ONE}; \
             `hekaton setup {CIRCUIT} --up-to {MAX_STEPS_OF_ONE}` or more makes keys that do",
            family.path.display()
        );
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).or_fail(exit::FAILED)?;
    let key = SigningKey::from_bytes(&secret);
    let parameters = Parameters { profile, server: key.verifying_key(), proofs: digest };
    let path = &command.folder;
    let failed = |what: &str, e: &dyn std::fmt::Display| {
        Failure::new(exit::BAD_FILE, format!("cannot {what} {}: {e}", path.display()))
    };
    if std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
        let why = "is not empty: a new directory needs a folder that is new or empty";
        return Err(Failure::new(exit::BAD_FILE, format!("{} {why}", path.display())));
    }
    make_private(path).map_err(|e| failed("make", &e))?;
    let settings = Settings { format: FORMAT, max_steps, head: None };
    let mut folder = Folder { path: path.clone(), parameters, key, settings };
    if let Some(head) = &command.head {
        // Before anything is made: a head that is there may be of a directory that is.
        let head = folder.outside_path(head)?;
        if is_there(&head)? {
            let why = "exists: a new directory needs a new head";
            return Err(Failure::new(exit::BAD_FILE, format!("{} {why}", head.display())));
        }
    }
    write_key(&path.join("signing.key"), &secret).map_err(|e| failed("write a key to", &e))?;
    Server::create(&folder.database(), &parameters, &folder.key, command.levels)
        .or_fail(exit::FAILED)?;
    folder.write_settings()?;
    if let Some(head) = &command.head {
        start_head(&mut folder, head, None)?;
    }
    // With it, the folder has a directory.
    let file = ParametersFile::of(&parameters);
    output::write(&path.join("parameters.json"), &file.bytes())?;
    let lines = format!(
        "a directory with profile {} in {}; an epoch has at most {} steps, and an update about 13\nparameters: {}, with digest {}\n  clients must have them from \
         somebody they trust, not from the server that they check\nsigning key: {}; who has it can sign records\n\
         keys of proofs: {}\n  {}\nhead: {}",
        profile.name(),
        path.display(),
        output::count(max_steps as u64),
        path.join("parameters.json").display(),
        hex::encode(parameters.digest()),
        path.join("signing.key").display(),
        hex::encode(digest),
        family.manifest.trust,
        folder.head().map_or(NOWHERE.into(), |head| head.display().to_string()),
    );
    let object = json!({
        "ok": true, "folder": path, "parameters": file, "digest": hex::encode(parameters.digest()),
        "trust": family.manifest.trust, "head": folder.head(),
    });
    output::result(json, &object, &lines)
}

/// Makes a folder that only its owner may enter: labels, values and salts are in it.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    // One that was there and empty, too.
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Writes a key that only its owner may read.
fn write_key(path: &Path, key: &[u8; 32]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{}", hex::encode(key))?;
    file.sync_all()
}

/// The description of a directory without a head outside of its folder.
pub(super) const NOWHERE: &str = "only in the folder: an older copy of the folder would not be found out (hekaton directory head)";

/// Writes the head to another place, from where the directory is now, and keeps that place with the folder.
pub(super) fn start_head(
    folder: &mut Folder,
    path: &Path,
    seen: Option<&Path>,
) -> Result<(), Failure> {
    let path = folder.outside_path(path)?;
    folder.check_head(&path)?;
    let seen = seen.map(|path| folder.seen(path)).transpose()?;
    let outside = Outside { head: Some(path.clone()), start: true, seen };
    folder.open_outside(quiet(), &outside)?.close().or_fail(exit::FAILED)?;
    folder.keep_head(path)
}
