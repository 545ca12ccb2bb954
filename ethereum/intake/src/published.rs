//! The blocks that the orchestrator's chain has published, read entry by entry.

use crate::again::Again;
use crate::branch::Path;
use crate::jobs::Jobs;
use hekaton_orchestrator_client::ClientError;
use hekaton_orchestrator_client::body::ChainState;

/// The state of the orchestrator's chain.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    published: Option<Published>,
    again: Again,
}

/// The blocks that a chain has published, as far as they were read.
#[derive(Debug)]
pub(crate) struct Published {
    genesis: String,
    pub(crate) path: Path,
    /// The name of the last block.
    tail: String,
    /// The last entry that was read.
    next: u64,
    /// The last entry that was not a revert.
    moved: u64,
}

impl Published {
    fn new(genesis: String) -> Self {
        Self { path: Path::new(&genesis), tail: genesis.clone(), genesis, next: 0, moved: 0 }
    }

    fn read_on(&mut self, jobs: &Jobs) -> Result<(), ClientError> {
        loop {
            let found = jobs.client.proofs(&jobs.chain, self.next)?;
            if found.proofs.is_empty() {
                return Ok(());
            }
            for entry in found.proofs {
                match entry.entry.as_str() {
                    // The genesis has no height of its own.
                    "revert" if entry.id == self.genesis => self.path = Path::new(&self.genesis),
                    "revert" => self.path.revert(&entry.id, entry.block),
                    _ => {
                        self.path.push(&entry.id, entry.block);
                        self.moved = entry.rev;
                    }
                }
                (self.tail, self.next) = (entry.id, entry.rev);
            }
        }
    }
}

impl Follower {
    /// Reads the entries that the chain has published since the last call. If they do not lead to the chain's tail, the orchestrator's
    /// folder was restored or replaced, and the log is read from its beginning. Also returns the jobs that had to be made again since
    /// the chain last published a block.
    pub(crate) fn read(
        &mut self,
        jobs: &Jobs,
        chain: &ChainState,
    ) -> Result<(&Published, &mut Again), ClientError> {
        // A chain with strict order has one; without, the empty name matches no block.
        let genesis = chain.genesis.as_deref().unwrap_or("").to_owned();
        let known = self.published.take().filter(|known| known.genesis == genesis);
        if let (None, Some(wanted)) = (&known, jobs.genesis.as_ref().filter(|it| **it != genesis)) {
            tracing::error!(
                chain = jobs.chain,
                genesis,
                wanted,
                "the chain already exists and begins after a different block than --genesis: choose another --chain"
            );
        }
        let mut published = known.unwrap_or_else(|| Published::new(genesis.clone()));
        published.read_on(jobs)?;
        if Some(&published.tail) != chain.tail.as_ref()
            && jobs.client.chain(&jobs.chain)?.tail.as_ref() != Some(&published.tail)
        {
            published = Published::new(genesis);
            published.read_on(jobs)?;
        }
        self.again.forget_before(published.moved);
        Ok((self.published.insert(published), &mut self.again))
    }
}
