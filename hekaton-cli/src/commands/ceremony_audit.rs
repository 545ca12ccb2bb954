//! `hekaton ceremony verify`: what anybody can check.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::family::failed as failed_to_derive;
use crate::hints::explain;
use crate::options::{CeremonyVerify, KeysVerify};
use crate::transcripts::{IN_KEYS, circuit_of_genesis, family_in, types_of};
use hekaton_ceremony::{
    CeremonyError, Family, FamilyGenesis, Powers, Subject, Transcript, chains_json, chains_text,
    check_receipt, is_finished, transcript_of_keys, verify_family, verify_powers, verify_records,
};
use hekaton_circuit::R1cs;
use hekaton_core::{LocalEngine, ProverKeys, Trust};
use hekaton_storage::{FamilyStore, KeyStore, Manifest};
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
            let (types, _) = types_of(&*circuit, genesis.zero_knowledge)?;
            let (powers, family) = on_threads(&command.threads, || {
                let powers = verify_powers(of_powers, &mut steps(&display))?;
                let family = verify_family(&transcript, &powers, &types, &mut steps(&display))?;
                Ok((powers, family))
            })?;
            if let Some(keys) = &command.keys {
                display.line("comparing the keys");
                compare(&family_in(keys), &powers, &family, types)?;
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

/// Makes the whole check of the ceremony from which keys come: of its powers, its records, and every point, which is in the keys
/// themselves.
pub(crate) fn whole_check_of_keys(
    command: &KeysVerify,
    powers: &Path,
    app: &App,
    engine: &LocalEngine,
    display: &Display,
) -> Result<(), Failure> {
    let keys = command.keys.as_path();
    let path = family_in(keys);
    let records = path.join(IN_KEYS).join("family");
    if !records.exists() {
        let why = format!(
            "{}: --powers checks a ceremony, but the logs of one are not in the keys",
            keys.display()
        );
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let (of_powers, records) = (open(powers)?, open(&records)?);
    belong_together(&path, &records)?;
    let Subject::Family(genesis) = &records.genesis.subject else {
        let why = "the logs in the keys are those of powers";
        return Err(Failure::new(exit::BAD_FILE, format!("{}: {why}", keys.display())));
    };
    // Before the circuit is made, whose parameters the genesis has chosen.
    verify_records(&records).map_err(|e| failed(&e))?;
    let circuit = circuit_of_genesis(genesis, command.circuit.as_deref(), app)?;
    let (types, _) = types_of(&*circuit, genesis.zero_knowledge)?;
    let opened = FamilyStore::open(&path)
        .and_then(|(manifest, family)| Ok((family, FamilyStore::proving_keys(&path, &manifest)?)));
    let (family, proving_keys) = opened.map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    // As large as the keys.
    let place = tempfile::Builder::new().prefix("hekaton-ceremony-").tempdir();
    let place = place.map_err(|e| format!("a temporary directory: {e}")).or_fail(exit::FAILED)?;
    let checked = engine.install(|| {
        let powers = verify_powers(&of_powers, &mut steps(display))?;
        display.line("writing the sections of the ceremony from the keys");
        let transcript = transcript_of_keys(&records, place.path(), &family, &proving_keys)?;
        let family = verify_family(&transcript, &powers, &types, &mut steps(display))?;
        Ok((powers, family))
    });
    let (powers, family) = checked.map_err(|e: CeremonyError| failed(&e))?;
    display.line("comparing the keys");
    compare(&path, &powers, &family, types)?;
    compare_derived(keys, genesis, &*circuit)
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

/// Compares the keys of an imported circuit with those that follow from the family in their folder.
fn compare_derived(
    keys: &Path,
    genesis: &FamilyGenesis,
    circuit: &dyn OpenCircuit,
) -> Result<(), Failure> {
    let path = family_in(keys);
    if path == keys {
        return Ok(());
    }
    let opened = FamilyStore::open(&path).and_then(|family| Ok((family, KeyStore::open(keys)?)));
    let ((of_family, family), (manifest, found)) =
        opened.map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let engine = LocalEngine::new(None).or_fail(exit::FAILED)?;
    let circuit = circuit.prepared().or_fail(exit::FAILED)?;
    let family = (&of_family, &family);
    let derived = FamilyStore::derive(&path, family, &circuit, &genesis.parameters, &engine);
    let (expected, derived) = derived.map_err(|e| failed_to_derive(&e))?;
    let digests = |manifest: &Manifest| -> Vec<String> {
        manifest.types.iter().map(|kind| kind.digest.clone()).collect()
    };
    let aggregation = |keys: &ProverKeys| keys.aggregation.sections().digest();
    match digests(&manifest) == digests(&expected)
        && found.verifying.digest() == derived.verifying.digest()
        && aggregation(&found) == aggregation(&derived)
    {
        true => Ok(()),
        false => {
            let why = "the keys of the circuit do not follow from the family in them";
            Err(Failure::new(exit::REFUSED, format!("{}: {why}", keys.display())))
        }
    }
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
