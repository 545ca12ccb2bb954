//! `hekaton ceremony verify`: what anybody can check.

use crate::app::App;
use crate::hints::explain;
use crate::options::CeremonyVerify;
use crate::transcripts::types_of_genesis;
use hekaton_ceremony::{
    Family, Powers, Subject, Transcript, chains_json, chains_text, check_receipt, is_finished,
    verify_family, verify_powers, verify_records,
};
use hekaton_circuit::R1cs;
use hekaton_core::Trust;
use hekaton_storage::FamilyStore;
use hekaton_terminal::ceremony::{failed, on_threads, open, steps};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use serde_json::json;
use std::path::Path;
use std::time::Instant;

pub(crate) fn verify(command: &CeremonyVerify, app: &App, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let display = Display::new();
    let transcript = open(&command.ceremony)?;
    let mut transcripts = vec![&transcript];
    let of_powers = command.powers.as_deref().map(open).transpose()?;
    transcripts.extend(&of_powers);
    // First what takes no time.
    for path in &command.receipt {
        receipt_is_in(path, &transcripts)?;
    }
    if let Some(keys) = &command.keys {
        belong_together(keys, &transcript)?;
    }
    let mut compared = false;
    match (&transcript.genesis.subject, &of_powers, command.records_only) {
        (_, _, true) => {
            on_threads(&command.threads, || verify_records(&transcript).map(|_| ()))?;
        }
        (Subject::Powers(_), None, false) => {
            on_threads(&command.threads, || {
                verify_powers(&transcript, &mut steps(&display)).map(|_| ())
            })?;
        }
        (Subject::Powers(_), Some(_), false) => {
            let why = "these are powers: --powers is for families";
            return Err(Failure::new(exit::USAGE, why));
        }
        (Subject::Family(genesis), Some(of_powers), false) => {
            // Before the circuit is made, whose parameters the genesis has chosen.
            verify_records(&transcript).map_err(|e| failed(&e))?;
            let types = types_of_genesis(genesis, app)?;
            let (powers, family) = on_threads(&command.threads, || {
                let powers = verify_powers(of_powers, &mut steps(&display))?;
                let family = verify_family(&transcript, &powers, &types, &mut steps(&display))?;
                Ok((powers, family))
            })?;
            if let Some(keys) = &command.keys {
                display.line("comparing the keys");
                compare(keys, &powers, &family, types)?;
                compared = true;
            }
        }
        (Subject::Family(_), None, false) => {
            let why = "the whole check of a family needs its powers: --powers DIR; --records-only checks the \
                       records";
            return Err(Failure::new(exit::USAGE, why));
        }
    }
    let digest = hex::encode(transcript.digest());
    let what = match (command.records_only, compared) {
        (true, _) => "the records are correct; sections and keys were not checked",
        (false, false) => "the ceremony is correct: all records, and every point",
        (false, true) => "the ceremony is correct: all records, every point, and the keys",
    };
    let lines = format!(
        "{what} ({})\n{}: {}\n{}transcript: {digest}\n{}",
        output::seconds(start.elapsed()),
        if is_finished(&transcript) { "finished" } else { "not finished yet" },
        transcript.genesis.title(),
        if command.receipt.is_empty() { "" } else { "all receipts are in it\n" },
        chains_text(&transcripts),
    );
    let object = json!({
        "ok": true, "transcript": digest, "subject": transcript.genesis.title(),
        "records_only": command.records_only, "keys_compared": compared,
        "receipts": command.receipt, "chains": chains_json(&transcripts),
        "seconds": start.elapsed().as_secs_f64(),
    });
    output::result(json, &object, lines.trim_end())
}

/// Checks that keys name the transcript.
fn belong_together(path: &Path, transcript: &Transcript) -> Result<(), Failure> {
    let (_, family) = FamilyStore::open(path).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    match family.header().trust {
        Trust::Ceremony(digest) if digest == transcript.digest() => Ok(()),
        other => {
            let why = format!(
                "{}: the keys do not come from this ceremony, whose transcript is {}, but are {}",
                path.display(),
                hex::encode(transcript.digest()),
                other.statement()
            );
            Err(Failure::new(exit::BAD_FILE, why))
        }
    }
}

/// Compares the keys of a family with those of the transcript, byte for byte.
fn compare(path: &Path, powers: &Powers, family: &Family, types: Vec<R1cs>) -> Result<(), Failure> {
    let (manifest, found) =
        FamilyStore::open(path).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    // Reads all proving keys and compares them with the digests of the manifest.
    FamilyStore::proving_keys(path, &manifest).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let differs = |what: &str| {
        let why = format!("{}: {what} is not that of the ceremony", path.display());
        Failure::new(exit::REFUSED, why)
    };
    let expected = family.key(powers).map_err(|e| failed(&e))?;
    if found.sections().digest() != expected.sections().digest() {
        return Err(differs("the family key"));
    }
    for (number, r1cs) in types.into_iter().enumerate() {
        let name = r1cs.name.clone();
        let key = family.proving_key(powers, number, r1cs).map_err(|e| failed(&e))?;
        let digest = hex::encode(key.sections().digest());
        if manifest.types.get(number).is_none_or(|entry| entry.digest != digest) {
            return Err(differs(&format!("the proving key of type '{name}'")));
        }
    }
    Ok(())
}

/// The longest receipt that is read.
const RECEIPT_LIMIT: u64 = 1 << 20;

/// Checks that all contributions in a receipt are in one of the transcripts.
fn receipt_is_in(path: &Path, transcripts: &[&Transcript]) -> Result<(), Failure> {
    let text = exit::read_at_most(path, RECEIPT_LIMIT)?;
    let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let text =
        String::from_utf8(text).map_err(|_| named(&"is not text")).or_fail(exit::BAD_FILE)?;
    check_receipt(&text, transcripts).map_err(|e| Failure { message: named(&e), ..failed(&e) })
}
