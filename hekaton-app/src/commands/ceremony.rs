//! `hekaton ceremony`: setups that many parties make together.

use super::ceremony_check::{CeremonyKeys, Types};
use super::{ceremony_audit, ceremony_finish};
use crate::app::App;
use crate::application::OpenCircuit;
use crate::imported::{self, is_path};
use crate::options::{Ceremony, CeremonyNew, Expected};
use crate::programs;
use crate::transcripts::types_of;
use hekaton_ceremony::{
    FamilyPlan, PowersFile, Subject, Transcript, bytes_of_chains, domain_for, is_finished,
    new_family, new_powers, new_powers_after, new_powers_from, points_of_chains, verify_powers,
};
use hekaton_circuit::named::ParameterMap;
use hekaton_terminal::ceremony::{failed, open, steps};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use hekaton_terminal::unfinished::Unfinished;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(command: &Ceremony, app: &App, json: bool) -> Result<(), Failure> {
    match command {
        Ceremony::New(command) => new(command, app, json),
        Ceremony::Finish(command) => ceremony_finish::finish(command, app, json),
        Ceremony::Verify(command) => ceremony_audit::verify(command, app, json),
        Ceremony::Other(arguments) => {
            let purpose = "this command of `hekaton ceremony` is in";
            programs::run("hekaton-ceremony", "ceremony", purpose, arguments, json)
        }
    }
}

fn new(command: &CeremonyNew, app: &App, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let made = match (&command.powers, &command.circuit.circuit) {
        (Some(powers), Some(name)) => begin_family(command, name, powers, app, json)?,
        (None, None) => begin_powers(command, json)?,
        (Some(_), None) => {
            let why = format!("name the circuit of the family; this program has {}", app.known());
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
    let unfinished = Unfinished::start("interrupted: nothing was written", json)?;
    command.threads.install(|| {
        let begun = |path: &Path| unfinished.result(path);
        let (out, instances, beacon) = (&command.out, subcircuits as usize, &command.beacon);
        let mut say = |step: &str| display.line(step);
        let Some(from) = &command.powers_from else {
            return new_powers(out, domain, instances, beacon, &begun).map_err(|e| failed(&e));
        };
        let made = if from.is_dir() {
            let earlier = earlier_powers(from, command.expect)?;
            new_powers_after(out, &earlier, domain, instances, beacon, &begun, &mut say)
        } else {
            let expect = match command.expect {
                None => None,
                Some(Expected::File(digest)) => Some(digest),
                Some(Expected::Transcript(_)) => {
                    let why =
                        "--expect needs 128 hexadecimal digits for a file: its BLAKE2b digest";
                    return Err(Failure::new(exit::USAGE, why));
                }
            };
            let import = PowersFile { path: from, expect };
            new_powers_from(out, &import, domain, instances, beacon, &begun, &mut say)
        };
        made.map_err(|e| failed(&e))
    })?
}

/// Opens finished powers with whose end others are to begin.
fn earlier_powers(path: &Path, expect: Option<Expected>) -> Result<Transcript, Failure> {
    let earlier = open(path)?;
    match expect {
        None => Ok(earlier),
        Some(Expected::Transcript(expected)) if expected == earlier.digest() => Ok(earlier),
        Some(Expected::Transcript(expected)) => {
            let why = format!(
                "{}: its transcript digest is {}, but --expect requires {}",
                path.display(),
                hex::encode(earlier.digest()),
                hex::encode(expected)
            );
            Err(Failure::new(exit::BAD_FILE, why))
        }
        Some(Expected::File(_)) => {
            let why = "--expect needs 64 hexadecimal digits for a ceremony: its transcript digest";
            Err(Failure::new(exit::USAGE, why))
        }
    }
}

/// A circuit for a ceremony: its name, the circuit, the parameters that all circuits of the family share, and the largest number of
/// subcircuits.
type Chosen = (String, Box<dyn OpenCircuit>, ParameterMap, usize);

/// The family of a circuit of this program, or of the machine.
#[allow(clippy::cast_possible_truncation, reason = "the option is at most 2^32")]
fn family_of(command: &CeremonyNew, name: &str, app: &App) -> Result<Chosen, Failure> {
    let mut given = command.circuit.parameters.map();
    if let Some(application) = app.get(name) {
        application.complete(&mut given).or_fail(exit::USAGE)?;
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
    if command.r1cs.is_some() {
        let why = "--r1cs is for imported circuits; this one has code";
        return Err(Failure::new(exit::USAGE, why));
    }
    let (family, parameters) = app.family(name, &given, bytes)?;
    let instances = command.subcircuits.map_or(family.instances, |n| n as usize);
    Ok((name.to_owned(), family.circuit, parameters, instances))
}

/// An imported circuit: a family with one layout.
fn imported_circuit(command: &CeremonyNew, app: &App) -> Result<Chosen, Failure> {
    if command.up_to.is_some() || command.subcircuits.is_some() {
        let why = "--up-to and --subcircuits are not for imported circuits, which have one size";
        return Err(Failure::new(exit::USAGE, why));
    }
    if command.extends.is_some() {
        let why = "--extends is not for imported circuits, which have one layout";
        return Err(Failure::new(exit::USAGE, why));
    }
    let (name, circuit, parameters) = app.choose(&command.circuit, None)?;
    imported::check(&*circuit, command.r1cs.as_deref())?;
    let instances = {
        let prepared =
            circuit.prepared().map_err(|e| format!("layout: {e}")).or_fail(exit::USAGE)?;
        prepared.layout().instances()
    };
    Ok((name, circuit, parameters, instances))
}

fn begin_family(
    command: &CeremonyNew,
    name: &str,
    powers: &Path,
    app: &App,
    json: bool,
) -> Result<Transcript, Failure> {
    let (circuit_name, circuit, parameters, instances) = match is_path(name) {
        true => imported_circuit(command, app)?,
        false => family_of(command, name, app)?,
    };
    let zero_knowledge = !command.no_zero_knowledge;
    let (types, buses) = types_of(&*circuit, zero_knowledge)?;
    let plan = FamilyPlan {
        circuit: circuit_name,
        parameters: Value::Object(parameters).to_string(),
        zero_knowledge,
        instances,
        buses,
        segment_points: command.segment_points,
        beacon: command.beacon.clone(),
    };
    let extends = command.extends.as_deref().map(CeremonyKeys::open).transpose()?;
    let types = Types::without(types, extends.as_ref(), app)?;
    if types.own.is_empty() {
        let why = "the family that is to be extended has all types of the circuit";
        return Err(Failure::new(exit::USAGE, why));
    }
    let transcript = open(powers)?;
    // Before the powers are checked, which may take minutes.
    if let Subject::Powers(powers) = &transcript.genesis.subject {
        let domains = types.own.iter().map(|r1cs| domain_for(r1cs.constraints()));
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
    let Types { old, own } = types;
    let unfinished = Unfinished::start("interrupted: nothing was written", json)?;
    command.threads.install(|| {
        let powers = verify_powers(&transcript, &mut steps(&display)).map_err(|e| failed(&e))?;
        let check = |keys: CeremonyKeys| keys.check(powers.clone(), old, &unfinished, &display);
        let extended = extends.map(check).transpose()?;
        let family = extended.as_ref().map(|whole| &whole.family);
        let begun = |path: &Path| unfinished.result(path);
        let mut say = |step: &str| display.line(step);
        new_family(&command.out, plan, &powers, family, &own, &begun, &mut say)
            .map_err(|e| failed(&e))
    })?
}
