//! Ctrl-C, SIGTERM and SIGHUP: the first asks, the second ends. A signal that whoever started the program told it to
//! ignore (`nohup`) stays ignored.

use crate::exit::{self, Failure, OrFail};
use crate::output;
use hekaton_core::Cancellation;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What the signals do.
pub(crate) struct Handling {
    /// What the first signal cancels; without it the first ends the process.
    pub(crate) cancellation: Option<Cancellation>,
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
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        let mut signals = Signals::new(wanted).or_fail(exit::FAILED)?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                let mut asked = false;
                for _ in signals.forever() {
                    if exit::finishing() {
                        continue; // the result is being written: let it
                    }
                    match &self.cancellation {
                        Some(cancellation) if !asked => {
                            asked = true;
                            // first of all: saying something can take long
                            cancellation.cancel();
                            output::say(
                                "\nstopping: subcircuits under way are finished and kept; once more ends at once",
                            );
                        }
                        _ => {
                            if (self.last)() {
                                output::say("");
                                output::failure(&Failure::new(exit::INTERRUPTED, self.ended), self.json);
                                std::process::exit(exit::INTERRUPTED.into());
                            }
                        }
                    }
                }
            })
            .map(drop)
            .or_fail(exit::FAILED)
    }
}

/// The signals that are ignored, a bit each, on Linux.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
