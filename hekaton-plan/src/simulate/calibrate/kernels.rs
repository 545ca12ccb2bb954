//! Constants of the processor: points, pairings and digests.

use super::super::constants::{Constant, Constants};
use super::clock::{Measurement, per_call, thread};
use crate::calibration::{long_scalars, points};
use hekaton_arith::{Domain, G1Point, G2Point, Group, MillerLoop, Scalars};
use hekaton_core::LocalEngine;

/// The number of points in a batched check. Below 2,048, points are checked one by one.
const BATCH: usize = 1 << 14;

/// Decoding with and without the subgroup check, and the share of a point in a batched check.
fn group<G: Group>() -> [Measurement; 3] {
    let some = points::<G>(BATCH);
    // The last points are sums of several shifts, so their coordinates are like those of any point.
    let encoded: Vec<Vec<u8>> = some[BATCH - 64..].iter().map(G::to_compressed).collect();
    let each = |decode: &dyn Fn(&[u8]) -> bool| {
        per_call(4, || encoded.iter().all(|bytes| decode(bytes))).per(encoded.len() as f64)
    };
    let checked = each(&|bytes| G::from_compressed(bytes).is_ok());
    let unchecked = each(&|bytes| G::on_curve_from_compressed(bytes).is_ok());
    let mut state = 1u64;
    // Random numbers must be unpredictable only to someone who chose the points, which are our own.
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state
    };
    let batch = per_call(1, || G::find_outside(&some, &mut random)).per(BATCH as f64);
    [checked, unchecked, batch]
}

/// Work of a prover, in seconds of the thread's processor time.
fn work() -> f64 {
    let (points, mut values) = (points::<G1Point>(1 << 14), long_scalars(1 << 15));
    let scalars = Scalars::new(&values[..1 << 14]);
    let domain = Domain::new(1 << 15).expect("2^15 is the size of a domain");
    let since = thread();
    for _ in 0..4 {
        std::hint::black_box(G1Point::msm_prepared(&points, &scalars));
        domain.to_coset(&mut values);
    }
    thread() - since
}

/// The rate of a core while all threads of the pool work, over its rate alone.
fn full_node(pool: &LocalEngine) -> Measurement {
    let mean = |times: Vec<f64>| times.iter().sum::<f64>() / times.len().max(1) as f64;
    let mut rates = [0.0; 3];
    for rate in &mut rates {
        let alone = mean(pool.map(vec![()], |()| work()));
        let all = mean(pool.map(vec![(); pool.threads()], |()| work()));
        // A measured rate above 1 is noise: a core is not faster when the others work.
        *rate = (alone / all).min(1.0);
    }
    Measurement::of(rates)
}

pub(super) fn measure(pool: &LocalEngine, out: &mut Constants) {
    use super::put;
    use Constant as C;
    let [checked, unchecked, batch] = group::<G1Point>();
    let batched = "the subgroup check of a batch of 16,384 points, per point";
    put(out, C::DecodeG1Checked, checked, "Group::from_compressed of 64 points");
    put(out, C::DecodeG1Unchecked, unchecked, "Group::on_curve_from_compressed of 64 points");
    put(out, C::MembershipG1Batched, batch, batched);
    let [checked, unchecked, batch] = group::<G2Point>();
    put(out, C::DecodeG2Checked, checked, "Group::from_compressed of 64 points");
    put(out, C::DecodeG2Unchecked, unchecked, "Group::on_curve_from_compressed of 64 points");
    put(out, C::MembershipG2Batched, batch, batched);
    let product = MillerLoop::new(&[G1Point::generator()], &[G2Point::generator()]);
    let bytes = product.to_bytes();
    let multiply = || MillerLoop::from_bytes(&bytes).map(|other| product.combine(&other));
    let how = "decoding a product of Miller loops and multiplying it";
    put(out, C::MillerProduct, per_call(256, multiply), how);
    let bytes = vec![1u8; 1 << 22];
    let hash = per_call(1, || blake3::hash(&bytes)).per(bytes.len() as f64);
    put(out, C::HashByte, hash, "BLAKE3 of 4 MiB on one thread");
    let how = format!(
        "MSM and FFT on {} threads at once over the same on one, processor time",
        pool.threads()
    );
    put(out, C::FullNodeRate, full_node(pool), &how);
}
