//! A list in which only a few places may be filled. Its memory depends on these, not on the length.

/// The number of places per page: 64 field elements are a few kilobytes, and neighbors are filled
/// together, since the wires of one instance follow each other.
const PAGE: usize = 64;

/// A list of optional values in pages, which exist only once one of their places is filled.
#[derive(Clone, Debug)]
pub(crate) struct Pages<T> {
    length: usize,
    pages: Vec<Option<Box<[Option<T>; PAGE]>>>,
}

impl<T: Copy> Pages<T> {
    /// `length` empty places.
    pub(crate) fn new(length: usize) -> Self {
        Self { length, pages: vec![None; length.div_ceil(PAGE)] }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The value at a place; `None` if it is empty or beyond the end.
    pub(crate) fn get(&self, place: usize) -> Option<T> {
        self.pages.get(place / PAGE)?.as_ref()?[place % PAGE]
    }

    /// Fills a place.
    ///
    /// # Panics
    /// If the place is beyond the end.
    pub(crate) fn set(&mut self, place: usize, value: T) {
        assert!(place < self.length, "place {place} of {}", self.length);
        let page = self.pages[place / PAGE].get_or_insert_with(|| Box::new([None; PAGE]));
        page[place % PAGE] = Some(value);
    }

    /// Keeps only these places, and frees the pages without any of them.
    pub(crate) fn retain(&mut self, places: impl Iterator<Item = usize>) {
        let mut kept = Self::new(self.length);
        for place in places {
            if let Some(value) = self.get(place) {
                kept.set(place, value);
            }
        }
        *self = kept;
    }

    /// The filled places, in order.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (usize, T)> + '_ {
        let pages = (self.pages.iter().enumerate())
            .filter_map(|(i, page)| Some((i * PAGE, page.as_ref()?)));
        pages.flat_map(|(start, page)| {
            page.iter().enumerate().filter_map(move |(i, x)| Some((start + i, (*x)?)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_filled_pages_take_memory() {
        let mut list = Pages::new(10 * PAGE + 3);
        assert_eq!((list.len(), list.get(0), list.get(10 * PAGE + 2)), (643, None, None));
        for (place, value) in [(1, 'a'), (10 * PAGE + 2, 'b'), (PAGE, 'c'), (1, 'd')] {
            list.set(place, value);
        }
        assert_eq!(list.filled().collect::<Vec<_>>(), [(1, 'd'), (PAGE, 'c'), (642, 'b')]);
        assert_eq!((list.get(2), list.get(643), list.get(usize::MAX)), (None, None, None));
        let pages = |list: &Pages<char>| list.pages.iter().filter(|page| page.is_some()).count();
        assert_eq!(pages(&list), 3);
        list.retain([1, 2].into_iter());
        assert_eq!((list.filled().collect::<Vec<_>>(), pages(&list)), (vec![(1, 'd')], 1));
    }

    #[test]
    #[should_panic(expected = "place 3 of 3")]
    fn no_place_beyond_the_end() {
        Pages::new(3).set(3, ());
    }
}
