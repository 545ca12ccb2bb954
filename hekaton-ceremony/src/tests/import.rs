//! Powers from files of others. The one in `golden` has 2^4 powers; snarkjs 0.7 has made it by `powersoftau export challenge` after one
//! contribution.

use super::*;
use crate::genesis::{Layout, Subject};
use crate::{PowersFile, new_powers_from};
use hekaton_arith::{G1Point, G2Point};

const CHALLENGE: &[u8] = include_bytes!("golden/snarkjs.challenge");

/// The same powers as a response: the points compressed, then a public key, which nobody reads. Responses of snarkjs have other flags.
fn response() -> Vec<u8> {
    fn compressed<G: Group>(bytes: &[u8]) -> Vec<u8> {
        let points = bytes.chunks(G::UNCOMPRESSED);
        points.flat_map(|p| G::on_curve_from_uncompressed(p).unwrap().to_compressed()).collect()
    }
    let (tau_2, alpha, beta_2) = (64 + 31 * 96, 64 + 63 * 96, 64 + 95 * 96);
    let mut out = CHALLENGE[..64].to_vec();
    out.extend(compressed::<G1Point>(&CHALLENGE[64..tau_2]));
    out.extend(compressed::<G2Point>(&CHALLENGE[tau_2..alpha]));
    out.extend(compressed::<G1Point>(&CHALLENGE[alpha..beta_2]));
    out.extend(compressed::<G2Point>(&CHALLENGE[beta_2..]));
    out.extend([7; 1152]);
    out
}

/// Begins a ceremony with the content of a file.
fn begin(directory: &Path, content: &[u8], domain: usize) -> Result<Transcript, CeremonyError> {
    let (source, path) = (directory.join("source"), directory.join("powers"));
    std::fs::write(&source, content).unwrap();
    // Of an attempt before.
    let _ = std::fs::remove_dir_all(&path);
    let source = PowersFile { path: &source, expect: None };
    new_powers_from(&path, &source, domain, 2, "", &|_| {}, &mut |_| {})
}

/// C52: both layouts, for all domains that the file serves.
#[test]
fn c52_files_of_others_begin_a_ceremony() {
    let mut points = Vec::new();
    for (content, layout) in [(CHALLENGE, Layout::Challenge), (&response(), Layout::Response)] {
        for domain in [1, 2, 3, 8, 12] {
            let directory = tempfile::tempdir().unwrap();
            let transcript = begin(directory.path(), content, domain).unwrap();
            let Subject::Powers(powers) = &transcript.genesis.subject else { panic!("powers") };
            points.push((powers.starts, domain));
            let import = transcript.genesis.import_of(Chain::Tau).unwrap();
            assert_eq!((import.layout, import.bytes), (layout, content.len() as u64));
            let path = directory.path().join("powers");
            // The history of the file counts for nobody.
            assert_eq!(refusal(check_powers(&path)), Check::Contribution);
            step(&path, 1);
            step(&path, 2);
            check_powers(&path).unwrap();
        }
    }
    assert_eq!(points[..5], points[5..]);
}

/// C52: a wrong power in each vector, in the part that is taken, and only there.
#[test]
fn c52_wrong_powers_of_others_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    // n = 16 and N = 8: 16 of 31 powers of tau in G1 are taken, and 8 of 16 of the others.
    let starts: [(usize, usize, usize); 4] =
        [(64, 96, 16), (64 + 31 * 96, 192, 8), (64 + 63 * 96, 96, 8), (64 + 79 * 96, 96, 8)];
    let at = |content: &[u8], place: usize, width: usize, from: usize| {
        let mut changed = content.to_vec();
        changed.copy_within(from..from + width, place);
        changed
    };
    for (start, width, taken) in starts {
        for index in 0..taken {
            let neighbor = start + if index == 0 { width } else { 0 };
            let changed = at(CHALLENGE, start + index * width, width, neighbor);
            let check = refusal(begin(directory.path(), &changed, 8));
            let expected = [Check::Powers, Check::First, Check::Order, Check::End];
            assert!(expected.contains(&check), "{start} {index}: {check:?}");
        }
        let changed = at(CHALLENGE, start + taken * width, width, start);
        begin(directory.path(), &changed, 8).unwrap();
    }
    // Beta in G2 is in no vector: it differs from beta in G1, which the first contribution would have kept.
    let beta_2 = 64 + 95 * 96;
    let changed = at(CHALLENGE, beta_2, 192, 64 + 31 * 96);
    assert_eq!(refusal(begin(directory.path(), &changed, 8)), Check::Groups);
}

#[test]
fn c52_other_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let why =
        |content: &[u8], domain| begin(directory.path(), content, domain).unwrap_err().to_string();
    for content in [&CHALLENGE[..CHALLENGE.len() - 1], &response()[1..], b"", b"tau"] {
        let told = why(content, 4);
        assert!(told.contains("neither a challenge nor a response"), "{told}");
    }
    // 12 powers: the right length for a number that is no power of two.
    let told = why(&CHALLENGE[..64 + (6 * 12 + 1) * 96], 4);
    assert!(told.contains("neither a challenge nor a response"), "{told}");
    // tau^(2N-1) is not there.
    for domain in [16, 24, 1 << 20] {
        let told = why(CHALLENGE, domain);
        assert!(told.contains("serve domains of up to 12 rows"), "{told}");
    }
    let mut off_curve = CHALLENGE.to_vec();
    off_curve[64 + 96 + 95] ^= 1;
    let told = why(&off_curve, 4);
    assert!(told.contains("the point at byte 160"), "{told}");
    assert!(!directory.path().join("powers").exists());
}

/// The digest by which the makers of a file name it.
#[test]
fn c53_other_files_are_not_those_that_are_expected() {
    let directory = tempfile::tempdir().unwrap();
    let transcript = begin(directory.path(), CHALLENGE, 2).unwrap();
    let digest = transcript.genesis.import_of(Chain::Tau).unwrap().blake2b;
    let from = |expect: &[u8; 64], path: &str| {
        let (path, source) = (directory.path().join(path), directory.path().join("source"));
        let source = PowersFile { path: &source, expect: Some(*expect) };
        new_powers_from(&path, &source, 2, 2, "", &|_| {}, &mut |_| {})
    };
    from(&digest, "right").unwrap();
    let mut other = digest;
    other[63] ^= 1;
    let told = from(&other, "wrong").unwrap_err().to_string();
    assert!(told.contains("--expect requires"), "{told}");
}
