//! Chains whose blocks are bundles of a fixed number of blocks that another chain publishes.
//!
//! The other chain's log alone determines the bundles and their names: each name is a digest of the bundle's content and of the bundle
//! before it. This module makes the jobs agree with the log: it submits missing bundles, and tears off those whose blocks were torn off.
//! Two processes that do this at the same time do the same.

use crate::record::{Bundles, Chain, Job, JobKey, JobState, log_name};
use crate::store::Rev;
use crate::submissions::{Path, PathBlock, Reversal, Submission, SubmissionError, Submissions};
use hekaton_orchestrator_client::{Digest, Name};
use std::collections::BTreeMap;

/// The number of bundles that may be open: no more are submitted until some are published.
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

/// Returns the bundles of a path of blocks, from the genesis of the chain of bundles on. Skipped blocks are left out; blocks that do not
/// fill a bundle wait.
pub(crate) fn bundles(genesis: &Name, size: u32, blocks: &[PathBlock]) -> Vec<Bundle> {
    let proven: Vec<(&PathBlock, &[Digest])> =
        blocks.iter().filter_map(|block| Some((block, block.outputs.as_deref()?))).collect();
    let mut parent = genesis.clone();
    let groups = proven.chunks_exact(size.max(1) as usize);
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
    let content = parts.iter().map(Vec::as_slice);
    Bundle {
        id: Digest::of_parts("hekaton orchestrator 1 bundle", content).into(),
        parent: parent.clone(),
        height: group.last().map_or(0, |(block, _)| block.height),
        inputs: group.iter().flat_map(|(_, outputs)| outputs.iter().copied()).collect(),
    }
}

/// The facts about a bundle that are needed to continue after it.
#[derive(Debug)]
struct Made {
    id: Name,
    /// The length of the path up to the end of the bundle.
    end: usize,
    /// The entry of its last block: as long as that entry is on the path, so are all blocks before it.
    entry: u64,
}

/// The bundles of a path, made as it grows.
#[derive(Debug, Default)]
struct Wanted {
    made: Vec<Made>,
    /// The number of them that are published, in this order, and the entry of the last one of these.
    common: (usize, u64),
}

impl Wanted {
    /// Adds the bundles for which the path has enough blocks by now, and drops those whose blocks are gone.
    fn follow(&mut self, genesis: &Name, size: u32, blocks: &[PathBlock]) {
        let is_there =
            |made: &Made| blocks.get(made.end - 1).is_some_and(|block| block.entry == made.entry);
        while self.made.last().is_some_and(|made| !is_there(made)) {
            self.made.pop();
        }
        if self.common.0 > self.made.len() {
            self.common = (0, 0);
        }
        while let Some((_, made)) = self.after(self.made.len(), genesis, size, blocks) {
            self.made.push(made);
        }
    }

    /// Returns the bundle after the first `count`, if there are enough blocks for it.
    fn after(
        &self,
        count: usize,
        genesis: &Name,
        size: u32,
        blocks: &[PathBlock],
    ) -> Option<(Bundle, Made)> {
        let before = count.checked_sub(1).map(|last| &self.made[last]);
        let start = before.map_or(1, |made| made.end);
        let proven = blocks
            .iter()
            .enumerate()
            .skip(start)
            .filter_map(|(at, block)| Some((at, block, block.outputs.as_deref()?)));
        let group: Vec<_> = proven.take(usize::try_from(size.max(1)).ok()?).collect();
        let &(last, block, _) = group.last().filter(|_| group.len() == size.max(1) as usize)?;
        let blocks: Vec<_> =
            group.into_iter().map(|(_, block, outputs)| (block, outputs)).collect();
        let bundle = bundle(before.map_or(genesis, |made| &made.id), &blocks);
        let made = Made { id: bundle.id.clone(), end: last + 1, entry: block.entry };
        Some((bundle, made))
    }

    /// Returns how many of them the chain has published in this order, before any others.
    fn published(&mut self, blocks: &[PathBlock]) -> usize {
        let (count, entry) = self.common;
        if blocks.get(count).is_none_or(|block| block.entry != entry) {
            self.common = (0, 0);
        }
        // The genesis, which is not a bundle, comes first.
        let start = self.common.0;
        let same = blocks[1 + start..].iter().zip(&self.made[start..]);
        let count = start + same.take_while(|(is, must)| is.id == must.id).count();
        self.common = (count, blocks[count].entry);
        count
    }
}

type ChainId = (Name, Name);

/// Submits the jobs of bundles, and tears off those that no longer belong.
#[derive(Debug)]
pub(crate) struct Bundler {
    submissions: Submissions,
    /// The paths that chains have published, as far as they were read.
    paths: BTreeMap<ChainId, Path>,
    /// The bundles that follow from those paths, by the chain of bundles.
    wanted: BTreeMap<ChainId, Wanted>,
}

impl Bundler {
    pub(crate) fn new(submissions: Submissions) -> Self {
        Self { submissions, paths: BTreeMap::new(), wanted: BTreeMap::new() }
    }

    /// Forgets what was read, which may belong to another store, or to chains that other processes look after now.
    pub(crate) fn forget(&mut self) {
        self.paths.clear();
        self.wanted.clear();
    }

    /// Makes the jobs of a chain agree with what the other one has published.
    ///
    /// # Errors
    /// If the store does not answer, or a bundle does not fit its workflow. The next call does the rest.
    pub(crate) async fn bundle(
        &mut self,
        chain: &Chain,
        spec: &Bundles,
    ) -> Result<(), SubmissionError> {
        let Some(genesis) = &chain.genesis else { return Ok(()) };
        let other = self.submissions.chain(&chain.tenant, &spec.of).await?;
        let (submissions, tenant, name) = (&self.submissions, &chain.tenant, &chain.chain);
        // Reads the chain's own log first, so that the other chain's log is not older than the bundles that are published.
        let own = read_on(submissions, &mut self.paths, chain).await?;
        let path = read_on(submissions, &mut self.paths, &other).await?;
        let (published, path) = (&self.paths[&own].blocks, &self.paths[&path]);
        let wanted = self.wanted.entry(own).or_default();
        wanted.follow(genesis, spec.blocks, &path.blocks);
        let common = wanted.published(published);
        let (last, is_torn) = (published[common].clone(), common + 1 < published.len());
        let next: Vec<Bundle> = (common..wanted.made.len())
            .take(MAX_OPEN)
            .filter_map(|at| wanted.after(at, genesis, spec.blocks, &path.blocks))
            .map(|(bundle, _)| bundle)
            .collect();
        let (known, is_all) = (path.last(), wanted.made.len() <= common + MAX_OPEN);
        if is_torn {
            let to = Reversal { to: last.id.clone(), block: last.height, next: None };
            submissions.revert(tenant, name, &to).await?;
        }
        let mut before = (last.id, last.height);
        for bundle in &next {
            match submissions.at(tenant, name, &bundle.parent).await? {
                Some(Job { id, state, .. }) if id == bundle.id => {
                    if let JobState::Cancelled { .. } = state {
                        // A branch that has come back.
                        submit(submissions, chain, spec, bundle).await?;
                    }
                }
                None => submit(submissions, chain, spec, bundle).await?,
                // The job is of another branch. Even if it is cancelled already, the jobs that follow it may not be.
                Some(_) => {
                    if has_more(submissions, &mut self.paths, &other, known).await? {
                        // The job may be newer than what was read: the next call starts over.
                        return Ok(());
                    }
                    submissions.revert(tenant, name, &torn_after(&before)).await?;
                    submit(submissions, chain, spec, bundle).await?;
                }
            }
            before = (bundle.id.clone(), bundle.height);
        }
        if is_all && submissions.has_follower(tenant, name, &before.0).await? {
            // Unless the other chain has published more, the follower bundles blocks that were torn off and not replaced yet.
            if !has_more(submissions, &mut self.paths, &other, known).await? {
                submissions.revert(tenant, name, &torn_after(&before)).await?;
            }
        }
        Ok(())
    }
}

fn torn_after((to, block): &(Name, u64)) -> Reversal {
    Reversal { to: to.clone(), block: *block, next: None }
}

/// Reports whether a chain has published more than what was read.
async fn has_more(
    submissions: &Submissions,
    paths: &mut BTreeMap<ChainId, Path>,
    chain: &Chain,
    known: Option<Rev>,
) -> Result<bool, SubmissionError> {
    let key = read_on(submissions, paths, chain).await?;
    Ok(paths[&key].last() != known)
}

/// Reads what a chain has published by now. Returns its key in `paths`.
async fn read_on(
    submissions: &Submissions,
    paths: &mut BTreeMap<ChainId, Path>,
    chain: &Chain,
) -> Result<ChainId, SubmissionError> {
    let genesis = chain.genesis.clone().unwrap_or_else(|| chain.chain.clone());
    let key = (chain.tenant.clone(), chain.chain.clone());
    let path = paths.entry(key.clone()).or_insert_with(|| Path::new(genesis));
    submissions.read_on(&log_name(&chain.tenant, &chain.chain), path).await?;
    Ok(key)
}

async fn submit(
    submissions: &Submissions,
    chain: &Chain,
    spec: &Bundles,
    bundle: &Bundle,
) -> Result<(), SubmissionError> {
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
    match submissions.submit_bundle(submission.clone()).await {
        // A blob that is missing may be back at the next call.
        Err(error @ (SubmissionError::Bad(_) | SubmissionError::Workflow(_))) => {
            tracing::error!(chain = %chain.chain, id = %bundle.id, %error, "a bundle is dead");
            submissions.bury_bundle(submission, error.to_string()).await
        }
        submitted => submitted.map(drop),
    }
}

impl Submissions {
    /// Reports whether a job that is not cancelled descends from a block. An interrupted revert may have cancelled the jobs in between.
    async fn has_follower(
        &self,
        tenant: &Name,
        chain: &Name,
        slot: &Name,
    ) -> Result<bool, SubmissionError> {
        let mut place = slot.clone();
        for _ in 0..MAX_OPEN {
            match self.at(tenant, chain, &place).await? {
                Some(Job { id, state: JobState::Cancelled { .. }, .. }) => place = id,
                found => return Ok(found.is_some()),
            }
        }
        Ok(false)
    }

    /// Returns the job in a place, in whatever state it is.
    async fn at(
        &self,
        tenant: &Name,
        chain: &Name,
        slot: &Name,
    ) -> Result<Option<Job>, SubmissionError> {
        let key = JobKey { tenant: tenant.clone(), chain: chain.clone(), slot: slot.clone() };
        Ok(self.read_job(&key).await?.map(|job| job.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Publication;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The bundles that are kept from one look to the next are those that a fresh read from the genesis finds, with re-orgs,
    /// skips and other branches whose blocks have the same names.
    #[test]
    fn what_is_kept_is_what_follows_from_all() {
        let name = |text: String| text.parse::<Name>().unwrap();
        let genesis = name("genesis".into());
        for seed in 0..200 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let size = random.gen_range(1..4);
            let (mut of, mut own) = (Path::new(genesis.clone()), Path::new(genesis.clone()));
            let mut wanted = Wanted::default();
            for step in 0..60_u64 {
                let last = of.blocks.last().unwrap();
                let (parent, block) = (last.id.clone(), last.height + 1);
                let id = name(format!("b{block}-{}", random.gen_range(0..2)));
                of.add(match random.gen_range(0..10) {
                    0 => {
                        let to = &of.blocks[random.gen_range(0..of.blocks.len())];
                        Publication::Revert { to: to.id.clone(), block: to.height }
                    }
                    1 => Publication::Skip { block, id, parent },
                    _ => Publication::Block {
                        block,
                        id,
                        parent,
                        generation: 0,
                        job: Digest::of(b"job"),
                        outputs: vec![Digest::of(&[u8::from(random.gen_bool(0.5))])],
                    },
                });
                if random.gen_bool(0.5) {
                    continue;
                }
                wanted.follow(&genesis, size, &of.blocks);
                let all = bundles(&genesis, size, &of.blocks);
                let found = (0..).map_while(|at| wanted.after(at, &genesis, size, &of.blocks));
                assert_eq!(found.map(|(bundle, _)| bundle).collect::<Vec<_>>(), all, "{seed}");
                let same = own.blocks[1..].iter().zip(&all).take_while(|(is, it)| is.id == it.id);
                let common = same.count();
                assert_eq!(wanted.published(&own.blocks), common, "{seed}");
                if common + 1 < own.blocks.len() {
                    let to = own.blocks[common].clone();
                    own.add(Publication::Revert { to: to.id, block: to.height });
                }
                let next = all[common..].iter().take(random.gen_range(0..3));
                for Bundle { id, parent, .. } in next.cloned() {
                    own.add(Publication::Skip { block: step, id, parent });
                }
            }
        }
    }
}
