//! The run of a program: its files, its claim, and its circuit.

use super::circuit::OnInput;
use super::files::{optional, program, public_words};
use super::keys;
use super::shape::Shape;
use crate::opened_keys::{OpenedKeys, Parts};
use crate::options::MachineInput;
use crate::subject::Subject;
use hekaton_circuit::Fr;
use hekaton_circuit::named::InputFile;
use hekaton_core::LocalEngine;
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::shell;
use hekaton_vm::{
    Claim, Counts, Input, MAX_CYCLES, MachineCircuit, OUTPUT_WORDS, Program, Run, RunError, Sizes,
    TrapReason, run,
};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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

    /// Executes the program. The error for a trap has the registers only if `registers`: they may hold parts of the
    /// private input, which must not get into logs.
    pub(crate) fn run(&self, sizes: Sizes, registers: bool) -> Result<Run, Failure> {
        self.check_input(sizes)?;
        run(&self.program, &self.input, self.options.max_cycles).map_err(|e| {
            let why = match e {
                RunError::Trap(mut trap) => {
                    if !registers {
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
        })
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
        let run = self.run(kind.sizes, false)?;
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
        OpenedKeys::with(threads, limit, |engine| self.derive(keys, engine))
    }

    #[cfg(feature = "mpi")]
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

/// Formats the result of a program: the exit code, and the words of the output without the zeros at its end.
pub(crate) fn result(claim: &Claim) -> String {
    let zeros = claim.output.iter().rev().take_while(|word| **word == 0).count();
    let words = &claim.output[..OUTPUT_WORDS - zeros];
    match words {
        [] => format!("exit code {}", claim.exit_code),
        words => {
            let shown: Vec<String> = words.iter().map(|word| format!("{word:#x}")).collect();
            format!("exit code {}, output {}", claim.exit_code, shown.join(" "))
        }
    }
}
