//! Transcripts of ceremonies: opening them, their circuits, and their contributors for people and programs.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::hints::explain;
use crate::imported;
use crate::imports;
use hekaton_ceremony::{
    FamilyGenesis, Transcript, chains_json, chains_text, key_has_last_points, verify_records,
};
use hekaton_circuit::named::ParameterMap;
use hekaton_circuit::{Masking, R1cs};
use hekaton_core::protocol::follows_from;
use hekaton_core::{FamilyKey, LocalEngine, Trust, VerifyingKey};
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
        return imports::of_parameters(directory, &parameters, app);
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

/// The ceremony of a verifying key that was derived from a family just now, for verdicts: as JSON the
/// transcript digest and the contributors, and lines for people; both are empty for keys that do not come from a ceremony.
///
/// # Errors
/// Fails if the family, or the logs of its ceremony in it, are damaged.
pub fn of_derived_key(family: &Path, key: &VerifyingKey) -> Result<(Value, String), Failure> {
    let Trust::Ceremony(digest) = key.trust else { return Ok((Value::Null, String::new())) };
    let (_, of_family) =
        FamilyStore::open(family).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let is_its_family = key.family == Some(of_family.digest().or_fail(exit::BAD_FILE)?);
    let about = about(family, &of_family, false)?;
    Ok(with_transcript(digest, about.filter(|_| is_its_family)))
}

/// The ceremony of a verifying key in a key store, or a file in one, for verdicts and reports. The key claims a family, which anybody
/// can: contributors are named if the store has this family, and the key is the one that follows from it.
/// `is_checked` says that all points of the keys were checked.
pub(crate) fn of_stored_key(
    keys: &Path,
    key: &VerifyingKey,
    is_checked: bool,
    app: &App,
) -> Result<(Value, String), Failure> {
    let Trust::Ceremony(digest) = key.trust else { return Ok((Value::Null, String::new())) };
    let store = if keys.is_dir() { keys } else { folder_of(keys) };
    let path = store.join(FAMILY);
    if key.circuit != imported::NAME || !FamilyStore::is_one(&path) {
        return Ok(with_transcript(digest, None));
    }
    let (_, family) = FamilyStore::open(&path).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    let mut follows = key.family == Some(family.digest().or_fail(exit::BAD_FILE)?)
        // Another circuit may have the same types, and a layout of its own.
        && (&key.circuit, &key.parameters)
            == (&family.header().circuit, &family.header().parameters);
    if follows {
        follows = follows_from_stored(store, &family, key, app)?;
    }
    if follows {
        return Ok(with_transcript(digest, about(&path, &family, is_checked)?));
    }
    let (mut object, _) = with_transcript(digest, None);
    object["is_of_ceremony"] = false.into();
    let line =
        "\nNOT THE KEY OF THIS CEREMONY: it does not follow from the family in its key store";
    Ok((object, line.to_owned()))
}

/// Reports whether a key is the one that follows from a family for the imported circuit in a key store.
fn follows_from_stored(
    store: &Path,
    family: &FamilyKey,
    key: &VerifyingKey,
    app: &App,
) -> Result<bool, Failure> {
    let parameters: ParameterMap =
        serde_json::from_str(&family.header().parameters).or_fail(exit::BAD_FILE)?;
    let circuit = imports::of_parameters(&imports::circuit_in(store), &parameters, app)?;
    let prepared = circuit.prepared().or_fail(exit::BAD_FILE)?;
    let engine = LocalEngine::new(None).or_fail(exit::FAILED)?;
    let wiring = prepared.layout().wiring(Masking::new(family.header().zero_knowledge));
    follows_from(family, &wiring, key, &engine).or_fail(exit::BAD_FILE)
}

/// [`of_stored_key`] for reports of something else: that contributors cannot be checked is a part of the report.
pub(crate) fn of_stored_key_if_readable(
    keys: &Path,
    key: &VerifyingKey,
    app: &App,
) -> (Value, String) {
    of_stored_key(keys, key, false, app).unwrap_or_else(|failure| {
        let line = format!("\nthe contributors could not be checked: {}", failure.message);
        (json!({ "transcript": null, "chains": null, "error": failure.message }), line)
    })
}

fn with_transcript(digest: [u8; 32], about: Option<(Value, String)>) -> (Value, String) {
    let (chains, lines) = about
        .map_or((Value::Null, String::new()), |(chains, lines)| (chains, format!("\n{lines}")));
    (json!({ "transcript": hex::encode(digest), "chains": chains }), lines)
}

/// The contributors to the keys of a family, from the logs beside them, after a check of the records and that the keys end
/// with their points: for `inspect`, `keys verify` and verdicts. Nothing, if the keys do not come from a ceremony. `is_checked` says that
/// all points of the keys were checked.
pub(crate) fn about(
    path: &Path,
    family: &FamilyKey,
    is_checked: bool,
) -> Result<Option<(Value, String)>, Failure> {
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
    let mut lines = chains_text(&all);
    if !is_checked {
        lines += "\nOnly records and single points were compared with the keys: `hekaton keys verify KEYS --powers DIR` \
                  checks all.";
    }
    Ok(Some((chains_json(&all), lines)))
}

/// The most families of which each extends the one before.
const MOST_FAMILIES: usize = 64;

/// The logs in the keys of a family: those of the families that it extends, the oldest first, and its own. None, if the keys have no
/// logs. Each extends the one before.
pub(crate) fn families_in(path: &Path) -> Result<Vec<Transcript>, Failure> {
    let folder = path.join(IN_KEYS);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let extended = (1..).map(|number| folder.join(extended(number)));
    let all = extended.take_while(|path| path.exists()).take(MOST_FAMILIES);
    let (mut families, mut before) = (Vec::new(), None);
    for place in all.chain([folder.join("family")]) {
        let family = open(&place)?;
        if family.genesis.family().is_none_or(|genesis| genesis.extends != before) {
            let why = "does not extend the family of the log before it, or that one is missing in the keys";
            return Err(Failure::new(exit::BAD_FILE, format!("{}: {why}", place.display())));
        }
        before = Some(family.digest());
        families.push(family);
    }
    Ok(families)
}

/// The folder with the log of a family that was extended.
pub(crate) fn extended(number: usize) -> String {
    format!("extended-{number}")
}
