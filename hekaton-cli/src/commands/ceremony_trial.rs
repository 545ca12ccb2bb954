//! The trial of a ceremony's keys before they are visible: a proof under them and its verification, by the commands that users of the keys
//! run.

use crate::application::OpenCircuit;
use crate::imported;
use crate::machine;
use crate::options::CeremonyFinish;
use hekaton_ceremony::FamilyGenesis;
use hekaton_circuit::named::{InputFile, ParameterMap};
use hekaton_circuit::{CheckOptions, check_with};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::unfinished::Unfinished;
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// A file that is to be proven.
pub(crate) enum Trial {
    /// An input of the circuit.
    Input(InputFile),
    /// A program for the machine without input.
    Program {
        /// Its file.
        bytes: Vec<u8>,
        /// The code with which it exits.
        exit_code: u64,
    },
}

impl Trial {
    /// The trial that was asked for, or one of the circuit's sample, or of a program that does nothing, if it fits the keys. Imported
    /// circuits have no sample.
    pub(crate) fn of(
        command: &CeremonyFinish,
        genesis: &FamilyGenesis,
        circuit: &dyn OpenCircuit,
    ) -> Result<Option<Self>, Failure> {
        if command.no_trial {
            return Ok(None);
        }
        if genesis.circuit == machine::NAME {
            return Self::of_machine(command.trial.as_deref(), genesis);
        }
        if let Some(path) = &command.trial {
            let input = exit::input(path)?;
            let fits = circuit.check_input(&input);
            fits.map_err(|e| imported::input_failure(path, &e, exit::USAGE))?;
            // Now, and not after the check of a whole ceremony.
            let options = CheckOptions::new();
            let checked = circuit.on_input(&input, |it| check_with(it, &options, &mut |_, _| {}));
            let report = checked
                .map_err(|e| imported::input_failure(path, &e, exit::USAGE))?
                .or_fail(exit::USAGE)?;
            if report.violated > 0 || !report.unbalanced.is_empty() {
                let why = format!(
                    "--trial {}: it does not satisfy the circuit, as `hekaton check` shows",
                    path.display()
                );
                return Err(Failure::new(exit::USAGE, why));
            }
            return Ok(Some(Self::Input(input)));
        }
        if circuit.directory().is_some() {
            return Ok(None);
        }
        let sample = circuit.sample();
        let instances = circuit.on_input(&sample, |prepared| prepared.layout().instances());
        let fits = instances.or_fail(exit::FAILED)? <= genesis.instances;
        Ok(fits.then_some(Self::Input(sample)))
    }

    fn of_machine(path: Option<&Path>, genesis: &FamilyGenesis) -> Result<Option<Self>, Failure> {
        let parameters: ParameterMap =
            serde_json::from_str(&genesis.parameters).or_fail(exit::BAD_FILE)?;
        let bytes = match path {
            Some(path) => machine::read_program(path)?,
            None => does_nothing(&parameters),
        };
        let rows = parameters.get("rows").map(Value::to_string);
        let rows = rows.ok_or("the genesis has no number of rows").or_fail(exit::BAD_FILE)?;
        let place = tempfile::tempdir().or_fail(exit::FAILED)?;
        let program = place.path().join("program");
        std::fs::write(&program, &bytes).or_fail(exit::FAILED)?;
        let text = |text: &'static str| OsStr::new(text);
        let run = [text("--json"), text("vm"), text("run"), program.as_os_str()];
        let found = call(&[&run[..], &[text("--rows"), OsStr::new(&rows)]].concat());
        let found =
            found.map_err(|why| Failure::new(exit::USAGE, format!("the trial: {}", why.1)))?;
        let found: Value = serde_json::from_str(&found).or_fail(exit::FAILED)?;
        let [subcircuits, exit_code] =
            ["subcircuits", "program_exit_code"].map(|name| found[name].as_u64());
        let report = subcircuits.zip(exit_code).ok_or("`vm run` reports no numbers");
        let (subcircuits, exit_code) = report.or_fail(exit::FAILED)?;
        match (subcircuits > genesis.instances as u64, path) {
            (false, _) => Ok(Some(Self::Program { bytes, exit_code })),
            (true, None) => Ok(None),
            (true, Some(path)) => {
                let why = format!(
                    "{}: needs {subcircuits} subcircuits, and the keys are for {}",
                    path.display(),
                    genesis.instances
                );
                Err(Failure::new(exit::USAGE, why))
            }
        }
    }

    /// Proves the file under keys, and verifies the proof. `is_store` says that the keys are those of one circuit.
    pub(crate) fn run(
        &self,
        keys: &Path,
        is_store: bool,
        unfinished: &Unfinished,
    ) -> Result<(), NoVerdict> {
        let place = unfinished.scratch().map_err(NoVerdict::Elsewhere)?;
        let (file, proof) = (place.path().join("trial"), place.path().join("proof"));
        let (bytes, exit_code) = match self {
            Self::Input(input) => {
                (input.read().or_fail(exit::FAILED).map_err(NoVerdict::Elsewhere)?, None)
            }
            Self::Program { bytes, exit_code } => (bytes.clone(), Some(exit_code.to_string())),
        };
        let written = std::fs::write(&file, bytes);
        written.or_fail(exit::FAILED).map_err(NoVerdict::Elsewhere)?;
        let text = |text: &'static str| OsStr::new(text);
        let (file, proof) = (file.as_os_str(), proof.as_os_str());
        let with_keys = [text("--keys"), keys.as_os_str()];
        let prove = [&[text("prove"), file, text("--proof"), proof], &with_keys[..]].concat();
        if let Some(exit_code) = &exit_code {
            succeeds(&[&[text("vm")], &prove[..]].concat())?;
            let verify = [text("vm"), text("verify"), proof, text("--program"), file];
            let code = [text("--exit-code"), OsStr::new(exit_code)];
            return succeeds(&[&verify[..], &with_keys, &code].concat()).map(drop);
        }
        succeeds(&prove)?;
        let public = succeeds(&[&[text("hash"), file], &with_keys[..]].concat())?;
        // A key store has a file for verifiers; from a family, the key follows from the input.
        let of_store = keys.join("verifying.key");
        let key = match is_store {
            true => vec![of_store.as_os_str()],
            false => vec![keys.as_os_str(), text("--for"), file],
        };
        let public = [text("--public"), OsStr::new(public.trim())];
        let verify = [text("verify"), proof, text("--key")];
        succeeds(&[&verify[..], &key, &public].concat()).map(drop)
    }
}

/// The reason why a trial has not succeeded.
pub(crate) enum NoVerdict {
    /// Something that has nothing to do with the keys, such as the folder for temporary files, or too little memory.
    Elsewhere(Failure),
    /// A signal, which this process has received, too, unless somebody sent it to the prover alone.
    Interrupted(Failure),
    /// The keys, or it cannot be told.
    Keys(Failure),
}

/// Runs a command of this program. Returns its output, or its status, if it has started, and its errors.
fn call(arguments: &[&OsStr]) -> Result<String, (Option<ExitStatus>, String)> {
    let failed = |e: std::io::Error| (None, e.to_string());
    let program = std::env::current_exe().map_err(failed)?;
    let output = Command::new(program).args(arguments).output().map_err(failed)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            Err((Some(output.status), why))
        }
    }
}

/// The signal with which the system ends a process when memory runs out.
const SIGKILL: i32 = 9;
const REFUSED: i32 = exit::REFUSED as i32;
const INTERRUPTED: i32 = exit::INTERRUPTED as i32;

/// Runs a command that must succeed under right keys.
fn succeeds(arguments: &[&OsStr]) -> Result<String, NoVerdict> {
    call(arguments).map_err(|(status, why)| {
        let failure = |code, what: &str| {
            Failure::new(code, format!("{what} (--no-trial leaves it out): {why}"))
        };
        let no_end = failure(exit::FAILED, "the trial of the keys did not come to an end");
        match status.map(|status| (status.code(), status.signal())) {
            None => NoVerdict::Elsewhere(no_end),
            Some((_, Some(SIGKILL))) => {
                let what = "the trial of the keys was killed, maybe for lack of memory";
                NoVerdict::Elsewhere(failure(exit::FAILED, what))
            }
            Some((None | Some(INTERRUPTED), _)) => NoVerdict::Interrupted(no_end),
            Some((Some(REFUSED), _)) => {
                NoVerdict::Keys(failure(exit::REFUSED, "the keys fail their trial"))
            }
            Some((Some(_), _)) => NoVerdict::Keys(no_end),
        }
    })
}

/// A program that exits with code 0 at once.
fn does_nothing(parameters: &ParameterMap) -> Vec<u8> {
    if parameters.get("isa").is_some_and(|isa| isa == "tinyram") {
        return b"; TinyRAM V=2.000 W=32 K=16\nanswer 0\n".to_vec();
    }
    const BASE: u32 = 0x1_0000;
    const HEADERS: u32 = 52 + 32;
    // li a7, 93; li a0, 0; ecall
    let code = [0x05d0_0893u32, 0x0000_0513, 0x0000_0073];
    let length = 12;
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    let half = |file: &mut Vec<u8>, x: u16| file.extend_from_slice(&x.to_le_bytes());
    let word = |file: &mut Vec<u8>, x: u32| file.extend_from_slice(&x.to_le_bytes());
    // An executable for RISC-V with one program header.
    [2, 243].into_iter().for_each(|x| half(&mut file, x));
    [1, BASE + HEADERS, 52, 0, 0].into_iter().for_each(|x| word(&mut file, x));
    [52, 32, 1, 0, 0, 0].into_iter().for_each(|x| half(&mut file, x));
    // It is loaded where the code is, to be read and executed.
    let place = BASE + HEADERS;
    [1, HEADERS, place, place, length, length, 5, 4].into_iter().for_each(|x| word(&mut file, x));
    code.into_iter().for_each(|x| word(&mut file, x));
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_vm::Program;

    #[test]
    fn programs_that_do_nothing_are_programs() {
        let mut parameters = ParameterMap::new();
        Program::from_elf(&does_nothing(&parameters)).unwrap();
        parameters.insert("isa".to_owned(), "tinyram".into());
        let text = String::from_utf8(does_nothing(&parameters)).unwrap();
        Program::from_tinyram(&text).unwrap();
    }
}
