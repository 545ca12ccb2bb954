//! Key families: `hekaton setup --up-to`, `hekaton vm setup` and `hekaton keys derive`.

use super::ceremony_check;
use crate::app::App;
use crate::application::OpenCircuit;
use crate::family::{OpenedFamily, shared_parameters};
use crate::hints::explain;
use crate::opened_keys::{DIGEST_MATTERS, checked, not_covered};
use crate::options::{KeysDerive, KeysVerify, NewKeys, Setup};
use crate::transcripts;
use hekaton_circuit::named::{Family, ParameterMap};
use hekaton_core::keys::check_family_circuit;
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{FamilyKey, LocalEngine, SetupError, SetupOptions, setup_family};
use hekaton_storage::{
    FamilyManifest, FamilyStore, KeyCheckError, KeyStore, KeyStoreError, check_family,
};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use hekaton_terminal::unfinished::Unfinished;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// Removes the directory of unfinished keys on Ctrl-C.
pub(crate) fn remove_on_interrupt(unfinished: &Path, json: bool) -> Result<Unfinished, Failure> {
    let keys = Unfinished::start("interrupted: no keys were written", json)?;
    keys.result(unfinished);
    Ok(keys)
}

/// Warns that keys with trapdoors from a seed are for tests.
pub(crate) fn warn_of_seed() {
    output::say(
        "WARNING: trapdoors derived from a seed: anyone can forge proofs under these keys; for tests \
         only",
    );
}

/// The setup of a family, for inputs of up to `bytes` bytes.
pub(crate) fn setup(command: &Setup, bytes: u64, app: &App, json: bool) -> Result<(), Failure> {
    let name = app.name_of(&command.circuit)?;
    let (family, parameters) = app.family(&name, &command.circuit.parameters.map(), bytes)?;
    let serves = |most: &str| {
        let inputs = output::bytes(bytes);
        format!("keys for every {name} of up to {most} subcircuits (inputs of up to {inputs})")
    };
    setup_of(&command.new, &name, &family, &parameters, &serves, json)
}

/// Makes the keys of a family, which `serves` describes by the number of its subcircuits.
///
/// # Errors
/// Fails if the directory is in use or cannot be written, or if the setup fails.
pub fn setup_of(
    new: &NewKeys,
    name: &str,
    family: &Family<Box<dyn OpenCircuit>>,
    parameters: &ParameterMap,
    serves: &dyn Fn(&str) -> String,
    json: bool,
) -> Result<(), Failure> {
    let start = Instant::now();
    let prepared =
        family.circuit.prepared().map_err(|e| format!("layout: {e}")).or_fail(exit::USAGE)?;
    let mut options =
        SetupOptions::new(name).parameters(parameters).zero_knowledge(!new.no_zero_knowledge);
    if let Some(seed) = new.insecure_seed {
        options = options.insecure_seed(seed);
        warn_of_seed();
    }
    let engine = LocalEngine::new(new.threads.threads).or_fail(exit::FAILED)?;
    let mut store = FamilyStore::create(&new.keys).or_fail(exit::BAD_FILE)?;
    remove_on_interrupt(&store.unfinished_path(), json)?;
    let display = Display::new();
    let failed = |e: SetupError<KeyStoreError>| match &e {
        SetupError::Keys(_) | SetupError::Sink(_) => Failure::new(exit::BAD_FILE, explain(&e)),
        e => Failure::new(exit::FAILED, e),
    };
    // Written one by one: all proving keys together may not fit in memory.
    let keep = |key: ProvingKey| store.proving_key(&key);
    let key = setup_family(&prepared, family.instances, &engine, &options, keep, |step| {
        display.line(step);
    })
    .map_err(failed)?;
    display.line("writing the family key");
    let manifest = store.finish(&key).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let bytes_of_types = bytes_of(&manifest);
    let lines = format!(
        "{}{} in {}: {} of proving keys, {} for the family, generated in {}\nfamily digest: {}\n\
         trust: {}",
        table(&manifest),
        serves(&output::count(manifest.max_instances as u64)),
        new.keys.display(),
        output::bytes(bytes_of_types),
        output::bytes(key.bytes()),
        output::seconds(start.elapsed()),
        manifest.family_digest,
        manifest.trust,
    );
    let object = json!({
        "ok": true, "keys": new.keys, "manifest": manifest,
        "proving_key_bytes": bytes_of_types, "family_key_bytes": key.bytes(),
        "seconds": start.elapsed().as_secs_f64(),
    });
    output::result(json, &object, &lines)
}

/// The bytes of all proving keys of a family, as its manifest states them.
pub(crate) fn bytes_of(manifest: &FamilyManifest) -> u64 {
    // The manifest may come from anyone, and this is only shown.
    manifest.types.iter().fold(0, |sum, t| sum.saturating_add(t.bytes))
}

/// The types of a family.
fn table(manifest: &FamilyManifest) -> String {
    let mut lines = format!("{:<16} {:>12} {:>8} {:>10}\n", "type", "constraints", "slots", "key");
    for t in &manifest.types {
        let (constraints, bytes) = (output::count(t.constraints as u64), output::bytes(t.bytes));
        lines += &format!("{:<16} {constraints:>12} {:>8} {bytes:>10}\n", t.name, t.slots);
    }
    lines
}

/// Derives the keys of one circuit.
pub(crate) fn derive(command: &KeysDerive, app: &App, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let input = command.file.as_deref().map(exit::input).transpose()?;
    let given = command.parameters.map();
    let family = OpenedFamily::open(&command.family)?;
    let circuit = family.circuit(app, &given, input.as_ref())?;
    let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
    // Only now that the family, the parameters and the input are accepted: a wrong command leaves
    // no unfinished directory behind.
    let store = KeyStore::create(&command.out).or_fail(exit::BAD_FILE)?;
    if let Some(unfinished) = store.unfinished_path() {
        remove_on_interrupt(&unfinished, json)?;
    }
    let key = circuit.derive_into(&engine, store)?;
    let digest = hex::encode(key.digest());
    let lines = format!(
        "keys for {} subcircuits of {}{} in {}, derived in {}\nverifying key digest: {digest}\n\
         family digest: {}\ntrust: {}",
        output::count(key.instances),
        output::one_line(&family.manifest.circuit),
        circuit.options,
        command.out.display(),
        output::seconds(start.elapsed()),
        family.manifest.family_digest,
        key.trust.statement(),
    );
    let object = json!({
        "ok": true, "keys": command.out, "family": command.family,
        "parameters": circuit.parameters, "instances": key.instances,
        "verifying_key_digest": digest, "family_digest": family.manifest.family_digest,
        "seconds": start.elapsed().as_secs_f64(), "trust": key.trust.statement(),
    });
    output::result(json, &object, &lines)
}

/// Checks the keys of a family from elsewhere.
// Above 60 lines, most of which are the report: it names what each of the steps has compared.
pub(crate) fn verify(
    command: &KeysVerify,
    engine: &LocalEngine,
    app: &App,
    json: bool,
) -> Result<(), Failure> {
    let path = command.keys.as_path();
    let start = Instant::now();
    let display = Display::new();
    display.line("checking digests of all files and sections");
    let opened = FamilyStore::open(path);
    let (manifest, family) = opened.map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let types = FamilyStore::proving_keys(path, &manifest)
        .map_err(|e| explain(&e))
        .or_fail(exit::BAD_FILE)?;
    let inside = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let mut report =
        check_family(&family, &types, engine, |step| display.line(step)).map_err(|e| match e {
            KeyCheckError::Randomness(_) => Failure::new(exit::FAILED, e),
            e => Failure::new(exit::BAD_FILE, inside(&e)),
        })?;
    let code = match app.get(&manifest.circuit) {
        None => "not compared: this program does not have the circuit",
        Some(application) => {
            display.line("comparing with the circuit's code");
            // The types of a family do not depend on its bound, so any size will do.
            let family_of_code = application.family(&shared_parameters(&manifest)?, 0);
            let (template, _) = family_of_code.map_err(|e| explain(&*e)).or_fail(exit::BAD_FILE)?;
            let prepared = template.circuit.prepared().or_fail(exit::BAD_FILE)?;
            check_family_circuit(&prepared, &family, &types, engine, engine.threads())
                .map_err(|e| inside(&e))
                .or_fail(exit::BAD_FILE)?;
            "constraints are those of this program's circuit"
        }
    };
    if let Some(powers) = &command.powers {
        ceremony_check::check_keys(command, powers, app, engine, (&display, json))?;
        report = report.all_covered();
    }
    let bytes = family.bytes() + types.iter().map(ProvingKey::bytes).sum::<u64>();
    let (chains, contributors) = of_ceremony(path, &family, command.powers.is_some())?;
    let lines = format!(
        "{}: all digests, {} points and {} pairing relations are correct ({} in {})\n{}code: {code}\n{}\
         family digest: {}\n{DIGEST_MATTERS}\ntrust: {}{contributors}",
        path.display(),
        output::count(report.points),
        output::count(report.relations),
        output::bytes(bytes),
        output::seconds(start.elapsed()),
        not_covered(&report),
        whole_check(command),
        manifest.family_digest,
        manifest.trust,
    );
    let object = json!({
        "ok": true, "keys": path, "code": code, "ceremony_checked": command.powers.is_some(), "family_digest": manifest.family_digest,
        "points": report.points, "relations": report.relations,
        "not_covered": report.not_covered, "not_covered_only_provers": report.only_provers, "bytes": bytes,
        "seconds": start.elapsed().as_secs_f64(), "trust": manifest.trust, "ceremony": chains,
    });
    checked(json, path, &report, object, &lines)
}

/// The line of a report about the whole check of a ceremony.
pub(crate) fn whole_check(command: &KeysVerify) -> &'static str {
    match command.powers {
        Some(_) => "ceremony: correct, all records and every point of the keys\n",
        None => "",
    }
}

/// Describes a family, after a check of `family.key` against the manifest.
pub(crate) fn inspect(path: &Path) -> Result<(Value, String), Failure> {
    let opened = FamilyStore::open(path);
    let (manifest, family) = opened.map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let (chains, contributors) = of_ceremony(path, &family, false)?;
    let lines = format!(
        "key family for circuit {} {}\nsubcircuits     at most {}\nzero knowledge  {}\n\
         family digest   {}\nfamily key      {}\nwritten by      {}\n{}trust: {}{contributors}",
        output::one_line(&manifest.circuit),
        output::one_line(&manifest.parameters.to_string()),
        output::count(manifest.max_instances as u64),
        if manifest.zero_knowledge { "yes" } else { "NO" },
        manifest.family_digest,
        output::bytes(family.bytes()),
        output::one_line(&manifest.written_by),
        table(&manifest),
        manifest.trust,
    );
    let object =
        json!({ "ok": true, "kind": "key family", "manifest": manifest, "ceremony": chains });
    Ok((object, lines))
}

/// The contributors to keys that come from a ceremony, as JSON and as lines.
fn of_ceremony(
    path: &Path,
    family: &FamilyKey,
    is_checked: bool,
) -> Result<(Value, String), Failure> {
    let about = transcripts::about(path, family, is_checked)?;
    Ok(about.map_or((Value::Null, String::new()), |(chains, lines)| (chains, format!("\n{lines}"))))
}
