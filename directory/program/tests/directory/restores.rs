//! Backups that are put back, as an operator does it: what is found out, by what, and what is not.

use super::{Directory, fails, json, keys, ok};
use std::path::Path;
use std::process::Command;

fn copy(from: &str, to: &str) {
    let _ = std::fs::remove_dir_all(to);
    let copied = Command::new("cp").args(["-a", from, to]).status();
    assert!(copied.unwrap().success(), "{from} {to}");
}

/// A directory whose head is kept elsewhere, too, with an epoch, a backup of then, and another epoch.
fn with_backup() -> Directory {
    let directory = Directory::bare();
    let (folder, head) = (directory.path("d"), directory.path("head"));
    let made = json(&["directory", "init", &folder, "--keys", keys(), "--head", &head]);
    assert_eq!(made["head"].as_str(), Some(&head[..]));
    std::fs::copy(directory.path("d/parameters.json"), directory.path("parameters")).unwrap();
    let mut service = directory.serve(&[]);
    ok(&["directory", "insert", &service.address, "alice", "1"]);
    assert_eq!(service.end("-TERM"), Some(0));
    copy(&folder, &directory.path("backup"));
    std::fs::copy(&head, directory.path("backup.head")).unwrap();
    let mut service = directory.serve(&[]);
    ok(&["directory", "insert", &service.address, "alice", "2"]);
    let parameters = directory.path("parameters");
    let asked = ["directory", "lookup", &service.address, "alice", "--parameters", &parameters];
    ok(&[&asked[..], &["--seen", &directory.path("seen")]].concat());
    assert_eq!(service.end("-KILL"), None);
    copy(&folder, &directory.path("newest"));
    directory
}

/// The whole folder, or its data: both are refused by every command that could sign, and by a second start, too. Sending the same
/// updates again changes nothing.
#[test]
fn an_older_folder_signs_nothing() {
    let directory = with_backup();
    let folder = directory.path("d");
    let behind = "does not have the record of epoch 2 that was signed";
    for part in ["", "/data", "/data/database"] {
        copy(&directory.path("newest"), &folder);
        copy(&format!("{}{part}", directory.path("backup")), &format!("{folder}{part}"));
        for _ in 0..2 {
            let serve = ["directory", "serve", &folder, "--listen", "127.0.0.1:0"];
            fails(3, behind, &serve);
            fails(3, behind, &["directory", "insert", &folder, "alice", "2"]);
            fails(3, behind, &["directory", "prove", &folder, "--keys", keys()]);
            fails(3, behind, &["directory", "prune", &folder, "1"]);
            fails(3, behind, &["directory", "erase", &folder, "alice", "0"]);
        }
    }
    // Another head, which would be older, does not help: the one that the folder had is asked first.
    copy(&directory.path("backup"), &folder);
    fails(3, behind, &["directory", "head", &folder, &directory.path("new")]);
    let old = directory.path("backup.head");
    let serve = ["directory", "serve", &folder, "--listen", "127.0.0.1:0", "--head", &old];
    fails(3, behind, &serve);
    assert!(!Path::new(&directory.path("new")).exists());
    // Reading it signs nothing. A client that has seen more does not believe it.
    copy(&directory.path("backup"), &folder);
    assert_eq!(json(&["directory", "lookup", &folder, "alice"])["version"], 0);
    ok(&["directory", "check", &folder]);
    let seen = ["--seen", &directory.path("seen")];
    fails(1, "it hides what came after", &[&["directory", "epoch", &folder][..], &seen].concat());
    // The newest state continues.
    copy(&directory.path("newest"), &folder);
    ok(&["directory", "insert", &folder, "alice", "3"]);
    assert_eq!(
        json(&[&["directory", "lookup", &folder, "alice"][..], &seen].concat())["version"],
        2
    );
}

/// A copy that is served in parallel, from where the head is seen.
#[test]
fn a_copy_is_not_served_in_parallel() {
    let directory = with_backup();
    let service = directory.serve(&[]);
    let serve = ["directory", "serve", &directory.path("newest"), "--listen", "127.0.0.1:0"];
    fails(3, "one directory has one server, and copies of it have none", &serve);
    drop(service);
}

#[test]
fn heads_that_are_older_or_missing_are_refused() {
    let directory = with_backup();
    let (folder, head) = (directory.path("d"), directory.path("head"));
    let newest = std::fs::read(&head).unwrap();
    let serve = ["directory", "serve", &folder, "--listen", "127.0.0.1:0"];
    std::fs::copy(directory.path("backup.head"), &head).unwrap();
    fails(3, "names epoch 1 (commit 1), but epoch 2 (commit 2) was signed", &serve);
    // The one in the folder, after a clean end.
    std::fs::write(&head, &newest).unwrap();
    ok(&["directory", "insert", &folder, "alice", "3"]);
    let newest = std::fs::read(&head).unwrap();
    std::fs::copy(directory.path("backup/data/head"), directory.path("d/data/head")).unwrap();
    fails(3, "names epoch 1", &["directory", "check", &folder]);
    // The other one tells what was signed.
    ok(&["directory", "insert", &folder, "alice", "4"]);
    ok(&["directory", "check", &folder]);

    std::fs::remove_file(&head).unwrap();
    fails(3, &format!("`hekaton directory head {folder} {head}` starts a new one"), &serve);
    assert!(!Path::new(&head).exists());
    // A head that is put back from before the last epoch is not accepted, and neither is a damaged one.
    std::fs::write(&head, &newest).unwrap();
    fails(3, "names epoch 3", &serve);
    std::fs::write(&head, &newest[1..]).unwrap();
    fails(3, "the last signed epoch is unknown", &serve);
    fails(3, "the last signed epoch is unknown", &["directory", "head", &folder, &head]);
    // By somebody who is sure, and in a new place.
    let moved = directory.path("moved");
    fails(3, "the last signed epoch is unknown", &["directory", "head", &folder, &moved]);
    std::fs::remove_file(&head).unwrap();
    let started = json(&["directory", "head", &folder, &moved]);
    assert_eq!((&started["epoch"], &started["is_current"]), (&4.into(), &true.into()));
    ok(&["directory", "insert", &folder, "alice", "5"]);
    assert_eq!(json(&["directory", "head", &folder])["head_epoch"], 5);
    fails(2, "it is in the folder", &["directory", "head", &folder, &directory.path("d/head")]);
    fails(
        3,
        "exists",
        &["directory", "init", &directory.path("e"), "--keys", keys(), "--head", &moved],
    );
}

/// The head gets another file. Backups name the first one, which must not confirm them.
#[test]
fn a_head_that_was_moved_confirms_no_backup() {
    let directory = with_backup();
    let (folder, head, moved) =
        (directory.path("d"), directory.path("head"), directory.path("moved"));
    ok(&["directory", "insert", &folder, "alice", "3"]);
    copy(&folder, &directory.path("newest"));
    ok(&["directory", "head", &folder, &moved]);
    ok(&["directory", "insert", &folder, "alice", "4"]);
    let after = directory.path("after");
    copy(&folder, &after);
    // The first file names the record that this copy has.
    copy(&directory.path("newest"), &folder);
    let left = format!("{head} is left: what was signed last is kept in {moved}");
    fails(3, &left, &["directory", "insert", &folder, "alice", "4"]);
    fails(3, &left, &["directory", "serve", &folder, "--listen", "127.0.0.1:0"]);
    fails(3, &left, &["directory", "head", &folder, &directory.path("new")]);
    let behind = "does not have the record of epoch 4 that was signed";
    fails(3, behind, &["directory", "head", &folder, &moved]);
    // A crash before the settings were written: the same command ends what it began.
    copy(&after, &folder);
    let settings = directory.path("d/settings.json");
    std::fs::copy(directory.path("newest/settings.json"), &settings).unwrap();
    let go_on = format!("`hekaton directory head {folder} {moved}` continues there");
    fails(3, &go_on, &["directory", "insert", &folder, "alice", "5"]);
    ok(&["directory", "head", &folder, &moved]);
    ok(&["directory", "insert", &folder, "alice", "5"]);
    // A service that is given another file leaves the one before, too.
    let second = directory.path("second");
    std::fs::copy(&moved, &second).unwrap();
    let mut service = directory.serve(&["--head", &second]);
    assert_eq!(service.end("-TERM"), Some(0));
    copy(&after, &folder);
    fails(3, &format!("{moved} is left"), &["directory", "insert", &folder, "alice", "5"]);
}

/// A path that is only a name of the head in the folder, or of another file, is not accepted as a head, and a path that cannot be looked
/// at does not count as missing.
#[cfg(unix)]
#[test]
fn a_head_is_a_file_outside() {
    use std::os::unix::fs::symlink;
    let directory = with_backup();
    let (folder, head) = (directory.path("d"), directory.path("head"));
    let (link, linked) = (directory.path("link"), directory.path("linked"));
    symlink(directory.path("d/data/head"), &link).unwrap();
    fails(2, "is a symbolic link", &["directory", "head", &folder, &link]);
    let init = ["directory", "init", &directory.path("e"), "--keys", keys(), "--head", &link];
    fails(2, "is a symbolic link", &init);
    // The database of an older folder is on a larger disk, in which nobody expects it.
    std::fs::rename(directory.path("d/data"), &linked).unwrap();
    symlink(&linked, directory.path("d/data")).unwrap();
    for name in ["head", "new"] {
        let inside = format!("{linked}/{name}");
        fails(2, "it is in the folder", &["directory", "head", &folder, &inside]);
    }
    std::fs::remove_file(directory.path("d/data")).unwrap();
    copy(&directory.path("backup"), &folder);
    // The file cannot be read, so what it named is unknown, and no older folder may take another one.
    let (kept, new) = (directory.path("kept"), directory.path("new"));
    std::fs::rename(&head, &kept).unwrap();
    symlink(&head, &head).unwrap();
    fails(3, "is a symbolic link", &["directory", "head", &folder, &new]);
    assert!(!Path::new(&new).exists());
    std::fs::remove_file(&head).unwrap();
    // One that was replaced by a link to it is named by its own name from then on.
    copy(&directory.path("newest"), &folder);
    symlink(&kept, &head).unwrap();
    fails(3, "is a symbolic link", &["directory", "insert", &folder, "alice", "3"]);
    ok(&["directory", "head", &folder, &kept]);
    ok(&["directory", "insert", &folder, "alice", "3"]);
    // A client that cannot read what it saw has not seen nothing.
    let seen = directory.path("loop");
    symlink(&seen, &seen).unwrap();
    fails(3, "loop", &["directory", "lookup", &folder, "alice", "--seen", &seen]);
    assert!(Path::new(&seen).is_symlink());
}

/// An older folder is served if there is no head elsewhere: the record that a client has seen reveals it, before anything is signed if
/// the server is given it, and afterwards by the client.
#[test]
fn a_record_from_a_client_is_a_head() {
    let directory = Directory::new();
    let (folder, seen) = (directory.path("d"), directory.path("seen"));
    ok(&["directory", "insert", &folder, "alice", "1"]);
    copy(&folder, &directory.path("backup"));
    ok(&["directory", "insert", &folder, "alice", "2"]);
    ok(&["directory", "lookup", &folder, "alice", "--seen", &seen]);
    copy(&directory.path("backup"), &folder);
    let serve = ["directory", "serve", &folder, "--listen", "127.0.0.1:0", "--expect-head"];
    fails(3, "does not have the record of epoch 2", &[&serve[..], &[seen.as_str()]].concat());
    let head = directory.path("head");
    let start = ["directory", "head", &folder, &head, "--expect-head", &seen];
    fails(3, "does not have the record of epoch 2", &start);
    assert!(!Path::new(&head).exists());
    // The same update again is another record.
    ok(&["directory", "insert", &folder, "alice", "2"]);
    fails(1, "rejected", &["directory", "lookup", &folder, "alice", "--seen", &seen]);
    let evidence = std::fs::read_dir(directory.dir.path()).unwrap().flatten();
    let evidence = evidence
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("seen.rejected-2-"))
        .count();
    assert_eq!(evidence, 1, "both records of epoch 2 are with the client");
    fails(3, "does not have the record of epoch 2", &[&serve[..], &[seen.as_str()]].concat());
    // A head that is given to serve is kept for the other commands.
    ok(&["directory", "head", &directory.path("backup"), &directory.path("other")]);
    let wrong = ["directory", "serve", &folder, "--head", &directory.path("other")];
    fails(3, "names epoch 1", &wrong);
    ok(&["directory", "head", &folder, &head]);
    let text = std::fs::read_to_string(directory.path("d/settings.json")).unwrap();
    std::fs::write(directory.path("d/settings.json"), text.replace("/head\"", "/gone\"")).unwrap();
    let mut service = directory.serve(&["--head", &head]);
    assert_eq!(service.end("-TERM"), Some(0));
    ok(&["directory", "insert", &folder, "alice", "3"]);
    assert_eq!(json(&["directory", "head", &folder])["is_current"], true);
}
