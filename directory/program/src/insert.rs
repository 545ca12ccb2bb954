//! Updates that are sent.

use crate::failure::{HasCode, OrFailure};
use crate::folder::{Folder, quiet};
use crate::foreign_text::printable;
use crate::options::{DirectoryInsert, ExpectedOption, Until};
use crate::proving::read_token;
use crate::source::is_address;
use hekaton_directory::MAX_VALUE;
use hekaton_directory_http::body::{Absent, ExpectedBody, State, UpdateBody, UpdateStatus};
use hekaton_directory_http::{Base64, Client, ClientError, Refusal, answer};
use hekaton_directory_server::{Options, Server, SubmitError};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, counted};
use hekaton_terminal::progress::Display;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of times that an update is sent again when there is no answer, or when the service asks to
/// come back later.
const TRIES: u32 = 60;

/// The time between reports while proofs are waited for.
const SAID: Duration = Duration::from_secs(10);

/// The number of reasons of refused updates that are shown.
const SHOWN: usize = 10;

pub(crate) fn run(command: &DirectoryInsert, json: bool) -> Result<(), Failure> {
    let mut updates = updates(command)?;
    let is_service = is_address(&command.directory);
    let batch = match &command.batch {
        Some(name) => name.clone(),
        // Random, because two batches with the same name would be taken for retries of each other.
        None => random_name()?,
    };
    if is_service || command.batch.is_some() {
        // So that each may be sent again when nobody knows whether it arrived.
        for (number, update) in (1u64..).zip(&mut updates) {
            update.idempotency_key.get_or_insert_with(|| key_of(&batch, number));
        }
    }
    let sent = match is_service {
        true => to_service(&client(command)?, &updates, command, &batch)?,
        false => {
            if command.token.is_some() {
                let why = "--token is for services: a folder needs none";
                return Err(Failure::new(exit::USAGE, why));
            }
            if command.wait == Until::Proven {
                let why = "--wait proven is for services: after the insertion, `hekaton directory prove` proves the epochs of a folder";
                return Err(Failure::new(exit::USAGE, why));
            }
            let folder = Folder::read(Path::new(&command.directory))?;
            let server = folder.open(quiet())?;
            to_folder(&server, updates, command.wait)?
        }
    };
    report(&sent, json)
}

/// Requests to the service; fails before anything is sent if what is to be waited for will not happen.
fn client(command: &DirectoryInsert) -> Result<Client, Failure> {
    let mut client = Client::new(&command.directory).or_failure()?;
    if let Some(path) = &command.token {
        client = client.with_token(read_token(path)?);
    }
    if command.wait == Until::Proven && !client.health().or_failure()?.proves {
        return Err(proves_nothing());
    }
    Ok(client)
}

fn random_name() -> Result<String, Failure> {
    let mut name = [0; 16];
    getrandom::fill(&mut name).or_fail(exit::FAILED)?;
    Ok(hex::encode(name))
}

/// The idempotency key of an update in a batch.
fn key_of(batch: &str, number: u64) -> String {
    // A digest has the same length for any name of a batch. The number comes first, in eight bytes,
    // so no two pairs give the same text.
    let digest = Sha256::new().chain_update(number.to_be_bytes()).chain_update(batch).finalize();
    hex::encode(&digest[..16])
}

/// The updates of the command line, or of its file.
fn updates(command: &DirectoryInsert) -> Result<Vec<UpdateBody>, Failure> {
    if let Some(path) = &command.file {
        return of_file(path);
    }
    let expected = command.expected.map(|expected| match expected {
        ExpectedOption::Absent => ExpectedBody::Absent(Absent::Absent),
        ExpectedOption::Version(version) => ExpectedBody::Version(version),
    });
    let mut update = UpdateBody {
        label: command.label.clone().unwrap_or_default(),
        value: command.value.clone(),
        expected,
        ..UpdateBody::default()
    };
    if let Some(path) = &command.value_file {
        update.value_base64 = Some(Base64(exit::read_at_most(path, MAX_VALUE as u64)?));
    }
    Ok(vec![update])
}

fn of_file(path: &Path) -> Result<Vec<UpdateBody>, Failure> {
    let failure = |why: String| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|e| failure(e.to_string()))?;
    let mut updates = Vec::new();
    for (number, read) in (1..).zip(std::io::BufReader::new(file).lines()) {
        let line = read.map_err(|e| failure(format!("line {number}: {e}")))?;
        if !line.trim().is_empty() {
            let update = serde_json::from_str(&line);
            updates.push(update.map_err(|e| failure(format!("line {number}: {e}")))?);
        }
    }
    match updates.is_empty() {
        true => Err(failure("has no updates".into())),
        false => Ok(updates),
    }
}

/// The outcome of updates: the status of each one that was sent, or the reason why it was not accepted.
type Sent = Vec<Result<UpdateStatus, Refusal>>;

fn to_folder(server: &Server, updates: Vec<UpdateBody>, wait: Until) -> Result<Sent, Failure> {
    let mut sent: Sent = Vec::new();
    // As many at once as the server takes.
    let Options { max_pending, max_pending_bytes, .. } = Options::default();
    let mut left = updates.into_iter().map(UpdateBody::update).peekable();
    while left.peek().is_some() {
        let (mut bodies, mut bytes) = (Vec::new(), 0);
        while bodies.len() < max_pending / 2 && bytes < max_pending_bytes / 2 {
            let Some(body) = left.next() else { break };
            bytes += body.as_ref().map_or(0, |update| update.value.len() + 1024);
            bodies.push(body);
        }
        let some = bodies.iter().filter_map(|body| body.as_ref().ok()).cloned().collect();
        let mut receipts = server.submit_all(some).into_iter();
        for body in bodies {
            let receipt = match body {
                Err(problem) => Err(problem),
                Ok(update) => match receipts.next() {
                    // Too many updates are waiting, perhaps of this label: once they are done, there is
                    // room.
                    Some(Err(SubmitError::Full(_))) => {
                        server.flush().or_fail(exit::FAILED)?;
                        server.submit(update).map_err(Refusal::from)
                    }
                    Some(receipt) => receipt.map_err(Refusal::from),
                    None => Err(hekaton_directory_server::Error::Panicked.into()),
                },
            };
            sent.push(
                receipt.map(|receipt| UpdateStatus::accepted(receipt.number, receipt.repeated)),
            );
        }
        if wait != Until::Accepted {
            server.flush().or_fail(exit::FAILED)?;
        }
    }
    if wait == Until::Accepted {
        // They stay accepted; nothing is closed in a hurry.
        server.close().or_fail(exit::FAILED)?;
        return Ok(sent);
    }
    Ok(sent
        .into_iter()
        .map(|sent| sent.and_then(|sent| answer::update(server, sent.number)))
        .collect())
}

fn to_service(
    client: &Client,
    updates: &[UpdateBody],
    command: &DirectoryInsert,
    batch: &str,
) -> Result<Sent, Failure> {
    let display = Display::new();
    let total = updates.len();
    let (mut sent, mut said) = (Vec::with_capacity(total), Instant::now());
    let mut progress = |what: &str, done: usize| {
        if said.elapsed() > Duration::from_secs(5) {
            said = Instant::now();
            let total = output::count(total as u64);
            display.line(&format!("{} of {total} updates are {what}", output::count(done as u64)));
        }
    };
    if total > 1 && command.batch.is_none() {
        display.line(&format!(
            "if this is interrupted, run it again with --batch {batch}: it sends the rest, and nothing twice"
        ));
    }
    let interrupted = |mut failure: Failure, sent: usize| {
        let (done, all) = (output::count(sent as u64), counted(total as u64, "update"));
        failure.message += &format!(
            "\n{done} of {all} were sent, and have their answers; the same command with --batch {batch} sends the \
             others, and none twice"
        );
        failure.details = json!({ "updates": total, "sent": sent, "batch": batch });
        failure
    };
    for update in updates {
        match send(client, update) {
            Ok(answer) => sent.push(answer),
            Err(failure) => return Err(interrupted(failure, sent.len())),
        }
        progress("accepted", sent.len());
    }
    if command.wait == Until::Accepted {
        return Ok(sent);
    }
    let what = match command.wait {
        Until::Proven => "proven or refused",
        _ => "visible or refused",
    };
    let mut waits = Waits { wait: command.wait, display: &display, said: Instant::now() };
    let mut seen: Sent = Vec::with_capacity(total);
    for sent in sent {
        let status = match sent {
            Ok(status) => match until(client, status.number, |status| waits.end(client, status)) {
                Ok(status) => Ok(status),
                Err(failure) => return Err(interrupted(failure, total)),
            },
            Err(problem) => Err(problem),
        };
        seen.push(status);
        progress(what, seen.len());
    }
    Ok(seen)
}

/// The wait for the state of updates, with reports while proofs take their time.
struct Waits<'d> {
    wait: Until,
    display: &'d Display,
    said: Instant,
}

impl Waits<'_> {
    /// Reports whether an update has the state that is waited for, or will have no other one.
    fn end(&mut self, client: &Client, status: &UpdateStatus) -> Result<bool, Failure> {
        match (status.state, self.wait) {
            (State::Accepted, _) => Ok(false),
            (State::Visible, Until::Proven) => {
                self.report(client)?;
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Reports how far proofs are, from time to time. Fails if nothing proves any longer.
    fn report(&mut self, client: &Client) -> Result<(), Failure> {
        if self.said.elapsed() < SAID {
            return Ok(());
        }
        // The next request says it if this one fails.
        let Ok(health) = client.health() else { return Ok(()) };
        if !health.proves {
            return Err(proves_nothing());
        }
        self.said = Instant::now();
        let failed = match health.proof_failures {
            0 => String::new(),
            more => {
                let attempts = counted(more, "attempt");
                format!("; {attempts} to prove failed, the log of the service says why")
            }
        };
        self.display.line(&format!("epochs up to {} are proven{failed}", health.proven));
        Ok(())
    }
}

fn proves_nothing() -> Failure {
    let why =
        "--wait proven: this service proves nothing; `hekaton directory serve` does with --keys";
    Failure::new(exit::FAILED, why)
}

/// Sends an update until the service says whether it is accepted.
fn send(client: &Client, update: &UpdateBody) -> Result<Result<UpdateStatus, Refusal>, Failure> {
    let mut tries = 0;
    loop {
        tries += 1;
        let error = match client.submit(update, false) {
            Ok(status) => return Ok(Ok(status)),
            Err(error) => error,
        };
        let wait = match &error {
            ClientError::Problem { problem, .. } => match problem.retry_after {
                Some(seconds) => u64::from(seconds),
                // No update of this command would be taken.
                None if problem.status == 401 => return Err(error.failure()),
                None => return Ok(Err(Refusal((**problem).clone()))),
            },
            error if is_passing(error) => 1,
            _ => return Err(error.failure()),
        };
        if tries > TRIES {
            return Err(error.failure());
        }
        if tries == 1 && is_passing(&error) {
            let why = printable(&error.to_string());
            output::say(format_args!("{why}; trying again for up to a minute"));
        }
        std::thread::sleep(Duration::from_secs(wait.clamp(1, 60)));
    }
}

/// Reports whether another try may soon get another answer: there is no answer, or it is that of something
/// in front of the service.
fn is_passing(error: &ClientError) -> bool {
    match error {
        ClientError::Connection { .. } => true,
        ClientError::Answer { status, .. } => *status >= 500 || *status == 408,
        _ => false,
    }
}

/// Asks for the status of an update until `is_last` says that it is final.
fn until(
    client: &Client,
    number: u64,
    mut is_last: impl FnMut(&UpdateStatus) -> Result<bool, Failure>,
) -> Result<UpdateStatus, Failure> {
    let (mut pause, mut failures) = (Duration::from_millis(20), 0);
    loop {
        match client.update(number) {
            Ok(status) if is_last(&status)? => return Ok(status),
            // Only failures in a row count, since the state itself may take any time.
            Ok(_) => failures = 0,
            Err(error) if is_passing(&error) && failures < TRIES => failures += 1,
            Err(ClientError::Problem { problem, .. })
                if problem.retry_after.is_some() && failures < TRIES =>
            {
                failures += 1;
            }
            Err(error) => return Err(error.failure()),
        }
        std::thread::sleep(pause);
        // Short at first, because an epoch may be closed within milliseconds, and then at most one
        // request per second.
        pause = (2 * pause).min(Duration::from_secs(1));
    }
}

fn report(sent: &Sent, json: bool) -> Result<(), Failure> {
    let (mut states, mut refused) = (BTreeMap::new(), Vec::new());
    let (mut last, mut at) = (None, 0u64);
    for status in sent {
        at += 1;
        let state = match status {
            Ok(UpdateStatus { state, epoch, reason, .. }) => {
                last = last.max(*epoch);
                refused.extend(reason.as_ref().map(|why| (at, printable(why))));
                state.name()
            }
            Err(Refusal(problem)) => {
                refused.push((at, printable(&problem.detail)));
                // What went wrong in the service says nothing about the update.
                if problem.status >= 500 { "unknown" } else { State::Refused.name() }
            }
        };
        *states.entry(state).or_insert(0u64) += 1;
    }
    let counts: Vec<String> =
        states.iter().map(|(state, count)| format!("{} {state}", output::count(*count))).collect();
    let summary = format!("{}: {}", counted(at, "update"), counts.join(", "));
    let mut lines = summary.clone();
    if let [Ok(UpdateStatus { number, version, .. })] = &sent[..] {
        lines += &format!("\nnumber   {number}");
        lines += &version.map(|version| format!("\nversion  {version}")).unwrap_or_default();
    }
    lines += &last.map(|epoch| format!("\nepoch    {epoch}")).unwrap_or_default();
    if refused.is_empty() {
        let object = json!({ "ok": true, "updates": at, "states": states, "epoch": last, "status": status_of(sent) });
        return output::result(json, &object, &lines);
    }
    let mut why = summary;
    for (number, reason) in refused.iter().take(SHOWN) {
        why += &format!("\n  update {number}: {reason}");
    }
    if refused.len() > SHOWN {
        why += &format!("\n  and {} more", output::count((refused.len() - SHOWN) as u64));
    }
    let details = json!({
        "updates": at, "states": states, "epoch": last,
        "refused": refused.iter().map(|(number, why)| json!({ "update": number, "reason": why })).collect::<Vec<_>>(),
    });
    Err(Failure { code: exit::FAILED, message: why, details })
}

/// The status of the only update.
fn status_of(sent: &Sent) -> Option<&UpdateStatus> {
    match &sent[..] {
        [Ok(status)] => Some(status),
        _ => None,
    }
}
