//! Programs for RV32IM, without a compiler.

/// A segment of an ELF file: address, words, bytes in memory, and flags (4 to read, 2 to write, 1 to execute).
pub type Segment<'a> = (u32, &'a [u32], u32, u32);

/// An ELF file with these words of code at 0x10000, where it begins.
pub fn elf(words: &[u32]) -> Vec<u8> {
    elf_of(0x1_0000, &[(0x1_0000, words, size(words), 5)])
}

/// An ELF file that begins at `entry` and has these segments, and no sections.
#[allow(clippy::cast_possible_truncation, reason = "few segments")]
pub fn elf_of(entry: u32, segments: &[Segment<'_>]) -> Vec<u8> {
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2u16, 243].iter().flat_map(|n| n.to_le_bytes()));
    file.extend([1u32, entry, 52, 0, 0].iter().flat_map(|n| n.to_le_bytes()));
    file.extend([52u16, 32, segments.len() as u16, 0, 0, 0].iter().flat_map(|n| n.to_le_bytes()));
    let mut at = 52 + 32 * segments.len() as u32;
    for (address, words, in_memory, flags) in segments {
        let header = [1, at, *address, *address, size(words), *in_memory, *flags, 4];
        file.extend(header.iter().flat_map(|n: &u32| n.to_le_bytes()));
        at += size(words);
    }
    file.extend(segments.iter().flat_map(|(_, words, ..)| *words).flat_map(|n| n.to_le_bytes()));
    file
}

/// The number of bytes of some words.
#[allow(clippy::cast_possible_truncation, reason = "short programs")]
fn size(words: &[u32]) -> u32 {
    4 * words.len() as u32
}

/// The sum of the private bytes, times the public word, is the exit code; the sum is the first output.
pub const SUM: [u32; 16] = [
    0x2000_02b7, // lui   t0, 0x20000
    0x0002_a303, // lw    t1, 0(t0)        the public word
    0x0042_a383, // lw    t2, 4(t0)        the number of bytes
    0x0082_8293, // addi  t0, t0, 8
    0x0000_0513, // li    a0, 0
    0x0003_8c63, // beqz  t2, +24
    0x0002_ce03, // lbu   t3, 0(t0)
    0x01c5_0533, // add   a0, a0, t3
    0x0012_8293, // addi  t0, t0, 1
    0xfff3_8393, // addi  t2, t2, -1
    0xfedf_f06f, // j     -20
    0x3000_02b7, // lui   t0, 0x30000
    0x00a2_a023, // sw    a0, 0(t0)
    0x0265_0533, // mul   a0, a0, t1
    0x05d0_0893, // li    a7, 93
    0x0000_0073, // ecall
];

/// A program for the interpreter of `circuits/vm/guests`: the sum of the squares below `end`.
pub fn squares(end: u32) -> Vec<u8> {
    let [push, add, mul, less, load, store, jump_if, copy] = [1, 2, 4, 9, 10, 11, 13, 14];
    let op = |op: u32, operand: u32| op | operand << 8;
    let code = [
        op(push, 0),
        op(store, 0),
        op(push, 0),
        op(store, 1),
        op(load, 0),
        op(copy, 0),
        op(mul, 0),
        op(load, 1),
        op(add, 0),
        op(store, 1),
        op(load, 0),
        op(push, 1),
        op(add, 0),
        op(copy, 0),
        op(store, 0),
        op(push, end),
        op(less, 0),
        op(jump_if, 4),
        op(load, 1),
        op(0, 0),
    ];
    code.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Numbers without a pattern.
pub fn noise(count: usize) -> impl Iterator<Item = u32> {
    let next = |x: &u32| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(1u32), next).take(count)
}
