//! Mistakes that authors make, and the messages that report them: each used to be silent, late or
//! unclear.

use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use hekaton_circuit::{
    CheckOptions, CheckReport, Closures, Fr, InstanceId, LayoutBuilder, PreparedCircuit,
    Subcircuit, WireId, WireValues, check_with, count, fit,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// A circuit of closures, of which a test replaces one.
type Steps = Closures<Vec<u64>>;

/// Two steps of y = x^2: x public, y public.
fn right() -> Steps {
    Closures::new(
        |layout| {
            let kind = layout.subcircuit_type("step", 2);
            let wires =
                [layout.public_input("x", 0), layout.wire("mid", 0), layout.public_output("y", 0)];
            for pair in wires.windows(2) {
                let instance = layout.instance(kind);
                layout.read(instance, 0, pair[0]);
                layout.write(instance, 1, pair[1]);
            }
            Ok(wires.to_vec())
        },
        |wires, values| {
            wires.iter().zip([3u64, 9, 81]).for_each(|(wire, x)| values.set(*wire, Fr::from(x)));
            Ok(())
        },
        |_| Ok(vec![5]),
        |s, _| {
            let x = s.slot(0)?;
            x.mul_equals(x, s.slot(1)?)
        },
    )
}

fn report(steps: &Steps, unique: bool) -> Result<CheckReport, String> {
    let circuit = PreparedCircuit::with_input(steps, &()).map_err(|e| format!("layout: {e}"))?;
    let options = CheckOptions::new().unique(unique);
    check_with(&circuit, &options, &mut |_, _| {}).map_err(|e| e.to_string())
}

/// Asserts that `check` reports a mistake in a text that contains all of `expected`.
#[track_caller]
fn says(steps: Steps, expected: &[&str]) {
    let error = report(&steps, false).expect_err("the mistake is found");
    assert!(expected.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn the_right_circuit_has_no_finding() {
    let report = report(&right(), true).unwrap();
    assert!(report.violations.is_empty() && report.notices.is_empty());
    let [step] = &report.unique[..] else { panic!("one verdict for one type") };
    assert_eq!((step.verdicts.outputs, &step.verdicts.free[..]), (1, &[][..]));
    assert_eq!((&step.verdicts.undecided[..], &step.without_effect[..]), (&[][..], &[][..]));
}

/// An output that is never tied to its slot was proven and verified.
#[test]
fn forgotten_equalities() {
    let forgotten = right().synthesize(|s, _| {
        let x = s.slot(0)?;
        let _ = x * x;
        Ok(())
    });
    assert!(count(&forgotten).unwrap_err().to_string().contains("slot 1"));
    says(forgotten, &["slot 1 ('mid[0]') of type 'step' is in no constraint of synthesize"]);
}

/// A witness with the slot's value is not the slot: the slot is constrained, but only by a row that
/// holds for any value.
#[test]
fn witnesses_in_place_of_slots() {
    let copied = right().synthesize(|s, _| {
        let (x, y) = (s.slot(0)?, s.slot(1)?);
        let copy = FpVar::new_witness(s.cs(), || y.value())?;
        let _ = y * &copy;
        let square = x * x;
        let free = FpVar::new_witness(s.cs(), || square.value())?;
        square.enforce_equal(&free)
    });
    assert_eq!(report(&copied, false).unwrap().violated, 0);
    let found = report(&copied, true).unwrap().unique.remove(0);
    let output = &found.verdicts.free[0];
    assert_eq!((output.name.as_str(), output.is_output), ("slot 1 ('mid[0]')", true));
    assert_ne!(output.value, output.other);
    assert_eq!(found.without_effect, ["slot 0 ('x[0]')"]);
}

/// A value that a subcircuit chooses is free, unless it is marked as private input.
#[test]
fn private_inputs_are_given() {
    let with = |marked: bool| {
        right().synthesize(move |s, _| {
            let (x, y) = (s.slot(0)?, s.slot(1)?);
            let chosen = || FpVar::new_witness(s.cs(), || Ok(y.value()? - x.value()?));
            let chosen = if marked { Subcircuit::given(&s.cs(), chosen)? } else { chosen()? };
            (x + &chosen).enforce_equal(y)
        })
    };
    let free = report(&with(false), true).unwrap().unique.remove(0);
    assert_eq!((free.private_inputs, free.verdicts.free_counts()), (0, [1, 1]));
    let given = report(&with(true), true).unwrap().unique.remove(0);
    assert_eq!((given.private_inputs, given.verdicts.free_counts()), (1, [0, 0]));
    assert_eq!(given.verdicts.undecided, []);
}

/// Constraints that depend on a value, on private inputs, or on how often they were made.
#[test]
fn constraints_that_are_not_the_types() {
    let on_private = right().synthesize(|s, private| {
        let x = s.slot(0)?;
        for _ in 0..private.map_or(1, Vec::len) + usize::from(private.is_some()) {
            (x * x).enforce_equal(s.slot(1)?)?;
        }
        Ok(())
    });
    says(on_private, &["instance 0 (type 'step')", "other constraints", "the first constraint"]);
    let on_value = right().synthesize(|s, private| {
        let x = s.slot(0)?;
        let factor = FpVar::constant(Fr::from(private.map_or(1, |p| p[0])));
        (x * x).enforce_equal(s.slot(1)?)?;
        (x * &factor).enforce_equal(&(x * &factor))?;
        (x * x * &factor).enforce_equal(&(s.slot(1)? * &factor))
    });
    says(on_value, &["instance 0", "must not depend on values"]);
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let on_calls = right().synthesize(|s, _| {
        let x = s.slot(0)?;
        (x * x).enforce_equal(s.slot(1)?)?;
        let factor = Fr::from(CALLS.fetch_add(1, Ordering::SeqCst));
        (x * factor * x).enforce_equal(&(s.slot(1)? * factor))
    });
    says(on_calls, &["how often synthesize was called"]);
}

/// Panics used to end the process without an instance or a type.
#[test]
fn panics_are_named() {
    says(right().layout(|_| panic!("no layout")), &["layout panicked: no layout"]);
    says(right().execute(|_, _| panic!("no values")), &["execute panicked: no values"]);
    says(
        right().private_input(|i| panic!("no private input for {}", i.index())),
        &["instance 0 (type 'step')", "private_input panicked: no private input for 0"],
    );
    says(
        right().synthesize(|_, _| panic!("no constraints")),
        &["type 'step'", "synthesize panicked: no constraints"],
    );
}

#[test]
fn slots_that_do_not_exist() {
    let beyond = right().synthesize(|s, _| s.slot(2)?.enforce_equal(s.slot(0)?));
    says(beyond, &["type 'step' has 2 slots, but synthesize asked for slot 2"]);
}

/// At setup nothing has a value; `check` finds it before setup does.
#[test]
fn values_at_setup() {
    let asks = right().synthesize(|s, _| {
        let y = FpVar::constant(s.slot(0)?.value()?);
        y.enforce_equal(s.slot(1)?)
    });
    says(asks, &["asked for the value of a variable", "closures of `new_witness`"]);
}

/// A violation shows the values of the row and of its wires.
#[test]
fn violations_have_values() {
    let wrong = right().execute(|wires, values| {
        wires.iter().zip([3u64, 9, 80]).for_each(|(wire, x)| values.set(*wire, Fr::from(x)));
        Ok(())
    });
    let report = report(&wrong, false).unwrap();
    let text = report.violations[0].to_string();
    assert!(text.contains("instance 1 (type 'step')") && text.contains("mid[0] = 9"), "{text}");
    assert!(text.contains("y[0] = 80") && text.contains("9 * 9 is not 80"), "{text}");
}

#[test]
fn layouts_name_the_mistake() {
    let twice = |layout: &mut LayoutBuilder| {
        layout.subcircuit_type("step", 2);
        layout.subcircuit_type("step", 2);
        Ok(Vec::new())
    };
    says(right().layout(twice), &["the layout already has a subcircuit type 'step'"]);
    let foreign = |layout: &mut LayoutBuilder| {
        let kind = layout.subcircuit_type("step", 2);
        layout.instance(kind);
        layout.unused(InstanceId::from_index(7), 0);
        Ok(Vec::new())
    };
    says(right().layout(foreign), &["instance 7 is not in this layout"]);
    let same_name = |layout: &mut LayoutBuilder| {
        let kind = layout.subcircuit_type("step", 2);
        let wires = [layout.public_input("x", 0), layout.public_output("x", 0)];
        let instance = layout.instance(kind);
        layout.read(instance, 0, wires[0]);
        layout.write(instance, 1, wires[1]);
        Ok(wires.to_vec())
    };
    says(right().layout(same_name), &["two public wires are named x[0]"]);
    let bracket = |layout: &mut LayoutBuilder| {
        let kind = layout.subcircuit_type("step", 2);
        let wires = [layout.public_input("x[0]", 0), layout.public_output("y", 0)];
        let instance = layout.instance(kind);
        layout.read(instance, 0, wires[0]);
        layout.write(instance, 1, wires[1]);
        Ok(wires.to_vec())
    };
    says(right().layout(bracket), &["'x[0]' cannot name a public wire"]);
    says(right().layout(|_| Err("3 is not even".into())), &["3 is not even"]);
}

/// Allowed, but probably not meant.
#[test]
fn notices() {
    let layout = |layout: &mut LayoutBuilder| {
        let kind = layout.subcircuit_type("step", 2);
        layout.subcircuit_type("tail", 1);
        let wire = layout.wire("x", 0);
        let first = layout.instance(kind);
        layout.write(first, 1, wire);
        layout.unused(first, 0);
        let second = layout.instance(kind);
        layout.read(second, 0, wire);
        layout.unused(second, 1);
        Ok(vec![wire])
    };
    let steps = right().layout(layout).execute(|wires, values| {
        values.set(wires[0], Fr::from(0u64));
        Ok(())
    });
    let report = report(&steps, false).unwrap();
    let notices: Vec<String> = report.notices.iter().map(ToString::to_string).collect();
    let has = |part: &str| notices.iter().any(|notice| notice.contains(part));
    assert!(has("nothing is public"), "{notices:?}");
    assert!(has("type 'tail' has no instances"), "{notices:?}");
    assert!(has("slot 0") && has("is unused in instance 0, but constraint"), "{notices:?}");
    let own = |layout: &mut LayoutBuilder| {
        let kind = layout.subcircuit_type("step", 2);
        let wire = layout.public_output("y", 0);
        let instance = layout.instance(kind);
        layout.read(instance, 0, wire);
        layout.write(instance, 1, wire);
        Ok(vec![wire])
    };
    let execute = |wires: &[WireId], values: &mut WireValues| {
        values.set(wires[0], Fr::from(1u64));
        Ok(())
    };
    let report = self::report(&right().layout(own).execute(execute), false).unwrap();
    assert!(report.notices[0].to_string().contains("reads wire y[0], which it writes itself"));
}

/// A constant is in the key, so `execute` cannot set it to something else.
#[test]
fn constants_are_fixed() {
    let layout = |layout: &mut LayoutBuilder| {
        let kind = layout.subcircuit_type("step", 2);
        let wires = [layout.constant(Fr::from(3u64)), layout.public_output("y", 0)];
        let instance = layout.instance(kind);
        layout.read(instance, 0, wires[0]);
        layout.write(instance, 1, wires[1]);
        Ok(wires.to_vec())
    };
    let nine = |wires: &[WireId], values: &mut WireValues| {
        values.set(wires[1], Fr::from(9u64));
        Ok(())
    };
    let found = report(&right().layout(layout).execute(nine), false).unwrap();
    assert_eq!((found.violated, found.public_values), (0, vec![Fr::from(9u64)]));
    let wrong = |wires: &[WireId], values: &mut WireValues| {
        values.set(wires[0], Fr::from(4u64));
        values.set(wires[1], Fr::from(16u64));
        Ok(())
    };
    says(right().layout(layout).execute(wrong), &["another value than the layout's constant"]);
}

/// Sizes come with masks and with the domain that they fill.
#[test]
fn sizes_have_a_domain() {
    let size = &count(&right()).unwrap()[0];
    assert_eq!((size.constraints, size.with_masks, size.domain, size.instances), (4, 6, 6, 2));
    assert_eq!(size.filled(), 1.0);
}

/// The largest number of steps per subcircuit whose type fits a domain.
#[test]
fn sizes_that_fit_a_domain() {
    // A type of k multiplications has two rows for its slots, two for masks, and 2 k of its own.
    let circuit = |k: usize| {
        right().synthesize(move |s, _| {
            let (x, y) = (s.slot(0)?, s.slot(1)?);
            (0..k).try_for_each(|_| {
                let square = FpVar::new_witness(s.cs(), || y.value())?;
                x.mul_equals(x, &square)?;
                square.mul_equals(&FpVar::one(), y)
            })
        })
    };
    let masked = |k| count(&circuit(k)).unwrap()[0].with_masks;
    for domain in [8, 48, 64, 96] {
        let k = fit(domain, circuit).unwrap().unwrap();
        assert!(masked(k) <= domain && masked(k + 1) > domain, "{k} for {domain}");
    }
    assert_eq!(fit(4, circuit).unwrap(), None);
    // What fails at every size is an error and not a size.
    let error = fit(64, |_| right().synthesize(|_, _| Ok(()))).unwrap_err();
    assert!(error.to_string().contains("is in no constraint"), "{error}");
}
