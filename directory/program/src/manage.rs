//! Commands of operators for a folder that no service has open.

use crate::failure::OrFailure;
use crate::folder::{Folder, quiet};
use crate::options::{DirectoryErase, DirectoryFolder, DirectoryProve, DirectoryPrune};
use crate::proving;
use crate::serve::stop_on_signals;
use hekaton_directory_prover::EpochKeys;
use hekaton_directory_server::Report;
use hekaton_directory_server::{ProveError, prove_all};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, count, counted};
use hekaton_terminal::progress::Display;
use serde_json::json;
use std::time::Instant;

pub(crate) fn check(command: &DirectoryFolder, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let folder = Folder::read(&command.folder)?;
    let server = folder.open_to_read()?;
    let report = server.check().map_err(|e| format!("{}: {e}", command.folder.display()));
    let Report { epochs, leaves, entries, tiles, proven, .. } = report.or_fail(exit::BAD_FILE)?;
    let lines = format!(
        "all is in order, up to epoch {epochs}\nlabels   {}\nupdates  {}\ntiles    {}\nproven   up to epoch {proven}; \
         `hekaton directory audit` verifies the proofs\nchecked in {}",
        count(leaves),
        count(entries),
        count(tiles),
        output::seconds(start.elapsed()),
    );
    let object = json!({
        "ok": true, "epochs": epochs, "leaves": leaves, "updates": entries, "tiles": tiles,
        "proven": proven, "seconds": start.elapsed().as_secs_f64(),
    });
    server.close().or_fail(exit::FAILED)?;
    output::result(json, &object, &output::with_program(&lines))
}

pub(crate) fn prune(command: &DirectoryPrune, json: bool) -> Result<(), Failure> {
    let server = Folder::read(&command.folder)?.open(quiet())?;
    server.prune(command.epoch).or_fail(exit::FAILED)?;
    let first = server.pruned().or_fail(exit::FAILED)?;
    server.close().or_fail(exit::FAILED)?;
    let lines = format!("look-ups are answered from epoch {first} on");
    output::result(json, &json!({ "ok": true, "first": first }), &lines)
}

pub(crate) fn erase(command: &DirectoryErase, json: bool) -> Result<(), Failure> {
    let server = Folder::read(&command.folder)?.open(quiet())?;
    let (label, version) = (&command.label, command.version);
    server.erase(label.as_bytes(), version).or_fail(exit::FAILED)?;
    server.close().or_fail(exit::FAILED)?;
    let lines = format!("the value of '{label}' at version {version} is erased; its digest stays");
    output::result(json, &json!({ "ok": true, "label": label, "version": version }), &lines)
}

pub(crate) fn prove(command: &DirectoryProve, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let folder = Folder::read(&command.folder)?;
    let proving = &command.proving;
    let keys = EpochKeys::open(&command.keys, proving.accept_test_keys).or_failure()?;
    keys.check_parameters(&folder.parameters).or_failure()?;
    let server = folder.open(quiet())?;
    let prover = proving::prover(keys, &folder.proving(), proving)?;
    let before = server.proven().or_fail(exit::FAILED)?;
    prover.clean(before);
    let stop = stop_on_signals("stopping: what is done is kept for the next time", json)?;
    let display = Display::new();
    let mut proofs = 0u64;
    let proven = prove_all(&server, &prover, &stop, |from, to| {
        proofs += 1;
        display.line(&match to - from {
            1 => format!("epoch {to} is proven"),
            _ => format!("epochs {} to {to} are proven", from + 1),
        });
    });
    proven.map_err(|error| match error {
        ProveError::Stopped => {
            Failure::new(exit::STOPPED, "stopped; run the same command again to continue")
        }
        error => Failure::new(exit::FAILED, error),
    })?;
    let after = server.proven().or_fail(exit::FAILED)?;
    server.close().or_fail(exit::FAILED)?;
    let lines = format!(
        "all epochs up to {after} are proven: {} for {}, in {}",
        counted(proofs, "new proof"),
        counted((after - before).into(), "epoch"),
        output::seconds(start.elapsed()),
    );
    let object = json!({
        "ok": true, "proven": after, "proofs": proofs, "epochs": after - before,
        "seconds": start.elapsed().as_secs_f64(),
    });
    output::result(json, &object, &lines)
}
