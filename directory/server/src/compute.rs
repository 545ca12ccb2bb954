//! The first stage of the pipeline: what a commit changes, computed in order, each on the tree of the one before it.

use super::damaged::Damaged;
use super::error::Error;
use super::log_tiles::LogTiles;
use super::rows::{self, LogKind, Value, Written};
use super::store::{Rows, Store, Table};
use super::update::{Accepted, Outcome, Refusal};
use ed25519_dalek::SigningKey;
use hekaton_directory::{
    Away, Change, Commitment, Digest, Entry, Index, Leaf, Place, Record, STACK, SignedRecord, Step,
    Tree, UpdateError, log,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The state from which the next commit is computed. It is never read back from rows that may not be on the disk yet.
#[derive(Clone, Debug)]
pub(crate) struct Compute {
    tiling: Tiling,
    tree: Tree,
    log: LogTiles,
    /// The records before the last one.
    records: LogTiles,
    record: Record,
    key: SigningKey,
    /// The number of the next commit.
    next: u64,
    memory: Memory,
}

/// The parts of a tree that are written, and those that stay in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiling {
    /// The number of levels of a tile of the tree.
    pub(crate) levels: usize,
    /// The depth down to which the tree stays in memory.
    pub(crate) resident: usize,
    /// `true` if the witness for provers is written, too.
    pub(crate) has_witness: bool,
    /// The maximum number of steps of an epoch, then.
    pub(crate) max_steps: usize,
}

/// A leaf that an update writes, and the commitment that it continues.
struct New {
    leaf: Leaf,
    before: Commitment,
}

/// An update, and the leaf that it writes or why it is refused.
type Judged = (Result<New, Refusal>, Accepted);

/// The changes of an epoch, their steps for provers, and updates that must wait for a later commit.
type Fitted = (Vec<Change>, Option<Vec<Step>>, Vec<Accepted>);

fn changes_of(judged: &[Judged]) -> Vec<Change> {
    let leaves = judged.iter().filter_map(|(judged, _)| judged.as_ref().ok());
    leaves
        .map(|New { leaf: Leaf { index, commitment, .. }, .. }| Change {
            index: *index,
            commitment: *commitment,
        })
        .collect()
}

/// A commit that is computed and not written.
#[derive(Clone, Debug)]
pub(crate) struct Computed {
    /// Its number.
    pub(crate) number: u64,
    /// The signed record of the epoch that it closes, and its tree; none if all updates are refused.
    pub(crate) epoch: Option<(SignedRecord, Tree)>,
    /// The chain of records that it continues.
    pub(crate) before: Digest,
    /// The rows that it writes.
    pub(crate) rows: Rows,
    /// The updates that have an outcome with it.
    pub(crate) numbers: Vec<u64>,
}

impl Compute {
    /// Begins after a commit, with a record and its tree. The rows of all commits up to there are on the disk.
    pub(crate) fn new(
        store: &dyn Store,
        tiling: Tiling,
        (record, tree): (Record, Tree),
        commit: u64,
        key: &SigningKey,
    ) -> Result<Self, Error> {
        let log = LogTiles::read(store, LogKind::Updates, &record)?;
        let records = LogTiles::read(store, LogKind::Records, &record)?;
        let Tiling { levels, resident, .. } = tiling;
        // Tiles begin at multiples of `levels`, and only whole tiles can be dropped and loaded
        // again.
        let whole_tiles = resident.next_multiple_of(levels).max(levels);
        let tiling = Tiling { resident: whole_tiles, ..tiling };
        let memory = Memory::default();
        let (key, next) = (key.clone(), commit + 1);
        Ok(Self { tiling, tree, log, records, record, key, next, memory })
    }

    /// The next commit: updates of different labels. `confirmed` is the last one that is on the disk. Also returns, in their
    /// order, updates that must wait for a later commit.
    pub(crate) fn next(
        &mut self,
        store: &dyn Store,
        updates: Vec<Accepted>,
        confirmed: u64,
        now: u64,
    ) -> Result<(Computed, Vec<Accepted>), Error> {
        let mut indices: Vec<Index> = updates.iter().map(|update| update.index).collect();
        indices.sort_unstable();
        // Rows of later commits may not be on the disk yet, so what they changed could not be read
        // back.
        self.forget(confirmed);
        self.tree = load(store, &self.tree, &indices, self.tiling.levels)?;
        self.memory.has(self.next, &indices, self.tiling.resident);

        let mut judged = Vec::with_capacity(updates.len());
        for update in updates {
            judged.push((self.judge(&update)?, update));
        }
        let (changes, steps, deferred) = self.fit(&mut judged)?;
        let epoch = self.tree.epoch();
        let mut rows = Rows::default();
        for (judged, update) in &judged {
            let outcome = match judged {
                Err(refusal) => Outcome::Refused(*refusal),
                Ok(New { leaf, .. }) => {
                    Outcome::Committed { epoch: epoch + 1, version: leaf.version }
                }
            };
            // In the same batch as the epoch: either one without the other would be a false answer
            // after a crash.
            rows.put(Table::Outcome, update.number.to_be_bytes(), outcome.encode());
        }
        let numbers: Vec<u64> = judged.iter().map(|(_, update)| update.number).collect();
        let mut written = Written { numbers, ..Written::default() };
        let before = self.record.chain;
        let closed = match changes.is_empty() {
            true => None,
            false => {
                let out = (&mut rows, &mut written);
                Some(self.close_epoch(&judged, (&changes, steps), now, out)?)
            }
        };
        Ok((self.computed(closed, before, (rows, &written)), deferred))
    }

    /// A commit that closes an epoch without changes; the tree must have leaves.
    pub(crate) fn heartbeat(
        &mut self,
        store: &dyn Store,
        confirmed: u64,
        now: u64,
    ) -> Result<Computed, Error> {
        self.forget(confirmed);
        let (mut steps, mut touched) = (None, Vec::new());
        if self.tiling.has_witness {
            let (tree, made) = steps_of(store, &self.tree, &[], self.tiling.levels)?;
            if let Some(Step::Touch { leaf, .. }) = made.first() {
                touched.push(leaf.index);
            }
            (self.tree, steps) = (tree, Some(made));
        }
        self.memory.has(self.next, &touched, self.tiling.resident);
        let (mut rows, mut written) = (Rows::default(), Written::default());
        let before = self.record.chain;
        let closed = self.close_epoch(&[], (&[], steps), now, (&mut rows, &mut written))?;
        Ok(self.computed(Some(closed), before, (rows, &written)))
    }

    /// The time at which the last epoch was closed, if one without changes can follow it: such an epoch is proven from a leaf, which
    /// moves up where it is alone.
    pub(crate) fn heartbeat_after(&self) -> Option<u64> {
        let can_be_proven = !self.tiling.has_witness || self.tree.profile().collapses();
        (self.record.leaves > 0 && can_be_proven).then_some(self.record.closed)
    }

    /// Ends a commit with these rows.
    fn computed(
        &mut self,
        epoch: Option<(SignedRecord, Tree)>,
        before: Digest,
        (mut rows, written): (Rows, &Written),
    ) -> Computed {
        // Without this list, recovery could not find the rows of a commit that it has to remove.
        rows.put(Table::Commit, self.next.to_be_bytes(), written.encode());
        let number = self.next;
        self.next += 1;
        Computed { number, epoch, before, rows, numbers: written.numbers.clone() }
    }

    /// Takes out the updates that the prover of the epoch has no room for. Returns the changes that are left, their steps if there is
    /// a witness, and what was taken out, in its order.
    fn fit(&self, judged: &mut Vec<Judged>) -> Result<Fitted, Error> {
        let mut changes = changes_of(judged);
        let mut deferred = Vec::new();
        if !self.tiling.has_witness || changes.is_empty() {
            return Ok((changes, None, deferred));
        }
        // Taking changes out alters the steps of the others, so the rest is measured again. A
        // single change is never surplus, so this ends.
        let steps = loop {
            let made = self.tree.steps(&changes)?;
            let surplus = self.surplus(&made, &changes);
            if surplus.is_empty() {
                break made;
            }
            deferred.extend(take_out(judged, &surplus));
            changes = changes_of(judged);
        };
        deferred.sort_unstable_by_key(|update| update.number);
        Ok((changes, Some(steps), deferred))
    }

    /// Closes the epoch of a commit, and adds its rows. Returns the signed record and the tree.
    fn close_epoch(
        &mut self,
        judged: &[Judged],
        (changes, steps): (&[Change], Option<Vec<Step>>),
        now: u64,
        (rows, written): (&mut Rows, &mut Written),
    ) -> Result<(SignedRecord, Tree), Error> {
        let new = || judged.iter().filter_map(|(new, update)| Some((new.as_ref().ok()?, update)));
        let entries: Vec<[u8; Leaf::LENGTH]> = new().map(|(new, _)| new.leaf.encode()).collect();
        self.tree = self.tree.update(changes)?;
        let epoch = self.tree.epoch();
        let mut changed: Vec<Index> = changes.iter().map(|change| change.index).collect();
        changed.sort_unstable();
        if let Some(steps) = steps {
            rows.put(Table::Witness, epoch.to_be_bytes(), Step::encode_all(&steps));
            written.has_witness = true;
        }
        let digests: Vec<Digest> = entries.iter().map(|bytes| log::entry(bytes)).collect();
        let mut tiles = self.log.append(&digests);
        tiles.extend(self.records.append(&[self.record.entry()]));
        let (log, records) = (self.log.frontier(), self.records.frontier());
        self.record = self.record.next(&self.tree, log, records, now);
        written.epoch = epoch;
        for (place, tile) in self.tree.tiles(&changed, self.tiling.levels) {
            rows.put(Table::Node, rows::at_epoch(&place.encode(), epoch), tile);
            written.places.push(place);
        }
        for (place, tile) in tiles {
            rows.put(Table::Log, rows::at_epoch(&place.encode(), epoch), tile);
            written.log.push(place);
        }
        for (New { leaf, before }, update) in new() {
            let key = rows::value_key(&update.index, leaf.version);
            let entry = Entry::Value(update.opening.clone());
            let value = Value { before: *before, label: update.label.clone(), entry };
            rows.put(Table::Value, key, value.encode());
            written.values.push(key);
        }
        rows.put(Table::Changes, epoch.to_be_bytes(), entries.concat());
        rows.put(Table::Epoch, epoch.to_be_bytes(), self.record.encode());
        // Nobody sees the signature before the head is beyond it: a commit above the head is removed with it.
        let signed = self.record.sign(&self.key);
        rows.put(Table::Signature, epoch.to_be_bytes(), signed.signature());
        Ok((signed, self.tree.clone()))
    }

    /// Returns the leaf that an update writes, or why the update is refused.
    fn judge(&self, update: &Accepted) -> Result<Result<New, Refusal>, Error> {
        let leaf = self.tree.leaf(&update.index).map_err(UpdateError::from)?;
        let current = leaf.map(|leaf| leaf.version);
        if let Err(refusal) = update.check(current) {
            return Ok(Err(refusal));
        }
        let version = current.map_or(0, |version| version + 1);
        let before = leaf.map_or(Commitment::NONE, |leaf| leaf.commitment);
        let commitment = before.then(&update.digest);
        let leaf = Leaf { index: update.index, version, epoch: self.tree.epoch(), commitment };
        Ok(Ok(New { leaf, before }))
    }

    /// Changes that the prover of the epoch has no room for, on its stack or in its steps: the latest ones, so that later
    /// updates never delay earlier ones. What is left may still be too much.
    fn surplus(&self, steps: &[Step], changes: &[Change]) -> BTreeSet<Index> {
        let needed = [(Step::height(steps), STACK), (steps.len(), self.tiling.max_steps)];
        let Some((found, room)) = needed.into_iter().find(|(found, room)| found > room) else {
            return BTreeSet::new();
        };
        // About as many as there is room for; one at least, or nothing would ever be done.
        let kept = (changes.len() * room / found).clamp(1, changes.len().saturating_sub(1).max(1));
        changes.iter().skip(kept).map(|change| change.index).collect()
    }

    /// The tree, as far as it is in memory.
    #[cfg(test)]
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Forgets what is deep in the tree, on the disk, and of no commit that is not.
    fn forget(&mut self, confirmed: u64) {
        let indices = self.memory.forgotten(confirmed);
        self.tree = self.tree.forget(&indices, self.tiling.resident);
    }
}

/// Takes out updates that would be done; they stay accepted.
fn take_out(judged: &mut Vec<Judged>, surplus: &BTreeSet<Index>) -> Vec<Accepted> {
    let is_surplus = |(judged, update): &mut Judged| {
        // A refused update takes no room in a proof, so it gets its outcome now.
        judged.is_ok() && surplus.contains(&update.index)
    };
    judged.extract_if(.., is_surplus).map(|(_, update)| update).collect()
}

/// The steps of an epoch, and the tree with what they need in memory. The ways to changes must be in memory already.
pub(crate) fn steps_of(
    store: &dyn Store,
    tree: &Tree,
    changes: &[Change],
    levels: usize,
) -> Result<(Tree, Vec<Step>), Error> {
    let mut loaded = tree.clone();
    loop {
        match loaded.steps(changes) {
            Ok(steps) => return Ok((loaded, steps)),
            // Each time further down on the way to a leaf, so this ends.
            Err(UpdateError::Away(Away(place))) if changes.is_empty() => {
                loaded = load(store, &loaded, &[place.prefix()], levels)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A tree with everything in memory that is on the ways to these indices, which are sorted.
pub(crate) fn load(
    store: &dyn Store,
    tree: &Tree,
    indices: &[Index],
    levels: usize,
) -> Result<Tree, Error> {
    let mut loaded = tree.clone();
    loop {
        // Each tile is checked against the digest in the tile above it, so they are loaded from the
        // top down.
        let places = loaded.missing(indices);
        if places.is_empty() {
            return Ok(loaded);
        }
        let mut tiles = BTreeMap::new();
        for place in places {
            let key = place.encode();
            let tile = rows::newest(store, Table::Node, &key, loaded.epoch())?
                .ok_or_else(|| Damaged::new(Table::Node, &key, "it is missing"))?;
            tiles.insert(place, tile);
        }
        loaded = loaded.load(&tiles, levels).map_err(|(place, error)| {
            Damaged::new(Table::Node, &rows::at_epoch(&place.encode(), loaded.epoch()), error)
        })?;
    }
}

/// The parts of the tree that are in memory only because commits needed them.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// The places that each commit needed, the oldest commit first.
    commits: VecDeque<(u64, Vec<Place>)>,
    /// The last commit that needed each place.
    last: HashMap<Place, u64>,
}

impl Memory {
    fn has(&mut self, commit: u64, indices: &[Index], depth: usize) {
        let mut places: Vec<Place> = indices.iter().map(|index| Place::of(index, depth)).collect();
        places.dedup();
        for place in &places {
            self.last.insert(*place, commit);
        }
        self.commits.push_back((commit, places));
    }

    /// Indices below the places that no commit after this one needed, sorted.
    fn forgotten(&mut self, confirmed: u64) -> Vec<Index> {
        let mut indices = Vec::new();
        while self.commits.front().is_some_and(|(commit, _)| *commit <= confirmed) {
            let Some((_, places)) = self.commits.pop_front() else { break };
            for place in places {
                // A later commit may have needed the place again, and may not be on the disk yet.
                if self.last.get(&place).is_some_and(|last| *last <= confirmed) {
                    self.last.remove(&place);
                    indices.push(place.prefix());
                }
            }
        }
        indices.sort_unstable();
        indices
    }
}
