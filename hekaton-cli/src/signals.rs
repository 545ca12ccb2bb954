//! Ctrl-C and SIGTERM: the first asks, the second ends.

use crate::exit::{self, Failure, OrFail};
use hekaton_core::Cancellation;
use std::sync::atomic::{AtomicBool, Ordering};

/// On the first signal cancels and says `first`; on the second ends the process at once. Without something to keep,
/// pass `None`: then the first signal ends it.
pub(crate) fn handle(cancellation: Option<Cancellation>, first: &'static str) -> Result<(), Failure> {
    let asked = AtomicBool::new(false);
    let handler = move || {
        if exit::finishing() {
            return; // the result is being written: let it
        }
        eprintln!("\n{first}");
        match &cancellation {
            Some(cancellation) if !asked.swap(true, Ordering::SeqCst) => cancellation.cancel(),
            _ => std::process::exit(exit::INTERRUPTED.into()),
        }
    };
    ctrlc::set_handler(handler).or_fail(exit::FAILED)
}
