//! Repeats requests to a service where that may help.

use hekaton_orchestrator::ClientError;
use hekaton_service::program::note;
use std::time::Duration;

/// Repeats a request that may be repeated, for a minute.
pub(crate) fn insist<T>(ask: impl Fn() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let mut pause = Duration::from_millis(200);
    loop {
        match ask() {
            Err(error) if error.may_be_repeated() && pause < Duration::from_secs(30) => {
                if pause > Duration::from_secs(1) {
                    note(format_args!("{error}; trying again"));
                }
                std::thread::sleep(pause);
                pause *= 2;
            }
            other => return other,
        }
    }
}
