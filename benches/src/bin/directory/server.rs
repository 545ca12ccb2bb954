//! A server with its database.

use crate::{Error, Options, each};
use benches::{median, medians, time, times};
use ed25519_dalek::SigningKey;
use hekaton_directory::{Index, Parameters, Profile};
use hekaton_directory_server::{
    Fjall, Mode, Opener, Options as ServerOptions, Rows, Server, Store, StoreError, Table, Update,
    Visit,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time that a sync takes in addition, where the disk is meant to be slow.
const SLOW: Duration = Duration::from_millis(20);

pub(crate) fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

pub(crate) fn parameters() -> Parameters {
    let (profile, server) = (Profile::Compress, key().verifying_key());
    Parameters { profile, server, proofs: [9; 32] }
}

pub(crate) fn server_options(options: &Options, mode: Mode) -> ServerOptions {
    let (max_updates, max_pending) = (options.updates, 1 << 22);
    let (interval, max_pending_bytes) = (None, usize::MAX);
    let rest = ServerOptions { max_pending_of_label: usize::MAX, ..ServerOptions::default() };
    ServerOptions { max_updates, max_pending, max_pending_bytes, interval, mode, ..rest }
}

/// A database with a slower disk.
struct Slow(Fjall);

impl Store for Slow {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        self.0.scan(table, from, to, visit)
    }

    fn last(&self, table: Table) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.last(table)
    }

    fn commit(&self, rows: Rows) -> Result<(), StoreError> {
        std::thread::sleep(SLOW);
        self.0.commit(rows)
    }
}

pub(crate) fn opener(folder: &Path, is_slow: bool) -> Box<Opener> {
    let database = folder.join("database");
    Box::new(move |opened| {
        let store = Fjall::open(&database, 256 << 20, opened)?;
        Ok(if is_slow { Box::new(Slow(store)) } else { Box::new(store) as Box<dyn Store> })
    })
}

fn label(number: usize) -> [u8; 8] {
    number.to_be_bytes()
}

pub(crate) fn send(server: &Server, updates: Vec<Update>) -> Result<(), Error> {
    for receipt in server.submit_all(updates) {
        receipt?;
    }
    Ok(())
}

/// A server with keys.
pub(crate) fn filled(options: &Options, folder: &Path, keys: usize) -> Result<Server, Error> {
    Server::create(folder, &parameters(), &key(), 4)?;
    let large = ServerOptions { max_updates: 1 << 14, ..server_options(options, Mode::Pipelined) };
    let server = Server::open(folder, &parameters(), &key(), large)?;
    for first in (0..keys).step_by(1 << 14) {
        let some = first..keys.min(first + (1 << 14));
        send(&server, some.map(|number| Update::new(label(number), vec![1; 32])).collect())?;
    }
    server.flush()?;
    server.drain()?;
    drop(server);
    Ok(Server::open(folder, &parameters(), &key(), server_options(options, Mode::Serial))?)
}

/// The updates of an epoch: half of new labels.
pub(crate) fn batch(options: &Options, epoch: usize) -> Vec<Update> {
    let (keys, updates) = (options.keys, options.updates);
    let number = |n: usize| match n % 2 {
        0 => keys + epoch * updates + n,
        _ => (epoch * 7919 + n * (keys / updates).max(1)) % keys.max(1),
    };
    (0..updates).map(|n| Update::new(label(number(n)), vec![2; 32])).collect()
}

/// Measures commits, answers at the same time, and opening again.
pub(crate) fn measure(options: &Options) -> Result<(), Error> {
    let folder = options.folder()?;
    let server = filled(options, folder.path(), options.keys)?;
    let mut epoch = 0;
    let mut commits = Vec::new();
    let mut rivals = [Vec::new(), Vec::new()];
    for _ in 0..options.run.repetitions.max(3) {
        let updates = batch(options, epoch);
        epoch += 1;
        let (spent, done) = times(|| {
            send(&server, updates)?;
            Ok::<_, Error>(server.flush()?)
        });
        done?;
        commits.push(spent);
        if options.has("commit") {
            for (name, figures) in ["akd", "nomt"].into_iter().zip(&mut rivals) {
                figures.extend(options.rival(name)?);
            }
        }
    }
    if options.has("commit") {
        let [cpu, wall] = each(medians(&commits), options.updates);
        let bench = "an update, accepted, committed and signed";
        let rate = 1e6 / (wall * options.updates as f64);
        options.rate("epochs, accepted and signed", rate, ("", f64::NAN), "a second, this disk");
        options.line(bench, cpu, ("", f64::NAN), "us of CPU time");
        for (name, mut figures) in ["akd 0.13, in memory", "nomt 1.0.5"].into_iter().zip(rivals) {
            figures.sort_by(|a, b| a[1].total_cmp(&b[1]));
            if let Some([theirs_cpu, theirs]) = figures.get(figures.len() / 2) {
                options.line(bench, wall, (name, *theirs), "us of wall time, this disk");
                options.line(bench, cpu, (name, *theirs_cpu), "us of CPU time");
            }
        }
    }
    if options.has("look-up") {
        look_ups(options, &server, &mut epoch)?;
    }
    if options.has("open") {
        open(options, folder.path(), &server)?;
    }
    Ok(())
}

/// Answers while epochs are closed all the time.
fn look_ups(options: &Options, server: &Server, epoch: &mut usize) -> Result<(), Error> {
    let stop = AtomicBool::new(false);
    let (mut waits, mut bytes) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut at = 1usize;
            let (mut waits, mut bytes) = (Vec::new(), 0);
            while !stop.load(Ordering::Relaxed) || waits.len() < 1000 {
                at = at.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let label = label((at >> 33) % options.keys.max(1));
                let (spent, found) = time(|| Ok::<_, Error>(server.view()?.look_up(&label)?));
                let answer = found?;
                bytes =
                    bytes.max(answer.path.encode().len() + server.view()?.signed().encode().len());
                waits.push(spent);
            }
            Ok::<_, Error>((waits, bytes))
        });
        for _ in 0..16 {
            send(server, batch(options, *epoch))?;
            *epoch += 1;
            server.flush()?;
        }
        stop.store(true, Ordering::Relaxed);
        let found = reader.join().map_err(|_| "the reader panicked")?;
        (waits, bytes) = found?;
        Ok::<_, Error>(())
    })?;
    waits.sort();
    let ms = |share: f64| waits[(waits.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    let goal = "the goal";
    options.line("look-up while committing, median", ms(0.5), (goal, 0.1), "ms");
    options.line("look-up while committing, 99 of 100", ms(0.99), (goal, 2.0), "ms");
    options.line("record and path, without value", bytes as f64, (goal, 1100.0), "bytes at most");
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(to)?;
    for found in std::fs::read_dir(from)? {
        let entry = found?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// Opening what a killed process leaves: a copy of the files while it serves, with updates that wait.
fn open(options: &Options, folder: &Path, server: &Server) -> Result<(), Error> {
    let waiting = (0..options.updates / 2).map(|n| Update::new(label(n), vec![3; 32]));
    send(server, waiting.collect())?;
    let mut all = Vec::new();
    for _ in 0..options.run.repetitions {
        let image = options.folder()?;
        copy(folder, image.path())?;
        let (spent, result) = time(|| {
            let mode = server_options(options, Mode::Serial);
            let server = Server::open(image.path(), &parameters(), &key(), mode)?;
            // It answers.
            server.view()?.look_up(&label(1))?;
            Ok::<_, Error>(server)
        });
        let opened = result?;
        let checked = opened.view()?.signed().verify(&parameters())?;
        let answer = opened.view()?.look_up(&label(2))?;
        checked.look_up(&Index::of(&label(2))?, &answer.path)?;
        all.push(spent);
    }
    let ours = median(all).as_secs_f64();
    options.line("open after a kill", ours, ("the goal", 1.0), "seconds of wall time, this disk");
    Ok(())
}
