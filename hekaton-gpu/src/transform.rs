//! Fourier transforms on a device.

use crate::arguments::{Product, Thirds, Transform};
use crate::device::{Buffer, Device, Error, launch};
use crate::kernel::Kernel;
use crate::limbs::{FrLimbs, limbs};
use ark_bls12_381::Fr;
use ark_ff::Field;
use hekaton_arith::{Domain, powers};
use std::sync::Arc;

/// The maximum number of layers of butterflies per pass over memory: a tile has 2^7 rows and 8 columns.
const LAYERS: u32 = 7;
/// The elements of a tile.
const TILE: u32 = 1024;

/// The tables of a domain of N elements on a device: 48 N bytes, or 64 N with 3 * 2^k elements.
#[derive(Debug)]
pub struct Transforms {
    size: u32,
    /// The binary logarithm of the largest power of two in the size.
    bits: u32,
    roots: Buffer<FrLimbs>,
    thirds: Option<Buffer<FrLimbs>>,
    /// The factors that bring coefficients to the coset, with the factor 1/N of the inverse transform, in the
    /// order of coefficients between the transforms.
    factors: Buffer<FrLimbs>,
}

impl Transforms {
    /// Copies the tables of a domain to a device.
    ///
    /// # Errors
    /// If the domain has fewer than two elements, or three, or more than 2^30, or the memory does not suffice.
    pub fn new(device: &Arc<dyn Device>, domain: &Domain) -> Result<Self, Error> {
        let found = domain.size();
        let even =
            u32::try_from(found).ok().filter(|size| size.is_multiple_of(2) && *size <= 1 << 30);
        let expected = || "an even number up to 2^30".into();
        let what = "the size of a domain on a GPU";
        let size = even.ok_or_else(|| Error::Size { what, expected: expected(), found })?;
        let bits = size.trailing_zeros();
        let odd = size >> bits;
        let root = domain.root().pow([u64::from(odd)]);
        let roots = Buffer::of(device, &limbs(&powers(root, 1 << (bits - 1))))?;
        let powers_of_root = (odd == 3).then(|| limbs(&powers(domain.root(), 2 << bits)));
        let thirds = powers_of_root.map(|powers| Buffer::of(device, &powers)).transpose()?;
        let scale = Fr::from(size).inverse().expect("the size is below the modulus");
        let natural = powers(domain.shift(), found);
        let part = 1u32 << bits;
        let at = |i: u32| odd * ((i % part).reverse_bits() >> (u32::BITS - bits)) + i / part;
        let factors: Vec<Fr> = (0..size).map(|i| natural[at(i) as usize] * scale).collect();
        Ok(Self { size, bits, roots, thirds, factors: Buffer::of(device, &limbs(&factors))? })
    }

    /// Turns the values of polynomials on the domain into their values on the coset, as [`Domain::to_coset`]
    /// does, for vectors of N values one after the other.
    ///
    /// # Errors
    /// If the length is not a multiple of N, or is 2^31 or more, or the device fails.
    pub fn to_coset(&self, values: &Buffer<FrLimbs>) -> Result<(), Error> {
        let count = self.check(values)?;
        self.thirds(Kernel::ThirdsInverse, values, count)?;
        for (top, layers) in self.passes().into_iter().rev() {
            self.pass(Kernel::TransformInverse, values, count, top, layers, false)?;
        }
        for (top, layers) in self.passes() {
            let first = top == layers;
            self.pass(Kernel::TransformForward, values, count, top, layers, first)?;
        }
        self.thirds(Kernel::ThirdsForward, values, count)
    }

    fn check(&self, values: &Buffer<FrLimbs>) -> Result<u32, Error> {
        let found = values.len();
        let count = u32::try_from(found).ok().filter(|count| *count < 1 << 31);
        count.filter(|count| count.is_multiple_of(self.size)).ok_or_else(|| Error::Size {
            what: "the number of values in a batch of transforms",
            expected: format!("a multiple of {} below 2^31", self.size),
            found,
        })
    }

    /// The passes of a forward transform, from the closest butterflies up.
    fn passes(&self) -> Vec<(u32, u32)> {
        let passes = self.bits.div_ceil(LAYERS);
        let end = |pass| self.bits * pass / passes;
        (0..passes).map(|pass| (end(pass + 1), end(pass + 1) - end(pass))).collect()
    }

    fn pass(
        &self,
        kernel: Kernel,
        values: &Buffer<FrLimbs>,
        count: u32,
        top: u32,
        layers: u32,
        with_factors: bool,
    ) -> Result<(), Error> {
        let arguments = Transform {
            data: values.address(),
            roots: self.roots.address(),
            factors: if with_factors { self.factors.address() } else { 0 },
            count,
            period: self.size,
            bits: self.bits,
            top,
            layers,
            padding: [0],
        };
        let blocks = (count >> layers).div_ceil(TILE >> layers);
        // SAFETY: the vector has `count` elements, and the tables are those of its domain.
        unsafe { launch(&**values.device(), kernel, blocks * kernel.threads(), &arguments) }
    }

    fn thirds(&self, kernel: Kernel, values: &Buffer<FrLimbs>, count: u32) -> Result<(), Error> {
        let Some(powers) = &self.thirds else { return Ok(()) };
        let triples = count / 3;
        let (data, powers, third) = (values.address(), powers.address(), self.size / 3);
        let arguments = Thirds { data, powers, third, count: triples };
        // SAFETY: the vector has three times `triples` elements, and there are two thirds of N powers.
        unsafe { launch(&**values.device(), kernel, triples, &arguments) }
    }
}

/// Multiplies the elements of a vector by those of another one.
///
/// # Errors
/// If the device fails.
///
/// # Panics
/// If the lengths differ, or there are 2^32 elements.
pub fn multiply(a: &Buffer<FrLimbs>, b: &Buffer<FrLimbs>) -> Result<(), Error> {
    assert_eq!(a.len(), b.len(), "a product of vectors of different lengths");
    let count = u32::try_from(a.len()).expect("fewer than 2^32 elements");
    let arguments = Product { a: a.address(), b: b.address(), count, padding: [0] };
    // SAFETY: both vectors have `count` elements.
    unsafe { launch(&**a.device(), Kernel::Multiply, count, &arguments) }
}
