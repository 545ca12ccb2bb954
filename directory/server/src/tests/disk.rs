//! A database whose disk forgets what was not synced, and whose syncs fail.

use crate::{Opened, Rows, Store, StoreError, Table, Visit};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

/// The behavior of the next commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// It succeeds.
    #[default]
    None,
    /// It fails, and nothing was written.
    Before,
    /// The sync fails: the rows can be read until the power is lost, and no later sync brings them to the disk.
    Sync,
    /// It fails, and everything is on the disk.
    After,
}

impl Fault {
    pub(crate) const ALL: [Self; 3] = [Self::Before, Self::Sync, Self::After];
}

type Map = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// The disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The rows that are on the disk.
    durable: Map,
    /// The rows that can be read.
    pub(crate) visible: Map,
    /// The behavior of the next commits; those beyond the list succeed.
    pub(crate) plan: VecDeque<Fault>,
    /// The number of commits.
    pub(crate) commits: u64,
    /// `true` if a sync takes its time.
    pub(crate) is_slow: bool,
}

thread_local! {
    static FAULT: std::cell::Cell<Option<(usize, Fault)>> = const { std::cell::Cell::new(None) };
}

/// Runs a closure in which one commit of this thread has a fault, after `after` others.
pub(crate) fn with_fault<R>(after: usize, fault: Fault, run: impl FnOnce() -> R) -> R {
    FAULT.set(Some((after, fault)));
    let result = run();
    FAULT.set(None);
    result
}

fn planned() -> Fault {
    match FAULT.take() {
        None => Fault::None,
        Some((0, fault)) => fault,
        Some((after, fault)) => {
            FAULT.set(Some((after - 1, fault)));
            Fault::None
        }
    }
}

/// A disk that is shared with those who look at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

impl Disk {
    pub(crate) fn of(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Opens the database.
    pub(crate) fn open(&self, opened: Opened) -> Box<dyn Store> {
        if opened == Opened::AfterFailure {
            let mut state = self.state();
            state.durable = state.visible.clone();
        }
        Box::new(Handle { disk: self.clone(), failed: Mutex::new(false) })
    }
}

impl State {
    /// The power is lost.
    pub(crate) fn lose_power(&mut self) {
        self.visible = self.durable.clone();
    }
}

/// An open database: after a failed write it takes no more, as fjall.
struct Handle {
    disk: Disk,
    failed: Mutex<bool>,
}

fn apply(map: &mut Map, rows: &Rows) {
    for row in &rows.0 {
        let key = (row.table, row.key.clone());
        match &row.value {
            Some(value) => drop(map.insert(key, value.clone())),
            None => drop(map.remove(&key)),
        }
    }
}

impl Store for Handle {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.disk.state().visible.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let range = (table, from.to_vec())..=(table, to.to_vec());
        let rows: Vec<_> = self
            .disk
            .state()
            .visible
            .range(range)
            .map(|((_, k), v)| (k.clone(), v.clone()))
            .collect();
        for (key, value) in rows {
            if visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn last(&self, table: Table) -> Result<Option<Vec<u8>>, StoreError> {
        let range = (table, Vec::new())..=(table, vec![0xff; 64]);
        Ok(self.disk.state().visible.range(range).next_back().map(|((_, key), _)| key.clone()))
    }

    fn commit(&self, rows: Rows) -> Result<(), StoreError> {
        let mut failed = self.failed.lock().unwrap();
        let error = || StoreError::Write("the disk of a test".into());
        if *failed {
            return Err(error());
        }
        let mut state = self.disk.state();
        state.commits += 1;
        let fault = state.plan.pop_front().unwrap_or_else(planned);
        if fault != Fault::Before {
            apply(&mut state.visible, &rows);
        }
        if state.is_slow {
            // The power may be lost here.
            drop(state);
            std::thread::sleep(std::time::Duration::from_millis(2));
            state = self.disk.state();
        }
        if matches!(fault, Fault::None | Fault::After) {
            apply(&mut state.durable, &rows);
        }
        if fault == Fault::None {
            return Ok(());
        }
        *failed = true;
        Err(error())
    }
}
