//! The memory of runs of imported circuits of several shapes: what `estimate` says, and that
//! `--memory-limit` is kept.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]
#![allow(clippy::print_stdout, reason = "figures, with --nocapture")]

mod common;

use ark_ff::{AdditiveGroup, Field};
use common::{hekaton, ok};
use hekaton_circuit::Fr;
use hekaton_r1cs::{R1csFile, SystemBuilder, WitnessFile};
use serde_json::Value;
use std::path::Path;

/// A term: a wire, and its coefficient.
type Side = Vec<(u32, u64)>;

/// A circuit with the rows A * B = C, and a witness of it.
struct Shape {
    name: &'static str,
    /// The most rows of a part.
    rows: &'static str,
    public: u32,
    values: Vec<Fr>,
    constraints: Vec<[Side; 3]>,
}

impl Shape {
    fn new(name: &'static str, rows: &'static str, public: u32) -> Self {
        let values = vec![Fr::ONE; public as usize + 1];
        Self { name, rows, public, values, constraints: Vec::new() }
    }

    fn wire(&mut self, value: Fr) -> u32 {
        self.values.push(value);
        self.values.len() as u32 - 1
    }

    /// A new wire: the product of two sums.
    fn product(&mut self, a: Side, b: Side) -> u32 {
        let value = |side: &Side| -> Fr {
            side.iter().map(|(wire, k)| self.values[*wire as usize] * Fr::from(*k)).sum()
        };
        let product = value(&a) * value(&b);
        let wire = self.wire(product);
        self.constraints.push([a, b, vec![(wire, 1)]]);
        wire
    }

    /// Imports it, makes keys, and returns the arguments to prove it.
    fn prepare(&self, folder: &Path) -> Vec<String> {
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let mut system = SystemBuilder::new(self.values.len() as u32, self.public);
        for (number, row) in (0u32..).zip(&self.constraints) {
            for side in row {
                for (wire, k) in side {
                    let mut bytes = [0; 32];
                    bytes[..8].copy_from_slice(&k.to_le_bytes());
                    system.term(*wire, &bytes, || Fr::from(*k)).unwrap();
                }
                system.end_combination().unwrap();
            }
            system.end_row(number).unwrap();
        }
        std::fs::write(path("c.r1cs"), R1csFile::bytes_of(&system.finish(), 0)).unwrap();
        std::fs::write(path("c.wtns"), WitnessFile::bytes_of(&self.values)).unwrap();
        ok(&["import", &path("c.r1cs"), "--rows", self.rows, "--force", "--out", &path("c.hk")]);
        ok(&["setup", &path("c.hk"), "--keys", &path("keys")]);
        let prove = ["prove", &path("c.wtns"), "--keys", &path("keys"), "--threads", "2", "--json"];
        let mut prove: Vec<String> = prove.map(str::to_owned).into();
        prove.extend(["--proof".to_owned(), path("proof")]);
        prove
    }
}

/// Full-size values that differ.
fn long(i: u32) -> Fr {
    (Fr::from(u64::MAX - u64::from(i)).square() + Fr::from(i)).square()
}

fn shapes() -> Vec<Shape> {
    let mut many_rows = Shape::new("rows, and few wires", "2^16", 1);
    let wires: Vec<u32> = (0..300).map(|i| many_rows.wire(long(i))).collect();
    for i in 0..40_000u32 {
        // True for any value: k w 1 = k w.
        let (w, k) = (wires[i as usize % wires.len()], u64::from(i / 300) + 1);
        many_rows.constraints.push([vec![(w, k)], vec![(0, 1)], vec![(w, k)]]);
    }
    let mut many_wires = Shape::new("wires, and few rows", "2^16", 1);
    let mut x = many_wires.wire(Fr::ONE);
    for row in 0..1_000 {
        let mut side: Side = (0..200).map(|i| (many_wires.wire(long(200 * row + i)), 1)).collect();
        side.push((x, 1));
        x = many_wires.product(side, vec![(x, 1)]);
    }
    let mut public = Shape::new("public values", "2^13", 20_000);
    let mut x = public.wire(Fr::from(3u64));
    for i in 1..=20_000 {
        public.values[i as usize] = long(i);
        x = public.product(vec![(i, 1)], vec![(x, 1), (0, 1)]);
    }
    let mut types = Shape::new("types", "2^11", 1);
    let mut x = types.wire(Fr::from(3u64));
    // Enough types for what stays of each key to count.
    for i in 0..120_000u32 {
        x = types.product(vec![(x, 1)], vec![(x, u64::from(i)), (0, 1)]);
    }
    vec![many_rows, many_wires, public, types]
}

/// A run takes no more memory than `estimate` says, and with the smallest limit that is workable, no more
/// than that.
#[test]
fn memory_is_what_was_said() {
    for shape in shapes() {
        let folder = tempfile::tempdir().unwrap();
        let prove = shape.prepare(folder.path());
        let prove: Vec<&str> = prove.iter().map(String::as_str).collect();
        let peak = |more: &[&str]| {
            let report: Value = serde_json::from_str(&ok(&[&prove[..], more].concat())).unwrap();
            report["peak_memory_bytes"].as_u64().unwrap()
        };
        let circuit = folder.path().join("c.hk");
        let witness = folder.path().join("c.wtns");
        let [circuit, witness] = [&circuit, &witness].map(|path| path.to_str().unwrap());
        let estimate = ["estimate", circuit, "--for", witness, "--threads", "2", "--json"];
        let estimate: Value = serde_json::from_str(&ok(&estimate)).unwrap();
        let said = estimate["peak_memory_bytes"].as_u64().unwrap();
        let refused = hekaton(&[&prove[..], &["--memory-limit", "1M"]].concat());
        assert_eq!(refused.status.code(), Some(2));
        let refused: Value = serde_json::from_slice(&refused.stdout).unwrap();
        let smallest = refused["details"]["smallest_bytes"].as_u64().unwrap();
        let limit = smallest.to_string();
        let found = [peak(&[]), peak(&["--memory-limit", &limit])];
        let text = format!("{}: {found:?} of {:?}", shape.name, [said, smallest]);
        println!("{text}");
        assert!(found[0] <= said && found[1] <= smallest, "{text}");
        // Not by saying much more than is taken.
        assert!(said <= 3 * found[0] && smallest <= 3 * found[1], "{text}");
        assert_ne!(shape.values[1], Fr::ZERO);
    }
}
