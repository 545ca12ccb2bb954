//! Progress of a run: a bar on a terminal, plain lines otherwise.

use hekaton_core::{Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Plain lines come at most this often.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows progress on standard error.
#[derive(Debug)]
pub(crate) struct Display {
    state: Mutex<State>,
    terminal: bool,
}

#[derive(Debug)]
struct State {
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
    last_line: Instant,
}

impl Display {
    pub(crate) fn new() -> Self {
        let state = State { bar: None, total: 0, done: 0, last_line: Instant::now() };
        Self { state: Mutex::new(state), terminal: std::io::stderr().is_terminal() }
    }

    /// Takes an event of the run; called from many threads.
    pub(crate) fn event(&self, event: Progress) {
        let Ok(mut state) = self.state.lock() else { return };
        match event {
            Progress::Begin(phase, total) => self.begin(&mut state, phase.name(), total),
            Progress::Step(phase, _) => self.step(&mut state, phase),
            Progress::Restart => self.line("the challenges met a pole of the memory check: starting again"),
        }
    }

    /// A line between other progress.
    pub(crate) fn line(&self, text: &str) {
        eprintln!("{text}");
    }

    fn begin(&self, state: &mut State, name: &str, total: usize) {
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
        (state.total, state.done, state.last_line) = (total, 0, Instant::now());
        if self.terminal {
            let bar = ProgressBar::new(total as u64).with_message(name.to_owned());
            let style = ProgressStyle::with_template("{msg:<14} {bar:32} {pos}/{len}  {elapsed}  eta {eta}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(200));
            state.bar = Some(bar);
        } else {
            eprintln!("{name}: {total} to do");
        }
    }

    fn step(&self, state: &mut State, phase: Phase) {
        state.done += 1;
        if let Some(bar) = &state.bar {
            bar.inc(1);
        } else if state.done == state.total || state.last_line.elapsed() >= LINE_EVERY {
            eprintln!("{}: {}/{}", phase.name(), state.done, state.total);
            state.last_line = Instant::now();
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = self.state.get_mut().ok().and_then(|s| s.bar.take()) {
            bar.finish_and_clear();
        }
    }
}
