//! Memory as a Merkle tree: in each cycle, two paths show that a word was in the tree, and that the next root
//! is that of the tree with the new word.

use ark_crypto_primitives::crh::poseidon::TwoToOneCRH;
use ark_crypto_primitives::crh::poseidon::constraints::{CRHParametersVar, TwoToOneCRHGadget};
use ark_crypto_primitives::crh::{TwoToOneCRHScheme, TwoToOneCRHSchemeGadget};
use ark_crypto_primitives::sponge::poseidon::{PoseidonConfig, find_poseidon_ark_and_mds};
use ark_ff::{AdditiveGroup, Field, PrimeField};
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::boolean::Boolean;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::fp::FpVar;
use ark_r1cs_std::select::CondSelectGadget;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    CircuitError, Fr, InstanceId, LayoutBuilder, Subcircuit, WireId, WireValues,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The depth of the tree.
const DEPTH: usize = 32;

/// The number of rows that stand for an ALU, as in the paper.
// The paper's count for its step circuit (section 8.3); these rows prove nothing, and cost what its ALU
// costs.
const ALU: usize = 1114;

/// The rows of a cycle, which a test counts, and the other rows of a subcircuit.
pub(super) const ROWS: usize = 16_571;
const OTHERS: usize = 16;

/// Poseidon over two elements with x^5, 8 full and 57 partial rounds.
// Parameters by Grain, as arkworks derives them: what matters here is the number of rows.
static POSEIDON: LazyLock<PoseidonConfig<Fr>> = LazyLock::new(|| {
    let (ark, mds) = find_poseidon_ark_and_mds(255, 2, 8, 57, 0);
    PoseidonConfig::new(8, 57, 5, mds, ark, 2, 1)
});

fn hash(left: Fr, right: Fr) -> Result<Fr, CircuitError> {
    TwoToOneCRH::compress(&POSEIDON, left, right).map_err(|e| e.to_string().into())
}

/// Returns the value that the rows that stand for an ALU compute from another one.
fn alu(value: Fr) -> Fr {
    (0..ALU).fold(value, |x, _| x.square() + Fr::from(5u64))
}

/// Cycles with two paths each.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    subcircuits: usize,
    /// The number of cycles of each.
    cycles: usize,
    /// The change of the first access by a prover that lies.
    #[cfg(test)]
    pub(super) lie: Option<fn(&mut Access)>,
}

/// The access of a cycle: the word that was there, and the siblings from the leaf up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Access {
    address: u32,
    #[serde(with = "hekaton_circuit::canonical")]
    found: Fr,
    #[serde(with = "hekaton_circuit::canonical")]
    siblings: Vec<Fr>,
}

#[cfg(test)]
impl Access {
    pub(super) fn with_another_address(&mut self) {
        self.address ^= 1;
    }

    pub(super) fn with_another_word(&mut self) {
        self.found += Fr::from(1u64);
    }

    pub(super) fn with_another_sibling(&mut self) {
        self.siblings[9] += Fr::from(1u64);
    }
}

/// The accesses of all cycles.
#[derive(Debug)]
pub(super) struct PathTrace {
    accesses: Vec<Access>,
    /// The number of each subcircuit.
    cycles: usize,
}

impl PathTrace {
    pub(super) fn accesses(&self, instance: InstanceId) -> Result<Vec<Access>, CircuitError> {
        let own = self.accesses.chunks(self.cycles).nth(instance.index());
        own.map(<[_]>::to_vec).ok_or_else(|| "there is no such subcircuit".into())
    }
}

/// A tree of 2^32 words, those that were never written being zero.
struct Tree {
    /// The nodes that are not those of an empty tree, by level, from the leaves, and index.
    nodes: HashMap<(usize, u32), Fr>,
    /// The nodes of an empty tree, by level.
    empty: Vec<Fr>,
}

impl Tree {
    fn new() -> Result<Self, CircuitError> {
        let mut empty = vec![Fr::ZERO];
        for level in 0..DEPTH {
            empty.push(hash(empty[level], empty[level])?);
        }
        Ok(Self { nodes: HashMap::new(), empty })
    }

    fn node(&self, level: usize, index: u32) -> Fr {
        self.nodes.get(&(level, index)).copied().unwrap_or(self.empty[level])
    }

    fn root(&self) -> Fr {
        self.node(DEPTH, 0)
    }

    fn write(&mut self, address: u32, value: Fr) -> Result<Access, CircuitError> {
        let found = self.node(0, address);
        let (mut index, mut node, mut siblings) = (address, value, Vec::with_capacity(DEPTH));
        for level in 0..DEPTH {
            self.nodes.insert((level, index), node);
            let sibling = self.node(level, index ^ 1);
            siblings.push(sibling);
            node = if index & 1 == 0 { hash(node, sibling)? } else { hash(sibling, node)? };
            index >>= 1;
        }
        self.nodes.insert((DEPTH, 0), node);
        Ok(Access { address, found, siblings })
    }
}

impl Paths {
    pub(super) fn new(cycles: usize, rows: usize) -> Self {
        // A cycle that exceeds the size still gets a subcircuit of its own.
        let each = (rows.saturating_sub(OTHERS) / ROWS).max(1).min(cycles);
        Self {
            subcircuits: cycles.div_ceil(each),
            cycles: each,
            #[cfg(test)]
            lie: None,
        }
    }

    pub(super) fn subcircuits(&self) -> usize {
        self.subcircuits
    }

    /// A chain of subcircuits: each one has the root and the value of the ALU before it, and behind it.
    pub(super) fn layout(&self, layout: &mut LayoutBuilder) -> Vec<[WireId; 2]> {
        let kind = layout.subcircuit_type("cycles", 4);
        let mut wires = vec![[layout.public_input("root", 0), layout.public_input("value", 0)]];
        for number in 0..self.subcircuits {
            let at = number as u64;
            let next = match number + 1 == self.subcircuits {
                true => {
                    [layout.public_output("last root", 0), layout.public_output("last value", 0)]
                }
                false => [layout.wire("root", at), layout.wire("value", at)],
            };
            let instance = layout.instance(kind);
            for (slot, wire) in wires[number].into_iter().enumerate() {
                layout.read(instance, slot, wire);
            }
            for (slot, wire) in (2..).zip(next) {
                layout.write(instance, slot, wire);
            }
            wires.push(next);
        }
        wires
    }

    pub(super) fn execute(
        &self,
        wires: &[[WireId; 2]],
        seed: u32,
        values: &mut WireValues,
    ) -> Result<PathTrace, CircuitError> {
        let (mut tree, mut value) = (Tree::new()?, Fr::from(seed));
        let mut accesses = Vec::with_capacity(self.subcircuits * self.cycles);
        for (number, [root, state]) in wires.iter().enumerate() {
            values.set(*root, tree.root());
            values.set(*state, value);
            let cycles = if number == self.subcircuits { 0 } else { self.cycles };
            for _ in 0..cycles {
                value = alu(value);
                #[allow(clippy::cast_possible_truncation, reason = "any 32 bits")]
                let address = value.into_bigint().0[0] as u32;
                accesses.push(tree.write(address, value)?);
            }
        }
        #[cfg(test)]
        if let Some(lie) = self.lie {
            lie(&mut accesses[0]);
        }
        Ok(PathTrace { accesses, cycles: self.cycles })
    }

    pub(super) fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        accesses: Option<&[Access]>,
    ) -> Result<(), SynthesisError> {
        let cs = subcircuit.cs();
        let poseidon = CRHParametersVar { parameters: POSEIDON.clone() };
        let (mut root, mut value) = (subcircuit.slot(0)?.clone(), subcircuit.slot(1)?.clone());
        for cycle in 0..self.cycles {
            let access = accesses.and_then(|all| all.get(cycle));
            let known = || access.ok_or(SynthesisError::AssignmentMissing);
            for _ in 0..ALU {
                value = value.clone() * &value + FpVar::Constant(Fr::from(5u64));
            }
            let found = FpVar::new_witness(cs.clone(), || Ok(known()?.found))?;
            // Both paths go up beside the same siblings, so the tree changes in this word only.
            let mut nodes = [found, value.clone()];
            for level in 0..DEPTH {
                let sibling =
                    || known()?.siblings.get(level).ok_or(SynthesisError::AssignmentMissing);
                let sibling = FpVar::new_witness(cs.clone(), sibling)?;
                let is_right = || Ok(known()?.address >> level & 1 == 1);
                let is_right = Boolean::new_witness(cs.clone(), is_right)?;
                for node in &mut nodes {
                    let left = FpVar::conditionally_select(&is_right, &sibling, node)?;
                    // The other one of the two, without a second selection.
                    let right = &sibling + &*node - &left;
                    *node = TwoToOneCRHGadget::compress(&poseidon, &left, &right)?;
                }
            }
            let [before, after] = nodes;
            before.enforce_equal(&root)?;
            root = after;
        }
        root.enforce_equal(subcircuit.slot(2)?)?;
        value.enforce_equal(subcircuit.slot(3)?)
    }
}
