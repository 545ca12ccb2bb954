//! Helpers that the tests of the command line share.
#![allow(dead_code)] // each test binary uses a part of it

use hekaton_testing::Tool;
use std::process::{Command, Output};

/// The program.
pub(crate) fn tool() -> Tool {
    Tool(env!("CARGO_BIN_EXE_hekaton").into())
}

/// The program, with arguments.
pub(crate) fn command(args: &[&str]) -> Command {
    tool().command(args)
}

/// Runs the program.
pub(crate) fn hekaton(args: &[&str]) -> Output {
    tool().run(args)
}

/// Runs a command that must succeed; returns its standard output.
#[track_caller]
pub(crate) fn ok(args: &[&str]) -> String {
    tool().ok(args)
}

/// Runs a command that must fail with this exit code and an error that contains this text.
#[track_caller]
pub(crate) fn fails(code: i32, says: &str, args: &[&str]) {
    tool().fails(code, says, args);
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
