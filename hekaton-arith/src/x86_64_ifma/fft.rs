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

use super::blocks::{
    Block, Twiddles, blocks, difference, load, load_elements, store, store_elements, sum, times_r,
};
use super::field::{Element, Fr};
use super::lane::Lane;
use super::product::{product, product_limbs, products_limbs};
use super::radix3::{Radix3, dif_layer, dit_layer};

/// The size of the smallest power-of-two transform of this backend.
pub(crate) const LEAST: usize = 64;

/// The powers of the roots for all layers: 40 N bytes. M is N, or N/3 with a layer of radix 3.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// Twiddles for butterflies over distances of 8, 16, 32 and so on.
    layers: Vec<Vec<Twiddles>>,
    /// The first three powers of the eighth root of unity.
    eighth: [[u64; 5]; 3],
    radix3: Option<Radix3>,
}

impl Tables {
    /// Takes the powers of the root of order M for i < M/2, where M is at least [`LEAST`], and for
    /// a domain of 3 M elements those of its root for i < 2 M.
    pub(crate) fn new(powers: &[ark_bls12_381::Fr], radix3: Option<&[ark_bls12_381::Fr]>) -> Self {
        let half = powers.len();
        let mut layers = Vec::new();
        let mut distance = 8;
        while distance <= half {
            let stride = half / distance;
            let layer =
                (0..distance / 8).map(|v| Twiddles::new(|lane| &powers[(8 * v + lane) * stride]));
            layers.push(layer.collect());
            distance *= 2;
        }
        let eighth = [1, 2, 3].map(|i| times_r(&powers[i * half / 4]));
        Self { layers, eighth, radix3: radix3.map(Radix3::new) }
    }

    /// Turns values in natural order into coefficients times N in the order of [`crate::fft`]. The
    /// powers of w serve for those of 1/w: they return the results in the order 0, N - 1, N - 2 and
    /// so on, so reversing the values first restores the order.
    pub(crate) fn to_coefficients(&self, values: &mut [ark_bls12_381::Fr]) {
        values[1..].reverse();
        // SAFETY: `Domain` makes these tables only where AVX-512 IFMA is available.
        unsafe {
            let blocks = blocks(values);
            let Some(layer) = &self.radix3 else { return dif_blocks(blocks, self, true) };
            dif_layer(blocks, layer);
            let third = blocks.len() / 3;
            for part in blocks.chunks_exact_mut(third) {
                dif_blocks(part, self, false);
            }
        }
    }

    /// Turns coefficients in the order of [`crate::fft`], multiplied by the factors if any, into
    /// values in natural order.
    pub(crate) fn to_values(
        &self,
        coefficients: &mut [ark_bls12_381::Fr],
        factors: Option<&[ark_bls12_381::Fr]>,
    ) {
        if let Some(factors) = factors {
            assert_eq!(coefficients.len(), factors.len(), "one factor per coefficient");
        }
        // SAFETY: `Domain` makes these tables only where AVX-512 IFMA is available.
        unsafe {
            let blocks = blocks(coefficients);
            let Some(layer) = &self.radix3 else { return dit_blocks(blocks, factors, self, true) };
            let third = blocks.len() / 3;
            for (k, part) in blocks.chunks_exact_mut(third).enumerate() {
                let of_part = factors.map(|f| &f[8 * k * third..8 * (k + 1) * third]);
                dit_blocks(part, of_part, self, false);
            }
            dit_layer(blocks, layer);
        }
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
    use super::super::blocks::tests::{below_p, from_blocks, number, to_blocks};
    use super::*;
    use crate::{portable, powers};
    use ark_ff::{BigInt, FftField};

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
            let tables = Tables::new(&powers, None);
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
                portable::fft::Tables::new(powers.clone(), None)
                    .to_values(&mut expected, Some(&factors));
                assert_eq!(values, expected);
            }
        }
    }

    /// Elements up to p - 1, below a layer of radix 3.
    #[test]
    fn thirds_at_the_bounds() {
        if !super::super::available() {
            return;
        }
        let mut state = 13;
        for third in [64, 128, 256] {
            let root = ark_bls12_381::Fr::get_root_of_unity(3 * third as u64).unwrap();
            let (radix2, radix3) = (powers(root * root * root, third / 2), powers(root, 2 * third));
            let ours = Tables::new(&radix2, Some(&radix3));
            let theirs = portable::fft::Tables::new(radix2, Some(radix3));
            for _ in 0..100 {
                let mut elements = || {
                    let next = || ark_bls12_381::Fr::new_unchecked(below_p(number(&mut state)));
                    std::iter::repeat_with(next).take(3 * third).collect::<Vec<_>>()
                };
                let (factors, mut values) = (elements(), elements());
                let mut expected = values.clone();
                ours.to_coefficients(&mut values);
                theirs.to_coefficients(&mut expected);
                assert_eq!(values, expected);
                let mut values = elements();
                let mut expected = values.clone();
                ours.to_values(&mut values, Some(&factors));
                theirs.to_values(&mut expected, Some(&factors));
                assert_eq!(values, expected);
            }
        }
    }
}
