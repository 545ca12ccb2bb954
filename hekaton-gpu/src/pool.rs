//! Memory that was freed and is kept for later allocations, within a limit.

use std::collections::BTreeMap;

/// The freed memory of a device, by size, and the number of all bytes that its driver has given.
#[derive(Debug)]
pub(crate) struct Pool {
    free: BTreeMap<usize, Vec<u64>>,
    given: u64,
    /// The most bytes in use and kept.
    pub(crate) limit: u64,
}

impl Default for Pool {
    fn default() -> Self {
        Self { free: BTreeMap::new(), given: 0, limit: u64::MAX }
    }
}

impl Pool {
    /// Returns memory of this size, if some is kept.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<u64> {
        self.free.get_mut(&bytes)?.pop()
    }

    /// Keeps memory that was freed.
    pub(crate) fn put(&mut self, address: u64, bytes: usize) {
        self.free.entry(bytes).or_default().push(address);
    }

    /// Reports whether memory must be returned to the driver before it gives this many bytes. Sizes depend on batches and on
    /// their values, so that some are never asked for again.
    pub(crate) fn must_be_trimmed(&self, bytes: usize) -> bool {
        self.given.saturating_add(bytes as u64) > self.limit && !self.free.is_empty()
    }

    /// The driver has given memory.
    pub(crate) fn has_got(&mut self, bytes: usize) {
        self.given += bytes as u64;
    }

    /// Returns all memory that is kept, for the driver.
    pub(crate) fn drain(&mut self) -> Vec<u64> {
        let free = std::mem::take(&mut self.free);
        let bytes = free.iter().map(|(bytes, list)| (bytes * list.len()) as u64).sum::<u64>();
        self.given = self.given.saturating_sub(bytes);
        free.into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_below_the_limit() {
        let mut pool = Pool { limit: 1000, ..Pool::default() };
        let mut next = 0;
        // A driver, and sizes of which none comes twice.
        for bytes in 100..200 {
            assert_eq!(pool.take(bytes), None);
            if pool.must_be_trimmed(bytes) {
                assert!(!pool.drain().is_empty());
            }
            next += 1;
            pool.has_got(bytes);
            assert!(pool.given <= pool.limit);
            pool.put(next, bytes);
        }
        let kept = pool.free.len();
        assert_eq!(pool.take(199), Some(next), "the last one is kept");
        assert_eq!(pool.drain().len(), kept - 1);
        assert_eq!(pool.given, 199, "which is in use");
        assert!(!pool.must_be_trimmed(5000), "there is nothing to return");
    }
}
