//! `hekaton prove --mpi`: many ranks.

use crate::exit::{self, Failure};
use crate::options::{Prove, Ranks, RootProves, ScheduleOption};
use crate::prove::Opened;
use hekaton_core::circuit::Circuit;
use hekaton_core::events::{Event, Recorder};
use hekaton_core::keys::Manifest;
use hekaton_core::ranks::{Endpoint, Hello, Incoming, Launch, RankEngine, RankError, Schedule, Serve, serve};
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
    let why = format!("this is one of {ranks} tasks that mpirun or srun started, and --mpi is missing: give it to all");
    Err(Failure::new(exit::USAGE, why))
}

#[cfg(not(feature = "mpi"))]
pub(crate) fn run(_: &Prove, _: bool) -> Result<(), Failure> {
    let why = "this hekaton was built without MPI. On Debian: sudo apt-get install libopenmpi-dev openmpi-bin \
               libclang-dev; on a cluster: module load openmpi; then: cargo install --path hekaton-cli --features mpi";
    Err(Failure::new(exit::USAGE, why))
}

#[cfg(feature = "mpi")]
pub(crate) use with_mpi::run;

#[cfg(feature = "mpi")]
mod with_mpi {
    use super::Place;
    use crate::exit::{self, Failure, OrFail};
    use crate::options::Prove;
    use crate::{output, prove};
    use hekaton_core::KeyDirectory;
    use hekaton_core::ranks::default_provers;
    use hekaton_mpi::{Mpi, MpiError, Watch};
    use std::num::NonZeroUsize;
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;
    use std::time::Duration;

    pub(crate) fn run(command: &Prove, json: bool) -> Result<(), Failure> {
        let mpi = Mpi::start().or_fail(exit::USAGE)?;
        let rank = mpi.rank();
        let keys = place_keys(&mpi, command).unwrap_or_else(|failure| {
            say(rank, &failure, json);
            mpi.abort(failure.code)
        });
        let provers = command.ranks.provers_per_rank.map(NonZeroUsize::get);
        let provers = provers.unwrap_or_else(|| default_provers(mpi.ranks_on_node()));
        let watch = Watch { silence: Duration::from_secs(command.ranks.silence), stuck };
        let outcome = mpi.run(&watch, |endpoint, abort| {
            // what can't be put in order with the other ranks ends them all at once, also when provers are at work
            let fail = move |failure: &Failure| {
                say(rank, failure, json);
                abort.now(failure.code)
            };
            let place = Place { endpoint, provers, fail: Box::new(fail) };
            match rank {
                0 => prove::on_root(command, &keys, json, place),
                _ => prove::on_worker(command, &keys, place),
            }
        });
        let Err(failure) = outcome else {
            mpi.finish(exit::OK);
            return Ok(());
        };
        if rank == 0 && failure.code == exit::STOPPED {
            // the ranks leave MPI together; what there is to say is said before, as launchers end whoever is slow
            exit::finish();
            say(rank, &failure, json);
            mpi.finish(failure.code);
            std::process::exit(failure.code.into());
        }
        say(rank, &failure, json);
        mpi.abort(failure.code)
    }

    fn say(rank: usize, failure: &Failure, json: bool) {
        match rank {
            0 => output::failure(failure, json),
            // rank 0 may say it better, or not at all
            _ => output::say(format_args!("rank {rank}: error: {}", failure.message)),
        }
    }

    fn stuck(rank: usize, why: &str) -> u8 {
        output::say(format_args!("error: rank {rank} is lost: {why}; this one ends"));
        exit::LOST
    }

    /// Where this rank finds the keys.
    fn place_keys(mpi: &Mpi, command: &Prove) -> Result<PathBuf, Failure> {
        let ranks = &command.ranks;
        if ranks.stage_keys.is_none() && !ranks.keys_from_root {
            return Ok(command.keys.clone());
        }
        let manifest = if mpi.rank() == 0 || !ranks.keys_from_root {
            Some(KeyDirectory::manifest(&command.keys).or_fail(exit::BAD_FILE)?)
        } else {
            None
        };
        let mut files = vec!["manifest.json".into(), "verifying.key".into(), "aggregation.key".into()];
        let mut name = Vec::new();
        if let Some(manifest) = &manifest {
            files.extend(manifest.types.iter().map(|kind| PathBuf::from(format!("types/{}.pk", kind.name))));
            // each user has a copy of their own: nobody else can change it
            let user = std::fs::metadata("/proc/self").map_or(0, |me| me.uid());
            name = format!("hekaton-keys-{user}-{}", super::digest(manifest)).into_bytes();
        }
        let parent = ranks.stage_keys.clone().unwrap_or_else(std::env::temp_dir);
        if ranks.keys_from_root {
            mpi.broadcast(&mut name);
        }
        let to = parent.join(String::from_utf8_lossy(&name).into_owned());
        let placed = match ranks.keys_from_root {
            true => mpi.send_files(&command.keys, &to, &files),
            false => mpi.stage(&command.keys, &to, &files),
        };
        if let Err(MpiError::Leader) = &placed {
            // who knows why says so first
            std::thread::sleep(Duration::from_secs(2));
        }
        placed.or_fail(exit::FAILED)?;
        let copy = KeyDirectory::manifest(&to).or_fail(exit::BAD_FILE)?;
        if !to.to_string_lossy().ends_with(&super::digest(&copy)) {
            let why = format!("{}: these are not the keys that its name says: remove it", to.display());
            return Err(Failure::new(exit::BAD_FILE, why));
        }
        Ok(to)
    }
}

/// One digest of all files of a key directory, as its manifest names them.
pub(crate) fn digest(manifest: &Manifest) -> String {
    let mut hasher = blake3::Hasher::new();
    let types = manifest.types.iter().map(|kind| kind.digest.as_str());
    for digest in types.chain([manifest.verifying_key_digest.as_str(), &manifest.aggregation_key_digest]) {
        hasher.update(digest.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// What must be the same on all ranks beside keys and layout, and what may differ.
fn hello<C: Circuit>(circuit: &C, keys: &Opened, provers: usize) -> Result<Hello, Failure> {
    let hello = Hello::new(circuit, &keys.keys, provers).map_err(|e| Failure::new(exit::FAILED, e))?;
    Ok(hello.fact("build", build()).fact("proving keys", &keys.digest).note("processor", processor()))
}

/// Version and digest of this very program.
pub(crate) fn build() -> String {
    let program = std::env::current_exe().and_then(|path| {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(std::fs::File::open(path)?)?;
        Ok(hasher.finalize().to_hex()[..16].to_owned())
    });
    format!("hekaton {} ({})", env!("CARGO_PKG_VERSION"), program.unwrap_or_else(|_| "unknown".into()))
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
    let kernels = hekaton_core::Backend::choose().map_or_else(|why| why.to_string(), |backend| backend.to_string());
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
pub(crate) fn coordinate<C: Circuit, R>(
    place: Place,
    options: &Ranks,
    circuit: &C,
    keys: &Opened,
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
        return Err(Failure::new(exit::USAGE, "--root-proves no: there is no other rank that could prove"));
    }
    let schedule = match options.schedule {
        ScheduleOption::Dynamic => Schedule::Dynamic,
        ScheduleOption::Static => Schedule::Static,
    };
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
                let serving = Serve { circuit, keys, pool, hello, failed: &|_| {} };
                let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| serve(&worker, &serving)));
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
            recorder.emit(Event::Notice { message: format!("{note}; proofs do not depend on it, speed may") });
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
pub(crate) fn work<C: Circuit>(place: &Place, circuit: &C, keys: &Opened) -> Result<(), Failure> {
    let hello = hello(circuit, keys, place.provers)?;
    // nobody waits for what is under way
    let fail = &place.fail;
    let failed = |error: &RankError| fail(&failure(error.clone()));
    let serving = Serve { circuit, keys: &keys.keys, pool: &*keys.engine, hello, failed: &failed };
    serve(&place.endpoint, &serving).map_err(failure)
}
