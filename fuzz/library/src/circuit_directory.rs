//! Circuit directories: one file is any bytes, with the digests in `circuit.json` put right, so that
//! what is behind them is reached.

use super::{file, scratch};
use hekaton_circuit::{Fr, PreparedCircuit, check};
use hekaton_r1cs::partition::{Cut, Occurrences, Order, derived_parts};
use hekaton_r1cs::{CircuitBundle, Imported, Monolith, System, SystemBuilder, WitnessFile};
use std::path::Path;
use std::sync::OnceLock;

/// The files, of which the first has the digests of the others.
const FILES: [&str; 5] = ["circuit.json", "layout", "wires", "types/t0.rows", "types/t1.rows"];

/// A circuit in parts of two types, and its witness.
struct Good {
    system: System,
    values: Vec<Fr>,
    files: [Vec<u8>; 5],
}

/// A row: wires with small coefficients in A, B and C.
type Row = [Vec<(u32, u64)>; 3];

impl Good {
    /// A circuit with one public wire and a satisfying witness, in parts whose last rows are at `ends`.
    fn new(rows: &[Row], values: Vec<Fr>, ends: &[usize], derived: [u64; 2]) -> Self {
        let wires = u32::try_from(values.len()).expect("inputs are short");
        let mut builder = SystemBuilder::new(wires, 1);
        for (number, row) in (0u32..).zip(rows) {
            for side in row {
                for (wire, coefficient) in side {
                    let mut bytes = [0; 32];
                    bytes[..8].copy_from_slice(&coefficient.to_le_bytes());
                    let term = builder.term(*wire, &bytes, || Fr::from(*coefficient));
                    term.unwrap_or_else(|e| panic!("{e}"));
                }
                builder.end_combination().unwrap_or_else(|e| panic!("{e}"));
            }
            builder.end_row(number).unwrap_or_else(|e| panic!("{e}"));
        }
        let system = builder.finish();
        assert_eq!(system.false_row(&values), None);
        let mut part_of = Vec::new();
        for (part, end) in (0u32..).zip(ends) {
            part_of.resize(*end, part);
        }
        let cut = Cut { part_of, parts: u32::try_from(ends.len()).expect("inputs are short") };
        let parts = derived_parts(&system, &Occurrences::new(&system), &cut, Order::Source, 100);
        assert_eq!((parts.types.len(), parts.derived.counts()), (2, derived));
        let (folder, _) = scratch();
        let path = folder.path().join("circuit");
        let monolith = monolith(&system);
        let written =
            hekaton_r1cs::directory::write(&path, monolith.source().clone(), 100, &parts, None);
        written.unwrap_or_else(|e| panic!("{e}"));
        let files = FILES
            .map(|name| std::fs::read(path.join(name)).unwrap_or_else(|e| panic!("{name}: {e}")));
        Self { system, values, files }
    }

    /// Six squarings in three parts, of which two are equal: the first has no slot for what comes in.
    fn squarings() -> Self {
        let (mut rows, mut values) = (Vec::new(), vec![Fr::from(1u64), Fr::from(0u64)]);
        let mut x = Fr::from(3u64);
        for step in 0..6 {
            let (from, to) = (2 + step, if step == 5 { 1 } else { 3 + step });
            rows.push([vec![(from, 1)], vec![(from, 1)], vec![(to, 1)]]);
            values.push(x);
            x *= x;
        }
        values[1] = x;
        Self::new(&rows, values, &[2, 4, 6], [0, 0])
    }

    /// Eight bits and four numbers, of which a second part has a pack and a sum.
    fn bits() -> Self {
        let (bit, number, product) = (|i: u32| 2 + i, |j: u32| 10 + j, |i: u32| 14 + i);
        let mut rows: Vec<Row> =
            (0..8).map(|i| [vec![(bit(i), 1)], vec![(bit(i), 1)], vec![(bit(i), 1)]]).collect();
        let (mut values, mut out) = (vec![0u64; 23], 0);
        values[0] = 1;
        (0..8).for_each(|i| values[bit(i) as usize] = u64::from(i % 3 > 0));
        for j in 0..4 {
            let (a, b) = (bit(2 * j), bit(2 * j + 1));
            rows.push([vec![(0, 2), (a, 1)], vec![(0, 3), (b, 1)], vec![(number(j), 1)]]);
            values[number(j) as usize] = (2 + values[a as usize]) * (3 + values[b as usize]);
        }
        for i in 0..8 {
            let (a, b) = (bit(i), bit((i + 1) % 8));
            rows.push([vec![(a, 1)], vec![(b, 1)], vec![(product(i), 1)]]);
            values[product(i) as usize] = values[a as usize] * values[b as usize];
            out += u64::from(i + 1) * values[product(i) as usize];
        }
        let last = 22;
        rows.push([
            (0..4).map(|j| (number(j), 2)).collect(),
            vec![(product(1), 1)],
            vec![(last, 1)],
        ]);
        let sum: u64 = (0..4).map(|j| 2 * values[number(j) as usize]).sum();
        values[last as usize] = sum * values[product(1) as usize];
        let mut terms: Vec<(u32, u64)> = (0..8).map(|i| (product(i), u64::from(i + 1))).collect();
        terms.push((last, 1));
        rows.push([terms, vec![(0, 1)], vec![(1, 1)]]);
        values[1] = out + values[last as usize];
        Self::new(&rows, values.into_iter().map(Fr::from).collect(), &[12, 22], [1, 1])
    }
}

/// Both circuits.
fn good() -> &'static [Good; 2] {
    static GOOD: OnceLock<[Good; 2]> = OnceLock::new();
    GOOD.get_or_init(|| [Good::squarings(), Good::bits()])
}

fn monolith(system: &System) -> Monolith {
    Monolith::of_system("fuzz", [0; 32], system.clone()).unwrap_or_else(|e| panic!("{e}"))
}

/// Reports whether the values satisfy all parts of a directory that the checker has accepted.
fn holds(path: &Path, values: &[Fr]) -> bool {
    let circuit = Imported::open(path).unwrap_or_else(|e| panic!("{e}"));
    let bytes = WitnessFile::bytes_of(values);
    let witness = WitnessFile::from_bytes(bytes).unwrap_or_else(|e| panic!("{e}"));
    let report = check(&circuit, &witness, |_, _| {}).unwrap_or_else(|e| panic!("{e}"));
    report.violations.is_empty()
}

/// Checks a circuit directory: whatever is in it, reading it ends in a value or an error; and if the
/// checker accepts it, its parts hold for a witness of the source and for no other values.
pub fn circuit_directory(data: &[u8]) {
    let Some((which, rest)) = data.split_first() else { return };
    let good = &good()[usize::from(*which) / FILES.len() % 2];
    let which = usize::from(*which) % FILES.len();
    let mut files = good.files.clone();
    files[which] = file(rest, &good.files[which], &[]);
    if which > 0 {
        let mut summary: serde_json::Value =
            serde_json::from_slice(&files[0]).unwrap_or_else(|e| panic!("{e}"));
        let digest = blake3::hash(&files[which]).to_hex().to_string().into();
        match which {
            1 => summary["layout"] = digest,
            2 => summary["wires"] = digest,
            kind => summary["types"][kind - 3]["digest"] = digest,
        }
        files[0] = summary.to_string().into_bytes();
    }
    let (folder, path) = scratch();
    std::fs::create_dir_all(path.join("types")).unwrap_or_else(|e| panic!("{e}"));
    for (name, bytes) in FILES.iter().zip(&files) {
        std::fs::write(path.join(name), bytes).unwrap_or_else(|e| panic!("{e}"));
    }
    if let Ok(directory) = CircuitBundle::open(&path) {
        (0..directory.parts()).for_each(|part| drop(directory.content(part)));
        (0..directory.summary().types.len()).for_each(|kind| drop(directory.rows(kind)));
        drop(PreparedCircuit::new(&Imported::new(directory)));
    }
    if monolith(&good.system).check(&path).is_ok() {
        assert!(holds(&path, &good.values), "an honest witness is refused");
        for wire in 1..good.values.len() {
            let mut values = good.values.clone();
            values[wire] += Fr::from(1u64);
            assert!(!holds(&path, &values), "wire {wire} can have any value");
        }
    }
    drop(folder);
}
