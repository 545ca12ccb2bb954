//! Transcripts of ceremonies: opening them, their circuits, and their contributors for people and programs.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::hints::explain;
use hekaton_ceremony::{
    FamilyGenesis, Transcript, chains_json, chains_text, key_has_last_points, verify_records,
};
use hekaton_circuit::named::ParameterMap;
use hekaton_circuit::{Masking, R1cs};
use hekaton_core::{FamilyKey, Trust};
use hekaton_storage::FamilyStore;
use hekaton_terminal::ceremony::{failed, open};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::one_line;
use serde_json::{Value, json};
use std::path::Path;

/// The folder of a family's keys with the logs of its ceremony.
pub(crate) const IN_KEYS: &str = "ceremony";

/// The types of a circuit, and the names of its buses.
pub(crate) fn types_of(
    circuit: &dyn OpenCircuit,
    zero_knowledge: bool,
) -> Result<(Vec<R1cs>, Vec<String>), Failure> {
    let prepared = circuit.prepared().map_err(|e| format!("layout: {e}")).or_fail(exit::USAGE)?;
    let masking = Masking::new(zero_knowledge);
    let kinds = prepared.layout().type_ids();
    let types = kinds.map(|kind| prepared.r1cs(kind, masking)).collect::<Result<_, _>>();
    let buses = prepared.layout().wiring_without_slots(masking).buses;
    Ok((types.or_fail(exit::FAILED)?, buses))
}

/// The types of the circuit that a genesis names.
pub(crate) fn types_of_genesis(genesis: &FamilyGenesis, app: &App) -> Result<Vec<R1cs>, Failure> {
    Ok(types_of(&*circuit_of_genesis(genesis, app)?, genesis.zero_knowledge)?.0)
}

/// The circuit that a genesis names.
pub(crate) fn circuit_of_genesis(
    genesis: &FamilyGenesis,
    app: &App,
) -> Result<Box<dyn OpenCircuit>, Failure> {
    let parameters: ParameterMap =
        serde_json::from_str(&genesis.parameters).or_fail(exit::BAD_FILE)?;
    let application = app.get(&genesis.circuit).ok_or_else(|| {
        let why = format!(
            "this program does not have the circuit '{}': use the program that began the ceremony",
            one_line(&genesis.circuit)
        );
        Failure::new(exit::BAD_FILE, why)
    })?;
    // Types do not depend on the size of inputs.
    let family = application.family(&parameters, 0).map_err(|e| explain(&*e));
    let (family, _) = family.or_fail(exit::BAD_FILE)?;
    Ok(family.circuit)
}

/// The ceremony of verified keys, for a verdict: the transcript digest, and the contributors where the family at `path` is at hand.
pub(crate) fn for_verdict(path: &Path, trust: Trust) -> Result<(Value, String), Failure> {
    let Trust::Ceremony(digest) = trust else { return Ok((Value::Null, String::new())) };
    let mut object = json!({ "transcript": hex::encode(digest), "chains": null });
    if !FamilyStore::is_one(path) {
        return Ok((object, String::new()));
    }
    let (_, family) = FamilyStore::open(path).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let Some((chains, lines)) = about(path, &family)? else { return Ok((object, String::new())) };
    object["chains"] = chains;
    Ok((object, format!("\n{lines}")))
}

/// The contributors to the keys of a family, from the logs beside them, after a check of the records and that the keys end
/// with their points: for `inspect`, `keys verify` and verdicts. Nothing, if the keys do not come from a ceremony.
pub(crate) fn about(path: &Path, family: &FamilyKey) -> Result<Option<(Value, String)>, Failure> {
    let Trust::Ceremony(_) = family.header().trust else { return Ok(None) };
    let folder = path.join(IN_KEYS);
    if !folder.exists() {
        let line = "the logs of the ceremony are not beside the keys, so its contributors were not checked";
        return Ok(Some((Value::Null, line.to_owned())));
    }
    let read = |name: &str| -> Result<Transcript, Failure> {
        let transcript = open(&folder.join(name))?;
        verify_records(&transcript).map_err(|e| failed(&e))?;
        Ok(transcript)
    };
    let (of_powers, of_family) = (read("powers")?, read("family")?);
    let transcripts = [&of_powers, &of_family];
    key_has_last_points(transcripts, family)
        .map_err(|e| Failure { message: format!("{}: {e}", folder.display()), ..failed(&e) })?;
    Ok(Some((chains_json(&transcripts), chains_text(&transcripts))))
}
