//! The subject that a run proves: a file under the keys of a circuit, or the run of a program.

use crate::app::App;
use crate::exit::{self, Failure};
use crate::machine::Machine;
use crate::opened_keys::OpenedKeys;
use crate::terminal::shell;
use hekaton_circuit::Fr;
use hekaton_circuit::named::InputFile;
use std::num::NonZeroUsize;
use std::path::Path;

/// The subject that a run proves.
pub(crate) enum Subject<'a> {
    /// A file, whose circuit the keys name.
    File(&'a App),
    /// The run of a program of the machine.
    Machine(&'a Machine),
}

impl Subject<'_> {
    /// The input, on which everything depends that the proof is about.
    pub(crate) fn input(&self, file: &Path) -> Result<InputFile, Failure> {
        match self {
            Self::File(_) => exit::input(file),
            Self::Machine(machine) => Ok(machine.everything()),
        }
    }

    /// Further files that must not be written to.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let files = match self {
            Self::File(_) => None,
            Self::Machine(machine) => Some(machine.files()),
        };
        files.into_iter().flatten()
    }

    /// Opens the keys. Those of a circuit may be derived for the input, where it can be read.
    pub(crate) fn open(
        &self,
        keys: &Path,
        threads: Option<NonZeroUsize>,
        limit: Option<u64>,
        input: Option<&InputFile>,
    ) -> Result<OpenedKeys, Failure> {
        match self {
            Self::File(app) => OpenedKeys::open(app, keys, threads, limit, input),
            Self::Machine(machine) => machine.with_keys(keys, threads, limit),
        }
    }

    /// Reports whether a file with the proof has more in it than the proof.
    pub(crate) fn wraps(&self) -> bool {
        matches!(self, Self::Machine(_))
    }

    /// The file of a proof.
    pub(crate) fn file(&self, proof: &[u8]) -> Vec<u8> {
        match self {
            Self::File(_) => proof.to_vec(),
            Self::Machine(machine) => machine.file(proof),
        }
    }

    /// Formats public values in the form of the circuit of this name, if it has one.
    pub(crate) fn show_public(&self, circuit: &str, values: &[Fr]) -> Option<String> {
        match self {
            Self::File(app) => app.get(circuit)?.show_public(values),
            Self::Machine(machine) => Some(machine.show()),
        }
    }

    /// The arguments of the command that verifies a proof. `key` is what follows `--key` there, and
    /// `public` the public values, or `@` and their file.
    pub(crate) fn verify_command(&self, proof: &Path, key: &str, public: &str) -> String {
        let proof = shell::path(proof);
        match self {
            Self::File(_) => format!("verify {proof} --key {key} --public {}", shell::word(public)),
            Self::Machine(machine) => machine.verify_command(&proof, key),
        }
    }
}
