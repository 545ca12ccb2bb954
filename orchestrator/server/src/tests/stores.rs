//! Tests that every store must pass.

use super::memory::{Bug, Core, Frozen, MemoryStore};
use crate::record::{create, read, update};
use crate::store::{
    Durability, LEFT_OUT, MAX_VALUE, Rev, Settled, SqliteStore, Store, WatchError, WriteError,
};
use bytes::Bytes;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Duration;

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn is_conflict<T: std::fmt::Debug>(outcome: Result<T, WriteError>) {
    assert!(matches!(outcome, Err(WriteError::Conflict { .. })), "{outcome:?}");
}

/// Runs the tests; `second` is the same store, as another process sees it.
pub(super) async fn laws(store: &dyn Store, second: &dyn Store) {
    // Writes are conditional.
    let one = store.create("a/1", bytes("x")).await.unwrap();
    is_conflict(second.create("a/1", bytes("y")).await);
    let two = second.update("a/1", bytes("y"), one).await.unwrap();
    assert!(two.number > one.number && two.incarnation == one.incarnation);
    is_conflict(store.update("a/1", bytes("z"), one).await);
    is_conflict(store.update("a/2", bytes("z"), two).await);
    let other = Rev { incarnation: two.incarnation + 1, ..two };
    is_conflict(store.update("a/1", bytes("z"), other).await);
    let found = store.get("a/1").await.unwrap().unwrap();
    assert_eq!((&found.value[..], found.rev), (&b"y"[..], two));
    assert_eq!(store.get("a/2").await.unwrap(), None);

    // One counter, over records and logs.
    let three = store.create("b/1", bytes("x")).await.unwrap();
    assert!(three.number > two.number);
    is_conflict(store.append("log", bytes("e"), Some(three)).await);
    let first = store.append("log", bytes("e1"), None).await.unwrap();
    assert!(first.number > three.number);
    is_conflict(second.append("log", bytes("e"), None).await);
    let mut last = second.append("log", bytes("e2"), Some(first)).await.unwrap();
    is_conflict(store.append("log", bytes("e"), Some(first)).await);
    assert_eq!(store.tail("log").await.unwrap().unwrap().rev, last);
    assert_eq!(store.tail("other").await.unwrap(), None);
    // More than the 64 entries that a bucket of NATS keeps.
    for at in 3..100 {
        last = store.append("log", bytes(&format!("e{at}")), Some(last)).await.unwrap();
    }
    let entries = store.read("log", first.number, 1_000).await.unwrap();
    assert_eq!(entries.len(), 98);
    assert_eq!(&entries[0].value[..], b"e2");
    assert_eq!(store.read("log", 0, 2).await.unwrap().len(), 2);

    // A removal is conditional, and its revision is not reused.
    let made = store.create("gone", bytes("x")).await.unwrap();
    let written = second.update("gone", bytes("y"), made).await.unwrap();
    let removed = store.remove("gone", made).await;
    let mut records = 2;
    if matches!(removed, Err(WriteError::Refused { .. })) {
        // NATS keeps it.
        (last, records) = (written, 3);
    } else {
        is_conflict(removed);
        is_conflict(
            store.remove("gone", Rev { incarnation: made.incarnation + 1, ..written }).await,
        );
        let removed = second.remove("gone", written).await.unwrap();
        is_conflict(store.remove("gone", written).await);
        is_conflict(store.update("gone", bytes("z"), written).await);
        assert_eq!(store.get("gone").await.unwrap(), None);
        assert_eq!(store.list("gone", 0).await.unwrap().entries, []);
        assert_eq!(store.list("gone", 0).await.unwrap().at, removed);
        let again = store.create("gone", bytes("x")).await.unwrap();
        assert!(written.number < removed.number && removed.number < again.number);
        last = second.remove("gone", again).await.unwrap();
    }

    // Lists are by prefix and revision.
    let listed = store.list("a/", 0).await.unwrap();
    assert_eq!(listed.entries.iter().map(|entry| &*entry.key).collect::<Vec<_>>(), ["a/1"]);
    assert_eq!(listed.at.number, last.number);
    assert_eq!(store.list("a/", two.number).await.unwrap().entries, []);
    assert_eq!(store.list("", 0).await.unwrap().entries.len(), records);
    // A prefix that does not end with a slash is a whole key.
    assert_eq!(store.list("a/1", 0).await.unwrap().entries.len(), 1);
    assert_eq!(store.list("a", 0).await.unwrap().entries, []);

    // A watch reports what both write, in order, and nothing else.
    let mut watch = second.watch("a/", listed.at).await.unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
    assert!(quiet.is_err());
    store.create("b/2", bytes("x")).await.unwrap();
    let mut wanted = Vec::new();
    for at in 2..8 {
        let from = if at % 2 == 0 { store } else { second };
        wanted.push(from.create(&format!("a/{at}"), bytes("x")).await.unwrap());
    }
    let mut found = Vec::new();
    while found.len() < wanted.len() {
        let next = tokio::time::timeout(Duration::from_secs(20), watch.next()).await;
        found.extend(next.expect("a change is reported").unwrap().iter().map(|entry| entry.rev));
    }
    assert_eq!(found, wanted);
    let mut watch = store.watch("a/", other).await.unwrap();
    assert_eq!(watch.next().await, Err(WatchError::Gap));

    // Values that no store could hold are refused before anything is written.
    for key in ["", "a b", "a*", "a.b", "a//b", "/a", "a/", "ä", &"k".repeat(500)] {
        let outcome = store.create(key, bytes("x")).await;
        assert!(matches!(outcome, Err(WriteError::Refused { .. })), "{key}: {outcome:?}");
    }
    let large = Bytes::from(vec![0; MAX_VALUE + 1]);
    assert!(matches!(store.create("c", large).await, Err(WriteError::Refused { .. })));

    // Of writers at the same time, one wins.
    let start = store.create("race", bytes("0")).await.unwrap();
    let race = (0..20).map(|at| {
        let from = if at % 2 == 0 { store } else { second };
        async move { from.update("race", bytes(&at.to_string()), start).await.is_ok() }
    });
    let won = futures_util::future::join_all(race).await;
    assert_eq!(won.iter().filter(|won| **won).count(), 1);
}

#[tokio::test]
async fn the_store_of_simulations_obeys_the_laws() {
    let core = Core::new(ChaCha8Rng::seed_from_u64(0), Bug::None);
    let store = || MemoryStore { core: Arc::clone(&core), frozen: Frozen::default() };
    laws(&store(), &store()).await;
}

#[tokio::test]
async fn sqlite_obeys_the_laws() {
    let folder = tempfile::tempdir().unwrap();
    for durability in [Durability::Disk, Durability::Memory] {
        let path = folder.path().join(format!("{durability:?}"));
        // Two connections, as of two processes.
        let open = || SqliteStore::open(&path, durability).unwrap();
        laws(&open(), &open()).await;
    }
}

#[tokio::test]
async fn sqlite_keeps_revisions_and_refuses_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let open = || SqliteStore::open(&path, Durability::Disk);
    let rev = open().unwrap().create("a", bytes("x")).await.unwrap();
    let again = open().unwrap();
    assert_eq!(again.get("a").await.unwrap().unwrap().rev, rev);
    assert!(again.create("b", bytes("x")).await.unwrap().number > rev.number);
    assert_eq!(again.history().await.unwrap().records.len(), 2);
    drop(again);

    // After a start of the machine, revisions of writes that a crash may have lost are not given again.
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("UPDATE state SET number = number + 1 WHERE name = 'boot'", ()).unwrap();
    let jumped = open().unwrap().create("c", bytes("x")).await.unwrap();
    assert_eq!(jumped.number, rev.number + 1 + LEFT_OUT + 1);
    assert_eq!(open().unwrap().create("d", bytes("x")).await.unwrap().number, jumped.number + 1);

    // Made again, it is another store: old revisions mean nothing.
    let other = folder.path().join("other");
    let other = SqliteStore::open(&other, Durability::Disk).unwrap();
    other.create("a", bytes("x")).await.unwrap();
    is_conflict(other.update("a", bytes("y"), rev).await);

    // Programs that know no removals refuse it once there was one.
    let connection = rusqlite::Connection::open(&path).unwrap();
    let version = || -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    assert_eq!(version(), 1);
    open().unwrap().remove("a", rev).await.unwrap();
    assert_eq!(version(), 2);
    assert_eq!(open().unwrap().get("a").await.unwrap(), None);
    connection.pragma_update(None, "user_version", 9).unwrap();
    let refused = open().unwrap_err().to_string();
    assert!(refused.contains("version 9"), "{refused}");
    let junk = folder.path().join("junk");
    std::fs::write(&junk, b"long enough to look like one".repeat(100)).unwrap();
    let refused = SqliteStore::open(&junk, Durability::Disk).unwrap_err().to_string();
    assert!(refused.contains("not a database"), "{refused}");
}

/// A write that took effect although its answer was lost is recognized as one's own.
#[tokio::test(start_paused = true)]
async fn lost_answers_are_settled_by_nonces() {
    use super::memory::Faults;
    for seed in 0..200 {
        let core = Core::new(ChaCha8Rng::seed_from_u64(seed), Bug::None);
        core.set_faults(Faults { lost_answers: 400, ..Faults::NONE });
        let store = MemoryStore { core: Arc::clone(&core), frozen: Frozen::default() };
        let made = create(&store, "a", 1_u32).await;
        assert!(!matches!(made, Err(WriteError::Conflict { .. })), "{made:?}");
        core.set_faults(Faults::NONE);
        let Ok(made) = made else { continue };
        core.set_faults(Faults { lost_answers: 400, ..Faults::NONE });
        let written = update(&store, "a", 2_u32, made.rev).await;
        assert!(!matches!(written, Err(WriteError::Conflict { .. })), "{written:?}");
        core.set_faults(Faults::NONE);
        if let Ok(written) = written {
            assert_eq!(read::<u32>(&store, "a").await.unwrap().unwrap(), written);
        }
        is_conflict(create(&store, "a", 3_u32).await);
    }
}

/// A write that took effect late is on disk before it counts as made.
#[tokio::test(start_paused = true)]
async fn late_writes_are_on_disk_when_they_are_recognized() {
    use super::memory::{Faults, Loss};
    let mut late = 0;
    for seed in 0..100 {
        let core = Core::new(ChaCha8Rng::seed_from_u64(seed), Bug::None);
        core.set_faults(Faults { late_writes: 500, ..Faults::NONE });
        let store = MemoryStore { core: Arc::clone(&core), frozen: Frozen::default() };
        let start = tokio::time::Instant::now();
        let made = create(&store, "a", 1_u32).await;
        core.set_faults(Faults::NONE);
        let Ok(made) = made else { continue };
        late += usize::from(start.elapsed() > Duration::from_millis(400));
        core.crash(Loss::All);
        assert_eq!(read::<u32>(&store, "a").await.unwrap(), Some(made));
    }
    assert!(late > 5, "{late}");
}

/// Everything that clients have read survives a crash.
#[tokio::test(start_paused = true)]
async fn reads_of_clients_wait_for_the_disk() {
    use super::memory::Loss;
    for way in 0..5 {
        let core = Core::new(ChaCha8Rng::seed_from_u64(way), Bug::None);
        let store = MemoryStore { core: Arc::clone(&core), frozen: Frozen::default() };
        let settled = Settled(Arc::new(store.clone()));
        let record = store.create_soon("a/1", bytes("x")).await.unwrap();
        let entry = store.append_soon("log", bytes("e"), None).await.unwrap();
        let kept = match way {
            0 => settled.get("a/1").await.unwrap().unwrap().rev,
            1 => settled.list("a/", 0).await.unwrap().entries[0].rev,
            2 => settled.tail("log").await.unwrap().unwrap().rev,
            3 => settled.read("log", 0, 9).await.unwrap()[0].rev,
            _ => Rev { number: 0, ..record },
        };
        core.crash(Loss::All);
        let left = store.get("a/1").await.unwrap().map(|found| found.rev);
        assert_eq!(left, Some(record).filter(|_| kept.number >= record.number), "{way}");
        let left = store.tail("log").await.unwrap().map(|found| found.rev);
        assert_eq!(left, Some(entry).filter(|_| kept == entry), "{way}");
    }
}
