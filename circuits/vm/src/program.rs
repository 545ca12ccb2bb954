//! Programs: statically linked ELF files for RV32IM.

use crate::isa::{Decoded, Isa, decode};
use elf::ElfBytes;
use elf::abi::{
    EM_RISCV, ET_EXEC, PF_W, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, SHT_SYMTAB, STT_FUNC, STT_NOTYPE,
};
use elf::endian::LittleEndian;
use elf::file::Class;
use std::ops::Range;

/// Where the segments of a program are.
pub const CODE: Range<u32> = 0x1_0000..0x1000_0000;

/// Where the input begins, behind the memory that is zero at the beginning.
pub const INPUT: u32 = 0x2000_0000;

/// Where the output is.
pub const OUTPUT: u32 = 0x3000_0000;

/// The number of words of the output.
pub const OUTPUT_WORDS: usize = 16;

/// The maximum number of words from the first segment to the last: 16 MiB, gaps included.
pub const MAX_IMAGE: usize = 1 << 22;

/// The maximum number of segments that are loaded.
const MAX_SEGMENTS: usize = 256;

/// The maximum number of symbols that are looked at, and the maximum lengths of a name and of all names
/// that are kept: a file may have one long name many times.
const MAX_SYMBOLS: usize = 1 << 20;
const MAX_NAME: usize = 256;
const MAX_NAMES: usize = 1 << 22;

/// Compressed instructions, and registers of 16 bits: flags of the ELF header.
const FLAG_COMPRESSED: u32 = 1;
const FLAG_FLOAT: u32 = 6;
const FLAG_EMBEDDED: u32 = 8;

/// Why a file is not a program of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// It is not an ELF file, or it is damaged.
    #[error("not an ELF file, or a damaged one: {0}")]
    Elf(String),
    /// It is an ELF file for something else.
    #[error("{what} is {found}, expected {expected}; compile for rv32im, statically linked")]
    Machine {
        /// The field of the header.
        what: &'static str,
        /// What it says.
        found: String,
        /// What this machine has.
        expected: &'static str,
    },
    /// A segment cannot be loaded.
    #[error("segment {index}, at {start:#x}..{end:#x}: {why}")]
    Segment {
        /// The index of the segment in the program header.
        index: usize,
        /// Its first address.
        start: u64,
        /// The end of its addresses.
        end: u64,
        /// What is wrong.
        why: String,
    },
    /// There is nothing to execute.
    #[error("the entry point {0:#x} is not the address of an instruction in a segment of code")]
    Entry(u64),
}

/// A program of one of the instruction sets.
#[derive(Clone, Debug)]
pub struct Program {
    isa: Isa,
    pub(crate) entry: u32,
    /// The address of the image's first word, divided by four.
    pub(crate) base: u32,
    /// All words from the first segment to the last, with zeros in gaps.
    pub(crate) image: Vec<u32>,
    /// What each word of code means, by its address: none outside of segments of code.
    code: Vec<Option<Decoded>>,
    symbols: Vec<(u32, String)>,
}

/// What is in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The address of the first instruction that is executed.
    pub entry: u32,
    /// The first address of the image.
    pub start: u32,
    /// The number of words of the image.
    pub words: usize,
    /// The number of instructions.
    pub instructions: usize,
    /// The number of words of code that are no instructions of this machine.
    pub illegal: usize,
    /// The number of symbols of code.
    pub symbols: usize,
}

/// A segment that is loaded.
struct Segment {
    index: usize,
    addresses: Range<u64>,
    is_code: bool,
}

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    /// If the file is not a static ELF file of 32 bits for RV32IM, or its segments overlap, are both
    /// writable and executable, or are outside of [`CODE`].
    pub fn from_elf(bytes: &[u8]) -> Result<Self, ProgramError> {
        let damaged = |error: elf::ParseError| ProgramError::Elf(error.to_string());
        let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).map_err(damaged)?;
        check_header(&file)?;
        let headers = file.segments().ok_or_else(|| ProgramError::Elf("no segments".into()))?;
        let mut segments: Vec<Segment> = Vec::new();
        let mut contents: Vec<(u64, &[u8])> = Vec::new();
        for (index, header) in headers.iter().enumerate() {
            let (start, size) = (header.p_vaddr, header.p_memsz);
            let end = start.saturating_add(size);
            let refuse =
                |why: &str| Err(ProgramError::Segment { index, start, end, why: why.to_owned() });
            match header.p_type {
                PT_DYNAMIC | PT_INTERP => return refuse("the program is linked dynamically"),
                PT_LOAD if size > 0 => {}
                _ => continue,
            }
            if start < CODE.start.into() || end > CODE.end.into() {
                let why = format!("outside of {:#x}..{:#x}", CODE.start, CODE.end);
                return refuse(&why);
            }
            let is_code = header.p_flags & PF_X != 0;
            if is_code && header.p_flags & PF_W != 0 {
                return refuse("both writable and executable");
            }
            if is_code && start % 4 != 0 {
                return refuse("code must begin at a multiple of 4");
            }
            if header.p_filesz > size {
                return refuse("more bytes in the file than in memory");
            }
            let Ok(data) = file.segment_data(&header) else {
                return refuse("its bytes are beyond the end of the file");
            };
            if segments.len() == MAX_SEGMENTS {
                return refuse("more than 256 segments");
            }
            if let Some(other) = segments
                .iter()
                .find(|other| start < other.addresses.end && other.addresses.start < end)
            {
                return refuse(&format!("overlaps segment {}", other.index));
            }
            segments.push(Segment { index, addresses: start..end, is_code });
            contents.push((start, data));
        }
        let mut program = Self::load(&contents)?;
        program.decode(&segments);
        let entry = file.ehdr.e_entry;
        program.entry = u32::try_from(entry)
            .ok()
            .filter(|pc| program.decoded(*pc).is_some())
            .ok_or(ProgramError::Entry(entry))?;
        program.symbols = symbols(&file);
        Ok(program)
    }

    /// The smallest program: an exit.
    pub(crate) fn smallest() -> Self {
        // li a7, 93; ecall
        let image: Vec<u32> = vec![0x05d0_0893, 0x0000_0073];
        let entry = CODE.start;
        let code = (0..).zip(&image).map(|(at, word)| Some(decode(entry + 4 * at, *word)));
        let (code, symbols) = (code.collect(), Vec::new());
        Self { isa: Isa::Rv32im, entry, base: entry / 4, code, image, symbols }
    }

    /// A program of words from address 0 on, with what each of them means.
    pub(crate) fn of_words(
        isa: Isa,
        image: Vec<u32>,
        code: Vec<Option<Decoded>>,
        symbols: Vec<(u32, String)>,
    ) -> Self {
        debug_assert_eq!(image.len(), code.len());
        Self { isa, entry: 0, base: 0, image, code, symbols }
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The image of some segments.
    fn load(contents: &[(u64, &[u8])]) -> Result<Self, ProgramError> {
        let filled = || contents.iter().filter(|(_, data)| !data.is_empty());
        let start = filled().map(|(start, _)| start / 4).min();
        let end = filled().map(|(start, data)| (start + data.len() as u64).div_ceil(4)).max();
        let (Some(base), Some(end)) = (start, end) else {
            return Err(ProgramError::Elf("no segment has contents".into()));
        };
        #[allow(clippy::cast_possible_truncation, reason = "segments are below 2^28")]
        let (base, words) = (base as u32, (end - base) as usize);
        if words > MAX_IMAGE {
            return Err(ProgramError::Elf(format!(
                "its segments span {words} words, at most {MAX_IMAGE}: link them closer together"
            )));
        }
        let mut image = vec![0u32; words];
        for (start, data) in contents {
            for (address, byte) in (*start..).zip(*data) {
                #[allow(clippy::cast_possible_truncation, reason = "within the image")]
                let word = (address / 4) as usize - base as usize;
                image[word] |= u32::from(*byte) << (8 * (address % 4));
            }
        }
        let (code, symbols) = (Vec::new(), Vec::new());
        Ok(Self { isa: Isa::Rv32im, entry: 0, base, image, code, symbols })
    }

    /// Decodes the code.
    fn decode(&mut self, segments: &[Segment]) {
        self.code = vec![None; self.image.len()];
        for Segment { addresses, .. } in segments.iter().filter(|segment| segment.is_code) {
            // Whole words of the segment, as far as the image has them; code begins at a word.
            let place = |address: u64| (address / 4).saturating_sub(u64::from(self.base));
            let all = self.image.len() as u64;
            let (from, to) = (place(addresses.start).min(all), place(addresses.end).min(all));
            for at in from..to {
                #[allow(clippy::cast_possible_truncation, reason = "within the image")]
                let (at, pc) = (at as usize, 4 * (self.base + at as u32));
                self.code[at] = Some(decode(pc, self.image[at]));
            }
        }
    }

    /// What is executed at a pc; none where there is no code.
    #[inline]
    pub(crate) fn decoded(&self, pc: u32) -> Option<&Decoded> {
        if !pc.is_multiple_of(4) {
            return None;
        }
        self.code.get((pc / 4).checked_sub(self.base)? as usize)?.as_ref()
    }

    /// The word at a pc.
    pub(crate) fn word(&self, pc: u32) -> Option<u32> {
        self.image.get((pc / 4).checked_sub(self.base)? as usize).copied()
    }

    /// All words of code that mean something, with their pc.
    pub(crate) fn code(&self) -> impl Iterator<Item = (u32, &Decoded)> {
        (self.base..)
            .zip(&self.code)
            .filter_map(|(word, decoded)| Some((4 * word, decoded.as_ref()?)))
    }

    /// The symbol that an address belongs to, with the distance from it.
    pub fn symbol(&self, pc: u32) -> Option<(&str, u32)> {
        let behind = self.symbols.partition_point(|(address, _)| *address <= pc);
        let (address, name) = self.symbols.get(behind.checked_sub(1)?)?;
        Some((name, pc - address))
    }

    /// What is in the program.
    pub fn summary(&self) -> Summary {
        let illegal = self.code().filter(|(_, decoded)| **decoded == Decoded::Illegal).count();
        Summary {
            entry: self.entry,
            start: 4 * self.base,
            words: self.image.len(),
            instructions: self.code().count() - illegal,
            illegal,
            symbols: self.symbols.len(),
        }
    }

    /// A digest of all that a run depends on: entry, image, and which of it is code.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(match self.isa {
            Isa::Rv32im => "hekaton-v1 program of the machine",
            Isa::TinyRam => "hekaton-v1 program of TinyRAM",
        });
        for number in [self.entry, self.base] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&(self.image.len() as u64).to_le_bytes());
        for (word, code) in self.image.iter().zip(&self.code) {
            hasher.update(&word.to_le_bytes()).update(&[u8::from(code.is_some())]);
        }
        *hasher.finalize().as_bytes()
    }
}

fn check_header(file: &ElfBytes<'_, LittleEndian>) -> Result<(), ProgramError> {
    let header = &file.ehdr;
    let refuse =
        |what, found: String, expected| Err(ProgramError::Machine { what, found, expected });
    if header.class != Class::ELF32 {
        return refuse("the class", "64 bits".into(), "32 bits");
    }
    if header.e_machine != EM_RISCV {
        return refuse("the machine", header.e_machine.to_string(), "243 (RISC-V)");
    }
    if header.e_type != ET_EXEC {
        return refuse("the type", header.e_type.to_string(), "2 (executable)");
    }
    let flags = header.e_flags;
    if flags & FLAG_COMPRESSED != 0 {
        return refuse("the instruction set", "one with compressed instructions".into(), "rv32im");
    }
    if flags & FLAG_FLOAT != 0 {
        return refuse("the calling convention", "one with floating point".into(), "ilp32");
    }
    if flags & FLAG_EMBEDDED != 0 {
        return refuse("the instruction set", "RV32E".into(), "rv32im");
    }
    Ok(())
}

/// Functions and labels, by address. A program without them, or with a damaged table, has none. Names are
/// printed, so those with anything but visible characters are left out; and they are looked for no further
/// than they may be long, since tables may be anyone's.
fn symbols(file: &ElfBytes<'_, LittleEndian>) -> Vec<(u32, String)> {
    let Some((symbols, names)) = symbol_table(file) else { return Vec::new() };
    let name_at = |at: usize| {
        let window = names.get(at..)?;
        let window = &window[..window.len().min(MAX_NAME + 1)];
        let name = &window[..window.iter().position(|byte| *byte == 0)?];
        let is_visible = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
        is_visible.then(|| std::str::from_utf8(name).ok()).flatten()
    };
    let is_code = |kind: u8| kind == STT_FUNC || kind == STT_NOTYPE;
    let mut length = 0;
    let mut list: Vec<(u32, &str)> = symbols
        .iter()
        .take(MAX_SYMBOLS)
        .filter(|symbol| is_code(symbol.st_symtype()) && symbol.st_shndx != 0)
        .filter_map(|symbol| Some((symbol.st_value, name_at(symbol.st_name as usize)?)))
        .filter(|(_, name)| !name.starts_with(['$', '.']))
        .take_while(|(_, name)| {
            length += name.len();
            length <= MAX_NAMES
        })
        .filter_map(|(value, name)| Some((u32::try_from(value).ok()?, name)))
        .collect();
    list.sort_unstable();
    list.dedup_by_key(|(address, _)| *address);
    list.into_iter().map(|(address, name)| (address, name.to_owned())).collect()
}

/// The table of symbols, and the bytes of their names.
fn symbol_table<'d>(
    file: &ElfBytes<'d, LittleEndian>,
) -> Option<(elf::symbol::SymbolTable<'d, LittleEndian>, &'d [u8])> {
    let (symbols, _) = file.symbol_table().ok()??;
    let headers = file.section_headers()?;
    let table = headers.iter().find(|header| header.sh_type == SHT_SYMTAB)?;
    let names = headers.get(table.sh_link as usize).ok()?;
    let (names, compression) = file.section_data(&names).ok()?;
    compression.is_none().then_some((symbols, names))
}
