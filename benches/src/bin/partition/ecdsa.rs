//! The verification of an ECDSA signature over secp256k1 as a circuit in one piece, written with
//! arkworks' emulated fields: long rows, and little that repeats. Only its cut is of interest, so it
//! checks what it must and no more: the key on its curve, and the signature.

use ark_ec::short_weierstrass::Projective;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{BigInteger, Field, PrimeField};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::boolean::Boolean;
use ark_r1cs_std::convert::ToBitsGadget;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::emulated_fp::EmulatedFpVar;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};
use ark_secp256k1::{Config, Fq, Fr as Scalar};
use hekaton_core::Fr;

type Curve = Projective<Config>;
type Base = EmulatedFpVar<Fq, Fr>;
type Cs = ConstraintSystemRef<Fr>;

/// A point that is not the identity.
#[derive(Clone)]
struct Point {
    x: Base,
    y: Base,
}

/// `numerator / denominator`, for a denominator that is not zero.
fn divide(cs: &Cs, numerator: &Base, denominator: &Base) -> Result<Base, SynthesisError> {
    let quotient = Base::new_witness(cs.clone(), || {
        Ok(numerator.value()? * denominator.value()?.inverse().unwrap_or_default())
    })?;
    (&quotient * denominator).enforce_equal(numerator)?;
    Ok(quotient)
}

impl Point {
    fn constant(point: Curve) -> Self {
        let affine = point.into_affine();
        Self { x: Base::constant(affine.x), y: Base::constant(affine.y) }
    }

    fn double(&self, cs: &Cs) -> Result<Self, SynthesisError> {
        let square = self.x.square()?;
        let slope = divide(cs, &(square.double()? + &square), &self.y.double()?)?;
        self.on_line(&slope, &self.x)
    }

    /// The sum with a point that has another x.
    fn add(&self, other: &Self, cs: &Cs) -> Result<Self, SynthesisError> {
        let slope = divide(cs, &(&other.y - &self.y), &(&other.x - &self.x))?;
        self.on_line(&slope, &other.x)
    }

    fn on_line(&self, slope: &Base, other: &Base) -> Result<Self, SynthesisError> {
        let x = slope.square()? - &self.x - other;
        let y = slope * (&self.x - &x) - &self.y;
        Ok(Self { x, y })
    }

    fn select(bit: &Boolean<Fr>, yes: &Self, no: &Self) -> Result<Self, SynthesisError> {
        Ok(Self { x: bit.select(&yes.x, &no.x)?, y: bit.select(&yes.y, &no.y)? })
    }
}

/// A key, a hash, and a signature of it. The hash is public.
#[derive(Clone, Copy)]
pub(crate) struct Ecdsa {
    key: Curve,
    hash: Scalar,
    r: Scalar,
    s: Scalar,
}

impl Ecdsa {
    /// A valid signature.
    pub(crate) fn signed() -> Option<Self> {
        let [secret, hash, nonce] = [77, 55, 999u64].map(|k| Scalar::from(12_345u64).pow([k]));
        let x = (Curve::generator() * nonce).into_affine().x;
        let r = Scalar::from_le_bytes_mod_order(&x.into_bigint().to_bytes_le());
        let s = (hash + r * secret) * nonce.inverse()?;
        Some(Self { key: Curve::generator() * secret, hash, r, s })
    }
}

impl ConstraintSynthesizer<Fr> for Ecdsa {
    fn generate_constraints(self, cs: Cs) -> Result<(), SynthesisError> {
        let key = self.key.into_affine();
        let coordinate = |value| Base::new_witness(cs.clone(), || Ok(value));
        let key = Point { x: coordinate(key.x)?, y: coordinate(key.y)? };
        let cube = key.x.square()? * &key.x;
        key.y.square()?.enforce_equal(&(cube + Base::constant(Fq::from(7u64))))?;
        let hash = EmulatedFpVar::<Scalar, Fr>::new_input(cs.clone(), || Ok(self.hash))?;
        let r = EmulatedFpVar::<Scalar, Fr>::new_witness(cs.clone(), || Ok(self.r))?;
        let s = EmulatedFpVar::<Scalar, Fr>::new_witness(cs.clone(), || Ok(self.s))?;
        let inverse = s.inverse()?;
        let [of_g, of_key] = [(hash * &inverse).to_bits_le()?, (&r * &inverse).to_bits_le()?];
        // An offset in each step keeps the sums from the exceptional cases; it is taken away at the
        // end.
        let g = Curve::generator();
        let offset = g * Scalar::from(0xdead_beef_u64);
        let [zero, one] = [offset, offset + g].map(Point::constant);
        let with_key = key.add(&zero, &cs)?;
        let with_both = with_key.add(&Point::constant(g), &cs)?;
        let mut offsets = offset * Scalar::from(3u64);
        let mut sum = Point::constant(offsets);
        for (of_g, of_key) in of_g.iter().zip(&of_key).rev() {
            let with = Point::select(of_key, &with_both, &one)?;
            let without = Point::select(of_key, &with_key, &zero)?;
            sum = sum.double(&cs)?.add(&Point::select(of_g, &with, &without)?, &cs)?;
            offsets = offsets + offsets + offset;
        }
        let x = sum.add(&Point::constant(-offsets), &cs)?.x;
        x.to_bits_le()?.enforce_equal(&r.to_bits_le()?)
    }
}
