//! A directory that is served.

use super::check::{Report, check};
use super::damaged::Damaged;
use super::error::{Error, SubmitError};
use super::options::{Mode, Options};
use super::pending;
use super::proofs;
use super::prune::prune;
use super::rows::{self, Format, LogKind, Submitted, Value};
use super::shared::{Incoming, Phase, Shared, State};
use super::stats::Stats;
use super::store::{Rows, Store as _, StoreError, Table};
use super::update::{Accepted, MAX_IDEMPOTENCY_KEY, Receipt, Status, Update};
use super::view::{View, changes};
use hekaton_directory::{
    Continuation, Digest, Entry, EpochProof, Index, Leaf, Parameters, Record, SignedRecord, Tree,
    Witness,
};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A directory that is served.
#[derive(Debug)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
    pub(crate) parameters: Parameters,
    /// The thread that writes; `None` where the directory is only read.
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
}

impl Server {
    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Accepts an update: it is on the disk when this returns, and will have an outcome.
    ///
    /// # Errors
    /// If it is not one that a directory can have, or cannot be accepted now.
    pub fn submit(&self, update: Update) -> Result<Receipt, SubmitError> {
        let prepared = self.prepare(update)?;
        let sent = self.send(&mut self.shared.lock(), prepared);
        self.shared.changed.notify_all();
        answer(sent)
    }

    /// Accepts updates, each as [`submit`](Self::submit) does, and by itself: some may be accepted and others not. Many at
    /// once take few syncs.
    pub fn submit_all(&self, updates: Vec<Update>) -> Vec<Result<Receipt, SubmitError>> {
        let prepared: Vec<_> = updates.into_iter().map(|update| self.prepare(update)).collect();
        let mut state = self.shared.lock();
        let sent: Vec<_> =
            prepared.into_iter().map(|prepared| self.send(&mut state, prepared?)).collect();
        drop(state);
        self.shared.changed.notify_all();
        sent.into_iter().map(answer).collect()
    }

    /// Validates and hashes an update on the caller's thread, off the pipeline.
    fn prepare(&self, update: Update) -> Result<Prepared, SubmitError> {
        let submitted = match &update.idempotency_key {
            None => None,
            Some(name) if (1..=MAX_IDEMPOTENCY_KEY).contains(&name.len()) => Some((
                name.clone(),
                Submitted { number: 0, digest: update.digest(&self.shared.secret) },
            )),
            Some(name) => return Err(SubmitError::IdempotencyKey(name.len())),
        };
        // Without a fresh salt, guesses of the value could be tested against its commitment.
        let mut salt = [0; 32];
        getrandom::fill(&mut salt).map_err(|error| SubmitError::Random(error.to_string()))?;
        Ok((Accepted::of(update, salt)?, submitted))
    }

    /// Hands an update to intake, whose answer comes later.
    fn send(&self, state: &mut State, (update, submitted): Prepared) -> Result<Reply, SubmitError> {
        match state.phase {
            Phase::Running => {}
            Phase::Recovering(_) => return Err(SubmitError::Recovering),
            Phase::Draining { .. } | Phase::Stopped(_) => return Err(SubmitError::Stopping),
        }
        let waiting = state.open.len() + state.incoming.len();
        let own = pending::size(&update);
        let bytes = state.pending.bytes() + state.incoming_bytes + own;
        let Options { max_pending, max_pending_bytes, max_pending_of_label, .. } =
            self.shared.options;
        let of_label = state.pending.of_label(&update.index);
        if of_label >= max_pending_of_label {
            return Err(SubmitError::Full(of_label));
        }
        // One that waits alone is always taken.
        if waiting >= max_pending || (waiting > 0 && bytes > max_pending_bytes) {
            return Err(SubmitError::Full(waiting));
        }
        let (reply, answer) = sync_channel(1);
        state.incoming_bytes += own;
        state.incoming.push(Incoming { update, submitted, reply });
        Ok(answer)
    }

    /// Returns the status of an update.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn outcome(&self, number: u64) -> Result<Status, Error> {
        let view = self.view()?;
        let (is_open, next) = {
            let state = self.shared.lock();
            (state.open.contains(&number), state.next)
        };
        // The row of the outcome may be there, above the head, and a crash could still take it
        // back.
        if is_open {
            return Ok(Status::Waits);
        }
        let key = number.to_be_bytes();
        let found = rows::find(&*view.store, Table::Outcome, &key)?;
        Ok(match found {
            Some(outcome) if number < next => Status::Done(outcome),
            _ => Status::Unknown,
        })
    }

    /// Waits until an update has an outcome, at most this long, and returns what became of it.
    ///
    /// # Errors
    /// If the database cannot be read, or the server stops before.
    pub fn wait(&self, number: u64, at_most: Duration) -> Result<Status, Error> {
        let until = Instant::now().checked_add(at_most);
        let mut state = self.shared.lock();
        // While the database is opened again, nothing is known.
        while matches!(state.phase, Phase::Recovering(_)) || state.open.contains(&number) {
            let left =
                until.map_or(at_most, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() || matches!(state.phase, Phase::Stopped(_)) {
                break;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        self.outcome(number)
    }

    /// Closes epochs until all updates that are accepted now have an outcome.
    ///
    /// # Errors
    /// If the server stops before.
    pub fn flush(&self) -> Result<(), Error> {
        let mut state = self.shared.lock();
        let upto = state.next;
        // Never lower, because another call may have asked for later updates.
        state.urgent = state.urgent.max(upto);
        drop(state);
        self.shared.changed.notify_all();
        let mut state = self.shared.lock();
        loop {
            if let Phase::Stopped(why) = &state.phase {
                return Err(Error::Stopped(why.clone()));
            }
            let is_running = !matches!(state.phase, Phase::Recovering(_));
            if is_running && state.open.first().is_none_or(|first| *first >= upto) {
                return Ok(());
            }
            state = self.shared.wait(state);
        }
    }

    /// The last epoch.
    ///
    /// # Errors
    /// If the server does not answer now.
    pub fn view(&self) -> Result<Arc<View>, Error> {
        let view = self.shared.view.read().unwrap_or_else(PoisonError::into_inner).clone();
        view.ok_or_else(|| match &self.shared.lock().phase {
            Phase::Stopped(why) => Error::Stopped(why.clone()),
            Phase::Recovering(why) => Error::Recovering(why.clone()),
            _ => Error::Recovering("its database failed".into()),
        })
    }

    /// An epoch.
    ///
    /// # Errors
    /// If there is no such epoch yet, or its tree is pruned.
    pub fn view_at(&self, epoch: u32) -> Result<View, Error> {
        let view = self.view()?;
        let first = self.pruned()?;
        if epoch < first {
            return Err(Error::Pruned { epoch, first });
        }
        let signed = self.signed_record(&view, epoch)?;
        let record = *signed.unverified();
        let tree = Tree::away(self.parameters.profile, epoch, record.leaves, record.root);
        let (store, levels, commit) = (Arc::clone(&view.store), view.levels, view.commit);
        Ok(View { store, signed, record, tree, levels, commit })
    }

    /// The first epoch that has a tree; those before it are pruned.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn pruned(&self) -> Result<u32, Error> {
        let view = self.view()?;
        let format: Format = rows::get(&*view.store, Table::Format, &rows::FORMAT)?;
        Ok(format.pruned)
    }

    /// The signed record of an epoch.
    ///
    /// # Errors
    /// If there is no such epoch yet.
    pub fn record(&self, epoch: u32) -> Result<SignedRecord, Error> {
        self.signed_record(&*self.view()?, epoch)
    }

    fn signed_record(&self, view: &View, epoch: u32) -> Result<SignedRecord, Error> {
        let last = view.record.epoch;
        if epoch > last {
            return Err(Error::NoEpoch { epoch, last });
        }
        if epoch == last {
            return Ok(view.signed);
        }
        let key = epoch.to_be_bytes();
        let record: Record = rows::get(&*view.store, Table::Epoch, &key)?;
        let signature = rows::get(&*view.store, Table::Signature, &key)?;
        Ok(SignedRecord::of(record, signature))
    }

    /// The proof that the record of an epoch continues the history of an earlier one, whatever was between. It is empty unless the one is
    /// earlier than the other.
    ///
    /// # Errors
    /// If there is no such epoch yet, or the database cannot be read or is damaged.
    pub fn continuation(&self, from: u32, to: u32) -> Result<Continuation, Error> {
        let view = self.view()?;
        let [earlier, later] = [self.signed_record(&view, from)?, self.signed_record(&view, to)?];
        if from >= to {
            return Ok(Continuation::default());
        }
        let (log, place, size) = (view.log(LogKind::Records), u64::from(from), u64::from(to));
        let (entry, before) = (log.entry(place, size)?, log.continues(place, size)?);
        let proof = Continuation { entry, before };
        // A client would take a damaged row for a lie.
        let checked = later
            .verify(&self.parameters)
            .and_then(|later| later.check_continues(&earlier.verify(&self.parameters)?, &proof));
        checked.map_err(|error| Damaged::new(Table::Epoch, &to.to_be_bytes(), error))?;
        Ok(proof)
    }

    /// The [peaks](hekaton_directory::Frontier::peaks) of the tree of all records before an epoch.
    ///
    /// # Errors
    /// If there is no such epoch yet, or the database cannot be read.
    pub fn records_before(&self, epoch: u32) -> Result<Vec<Digest>, Error> {
        let view = self.view()?;
        self.signed_record(&view, epoch)?;
        view.log(LogKind::Records).peaks(epoch.into())
    }

    /// The leaves that an epoch has written, in the order of the log, whose entries they are.
    ///
    /// # Errors
    /// If there is no such epoch yet.
    pub fn changes(&self, epoch: u32) -> Result<Vec<Leaf>, Error> {
        let view = self.view()?;
        if epoch > view.record.epoch {
            return Err(Error::NoEpoch { epoch, last: view.record.epoch });
        }
        changes(&*view.store, epoch)
    }

    /// Returns the witness for the prover of the epochs after `from`, up to `to`.
    ///
    /// # Errors
    /// If there are no such epochs yet, or nothing was kept for their provers.
    pub fn witness(&self, from: u32, to: u32) -> Result<Witness, Error> {
        let view = self.view()?;
        let record = *self.signed_record(&view, from)?.unverified();
        self.signed_record(&view, to)?;
        let (_, steps) = proofs::steps(&*view.store, from, to, usize::MAX)?;
        let profile = view.tree.profile();
        let Record { epoch, root, chain, .. } = record;
        Ok(Witness { profile, epoch, root, chain, steps })
    }

    /// The last epoch up to which all are proven; 0 if none is.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn proven(&self) -> Result<u32, Error> {
        // Not what the database shows: after a failed write that may not be on the disk.
        self.view()?;
        Ok(self.shared.lock().proven)
    }

    /// The proof of an epoch, if it is proven. It may be of others, too.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn proof_of(&self, epoch: u32) -> Result<Option<EpochProof>, Error> {
        match epoch <= self.proven()? {
            true => proofs::proof_of(&*self.view()?.store, epoch),
            false => Ok(None),
        }
    }

    /// Lists attached proofs in order, at most `most`, starting with the one that covers `epoch`: for each, the epoch before its
    /// first one, and its last one.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn proof_ranges(&self, epoch: u32, most: usize) -> Result<Vec<(u32, u32)>, Error> {
        let proven = self.proven()?;
        let mut ranges = proofs::ranges(&*self.view()?.store, epoch, most)?;
        // A failed write may have left a proof in the database that is not on the disk.
        ranges.retain(|(_, to)| *to <= proven);
        Ok(ranges)
    }

    /// Returns the last epoch of the next proof, and the witness for its prover. The proof is of whole epochs after the
    /// last one that is proven, as many as have at most `most` steps together. Returns `None` if all are proven.
    ///
    /// # Errors
    /// If nothing was kept for provers of the next epoch, or it has more steps alone.
    pub fn unproven(&self, most: usize) -> Result<Option<(u32, Witness)>, Error> {
        let _one = self.maintenance();
        let view = self.view()?;
        let store = &*view.store;
        let from = proofs::proven(store)?;
        // The circuit of the profile `full` proves one epoch (docs/spec/11-directory.md).
        let most_epochs = if view.tree.profile().collapses() { u32::MAX } else { 1 };
        let last = view.record.epoch.min(from.saturating_add(most_epochs));
        let (to, steps) = proofs::steps(store, from, last, most)?;
        let record = *self.signed_record(&view, from)?.unverified();
        let Record { epoch, root, chain, .. } = record;
        let witness = Witness { profile: view.tree.profile(), epoch, root, chain, steps };
        Ok((to > from).then_some((to, witness)))
    }

    /// Attaches a proof of epochs that are visible: from here on, they are proven. Proofs are attached in the order of epochs,
    /// without gaps. `verify` gets the public values that the records at its ends have, as in an [audit](hekaton_directory::audit()), and
    /// nothing is attached that it rejects. What the prover of these epochs needed is removed.
    ///
    /// Returns false if there was a proof of the same epochs before, which stays.
    ///
    /// # Errors
    /// If it does not continue the proofs that there are, was rejected, or the database fails.
    pub fn attach(
        &self,
        proof: &EpochProof,
        verify: impl FnOnce(
            &EpochProof,
            [u128; 10],
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<bool, Error> {
        let _alone = self.maintenance();
        let view = self.written_view()?;
        let attached = proofs::attach(&*view.store, proof, view.record.epoch, verify);
        if let Ok(true) = attached {
            self.shared.lock().proven = proof.to;
        }
        self.told(attached)
    }

    /// Erases a value: its digest is left, which the label's commitment needs. The row with which it was accepted goes with
    /// the next commit, or when the server stops.
    ///
    /// # Errors
    /// If the label had no such version in the last epoch, or the database fails.
    pub fn erase(&self, label: &[u8], version: u32) -> Result<(), Error> {
        let _alone = self.maintenance();
        let view = self.written_view()?;
        let index = Index::of(label)?;
        let key = rows::value_key(&index, version);
        let Some(leaf) = view.leaf(&index)?.filter(|leaf| leaf.version >= version) else {
            return Err(Error::NoVersion(version));
        };
        let mut value: Value = rows::get(&*view.store, Table::Value, &key)?;
        if let Entry::Value(opening) = &value.entry {
            let digest = opening.digest(label)?;
            let after = match version == leaf.version {
                true => leaf.commitment,
                false => {
                    let next = rows::value_key(&index, version + 1);
                    rows::get::<Value>(&*view.store, Table::Value, &next)?.before
                }
            };
            if value.before.then(&digest) != after {
                let why = "it is not what its leaf commits to; a digest of it would be wrong";
                return Err(Damaged::new(Table::Value, &key, why).into());
            }
            value.entry = Entry::Erased(digest);
        }
        let mut rows = Rows::default();
        rows.put(Table::Value, key, value.encode());
        self.told(view.store.commit(rows).map_err(Error::from))
    }

    /// Removes what only trees of epochs before this one have, and the outcomes of their updates. Records, values and the
    /// log stay.
    ///
    /// # Errors
    /// If there is no such epoch yet, or the database fails.
    pub fn prune(&self, epoch: u32) -> Result<(), Error> {
        let _alone = self.maintenance();
        let view = self.written_view()?;
        if epoch > view.record.epoch {
            return Err(Error::NoEpoch { epoch, last: view.record.epoch });
        }
        let next = self.shared.lock().next;
        self.told(prune(&*view.store, epoch, next))
    }

    /// Checks the whole database up to the last epoch.
    ///
    /// # Errors
    /// What is wrong with it first.
    pub fn check(&self) -> Result<Report, Error> {
        let _alone = self.maintenance();
        check(&*self.view()?, &self.parameters)
    }

    /// The last epoch, of a database that may be written: one that is only read for the time being shows its epochs, too.
    fn written_view(&self) -> Result<Arc<View>, Error> {
        // If the phase changes in between, the database of this view fails or is closed.
        let view = self.view()?;
        match &self.shared.lock().phase {
            Phase::Running | Phase::Draining { .. } => Ok(view),
            Phase::Recovering(why) => Err(Error::Recovering(why.clone())),
            Phase::Stopped(why) => Err(Error::Stopped(why.clone())),
        }
    }

    fn maintenance(&self) -> MutexGuard<'_, ()> {
        self.shared.maintenance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a failed write to the pipeline, which then opens the database again, whichever thread wrote.
    fn told<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(Error::Store(StoreError::Write(why))) = &result {
            // This write came from outside of the session, whose threads have to end as well: nothing
            // may be written after it.
            self.shared.fail(StoreError::Write(why.to_string().into()).into());
        }
        result
    }

    /// Changes how the stages of a commit go together, from the next commit on.
    pub fn set_mode(&self, mode: Mode) {
        self.shared.mode.store(mode.number(), std::sync::atomic::Ordering::Relaxed);
    }

    /// Returns statistics of commits.
    pub fn stats(&self) -> Stats {
        *self.shared.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the directory takes updates. While it does not, look-ups may still be answered.
    ///
    /// # Errors
    /// Why it takes none.
    pub fn ready(&self) -> Result<(), Error> {
        match &self.shared.lock().phase {
            Phase::Running => Ok(()),
            Phase::Recovering(why) => Err(Error::Recovering(why.clone())),
            Phase::Draining { .. } => Err(Error::Stopped(None)),
            Phase::Stopped(why) => Err(Error::Stopped(why.clone())),
        }
    }

    /// Returns the number of accepted updates without an outcome.
    pub fn open_updates(&self) -> usize {
        self.shared.lock().open.len()
    }

    /// Stops: takes no more updates, and ends once those that are accepted have an outcome.
    ///
    /// # Errors
    /// If that failed; all that was accepted is kept.
    pub fn drain(&self) -> Result<(), Error> {
        self.stop(true)
    }

    /// Stops after what is being written. Updates that wait are there when the directory is opened again.
    ///
    /// # Errors
    /// If that failed; all that was accepted is kept.
    pub fn close(&self) -> Result<(), Error> {
        self.stop(false)
    }

    fn stop(&self, all: bool) -> Result<(), Error> {
        {
            let mut state = self.shared.lock();
            match &mut state.phase {
                Phase::Running | Phase::Recovering(_) => state.phase = Phase::Draining { all },
                // A second one may be in more of a hurry.
                Phase::Draining { all: now } => *now &= all,
                Phase::Stopped(_) => {}
            }
        }
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread {
            Some(thread) => drop(thread.join()),
            None => self.stop_reading(),
        }
        // Another caller may wait for the thread.
        let mut state = self.shared.lock();
        loop {
            match &state.phase {
                Phase::Stopped(Some(why)) => return Err(Error::Stopped(Some(Arc::clone(why)))),
                Phase::Stopped(None) => return Ok(()),
                _ => state = self.shared.wait(state),
            }
        }
    }
}

/// An update before it has a number.
type Prepared = (Accepted, Option<(Vec<u8>, Submitted)>);

/// The channel on which intake answers.
type Reply = Receiver<Result<Receipt, SubmitError>>;

fn answer(sent: Result<Reply, SubmitError>) -> Result<Receipt, SubmitError> {
    sent?.recv().unwrap_or_else(|_| Err(SubmitError::Unknown("its database failed".into())))
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
