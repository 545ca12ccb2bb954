//! Intake: updates are on the disk before their senders hear of it. All that wait are written at once.

use super::error::{Error, SubmitError};
use super::pending::size;
use super::rows::{self, Submitted};
use super::shared::{Incoming, Phase, Shared};
use super::store::{Rows, Store, Table};
use super::time::fail_point;
use super::update::Receipt;
use std::collections::HashMap;

/// The maximum number of updates that are written at once.
const BATCH: usize = 1024;

/// Writes updates as they come, until the session ends.
pub(crate) fn run(shared: &Shared, store: &dyn Store) -> Result<(), Error> {
    loop {
        let (batch, next) = {
            let mut state = shared.lock();
            loop {
                if state.failed.is_some() {
                    return Ok(());
                }
                if !state.incoming.is_empty() {
                    break;
                }
                if let Phase::Draining { .. } = state.phase {
                    state.closed = true;
                    drop(state);
                    shared.changed.notify_all();
                    return Ok(());
                }
                state = shared.wait(state);
            }
            // One sync serves all that wait; the limit keeps the batch, and so the wait for it,
            // short.
            let count = state.incoming.len().min(BATCH);
            let batch: Vec<Incoming> = state.incoming.drain(..count).collect();
            let bytes: usize = batch.iter().map(|incoming| size(&incoming.update)).sum();
            state.incoming_bytes = state.incoming_bytes.saturating_sub(bytes);
            (batch, state.next)
        };
        accept(shared, store, batch, next)?;
    }
}

/// Returns the answer to an update that was sent before under its name; `None` if it is new.
fn answer_again(
    store: &dyn Store,
    batch: &HashMap<Vec<u8>, Submitted>,
    name: &[u8],
    submitted: &Submitted,
) -> Result<Option<Result<Receipt, SubmitError>>, Error> {
    let found = match batch.get(name) {
        // Both copies of an update may be in this batch, and the database does not know the
        // first one yet.
        Some(known) => Ok(Some(*known)),
        None => rows::find::<Submitted>(store, Table::Idempotency, name),
    };
    match found {
        Ok(Some(known)) if known.digest == submitted.digest => {
            Ok(Some(Ok(Receipt { number: known.number, repeated: true })))
        }
        Ok(Some(known)) => Ok(Some(Err(SubmitError::OtherUpdate { number: known.number }))),
        Ok(None) => Ok(None),
        // One damaged row must not end the session for everybody; only its sender gets the
        // error.
        Err(Error::Damaged(why)) => Ok(Some(Err(SubmitError::Unknown(why.to_string())))),
        Err(error) => Err(error),
    }
}

/// Gives numbers to updates and writes them. Those that were sent before have theirs.
fn accept(
    shared: &Shared,
    store: &dyn Store,
    batch: Vec<Incoming>,
    mut next: u64,
) -> Result<(), Error> {
    let mut rows = Rows::default();
    let mut names: HashMap<Vec<u8>, Submitted> = HashMap::new();
    let (mut accepted, mut answers) = (Vec::new(), Vec::new());
    for Incoming { mut update, submitted, reply } in batch {
        let known = match &submitted {
            None => None,
            Some((name, submitted)) => answer_again(store, &names, name, submitted)?,
        };
        let answer = known.unwrap_or_else(|| {
            update.number = next;
            next += 1;
            rows.put(Table::Intake, update.number.to_be_bytes(), update.encode());
            if let Some((name, submitted)) = submitted {
                let submitted = Submitted { number: update.number, ..submitted };
                // In one batch with the update: after a crash between the two, a retry would be
                // applied a second time.
                rows.put(Table::Idempotency, name.clone(), submitted.encode());
                names.insert(name, submitted);
            }
            let receipt = Receipt { number: update.number, repeated: false };
            accepted.push(update);
            Ok(receipt)
        });
        answers.push((reply, answer));
    }
    fail_point("before-intake");
    if !rows.0.is_empty() {
        // If this fails, the replies are dropped, so no sender takes its update for accepted.
        store.commit(rows)?;
    }
    fail_point("after-intake");
    let mut state = shared.lock();
    // Only now, so that no epoch contains an update that a crash could still undo.
    state.next = next;
    for update in accepted {
        state.open.insert(update.number);
        state.pending.push(update);
    }
    drop(state);
    shared.changed.notify_all();
    for (reply, answer) in answers {
        // Whoever asked may be gone.
        let _ = reply.send(answer);
    }
    Ok(())
}
