//! `hekaton prove`.

use crate::event_files::EventFiles;
use crate::exit::{self, Failure, OrFail};
use crate::options::Prove;
use crate::output::{self, Inputs};
use crate::progress::Display;
use crate::report::{self, Summary};
use crate::signals;
use circuits::{AnyCircuit, Named, Parameters, with_circuit};
use hekaton_core::budget::{MemoryPlan, type_sizes};
use hekaton_core::engine::Pool;
use hekaton_core::events::{Event, Phase, Recorder};
use hekaton_core::run::RunError;
use hekaton_core::{
    Cancellation, KeyDirectory, LocalEngine, ProveError, ProveOptions, ProverKeys, Randomness, Run, RunDirectory,
    RunDirectoryOptions, RunIdentity, prove,
};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is made from the events.
struct Listeners {
    display: Display,
    summary: Mutex<Summary>,
    files: EventFiles,
}

pub(crate) fn run(command: &Prove, json: bool) -> Result<(), Failure> {
    let listeners = Listeners { display: Display::new(), summary: Mutex::default(), files: EventFiles::new() };
    let recorder = Recorder::new(concat!("hekaton ", env!("CARGO_PKG_VERSION")), |record| {
        listeners.display.event(record);
        listeners.files.event(record);
        if let Ok(mut summary) = listeners.summary.lock() {
            summary.add(record);
        }
    });
    let result = prove_recorded(command, json, &listeners, &recorder);
    drop(recorder);
    let Listeners { display, summary, .. } = listeners;
    drop(display);
    result?;
    let mut summary = summary.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    summary.end();
    // what earlier processes did belongs to the run; if its events got lost, what this one did must do
    if let Some(run) = command.run.as_ref().filter(|_| command.resume)
        && let Ok(all) = report::summarise(&run.join("events.jsonl"), drop)
        && all.written.is_some()
    {
        summary = all;
    }
    output::result(json, &summary.object(), &summary.table())?;
    if let Some(run) = &command.run {
        let report = summary.object().to_string() + "\n";
        if let Err(e) = output::write(&report::result_path(run), report.as_bytes()) {
            output::say(format_args!("warning: {}: the report is not kept", e.message));
        }
    }
    Ok(())
}

fn prove_recorded(command: &Prove, json: bool, listeners: &Listeners, recorder: &Recorder<'_>) -> Result<(), Failure> {
    let file = exit::read(&command.file)?;
    let path = match (&command.proof, &command.run) {
        // where the run directory has it in any case
        (Some(proof), Some(run)) if output::same_place(proof, &run.join("proof")) => None,
        (Some(proof), _) => Some(proof.clone()),
        (None, Some(_)) => None,
        (None, None) => Some(with_suffix(&command.file, ".proof")),
    };
    let inputs = Inputs { files: &[&command.file], keys: Some(&command.keys), run: command.run.as_deref() };
    if let (Some(proof), Some(events)) = (&path, &command.events)
        && output::same_place(proof, events)
    {
        return Err(Failure::new(
            exit::BAD_FILE,
            format!("--events {}: that is where the proof goes", events.display()),
        ));
    }
    for (path, option) in [(path.as_ref(), "--proof"), (command.events.as_ref(), "--events")] {
        if let Some(path) = path {
            output::check_output(path, option, &inputs)?;
        }
    }
    let since = recorder.phase_start(Phase::LoadKeys, 1, 0);
    let (manifest, mut keys) = KeyDirectory::open(&command.keys).or_fail(exit::BAD_FILE)?;
    recorder.phase_end(Phase::LoadKeys, since, keys.bytes());
    let parameters: Parameters = serde_json::from_value(manifest.parameters.clone()).or_fail(exit::BAD_FILE)?;
    let (circuit, _) = AnyCircuit::new(&manifest.circuit, &parameters, None).or_fail(exit::BAD_FILE)?;
    let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
    let sizes = type_sizes(&keys).or_fail(exit::BAD_FILE)?;
    let plan = MemoryPlan::new(&sizes, engine.threads(), command.memory_limit).map_err(output::not_enough_memory)?;
    if plan.release {
        keys.release_after_use();
    }
    // Before the run is touched: a wrong file leaves no run behind.
    with_circuit!(&circuit, circuit => circuit.input(&file).map(drop))
        .map_err(|e| format!("{}: {e}", command.file.display()))
        .or_fail(exit::FAILED)?;
    if command.insecure_seed.is_some() {
        output::say("WARNING: randomness from a seed: this proof is NOT zero-knowledge; for tests only");
    }
    let directory = open_run(command, &keys, &file)?.map(Arc::new);
    let cancellation = Cancellation::new();
    // Not before the run is ours: what a file had is lost with it.
    if let Some(path) = &command.events {
        listeners.files.attach(path, command.resume, None)?;
    }
    let ended = match &directory {
        Some(run) => {
            if let Err(e) = listeners.files.attach(&run.events_path(), true, Some(run.clone())) {
                output::say(format_args!("warning: {}: the run goes on without", e.message));
            }
            "ended at once: subcircuits under way are lost, the same command with --resume goes on"
        }
        None => "interrupted: no proof was written",
    };
    let asked = directory.is_some().then(|| cancellation.clone());
    signals::Handling { cancellation: asked, last: Box::new(|| true), ended, json }.start()?;
    listeners.files.start();
    let mut options = ProveOptions::new()
        .check_constraints(!command.no_check)
        .provers(plan.provers)
        .cancellation(&cancellation)
        .recorder(recorder);
    options = match (&directory, command.insecure_seed) {
        (Some(run), _) => options.run_directory(run),
        (None, Some(seed)) => options.randomness(Randomness::seeded_not_zero_knowledge(seed)),
        (None, None) => options,
    };
    let run = with_circuit!(&circuit, circuit => prove_file(circuit, &file, &keys, &engine, &options))?;
    exit::finish();
    if let Some(path) = &path {
        output::write(path, run.proof.as_bytes())?;
    }
    let path = path.or_else(|| directory.as_ref().map(|run| run.proof_path())).unwrap_or_default();
    recorder.emit(Event::ProofWritten {
        path: path.display().to_string(),
        bytes: run.proof.as_bytes().len() as u64,
        public: AnyCircuit::show_public(&manifest.circuit, &run.public_values).unwrap_or_default(),
        key: command.keys.join("verifying.key").display().to_string(),
    });
    Ok(())
}

/// Opens the run directory, if one is asked for.
fn open_run(command: &Prove, keys: &ProverKeys, file: &[u8]) -> Result<Option<RunDirectory>, Failure> {
    let Some(path) = &command.run else { return Ok(None) };
    let identity = RunIdentity::new(&keys.verifying, *blake3::hash(file).as_bytes());
    let mut options = RunDirectoryOptions::new().lease_deadline(Duration::from_secs(command.lease));
    if let Some(seed) = command.insecure_seed {
        options = options.insecure_seed(seed);
    }
    let run = if command.resume { options.resume(path, &identity) } else { options.begin(path, &identity) };
    run.map(Some).map_err(|e| {
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
        let failed = matches!(&e, RunError::Io { source, .. } if full.contains(&source.kind()));
        Failure::new(if failed { exit::FAILED } else { exit::BAD_FILE }, e)
    })
}

fn prove_file<'f, C: Named>(
    circuit: &C,
    file: &'f [u8],
    keys: &ProverKeys,
    engine: &LocalEngine,
    options: &ProveOptions<'_>,
) -> Result<Run, Failure>
where
    C::Input: ToOwned + 'f,
{
    let input = circuit.input(file).or_fail(exit::FAILED)?;
    prove(circuit, &input, keys, engine, options).map_err(|e| match &e {
        ProveError::Cancelled => {
            Failure::new(exit::STOPPED, "interrupted: what was done is kept; the same command with --resume goes on")
        }
        ProveError::Run(RunError::Io { .. }) => Failure::new(
            exit::FAILED,
            format!("{e}; what was done is kept: mend it, and the same command with --resume goes on"),
        ),
        ProveError::Run(
            RunError::Damaged { .. } | RunError::Finished { .. } | RunError::OtherLog { .. } | RunError::Version { .. },
        ) => Failure::new(exit::BAD_FILE, e),
        _ => Failure::new(exit::FAILED, e),
    })
}

/// `FILE` and a suffix.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
