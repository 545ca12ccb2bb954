//! Sums and packs: parts with them say what the source says, and each forgery that a rule of the
//! checker refuses would be proven without that rule.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use ark_ff::{AdditiveGroup, Field};
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, StoredRow, StoredRows,
    Subcircuit, TypeId, WireId, WireValues, check,
};
use hekaton_core::{LocalEngine, ProveOptions, SetupOptions, prove, setup, verify};
use hekaton_r1cs::directory::write;
use hekaton_r1cs::partition::{
    Access, Cut, Occurrences, Order, Parts, Plan, Rows, derived_parts, parts,
};
use hekaton_r1cs::{
    Definition, Derived, ImportError, Imported, PartProblem, PartitionError, RowKind, System,
    Values,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use systems::{Row, checked, holds, monolith, source, system, witness};

mod systems;

/// Wires of [`pieces`]: the public result, bits, what the first part computes of them, and the second.
const OUT: u32 = 1;
const BITS: u32 = 2;
const X: u32 = 10;
const P: u32 = 14;
const Q: u32 = 22;
const WIRES: u32 = 23;

/// Two pieces. The first has eight bits and four products x_j of them. The second has the products
/// p_i of neighboring bits, q = (p_0 + a sum of all x_j) p_1, and out = q + a sum of all p_i.
fn pieces() -> (System, Cut) {
    let rows = rows_of_pieces();
    let part_of = (0..rows.len()).map(|row| u32::from(row >= 12)).collect();
    (system(WIRES, 1, &rows), Cut { part_of, parts: 2 })
}

fn rows_of_pieces() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for i in 0..8 {
        let w = BITS + i;
        rows.push(match i % 3 {
            0 => [vec![(w, 1)], vec![(w, 1), (0, -1)], vec![]],
            1 => [vec![(0, 3), (w, -3)], vec![(w, 2)], vec![]],
            _ => [vec![(w, 1)], vec![(w, 1)], vec![(w, 1)]],
        });
    }
    for j in 0..4 {
        let (a, b) = (BITS + 2 * j, BITS + 2 * j + 1);
        rows.push([vec![(0, 2), (a, 1)], vec![(0, 3), (b, 1)], vec![(X + j, 1)]]);
    }
    for i in 0..8 {
        rows.push([vec![(BITS + i, 1)], vec![(BITS + (i + 1) % 8, 1)], vec![(P + i, 1)]]);
    }
    let x = (0..4).map(|j| (X + j, 2 + i64::from(j)));
    rows.push([[(P, 1)].into_iter().chain(x).collect(), vec![(P + 1, 1)], vec![(Q, 1)]]);
    let p = (0..8).map(|i| (P + i, 1 + i64::from(i)));
    rows.push([p.chain([(Q, 1)]).collect(), vec![(0, 1)], vec![(OUT, 1)]]);
    rows
}

/// Values of all wires, with these values of the bits, which need not be 0 or 1, and this much more
/// in place of the sum of all x_j.
fn values(bits: &[u64; 8], more: u64) -> Vec<Fr> {
    let mut z = vec![Fr::ZERO; WIRES as usize];
    z[0] = Fr::ONE;
    for (i, bit) in bits.iter().enumerate() {
        z[BITS as usize + i] = Fr::from(*bit);
    }
    let bit = |i: usize| Fr::from(bits[i % 8]);
    let mut sum = Fr::from(more);
    for j in 0..4 {
        let x = (Fr::from(2u64) + bit(2 * j)) * (Fr::from(3u64) + bit(2 * j + 1));
        z[X as usize + j] = x;
        sum += Fr::from(2 + j as u64) * x;
    }
    let mut out = Fr::ZERO;
    for i in 0..8 {
        let p = bit(i) * bit(i + 1);
        z[P as usize + i] = p;
        out += Fr::from(1 + i as u64) * p;
    }
    let q = (z[P as usize] + sum) * z[P as usize + 1];
    (z[Q as usize], z[OUT as usize]) = (q, out + q);
    z
}

const HONEST: [u64; 8] = [1, 1, 1, 0, 1, 1, 0, 1];

/// The two parts, with one sum and one pack.
fn made() -> (System, Parts) {
    let (system, cut) = pieces();
    let occurrences = Occurrences::new(&system);
    let made = derived_parts(&system, &occurrences, &cut, Order::Source, 1 << 20);
    assert_eq!(made.derived.counts(), [1, 1]);
    // y and v in both, and the result.
    assert_eq!(made.slots(), 5);
    assert_eq!(parts(&system, &occurrences, &cut, Order::Source, 1 << 20).slots(), 25);
    (system, made)
}

#[test]
fn sums_and_packs_say_what_the_source_says() {
    let (system, made) = made();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    checked(&system, &made, &path).unwrap();
    let z = values(&HONEST, 0);
    assert_eq!(system.false_row(&z), None);
    assert!(holds(&path, &z));
    for wire in 1..WIRES as usize {
        let mut z = z.clone();
        z[wire] += Fr::ONE;
        assert!(!holds(&path, &z), "wire {wire}");
    }
    // A bit that is not one, with all that follows from it.
    let mut bits = HONEST;
    bits[3] = 2;
    let z = values(&bits, 0);
    assert_eq!(system.false_row(&z).map(|row| row.number), Some(3));
    assert!(!holds(&path, &z));
}

/// A prover that cheats: its own values and derived wires are what it likes, part by part.
struct Forged {
    inner: Imported,
    /// Values of shared wires, derived ones included.
    shared: BTreeMap<u32, Fr>,
    /// The values of all wires of each part.
    parts: Vec<BTreeMap<u32, Fr>>,
}

impl Forged {
    /// The values of an honest prover whose wires have other values in some parts.
    fn new(inner: Imported, parts: [&[Fr]; 2], shared: &[(u32, Fr)]) -> Self {
        let parts = parts.map(|z| (0u32..).zip(z.iter().copied()).collect());
        let parts = parts.into_iter().map(|mut all: BTreeMap<u32, Fr>| {
            all.extend(shared.iter().copied());
            all
        });
        Self { inner, shared: shared.iter().copied().collect(), parts: parts.collect() }
    }

    fn wire_ids(&self) -> Vec<u32> {
        let directory = self.inner.directory();
        let used = (0..directory.parts()).flat_map(|part| directory.slots(part));
        let used = used.filter(|(wire, access)| *access != Access::Unused && *wire > OUT);
        let mut wires: Vec<u32> = used.map(|(wire, _)| wire).collect();
        wires.push(OUT);
        wires.sort_unstable();
        wires.dedup();
        wires
    }
}

impl Circuit for Forged {
    type Input = ();
    type Plan = Vec<WireId>;
    type Trace = ();
    type Private = Values;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> {
        self.inner.layout(layout)
    }

    fn execute(
        &self,
        plan: &Vec<WireId>,
        _input: &(),
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        for (id, wire) in plan.iter().zip(self.wire_ids()) {
            values.set(*id, self.shared[&wire]);
        }
        let directory = self.inner.directory();
        for (part, own) in self.parts.iter().enumerate() {
            for (slot, (wire, access)) in directory.slots(part).enumerate() {
                if access == Access::Unused {
                    values.set_unused(InstanceId::from_index(part as u32), slot, own[&wire]);
                }
            }
        }
        Ok(())
    }

    fn private_input(
        &self,
        _plan: &Vec<WireId>,
        _input: &(),
        _trace: &(),
        instance: InstanceId,
    ) -> Result<Values, CircuitError> {
        let content = self.inner.directory().content(instance.index())?;
        let own = &self.parts[instance.index()];
        Ok(Values::encode(content.own.iter().map(|wire| own[wire])))
    }

    fn synthesize(
        &self,
        plan: &Vec<WireId>,
        subcircuit: &Subcircuit,
        private: Option<&Values>,
    ) -> Result<(), hekaton_circuit::ark::relations::gr1cs::SynthesisError> {
        self.inner.synthesize(plan, subcircuit, private)
    }

    fn stored(&self) -> Option<&dyn StoredRows<Values>> {
        Some(self)
    }
}

impl StoredRows<Values> for Forged {
    fn own(&self, kind: TypeId) -> usize {
        StoredRows::own(&self.inner, kind)
    }

    fn rows(&self, kind: TypeId, row: &mut dyn FnMut(StoredRow<'_>)) -> Result<(), CircuitError> {
        StoredRows::rows(&self.inner, kind, row)
    }

    fn own_values(
        &self,
        kind: TypeId,
        slots: &[Fr],
        private: &Values,
        out: &mut Vec<Fr>,
    ) -> Result<(), CircuitError> {
        self.inner.own_values(kind, slots, private, out)
    }
}

/// The numbers of the sum y and of the pack v.
const Y: u32 = WIRES;
const V: u32 = WIRES + 1;

/// The pack of eight bits.
fn packed(bits: &[u64; 8]) -> Fr {
    bits.iter().rev().fold(Fr::ZERO, |sum, bit| sum + sum + Fr::from(*bit))
}

/// The sum that the second part reads.
fn sum(z: &[Fr]) -> Fr {
    (0..4).map(|j| Fr::from(2 + j as u64) * z[X as usize + j]).sum()
}

/// Checks that a changed partition is refused, with which problem; and that without the check a
/// forged proof verifies, for a result that the source does not have.
fn forgery(
    change: impl FnOnce(&mut Parts),
    parts: [&[Fr]; 2],
    shared: &[(u32, Fr)],
) -> PartProblem {
    let (system, mut made) = made();
    change(&mut made);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    let refused = checked(&system, &made, &path);
    let Err(ImportError::Partition(PartitionError::Part { why, .. })) = refused else {
        panic!("{refused:?}")
    };
    let out = parts[1][OUT as usize];
    for bits in 0u64..256 {
        let bits: [u64; 8] = std::array::from_fn(|i| bits >> i & 1);
        assert_ne!(values(&bits, 0)[OUT as usize], out, "a result of the source");
    }
    let shared = [&[(OUT, out)], shared].concat();
    let forged = Forged::new(Imported::open(&path).unwrap(), parts, &shared);
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&forged, &engine, &SetupOptions::new("forged")).unwrap();
    let run = prove(&forged, &(), &keys, &engine, &ProveOptions::new()).unwrap();
    assert_eq!(verify(&keys.verifying, &[out], run.proof.as_bytes()), Ok(()));
    why
}

/// A row of a part: its number, and A, B and C over wires.
type PartRow = (u32, [Vec<(Fr, u32)>; 3]);

/// The rows of a part.
fn decode(made: &Parts, part: usize) -> Vec<PartRow> {
    let part = &made.parts[part];
    let rows: &Rows = &made.types[part.kind as usize].rows;
    let term = |[k, local]: &[u32; 2]| {
        let wire = local.checked_sub(1).map_or(0, |at| part.wires[at as usize]);
        (rows.coefficients[*k as usize], wire)
    };
    let sides = rows.iter().map(|sides| sides.map(|side| side.iter().map(term).collect()));
    part.rows.iter().copied().zip(sides).collect()
}

/// Gives a part, which is the only one of its type, these rows.
fn encode(made: &mut Parts, part: usize, list: &[PartRow]) {
    let part = &mut made.parts[part];
    let mut rows = Rows::default();
    for (_, sides) in list {
        rows.lengths.push(sides.each_ref().map(|side| side.len() as u32));
        for (coefficient, wire) in sides.iter().flatten() {
            let local = part.wires.iter().position(|w| w == wire).map_or(0, |at| at as u32 + 1);
            assert_eq!(local == 0, *wire == 0, "wire {wire} is not in the part");
            rows.terms.push([rows.coefficients.len() as u32, local]);
            rows.coefficients.push(*coefficient);
        }
    }
    made.types[part.kind as usize].rows = rows;
    part.rows = list.iter().map(|(number, _)| *number).collect();
}

fn edit(made: &mut Parts, part: usize, change: impl FnOnce(&mut Vec<PartRow>)) {
    let mut rows = decode(made, part);
    change(&mut rows);
    encode(made, part, &rows);
}

/// Takes the slot of a wire, and its rows, from a part.
fn without_slot(made: &mut Parts, part: usize, wire: u32) {
    let mut rows = decode(made, part);
    rows.retain(|(_, sides)| sides.iter().flatten().all(|(_, of)| *of != wire));
    let at = slot(made, part, wire);
    made.parts[part].wires.remove(at);
    made.parts[part].access.remove(at);
    let kind = made.parts[part].kind as usize;
    made.types[kind].slots -= 1;
    encode(made, part, &rows);
}

/// The place of a row.
fn place(derived: &Derived, rows: &[PartRow], row: RowKind) -> usize {
    let number = derived.number(row);
    rows.iter().position(|(n, _)| *n == number).unwrap()
}

/// Changes one row of a part.
fn edit_row(made: &mut Parts, part: usize, row: RowKind, change: impl FnOnce(&mut PartRow)) {
    let derived = made.derived.clone();
    edit(made, part, |rows| {
        let at = place(&derived, rows, row);
        change(&mut rows[at]);
    });
}

/// Removes a row of a part, and returns it.
fn remove(made: &mut Parts, part: usize, row: RowKind) -> PartRow {
    let (derived, mut removed) = (made.derived.clone(), None);
    edit(made, part, |rows| removed = Some(rows.remove(place(&derived, rows, row))));
    removed.unwrap()
}

/// The bits of the second part are those of no one, with the same pack: 2 in place of a 0 and a 1.
fn other_bits() -> [u64; 8] {
    let mut bits = HONEST;
    // 2 * 2^2 + 0 * 2^3 in place of 0 * 2^2 + 1 * 2^3 and so on.
    bits[2] += 2;
    assert_eq!((bits[3], bits[2]), (0, 3));
    // The first part's honest bits have the same sum.
    bits
}

#[test]
fn a_pack_without_bit_rows_in_the_reader_is_refused() {
    let free = other_bits();
    let mut honest = free;
    // 3 * 4 = 4 + 8.
    (honest[2], honest[3]) = (1, 1);
    assert_eq!(packed(&free), packed(&honest));
    let first = values(&honest, 0);
    let y = sum(&first);
    // The second part computes with its own bits, and the first one's sum.
    let more = y - sum(&values(&free, 0));
    let mut second = values(&free, 0);
    let q = (second[P as usize] + y) * second[P as usize + 1];
    let difference = q - second[Q as usize];
    second[OUT as usize] += difference;
    second[Q as usize] = q;
    assert_ne!(more, Fr::ZERO);
    let why = forgery(
        |made| {
            for i in 0..8 {
                remove(made, 1, RowKind::Bit(BITS + i));
            }
        },
        [&first, &second],
        &[(Y, y), (V, packed(&free))],
    );
    assert_eq!(why, PartProblem::FreeBit { pack: V, bit: BITS });
}

/// The slot of a wire in a part.
fn slot(made: &Parts, part: usize, wire: u32) -> usize {
    made.parts[part].wires.iter().position(|w| *w == wire).unwrap()
}

/// A sum whose slot is unused in the reader, or in both: it is free there.
#[test]
fn a_free_sum_is_refused() {
    let first = values(&HONEST, 0);
    for unused in [&[0usize, 1][..], &[1], &[0]] {
        let mut second = values(&HONEST, 1000);
        second.push(sum(&first) + Fr::from(1000u64));
        let mut first = first.clone();
        first.push(sum(&first));
        let change = |made: &mut Parts| {
            for part in unused {
                let slot = slot(made, *part, Y);
                made.parts[*part].access[slot] = Access::Unused;
            }
        };
        if unused == [0, 1] {
            // The values that parts have of y are those of the lists.
            let why = forgery(change, [&first, &second], &[(V, packed(&HONEST))]);
            assert_eq!(why, PartProblem::NotShared(Y));
            continue;
        }
        let (system, mut made) = made();
        change(&mut made);
        let folder = tempfile::tempdir().unwrap();
        let found = checked(&system, &made, &folder.path().join("circuit"));
        let found = found.unwrap_err().to_string();
        // What is left has no writer, or no reader.
        assert!(found.contains("wire"), "{found}");
    }
}

/// A pack whose slots are unused: the bits of each part are its own.
#[test]
fn a_pack_that_is_not_shared_is_refused() {
    let (all, other) = ([0; 8], [0, 1, 1, 0, 0, 0, 0, 0]);
    let first = values(&all, 0);
    let y = sum(&first);
    let mut second = values(&other, 0);
    let q = (second[P as usize] + y) * second[P as usize + 1];
    let difference = q - second[Q as usize];
    second[OUT as usize] += difference;
    second[Q as usize] = q;
    let (mut first_, mut second_) = (first, second);
    first_.extend([y, packed(&all)]);
    second_.extend([y, packed(&other)]);
    let why = forgery(
        |made| {
            for part in [0, 1] {
                let slot = slot(made, part, V);
                made.parts[part].access[slot] = Access::Unused;
            }
        },
        [&first_, &second_],
        &[(Y, y)],
    );
    // Its bits have the pack in both, but it is not one.
    assert_eq!(why, PartProblem::NotShared(V));
}

/// The problem of a changed partition.
fn refused(change: impl FnOnce(&mut Parts)) -> PartitionError {
    let (system, mut made) = made();
    change(&mut made);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    match checked(&system, &made, &path) {
        Err(ImportError::Partition(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn problem(change: impl FnOnce(&mut Parts)) -> PartProblem {
    match refused(change) {
        PartitionError::Part { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

/// Changes the definitions of derived wires.
fn redefine(made: &mut Parts, change: impl FnOnce(&mut Vec<Definition>)) {
    let mut definitions = made.derived.definitions().to_vec();
    change(&mut definitions);
    let coefficients = made.derived.coefficients().to_vec();
    made.derived = Derived::new(22, WIRES, coefficients, definitions).unwrap();
}

fn terms(definition: &mut Definition) -> &mut Vec<[u32; 2]> {
    let Definition::Sum(terms) = definition else { panic!() };
    terms
}

fn bits(definition: &mut Definition) -> &mut Vec<u32> {
    let Definition::Pack(bits) = definition else { panic!() };
    bits
}

#[test]
fn a_sum_with_another_coefficient_is_refused() {
    // In its row.
    let change = |made: &mut Parts| {
        edit_row(made, 0, RowKind::Definition(Y), |(_, [a, _, _])| a[0].0 += Fr::ONE);
    };
    let found = problem(change);
    assert!(matches!(found, PartProblem::OtherDefinition { wire: Y, .. }), "{found}");
    // In its definition and its row: the row that reads it is no longer that of the source.
    let found = problem(|made| {
        edit_row(made, 0, RowKind::Definition(Y), |(_, [a, _, _])| a[0].0 = a[1].0);
        redefine(made, |definitions| {
            let terms = terms(&mut definitions[0]);
            terms[0][0] = terms[1][0];
        });
    });
    assert!(matches!(found, PartProblem::OtherRow { number: 20, .. }), "{found}");
    // Multiplied where it is read.
    let found = problem(|made| {
        edit_row(made, 1, RowKind::Source(20), |(_, [a, _, _])| {
            a.iter_mut().filter(|(_, wire)| *wire == Y).for_each(|(k, _)| *k += *k);
        });
    });
    assert!(matches!(found, PartProblem::OtherRow { number: 20, .. }), "{found}");
    // Read twice, which would be the same with other coefficients.
    let found = problem(|made| {
        edit_row(made, 1, RowKind::Source(20), |(_, [a, _, _])| {
            let half = Fr::from(2u64).inverse().unwrap();
            let at = a.iter().position(|(_, wire)| *wire == Y).unwrap();
            a[at].0 = half;
            a.push((half, Y));
        });
    });
    assert!(matches!(found, PartProblem::OtherRow { number: 20, .. }), "{found}");
    // Not a sum, but a product.
    let found = problem(|made| {
        edit_row(made, 0, RowKind::Definition(Y), |(_, [_, b, _])| b.push((Fr::ONE, X)));
    });
    assert!(matches!(found, PartProblem::OtherDefinition { wire: Y, .. }), "{found}");
}

#[test]
fn a_sum_without_a_row_or_with_two_is_refused() {
    let found = refused(|made| drop(remove(made, 0, RowKind::Definition(Y))));
    assert!(matches!(found, PartitionError::Definition { wire: Y, .. }), "{found}");
    let twice = |made: &mut Parts| {
        let row = remove(made, 0, RowKind::Definition(Y));
        edit(made, 0, |rows| rows.extend([row.clone(), row]));
    };
    assert_eq!(problem(twice), PartProblem::DefinedTwice(Y));
    // A part that does not have its wires cannot have its row.
    let found = problem(|made| {
        let (number, [_, b, c]) = remove(made, 0, RowKind::Definition(Y));
        edit(made, 1, |rows| rows.push((number, [vec![(Fr::ONE, Y)], b, c])));
    });
    assert!(matches!(found, PartProblem::OtherDefinition { wire: Y, .. }), "{found}");
}

/// The reason for which definitions are refused.
fn definition(change: impl FnOnce(&mut Vec<Definition>)) -> String {
    match refused(|made| redefine(made, change)) {
        error @ PartitionError::Definition { .. } => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn definitions_that_mean_several_things_are_refused() {
    let found = definition(|definitions| terms(&mut definitions[0]).truncate(1));
    assert!(found.contains("two terms"), "{found}");
    let found = definition(|definitions| {
        let terms = terms(&mut definitions[0]);
        terms[1] = terms[0];
    });
    assert!(found.contains("ascend"), "{found}");
    let found = definition(|definitions| terms(&mut definitions[0])[0][1] = 0);
    assert!(found.contains("terms over wires"), "{found}");
    // A sum of a pack.
    let found = definition(|definitions| {
        let terms = vec![[0, BITS], [0, V]];
        definitions.push(Definition::Sum(terms));
    });
    assert!(found.contains("terms over wires"), "{found}");
    // A public bit, one of two packs, and one that is twice in a pack.
    let found = definition(|definitions| bits(&mut definitions[1])[0] = OUT);
    assert!(found.contains("private"), "{found}");
    let found = definition(|definitions| definitions.push(Definition::Pack(vec![BITS])));
    assert!(found.contains("one place"), "{found}");
    let found = definition(|definitions| bits(&mut definitions[1])[0] = BITS + 1);
    assert!(found.contains("one place"), "{found}");
    // Circles, coefficients that are not there, and sums beyond 2^254 have no definitions at all.
    let new = |definition| Derived::new(22, WIRES, vec![Fr::ONE], vec![definition]);
    assert!(new(Definition::Sum(vec![[0, 2], [0, WIRES]])).is_err());
    assert!(new(Definition::Sum(vec![[1, 2], [0, 3]])).is_err());
    assert!(new(Definition::Pack(vec![WIRES])).is_err());
    let many =
        |count: u32| Derived::new(0, 500, vec![], vec![Definition::Pack((1..=count).collect())]);
    assert!(many(254).is_ok() && many(255).is_err());
    assert!(Derived::new(1 << 32, WIRES, vec![], vec![Definition::Pack(vec![2])]).is_err());
}

#[test]
fn a_pack_in_another_order_is_refused() {
    for part in [0, 1] {
        let found = problem(|made| {
            edit_row(made, part, RowKind::Definition(V), |(_, [a, _, _])| {
                (a[0].1, a[1].1) = (a[1].1, a[0].1);
            });
        });
        assert!(matches!(found, PartProblem::OtherDefinition { wire: V, .. }), "{found}");
    }
}

#[test]
fn a_pack_without_its_row_or_with_two_is_refused() {
    for part in [0, 1] {
        let found = problem(|made| drop(remove(made, part, RowKind::Definition(V))));
        assert_eq!(found, PartProblem::NoPackRow(V));
    }
    let twice = |made: &mut Parts| {
        let row = remove(made, 1, RowKind::Definition(V));
        edit(made, 1, |rows| rows.extend([row.clone(), row]));
    };
    assert_eq!(problem(twice), PartProblem::DefinedTwice(V));
}

/// The part that writes the pack must say that its bits are bits, itself.
#[test]
fn a_pack_without_bit_rows_in_the_writer_is_refused() {
    // The source's row for a bit goes to the other part, whose own one goes.
    let found = problem(|made| {
        remove(made, 1, RowKind::Bit(BITS + 2));
        let row = remove(made, 0, RowKind::Source(2));
        edit(made, 1, |rows| rows.push(row));
    });
    assert_eq!(found, PartProblem::FreeBit { pack: V, bit: BITS + 2 });
}

/// Rows that are said to make a wire a bit, and do not.
#[test]
fn rows_that_make_no_bits_are_refused() {
    for spoil in 0..5 {
        let found = problem(|made| {
            edit_row(made, 1, RowKind::Bit(BITS), |(_, [a, b, c])| match spoil {
                // w * 2 w = w, and 0 = 0, and a row of another wire, and another wire that is a bit, and
                // w (w - 1) = 1.
                0 => {
                    *b = vec![(Fr::from(2u64), BITS)];
                    c.push((Fr::ONE, BITS));
                }
                1 => a[0].0 = Fr::ZERO,
                2 => a[0].1 = BITS + 1,
                3 => {
                    a[0].1 = BITS + 1;
                    b.iter_mut().filter(|(_, w)| *w == BITS).for_each(|(_, w)| *w = BITS + 1);
                }
                _ => c.push((Fr::ONE, 0)),
            });
        });
        assert_eq!(found, PartProblem::NoBit { row: 11, wire: BITS }, "{spoil}");
    }
    // Twice.
    let found = problem(|made| {
        let row = remove(made, 1, RowKind::Bit(BITS));
        edit(made, 1, |rows| rows.extend([row.clone(), row]));
    });
    assert!(matches!(found, PartProblem::NoBit { wire: BITS, .. }), "{found}");
    // A bit for wire p_0, which is one, but the source does not say so: a witness could be refused.
    let found = problem(|made| {
        let number = made.derived.number(RowKind::Bit(P));
        let (a, b) = ((Fr::ONE, P), vec![(Fr::ONE, P), (-Fr::ONE, 0)]);
        edit(made, 1, |rows| rows.push((number, [vec![a], b, vec![]])));
    });
    assert!(matches!(found, PartProblem::NoBit { wire: P, .. }), "{found}");
}

/// Sums of sums that would have 2^60 terms are refused before they are written out.
#[test]
fn sums_that_explode_are_refused() {
    let found = problem(|made| {
        redefine(made, |definitions| {
            let mut last = [BITS, Y];
            for _ in 0..60 {
                // Two of the same: their sum has twice the terms.
                let next = WIRES + definitions.len() as u32;
                let sum = Definition::Sum(last.map(|wire| [0, wire]).to_vec());
                definitions.extend([sum.clone(), sum]);
                last = [next, next + 1];
            }
        });
        // The reader has the last one as a wire of its own, in place of y.
        let last = made.derived.wires() - 1;
        made.parts[1].wires.push(last);
        let kind = made.parts[1].kind as usize;
        made.types[kind].own += 1;
        edit_row(made, 1, RowKind::Source(20), |(_, [a, _, _])| {
            a.iter_mut().filter(|(_, wire)| *wire == Y).for_each(|(_, wire)| *wire = last);
        });
    });
    assert!(matches!(found, PartProblem::OtherRow { number: 20, .. }), "{found}");
}

/// A part with the bits of a pack, and without the pack, has bits of its own.
#[test]
fn bits_without_their_pack_are_refused() {
    let found = problem(|made| {
        for i in 0..8 {
            remove(made, 1, RowKind::Bit(BITS + i));
        }
        without_slot(made, 1, V);
        // It was written for one reader.
        let slot = slot(made, 0, V);
        made.parts[0].access[slot] = Access::Unused;
    });
    assert_eq!(found, PartProblem::NotShared(BITS));
}

/// (w + 5 q) (w - 1) = 0 does not say that w is a bit, although the coefficients of w are those.
#[test]
fn rows_of_two_wires_make_no_bits() {
    let (_, mut made) = made();
    let mut rows = rows_of_pieces();
    rows[0] = [vec![(BITS, 1), (X, 5)], vec![(BITS, 1), (0, -1)], vec![]];
    let changed = system(WIRES, 1, &rows);
    edit_row(&mut made, 0, RowKind::Source(0), |(_, [a, b, _])| {
        *a = vec![(Fr::ONE, BITS), (Fr::from(5u64), X)];
        *b = vec![(-Fr::ONE, 0), (Fr::ONE, BITS)];
    });
    let folder = tempfile::tempdir().unwrap();
    let found = checked(&changed, &made, &folder.path().join("circuit"));
    let Err(ImportError::Partition(PartitionError::Part { part: 0, why })) = found else {
        panic!("{found:?}")
    };
    assert_eq!(why, PartProblem::FreeBit { pack: V, bit: BITS });
}

/// Another witness gives the same sums and packs only if it is the same there.
#[test]
fn derived_values_are_computed() {
    let (system, made) = made();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    checked(&system, &made, &path).unwrap();
    let z = values(&HONEST, 0);
    let circuit = Imported::open(&path).unwrap();
    let report = check(&circuit, &witness(&z), |_, _| {}).unwrap();
    assert!(report.violations.is_empty());
    let expected = [(Y, sum(&z)), (V, packed(&HONEST))];
    let derived = circuit.directory().derived();
    assert_eq!(derived.wires(), WIRES + 2);
    for (wire, value) in expected {
        // The definitions say what they should.
        let found = match derived.get(wire).unwrap() {
            Definition::Sum(terms) => terms
                .iter()
                .map(|[k, wire]| derived.coefficients()[*k as usize] * z[*wire as usize])
                .sum::<Fr>(),
            Definition::Pack(bits) => {
                bits.iter().rev().fold(Fr::ZERO, |sum, bit| sum + sum + z[*bit as usize])
            }
        };
        assert_eq!(found, value, "wire {wire}");
    }
    // A violation says what it is about.
    let mut spoiled = z;
    spoiled[BITS as usize + 3] = Fr::from(7u64);
    let report = check(&circuit, &witness(&spoiled), |_, _| {}).unwrap();
    assert!(!report.violations.is_empty());
}

/// Combinations that are longer than a part become sums of sums.
#[test]
fn long_combinations_are_split() {
    const TERMS: u32 = 10_000;
    // x_i = i-th input squared, and one row with all of them.
    let mut rows: Vec<Row> = (0..TERMS)
        .map(|i| [vec![(2 + i, 1)], vec![(2 + i, 1)], vec![(2 + TERMS + i, 1)]])
        .collect();
    rows.push([
        (0..TERMS).map(|i| (2 + TERMS + i, 1 + i64::from(i % 7))).collect(),
        vec![(0, 1)],
        vec![(1, 1)],
    ]);
    let system = system(2 + 2 * TERMS, 1, &rows);
    let occurrences = Occurrences::new(&system);
    let plan = Plan::new(&system, &occurrences, 6000, |_| {}).unwrap();
    assert!(plan.parts.parts.len() >= 2 && plan.parts.derived.counts()[0] >= 3);
    assert!(plan.slots() < 20, "{}", plan.slots());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    monolith(&system).write(&plan, &path).unwrap();
    let mut z = vec![Fr::ONE; 2 + 2 * TERMS as usize];
    let mut sum = Fr::ZERO;
    for i in 0..TERMS as usize {
        let x = Fr::from(i as u64 % 11);
        (z[2 + i], z[2 + TERMS as usize + i]) = (x, x * x);
        sum += Fr::from(1 + i as u64 % 7) * x * x;
    }
    z[1] = sum;
    assert!(holds(&path, &z));
    z[1] += Fr::ONE;
    assert!(!holds(&path, &z));
}

const BIT_COUNT: u32 = 12;
const ALL: u32 = 36;

/// Rows over bits, and over other wires near a place that moves on; and the values of all wires.
fn any_rows() -> impl Strategy<Value = (Vec<Row>, Vec<i64>)> {
    let side = || prop::collection::vec((0u32..14, -3i64..4), 0..10);
    let row = (1..ALL, side(), side(), side()).prop_map(|(base, a, b, c)| {
        [a, b, c].map(|side: Vec<(u32, i64)>| {
            side.into_iter()
                .map(|(offset, k)| ((base + offset) % ALL, k))
                .collect::<Vec<(u32, i64)>>()
        })
    });
    let values = prop::collection::vec(-4i64..5, ALL as usize);
    let bits = prop::collection::vec(0i64..2, BIT_COUNT as usize);
    (prop::collection::vec(row, 1..30), values, bits).prop_map(|(rows, mut values, bits)| {
        values[0] = 1;
        // The last wires are bits.
        let first = (ALL - BIT_COUNT) as usize;
        values[first..].copy_from_slice(&bits);
        let bit = |w: u32| -> Row { [vec![(w, 1)], vec![(w, 1), (0, -1)], vec![]] };
        let mut all: Vec<Row> = (ALL - BIT_COUNT..ALL).map(bit).collect();
        let value = |side: &[(u32, i64)]| -> i64 {
            side.iter().map(|(wire, k)| k * values[*wire as usize]).sum()
        };
        all.extend(rows.into_iter().map(|[a, b, mut c]| {
            let rest = value(&a) * value(&b) - value(&c);
            c.push((0, rest));
            [a, b, c]
        }));
        (all, values)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Sums and packs for any cut are accepted, and hold if and only if the source does.
    #[test]
    fn derived_parts_hold_if_and_only_if_the_source_does(
        (rows, values) in any_rows(),
        public in 0u32..5,
        count in 2u32..4,
        seed in prop::collection::vec(any::<u32>(), 42),
        by_source in any::<bool>(),
        (spoiled, by) in (1..ALL, 1i64..4),
        room in 0u64..30,
    ) {
        let system = system(ALL, public, &rows);
        let part_of = (0..system.rows()).map(|row| seed[row] % count).collect();
        let mut cut = Cut { part_of, parts: count };
        cut.drop_empty();
        let occurrences = Occurrences::new(&system);
        let order = if by_source { Order::Source } else { Order::LargestWire };
        let plain = parts(&system, &occurrences, &cut, order, 1 << 20);
        let most = plain.largest() + room;
        let made = derived_parts(&system, &occurrences, &cut, order, most);
        prop_assert!(made.largest() <= most);
        prop_assert!(made.slots() <= plain.slots());
        prop_assert_eq!(made.derived.is_empty(), made == plain);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("circuit");
        checked(&system, &made, &path).unwrap();
        let mut z: Vec<Fr> = values.iter().map(|v| Fr::from(*v)).collect();
        prop_assert_eq!(system.false_row(&z), None);
        prop_assert!(holds(&path, &z));
        z[spoiled as usize] += Fr::from(by);
        prop_assert_eq!(holds(&path, &z), system.false_row(&z).is_none());
    }
}

/// Public wires in no row go to the emptiest part, which can be another one with the rows of a pack.
#[test]
fn derived_parts_fit() {
    // The second part has two rows less, and eight bits of the first.
    let mut rows: Vec<Row> = Vec::new();
    let bit = |i: u32| 20 + i;
    for i in 0..8 {
        rows.push([vec![(bit(i), 1)], vec![(bit(i), 1), (0, -1)], vec![]]);
        rows.push([vec![(bit(i), 1)], vec![(bit((i + 1) % 8), 1)], vec![(40 + i, 1)]]);
    }
    for i in 0..7 {
        rows.push([vec![(bit(i), 1)], vec![(bit(i + 1), 2)], vec![(60 + i, 1)]]);
        rows.push([vec![(bit(i), 1)], vec![(bit(i + 1), 3)], vec![(70 + i, 1)]]);
    }
    // Wires 1 to 15 are public, and in no row.
    let system = system(80, 15, &rows);
    let part_of = (0..rows.len()).map(|row| u32::from(row >= 16)).collect();
    let cut = Cut { part_of, parts: 2 };
    let occurrences = Occurrences::new(&system);
    let most = cut.cost(&system, &occurrences).largest();
    let made = derived_parts(&system, &occurrences, &cut, Order::Source, most);
    assert!(made.largest() <= most, "{} of {most}", made.largest());
}

/// Equal pieces are one type with their sums and packs, too.
#[test]
fn equal_pieces_with_packs_are_one_type() {
    // Each piece takes eight bits, and makes the next eight of them by products with the first.
    let (pieces, mut rows) = (8u32, Vec::<Row>::new());
    let bit = |piece: u32, i: u32| 2 + 8 * piece + i;
    for i in 0..8 {
        rows.push([vec![(bit(0, i), 1)], vec![(bit(0, i), 1), (0, -1)], vec![]]);
    }
    let first = rows.len() as u32;
    for piece in 0..pieces {
        for i in 0..8 {
            let (a, b, w) = (bit(piece, i), bit(piece, (i + 1) % 8), bit(piece + 1, i));
            rows.push([vec![(a, 1)], vec![(b, 1)], vec![(w, 1)]]);
            rows.push([vec![(w, 1)], vec![(w, 1), (0, -1)], vec![]]);
        }
    }
    rows.push([vec![(bit(pieces, 0), 1)], vec![(0, 1)], vec![(1, 1)]]);
    let system = system(2 + 8 * (pieces + 1), 1, &rows);
    let piece = |row: u32| row.saturating_sub(first) / 16;
    let part_of = (0..rows.len() as u32).map(|row| piece(row).min(pieces - 1)).collect();
    let cut = Cut { part_of, parts: pieces };
    let made = derived_parts(&system, &Occurrences::new(&system), &cut, Order::Source, 1 << 20);
    assert_eq!(made.derived.counts(), [0, u64::from(pieces) - 1]);
    assert_eq!(made.types.len(), 3, "the first, the last, all others");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit");
    checked(&system, &made, &path).unwrap();
    let mut z = vec![Fr::ONE; 2 + 8 * (pieces as usize + 1)];
    assert!(holds(&path, &z));
    z[1] = Fr::ZERO;
    assert!(!holds(&path, &z));
    // A written directory is read as it was.
    let file = folder.path().join("again");
    write(&file, source(&system), 1 << 20, &made, None).unwrap();
    let derived = hekaton_r1cs::CircuitBundle::open(&file).unwrap().derived().clone();
    assert_eq!(derived, made.derived);
}
