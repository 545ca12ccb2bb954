//! A second level of ranks for large runs: rank 0 exchanges messages with leaders, each of which
//! passes them on to the ranks of its group and multiplies their parts of the aggregation
//! (spec: distributed#leaders).

use super::endpoint::{Endpoint, Incoming};
use super::frame::{Frame, Kind};
use super::groups::{pack, report, unpack};
use super::message::{BlockPhase, Part, Writer};
use crate::aggregation::block::{BlockSums, FoldingBlock, ProofCommitments};
use crate::encoding::{DecodeError, Reader};
use crate::pool::Pool;
use crate::rank_error::RankError;
use hekaton_arith::{G1Point, G2Point, MillerLoop};
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The bytes for rank 0 that are sent without waiting for more.
const FULL: usize = 1 << 18;
/// How long a leader waits for a message before it waits again.
const LOOK_UP: Duration = Duration::from_secs(60);

/// A phase of the aggregation for the ranks of a group, in the order of their blocks.
pub(super) struct GroupPhase {
    /// What each rank is asked to do; one content if it is the same for all.
    contents: Vec<Vec<u8>>,
    ranks: Vec<usize>,
}

impl GroupPhase {
    pub(super) fn new(phases: Vec<(usize, BlockPhase)>) -> Self {
        let (ranks, phases): (Vec<usize>, Vec<BlockPhase>) = phases.into_iter().unzip();
        let mut contents: Vec<Vec<u8>> = Vec::new();
        let is_same = phases.windows(2).all(|pair| pair[0] == pair[1]);
        contents.extend(
            phases.iter().take(if is_same { 1 } else { ranks.len() }).map(BlockPhase::encode),
        );
        Self { contents, ranks }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let out =
            self.ranks.iter().fold(Writer::default().count(self.ranks.len()), Writer::of_count);
        let mut out = out.count(self.contents.len()).0;
        for content in &self.contents {
            out = Writer(out).u64(content.len() as u64).0;
            out.extend_from_slice(content);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8], group: &Range<usize>) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let n = reader.count(4, "number of ranks")?;
        let ranks = (0..n).map(|_| Ok(reader.u32("rank")? as usize));
        let ranks = ranks.collect::<Result<Vec<usize>, DecodeError>>()?;
        let is_in_order = ranks.windows(2).all(|pair| pair[0] < pair[1]);
        if n == 0 || !is_in_order || !ranks.iter().all(|rank| group.contains(rank)) {
            let why = format_args!("{ranks:?} are not ranks of the group {group:?} in order");
            return Err(reader.invalid("ranks", 4 * n, why));
        }
        let count = reader.count(8, "number of requests")?;
        if count != 1 && count != n {
            let why = format_args!("{count} requests for {n} ranks");
            return Err(reader.invalid("number of requests", 4, why));
        }
        let mut contents = Vec::with_capacity(count);
        for _ in 0..count {
            let length = usize::try_from(reader.u64("length")?).unwrap_or(usize::MAX);
            contents.push(reader.take(length, "request")?.to_vec());
        }
        reader.finish()?;
        Ok(Self { contents, ranks })
    }

    /// The request for the rank at a place.
    fn content(&self, place: usize) -> &[u8] {
        self.contents.get(place).unwrap_or(&self.contents[0])
    }
}

/// A phase that ranks of the group are working on.
struct Pending {
    run: u32,
    /// The number of the phase.
    number: u32,
    /// The ranks in the order of their blocks, and their parts.
    parts: Vec<(usize, Option<Vec<u8>>)>,
}

/// The leader of a group: passes messages on in both directions, and joins parts of the aggregation.
pub(super) struct Leader<'a, P> {
    pub(super) endpoint: &'a Endpoint,
    /// The ranks of the group, this one first.
    pub(super) group: Range<usize>,
    /// The inbox of this rank's own worker.
    pub(super) own: Sender<Incoming>,
    pub(super) pool: &'a P,
    /// The number of types, k.
    pub(super) types: usize,
}

impl<P: Pool> Leader<'_, P> {
    /// Leads until rank 0 ends the run.
    pub(super) fn lead(&self) -> Result<(), RankError> {
        let (mut up, mut bytes) = (Vec::new(), 0);
        let mut pending: Option<Pending> = None;
        loop {
            // Messages for rank 0 leave together when no more are waiting here.
            let wait = if up.is_empty() { LOOK_UP } else { Duration::ZERO };
            let received = self.endpoint.receive_raw(wait)?;
            if received.is_none() || bytes > FULL {
                self.send_up(&mut up);
                bytes = 0;
            }
            let Some((from, message)) = received else { continue };
            if from == 0 {
                if self.obey(message, &mut pending)? {
                    return Ok(());
                }
            } else if self.group.contains(&from) {
                if let Some(message) = self.hear(from, message, &mut pending) {
                    bytes += message.1.len();
                    up.push(message);
                }
            } else {
                let why = format!("it is not in the group of rank {}", self.group.start);
                return Err(RankError::Message { rank: from, why });
            }
        }
    }

    fn send_up(&self, messages: &mut Vec<(usize, Vec<u8>)>) {
        if !messages.is_empty() {
            let content = pack(&std::mem::take(messages));
            self.endpoint.direct().send(0, Kind::Bundle, 0, content);
        }
    }

    /// Passes a message on to a rank of the group.
    fn pass(&self, to: usize, bytes: Vec<u8>) {
        if to == self.group.start {
            // The worker reads to the end of the run.
            let _ = self.own.send(Incoming::Message { from: 0, bytes });
        } else {
            self.endpoint.direct().send_bytes(to, bytes);
        }
    }

    /// Handles a message of rank 0. Returns whether the run has ended.
    fn obey(&self, message: Vec<u8>, pending: &mut Option<Pending>) -> Result<bool, RankError> {
        let wrong = |why: String| RankError::Message { rank: 0, why };
        let Frame { kind, run, content } =
            Frame::from_bytes(message).map_err(|e| wrong(e.to_string()))?;
        match kind {
            Kind::Bundle => {
                let messages = unpack(&content, &self.group).map_err(|e| wrong(e.to_string()))?;
                messages.into_iter().for_each(|(to, bytes)| self.pass(to, bytes));
            }
            Kind::GroupPhase => {
                let phase = GroupPhase::decode(&content, &self.group);
                let phase = phase.map_err(|e| wrong(e.to_string()))?;
                let head = phase.contents[0].first_chunk::<4>();
                let number = u32::from_le_bytes(*head.ok_or_else(|| wrong("no phase".into()))?);
                for (place, rank) in phase.ranks.iter().enumerate() {
                    let content = phase.content(place).to_vec();
                    self.pass(*rank, Frame { kind: Kind::Phase, run, content }.to_bytes());
                }
                let parts = phase.ranks.into_iter().map(|rank| (rank, None)).collect();
                *pending = Some(Pending { run, number, parts });
            }
            // Every other rank gets its own.
            Kind::End => {
                self.pass(self.group.start, Frame { kind, run, content }.to_bytes());
                return Ok(true);
            }
            other => return Err(wrong(format!("unexpected {other:?}: leaders do not accept it"))),
        }
        Ok(false)
    }

    /// Handles a message of a rank of the group. Returns what rank 0 is to get, and as whose.
    fn hear(
        &self,
        from: usize,
        message: Vec<u8>,
        pending: &mut Option<Pending>,
    ) -> Option<(usize, Vec<u8>)> {
        // What is no part of a phase here is not looked at: rank 0 checks it as the rank's.
        let is_part = Frame::kind_of(&message) == Some(Kind::Part as u16);
        let Some(waiting) = pending.as_mut().filter(|_| is_part) else {
            return Some((from, message));
        };
        let wrong = |why: &str| {
            let content = report(from, why);
            Some((self.group.start, Frame { kind: Kind::Report, run: 0, content }.to_bytes()))
        };
        let frame = match Frame::from_bytes(message) {
            Ok(frame) => frame,
            Err(error) => return wrong(&error.to_string()),
        };
        // A part of an aggregation that was given up.
        if frame.run != waiting.run {
            return None;
        }
        match waiting.parts.iter_mut().find(|(rank, _)| *rank == from) {
            None => return wrong("a part of a phase that it was not asked for"),
            Some((_, Some(_))) => return wrong("two parts in one phase"),
            Some((_, part)) => *part = Some(frame.content),
        }
        if waiting.parts.iter().any(|(_, part)| part.is_none()) {
            return None;
        }
        let Pending { run, number, parts } = pending.take()?;
        let (kind, content) = match self.join(number, parts) {
            Ok(content) => (Kind::Part, content),
            Err((rank, why)) => (Kind::Report, report(rank, &why)),
        };
        Some((self.group.start, Frame { kind, run, content }.to_bytes()))
    }

    /// Joins the parts of a phase into one, or names the rank whose part is wrong.
    fn join(
        &self,
        number: u32,
        parts: Vec<(usize, Option<Vec<u8>>)>,
    ) -> Result<Vec<u8>, (usize, String)> {
        match number {
            0 | 3 => self.join_as::<MillerLoop>(parts),
            1 => self.join_as::<ProofCommitments>(parts),
            2 => self.join_as::<BlockSums>(parts),
            4 => self.join_as::<u32>(parts),
            5 => self.join_as::<[MillerLoop; 6]>(parts),
            6 => self.join_as::<FoldingBlock>(parts),
            _ => self.join_as::<(G2Point, G1Point)>(parts),
        }
    }

    fn join_as<T: Part + Send>(
        &self,
        parts: Vec<(usize, Option<Vec<u8>>)>,
    ) -> Result<Vec<u8>, (usize, String)> {
        let types = self.types;
        let decoded = self.pool.map(parts, |(rank, content)| {
            let content = content.unwrap_or_default();
            let mut reader = Reader::new(&content);
            let part = T::decode(&mut reader, types);
            let part = part.and_then(|part| reader.finish().map(|()| part));
            part.map_err(|e| (rank, e.to_string()))
        });
        let parts = decoded.into_iter().collect::<Result<Vec<T>, _>>()?;
        let joined = T::join(parts).ok_or((self.group.start, "parts that do not fit".to_owned()));
        Ok(joined?.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_for_groups_are_checked() {
        let phase = || BlockPhase::GipaRound { x: None };
        let same = GroupPhase::new(vec![(3, phase()), (4, phase())]);
        assert_eq!(same.contents.len(), 1);
        let other = BlockPhase::F { x: None };
        let different = GroupPhase::new(vec![(3, phase()), (4, other)]);
        for found in [same, different] {
            let bytes = found.encode();
            let again = GroupPhase::decode(&bytes, &(3..5)).unwrap();
            assert_eq!((again.ranks, again.contents), (found.ranks, found.contents));
            assert!(GroupPhase::decode(&bytes, &(3..4)).is_err());
            assert!(
                (0..bytes.len()).all(|cut| GroupPhase::decode(&bytes[..cut], &(3..5)).is_err())
            );
        }
        let twice = GroupPhase::new(vec![(3, phase()), (3, phase())]);
        assert!(GroupPhase::decode(&twice.encode(), &(3..5)).is_err());
    }
}
