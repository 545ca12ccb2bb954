//! Progress of a run, from its events: a bar on a terminal, plain lines otherwise.

use crate::output;
use hekaton_core::events::{Event, Phase, Record};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The minimum time between two plain lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows progress on standard error.
#[derive(Debug)]
pub struct Display {
    state: Mutex<State>,
    terminal: bool,
}

#[derive(Debug)]
struct State {
    bar: Option<ProgressBar>,
    total: u64,
    done: u64,
    /// The steps that earlier processes had done when the phase began.
    earlier: u64,
    began: Instant,
    last_line: Instant,
}

impl State {
    /// The steps that are done, and an estimate of the time for the rest at the rate so far.
    fn counted(&self) -> String {
        let Self { total, done, earlier, began, .. } = self;
        match (total.saturating_sub(*done), done.saturating_sub(*earlier)) {
            (0, _) | (_, 0) => format!("{done}/{total}"),
            (left, own) => {
                let left = began.elapsed().mul_f64(left as f64 / own as f64);
                format!("{done}/{total}, about {} left", output::seconds(left))
            }
        }
    }
}

impl Default for Display {
    fn default() -> Self {
        Self::new()
    }
}

impl Display {
    /// Shows a bar if standard error is a terminal.
    pub fn new() -> Self {
        let now = Instant::now();
        let state = State { bar: None, total: 0, done: 0, earlier: 0, began: now, last_line: now };
        Self { state: Mutex::new(state), terminal: std::io::stderr().is_terminal() }
    }

    /// Shows an event of the run; called from many threads.
    pub fn event(&self, record: &Record) {
        // A thread that panicked while it printed must not end the run.
        let Ok(mut state) = self.state.lock() else { return };
        match &record.event {
            Event::PhaseStart { phase, total, done } => {
                self.begin(&mut state, *phase, *total, *done)
            }
            Event::Subcircuit { phase, .. } => self.step(&mut state, *phase),
            Event::PhaseEnd { .. } | Event::RunEnd { .. } => clear(&mut state),
            Event::Notice { message } => say(&state, &format!("note: {message}")),
            // An earlier notice has the reason.
            Event::Restart { .. } => say(&state, "restarting with new randomness"),
            _ => {}
        }
    }

    /// Prints a line between other progress.
    pub fn line(&self, text: &str) {
        if let Ok(state) = self.state.lock() {
            say(&state, text);
        }
    }

    fn begin(&self, state: &mut State, phase: Phase, total: u64, done: u64) {
        clear(state);
        (state.total, state.done, state.earlier) = (total, done, done);
        (state.began, state.last_line) = (Instant::now(), Instant::now());
        // It has no steps that could be counted.
        if phase == Phase::LoadKeys {
            return;
        }
        if self.terminal {
            let bar = ProgressBar::new(total).with_message(phase.name()).with_position(done);
            let style = ProgressStyle::with_template(
                "{msg:<14} {bar:32} {pos}/{len}  {elapsed}  eta {eta}",
            );
            bar.set_style(style.expect("a template of our own"));
            // Work of earlier processes must not count in this process's estimate.
            bar.reset_eta();
            // Without ticks, the clock stands still while a long subcircuit is proven.
            bar.enable_steady_tick(Duration::from_millis(200));
            state.bar = Some(bar);
        // A log file of a batch job has lines, not bars.
        } else if done == total {
            output::say(format!("{}: all {total} done by earlier processes", phase.name()));
        } else if done > 0 {
            output::say(format!(
                "{}: {total} to do, {done} done by earlier processes",
                phase.name()
            ));
        } else {
            output::say(format!("{}: {total} to do", phase.name()));
        }
    }

    fn step(&self, state: &mut State, phase: Phase) {
        state.done += 1;
        if let Some(bar) = &state.bar {
            bar.inc(1);
        } else if state.done == state.total || state.last_line.elapsed() >= LINE_EVERY {
            output::say(format!("{}: {}", phase.name(), state.counted()));
            state.last_line = Instant::now();
        }
    }
}

fn say(state: &State, text: &str) {
    match &state.bar {
        Some(bar) => bar.println(output::printable(text)),
        None => output::say(text),
    }
}

fn clear(state: &mut State) {
    if let Some(bar) = state.bar.take() {
        bar.finish_and_clear();
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Ok(state) = self.state.get_mut() {
            clear(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_estimated_from_what_this_process_has_done() {
        let began = Instant::now().checked_sub(Duration::from_secs(100)).unwrap();
        let counted = |total, done, earlier| {
            State { bar: None, total, done, earlier, began, last_line: began }.counted()
        };
        assert!(counted(70, 60, 50).starts_with("60/70, about 100"), "{}", counted(70, 60, 50));
        assert_eq!(counted(70, 70, 50), "70/70");
        assert_eq!(counted(70, 50, 50), "50/70");
    }
}
