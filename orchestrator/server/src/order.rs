//! The rules of chains with strict order, as functions without side effects.
//!
//! The place of a block is the name of its parent, so each name is followed by at most one block, and blocks join a chain in any order: a
//! block may come before its parent or after its child. Heights must rise from each block to the next, so a chain has no cycles and no name
//! occurs twice. A submitted block is compared with the block that names it as its parent; before it is published, it is also compared with
//! the block before it.

use crate::record::{Job, JobState, Publication};
use hekaton_orchestrator_client::Name;

/// The last published block of a chain; of a chain that has published nothing, its genesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail<'a> {
    /// Its name.
    pub(crate) name: &'a Name,
    /// Its height. The genesis has none: the first block may have height 0.
    pub(crate) height: Option<u64>,
}

impl<'a> Tail<'a> {
    /// The tail that the last entry of a log leaves.
    pub(crate) fn of(genesis: &'a Name, last: Option<&'a Publication>) -> Self {
        match last {
            // A chain that was reverted to its genesis has entries, and still no published height.
            Some(last) if last.tail() != genesis => {
                Self { name: last.tail(), height: Some(last.height()) }
            }
            _ => Self { name: genesis, height: None },
        }
    }
}

/// The decision of a publisher about the block that follows the tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: it is not there, or not done.
    Wait,
    /// Appends it to the log.
    Publish(Publication),
    /// Appends it, unless the chain has published a block of the same name: what follows that name is not above it.
    PublishUnlessKnown(Publication),
    /// Ends it: it can never be published.
    Bury(String),
}

/// Compares a block with the one that follows its name. Returns why one cannot be before the other.
pub(crate) fn misfit(block: u64, id: &Name, next: Option<&Job>) -> Option<String> {
    let follower = next?;
    let cancelled = matches!(follower.state, JobState::Cancelled { .. });
    (!cancelled && follower.block <= block).then(|| {
        format!(
            "block '{id}' would have height {block}, and block '{}', which follows it, has height {}: heights must rise; cancel one of them",
            follower.id, follower.block
        )
    })
}

/// Decides about the block in the place after the tail, given the block in the place after that one.
pub(crate) fn next(tail: Tail<'_>, job: Option<&Job>, follower: Option<&Job>) -> Next {
    let Some(job) = job else { return Next::Wait };
    let Some(publication) = publication(job) else { return Next::Wait };
    if let Some(height) = tail.height.filter(|height| job.block <= *height) {
        // A re-org uses heights to find the blocks that it removes.
        return Next::Bury(format!(
            "its height {} is not above {height}, the height of its parent '{}': cancel it",
            job.block, tail.name
        ));
    }
    match misfit(job.block, &job.id, follower) {
        None => Next::Publish(publication),
        Some(_) => Next::PublishUnlessKnown(publication),
    }
}

/// Returns the publication of a job, if it is done.
pub(crate) fn publication(job: &Job) -> Option<Publication> {
    let JobState::Done { outputs, .. } = &job.state else { return None };
    Some(Publication::Block {
        block: job.block,
        id: job.id.clone(),
        // Blocks of a chain without order have no parent, and an entry must name one.
        parent: job.parent.clone().unwrap_or_else(|| job.id.clone()),
        generation: job.generation,
        job: job.identity(),
        outputs: outputs.clone(),
    })
}
