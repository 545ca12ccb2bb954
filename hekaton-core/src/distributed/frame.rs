//! The frame of a message between ranks (docs/formats.md, "Messages between ranks").
//!
//! ```text
//! 0   version              u16
//! 2   kind                 u16
//! 4   run and attempt      u32   identifies answers to an earlier attempt
//! 8   length of the content              u64
//! 16  digest: the first 8 bytes of BLAKE3 over the 16 before and the content
//! 24  content
//! ```
//!
//! The digest protects against broken memory and networks, not against an adversary on the network
//! (spec: distributed#messages).

/// The length of a frame's header.
pub const HEADER: usize = 24;

/// The version of the messages; all ranks must have the same.
pub const VERSION: u16 = 6;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    /// From a worker: its description, before anything else.
    Hello = 1,
    /// From the coordinator: an attempt begins.
    Begin = 2,
    /// From the coordinator: subcircuits to commit to, with everything that belongs to them.
    CommitJobs = 3,
    /// From the coordinator: subcircuits to prove that this rank did not commit to.
    ProveJobs = 4,
    /// From the coordinator: the prove round begins; the rank proves its committed subcircuits.
    Challenges = 5,
    /// From the coordinator: a request to return subcircuits that are not started.
    Revoke = 6,
    /// From the coordinator: a request for an account of the rank's work since the previous request.
    Account = 7,
    /// From the coordinator: there is no more work.
    End = 8,
    /// From a worker: a commitment.
    Committed = 9,
    /// From a worker: a proof.
    Proven = 10,
    /// From a worker: subcircuits that it returns.
    Revoked = 11,
    /// From a worker: an account of its work.
    Accounted = 12,
    /// From a worker: why it cannot do a job.
    Failed = 13,
    /// From the coordinator: a phase of the aggregation.
    Phase = 14,
    /// From a worker: its part of a phase.
    Part = 15,
    /// From the coordinator: the slice of the circuit to execute.
    Execute = 16,
    /// From a worker: its report on the execution of its slice.
    Executed = 17,
    /// From the coordinator: subcircuits of the rank's own slice to commit to.
    CommitOwn = 18,
    /// From the coordinator: subcircuits of the rank's own slice to prove that it did not commit to.
    ProveOwn = 19,
    /// Between the coordinator and a leader: messages for ranks of its group, or of them.
    Bundle = 20,
    /// From the coordinator: a phase of the aggregation for the ranks of a leader's group.
    GroupPhase = 21,
    /// From a leader: a report of a wrong message from a rank of its group.
    Report = 22,
    /// From the coordinator: an answer of this rank was wrong, which its devices may have computed.
    GiveUpDevices = 23,
}

impl Kind {
    const ALL: [Self; 23] = [
        Self::Hello,
        Self::Begin,
        Self::CommitJobs,
        Self::ProveJobs,
        Self::Challenges,
        Self::Revoke,
        Self::Account,
        Self::End,
        Self::Committed,
        Self::Proven,
        Self::Revoked,
        Self::Accounted,
        Self::Failed,
        Self::Phase,
        Self::Part,
        Self::Execute,
        Self::Executed,
        Self::CommitOwn,
        Self::ProveOwn,
        Self::Bundle,
        Self::GroupPhase,
        Self::Report,
        Self::GiveUpDevices,
    ];
}

/// A message between ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    /// The run and attempt that the message belongs to.
    pub(crate) run: u32,
    pub(crate) content: Vec<u8>,
}

/// Why bytes are not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("{0} bytes, but a message has at least {HEADER}")]
    Short(usize),
    #[error("the message has version {0}, but this program reads version {VERSION}")]
    Version(u16),
    #[error("unknown message kind {0}")]
    Kind(u16),
    #[error("{found} bytes of content, but the header announces {expected}")]
    Length { found: usize, expected: u64 },
    #[error("wrong digest: the message was damaged in transit")]
    Digest,
}

/// The digest in a frame, over the header before it and the content.
fn digest(head: &[u8], content: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head).update(content);
    let mut out = [0; 8];
    out.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    out
}

/// The length of the complete message that starts with these bytes, for transports that split
/// messages. `None` if the length field is missing or the sum overflows.
pub fn message_length(head: &[u8]) -> Option<u64> {
    let bytes = head.get(8..16)?;
    let mut length = [0; 8];
    length.copy_from_slice(bytes);
    u64::from_le_bytes(length).checked_add(HEADER as u64)
}

impl Frame {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER + self.content.len());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(self.kind as u16).to_le_bytes());
        out.extend_from_slice(&self.run.to_le_bytes());
        out.extend_from_slice(&(self.content.len() as u64).to_le_bytes());
        let digest = digest(&out, &self.content);
        out.extend_from_slice(&digest);
        out.extend_from_slice(&self.content);
        out
    }

    /// The number of the kind of an encoded message, before anything of it is checked.
    pub(crate) fn kind_of(bytes: &[u8]) -> Option<u16> {
        Some(u16::from_le_bytes([*bytes.get(2)?, *bytes.get(3)?]))
    }

    pub(crate) fn from_bytes(mut bytes: Vec<u8>) -> Result<Self, FrameError> {
        if bytes.len() < HEADER {
            return Err(FrameError::Short(bytes.len()));
        }
        let content = bytes.split_off(HEADER);
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        // The version comes before all else: another one may have another layout.
        if word(0) != VERSION {
            return Err(FrameError::Version(word(0)));
        }
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| *kind as u16 == word(2))
            .ok_or(FrameError::Kind(word(2)))?;
        let run = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        // The length itself, without the sum of `message_length`, which overflows for a damaged one.
        let mut length = [0; 8];
        length.copy_from_slice(&bytes[8..16]);
        let expected = u64::from_le_bytes(length);
        if expected != content.len() as u64 {
            return Err(FrameError::Length { found: content.len(), expected });
        }
        if digest(&bytes[..16], &content) != bytes[16..] {
            return Err(FrameError::Digest);
        }
        Ok(Self { kind, run, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_found() {
        let frame = Frame { kind: Kind::Part, run: 7, content: vec![1, 2, 3] };
        let bytes = frame.to_bytes();
        assert_eq!(message_length(&bytes), Some(bytes.len() as u64));
        assert_eq!(Frame::from_bytes(bytes.clone()), Ok(frame));
        for bit in 0..8 * bytes.len() {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Frame::from_bytes(bad).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(Frame::from_bytes(bytes[..cut].to_vec()).is_err());
        }
        assert!(Frame::from_bytes([&bytes[..], &[0]].concat()).is_err());
        assert_eq!(message_length(&[0xff; HEADER]), None);
        for kind in Kind::ALL {
            let frame = Frame { kind, run: 0, content: Vec::new() };
            assert_eq!(Frame::from_bytes(frame.to_bytes()).unwrap().kind, kind);
        }
    }
}
