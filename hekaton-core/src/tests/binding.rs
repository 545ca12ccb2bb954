//! Keys are bound to the code of their circuit (AUDIT F1), and that code to itself: constraints must
//! not depend on values (AUDIT F2), nor leave a slot to the prover. Also what ties the parts of the
//! keys together (AUDIT nit 3), and keys that prove nothing (AUDIT F6).

use super::bench::{Bench, Cheater, Root, squares};
use crate::keys::{CircuitMismatch, ProverKeys, check_circuit};
use crate::mirage::WitnessCheck;
use crate::protocol::coordinator::{Coordinator, CoordinatorError};
use crate::protocol::worker::WorkerError;
use crate::protocol::{ProveError, ProveOptions, SetupError, SetupOptions, prove_prepared, setup};
use crate::verifier::verify::{VerifyError, verify, verify_with_test_keys};
use ark_ff::{AdditiveGroup, Field};
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;
use hekaton_circuit::{
    CheckError, Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, Masking,
    PreparedCircuit, R1csDifference, Subcircuit, SynthesizeError, WireId, WireValues, check, count,
};

/// The constraint that the author of [`Square`] wrote for y = x^2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Nothing: the row is forgotten. Another row contains x and y, and says nothing about them.
    Forgotten,
    /// The row comes before the other one.
    First,
    /// The row comes after the other one.
    Last,
    /// The row exists only where there is a private input, so not at setup.
    IfPrivate,
    /// The row is multiplied by a private value that is folded into a constant: 0 at setup.
    TimesPrivate,
    /// Nothing, and the other row has another coefficient.
    Coefficient,
    /// Nothing, and there is a variable in no row.
    Variable,
}

/// Claims that y is the square of x: a copy of x, and a subcircuit for the claim. Its rows add no
/// variables, so the numbers of variables agree whatever the rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Square(pub(crate) Rule);

impl Circuit for Square {
    type Input = [Fr; 2];
    type Plan = [WireId; 3];
    type Trace = ();
    type Private = Root;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<[WireId; 3], LayoutError> {
        let copy = layout.subcircuit_type("copy", 2);
        let square = layout.subcircuit_type("square", 2);
        let (x, y) = (layout.public_input("x", 0), layout.public_output("y", 0));
        let wires = [x, layout.wire("copy", 0), y];
        for (kind, pair) in [copy, square].into_iter().zip(wires.windows(2)) {
            let instance = layout.instance(kind);
            layout.read(instance, 0, pair[0]);
            layout.write(instance, 1, pair[1]);
        }
        Ok(wires)
    }

    fn execute(
        &self,
        wires: &[WireId; 3],
        [x, y]: &[Fr; 2],
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        wires.iter().zip([x, x, y]).for_each(|(wire, value)| values.set(*wire, *value));
        Ok(())
    }

    fn private_input(
        &self,
        _: &[WireId; 3],
        _: &[Fr; 2],
        (): &(),
        _: InstanceId,
    ) -> Result<Root, CircuitError> {
        Ok(Root(Fr::from(5u64)))
    }

    fn synthesize(
        &self,
        _: &[WireId; 3],
        subcircuit: &Subcircuit,
        private: Option<&Root>,
    ) -> Result<(), SynthesisError> {
        let (x, y) = (subcircuit.slot(0)?, subcircuit.slot(1)?);
        if subcircuit.kind().index() == 0 {
            return x.enforce_equal(y);
        }
        if self.0 == Rule::First {
            x.mul_equals(x, y)?;
        }
        let factor = if self.0 == Rule::Coefficient { 2u64 } else { 1 };
        let _ = x * &(y * FpVar::constant(Fr::from(factor)));
        match self.0 {
            Rule::Last => x.mul_equals(x, y),
            Rule::IfPrivate if private.is_some() => x.mul_equals(x, y),
            Rule::TimesPrivate => {
                let factor = FpVar::constant(private.map_or(Fr::ZERO, |private| private.0));
                ((x * x - y) * factor).enforce_equal(&FpVar::zero())
            }
            Rule::Variable => {
                FpVar::new_witness(subcircuit.cs(), || Ok(Fr::ONE)).map(|_: FpVar<Fr>| ())
            }
            _ => Ok(()),
        }
    }
}

fn honest() -> [Fr; 2] {
    [3u64, 9].map(Fr::from)
}

fn lie() -> [Fr; 2] {
    [3u64, 999].map(Fr::from)
}

/// The first of the author's constraints in [`Square`].
const ROW: usize = 0;

/// Proves with other code than that of the keys.
fn prove_with_code(
    code: Rule,
    input: [Fr; 2],
    bench: &Bench<Square>,
) -> Result<Vec<u8>, ProveError> {
    let code = Square(code);
    let circuit = PreparedCircuit::with_input(&code, &input).unwrap();
    let run = prove_prepared(&circuit, &bench.keys, &bench.engine, &ProveOptions::new())?;
    assert_eq!(run.public_values, input);
    Ok(run.proof.as_bytes().to_vec())
}

/// The mismatch that ended a run.
fn mismatch(error: ProveError) -> CircuitMismatch {
    match error {
        ProveError::Coordinator(CoordinatorError::Circuit(mismatch)) => mismatch,
        other => panic!("{other}"),
    }
}

/// Adversarial test of AUDIT F1: keys that were made before the author added a forgotten row are
/// refused with the type and the first row that differs. Guards: the comparison of constraints in
/// `keys_match`. Control: without it the mended code proves under the old keys without an error, and
/// the old code proves 3^2 = 999 under them.
#[test]
fn f1_keys_of_other_code_are_refused() {
    let bench = Bench::new(Square(Rule::Forgotten), true);
    let variables = bench.keys.types[1].variables();
    let rules = [
        (Rule::First, R1csDifference::Row(ROW)),
        (Rule::Last, R1csDifference::Row(ROW + 1)),
        (Rule::Coefficient, R1csDifference::Row(ROW)),
        (Rule::Variable, R1csDifference::Variables(variables, variables + 1)),
    ];
    for (rule, expected) in rules {
        let code = Square(rule);
        let circuit = PreparedCircuit::new(&code).unwrap();
        let checked = check_circuit(&circuit, &bench.keys, &bench.engine, 2).unwrap_err();
        for error in [checked, mismatch(prove_with_code(rule, honest(), &bench).unwrap_err())] {
            let text = error.to_string();
            match error {
                CircuitMismatch::Constraints { kind, difference } => {
                    assert_eq!((kind.as_str(), difference), ("square", expected), "{rule:?}");
                }
                other => panic!("{rule:?}: {other}"),
            }
            assert!(text.contains("type 'square'") && text.contains("run setup again"), "{text}");
        }
    }
    // And the other way round: a row of the key is missing in the code.
    let mended = Bench::new(Square(Rule::Last), true);
    let error = mismatch(prove_with_code(Rule::Forgotten, honest(), &mended).unwrap_err());
    assert!(error.to_string().contains(&format!("first constraint that differs is {}", ROW + 1)));

    // Control: everything else looks right. The steps below are those of `prove`, except that
    // nobody compares keys and code.
    let code = Square(Rule::First);
    assert!(check(&code, &honest(), |_, _| {}).unwrap().violations.is_empty());
    let circuit = PreparedCircuit::new(&code).unwrap();
    let cheater = Cheater { circuit, ..Cheater::new(&bench, &honest()) };
    assert_eq!(bench.verify(&honest(), &cheater.finish()), Ok(()), "mended code, old keys");
    let forged = prove_with_code(Rule::Forgotten, lie(), &bench).unwrap();
    assert_eq!(bench.verify(&lie(), &forged), Ok(()), "old code, old keys");
    // Keys of the mended code refuse the lie: the prover, and the verifier.
    let mended = Bench::new(code, true);
    let error = prove_with_code(Rule::First, lie(), &mended).unwrap_err();
    assert!(matches!(error, ProveError::Worker(WorkerError::Unsatisfied { .. })), "{error}");
    let forced = Cheater::new(&mended, &lie());
    assert!(mended.verify(&lie(), &forced.finish()).is_err());
}

/// AUDIT F1: the verifying key has the digest of each type's constraints, and keys in which it is
/// another one are refused. Guards: the comparison of digests in `keys_match`.
#[test]
fn f1_type_digests_are_compared() {
    let mut bench = Bench::new(Square(Rule::First), true);
    let digests: Vec<[u8; 32]> = {
        let circuit = bench.prepared();
        let kinds = circuit.layout().type_ids();
        kinds.map(|kind| circuit.r1cs(kind, Masking::Masked).unwrap().digest()).collect()
    };
    let of_key = |keys: &ProverKeys| -> Vec<[u8; 32]> {
        keys.verifying.types.iter().map(|kind| kind.r1cs).collect()
    };
    assert_eq!(of_key(&bench.keys), digests, "anybody can recompute them from the code");
    assert!(check_circuit(&bench.prepared(), &bench.keys, &bench.engine, 2).is_ok());
    let forgotten = Bench::new(Square(Rule::Forgotten), true);
    assert_eq!(of_key(&forgotten.keys)[0], digests[0], "the copy is the same");
    // The old verifying key with the new proving keys, and a single bit.
    let new = bench.keys.verifying.types[1].r1cs;
    let mut bit = new;
    bit[31] ^= 0x80;
    for other in [of_key(&forgotten.keys)[1], bit] {
        bench.keys.verifying.types[1].r1cs = other;
        for error in [
            check_circuit(&bench.prepared(), &bench.keys, &bench.engine, 2).unwrap_err(),
            mismatch(prove_with_code(Rule::First, honest(), &bench).unwrap_err()),
        ] {
            assert!(
                matches!(&error, CircuitMismatch::Digest { kind } if kind == "square"),
                "{error}"
            );
        }
    }
}

/// Adversarial test of AUDIT F2: rows that exist only with a private input, and rows whose
/// coefficients depend on one, are not in the keys; the development check names the type and the
/// row. Guards: the comparison of each instance with its type in `check`. Control: the lie that
/// these rows should refuse is proven and verifies, although `check` reports it as a violation when
/// the author tries it.
#[test]
fn f2_constraints_that_depend_on_private_inputs() {
    for (rule, row) in [(Rule::IfPrivate, ROW + 1), (Rule::TimesPrivate, ROW + 2)] {
        for input in [honest(), lie()] {
            let error = check(&Square(rule), &input, |_, _| {}).unwrap_err();
            let text = error.to_string();
            match error {
                CheckError::Differs { instance, kind, difference, .. } => {
                    let found = (instance, kind.as_str(), difference);
                    assert_eq!(found, (1, "square", R1csDifference::Row(row)), "{rule:?}");
                }
                other => panic!("{rule:?}: {other}"),
            }
            assert!(text.contains("must not depend on values"), "{text}");
        }
        // Control: keys, code and prover agree with each other, and 3^2 = 999.
        let bench = Bench::new(Square(rule), true);
        let forged = prove_with_code(rule, lie(), &bench).unwrap();
        assert_eq!(bench.verify(&lie(), &forged), Ok(()), "{rule:?}");
    }
    // The rule itself, without a condition: nothing differs, and the lie is refused.
    assert!(check(&Square(Rule::Last), &honest(), |_, _| {}).unwrap().violations.is_empty());
    let report = check(&Square(Rule::Last), &lie(), |_, _| {}).unwrap();
    assert_eq!((report.violations.len(), report.violations[0].constraint), (1, Some(ROW + 1)));
}

/// AUDIT nit 3: a verifying key with other types, or another map from instances to types, is refused
/// before anything is proven. Guards: `keys_match` and the comparison in `Coordinator::new`.
#[test]
fn verifying_keys_of_other_types_are_refused() {
    let refuse = |change: &dyn Fn(&mut ProverKeys)| {
        let mut bench = squares();
        change(&mut bench.keys);
        let input = Fr::from(5u64);
        let circuit = bench.with_input(&input);
        let error = Coordinator::new(&circuit, &bench.keys, &bench.engine, 2).unwrap_err();
        let run = prove_prepared(&circuit, &bench.keys, &bench.engine, &ProveOptions::new());
        assert_eq!(run.unwrap_err().to_string(), error.to_string());
        // `keys verify` says what an auditor pins, so it must refuse the same keys.
        assert!(check_circuit(&circuit, &bench.keys, &bench.engine, 2).is_err());
        error
    };
    let types = |error: CoordinatorError| {
        assert!(matches!(error, CoordinatorError::Circuit(CircuitMismatch::Types)), "{error}");
    };
    types(refuse(&|keys| keys.verifying.types.truncate(1)));
    types(refuse(&|keys| keys.verifying.types.push(keys.verifying.types[0].clone())));
    types(refuse(&|keys| keys.verifying.types.swap(0, 1)));
    types(refuse(&|keys| keys.verifying.types[1].name.push('x')));
    types(refuse(&|keys| keys.types.swap(0, 1)));
    let mixed: [&dyn Fn(&mut ProverKeys); 5] = [
        &|keys| keys.verifying.type_map = [7; 32],
        &|keys| keys.verifying.instances = 4,
        &|keys| keys.verifying.public[0].multiplicity += 1,
        &|keys| keys.verifying.public[1].name.push('x'),
        &|keys| {
            keys.verifying.public.pop();
        },
    ];
    for (i, change) in mixed.into_iter().enumerate() {
        let error = refuse(change);
        assert!(matches!(error, CoordinatorError::MixedKeys), "change {i}: {error}");
    }
    let error = refuse(&|keys| keys.verifying.layout[0] ^= 1);
    assert!(matches!(error, CoordinatorError::Circuit(CircuitMismatch::Layout { .. })), "{error}");
}

/// Adversarial test of AUDIT F6: a verifier refuses proofs under test keys unless it asks for them,
/// because anybody can forge those. Guards: the look at the key's trust in `verify`.
#[test]
fn f6_test_keys_are_refused() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(5u64));
    let (vk, proof) = (&bench.keys.verifying, cheater.finish());
    assert_eq!(verify(vk, &cheater.public, &proof), Err(VerifyError::TestKeys));
    assert_eq!(verify_with_test_keys(vk, &cheater.public, &proof), Ok(()));
    // Whatever the bytes: nobody learns whether a forgery was good.
    assert_eq!(verify(vk, &[], b""), Err(VerifyError::TestKeys));
    // Keys of a real setup are accepted by both.
    let code = Square(Rule::First);
    let keys = setup(&code, &bench.engine, &SetupOptions::new("square")).unwrap();
    let input = honest();
    let circuit = PreparedCircuit::with_input(&code, &input).unwrap();
    let run = prove_prepared(&circuit, &keys, &bench.engine, &ProveOptions::new()).unwrap();
    assert_eq!(verify(&keys.verifying, &input, run.proof.as_bytes()), Ok(()));
    assert_eq!(verify_with_test_keys(&keys.verifying, &input, run.proof.as_bytes()), Ok(()));
}

/// A step whose output may be in no constraint.
struct Step {
    /// `true` if the constraints contain the output.
    constrained: bool,
    /// `true` if the layout declares that they need not.
    exempt: bool,
}

impl Circuit for Step {
    type Input = Fr;
    type Plan = [WireId; 2];
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<[WireId; 2], LayoutError> {
        let kind = layout.subcircuit_type("step", 2);
        if self.exempt {
            layout.unconstrained(kind, 1);
        }
        let wires = [layout.public_input("x", 0), layout.public_output("y", 0)];
        let instance = layout.instance(kind);
        layout.read(instance, 0, wires[0]);
        layout.write(instance, 1, wires[1]);
        Ok(wires)
    }

    fn execute(
        &self,
        wires: &[WireId; 2],
        x: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        values.set(wires[0], *x);
        values.set(wires[1], x.square());
        Ok(())
    }

    fn private_input(
        &self,
        _: &[WireId; 2],
        _: &Fr,
        (): &(),
        _: InstanceId,
    ) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(
        &self,
        _: &[WireId; 2],
        subcircuit: &Subcircuit,
        _: Option<&()>,
    ) -> Result<(), SynthesisError> {
        let x = subcircuit.slot(0)?;
        let square = x * x;
        if self.constrained { square.enforce_equal(subcircuit.slot(1)?) } else { Ok(()) }
    }
}

/// A slot in no constraint of the author is the prover's choice: setup, `count` and `check` refuse
/// it with its number and the name of its wire, unless the layout declares it. Guards: the look at
/// unconstrained slots in `PreparedCircuit::r1cs`. Control: with the declaration, any output is
/// proven.
#[test]
fn slots_in_no_constraint_are_refused() {
    let options = SetupOptions::new("step").insecure_seed(1);
    let expected = "slot 1 ('y[0]') of type 'step'";
    let forgotten = Step { constrained: false, exempt: false };
    let input = Fr::from(3u64);
    match setup(&forgotten, &crate::LocalEngine::new(None).unwrap(), &options).unwrap_err() {
        SetupError::Synthesize(error @ SynthesizeError::UnconstrainedSlot { .. }) => {
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        other => panic!("{other}"),
    }
    for error in [count(&forgotten).unwrap_err(), check(&forgotten, &input, |_, _| {}).unwrap_err()]
    {
        assert!(
            matches!(&error, CheckError::Type(SynthesizeError::UnconstrainedSlot { .. })),
            "{error}"
        );
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    for (constrained, exempt) in [(true, false), (true, true), (false, true)] {
        let circuit = Step { constrained, exempt };
        assert!(count(&circuit).is_ok() && check(&circuit, &input, |_, _| {}).is_ok());
        let bench = Bench::new(circuit, true);
        let mut cheater = Cheater::new(&bench, &input);
        assert_eq!(bench.verify(&cheater.public, &cheater.finish()), Ok(()));
        cheater.values[0][1] = Fr::from(12345u64);
        cheater.public[1] = Fr::from(12345u64);
        let verdict = bench.verify(&cheater.public, &cheater.finish());
        assert_eq!(verdict.is_ok(), !constrained, "the control must accept");
        let (key, z) = (&bench.keys.types[0], cheater.witness(0, &cheater_challenges()));
        let proven =
            crate::mirage::prove(key, &z, &Fr::ONE, &cheater.blinding(0), WitnessCheck::Check);
        assert_eq!(proven.is_ok(), !constrained);
    }
    // A slot that does not exist cannot be exempt.
    let mut layout = hekaton_circuit::Layout::builder();
    let kind = layout.subcircuit_type("step", 1);
    layout.unconstrained(kind, 1);
    let error = LayoutError::NoSlotToExempt { type_name: "step".into(), slots: 1, slot: 1 };
    assert_eq!(layout.build().unwrap_err(), error);
}

/// Challenges off all poles.
fn cheater_challenges() -> hekaton_circuit::MemoryChallenges {
    hekaton_circuit::MemoryChallenges::new(Fr::from(123_456_789u64), Fr::from(987_654_321u64))
}
