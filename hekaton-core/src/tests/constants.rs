//! Constants of a layout: wires that the verifier writes with values of the verifying key
//! (spec: memory-check#constants, verifier#public-sum).

use super::bench::{Bench, Cheater, Poled};
use crate::protocol::coordinator::CoordinatorError;
use crate::protocol::{ProveError, ProveOptions, Secrets, SetupError, SetupOptions};
use crate::protocol::{prove, prove_prepared, prove_with, setup_wiring};
use crate::verifier::proof::ProofError;
use crate::verifier::transcript::{Merlin, Sponge};
use crate::verifier::verify::Equation::Z;
use crate::verifier::verify::{VerifyError, verify_with, verify_with_test_keys};
use crate::verifier::verifying_key::{VerifyingKey, VerifyingKeyError};
use ark_ff::{AdditiveGroup, Field, PrimeField};
use ark_r1cs_std::eq::EqGadget;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::{Fr, fr_to_bytes};
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{
    Circuit, CircuitError, ExecutionError, InstanceId, Layout, LayoutBuilder, LayoutError,
    MemoryChallenges, PreparedCircuit, Subcircuit, ValuesError, WireId, WireName, WireValues,
    check,
};

/// A chain w' = w^2 + c, in which each subcircuit reads its own constant c.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// The constant of each subcircuit.
    constants: Vec<Fr>,
    /// Constants that nobody reads.
    idle: Vec<Fr>,
    /// The value to which `execute` sets the constant of the first subcircuit, if it does.
    set: Option<Fr>,
}

impl Chain {
    pub(crate) fn new(constants: &[Fr]) -> Self {
        Self { constants: constants.to_vec(), idle: Vec::new(), set: None }
    }
}

/// The wires of a [`Chain`], and its constants by subcircuit.
pub(crate) struct Plan {
    wires: Vec<WireId>,
    constants: Vec<WireId>,
}

impl Circuit for Chain {
    type Input = Fr;
    type Plan = Plan;
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Plan, LayoutError> {
        let kind = layout.subcircuit_type("add", 3);
        let n = self.constants.len();
        for value in &self.idle {
            layout.constant(*value);
        }
        let mut wires = vec![layout.public_input("w", 0)];
        wires.extend((1..n).map(|i| layout.wire("w", i as u64)));
        let constants: Vec<_> = self.constants.iter().map(|c| layout.constant(*c)).collect();
        wires.push(layout.public_output("w", n as u64));
        for (pair, constant) in wires.windows(2).zip(&constants) {
            let instance = layout.instance(kind);
            layout.read(instance, 0, pair[0]);
            layout.read(instance, 1, *constant);
            layout.write(instance, 2, pair[1]);
        }
        Ok(Plan { wires, constants })
    }

    fn execute(
        &self,
        plan: &Plan,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let mut w = *input;
        values.set(plan.wires[0], w);
        for (wire, constant) in plan.wires[1..].iter().zip(&plan.constants) {
            // Constants have values before `execute` sets any.
            w = w.square() + values.get(*constant).ok_or("a constant has no value")?;
            values.set(*wire, w);
        }
        if let Some(value) = self.set {
            values.set(plan.constants[0], value);
        }
        Ok(())
    }

    fn private_input(&self, _: &Plan, _: &Fr, (): &(), _: InstanceId) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(
        &self,
        _: &Plan,
        subcircuit: &Subcircuit,
        _: Option<&()>,
    ) -> Result<(), SynthesisError> {
        let w = subcircuit.slot(0)?;
        (w * w + subcircuit.slot(1)?).enforce_equal(subcircuit.slot(2)?)
    }
}

/// A constant that needs all its bytes.
fn large() -> Fr {
    Fr::from(0x1234_5678_9abc_def1u64).pow([7])
}

/// Five subcircuits that read three constants.
fn chain() -> Chain {
    Chain::new(&[Fr::ZERO, Fr::ONE, large(), large(), Fr::ONE])
}

fn bench() -> Bench<Chain> {
    Bench::new(chain(), true)
}

const INPUT: u64 = 5;

/// Proofs with constants are accepted: 0, 1 and a large one, read once and several times, with and
/// without masks. A value is one wire however often it is asked for, and one that nobody reads is
/// left out of the keys. Nobody passes constants to a verifier.
#[test]
fn constants_are_proven() {
    let idle = Chain { idle: vec![Fr::from(77u64), Fr::ONE], ..chain() };
    let cases = [
        (chain(), vec![(Fr::ZERO, 1), (Fr::ONE, 2), (large(), 2)]),
        (idle, vec![(Fr::ONE, 2), (Fr::ZERO, 1), (large(), 2)]),
        (Chain::new(&[Fr::ZERO]), vec![(Fr::ZERO, 1)]),
        (Chain::new(&[-Fr::ONE; 9]), vec![(-Fr::ONE, 9)]),
    ];
    for (circuit, expected) in cases {
        for zero_knowledge in [true, false] {
            let bench = Bench::new(circuit.clone(), zero_knowledge);
            let vk = &bench.keys.verifying;
            let found: Vec<_> = vk.constants.iter().map(|c| (c.value, c.multiplicity)).collect();
            assert_eq!(found, expected);
            assert_eq!(vk.constants, bench.wiring.constants);
            assert_eq!(VerifyingKey::from_bytes(&vk.to_bytes()).as_ref(), Ok(vk));
            let report = check(&bench.circuit, &Fr::from(INPUT), |_, _| {}).unwrap();
            assert!(report.violations.is_empty());
            let options = ProveOptions::new();
            let run = prove(&bench.circuit, &Fr::from(INPUT), &bench.keys, &bench.engine, &options)
                .unwrap();
            let output = circuit.constants.iter().fold(Fr::from(INPUT), |w, c| w.square() + c);
            assert_eq!(run.public_values, [Fr::from(INPUT), output]);
            assert_eq!(run.public.len(), 2);
            assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
            let more = [&run.public_values[..], &[expected[0].0]].concat();
            let count = VerifyError::PublicValues { expected: 2, found: 3 };
            assert_eq!(bench.verify(&more, run.proof.as_bytes()), Err(count));
        }
    }
    let mut layout = Layout::builder();
    let (one, two) = (layout.constant(Fr::ONE), layout.constant(Fr::from(2u64)));
    assert_eq!((one, two), (layout.constant(Fr::ONE), layout.constant(Fr::from(2u64))));
    assert_ne!(one, two);
}

/// Adversarial test of constants: all readers of a constant, or one of them, use another value, and
/// the rest of the chain and the public output follow. Guards: the term of the key's constants in
/// P_pub. Control: under a verifying key whose constant is that other value, the first of these
/// proofs is accepted.
#[test]
fn another_value_of_a_constant_is_refused() {
    let other = large() + Fr::ONE;
    let lie = |bench: &Bench<Chain>, readers: &[usize]| {
        let mut cheater = Cheater::new(bench, &Fr::from(INPUT));
        for reader in readers {
            assert_eq!(cheater.values[*reader][1], large());
            cheater.values[*reader][1] = other;
        }
        for i in 0..5 {
            let out = cheater.values[i][0].square() + cheater.values[i][1];
            cheater.values[i][2] = out;
            match cheater.values.get_mut(i + 1) {
                Some(next) => next[0] = out,
                None => cheater.public[1] = out,
            }
        }
        (cheater.finish(), cheater.public)
    };
    let honest = bench();
    for readers in [&[2, 3][..], &[2], &[3]] {
        let (proof, public) = lie(&honest, readers);
        let verdict = honest.verify(&public, &proof);
        assert_eq!(verdict, Err(VerifyError::Equations { failing: vec![Z] }), "{readers:?}");
    }
    let mut control = bench();
    control.keys.verifying.constants[2].value = other;
    let (proof, public) = lie(&control, &[2, 3]);
    assert_eq!(control.verify(&public, &proof), Ok(()), "the control must accept");
    // The true values are wrong there.
    assert!(control.verify(&public, &lie(&control, &[]).0).is_err());
    let verdict = honest.verify(&public, &proof);
    assert!(matches!(verdict, Err(VerifyError::Proof(ProofError::ForeignKey { .. }))));
}

/// A verifying key with another constant, or another number of readers, is another key: the proof is
/// foreign, and with an adapted header the transcript moves. Provers refuse it before they prove.
#[test]
fn changed_constants_are_another_key() {
    let bench = bench();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish();
    let changes: [&dyn Fn(&mut VerifyingKey); 4] = [
        &|vk| vk.constants[1].value += Fr::ONE,
        &|vk| vk.constants[1].multiplicity += 1,
        &|vk| vk.constants[0].address += 100,
        &|vk| {
            vk.constants.pop();
        },
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut other = self::bench();
        change(&mut other.keys.verifying);
        let vk = &other.keys.verifying;
        let verdict = verify_with_test_keys(vk, &cheater.public, &proof);
        assert!(
            matches!(verdict, Err(VerifyError::Proof(ProofError::ForeignKey { .. }))),
            "change {i}"
        );
        let mut adapted = proof.clone();
        adapted[10..42].copy_from_slice(&vk.digest());
        let verdict = verify_with_test_keys(vk, &cheater.public, &adapted);
        assert!(matches!(verdict, Err(VerifyError::Equations { .. })), "change {i}");
        let input = Fr::from(INPUT);
        let (circuit, options) = (other.with_input(&input), ProveOptions::new());
        let error = prove_prepared(&circuit, &other.keys, &other.engine, &options).unwrap_err();
        assert!(
            matches!(error, ProveError::Coordinator(CoordinatorError::MixedKeys)),
            "change {i}: {error}"
        );
    }
    // Keys for other constants are for another layout.
    let other = Chain::new(&[Fr::ZERO, Fr::ONE, large(), large(), Fr::ZERO]);
    let options = ProveOptions::new();
    let error = prove(&other, &Fr::from(INPUT), &bench.keys, &bench.engine, &options).unwrap_err();
    assert!(error.to_string().contains("another layout"), "{error}");
}

/// A verifying key with constants that no setup makes is refused when it is read.
#[test]
fn constants_of_a_verifying_key_are_checked() {
    let bench = bench();
    let vk = &bench.keys.verifying;
    let broken = |change: &dyn Fn(&mut VerifyingKey), why: &str| {
        let mut other = vk.clone();
        change(&mut other);
        match VerifyingKey::from_bytes(&other.to_bytes()) {
            Err(VerifyingKeyError::Decode(e)) => assert!(e.to_string().contains(why), "{e}"),
            other => panic!("{why}: {other:?}"),
        }
    };
    assert!(vk.constants[0].address > vk.public[0].address);
    assert!(vk.public[1].address > vk.constants[2].address, "w[5] was declared last");
    let order = "addresses must increase";
    broken(&|vk| vk.constants[0].address = vk.public[0].address, "that of a public wire");
    broken(&|vk| vk.constants[2].address = vk.public[1].address, "that of a public wire");
    broken(&|vk| vk.constants.swap(0, 1), order);
    broken(&|vk| vk.constants[1].address = vk.constants[0].address, order);
    broken(&|vk| vk.constants[0].address = 0, order);
    for multiplicity in [-1, 0, i64::MIN, 1 << 32] {
        broken(
            &|vk| vk.constants[1].multiplicity = multiplicity,
            "multiplicities be 1 to 2^32 - 1",
        );
    }
    // A value that is not below r, with the right checksum.
    let bytes = vk.to_bytes();
    let code = fr_to_bytes(&large());
    let at = bytes.windows(32).position(|part| part == code).unwrap();
    let with_value = |value: [u8; 32]| {
        let mut bytes = bytes[..bytes.len() - 32].to_vec();
        bytes[at..at + 32].copy_from_slice(&value);
        bytes.extend(blake3::hash(&bytes).as_bytes());
        VerifyingKey::from_bytes(&bytes)
    };
    let mut r = [0; 32];
    for (chunk, limb) in r.chunks_exact_mut(8).zip(Fr::MODULUS.0) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    for value in [r, [0xff; 32]] {
        let error = with_value(value).unwrap_err().to_string();
        assert!(error.contains("value of a constant") && error.contains("not below"), "{error}");
    }
    assert_eq!(with_value(fr_to_bytes(&-Fr::ONE)).unwrap().constants[2].value, -Fr::ONE);
}

/// `execute` may not give a constant another value; the same one is allowed.
#[test]
fn execute_cannot_change_constants() {
    let bench = bench();
    let circuit = |set| Chain { set: Some(set), ..chain() };
    let options = ProveOptions::new();
    let run =
        |circuit: &Chain| prove(circuit, &Fr::from(INPUT), &bench.keys, &bench.engine, &options);
    assert!(run(&circuit(Fr::ZERO)).is_ok());
    let changed = circuit(Fr::from(2u64));
    match run(&changed).unwrap_err() {
        ProveError::Coordinator(CoordinatorError::Execution(ExecutionError::Values(error))) => {
            // By the name that other errors give it, too.
            let name = WireName("constant", 0);
            assert_eq!(error, ValuesError::Constant(name));
            let prepared = PreparedCircuit::new(&changed).unwrap();
            let first = prepared.layout().constants().next().unwrap().0;
            assert_eq!(prepared.layout().wire_name(first), name);
        }
        other => panic!("{other}"),
    }
    assert!(check(&changed, &Fr::from(INPUT), |_, _| {}).is_err());
    // The verifier is the writer: a subcircuit cannot be one, too.
    let mut layout = Layout::builder();
    let kind = layout.subcircuit_type("t", 1);
    let (instance, one) = (layout.instance(kind), layout.constant(Fr::ONE));
    layout.write(instance, 0, one);
    let error = layout.build().unwrap_err();
    assert!(matches!(error, LayoutError::TwoWriters { .. }));
    assert!(error.to_string().contains("the verifying key (constant)"), "{error}");
}

/// Constants are writers of stars like all others: setup refuses wrong multiplicities, and addresses
/// of other wires.
#[test]
fn constants_are_in_stars() {
    let good = bench().wiring;
    assert_eq!(good.check_stars(), Ok(()));
    let refuse = |change: &dyn Fn(&mut Wiring), why: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = bad.check_stars().unwrap_err();
        assert!(error.to_string().contains(why), "{error} should contain {why}");
        let options = SetupOptions::new("test").insecure_seed(1);
        let secrets = Secrets::draw(1, Some(1)).unwrap();
        let result: Result<_, SetupError> = setup_wiring(
            &bad,
            std::iter::empty(),
            &secrets,
            &options,
            &mut |_, _| Ok(()),
            &mut |_| {},
        );
        assert!(matches!(result.err(), Some(SetupError::Star(_))), "{why}");
    };
    refuse(&|w| w.constants[1].multiplicity += 1, "the writer has multiplicity 3 for 2 readers");
    refuse(&|w| w.constants[1].multiplicity = 1 << 32, "2^32");
    refuse(&|w| w.constants[1].multiplicity = -1, "readers without a writer");
    refuse(&|w| w.constants[1].multiplicity = -2, "neither -1 nor positive");
    refuse(&|w| w.constants[1].multiplicity = 0, "neither -1 nor positive");
    refuse(&|w| w.constants[1].address = w.public[0].address, "two writers");
    refuse(&|w| w.constants[1].address = w.constants[2].address, "two writers");
    refuse(&|w| w.constants.truncate(2), "readers without a writer");
}

/// Challenges that hit a pole at a constant: the run restarts, and a verifier never accepts. Guards:
/// constants in the look for poles of `public_sum`.
#[test]
fn poles_at_constants() {
    let bench = bench();
    let constant = bench.wiring.constants[2];
    let b = Fr::from(10u64);
    let pole = MemoryChallenges::new(-(constant.value + b * Fr::from(constant.address)), b);
    let input = Fr::from(INPUT);
    let circuit = bench.with_input(&input);
    let (options, attempts) = (ProveOptions::new(), std::sync::atomic::AtomicU32::new(0));
    let sponge = |attempt| -> Box<dyn Sponge> {
        attempts.fetch_max(attempt, std::sync::atomic::Ordering::SeqCst);
        if attempt == 1 { Box::new(Poled::new(pole)) } else { Box::new(Merlin::new()) }
    };
    let run = prove_with(&circuit, &bench.keys, &bench.engine, &options, &sponge).unwrap();
    assert_eq!(
        (bench.verify(&run.public_values, run.proof.as_bytes()), attempts.into_inner()),
        (Ok(()), 2)
    );
    let always = |_| -> Box<dyn Sponge> { Box::new(Poled::new(pole)) };
    let error = prove_with(&circuit, &bench.keys, &bench.engine, &options, &always).unwrap_err();
    assert!(
        matches!(&error, ProveError::Coordinator(CoordinatorError::Pole { address })
            if *address == constant.address),
        "{error}"
    );
    let (public, proof) = (&run.public_values, run.proof.as_bytes());
    let verdict = verify_with(Poled::new(pole), &bench.keys.verifying, public, proof);
    assert_eq!(verdict, Err(VerifyError::Pole { address: constant.address }));
}
