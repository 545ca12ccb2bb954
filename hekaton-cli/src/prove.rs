//! `hekaton prove`.

use crate::distributed::{self, Place};
use crate::event_files::EventFiles;
use crate::exit::{self, Failure, OrFail};
use crate::options::Prove;
use crate::output::{self, Inputs};
use crate::progress::Display;
use crate::report::{self, Summary};
use crate::signals;
use circuits::{AnyCircuit, Named, Parameters, with_circuit};
use hekaton_core::budget::{MemoryPlan, type_sizes};
use hekaton_core::coordinator::CoordinatorError;
use hekaton_core::engine::{Engine, Pool};
use hekaton_core::events::{Event, Phase, Recorder};
use hekaton_core::ranks::RankError;
use hekaton_core::run::RunError;
use hekaton_core::{
    Cancellation, KeyDirectory, LocalEngine, ProveError, ProveOptions, ProverKeys, Randomness, Run, RunDirectory,
    RunDirectoryOptions, RunIdentity, prove,
};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
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
    distributed::check_launch(command)?;
    if command.ranks.mpi {
        return distributed::run(command, json);
    }
    with_listeners(command, &command.keys, json, None)
}

/// Rank 0 of many.
#[cfg(feature = "mpi")]
pub(crate) fn on_root(command: &Prove, keys: &Path, json: bool, place: Place) -> Result<(), Failure> {
    with_listeners(command, keys, json, Some(place))
}

/// Every other rank.
#[cfg(feature = "mpi")]
pub(crate) fn on_worker(command: &Prove, keys: &Path, mut place: Place) -> Result<(), Failure> {
    // whether the run stops is for rank 0 to say
    let asked = Some(Cancellation::new());
    signals::Handling {
        cancellation: asked,
        quiet: true,
        last: Box::new(|| true),
        ended: "ended at once",
        json: false,
    }
    .start()?;
    let opened = open_keys(keys, NonZeroUsize::new(place.provers), command.memory_limit)?;
    place.provers = opened.plan.provers;
    with_circuit!(&opened.circuit, circuit => distributed::work(&place, circuit, &opened))
}

/// Everything that comes from a key directory.
pub(crate) struct Opened {
    circuit: AnyCircuit,
    name: String,
    /// of all its files
    pub(crate) digest: String,
    pub(crate) keys: ProverKeys,
    pub(crate) engine: Arc<LocalEngine>,
    plan: MemoryPlan,
}

fn open_keys(path: &Path, threads: Option<NonZeroUsize>, limit: Option<u64>) -> Result<Opened, Failure> {
    let (manifest, mut keys) = KeyDirectory::open(path).or_fail(exit::BAD_FILE)?;
    let parameters: Parameters = serde_json::from_value(manifest.parameters.clone()).or_fail(exit::BAD_FILE)?;
    let (circuit, _) = AnyCircuit::new(&manifest.circuit, &parameters, None).or_fail(exit::BAD_FILE)?;
    let engine = Arc::new(LocalEngine::new(threads).or_fail(exit::FAILED)?);
    let sizes = type_sizes(&keys).or_fail(exit::BAD_FILE)?;
    let plan = MemoryPlan::new(&sizes, engine.threads(), limit).map_err(output::not_enough_memory)?;
    if plan.release {
        keys.release_after_use();
    }
    let digest = distributed::digest(&manifest);
    Ok(Opened { circuit, name: manifest.circuit, digest, keys, engine, plan })
}

fn with_listeners(command: &Prove, keys: &Path, json: bool, place: Option<Place>) -> Result<(), Failure> {
    let listeners = Listeners { display: Display::new(), summary: Mutex::default(), files: EventFiles::new() };
    let recorder = Recorder::new(concat!("hekaton ", env!("CARGO_PKG_VERSION")), |record| {
        listeners.display.event(record);
        listeners.files.event(record);
        if let Ok(mut summary) = listeners.summary.lock() {
            summary.add(record);
        }
    });
    let result = prove_recorded(command, keys, json, place, &listeners, &recorder);
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

fn prove_recorded(
    command: &Prove,
    keys: &Path,
    json: bool,
    place: Option<Place>,
    listeners: &Listeners,
    recorder: &Recorder<'_>,
) -> Result<(), Failure> {
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
    let threads = match &place {
        Some(place) => NonZeroUsize::new(place.provers),
        None => command.threads.threads,
    };
    let opened = open_keys(keys, threads, command.memory_limit)?;
    let Opened { circuit, keys, plan, .. } = &opened;
    recorder.phase_end(Phase::LoadKeys, since, keys.bytes());
    // Before the run is touched: a wrong file leaves no run behind.
    with_circuit!(circuit, circuit => circuit.input(&file).map(drop))
        .map_err(|e| format!("{}: {e}", command.file.display()))
        .or_fail(exit::FAILED)?;
    if command.insecure_seed.is_some() {
        output::say("WARNING: randomness from a seed: this proof is NOT zero-knowledge; for tests only");
    }
    let directory = open_run(command, keys, &file)?.map(Arc::new);
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
    signals::Handling { cancellation: asked, quiet: false, last: Box::new(|| true), ended, json }.start()?;
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
    let run = with_circuit!(circuit, circuit => match place {
        None => prove_file(circuit, &file, keys, &*opened.engine, &options),
        Some(place) => {
            let place = Place { provers: plan.provers, ..place };
            distributed::coordinate(place, &command.ranks, circuit, &opened, recorder, |engine| {
                prove_file(circuit, &file, keys, engine, &options)
            })
        }
    })?;
    exit::finish();
    if let Some(path) = &path {
        output::write(path, run.proof.as_bytes())?;
    }
    let path = path.or_else(|| directory.as_ref().map(|run| run.proof_path())).unwrap_or_default();
    recorder.emit(Event::ProofWritten {
        path: path.display().to_string(),
        bytes: run.proof.as_bytes().len() as u64,
        public: AnyCircuit::show_public(&opened.name, &run.public_values).unwrap_or_default(),
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
    engine: &impl Engine,
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
        ProveError::Coordinator(CoordinatorError::Rank(RankError::Lost { .. })) => {
            let kept = match options.has_run_directory() {
                true => "what was done is kept: the same command with --resume goes on",
                false => "nothing is kept: --run DIR would keep what is done",
            };
            Failure::new(exit::LOST, format!("{e}; {kept}"))
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
