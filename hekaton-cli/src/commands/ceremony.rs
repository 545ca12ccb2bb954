//! `hekaton ceremony`: setups that many parties make together.

use super::family::remove_on_interrupt;
use crate::app::App;
use crate::hints::explain;
use crate::machine;
use crate::options::{
    Ceremony, CeremonyAdd, CeremonyBeacon, CeremonyContribute, CeremonyFetch, CeremonyFinish,
    CeremonyNew, CeremonyReceipt, CeremonyStatus, CeremonyVerify,
};
use hekaton_ceremony::{
    CeremonyError, Chain, Contributor, Coordinator, Family, FamilyGenesis, FamilyPlan, Kind,
    MAX_NAME, Powers, Record, Response, Seed, Subject, Transcript, bytes_of_chains, contribute,
    contributors, includes, is_finished, new_family, new_powers, points_of_chains, verify_family,
    verify_powers, verify_records,
};
use hekaton_circuit::named::ParameterMap;
use hekaton_circuit::{Masking, R1cs};
use hekaton_core::LocalEngine;
use hekaton_storage::FamilyStore;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::options::Threads;
use hekaton_terminal::output::{self, one_line};
use hekaton_terminal::progress::Display;
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::time::Instant;

/// The program that records name.
const PROGRAM: &str = concat!("hekaton ", env!("CARGO_PKG_VERSION"));
/// The folder of a family's keys with the logs of its ceremony.
const IN_KEYS: &str = "ceremony";

pub(crate) fn run(command: &Ceremony, app: &App, json: bool) -> Result<(), Failure> {
    match command {
        Ceremony::New(command) => new(command, app, json),
        Ceremony::Contribute(command) => contribute_to(command, json),
        Ceremony::Fetch(command) => fetch(command, json),
        Ceremony::Add(command) => add(command, json),
        Ceremony::Beacon(command) => beacon(command, json),
        Ceremony::Finish(command) => finish(command, app, json),
        Ceremony::Verify(command) => verify(command, app, json),
        Ceremony::Status(command) => status(command, json),
        Ceremony::Receipt(command) => receipt(command, json),
    }
}

/// The failure for an error of a ceremony: a check that fails refuses a transcript, and everything else is a file that cannot be
/// used.
fn failed(error: &CeremonyError) -> Failure {
    let code = match error {
        CeremonyError::Broken(_) | CeremonyError::Type(_) => exit::REFUSED,
        CeremonyError::Randomness(_) => exit::FAILED,
        _ => exit::BAD_FILE,
    };
    Failure::new(code, error)
}

/// Calls a function on as many threads as were asked for.
fn on_threads<R: Send>(
    threads: &Threads,
    call: impl FnOnce() -> Result<R, CeremonyError> + Send,
) -> Result<R, Failure> {
    let engine = LocalEngine::new(threads.threads).or_fail(exit::FAILED)?;
    engine.install(call).map_err(|e| failed(&e))
}

fn open(path: &Path) -> Result<Transcript, Failure> {
    Transcript::open(path).map_err(|e| failed(&e))
}

/// Prints each step of a check.
fn steps(display: &Display) -> impl FnMut(&str) + Send + '_ {
    |step| display.line(&format!("checking {step}"))
}

fn new(command: &CeremonyNew, app: &App, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let made = match (&command.powers, &command.circuit.circuit) {
        (Some(powers), Some(name)) => begin_family(command, name, powers, app)?,
        (None, None) => begin_powers(command)?,
        (Some(_), None) => {
            let why = "name the circuit of the family, for example merkle";
            return Err(Failure::new(exit::USAGE, why));
        }
        (None, Some(name)) => {
            let why = format!(
                "a family needs powers: `hekaton ceremony new {name} .. --powers DIR`; without a \
                 circuit, this command begins a ceremony for powers"
            );
            return Err(Failure::new(exit::USAGE, why));
        }
    };
    let chains = made.genesis.chains();
    let bytes = bytes_of_chains(&made.genesis, &chains);
    let digest = hex::encode(made.genesis.digest());
    let lines = format!(
        "a ceremony begins in {}, made in {}\n{} points: a contributor to all chains reads and writes {} each\n\
         ceremony: {digest}\nAnnounce this digest, so that contributors can pass it with --expect.",
        command.out.display(),
        output::seconds(start.elapsed()),
        output::count(points_of_chains(&made.genesis, &chains) as u64),
        output::bytes(bytes),
    );
    let object = json!({
        "ok": true, "directory": command.out, "ceremony": digest, "bytes": bytes,
        "chains": chains.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "seconds": start.elapsed().as_secs_f64(),
    });
    output::result(json, &object, &lines)
}

#[allow(clippy::cast_possible_truncation, reason = "the options are at most 2^32")]
fn begin_powers(command: &CeremonyNew) -> Result<Transcript, Failure> {
    let (Some(rows), Some(subcircuits)) = (command.rows, command.subcircuits) else {
        let why = "powers need --rows and --subcircuits; a family needs a circuit and --powers";
        return Err(Failure::new(exit::USAGE, why));
    };
    let domain = hekaton_ceremony::domain_for(rows as usize);
    on_threads(&command.threads, || {
        new_powers(&command.out, domain, subcircuits as usize, &command.beacon)
    })
}

/// The circuit of a family, with the parameters that its circuits share and their largest number of subcircuits.
#[allow(clippy::cast_possible_truncation, reason = "the option is at most 2^32")]
fn begin_family(
    command: &CeremonyNew,
    name: &str,
    powers: &Path,
    app: &App,
) -> Result<Transcript, Failure> {
    let mut given = command.circuit.parameters.map();
    if name == machine::NAME {
        machine::complete(&mut given).or_fail(exit::USAGE)?;
    }
    let bytes = match (command.up_to, command.subcircuits) {
        (Some(bytes), None) => bytes,
        (None, Some(_)) => 0,
        _ => {
            let why =
                "a family needs --up-to SIZE for its inputs, or --subcircuits N for its proofs";
            return Err(Failure::new(exit::USAGE, why));
        }
    };
    let (family, parameters) = app.family(name, &given, bytes)?;
    let zero_knowledge = !command.no_zero_knowledge;
    let (types, buses) = types_of(&*family.circuit, zero_knowledge)?;
    let plan = FamilyPlan {
        circuit: name.to_owned(),
        parameters: Value::Object(parameters).to_string(),
        zero_knowledge,
        instances: command.subcircuits.map_or(family.instances, |n| n as usize),
        buses,
        segment_points: command.segment_points,
        beacon: command.beacon.clone(),
    };
    let transcript = open(powers)?;
    if !is_finished(&transcript) {
        let why = format!(
            "{}: the ceremony for these powers is not finished: `hekaton ceremony finish {0}`",
            powers.display()
        );
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let display = Display::new();
    on_threads(&command.threads, || {
        let powers = verify_powers(&transcript, &mut steps(&display))?;
        new_family(&command.out, plan, &powers, &types, &mut |step| display.line(step))
    })
}

/// The types of a circuit, and the names of its buses.
fn types_of(
    circuit: &dyn crate::application::OpenCircuit,
    zero_knowledge: bool,
) -> Result<(Vec<R1cs>, Vec<String>), Failure> {
    let prepared = circuit.prepared().map_err(|e| format!("layout: {e}")).or_fail(exit::USAGE)?;
    let masking = Masking::new(zero_knowledge);
    let kinds = prepared.layout().type_ids();
    let types = kinds.map(|kind| prepared.r1cs(kind, masking)).collect::<Result<_, _>>();
    let buses = prepared.layout().wiring_without_slots(masking).buses;
    Ok((types.or_fail(exit::FAILED)?, buses))
}

/// The types of the circuit that a genesis names.
fn types_of_genesis(genesis: &FamilyGenesis, app: &App) -> Result<Vec<R1cs>, Failure> {
    let parameters: ParameterMap =
        serde_json::from_str(&genesis.parameters).or_fail(exit::BAD_FILE)?;
    let application = app.get(&genesis.circuit).ok_or_else(|| {
        let why = format!(
            "this program does not have the circuit '{}': use the program that began the ceremony",
            one_line(&genesis.circuit)
        );
        Failure::new(exit::BAD_FILE, why)
    })?;
    // Types do not depend on the size of inputs.
    let family = application.family(&parameters, 0).map_err(|e| explain(&*e));
    let (family, _) = family.or_fail(exit::BAD_FILE)?;
    Ok(types_of(&*family.circuit, genesis.zero_knowledge)?.0)
}

fn contribute_to(command: &CeremonyContribute, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let transcript = open(&command.ceremony)?;
    let digest = transcript.genesis.digest();
    if let Some(expected) = command.expect.filter(|expected| *expected != digest) {
        let (found, expected) = (hex::encode(digest), hex::encode(expected));
        let why = format!("this is ceremony {found}, but --expect requires {expected}");
        return Err(Failure::new(exit::REFUSED, why));
    }
    let name = &command.name;
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        let why = format!("--name: expected 1 to {MAX_NAME} bytes without control characters");
        return Err(Failure::new(exit::USAGE, why));
    }
    let chains = match command.only.is_empty() {
        true => transcript.genesis.chains(),
        false => command.only.clone(),
    };
    let known = transcript.genesis.chains();
    if let Some(chain) = chains.iter().find(|chain| !known.contains(chain)) {
        let why = format!("--only: the ceremony has no chain {chain}");
        return Err(Failure::new(exit::USAGE, why));
    }
    let text = ask(command, &transcript, &chains)?;
    protect_memory();
    let seed = Seed::draw(&text).or_fail(exit::FAILED)?;
    drop(text);
    let display = Display::new();
    let contributor =
        Contributor { name, program: PROGRAM, kind: Kind::Contribution, chains: &chains };
    let records = on_threads(&command.threads, || {
        contribute(&transcript, &contributor, &seed, &command.out, &mut |step| {
            display.line(&format!("multiplying {step}"));
        })
    })?;
    let receipt = receipt_of(&digest, name, &records.iter().collect::<Vec<_>>());
    let object = json!({
        "ok": true, "contribution": command.out, "ceremony": hex::encode(digest), "receipt": receipt,
        "seconds": start.elapsed().as_secs_f64(),
    });
    let lines = format!(
        "contribution in {}, made in {}; send it to the coordinator. The secrets are wiped.\n\
         Once it is accepted, publish this receipt, signed with a key by which people know you:\n\n{receipt}",
        command.out.display(),
        output::seconds(start.elapsed()),
    );
    output::result(json, &object, lines.trim_end())
}

/// Says what a contribution costs and, on a terminal, asks whether to go on and for a text that is mixed into the
/// randomness.
fn ask(
    command: &CeremonyContribute,
    transcript: &Transcript,
    chains: &[Chain],
) -> Result<zeroize::Zeroizing<String>, Failure> {
    let bytes = bytes_of_chains(&transcript.genesis, chains);
    let points = points_of_chains(&transcript.genesis, chains) as u64;
    output::say(format_args!(
        "ceremony {}: {} points in {}",
        hex::encode(transcript.genesis.digest()),
        output::count(points),
        output::bytes(bytes),
    ));
    let mut text = zeroize::Zeroizing::new(String::new());
    if command.yes || !std::io::stdin().is_terminal() {
        return Ok(text);
    }
    output::say(format_args!(
        "This writes {} to {}. Type anything to mix it into the randomness, then Enter; Ctrl-C ends.",
        output::bytes(bytes),
        command.out.display(),
    ));
    let mut typed = zeroize::Zeroizing::new(String::new());
    std::io::stdin().lock().read_line(&mut typed).or_fail(exit::FAILED)?;
    text.push_str(typed.trim_end());
    Ok(text)
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
            "warning: this machine has swap space, to which secrets in memory may be written: `swapoff -a`",
        );
    }
}

fn fetch(command: &CeremonyFetch, json: bool) -> Result<(), Failure> {
    let transcript = open(&command.ceremony)?;
    transcript.write_state(&command.out).map_err(|e| failed(&e))?;
    let digest = hex::encode(transcript.genesis.digest());
    let lines = format!("state of ceremony {digest} in {}", command.out.display());
    let object = json!({ "ok": true, "state": command.out, "ceremony": digest });
    output::result(json, &object, &lines)
}

fn add(command: &CeremonyAdd, json: bool) -> Result<(), Failure> {
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

fn beacon(command: &CeremonyBeacon, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let display = Display::new();
    let seed = Seed::draw("").or_fail(exit::FAILED)?;
    let kind = Kind::Beacon { value: command.value.0.clone(), exponent: command.exponent };
    let records = on_threads(&command.threads, || {
        let mut coordinator = Coordinator::open(&command.ceremony)?;
        let chains = coordinator.transcript.genesis.chains();
        let contributor = Contributor { name: "beacon", program: PROGRAM, kind, chains: &chains };
        let out = command.ceremony.join("incoming").join("beacon");
        contribute(&coordinator.transcript, &contributor, &seed, &out, &mut |step| {
            display.line(&format!("multiplying {step}"));
        })?;
        let response = Response::open(&out, &coordinator.transcript.genesis)?;
        coordinator.add(&response, &mut steps(&display))?;
        // It is in the transcript now, and what cannot be removed is in nobody's way.
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

fn record_json(record: &Record) -> Value {
    json!({
        "chain": record.chain.to_string(), "place": record.place, "name": record.name,
        "program": record.program, "beacon": record.kind != Kind::Contribution,
        "head": hex::encode(record.head()), "record": hex::encode(record.digest()),
    })
}

fn finish(command: &CeremonyFinish, app: &App, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let display = Display::new();
    let transcript = open(&command.ceremony)?;
    let (mut lines, mut object) = (String::new(), json!({ "ok": true }));
    match (&transcript.genesis.subject, &command.powers, &command.keys) {
        (Subject::Powers(_), None, None) => {
            on_threads(&command.threads, || {
                let coordinator = Coordinator::open(&command.ceremony)?;
                verify_powers(&coordinator.transcript, &mut steps(&display))?;
                coordinator.finish()
            })?;
        }
        (Subject::Family(genesis), Some(powers), Some(keys)) => {
            let of_powers = open(powers)?;
            let types = types_of_genesis(genesis, app)?;
            let store =
                FamilyStore::create(keys).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
            remove_on_interrupt(store.unfinished_path(), json)?;
            let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
            let coordinator = Coordinator::open(&command.ceremony).map_err(|e| failed(&e))?;
            let transcripts = [&of_powers, &coordinator.transcript];
            let manifest = engine.install(|| write_keys(transcripts, types, store, &display))?;
            coordinator.finish().map_err(|e| failed(&e))?;
            lines =
                format!("keys in {}, family digest: {}\n", keys.display(), manifest.family_digest);
            object["keys"] = json!(keys);
            object["manifest"] = json!(manifest);
        }
        (Subject::Powers(_), ..) => {
            let why = "these are powers: --powers and --keys are for families";
            return Err(Failure::new(exit::USAGE, why));
        }
        (Subject::Family(_), ..) => {
            let why =
                "a family needs its powers and a directory for its keys: --powers DIR --keys DIR";
            return Err(Failure::new(exit::USAGE, why));
        }
    }
    let transcript = open(&command.ceremony)?;
    let digest = hex::encode(transcript.digest());
    object["transcript"] = json!(digest);
    object["seconds"] = json!(start.elapsed().as_secs_f64());
    lines += &format!(
        "the ceremony is finished, checked in {}\ntranscript: {digest}\n{}",
        output::seconds(start.elapsed()),
        chains_of(&[&transcript]),
    );
    output::result(json, &object, lines.trim_end())
}

/// Makes the whole check of a family and its powers, and writes the keys together with the logs of both.
fn write_keys(
    [of_powers, of_family]: [&Transcript; 2],
    types: Vec<R1cs>,
    mut store: FamilyStore,
    display: &Display,
) -> Result<hekaton_storage::FamilyManifest, Failure> {
    let whole = || -> Result<(Powers, Family), CeremonyError> {
        let powers = verify_powers(of_powers, &mut steps(display))?;
        let family = verify_family(of_family, &powers, &types, &mut steps(display))?;
        Ok((powers, family))
    };
    let (powers, family) = whole().map_err(|e| failed(&e))?;
    let folder = store.unfinished_path().join(IN_KEYS);
    for (name, transcript) in [("powers", of_powers), ("family", of_family)] {
        transcript.copy_records(&folder.join(name)).map_err(|e| failed(&e))?;
    }
    for (number, r1cs) in types.into_iter().enumerate() {
        display.line(&format!("writing the proving key of type '{}'", r1cs.name));
        let key = family.proving_key(&powers, number, r1cs).map_err(|e| failed(&e))?;
        store.proving_key(&key).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    }
    display.line("writing the family key");
    let key = family.key(&powers).map_err(|e| failed(&e))?;
    store.finish(&key).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)
}

fn verify(command: &CeremonyVerify, app: &App, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let display = Display::new();
    let transcript = open(&command.ceremony)?;
    let mut transcripts = vec![&transcript];
    let of_powers = command.powers.as_deref().map(open).transpose()?;
    transcripts.extend(&of_powers);
    let mut compared = false;
    match (&transcript.genesis.subject, &of_powers, command.records_only) {
        (_, _, true) => {
            on_threads(&command.threads, || verify_records(&transcript).map(|_| ()))?;
        }
        (Subject::Powers(_), None, false) => {
            on_threads(&command.threads, || {
                verify_powers(&transcript, &mut steps(&display)).map(|_| ())
            })?;
        }
        (Subject::Powers(_), Some(_), false) => {
            let why = "these are powers: --powers is for families";
            return Err(Failure::new(exit::USAGE, why));
        }
        (Subject::Family(genesis), Some(of_powers), false) => {
            let types = types_of_genesis(genesis, app)?;
            let (powers, family) = on_threads(&command.threads, || {
                let powers = verify_powers(of_powers, &mut steps(&display))?;
                let family = verify_family(&transcript, &powers, &types, &mut steps(&display))?;
                Ok((powers, family))
            })?;
            if let Some(keys) = &command.keys {
                display.line("comparing the keys");
                compare(keys, &powers, &family, types)?;
                compared = true;
            }
        }
        (Subject::Family(_), None, false) => {
            let why = "the whole check of a family needs its powers: --powers DIR; --records-only checks the \
                       records";
            return Err(Failure::new(exit::USAGE, why));
        }
    }
    for path in &command.receipt {
        check_receipt(path, &transcripts)?;
    }
    let digest = hex::encode(transcript.digest());
    let what = match (command.records_only, compared) {
        (true, _) => "the records are correct; sections and keys were not checked",
        (false, false) => "the ceremony is correct: all records, and every point",
        (false, true) => "the ceremony is correct: all records, every point, and the keys",
    };
    let lines = format!(
        "{what} ({})\n{}transcript: {digest}\n{}",
        output::seconds(start.elapsed()),
        if command.receipt.is_empty() { "" } else { "all receipts are in it\n" },
        chains_of(&transcripts),
    );
    let object = json!({
        "ok": true, "transcript": digest, "records_only": command.records_only, "keys_compared": compared,
        "receipts": command.receipt, "chains": chains_json(&transcripts),
        "seconds": start.elapsed().as_secs_f64(),
    });
    output::result(json, &object, lines.trim_end())
}

/// Compares the keys of a family with those of the transcript, byte for byte.
fn compare(path: &Path, powers: &Powers, family: &Family, types: Vec<R1cs>) -> Result<(), Failure> {
    let (manifest, found) =
        FamilyStore::open(path).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    // Reads all proving keys and compares them with the digests of the manifest.
    FamilyStore::proving_keys(path, &manifest).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let differs = |what: &str| {
        let why = format!("{}: {what} is not that of the ceremony", path.display());
        Failure::new(exit::REFUSED, why)
    };
    let expected = family.key(powers).map_err(|e| failed(&e))?;
    if found.sections().digest() != expected.sections().digest() {
        return Err(differs("the family key"));
    }
    for (number, r1cs) in types.into_iter().enumerate() {
        let name = r1cs.name.clone();
        let key = family.proving_key(powers, number, r1cs).map_err(|e| failed(&e))?;
        let digest = hex::encode(key.sections().digest());
        if manifest.types.get(number).is_none_or(|entry| entry.digest != digest) {
            return Err(differs(&format!("the proving key of type '{name}'")));
        }
    }
    Ok(())
}

fn status(command: &CeremonyStatus, json: bool) -> Result<(), Failure> {
    let transcript = open(&command.ceremony)?;
    transcript.check().map_err(|e| failed(&e))?;
    let genesis = &transcript.genesis;
    let subject = match &genesis.subject {
        Subject::Powers(powers) => format!(
            "powers for domains of up to {} rows and {} subcircuits",
            output::count(powers.domain as u64),
            output::count(powers.instances as u64)
        ),
        Subject::Family(family) => format!(
            "keys of circuit {} {}, {} types, up to {} subcircuits",
            one_line(&family.circuit),
            one_line(&family.parameters),
            family.types.len(),
            output::count(family.instances as u64)
        ),
    };
    let finished = is_finished(&transcript);
    let torn = transcript.logs.iter().any(|log| log.torn);
    let lines = format!(
        "{subject}\nceremony: {}\ntranscript: {}{}\n{}{}",
        hex::encode(genesis.digest()),
        hex::encode(transcript.digest()),
        if finished { ", finished" } else { ", still open" },
        if torn { "a log ends in the middle of a record, which was not accepted\n" } else { "" },
        chains_of(&[&transcript]),
    );
    let object = json!({
        "ok": true, "subject": subject, "ceremony": hex::encode(genesis.digest()),
        "transcript": hex::encode(transcript.digest()), "finished": finished,
        "bytes": bytes_of_chains(genesis, &genesis.chains()), "chains": chains_json(&[&transcript]),
    });
    output::result(json, &object, lines.trim_end())
}

/// The name of a chain, for people.
fn title(chain: Chain, transcript: &Transcript) -> String {
    match (chain, transcript.genesis.family()) {
        (Chain::Tau, _) => "tau, alpha, beta".to_owned(),
        (Chain::Phi, _) => "phi, psi".to_owned(),
        (Chain::Segment(number), Some(family)) => {
            let range = family.types_of(number);
            let kappa = if number == 1 { "kappa, " } else { "" };
            match range.len() {
                1 => format!("{kappa}type {}", range.end),
                _ => format!("{kappa}types {} to {}", range.start + 1, range.end),
            }
        }
        (chain, None) => format!("chain {chain}"),
    }
}

/// The contributors of each chain of some transcripts, and those of all chains: names are claims.
fn chains_of(transcripts: &[&Transcript]) -> String {
    let mut lines = String::new();
    let mut everywhere: Option<Vec<&str>> = None;
    for transcript in transcripts {
        for log in &transcript.logs {
            let names = contributors(&log.records);
            let beacons = log.records.iter().filter(|r| r.kind != Kind::Contribution).count();
            let shown: Vec<_> = names.iter().map(|name| one_line(name)).collect();
            lines += &format!(
                "  {:<24} {}{}\n",
                title(log.chain, transcript),
                if shown.is_empty() { "nobody yet".to_owned() } else { shown.join(", ") },
                if beacons > 0 { " (and a beacon)" } else { "" },
            );
            everywhere = Some(match everywhere {
                None => names,
                Some(all) => all.into_iter().filter(|name| names.contains(name)).collect(),
            });
        }
    }
    if let Some(all) = everywhere.filter(|all| !all.is_empty()) {
        let all: Vec<_> = all.into_iter().map(one_line).collect();
        lines += &format!("  in all of these chains:  {}\n", all.join(", "));
    }
    lines + "Names are claims: signed receipts support them."
}

fn chains_json(transcripts: &[&Transcript]) -> Value {
    let logs = transcripts.iter().flat_map(|transcript| &transcript.logs);
    logs.map(|log| {
        let records: Vec<Value> = log.records.iter().map(record_json).collect();
        json!({
            "chain": log.chain.to_string(), "contributors": contributors(&log.records),
            "records": records, "torn": log.torn,
        })
    })
    .collect()
}

fn receipt(command: &CeremonyReceipt, json: bool) -> Result<(), Failure> {
    let transcript = open(&command.ceremony)?;
    transcript.check().map_err(|e| failed(&e))?;
    let all = transcript.logs.iter().flat_map(|log| &log.records);
    let own: Vec<&Record> = all
        .filter(|record| record.kind == Kind::Contribution && record.name == command.name)
        .collect();
    if own.is_empty() {
        let why = format!("nobody with the name '{}' has contributed", one_line(&command.name));
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let receipt = receipt_of(&transcript.genesis.digest(), &command.name, &own);
    let object = json!({ "ok": true, "receipt": receipt });
    output::result(json, &object, receipt.trim_end())
}

/// The receipt for some records.
fn receipt_of(ceremony: &[u8; 32], name: &str, records: &[&Record]) -> String {
    let mut text = format!(
        "hekaton ceremony receipt 1\nceremony {}\nname {name}\nprogram {PROGRAM}\n",
        hex::encode(ceremony)
    );
    for record in records {
        text += &format!(
            "chain {} place {} head {} record {}\n",
            record.chain,
            record.place,
            hex::encode(record.head()),
            hex::encode(record.digest()),
        );
    }
    text
}

/// The longest receipt that is read.
const RECEIPT_LIMIT: u64 = 1 << 20;

/// Checks that all contributions in a receipt are in one of the transcripts.
fn check_receipt(path: &Path, transcripts: &[&Transcript]) -> Result<(), Failure> {
    let text = exit::read_at_most(path, RECEIPT_LIMIT)?;
    let bad = |why: &str| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
    let text = String::from_utf8(text).map_err(|_| bad("is not text"))?;
    let mut lines = text.lines();
    if lines.next() != Some("hekaton ceremony receipt 1") {
        return Err(bad("is not a receipt of a ceremony"));
    }
    let ceremony = lines.next().and_then(|line| line.strip_prefix("ceremony "));
    let ceremony = ceremony.ok_or_else(|| bad("names no ceremony"))?;
    let transcript = transcripts
        .iter()
        .find(|transcript| hex::encode(transcript.genesis.digest()) == ceremony)
        .ok_or_else(|| bad("is for another ceremony"))?;
    let mut found = 0;
    for line in lines.filter(|line| line.starts_with("chain ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let parsed = match words[..] {
            ["chain", chain, "place", place, "head", head, "record", _] => {
                let head = hex::decode(head).ok().and_then(|bytes| bytes.try_into().ok());
                Chain::named(chain).zip(place.parse().ok()).zip(head)
            }
            _ => None,
        };
        let ((chain, place), head) = parsed.ok_or_else(|| bad("has a line that cannot be read"))?;
        includes(transcript, chain, place, &head)
            .map_err(|e| Failure { message: format!("{}: {e}", path.display()), ..failed(&e) })?;
        found += 1;
    }
    match found {
        0 => Err(bad("has no contribution")),
        _ => Ok(()),
    }
}

/// The contributors to the keys of a family, from the logs beside them, after a check of the records: for `inspect` and
/// `keys verify`. Nothing, if the keys do not come from a ceremony.
pub(crate) fn about(
    path: &Path,
    trust: hekaton_core::Trust,
) -> Result<Option<(Value, String)>, Failure> {
    let hekaton_core::Trust::Ceremony(digest) = trust else { return Ok(None) };
    let folder = path.join(IN_KEYS);
    if !folder.exists() {
        let line = "the logs of the ceremony are not beside the keys, so its contributors were not checked";
        return Ok(Some((Value::Null, line.to_owned())));
    }
    let read = |name: &str| -> Result<Transcript, Failure> {
        let transcript = open(&folder.join(name))?;
        verify_records(&transcript).map_err(|e| failed(&e))?;
        Ok(transcript)
    };
    let (of_powers, of_family): (Transcript, Transcript) = (read("powers")?, read("family")?);
    let belongs = of_family.digest() == digest
        && of_family.genesis.family().is_some_and(|family| family.powers == of_powers.digest());
    if !belongs {
        let why =
            format!("{}: the logs are those of another ceremony than the keys'", folder.display());
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let transcripts = [&of_powers, &of_family];
    Ok(Some((chains_json(&transcripts), chains_of(&transcripts))))
}
