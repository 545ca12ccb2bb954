//! A store in NATS JetStream, for several machines.
//!
//! All records and logs are messages of one stream, so its sequence is the counter. A record is the last message of its subject,
//! an entry of a log is a message with a subject of its own, which names the entry's number: two appends at the same place cannot
//! both be the first message there. Every write names the sequence that it expects of its subject.
//!
//! The stream's name and all subjects contain the store's incarnation, drawn at random when the stream is made and kept in a
//! register, which is a stream, too. A stream that was deleted and made again has another one, so what was meant for the
//! old one finds no stream. Work-queue consumers are not used: their acknowledgments are not fenced, a redelivered message
//! can be acknowledged away from its second holder.

use super::{Entry, Listing, Rev, Store, Unavailable, Watch, WatchError, WriteError, check};
use crate::history::{History, Version};
use async_nats::ServerAddr;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::consumer::{Consumer, DeliverPolicy};
use async_nats::jetstream::context::{GetStreamErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream,
};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use std::fmt;
use std::time::Duration;

/// How long the server may take to answer.
const TIME: Duration = Duration::from_secs(5);

/// How many changes a watch reports at once.
const MAX_CHANGES: usize = 1_000;

/// How long a session stays in a store of sessions that nobody writes anymore.
const SESSION_AGE: Duration = Duration::from_secs(3_600);

/// How a store is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// `nats://HOST:PORT`, or `tls://` for an encrypted connection; several with commas.
    pub address: String,
    /// Tells stores of one server apart: letters, digits, `-` and `_`.
    pub namespace: String,
    /// On how many servers each message is kept.
    pub replicas: usize,
    /// A file with the user's JWT and NKEY seed, as `nsc` writes it.
    pub credentials: Option<std::path::PathBuf>,
    /// How many versions of each record are kept. 1, except in tests that look at the history.
    pub versions: i64,
}

impl fmt::Debug for NatsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may contain a password.
        f.debug_struct("NatsSettings").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

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
    /// Opens a store, or makes it. `kind` tells the stores of a namespace apart; one of sessions is kept in memory.
    ///
    /// # Errors
    /// If the server does not answer, or is too old.
    pub async fn open(
        settings: &NatsSettings,
        kind: &str,
        memory: bool,
    ) -> Result<Self, Unavailable> {
        let mut options = async_nats::ConnectOptions::new()
            .name(format!("hekaton-orchestrator {kind}"))
            .request_timeout(Some(TIME))
            .connection_timeout(TIME)
            .reconnect_delay_callback(|attempts| {
                Duration::from_millis(50 << attempts.min(6)).min(Duration::from_secs(2))
            });
        if let Some(path) = &settings.credentials {
            let text = std::fs::read_to_string(path)
                .map_err(|error| unavailable(format_args!("{}: {error}", path.display())))?;
            options = options.credentials(&text).map_err(unavailable)?;
        }
        let servers = settings.address.split(',').map(str::parse::<ServerAddr>);
        let servers: Vec<ServerAddr> = servers.collect::<Result<_, _>>().map_err(unavailable)?;
        let user = servers.iter().find_map(|server| Some((server.username()?, server.password()?)));
        if let Some((user, password)) = user {
            if password.contains('%') || user.contains('%') {
                return Err(unavailable("a password in an address cannot have special characters"));
            }
            options = options.user_and_password(user.into(), password.into());
        }
        let client = options.connect(servers).await.map_err(unavailable)?;
        let (major, minor, patch) = match settings.replicas {
            // One server has checked conditional writes one after the other before that, too.
            0 | 1 => (2, 9, 10),
            // Earlier clusters have accepted several conditional writes at the same time (nats-server #4320).
            _ => (2, 11, 0),
        };
        let version = client.server_info().version;
        if !client.is_server_compatible(major, minor, patch) {
            return Err(unavailable(format_args!(
                "the server has version {version}, and {} replicas need at least {major}.{minor}.{patch}",
                settings.replicas.max(1),
            )));
        }
        let context =
            jetstream::context::ContextBuilder::new().timeout(TIME).ack_timeout(TIME).build(client);
        let storage = if memory { StorageType::Memory } else { StorageType::File };
        let base = Config {
            storage,
            num_replicas: settings.replicas.max(1),
            discard: DiscardPolicy::New,
            max_message_size: i32::try_from(super::MAX_VALUE + 4_096).unwrap_or(i32::MAX),
            allow_direct: false,
            allow_rollup: false,
            deny_delete: true,
            deny_purge: true,
            ..Config::default()
        };
        let name = format!("hk-{}-{kind}", settings.namespace);
        let register = Config {
            name: format!("{name}-register"),
            subjects: vec![format!("{name}.register")],
            max_messages_per_subject: 1,
            ..base.clone()
        };
        let register = context.get_or_create_stream(register).await.map_err(unavailable)?;
        let (incarnation, stream) = loop {
            let subject = format!("{name}.register");
            let (known, sequence) = match register.get_last_raw_message_by_subject(&subject).await {
                Ok(message) => {
                    let text = String::from_utf8_lossy(&message.payload).into_owned();
                    let known = u64::from_str_radix(&text, 16).map_err(|_| {
                        unavailable(format_args!("the register of '{name}' contains '{text}'"))
                    })?;
                    (Some(known), message.sequence)
                }
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => (None, 0),
                Err(error) => return Err(unavailable(error)),
            };
            if let Some(known) = known {
                match context.get_stream(format!("{name}-{known:016x}")).await {
                    Ok(stream) => break (known, stream),
                    Err(error) if is_not_found(&error.kind()) => {}
                    Err(error) => return Err(unavailable(error)),
                }
            }
            // There is none, or it was deleted: another one, of which nobody knows old revisions.
            let new = crate::id::random() >> 1;
            let made = Config {
                name: format!("{name}-{new:016x}"),
                subjects: vec![format!("{name}.{new:016x}.>")],
                max_messages_per_subject: settings.versions,
                max_age: if memory { SESSION_AGE } else { Duration::ZERO },
                ..base.clone()
            };
            context.create_stream(made).await.map_err(unavailable)?;
            let message = PublishMessage::build()
                .payload(format!("{new:016x}").into())
                .expected_last_subject_sequence(sequence);
            // Of several that make one at the same time, the register keeps the first.
            match publish(&context, &subject, message).await {
                Ok(_) => {}
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {}
                Err(error) => return Err(unavailable(error)),
            }
        };
        let prefix = format!("{name}.{incarnation:016x}");
        let server = format!("NATS {version}, stream {name}-{incarnation:016x}");
        Ok(Self { context, stream, prefix, incarnation, server })
    }

    fn rev(&self, number: u64) -> Rev {
        Rev { incarnation: self.incarnation, number }
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
        let key = key.to_owned();
        match publish(&self.context, subject, message).await {
            Ok(sequence) => Ok(self.rev(sequence)),
            Err(error) => Err(match error.kind() {
                PublishErrorKind::WrongLastSequence => WriteError::Conflict { key },
                // Nobody has taken it.
                PublishErrorKind::StreamNotFound | PublishErrorKind::MaxPayloadExceeded => {
                    WriteError::Refused { key, why: error.to_string() }
                }
                // A time-out, a disconnection, or a server that is busy with an earlier write.
                _ => WriteError::Unknown { key, why: error.to_string() },
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

    async fn consumer(
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
        let mut found = Vec::new();
        let consumer = self.consumer(filter, after).await?;
        if consumer.cached_info().num_pending == 0 {
            return Ok(found);
        }
        let mut messages = consumer.messages().await.map_err(unavailable)?;
        while found.len() < limit {
            let next = tokio::time::timeout(TIME, messages.next()).await;
            let message = next.map_err(|_| unavailable("no message arrives"))?;
            let message = message.ok_or_else(|| unavailable("the list ends early"))?;
            let message = message.map_err(unavailable)?;
            let info = message.info().map_err(unavailable)?;
            let millis = info.published.unix_timestamp_nanos() / 1_000_000;
            let millis = u64::try_from(millis).unwrap_or(0);
            let (sequence, left) = (info.stream_sequence, info.pending);
            found.push((message.subject.to_string(), message.payload.clone(), sequence, millis));
            if left == 0 {
                break;
            }
        }
        Ok(found)
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

fn is_not_found(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
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
        let at = self.rev(info.state.last_sequence);
        let found = self.messages(self.filter(prefix), after, usize::MAX).await?;
        // Where several versions are kept, the last one counts.
        let mut last = std::collections::BTreeMap::new();
        for (subject, value, sequence, _) in found {
            last.insert(subject, (value, sequence));
        }
        let entries = last
            .into_iter()
            .filter_map(|(subject, (value, sequence))| self.entry(&subject, value, sequence));
        let mut entries: Vec<Entry> = entries.collect();
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
            tail.map_err(|error| WriteError::Refused { key: log.into(), why: error.to_string() })?;
        let found = tail.as_ref().map(|(_, _, sequence)| self.rev(*sequence));
        if found != last {
            return Err(WriteError::Conflict { key: log.into() });
        }
        let number = tail.and_then(|(subject, ..)| subject.rsplit('.').next()?.parse::<u64>().ok());
        let next = number.map_or(0, |number| number + 1);
        // Whoever else appends after the same tail does so at the same place.
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
