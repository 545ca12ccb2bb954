//! Linear forms, and selection by bits of which exactly one is 1.

use ark_ff::{Field, One, Zero};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, SynthesisError, Variable};
use hekaton_circuit::Fr;

pub(crate) type Cs = ConstraintSystemRef<Fr>;
pub(crate) type Var = FpVar<Fr>;
pub(crate) type Synthesized<T = ()> = Result<T, SynthesisError>;

pub(crate) fn constant(value: impl Into<Fr>) -> Var {
    FpVar::Constant(value.into())
}

/// Allocates a variable that is not a key, value or multiplicity of an entry.
pub(crate) fn witness(cs: &Cs, value: Option<Fr>) -> Synthesized<Var> {
    FpVar::new_witness(cs.clone(), || value.ok_or(SynthesisError::AssignmentMissing))
}

/// Allocates a bit: a variable with its row.
pub(crate) fn bit(cs: &Cs, value: Option<bool>) -> Synthesized<Var> {
    let bit = witness(cs, value.map(Fr::from))?;
    bit.mul_equals(&(FpVar::one() - &bit), &FpVar::zero())?;
    Ok(bit)
}

/// Returns the sum of variables with factors, without a row.
pub(crate) fn sum<'a>(cs: &Cs, terms: impl IntoIterator<Item = (Fr, &'a Var)>) -> Synthesized<Var> {
    let (mut constant, mut list, mut value) = (Fr::zero(), Vec::new(), Some(Fr::zero()));
    for (factor, term) in terms {
        match term {
            FpVar::Constant(term) => constant += factor * term,
            FpVar::Var(term) => {
                value = value.zip(term.value().ok()).map(|(sum, term)| sum + factor * term);
                list.push((factor, term.variable));
            }
        }
    }
    list.push((constant, Variable::One));
    let form = cs.new_lc(|| LinearCombination(list))?;
    Ok(FpVar::Var(AllocatedFp::new(value.map(|value| value + constant), form, cs.clone())))
}

/// Returns the sum of variables.
pub(crate) fn total<'a>(cs: &Cs, terms: impl IntoIterator<Item = &'a Var>) -> Synthesized<Var> {
    sum(cs, terms.into_iter().map(|term| (Fr::one(), term)))
}

/// Little-endian digits in a base of 2^bits.
pub(crate) fn digits<'a>(
    cs: &Cs,
    bits: u32,
    digits: impl IntoIterator<Item = &'a Var>,
) -> Synthesized<Var> {
    let base = Fr::from(1u64 << bits);
    let powers = std::iter::successors(Some(Fr::one()), |power| Some(*power * base));
    sum(cs, powers.zip(digits))
}

/// Returns the number that two bytes are, the more significant one first.
pub(crate) fn big_endian(cs: &Cs, [high, low]: [&Var; 2]) -> Synthesized<Var> {
    sum(cs, [(Fr::from(256u64), high), (Fr::one(), low)])
}

/// Returns the value of an inverse, or zero for zero, as its prover sets it: `None` at setup. Rows that multiply by it hold for zero
/// with any value.
pub(crate) fn inverse_or_zero(of: &Var) -> Option<Fr> {
    let value = of.value().ok()?;
    Some(value.inverse().unwrap_or(Fr::zero()))
}

/// Returns the value that bits select: the sum of products, one row for each.
pub(crate) fn select<'a>(
    cs: &Cs,
    pairs: impl IntoIterator<Item = (&'a Var, &'a Var)>,
) -> Synthesized<Var> {
    let products: Vec<Var> = pairs.into_iter().map(|(bit, value)| bit * value).collect();
    total(cs, &products)
}

/// Constrains a variable to zero if a bit is 1.
pub(crate) fn zero_if(bit: &Var, value: &Var) -> Synthesized {
    bit.mul_equals(value, &FpVar::zero())
}
