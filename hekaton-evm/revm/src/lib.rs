//! An EVM with Hekaton's contract: compiles it, deploys it, and calls it.

use hekaton_core::circuit::{Circuit, Masking, PreparedCircuit};
use hekaton_core::protocol::DirectRun;
use hekaton_core::verifier::direct::Context;
use hekaton_core::{
    DirectKey, DirectProof, Fr, LocalEngine, ProveOptions, ProverKeys, Randomness, SetupOptions,
    derive, prove, setup_family,
};
use hekaton_evm::{Columns, Contract};
use revm::context::result::{ExecutionResult, HaltReason, Output};
use revm::context::{CfgEnv, Context as EvmContext, TxEnv};
use revm::database::{CacheDB, EmptyDB};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, Bytes, TxKind, U256};
use revm::{ExecuteCommitEvm, MainBuilder, MainContext};
use sha3::{Digest, Keccak256};
use std::convert::Infallible;
use std::io::Write;
use std::process::{Command, Stdio};

/// Compiles Hekaton's contract: [`compile_named`].
pub fn compile(source: &str) -> Vec<u8> {
    compile_named(source, "HekatonVerifier")
}

/// Compiles the contract with this name with solc, which `scripts/demo-evm` has installed in the folder that SOLC names.
/// Returns its creation code.
///
/// # Panics
/// With the compiler's errors.
pub fn compile_named(source: &str, name: &str) -> Vec<u8> {
    let folder = std::env::var("SOLC").expect("SOLC is the folder with solc's npm package");
    let script = "
const solc = require('solc');
const content = require('fs').readFileSync(0, 'utf8');
const settings = { evmVersion: 'prague', viaIR: true, optimizer: { enabled: true, runs: 1000000 },
    outputSelection: { '*': { '*': ['evm.bytecode.object'] } } };
const input = { language: 'Solidity', sources: { 'verifier.sol': { content } }, settings };
const output = JSON.parse(solc.compile(JSON.stringify(input)));
const errors = (output.errors || []).map(error => error.formattedMessage);
if (errors.length) { console.error(errors.join('\\n')); process.exit(1); }
process.stdout.write(output.contracts['verifier.sol'][process.argv[1]].evm.bytecode.object);";
    let mut child = Command::new("node")
        .args(["-e", script, name])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("needs node");
    child.stdin.take().expect("a pipe").write_all(source.as_bytes()).expect("node reads it");
    let output = child.wait_with_output().expect("node ends");
    assert!(output.status.success(), "solc refuses the contract, or has warnings");
    hex::decode(output.stdout).expect("hexadecimal digits")
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The proof was accepted.
    Accepted,
    /// The contract reverted with this error.
    Reverted(&'static str),
    /// It reverted with other data.
    OtherRevert(Vec<u8>),
    /// The call ran out of gas or failed in another way.
    Halted(HaltReason),
}

/// The errors of the contract.
const ERRORS: [&str; 8] = [
    "WrongNumberOfValues",
    "WrongLength",
    "NotReduced",
    "Pole",
    "WrongSum",
    "PrecompileFailed",
    "WrongProof",
    "WrongData",
];

/// A chain with nothing on it.
pub struct Chain {
    db: CacheDB<EmptyDB>,
    spec: SpecId,
    nonce: u64,
}

impl Chain {
    /// A chain with the rules of a hard fork.
    pub fn new(spec: SpecId) -> Self {
        Self { db: CacheDB::default(), spec, nonce: 0 }
    }

    fn transact(&mut self, kind: TxKind, data: Vec<u8>) -> ExecutionResult {
        let cfg = CfgEnv::new().with_spec_and_mainnet_gas_params(self.spec);
        let context = EvmContext::mainnet().with_db(&mut self.db).with_cfg(cfg);
        let mut evm =
            context.modify_block_chained(|block| block.gas_limit = 60_000_000).build_mainnet();
        let tx = TxEnv::builder()
            .kind(kind)
            .data(Bytes::from(data))
            .nonce(self.nonce)
            // The most that a transaction may have.
            .gas_limit(1 << 24)
            .gas_price(0)
            .value(U256::ZERO)
            .build()
            .expect("a transaction");
        self.nonce += 1;
        evm.transact_commit(tx).expect("a valid transaction")
    }

    /// Creates a contract with this code. Returns its address and the gas.
    ///
    /// # Panics
    /// When it cannot be created.
    pub fn create(&mut self, creation: Vec<u8>) -> (Address, u64) {
        match self.try_create(creation) {
            Ok(created) => created,
            Err(result) => panic!("{result:?}"),
        }
    }

    /// [`Self::create`], or why not.
    ///
    /// # Errors
    /// The result of the transaction.
    pub fn try_create(&mut self, creation: Vec<u8>) -> Result<(Address, u64), ExecutionResult> {
        match self.transact(TxKind::Create, creation) {
            ExecutionResult::Success { gas, output: Output::Create(_, Some(address)), .. } => {
                Ok((address, gas.total_gas_spent()))
            }
            other => Err(other),
        }
    }

    /// Creates the contract of a key, with its data contracts. Returns its address and all gas.
    pub fn deploy(&mut self, contract: &Contract) -> (Address, u64) {
        self.deploy_as(contract, contract.source())
    }

    /// [`Self::deploy`] with another source.
    pub fn deploy_as(&mut self, contract: &Contract, source: &str) -> (Address, u64) {
        let mut total = 0;
        let mut creation = compile(source);
        for part in contract.data() {
            let (address, gas) = self.create(part.creation.clone());
            total += gas;
            creation.extend([&[0; 12], &address.as_slice()[..]].concat());
        }
        let (address, gas) = self.create(creation);
        (address, total + gas)
    }

    /// Gives an account the code of another one.
    ///
    /// # Panics
    /// When one of them has none.
    pub fn move_code(&mut self, from: Address, to: Address) {
        let info = self.db.load_account(from).expect("an account").info.clone();
        let account = self.db.load_account(to).expect("an account");
        (account.info.code_hash, account.info.code) = (info.code_hash, info.code);
    }

    /// Calls a contract. Returns the outcome and the gas of the transaction.
    pub fn call(&mut self, contract: Address, data: Vec<u8>) -> (Outcome, u64) {
        let result = self.transact(TxKind::Call(contract), data);
        let used = result.tx_gas_used();
        let outcome = match result {
            ExecutionResult::Success { .. } => Outcome::Accepted,
            ExecutionResult::Revert { output, .. } => {
                let selector =
                    |name: &&&str| Keccak256::digest(format!("{name}()"))[..4] == output[..];
                match ERRORS.iter().find(selector) {
                    Some(name) => Outcome::Reverted(name),
                    None => Outcome::OtherRevert(output.to_vec()),
                }
            }
            ExecutionResult::Halt { reason, .. } => Outcome::Halted(reason),
        };
        (outcome, used)
    }
}

/// A proven statement with its key.
pub struct Proven {
    /// The key.
    pub key: DirectKey,
    /// The columns of its family.
    pub columns: Columns,
    /// The public values.
    pub public: Vec<Fr>,
    /// The proof.
    pub proof: DirectProof,
}

/// Proves a circuit under keys of a family with a known seed.
pub fn proven<C: Circuit>(circuit: &C, input: &C::Input, masks: bool, context: Context) -> Proven {
    let engine = LocalEngine::new(None).expect("threads");
    let prepared = PreparedCircuit::new(circuit).expect("a layout");
    let n = prepared.layout().instances();
    let options = SetupOptions::new("evm").insecure_seed(1).zero_knowledge(masks);
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<_, Infallible>(())
    };
    let family = setup_family(&prepared, n, &engine, &options, keep, |_| {}).expect("keys");
    let (aggregation, verifying) = derive(&family, &prepared, "{}", &engine).expect("its keys");
    let keys = ProverKeys { verifying, aggregation, types };
    let key = keys.direct_key(&engine).expect("sound keys");
    let wiring = prepared.layout().wiring(Masking::new(masks));
    let columns = Columns::new(&key, &family, &wiring).expect("columns of the family");
    let options = ProveOptions::new()
        .randomness(Randomness::seeded_not_zero_knowledge(1))
        .direct(DirectRun::new(&key, context));
    let run = prove(circuit, input, &keys, &engine, &options).expect("a proof");
    let proof = DirectProof::from_bytes(run.proof.as_bytes(), &key).expect("a direct proof");
    Proven { key, columns, public: run.public_values, proof }
}
