//! The look-ups of subcircuits in tables, and the counts of all of them (spec: buses#counting).

use crate::buses::library::{BusKind, BusSpec};
use crate::layout::Layout;
use crate::layout::ids::BusId;

/// The look-ups of one subcircuit: the number of look-ups of each row of each table. **Keep it secret**: it
/// follows from the values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LookUps {
    /// Table, row, and number of look-ups, which is not 0; in rising order.
    rows: Vec<(u32, u32, u32)>,
}

impl std::fmt::Debug for LookUps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LookUps").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl LookUps {
    pub(crate) fn of(mut asked: Vec<(BusId, u32)>) -> Self {
        asked.sort_unstable();
        let mut rows: Vec<(u32, u32, u32)> = Vec::new();
        for (bus, row) in asked {
            match rows.last_mut() {
                Some((b, r, times)) if (*b, *r) == (bus.0, row) => *times += 1,
                _ => rows.push((bus.0, row, 1)),
            }
        }
        Self { rows }
    }

    /// Reports whether nothing is looked up.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Encodes it for another machine; it must not be empty. The encoding is a varint for the number of
    /// rows, then three for each row: the distances of table and row from the previous ones, and the number
    /// of look-ups.
    pub fn encode(&self) -> Vec<u8> {
        // Distances are small, and a varint below 128 is one byte: rank 0 receives the look-ups of all
        // subcircuits.
        let (mut bus, mut row) = (0, 0);
        let distances = self.rows.iter().map(|(b, r, times)| {
            let from = if *b == bus { row } else { 0 };
            let distance = (b - bus, r - from, *times);
            (bus, row) = (*b, *r);
            distance
        });
        let triples: Vec<(u32, u32, u32)> = distances.collect();
        postcard::to_allocvec(&triples).expect("a list of numbers in memory can be serialized")
    }

    /// Decodes [`Self::encode`]. [`Counts::add`] checks that the rows exist.
    ///
    /// # Errors
    /// What is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let distances: Vec<(u32, u32, u32)> = match postcard::take_from_bytes(bytes) {
            Ok((distances, [])) => distances,
            Ok((_, rest)) => return Err(format!("{} bytes follow its end", rest.len())),
            Err(error) => return Err(error.to_string()),
        };
        let (mut bus, mut row) = (0u32, None);
        let rows: Option<Vec<_>> = distances
            .into_iter()
            .map(|(buses, distance, times)| {
                let before = if buses == 0 { row } else { None };
                if times == 0 || (distance == 0 && before.is_some()) {
                    return None;
                }
                bus = bus.checked_add(buses)?;
                let next = before.unwrap_or(0u32).checked_add(distance)?;
                row = Some(next);
                Some((bus, next, times))
            })
            .collect();
        let out = Self { rows: rows.ok_or("its rows are not in rising order")? };
        // Varints have longer forms, too. One value has one encoding.
        if out.is_empty() || out.encode() != bytes {
            return Err("it has another encoding".to_owned());
        }
        Ok(out)
    }
}

/// The number of look-ups of each row of each table by all subcircuits. **Keep it secret.**
#[derive(Clone, PartialEq, Eq)]
pub struct Counts {
    /// By bus; empty for buses that are not tables.
    rows: Vec<Vec<u64>>,
    /// The names of the buses.
    names: Vec<String>,
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts").field("buses", &self.rows.len()).finish_non_exhaustive()
    }
}

impl Counts {
    /// No look-ups.
    pub fn new(layout: &Layout) -> Self {
        let rows = |bus: &BusSpec| match &bus.kind {
            BusKind::Table(table) => vec![0; table.held()],
            _ => Vec::new(),
        };
        let names = layout.buses.iter().map(|bus| bus.name.clone()).collect();
        Self { rows: layout.buses.iter().map(rows).collect(), names }
    }

    /// Adds the look-ups of one subcircuit.
    ///
    /// # Errors
    /// If a table has no such row; then nothing is added.
    pub fn add(&mut self, look_ups: &LookUps) -> Result<(), String> {
        // The numbers come from another machine. All are checked before any is added, so that the counts
        // stay those of the subcircuits accepted so far.
        let len = |bus: u32| self.rows.get(bus as usize).map_or(0, Vec::len);
        if let Some((bus, row, _)) = look_ups.rows.iter().find(|(b, r, _)| *r as usize >= len(*b)) {
            return Err(match self.names.get(*bus as usize) {
                Some(name) => format!("bus '{name}' has no row {row} to be looked up"),
                None => format!("there is no table with the number {bus}"),
            });
        }
        for (bus, row, times) in &look_ups.rows {
            // Fewer than 2^31 subcircuits add less than 2^32 each.
            self.rows[*bus as usize][*row as usize] += u64::from(*times);
        }
        Ok(())
    }

    /// The counts of the rows of a table.
    pub(crate) fn of(&self, table: BusId) -> &[u64] {
        self.rows.get(table.index()).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(list: &[(u32, u32)]) -> LookUps {
        LookUps::of(list.iter().map(|(bus, row)| (BusId(*bus), *row)).collect())
    }

    #[test]
    fn look_ups_round_trip_and_refuse_the_rest() {
        let all = [
            asked(&[(0, 0)]),
            asked(&[(3, 7), (0, 9), (3, 7), (3, 0), (0, 0), (0, u32::MAX), (u32::MAX, 1)]),
        ];
        for look_ups in &all {
            assert_eq!(LookUps::decode(&look_ups.encode()).as_ref(), Ok(look_ups));
        }
        assert!(!all[0].is_empty() && asked(&[]).is_empty());
        assert_eq!(all[1].rows[3..], [(3, 0, 1), (3, 7, 2), (u32::MAX, 1, 1)]);
        let encode = |list: &[(u32, u32, u32)]| postcard::to_allocvec(list).unwrap();
        // A row twice, a row never, rows and tables beyond 2^32.
        for wrong in [
            &[(0, 1, 1), (0, 0, 1)][..],
            &[(0, 0, 1), (0, 0, 1)],
            &[(1, 1, 0)],
            &[(0, u32::MAX, 1), (0, 1, 1)],
            &[(u32::MAX, 0, 1), (1, 0, 1)],
        ] {
            assert_eq!(
                LookUps::decode(&encode(wrong)),
                Err("its rows are not in rising order".into())
            );
        }
        for other in [&[0][..], &[1, 0x80, 0, 0, 1], &[0x81, 0, 0, 0, 1]] {
            assert!(LookUps::decode(other).is_err(), "{other:?}");
        }
        let mut long = all[1].encode();
        assert!(LookUps::decode(&long[..long.len() - 1]).is_err());
        long.push(0);
        assert_eq!(LookUps::decode(&long), Err("1 bytes follow its end".into()));
    }

    #[test]
    fn counts_refuse_rows_that_no_table_has() {
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let mut counts = Counts { rows: vec![vec![0; 2], Vec::new(), vec![5; 3]], names };
        counts.add(&asked(&[(0, 1), (2, 2), (2, 2)])).unwrap();
        let after = counts.clone();
        assert_eq!(after.rows, [vec![0, 1], vec![], vec![5, 5, 7]]);
        for wrong in [(0, 2), (1, 0), (3, 0)] {
            assert!(counts.add(&asked(&[(0, 0), wrong])).is_err());
            assert_eq!(counts, after, "nothing is added");
        }
    }
}
