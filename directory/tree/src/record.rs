//! Records: what the server signs of each epoch, the chain that binds them, and the tree of all records before one.

use crate::hash::{Digest, Profile};
use crate::key::Index;
use crate::leaf::Leaf;
use crate::log::{self, Frontier};
use crate::path::{Path, PathError};
use crate::read::{DecodeError, Reader};
use crate::tree::Tree;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};

/// The prefix of everything that is signed, which separates records from anything else that the key may sign.
const DOMAIN: &[u8] = b"hekaton directory record";

/// The prefix of the bytes whose digest is that of the parameters.
const PARAMETERS: &[u8] = b"hekaton directory parameters";

/// The version of the format of records.
const VERSION: u8 = 2;

/// The version of what the digest of the parameters covers.
const PARAMETERS_VERSION: u8 = 1;

/// The length of a record, in bytes.
pub const RECORD_LENGTH: usize = 1 + 6 * 32 + 4 + 3 * 8;

/// The length of a record with its signature.
pub const SIGNED_LENGTH: usize = RECORD_LENGTH + 64;

/// The properties of a directory that never change. Clients must not take them from the server that they check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The way the tree is hashed.
    pub profile: Profile,
    /// The key that signs records.
    pub server: VerifyingKey,
    /// The digest of the key that proofs of epochs are verified with.
    pub proofs: Digest,
}

impl Parameters {
    /// The digest, which each record has.
    pub fn digest(&self) -> Digest {
        let profile = self.profile.number();
        let hasher =
            Sha256::new().chain_update(PARAMETERS).chain_update([PARAMETERS_VERSION, profile]);
        hasher.chain_update(self.server.as_bytes()).chain_update(self.proofs).finalize().into()
    }
}

/// The statement of the server about an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The digest of the parameters.
    pub parameters: Digest,
    /// The number of the epoch, from 0, when the directory is empty.
    pub epoch: u32,
    /// The root of the tree.
    pub root: Digest,
    /// The chain up to the epoch before; of epoch 0, the digest of the parameters.
    pub before: Digest,
    /// The chain up to this epoch.
    pub chain: Digest,
    /// The number of leaves.
    pub leaves: u64,
    /// The number of entries of the update log.
    pub log_size: u64,
    /// The root of the update log.
    pub log_root: Digest,
    /// The root of the tree of all earlier records: a log whose entry `t` is the record of epoch `t`.
    pub records: Digest,
    /// The time at which the epoch was closed, in seconds since 1970.
    pub closed: u64,
}

/// The reason why a record was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The server's key did not sign it.
    #[error("the record of epoch {0} is not signed by this server")]
    Signature(u32),
    /// The record is another directory's.
    #[error("the record of epoch {0} is of a directory with other parameters")]
    Parameters(u32),
    /// The chain is not that of the root and of what was before.
    #[error("the record of epoch {0} has a chain that does not come from its root")]
    Chain(u32),
    /// Epoch 0 has leaves, or a chain that does not begin with the parameters.
    #[error("the record of epoch 0 is not that of an empty directory")]
    Start,
    /// The log has no entries, and a root that is not that of such a log.
    #[error("the record of epoch {0} has an empty log with another root than that of one")]
    EmptyLog(u32),
    /// The record is not that of the next epoch.
    #[error("the record of epoch {found} cannot come after that of epoch {after}")]
    Order {
        /// The epoch before.
        after: u32,
        /// The epoch of the record.
        found: u32,
    },
    /// Two different records of one epoch. **Both together are evidence against the server.**
    #[error("there are two records of epoch {0}: together they are evidence against the server")]
    Equivocation(u32),
    /// The record continues another history. **Both together are evidence against the server.**
    #[error("the record of epoch {0} continues another history than the one before it")]
    Fork(u32),
    /// The record is not shown to continue the history of an earlier one. A server that has both records of one history can show it.
    #[error(
        "the record of epoch {found} is not proven to continue the history of that of epoch {seen}"
    )]
    NotContinued {
        /// The epoch of the earlier record.
        seen: u32,
        /// The epoch of the record.
        found: u32,
    },
    /// The tree of earlier records is not that of the records that were shown. **All together are evidence against the server.**
    #[error("the record of epoch {0} has a tree of other records than those before it")]
    Records(u32),
    /// A number is smaller than in the record before.
    #[error("the record of epoch {epoch} has {found} {what}, and the one before it {before}")]
    Fewer {
        /// The epoch.
        epoch: u32,
        /// The name of the number that is smaller.
        what: &'static str,
        /// The number in the record.
        found: u64,
        /// The number in the record before.
        before: u64,
    },
}

impl Record {
    /// The record of epoch 0, with an empty tree and an empty log.
    pub fn first(parameters: &Parameters, closed: u64) -> Self {
        let (root, before) = (parameters.profile.empty(0), parameters.digest());
        Self {
            parameters: before,
            epoch: 0,
            root,
            before,
            chain: chain(parameters.profile, &before, &root),
            leaves: 0,
            log_size: 0,
            log_root: Frontier::default().root(),
            records: Frontier::default().root(),
            closed,
        }
    }

    /// The entry of the record in the tree of records.
    pub fn entry(&self) -> Digest {
        log::entry(&self.encode())
    }

    /// The record of the epoch after this one, with this tree, this log and these records, closed now; or at the time of the record
    /// before, if the clock was set back.
    ///
    /// # Panics
    /// If the records are not those of all epochs up to this one.
    pub fn next(&self, tree: &Tree, log: &Frontier, records: &Frontier, now: u64) -> Self {
        assert_eq!(records.size(), u64::from(self.epoch) + 1, "a record for each epoch");
        let root = tree.root();
        Self {
            parameters: self.parameters,
            epoch: tree.epoch(),
            root,
            before: self.chain,
            chain: chain(tree.profile(), &self.chain, &root),
            leaves: tree.leaves(),
            log_size: log.size(),
            log_root: log.root(),
            records: records.root(),
            closed: now.max(self.closed),
        }
    }

    /// The digest of the record: records are compared by it. The chain alone does not cover time and log.
    pub fn digest(&self) -> Digest {
        Sha256::digest(self.encode()).into()
    }

    /// Checks what a record states about itself. The chain alone says nothing of its last root, so everybody who reads a
    /// record checks that it has it.
    fn check(&self, parameters: &Parameters) -> Result<(), RecordError> {
        let profile = parameters.profile;
        if self.parameters != parameters.digest() {
            return Err(RecordError::Parameters(self.epoch));
        }
        if self.chain != chain(profile, &self.before, &self.root) {
            return Err(RecordError::Chain(self.epoch));
        }
        let is_empty = self.before == self.parameters
            && self.root == profile.empty(0)
            && self.records == Frontier::default().root()
            && (self.leaves, self.log_size) == (0, 0);
        if self.epoch == 0 && !is_empty {
            return Err(RecordError::Start);
        }
        // No proof says anything about the root of an empty log, so it is compared here.
        if self.log_size == 0 && self.log_root != Frontier::default().root() {
            return Err(RecordError::EmptyLog(self.epoch));
        }
        Ok(())
    }

    /// The bytes: version, parameters, epoch, root, chain before, chain, leaves, size and root of the log, root of the
    /// records, time. Numbers are big-endian.
    pub fn encode(&self) -> [u8; RECORD_LENGTH] {
        let mut out = Vec::with_capacity(RECORD_LENGTH);
        out.push(VERSION);
        out.extend(self.parameters);
        out.extend(self.epoch.to_be_bytes());
        for digest in [self.root, self.before, self.chain] {
            out.extend(digest);
        }
        out.extend(self.leaves.to_be_bytes());
        out.extend(self.log_size.to_be_bytes());
        out.extend(self.log_root);
        out.extend(self.records);
        out.extend(self.closed.to_be_bytes());
        let mut bytes = [0; RECORD_LENGTH];
        bytes.copy_from_slice(&out);
        bytes
    }

    /// Reads a record from an encoding that has more.
    ///
    /// # Errors
    /// If it is cut off or of another version.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.version(VERSION)?;
        Ok(Self {
            parameters: reader.array("parameters")?,
            epoch: reader.u32("epoch")?,
            root: reader.array("root")?,
            before: reader.array("chain before")?,
            chain: reader.array("chain")?,
            leaves: reader.u64("number of leaves")?,
            log_size: reader.u64("size of the log")?,
            log_root: reader.array("root of the log")?,
            records: reader.array("root of the records")?,
            closed: reader.u64("time")?,
        })
    }

    fn signed_bytes(&self) -> Vec<u8> {
        [DOMAIN, &self.encode()].concat()
    }

    /// Signs the record. The server signs one record of each epoch, once it is durable.
    pub fn sign(self, key: &SigningKey) -> SignedRecord {
        let signature = key.sign(&self.signed_bytes()).to_bytes();
        SignedRecord { record: self, signature }
    }
}

/// The chain after an epoch with a root: all roots up to it, in their order. It is of the whole digest, without the bit that
/// says what digests of the tree are of.
fn chain(profile: Profile, before: &Digest, root: &Digest) -> Digest {
    profile.combine(before, root)
}

/// A record with the server's signature (Ed25519).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedRecord {
    record: Record,
    signature: [u8; 64],
}

impl SignedRecord {
    /// The record, once its signature, its parameters and its chain are checked.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn verify(&self, parameters: &Parameters) -> Result<Checked, RecordError> {
        let signature = Signature::from_bytes(&self.signature);
        // Strict verification excludes points of small order, with which one signature may hold for
        // several records. A signed record could not serve as evidence then.
        let signed = parameters.server.verify_strict(&self.record.signed_bytes(), &signature);
        signed.map_err(|_| RecordError::Signature(self.record.epoch))?;
        self.record.check(parameters)?;
        Ok(Checked { record: self.record, profile: parameters.profile })
    }

    /// The record, with a signature that nobody has checked: only for its signer, who reads it from a database of its own.
    pub fn unverified(&self) -> &Record {
        &self.record
    }

    /// The signature alone.
    pub fn signature(&self) -> [u8; 64] {
        self.signature
    }

    /// A record with its signature, unverified.
    pub fn of(record: Record, signature: [u8; 64]) -> Self {
        Self { record, signature }
    }

    /// The number of the epoch, unverified.
    pub fn epoch(&self) -> u32 {
        self.record.epoch
    }

    /// The bytes: the record, then the signature.
    pub fn encode(&self) -> [u8; SIGNED_LENGTH] {
        let mut bytes = [0; SIGNED_LENGTH];
        bytes[..RECORD_LENGTH].copy_from_slice(&self.record.encode());
        bytes[RECORD_LENGTH..].copy_from_slice(&self.signature);
        bytes
    }

    /// Reads a signed record. Nothing of it is verified.
    ///
    /// # Errors
    /// If the bytes are not what [`encode`](Self::encode) writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let record = Record::read(&mut reader)?;
        let signature = reader.array("signature")?;
        reader.end()?;
        Ok(Self { record, signature })
    }
}

/// The proof that a record continues the history of an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuation {
    /// The proof that the earlier record is in the tree of records of the later one, for [`log::contains`].
    pub entry: Vec<Digest>,
    /// The proof that this tree continues that of the earlier record, for [`log::continues`].
    pub before: Vec<Digest>,
}

/// A record that is signed, and has its own chain. A client keeps the last one it has seen: without it, it could be shown an
/// older one, or another history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    record: Record,
    profile: Profile,
}

/// The reason why the answer to a look-up was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookUpError {
    /// The path was rejected.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The leaf is from an epoch that has not ended with this record, or has more versions than there were epochs. **That
    /// is evidence against the server**, together with the record.
    #[error(
        "the record of epoch {record} has a leaf of version {version} from epoch {epoch}: evidence against the server"
    )]
    Leaf {
        /// The epoch of the record.
        record: u32,
        /// The epoch of the leaf.
        epoch: u32,
        /// The version of the leaf.
        version: u32,
    },
}

impl Checked {
    /// The record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The leaf that the directory had for an index in this epoch, or none.
    ///
    /// # Errors
    /// If the path does not prove it, or the leaf cannot be from before this record.
    pub fn look_up(&self, index: &Index, path: &Path) -> Result<Option<Leaf>, LookUpError> {
        let record = self.record.epoch;
        let found = path.verify(self.profile, &self.record.root, index)?;
        match found {
            // An epoch adds at most one version to a leaf.
            Some(Leaf { epoch, version, .. }) if epoch >= record || version > epoch => {
                Err(LookUpError::Leaf { record, epoch, version })
            }
            found => Ok(found),
        }
    }

    /// Checks that this is the record of the epoch after another one's.
    ///
    /// # Errors
    /// If it is not; also if both are of one epoch and differ.
    pub fn check_after(&self, before: &Self) -> Result<(), RecordError> {
        let (Self { record, .. }, Self { record: before, .. }) = (self, before);
        let epoch = record.epoch;
        if record.parameters != before.parameters {
            return Err(RecordError::Parameters(epoch));
        }
        // Before the order is checked, because two records of one epoch are evidence and not merely
        // out of order.
        if epoch == before.epoch && record != before {
            return Err(RecordError::Equivocation(epoch));
        }
        if before.epoch.checked_add(1) != Some(epoch) {
            return Err(RecordError::Order { after: before.epoch, found: epoch });
        }
        if record.before != before.chain {
            return Err(RecordError::Fork(epoch));
        }
        record.check_numbers(before)
    }

    /// Checks that this is the record of an epoch after another one's, or the same one, and that the server had signed that one when it signed
    /// this one: the tree of records of this one has it in its place, behind the same records that its own tree has. That takes
    /// two proofs of a digest for each doubling of the number of epochs, whatever was between.
    ///
    /// The chain between both is not checked: an [`Audit`](crate::Audit) of this record or a later one does so.
    ///
    /// # Errors
    /// If it is not proven; also if both are of one epoch and differ.
    pub fn check_continues(&self, seen: &Self, proof: &Continuation) -> Result<(), RecordError> {
        let (Self { record, .. }, Self { record: before, .. }) = (self, seen);
        if record == before {
            return Ok(());
        }
        // The next one has the chain of the one before, and one that is no later is refused.
        if record.epoch <= before.epoch.saturating_add(1) {
            self.check_after(seen)?;
        }
        if record.parameters != before.parameters {
            return Err(RecordError::Parameters(record.epoch));
        }
        record.check_numbers(before)?;
        let (size, place) = (u64::from(record.epoch), u64::from(before.epoch));
        let has = log::contains(&record.records, size, place, &before.encode(), &proof.entry);
        let (old, new) = ((&before.records, place), (&record.records, size));
        match has && log::continues(old, new, &proof.before) {
            true => Ok(()),
            false => Err(RecordError::NotContinued { seen: before.epoch, found: record.epoch }),
        }
    }
}

impl Record {
    /// Checks that no number is smaller than in an earlier record.
    fn check_numbers(&self, before: &Self) -> Result<(), RecordError> {
        for (what, found, before) in [
            ("leaves", self.leaves, before.leaves),
            ("log entries", self.log_size, before.log_size),
            ("seconds since 1970", self.closed, before.closed),
        ] {
            if found < before {
                return Err(RecordError::Fewer { epoch: self.epoch, what, found, before });
            }
        }
        Ok(())
    }
}
