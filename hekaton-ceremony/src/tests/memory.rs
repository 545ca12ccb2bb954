//! C58, C59: after a contribution, neither the memory of its process nor its files have anything of its secrets.

use super::*;
use ark_ff::{Field, PrimeField};
use hekaton_arith::Fr;
use hekaton_testing::Squarings;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::process::{Command, Stdio};

const SEED: u64 = 77;
const CHILD: &str = "HEKATON_CEREMONY_CHILD";
/// The name of the test that is also the child's program.
const NAME: &str = "tests::memory::c58_secrets_are_wiped";

/// The bytes of a scalar: in memory, and encoded.
fn forms(scalar: &Fr) -> [Vec<u8>; 2] {
    let bytes = |limbs: [u64; 4]| limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect();
    [bytes(scalar.0.0), bytes(scalar.into_bigint().0)]
}

/// Everything that must not be found, with its name.
fn forbidden(response: &Response, before: &Transcript) -> Vec<(String, Vec<u8>)> {
    let seed = Seed::known(SEED);
    let mut found = vec![("the seed".to_owned(), seed.key().to_vec())];
    let mut add = |name: String, scalar: &Fr| {
        found.extend(forms(scalar).map(|bytes| (name.clone(), bytes)));
    };
    for record in &response.records {
        let (chain, checked) = (record.chain, before.last_step(record.chain));
        let secrets = seed.secrets(chain, checked.secrets());
        let body = record.body();
        let points = checked.secret_points().into_iter().zip(record.step.secret_points());
        for (number, (secret, (old, new))) in secrets.iter().zip(points).enumerate() {
            add(format!("secret {number} of {chain}"), secret);
            add(format!("the inverse of secret {number} of {chain}"), &secret.inverse().unwrap());
            let proof = &record.proofs[number];
            let challenge = proof.challenge(&body, number, &old, &new);
            add(format!("nonce {number} of {chain}"), &(proof.z - challenge * secret));
            for power in [2u64, 3, 17, 64] {
                add(format!("power {power} of secret {number} of {chain}"), &secret.pow([power]));
            }
        }
        if let [tau, alpha, ..] = secrets[..] {
            add(format!("a factor of {chain}"), &(alpha * tau.pow([5])));
        }
    }
    found
}

/// The names of what is in some bytes.
fn search(bytes: &[u8], patterns: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut by_start: HashMap<[u8; 8], Vec<usize>> = HashMap::new();
    let mut filter = vec![false; 1 << 16];
    let start = |bytes: &[u8]| -> [u8; 8] { bytes[..8].try_into().unwrap() };
    let two = |bytes: &[u8]| usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    for (at, (_, pattern)) in patterns.iter().enumerate() {
        by_start.entry(start(pattern)).or_default().push(at);
        filter[two(pattern)] = true;
    }
    let mut found = Vec::new();
    for at in 0..bytes.len().saturating_sub(32) {
        if filter[two(&bytes[at..])] {
            let candidates = by_start.get(&start(&bytes[at..])).into_iter().flatten();
            let names = candidates.filter(|i| bytes[at..].starts_with(&patterns[**i].1));
            found.extend(names.map(|i| patterns[*i].0.clone()));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The memory of a process that it can write.
fn memory_of(process: u32) -> Vec<u8> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let mut memory = std::fs::File::open(format!("/proc/{process}/mem")).unwrap();
    let mut all = Vec::new();
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').unwrap();
        let (from, to) = range.split_once('-').unwrap();
        let [from, to] = [from, to].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        // Kernel pages cannot be read.
        if rest.starts_with("rw") && !line.contains("[v") {
            let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
            memory.seek(SeekFrom::Start(from)).unwrap();
            memory.read_exact(&mut bytes).unwrap();
            all.extend(bytes);
        }
    }
    all
}

/// The child: contributes, and waits. With "plant" it keeps a secret.
fn child(directory: &Path, plant: bool) {
    let transcript = open(directory);
    let chains = transcript.genesis.chains();
    contribute_as(&transcript, SEED, &chains, &directory.join("incoming/response")).unwrap();
    let kept = plant.then(|| Box::new(Seed::known(SEED).secrets(chains[0], 1)[0]));
    std::io::stdout().write_all(b"\nready\n").unwrap();
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(kept);
}

/// The names of secrets in the memory of a process that has contributed to a ceremony.
fn found_after(directory: &Path, plant: bool) -> Vec<String> {
    let before = open(directory);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, directory)
        .env("HEKATON_CEREMONY_PLANT", if plant { "1" } else { "0" })
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    let memory = memory_of(child.id());
    drop(child.stdin.take());
    child.wait().unwrap();
    let out = directory.join("incoming/response");
    let response = Response::open(&out, &before.genesis).unwrap();
    let patterns = forbidden(&response, &before);
    // C59: nothing of them is in the result.
    assert_eq!(search(&std::fs::read(&out).unwrap(), &patterns), [""; 0]);
    // The file is still in memory somewhere: the search sees what is there.
    assert!(memory.len() > 1 << 20);
    search(&memory, &patterns)
}

#[test]
fn c58_secrets_are_wiped() {
    if let Some(directory) = std::env::var_os(CHILD) {
        return child(
            Path::new(&directory),
            std::env::var("HEKATON_CEREMONY_PLANT").unwrap() == "1",
        );
    }
    let bench = Bench::new(&Squarings, true, None);
    for directory in [bench.directory.path().join("powers"), bench.path()] {
        assert_eq!(found_after(&directory, false), [""; 0]);
        let chain = open(&directory).genesis.chains()[0];
        assert_eq!(found_after(&directory, true), [format!("secret 0 of {chain}")]);
    }
}
