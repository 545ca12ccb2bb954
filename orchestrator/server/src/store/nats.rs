//! A store in NATS JetStream, for several machines.
//!
//! All records and logs are messages of one stream, so its sequence is the counter. A record is the last message of its subject,
//! an entry of a log is a message with a subject of its own, which names the entry's number: two appends at the same place cannot
//! both be the first message there. Every write names the sequence that it expects of its subject.
//!
//! The stream's name and all subjects contain the store's incarnation, drawn at random when the stream is made and kept in a register,
//! which is a stream, too ([`connect`]). A stream that was deleted and made again has another one, so what was meant for the old one finds
//! no stream. Work-queue consumers are not used, because their acknowledgments are not fenced: the first holder of a redelivered message
//! can still acknowledge it, and take it away from the second one.

mod connect;
mod known;

pub use connect::NatsSettings;
pub(crate) use known::Known;

use super::{Entry, Listing, Rev, Store, Unavailable, Watch, WatchError, WriteError, check};
use crate::history::{History, Version};
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::consumer::{Consumer, DeliverPolicy};
use async_nats::jetstream::context::{GetStreamErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use std::fmt;
use std::time::Duration;

/// The time that the server may take to answer.
const TIME: Duration = Duration::from_secs(5);

/// The number of changes that a watch reports at once.
const MAX_CHANGES: usize = 1_000;

/// A stream of NATS JetStream.
pub struct NatsStore {
    context: Context,
    stream: Stream,
    prefix: String,
    incarnation: u64,
    server: String,
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

fn unavailable(why: impl fmt::Display) -> Unavailable {
    Unavailable { why: format!("NATS: {why}") }
}

impl NatsStore {
    /// Returns the store's incarnation.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn rev(&self, number: u64) -> Rev {
        Rev { incarnation: self.incarnation, number }
    }

    fn name(&self) -> String {
        self.prefix.replace('.', "-")
    }

    fn record(&self, key: &str) -> String {
        format!("{}.r.{}", self.prefix, key.replace('/', "."))
    }

    fn log(&self, name: &str) -> String {
        format!("{}.l.{}", self.prefix, name.replace('/', "."))
    }

    /// The filter for a prefix of keys.
    fn filter(&self, prefix: &str) -> String {
        match prefix.strip_suffix('/') {
            Some(tokens) => self.record(tokens) + ".>",
            None if prefix.is_empty() => format!("{}.r.>", self.prefix),
            None => self.record(prefix),
        }
    }

    /// The record or log that a subject belongs to.
    fn key(&self, subject: &str) -> Option<String> {
        let rest = subject.strip_prefix(&self.prefix)?;
        match rest.strip_prefix(".r.") {
            Some(tokens) => Some(tokens.replace('.', "/")),
            None => {
                let (tokens, _) = rest.strip_prefix(".l.")?.rsplit_once('.')?;
                Some(tokens.replace('.', "/"))
            }
        }
    }

    fn entry(&self, subject: &str, value: Bytes, sequence: u64) -> Option<Entry> {
        Some(Entry { key: self.key(subject)?, value, rev: self.rev(sequence) })
    }

    async fn write(
        &self,
        key: &str,
        subject: &str,
        value: Bytes,
        expected: u64,
    ) -> Result<Rev, WriteError> {
        let message =
            PublishMessage::build().payload(value).expected_last_subject_sequence(expected);
        let owned = || key.to_owned();
        match publish(&self.context, subject, message).await {
            Ok(sequence) => Ok(self.rev(sequence)),
            Err(error) => Err(match error.kind() {
                PublishErrorKind::WrongLastSequence => WriteError::Conflict { key: owned() },
                // The server has not taken it.
                PublishErrorKind::StreamNotFound | PublishErrorKind::MaxPayloadExceeded => {
                    WriteError::Refused { key: owned(), why: error.to_string() }
                }
                PublishErrorKind::Other if is_full(&error) => WriteError::Full { key: owned() },
                // A time-out, a disconnection, or a server that is busy with an earlier write.
                _ => WriteError::Unknown { key: owned(), why: error.to_string() },
            }),
        }
    }

    /// The last message of a subject, which may contain a wildcard, from the stream's leader.
    async fn last(&self, subject: &str) -> Result<Option<(String, Bytes, u64)>, Unavailable> {
        match self.stream.get_last_raw_message_by_subject(subject).await {
            Ok(message) => {
                Ok(Some((message.subject.to_string(), message.payload, message.sequence)))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// A consumer of a filter's messages behind a sequence.
    pub(crate) async fn consumer(
        &self,
        filter: String,
        after: u64,
    ) -> Result<Consumer<OrderedConfig>, Unavailable> {
        let start = after.saturating_add(1);
        let config = OrderedConfig {
            filter_subject: filter,
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: start },
            ..OrderedConfig::default()
        };
        self.stream.create_consumer(config).await.map_err(unavailable)
    }

    /// The messages of a filter that are there now, with their times in milliseconds.
    async fn messages(
        &self,
        filter: String,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(String, Bytes, u64, u64)>, Unavailable> {
        received(self.consumer(filter, after).await?, after, limit).await
    }

    /// The versions of records that are kept, and the logs.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn history(&self) -> Result<History, Unavailable> {
        let mut history = History::default();
        let all = self.messages(format!("{}.>", self.prefix), 0, usize::MAX).await?;
        for (subject, value, sequence, at) in all {
            let Some(entry) = self.entry(&subject, value, sequence) else { continue };
            match subject[self.prefix.len()..].starts_with(".r.") {
                true => history.records.push(Version { entry, at }),
                false => history.logs.push(entry),
            }
        }
        Ok(history)
    }
}

/// The messages behind a sequence that a consumer has now, with their times in milliseconds.
pub(crate) async fn received(
    consumer: Consumer<OrderedConfig>,
    after: u64,
    limit: usize,
) -> Result<Vec<(String, Bytes, u64, u64)>, Unavailable> {
    let mut found = Vec::new();
    if consumer.cached_info().num_pending == 0 {
        return Ok(found);
    }
    let mut messages = consumer.messages().await.map_err(unavailable)?;
    let mut last = after;
    while found.len() < limit {
        let next = tokio::time::timeout(TIME, messages.next()).await;
        let message = next
            .map_err(|_| unavailable("no message arrives"))?
            .ok_or_else(|| unavailable("the list ends early"))?
            .map_err(unavailable)?;
        let info = message.info().map_err(unavailable)?;
        let millis = info.published.unix_timestamp_nanos() / 1_000_000;
        let millis = u64::try_from(millis).unwrap_or(0);
        let (sequence, left) = (info.stream_sequence, info.pending);
        // A consumer that is made anew brings messages again: those since the last one, or, before
        // the first one, all that the stream has, wherever it was to start.
        if last < sequence {
            let (subject, payload) = (message.subject.to_string(), message.payload.clone());
            found.push((subject, payload, sequence, millis));
            last = sequence;
        }
        if left == 0 {
            break;
        }
    }
    Ok(found)
}

fn is_not_found(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// Reports whether the server has no space for a message, which it then has not taken.
fn is_full(error: &PublishError) -> bool {
    let source = std::error::Error::source(error).and_then(|it| it.downcast_ref());
    source.is_some_and(|error: &jetstream::Error| {
        [ErrorCode::INSUFFICIENT_RESOURCES, ErrorCode::STORAGE_RESOURCES_EXCEEDED]
            .contains(&error.error_code())
    })
}

/// Publishes a message and returns its sequence once it is stored.
async fn publish(
    context: &Context,
    subject: &str,
    message: PublishMessage,
) -> Result<u64, PublishError> {
    let acknowledged = context.send_publish(subject.to_owned(), message).await?.await?;
    Ok(acknowledged.sequence)
}

#[async_trait]
impl Store for NatsStore {
    async fn create(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        check(key, &value)?;
        self.write(key, &self.record(key), value, 0).await
    }

    async fn update(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        check(key, &value)?;
        // A sequence of 0 would mean that there is no record.
        if expected.incarnation != self.incarnation || expected.number == 0 {
            return Err(WriteError::Conflict { key: key.into() });
        }
        self.write(key, &self.record(key), value, expected.number).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, Unavailable> {
        let found = self.last(&self.record(key)).await?;
        Ok(found.and_then(|(subject, value, sequence)| self.entry(&subject, value, sequence)))
    }

    async fn list(&self, prefix: &str, after: u64) -> Result<Listing, Unavailable> {
        let info = self.stream.get_info().await.map_err(unavailable)?;
        // Asked for before the records: what is written in between is both listed and watched. In
        // the other order, it would be neither.
        let at = self.rev(info.state.last_sequence);
        let found = self.messages(self.filter(prefix), after, usize::MAX).await?;
        // Where several versions are kept, the last one counts.
        let mut last = std::collections::BTreeMap::new();
        for (subject, value, sequence, _) in found {
            last.insert(subject, (value, sequence));
        }
        let mut entries: Vec<Entry> = last
            .into_iter()
            .filter_map(|(subject, (value, sequence))| self.entry(&subject, value, sequence))
            .collect();
        entries.sort_by_key(|entry| entry.rev.number);
        Ok(Listing { entries, at })
    }

    async fn watch(&self, prefix: &str, after: Rev) -> Result<Box<dyn Watch>, Unavailable> {
        if after.incarnation != self.incarnation {
            return Ok(Box::new(Changed));
        }
        let consumer = self.consumer(self.filter(prefix), after.number).await?;
        let messages = consumer.messages().await.map_err(unavailable)?;
        let (prefix, incarnation) = (format!("{}.r.", self.prefix), self.incarnation);
        Ok(Box::new(Changes {
            messages: Box::new(messages),
            prefix,
            incarnation,
            last: after.number,
        }))
    }

    async fn append(&self, log: &str, entry: Bytes, last: Option<Rev>) -> Result<Rev, WriteError> {
        check(log, &entry)?;
        let subject = self.log(log);
        let tail = self.last(&format!("{subject}.*")).await;
        let tail =
            // Nothing was sent yet, so nothing can take effect later: `Unknown` would make the
            // caller look for a write that was never made.
            tail.map_err(|error| WriteError::Refused { key: log.into(), why: error.to_string() })?;
        let found = tail.as_ref().map(|(_, _, sequence)| self.rev(*sequence));
        if found != last {
            return Err(WriteError::Conflict { key: log.into() });
        }
        let number = tail.and_then(|(subject, ..)| subject.rsplit('.').next()?.parse::<u64>().ok());
        let next = number.map_or(0, |number| number + 1);
        // Another writer that appends after the same tail does so at the same place.
        self.write(log, &format!("{subject}.{next}"), entry, 0).await
    }

    async fn tail(&self, log: &str) -> Result<Option<Entry>, Unavailable> {
        let found = self.last(&format!("{}.*", self.log(log))).await?;
        Ok(found.and_then(|(subject, value, sequence)| self.entry(&subject, value, sequence)))
    }

    async fn read(&self, log: &str, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        let found = self.messages(format!("{}.*", self.log(log)), after, limit).await?;
        let entries = found.into_iter();
        Ok(entries
            .filter_map(|(subject, value, sequence, _)| self.entry(&subject, value, sequence))
            .collect())
    }

    fn describe(&self) -> String {
        self.server.clone()
    }

    async fn is_there(&self) -> Result<bool, Unavailable> {
        match self.context.get_stream(self.name()).await {
            Ok(_) => Ok(true),
            Err(error) if is_not_found(&error.kind()) => Ok(false),
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn probe(&self) -> Result<(), Unavailable> {
        // The last message of a subject of its own, which is neither a record nor a log.
        let message = PublishMessage::build().payload(Bytes::from_static(b"."));
        let written = publish(&self.context, &format!("{}.probe", self.prefix), message).await;
        written.map(drop).map_err(unavailable)
    }
}

/// A watch from a revision of another store.
struct Changed;

#[async_trait]
impl Watch for Changed {
    async fn next(&mut self) -> Result<Vec<Entry>, WatchError> {
        Err(WatchError::Gap)
    }
}

/// A watch: an ordered consumer, which notices gaps in what it is sent and asks again.
struct Changes {
    messages: Box<Ordered>,
    prefix: String,
    incarnation: u64,
    last: u64,
}

impl Changes {
    fn entry(
        &mut self,
        message: &async_nats::jetstream::Message,
    ) -> Result<Option<Entry>, WatchError> {
        let info = message.info().map_err(|_| WatchError::Gap)?;
        let number = info.stream_sequence;
        if number <= self.last {
            // The consumer was made again, further back.
            return Ok(None);
        }
        self.last = number;
        let Some(tokens) = message.subject.strip_prefix(&self.prefix) else { return Ok(None) };
        let rev = Rev { incarnation: self.incarnation, number };
        let entry = Entry { key: tokens.replace('.', "/"), value: message.payload.clone(), rev };
        Ok(Some(entry))
    }
}

#[async_trait]
impl Watch for Changes {
    async fn next(&mut self) -> Result<Vec<Entry>, WatchError> {
        let mut changes = Vec::new();
        while changes.is_empty() {
            let Some(Ok(message)) = self.messages.next().await else { return Err(WatchError::Gap) };
            changes.extend(self.entry(&message)?);
            // What else has arrived.
            while changes.len() < MAX_CHANGES
                && let Some(next) = self.messages.next().now_or_never()
            {
                let Some(Ok(message)) = next else { return Err(WatchError::Gap) };
                changes.extend(self.entry(&message)?);
            }
        }
        Ok(changes)
    }
}
