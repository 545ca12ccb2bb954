//! Jobs that have to be made repeatedly.
//!
//! Another client, such as a script or a second intake with a different last payload, may keep canceling the jobs that this intake
//! makes, or keep putting other blocks in their place. Each then undoes the other's work, and nothing is published. Therefore,
//! records report such jobs, and the intake makes them less and less often until the chain has published a block.

use alloy_primitives::B256;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The number of repetitions after which the record of a block reports them.
const SAID: u32 = 5;

/// The number of repetitions without a pause. The next one waits for `PAUSE`, and each one after that twice as long as before.
const FREE: u32 = 10;
const PAUSE: Duration = Duration::from_secs(10);
const MAX_PAUSE: Duration = Duration::from_secs(600);

/// The number of times that the job of each block had to be made again since the chain last published something.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// The entry at which the chain last published something.
    moved: u64,
    blocks: HashMap<B256, Times>,
}

#[derive(Debug)]
struct Times {
    count: u32,
    /// The time from which on the job may be made again.
    next: Instant,
}

impl Again {
    /// Starts over if the chain has published something since.
    pub(crate) fn forget_before(&mut self, moved: u64) {
        if self.moved != moved {
            *self = Self { moved, blocks: HashMap::new() };
        }
    }

    /// Counts that the job of a block has to be made again. Returns `false` if it has to wait.
    pub(crate) fn is_time(&mut self, block: &B256, now: Instant) -> bool {
        let times = self.blocks.entry(*block).or_insert(Times { count: 0, next: now });
        if now < times.next {
            return false;
        }
        times.count = times.count.saturating_add(1);
        if let Some(more) = times.count.checked_sub(FREE) {
            // Six doublings exceed the longest pause, and some dozens would overflow the shift.
            times.next = now + PAUSE.saturating_mul(1 << more.min(6)).min(MAX_PAUSE);
        }
        true
    }

    /// Reports that the job of a block was made repeatedly, if it was.
    pub(crate) fn why(&self, block: &B256) -> Option<String> {
        let times = self.blocks.get(block).map(|times| times.count).filter(|it| *it >= SAID)?;
        Some(format!(
            "its job was cancelled, or another block was in its place, {times} times since the chain last published a block: check who else cancels jobs or reverts the chain"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_undone_again_and_again_is_said_and_waits() {
        let (mut again, block, start) = (Again::default(), B256::repeat_byte(1), Instant::now());
        again.forget_before(7);
        for time in 1..=FREE {
            assert_eq!(again.why(&block).is_some(), time > SAID, "{time}");
            assert!(again.is_time(&block, start), "{time}");
        }
        // From then on, the job is made in fewer and fewer rounds.
        let rounds = (1..=360).filter(|at| again.is_time(&block, start + *at * PAUSE)).count();
        assert!((8..=14).contains(&rounds), "{rounds} in an hour");
        assert!(
            again
                .why(&block)
                .is_some_and(|why| why.contains(&format!("{} times", FREE as usize + rounds)))
        );
        // Other blocks do not wait for it, nor does it once the chain has published something.
        assert!(again.is_time(&B256::repeat_byte(2), start));
        again.forget_before(7);
        assert!(!again.is_time(&block, start));
        again.forget_before(8);
        assert!(again.is_time(&block, start) && again.why(&block).is_none());
    }
}
