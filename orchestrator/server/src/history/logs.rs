//! The promises about what chains publish.

use super::{History, Violation, violation};
use crate::bundle::{Bundle, bundle, bundles};
use crate::record::{
    Chain, Job, JobKey, JobState, Order, Publication, chain_key, decode, log_name, publication_key,
};
use crate::store::Entry;
use crate::submissions::Path;
use hekaton_orchestrator_client::{Digest, Name};
use std::collections::BTreeMap;

impl History {
    pub(super) fn check_logs(&self, found: &mut Vec<Violation>) {
        let mut logs: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for entry in &self.logs {
            logs.entry(&entry.key).or_default().push(entry);
        }
        let chains = self.records.iter().filter_map(|version| {
            let chain = decode::<Chain>(&version.entry).ok()?.value;
            (chain_key(&chain.tenant, &chain.chain) == version.entry.key).then_some(chain)
        });
        let chains: BTreeMap<String, Chain> =
            chains.map(|chain| (log_name(&chain.tenant, &chain.chain), chain)).collect();
        for (name, entries) in logs {
            match chains.get(name) {
                Some(chain) => self.check_log(chain, &entries, found),
                None => found.push(violation(entries[0], "a log without a chain")),
            }
        }
    }

    fn check_log(&self, chain: &Chain, entries: &[&Entry], found: &mut Vec<Violation>) {
        // The current path of the chain, from its genesis.
        let mut path: Vec<(Name, u64)> = Vec::new();
        let mut reverted = 0;
        for entry in entries {
            let publication = match decode::<Publication>(entry) {
                Ok(publication) => publication.value,
                Err(error) => {
                    found.push(violation(entry, error.to_string()));
                    continue;
                }
            };
            let tail = path.last().map(|(id, _)| id).or(chain.genesis.as_ref());
            match &publication {
                Publication::Block { block, id, parent, .. } => {
                    for why in bad_block(chain, &path, (*block, id, parent)) {
                        found.push(violation(entry, why));
                    }
                    if let Some(why) = self.bad_publication(chain, entry, &publication, reverted) {
                        found.push(violation(entry, why));
                    }
                    path.push((id.clone(), *block));
                }
                Publication::Skip { block, id, parent } => {
                    if Some(parent) != tail {
                        let why = format!("block '{id}' is skipped and does not follow the tail");
                        found.push(violation(entry, why));
                    }
                    // A skip is an operator's decision about a dead block. It must not be a way around a live one.
                    if !self.was_dead(chain, parent, id, entry) {
                        let why = format!("block '{id}' is skipped and was not dead");
                        found.push(violation(entry, why));
                    }
                    path.push((id.clone(), *block));
                }
                Publication::Revert { to, block } => {
                    reverted = entry.rev.number;
                    let at = path.iter().position(|(id, _)| id == to);
                    let known = at.map_or(0, |at| path[at].1);
                    if known != *block {
                        let why = format!(
                            "a revert to '{to}' at height {block}, but its height is {known}"
                        );
                        found.push(violation(entry, why));
                    }
                    match at {
                        Some(at) => path.truncate(at + 1),
                        None if Some(to) == chain.genesis.as_ref() => path.clear(),
                        None => {
                            let why = format!("a revert to '{to}', which is not on the chain");
                            found.push(violation(entry, why));
                        }
                    }
                }
            }
        }
    }

    /// Checks that each published bundle is made of consecutive blocks that the other chain had published before.
    pub(super) fn check_bundles(&self, found: &mut Vec<Violation>) {
        let records = self.records.iter().filter(|version| version.entry.key.starts_with("chain/"));
        let chains =
            records.filter_map(|version| Some(decode::<Chain>(&version.entry).ok()?.value));
        let chains: BTreeMap<(Name, Name), Chain> =
            chains.map(|chain| ((chain.tenant.clone(), chain.chain.clone()), chain)).collect();
        let jobs = self.jobs();
        for chain in chains.values() {
            let Some(spec) = &chain.bundles else { continue };
            let of = chains.get(&(chain.tenant.clone(), spec.of.clone()));
            let (Some(genesis), Some(root)) =
                (&chain.genesis, of.and_then(|of| of.genesis.clone()))
            else {
                continue;
            };
            let log = |name: &Name| {
                let log = log_name(&chain.tenant, name);
                let entries = self.logs.iter().filter(move |entry| entry.key == log);
                entries.filter_map(|entry| Some((entry, decode::<Publication>(entry).ok()?.value)))
            };
            // What may be published, and from which revision on.
            let mut known: BTreeMap<Name, (u64, Vec<Digest>)> = BTreeMap::new();
            let (mut path, mut made) = (Path::new(root), Vec::new());
            for (entry, publication) in log(&spec.of) {
                let torn = matches!(publication, Publication::Revert { .. });
                path.add(publication);
                let size = spec.blocks as usize;
                if torn {
                    made = bundles(genesis, spec.blocks, &path.blocks);
                }
                let proven = path.blocks.iter().filter_map(|b| Some((b, b.outputs.as_deref()?)));
                let group: Vec<_> = proven.skip(made.len() * size).collect();
                if group.len() == size {
                    let parent = made.last().map_or(genesis, |last: &Bundle| &last.id);
                    let next = bundle(parent, &group);
                    known.entry(next.id.clone()).or_insert((entry.rev.number, next.inputs.clone()));
                    made.push(next);
                }
            }
            for (entry, publication) in log(&chain.chain) {
                let Publication::Block { id, job, .. } = publication else { continue };
                let inputs = known.get(&id).filter(|(from, _)| *from < entry.rev.number);
                let Some((_, inputs)) = inputs else {
                    let why = format!(
                        "block '{id}' is not a bundle of blocks that '{}' had published then",
                        spec.of
                    );
                    found.push(violation(entry, why));
                    continue;
                };
                let made = jobs.values().find(|made| made.identity() == job);
                if made.is_some_and(|made| made.inputs.get(&spec.input) != Some(inputs)) {
                    let why = format!(
                        "the job of bundle '{id}' has other inputs than the bundle's blocks"
                    );
                    found.push(violation(entry, why));
                }
            }
        }
    }

    /// Reports whether a block's job was dead before a publication.
    fn was_dead(&self, chain: &Chain, parent: &Name, id: &Name, entry: &Entry) -> bool {
        let (tenant, chain) = (chain.tenant.clone(), chain.chain.clone());
        let key = JobKey { tenant, chain, slot: parent.clone() }.to_string();
        let mut versions = self
            .records
            .iter()
            .map(|version| &version.entry)
            .filter(|e| e.key == key && e.rev.number < entry.rev.number);
        // What was pruned may have been it.
        entry.rev.number <= self.pruned
            || versions.any(|entry| {
                decode::<Job>(entry).is_ok_and(|job| {
                    job.value.id == *id && matches!(job.value.state, JobState::Dead { .. })
                })
            })
    }

    /// Returns what is wrong with the removal of a job, if anything: live jobs and those that may still be published are wanted.
    pub(super) fn bad_removal(&self, job: &Job, removal: &Entry) -> Option<String> {
        let is_possible = match (&job.state, job.order) {
            (JobState::Live, _) => true,
            (JobState::Cancelled { .. }, _) | (JobState::Dead { .. }, Order::None) => false,
            (JobState::Done { .. } | JobState::Skipped { .. }, Order::None) => {
                let name = publication_key(&job.tenant, &job.chain, &job.id);
                let is_it =
                    |entry: &Entry| entry.key == name && entry.rev.number < removal.rev.number;
                !self.records.iter().any(|version| is_it(&version.entry))
            }
            // In its chain, or beside it.
            (_, Order::Strict) => {
                let log = log_name(&job.tenant, &job.chain);
                let mut before = self
                    .logs
                    .iter()
                    .rev()
                    .filter(|entry| entry.key == log && entry.rev.number < removal.rev.number);
                let tail = before.find_map(|entry| decode::<Publication>(entry).ok());
                tail.is_none_or(|tail| tail.value.height() <= job.block)
            }
        };
        is_possible.then(|| format!("block '{}' is removed and may still be wanted", job.id))
    }

    /// Returns what is wrong with the publication of a block that was not done, or was cancelled before the last revert.
    fn bad_publication(
        &self,
        chain: &Chain,
        entry: &Entry,
        publication: &Publication,
        reverted: u64,
    ) -> Option<String> {
        let Publication::Block { id, parent, job: identity, outputs, generation, .. } = publication
        else {
            return None;
        };
        let slot = match chain.order {
            Order::Strict => parent,
            Order::None => id,
        };
        let (tenant, chain) = (chain.tenant.clone(), chain.chain.clone());
        let key = JobKey { tenant, chain, slot: slot.clone() }.to_string();
        let versions: Vec<(u64, Job)> = self
            .records
            .iter()
            .map(|version| &version.entry)
            .filter(|e| e.key == key && e.rev.number < entry.rev.number)
            .filter_map(|entry| Some((entry.rev.number, decode::<Job>(entry).ok()?.value)))
            .collect();
        let done = versions.iter().rev().find(|(_, job)| {
            matches!(&job.state, JobState::Done { outputs: found, .. } if found == outputs)
                && job.identity() == *identity
                && job.generation == *generation
        });
        let Some((done, _)) = done else {
            let is_whole = versions.first().is_some_and(|(rev, _)| *rev > self.pruned);
            let is_missing = self.pruned == 0 || (entry.rev.number > self.pruned && is_whole);
            return is_missing.then(|| format!("block '{id}' was not done"));
        };
        let cancelled = versions.iter().any(|(rev, job)| {
            rev > done && *rev < reverted && !matches!(job.state, JobState::Done { .. })
        });
        cancelled.then(|| format!("block '{id}' was cancelled before the chain was reverted"))
    }
}

/// Returns what is wrong with the place of a published block on the path of its chain.
fn bad_block(
    chain: &Chain,
    path: &[(Name, u64)],
    (block, id, parent): (u64, &Name, &Name),
) -> Vec<String> {
    let mut wrong = Vec::new();
    let last = path.last();
    if chain.order == Order::Strict {
        if Some(parent) != last.map(|(id, _)| id).or(chain.genesis.as_ref()) {
            wrong.push(format!("block '{id}' does not follow the tail"));
        }
        if last.is_some_and(|(_, height)| *height >= block) {
            wrong.push(format!("block '{id}' is not above the tail"));
        }
    }
    if path.iter().any(|(known, _)| known == id) {
        wrong.push(format!("block '{id}' is published twice"));
    }
    wrong
}
