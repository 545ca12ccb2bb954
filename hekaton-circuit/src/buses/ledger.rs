//! The values that a subcircuit under synthesis commits to, the entries that it adds to buses, and
//! the rows of the memory check (spec: memory-check#rows, buses#rows).

use crate::buses::library::memory::Access;
use crate::buses::mistake::Mistake;
use crate::layout::ids::{BusId, RamId, to_index};
use crate::memory::prefix::{Pole, Prefix};
use crate::memory::variables::{BusShape, VariableLayout};
use ark_ff::{Field, One, Zero};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, SynthesisError, Variable};
use hekaton_arith::Fr;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A value for several entries of one subcircuit, which share its row: a scaled value, unless the value
/// is constant, plus a constant, which is the coefficient of b_V.
#[derive(Clone, Copy, Debug)]
pub struct BusValue {
    scaled: Option<usize>,
    constant: Fr,
}

impl BusValue {
    /// The value plus a constant, in the same row, for example to take a counter and leave it one higher.
    #[must_use]
    pub fn plus(self, constant: Fr) -> Self {
        Self { constant: self.constant + constant, ..self }
    }
}

#[derive(Debug)]
struct Entry {
    tag: u32,
    key: FpVar<Fr>,
    value: BusValue,
    multiplicity: FpVar<Fr>,
    pair: Option<usize>,
}

/// The values of an entry, for checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryValues {
    pub(crate) tag: u32,
    pub(crate) key: Fr,
    pub(crate) value: Fr,
    pub(crate) multiplicity: Fr,
}

/// Why the rows of the memory check were not added.
#[derive(Debug)]
pub(crate) enum Unfinished {
    Synthesis(SynthesisError),
    Pole(Pole),
}

impl From<SynthesisError> for Unfinished {
    fn from(error: SynthesisError) -> Self {
        Self::Synthesis(error)
    }
}

/// The variables of the memory check, and what an author committed to and added to buses.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The first mistake of the author, and the function that made it.
    pub(crate) mistake: Option<(Mistake, String)>,
    /// The public variables, without the constant 1.
    public: Vec<Variable>,
    /// The position of the first of them in the order of all variables.
    first: usize,
    slots: Vec<Variable>,
    marked: Vec<Variable>,
    entries: Vec<Entry>,
    /// The values of entries that are not constants, each with its variable y from `finish`.
    scaled: Vec<FpVar<Fr>>,
    /// The rows of tables that were looked up, if variables have values.
    pub(crate) look_ups: Vec<(BusId, u32)>,
    /// The number of accesses to each memory so far.
    accesses: HashMap<RamId, usize>,
    /// The witness variables that are private input, by their positions among all witness variables.
    pub(crate) given: Vec<Range<usize>>,
    /// The accesses that the execution made; `None` at setup.
    pub(crate) trace: Option<Arc<Vec<Vec<Access>>>>,
}

/// The tag of a bus (spec: buses#entries): tag 0 is that of slots.
fn tag_of(bus: BusId) -> u32 {
    to_index(bus.index()) + 1
}

impl Ledger {
    pub(crate) fn new(
        variables: &VariableLayout,
        public: Vec<Variable>,
        slots: Vec<Variable>,
    ) -> Self {
        Self {
            mistake: None,
            public,
            first: variables.preprocessed().start,
            slots,
            marked: Vec::new(),
            entries: Vec::new(),
            scaled: Vec::new(),
            look_ups: Vec::new(),
            accesses: HashMap::new(),
            given: Vec::new(),
            trace: None,
        }
    }

    /// Adds an entry.
    pub(crate) fn add(
        &mut self,
        bus: BusId,
        key: &FpVar<Fr>,
        value: BusValue,
        multiplicity: &FpVar<Fr>,
    ) {
        let (key, multiplicity) = (key.clone(), multiplicity.clone());
        self.entries.push(Entry { tag: tag_of(bus), key, value, multiplicity, pair: None });
    }

    /// Adds an entry whose key and value are a public variable, that of a pair.
    pub(crate) fn add_pair(
        &mut self,
        bus: BusId,
        index: usize,
        pair: &FpVar<Fr>,
        multiplicity: &FpVar<Fr>,
    ) {
        let (key, multiplicity) = (pair.clone(), multiplicity.clone());
        let value = BusValue { scaled: None, constant: Fr::zero() };
        self.entries.push(Entry { tag: tag_of(bus), key, value, multiplicity, pair: Some(index) });
    }

    /// The tags of all entries.
    pub(crate) fn tags(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|entry| entry.tag)
    }

    /// The number of look-ups in a table so far.
    pub(crate) fn asked(&self, table: BusId) -> usize {
        self.look_ups.iter().filter(|(bus, _)| *bus == table).count()
    }

    /// The number of accesses to a memory so far.
    pub(crate) fn accesses(&self, ram: RamId) -> usize {
        self.accesses.get(&ram).map_or(0, |made| *made)
    }

    /// The number of the next access to a memory.
    pub(crate) fn next_access(&mut self, ram: RamId) -> usize {
        let count = self.accesses.entry(ram).or_default();
        *count += 1;
        *count - 1
    }

    pub(crate) fn mark(&mut self, variable: Variable) {
        self.marked.push(variable);
    }

    /// The marked variables, by their positions among all witness variables, in ascending order.
    pub(crate) fn marked_indices(&self) -> Vec<usize> {
        self.marked.iter().filter_map(|variable| variable.get_variable_index(0)).collect()
    }

    fn public(&self, variable: usize) -> Variable {
        self.public[variable - self.first]
    }

    /// A value for entries. A constant needs no row of its own, since `constant * b_V` is linear.
    pub(crate) fn value(&mut self, value: &FpVar<Fr>) -> BusValue {
        match value {
            FpVar::Constant(constant) => BusValue { scaled: None, constant: *constant },
            FpVar::Var(_) => {
                self.scaled.push(value.clone());
                BusValue { scaled: Some(self.scaled.len() - 1), constant: Fr::zero() }
            }
        }
    }

    /// The shape of the type, after the author's `synthesize` has returned.
    pub(crate) fn shape(&self, declared: BusShape) -> BusShape {
        BusShape {
            marked: self.marked.len(),
            entries: self.entries.len(),
            scaled: self.scaled.len(),
            ..declared
        }
    }

    /// Allocates the variables of the memory check that are computed from the challenges, and adds
    /// its rows (spec: memory-check#rows, buses#rows).
    pub(crate) fn finish(
        &mut self,
        cs: &ConstraintSystemRef<Fr>,
        variables: &VariableLayout,
        prefix: Option<&Prefix>,
    ) -> Result<(), Unfinished> {
        let _span = ark_relations::gr1cs::info_span!(target: "gr1cs", "memory_check").entered();
        let inverses = prefix.map(|prefix| self.inverses(prefix)).transpose()?;
        let of_entries = |list: &Option<Vec<Fr>>| {
            let list = list.as_ref().ok_or(SynthesisError::AssignmentMissing)?;
            Ok::<Fr, SynthesisError>(list.iter().sum())
        };
        // The order of these allocations is that of `VariableLayout`: e, the u of slots, those of entries, y.
        let e =
            cs.new_witness_variable(|| Ok(value(prefix, |p| p.sum)? + of_entries(&inverses)?))?;
        // Unlike `sum`, the inverses are variables of their own, so that each fingerprint has one row.
        let mut u = (0..variables.slots())
            .map(|j| cs.new_witness_variable(|| value(prefix, |p| p.inverses[j])))
            .collect::<Result<Vec<_>, _>>()?;
        for k in 0..self.entries.len() {
            let inverse = inverses.as_ref().map(|list| list[k]);
            u.push(cs.new_witness_variable(|| inverse.ok_or(SynthesisError::AssignmentMissing))?);
        }
        let y = (self.scaled.iter())
            .map(|v| cs.new_witness_variable(|| Ok(value(prefix, |p| p.memory.b_v)? * v.value()?)))
            .collect::<Result<Vec<_>, _>>()?;
        // Row 0 comes first and is the only row that contains e, so e is the sum of the u and
        // nothing else (spec: memory-check#rows). Setup checks this row and the next ones by position.
        cs.enforce_r1cs_constraint(|| sum(&u), || Variable::One.into(), || e.into())?;
        // Row j defines u_j as mu_j / (g + v_j + x_j), because no fingerprint is a pole
        // (spec: memory-check#rows, memory-check#pole).
        let g = self.public(variables.g());
        for (j, (x, mu)) in variables.addresses().zip(variables.multiplicities()).enumerate() {
            let fingerprint = || sum(&[g, self.slots[j], self.public(x)]);
            cs.enforce_r1cs_constraint(|| u[j].into(), fingerprint, || self.public(mu).into())?;
        }
        let Some([b_t, b_v]) = variables.bus_challenges() else { return Ok(()) };
        let (b_t, b_v) = (self.public(b_t), self.public(b_v));
        // The term `T b_T` is added here, from the bus's own tag, and not by the author's gadgets: a tag
        // is what keeps the entries of two owners apart (spec: buses#owners).
        for (entry, u) in self.entries.iter().zip(&u[variables.slots()..]) {
            let fingerprint = || {
                let mut terms = vec![(Fr::one(), g), (Fr::from(entry.tag), b_t), term(&entry.key)];
                let BusValue { scaled, constant } = entry.value;
                terms.extend(scaled.map(|place| (Fr::one(), y[place])));
                if scaled.is_none() || !constant.is_zero() {
                    terms.push((constant, b_v));
                }
                LinearCombination(terms)
            };
            let multiplicity = || LinearCombination(vec![term(&entry.multiplicity)]);
            cs.enforce_r1cs_constraint(|| (*u).into(), fingerprint, multiplicity)?;
        }
        // The value on the side of A: b_V is public, and B would need a point of G2 for each value.
        for (v, y) in self.scaled.iter().zip(&y) {
            let v = || LinearCombination(vec![term(v)]);
            cs.enforce_r1cs_constraint(v, || b_v.into(), || (*y).into())?;
        }
        Ok(())
    }

    /// The fingerprints of the entries, inverted and scaled by the multiplicities.
    fn inverses(&self, prefix: &Prefix) -> Result<Vec<Fr>, Unfinished> {
        let memory = &prefix.memory;
        let (mut fingerprints, mut multiplicities) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            let value = self.number(entry.value)?;
            let tag = memory.b_t * Fr::from(entry.tag);
            fingerprints.push(memory.g + tag + entry.key.value()? + memory.b_v * value);
            multiplicities.push(entry.multiplicity.value()?);
        }
        // As for slots, the row of a pole has no solution, or leaves u to the prover. The batch inversion
        // below would pass the zero through (spec: memory-check#pole).
        if fingerprints.iter().any(Zero::is_zero) {
            return Err(Unfinished::Pole(Pole));
        }
        hekaton_arith::batch_invert(&mut fingerprints);
        fingerprints.iter_mut().zip(&multiplicities).for_each(|(u, mu)| *u *= mu);
        Ok(fingerprints)
    }

    /// The value as a number; an error where variables have no values.
    pub(crate) fn number(&self, value: BusValue) -> Result<Fr, SynthesisError> {
        let BusValue { scaled, constant } = value;
        Ok(match scaled {
            Some(place) => self.scaled[place].value()? + constant,
            None => constant,
        })
    }

    /// The values of all entries. `pairs` are those of the instance.
    pub(crate) fn entry_values(
        &self,
        pairs: &[[Fr; 2]],
    ) -> Result<Vec<EntryValues>, SynthesisError> {
        let values = |entry: &Entry| {
            let [key, value] = match entry.pair.and_then(|index| pairs.get(index)) {
                // Its variable holds `key + b_V value`, from which neither can be told apart.
                Some(pair) => *pair,
                None => [entry.key.value()?, self.number(entry.value)?],
            };
            let multiplicity = entry.multiplicity.value()?;
            Ok(EntryValues { tag: entry.tag, key, value, multiplicity })
        };
        self.entries.iter().map(values).collect()
    }
}

/// A variable or a constant, as a term of a linear combination.
fn term(variable: &FpVar<Fr>) -> (Fr, Variable) {
    match variable {
        FpVar::Constant(value) => (*value, Variable::One),
        FpVar::Var(allocated) => (Fr::ONE, allocated.variable),
    }
}

/// A value of the prefix; an error at setup, where there is none.
pub(crate) fn value(
    prefix: Option<&Prefix>,
    pick: impl FnOnce(&Prefix) -> Fr,
) -> Result<Fr, SynthesisError> {
    prefix.map(pick).ok_or(SynthesisError::AssignmentMissing)
}

/// A sum of variables, each with the coefficient 1.
fn sum(variables: &[Variable]) -> LinearCombination<Fr> {
    LinearCombination(variables.iter().map(|variable| (Fr::ONE, *variable)).collect())
}
