//! Jobs: one block of one chain.

use super::Order;
use crate::id::PARTITIONS;
use hekaton_orchestrator_client::{BadId, Digest, Name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The key under which a job is stored.
///
/// The slot of a block in a strict chain is its parent: at most one block at a time can follow another one. Otherwise, it is the
/// block itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobKey {
    /// The tenant that it belongs to.
    pub tenant: Name,
    /// The chain.
    pub chain: Name,
    /// The place in the chain.
    pub slot: Name,
}

impl JobKey {
    /// The partition whose owner makes the job's tasks.
    pub fn partition(&self) -> u8 {
        let parts = [&self.tenant, &self.chain, &self.slot].map(|name| name.as_str().as_bytes());
        let digest = Digest::of_parts("hekaton orchestrator 1 partition", parts);
        digest.as_bytes()[0] % PARTITIONS
    }

    /// Returns the prefix of the keys of a chain's jobs in a partition.
    pub(crate) fn prefix(partition: u8, tenant: &Name, chain: &Name) -> String {
        format!("job/{partition:02}/{tenant}/{chain}/")
    }

    /// The partition whose owner publishes for a chain.
    pub(crate) fn chain_partition(tenant: &Name, chain: &Name) -> u8 {
        let parts = [tenant, chain].map(|name| name.as_str().as_bytes());
        Digest::of_parts("hekaton orchestrator 1 chain", parts).as_bytes()[0] % PARTITIONS
    }
}

impl FromStr for JobKey {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let parts: Vec<&str> = text.split('/').collect();
        let &["job", _, tenant, chain, slot] = &parts[..] else {
            return Err(BadId::new(text, "the key of a job"));
        };
        let key = Self { tenant: tenant.parse()?, chain: chain.parse()?, slot: slot.parse()? };
        // One spelling for each key.
        if key.to_string() == text { Ok(key) } else { Err(BadId::new(text, "the key of a job")) }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::prefix(self.partition(), &self.tenant, &self.chain))?;
        f.write_str(self.slot.as_str())
    }
}

/// The handle by which clients name a job: its chain, its slot and the digest of its content. Its tenant is the one that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The chain.
    pub chain: Name,
    /// The place in the chain.
    pub slot: Name,
    /// [`Job::identity`].
    pub job: Digest,
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.chain, self.slot, self.job)
    }
}

impl FromStr for Handle {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let &[chain, slot, job] = &parts[..] else {
            return Err(BadId::new(text, "the handle of a job: CHAIN.PARENT.DIGEST"));
        };
        Ok(Self { chain: chain.parse()?, slot: slot.parse()?, job: job.parse()? })
    }
}

/// A block that is to be proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The tenant that it belongs to.
    pub tenant: Name,
    /// The chain.
    pub chain: Name,
    /// The chain's order.
    pub order: Order,
    /// Its height, by which the blocks of a chain are ordered when tasks are claimed.
    pub block: u64,
    /// Its name in the chain.
    pub id: Name,
    /// The block before it, where the order is strict.
    pub parent: Option<Name>,
    /// Urgency: 0 is the most urgent.
    pub lane: u8,
    /// The blob of the workflow.
    pub workflow: Digest,
    /// Blobs, by the names that the workflow has for them.
    pub inputs: BTreeMap<Name, Vec<Digest>>,
    /// The number of times that it was submitted or requeued after it had ended.
    pub generation: u32,
    /// The `traceparent` of the request that submitted it.
    pub trace: Option<String>,
    /// When it was accepted, in milliseconds since 1970.
    pub accepted: u64,
    /// The state of the job.
    pub state: JobState,
}

/// The state of a job. Only `Live` changes by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", deny_unknown_fields)]
pub enum JobState {
    /// Its tasks are made and run.
    Live,
    /// All its tasks are done.
    Done {
        /// Blobs, in the order of stages and indices.
        outputs: Vec<Digest>,
        /// The time at which it was done, in milliseconds since 1970.
        at: u64,
    },
    /// A task of it cannot be done.
    Dead {
        /// The task, and the reason.
        reason: String,
        /// The time at which it died, in milliseconds since 1970.
        at: u64,
    },
    /// It was dead, and an operator made its chain continue without it.
    Skipped {
        /// The time at which it was skipped, in milliseconds since 1970.
        at: u64,
    },
    /// It is no longer wanted.
    Cancelled {
        /// The reason.
        reason: String,
        /// The time at which it was cancelled, in milliseconds since 1970.
        at: u64,
    },
}

impl Job {
    /// The digest of what the job is: the same for every submission of the same block with the same content.
    pub fn identity(&self) -> Digest {
        // Urgency and trace are left out: a client that repeats a request may send others, and must
        // find the job that it has.
        let mut parts: Vec<Vec<u8>> = vec![
            self.tenant.as_str().into(),
            self.chain.as_str().into(),
            self.block.to_le_bytes().into(),
            self.id.as_str().into(),
            self.parent.as_ref().map_or(vec![], |parent| parent.as_str().into()),
            self.workflow.as_bytes().into(),
        ];
        for (name, blobs) in &self.inputs {
            parts.push(name.as_str().into());
            parts.push(blobs.iter().flat_map(|blob| *blob.as_bytes()).collect());
        }
        Digest::of_parts("hekaton orchestrator 1 job", parts.iter().map(Vec::as_slice))
    }

    /// Returns the key under which it is stored.
    pub fn key(&self) -> JobKey {
        let slot = self.parent.as_ref().unwrap_or(&self.id).clone();
        JobKey { tenant: self.tenant.clone(), chain: self.chain.clone(), slot }
    }

    /// Returns the handle by which clients name it.
    pub fn handle(&self) -> Handle {
        let JobKey { chain, slot, .. } = self.key();
        Handle { chain, slot, job: self.identity() }
    }

    /// Reports whether its tasks are to be run.
    pub fn is_live(&self) -> bool {
        self.state == JobState::Live
    }
}
