//! ELF files: headers, segments and symbols of programs for RV32IM. Only what a run depends on is demanded: section headers
//! and symbols may be stripped or damaged, segments may not.

use crate::address_space::{CODE, MAX_IMAGE};
use elf::abi::{
    EM_RISCV, ET_EXEC, PF_W, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, SHT_SYMTAB, STT_FUNC, STT_NOTYPE,
};
use elf::endian::LittleEndian;
use elf::file::Class;
use elf::segment::ProgramHeader;
use elf::{ElfBytes, ParseError};
use std::fmt::{self, Write as _};
use std::ops::Range;

/// The first bytes of an ELF file, and the offsets of its class and of the order of its bytes.
const MAGIC: &[u8; 4] = b"\x7fELF";
const CLASS: usize = 4;
const BYTE_ORDER: usize = 5;

/// The maximum number of segments that are loaded.
// Each segment is compared with all before it; linkers make fewer than ten.
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

/// The reason why a file is not a program of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// It is something else.
    #[error("not an ELF file: it does not begin with \\x7fELF")]
    NotElf,
    /// It is an ELF file, but nothing can be loaded from it.
    #[error("a damaged ELF file: {0}")]
    Elf(String),
    /// It is an ELF file for something else.
    #[error("{what} is {found}, expected {expected}; compile for rv32im, statically linked")]
    Machine {
        /// The field of the header.
        what: &'static str,
        /// The value that the file has.
        found: String,
        /// The value that this machine has.
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
        /// A description of what is wrong.
        why: String,
    },
    /// There is nothing to execute.
    #[error("the entry point {0:#x} is not the address of an instruction in a segment of code")]
    Entry(u64),
}

/// A segment that has memory.
pub(crate) struct Segment<'d> {
    pub(crate) addresses: Range<u64>,
    pub(crate) is_code: bool,
    pub(crate) is_writable: bool,
    /// The bytes at its beginning; zeros follow.
    pub(crate) contents: &'d [u8],
}

/// The contents of the file of a program.
pub(crate) struct File<'d> {
    pub(crate) entry: u64,
    pub(crate) segments: Vec<Segment<'d>>,
    /// The words from the first segment to the end of the last contents, all of which are in the image. Other segments
    /// are behind it, where all memory is zero at the beginning.
    pub(crate) image: Range<u64>,
    /// Functions and labels, by address.
    pub(crate) symbols: Vec<(u32, String)>,
}

impl<'d> File<'d> {
    /// Reads a file.
    pub(crate) fn read(bytes: &'d [u8]) -> Result<Self, ProgramError> {
        check_identification(bytes)?;
        let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).map_err(damaged)?;
        check_header(&file)?;
        let headers =
            file.segments().ok_or_else(|| ProgramError::Elf("it has no segments".into()))?;
        let mut numbered: Vec<(usize, Segment<'d>)> = Vec::new();
        for (index, header) in headers.iter().enumerate() {
            let Some(segment) = segment(bytes, index, &header)? else { continue };
            let Range { start, end } = segment.addresses;
            let refuse = |why| Err(ProgramError::Segment { index, start, end, why });
            if numbered.len() == MAX_SEGMENTS {
                return refuse("more than 256 segments".to_owned());
            }
            let overlaps =
                |other: &Segment<'_>| start < other.addresses.end && other.addresses.start < end;
            // Nothing defines what memory has where segments overlap.
            if let Some((other, _)) = numbered.iter().find(|(_, other)| overlaps(other)) {
                return refuse(format!("overlaps segment {other}"));
            }
            numbered.push((index, segment));
        }
        let image = image(&numbered)?;
        let segments = numbered.into_iter().map(|(_, segment)| segment).collect();
        Ok(Self { entry: file.ehdr.e_entry, segments, image, symbols: symbols(&file) })
    }
}

/// Returns the segment of a program header; `None` for one without memory.
fn segment<'d>(
    bytes: &'d [u8],
    index: usize,
    header: &ProgramHeader,
) -> Result<Option<Segment<'d>>, ProgramError> {
    let (start, size) = (header.p_vaddr, header.p_memsz);
    // Fields have 32 bits, so the end does not wrap here where it does in the machine.
    let end = start.saturating_add(size);
    let refuse = |why: &str| Err(ProgramError::Segment { index, start, end, why: why.to_owned() });
    match header.p_type {
        PT_DYNAMIC | PT_INTERP => return refuse("the program is linked dynamically"),
        PT_LOAD if header.p_filesz > size => {
            return refuse("more bytes in the file than in memory");
        }
        PT_LOAD if size > 0 => {}
        _ => return Ok(None),
    }
    if start < CODE.start.into() || end > CODE.end.into() {
        return refuse(&format!("outside of {:#x}..{:#x}", CODE.start, CODE.end));
    }
    let [is_code, is_writable] = [PF_X, PF_W].map(|flag| header.p_flags & flag != 0);
    // Code is fixed when the program is loaded; a program that rewrites itself would run other code than it
    // has.
    if is_code && is_writable {
        return refuse("both writable and executable");
    }
    // Rows of the program are of whole words.
    if is_code && start % 4 != 0 {
        return refuse("code must begin at a multiple of 4");
    }
    let place = usize::try_from(header.p_offset).ok().zip(usize::try_from(header.p_filesz).ok());
    let contents = place.and_then(|(at, length)| bytes.get(at..at.checked_add(length)?));
    match contents {
        Some(contents) => {
            Ok(Some(Segment { addresses: start..end, is_code, is_writable, contents }))
        }
        None => refuse("its bytes are beyond the end of the file, which may be cut off"),
    }
}

/// The words that an image has. Segments without contents are in it if others follow: nowhere else would their memory be.
fn image(segments: &[(usize, Segment<'_>)]) -> Result<Range<u64>, ProgramError> {
    let start = segments.iter().map(|(_, segment)| segment.addresses.start / 4).min();
    let filled = segments.iter().filter(|(_, segment)| !segment.contents.is_empty());
    let ends = filled.map(|(index, segment)| {
        let end = segment.addresses.start + segment.contents.len() as u64;
        (end.div_ceil(4), *index, &segment.addresses)
    });
    let (Some(start), Some((end, index, last))) = (start, ends.max_by_key(|(end, ..)| *end)) else {
        return Err(ProgramError::Elf("no segment has contents".into()));
    };
    let most = MAX_IMAGE as u64;
    if end - start <= most {
        return Ok(start..end);
    }
    let why = format!(
        "its contents end {} bytes behind the first segment, which begins at {:#x}, and {} (16 MiB) is the most: link \
         the segments closer together",
        4 * (end - start),
        4 * start,
        4 * most
    );
    Err(ProgramError::Segment { index, start: last.start, end: last.end, why })
}

/// Checks what comes before the parts that the reader of ELF files knows.
fn check_identification(bytes: &[u8]) -> Result<(), ProgramError> {
    if !bytes.starts_with(MAGIC) {
        return Err(ProgramError::NotElf);
    }
    let refuse = |what, found: &str, expected| {
        Err(ProgramError::Machine { what, found: found.to_owned(), expected })
    };
    match (bytes.get(CLASS), bytes.get(BYTE_ORDER)) {
        (Some(2), _) => refuse("the class", "64 bits", "32 bits"),
        (_, Some(2)) => refuse("the byte order", "big-endian", "little-endian"),
        _ => Ok(()),
    }
}

/// Describes what is wrong with a file, in the terms of its format.
fn damaged(error: ParseError) -> ProgramError {
    let why = match error {
        ParseError::UnsupportedElfClass(found) => {
            format!("its class is {found}, expected 1 (32 bits)")
        }
        ParseError::UnsupportedElfEndianness(found) => {
            format!("its byte order is {found}, expected 1 (little-endian)")
        }
        ParseError::UnsupportedVersion((found, expected)) => {
            format!("its version is {found}, expected {expected}")
        }
        ParseError::BadEntsize((found, expected)) => {
            format!("its tables have entries of {found} bytes, expected {expected}")
        }
        ParseError::SliceReadError(_) => {
            "it ends before what its header says, and may be cut off".to_owned()
        }
        ParseError::IntegerOverflow => "an offset in it does not fit into 64 bits".to_owned(),
        _ => "its header contradicts itself".to_owned(),
    };
    ProgramError::Elf(why)
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
    // The decoder would find no instruction in such code; a message about the compiler's target helps more.
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
        let rest = names.get(at..)?;
        let window = &rest[..rest.len().min(MAX_NAME + 1)];
        let name = &window[..window.iter().position(|byte| *byte == 0)?];
        let is_visible = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
        is_visible.then(|| std::str::from_utf8(name).ok()).flatten()
    };
    let is_code = |kind: u8| kind == STT_FUNC || kind == STT_NOTYPE;
    let mut length = 0;
    // At one address, a function takes precedence over a symbol of a link script.
    let mut list: Vec<(u32, bool, &str)> = symbols
        .iter()
        .take(MAX_SYMBOLS)
        .filter(|symbol| is_code(symbol.st_symtype()) && symbol.st_shndx != 0)
        .filter_map(|symbol| {
            let name = name_at(symbol.st_name as usize)?;
            Some((symbol.st_value, symbol.st_symtype() != STT_FUNC, name))
        })
        .filter(|(.., name)| !name.starts_with(['$', '.']))
        .take_while(|(.., name)| {
            length += name.len();
            length <= MAX_NAMES
        })
        .filter_map(|(value, is_label, name)| Some((u32::try_from(value).ok()?, is_label, name)))
        .collect();
    list.sort_unstable();
    list.dedup_by_key(|(address, ..)| *address);
    list.into_iter().map(|(address, _, name)| (address, name.to_owned())).collect()
}

/// A name as its source has it, without the hash that Rust adds, and cut off where it is too long: a short symbol may stand for a
/// million characters.
pub(crate) fn readable(symbol: &str) -> String {
    struct Short(String);
    impl fmt::Write for Short {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            // '?' is no longer than what it replaces.
            let room = MAX_NAME - self.0.len();
            self.0.extend(text.chars().scan(room, |room, c| {
                *room = room.checked_sub(c.len_utf8())?;
                // Names may encode any characters, and they are printed.
                Some(if c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ' { c } else { '?' })
            }));
            if text.len() > room { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut name = Short(String::new());
    // The only error is that there is no more room.
    let _ = write!(name, "{:#}", rustc_demangle::demangle(symbol));
    name.0
}

/// The table of symbols, and the bytes of their names.
fn symbol_table<'d>(
    file: &ElfBytes<'d, LittleEndian>,
) -> Option<(elf::symbol::SymbolTable<'d, LittleEndian>, &'d [u8])> {
    let (symbols, _) = file.symbol_table().ok()??;
    let headers = file.section_headers()?;
    let table = headers.iter().find(|header| header.sh_type == SHT_SYMTAB)?;
    let names_header = headers.get(table.sh_link as usize).ok()?;
    let (names, compression) = file.section_data(&names_header).ok()?;
    compression.is_none().then_some((symbols, names))
}
