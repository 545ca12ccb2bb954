//! Every state of a small world: one task, two processes that may die or be taken for dead, and a store whose answers and writes come
//! late or never. The transitions are the real ones.

use super::records::task;
use crate::record::{Limits, SessionId, Task, TaskState};
use hekaton_orchestrator_client::Digest;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::BTreeSet;

/// The time at which tasks are claimed, later than all pauses.
const LATE: u64 = 1_000_000;

/// The highest revision that is explored.
const MAX_REV: u64 = 6;

/// The number of writes that may be under way.
const MAX_WRITES: usize = 2;

/// The number of times that a living process may be taken for dead.
const MAX_MISTAKES: u8 = 1;

/// A world, with flags for the rules that are left out.
#[derive(Clone, Debug)]
struct World {
    /// The store compares revisions.
    compares: bool,
    /// Processes give back leases of tasks that they do not run.
    audits: bool,
    /// Processes believe that others have the back-end, too.
    several: bool,
}

const RIGHT: World = World { compares: true, audits: true, several: false };

/// The index of a process.
type Who = usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    record: Task,
    rev: u64,
    processes: [Process; 2],
    writes: BTreeSet<Write>,
    mistakes: u8,
    /// Every output that was ever written as done.
    done: Vec<Digest>,
    /// A result was written by a process that did not hold the lease.
    usurped: bool,
    /// A failure was written by a process that believed itself to be alone.
    lonely: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Process {
    dead: bool,
    /// The record as it was read last.
    known: Option<(Task, u64)>,
    /// A claim was sent and not answered.
    claims: bool,
    /// The task that the process runs, and the revision of its claim.
    runs: Option<(Task, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Claim,
    Finish,
    /// The process believes that nobody else has the back-end.
    Fail,
    /// The process believes that others have the back-end.
    FailBesideOthers,
    RefuseBesideOthers,
    GiveBack,
    Expire,
}

/// A write under way. Its content follows from the record at its revision, so the other fields identify it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Write {
    from: Who,
    kind: Kind,
    expected: u64,
    next: Task,
}

impl PartialOrd for Write {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Write {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |write: &Self| (write.from, write.kind, write.expected);
        key(self).cmp(&key(other))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    Read(Who),
    Send(Who, Kind),
    Deliver(Write),
    /// The write never takes effect.
    Lose(Write),
    /// The sender of a claim stops waiting for its answer.
    GiveUp(Who),
    Die(Who),
}

fn session(who: Who) -> SessionId {
    SessionId::from_number(who as u64)
}

/// Returns the output that a process computes for a task.
fn output(who: Who) -> Digest {
    Digest::of(&[u8::try_from(who).unwrap()])
}

impl World {
    /// Returns the write that a process would send.
    fn write(&self, state: &State, from: Who, kind: Kind) -> Option<Write> {
        let process = &state.processes[from];
        let own = session(from);
        let (next, expected) = match kind {
            Kind::Claim => {
                let (known, rev) = process.known.as_ref()?;
                (!process.claims && process.runs.is_none()).then_some(())?;
                (known.claim(&own, LATE).ok()?, *rev)
            }
            Kind::Finish | Kind::Fail | Kind::FailBesideOthers | Kind::RefuseBesideOthers => {
                let (claim, rev) = process.runs.as_ref()?;
                let next = match kind {
                    Kind::Finish => claim.finish(&own, output(from), LATE),
                    Kind::RefuseBesideOthers => claim.bury(&own, "no witness", 0, true),
                    _ => claim.fail(&own, "no luck", 0, kind == Kind::FailBesideOthers),
                };
                (next.ok()?, *rev)
            }
            Kind::GiveBack => {
                let (known, rev) = process.known.as_ref()?;
                (self.audits && !process.claims && process.runs.is_none()).then_some(())?;
                (known.give_back(&own, "nobody runs it", 0, false).ok()?, *rev)
            }
            Kind::Expire => {
                let (known, rev) = process.known.as_ref()?;
                let TaskState::Leased { session: holder, .. } = &known.state else { return None };
                let is_dead = *holder != own && state.processes[1 - from].dead;
                let is_mistake = *holder != own && state.mistakes < MAX_MISTAKES;
                (is_dead || is_mistake).then_some(())?;
                (known.expire(0).ok()?, *rev)
            }
        };
        Some(Write { from, kind, expected, next })
    }

    /// Returns the actions that happen by themselves, without deaths, mistakes and losses.
    fn calm(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (who, process) in state.processes.iter().enumerate().filter(|(_, it)| !it.dead) {
            if process.known.as_ref().is_none_or(|(_, rev)| *rev != state.rev) {
                actions.push(Action::Read(who));
            }
            if process.claims {
                actions.push(Action::GiveUp(who));
            }
            if state.writes.len() < MAX_WRITES {
                let ends: &[Kind] = match self.several {
                    true => &[Kind::FailBesideOthers, Kind::RefuseBesideOthers],
                    false => &[Kind::Fail],
                };
                let always = [Kind::Claim, Kind::Finish, Kind::GiveBack, Kind::Expire];
                for &kind in always.iter().chain(ends) {
                    let sent = self.write(state, who, kind);
                    if sent.is_some_and(|write| !state.writes.contains(&write)) {
                        actions.push(Action::Send(who, kind));
                    }
                }
            }
        }
        actions.extend(state.writes.iter().cloned().map(Action::Deliver));
        actions
    }

    fn deliver(&self, state: &mut State, write: &Write) {
        state.writes.remove(write);
        let Write { from, kind, expected, next } = write;
        let takes = *expected == state.rev || !self.compares;
        if takes {
            if let TaskState::Done { output, session, .. } = &next.state {
                state.done.push(*output);
                let holder = match &state.record.state {
                    TaskState::Leased { session, .. } => Some(session.clone()),
                    _ => None,
                };
                state.usurped |= holder.as_ref() != Some(session);
            }
            state.lonely |= *kind == Kind::Fail;
            (state.record, state.rev) = (next.clone(), state.rev + 1);
        }
        let rev = state.rev;
        let process = &mut state.processes[*from];
        if process.dead {
            return;
        }
        match kind {
            // The answer counts only while its sender still waits.
            Kind::Claim if process.claims => {
                process.claims = false;
                process.runs = takes.then(|| (next.clone(), rev));
            }
            // Settled, one way or the other.
            Kind::Finish | Kind::Fail | Kind::FailBesideOthers | Kind::RefuseBesideOthers => {
                process.runs = None;
            }
            Kind::Claim | Kind::GiveBack | Kind::Expire => {}
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let (_, mut record) = task("t", "c", 1, 0);
        record.limits.attempts = 2;
        vec![State {
            record,
            rev: 1,
            processes: Default::default(),
            writes: BTreeSet::new(),
            mistakes: 0,
            done: vec![],
            usurped: false,
            lonely: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(self.calm(state));
        actions.extend(state.writes.iter().cloned().map(Action::Lose));
        // One of them survives.
        if state.processes.iter().all(|process| !process.dead) {
            actions.extend([0, 1].map(Action::Die));
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Read(who) => {
                state.processes[who].known = Some((before.record.clone(), before.rev));
            }
            Action::Send(who, kind) => {
                let write = self.write(before, who, kind)?;
                state.processes[who].claims |= kind == Kind::Claim;
                if kind == Kind::Expire && !before.processes[1 - who].dead {
                    state.mistakes += 1;
                }
                state.writes.insert(write);
            }
            Action::Deliver(write) => self.deliver(&mut state, &write),
            Action::Lose(write) => drop(state.writes.remove(&write)),
            Action::GiveUp(who) => state.processes[who].claims = false,
            Action::Die(who) => state.processes[who] = Process { dead: true, ..Process::default() },
        }
        Some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.rev <= MAX_REV
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("done at most once", |_, state: &State| state.done.len() <= 1),
            Property::always("done is final", |_, state: &State| {
                state.done.is_empty() || matches!(state.record.state, TaskState::Done { .. })
            }),
            Property::always("only the holder writes a result", |_, state: &State| !state.usurped),
            Property::always("attempts are bounded", |_, state: &State| {
                let Task { attempts, limits, .. } = &state.record;
                *attempts < limits.attempts * Limits::PATIENCE || state.record.state.is_final()
            }),
            // Where processes know of each other, both must have failed.
            Property::always("one process alone spoils nothing", |_, state: &State| {
                let Task { failed, refused, attempts, limits, .. } = &state.record;
                let is_dead = matches!(state.record.state, TaskState::Dead { .. });
                let most = limits.attempts * Limits::PATIENCE;
                let both = failed.len() > 1 || !refused.is_empty() || *attempts >= most;
                !is_dead || both || state.lonely
            }),
            // In a state without further steps, the task has ended.
            Property::always("no task is left behind", |world: &World, state: &State| {
                state.record.state.is_final() || !world.calm(state).is_empty()
            }),
            Property::sometimes("it is done", |_, state: &State| !state.done.is_empty()),
            Property::sometimes("it is dead", |_, state: &State| {
                matches!(state.record.state, TaskState::Dead { .. })
            }),
            Property::sometimes(
                "a holder that was taken for dead ends its run",
                |_, state: &State| {
                    let stale = |process: &Process| {
                        process.runs.as_ref().is_some_and(|(_, rev)| *rev < state.rev)
                    };
                    state.mistakes > 0 && state.processes.iter().any(stale)
                },
            ),
        ]
    }
}

#[test]
fn no_state_of_a_small_world_breaks_a_promise() {
    for several in [false, true] {
        let checker = World { several, ..RIGHT }.checker().spawn_bfs().join();
        checker.assert_properties();
        assert!(checker.unique_state_count() > 10_000, "{}", checker.unique_state_count());
    }
}

/// Without one of the rules, the properties fail.
#[test]
fn without_a_rule_a_promise_is_broken() {
    for (world, promise) in [
        (World { compares: false, ..RIGHT }, "done at most once"),
        (World { compares: false, ..RIGHT }, "only the holder writes a result"),
        (World { audits: false, ..RIGHT }, "no task is left behind"),
    ] {
        let found = HasDiscoveries::AllOf(BTreeSet::from([promise]));
        let checker = world.clone().checker().finish_when(found).spawn_bfs().join();
        assert!(checker.discovery(promise).is_some(), "{world:?} keeps '{promise}'");
    }
}
