//! The traces that a setup leaves in memory (AUDIT F4). Linux only: the test reads the memory of a
//! process.

use crate::pool::LocalEngine;
use crate::protocol::{Secrets, SetupOptions, setup};
use ark_ff::Field;
use hekaton_arith::{Domain, Fr, G1Point, G2Point, Group, fr_to_bytes};
use hekaton_testing::Squares;
use std::collections::HashMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::process::{Child, Command, Stdio};

const SEED: u64 = 0x0dd5_eed5;
/// The variable that marks the process of this test that runs the setup.
const CHILD: &str = "HEKATON_TEST_SETUP_TRACES";

/// 40 subcircuits of three types.
fn circuit() -> Squares {
    Squares::new(&(0..40).map(|i| i % 3).collect::<Vec<_>>())
}

/// Two values that the child keeps in memory, so that the search has something to find: as a number,
/// and as bytes without alignment.
fn kept() -> [Fr; 2] {
    [Fr::from(0x00c0_ffee_u64).pow([31]), Fr::from(0x00c0_ffee_u64).pow([32])]
}

/// The memory form of a scalar.
fn montgomery(x: &Fr) -> [u8; 32] {
    let mut out = [0; 32];
    for (chunk, limb) in out.chunks_exact_mut(8).zip(x.0.0) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    out
}

/// The child: runs the setup, and waits with nothing but the keys until its input ends.
///
/// It reports an address of its stack, which is left out of the search: what compiled code keeps
/// there is beyond the reach of `Zeroizing` (spec: soundness#trusted).
fn run_setup() {
    let options = SetupOptions::new("traces").insecure_seed(SEED);
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&circuit(), &engine, &options).unwrap();
    let [number, bytes] = kept();
    let number = Box::new(number);
    let bytes = [&[0][..], &fr_to_bytes(&bytes)].concat();
    let mut out = std::io::stdout();
    // On a line of its own.
    writeln!(out, "\nstack {}", std::ptr::from_ref(&number).addr()).unwrap();
    out.flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    black_box((&keys, &number, &bytes));
}

/// Starts the child and waits for the end of its setup. Also returns an address of its stack.
fn child() -> (Child, u64) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::traces::setup_leaves_no_secrets", "--nocapture"])
        .args(["--test-threads", "1"])
        .env(CHILD, "1")
        .env("RAYON_NUM_THREADS", "2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let stack =
        lines.find_map(|line| line.unwrap().strip_prefix("stack ").map(|at| at.parse().unwrap()));
    match stack {
        Some(stack) => (child, stack),
        None => panic!("the child has ended early: {:?}", child.wait()),
    }
}

/// All secrets of the setup and what it derives from them, with their names.
fn secrets() -> Vec<(String, Fr)> {
    let options = SetupOptions::new("traces").insecure_seed(SEED);
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&circuit(), &engine, &options).unwrap();
    let secrets = Secrets::draw(keys.types.len(), Some(SEED)).unwrap();
    let shared = &secrets.shared;
    let mut out: Vec<(String, Fr)> = Vec::new();
    let mut put = |name: &str, x: Fr| out.push((name.to_owned(), x));
    for (name, x) in [
        ("alpha", shared.alpha),
        ("beta", shared.beta),
        ("gamma", shared.gamma),
        ("tau", shared.tau),
        ("kappa", shared.kappa),
        ("phi", *secrets.phi),
        ("psi", *secrets.psi),
    ] {
        put(name, x);
        put(&format!("1/{name}"), x.inverse().unwrap());
    }
    put("alpha beta", shared.alpha * shared.beta);
    for (i, kind) in secrets.types.iter().enumerate() {
        for (name, x) in [("delta", kind.delta), ("eta", kind.eta)] {
            put(&format!("{name}_{i}"), x);
            put(&format!("1/{name}_{i}"), x.inverse().unwrap());
        }
    }
    // 40 subcircuits are padded to 64, so the keys have the powers up to 126.
    for (name, x) in [("phi", *secrets.phi), ("psi", *secrets.psi)] {
        for power in [2u64, 3, 4, 5, 31, 64, 78, 100, 125, 126] {
            put(&format!("{name}^{power}"), x.pow([power]));
        }
    }
    let mut sizes: Vec<usize> = keys.types.iter().map(|key| key.domain().size()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for n in sizes {
        let domain = Domain::new(n).unwrap();
        let t = shared.tau.pow([n as u64]) - Fr::ONE;
        put(&format!("t, N = {n}"), t);
        let half_t = t * Fr::from(2u64).inverse().unwrap();
        let mut product = Fr::ONE;
        for j in 0..n as u64 {
            // L_j(tau) = w^j t / (N (tau - w^j)), on the domain; on the coset, t becomes t + 2 and
            // s^N is -1.
            let point = domain.root().pow([j]);
            let l = |point: Fr, t: Fr| {
                t * point * (Fr::from(n as u64) * (shared.tau - point)).inverse().unwrap()
            };
            let on_domain = l(point, t);
            let on_coset = -l(point * domain.shift(), t + Fr::from(2u64));
            put(&format!("L_{j}(tau), N = {n}"), on_domain);
            put(&format!("coset L_{j}(tau), N = {n}"), on_coset);
            for ((i, kind), key) in secrets.types.iter().enumerate().zip(&keys.types) {
                let h = -on_coset * half_t * kind.delta.inverse().unwrap();
                if key.domain().size() == n {
                    // What is not there must be looked for by its right value.
                    let point = key.h_query().unwrap()[j as usize];
                    assert_eq!(G1Point::generator().mul(&h), point, "h_{j} of type {i}");
                    put(&format!("h_{j} of type {i}"), h);
                }
            }
            // The products in a batched inversion of the denominators: two of them give one.
            product *= shared.tau - point;
            put(&format!("product of {j} denominators, N = {n}"), product);
        }
        let l_0 = t * (Fr::from(n as u64) * (shared.tau - Fr::ONE)).inverse().unwrap();
        let theta = l_0 * shared.kappa.inverse().unwrap();
        for (key, elements) in keys.types.iter().zip(keys.aggregation.elements().unwrap()) {
            if key.domain().size() == n {
                assert_eq!(G2Point::generator().mul(&theta), elements[2]);
            }
        }
        put(&format!("theta, N = {n}"), theta);
        for (i, kind) in secrets.types.iter().enumerate() {
            // Another batched inversion.
            let mut product = kind.delta;
            for x in [kind.eta, shared.gamma, shared.kappa, t * (t + Fr::from(2u64))] {
                product *= x;
                put(&format!("product of secrets of type {i}, N = {n}"), product);
            }
        }
    }
    out
}

/// The writable private memory of a process, region by region, without the stack of its main thread
/// and the one with this address.
fn memory(process: u32, stack: u64) -> impl Iterator<Item = Vec<u8>> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let mut file = File::open(format!("/proc/{process}/mem")).unwrap();
    let regions: Vec<String> = maps.lines().map(str::to_owned).collect();
    regions.into_iter().filter_map(move |line| {
        let mut fields = line.split_whitespace();
        let (range, mode) = (fields.next()?, fields.next()?);
        if !mode.starts_with("rw") || !mode.ends_with('p') || line.ends_with("[stack]") {
            return None;
        }
        let (from, to) = range.split_once('-')?;
        let [from, to] = [from, to].map(|at| u64::from_str_radix(at, 16).unwrap());
        if (from..to).contains(&stack) {
            return None;
        }
        let mut bytes = vec![0; (to - from) as usize];
        file.seek(SeekFrom::Start(from)).unwrap();
        file.read_exact(&mut bytes).unwrap();
        Some(bytes)
    })
}

/// The names of the needles that a process has in memory, with the number of times.
fn find(process: u32, stack: u64, needles: &[(String, Fr)]) -> HashMap<String, usize> {
    let mut forms: HashMap<[u8; 32], String> = HashMap::new();
    let mut starts = vec![false; 1 << 16];
    for (name, x) in needles {
        for (form, bytes) in [("Montgomery", montgomery(x)), ("canonical", fr_to_bytes(x))] {
            starts[usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))] = true;
            forms.insert(bytes, format!("{name} ({form})"));
        }
    }
    let mut found = HashMap::new();
    for bytes in memory(process, stack) {
        for part in bytes.windows(32) {
            if starts[usize::from(u16::from_le_bytes([part[0], part[1]]))]
                && let Some(name) = forms.get(part)
            {
                *found.entry(name.clone()).or_default() += 1;
            }
        }
    }
    found
}

/// Adversarial test of AUDIT F4: after a setup, the memory of its process has none of its secrets,
/// nor what they can be computed from. Guards: `Zeroizing` on everything secret, and vectors of
/// secrets that do not grow. Control: two values that the process keeps are found.
#[test]
fn setup_leaves_no_secrets() {
    if std::env::var_os(CHILD).is_some() {
        return run_setup();
    }
    let (mut child, stack) = child();
    let [number, bytes] = kept();
    let controls = [("number".to_owned(), number), ("bytes".to_owned(), bytes)];
    let control = find(child.id(), stack, &controls);
    let mut found: Vec<_> = find(child.id(), stack, &secrets()).into_iter().collect();
    found.sort();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(control["number (Montgomery)"] >= 1 && control["bytes (canonical)"] >= 1);
    assert_eq!(found, [], "secrets that the setup left behind");
}
