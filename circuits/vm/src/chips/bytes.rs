//! Loads and stores of bytes and halves.

use super::access::{Offset, word_address};
use super::common::{Fields, imm, rd, rs1, rs2, step};
use crate::form::{Form, constant};
use crate::isa::Chip;
use crate::op::{Op, low};
use crate::template::Builder;
use crate::word::power;

/// The offset of an address in its word.
pub(super) fn offset(b: &mut Builder) -> Offset {
    let odd = b.bit("o0", "offset", |op| (op.address() & 1).into());
    let upper = b.bit("o1", "offset", |op| (op.address() >> 1 & 1).into());
    Offset { odd, upper }
}

/// The half of a word, and the byte of the half, at an offset.
pub(super) fn part(b: &mut Builder, word: &Form, offset: &Offset) -> [Form; 2] {
    let (limb, byte) = (b.word().limb(), b.word().byte());
    let low_half = b.commit("w0", |op| low(op.word));
    // The upper half is what is left of the word: only the lower one is committed, here and for the bytes.
    let high_half = b.rest(word, &low_half, limb);
    b.range("halves", limb, &low_half);
    b.range("halves", limb, &high_half);
    let half = b.select(&offset.upper, &high_half, &low_half);
    let low_byte = b.commit("b0", |op| (op.part()[0] & 0xff).into());
    let high_byte = b.rest(&half, &low_byte, byte);
    b.range("bytes", byte, &low_byte);
    b.range("bytes", byte, &high_byte);
    // Which half and which byte follows from the bits of the address that word addresses do not have.
    let byte = b.select(&offset.odd, &high_byte, &low_byte);
    [half, byte]
}

/// LBU.
pub(super) fn load_byte(b: &mut Builder) {
    let step = step(b);
    step.next(b, &step.after());
    let [rs1, rd, imm] = [rs1(b), rd(b), imm(b)];
    let x = step.x(b, &rs1);
    let offset = offset(b);
    let address = word_address(b, &x, &imm, Some(&offset));
    let word = b.commit("v", |op| op.word.into());
    step.memory(b, &address, &word, &word);
    let [_, byte] = part(b, &word, &offset);
    step.write(b, &rd, &byte);
    let fields = Fields { rs1: Some(rs1), rd: Some(rd), imm: Some(imm), rs2: None };
    step.fetch(b, Chip::LoadByte, &constant(0), &fields);
}

/// LB, LH, LHU: the part, and its sign times the bits above it.
pub(super) fn load_part(b: &mut Builder) {
    let (limb, byte_bits, modulus) = (b.word().limb(), b.word().byte(), b.word().modulus());
    let step = step(b);
    let half_signed = b.bit("f1", "flag", |op| op.is(1));
    let half_unsigned = b.bit("f2", "flag", |op| op.is(2));
    step.next(b, &step.after());
    let [rs1, rd, imm] = [rs1(b), rd(b), imm(b)];
    let x = step.x(b, &rs1);
    let offset = offset(b);
    let address = word_address(b, &x, &imm, Some(&offset));
    let word = b.commit("v", |op| op.word.into());
    step.memory(b, &address, &word, &word);
    let [half, byte] = part(b, &word, &offset);
    let is_half = &half_signed + &half_unsigned;
    b.row("half aligned", &is_half, &offset.odd, &constant(0));
    let byte_sign = b.bit("s8", "sign bit", |op| (op.part()[1] >> 7).into());
    b.range("sign", byte_bits - 1, &(&byte - &byte_sign * power(byte_bits - 1)));
    let half_sign = b.bit("s16", "sign bit", |op| (op.part()[0] >> 15).into());
    b.range("sign", limb - 1, &(&half - &half_sign * power(limb - 1)));
    let value = b.select(&is_half, &half, &byte);
    let sign = b.select(&is_half, &half_sign, &byte_sign);
    let extended = b.product("select", &(constant(1) - &half_unsigned), &sign);
    let (byte_end, half_end) = (1i128 << byte_bits, 1i128 << limb);
    // All bits above the part, as a number: those above a byte, or above a half.
    let above = constant(modulus - byte_end) + &is_half * (byte_end - half_end);
    let z = value + b.product("select", &extended, &above);
    step.write(b, &rd, &z);
    let fields = Fields { rs1: Some(rs1), rd: Some(rd), imm: Some(imm), rs2: None };
    step.fetch(b, Chip::LoadPart, &(half_signed + half_unsigned * 2), &fields);
}

/// The lower half and the lowest byte of the second operand. The bytes bound the lower half.
pub(super) fn lowest(b: &mut Builder, y: &Form) -> [Form; 2] {
    fn byte_of(op: &Op) -> i128 {
        (op.y & 0xff).into()
    }
    let (limb, byte_bits) = (b.word().limb(), b.word().byte());
    let half = b.commit("yl", |op| low(op.y));
    let high_half = b.rest(y, &half, limb);
    b.range("halves", limb, &high_half);
    let byte = b.commit("yb", byte_of);
    b.range("bytes", byte_bits, &byte);
    let above = b.rest(&half, &byte, byte_bits);
    b.range("bytes", byte_bits, &above);
    [half, byte]
}

/// Returns the factor for the place of a part: 1, or 2^bits if the bit is 1.
pub(super) fn place(bit: &Form, bits: u32) -> Form {
    constant(1) + bit * ((1i128 << bits) - 1)
}

/// SB, SH: the word with another byte in its half, or with another half.
pub(super) fn store_part(b: &mut Builder) {
    let (limb, byte_bits) = (b.word().limb(), b.word().byte());
    let step = step(b);
    let is_half = b.bit("f1", "flag", |op| op.is(1));
    step.next(b, &step.after());
    let [rs1, rs2, imm] = [rs1(b), rs2(b), imm(b)];
    let (x, y) = (step.x(b, &rs1), step.y(b, &rs2));
    let offset = offset(b);
    let address = word_address(b, &x, &imm, Some(&offset));
    let word = b.commit("v", |op| op.word.into());
    let [half, byte] = part(b, &word, &offset);
    let [new_half, new_byte] = lowest(b, &y);
    b.row("half aligned", &is_half, &offset.odd, &constant(0));
    // The word changes by the difference of the part at its place: nothing else of it can change.
    let with_byte = &half + b.product("select", &(new_byte - byte), &place(&offset.odd, byte_bits));
    let changed = b.select(&is_half, &new_half, &with_byte);
    let with_half = b.product("select", &(changed - half), &place(&offset.upper, limb));
    step.memory(b, &address, &word, &(&word + with_half));
    let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), imm: Some(imm), rd: None };
    step.fetch(b, Chip::StorePart, &is_half, &fields);
}
