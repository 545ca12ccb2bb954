//! A chain of squarings of several types, with one wire that many subcircuits read.

use ark_ff::Field;
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, Subcircuit, WireId,
    WireValues,
};

/// A chain in which subcircuit i of type t reads w_i and writes w_{i+1} = w_i^2 + 3 + t. Every
/// subcircuit but the first also reads w_1. Types differ in the constant, and odd ones have
/// additional rows, so that their domains differ in size.
#[derive(Clone, Debug)]
pub struct Squares {
    /// The type of each instance.
    pub kinds: Vec<usize>,
    /// `true` if w_0 is a public input and w_n a public output.
    pub public: bool,
    /// `true` if there is also an instance of a type without shared wires, which knows a square
    /// root of 49.
    pub lonely: bool,
    /// The number of additional rows of odd types.
    pub rows: usize,
}

impl Squares {
    /// Creates a chain of instances of these types, with public ends.
    pub fn new(kinds: &[usize]) -> Self {
        Self { kinds: kinds.to_vec(), public: true, lonely: false, rows: 12 }
    }

    fn types(&self) -> usize {
        self.kinds.iter().max().map_or(0, |k| k + 1)
    }

    /// The output of an instance of type `kind` for the input `w`.
    pub fn step(kind: usize, w: Fr) -> Fr {
        w.square() + Fr::from(3 + kind as u64)
    }
}

impl Circuit for Squares {
    type Input = Fr;
    type Plan = Vec<Option<WireId>>;
    type Trace = ();
    type Private = Root;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Vec<Option<WireId>>, LayoutError> {
        let types: Vec<_> =
            (0..self.types()).map(|t| layout.subcircuit_type(&format!("squares-{t}"), 3)).collect();
        // The third slot costs a row of the memory check and is in no other constraint.
        types.iter().for_each(|kind| layout.unconstrained(*kind, 2));
        let n = self.kinds.len();
        let input = self.public.then(|| layout.public_input("w", 0));
        let mut wires: Vec<_> = (1..n).map(|i| Some(layout.wire("w", i as u64))).collect();
        wires.insert(0, input);
        wires.push(self.public.then(|| layout.public_output("w", n as u64)));
        for (i, kind) in self.kinds.iter().enumerate() {
            let instance = layout.instance(types[*kind]);
            match wires[i] {
                Some(w) => layout.read(instance, 0, w),
                None => layout.unused(instance, 0),
            }
            match wires[i + 1] {
                Some(w) => layout.write(instance, 1, w),
                None => layout.unused(instance, 1),
            }
            match wires[1].filter(|_| i > 0) {
                Some(w) => layout.read(instance, 2, w),
                None => layout.unused(instance, 2),
            }
        }
        if self.lonely {
            let kind = layout.subcircuit_type("lonely", 0);
            layout.instance(kind);
        }
        Ok(wires)
    }

    fn execute(
        &self,
        wires: &Vec<Option<WireId>>,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let mut w = *input;
        for (i, kind) in self.kinds.iter().enumerate() {
            let instance = InstanceId::from_index(u32::try_from(i)?);
            match wires[i] {
                Some(wire) => values.set(wire, w),
                None => values.set_unused(instance, 0, w),
            }
            w = Self::step(*kind, w);
            match wires[i + 1] {
                Some(wire) => values.set(wire, w),
                None => values.set_unused(instance, 1, w),
            }
        }
        Ok(())
    }

    fn private_input(
        &self,
        _: &Vec<Option<WireId>>,
        _: &Fr,
        (): &(),
        _: InstanceId,
    ) -> Result<Root, CircuitError> {
        Ok(Root(Fr::from(7u64)))
    }

    fn synthesize(
        &self,
        _: &Vec<Option<WireId>>,
        subcircuit: &Subcircuit,
        private: Option<&Root>,
    ) -> Result<(), SynthesisError> {
        let kind = subcircuit.kind().index();
        if subcircuit.slots().is_empty() {
            let root = FpVar::new_witness(subcircuit.cs(), || {
                private.map(|root| root.0).ok_or(SynthesisError::AssignmentMissing)
            })?;
            return (&root * &root).enforce_equal(&FpVar::constant(Fr::from(49u64)));
        }
        let input = subcircuit.slot(0)?;
        let square = input * input;
        (square + FpVar::constant(Fr::from(3 + kind as u64))).enforce_equal(subcircuit.slot(1)?)?;
        if kind % 2 == 1 {
            let mut product = input.clone();
            for _ in 0..self.rows {
                product = &product * input;
            }
            let _ = product.value();
        }
        Ok(())
    }
}

/// A private input: a square root of 49.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Root(
    /// The root.
    #[serde(with = "hekaton_circuit::canonical")]
    pub Fr,
);
