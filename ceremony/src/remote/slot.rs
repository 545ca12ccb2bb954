//! A contribution through a service: its turn, its upload and its verdict.

use super::client::{Client, NoAnswer, foreign};
use super::download::{self, Wanted, follows, temporary};
use super::folder::Folder;
use crate::body::{PIECE, SlotBody, SlotRequest};
use crate::contribute::{compute, remove_unfinished, write_receipt};
use crate::options::Contribute;
use hekaton_ceremony::{Chain, Genesis, Response, Transcript, check_receipt};
use hekaton_files::{folder_of, read_at_most};
use hekaton_terminal::ceremony::failed;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde_json::json;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time between two requests for the state of a slot, in seconds.
const MOST_WAIT: u64 = 60;
/// The most turns in a run, and the most uploads in a turn, so that a run against a misbehaving service ends.
pub(super) const MOST_ATTEMPTS: usize = 5;
/// The longest receipt.
const RECEIPT_LIMIT: u64 = 1 << 20;

/// A contribution through a service.
pub(super) struct Remote<'a> {
    pub(super) client: Client,
    pub(super) folder: Folder,
    pub(super) command: &'a Contribute,
    pub(super) invitation: Option<String>,
    pub(super) chains: Vec<Chain>,
    pub(super) genesis: Genesis,
    pub(super) json: bool,
}

impl Remote<'_> {
    /// Waits for the turn, and does everything up to the verdict. `text` is mixed into the randomness.
    pub(super) fn run(mut self, text: &str) -> Result<(), Failure> {
        let mut slot = self.join()?;
        if let SlotBody::Expired | SlotBody::Refused { .. } = &slot {
            match &slot {
                SlotBody::Refused { why } => {
                    let why = foreign(why);
                    output::say(format_args!(
                        "the contribution of the last run was refused: {why}"
                    ));
                    // It would be refused again.
                    let _ = std::fs::remove_file(self.folder.contribution());
                }
                _ => output::say("the deadline of the last run has passed"),
            }
            self.folder.renew()?;
            slot = self.join()?;
        }
        let mut turns = 0;
        loop {
            slot = match slot {
                SlotBody::Active { seconds, received, .. } if turns < MOST_ATTEMPTS => {
                    turns += 1;
                    let left = Duration::from_secs(seconds);
                    output::say(format_args!("it is your turn, for {}", output::seconds(left)));
                    self.take_turn(text, received)?
                }
                SlotBody::Active { .. } => {
                    let why = "the service accepts uploads but returns no verdict: ask its coordinator, and keep the folder";
                    return Err(Failure::new(exit::FAILED, why));
                }
                waiting => wait(&self.client, &self.folder.slot.token, waiting)?,
            };
            match slot {
                SlotBody::Accepted if self.is_included()? => return self.report(),
                SlotBody::Accepted => {
                    let why = "the service reports that the contribution was accepted, but the records do not contain it: ask the \
                               coordinator, and keep the folder";
                    return Err(Failure::new(exit::REFUSED, why));
                }
                SlotBody::Refused { why } => {
                    // It would be refused again.
                    let _ = std::fs::remove_file(self.folder.contribution());
                    let why = format!("the contribution is refused: {}", foreign(&why));
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
            invitation: self.invitation.clone(),
        };
        Ok(self.client.patiently(|client| client.join(&request))?)
    }

    /// Downloads, computes and uploads, skipping steps that an earlier run completed.
    fn take_turn(&self, text: &str, received: u64) -> Result<SlotBody, Failure> {
        let out = self.folder.contribution();
        let (directory, wanted) = (self.folder.transcript(), Wanted::Chains(&self.chains));
        let digest = Some(self.genesis.digest());
        let transcript = download::transcript(&self.client, &directory, digest, wanted)?;
        download::check(&transcript)?;
        match self.earlier(&transcript)? {
            // The last run may have ended before it wrote the receipt.
            Some(earlier) => {
                write_receipt(self.command, &transcript, &earlier.records, &out)?;
            }
            None => {
                remove_unfinished(&out);
                let records = compute(self.command, &transcript, &self.chains, text, &out)?;
                write_receipt(self.command, &transcript, &records, &out)?;
            }
        }
        Ok(upload(&self.client, &self.folder.slot.token, &out, received)?)
    }

    /// The contribution of an earlier run, if it continues the chains as they are now. Otherwise it is removed.
    fn earlier(&self, transcript: &Transcript) -> Result<Option<Response>, Failure> {
        let out = self.folder.contribution();
        if !out.exists() {
            return Ok(None);
        }
        let response = Response::open(&out, &self.genesis).map_err(|e| failed(&e))?;
        if follows(transcript, &response) {
            return Ok(Some(response));
        }
        output::say("others have contributed since the last run: computing the contribution again");
        std::fs::remove_file(&out).or_fail(exit::BAD_FILE)?;
        Ok(None)
    }

    fn receipt(&self) -> PathBuf {
        self.folder.contribution().with_extension("receipt")
    }

    /// Reports whether the contribution of the folder is in the records of the service, after a check of all of them.
    pub(super) fn is_included(&self) -> Result<bool, Failure> {
        let path = self.receipt();
        let bytes = match read_at_most(&path, RECEIPT_LIMIT) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            other => other.or_fail(exit::BAD_FILE)?,
        };
        let place = temporary(folder_of(&path))?;
        let digest = Some(self.genesis.digest());
        let transcript = download::records(&self.client, place.path(), digest)?;
        download::check(&transcript)?;
        Ok(check_receipt(&String::from_utf8_lossy(&bytes), &[&transcript]).is_ok())
    }

    pub(super) fn report(&self) -> Result<(), Failure> {
        self.folder.tidy();
        let path = self.receipt();
        let receipt = read_at_most(&path, RECEIPT_LIMIT).or_fail(exit::BAD_FILE)?;
        let receipt = String::from_utf8_lossy(&receipt);
        let object = json!({
            "ok": true, "ceremony": self.folder.slot.ceremony, "receipt": receipt,
            "receipt_file": path,
        });
        let lines = format!(
            "your contribution is in the transcript, and its secrets are wiped.\n\
             Sign {} with a key by which people know you, and publish it:\n\n{receipt}",
            path.display(),
        );
        output::result(self.json, &object, lines.trim_end())
    }
}

/// Waits for the next state of a slot.
pub(super) fn wait(client: &Client, token: &str, slot: SlotBody) -> Result<SlotBody, Failure> {
    let mut seconds = match &slot {
        SlotBody::Waiting { before, ask_again } => {
            output::say(format_args!("waiting: {before} before you"));
            *ask_again
        }
        SlotBody::Verifying { ask_again, trouble } => {
            match trouble {
                Some(why) => {
                    output::say(format_args!("the contribution waits: {}", foreign(why)));
                }
                None => output::say("the contribution is being checked"),
            }
            *ask_again
        }
        _ => return Ok(slot),
    };
    // Silently, while nothing changes.
    loop {
        std::thread::sleep(Duration::from_secs(seconds.clamp(1, MOST_WAIT)));
        let next =
            client.patiently(|client| client.slot(token)).map_err(|why| match why.is(404) {
                true => {
                    let why =
                        "the service no longer knows the slot: run the same command to queue again";
                    Failure::new(exit::FAILED, why)
                }
                false => why.into(),
            })?;
        if next != slot {
            return Ok(next);
        }
        seconds = match &next {
            SlotBody::Waiting { ask_again, .. } => *ask_again,
            _ => (2 * seconds).min(10),
        };
    }
}

/// Uploads the bytes that the service does not have yet, and completes the upload.
pub(super) fn upload(
    client: &Client,
    token: &str,
    path: &Path,
    received: u64,
) -> Result<SlotBody, NoAnswer> {
    let broken = |e: std::io::Error| NoAnswer::File(format!("{}: {e}", path.display()));
    let file = File::open(path).map_err(broken)?;
    let length = file.metadata().map_err(broken)?.len();
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&file).map_err(broken)?;
    let digest = hasher.finalize().to_hex().to_string();
    let mut piece = vec![0; PIECE];
    let mut at = received;
    for _ in 0..MOST_ATTEMPTS {
        let mut idle = 0;
        while at < length {
            let n = usize::try_from(length - at).map_or(PIECE, |left| left.min(PIECE));
            file.read_exact_at(&mut piece[..n], at).map_err(broken)?;
            let mut failed = None;
            let sent = client.patiently(|client| match client.piece(token, at, &piece[..n]) {
                // The answer to an earlier attempt was lost, a part of a piece has arrived, or the turn has ended.
                Err(why) if why.is(409) || why.is_away() => {
                    failed = Some(why);
                    client.slot(token)
                }
                other => other,
            })?;
            let SlotBody::Active { received, .. } = sent else { return Ok(sent) };
            idle = if received > at { 0 } else { idle + 1 };
            if idle > 0 {
                std::thread::sleep(Duration::from_secs(1));
            }
            if let (true, Some(why)) = (idle == MOST_ATTEMPTS, failed) {
                return Err(why);
            }
            at = received;
            let (at, length) = (output::bytes(at), output::bytes(length));
            output::say(format_args!("uploaded {at} of {length}"));
        }
        match client.patiently(|client| client.complete(token, digest.clone())) {
            Err(why) if why.is(422) => {
                output::say("the service received different bytes: sending the contribution again");
                at = 0;
            }
            other => return other,
        }
    }
    let why = format!("{}: the upload never completes: ask the coordinator", client.address());
    Err(NoAnswer::File(why))
}
