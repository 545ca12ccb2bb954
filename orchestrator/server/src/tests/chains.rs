//! Every state of a small chain: clients that submit its blocks in any order and more than once, two publishers, and an operator who takes
//! a branch back and may die while doing so; their steps may interleave in any way. The rules are the real ones.

use super::world::name;
use crate::order::{self, Next, Tail};
use crate::record::{Job, JobState, Order, Publication};
use crate::standstill::{Cause, Chain, Now, Place, Standstill, Waiting};
use hekaton_orchestrator_client::{Digest, Name};
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::{BTreeMap, BTreeSet};

/// A block: its height, its name and the one before it.
type Block = (u64, &'static str, &'static str);

/// A chain, with flags for the rules that are left out.
#[derive(Clone, Debug)]
struct World {
    /// The blocks that each client submits, in any order.
    clients: Vec<Vec<Block>>,
    /// The block after which the chain is torn off once, with its height.
    revert: Option<(&'static str, u64)>,
    /// A block is refused if any other block names it as its parent, as an earlier version did.
    refuses_parents: bool,
    /// Publishers append without looking at what follows the block.
    looks_ahead: bool,
    /// A block that must be buried because its name is published is left alone if the log has grown since the tail was read.
    compares_tails: bool,
    /// The process that takes the branch back may die before the log says so.
    dies: bool,
    /// A client that replaces a cancelled block first stops the publishers that have seen that block done.
    stops_publishers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum How {
    Live,
    Done,
    Dead,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Record {
    block: Block,
    how: How,
    /// Rises with each write.
    rev: u8,
    generation: u8,
    /// The length of the log at the last write.
    after: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Entry {
    Block(Block, u8),
    Revert(&'static str, u64),
}

/// The next step of a publisher.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Step {
    #[default]
    Idle,
    /// The publisher has read the length of the log.
    Tail(usize),
    Append(Block, u8, usize),
    Bury(Record),
}

/// The next step of the process that takes a branch back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Back {
    #[default]
    Wanted,
    /// These names are torn off; the remaining places have yet to be examined.
    Cancel(BTreeSet<&'static str>, Vec<&'static str>, usize),
    /// The process has read the length of the log.
    Append(BTreeSet<&'static str>, usize),
    /// The process has finished or died.
    Over,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Client {
    /// The blocks that it has yet to submit.
    left: Vec<Block>,
    /// The block that it has looked up.
    looked: Option<Block>,
    /// The length of the log when it saw that publishers have to be stopped.
    stops: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Keyed by place.
    jobs: BTreeMap<&'static str, Record>,
    log: Vec<Entry>,
    clients: Vec<Client>,
    refused: BTreeSet<&'static str>,
    publishers: [Step; 2],
    back: Back,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    /// A client looks at what follows the name of a block.
    Look(usize, usize),
    /// The client writes the job.
    Write(usize),
    Prove(&'static str),
    Publish(usize),
    Revert,
    Die,
}

fn job(record: &Record) -> Job {
    let (block, id, parent) = record.block;
    let state = match record.how {
        How::Live => JobState::Live,
        How::Done => JobState::Done { outputs: vec![], at: 0 },
        How::Dead => JobState::Dead { reason: "it does not fit".into(), at: 0 },
        How::Cancelled => JobState::Cancelled { reason: "taken back".into(), at: 0 },
    };
    Job {
        tenant: name("tenant"),
        chain: name("chain"),
        order: Order::Strict,
        block,
        id: name(id),
        parent: Some(name(parent)),
        lane: 0,
        workflow: Digest::of(b"workflow"),
        inputs: BTreeMap::new(),
        generation: record.generation.into(),
        trace: None,
        accepted: 0,
        state,
    }
}

impl State {
    /// Returns the published blocks, from the first one on, with the generations of their jobs.
    fn published(&self) -> Vec<(Block, u8)> {
        let mut path: Vec<(Block, u8)> = Vec::new();
        for entry in &self.log {
            match entry {
                Entry::Block(block, generation) => path.push((*block, *generation)),
                Entry::Revert(to, _) => {
                    let keep = path.iter().position(|((_, id, _), _)| id == to);
                    path.truncate(keep.map_or(0, |at| at + 1));
                }
            }
        }
        path
    }

    fn path(&self) -> Vec<Block> {
        self.published().into_iter().map(|(block, _)| block).collect()
    }

    /// Returns the block and the height of the last entry.
    fn tail(&self, entries: usize) -> (&'static str, Option<u64>) {
        match self.log[..entries].last() {
            None | Some(Entry::Revert("genesis", _)) => ("genesis", None),
            Some(Entry::Block((height, id, _), _) | Entry::Revert(id, height)) => {
                (*id, Some(*height))
            }
        }
    }

    fn write(&mut self, place: &'static str, record: Record) {
        let after = self.log.len();
        self.jobs.insert(place, Record { rev: record.rev + 1, after, ..record });
    }

    /// Reports whether the job of a place is cancelled, and publishers that have seen it done may still append it.
    fn may_be_published(&self, place: &'static str) -> bool {
        self.jobs.get(place).is_some_and(|record| {
            let is_stopped =
                self.log[record.after..].iter().any(|it| matches!(it, Entry::Revert(..)));
            record.how == How::Cancelled && !is_stopped
        })
    }

    /// Appends an entry that no earlier publisher gets past, and that takes back the block of a place if a publisher has already appended
    /// it.
    fn stop(&mut self, place: &'static str) {
        let path = self.path();
        let at =
            path.iter().position(|block| self.jobs.get(place).is_some_and(|it| it.block == *block));
        let last = match at {
            Some(at) => at.checked_sub(1).map(|before| path[before]),
            None => path.last().copied(),
        };
        let (to, height) = last.map_or(("genesis", 0), |(height, id, _)| (id, height));
        self.log.push(Entry::Revert(to, height));
    }

    fn submit(&mut self, block: Block) {
        let place = block.2;
        match self.jobs.get(place).copied() {
            None => {
                let record = Record { block, how: How::Live, rev: 0, generation: 0, after: 0 };
                self.write(place, record);
            }
            Some(known) if matches!(known.how, How::Dead | How::Cancelled) => {
                let generation = known.generation + 1;
                self.write(place, Record { block, how: How::Live, generation, ..known });
            }
            Some(known) if known.block == block => {}
            Some(_) => drop(self.refused.insert(block.1)),
        }
    }

    /// Returns the standstills that the real function finds, with no patience at all.
    fn standstills(&self) -> Vec<Standstill> {
        let (tenant, chain, path) = (name("tenant"), name("chain"), self.path());
        let open = self.jobs.values().filter(|record| {
            record.how != How::Cancelled
                && !(record.how == How::Done && path.contains(&record.block))
        });
        let jobs: Vec<(Name, Job)> =
            open.map(|record| (name(record.block.2), job(record))).collect();
        let waiting = jobs.iter().map(|(slot, job)| {
            let place = Place::new(0, job.generation);
            (slot, Waiting { job, tasks: vec![], changed: 0, place })
        });
        let (last, height) = self.tail(self.log.len());
        let (last, fates) = (name(last), BTreeMap::new());
        let chain = Chain {
            tenant: &tenant,
            name: &chain,
            order: Order::Strict,
            tail: Some(Tail { name: &last, height }),
            moved: 0,
            jobs: waiting.collect(),
            fates: &fates,
        };
        chain.standstills(&Now {
            now: 1,
            patience: 0,
            wall: u64::MAX,
            busy: BTreeSet::new(),
            sessions: None,
            offered: &BTreeSet::new(),
        })
    }
}

impl World {
    fn publish(&self, state: &mut State, who: usize) {
        let next = match state.publishers[who].clone() {
            Step::Idle => Step::Tail(state.log.len()),
            Step::Tail(entries) => {
                let (last, height) = state.tail(entries);
                let last_name = name(last);
                let record = state.jobs.get(last).copied();
                let found = record.as_ref().map(job);
                let follower = record.and_then(|record| state.jobs.get(record.block.1)).map(job);
                let follower = follower.as_ref().filter(|_| self.looks_ahead);
                let tail = Tail { name: &last_name, height };
                match (order::next(tail, found.as_ref(), follower), record) {
                    (Next::Publish(_), Some(record)) => {
                        Step::Append(record.block, record.generation, entries)
                    }
                    (Next::PublishUnlessKnown(Publication::Block { id, .. }), Some(record)) => {
                        let is_other = self.compares_tails && state.log.len() != entries;
                        match state.path().iter().any(|(_, known, _)| *known == id.as_str()) {
                            _ if is_other => Step::Idle,
                            true => Step::Bury(record),
                            false => Step::Append(record.block, record.generation, entries),
                        }
                    }
                    (Next::Bury(_), Some(record)) => Step::Bury(record),
                    _ => Step::Idle,
                }
            }
            Step::Append(block, generation, entries) => {
                if state.log.len() == entries {
                    state.log.push(Entry::Block(block, generation));
                }
                Step::Idle
            }
            Step::Bury(record) => {
                if state.jobs.get(record.block.2) == Some(&record) {
                    state.write(record.block.2, Record { how: How::Dead, ..record });
                }
                Step::Idle
            }
        };
        state.publishers[who] = next;
    }

    /// Reports whether every event has been handled.
    fn is_quiet(&self, state: &State) -> bool {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        actions.is_empty()
    }

    /// Reports whether a publisher would do more than look.
    fn has_work(&self, state: &State, who: usize) -> bool {
        let mut after = state.clone();
        after.publishers[who] = Step::Tail(state.log.len());
        self.publish(&mut after, who);
        after.publishers[who] != Step::Idle
    }

    fn revert(&self, state: &mut State) {
        let Some((to, height)) = self.revert else { return };
        state.back = match state.back.clone() {
            Back::Wanted => {
                let path = state.path();
                let at = path.iter().position(|(_, id, _)| *id == to);
                let after = at.map_or(0, |at| at + 1);
                let mut torn: BTreeSet<_> = path[after..].iter().map(|(_, id, _)| *id).collect();
                if torn.is_empty() {
                    torn.extend(state.jobs.get(to).map(|record| record.block.1));
                }
                let places = torn.iter().copied().chain([to]).collect();
                Back::Cancel(torn, places, 0)
            }
            Back::Cancel(mut torn, mut places, mut count) => match places.pop() {
                // The first pass proceeds to the log; a later pass that found nothing is the last one.
                None if count == 0
                    && state.log.iter().any(|it| matches!(it, Entry::Revert(..))) =>
                {
                    Back::Over
                }
                None => Back::Append(torn, state.log.len()),
                Some(place) => {
                    if let Some(record) = state.jobs.get(place).copied()
                        && (place != to || torn.contains(record.block.1))
                    {
                        if torn.insert(record.block.1) {
                            places.push(record.block.1);
                        }
                        if record.how != How::Cancelled {
                            count += 1;
                            state.write(place, Record { how: How::Cancelled, ..record });
                        }
                    }
                    Back::Cancel(torn, places, count)
                }
            },
            Back::Append(torn, entries) => {
                if state.log.len() == entries {
                    let is_out = to == "genesis" || state.path().iter().any(|(_, id, _)| *id == to);
                    let (last, last_height) = state.tail(entries);
                    let entry = match is_out {
                        true => Entry::Revert(to, height),
                        false => Entry::Revert(last, last_height.unwrap_or(0)),
                    };
                    state.log.push(entry);
                    let places = torn.iter().copied().chain([to]).collect();
                    Back::Cancel(torn, places, 0)
                } else {
                    Back::Append(torn, state.log.len())
                }
            }
            Back::Over => Back::Over,
        };
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let clients = self.clients.iter().map(|blocks| {
            let (left, looked, stops) = (blocks.clone(), None, None);
            Client { left, looked, stops }
        });
        vec![State {
            jobs: BTreeMap::new(),
            log: vec![],
            clients: clients.collect(),
            refused: BTreeSet::new(),
            publishers: Default::default(),
            back: if self.revert.is_some() { Back::Wanted } else { Back::Over },
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (who, client) in state.clients.iter().enumerate() {
            match client.looked {
                Some(_) => actions.push(Action::Write(who)),
                None => actions.extend((0..client.left.len()).map(|at| Action::Look(who, at))),
            }
        }
        let live = state.jobs.iter().filter(|(_, record)| record.how == How::Live);
        actions.extend(live.map(|(place, _)| Action::Prove(place)));
        for (who, step) in state.publishers.iter().enumerate() {
            if *step != Step::Idle || self.has_work(state, who) {
                actions.push(Action::Publish(who));
            }
        }
        if state.back != Back::Over {
            actions.push(Action::Revert);
        }
        if self.dies && matches!(state.back, Back::Cancel(..) | Back::Append(..)) {
            actions.push(Action::Die);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Look(who, at) => {
                let block = state.clients[who].left.remove(at);
                let follower = state.jobs.get(block.1);
                let refused = match self.refuses_parents {
                    true => {
                        let own = state.jobs.get(block.2).is_some_and(|own| own.block.1 == block.1);
                        follower.is_some_and(|it| it.how != How::Cancelled) && !own
                    }
                    false => {
                        let follower = follower.map(job);
                        order::misfit(block.0, &name(block.1), follower.as_ref()).is_some()
                    }
                };
                match refused {
                    true => drop(state.refused.insert(block.1)),
                    false => state.clients[who].looked = Some(block),
                }
            }
            Action::Write(who) => {
                let block = state.clients[who].looked?;
                match state.clients[who].stops.take() {
                    Some(entries) if state.log.len() == entries => state.stop(block.2),
                    None if self.stops_publishers && state.may_be_published(block.2) => {
                        state.clients[who].stops = Some(state.log.len());
                    }
                    // It looks again.
                    Some(_) => {}
                    None => {
                        state.clients[who].looked = None;
                        state.submit(block);
                    }
                }
            }
            Action::Prove(place) => {
                let record = state.jobs[place];
                state.write(place, Record { how: How::Done, ..record });
            }
            Action::Publish(who) => self.publish(&mut state, who),
            Action::Revert => self.revert(&mut state),
            Action::Die => state.back = Back::Over,
        }
        Some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.log.len() <= 8
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("blocks follow each other, once", |_, state: &State| {
                let path = state.path();
                let names: BTreeSet<_> = path.iter().map(|(_, id, _)| *id).collect();
                let first = path.first().is_none_or(|(_, _, parent)| *parent == "genesis");
                let follow = |two: &[Block]| two[0].1 == two[1].2 && two[0].0 < two[1].0;
                names.len() == path.len() && first && path.windows(2).all(follow)
            }),
            // With every event handled, each unpublished block is dead, or known to wait for one that is missing.
            Property::always("somebody is told", |world: &Self, state: &State| {
                let is_told = |one: &Standstill| {
                    matches!(
                        one.cause,
                        Cause::Dead { .. } | Cause::NoParent { .. } | Cause::Circle { .. }
                    )
                };
                !world.is_quiet(state) || state.standstills().iter().all(is_told)
            }),
            Property::always("what fits is published", |world: &Self, state: &State| {
                let all: BTreeSet<Block> = world.clients.iter().flatten().copied().collect();
                let fits = all == BTreeSet::from([A, B, C]) && world.revert.is_none();
                !world.is_quiet(state) || !fits || state.path() == [A, B, C]
            }),
            Property::always(
                "nothing that was torn off is published",
                |world: &Self, state: &State| {
                    // Unless a client sends it again, which it may have done in the meantime.
                    state.back != Back::Over
                        || world.dies
                        || state.path().iter().all(|block| {
                            state
                                .jobs
                                .get(block.2)
                                .is_some_and(|record| record.how != How::Cancelled)
                        })
                },
            ),
            Property::always(
                "what is published has its place, and is not dead",
                |_, state: &State| {
                    state.published().iter().all(|(block, generation)| {
                        let record = state.jobs.get(block.2).filter(|it| it.how != How::Dead);
                        record.is_some_and(|it| (it.block, it.generation) == (*block, *generation))
                    })
                },
            ),
            Property::sometimes("something is published", |_, state: &State| {
                !state.path().is_empty()
            }),
        ]
    }
}

const A: Block = (1, "a", "genesis");
const B: Block = (2, "b", "a");
const C: Block = (3, "c", "b");

fn right(clients: &[&[Block]]) -> World {
    World {
        clients: clients.iter().map(|blocks| blocks.to_vec()).collect(),
        revert: None,
        refuses_parents: false,
        looks_ahead: true,
        compares_tails: true,
        dies: false,
        stops_publishers: true,
    }
}

#[test]
fn no_order_of_arrival_breaks_a_promise() {
    let again: Block = (3, "a", "b");
    let low: Block = (1, "b", "a");
    let other: Block = (1, "x", "genesis");
    let (one, two): (Block, Block) = ((1, "x", "y"), (2, "y", "x"));
    for world in [
        right(&[&[A, B, C], &[B]]),
        right(&[&[A, B], &[C, A]]),
        right(&[&[A, B, again]]),
        right(&[&[A, B], &[again]]),
        right(&[&[A, C], &[low]]),
        right(&[&[A, B], &[low, C]]),
        right(&[&[A, B, one], &[two]]),
        World { revert: Some(("a", 1)), ..right(&[&[A, B], &[(3, "d", "c"), (2, "c", "a")]]) },
        World { revert: Some(("genesis", 0)), ..right(&[&[A, B, C]]) },
        World { revert: Some(("a", 1)), ..right(&[&[A, B, C], &[B]]) },
        World { revert: Some(("genesis", 0)), dies: true, ..right(&[&[A, B], &[other]]) },
        World { revert: Some(("genesis", 0)), dies: true, ..right(&[&[A], &[A]]) },
        right(&[&[A], &[low]]),
    ] {
        let checker = world.clone().checker().spawn_bfs().join();
        checker.assert_properties();
        assert!(checker.unique_state_count() > 100, "{world:?}");
    }
}

/// Without one of the rules, the properties fail.
#[test]
fn chains_without_a_rule_break_a_promise() {
    let again: Block = (3, "a", "b");
    let (low, other): (Block, Block) = ((1, "b", "a"), (1, "x", "genesis"));
    let placed = "what is published has its place, and is not dead";
    for (world, promise) in [
        (World { refuses_parents: true, ..right(&[&[A, B, C]]) }, "what fits is published"),
        (
            World { looks_ahead: false, ..right(&[&[A, B], &[again]]) },
            "blocks follow each other, once",
        ),
        (World { compares_tails: false, ..right(&[&[A], &[low]]) }, placed),
        (
            World {
                revert: Some(("genesis", 0)),
                dies: true,
                stops_publishers: false,
                ..right(&[&[A], &[other]])
            },
            placed,
        ),
    ] {
        let found = HasDiscoveries::AllOf(BTreeSet::from([promise]));
        let checker = world.clone().checker().finish_when(found).spawn_bfs().join();
        assert!(checker.discovery(promise).is_some(), "{world:?} keeps '{promise}'");
    }
}
