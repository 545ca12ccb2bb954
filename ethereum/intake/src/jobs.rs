//! The orchestrator that proves, and the chain of a folder.

use hekaton_orchestrator::Client;

/// Where jobs go.
#[derive(Debug)]
pub struct Jobs {
    /// The orchestrator.
    pub client: Client,
    /// The chain. A new one has strict order.
    pub chain: String,
    /// The block before the first one of a new chain: without it, the parent of the lowest block that is there.
    pub genesis: Option<String>,
    /// What proves.
    pub backend: String,
}
