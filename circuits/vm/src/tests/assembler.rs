//! Encodes instructions, and puts them into ELF files.

pub(crate) use hekaton_testing::elf as program;

/// The same with a segment of zeros, for systems that do not have memory everywhere.
pub(crate) fn program_with_data(words: &[u32], data: u32, size: u32) -> Vec<u8> {
    let mut file = program(words);
    // The header of the second segment comes between the first one's and the code, which has its place in a
    // page, as Linux wants it.
    let mut between = [1, 0, data, data, 0, size, 6, 4].map(u32::to_le_bytes).concat();
    between.resize(0x1000 - 84, 0);
    file.splice(84..84, between);
    file[44] = 2;
    file[56..60].copy_from_slice(&0x1000u32.to_le_bytes());
    file
}

pub(crate) fn i(op: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    (imm as u32 & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | op
}

pub(crate) fn r(funct7: u32, funct3: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33
}

pub(crate) fn li(rd: u32, imm: i32) -> u32 {
    i(0x13, 0, rd, 0, imm)
}

pub(crate) fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x13, 0, rd, rs1, imm)
}

pub(crate) fn lui(rd: u32, value: u32) -> u32 {
    value & 0xffff_f000 | rd << 7 | 0x37
}

pub(crate) fn load(funct3: u32, rd: u32, rs1: u32, offset: i32) -> u32 {
    i(0x03, funct3, rd, rs1, offset)
}

pub(crate) fn store(funct3: u32, rs2: u32, rs1: u32, offset: i32) -> u32 {
    let offset = offset as u32;
    (offset >> 5 & 127) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (offset & 31) << 7 | 0x23
}

pub(crate) fn branch(funct3: u32, rs1: u32, rs2: u32, offset: i32) -> u32 {
    let o = offset as u32;
    (o >> 12 & 1) << 31
        | (o >> 5 & 63) << 25
        | rs2 << 20
        | rs1 << 15
        | funct3 << 12
        | (o >> 1 & 15) << 8
        | (o >> 11 & 1) << 7
        | 0x63
}

pub(crate) fn jal(rd: u32, offset: i32) -> u32 {
    let o = offset as u32;
    (o >> 20 & 1) << 31
        | (o >> 1 & 0x3ff) << 21
        | (o >> 11 & 1) << 20
        | (o >> 12 & 0xff) << 12
        | rd << 7
        | 0x6f
}

pub(crate) fn jalr(rd: u32, rs1: u32, offset: i32) -> u32 {
    i(0x67, 0, rd, rs1, offset)
}

pub(crate) const ECALL: u32 = 0x73;

/// Ends a program with an exit code in a0.
pub(crate) fn exit() -> [u32; 2] {
    [li(17, 93), ECALL]
}
