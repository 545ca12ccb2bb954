//! The record of a block and of the witness that came with it.

use crate::branch::{Link, hash};
use crate::canonical::LeftOut;
use alloy_primitives::B256;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of records.
pub(crate) const VERSION: u32 = 1;

/// The way in which a witness arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The service fetched it from a node.
    Fetch,
    /// The service copied it as it passed from a node to its caller.
    Proxy,
    /// A client sent it.
    Push,
}

impl Source {
    /// Returns the name that records have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Proxy => "proxy",
            Self::Push => "push",
        }
    }
}

/// The origin of a witness: the way in which it arrived, and the `traceparent` of the request, if it had one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The source of the witness.
    pub source: Source,
    /// `true` if it arrived as JSON, which has no canonical form, so that it is always converted.
    pub json: bool,
    /// The `traceparent` (W3C Trace Context).
    pub trace: Option<String>,
}

impl From<Source> for Origin {
    fn from(source: Source) -> Self {
        Self { source, json: false, trace: None }
    }
}

/// The longest `traceparent` that is kept.
// A `traceparent` has 55 bytes in version 00, and may have more in later ones. Records must not
// grow with whatever a caller sends.
const MAX_TRACE: usize = 128;

impl Origin {
    /// Returns the origin of a witness whose request has these headers.
    pub(crate) fn of(source: Source, headers: &axum::http::HeaderMap) -> Self {
        // A trace that cannot be used is ignored (W3C Trace Context, 3.2): it must not cost the witness.
        let sent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        let trace = sent.filter(|trace| trace.len() <= MAX_TRACE).map(str::to_owned);
        Self { source, json: false, trace }
    }

    /// Returns the same origin, with the given value of `json`.
    pub(crate) fn with_json(self, json: bool) -> Self {
        Self { json, ..self }
    }
}

/// The record of a block: `blocks/HASH.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version, which is 1.
    pub version: u32,
    /// The way in which the witness arrived.
    pub source: Source,
    /// The hash of the block, as 64 hexadecimal digits.
    pub block: String,
    /// Its height.
    pub number: u64,
    /// The hash of its parent.
    pub parent: String,
    /// The blob of the witness, in SSZ.
    pub witness: String,
    /// The blob of the block: an `ExecutionPayloadEnvelope`.
    pub envelope: String,
    /// The number of bytes of the witness.
    pub bytes: u64,
    /// The number of headers.
    pub headers: usize,
    /// The number of trie nodes.
    pub nodes: usize,
    /// The number of codes.
    pub codes: usize,
    /// The time at which it was last accepted, in milliseconds since 1970.
    pub accepted: u64,
    /// The number of the payload, which rises with each accepted one: the branch of the last one is followed. Records of earlier
    /// versions have none.
    #[serde(default)]
    pub order: u64,
    /// `true` if a job is to be made of it, or made again: it was cancelled, or the block has come back.
    pub pending: bool,
    /// `true` if another branch is followed, so that its job is cancelled. It is made again when this branch comes back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
    /// The job that proves it, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The `traceparent` of the request that it came with, which its job has as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The blob of the senders' public keys, if they came with the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_keys: Option<String>,
    /// The blobs of other witnesses of the block, which are not used.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub others: BTreeSet<String>,
    /// The items that were left out of the witness that came, if it was not in canonical form.
    #[serde(default, skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
    /// The reason why there is no job yet, why there will be none until the block is sent again, or why the job does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Record {
    /// Returns all blobs that the record names.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = String> {
        let own = [&self.witness, &self.envelope].into_iter().chain(&self.public_keys);
        own.chain(&self.others).cloned()
    }

    /// Returns the fields that the choice of a branch needs; `None` if the hashes are malformed.
    pub(crate) fn link(&self) -> Option<(B256, Link)> {
        let link = Link {
            parent: hash(&self.parent)?,
            number: self.number,
            order: (self.order, self.accepted),
            pending: self.pending,
            job: self.job.is_some(),
            refused: self.refused.is_some() && !self.pending,
            aside: self.aside,
        };
        Some((hash(&self.block)?, link))
    }

    /// Returns the record of a block that has arrived again. It may be back after a re-org; submitting the same job again is harmless.
    pub(crate) fn again(self, accepted: u64) -> Self {
        Self { accepted, pending: true, aside: false, refused: None, ..self }
    }

    /// Returns the record with another witness of the block added to its unused ones.
    pub(crate) fn beside(mut self, witness: String) -> Self {
        if witness != self.witness {
            self.others.insert(witness);
        }
        self
    }
}
