//! The time of a contribution, measured on a few of its points.

use crate::genesis::{Chain, Genesis};
use crate::sections::{Group, products};
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point};
use std::time::Instant;

/// The number of points that each thread multiplies for a measurement: about 20 ms in G1.
const SAMPLE: usize = 1 << 10;

/// A contribution reads, checks and sums up its points, too.
const WITH_CHECKS: f64 = 1.25;

/// The seconds that a contribution to some chains is expected to take on the threads of the current pool. This measures for a fraction of
/// a second.
pub fn seconds_of_chains(genesis: &Genesis, chains: &[Chain]) -> f64 {
    let (mut in_g1, mut in_g2) = (0, 0);
    for (_, vectors) in chains.iter().flat_map(|chain| genesis.sections(*chain)) {
        for vector in vectors {
            match vector.group {
                Group::G1 => in_g1 += vector.len,
                Group::G2 => in_g2 += vector.len,
            }
        }
    }
    let mut seconds = 0.0;
    if in_g1 > 0 {
        seconds += in_g1 as f64 * seconds_a_point::<G1Point>();
    }
    if in_g2 > 0 {
        seconds += in_g2 as f64 * seconds_a_point::<G2Point>();
    }
    seconds * WITH_CHECKS
}

fn seconds_a_point<G: hekaton_arith::Group>() -> f64 {
    let n = SAMPLE * rayon::current_num_threads();
    // Any scalars of full length.
    let scalar = -Fr::from(2).inverse().expect("2 is not 0");
    let points = vec![G::generator(); n];
    let start = Instant::now();
    let made = products(&points, &vec![scalar; n]);
    let seconds = start.elapsed().as_secs_f64() / n as f64;
    drop(made);
    seconds
}
