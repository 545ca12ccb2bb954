//! Multi-scalar multiplications on a device.

use crate::arguments::{Digits, Multiples, Round, Scan, Sort, Sum, Total, Weight};
use crate::device::{Buffer, Device, Error, launch};
use crate::kernel::Kernel;
use crate::limbs::FrLimbs;
use ark_bls12_381::{Fq, Fq2};
use ark_bls12_381::{G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::{AdditiveGroup, CurveGroup};
use ark_ff::{BigInt, Field};
use bytemuck::{Pod, Zeroable};
use hekaton_arith::{G1Point, G2Point};
use std::sync::Arc;

/// The number of counts that a block of a scan adds up.
const SCAN_BLOCK: u32 = 2048;

/// A group whose multi-scalar multiplications run on devices.
pub trait Curve: Pod {
    /// X, Y, ZZ and ZZZ of a point, as kernels write it.
    type Sum: Pod + std::fmt::Debug;
    #[doc(hidden)]
    type Projective: CurveGroup;
    /// The kernels that add up points, add up sums, weigh buckets, add up segments, and compute multiples.
    const KERNELS: [Kernel; 5];
    #[doc(hidden)]
    fn projective(sum: &Self::Sum) -> Self::Projective;
    #[doc(hidden)]
    fn point(point: Self::Projective) -> Self;
}

/// Four coordinates of a point of G1.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct SumG1([[u64; 6]; 4]);

/// Four coordinates of a point of G2.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct SumG2([[[u64; 6]; 2]; 4]);

fn fq(limbs: [u64; 6]) -> Fq {
    Fq::new_unchecked(BigInt(limbs))
}

/// The inverses of ZZ and ZZZ, from one inversion; `None` of the point at infinity.
fn inverses<F: Field>(zz: F, zzz: F) -> Option<[F; 2]> {
    let both = (zz * zzz).inverse()?;
    Some([both * zzz, both * zz])
}

impl Curve for G1Point {
    type Sum = SumG1;
    type Projective = G1Projective;
    const KERNELS: [Kernel; 5] = [
        Kernel::SumPointsG1,
        Kernel::SumSumsG1,
        Kernel::WeighG1,
        Kernel::TotalG1,
        Kernel::MultiplesG1,
    ];

    fn projective(sum: &SumG1) -> G1Projective {
        let [x, y, zz, zzz] = sum.0.map(fq);
        inverses(zz, zzz)
            .map_or(G1Projective::ZERO, |[zz, zzz]| G1Affine::new_unchecked(x * zz, y * zzz).into())
    }

    fn point(point: G1Projective) -> Self {
        point.into_affine().into()
    }
}

impl Curve for G2Point {
    type Sum = SumG2;
    type Projective = G2Projective;
    const KERNELS: [Kernel; 5] = [
        Kernel::SumPointsG2,
        Kernel::SumSumsG2,
        Kernel::WeighG2,
        Kernel::TotalG2,
        Kernel::MultiplesG2,
    ];

    fn projective(sum: &SumG2) -> G2Projective {
        let [x, y, zz, zzz] = sum.0.map(|[c0, c1]| Fq2::new(fq(c0), fq(c1)));
        inverses(zz, zzz)
            .map_or(G2Projective::ZERO, |[zz, zzz]| G2Affine::new_unchecked(x * zz, y * zzz).into())
    }

    fn point(point: G2Projective) -> Self {
        point.into_affine().into()
    }
}

/// The division of a multi-scalar multiplication into windows and pieces. Results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The bits of the widest windows, 2 to 20. The others have one bit less, and together they have 255.
    pub bits: u32,
    /// The maximum number of points that a thread adds up, 2 to 4,096.
    pub length: u32,
    /// The binary logarithm of the number of buckets that a thread weighs.
    pub segment: u32,
    /// `true` if multiples of all points for all windows are computed and kept, so that all windows share buckets.
    pub multiples: bool,
}

impl Sizes {
    /// Returns the sizes that were fastest on an H200 (docs/kernels.md) for `points` points and `vectors` vectors of
    /// scalars at a time.
    pub fn of(points: usize, vectors: usize, multiples: bool) -> Self {
        let windows = |bits: u32| 255u64.div_ceil(u64::from(bits));
        let rows = |bits: u32| if multiples { 1 } else { windows(bits) };
        // The cost in products: a mixed addition per point and window, two additions per bucket, and idle threads.
        let cost =
            |bits: u32| windows(bits) * 10 * points as u64 + ((rows(bits) * 40) << (bits - 1));
        let bits = (4..=20).min_by_key(|bits| cost(*bits)).unwrap_or(4);
        // Random scalars rarely put more points into a bucket.
        let mean = (points as u64 * (windows(bits) / rows(bits))) >> (bits - 1);
        let length = u32::try_from((4 * mean).next_power_of_two().clamp(32, 1024)).unwrap_or(1024);
        // Enough segments to occupy a device, and few doublings.
        let buckets = (vectors as u64 * rows(bits)) << (bits - 1);
        let segment = (buckets >> 16).max(1).ilog2().clamp(2, 5).min(bits - 1);
        Self { bits, length, segment, multiples }
    }

    pub(crate) fn windows(self) -> u32 {
        255u32.div_ceil(self.bits)
    }

    /// The number of windows with buckets of their own.
    pub(crate) fn rows(self) -> u32 {
        if self.multiples { 1 } else { self.windows() }
    }

    /// The number of windows with all bits.
    fn wide(self) -> u32 {
        255 - self.windows() * (self.bits - 1)
    }
}

/// Points on a device, with which vectors of scalars are multiplied.
#[derive(Debug)]
pub struct Bases<P> {
    /// The points, followed by their multiples for each further window.
    points: Buffer<P>,
    count: usize,
    sizes: Sizes,
}

/// The contents of buckets, or the remainders of their pieces, by bucket.
struct Contents {
    counts: Buffer<u32>,
    offsets: Buffer<u32>,
}

impl<P: Curve> Bases<P> {
    /// Copies points to a device, for products with `vectors` vectors of scalars at a time, or about as many.
    ///
    /// # Errors
    /// If there are 2^31 points or more, or the memory does not suffice.
    pub fn new(
        device: &Arc<dyn Device>,
        points: &[P],
        vectors: usize,
        multiples: bool,
    ) -> Result<Self, Error> {
        Self::with_sizes(device, points, Sizes::of(points.len(), vectors, multiples))
    }

    /// [`Self::new`] with sizes of the caller's choice.
    ///
    /// # Errors
    /// As for [`Self::new`], and if the sizes are not in their ranges.
    pub fn with_sizes(device: &Arc<dyn Device>, points: &[P], sizes: Sizes) -> Result<Self, Error> {
        let size =
            |what, expected: &str, found| Error::Size { what, expected: expected.into(), found };
        if points.len() >= 1 << 31 {
            return Err(size("the number of points", "below 2^31", points.len()));
        }
        if !(2..=20).contains(&sizes.bits) {
            return Err(size("the bits of a window", "2 to 20", sizes.bits as usize));
        }
        if !(2..=4096).contains(&sizes.length) {
            return Err(size("the points of a thread", "2 to 4096", sizes.length as usize));
        }
        if sizes.segment >= sizes.bits {
            return Err(size(
                "the bits of a segment",
                "fewer than a window's",
                sizes.segment as usize,
            ));
        }
        let (count, windows) = (points.len(), sizes.windows());
        if !sizes.multiples || points.is_empty() {
            return Ok(Self { points: Buffer::of(device, points)?, count, sizes });
        }
        let all = count as u64 * u64::from(windows);
        if all >= 1 << 31 {
            return Err(size("the number of points", "below 2^31 with their multiples", count));
        }
        let buffer = Buffer::new(device, count * windows as usize)?;
        device.upload(buffer.address(), bytemuck::cast_slice(points))?;
        let [.., kernel] = P::KERNELS;
        let count_of_points = u32::try_from(count).expect("below 2^31");
        let (points, bits, wide) = (buffer.address(), sizes.bits, sizes.wide());
        let arguments = Multiples { points, count: count_of_points, windows, bits, wide };
        // SAFETY: there is memory for the points and as many multiples for each further window.
        unsafe { launch(&**device, kernel, count_of_points, &arguments) }?;
        Ok(Self { points: buffer, count, sizes })
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Reports whether the vector has no points.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Multiplies the points with vectors of one scalar per point, and returns the sum for each vector.
    ///
    /// Takes 8 bytes per scalar and window, and 192 bytes per bucket (384 in G2), of the device's memory.
    ///
    /// # Errors
    /// If the number of scalars is not a multiple of that of the points, or there are too many, or the device fails.
    pub fn multiply(&self, scalars: &Buffer<FrLimbs>) -> Result<Vec<P>, Error> {
        let points = self.count;
        if points == 0 || scalars.is_empty() {
            return Ok(Vec::new());
        }
        let windows = self.sizes.windows();
        let entries = scalars.len() as u64 * u64::from(windows);
        let vectors = scalars.len() / points;
        let buckets = (vectors as u64 * u64::from(self.sizes.rows())) << (self.sizes.bits - 1);
        let is_fit = scalars.len().is_multiple_of(points) && entries < 1 << 32 && buckets < 1 << 31;
        let what = "the number of scalars";
        let expected = || format!("a multiple of {points}, with fewer than 2^32 digits in all");
        let size = || Error::Size { what, expected: expected(), found: scalars.len() };
        let [points, scalar_count, buckets] = [points as u64, scalars.len() as u64, buckets]
            .map(|n| u32::try_from(n).ok().filter(|_| is_fit));
        let (Some(points), Some(scalar_count), Some(buckets)) = (points, scalar_count, buckets)
        else {
            return Err(size());
        };
        let sums = self.buckets(scalars, points, scalar_count, buckets)?;
        self.weigh(&sums, buckets)
    }

    /// Sorts points into buckets, and adds up the points of each.
    fn buckets(
        &self,
        scalars: &Buffer<FrLimbs>,
        points: u32,
        scalar_count: u32,
        buckets: u32,
    ) -> Result<Buffer<P::Sum>, Error> {
        let (device, sizes) = (self.points.device(), self.sizes);
        let (windows, bits) = (sizes.windows(), sizes.bits);
        let entries = scalars.len() * windows as usize;
        let counts = Buffer::<u32>::zeroed(device, buckets as usize)?;
        let sorted = Buffer::<u32>::new(device, entries)?;
        let contents = {
            let digits = Buffer::<u32>::new(device, entries)?;
            let arguments = Digits {
                scalars: scalars.address(),
                digits: digits.address(),
                counts: counts.address(),
                points,
                scalar_count,
                windows,
                bits,
                wide: sizes.wide(),
                shared: u32::from(sizes.multiples),
            };
            // SAFETY: there are `scalar_count` scalars, as many digits for each window, and `buckets` counts.
            unsafe { launch(&**device, Kernel::Digits, scalar_count, &arguments) }?;
            let cursors = Buffer::<u32>::new(device, buckets as usize)?;
            let offsets = scan(&counts, 1, Some(&cursors))?;
            let arguments = Sort {
                digits: digits.address(),
                cursors: cursors.address(),
                sorted: sorted.address(),
                points,
                scalar_count,
                windows,
                bits,
                shared: u32::from(sizes.multiples),
                padding: [0],
            };
            // SAFETY: as above, and cursors lead to as many places as there are digits at most.
            unsafe { launch(&**device, Kernel::Sort, scalar_count, &arguments) }?;
            Contents { counts, offsets }
        };
        // Zeros are points at infinity.
        let sums = Buffer::<P::Sum>::zeroed(device, buckets as usize)?;
        self.rounds(contents, &sorted, &sums)?;
        Ok(sums)
    }

    /// Adds up the contents of buckets, until each has one sum.
    // One piece: the SAFETY arguments are about counts that earlier kernels of the same round have written.
    fn rounds(
        &self,
        mut contents: Contents,
        sorted: &Buffer<u32>,
        buckets: &Buffer<P::Sum>,
    ) -> Result<(), Error> {
        let device = self.points.device();
        let bucket_count = u32::try_from(buckets.len()).expect("checked above");
        let [sum_points, sum_sums, ..] = P::KERNELS;
        // If most scalars are zero, shorter pieces occupy a device. Few sums are left after a round.
        let entries = read_one(&contents.offsets, buckets.len())?;
        let mut length = (entries >> 16).next_power_of_two().max(16).min(self.sizes.length);
        let mut before: Option<Buffer<P::Sum>> = None;
        loop {
            let piece_offsets = scan(&contents.counts, length, None)?;
            let state = Buffer::<u32>::zeroed(device, length as usize + 2)?;
            let mut round = Round {
                counts: contents.counts.address(),
                offsets: contents.offsets.address(),
                piece_offsets: piece_offsets.address(),
                state: state.address(),
                buckets: bucket_count,
                length,
                ..Round::default()
            };
            // SAFETY: there are `buckets` counts.
            unsafe { launch(&**device, Kernel::Largest, bucket_count, &round) }?;
            let piece_count = read_one(&piece_offsets, buckets.len())?;
            let is_last = read_one(&state, 0)? == 0;
            if piece_count == 0 {
                return Ok(());
            }
            let pieces = Buffer::<[u32; 4]>::new(device, piece_count as usize)?;
            let order = Buffer::<u32>::new(device, piece_count as usize)?;
            let sums =
                Buffer::<P::Sum>::new(device, if is_last { 0 } else { piece_count as usize })?;
            round.pieces = pieces.address();
            round.order = order.address();
            round.piece_count = piece_count;
            let (points, kernel) = match &before {
                Some(before) => (before.address(), sum_sums),
                None => (self.points.address(), sum_points),
            };
            let sum = Sum {
                points,
                sorted: sorted.address(),
                pieces: pieces.address(),
                order: order.address(),
                sums: sums.address(),
                buckets: buckets.address(),
                piece_count,
                padding: [0],
            };
            // SAFETY: there are `piece_count` pieces of at most `length` elements; pieces that are the only ones of their bucket write
            // there, and the others, of which there are none in the last round, to `sums`.
            unsafe {
                launch(&**device, Kernel::Cut, piece_count, &round)?;
                launch(&**device, Kernel::Places, 1, &round)?;
                launch(&**device, Kernel::Order, piece_count, &round)?;
                launch(&**device, kernel, piece_count, &sum)?;
            }
            if is_last {
                return Ok(());
            }
            // SAFETY: there are `buckets` counts.
            unsafe { launch(&**device, Kernel::NextCounts, bucket_count, &round) }?;
            contents.offsets = piece_offsets;
            before = Some(sums);
            length = length.min(8);
        }
    }

    /// Adds up the buckets of each vector, each times its digit and the weight of its window.
    fn weigh(&self, sums: &Buffer<P::Sum>, buckets: u32) -> Result<Vec<P>, Error> {
        let (device, sizes) = (self.points.device(), self.sizes);
        let [_, _, weigh, total, _] = P::KERNELS;
        let segments = buckets >> sizes.segment;
        let each = 1 << (sizes.bits - 1 - sizes.segment);
        let mut sums_of_segments = Buffer::<P::Sum>::new(device, segments as usize)?;
        let arguments = Weight {
            buckets: sums.address(),
            sums: sums_of_segments.address(),
            segments,
            size: 1 << sizes.segment,
            each,
            padding: [0],
        };
        // SAFETY: `segments` segments of `size` buckets are all buckets.
        unsafe { launch(&**device, weigh, segments, &arguments) }?;
        // Each block adds up few totals, so that many blocks have work.
        let mut left = each;
        while left > 1 {
            let chunk = left.min(2 * total.threads());
            left /= chunk;
            let count = segments / each * left;
            let totals = Buffer::<P::Sum>::new(device, count as usize)?;
            let (sums, to) = (sums_of_segments.address(), totals.address());
            let arguments = Total { sums, totals: to, each: chunk, padding: [0] };
            // SAFETY: a block for each of `count` totals adds up `chunk` sums: numbers of both are powers of two.
            unsafe { launch(&**device, total, count * total.threads(), &arguments) }?;
            sums_of_segments = totals;
        }
        let windows = sums_of_segments.read()?;
        let vectors = windows.chunks_exact(sizes.rows() as usize);
        Ok(vectors.map(|windows| combine::<P>(windows, sizes)).collect())
    }
}

/// The sum of windows from the lowest, each as many times as heavy as the ones below it have bits.
fn combine<P: Curve>(windows: &[P::Sum], sizes: Sizes) -> P {
    let mut sum = P::Projective::ZERO;
    for (window, total) in (0..sizes.rows()).zip(windows).rev() {
        let bits = if window < sizes.wide() { sizes.bits } else { sizes.bits - 1 };
        (0..bits).for_each(|_| {
            sum.double_in_place();
        });
        sum += P::projective(total);
    }
    P::point(sum)
}

fn read_one(buffer: &Buffer<u32>, at: usize) -> Result<u32, Error> {
    let mut bytes = [0; 4];
    buffer.device().download(buffer.address() + 4 * at as u64, &mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Returns the sums before each count, and of all counts, where each stands for its pieces of `length`; also copied to `copy`.
fn scan(
    counts: &Buffer<u32>,
    length: u32,
    copy: Option<&Buffer<u32>>,
) -> Result<Buffer<u32>, Error> {
    let device = counts.device();
    let count = u32::try_from(counts.len()).expect("checked by the caller");
    let blocks = count.div_ceil(SCAN_BLOCK);
    let totals = Buffer::<u32>::new(device, blocks as usize + 1)?;
    let offsets = Buffer::<u32>::new(device, counts.len() + 1)?;
    let arguments = Scan {
        counts: counts.address(),
        totals: totals.address(),
        offsets: offsets.address(),
        copy: copy.map_or(0, Buffer::address),
        count,
        length,
    };
    // SAFETY: there are `count` counts, and places for one result more; a total for each block and one more.
    unsafe {
        launch(&**device, Kernel::ScanBlocks, blocks * 256, &arguments)?;
        launch(&**device, Kernel::ScanTotals, 1, &arguments)?;
        launch(&**device, Kernel::ScanOffsets, blocks * 256, &arguments)?;
    }
    Ok(offsets)
}
