//! The logs of a directory in tiles: how they grow, and proofs from them (RFC 9162).

use super::damaged::Damaged;
use super::error::Error;
use super::rows::{self, LogKind, LogPlace};
use super::store::{Store, Table};
use hekaton_directory::{Digest, Record, log, log::Complete, log::Frontier};
use std::ops::ControlFlow;

/// The number of levels of a tile.
const LEVELS: u32 = 8;

/// The number of entries that the log of a record has, and their root.
fn size_and_root(kind: LogKind, record: &Record) -> (u64, Digest) {
    match kind {
        LogKind::Updates => (record.log_size, record.log_root),
        LogKind::Records => (record.epoch.into(), record.records),
    }
}

/// The end of a log, and of each level of its tiles the one that is not full.
#[derive(Clone, Debug)]
pub(crate) struct LogTiles {
    kind: LogKind,
    frontier: Frontier,
    tails: Vec<Vec<Digest>>,
}

impl LogTiles {
    /// Reads the end of a log as a record has it.
    pub(crate) fn read(store: &dyn Store, kind: LogKind, record: &Record) -> Result<Self, Error> {
        let (size, root) = size_and_root(kind, record);
        let mut tails = Vec::new();
        for level in 0.. {
            let digests = size.checked_shr(LEVELS * u32::from(level)).unwrap_or(0);
            if digests == 0 {
                break;
            }
            let place = kind.place(level, digests >> LEVELS);
            let count = digests & 0xff;
            let tail = match count {
                0 => Vec::new(),
                _ if !kind.has_tiles(level) => entries(store, digests - count, count)?,
                _ => tile(store, place, record.epoch)?,
            };
            if tail.len() as u64 != count {
                let why = format!("it has {} digests, expected {count}", tail.len());
                return Err(Damaged::new(Table::Log, &place.encode(), why).into());
            }
            tails.push(tail);
        }
        // A peak is the root of digests at the end of the tile of its level.
        let peaks = (0..64).map(|level: u32| {
            if size >> level & 1 == 0 {
                return None;
            }
            let width = 1usize << (level % LEVELS);
            let tail = &tails[(level / LEVELS) as usize];
            // Smaller peaks are behind it.
            let behind = tail.len() % width;
            Some(log::root_of(&tail[tail.len() - behind - width..tail.len() - behind]))
        });
        let frontier = Frontier::of(size, peaks.collect());
        // With damaged tiles, the next record would be signed with a log that does not continue this one.
        if frontier.root() != root {
            let what = match kind {
                LogKind::Updates => "log's tiles have",
                LogKind::Records => "records before it have",
            };
            let why = format!("the {what} another root than the record");
            return Err(Damaged::new(Table::Epoch, &record.epoch.to_be_bytes(), why).into());
        }
        Ok(Self { kind, frontier, tails })
    }

    pub(crate) fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Appends entries, and returns the tiles that have changed.
    pub(crate) fn append(&mut self, digests: &[Digest]) -> Vec<(LogPlace, Vec<u8>)> {
        let mut out = Vec::new();
        let mut changed = Vec::new();
        for Complete { level, index, digest } in self.frontier.append(digests) {
            if !level.is_multiple_of(LEVELS) {
                continue;
            }
            let at = (level / LEVELS) as usize;
            if self.tails.len() <= at {
                self.tails.push(Vec::new());
            }
            let tail = &mut self.tails[at];
            tail.push(digest);
            #[allow(clippy::cast_possible_truncation, reason = "at most 8")]
            let (tile_level, number) = (at as u8, index >> LEVELS);
            // A full tile never changes again. The others are written once, after the last entry.
            if tail.len() == 1 << LEVELS {
                out.push((tile_level, number, std::mem::take(tail).concat()));
            } else if changed.last() != Some(&(tile_level, number)) {
                changed.push((tile_level, number));
            }
        }
        // The last tile of each level is not full, if it was begun.
        for (level, number) in changed {
            let tail = &self.tails[usize::from(level)];
            let last = self.frontier.size() >> (LEVELS * (u32::from(level) + 1));
            if number == last && !tail.is_empty() {
                out.push((level, number, tail.concat()));
            }
        }
        out.retain(|(level, ..)| self.kind.has_tiles(*level));
        out.into_iter()
            .map(|(level, number, tile)| (self.kind.place(level, number), tile))
            .collect()
    }
}

/// The digests of a tile of a log, as an epoch has it.
pub(crate) fn tile(store: &dyn Store, place: LogPlace, epoch: u32) -> Result<Vec<Digest>, Error> {
    let key = place.encode();
    let damaged = |why: &str| Damaged::new(Table::Log, &key, why);
    let bytes =
        rows::newest(store, Table::Log, &key, epoch)?.ok_or_else(|| damaged("it is missing"))?;
    let (digests, rest) = bytes.as_chunks::<32>();
    match rest.is_empty() && digests.len() <= 1 << LEVELS {
        true => Ok(digests.to_vec()),
        false => Err(damaged("it is no list of digests").into()),
    }
}

/// Entries of the log of records, from the rows of the records.
fn entries(store: &dyn Store, first: u64, count: u64) -> Result<Vec<Digest>, Error> {
    // Epochs are numbers of 4 bytes, so an entry beyond them is in no log.
    let key = |epoch: u64| epoch.to_be_bytes()[4..].to_vec();
    let mut entries = Vec::new();
    store.scan(Table::Epoch, &key(first), &key(first + count - 1), &mut |_, record| {
        entries.push(log::entry(record));
        ControlFlow::Continue(())
    })?;
    match entries.len() as u64 == count {
        true => Ok(entries),
        false => {
            let why = format!("it, or one of the {count} records from it on, is missing");
            Err(Damaged::new(Table::Epoch, &key(first), why).into())
        }
    }
}

/// A log in a database, for proofs.
pub(crate) struct LogReader<'s> {
    store: &'s dyn Store,
    kind: LogKind,
    /// The epoch as of which tiles are read. They are those of earlier epochs as well, since tiles only grow.
    epoch: u32,
}

impl<'s> LogReader<'s> {
    pub(crate) fn new(store: &'s dyn Store, kind: LogKind, epoch: u32) -> Self {
        Self { store, kind, epoch }
    }

    /// The proof that a log of `size` entries has one, for [`log::contains`].
    pub(crate) fn entry(&self, entry: u64, size: u64) -> Result<Vec<Digest>, Error> {
        if entry >= size {
            return Err(Error::NoEntry { entry, size });
        }
        let mut proof = Vec::new();
        self.beside(entry, 0, size, &mut proof)?;
        Ok(proof)
    }

    /// The proof that a log of `size` entries continues one of `old` entries, for [`log::continues`].
    pub(crate) fn continues(&self, old: u64, size: u64) -> Result<Vec<Digest>, Error> {
        match old {
            old if old > size => Err(Error::NoEntry { entry: old - 1, size }),
            old if old == size || old == 0 => Ok(Vec::new()),
            old => {
                let mut proof = Vec::new();
                self.continued(old, 0, size, true, &mut proof)?;
                Ok(proof)
            }
        }
    }

    /// The roots of the largest complete subtrees of a log of `size` entries, as in [`Frontier::peaks`].
    pub(crate) fn peaks(&self, size: u64) -> Result<Vec<Digest>, Error> {
        let levels = (0..u64::BITS).filter(|level| size >> level & 1 == 1);
        levels.map(|level| self.root(((size >> level) ^ 1) << level, 1 << level)).collect()
    }

    /// Appends the roots of the siblings on the way to an entry among those from `first` on, `size` of them
    /// (RFC 9162, section 2.1.3.1).
    fn beside(
        &self,
        entry: u64,
        first: u64,
        size: u64,
        proof: &mut Vec<Digest>,
    ) -> Result<(), Error> {
        if size == 1 {
            return Ok(());
        }
        let left = size.next_power_of_two() / 2;
        let (below, beside) = match entry < first + left {
            true => ((first, left), (first + left, size - left)),
            false => ((first + left, size - left), (first, left)),
        };
        self.beside(entry, below.0, below.1, proof)?;
        proof.push(self.root(beside.0, beside.1)?);
        Ok(())
    }

    /// The roots that lead from the first `old` entries to all (RFC 9162, section 2.1.4.1).
    fn continued(
        &self,
        old: u64,
        first: u64,
        size: u64,
        whole: bool,
        proof: &mut Vec<Digest>,
    ) -> Result<(), Error> {
        if old == size {
            if !whole {
                proof.push(self.root(first, size)?);
            }
            return Ok(());
        }
        let left = size.next_power_of_two() / 2;
        if old <= left {
            self.continued(old, first, left, whole, proof)?;
            proof.push(self.root(first + left, size - left)?);
        } else {
            self.continued(old - left, first + left, size - left, false, proof)?;
            proof.push(self.root(first, left)?);
        }
        Ok(())
    }

    /// The root of a subtree: `size` entries from `first` on.
    fn root(&self, first: u64, size: u64) -> Result<Digest, Error> {
        if !size.is_power_of_two() {
            let left = size.next_power_of_two() / 2;
            let (left, right) = (self.root(first, left)?, self.root(first + left, size - left)?);
            return Ok(log::node(&left, &right));
        }
        // A complete one: its root is that of digests of one tile.
        let level = size.trailing_zeros() / LEVELS;
        let (at, width) = (first >> (LEVELS * level), 1u64 << (size.trailing_zeros() % LEVELS));
        #[allow(clippy::cast_possible_truncation, reason = "at most 8")]
        let level = level as u8;
        if !self.kind.has_tiles(level) {
            return Ok(log::root_of(&entries(self.store, at, width)?));
        }
        let place = self.kind.place(level, at >> LEVELS);
        let contents = tile(self.store, place, self.epoch)?;
        #[allow(clippy::cast_possible_truncation, reason = "below 512")]
        let (from, to) = ((at & 0xff) as usize, ((at & 0xff) + width) as usize);
        let digests = contents
            .get(from..to)
            .ok_or_else(|| Damaged::new(Table::Log, &place.encode(), "it is too short"))?;
        Ok(log::root_of(digests))
    }
}
