//! Bodies of requests to the service and of its answers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most bytes that a request uploads at a time.
pub(crate) const PIECE: usize = 4 << 20;

/// The public state of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StatusBody {
    /// The digest of the genesis.
    pub(crate) ceremony: String,
    /// The title of the ceremony.
    pub(crate) title: String,
    /// `true` once the ceremony is finished and accepts no more contributions.
    pub(crate) finished: bool,
    /// `true` if contributors need an invitation.
    pub(crate) invited: bool,
    /// The chains.
    pub(crate) chains: Vec<ChainBody>,
    /// The number of contributors that wait.
    pub(crate) waiting: usize,
    /// The number of contributors whose turn it is.
    pub(crate) active: usize,
    /// The time for a turn, in seconds. It is extended while an upload arrives.
    pub(crate) deadline: u64,
}

/// The end of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChainBody {
    /// The name of the chain.
    pub(crate) chain: String,
    /// The number of records.
    pub(crate) records: usize,
    /// The head after the last one.
    pub(crate) head: String,
}

/// A contributor's request for a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlotRequest {
    /// 64 random hexadecimal digits of the contributor's choice, so that a repeated request gets the same slot.
    pub(crate) token: String,
    /// The name for the record.
    pub(crate) name: String,
    /// The chains.
    pub(crate) chains: Vec<String>,
    /// The code of the contributor's invitation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) invitation: Option<String>,
}

/// The statement that an upload is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadedBody {
    /// The BLAKE3 digest of the contribution.
    pub(crate) blake3: String,
}

/// A slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(crate) enum SlotBody {
    /// Others come first.
    Waiting {
        /// The number of slots before this one.
        before: usize,
        /// The seconds after which to ask again.
        ask_again: u64,
    },
    /// It is this contributor's turn.
    Active {
        /// The head of each chain, to which a contribution must be made.
        heads: BTreeMap<String, String>,
        /// The seconds that are left.
        seconds: u64,
        /// The bytes that were uploaded.
        received: u64,
    },
    /// The contribution is here and will be checked, whatever happens to the connection.
    Verifying {
        /// The seconds after which to ask again.
        ask_again: u64,
        /// The reason why the service cannot check the contribution now, if there is one. Its operator must remove the cause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
    },
    /// The records are in the transcript.
    Accepted,
    /// The contribution was refused.
    Refused {
        /// The reason.
        why: String,
    },
    /// The deadline has passed.
    Expired,
}
