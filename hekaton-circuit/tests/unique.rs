//! Verdicts on subcircuits: what is given, and what entries of buses tie.

use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    CheckOptions, Closures, Fr, InstanceVerdicts, Layout, LayoutBuilder, Notice, PreparedCircuit,
    Subcircuit, Table, TableId, WireId, check_with,
};

type Circuit = Closures<Vec<u64>>;

/// A circuit with one instance of two slots, of which 0 is the public input 5 and 1 is the public output.
fn circuit(
    declare: impl Fn(&mut LayoutBuilder) + Send + Sync + 'static,
    output: u64,
    synthesize: impl Fn(&Subcircuit, Option<Fr>) -> Result<(), SynthesisError> + Send + Sync + 'static,
) -> Circuit {
    Closures::new(
        move |layout| {
            declare(layout);
            let kind = layout.subcircuit_type("step", 2);
            let wires = [layout.public_input("x", 0), layout.public_output("y", 0)];
            let instance = layout.instance(kind);
            layout.read(instance, 0, wires[0]);
            layout.write(instance, 1, wires[1]);
            Ok(wires.to_vec())
        },
        move |wires: &[WireId], values| {
            wires.iter().zip([5, output]).for_each(|(wire, x)| values.set(*wire, Fr::from(x)));
            Ok(())
        },
        |_| Ok(vec![7]),
        move |s, private| synthesize(s, private.map(|private| Fr::from(private[0]))),
    )
}

fn ask(circuit: &Circuit) -> (Vec<InstanceVerdicts>, Vec<Notice>) {
    let prepared = PreparedCircuit::with_input(circuit, &()).unwrap();
    let options = CheckOptions::new().unique(true).every(true);
    let report = check_with(&prepared, &options, &mut |_, _| {}).unwrap();
    assert_eq!((report.violated, report.unbalanced), (0, vec![]));
    (report.unique, report.notices)
}

/// The numbers of free and of undecided outputs.
fn outputs(circuit: &Circuit) -> [usize; 2] {
    let (found, _) = ask(circuit);
    let count = |of: fn(&InstanceVerdicts) -> usize| {
        // The rows of tables are instances, too.
        found.iter().filter(|found| found.kind == "step").map(of).sum()
    };
    [
        count(|found| found.verdicts.free_counts()[0]),
        count(|found| found.verdicts.undecided_counts()[0]),
    ]
}

fn value_of(value: Option<Fr>) -> Result<Fr, SynthesisError> {
    value.ok_or(SynthesisError::AssignmentMissing)
}

/// A constraint on the input, which ties nothing else.
fn mention(s: &Subcircuit) -> Result<(), SynthesisError> {
    let _ = s.slot(0)? * s.slot(0)?;
    Ok(())
}

/// The squares of small numbers.
fn squares() -> Table {
    Table::pairs((0..16_u64).map(|i| (Fr::from(i), Fr::from(i * i))))
}

/// The number of the first table of a layout.
fn first_table() -> TableId {
    Layout::builder().table("squares", squares())
}

/// The value of a look-up follows from its key, also where the slots themselves are in the entry.
#[test]
fn look_ups_follow_from_their_keys() {
    let declare = |layout: &mut LayoutBuilder| {
        layout.table("squares", squares());
    };
    let looked_up = circuit(declare, 25, |s, _| {
        s.table(first_table())?.look_up(s.slot(0)?)?.enforce_equal(s.slot(1)?)
    });
    let in_entry =
        circuit(declare, 25, |s, _| s.table(first_table())?.pair(s.slot(0)?, s.slot(1)?));
    for circuit in [looked_up, in_entry] {
        assert_eq!(outputs(&circuit), [0, 0]);
        assert!(ask(&circuit).0.iter().all(|found| found.without_effect.is_empty()));
    }
    // The key is the prover's choice, and so is the value: nothing here shows which others are in the table.
    let chosen = circuit(declare, 49, |s, key| {
        let key = s.commit(|| value_of(key))?;
        s.table(first_table())?.look_up(&key)?.enforce_equal(s.slot(1)?)?;
        mention(s)
    });
    assert_eq!(outputs(&chosen), [0, 1]);
}

/// A range bounds a value and does not determine it.
#[test]
fn a_range_is_not_a_value() {
    let range = |layout: &mut LayoutBuilder| {
        layout.range(8);
    };
    let hint = circuit(range, 7, |s, hint| {
        let hint = FpVar::new_witness(s.cs(), || value_of(hint))?;
        s.range_check(8, &s.mark(&hint)?)?;
        hint.enforce_equal(s.slot(1)?)?;
        mention(s)
    });
    assert_eq!(outputs(&hint), [1, 0]);
    // Two digits of 8 bits of the input are determined, and the output is the lower one.
    let digits = circuit(range, 5, |s, _| {
        let input = s.slot(0)?;
        let low = s.commit(|| input.value())?;
        let high = s.commit(|| Ok(Fr::from(0_u64)))?;
        s.range_check(8, &low)?;
        s.range_check(8, &high)?;
        (&low + &high * Fr::from(256_u64)).enforce_equal(input)?;
        low.enforce_equal(s.slot(1)?)
    });
    assert_eq!(outputs(&digits), [0, 0]);
}

/// A committed value that nothing ties is not given, unless it is marked as private input.
#[test]
fn committed_values_are_not_given() {
    let bus = |layout: &mut LayoutBuilder| {
        layout.bus("b");
    };
    let with = |marked: bool| {
        circuit(bus, 7, move |s, value| {
            let commit = || s.commit(|| value_of(value));
            let value = if marked { Subcircuit::given(&s.cs(), commit)? } else { commit()? };
            value.enforce_equal(s.slot(1)?)?;
            mention(s)
        })
    };
    assert_eq!(outputs(&with(false)), [1, 0]);
    assert_eq!(outputs(&with(true)), [0, 0]);
    assert_eq!(ask(&with(true)).0[0].private_inputs, 1);
}

/// A copy of slot 0 in slot 1, in as many instances as there are pairs of wires.
fn copies(pairs: &'static [[Option<usize>; 2]], value: u64) -> Circuit {
    Closures::new(
        move |layout| {
            let kind = layout.subcircuit_type("step", 2);
            let wires = vec![layout.public_output("y", 0), layout.public_output("z", 0)];
            for [read, written] in pairs {
                let instance = layout.instance(kind);
                match read {
                    Some(read) => layout.read(instance, 0, wires[*read]),
                    None => layout.unused(instance, 0),
                }
                layout.write(instance, 1, wires[written.unwrap()]);
            }
            Ok(wires)
        },
        move |wires: &[WireId], values| {
            wires.iter().for_each(|wire| values.set(*wire, Fr::from(value)));
            Ok(())
        },
        |_| Ok(vec![]),
        |s, _| s.slot(0)?.enforce_equal(s.slot(1)?),
    )
}

/// Nothing ties the value of a slot without a wire, nor that of a wire that a subcircuit reads and writes.
#[test]
fn slots_without_a_source_are_not_given() {
    assert_eq!(outputs(&copies(&[[None, Some(0)], [Some(0), Some(1)]], 0)), [1, 0]);
    assert_eq!(outputs(&copies(&[[Some(0), Some(0)], [Some(0), Some(1)]], 7)), [0, 1]);
}

/// Each subcircuit of a cycle determines what it writes, and the cycle determines nothing: a notice says so.
#[test]
fn cycles_are_noticed() {
    let (found, notices) = ask(&copies(&[[Some(1), Some(0)], [Some(0), Some(1)]], 7));
    assert!(found.iter().all(|found| found.verdicts.free.is_empty()));
    let text: Vec<String> = notices.iter().map(ToString::to_string).collect();
    assert!(text[0].contains("2 subcircuits read what follows from what they write"), "{text:?}");
    let (_, notices) = ask(&copies(&[[None, Some(1)], [Some(1), Some(0)]], 0));
    assert!(notices.iter().all(|notice| !matches!(notice, Notice::Cycle { .. })), "{notices:?}");
}
