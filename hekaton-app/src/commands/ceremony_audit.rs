//! `hekaton ceremony verify`: what anybody can check.

use super::ceremony_check::{CeremonyKeys, Types, Whole, belong_together, compare_derived};
use crate::app::App;
use crate::hints::explain;
use crate::options::CeremonyVerify;
use crate::transcripts::{circuit_of_genesis, family_in};
use hekaton_ceremony::{
    Subject, Transcript, chains_json, chains_text, check_receipt, is_finished, verify_powers,
    verify_records,
};
use hekaton_storage::FamilyStore;
use hekaton_terminal::ceremony::{failed, on_threads, open, steps};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use hekaton_terminal::unfinished::Unfinished;
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
    let extends = command.extends.as_deref().map(CeremonyKeys::open).transpose()?;
    transcripts.extend(extends.iter().flat_map(|keys| &keys.records));
    // First what takes no time.
    for path in &command.receipt {
        receipt_is_in(path, &transcripts)?;
    }
    if let Some(keys) = &command.keys {
        belong_together(&family_in(keys), &transcript)?;
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
            let circuit = circuit_of_genesis(genesis, command.circuit.as_deref(), app)?;
            // Reads all files of a circuit directory.
            circuit.inspect()?;
            let types = Types::of(&*circuit, genesis, extends.as_ref(), app)?;
            let unfinished = Unfinished::start("interrupted: the ceremony was not checked", json)?;
            let whole = command.threads.install(|| {
                let place = (&unfinished, &display);
                Whole::check([of_powers, &transcript], extends.as_ref(), types, place)
            })??;
            if let Some(keys) = &command.keys {
                display.line("comparing the keys");
                let path = family_in(keys);
                let opened = FamilyStore::open(&path).and_then(|(manifest, family)| {
                    // Reads all proving keys and compares them with the digests of the manifest.
                    FamilyStore::proving_keys(&path, &manifest)?;
                    Ok((manifest, family))
                });
                let (manifest, family) = opened.map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
                whole.compare(&path, (&manifest, &family))?;
                compare_derived(keys, genesis, &*circuit)?;
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
