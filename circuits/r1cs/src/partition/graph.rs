//! Cuts of ranges of rows that a graph partitioner finds: METIS, where it is built in. Nothing rests
//! on it but the number of shared wires, and what it finds is stored, not found again.

use super::occurrences::wires_of;
use super::{Cost, Cut, FIXED_ROWS, Occurrences};
use crate::numbers::limit;
use crate::system::System;
use std::collections::HashMap;

/// The most rows that are cut at once: the graph is in memory, with 32-bit numbers.
const RANGE: usize = 1 << 22;
/// The excess in size that a part may have over others, in thousandths.
const IMBALANCE: i32 = 20;
/// The number of times that fewer rows per part are tried until all fit, if time plays no role.
pub(super) const TRIES: usize = 6;

/// The part of each of these rows, from 0, cut into about equal parts that share few wires: a graph
/// of rows with weight 1 and of wires without weight, and an edge for each occurrence. `None` if
/// there is no partitioner, or it fails.
#[cfg(feature = "metis")]
fn cut_graph(system: &System, rows: &[u32], parts: usize) -> Option<Vec<u32>> {
    use metis::option::{Seed, UFactor};
    let parts = i32::try_from(parts).ok().filter(|parts| *parts > 1)?;
    let mut wires: HashMap<u32, i32> = HashMap::new();
    let (mut found, mut edges, mut starts) = (Vec::new(), Vec::new(), vec![0]);
    for row in rows {
        wires_of(system, *row as usize, &mut found);
        for wire in &found {
            let next = i32::try_from(rows.len() + wires.len()).ok()?;
            // Vertices are rows, then wires in the order of their first occurrence.
            edges.push(*wires.entry(*wire).or_insert(next));
        }
        starts.push(i32::try_from(edges.len()).ok()?);
    }
    // The same edges from the other side.
    let mut degree = vec![0i32; wires.len()];
    edges.iter().for_each(|wire| degree[*wire as usize - rows.len()] += 1);
    for count in &degree {
        starts.push(starts.last()?.checked_add(*count)?);
    }
    let mut next: Vec<usize> =
        starts[rows.len()..starts.len() - 1].iter().map(|start| *start as usize).collect();
    let forward = edges.len();
    edges.resize(2 * forward, 0);
    for row in 0..rows.len() {
        for at in starts[row] as usize..starts[row + 1] as usize {
            let place = &mut next[edges[at] as usize - rows.len()];
            edges[*place] = i32::try_from(row).ok()?;
            *place += 1;
        }
    }
    let weights: Vec<i32> =
        (0..rows.len() + degree.len()).map(|vertex| i32::from(vertex < rows.len())).collect();
    let mut part = vec![0; weights.len()];
    metis::Graph::new(1, parts, &starts, &edges)
        .ok()?
        .set_vwgt(&weights)
        // The same cut for the same system.
        .set_option(Seed(1))
        .set_option(UFactor(IMBALANCE))
        .part_kway(&mut part)
        .ok()?;
    part.truncate(rows.len());
    part.into_iter().map(|part| u32::try_from(part).ok()).collect()
}

#[cfg(not(feature = "metis"))]
fn cut_graph(_: &System, _: &[u32], _: usize) -> Option<Vec<u32>> {
    None
}

/// The part of each row of an order, cut by the partitioner into parts of about `room` rows, and the
/// number of parts.
pub(super) fn assignment(system: &System, rows: &[u32], room: usize) -> Option<(Vec<u32>, u32)> {
    let (mut all, mut parts) = (Vec::with_capacity(rows.len()), 0);
    for range in rows.chunks(RANGE) {
        let count = range.len().div_ceil(room.max(1));
        let cut = match count {
            1 => vec![0; range.len()],
            _ => cut_graph(system, range, count)?,
        };
        all.extend(cut.into_iter().map(|part| parts + part));
        parts += u32::try_from(count).ok()?;
    }
    Some((all, parts))
}

/// A cut by the partitioner whose parts have at most `most` rows, slots included, if it is found in
/// this number of tries; and how many it took.
pub(super) fn graph(
    system: &System,
    occurrences: &Occurrences,
    rows: &[u32],
    most: u64,
    tries: usize,
) -> (Option<Cut>, usize) {
    let mut room = limit(most.saturating_sub(FIXED_ROWS));
    for tried in 1..=tries {
        let Some((parts_of, parts)) = assignment(system, rows, room) else { return (None, tried) };
        let mut cut = Cut { part_of: vec![0; rows.len()], parts };
        rows.iter().zip(parts_of).for_each(|(row, part)| cut.part_of[*row as usize] = part);
        cut.drop_empty();
        let largest = cut.cost(system, occurrences).largest();
        if largest <= most {
            return (Some(cut), tried);
        }
        let Some(smaller) = less(room, largest, most) else { return (None, tried) };
        room = smaller;
    }
    (None, tries)
}

/// Returns fewer rows per part, when the largest part was too large.
pub(super) fn less(room: usize, largest: u64, most: u64) -> Option<usize> {
    let excess = limit(largest.saturating_sub(most));
    // At least by a 64th, so that few tries are enough.
    room.checked_sub(excess.max(room / 64).max(1)).filter(|room| *room > 0)
}

/// Reports whether a cut is worth the partitioner's time: its slots are more than 2 % of the rows.
pub(super) fn pays(cost: &Cost) -> bool {
    cost.added() > 0.02
}
