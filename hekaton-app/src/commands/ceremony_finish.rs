//! `hekaton ceremony finish`: the end of a ceremony, and the keys of a family.

use super::ceremony_check::{CeremonyKeys, Types, Whole};
use super::ceremony_trial::{NoVerdict, Trial};
use super::family::remove_on_interrupt;
use crate::app::App;
use crate::application::OpenCircuit;
use crate::family::failed as failed_to_derive;
use crate::hints::explain;
use crate::imports;
use crate::options::CeremonyFinish;
use crate::transcripts::{FAMILY, IN_KEYS, circuit_of_genesis, extended};
use hekaton_ceremony::{
    Coordinator, FamilyGenesis, Subject, Transcript, chains_text, verify_powers,
};
use hekaton_core::{FamilyKey, LocalEngine};
use hekaton_storage::{FamilyManifest, FamilyStore, KeyStore};
use hekaton_terminal::ceremony::{failed, on_threads, open, steps};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn finish(command: &CeremonyFinish, app: &App, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let transcript = open(&command.ceremony)?;
    let (mut lines, mut object) = (String::new(), json!({ "ok": true }));
    match (&transcript.genesis.subject, &command.powers, &command.keys) {
        (Subject::Powers(_), None, None) => {
            let display = Display::new();
            on_threads(&command.threads, || {
                let coordinator = Coordinator::open(&command.ceremony)?;
                verify_powers(&coordinator.transcript, &mut steps(&display))?;
                coordinator.finish()
            })?;
        }
        (Subject::Family(genesis), Some(powers), Some(keys)) => {
            let manifest = finish_family(command, (genesis, powers, keys), app, json)?;
            lines =
                format!("keys in {}, family digest: {}\n", keys.display(), manifest.family_digest);
            object["keys"] = json!(keys);
            object["manifest"] = json!(manifest);
        }
        (Subject::Powers(_), ..) => {
            let why = "these are powers: --powers and --keys are for families";
            return Err(Failure::new(exit::USAGE, why));
        }
        (Subject::Family(_), ..) => {
            let why =
                "a family needs its powers and a directory for its keys: --powers DIR --keys DIR";
            return Err(Failure::new(exit::USAGE, why));
        }
    }
    let transcript = open(&command.ceremony)?;
    let digest = hex::encode(transcript.digest());
    object["transcript"] = json!(digest);
    object["seconds"] = json!(start.elapsed().as_secs_f64());
    lines += &format!(
        "the ceremony is finished, checked in {}\ntranscript: {digest}\n{}",
        output::seconds(start.elapsed()),
        chains_text(&[&transcript]),
    );
    output::result(json, &object, lines.trim_end())
}

/// The directory of new keys: that of a family or, for an imported circuit, a key store with the family in a folder.
struct NewKeys {
    /// The family, until it has its name.
    family: Option<FamilyStore>,
    store: Option<KeyStore>,
}

impl NewKeys {
    fn create(keys: &Path, circuit: &dyn OpenCircuit, app: &App) -> Result<Self, Failure> {
        let store = circuit.directory().map(|directory| -> Result<KeyStore, Failure> {
            let store = KeyStore::create(keys).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
            imports::copy_into(&store, directory, app)?;
            Ok(store)
        });
        let store = store.transpose()?;
        let path = store.as_ref().map_or(keys.to_owned(), |store| unfinished(store).join(FAMILY));
        let family = FamilyStore::create(&path).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
        Ok(Self { family: Some(family), store })
    }

    /// The directory under its temporary name, in which commands find the keys once they are complete.
    fn unfinished(&self) -> PathBuf {
        match (&self.store, &self.family) {
            (Some(store), _) => unfinished(store),
            (None, family) => family.as_ref().expect("without a store").unfinished_path(),
        }
    }

    /// Derives the keys of an imported circuit from its family.
    fn derive(
        &mut self,
        (manifest, key): (&FamilyManifest, &FamilyKey),
        circuit: &dyn OpenCircuit,
        parameters: &str,
        engine: &LocalEngine,
    ) -> Result<(), Failure> {
        let Some(store) = &mut self.store else { return Ok(()) };
        let path = unfinished(store).join(FAMILY);
        self.family.take().map_or(Ok(()), publish)?;
        let circuit = circuit.prepared().or_fail(exit::FAILED)?;
        let family = (manifest, key);
        let derived = FamilyStore::derive_into(&path, family, &circuit, parameters, engine, store);
        derived.map(drop).map_err(|e| failed_to_derive(&e))
    }

    /// Keeps complete keys whose trial ended for another reason, and ends the ceremony, all of whose points were checked.
    fn keep(self, coordinator: &Coordinator, failure: &Failure, keys: &Path) -> Failure {
        let why =
            |result: &str| Failure::new(failure.code, format!("{}\n{result}", failure.message));
        // What was checked is not what was written, if a disk has failed.
        let opened = match &self.store {
            Some(store) => KeyStore::open(&unfinished(store)).map(drop),
            None => {
                let path = self.unfinished();
                let opened = FamilyStore::open(&path);
                opened
                    .and_then(|(manifest, _)| FamilyStore::proving_keys(&path, &manifest))
                    .map(drop)
            }
        };
        let kept = opened.and_then(|()| match (self.store, self.family) {
            (Some(mut store), _) => store.keep(),
            (None, family) => family.expect("without a store").keep(),
        });
        let kept = match kept {
            Ok(kept) => kept,
            Err(e) => return why(&format!("The keys cannot be kept: {}", explain(&e))),
        };
        let remedy = format!(
            "The keys are complete in {}: try them with `hekaton prove FILE --keys DIR`, then rename this directory to {}",
            kept.display(),
            keys.display()
        );
        match coordinator.finish() {
            Ok(()) => why(&format!("The ceremony is finished. {remedy}")),
            Err(e) => why(&format!(
                "{remedy}. The ceremony is not finished: {e}; run `hekaton ceremony finish` again"
            )),
        }
    }

    /// Makes the keys visible.
    fn publish(self) -> Result<(), Failure> {
        self.family.map_or(Ok(()), publish)?;
        let store = self.store.map_or(Ok(()), |mut store| store.publish());
        store.map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)
    }
}

fn unfinished(store: &KeyStore) -> PathBuf {
    store.unfinished_path().expect("a key store that has just been created")
}

fn publish(family: FamilyStore) -> Result<(), Failure> {
    family.publish().map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)
}

fn finish_family(
    command: &CeremonyFinish,
    (genesis, powers, keys): (&FamilyGenesis, &Path, &Path),
    app: &App,
    json: bool,
) -> Result<FamilyManifest, Failure> {
    let display = Display::new();
    let of_powers = open(powers)?;
    let circuit = circuit_of_genesis(genesis, command.circuit.as_deref(), app)?;
    // Reads all files of a circuit directory.
    circuit.inspect()?;
    let extends = command.extends.as_deref().map(CeremonyKeys::open).transpose()?;
    let types = Types::of(&*circuit, genesis, extends.as_ref(), app)?;
    let trial = Trial::of(command, genesis, &*circuit, app)?;
    let mut new = NewKeys::create(keys, &*circuit, app)?;
    let unfinished = remove_on_interrupt(&new.unfinished(), json)?;
    let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
    let coordinator = Coordinator::open(&command.ceremony).map_err(|e| failed(&e))?;
    let (manifest, key) = engine.install(|| {
        let transcripts = [&of_powers, &coordinator.transcript];
        let whole = Whole::check(transcripts, extends.as_ref(), types, (&unfinished, &display))?;
        write_keys(transcripts, whole, extends.as_ref(), &mut new, &display)
    })?;
    new.derive((&manifest, &key), &*circuit, &genesis.parameters, &engine)?;
    match &trial {
        Some(trial) => {
            display.line("a trial: a proof under the keys, and its verification");
            match trial.run(&new.unfinished(), new.store.is_some(), &unfinished) {
                Ok(()) => {}
                Err(NoVerdict::Keys(failure)) => return Err(failure),
                Err(NoVerdict::Interrupted(failure)) => {
                    // Ctrl-C reaches both processes: this one ends by its own handler.
                    std::thread::sleep(std::time::Duration::from_secs(1));
                    drop(unfinished.commit());
                    return Err(failure);
                }
                Err(NoVerdict::Elsewhere(failure)) => {
                    let _commitment = unfinished.commit();
                    return Err(new.keep(&coordinator, &failure, keys));
                }
            }
        }
        None if command.no_trial => {}
        None => display.line("without a trial of the keys, as the circuit has no sample that fits"),
    }
    let _commitment = unfinished.commit();
    // Before the keys get their name, so that this can be run again after a crash.
    coordinator.finish().map_err(|e| failed(&e))?;
    new.publish()?;
    Ok(manifest)
}

/// Writes the keys of a family together with the logs of its ceremony. Proving keys of a family that it extends are links to those.
fn write_keys(
    [of_powers, of_family]: [&Transcript; 2],
    whole: Whole,
    extends: Option<&CeremonyKeys>,
    new: &mut NewKeys,
    display: &Display,
) -> Result<(FamilyManifest, FamilyKey), Failure> {
    let store = new.family.as_mut().expect("a family that has just been created");
    let folder = store.unfinished_path().join(IN_KEYS);
    let copy = |name: &str, transcript: &Transcript| {
        transcript.copy_records(&folder.join(name)).map_err(|e| failed(&e))
    };
    copy("powers", of_powers)?;
    copy("family", of_family)?;
    let mut written = 0;
    if let Some(keys) = extends {
        for (records, number) in keys.records.iter().zip(1..) {
            copy(&extended(number), records)?;
        }
        store.link(&keys.path, &keys.manifest).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
        written = keys.manifest.types.len();
    }
    let Whole { powers, family, types, .. } = &whole;
    for (number, r1cs) in types.iter().enumerate().skip(written) {
        display.line(&format!("writing the proving key of type '{}'", r1cs.name));
        let key = family.proving_key(powers, number, r1cs.clone()).map_err(|e| failed(&e))?;
        store.proving_key(&key).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    }
    display.line("writing the family key");
    let key = family.key(powers).map_err(|e| failed(&e))?;
    let manifest = store.complete(&key).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    Ok((manifest, key))
}
