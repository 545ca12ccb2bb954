//! BLS12-381 kernels: everything the prover and the aggregator spend their time on.
//!
//! This crate is the only one that calls a multi-scalar multiplication, a Fourier transform or a
//! pairing, and it knows nothing of proofs. Every function runs on the thread that calls it, except
//! [`Group::msm_on_threads`], which starts the threads it is asked for: callers decide what runs
//! where. Results are canonical (affine points, reduced field elements), so splitting the work
//! differently never changes a byte of the result.
//!
//! | front | purpose |
//! |---|---|
//! | [`Group`] | points of G1 and G2: MSM, folding, scaling, batch addition, encodings |
//! | [`Scalars`] | scalars of an MSM, sorted once into 0, 1, small and full-size, and used for several MSMs |
//! | [`FixedBase`] | many multiples of one base |
//! | [`SubgroupCheck`] | membership of many points that are read in pieces |
//! | [`Domain`] | FFT, inverse FFT and coset FFT over Fr |
//! | [`MillerLoop`] | products of Miller loops, separate from the final exponentiation |
//! | [`Gt`] | the target group: multi-exponentiation, membership, compression |
//!
//! Behind the front are three backends ([`Backend`]): AVX-512 IFMA and AVX2 with FMA, both of which
//! work on eight field elements at a time (the latter in doubles), and a portable one made of
//! blst's assembly and arkworks' fields. All types keep the 64-bit Montgomery limbs that both
//! libraries share, so passing values between them copies limbs and converts nothing; only FFT
//! tables and in-flight vectors use another limb size.

// Each instruction set compiles its own copy of the files in `lanes`.
#![allow(clippy::duplicate_mod)]

#[cfg(hekaton_plain_lanes)]
compile_error!("--cfg hekaton_plain_lanes is now `--features hekaton-arith/plain-lanes`");

mod backend;
mod fft;
mod fixed_base;
mod group;
mod gt;
#[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
mod lanes;
mod membership;
mod msm;
mod multiples;
mod pairing;
mod points;
mod portable;
mod scalar;
mod sparse;
mod subgroup_check;
mod sums;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64_avx2;
#[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
mod x86_64_ifma;

pub use ark_bls12_381::Fr;
pub use backend::{Backend, BackendError, VARIABLE};
pub use fft::{Domain, DomainError};
pub use fixed_base::FixedBase;
pub use group::Group;
pub use gt::{Gt, GtError};
pub use msm::{MsmWork, Scalars};
pub use pairing::{MillerLoop, MillerLoopError, pairing};
pub use points::{G1Point, G2Point, Pair, PointError, pairs};
pub use scalar::{
    ScalarError, batch_invert, cube_root, fr_from_bytes, fr_from_uniform, fr_to_bytes,
    inner_product, powers,
};
pub use subgroup_check::SubgroupCheck;
