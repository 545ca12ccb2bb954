//! Questions about circuits from other tools: does the witness follow from the inputs ([`hekaton_circuit::unique`])?

use crate::derived::{Definition, Derived, RowKind};
use crate::directory::{BundleError, CircuitBundle, Source};
use crate::error::FileError;
use crate::import::Monolith;
use crate::numbers::count;
use crate::system::Term;
use crate::witness::WitnessFile;
use ark_ff::AdditiveGroup;
use hekaton_circuit::Fr;
use hekaton_circuit::unique::{FalseRow, Question, Rows, Ties, TooManyRows, Verdicts, analyze};
use std::collections::BTreeMap;

/// The reason why a question cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UniqueError {
    /// A file of another tool cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A circuit directory cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The circuit is too large.
    #[error(transparent)]
    TooLarge(#[from] TooManyRows),
    /// Nothing says which wires are private inputs.
    #[error(
        "nothing says which wires are private inputs: the labels of the .r1cs file are missing or not those of circom, or an \
         earlier version imported it. Without the inputs, there is no telling what follows from them"
    )]
    NoPrivateInputs,
    /// The values do not satisfy a constraint.
    #[error("constraint {0} is not satisfied: `check` without --unique describes it")]
    False(u32),
}

/// The constraints of a circuit from another tool. Given are the public inputs and the private inputs; outputs are the
/// public outputs.
#[derive(Debug)]
pub struct Unique {
    rows: Rows<Fr>,
    /// The number of each row in the source.
    numbers: Vec<u32>,
    /// The number of wires of the source.
    wires: u32,
    outputs: u32,
    inputs: u32,
    private_inputs: u32,
}

impl Unique {
    /// Collects the constraints of a circuit in one piece.
    ///
    /// # Errors
    /// Fails if the circuit is too large, or nothing says which wires are private inputs.
    pub fn of_monolith(monolith: &Monolith) -> Result<Self, UniqueError> {
        let (system, source) = (monolith.system(), monolith.source());
        let entry = |term: &Term| [term.wire, term.coefficient];
        let rows = (0..system.rows())
            .map(|row| system.row(row).map(|side| side.iter().map(entry).collect::<Vec<_>>()));
        Ok(Self {
            rows: Rows::new(system.coefficients().to_vec(), rows)?,
            numbers: (0..system.rows()).map(|row| system.number(row)).collect(),
            wires: source.wires,
            outputs: source.outputs,
            inputs: source.inputs,
            private_inputs: source.private_inputs.ok_or(UniqueError::NoPrivateInputs)?,
        })
    }

    /// Collects the constraints of all parts of a circuit directory. A wire that stands for a sum is replaced by its terms, so these are
    /// the constraints of the source.
    ///
    /// # Errors
    /// Fails if a file cannot be read, the circuit is too large, or nothing says which wires are private inputs.
    pub fn of_directory(directory: &CircuitBundle) -> Result<Self, UniqueError> {
        let Source { wires, outputs, inputs, private_inputs, .. } = directory.summary().source;
        let private_inputs = private_inputs.ok_or(UniqueError::NoPrivateInputs)?;
        let mut of_kind = vec![Vec::new(); directory.summary().types.len()];
        (0..directory.parts()).for_each(|part| of_kind[directory.kind(part)].push(part));
        let (mut coefficients, mut all, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (kind, parts) in of_kind.into_iter().enumerate() {
            let rows = directory.rows(kind)?;
            let first = count(coefficients.len());
            coefficients.extend_from_slice(&rows.coefficients);
            for part in parts {
                let content = directory.content(part)?;
                // Local variable 0 is the constant, which is wire 0.
                let slots = directory.slots(part).map(|(wire, _)| wire);
                let wires: Vec<u32> = [0].into_iter().chain(slots).chain(content.own).collect();
                let entry = |[k, local]: &[u32; 2]| [wires[*local as usize], first + k];
                for (sides, number) in rows.iter().zip(&content.rows) {
                    // Definitions of wires that stand for others are not constraints of the source.
                    let Some(RowKind::Source(number)) = directory.derived().row(*number) else {
                        continue;
                    };
                    let sides = sides.map(|side| side.iter().map(entry).collect());
                    all.push(
                        sides.map(|side| in_source(directory.derived(), side, &mut coefficients)),
                    );
                    numbers.push(number);
                }
            }
        }
        let rows = Rows::new(coefficients, all)?;
        Ok(Self { rows, numbers, wires, outputs, inputs, private_inputs })
    }

    /// The numbers of public outputs, public inputs and private inputs, which are the wires from 1 in this order.
    pub fn counts(&self) -> [u32; 3] {
        [self.outputs, self.inputs, self.private_inputs]
    }

    /// The values of all wires.
    ///
    /// # Errors
    /// Fails if the witness cannot be read or belongs to another circuit.
    pub fn values(&self, witness: &WitnessFile) -> Result<Vec<Fr>, UniqueError> {
        witness.check_wires(self.wires)?;
        Ok(witness.values(0..self.wires)?)
    }

    /// Says which values follow from the inputs, with names for them, and the values of the source's wires in a second witness,
    /// as the content of a `.wtns` file, if there is one.
    ///
    /// # Errors
    /// Fails if a constraint is not satisfied.
    ///
    /// # Panics
    /// If there are fewer values than wires.
    pub fn verdicts(
        &self,
        values: &[Fr],
        name: impl Fn(u32) -> String,
    ) -> Result<(Verdicts, Option<Vec<u8>>), UniqueError> {
        let inputs = self.inputs + self.private_inputs;
        let outputs: Vec<u32> = (1..=self.outputs).collect();
        let given: Vec<u32> = (1 + self.outputs..=self.outputs + inputs).collect();
        let (rows, ties) = (&self.rows, &Ties::default());
        let question = Question { rows, values, given: &given, outputs: &outputs, ties };
        let wrong = |FalseRow(row)| UniqueError::False(self.numbers[row]);
        let answer = analyze(&question).map_err(wrong)?;
        let others = self.wires - 1 - self.outputs - inputs;
        let second = answer.second.as_ref().map(|changes| {
            let mut second = values.to_vec();
            changes.iter().for_each(|(wire, value)| second[*wire as usize] = *value);
            WitnessFile::bytes_of(&second)
        });
        Ok((Verdicts::new(&answer, values, &outputs, others as usize, name), second))
    }
}

/// A combination over wires of the source, of one in which wires stand for several others.
fn in_source(derived: &Derived, side: Vec<[u32; 2]>, coefficients: &mut Vec<Fr>) -> Vec<[u32; 2]> {
    if side.iter().all(|[wire, _]| *wire < derived.first()) || derived.is_empty() {
        return side;
    }
    let mut terms: BTreeMap<u32, Fr> = BTreeMap::new();
    let mut left: Vec<(u32, Fr)> =
        side.iter().map(|[wire, k]| (*wire, coefficients[*k as usize])).collect();
    while let Some((wire, k)) = left.pop() {
        match derived.get(wire) {
            None => *terms.entry(wire).or_default() += k,
            // Definitions mention earlier wires only.
            Some(Definition::Sum(sum)) => {
                let value = |at: u32| derived.coefficients()[at as usize];
                left.extend(sum.iter().map(|[at, wire]| (*wire, k * value(*at))));
            }
            Some(Definition::Pack(bits)) => {
                let mut power = k;
                for bit in bits {
                    left.push((*bit, power));
                    power.double_in_place();
                }
            }
        }
    }
    let entry = |(wire, k)| {
        coefficients.push(k);
        [wire, count(coefficients.len() - 1)]
    };
    terms.into_iter().map(entry).collect()
}
