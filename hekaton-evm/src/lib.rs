//! Direct proofs on the EVM (spec: direct#contract): the Solidity contract that verifies proofs under one
//! key, the calldata of its calls, and an estimate of their gas.
//!
//! ```
//! # use hekaton_core::{LocalEngine, SetupOptions, setup};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = LocalEngine::new(None)?;
//! # let options = SetupOptions::new("test").insecure_seed(1);
//! let keys = setup(&hekaton_testing::Squarings, &engine, &options)?;
//! let key = keys.direct_key(&engine)?;
//! let contract = hekaton_evm::Contract::new(&key, None)?;
//! assert!(contract.source().contains("function verify(uint256[] calldata x"));
//! # Ok(())
//! # }
//! ```

mod calldata;
mod columns;
mod contract;
mod data;
mod error;
mod gas;

pub use calldata::calldata;
pub use columns::Columns;
pub use contract::{Contract, DataContract};
pub use error::ContractError;
pub use gas::{Gas, LIMIT};
