//! Point arithmetic: blst's functions for both groups, named once in the trait [`Curve`].

use super::fields::Field;
use crate::points::{G1Point, G2Point, PointError};
use blst::*;

/// The operations that the backend provides for a group: blst's `p1` or `p2` functions under common
/// names.
///
/// Public only because [`crate::Group`] extends it; the module is private, so no other type can
/// implement it.
#[allow(unnameable_types, reason = "seals `Group`: only this crate implements it")]
pub trait Curve: Copy + 'static {
    /// The field of the coordinates.
    type Coordinate: Field;
    /// Jacobian coordinates.
    type Projective: Copy;
    /// Infinity.
    const ZERO: Self;

    fn x(&self) -> &Self::Coordinate;
    fn y(&self) -> &Self::Coordinate;
    fn coordinates(&self) -> (Self::Coordinate, Self::Coordinate);
    fn from_coordinates(x: Self::Coordinate, y: Self::Coordinate) -> Self;
    fn ffi() -> &'static Ffi<Self>;
    fn infinity() -> Self::Projective;
}

/// blst's functions for one group. Pointers to `C` stand for pointers to blst's affine points.
#[derive(Debug)]
#[allow(clippy::type_complexity)]
#[allow(unnameable_types, reason = "seals `Group`: only this crate implements it")]
pub struct Ffi<C: Curve> {
    generator: unsafe fn() -> *const C,
    from_affine: unsafe fn(*mut C::Projective, *const C),
    to_affine: unsafe fn(*mut C, *const C::Projective),
    to_affines: unsafe fn(*mut C, *const *const C::Projective, usize),
    double: unsafe fn(*mut C::Projective, *const C::Projective),
    add_affine: unsafe fn(*mut C::Projective, *const C::Projective, *const C),
    mult: unsafe fn(*mut C::Projective, *const C::Projective, *const u8, usize),
    sum: unsafe fn(*mut C::Projective, *const *const C, usize),
    on_curve: unsafe fn(*const C) -> bool,
    in_group: unsafe fn(*const C) -> bool,
    compress: unsafe fn(*mut u8, *const C),
    uncompress: unsafe fn(*mut C, *const u8) -> BLST_ERROR,
    serialize: unsafe fn(*mut u8, *const C),
    deserialize: unsafe fn(*mut C, *const u8) -> BLST_ERROR,
}

macro_rules! curve {
    ($point:ty, $coordinate:ty, $projective:ty, $zero:expr, $make:expr, $generator:ident, $from_affine:ident,
     $to_affine:ident, $to_affines:ident, $double:ident, $add_affine:ident, $mult:ident, $sum:ident,
     $on_curve:ident, $in_group:ident, $compress:ident, $uncompress:ident, $serialize:ident,
     $deserialize:ident) => {
        impl Curve for $point {
            type Coordinate = $coordinate;
            type Projective = $projective;
            const ZERO: Self = $zero;

            #[inline]
            fn x(&self) -> &$coordinate {
                // SAFETY: a coordinate has the layout of blst's field element (sizes asserted in
                // the module root).
                unsafe { &*(&raw const self.x).cast() }
            }

            #[inline]
            fn y(&self) -> &$coordinate {
                // SAFETY: a coordinate has the layout of blst's field element (sizes asserted in
                // the module root).
                unsafe { &*(&raw const self.y).cast() }
            }

            #[inline]
            fn coordinates(&self) -> ($coordinate, $coordinate) {
                (*self.x(), *self.y())
            }

            #[inline]
            fn from_coordinates(x: $coordinate, y: $coordinate) -> Self {
                $make(x, y)
            }

            fn infinity() -> $projective {
                <$projective>::default()
            }

            fn ffi() -> &'static Ffi<Self> {
                static FFI: Ffi<$point> = Ffi {
                    // SAFETY: blst returns a pointer to a static point of this layout.
                    generator: || unsafe { $generator() }.cast(),
                    // SAFETY: the caller passes valid pointers; our affine points have blst's
                    // layout.
                    from_affine: |o, p| unsafe { $from_affine(o, p.cast()) },
                    // SAFETY: the caller passes valid pointers; our affine points have blst's
                    // layout.
                    to_affine: |o, p| unsafe { $to_affine(o.cast(), p) },
                    // SAFETY: as in `to_affine`, and the caller passes the number of points.
                    to_affines: |o, p, n| unsafe { $to_affines(o.cast(), p, n) },
                    // SAFETY: the caller passes valid pointers; our affine points have blst's
                    // layout.
                    double: |o, a| unsafe { $double(o, a) },
                    // SAFETY: the caller passes valid pointers; our affine points have blst's
                    // layout.
                    add_affine: |o, a, b| unsafe { $add_affine(o, a, b.cast()) },
                    // SAFETY: the caller passes valid pointers and a scalar of at least `n` bits.
                    mult: |o, p, s, n| unsafe { $mult(o, p, s, n) },
                    // SAFETY: as in `add_affine`, and the caller passes the number of points.
                    sum: |o, p, n| unsafe { $sum(o, p.cast(), n) },
                    // SAFETY: the caller passes valid pointers; our affine points have blst's
                    // layout.
                    on_curve: |p| unsafe { $on_curve(p.cast()) },
                    // SAFETY: the caller passes valid pointers; our affine points have blst's
                    // layout.
                    in_group: |p| unsafe { $in_group(p.cast()) },
                    // SAFETY: the caller passes a buffer of the length of the compressed encoding.
                    compress: |o, p| unsafe { $compress(o, p.cast()) },
                    // SAFETY: the caller passes as many bytes as the compressed encoding has.
                    uncompress: |o, b| unsafe { $uncompress(o.cast(), b) },
                    // SAFETY: the caller passes a buffer of the length of the uncompressed encoding.
                    serialize: |o, p| unsafe { $serialize(o, p.cast()) },
                    // SAFETY: the caller passes as many bytes as the uncompressed encoding has.
                    deserialize: |o, b| unsafe { $deserialize(o.cast(), b) },
                };
                &FFI
            }
        }
    };
}

curve!(
    G1Point,
    blst_fp,
    blst_p1,
    G1Point { x: [0; 6], y: [0; 6] },
    |x: blst_fp, y: blst_fp| G1Point { x: x.l, y: y.l },
    blst_p1_affine_generator,
    blst_p1_from_affine,
    blst_p1_to_affine,
    blst_p1s_to_affine,
    blst_p1_double,
    blst_p1_add_or_double_affine,
    blst_p1_mult,
    blst_p1s_add,
    blst_p1_affine_on_curve,
    blst_p1_affine_in_g1,
    blst_p1_affine_compress,
    blst_p1_uncompress,
    blst_p1_affine_serialize,
    blst_p1_deserialize
);

curve!(
    G2Point,
    blst_fp2,
    blst_p2,
    G2Point { x: [[0; 6]; 2], y: [[0; 6]; 2] },
    |x: blst_fp2, y: blst_fp2| G2Point { x: x.fp.map(|c| c.l), y: y.fp.map(|c| c.l) },
    blst_p2_affine_generator,
    blst_p2_from_affine,
    blst_p2_to_affine,
    blst_p2s_to_affine,
    blst_p2_double,
    blst_p2_add_or_double_affine,
    blst_p2_mult,
    blst_p2s_add,
    blst_p2_affine_on_curve,
    blst_p2_affine_in_g2,
    blst_p2_affine_compress,
    blst_p2_uncompress,
    blst_p2_affine_serialize,
    blst_p2_deserialize
);

pub(crate) fn generator<C: Curve>() -> C {
    // SAFETY: blst returns a pointer to a static affine point.
    unsafe { *(C::ffi().generator)() }
}

pub(crate) fn neg<C: Curve + PartialEq>(p: &C) -> C {
    let (x, y) = p.coordinates();
    C::from_coordinates(x, y.neg())
}

pub(crate) fn normalise_one<C: Curve>(p: &C::Projective) -> C {
    let mut out = C::ZERO;
    // SAFETY: both pointers are valid for the call; blst writes zeros for the point at infinity.
    unsafe { (C::ffi().to_affine)(&mut out, p) };
    out
}

pub(crate) fn normalise<C: Curve>(points: &[C::Projective]) -> Vec<C> {
    let mut out = vec![C::ZERO; points.len()];
    if !points.is_empty() {
        // A null second entry means that the points are contiguous.
        let list = [points.as_ptr(), std::ptr::null()];
        // SAFETY: `out` and `points` have the same length, which is passed.
        unsafe { (C::ffi().to_affines)(out.as_mut_ptr(), list.as_ptr(), points.len()) };
    }
    out
}

/// The multiple `x p` for a little-endian scalar of `bits` bits.
pub(crate) fn mul<C: Curve>(p: &C, scalar: &[u8; 32], bits: usize) -> C::Projective {
    let (mut base, mut out) = (C::infinity(), C::infinity());
    // SAFETY: the scalar has 32 bytes and `bits` is at most 255.
    unsafe {
        (C::ffi().from_affine)(&mut base, p);
        (C::ffi().mult)(&mut out, &base, scalar.as_ptr(), bits);
    }
    out
}

pub(crate) fn double<C: Curve>(a: &C::Projective) -> C::Projective {
    let mut out = C::infinity();
    // SAFETY: both pointers are valid for the call.
    unsafe { (C::ffi().double)(&mut out, a) };
    out
}

pub(crate) fn add_mixed<C: Curve>(a: &C::Projective, b: &C) -> C::Projective {
    let mut out = C::infinity();
    // SAFETY: all pointers are valid for the call.
    unsafe { (C::ffi().add_affine)(&mut out, a, b) };
    out
}

pub(crate) fn sum<C: Curve>(points: &[C]) -> C::Projective {
    sum_of(&points.iter().collect::<Vec<_>>())
}

pub(crate) fn sum_of<C: Curve>(points: &[&C]) -> C::Projective {
    let mut out = C::infinity();
    if !points.is_empty() {
        // SAFETY: `&C` has the layout of a non-null `*const C`, and the length is passed.
        unsafe { (C::ffi().sum)(&mut out, points.as_ptr().cast(), points.len()) };
    }
    out
}

/// Reports whether the coordinates are reduced and satisfy the curve equation, or the point is
/// infinity.
pub(crate) fn is_on_curve<C: Curve>(p: &C) -> bool {
    let (x, y) = p.coordinates();
    // SAFETY: the pointer is valid; the function accepts any field elements.
    x.is_reduced() && y.is_reduced() && unsafe { (C::ffi().on_curve)(p) }
}

pub(crate) fn is_in_group<C: Curve>(p: &C) -> bool {
    // SAFETY: the pointer is valid; both functions accept any field elements.
    unsafe { (C::ffi().on_curve)(p) && (C::ffi().in_group)(p) }
}

pub(crate) fn compress<C: Curve>(p: &C, out: &mut [u8]) {
    assert_eq!(out.len(), size_of::<C>() / 2, "a compressed point is one coordinate long");
    // SAFETY: `out` has the length of the encoding, as asserted.
    unsafe { (C::ffi().compress)(out.as_mut_ptr(), p) };
}

/// Decodes a point and checks all but the subgroup.
pub(crate) fn decompress<C: Curve>(bytes: &[u8]) -> Result<C, PointError> {
    if bytes.len() != size_of::<C>() / 2 {
        return Err(PointError::Encoding);
    }
    let mut out = C::ZERO;
    // SAFETY: the length was checked above.
    match unsafe { (C::ffi().uncompress)(&mut out, bytes.as_ptr()) } {
        BLST_ERROR::BLST_SUCCESS => Ok(out),
        BLST_ERROR::BLST_POINT_NOT_ON_CURVE => Err(PointError::NotOnCurve),
        _ => Err(PointError::Encoding),
    }
}

/// Encodes a point with both coordinates.
pub(crate) fn serialize<C: Curve>(p: &C, out: &mut [u8]) {
    assert_eq!(out.len(), size_of::<C>(), "an uncompressed point is two coordinates long");
    // SAFETY: `out` has the length of the encoding, as asserted.
    unsafe { (C::ffi().serialize)(out.as_mut_ptr(), p) };
}

/// Decodes [`serialize`] and checks all but the subgroup.
pub(crate) fn deserialize<C: Curve>(bytes: &[u8]) -> Result<C, PointError> {
    // The first bit would announce a compressed point, the third one its sign, which blst does not look at here.
    if bytes.len() != size_of::<C>() || bytes[0] & 0xa0 != 0 {
        return Err(PointError::Encoding);
    }
    let mut out = C::ZERO;
    // SAFETY: the length was checked above.
    match unsafe { (C::ffi().deserialize)(&mut out, bytes.as_ptr()) } {
        BLST_ERROR::BLST_SUCCESS => Ok(out),
        BLST_ERROR::BLST_POINT_NOT_ON_CURVE => Err(PointError::NotOnCurve),
        // (0, 2) and (0, -2), of order 3, are refused at once.
        BLST_ERROR::BLST_POINT_NOT_IN_GROUP => Err(PointError::NotInSubgroup),
        _ => Err(PointError::Encoding),
    }
}
