//! Pruning: what only trees of earlier epochs have is removed.

use super::error::Error;
use super::rows::{self, Format, LAST, LogPlace, Submitted, Written};
use super::store::{Rows, Store, Table};
use super::time::fail_point;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// The number of commits that are pruned at once.
const CHUNK: usize = 64;

/// Makes a visible epoch the first one with a tree. What a commit up to it has written supersedes what was there before, and
/// its own row says what that is; nothing else has to be searched. The commit that has closed the epoch keeps its row, and
/// so do all after it. `next` is the number of the next update: numbers are not used twice, whatever is left of them.
pub(crate) fn prune(store: &dyn Store, epoch: u32, next: u64) -> Result<(), Error> {
    let mut format: Format = rows::get(store, Table::Format, &rows::FORMAT)?;
    (format.pruned, format.next) = (format.pruned.max(epoch), format.next.max(next));
    // Once this is written, no reader asks for what is removed below.
    let mut rows = Rows::default();
    rows.put(Table::Format, rows::FORMAT, format.encode());
    store.commit(rows)?;
    // Also what an earlier pruning that was killed has left.
    let commits = commits(store, format.pruned)?;
    let names = names(store, &commits)?;
    for some in commits.chunks(CHUNK) {
        fail_point("prune");
        let mut rows = Rows::default();
        for (key, written) in some {
            for place in &written.places {
                remove_before(store, &mut rows, Table::Node, &place.encode(), written.epoch)?;
            }
            for place in &written.log {
                let key = LogPlace::encode(*place);
                remove_before(store, &mut rows, Table::Log, &key, written.epoch)?;
            }
            if written.epoch == format.pruned {
                continue;
            }
            for number in &written.numbers {
                // The row may still be there for the last commits.
                rows.remove(Table::Intake, number.to_be_bytes());
                rows.remove(Table::Outcome, number.to_be_bytes());
                if let Some(name) = names.get(number) {
                    rows.remove(Table::Idempotency, name.clone());
                }
            }
            // In the same batch as the rows that it lists: after a crash, the next pruning finds
            // the rest by this row.
            rows.remove(Table::Commit, key.clone());
        }
        if !rows.0.is_empty() {
            store.commit(rows)?;
        }
    }
    Ok(())
}

/// The commits up to the one that has closed an epoch, which is the last one.
fn commits(store: &dyn Store, epoch: u32) -> Result<Vec<(Vec<u8>, Written)>, Error> {
    let (mut commits, mut failed) = (Vec::new(), None);
    if epoch == 0 {
        return Ok(commits);
    }
    store.scan(Table::Commit, &[], &LAST, &mut |key, value| match rows::decode::<Written>(
        Table::Commit,
        key,
        value,
    ) {
        Ok(written) => {
            let is_last = written.epoch >= epoch;
            commits.push((key.to_vec(), written));
            if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(commits),
    }
}

/// The idempotency keys of updates in commits, by number.
fn names(
    store: &dyn Store,
    commits: &[(Vec<u8>, Written)],
) -> Result<HashMap<u64, Vec<u8>>, Error> {
    let all = commits.iter().flat_map(|(_, written)| &written.numbers);
    let numbers: HashSet<u64> = all.copied().collect();
    let mut names = HashMap::new();
    if numbers.is_empty() {
        return Ok(names);
    }
    let last = [0xff; super::update::MAX_IDEMPOTENCY_KEY];
    store.scan(Table::Idempotency, &[], &last, &mut |key, value| {
        // A damaged row has no number, and stays.
        if let Ok(submitted) = rows::decode::<Submitted>(Table::Idempotency, key, value)
            && numbers.contains(&submitted.number)
        {
            names.insert(submitted.number, key.to_vec());
        }
        ControlFlow::Continue(())
    })?;
    Ok(names)
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
