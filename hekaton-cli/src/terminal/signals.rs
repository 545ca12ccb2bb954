//! Ctrl-C, SIGTERM and SIGHUP: the first asks, the second ends. SIGUSR1, the warning that SLURM and mpirun can send, only
//! asks. A signal that whoever started the program told it to
//! ignore (`nohup`) stays ignored.

use crate::exit::{self, Failure, OrFail};
use crate::terminal::output;
use hekaton_core::Cancellation;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Signals that come within this time are one.
const ONE_WISH: Duration = Duration::from_millis(300);

/// What the signals do.
pub(crate) struct Handling {
    /// What the first signal cancels; without it the first ends the process.
    pub(crate) cancellation: Option<Cancellation>,
    /// Whether nothing is said when it is asked to stop.
    pub(crate) quiet: bool,
    /// Done before the process ends at once; `false` when there is nothing to end any more.
    pub(crate) last: Box<dyn Fn() -> bool + Send>,
    /// What is said when it ends at once.
    pub(crate) ended: &'static str,
    /// Whether it is also said as an object.
    pub(crate) json: bool,
}

impl Handling {
    /// Listens from now on.
    pub(crate) fn start(self) -> Result<(), Failure> {
        let ignored = ignored();
        let wanted =
            [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        // where nothing can be asked, SIGUSR1 does what it always does
        let wanted = wanted.chain(self.cancellation.as_ref().map(|_| SIGUSR1));
        let mut signals = Signals::new(wanted).or_fail(exit::FAILED)?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                let mut asked: Option<Instant> = None;
                for signal in signals.forever() {
                    if signal == SIGUSR1 && asked.is_some() {
                        continue;
                    }
                    // Some wrappers send every signal twice: that is one wish.
                    if asked.is_some_and(|at| at.elapsed() < ONE_WISH) {
                        continue;
                    }
                    let first = asked.replace(Instant::now()).is_none();
                    match &self.cancellation {
                        // the result is being written: let it, unless it hangs
                        _ if first && exit::finishing() => {}
                        Some(cancellation) if first => {
                            // first of all: saying something can take long
                            cancellation.cancel();
                            let text =
                                "\nstopping: subcircuits under way are finished and kept; once more ends at once";
                            if !self.quiet {
                                let _ = std::thread::Builder::new().spawn(move || output::say(text));
                            }
                        }
                        _ if (self.last)() => end(self.ended, self.json),
                        _ => {}
                    }
                }
            })
            .map(drop)
            .or_fail(exit::FAILED)
    }
}

/// Says so, if anybody listens, and ends.
fn end(why: &'static str, json: bool) {
    let (said, listen) = mpsc::channel();
    let _ = std::thread::Builder::new().spawn(move || {
        output::say("");
        output::failure(&Failure::new(exit::INTERRUPTED, why), json);
        let _ = said.send(());
    });
    let _ = listen.recv_timeout(Duration::from_millis(500));
    std::process::exit(exit::INTERRUPTED.into());
}

/// The signals that are ignored, a bit each, on Linux.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
