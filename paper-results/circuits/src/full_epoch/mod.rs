//! The circuit of an epoch as in the paper: every leaf is at depth 128, and each change is proven by two paths, in eight
//! subcircuits.
//!
//! The path before a change goes down from the root, 32 levels in each of four subcircuits, and the path after it goes up
//! again with the same siblings, to the root for the next change. It serves as a comparison:
//! [`Epochs`](hekaton_directory_circuit::Epochs) proves an update with a seventeenth of the rows.

mod error;
mod parts;
#[cfg(test)]
mod tests;
mod values;

pub use error::FullEpochError;

use hekaton_circuit::named::{
    Family, InputFile, NamedCircuit, Parameter, ParameterError, ParameterMap, create,
};
use hekaton_circuit::parts::{Wire, WiredCircuit, Wires};
use hekaton_circuit::{CircuitError, Fr, LayoutError};
use hekaton_directory::{
    Change, Commitment, Digest, EMPTY, Index, Leaf, Path, Profile, Step, Tree, Witness,
};
use hekaton_directory_circuit::Tip;
use parts::{
    Close, CloseReads, CloseWrites, NewLeaf, NewLeafReads, NewPath, NewReads, OldLeaf,
    OldLeafPrivate, OldLeafReads, OldLeafWrites, OldPath, OldPrivate, OldReads, OldWrites, climbed,
    fields, quarters,
};
use serde::{Deserialize, Serialize};

/// The levels of a path in one subcircuit.
const LEVELS: usize = 32;

/// The subcircuits of a path.
const QUARTERS: usize = 4;

/// The largest number of changes of a proof.
const MAX_CHANGES: usize = 1 << 17;

/// One epoch of a tree in which every leaf is at depth 128 ([`Profile::Full`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullEpoch {
    /// The number of changes.
    pub changes: usize,
}

/// An epoch that the circuit can prove.
#[derive(Clone, Debug)]
pub struct FullRun {
    changes: Vec<Changed>,
    from: Tip,
    to: Tip,
}

/// A change with the digests of its paths.
#[derive(Clone, Debug)]
struct Changed {
    index: u128,
    old: Option<Leaf>,
    commitment: Commitment,
    version: u32,
    /// The siblings in each quarter of the path, the lowest one first.
    siblings: [Vec<Digest>; QUARTERS],
    /// The digests at the upper ends of quarters, before and after the change; the first one is the root.
    above: [[Digest; QUARTERS]; 2],
}

impl Changed {
    fn new(
        (index, path, commitment): (&Index, &Path, &Commitment),
        root: &Digest,
        epoch: u32,
    ) -> Result<Self, String> {
        let old = path.verify(Profile::Full, root, index).map_err(|error| error.to_string())?;
        let version = match old {
            None => 0,
            Some(leaf) => {
                let next = leaf.version.checked_add(1);
                next.ok_or("the leaf already has the largest version")?
            }
        };
        let sibling = |depth: usize| path.siblings[depth].unwrap_or(Profile::Full.empty(depth + 1));
        let siblings: [Vec<Digest>; QUARTERS] = std::array::from_fn(|quarter| {
            (LEVELS * quarter..LEVELS * (quarter + 1)).rev().map(sibling).collect()
        });
        let new = Leaf { index: *index, version, epoch, commitment: *commitment };
        let index = u128::from_be_bytes(index.0);
        let parts = quarters(index);
        let above = |mut current: Digest| {
            let mut above = [EMPTY; QUARTERS];
            for quarter in (0..QUARTERS).rev() {
                current = climbed(current, parts[quarter].into(), &siblings[quarter]);
                above[quarter] = current;
            }
            above
        };
        let before = old.map_or(EMPTY, |leaf| leaf.digest(Profile::Full));
        let above = [above(before), above(new.digest(Profile::Full))];
        Ok(Self { index, old, commitment: *commitment, version, siblings, above })
    }
}

impl FullEpoch {
    /// Carries out a witness.
    ///
    /// # Errors
    /// If it is of another profile, of another number of changes, or not one of an honest prover of one epoch.
    pub fn run(&self, witness: &Witness) -> Result<FullRun, FullEpochError> {
        let Witness { profile, epoch, root, chain, steps } = witness;
        if *profile != Profile::Full {
            let (found, expected) = (profile.name(), Profile::Full.name());
            return Err(FullEpochError::Profile { found, expected });
        }
        let Some((Step::End, steps)) = steps.split_last() else {
            return Err(FullEpochError::Unfinished);
        };
        if steps.len() != self.changes {
            return Err(FullEpochError::Changes { found: steps.len(), expected: self.changes });
        }
        let from = Tip { epoch: *epoch, root: *root, chain: *chain };
        let mut to = from;
        let mut changes: Vec<Changed> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let failed = |why: String| FullEpochError::Step { number, why };
            let Step::Path { index, path, commitment } = step else {
                return Err(failed("it is not a change with its path".into()));
            };
            let changed =
                Changed::new((index, path, commitment), &to.root, *epoch).map_err(failed)?;
            if changes.last().is_some_and(|last| last.index >= changed.index) {
                return Err(failed("its index is not above that of the change before it".into()));
            }
            to.root = changed.above[1][0];
            changes.push(changed);
        }
        to.chain = Profile::Full.combine(&to.chain, &to.root);
        let next = epoch.checked_add(1);
        to.epoch = next.ok_or_else(|| FullEpochError::Step {
            number: steps.len(),
            why: format!("epoch {epoch} is the last one"),
        })?;
        Ok(FullRun { changes, from, to })
    }

    fn instances(&self) -> usize {
        2 * QUARTERS * self.changes + 1
    }
}

impl FullRun {
    /// The public values: root, chain and number of the epoch before, then those of this one.
    fn public_values(&self) -> Vec<Fr> {
        Tip::public_values(&self.from, &self.to)
    }
}

/// Reads a witness from a file.
fn read(input: &InputFile) -> Result<Witness, CircuitError> {
    Ok(Witness::decode(&input.read()?).map_err(FullEpochError::Decode)?)
}

/// Wires whose values follow from the run.
struct Promises<'a> {
    wires: &'a mut Wires<FullRun>,
    next: u64,
}

impl Promises<'_> {
    fn wire(
        &mut self,
        change: usize,
        value: impl Fn(&Changed) -> Fr + Send + Sync + 'static,
    ) -> Wire {
        self.next += 1;
        self.wires.promise("change", self.next - 1, move |run| {
            let changed = run.changes.get(change);
            changed.map(&value).ok_or_else(other_number)
        })
    }

    fn digest(
        &mut self,
        change: usize,
        digest: impl Fn(&Changed) -> Digest + Copy + Send + Sync + 'static,
    ) -> [Wire; 2] {
        [0, 1].map(|half: usize| self.wire(change, move |changed| fields(&digest(changed))[half]))
    }

    /// Adds the path of a change down from the root before it, except for the quarter with the leaf.
    /// Returns the digest above that quarter.
    fn down(&mut self, at: usize, root: [Wire; 2], path: &PathWires) -> [Wire; 2] {
        let mut above = root;
        for quarter in 0..QUARTERS - 1 {
            let below = self.digest(at, move |changed| changed.above[0][quarter + 1]);
            let reads = OldReads { above, index: path.index[quarter] };
            let writes = OldWrites { below, siblings: path.siblings[quarter].clone() };
            let part = OldPath { levels: LEVELS };
            self.wires.add_into(&part, reads, writes, move |run| {
                let changed = run.changes.get(at).ok_or_else(other_number)?;
                let (below, siblings) =
                    (changed.above[0][quarter + 1], changed.siblings[quarter].clone());
                Ok(OldPrivate { below, siblings })
            });
            above = below;
        }
        above
    }

    /// Adds the path of a change up from the digest above the new leaf's quarter. Returns the root
    /// after it.
    fn up(&mut self, at: usize, lowest: [Wire; 2], path: &PathWires) -> [Wire; 2] {
        let mut below = lowest;
        for quarter in (0..QUARTERS - 1).rev() {
            let above = self.digest(at, move |changed| changed.above[1][quarter]);
            let beside = path.siblings[quarter].clone();
            let reads = NewReads { below, index: path.index[quarter], siblings: beside };
            self.wires.add_into(&NewPath { levels: LEVELS }, reads, above, |_| Ok(()));
            below = above;
        }
        below
    }
}

/// The wires of a path, by its quarters.
struct PathWires {
    index: [Wire; QUARTERS],
    siblings: [Vec<[Wire; 2]>; QUARTERS],
}

fn other_number() -> CircuitError {
    "the run is of another number of changes".into()
}

impl WiredCircuit for FullEpoch {
    type Input = FullRun;

    fn wire(&self, c: &mut Wires<FullRun>) -> Result<(), LayoutError> {
        if self.changes == 0 {
            return Err("an epoch has at least one change".into());
        }
        let input = |at: usize| move |run: &FullRun| Ok(run.public_values()[at]);
        let mut root = [0, 1].map(|at: usize| c.public_input("before", at as u64, input(at)));
        let chain = [2, 3].map(|at: usize| c.public_input("before", at as u64, input(at)));
        let epoch = c.public_input("before", 4, input(4));
        let mut least = c.constant(0u64);
        let mut promises = Promises { wires: c, next: 0 };
        for at in 0..self.changes {
            let index = [0, 1, 2, 3].map(|quarter: usize| {
                promises.wire(at, move |changed| Fr::from(quarters(changed.index)[quarter]))
            });
            let version = promises.wire(at, |changed| changed.version.into());
            let next = promises.wire(at, |changed| Fr::from(changed.index) + Fr::from(1u64));
            let siblings: [Vec<[Wire; 2]>; QUARTERS] = std::array::from_fn(|quarter| {
                let mut sibling =
                    |level| promises.digest(at, move |changed| changed.siblings[quarter][level]);
                (0..LEVELS).map(&mut sibling).collect()
            });
            // Down before the change.
            let path = PathWires { index, siblings };
            let above = promises.down(at, root, &path);
            let reads = OldLeafReads { above, least };
            let lowest = path.siblings[QUARTERS - 1].clone();
            let writes = OldLeafWrites { index, version, next, siblings: lowest.clone() };
            promises.wires.add_into(&OldLeaf { levels: LEVELS }, reads, writes, move |run| {
                let changed = run.changes.get(at).ok_or_else(other_number)?;
                let leaf = changed.old.map(|leaf| (leaf.version, leaf.epoch, leaf.commitment.0));
                let siblings = changed.siblings[QUARTERS - 1].clone();
                Ok(OldLeafPrivate { index: changed.index, leaf, siblings })
            });
            least = next;
            // And up after it.
            let reads = NewLeafReads { index, version, epoch, siblings: lowest };
            let below = promises.digest(at, |changed| changed.above[1][QUARTERS - 1]);
            promises.wires.add_into(&NewLeaf { levels: LEVELS }, reads, below, move |run| {
                Ok(run.changes.get(at).ok_or_else(other_number)?.commitment.0)
            });
            root = promises.up(at, below, &path);
        }
        let output = |at: usize| move |run: &FullRun| Ok(run.public_values()[5 + at]);
        let after = [2, 3].map(|at: usize| c.promise("chain", at as u64, output(at)));
        let writes = CloseWrites { chain: after, epoch: c.promise("epoch", 0, output(4)) };
        c.add_into(&Close, CloseReads { chain, root, epoch }, writes.clone(), |_| Ok(()));
        for (at, wire) in (0..).zip(root.into_iter().chain(writes.chain).chain([writes.epoch])) {
            c.output_at("after", at, wire);
        }
        Ok(())
    }
}

impl NamedCircuit for FullEpoch {
    const NAME: &'static str = "epoch-full";
    const ABOUT: &'static str =
        "one epoch of a key directory as in the paper: two paths of 128 levels a change";
    const INPUT: &'static str = "a witness of a directory with the profile full, of one epoch";
    const PUBLIC: &'static str =
        "ROOT:CHAIN:EPOCH,ROOT:CHAIN:EPOCH before and after, digests as 64 hexadecimal digits";
    type Parameters = Self;
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "changes",
        help: "number of changes, each 11.8 million constraints; derived from the witness, if one is given",
        default: None,
    }];
    type Opened = FullRun;

    fn with(circuit: Self) -> Result<Self, CircuitError> {
        let range = 1..=MAX_CHANGES;
        ParameterError::check_range(Self::NAME, "changes", circuit.changes, range, "in 1..2^17")?;
        Ok(circuit)
    }

    fn fit(parameters: &mut ParameterMap, input: &InputFile) -> Result<(), CircuitError> {
        let changes = read(input)?.steps.len().saturating_sub(1);
        parameters.entry("changes".to_owned()).or_insert_with(|| changes.into());
        Ok(())
    }

    fn family(parameters: &ParameterMap, bytes: u64) -> Result<Option<Family<Self>>, CircuitError> {
        let mut all = parameters.clone();
        let mut with = |changes: u64| {
            all.insert("changes".to_owned(), changes.into());
            create::<Self>(&all, None).map(|(circuit, _)| circuit)
        };
        // A change has at least a bitmap of siblings.
        let instances = with((bytes / 64).clamp(1, MAX_CHANGES as u64))?.instances();
        Ok(Some(Family { circuit: with(1)?, instances, open: &["changes"] }))
    }

    fn subcircuits(&self) -> Option<usize> {
        Some(self.instances())
    }

    fn open(&self, input: &InputFile) -> Result<FullRun, CircuitError> {
        Ok(self.run(&read(input)?)?)
    }

    fn sample(&self) -> InputFile {
        let tree = Tree::new(Profile::Full);
        let change = |number: usize| Change {
            index: Index((number as u128 * 0x9e37_79b9_7f4a_7c15).to_be_bytes()),
            commitment: Commitment([1; 32]),
        };
        let changes: Vec<Change> = (1..=self.changes).map(change).collect();
        let steps = tree.steps(&changes).expect("the indices of the changes rise");
        let (profile, root) = (Profile::Full, tree.root());
        let witness = Witness { profile, epoch: 0, root, chain: [1; 32], steps };
        InputFile::from_bytes(witness.encode())
    }

    fn show(values: &[Fr]) -> Option<String> {
        Tip::show(values)
    }

    fn read(text: &str) -> Option<Result<Vec<Fr>, CircuitError>> {
        Some(Tip::read(text))
    }
}
