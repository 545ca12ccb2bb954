//! Which code does the work: chosen once, when the program first computes.

use crate::portable;
use crate::scalar::{ABS_U, digits_to_base_u};
use crate::sums::Summand;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::x86_64_avx2;
#[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
use crate::x86_64_ifma;
use crate::{Fr, G1Point, G2Point, pairing::Pair};
use blst::blst_fp12;
use std::sync::OnceLock;

/// The environment variable that overrides the choice: `portable`, `avx2`, `ifma`, or `auto` as if it were not set.
pub const VARIABLE: &str = "HEKATON_ARITH";

/// The code that does the work. Results for elements of the groups are the same bytes with each; only a Miller loop's value
/// ([`crate::MillerLoop::to_bytes`]), which is not canonical, may differ before it is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// blst's assembly and arkworks' fields: any 64-bit machine.
    Portable,
    /// AVX2 and FMA, eight field elements at a time in doubles: AMD since Zen, Intel since Haswell.
    Avx2,
    /// AVX-512 IFMA, eight field elements at a time: AMD Zen 4 and later, Intel Ice Lake and later.
    Ifma,
}

impl Backend {
    /// The one in use.
    ///
    /// # Panics
    /// When the environment variable [`VARIABLE`] has another value than those it may have, or asks for instructions that
    /// this processor lacks: a choice that was made on purpose is never passed over.
    pub fn current() -> Self {
        static CURRENT: OnceLock<Backend> = OnceLock::new();
        *CURRENT.get_or_init(|| Self::choose().unwrap_or_else(|why| panic!("{why}")))
    }

    /// What [`Backend::current`] will be, or why it can't be.
    ///
    /// # Errors
    /// When the environment variable [`VARIABLE`] names no backend, or one that this processor can't run.
    pub fn choose() -> Result<Self, BackendError> {
        let wish = std::env::var_os(VARIABLE).unwrap_or_default();
        match wish.to_str() {
            Some("" | "auto") => Ok(Self::fastest()),
            Some("portable") => Ok(Self::Portable),
            Some("avx2") if Self::Avx2.is_available() => Ok(Self::Avx2),
            Some("avx2") => Err(BackendError::Unavailable(Self::Avx2, "AVX2 and FMA")),
            Some("ifma") if Self::Ifma.is_available() => Ok(Self::Ifma),
            Some("ifma") => {
                Err(BackendError::Unavailable(Self::Ifma, "AVX-512 IFMA (avx512f, avx512dq, avx512vl, avx512ifma)"))
            }
            _ => Err(BackendError::Unknown(wish.to_string_lossy().into_owned())),
        }
    }

    /// The fastest that this processor can run: the choice where none was made.
    pub fn fastest() -> Self {
        [Self::Ifma, Self::Avx2].into_iter().find(|backend| backend.is_available()).unwrap_or(Self::Portable)
    }

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 => x86_64_avx2::available(),
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            Self::Avx2 => false,
            #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
            Self::Ifma => x86_64_ifma::available(),
            #[cfg(not(any(target_arch = "x86_64", hekaton_plain_lanes, miri)))]
            Self::Ifma => false,
        }
    }
}

/// Why a backend can't be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The variable's value is none of those it may have.
    #[error("{VARIABLE}={0}: give portable, avx2, ifma or auto")]
    Unknown(String),
    /// The processor lacks the instructions, which the second part names.
    #[error("{VARIABLE}={0}: this processor lacks {1}; give portable or auto")]
    Unavailable(Backend, &'static str),
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Ifma => "ifma",
        })
    }
}

/// What else backends do for points.
///
/// Public only because [`crate::Group`] extends it; the module is private, so no other type can implement it.
pub trait Curve: portable::Curve + Summand {
    /// Fewer points than these are multiplied one by one.
    fn few_multiples() -> usize;

    /// The digits of a scalar to the base that [`Curve::times_base`] multiplies with, the least significant first.
    fn decompose(x: &Fr) -> [u128; 4];

    /// A known multiple of a point of the group, at the cost of a few products: `u^2 self` in G1, `|u| self` in G2.
    #[must_use]
    fn times_base(&self) -> Self;
}

/// Calls the backend's function.
macro_rules! dispatch {
    ($($call:tt)*) => {
        match Backend::current() {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Backend::Avx2 => x86_64_avx2::$($call)*,
            #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
            Backend::Ifma => x86_64_ifma::$($call)*,
            _ => portable::$($call)*,
        }
    };
}

macro_rules! summand {
    ($point:ty) => {
        impl Summand for $point {
            const ZERO: Self = <$point as portable::Curve>::ZERO;

            fn add_pairs(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self]) {
                dispatch!(add_pairs(src, pairs, out));
            }

            fn signed(src: &[Self], index: u32) -> Self {
                portable::signed(src, index)
            }
        }
    };
}

summand!(G1Point);
summand!(G2Point);

/// The product of Miller loops for each list of pairs; no point may be at infinity.
pub(crate) fn miller_loops(products: &[Vec<Pair<'_>>]) -> Vec<blst_fp12> {
    dispatch!(miller_loops(products))
}

/// The final exponentiation of each element, none zero.
pub(crate) fn final_exponentiations(elements: &[blst_fp12]) -> Vec<blst_fp12> {
    dispatch!(final_exponentiations(elements))
}

/// f^|u| of each element of the cyclotomic subgroup.
pub(crate) fn to_abs_u(elements: &[blst_fp12]) -> Vec<blst_fp12> {
    dispatch!(to_abs_u(elements))
}

impl Curve for G1Point {
    fn few_multiples() -> usize {
        dispatch!(FEW_MULTIPLES_G1)
    }

    fn decompose(x: &Fr) -> [u128; 4] {
        let digits = digits_to_base_u(x).map(u128::from);
        let base = u128::from(ABS_U);
        [digits[0] + digits[1] * base, digits[2] + digits[3] * base, 0, 0]
    }

    fn times_base(&self) -> Self {
        portable::minus_phi(self)
    }
}

impl Curve for G2Point {
    fn few_multiples() -> usize {
        dispatch!(FEW_MULTIPLES_G2)
    }

    fn decompose(x: &Fr) -> [u128; 4] {
        digits_to_base_u(x).map(u128::from)
    }

    fn times_base(&self) -> Self {
        portable::minus_psi(self)
    }
}
