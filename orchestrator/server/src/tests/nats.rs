//! A real server: `NATS_SERVER` names the program, which is looked for in PATH otherwise.

use crate::store::{NatsSettings, NatsStore, Rev, Store, WriteError, received};
use bytes::Bytes;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server that syncs every write, killed at the end of its test.
pub(super) struct Server {
    child: Child,
    program: PathBuf,
    folder: tempfile::TempDir,
    config: &'static str,
    pub(super) settings: NatsSettings,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The example for operators, with users of different rights.
const WITH_USERS: &str = include_str!("../../nats.conf");

/// The same without users.
fn without_users() -> &'static str {
    WITH_USERS.split("authorization {").next().unwrap()
}

fn start(program: &Path, folder: &Path, config: &str, port: u16) -> Child {
    let store = folder.join("store").display().to_string();
    let config = config.replace("4222", &port.to_string()).replace("nats-data", &store);
    std::fs::write(folder.join("nats.conf"), config).unwrap();
    let mut command = Command::new(program);
    command.arg("-c").arg(folder.join("nats.conf")).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

impl Server {
    /// Starts a server. Returns `None` if the program is not installed.
    pub(super) async fn new() -> Option<Self> {
        Self::with(without_users()).await
    }

    async fn with(config: &'static str) -> Option<Self> {
        let program = std::env::var_os("NATS_SERVER").map_or("nats-server".into(), PathBuf::from);
        let version = Command::new(&program).arg("--version").stdout(Stdio::null()).status();
        if version.is_err() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: there is no nats-server");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = NatsSettings {
            address: format!("nats://127.0.0.1:{port}"),
            namespace: "test".into(),
            replicas: 1,
            credentials: None,
            versions: 64,
        };
        let child = start(&program, folder.path(), config, port);
        let server = Self { child, program, folder, config, settings };
        server.wait().await;
        Some(server)
    }

    fn port(&self) -> u16 {
        self.settings.address.rsplit(':').next().unwrap().parse().unwrap()
    }

    async fn wait(&self) {
        for _ in 0..600 {
            if std::net::TcpStream::connect(("127.0.0.1", self.port())).is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server does not answer");
    }

    /// Kills the server, and starts it again on the files on disk.
    pub(super) async fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = start(&self.program, self.folder.path(), self.config, self.port());
        self.wait().await;
    }

    pub(super) async fn open(&self) -> NatsStore {
        NatsStore::open(&self.settings, "records", false).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_obeys_the_laws() {
    let Some(server) = Server::new().await else { return };
    super::stores::laws(&server.open().await, &server.open().await).await;
    let sessions = || NatsStore::open(&server.settings, "sessions", true);
    super::stores::laws(&sessions().await.unwrap(), &sessions().await.unwrap()).await;
    let history = server.open().await.history().await.unwrap();
    assert_eq!(history.logs.len(), 99);
    // Both versions of the first record, and each other one.
    assert_eq!(history.records.iter().filter(|it| it.entry.key == "a/1").count(), 2);
}

/// The client makes a lost consumer anew, and forgets where a new one was to start.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_consumer_brings_nothing_from_before_its_start() {
    let Some(server) = Server::new().await else { return };
    let store = server.open().await;
    let value = Bytes::from_static(b"x");
    let first = store.create("a/1", value.clone()).await.unwrap();
    let second = store.create("a/2", value).await.unwrap();
    let [stream, all] =
        ["-", "."].map(|it| format!("hk-test-records{it}{:016x}", first.incarnation));
    let consumer = store.consumer(format!("{all}.r.>"), first.number).await.unwrap();
    let client = async_nats::connect(&server.settings.address).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let name = &consumer.cached_info().name;
    context.delete_consumer_from_stream(name, &stream).await.unwrap();
    let found = received(consumer, first.number, 9).await.unwrap();
    assert_eq!(found.iter().map(|(_, _, number, _)| *number).collect::<Vec<_>>(), [second.number]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_has_what_it_answered() {
    let Some(mut server) = Server::new().await else { return };
    let store = server.open().await;
    let value = Bytes::from_static(b"x");
    let first = store.create("a", value.clone()).await.unwrap();
    let mut watch = store.watch("a", first).await.unwrap();
    server.restart().await;
    let again = server.open().await;
    assert_eq!(again.get("a").await.unwrap().unwrap().rev, first);
    let second = again.update("a", value.clone(), first).await.unwrap();
    // The connection from before is back, too, and its watch with it, or it says that it is not.
    let next = tokio::time::timeout(Duration::from_secs(40), watch.next()).await;
    if let Ok(Ok(changes)) = next {
        assert_eq!(changes.last().unwrap().rev, second);
    }
    let late = store.update("a", value, first).await;
    assert!(matches!(late, Err(WriteError::Conflict { .. })), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_was_made_again_is_another_store() {
    let Some(server) = Server::new().await else { return };
    let store = server.open().await;
    let value = Bytes::from_static(b"x");
    let old = store.create("a", value.clone()).await.unwrap();
    let client = async_nats::connect(&server.settings.address).await.unwrap();
    let context = async_nats::jetstream::new(client);
    context.delete_stream(format!("hk-test-records-{:016x}", old.incarnation)).await.unwrap();
    let again = server.open().await;
    let new = again.create("a", value.clone()).await.unwrap();
    assert_ne!(new.incarnation, old.incarnation);
    // Writes for the old store do not reach the new one, whatever the revisions are.
    for rev in [old, Rev { number: new.number, ..old }] {
        let refused = again.update("a", value.clone(), rev).await;
        assert!(matches!(refused, Err(WriteError::Conflict { .. })), "{refused:?}");
    }
    assert!(store.update("a", value.clone(), old).await.is_err());
    assert_eq!(again.get("a").await.unwrap().unwrap().rev, new);
    assert!(again.watch("a", old).await.unwrap().next().await.is_err());

    // Several that start at the same time agree.
    let settings = NatsSettings { namespace: "together".into(), ..server.settings.clone() };
    let open = (0..6).map(|_| NatsStore::open(&settings, "records", false));
    let mut made = Vec::new();
    for (at, store) in futures_util::future::join_all(open).await.into_iter().enumerate() {
        made.push(
            store.unwrap().create(&format!("k/{at}"), value.clone()).await.unwrap().incarnation,
        );
    }
    made.dedup();
    assert_eq!(made.len(), 1);
    let settings = NatsSettings { replicas: 3, ..settings };
    let refused = NatsStore::open(&settings, "three", false).await;
    assert!(refused.is_err(), "one server has no three replicas");
}

/// A process that only runs tasks can neither accept, end or publish a job, nor delete anything.
#[tokio::test(flavor = "multi_thread")]
async fn workers_write_nothing_but_tasks_and_sessions() {
    let Some(server) = Server::with(WITH_USERS).await else { return };
    let user = |user: &str| NatsSettings {
        address: server.settings.address.replace("//", &format!("//{user}:{user}-password@")),
        namespace: "hekaton".into(),
        ..server.settings.clone()
    };
    let nobody = NatsStore::open(&server.settings, "records", false).await;
    assert!(nobody.is_err(), "without a password");
    let service = NatsStore::open(&user("service"), "records", false).await.unwrap();
    let sessions = NatsStore::open(&user("service"), "sessions", true).await.unwrap();
    let value = Bytes::from_static(b"x");
    let job = service.create("job/00/t/c/b", value.clone()).await.unwrap();
    let task = service.create("task/00/x", value.clone()).await.unwrap();
    service.append("out/t/c", value.clone(), None).await.unwrap();

    let worker = NatsStore::open(&user("worker"), "records", false).await.unwrap();
    assert_eq!(worker.get("job/00/t/c/b").await.unwrap().unwrap().rev, job);
    assert_eq!(worker.list("", 0).await.unwrap().entries.len(), 2);
    let mut watch = worker.watch("task/", task).await.unwrap();
    let claim = worker.update("task/00/x", value.clone(), task).await.unwrap();
    assert_eq!(watch.next().await.unwrap().last().unwrap().rev, claim);
    let own = NatsStore::open(&user("worker"), "sessions", true).await.unwrap();
    own.create("session/w", value.clone()).await.unwrap();
    assert!(sessions.get("session/w").await.unwrap().is_some());

    let (a, b, c, d) = tokio::join!(
        worker.update("job/00/t/c/b", value.clone(), job),
        worker.create("job/00/t/c/other", value.clone()),
        worker.create("owner/00", value.clone()),
        worker.append(
            "out/t/c",
            value.clone(),
            service.tail("out/t/c").await.unwrap().map(|it| it.rev)
        ),
    );
    for breach in [a, b, c, d] {
        breach.unwrap_err();
    }
    let options = async_nats::ConnectOptions::new();
    let options = options.user_and_password("worker".into(), "worker-password".into());
    let client = options.connect(&server.settings.address).await.unwrap();
    let mut context = async_nats::jetstream::new(client);
    context.set_timeout(Duration::from_secs(1));
    let stream = format!("hk-hekaton-records-{:016x}", job.incarnation);
    assert!(context.delete_stream(&stream).await.is_err());
    context.get_stream(&stream).await.unwrap().purge().await.unwrap_err();
    assert_eq!(service.get("job/00/t/c/b").await.unwrap().unwrap().rev, job);
    assert_eq!(service.list("", 0).await.unwrap().entries.len(), 2);
    assert_eq!(service.read("out/t/c", 0, 9).await.unwrap().len(), 1);
}

/// Three servers that are one cluster, and the settings for a store on all of them.
fn three(single: &Server) -> (Vec<Server>, NatsSettings) {
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bound: Vec<_> = (0..6).map(|_| free()).collect();
    let ports: Vec<u16> = bound.iter().map(|free| free.local_addr().unwrap().port()).collect();
    drop(bound);
    let (clients, routes) = ports.split_at(3);
    let addresses = |ports: &[u16]| -> Vec<String> {
        ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect()
    };
    let address = addresses(clients).join(",");
    let settings = NatsSettings { replicas: 3, address, ..single.settings.clone() };
    let server = |at: usize| {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "server_name: s{at}\n{}\ncluster {{ name: c, listen: \"127.0.0.1:{}\", routes: [{}] }}\n",
            without_users(),
            routes[at],
            addresses(routes).join(", "),
        );
        let child = start(&single.program, folder.path(), &config, clients[at]);
        let (program, config) = (single.program.clone(), without_users());
        Server { child, program, folder, config, settings: settings.clone() }
    };
    ((0..3).map(server).collect(), settings)
}

/// A store on servers that may have just been started: until they have found each other and chosen a leader.
async fn opened(settings: &NatsSettings, kind: &'static str) -> Option<NatsStore> {
    for _ in 0..60 {
        if let Ok(store) = NatsStore::open(settings, kind, false).await {
            return Some(store);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    None
}

/// Three servers keep copies of everything: one of them may be gone at any time.
#[tokio::test(flavor = "multi_thread")]
async fn three_servers_obey_the_laws_and_one_may_be_gone() {
    // Of a single one, only to know whether there is the program.
    let Some(single) = Server::new().await else { return };
    // Another process may take one of the ports before the server does.
    let (mut servers, mut settings) = three(&single);
    for _ in 0..2 {
        if opened(&settings, "records").await.is_some() {
            break;
        }
        drop(servers);
        (servers, settings) = three(&single);
    }
    let open = async |kind| opened(&settings, kind).await.expect("the servers answer");
    super::stores::laws(&open("records").await, &open("records").await).await;

    let store = open("records").await;
    let value = Bytes::from_static(b"x");
    let mut rev = store.create("replicated", value.clone()).await.unwrap();
    servers.truncate(2);
    let mut written = 0;
    for _ in 0..120 {
        match store.update("replicated", value.clone(), rev).await {
            Ok(next) => (rev, written) = (next, written + 1),
            // A leader is chosen. A write without an answer may have taken effect.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(250)).await;
                if let Ok(Some(entry)) = store.get("replicated").await {
                    assert!(entry.rev.number >= rev.number, "what was acknowledged is lost");
                    rev = entry.rev;
                }
            }
        }
        if written == 20 {
            break;
        }
    }
    assert_eq!(written, 20);
    // With two of three gone, nothing is written.
    servers.truncate(1);
    let alone = store.update("replicated", value.clone(), rev).await;
    assert!(
        matches!(alone, Err(WriteError::Unknown { .. } | WriteError::Refused { .. })),
        "{alone:?}"
    );
}
