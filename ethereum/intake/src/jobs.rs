//! The orchestrator that proves, and the chain of a folder.

use hekaton_orchestrator_client::Client;

/// The orchestrator and the chain that jobs go to.
#[derive(Debug)]
pub struct Jobs {
    /// The orchestrator.
    pub client: Client,
    /// The chain. A new one has strict order.
    pub chain: String,
    /// The block before the first one of a new chain; by default, the parent of the lowest known block.
    pub genesis: Option<String>,
    /// The back-end that proves.
    pub backend: String,
}
