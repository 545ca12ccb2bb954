//! Groups of ranks, each with a leader, and the messages between rank 0 and leaders
//! (spec: distributed#leaders).

use super::encoding::Writer;
use crate::encoding::{DecodeError, Reader};
use crate::rank_error::RankError;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Groups of ranks: rank 0 is in none, and the first rank of each group is its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    size: usize,
    fanout: NonZeroUsize,
}

impl Groups {
    /// Groups of up to `fanout` ranks, or none if all ranks would be in one.
    pub(crate) fn new(size: usize, fanout: NonZeroUsize) -> Option<Self> {
        (size > 1 + fanout.get()).then_some(Self { size, fanout })
    }

    /// The maximum number of ranks in a group.
    #[cfg(test)]
    pub(crate) fn fanout(self) -> NonZeroUsize {
        self.fanout
    }

    /// The leader of a rank's group, which may be the rank itself; rank 0 for itself.
    pub(crate) fn leader(self, rank: usize) -> usize {
        match rank.checked_sub(1) {
            None => 0,
            Some(place) => 1 + place / self.fanout * self.fanout.get(),
        }
    }

    /// The ranks of a leader's group, itself first. `None` for a rank that is not a leader.
    pub(crate) fn members(self, leader: usize) -> Option<Range<usize>> {
        let is_leader = leader > 0 && leader < self.size && self.leader(leader) == leader;
        is_leader.then(|| leader..self.size.min(leader + self.fanout.get()))
    }
}

/// Packs messages of ranks or for ranks into the content of one message.
pub(super) fn pack(messages: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut out = Writer::default().count(messages.len()).0;
    for (rank, bytes) in messages {
        out = Writer(out).count(*rank).u64(bytes.len() as u64).0;
        out.extend_from_slice(bytes);
    }
    out
}

/// Unpacks [`pack`]; all ranks must be of this group.
pub(super) fn unpack(
    content: &[u8],
    group: &Range<usize>,
) -> Result<Vec<(usize, Vec<u8>)>, DecodeError> {
    let mut reader = Reader::new(content);
    let n = reader.count(4 + 8, "number of messages")?;
    let mut out = Vec::with_capacity(n);
    for _ in 0..n {
        let rank = reader.u32("rank")? as usize;
        if !group.contains(&rank) {
            let why = format_args!("rank {rank} is not in the group {group:?}");
            return Err(reader.invalid("rank", 4, why));
        }
        let length = reader.length("length")?;
        out.push((rank, reader.take(length, "message")?.to_vec()));
    }
    reader.finish()?;
    Ok(out)
}

/// Encodes a leader's report of a wrong message from another rank.
pub(super) fn report(rank: usize, why: &str) -> Vec<u8> {
    Writer::default().count(rank).text(why).0
}

/// The error that a leader reports about a rank of its group.
pub(super) fn reported(content: &[u8], group: &Range<usize>) -> Result<RankError, DecodeError> {
    let mut reader = Reader::new(content);
    let rank = reader.u32("rank")? as usize;
    if !group.contains(&rank) {
        let why = format_args!("rank {rank} is not in the group {group:?}");
        return Err(reader.invalid("rank", 4, why));
    }
    let why = reader.text("why")?;
    reader.finish()?;
    Ok(RankError::Message { rank, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(size: usize, fanout: usize) -> Option<Groups> {
        Groups::new(size, NonZeroUsize::new(fanout).unwrap())
    }

    #[test]
    fn every_rank_but_the_first_is_in_one_group() {
        assert_eq!((groups(1, 1), groups(33, 32)), (None, None));
        for (size, fanout) in [(3, 1), (34, 32), (65, 32), (6, 2), (100, 7)] {
            let groups = groups(size, fanout).unwrap();
            assert_eq!((groups.leader(0), groups.members(0)), (0, None));
            let all = (0..size).filter_map(|rank| groups.members(rank)).flatten();
            assert_eq!(all.collect::<Vec<_>>(), (1..size).collect::<Vec<_>>());
            for rank in 1..size {
                let members = groups.members(groups.leader(rank)).unwrap();
                assert!(members.contains(&rank) && members.len() <= fanout, "{rank}");
            }
            assert_eq!(groups.members(size), None);
        }
    }

    #[test]
    fn packed_messages_are_of_the_group() {
        let messages = vec![(3, vec![1, 2]), (5, Vec::new())];
        let packed = pack(&messages);
        assert_eq!(unpack(&packed, &(3..6)), Ok(messages));
        assert!(unpack(&packed, &(3..5)).unwrap_err().to_string().contains("rank 5 is not in"));
        for cut in 0..packed.len() {
            assert!(unpack(&packed[..cut], &(3..6)).is_err());
        }
        assert!(unpack(&[&packed[..], &[0]].concat(), &(3..6)).is_err());
    }

    #[test]
    fn reports_name_a_rank_of_the_group() {
        assert!(reported(&report(4, "why"), &(5..6)).is_err());
        let wrong = reported(&report(4, "why"), &(3..5));
        assert_eq!(wrong, Ok(RankError::Message { rank: 4, why: "why".into() }));
    }
}
