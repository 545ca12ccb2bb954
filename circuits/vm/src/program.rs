//! Programs: statically linked ELF files for RV32IM.

use crate::address_space::CODE;
use crate::elf::{File, ProgramError, Segment};
use crate::isa::{Decoded, Isa, decode};
use std::ops::Range;

/// A program of one of the instruction sets.
#[derive(Clone, Debug)]
pub struct Program {
    isa: Isa,
    pub(crate) entry: u32,
    /// The address of the image's first word, divided by four.
    pub(crate) base: u32,
    /// All words from the first segment to the last, with zeros in gaps.
    pub(crate) image: Vec<u32>,
    /// The decoded words of code, by address; `None` outside of segments of code.
    code: Vec<Option<Decoded>>,
    /// The addresses of segments that are not writable, in rising order, and where the first begins and the last ends.
    read_only: Vec<Range<u32>>,
    read_only_bounds: Range<u32>,
    symbols: Vec<(u32, String)>,
}

/// A summary of a program.
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
    /// The number of words of code that are not instructions of this machine.
    pub illegal: usize,
    /// The number of symbols of code.
    pub symbols: usize,
}

impl Program {
    /// Reads a program.
    ///
    /// Segments may come in any order. Each has memory of its size, with zeros behind its contents, and all memory can be
    /// read. Alignments and physical addresses are ignored, and so are section headers, except for the symbols that name
    /// the place of a trap.
    ///
    /// # Errors
    /// If the file is not a static ELF file of 32 bits for RV32IM; or its segments overlap, are both
    /// writable and executable, are outside of [`CODE`], or span more than [`MAX_IMAGE`](crate::MAX_IMAGE) words.
    pub fn from_elf(bytes: &[u8]) -> Result<Self, ProgramError> {
        let File { entry, segments, image, symbols } = File::read(bytes)?;
        let mut program = Self::load(&segments, image);
        program.decode(&segments);
        program.entry = u32::try_from(entry)
            .ok()
            // A program whose first step has no row could not be proven at all.
            .filter(|pc| program.decoded(*pc).is_some())
            .ok_or(ProgramError::Entry(entry))?;
        program.symbols = symbols;
        Ok(program)
    }

    /// The smallest program: an exit.
    pub(crate) fn smallest() -> Self {
        // li a7, 93; ecall
        let image: Vec<u32> = vec![0x05d0_0893, 0x0000_0073];
        let entry = CODE.start;
        let code =
            (0..).zip(&image).map(|(at, word)| Some(decode(entry + 4 * at, *word))).collect();
        Self { isa: Isa::Rv32im, entry, base: entry / 4, code, image, ..Self::empty() }
    }

    /// A program of words from address 0 on, with what each of them means.
    pub(crate) fn of_words(
        isa: Isa,
        image: Vec<u32>,
        code: Vec<Option<Decoded>>,
        symbols: Vec<(u32, String)>,
    ) -> Self {
        debug_assert_eq!(image.len(), code.len());
        Self { isa, image, code, symbols, ..Self::empty() }
    }

    /// A program with nothing in it.
    fn empty() -> Self {
        Self {
            isa: Isa::Rv32im,
            entry: 0,
            base: 0,
            image: Vec::new(),
            code: Vec::new(),
            read_only: Vec::new(),
            read_only_bounds: 0..0,
            symbols: Vec::new(),
        }
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The image of some segments, which has these words.
    #[allow(clippy::cast_possible_truncation, reason = "segments are below 2^28")]
    fn load(segments: &[Segment<'_>], words: Range<u64>) -> Self {
        let mut image = vec![0u32; (words.end - words.start) as usize];
        for Segment { addresses, contents, .. } in segments {
            for (address, byte) in (addresses.start..).zip(*contents) {
                let word = (address / 4 - words.start) as usize;
                // Segments do not overlap, but two of them may share a word.
                image[word] |= u32::from(*byte) << (8 * (address % 4));
            }
        }
        let mut read_only: Vec<Range<u32>> = segments
            .iter()
            .filter(|segment| !segment.is_writable)
            .map(|segment| segment.addresses.start as u32..segment.addresses.end as u32)
            .collect();
        read_only.sort_unstable_by_key(|addresses| addresses.start);
        let bounds = match (read_only.first(), read_only.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        };
        let base = words.start as u32;
        Self { base, image, read_only, read_only_bounds: bounds, ..Self::empty() }
    }

    /// Decodes the code.
    fn decode(&mut self, segments: &[Segment<'_>]) {
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

    /// The addresses of the segment that is not writable and has some of these bytes.
    #[inline]
    pub(crate) fn read_only(&self, address: u32, size: u32) -> Option<Range<u32>> {
        let end = address.saturating_add(size);
        // Stores are to data and the stack, nearly always behind or below all of these.
        if end <= self.read_only_bounds.start || address >= self.read_only_bounds.end {
            return None;
        }
        let before = self.read_only.partition_point(|segment| segment.end <= address);
        self.read_only.get(before).filter(|segment| segment.start < end).cloned()
    }

    /// Returns what is executed at a pc; `None` where there is no code.
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

    /// The program as an executor sees it that does not look at segments' flags.
    #[cfg(test)]
    pub(crate) fn writable_everywhere(self) -> Self {
        Self { read_only: Vec::new(), read_only_bounds: 0..0, ..self }
    }

    /// Returns a summary of the program.
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

    /// A digest of everything that a proof is about: entry point, image, and which words of it are code. It does not cover
    /// which segments are writable: only [`run`](crate::run()) keeps programs from storing elsewhere, and no constraint does.
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
            // Which words are code is part of the claim: data that looks like an instruction has no row.
            hasher.update(&word.to_le_bytes()).update(&[u8::from(code.is_some())]);
        }
        *hasher.finalize().as_bytes()
    }
}
