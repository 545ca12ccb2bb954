//! Downloads of transcripts.

use super::client::{Client, NoAnswer};
use crate::common::{check_expected, failed, open};
use hekaton_ceremony::{Chain, MOST_GENESIS, MOST_LOG, NamedFile, Transcript};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use std::path::Path;

/// The number of times that a download begins again because the ceremony has advanced meanwhile.
const ATTEMPTS: usize = 5;

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
    for folder in ["sections", "fixed"] {
        let path = directory.join(folder);
        std::fs::create_dir_all(&path)
            .map_err(|e| format!("{}: {e}", path.display()))
            .or_fail(exit::BAD_FILE)?;
    }
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
                fresh(client, directory, "final.json", 1 << 20, true)?;
            }
            return Ok(transcript);
        }
        display.line("somebody has contributed meanwhile: reading the records again");
    }
    let why = "the ceremony advances faster than it can be downloaded: try again";
    Err(Failure::new(exit::FAILED, why))
}

/// Downloads genesis and logs.
pub(crate) fn records(
    client: &Client,
    directory: &Path,
    expect: Option<[u8; 32]>,
) -> Result<Transcript, Failure> {
    fresh(client, directory, "genesis", MOST_GENESIS, false)?;
    let genesis = directory.join("genesis");
    let bytes = hekaton_files::read_at_most(&genesis, MOST_GENESIS).or_fail(exit::BAD_FILE)?;
    let genesis = hekaton_ceremony::Genesis::from_bytes(&bytes)
        .map_err(|e| format!("{}: its genesis: {e}", client.address()))
        .or_fail(exit::BAD_FILE)?;
    check_expected(&genesis.digest(), expect)?;
    for chain in genesis.chains() {
        fresh(client, directory, &format!("{chain}.log"), MOST_LOG, false)?;
    }
    open(directory)
}

/// Downloads a file that may have changed since the last time.
fn fresh(
    client: &Client,
    directory: &Path,
    name: &str,
    most: u64,
    optional: bool,
) -> Result<(), Failure> {
    let (path, part) = (directory.join(name), directory.join(format!("{name}.part")));
    let got = client.patiently(|client| {
        match std::fs::remove_file(&part) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(NoAnswer::File(format!("{}: {e}", part.display())));
            }
            _ => {}
        }
        client.download(name, &part, most, &mut |_| {})
    });
    match got {
        Err(why) if optional && why.is(404) => {
            let _ = std::fs::remove_file(&part);
            Ok(())
        }
        Err(why) => Err(why.into()),
        Ok(()) => std::fs::rename(&part, &path)
            .map_err(|e| format!("{}: {e}", path.display()))
            .or_fail(exit::BAD_FILE),
    }
}

/// Downloads a file that is named by its digest, and checks it. Returns `false` if the service no longer has it.
fn named_file(
    client: &Client,
    directory: &Path,
    file: &NamedFile,
    display: &Display,
) -> Result<bool, Failure> {
    let path = directory.join(&file.name);
    if path.exists() {
        return Ok(true);
    }
    let part = directory.join(format!("{}.part", file.name));
    let on_disk =
        |e: std::io::Error| Failure::new(exit::BAD_FILE, format!("{}: {e}", part.display()));
    for _ in 0..2 {
        display.line(&format!("downloading {}", file.name));
        let mut said = 0;
        let mut came = |bytes: u64| {
            let tenth = bytes * 10 / file.most.max(1);
            if tenth > said {
                said = tenth;
                display.line(&format!(
                    "  {} of at most {}",
                    output::bytes(bytes),
                    output::bytes(file.most)
                ));
            }
        };
        match client.patiently(|client| client.download(&file.name, &part, file.most, &mut came)) {
            Err(why) if why.is(404) => return Ok(false),
            other => other?,
        }
        let mut hasher = blake3::Hasher::new();
        let opened = std::fs::File::open(&part).map_err(on_disk)?;
        hasher.update_reader(opened).map_err(on_disk)?;
        if *hasher.finalize().as_bytes() == file.digest {
            std::fs::rename(&part, &path).map_err(on_disk)?;
            hekaton_files::sync_folder_of(&path).map_err(on_disk)?;
            return Ok(true);
        }
        std::fs::remove_file(&part).map_err(on_disk)?;
    }
    let why = format!("{}: {} does not have this digest", client.address(), file.name);
    Err(Failure::new(exit::BAD_FILE, why))
}

/// Removes sections that the transcript no longer names.
fn remove_others(directory: &Path, files: &[NamedFile]) {
    let folder = directory.join("sections");
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = format!("sections/{}", entry.file_name().to_string_lossy());
        if files.iter().all(|file| file.name != name) {
            // What cannot be removed takes space, and does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The check of all records, as a failure.
pub(crate) fn check(transcript: &Transcript) -> Result<(), Failure> {
    transcript.check().map(drop).map_err(|e| failed(&e))
}
