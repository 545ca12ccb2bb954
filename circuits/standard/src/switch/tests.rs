//! The gadgets on words, which a bit switches on and off.

use super::*;
use crate::{keccak, sha256};
use hekaton_circuit::{CheckReport, Closures, Table, TableId, check, count};
use std::sync::{Arc, Mutex};

/// A gadget on words: those that it is given, and those that it makes of them.
#[derive(Clone, Copy, Debug)]
enum Gadget {
    Sha256(usize),
    Keccak(keccak::Pieces),
}

#[derive(Clone, Debug)]
enum Tables {
    Sha256(sha256::Tables),
    Keccak(keccak::Tables),
}

/// The state of the gadget (`true` if on), and the words before and after.
type Given = (bool, Vec<u64>, Vec<u64>);

impl Gadget {
    const ALL: [Self; 4] = [
        Self::Sha256(sha256::Tables::SMALL),
        Self::Sha256(sha256::Tables::LARGE),
        Self::Keccak(keccak::Pieces::SMALL),
        Self::Keccak(keccak::Pieces::LARGE),
    ];

    fn tables(self, table: impl FnMut(&str, Table) -> TableId) -> Tables {
        match self {
            Self::Sha256(longest) => Tables::Sha256(sha256::Tables::new(longest, table)),
            Self::Keccak(pieces) => Tables::Keccak(keccak::Tables::with_words(pieces, table)),
        }
    }

    /// The rows of the gadget, and of its tables.
    fn rows(self) -> (usize, Vec<usize>) {
        match self {
            Self::Sha256(longest) => {
                (sha256::Tables::rows_of_compression(longest), sha256::Tables::rows(longest))
            }
            Self::Keccak(pieces) => (
                keccak::Tables::rows_of_permutation(pieces),
                keccak::Tables::rows_with_words(pieces),
            ),
        }
    }

    /// The numbers of words: given, and made of them.
    fn words(self) -> [usize; 2] {
        match self {
            Self::Sha256(_) => [24, 8],
            Self::Keccak(_) => [50, 50],
        }
    }

    /// Returns the words that other software computes.
    fn expected(self, given: &[u32]) -> Vec<u32> {
        match self {
            Self::Sha256(_) => {
                let mut state: [u32; 8] = given[..8].try_into().unwrap();
                let block: Vec<u8> =
                    given[8..].iter().flat_map(|word| word.to_le_bytes()).collect();
                sha2::compress256(
                    &mut state,
                    &[*sha2::digest::generic_array::GenericArray::from_slice(&block)],
                );
                state.to_vec()
            }
            Self::Keccak(_) => {
                let lane = |words: &[u32]| u64::from(words[0]) | u64::from(words[1]) << 32;
                let mut lanes: [u64; 25] =
                    given.chunks(2).map(lane).collect::<Vec<_>>().try_into().unwrap();
                ::keccak::f1600(&mut lanes);
                lanes.iter().flat_map(|lane| [*lane as u32, (lane >> 32) as u32]).collect()
            }
        }
    }

    fn circuit(self, given: Given) -> Closures<Given> {
        self.circuit_with(given, |table| table)
    }

    fn circuit_with(self, given: Given, change: fn(Table) -> Table) -> Closures<Given> {
        let tables = Arc::new(Mutex::new(None));
        let of_layout = Arc::clone(&tables);
        let [before, after] = self.words();
        Closures::new(
            move |layout| {
                let tables = self.tables(|name, table| layout.table(name, change(table)));
                *of_layout.lock().unwrap() = Some(tables);
                let kind = layout.subcircuit_type("words", 0);
                layout.instance(kind);
                Ok(vec![])
            },
            |_, _| Ok(()),
            move |_| Ok(given.clone()),
            move |subcircuit, given| {
                let missing = SynthesisError::AssignmentMissing;
                let is_on = given.map(|given| given.0);
                let enable = subcircuit.bit(|| is_on.ok_or(missing))?;
                let words = |count: usize, of: fn(&Given) -> &Vec<u64>| -> Result<Vec<_>, _> {
                    let word = |i: usize| given.map(|given| of(given)[i]).ok_or(missing);
                    (0..count).map(|i| subcircuit.commit(|| word(i).map(Fr::from))).collect()
                };
                let (before, after) =
                    (words(before, |given| &given.1)?, words(after, |given| &given.2)?);
                let cs = subcircuit.cs();
                let in_use = || {
                    let values = &cs.borrow().unwrap().assignments.witness_assignment;
                    values.iter().filter(|value| !value.is_zero()).count()
                };
                let before_it = if is_on.is_some() { in_use() } else { 0 };
                match tables.lock().unwrap().clone().unwrap() {
                    Tables::Sha256(tables) => {
                        let (state, block) = before.split_at(8);
                        let [state, after] = [state, &after].map(|words| words.try_into().unwrap());
                        let gadget = sha256::LookUps::new(subcircuit, &tables)?.enabled_by(&enable);
                        gadget.compress_words(state, block.try_into().unwrap(), after)?;
                    }
                    Tables::Keccak(tables) => keccak::LookUps::new(subcircuit, &tables)?
                        .enabled_by(&enable)
                        .permute_words(&before.try_into().unwrap(), &after.try_into().unwrap())?,
                }
                // A gadget that is off marks zeros only.
                assert!(is_on != Some(false) || in_use() == before_it);
                Ok(())
            },
        )
    }

    fn check(self, is_on: bool, before: &[u64], after: &[u64]) -> CheckReport {
        check(&self.circuit((is_on, before.to_vec(), after.to_vec())), &(), |_, _| {}).unwrap()
    }
}

fn numbers(words: &[u32]) -> Vec<u64> {
    words.iter().copied().map(u64::from).collect()
}

/// Words that are different, and some that have all bits or none.
fn given(count: usize, salt: u32) -> Vec<u32> {
    let words = (0..count as u32).map(|i| match (i + salt) % 5 {
        3 => 0,
        4 => u32::MAX,
        _ => (i + salt + 1).wrapping_mul(0x9e37_79b9) ^ (i << 7),
    });
    words.collect()
}

#[test]
fn words_are_those_of_other_software() {
    for (salt, gadget) in (0..).zip(Gadget::ALL) {
        let words = given(gadget.words()[0], salt);
        let (before, after) = (numbers(&words), numbers(&gadget.expected(&words)));
        let report = gadget.check(true, &before, &after);
        assert_eq!((report.violations, report.unbalanced), (vec![], vec![]), "{gadget:?}");
        if gadget.rows().1.iter().sum::<usize>() > 1 << 16 {
            continue;
        }
        // Another bit of a word that it makes, and of one that it is given; a number of 33 bits.
        let places = [0, 1, after.len() - 1];
        for place in places {
            let mut wrong = after.clone();
            wrong[place] ^= 1;
            assert_eq!(gadget.check(true, &before, &wrong).violated, 1, "{gadget:?} {place}");
        }
        let last = before.len() - 1;
        let mut wrong = before.clone();
        wrong[last] += 1 << 32;
        assert_eq!(gadget.check(true, &wrong, &after).violated, 1, "{gadget:?}");
    }
}

/// A gadget that is off works with tables that have no rows, and one that is on is refused.
#[test]
fn tables_that_are_left_out_are_asked_by_nobody() {
    for gadget in [Gadget::ALL[0], Gadget::ALL[2]] {
        let words = given(gadget.words()[0], 0);
        let (before, after) = (numbers(&words), numbers(&gadget.expected(&words)));
        let on = gadget.circuit_with((true, before, after), Table::left_out);
        let error = check(&on, &(), |_, _| {}).unwrap_err().to_string();
        assert!(error.contains("table"), "{error}");
        let [before, after] = gadget.words().map(|count| vec![0; count]);
        let off = gadget.circuit_with((false, before, after), Table::left_out);
        let report = check(&off, &(), |_, _| {}).unwrap();
        assert_eq!((report.violations, report.unbalanced), (vec![], vec![]), "{gadget:?}");
        let types = count(&off).unwrap();
        assert_eq!(types.iter().map(|kind| kind.instances).sum::<usize>(), 1);
    }
}

/// All sizes of pieces but those whose last row could not be switched off are zero, too.
#[test]
fn pieces_of_one_digit_are_refused() {
    for binary in 1..=12 {
        let gadget = Gadget::Keccak(keccak::Pieces { binary, ternary: 4 });
        let circuit = gadget.circuit((false, vec![0; 50], vec![0; 50]));
        let found = check(&circuit, &(), |_, _| {});
        let is_refused = [1, 3, 7, 9].contains(&binary);
        assert_eq!(found.is_err(), is_refused, "{binary}");
        if let Ok(report) = found {
            assert_eq!((report.violations, report.unbalanced), (vec![], vec![]), "{binary}");
        }
    }
}

#[test]
fn gadgets_that_are_off_are_zero() {
    for gadget in Gadget::ALL {
        let [before, after] = gadget.words().map(|count| vec![0; count]);
        let report = gadget.check(false, &before, &after);
        assert_eq!((report.violations, report.unbalanced), (vec![], vec![]), "{gadget:?}");
        let mut wrong = after.clone();
        wrong[3] = 7;
        assert_eq!(gadget.check(false, &before, &wrong).violated, 1, "{gadget:?}");
    }
}

#[test]
fn rows_are_as_many_as_they_say() {
    for gadget in Gadget::ALL {
        let [before, after] = gadget.words().map(|count| vec![0; count]);
        let types = count(&gadget.circuit((false, before, after))).unwrap();
        let own = types.iter().find(|kind| kind.name == "words").unwrap();
        let (rows, of_tables) = gadget.rows();
        // The memory check has one row where there are no slots, and the bit has one.
        assert_eq!(own.constraints, rows + 2, "{gadget:?}");
        let tables = types.iter().filter(|kind| kind.name != "words");
        let held: usize = tables.map(|kind| kind.constraints * kind.instances).sum();
        let instances = types.iter().map(|kind| kind.instances).sum::<usize>() - 1;
        assert!(held - instances >= of_tables.iter().sum(), "{gadget:?}");
        assert_eq!(types.len() - 1, of_tables.len());
    }
    let rows = Gadget::ALL.map(|gadget| gadget.rows().0);
    assert_eq!(rows, [8_024, 4_856, 26_409, 14_081]);
}
