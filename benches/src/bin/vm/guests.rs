//! The programs, and inputs that make as many cycles of them as asked for.

use hekaton_testing::{noise, squares};
use hekaton_vm::{Input, Program, run};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// The most cycles that a guest may take.
pub(crate) const MAX_CYCLES: u64 = 1 << 30;

/// A program with an input.
pub(crate) struct Guest {
    pub(crate) name: String,
    pub(crate) elf: Vec<u8>,
    pub(crate) input: Input,
    /// Compiled for Linux, and for the memory of ckb-vm.
    pub(crate) linux: PathBuf,
    pub(crate) small: PathBuf,
}

/// The addresses of the input and the output of ckb-vm's programs.
pub(crate) const SMALL_INPUT: u32 = 0x20_0000;
pub(crate) const SMALL_OUTPUT: u32 = 0x3f_0000;

impl Guest {
    /// The bytes at the address of the input.
    pub(crate) fn memory(&self) -> Vec<u8> {
        let Input { public, private } = &self.input;
        let words = public.iter().copied().chain([private.len() as u32]);
        words.flat_map(u32::to_le_bytes).chain(private.iter().copied()).collect()
    }
}

/// Compiles programs, and finds inputs of about this many cycles.
pub(crate) fn build(to: &Path, names: &[String], cycles: u64) -> Result<Vec<Guest>, Error> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../circuits/vm/guests/build");
    let small = format!(
        "-DINPUT_AT={SMALL_INPUT:#x} -DOUTPUT_AT={SMALL_OUTPUT:#x} -DSTACK_END={SMALL_OUTPUT:#x}"
    );
    for (folder, variable, value) in
        [("machine", "CPPFLAGS", ""), ("linux", "LINUX", "1"), ("small", "CPPFLAGS", &*small)]
    {
        let mut build = Command::new(&script);
        let status = build.arg(to.join(folder)).args(names).env(variable, value).status()?;
        if !status.success() {
            return Err("the programs cannot be compiled: clang and lld are needed".into());
        }
    }
    names.iter().map(|name| guest(to, name, cycles)).collect()
}

fn guest(to: &Path, name: &str, cycles: u64) -> Result<Guest, Error> {
    let elf = std::fs::read(to.join("machine").join(name))?;
    let program = Program::from_elf(&elf)?;
    let of = |size: u64| -> Result<u64, Error> {
        Ok(run(&program, &input(name, size)?, MAX_CYCLES)?.cycles())
    };
    // A call of a function is one cycle.
    let cycles = if name == "hash" { cycles / 8 } else { cycles };
    // Cycles are nearly in proportion to the size.
    let mut size = 1000;
    for _ in 0..4 {
        size = (u128::from(size) * u128::from(cycles) / u128::from(of(size)?.max(1))).max(1) as u64;
    }
    let (linux, small) = (to.join("linux").join(name), to.join("small").join(name));
    Ok(Guest { name: name.to_owned(), elf, input: input(name, size)?, linux, small })
}

/// The input of a program, of a size in a unit of its own.
fn input(name: &str, size: u64) -> Result<Input, Error> {
    let private = |private: Vec<u8>| Ok(Input { public: Vec::new(), private });
    match name {
        "fibonacci" => Ok(Input { public: vec![size as u32], private: Vec::new() }),
        "quicksort" => private(noise(size as usize).flat_map(u32::to_le_bytes).collect()),
        "sha256" | "hash" => private(noise(size as usize).map(|x| (x >> 24) as u8).collect()),
        "json" => private(text(size)),
        "interpreter" => private(squares(size as u32)),
        _ => Err(format!("there is no program '{name}'").into()),
    }
}

/// A JSON text with a list of about `size / 100` people.
fn text(size: u64) -> Vec<u8> {
    let person = |(id, x): (usize, u32)| {
        let (ok, score) = (if x >> 31 == 0 { "true" } else { "null" }, x % 1000);
        format!(
            "{{\"id\": {id}, \"name\": \"person {id} é\", \"score\": -{score}.5e+3, \"tags\": [\"a\", \
             \"b\\n\"], \"ok\": {ok}}}"
        )
    };
    let people: Vec<String> = noise(size.div_ceil(100) as usize)
        .enumerate()
        .map(|pair| person((pair.0, pair.1)))
        .collect();
    format!("{{\"people\": [{}]}}", people.join(",\n ")).into_bytes()
}
