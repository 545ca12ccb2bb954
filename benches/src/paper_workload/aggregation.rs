//! The Miller loops of both aggregations, and the elements of the target group in a proof.

use hekaton_arith::{FixedBase, Fr, G1Point, G2Point, Group, Gt, MillerLoop, powers};

/// The cost of an aggregation of `n` proofs of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Miller loops for each proof.
    pub per_proof: usize,
    /// Miller loops in addition to these.
    pub fixed: usize,
    /// Elements of the target group in the aggregate proof, without those of each GIPA round.
    pub elements: usize,
}

impl Cost {
    /// The aggregation of the paper, as its code does it.
    pub const PAPER: Self = Self { per_proof: 35, fixed: 0, elements: 22 };
    /// Ours, for one type (spec: aggregation#costs).
    pub const OURS: Self = Self { per_proof: 11, fixed: 6, elements: 10 };

    /// The elements of the target group in the proof of `2^levels` subcircuits: six for each GIPA
    /// round.
    pub const fn gt_elements(&self, levels: usize) -> usize {
        self.elements + 6 * levels
    }

    /// The bytes of these elements.
    pub const fn gt_bytes(&self, levels: usize) -> usize {
        self.gt_elements(levels) * Gt::COMPRESSED
    }
}

/// Pairs of points for Miller loops.
#[derive(Debug)]
pub struct Pairs {
    a: Vec<G1Point>,
    b: Vec<G2Point>,
}

impl Pairs {
    /// Creates `n` pairs, but at least as many as [`Cost::fixed`] needs.
    pub fn new(n: usize) -> Self {
        let scalars = powers(Fr::from(u128::MAX), n.max(Cost::OURS.fixed) + 1);
        Self {
            a: FixedBase::new(&G1Point::generator(), n).mul_each(&scalars[1..]),
            b: FixedBase::new(&G2Point::generator(), n).mul_each(&scalars[1..]),
        }
    }

    /// Computes the Miller loops of an aggregation of `n` proofs, a product of `n` at a time, and
    /// returns how many there were.
    pub fn run(&self, n: usize, cost: &Cost) -> usize {
        let lengths = std::iter::repeat_n(n, cost.per_proof).chain([cost.fixed]);
        lengths.fold(0, |loops, length| {
            let (a, b) = (&self.a[..length], &self.b[..length]);
            std::hint::black_box(MillerLoop::new(a, b));
            loops + a.len()
        })
    }
}
