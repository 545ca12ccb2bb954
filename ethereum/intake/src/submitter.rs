//! Makes a job from each record, and keeps the chain of the orchestrator on the branch of the last payload.
//!
//! The wanted jobs follow from the records and from what the chain has published (`branch::Tree::follow`). Each round compares them
//! with the existing jobs, so it does not matter where the last round ended, who cancelled a job or which of the processes died:
//! records are written first, then the chain is reverted, then jobs are made, lowest first, and repeating any of this is
//! harmless.

mod place;

use crate::again::Again;
use crate::branch::{Link, Plan, hash};
use crate::jobs::Jobs;
use crate::published::Follower;
use crate::record::Record;
use crate::store::{StoreError, WitnessStore};
use alloy_primitives::{B256, hex};
use hekaton_orchestrator_client::ClientError;
use hekaton_orchestrator_client::Order;
use hekaton_orchestrator_client::body::{ChainBody, ChainState, JobStatus, JobView, ReorgBody};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval at which old records are removed.
const PRUNE: Duration = Duration::from_secs(3_600);

/// The interval at which jobs are compared with records when nothing arrives.
const LOOK: Duration = Duration::from_secs(10);

/// The pause after the first failure of the orchestrator, doubled with each further failure.
const SOON: Duration = Duration::from_millis(500);

/// The reason that records report for a block that is not followed, because it is not above the published ones.
const NOT_LINKED: &str = "its branch does not meet the last 1,024 blocks that the chain has published: if it is right, revert the chain to where they part";

/// The outcome for a block whose job is to be in its place.
enum Placed {
    /// The job already existed.
    There,
    /// The job was made, or made again.
    Made,
    /// The job itself is wrong, or dead.
    Refused,
    /// Another block is in the place.
    Taken(String),
}

/// Makes jobs of the records of a store.
#[derive(Debug)]
pub struct JobSubmitter {
    store: Arc<WitnessStore>,
    jobs: Option<Jobs>,
    /// The state of the orchestrator's chain. The lock is held while jobs are made.
    follower: Mutex<Follower>,
    /// The height below which the chain has nothing left to publish.
    passed: AtomicU64,
}

impl JobSubmitter {
    /// Makes a submitter for a store. Without an orchestrator, it makes no jobs, and only removes old records.
    pub fn new(store: Arc<WitnessStore>, jobs: Option<Jobs>) -> Self {
        Self { store, jobs, follower: Mutex::default(), passed: AtomicU64::new(0) }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<WitnessStore> {
        &self.store
    }

    /// Makes the missing jobs: those of the branch of the last payload, and of blocks that are not linked to it yet. If another branch
    /// is in their place, the chain is reverted. Jobs have fixed names, so if the answer to a submission was lost, its job is found.
    /// Returns the number of jobs that were made.
    ///
    /// # Errors
    /// If the orchestrator does not answer, or accepts no more jobs now; the remaining jobs are submitted the next time.
    pub fn submit(&self) -> Result<usize, ClientError> {
        let Some(jobs) = &self.jobs else { return Ok(0) };
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a block there is no genesis for a new chain, and nothing to do for an old one.
        let Some(lowest) = self.store.tree().lowest() else { return Ok(0) };
        let chain = self.chain(jobs, lowest)?;
        if let Some(bundles) = &chain.bundles {
            tracing::error!(
                chain = chain.chain,
                of = bundles.of,
                "no jobs are made: the chain consists of bundles of another one's blocks; choose another --chain"
            );
            return Ok(0);
        }
        if chain.order == Order::None {
            return self.submit_unordered(jobs, &mut Again::default());
        }
        let (published, again) = follower.read(jobs, &chain)?;
        let plan = {
            let mut tree = self.store.tree();
            tree.trim(&published.path);
            tree.follow(&published.path)
        };
        self.pass(
            plan.base
                .filter(|_| plan.torn > 0)
                .map_or(published.path.height(), |base| Some(base.1)),
        );
        self.note(&plan);
        let made = self.follow(jobs, &chain, &plan, again);
        // Even if it takes no more jobs now; but not if it is away.
        if !matches!(made, Err(ClientError::Failed { .. })) {
            self.cancel_aside(jobs, &plan)?;
        }
        made
    }

    /// Asks the orchestrator for the chain, if jobs are made.
    ///
    /// # Errors
    /// If it does not answer, or refuses. A missing chain is made with the first job.
    pub fn reach(&self) -> Result<(), ClientError> {
        let Some(jobs) = &self.jobs else { return Ok(()) };
        match jobs.client.chain(&jobs.chain) {
            Err(ClientError::Problem { problem, .. }) if problem.status == 404 => Ok(()),
            found => found.map(drop),
        }
    }

    /// Notes the height up to which everything is published.
    fn pass(&self, height: Option<u64>) {
        self.passed.store(height.map_or(0, |height| height.saturating_add(1)), Ordering::Relaxed);
    }

    /// Returns the orchestrator's chain, which is made if it does not exist.
    fn chain(&self, jobs: &Jobs, (lowest, link): (B256, Link)) -> Result<ChainState, ClientError> {
        match jobs.client.chain(&jobs.chain) {
            Err(ClientError::Problem { problem, .. }) if problem.status == 404 => {}
            found => return found,
        }
        let genesis = jobs.genesis.clone().or_else(|| {
            tracing::warn!(block = name(&lowest), "the chain begins with this block");
            Some(name(&link.parent))
        });
        let body = ChainBody { order: Order::Strict, genesis, bundles: None };
        match jobs.client.make_chain(&jobs.chain, &body) {
            // Another client was faster.
            Err(ClientError::Problem { problem, .. }) if problem.status == 409 => {
                jobs.client.chain(&jobs.chain)
            }
            made => made,
        }
    }

    fn link(&self, block: &B256) -> Option<Link> {
        self.store.tree().get(block).copied()
    }

    /// Notes in the records which blocks are wanted again.
    fn note(&self, plan: &Plan) {
        for block in plan.wanted.iter().chain(&plan.published) {
            if self.link(block).is_some_and(|link| link.aside)
                && let Some(record) = self.read_known(block)
            {
                tracing::info!(block = record.block, "its branch is followed again");
                let again =
                    |record| Record { aside: false, pending: true, refused: None, ..record };
                self.revise(&record, again);
            }
        }
    }

    /// Changes a record, unless its block has come again meanwhile. If that fails, the next round repeats it.
    fn revise(&self, record: &Record, change: impl FnOnce(Record) -> Record) {
        if let Err(error) = self.store.change(record, change) {
            tracing::error!(%error, "cannot update the record of a block; the next round tries again");
        }
    }

    /// Reads the record of a block; `None` if it was removed meanwhile, or cannot be read.
    fn read_known(&self, block: &B256) -> Option<Record> {
        let found = self.store.record(&name(block));
        found
            .inspect_err(
                |error| tracing::error!(%error, "a record cannot be read: send its block again"),
            )
            .ok()
            .flatten()
    }

    /// Makes the chain follow the branch.
    fn follow(
        &self,
        jobs: &Jobs,
        chain: &ChainState,
        plan: &Plan,
        again: &mut Again,
    ) -> Result<usize, ClientError> {
        let mut made = 0;
        if let (Some((base, height)), 1..) = (plan.base, plan.torn) {
            tracing::warn!(blocks = plan.torn, "taking back published blocks");
            if let Some(next) = plan.wanted.first() {
                self.revert(jobs, &base, height, next)?;
            }
        }
        let tip = chain.tip.as_deref().and_then(hash);
        // Up to the orchestrator's tip, all jobs exist.
        let is_tip = |block: &B256| Some(*block) == tip;
        let mut there = match plan.torn {
            0 => plan.wanted.iter().position(is_tip).map_or(0, |at| at + 1),
            _ => 0,
        };
        self.settle_published(jobs, plan, again)?;
        let mut before = plan.base;
        for (at, block) in plan.wanted.iter().enumerate() {
            let Some(link) = self.link(block) else { continue };
            // The next block to be published is always looked up, to report what it waits for; others only if their state has changed.
            let is_settled = at > 0 && at < there && link.job && !link.pending && !link.refused;
            if !is_settled {
                let mut placed = self.place(jobs, block, link, Order::Strict, again)?;
                if let (Placed::Taken(why), Some((parent, height))) = (&placed, before)
                    && again.is_time(block, Instant::now())
                {
                    tracing::warn!(block = name(block), why, "another branch is in its place");
                    self.revert(jobs, &parent, height, block)?;
                    there = 0;
                    placed = self.place(jobs, block, link, Order::Strict, again)?;
                }
                match placed {
                    Placed::Made => made += 1,
                    Placed::Taken(why) => self.refuse(block, &again.why(block).unwrap_or(why)),
                    Placed::There | Placed::Refused => {}
                }
            }
            before = Some((*block, link.number));
        }
        made += self.place_floating(jobs, plan, again)?;
        Ok(made)
    }

    /// Notes that published blocks of the branch wait for nothing, and makes jobs of those whose records name none.
    fn settle_published(
        &self,
        jobs: &Jobs,
        plan: &Plan,
        again: &mut Again,
    ) -> Result<(), ClientError> {
        for block in &plan.published {
            let Some(link) = self.link(block) else { continue };
            // Another client may have submitted it, or the process died before it was noted.
            if !link.job {
                let link = Link { refused: false, ..link };
                self.place(jobs, block, link, Order::Strict, again)?;
            }
            if let Some(record) = self.read_known(block) {
                self.revise(&record, |record| Record { pending: false, refused: None, ..record });
            }
        }
        Ok(())
    }

    /// Makes jobs for the blocks that are not linked to the chain yet, and gives up those that never will be. Returns the number of jobs
    /// that were made.
    fn place_floating(
        &self,
        jobs: &Jobs,
        plan: &Plan,
        again: &mut Again,
    ) -> Result<usize, ClientError> {
        let mut made = 0;
        for block in &plan.floating {
            let Some(link) = self.link(block) else { continue };
            if plan.floor.is_some_and(|floor| link.number <= floor) {
                self.leave(jobs, block)?;
            } else if link.pending || !link.job {
                match self.place(jobs, block, link, Order::Strict, again)? {
                    Placed::Made => made += 1,
                    Placed::Taken(why) => self.refuse(block, &why),
                    Placed::There | Placed::Refused => {}
                }
            }
        }
        Ok(made)
    }

    /// Gives up a block that is not above the published ones and not linked to them.
    fn leave(&self, jobs: &Jobs, block: &B256) -> Result<(), ClientError> {
        let Some(record) = self.read_known(block) else { return Ok(()) };
        if record.refused.as_deref() == Some(NOT_LINKED) {
            return Ok(());
        }
        let is_published = match &record.job {
            Some(job) => !withdraw(jobs, job)?,
            None => false,
        };
        self.revise(&record, |record| match is_published {
            true => Record { pending: false, refused: None, ..record },
            false => {
                Record { pending: true, job: None, refused: Some(NOT_LINKED.into()), ..record }
            }
        });
        Ok(())
    }

    /// Reverts the chain to a block, unless the right one already follows it.
    fn revert(&self, jobs: &Jobs, to: &B256, height: u64, next: &B256) -> Result<(), ClientError> {
        tracing::warn!(to = name(to), height, "the chain is reverted to follow another branch");
        let body = ReorgBody { to: name(to), block: height, next: Some(name(next)) };
        jobs.client.reorg(&jobs.chain, &body)?;
        self.store.counts.reverts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Notes why a block has no job yet.
    fn refuse(&self, block: &B256, why: &str) {
        if let Some(record) = self.read_known(block) {
            let refused = Some(why.to_owned());
            self.revise(&record, |record| Record { refused, pending: true, ..record });
        }
    }

    /// Cancels the remaining jobs of other branches, and notes that these blocks need no jobs.
    fn cancel_aside(&self, jobs: &Jobs, plan: &Plan) -> Result<(), ClientError> {
        let mut known = None;
        for block in &plan.aside {
            let Some(link) = self.link(block).filter(|link| !link.aside) else { continue };
            let Some(record) = self.read_known(block) else { continue };
            let job = match (&record.job, link.pending) {
                // It may have been submitted without an answer.
                (None, true) => {
                    let found = match known.take() {
                        Some(found) => found,
                        None => jobs.client.jobs()?.jobs,
                    };
                    let found: &Vec<JobView> = known.insert(found);
                    let mut of_chain = found.iter().map(|view| &view.job);
                    of_chain.find(|job| is_of(job, jobs, &record)).map(|job| job.job.clone())
                }
                (job, _) => job.clone(),
            };
            // A published job is taken back with the next revert, and its proof is kept in case the branch comes back.
            if let Some(job) = job {
                withdraw(jobs, &job)?;
            }
            tracing::info!(block = record.block, "another branch is followed");
            self.revise(&record, |record| Record {
                aside: true,
                pending: false,
                job: None,
                refused: None,
                ..record
            });
        }
        Ok(())
    }

    /// Makes a job of each pending block of a chain that has no branches.
    fn submit_unordered(&self, jobs: &Jobs, again: &mut Again) -> Result<usize, ClientError> {
        self.pass(Some(u64::MAX));
        let mut made = 0;
        let pending = self.store.tree().pending();
        for block in pending {
            let Some(link) = self.link(&block) else { continue };
            match self.place(jobs, &block, link, Order::None, again)? {
                Placed::Made => made += 1,
                Placed::Taken(why) => self.refuse(&block, &why),
                Placed::There | Placed::Refused => {}
            }
        }
        Ok(made)
    }

    /// Reports whether a record may be removed: if no jobs are made, if the orchestrator has refused its job for good, or if its
    /// height is published and it does not wait for a job.
    fn is_over(&self, record: &Record) -> bool {
        let waits = record.pending && record.refused.is_none();
        let is_dropped = !record.pending && record.job.is_none() && record.refused.is_some();
        let is_passed = record.number < self.passed.load(Ordering::Relaxed);
        self.jobs.is_none() || (!waits && (is_dropped || is_passed))
    }

    /// Removes the records that were last accepted at least `age` ago, and the blobs that they alone name. With an orchestrator,
    /// records above the published height stay, since their jobs may have to be made again, unless the orchestrator has refused them;
    /// so call this once [`submit`](Self::submit) has reached the orchestrator. Returns the number of records that were removed.
    ///
    /// # Errors
    /// If a record cannot be read: it may name any blob, so nothing is removed.
    pub fn prune(&self, age: Duration) -> Result<usize, StoreError> {
        self.store.prune(age, |record| self.is_over(record))
    }

    /// Makes jobs whenever `wake` is signaled, and every ten seconds, until its sender is dropped. With an age, prunes
    /// ([`prune`](Self::prune)) every hour, for the first time after one hour, when the clock is likely to be right.
    pub fn keep_submitting(&self, wake: &std::sync::mpsc::Receiver<()>, keep: Option<Duration>) {
        let mut pruned = Instant::now();
        let mut soon = SOON;
        loop {
            let submitted = self.submit();
            // An orchestrator that is back is noticed soon.
            let pause = match &submitted {
                Ok(_) => {
                    soon = SOON;
                    LOOK
                }
                Err(_) => {
                    let later = LOOK.min(2 * soon);
                    std::mem::replace(&mut soon, later)
                }
            };
            match (submitted, keep) {
                (Err(error), _) => tracing::warn!(%error, "jobs are submitted later"),
                (Ok(_), Some(age)) if pruned.elapsed() >= PRUNE => {
                    pruned = Instant::now();
                    match self.prune(age) {
                        Ok(removed) => tracing::info!(removed, "old blocks were removed"),
                        Err(error) => tracing::error!(%error, "old blocks were not removed"),
                    }
                }
                (Ok(_), _) => {}
            }
            match wake.recv_timeout(pause) {
                // One round makes the jobs of all records, however often it was woken.
                Ok(()) => while wake.try_recv().is_ok() {},
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Cancels a job. Returns `false` if it is too late, as the job is published.
fn withdraw(jobs: &Jobs, job: &str) -> Result<bool, ClientError> {
    match jobs.client.cancel(job) {
        Ok(_) => Ok(true),
        // Another block is in its place.
        Err(ClientError::Problem { problem, .. }) if problem.status == 404 => Ok(true),
        Err(ClientError::Problem { problem, .. }) if problem.status == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reports whether a job is one of a block.
fn is_of(job: &JobStatus, jobs: &Jobs, record: &Record) -> bool {
    job.chain == jobs.chain && job.id == record.block && job.state != "cancelled"
}

/// Returns a hash as records and jobs name it.
fn name(hash: &B256) -> String {
    hex::encode(hash)
}
