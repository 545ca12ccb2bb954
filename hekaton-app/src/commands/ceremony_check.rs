//! The whole check of a family's ceremony, from the powers on and with the families that it extends; and of keys that come from one.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::family::failed as failed_to_derive;
use crate::hints::explain;
use crate::imported::NAME;
use crate::options::KeysVerify;
use crate::transcripts::{circuit_of_genesis, families_in, family_in, types_of};
use hekaton_ceremony::{
    Family, FamilyGenesis, Powers, Transcript, transcript_of_keys, verify_family, verify_powers,
    verify_records,
};
use hekaton_circuit::R1cs;
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{FamilyKey, LocalEngine, ProverKeys, Trust};
use hekaton_storage::{FamilyManifest, FamilyStore, KeyStore, Manifest};
use hekaton_terminal::ceremony::{failed, open, steps};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::progress::Display;
use hekaton_terminal::unfinished::Unfinished;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The keys of a family from a ceremony, with the logs in them.
pub(crate) struct CeremonyKeys {
    pub(crate) path: PathBuf,
    pub(crate) manifest: FamilyManifest,
    family: FamilyKey,
    types: Vec<ProvingKey>,
    /// The families of which each extends the one before.
    pub(crate) records: Vec<Transcript>,
}

impl CeremonyKeys {
    /// Opens keys, and checks that their logs are those of the ceremony that they name.
    pub(crate) fn open(keys: &Path) -> Result<Self, Failure> {
        let (path, records) = logs_in(keys)?;
        belong_together(&path, records.last().expect("keys with logs have a family"))?;
        // Before circuits are made, whose parameters a genesis has chosen.
        records.iter().try_for_each(|of_family| {
            verify_records(of_family).map(drop).map_err(|e| failed(&e))
        })?;
        let opened = FamilyStore::open(&path).and_then(|(manifest, family)| {
            let types = FamilyStore::proving_keys(&path, &manifest)?;
            Ok((manifest, family, types))
        });
        let (manifest, family, types) = opened.map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
        Ok(Self { path, manifest, family, types, records })
    }

    /// The geneses of the families.
    fn geneses(&self) -> Result<Vec<&FamilyGenesis>, Failure> {
        let all = self.records.iter().map(|records| {
            records.genesis.family().ok_or_else(|| {
                let why = "a log of powers, expected a family's";
                Failure::new(exit::BAD_FILE, format!("{}: {why}", records.path.display()))
            })
        });
        all.collect()
    }

    /// Makes the whole check of the ceremonies, whose points are in the keys themselves, in temporary directories as large as these.
    pub(crate) fn check(
        &self,
        powers: Powers,
        types: Vec<Vec<R1cs>>,
        unfinished: &Unfinished,
        display: &Display,
    ) -> Result<Whole, Failure> {
        let (mut family, mut places, mut all) = (None, Vec::new(), Vec::new());
        for (records, types) in self.records.iter().zip(types) {
            display.line("writing the sections of the ceremony from the keys");
            let place = unfinished.scratch()?;
            let (key, keys) = (&self.family, &self.types);
            let checked =
                transcript_of_keys(records, place.path(), key, keys, all.len()).and_then(|found| {
                    verify_family(&found, &powers, family.take(), &types, &mut steps(display))
                });
            family = Some(checked.map_err(|e| failed(&e))?);
            places.push(place);
            all.extend(types);
        }
        let family = family.expect("keys with logs have a family");
        let whole = Whole { powers, family, types: all, places };
        display.line("comparing the keys");
        whole.compare(&self.path, (&self.manifest, &self.family))?;
        Ok(whole)
    }
}

/// The directory of the family in some keys, and its logs, of which there must be some.
fn logs_in(keys: &Path) -> Result<(PathBuf, Vec<Transcript>), Failure> {
    let path = family_in(keys);
    let records = families_in(&path)?;
    match records.is_empty() {
        false => Ok((path, records)),
        true => {
            let why = "a ceremony is to be checked, but the logs of one are not in the keys";
            Err(Failure::new(exit::BAD_FILE, format!("{}: {why}", keys.display())))
        }
    }
}

/// The types of a circuit by the family that has made their keys.
pub(crate) struct Types {
    /// Those of the families that are extended, in the order of these.
    pub(crate) old: Vec<Vec<R1cs>>,
    /// The others.
    pub(crate) own: Vec<R1cs>,
}

impl Types {
    /// The types of the circuit of a ceremony. If it extends another family, `extends` are that one's keys.
    pub(crate) fn of(
        circuit: &dyn OpenCircuit,
        genesis: &FamilyGenesis,
        extends: Option<&CeremonyKeys>,
        app: &App,
    ) -> Result<Self, Failure> {
        match (genesis.extends, extends) {
            (Some(digest), None) => {
                let digest = hex::encode(digest);
                let why = format!(
                    "the family extends that of the ceremony with transcript {digest}: --extends KEYS"
                );
                return Err(Failure::new(exit::USAGE, why));
            }
            (None, Some(_)) => {
                let why = "--extends: the family extends no other one";
                return Err(Failure::new(exit::USAGE, why));
            }
            _ => {}
        }
        let (types, _) = types_of(circuit, genesis.zero_knowledge)?;
        Self::without(types, extends, app)
    }

    /// The types of a circuit that some keys have, and the others.
    pub(crate) fn without(
        mut types: Vec<R1cs>,
        keys: Option<&CeremonyKeys>,
        app: &App,
    ) -> Result<Self, Failure> {
        let mut old = Vec::new();
        let geneses = keys.map_or(Ok(Vec::new()), CeremonyKeys::geneses)?;
        // The newest circuit has all types, as a rule; the program need not have the older ones any more.
        for genesis in geneses.into_iter().rev() {
            let mut of_genesis = take(&mut types, genesis);
            if of_genesis.len() < genesis.types.len() {
                let circuit = circuit_of_genesis(genesis, None, app)?;
                let (mut others, _) = types_of(&*circuit, genesis.zero_knowledge)?;
                of_genesis = take(&mut others, genesis);
            }
            old.insert(0, of_genesis);
        }
        Ok(Self { old, own: types })
    }
}

/// Takes the types of a genesis out of a list, as far as they are in it, in the order of the genesis.
fn take(types: &mut Vec<R1cs>, genesis: &FamilyGenesis) -> Vec<R1cs> {
    let found = genesis.types.iter().filter_map(|kind| {
        let same = |r1cs: &R1cs| r1cs.name == kind.name && r1cs.digest() == kind.r1cs;
        types.iter().position(same).map(|at| types.remove(at))
    });
    found.collect()
}

/// A family whose ceremony was checked from the powers on, and what its keys are made of.
pub(crate) struct Whole {
    pub(crate) powers: Powers,
    pub(crate) family: Family,
    /// All types, in the order of the keys.
    pub(crate) types: Vec<R1cs>,
    /// The sections of families whose keys were checked.
    places: Vec<TempDir>,
}

impl Whole {
    /// Makes the whole check of powers and of a family, which may extend that of some keys.
    pub(crate) fn check(
        [of_powers, of_family]: [&Transcript; 2],
        extends: Option<&CeremonyKeys>,
        types: Types,
        (unfinished, display): (&Unfinished, &Display),
    ) -> Result<Self, Failure> {
        let powers = verify_powers(of_powers, &mut steps(display)).map_err(|e| failed(&e))?;
        let extended =
            extends.map(|keys| keys.check(powers.clone(), types.old, unfinished, display));
        let (old, mut all, places) = match extended.transpose()? {
            Some(whole) => (Some(whole.family), whole.types, whole.places),
            None => (None, Vec::new(), Vec::new()),
        };
        let own = types.own;
        let family = verify_family(of_family, &powers, old, &own, &mut steps(display));
        let family = family.map_err(|e| failed(&e))?;
        all.extend(own);
        Ok(Self { powers, family, types: all, places })
    }

    /// Compares the keys of a family, whose files were compared with their digests, with those of the ceremony, byte for byte.
    pub(crate) fn compare(
        &self,
        path: &Path,
        (manifest, found): (&FamilyManifest, &FamilyKey),
    ) -> Result<(), Failure> {
        let differs = |what: &str| {
            let why = format!("{}: {what} is not that of the ceremony", path.display());
            Failure::new(exit::REFUSED, why)
        };
        let expected = self.family.key(&self.powers).map_err(|e| failed(&e))?;
        if found.sections().digest() != expected.sections().digest() {
            return Err(differs("the family key"));
        }
        for (number, r1cs) in self.types.iter().enumerate() {
            let key = self.family.proving_key(&self.powers, number, r1cs.clone());
            let digest = hex::encode(key.map_err(|e| failed(&e))?.sections().digest());
            if manifest.types.get(number).is_none_or(|entry| entry.digest != digest) {
                return Err(differs(&format!("the proving key of type '{}'", r1cs.name)));
            }
        }
        Ok(())
    }
}

/// Opens what `--powers` needs, before checks that take long.
pub(crate) fn prepare(command: &KeysVerify) -> Result<(), Failure> {
    let Some(powers) = &command.powers else { return Ok(()) };
    open(powers)?;
    let missing = |e| Failure::new(exit::BAD_FILE, format!("{}: {e}", command.keys.display()));
    std::fs::metadata(&command.keys).map_err(missing)?;
    let (path, records) = logs_in(&command.keys)?;
    let genesis = records.last().and_then(|of_family| of_family.genesis.family());
    if genesis.is_some_and(|genesis| genesis.circuit == NAME) && command.circuit.is_none() {
        let why = "these are keys of an imported circuit: with --powers, pass its directory, --circuit DIR, and \
                   to compare it with its source, --r1cs FILE";
        return Err(Failure::new(exit::USAGE, format!("{}: {why}", path.display())));
    }
    Ok(())
}

/// Makes the whole check of the ceremony from which keys come, of which only the powers are needed beside them.
pub(crate) fn check_keys(
    command: &KeysVerify,
    powers: &Path,
    app: &App,
    engine: &LocalEngine,
    (display, json): (&Display, bool),
) -> Result<(), Failure> {
    let unfinished = Unfinished::start("interrupted: the keys were not checked", json)?;
    let of_powers = open(powers)?;
    let keys = CeremonyKeys::open(&command.keys)?;
    let genesis = *keys.geneses()?.last().expect("keys with logs have a family");
    let circuit = circuit_of_genesis(genesis, command.circuit.as_deref(), app)?;
    let (types, _) = types_of(&*circuit, genesis.zero_knowledge)?;
    let types = Types::without(types, Some(&keys), app)?;
    if let Some(r1cs) = types.own.first() {
        let why = format!(
            "{}: they have no type '{}' of the circuit: they were made for other code",
            keys.path.display(),
            r1cs.name
        );
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    engine.install(|| {
        let powers = verify_powers(&of_powers, &mut steps(display)).map_err(|e| failed(&e))?;
        keys.check(powers, types.old, &unfinished, display).map(drop)
    })?;
    compare_derived(&command.keys, genesis, &*circuit)
}

/// Checks that keys name the transcript.
pub(crate) fn belong_together(path: &Path, transcript: &Transcript) -> Result<(), Failure> {
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

/// Compares the keys of an imported circuit with those that follow from the family in their folder.
pub(crate) fn compare_derived(
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
