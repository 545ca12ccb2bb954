//! The subject that a run proves: a file under the keys of a circuit, or the run of a program.

use crate::app::App;
use crate::opened_keys::OpenedKeys;
use hekaton_circuit::Fr;
use hekaton_circuit::named::InputFile;
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::shell;
use std::num::NonZeroUsize;
use std::path::Path;

// Sync, because the coordinator uses it while the thread that started MPI only moves messages.
/// The subject that a run proves.
pub trait Subject: Sync {
    /// Everything that the proof depends on in addition to the keys. Its digest identifies a run.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    fn input(&self, file: &Path) -> Result<InputFile, Failure>;

    /// Further files that must not be overwritten.
    fn files(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// Opens the keys for a run on this number of threads, within `limit` bytes. Where the input can be read, they may be derived
    /// for it.
    ///
    /// # Errors
    /// Fails if the keys are damaged or for another subject, or if the limit is too small.
    fn open(
        &self,
        keys: &Path,
        threads: Option<NonZeroUsize>,
        limit: Option<u64>,
        input: Option<&InputFile>,
    ) -> Result<OpenedKeys, Failure>;

    /// Explains to the user of a rank that cannot read the input why it must.
    fn read_by_ranks(&self) -> &'static str;

    /// Reports whether the file of a proof has other content in addition to the proof.
    fn wraps(&self) -> bool {
        false
    }

    /// The file of a proof.
    fn file(&self, proof: &[u8]) -> Vec<u8> {
        proof.to_vec()
    }

    /// Formats public values in the form of the circuit of this name, if it has one.
    fn show_public(&self, circuit: &str, values: &[Fr]) -> Option<String>;

    /// The arguments of the command that verifies a proof. `key` is the value of `--key` there, and
    /// `public` the public values, or `@` and their file.
    fn verify_command(&self, proof: &Path, key: &str, public: &str) -> String;
}

/// A file. The keys name its circuit, which is one of the program's.
impl Subject for App {
    fn input(&self, file: &Path) -> Result<InputFile, Failure> {
        exit::input(file)
    }

    fn open(
        &self,
        keys: &Path,
        threads: Option<NonZeroUsize>,
        limit: Option<u64>,
        input: Option<&InputFile>,
    ) -> Result<OpenedKeys, Failure> {
        OpenedKeys::open(self, keys, threads, limit, input)
    }

    fn read_by_ranks(&self) -> &'static str {
        "each rank executes its part here and reads the input; with --execute root, only rank 0 does"
    }

    fn show_public(&self, circuit: &str, values: &[Fr]) -> Option<String> {
        self.get(circuit)?.show_public(values)
    }

    fn verify_command(&self, proof: &Path, key: &str, public: &str) -> String {
        format!("verify {} --key {key} --public {}", shell::path(proof), shell::word(public))
    }
}
