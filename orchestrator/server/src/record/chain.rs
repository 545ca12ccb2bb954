//! Chains, what they have published, and who looks after a partition.

use super::SessionId;
use hekaton_orchestrator_client::{Digest, Name, Order};
use serde::{Deserialize, Serialize};

/// A chain of blocks, each with a job. Never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The tenant that it belongs to.
    pub tenant: Name,
    /// Its name.
    pub chain: Name,
    /// The order in which blocks are published.
    pub order: Order,
    /// The parent of the first block. Only where the order is strict.
    pub genesis: Option<Name>,
    /// The source of its blocks, if they are bundles of another chain's blocks and no client submits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundles: Option<Bundles>,
}

/// A chain whose blocks are bundles: each is a job over the outputs of a fixed number of blocks of another chain, made when
/// these are published, and torn off when one of them is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundles {
    /// The other chain, of the same tenant, with strict order.
    pub of: Name,
    /// The number of its blocks that make a bundle. Skipped ones do not count.
    pub blocks: u32,
    /// The blob of the workflow that a bundle's job has.
    pub workflow: Digest,
    /// The workflow's input that receives the outputs, in the order of their blocks.
    pub input: Name,
    /// The urgency of its jobs: 0 is the most urgent.
    #[serde(default)]
    pub lane: u8,
}

/// An entry of a chain's log of publications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "lowercase", deny_unknown_fields)]
pub enum Publication {
    /// A block whose proof is there.
    Block {
        /// Its height.
        block: u64,
        /// Its name.
        id: Name,
        /// The block before it.
        parent: Name,
        /// The generation of its job.
        generation: u32,
        /// The identity of its job.
        job: Digest,
        /// Blobs, in the order of stages and indices.
        outputs: Vec<Digest>,
    },
    /// All blocks after this one were removed from the chain.
    Revert {
        /// The last block that stays.
        to: Name,
        /// Its height.
        block: u64,
    },
    /// An operator gave a block up.
    Skip {
        /// Its height.
        block: u64,
        /// Its name, which is the tail now.
        id: Name,
        /// The block before it.
        parent: Name,
    },
}

impl Publication {
    /// Returns the parent of the next block.
    pub fn tail(&self) -> &Name {
        match self {
            Self::Block { id, .. } | Self::Skip { id, .. } => id,
            Self::Revert { to, .. } => to,
        }
    }

    /// The height of the tail.
    pub fn height(&self) -> u64 {
        match self {
            Self::Block { block, .. } | Self::Skip { block, .. } | Self::Revert { block, .. } => {
                *block
            }
        }
    }
}

/// The owner of a partition, which makes the tasks of its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// The owner; `None` if the partition was given back.
    pub session: Option<SessionId>,
}

/// The oldest block to which a chain with strict order can be reverted. The jobs of published blocks before it may be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// The block's name.
    pub id: Name,
    /// Its height.
    pub block: u64,
}

/// A place of a chain with strict order, named by the block before it, in which a block is published whose job may be removed: no
/// other block is ever accepted in this place, nor under the name of the block before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    /// The published block.
    pub id: Name,
}

/// Returns the key under which a chain is stored.
pub fn chain_key(tenant: &Name, chain: &Name) -> String {
    format!("chain/{tenant}/{chain}")
}

/// Returns the name of the log of what a chain has published.
pub fn log_name(tenant: &Name, chain: &Name) -> String {
    format!("out/{tenant}/{chain}")
}

/// Returns the key under which a publication is stored if the chain has no order.
pub fn publication_key(tenant: &Name, chain: &Name, id: &Name) -> String {
    format!("published/{tenant}/{chain}/{id}")
}

/// Returns the key under which the floor of a chain is stored.
pub fn floor_key(tenant: &Name, chain: &Name) -> String {
    format!("floor/{tenant}/{chain}")
}

/// Returns the key under which a passed place is stored.
pub fn passed_key(tenant: &Name, chain: &Name, slot: &Name) -> String {
    format!("passed/{tenant}/{chain}/{slot}")
}

/// Returns the key under which the owner of a partition is stored.
pub fn owner_key(partition: u8) -> String {
    format!("owner/{partition:02}")
}
