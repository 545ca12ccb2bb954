//! The Solidity contract of a direct key: a template, and the data of the key in the places that the
//! template reads.

use crate::columns::Columns;
use crate::data::Data;
use crate::error::ContractError;
use crate::gas::{self, Gas};
use hekaton_core::verifier::DirectKey;
use sha3::{Digest, Keccak256};
use std::fmt::Write;

const TEMPLATE: &str = include_str!("verifier.sol");

/// The most bytes of data in the contract's own code, which the EVM limits to 24,576 bytes: the program takes about 5,000, and a
/// word of data up to 40 bytes.
const MOST_DATA: usize = 14_000;

/// The most bytes of data in a contract of its own, behind a byte that keeps it from being executed.
const MOST_IN_CONTRACT: usize = 24_575;

/// Code that holds a part of the key's data. The contract reads it, and compares its hash, in each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataContract {
    /// The code that creates it.
    pub creation: Vec<u8>,
    /// The keccak-256 of its code.
    pub code_hash: [u8; 32],
}

/// The contract of a direct key.
#[derive(Clone, Debug)]
pub struct Contract {
    source: String,
    data: Vec<DataContract>,
    gas: Gas,
}

impl Contract {
    /// Writes the contract of a key. With the columns of its family, types whose public parts cost less by
    /// columns have those.
    ///
    /// # Errors
    /// When the columns are those of another key, or verifying would take more gas than
    /// [`LIMIT`](crate::LIMIT), as estimated.
    pub fn new(key: &DirectKey, columns: Option<&Columns>) -> Result<Self, ContractError> {
        if columns.is_some_and(|columns| columns.key != key.digest()) {
            return Err(ContractError::Columns);
        }
        let instances = key.instances();
        let refused = |gas| Err(ContractError::Gas { instances, gas });
        // First, so that the numbers of points below fit into their two bytes.
        let least = gas::at_least(key);
        if least > gas::LIMIT {
            return refused(least);
        }
        let data = Data::new(key, columns);
        let gas = Gas::estimate(key, &data.sizes());
        if gas.total() > gas::LIMIT {
            return refused(gas.total());
        }
        let bytes = data.bytes();
        let parts: Vec<DataContract> = match bytes.len() <= MOST_DATA {
            true => Vec::new(),
            false => bytes.chunks(MOST_IN_CONTRACT).map(data_contract).collect(),
        };
        let source = source(key, &data, &bytes, &parts);
        Ok(Self { source, data: parts, gas })
    }

    /// The file in Solidity.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The contracts whose addresses the constructor takes, in order; none for small keys, which are in
    /// the contract itself.
    pub fn data(&self) -> &[DataContract] {
        &self.data
    }

    /// The estimated gas of a transaction that verifies a proof.
    pub fn gas(&self) -> &Gas {
        &self.gas
    }
}

/// A contract of data: its code is 00, which stops, and the data.
fn data_contract(bytes: &[u8]) -> DataContract {
    let code = [&[0], bytes].concat();
    let size = u16::try_from(code.len()).expect("a chunk has at most 24,575 bytes").to_be_bytes();
    // PUSH2 size, DUP1, PUSH1 10, PUSH0, CODECOPY, PUSH0, RETURN
    let mut creation = vec![0x61, size[0], size[1], 0x80, 0x60, 10, 0x5f, 0x39, 0x5f, 0xf3];
    let code_hash = Keccak256::digest(&code).into();
    creation.extend(code);
    DataContract { creation, code_hash }
}

/// Fills the template.
fn source(key: &DirectKey, data: &Data, bytes: &[u8], parts: &[DataContract]) -> String {
    let vk = key.verifying();
    let tables = data.tables();
    let mut ends = tables.iter().scan(0, |at, table| {
        *at += table.len();
        Some(*at)
    });
    let mut end = || ends.next().expect("four tables").to_string();
    let (of_types, of_instances, of_slots, of_points) = (end(), end(), end(), end());
    let sizes = data.sizes();
    let of_bases = bytes.len() - 256 * data.g2.len();
    let values = [
        ("KEY", format!("0x{}", hex::encode(key.digest()))),
        ("INSTANCES", key.instances().to_string()),
        ("TYPES", key.types().len().to_string()),
        ("THETAS", sizes.thetas.to_string()),
        ("PUBLIC", vk.public.len().to_string()),
        ("CONSTANTS", vk.constants.len().to_string()),
        ("POINTS", sizes.points.to_string()),
        ("BUSES", key.has_buses().to_string()),
        ("OF_TYPES", of_types),
        ("OF_INSTANCES", of_instances),
        ("OF_SLOTS", of_slots),
        ("OF_POINTS", of_points),
        ("OF_BASES", of_bases.to_string()),
    ];
    let mut out = TEMPLATE.to_owned();
    for (name, value) in values {
        for place in ["0", "false"] {
            out = out.replace(&format!("/*@{name}*/ {place};"), &format!("{value};"));
        }
    }
    let (errors, code) = match parts {
        [] => (String::new(), own_data(bytes)),
        parts => (
            "/// A data contract is not that of the key.\n    error WrongData();".to_owned(),
            other_data(parts, bytes),
        ),
    };
    let header = header(key);
    out = out.replace("//@HEADER\n", &header).replace("//@DATA", &code);
    match errors.is_empty() {
        true => out.replace("    //@ERRORS\n", ""),
        false => out.replace("//@ERRORS", &errors),
    }
}

/// The comment with what a reader of the file must know about its key.
fn header(key: &DirectKey) -> String {
    let vk = key.verifying();
    let mut out =
        format!("//\n// Digest of the verifying key (BLAKE3): {}\n", hex::encode(vk.digest()));
    let mut line = |text: &str| writeln!(out, "// {text}").expect("strings take all text");
    line(&format!("{} subcircuits of {} types", vk.instances, vk.types.len()));
    line(&format!("Trust: {}", vk.trust.statement()));
    if !vk.zero_knowledge {
        line("THESE PROOFS ARE NOT ZERO-KNOWLEDGE: anybody confirms a guess of the witness.");
    }
    out
}

/// The function that returns the data of a small key.
fn own_data(bytes: &[u8]) -> String {
    let mut out = String::from("bytes private constant DATA =\n");
    for line in bytes.chunks(48) {
        writeln!(out, "        hex\"{}\"", hex::encode(line)).expect("strings take all text");
    }
    out.truncate(out.len() - 1);
    out.push_str(
        ";

    /// The data of the key, in memory.
    function keyData() private pure returns (uint256 data) {
        bytes memory all = DATA;
        assembly (\"memory-safe\") {
            data := add(all, 32)
        }
    }",
    );
    out
}

/// The constructor that takes the addresses of data contracts, and the function that reads them.
fn other_data(parts: &[DataContract], bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "    {text}").expect("strings take all text");
    for (i, _) in parts.iter().enumerate() {
        line(format!("address private immutable data{i};"));
    }
    line(String::new());
    line("/// Takes the addresses of the data contracts, in order.".into());
    line(format!("constructor(address[{}] memory addresses) {{", parts.len()));
    for (i, _) in parts.iter().enumerate() {
        line(format!("    data{i} = addresses[{i}];"));
    }
    line("    keyData();".into());
    line("}".into());
    line(String::new());
    line("/// The data of the key, in memory. The hashes are compared in each call: an account whose code deletes itself".into());
    line("/// in the transaction that creates it can have other code later.".into());
    line("function keyData() private view returns (uint256 data) {".into());
    for (i, part) in parts.iter().enumerate() {
        let hash = hex::encode(part.code_hash);
        line(format!("    address from{i} = data{i};"));
        line(format!("    if (from{i}.codehash != 0x{hash}) revert WrongData();"));
    }
    line("    assembly (\"memory-safe\") {".into());
    line("        data := mload(0x40)".into());
    let end = bytes.len().next_multiple_of(32);
    line(format!("        mstore(0x40, add(data, {end}))"));
    for (i, chunk) in bytes.chunks(MOST_IN_CONTRACT).enumerate() {
        let at = i * MOST_IN_CONTRACT;
        line(format!("        extcodecopy(from{i}, add(data, {at}), 1, {})", chunk.len()));
    }
    line("    }".into());
    line("}".into());
    out.trim().to_owned()
}
