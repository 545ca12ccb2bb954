//! All schedules of a small server: three updates, two commits on their way, two failures, at any step. The steps are those
//! that the server's threads call; between any two of them the process may end or the power be lost, and each write and each
//! new head may fail in each way, those at the opening of the database, too. A process that is killed in the middle of a write
//! leaves what a failed sync does.
//!
//! In every state that can be reached, what was accepted is done once after recovery and in its order, and what was signed
//! is what it was. The same search finds what is wrong with five servers that have a defect.

use super::disk::{self, Disk, Fault};
use super::{TILING, key, parameters};
use crate::compute::{Compute, Computed};
use crate::error::Error;
use crate::head::Head;
use crate::head_file::Keep;
use crate::recover::{first_rows, recover};
use crate::rows::{self, Submitted};
use crate::sequencer::Sequencer;
use crate::update::{Accepted, Expected};
use crate::{Opened, Outcome, Rows, StoreError, Table};
use hekaton_directory::{Digest, Opening, Profile};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

/// The labels of the updates; the value of each is its number. The two are side by side for ten steps from the root, over
/// three tiles.
const LABELS: [&str; 3] = ["0", "0", "136"];

/// The maximum number of times that something fails or ends.
const FAILURES: usize = 2;

/// A defect that the search must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// A commit is signed before it is written.
    SignsFirst,
    /// A commit removes the intake rows of its own updates.
    RemovesIntake,
    /// The head that is found is not written again before anything is answered.
    TrustsHead,
    /// The head is written again, but after rows are removed that it makes superfluous.
    SettlesFirst,
    /// The database is opened after a failed write as after any other end.
    TrustsSync,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Accept(usize, Fault),
    Compute(usize),
    Write(usize, Fault, Fault),
    End { power: bool },
    Open(usize, Fault),
}

/// The head on a disk that forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heads {
    durable: Head,
    visible: Head,
    fault: Fault,
}

struct Kept(Arc<Mutex<Heads>>);

impl Keep for Kept {
    fn advance(&mut self, head: Head) -> Result<(), Error> {
        let mut heads = self.0.lock().unwrap();
        let fault = std::mem::replace(&mut heads.fault, Fault::None);
        if fault != Fault::Before {
            heads.visible = head;
        }
        if matches!(fault, Fault::None | Fault::After) {
            heads.durable = head;
        }
        match fault {
            Fault::None => Ok(()),
            _ => Err(Error::Threads("the disk of a test".into())),
        }
    }
}

struct Process {
    compute: Compute,
    sequencer: Sequencer,
    pending: Vec<Accepted>,
    flight: Vec<Computed>,
}

struct World {
    defect: Defect,
    disk: disk::State,
    heads: Arc<Mutex<Heads>>,
    process: Option<Process>,
    failures: usize,
    /// The facts that are known outside: updates sent and acknowledged, signed records, and outcomes.
    sent: usize,
    acked: BTreeSet<usize>,
    signed: BTreeMap<u32, Digest>,
    outcomes: BTreeMap<u64, Outcome>,
}

impl Clone for World {
    fn clone(&self) -> Self {
        let heads = Arc::new(Mutex::new(*self.heads.lock().unwrap()));
        let process = self.process.as_ref().map(|process| Process {
            compute: process.compute.clone(),
            sequencer: process.sequencer.with(Box::new(Kept(Arc::clone(&heads)))),
            pending: process.pending.clone(),
            flight: process.flight.clone(),
        });
        Self {
            disk: self.disk.clone(),
            heads,
            process,
            acked: self.acked.clone(),
            signed: self.signed.clone(),
            outcomes: self.outcomes.clone(),
            ..*self
        }
    }
}

/// A description of what is wrong in a state.
type Wrong = String;

impl World {
    fn new(defect: Defect) -> Self {
        let parameters = parameters(Profile::Compress);
        let disk = Disk::default();
        disk.open(Opened::Again).commit(first_rows(&parameters, 4, 0, &key())).unwrap();
        let record = hekaton_directory::Record::first(&parameters, 0);
        let head = Head { commit: 0, epoch: 0, record: record.digest() };
        let heads = Heads { durable: head, visible: head, fault: Fault::None };
        let mut world = Self {
            defect,
            disk: disk.state().clone(),
            heads: Arc::new(Mutex::new(heads)),
            process: None,
            failures: 0,
            sent: 0,
            acked: BTreeSet::new(),
            signed: BTreeMap::new(),
            outcomes: BTreeMap::new(),
        };
        assert!(world.open(0, Fault::None).unwrap());
        world
    }

    /// Runs something on the open database.
    fn with<R>(
        &mut self,
        opened: Opened,
        run: impl FnOnce(&mut Self, &dyn crate::Store) -> R,
    ) -> R {
        let disk = Disk::of(self.disk.clone());
        let store = disk.open(opened);
        let result = run(self, &*store);
        self.disk = disk.state().clone();
        self.disk.commits = 0;
        result
    }

    /// Opens the database, where one write fails, the head's first; returns whether it is open.
    fn open(&mut self, after: usize, fault: Fault) -> Result<bool, Wrong> {
        let opened = match self.defect {
            Defect::TrustsSync => Opened::Again,
            _ => Opened::AfterFailure,
        };
        let heads = Arc::clone(&self.heads);
        let head = heads.lock().unwrap().visible;
        let mut keep = Kept(Arc::clone(&heads));
        let (in_head, in_store) = match after.checked_sub(1) {
            None => (fault, Fault::None),
            Some(_) => (Fault::None, fault),
        };
        let late = matches!(self.defect, Defect::TrustsHead | Defect::SettlesFirst);
        if !late {
            heads.lock().unwrap().fault = in_head;
            if keep.advance(head).is_err() {
                self.fail();
                return Ok(false);
            }
        }
        let found = self.with(opened, |_, store| {
            let parameters = parameters(Profile::Compress);
            let found = disk::with_fault(after.saturating_sub(1), in_store, || {
                recover(store, head, &parameters)
            })?;
            let pair = (found.record, found.tree.clone());
            let compute = Compute::new(store, TILING, pair, head.commit, &key())?;
            Ok::<_, Error>((found, compute))
        });
        let (found, compute) = match found {
            Ok(found) => found,
            Err(Error::Store(StoreError::Write(_))) if in_store != Fault::None => {
                self.fail();
                return Ok(false);
            }
            Err(error) => return Err(error.to_string()),
        };
        if self.defect == Defect::SettlesFirst {
            heads.lock().unwrap().fault = in_head;
            if keep.advance(head).is_err() {
                self.fail();
                return Ok(false);
            }
        }
        self.sign(found.record.epoch, found.record.digest())?;
        let sequencer = Sequencer::new(head, &found.record, Box::new(keep));
        let (pending, flight) = (found.pending, Vec::new());
        self.process = Some(Process { compute, sequencer, pending, flight });
        Ok(true)
    }

    /// A signed record is seen.
    fn sign(&mut self, epoch: u32, digest: Digest) -> Result<(), Wrong> {
        match self.signed.insert(epoch, digest) {
            Some(other) if other != digest => Err(format!("two records of epoch {epoch}")),
            _ => Ok(()),
        }
    }

    fn fail(&mut self) {
        self.failures += 1;
        self.process = None;
    }

    /// Sends an update, or sends it again.
    fn accept(&mut self, at: usize, fault: Fault) {
        let number = at as u64;
        self.sent = self.sent.max(at + 1);
        let opening = Opening { salt: [at as u8; 32], value: vec![at as u8] };
        let update = Accepted::new(number, LABELS[at].into(), opening, Expected::Any).unwrap();
        let key = number.to_be_bytes();
        let accepted = self.with(Opened::Again, |_, store| {
            if rows::find::<Submitted>(store, Table::Idempotency, &key).unwrap().is_some() {
                return Ok(false);
            }
            let mut rows = Rows::default();
            rows.put(Table::Intake, key, update.encode());
            rows.put(Table::Idempotency, key, Submitted { number, digest: [0; 32] }.encode());
            Self::commit(store, rows, fault).map(|()| true)
        });
        match accepted {
            Ok(is_new) => {
                self.acked.insert(at);
                if let (true, Some(process)) = (is_new, &mut self.process) {
                    process.pending.push(update);
                }
            }
            Err(()) => self.fail(),
        }
    }

    fn commit(store: &dyn crate::Store, rows: Rows, fault: Fault) -> Result<(), ()> {
        disk::with_fault(0, fault, || store.commit(rows)).map_err(drop)
    }

    fn compute(&mut self, count: usize) -> Result<(), Wrong> {
        let mut process = self.process.take().unwrap();
        let mut updates: Vec<Accepted> = Vec::new();
        process.pending.retain(|update| {
            let is_taken =
                updates.len() < count && updates.iter().all(|other| other.index != update.index);
            if is_taken {
                updates.push(update.clone());
            }
            !is_taken
        });
        let now = self.failures as u64;
        let confirmed = process.sequencer.confirmed();
        let computed = self
            .with(Opened::Again, |_, store| process.compute.next(store, updates, confirmed, now));
        let (mut computed, deferred) = computed.map_err(|error| error.to_string())?;
        assert!(deferred.is_empty());
        if self.defect == Defect::RemovesIntake {
            for number in computed.numbers.clone() {
                computed.rows.remove(Table::Intake, number.to_be_bytes());
            }
        }
        process.flight.push(computed);
        self.process = Some(process);
        Ok(())
    }

    fn write(&mut self, at: usize, fault: Fault, head: Fault) -> Result<(), Wrong> {
        let mut process = self.process.take().unwrap();
        let (Rows(mut rows), done) = process.flight.remove(at).split();
        rows.extend(process.sequencer.take_settled().0);
        let commit = |world: &mut Self, rows| {
            world.with(Opened::Again, |_, store| Self::commit(store, Rows(rows), fault))
        };
        let signs_first = self.defect == Defect::SignsFirst;
        if !signs_first && commit(self, rows.clone()).is_err() {
            self.fail();
            return Ok(());
        }
        self.heads.lock().unwrap().fault = head;
        let visible = process.sequencer.confirm(done);
        self.heads.lock().unwrap().fault = Fault::None;
        let Ok(visible) = visible else {
            self.fail();
            return Ok(());
        };
        for (signed, _) in &visible.epochs {
            signed.verify(&parameters(Profile::Compress)).unwrap();
            self.sign(signed.epoch(), signed.unverified().digest())?;
        }
        if signs_first && commit(self, rows).is_err() {
            self.fail();
            return Ok(());
        }
        let outcomes: Vec<(u64, Outcome)> = self.with(Opened::Again, |_, store| {
            let outcome = |number: &u64| {
                (*number, rows::get(store, Table::Outcome, &number.to_be_bytes()).unwrap())
            };
            visible.numbers.iter().map(outcome).collect()
        });
        for (number, outcome) in outcomes {
            if self.outcomes.insert(number, outcome).is_some_and(|other| other != outcome) {
                return Err(format!("update {number} has two outcomes"));
            }
        }
        self.process = Some(process);
        Ok(())
    }

    /// The steps that may come next.
    fn steps(&self, any_order: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        let faults = |all: bool| {
            let faults = Fault::ALL.into_iter().filter(move |_| all);
            std::iter::once(Fault::None).chain(faults)
        };
        let may_fail = self.failures < FAILURES;
        let Some(process) = &self.process else {
            steps.push(Step::Open(0, Fault::None));
            if may_fail {
                steps.push(Step::End { power: true });
                let faults = (0..4).flat_map(|at| Fault::ALL.map(|fault| Step::Open(at, fault)));
                steps.extend(faults);
            }
            return steps;
        };
        for at in 0..=self.sent.min(LABELS.len() - 1) {
            if !self.acked.contains(&at) && (at == 0 || self.acked.contains(&(at - 1))) {
                steps.extend(faults(may_fail).map(|fault| Step::Accept(at, fault)));
            }
        }
        if process.flight.len() < 2 && !process.pending.is_empty() {
            steps.extend([Step::Compute(1), Step::Compute(2)]);
        }
        for at in 0..process.flight.len() {
            if any_order || at == 0 {
                for fault in faults(may_fail) {
                    steps.push(Step::Write(at, fault, Fault::None));
                }
                for fault in faults(may_fail).skip(1) {
                    steps.push(Step::Write(at, Fault::None, fault));
                }
            }
        }
        if may_fail {
            steps.extend([Step::End { power: false }, Step::End { power: true }]);
        }
        steps
    }

    fn take(&mut self, step: Step) -> Result<(), Wrong> {
        match step {
            Step::Accept(at, fault) => self.accept(at, fault),
            Step::Compute(count) => self.compute(count)?,
            Step::Write(at, fault, head) => self.write(at, fault, head)?,
            Step::End { power } => {
                self.failures += 1;
                self.process = None;
                if power {
                    self.lose_power();
                }
            }
            Step::Open(at, fault) => drop(self.open(at, fault)?),
        }
        Ok(())
    }

    fn lose_power(&mut self) {
        self.disk.lose_power();
        let mut heads = self.heads.lock().unwrap();
        heads.visible = heads.durable;
    }

    /// Checks that everything that is known outside still holds after the process ends here, with or without power.
    fn check(&self) -> Result<(), Wrong> {
        for power in [false, true] {
            let mut world = self.clone();
            world.process = None;
            if power {
                world.lose_power();
            }
            world.open(0, Fault::None)?;
            while !world.process.as_ref().unwrap().pending.is_empty() {
                world.compute(3)?;
                world.write(0, Fault::None, Fault::None)?;
            }
            world.done()?;
        }
        Ok(())
    }

    fn done(&mut self) -> Result<(), Wrong> {
        let signed = self.signed.clone();
        let acked = self.acked.clone();
        let outcomes = self.outcomes.clone();
        self.with(Opened::Again, |_, store| {
            for (epoch, digest) in signed {
                let record: hekaton_directory::Record =
                    rows::get(store, Table::Epoch, &epoch.to_be_bytes())
                        .map_err(|error| format!("a signed record is lost: {error}"))?;
                if record.digest() != digest {
                    return Err(format!("another record of epoch {epoch}"));
                }
            }
            let mut versions: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
            for (at, label) in LABELS.iter().enumerate() {
                let key = (at as u64).to_be_bytes();
                let found: Option<Outcome> = rows::find(store, Table::Outcome, &key).unwrap();
                match found {
                    Some(Outcome::Committed { version, .. }) => {
                        versions.entry(label).or_default().push(version)
                    }
                    Some(other) => return Err(format!("update {at}: {other:?}")),
                    None if acked.contains(&at) => return Err(format!("update {at} is lost")),
                    None => {}
                }
                if outcomes.get(&(at as u64)).is_some_and(|known| Some(*known) != found) {
                    return Err(format!("update {at} had another outcome"));
                }
            }
            match versions.values().all(|of| of.iter().copied().eq(0..of.len() as u32)) {
                true => Ok(()),
                false => Err(format!("versions {versions:?}")),
            }
        })
    }

    /// States with the same digest continue in the same way.
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.disk.hash(&mut hasher);
        let heads = *self.heads.lock().unwrap();
        for head in [heads.durable, heads.visible] {
            (head.commit, head.epoch, head.record).hash(&mut hasher);
        }
        (self.failures, self.sent, &self.acked, &self.signed).hash(&mut hasher);
        for (number, outcome) in &self.outcomes {
            (number, outcome.encode()).hash(&mut hasher);
        }
        if let Some(process) = &self.process {
            let numbers: Vec<u64> = process.pending.iter().map(|update| update.number).collect();
            numbers.hash(&mut hasher);
            for computed in &process.flight {
                (computed.number, &computed.numbers, computed.before).hash(&mut hasher);
                if let Some((signed, _)) = &computed.epoch {
                    signed.encode().hash(&mut hasher);
                }
            }
            process.sequencer.waits().hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Searches all schedules, and returns the number of states, or the steps to one where something is wrong.
fn search(defect: Defect, any_order: bool) -> Result<usize, (Wrong, Vec<Step>)> {
    let mut seen = HashSet::new();
    let mut next = vec![(World::new(defect), Vec::new())];
    while let Some((world, steps)) = next.pop() {
        if !seen.insert(world.digest()) {
            continue;
        }
        world.check().map_err(|wrong| (wrong, steps.clone()))?;
        for step in world.steps(any_order) {
            let mut world = world.clone();
            let steps = [&steps[..], &[step]].concat();
            world.take(step).map_err(|wrong| (wrong, steps.clone()))?;
            next.push((world, steps));
        }
    }
    Ok(seen.len())
}

#[test]
fn no_schedule_loses_anything() {
    for any_order in [false, true] {
        match search(Defect::None, any_order) {
            Ok(states) => assert!(states > 600, "only {states} states"),
            Err((wrong, steps)) => panic!("{wrong}: {steps:?}"),
        }
    }
}

#[test]
fn every_defect_is_found() {
    for (defect, what) in [
        (Defect::SignsFirst, "does not have the record"),
        (Defect::RemovesIntake, "is lost"),
        (Defect::TrustsHead, "record"),
        (Defect::SettlesFirst, "is lost"),
        (Defect::TrustsSync, "is lost"),
    ] {
        let (wrong, steps) = search(defect, true).expect_err(&format!("{defect:?} is not found"));
        assert!(wrong.contains(what), "{defect:?}: {wrong}: {steps:?}");
    }
}
