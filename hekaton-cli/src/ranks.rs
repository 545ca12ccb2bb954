//! Proving on many ranks, whatever the network: the handshake, the coordinator's side and the worker's.

use crate::application::OpenCircuit;
use crate::exit::{self, Failure};
use crate::opened_keys::OpenedKeys;
use crate::options::{Prove, Ranks, RootProves, ScheduleOption};
use hekaton_core::distributed::wire::Incoming;
use hekaton_core::distributed::{Endpoint, Hello, RankEngine, RankError, Scheduling};
use hekaton_core::events::{Event, Recorder};
use hekaton_mpi::launch::Launch;
use std::time::Duration;

/// With so many ranks rank 0 still proves by itself, unless it is told.
const FEW: usize = 8;

/// A rank's place in the job.
pub(crate) struct Place {
    pub(crate) endpoint: Endpoint,
    /// single-threaded provers of this rank, before any limit of memory
    pub(crate) provers: usize,
    /// says why and ends all ranks at once; does not come back
    pub(crate) fail: Box<dyn Fn(&Failure) + Send + Sync>,
}

/// Many processes that don't know of each other would each prove everything, into the same files.
pub(crate) fn check_launch(command: &Prove) -> Result<(), Failure> {
    let ranks = Launch::of_environment().announced();
    if command.ranks.mpi || ranks == 1 {
        return Ok(());
    }
    let why = format!(
        "this is one of {ranks} tasks that mpirun or srun started, and --mpi is missing: give it to all"
    );
    Err(Failure::new(exit::USAGE, why))
}

/// What must be the same on all ranks beside keys and layout, and what may differ.
fn hello(circuit: &dyn OpenCircuit, keys: &OpenedKeys, provers: usize) -> Result<Hello, Failure> {
    let hello = circuit.hello(&keys.keys, provers).map_err(|e| Failure::new(exit::FAILED, e))?;
    Ok(hello
        .fact("build", build())
        .fact("proving keys", &keys.digest)
        .note("processor", processor()))
}

/// Version and digest of this very program.
pub(crate) fn build() -> String {
    let program = std::env::current_exe().and_then(|path| {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(std::fs::File::open(path)?)?;
        Ok(hasher.finalize().to_hex()[..16].to_owned())
    });
    format!(
        "hekaton {} ({})",
        env!("CARGO_PKG_VERSION"),
        program.unwrap_or_else(|_| "unknown".into())
    )
}

/// The processor's extensions that arithmetic cares about, and the kernels that it runs.
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
        RankError::Lost { .. } => exit::LOST,
        RankError::Handshake { .. } => exit::BAD_FILE,
        _ => exit::FAILED,
    };
    Failure::new(code, error)
}

/// Rank 0: a worker of its own if it is to prove, and the coordinator over all ranks.
pub(crate) fn coordinate<R>(
    place: Place,
    options: &Ranks,
    keys: &OpenedKeys,
    recorder: &Recorder<'_>,
    run: impl FnOnce(&RankEngine) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let Place { endpoint, provers, fail } = place;
    let size = endpoint.size();
    let root_proves = match options.root_proves {
        RootProves::Yes => true,
        RootProves::No => false,
        RootProves::Auto => size <= FEW,
    };
    if size == 1 && !root_proves {
        return Err(Failure::new(
            exit::USAGE,
            "--root-proves no: there is no other rank that could prove",
        ));
    }
    let schedule = match options.schedule {
        ScheduleOption::Dynamic => Scheduling::Dynamic,
        ScheduleOption::Static => Scheduling::Static,
    };
    let circuit = &*keys.circuit;
    let own = hello(circuit, keys, provers)?;
    let (endpoint, worker) = if root_proves {
        let (endpoint, worker) = endpoint.with_own_worker();
        (endpoint, Some(worker))
    } else {
        (endpoint, None)
    };
    std::thread::scope(|scope| {
        if let Some(worker) = worker {
            let inbox = endpoint.inbox();
            let (hello, pool, keys) = (own.clone(), &*keys.engine, &keys.keys);
            let serving = move || {
                let serve = || circuit.serve(&worker, keys, pool, hello, &|_| {});
                let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(serve));
                let why = match served {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "its worker panicked".to_owned(),
                };
                let _ = inbox.send(Incoming::Lost { rank: 0, why });
            };
            std::thread::Builder::new()
                .name("own worker".into())
                .spawn_scoped(scope, serving)
                .map_err(|e| Failure::new(exit::FAILED, e))?;
        }
        let engine = RankEngine::start(endpoint, keys.engine.clone(), &own, root_proves, schedule);
        let engine = engine.map_err(failure).inspect_err(|failure| fail(failure))?;
        let engine = engine.round_deadline(options.round_timeout.map(Duration::from_secs));
        for note in engine.notes() {
            recorder.emit(Event::Notice {
                message: format!("{note}; proofs do not depend on it, speed may"),
            });
        }
        // on a failure nobody waits for what is under way, not even this rank's own worker
        run(&engine).inspect_err(|failure| {
            if failure.code != exit::STOPPED {
                fail(failure)
            }
        })
    })
}

/// Every other rank: serves until rank 0 says that there is nothing more to do.
#[cfg(feature = "mpi")]
pub(crate) fn work(place: &Place, keys: &OpenedKeys) -> Result<(), Failure> {
    let hello = hello(&*keys.circuit, keys, place.provers)?;
    // nobody waits for what is under way
    let fail = &place.fail;
    let failed = |error: &RankError| fail(&failure(error.clone()));
    keys.circuit.serve(&place.endpoint, &keys.keys, &keys.engine, hello, &failed).map_err(failure)
}
