//! Reads and writes at secret addresses.

use super::{Error, parts};
use ark_crypto_primitives::crh::poseidon::TwoToOneCRH;
use ark_crypto_primitives::crh::poseidon::constraints::{CRHParametersVar, TwoToOneCRHGadget};
use ark_crypto_primitives::crh::{TwoToOneCRHScheme, TwoToOneCRHSchemeGadget};
use ark_crypto_primitives::sponge::poseidon::{PoseidonConfig, find_poseidon_ark_and_mds};
use ark_ff::AdditiveGroup;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::boolean::Boolean;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::fp::FpVar;
use ark_r1cs_std::select::CondSelectGadget;
use ark_relations::gr1cs::{ConstraintSystemRef, SynthesisError};
use hekaton_circuit::{Closures, Fr, InstanceId, Ram, RamId};
use std::sync::{Arc, OnceLock};

/// log2 of the number of cells.
const DEPTH: usize = 10;

/// The address of an access.
fn address(i: usize) -> u64 {
    (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - DEPTH)
}

/// Each address is read and then written.
pub(crate) fn by_ram(accesses: usize) -> Closures<Vec<u64>> {
    let (parts, each) = parts(accesses / 2, 1 << 12);
    let ram = Arc::new(OnceLock::<RamId>::new());
    let [of_layout, of_execution] = [Arc::clone(&ram), Arc::clone(&ram)];
    let addresses = move |instance: InstanceId| {
        let first = instance.index() * each;
        (first..first + each).map(address).collect::<Vec<u64>>()
    };
    Closures::new(
        move |layout| {
            let ram = layout.ram("ram", Ram::dense(0..1 << DEPTH));
            let _ = of_layout.set(ram);
            let kind = layout.subcircuit_type("accesses", 0);
            layout.accesses(kind, ram, 2 * each);
            (0..parts).for_each(|_| {
                layout.instance(kind);
            });
            Ok(Vec::new())
        },
        move |_, values| {
            let ram = *of_execution.get().ok_or("no layout")?;
            for part in 0..parts {
                let instance = InstanceId::from_index(u32::try_from(part)?);
                for address in addresses(instance) {
                    let found = values.read(instance, ram, address)?;
                    values.write(instance, ram, address, found + Fr::from(1u64))?;
                }
            }
            Ok(())
        },
        move |instance| Ok(addresses(instance)),
        move |subcircuit, addresses| {
            let id = ram.get().ok_or(SynthesisError::AssignmentMissing)?;
            let ram = subcircuit.ram(*id)?;
            for i in 0..each {
                let known = addresses.and_then(|list: &Vec<u64>| list.get(i)).copied();
                let address = subcircuit
                    .commit(|| known.map(Fr::from).ok_or(SynthesisError::AssignmentMissing))?;
                let found = ram.read(&address)?;
                ram.write(&address, &(found + FpVar::Constant(Fr::from(1u64))))?;
            }
            Ok(())
        },
    )
}

/// One access: the bits of the address, the value found, and the siblings from the leaf up.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Path {
    address: u64,
    #[serde(with = "hekaton_circuit::canonical")]
    found: Fr,
    #[serde(with = "hekaton_circuit::canonical")]
    siblings: Vec<Fr>,
}

/// A tree of all levels from the leaves up.
struct Tree {
    levels: Vec<Vec<Fr>>,
}

impl Tree {
    fn new(poseidon: &PoseidonConfig<Fr>) -> Result<Self, Error> {
        let (mut levels, mut node) = (Vec::new(), Fr::ZERO);
        for depth in (0..=DEPTH).rev() {
            levels.push(vec![node; 1 << depth]);
            node = hash(poseidon, node, node)?;
        }
        Ok(Self { levels })
    }

    fn root(&self) -> Fr {
        self.levels[DEPTH][0]
    }

    fn write(&mut self, poseidon: &PoseidonConfig<Fr>, address: u64) -> Result<Path, Error> {
        let mut index = address as usize;
        let found = self.levels[0][index];
        let siblings = (0..DEPTH).map(|level| self.levels[level][index >> level ^ 1]).collect();
        self.levels[0][index] = found + Fr::from(1u64);
        for level in 0..DEPTH {
            index >>= 1;
            let [left, right] = [2 * index, 2 * index + 1].map(|child| self.levels[level][child]);
            self.levels[level + 1][index] = hash(poseidon, left, right)?;
        }
        Ok(Path { address, found, siblings })
    }
}

fn hash(poseidon: &PoseidonConfig<Fr>, left: Fr, right: Fr) -> Result<Fr, Error> {
    TwoToOneCRH::compress(poseidon, left, right).map_err(|e| e.to_string().into())
}

/// The roots before and after an access, by its path.
fn roots_of(
    cs: &ConstraintSystemRef<Fr>,
    poseidon: &CRHParametersVar<Fr>,
    path: Option<&Path>,
) -> Result<[FpVar<Fr>; 2], SynthesisError> {
    let known = || path.ok_or(SynthesisError::AssignmentMissing);
    let found = FpVar::new_witness(cs.clone(), || Ok(known()?.found))?;
    let mut nodes = [found.clone(), found + FpVar::Constant(Fr::from(1u64))];
    for level in 0..DEPTH {
        let sibling = FpVar::new_witness(cs.clone(), || Ok(known()?.siblings[level]))?;
        let is_right = Boolean::new_witness(cs.clone(), || Ok(known()?.address >> level & 1 == 1))?;
        for node in &mut nodes {
            let left = FpVar::conditionally_select(&is_right, &sibling, node)?;
            let right = &sibling + &*node - &left;
            *node = TwoToOneCRHGadget::compress(poseidon, &left, &right)?;
        }
    }
    Ok(nodes)
}

/// Each address is read and then written, with one path that both roots follow from.
pub(crate) fn by_paths(accesses: usize) -> Result<Closures<Vec<Path>>, Error> {
    let (parts, each) = parts(accesses / 2, 16);
    let (ark, mds) = find_poseidon_ark_and_mds(255, 2, 8, 57, 0);
    let poseidon = PoseidonConfig::new(8, 57, 5, mds, ark, 2, 1);
    let mut tree = Tree::new(&poseidon)?;
    let (mut roots, mut paths) = (vec![tree.root()], Vec::new());
    for part in 0..parts {
        let own = (part * each..(part + 1) * each).map(|i| tree.write(&poseidon, address(i)));
        paths.push(own.collect::<Result<Vec<_>, _>>()?);
        roots.push(tree.root());
    }
    Ok(Closures::new(
        move |layout| {
            let kind = layout.subcircuit_type("accesses", 2);
            let mut wires = vec![layout.public_input("root", 0)];
            for i in 0..parts {
                let next = match i + 1 == parts {
                    true => layout.public_output("root", 1),
                    false => layout.wire("partial", i as u64),
                };
                let instance = layout.instance(kind);
                layout.read(instance, 0, wires[i]);
                layout.write(instance, 1, next);
                wires.push(next);
            }
            Ok(wires)
        },
        move |wires, values| {
            wires.iter().zip(&roots).for_each(|(wire, root)| values.set(*wire, *root));
            Ok(())
        },
        move |instance| Ok(paths[instance.index()].clone()),
        move |subcircuit, paths| {
            let cs = subcircuit.cs();
            let poseidon = CRHParametersVar { parameters: poseidon.clone() };
            let mut root = subcircuit.slot(0)?.clone();
            for i in 0..each {
                let path = paths.and_then(|paths: &Vec<Path>| paths.get(i));
                let [before, after] = roots_of(&cs, &poseidon, path)?;
                before.enforce_equal(&root)?;
                root = after;
            }
            root.enforce_equal(subcircuit.slot(1)?)
        },
    ))
}
