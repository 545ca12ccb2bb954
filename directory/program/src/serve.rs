//! Serving a directory.

use crate::failure::OrFailure;
use crate::folder::{Folder, NOWHERE};
use crate::options::{DirectoryServe, Serving};
use crate::proving;
use hekaton_core::Cancellation;
use hekaton_directory_http::{Service, ServiceOptions, Writers};
use hekaton_directory_prover::EpochKeys;
use hekaton_directory_server::{Options, Outside, Prover, Stop};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::signals::Handling;
use serde_json::json;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The largest file of tokens.
const MAX_TOKENS: u64 = 1 << 20;

fn options(serving: &Serving) -> Options {
    Options {
        max_updates: serving.max_updates as usize,
        interval: Some(serving.interval),
        heartbeat: serving.heartbeat,
        max_pending: serving.max_pending,
        mode: serving.mode.into(),
        ..Options::default()
    }
}

/// Handles signals: the first one asks the service to stop, the last one ends it at once.
pub(crate) fn stop_on_signals(what: &'static str, json: bool) -> Result<Stop, Failure> {
    let (stop, cancellation) = (Stop::default(), Cancellation::new());
    let (first, second) = (stop.clone(), stop.clone());
    let asked = cancellation.clone();
    Handling {
        cancellation: Some(cancellation),
        quiet: true,
        last: Box::new(move || {
            second.ask();
            // It ends by itself.
            false
        }),
        ended: "interrupted",
        json,
    }
    .start()?;
    let watch = move || {
        while !asked.is_cancelled() {
            std::thread::sleep(Duration::from_millis(20));
        }
        first.ask();
        output::say(format_args!("\n{what}"));
    };
    let thread = std::thread::Builder::new().name("stop".into()).spawn(watch);
    thread.map(drop).or_fail(exit::FAILED)?;
    Ok(stop)
}

/// Reads the tokens of those who may send updates: everybody on this machine, without tokens.
fn writers(command: &DirectoryServe) -> Result<Option<Writers>, Failure> {
    let Some(path) = &command.tokens else {
        if command.listen.ip().is_loopback() {
            return Ok(None);
        }
        let why = format!(
            "--listen {}: everybody who reaches it could change labels; --tokens FILE names those who may",
            command.listen
        );
        return Err(Failure::new(exit::USAGE, why));
    };
    let bytes = exit::read_limited(path, MAX_TOKENS, ": not a file of tokens")?;
    let text = String::from_utf8(bytes).map_err(|e| e.to_string());
    text.and_then(|text| Writers::of(&text).map(Some))
        .map_err(|why| format!("{}: {why}", path.display()))
        .or_fail(exit::BAD_FILE)
}

pub(crate) fn run(command: &DirectoryServe, json: bool) -> Result<(), Failure> {
    let mut folder = Folder::read(&command.folder)?;
    let head = match &command.head {
        Some(path) => {
            let path = folder.outside_path(path)?;
            folder.check_head(&path)?;
            Some(path)
        }
        None => folder.head().map(Path::to_path_buf),
    };
    let seen = command.expect_head.as_deref().map(|path| folder.seen(path)).transpose()?;
    let proving = &command.proving;
    let keys = command
        .keys
        .as_deref()
        .map(|path| EpochKeys::open(path, proving.accept_test_keys))
        .transpose()
        .or_failure()?;
    if let Some(keys) = &keys {
        // Clients verify with the keys that the parameters name, and a proof under any other keys
        // is worthless.
        keys.check_parameters(&folder.parameters).or_failure()?;
    }
    let writers = writers(command)?;
    // Before the database is opened, so that an address in use costs no recovery.
    let listener = TcpListener::bind(command.listen)
        .map_err(|e| format!("--listen {}: {e}", command.listen))
        .or_fail(exit::FAILED)?;
    let address = listener.local_addr().or_fail(exit::FAILED)?;
    let outside = Outside { head: head.clone(), start: false, seen };
    let server = Arc::new(folder.open_outside(options(&command.serving), &outside)?);
    if let Some(path) = head {
        // The other commands on this folder write it, too.
        folder.keep_head(path)?;
    }
    let prover = keys.map(|keys| proving::prover(keys, &folder.proving(), proving)).transpose()?;
    if let Some(prover) = &prover {
        prover.clean(server.proven().or_fail(exit::FAILED)?);
    }
    let text = "stopping: accepted updates still become visible; a second signal leaves them for the next start";
    let stop = stop_on_signals(text, json)?;
    let lines = format!(
        "serving {} at http://{address}, {}\nhead     {}",
        command.folder.display(),
        match &prover {
            Some(_) => "and proving its epochs",
            None => "without proving its epochs (--keys)",
        },
        folder.head().map_or(NOWHERE.into(), |head| head.display().to_string()),
    );
    let object = json!({
        "ok": true, "folder": command.folder, "address": format!("http://{address}"),
        "proves": prover.is_some(), "head": folder.head(), "parameters": hex::encode(folder.parameters.digest()),
    });
    output::result(json, &object, &lines)?;
    let limits = ServiceOptions { max_unproven: command.max_unproven, ..ServiceOptions::default() };
    let service = Service::new(server, limits).with_writers(writers);
    let any_prover = prover.as_ref().map(|prover| prover as &dyn Prover);
    service.run(listener, &stop, any_prover).or_fail(exit::FAILED)
}
