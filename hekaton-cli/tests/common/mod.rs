//! What the tests of the command line share.
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
