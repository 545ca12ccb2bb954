//! Comparisons of imported circuits and of keys with the source of a circuit.

use hekaton_circuit::prover::VariableLayout;
use hekaton_circuit::{Masking, PreparedCircuit};
use hekaton_core::ProverKeys;
use hekaton_core::keys::stored_constraints;
use hekaton_r1cs::{
    CircuitBundle, ImportError, Imported, Monolith, PartitionError, check_partition,
};
use hekaton_storage::Manifest;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use std::path::Path;

// Keys commit to constraints that only this comparison ties to a source: a directory from someone else may have others.
/// Compares a circuit directory with its source before keys are made from it.
pub(super) fn compare(directory: &Path, source: &Path) -> Result<(), Failure> {
    let monolith = Monolith::read(source, None, |_, _| {}).or_fail(exit::BAD_FILE)?;
    let (name, other) = (directory.display(), source.display());
    let opened = CircuitBundle::open(directory).or_fail(exit::BAD_FILE)?;
    let imported = &opened.summary().source;
    let same_file = imported.digest == monolith.source().digest;
    let remedy = match same_file {
        true => "import it again, or get the circuit from someone you trust".to_owned(),
        false => format!("pass the file {} that was imported, or import this one", imported.name),
    };
    let refuse = |why: String| Failure::new(exit::BAD_FILE, format!("{name}: {why}; {remedy}"));
    match monolith.check(directory) {
        Ok(_) if same_file => Ok(()),
        // Keys say which file they are for, and `keys verify --r1cs` would refuse them with this one.
        Ok(_) => Err(refuse(format!(
            "it has the constraints of {other}, but was imported from another file ({}, digest {}; \
             that of {other} is {})",
            imported.name,
            imported.digest,
            monolith.source().digest
        ))),
        Err(ImportError::Partition(e)) => Err(refuse(format!("not the circuit of {other}: {e}"))),
        Err(e) => Err(refuse(format!("cannot be compared with {other}: {e}"))),
    }
}

/// Compares the constraints in keys of an imported circuit with those of its source.
pub(super) fn compare_keys(
    source: &Path,
    path: &Path,
    manifest: &Manifest,
    keys: &ProverKeys,
) -> Result<String, Failure> {
    let monolith = Monolith::read(source, None, |_, _| {}).or_fail(exit::BAD_FILE)?;
    let circuit = Imported::open(&path.join("circuit")).or_fail(exit::BAD_FILE)?;
    let prepared = PreparedCircuit::new(&circuit).or_fail(exit::BAD_FILE)?;
    let masking = Masking::new(keys.verifying.zero_knowledge);
    // What is compared below is the layout that the verifying key commits to, and the circuit that
    // the manifest names.
    let digest = hex::encode(circuit.directory().digest());
    let claimed = |name: &str| manifest.parameters[name].as_str();
    if prepared.layout().wiring_digest(masking) != keys.verifying.layout
        || claimed("directory") != Some(digest.as_str())
    {
        let why = format!("{}: the circuit in the keys is not theirs", path.display());
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let wiring = prepared.layout().wiring(Masking::Unmasked);
    let rows = |kind: usize| {
        let wrong =
            |why: String| PartitionError::Rows { kind: manifest.types[kind].name.clone(), why };
        let (key, summary) = (&keys.types[kind], &circuit.directory().summary().types[kind]);
        let expected = VariableLayout::new(key.slots(), masking).len() + summary.own as usize;
        if key.variables() != expected {
            return Err(wrong(format!("{} variables, expected {expected}", key.variables())));
        }
        stored_constraints(keys, kind).map_err(|e| wrong(e.to_string()))
    };
    let name = source.display();
    let report = check_partition(monolith.system(), circuit.directory(), &wiring, rows)
        .map_err(|e| format!("{}: not the keys of {name}: {e}", path.display()))
        .or_fail(exit::BAD_FILE)?;
    // Equal constraints are not enough: the verifying key names the file, and readers of a proof look it up.
    if claimed("source") != Some(monolith.source().digest.as_str()) {
        let why = "the keys have its constraints, but name another file as their source";
        return Err(Failure::new(exit::BAD_FILE, format!("{name}: {why}")));
    }
    let rows = output::count(report.rows as u64);
    Ok(format!("the keys have the {rows} constraints of {name}, and no others"))
}
