//! The commands with a service: `contribute`, `fetch`, `send` and `status`.

mod client;
mod download;
mod folder;
mod slot;

use crate::body::{SlotBody, SlotRequest, StatusBody};
use crate::common::{chains_of, in_the_way, on_interrupt};
use crate::contribute::{Cost, check_name, remove_unfinished};
use crate::options::{Contribute, Fetch, Send};
use client::{Client, foreign};
use download::{Wanted, follows, is_included, temporary};
use folder::Folder;
use hekaton_ceremony::Response;
use hekaton_files::folder_of;
use hekaton_terminal::ceremony::failed;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde_json::json;
use slot::{Remote, upload, wait};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) fn status(url: &str, json: bool) -> Result<(), Failure> {
    let client = Client::new(url)?;
    let status = client.status()?;
    let chains: String = (status.chains.iter())
        .map(|end| {
            let (chain, head) = (foreign(&end.chain), foreign(&end.head));
            format!("  chain {chain:<4} {} records, head {head}\n", end.records)
        })
        .collect();
    let lines = format!(
        "{}\nceremony: {}\n{chains}{}, {}; {} working, {} waiting; {} per turn",
        foreign(&status.title),
        foreign(&status.ceremony),
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
    // Without retries, since the address may be wrong.
    client.status()?;
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
    let place = temporary(folder_of(&command.out))?;
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

/// The digest of a service's ceremony.
fn digest_of(client: &Client, status: &StatusBody) -> Result<[u8; 32], Failure> {
    let digest = hex::decode(&status.ceremony).ok().and_then(|bytes| bytes.try_into().ok());
    digest
        .ok_or_else(|| format!("{}: the service does not name its ceremony", client.address()))
        .or_fail(exit::FAILED)
}

/// `contribute` with a service.
pub(crate) fn contribute(command: &Contribute, json: bool) -> Result<(), Failure> {
    check_name(&command.name)?;
    let invitation = command.invitation.code()?;
    let client = Client::new(&command.ceremony)?;
    // Without retries, since the address may be wrong.
    let status = client.status()?;
    let digest = digest_of(&client, &status)?;
    crate::common::check_expected(&digest, command.expect)?;
    let hex = hex::encode(digest);
    let default = || PathBuf::from(format!("ceremony-{}", &hex[..16]));
    let path = command.out.clone().unwrap_or_else(default);
    let place = temporary(folder_of(&path))?;
    let genesis = download::genesis(&client, place.path(), Some(digest))?;
    drop(place);
    let chains = chains_of(&genesis, &command.only)?;
    let folder = Folder::open(&path, client.address(), &hex, &command.name, &chains)?;
    let contribution = folder.contribution();
    on_interrupt(
        move || {
            remove_unfinished(&contribution);
            true
        },
        "interrupted: the same command continues",
        json,
    )?;
    let remote = Remote { client, folder, command, invitation, chains, genesis, json };
    // The contribution of an earlier run may be in the transcript, whatever the state of its slot is.
    if remote.is_included()? {
        return remote.report();
    }
    if status.finished {
        let why = "the ceremony is finished: no more contributions are accepted";
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    // Before the turn, so that others need not wait for the answer. If an earlier run left a contribution, nothing is drawn.
    let cost = Cost { genesis: &remote.genesis, chains: &remote.chains, times: 2 };
    let text = match remote.folder.contribution().exists() {
        true => zeroize::Zeroizing::default(),
        false => cost.ask(command, &remote.folder.contribution())?,
    };
    remote.run(&text)
}

/// `send`.
pub(crate) fn send(command: &Send, json: bool) -> Result<(), Failure> {
    let client = Client::new(&command.url)?;
    let digest = digest_of(&client, &client.status()?)?;
    let place = temporary(folder_of(&command.contribution))?;
    let transcript = download::records(&client, place.path(), Some(digest))?;
    download::check(&transcript)?;
    let path = &command.contribution;
    let response = Response::open(path, &transcript.genesis).map_err(|e| failed(&e))?;
    if !is_included(&transcript, &response) {
        // Checked before the turn, so that others do not wait for a contribution that cannot be accepted.
        if !follows(&transcript, &response) {
            let why = "others have contributed since the state was fetched: fetch it again, and contribute again";
            return Err(Failure::new(exit::REFUSED, why));
        }
        send_to(&client, command, &response)?;
        let transcript = download::records(&client, place.path(), Some(digest))?;
        download::check(&transcript)?;
        if !is_included(&transcript, &response) {
            let why = "the service reports that the contribution was accepted, but the records do not contain it";
            return Err(Failure::new(exit::REFUSED, why));
        }
    }
    let lines = "the contribution is in the transcript: sign and publish its receipt";
    output::result(json, &json!({ "ok": true, "ceremony": hex::encode(digest) }), lines)
}

/// The largest number of slots for sending one contribution, each requested after the previous one expired.
const MOST_SLOTS: u32 = 100;

/// Uploads a contribution in slots whose tokens depend on it, so that the same command continues.
fn send_to(client: &Client, command: &Send, response: &Response) -> Result<(), Failure> {
    let content = std::fs::File::open(&command.contribution).or_fail(exit::BAD_FILE)?;
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 ceremony token of a contribution");
    hasher.update_reader(content).or_fail(exit::BAD_FILE)?;
    let mut request = SlotRequest {
        token: String::new(),
        name: response.records[0].name.clone(),
        chains: response.records.iter().map(|record| record.chain.to_string()).collect(),
        invitation: command.invitation.code()?,
    };
    for number in 0..MOST_SLOTS {
        let mut hasher = hasher.clone();
        hasher.update(&number.to_le_bytes());
        request.token = hasher.finalize().to_hex().to_string();
        match client.patiently(|client| client.join(&request))? {
            // Of an earlier run.
            SlotBody::Expired => {}
            slot => return send_in_slot(client, command, response, &request.token, slot),
        }
    }
    Err(Failure::new(exit::FAILED, "too many slots of this contribution have expired"))
}

/// Waits for the turn of a slot, and uploads.
fn send_in_slot(
    client: &Client,
    command: &Send,
    response: &Response,
    token: &str,
    mut slot: SlotBody,
) -> Result<(), Failure> {
    let mut turns = 0;
    loop {
        slot = match slot {
            SlotBody::Active { heads, received, .. } if turns < slot::MOST_ATTEMPTS => {
                turns += 1;
                let before = |record: &hekaton_ceremony::Record| {
                    heads.get(&record.chain.to_string()) == Some(&hex::encode(record.before))
                };
                if !response.records.iter().all(before) {
                    // Leaving spares others the wait for the deadline; if the request fails, they wait.
                    let _ = client.leave(token);
                    let why = "others have contributed since the state was fetched: fetch it again, and contribute again";
                    return Err(Failure::new(exit::REFUSED, why));
                }
                upload(client, token, &command.contribution, received)?
            }
            SlotBody::Active { .. } => {
                let why = "the service accepts uploads but returns no verdict: ask its coordinator";
                return Err(Failure::new(exit::FAILED, why));
            }
            SlotBody::Accepted => return Ok(()),
            SlotBody::Refused { why } => {
                let why = format!("the contribution is refused: {}", foreign(&why));
                return Err(Failure::new(exit::REFUSED, why));
            }
            SlotBody::Expired => {
                return Err(Failure::new(exit::FAILED, "the deadline has passed: send it again"));
            }
            waiting => wait(client, token, waiting)?,
        };
    }
}
