//! The memory of the machine while it runs, in pages.

use std::collections::HashSet;
use std::sync::Arc;

/// The number of words of a page.
// 8 KiB with their times: small enough that a checkpoint copies little that did not change, large enough
// that the list of pages stays short.
const WORDS: usize = 1 << 10;

/// The number of pages of all addresses below 2^30, above which there is nothing.
// Nothing is mapped above the output at 0x30000000.
const PAGES: usize = 1 << 18;

/// A word, and the cycle of the last access to it; 0 is the beginning. Cycles are below 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) value: u32,
    pub(crate) time: u32,
}

type Page = [Cell; WORDS];

/// The pages of a memory at some time, by their places. Those that did not change since the snapshot before
/// are shared with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot(Vec<Arc<Page>>);

/// The number of pages of some snapshots, those that they share counted once.
pub(crate) fn pages_of<'a>(snapshots: impl Iterator<Item = &'a Snapshot>) -> usize {
    let pages = snapshots.flat_map(|snapshot| snapshot.0.iter().map(Arc::as_ptr));
    pages.collect::<HashSet<_>>().len()
}

/// All words of the memory. Those that were never written are zero.
#[derive(Clone, Debug)]
pub(crate) struct Memory<'a> {
    /// The place of each page plus one, or zero.
    // Pages are opened in the order of their first access, so runs that touch little have little.
    places: Vec<u32>,
    pages: Vec<Page>,
    /// `true` for each page that was accessed since the last snapshot.
    changed: Vec<bool>,
    /// The source of pages that are not there yet.
    before: Option<(&'a Memory<'static>, &'a Snapshot)>,
}

impl<'a> Memory<'a> {
    pub(crate) fn new() -> Self {
        Self { places: vec![0; PAGES], pages: Vec::new(), changed: Vec::new(), before: None }
    }

    /// The memory of a snapshot of `memory`, whose pages are copied when they are accessed.
    pub(crate) fn at(memory: &'a Memory<'static>, snapshot: &'a Snapshot) -> Self {
        Self { before: Some((memory, snapshot)), ..Self::new() }
    }

    /// Keeps the memory as it is; `last` is the snapshot before, or none. Returns also the number of pages
    /// that are not among that one's.
    pub(crate) fn snapshot(&mut self, last: &Snapshot) -> (Snapshot, usize) {
        let changed = std::mem::replace(&mut self.changed, vec![false; self.pages.len()]);
        let (mut pages, mut new) = (Vec::with_capacity(self.pages.len()), 0);
        for (place, (page, changed)) in self.pages.iter().zip(changed).enumerate() {
            pages.push(match last.0.get(place) {
                // Pages keep their places, so the same place in the last snapshot is the same page.
                Some(page) if !changed => page.clone(),
                _ => {
                    new += 1;
                    Arc::new(*page)
                }
            });
        }
        (Snapshot(pages), new)
    }

    /// The cell of a word, by the word's address, which is below 2^28.
    #[inline(always)]
    pub(crate) fn cell(&mut self, word: u32) -> &mut Cell {
        let (page, at) = (word as usize / WORDS, word as usize % WORDS);
        // One comparison on the path of every access; opening a page is cold.
        if self.places[page] == 0 {
            self.open(page);
        }
        let place = self.places[page] as usize - 1;
        self.changed[place] = true;
        &mut self.pages[place][at]
    }

    /// The value of a word, without opening its page: of the first pass, whose memory comes from no snapshot.
    pub(crate) fn value(&self, word: u32) -> u32 {
        debug_assert!(self.before.is_none());
        match self.places[word as usize / WORDS] {
            0 => 0,
            place => self.pages[place as usize - 1][word as usize % WORDS].value,
        }
    }

    /// The memory without what it came from: pages that were not accessed are zero.
    pub(crate) fn into_own(self) -> Memory<'static> {
        Memory { places: self.places, pages: self.pages, changed: self.changed, before: None }
    }

    #[cold]
    fn open(&mut self, page: usize) {
        let before = self.before.and_then(|(memory, snapshot)| {
            let place = memory.places[page].checked_sub(1)?;
            snapshot.0.get(place as usize).map(|page| **page)
        });
        self.pages.push(before.unwrap_or([Cell::default(); WORDS]));
        self.changed.push(true);
        #[allow(clippy::cast_possible_truncation, reason = "at most 2^18 pages")]
        let place = self.pages.len() as u32;
        self.places[page] = place;
    }
}

impl Memory<'static> {
    /// A cell as it is; zero at the beginning if there is none.
    pub(crate) fn get(&self, word: u32) -> Cell {
        match self.places[word as usize / WORDS] {
            0 => Cell::default(),
            place => self.pages[place as usize - 1][word as usize % WORDS],
        }
    }

    /// The words of a range that were accessed, in rising order.
    pub(crate) fn accessed(&self, range: std::ops::Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let pages = range.start as usize / WORDS..(range.end as usize).div_ceil(WORDS);
        let full = pages.filter(|page| self.places[*page] != 0);
        #[allow(clippy::cast_possible_truncation, reason = "addresses of words")]
        let words = full.flat_map(|page| (page * WORDS) as u32..((page + 1) * WORDS) as u32);
        words.filter(move |word| range.contains(word) && self.get(*word).time > 0)
    }
}
