//! Transcripts of ceremonies: opening them, their circuits, and their contributors for people and programs.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::hints::explain;
use crate::imported;
use hekaton_ceremony::{
    FamilyGenesis, Transcript, chains_json, chains_text, key_has_last_points, verify_records,
};
use hekaton_circuit::named::ParameterMap;
use hekaton_circuit::{Masking, R1cs};
use hekaton_core::{FamilyKey, Trust, VerifyingKey};
use hekaton_files::folder_of;
use hekaton_storage::FamilyStore;
use hekaton_terminal::ceremony::{failed, open};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::one_line;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

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

/// The circuit that a genesis names. An imported circuit has no name: its directory must be the one that the genesis has the digest
/// of.
pub(crate) fn circuit_of_genesis(
    genesis: &FamilyGenesis,
    directory: Option<&Path>,
    app: &App,
) -> Result<Box<dyn OpenCircuit>, Failure> {
    let parameters: ParameterMap =
        serde_json::from_str(&genesis.parameters).or_fail(exit::BAD_FILE)?;
    if genesis.circuit == imported::NAME {
        let directory = directory.ok_or_else(|| {
            let circuit = imported::describe(imported::NAME, &Value::Object(parameters.clone()));
            let why = format!("the ceremony is for an {circuit}: --circuit DIR");
            Failure::new(exit::USAGE, why)
        })?;
        return imported::of_parameters(directory, &parameters);
    }
    if directory.is_some() {
        let why = "--circuit is for ceremonies of imported circuits; this program has this circuit's code";
        return Err(Failure::new(exit::USAGE, why));
    }
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

/// The folder of a key store with the family from which a ceremony's keys of an imported circuit were derived.
pub(crate) const FAMILY: &str = "family";

/// The directory of the family in some keys: the keys themselves, or a folder of a key store.
pub(crate) fn family_in(keys: &Path) -> PathBuf {
    let inner = keys.join(FAMILY);
    match FamilyStore::is_one(&inner) {
        true => inner,
        false => keys.to_owned(),
    }
}

/// The ceremony of a verifying key, for verdicts and reports: the transcript digest, and the contributors where its family
/// is beside it. `keys` are a family, a key store, or a file in one.
pub(crate) fn of_key(keys: &Path, key: &VerifyingKey) -> Result<(Value, String), Failure> {
    let Trust::Ceremony(digest) = key.trust else { return Ok((Value::Null, String::new())) };
    let mut object = json!({ "transcript": hex::encode(digest), "chains": null });
    let folder = if keys.is_dir() { keys } else { folder_of(keys) };
    let path = family_in(folder);
    if !FamilyStore::is_one(&path) {
        return Ok((object, String::new()));
    }
    let (_, family) = FamilyStore::open(&path).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    // Another family that happens to be there says nothing about this key.
    if key.family != Some(family.digest().or_fail(exit::BAD_FILE)?) {
        return Ok((object, String::new()));
    }
    let Some((chains, lines)) = about(&path, &family)? else {
        return Ok((object, String::new()));
    };
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
    let of_powers = open(&folder.join("powers"))?;
    let families = families_in(path)?;
    let all: Vec<&Transcript> = std::iter::once(&of_powers).chain(&families).collect();
    all.iter()
        .try_for_each(|transcript| verify_records(transcript).map(drop).map_err(|e| failed(&e)))?;
    key_has_last_points(&of_powers, &all[1..], family)
        .map_err(|e| Failure { message: format!("{}: {e}", folder.display()), ..failed(&e) })?;
    Ok(Some((chains_json(&all), chains_text(&all))))
}

/// The logs in the keys of a family: those of the families that it extends, the oldest first, and its own. None, if the keys have no
/// logs.
pub(crate) fn families_in(path: &Path) -> Result<Vec<Transcript>, Failure> {
    let folder = path.join(IN_KEYS);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let extended = (1..).map(|number| folder.join(extended(number)));
    let all = extended.take_while(|path| path.exists()).chain([folder.join("family")]);
    all.map(|path| open(&path)).collect()
}

/// The folder with the log of a family that was extended.
pub(crate) fn extended(number: usize) -> String {
    format!("extended-{number}")
}
