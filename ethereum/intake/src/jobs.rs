//! The orchestrator to which jobs are submitted, and their chain.

use hekaton_orchestrator_client::Client;

/// The orchestrator and the chain that jobs go to.
#[derive(Debug)]
pub struct Jobs {
    /// The orchestrator.
    pub client: Client,
    /// The chain. If it does not exist, it is created with strict order.
    pub chain: String,
    /// The block before the first one of a new chain; by default, the parent of the lowest known block.
    pub genesis: Option<String>,
    /// The back-end that proves the witnesses.
    pub backend: String,
}
