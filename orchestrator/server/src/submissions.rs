//! Requests from clients and operators about jobs and chains.

mod published;
mod removed;

pub use published::Reversal;
pub(crate) use published::{Path, PathBlock};

use crate::clock::Clock;
use crate::dispatch::BLOCKS_BEHIND_DEAD;
use crate::order;
use crate::record::{
    Bundles, Chain, Handle, Job, JobKey, JobState, Order, ReadError, Stored, chain_key, create,
    decode, encode, read, update,
};
use crate::store::{MAX_VALUE, Store, Unavailable, WriteError};
use crate::workflows::Workflows;
use hekaton_orchestrator_client::{BlobError, Digest, MAX_BLOBS, Name, WorkflowError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The pause after an answer of the store was lost.
const PAUSE: Duration = Duration::from_millis(200);

/// A block that a client wants proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The tenant that it belongs to.
    pub tenant: Name,
    /// The chain.
    pub chain: Name,
    /// The height.
    pub block: u64,
    /// The block's name.
    pub id: Name,
    /// The block before it; for chains with an order.
    pub parent: Option<Name>,
    /// Urgency, 0 is the most urgent.
    pub lane: u8,
    /// The blob of the workflow.
    pub workflow: Digest,
    /// Blobs.
    pub inputs: BTreeMap<Name, Vec<Digest>>,
    /// The request's `traceparent`.
    pub trace: Option<String>,
}

/// The reason why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum SubmissionError {
    /// There is no such chain.
    #[error("there is no chain '{0}': make it first")]
    NoChain(Name),
    /// There is no such job.
    #[error("there is no job '{job}'{}", removed_after(*.days))]
    NoJob {
        /// Its handle.
        job: Handle,
        /// The number of days after which jobs are removed, if they are.
        days: Option<u32>,
    },
    /// The chain exists and is another one.
    #[error("the chain '{chain}' exists with {found}, not with {wanted}")]
    OtherChain {
        /// The chain.
        chain: Name,
        /// Its order and genesis.
        found: String,
        /// The order and genesis that were asked for.
        wanted: String,
    },
    /// The request does not fit the chain or the workflow.
    #[error("{0}")]
    Bad(String),
    /// The workflow and the job do not fit.
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
    /// A blob that the request names does not exist, or cannot be used.
    #[error("{0}: send it again")]
    NoBlob(BlobError),
    /// The request conflicts with what is there already.
    #[error("{0}")]
    Taken(String),
    /// The chain must be repaired first.
    #[error(
        "block {dead} of the chain '{chain}' is dead, and at most {BLOCKS_BEHIND_DEAD} blocks behind it are accepted: requeue it, skip it or revert the chain"
    )]
    BehindDead {
        /// The chain.
        chain: Name,
        /// The dead block's height.
        dead: u64,
    },
    /// The store did not say whether it was done. It may be asked for again.
    #[error("the store did not confirm the request, which may still take effect: {0}")]
    Unknown(WriteError),
    /// The store refuses or does not answer. Nothing was done, or only a part that a repetition completes.
    #[error(transparent)]
    Store(WriteError),
    /// A read failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<WriteError> for SubmissionError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Unknown { .. } => Self::Unknown(error),
            error => Self::Store(error),
        }
    }
}

impl From<Unavailable> for SubmissionError {
    fn from(error: Unavailable) -> Self {
        Self::Read(error.into())
    }
}

/// The result of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The job.
    pub job: Job,
    /// `true` if this submission made or revived it.
    pub new: bool,
}

/// The part of a process that requests reach: it checks them and turns them into records.
#[derive(Clone, Debug)]
pub struct Submissions {
    store: Arc<dyn Store>,
    clock: Clock,
    workflows: Workflows,
    /// The number of days after which jobs are removed.
    days: Option<u32>,
}

impl Submissions {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Clock, workflows: Workflows) -> Self {
        Self { store, clock, workflows, days: None }
    }

    /// The same, where jobs are removed after a number of days.
    pub(crate) fn keeping(self, days: Option<u32>) -> Self {
        Self { days, ..self }
    }

    /// Makes a chain. Making the same one again is fine.
    ///
    /// # Errors
    /// If it exists with another order or genesis, or is invalid.
    pub async fn make_chain(&self, wanted: Chain) -> Result<Chain, SubmissionError> {
        let Chain { order, genesis, bundles, .. } = &wanted;
        if (*order == Order::Strict) != genesis.is_some() {
            let why = "a chain with strict order has a genesis, and one without order has none";
            return Err(SubmissionError::Bad(why.into()));
        }
        if let Some(bundles) = bundles {
            self.check_bundles(&wanted, bundles).await?;
        }
        let key = chain_key(&wanted.tenant, &wanted.chain);
        match create(&*self.store, &key, wanted.clone()).await {
            Ok(stored) => Ok(stored.value),
            Err(WriteError::Conflict { .. }) => {
                let found = self.chain(&wanted.tenant, &wanted.chain).await?;
                let say = |chain: &Chain| {
                    let order = match &chain.genesis {
                        Some(genesis) => format!("strict order and genesis '{genesis}'"),
                        None => "no order".into(),
                    };
                    match &chain.bundles {
                        Some(Bundles { of, blocks, .. }) => {
                            format!("{order}, of bundles of {blocks} blocks of '{of}'")
                        }
                        None => order,
                    }
                };
                match found == wanted {
                    true => Ok(found),
                    false => Err(SubmissionError::OtherChain {
                        found: say(&found),
                        wanted: say(&wanted),
                        chain: wanted.chain,
                    }),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Checks the source of a chain of bundles. The other chain is there before this one and neither is ever changed, so no chain is made
    /// of itself.
    async fn check_bundles(&self, chain: &Chain, bundles: &Bundles) -> Result<(), SubmissionError> {
        let Bundles { of, blocks, workflow, input, .. } = bundles;
        let bad = |why: String| Err(SubmissionError::Bad(format!("bundles: {why}")));
        let other = match *of == chain.chain {
            true => return bad("a chain cannot be made of its own blocks".into()),
            false => self.chain(&chain.tenant, of).await?,
        };
        self.check_source(chain, &other).await?;
        if other.order != Order::Strict || chain.order != Order::Strict {
            return bad(format!("both '{of}' and '{}' need strict order", chain.chain));
        }
        if !(1..=MAX_BLOBS).contains(&(*blocks as usize)) {
            return bad(format!("expected 1 to {MAX_BLOBS} blocks in a bundle, found {blocks}"));
        }
        let digest = *workflow;
        let workflow = self
            .workflows
            .get(&digest)
            .map_err(|why| SubmissionError::Bad(format!("workflow: {why}")))?;
        self.workflows.hold(&[digest]).map_err(SubmissionError::NoBlob)?;
        match workflow.inputs.get(input) {
            None => bad(format!("the workflow has no input '{input}'")),
            Some(found) if found.at_least > *blocks as usize => {
                let least = found.at_least;
                bad(format!(
                    "the input '{input}' takes at least {least} files, and {blocks} blocks may have fewer"
                ))
            }
            Some(found) if found.at_most < *blocks as usize => {
                let most = found.at_most;
                bad(format!(
                    "the input '{input}' takes {most} files, and {blocks} blocks have more"
                ))
            }
            Some(_) => match workflow
                .inputs
                .iter()
                .find(|(name, more)| *name != input && more.at_least > 0)
            {
                Some((name, _)) => bad(format!("the workflow needs the input '{name}', too")),
                None => Ok(()),
            },
        }
    }

    /// Reads a chain.
    ///
    /// # Errors
    /// If there is none.
    pub async fn chain(&self, tenant: &Name, chain: &Name) -> Result<Chain, SubmissionError> {
        let found = read::<Chain>(&*self.store, &chain_key(tenant, chain)).await?;
        found.map(|found| found.value).ok_or_else(|| SubmissionError::NoChain(chain.clone()))
    }

    /// Reads all chains of a tenant.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn chains(&self, tenant: &Name) -> Result<Vec<Chain>, SubmissionError> {
        let listing = self.store.list(&format!("chain/{tenant}/"), 0).await?;
        let chains = listing.entries.iter().map(|entry| Ok(decode::<Chain>(entry)?.value));
        Ok(chains.collect::<Result<_, ReadError>>()?)
    }

    /// Accepts a job: one write, after which its tasks are made whatever happens to this process. The same submission again finds
    /// the same job; if that was dead or cancelled, it lives again, and keeps what is done.
    ///
    /// # Errors
    /// If it does not fit its chain or workflow, or another block is in its place.
    pub async fn submit(&self, submission: Submission) -> Result<Accepted, SubmissionError> {
        let chain = self.chain(&submission.tenant, &submission.chain).await?;
        if let Some(Bundles { of, .. }) = &chain.bundles {
            let why = format!(
                "jobs cannot be submitted to '{}', whose blocks are made of those of '{of}'",
                chain.chain
            );
            return Err(SubmissionError::Taken(why));
        }
        self.submit_to(chain, submission).await
    }

    /// Accepts a job of a chain of bundles, like [`Self::submit`].
    pub(crate) async fn submit_bundle(
        &self,
        submission: Submission,
    ) -> Result<Accepted, SubmissionError> {
        let chain = self.chain(&submission.tenant, &submission.chain).await?;
        self.submit_to(chain, submission).await
    }

    /// Records a bundle that cannot become a job as a dead job, so that an operator can help its chain, by skipping the bundle or by
    /// reverting the other chain.
    pub(crate) async fn bury_bundle(
        &self,
        submission: Submission,
        reason: String,
    ) -> Result<(), SubmissionError> {
        let at = self.clock.wall();
        let job = Job {
            tenant: submission.tenant,
            chain: submission.chain,
            order: Order::Strict,
            block: submission.block,
            id: submission.id,
            parent: submission.parent,
            lane: submission.lane,
            workflow: submission.workflow,
            // They may be too many for a record.
            inputs: BTreeMap::new(),
            generation: 0,
            trace: None,
            accepted: at,
            state: JobState::Dead { reason, at },
        };
        let key = job.key().to_string();
        match create(&*self.store, &key, job).await {
            // A conflict: another process has noted it, or the block is there.
            Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Cancels a dead job of a chain with strict order that another block is to replace.
    async fn give_way(
        &self,
        Stored { value: job, rev }: Stored<Job>,
        to: &Name,
    ) -> Result<(), SubmissionError> {
        let reason = format!("it was dead, and '{to}' takes its place");
        let state = JobState::Cancelled { reason, at: self.clock.wall() };
        let job = Job { state, ..job };
        match update(&*self.store, &job.key().to_string(), job, rev).await {
            // The caller looks at it again.
            Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Completes the cancellation of a job before its record is returned or replaced: the process that cancelled it may have ended before
    /// it stopped the publishers, and once the record has changed, nothing would stop those that have seen the job done.
    pub(crate) async fn free_place(&self, found: &Stored<Job>) -> Result<(), SubmissionError> {
        if !matches!(found.value.state, JobState::Cancelled { .. }) {
            return Ok(());
        }
        self.check_cancelled(&found.value).await?;
        match self.are_publishers_stopped(found).await? {
            true => Ok(()),
            false => self.stop_publishers(&found.value).await,
        }
    }

    /// Checks a block's place in the chain, and its inputs.
    fn check_submission(
        &self,
        chain: &Chain,
        submission: &Submission,
    ) -> Result<(), SubmissionError> {
        if (chain.order == Order::Strict) != submission.parent.is_some() {
            let why = match chain.order {
                Order::Strict => "a block of a chain with strict order needs its parent",
                Order::None => "a block of a chain without order has no parent",
            };
            return Err(SubmissionError::Bad(why.into()));
        }
        if submission.parent.as_ref() == Some(&submission.id) {
            return Err(SubmissionError::Bad("a block cannot be its own parent".into()));
        }
        // What follows such a block would be in the place of the chain's first block.
        if chain.genesis.as_ref() == Some(&submission.id) {
            return Err(SubmissionError::Bad("a block cannot have the name of the genesis".into()));
        }
        let workflow = self
            .workflows
            .get(&submission.workflow)
            .map_err(|why| SubmissionError::Bad(format!("workflow: {why}")))?;
        workflow.check_inputs(&submission.inputs)?;
        Ok(())
    }

    /// Returns the job of a submission, whose record must not be too large.
    fn new_job(&self, chain: &Chain, submission: Submission) -> Result<Job, SubmissionError> {
        let job = Job {
            tenant: submission.tenant,
            chain: submission.chain,
            order: chain.order,
            block: submission.block,
            id: submission.id,
            parent: submission.parent,
            lane: submission.lane,
            workflow: submission.workflow,
            inputs: submission.inputs,
            generation: 0,
            trace: submission.trace,
            accepted: self.clock.wall(),
            state: JobState::Live,
        };
        let size = encode(&job, u64::MAX).len();
        // This leaves room for the end of the job.
        let most = MAX_VALUE - (12 << 10);
        if size > most {
            let why = format!("the job's record would have {size} bytes, more than {most}");
            return Err(SubmissionError::Bad(why));
        }
        Ok(job)
    }

    async fn submit_to(
        &self,
        chain: Chain,
        submission: Submission,
    ) -> Result<Accepted, SubmissionError> {
        // Before anything is written: a job that is accepted gets its tasks whatever happens.
        self.check_submission(&chain, &submission)?;
        let mut job = self.new_job(&chain, submission)?;
        let key = job.key().to_string();
        if let Some(accepted) = self.check_place(&job).await? {
            return Ok(accepted);
        }
        self.hold(&job)?;
        // Heights rise along a chain, which is what keeps it from running in a circle (`order`).
        self.check_follower(&job).await?;
        loop {
            match create(&*self.store, &key, job.clone()).await {
                Ok(stored) => return Ok(Accepted { job: stored.value, new: true }),
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            // The record is missing although the write conflicted: the store was recreated in between.
            let Some(found) = read::<Job>(&*self.store, &key).await? else { continue };
            let same = found.value.identity() == job.identity();
            match &found.value.state {
                JobState::Live | JobState::Done { .. } if same => {
                    return Ok(Accepted { job: found.value, new: false });
                }
                JobState::Dead { .. } if !same && job.order == Order::Strict => {
                    // An operator may be skipping it: its place is free once that can no longer take effect.
                    self.give_way(found, &job.id).await?;
                }
                JobState::Dead { .. } | JobState::Cancelled { .. } => {
                    self.free_place(&found).await?;
                    // Tasks of the earlier generation that are done count still; the others are revived for this one.
                    job.generation = found.value.generation + 1;
                    match update(&*self.store, &key, job.clone(), found.rev).await {
                        Ok(stored) => return Ok(Accepted { job: stored.value, new: true }),
                        Err(WriteError::Conflict { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                state => return Err(SubmissionError::Taken(taken(&job, &found.value, state))),
            }
        }
    }

    /// Refuses a block that is not below the block that names it as its parent: that one came first, or the name is in use.
    async fn check_follower(&self, job: &Job) -> Result<(), SubmissionError> {
        if job.parent.is_none() {
            return Ok(());
        }
        let (tenant, chain) = (job.tenant.clone(), job.chain.clone());
        let follower = self.read_job(&JobKey { tenant, chain, slot: job.id.clone() }).await?;
        let follower_job = follower.as_ref().map(|follower| &follower.value);
        let Some(why) = order::misfit(job.block, &job.id, follower_job) else { return Ok(()) };
        // What was accepted before is accepted again.
        let own = self.read_job(&job.key()).await?.map(|own| own.value);
        let known = own.is_some_and(|own| {
            matches!(own.state, JobState::Live | JobState::Done { .. })
                && own.identity() == job.identity()
        });
        if known { Ok(()) } else { Err(SubmissionError::Taken(why)) }
    }

    /// Reads a job: one read of one record.
    ///
    /// # Errors
    /// If there is none, or another block is in its place by now.
    pub async fn job(
        &self,
        tenant: &Name,
        handle: &Handle,
    ) -> Result<Stored<Job>, SubmissionError> {
        let Handle { chain, slot, job } = handle;
        let (tenant, chain, slot) = (tenant.clone(), chain.clone(), slot.clone());
        let key = JobKey { tenant, chain, slot };
        // The place in the chain has one record. A handle of a block that was replaced must not find the other one.
        let found = self.read_job(&key).await?.filter(|found| found.value.identity() == *job);
        found.ok_or_else(|| SubmissionError::NoJob { job: handle.clone(), days: self.days })
    }

    /// Reads what is in the place of a job.
    pub(crate) async fn read_job(&self, key: &JobKey) -> Result<Option<Stored<Job>>, ReadError> {
        read::<Job>(&*self.store, &key.to_string()).await
    }

    /// Cancels a job that is live or dead or, in a strict chain, done and not published.
    ///
    /// # Errors
    /// If it is published or skipped.
    pub async fn cancel(
        &self,
        tenant: &Name,
        handle: &Handle,
        reason: &str,
    ) -> Result<Job, SubmissionError> {
        loop {
            let found = self.job(tenant, handle).await?;
            let was_done = match &found.value.state {
                JobState::Live | JobState::Dead { .. } => false,
                JobState::Done { .. } if !self.is_published(&found.value).await? => true,
                JobState::Cancelled { .. } => {
                    self.free_place(&found).await?;
                    return Ok(found.value);
                }
                JobState::Done { .. } => {
                    let why = "it is published: only reverting its chain takes it back, if the chain has an order";
                    return Err(SubmissionError::Taken(why.into()));
                }
                JobState::Skipped { .. } => {
                    let why = "it was skipped, which only reverting its chain can undo";
                    return Err(SubmissionError::Taken(why.into()));
                }
            };
            let state = JobState::Cancelled { reason: reason.into(), at: self.clock.wall() };
            let job = Job { state, ..found.value };
            match update(&*self.store, &job.key().to_string(), job, found.rev).await {
                Ok(stored) => {
                    // After the cancellation is stored: a publisher that begins now reads it, so
                    // only those that read the job before are left to stop.
                    if was_done {
                        self.stop_publishers(&stored.value).await?;
                    }
                    return Ok(stored.value);
                }
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes a dead or cancelled job live again. What is done stays.
    ///
    /// # Errors
    /// If it is done or skipped, or its blobs are gone.
    pub async fn requeue(&self, tenant: &Name, handle: &Handle) -> Result<Job, SubmissionError> {
        loop {
            let found = self.job(tenant, handle).await?;
            match &found.value.state {
                JobState::Dead { .. } | JobState::Cancelled { .. } => {}
                JobState::Live => return Ok(found.value),
                JobState::Done { .. } | JobState::Skipped { .. } => {
                    let why = "only a job that is dead or cancelled can be requeued";
                    return Err(SubmissionError::Taken(why.into()));
                }
            }
            let generation = found.value.generation + 1;
            self.free_place(&found).await?;
            let job = Job { state: JobState::Live, generation, ..found.value };
            self.hold(&job)?;
            self.check_follower(&job).await?;
            match update(&*self.store, &job.key().to_string(), job, found.rev).await {
                Ok(stored) => return Ok(stored.value),
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn removed_after(days: Option<u32>) -> String {
    days.map_or(String::new(), |days| {
        format!("; jobs are removed {days} days after they have ended")
    })
}

fn taken(job: &Job, found: &Job, state: &JobState) -> String {
    let word = match state {
        JobState::Skipped { .. } => "was skipped",
        JobState::Done { .. } => "is done",
        _ => "is live",
    };
    match (&job.parent, job.id == found.id) {
        (_, true) => format!("block '{}' {word} with different content", job.id),
        (Some(parent), false) => format!(
            "block '{}' follows '{parent}' and {word}: cancel it or revert the chain first",
            found.id
        ),
        (None, false) => format!("another block {word} in its place"),
    }
}
