//! Proofs of programs, as a user of the library makes them.
#![allow(clippy::cast_possible_truncation, reason = "few subcircuits")]

use hekaton_circuit::{Fr, PreparedCircuit};
use hekaton_core::{
    LocalEngine, ProveOptions, ProverKeys, Randomness, SetupOptions, VerifyingKey, derive, prove,
    setup_family, verify_with_test_keys,
};
use hekaton_testing::{SUM, elf};
use hekaton_vm::{Claim, ClaimError, Counts, Input, Isa, MachineCircuit, Program, Sizes, run};
use std::convert::Infallible;
use std::path::Path;

fn execution(program: &Program, input: &Input, every_kind: bool) -> MachineCircuit {
    let (sizes, max_cycles) = (Sizes::SMALL, 1 << 20);
    let run = run(program, input, max_cycles).unwrap();
    let counts = Counts::of(&run, program, input, sizes);
    let counts = if every_kind { counts.with_every_kind() } else { counts };
    let public_words = input.public.len();
    MachineCircuit { program: program.clone(), sizes, counts, public_words, max_cycles }
}

/// The file of the first proof is that of the golden one, byte for byte, and says what is verified. With
/// `HEKATON_WRITE_GOLDEN` set, writes it first.
fn golden(execution: &MachineCircuit, input: &Input, key: &VerifyingKey, proof: &[u8]) {
    let run = run(&execution.program, input, execution.max_cycles).unwrap();
    let file = Claim::of(execution, &run).with_proof(proof);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v2.proof");
    if std::env::var_os("HEKATON_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &file).unwrap();
    }
    let golden = std::fs::read(&path).unwrap();
    assert!(golden == file, "v2.proof");
    let (claim, proof) = Claim::read(&golden).unwrap();
    let again = claim.execution(execution.program.clone(), input.public.len(), execution.sizes);
    let again = again.unwrap();
    assert_eq!((&again.counts, again.public_words), (&execution.counts, execution.public_words));
    assert_eq!(again.subcircuits(), key.instances as usize);
    assert_eq!(verify_with_test_keys(key, &claim.public_values(&input.public), proof), Ok(()));
    let error = claim.execution(execution.program.clone(), 7, execution.sizes).unwrap_err();
    assert_eq!(error, ClaimError::PublicWords { found: 1, expected: 7 });
}

/// One family of keys for two programs, and runs of different lengths. Verifiers derive their keys from
/// program and counts.
#[test]
fn one_family_proves_programs_of_all_lengths() {
    let engine = LocalEngine::new(None).unwrap();
    let options = SetupOptions::new("vm").insecure_seed(1);
    let every = MachineCircuit::of_family(Isa::Rv32im, Sizes::SMALL);
    let prepared = PreparedCircuit::new(&every).unwrap();
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<(), Infallible>(())
    };
    let family = setup_family(&prepared, 256, &engine, &options, keep, |_| {}).unwrap();
    let sum = Program::from_elf(&elf(&SUM)).unwrap();
    let exit_with_five = Program::from_elf(&elf(&[0x0050_0513, 0x05d0_0893, 0x0000_0073])).unwrap();
    // The compression function of SHA-256, of zeros: the tables of Keccak are left out.
    let hash = [0x1100_0537, 0x0205_0593, 0x3e90_0893, 0x0000_0073, 0x1100_0537, 0x0005_2503];
    let hash = [&hash[..], &[0x05d0_0893, 0x0000_0073]].concat();
    let hash = Program::from_elf(&elf(&hash)).unwrap();
    let inputs = [
        (sum.clone(), Input { public: vec![3], private: vec![1, 2, 250] }, [759, 253]),
        (sum.clone(), Input { public: vec![1], private: (0..255).collect() }, [32_385, 32_385]),
        (hash, Input::default(), [0x7ca5_1614, 0]),
        (exit_with_five, Input::default(), [5, 0]),
    ];
    let mut proofs = Vec::new();
    for (program, input, [code, output]) in &inputs {
        let execution = execution(program, input, !input.public.is_empty());
        let prepared = PreparedCircuit::new(&execution).unwrap();
        let (aggregation, verifying) = derive(&family, &prepared, "{}", &engine).unwrap();
        // The last program does without most types.
        types.retain(|key| verifying.types.iter().any(|kind| kind.name == key.name()));
        let keys = ProverKeys { verifying, aggregation, types };
        let seeded = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(1));
        let run = prove(&execution, input, &keys, &engine, &seeded).unwrap();
        let mut expected: Vec<u32> = input.public.clone();
        expected.extend([*code, *output]);
        expected.resize(input.public.len() + 17, 0);
        let expected: Vec<Fr> = expected.into_iter().map(Fr::from).collect();
        assert_eq!(run.public_values, expected);
        let proof = run.proof.as_bytes().to_vec();
        assert_eq!(verify_with_test_keys(&keys.verifying, &run.public_values, &proof), Ok(()));
        if proofs.is_empty() {
            golden(&execution, input, &keys.verifying, &proof);
        }
        // Another exit code.
        let mut other = run.public_values.clone();
        other[input.public.len()] += Fr::from(1u64);
        assert!(verify_with_test_keys(&keys.verifying, &other, &proof).is_err());
        proofs.push((keys.verifying, run.public_values, proof));
        types = keys.types;
    }
    // A proof is of one program and its counts.
    for (i, (_, public, proof)) in proofs.iter().enumerate() {
        for (j, (verifying, ..)) in proofs.iter().enumerate() {
            let verdict = verify_with_test_keys(verifying, public, proof);
            assert_eq!(verdict.is_ok(), i == j, "{i} {j}: {verdict:?}");
        }
    }
}
