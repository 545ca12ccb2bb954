//! Contributions on this machine.

use crate::common::{PROGRAM, chains_of, check_expected, in_the_way, on_interrupt};
use crate::options::Contribute;
use hekaton_ceremony::{
    Chain, Contributor, Genesis, Kind, MAX_NAME, Record, Seed, Transcript, bytes_of_chains,
    contribute, is_finished, is_name, points_of_chains, receipt, seconds_of_chains,
};
use hekaton_files::{folder_of, is_temporary};
use hekaton_terminal::ceremony::{on_threads, open};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use serde_json::json;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;
use zeroize::Zeroizing;

/// `contribute` with a directory or a state.
pub(crate) fn run(command: &Contribute, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    check_name(&command.name)?;
    let Some(out) = &command.out else {
        return Err(Failure::new(exit::USAGE, "--out is required: it names the file to write"));
    };
    if command.invitation.code()?.is_some() {
        return Err(Failure::new(exit::USAGE, "--invitation requires the address of a service"));
    }
    let transcript = open(Path::new(&command.ceremony))?;
    check_expected(&transcript.genesis.digest(), command.expect)?;
    if is_finished(&transcript) {
        let why = format!("{}: the ceremony is finished", command.ceremony);
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let chains = chains_of(&transcript.genesis, &command.only)?;
    if out.exists() {
        return Err(in_the_way(out));
    }
    let unfinished = out.clone();
    on_interrupt(move || remove_unfinished(&unfinished), "interrupted: nothing was written", json)?;
    let cost = Cost { genesis: &transcript.genesis, chains: &chains, times: 1 };
    let text = cost.ask(command, out)?;
    let records = compute(command, &transcript, &chains, &text, out)?;
    drop(text);
    let (file, receipt) = write_receipt(command, &transcript, &records, out)?;
    let object = json!({
        "ok": true, "contribution": out.display().to_string(),
        "ceremony": hex::encode(transcript.genesis.digest()), "receipt": receipt,
        "seconds": start.elapsed().as_secs_f64(),
    });
    let lines = format!(
        "contribution written to {} in {}; send it to the coordinator. The secrets are wiped.\n\
         Once it is accepted, sign {} with a key by which people know you, and publish it:\n\n{receipt}",
        out.display(),
        output::seconds(start.elapsed()),
        file.display(),
    );
    output::result(json, &object, lines.trim_end())
}

pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    match is_name(name) {
        true => Ok(()),
        false => {
            let why =
                format!("--name: expected 1 to {MAX_NAME} bytes without invisible characters");
            Err(Failure::new(exit::USAGE, why))
        }
    }
}

/// Removes the unfinished file of a contribution. Returns `false` if the contribution is there.
pub(crate) fn remove_unfinished(out: &Path) -> bool {
    let files = std::fs::read_dir(folder_of(out)).into_iter().flatten().flatten();
    let own = out.file_name().map(|name| format!("{}.", name.to_string_lossy()));
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let rest = own.as_ref().and_then(|own| name.strip_prefix(own));
        if rest.is_some_and(|rest| !rest.trim_end_matches(".part").contains('.'))
            && is_temporary(&name)
        {
            // If a file cannot be removed, this does no harm: it has products of secrets that are
            // never used, and no secret.
            let _ = std::fs::remove_file(file.path());
        }
    }
    !out.exists()
}

/// The cost of a contribution.
pub(crate) struct Cost<'a> {
    pub(crate) genesis: &'a Genesis,
    pub(crate) chains: &'a [Chain],
    /// The number of copies of the points for which the disk must have room: what is written, and what is downloaded.
    pub(crate) times: u64,
}

impl Cost<'_> {
    /// Prints the cost. On a terminal, asks for confirmation, and for a text that is mixed into the randomness.
    ///
    /// # Errors
    /// If there is not enough disk space, or the user declines.
    pub(crate) fn ask(
        &self,
        command: &Contribute,
        out: &Path,
    ) -> Result<Zeroizing<String>, Failure> {
        let Self { genesis, chains, times } = *self;
        // Before anything secret is typed or drawn.
        protect_memory();
        let bytes = bytes_of_chains(genesis, chains);
        let seconds = on_threads(&command.threads, || Ok(seconds_of_chains(genesis, chains)))?;
        output::say(format_args!(
            "ceremony {}: {}\n{} points in {}: about {} on this machine",
            hex::encode(genesis.digest()),
            genesis.title(),
            output::count(points_of_chains(genesis, chains) as u64),
            output::bytes(bytes),
            output::seconds_f64(seconds),
        ));
        let free = rustix::fs::statvfs(folder_of(out)).or_fail(exit::BAD_FILE)?;
        let free = free.f_bavail.saturating_mul(free.f_frsize);
        if free < times * bytes {
            let (bytes, free) = (output::bytes(times * bytes), output::bytes(free));
            let why = format!("{}: not enough space: {bytes} needed, {free} free", out.display());
            return Err(Failure::new(exit::FAILED, why));
        }
        let mut text = Zeroizing::new(String::new());
        if command.yes || !std::io::stdin().is_terminal() {
            return Ok(text);
        }
        output::say(
            "Type any text to mix into the randomness, then press Enter to begin; Ctrl-C cancels.",
        );
        let mut typed = Zeroizing::new(String::new());
        // The end of the input, Ctrl-D, is a refusal.
        if std::io::stdin().lock().read_line(&mut typed).or_fail(exit::FAILED)? == 0 {
            return Err(Failure::new(exit::INTERRUPTED, "nothing was written"));
        }
        text.push_str(typed.trim_end());
        Ok(text)
    }
}

/// Makes the contribution.
pub(crate) fn compute(
    command: &Contribute,
    transcript: &Transcript,
    chains: &[Chain],
    text: &str,
    out: &Path,
) -> Result<Vec<Record>, Failure> {
    protect_memory();
    let display = Display::new();
    let name = &command.name;
    let contributor = Contributor { name, program: PROGRAM, kind: Kind::Contribution, chains };
    // The seed is on the pool's stacks only, which are wiped.
    on_threads(&command.threads, || {
        let seed = Seed::draw(text)?;
        contribute(transcript, &contributor, seed, out, &mut |step| {
            display.line(&format!("multiplying {step}"));
        })
    })
}

/// Keeps the memory of this process from debuggers and core dumps, and warns of swap space.
fn protect_memory() {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let no_core = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if hidden.is_err() || no_core.is_err() {
        output::say(
            "warning: core dumps and debuggers of this user can read the secrets in memory",
        );
    }
    // The first line names the columns.
    let swaps = std::fs::read_to_string("/proc/swaps");
    if swaps.is_ok_and(|swaps| swaps.lines().count() > 1) {
        output::say(
            "warning: this machine has swap space, to which secrets in memory may be written; `swapoff -a` disables it",
        );
    }
}

/// Writes the receipt beside the contribution.
pub(crate) fn write_receipt(
    command: &Contribute,
    transcript: &Transcript,
    records: &[Record],
    out: &Path,
) -> Result<(PathBuf, String), Failure> {
    let records: Vec<&Record> = records.iter().collect();
    let receipt = receipt(&transcript.genesis, &command.name, PROGRAM, &records);
    let mut file = out.to_owned().into_os_string();
    file.push(".receipt");
    let file = PathBuf::from(file);
    output::write(&file, receipt.as_bytes())?;
    Ok((file, receipt))
}
