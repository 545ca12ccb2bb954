//! Adversarial test 54: honest proofs are accepted for every shape of layout. Also adversarial test
//! 50: one seed, any number of threads.

use super::bench::{Bench, Cheater, Squares};
use crate::verifier::verify::VerifyError;
use hekaton_testing::FanOut;

use crate::pool::LocalEngine;
use crate::protocol::{ProveOptions, prove};
use crate::randomness::Randomness;
use hekaton_arith::Fr;
use std::num::NonZeroUsize;

fn accepts(circuit: Squares, zero_knowledge: bool) {
    let n = circuit.kinds.len();
    let bench = Bench::new(circuit, zero_knowledge);
    let cheater = Cheater::new(&bench, &Fr::from(5u64));
    let proof = cheater.finish();
    assert_eq!(bench.verify(&cheater.public, &proof), Ok(()), "n = {n}");
    assert!(cheater.failing(&proof).is_empty());
    if let Some(first) = cheater.public.first() {
        let mut wrong = cheater.public.clone();
        wrong[0] = *first + Fr::from(1u64);
        assert!(bench.verify(&wrong, &proof).is_err());
    }
}

#[test]
fn any_number_of_subcircuits() {
    for n in [1usize, 2, 3, 5, 8, 13] {
        let kinds: Vec<usize> = (0..n).map(|i| (i % 3) % 2).collect();
        accepts(Squares::new(&kinds), true);
    }
}

#[test]
fn one_type_two_types_a_type_each() {
    for kinds in [vec![0; 5], vec![0, 1, 0, 1, 1], vec![0, 1, 2, 3, 4]] {
        accepts(Squares::new(&kinds), true);
    }
}

#[test]
fn no_public_values_no_shared_wires_no_masks() {
    for zero_knowledge in [true, false] {
        accepts(Squares { public: false, ..Squares::new(&[0, 1, 1]) }, zero_knowledge);
        accepts(Squares { lonely: true, ..Squares::new(&[0, 1]) }, zero_knowledge);
        accepts(Squares::new(&[0]), zero_knowledge);
    }
    // Nothing is shared at all: the only subcircuit is of the type with s = 0.
    let lonely = Squares { kinds: vec![], public: false, lonely: true, rows: 0 };
    let bench = Bench::new(lonely, false);
    let cheater = Cheater { values: vec![vec![]], ..Cheater::new(&bench, &Fr::from(5u64)) };
    assert_eq!(bench.verify(&[], &cheater.finish()), Ok(()));
}

#[test]
fn one_reader_and_a_thousand() {
    for (readers, slots) in [(1, 1), (1000, 150)] {
        let bench = Bench::new(FanOut { readers, slots }, true);
        let cheater = Cheater::new(&bench, &Fr::from(99u64));
        assert_eq!(bench.verify(&cheater.public, &cheater.finish()), Ok(()), "{readers} readers");
        // One of the readers reads another value.
        let mut liar = Cheater::new(&bench, &Fr::from(99u64));
        let last = liar.values.len() - 1;
        for value in &mut liar.values[last][..slots] {
            *value += Fr::from(1u64);
        }
        let error = bench.verify(&liar.public, &liar.finish());
        assert!(matches!(error, Err(VerifyError::Equations { .. })), "{readers} readers");
    }
}

/// Domains of 2^k and of 3 * 2^k, below and above the smallest transform in lanes.
#[test]
fn every_type_has_the_smallest_domain() {
    let mut thirds = 0;
    for slots in [1, 10, 20, 40, 60, 100, 150, 200, 300] {
        let bench = Bench::new(FanOut { readers: 2, slots }, true);
        for key in &bench.keys.types {
            let (rows, size) = (key.constraints(), key.domain().size());
            let smaller = if size % 3 == 0 { size / 3 * 2 } else { size / 4 * 3 };
            assert!(smaller < rows && rows <= size, "{rows} rows, domain {size}");
            thirds += usize::from(size % 3 == 0);
        }
        let cheater = Cheater::new(&bench, &Fr::from(99u64));
        assert_eq!(bench.verify(&cheater.public, &cheater.finish()), Ok(()), "{slots} slots");
    }
    assert!(thirds > 4, "{thirds} types with a domain of 3 * 2^k");
}

#[test]
fn one_seed_gives_the_same_bytes_with_any_number_of_threads() {
    let bench = Bench::new(Squares::new(&(0..40).map(|i| i % 2).collect::<Vec<_>>()), true);
    let mut proofs = Vec::new();
    for threads in 1..=3 {
        let engine = LocalEngine::new(NonZeroUsize::new(threads)).unwrap();
        let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(3));
        let run = prove(&bench.circuit, &Fr::from(2u64), &bench.keys, &engine, &options).unwrap();
        assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
        proofs.push(run.proof);
    }
    assert_eq!(proofs[0], proofs[1]);
    assert_eq!(proofs[0], proofs[2]);
    // Another seed leads to another proof.
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(4));
    let run = prove(&bench.circuit, &Fr::from(2u64), &bench.keys, &bench.engine, &options).unwrap();
    assert_ne!(run.proof, proofs[0]);
}
