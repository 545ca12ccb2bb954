//! The variance of jobs and ranks, the same in every prediction with the same seed.

use super::cluster::Cluster;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The slowdown factor of a slow rank.
const SLOW: f64 = 1.3;

/// A stream of random factors.
pub(super) struct Noise(ChaCha8Rng);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A uniform number in 0..1.
    fn uniform(&mut self) -> f64 {
        // A double has 53 bits, so each value is exact and 1 never occurs.
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A factor whose logarithm is normally distributed around 0 with this standard deviation.
    pub(super) fn factor(&mut self, sigma: f64) -> f64 {
        // Most calls of a prediction without variance end here.
        if sigma == 0.0 {
            return 1.0;
        }
        // Box and Muller; 1 - u is never 0.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        (sigma * radius * (std::f64::consts::TAU * self.uniform()).cos()).exp()
    }

    /// The time of each rank relative to a rank of normal speed.
    pub(super) fn ranks(&mut self, cluster: &Cluster) -> Vec<f64> {
        let slow = |noise: &mut Self| noise.uniform() < cluster.slow_rank_share;
        (0..cluster.ranks())
            .map(|_| self.factor(cluster.rank_sigma) * if slow(self) { SLOW } else { 1.0 })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_their_deviation() {
        let mut noise = Noise::new(1);
        let logs: Vec<f64> = (0..10_000).map(|_| noise.factor(0.1).ln()).collect();
        let mean = logs.iter().sum::<f64>() / 1e4;
        let deviation = (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e4).sqrt();
        assert!(mean.abs() < 0.004 && (deviation - 0.1).abs() < 0.003, "{mean} {deviation}");
    }

    #[test]
    fn without_variance_nothing_varies() {
        let calm = Cluster { rank_sigma: 0.0, slow_rank_share: 0.0, ..Cluster::default() };
        let calm = calm.with_cores(3200).unwrap();
        assert_eq!(Noise::new(1).ranks(&calm), vec![1.0; 100]);
        let slow = Cluster { slow_rank_share: 1.0, ..calm };
        assert_eq!(Noise::new(1).ranks(&slow), vec![SLOW; 100]);
    }
}
