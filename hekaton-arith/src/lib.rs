//! BLS12-381 kernels: everything the prover and the aggregator spend their time on.
//!
//! This crate is the only one that calls a multi-scalar multiplication, a Fourier transform or a pairing. It knows
//! nothing of proofs. Every function here is single-threaded and starts no threads: the callers decide what runs
//! where. Results are canonical (affine points, reduced field elements), so splitting work differently never changes a
//! byte of the result.
//!
//! | front | does |
//! |---|---|
//! | [`Group`] | points of G1 and G2: MSM, folding, scaling, batch addition, encodings |
//! | [`Scalars`] | scalars of an MSM, sorted once into 0, 1, small and full-size, used for several MSMs |
//! | [`FixedBase`] | many multiples of one base |
//! | [`Domain`] | FFT, inverse FFT, coset FFT over Fr |
//! | [`MillerLoop`] | products of Miller loops, apart from the final exponentiation |
//! | [`Gt`] | the target group: multi-exponentiation, membership, compression |
//!
//! Inside are three backends ([`Backend`]): eight field elements at a time with AVX-512 IFMA, or in doubles with AVX2 and FMA, or
//! blst's assembly and arkworks' fields. All types keep the 64-bit Montgomery limbs that both libraries share, so passing between them copies limbs and
//! converts nothing; only tables of Fourier transforms and what is under way are in other limbs.

// what is in `lanes` is compiled for each instruction set
#![allow(clippy::duplicate_mod)]

mod backend;
mod fft;
mod fixed_base;
mod group;
mod gt;
#[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
mod lanes;
mod membership;
mod msm;
mod multiples;
mod pairing;
mod points;
mod portable;
mod scalar;
mod sums;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64_avx2;
#[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
mod x86_64_ifma;

pub use ark_bls12_381::Fr;
pub use backend::{Backend, BackendError, VARIABLE};
pub use fft::{Domain, DomainError};
pub use fixed_base::FixedBase;
pub use group::Group;
pub use gt::{Gt, GtError};
pub use msm::{MsmWork, Scalars};
pub use pairing::{MillerLoop, MillerLoopError, Pair, pairing, pairs};
pub use points::{G1Point, G2Point, PointError};
use sums::NEGATIVE;

pub use scalar::{ScalarError, batch_invert, fr_from_bytes, fr_from_uniform, fr_to_bytes, inner_product, powers};
