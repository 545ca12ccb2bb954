//! The claim of a proof, and the file that has both.

use crate::address_space::OUTPUT_WORDS;
use crate::circuit::{Counts, MachineCircuit};
use crate::isa::Isa;
use crate::program::Program;
use crate::run::Run;
use crate::sizes::Sizes;
use hekaton_circuit::Fr;
use serde::{Deserialize, Serialize};

/// The first bytes of a file.
pub const MAGIC: &[u8; 8] = b"HEKATNVM";

/// The version of the format.
const VERSION: u16 = 2;

/// The claim of a proof: this program exits with this code and this output. The public input is not part of it:
/// verifiers know what they asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The digest of the program.
    pub program: [u8; 32],
    /// The number of subcircuits of each kind. Any numbers prove the same.
    pub counts: Counts,
    /// The number of words of the public input.
    pub public_words: usize,
    /// The exit code.
    pub exit_code: u32,
    /// The words of the output.
    pub output: [u32; OUTPUT_WORDS],
}

/// The reason why a file does not hold a proof about a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The file is something else.
    #[error("not the proof of a program's run: it does not begin with {}", MAGIC.escape_ascii())]
    Magic,
    /// The file is of another version.
    #[error("the format has version {0}, but this program reads version {VERSION}")]
    Version(u16),
    /// The file is damaged.
    #[error("damaged: {0}")]
    Damaged(String),
    /// The proof is about another program.
    #[error("it is about the program with digest {found}, and this one has {expected}")]
    Program {
        /// The digest in the file.
        found: String,
        /// The digest of the program.
        expected: String,
    },
    /// The proof is about a public input of another length.
    #[error("it is about a public input of {found} words, expected {expected}")]
    PublicWords {
        /// The number in the file.
        found: usize,
        /// The number of the verifier's words.
        expected: usize,
    },
}

impl Claim {
    /// Returns the claim of the proof of a run.
    pub fn of(execution: &MachineCircuit, run: &Run) -> Self {
        Self {
            program: execution.program.digest(),
            counts: execution.counts.clone(),
            public_words: execution.public_words,
            exit_code: run.exit_code(),
            output: *run.output(),
        }
    }

    /// The instruction set of the program, as the counts show it: only RV32IM has input in memory.
    pub fn isa(&self) -> Isa {
        // A wrong answer only selects other keys, for which the proof does not verify.
        if self.counts.input > 0 { Isa::Rv32im } else { Isa::TinyRam }
    }

    /// The file of a proof: magic and version, the length of the claim, the claim, the proof.
    pub fn with_proof(&self, proof: &[u8]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        let claim = self.encode();
        #[allow(clippy::cast_possible_truncation, reason = "some hundred bytes")]
        out.extend((claim.len() as u32).to_le_bytes());
        out.extend(claim);
        out.extend(proof);
        out
    }

    fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("numbers and lists of numbers have an encoding")
    }

    /// Reads the file of a proof: the claim and the proof. Neither is verified.
    ///
    /// # Errors
    /// If the file is of another kind or version, or damaged.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8]), ClaimError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(ClaimError::Magic)?;
        let ends = || ClaimError::Damaged("it ends in its header".into());
        let (version, rest) = rest.split_first_chunk().ok_or_else(ends)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(ClaimError::Version(version));
        }
        let (length, rest) = rest.split_first_chunk().ok_or_else(ends)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (claim, proof) = rest.split_at_checked(length).ok_or_else(ends)?;
        let read = Self::decode(claim).map_err(ClaimError::Damaged)?;
        let (found, expected) = (read.counts.chips.len(), read.isa().chips().len());
        if found != expected {
            let isa = read.isa().name();
            return Err(ClaimError::Damaged(format!(
                "it has numbers of subcircuits for {found} kinds of instructions, expected \
                 {expected} of {isa}"
            )));
        }
        Ok((read, proof))
    }

    /// Reads what [`encode`](Self::encode) writes, in this order and no other form.
    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut rest = bytes;
        let rest = &mut rest;
        let program = field(rest, "the digest of the program", 8)?;
        let chips = field(rest, "the subcircuits of chips", 64)?;
        let refresh = field(rest, "the subcircuits of refreshes", 64)?;
        let zero = field(rest, "the subcircuits of zero memory", 64)?;
        let input = field(rest, "the subcircuits of input", 64)?;
        let public_words = field(rest, "the public words", 64)?;
        let exit_code = field(rest, "the exit code", 32)?;
        let output = field(rest, "the output", 32)?;
        let counts = Counts { chips, refresh, zero, input };
        let read = Self { program, counts, public_words, exit_code, output };
        if !rest.is_empty() {
            return Err(format!("{} bytes follow the output in its header", rest.len()));
        }
        // One file for each claim: otherwise anyone could change a proof's bytes and leave it valid.
        match read.encode() == bytes {
            true => Ok(read),
            false => Err("a number in its header has more bytes than it needs".to_owned()),
        }
    }

    /// The circuit whose verifying key the proof is for.
    ///
    /// # Errors
    /// If the claim is about another program, or a public input of another length.
    pub fn execution(
        &self,
        program: Program,
        public_words: usize,
        sizes: Sizes,
    ) -> Result<MachineCircuit, ClaimError> {
        // The layout depends on the program, so a proof of another one would fail anyway, with a message
        // that says less.
        let digest = program.digest();
        if digest != self.program {
            let [found, expected] = [self.program, digest].map(hex::encode);
            return Err(ClaimError::Program { found, expected });
        }
        if self.public_words != public_words {
            let (found, expected) = (self.public_words, public_words);
            return Err(ClaimError::PublicWords { found, expected });
        }
        let counts = self.counts.clone();
        Ok(MachineCircuit { program, sizes, counts, public_words, max_cycles: 0 })
    }

    /// The public values that the proof is verified with: those of the claim, with this public input.
    pub fn public_values(&self, input: &[u32]) -> Vec<Fr> {
        let words = input.iter().chain([&self.exit_code]).chain(&self.output);
        words.copied().map(Fr::from).collect()
    }
}

/// Takes a field off the front of a header, which has numbers of at most this many bits.
fn field<'d, T: Deserialize<'d>>(rest: &mut &'d [u8], name: &str, bits: u32) -> Result<T, String> {
    let (value, after) = postcard::take_from_bytes(rest).map_err(|e| match e {
        postcard::Error::DeserializeUnexpectedEnd => format!("its header ends in {name}"),
        _ => format!("a number in {name} has more than {bits} bits"),
    })?;
    *rest = after;
    Ok(value)
}
