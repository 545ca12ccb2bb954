//! Pruning: what only trees of earlier epochs have is removed.

use super::error::Error;
use super::rows::{self, Format, LAST, LogPlace, Written};
use super::store::{Rows, Store, Table};
use super::time::fail_point;
use std::ops::ControlFlow;

/// How many commits are pruned at once.
const CHUNK: usize = 64;

/// Makes an epoch the first one with a tree. What a commit up to it has written supersedes what was there before, and its
/// own row says what that is; nothing else has to be searched.
pub(crate) fn prune(store: &dyn Store, epoch: u32) -> Result<(), Error> {
    let mut format: Format = rows::get(store, Table::Format, &rows::FORMAT)?;
    if epoch > format.pruned {
        // Nobody asks for what is removed.
        format.pruned = epoch;
        let mut rows = Rows::default();
        rows.put(Table::Format, rows::FORMAT, format.encode());
        store.commit(rows)?;
    }
    // Also what an earlier pruning that was killed has left.
    loop {
        fail_point("prune");
        let mut commits: Vec<(Vec<u8>, Written)> = Vec::new();
        let mut failed = None;
        store.scan(Table::Commit, &[], &LAST, &mut |key, value| match rows::decode::<Written>(
            Table::Commit,
            key,
            value,
        ) {
            Ok(written) if written.epoch <= format.pruned && commits.len() < CHUNK => {
                commits.push((key.to_vec(), written));
                ControlFlow::Continue(())
            }
            Ok(_) => ControlFlow::Break(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        // The last one stays, as its number and its updates' are those that the next ones follow.
        let last = store.last(Table::Commit)?;
        commits.retain(|(key, _)| Some(key) != last.as_ref());
        if commits.is_empty() {
            return Ok(());
        }
        let mut rows = Rows::default();
        for (key, written) in commits {
            for place in &written.places {
                remove_before(store, &mut rows, Table::Node, &place.encode(), written.epoch)?;
            }
            for place in &written.log {
                let key = LogPlace::encode(*place);
                remove_before(store, &mut rows, Table::Log, &key, written.epoch)?;
            }
            for number in &written.numbers {
                // Of the last commits, it may still be there.
                rows.remove(Table::Intake, number.to_be_bytes());
                rows.remove(Table::Outcome, number.to_be_bytes());
            }
            rows.remove(Table::Commit, key);
        }
        store.commit(rows)?;
    }
}

/// Removes the versions of a row that are older than that of an epoch.
fn remove_before(
    store: &dyn Store,
    rows: &mut Rows,
    table: Table,
    key: &[u8],
    epoch: u32,
) -> Result<(), Error> {
    let Some(before) = epoch.checked_sub(1) else { return Ok(()) };
    let (from, to) = (rows::at_epoch(key, before), rows::at_epoch(key, 0));
    store.scan(table, &from, &to, &mut |key, _| {
        rows.remove(table, key);
        ControlFlow::Continue(())
    })?;
    Ok(())
}
