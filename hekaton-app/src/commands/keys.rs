//! `hekaton keys`: verifies and lists key stores.

use crate::app::App;
use crate::commands::{ceremony_check, family};
use crate::hints::explain;
use crate::imported;
use crate::opened_keys::{DIGEST_MATTERS, checked, circuit_of, not_covered};
use crate::options::{Keys, KeysList, KeysVerify};
use crate::transcripts;
use hekaton_circuit::{Masking, PreparedCircuit};
use hekaton_core::keys::{check_circuit, stored_constraints};
use hekaton_core::{LocalEngine, ProverKeys, Trust};
use hekaton_storage::{FamilyStore, KeyCheckError, KeyCheckReport, KeyStore, Manifest, check_keys};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(command: &Keys, app: &App, json: bool) -> Result<(), Failure> {
    match command {
        Keys::Derive(command) => family::derive(command, app, json),
        Keys::Verify(command) => verify(command, app, json),
        Keys::List(command) => list(command, json),
    }
}

fn verify(command: &KeysVerify, app: &App, json: bool) -> Result<(), Failure> {
    ceremony_check::prepare(command)?;
    if !FamilyStore::is_one(&command.keys) {
        return verify_store(command, app, json);
    }
    if command.r1cs.is_some() {
        let why = "--r1cs is for keys of imported circuits; these are of a family";
        return Err(Failure::new(exit::USAGE, why));
    }
    let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
    family::verify(command, &engine, app, json)
}

/// Checks the keys of one circuit.
// Above 60 lines, most of which are the report: it names what each of the steps has compared.
fn verify_store(command: &KeysVerify, app: &App, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let path = &command.keys;
    let display = Display::new();
    display.line("checking digests of all files and sections");
    let (manifest, keys) = KeyStore::open(path).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
    // Addresses and multiplicities are those of a layout. Without the circuit there is no layout to
    // compare with.
    let circuit = match app.get(&manifest.circuit) {
        None => None,
        Some(_) => Some(circuit_of(app, path, &manifest)?),
    };
    let prepared = match &circuit {
        Some(circuit) => Some(circuit.prepared().or_fail(exit::BAD_FILE)?),
        None => None,
    };
    let code = match &prepared {
        None => "not compared: this program does not have the circuit",
        Some(_) if manifest.circuit == imported::NAME => {
            "layout and public wires are those of the imported circuit in the keys"
        }
        Some(_) => "constraints, public wires and constants are those of this program's circuit",
    };
    let mut report = check_with_code(&keys, prepared.as_ref(), &engine, path, &display)?;
    if let Some(powers) = &command.powers {
        ceremony_check::check_keys(command, powers, app, &engine, (&display, json))?;
        report = report.all_covered();
    }
    let source = match &command.r1cs {
        Some(source) => {
            display.line("comparing with the source, constraint by constraint");
            Some(compare(source, (path, &manifest, &keys), app)?)
        }
        None => None,
    };
    if manifest.circuit == imported::NAME && source.is_none() {
        // The layout was read from the keys themselves, so comparing with it proves nothing about wiring.
        let what = "addresses and multiplicities, as the layout is the keys' own: pass --r1cs FILE";
        report.not_covered.push(what.to_owned());
        display.line("comparing matrices with the digests in the verifying key");
        for kind in 0..keys.types.len() {
            let found = stored_constraints(&keys, kind);
            found.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)?;
        }
    }
    let (ceremony, contributors) =
        transcripts::of_stored_key(path, &keys.verifying, command.powers.is_some(), app)?;
    if ceremony["is_of_ceremony"] == false {
        let why =
            "not the key of its ceremony: it does not follow from the family in the key store";
        return Err(Failure::new(exit::REFUSED, format!("{}: {why}", path.display())));
    }
    let object = json!({
        "ok": true, "keys": path, "code": code, "source": source,
        "ceremony": ceremony, "ceremony_checked": command.powers.is_some(), "verifying_key_digest": manifest.verifying_key_digest,
        "points": report.points, "relations": report.relations,
        "not_covered": report.not_covered, "not_covered_only_provers": report.only_provers, "bytes": keys.bytes(),
        "seconds": start.elapsed().as_secs_f64(), "trust": manifest.trust,
    });
    let lines = format!(
        "{}: all digests, {} points and {} pairing relations are correct ({} in {})\n\
         {}code: {code}\n{}verifying key digest: {}\n{DIGEST_MATTERS}\ntrust: {}{contributors}",
        path.display(),
        output::count(report.points),
        output::count(report.relations),
        output::bytes(keys.bytes()),
        output::seconds(start.elapsed()),
        not_covered(&report),
        family::whole_check(command),
        manifest.verifying_key_digest,
        manifest.trust,
    ) + &source.map_or_else(String::new, |source| format!("\nsource: {source}"));
    checked(json, path, &report, object, &lines)
}

/// Checks all elements of the keys, and compares the keys with the code of their circuit at the same time, if there is one.
fn check_with_code(
    keys: &ProverKeys,
    prepared: Option<&PreparedCircuit<'_>>,
    engine: &LocalEngine,
    path: &Path,
    display: &Display,
) -> Result<KeyCheckReport, Failure> {
    let masking = Masking::new(keys.verifying.zero_knowledge);
    let wiring = prepared.map(|prepared| prepared.layout().wiring(masking));
    let step = |step: &str| display.line(step);
    // A circuit is synthesized on one thread per type; the check that runs at the same time makes up
    // for that.
    let (compared, checked_keys) = std::thread::scope(|scope| {
        let compared = prepared.map(|prepared| {
            display.line("comparing with the circuit's code");
            scope.spawn(|| check_circuit(prepared, keys, engine, engine.threads()))
        });
        let report = check_keys(keys, wiring.as_ref(), engine, step);
        (compared.map(|compared| compared.join()), report)
    });
    match compared {
        // A comparison that panicked has compared nothing, and must not pass for one that found no
        // difference.
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        Some(Ok(compared)) => {
            compared.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)?
        }
        None => {}
    }
    checked_keys.map_err(|e| match e {
        KeyCheckError::Randomness(_) => Failure::new(exit::FAILED, e),
        e => Failure::new(exit::BAD_FILE, format!("{}: {e}", path.display())),
    })
}

/// Compares the constraints in keys of an imported circuit with those of its source.
fn compare(
    source: &Path,
    keys: (&Path, &Manifest, &ProverKeys),
    app: &App,
) -> Result<String, Failure> {
    if keys.1.circuit != imported::NAME {
        let why = "--r1cs is for keys of imported circuits; these are of a circuit with code";
        return Err(Failure::new(exit::USAGE, why));
    }
    app.imports()?.compare_keys(source, keys)
}

fn list(command: &KeysList, json: bool) -> Result<(), Failure> {
    let mut found = Vec::new();
    for path in &command.paths {
        let before = found.len();
        let is_store = |p: &Path| p.join("manifest.json").is_file() || FamilyStore::is_one(p);
        if is_store(path) {
            found.push(path.clone());
        } else {
            let failure = |e: std::io::Error| {
                Failure::new(exit::BAD_FILE, format!("{}: {e}", path.display()))
            };
            let entries = std::fs::read_dir(path).map_err(failure)?;
            let mut below: Vec<PathBuf> =
                entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(failure)?;
            below.retain(|p| is_store(p));
            // File systems list a directory in any order, and two lists of the same keys should be
            // equal.
            below.sort();
            found.extend(below);
        }
        if found.len() == before {
            output::say(format!("{}: no key stores found", path.display()));
        }
    }
    let mut lines = format!(
        "{:>11} {:>14} {:>12}  key store: circuit",
        "subcircuits", "constraints", "proving keys"
    );
    let mut damaged = false;
    let mut objects = Vec::new();
    for path in &found {
        // A damaged store does not hide the others.
        match entry(path) {
            Ok((line, object)) => {
                lines += &line;
                objects.push(object);
            }
            Err(e) => {
                lines += &format!("\n{:>39}  {}: {}", "DAMAGED", name(path), output::one_line(&e));
                damaged = true;
                objects.push(json!({ "path": path, "error": e }));
            }
        }
    }
    if found.is_empty() {
        lines.clear();
    }
    output::result(json, &json!({ "ok": !damaged, "keys": Value::Array(objects) }), &lines)?;
    // The list is printed in any case, so no error message follows it.
    if damaged { std::process::exit(exit::BAD_FILE.into()) } else { Ok(()) }
}

/// The line and the object of a key store or a key family. Test keys are recognized by the key itself, because
/// anyone can edit a manifest.
fn entry(path: &Path) -> Result<(String, Value), String> {
    if FamilyStore::is_one(path) {
        let (manifest, family) = FamilyStore::open(path).map_err(|e| e.to_string())?;
        let bytes = family::bytes_of(&manifest);
        let most = format!("to {}", output::count(manifest.max_instances as u64));
        let what = [&most, "family", &output::bytes(bytes)];
        let circuit = (manifest.circuit.as_str(), &manifest.parameters);
        let line = line(path, what, circuit, family.header().trust);
        return Ok((line, json!({ "path": path, "family": manifest, "proving_key_bytes": bytes })));
    }
    let (manifest, verifying) = KeyStore::summary(path).map_err(|e| e.to_string())?;
    let bytes = manifest.types.iter().fold(0, |sum: u64, t| sum.saturating_add(t.bytes));
    let instances = output::count(manifest.instances as u64);
    let what = [&instances, &*output::count(manifest.total_constraints()), &*output::bytes(bytes)];
    let line = line(path, what, (&manifest.circuit, &manifest.parameters), verifying.trust);
    Ok((line, json!({ "path": path, "manifest": manifest, "proving_key_bytes": bytes })))
}

/// The name of a directory that was found on disk.
fn name(path: &Path) -> String {
    output::one_line(&path.display().to_string()).into_owned()
}

fn line(
    path: &Path,
    [instances, constraints, bytes]: [&str; 3],
    (circuit, parameters): (&str, &Value),
    trust: Trust,
) -> String {
    format!(
        "\n{instances:>11} {constraints:>14} {bytes:>12}  {}: {}{}",
        name(path),
        imported::describe(circuit, parameters),
        if trust == Trust::InsecureSeed { " (TEST KEYS)" } else { "" },
    )
}
