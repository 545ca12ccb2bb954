//! Bodies of requests and answers.

use crate::base64::Base64;
use serde::{Deserialize, Serialize};

/// The most records that one answer has.
pub const MAX_RECORDS: u32 = 1 << 12;

/// The most proofs that one list has: to list them, the server reads them.
pub const MAX_PROOFS: usize = 1 << 9;

/// The progress of an update, or of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The update is on the server's disk, and will have an outcome.
    Accepted,
    /// It is in the signed record of an epoch.
    Visible,
    /// A proof of that epoch is attached, which the server has verified. This is the server's claim: auditors verify
    /// the proof themselves.
    Proven,
    /// The update was not done, and will not be.
    Refused,
}

impl State {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Visible => "visible",
            Self::Proven => "proven",
            Self::Refused => "refused",
        }
    }
}

/// An update that is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateBody {
    /// The label: 1 to 1,024 bytes of UTF-8.
    pub label: String,
    /// The value as text, at most 65,536 bytes of UTF-8; or `value_base64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The value as bytes, at most 65,536 of them; or `value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<Base64>,
    /// The version that the label must have before the update; `"absent"` if it must have none. Without it, any will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedBody>,
    /// A name for this update, 1 to 128 bytes, long and random: sent again with the same name, it is done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// The version that a label must have before an update: a number, or `"absent"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExpectedBody {
    /// This version.
    Version(u32),
    /// None: the label is new.
    Absent(Absent),
}

/// The word `"absent"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Absent {
    /// The label has no value.
    Absent,
}

/// The status of an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct UpdateStatus {
    /// The number of the update, to ask again.
    pub number: u64,
    /// The progress of the update.
    pub state: State,
    /// The first epoch whose record has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// The version of the label since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The reason why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `true` if it was sent before with the same idempotency key; `number` is then the earlier one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

impl UpdateStatus {
    /// Returns the status of an update that was just accepted.
    pub fn accepted(number: u64, repeated: bool) -> Self {
        let (epoch, version, reason) = (None, None, None);
        Self { number, state: State::Accepted, epoch, version, reason, repeated }
    }
}

/// The directory's answer for a label. Everything but the state can be verified
/// ([`KeyBody::verify`](crate::body::KeyBody::verify)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct KeyBody {
    /// The epoch.
    pub epoch: u32,
    /// The state of the epoch: visible, or proven.
    pub state: State,
    /// The signed record of the epoch, 285 bytes.
    pub record: Base64,
    /// The path of the label in the tree.
    pub path: Base64,
    /// The value, unless the label has none or it is erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentBody>,
}

/// The value that a label has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct CurrentBody {
    /// The commitment to the values before it, 32 bytes.
    pub before: Base64,
    /// The salt of the value, 32 bytes.
    pub salt: Base64,
    /// The value.
    pub value: Base64,
}

/// All values that a label has had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct HistoryBody {
    /// The epoch.
    pub epoch: u32,
    /// The state of the epoch: visible, or proven.
    pub state: State,
    /// The signed record of the epoch.
    pub record: Base64,
    /// The path of the label in the tree.
    pub path: Base64,
    /// The values, with their salts.
    pub history: Base64,
}

/// An epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct EpochBody {
    /// The number.
    pub epoch: u32,
    /// The state of the epoch: visible, or proven.
    pub state: State,
    /// The signed record.
    pub record: Base64,
    /// The number of labels.
    pub leaves: u64,
    /// The number of updates so far.
    pub updates: u64,
    /// The time at which it was closed, in seconds since 1970.
    pub closed: u64,
    /// The root of the tree, as 64 hexadecimal digits.
    pub root: String,
}

/// All epochs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct EpochsBody {
    /// The last one.
    pub last: EpochBody,
    /// The last one up to which all are proven; 0 if none is.
    pub proven: u32,
    /// The first one that look-ups are answered of; those before it are pruned.
    pub first: u32,
}

/// Records of epochs in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct RecordsBody {
    /// Signed records, at most 4,096.
    pub records: Vec<Base64>,
    /// The roots of the largest complete subtrees of the tree of all records before the first one, the smallest subtree first, as digests
    /// of 32 bytes. An audit that begins at the first one needs them.
    pub before: Base64,
}

/// The proof that the record of an epoch continues the history of an earlier one
/// ([`verify`](crate::body::ContinuationBody::verify)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct ContinuationBody {
    /// The proof that the earlier record is in the tree of records of the later one (RFC 9162, section 2.1.3), as digests of 32 bytes.
    pub entry: Base64,
    /// The proof that this tree continues that of the earlier record (RFC 9162, section 2.1.4), as digests of 32 bytes.
    pub before: Base64,
}

/// The proofs that are attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct ProofsBody {
    /// The proofs in the order of epochs, at most 512.
    pub proofs: Vec<ProofRange>,
}

/// The epochs that a proof is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct ProofRange {
    /// The epoch before the first one.
    pub from: u32,
    /// The last one.
    pub to: u32,
}

/// A proof of epochs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct ProofBody {
    /// The epoch before the first one.
    pub from: u32,
    /// The last one.
    pub to: u32,
    /// The number of subcircuits with steps, on which the verifying key depends.
    pub subcircuits: u32,
    /// The proof.
    pub proof: Base64,
}

impl From<hekaton_directory::EpochProof> for ProofBody {
    fn from(proof: hekaton_directory::EpochProof) -> Self {
        let hekaton_directory::EpochProof { from, to, subcircuits, proof } = proof;
        Self { from, to, subcircuits, proof: Base64(proof) }
    }
}

impl From<ProofBody> for hekaton_directory::EpochProof {
    fn from(body: ProofBody) -> Self {
        let ProofBody { from, to, subcircuits, proof } = body;
        Self { from, to, subcircuits, proof: proof.0 }
    }
}

/// The health of the service, for monitoring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct HealthBody {
    /// The last epoch.
    pub epoch: u32,
    /// The last epoch up to which all are proven.
    pub proven: u32,
    /// The number of attempts to prove that have failed; the log of the service says why.
    pub proof_failures: u64,
    /// `true` if the service proves epochs.
    #[serde(default)]
    pub proves: bool,
}
