//! The remainder of a b + c modulo m: what calls make of their words, and the values of the rows that prove it
//! (spec: machine#precompiles).

use crate::op::{Access, low};
use num_bigint::{BigInt, BigUint, Sign};

/// The sizes of numbers in a proof of r = a b + c mod m.
///
/// With X as the size of a limb, a(X) b(X) + c(X) - q(X) m(X) - r(X) = (X - x) k(x) for polynomials whose coefficients
/// are the limbs; k has the carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The number of words of a number; an even number of limbs.
    pub(crate) words: usize,
    /// The number of words of a limb.
    pub(crate) limb: usize,
}

impl Numbers {
    /// Numbers of 256 bits, in limbs of 64.
    pub(crate) const BITS_256: Self = Self { words: 8, limb: 2 };
    /// Numbers of 384 bits, in limbs of 64.
    pub(crate) const BITS_384: Self = Self { words: 12, limb: 2 };

    /// The number of limbs of a number.
    pub(crate) fn limbs(self) -> usize {
        self.words / self.limb
    }

    /// The number of carries, the last of which is the highest coefficient.
    pub(crate) fn carries(self) -> usize {
        2 * self.limbs() - 2
    }

    /// Reports whether a carry has a range: every second one, from the first.
    // The others follow from these as integers: see the rows.
    pub(crate) fn has_range(carry: usize) -> bool {
        carry.is_multiple_of(2)
    }

    /// The number of halves of words in a carry, above which it has a few more bits.
    pub(crate) fn carry_halves(self) -> usize {
        2 * self.limb
    }
}

/// The bits of a carry above its halves of words; the upper one is its sign.
// 7, because ranges of as many bits are there. Carries are below 2^67 with six limbs of 64 bits, and need 4.
pub(crate) const CARRY_BITS: u32 = 7;

/// The words of one operand among all words of a call, which has five: r, a, b, c and m.
fn operand(words: &[u32], which: usize) -> &[u32] {
    let count = words.len() / 5;
    &words[which * count..(which + 1) * count]
}

/// The quotient and the remainder of a b + c by m, from the words of all operands, r first. There is none if m is zero or
/// the quotient has more words than m.
fn divide(words: &[u32]) -> Option<[Vec<u32>; 2]> {
    let count = words.len() / 5;
    let [a, b, c, m] = [1, 2, 3, 4].map(|which| BigUint::from_slice(operand(words, which)));
    if m == BigUint::ZERO {
        return None;
    }
    let sum = a * b + c;
    let (quotient, remainder) = (&sum / &m, sum % m);
    let words = |number: BigUint| {
        let mut words = number.to_u32_digits();
        (words.len() <= count).then(|| {
            words.resize(count, 0);
            words
        })
    };
    Some([words(quotient)?, words(remainder)?])
}

/// The remainder. There is none if m is zero or the quotient has more words than m.
pub(crate) fn remainder(words: &[u32]) -> Option<Vec<u32>> {
    divide(words).map(|[_, remainder]| remainder)
}

/// The values that the rows of a call need beside its accesses, in their order: the halves of the quotient's words; for each
/// carry its parts, or the carry; whether the lower half of m - 1 - r borrows from the upper one; for both of these, the halves of
/// words but for the last.
pub(crate) fn values(numbers: Numbers, accesses: &[Access]) -> Vec<i128> {
    let given: Vec<u32> = accesses.iter().take(5 * numbers.words).map(|a| a.before).collect();
    // A call without a result traps. No values satisfy its rows, and these do not.
    let [quotient, remainder] =
        divide(&given).unwrap_or([vec![0; numbers.words], vec![0; numbers.words]]);
    let mut values: Vec<i128> = halves(&quotient).collect();
    let limbs = |words: &[u32]| -> Vec<BigInt> {
        words.chunks(numbers.limb).map(|limb| BigInt::from_slice(Sign::Plus, limb)).collect()
    };
    let [a, b, c, m] = [1, 2, 3, 4].map(|which| limbs(operand(&given, which)));
    let (q, r) = (limbs(&quotient), limbs(&remainder));
    let mut carry = BigInt::ZERO;
    for place in 0..numbers.carries() {
        carry += coefficient(&a, &b, place) - coefficient(&q, &m, place);
        if let (Some(c), Some(r)) = (c.get(place), r.get(place)) {
            carry += c - r;
        }
        carry >>= 32 * numbers.limb;
        let value = i128::try_from(&carry).expect("carries are below 2^67");
        if !Numbers::has_range(place) {
            values.push(value);
            continue;
        }
        let bits = 16 * numbers.carry_halves();
        let above = value + (1 << (bits + CARRY_BITS as usize - 1));
        values.extend((0..numbers.carry_halves()).map(|half| above >> (16 * half) & 0xffff));
        values.push(above >> bits);
    }
    let middle = numbers.words / 2;
    let half = |words: &[u32]| BigInt::from_slice(Sign::Plus, words);
    let (m_low, m_high) = operand(&given, 4).split_at(middle);
    let (r_low, r_high) = remainder.split_at(middle);
    let borrows = half(m_low) <= half(r_low);
    let slack = |m: &[u32], r: &[u32], less: bool, more: bool| {
        let difference =
            half(m) - half(r) - i32::from(less) + (BigInt::from(i32::from(more)) << (32 * middle));
        let (_, mut words) = difference.to_u32_digits();
        words.resize(middle, 0);
        halves(&words).take(2 * middle - 1).collect::<Vec<_>>()
    };
    values.push(borrows.into());
    values.extend(slack(m_low, r_low, true, borrows));
    values.extend(slack(m_high, r_high, borrows, false));
    values
}

/// The halves of words, the lower one of each first.
fn halves(words: &[u32]) -> impl Iterator<Item = i128> {
    words.iter().flat_map(|word| [low(*word), low(word >> 16)])
}

/// A coefficient of the product of two polynomials with as many coefficients.
fn coefficient(a: &[BigInt], b: &[BigInt], place: usize) -> BigInt {
    let first = place.saturating_sub(b.len() - 1);
    (first..=place.min(a.len() - 1)).map(|i| &a[i] * &b[place - i]).sum()
}
