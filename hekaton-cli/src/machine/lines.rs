//! The lines of source files that instructions come from, by the debugging information of an ELF file.

use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use elf::ElfBytes;
use hekaton_terminal::output;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The debugging information of a program that was compiled with `-g`.
pub(crate) struct Lines<'a>(Context<Slice<'a>>);

impl<'a> Lines<'a> {
    /// Reads the debugging information of a file; `None` if it has none that can be read: a place without a line is still a place.
    pub(crate) fn of(file: &'a [u8]) -> Option<Self> {
        let file = ElfBytes::<elf::endian::LittleEndian>::minimal_parse(file).ok()?;
        let section = |id: SectionId| -> Result<Slice<'a>, elf::ParseError> {
            let found = match file.section_header_by_name(id.name())? {
                Some(header) => match file.section_data(&header)? {
                    (bytes, None) => bytes,
                    (_, Some(_)) => &[],
                },
                None => &[],
            };
            Ok(EndianSlice::new(found, LittleEndian))
        };
        let dwarf = Dwarf::load(section).ok()?;
        Context::from_dwarf(dwarf).ok().map(Self)
    }

    /// The file and line that an instruction comes from: `parser.c:12`. Of functions that were inlined, it is the line of the
    /// outermost call, since that is in the function that the symbol names.
    pub(crate) fn at(&self, pc: u32) -> Option<String> {
        let mut frames = self.0.find_frames(pc.into()).skip_all_loads().ok()?;
        let mut place = None;
        while let Some(frame) = frames.next().ok()? {
            place = frame.location.or(place);
        }
        let place = place?;
        // The folders are of the machine that compiled it.
        let file = place.file?.rsplit('/').next()?;
        Some(format!("{}:{}", output::one_line(file), place.line?))
    }
}
