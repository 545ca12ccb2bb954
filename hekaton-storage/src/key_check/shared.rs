//! The elements that all types of a setup share.

use hekaton_arith::{G1Point, G2Point, Gt};
use hekaton_core::mirage::ProvingKey;

/// The elements that the types of a setup share, from the aggregation key and the verifying key, or
/// from the key of a family.
pub(super) struct Shared<'a> {
    pub(super) phi: &'a [G1Point],
    pub(super) psi: &'a [G2Point],
    pub(super) gamma: &'a G2Point,
    pub(super) elements: &'a [[G2Point; 3]],
    pub(super) alpha_beta: Gt,
    pub(super) k: G1Point,
    pub(super) psi_1: G1Point,
    pub(super) phi_2: G2Point,
    pub(super) types: &'a [ProvingKey],
}
