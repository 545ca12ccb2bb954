//! The bodies of requests and answers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The examples in the description of the API. A new service that has a back-end `prove` accepts a blob, a workflow, a chain, a job
/// and a re-org, in this order.
#[cfg(feature = "openapi")]
pub mod example {
    use serde_json::{Value, json};

    const BLOB: &str = "7028f9f4f372d69a6f06a35ec346713d0ced1a0c8dab00d9dacb1eb777da03d0";
    const CHAIN: &str = "main";

    /// The content of a blob.
    pub fn content() -> Value {
        "the input of a block".into()
    }

    /// Its digest.
    pub fn blob() -> Value {
        BLOB.into()
    }

    /// A workflow of one stage.
    pub fn workflow() -> Value {
        "version = 1\nname = \"single\"\n\n[inputs.chunks]\n\n[[stages]]\nname = \"prove\"\nfrom = [\"chunks\"]\nbackend = \"prove\"\n"
            .into()
    }

    /// The name of a chain.
    pub fn chain() -> Value {
        CHAIN.into()
    }

    /// The body of the request that makes the chain.
    pub fn chain_body() -> Value {
        json!({ "order": "strict", "genesis": "genesis" })
    }

    /// A job.
    pub fn job_body() -> Value {
        json!({
            "chain": CHAIN, "block": 1, "id": "b1", "parent": "genesis", "backend": "prove", "inputs": { "input": [BLOB] },
        })
    }

    /// The handle of that job.
    pub fn job() -> Value {
        "main.genesis.11987f601952d2d233886b2a2ce7ccdb94f6a0dc2767fcd91974b70f4a464d0b".into()
    }

    /// A re-org.
    pub fn reorg_body() -> Value {
        json!({ "to": "genesis", "block": 0 })
    }
}

/// The order in which the blocks of a chain are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Each after its parent.
    Strict,
    /// As they are finished.
    None,
}

/// A block that is to be proven.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(example = example::job_body))]
pub struct JobBody {
    /// The chain.
    pub chain: String,
    /// The height.
    #[serde(default)]
    pub block: u64,
    /// The block's name. Without it, a digest of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The block before it, where the chain has strict order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Urgency, 0 is the most urgent. Each minute of waiting makes a task one lane more urgent.
    #[serde(default)]
    pub lane: u8,
    /// The digest of a workflow that was sent before. Either this or `backend`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// A back-end that receives each input as a separate task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Digests of blobs that were sent before, by the names of the workflow's inputs. With `backend`, the name is `input`.
    pub inputs: BTreeMap<String, Vec<String>>,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobStatus {
    /// The handle by which requests name it.
    pub job: String,
    /// The chain.
    pub chain: String,
    /// The height.
    pub block: u64,
    /// The block's name.
    pub id: String,
    /// `live`, `done`, `dead`, `skipped` or `cancelled`.
    pub state: String,
    /// Blobs of a job that is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Why it is dead or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of times that it was submitted or requeued after it had ended.
    pub generation: u32,
    /// When it was accepted, in milliseconds since 1970.
    pub accepted: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Its `traceparent`: the one it was submitted with, or a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Back-ends that it waits for and that no live process has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A job with its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// The job.
    #[serde(flatten)]
    pub job: JobStatus,
    /// The number of tasks in each state.
    pub tasks: BTreeMap<String, u32>,
    /// The ids of those that run.
    pub running: Vec<String>,
}

/// Open jobs, and the last ones that have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobsBody {
    /// The jobs, in no order.
    pub jobs: Vec<JobView>,
    /// Blocks that stand still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standing_still: Vec<StandstillBody>,
}

/// A part of the dead jobs of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadBody {
    /// The jobs, by height and name. An empty list is the end.
    pub jobs: Vec<JobStatus>,
}

/// A block that was accepted, is not published, and will not be without help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StandstillBody {
    /// The chain.
    pub chain: String,
    /// The height.
    pub block: u64,
    /// The block's name.
    pub id: String,
    /// The cause: what it waits for, and what can be done.
    pub cause: String,
    /// The time for which nothing has happened to it, in seconds.
    pub seconds: u64,
    /// `true` if its chain publishes nothing and nothing runs for it.
    pub halts: bool,
}

/// A process that is alive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerView {
    /// Its session.
    pub session: String,
    /// The machine.
    pub host: String,
    /// The process on it.
    pub pid: u32,
    /// The number of tasks that it can run at the same time.
    pub slots: u32,
    /// The number of tasks that it runs now, for all tenants.
    pub busy: usize,
    /// The back-ends that it has and trusts.
    pub backends: Vec<String>,
    /// Back-ends that it does not trust, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quarantined: BTreeMap<String, String>,
    /// `true` if it makes tasks and publishes.
    pub collects: bool,
    /// `true` if it claims no more tasks.
    pub draining: bool,
    /// The progress of the tenant's own tasks, from 0 to 1.
    pub running: BTreeMap<String, f32>,
}

/// A chain that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(example = example::chain_body))]
pub struct ChainBody {
    /// `strict` or `none`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub order: Order,
    /// The parent of the first block, where the order is strict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub genesis: Option<String>,
    /// The source of its blocks, if they are bundles of another chain's blocks and no client submits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundles: Option<BundlesBody>,
}

/// The source of a chain of bundles: another chain, whose published blocks are bundled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BundlesBody {
    /// The other chain, with strict order.
    pub of: String,
    /// The number of its blocks that make a bundle.
    pub blocks: u32,
    /// The digest of a workflow (`POST /v1/workflows`).
    pub workflow: String,
    /// The workflow's input that receives the outputs of the blocks.
    pub input: String,
    /// The urgency of its jobs: 0 is the most urgent.
    #[serde(default)]
    pub lane: u8,
}

/// The state of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChainState {
    /// Its name.
    pub chain: String,
    /// `strict` or `none`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub order: Order,
    /// The parent of the first block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub genesis: Option<String>,
    /// The source of its blocks, if they are bundles of another chain's blocks and no client submits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundles: Option<BundlesBody>,
    /// The last published block, which the next one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    /// Its height.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u64>,
    /// The last block that was accepted after `tail`: the parent of the next block to submit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// The height of `tip`; `None` if `tip` is the genesis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip_height: Option<u64>,
}

/// The block after which a chain is torn off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RevertBody {
    /// The last block that stays; the genesis to remove all blocks.
    pub to: String,
    /// Its height.
    pub block: u64,
}

/// The block after which a chain is torn off, and the one that follows it instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(example = example::reorg_body))]
pub struct ReorgBody {
    /// The last block that stays; the genesis to remove all blocks.
    pub to: String,
    /// Its height.
    pub block: u64,
    /// The block that is to follow. If it already does, nothing is removed, so the request can be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A part of what a chain has published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProofsBody {
    /// Oldest first.
    pub proofs: Vec<ProofBody>,
    /// The revision to send as `from` of the next request.
    pub next: u64,
}

/// An entry of the log of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProofBody {
    /// Its revision; that of the last entry is the `from` of the next request.
    pub rev: u64,
    /// `block`, `skip` or `revert`.
    pub entry: String,
    /// The block; of a revert, the last one that stays.
    pub id: String,
    /// Its height.
    pub block: u64,
    /// The block before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Blobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
}

/// A workflow that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowBody {
    /// The digest by which jobs name it.
    pub workflow: String,
    /// Its name.
    pub name: String,
}

/// A blob that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BlobBody {
    /// Its BLAKE3 digest.
    pub blob: String,
    /// Its length.
    pub bytes: u64,
}

/// The state of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HealthBody {
    /// Its version.
    pub version: String,
    /// Its session.
    pub session: String,
    /// The place where it keeps its records.
    pub store: String,
    /// `true` if it claims no more tasks.
    pub draining: bool,
}
