//! Connecting to a server, and opening or making the streams of a store.

use super::known::{self, Known};
use super::{NatsStore, TIME, is_not_found, publish, unavailable};
use crate::store::{OpenError, Unavailable};
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{ContextBuilder, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream,
};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The time for which a session that is no longer written stays in a store of sessions.
// Without an age, sessions of ended processes would fill the server's memory. A process counts as
// dead after five silent seconds, so nobody needs one for this long.
const SESSION_AGE: Duration = Duration::from_secs(3_600);

/// The first version that has `sync_interval`, without which a single server loses what it has acknowledged when its machine fails.
const SYNCS: (i64, i64, i64) = (2, 10, 0);

/// The first version whose clusters do not accept several conditional writes at the same time (nats-server #4320, #6485).
const REPLICATES: (i64, i64, i64) = (2, 11, 0);

/// The settings by which a store is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// `nats://HOST:PORT`, or `tls://` for an encrypted connection; several with commas.
    pub address: String,
    /// Tells stores of one server apart: letters, digits, `-` and `_`.
    pub namespace: String,
    /// The number of servers on which each message is kept.
    pub replicas: usize,
    /// A file with the user's JWT and NKEY seed, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// The number of versions of each record that are kept: 1, except in tests that look at the history.
    pub versions: i64,
}

impl fmt::Debug for NatsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may contain a password.
        f.debug_struct("NatsSettings").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

fn refused(why: impl fmt::Display) -> OpenError {
    OpenError::Refused { why: format!("NATS: {why}") }
}

async fn connect(settings: &NatsSettings, kind: &str) -> Result<Client, OpenError> {
    let mut options = ConnectOptions::new()
        .name(format!("hekaton-orchestrator {kind}"))
        .request_timeout(Some(TIME))
        .connection_timeout(TIME)
        .reconnect_delay_callback(|attempts| {
            Duration::from_millis(50 << attempts.min(6)).min(Duration::from_secs(2))
        });
    if let Some(path) = &settings.credentials {
        let text = std::fs::read_to_string(path)
            .map_err(|error| refused(format_args!("{}: {error}", path.display())))?;
        options = options.credentials(&text).map_err(refused)?;
    }
    let servers: Vec<ServerAddr> = settings
        .address
        .split(',')
        .map(str::parse::<ServerAddr>)
        .collect::<Result<_, _>>()
        .map_err(refused)?;
    let user = servers.iter().find_map(|server| Some((server.username()?, server.password()?)));
    if let Some((user, password)) = user {
        // The address is not decoded on its way here, so the server would get the escapes as they are.
        if password.contains('%') || user.contains('%') {
            return Err(refused("a password in an address cannot have special characters"));
        }
        options = options.user_and_password(user.into(), password.into());
    }
    let client = options.connect(servers).await.map_err(|error| match error.kind() {
        // Waiting does not help against these errors. All others may come from a server that is still starting.
        ConnectErrorKind::ServerParse
        | ConnectErrorKind::Authentication
        | ConnectErrorKind::AuthorizationViolation
        | ConnectErrorKind::Tls => refused(error),
        _ => unavailable(error).into(),
    })?;
    let (least, why) = match settings.replicas {
        0 | 1 => (
            SYNCS,
            "earlier versions have no `sync_interval: always`, and may lose acknowledged writes when their machine fails",
        ),
        _ => (REPLICATES, "clusters of earlier versions accept conflicting writes"),
    };
    let (major, minor, patch) = least;
    if !client.is_server_compatible(major, minor, patch) {
        return Err(refused(format_args!(
            "the server has version {}, and --replicas {} needs {major}.{minor}.{patch} or later: {why}",
            client.server_info().version,
            settings.replicas.max(1),
        )));
    }
    Ok(client)
}

impl NatsStore {
    /// Opens a store, or makes it. `kind` tells the stores of a namespace apart; one of sessions is kept in memory.
    ///
    /// # Errors
    /// If the server does not answer, refuses the user, or is too old.
    pub async fn open(
        settings: &NatsSettings,
        kind: &str,
        memory: bool,
    ) -> Result<Self, OpenError> {
        Self::open_known(settings, kind, memory, Known::Nothing).await
    }

    /// Opens a store, given what is already known about it.
    pub(crate) async fn open_known(
        settings: &NatsSettings,
        kind: &str,
        memory: bool,
        known: Known,
    ) -> Result<Self, OpenError> {
        let client = connect(settings, kind).await?;
        let version = client.server_info().version;
        let context = ContextBuilder::new().timeout(TIME).ack_timeout(TIME).build(client);
        let storage = if memory { StorageType::Memory } else { StorageType::File };
        let base = Config {
            storage,
            num_replicas: settings.replicas.max(1),
            // A full stream must refuse new records. The default would drop the oldest, which are those of chains and jobs.
            discard: DiscardPolicy::New,
            max_message_size: i32::try_from(crate::store::MAX_VALUE + 4_096)
                .expect("values have less than 2 GiB"),
            // Direct reads are answered by any replica, also by one that is behind.
            allow_direct: false,
            allow_rollup: false,
            // No message can be removed by mistake: what is missing would look like a record that was never written.
            deny_delete: true,
            deny_purge: true,
            ..Config::default()
        };
        let name = format!("hk-{}-{kind}", settings.namespace);
        let (incarnation, stream) = match known {
            Known::Nothing => {
                find_or_make(&context, &base, &name, settings.versions, memory).await?
            }
            Known::Incarnation(known) => (known, find(&context, settings, &name, known).await?),
        };
        let prefix = format!("{name}.{incarnation:016x}");
        let server = format!("NATS {version}, stream {name}-{incarnation:016x}");
        Ok(Self { context, stream, prefix, incarnation, server })
    }
}

/// The stream of a store that was there before.
async fn find(
    context: &Context,
    settings: &NatsSettings,
    name: &str,
    known: u64,
) -> Result<Stream, OpenError> {
    match context.get_stream(format!("{name}-{known:016x}")).await {
        Ok(stream) => Ok(stream),
        Err(error) if is_not_found(&error.kind()) => Err(refused(format_args!(
            "the server has no stream {name}-{known:016x}, where the records are: its storage was lost, or it is another server; \
             restore the streams {name}-* from a backup, or, to start over without the accepted jobs, remove the file {} in the \
             folder of --data",
            known::name(&settings.namespace),
        ))),
        Err(error) => Err(unavailable(error).into()),
    }
}

/// Returns the stream that the register names, and creates it if it does not exist.
async fn find_or_make(
    context: &Context,
    base: &Config,
    name: &str,
    versions: i64,
    memory: bool,
) -> Result<(u64, Stream), Unavailable> {
    let subject = format!("{name}.register");
    let register = Config {
        name: format!("{name}-register"),
        subjects: vec![subject.clone()],
        max_messages_per_subject: 1,
        ..base.clone()
    };
    let register = context.get_or_create_stream(register).await.map_err(unavailable)?;
    loop {
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
                Ok(stream) => return Ok((known, stream)),
                Err(error) if is_not_found(&error.kind()) => {}
                Err(error) => return Err(unavailable(error)),
            }
        }
        // The stream does not exist or was deleted: creates one with a new incarnation, for which nobody knows old revisions.
        let new = crate::id::random() >> 1;
        let made = Config {
            name: format!("{name}-{new:016x}"),
            subjects: vec![format!("{name}.{new:016x}.>")],
            max_messages_per_subject: versions,
            max_age: if memory { SESSION_AGE } else { Duration::ZERO },
            ..base.clone()
        };
        // The stream comes before its name in the register: a process that reads a name without a
        // stream takes the stream for a deleted one and makes another.
        context.create_stream(made).await.map_err(unavailable)?;
        let message = PublishMessage::build()
            .payload(format!("{new:016x}").into())
            .expected_last_subject_sequence(sequence);
        // If several make one at the same time, the register keeps the first.
        match publish(context, &subject, message).await {
            Ok(_) => {}
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {}
            Err(error) => return Err(unavailable(error)),
        }
    }
}
