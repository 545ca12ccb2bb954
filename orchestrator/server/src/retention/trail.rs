//! The published blocks of a chain with strict order, and how far they may be removed.

use crate::record::{Floor, Publication, ReadError, decode};
use crate::store::{Rev, Store};
use hekaton_orchestrator_client::Name;
use std::collections::VecDeque;

/// The number of entries of a log that are read at once.
const PAGE: usize = 256;

/// A published or skipped block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) parent: Name,
    pub(super) id: Name,
    pub(super) height: u64,
    /// The revision of its entry in the log.
    pub(super) rev: u64,
}

/// The blocks that a chain has published, without those that were torn off, and without old ones whose jobs were removed.
#[derive(Debug, Default)]
pub(super) struct Trail {
    pub(super) blocks: VecDeque<Block>,
    last: Option<Rev>,
}

impl Trail {
    /// Reads what was published since the last call.
    pub(super) async fn read_on(&mut self, store: &dyn Store, log: &str) -> Result<(), ReadError> {
        loop {
            let after = self.last.map_or(0, |last| last.number);
            let entries = store.read(log, after, PAGE).await?;
            if entries.is_empty() {
                return Ok(());
            }
            for entry in &entries {
                self.add(decode::<Publication>(entry)?.value, entry.rev.number);
                self.last = Some(entry.rev);
            }
        }
    }

    fn add(&mut self, publication: Publication, rev: u64) {
        match publication {
            Publication::Block { block: height, id, parent, .. }
            | Publication::Skip { block: height, id, parent } => {
                self.blocks.push_back(Block { parent, id, height, rev });
            }
            // Blocks that were forgotten are below the floor, to which no chain is reverted: what is not found is the genesis.
            Publication::Revert { to, .. } => {
                let keep = self.blocks.iter().position(|block| block.id == to);
                self.blocks.truncate(keep.map_or(0, |keep| keep + 1));
            }
        }
    }

    /// The block of a height. Heights rise along a chain.
    fn at(&self, height: u64) -> Option<&Block> {
        let at = self.blocks.partition_point(|block| block.height < height);
        self.blocks.get(at).filter(|block| block.height == height)
    }

    pub(super) fn has(&self, height: u64, parent: &Name, id: &Name) -> bool {
        self.at(height).is_some_and(|block| block.parent == *parent && block.id == *id)
    }

    pub(super) fn is_on(&self, floor: &Floor) -> bool {
        self.at(floor.block).is_some_and(|block| block.id == floor.id)
    }

    /// Returns the last block that was published up to a revision, is at most at a height, and has at least `last` blocks after it.
    pub(super) fn last_old(&self, horizon: u64, most: u64, last: usize) -> Option<&Block> {
        let is_old = |block: &&Block| block.rev <= horizon && block.height <= most;
        self.blocks.iter().rev().skip(last).find(is_old)
    }

    /// The height of the last block.
    pub(super) fn height(&self) -> Option<u64> {
        self.blocks.back().map(|block| block.height)
    }

    /// The height of the last block that is at most at a height.
    pub(super) fn height_upto(&self, most: u64) -> Option<u64> {
        self.blocks.iter().rev().map(|block| block.height).find(|height| *height <= most)
    }

    /// Forgets the blocks below a height, whose jobs were removed.
    pub(super) fn forget(&mut self, height: u64) {
        while self.blocks.front().is_some_and(|block| block.height < height) {
            self.blocks.pop_front();
        }
    }
}
