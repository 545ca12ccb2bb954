//! The size of parts that is chosen, against all sizes by hand: by the estimate, on circuits with the
//! constraints of what people write in circom.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]
#![allow(clippy::print_stdout, reason = "figures, with --nocapture")]

use hekaton_circuit::Fr;
use hekaton_plan::{CutCost, CutType, Workers, cut_cost};
use hekaton_r1cs::partition::{
    Choice, Depth, Occurrences, PartSizes, Plan, Price, choose, part_sizes,
};
use hekaton_r1cs::{Monolith, System};
use shapes::{hashes, numbers};

mod shapes;

fn cost(parts: &[PartSizes], provers: usize) -> CutCost {
    let kind = |sizes: &PartSizes| {
        let PartSizes { parts, constraints, slots, own, bits, in_a, in_b, terms, .. } = *sizes;
        CutType { parts, constraints, slots, own, bits, in_a, in_b, terms }
    };
    let types: Vec<CutType> = parts.iter().map(kind).collect();
    cut_cost(&types, Workers { ranks: 1, threads: provers })
}

fn chosen(system: &System, provers: usize) -> Choice {
    let price = |parts: &[PartSizes]| {
        let cost = cost(parts, provers);
        Price { seconds: cost.seconds(), proving: cost.cpu_seconds }
    };
    choose(system, &Occurrences::new(system), price, |_| {}).unwrap()
}

/// The chosen plan costs at most half more than the best of all sizes that can be asked for, each cut as
/// well as is known; and the work of looking for it is a tenth of proving, or a second.
fn is_near_the_best(name: &str, (system, values): &(System, Vec<Fr>)) {
    assert_eq!(system.false_row(values), None, "{name}");
    let occurrences = Occurrences::new(system);
    let rows = system.rows() as u64;
    let mut by_hand = Vec::new();
    for log in 14..=21 {
        // Larger parts are all one part.
        if (rows + u64::from(system.public()) + 3).next_power_of_two() << 1 <= 1 << log {
            break;
        }
        let Ok(plan) = Plan::new(system, &occurrences, 1 << log, |_| {}) else { continue };
        assert!(plan.parts.largest() <= 1 << log, "{name}, 2^{log}");
        let parts = part_sizes(system, &occurrences, &plan.parts);
        // The numbers that costs are counted from are those of the parts.
        let (counted, keys) = (cost(&parts, 1).key_bytes as f64, plan.key_bytes() as f64);
        assert!((0.6..1.7).contains(&(counted / keys)), "{name}, 2^{log}: {counted} of {keys}");
        by_hand.push((log, parts));
    }
    for provers in [2, 16] {
        let choice = chosen(system, provers);
        let parts = part_sizes(system, &occurrences, &choice.plan.parts);
        assert!(choice.plan.parts.largest() <= choice.plan.most);
        let found = cost(&parts, provers);
        let all = by_hand.iter().map(|(log, parts)| (*log, cost(parts, provers)));
        let best = all.min_by(|(_, a), (_, b)| a.seconds().total_cmp(&b.seconds())).unwrap();
        let (log, best) = (best.0, best.1.seconds());
        let text = format!(
            "{name}, {rows} rows, {provers} provers: {} parts of {} ({} types) take {:.3} s, parts of \
             2^{log} {best:.3} s; looked for {:.2} s of {:.2} s",
            choice.plan.parts.parts.len(),
            choice.plan.most,
            choice.plan.parts.types.len(),
            found.seconds(),
            choice.seconds,
            found.cpu_seconds
        );
        println!("{text}");
        assert!(found.seconds() <= 1.5 * best, "{text}");
        assert!(choice.seconds <= (0.1 * found.cpu_seconds).max(1.0) * 1.5, "{text}");
        // It is the cheapest of what is printed, bounds apart.
        let others = choice.considered.iter().filter(|other| other.depth > Depth::Bound);
        let cheapest = others.map(|other| other.seconds).fold(f64::INFINITY, f64::min);
        assert!(found.seconds() <= cheapest * 1.0001, "{text}: {cheapest}");
    }
}

#[test]
fn hashes_are_cut_well() {
    is_near_the_best("SHA-256 of five blocks", &hashes::hash_of_blocks(5));
    is_near_the_best("ten rounds of Keccak", &hashes::keccak(10));
    is_near_the_best("sparse Merkle paths", &hashes::merkle_paths(10, 20));
}

#[test]
fn arithmetic_in_limbs_is_cut_well() {
    is_near_the_best("RSA and the hash of a body", &numbers::rsa_and_hash(1));
    is_near_the_best("ECDSA", &numbers::curve(16));
}

#[test]
fn matrix_products_are_cut_well() {
    is_near_the_best("a matrix product of 40", &numbers::matrix_product(40));
}

#[test]
fn wide_circuits_are_cut_well() {
    is_near_the_best("a sum of 20,000 public inputs", &numbers::sum_of_inputs(20_000, 60_000));
    is_near_the_best("a sum of 20,000 wires", &numbers::sum_of_wires(20_000, 3));
    is_near_the_best("100,000 public values", &numbers::public_values(100_000));
    is_near_the_best("50,000 public values in no row", &numbers::unread_values(50_000, 60_000));
    is_near_the_best("wide rows", &numbers::wide_rows(40, 500, 40_000));
}

/// One dense place does not make all other parts small.
#[test]
fn a_dense_place_costs_one_part() {
    let (system, _) = numbers::sum_of_inputs(20_000, 60_000);
    let occurrences = Occurrences::new(&system);
    for (log, most) in [(14, 7), (15, 4), (16, 2), (17, 1)] {
        let plan = Plan::new(&system, &occurrences, 1 << log, |_| {}).unwrap();
        let parts = plan.parts.parts.len();
        assert!(parts <= most, "2^{log}: {parts} parts");
    }
}

/// The same file, the same plan.
#[test]
fn choices_are_repeated() {
    let (system, _) = numbers::curve(12);
    let [first, second] = [0; 2].map(|_| chosen(&system, 4).plan);
    assert_eq!((first.most, &first.parts), (second.most, &second.parts));
}

/// A small circuit is one part, however many of its wires are public.
#[test]
fn small_circuits_are_one_part() {
    for (system, _) in [numbers::public_values(3), numbers::sum_of_inputs(5_000, 100)] {
        for provers in [1, 64] {
            let choice = chosen(&system, provers);
            let plan = &choice.plan;
            assert_eq!((plan.parts.parts.len(), choice.considered.len()), (1, 1));
            assert_eq!((plan.beyond_one_part(), plan.least_parts()), (0.0, 1));
        }
    }
}

/// Chosen plans are the circuit: import checks that, and the parts hold for a witness.
#[test]
fn chosen_plans_are_accepted() {
    for (system, values) in [
        numbers::sum_of_inputs(20_000, 3_000),
        numbers::unread_values(30_000, 20_000),
        numbers::wide_rows(20, 1_000, 40_000),
    ] {
        let choice = chosen(&system, 8);
        assert!(choice.plan.parts.parts.len() > 1, "{} rows", system.rows());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("circuit");
        let monolith = Monolith::of_system("test", [7; 32], system).unwrap();
        monolith.write(&choice.plan, &path).unwrap();
        let circuit = hekaton_r1cs::Imported::open(&path).unwrap();
        let witness = hekaton_r1cs::WitnessFile::bytes_of(&values);
        let witness = hekaton_r1cs::WitnessFile::from_bytes(witness).unwrap();
        let report = hekaton_circuit::check(&circuit, &witness, |_, _| {}).unwrap();
        assert!(report.violations.is_empty());
    }
}
