//! F10: what comes back from a backup. Each kind of restore is refused, or shown to be one that only somebody outside of the folder can
//! find out; and in no way does one directory sign two records of an epoch.

use super::{client, create, database, key, open, options, parameters, update};
use crate::folder::Directory;
use crate::reading::Reading;
use crate::{Error, Mode, Outside, Server, Update, leave_head};
use hekaton_directory::{Digest, EpochProof, Profile, SignedRecord};
use std::path::{Path, PathBuf};

/// A directory with its head on another disk.
struct Place {
    dir: tempfile::TempDir,
}

pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn replace(from: &Path, to: &Path) {
    if to.is_dir() {
        std::fs::remove_dir_all(to).unwrap();
    }
    match from.is_dir() {
        true => copy(from, to),
        false => drop(std::fs::copy(from, to).unwrap()),
    }
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        create(&place.folder(), Profile::Compress);
        std::fs::create_dir(place.path("other-disk")).unwrap();
        let outside = Outside { start: true, ..place.outside() };
        place.open(&outside).unwrap().close().unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn folder(&self) -> PathBuf {
        self.path("folder")
    }

    fn head(&self) -> PathBuf {
        self.path("other-disk/head")
    }

    fn outside(&self) -> Outside {
        Outside { head: Some(self.head()), ..Outside::default() }
    }

    fn open(&self, outside: &Outside) -> Result<Server, Error> {
        self.open_at(&self.folder(), outside)
    }

    fn open_at(&self, folder: &Path, outside: &Outside) -> Result<Server, Error> {
        let (parameters, options) = (parameters(Profile::Compress), options(Mode::Serial));
        Server::open_outside(folder, &parameters, &key(), options, database(folder), outside)
    }

    /// Signs an epoch, and returns its record.
    fn sign(&self, value: &str) -> SignedRecord {
        let server = self.open(&self.outside()).unwrap();
        update(&server, &[("label", value)]);
        let signed = *server.view().unwrap().signed();
        server.drain().unwrap();
        signed
    }

    /// Signs an epoch and saves what a process leaves that is killed then: the database does not know the last head.
    fn sign_and_save_killed(&self, value: &str, name: &str) -> SignedRecord {
        let server = self.open(&self.outside()).unwrap();
        update(&server, &[("label", value)]);
        let signed = *server.view().unwrap().signed();
        self.save(name);
        server.close().unwrap();
        drop(server);
        replace(&self.path(name), &self.folder());
        assert!(self.folder().join("in-use").exists());
        signed
    }

    fn save(&self, name: &str) {
        copy(&self.folder(), &self.path(name));
        std::fs::copy(self.head(), self.path(&format!("{name}.head"))).unwrap();
    }
}

fn digest(signed: &SignedRecord) -> Digest {
    signed.unverified().digest()
}

/// The whole folder is older, or the database alone, and the same updates are sent again, which would be in other records.
#[test]
fn an_older_folder_is_refused() {
    for part in ["", "database"] {
        let place = Place::new();
        place.sign("1");
        place.save("backup");
        let signed = [place.sign("2"), place.sign("3")];
        place.save("newest");
        replace(&place.path("backup").join(part), &place.folder().join(part));
        for _ in 0..2 {
            let error = place.open(&place.outside()).unwrap_err();
            let Error::Behind { epoch: 3, signed: last, found: None } = error else {
                panic!("{part}: {error}")
            };
            assert_eq!(last, digest(&signed[1]));
            assert!(error.to_string().contains("two records of one epoch"), "{error}");
        }
        // Nothing was written: the newest copy can be used.
        replace(&place.path("newest"), &place.folder());
        let server = place.open(&place.outside()).unwrap();
        assert_eq!(digest(&server.record(2).unwrap()), digest(&signed[0]));
        update(&server, &[("label", "4")]);
        server.check().unwrap();
    }
}

/// An older folder is served and signs again if nothing is known from outside: what was signed is only in the hands of
/// clients. The record that one of them has reveals it.
#[test]
fn a_record_from_a_client_finds_an_older_folder() {
    let place = Place::new();
    let first = place.sign("1");
    place.save("backup");
    let second = place.sign("2");
    replace(&place.path("backup"), &place.folder());
    let expecting = |seen| Outside { seen: Some(seen), ..Outside::default() };
    let error = place.open(&expecting(second)).unwrap_err();
    assert!(matches!(error, Error::Behind { epoch: 2, found: None, .. }), "{error}");
    // A record that the database has is not a reason to refuse.
    place.open(&expecting(first)).unwrap().close().unwrap();
    let server = place.open(&Outside::default()).unwrap();
    update(&server, &[("label", "2")]);
    let again = *server.view().unwrap().signed();
    assert_eq!((again.unverified().epoch, again.unverified().log_size), (2, 2));
    assert_ne!(digest(&again), digest(&second), "this is what clients and heads are for");
    server.close().unwrap();
    drop(server);
    // From then on, both find it out.
    let error = place.open(&expecting(second)).unwrap_err();
    assert!(matches!(error, Error::Behind { epoch: 2, found: Some(_), .. }), "{error}");
    let error = place.open(&place.outside()).unwrap_err();
    assert!(matches!(error, Error::Behind { epoch: 2, found: Some(_), .. }), "{error}");
    // A record of another server cannot be compared.
    let other = ed25519_dalek::SigningKey::from_bytes(&[8; 32]);
    let foreign = again.unverified().sign(&other);
    assert!(matches!(place.open(&expecting(foreign)).unwrap_err(), Error::Seen(_)));
}

/// A head alone is older, the one in the folder or the one on the other disk: what was signed above it would be signed again.
#[test]
fn an_older_head_is_refused() {
    let place = Place::new();
    place.sign("1");
    place.save("backup");
    let signed = place.sign("2");
    place.save("newest");
    replace(&place.path("backup/head"), &place.folder().join("head"));
    // Without the other one, the database knows better.
    let error = place.open(&Outside::default()).unwrap_err();
    assert!(matches!(&error, Error::OldHead { found, .. } if found.epoch == 2), "{error}");
    replace(&place.path("newest"), &place.folder());
    replace(&place.path("backup.head"), &place.head());
    let error = place.open(&place.outside()).unwrap_err();
    let expected = matches!(&error, Error::OldHead { path, head, found }
        if *path == place.head() && (head.epoch, found.epoch) == (1, 2));
    assert!(expected, "{error}");
    replace(&place.path("newest.head"), &place.head());
    let server = place.open(&place.outside()).unwrap();
    assert_eq!(digest(&server.record(2).unwrap()), digest(&signed));
}

/// Served once without the head on the other disk, that one is older, too, and has to be started again by somebody who is sure.
#[test]
fn a_head_that_was_left_out_is_refused() {
    let place = Place::new();
    place.sign("1");
    let server = place.open(&Outside::default()).unwrap();
    update(&server, &[("label", "2")]);
    server.close().unwrap();
    drop(server);
    assert!(matches!(place.open(&place.outside()), Err(Error::OldHead { .. })));
    std::fs::remove_file(place.head()).unwrap();
    let start = Outside { start: true, ..place.outside() };
    place.open(&start).unwrap().close().unwrap();
    place.sign("3");
}

#[test]
fn a_missing_or_damaged_head_is_refused() {
    let place = Place::new();
    place.sign("1");
    let bytes = std::fs::read(place.head()).unwrap();
    std::fs::remove_file(place.head()).unwrap();
    let error = place.open(&place.outside()).unwrap_err();
    assert!(matches!(error, Error::NoOutsideHead(_)), "{error}");
    assert!(!place.head().exists(), "nothing is put in its place");
    for wrong in [&bytes[..bytes.len() - 1], b"", b"hekaton directory head 1\n"] {
        std::fs::write(place.head(), wrong).unwrap();
        let error = place.open(&place.outside()).unwrap_err();
        assert!(matches!(error, Error::Head { .. }), "{error}");
    }
    // That of another directory is no better.
    let other = Place::new();
    other.sign("1");
    replace(&other.head(), &place.head());
    let error = place.open(&place.outside()).unwrap_err();
    assert!(matches!(error, Error::OldHead { .. } | Error::Behind { .. }), "{error}");
    std::fs::write(place.head(), &bytes).unwrap();
    place.sign("2");
}

/// A copy of the folder is served in parallel: it gets neither the lock nor, where that is not seen, a second signature.
#[test]
fn a_copy_signs_nothing_in_parallel() {
    let place = Place::new();
    place.sign("1");
    place.save("copy");
    let server = place.open(&place.outside()).unwrap();
    let error = place.open_at(&place.path("copy"), &place.outside()).unwrap_err();
    assert!(matches!(error, Error::HeadLocked(_)), "{error}");
    // Locks do not reach everywhere. A file that was removed and made again is another one.
    std::fs::remove_file(place.path("other-disk/head.lock")).unwrap();
    let copy = place.open_at(&place.path("copy"), &place.outside()).unwrap();
    update(&server, &[("label", "2")]);
    let signed = *server.view().unwrap().signed();
    let receipt = copy.submit(Update::new("label", "another 2")).unwrap();
    let error = copy.flush().unwrap_err();
    assert!(error.to_string().contains("another process serves a copy"), "{error}");
    assert!(copy.view().is_err() && copy.outcome(receipt.number).is_err());
    // The first one continues, and the copy is an older folder from then on.
    update(&server, &[("label", "3")]);
    server.close().unwrap();
    drop((server, copy));
    let error = place.open_at(&place.path("copy"), &place.outside()).unwrap_err();
    assert!(matches!(error, Error::Behind { epoch: 3, .. }), "{error}");
    let server = place.open(&place.outside()).unwrap();
    assert_eq!(digest(&server.record(2).unwrap()), digest(&signed));
}

/// All mixtures of states of the database, of the head in the folder, and of the head on the other disk: opening is refused, or every record
/// that the other disk knows of is there.
#[test]
fn no_mixture_of_states_signs_a_second_record() {
    const STATES: u32 = 4;
    let place = Place::new();
    place.save("0");
    let mut signed = Vec::new();
    for epoch in 1..STATES {
        signed.push(place.sign(&epoch.to_string()));
        place.save(&epoch.to_string());
    }
    let mut opened = 0;
    for mixture in 0..STATES.pow(3) {
        let [data, inner, outer] = [1, STATES, STATES * STATES].map(|by| mixture / by % STATES);
        replace(&place.path(&data.to_string()), &place.folder());
        replace(&place.path(&format!("{inner}/head")), &place.folder().join("head"));
        replace(&place.path(&format!("{outer}.head")), &place.head());
        match place.open(&place.outside()) {
            Ok(server) => {
                opened += 1;
                // A database and a head that are equally old can only be detected from outside.
                assert!(outer == data && inner <= data, "{data} {inner} {outer}");
                for signed in &signed[..outer as usize] {
                    let epoch = signed.unverified().epoch;
                    assert_eq!(digest(&server.record(epoch).unwrap()), digest(signed));
                }
            }
            Err(error) => {
                let is_named = matches!(error, Error::Behind { .. } | Error::OldHead { .. });
                assert!(is_named, "{data} {inner} {outer}: {error}");
            }
        }
    }
    // One of each: the head in the folder may be behind, as after a crash.
    assert_eq!(opened, STATES * (STATES + 1) / 2);
}

/// The record that a client saw is above a head that was put back after a crash, of which the database does not know: the record stays the
/// only one of its epoch.
#[test]
fn a_seen_record_above_the_head_is_kept() {
    let place = Place::new();
    place.sign("1");
    place.save("backup");
    let signed = place.sign_and_save_killed("2", "killed");
    let seen = Outside { seen: Some(signed), ..Outside::default() };
    let both = Outside { head: Some(place.head()), ..seen.clone() };
    for outside in [&seen, &both] {
        replace(&place.path("killed"), &place.folder());
        replace(&place.path("backup/head"), &place.folder().join("head"));
        replace(&place.path("backup.head"), &place.head());
        let server = place.open(outside).unwrap();
        assert_eq!(digest(&server.record(2).unwrap()), digest(&signed));
        update(&server, &[("label", "3")]);
        assert_eq!(server.view().unwrap().record().epoch, 3);
        assert_eq!(digest(&server.record(2).unwrap()), digest(&signed));
        server.check().unwrap();
        server.close().unwrap();
        drop(server);
        // It is kept for good, and not only while it is expected.
        let outside = Outside { seen: None, ..outside.clone() };
        let server = place.open(&outside).unwrap();
        assert_eq!(digest(&server.record(2).unwrap()), digest(&signed));
    }
}

/// The same mixtures of what killed processes left, with the record that was seen last, or with none: every record that is expected is there,
/// and stays.
#[test]
fn no_mixture_of_what_was_killed_signs_a_second_record() {
    const STATES: u32 = 4;
    let place = Place::new();
    place.save("0");
    let mut signed = Vec::new();
    for epoch in 1..STATES {
        signed.push(place.sign_and_save_killed(&epoch.to_string(), &epoch.to_string()));
    }
    let last = signed[STATES as usize - 2];
    let mut opened = [0; 2];
    for mixture in 0..2 * STATES.pow(3) {
        let [data, inner, outer] = [1, STATES, STATES * STATES].map(|by| mixture / by % STATES);
        let is_expected = mixture >= STATES.pow(3);
        replace(&place.path(&data.to_string()), &place.folder());
        replace(&place.path(&format!("{inner}/head")), &place.folder().join("head"));
        replace(&place.path(&format!("{outer}.head")), &place.head());
        let seen = is_expected.then_some(last);
        match place.open(&Outside { seen, ..place.outside() }) {
            Ok(server) => {
                opened[usize::from(is_expected)] += 1;
                update(&server, &[("label", "more")]);
                let known = if is_expected { STATES - 1 } else { outer };
                assert!(server.view().unwrap().record().epoch > known, "{data} {inner} {outer}");
                for signed in &signed[..known as usize] {
                    let epoch = signed.unverified().epoch;
                    assert_eq!(digest(&server.record(epoch).unwrap()), digest(signed));
                }
            }
            Err(error) => {
                let is_named = matches!(error, Error::Behind { .. } | Error::OldHead { .. });
                assert!(is_named, "{data} {inner} {outer}: {error}");
            }
        }
    }
    // With the newest database, also where both heads are one epoch older, which it knows nothing of.
    assert_eq!(opened[1], 7, "{opened:?}");
    assert!(opened[0] > opened[1], "{opened:?}");
}

/// The head is now in another file. A backup that names the first one is refused, although that one is as old as the backup.
#[test]
fn a_file_that_was_left_is_refused() {
    let place = Place::new();
    place.sign("1");
    place.save("backup");
    let (first, next) = (place.head(), place.path("other-disk/next"));
    let moved = Outside { head: Some(next.clone()), start: true, seen: None };
    let server = place.open(&moved).unwrap();
    leave_head(&first, &next).unwrap();
    // Once more changes nothing, and one file does not take its own place.
    leave_head(&first, &next).unwrap();
    server.close().unwrap();
    drop(server);
    let newest = std::fs::read(&next).unwrap();
    leave_head(&next, &place.path("other-disk/../other-disk/next")).unwrap();
    assert_eq!(std::fs::read(&next).unwrap(), newest);
    let server = place.open(&moved).unwrap();
    update(&server, &[("label", "2")]);
    server.close().unwrap();
    drop(server);
    replace(&place.path("backup"), &place.folder());
    for start in [false, true] {
        let outside = Outside { start, ..place.outside() };
        let error = place.open(&outside).unwrap_err();
        let is_named =
            matches!(&error, Error::HeadLeft { path, to } if (path, to) == (&first, &next));
        assert!(is_named && error.to_string().contains("/next"), "{error}");
    }
    assert!(matches!(place.open(&moved).unwrap_err(), Error::Behind { epoch: 2, .. }));
    // A newer head is not left for an older one.
    std::fs::copy(place.path("backup.head"), &first).unwrap();
    assert!(matches!(leave_head(&next, &first), Err(Error::HeadMoved { .. })));
}

/// A new head is renamed to its place, so a link would be replaced, and the file that it names would stay as old as it is.
#[cfg(unix)]
#[test]
fn a_link_is_no_place_for_a_head() {
    let place = Place::new();
    place.sign("1");
    let link = place.path("link");
    std::os::unix::fs::symlink(place.head(), &link).unwrap();
    for start in [false, true] {
        let outside = Outside { head: Some(link.clone()), start, seen: None };
        assert!(matches!(place.open(&outside).unwrap_err(), Error::HeadLink(path) if path == link));
    }
    assert!(link.is_symlink());
    std::fs::remove_file(place.head()).unwrap();
    let outside = Outside { head: Some(link.clone()), start: true, seen: None };
    assert!(matches!(place.open(&outside), Err(Error::HeadLink(_))), "also where it names nothing");
}

/// The head in the folder goes back in time with it, whatever it is called.
#[cfg(unix)]
#[test]
fn the_head_of_the_folder_is_no_other_one() {
    let place = Place::new();
    place.sign("1");
    let link = place.path("link");
    std::os::unix::fs::symlink(place.folder(), &link).unwrap();
    for head in [place.folder().join("head"), link.join("head")] {
        let outside = Outside { head: Some(head.clone()), start: true, seen: None };
        let error = place.open(&outside).unwrap_err();
        assert!(matches!(&error, Error::HeadInside(path) if *path == head), "{error}");
    }
}

/// A database that is only read for the time being, on a full disk, must also have what is known from elsewhere.
#[test]
fn what_is_read_has_what_was_signed() {
    let place = Place::new();
    let first = place.sign("1");
    place.save("backup");
    let second = place.sign("2");
    replace(&place.path("backup"), &place.folder());
    let read = |outside: &Outside| {
        let (folder, parameters) = (place.folder(), parameters(Profile::Compress));
        let opener = database(&folder);
        let directory = Directory::new(&folder, &parameters, &key(), opener, outside).unwrap();
        Reading::open(&directory).map(drop)
    };
    assert!(matches!(read(&place.outside()), Err(Error::Behind { epoch: 2, .. })));
    let seen = |seen| Outside { seen: Some(seen), ..Outside::default() };
    assert!(matches!(read(&seen(second)), Err(Error::Behind { epoch: 2, .. })));
    read(&seen(first)).unwrap();
    read(&Outside::default()).unwrap();
}

/// A backup may be read, whatever was signed later. That writes and signs nothing.
#[test]
fn a_backup_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let backup = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    update(&server, &[("a", "1")]);
    // One that waits stays so.
    server.submit(Update::new("a", "2")).unwrap();
    server.close().unwrap();
    drop(server);
    copy(folder.path(), backup.path());
    let (parameters, options) = (parameters(Profile::Compress), options(Mode::Serial));
    let head = std::fs::read(backup.path().join("head")).unwrap();
    for _ in 0..2 {
        let server = Server::read(backup.path(), &parameters, &key(), options).unwrap();
        let view = server.view().unwrap();
        assert_eq!(client(&parameters, &view, b"a").unwrap().1, ["1"]);
        assert_eq!((server.open_updates(), server.proven().unwrap()), (1, 0));
        assert!(server.ready().is_err());
        assert!(server.submit(Update::new("b", "1")).is_err());
        let proof = EpochProof { from: 0, to: 1, subcircuits: 1, proof: vec![1] };
        let refused = [
            server.attach(&proof, |_, _| Ok(())).map(drop),
            server.erase(b"a", 0),
            server.prune(1),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::Recovering(_))), "{refused:?}");
        }
        assert_eq!(server.pruned().unwrap(), 0);
        assert!(matches!(
            Server::read(backup.path(), &parameters, &key(), options).unwrap_err(),
            Error::Locked(_)
        ));
        server.close().unwrap();
        assert!(server.view().is_err());
    }
    assert_eq!(std::fs::read(backup.path().join("head")).unwrap(), head);
    assert!(!backup.path().join("in-use").exists());
}
