//! Programs of the machine: their files, runs, and the keys for them.

use crate::exit::{self, Failure, OrFail};
use crate::family::OpenedFamily;
use crate::opened_keys::{OpenedKeys, Parts};
use crate::options::MachineInput;
use crate::programs::{Kind, NAME, OnInput, kind};
use crate::terminal::shell;
use hekaton_circuit::PreparedCircuit;
use hekaton_circuit::named::{InputFile, ParameterMap};
use hekaton_core::{DeriveError, LocalEngine, Proof, VerifyingKey, derive};
use hekaton_storage::{FamilyStore, Manifest};
use hekaton_vm::{
    Claim, Counts, Input, Isa, MAX_CYCLES, MAX_PUBLIC, MachineCircuit, OUTPUT_WORDS, Program,
    ProgramError, Run, RunError, Sizes, TrapReason, run,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The largest program and input that are read, in bytes: more has no place in the machine's memory.
pub(crate) const FILE_LIMIT: u64 = 256 << 20;

/// The limits on the files of programs and of inputs, in words.
const OF_PROGRAMS: &str = " (256 MiB), which is the most for the file of a program";
const OF_INPUTS: &str =
    " (256 MiB), which is the most for an input: the machine has no memory for more";

/// The first characters of programs of TinyRAM.
const TINYRAM: &str = "; TinyRAM";

/// A program with the input of a run.
pub(crate) struct Machine {
    path: PathBuf,
    options: MachineInput,
    /// The bytes of program and input.
    files: [Vec<u8>; 3],
    program: Program,
    pub(crate) input: Input,
    shape: Option<Shape>,
    /// The claim of the proof, once the program has run.
    claim: OnceLock<Claim>,
}

/// Reads a program.
pub(crate) fn program(path: &Path) -> Result<(Program, Vec<u8>), Failure> {
    let bytes = read_program(path)?;
    Ok((program_of(path, &bytes)?, bytes))
}

/// Reads the file of a program.
pub(crate) fn read_program(path: &Path) -> Result<Vec<u8>, Failure> {
    exit::read_limited(path, FILE_LIMIT, OF_PROGRAMS)
}

/// Reads a program from the bytes of its file.
pub(crate) fn program_of(path: &Path, bytes: &[u8]) -> Result<Program, Failure> {
    let program = if bytes.starts_with(TINYRAM.as_bytes()) {
        let text = std::str::from_utf8(bytes).map_err(|e| {
            format!("a program for TinyRAM, but byte {} is not text in UTF-8", e.valid_up_to())
        });
        text.and_then(|text| Program::from_tinyram(text).map_err(|e| e.to_string()))
    } else {
        Program::from_elf(bytes).map_err(|e| match e {
            ProgramError::NotElf => format!("{e}, nor, as a program for TinyRAM, with '{TINYRAM}'"),
            e => e.to_string(),
        })
    };
    program.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)
}

/// The words of a public input: the bytes of a file, the last word filled up with zeros.
pub(crate) fn public_words(path: Option<&Path>) -> Result<(Vec<u32>, Vec<u8>), Failure> {
    let bytes = optional(path)?;
    let words = bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    });
    let words: Vec<u32> = words.collect();
    match words.len() {
        0..=MAX_PUBLIC => Ok((words, bytes)),
        found => {
            let name = path.map(|path| path.display().to_string()).unwrap_or_default();
            let why = format!(
                "a public input of {} bytes, in {found} words, and at most {MAX_PUBLIC} words (4 MiB) \
                 have room",
                bytes.len()
            );
            Err(Failure::new(exit::BAD_FILE, format!("{name}: {why}")))
        }
    }
}

fn optional(path: Option<&Path>) -> Result<Vec<u8>, Failure> {
    path.map_or(Ok(Vec::new()), |path| exit::read_limited(path, FILE_LIMIT, OF_INPUTS))
}

/// The numbers of subcircuits of each kind, whatever a run needs, so that its proof says nothing about which
/// instructions were executed.
struct Shape {
    path: PathBuf,
    isa: Isa,
    counts: BTreeMap<String, usize>,
}

impl Shape {
    /// Reads a JSON object with a number for each kind.
    fn read(path: &Path, isa: Isa) -> Result<Self, Failure> {
        let failure =
            |why: String| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
        let bytes = exit::read_at_most(path, exit::PROOF_LIMIT)?;
        let counts: BTreeMap<String, usize> = serde_json::from_slice(&bytes).map_err(|e| {
            let expected = "expected a JSON object with a number for each kind, as `vm run --json` \
                            has it in \"counts\"";
            failure(format!("{e}; {expected}"))
        })?;
        let mut known = MachineCircuit::of_family(isa, Sizes::SMALL).counts;
        if let Some(name) = counts.keys().find(|name| !known.raise(isa, name, 0)) {
            return Err(failure(format!("there is no kind '{name}'")));
        }
        match known.by_name(isa).find(|(name, _)| !counts.contains_key(*name)) {
            Some((name, _)) => Err(failure(format!("there is no number for kind '{name}'"))),
            None => Ok(Self { path: path.to_owned(), isa, counts }),
        }
    }

    /// The counts of a run that needs these, which must not be more.
    fn fit(&self, mut needed: Counts) -> Result<Counts, Failure> {
        let too_many = needed.by_name(self.isa).find(|(name, count)| *count > self.counts[*name]);
        if let Some((name, count)) = too_many {
            let (path, given) = (self.path.display(), self.counts[name]);
            let why = format!("the run needs {count} subcircuits of kind '{name}', not {given}");
            return Err(Failure::new(exit::FAILED, format!("{path}: {why}")));
        }
        for (name, count) in &self.counts {
            needed.raise(self.isa, name, *count);
        }
        Ok(needed)
    }
}

/// The numbers of subcircuits of each kind, as JSON.
pub(crate) fn counts_json(isa: Isa, counts: &Counts) -> Value {
    counts
        .by_name(isa)
        .map(|(name, count)| (name.to_owned(), json!(count)))
        .collect::<ParameterMap>()
        .into()
}

impl Machine {
    /// Reads the files of a run.
    pub(crate) fn open(path: &Path, options: &MachineInput) -> Result<Self, Failure> {
        let (program, elf) = program(path)?;
        let (public, public_bytes) = public_words(options.public_input.as_deref())?;
        let private = optional(options.input.as_deref())?;
        let shape = options.shape.as_deref().map(|path| Shape::read(path, program.isa()));
        let shape = shape.transpose()?;
        let files = [elf, public_bytes, private.clone()];
        let input = Input { public, private };
        let (path, options) = (path.to_owned(), options.clone());
        Ok(Self { path, options, files, program, input, shape, claim: OnceLock::new() })
    }

    /// Program and input, one after the other with their lengths.
    pub(crate) fn everything(&self) -> InputFile {
        let mut bytes = Vec::new();
        for file in &self.files {
            bytes.extend((file.len() as u64).to_le_bytes());
            bytes.extend(file);
        }
        InputFile::from_bytes(bytes)
    }

    /// The files of the input.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let MachineInput { input, public_input, shape, .. } = &self.options;
        [input, public_input, shape].into_iter().filter_map(|path| path.as_deref())
    }

    /// The first pass. A trap shows the registers only if `registers`: they may hold parts of the private
    /// input, which does not belong into logs.
    pub(crate) fn run(&self, sizes: Sizes, registers: bool) -> Result<Run, Failure> {
        self.check_input(sizes)?;
        let found = run(&self.program, &self.input, self.options.max_cycles);
        found.map_err(|e| {
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
                            trap.registers.insert_str(0, ", the most that a proof is about");
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

    /// Refuses, before anything is executed, an input that has no room in front of the output.
    fn check_input(&self, sizes: Sizes) -> Result<(), Failure> {
        let Input { public, private } = &self.input;
        let (found, most) = (private.len(), sizes.private_room(self.program.isa(), public.len()));
        if found <= most {
            return Ok(());
        }
        let name = self.options.input.as_deref().map(Path::display);
        let name = name.map_or_else(|| "the private input".to_owned(), |name| name.to_string());
        let why = format!(
            "{found} bytes of private input: with {} public words and subcircuits of {} constraints, there is room for \
             {most}",
            public.len(),
            sizes.rows
        );
        Err(Failure::new(exit::BAD_FILE, format!("{name}: {why}")))
    }

    /// The circuit of a run.
    pub(crate) fn execution(&self, run: &Run, sizes: Sizes) -> Result<MachineCircuit, Failure> {
        let counts = Counts::of(run, &self.program, &self.input, sizes);
        let counts = match &self.shape {
            Some(shape) => shape.fit(counts)?,
            None => counts,
        };
        let execution = MachineCircuit {
            program: self.program.clone(),
            sizes,
            counts,
            public_words: self.input.public.len(),
            max_cycles: self.options.max_cycles,
        };
        // A shape may ask for more than any run could need.
        let path = self.shape.as_ref().map_or(&self.path, |shape| &shape.path);
        match execution.check() {
            Ok(()) => Ok(execution),
            Err(e) => Err(Failure::new(exit::FAILED, format!("{}: {e}", path.display()))),
        }
    }

    /// The keys for this run, derived from a family.
    fn derive(&self, keys: &Path, engine: &LocalEngine) -> Result<Parts, Failure> {
        let family = MachineFamily::open(keys)?;
        let run = self.run(family.sizes, false)?;
        let execution = self.execution(&run, family.sizes)?;
        family.check(&execution)?;
        // Set twice only if keys are opened twice, with the same result.
        let _ = self.claim.set(Claim::of(&execution, &run));
        let circuit = OnInput { execution, input: self.input.clone() };
        let (manifest, keys) = family.derive(&circuit.execution, engine)?;
        Ok((manifest, keys, Box::new(circuit), shell::path(&family.path)))
    }

    /// Opens the keys for this run.
    pub(crate) fn with_keys(
        &self,
        keys: &Path,
        threads: Option<NonZeroUsize>,
        limit: Option<u64>,
    ) -> Result<OpenedKeys, Failure> {
        OpenedKeys::with(threads, limit, |engine| self.derive(keys, engine))
    }

    /// The file of a proof.
    pub(crate) fn file(&self, proof: &[u8]) -> Vec<u8> {
        self.proven().with_proof(proof)
    }

    /// Returns the claim of the proof, for people.
    pub(crate) fn show(&self) -> String {
        result(self.proven())
    }

    /// The claim of the run.
    fn proven(&self) -> &Claim {
        self.claim.get().expect("opening the keys runs the program, and nothing is proven before")
    }

    /// The arguments of the command that verifies a proof; paths are words of a shell.
    pub(crate) fn verify_command(&self, proof: &str, key: &str) -> String {
        let program = shell::path(&self.path);
        let mut out = format!("vm verify {proof} --program {program} --keys {key}");
        // Writing to a string does not fail.
        if let Some(path) = &self.options.public_input {
            let _ = write!(out, " --public-input {}", shell::path(path));
        }
        if let Some(code) = self.claim.get().map(|claim| claim.exit_code).filter(|code| *code != 0)
        {
            let _ = write!(out, " --exit-code {code}");
        }
        out
    }
}

/// Describes what a program left: the exit code, and the words of the output, without zeros at the end.
pub(crate) fn result(claim: &Claim) -> String {
    let mut out = format!("exit code {}", claim.exit_code);
    let words = OUTPUT_WORDS - claim.output.iter().rev().take_while(|word| **word == 0).count();
    if words > 0 {
        let words: Vec<String> =
            claim.output[..words].iter().map(|word| format!("{word:#x}")).collect();
        let _ = write!(out, ", output {}", words.join(" "));
    }
    out
}

/// A key family of the machine.
pub(crate) struct MachineFamily {
    path: PathBuf,
    opened: OpenedFamily,
    pub(crate) sizes: Sizes,
    isa: Isa,
}

impl MachineFamily {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| {
            let why = format!("{}: {why}; `hekaton vm setup` makes keys", path.display());
            Failure::new(exit::BAD_FILE, why)
        };
        if !FamilyStore::is_one(path) {
            return Err(wrong("not a key family".into()));
        }
        let opened = OpenedFamily::open(path)?;
        if opened.manifest.circuit != NAME {
            return Err(wrong(format!("its keys are for circuit '{}'", opened.manifest.circuit)));
        }
        let Kind { sizes, isa, .. } = kind(&opened.manifest.parameters).map_err(wrong)?;
        Ok(Self { path: path.to_owned(), opened, sizes, isa })
    }

    pub(crate) fn digest(&self) -> Result<[u8; 32], Failure> {
        self.opened.digest()
    }

    /// Refuses what the family has no keys for, before anything is laid out.
    pub(crate) fn check(&self, execution: &MachineCircuit) -> Result<(), Failure> {
        self.check_isa(execution.program.isa())?;
        let (found, most) = (execution.subcircuits(), self.max_subcircuits());
        if found <= most {
            return Ok(());
        }
        let larger = found.checked_next_power_of_two().unwrap_or(found);
        let why = DeriveError::TooMany { found, most };
        let hint = format!("`hekaton vm setup --subcircuits {larger}` makes keys that do");
        Err(Failure::new(exit::FAILED, format!("{}: {why}; {hint}", self.path.display())))
    }

    /// Refuses programs of the other instruction set.
    fn check_isa(&self, isa: Isa) -> Result<(), Failure> {
        let (isa, expected) = (self.isa.name(), isa.name());
        if isa == expected {
            return Ok(());
        }
        let why = format!("its keys are for programs for {isa}, and this one is for {expected}");
        let hint = format!("`hekaton vm setup --isa {expected}` makes keys for it");
        Err(Failure::new(exit::FAILED, format!("{}: {why}; {hint}", self.path.display())))
    }

    /// The maximum number of subcircuits of a run.
    fn max_subcircuits(&self) -> usize {
        self.opened.manifest.max_instances
    }

    /// Refuses a proof that these keys cannot have made, before anything is laid out or computed: its counts come from
    /// anyone. Errors are about the file of the proof; the keys were opened and are what the verifier trusts.
    pub(crate) fn check_proof(
        &self,
        path: &Path,
        execution: &MachineCircuit,
        proof: &[u8],
    ) -> Result<(), Failure> {
        self.check_isa(execution.program.isa())?;
        let failure =
            |why: String| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
        execution.check().map_err(|e| failure(format!("damaged: {e}")))?;
        let (found, most) = (execution.subcircuits(), self.max_subcircuits());
        let keys = self.path.display();
        if found > most {
            return Err(failure(format!(
                "it says that the run has {found} subcircuits, but {keys} has keys for at most {most}: it was made with \
                 other keys, or is damaged"
            )));
        }
        let rounds = found.next_power_of_two().ilog2() as usize;
        let (found, expected) = (proof.len(), Proof::encoded_len(rounds));
        if found == expected {
            return Proof::key_digest(proof).map(drop).map_err(|e| failure(e.to_string()));
        }
        // Lengths of proofs of other numbers of subcircuits.
        let is_other = (0..usize::BITS as usize).any(|rounds| Proof::encoded_len(rounds) == found);
        let why = if is_other {
            format!(
                "it was made with keys of another family than {keys}, or the counts in its header are damaged"
            )
        } else if found < expected {
            "it is cut off, or was made with other keys".to_owned()
        } else {
            "something follows it, or it was made with other keys".to_owned()
        };
        Err(failure(format!("its proof has {found} bytes, expected {expected}: {why}")))
    }

    fn parameters(execution: &MachineCircuit) -> String {
        let digest = hex::encode(execution.program.digest());
        json!({ "rows": execution.sizes.rows, "program": digest }).to_string()
    }

    fn derive(
        &self,
        execution: &MachineCircuit,
        engine: &LocalEngine,
    ) -> Result<(Manifest, hekaton_core::ProverKeys), Failure> {
        let prepared = PreparedCircuit::new(execution).or_fail(exit::FAILED)?;
        let OpenedFamily { path, manifest, key } = &self.opened;
        let parameters = Self::parameters(execution);
        FamilyStore::derive(path, (manifest, key), &prepared, &parameters, engine)
            .map_err(|e| crate::family::failed(&e))
    }

    /// Returns whom one must trust for the keys to be sound.
    pub(crate) fn trust(&self) -> &str {
        &self.opened.manifest.trust
    }

    /// The verifying key of a circuit that was [checked](Self::check).
    pub(crate) fn verifying_key(
        &self,
        execution: &MachineCircuit,
        engine: &LocalEngine,
    ) -> Result<VerifyingKey, Failure> {
        let prepared = PreparedCircuit::new(execution).or_fail(exit::BAD_FILE)?;
        let keys = derive(&self.opened.key, &prepared, &Self::parameters(execution), engine);
        keys.map(|(_, key)| key).map_err(|e| crate::family::failed(&e.into()))
    }
}
