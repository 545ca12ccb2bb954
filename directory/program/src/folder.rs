//! The folder of a directory: its parameters, its key, its database, and what is being proven.

use crate::failure::OrFailure;
use crate::options::DirectoryInit;
use ed25519_dalek::SigningKey;
use hekaton_directory::{Parameters, SIGNED_LENGTH, SignedRecord};
use hekaton_directory_http::ParametersFile;
use hekaton_directory_prover::{CIRCUIT, EpochKeys};
use hekaton_directory_server::{
    Error, MAX_STEPS_OF_ONE, Options, Outside, Server, fjall_opener, leave_head, read_head,
};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The largest file of parameters or of a key that is read.
const LIMIT: u64 = 1 << 16;

/// The folder of a directory.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) parameters: Parameters,
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
pub(crate) fn is_there(path: &Path) -> Result<bool, Failure> {
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
pub(crate) fn quiet() -> Options {
    Options { interval: None, ..Options::default() }
}

/// Reads the parameters of a directory.
pub(crate) fn read_parameters(path: &Path) -> Result<Parameters, Failure> {
    let bytes = exit::read_at_most(path, LIMIT)?;
    let read = ParametersFile::read(&bytes).and_then(|file| file.parameters());
    read.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)
}

impl Folder {
    /// Reads the files of a folder other than the database.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
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
    pub(crate) fn inner_head(&self) -> PathBuf {
        self.database().join("head")
    }

    /// The file of the head outside of the folder.
    pub(crate) fn head(&self) -> Option<&Path> {
        self.settings.head.as_deref()
    }

    /// The place of a head outside of the folder, from the command line.
    pub(crate) fn outside_path(&self, path: &Path) -> Result<PathBuf, Failure> {
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
    pub(crate) fn check_head(&self, next: &Path) -> Result<(), Failure> {
        let Some(path) = self.head().filter(|path| *path != next) else { return Ok(()) };
        match is_there(path)? && !is_left(path, next) {
            true => self.open(quiet())?.close().or_fail(exit::FAILED),
            false => Ok(()),
        }
    }

    /// Keeps the place of the head outside of the folder, and says so in the one that it had: backups still name that.
    pub(crate) fn keep_head(&mut self, path: PathBuf) -> Result<(), Failure> {
        match self.settings.head.replace(path.clone()) {
            Some(from) if from == path => return Ok(()),
            // Before the settings are written: if that does not happen, `is_left` recognizes the
            // old file.
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
    pub(crate) fn seen(&self, path: &Path) -> Result<SignedRecord, Failure> {
        let seen = exit::read_at_most(path, SIGNED_LENGTH as u64)?;
        let seen = SignedRecord::decode(&seen).map_err(|e| e.to_string()).and_then(|seen| {
            seen.verify(&self.parameters).map(|_| seen).map_err(|e| e.to_string())
        });
        seen.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)
    }

    /// Opens the database, with the head outside of the folder if there is one. Epochs are never larger than what can be proven.
    pub(crate) fn open(&self, options: Options) -> Result<Server, Failure> {
        let outside = Outside { head: self.settings.head.clone(), ..Outside::default() };
        self.open_outside(options, &outside)
    }

    /// Opens the database with what is known of it from elsewhere.
    pub(crate) fn open_outside(
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
    pub(crate) fn open_to_read(&self) -> Result<Server, Failure> {
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
    pub(crate) fn proving(&self) -> PathBuf {
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
        // Whoever reads this key can sign a second record of any epoch.
        if mode & 0o077 != 0 {
            return Err(wrong("others may read this secret key; chmod 600 it"));
        }
    }
    let digits = std::str::from_utf8(&bytes).ok().map(str::trim);
    let decoded = digits.and_then(|digits| hex::decode(digits).ok()?.try_into().ok());
    let secret: [u8; 32] =
        decoded.ok_or_else(|| wrong("is no key: expected 64 hexadecimal digits"))?;
    Ok(SigningKey::from_bytes(&secret))
}

/// Returns the number of steps that there is room for in a proof, which must be enough for each update.
fn room(keys: &EpochKeys) -> Result<usize, Failure> {
    let max_steps = keys.room();
    // An update that fits into no proof would keep all epochs after it from being proven.
    if max_steps < MAX_STEPS_OF_ONE {
        let why = format!(
            "{}: there is room for {max_steps} steps in a proof, and one update takes up to {MAX_STEPS_OF_ONE}; \
             `hekaton setup {CIRCUIT} --up-to {MAX_STEPS_OF_ONE}` or more makes keys that do",
            keys.path().display()
        );
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    Ok(max_steps)
}

pub(crate) fn init(command: &DirectoryInit, json: bool) -> Result<(), Failure> {
    let keys = EpochKeys::open(&command.keys, command.accept_test_keys).or_failure()?;
    let (profile, digest, max_steps) = (keys.profile(), keys.digest(), room(&keys)?);
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
    // On the disk before a record is signed with it: otherwise a crash leaves a directory that
    // nobody can continue.
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
        keys.trust(),
        folder.head().map_or(NOWHERE.into(), |head| head.display().to_string()),
    );
    let object = json!({
        "ok": true, "folder": path, "parameters": file, "digest": hex::encode(parameters.digest()),
        "trust": keys.trust(), "head": folder.head(),
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
    // Never over another key, without which its directory could not sign any further record.
    options.write(true).create_new(true);
    #[cfg(unix)]
    // From the start: before a later change of the mode, another user could open the file.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{}", hex::encode(key))?;
    file.sync_all()
}

/// The description of a directory without a head outside of its folder.
pub(crate) const NOWHERE: &str = "only in the folder: an older copy of the folder would not be found out (hekaton directory head)";

/// Writes the head to another place, from where the directory is now, and keeps that place with the folder.
pub(crate) fn start_head(
    folder: &mut Folder,
    path: &Path,
    seen: Option<&Path>,
) -> Result<(), Failure> {
    let path = folder.outside_path(path)?;
    folder.check_head(&path)?;
    let record = seen.map(|path| folder.seen(path)).transpose()?;
    let outside = Outside { head: Some(path.clone()), start: true, seen: record };
    folder.open_outside(quiet(), &outside)?.close().or_fail(exit::FAILED)?;
    folder.keep_head(path)
}
