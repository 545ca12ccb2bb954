//! `hekaton ceremony`: setups that many parties make together.

use super::ceremony_audit;
use super::family::remove_on_interrupt;
use crate::app::App;
use crate::hints::explain;
use crate::machine;
use crate::options::{
    Ceremony, CeremonyAdd, CeremonyBeacon, CeremonyContribute, CeremonyFetch, CeremonyFinish,
    CeremonyNew, CeremonyStatus,
};
use crate::transcripts::{
    IN_KEYS, PROGRAM, chains_json, chains_of, failed, on_threads, open, receipt_of, record_json,
    steps, subject_of, types_of, types_of_genesis,
};
use hekaton_ceremony::{
    CeremonyError, Chain, Contributor, Coordinator, Family, FamilyPlan, Kind, MAX_NAME, Powers,
    Record, Response, Seed, Subject, Transcript, bytes_of_chains, contribute, domain_for,
    is_finished, is_name, new_family, new_powers, points_of_chains, verify_family, verify_powers,
};
use hekaton_circuit::R1cs;
use hekaton_core::LocalEngine;
use hekaton_files::is_temporary;
use hekaton_storage::FamilyStore;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, one_line};
use hekaton_terminal::progress::Display;
use hekaton_terminal::signals;
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(command: &Ceremony, app: &App, json: bool) -> Result<(), Failure> {
    match command {
        Ceremony::New(command) => new(command, app, json),
        Ceremony::Contribute(command) => contribute_to(command, json),
        Ceremony::Fetch(command) => fetch(command, json),
        Ceremony::Add(command) => add(command, json),
        Ceremony::Beacon(command) => beacon(command, json),
        Ceremony::Finish(command) => finish(command, app, json),
        Ceremony::Verify(command) => ceremony_audit::verify(command, app, json),
        Ceremony::Status(command) => status(command, json),
        Ceremony::Receipt(command) => ceremony_audit::receipt(command, json),
    }
}

fn new(command: &CeremonyNew, app: &App, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let made = match (&command.powers, &command.circuit.circuit) {
        (Some(powers), Some(name)) => begin_family(command, name, powers, app, json)?,
        (None, None) => begin_powers(command, json)?,
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
fn begin_powers(command: &CeremonyNew, json: bool) -> Result<Transcript, Failure> {
    let (Some(rows), Some(subcircuits)) = (command.rows, command.subcircuits) else {
        let why = "powers need --rows and --subcircuits; a family needs a circuit and --powers";
        return Err(Failure::new(exit::USAGE, why));
    };
    let domain = domain_for(rows as usize);
    on_threads(&command.threads, || {
        let begun = |path: &Path| remove_beginning(path, json);
        new_powers(&command.out, domain, subcircuits as usize, &command.beacon, &begun)
    })
}

/// The circuit of a family, with the parameters that its circuits share and their largest number of subcircuits.
#[allow(clippy::cast_possible_truncation, reason = "the option is at most 2^32")]
fn begin_family(
    command: &CeremonyNew,
    name: &str,
    powers: &Path,
    app: &App,
    json: bool,
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
    // Before the powers are checked, which may take minutes.
    if let Subject::Powers(powers) = &transcript.genesis.subject {
        let domains = types.iter().map(|r1cs| domain_for(r1cs.constraints()));
        powers.fits(domains.fold(1, usize::max), plan.instances).map_err(|e| failed(&e))?;
    }
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
        let begun = |path: &Path| remove_beginning(path, json);
        let mut say = |step: &str| display.line(step);
        new_family(&command.out, plan, &powers, &types, &begun, &mut say)
    })
}

/// Ends the process on Ctrl-C, after `last`, which returns `false` if there is nothing left to interrupt.
fn on_interrupt(last: impl Fn() -> bool + Send + 'static, json: bool) -> Result<(), Failure> {
    let ended = "interrupted: nothing was written";
    let last = Box::new(last);
    signals::Handling { cancellation: None, quiet: false, last, ended, json }.start()
}

/// Removes the unfinished directory of a ceremony on Ctrl-C.
fn remove_beginning(unfinished: &Path, json: bool) {
    let unfinished = unfinished.to_owned();
    let last = move || unfinished.exists() && std::fs::remove_dir_all(&unfinished).is_ok();
    if let Err(failure) = on_interrupt(last, json) {
        output::say(format_args!("warning: Ctrl-C will leave files behind: {}", failure.message));
    }
}

/// The failure for a file that would be overwritten.
fn in_the_way(path: &Path) -> Failure {
    let why = format!("{}: exists: choose another file, or remove it", path.display());
    Failure::new(exit::BAD_FILE, why)
}

/// Removes the unfinished file of a contribution. Returns `false` if the contribution is there.
fn remove_unfinished(out: &Path) -> bool {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let files = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let own = out.file_name().map(|name| format!("{}.", name.to_string_lossy()));
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let rest = own.as_ref().and_then(|own| name.strip_prefix(own));
        if rest.is_some_and(|rest| !rest.trim_end_matches(".part").contains('.'))
            && is_temporary(&name)
        {
            // What cannot be removed has products of secrets that nobody will use, and no secret.
            let _ = std::fs::remove_file(file.path());
        }
    }
    !out.exists()
}

fn contribute_to(command: &CeremonyContribute, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let transcript = open(&command.ceremony)?;
    let digest = transcript.genesis.digest();
    if let Some(expected) = command.expect.filter(|expected| *expected != digest) {
        let (found, expected) = (hex::encode(digest), hex::encode(expected));
        let why = format!("this is ceremony {found}, but --expect requires {expected}");
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    if is_finished(&transcript) {
        let why = format!("{}: the ceremony is finished", command.ceremony.display());
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let name = &command.name;
    if !is_name(name) {
        let why = format!("--name: expected 1 to {MAX_NAME} bytes without invisible characters");
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
    if command.out.exists() {
        return Err(in_the_way(&command.out));
    }
    let out = command.out.clone();
    on_interrupt(move || remove_unfinished(&out), json)?;
    protect_memory();
    let text = ask(command, &transcript, &chains)?;
    let display = Display::new();
    let contributor =
        Contributor { name, program: PROGRAM, kind: Kind::Contribution, chains: &chains };
    // The seed is on the pool's stacks only, which are wiped.
    let records = on_threads(&command.threads, || {
        let seed = Seed::draw(&text)?;
        contribute(&transcript, &contributor, seed, &command.out, &mut |step| {
            display.line(&format!("multiplying {step}"));
        })
    })?;
    drop(text);
    let receipt = receipt_of(&digest, name, &records.iter().collect::<Vec<_>>());
    let mut file = command.out.clone().into_os_string();
    file.push(".receipt");
    output::write(Path::new(&file), receipt.as_bytes())?;
    let object = json!({
        "ok": true, "contribution": command.out.display().to_string(), "ceremony": hex::encode(digest),
        "receipt": receipt,
        "seconds": start.elapsed().as_secs_f64(),
    });
    let lines = format!(
        "contribution in {}, made in {}; send it to the coordinator. The secrets are wiped.\n\
         Once it is accepted, sign {}.receipt with a key by which people know you, and publish it:\n\n{receipt}",
        command.out.display(),
        output::seconds(start.elapsed()),
        command.out.display(),
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
    // The end of the input, Ctrl-D, is a refusal.
    if std::io::stdin().lock().read_line(&mut typed).or_fail(exit::FAILED)? == 0 {
        return Err(Failure::new(exit::INTERRUPTED, "nothing was written"));
    }
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
    if command.out.exists() {
        return Err(in_the_way(&command.out));
    }
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
    let kind = Kind::Beacon { value: command.value.0.clone(), exponent: command.exponent };
    let records = on_threads(&command.threads, || {
        let mut coordinator = Coordinator::open(&command.ceremony)?;
        let chains = coordinator.transcript.genesis.chains();
        let contributor = Contributor { name: "beacon", program: PROGRAM, kind, chains: &chains };
        let incoming = command.ceremony.join("incoming");
        std::fs::create_dir_all(&incoming)
            .map_err(|source| CeremonyError::Io { path: incoming.clone(), source })?;
        let out = incoming.join("beacon");
        let seed = Seed::draw("")?;
        contribute(&coordinator.transcript, &contributor, seed, &out, &mut |step| {
            display.line(&format!("multiplying {step}"));
        })?;
        let response = Response::open(&out, &coordinator.transcript.genesis)?;
        coordinator.add_beacon(&response, &mut steps(&display))?;
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
            let manifest =
                engine.install(|| write_keys(&coordinator, &of_powers, types, store, &display))?;
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
    coordinator: &Coordinator,
    of_powers: &Transcript,
    types: Vec<R1cs>,
    mut store: FamilyStore,
    display: &Display,
) -> Result<hekaton_storage::FamilyManifest, Failure> {
    let of_family = &coordinator.transcript;
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
    // Before the keys get their name, so that this can be run again after a crash.
    coordinator.finish().map_err(|e| failed(&e))?;
    store.finish(&key).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)
}

fn status(command: &CeremonyStatus, json: bool) -> Result<(), Failure> {
    let transcript = open(&command.ceremony)?;
    transcript.check().map_err(|e| failed(&e))?;
    let genesis = &transcript.genesis;
    let subject = subject_of(genesis);
    let finished = is_finished(&transcript);
    let torn = transcript.logs.iter().any(|log| log.torn);
    let lines = format!(
        "{subject}\nceremony: {}\ntranscript: {}{}\n{}{}",
        hex::encode(genesis.digest()),
        hex::encode(transcript.digest()),
        if finished { ", finished" } else { ", still open" },
        if torn { "a log ends in the middle of a record, which does not count\n" } else { "" },
        chains_of(&[&transcript]),
    );
    let object = json!({
        "ok": true, "subject": subject, "ceremony": hex::encode(genesis.digest()),
        "transcript": hex::encode(transcript.digest()), "finished": finished,
        "bytes": bytes_of_chains(genesis, &genesis.chains()), "chains": chains_json(&[&transcript]),
    });
    output::result(json, &object, lines.trim_end())
}
