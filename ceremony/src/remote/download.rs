//! Downloads of transcripts.

use super::client::{Client, NoAnswer};
use crate::common::check_expected;
use hekaton_ceremony::{Chain, Genesis, MOST_GENESIS, MOST_LOG, NamedFile, Response, Transcript};
use hekaton_files::{read_at_most, sync_folder_of};
use hekaton_terminal::ceremony::{failed, open};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The number of attempts at a download that has to restart because the ceremony has advanced meanwhile.
const ATTEMPTS: usize = 5;

/// The file that distinguishes a download from a coordinator's directory.
const MARK: &str = "download";
const MARKED: &[u8] = b"downloaded by hekaton-ceremony\n";

/// The part of a transcript that is downloaded, besides its genesis and logs.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// The current sections of some chains.
    Chains(&'a [Chain]),
    /// All sections.
    State,
    /// Everything that auditors need.
    Everything,
}

/// Downloads a transcript into a directory, which may have a part of it. Sections have the digests of the last records; the records
/// themselves are not checked.
pub(crate) fn transcript(
    client: &Client,
    directory: &Path,
    expect: Option<[u8; 32]>,
    wanted: Wanted<'_>,
) -> Result<Transcript, Failure> {
    begin(directory)?;
    let display = Display::new();
    for _ in 0..ATTEMPTS {
        let transcript = records(client, directory, expect)?;
        let all = transcript.genesis.chains();
        let files = match wanted {
            Wanted::Chains(chains) => transcript.named_files(chains, false),
            Wanted::State => transcript.named_files(&all, false),
            Wanted::Everything => transcript.named_files(&all, true),
        };
        let mut complete = true;
        for file in &files {
            complete = complete && named_file(client, directory, file, &display)?;
        }
        if complete {
            remove_others(directory, &files);
            if matches!(wanted, Wanted::Everything) {
                match fresh(client, directory, "final.json", 1 << 20) {
                    Err(why) if why.is(404) => {}
                    part => rename(&part?, &directory.join("final.json"))?,
                }
            }
            return Ok(transcript);
        }
        display.line("somebody has contributed in the meantime: reading the records again");
    }
    let why = "the ceremony advances faster than it can be downloaded: try again";
    Err(Failure::new(exit::FAILED, why))
}

/// Makes a directory, or continues in one that this program has made. A coordinator's own is not touched.
fn begin(directory: &Path) -> Result<(), Failure> {
    let mark = directory.join(MARK);
    let is_empty = match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(e) if e.kind() == ErrorKind::NotFound => true,
        Err(e) => return Err(on_disk(directory)(e)),
    };
    let is_marked = read_at_most(&mark, 1 << 10).is_ok_and(|found| found == MARKED);
    let is_own = ["lock", "incoming"].iter().any(|name| directory.join(name).exists());
    if !is_empty && (!is_marked || is_own) {
        let why = format!(
            "{}: is neither empty nor a download: choose another directory",
            directory.display()
        );
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    for folder in ["sections", "fixed"] {
        let path = directory.join(folder);
        std::fs::create_dir_all(&path).map_err(on_disk(&path))?;
    }
    std::fs::write(&mark, MARKED).map_err(on_disk(&mark))
}

/// Downloads genesis and logs.
pub(crate) fn records(
    client: &Client,
    directory: &Path,
    expect: Option<[u8; 32]>,
) -> Result<Transcript, Failure> {
    let genesis = genesis(client, directory, expect)?;
    for chain in genesis.chains() {
        let name = format!("{chain}.log");
        let part = fresh(client, directory, &name, MOST_LOG)?;
        rename(&part, &directory.join(name))?;
    }
    open(directory)
}

/// Downloads the genesis. An existing one of another ceremony is not replaced.
pub(crate) fn genesis(
    client: &Client,
    directory: &Path,
    expect: Option<[u8; 32]>,
) -> Result<Genesis, Failure> {
    let part = fresh(client, directory, "genesis", MOST_GENESIS)?;
    let bytes = read_at_most(&part, MOST_GENESIS).or_fail(exit::BAD_FILE)?;
    let genesis = Genesis::from_bytes(&bytes)
        .map_err(|e| format!("{}: its genesis: {e}", client.address()))
        .or_fail(exit::BAD_FILE)?;
    check_expected(&genesis.digest(), expect)?;
    let place = directory.join("genesis");
    match read_at_most(&place, MOST_GENESIS) {
        Ok(found) if found != bytes => {
            let why =
                format!("{}: is of another ceremony: choose another directory", place.display());
            return Err(Failure::new(exit::BAD_FILE, why));
        }
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(on_disk(&place)(e)),
        _ => {}
    }
    rename(&part, &place)?;
    Ok(genesis)
}

fn on_disk(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::new(exit::BAD_FILE, format!("{}: {error}", path.display()))
}

fn rename(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::rename(from, to).and_then(|()| sync_folder_of(to)).map_err(on_disk(to))
}

/// Downloads a file that may have changed since the last time, beside the one that is there.
fn fresh(client: &Client, directory: &Path, name: &str, most: u64) -> Result<PathBuf, NoAnswer> {
    let part = directory.join(format!("{name}.part"));
    match std::fs::remove_file(&part) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            return Err(NoAnswer::File(format!("{}: {e}", part.display())));
        }
        _ => {}
    }
    match client.download(name, &part, most, &mut |_| {}) {
        Ok(()) => Ok(part),
        Err(why) => {
            // Nothing was written, or a part that is of no use.
            let _ = std::fs::remove_file(&part);
            Err(why)
        }
    }
}

/// Reports whether a file has this digest; `false` if there is none.
fn has_digest(path: &Path, digest: &[u8; 32]) -> Result<bool, Failure> {
    let file = match std::fs::File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        other => other.map_err(on_disk(path))?,
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).map_err(on_disk(path))?;
    Ok(hasher.finalize().as_bytes() == digest)
}

/// Downloads a file that is named by its digest, and checks it. Returns `false` if the service no longer has it.
fn named_file(
    client: &Client,
    directory: &Path,
    file: &NamedFile,
    display: &Display,
) -> Result<bool, Failure> {
    let path = directory.join(&file.name);
    if has_digest(&path, &file.digest)? {
        return Ok(true);
    }
    let part = directory.join(format!("{}.part", file.name));
    for _ in 0..2 {
        display.line(&format!("downloading {}", file.name));
        let mut said = 0;
        let mut came = |bytes: u64| {
            let tenth = bytes * 10 / file.most.max(1);
            if tenth > said {
                said = tenth;
                let (bytes, most) = (output::bytes(bytes), output::bytes(file.most));
                display.line(&format!("  {bytes} of at most {most}"));
            }
        };
        match client.download(&file.name, &part, file.most, &mut came) {
            Err(why) if why.is(404) => return Ok(false),
            other => other?,
        }
        if has_digest(&part, &file.digest)? {
            rename(&part, &path)?;
            return Ok(true);
        }
        std::fs::remove_file(&part).map_err(on_disk(&part))?;
    }
    let why = format!("{}: {} does not have this digest", client.address(), file.name);
    Err(Failure::new(exit::BAD_FILE, why))
}

/// Removes sections that the transcript no longer names.
fn remove_others(directory: &Path, files: &[NamedFile]) {
    let folder = directory.join("sections");
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let digest = name.trim_end_matches(".part");
        let is_section = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_section && files.iter().all(|file| file.name != format!("sections/{name}")) {
            // A file that cannot be removed only takes space.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Checks all records, and turns an error into a failure of the command.
pub(crate) fn check(transcript: &Transcript) -> Result<(), Failure> {
    transcript.check().map(drop).map_err(|e| failed(&e))
}

/// The prefix of the names of temporary directories.
pub(super) const TEMPORARY: &str = ".hekaton-ceremony-";

/// A temporary directory, which is removed when it is dropped.
pub(crate) fn temporary(parent: &Path) -> Result<tempfile::TempDir, Failure> {
    let made = tempfile::Builder::new().prefix(TEMPORARY).tempdir_in(parent);
    made.map_err(|e| format!("{}: {e}", parent.display())).or_fail(exit::BAD_FILE)
}

/// Reports whether a contribution continues the chains of a transcript.
pub(crate) fn follows(transcript: &Transcript, response: &Response) -> bool {
    response.records.iter().all(|record| record.before == transcript.head(record.chain))
}

/// Reports whether the records of a contribution are in a transcript.
pub(crate) fn is_included(transcript: &Transcript, response: &Response) -> bool {
    response.records.iter().all(|record| transcript.records(record.chain).contains(record))
}
