//! `hekaton ceremony`: setups that many parties make together.

use super::ceremony_audit;
use super::family::remove_on_interrupt;
use crate::app::App;
use crate::commands::programs;
use crate::hints::explain;
use crate::machine;
use crate::options::{Ceremony, CeremonyFinish, CeremonyNew};
use crate::transcripts::{IN_KEYS, circuit_of_genesis, types_of, types_of_genesis};
use hekaton_ceremony::{
    CeremonyError, Coordinator, Family, FamilyGenesis, FamilyPlan, Powers, PowersFile, Subject,
    Transcript, bytes_of_chains, chains_text, domain_for, is_finished, new_family, new_powers,
    new_powers_from, points_of_chains, verify_family, verify_powers,
};
use hekaton_circuit::R1cs;
use hekaton_circuit::named::InputFile;
use hekaton_core::LocalEngine;
use hekaton_storage::{FamilyManifest, FamilyStore};
use hekaton_terminal::ceremony::{failed, on_threads, open, steps};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use hekaton_terminal::signals;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

pub(crate) fn run(command: &Ceremony, app: &App, json: bool) -> Result<(), Failure> {
    match command {
        Ceremony::New(command) => new(command, app, json),
        Ceremony::Finish(command) => finish(command, app, json),
        Ceremony::Verify(command) => ceremony_audit::verify(command, app, json),
        Ceremony::Other(arguments) => {
            let purpose = "this command of `hekaton ceremony` is in";
            programs::run("hekaton-ceremony", "hekaton-ceremony-cli", purpose, arguments, json)
        }
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
    let display = Display::new();
    on_threads(&command.threads, || {
        let begun = |path: &Path| remove_beginning(path, json);
        let (out, instances, beacon) = (&command.out, subcircuits as usize, &command.beacon);
        match &command.powers_from {
            None => new_powers(out, domain, instances, beacon, &begun),
            Some(file) => {
                let import = PowersFile { path: file, expect: command.expect };
                let mut say = |step: &str| display.line(step);
                new_powers_from(out, &import, domain, instances, beacon, &begun, &mut say)
            }
        }
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

/// Removes the unfinished directory of a ceremony on Ctrl-C.
fn remove_beginning(unfinished: &Path, json: bool) {
    let unfinished = unfinished.to_owned();
    let last = move || unfinished.exists() && std::fs::remove_dir_all(&unfinished).is_ok();
    let (last, ended) = (Box::new(last), "interrupted: nothing was written");
    let handling = signals::Handling { cancellation: None, quiet: false, last, ended, json };
    if let Err(failure) = handling.start() {
        output::say(format_args!("warning: Ctrl-C will leave files behind: {}", failure.message));
    }
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
            let sample = match command.no_trial {
                true => None,
                false => sample_of(genesis, app)?,
            };
            let (store, manifest) =
                engine.install(|| write_keys(&coordinator, &of_powers, types, store, &display))?;
            match &sample {
                Some(sample) => {
                    display.line("a trial: a proof under the keys, and its verification");
                    trial(&store.unfinished_path(), sample)?;
                }
                None if command.no_trial => {}
                None => {
                    display.line("without a trial of the keys: the circuit has no sample that fits")
                }
            }
            // Before the keys get their name, so that this can be run again after a crash.
            coordinator.finish().map_err(|e| failed(&e))?;
            store.publish().map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
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
        chains_text(&[&transcript]),
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
) -> Result<(FamilyStore, FamilyManifest), Failure> {
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
    let manifest = store.complete(&key).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    Ok((store, manifest))
}

/// The circuit's sample input, if it fits. Programs of the machine have none.
fn sample_of(genesis: &FamilyGenesis, app: &App) -> Result<Option<InputFile>, Failure> {
    if genesis.circuit == machine::NAME {
        return Ok(None);
    }
    let circuit = circuit_of_genesis(genesis, app)?;
    let sample = circuit.sample();
    let instances = circuit.on_input(&sample, |prepared| prepared.layout().instances());
    let fits = instances.or_fail(exit::FAILED)? <= genesis.instances;
    Ok(fits.then_some(sample))
}

/// Proves an input under keys, and verifies the proof, with the commands that users of the keys run.
fn trial(keys: &Path, sample: &InputFile) -> Result<(), Failure> {
    let place = tempfile::tempdir().or_fail(exit::FAILED)?;
    let (input, proof) = (place.path().join("sample"), place.path().join("proof"));
    std::fs::write(&input, sample.read().or_fail(exit::FAILED)?).or_fail(exit::FAILED)?;
    let run = |arguments: &[&OsStr]| -> Result<String, Failure> {
        let program = std::env::current_exe().or_fail(exit::FAILED)?;
        let output = Command::new(program).args(arguments).output().or_fail(exit::FAILED)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => {
                // Only a verdict is about the keys.
                let (code, what) = match output.status.code() {
                    Some(1) => (exit::REFUSED, "the keys fail their trial"),
                    _ => (exit::FAILED, "the trial of the keys did not come to an end"),
                };
                let why = String::from_utf8_lossy(&output.stderr);
                Err(Failure::new(
                    code,
                    format!("{what} (--no-trial leaves it out): {}", why.trim_end()),
                ))
            }
        }
    };
    let text = |text: &'static str| OsStr::new(text);
    let (keys, input, proof) = (keys.as_os_str(), input.as_os_str(), proof.as_os_str());
    run(&[text("prove"), input, text("--keys"), keys, text("--proof"), proof])?;
    let public = run(&[text("hash"), input, text("--keys"), keys])?;
    let verify = [text("verify"), proof, text("--key"), keys, text("--for"), input];
    run(&[&verify[..], &[text("--public"), OsStr::new(&public)]].concat()).map(drop)
}
