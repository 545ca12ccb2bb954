//! The run of a program: its files, its claim, and its circuit.

use super::circuit::OnInput;
use super::files::{optional, program, public_words};
use super::keys;
use super::lines::Lines;
use super::options::MachineInput;
use super::shape::Shape;
use hekaton_app::product::{OpenedKeys, Parts, Subject};
use hekaton_circuit::Fr;
use hekaton_circuit::named::InputFile;
use hekaton_core::LocalEngine;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, count};
use hekaton_terminal::shell;
use hekaton_vm::{
    Claim, Counts, Input, MAX_CYCLES, MachineCircuit, OUTPUT_WORDS, Observer, Output, Profile,
    Program, Run, RunError, Sizes, TrapReason, run_observed,
};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A run that ended, and the bytes of its output; `None` if the words have a digest and the program did not show the bytes.
pub(crate) struct Executed {
    pub(crate) run: Run,
    pub(crate) output: Option<Vec<u8>>,
}

/// The text and output that a program shows.
struct Shown {
    shows_text: bool,
    output: Option<Vec<u8>>,
}

impl Observer for Shown {
    fn wants_text(&self) -> bool {
        self.shows_text
    }

    fn text(&mut self, text: &[u8]) {
        output::text(&String::from_utf8_lossy(text));
    }

    fn output(&mut self, output: &[u8]) {
        self.output = Some(output.to_vec());
    }
}

/// The run of a program on an input.
pub(crate) struct ProgramRun {
    path: PathBuf,
    options: MachineInput,
    /// The bytes of the program and of both inputs.
    files: [Vec<u8>; 3],
    program: Program,
    pub(crate) input: Input,
    shape: Option<Shape>,
    /// The claim of the proof, once the program was executed.
    claim: OnceLock<Claim>,
}

impl ProgramRun {
    /// Reads the files of a run.
    pub(crate) fn open(path: &Path, options: &MachineInput) -> Result<Self, Failure> {
        let (program, elf) = program(path)?;
        let (public, public_bytes) = public_words(options.public_input.as_deref())?;
        let private = optional(options.input.as_deref())?;
        let shape = match &options.shape {
            Some(path) => Some(Shape::read(path, program.isa())?),
            None => None,
        };
        let files = [elf, public_bytes, private.clone()];
        let input = Input { public, private };
        let (path, options) = (path.to_owned(), options.clone());
        Ok(Self { path, options, files, program, input, shape, claim: OnceLock::new() })
    }

    /// The files of the input.
    pub(crate) fn input_files(&self) -> impl Iterator<Item = &Path> {
        let MachineInput { input, public_input, shape, .. } = &self.options;
        [input, public_input, shape].into_iter().filter_map(|path| path.as_deref())
    }

    /// Executes the program. What it prints is shown, and the error for a trap has the registers, only if `shows_secrets`:
    /// they may hold parts of the private input, which must not get into logs.
    pub(crate) fn run(&self, sizes: Sizes, shows_secrets: bool) -> Result<Executed, Failure> {
        self.check_input(sizes)?;
        let mut shown = Shown { shows_text: shows_secrets, output: None };
        let run = run_observed(&self.program, &self.input, self.options.max_cycles, &mut shown);
        let run = run.map_err(|e| {
            let why = match e {
                RunError::Trap(mut trap) => {
                    if let Some(line) = self.lines().and_then(|lines| lines.at(trap.pc)) {
                        trap.place += &format!(" at {line}");
                    }
                    if !shows_secrets {
                        trap.registers = "; `hekaton vm run` shows the registers".to_owned();
                    }
                    match trap.reason {
                        TrapReason::TooLong(cycles) if cycles < MAX_CYCLES => {
                            trap.registers.insert_str(0, "; --max-cycles allows more");
                        }
                        TrapReason::TooLong(_) => {
                            trap.registers.insert_str(0, ", the maximum of a proof");
                        }
                        _ => {}
                    }
                    trap.to_string()
                }
                e => e.to_string(),
            };
            Failure::new(exit::FAILED, format!("{}: {why}", self.path.display()))
        })?;
        let output = match Output::of(run.output()) {
            Output::Words(words) => {
                Some(words.iter().flat_map(|word| word.to_le_bytes()).collect())
            }
            Output::Bytes(bytes) => Some(bytes),
            // The words are what is proven: what the program showed must be what they say.
            digest @ Output::Digest { .. } => shown.output.filter(|bytes| digest.is(bytes)),
        };
        Ok(Executed { run, output })
    }

    /// Profiles the run.
    pub(crate) fn profile(&self, sizes: Sizes) -> Result<Profile, Failure> {
        Profile::of(&self.program, &self.input, self.options.max_cycles, sizes)
            .or_fail(exit::FAILED)
    }

    /// The lines of the source that addresses come from, as far as the file says.
    pub(crate) fn lines(&self) -> Option<Lines<'_>> {
        Lines::of(&self.files[0])
    }

    /// The program.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Refuses, before anything is executed, an input that does not fit in front of the output.
    fn check_input(&self, sizes: Sizes) -> Result<(), Failure> {
        let Input { public, private } = &self.input;
        let (found, most) = (private.len(), sizes.private_room(self.program.isa(), public.len()));
        if found <= most {
            return Ok(());
        }
        let name = match &self.options.input {
            Some(path) => path.display().to_string(),
            None => "the private input".to_owned(),
        };
        let why = format!(
            "{found} bytes of private input: with {} public words and subcircuits of {} constraints, there is room for \
             {most}",
            public.len(),
            sizes.rows
        );
        Err(Failure::new(exit::BAD_FILE, format!("{name}: {why}")))
    }

    /// The circuit of this run, once it was executed.
    pub(crate) fn execution(&self, run: &Run, sizes: Sizes) -> Result<MachineCircuit, Failure> {
        let needed = Counts::of(run, &self.program, &self.input, sizes);
        let counts = match &self.shape {
            Some(shape) => shape.fit(needed)?,
            None => needed,
        };
        let execution = MachineCircuit {
            program: self.program.clone(),
            sizes,
            counts,
            public_words: self.input.public.len(),
            max_cycles: self.options.max_cycles,
        };
        // Counts of a run are within the limits of the circuit unless the program is too large; those of a shape can be
        // anything.
        let path = self.shape.as_ref().map_or(&self.path, |shape| &shape.path);
        match execution.check() {
            Ok(()) => Ok(execution),
            Err(e) => Err(Failure::new(exit::FAILED, format!("{}: {e}", path.display()))),
        }
    }

    /// Derives the keys for this run from a family.
    fn derive(&self, path: &Path, engine: &LocalEngine) -> Result<Parts, Failure> {
        let (family, kind) = keys::open(path)?;
        let Executed { run, .. } = self.run(kind.sizes, false)?;
        let execution = self.execution(&run, kind.sizes)?;
        keys::check(&family, kind, &execution)?;
        // If keys are opened twice, the second claim is equal: a run is deterministic.
        let _ = self.claim.set(Claim::of(&execution, &run));
        let circuit = OnInput { execution, input: self.input.clone() };
        let (manifest, prover_keys) = keys::derive(&family, &circuit.execution, engine)?;
        Ok((manifest, prover_keys, Box::new(circuit), shell::path(&family.path)))
    }

    /// The claim of the run.
    fn proven(&self) -> &Claim {
        self.claim
            .get()
            .expect("opening the keys executes the program, and nothing is proven before")
    }
}

impl Subject for ProgramRun {
    /// The program and both inputs, each after its length: without the lengths, two runs could have the same bytes, and
    /// one could resume the run directory of the other.
    fn input(&self, _: &Path) -> Result<InputFile, Failure> {
        let mut bytes = Vec::new();
        for file in &self.files {
            bytes.extend((file.len() as u64).to_le_bytes());
            bytes.extend(file);
        }
        Ok(InputFile::from_bytes(bytes))
    }

    fn files(&self) -> Vec<&Path> {
        self.input_files().collect()
    }

    fn open(
        &self,
        keys: &Path,
        threads: Option<NonZeroUsize>,
        limit: Option<u64>,
        _: Option<&InputFile>,
    ) -> Result<OpenedKeys, Failure> {
        OpenedKeys::with(threads, limit, true, |engine| self.derive(keys, engine))
    }

    fn read_by_ranks(&self) -> &'static str {
        "every rank reads the program and its input"
    }

    fn wraps(&self) -> bool {
        true
    }

    fn file(&self, proof: &[u8]) -> Vec<u8> {
        self.proven().with_proof(proof)
    }

    fn show_public(&self, _: &str, _: &[Fr]) -> Option<String> {
        Some(result(self.proven()))
    }

    fn verify_command(&self, proof: &Path, key: &str, _: &str) -> String {
        let (proof, program) = (shell::path(proof), shell::path(&self.path));
        let public = match &self.options.public_input {
            Some(path) => format!(" --public-input {}", shell::path(path)),
            None => String::new(),
        };
        // `vm verify` expects 0 unless told otherwise.
        let exit_code = match self.proven().exit_code {
            0 => String::new(),
            code => format!(" --exit-code {code}"),
        };
        format!("vm verify {proof} --program {program} --keys {key}{public}{exit_code}")
    }
}

/// Formats the result of a program: the exit code, and the output: its words without the zeros at the end, its bytes, or their
/// digest.
pub(crate) fn result(claim: &Claim) -> String {
    let output = match Output::of(&claim.output) {
        Output::Words(words) => {
            let zeros = words.iter().rev().take_while(|word| **word == 0).count();
            let words = words[..OUTPUT_WORDS - zeros].iter();
            words.map(|word| format!(" {word:#x}")).collect()
        }
        Output::Bytes(bytes) if bytes.is_empty() => " of 0 bytes".to_owned(),
        Output::Bytes(bytes) => {
            let unit = if bytes.len() == 1 { "byte" } else { "bytes" };
            format!(" of {} {unit}: {}", bytes.len(), hex::encode(bytes))
        }
        Output::Digest { sha256, length } => {
            format!(" of {} bytes with SHA-256 {}", count(length.into()), hex::encode(sha256))
        }
    };
    match output.as_str() {
        "" => format!("exit code {}", claim.exit_code),
        output => format!("exit code {}, output{output}", claim.exit_code),
    }
}

/// The output of a claim as JSON: its bytes or their digest; `null` for a program that writes words.
pub(crate) fn output_json(claim: &Claim) -> Value {
    match Output::of(&claim.output) {
        Output::Words(_) => Value::Null,
        Output::Bytes(bytes) => json!({ "bytes": bytes.len(), "hex": hex::encode(bytes) }),
        Output::Digest { sha256, length } => {
            json!({ "bytes": length, "sha256": hex::encode(sha256) })
        }
    }
}
