//! Proving on many ranks, over any network: the handshake, the coordinator's side and the worker's.

use crate::gpu;
use crate::hints::explain;
use crate::opened_keys::OpenedKeys;
use crate::options::{ExecuteOption, Prove, Ranks, RootProves, ScheduleOption};
#[cfg(feature = "mpi")]
use crate::subject::Subject;
use hekaton_circuit::PreparedCircuit;
use hekaton_core::distributed::wire::Incoming;
use hekaton_core::distributed::{
    Endpoint, Executes, Hello, RankEngine, RankError, RootRole, Scheduling, Serve, serve,
};
use hekaton_core::events::{Event, Recorder};
use hekaton_core::protocol::accelerator::Accelerators;
use hekaton_mpi::launch::Launch;
use hekaton_plan::simulate::Design;
use hekaton_terminal::exit::{self, Failure};
#[cfg(feature = "mpi")]
use hekaton_terminal::output;
#[cfg(feature = "mpi")]
use std::num::NonZeroUsize;
use std::sync::mpsc::Sender;
use std::time::Duration;

// With few ranks, a core that only coordinates is a large part of all cores. With many, rank 0 is the bottleneck.
/// The largest number of ranks with which rank 0 also proves, and executes the circuit, by default.
const FEW: usize = 8;
// Rank 0 handles the messages of all others on one thread, so there is a number of ranks beyond which it must have help.
/// The largest number of ranks without leaders, by default. With more, each leader has `PER_LEADER` ranks.
const MANY: usize = 256;
#[cfg(feature = "mpi")]
const PER_LEADER: usize = 32;

/// The part of a job that a rank has: its network, its provers, and its way to fail.
pub(crate) struct RankContext {
    pub(crate) endpoint: Endpoint,
    /// single-threaded provers of this rank, before the memory limit reduces them
    pub(crate) provers: usize,
    /// its number among the ranks on its node
    pub(crate) on_node: usize,
    /// reports the failure and ends all ranks immediately; does not return
    pub(crate) fail: Box<dyn Fn(&Failure) + Send + Sync>,
    /// the digest of the input, where this rank reads it
    pub(crate) input: Option<[u8; 32]>,
}

/// Refuses a launch without `--mpi` under mpirun or srun: each of those processes would prove
/// the whole input, and write the same files.
pub(crate) fn check_launch(command: &Prove) -> Result<(), Failure> {
    let ranks = Launch::of_environment().announced();
    if command.ranks.mpi || ranks == 1 {
        return Ok(());
    }
    let why = format!(
        "this is one of {ranks} tasks that mpirun or srun started, and --mpi is missing: pass it \
         to all of them"
    );
    Err(Failure::new(exit::USAGE, why))
}

/// Returns the facts that must agree on all ranks, in addition to keys and layout, and those that
/// may differ.
fn hello(
    circuit: &PreparedCircuit<'_>,
    keys: &OpenedKeys,
    provers: usize,
    command: &Prove,
    input: Option<[u8; 32]>,
) -> Result<Hello, Failure> {
    // A run is of one kind, and under one context, from before its first commitment (spec: direct#run).
    let kind = match command.direct_context() {
        Some(context) => format!("direct, context {}", hex::encode(context)),
        None => "aggregated".to_owned(),
    };
    let hello = Hello::new(circuit, &keys.keys, provers, &keys.engine)
        .map_err(|e| Failure::new(exit::BAD_FILE, e))?
        // Two builds may compute different values for one wire, and the bad proof would be blamed on a rank.
        .fact("build", build())
        .fact("proving keys", &keys.digest)
        .fact("kind of proof", kind)
        // Another processor can make a rank slow, but not wrong.
        .note("processor", processor());
    Ok(match input {
        // As a secret: an error that showed this digest could confirm a guess of a private input.
        Some(digest) => hello.secret("input", &digest),
        None => hello,
    })
}

/// The version of this program and the digest of its executable.
pub(crate) fn build() -> String {
    let program = std::env::current_exe().and_then(|path| {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(std::fs::File::open(path)?)?;
        Ok(hasher.finalize().to_hex()[..16].to_owned())
    });
    format!(
        "hekaton {} ({})",
        env!("CARGO_PKG_VERSION"),
        // Its file may have been replaced while it runs. All ranks then agree on "unknown", or refuse each other.
        program.unwrap_or_else(|_| "unknown".into())
    )
}

/// The processor's extensions that the arithmetic can use, and the kernels that run.
pub(crate) fn processor() -> String {
    let mut found: Vec<&str> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        let all = [
            ("adx", std::is_x86_feature_detected!("adx")),
            ("bmi2", std::is_x86_feature_detected!("bmi2")),
            ("avx2", std::is_x86_feature_detected!("avx2")),
            ("fma", std::is_x86_feature_detected!("fma")),
            ("avx512f", std::is_x86_feature_detected!("avx512f")),
            ("avx512ifma", std::is_x86_feature_detected!("avx512ifma")),
        ];
        found.extend(all.iter().filter(|(_, there)| *there).map(|(name, _)| *name));
    }
    found.insert(0, std::env::consts::ARCH);
    let kernels = hekaton_core::Backend::choose()
        .map_or_else(|why| why.to_string(), |backend| backend.to_string());
    format!("{}, {kernels} kernels", found.join(" "))
}

fn failure(error: RankError) -> Failure {
    let code = match &error {
        // Batch scripts repeat the command after this code: the answers received so far are in the
        // run directory.
        RankError::Lost { .. } => exit::LOST,
        RankError::Handshake { .. } => exit::BAD_FILE,
        _ => exit::FAILED,
    };
    Failure::new(code, explain(&error))
}

/// Decides whether rank 0 also proves; with a single rank it must.
fn root_role(options: &Ranks, size: usize) -> Result<RootRole, Failure> {
    let role = match options.root_proves {
        RootProves::Yes => RootRole::Proves,
        RootProves::Auto if size <= FEW => RootRole::Proves,
        RootProves::Auto | RootProves::No => RootRole::Coordinates,
    };
    if size == 1 && role == RootRole::Coordinates {
        return Err(Failure::new(
            exit::USAGE,
            "--root-proves no: no other rank can prove; start more ranks",
        ));
    }
    Ok(role)
}

/// The number of ranks per leader, if there are to be leaders.
#[cfg(feature = "mpi")]
pub(crate) fn fanout(options: &Ranks, size: usize) -> Option<NonZeroUsize> {
    let default = if size > MANY { PER_LEADER } else { 0 };
    NonZeroUsize::new(options.ranks_per_leader.unwrap_or(default))
}

/// The default design for this number of ranks.
pub(crate) fn design(ranks: u64) -> Design {
    match ranks {
        ranks if ranks > MANY as u64 => Design::TREE,
        ranks if ranks > FEW as u64 => Design::SLICES,
        _ => Design::POOL,
    }
}

/// Decides who executes the circuit. It is the same on all ranks.
fn executes(
    options: &Ranks,
    circuit: &PreparedCircuit<'_>,
    keys: &OpenedKeys,
    size: usize,
) -> Executes {
    match options.execute {
        // The last accesses to the cells of a memory may be in any slice.
        _ if circuit.layout().has_memories() => Executes::Root,
        _ if options.witness_on_ranks => Executes::Ranks,
        ExecuteOption::Root => Executes::Root,
        ExecuteOption::Ranks => Executes::Ranks,
        // Executing a program takes each rank less time than receiving the trace from rank 0.
        ExecuteOption::Auto if keys.circuit.executes_fast() => Executes::Ranks,
        ExecuteOption::Auto if size > FEW && circuit.executes_ranges() => Executes::Ranks,
        ExecuteOption::Auto => Executes::Root,
    }
}

/// Rank 0's own worker. Its failure reaches the coordinator like the loss of any other rank.
fn serve_on_root(
    worker: &Endpoint,
    circuit: &PreparedCircuit<'_>,
    keys: &OpenedKeys,
    accelerators: Option<&Accelerators>,
    hello: Hello,
    inbox: &Sender<Incoming>,
) {
    let (keys, pool) = (&keys.keys, &*keys.engine);
    let serve =
        || serve(worker, &Serve { circuit, keys, pool, accelerators, hello, failed: &|_| {} });
    // A panic is caught, or the coordinator would wait for the answers of a worker that is gone.
    let why = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(serve)) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its worker panicked".to_owned(),
    };
    // If the coordinator is gone, the run has already failed for another reason.
    let _ = inbox.send(Incoming::Lost { rank: 0, why });
}

/// Runs rank 0: the coordinator over all ranks, and a worker of its own if it also proves.
pub(crate) fn coordinate<R>(
    rank: RankContext,
    command: &Prove,
    circuit: &PreparedCircuit<'_>,
    keys: &OpenedKeys,
    recorder: &Recorder<'_>,
    run: impl FnOnce(&RankEngine) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let RankContext { endpoint, provers, on_node, fail, input } = rank;
    let options = &command.ranks;
    let role = root_role(options, endpoint.size())?;
    let notice = |message| recorder.emit(Event::Notice { message });
    let gpus = match role {
        RootRole::Proves => gpu::open(command, circuit, keys, provers, Some(on_node), &notice)
            .inspect_err(|failure| fail(failure))?,
        RootRole::Coordinates => gpu::Provers::on_cores(provers),
    };
    let schedule = match options.schedule {
        ScheduleOption::Dynamic => Scheduling::Dynamic,
        ScheduleOption::Static => Scheduling::Static,
    };
    let executes = executes(options, circuit, keys, endpoint.size());
    // Only ranks that execute the circuit have read the input and can compare it.
    let compared = input.filter(|_| executes == Executes::Ranks);
    let own = hello(circuit, keys, gpus.all(keys), command, compared)?;
    let accelerators = gpus.accelerators.as_ref();
    let (endpoint, worker) = if role == RootRole::Proves {
        let (endpoint, worker) = endpoint.with_own_worker();
        (endpoint, Some(worker))
    } else {
        (endpoint, None)
    };
    std::thread::scope(|scope| {
        // Rank 0's own worker speaks the same protocol as the others, over a channel.
        if let Some(worker) = worker {
            let (inbox, hello) = (endpoint.inbox(), own.clone());
            std::thread::Builder::new()
                .name("own worker".into())
                .spawn_scoped(scope, move || {
                    serve_on_root(&worker, circuit, keys, accelerators, hello, &inbox)
                })
                .map_err(|e| Failure::new(exit::FAILED, e))?;
        }
        let engine = RankEngine::start(endpoint, keys.engine.clone(), &own, role, schedule)
            .map_err(failure)
            .inspect_err(|failure| fail(failure))?
            .executes(executes)
            .round_deadline(options.round_timeout.map(Duration::from_secs));
        for note in engine.notes() {
            recorder.emit(Event::Notice {
                message: format!("{note}; this can affect speed, but not the proof"),
            });
        }
        // Nothing waits for the jobs in progress after a failure, not even this rank's own worker. A run that was asked to
        // stop ends in order, so that all answers get into the log.
        run(&engine).inspect_err(|failure| {
            if failure.code != exit::STOPPED {
                fail(failure)
            }
        })
    })
}

/// Runs any other rank: serves until rank 0 ends the run.
#[cfg(feature = "mpi")]
pub(crate) fn work(
    rank: &RankContext,
    command: &Prove,
    subject: &dyn Subject,
    keys: &OpenedKeys,
) -> Result<(), Failure> {
    let circuit = keys.circuit.prepared().map_err(|e| Failure::new(exit::FAILED, e))?;
    match executes(&command.ranks, &circuit, keys, rank.endpoint.size()) {
        Executes::Root => work_on(rank, command, &circuit, keys, None),
        Executes::Ranks => {
            drop(circuit);
            let hint = subject.read_by_ranks();
            let unreadable = |why: String| Failure::new(exit::BAD_FILE, format!("{why}; {hint}"));
            let input = subject.input(&command.file).map_err(|e| unreadable(e.message))?;
            let unread = |e| unreadable(format!("{}: {e}", command.file.display()));
            let digest = Some(input.digest().map_err(|e| unread(e.to_string()))?);
            let work =
                |circuit: &PreparedCircuit<'_>| work_on(rank, command, circuit, keys, digest);
            let worked = keys.circuit.on_input(&input, work);
            worked.map_err(|e| unread(e.to_string()))?
        }
    }
}

#[cfg(feature = "mpi")]
fn work_on(
    rank: &RankContext,
    command: &Prove,
    circuit: &PreparedCircuit<'_>,
    keys: &OpenedKeys,
    input: Option<[u8; 32]>,
) -> Result<(), Failure> {
    let say = |message| output::say(format_args!("rank {}: {message}", rank.endpoint.rank()));
    let gpus = gpu::open(command, circuit, keys, rank.provers, Some(rank.on_node), &say)?;
    let hello = hello(circuit, keys, gpus.all(keys), command, input)?;
    let accelerators = gpus.accelerators.as_ref();
    // A failed rank ends all others at once, because nothing waits for the jobs in progress.
    let fail = &rank.fail;
    let failed = |error: &RankError| fail(&failure(error.clone()));
    let (keys, pool) = (&keys.keys, &*keys.engine);
    let served = Serve { circuit, keys, pool, accelerators, hello, failed: &failed };
    serve(&rank.endpoint, &served).map_err(failure)
}
