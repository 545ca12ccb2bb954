//! Times of the stages of the pipeline, and the choice of the fastest mode.

use super::options::Mode;
use std::time::Duration;

/// The share of new figures in averages.
const SHARE: f64 = 1.0 / 16.0;

/// The number of commits after which the figures are meaningful.
const ENOUGH: u64 = 8;

/// The factor by which a mode must be faster to be chosen.
const GAIN: f64 = 1.05;

/// Statistics of the commits of this process. Times are in seconds; averages are of the last few commits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The commits that were written.
    pub commits: u64,
    /// The updates in them.
    pub updates: u64,
    /// The average time of the first stage.
    pub compute: f64,
    /// The average time of writing rows.
    pub write: f64,
    /// The average time of writing the head and signing, and of waiting for commits before.
    pub sign: f64,
    /// The average time that a commit waited for the second stage.
    pub wait: f64,
    /// The average time that the second stage waited for a commit.
    pub idle: f64,
    /// The average CPU time of the whole process between two commits.
    pub cpu: f64,
    computed: u64,
}

fn mix(average: &mut f64, count: u64, new: Duration) {
    let share = if count < ENOUGH { 1.0 / (count as f64 + 1.0) } else { SHARE };
    *average += share * (new.as_secs_f64() - *average);
}

impl Stats {
    pub(crate) fn computed(&mut self, updates: usize, took: Duration, cpu: Duration) {
        mix(&mut self.compute, self.computed, took);
        mix(&mut self.cpu, self.computed, cpu);
        self.computed += 1;
        self.updates += updates as u64;
    }

    pub(crate) fn written(&mut self, rows: Duration, all: Duration) {
        mix(&mut self.write, self.commits, rows);
        mix(&mut self.sign, self.commits, all.saturating_sub(rows));
        self.commits += 1;
    }

    pub(crate) fn waited(&mut self, wait: Duration) {
        mix(&mut self.wait, self.computed, wait);
    }

    pub(crate) fn idle(&mut self, idle: Duration) {
        mix(&mut self.idle, self.commits, idle);
    }

    /// Returns the factor by which commits are faster with the two stages side by side, if nothing else limits them.
    /// The CPU time stays the same, so a commit takes no less than that time divided by the number of cores.
    pub fn predicted_gain(&self) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        gain(self.compute, self.write + self.sign, self.cpu / cores as f64)
    }

    /// The faster one of the modes serial and pipelined.
    pub(crate) fn best(&self) -> Mode {
        match self.commits.min(self.computed) >= ENOUGH && self.predicted_gain() >= GAIN {
            true => Mode::Pipelined,
            false => Mode::Serial,
        }
    }
}

fn gain(compute: f64, write: f64, work: f64) -> f64 {
    let slowest = compute.max(write).max(work);
    if slowest == 0.0 { 1.0 } else { ((compute + write) / slowest).max(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gain_is_bounded_by_the_work() {
        // Two stages of 18 and 26 ms would be 1.7 times as fast side by side; 263 ms of work on 8 cores forbid it.
        assert!((gain(17.7, 25.9, 0.0) - 43.6 / 25.9).abs() < 1e-9);
        assert!((gain(17.7, 25.9, 263.0 / 8.0) - 43.6 * 8.0 / 263.0).abs() < 1e-9);
        assert_eq!(gain(10.0, 10.0, 40.0), 1.0);
    }

    #[test]
    fn auto_stays_serial_without_figures_or_gain() {
        let mut stats = Stats::default();
        let (slow, quick) = (Duration::from_millis(20), Duration::from_millis(1));
        assert_eq!(stats.best(), Mode::Serial);
        for _ in 0..ENOUGH {
            stats.computed(1, slow, quick);
            stats.written(slow, slow);
        }
        assert_eq!(stats.best(), Mode::Pipelined);
        for _ in 0..200 {
            // Provers on all cores.
            stats.computed(1, slow, 100 * slow);
            stats.written(slow, slow);
        }
        assert_eq!(stats.best(), Mode::Serial);
    }
}
