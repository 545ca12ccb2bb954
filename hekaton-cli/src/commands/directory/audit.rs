//! Audits of a directory.

use super::ask::plural;
use super::folder::CIRCUIT;
use super::prover::EpochKeys;
use super::source::Asking;
use crate::exit::{self, Failure, OrFail};
use crate::options::DirectoryAudit;
use crate::program::Program;
use crate::terminal::output;
use crate::terminal::progress::Display;
use hekaton_directory::{AuditError, EpochProof, SignedRecord, audit};
use hekaton_directory_http::body::ProofRange;
use serde_json::json;
use std::time::{Duration, Instant};

pub(super) fn run(command: &DirectoryAudit, program: &Program, json: bool) -> Result<(), Failure> {
    let keys = EpochKeys::open(&command.keys, program, command.accept_test_keys)?;
    let asking = Asking::open(&command.asked)?;
    keys.check_parameters(&asking.parameters)?;
    let epochs = asking.source.epochs()?;
    let (from, to) = (command.from, command.to.unwrap_or(epochs.proven));
    if from >= to {
        let why = format!(
            "an audit needs two epochs, the first one before the last: from {from} to {to}; \
             {} are visible, proven up to epoch {}",
            plural(u64::from(epochs.last.epoch) + 1, "epoch"),
            epochs.proven
        );
        return Err(Failure::new(exit::FAILED, why));
    }
    let display = Display::new();
    let records = records(&asking, from, to)?;
    let proofs = proofs(&asking, from, to)?;
    let bytes: usize = proofs.iter().map(|proof| proof.proof.len()).sum();
    display.line(&format!(
        "{} and {}, {} of proofs",
        plural(records.len() as u64, "record"),
        plural(proofs.len() as u64, "proof"),
        output::bytes(bytes as u64)
    ));
    let start = Instant::now();
    let mut verifying = Duration::ZERO;
    let [_, last] = audit(&asking.parameters, &records, &proofs, |proof, values| {
        verifying += keys.verify(proof, values)?;
        Ok(())
    })
    .map_err(|error| rejected(&error))?;
    let elapsed = start.elapsed();
    if let Some(record) = records.last() {
        asking.continued(&last, &record.encode())?;
    }
    let unproven = epochs.last.epoch.saturating_sub(to);
    let lines = format!(
        "the audit holds: from epoch {from} to {to}, each change inserted a label at version 0 or raised its \
         version by one\nrecords  {}\nproofs   {}, {}\nverified in {}, {} of it for the proofs; their keys were \
         derived in the rest\nrecord   {}{}",
        output::count(records.len() as u64),
        output::count(proofs.len() as u64),
        output::bytes(bytes as u64),
        output::seconds(elapsed),
        output::seconds(verifying),
        hex::encode(last.record().digest()),
        match unproven {
            0 => String::new(),
            more => format!("\nnot audited: {} after it, signed", plural(more.into(), "epoch")),
        }
    );
    let object = json!({
        "ok": true, "circuit": CIRCUIT, "from": from, "to": to, "records": records.len(),
        "proofs": proofs.len(), "proof_bytes": bytes, "seconds": elapsed.as_secs_f64(),
        "verify_seconds": verifying.as_secs_f64(), "record": hex::encode(last.record().digest()),
        "not_audited": unproven,
    });
    output::result(json, &object, &lines)
}

fn rejected(error: &AuditError) -> Failure {
    let code = match error {
        AuditError::Gap { .. } | AuditError::Unproven { .. } => exit::FAILED,
        _ => exit::REFUSED,
    };
    Failure::new(code, format!("the audit does not hold: {error}"))
}

fn records(asking: &Asking, from: u32, to: u32) -> Result<Vec<SignedRecord>, Failure> {
    let mut records = Vec::new();
    loop {
        let next = u64::from(from) + records.len() as u64;
        let Some(next) = u32::try_from(next).ok().filter(|next| *next <= to) else {
            return Ok(records);
        };
        let some = asking.source.records(next, to)?.records;
        if some.is_empty() {
            let why = format!("the directory gives no records from epoch {next} on");
            return Err(Failure::new(exit::REFUSED, why));
        }
        let left = (to - next) as usize + 1;
        for bytes in some.into_iter().take(left) {
            let record = SignedRecord::decode(&bytes.0);
            let record = record.map_err(|e| format!("a record after epoch {next}: {e}"));
            records.push(record.or_fail(exit::REFUSED)?);
        }
    }
}

/// The proofs that begin and end between two epochs.
fn proofs(asking: &Asking, from: u32, to: u32) -> Result<Vec<EpochProof>, Failure> {
    let (mut proofs, mut at) = (Vec::new(), from);
    while at < to {
        let ranges = asking.source.proofs(at.saturating_add(1))?.proofs;
        let next: Vec<ProofRange> =
            ranges.into_iter().filter(|range| range.from >= at && range.to <= to).collect();
        let Some(last) = next.last() else { break };
        // Whatever the server says, it goes on.
        at = last.to.max(at + 1);
        for range in next {
            proofs.push(asking.source.proof(range)?.into());
        }
    }
    Ok(proofs)
}
