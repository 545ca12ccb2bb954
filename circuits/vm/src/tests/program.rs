//! Files that are not programs of the machine.

use super::assembler::{ECALL, exit, li, program};
use crate::Program;
use crate::elf::readable;
use proptest::prelude::*;

/// Puts a number of two or four bytes into a file.
fn put(file: &mut [u8], at: usize, number: u32, size: usize) {
    file[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]);
}

/// The offsets of fields of the header, and of the one segment behind it.
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
        (program(&exit())[..60].to_vec(), "a damaged ELF file: it ends before"),
        (changed(4, 2, 1), "the class is 64 bits, expected 32 bits"),
        (changed(4, 7, 1), "a damaged ELF file: its class is 7, expected 1"),
        (changed(5, 2, 1), "the byte order is big-endian, expected little-endian"),
        (changed(6, 0, 1), "a damaged ELF file: its version is 0, expected 1"),
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
        (
            with_second_segment(0x0f00_0000, 4, 4, 4),
            "segment 1, at 0xf000000..0xf000004: its contents end 251592708 bytes behind the first \
             segment, which begins at 0x10000, and 16777216 (16 MiB) is the most",
        ),
        (with_second_segment(0x2_0000, 4, 0, 6), "more bytes in the file than in memory"),
        (
            with_second_segment(0xffff_0000, 0, 0x2_0000, 6),
            "segment 1, at 0xffff0000..0x100010000: outside of",
        ),
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

/// The same program with symbols at 0x10000 and behind it, by their places among the names.
fn with_symbols(names: &[u8], symbols: &[(u32, u32)]) -> Vec<u8> {
    let mut file = program(&exit());
    let put = |file: &mut Vec<u8>, bytes: &[u8]| {
        let at = file.len() as u32;
        file.extend(bytes);
        (at, bytes.len() as u32)
    };
    let mut table = vec![0; 16];
    for (name, value) in symbols {
        table.extend([*name, *value, 0].iter().flat_map(|n| n.to_le_bytes()));
        // A function, in a section.
        table.extend([2, 0, 1, 0]);
    }
    let (symbols_at, symbols_size) = put(&mut file, &table);
    let (names_at, names_size) = put(&mut file, names);
    let header = |kind: u32, at: u32, size: u32, link: u32, entry: u32| {
        [0, kind, 0, 0, at, size, link, 0, 1, entry].map(u32::to_le_bytes).concat()
    };
    let headers = [
        header(0, 0, 0, 0, 0),
        header(2, symbols_at, symbols_size, 2, 16),
        header(3, names_at, names_size, 0, 0),
    ];
    let (headers_at, _) = put(&mut file, &headers.concat());
    file[32..36].copy_from_slice(&headers_at.to_le_bytes());
    file[46..50].copy_from_slice(&[40, 0, 3, 0]);
    file
}

/// Names come from anyone, and are printed: only those that can be, and no long ones.
#[test]
fn names_of_symbols_are_visible() {
    let long = [b'x'; 300];
    let names = [b"\0main\0\x1b[31mred\0two words\0.local\0", &long[..], b"\0open"].concat();
    let place = |name: &[u8]| names.windows(name.len()).position(|w| w == name).unwrap() as u32;
    let at = |name: &[u8], value: u32| (place(name), value);
    let all = [at(b"main", 0x1_0000), at(b"\x1b[31m", 4), at(b"two", 8), at(b".local", 12)];
    let rest = [at(&long, 16), at(b"open", 20), (1 << 20, 24)];
    let file = with_symbols(&names, &[&all[..], &rest].concat());
    let program = Program::from_elf(&file).unwrap();
    assert_eq!(program.summary().symbols, 1);
    assert_eq!(program.symbol(0x1_0004), Some(("main", 4)));
    assert_eq!(program.symbol(0xffff), None);
    // Many symbols whose names have no end are not looked for to the end of the file.
    let endless = vec![b'x'; 1 << 20];
    let file = with_symbols(&endless, &vec![(1, 0x1_0000); 1 << 16]);
    assert_eq!(Program::from_elf(&file).unwrap().summary().symbols, 0);
}

/// Names of Rust are shown as they are written, without hashes; short symbols that stand for long names are cut off.
#[test]
fn names_are_readable_and_short() {
    assert_eq!(readable("main"), "main");
    assert_eq!(readable("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
    assert_eq!(readable("_ZN7$u202e$3fooE"), "?::foo");
    // Back references double the name again and again, to a million characters.
    let bomb = readable("_RYFG_FGyyEvRYFF_EvRYFFEvERLB_B_B_ERLRjB_B_B_");
    assert_eq!(bomb.len(), 256, "{bomb}");
    assert_eq!(readable(&"\u{e9}".repeat(200)).len(), 256, "whole characters");
}
