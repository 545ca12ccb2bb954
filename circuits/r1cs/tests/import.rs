//! Imported circuits: parts say what the source says, and what says something else is refused.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use ark_ff::{AdditiveGroup, Field};
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{Fr, Masking, PreparedCircuit, SlotAccess, check};
use hekaton_r1cs::directory::{BundleError, write};
use hekaton_r1cs::partition::{
    Access, Cut, Occurrences, Order, PartType, Parts, Plan, Rows, parts,
};
use hekaton_r1cs::{
    CircuitBundle, ImportError, Imported, LocalRow, Monolith, PartProblem, PartitionError, System,
    WitnessFile, check_partition,
};
use proptest::prelude::*;
use std::path::Path;

use systems::{Row, checked, holds, monolith, source, system, witness};

mod systems;

/// Completes rows so that these values satisfy them, by a constant in C.
fn satisfied(rows: &[Row], values: &[i64]) -> Vec<Row> {
    let value = |side: &[(u32, i64)]| -> i64 {
        side.iter().map(|(wire, k)| k * values[*wire as usize]).sum()
    };
    let complete = |row: &Row| {
        let [a, b, mut c] = row.clone();
        let rest = value(&a) * value(&b) - value(&c);
        c.push((0, rest));
        [a, b, c]
    };
    rows.iter().map(complete).collect()
}

const WIRES: u32 = 24;

fn any_side() -> impl Strategy<Value = Vec<(u32, i64)>> {
    prop::collection::vec((0u32..6, -3i64..4), 0..4)
}

/// Rows whose wires are near a place that moves on, and the values of all wires.
fn any_rows() -> impl Strategy<Value = (Vec<Row>, Vec<i64>)> {
    let row = (1..WIRES, any_side(), any_side(), any_side()).prop_map(|(base, a, b, c)| {
        [a, b, c].map(|side: Vec<(u32, i64)>| {
            side.into_iter().map(|(offset, k)| ((base + offset) % WIRES, k)).collect()
        })
    });
    let values = prop::collection::vec(-4i64..5, WIRES as usize);
    (prop::collection::vec(row, 1..40), values).prop_map(|(rows, mut values)| {
        values[0] = 1;
        (satisfied(&rows, &values), values)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any cut gives parts that the checker accepts, and that hold if and only if the source does.
    #[test]
    fn parts_hold_if_and_only_if_the_source_does(
        (rows, values) in any_rows(),
        public in 0u32..5,
        count in 1u32..8,
        seed in prop::collection::vec(any::<u32>(), 40),
        by_source in any::<bool>(),
        (spoiled, by) in (1..WIRES, 1i64..4),
    ) {
        let system = system(WIRES, public, &rows);
        prop_assume!(system.rows() > 0);
        let part_of = (0..system.rows()).map(|row| seed[row] % count).collect();
        let mut cut = Cut { part_of, parts: count };
        cut.drop_empty();
        let occurrences = Occurrences::new(&system);
        let order = if by_source { Order::Source } else { Order::LargestWire };
        let made = parts(&system, &occurrences, &cut, order, 1 << 20);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("circuit");
        checked(&system, &made, &path).unwrap();
        let free = CircuitBundle::open(&path).unwrap().free_public_wires().unwrap();
        prop_assert_eq!(&free, &system.free_public_wires());
        let mut z: Vec<Fr> = values.iter().map(|v| Fr::from(*v)).collect();
        prop_assert_eq!(system.false_row(&z), None);
        // Any value holds for them.
        let mut other = z.clone();
        free.iter().for_each(|wire| other[*wire as usize] += Fr::from(by));
        prop_assert_eq!(system.false_row(&other), None);
        prop_assert!(holds(&path, &z));
        z[spoiled as usize] += Fr::from(by);
        prop_assert_eq!(holds(&path, &z), system.false_row(&z).is_none());
    }

    /// The plan that the partitioner chooses is accepted and fits.
    #[test]
    fn plans_are_accepted((rows, values) in any_rows(), public in 0u32..5, most in 12u64..40) {
        let system = system(WIRES, public, &rows);
        prop_assume!(system.rows() > 0);
        let occurrences = Occurrences::new(&system);
        let Ok(plan) = Plan::new(&system, &occurrences, most, |_| {}) else { return Ok(()) };
        prop_assert!(plan.parts.largest() <= most + u64::from(public));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("circuit");
        monolith(&system).write(&plan, &path).unwrap();
        let free = CircuitBundle::open(&path).unwrap().free_public_wires().unwrap();
        prop_assert_eq!(free, system.free_public_wires());
        let z: Vec<Fr> = values.iter().map(|v| Fr::from(*v)).collect();
        prop_assert!(holds(&path, &z));
    }
}

/// Copies of a piece of three rows: a wire goes in, one comes out. The first piece reads the public
/// wire 1, the last one writes wire 2.
fn chain(copies: u32, changed: Option<u32>) -> System {
    let (rows, wires) = chain_rows(copies, changed);
    system(wires, 2, &rows)
}

fn chain_rows(copies: u32, changed: Option<u32>) -> (Vec<Row>, u32) {
    let mut rows: Vec<Row> = Vec::new();
    let mut x = 1;
    for copy in 0..copies {
        let first = 3 + 3 * copy;
        let (t, w) = (first, first + 1);
        let y = if copy + 1 == copies { 2 } else { first + 2 };
        let k = if Some(copy) == changed { 3 } else { 2 };
        rows.push([vec![(x, 1)], vec![(x, 1)], vec![(t, 1)]]);
        rows.push([vec![(t, 1), (x, 1)], vec![(t, 1)], vec![(w, 1)]]);
        rows.push([vec![(w, k), (t, 1), (0, 5)], vec![(0, 1)], vec![(y, 1)]]);
        x = y;
    }
    (rows, 3 + 3 * copies)
}

/// One piece a part, in the order of the source.
fn one_piece_a_part(system: &System, copies: u32) -> Parts {
    let cut = Cut { part_of: (0..3 * copies).map(|row| row / 3).collect(), parts: copies };
    parts(system, &Occurrences::new(system), &cut, Order::Source, 1 << 20)
}

#[test]
fn equal_pieces_are_one_type() {
    for (changed, types) in [(None, 1), (Some(3), 2), (Some(0), 2)] {
        let system = chain(8, changed);
        let made = one_piece_a_part(&system, 8);
        assert_eq!((made.types.len(), made.parts.len()), (types, 8), "{changed:?}");
        assert_eq!((made.types[0].slots, made.types[0].own), (2, 2));
        let folder = tempfile::tempdir().unwrap();
        checked(&system, &made, &folder.path().join("circuit")).unwrap();
    }
}

/// A wire that only some copies share is a slot in all of them, unused in the others, and has its
/// value there: constraints of the type contain it.
#[test]
fn unused_slots_have_the_value_of_their_wire() {
    // A row of a further part has the wire t of the second copy.
    let (mut rows, wires) = chain_rows(4, None);
    rows.push([vec![(6, 1)], vec![(6, 1)], vec![(wires, 1)]]);
    let system = system(wires + 1, 2, &rows);
    let part_of = (0..13).map(|row| row / 3).collect();
    let cut = Cut { part_of, parts: 5 };
    let made = parts(&system, &Occurrences::new(&system), &cut, Order::Source, 1 << 20);
    // Few rows, so that a slot is more than 2 % of them: a type of its own.
    assert_eq!(made.types.len(), 3);
    let mut merged = made.clone();
    // By hand: the copies take the type of the second one, with the slot unused.
    let with_slot = merged.parts[1].clone();
    assert_eq!(with_slot.access.len(), 3);
    for part in [0, 2, 3] {
        let old = merged.parts[part].clone();
        let shift = 3 * part as u32;
        // Variables of the type are x, t, y, then w.
        let (x, y) = (old.wires[0], old.wires[1]);
        merged.parts[part] = hekaton_r1cs::partition::Part {
            kind: with_slot.kind,
            wires: vec![x, 3 + shift, y, 4 + shift],
            rows: old.rows,
            access: vec![old.access[0], Access::Unused, old.access[1]],
        };
    }
    // The first type has no parts left.
    merged.types.remove(0);
    merged.parts.iter_mut().for_each(|part| part.kind -= 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    checked(&system, &merged, &path).unwrap();
    let mut z = vec![Fr::ZERO; system.wires() as usize];
    (z[0], z[1]) = (Fr::ONE, Fr::from(3u64));
    let mut x = z[1];
    for copy in 0..4usize {
        let (t, w) = (x * x, (x * x + x) * x * x);
        let y = Fr::from(2u64) * w + t + Fr::from(5u64);
        (z[3 + 3 * copy], z[4 + 3 * copy]) = (t, w);
        z[if copy == 3 { 2 } else { 5 + 3 * copy }] = y;
        x = y;
    }
    z[wires as usize] = z[6] * z[6];
    assert_eq!(system.false_row(&z), None);
    assert!(holds(&path, &z));
    for wire in [3, 6, 9] {
        let mut spoiled = z.clone();
        spoiled[wire] += Fr::ONE;
        assert!(!holds(&path, &spoiled), "wire {wire}");
    }
}

/// Eight constraints in three parts, with two public wires of which one is in no constraint.
fn small() -> (System, Parts) {
    let rows: Vec<Row> = vec![
        [vec![(1, 1)], vec![(1, 1)], vec![(3, 1)]],
        [vec![(3, 1)], vec![(1, 2)], vec![(4, 1)]],
        [vec![(4, 1)], vec![(4, 1)], vec![(5, 1)]],
        [vec![(5, 1), (3, 1)], vec![(4, 1)], vec![(6, 1)]],
        [vec![(6, 1)], vec![(5, 1)], vec![(7, 1)]],
        [vec![(7, 1)], vec![(6, 3)], vec![(8, 1)]],
        [vec![(8, 1), (0, 4)], vec![(7, 1)], vec![(9, 1)]],
        [vec![(9, 1)], vec![(0, 1)], vec![(3, 1), (10, 1)]],
    ];
    let system = system(11, 2, &rows);
    let cut = Cut { part_of: vec![0, 0, 0, 1, 1, 1, 2, 2], parts: 3 };
    let made = parts(&system, &Occurrences::new(&system), &cut, Order::Source, 1 << 20);
    assert_eq!(made.types.len(), 3);
    (system, made)
}

/// The part's problem that the check of changed parts finds.
fn problem(change: impl FnOnce(&mut Parts)) -> PartProblem {
    let (system, mut made) = small();
    change(&mut made);
    let folder = tempfile::tempdir().unwrap();
    match checked(&system, &made, &folder.path().join("circuit")) {
        Err(ImportError::Partition(PartitionError::Part { why, .. })) => why,
        other => panic!("{other:?}"),
    }
}

/// Removes the last row of a type.
fn without_last_row(kind: &mut PartType) -> [u32; 3] {
    let lengths = kind.rows.lengths.pop().unwrap();
    let terms = lengths.iter().sum::<u32>() as usize;
    let left = kind.rows.terms.len() - terms;
    kind.rows.terms.truncate(left);
    lengths
}

#[test]
fn the_unchanged_parts_are_accepted() {
    let (system, made) = small();
    let folder = tempfile::tempdir().unwrap();
    checked(&system, &made, &folder.path().join("circuit")).unwrap();
}

#[test]
fn a_missing_constraint_is_refused() {
    let (system, mut made) = small();
    without_last_row(&mut made.types[1]);
    made.parts[1].rows.pop();
    let folder = tempfile::tempdir().unwrap();
    let found = checked(&system, &made, &folder.path().join("circuit"));
    let found = matches!(found, Err(ImportError::Partition(PartitionError::Missing(5))));
    assert!(found);
}

#[test]
fn a_constraint_twice_is_refused() {
    let found = problem(|made| {
        let kind = &mut made.types[1];
        let rows = kind.rows.clone();
        kind.rows.lengths.extend(rows.lengths);
        kind.rows.terms.extend(rows.terms);
        let numbers = made.parts[1].rows.clone();
        made.parts[1].rows.extend(numbers);
    });
    assert_eq!(found, PartProblem::RowTwice(3));
}

#[test]
fn constraints_that_do_not_exist_are_refused() {
    assert_eq!(problem(|made| made.parts[0].rows[0] = 8), PartProblem::NoSuchRow(8));
    let found = problem(|made| made.parts[0].rows.swap(0, 1));
    assert_eq!(found, PartProblem::OtherRow { row: 0, number: 1 });
}

#[test]
fn another_coefficient_is_refused() {
    let found = problem(|made| made.types[1].rows.coefficients[1] = Fr::from(4u64));
    assert!(matches!(found, PartProblem::OtherRow { number: 5, .. }), "{found}");
    // A zero coefficient more: the sides are compared as they are in the source.
    let found = problem(|made| {
        let rows: &mut Rows = &mut made.types[0].rows;
        rows.coefficients.push(Fr::ZERO);
        rows.lengths[0][0] += 1;
        rows.terms.insert(1, [rows.coefficients.len() as u32 - 1, 0]);
    });
    assert_eq!(found, PartProblem::OtherRow { row: 0, number: 0 });
}

#[test]
fn two_wires_as_one_are_refused() {
    let found = problem(|made| {
        let terms = &mut made.types[1].rows.terms;
        terms[0][1] = terms[1][1];
    });
    assert!(matches!(found, PartProblem::OtherRow { row: 0, number: 3 }), "{found}");
}

#[test]
fn a_wire_with_two_variables_is_refused() {
    let found = problem(|made| {
        let slots = made.parts[1].access.len();
        made.types[1].own += 1;
        let wire = made.parts[1].wires[slots];
        made.parts[1].wires.push(wire);
    });
    assert!(matches!(found, PartProblem::WireTwice(_)), "{found}");
}

/// The position of a wire in a part.
fn slot(made: &Parts, part: usize, wire: u32) -> usize {
    made.parts[part].wires.iter().position(|w| *w == wire).unwrap()
}

/// A wire that two parts have must be shared: unused slots leave it free in each of them.
#[test]
fn a_wire_of_two_parts_with_unused_slots_is_refused() {
    // Wire 4 is written in part 0 and read in part 1.
    let found = problem(|made| {
        for part in [0, 1] {
            let slot = slot(made, part, 4);
            made.parts[part].access[slot] = Access::Unused;
        }
    });
    assert_eq!(found, PartProblem::NotShared(4));
    // Wire 3 is in all three: what is left is a star.
    let found = problem(|made| {
        let slot = slot(made, 2, 3);
        made.parts[2].access[slot] = Access::Unused;
    });
    assert_eq!(found, PartProblem::NotShared(3));
}

/// A wire that two parts have, one of them as an own variable.
#[test]
fn a_wire_of_two_parts_without_a_slot_is_refused() {
    let found = problem(|made| {
        let at = slot(made, 2, 3);
        let slots = made.parts[2].access.len();
        // The slot becomes the first own variable.
        let part = &mut made.parts[2];
        let wire = part.wires.remove(at);
        part.wires.insert(slots - 1, wire);
        part.access.remove(at);
        let kind = &mut made.types[2];
        (kind.slots, kind.own) = (kind.slots - 1, kind.own + 1);
        kind.unconstrained.clear();
        for [_, local] in &mut kind.rows.terms {
            let variable = at as u32 + 1;
            *local = match *local {
                v if v == variable => slots as u32,
                v if v > variable && v <= slots as u32 => v - 1,
                v => v,
            };
        }
    });
    assert_eq!(found, PartProblem::NotShared(3));
}

/// A public wire that no slot reads, and one whose slot is labeled as another wire.
#[test]
fn public_wires_must_be_read() {
    let (system, mut made) = small();
    let at = slot(&made, 0, 1);
    made.parts[0].access[at] = Access::Unused;
    let folder = tempfile::tempdir().unwrap();
    let found = checked(&system, &made, &folder.path().join("circuit"));
    assert!(matches!(found, Err(ImportError::Layout(_))), "{found:?}");
    let found = problem(|made| {
        // Wire 2 is in no constraint: the part with the fewest reads it.
        let at = slot(made, 2, 2);
        let other = slot(made, 2, 10);
        made.parts[2].wires.swap(at, other);
        // The verifier's wire 2 needs a reader for a layout.
        made.parts[2].wires[at] = 2;
        made.parts[2].wires[other] = 2;
    });
    assert!(matches!(found, PartProblem::WireTwice(2)), "{found}");
}

#[test]
fn more_rows_than_constraints_are_refused() {
    let (system, mut made) = small();
    let row = without_last_row(&mut made.types[2].clone());
    let kind = &mut made.types[2];
    let from = kind.rows.terms.len() - row.iter().sum::<u32>() as usize;
    let terms = kind.rows.terms[from..].to_vec();
    kind.rows.terms.extend(terms);
    kind.rows.lengths.push(row);
    let folder = tempfile::tempdir().unwrap();
    // The directory itself says that there is a constraint for each row.
    let found = checked(&system, &made, &folder.path().join("circuit"));
    let ImportError::Partition(PartitionError::Bundle(found)) = found.unwrap_err() else {
        panic!("another error")
    };
    assert!(matches!(found, BundleError::Invalid { .. }), "{found}");
}

/// The wiring of a partition, as the memory check sees it, and the rows of its types.
struct Seen {
    system: System,
    _folder: tempfile::TempDir,
    directory: CircuitBundle,
    wiring: Wiring,
    rows: Vec<Vec<LocalRow>>,
}

fn seen() -> Seen {
    let (system, made) = small();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    checked(&system, &made, &path).unwrap();
    let imported = Imported::open(&path).unwrap();
    let wiring = PreparedCircuit::new(&imported).unwrap().layout().wiring(Masking::Unmasked);
    let rows = made.types.iter().map(|kind| {
        let mut terms = kind.rows.terms.iter();
        let mut side = |length: u32| {
            let terms = terms.by_ref().take(length as usize);
            terms.map(|[k, v]| (kind.rows.coefficients[*k as usize], *v as usize)).collect()
        };
        kind.rows.lengths.iter().map(|lengths| lengths.map(&mut side)).collect()
    });
    let rows = rows.collect();
    Seen { system, _folder: folder, directory: CircuitBundle::open(&path).unwrap(), wiring, rows }
}

impl Seen {
    fn check(&self) -> Result<(), PartitionError> {
        let rows = |kind: usize| Ok(self.rows[kind].clone());
        check_partition(&self.system, &self.directory, &self.wiring, rows).map(drop)
    }

    fn problem(&self) -> PartProblem {
        match self.check() {
            Err(PartitionError::Part { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    }

    /// The index of the slot of a wire in a part, among all slots.
    fn slot(&self, part: usize, wire: u32) -> usize {
        let at = self.directory.slots(part).position(|(w, _)| w == wire).unwrap();
        self.wiring.starts()[part] + at
    }
}

#[test]
fn what_the_memory_check_sees_is_checked() {
    let good = seen();
    good.check().unwrap();
    // Two wires at one address: the readers of wire 4 read wire 3.
    let mut seen_ = seen();
    let (three, four) = (seen_.slot(1, 3), seen_.slot(1, 4));
    seen_.wiring.slots[four].address = seen_.wiring.slots[three].address;
    assert!(matches!(seen_.problem(), PartProblem::TwoWires(3, 4) | PartProblem::TwoWires(4, 3)));
    // An address without a multiplicity, and the other way round.
    for access in
        [SlotAccess { address: 4, multiplicity: 0 }, SlotAccess { address: 0, multiplicity: -1 }]
    {
        let mut seen_ = seen();
        let four = seen_.slot(1, 4);
        seen_.wiring.slots[four] = access;
        assert!(matches!(seen_.problem(), PartProblem::HalfUsed(_)), "{access:?}");
    }
    // Two writers of one wire, and a writer for fewer readers than there are.
    let mut seen_ = seen();
    let (first, second) = (seen_.slot(0, 4), seen_.slot(1, 4));
    seen_.wiring.slots[second] = seen_.wiring.slots[first];
    assert_eq!(seen_.problem(), PartProblem::NoStar(4));
    let mut seen_ = seen();
    let three = seen_.slot(0, 3);
    seen_.wiring.slots[three].multiplicity = 1;
    let found = seen_.check().unwrap_err();
    assert!(matches!(found, PartitionError::Address { .. }), "{found}");
    // An address beyond all.
    let mut seen_ = seen();
    let four = seen_.slot(1, 4);
    seen_.wiring.slots[four].address = u64::MAX;
    assert_eq!(seen_.problem(), PartProblem::NoStar(4));
}

/// A wire of four parts whose slots are two stars, each good by itself: it has two values.
#[test]
fn a_wire_with_two_addresses_is_refused() {
    let rows: Vec<Row> =
        (0..4).map(|i| [vec![(1, 1)], vec![(1, i64::from(i) + 1)], vec![(2 + i, 1)]]).collect();
    let system = system(6, 0, &rows);
    let cut = Cut { part_of: vec![0, 1, 2, 3], parts: 4 };
    let made = parts(&system, &Occurrences::new(&system), &cut, Order::Source, 1 << 20);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    checked(&system, &made, &path).unwrap();
    let imported = Imported::open(&path).unwrap();
    let mut wiring = PreparedCircuit::new(&imported).unwrap().layout().wiring(Masking::Unmasked);
    let monolith = monolith(&system);
    let directory = imported.directory();
    let rows = |kind: usize| {
        let rows = directory.rows(kind)?;
        let term = |[k, v]: &[u32; 2]| (rows.coefficients[*k as usize], *v as usize);
        Ok(rows.iter().map(|sides| sides.map(|side| side.iter().map(term).collect())).collect())
    };
    check_partition(monolith.system(), directory, &wiring, rows).unwrap();
    let address = wiring.slots[0].address;
    for (slot, (address, multiplicity)) in wiring.slots.iter_mut().zip([
        (address, 1),
        (address, -1),
        (address + 1, 1),
        (address + 1, -1),
    ]) {
        *slot = SlotAccess { address, multiplicity };
    }
    let found = check_partition(monolith.system(), directory, &wiring, rows).unwrap_err();
    let PartitionError::Part { part: 2, why } = found else { panic!("{found}") };
    assert_eq!(why, PartProblem::NotShared(1));
    // Slots or types that are not there.
    wiring.slots.pop();
    let found = check_partition(monolith.system(), directory, &wiring, rows).unwrap_err();
    assert!(matches!(found, PartitionError::Layout("slots")), "{found}");
    wiring.type_of[0] = 9;
    let found = check_partition(monolith.system(), directory, &wiring, rows).unwrap_err();
    assert!(matches!(found, PartitionError::Layout("types")), "{found}");
}

#[test]
fn the_verifiers_wires_are_those_of_the_source() {
    // In another order.
    let mut seen_ = seen();
    seen_.wiring.public.swap(0, 1);
    assert!(matches!(seen_.check(), Err(PartitionError::Public { index: 1, .. })));
    // In another order, with the readers' slots, so that only the source says that it is wrong.
    let mut seen_ = seen();
    let (one, two) = (seen_.slot(0, 1), seen_.slot(2, 2));
    seen_.wiring.slots.swap(one, two);
    assert_eq!(seen_.problem(), PartProblem::NotPublic(1));
    // One less, and one that the verifier reads.
    let mut seen_ = seen();
    seen_.wiring.public.pop();
    assert!(matches!(seen_.check(), Err(PartitionError::Public { index: 2, .. })));
    let mut seen_ = seen();
    seen_.wiring.public[1].multiplicity = -1;
    assert!(matches!(seen_.check(), Err(PartitionError::Public { index: 2, .. })));
    // A value that the key would fix.
    let mut seen_ = seen();
    let value = Fr::ONE;
    let constant = hekaton_circuit::ConstantWire { address: 9, multiplicity: 1, value };
    seen_.wiring.constants.push(constant);
    assert!(matches!(seen_.check(), Err(PartitionError::Public { .. })));
    // More readers than the verifier writes for.
    let mut seen_ = seen();
    seen_.wiring.public[0].multiplicity = 2;
    assert!(matches!(seen_.check(), Err(PartitionError::Address { address: 1, .. })));
}

#[test]
fn rows_of_keys_are_checked() {
    let mut seen_ = seen();
    seen_.rows[1][0][0][0].1 = 99;
    assert!(matches!(seen_.problem(), PartProblem::NoSuchVariable { variable: 99, .. }));
    let mut seen_ = seen();
    let row = seen_.rows[1][0].clone();
    seen_.rows[1].push(row);
    assert_eq!(seen_.problem(), PartProblem::RowCount { rows: 4, numbers: 3 });
    let mut seen_ = seen();
    seen_.rows[2][1][2][0].0 += Fr::ONE;
    assert!(matches!(seen_.problem(), PartProblem::OtherRow { number: 7, .. }));
}

/// The partition is of another source.
#[test]
fn another_source_is_refused() {
    let seen_ = seen();
    let (rows, wires) = chain_rows(3, None);
    let other = system(wires, 2, &rows);
    let rows = |kind: usize| Ok(seen_.rows[kind].clone());
    let found = check_partition(&other, &seen_.directory, &seen_.wiring, rows).unwrap_err();
    assert!(matches!(found, PartitionError::Source { what: "wires", .. }), "{found}");
}

/// Constraints without wires are left out, and listed.
#[test]
fn left_out_constraints_are_listed() {
    let empty: Row = [vec![(0, 2)], vec![(0, 3)], vec![(0, 6)]];
    let (mut rows, wires) = chain_rows(3, None);
    rows.insert(4, empty);
    let system = system(wires, 2, &rows);
    assert_eq!(system.without_wires(), [4]);
    let made = one_piece_a_part(&system, 3);
    assert_eq!(made.parts[1].rows, [3, 5, 6]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    checked(&system, &made, &path).unwrap();
    let mut lying = source(&system);
    lying.without_wires = vec![5];
    let path = folder.path().join("lying");
    write(&path, lying, 1 << 20, &made, None).unwrap();
    let found = monolith(&system).check(&path);
    assert!(matches!(found, Err(ImportError::Partition(PartitionError::LeftOut))), "{found:?}");
}

/// Every file of a directory, changed in any byte, truncated or missing, is refused by name.
#[test]
fn damaged_directories_are_refused() {
    let (system, made) = small();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    checked(&system, &made, &path).unwrap();
    for name in ["circuit.json", "layout", "wires", "types/t1.rows"] {
        let file = path.join(name);
        let whole = std::fs::read(&file).unwrap();
        let refused = || {
            let opened = CircuitBundle::open(&path);
            let read = opened.and_then(|directory| {
                (0..3).try_for_each(|kind| directory.rows(kind).map(drop))?;
                (0..3).try_for_each(|part| directory.content(part).map(drop))
            });
            read.unwrap_err().to_string()
        };
        let mut changed = whole.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        for damaged in [&whole[..whole.len() - 1], &whole[..5], &[], &changed] {
            std::fs::write(&file, damaged).unwrap();
            // The last byte of circuit.json is a new line.
            if name == "circuit.json" && damaged.len() + 1 == whole.len() {
                continue;
            }
            if name == "circuit.json" && damaged.len() == whole.len() {
                // A digit or a letter of a name or number: digests or counts no longer agree.
                continue;
            }
            let why = refused();
            assert!(why.contains(name.rsplit('/').next().unwrap()), "{name}: {why}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(refused().contains(name.rsplit('/').next().unwrap()));
        std::fs::write(&file, whole).unwrap();
    }
    CircuitBundle::open(&path).unwrap();
    // A newer version.
    let file = path.join("circuit.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"version\": 2", "\"version\": 3")).unwrap();
    let found = CircuitBundle::open(&path).unwrap_err();
    assert!(matches!(found, BundleError::Version { found: 3, .. }), "{found}");
    assert!(matches!(CircuitBundle::open(&file), Err(BundleError::NotOne { .. })));
}

/// Nothing is written over what is there, and nothing is left where the check fails.
#[test]
fn a_directory_in_the_way_is_left_alone() {
    let (system, _) = small();
    let monolith = monolith(&system);
    let plan = monolith.cut(20, |_| {}).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    std::fs::create_dir(&path).unwrap();
    monolith.write(&plan, &path).unwrap();
    let found = monolith.write(&plan, &path).unwrap_err();
    assert!(matches!(found, ImportError::Write(_)), "{found}");
    let mut wrong = plan.clone();
    wrong.parts.parts[0].rows.swap(0, 1);
    let other = folder.path().join("other");
    let found = monolith.write(&wrong, &other).unwrap_err();
    assert!(matches!(found, ImportError::Partition(_)), "{found}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// circom's `<--` without a constraint: every value of the output holds, and the notice names it.
#[test]
fn outputs_that_nothing_ties_are_named() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let (r1cs, sym) = (golden.join("free-output.r1cs"), golden.join("free-output.sym"));
    let folder = tempfile::tempdir().unwrap();
    for (names, label) in
        [(Some(sym.as_path()), "main.outs[0] (output)"), (None, "public[0] (output)")]
    {
        let monolith = Monolith::read(&r1cs, names, |_, _| {}).unwrap();
        let [notice] = &monolith.notices()[..] else { panic!("one notice") };
        assert!(notice.contains("1 of 2 public values is in no constraint"), "{notice}");
        assert!(notice.contains(label) && notice.contains("`<--`"), "{notice}");
        let path = folder.path().join(label);
        monolith.write(&monolith.cut(64, |_| {}).unwrap(), &path).unwrap();
        let directory = CircuitBundle::open(&path).unwrap();
        assert_eq!(directory.free_public_wires().unwrap(), [1]);
        assert_eq!(directory.notices().unwrap(), monolith.notices());
        assert_eq!(directory.public_name(1), names.map(|_| "main.outs[0]"));
        for witness in ["free-output.wtns", "free-output-evil.wtns"] {
            let witness = WitnessFile::open(&golden.join(witness)).unwrap();
            let report = check(&Imported::open(&path).unwrap(), &witness, |_, _| {}).unwrap();
            assert!(report.violations.is_empty());
        }
    }
}

/// Names that were changed, or are gone, are reported where names are asked for; proving does not
/// need them.
#[test]
fn damaged_names_are_reported() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let names = golden.join("cubic.sym");
    let monolith = Monolith::read(&golden.join("cubic.r1cs"), Some(&names), |_, _| {}).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    monolith.write(&monolith.cut(64, |_| {}).unwrap(), &path).unwrap();
    let open = || CircuitBundle::open(&path).unwrap();
    assert_eq!(open().symbols().unwrap().unwrap().name(3), Some("main.square"));
    let file = path.join("symbols");
    let whole = std::fs::read(&file).unwrap();
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    for damaged in [&whole[..whole.len() - 1], &[], &changed] {
        std::fs::write(&file, damaged).unwrap();
        for found in [open().symbols().map(drop), open().check_files()] {
            assert!(matches!(found, Err(BundleError::Changed { .. })), "{found:?}");
        }
    }
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(open().symbols(), Err(BundleError::Io { .. })));
    // The copy in a key store has neither rows nor these names.
    std::fs::remove_dir_all(path.join("types")).unwrap();
    assert!(open().symbols().unwrap().is_none());
    assert_eq!(open().public_label(1), "main.y");
}

/// A witness of another length is refused, with both lengths.
#[test]
fn witnesses_must_have_a_value_for_each_wire() {
    let (system, made) = small();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    checked(&system, &made, &path).unwrap();
    let circuit = Imported::open(&path).unwrap();
    for count in [10, 12] {
        let witness = witness(&vec![Fr::ONE; count]);
        let found = check(&circuit, &witness, |_, _| {}).unwrap_err().to_string();
        assert!(found.contains(&count.to_string()) && found.contains("11"), "{found}");
    }
}
