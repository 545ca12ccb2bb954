//! Proves a circom circuit over BLS12-381 with legogroth16, and prints one line of JSON: the constraints and the
//! medians of wall and processor time of a proof. Files are trusted: this is a benchmark.
//!
//! `legogroth16-rival FILE.r1cs FILE.wtns THREADS REPETITIONS`

use ark_bls12_381::{Bls12_381, Fr};
use ark_ff::{PrimeField, UniformRand};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use legogroth16::circom::CircomCircuit;
use legogroth16::{create_random_proof, prepare_verifying_key, verify_proof};
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

/// The number of wires that the proof commits to.
const COMMITTED: u32 = 1;

/// The values of a `.wtns` file: they are its second and last section.
fn witness(path: &str) -> Result<Vec<Fr>, Error> {
    let bytes = std::fs::read(path)?;
    let number = |at: usize| Ok::<_, Error>(u32::from_le_bytes(bytes[at..at + 4].try_into()?));
    // Magic, version, number of sections; kind and length of the header; 32, the prime, the number of values; kind
    // and length of the values.
    let first = 12 + 12 + 4 + 32 + 4 + 12;
    let count = number(12 + 12 + 4 + 32)? as usize;
    if !bytes.starts_with(b"wtns") || number(12 + 12)? != 32 || bytes.len() != first + 32 * count {
        return Err(format!("{path} is not a .wtns file with values of 32 bytes").into());
    }
    Ok(bytes[first..].chunks_exact(32).map(Fr::from_le_bytes_mod_order).collect())
}

/// Processor time of this process in seconds.
fn cpu_seconds() -> Result<f64, Error> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [r1cs, wtns, threads, repetitions] = arguments.as_slice() else {
        return Err("usage: legogroth16-rival FILE.r1cs FILE.wtns THREADS REPETITIONS".into());
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build_global()?;
    let mut rng = StdRng::seed_from_u64(1);
    let mut circuit =
        CircomCircuit::<Bls12_381>::from_r1cs_file(r1cs).map_err(|e| format!("{e:?}"))?;
    let constraints = circuit.r1cs.constraints.len();
    let key =
        circuit.clone().generate_proving_key(COMMITTED, &mut rng).map_err(|e| format!("{e:?}"))?;
    circuit.set_wires(witness(wtns)?);
    // Committed wires are the first private ones, so the public inputs stay what they are.
    let public = circuit.get_public_inputs().ok_or("no values")?;
    let verifying = prepare_verifying_key(&key.vk);
    let (mut seconds, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..repetitions.parse::<usize>()?.max(1) {
        let (start, before) = (Instant::now(), cpu_seconds()?);
        let blinding = Fr::rand(&mut rng);
        let proof = create_random_proof(circuit.clone(), blinding, &key, &mut rng)
            .map_err(|e| format!("{e:?}"))?;
        seconds.push(start.elapsed().as_secs_f64());
        cpu.push(cpu_seconds()? - before);
        verify_proof(&verifying, &proof, &public).map_err(|e| format!("{e:?}"))?;
    }
    println!(
        "{{\"constraints\":{constraints},\"seconds\":{},\"cpu_seconds\":{}}}",
        median(seconds),
        median(cpu)
    );
    Ok(())
}
