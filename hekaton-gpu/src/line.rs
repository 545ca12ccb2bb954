//! The order in which threads use a device: one after the other, in the order in which they came.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    /// The number of the next turn.
    next: u64,
    /// The turn that it is.
    now: u64,
    /// Turns below this one have loaded their types.
    loaded: u64,
}

/// A line of threads.
#[derive(Debug, Default)]
pub(crate) struct Line {
    state: Mutex<State>,
    changed: Condvar,
}

/// A place in the line. The turn of the one behind begins when it is dropped, and not before its own.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    line: &'a Line,
    number: u64,
}

impl Line {
    /// Joins the line at its end.
    pub(crate) fn join(&self) -> Turn<'_> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        Turn { line: self, number }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// Waits until all before this one have loaded their types: from then until its own turn, none comes to the device or
    /// leaves it.
    pub(crate) fn wait_for_types(&self) {
        self.wait_until(|state| state.loaded >= self.number);
    }

    /// Waits for the turn.
    pub(crate) fn wait(&self) {
        self.wait_until(|state| state.now == self.number);
    }

    /// The type of this turn is on the device.
    pub(crate) fn has_loaded(&self) {
        self.change(|state| state.loaded = self.number + 1);
    }

    fn wait_until(&self, is_so: impl Fn(&State) -> bool) {
        let mut state = self.line.lock();
        while !is_so(&state) {
            state = self.line.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.line.lock());
        self.line.changed.notify_all();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // After an error or a panic, too.
        self.wait();
        self.change(|state| {
            state.now += 1;
            state.loaded = state.loaded.max(state.now);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each turn comes after the one before it, whatever becomes of that.
    #[test]
    fn turns_are_in_order() {
        let line = Line::default();
        let turns: Vec<Turn<'_>> = (0..20).map(|_| line.join()).collect();
        std::thread::scope(|scope| {
            // The last ones first, so that most have to wait.
            for turn in turns.into_iter().rev() {
                scope.spawn(move || {
                    turn.wait_for_types();
                    assert!(turn.line.lock().now + 1 >= turn.number, "one may compute");
                    if turn.number % 3 != 0 {
                        turn.wait();
                        turn.has_loaded();
                        assert_eq!(turn.line.lock().now, turn.number);
                    }
                });
            }
        });
        let State { next, now, loaded } = *line.lock();
        assert_eq!([next, now, loaded], [20; 3]);
    }
}
