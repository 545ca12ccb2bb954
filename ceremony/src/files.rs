//! The commands on files: `fetch`, `add`, `beacon`, `status` and `receipt`.

use crate::common::{PROGRAM, check_expected, in_the_way};
use crate::options::{Add, Beacon, Fetch, Receipt, Status};
use hekaton_ceremony::{
    CeremonyError, Contributor, Coordinator, Kind, Record, Response, Seed, bytes_of_chains,
    chains_json, chains_text, contribute, is_finished, record_json,
};
use hekaton_terminal::ceremony::{failed, on_threads, open, steps};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::output::{self, one_line};
use hekaton_terminal::progress::Display;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

pub(crate) fn fetch(command: &Fetch, json: bool) -> Result<(), Failure> {
    if command.directory {
        let why = "--directory requires the address of a service; copy a local directory instead";
        return Err(Failure::new(exit::USAGE, why));
    }
    if command.out.exists() {
        return Err(in_the_way(&command.out));
    }
    let transcript = open(Path::new(&command.ceremony))?;
    check_expected(&transcript.genesis.digest(), command.expect)?;
    transcript.write_state(&command.out).map_err(|e| failed(&e))?;
    fetched(&command.out, &transcript.genesis.digest(), json)
}

/// Reports a state that was written.
pub(crate) fn fetched(out: &Path, digest: &[u8; 32], json: bool) -> Result<(), Failure> {
    let digest = hex::encode(digest);
    let lines = format!("state of ceremony {digest} in {}", out.display());
    let object = json!({ "ok": true, "state": out, "ceremony": digest });
    output::result(json, &object, &lines)
}

pub(crate) fn add(command: &Add, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let display = Display::new();
    let records = on_threads(&command.threads, || {
        let mut coordinator = Coordinator::open(&command.ceremony)?;
        let response = Response::open(&command.contribution, &coordinator.transcript.genesis)?;
        coordinator.add(&response, &mut steps(&display))?;
        Ok(response.records)
    })?;
    accepted(&records, start, json)
}

pub(crate) fn beacon(command: &Beacon, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let display = Display::new();
    let kind = Kind::Beacon { value: command.value.0.clone(), exponent: command.exponent };
    let records = on_threads(&command.threads, || {
        let mut coordinator = Coordinator::open(&command.ceremony)?;
        let chains = coordinator.transcript.genesis.chains();
        let contributor = Contributor { name: "beacon", program: PROGRAM, kind, chains: &chains };
        let incoming = command.ceremony.join("incoming");
        std::fs::create_dir_all(&incoming)
            .map_err(|error| CeremonyError::Io { path: incoming.clone(), error })?;
        let out = incoming.join("beacon");
        let seed = Seed::draw("")?;
        contribute(&coordinator.transcript, &contributor, seed, &out, &mut |step| {
            display.line(&format!("multiplying {step}"));
        })?;
        let response = Response::open(&out, &coordinator.transcript.genesis)?;
        coordinator.add_beacon(&response, &mut steps(&display))?;
        // The beacon is in the transcript now, so a leftover file does no harm.
        let _ = std::fs::remove_file(&out);
        Ok(response.records)
    })?;
    accepted(&records, start, json)
}

/// Reports records that were accepted.
fn accepted(records: &[Record], start: Instant, json: bool) -> Result<(), Failure> {
    let lines: String = records
        .iter()
        .map(|record| {
            let (chain, place, head) = (record.chain, record.place, hex::encode(record.head()));
            format!("chain {chain} place {place} by {}: head {head}\n", one_line(&record.name))
        })
        .collect();
    let list: Vec<Value> = records.iter().map(record_json).collect();
    let object = json!({ "ok": true, "records": list, "seconds": start.elapsed().as_secs_f64() });
    let lines = format!("{lines}accepted in {}", output::seconds(start.elapsed()));
    output::result(json, &object, &lines)
}

pub(crate) fn status(command: &Status, json: bool) -> Result<(), Failure> {
    let transcript = open(Path::new(&command.ceremony))?;
    transcript.check().map_err(|e| failed(&e))?;
    let genesis = &transcript.genesis;
    let title = genesis.title();
    let finished = is_finished(&transcript);
    let torn = transcript.logs.iter().any(|log| log.torn);
    let lines = format!(
        "{title}\nceremony: {}\ntranscript: {}{}\n{}{}",
        hex::encode(genesis.digest()),
        hex::encode(transcript.digest()),
        if finished { ", finished" } else { ", still open" },
        if torn { "a log ends in the middle of a record, which does not count\n" } else { "" },
        chains_text(&[&transcript]),
    );
    let object = json!({
        "ok": true, "subject": title, "ceremony": hex::encode(genesis.digest()),
        "transcript": hex::encode(transcript.digest()), "finished": finished,
        "bytes": bytes_of_chains(genesis, &genesis.chains()), "chains": chains_json(&[&transcript]),
    });
    output::result(json, &object, lines.trim_end())
}

pub(crate) fn receipt(command: &Receipt, json: bool) -> Result<(), Failure> {
    let transcript = open(&command.ceremony)?;
    transcript.check().map_err(|e| failed(&e))?;
    let all = transcript.logs.iter().flat_map(|log| &log.records);
    let own: Vec<&Record> = all
        .filter(|record| record.kind == Kind::Contribution && record.name == command.name)
        .collect();
    let Some(first) = own.first() else {
        let why = format!("nobody has contributed under the name '{}'", one_line(&command.name));
        return Err(Failure::new(exit::BAD_FILE, why));
    };
    let receipt =
        hekaton_ceremony::receipt(&transcript.genesis, &command.name, &first.program, &own);
    let object = json!({ "ok": true, "receipt": receipt });
    output::result(json, &object, receipt.trim_end())
}
