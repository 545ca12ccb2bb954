//! Memory for request bodies.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of bytes that are counted at once.
const UNIT: u64 = 64 << 10;

/// Memory for request bodies, in bytes, that all of them share. A body takes room for the bytes that have come, not for those that it
/// announces, so bodies that come slowly or not at all keep no others waiting.
#[derive(Clone, Debug)]
pub struct Room(Arc<Semaphore>);

/// The room that one body has taken; it is returned when this is dropped.
#[derive(Debug)]
pub struct Held {
    room: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
    units: u32,
}

impl Room {
    /// Room for `bytes` bytes, rounded up to 64 KiB.
    pub fn new(bytes: u64) -> Self {
        // More room than a semaphore can count is more than any machine has.
        let units = bytes.div_ceil(UNIT).clamp(1, Semaphore::MAX_PERMITS as u64);
        Self(Arc::new(Semaphore::new(usize::try_from(units).expect("permits are counted by it"))))
    }

    /// Begins a body, which has no bytes yet.
    pub fn begin(&self) -> Held {
        Held { room: Arc::clone(&self.0), held: None, units: 0 }
    }
}

impl Held {
    /// Takes room for a body that has `bytes` bytes by now, and waits at most `wait` for it. Returns false if there is no room:
    /// then the body must be given up, or bodies that wait for each other could stand still.
    pub async fn grow(&mut self, bytes: usize, wait: Duration) -> bool {
        // A body beyond 256 TiB finds no room, since it would take more permits at once than a semaphore gives.
        let Ok(units) = u32::try_from((bytes as u64).div_ceil(UNIT)) else { return false };
        let Some(more) = units.checked_sub(self.units).filter(|more| *more > 0) else {
            return true;
        };
        let more = Arc::clone(&self.room).acquire_many_owned(more);
        let Ok(Ok(more)) = tokio::time::timeout(wait, more).await else { return false };
        match &mut self.held {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        self.units = units;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_hold_what_has_come() {
        let room = Room::new(8 * UNIT);
        let unit = usize::try_from(UNIT).unwrap();
        // Any number of bodies that have hardly begun leaves room for one that comes.
        let mut slow: Vec<Held> = (0..7).map(|_| room.begin()).collect();
        for held in &mut slow {
            assert!(held.grow(1, Duration::ZERO).await && held.grow(2, Duration::ZERO).await);
        }
        let mut quick = room.begin();
        assert!(quick.grow(unit, Duration::ZERO).await);
        assert!(!quick.grow(unit + 1, Duration::ZERO).await, "there are 8 units");
        slow.truncate(4);
        assert!(quick.grow(4 * unit, Duration::ZERO).await);
        assert!(!quick.grow(4 * unit + 1, Duration::ZERO).await);
        // What was refused is not held.
        drop(slow);
        assert!(quick.grow(8 * unit, Duration::ZERO).await);
        drop(quick);
        assert!(room.begin().grow(8 * unit, Duration::ZERO).await);
    }
}
