//! Adversarial tests 14 to 19, 64, 65, 70, 71, 77, 86 and 87: tables, ranges and memories
//! (spec: adversarial-tests#ram).

use super::bench::{Bench, Cheater};
use crate::pool::LocalEngine;
use crate::protocol::{ProveOptions, prove};
use crate::randomness::Randomness;
use crate::verifier::verify::Equation::Z;
use ark_ff::{AdditiveGroup, Field, PrimeField};
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::{Fr, fr_from_bytes, fr_to_bytes};
use hekaton_circuit::{
    BusId, CircuitError, Closures, InstanceId, LayoutBuilder, PreparedCircuit, Ram, RamId,
    Subcircuit, Table, TableId, WireValues, check,
};
use hekaton_testing::{BASE, Digits, Histogram};
use std::num::NonZeroUsize;

const PARTS: usize = 3;
const DIGITS: usize = 4;
/// The instance that asks.
const ASK: usize = PARTS;
/// Marked values of a digit: digit, square, and of each access time before, value found, low limb.
const OF_DIGIT: usize = 8;
/// Tags, in the order of the layout.
const SQUARES: u64 = 1;
const RANGE_4: u64 = 2;
const RANGE_16: u64 = 3;
const COUNTS: u64 = 4;

fn bench() -> Bench<Histogram> {
    Bench::new(Histogram::new(PARTS, DIGITS), true)
}

fn digits() -> Digits {
    let digits = (0..PARTS * DIGITS).map(|i| (i * i + 1) as u64 % 7).collect();
    Digits { digits, asked: 2, clear: true }
}

fn cheater(bench: &Bench<Histogram>) -> Cheater<'_, Histogram> {
    Cheater::new(bench, &digits())
}

#[test]
fn honest_proofs_are_accepted() {
    for (parts, per_part, rows, initial, clear) in
        [(3, 4, 1 << 14, 0, true), (1, 1, 1 << 14, 0, false), (2, 3, 1 << 12, 5, true)]
    {
        let circuit = Histogram { rows, initial, ..Histogram::new(parts, per_part) };
        let digits: Vec<u64> = (0..parts * per_part).map(|i| (3 * i + 2) as u64 % BASE).collect();
        let input = Digits { asked: digits[0], clear, digits };
        let report = check(&circuit, &input, |_, _| {}).unwrap();
        assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
        let bench = Bench::new(circuit, true);
        let mut proofs = Vec::new();
        for threads in [1, 2] {
            let engine = LocalEngine::new(NonZeroUsize::new(threads)).unwrap();
            let randomness = Randomness::seeded_not_zero_knowledge(4);
            let options = ProveOptions::new().randomness(randomness);
            let run = prove(&bench.circuit, &input, &bench.keys, &engine, &options).unwrap();
            assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
            let count = initial + input.digits.iter().filter(|d| **d == input.asked).count() as u64;
            let left = if clear { 0 } else { count };
            let sum = input.digits.iter().map(|d| d * d).sum();
            let expected = [0, sum, input.asked, count, left].map(Fr::from);
            assert_eq!(run.public_values, expected);
            proofs.push(run.proof.as_bytes().to_vec());
        }
        assert_eq!(proofs[0], proofs[1]);
    }
}

/// The rows of accesses, look-ups, cells and table rows, as documented.
#[test]
fn gadgets_have_their_rows() {
    let bench = bench();
    let rows = |name: &str| {
        let key = bench.keys.types.iter().find(|key| key.name() == name).unwrap();
        key.constraints()
    };
    // Row 0, slots and masks; then a range check, a look-up, a read and a write for each digit.
    assert_eq!(rows("part"), 1 + 4 + DIGITS * (1 + 2 + 6 + 7) + 1);
    assert_eq!(rows("ask"), 1 + 5 + 6 + 1 + 9 + 6 + 1);
    assert_eq!(rows("table-squares"), 1 + 2 + BASE as usize);
    assert_eq!(rows("table-range-4"), 1 + 2 + 16);
    assert_eq!(rows("ram-counts"), 1 + 2 + 3 * BASE as usize);
    // Six subcircuits of as many rows hold the numbers of 16 bits.
    assert_eq!(rows("table-range-16"), 1 + 2 + 10_923);
    assert_eq!(bench.wiring.type_of.len(), PARTS + 1 + 1 + 1 + 6 + 1);
}

/// The marked values of an access in a part: its digit, and whether it is the write.
fn access(digit: usize, write: bool) -> std::ops::Range<usize> {
    let start = OF_DIGIT * digit + 2 + 3 * usize::from(write);
    start..start + 3
}

fn small(x: Fr) -> u64 {
    x.into_bigint().0[0]
}

/// Asserts that a proof with these marked values is refused because of the sum, that the author's
/// constraints hold in all instances, and that the entries of these buses, and of no others, do not
/// cancel.
#[track_caller]
fn assert_unbalanced(
    cheater: &mut Cheater<'_, Histogram>,
    changed: &[(usize, Vec<Fr>)],
    buses: &[u64],
) {
    let (proof, assignments) = cheater.finish_marked(changed);
    for (i, z) in assignments.iter().enumerate() {
        assert_eq!(cheater.violated(i, z), None, "instance {i}");
    }
    let unbalanced: Vec<u64> = [SQUARES, RANGE_4, RANGE_16, COUNTS]
        .into_iter()
        .filter(|tag| cheater.sum_of_bus(*tag, &assignments) != Fr::ZERO)
        .collect();
    assert_eq!(unbalanced, buses);
    cheater.assert_fails(&proof, &[Z]);
}

#[test]
fn unchanged_values_are_accepted() {
    let bench = bench();
    let mut cheater = cheater(&bench);
    let (proof, assignments) = cheater.finish_marked(&[]);
    assert!((1..=4).all(|tag| cheater.sum_of_bus(tag, &assignments) == Fr::ZERO));
    assert_eq!(cheater.failing(&proof), []);
}

/// Adversarial test 14: a read finds a stale value, and the write after it follows. Guards: the value
/// in the entries of a memory.
#[test]
fn a14_stale_value() {
    let bench = bench();
    let mut cheater = cheater(&bench);
    // The digit of the last part whose cell was written before.
    let mut marked = cheater.marked[PARTS - 1].clone();
    let digit = (0..DIGITS).find(|d| small(marked[access(*d, false).start]) > 0).unwrap();
    let found = access(digit, false).start + 1;
    assert!(small(marked[found]) > 0);
    marked[found] -= Fr::ONE;
    // The write of one more than what was read finds what the read left.
    marked[access(digit, true).start + 1] -= Fr::ONE;
    assert_unbalanced(&mut cheater, &[(PARTS - 1, marked)], &[COUNTS]);
}

/// Adversarial test 15: the accesses to a cell in another order than their times, so that a read finds
/// what a later write left. All entries of the memory cancel. Guards: the range of the gap.
#[test]
fn a15_access_before_its_time() {
    let bench = bench();
    let mut cheater = cheater(&bench);
    // The reads of the same digit at its first two places: the second one is first in the chain.
    let all = digits().digits;
    let place = |i: usize| (i / DIGITS, i % DIGITS);
    let (first, second) = (0..all.len())
        .find_map(|i| (i + 1..all.len()).find(|j| all[*j] == all[i]).map(|j| (i, j)))
        .unwrap();
    let time = |i: usize, write: bool| Fr::from((1 + 2 * i + usize::from(write)) as u64);
    let mut lists = cheater.marked.clone();
    let mut set = |i: usize, write: bool, before: Fr, found: Fr| {
        let (instance, digit) = place(i);
        let at = access(digit, write).start;
        (lists[instance][at], lists[instance][at + 1]) = (before, found);
        // The low limb of the gap, as if it were not negative.
        let gap = time(i, write) - Fr::ONE - before;
        lists[instance][at + 2] = Fr::from(small(gap) & 0xffff);
    };
    // beginning -> second read and write -> first read and write -> whoever came after the second.
    set(second, false, Fr::ZERO, Fr::ZERO);
    set(second, true, time(second, false), Fr::ZERO);
    set(first, false, time(second, true), Fr::ONE);
    set(first, true, time(first, false), Fr::ONE);
    // The next access takes what the first write left.
    let rest: Vec<usize> = (second + 1..all.len()).filter(|i| all[*i] == all[first]).collect();
    let two = Fr::from(2u64);
    match rest.first() {
        Some(next) => set(*next, false, time(first, true), two),
        None if all[first] == digits().asked => {
            let gap = lists[ASK][1];
            assert_eq!(gap, time(second, true));
            lists[ASK][1] = time(first, true);
            let base = Fr::from((1 + 2 * all.len()) as u64);
            lists[ASK][3] = Fr::from(small(base - Fr::ONE - time(first, true)) & 0xffff);
        }
        None => {
            // The final entry of the cell.
            let cells = cheater.values.len() - 1;
            let at = 2 * all[first] as usize;
            let spacing = Fr::from(1u64 << 16);
            assert_eq!(lists[cells][at], Fr::from(all[first]) + spacing * time(second, true));
            lists[cells][at] = Fr::from(all[first]) + spacing * time(first, true);
        }
    }
    // Multiplicities of the range are counted for what is in it.
    let changed: Vec<(usize, Vec<Fr>)> = lists.into_iter().enumerate().collect();
    assert_unbalanced(&mut cheater, &changed, &[RANGE_16]);
}

/// Adversarial test 16: an entry of another address with a compensating value. Guards: the key.
#[test]
fn a16_entry_of_another_address() {
    let bench = bench();
    let mut cheater = cheater(&bench);
    let other = digits().digits[1];
    assert_ne!(other, digits().digits[0]);
    // The first digit of the first part is another one in the memory, with its own square and count.
    let mut marked = cheater.marked[0].clone();
    marked[0] = Fr::from(other);
    let (proof, assignments) = cheater.finish_marked(&[(0, marked)]);
    assert!(cheater.sum_of_bus(COUNTS, &assignments) != Fr::ZERO);
    cheater.assert_fails(&proof, &[Z]);
}

/// Adversarial test 17: a value that changes exactly between two subcircuits. Guards: accesses of all
/// subcircuits are in one sum.
#[test]
fn a17_value_changed_at_a_boundary() {
    let bench = bench();
    let mut cheater = cheater(&bench);
    // What the last instance finds is not what the parts left; it publishes that.
    let mut marked = cheater.marked[ASK].clone();
    marked[2] += Fr::ONE;
    // clear, then (before, found, low) of the read, write and the value left, of the read.
    marked[5] += Fr::ONE;
    cheater.values[ASK][1] += Fr::ONE;
    cheater.public[3] += Fr::ONE;
    assert_unbalanced(&mut cheater, &[(ASK, marked)], &[COUNTS]);
}

/// Adversarial test 18: the times of an instance are shifted, and everything that follows from them, so that
/// all rows hold and all buses cancel. Guards: the parameter of the time in S; the control has a key with
/// that parameter.
#[test]
fn a18_time_base_shifted() {
    const BY: u64 = 100;
    let bench = bench();
    // The parameters of parts and of the last instance are their times.
    let mut wiring = bench.wiring.clone();
    wiring.parameters[ASK] += Fr::from(BY);
    let control = bench.with_wiring(Histogram::new(PARTS, DIGITS), wiring);
    for (bench, equations) in [(&bench, &[Z][..]), (&control, &[])] {
        let mut cheater = cheater(bench);
        let cells = cheater.values.len() - 1;
        let by = Fr::from(BY);
        let layout = bench.keys.types[cheater.kind(ASK)].layout();
        cheater.shifted.push((ASK, layout.parameters().start, by));
        // The gap of the first access; the times before the two others; the final cell.
        let mut lists = cheater.marked.clone();
        let gap = small(lists[ASK][3]);
        lists[ASK][3] += by;
        lists[ASK][4] += by;
        lists[ASK][8] += by;
        lists[cells][2 * digits().asked as usize] += by * Fr::from(1u64 << 16);
        // The counts of the first and the second gap; tables of squares and of 4 bits come before.
        let range = ASK + 3;
        assert!(gap + BY < 10_923, "both are in the first subcircuit of the range");
        lists[range][gap as usize] -= Fr::ONE;
        lists[range][(gap + BY) as usize] += Fr::ONE;
        let changed: Vec<(usize, Vec<Fr>)> = lists.into_iter().enumerate().collect();
        let (proof, assignments) = cheater.finish_marked(&changed);
        for (i, z) in assignments.iter().enumerate() {
            assert_eq!(cheater.violated(i, z), None, "instance {i}");
        }
        assert!((1..=4).all(|tag| cheater.sum_of_bus(tag, &assignments) == Fr::ZERO));
        assert_eq!(cheater.failing(&proof), equations);
    }
}

/// Adversarial tests 19, 64 and 65: a final entry that is another one's, that of a middle access, or that
/// of an access that was never made. Guards: as many final as initial entries, each of them taken.
#[test]
fn a19_final_entries() {
    let bench = bench();
    let changes: [fn(&mut Vec<Fr>); 4] = [
        // Twice the same cell.
        |cells| (cells[2], cells[3]) = (cells[0], cells[1]),
        // A middle access: the one before the last.
        |cells| cells[4] -= Fr::from(1u64 << 16),
        // A value that nobody wrote.
        |cells| cells[5] += Fr::ONE,
        // The first entry of a cell that was accessed.
        |cells| (cells[4], cells[5]) = (Fr::from(2u64), Fr::ZERO),
    ];
    for change in changes {
        let mut cheater = cheater(&bench);
        let cells = cheater.values.len() - 1;
        let mut marked = cheater.marked[cells].clone();
        change(&mut marked);
        assert_unbalanced(&mut cheater, &[(cells, marked)], &[COUNTS]);
    }
    // Control: the final entries in another order are the same ones.
    let mut cheater = cheater(&bench);
    let cells = cheater.values.len() - 1;
    let mut marked = cheater.marked[cells].clone();
    (marked[0], marked[1], marked[2], marked[3]) = (marked[2], marked[3], marked[0], marked[1]);
    let (proof, _) = cheater.finish_marked(&[(cells, marked)]);
    assert_eq!(cheater.failing(&proof), []);
}

/// Adversarial tests 86 and 87: an enable bit that is not one. Guards: its own row.
#[test]
fn a86_enable_bits_are_bits() {
    let bench = bench();
    let mut cheater = cheater(&bench);
    let memory = super::bench::some_challenges();
    let honest = cheater.marked[ASK].clone();
    let left = cheater.values[ASK][2];
    assert_eq!(honest[0], Fr::ONE);
    for bit in no_bits() {
        let mut marked = honest.clone();
        marked[0] = bit;
        // What is left follows from the bit: found + bit (0 - found).
        marked[7] = marked[5] - bit * marked[5];
        marked[9] = marked[7];
        cheater.values[ASK][2] = marked[9];
        let z = cheater.with_marked(ASK, &memory, &marked);
        cheater.assert_no_bit(ASK, &z, 0);
    }
    cheater.values[ASK][2] = left;
    // A cell that is not cleared although it should be, and the other way round: the row of the
    // selection.
    let mut marked = honest;
    marked[7] += Fr::ONE;
    let z = cheater.with_marked(ASK, &memory, &marked);
    assert!(cheater.violated(ASK, &z).is_some());
}

/// Numbers that are neither 0 nor 1.
fn no_bits() -> [Fr; 3] {
    [Fr::from(2u64), Fr::from(2u64).inverse().unwrap(), -Fr::ONE]
}

/// Two numbers of which one is the square of the other modulo 16, in a table of keys that pack both.
/// `bounded` checks the range of the second one, too.
fn packed(bounded: bool, x: Fr, y: Fr) -> Closures<[[u8; 32]; 2]> {
    let table = || Table::keys((0..16u64).map(|x| Fr::from(x + 16 * (x * x % 16))));
    Closures::new(
        move |layout| {
            layout.table("squares", table());
            layout.range(4);
            let kind = layout.subcircuit_type("t", 0);
            layout.instance(kind);
            Ok(Vec::new())
        },
        |_, _| Ok(()),
        move |_| Ok([x, y].map(|x| fr_to_bytes(&x))),
        move |s, given| {
            let mark = |i: usize| {
                s.commit(|| {
                    let given = given.ok_or(SynthesisError::AssignmentMissing)?;
                    fr_from_bytes(&given[i]).map_err(|_| SynthesisError::Unsatisfiable)
                })
            };
            let (x, y) = (mark(0)?, mark(1)?);
            s.range_check(4, &x)?;
            if bounded {
                s.range_check(4, &y)?;
            }
            let squares = hekaton_circuit::Layout::builder().table("squares", table());
            s.table(squares)?.contains(&(x + y * Fr::from(16u64)))
        },
    )
}

/// Adversarial test 77: a fraction in a packed part makes the key of another row. Guards: the range of
/// the part; the control leaves it open.
#[test]
fn a77_fraction_in_a_packed_part() {
    let (x, y) = (Fr::from(3u64), Fr::from(9u64));
    // The key of 5 and 25 mod 16.
    let fraction = (Fr::from(5 + 16 * 9u64) - x) * Fr::from(16u64).inverse().unwrap();
    let open = Bench::new(packed(false, x, y), true);
    let run =
        prove(&packed(false, x, fraction), &(), &open.keys, &open.engine, &ProveOptions::new());
    let run = run.unwrap();
    assert_eq!(open.verify(&run.public_values, run.proof.as_bytes()), Ok(()));

    let error = check(&packed(true, x, fraction), &(), |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("look-up 1 in table 'range-4': it has no key"), "{error}");
    let bench = Bench::new(packed(true, x, y), true);
    let mut cheater = Cheater::new(&bench, &());
    // The row of 5 in place of that of 3; 3 in the range, and any other number or none.
    let table: Vec<Fr> = (0..16).map(|row| Fr::from(u64::from(row == 5))).collect();
    let asked = vec![x, fraction];
    for row in [None, Some(9), Some(0)] {
        let count = |i| Fr::from(u64::from(i == 3) + u64::from(Some(i) == row));
        let changed = [(0, asked.clone()), (1, table.clone()), (2, (0..16).map(count).collect())];
        let (proof, assignments) = cheater.finish_marked(&changed);
        for (i, z) in assignments.iter().enumerate() {
            assert_eq!(cheater.violated(i, z), None, "instance {i}");
        }
        assert_eq!(cheater.sum_of_bus(1, &assignments), Fr::ZERO);
        assert_ne!(cheater.sum_of_bus(2, &assignments), Fr::ZERO);
        cheater.assert_fails(&proof, &[Z]);
    }
}

/// A square that is not in the table, a digit beyond the range, a multiplicity that is not the count.
/// Guards: askers in the sum; tables in the key.
#[test]
fn look_ups_are_in_their_tables() {
    let bench = bench();
    let mut other = cheater(&bench);
    let mut marked = other.marked[0].clone();
    marked[1] += Fr::ONE;
    other.values[0][1] += Fr::ONE;
    for part in 1..PARTS {
        other.values[part][0] += Fr::ONE;
        other.values[part][1] += Fr::ONE;
    }
    other.public[1] += Fr::ONE;
    assert_unbalanced(&mut other, &[(0, marked)], &[SQUARES]);
    let tables = PARTS + 1..PARTS + 4;
    for (instance, tag) in tables.zip([SQUARES, RANGE_4, RANGE_16]) {
        let mut cheater = cheater(&bench);
        let mut marked = cheater.marked[instance].clone();
        marked[3] += Fr::ONE;
        assert_unbalanced(&mut cheater, &[(instance, marked)], &[tag]);
    }
}

/// Errors name the table or memory, the instance and the access.
#[test]
fn mistakes_are_named() {
    let circuit = Histogram::new(PARTS, DIGITS);
    let bench = bench();
    let engine = &bench.engine;
    // The last range row is 15, and the memory and the table end at 10.
    let mut input = digits();
    input.digits[5] = 12;
    let says = ["access 2 of instance 1 to RAM 'counts': address 12 is not in 0..11"];
    let error = check(&circuit, &input, |_, _| {}).unwrap_err().to_string();
    let refused = prove(&circuit, &input, &bench.keys, engine, &ProveOptions::new());
    let refused = refused.unwrap_err().to_string();
    for says in says {
        assert!(error.contains(says) && refused.contains(says), "{error}; {refused}");
    }
}

/// The buses of [`small_circuit`]: a raw one, a table of pairs, a set of keys, a memory.
type Ids = (BusId, TableId, TableId, RamId);

fn small_layout(layout: &mut LayoutBuilder) -> Ids {
    let raw = layout.bus("raw");
    let fr = |x: u64| Fr::from(x);
    let pairs = layout.table("pairs", Table::pairs([(fr(1), fr(10)), (fr(2), fr(20))]));
    let keys = layout.table("keys", Table::keys([fr(7), fr(9)]));
    (raw, pairs, keys, layout.ram("cells", Ram::dense(0..4)))
}

type Accesses = fn(Ids, &mut WireValues) -> Result<(), CircuitError>;
type Author = fn(Ids, &Subcircuit) -> Result<(), SynthesisError>;

/// One instance of a type with as many accesses to the memory.
fn small_circuit(accesses: usize, execute: Accesses, author: Author) -> Closures<()> {
    let ids = || small_layout(&mut hekaton_circuit::Layout::builder());
    Closures::new(
        move |layout| {
            let (.., cells) = small_layout(layout);
            let kind = layout.subcircuit_type("t", 0);
            if accesses > 0 {
                layout.accesses(kind, cells, accesses);
            }
            layout.instance(kind);
            Ok(Vec::new())
        },
        move |_, values| execute(ids(), values),
        |_| Ok(()),
        move |s, _| author(ids(), s),
    )
}

const FIRST: InstanceId = InstanceId::from_index(0);

fn number(x: u64) -> FpVar<Fr> {
    FpVar::constant(Fr::from(x))
}

/// Adversarial tests 70 and 71, and what authors do wrong: refused by name.
#[test]
fn a70_buses_have_one_owner() {
    let none: Accesses = |_, _| Ok(());
    let one: Accesses = |(.., cells), values| values.read(FIRST, cells, 3).map(drop);
    let cases: [(usize, Accesses, Author, &str); 12] = [
        (
            0,
            none,
            |(.., ram), s| s.bus(bus_of(ram)).map(drop),
            "'cells' is a RAM, and no other gadget",
        ),
        (
            0,
            none,
            |(_, table, ..), s| s.bus(table_bus(table)).map(drop),
            "'pairs' is a table, and no",
        ),
        (
            0,
            none,
            |(_, pairs, ..), s| s.table(pairs)?.contains(&number(1)),
            "asked in the wrong way",
        ),
        (
            0,
            none,
            |(_, _, keys, _), s| s.table(keys)?.look_up(&number(7)).map(drop),
            "in the wrong way",
        ),
        (0, none, |_, s| s.range_check(8, &number(7)), "no range of 8 bits"),
        (
            0,
            none,
            |(.., cells), s| s.ram(cells).map(drop),
            "declares no accesses of this type to RAM 'cells'",
        ),
        (
            1,
            one,
            |(.., cells), s| (0..2).try_for_each(|_| s.ram(cells)?.read(&number(3)).map(drop)),
            "access 1 to RAM 'cells': the layout has fewer",
        ),
        (
            2,
            one,
            |(.., cells), s| (0..2).try_for_each(|_| s.ram(cells)?.read(&number(3)).map(drop)),
            "instance 0: type 't': access 1 to RAM 'cells': execute made no such access",
        ),
        (
            0,
            none,
            |(_, pairs, keys, _), s| {
                s.table(keys)?.contains(&number(9))?;
                let _ = s.table(pairs)?.look_up(&number(2))?;
                s.table(keys)?.contains(&s.commit(|| Ok(Fr::from(8u64)))?)
            },
            "instance 0: type 't': look-up 1 in table 'keys': it has no key 8",
        ),
        (
            0,
            none,
            // A constant is wrong for every input.
            |_, s| s.range_check(16, &number(1 << 16)),
            "type 't': look-up 0 in table 'range-16': it has no key 65536",
        ),
        (
            0,
            none,
            |(_, _, keys, _), s| s.table(keys)?.contains_if(&s.bit_of(&number(2))?, &number(7)),
            "a bit that is the constant 2, which is neither 0 nor 1",
        ),
        (0, one, |_, _| Ok(()), "declares no accesses of instance 0 to RAM 'cells'"),
    ];
    for (accesses, execute, author, says) in cases {
        let circuit = small_circuit(accesses, execute, author);
        let error = check(&circuit, &(), |_, _| {}).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    // And what is right.
    let circuit = small_circuit(
        2,
        |(.., cells), values| {
            values.write(FIRST, cells, 3, Fr::from(8u64))?;
            assert_eq!(values.read(FIRST, cells, 3)?, Fr::from(8u64));
            Ok(())
        },
        |(raw, pairs, keys, cells), s| {
            let seven = s.commit(|| Ok(Fr::from(7u64)))?;
            s.table(keys)?.contains(&seven)?;
            let off = s.bit(|| Ok(false))?;
            s.table(keys)?.contains_if(&off, &(&seven + number(1)))?;
            let twenty = s.table(pairs)?.look_up(&number(2))?;
            let free = &seven * &twenty;
            let marked = s.mark(&free)?;
            s.range_check(16, &marked)?;
            s.bus(raw)?.add(&marked, &twenty, &number(1))?;
            s.bus(raw)?.add(&number(140), &number(20), &FpVar::constant(-Fr::ONE))?;
            s.ram(cells)?.write(&number(3), &(seven + number(1)))?;
            s.ram(cells)?.read(&number(3)).map(drop)
        },
    );
    let report = check(&circuit, &(), |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
    let bench = Bench::new(circuit, true);
    let cheater = Cheater::new(&bench, &());
    assert_eq!(cheater.failing(&cheater.finish()), []);
    // Adversarial test 86 for look-ups: the second marked value switches one on.
    let instance = FIRST.index();
    for bit in no_bits() {
        let mut marked = cheater.marked[instance].clone();
        assert_eq!(marked[1], Fr::ZERO);
        marked[1] = bit;
        let z = cheater.with_marked(instance, &super::bench::some_challenges(), &marked);
        cheater.assert_no_bit(instance, &z, 1);
    }
}

/// The bus of a memory or of a table, as a layout with raw buses only would name it.
fn raw_bus(index: usize) -> BusId {
    let mut layout = hekaton_circuit::Layout::builder();
    (0..=index).map(|i| layout.bus(&format!("bus{i}"))).last().unwrap()
}

/// The memory of [`small_layout`] is declared after the range of 16 bits.
fn bus_of(_: RamId) -> BusId {
    raw_bus(4)
}

fn table_bus(_: TableId) -> BusId {
    raw_bus(1)
}

fn ignore<T>(_: T) {}

/// Layouts that cannot be, and accesses out of order.
#[test]
fn wrong_tables_and_memories_are_refused() {
    let built = |declare: fn(&mut LayoutBuilder)| {
        let mut layout = hekaton_circuit::Layout::builder();
        let kind = layout.subcircuit_type("t", 0);
        layout.instance(kind);
        declare(&mut layout);
        layout.build().map(drop).unwrap_err().to_string()
    };
    type Declare = fn(&mut LayoutBuilder);
    let cases: [(Declare, &str); 9] = [
        (|l| ignore(l.table("t", Table::keys([]))), "table 't': it has no rows"),
        (|l| ignore(l.range(25)), "a range of 25 bits: expected 1 to 24"),
        (
            |l| ignore(l.table("t", Table::pairs([1u64, 2, 1].map(|x| (Fr::from(x), Fr::ONE))))),
            "rows 0 and 2 have the same key 1",
        ),
        (|l| ignore(l.ram("m", Ram::dense(3..3))), "expected at least one, below 2^32"),
        (|l| ignore(l.ram("m", Ram::dense(0..(1 << 32) + 1))), "below 2^32"),
        (|l| ignore(l.ram("m", Ram::dense(0..1).initial([Fr::ONE; 2]))), "2 initial values for 1"),
        (
            |l| {
                let ram = l.ram("m", Ram::dense(0..2));
                let kind = l.subcircuit_type("many", 0);
                l.accesses(kind, ram, 1 << 31);
                (0..2).for_each(|_| ignore(l.instance(kind)));
            },
            "RAM 'm': more than 2^32 accesses",
        ),
        (|l| (0..2).for_each(|_| ignore(l.bus("b"))), "the layout already has a bus 'b'"),
        (|l| ignore(l.bus("B")), "cannot name a bus"),
    ];
    for (declare, says) in cases {
        let error = built(declare);
        assert!(error.contains(says), "{says}: {error}");
    }
    // Accesses of an earlier instance after those of a later one; too many of them.
    let run = |execute: fn(RamId, &mut WireValues) -> Result<(), CircuitError>| {
        let circuit = Closures::<()>::new(
            |layout| {
                let ram = layout.ram("m", Ram::dense(0..2));
                let kind = layout.subcircuit_type("t", 0);
                layout.accesses(kind, ram, 1);
                (0..2).for_each(|_| ignore(layout.instance(kind)));
                Ok(Vec::new())
            },
            move |_, values| {
                let mut other = hekaton_circuit::Layout::builder();
                execute(other.ram("m", Ram::dense(0..2)), values)
            },
            |_| Ok(()),
            |s, _| {
                let mut other = hekaton_circuit::Layout::builder();
                s.ram(other.ram("m", Ram::dense(0..2)))?.read(&number(0)).map(drop)
            },
        );
        check(&circuit, &(), |_, _| {}).unwrap_err().to_string()
    };
    let error = run(|ram, values| {
        values.read(InstanceId::from_index(1), ram, 0)?;
        values.read(FIRST, ram, 0).map(drop)
    });
    assert!(error.contains("access 0 of instance 0 to RAM 'm' comes after one of instance 1"));
    let error = run(|ram, values| (0..2).try_for_each(|_| values.read(FIRST, ram, 0).map(drop)));
    assert!(error.contains("access 1 of instance 0 to RAM 'm': the layout has only 1"), "{error}");
}

/// Unused accesses of the layout are not entries: an instance may make fewer, if its constraints
/// do.
#[test]
fn declared_accesses_need_not_be_made() {
    let circuit = small_circuit(
        5,
        |(.., cells), values| values.read(FIRST, cells, 3).map(drop),
        |(.., cells), s| s.ram(cells)?.read(&number(3)).map(drop),
    );
    let report = check(&circuit, &(), |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
}

/// The private inputs of all instances survive the way to another machine.
#[test]
fn private_inputs_are_encoded_with_their_accesses() {
    let (circuit, input) = (Histogram::new(PARTS, DIGITS), digits());
    let prepared = PreparedCircuit::with_input(&circuit, &input).unwrap();
    let execution = prepared.execute().unwrap();
    for id in prepared.layout().instance_ids() {
        let private = execution.private_input(prepared.layout(), id).unwrap();
        let bytes = prepared.encode_private(&private).unwrap();
        let back = prepared.decode_private_of(id, &bytes).unwrap();
        assert_eq!(prepared.encode_private(&back).unwrap(), bytes);
        for length in 0..bytes.len().min(64) {
            let cut = prepared.decode_private_of(id, &bytes[..length]);
            // Without its accesses, the input of a part is still one, but proves nothing.
            assert!(cut.is_err() || id.index() <= PARTS, "{length} of {id:?}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(prepared.decode_private_of(id, &longer).is_err(), "{id:?}");
    }
}
