//! `hekaton setup`.

use crate::app::App;
use crate::commands::family;
use crate::hints::explain;
use crate::imported;
use crate::imports;
use crate::options::Setup;
use hekaton_core::{LocalEngine, SetupError, SetupOptions, setup_prepared};
use hekaton_storage::{KeyStore, KeyStoreError, Manifest};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use serde_json::json;
use std::time::Instant;

// One piece: everything that can be refused comes before the setup, and the report says what all steps found.
pub(crate) fn run(command: &Setup, app: &App, json: bool) -> Result<(), Failure> {
    if let Some(bytes) = command.up_to {
        return family::setup(command, bytes, app, json);
    }
    let start = Instant::now();
    let input = command.file.as_deref().map(exit::input).transpose()?;
    let (name, circuit, parameters) = app.choose(&command.circuit, input.as_ref())?;
    if let (Some(path), Some(input)) = (&command.file, &input) {
        // Parameters given in addition to --for must fit the file; check before the work.
        let fits = circuit.check_input(input);
        fits.map_err(|e| imported::input_failure(path, &e, exit::USAGE))?;
    }
    let prepared = circuit.prepared().map_err(|e| format!("layout: {e}")).or_fail(exit::USAGE)?;
    let mut options = SetupOptions::new(&name)
        .parameters(&parameters)
        .zero_knowledge(!command.new.no_zero_knowledge);
    if let Some(seed) = command.new.insecure_seed {
        options = options.insecure_seed(seed);
        family::warn_of_seed();
    }
    let engine = LocalEngine::new(command.new.threads.threads).or_fail(exit::FAILED)?;
    let notices = imported::check(&*circuit, command.r1cs.as_deref())?;
    // Fails now if the directory is in use, and not after minutes of work.
    let mut store = KeyStore::create(&command.new.keys).or_fail(exit::BAD_FILE)?;
    if let Some(unfinished) = store.unfinished_path() {
        family::remove_on_interrupt(&unfinished, json)?;
    }
    if let Some(directory) = circuit.directory() {
        imports::copy_into(&store, directory, app)?;
    }
    let display = Display::new();
    let failed = |e: SetupError<KeyStoreError>| match &e {
        SetupError::Keys(_) | SetupError::Sink(_) => Failure::new(exit::BAD_FILE, explain(&e)),
        e => Failure::new(exit::FAILED, e),
    };
    setup_prepared(&prepared, &engine, &options, &mut store, |step| display.line(step))
        .map_err(failed)?;
    let manifest = KeyStore::manifest(&command.new.keys).or_fail(exit::BAD_FILE)?;
    let total: u64 = manifest.types.iter().map(|t| t.bytes).sum();
    let mut lines = table_of_types(&manifest);
    lines += &format!(
        "keys for {} subcircuits with {} constraints in {} ({} of proving keys), generated in {}\n",
        manifest.instances,
        output::count(manifest.total_constraints()),
        command.new.keys.display(),
        output::bytes(total),
        output::seconds(start.elapsed()),
    );
    lines += &format!("verifying key digest: {}\n", manifest.verifying_key_digest);
    lines += &format!("trust: {}", manifest.trust);
    let object = json!({
        "ok": true, "keys": command.new.keys, "manifest": manifest, "proving_key_bytes": total,
        "seconds": start.elapsed().as_secs_f64(), "notices": notices,
    });
    output::result(json, &object, &lines)
}

/// The types of a key store, a line each.
fn table_of_types(manifest: &Manifest) -> String {
    let mut lines = format!(
        "{:<16} {:>12} {:>8} {:>10} {:>10}\n",
        "type", "constraints", "slots", "instances", "key"
    );
    for t in &manifest.types {
        lines += &format!(
            "{:<16} {:>12} {:>8} {:>10} {:>10}\n",
            t.name,
            output::count(t.constraints as u64),
            t.slots,
            t.instances,
            output::bytes(t.bytes)
        );
    }
    lines
}
