//! A second level of ranks for large runs: rank 0 exchanges messages with leaders, each of which
//! passes them on to the ranks of its group and multiplies their parts of the aggregation
//! (spec: distributed#leaders).

use super::encoding::Writer;
use super::endpoint::{Endpoint, Incoming};
use super::frame::{Frame, Kind};
use super::groups::{pack, report, unpack};
use super::message::{BlockPhase, Part};
use crate::aggregation::block::{BlockSums, FoldingBlock, ProofCommitments};
use crate::encoding::{DecodeError, Reader};
use crate::pool::LocalEngine;
use crate::rank_error::RankError;
use hekaton_arith::{G1Point, G2Point, MillerLoop};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The bytes for rank 0 that are sent without waiting for more.
const FULL: usize = 1 << 18;
/// The time that a leader waits for a message before it waits again.
const LOOK_UP: Duration = Duration::from_secs(60);

/// A phase of the aggregation for the ranks of a group, in the order of their blocks.
pub(super) struct GroupPhase {
    /// The encoded request to each rank; a single one if it is the same for all.
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
        let ranks =
            self.ranks.iter().fold(Writer::default().count(self.ranks.len()), Writer::of_count);
        let mut out = ranks.count(self.contents.len()).0;
        for content in &self.contents {
            out = Writer(out).u64(content.len() as u64).0;
            out.extend_from_slice(content);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8], group: &Range<usize>) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let n = reader.count(4, "number of ranks")?;
        let ranks: Vec<usize> =
            (0..n).map(|_| Ok(reader.u32("rank")? as usize)).collect::<Result<_, DecodeError>>()?;
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
            let length = reader.length("length")?;
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

/// The number and the length of the blocks in a request for phase A.
fn blocks_of(content: &[u8]) -> Result<(usize, usize), DecodeError> {
    let mut reader = Reader::new(content);
    reader.u32("phase")?;
    let [start, end, length] = ["start", "end", "block"].map(|what| reader.u64(what));
    let (start, end, length) = (start?, end?, length?);
    let blocks = (end.checked_sub(start).filter(|_| length > 0))
        .and_then(|n| Some(((n / length).try_into().ok()?, length.try_into().ok()?)));
    blocks.ok_or_else(|| {
        reader.invalid("blocks", 24, format_args!("{start}..{end} in blocks of {length}"))
    })
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
pub(super) struct Leader<'a> {
    pub(super) endpoint: &'a Endpoint,
    /// The ranks of the group, this one first.
    pub(super) group: Range<usize>,
    /// The inbox of this rank's own worker.
    pub(super) own: Sender<Incoming>,
    pub(super) pool: &'a LocalEngine,
    /// The number of types, k.
    pub(super) types: usize,
    /// The blocks of each rank of the group, from phase A: how many, and the length of one.
    pub(super) blocks: RefCell<BTreeMap<usize, (usize, usize)>>,
}

impl Leader<'_> {
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
                let phase =
                    GroupPhase::decode(&content, &self.group).map_err(|e| wrong(e.to_string()))?;
                let head = phase.contents[0].first_chunk::<4>();
                let number = u32::from_le_bytes(*head.ok_or_else(|| wrong("no phase".into()))?);
                for (place, rank) in phase.ranks.iter().enumerate() {
                    if number == 0 {
                        let blocks =
                            blocks_of(phase.content(place)).map_err(|e| wrong(e.to_string()))?;
                        self.blocks.borrow_mut().insert(*rank, blocks);
                    }
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
        // Messages other than parts of a phase are not examined here: rank 0 checks them as the
        // rank's.
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
            4 => self.join_if(parts, |rounds: &u32, _, length| {
                let expected = length.ilog2();
                (*rounds != expected)
                    .then(|| format!("it announces {rounds} GIPA rounds, expected {expected}"))
            }),
            5 => self.join_as::<[MillerLoop; 6]>(parts),
            6 => self.join_if(parts, |part: &FoldingBlock, count, _| {
                let found = part.len();
                (found != count).then(|| format!("{found} elements remain, expected {count}"))
            }),
            _ => self.join_as::<(G2Point, G1Point)>(parts),
        }
    }

    fn join_as<T: Part + Send>(
        &self,
        parts: Vec<(usize, Option<Vec<u8>>)>,
    ) -> Result<Vec<u8>, (usize, String)> {
        self.join_if(parts, |_: &T, _, _| None)
    }

    /// Joins parts after a check of each, which gets the number and the length of the rank's blocks.
    fn join_if<T: Part + Send>(
        &self,
        parts: Vec<(usize, Option<Vec<u8>>)>,
        wrong: impl Fn(&T, usize, usize) -> Option<String> + Sync,
    ) -> Result<Vec<u8>, (usize, String)> {
        let (types, blocks) = (self.types, self.blocks.borrow().clone());
        let decoded = self.pool.map(parts, |(rank, content)| {
            let bytes = content.ok_or_else(|| (rank, "no part of the phase".to_owned()))?;
            let mut reader = Reader::new(&bytes);
            let part = T::decode(&mut reader, types)
                .and_then(|part| reader.finish().map(|()| part))
                .map_err(|e| (rank, e.to_string()))?;
            let (count, length) = blocks.get(&rank).copied().unwrap_or((0, 1));
            match wrong(&part, count, length) {
                Some(why) => Err((rank, why)),
                None => Ok(part),
            }
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
        // As many requests as ranks, or one for all.
        let content = BlockPhase::GipaRound { x: None }.encode();
        for (ranks, requests) in [(2, 0), (2, 3), (3, 2)] {
            let wrong = GroupPhase {
                contents: vec![content.clone(); requests],
                ranks: (3..3 + ranks).collect(),
            };
            assert!(GroupPhase::decode(&wrong.encode(), &(3..6)).is_err(), "{ranks} {requests}");
        }
        let twice = GroupPhase::new(vec![(3, phase()), (3, phase())]);
        assert!(GroupPhase::decode(&twice.encode(), &(3..5)).is_err());
    }

    #[test]
    fn parts_are_taken_once_from_those_that_were_asked() {
        let (endpoint, _inbox) = Endpoint::new(3, 6, |_, _| {});
        let (own, _worker) = std::sync::mpsc::channel();
        let pool = crate::pool::LocalEngine::new(std::num::NonZeroUsize::new(1)).unwrap();
        let blocks = RefCell::default();
        let leader =
            Leader { endpoint: &endpoint, group: 3..6, own, pool: &pool, types: 1, blocks };
        let message = |kind, run, content| Frame { kind, run, content }.to_bytes();
        let part = |run| message(Kind::Part, run, Part::encode(&3u32));
        let mut pending = None;
        // A part without a phase in progress, and any other message, go to rank 0 as they are.
        assert_eq!(leader.hear(4, part(7), &mut pending), Some((4, part(7))));
        let parts = vec![(4, None), (5, None)];
        pending = Some(Pending { run: 7, number: 4, parts });
        let other = message(Kind::Failed, 7, vec![1]);
        assert_eq!(leader.hear(4, other.clone(), &mut pending), Some((4, other)));
        let report = |heard: Option<(usize, Vec<u8>)>| {
            let (rank, bytes) = heard.unwrap();
            let frame = Frame::from_bytes(bytes).unwrap();
            assert_eq!((rank, frame.kind), (3, Kind::Report));
            super::super::groups::reported(&frame.content, &(3..6)).unwrap().to_string()
        };
        assert_eq!(leader.hear(4, part(6), &mut pending), None, "of an earlier attempt");
        assert!(report(leader.hear(3, part(7), &mut pending)).contains("was not asked for"));
        assert_eq!(leader.hear(4, part(7), &mut pending), None);
        assert!(report(leader.hear(4, part(7), &mut pending)).contains("two parts"));
        // The blocks of both allow three rounds of their own.
        *leader.blocks.borrow_mut() = BTreeMap::from([(4, (1, 8)), (5, (2, 8))]);
        let joined = leader.hear(5, part(7), &mut pending).unwrap();
        assert_eq!((joined, pending.is_none()), ((3, part(7)), true));
        // And those of the second only two.
        leader.blocks.borrow_mut().insert(5, (2, 4));
        pending = Some(Pending { run: 7, number: 4, parts: vec![(4, None), (5, None)] });
        assert_eq!(leader.hear(4, part(7), &mut pending), None);
        let why = report(leader.hear(5, part(7), &mut pending));
        assert!(why.contains("rank 5") && why.contains("expected 2"), "{why}");
    }

    #[test]
    fn blocks_are_those_of_phase_a() {
        let phase = |start, end, unit| BlockPhase::A { start, end, unit, d: Vec::new() }.encode();
        assert_eq!(blocks_of(&phase(16, 48, 8)), Ok((4, 8)));
        for wrong in [phase(16, 8, 8), phase(0, 8, 0), vec![0; 20]] {
            assert!(blocks_of(&wrong).is_err());
        }
    }
}
