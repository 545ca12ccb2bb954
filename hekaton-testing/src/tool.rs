//! Programs as their users start them.

use crate::disk::unshared;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A program that a test starts.
#[derive(Clone, Debug)]
pub struct Tool(pub PathBuf);

impl Tool {
    /// The program, with arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        command.args(args);
        command
    }

    /// Runs the program.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program starts")
    }

    /// Runs a command that must succeed; returns its standard output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{args:?}\n{out}\n{err}");
        out
    }

    /// Runs a command that must fail with this exit code and an error that contains this text.
    #[track_caller]
    pub fn fails(&self, code: i32, says: &str, args: &[&str]) {
        let output = self.run(args);
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}\n{err}");
        assert!(err.contains(says), "expected '{says}' in: {err}");
        assert!(!err.contains("panicked"), "{err}");
    }

    /// A small file system in memory, as root or in a user's own namespace: runs a script with `$DIR` mounted, the program as
    /// `$HEKATON`, and these variables. Returns its exit code, and what it wrote.
    pub fn with_tmpfs(&self, script: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
        let mount = tempfile::tempdir().unwrap();
        let mut command = unshared();
        let head = "set -u; mount -t tmpfs -o size=4m,mode=700 hekaton-test $DIR || exit 99; ";
        command.args(["sh", "-c", &format!("{head}{script}")]);
        command.env("DIR", mount.path()).env("HEKATON", &self.0).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let (out, err) = texts(&output);
        assert_ne!(output.status.code(), Some(99), "cannot mount a tmpfs: {err}");
        (output.status.code(), out + &err)
    }
}

/// Returns standard output and standard error as texts.
fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
