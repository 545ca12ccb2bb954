//! The files of programs and inputs.

use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_vm::{MAX_PUBLIC, Program, ProgramError};
use std::path::Path;

/// The largest program and input that are read, in bytes: larger ones do not fit in the machine's memory.
const FILE_LIMIT: u64 = 256 << 20;

/// The ends of errors about files above [`FILE_LIMIT`].
const OF_PROGRAMS: &str = " (256 MiB), which is the most for the file of a program";
const OF_INPUTS: &str =
    " (256 MiB), which is the most for an input: the machine has no memory for more";

// Assembly has no magic bytes. The comment that other assemblers expect in the first line serves as such.
/// The first characters of programs for TinyRAM.
const TINYRAM: &str = "; TinyRAM";

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
        std::str::from_utf8(bytes)
            .map_err(|e| {
                let at = e.valid_up_to();
                format!("a program for TinyRAM, but byte {at} is not text in UTF-8")
            })
            .and_then(|text| Program::from_tinyram(text).map_err(|e| e.to_string()))
    } else {
        // A file that is neither names both forms that were looked for.
        Program::from_elf(bytes).map_err(|e| match e {
            ProgramError::NotElf => format!("{e}, nor, as a program for TinyRAM, with '{TINYRAM}'"),
            e => e.to_string(),
        })
    };
    program.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)
}

/// The words of a public input and its bytes. The last word is padded with zeros.
pub(crate) fn public_words(path: Option<&Path>) -> Result<(Vec<u32>, Vec<u8>), Failure> {
    let bytes = optional(path)?;
    let words: Vec<u32> = (bytes.chunks(4))
        .map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_le_bytes(word)
        })
        .collect();
    match words.len() {
        0..=MAX_PUBLIC => Ok((words, bytes)),
        found => {
            let file = path.expect("an input without a file has no words").display();
            let why = format!(
                "the public input has {} bytes in {found} words, expected at most {MAX_PUBLIC} words (4 MiB)",
                bytes.len()
            );
            Err(Failure::new(exit::BAD_FILE, format!("{file}: {why}")))
        }
    }
}

/// Reads an input. An option that was left out is an empty input.
pub(super) fn optional(path: Option<&Path>) -> Result<Vec<u8>, Failure> {
    path.map_or(Ok(Vec::new()), |path| exit::read_limited(path, FILE_LIMIT, OF_INPUTS))
}
