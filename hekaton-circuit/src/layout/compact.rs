//! The slots and wires of a layout in little memory: 4 bytes per slot and 8 per wire. Names and public
//! wires are kept as exceptions, in lists of their own.

use crate::layout::ids::{WireId, WireName, Writer, to_index};
use hekaton_arith::Fr;

/// The maximum number of instances, of slots and of wires in a layout: the highest bit of a slot's code is
/// taken, and so are the two largest codes.
pub(crate) const LIMIT: usize = (1 << 31) - 2;

/// The content of a slot of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Not assigned yet; `build` rejects it.
    Empty,
    /// Declared unused.
    Unused,
    Reads(u32),
    Writes(u32),
}

impl Slot {
    pub(crate) fn wire(self) -> Option<u32> {
        match self {
            Self::Reads(wire) | Self::Writes(wire) => Some(wire),
            _ => None,
        }
    }
}

/// The slots of all instances. A code is a wire below [`LIMIT`], with the highest bit if it is
/// written, or one of two others.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotTable(Vec<u32>);

// Both have the bit `WRITTEN`, so `decode` must look for them first. No written wire has these codes, since
// wires are below `LIMIT`.
const EMPTY: u32 = u32::MAX;
const UNUSED: u32 = u32::MAX - 1;
const WRITTEN: u32 = 1 << 31;

impl SlotTable {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends empty slots.
    pub(crate) fn extend(&mut self, count: usize) {
        self.0.resize(self.0.len() + count, EMPTY);
    }

    pub(crate) fn get(&self, place: usize) -> Slot {
        decode(self.0[place])
    }

    pub(crate) fn set(&mut self, place: usize, slot: Slot) {
        self.0[place] = match slot {
            Slot::Empty => EMPTY,
            Slot::Unused => UNUSED,
            Slot::Reads(wire) => wire,
            Slot::Writes(wire) => wire | WRITTEN,
        };
    }

    pub(crate) fn range(&self, start: usize, count: usize) -> impl Iterator<Item = Slot> + '_ {
        self.0[start..start + count].iter().map(|code| decode(*code))
    }

    /// The place of the first slot with this content.
    pub(crate) fn position(&self, slot: Slot) -> Option<usize> {
        self.0.iter().position(|code| decode(*code) == slot)
    }
}

fn decode(code: u32) -> Slot {
    match code {
        EMPTY => Slot::Empty,
        UNUSED => Slot::Unused,
        wire if wire & WRITTEN != 0 => Slot::Writes(wire ^ WRITTEN),
        wire => Slot::Reads(wire),
    }
}

/// The verifier's part in a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Private,
    PublicInput,
    PublicOutput,
    /// Written by the verifier with this value.
    Constant(Fr),
}

impl Visibility {
    /// Reports whether the verifier receives the value.
    pub(crate) fn is_public(self) -> bool {
        matches!(self, Self::PublicInput | Self::PublicOutput)
    }
}

/// A list of words that a [`WireTable`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words(u32);

/// The form in which the name of a wire is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    Name(WireName),
    /// By the word at a place of a list, and a number.
    Word {
        words: Words,
        place: u32,
        index: u64,
    },
}

/// Wires with consecutive names, of which only the first name is kept: either one word with numbers that
/// count up, or one number with words in the order of their list.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    name: Naming,
}

impl Run {
    /// The name of a wire of this run.
    fn name(self, wire: WireId) -> Option<Naming> {
        let offset = wire.0 - self.first;
        Some(match self.name {
            Naming::Name(WireName(word, index)) => {
                Naming::Name(WireName(word, index.checked_add(u64::from(offset))?))
            }
            Naming::Word { words, place, index } => {
                Naming::Word { words, place: place.checked_add(offset)?, index }
            }
        })
    }
}

/// The wires of a layout.
#[derive(Clone, Debug, Default)]
pub(crate) struct WireTable {
    /// The instance that writes each wire, or one of the codes below.
    writers: Vec<u32>,
    readers: Vec<u32>,
    /// The wires that are not private, in order.
    special: Vec<(WireId, Visibility)>,
    runs: Vec<Run>,
    words: Vec<Vec<&'static str>>,
}

// Instances are below `LIMIT`, so these are none of them.
const NOBODY: u32 = u32::MAX;
const VERIFIER: u32 = u32::MAX - 1;
const KEY: u32 = u32::MAX - 2;

impl WireTable {
    pub(crate) fn len(&self) -> usize {
        self.writers.len()
    }

    /// Appends a wire, with the verifier's part in it (spec: memory-check#addresses).
    pub(crate) fn push(&mut self, name: Naming, visibility: Visibility) -> WireId {
        let id = WireId(to_index(self.len()));
        let (writer, readers) = match visibility {
            Visibility::Private => (NOBODY, 0),
            Visibility::PublicInput => (VERIFIER, 0),
            // The verifier is its first reader.
            Visibility::PublicOutput => (NOBODY, 1),
            Visibility::Constant(_) => (KEY, 0),
        };
        self.writers.push(writer);
        self.readers.push(readers);
        if visibility != Visibility::Private {
            self.special.push((id, visibility));
        }
        // A loop that declares wires in order makes one run, however many wires there are.
        let continues = self.runs.last().is_some_and(|run| run.name(id) == Some(name));
        if !continues {
            self.runs.push(Run { first: id.0, name });
        }
        id
    }

    /// Keeps a list of words.
    pub(crate) fn words(&mut self, words: Vec<&'static str>) -> Words {
        self.words.push(words);
        Words(to_index(self.words.len() - 1))
    }

    pub(crate) fn name(&self, wire: WireId) -> WireName {
        let run = self.runs[self.runs.partition_point(|run| run.first <= wire.0) - 1];
        // A wire joins a run only if its name is the one that the run computes.
        match run.name(wire).expect("the name was compared when the wire was added") {
            Naming::Name(name) => name,
            Naming::Word { words, place, index } => {
                WireName(self.words[words.0 as usize][place as usize], index)
            }
        }
    }

    /// The first wire with a name. It searches.
    pub(crate) fn named(&self, word: &str, index: u64) -> Option<WireId> {
        let ends = (self.runs.iter().skip(1).map(|run| run.first)).chain([to_index(self.len())]);
        (self.runs.iter().zip(ends)).find_map(|(run, end)| {
            let offset = match run.name {
                Naming::Name(WireName(own, first)) => {
                    u32::try_from(index.checked_sub(first).filter(|_| own == word)?).ok()?
                }
                Naming::Word { words, place, index: own } => {
                    let list = self.words[words.0 as usize].get(place as usize..)?;
                    let offset = list.iter().position(|w| *w == word).filter(|_| own == index)?;
                    to_index(offset)
                }
            };
            run.first.checked_add(offset).filter(|wire| *wire < end).map(WireId)
        })
    }

    pub(crate) fn writer(&self, wire: WireId) -> Option<Writer> {
        match self.writers[wire.index()] {
            NOBODY => None,
            VERIFIER => Some(Writer::Verifier),
            KEY => Some(Writer::Key),
            instance => Some(Writer::Instance(instance as usize)),
        }
    }

    /// Makes an instance the writer, or returns the present writer.
    pub(crate) fn set_writer(&mut self, wire: WireId, instance: u32) -> Result<(), Writer> {
        // Public inputs and constants have the verifier and the key as writers from the beginning.
        match self.writer(wire) {
            Some(first) => Err(first),
            None => {
                self.writers[wire.index()] = instance;
                Ok(())
            }
        }
    }

    /// The number of readers, of which the verifier is one for a public output.
    pub(crate) fn readers(&self, wire: WireId) -> u32 {
        self.readers[wire.index()]
    }

    /// Adds a reader. There are fewer slots than a `u32` counts.
    pub(crate) fn add_reader(&mut self, wire: WireId) {
        self.readers[wire.index()] += 1;
    }

    /// The wires that are not private, in order.
    pub(crate) fn special(&self) -> &[(WireId, Visibility)] {
        &self.special
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_what_was_set() {
        let mut table = SlotTable::default();
        table.extend(4);
        let last = to_index(LIMIT - 1);
        let slots = [Slot::Unused, Slot::Reads(last), Slot::Writes(last), Slot::Writes(0)];
        for (place, slot) in slots.into_iter().enumerate() {
            assert_eq!(table.get(place), Slot::Empty);
            assert_eq!(table.position(Slot::Empty), Some(place));
            table.set(place, slot);
            assert_eq!(table.get(place), slot);
        }
        assert_eq!(table.range(1, 3).collect::<Vec<_>>(), slots[1..]);
        assert_eq!((table.len(), table.position(Slot::Empty)), (4, None));
    }

    #[test]
    fn names_are_found_in_both_directions() {
        let mut table = WireTable::default();
        let names = [("x", 0), ("x", 1), ("x", 3), ("y", 4), ("y", 5), ("x", 2), ("z", u64::MAX)];
        for (word, index) in names {
            table.push(Naming::Name(WireName(word, index)), Visibility::Private);
        }
        // A run that would end beyond the last number.
        table.push(Naming::Name(WireName("z", 0)), Visibility::Private);
        assert_eq!(table.runs.len(), 6);
        let words = table.words(vec!["", "a", "b", "c"]);
        for (place, index) in [(1, 0), (2, 0), (3, 0), (1, 1), (3, 1)] {
            table.push(Naming::Word { words, place, index }, Visibility::Private);
        }
        assert_eq!(table.runs.len(), 9);
        let worded = [("z", 0), ("a", 0), ("b", 0), ("c", 0), ("a", 1), ("c", 1)];
        for (i, (word, index)) in names.into_iter().chain(worded).enumerate() {
            let wire = WireId(to_index(i));
            assert_eq!(table.name(wire), WireName(word, index));
            assert_eq!(table.named(word, index), Some(wire));
        }
        for (word, index) in [("x", 4), ("y", 3), ("y", 6), ("d", 0), ("b", 1), ("c", 2)] {
            assert_eq!(table.named(word, index), None);
        }
    }

    #[test]
    fn wires_have_one_writer() {
        let mut table = WireTable::default();
        let one = Visibility::Constant(Fr::from(1u64));
        let all = [Visibility::Private, Visibility::PublicInput, Visibility::PublicOutput, one];
        let ids = all.map(|visibility| table.push(Naming::Name(WireName("w", 0)), visibility));
        let writers = [None, Some(Writer::Verifier), None, Some(Writer::Key)];
        assert_eq!(ids.map(|id| table.writer(id)), writers);
        assert_eq!(ids.map(|id| table.readers(id)), [0, 0, 1, 0]);
        assert_eq!(ids.map(|id| table.set_writer(id, 7).is_ok()), [true, false, true, false]);
        assert_eq!(table.writer(ids[0]), Some(Writer::Instance(7)));
        assert_eq!(table.set_writer(ids[0], 8), Err(Writer::Instance(7)));
        table.add_reader(ids[2]);
        assert_eq!(table.readers(ids[2]), 2);
        let special: Vec<_> = ids[1..].iter().copied().zip(all[1..].iter().copied()).collect();
        assert_eq!(table.special(), special);
    }
}
