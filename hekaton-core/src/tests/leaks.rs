//! The information that a proof reveals to those who have seen some of its jobs
//! (spec: zero-knowledge#leaks).

use super::bench::{Bench, field_of};
use crate::encoding::Encode;
use crate::protocol::coordinator::Coordinator;
use crate::protocol::messages::Job;
use crate::protocol::{ProveOptions, prove};
use crate::randomness::Randomness;
use crate::verifier::proof::Field as ProofField;
use crate::verifier::transcript::{FiatShamir, Merlin};
use ark_ff::{Field, Zero};
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::{Fr, G2Point, Group};
use hekaton_circuit::prover::Prefix;
use hekaton_circuit::{
    Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, MemoryChallenges, Subcircuit,
    WireId, WireValues,
};

/// Subcircuits that share one secret wire: `writer` writes it, `reader` reads it, the others have nothing.
struct Secret {
    instances: usize,
    writer: usize,
    reader: usize,
}

impl Circuit for Secret {
    type Input = Fr;
    type Plan = (WireId, Vec<InstanceId>);
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Self::Plan, LayoutError> {
        let kind = layout.subcircuit_type("square", 1);
        let wire = layout.wire("secret", 0);
        let instances: Vec<_> = (0..self.instances).map(|_| layout.instance(kind)).collect();
        for (i, instance) in instances.iter().enumerate() {
            match i {
                i if i == self.writer => layout.write(*instance, 0, wire),
                i if i == self.reader => layout.read(*instance, 0, wire),
                _ => layout.unused(*instance, 0),
            }
        }
        Ok((wire, instances))
    }

    fn execute(
        &self,
        (wire, instances): &Self::Plan,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        values.set(*wire, *input);
        for (i, instance) in instances.iter().enumerate() {
            if i != self.writer && i != self.reader {
                values.set_unused(*instance, 0, Fr::zero());
            }
        }
        Ok(())
    }

    fn private_input(
        &self,
        _: &Self::Plan,
        _: &Fr,
        (): &(),
        _: InstanceId,
    ) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(
        &self,
        _: &Self::Plan,
        subcircuit: &Subcircuit,
        _: Option<&()>,
    ) -> Result<(), SynthesisError> {
        let slot = subcircuit.slot(0)?;
        let _ = slot.clone() * slot;
        Ok(())
    }
}

const SECRET: u64 = 1234;
const OTHER: u64 = 4321;
/// The slots of the masks, after the subcircuit's own.
const BEFORE: usize = 1;
const AFTER: usize = 2;

/// A finished proof, the challenges of its memory check, and the jobs that somebody has seen.
struct Leak {
    bench: Bench<Secret>,
    proof: Vec<u8>,
    memory: MemoryChallenges,
    seen: Vec<Option<Job>>,
}

impl Leak {
    fn new(circuit: Secret, seen: &[usize]) -> Self {
        let instances = circuit.instances;
        let bench = Bench::new(circuit, true);
        let (input, randomness) = (Fr::from(SECRET), Randomness::seeded_not_zero_knowledge(3));
        let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(3));
        let run = prove(&bench.circuit, &input, &bench.keys, &bench.engine, &options).unwrap();
        let proof = run.proof.as_bytes().to_vec();
        let keys = &bench.keys.verifying;
        let memory = FiatShamir::begin(Merlin::new(), &keys.digest(), keys.instances, &[])
            .memory(field_of(&bench, &proof, ProofField::CmD), false);
        let job = |i: usize| {
            let circuit = bench.with_input(&input);
            let coordinator = Coordinator::new(&circuit, &bench.keys, &bench.engine, 1).unwrap();
            seen.contains(&i).then(|| coordinator.prove_job(i, &randomness).unwrap())
        };
        let seen = (0..instances).map(job).collect();
        Self { proof, memory, seen, bench }
    }

    /// The mask between two subcircuits, if a job of either was seen.
    fn mask(&self, between: usize) -> Option<Fr> {
        let left = self.seen[between].as_ref().map(|job| job.values[AFTER]);
        let right = self.seen[between + 1].as_ref().map(|job| job.values[BEFORE]);
        left.or(right)
    }

    /// The term e_i of a subcircuit with this value of its own and these masks.
    fn term(&self, i: usize, own: Fr, before: Fr, after: Fr) -> Fr {
        let (_, slots) = self.bench.wiring.by_instance().nth(i).unwrap();
        Prefix::new(slots, &[own, before, after], &self.memory).unwrap().sum
    }

    /// The fingerprint g + m + b a of the mask that subcircuit 1 writes, for m = 0.
    fn fingerprint_of_mask(&self) -> Fr {
        let (_, slots) = self.bench.wiring.by_instance().nth(1).unwrap();
        self.memory.g + self.memory.b * Fr::from(slots[AFTER].address)
    }

    /// The contribution to e_1 of the mask that it writes.
    fn written_mask(&self, mask: Fr) -> Fr {
        (self.fingerprint_of_mask() + mask).inverse().unwrap()
    }

    /// The terms under a guess of the secret, if all masks were seen.
    fn terms(&self, guess: u64) -> Option<Vec<Fr>> {
        let last = self.seen.len() - 1;
        let own = |i| match i == self.bench.circuit.writer || i == self.bench.circuit.reader {
            true => Fr::from(guess),
            false => Fr::zero(),
        };
        let mask = |i: usize| self.mask(i);
        (0..=last)
            .map(|i| {
                let before = if i == 0 { Fr::zero() } else { mask(i - 1)? };
                let after = if i == last { Fr::zero() } else { mask(i)? };
                Some(self.term(i, own(i), before, after))
            })
            .collect()
    }

    /// Reports whether the commitment to all terms in the proof is the commitment to these.
    fn confirms(&self, terms: &[Fr]) -> bool {
        let psi = self.bench.keys.aggregation.psi().unwrap();
        let v: Vec<G2Point> = (0..terms.len()).map(|i| psi[2 * i]).collect();
        G2Point::msm(&v, terms).encode() == field_of(&self.bench, &self.proof, ProofField::Ve)
    }
}

/// Jobs 0, 2 and 4 have all masks, so a guess of what 1 and 3 share is confirmed by the proof, although
/// neither was seen: a leak reaches beyond the subcircuits whose jobs leaked.
#[test]
fn masks_of_seen_neighbors_confirm_a_guess() {
    let leak = Leak::new(Secret { instances: 5, writer: 1, reader: 3 }, &[0, 2, 4]);
    assert!(leak.confirms(&leak.terms(SECRET).unwrap()));
    assert!(!leak.confirms(&leak.terms(OTHER).unwrap()));
}

/// Control: with a mask that no seen job has, every value of a wire inside of a run of unseen
/// subcircuits explains the same terms, with another mask.
#[test]
fn a_run_of_unseen_subcircuits_hides_what_it_shares() {
    let leak = Leak::new(Secret { instances: 4, writer: 1, reader: 2 }, &[0, 3]);
    assert!(leak.mask(1).is_none() && leak.terms(SECRET).is_none());
    // the true terms, which somebody who has opened the commitment would know
    let all = Leak::new(Secret { instances: 4, writer: 1, reader: 2 }, &[0, 1, 2, 3]);
    let terms = all.terms(SECRET).unwrap();
    assert!(leak.confirms(&terms));
    let [before, after] = [0, 2].map(|between| leak.mask(between).unwrap());
    for guess in [SECRET, OTHER, 7].map(Fr::from) {
        // e_1 is the sum of what its slots contribute, and the mask that it writes contributes
        // 1 / (g + m + b a): any amount but 0 is that of some m.
        let others = leak.term(1, guess, before, Fr::zero()) - leak.written_mask(Fr::zero());
        let mask = (terms[1] - others).inverse().unwrap() - leak.fingerprint_of_mask();
        assert_eq!(leak.term(1, guess, before, mask), terms[1]);
        assert_eq!(leak.term(2, guess, mask, after), terms[2], "the same mask gives e_2");
    }
}

/// A run of unseen subcircuits leaks the sum of its terms: it confirms a guess of what the run
/// shares with another run.
#[test]
fn the_sum_of_a_run_confirms_what_it_shares_with_another() {
    let circuit = || Secret { instances: 5, writer: 1, reader: 4 };
    let leak = Leak::new(circuit(), &[0, 3]);
    assert!(leak.mask(1).is_none());
    let all = Leak::new(circuit(), &[0, 1, 2, 3, 4]);
    let sum: Fr = all.terms(SECRET).unwrap()[1..3].iter().sum();
    let [before, after] = [0, 2].map(|between| leak.mask(between).unwrap());
    // The mask inside cancels: any value does.
    for (guess, right) in [(SECRET, true), (OTHER, false)] {
        for inside in [5u64, 6].map(Fr::from) {
            let first = leak.term(1, Fr::from(guess), before, inside);
            assert_eq!(first + leak.term(2, Fr::zero(), inside, after) == sum, right);
        }
    }
}
