//! The gas of verifying: the prices of EIP-2537 and of calldata, and what the contract's own code was
//! measured to take.

use hekaton_core::verifier::DirectKey;

/// The most gas that a transaction may take (EIP-7825).
pub const LIMIT: u64 = 1 << 24;

/// Multiplying a point of G1, before the discount.
const MULTIPLICATION: u64 = 12_000;
/// Thousandths of [`MULTIPLICATION`] per point of an MSM of 1, 2, .. 128 points in G1; more cost as 128.
const DISCOUNTS: [u64; 128] = [
    1000, 949, 848, 797, 764, 750, 738, 728, 719, 712, 705, 698, 692, 687, 682, 677, 673, 669, 665,
    661, 658, 654, 651, 648, 645, 642, 640, 637, 635, 632, 630, 627, 625, 623, 621, 619, 617, 615,
    613, 611, 609, 608, 606, 604, 603, 601, 599, 598, 596, 595, 593, 592, 591, 589, 588, 586, 585,
    584, 582, 581, 580, 579, 577, 576, 575, 574, 573, 572, 570, 569, 568, 567, 566, 565, 564, 563,
    562, 561, 560, 559, 558, 557, 556, 555, 554, 553, 552, 551, 550, 549, 548, 547, 547, 546, 545,
    544, 543, 542, 541, 540, 540, 539, 538, 537, 536, 536, 535, 534, 533, 532, 532, 531, 530, 529,
    528, 528, 527, 526, 525, 525, 524, 523, 522, 522, 521, 520, 520, 519,
];

/// The gas of an MSM in G1, with the call.
fn msm(points: usize) -> u64 {
    let discount = DISCOUNTS[points.clamp(1, DISCOUNTS.len()) - 1];
    points as u64 * MULTIPLICATION * discount / 1000 + CALL
}

/// The gas of a product of pairings.
fn pairings(pairs: usize) -> u64 {
    37_700 + 32_600 * pairs as u64 + CALL
}

// Measured with solc 0.8.37, --via-ir --optimize, in revm.
/// A call of a precompile.
const CALL: u64 = 200;
/// The contract's code, whatever the key.
const CODE: u64 = 5_000;
/// The code for each subcircuit.
const PER_INSTANCE: u64 = 1_300;
/// The code for each subcircuit and type.
const PER_INSTANCE_AND_TYPE: u64 = 250;
/// The code for each public value and constant.
const PER_WIRE: u64 = 500;
/// The code for each point of S.
const PER_POINT: u64 = 110;
/// The code for each access by columns.
const PER_ACCESS: u64 = 480;

/// The gas of the public part S with this many points, and accesses by columns.
pub(crate) fn of_public_part(points: usize, accesses: usize) -> u64 {
    msm(points) + PER_POINT * points as u64 + PER_ACCESS * accesses as u64
}

/// The sizes of a key's data that the gas depends on.
pub(crate) struct Sizes {
    /// The number of points of S.
    pub(crate) points: usize,
    /// The number of accesses by columns.
    pub(crate) accesses: usize,
    /// The number of different Theta.
    pub(crate) thetas: usize,
    /// The length of the data.
    pub(crate) bytes: usize,
}

/// The gas of pairings and wires, below which no proof of a key is.
pub(crate) fn at_least(key: &DirectKey) -> u64 {
    let vk = key.verifying();
    pairings(key.instances()) + PER_WIRE * (vk.public.len() + vk.constants.len()) as u64
}

/// The estimated gas of a transaction that verifies a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gas {
    /// The transaction itself, with its calldata.
    pub transaction: u64,
    /// The least that a transaction with this calldata takes (EIP-7623).
    pub floor: u64,
    /// The product of pairings.
    pub pairings: u64,
    /// Multiplications in G1.
    pub multiplications: u64,
    /// Memory, hashes, the data of the key, and the contract's code.
    pub code: u64,
}

impl Gas {
    /// Estimates.
    pub(crate) fn estimate(key: &DirectKey, sizes: &Sizes) -> Self {
        let (n, k) = (key.instances(), key.types().len());
        let (public, wires) = (key.verifying().public.len(), key.verifying().constants.len());
        let (instances, wires) = (n as u64, (public + wires) as u64);
        // Of the 672 bytes of a subcircuit, 160 are zero: 16 of each 64 bytes of a coordinate.
        let transaction = 21_000 + instances * (512 * 16 + 160 * 4) + 16 * 32 * public as u64;
        let floor = 21_000 + 10 * (instances * (512 * 4 + 160) + 4 * 32 * public as u64);
        let own = (0..k).map(|kind| 2 * msm(key.instances_of(kind).count())).sum::<u64>();
        // alpha, and all A but the first, which has the factor 1.
        let single = msm(1) * instances;
        let own = if n == 1 { 0 } else { own + single };
        let multiplications =
            own + of_public_part(sizes.points, sizes.accesses) + msm(1) * sizes.thetas as u64;
        let bytes = sizes.bytes as u64;
        // The pairs, the list of an MSM, the hashed answers, and the data of the key.
        let words =
            (384 * (n + 2 + 2 * k + sizes.thetas) + 160 * sizes.points.max(n) + 32 * n) as u64 / 32
                + bytes / 32;
        let memory = 3 * words + words * words / 512;
        let hashes = 6 * 672 * instances / 32;
        let code = CODE
            + PER_INSTANCE * instances
            + PER_INSTANCE_AND_TYPE * instances * k as u64
            + PER_WIRE * wires
            + 12 * bytes / 32
            + memory
            + hashes;
        let pairings = pairings(n + 2 + 2 * k + sizes.thetas);
        Self { transaction, floor, pairings, multiplications, code }
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        let used = self.transaction + self.pairings + self.multiplications + self.code;
        used.max(self.floor)
    }
}
