//! Medians with bootstrap intervals, and linear fits.

/// The number of bootstrap resamples.
const RESAMPLES: usize = 10_000;
/// The seed of the resamples: the same measurements always have the same interval.
const SEED: u64 = 1;
/// The relative width of an interval above which a point is noisy.
const NOISY: f64 = 0.10;

/// SplitMix64: small, and the same on every machine and in every version.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Starts a sequence.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`. The bias is n / 2^64.
    #[allow(clippy::cast_possible_truncation, reason = "the result is below n, a usize")]
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Puts items into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// A median and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Summary {
    /// Summarizes some values; `None` if there is no value.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let median = median(&mut values.to_vec())?;
        let mut random = Random::new(SEED);
        let mut resample = vec![0.0; values.len()];
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                resample.fill_with(|| values[random.below(values.len())]);
                self::median(&mut resample)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let at = |part: usize| medians.get(part).copied().unwrap_or(median);
        // 2.5 % and 97.5 %
        Some(Self { median, low: at(RESAMPLES / 40), high: at(RESAMPLES - RESAMPLES / 40 - 1) })
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

    #[test]
    fn shuffles_are_permutations_and_repeatable() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..50).collect();
            Random::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn lines() {
        let fit = Fit::of(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).unwrap();
        assert!((fit.slope - 2.0).abs() < 1e-12 && (fit.r2 - 1.0).abs() < 1e-12);
        assert!(Fit::of(&[(1.0, 1.0), (2.0, 2.0)]).is_none());
    }
}
