//! Measures the gas of Hekaton's contract, and prints a row of JSON for each number of subcircuits. With a file in
//! Solidity and one with calldata: calls that contract. With the name of another contract: the same of that.

use hekaton_core::Fr;
use hekaton_evm::{Contract, calldata};
use hekaton_evm_revm::{Chain, Outcome, compile_named, proven};
use hekaton_testing::Doublings;
use revm::primitives::hardfork::SpecId;
use serde_json::json;

/// Calls the contract of a file that `hekaton export` has written.
fn call(source: &str, data: &str, name: Option<&str>) {
    let read = |path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (source, data) = (read(source), read(data));
    let data = hex::decode(data.trim().trim_start_matches("0x")).expect("hexadecimal digits");
    let mut chain = Chain::new(SpecId::OSAKA);
    let code = compile_named(&source, name.unwrap_or("HekatonVerifier"));
    let (address, creation) = chain.create(code);
    let (outcome, gas) = chain.call(address, data.clone());
    assert_eq!(outcome, Outcome::Accepted, "the contract refuses the proof");
    // Control: the last byte is of a term.
    let mut changed = data;
    *changed.last_mut().expect("calldata") ^= 1;
    let refused = chain.call(address, changed).0;
    match name {
        None => assert_eq!(refused, Outcome::Reverted("WrongSum")),
        Some(_) => assert_ne!(refused, Outcome::Accepted),
    }
    println!(
        "{}",
        json!({ "contract": name, "accepted": true, "gas": gas, "creation_gas": creation })
    );
}

fn main() {
    if let [source, data, name @ ..] = &std::env::args().skip(1).collect::<Vec<_>>()[..] {
        return call(source, data, name.first().map(String::as_str));
    }
    for n in [1, 2, 8, 64, 200] {
        let proven = proven(&Doublings { links: n, extra: 0 }, &Fr::from(3u64), true, [0; 32]);
        let data = calldata(&proven.public, &[0; 32], &proven.proof);
        for columns in [None, Some(&proven.columns)] {
            let form = if columns.is_some() { "family" } else { "single layout" };
            let contract = match Contract::new(&proven.key, columns) {
                Ok(contract) => contract,
                Err(error) => {
                    println!(
                        "{}",
                        json!({ "subcircuits": n, "keys": form, "error": error.to_string() })
                    );
                    continue;
                }
            };
            let mut chain = Chain::new(SpecId::OSAKA);
            let (address, creation) = chain.deploy(&contract);
            let (outcome, gas) = chain.call(address, data.clone());
            assert_eq!(outcome, Outcome::Accepted, "n = {n}, {form}");
            println!(
                "{}",
                json!({
                    "subcircuits": n, "keys": form, "gas": gas, "estimate": contract.gas().total(),
                    "creation_gas": creation, "data_contracts": contract.data().len(), "calldata_bytes": data.len(),
                })
            );
        }
    }
}
