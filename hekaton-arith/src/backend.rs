//! The choice of a backend, made once, when the program first computes.

use crate::points::{G1Point, G2Point, Pair};
use crate::portable;
use crate::scalar::{ABS_U, digits_to_base_u};
use crate::sums::Summand;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::x86_64_avx2;
#[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
use crate::x86_64_ifma;
use ark_bls12_381::Fr;
use blst::blst_fp12;
use std::sync::OnceLock;

/// The environment variable that overrides the choice: `portable`, `avx2`, `ifma`, or `auto`, which
/// is the same as leaving it unset.
pub const VARIABLE: &str = "HEKATON_ARITH";

/// A set of kernels. Every backend returns the same bytes for elements of the groups;
/// only the value of a Miller loop ([`crate::MillerLoop::to_bytes`]), which is not canonical before
/// the final exponentiation, may differ.
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
    /// The backend in use.
    ///
    /// # Panics
    /// If the environment variable [`VARIABLE`] has an unknown value or asks for instructions that
    /// this processor lacks: an explicit choice is never silently ignored.
    pub fn current() -> Self {
        static CURRENT: OnceLock<Backend> = OnceLock::new();
        *CURRENT.get_or_init(|| Self::choose().unwrap_or_else(|why| panic!("{why}")))
    }

    /// The backend that [`Backend::current`] will return.
    ///
    /// # Errors
    /// If the environment variable [`VARIABLE`] does not name a backend, or names one that this
    /// processor cannot run.
    pub fn choose() -> Result<Self, BackendError> {
        let Some(requested) = std::env::var_os(VARIABLE) else { return Ok(Self::fastest()) };
        match requested.to_str() {
            // An empty variable is how shells and batch scripts often unset one.
            Some("" | "auto") => Ok(Self::fastest()),
            Some("portable") => Ok(Self::Portable),
            Some("avx2") if Self::Avx2.is_available() => Ok(Self::Avx2),
            Some("avx2") => Err(BackendError::Unavailable(Self::Avx2, "AVX2 and FMA")),
            Some("ifma") if Self::Ifma.is_available() => Ok(Self::Ifma),
            Some("ifma") => Err(BackendError::Unavailable(
                Self::Ifma,
                "AVX-512 IFMA (avx512f, avx512dq, avx512vl, avx512ifma)",
            )),
            _ => Err(BackendError::Unknown(requested.to_string_lossy().into_owned())),
        }
    }

    /// The fastest backend that this processor can run, which is the default.
    pub fn fastest() -> Self {
        [Self::Ifma, Self::Avx2]
            .into_iter()
            .find(|backend| backend.is_available())
            .unwrap_or(Self::Portable)
    }

    /// Reports whether this processor can run this backend.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 => x86_64_avx2::available(),
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            Self::Avx2 => false,
            #[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
            Self::Ifma => x86_64_ifma::available(),
            #[cfg(not(any(target_arch = "x86_64", feature = "plain-lanes", miri)))]
            Self::Ifma => false,
        }
    }
}

/// The reason that a backend cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The variable has an unknown value.
    #[error("{VARIABLE}={0} is not a backend: use portable, avx2, ifma or auto")]
    Unknown(String),
    /// The processor lacks the instructions that the second field names.
    #[error("{VARIABLE}={0}: this processor lacks {1}; use portable or auto")]
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

/// The operations on points that backends provide, in addition to [`portable::Curve`].
///
/// Public only because [`crate::Group`] extends it; the module is private, so no other type can
/// implement it.
#[allow(unnameable_types, reason = "seals `Group`: only this crate implements it")]
pub trait Curve: portable::Curve + Summand {
    /// The number of points below which multiples are computed one by one.
    fn few_multiples() -> usize;

    /// The digits of a scalar in the base that [`Curve::times_base`] multiplies by, least
    /// significant first.
    fn decompose(x: &Fr) -> [u128; 4];

    /// A known multiple of a point of the group, at the cost of a few field multiplications: `u^2
    /// self` in G1, `|u| self` in G2.
    #[must_use]
    fn times_base(&self) -> Self;

    /// The multiple `u^2 self` of a point of the group.
    #[must_use]
    fn times_square_of_u(&self) -> Self;
}

/// Calls the current backend's version of a function.
macro_rules! dispatch {
    ($($call:tt)*) => {
        match Backend::current() {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Backend::Avx2 => x86_64_avx2::$($call)*,
            #[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
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

/// The product of the Miller loops of each list of pairs; no point may be at infinity.
pub(crate) fn miller_loops(products: &[Vec<Pair<'_>>]) -> Vec<blst_fp12> {
    dispatch!(miller_loops(products))
}

/// The final exponentiation of each element; none may be zero.
pub(crate) fn final_exponentiations(elements: &[blst_fp12]) -> Vec<blst_fp12> {
    dispatch!(final_exponentiations(elements))
}

/// The power `f^|u|` of each element `f` of the cyclotomic subgroup.
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

    fn times_square_of_u(&self) -> Self {
        self.times_base()
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

    fn times_square_of_u(&self) -> Self {
        self.times_base().times_base()
    }
}
