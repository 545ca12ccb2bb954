//! `hekaton prove`.

use crate::app::App;
use crate::commands::export;
use crate::event_files::EventFiles;
use crate::gpu;
use crate::hints::{CHECK, explain};
use crate::imported;
use crate::opened_keys::OpenedKeys;
use crate::options::Prove;
use crate::public_values;
use crate::ranks::{self, RankContext};
use crate::report::{self, Summary};
use crate::subject::Subject;
use hekaton_circuit::named::InputFile;
use hekaton_circuit::{InstanceId, Masking, PreparedCircuit};
use hekaton_core::distributed::{RankEngine, RankError};
use hekaton_core::events::{Event, Phase, Recorder};
use hekaton_core::protocol::coordinator::CoordinatorError;
use hekaton_core::protocol::journal::JournalErrorKind;
use hekaton_core::protocol::worker::WorkerError;
use hekaton_core::{
    Cancellation, DirectRun, ProveError, ProveOptions, ProvenRun, ProverKeys, Randomness,
    WitnessCheck, prove_prepared,
};
use hekaton_storage::{RunDirectory, RunDirectoryOptions, RunError, RunIdentity};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, Inputs};
use hekaton_terminal::progress::Display;
use hekaton_terminal::signals;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Everything that receives the events of a run.
struct Listeners {
    display: Display,
    summary: Mutex<Summary>,
    files: EventFiles,
}

pub(crate) fn run(
    command: &Prove,
    subject: &dyn Subject,
    app: &App,
    json: bool,
) -> Result<(), Failure> {
    ranks::check_launch(command)?;
    if command.ranks.mpi {
        let why = format!(
            "{} was built without MPI. On Debian: sudo apt-get install libopenmpi-dev openmpi-bin libclang-dev; \
             on a cluster: module load openmpi; then: {}",
            app.name(),
            app.with_mpi()
        );
        return Err(Failure::new(exit::USAGE, why));
    }
    with_listeners(command, subject, &command.keys, json, None)
}

/// Proves as rank 0 of many.
#[cfg(feature = "mpi")]
pub(crate) fn on_root(
    command: &Prove,
    subject: &dyn Subject,
    keys: &Path,
    json: bool,
    rank: RankContext,
) -> Result<(), Failure> {
    with_listeners(command, subject, keys, json, Some(rank))
}

/// Runs as any other rank.
#[cfg(feature = "mpi")]
pub(crate) fn on_worker(
    command: &Prove,
    subject: &dyn Subject,
    keys: &Path,
    mut rank: RankContext,
) -> Result<(), Failure> {
    // Rank 0 decides whether the run stops: the first signal cancels nothing here, so that jobs in
    // progress are answered; the second ends this rank.
    signals::Handling {
        cancellation: Some(Cancellation::new()),
        quiet: true,
        last: Box::new(|| true),
        ended: "ended immediately",
        json: false,
    }
    .start()?;
    let provers = NonZeroUsize::new(rank.provers);
    let opened = subject.open(keys, provers, command.memory_limit, None)?;
    rank.provers = opened.plan.provers;
    ranks::work(&rank, command, subject, &opened)
}

/// Proves, and turns the events into progress, event files, the table, and the report.
fn with_listeners(
    command: &Prove,
    subject: &dyn Subject,
    keys: &Path,
    json: bool,
    rank: Option<RankContext>,
) -> Result<(), Failure> {
    let listeners =
        Listeners { display: Display::new(), summary: Mutex::default(), files: EventFiles::new() };
    let recorder = Recorder::new(concat!("hekaton ", env!("CARGO_PKG_VERSION")), |record| {
        listeners.display.event(record);
        listeners.files.event(record);
        if let Ok(mut summary) = listeners.summary.lock() {
            summary.add(record);
        }
    });
    let result =
        Session { command, subject, keys, json, listeners: &listeners, recorder: &recorder }
            .prove(rank);
    // The recorder borrows the listeners.
    drop(recorder);
    let Listeners { display, summary, .. } = listeners;
    drop(display);
    result?;
    // A listener that panicked left a summary that lacks an event; the proof is written, and that matters.
    let mut own = summary.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    own.end();
    // The work of earlier processes belongs to the run. If their events were lost, the report covers this process only.
    let earlier = command.run.as_ref().filter(|_| command.resume);
    let all = earlier.and_then(|run| report::summarize(&run.join("events.jsonl"), drop).ok());
    let summary = all.filter(|all| all.written.is_some()).unwrap_or(own);
    output::result(json, &summary.object(), &summary.table())?;
    if let Some(run) = &command.run {
        let report = summary.object().to_string() + "\n";
        // Only a warning, because the proof is written by now, and the events have the report's
        // data.
        if let Err(e) = output::write(&report::result_path(run), report.as_bytes()) {
            output::say(format_args!("warning: {}: report.json was not written", e.message));
        }
    }
    Ok(())
}

/// One `hekaton prove`.
struct Session<'a> {
    command: &'a Prove,
    subject: &'a dyn Subject,
    /// where this process finds the keys
    keys: &'a Path,
    json: bool,
    listeners: &'a Listeners,
    recorder: &'a Recorder<'a>,
}

impl Session<'_> {
    /// Does all steps. Each checks what it needs before it changes anything on disk.
    fn prove(&self, rank: Option<RankContext>) -> Result<(), Failure> {
        let command = self.command;
        gpu::check(command)?;
        if command.direct && self.subject.wraps() {
            let why = "--direct is for circuits: runs of programs have too many subcircuits";
            return Err(Failure::new(exit::USAGE, why));
        }
        let input = self.subject.input(&command.file)?;
        let proof = self.proof_path()?;
        let opened = self.open(rank.as_ref(), &input)?;
        // The input is checked before a run directory is touched, so that a wrong file leaves no
        // run behind.
        let run = opened.circuit.on_input(&input, |circuit| {
            let digest = (input.digest())
                .map_err(|e| format!("{}: {e}", command.file.display()))
                .or_fail(exit::BAD_FILE)?;
            let direct_key = match command.direct {
                true => Some(export::direct_key(&opened.keys, &opened.engine)?),
                false => None,
            };
            let direct = direct_key
                .as_ref()
                .zip(command.direct_context())
                .map(|(key, context)| DirectRun::new(key, context));
            let directory = open_run(command, &opened.keys, direct, digest)?.map(Arc::new);
            let cancellation = self.attach(directory.as_ref())?;
            let reading = rank.map(|rank| RankContext { input: Some(digest), ..rank });
            let parts = (directory.as_deref(), direct);
            let run = self.run(circuit, &opened, parts, &cancellation, reading)?;
            exit::finish();
            self.write(proof, directory.as_deref(), &opened, &run)
        });
        run.map_err(|e| imported::input_failure(&command.file, &e, exit::FAILED))?
    }

    /// Returns the path of the proof; `None` if that is the run directory, which always has it.
    /// Refuses outputs that would overwrite an input or each other.
    fn proof_path(&self) -> Result<Option<PathBuf>, Failure> {
        let command = self.command;
        let in_run = command.run.as_ref().map(|run| run.join("proof"));
        let same = |proof: &Path| in_run.as_ref().is_some_and(|run| output::same_place(proof, run));
        let path = match (&command.proof, &command.run) {
            // The run keeps the bare proof there, and `resume` reads it: a file with a claim around it would be refused.
            (Some(proof), _) if same(proof) && self.subject.wraps() => {
                let why = "the run itself keeps a file there; choose another one";
                let why = format!("--proof {}: {why}", proof.display());
                return Err(Failure::new(exit::USAGE, why));
            }
            (Some(proof), _) if same(proof) => None,
            (Some(proof), _) => Some(proof.clone()),
            (None, Some(_)) if !self.subject.wraps() => None,
            (None, _) => Some(with_suffix(&command.file, ".proof")),
        };
        let mut files = vec![command.file.as_path()];
        files.extend(self.subject.files());
        let inputs =
            Inputs { files: &files, keys: Some(&command.keys), run: command.run.as_deref() };
        if let (Some(proof), Some(events)) = (&path, &command.events)
            && output::same_place(proof, events)
        {
            let why = format!(
                "--events {}: that is where the proof goes; choose another file",
                events.display()
            );
            return Err(Failure::new(exit::BAD_FILE, why));
        }
        let outputs = [
            (path.as_ref(), "--proof"),
            (command.events.as_ref(), "--events"),
            (command.public.as_ref(), "--public"),
        ];
        let others = [path.as_ref(), in_run.as_ref(), command.events.as_ref()];
        if let Some(public) = &command.public
            && others.into_iter().flatten().any(|other| output::same_place(public, other))
        {
            let why = format!(
                "--public {}: that is where the proof or the events go; choose another file",
                public.display()
            );
            return Err(Failure::new(exit::BAD_FILE, why));
        }
        // Before anything is proven: hours later, a proof that cannot be written would be lost.
        for (path, option) in outputs {
            if let Some(path) = path {
                output::check_output(path, option, &inputs)?;
            }
        }
        Ok(path)
    }

    /// Opens the keys.
    fn open(&self, rank: Option<&RankContext>, input: &InputFile) -> Result<OpenedKeys, Failure> {
        let command = self.command;
        let since = self.recorder.phase_start(Phase::LoadKeys, 1, 0);
        let threads = match rank {
            Some(rank) => NonZeroUsize::new(rank.provers),
            None => command.threads.threads,
        };
        // All ranks need the same keys, and other ranks may be unable to read the input and derive keys for it.
        let input = Some(input).filter(|_| rank.is_none());
        let limit = command.memory_limit;
        let opened = self.subject.open(self.keys, threads, limit, input)?;
        self.recorder.phase_end(Phase::LoadKeys, since, opened.keys.bytes());
        if command.insecure_seed.is_some() {
            output::say(
                "WARNING: randomness derived from a seed: this proof is NOT zero-knowledge; for \
                 tests only",
            );
        }
        Ok(opened)
    }

    /// Attaches event files and signal handlers. This happens only once the run directory is ours,
    /// because attaching replaces an existing event file.
    fn attach(&self, directory: Option<&Arc<RunDirectory>>) -> Result<Cancellation, Failure> {
        let cancellation = Cancellation::new();
        let files = &self.listeners.files;
        if let Some(path) = &self.command.events {
            files.attach(path, self.command.resume, None)?;
        }
        let ended = match directory {
            Some(run) => {
                if let Err(e) = files.attach(&run.events_path(), true, Some(run.clone())) {
                    output::say(format_args!(
                        "warning: {}; the run continues without it",
                        e.message
                    ));
                }
                "ended immediately: subcircuits in progress are lost; repeat the command with \
                 --resume"
            }
            None => "interrupted: no proof was written",
        };
        // Only a run directory keeps completed work. Without one, a run that stops in order has
        // nothing to gain.
        let asked = directory.is_some().then(|| cancellation.clone());
        signals::Handling {
            cancellation: asked,
            quiet: false,
            last: Box::new(|| true),
            ended,
            json: self.json,
        }
        .start()?;
        files.start();
        Ok(cancellation)
    }

    /// Proves on the threads of this machine, or as rank 0.
    fn run(
        &self,
        circuit: &PreparedCircuit<'_>,
        opened: &OpenedKeys,
        (directory, direct): (Option<&RunDirectory>, Option<DirectRun<'_>>),
        cancellation: &Cancellation,
        rank: Option<RankContext>,
    ) -> Result<ProvenRun, Failure> {
        let command = self.command;
        let check = if command.no_check { WitnessCheck::Skip } else { WitnessCheck::Check };
        let notice = |message| self.recorder.emit(Event::Notice { message });
        let gpu::Provers { on_cores, accelerators } = match &rank {
            None => gpu::open(command, circuit, opened, opened.plan.provers, None, &notice)?,
            Some(_) => gpu::Provers::on_cores(opened.plan.provers),
        };
        let mut options = ProveOptions::new()
            .witness_check(check)
            .provers(on_cores)
            .cancellation(cancellation)
            .recorder(self.recorder);
        if let Some(accelerators) = &accelerators {
            options = options.accelerators(accelerators);
        }
        if let Some(run) = direct {
            options = options.direct(run);
        }
        options = match (directory, command.insecure_seed) {
            (Some(run), _) => options.journal(run),
            (None, Some(seed)) => options.randomness(Randomness::seeded_not_zero_knowledge(seed)),
            (None, None) => options,
        };
        let masking = Masking::new(opened.keys.verifying.zero_knowledge);
        let source = |e: &ProveError| constraint_of(e, circuit, masking);
        let failed = |e: ProveError| failure(&e, source(&e), options.has_journal());
        match rank {
            None => {
                prove_prepared(circuit, &opened.keys, &*opened.engine, &options).map_err(failed)
            }
            Some(rank) => {
                let planned = RankContext { provers: opened.plan.provers, ..rank };
                let prove = |engine: &RankEngine| {
                    prove_prepared(circuit, &opened.keys, engine, &options).map_err(failed)
                };
                ranks::coordinate(planned, command, circuit, opened, self.recorder, prove)
            }
        }
    }

    /// Writes the proof, and reports where it is.
    fn write(
        &self,
        path: Option<PathBuf>,
        directory: Option<&RunDirectory>,
        opened: &OpenedKeys,
        run: &ProvenRun,
    ) -> Result<(), Failure> {
        if let Some(path) = &path {
            output::write(path, &self.subject.file(run.proof.as_bytes()))?;
        }
        let written = path
            .or_else(|| directory.map(RunDirectory::proof_path))
            .expect("without a path, the run directory has the proof");
        let public = match self.subject.show_public(&opened.name, &run.public_values) {
            Some(text) => text,
            None => {
                let by_name = opened.keys.verifying.values_to_json(&run.public_values);
                by_name.or_fail(exit::FAILED)?.to_string()
            }
        };
        // The system limits the length of a command's words, and no reader wants thousands of values.
        let is_short = public_values::is_short(&public);
        let default = || (!is_short).then(|| public_values::default_file(&written));
        let file = self.command.public.clone().or_else(default);
        if let Some(file) = &file {
            output::write(file, (public.clone() + "\n").as_bytes())?;
        }
        let of_file = |file: &PathBuf| format!("@{}", file.display());
        let argument = file.as_ref().map_or_else(|| public.clone(), of_file);
        let (key, options) = match self.command.direct_context() {
            None => (opened.key.clone(), String::new()),
            Some(context) => {
                let export = export::verifier_command(&self.command.keys, &opened.key);
                let message =
                    format!("verifiers need the direct key: `hekaton {export}` writes it");
                self.recorder.emit(Event::Notice { message });
                let options = match self.command.context {
                    None => String::new(),
                    Some(_) => format!(" --context {}", hex::encode(context)),
                };
                ("direct.key".to_owned(), options)
            }
        };
        let verify = self.subject.verify_command(&written, &key, &argument) + &options;
        let bytes = run.proof.as_bytes().len() as u64;
        let (path, values) = (written.display().to_string(), &run.public_values);
        let of_key = || opened.keys.verifying.public_names();
        let names = opened.circuit.public_names();
        let shown = public_values::for_people(&public, &names, of_key, values);
        self.recorder.emit(Event::ProofWritten { path, bytes, public, shown, key, verify });
        Ok(())
    }
}

/// Opens the run directory, if there is to be one.
fn open_run(
    command: &Prove,
    keys: &ProverKeys,
    direct: Option<DirectRun<'_>>,
    input_digest: [u8; 32],
) -> Result<Option<RunDirectory>, Failure> {
    let Some(path) = &command.run else { return Ok(None) };
    let mut identity = RunIdentity::new(&keys.verifying, input_digest);
    if let Some(run) = &direct {
        identity = identity.direct(run);
    }
    let mut options = RunDirectoryOptions::new().lease_deadline(Duration::from_secs(command.lease));
    if let Some(seed) = command.insecure_seed {
        options = options.insecure_seed(seed);
    }
    let run = if command.resume {
        options.resume(path, &identity)
    } else {
        options.begin(path, &identity)
    };
    run.map(Some).map_err(|e| {
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
        let failed = matches!(&e, RunError::Io { error, .. } if full.contains(&error.kind()));
        let code = match &e {
            _ if failed => exit::FAILED,
            // Another process holds the directory. Later, the same command may succeed, so batch scripts retry it.
            RunError::Held { .. } => exit::LOST,
            _ => exit::BAD_FILE,
        };
        Failure::new(code, explain(&e))
    })
}

/// Describes the constraint that is not satisfied by its place in the source of an imported
/// circuit.
fn constraint_of(
    error: &ProveError,
    circuit: &PreparedCircuit<'_>,
    masking: Masking,
) -> Option<String> {
    let ProveError::Worker(WorkerError::Unsatisfied { instance, error: unsatisfied, .. }) = error
    else {
        return None;
    };
    let id = InstanceId::from_index(u32::try_from(*instance).ok()?);
    circuit.describe(id, unsatisfied.constraint, masking)
}

/// Describes why there is no proof, what was kept, and how to continue.
fn failure(error: &ProveError, place: Option<String>, has_journal: bool) -> Failure {
    // Where the source has a number for the constraint, no other one is shown.
    let why = match (place, error) {
        (Some(place), ProveError::Worker(WorkerError::Unsatisfied { instance, kind, .. })) => {
            format!("{place} is not satisfied (in part {instance}, of type {kind}); {CHECK}")
        }
        _ => explain(error),
    };
    match error {
        ProveError::Coordinator(CoordinatorError::Circuit(_)) => Failure::new(exit::BAD_FILE, why),
        ProveError::Cancelled => Failure::new(
            exit::STOPPED,
            "interrupted; completed work is kept: repeat the command with --resume",
        ),
        ProveError::Coordinator(CoordinatorError::Rank(RankError::Lost { .. })) => {
            let kept = match has_journal {
                true => "completed work is kept: repeat the command with --resume",
                false => "nothing is kept: use --run DIR to keep completed work",
            };
            Failure::new(exit::LOST, format!("{why}; {kept}"))
        }
        ProveError::Journal(error) => match error.kind() {
            // Most often a full disk, after which everything in the log is still good.
            JournalErrorKind::Io => Failure::new(
                exit::FAILED,
                format!(
                    "{why}; completed work is kept: fix this, then repeat the command with --resume"
                ),
            ),
            JournalErrorKind::Unusable | JournalErrorKind::OtherExecution => {
                Failure::new(exit::BAD_FILE, why)
            }
            _ => Failure::new(exit::FAILED, why),
        },
        _ => Failure::new(exit::FAILED, why),
    }
}

/// The path of `file` with a suffix appended. Unlike `with_extension`, it keeps the extension, so that proofs of `a.txt` and
/// `a.bin` are two files.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
