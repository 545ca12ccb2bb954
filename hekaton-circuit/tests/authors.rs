//! Mistakes in circuits of parts that `check` finds before setup or a prover does, and what it says about them.

use hekaton_circuit::prelude::*;
use hekaton_circuit::{
    CheckError, CheckReport, NotDeterministic, Ram, RamId, Table, TableId, check, count,
};
use std::collections::HashMap;
use std::sync::Mutex;

/// A circuit of one function.
struct Wired<F>(F);

impl<F: Fn(&mut Wires<u64>) -> Result<(), LayoutError> + Send + Sync + 'static> WiredCircuit
    for Wired<F>
{
    type Input = u64;

    fn wire(&self, c: &mut Wires<u64>) -> Result<(), LayoutError> {
        (self.0)(c)
    }
}

fn checked<C: WiredCircuit<Input = u64>>(circuit: &C) -> Result<CheckReport, CheckError> {
    check(circuit, &3, |_, _| {})
}

/// Asserts that `check` refuses a circuit with a text that contains all of `expected`.
#[track_caller]
fn refused<C: WiredCircuit<Input = u64>>(circuit: &C, expected: &[&str]) -> CheckError {
    let error = checked(circuit).expect_err("the mistake is found");
    let text = error.to_string();
    assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    assert!(!text.contains("  ") || text.contains("\n   "), "{text}");
    error
}

/// The constraints of a part of one slot.
type Rule = fn(&Cs, &Var, Option<&u64>) -> Synthesized;

/// A part of a written slot y, which is the private input, and of constraints that a test chooses.
#[derive(Clone)]
struct Free {
    table: TableId,
    rule: Rule,
}

impl PartialEq for Free {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table
    }
}

impl Part for Free {
    const NAME: &'static str = "free";
    type Reads<W: Leaf> = ();
    type Writes<W: Leaf> = W;
    type Private = u64;

    fn run(&self, (): &(), private: &u64) -> Result<Fr, CircuitError> {
        Ok(Fr::from(*private))
    }

    fn synthesize(&self, cs: Cs, (): &(), y: &Var, private: Option<&u64>) -> Synthesized {
        (self.rule)(&cs, y, private)
    }
}

fn free(rule: Rule) -> impl WiredCircuit<Input = u64> {
    Wired(move |c: &mut Wires<u64>| {
        let table = c.table("small", Table::range(4));
        let y = c.add_with(&Free { table, rule }, (), |input| Ok(*input));
        c.output("y", y);
        Ok(())
    })
}

/// A range check of a witness that is not marked, and a marked value in no constraint: setup refused both, and `check`
/// passed them.
#[test]
fn check_refuses_what_setup_refuses() {
    let unmarked = free(|cs, y, private| {
        let x = Var::new_witness(cs.clone(), || {
            private.map(|x| Fr::from(*x)).ok_or(SynthesisError::AssignmentMissing)
        })?;
        Subcircuit::of(cs)?.range_check(4, &x)?;
        x.enforce_equal(y)
    });
    let expected = ["bus entry 0", "its key has own variable 0, which is not committed: mark it"];
    let error = refused(&unmarked, &expected);
    assert!(matches!(error, CheckError::Unsound(_)) && error.is_refusal());
    assert_eq!(count(&unmarked).unwrap_err().to_string(), error.to_string());
    let unbound = free(|cs, y, private| {
        let subcircuit = Subcircuit::of(cs)?;
        let _ = subcircuit
            .commit(|| private.map(|x| Fr::from(*x)).ok_or(SynthesisError::AssignmentMissing))?;
        subcircuit.range_check(4, y)
    });
    let error = refused(&unbound, &["type 'free': the commitment does not bind marked value 0"]);
    assert!(matches!(error, CheckError::Unsound(_)));
}

/// A cell that is read twice and written once, of which the constraints make only some accesses.
#[derive(Clone, PartialEq)]
struct Reader {
    ram: RamId,
    declared: usize,
    made: usize,
}

impl Part for Reader {
    const NAME: &'static str = "reader";
    type Reads<W: Leaf> = ();
    type Writes<W: Leaf> = W;
    type Private = ();

    fn accesses(&self) -> Vec<(RamId, usize)> {
        vec![(self.ram, self.declared)]
    }

    fn run_in(&self, memory: &mut Memory<'_>, (): &(), (): &()) -> Result<Fr, CircuitError> {
        (0..self.made).try_fold(Fr::from(0u64), |_, _| memory.read(self.ram, 1))
    }

    fn synthesize(&self, cs: Cs, (): &(), y: &Var, _: Option<&()>) -> Synthesized {
        let subcircuit = Subcircuit::of(&cs)?;
        let ram = subcircuit.ram(self.ram)?;
        let one = subcircuit.commit(|| Ok(Fr::from(1u64)))?;
        one.enforce_equal(&Var::Constant(Fr::from(1u64)))?;
        (0..self.made).try_for_each(|_| ram.read(&one)?.enforce_equal(y))
    }
}

#[test]
fn declared_accesses_are_made() {
    let reader = |declared, made| {
        Wired(move |c: &mut Wires<u64>| {
            let ram = c.ram("cells", Ram::dense(0..4));
            let y = c.add(&Reader { ram, declared, made }, ());
            c.output("y", y);
            Ok(())
        })
    };
    let expected = "type 'reader': the layout declares 3 accesses of each subcircuit to RAM 'cells', \
                    but synthesize makes 0: make them, or declare none";
    refused(&reader(3, 0), &[expected]);
    refused(&reader(2, 3), &["RAM 'cells'", "access 2"]);
    for made in [2, 3] {
        assert!(checked(&reader(3, made)).unwrap().violations.is_empty());
    }
}

/// y = x^power, with a `PartialEq` that is the author's.
#[derive(Clone)]
struct Power {
    power: u32,
    compared: bool,
}

impl PartialEq for Power {
    fn eq(&self, other: &Self) -> bool {
        !self.compared || self.power == other.power
    }
}

impl Part for Power {
    const NAME: &'static str = "power";
    type Reads<W: Leaf> = W;
    type Writes<W: Leaf> = W;
    type Private = ();

    fn name(&self) -> String {
        if self.compared { format!("power-{}", self.power) } else { Self::NAME.to_owned() }
    }

    fn run(&self, x: &Fr, (): &()) -> Result<Fr, CircuitError> {
        Ok((1..self.power).fold(*x, |power, _| power * x))
    }

    fn synthesize(&self, _: Cs, x: &Var, y: &Var, _: Option<&()>) -> Synthesized {
        (1..self.power).fold(x.clone(), |power, _| power * x).enforce_equal(y)
    }
}

const TWO: Power = Power { power: 2, compared: true };

fn powers(list: &'static [u32], compared: bool) -> impl WiredCircuit<Input = u64> {
    Wired(move |c: &mut Wires<u64>| {
        let mut x = c.public_input("x", 0, |x| Ok(Fr::from(*x)));
        for power in list {
            x = c.add(&Power { power: *power, compared }, x);
        }
        c.output("y", x);
        Ok(())
    })
}

/// The first part's constraints and values were used for both, so x^8 was proven for x^16.
#[test]
fn equal_parts_have_equal_constraints() {
    let expected = [
        "instance 2 was added with a part that is equal to that of type 'power'",
        "the first constraint that differs is 3, counted from 0",
        "`PartialEq` must compare all fields",
    ];
    let error = refused(&powers(&[4, 4, 8], false), &expected);
    assert!(matches!(error, CheckError::EqualParts { instance: 2, .. }) && error.is_refusal());
    let power = Fr::from(3u64.pow(32));
    for (list, compared) in [(&[4, 8][..], true), (&[2, 2, 2, 2, 2][..], false)] {
        let report = checked(&powers(list, compared)).unwrap();
        assert_eq!((report.violated, report.public_values[1]), (0, power));
    }
}

/// A wire that is kept from the first call is the wire of the same number in the second, which may be another one.
#[test]
fn wires_of_other_calls_are_refused() {
    let kept: Mutex<Option<Wire>> = Mutex::new(None);
    let wired = Wired(move |c: &mut Wires<u64>| {
        let x = c.public_input("x", 0, |x| Ok(Fr::from(*x)));
        let x = *kept.lock().unwrap().get_or_insert(x);
        let y = c.add(&Power { power: 2, compared: true }, x);
        c.output("y", y);
        Ok(())
    });
    assert!(count(&wired).is_ok(), "the first call makes the wire");
    let expected =
        "a wire that instance 0 (type 'power-2') reads was made by another call of `wire`";
    assert!(count(&wired).unwrap_err().to_string().contains(expected));
    refused(&wired, &[expected]);
}

#[test]
fn the_second_layout_is_the_first() {
    let calls = |change: fn(&mut Wires<u64>, Wire, usize) -> Wire| {
        let calls = Mutex::new(0);
        Wired(move |c: &mut Wires<u64>| {
            let mut calls = calls.lock().unwrap();
            *calls += 1;
            let call: usize = *calls;
            let x = c.public_input("x", 0, |x| Ok(Fr::from(*x)));
            let y = change(c, x, call);
            c.output("y", y);
            Ok(())
        })
    };
    let expected = ["the layout differs from call to call:", "not in the order of a HashMap"];
    let more = calls(|c, x, call| (0..call).fold(x, |x, _| c.add(&TWO, x)));
    refused(&more, &[expected[0], "1 instances, then 2", expected[1]]);
    let types = calls(|c, x, call| {
        let part = |power| Power { power, compared: true };
        let first = c.add(&part(2 + u32::from(call == 2)), x);
        c.add(&part(2), first)
    });
    refused(&types, &["type 0 is 'power-2' with 2 slots, then 'power-3' with 2 slots"]);
    let wires = calls(|c, x, call| {
        let first = c.add(&TWO, x);
        let second = c.add(&TWO, x);
        let chosen = if call == 1 { first } else { second };
        c.output_at("z", 1, if call == 1 { second } else { first });
        c.add(&TWO, chosen)
    });
    refused(&wires, &["instance 0 (type 'power-2'), slot 1 is the writer of wire"]);
    let constants = calls(|c, x, call| {
        let one = c.constant(call as u64);
        let _ = c.add(&TWO, one);
        c.add(&TWO, x)
    });
    refused(&constants, &["its public wires, constants, parameters or buses"]);
}

/// Values in the order of a map: the prover called it a hardware fault, and `check` a dependence on challenges.
#[test]
fn chance_is_not_a_dependence_on_challenges() {
    let chance = free(|cs, y, private| {
        let subcircuit = Subcircuit::of(cs)?;
        let map: HashMap<u64, ()> = (0..15).map(|key| (key, ())).collect();
        for key in map.keys() {
            let value = subcircuit.commit(|| Ok(Fr::from(*private.map_or(key, |_| key))))?;
            subcircuit.range_check(4, &value)?;
        }
        subcircuit.range_check(4, y)
    });
    let expected = [
        "instance 0 (type 'free') is not deterministic: two calls with the same input made different \
         values of marked value ",
        "the order of a HashMap",
    ];
    let error = refused(&chance, &expected);
    assert!(matches!(error, CheckError::NotDeterministic(NotDeterministic { instance: 0, .. })));
    let challenge = free(|cs, y, _| {
        let subcircuit = Subcircuit::of(cs)?;
        // The value of the challenge g, which no gadget would look at.
        let value = subcircuit.commit(|| Ok(cs.instance_assignment()?[1]))?;
        value.mul_equals(&value, y)?;
        subcircuit.range_check(4, y)
    });
    refused(&challenge, &["marked value 0", "depends on a challenge; it is committed to before"]);
}

/// A constraint of a helper, so that a message has two functions of the author to name.
#[inline(never)]
fn square(cs: &Cs, x: &Var, y: &Var) -> Synthesized {
    // A call at the end of a function may replace it, and then the function is not running.
    let made = x.mul_equals(x, y);
    std::hint::black_box((cs, &made));
    made
}

/// y = x^2, with a wrong value.
#[derive(Clone, PartialEq)]
struct Wrong;

impl Part for Wrong {
    const NAME: &'static str = "wrong";
    type Reads<W: Leaf> = W;
    type Writes<W: Leaf> = W;
    type Private = ();

    fn run(&self, x: &Fr, (): &()) -> Result<Fr, CircuitError> {
        Ok(x + x)
    }

    #[inline(never)]
    fn synthesize(&self, cs: Cs, x: &Var, y: &Var, _: Option<&()>) -> Synthesized {
        x.mul_equals(&Var::one(), x)?;
        let made = square(&cs, x, y);
        std::hint::black_box(&made);
        made
    }
}

/// The first constraint of an author had the number of the slots of its type and more, and its place was a file of
/// arkworks.
#[test]
fn constraints_have_numbers_and_places_of_the_author() {
    for has_bus in [false, true] {
        let wrong = Wired(move |c: &mut Wires<u64>| {
            if has_bus {
                c.range(2);
            }
            let x = c.public_input("x", 0, |x| Ok(Fr::from(*x)));
            let y = c.add(&Wrong, x);
            c.output("y", y);
            Ok(())
        });
        let report = checked(&wrong).unwrap();
        let violation = &report.violations[0];
        assert_eq!((report.violated, violation.constraint), (1, Some(1)));
        assert_eq!(violation.row, 6, "after the sum, two slots and two masks");
        let text = violation.to_string();
        assert!(text.contains("instance 0 (type 'wrong'), constraint 1, shared wires"), "{text}");
        let place: Vec<&str> = violation.label.lines().collect();
        for (place, function) in place.iter().zip(["square (", "synthesize ("]) {
            assert!(place.starts_with("   in ") && place.contains(function), "{text}");
            assert!(place.contains("tests/authors.rs:"), "{text}");
        }
        assert_eq!(place[2..], ["   in gadget mul_equals"], "{text}");
    }
}

/// Failures name the last constraint before them, and requests the function that made them.
#[test]
fn failures_have_places() {
    let after = free(|cs, y, _| {
        square(cs, y, y)?;
        Var::new_witness(cs.clone(), || Err::<Fr, _>(SynthesisError::AssignmentMissing))?
            .enforce_equal(y)
    });
    refused(
        &after,
        &[
            "instance 0: synthesis of type 'free' failed",
            "it failed after its constraint 0:\n   in square (",
        ],
    );
    let at_setup = free(|cs, y, _| {
        square(cs, y, y)?;
        Var::new_constant(cs.clone(), y.value()?)?.enforce_equal(y)
    });
    let expected = "`new_variable`; it failed after its constraint 0:\n   in square (";
    refused(&at_setup, &["asked for the value of a variable", expected]);
    let first = free(|_, y, _| y.value().map(drop));
    refused(&first, &["`new_variable`; it failed before its first constraint"]);
    let missing = free(|cs, y, _| ask(cs, y));
    let expected = "the layout has no range of 5 bits: declare it with range(5) (asked in ask (";
    refused(&missing, &[expected]);
}

#[inline(never)]
fn ask(cs: &Cs, y: &Var) -> Synthesized {
    let made = Subcircuit::of(cs)?.range_check(5, y);
    std::hint::black_box(&made);
    made
}
