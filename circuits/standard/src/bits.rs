//! Bits as variables, their negations or constants, with which hash functions compute.

use ark_ff::{AdditiveGroup, Field};
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, SynthesisError, Variable};
use hekaton_circuit::{Fr, Subcircuit};

pub(crate) type Cs = ConstraintSystemRef<Fr>;

/// A bit: a constant, a boolean variable, or the negation of one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bit {
    Constant(bool),
    Is(Variable),
    Not(Variable),
}

impl Bit {
    pub(crate) fn negate(self) -> Self {
        match self {
            Self::Constant(b) => Self::Constant(!b),
            Self::Is(v) => Self::Not(v),
            Self::Not(v) => Self::Is(v),
        }
    }

    /// The exclusive or, whose value is given: one row, `2 a b = a + b - c`, unless a bit is constant.
    pub(crate) fn xor(
        cs: &Cs,
        a: Self,
        b: Self,
        value: Option<bool>,
    ) -> Result<Self, SynthesisError> {
        Ok(match (a, b) {
            // Padding and round constants are constant bits: where one occurs, there is no row.
            (Self::Constant(false), x) | (x, Self::Constant(false)) => x,
            (Self::Constant(true), x) | (x, Self::Constant(true)) => x.negate(),
            _ => {
                let c = new_dependent_bit(cs, value)?;
                let (left, right) = (|| combination(&[(2, a)]), || combination(&[(1, b)]));
                cs.enforce_r1cs_constraint(left, right, || {
                    combination(&[(1, a), (1, b), (-1, c)])
                })?;
                c
            }
        })
    }

    /// The conjunction, whose value is given: one row, `a b = c`, unless a bit is constant.
    pub(crate) fn and(
        cs: &Cs,
        a: Self,
        b: Self,
        value: Option<bool>,
    ) -> Result<Self, SynthesisError> {
        Ok(match (a, b) {
            (Self::Constant(false), _) | (_, Self::Constant(false)) => Self::Constant(false),
            (Self::Constant(true), x) | (x, Self::Constant(true)) => x,
            _ => {
                let c = new_dependent_bit(cs, value)?;
                let (left, right) = (|| combination(&[(1, a)]), || combination(&[(1, b)]));
                cs.enforce_r1cs_constraint(left, right, || combination(&[(1, c)]))?;
                c
            }
        })
    }

    /// Adds `k` times the bit to a linear combination.
    pub(crate) fn add_to(self, lc: &mut Vec<(Fr, Variable)>, k: Fr) {
        match self {
            Self::Constant(false) => {}
            Self::Constant(true) => lc.push((k, Variable::One)),
            Self::Is(v) => lc.push((k, v)),
            Self::Not(v) => lc.extend([(k, Variable::One), (-k, v)]),
        }
    }
}

pub(crate) fn combination(terms: &[(i64, Bit)]) -> LinearCombination<Fr> {
    let mut lc = Vec::with_capacity(terms.len() + 1);
    terms.iter().for_each(|(k, bit)| bit.add_to(&mut lc, Fr::from(*k)));
    LinearCombination(lc)
}

pub(crate) fn missing<T>(value: Option<T>) -> Result<T, SynthesisError> {
    value.ok_or(SynthesisError::AssignmentMissing)
}

/// Allocates a boolean variable with its row `b (1 - b) = 0`.
pub(crate) fn new_bit(cs: &Cs, value: Option<bool>) -> Result<Bit, SynthesisError> {
    let v = cs.new_witness_variable(|| Ok(if missing(value)? { Fr::ONE } else { Fr::ZERO }))?;
    let not = || LinearCombination(vec![(Fr::ONE, Variable::One), (-Fr::ONE, v)]);
    // 0 and 1 are the only roots.
    cs.enforce_r1cs_constraint(|| v.into(), not, LinearCombination::zero)?;
    Ok(Bit::Is(v))
}

/// Allocates a variable without a boolean row: the row that defines it must make it boolean.
pub(crate) fn new_dependent_bit(cs: &Cs, value: Option<bool>) -> Result<Bit, SynthesisError> {
    // A row such as 2 a b = a + b - c leaves c one value, and a bit, for bits a and b.
    Ok(Bit::Is(cs.new_witness_variable(|| Ok(if missing(value)? { Fr::ONE } else { Fr::ZERO }))?))
}

/// Allocates a marked bit with its row `b (1 - b) = 0`.
pub(crate) fn committed_bit(
    subcircuit: &Subcircuit,
    value: Option<bool>,
) -> Result<Bit, SynthesisError> {
    let bit = subcircuit.commit(|| Ok(if missing(value)? { Fr::ONE } else { Fr::ZERO }))?;
    // `commit` returns variables only; a constant here would be a bit that no row constrains.
    let FpVar::Var(bit) = bit else { return Err(SynthesisError::Unsatisfiable) };
    enforce_bit(&subcircuit.cs(), || bit.variable.into())?;
    Ok(Bit::Is(bit.variable))
}

/// Adds the row `b (1 - b) = 0`.
pub(crate) fn enforce_bit(
    cs: &Cs,
    b: impl Fn() -> LinearCombination<Fr>,
) -> Result<(), SynthesisError> {
    let not = || LinearCombination(vec![(Fr::ONE, Variable::One)]) - &b();
    cs.enforce_r1cs_constraint(&b, not, LinearCombination::zero)
}

/// Adds `k sum 2^i bits_i` to a linear combination. Constants are added up first, so that the
/// variable `One` occurs at most once.
pub(crate) fn add_word(lc: &mut Vec<(Fr, Variable)>, bits: &[Bit], k: Fr) {
    let mut factor = k;
    let mut constant = Fr::ZERO;
    for bit in bits {
        match bit {
            Bit::Constant(true) => constant += factor,
            Bit::Constant(false) => {}
            Bit::Is(v) => lc.push((factor, *v)),
            Bit::Not(v) => {
                constant += factor;
                lc.push((-factor, *v));
            }
        }
        factor.double_in_place();
    }
    if constant != Fr::ZERO {
        lc.push((constant, Variable::One));
    }
}
