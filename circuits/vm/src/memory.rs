//! The memory of the machine while it runs, in pages.

/// The number of words of a page.
const WORDS: usize = 1 << 10;

/// The number of pages of all addresses below 2^30, above which there is nothing.
const PAGES: usize = 1 << 18;

/// A word, and the cycle of the last access to it; 0 is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) value: u32,
    pub(crate) time: u64,
}

/// All words of the memory. Those that were never written are zero.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The place of each page plus one, or zero.
    places: Vec<u32>,
    pages: Vec<[Cell; WORDS]>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { places: vec![0; PAGES], pages: Vec::new() }
    }

    /// The cell of a word, by the word's address, which is below 2^28.
    #[inline]
    pub(crate) fn cell(&mut self, word: u32) -> &mut Cell {
        let (page, at) = (word as usize / WORDS, word as usize % WORDS);
        if self.places[page] == 0 {
            self.pages.push([Cell::default(); WORDS]);
            #[allow(clippy::cast_possible_truncation, reason = "at most 2^18 pages")]
            let place = self.pages.len() as u32;
            self.places[page] = place;
        }
        &mut self.pages[self.places[page] as usize - 1][at]
    }

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
