//! The trial of a ceremony's keys before they are visible: a proof under them and its verification, by the commands that users of the keys
//! run.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::imported;
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
    /// A program without input.
    Program {
        /// The name of the circuit, which has commands for programs.
        circuit: String,
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
        app: &App,
    ) -> Result<Option<Self>, Failure> {
        if command.no_trial {
            return Ok(None);
        }
        let parameters: ParameterMap =
            serde_json::from_str(&genesis.parameters).or_fail(exit::BAD_FILE)?;
        let application = app.get(&genesis.circuit);
        let path = command.trial.as_deref();
        if let Some(program) = application.and_then(|it| it.trial_program(path, &parameters)) {
            return Self::of_program(program?, path, &parameters, genesis);
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

    /// The trial with a program, of which `path` is the file, if one was asked for.
    fn of_program(
        bytes: Vec<u8>,
        path: Option<&Path>,
        parameters: &ParameterMap,
        genesis: &FamilyGenesis,
    ) -> Result<Option<Self>, Failure> {
        let rows = parameters.get("rows").map(Value::to_string);
        let rows = rows.ok_or("the genesis has no number of rows").or_fail(exit::BAD_FILE)?;
        let place = tempfile::tempdir().or_fail(exit::FAILED)?;
        let program = place.path().join("program");
        std::fs::write(&program, &bytes).or_fail(exit::FAILED)?;
        let text = |text: &'static str| OsStr::new(text);
        let run = [text("--json"), OsStr::new(&genesis.circuit), text("run"), program.as_os_str()];
        let found = call(&[&run[..], &[text("--rows"), OsStr::new(&rows)]].concat());
        let found =
            found.map_err(|why| Failure::new(exit::USAGE, format!("the trial: {}", why.1)))?;
        let found: Value = serde_json::from_str(&found).or_fail(exit::FAILED)?;
        let [subcircuits, exit_code] =
            ["subcircuits", "program_exit_code"].map(|name| found[name].as_u64());
        let report = subcircuits.zip(exit_code).ok_or("`vm run` reports no numbers");
        let (subcircuits, exit_code) = report.or_fail(exit::FAILED)?;
        match (subcircuits > genesis.instances as u64, path) {
            (false, _) => {
                let circuit = genesis.circuit.clone();
                Ok(Some(Self::Program { circuit, bytes, exit_code }))
            }
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
        let (bytes, program) = match self {
            Self::Input(input) => {
                (input.read().or_fail(exit::FAILED).map_err(NoVerdict::Elsewhere)?, None)
            }
            Self::Program { circuit, bytes, exit_code } => {
                (bytes.clone(), Some((OsStr::new(circuit), exit_code.to_string())))
            }
        };
        let written = std::fs::write(&file, bytes);
        written.or_fail(exit::FAILED).map_err(NoVerdict::Elsewhere)?;
        let text = |text: &'static str| OsStr::new(text);
        let (file, proof) = (file.as_os_str(), proof.as_os_str());
        let with_keys = [text("--keys"), keys.as_os_str()];
        let prove = [&[text("prove"), file, text("--proof"), proof], &with_keys[..]].concat();
        if let Some((circuit, exit_code)) = &program {
            succeeds(&[&[*circuit], &prove[..]].concat())?;
            let verify = [*circuit, text("verify"), proof, text("--program"), file];
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
