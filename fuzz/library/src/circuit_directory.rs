//! Circuit directories: one file is any bytes, with the digests in `circuit.json` put right, so that
//! what is behind them is reached.

use super::{file, scratch};
use hekaton_circuit::{Fr, PreparedCircuit, check};
use hekaton_r1cs::partition::{Cut, Occurrences, Order, parts};
use hekaton_r1cs::{Directory, Imported, Monolith, System, SystemBuilder, WitnessFile};
use std::path::Path;
use std::sync::OnceLock;

/// The files, of which the first has the digests of the others.
const FILES: [&str; 5] = ["circuit.json", "layout", "wires", "types/t0.rows", "types/t1.rows"];

/// A circuit of six squarings in three parts, of which two are equal, and its witness.
struct Good {
    system: System,
    values: Vec<Fr>,
    files: [Vec<u8>; 5],
}

const STEPS: u32 = 6;

fn good() -> &'static Good {
    static GOOD: OnceLock<Good> = OnceLock::new();
    GOOD.get_or_init(|| {
        let mut system = SystemBuilder::new(STEPS + 2, 1);
        let (mut one, mut values) = ([0; 32], vec![Fr::from(1u64); STEPS as usize + 2]);
        one[0] = 1;
        let mut x = Fr::from(3u64);
        for step in 0..STEPS {
            let (from, to) = (2 + step, if step + 1 == STEPS { 1 } else { 3 + step });
            for wire in [from, from, to] {
                let term = system.term(wire, &one, || Fr::from(1u64));
                let ended = term.and_then(|()| system.end_combination());
                ended.unwrap_or_else(|e| panic!("{e}"));
            }
            system.end_row(step).unwrap_or_else(|e| panic!("{e}"));
            values[from as usize] = x;
            x *= x;
        }
        values[1] = x;
        let system = system.finish();
        let cut = Cut { part_of: vec![0, 0, 1, 1, 2, 2], parts: 3 };
        let parts = parts(&system, &Occurrences::new(&system), &cut, Order::Source, 100);
        assert_eq!(parts.types.len(), 2, "the first part has no slot for what comes in");
        let (folder, _) = scratch();
        let path = folder.path().join("circuit");
        let monolith = monolith(&system);
        let written =
            hekaton_r1cs::directory::write(&path, monolith.source().clone(), 100, &parts, None);
        written.unwrap_or_else(|e| panic!("{e}"));
        let files = FILES
            .map(|name| std::fs::read(path.join(name)).unwrap_or_else(|e| panic!("{name}: {e}")));
        Good { system, values, files }
    })
}

fn monolith(system: &System) -> Monolith {
    Monolith::of_system("fuzz", [0; 32], system.clone()).unwrap_or_else(|e| panic!("{e}"))
}

/// Whether the values satisfy all parts of a directory that the checker has accepted.
fn holds(path: &Path, values: &[Fr]) -> bool {
    let circuit = Imported::open(path).unwrap_or_else(|e| panic!("{e}"));
    let witness = WitnessFile::from_bytes(WitnessFile::bytes_of(values));
    let witness = witness.unwrap_or_else(|e| panic!("{e}"));
    let report = check(&circuit, &witness, |_, _| {}).unwrap_or_else(|e| panic!("{e}"));
    report.violations.is_empty()
}

/// Checks a circuit directory: whatever is in it, reading it ends in a value or an error; and if the
/// checker accepts it, its parts hold for a witness of the source and for no other values.
pub fn circuit_directory(data: &[u8]) {
    let Some((which, rest)) = data.split_first() else { return };
    let (good, which) = (good(), usize::from(*which) % FILES.len());
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
    if let Ok(directory) = Directory::open(&path) {
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
