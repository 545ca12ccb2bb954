//! Points of two curves from encodings that may have none: multiples of them, and sums.
#![no_std]
#![no_main]

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::{Scalar, montgomery::MontgomeryPoint};
use hekaton_guest::{commit_bytes, input};
use k256::elliptic_curve::{ff::PrimeField, group::GroupEncoding, ops::Reduce, sec1::ToEncodedPoint};
use k256::{ProjectivePoint, U256};

#[hekaton_guest::main]
fn main() {
    for encoding in input().chunks_exact(32) {
        let bytes: [u8; 32] = encoding.try_into().unwrap();
        commit_bytes(&MontgomeryPoint(bytes).to_edwards(0).map_or([9; 32], |point| point.compress().0));
        match CompressedEdwardsY(bytes).decompress() {
            Some(point) => {
                let scalar = Scalar::from_bytes_mod_order(bytes);
                commit_bytes(&(point * scalar + ED25519_BASEPOINT_POINT).compress().0);
                commit_bytes(&(-point).to_montgomery().0);
                // By other tables of multiples of the base point.
                let sum = EdwardsPoint::vartime_double_scalar_mul_basepoint(&scalar, &point, &scalar);
                commit_bytes(&sum.compress().0);
                commit_bytes(&EdwardsPoint::mul_base(&scalar).compress().0);
            }
            None => commit_bytes(&[8]),
        }
        let scalar = <k256::Scalar as Reduce<U256>>::reduce_bytes(&bytes.into());
        let inverse: Option<k256::Scalar> = scalar.invert().into();
        commit_bytes(&inverse.map_or([7; 32], |inverse| (inverse + scalar).to_repr().into()));
        let mut key = [2; 33];
        key[1..].copy_from_slice(&bytes);
        let point: Option<ProjectivePoint> = ProjectivePoint::from_bytes(&key.into()).into();
        match point {
            Some(point) => {
                let sum = point * scalar - ProjectivePoint::GENERATOR;
                commit_bytes(sum.to_affine().to_encoded_point(false).as_bytes());
            }
            None => commit_bytes(&[6]),
        }
    }
}
