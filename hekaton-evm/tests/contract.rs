//! Contracts as text. What they accept is tested in an EVM: `hekaton-evm/revm`.

use hekaton_core::circuit::{Masking, PreparedCircuit};
use hekaton_core::{
    DirectKey, DirectProof, DirectRun, Fr, LocalEngine, ProveOptions, ProverKeys, SetupOptions,
    derive, prove, setup, setup_family,
};
use hekaton_evm::{Columns, Contract, ContractError, calldata};
use hekaton_testing::{Doublings, Squarings};
use std::convert::Infallible;

fn engine() -> LocalEngine {
    LocalEngine::new(None).unwrap()
}

/// Direct key and columns of a circuit under a family's keys.
fn of_family(
    circuit: &Doublings,
    seed: u64,
) -> (DirectKey, Result<Columns, ContractError>, DirectKey) {
    let (engine, prepared) = (engine(), PreparedCircuit::new(circuit).unwrap());
    let family = |seed| {
        let mut types = Vec::new();
        let keep = |key| {
            types.push(key);
            Ok::<_, Infallible>(())
        };
        let options = SetupOptions::new("evm").insecure_seed(seed);
        let n = prepared.layout().instances();
        (setup_family(&prepared, n, &engine, &options, keep, |_| {}).unwrap(), types)
    };
    let direct = |seed| {
        let (family, types) = family(seed);
        let (aggregation, verifying) = derive(&family, &prepared, "{}", &engine).unwrap();
        let keys = ProverKeys { verifying, aggregation, types };
        (keys.direct_key(&engine).unwrap(), family)
    };
    let ((key, _), (other, family)) = (direct(1), direct(seed));
    let wiring = prepared.layout().wiring(Masking::Masked);
    let columns = Columns::new(&key, &family, &wiring);
    (key, columns, other)
}

#[test]
fn the_same_bytes_for_the_same_key() {
    let engine = engine();
    let keys = setup(&Squarings, &engine, &SetupOptions::new("evm").insecure_seed(1)).unwrap();
    let key = keys.direct_key(&engine).unwrap();
    let contract = Contract::new(&key, None).unwrap();
    assert_eq!(contract.source(), Contract::new(&key, None).unwrap().source());
    assert!(contract.source().contains(&hex::encode(key.digest())));
    assert!(contract.source().contains("TEST KEYS"), "the trust is in the file");
    assert!(contract.data().is_empty());
    assert!(!contract.source().contains("/*@") && !contract.source().contains("//@"));
    let plain = SetupOptions::new("evm").insecure_seed(1).zero_knowledge(false);
    let plain = setup(&Squarings, &engine, &plain).unwrap().direct_key(&engine).unwrap();
    let plain = Contract::new(&plain, None).unwrap();
    assert!(plain.source().contains("NOT ZERO-KNOWLEDGE"));
    assert!(!contract.source().contains("NOT ZERO-KNOWLEDGE"));
}

#[test]
fn calldata_has_the_encoding_of_the_abi() {
    let engine = engine();
    let keys = setup(&Squarings, &engine, &SetupOptions::new("evm").insecure_seed(1)).unwrap();
    let key = keys.direct_key(&engine).unwrap();
    let options = ProveOptions::new().direct(DirectRun::new(&key, [9; 32]));
    let run = prove(&Squarings, &Fr::from(3u64), &keys, &engine, &options).unwrap();
    let proof = DirectProof::from_bytes(run.proof.as_bytes(), &key).unwrap();
    let data = calldata(&run.public_values, &[9; 32], &proof);
    let word = |at: usize| {
        let bytes = &data[4 + 32 * at..][..32];
        assert_eq!(bytes[..24], [0; 24]);
        u64::from_be_bytes(bytes[24..].try_into().unwrap())
    };
    // keccak256("verify(uint256[],bytes32,bytes)")
    assert_eq!(hex::encode(&data[..4]), "8e81fd60");
    assert_eq!(data[4 + 32..4 + 64], [9; 32]);
    let m = run.public_values.len() as u64;
    assert_eq!((word(0), word(2), word(3)), (96, 128 + 32 * m, m));
    assert_eq!((word(4), word(5)), (3, 81));
    let length = 672 * key.instances();
    assert_eq!(word(6), length as u64);
    assert_eq!(data[data.len() - length..], proof.words());
}

#[test]
fn columns_are_those_of_the_keys_family() {
    let circuit = Doublings { links: 40, extra: 0 };
    let (key, columns, other) = of_family(&circuit, 1);
    assert_eq!(key, other);
    let columns = columns.unwrap();
    let (points, by_columns) =
        (Contract::new(&key, None).unwrap(), Contract::new(&key, Some(&columns)).unwrap());
    assert!(by_columns.gas().total() < points.gas().total());
    assert!(by_columns.data().len() < points.data().len().max(1));
    // Another layout of the same family, and another family.
    let (shorter, _, _) = of_family(&Doublings { links: 39, extra: 0 }, 1);
    assert!(matches!(Contract::new(&shorter, Some(&columns)), Err(ContractError::Columns)));
    let (_, columns, _) = of_family(&circuit, 2);
    assert!(matches!(columns, Err(ContractError::Columns)));
}

#[test]
fn too_many_subcircuits_are_refused() {
    for links in [300, 600] {
        let engine = engine();
        let circuit = Doublings { links, extra: 0 };
        let options = SetupOptions::new("evm").insecure_seed(1);
        let key = setup(&circuit, &engine, &options).unwrap().direct_key(&engine).unwrap();
        let error = Contract::new(&key, None).unwrap_err();
        assert!(
            matches!(error, ContractError::Gas { gas, .. } if gas > hekaton_evm::LIMIT),
            "{error}"
        );
    }
}
