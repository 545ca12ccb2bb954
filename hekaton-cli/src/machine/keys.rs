//! Keys of the machine: one family for all programs and runs of up to some number of subcircuits.

use super::circuit::{FamilyParameters, NAME, kind};
use hekaton_app::product::{OpenedFamily, failed_to_derive as failed};
use hekaton_core::{DeriveError, LocalEngine, Proof, ProverKeys, VerifyingKey};
use hekaton_storage::{FamilyStore, Manifest};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_vm::{Isa, MachineCircuit};
use serde_json::json;
use std::path::Path;

/// Opens a family, and refuses one of another circuit.
pub(crate) fn open(path: &Path) -> Result<(OpenedFamily, FamilyParameters), Failure> {
    let wrong = |why: String| {
        let why = format!("{}: {why}; `hekaton vm setup` makes keys", path.display());
        Failure::new(exit::BAD_FILE, why)
    };
    if !FamilyStore::is_one(path) {
        return Err(wrong("not a key family".into()));
    }
    let family = OpenedFamily::open(path)?;
    if family.manifest.circuit != NAME {
        return Err(wrong(format!("its keys are for circuit '{}'", family.manifest.circuit)));
    }
    let kind = kind(&family.manifest.parameters).map_err(wrong)?;
    Ok((family, kind))
}

/// Refuses a run that the keys cannot serve, before anything is laid out.
pub(crate) fn check(
    family: &OpenedFamily,
    kind: FamilyParameters,
    execution: &MachineCircuit,
) -> Result<(), Failure> {
    check_isa(family, kind, execution.program.isa())?;
    let (found, most) = (execution.subcircuits(), family.manifest.max_instances);
    if found <= most {
        return Ok(());
    }
    let larger = found.checked_next_power_of_two().unwrap_or(found);
    let why = DeriveError::TooMany { found, most };
    let hint = format!("`hekaton vm setup --subcircuits {larger}` makes keys that do");
    Err(Failure::new(exit::USAGE, format!("{}: {why}; {hint}", family.path.display())))
}

/// Refuses programs of the other instruction set.
fn check_isa(family: &OpenedFamily, kind: FamilyParameters, isa: Isa) -> Result<(), Failure> {
    let (found, expected) = (kind.isa.name(), isa.name());
    if found == expected {
        return Ok(());
    }
    let why = format!("its keys are for programs for {found}, and this one is for {expected}");
    let hint = format!("`hekaton vm setup --isa {expected}` makes keys for it");
    Err(Failure::new(exit::FAILED, format!("{}: {why}; {hint}", family.path.display())))
}

/// Refuses a proof that these keys cannot have made, before anything is laid out or computed: its counts come from
/// anyone. Errors are about the file of the proof; the verifier trusts the keys.
pub(crate) fn check_proof(
    (family, kind): (&OpenedFamily, FamilyParameters),
    path: &Path,
    execution: &MachineCircuit,
    proof: &[u8],
) -> Result<(), Failure> {
    check_isa(family, kind, execution.program.isa())?;
    let failure = |why: String| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
    execution.check().map_err(|e| failure(format!("damaged: {e}")))?;
    let (subcircuits, most) = (execution.subcircuits(), family.manifest.max_instances);
    let keys = family.path.display();
    if subcircuits > most {
        return Err(failure(format!(
            "it is about a run of {subcircuits} subcircuits, but {keys} has keys for at most {most}: it was made with other \
             keys, or is damaged"
        )));
    }
    // The length of a proof depends on nothing but the number of subcircuits, so a wrong one shows which keys made the
    // proof before anything is derived.
    let rounds = subcircuits.next_power_of_two().ilog2() as usize;
    // First the version: another one has other lengths.
    Proof::key_digest(proof).map_err(|e| failure(e.to_string()))?;
    let (found, expected) = (proof.len(), Proof::encoded_len(rounds));
    if found == expected {
        return Ok(());
    }
    let fits_other_count =
        (0..usize::BITS as usize).any(|rounds| Proof::encoded_len(rounds) == found);
    let why = if fits_other_count {
        format!(
            "it was made with keys of another family than {keys}, or the counts in its header are damaged"
        )
    } else if found < expected {
        "it is cut off, or was made with other keys".to_owned()
    } else {
        "something follows it, or it was made with other keys".to_owned()
    };
    Err(failure(format!("its proof has {found} bytes, expected {expected}: {why}")))
}

// The constants of the circuit already bind the program. Its digest in the parameters names it for readers of the key.
fn parameters(execution: &MachineCircuit) -> String {
    let digest = hex::encode(execution.program.digest());
    json!({ "rows": execution.sizes.rows, "program": digest }).to_string()
}

/// Derives the keys of a run that was [checked](check).
pub(crate) fn derive(
    family: &OpenedFamily,
    execution: &MachineCircuit,
    engine: &LocalEngine,
) -> Result<(Manifest, ProverKeys), Failure> {
    let prepared = execution.prepared().or_fail(exit::FAILED)?;
    let OpenedFamily { path, manifest, key } = family;
    FamilyStore::derive(path, (manifest, key), &prepared, &parameters(execution), engine)
        .map_err(|e| failed(&e))
}

/// Derives the verifying key of a run that was [checked](check).
pub(crate) fn verifying_key(
    family: &OpenedFamily,
    execution: &MachineCircuit,
    engine: &LocalEngine,
) -> Result<VerifyingKey, Failure> {
    let prepared = execution.prepared().or_fail(exit::BAD_FILE)?;
    let OpenedFamily { path, manifest, key } = family;
    let parameters = parameters(execution);
    FamilyStore::derive_verifying(path, (manifest, key), &prepared, &parameters, engine)
        .map(|(_, key)| key)
        .map_err(|e| failed(&e))
}
