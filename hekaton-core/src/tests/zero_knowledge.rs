//! Adversarial tests 51 to 53: zero knowledge.

use super::bench::{Bench, Cheater, Squares, field_of, masks, squares};
use crate::aggregation::block::ProofVectors;
use crate::encoding::Encode;
use crate::mirage::WitnessCheck;
use crate::protocol::coordinator::Coordinator;
use crate::protocol::worker::Worker;
use crate::protocol::{ProveOptions, Secrets, prove};
use crate::randomness::{Purpose, Randomness};
use crate::verifier::proof::{Field as ProofField, fields};
use crate::verifier::transcript::Merlin;
use crate::verifier::verify::public_sum;
use ark_ff::{Field, PrimeField, Zero};
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use hekaton_circuit::{
    Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, Masking, Subcircuit, WireId,
    WireValues,
};

const INPUT: u64 = 5;

/// Adversarial test 51: two proofs of one statement share no element.
#[test]
fn a51_proofs_share_nothing() {
    let bench = squares();
    // One set of options serves several runs: randomness is drawn for each.
    let options = ProveOptions::new();
    let run =
        || prove(&bench.circuit, &Fr::from(INPUT), &bench.keys, &bench.engine, &options).unwrap();
    let (a, b) = (run(), run());
    assert_eq!(a.public_values, b.public_values);
    for field in fields(bench.keys.verifying.rounds()) {
        let (a, b) = (
            field_of(&bench, a.proof.as_bytes(), field),
            field_of(&bench, b.proof.as_bytes(), field),
        );
        // The identity stands where pads are folded: it reveals nothing.
        if a[0] == 0x80 && a[1..].iter().all(|x| *x == 0) {
            continue;
        }
        assert_ne!(a, b, "{field:?}");
    }
}

/// A seed that is used twice by mistake: two executions share no element
/// (spec: zero-knowledge#randomness).
#[test]
fn one_seed_for_two_executions() {
    let bench = squares();
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(1));
    let run = |input: u64| {
        prove(&bench.circuit, &Fr::from(input), &bench.keys, &bench.engine, &options).unwrap()
    };
    let (a, b) = (run(INPUT), run(INPUT + 1));
    assert_eq!(a.proof, run(INPUT).proof);
    for field in
        [ProofField::CmD, ProofField::CmA, ProofField::CmB, ProofField::CmC, ProofField::Ve]
    {
        assert_ne!(
            field_of(&bench, a.proof.as_bytes(), field),
            field_of(&bench, b.proof.as_bytes(), field)
        );
    }
    // k_D, s and x depend on what they hide, so no difference of two subcircuits cancels the
    // blinding.
    let randomness = Randomness::seeded_not_zero_knowledge(1);
    let d = |input: u64| {
        let input = Fr::from(input);
        let circuit = bench.with_input(&input);
        let worker = Worker::new(&circuit, &bench.keys.types, Masking::Masked, WitnessCheck::Check);
        let coordinator = Coordinator::new(&circuit, &bench.keys, &bench.engine, 2).unwrap();
        let job = coordinator.prove_job(1, &randomness).unwrap();
        let values = job.values.clone();
        (worker.commit(job).unwrap().1.d, values)
    };
    let ((d1, v1), (d2, v2)) = (d(INPUT), d(INPUT + 1));
    assert_ne!(v1[3], v2[3], "masks differ");
    let difference: Vec<Fr> = v1.iter().zip(&v2).map(|(a, b)| *a - b).collect();
    let key = &bench.keys.types[bench.wiring.type_of[1] as usize];
    assert_ne!(d1.sub(&d2), G1Point::msm(key.d_query().unwrap(), &difference), "k_D differs");
}

/// A seed that is used for two executions that differ only in the value of a slot without a wire
/// (AUDIT F3): D has that value, so g and b differ, and masks must not be used under both. Guards:
/// the digest of an execution contains all slots.
#[test]
fn one_seed_for_two_unused_slots() {
    let bench = Bench::new(Unused, true);
    let randomness = Randomness::seeded_not_zero_knowledge(1);
    let run = |unused: u64| {
        let input = [7, unused].map(Fr::from);
        let circuit = bench.with_input(&input);
        let coordinator = Coordinator::new(&circuit, &bench.keys, &bench.engine, 2).unwrap();
        let worker = Worker::new(&circuit, &bench.keys.types, Masking::Masked, WitnessCheck::Check);
        let jobs = [0, 1].map(|i| coordinator.prove_job(i, &randomness).unwrap());
        let values = jobs.each_ref().map(|job| job.values.clone());
        let commitments = jobs.map(|job| worker.commit(job).unwrap().1).to_vec();
        let committed = coordinator.committed(commitments, &bench.engine).unwrap();
        (coordinator.execution_digest(), values, committed.prove_round())
    };
    let (a, b, again) = (run(1), run(2), run(1));
    assert_eq!(a, again);
    let (slots, masks) = (0..2, 2..4);
    assert_eq!((a.1[0][0], a.1[0][1]), (Fr::from(7u64), Fr::from(1u64)));
    assert_eq!(a.1[0][0], b.1[0][0], "the only wire has the same value");
    assert_eq!(a.1[1][slots.clone()], b.1[1][slots], "the other instance has the same slots");
    assert_ne!(a.2, b.2, "other challenges");
    assert_ne!(a.0, b.0, "other digests");
    // The only mask is between the two instances.
    assert_eq!(a.1[0][masks.end - 1], a.1[1][masks.start]);
    assert_ne!(a.1[0][masks.end - 1], b.1[0][masks.end - 1], "other masks");
}

/// Two readers of a public input. The first has a slot without a wire, whose value is an input.
struct Unused;

impl Circuit for Unused {
    type Input = [Fr; 2];
    type Plan = (WireId, InstanceId);
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Self::Plan, LayoutError> {
        let kind = layout.subcircuit_type("reader", 2);
        let x = layout.public_input("x", 0);
        let [first, second] = [layout.instance(kind), layout.instance(kind)];
        for instance in [first, second] {
            layout.read(instance, 0, x);
            layout.unused(instance, 1);
        }
        Ok((x, first))
    }

    fn execute(
        &self,
        (x, first): &Self::Plan,
        input: &[Fr; 2],
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        values.set(*x, input[0]);
        values.set_unused(*first, 1, input[1]);
        Ok(())
    }

    fn private_input(
        &self,
        _: &Self::Plan,
        _: &[Fr; 2],
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
        let _ = subcircuit.slot(0)? * subcircuit.slot(1)?;
        Ok(())
    }
}

/// Computes V_e from a guess of all shared values.
fn guessed_ledger(cheater: &Cheater<'_, Squares>, proof: &[u8]) -> Vec<u8> {
    let memory = crate::verifier::transcript::FiatShamir::begin(
        Merlin::new(),
        &cheater.bench.keys.verifying.digest(),
        cheater.bench.keys.verifying.instances,
        &cheater.public,
    )
    .memory(field_of(cheater.bench, proof, ProofField::CmD), false);
    let psi = cheater.bench.keys.aggregation.psi().unwrap();
    let shares: Vec<Fr> = (0..cheater.values.len())
        .map(|i| {
            hekaton_circuit::prover::Prefix::new(&cheater.slots[i], &cheater.values[i], &memory)
                .unwrap()
                .sum
        })
        .collect();
    let v: Vec<G2Point> = (0..shares.len()).map(|i| psi[2 * i]).collect();
    G2Point::msm(&v, &shares).encode()
}

/// Adversarial test 52: With masks off, a guess of the witness is confirmed from V_e; with masks on
/// it is not.
#[test]
fn a52_masks() {
    for masked in [false, true] {
        let bench = Bench::new(Squares { public: false, ..Squares::new(&[0, 1, 1, 0, 1]) }, masked);
        assert_eq!(bench.keys.verifying.zero_knowledge, masked);
        let options = ProveOptions::new();
        let run =
            prove(&bench.circuit, &Fr::from(INPUT), &bench.keys, &bench.engine, &options).unwrap();
        let proof = run.proof.as_bytes();
        let true_ledger = field_of(&bench, proof, ProofField::Ve);
        let right = guessed_ledger(&Cheater::new(&bench, &Fr::from(INPUT)), proof);
        let wrong = guessed_ledger(&Cheater::new(&bench, &Fr::from(INPUT + 1)), proof);
        assert_eq!(right == true_ledger, !masked, "masks {masked}: a right guess");
        assert_ne!(wrong, true_ledger, "masks {masked}: a wrong guess");
    }
}

/// Adversarial test 53: a simulated proof, computed with the trapdoors and without a witness, is
/// accepted.
#[test]
fn a53_simulated_proof_is_accepted() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let secrets = Secrets::draw(2, Some(1)).unwrap();
    let random = masks(&Randomness::seeded_not_zero_knowledge(8));
    let mut counter = 0;
    let mut draw = || {
        counter += 1;
        random.scalar(Purpose::Mask, counter)
    };
    let n = 5;
    let g = G1Point::generator();
    // The logarithms of D, then, after the challenges, of A, B and e; C follows from the equation
    // (spec: zero-knowledge#simulation).
    let d: Vec<Fr> = (0..n).map(|_| draw()).collect();
    let mut points: Vec<G1Point> = d.iter().map(|x| g.mul(x)).collect();
    points.resize(8, G1Point::IDENTITY);
    let shared = cheater.shared();
    let committing = cheater.begin(&shared, Merlin::new(), &points);
    let memory = committing.memory();
    let public = public_sum(&bench.keys.verifying, &cheater.public, &memory).unwrap();
    let s = bench.keys.aggregation.s(&memory).unwrap();
    let theta = {
        // p_e / kappa = L_0(tau) / kappa
        let tau = secrets.shared.tau;
        move |domain: u64, kappa: Fr| {
            let t = tau.pow([domain]) - Fr::ONE;
            t * (Fr::from(domain) * (tau - Fr::ONE) * kappa).inverse().unwrap()
        }
    };
    let mut vectors = ProofVectors::new(std::iter::empty(), 8);
    let mut sum = Fr::zero();
    for i in 0..n {
        let kind = cheater.kind(i);
        let (a, b) = (draw(), draw());
        let e = if i + 1 < n { draw() } else { -public - sum };
        sum += e;
        let types = &secrets.types[kind];
        let key = &bench.keys.types[kind];
        let fixed = a * b
            - secrets.shared.alpha * secrets.shared.beta
            - d[i] * types.eta
            - e * secrets.shared.kappa * theta(key.shape.domain, secrets.shared.kappa);
        // C = (A B - alpha beta - D eta - E Theta - S gamma) / delta; S is a point
        let c = g
            .mul(&fixed)
            .sub(&s[i].mul(&secrets.shared.gamma))
            .mul(&types.delta.inverse().unwrap());
        (vectors.a[i], vectors.b[i], vectors.c[i], vectors.e[i]) =
            (g.mul(&a), G2Point::generator().mul(&b), c, e);
    }
    let proof = committing.finish(&vectors).unwrap();
    assert_eq!(bench.verify(&cheater.public, proof.as_bytes()), Ok(()));
    // With a wrong sum it is refused: even the trapdoors do not replace the ledger sum.
    let shared = cheater.shared();
    vectors.e[0] += Fr::ONE;
    let committing = cheater.begin(&shared, Merlin::new(), &points);
    let proof = committing.finish(&vectors).unwrap();
    assert!(bench.verify(&cheater.public, proof.as_bytes()).is_err());
}

/// Adversarial test 53: the terms e_i of masked proofs are uniform on their hyperplane: chi-square
/// test over the low bits of n - 1 of them. Control: without masks they are constant.
#[test]
fn a53_shares_are_uniform() {
    let bench = squares();
    let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let memory = hekaton_circuit::MemoryChallenges::new(Fr::from(11u64), Fr::from(13u64));
    let mut counts = [[0u32; 16]; 4];
    let runs = 1600;
    for seed in 0..runs {
        cheater.randomness = Randomness::seeded_not_zero_knowledge(seed);
        let masks = masks(&cheater.randomness);
        for (i, counts) in counts.iter_mut().enumerate() {
            let mut values = cheater.values[i].clone();
            let mask = |j: u64| masks.scalar(Purpose::Mask, j);
            values[3] = if i == 0 { Fr::zero() } else { mask(i as u64 - 1) };
            values[4] = mask(i as u64);
            let e = hekaton_circuit::prover::Prefix::new(&cheater.slots[i], &values, &memory)
                .unwrap()
                .sum;
            counts[(e.into_bigint().0[0] & 15) as usize] += 1;
        }
    }
    let expected = runs as f64 / 16.0;
    for counts in counts {
        let chi: f64 = counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
        // 15 degrees of freedom: above 45 with probability 1e-4. The seeds are fixed, so the test
        // is deterministic.
        assert!(chi < 45.0, "chi-square {chi}: {counts:?}");
    }
    // Control: without masks they are constant.
    let plain = Bench::new(Squares::new(&[0, 1, 1, 0, 1]), false);
    let a = Cheater::new(&plain, &Fr::from(INPUT));
    let share = |c: &Cheater<'_, Squares>| {
        hekaton_circuit::prover::Prefix::new(&c.slots[1], &c.values[1], &memory).unwrap().sum
    };
    assert_eq!(share(&a), share(&Cheater::new(&plain, &Fr::from(INPUT))));
}

/// Zero knowledge is the default, and a seeded run is marked as one.
#[test]
fn defaults() {
    assert!(crate::SetupOptions::new("x").zero_knowledge);
    assert!(!crate::SetupOptions::new("x").zero_knowledge(false).zero_knowledge);
    assert!(ProveOptions::new().randomness.is_none());
    assert!(!Randomness::fresh().unwrap().is_seeded());
    assert!(Randomness::seeded_not_zero_knowledge(1).is_seeded());
}
