//! Chains whose blocks are made of those that another chain publishes: a bundle of every so many blocks.
//!
//! Which bundles there must be follows from the other chain's log alone, and so do their names, each of which is a digest of all
//! that is in the bundle and of the bundle before it. Here, jobs are made to agree with that: what is missing is submitted, what
//! belongs to blocks that were torn off is torn off. Two that do this at the same time do the same.

use crate::id::{Digest, Name};
use crate::intake::{Intake, IntakeError, Path, PathBlock, Submission};
use crate::record::{Bundles, Chain, Job, JobKey, JobState, log_name};
use std::collections::BTreeMap;

/// How many bundles may be open: no more are submitted until some are published.
const MAX_OPEN: usize = 64;

/// A job that follows from what another chain has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bundle {
    pub(crate) id: Name,
    pub(crate) parent: Name,
    /// The height of its last block.
    pub(crate) height: u64,
    pub(crate) inputs: Vec<Digest>,
}

/// The bundles of blocks, from the genesis of their own chain on. Skipped blocks are left out; what does not fill a bundle waits.
pub(crate) fn bundles(genesis: &Name, size: u32, blocks: &[PathBlock]) -> Vec<Bundle> {
    let proven: Vec<(&PathBlock, &[Digest])> =
        blocks.iter().filter_map(|block| Some((block, block.outputs.as_deref()?))).collect();
    let mut parent = genesis.clone();
    let groups = proven.chunks_exact(usize::try_from(size.max(1)).unwrap_or(usize::MAX));
    let made = groups.map(|group| {
        let bundle = bundle(&parent, group);
        parent = bundle.id.clone();
        bundle
    });
    made.collect()
}

/// The bundle of a group of blocks, after another bundle or the genesis.
pub(crate) fn bundle(parent: &Name, group: &[(&PathBlock, &[Digest])]) -> Bundle {
    let mut parts: Vec<Vec<u8>> = vec![parent.as_str().into()];
    for (block, outputs) in group {
        parts.push(block.id.as_str().into());
        parts.push(outputs.iter().flat_map(|output| *output.as_bytes()).collect());
    }
    let parts = parts.iter().map(Vec::as_slice);
    Bundle {
        id: Digest::of_parts("hekaton orchestrator 1 bundle", parts).into(),
        parent: parent.clone(),
        height: group.last().map_or(0, |(block, _)| block.height),
        inputs: group.iter().flat_map(|(_, outputs)| outputs.iter().copied()).collect(),
    }
}

/// Has jobs of bundles made.
#[derive(Debug)]
pub(crate) struct Bundler {
    intake: Intake,
    /// What chains have published, as far as it was read.
    paths: BTreeMap<(Name, Name), Path>,
}

impl Bundler {
    pub(crate) fn new(intake: Intake) -> Self {
        Self { intake, paths: BTreeMap::new() }
    }

    /// Forgets what was read: it may be of another store.
    pub(crate) fn forget(&mut self) {
        self.paths.clear();
    }

    /// Makes the jobs of a chain agree with what the other one has published.
    ///
    /// # Errors
    /// If the store does not answer, or a bundle does not fit its workflow. What is left is done when this is called again.
    pub(crate) async fn bundle(
        &mut self,
        chain: &Chain,
        spec: &Bundles,
    ) -> Result<(), IntakeError> {
        let Some(genesis) = &chain.genesis else { return Ok(()) };
        let other = self.intake.chain(&chain.tenant, &spec.of).await?;
        let (intake, tenant, name) = (&self.intake, &chain.tenant, &chain.chain);
        // Its own log first: what follows from the other one is not older than what is out.
        read_on(intake, &mut self.paths, chain).await?;
        let path = read_on(intake, &mut self.paths, &other).await?;
        let (known, wanted) = (path.last(), bundles(genesis, spec.blocks, &path.blocks));
        let published = self.paths[&(tenant.clone(), name.clone())].blocks.clone();
        // The genesis, which has no job, comes first.
        let same = published[1..].iter().zip(&wanted).take_while(|(is, must)| is.id == must.id);
        let common = same.count();
        if common + 1 < published.len() {
            let last = &published[common];
            intake.revert(tenant, name, &last.id, last.height).await?;
        }
        let mut before = (published[common].id.clone(), published[common].height);
        for bundle in wanted[common..].iter().take(MAX_OPEN) {
            match intake.at(tenant, name, &bundle.parent).await? {
                Some(Job { id, state, .. }) if id == bundle.id => {
                    if let JobState::Cancelled { .. } = state {
                        // A branch that has come back.
                        submit(intake, chain, spec, bundle).await?;
                    }
                }
                None => submit(intake, chain, spec, bundle).await?,
                // Of another branch. Where it is cancelled already, what follows it may not be.
                Some(_) => {
                    if read_on(intake, &mut self.paths, &other).await?.last() != known {
                        // The job may be newer than what was read: again from the start.
                        return Ok(());
                    }
                    intake.revert(tenant, name, &before.0, before.1).await?;
                    submit(intake, chain, spec, bundle).await?;
                }
            }
            before = (bundle.id.clone(), bundle.height);
        }
        if wanted.len() <= common + MAX_OPEN && intake.has_follower(tenant, name, &before.0).await?
        {
            // Of blocks that were torn off, with none in their place yet, unless they are new.
            if read_on(intake, &mut self.paths, &other).await?.last() == known {
                intake.revert(tenant, name, &before.0, before.1).await?;
            }
        }
        Ok(())
    }
}

/// What a chain has published by now.
async fn read_on<'a>(
    intake: &Intake,
    paths: &'a mut BTreeMap<(Name, Name), Path>,
    chain: &Chain,
) -> Result<&'a Path, IntakeError> {
    let genesis = chain.genesis.clone().unwrap_or_else(|| chain.chain.clone());
    let key = (chain.tenant.clone(), chain.chain.clone());
    let path = paths.entry(key).or_insert_with(|| Path::new(genesis));
    intake.read_on(&log_name(&chain.tenant, &chain.chain), path).await?;
    Ok(path)
}

async fn submit(
    intake: &Intake,
    chain: &Chain,
    spec: &Bundles,
    bundle: &Bundle,
) -> Result<(), IntakeError> {
    let submission = Submission {
        tenant: chain.tenant.clone(),
        chain: chain.chain.clone(),
        block: bundle.height,
        id: bundle.id.clone(),
        parent: Some(bundle.parent.clone()),
        lane: spec.lane,
        workflow: spec.workflow,
        inputs: BTreeMap::from([(spec.input.clone(), bundle.inputs.clone())]),
        trace: None,
    };
    match intake.submit_bundle(submission.clone()).await {
        Err(error @ (IntakeError::Bad(_) | IntakeError::Workflow(_))) => {
            tracing::error!(chain = %chain.chain, id = %bundle.id, %error, "a bundle is dead");
            intake.bury_bundle(submission, error.to_string()).await
        }
        submitted => submitted.map(drop),
    }
}

impl Intake {
    /// Whether a job that is not cancelled hangs from a block: a revert that was left half-way may have cancelled some before it.
    async fn has_follower(
        &self,
        tenant: &Name,
        chain: &Name,
        slot: &Name,
    ) -> Result<bool, IntakeError> {
        let mut slot = slot.clone();
        for _ in 0..MAX_OPEN {
            match self.at(tenant, chain, &slot).await? {
                Some(Job { id, state: JobState::Cancelled { .. }, .. }) => slot = id,
                found => return Ok(found.is_some()),
            }
        }
        Ok(false)
    }

    /// The job in a place, whatever it is.
    async fn at(
        &self,
        tenant: &Name,
        chain: &Name,
        slot: &Name,
    ) -> Result<Option<Job>, IntakeError> {
        let key = JobKey { tenant: tenant.clone(), chain: chain.clone(), slot: slot.clone() };
        Ok(self.read_job(&key).await?.map(|job| job.value))
    }
}
