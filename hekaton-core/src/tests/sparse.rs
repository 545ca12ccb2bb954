//! Adversarial tests 20a and 20b, and others of memories with sparse regions
//! (spec: adversarial-tests#ram).

use super::bench::{Bench, Cheater};
use crate::protocol::{ProveOptions, prove};
use crate::verifier::verify::Equation::Z;
use ark_ff::{AdditiveGroup, Field, PrimeField};
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;
use hekaton_circuit::{Closures, InstanceId, LayoutBuilder, Ram, check};
use std::ops::Range;

/// The addresses of the dense region; those of the sparse one follow.
const DENSE: u64 = 8;
/// Sparse cells, of which each subcircuit holds two.
const CELLS: usize = 6;
/// Marked values of a sparse cell: address, low limb of its distance, key and value of the final entry.
const OF_CELL: usize = 4;
/// Tags, in the order of the layout.
const RANGE_16: u64 = 1;
const MEMORY: u64 = 2;
/// The subcircuit of the author, six of the range and one of the dense region come before.
const SPARSE: usize = 8;

fn ram() -> Ram {
    let sparse = Ram::sparse(DENSE..1 << 32, CELLS).cells_per_subcircuit(2);
    Ram::dense(0..DENSE).and(sparse)
}

/// Writes to some addresses, and reads them in the opposite order.
fn circuit(addresses: Vec<u64>) -> Closures<Vec<u64>> {
    let count = addresses.len();
    let id = || hekaton_circuit::Layout::builder().ram("m", ram());
    let (executed, private) = (addresses.clone(), addresses);
    let value = |i: usize| Fr::from(100 + i as u64);
    Closures::new(
        move |layout| {
            let ram = layout.ram("m", ram());
            let kind = layout.subcircuit_type("t", 0);
            layout.accesses(kind, ram, 2 * count);
            layout.instance(kind);
            Ok(Vec::new())
        },
        move |_, values| {
            let (instance, ram) = (InstanceId::from_index(0), id());
            for (i, address) in executed.iter().enumerate() {
                values.write(instance, ram, *address, value(i))?;
            }
            executed.iter().rev().try_for_each(|a| values.read(instance, ram, *a).map(drop))
        },
        move |_| Ok(private.clone()),
        move |s, addresses| {
            let given = |i: usize| {
                let address = addresses.and_then(|list: &Vec<u64>| list.get(i));
                address.map(|a| Fr::from(*a)).ok_or(SynthesisError::AssignmentMissing)
            };
            let ram = s.ram(id())?;
            let marked = (0..count).map(|i| s.commit(|| given(i)));
            let marked = marked.collect::<Result<Vec<_>, _>>()?;
            for (i, address) in marked.iter().enumerate() {
                ram.write(address, &FpVar::Constant(value(i)))?;
            }
            marked.iter().rev().try_for_each(|address| ram.read(address).map(drop))
        },
    )
}

/// Addresses in both regions, both ends and neighbors among them.
const ADDRESSES: [u64; 7] = [(1 << 32) - 1, 3, 70_000, 8, 69_999, 3, 1 << 31];

#[test]
fn honest_proofs_are_accepted() {
    let bench = Bench::new(circuit(ADDRESSES.to_vec()), true);
    for addresses in
        [ADDRESSES, [7; 7], [8; 7], [9, 10, 11, 12, 13, 14, 0], [5, 6, 7, 8, 9, 10, 11]]
    {
        let circuit = circuit(addresses.to_vec());
        let report = check(&circuit, &(), |_, _| {}).unwrap();
        assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
        let run = prove(&circuit, &(), &bench.keys, &bench.engine, &ProveOptions::new()).unwrap();
        assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
    }
}

#[test]
fn rows_are_pinned() {
    let bench = Bench::new(circuit(ADDRESSES.to_vec()), true);
    let key = bench.keys.types.iter().find(|key| key.name() == "ram-m-1").unwrap();
    // Row 0, slots and masks; five rows a cell; two for the distance to the end.
    assert_eq!(key.constraints(), 1 + 4 + 2 * 5 + 2);
}

fn small(x: Fr) -> u64 {
    x.into_bigint().0[0]
}

/// A proof with other marked values, and values in slots, in sparse subcircuits: the author's rows hold, the
/// sums of these buses do not, and it is refused. `counts` are changes of the range's multiplicities.
#[track_caller]
fn assert_refused(
    addresses: &[u64],
    change: impl Fn(usize, &mut Vec<Fr>, &mut Vec<Fr>),
    range: Range<usize>,
    counts: &[(usize, Fr)],
    buses: &[u64],
) {
    let bench = Bench::new(circuit(addresses.to_vec()), true);
    let mut cheater = Cheater::new(&bench, &());
    let mut changed = Vec::new();
    for i in range {
        let mut marked = cheater.marked[SPARSE + i].clone();
        let slots = &mut cheater.values[SPARSE + i];
        change(i, &mut marked, slots);
        // The low limbs that belong to these addresses.
        let mut least = slots[0];
        for cell in marked[..2 * OF_CELL].chunks_exact_mut(OF_CELL) {
            cell[1] = Fr::from(small(cell[0] - least) & 0xffff);
            least = cell[0] + Fr::ONE;
        }
        marked[2 * OF_CELL] = Fr::from(small(slots[1] - least) & 0xffff);
        changed.push((SPARSE + i, marked));
    }
    // The first subcircuit of the range comes behind the author's.
    let mut multiplicities = cheater.marked[1].clone();
    counts.iter().for_each(|(row, by)| multiplicities[*row] += by);
    changed.push((1, multiplicities));
    let (proof, assignments) = cheater.finish_marked(&changed);
    for (i, z) in assignments.iter().enumerate() {
        assert_eq!(cheater.violated(i, z), None, "instance {i}");
    }
    let sum = |tag| cheater.sum_of_bus(tag, &assignments);
    let unbalanced: Vec<u64> =
        [RANGE_16, MEMORY].into_iter().filter(|t| sum(*t) != Fr::ZERO).collect();
    assert_eq!(unbalanced, buses);
    cheater.assert_fails(&proof, &[Z]);
}

/// Accesses of the dense region alone: all six sparse cells fill up, at 8 to 13.
const DENSE_ONLY: [u64; 2] = [3, 5];

/// Moves a cell that nobody accessed, with its final entry.
fn move_to(marked: &mut [Fr], cell: usize, address: Fr) {
    let cell = &mut marked[OF_CELL * cell..];
    assert_eq!(cell[0], cell[2], "its time is 0");
    (cell[0], cell[2]) = (address, address);
}

/// The cells of the honest prover: those accessed, and 9 to fill up.
#[test]
fn free_cells_fill_up() {
    let bench = Bench::new(circuit(ADDRESSES.to_vec()), true);
    let cheater = Cheater::new(&bench, &());
    let cells =
        (SPARSE..SPARSE + 3).flat_map(|i| [0, OF_CELL].map(|cell| small(cheater.marked[i][cell])));
    let cells: Vec<u64> = cells.collect();
    assert_eq!(cells, [8, 9, 69_999, 70_000, 1 << 31, (1 << 32) - 1]);
}

/// Adversarial test 20a: a cell whose address is larger by the spacing, so that its initial entry is also
/// one of another cell at a later time. It is less than the spacing above the cell before it. Guards: the
/// end of the region.
#[test]
fn a20a_address_beyond_the_spacing() {
    let beyond = |i: usize, marked: &mut Vec<Fr>, _: &mut Vec<Fr>| {
        assert_eq!((i, small(marked[0]), small(marked[OF_CELL])), (2, 12, 13));
        move_to(marked, 1, Fr::from(1u64 + (1 << 32)));
    };
    assert_refused(&DENSE_ONLY, beyond, 2..3, &[], &[RANGE_16]);
}

/// Adversarial test 20b: a cell of the dense region in the sparse one, too, as its first one. Guards: the
/// beginning of the region.
#[test]
fn a20b_cell_in_both_regions() {
    let both = |_: usize, marked: &mut Vec<Fr>, _: &mut Vec<Fr>| {
        move_to(marked, 0, Fr::from(7u64));
    };
    assert_refused(&DENSE_ONLY, both, 0..1, &[], &[RANGE_16]);
}

/// Two cells of the same address. Guards: addresses rise.
#[test]
fn sparse_cells_are_distinct() {
    let twice = |_: usize, marked: &mut Vec<Fr>, _: &mut Vec<Fr>| {
        move_to(marked, 1, Fr::from(8u64));
    };
    assert_refused(&ADDRESSES, twice, 0..1, &[], &[RANGE_16]);
    // A fraction, whose distances are fractions, too.
    let half = Fr::from(2u64).inverse().unwrap();
    let fraction = move |_: usize, marked: &mut Vec<Fr>, _: &mut Vec<Fr>| {
        move_to(marked, 1, Fr::from(9u64) + half);
    };
    assert_refused(&ADDRESSES, fraction, 0..1, &[], &[RANGE_16]);
}

/// The same cell in two subcircuits: the second one begins below where the first one ends; all buses
/// cancel. Guards: the shared wire between them, the sum of slots.
#[test]
fn sparse_cells_are_distinct_across_subcircuits() {
    let again = |_: usize, marked: &mut Vec<Fr>, slots: &mut Vec<Fr>| {
        slots[0] = Fr::from(9u64);
        move_to(marked, 0, Fr::from(9u64));
    };
    // The distance of 11 to the cell before it is 1 now, and was 0.
    let counts = [(0, -Fr::ONE), (1, Fr::ONE)];
    assert_refused(&DENSE_ONLY, again, 1..2, &counts, &[]);
}

/// Layouts and executions with wrong regions are refused.
#[test]
fn wrong_regions_are_refused() {
    let built = |ram: Ram| {
        let mut layout: LayoutBuilder = hekaton_circuit::Layout::builder();
        let kind = layout.subcircuit_type("t", 0);
        layout.instance(kind);
        layout.ram("m", ram);
        layout.build().map(drop).unwrap_err().to_string()
    };
    for (ram, says) in [
        (Ram::sparse(0..10, 0), "it has no cells"),
        (Ram::sparse(0..10, 11), "11 sparse cells, 11 with those that fill up"),
        (Ram::sparse(0..9, 9).cells_per_subcircuit(6), "9 sparse cells, 10 with"),
        (Ram::sparse(5..(1 << 32) + 1, 1), "below 2^32"),
        (Ram::dense(0..10).and(Ram::sparse(9..20, 1)), "its regions 0..10 and 9..20 overlap"),
        (
            Ram::dense(0..3).cells_per_subcircuit(2).and(Ram::dense(3..5)),
            "its regions 0..4 and 3..5 overlap",
        ),
    ] {
        let error = built(ram);
        assert!(error.contains(says), "{says}: {error}");
    }
    let bench = Bench::new(circuit(ADDRESSES.to_vec()), true);
    let too_many = circuit((0..7).map(|i| 1_000 + i).collect());
    let nowhere = circuit(vec![1 << 32; 7]);
    for (circuit, says) in [
        (
            too_many,
            "access 6 of instance 0 to RAM 'm': address 1006 would be cell 7 of the sparse addresses \
             8..4294967296, which have 6: declare more",
        ),
        (nowhere, "address 4294967296 is not in any of [0..8, 8..4294967296]"),
    ] {
        let error = check(&circuit, &(), |_, _| {}).unwrap_err().to_string();
        let refused = prove(&circuit, &(), &bench.keys, &bench.engine, &ProveOptions::new());
        let refused = refused.unwrap_err().to_string();
        assert!(error.contains(says) && refused.contains(says), "{error}; {refused}");
    }
}
