use super::*;
use hekaton_circuit::check;
use hekaton_circuit::named::NamedCircuit;

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
        assert_eq!(Merkle::show(&report.public_values), circuit.hash(&file).unwrap());
    }
}

/// Pins the number of constraints per type without masks: the memory check, the rows of the digests
/// and SHA-256.
#[test]
fn constraint_counts_are_pinned() {
    // a tree of 5 leaves has all types
    let circuit = Merkle { leaves: 5, leaf_bytes: 54, iterations: 1, extra_wires: 0 };
    let constraints = |circuit: &Merkle| -> Vec<(String, usize)> {
        let layout = circuit.layout().unwrap();
        let counts = hekaton_circuit::count_constraints(circuit).unwrap();
        layout.type_ids().map(|t| layout.type_name(t).to_owned()).zip(counts).collect()
    };
    let found = constraints(&circuit);
    let pairs: Vec<(&str, usize)> = found.iter().map(|(n, c)| (n.as_str(), *c)).collect();
    let expected = [
        ("leaf", 26_391),
        ("first-parent", 45_805),
        ("inner-parent", 45_805),
        ("root", 52_109),
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
    assert_eq!(Merkle::show(&Merkle::read(&text).unwrap()), text);
    assert!(Merkle::read(&text[1..]).is_err());
    assert!(Merkle::read("xyz").is_err());
}

/// A prover that lies to the gadgets: the inner circuit with a manipulated private input for one
/// instance.
struct Lying {
    inner: Merkle,
    instance: usize,
    lie: fn(&mut Private),
}

impl Circuit for Lying {
    type Input = [u8];
    type Trace = Tree;
    type Private = Private;
    fn layout(&self) -> Result<Layout, LayoutError> {
        self.inner.layout()
    }
    fn execute(&self, file: &[u8], values: &mut WireValues) -> Result<Tree, CircuitError> {
        self.inner.execute(file, values)
    }
    fn private_input(
        &self,
        file: &[u8],
        tree: &Tree,
        instance: InstanceId,
    ) -> Result<Private, CircuitError> {
        let mut private = self.inner.private_input(file, tree, instance)?;
        if instance.index() == self.instance {
            (self.lie)(&mut private);
        }
        Ok(private)
    }
    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        private: Option<&Private>,
    ) -> Result<(), SynthesisError> {
        self.inner.synthesize(subcircuit, private)
    }
}

/// A wrong leaf, child or length violates a constraint, and `check` names the instance, type,
/// constraint, label and wires.
#[test]
fn lies_are_found_and_named() {
    use ark_relations::gr1cs::{ConstraintLayer, TracingMode};
    use tracing_subscriber::layer::SubscriberExt;
    let file = file(90);
    let inner = Merkle::for_length(90, 20);
    let violation = |instance, lie| {
        let subscriber =
            tracing_subscriber::registry().with(ConstraintLayer::new(TracingMode::OnlyConstraints));
        let report = tracing::subscriber::with_default(subscriber, || {
            check(&Lying { inner, instance, lie }, &file, |_, _| {}).unwrap()
        });
        assert_eq!(report.violations.len(), 1, "instance {instance}");
        report.violations[0].clone()
    };
    // 5 leaves, 3 first parents, 2 inner parents, the root
    let leaf = violation(2, |p| {
        if let Private::Leaf { bytes, .. } = p {
            bytes[0] ^= 1;
        }
    });
    assert_eq!((leaf.instance, leaf.kind.as_str()), (2, "leaf"));
    assert_eq!(leaf.wires.iter().map(ToString::to_string).collect::<Vec<_>>(), ["digest[4]"]);
    let child = violation(6, |p| {
        if let Private::Node { left, .. } = p {
            left[31] ^= 1;
        }
    });
    assert_eq!((child.instance, child.kind.as_str()), (6, "first-parent"));
    assert_eq!(child.wires.iter().map(ToString::to_string).collect::<Vec<_>>(), ["digest[5]"]);
    let length = violation(10, |p| {
        if let Private::Node { length, .. } = p {
            *length += 1;
        }
    });
    assert_eq!((length.instance, length.kind.as_str()), (10, "root"));
    assert_eq!(
        length.wires.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["bytes of the last leaf[0]"]
    );
    // a leaf that claims to have fewer or more bytes than it has
    for by in [-1isize, 1] {
        let filling = violation(4, if by < 0 { shorter } else { longer });
        assert_eq!((filling.instance, filling.kind.as_str()), (4, "leaf"));
        assert!(filling.label.contains("enforce_filling"), "{}", filling.label);
    }
    fn shorter(p: &mut Private) {
        if let Private::Leaf { used, .. } = p {
            *used -= 1;
        }
    }
    fn longer(p: &mut Private) {
        if let Private::Leaf { used, .. } = p {
            *used += 1;
        }
    }
    assert!(length.to_string().contains("instance 10 (type 'root'), constraint"));
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
        Merkle::with(&pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    };
    assert!(with(10, 512, 1, 0).is_ok());
    assert!(with(0, 512, 1, 0).is_err());
    assert!(with(1 << 24, 512, 1, 1 << 16).is_err());
    assert!(with(1, 1 << 18, 1 << 12, 0).is_err());
    assert!(Merkle { leaves: 1, leaf_bytes: 0, iterations: 1, extra_wires: 0 }.layout().is_err());
}

/// A prover that makes up the length: all hashes are correct for 100 bytes of data, but the length
/// in the root is wrong. Only the padding of the last leaf and the sum of the leaves' bytes
/// prevent it.
#[test]
fn made_up_lengths_are_refused() {
    struct MadeUp {
        inner: Merkle,
        length: u64,
    }
    impl Circuit for MadeUp {
        type Input = [u8];
        type Trace = Tree;
        type Private = Private;
        fn layout(&self) -> Result<Layout, LayoutError> {
            self.inner.layout()
        }
        fn execute(&self, file: &[u8], values: &mut WireValues) -> Result<Tree, CircuitError> {
            let mut tree = self.inner.execute(file, values)?;
            let (_, wires) = self.inner.build()?;
            let root = tree.nodes.len() - 1;
            let Some((left, Some(right))) = tree.nodes[root].children else {
                return Err("a root has children".into());
            };
            let message =
                [&tree.digests[left][..], &tree.digests[right], &self.length.to_be_bytes(), &[3]]
                    .concat();
            tree.digests[root] = Sha256::digest(message).into();
            for (wire, half) in wires.digests[root].iter().zip(digest_halves(&tree.digests[root])) {
                values.set(*wire, half);
            }
            values.set(wires.rest, Fr::from(self.length) - Fr::from(self.inner.before_last()));
            Ok(tree)
        }
        fn private_input(
            &self,
            file: &[u8],
            tree: &Tree,
            instance: InstanceId,
        ) -> Result<Private, CircuitError> {
            let mut private = self.inner.private_input(file, tree, instance)?;
            match &mut private {
                Private::Node { length, .. } => *length = self.length,
                Private::Leaf { used, .. } if instance.index() == 4 => {
                    *used = (self.length as usize).saturating_sub(80);
                }
                _ => {}
            }
            Ok(private)
        }
        fn synthesize(
            &self,
            subcircuit: &Subcircuit,
            private: Option<&Private>,
        ) -> Result<(), SynthesisError> {
            self.inner.synthesize(subcircuit, private)
        }
    }
    let file: Vec<u8> = (1..=100).collect();
    let inner = Merkle::for_length(100, 20);
    let violations =
        |length| check(&MadeUp { inner, length }, &file, |_, _| {}).unwrap().violations;
    assert!(violations(100).is_empty());
    for length in [90, 80, 79, 101, 0, u64::MAX] {
        let violations = violations(length);
        assert!(violations.iter().any(|v| v.instance == 4), "{length}");
    }
    // an empty last leaf is refused: a file of 80 bytes has one leaf less
    let zeros: Vec<u8> = (1..=80).chain(std::iter::repeat_n(0, 20)).collect();
    let violations =
        |length| check(&MadeUp { inner, length }, &zeros, |_, _| {}).unwrap().violations;
    assert!(violations(81).is_empty());
    assert!(violations(80).iter().any(|v| v.instance == 4));
}
