//! Medians with bootstrap intervals, and linear fits.

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

/// The number of bootstrap resamples.
const RESAMPLES: usize = 10_000;
/// The seed of the resamples: the same measurements always have the same interval.
const SEED: u64 = 1;
/// The relative width of an interval above which a point is noisy.
const NOISY: f64 = 0.10;

/// Random numbers for resamples and orders. ChaCha8 is the same on every machine; rand's own generators may change with its
/// version, and a seed in `plan.json` or in a table must keep its meaning.
pub(crate) fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// A median and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Summary {
    // By hand: no maintained crate has bootstrap intervals of a median. A median is the right middle for times on a shared
    // machine, whose distribution has a long tail, and it has no closed interval without assuming a distribution.
    /// Summarizes some values; `None` if there is no value.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let median = median(&mut values.to_vec())?;
        let mut random = random(SEED);
        let mut resample = vec![0.0; values.len()];
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                resample.fill_with(|| *values.choose(&mut random).expect("a median has values"));
                self::median(&mut resample)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        // 2.5 % and 97.5 %
        let (low, high) = (medians[RESAMPLES / 40], medians[RESAMPLES - RESAMPLES / 40 - 1]);
        Some(Self { median, low, high })
    }

    /// The median with its interval: "1.93 (1.90 to 1.95)".
    pub(crate) fn shown(&self) -> String {
        format!("{:.2} ({:.2} to {:.2})", self.median, self.low, self.high)
    }

    /// Reports whether the interval is wider than a tenth of the median.
    pub(crate) fn noisy(&self) -> bool {
        self.high - self.low > NOISY * self.median.abs()
    }
}

/// The median, which is the mean of the middle two of an even number of values.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

/// A line through some points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub(crate) slope: f64,
    /// The part of the variance that the line explains.
    pub(crate) r2: f64,
}

impl Fit {
    /// The least-squares line; `None` for fewer than three points or a single abscissa.
    #[allow(clippy::cast_precision_loss, reason = "few points")]
    pub(crate) fn of(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / n;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>();
        let (xx, yy) = (sum(&|p| (p.0 - x).powi(2)), sum(&|p| (p.1 - y).powi(2)));
        let xy = sum(&|p| (p.0 - x) * (p.1 - y));
        let possible = points.len() > 2 && xx > 0.0 && yy > 0.0;
        possible.then(|| Self { slope: xy / xx, r2: xy * xy / (xx * yy) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_intervals() {
        assert_eq!(Summary::of(&[]), None);
        let one = Summary::of(&[2.0]).unwrap();
        assert_eq!((one.median, one.low, one.high), (2.0, 2.0, 2.0));
        let three = Summary::of(&[3.0, 1.0, 2.0]).unwrap();
        // All three resamples equal the smallest with probability 1/27, which is more than 2.5 %.
        assert_eq!((three.median, three.low, three.high), (2.0, 1.0, 3.0));
        assert!(three.noisy());
        let even = Summary::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(even.median, 2.5);
        let values: Vec<f64> = (0..15).map(|i| 100.0 + f64::from(i % 5)).collect();
        let many = Summary::of(&values).unwrap();
        assert!(many.low >= 101.0 && many.high <= 103.0 && !many.noisy(), "{many:?}");
        assert_eq!(Summary::of(&values), Some(many), "the seed is fixed");
    }

    /// A seed has the same meaning after an update of rand.
    #[test]
    fn orders_of_seeds_do_not_change() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..8).collect();
            items.shuffle(&mut random(seed));
            items
        };
        assert_eq!(shuffled(1), [3, 5, 7, 6, 1, 0, 2, 4]);
        assert_eq!(shuffled(2), [1, 2, 4, 5, 0, 6, 3, 7]);
    }

    #[test]
    fn lines() {
        let fit = Fit::of(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).unwrap();
        assert!((fit.slope - 2.0).abs() < 1e-12 && (fit.r2 - 1.0).abs() < 1e-12);
        assert!(Fit::of(&[(1.0, 1.0), (2.0, 2.0)]).is_none());
    }
}
