//! The code shared by the backends that work on eight field elements at a time.
//!
//! Each of these backends compiles its own copy of the files in this folder for its instructions:
//! it provides a `lane`, a `field`, a `loose`, a `product`, an `additions` and a `tuning` module,
//! and takes `batch`, `coordinate`, `pairing`, `pairs`, `target_group` and `tower` from here, by
//! path. Only this file is compiled once.
//!
//! Forms, bounds and counts of multiply-adds in those files are those of AVX-512 IFMA, where limbs
//! are unsigned and products divide by R = 2^416. With AVX2, elements have the form of the words, R
//! = 2^384, and are always between -p and p; the shifts and factors that correct the form do
//! nothing there.

use ark_bls12_381::FqConfig;
use ark_ff::MontConfig;

/// Divides `2^k` by q, by repeated doubling: returns the remainder in words and the quotient modulo
/// 2^64.
pub(crate) const fn divide_power_of_two(k: usize) -> ([u64; 6], u64) {
    let p = <FqConfig as MontConfig<6>>::MODULUS.0;
    let (mut x, mut quotient) = ([1, 0, 0, 0, 0, 0], 0u64);
    let mut done = 0;
    while done < k {
        let (mut twice, mut less, mut carry, mut borrow, mut j) =
            ([0u64; 6], [0u64; 6], 0, false, 0);
        while j < 6 {
            twice[j] = x[j] << 1 | carry;
            carry = x[j] >> 63;
            let (a, b1) = twice[j].overflowing_sub(p[j]);
            let (a, b2) = a.overflowing_sub(borrow as u64);
            less[j] = a;
            borrow = b1 | b2;
            j += 1;
        }
        x = if borrow { twice } else { less };
        quotient = quotient << 1 | !borrow as u64;
        done += 1;
    }
    (x, quotient)
}

/// The remainder `2^k mod q` in words.
pub(crate) const fn power_of_two(k: usize) -> [u64; 6] {
    divide_power_of_two(k).0
}
