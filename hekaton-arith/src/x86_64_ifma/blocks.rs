//! Blocks of eight elements of Fr, as the passes of [`super::fft`] read and write them, twiddles,
//! and sums.

use super::field::{Element, Fr, limbs};
use super::lane::Lane;
use ark_bls12_381::FrConfig;
use ark_ff::MontConfig;

/// Eight elements, either as they are in memory or transposed, word by word.
pub(super) type Block = [u64; 32];

/// The twiddles of eight consecutive butterflies, limb by limb.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Twiddles([[u64; 8]; 5]);

impl Twiddles {
    /// Takes the power for each lane.
    pub(super) fn new<'a>(power: impl Fn(usize) -> &'a ark_bls12_381::Fr) -> Self {
        let mut out = [[0; 8]; 5];
        for lane in 0..8 {
            for (j, limb) in times_r(power(lane)).into_iter().enumerate() {
                out[j][lane] = limb;
            }
        }
        Self(out)
    }

    #[inline(always)]
    pub(super) fn load(&self) -> Fr {
        let mut t = [Lane::splat(0); 5];
        for j in 0..5 {
            t[j] = Lane::load(&self.0[j]);
        }
        Element::new(t)
    }
}

/// Returns x R mod p in limbs; the words of x are x 2^256.
pub(super) fn times_r(x: &ark_bls12_381::Fr) -> [u64; 5] {
    let sixteen = *x * ark_bls12_381::Fr::from(16u64);
    limbs(&sixteen.0.0, 0)
}

/// Views the elements as blocks; their number is a multiple of 8.
pub(super) fn blocks(values: &mut [ark_bls12_381::Fr]) -> &mut [Block] {
    const _: () = assert!(size_of::<[ark_bls12_381::Fr; 8]>() == size_of::<Block>());
    const _: () = assert!(
        <FrConfig as MontConfig<4>>::MODULUS.0[3] >> 63 == 0,
        "numbers below 2 p have 256 bits"
    );
    // SAFETY: an element consists of its four words (size asserted; all words are valid), and this
    // many blocks lie within the slice. Callers leave canonical elements behind.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len() / 8) }
}

/// Loads eight elements as they are in memory.
#[inline(always)]
pub(super) fn load_elements(block: &Block) -> Fr {
    let rows = block.as_chunks::<4>().0;
    let words = Lane::half_columns([
        &rows[0], &rows[1], &rows[2], &rows[3], &rows[4], &rows[5], &rows[6], &rows[7],
    ]);
    Element::cut(&words, 0)
}

#[inline(always)]
pub(super) fn load(block: &Block) -> Fr {
    let rows = block.as_chunks::<8>().0;
    Element::cut(
        &[Lane::load(&rows[0]), Lane::load(&rows[1]), Lane::load(&rows[2]), Lane::load(&rows[3])],
        0,
    )
}

#[inline(always)]
pub(super) fn store(x: &Fr, block: &mut Block) {
    let words: [Lane; 4] = x.joined();
    for (word, row) in words.into_iter().zip(block.as_chunks_mut::<8>().0) {
        word.store(row);
    }
}

/// Stores numbers below 2 p as reduced elements.
#[inline(always)]
pub(super) fn store_elements(x: &Fr, block: &mut Block) {
    Lane::store_half_columns(x.reduce_once::<0>().joined(), block, 4);
}

/// Sums that have not been carried.
pub(super) type Limbs = [Lane; 5];

#[inline(always)]
pub(super) fn sum(a: &Limbs, b: &Limbs) -> Limbs {
    let mut t = *a;
    for j in 0..5 {
        t[j] = t[j].add(b[j]);
    }
    t
}

/// Computes `a - b + 2^K p`.
#[inline(always)]
pub(super) fn difference<const K: usize>(a: &Limbs, b: &Limbs) -> Limbs {
    let (mut t, p) = (*a, Fr::p(K));
    for j in 0..5 {
        t[j] = t[j].sub(b[j]).add(p[j]);
    }
    t
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ark_ff::{BigInt, BigInteger, Field};

    const P: BigInt<4> = FrConfig::MODULUS;

    #[test]
    fn twiddles_are_times_r() {
        let r = ark_bls12_381::Fr::from(2u64).pow([260]);
        assert_eq!(
            times_r(&ark_bls12_381::Fr::ONE),
            limbs::<4, 5>(&ark_ff::PrimeField::into_bigint(r).0, 0)
        );
    }

    /// A number below 2 p: one of the bounds, or a random one.
    pub(in super::super) fn number(state: &mut u64) -> BigInt<4> {
        let mut next = || {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *state >> 32
        };
        let mut out = P;
        match next() % 6 {
            0 => out = BigInt::zero(),
            1 => _ = out.sub_with_borrow(&BigInt::one()),
            2 => {}
            3 | 4 => {
                out.mul2();
                out.sub_with_borrow(&BigInt::one());
            }
            _ => {
                out.0 = [
                    next() << 32 | next(),
                    next() << 32 | next(),
                    next() << 32 | next(),
                    next() << 32 | next(),
                ];
                out.0[3] %= P.0[3];
            }
        }
        out
    }

    pub(in super::super) fn below_p(mut x: BigInt<4>) -> BigInt<4> {
        if x >= P {
            x.sub_with_borrow(&P);
        }
        x
    }

    pub(in super::super) fn to_blocks(numbers: &[BigInt<4>]) -> Vec<Block> {
        numbers
            .as_chunks::<8>()
            .0
            .iter()
            .map(|eight| std::array::from_fn(|at| eight[at % 8].0[at / 8]))
            .collect()
    }

    pub(in super::super) fn from_blocks(blocks: &[Block]) -> Vec<BigInt<4>> {
        let number =
            |block: &Block, i: usize| BigInt(std::array::from_fn(|word| block[8 * word + i]));
        blocks.iter().flat_map(|block| (0..8).map(move |i| below_p(number(block, i)))).collect()
    }
}
