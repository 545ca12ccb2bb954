//! Audits of a directory.

use crate::failure::OrFailure;
use crate::options::DirectoryAudit;
use crate::source::Asking;
use hekaton_directory::{Audit, AuditError, Checked, EpochProof, SignedRecord};
use hekaton_directory_http::Base64;
use hekaton_directory_http::body::{EpochsBody, MAX_RECORDS, ProofRange};
use hekaton_directory_prover::CIRCUIT;
use hekaton_directory_prover::EpochKeys;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, counted};
use hekaton_terminal::progress::Display;
use serde_json::json;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time between reports of the progress of an audit.
const QUIET: Duration = Duration::from_secs(2);

/// The time between reports while proofs are waited for, and the time between queries for them.
const SAID: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);

/// Checks that an audit has epochs, of which the last one is there.
fn check_range((from, to): (u32, u32), last: u32, proven: u32, waits: bool) -> Result<(), Failure> {
    if from >= to || to > last {
        let mut why = format!(
            "an audit needs two epochs, the first one before the last: from {from} to {to}; \
             {} are visible, and the directory says that those up to epoch {} are proven",
            counted(u64::from(last) + 1, "epoch"),
            proven
        );
        if proven < last && !waits {
            why += &format!(
                "; epoch {} is signed and has no proof yet: --wait waits for it",
                u64::from(proven) + 1
            );
        }
        return Err(Failure::new(exit::FAILED, why));
    }
    Ok(())
}

pub(crate) fn run(command: &DirectoryAudit, json: bool) -> Result<(), Failure> {
    let keys = EpochKeys::open(&command.keys, command.accept_test_keys).or_failure()?;
    let asking = Asking::open(&command.asked)?;
    // With any other keys, a valid proof would say nothing about this directory.
    keys.check_parameters(&asking.parameters).or_failure()?;
    let epochs = match command.wait {
        true => wait(&asking, command.to)?,
        false => asking.source.epochs()?,
    };
    // What is not audited is counted from a record, not from what the server says.
    let newest = decode(&epochs.last.record)?.verify(&asking.parameters).or_fail(exit::REFUSED)?;
    asking.continued(&newest, &epochs.last.record.0, false)?;
    let last = newest.record().epoch;
    let (from, to) = (command.from, command.to.unwrap_or(epochs.proven));
    check_range((from, to), last, epochs.proven, command.wait)?;
    let mut auditing = Auditing::begin(&asking, from)?;
    let (start, display) = (Instant::now(), Display::new());
    let mut said = start;
    while auditing.proven() < to {
        auditing.next(&asking, &keys, to)?;
        if said.elapsed() > QUIET {
            said = Instant::now();
            display.line(&format!("audited up to epoch {} of {to}", auditing.proven()));
        }
    }
    let elapsed = start.elapsed();
    let Auditing { audit, proofs, bytes, verifying, .. } = auditing;
    // What comes after it is signed, and continues it.
    asking.follow(audit.last(), &newest)?;
    let (records, unproven) = (u64::from(to - from) + 1, last - to);
    let digest = hex::encode(audit.last().record().digest());
    let lines = format!(
        "the audit holds: from epoch {from} to {to}, each change inserted a label at version 0 or raised its \
         version by one\nrecords  {}\nproofs   {}, {}\naudited in {}, {} of it verifying proofs; the rest is asking \
         for them and deriving their keys\nrecord   {digest}{}",
        output::count(records),
        output::count(proofs),
        output::bytes(bytes),
        output::seconds(elapsed),
        output::seconds(verifying),
        match unproven {
            0 => String::new(),
            more => format!("\nnot audited: {} after it, signed", counted(more.into(), "epoch")),
        }
    );
    let object = json!({
        "ok": true, "circuit": CIRCUIT, "from": from, "to": to, "records": records,
        "proofs": proofs, "proof_bytes": bytes, "seconds": elapsed.as_secs_f64(),
        "verify_seconds": verifying.as_secs_f64(), "record": digest, "not_audited": unproven,
    });
    output::result(json, &object, &lines)
}

/// Waits until epochs are proven: up to one, or up to the last one that is visible now. The server's claims about proofs are
/// verified later.
fn wait(asking: &Asking, to: Option<u32>) -> Result<EpochsBody, Failure> {
    let display = Display::new();
    let (mut said, mut to) = (Instant::now(), to);
    loop {
        let epochs = asking.source.epochs()?;
        let (last, proven) = (epochs.last.epoch, epochs.proven);
        // Taken from the first answer: a server that keeps closing epochs would otherwise never let
        // this end.
        let end = *to.get_or_insert(last);
        // An epoch that is not there yet is for the audit to report.
        if proven >= end || end > last {
            return Ok(epochs);
        }
        let (proves, failures) = asking.source.proves()?;
        if !proves {
            let why = format!(
                "epoch {proven} of {end} is proven, and nothing proves the others: `hekaton directory serve` does with --keys, \
                 and `hekaton directory prove` does for a folder"
            );
            return Err(Failure::new(exit::FAILED, why));
        }
        if said.elapsed() > SAID {
            said = Instant::now();
            let why = match failures {
                0 => String::new(),
                more => {
                    format!(
                        "; {} failed, the log of the service says why",
                        counted(more, "attempt")
                    )
                }
            };
            display.line(&format!("epoch {proven} of {end} is proven{why}"));
        }
        std::thread::sleep(PAUSE);
    }
}

fn decode(bytes: &Base64) -> Result<SignedRecord, Failure> {
    SignedRecord::decode(&bytes.0).map_err(|e| format!("a record: {e}")).or_fail(exit::REFUSED)
}

fn rejected(error: &AuditError) -> Failure {
    Failure::new(exit::REFUSED, format!("the audit does not hold: {error}"))
}

/// An audit in progress, which keeps only one proof and the records of one answer in memory.
struct Auditing {
    audit: Audit,
    /// Proofs that the directory has listed.
    listed: VecDeque<ProofRange>,
    proofs: u64,
    bytes: u64,
    /// The time that verifying took.
    verifying: Duration,
}

impl Auditing {
    fn begin(asking: &Asking, from: u32) -> Result<Self, Failure> {
        let body = asking.source.records(from, from)?;
        let [first] = &body.records[..] else { return Err(few(from)) };
        let begun = Audit::begin(&asking.parameters, &decode(first)?, from);
        let begun = begun.map_err(|e| rejected(&e))?;
        let before = body.records_before(from).or_failure()?;
        let audit = begun.with_records(before).map_err(|e| rejected(&e))?;
        let (listed, verifying) = (VecDeque::new(), Duration::ZERO);
        Ok(Self { audit, listed, proofs: 0, bytes: 0, verifying })
    }

    fn proven(&self) -> u32 {
        epoch(self.audit.proven())
    }

    /// Audits the epochs of the next proof.
    fn next(&mut self, asking: &Asking, keys: &EpochKeys, end: u32) -> Result<(), Failure> {
        let at = self.proven();
        if self.listed.is_empty() {
            self.listed = asking.source.proofs(at.saturating_add(1))?.proofs.into();
        }
        let Some(range) = self.listed.pop_front() else {
            let why = format!("the directory has no proof of epoch {}", u64::from(at) + 1);
            return Err(Failure::new(exit::FAILED, why));
        };
        let ProofRange { from, to } = range;
        // Not a rejection: proofs cannot be cut, and the server has done nothing wrong.
        if from < at || (from == at && to > end) {
            let why = format!(
                "there is one proof from epoch {from} to {to}: an audit begins and ends where a proof does"
            );
            return Err(Failure::new(exit::FAILED, why));
        }
        self.audit.check_range(from, to, end).map_err(|e| rejected(&e))?;
        while epoch(self.audit.last()) < to {
            let next = epoch(self.audit.last()) + 1;
            let records = asking.source.records(next, to)?.records;
            let most = (to - next + 1).min(MAX_RECORDS) as usize;
            // After an empty answer this loop would never end, and a longer one would carry the
            // audit past the proof.
            if records.is_empty() || records.len() > most {
                return Err(few(next));
            }
            for record in &records {
                self.audit.record(&decode(record)?).map_err(|e| rejected(&e))?;
            }
        }
        let proof = EpochProof::from(asking.source.proof(range)?);
        let verified = self.audit.proof(&proof, |proof, values| {
            self.verifying += keys.verify(proof, values)?;
            Ok(())
        });
        verified.map_err(|e| rejected(&e))?;
        self.proofs += 1;
        self.bytes += proof.proof.len() as u64;
        Ok(())
    }
}

fn epoch(record: &Checked) -> u32 {
    record.record().epoch
}

fn few(epoch: u32) -> Failure {
    let why = format!("the directory does not give the records from epoch {epoch} on");
    Failure::new(exit::REFUSED, why)
}
