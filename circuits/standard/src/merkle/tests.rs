use super::hash::join_halves;
use super::*;
use crate::sha256::digest_halves;
use ark_ff::Field;
use hekaton_circuit::ark::relations::gr1cs::SynthesisError;
use hekaton_circuit::named::{InputFile, NamedCircuit, create, create_family};
use hekaton_circuit::parts::{PartInput, WiredPlan};
use hekaton_circuit::{
    CheckOptions, Circuit, InstanceId, Layout, LayoutBuilder, PreparedCircuit, Subcircuit,
    WireValues, check, check_with, count,
};
use sha2::{Digest as _, Sha256};

fn file(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// An independent implementation of the definition, written from the documentation without any of
/// the circuit's code.
fn reference_root(file: &[u8], leaf_bytes: usize, iterations: usize) -> Vec<u8> {
    let h = |parts: &[&[u8]]| Sha256::digest(parts.concat()).to_vec();
    let mut data = file.to_vec();
    let leaves = file.len().div_ceil(leaf_bytes).max(1);
    data.resize(leaves * leaf_bytes, 0);
    let mut level: Vec<Vec<u8>> = data.chunks(leaf_bytes).map(|leaf| h(&[leaf, &[0]])).collect();
    for _ in 1..iterations {
        level = level.iter().map(|d| h(&[d, &[4]])).collect();
    }
    let mut tag = 1u8;
    while level.len() > 2 {
        level = level
            .chunks(2)
            .map(|p| h(&[&p[0], p.get(1).unwrap_or(&vec![0; 32]), &[tag]]))
            .collect();
        tag = 2;
    }
    let zero = vec![0; 32];
    h(&[&level[0], level.get(1).unwrap_or(&zero), &(file.len() as u64).to_be_bytes(), &[3]])
}

/// All values follow from what a subcircuit reads and from the bits of its private input, whose number is part of the type.
#[test]
fn values_follow_from_the_private_input() {
    let circuit = Merkle::for_length(50, 20);
    let file = file(50);
    let prepared = PreparedCircuit::with_input(&circuit, &file).unwrap();
    let options = CheckOptions::new().unique(true).every(true);
    let report = check_with(&prepared, &options, &mut |_, _| {}).unwrap();
    assert_eq!(report.unique.len(), report.instances);
    for found in report.unique {
        let bits = match found.kind.as_str() {
            // The bytes of the leaf, and the length of the file.
            "leaf" => 8 * 20,
            "root" => 64,
            _ => 0,
        };
        let (verdicts, kind) = (&found.verdicts, &found.kind);
        assert_eq!(found.private_inputs, bits, "{kind}");
        assert_eq!((&verdicts.free[..], &verdicts.undecided[..]), (&[][..], &[][..]), "{kind}");
    }
}

#[test]
fn roots_follow_the_definition() {
    for (len, leaf_bytes, iterations) in [
        (0, 10, 1),
        (1, 10, 1),
        (20, 10, 3),
        (21, 10, 1),
        (55, 10, 1),
        (170, 10, 2),
        (1234, 100, 1),
    ] {
        let file = file(len);
        let circuit = Merkle { iterations, ..Merkle::for_length(len, leaf_bytes) };
        assert_eq!(
            circuit.root(&file).unwrap().to_vec(),
            reference_root(&file, leaf_bytes, iterations),
            "{len} bytes"
        );
    }
    // trailing zeros are not lost
    let (short, long) = (vec![1u8; 15], [vec![1u8; 15], vec![0]].concat());
    let circuit = Merkle::for_length(15, 10);
    assert_ne!(circuit.root(&short).unwrap(), circuit.root(&long).unwrap());
}

#[test]
fn constraints_hold_and_yield_the_root() {
    for (leaves, leaf_bytes, iterations, extra_wires) in
        [(1, 8, 1, 0), (2, 8, 2, 0), (3, 20, 1, 2), (5, 54, 1, 0)]
    {
        let file = file(leaves * leaf_bytes - 3);
        let circuit = Merkle { leaves, leaf_bytes, iterations, extra_wires };
        let report = check(&circuit, &file, |_, _| {}).unwrap();
        assert_eq!(report.violations, vec![]);
        assert_eq!(report.instances, circuit.nodes().len() + 1);
        let root = hex::encode(circuit.root(&file).unwrap());
        assert_eq!(Merkle::show(&report.public_values), Some(root));
    }
}

/// Pins the number of constraints per type without masks: the memory check, the rows of the digests
/// and SHA-256.
#[test]
fn constraint_counts_are_pinned() {
    // a tree of 5 leaves has all types
    let circuit = Merkle { leaves: 5, leaf_bytes: 54, iterations: 1, extra_wires: 0 };
    let constraints = |circuit: &Merkle| -> Vec<(String, usize)> {
        count(circuit).unwrap().into_iter().map(|size| (size.name, size.constraints)).collect()
    };
    let found = constraints(&circuit);
    let pairs: Vec<(&str, usize)> = found.iter().map(|(n, c)| (n.as_str(), *c)).collect();
    let expected = [
        ("leaf", 26_390),
        ("first-parent", 45_805),
        ("inner-parent", 45_805),
        ("root", 52_111),
        ("padding", 7),
    ];
    assert_eq!(pairs, expected);
    // an extra wire adds one row where it is written and one where it is read
    let more = Merkle { extra_wires: 10, ..circuit };
    for ((name, base), (_, with)) in found.iter().zip(constraints(&more)) {
        assert_eq!(with, base + 20, "{name}");
    }
    // an additional iteration is an additional block
    let twice = Merkle { iterations: 2, ..circuit };
    assert_eq!(constraints(&twice)[0].1 - found[0].1, 25_468);
}

/// A family leaves the number of leaves open, and has room for the largest file.
#[test]
fn families_serve_all_lengths() {
    let map = |pairs: &[(&str, u64)]| -> serde_json::Map<String, serde_json::Value> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
    };
    for (bytes, instances) in [(0, 3), (20, 3), (41, 7), (100, 12), (101, 13), (20_000, 2002)] {
        let (family, shared) = create_family::<Merkle>(&map(&[("leaf-bytes", 20)]), bytes).unwrap();
        assert_eq!((family.instances, family.open), (instances, &["leaves"][..]), "{bytes}");
        assert_eq!(shared, map(&[("leaf-bytes", 20), ("iterations", 1), ("extra-wires", 0)]));
        assert_eq!(PreparedCircuit::new(&family.circuit).unwrap().layout().type_ids().count(), 5);
        for length in [0, bytes / 2, bytes] {
            let circuit = Merkle::for_length(length as usize, 20);
            assert_eq!(circuit.nodes().len() + 1, circuit.instances());
            assert!(circuit.instances() <= family.instances, "{length} of {bytes}");
        }
    }
    let refusal =
        |pairs: &[_], bytes| create_family::<Merkle>(&map(pairs), bytes).unwrap_err().to_string();
    assert!(refusal(&[("leaves", 3)], 100).contains("leave it out"));
    assert!(refusal(&[("leaf-bytes", 1)], 1 << 25).contains("leaves"));
    assert!(refusal(&[("leafs", 1)], 1).contains("no parameter 'leafs'"));
    let error = create_family::<crate::Chain>(&map(&[]), 100).unwrap_err().to_string();
    assert!(error.contains("so it has no key family"), "{error}");
}

#[test]
fn another_length_is_refused() {
    let circuit = Merkle::for_length(100, 10);
    let error = circuit.root(&file(101)).unwrap_err().to_string();
    assert!(error.contains("11 leaves") && error.contains("for 10 leaves"), "{error}");
}

#[test]
fn roots_as_text() {
    let digest = Merkle::for_length(3, 10).root(b"abc").unwrap();
    let text = hex::encode(digest);
    let read = |text: &str| Merkle::read(text).unwrap();
    assert_eq!(Merkle::show(&read(&text).unwrap()), Some(text.clone()));
    assert!(read(&text[1..]).is_err());
    assert!(read("xyz").is_err());
}

/// A prover that lies to the gadgets: the inner circuit with a manipulated private input for one
/// instance, or with manipulated shared wires.
struct Lying<L, W> {
    inner: Merkle,
    instance: usize,
    private: L,
    wires: W,
}

impl<L, W> Circuit for Lying<L, W>
where
    L: Fn(PartInput) -> PartInput + Sync,
    W: Fn(&mut WireValues) + Sync,
{
    type Input = [u8];
    type Plan = WiredPlan<[u8]>;
    type Trace = ();
    type Private = PartInput;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<WiredPlan<[u8]>, LayoutError> {
        self.inner.layout(layout)
    }

    fn execute(
        &self,
        plan: &WiredPlan<[u8]>,
        file: &[u8],
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        self.inner.execute(plan, file, values)?;
        (self.wires)(values);
        Ok(())
    }

    fn private_input(
        &self,
        plan: &WiredPlan<[u8]>,
        file: &[u8],
        trace: &(),
        instance: InstanceId,
    ) -> Result<PartInput, CircuitError> {
        let private = self.inner.private_input(plan, file, trace, instance)?;
        let lies = instance.index() == self.instance;
        Ok(if lies { (self.private)(private) } else { private })
    }

    fn synthesize(
        &self,
        plan: &WiredPlan<[u8]>,
        subcircuit: &Subcircuit,
        private: Option<&PartInput>,
    ) -> Result<(), SynthesisError> {
        self.inner.synthesize(plan, subcircuit, private)
    }
}

/// The layout of a circuit.
fn layout_of(circuit: &Merkle) -> Layout {
    PreparedCircuit::new(circuit).unwrap().layout().clone()
}

/// A leaf with other contents.
fn leaf(change: impl Fn(&mut LeafBytes)) -> impl Fn(PartInput) -> PartInput {
    move |private| {
        let mut leaf = private.decode().unwrap();
        change(&mut leaf);
        PartInput::encode(&leaf).unwrap()
    }
}

/// A wrong leaf, child or length violates a constraint, and `check` names the instance, type,
/// constraint, label and wires.
#[test]
fn lies_are_found_and_named() {
    let file = file(90);
    let inner = Merkle::for_length(90, 20);
    let violations = |circuit: &dyn Fn() -> hekaton_circuit::CheckReport| {
        let report = circuit();
        assert_eq!(report.violated, report.violations.len());
        report.violations
    };
    let private = |instance, private: &(dyn Fn(PartInput) -> PartInput + Sync)| {
        let list = violations(&|| {
            let wires = |_: &mut WireValues| {};
            check(&Lying { inner, instance, private, wires }, &file, |_, _| {}).unwrap()
        });
        assert!(list.iter().all(|v| v.instance == instance), "only instance {instance} lies");
        list[0].clone()
    };
    let names = |v: &hekaton_circuit::Violation| {
        v.wires.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>()
    };
    // 5 leaves, 3 first parents, 2 inner parents, the root
    let bytes = private(2, &leaf(|leaf| leaf.bytes[0] ^= 1));
    assert_eq!((bytes.instance, bytes.kind.as_str()), (2, "leaf"));
    assert_eq!(names(&bytes), ["digest[4]"]);
    let [a, b, c] = bytes.sides;
    assert_ne!(a * b, c, "the values of the sides show why");
    let length = private(10, &|_| PartInput::encode(&91u64).unwrap());
    assert_eq!((length.instance, length.kind.as_str()), (10, "root"));
    assert_eq!(names(&length), ["bytes of the last leaf[0]", "constant[0]"]);
    assert!(length.to_string().contains("instance 10 (type 'root'), constraint"));
    assert!(length.to_string().contains("bytes of the last leaf[0] = 10"), "{length}");
    // a leaf that claims to have fewer or more bytes than it has
    for filling in
        [private(4, &leaf(|leaf| leaf.used -= 1)), private(4, &leaf(|leaf| leaf.used += 1))]
    {
        assert_eq!((filling.instance, filling.kind.as_str()), (4, "leaf"));
        assert!(filling.label.contains("enforce_filling"), "{}", filling.label);
    }
    // another digest of a child: neither the child nor its parent agrees
    let digest = layout_of(&inner).wire("digest", 5).unwrap();
    let list = violations(&|| {
        let wires = |values: &mut WireValues| {
            let value = values.get(digest).unwrap() + Fr::ONE;
            values.set(digest, value);
        };
        let circuit = Lying { inner, instance: 0, private: |private| private, wires };
        check(&circuit, &file, |_, _| {}).unwrap()
    });
    let mut instances: Vec<usize> = list.iter().map(|v| v.instance).collect();
    instances.dedup();
    assert_eq!(instances, [2, 6]);
    assert_eq!(names(&list[0]), ["digest[5]"]);
}

#[test]
fn parameters_are_bounded_together() {
    let with = |leaves: u64, leaf_bytes: u64, iterations: u64, extra: u64| {
        let pairs = [
            ("leaves", leaves),
            ("leaf-bytes", leaf_bytes),
            ("iterations", iterations),
            ("extra-wires", extra),
        ];
        let map = pairs.into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
        create::<Merkle>(&map, None).map(|(circuit, _)| circuit)
    };
    assert!(with(10, 512, 1, 0).is_ok());
    assert!(with(0, 512, 1, 0).is_err());
    assert!(with(1 << 24, 512, 1, 1 << 16).is_err());
    assert!(with(1, 1 << 18, 1 << 12, 0).is_err());
    let none = Merkle { leaves: 1, leaf_bytes: 0, iterations: 1, extra_wires: 0 };
    assert!(PreparedCircuit::new(&none).is_err());
}

/// Missing parameters come from the defaults and from the file.
#[test]
fn parameters_are_completed() {
    let input = InputFile::from_bytes(file(1025));
    let (circuit, all) = create::<Merkle>(&serde_json::Map::new(), Some(&input)).unwrap();
    assert_eq!(circuit, Merkle::for_length(1025, 512));
    assert_eq!(
        serde_json::to_string(&all).unwrap(),
        r#"{"extra-wires":0,"iterations":1,"leaf-bytes":512,"leaves":3}"#
    );
    let error = create::<Merkle>(&serde_json::Map::new(), None).unwrap_err().to_string();
    assert!(error.contains("needs the parameter 'leaves'"), "{error}");
    let wrong = [("leaves".to_owned(), "many".into())].into_iter().collect();
    let error = create::<Merkle>(&wrong, None).unwrap_err().to_string();
    assert!(error.contains("invalid type: string \"many\""), "{error}");
    let unknown = [("leafs".to_owned(), 3.into())].into_iter().collect();
    let error = create::<Merkle>(&unknown, None).unwrap_err().to_string();
    assert!(error.contains("has no parameter 'leafs'"), "{error}");
}

/// Layouts do not change by accident: keys depend on them.
#[test]
fn layouts_are_pinned() {
    for (leaves, leaf_bytes, extra_wires, expected) in [
        (1, 8, 0, "90cd37e99e3f6a9c8e13c2633d42f774159894714716c884edd796fbf09f3000"),
        (2, 8, 0, "fb9f9152e1cf2343875360ab02725255140335e43c0049ada10a8fc1d6dfc6fd"),
        (3, 20, 2, "8d47518dbbbeb8675846e77872a3f1abda81a84ec4a8785738d8320854cefe0d"),
        (5, 54, 0, "824c60b8b122fc212584ef2d87226faac74dc485947a7bd1eaeb5a0359cbac5c"),
        (6, 8, 3, "733745a0381385295c30abb73b78a73b421cd128f896389438ff261cc4374517"),
        (11, 20, 1, "d613334daaa714db77f006cabe26e28b4dd54691d2e494acb4e6946b0fcd0e15"),
    ] {
        let circuit = Merkle { leaves, leaf_bytes, iterations: 1, extra_wires };
        assert_eq!(crate::layout_digest_of_format_1(&circuit), expected, "{leaves} leaves");
    }
}

/// A range is executed from the leaves below it, and has the values of the whole.
#[test]
fn a_range_needs_only_what_is_below_it() {
    let file = file(155);
    let circuit = Merkle { extra_wires: 0, ..Merkle::for_length(155, 20) };
    let prepared = PreparedCircuit::with_input(&circuit, &file[..]).unwrap();
    let (layout, whole) = (prepared.layout(), prepared.execute().unwrap());
    // 8 leaves, 4 first parents, 2 inner parents, the root, the padding
    for range in [0..8, 3..4, 8..9, 12..13, 14..16, 0..16] {
        let part = prepared.execute_range(range.clone()).unwrap();
        for i in range.clone() {
            let id = InstanceId::from_index(i as u32);
            assert_eq!(part.values.slots(layout, id), whole.values.slots(layout, id), "{i}");
        }
        let known = layout.wire_ids().filter(|wire| part.values.get(*wire).is_some()).count();
        match range {
            // two halves of the digest, and what follows from the input
            _ if range == (3..4) => assert!(known <= 4, "{known}"),
            // a first parent and its two leaves
            _ if range == (8..9) => assert!(known <= 8, "{known}"),
            _ => {}
        }
    }
}

/// A prover that makes up the length: all hashes are correct for 100 bytes of data, but the length
/// in the root is wrong. Only the padding of the last leaf and the sum of the leaves' bytes
/// prevent it.
#[test]
fn made_up_lengths_are_refused() {
    let inner = Merkle::for_length(100, 20);
    let layout = layout_of(&inner);
    let wire = |name, index| layout.wire(name, index).unwrap();
    // 5 leaves, 3 first parents, 2 inner parents: the children of the root are nodes 8 and 9
    let violations = |file: &[u8], made_up: u64| {
        let values = PreparedCircuit::with_input(&inner, file).unwrap().execute().unwrap().values;
        let digest =
            |node: u64| [0, 1].map(|half| values.get(wire("digest", 2 * node + half)).unwrap());
        let [left, right] = [8, 9].map(|node| join_halves(&digest(node)).unwrap());
        let root = digest_halves(&node_digest(NodeKind::Root, &left, &right, Some(made_up)));
        let wires = |values: &mut WireValues| {
            (0..2).for_each(|half| values.set(wire("root", half), root[half as usize]));
            let rest = Fr::from(made_up) - Fr::from(inner.before_last());
            values.set(wire("bytes of the last leaf", 0), rest);
        };
        // The root hashes the made-up length, and the last leaf claims the bytes that fit it.
        let lie = |instance| {
            let private = move |private: PartInput| match instance {
                10 => PartInput::encode(&made_up).unwrap(),
                _ => leaf(|leaf| leaf.used = (made_up as usize).saturating_sub(80))(private),
            };
            check(&Lying { inner, instance, private, wires }, file, |_, _| {}).unwrap()
        };
        let in_instance = |instance| {
            lie(instance).violations.into_iter().any(|violation| violation.instance == instance)
        };
        (in_instance(10), in_instance(4))
    };
    let file: Vec<u8> = (1..=100).collect();
    assert_eq!(violations(&file, 100), (false, false));
    for length in [90, 79, 101, 0, u64::MAX] {
        let (root, last_leaf) = violations(&file, length);
        assert!(!root, "the root itself is consistent with {length}");
        assert!(last_leaf, "{length}");
    }
    // an empty last leaf is refused by the root: a file of 80 bytes has one leaf less
    assert_eq!(violations(&file, 80), (true, true));
    let zeros: Vec<u8> = (1..=80).chain(std::iter::repeat_n(0, 20)).collect();
    assert_eq!(violations(&zeros, 81), (false, false));
    assert_eq!(violations(&zeros, 80), (true, false));
}

/// The types are the same for files of every length: one setup serves all of them.
#[test]
fn types_do_not_depend_on_the_number_of_leaves() {
    let types = |leaves| {
        let circuit = Merkle { leaves, leaf_bytes: 20, iterations: 2, extra_wires: 1 };
        let prepared = PreparedCircuit::new(&circuit).unwrap();
        let digest = |kind| {
            let r1cs = prepared.r1cs(kind, hekaton_circuit::Masking::Masked).unwrap();
            (r1cs.name.clone(), r1cs.digest())
        };
        prepared.layout().type_ids().map(digest).collect::<std::collections::BTreeMap<_, _>>()
    };
    let all = types(5);
    assert_eq!(all.len(), 5);
    for (leaves, count) in [(1, 3), (2, 3), (3, 4), (4, 4), (6, 5), (9, 5)] {
        let found = types(leaves);
        assert_eq!(found.len(), count, "{leaves} leaves");
        assert!(found.iter().all(|(name, digest)| all[name] == *digest), "{leaves} leaves");
    }
}
