//! Look-ups, histories and epochs.

use crate::failure::OrFailure;
use crate::foreign_text::is_control;
use crate::options::{DirectoryEpoch, DirectoryLookUp};
use crate::source::Asking;
use hekaton_directory::{Checked, SignedRecord};
use hekaton_directory_http::Base64;
use hekaton_directory_http::body::State;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, count, counted};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn look_up(command: &DirectoryLookUp, json: bool) -> Result<(), Failure> {
    let asking = Asking::open(&command.asked)?;
    let label = &command.label;
    let body = asking.source.key(label, command.epoch)?;
    let found = body.verify(&asking.parameters, label.as_bytes(), command.epoch).or_failure()?;
    // Before anything is shown: an answer from another history must not look like a valid one.
    asking.continued(&found.record, &body.record.0, command.epoch.is_some())?;
    let shown = match (&found.leaf, &found.value) {
        (None, _) => "has never had a value".to_owned(),
        (Some(leaf), value) => format!(
            "has version {}, since epoch {}\nvalue    {}",
            leaf.version,
            // A leaf has the epoch that ended with it, and the record of the next one is the first
            // with this value.
            u64::from(leaf.epoch) + 1,
            text(value.as_deref())
        ),
    };
    let lines = format!("'{label}' {shown}\n{}", record_lines(&found.record, body.state));
    let object = json!({
        "ok": true, "label": label, "present": found.leaf.is_some(),
        "version": found.leaf.map(|leaf| leaf.version),
        "since": found.leaf.map(|leaf| u64::from(leaf.epoch) + 1),
        "value_base64": found.value.map(Base64), "epoch": body.epoch, "state": body.state,
        "record": hex::encode(found.record.record().digest()),
    });
    output::result(json, &object, &lines)
}

pub(crate) fn history(command: &DirectoryLookUp, json: bool) -> Result<(), Failure> {
    let asking = Asking::open(&command.asked)?;
    let label = &command.label;
    let body = asking.source.history(label, command.epoch)?;
    let found = body.verify(&asking.parameters, label.as_bytes(), command.epoch).or_failure()?;
    asking.continued(&found.record, &body.record.0, command.epoch.is_some())?;
    let values = found.values().enumerate();
    let mut lines = match found.history.0.len() {
        0 => format!("'{label}' has never had a value\n"),
        values => format!("'{label}' has had {}\n", counted(values as u64, "value")),
    };
    for (version, value) in values {
        lines += &format!("{version:>8} {}\n", text(value));
    }
    lines += &record_lines(&found.record, body.state);
    let values: Vec<_> =
        found.values().map(|value| value.map(|value| Base64(value.to_vec()))).collect();
    let object = json!({
        "ok": true, "label": label, "present": found.leaf.is_some(), "values_base64": values,
        "epoch": body.epoch, "state": body.state,
        "record": hex::encode(found.record.record().digest()),
    });
    output::result(json, &object, &lines)
}

pub(crate) fn epoch(command: &DirectoryEpoch, json: bool) -> Result<(), Failure> {
    let asking = Asking::open(&command.asked)?;
    let body = match command.epoch {
        Some(epoch) => asking.source.epoch(epoch)?,
        None => asking.source.epochs()?.last,
    };
    let record = SignedRecord::decode(&body.record.0).map_err(|e| format!("the record: {e}"));
    let verified = record.or_fail(exit::REFUSED)?.verify(&asking.parameters);
    let checked = verified.or_fail(exit::REFUSED)?;
    let found = checked.record();
    if found.epoch != body.epoch || command.epoch.is_some_and(|epoch| epoch != found.epoch) {
        let why = format!("the answer has the record of epoch {}", found.epoch);
        return Err(Failure::new(exit::REFUSED, why));
    }
    asking.continued(&checked, &body.record.0, command.epoch.is_some())?;
    let lines = format!(
        "{}\nlabels   {}\nupdates  {}\nroot     {}\nchain    {}\nlog      {}",
        record_lines(&checked, body.state),
        count(found.leaves),
        count(found.log_size),
        hex::encode(found.root),
        hex::encode(found.chain),
        hex::encode(found.log_root),
    );
    let object = json!({
        "ok": true, "epoch": found.epoch, "state": body.state, "closed": found.closed,
        "leaves": found.leaves, "updates": found.log_size, "root": hex::encode(found.root),
        "chain": hex::encode(found.chain), "log_root": hex::encode(found.log_root),
        "record": hex::encode(found.digest()),
    });
    output::result(json, &object, &lines)
}

/// A value for people.
fn text(value: Option<&[u8]>) -> String {
    let Some(value) = value else { return "(erased, or withheld by the server)".into() };
    match std::str::from_utf8(value) {
        Ok(text) if !text.chars().any(is_control) => text.to_owned(),
        _ => format!("{} (hexadecimal)", hex::encode(value)),
    }
}

/// The epoch of an answer.
fn record_lines(record: &Checked, state: State) -> String {
    let found = record.record();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let seconds = |seconds: u64| output::seconds_f64(seconds as f64);
    let age = match found.closed.checked_sub(now) {
        Some(0) => "just now".to_owned(),
        Some(ahead) => format!("{} ahead of this clock", seconds(ahead)),
        None => format!("{} ago", seconds(now - found.closed)),
    };
    let state = match state {
        // Clients have verified the record; the proof is the auditors' to verify.
        State::Proven => "signed; proven, as the server says: an audit verifies it",
        _ => "signed, not proven yet",
    };
    format!(
        "epoch    {}, closed {age}, {state}\nrecord   {}",
        found.epoch,
        hex::encode(found.digest())
    )
}
