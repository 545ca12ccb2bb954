//! Cuts: what they cost, and that they fit.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use hekaton_circuit::Fr;
use hekaton_r1cs::partition::{
    Cost, Cut, FIXED_ROWS, Occurrences, Order, Plan, contiguous, improve, order,
};
use hekaton_r1cs::{System, SystemBuilder};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A system whose rows have these wires, as A, B and C in turn, with coefficient 1.
fn system(wires: u32, public: u32, rows: &[Vec<u32>]) -> System {
    let mut builder = SystemBuilder::new(wires, public);
    let mut one = [0; 32];
    one[0] = 1;
    for (number, row) in (0u32..).zip(rows) {
        for place in 0..3 {
            for wire in row.iter().skip(place).step_by(3) {
                builder.term(*wire, &one, || Fr::from(1u64)).unwrap();
            }
            builder.end_combination().unwrap();
        }
        builder.end_row(number).unwrap();
    }
    builder.finish()
}

/// The cost by its definition.
fn counted(system: &System, rows: &[Vec<u32>], cut: &Cut) -> Cost {
    let none = vec![0; cut.parts as usize];
    let mut cost = Cost { rows: none.clone(), slots: none.clone(), unread: none, shared: 0 };
    cut.part_of.iter().for_each(|part| cost.rows[*part as usize] += 1);
    let mut unread = 0;
    for wire in 1..system.wires() {
        let parts: BTreeSet<u32> = (rows.iter().zip(&cut.part_of))
            .filter(|(row, _)| row.contains(&wire))
            .map(|(_, part)| *part)
            .collect();
        if wire <= system.public() || parts.len() >= 2 {
            cost.shared += 1;
            parts.iter().for_each(|part| cost.slots[*part as usize] += 1);
            unread += u64::from(parts.is_empty());
        }
    }
    // One by one to the emptiest part, which fills it up to the largest before another one.
    let size = |cost: &Cost, part: usize| cost.rows[part] + cost.slots[part];
    let all = |cost: &Cost| (0..cut.parts as usize).map(|part| size(cost, part)).sum::<u64>();
    let largest = (0..cut.parts as usize).map(|part| size(&cost, part)).max().unwrap();
    let level = largest.max((all(&cost) + unread).div_ceil(cut.parts.into()));
    let mut by_size: Vec<usize> = (0..cut.parts as usize).collect();
    by_size.sort_by_key(|part| size(&cost, *part));
    for _ in 0..unread {
        let part = *by_size.iter().find(|part| size(&cost, **part) < level).unwrap();
        cost.slots[part] += 1;
        cost.unread[part] += 1;
    }
    cost
}

fn any_rows(wires: u32) -> impl Strategy<Value = Vec<Vec<u32>>> {
    // Mostly neighbors, so that there are good cuts.
    let row = (1..wires, prop::collection::vec(0u32..6, 1..5)).prop_map(move |(base, offsets)| {
        let wires = offsets.into_iter().map(|offset| 1 + (base + offset) % (wires - 1));
        wires.collect::<BTreeSet<_>>().into_iter().collect::<Vec<u32>>()
    });
    prop::collection::vec(row, 1..60)
}

proptest! {
    /// Costs are counted as they are defined, and moves never make them worse, nor parts too large.
    #[test]
    fn moves_make_cuts_cheaper(
        rows in any_rows(40),
        alone in prop::collection::vec(1u32..40, 0..40),
        parts in 1u32..6,
        public in 0u32..4,
        seed in prop::collection::vec(any::<u32>(), 100),
        room in 0u64..20,
    ) {
        // Rows with one wire move with others.
        let rows: Vec<_> = rows.into_iter().chain(alone.into_iter().map(|w| vec![w])).collect();
        let system = system(40, public, &rows);
        let occurrences = Occurrences::new(&system);
        prop_assert_eq!(occurrences.count(), rows.iter().map(Vec::len).sum::<usize>());
        let part_of = seed[..rows.len()].iter().map(|s| s % parts).collect();
        let mut cut = Cut { part_of, parts };
        let before = cut.cost(&system, &occurrences);
        prop_assert_eq!(&before, &counted(&system, &rows, &cut));
        let most = before.largest() + room;
        let moved = improve(&mut cut, &system, &occurrences, most);
        let after = cut.cost(&system, &occurrences);
        prop_assert_eq!(&after, &counted(&system, &rows, &cut));
        // Each move gains at least one occurrence.
        prop_assert!(after.occurrences() + moved as u64 <= before.occurrences());
        // A public wire without rows moves with the emptiest part, and is not counted in moves.
        prop_assert!(after.largest() <= most + u64::from(public), "{after:?} {most}");
    }

    /// Contiguous cuts have parts that fit, or the error says which constraint is too large.
    #[test]
    fn contiguous_cuts_fit(rows in any_rows(40), public in 0u32..4, most in 4u64..40) {
        let system = system(40, public, &rows);
        let occurrences = Occurrences::new(&system);
        for order in [Order::Source, Order::LargestWire] {
            match contiguous(&system, &occurrences, order, most) {
                Ok(cut) => {
                    let cost = cut.cost(&system, &occurrences);
                    prop_assert!(cost.largest() <= most);
                    prop_assert!(cost.rows.iter().all(|rows| *rows > 0));
                    let in_order: Vec<u32> =
                        order.rows(&system).iter().map(|r| cut.part_of[*r as usize]).collect();
                    prop_assert!(in_order.is_sorted());
                }
                Err(error) => {
                    // Each constraint in a part of its own is too much.
                    prop_assert!(error.needed > most);
                    let mut alone = Cut { part_of: vec![0; rows.len()], parts: rows.len() as u32 };
                    for (part, row) in (0u32..).zip(order.rows(&system)) {
                        alone.part_of[row as usize] = part;
                    }
                    prop_assert_eq!(alone.cost(&system, &occurrences).largest(), error.needed);
                }
            }
        }
    }
}

/// Products first, then the linear rows that belong to them, as circom writes them: sorted by the
/// largest wire, they are next to each other.
#[test]
fn rows_far_from_their_wires_are_sorted() {
    let products = (0..300).map(|i| vec![3 * i + 1, 3 * i + 2, 3 * i + 3]);
    let linear = (0..300).map(|i| vec![3 * i + 3, 3 * i + 4]);
    let rows: Vec<Vec<u32>> = products.chain(linear).collect();
    let system = system(902, 0, &rows);
    let occurrences = Occurrences::new(&system);
    assert_eq!(order(&system, 4), Order::LargestWire);
    let cost =
        |order| contiguous(&system, &occurrences, order, 200).unwrap().cost(&system, &occurrences);
    let [source, sorted] = [Order::Source, Order::LargestWire].map(cost);
    // A chain: one wire at each of three boundaries, in two parts each.
    assert_eq!(sorted.occurrences(), 2 * (sorted.rows.len() as u64 - 1));
    assert!(source.occurrences() > 20 * sorted.occurrences(), "{source:?}");
    assert!(sorted.largest() <= 200 && sorted.added() < 0.02);
}

/// A row in the wrong part moves to the other one.
#[test]
fn a_row_in_the_wrong_part_moves() {
    let rows: Vec<Vec<u32>> = (1..21).map(|i| vec![i, i + 1]).collect();
    let system = system(22, 0, &rows);
    let occurrences = Occurrences::new(&system);
    let mut part_of: Vec<u32> = (0..20).map(|i| i / 10).collect();
    part_of[4] = 1;
    let wrong = Cut { part_of, parts: 2 };
    assert_eq!(wrong.cost(&system, &occurrences).occurrences(), 6);
    let mut cut = wrong.clone();
    assert_eq!(improve(&mut cut, &system, &occurrences, 100), 1);
    assert_eq!((cut.part_of[4], cut.cost(&system, &occurrences).occurrences()), (0, 2));
    assert_eq!(Cut::whole(&system).cost(&system, &occurrences).occurrences(), 0);
}

/// The row that adds up bits moves with the rows of the bits, to where the bits are used: no single
/// move of these gains anything alone.
#[test]
fn sums_move_with_their_bits() {
    let bits = 2..10;
    let mut rows: Vec<Vec<u32>> = vec![vec![19, 20], vec![1, 20]];
    rows.extend(bits.clone().map(|bit| vec![bit]));
    rows.push(std::iter::once(1).chain(bits.clone()).collect());
    rows.extend(bits.map(|bit| vec![bit, 2 + (bit - 1) % 8]));
    let system = system(21, 0, &rows);
    let occurrences = Occurrences::new(&system);
    let part_of = (0..rows.len()).map(|row| u32::from(row > 10)).collect();
    let mut cut = Cut { part_of, parts: 2 };
    let before = cut.clone();
    assert_eq!(cut.cost(&system, &occurrences).occurrences(), 16);
    assert_eq!(improve(&mut cut, &system, &occurrences, 100), 1);
    assert_eq!(cut.cost(&system, &occurrences).occurrences(), 2);
    assert!(cut.part_of.iter().skip(2).all(|part| *part == 1) && cut.part_of[..2] == [0, 0]);
    // Without room for all of them none moves: the other part would have 17 rows and a slot.
    for (most, moves) in [(17 + FIXED_ROWS, 0), (18 + FIXED_ROWS, 1)] {
        let mut cut = before.clone();
        assert_eq!(improve(&mut cut, &system, &occurrences, most), moves);
        assert_eq!(cut == before, moves == 0);
    }
}

/// A move that makes a part larger needs room there; of equal parts, the first is taken.
#[test]
fn moves_need_room() {
    // Wire 1 is in all three parts, in the second in one row only.
    let rows = vec![vec![1, 5], vec![5, 6], vec![1, 4], vec![9, 10], vec![1, 7], vec![7, 8]];
    let system = system(11, 0, &rows);
    let occurrences = Occurrences::new(&system);
    let cut = Cut { part_of: vec![0, 0, 1, 1, 2, 2], parts: 3 };
    let largest = 2 + 1 + FIXED_ROWS;
    assert_eq!(cut.cost(&system, &occurrences).largest(), largest);
    for (most, moves) in [(largest, 0), (largest + 1, 1)] {
        let mut cut = cut.clone();
        assert_eq!(improve(&mut cut, &system, &occurrences, most), moves);
        assert_eq!(cut.part_of[2], if moves == 0 { 1 } else { 0 });
    }
}

/// Public wires have a slot wherever they occur, and one somewhere if they occur nowhere.
#[test]
fn public_wires_cost_at_every_occurrence() {
    let rows = vec![vec![1, 4], vec![1, 5], vec![2, 4, 5]];
    let system = system(6, 3, &rows);
    let occurrences = Occurrences::new(&system);
    let cut = Cut { part_of: vec![0, 0, 1], parts: 2 };
    let cost = cut.cost(&system, &occurrences);
    // Wire 1 in part 0; 2 and, in no row, 3 in part 1; 4 and 5 in both.
    assert_eq!((cost.slots, cost.shared), (vec![3, 4], 5));
}

/// Rows of four components in no order at all: no boundary is good, and the graph partitioner finds
/// the components.
#[test]
fn components_are_found_without_order() {
    let mut state = 1u64;
    let mut random = |bound: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u32 % bound
    };
    let mut numbers: Vec<u32> = (1..401).collect();
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, random(at as u32 + 1) as usize);
    }
    let mut rows: Vec<Vec<u32>> = Vec::new();
    for row in 0..800 {
        // Wires of the component, and neighbors of each other.
        let (component, base) = (row % 4, random(97));
        rows.push(
            (0..3).map(|i| 1 + component + 4 * ((base + i * (1 + random(3))) % 100)).collect(),
        );
    }
    for row in (1..rows.len()).rev() {
        rows.swap(row, random(row as u32 + 1) as usize);
    }
    rows.iter_mut().for_each(|row| {
        row.sort_unstable();
        row.dedup();
    });
    let system = system(401, 0, &rows);
    let occurrences = Occurrences::new(&system);
    let order = order(&system, 4);
    let by_order = contiguous(&system, &occurrences, order, 600).unwrap();
    let plan = Plan::new(&system, &occurrences, 330, |_| {}).unwrap();
    let by_order = by_order.cost(&system, &occurrences).occurrences();
    let text = format!("{} slots in {} parts, {by_order}", plan.slots(), plan.parts.parts.len());
    assert!(plan.slots() < 100 && 3 * plan.slots() < by_order, "{text}");
}

/// Rows in an order that only depends on the seed.
fn shuffled<T>(mut rows: Vec<T>, mut state: u64) -> Vec<T> {
    for at in (1..rows.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        rows.swap(at, (state >> 33) as usize % (at + 1));
    }
    rows
}

/// `count` words of 32 bits: each bit's row, the sum, and the next word from the bits.
fn words(count: u32) -> Vec<Vec<u32>> {
    let mut rows = Vec::new();
    for word in 0..count {
        let first = 1 + 33 * word;
        let bits = first + 1..first + 33;
        rows.extend(bits.clone().map(|bit| vec![bit]));
        rows.push(std::iter::once(first).chain(bits.clone()).collect());
        rows.extend(bits.zip((0..32).rev()).map(|(bit, i)| vec![bit, first + 1 + i, first + 33]));
    }
    rows
}

/// The cuts of five small circuits, as they are today: a change here changes every circuit directory
/// and its keys, and is worth a line in the changelog (design: PARTITION 9).
#[test]
fn cuts_of_small_circuits_are_pinned() {
    let chain = (1..1001).map(|i| vec![i, i + 1, i + 2]).collect::<Vec<_>>();
    let products = (0..300).map(|i| vec![3 * i + 1, 3 * i + 2, 3 * i + 3]);
    let linear = (0..300).map(|i| vec![3 * i + 3, 3 * i + 4]);
    let tree = (1..512).map(|node| vec![node, 2 * node, 2 * node + 1]).collect::<Vec<_>>();
    let grid = (0..900).filter(|at| at % 30 != 29);
    let grid = grid.map(|at| vec![at + 1, at + 2, (at + 30) % 900 + 1]).collect::<Vec<_>>();
    // Name, wires, public wires, rows, most rows of a part; then parts, types, slots, more rows.
    let circuits = [
        ("chain", 1003, 2, chain, 200, [6, 2, 22, 22]),
        ("products, then sums", 902, 1, products.chain(linear).collect(), 200, [4, 1, 8, 8]),
        ("tree without order", 1024, 1, shuffled(tree, 1), 150, [4, 3, 7, 7]),
        ("grid without order", 901, 0, shuffled(grid, 2), 300, [4, 4, 178, 178]),
        ("words of bits", 33 * 20 + 2, 1, words(20), 300, [5, 1, 10, 10]),
    ];
    let mut found = Vec::new();
    for (name, wires, public, rows, most, _) in &circuits {
        let system = system(*wires, *public, rows);
        let plan = Plan::new(&system, &Occurrences::new(&system), *most, |_| {}).unwrap();
        assert!(plan.parts.largest() <= *most, "{name}");
        let [parts, types] = [plan.parts.parts.len(), plan.parts.types.len()].map(|n| n as u64);
        found.push((*name, [parts, types, plan.slots(), plan.more_rows()]));
    }
    let pinned: Vec<_> = circuits.iter().map(|circuit| (circuit.0, circuit.5)).collect();
    assert_eq!(found, pinned);
}
