//! Ctrl-C, SIGTERM and SIGHUP: the first one asks the run to stop, the second one ends the process.
//! SIGUSR1, the warning that SLURM and mpirun can send, only asks. Signals that were ignored when
//! the program started (`nohup`) stay ignored.

use crate::exit::{self, Failure, OrFail};
use crate::output;
use hekaton_core::Cancellation;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Some wrappers deliver every signal twice; signals within this time count as one request.
const ONE_REQUEST: Duration = Duration::from_millis(300);

/// The actions of the signals.
#[allow(missing_debug_implementations, reason = "it has a function")]
pub struct Handling {
    /// The cancellation that the first signal triggers; without it, the first signal ends the
    /// process.
    pub cancellation: Option<Cancellation>,
    /// `true` if the first signal is answered without a message.
    pub quiet: bool,
    /// A function that is called before the process ends immediately; it returns `false` if there
    /// is nothing left to interrupt.
    pub last: Box<dyn Fn() -> bool + Send>,
    /// The message when the process ends immediately.
    pub ended: &'static str,
    /// `true` if that message is also printed as a JSON object.
    pub json: bool,
}

impl Handling {
    /// Handles signals from now on.
    pub fn start(self) -> Result<(), Failure> {
        let ignored = ignored();
        let ending = [SIGINT, SIGTERM, SIGHUP];
        let handled = ending.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        // Without a run that can be asked to stop, SIGUSR1 keeps its default action.
        let warning = self.cancellation.as_ref().map(|_| SIGUSR1);
        let signals = Signals::new(handled.chain(warning)).or_fail(exit::FAILED)?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || self.listen(signals))
            .map(drop)
            .or_fail(exit::FAILED)
    }

    fn listen(self, mut signals: Signals) {
        let mut asked: Option<Instant> = None;
        for signal in signals.forever() {
            // SIGUSR1 is a warning: it never ends the process, however often it arrives.
            if signal == SIGUSR1 && asked.is_some() {
                continue;
            }
            if asked.is_some_and(|at| at.elapsed() < ONE_REQUEST) {
                continue;
            }
            let first = asked.replace(Instant::now()).is_none();
            match &self.cancellation {
                // The result is being written: let that finish, unless it hangs.
                _ if first && exit::finishing() => {}
                Some(cancellation) if first => {
                    // Cancel before printing, which can block if standard error is a full pipe.
                    cancellation.cancel();
                    let text = "\nstopping: subcircuits in progress are finished and kept; a second \
                                signal ends immediately";
                    if !self.quiet {
                        // On a thread of its own, so that the second signal is heard even if this blocks.
                        let _ = std::thread::Builder::new().spawn(move || output::say(text));
                    }
                }
                _ if (self.last)() => end(self.ended, self.json),
                _ => {}
            }
        }
    }
}

/// Prints the message, unless that blocks, and ends the process.
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

/// The signals that this process ignores, one bit per signal; known only on Linux.
fn ignored() -> u64 {
    // Other systems do not report it: there, a signal that was ignored is handled.
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
