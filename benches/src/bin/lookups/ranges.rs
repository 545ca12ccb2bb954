//! Values of 16 bits.

use super::parts;
use ark_ff::{AdditiveGroup, Field};
use ark_relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::{Closures, Fr, Subcircuit};

/// Some pseudorandom value of 16 bits.
fn value(i: usize) -> u64 {
    (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

/// Subcircuits of the same type, which share nothing and have the values of their own items.
fn independent(
    items: usize,
    most: usize,
    range: Option<u32>,
    synthesize: impl Fn(&Subcircuit, u64, bool) -> Result<(), SynthesisError> + Send + Sync + 'static,
) -> Closures<Vec<u64>> {
    let (parts, each) = parts(items, most);
    Closures::new(
        move |layout| {
            range.map(|bits| layout.range(bits));
            let kind = layout.subcircuit_type("values", 0);
            (0..parts).for_each(|_| {
                layout.instance(kind);
            });
            Ok(Vec::new())
        },
        |_, _| Ok(()),
        move |instance| {
            let first = instance.index() * each;
            Ok((first..first + each).map(value).collect())
        },
        move |subcircuit, values| {
            for i in 0..each {
                let value = values.and_then(|values: &Vec<u64>| values.get(i));
                synthesize(subcircuit, value.copied().unwrap_or_default(), values.is_some())?;
            }
            Ok(())
        },
    )
}

pub(crate) fn by_look_ups(items: usize) -> Closures<Vec<u64>> {
    independent(items, 1 << 15, Some(16), |subcircuit, value, is_known| {
        let given = is_known.then_some(Fr::from(value));
        let value = subcircuit.commit(|| given.ok_or(SynthesisError::AssignmentMissing))?;
        subcircuit.range_check(16, &value)
    })
}

/// 16 boolean rows, and one for the sum of the bits.
pub(crate) fn by_bits(items: usize) -> Closures<Vec<u64>> {
    independent(items, 1 << 13, None, |subcircuit, number, is_known| {
        let cs = subcircuit.cs();
        let known = |value: u64| {
            is_known.then_some(Fr::from(value)).ok_or(SynthesisError::AssignmentMissing)
        };
        let value = cs.new_witness_variable(|| known(number))?;
        let (mut sum, mut factor) = (vec![(-Fr::ONE, value)], Fr::ONE);
        for i in 0..16 {
            let bit = cs.new_witness_variable(|| known(number >> i & 1))?;
            let not = || LinearCombination(vec![(Fr::ONE, Variable::One), (-Fr::ONE, bit)]);
            cs.enforce_r1cs_constraint(|| bit.into(), not, LinearCombination::zero)?;
            sum.push((factor, bit));
            factor.double_in_place();
        }
        cs.enforce_r1cs_constraint(
            || LinearCombination(sum.clone()),
            || Variable::One.into(),
            LinearCombination::zero,
        )
    })
}
