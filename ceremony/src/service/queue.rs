//! The queue of contributors, without clock or disk.

use crate::body::{SlotBody, SlotRequest};
use hekaton_ceremony::{Chain, is_name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Milliseconds since 1970.
pub(crate) type Time = u64;

/// The most contributors that wait.
const MOST_WAITING: usize = 1_000;
/// The most slots whose end is remembered, so that their contributors learn of it.
const MOST_ENDED: usize = 1_000;
/// The time after which a contributor that has not asked is passed over in favor of others.
const ABSENT: Duration = Duration::from_secs(120);
/// The time after which a contributor that has not asked loses its place in the queue.
const GONE: Duration = Duration::from_secs(3600);
/// The smallest rate of an upload in bytes per second, which is that of all connections.
const RATE: u64 = 16 << 10;
/// The time for the next piece of an upload at that rate, with some margin.
const PIECE_TIME: Duration = Duration::from_secs(300);

pub(crate) fn millis(time: Duration) -> Time {
    u64::try_from(time.as_millis()).expect("times here are shorter than ages")
}

/// The reason why there is no slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoSlot {
    #[error("{0}")]
    Bad(String),
    #[error("{0}")]
    NotInvited(String),
    #[error("{0}")]
    InUse(String),
    #[error("{MOST_WAITING} contributors are waiting")]
    Full,
}

/// Who may contribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Everybody.
    Open,
    /// Contributors with a code that has one of these digests; some codes are for one name only.
    Invited(BTreeMap<String, Option<String>>),
}

impl Admission {
    /// The digest of the invitation with a code.
    pub(crate) fn digest(code: &str) -> String {
        hex::encode(blake3::derive_key("hekaton-v1 ceremony invitation", code.as_bytes()))
    }

    /// The digest of a valid invitation, or nothing where none is needed.
    fn check(&self, name: &str, code: Option<&str>) -> Result<Option<String>, NoSlot> {
        let Self::Invited(invitations) = self else { return Ok(None) };
        let refused = |why: &str| Err(NoSlot::NotInvited(why.to_owned()));
        let Some(code) = code else {
            return refused("contributors need an invitation: pass its code with --invitation");
        };
        let digest = Self::digest(code);
        match invitations.get(&digest) {
            None => refused("there is no such invitation"),
            Some(Some(only)) if only != name => {
                refused("the invitation is for another name: pass that with --name")
            }
            Some(_) => Ok(Some(digest)),
        }
    }
}

/// The stages of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "lowercase")]
pub(crate) enum Stage {
    Waiting,
    Active {
        until: Time,
        /// The time beyond which bytes of the upload do not extend the turn.
        limit: Time,
    },
    /// The upload is complete.
    Complete,
    Accepted,
    Refused {
        why: String,
    },
    Expired,
}

/// The place of a contributor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slot {
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) chains: Vec<String>,
    /// The digest of the invitation.
    pub(crate) invitation: Option<String>,
    /// When the contributor has last asked, or the slot has ended.
    pub(crate) seen: Time,
    /// The bytes of the upload for which the deadline was extended: each byte extends it once.
    credited: u64,
    #[serde(flatten)]
    pub(crate) stage: Stage,
}

impl Slot {
    fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Active { .. } | Stage::Complete)
    }

    /// The parts of the ceremony that one contributor at a time works on: each segment, and both chains of powers together.
    fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        for chain in self.chains.iter().filter_map(|chain| Chain::named(chain)) {
            let part = match chain {
                Chain::Tau | Chain::Phi => 0,
                Chain::Segment(number) => usize::from(number),
            };
            parts.0[part / 64] |= 1 << (part % 64);
        }
        parts
    }

    /// Reports whether its contributor is present and can begin.
    fn waits(&self, now: Time) -> bool {
        self.stage == Stage::Waiting && self.seen + millis(ABSENT) > now
    }

    /// Reports whether the slot has exclusive use of its parts.
    fn works(&self) -> bool {
        matches!(self.stage, Stage::Active { .. } | Stage::Complete)
    }
}

/// A set of parts.
#[derive(Clone, Copy, Debug, Default)]
struct Parts([u64; 4]);

impl Parts {
    fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own |= other);
    }

    fn meets(self, other: Self) -> bool {
        self.0.iter().zip(other.0).any(|(own, other)| own & other != 0)
    }
}

/// A change of the queue that the log reports to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Turn { name: String },
    Expired { name: String },
    Left { name: String },
}

/// All slots, in the order in which they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Queue {
    format_version: u32,
    pub(crate) slots: Vec<Slot>,
    /// Invitations that were used, with the chain.
    used: Vec<(String, String)>,
}

impl Queue {
    /// The version of the file.
    pub(crate) const VERSION: u32 = 1;

    pub(crate) fn new() -> Self {
        Self { format_version: Self::VERSION, ..Self::default() }
    }

    pub(crate) fn version(&self) -> u32 {
        self.format_version
    }

    /// Restores times after a start of the service, so that nobody has lost any.
    pub(crate) fn resume(&mut self, now: Time, deadline: Duration) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_live()) {
            slot.seen = now;
            if let Stage::Active { until, limit } = &mut slot.stage {
                *until = (*until).max(now + millis(deadline));
                *limit = (*limit).max(*until);
            }
        }
    }

    /// Closes the queue of a finished ceremony: refuses all slots without a complete contribution.
    pub(crate) fn close(&mut self) {
        let open = |slot: &&mut Slot| matches!(slot.stage, Stage::Waiting | Stage::Active { .. });
        for slot in self.slots.iter_mut().filter(open) {
            slot.stage = Stage::Refused { why: "the ceremony is finished".to_owned() };
        }
    }

    pub(crate) fn find(&self, token: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.token == token)
    }

    pub(crate) fn find_mut(&mut self, token: &str) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.token == token)
    }

    /// The contributions that wait for their check.
    pub(crate) fn complete(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.stage == Stage::Complete)
    }

    /// Gives a contributor a place at the end, or returns the place that this token already has.
    pub(crate) fn join(
        &mut self,
        now: Time,
        request: &SlotRequest,
        admission: &Admission,
        known: &[Chain],
    ) -> Result<(), NoSlot> {
        let SlotRequest { token, name, chains, invitation } = request;
        let bad = |why: &str| Err(NoSlot::Bad(why.to_owned()));
        if !is_token(token) {
            return bad("token: expected 64 hexadecimal digits in lower case");
        }
        if !is_name(name) {
            return bad("name: expected 1 to 128 bytes without invisible characters");
        }
        let named: Option<Vec<Chain>> = chains.iter().map(|chain| Chain::named(chain)).collect();
        let named = named.filter(|named| !named.is_empty() && named.is_sorted_by(|a, b| a < b));
        let Some(named) = named.filter(|named| named.iter().all(|chain| known.contains(chain)))
        else {
            return bad("chains: expected some of those of the ceremony, in their order");
        };
        if let Some(slot) = self.find_mut(token) {
            if slot.name != *name || slot.chains != *chains {
                return bad("token: has a slot with another name or other chains");
            }
            slot.seen = now;
            return Ok(());
        }
        let invitation = admission.check(name, invitation.as_deref())?;
        if let Some(invitation) = &invitation {
            let is_used =
                |chain: &&Chain| self.used.contains(&(invitation.clone(), chain.to_string()));
            if let Some(chain) = named.iter().find(is_used) {
                let why = format!(
                    "the invitation has already been used for a contribution to chain {chain}"
                );
                return Err(NoSlot::NotInvited(why));
            }
            let same =
                |slot: &&Slot| slot.is_live() && slot.invitation.as_ref() == Some(invitation);
            if let Some(other) = self.slots.iter().find(same) {
                let why = format!(
                    "the invitation already has a slot, under the name {}: continue in the folder of that contribution, or wait \
                     until the slot has expired",
                    other.name
                );
                return Err(NoSlot::InUse(why));
            }
        }
        let waiting = self.slots.iter().filter(|slot| slot.stage == Stage::Waiting).count();
        if waiting >= MOST_WAITING {
            // The contributor that has been away longest makes room.
            let absent = self
                .slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| slot.stage == Stage::Waiting && !slot.waits(now));
            let (at, _) = absent.min_by_key(|(_, slot)| slot.seen).ok_or(NoSlot::Full)?;
            self.slots.remove(at);
        }
        self.slots.push(Slot {
            token: token.clone(),
            name: name.clone(),
            chains: chains.clone(),
            invitation,
            seen: now,
            credited: 0,
            stage: Stage::Waiting,
        });
        Ok(())
    }

    /// Ends expired slots, and begins the turns of those that are next.
    pub(crate) fn advance(&mut self, now: Time, deadline: Duration) -> Vec<Event> {
        let mut events = Vec::new();
        for slot in &mut self.slots {
            if matches!(slot.stage, Stage::Active { until, .. } if until <= now) {
                events.push(Event::Expired { name: slot.name.clone() });
                (slot.stage, slot.seen) = (Stage::Expired, now);
            }
        }
        self.slots.retain(|slot| {
            let gone = slot.stage == Stage::Waiting && slot.seen + millis(GONE) <= now;
            if gone {
                events.push(Event::Left { name: slot.name.clone() });
            }
            !gone
        });
        let mut ended = self.slots.iter().filter(|slot| !slot.is_live()).count();
        self.slots.retain(|slot| {
            let forgotten = !slot.is_live() && ended > MOST_ENDED;
            ended -= usize::from(forgotten);
            !forgotten
        });
        // The parts in use, and those for which an earlier contributor waits.
        let mut taken = Parts::default();
        self.slots.iter().filter(|slot| slot.works()).for_each(|slot| taken.add(slot.parts()));
        for slot in self.slots.iter_mut().filter(|slot| slot.waits(now)) {
            let parts = slot.parts();
            if !taken.meets(parts) {
                events.push(Event::Turn { name: slot.name.clone() });
                let until = now + millis(deadline);
                slot.stage = Stage::Active { until, limit: until };
            }
            taken.add(parts);
        }
        events
    }

    /// The number of slots for which a waiting one has to wait. They have a part in common with it, and either are active, or are
    /// earlier in the queue and have a contributor who is present.
    fn before(&self, at: usize, now: Time) -> usize {
        let parts = self.slots[at].parts();
        let others = self.slots.iter().enumerate().filter(|(other, slot)| {
            let first = slot.works() || *other < at && slot.waits(now);
            *other != at && first && slot.parts().meets(parts)
        });
        others.count()
    }

    /// Notes that an upload now has this many bytes. If it never had as many before, even if it was restarted, the turn is extended while
    /// more bytes may be on their way. In total, a turn lasts no longer than the deadline plus the time that a slow connection takes for
    /// all bytes.
    pub(crate) fn came(&mut self, token: &str, now: Time, bytes: u64) {
        if let Some(slot) = self.find_mut(token) {
            slot.seen = now;
            let new = bytes.saturating_sub(slot.credited);
            if let (Stage::Active { until, limit }, 1..) = (&mut slot.stage, new) {
                *limit += new * 1_000 / RATE;
                *until = (*until).max(now + millis(PIECE_TIME)).min(*limit);
                slot.credited = bytes;
            }
        }
    }

    /// Gives up a contributor's slot, unless the contribution is complete.
    pub(crate) fn leave(&mut self, token: &str, now: Time) {
        let open = |slot: &&mut Slot| matches!(slot.stage, Stage::Waiting | Stage::Active { .. });
        if let Some(slot) = self.find_mut(token).filter(open) {
            (slot.stage, slot.seen) = (Stage::Expired, now);
        }
    }

    /// Ends a slot in a given stage.
    pub(crate) fn end(&mut self, token: &str, now: Time, stage: Stage) {
        let Some(slot) = self.find_mut(token) else { return };
        let accepted = stage == Stage::Accepted;
        (slot.stage, slot.seen) = (stage, now);
        if let (true, Some(invitation)) = (accepted, slot.invitation.clone()) {
            let used = slot.chains.clone().into_iter().map(|chain| (invitation.clone(), chain));
            self.used.extend(used.collect::<Vec<_>>());
        }
    }

    /// The answer for a slot; `heads` and `received` count for an active one only.
    pub(crate) fn body(
        &self,
        slot: &Slot,
        now: Time,
        heads: BTreeMap<String, String>,
        received: u64,
    ) -> SlotBody {
        match &slot.stage {
            Stage::Waiting => {
                let at = self.slots.iter().position(|other| other.token == slot.token);
                let before = self.before(at.expect("a slot of the queue"), now);
                // The next contributor asks often, to begin soon after its turn comes.
                SlotBody::Waiting { before, ask_again: if before > 1 { 5 } else { 1 } }
            }
            Stage::Active { until, .. } => {
                SlotBody::Active { heads, seconds: until.saturating_sub(now) / 1_000, received }
            }
            Stage::Complete => SlotBody::Verifying { ask_again: 1, trouble: None },
            Stage::Accepted => SlotBody::Accepted,
            Stage::Refused { why } => SlotBody::Refused { why: why.clone() },
            Stage::Expired => SlotBody::Expired,
        }
    }
}

/// Reports whether a text is a token, and so the name of a file.
pub(crate) fn is_token(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
