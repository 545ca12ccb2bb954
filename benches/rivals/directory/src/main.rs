//! Other authenticated maps: `directory-rivals jmt|akd|nomt KEYS UPDATES FOLDER` fills a map, and prints one line of JSON: the
//! microseconds that one more batch takes for each of its updates, of processor time and of wall time. Half of the
//! updates insert.

use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::{Duration, Instant};

fn hash(number: usize) -> [u8; 32] {
    Sha256::digest(number.to_be_bytes()).into()
}

/// The keys of the batch.
fn batch(keys: usize, updates: usize) -> Vec<usize> {
    let number = |n: usize| match n % 2 {
        0 => keys + n,
        _ => n * (keys / updates).max(1),
    };
    (0..updates).map(number).collect()
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn report(updates: usize, wall: Duration, cpu: Duration) {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / updates as f64;
    println!(r#"{{"cpu_us":{},"wall_us":{}}}"#, each(cpu), each(wall));
}

/// The Jellyfish Merkle tree of Diem, in memory, without writing its nodes.
fn jmt(keys: usize, updates: usize) -> anyhow::Result<()> {
    use jmt::{KeyHash, Sha256Jmt, mock::MockTreeStore};
    let store = MockTreeStore::default();
    let value = |n: usize| (KeyHash(hash(n)), Some(vec![1; 32]));
    let mut version = 0;
    for first in (0..keys).step_by(1 << 14) {
        let some = (first..keys.min(first + (1 << 14))).map(value).collect::<Vec<_>>();
        let (_, nodes) = Sha256Jmt::new(&store).put_value_set(some, version)?;
        store.write_tree_update_batch(nodes)?;
        version += 1;
    }
    let some = batch(keys, updates).into_iter().map(value).collect::<Vec<_>>();
    let (wall, before) = (Instant::now(), cpu());
    let _ = Sha256Jmt::new(&store).put_value_set(some, version)?;
    report(updates, wall.elapsed(), cpu() - before);
    Ok(())
}

/// Meta's auditable key directory, in memory.
async fn akd(keys: usize, updates: usize) -> anyhow::Result<()> {
    use akd::append_only_zks::AzksParallelismConfig;
    use akd::ecvrf::HardCodedAkdVRF;
    use akd::storage::{StorageManager, memory::AsyncInMemoryDatabase};
    use akd::{AkdLabel, AkdValue, directory::Directory};
    // Its memory and time do not allow as many keys as the others take.
    let keys = keys.min(1 << 14);
    let storage = StorageManager::new_no_cache(AsyncInMemoryDatabase::new());
    let parallel = AzksParallelismConfig::default();
    let directory = Directory::<akd::WhatsAppV1Configuration, _, _>::new(storage, HardCodedAkdVRF {}, parallel);
    let directory = directory.await?;
    let pair = |n: usize, value: &str| {
        (AkdLabel(n.to_be_bytes().to_vec()), AkdValue::from(value))
    };
    directory.publish((0..keys).map(|n| pair(n, "1")).collect()).await?;
    let some = batch(keys, updates).into_iter().map(|n| pair(n, "2")).collect();
    let (wall, before) = (Instant::now(), cpu());
    directory.publish(some).await?;
    report(updates, wall.elapsed(), cpu() - before);
    Ok(())
}

/// The nearly optimal Merkle trie database, on the disk.
fn nomt(keys: usize, updates: usize, folder: &Path) -> anyhow::Result<()> {
    use nomt::{KeyReadWrite, Nomt, Options, SessionParams, hasher::Sha2Hasher};
    let mut options = Options::new();
    options.path(folder.join("nomt"));
    options.hashtable_buckets(1 << 20);
    let map = Nomt::<Sha2Hasher>::open(options)?;
    let commit = |numbers: Vec<usize>| -> anyhow::Result<()> {
        let session = map.begin_session(SessionParams::default());
        let write = |n: usize| (hash(n), KeyReadWrite::Write(Some(vec![1; 32])));
        let mut writes: Vec<_> = numbers.into_iter().map(write).collect();
        writes.sort_by_key(|(key, _)| *key);
        writes.dedup_by_key(|(key, _)| *key);
        for (key, _) in &writes {
            session.warm_up(*key);
        }
        session.finish(writes)?.commit(&map)
    };
    for first in (0..keys).step_by(1 << 16) {
        commit((first..keys.min(first + (1 << 16))).collect())?;
    }
    let some = batch(keys, updates);
    let (wall, before) = (Instant::now(), cpu());
    commit(some)?;
    report(updates, wall.elapsed(), cpu() - before);
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [rival, keys, updates, folder] = &args[..] else {
        anyhow::bail!("directory-rivals jmt|akd|nomt KEYS UPDATES FOLDER");
    };
    let (keys, updates) = (keys.parse()?, updates.parse()?);
    match rival.as_str() {
        "jmt" => jmt(keys, updates),
        "akd" => tokio::runtime::Runtime::new()?.block_on(akd(keys, updates)),
        "nomt" => nomt(keys, updates, Path::new(folder)),
        other => anyhow::bail!("no rival {other}: jmt, akd or nomt"),
    }
}
