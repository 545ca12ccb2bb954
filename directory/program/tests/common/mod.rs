//! Helpers of the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program `hekaton`, beside `hekaton-directory`, which it runs.
pub(crate) fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_hekaton-directory")).with_file_name("hekaton");
    assert!(program.is_file(), "{} is missing: cargo build -p hekaton-cli", program.display());
    program
}

/// The program, with arguments.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(args);
    command
}

/// Runs the program.
pub(crate) fn hekaton(args: &[&str]) -> Output {
    command(args).output().expect("the program starts")
}

/// Runs a command that must succeed; returns its standard output.
#[track_caller]
pub(crate) fn ok(args: &[&str]) -> String {
    let output = hekaton(args);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}\n{out}\n{err}");
    out.into_owned()
}

/// Runs a command that must fail with this exit code and an error that contains this text.
#[track_caller]
pub(crate) fn fails(code: i32, says: &str, args: &[&str]) {
    let output = hekaton(args);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{err}");
    assert!(err.contains(says), "expected '{says}' in: {err}");
    assert!(!err.contains("panicked"), "{err}");
}

/// A small file system in memory, as root or in a user's own namespace: runs a script with `$DIR`
/// mounted, `$HEKATON` and these variables. Returns its exit code, and what it wrote.
pub(crate) fn with_tmpfs(script: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mount = tempfile::tempdir().unwrap();
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let mut command = Command::new("unshare");
    command.args(if root { &["-m"][..] } else { &["-U", "-r", "-m"] });
    let head = "set -u; mount -t tmpfs -o size=4m,mode=700 hekaton-test $DIR || exit 99; ";
    command.args(["sh", "-c", &format!("{head}{script}")]);
    command.env("DIR", mount.path()).env("HEKATON", program());
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_ne!(output.status.code(), Some(99), "cannot mount a tmpfs: {err}");
    (output.status.code(), out.into_owned() + &err)
}
