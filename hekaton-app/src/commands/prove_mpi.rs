//! `hekaton prove --mpi`: starts MPI, places the keys, and runs as rank 0 or as a worker rank.

use crate::app::App;
use crate::commands::prove;
use crate::hints::explain;
use crate::opened_keys::files;
use crate::options::Prove;
use crate::ranks::{self, RankContext};
use crate::subject::Subject;
use hekaton_mpi::launch::default_provers;
use hekaton_mpi::{Mpi, MpiError, Watch};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn run(
    command: &Prove,
    subject: &dyn Subject,
    app: &App,
    json: bool,
) -> Result<(), Failure> {
    let mpi = Mpi::start().map_err(|e| explain(&e)).or_fail(exit::USAGE)?;
    let (rank, on_node) = (mpi.rank(), mpi.rank_on_node());
    let keys = place_keys(&mpi, command, app).unwrap_or_else(|failure| {
        say(rank, &failure, json);
        mpi.abort(failure.code)
    });
    let provers = match command.ranks.provers_per_rank {
        Some(provers) => provers.get(),
        None => default_provers(mpi.ranks_on_node()),
    };
    let watch = Watch { silence: Duration::from_secs(command.ranks.silence), stuck };
    let outcome = mpi.run(&watch, |endpoint, abort| {
        // Unrecoverable errors abort all ranks immediately, even while provers are running.
        let fail = move |failure: &Failure| {
            say(rank, failure, json);
            abort.now(failure.code)
        };
        let grouped = match ranks::fanout(&command.ranks, endpoint.size()) {
            Some(fanout) => endpoint.with_leaders(fanout),
            None => endpoint,
        };
        let context =
            RankContext { endpoint: grouped, provers, on_node, fail: Box::new(fail), input: None };
        match rank {
            0 => prove::on_root(command, subject, &keys, json, context),
            _ => prove::on_worker(command, subject, &keys, context),
        }
    });
    let Err(failure) = outcome else {
        mpi.finish(exit::OK);
        return Ok(());
    };
    if rank == 0 && failure.code == exit::STOPPED {
        // The ranks leave MPI together, and launchers kill ranks that are slow to exit, so report first.
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
        // Rank 0 may report the same error with more context, but it may also be unable to.
        _ => output::say(format_args!("rank {rank}: error: {}", failure.message)),
    }
}

fn stuck(rank: usize, why: &str) -> u8 {
    output::say(format_args!("error: rank {rank} is lost: {why}; this rank exits"));
    exit::LOST
}

/// Returns the directory from which this rank reads the keys, after copying them if asked to.
fn place_keys(mpi: &Mpi, command: &Prove, app: &App) -> Result<PathBuf, Failure> {
    let ranks = &command.ranks;
    if ranks.stage_keys.is_none() && !ranks.keys_from_root {
        return Ok(command.keys.clone());
    }
    let (mut found, mut name) = (Vec::new(), Vec::new());
    // With --keys-from-root, the others learn both from rank 0.
    if mpi.rank() == 0 || !ranks.keys_from_root {
        let digest;
        (found, digest) = files(&command.keys, app)?;
        // One copy per user: a name that all users share could hold files of another user, who could change them.
        let user = std::fs::metadata("/proc/self").map_or(0, |me| me.uid());
        name = format!("hekaton-keys-{user}-{digest}").into_bytes();
    }
    let parent = ranks.stage_keys.clone().unwrap_or_else(std::env::temp_dir);
    if ranks.keys_from_root {
        mpi.broadcast(&mut name);
    }
    let to = parent.join(String::from_utf8_lossy(&name).into_owned());
    let placed = match ranks.keys_from_root {
        true => mpi.send_files(&command.keys, &to, &found),
        false => mpi.stage(&command.keys, &to, &found),
    };
    if let Err(MpiError::Leader) = &placed {
        // Gives the rank that knows the reason time to report it first.
        std::thread::sleep(Duration::from_secs(2));
    }
    placed.map_err(|e| not_placed(&e, &command.keys)).or_fail(exit::FAILED)?;
    let (_, copy) = files(&to, app).map_err(|e| {
        let why = format!("{}: the copy of the keys is damaged ({})", to.display(), e.message);
        Failure::new(exit::BAD_FILE, format!("{why}; remove this directory"))
    })?;
    // A directory of that name that was there before is used as it is, so its digest must be compared.
    if !to.to_string_lossy().ends_with(&copy) {
        let what = "its keys do not match its name; remove this directory";
        let why = format!("{}: {what}", to.display());
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    Ok(to)
}

/// Describes why the keys could not be placed. Unless they cannot be read, another place may do.
fn not_placed(error: &MpiError, keys: &Path) -> String {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    match error {
        MpiError::Io { path, error: io }
            if !path.starts_with(keys) || full.contains(&io.kind()) =>
        {
            format!("{error}; --stage-keys DIR selects another place for the copy")
        }
        _ => explain(error),
    }
}
