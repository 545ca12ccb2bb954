//! Files that are no programs of the machine.

use super::assembler::{ECALL, exit, li, program};
use crate::Program;
use proptest::prelude::*;

/// Puts a number of two or four bytes into a file.
fn put(file: &mut [u8], at: usize, number: u32, size: usize) {
    file[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]);
}

/// Where fields of the header are, and of the one segment behind it.
const TYPE: usize = 16;
const MACHINE: usize = 18;
const ENTRY: usize = 24;
const FLAGS: usize = 36;
const SEGMENTS: usize = 44;
const SEGMENT: usize = 52;

/// A file with a second segment, with these fields: address, size in the file and in memory, flags.
fn with_second_segment(address: u32, in_file: u32, in_memory: u32, flags: u32) -> Vec<u8> {
    let mut file = program(&exit());
    // Both headers behind the code.
    let code = file[84..].to_vec();
    let first = file[SEGMENT..84].to_vec();
    let at = file.len() as u32;
    file.extend(first);
    file.extend(
        [1, 84, address, address, in_file, in_memory, flags, 4].map(u32::to_le_bytes).concat(),
    );
    put(&mut file, 28, at, 4);
    put(&mut file, SEGMENTS, 2, 2);
    assert_eq!(file[84..84 + code.len()], code);
    file
}

#[test]
fn bad_files_are_refused_by_name() {
    let changed = |at: usize, number: u32, size: usize| {
        let mut file = program(&exit());
        put(&mut file, at, number, size);
        file
    };
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "not an ELF file"),
        (
            b"#!/bin/sh\necho hello, this is no program at all, but long enough\n".to_vec(),
            "not an ELF",
        ),
        (program(&exit())[..60].to_vec(), "ELF file, or a damaged one"),
        (changed(4, 2, 1), ""),
        (changed(5, 2, 1), "not an ELF file"),
        (changed(TYPE, 3, 2), "the type is 3, expected 2 (executable)"),
        (changed(MACHINE, 62, 2), "the machine is 62, expected 243 (RISC-V)"),
        (changed(FLAGS, 1, 4), "compressed instructions, expected rv32im"),
        (changed(FLAGS, 4, 4), "one with floating point, expected ilp32"),
        (changed(FLAGS, 8, 4), "RV32E"),
        (changed(ENTRY, 0x1_0002, 4), "the entry point 0x10002"),
        (changed(ENTRY, 0x1_0008, 4), "the entry point 0x10008"),
        (
            changed(SEGMENT, 2, 4),
            "segment 0, at 0x10000..0x10008: the program is linked dynamically",
        ),
        (changed(SEGMENT, 6, 4), "no segment has contents"),
        (
            changed(SEGMENT + 24, 7, 4),
            "segment 0, at 0x10000..0x10008: both writable and executable",
        ),
        (changed(SEGMENT + 24, 4, 4), "the entry point 0x10000"),
        (
            changed(SEGMENT + 8, 0xff00, 4),
            "segment 0, at 0xff00..0xff08: outside of 0x10000..0x10000000",
        ),
        (changed(SEGMENT + 8, 0x0fff_fffc, 4), "outside of"),
        (changed(SEGMENT + 8, 0x1_0002, 4), "code must begin at a multiple of 4"),
        (changed(SEGMENT + 16, 9, 4), "more bytes in the file than in memory"),
        (changed(SEGMENT + 4, 1000, 4), "its bytes are beyond the end of the file"),
        (
            with_second_segment(0x1_0004, 4, 4, 4),
            "segment 1, at 0x10004..0x10008: overlaps segment 0",
        ),
        (with_second_segment(0x0f00_0000, 4, 4, 4), "its segments span"),
    ];
    for (file, says) in cases {
        let error = Program::from_elf(&file).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    // Read-only data behind the code, and memory that is zero far behind it.
    let program = Program::from_elf(&with_second_segment(0x1_0010, 8, 0x1_0000, 6)).unwrap();
    assert_eq!(program.image, [li(17, 93), ECALL, 0, 0, li(17, 93), ECALL]);
    assert_eq!(program.code().count(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever the bytes are, reading them ends with a program or an error.
    #[test]
    fn any_bytes_are_read_or_refused(
        changes in prop::collection::vec((0usize..200, any::<u8>()), 1..8),
        length in 0usize..200,
    ) {
        let mut file = with_second_segment(0x1_0010, 8, 16, 6);
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        let _ = Program::from_elf(&file);
        file.truncate(length);
        let _ = Program::from_elf(&file);
    }
}
