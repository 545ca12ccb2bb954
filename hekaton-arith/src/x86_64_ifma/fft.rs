//! Fourier transforms over Fr in lanes, in place.
//!
//! # Form
//! Between passes, eight consecutive elements form a block of four times eight words, in place of
//! the elements: their first words, their second words and so on. The first pass reads elements and
//! the last one writes them. Blocks hold numbers below 2 p, which have 256 bits. Twiddles are
//! stored as limbs times R, so a product with one leaves the form of the other operand unchanged.
//!
//! # Passes
//! Each pass computes two layers of butterflies: four products for four elements (404 multiply-adds
//! for eight times four, and one for the quotient of each sum). Passes recurse depth first, so all
//! but the first few stay in cache. The last six layers of decimation in frequency, over 64
//! elements, are computed at once: three over blocks and, after a transposition, three over the
//! former lanes of a block.
//!
//! # Bounds
//! Sums of two numbers below 2 p are below 4 p, and differences lifted by 2 p or 4 p are below 8 p;
//! products with a twiddle, which is below p, stay below (1 + 2^-20 + 8 p / R) p < 1.3 p. Sums and
//! differences that are not factors are not carried before the nearest multiple of p is subtracted
//! ([`Fr::settled`]).

use super::field::{Element, Fr, limbs};
use super::lane::Lane;
use super::product::{product, product_limbs, products_limbs};
use ark_bls12_381::FrConfig;
use ark_ff::MontConfig;

/// The size of the smallest transform of this backend.
pub(crate) const LEAST: usize = 64;

/// Eight elements, either as they are in memory or transposed, word by word.
type Block = [u64; 32];

/// The twiddles of eight consecutive butterflies, limb by limb.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Twiddles([[u64; 8]; 5]);

impl Twiddles {
    #[inline(always)]
    fn load(&self) -> Fr {
        let mut t = [Lane::splat(0); 5];
        for j in 0..5 {
            t[j] = Lane::load(&self.0[j]);
        }
        Element::new(t)
    }
}

/// The powers of the root for all layers: 40 N bytes.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// Twiddles for butterflies over distances of 8, 16, 32 and so on.
    layers: Vec<Vec<Twiddles>>,
    /// The first three powers of the eighth root of unity.
    eighth: [[u64; 5]; 3],
}

/// Returns x R mod p in limbs; the words of x are x 2^256.
fn times_r(x: &ark_bls12_381::Fr) -> [u64; 5] {
    let sixteen = *x * ark_bls12_381::Fr::from(16u64);
    limbs(&sixteen.0.0, 0)
}

impl Tables {
    /// Takes the powers w^i for i < N/2, where N is at least [`LEAST`].
    pub(crate) fn new(powers: &[ark_bls12_381::Fr]) -> Self {
        let half = powers.len();
        let mut layers = Vec::new();
        let mut distance = 8;
        while distance <= half {
            let stride = half / distance;
            let layer = (0..distance / 8).map(|v| {
                let mut out = [[0; 8]; 5];
                for lane in 0..8 {
                    for (j, limb) in
                        times_r(&powers[(8 * v + lane) * stride]).into_iter().enumerate()
                    {
                        out[j][lane] = limb;
                    }
                }
                Twiddles(out)
            });
            layers.push(layer.collect());
            distance *= 2;
        }
        let eighth = [1, 2, 3].map(|i| times_r(&powers[i * half / 4]));
        Self { layers, eighth }
    }

    /// Turns values in natural order into coefficients times N in bit-reversed order. The powers of
    /// w serve for those of 1/w: they return the results in the order 0, N - 1, N - 2 and so on, so
    /// reversing the values first restores the order.
    pub(crate) fn to_coefficients(&self, values: &mut [ark_bls12_381::Fr]) {
        values[1..].reverse();
        // SAFETY: `Domain` makes these tables only where AVX-512 IFMA is available.
        unsafe { dif_blocks(blocks(values), self, true) }
    }

    /// Turns coefficients in bit-reversed order, multiplied by the factors if any, into values in
    /// natural order.
    pub(crate) fn to_values(
        &self,
        coefficients: &mut [ark_bls12_381::Fr],
        factors: Option<&[ark_bls12_381::Fr]>,
    ) {
        if let Some(factors) = factors {
            assert_eq!(coefficients.len(), factors.len(), "one factor per coefficient");
        }
        // SAFETY: `Domain` makes these tables only where AVX-512 IFMA is available.
        unsafe { dit_blocks(blocks(coefficients), factors, self, true) }
    }

    /// Multiplies all values by x.
    pub(crate) fn scale(&self, values: &mut [ark_bls12_381::Fr], x: &ark_bls12_381::Fr) {
        // SAFETY: `Domain` makes these tables only where AVX-512 IFMA is available.
        unsafe { scale_blocks(blocks(values), &times_r(x)) }
    }

    /// The twiddles of butterflies over a distance of this many blocks.
    #[inline(always)]
    fn layer(&self, blocks: usize) -> &[Twiddles] {
        &self.layers[blocks.ilog2() as usize]
    }
}

/// Views the elements as blocks; their number is at least [`LEAST`] and a power of two.
fn blocks(values: &mut [ark_bls12_381::Fr]) -> &mut [Block] {
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
fn load_elements(block: &Block) -> Fr {
    let rows = block.as_chunks::<4>().0;
    let words = Lane::half_columns([
        &rows[0], &rows[1], &rows[2], &rows[3], &rows[4], &rows[5], &rows[6], &rows[7],
    ]);
    Element::cut(&words, 0)
}

#[inline(always)]
fn load(block: &Block) -> Fr {
    let rows = block.as_chunks::<8>().0;
    Element::cut(
        &[Lane::load(&rows[0]), Lane::load(&rows[1]), Lane::load(&rows[2]), Lane::load(&rows[3])],
        0,
    )
}

#[inline(always)]
fn store(x: &Fr, block: &mut Block) {
    let words: [Lane; 4] = x.joined();
    for (word, row) in words.into_iter().zip(block.as_chunks_mut::<8>().0) {
        word.store(row);
    }
}

/// Stores numbers below 2 p as reduced elements.
#[inline(always)]
fn store_elements(x: &Fr, block: &mut Block) {
    Lane::store_half_columns(x.reduce_once::<0>().joined(), block, 4);
}

/// Sums that have not been carried.
type Limbs = [Lane; 5];

#[inline(always)]
fn sum(a: &Limbs, b: &Limbs) -> Limbs {
    let mut t = *a;
    for j in 0..5 {
        t[j] = t[j].add(b[j]);
    }
    t
}

/// Computes `a - b + 2^K p`.
#[inline(always)]
fn difference<const K: usize>(a: &Limbs, b: &Limbs) -> Limbs {
    let (mut t, p) = (*a, Fr::p(K));
    for j in 0..5 {
        t[j] = t[j].sub(b[j]).add(p[j]);
    }
    t
}

/// The butterfly `(a + b, (a - b) w)` for two pairs; all results are below 2 p.
#[inline(always)]
fn butterflies_dif(v: &mut [Fr; 8], pairs: [[usize; 2]; 2], w: [&Fr; 2]) {
    let [[a, b], [c, d]] = pairs;
    let (first, second) = (v[a].sub::<1>(&v[b]), v[c].sub::<1>(&v[d]));
    v[a] = Fr::settled(sum(&v[a].0, &v[b].0));
    v[c] = Fr::settled(sum(&v[c].0, &v[d].0));
    let m = products_limbs([&first, &second], w);
    (v[b], v[d]) = (Fr::propagate(m[0]), Fr::propagate(m[1]));
}

/// The butterfly `(a + w b, a - w b)` for two pairs; all results are below 2 p.
#[inline(always)]
fn butterflies_dit(v: &mut [Fr; 8], pairs: [[usize; 2]; 2], w: [&Fr; 2]) {
    let [[a, b], [c, d]] = pairs;
    let [m, n] = products_limbs([&v[b], &v[d]], w);
    v[b] = Fr::settled(difference::<1>(&v[a].0, &m));
    v[a] = Fr::settled(sum(&v[a].0, &m));
    v[d] = Fr::settled(difference::<1>(&v[c].0, &n));
    v[c] = Fr::settled(sum(&v[c].0, &n));
}

/// The butterfly `(a + b, a - b)`.
#[inline(always)]
fn butterfly(v: &mut [Fr; 8], [a, b]: [usize; 2]) {
    let difference = Fr::settled(difference::<1>(&v[a].0, &v[b].0));
    v[a] = Fr::settled(sum(&v[a].0, &v[b].0));
    v[b] = difference;
}

/// The k-th of the four pairs among eight elements at a given distance.
#[inline(always)]
fn pair(distance: usize, k: usize) -> [usize; 2] {
    let i = k / distance * 2 * distance + k % distance;
    [i, i + distance]
}

/// Three layers over eight vectors, whose twiddles are eighth roots of unity.
#[inline(always)]
fn eight_dif(v: &mut [Fr; 8], tables: &Tables) {
    let [w1, w2, w3] = &tables.eighth;
    let (w1, w2, w3) = (Fr::splat(w1), Fr::splat(w2), Fr::splat(w3));
    butterflies_dif(v, [[1, 5], [3, 7]], [&w1, &w3]);
    butterfly(v, [0, 4]);
    let difference = v[2].sub::<1>(&v[6]);
    v[2] = Fr::settled(sum(&v[2].0, &v[6].0));
    v[6] = product(&difference, &w2);
    butterflies_dif(v, [[1, 3], [5, 7]], [&w2, &w2]);
    for pair in [[0, 2], [4, 6], [0, 1], [2, 3], [4, 5], [6, 7]] {
        butterfly(v, pair);
    }
}

/// The same three layers in decimation in time.
#[inline(always)]
fn eight_dit(v: &mut [Fr; 8], tables: &Tables) {
    let [w1, w2, w3] = &tables.eighth;
    let (w1, w2, w3) = (Fr::splat(w1), Fr::splat(w2), Fr::splat(w3));
    for pair in [[0, 1], [2, 3], [4, 5], [6, 7], [0, 2], [4, 6]] {
        butterfly(v, pair);
    }
    butterflies_dit(v, [[1, 3], [5, 7]], [&w2, &w2]);
    let m = product_limbs(&v[6], &w2);
    v[6] = Fr::settled(difference::<1>(&v[2].0, &m));
    v[2] = Fr::settled(sum(&v[2].0, &m));
    butterfly(v, [0, 4]);
    butterflies_dit(v, [[1, 5], [3, 7]], [&w1, &w3]);
}

/// Transposes limb by limb: lane i of element j becomes lane j of element i.
#[inline(always)]
fn transpose(v: &mut [Fr; 8]) {
    for limb in 0..5 {
        let t = Lane::transpose([
            v[0].0[limb],
            v[1].0[limb],
            v[2].0[limb],
            v[3].0[limb],
            v[4].0[limb],
            v[5].0[limb],
            v[6].0[limb],
            v[7].0[limb],
        ]);
        for i in 0..8 {
            v[i].0[limb] = t[i];
        }
    }
}

lanes! {
    fn scale_blocks(blocks: &mut [Block], x: &[u64; 5]) {
        let x = Fr::splat(x);
        for block in blocks {
            store_elements(&product(&load_elements(block), &x), block);
        }
    }

    fn dif_blocks(blocks: &mut [Block], tables: &Tables, first: bool) {
        match blocks.len() {
            8 => dif_64(blocks, tables, first),
            16 => {
                let (low, high) = blocks.split_at_mut(8);
                for ((a, b), w) in low.iter_mut().zip(high.iter_mut()).zip(tables.layer(8)) {
                    let (x, y) = if first { (load_elements(a), load_elements(b)) } else { (load(a), load(b)) };
                    store(&Fr::settled(sum(&x.0, &y.0)), a);
                    store(&product(&x.sub::<1>(&y), &w.load()), b);
                }
                dif_64(low, tables, false);
                dif_64(high, tables, false);
            }
            n => {
                dif_two_layers(blocks, tables, first);
                for quarter in blocks.chunks_exact_mut(n / 4) {
                    dif_blocks(quarter, tables, false);
                }
            }
        }
    }

    fn dif_two_layers(blocks: &mut [Block], tables: &Tables, first: bool) {
        let quarter = blocks.len() / 4;
        let (outer, inner) = (tables.layer(2 * quarter), tables.layer(quarter));
        for i in 0..quarter {
            let at = [i, i + quarter, i + 2 * quarter, i + 3 * quarter];
            let mut a = [Fr::zero(); 4];
            for k in 0..4 {
                a[k] = if first { load_elements(&blocks[at[k]]) } else { load(&blocks[at[k]]) };
            }
            let (d1, d3) = (a[0].sub::<1>(&a[2]), a[1].sub::<1>(&a[3]));
            let [t1, t3] = products_limbs([&d1, &d3], [&outer[i].load(), &outer[i + quarter].load()]);
            let (t0, t2) = (sum(&a[0].0, &a[2].0), sum(&a[1].0, &a[3].0));
            let w = inner[i].load();
            store(&Fr::settled(sum(&t0, &t2)), &mut blocks[at[0]]);
            store(&Fr::settled(sum(&t1, &t3)), &mut blocks[at[2]]);
            let (d1, d3) = (Fr::propagate(difference::<2>(&t0, &t2)), Fr::propagate(difference::<1>(&t1, &t3)));
            let [y1, y3] = products_limbs([&d1, &d3], [&w, &w]);
            store(&Fr::propagate(y1), &mut blocks[at[1]]);
            store(&Fr::propagate(y3), &mut blocks[at[3]]);
        }
    }

    /// Computes the last six layers.
    fn dif_64(blocks: &mut [Block], tables: &Tables, first: bool) {
        let mut v = [Fr::zero(); 8];
        for k in 0..8 {
            v[k] = if first { load_elements(&blocks[k]) } else { load(&blocks[k]) };
        }
        for distance in [4, 2, 1] {
            let layer = tables.layer(distance);
            for k in [0, 2] {
                let pairs = [pair(distance, k), pair(distance, k + 1)];
                let (w, x) = (layer[k % distance].load(), layer[(k + 1) % distance].load());
                butterflies_dif(&mut v, pairs, [&w, &x]);
            }
        }
        transpose(&mut v);
        eight_dif(&mut v, tables);
        let words = blocks.as_flattened_mut();
        for k in 0..8 {
            Lane::store_half_columns(v[k].reduce_once::<0>().joined(), &mut words[4 * k..], 32);
        }
    }

    fn dit_blocks(blocks: &mut [Block], factors: Option<&[ark_bls12_381::Fr]>, tables: &Tables, last: bool) {
        let n = blocks.len();
        let part = |k: usize, of: usize| factors.map(|f| &f[k * 8 * n / of..(k + 1) * 8 * n / of]);
        match n {
            8 => dit_64(blocks, factors, tables, last),
            16 => {
                let (low, high) = blocks.split_at_mut(8);
                dit_64(low, part(0, 2), tables, false);
                dit_64(high, part(1, 2), tables, false);
                for ((a, b), w) in low.iter_mut().zip(high.iter_mut()).zip(tables.layer(8)) {
                    let (x, m) = (load(a), product_limbs(&load(b), &w.load()));
                    let (x, y) = (Fr::settled(sum(&x.0, &m)), Fr::settled(difference::<1>(&x.0, &m)));
                    if last {
                        store_elements(&x, a);
                        store_elements(&y, b);
                    } else {
                        store(&x, a);
                        store(&y, b);
                    }
                }
            }
            _ => {
                for (k, quarter) in blocks.chunks_exact_mut(n / 4).enumerate() {
                    dit_blocks(quarter, part(k, 4), tables, false);
                }
                dit_two_layers(blocks, tables, last);
            }
        }
    }

    fn dit_two_layers(blocks: &mut [Block], tables: &Tables, last: bool) {
        let quarter = blocks.len() / 4;
        let (outer, inner) = (tables.layer(2 * quarter), tables.layer(quarter));
        for i in 0..quarter {
            let at = [i, i + quarter, i + 2 * quarter, i + 3 * quarter];
            let (b0, b1, b2, b3) = (load(&blocks[at[0]]), load(&blocks[at[1]]), load(&blocks[at[2]]), load(&blocks[at[3]]));
            let w = inner[i].load();
            let [m1, m3] = products_limbs([&b1, &b3], [&w, &w]);
            let (x0, x1) = (sum(&b0.0, &m1), difference::<1>(&b0.0, &m1));
            let (s2, s3) = (Fr::propagate(sum(&b2.0, &m3)), Fr::propagate(difference::<1>(&b2.0, &m3)));
            let [x2, x3] = products_limbs([&s2, &s3], [&outer[i].load(), &outer[i + quarter].load()]);
            let results = [sum(&x0, &x2), sum(&x1, &x3), difference::<1>(&x0, &x2), difference::<1>(&x1, &x3)];
            for (y, at) in results.into_iter().zip(at) {
                let y = Fr::settled(y);
                if last { store_elements(&y, &mut blocks[at]) } else { store(&y, &mut blocks[at]) }
            }
        }
    }

    /// Computes the first six layers.
    fn dit_64(blocks: &mut [Block], factors: Option<&[ark_bls12_381::Fr]>, tables: &Tables, last: bool) {
        let words = blocks.as_flattened();
        let mut v = [Fr::zero(); 8];
        for k in 0..8 {
            v[k] = Element::cut(&Lane::half_columns(strided(words, k)), 0);
        }
        if let Some(factors) = factors {
            for k in [0, 2, 4, 6] {
                let (a, b) = (load_factors(factors, k), load_factors(factors, k + 1));
                let m = products_limbs([&v[k], &v[k + 1]], [&a, &b]);
                (v[k], v[k + 1]) = (Fr::propagate(m[0]), Fr::propagate(m[1]));
            }
        }
        eight_dit(&mut v, tables);
        transpose(&mut v);
        for distance in [1, 2, 4] {
            let layer = tables.layer(distance);
            for k in [0, 2] {
                let pairs = [pair(distance, k), pair(distance, k + 1)];
                let (w, x) = (layer[k % distance].load(), layer[(k + 1) % distance].load());
                butterflies_dit(&mut v, pairs, [&w, &x]);
            }
        }
        for k in 0..8 {
            if last { store_elements(&v[k], &mut blocks[k]) } else { store(&v[k], &mut blocks[k]) }
        }
    }
}

/// The elements k, k + 8, k + 16 and so on of 64.
#[inline(always)]
fn strided(words: &[u64], k: usize) -> [&[u64; 4]; 8] {
    let rows = words.as_chunks::<4>().0;
    [
        &rows[k],
        &rows[k + 8],
        &rows[k + 16],
        &rows[k + 24],
        &rows[k + 32],
        &rows[k + 40],
        &rows[k + 48],
        &rows[k + 56],
    ]
}

/// Loads the factors k, k + 8, k + 16 and so on of 64, times R: they are below 2^4 p, so products
/// are below (1 + 2^4 p / R) p < 1.5 p.
#[inline(always)]
fn load_factors(factors: &[ark_bls12_381::Fr], k: usize) -> Fr {
    let mut rows = [&factors[k].0.0; 8];
    for i in 1..8 {
        rows[i] = &factors[k + 8 * i].0.0;
    }
    Element::cut(&Lane::half_columns(rows), 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{portable, powers};
    use ark_ff::{BigInt, BigInteger, FftField, Field};

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
    fn number(state: &mut u64) -> BigInt<4> {
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

    fn below_p(mut x: BigInt<4>) -> BigInt<4> {
        if x >= P {
            x.sub_with_borrow(&P);
        }
        x
    }

    fn to_blocks(numbers: &[BigInt<4>]) -> Vec<Block> {
        numbers
            .as_chunks::<8>()
            .0
            .iter()
            .map(|eight| std::array::from_fn(|at| eight[at % 8].0[at / 8]))
            .collect()
    }

    fn from_blocks(blocks: &[Block]) -> Vec<BigInt<4>> {
        let number =
            |block: &Block, i: usize| BigInt(std::array::from_fn(|word| block[8 * word + i]));
        blocks.iter().flat_map(|block| (0..8).map(move |i| below_p(number(block, i)))).collect()
    }

    /// Blocks hold numbers up to 2 p, and passes must treat them as their residues modulo p.
    #[test]
    fn passes_at_the_bounds() {
        if !super::super::available() {
            return;
        }
        let mut state = 7;
        for log in 6..10 {
            let n = 1usize << log;
            let powers = powers(ark_bls12_381::Fr::get_root_of_unity(n as u64).unwrap(), n / 2);
            let tables = Tables::new(&powers);
            for _ in 0..100 {
                let numbers: Vec<_> = (0..n).map(|_| number(&mut state)).collect();
                let reduced: Vec<_> = numbers.iter().map(|x| below_p(*x)).collect();
                let both = |pass: &dyn Fn(&mut [Block])| {
                    let [a, b] = [&numbers, &reduced].map(|x| {
                        let mut blocks = to_blocks(x);
                        pass(&mut blocks);
                        from_blocks(&blocks)
                    });
                    assert_eq!(a, b);
                };
                // SAFETY: the features are available (checked above).
                unsafe {
                    both(&|blocks| dif_blocks(blocks, &tables, false));
                    if n >= 256 {
                        both(&|blocks| dif_two_layers(blocks, &tables, false));
                        both(&|blocks| dit_two_layers(blocks, &tables, false));
                    }
                }
                // the largest words as elements and as factors
                let element = |x: &BigInt<4>| ark_bls12_381::Fr::new_unchecked(*x);
                let factors: Vec<_> =
                    (0..n).map(|_| element(&below_p(number(&mut state)))).collect();
                let mut values: Vec<_> = reduced.iter().map(element).collect();
                let mut expected = values.clone();
                tables.to_values(&mut values, Some(&factors));
                portable::fft::Tables::new(powers.clone()).to_values(&mut expected, Some(&factors));
                assert_eq!(values, expected);
            }
        }
    }
}
