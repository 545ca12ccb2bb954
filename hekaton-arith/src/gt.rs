//! The target group: elements of order r of the multiplicative group of Fq12, written additively as
//! in the protocol.

use crate::backend::{self, Backend};
use crate::msm::{Digits, window_sums};
use crate::points::fq;
use crate::portable;
use crate::scalar::digits_to_base_u;
use crate::sums::Summand;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::x86_64_avx2;
#[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
use crate::x86_64_ifma;
use ark_bls12_381::{Fq, Fq2, Fq6, Fq12, Fr};
use ark_ff::{AdditiveGroup, Field, PrimeField, Zero};
use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12};

/// The flag in the top byte of an encoding that marks the neutral element.
const IDENTITY_FLAG: u8 = 0x80;

/// The reason that bytes are not an element of the target group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GtError {
    /// A coordinate is not below q, or an undefined flag bit is set.
    #[error("not a canonical encoding of a target group element")]
    Encoding,
    /// The order of the element is not r.
    #[error("the element is not in the target group of prime order")]
    NotInGroup,
}

/// An element of the target group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gt(pub(crate) blst_fp12);

impl Gt {
    /// Length of the compressed encoding in bytes, in the torus T6: two elements of Fq2.
    pub const COMPRESSED: usize = 192;

    /// Length of the encoding in the torus T2 in bytes: three elements of Fq2.
    pub const T2: usize = 288;

    /// The neutral element.
    pub fn identity() -> Self {
        Self(portable::fp12_one())
    }

    /// Reports whether this is the neutral element.
    pub fn is_identity(&self) -> bool {
        *self == Self::identity()
    }

    /// The group operation (a multiplication in Fq12).
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        Self(portable::fp12_mul(&self.0, &other.0))
    }

    /// The inverse in the group (a conjugation).
    #[must_use]
    pub fn neg(&self) -> Self {
        Self(portable::fp12_conjugate(&self.0))
    }

    /// The multiple `x self`.
    #[must_use]
    pub fn mul(&self, x: &Fr) -> Self {
        Self::msm(&[*self], &[*x])
    }

    /// The multi-exponentiation `sum_i scalars_i bases_i`.
    ///
    /// Each scalar is split into four digits in base |u|, and Frobenius images of the base stand
    /// for its multiples by powers of u, so all bases share 64 squarings; the digits go through
    /// signed buckets.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn msm(bases: &[Self], scalars: &[Fr]) -> Self {
        assert_eq!(
            bases.len(),
            scalars.len(),
            "a multi-exponentiation over different numbers of bases and scalars"
        );
        match Backend::current() {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Backend::Avx2 => {
                msm(bases, scalars, |f| x86_64_avx2::Row::new(&f.0), |row| Self(row.element()))
            }
            #[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
            Backend::Ifma => {
                msm(bases, scalars, |f| x86_64_ifma::Row::new(&f.0), |row| Self(row.element()))
            }
            _ => msm(bases, scalars, |f| portable::Row(f.0), |row| Self(row.0)),
        }
    }

    /// The multiple `|u|^power self`, for power < 4.
    fn times_power_of_abs_u(&self, power: usize) -> Self {
        match power {
            0 => *self,
            // u is negative, so for odd powers the Frobenius map multiplies by u^power = -|u|^power
            2 => Self(portable::fp12_frobenius(&self.0, 2)),
            odd => Self(portable::fp12_frobenius(&self.0, odd)).neg(),
        }
    }

    /// The index of the first of some elements of the cyclotomic subgroup whose order is not r: f^q = f^u for those that
    /// have it.
    fn find_of_wrong_order(elements: &[Self]) -> Option<usize> {
        let fields: Vec<blst_fp12> = elements.iter().map(|f| f.0).collect();
        // u is negative
        let powers = backend::to_abs_u(&fields);
        fields.iter().zip(&powers).position(|(f, power)| {
            portable::fp12_conjugate(power) != portable::fp12_frobenius(f, 1)
        })
    }

    /// Compresses to the torus T6 ([`Torus`]): the coordinates c1 and c2, 48 big-endian bytes for each coordinate in Fq. The
    /// neutral element is encoded as zeros with the top bit set.
    pub fn compress_all(elements: &[Self]) -> Vec<[u8; Self::COMPRESSED]> {
        let code = |y: &Option<Torus>| match y {
            Some(Torus([_, c1, c2])) => encode([c1.c0, c1.c1, c2.c0, c2.c1]),
            None => identity_code(),
        };
        Torus::of_all(elements).iter().map(code).collect()
    }

    /// Compresses one element.
    pub fn compress(&self) -> [u8; Self::COMPRESSED] {
        Self::compress_all(&[*self])[0]
    }

    /// Decodes many elements with two inversions and checks that encodings are canonical and elements have order r. The error
    /// carries the index of an element that fails.
    pub fn decompress_all(codes: &[[u8; Self::COMPRESSED]]) -> Result<Vec<Self>, (usize, GtError)> {
        let mut coordinates = Vec::with_capacity(codes.len());
        for (i, code) in codes.iter().enumerate() {
            let decoded = decode::<4>(code).map_err(|e| (i, e))?;
            coordinates.push(decoded.map(|[a, b, c, d]| [Fq2::new(a, b), Fq2::new(c, d)]));
        }
        let mut inverses: Vec<Fq2> =
            coordinates.iter().map(|y| y.map_or(Fq2::ONE, |[c1, _]| c1 + c1.double())).collect();
        if let Some(i) = inverses.iter().position(Zero::is_zero) {
            return Err((i, GtError::NotInGroup));
        }
        ark_ff::batch_inversion(&mut inverses);
        let torus = |(y, inverse): (&Option<[Fq2; 2]>, &Fq2)| {
            y.map(|[c1, c2]| Torus([Torus::three_c0_c1(&c2) * inverse, c1, c2]))
        };
        let torus: Vec<_> = coordinates.iter().zip(&inverses).map(torus).collect();
        Torus::to_all(&torus)
    }

    /// Decodes one element.
    pub fn decompress(code: &[u8; Self::COMPRESSED]) -> Result<Self, GtError> {
        Self::decompress_all(&[*code]).map(|v| v[0]).map_err(|(_, e)| e)
    }

    /// Compresses to the torus T2, as in keys: all three coordinates.
    pub fn to_t2_all(elements: &[Self]) -> Vec<[u8; Self::T2]> {
        let code = |y: &Option<Torus>| match y {
            Some(Torus([c0, c1, c2])) => encode([c0.c0, c0.c1, c1.c0, c1.c1, c2.c0, c2.c1]),
            None => identity_code(),
        };
        Torus::of_all(elements).iter().map(code).collect()
    }

    /// Decodes [`Self::to_t2_all`] with the same checks; the error carries the index of an element that fails.
    pub fn from_t2_all(codes: &[[u8; Self::T2]]) -> Result<Vec<Self>, (usize, GtError)> {
        let mut torus = Vec::with_capacity(codes.len());
        for (i, code) in codes.iter().enumerate() {
            let y = decode::<6>(code)
                .map_err(|e| (i, e))?
                .map(|[a, b, c, d, e, f]| Torus([Fq2::new(a, b), Fq2::new(c, d), Fq2::new(e, f)]));
            if let Some(Torus([c0, c1, c2])) = &y {
                let product = *c0 * c1;
                if product + product.double() != Torus::three_c0_c1(c2) {
                    return Err((i, GtError::NotInGroup));
                }
            }
            torus.push(y);
        }
        Torus::to_all(&torus)
    }
}

/// An element f = a + b w of the cyclotomic subgroup other than 1, as y = (1 + a)/b = c0 + c1 v + c2 v^2 in Fq6, so that
/// f = (y + w)/(y - w).
///
/// f is in that subgroup if and only if c0 c1 = xi c2^2 + 1/3 with xi = u + 1. Then c1 is not 0: -3 xi is not a square in Fq2. So c1 and
/// c2 are enough, and all pairs with c1 != 0, of which there are q^4 - q^2, stand for an element: with 1, these are as many as
/// the subgroup has (spec: verifier#proof-size).
struct Torus([Fq2; 3]);

impl Torus {
    /// 3 c0 c1 = 3 xi c2^2 + 1.
    fn three_c0_c1(c2: &Fq2) -> Fq2 {
        let square = c2.square();
        let product = Fq2::new(square.c0 - square.c1, square.c0 + square.c1);
        product + product.double() + Fq2::ONE
    }

    /// The torus elements, `None` for the neutral element.
    fn of_all(elements: &[Gt]) -> Vec<Option<Self>> {
        let fields: Vec<Fq12> = elements.iter().map(|f| to_ark(&f.0)).collect();
        let mut inverses: Vec<Fq6> = fields.iter().map(|f| f.c1).collect();
        ark_ff::batch_inversion(&mut inverses);
        let torus = |(f, b): (&Fq12, &Fq6)| {
            // In a group of odd order, 1 is the only element with b = 0.
            let y = (!f.c1.is_zero()).then(|| (Fq6::ONE + f.c0) * b);
            y.map(|y| Self([y.c0, y.c1, y.c2]))
        };
        fields.iter().zip(&inverses).map(torus).collect()
    }

    /// The elements, if all have order r; otherwise the index of the first that has not.
    fn to_all(torus: &[Option<Self>]) -> Result<Vec<Gt>, (usize, GtError)> {
        // f = (y + w) / (y - w) = (y^2 + v + 2 y w) / (y^2 - v); v = w^2 is not the square of any y
        // in Fq6, so no denominator is zero
        let v = Fq6::new(Fq2::zero(), Fq2::ONE, Fq2::zero());
        // The place of the neutral element holds 0, whose denominator -v is invertible, too.
        let y: Vec<Fq6> = torus
            .iter()
            .map(|y| y.as_ref().map_or(Fq6::zero(), |Self([c0, c1, c2])| Fq6::new(*c0, *c1, *c2)))
            .collect();
        let squares: Vec<Fq6> = y.iter().map(Fq6::square).collect();
        let mut inverses: Vec<Fq6> = squares.iter().map(|square| *square - v).collect();
        ark_ff::batch_inversion(&mut inverses);
        let out: Vec<Gt> = (torus.iter().zip(&y).zip(squares.iter().zip(&inverses)))
            .map(|((present, y), (square, inverse))| match present {
                None => Gt::identity(),
                Some(_) => {
                    let f = Fq12::new((*square + v) * inverse, y.double() * inverse);
                    Gt(from_ark(&f))
                }
            })
            .collect();
        match Gt::find_of_wrong_order(&out) {
            Some(i) => Err((i, GtError::NotInGroup)),
            None => Ok(out),
        }
    }
}

/// The encoding of the neutral element.
fn identity_code<const N: usize>() -> [u8; N] {
    let mut code = [0; N];
    code[0] = IDENTITY_FLAG;
    code
}

/// Coordinates in Fq, 48 big-endian bytes each.
fn encode<const C: usize, const N: usize>(coordinates: [Fq; C]) -> [u8; N] {
    const { assert!(N == 48 * C) };
    let mut out = [0; N];
    for (chunk, x) in out.chunks_exact_mut(48).zip(coordinates) {
        for (word, limb) in chunk.rchunks_exact_mut(8).zip(x.into_bigint().0) {
            word.copy_from_slice(&limb.to_be_bytes());
        }
    }
    out
}

/// The coordinates of an encoding, `None` for that of the neutral element.
fn decode<const C: usize>(code: &[u8]) -> Result<Option<[Fq; C]>, GtError> {
    if code[0] & IDENTITY_FLAG != 0 {
        let rest_is_zero = code[0] == IDENTITY_FLAG && code[1..].iter().all(|b| *b == 0);
        return if rest_is_zero { Ok(None) } else { Err(GtError::Encoding) };
    }
    let mut coordinates = [Fq::zero(); C];
    for (x, chunk) in coordinates.iter_mut().zip(code.chunks_exact(48)) {
        let mut limbs = [0u64; 6];
        for (limb, word) in limbs.iter_mut().zip(chunk.rchunks_exact(8)) {
            *limb = word.iter().fold(0, |acc, b| acc << 8 | u64::from(*b));
        }
        *x = Fq::from_bigint(ark_ff::BigInt(limbs)).ok_or(GtError::Encoding)?;
    }
    Ok(Some(coordinates))
}

fn to_ark(f: &blst_fp12) -> Fq12 {
    let fp2 = |x: &blst_fp2| Fq2::new(fq(x.fp[0].l), fq(x.fp[1].l));
    let fp6 = |x: &blst_fp6| Fq6::new(fp2(&x.fp2[0]), fp2(&x.fp2[1]), fp2(&x.fp2[2]));
    Fq12::new(fp6(&f.fp6[0]), fp6(&f.fp6[1]))
}

fn from_ark(f: &Fq12) -> blst_fp12 {
    let fp = |x: &Fq| blst_fp { l: x.0.0 };
    let fp2 = |x: &Fq2| blst_fp2 { fp: [fp(&x.c0), fp(&x.c1)] };
    let fp6 = |x: &Fq6| blst_fp6 { fp2: [fp2(&x.c0), fp2(&x.c1), fp2(&x.c2)] };
    blst_fp12 { fp6: [fp6(&f.c0), fp6(&f.c1)] }
}

/// The multi-exponentiation, with elements in a backend's own representation.
#[allow(clippy::cast_possible_truncation, reason = "2^31 terms of 576 bytes do not fit in memory")]
fn msm<S: Summand>(
    bases: &[Gt],
    scalars: &[Fr],
    form: impl Fn(&Gt) -> S,
    element: impl Fn(&S) -> Gt,
) -> Gt {
    let (mut terms, mut digits) = (Vec::with_capacity(4 * bases.len()), Digits::<2>::default());
    for (base, scalar) in bases.iter().zip(scalars) {
        for (power, digit) in digits_to_base_u(scalar).into_iter().enumerate() {
            if digit != 0 {
                digits.push(terms.len() as u32, [digit, 0]);
                terms.push(form(&base.times_power_of_abs_u(power)));
            }
        }
    }
    digits.recode_best();
    if terms.is_empty() {
        return Gt::identity();
    }
    window_sums(&terms, &digits).iter().enumerate().rev().fold(Gt::identity(), |acc, (w, sum)| {
        let shifted =
            (0..digits.width_of(w)).fold(acc.0, |acc, _| portable::fp12_cyclotomic_square(&acc));
        Gt(shifted).add(&element(sum))
    })
}
