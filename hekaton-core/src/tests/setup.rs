//! Adversarial tests 6, 11, 20d and 29: what setup refuses.

use super::bench::{Squares, squares};
use crate::keys::AggregationKey;
use crate::mirage::{TypeError, check_secrets, check_type_with};
use crate::protocol::{Secrets, SetupError, SetupOptions, setup, setup_wiring};
use crate::verifier::verifying_key::VerifyingKey;
use ark_ff::{Field, Zero};
use hekaton_arith::Fr;
use hekaton_circuit::prover::{Matrices, VariableLayout, VariablePartition, Wiring, check_rank};
use hekaton_circuit::{
    Circuit, InstanceId, Layout, LayoutBuilder, LayoutError, Masking, PreparedCircuit, PublicWire,
    R1cs, SlotAccess, WireName, Writer,
};

/// The part of a setup that checks wiring and secrets.
fn setup_without_types(
    wiring: &Wiring,
    secrets: &Secrets,
    options: &SetupOptions,
) -> Result<(AggregationKey, VerifyingKey), SetupError> {
    setup_wiring(wiring, std::iter::empty(), secrets, options, &mut |_, _| Ok(()), &mut |_| {})
}

fn r1cs() -> R1cs {
    let circuit = Squares::new(&[0]);
    let circuit = PreparedCircuit::new(&circuit).unwrap();
    let kind = circuit.layout().type_ids().next().unwrap();
    circuit.r1cs(kind, Masking::Masked).unwrap()
}

/// Adversarial test 6: a wiring with a zero-sum proper subset, two writers, and every other pattern
/// that is not a star.
#[test]
fn a06_multiplicities_that_are_no_star() {
    let bench = squares();
    let good = bench.wiring.clone();
    assert_eq!(good.check_stars(), Ok(()));
    let address = good.slots[1].address;
    let refuse = |change: &dyn Fn(&mut Wiring), why: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = bad.check_stars().unwrap_err();
        assert!(error.to_string().contains(why), "{error} should contain {why}");
        // and setup refuses it
        let options = SetupOptions::new("test").insecure_seed(1);
        let secrets = Secrets::draw(2, Some(1)).unwrap();
        let result = setup_without_types(&bad, &secrets, &options);
        assert!(matches!(result, Err(SetupError::Star(_))));
    };
    // w_1 has 4 readers. With two writers of 2 each, the proper subset {w, r, r} sums to zero.
    refuse(&|w| w.slots[2] = SlotAccess::write(address, 2), "two writers");
    refuse(&|w| w.slots[1].multiplicity += 1, "readers");
    refuse(&|w| w.slots[1].multiplicity = 1 << 32, "2^32");
    refuse(&|w| w.slots[1] = SlotAccess::UNUSED, "readers without a writer");
    refuse(&|w| w.slots[2] = SlotAccess::write(0, 1), "unused slot");
    // adversarial test 20d: a reader with another multiplicity in addition to those with -1
    refuse(&|w| w.slots[2] = SlotAccess::write(address, -2), "neither -1 nor positive");
    // The verifier is a writer like any other.
    let writer = PublicWire { address, multiplicity: 1, name: "w".into(), index: 1 };
    refuse(&|w| w.public.push(writer.clone()), "two writers");
    refuse(&|w| w.public[0].multiplicity = 5, "readers");
}

/// The same at the layout, with the names of wire and instances.
#[test]
fn layout_errors_name_wire_and_instances() {
    let build = |f: &dyn Fn(&mut LayoutBuilder)| {
        let mut layout = Layout::builder();
        f(&mut layout);
        layout.build().map(|_| ()).unwrap_err()
    };
    let error = build(&|l| {
        let t = l.subcircuit_type("t", 2);
        let (a, b, w) = (l.instance(t), l.instance(t), l.wire("w", 7));
        l.write(a, 0, w);
        l.write(b, 1, w);
        l.read(b, 0, w);
    });
    let two = LayoutError::TwoWriters {
        wire: WireName("w", 7),
        first: Writer::Instance(0),
        second: Writer::Instance(1),
    };
    assert_eq!(error, two);
    assert_eq!(error.to_string(), "wire w[7] has two writers: instance 0 and instance 1");
    let error = build(&|l| {
        let t = l.subcircuit_type("t", 1);
        let (a, w) = (l.instance(t), l.public_input("x", 0));
        l.write(a, 0, w);
    });
    assert_eq!(
        error.to_string(),
        "wire x[0] has two writers: the verifier (public input) and instance 0"
    );
    let error = build(&|l| {
        let t = l.subcircuit_type("t", 1);
        let (a, w) = (l.instance(t), l.wire("w", 0));
        l.read(a, 0, w);
    });
    assert_eq!(error, LayoutError::NoWriter { wire: WireName("w", 0), reader: 0 });
    let error = build(&|l| {
        let t = l.subcircuit_type("t", 1);
        let (a, w) = (l.instance(t), l.wire("w", 0));
        l.write(a, 0, w);
    });
    assert_eq!(
        error,
        LayoutError::NoReader { wire: WireName("w", 0), writer: Writer::Instance(0) }
    );
    let error = build(&|l| {
        let t = l.subcircuit_type("t", 1);
        let (a, w, v) = (l.instance(t), l.public_input("w", 0), l.public_input("v", 0));
        l.read(a, 0, w);
        l.read(a, 0, v);
    });
    assert!(matches!(error, LayoutError::SlotTwice { instance: 0, slot: 0, .. }));
    let error = build(&|l| {
        let t = l.subcircuit_type("t", 1);
        let (a, w) = (l.instance(t), l.public_input("w", 0));
        l.read(a, 1, w);
    });
    assert!(matches!(error, LayoutError::NoSuchSlot { slots: 1, slot: 1, .. }));
    let error = build(&|l| {
        let t = l.subcircuit_type("t", 2);
        let (_, a, w) = (l.instance(t), l.instance(t), l.public_input("w", 0));
        (0..2).for_each(|slot| l.unused(InstanceId::from_index(0), slot));
        l.read(a, 0, w);
    });
    assert_eq!(error, LayoutError::EmptySlot { instance: 1, type_name: "t".into(), slot: 1 });
    let error = build(&|l| {
        let t = l.subcircuit_type("t", 1);
        let (a, w) = (l.instance(t), l.public_input("w", 0));
        l.read(a, 0, w);
        l.unused(a, 0);
    });
    assert!(matches!(error, LayoutError::SlotTwice { .. }));
    assert_eq!(build(&|_| {}), LayoutError::Empty);
    // Ids of another layout, in every function that takes one (AUDIT nit 1). Otherwise a call would
    // have no effect, and the layout would have fewer connections than its author wrote.
    let mut larger = Layout::builder();
    let kinds = [larger.subcircuit_type("t", 1), larger.subcircuit_type("u", 1)];
    let instances = kinds.map(|kind| larger.instance(kind));
    let wires = [larger.public_input("w", 0), larger.public_input("w", 1)];
    type Call<'a> = &'a dyn Fn(&mut LayoutBuilder);
    let calls: [(&str, Call<'_>); 7] = [
        ("instance", &|l| l.read(instances[1], 0, wires[0])),
        ("instance", &|l| l.write(instances[1], 0, wires[0])),
        ("instance", &|l| l.unused(instances[1], 0)),
        ("wire", &|l| l.read(instances[0], 0, wires[1])),
        ("wire", &|l| l.write(instances[0], 0, wires[1])),
        ("type", &|l| {
            l.instance(kinds[1]);
        }),
        ("type", &|l| l.unconstrained(kinds[1], 0)),
    ];
    for (what, call) in calls {
        let complete = |call: &dyn Fn(&mut LayoutBuilder)| {
            let mut layout = Layout::builder();
            let t = layout.subcircuit_type("t", 1);
            let (a, w) = (layout.instance(t), layout.public_input("w", 0));
            call(&mut layout);
            layout.read(a, 0, w);
            layout.build()
        };
        assert!(complete(&|_| {}).is_ok());
        let error = complete(call).unwrap_err();
        assert_eq!(error, LayoutError::Foreign { what, index: 1 });
        assert!(error.to_string().starts_with(&format!("{what} 1 is not in this layout")));
    }
    // A type without instances is left out, so that it costs no key.
    let mut layout = Layout::builder();
    layout.subcircuit_type("u", 0);
    let t = layout.subcircuit_type("t", 0);
    layout.instance(t);
    let layout = layout.build().unwrap();
    assert_eq!(layout.types_without_instances().collect::<Vec<_>>(), ["u"]);
    assert_eq!(layout.type_ids().collect::<Vec<_>>(), [t]);
    let wiring = layout.wiring(Masking::Masked);
    assert_eq!((wiring.types.len(), wiring.types[0].name.as_str()), (1, "t"));
    assert_eq!(wiring.type_of, [0]);
    for bad in ["", "a/b", "..", "A", "t"] {
        let error = build(&|l| {
            let t = l.subcircuit_type("t", 0);
            l.instance(t);
            l.subcircuit_type(bad, 0);
        });
        let expected = match bad {
            "t" => LayoutError::DuplicateType(bad.into()),
            _ => LayoutError::TypeName(bad.into()),
        };
        assert_eq!(error, expected);
    }
    let error = build(&|l| {
        let t = l.subcircuit_type("t", 0);
        l.instance(t);
        l.wire("w", 3);
    });
    assert_eq!(error, LayoutError::UnusedWire(WireName("w", 3)));
}

/// The rows of A, B and C, written out.
type Lists = [Vec<Vec<(Fr, usize)>>; 3];

/// An R1CS with other matrices.
fn with_rows(r1cs: &R1cs, [a, b, c]: Lists) -> R1cs {
    R1cs { matrices: Matrices::new([&a, &b, &c]).unwrap(), ..r1cs.clone() }
}

/// Adversarial test 11: a committed wire in no constraint; two equal committed columns; one a
/// combination of two others.
#[test]
fn a11_unbound_committed_wires() {
    let good = r1cs();
    assert_eq!(check_type_with(&good, &[]), Ok(()));
    let v = good.layout.committed().start;
    // Without their fingerprint rows the wires are bound only by what the author wrote.
    let bare = |rows: Vec<Vec<(Fr, usize)>>| {
        let empty = vec![vec![]; rows.len()];
        with_rows(&good, [rows, empty.clone(), empty])
    };
    let one = Fr::ONE;
    let two = Fr::from(2u64);
    let rank = |r1cs: &R1cs| check_rank(r1cs);
    let independent: Vec<Vec<(Fr, usize)>> = (0..5).map(|j| vec![(one, v + j)]).collect();
    assert_eq!(rank(&bare(independent.clone())), Ok(()));
    // wire 4 in no constraint
    assert!(matches!(rank(&bare(independent[..4].to_vec())), Err(TypeError::Rank { slot: 4, .. })));
    // equal columns
    let mut equal = independent.clone();
    equal[3].push((one, v + 4));
    equal[4] = vec![];
    assert!(matches!(rank(&bare(equal)), Err(TypeError::Rank { slot: 4, .. })));
    // column 2 = column 0 + 2 column 1, and none of them has an entry of its own
    let dependent = vec![
        vec![(one, v), (one, v + 2)],
        vec![(one, v + 1), (two, v + 2)],
        vec![(one, v + 3)],
        vec![(one, v + 4)],
    ];
    assert!(matches!(rank(&bare(dependent.clone())), Err(TypeError::Rank { slot: 2, .. })));
    // the same shape with full rank
    let mut full = dependent;
    full.push(vec![(one, v), (one, v + 1), (one, v + 2)]);
    assert_eq!(rank(&bare(full)), Ok(()));
    // An entry whose coefficients cancel does not count.
    let mut cancelled = independent;
    cancelled[0] = vec![(one, v), (-one, v)];
    assert!(matches!(rank(&bare(cancelled)), Err(TypeError::Rank { slot: 0, .. })));
}

/// The rows of the memory check and the places where e and the preprocessed wires may occur.
#[test]
fn rows_of_the_memory_check() {
    let good = r1cs();
    let layout = good.layout;
    let (e, v, last) = (layout.sum(), layout.committed().start, good.constraints() - 1);
    let refuse = |change: &dyn Fn(&mut Lists)| {
        let mut bad = good.matrices.to_rows();
        change(&mut bad);
        check_type_with(&with_rows(&good, bad), &[]).unwrap_err()
    };
    let one = Fr::ONE;
    assert!(matches!(refuse(&|r| r[2][0].push((one, 0))), TypeError::Row { row: 0, .. }));
    assert!(matches!(
        refuse(&|r| {
            r[0][0].pop();
        }),
        TypeError::Row { row: 0, .. }
    ));
    assert!(matches!(refuse(&|r| r[0][0][0].0 = Fr::from(2u64)), TypeError::Row { row: 0, .. }));
    assert!(matches!(refuse(&|r| r[0][2].push((one, v))), TypeError::Row { row: 2, .. }));
    assert!(matches!(refuse(&|r| r[1][1][0].1 += 1), TypeError::Row { row: 1, .. }));
    assert!(matches!(refuse(&|r| r[2][3] = vec![]), TypeError::Row { row: 3, .. }));
    // The fingerprint on the side of A, as it was once.
    let turned = |[a, b, _]: &mut Lists| {
        std::mem::swap(&mut a[1], &mut b[1]);
    };
    assert!(matches!(refuse(&turned), TypeError::Row { row: 1, .. }));
    // e in another row, in each matrix; and a preprocessed wire in an author's row
    for m in 0..3 {
        assert!(matches!(
            refuse(&|r| r[m][last].push((one, e))),
            TypeError::ReservedWire { wire: "the sum e", .. }
        ));
        // g, x, mu, masks, u
        let masks = layout.masks();
        let u = layout.inverses();
        let mu = layout.multiplicities().end - 1;
        for wire in [
            layout.g(),
            layout.addresses().start,
            mu,
            masks.start,
            masks.end - 1,
            u.start,
            u.end - 1,
        ] {
            assert!(matches!(
                refuse(&|r| r[m][last].push((one, wire))),
                TypeError::ReservedWire { .. }
            ));
        }
    }
    // Row 0 is required even without shared wires.
    let empty = R1cs {
        name: "t".into(),
        layout: VariableLayout::new(0, Masking::Unmasked),
        variables: 3,
        matrices: Matrices::new([&[], &[], &[]]).unwrap(),
    };
    assert!(matches!(check_type_with(&empty, &[]), Err(TypeError::Row { row: 0, .. })));
}

/// Adversarial test 29: setup asked to share a delta or an eta, with a zero secret, or with e in
/// the L query.
#[test]
fn a29_shared_secrets_and_e_in_the_l_query() {
    let x = |i: u64| Fr::from(i);
    let shared = [x(2), x(3), x(4)];
    assert_eq!(check_secrets(&shared, &[x(10), x(11), x(12), x(13)], x(14)), Ok(()));
    for bad in [
        [x(10), x(11), x(10), x(13)],
        [x(10), x(11), x(12), x(11)],
        [x(10), x(10), x(12), x(13)],
        [x(14), x(11), x(12), x(13)],
    ] {
        assert!(matches!(check_secrets(&shared, &bad, x(14)), Err(TypeError::Secrets(_))));
    }
    assert!(check_secrets(&[x(2), Fr::zero()], &[x(10), x(11)], x(14)).is_err());
    assert!(check_secrets(&shared, &[x(10), Fr::zero()], x(14)).is_err());
    assert!(check_secrets(&shared, &[x(10), x(11)], Fr::zero()).is_err());

    // The complete setup refuses them as well.
    let bench = squares();
    let options = SetupOptions::new("test").insecure_seed(1);
    let run = |secrets: &Secrets| setup_without_types(&bench.wiring, secrets, &options);
    let mut secrets = Secrets::draw(2, Some(1)).unwrap();
    secrets.types[1].delta = secrets.types[0].delta;
    assert!(matches!(run(&secrets), Err(SetupError::Type(TypeError::Secrets(_)))));
    let mut secrets = Secrets::draw(2, Some(1)).unwrap();
    secrets.types[1].eta = secrets.types[0].delta;
    assert!(matches!(run(&secrets), Err(SetupError::Type(TypeError::Secrets(_)))));

    let good = r1cs();
    let mut parts = VariablePartition::new(&good);
    assert_eq!(parts.check("t", good.variables), Ok(()));
    parts.aux = parts.e..good.variables;
    assert_eq!(
        parts.check("t", good.variables),
        Err(TypeError::Partition { kind: "t".into(), variable: good.layout.sum(), parts: 2 })
    );
    parts.aux = parts.e + 2..good.variables;
    assert!(matches!(parts.check("t", good.variables), Err(TypeError::Partition { parts: 0, .. })));
}

/// A mistake of an author that would shift the variables: public inputs of the circuit's own.
#[test]
fn circuits_that_leave_the_frame() {
    use ark_relations::gr1cs::SynthesisError;
    use hekaton_circuit::{CircuitError, Subcircuit, SynthesizeError, WireValues};
    struct PublicInputs;
    impl Circuit for PublicInputs {
        type Input = ();
        type Plan = ();
        type Trace = ();
        type Private = ();
        fn layout(&self, layout: &mut LayoutBuilder) -> Result<(), LayoutError> {
            let t = layout.subcircuit_type("t", 0);
            layout.instance(t);
            Ok(())
        }
        fn execute(&self, (): &(), (): &(), _: &mut WireValues) -> Result<(), CircuitError> {
            Ok(())
        }
        fn private_input(
            &self,
            (): &(),
            (): &(),
            (): &(),
            _: InstanceId,
        ) -> Result<(), CircuitError> {
            Ok(())
        }
        fn synthesize(
            &self,
            (): &(),
            s: &Subcircuit,
            _: Option<&()>,
        ) -> Result<(), SynthesisError> {
            s.cs().new_input_variable(|| Ok(Fr::ONE)).map(|_| ())
        }
    }
    let options = SetupOptions::new("test").insecure_seed(1);
    let result = setup(&PublicInputs, &crate::LocalEngine::new(None).unwrap(), &options);
    assert!(matches!(result, Err(SetupError::Synthesize(SynthesizeError::PublicInput { .. }))));
}
