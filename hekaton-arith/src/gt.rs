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
    /// Length of the compressed encoding in bytes: an element of the torus T2, which is one element
    /// of Fq6.
    pub const COMPRESSED: usize = 288;

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

    /// The index of the first of some nonzero elements of Fq12 whose order is not r.
    ///
    /// Checks membership in the cyclotomic subgroup first (f^(q^4) f = f^(q^2)), because the
    /// squarings that follow are correct only there, and then that f^q = f^u.
    fn find_outside(elements: &[Self]) -> Option<usize> {
        let cyclotomic = |f: &Self| {
            let q2 = portable::fp12_frobenius(&f.0, 2);
            let q4 = portable::fp12_frobenius(&q2, 2);
            portable::fp12_mul(&q4, &f.0) == q2
        };
        let inside = elements.iter().position(|f| !cyclotomic(f)).unwrap_or(elements.len());
        let fields: Vec<blst_fp12> = elements[..inside].iter().map(|f| f.0).collect();
        // u is negative
        let powers = backend::to_abs_u(&fields);
        let wrong = fields.iter().zip(&powers).position(|(f, power)| {
            portable::fp12_conjugate(power) != portable::fp12_frobenius(f, 1)
        });
        wrong.or((inside < elements.len()).then_some(inside))
    }

    /// Compresses to the torus: f = a + b w becomes (1 + a) / b in Fq6, six coordinates of 48
    /// big-endian bytes each. The neutral element (b = 0) is encoded as zeros with the top bit set.
    pub fn compress_all(elements: &[Self]) -> Vec<[u8; Self::COMPRESSED]> {
        let fields: Vec<Fq12> = elements.iter().map(|f| to_ark(&f.0)).collect();
        let mut inverses: Vec<Fq6> = fields.iter().map(|f| f.c1).collect();
        ark_ff::batch_inversion(&mut inverses);
        let codes = fields.iter().zip(&inverses).map(|(f, b)| {
            if f.c1.is_zero() {
                // In a group of odd order, 1 is the only element with b = 0.
                let mut code = [0; Self::COMPRESSED];
                code[0] = IDENTITY_FLAG;
                code
            } else {
                encode_fq6(&((Fq6::ONE + f.c0) * b))
            }
        });
        codes.collect()
    }

    /// Compresses one element.
    pub fn compress(&self) -> [u8; Self::COMPRESSED] {
        Self::compress_all(&[*self])[0]
    }

    /// Decodes many elements with a single inversion and checks that encodings are canonical and
    /// elements have order r. The error carries the index of the first bad element.
    pub fn decompress_all(codes: &[[u8; Self::COMPRESSED]]) -> Result<Vec<Self>, (usize, GtError)> {
        let mut torus = Vec::with_capacity(codes.len());
        for (i, code) in codes.iter().enumerate() {
            torus.push(decode_torus(code).map_err(|e| (i, e))?);
        }
        // f = (y + w) / (y - w) = (y^2 + v + 2 y w) / (y^2 - v); v = w^2 is not the square of any y
        // in Fq6, so no denominator is zero
        let v = Fq6::new(Fq2::zero(), Fq2::ONE, Fq2::zero());
        // `None` is the neutral element. Its place holds 0, whose denominator -v is invertible, too.
        let square = |y: &Option<Fq6>| y.map_or_else(Fq6::zero, |y| y.square());
        let squares: Vec<Fq6> = torus.iter().map(square).collect();
        let mut inverses: Vec<Fq6> = squares.iter().map(|square| *square - v).collect();
        ark_ff::batch_inversion(&mut inverses);
        let element = |((y, square), inverse): ((&Option<Fq6>, &Fq6), &Fq6)| {
            let f =
                y.map_or(Fq12::ONE, |y| Fq12::new((*square + v) * inverse, y.double() * inverse));
            Self(from_ark(&f))
        };
        let out: Vec<Self> = torus.iter().zip(&squares).zip(&inverses).map(element).collect();
        match Self::find_outside(&out) {
            Some(i) => Err((i, GtError::NotInGroup)),
            None => Ok(out),
        }
    }

    /// Decodes one element.
    pub fn decompress(code: &[u8; Self::COMPRESSED]) -> Result<Self, GtError> {
        Self::decompress_all(&[*code]).map(|v| v[0]).map_err(|(_, e)| e)
    }
}

fn decode_torus(code: &[u8; Gt::COMPRESSED]) -> Result<Option<Fq6>, GtError> {
    if code[0] & IDENTITY_FLAG == 0 {
        return decode_fq6(code).map(Some);
    }
    let rest_is_zero = code[0] == IDENTITY_FLAG && code[1..].iter().all(|b| *b == 0);
    if rest_is_zero { Ok(None) } else { Err(GtError::Encoding) }
}

fn encode_fq6(y: &Fq6) -> [u8; Gt::COMPRESSED] {
    let mut out = [0; Gt::COMPRESSED];
    let coordinates = [y.c0.c0, y.c0.c1, y.c1.c0, y.c1.c1, y.c2.c0, y.c2.c1];
    for (chunk, x) in out.chunks_exact_mut(48).zip(coordinates) {
        for (word, limb) in chunk.rchunks_exact_mut(8).zip(x.into_bigint().0) {
            word.copy_from_slice(&limb.to_be_bytes());
        }
    }
    out
}

fn decode_fq6(code: &[u8; Gt::COMPRESSED]) -> Result<Fq6, GtError> {
    let mut c = [Fq::zero(); 6];
    for (x, chunk) in c.iter_mut().zip(code.chunks_exact(48)) {
        let mut limbs = [0u64; 6];
        for (limb, word) in limbs.iter_mut().zip(chunk.rchunks_exact(8)) {
            *limb = word.iter().fold(0, |acc, b| acc << 8 | u64::from(*b));
        }
        *x = Fq::from_bigint(ark_ff::BigInt(limbs)).ok_or(GtError::Encoding)?;
    }
    Ok(Fq6::new(Fq2::new(c[0], c[1]), Fq2::new(c[2], c[3]), Fq2::new(c[4], c[5])))
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
