//! Answering look-ups without writing anything: while there is no room on the disk, or where a directory is only read.

use super::compute::load;
use super::error::Error;
use super::folder::Directory;
use super::outside::Heads;
use super::recover::{Standing, signed_head, unsettled};
use super::rows::{self, LAST};
use super::shared::Shared;
use super::store::{Handle, Opened, Store as _, Table};
use super::view::View;
use hekaton_directory::Tree;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};

/// A database that is only read. Everything up to the head is on the disk.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) store: Arc<Handle>,
    view: View,
    open: BTreeSet<u64>,
    next: u64,
    proven: u32,
}

impl Reading {
    /// Opens a database for look-ups. What is above the head stays where it is, and is not shown.
    pub(crate) fn open(directory: &Directory) -> Result<Self, Error> {
        let (heads, head) = Heads::read(&directory.heads)?;
        // Not as after a failure: that would write the journals anew, and nothing is written here.
        let store = Arc::new(Handle::new((directory.opener)(Opened::Again)?));
        let parameters = &directory.parameters;
        let head = signed_head(&*store, head, directory)?;
        // Nothing is shown that a loss of power could take back.
        heads.sync()?;
        let Standing { format, signed, record } = Standing::of(&*store, head, parameters)?;
        let tree = Tree::away(parameters.profile, record.epoch, record.leaves, record.root);
        let levels = usize::from(format.levels);
        let tree = load(&*store, &tree, &[hekaton_directory::Index([0; 16])], levels)?;
        let mut intake = Vec::new();
        store.scan(Table::Intake, &[], &LAST, &mut |key, _| {
            intake.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        let above = unsettled(&*store, head.commit)?;
        let (mut open, mut next) = (BTreeSet::new(), format.next);
        for key in intake {
            let number = rows::number(Table::Intake, &key)?;
            if above.contains(&number) || store.get(Table::Outcome, &key)?.is_none() {
                open.insert(number);
            }
            next = next.max(number.saturating_add(1));
        }
        if let Some(last) = store.last(Table::Outcome)? {
            next = next.max(rows::number(Table::Outcome, &last)?.saturating_add(1));
        }
        let proven = super::proofs::proven(&*store)?.min(record.epoch);
        let commit = head.commit;
        let view = View { store: Arc::clone(&store), signed, record, tree, levels, commit };
        Ok(Self { store, view, open, next, proven })
    }

    /// Shows what is read.
    pub(crate) fn show(self, shared: &Shared) -> Arc<Handle> {
        let Self { store, view, open, next, proven } = self;
        let mut state = shared.lock();
        (state.open, state.next, state.proven) = (open, next, proven);
        *shared.view.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(view));
        drop(state);
        shared.changed.notify_all();
        store
    }
}
