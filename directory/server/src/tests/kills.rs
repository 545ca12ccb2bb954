//! F1, F2: the process is killed, at each place where that may matter, and anywhere.

use super::{Random, client, create, key, options, parameters};
use crate::{Error, Mode, Options, Outside, Server, SubmitError, Update};
use hekaton_directory::{EpochProof, Profile};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The fail points at which the process is killed.
const PLACES: [&str; 16] = [
    "before-intake",
    "after-intake",
    "before-compute",
    "after-compute",
    "before-write",
    "after-write",
    "before-head",
    "head-written",
    "head-renamed",
    "between-heads",
    "after-head",
    "settle",
    "remove-above",
    "prune",
    "before-attach",
    "after-attach",
];

const FOLDER: &str = "HEKATON_DIRECTORY_FOLDER";
const MODE: &str = "HEKATON_DIRECTORY_MODE";
const PLACE: &str = "HEKATON_DIRECTORY_PLACE";
const AFTER: &str = "HEKATON_DIRECTORY_AFTER";
const FIRST: &str = "HEKATON_DIRECTORY_FIRST";
const UNTIL_FULL: &str = "HEKATON_DIRECTORY_UNTIL_FULL";

/// Opens a directory with a head elsewhere, too.
fn open_both(folder: &Path, options: Options) -> Server {
    let outside = Outside { head: Some(folder.join("elsewhere")), start: true, seen: None };
    let (parameters, opener) = (parameters(Profile::Compress), super::database(folder));
    Server::open_outside(folder, &parameters, &key(), options, opener, &outside).unwrap()
}

/// The epoch and the record that the other head names.
fn named_elsewhere(folder: &Path) -> Option<(u32, String)> {
    let text = std::fs::read_to_string(folder.join("elsewhere")).ok()?;
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    };
    Some((field("epoch ").parse().unwrap(), field("record ")))
}

fn die() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .unwrap();
}

/// The process that is killed: sends updates, and prints the number of each one that is accepted, and each record.
#[test]
#[ignore = "other tests start it"]
#[allow(clippy::print_stdout, reason = "other tests read it")]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    if let Ok(place) = std::env::var(PLACE) {
        let mut left = number(AFTER);
        let counted = std::sync::Mutex::new(move || {
            if left == 0 {
                die();
            }
            left -= 1;
        });
        fail::cfg_callback(place, move || (counted.lock().unwrap())()).unwrap();
    }
    let mode = Mode::ALL[number(MODE) as usize];
    let server = open_both(Path::new(&folder), options(mode));
    let is_limited = std::env::var(UNTIL_FULL).is_ok();
    for number in (number(FIRST)..).take(2000) {
        let mut update = Update::new(format!("label {}", number % 5), format!("{number}"));
        update.idempotency_key = Some(number.to_be_bytes().to_vec());
        match server.submit(update) {
            Ok(_) => println!("accepted {number}"),
            Err(SubmitError::Recovering) if !is_limited => continue,
            Err(error) => give_up(is_limited, &error),
        }
        // Some are closed in their time, so that several are on their way. To wait for one on a full disk would take forever.
        if let Err(error) = progress(&server, number % 7 == 3 && !is_limited) {
            give_up(is_limited, &error);
        }
    }
}

/// Says the last record, and closes the epoch and attaches what goes for a proof here.
#[allow(clippy::print_stdout, reason = "other tests read it")]
fn progress(server: &Server, closes: bool) -> Result<(), Error> {
    let record = *server.view()?.record();
    let digest = u64::from_be_bytes(record.digest()[..8].try_into().unwrap());
    println!("record {} {digest}", record.epoch);
    if closes {
        server.flush()?;
        server.prune(server.view()?.record().epoch.saturating_sub(2))?;
        if let Some((to, witness)) = server.unproven(usize::MAX)? {
            let (from, proof) = (witness.epoch, witness.encode());
            server.attach(&EpochProof { from, to, subcircuits: 1, proof }, |_, _| Ok(()))?;
            println!("proven {to}");
        }
    }
    Ok(())
}

/// An error is what a process waits for whose files may not grow.
fn give_up(is_limited: bool, error: &dyn std::error::Error) {
    assert!(is_limited, "{error}");
    die();
}

fn command(folder: &Path, mode: usize, first: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "tests::kills::child", "--ignored", "--nocapture", "-q"])
        .env(FOLDER, folder)
        .env(MODE, mode.to_string())
        .env(FIRST, first.to_string());
    command
}

fn start(folder: &Path, mode: usize, first: u64, place: Option<(&str, u64)>) -> Child {
    let mut command = command(folder, mode, first);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some((place, after)) = place {
        command.env(PLACE, place).env(AFTER, after.to_string());
    }
    command.spawn().unwrap()
}

/// The epochs that killed processes have reported.
#[derive(Default)]
struct Seen {
    records: Vec<(u32, u64)>,
    proven: u32,
}

impl Seen {
    fn extend(&mut self, more: Self) {
        self.records.extend(more.records);
        self.proven = self.proven.max(more.proven);
    }
}

/// Returns what a killed process has reported: the number of updates that were accepted, and the epochs.
fn said(child: &mut Child, first: u64) -> (u64, Seen) {
    let (mut next, mut seen) = (first, Seen::default());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["accepted", number] => next = number.parse::<u64>().unwrap() + 1,
            ["record", epoch, digest] => {
                seen.records.push((epoch.parse().unwrap(), digest.parse().unwrap()));
            }
            ["proven", epoch] => seen.proven = epoch.parse().unwrap(),
            _ => {}
        }
    }
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "it was not killed: {status}");
    (next, seen)
}

/// Opens the directory, and checks that all that was accepted is there once and all records are what they were. Returns the
/// number of updates; the one that was being sent may be among them.
fn check(folder: &Path, accepted: u64, seen: &Seen) -> u64 {
    // There is no other record of that epoch, whether this one was seen or not.
    let named = named_elsewhere(folder);
    let server = open_both(folder, Options { interval: None, ..options(Mode::Serial) });
    if let Some((epoch, digest)) = named {
        assert_eq!(hex::encode(server.record(epoch).unwrap().unverified().digest()), digest);
    }
    assert!(server.proven().unwrap() >= seen.proven);
    for (epoch, digest) in &seen.records {
        let record = *server.record(*epoch).unwrap().unverified();
        assert_eq!(record.digest()[..8], digest.to_be_bytes());
    }
    server.flush().unwrap();
    let view = server.view().unwrap();
    let found = view.record().log_size;
    assert!(
        found == accepted || found == accepted + 1,
        "{found} updates, {accepted} were accepted"
    );
    for label in 0..5 {
        let known = client(server.parameters(), &view, format!("label {label}").as_bytes());
        let expected: Vec<String> =
            (0..found).filter(|n| n % 5 == label).map(|n| n.to_string()).collect();
        assert_eq!(known.map(|(_, values)| values).unwrap_or_default(), expected, "label {label}");
    }
    server.check().unwrap();
    server.close().unwrap();
    found
}

#[test]
fn killed_at_each_place() {
    for (at, place) in PLACES.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), Profile::Compress);
        let (mut accepted, mut seen) = (0, Seen::default());
        for mode in 0..3 {
            // Recovery is killed after it had something to do.
            let is_recovery = matches!(place, "settle" | "remove-above");
            let after = (at as u64 * 5 + mode as u64) % 9;
            if is_recovery {
                let before = if place == "settle" { "after-head" } else { "before-head" };
                let mut child = start(folder.path(), mode, accepted, Some((before, 2)));
                let (now, more) = said(&mut child, accepted);
                accepted = now;
                seen.extend(more);
            }
            let after = if is_recovery { 0 } else { after };
            let mut child = start(folder.path(), mode, accepted, Some((place, after)));
            let (now, more) = said(&mut child, accepted);
            accepted = now;
            seen.extend(more);
            accepted = check(folder.path(), accepted, &seen);
        }
        assert!(accepted > 0, "{place}");
    }
}

/// A short form of two hundred kills; `HEKATON_DIRECTORY_KILLS` sets the number.
#[test]
fn killed_anywhere() {
    let kills = std::env::var("HEKATON_DIRECTORY_KILLS").map_or(12, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let mut random = Random(u64::from(std::process::id()));
    let (mut accepted, mut seen) = (0, Seen::default());
    for kill in 0..kills {
        let mut child = start(folder.path(), kill % 3, accepted, None);
        std::thread::sleep(Duration::from_millis(20 + random.below(150)));
        child.kill().unwrap();
        let (now, more) = said(&mut child, accepted);
        seen.extend(more);
        accepted = check(folder.path(), now, &seen);
    }
    assert!(accepted > 0);
}

/// F8: the system writes no more, as on a full disk. Nothing that was accepted before is lost, and once there is room
/// again, the directory resumes.
#[test]
fn a_full_disk() {
    // No file may be longer than that, in blocks of 512 bytes; a write past it is an error, not a signal.
    let shell = "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\"";
    for mode in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), Profile::Compress);
        let plain = command(folder.path(), mode, 0);
        let mut limited = Command::new("sh");
        limited.args(["-c", shell]).arg(plain.get_program()).args(plain.get_args());
        for (name, value) in plain.get_envs() {
            limited.env(name, value.unwrap());
        }
        limited.env(UNTIL_FULL, "1").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = limited.spawn().unwrap();
        let (accepted, seen) = said(&mut child, 0);
        assert!(accepted > 0 && seen.records.last().is_some_and(|(epoch, _)| *epoch > 0));
        check(folder.path(), accepted, &seen);
    }
}

/// The opener of a child is another process's: the lock holds between processes, too.
#[test]
fn a_killed_server_leaves_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let mut child = start(folder.path(), 0, 0, None);
    let parameters = parameters(Profile::Compress);
    std::thread::sleep(Duration::from_millis(300));
    let error =
        super::try_open(folder.path(), &parameters, &key(), options(Mode::Serial)).unwrap_err();
    assert!(error.to_string().contains("another process serves"), "{error}");
    child.kill().unwrap();
    let (accepted, seen) = said(&mut child, 0);
    assert!(accepted > 0);
    check(folder.path(), accepted, &seen);
}
