//! Functions that several commands share.

use hekaton_ceremony::{Chain, Genesis};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::signals::Handling;
use std::path::Path;

/// The program that records name.
pub(crate) const PROGRAM: &str = concat!("hekaton ", env!("CARGO_PKG_VERSION"));

/// Ends the process on Ctrl-C, after `last`, which returns `false` if there is nothing left to interrupt.
pub(crate) fn on_interrupt(
    last: impl Fn() -> bool + Send + 'static,
    ended: &'static str,
    json: bool,
) -> Result<(), Failure> {
    let last = Box::new(last);
    Handling { cancellation: None, quiet: false, last, ended, json }.start()
}

/// The failure for a file that would be overwritten.
pub(crate) fn in_the_way(path: &Path) -> Failure {
    let why = format!("{}: already exists: choose another name, or remove it", path.display());
    Failure::new(exit::BAD_FILE, why)
}

/// The requested chains, in the order of the ceremony: all chains if none was named.
pub(crate) fn chains_of(genesis: &Genesis, only: &[Chain]) -> Result<Vec<Chain>, Failure> {
    let known = genesis.chains();
    if let Some(chain) = only.iter().find(|chain| !known.contains(chain)) {
        let why = format!("--only: the ceremony has no chain {chain}");
        return Err(Failure::new(exit::USAGE, why));
    }
    Ok(known.into_iter().filter(|chain| only.is_empty() || only.contains(chain)).collect())
}

/// Refuses any ceremony but the expected one.
pub(crate) fn check_expected(found: &[u8; 32], expected: Option<[u8; 32]>) -> Result<(), Failure> {
    match expected.filter(|expected| expected != found) {
        None => Ok(()),
        Some(expected) => {
            let (found, expected) = (hex::encode(found), hex::encode(expected));
            let why = format!("this is ceremony {found}, but --expect requires {expected}");
            Err(Failure::new(exit::BAD_FILE, why))
        }
    }
}
