//! Helpers that the tests of the command line share.
#![allow(dead_code)] // each test binary uses a part of it

use std::process::{Command, Output};

/// The program, with arguments.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hekaton"));
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
    command.env("DIR", mount.path()).env("HEKATON", env!("CARGO_BIN_EXE_hekaton"));
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_ne!(output.status.code(), Some(99), "cannot mount a tmpfs: {err}");
    (output.status.code(), out.into_owned() + &err)
}

/// A chain circuit with keys in a directory of its own; proving it takes a second or less.
pub(crate) struct Chain {
    dir: tempfile::TempDir,
    /// Number of subcircuits.
    pub(crate) links: usize,
}

impl Chain {
    /// Generates keys for this number of links and of steps.
    pub(crate) fn new(links: usize, steps: usize) -> Self {
        let chain = Self { dir: tempfile::tempdir().unwrap(), links };
        std::fs::write(chain.path("x"), "7\n").unwrap();
        let (links, steps) = (format!("links={links}"), format!("steps={steps}"));
        ok(&["setup", "chain", "-p", &links, "-p", &steps, "--keys", &chain.path("keys")]);
        chain
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_string_lossy().into_owned()
    }

    /// The command `prove --run RUN` on two threads, with more arguments.
    pub(crate) fn prove(&self, run: &str, more: &[&str]) -> Command {
        let mut command = command(&[
            "prove",
            &self.path("x"),
            "--keys",
            &self.path("keys"),
            "--threads",
            "2",
            "--run",
            run,
        ]);
        command.args(more);
        command
    }

    /// Resumes a run, completes it, and verifies the proof.
    #[track_caller]
    pub(crate) fn finish(&self, run: &str) {
        let output = self.prove(run, &["--resume"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.verify(&format!("{run}/proof"));
    }

    /// Verifies a proof.
    #[track_caller]
    pub(crate) fn verify(&self, proof: &str) {
        let public = ok(&["hash", &self.path("x"), "--keys", &self.path("keys")]);
        ok(&[
            "verify",
            proof,
            "--key",
            &self.path("keys/verifying.key"),
            "--public",
            public.trim(),
        ]);
    }
}
