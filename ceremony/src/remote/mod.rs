//! The commands with a service: `contribute`, `fetch`, `send` and `status`.

mod client;
mod download;
mod folder;

use crate::body::{PIECE, SlotBody, SlotRequest};
use crate::common::{chains_of, failed, in_the_way, on_interrupt};
use crate::contribute::{ask, check_name, compute, remove_unfinished, write_receipt};
use crate::options::{Contribute, Fetch, Send};
use client::{Client, NoAnswer};
use download::Wanted;
use folder::Folder;
use hekaton_ceremony::{Genesis, Response, Transcript, check_receipt};
use hekaton_files::read_at_most;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time between two questions for the state of a slot.
const MOST_WAIT: u64 = 60;

pub(crate) fn status(url: &str, json: bool) -> Result<(), Failure> {
    let client = Client::new(url)?;
    let status = client.status()?;
    let chains: String = (status.chains.iter())
        .map(|end| format!("  chain {:<4} {} records, head {}\n", end.chain, end.records, end.head))
        .collect();
    let lines = format!(
        "{}\nceremony: {}\n{chains}{}, {}; {} working, {} waiting; {} for each",
        status.title,
        status.ceremony,
        if status.finished { "finished" } else { "open" },
        if status.invited { "by invitation" } else { "to everybody" },
        status.active,
        status.waiting,
        output::seconds(Duration::from_secs(status.deadline)),
    );
    output::result(json, &json!({ "ok": true, "service": status }), &lines)
}

pub(crate) fn fetch(command: &Fetch, json: bool) -> Result<(), Failure> {
    let client = Client::new(&command.ceremony)?;
    if command.directory {
        let transcript =
            download::transcript(&client, &command.out, command.expect, Wanted::Everything)?;
        let digest = hex::encode(transcript.genesis.digest());
        let lines = format!("ceremony {digest} in {}, not checked yet", command.out.display());
        let object = json!({ "ok": true, "directory": command.out, "ceremony": digest });
        return output::result(json, &object, &lines);
    }
    if command.out.exists() {
        return Err(in_the_way(&command.out));
    }
    let parent = hekaton_files::folder_of(&command.out);
    let place = tempfile::Builder::new().prefix(".hekaton-ceremony-").tempdir_in(parent);
    let place = place.map_err(|e| format!("{}: {e}", parent.display())).or_fail(exit::BAD_FILE)?;
    let path = place.path().to_owned();
    on_interrupt(
        move || path.exists() && std::fs::remove_dir_all(&path).is_ok(),
        "interrupted: nothing was written",
        json,
    )?;
    let transcript = download::transcript(&client, place.path(), command.expect, Wanted::State)?;
    transcript.write_state(&command.out).map_err(|e| failed(&e))?;
    crate::files::fetched(&command.out, &transcript.genesis.digest(), json)
}

/// `contribute` with a service.
pub(crate) fn contribute(command: &Contribute, json: bool) -> Result<(), Failure> {
    check_name(&command.name)?;
    let client = Client::new(&command.ceremony)?;
    let status = client.patiently(Client::status)?;
    if status.ceremony.len() != 64 || hex::decode(&status.ceremony).is_err() {
        let why = format!("{}: names no ceremony", client.address());
        return Err(Failure::new(exit::FAILED, why));
    }
    if let Some(expected) = command.expect.map(hex::encode).filter(|e| *e != status.ceremony) {
        let why = format!("this is ceremony {}, but --expect requires {expected}", status.ceremony);
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let default = || PathBuf::from(format!("ceremony-{}", &status.ceremony[..16]));
    let path = command.out.clone().unwrap_or_else(default);
    let genesis = genesis_of(&client, &status.ceremony)?;
    let chains = chains_of(&genesis, &command.only)?;
    let folder = Folder::open(&path, client.address(), &status.ceremony, &command.name, &chains)?;
    let contribution = folder.contribution();
    on_interrupt(
        move || {
            remove_unfinished(&contribution);
            true
        },
        "interrupted: the same command goes on",
        json,
    )?;
    Remote { client, folder, command, chains, json }.run(&genesis)
}

/// The genesis of a service.
fn genesis_of(client: &Client, ceremony: &str) -> Result<Genesis, Failure> {
    let place = tempfile::tempdir().or_fail(exit::FAILED)?;
    let mut expect = [0; 32];
    hex::decode_to_slice(ceremony, &mut expect).or_fail(exit::FAILED)?;
    Ok(download::records(client, place.path(), Some(expect))?.genesis)
}

/// A contribution by way of a service.
struct Remote<'a> {
    client: Client,
    folder: Folder,
    command: &'a Contribute,
    chains: Vec<hekaton_ceremony::Chain>,
    json: bool,
}

impl Remote<'_> {
    fn run(mut self, genesis: &Genesis) -> Result<(), Failure> {
        // A contribution of an earlier run may be in the transcript, whatever has become of its slot.
        if self.is_included(genesis)? {
            return self.report();
        }
        let mut slot = self.join()?;
        if matches!(slot, SlotBody::Expired | SlotBody::Refused { .. }) {
            output::say("the slot of the last run has ended: queueing again");
            self.folder.renew()?;
            slot = self.join()?;
        }
        loop {
            slot = match slot {
                SlotBody::Active { heads, seconds, received } => {
                    output::say(format_args!(
                        "it is your turn, for {}",
                        output::seconds(Duration::from_secs(seconds))
                    ));
                    self.take_turn(&heads, received)?
                }
                waiting => wait(&self.client, &self.folder.slot.token, waiting)?,
            };
            match slot {
                SlotBody::Accepted if self.is_included(genesis)? => return self.report(),
                SlotBody::Accepted => {
                    let why = "the service says that the contribution is accepted, but it is not in the records: ask the \
                               coordinator, and keep the folder";
                    return Err(Failure::new(exit::REFUSED, why));
                }
                SlotBody::Refused { why } => {
                    let _ = std::fs::remove_file(self.folder.contribution());
                    let why = format!("the contribution is refused: {why}");
                    return Err(Failure::new(exit::REFUSED, why));
                }
                SlotBody::Expired => {
                    let why = "the deadline has passed: run the same command to queue again";
                    return Err(Failure::new(exit::FAILED, why));
                }
                _ => {}
            }
        }
    }

    fn join(&self) -> Result<SlotBody, Failure> {
        let slot = &self.folder.slot;
        let request = SlotRequest {
            token: slot.token.clone(),
            name: slot.name.clone(),
            chains: slot.chains.clone(),
            invitation: self.command.invitation.clone(),
        };
        Ok(self.client.patiently(|client| client.join(&request))?)
    }

    /// Downloads, computes and uploads, or what of it is left to do.
    fn take_turn(
        &self,
        heads: &BTreeMap<String, String>,
        received: u64,
    ) -> Result<SlotBody, Failure> {
        let out = self.folder.contribution();
        let mut expect = [0; 32];
        hex::decode_to_slice(&self.folder.slot.ceremony, &mut expect).or_fail(exit::BAD_FILE)?;
        let (directory, wanted) = (self.folder.transcript(), Wanted::Chains(&self.chains));
        let transcript = download::transcript(&self.client, &directory, Some(expect), wanted)?;
        download::check(&transcript)?;
        let follows = out.exists() && follows(&out, &transcript.genesis, heads);
        if !follows {
            if out.exists() {
                output::say("others have contributed since the last run: computing again");
                std::fs::remove_file(&out).or_fail(exit::BAD_FILE)?;
            }
            // Of a run that was killed.
            remove_unfinished(&out);
            let text = ask(self.command, &transcript, &self.chains, &out)?;
            let records = compute(self.command, &transcript, &self.chains, &text, &out)?;
            write_receipt(self.command, &transcript, &records, &out)?;
        }
        // What was uploaded of another contribution is not continued.
        let received = if follows { received } else { 0 };
        Ok(upload(&self.client, &self.folder.slot.token, &out, received)?)
    }

    fn receipt(&self) -> PathBuf {
        self.folder.contribution().with_extension("receipt")
    }

    /// Reports whether the contribution of the folder is in the records of the service, after a check of all of them.
    fn is_included(&self, genesis: &Genesis) -> Result<bool, Failure> {
        let bytes = match read_at_most(&self.receipt(), 1 << 20) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            other => other.or_fail(exit::BAD_FILE)?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let place = tempfile::tempdir().or_fail(exit::FAILED)?;
        let transcript = download::records(&self.client, place.path(), Some(genesis.digest()))?;
        download::check(&transcript)?;
        Ok(check_receipt(&text, &[&transcript]).is_ok())
    }

    fn report(&self) -> Result<(), Failure> {
        self.folder.tidy();
        let path = self.receipt();
        let receipt = read_at_most(&path, 1 << 20).or_fail(exit::BAD_FILE)?;
        let receipt = String::from_utf8_lossy(&receipt);
        let slot = &self.folder.slot;
        let object = json!({
            "ok": true, "ceremony": slot.ceremony, "receipt": receipt, "receipt_file": path,
        });
        let lines = format!(
            "your contribution is in the transcript, and its secrets are wiped\n\
             Sign {} with a key by which people know you, and publish it:\n\n{receipt}",
            path.display(),
        );
        output::result(self.json, &object, lines.trim_end())
    }
}

/// Reports whether a file is a contribution to these heads.
fn follows(path: &Path, genesis: &Genesis, heads: &BTreeMap<String, String>) -> bool {
    let Ok(response) = Response::open(path, genesis) else { return false };
    let before = |record: &hekaton_ceremony::Record| {
        heads.get(&record.chain.to_string()) == Some(&hex::encode(record.before))
    };
    response.records.iter().all(before)
}

/// Waits for the next state of a slot.
fn wait(client: &Client, token: &str, slot: SlotBody) -> Result<SlotBody, Failure> {
    let seconds = match &slot {
        SlotBody::Waiting { before, ask_again } => {
            output::say(format_args!("waiting: {before} before you"));
            *ask_again
        }
        SlotBody::Verifying { ask_again, trouble } => {
            match trouble {
                Some(trouble) => output::say(format_args!("the contribution waits: {trouble}")),
                None => output::say("the contribution is being checked"),
            }
            *ask_again
        }
        _ => return Ok(slot),
    };
    let mut seconds = seconds.clamp(1, MOST_WAIT);
    loop {
        std::thread::sleep(Duration::from_secs(seconds));
        let next = client.patiently(|client| client.slot(token))?;
        match (&next, &slot) {
            // Silently, while nothing changes.
            (SlotBody::Verifying { .. }, SlotBody::Verifying { .. }) if next == slot => {
                seconds = (2 * seconds).min(10);
            }
            (SlotBody::Waiting { ask_again, .. }, _) if next == slot => {
                seconds = (*ask_again).clamp(1, MOST_WAIT);
            }
            _ => return Ok(next),
        }
    }
}

/// Uploads what the service does not have yet, and completes the upload.
fn upload(client: &Client, token: &str, path: &Path, received: u64) -> Result<SlotBody, NoAnswer> {
    let broken = |e: std::io::Error| NoAnswer::File(format!("{}: {e}", path.display()));
    let file = File::open(path).map_err(broken)?;
    let length = file.metadata().map_err(broken)?.len();
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&file).map_err(broken)?;
    let digest = hasher.finalize().to_hex().to_string();
    let mut at = received;
    let mut piece = vec![0; PIECE];
    loop {
        while at < length {
            let n = usize::try_from(length - at).map_or(PIECE, |left| left.min(PIECE));
            file.read_exact_at(&mut piece[..n], at).map_err(broken)?;
            let sent = client.patiently(|client| match client.piece(token, at, &piece[..n]) {
                // The answer to an earlier attempt was lost, or a part of a piece has arrived.
                Err(why) if why.is(409) => client.slot(token),
                other => other,
            })?;
            match sent {
                SlotBody::Active { received, .. } => at = received,
                other => return Ok(other),
            }
            output::say(format_args!(
                "uploaded {} of {}",
                output::bytes(at),
                output::bytes(length)
            ));
        }
        match client.patiently(|client| client.complete(token, digest.clone())) {
            Err(why) if why.is(422) => {
                output::say("the upload was damaged on its way: sending it again");
                at = 0;
            }
            other => return other,
        }
    }
}

/// `send`.
pub(crate) fn send(command: &Send, json: bool) -> Result<(), Failure> {
    let client = Client::new(&command.url)?;
    let status = client.patiently(Client::status)?;
    let genesis = genesis_of(&client, &status.ceremony)?;
    let response = Response::open(&command.contribution, &genesis).map_err(|e| failed(&e))?;
    let name = response.records[0].name.clone();
    let chains: Vec<_> = response.records.iter().map(|record| record.chain).collect();
    let request = SlotRequest {
        token: folder::new_token()?,
        name,
        chains: chains.iter().map(ToString::to_string).collect(),
        invitation: command.invitation.clone(),
    };
    let mut slot = client.patiently(|client| client.join(&request))?;
    loop {
        slot = match slot {
            SlotBody::Active { heads, .. } => {
                if !follows(&command.contribution, &genesis, &heads) {
                    let why = "others have contributed since the state was fetched: fetch it again, and contribute again";
                    return Err(Failure::new(exit::REFUSED, why));
                }
                upload(&client, &request.token, &command.contribution, 0)?
            }
            SlotBody::Accepted => break,
            SlotBody::Refused { why } => {
                return Err(Failure::new(
                    exit::REFUSED,
                    format!("the contribution is refused: {why}"),
                ));
            }
            SlotBody::Expired => {
                return Err(Failure::new(exit::FAILED, "the deadline has passed: send it again"));
            }
            waiting => wait(&client, &request.token, waiting)?,
        };
    }
    let place = tempfile::tempdir().or_fail(exit::FAILED)?;
    let transcript = download::records(&client, place.path(), Some(genesis.digest()))?;
    included(&transcript, &response)?;
    let lines = "the contribution is in the transcript: sign and publish its receipt";
    output::result(json, &json!({ "ok": true, "ceremony": status.ceremony }), lines)
}

/// Checks that the records of a contribution are in a transcript.
fn included(transcript: &Transcript, response: &Response) -> Result<(), Failure> {
    download::check(transcript)?;
    match response.records.iter().all(|record| transcript.records(record.chain).contains(record)) {
        true => Ok(()),
        false => {
            let why =
                "the service says that the contribution is accepted, but it is not in the records";
            Err(Failure::new(exit::REFUSED, why))
        }
    }
}
