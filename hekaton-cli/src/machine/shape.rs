//! Shapes of proofs.

use hekaton_circuit::named::ParameterMap;
use hekaton_terminal::exit::{self, Failure};
use hekaton_vm::{Counts, Isa, MachineCircuit, Sizes};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Fixed numbers of subcircuits of each kind.
///
/// The counts in a proof are public, and those of a run show roughly how often each kind of instruction was executed.
/// Proofs of one shape all have the same counts.
pub(super) struct Shape {
    pub(super) path: PathBuf,
    isa: Isa,
    counts: BTreeMap<String, usize>,
}

impl Shape {
    /// Reads a JSON object with a number for each kind.
    pub(super) fn read(path: &Path, isa: Isa) -> Result<Self, Failure> {
        let failure =
            |why: String| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
        let bytes = exit::read_at_most(path, exit::PROOF_LIMIT)?;
        let counts: BTreeMap<String, usize> = serde_json::from_slice(&bytes).map_err(|e| {
            let expected = "expected a JSON object with a number for each kind, such as \"counts\" \
                            in the output of `vm run --json`";
            failure(format!("{e}; {expected}"))
        })?;
        // Raising a count by nothing only tests whether there is such a kind.
        let mut known = MachineCircuit::of_family(isa, Sizes::SMALL).counts;
        if let Some(name) = counts.keys().find(|name| !known.raise(isa, name, 0)) {
            return Err(failure(format!("unknown kind '{name}'")));
        }
        match known.by_name(isa).find(|(name, _)| !counts.contains_key(*name)) {
            Some((name, _)) => Err(failure(format!("missing the number for kind '{name}'"))),
            None => Ok(Self { path: path.to_owned(), isa, counts }),
        }
    }

    /// Raises the counts that a run needs to those of the shape.
    ///
    /// # Errors
    /// If the run needs more subcircuits of some kind.
    pub(super) fn fit(&self, mut needed: Counts) -> Result<Counts, Failure> {
        // A run that does not fit fails: a larger proof would reveal what the shape is to hide.
        let too_many = needed.by_name(self.isa).find(|(name, count)| *count > self.counts[*name]);
        if let Some((name, count)) = too_many {
            let (path, given) = (self.path.display(), self.counts[name]);
            let why = format!(
                "the run needs {count} subcircuits of kind '{name}', but the shape has {given}"
            );
            return Err(Failure::new(exit::FAILED, format!("{path}: {why}")));
        }
        for (name, count) in &self.counts {
            needed.raise(self.isa, name, *count);
        }
        Ok(needed)
    }
}

/// The numbers of subcircuits of each kind, as JSON.
pub(crate) fn counts_json(isa: Isa, counts: &Counts) -> Value {
    counts
        .by_name(isa)
        .map(|(name, count)| (name.to_owned(), json!(count)))
        .collect::<ParameterMap>()
        .into()
}
