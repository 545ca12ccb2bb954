//! `hekaton vm`.

use clap::{Args, Subcommand, ValueEnum};
use hekaton_app::product::{NewKeys, Prove, help_after, key_digest, rows};
use hekaton_terminal::options::{THREADS, Threads};
use hekaton_vm::{Isa, MAX_CYCLES, Sizes};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  hekaton vm cc program.c --output program          # or compile it yourself
  hekaton vm setup --keys vm.keys                   # once, for all programs
  hekaton vm run program --input FILE               # without a proof
  hekaton vm prove program --input FILE --keys vm.keys
  hekaton vm verify program.proof --program program --keys vm.keys

docs/guide/programs.md explains how to write programs.")]
pub(crate) enum Vm {
    /// Compile a C program, with clang or GCC
    Cc(VmCc),
    /// Generate the keys for all programs (anyone who runs this could forge proofs under them)
    Setup(VmSetup),
    /// Run a program without proving: its result, its instructions, and the size of its proof
    Run(VmRun),
    /// Prove the run of a program
    // Boxed: with the options of `prove`, it is several times as large as the other variants.
    Prove(Box<VmProve>),
    /// Verify that a program exits with a code and an output
    Verify(VmVerify),
    /// Show the claim of a proof, or the contents of a program, without verifying anything
    Inspect(VmInspect),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton vm setup --keys vm.keys
  hekaton vm setup --rows 2^12 --subcircuits 256 --keys small.keys   # for short runs

Setup draws secret trapdoors and deletes them. Anyone who runs it could keep
them and forge proofs, so run it where the verifiers trust it.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct VmSetup {
    /// The instruction set of the programs
    // Its chips are types of the family, so keys are for one instruction set.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) isa: IsaOption,
    /// Maximum number of constraints of a subcircuit, from 2^12 to 2^28. Larger subcircuits are fewer,
    /// but take more memory to prove and more time to set up. With 2^17, keys take 2.5 GB on disk, and a
    /// prover takes 130 MB of memory
    #[arg(long, value_name = "N", value_parser = machine_rows, default_value = "2^17")]
    pub(crate) rows: u64,
    /// Maximum number of subcircuits of a run, from 64 to 2^24. With 2^17 rows, each subcircuit proves
    /// about 6,000 cycles
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(64..=1 << 24),
        default_value_t = 4096
    )]
    pub(crate) subcircuits: u64,
    #[command(flatten)]
    pub(crate) new: NewKeys,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton vm cc program.c --output program
  hekaton vm cc main.c parser.c --output program -- -O3 -g -DSTACK_SIZE=0x100000

Needs clang and lld, or GCC: `sudo apt-get install clang lld`. 64-bit division, floating
point and the C library need `sudo apt-get install gcc-riscv64-unknown-elf
picolibc-riscv64-unknown-elf`; string.h, stdlib.h, math.h, setjmp.h and snprintf are then
available. `#include \"hekaton.h\"` provides input, output, hash functions
and arithmetic of large numbers.

Verifiers need the compiled file: the program, and so its digest, depends on the compiler,
its version and options, and whether the C library is installed.")]
pub(crate) struct VmCc {
    /// The files: C, assembly, object files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write the program to this file
    #[arg(long, short, value_name = "PROGRAM")]
    pub(crate) output: PathBuf,
    /// The compiler [default: clang if it is installed, otherwise GCC]
    #[arg(long, value_enum)]
    pub(crate) compiler: Option<Compiler>,
    /// Options for the compiler, such as -O3, passed after -O2
    #[arg(last = true, value_name = "OPTION")]
    pub(crate) options: Vec<OsString>,
}

/// A compiler with its linker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compiler {
    /// clang with lld
    Clang,
    /// riscv64-unknown-elf-gcc
    Gcc,
}

/// An instruction set.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum IsaOption {
    /// RV32IM of RISC-V, as compilers generate it
    #[default]
    Rv32im,
    /// vnTinyRAM, with words of 32 bits and 16 registers
    Tinyram,
}

impl From<IsaOption> for Isa {
    fn from(option: IsaOption) -> Self {
        match option {
            IsaOption::Rv32im => Self::Rv32im,
            IsaOption::Tinyram => Self::TinyRam,
        }
    }
}

/// Parses [`rows`] of a subcircuit that has room for any instruction.
fn machine_rows(text: &str) -> Result<u64, String> {
    let least = Sizes::SMALL.rows as u64;
    match rows(text) {
        Ok(number) if number >= least => Ok(number),
        _ => Err("expected a number in 2^12..=2^28, or a power such as 2^17".to_owned()),
    }
}

/// The inputs on which a program runs.
#[derive(Clone, Debug, Args)]
pub(crate) struct MachineInput {
    /// The private input, slightly less than 256 MiB: at 0x20000000, after the public input, the number
    /// of its bytes, then the bytes; for TinyRAM, tape 1
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// The public input, up to 4 MiB, which verifiers must have: at 0x20000000, padded with zeros to
    /// whole words
    #[arg(long, value_name = "FILE")]
    pub(crate) public_input: Option<PathBuf>,
    /// Give up after this many cycles, at most 4294967287 (2^32 - 9)
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=MAX_CYCLES),
        default_value_t = 1 << 28
    )]
    pub(crate) max_cycles: u64,
    /// Use the numbers of subcircuits of each kind in this JSON object, such as "counts" in the output of
    /// `vm run --json`. These numbers are public in a proof, and show roughly how often each kind of
    /// instruction was executed; all proofs of one shape have the same numbers. A run that does not fit
    /// fails
    #[arg(long, value_name = "FILE")]
    pub(crate) shape: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton vm run program --input FILE --keys vm.keys")]
pub(crate) struct VmRun {
    /// The program: a statically linked ELF file for rv32im, or assembly for TinyRAM that begins with
    /// "; TinyRAM"
    pub(crate) program: PathBuf,
    #[command(flatten)]
    pub(crate) input: MachineInput,
    /// Count the subcircuits that a proof under these keys has
    #[arg(long, value_name = "DIR", conflicts_with = "rows")]
    pub(crate) keys: Option<PathBuf>,
    /// Count subcircuits of at most this many constraints, from 2^12 to 2^28
    #[arg(long, value_name = "N", value_parser = machine_rows, default_value = "2^17")]
    pub(crate) rows: u64,
    /// Also measure this machine for two seconds, and estimate time and memory of a proof
    #[arg(long)]
    pub(crate) estimate: bool,
    /// Write the output to this file, as bytes
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also show the functions and loops that cost most, and draw flame graphs: in constraints to this
    /// file, and in cycles to the same name with .cycles.svg
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) profile: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
#[command(
    after_help = help_after(
        "Examples:
  hekaton vm prove program --input FILE --keys vm.keys --proof FILE.proof
  hekaton vm prove program --input FILE --keys vm.keys --run DIR           # can be interrupted
  hekaton vm prove program --input FILE --keys vm.keys --run DIR --resume  # resumes it"
    ),
    mut_arg("file", |file| {
        file.value_name("PROGRAM").help(
            "The program: a statically linked ELF file for rv32im, or assembly for TinyRAM that begins \
             with \"; TinyRAM\"",
        )
    }),
    mut_arg("keys", |keys| keys.help("The keys, written by `vm setup`")),
    mut_arg("proof", |proof| proof.help("Write the proof to this file [default: PROGRAM.proof]")),
    mut_arg("execute", |execute| {
        execute.help(
            "The ranks that execute the program. ranks: all of them, each of which replays the part that its \
             subcircuits prove; root: rank 0, which sends these parts to the others; auto: ranks",
        )
    })
)]
pub(crate) struct VmProve {
    #[command(flatten)]
    pub(crate) prove: Prove,
    #[command(flatten)]
    pub(crate) input: MachineInput,
}

#[derive(Debug, Args)]
#[command(after_help = help_after(
    "Example:
  hekaton vm verify program.proof --program program --keys vm.keys

The proof may come from anyone. The keys must come from a setup that you trust: those
who ran it could forge proofs under them. The program is the statement: verify with
the file that you compiled.",
))]
pub(crate) struct VmVerify {
    /// The proof
    pub(crate) proof: PathBuf,
    /// The program
    #[arg(long, value_name = "FILE")]
    pub(crate) program: PathBuf,
    /// The keys, of which verifiers need family.json and family.key
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// The public input
    #[arg(long, value_name = "FILE")]
    pub(crate) public_input: Option<PathBuf>,
    /// The exit code that the program must have
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) exit_code: u32,
    /// The output that the program must have, as `vm run --output` writes it
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Refuse keys without this digest, which setup printed
    #[arg(long, value_name = "HEX", value_parser = key_digest)]
    pub(crate) key_digest: Option<[u8; 32]>,
    /// Accept keys made for tests, under which anyone can forge proofs
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VmInspect {
    /// The proof, or the program
    pub(crate) file: PathBuf,
}
