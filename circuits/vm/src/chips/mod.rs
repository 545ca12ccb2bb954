//! The opcode chips: the rows of one operation of each class of instructions.
//!
//! Words are below 2^32: those of the image and the input are checked, results are range-checked, and all
//! others are copies of these. Operands are exact, because entries of registers and memory are; so the
//! equations below determine their parts over the integers.

mod access;
mod arithmetic;
mod branches;
mod bytes;
mod calls;
mod common;
mod mulmod;
mod multiply;
mod shifts;
pub(crate) mod tiny;

pub(crate) use common::{ADDRESS_BITS, FLAG, REGISTER_BITS, TAPE, TICKS, ZERO};
#[cfg(test)]
pub(crate) use {calls::call, mulmod::remainder};

use crate::isa::Chip;
use crate::precompile::Precompile;
use crate::template::{Builder, Template};
use crate::word::Word;

/// The rows of an operation of a chip.
pub(crate) fn template(chip: Chip, word: Word) -> Template {
    let mut builder = Builder::new(word);
    let b = &mut builder;
    match chip {
        Chip::Li => arithmetic::li(b),
        Chip::AddImm => arithmetic::add_imm(b),
        Chip::Add => arithmetic::add(b),
        Chip::Logic => arithmetic::logic(b),
        Chip::SetLess => arithmetic::set_less(b),
        Chip::ShiftImm => shifts::shift_imm(b),
        Chip::Shift => shifts::shift(b),
        Chip::BranchEqual => branches::equal(b),
        Chip::BranchBelow => branches::below(b),
        Chip::BranchLess => branches::less(b),
        Chip::Jump => branches::jump(b),
        Chip::JumpReg => branches::jump_reg(b),
        Chip::LoadWord => access::load_word(b),
        Chip::StoreWord => access::store_word(b),
        Chip::LoadByte => bytes::load_byte(b),
        Chip::LoadPart => bytes::load_part(b),
        Chip::StorePart => bytes::store_part(b),
        Chip::Multiply => multiply::multiply(b),
        Chip::MultiplyHigh => multiply::multiply_high(b),
        Chip::Divide => multiply::divide(b),
        Chip::Sha256 => calls::call(b, chip, Precompile::Sha256.call()),
        Chip::Keccak => calls::call(b, chip, Precompile::Keccak.call()),
        Chip::MulMod256 => mulmod::bits_256(b, chip, Precompile::MulMod256.call()),
        Chip::MulMod384 => mulmod::bits_384(b, chip, Precompile::MulMod384.call()),
        Chip::TinyMoveImm => tiny::control::move_imm(b),
        Chip::TinyMove => tiny::control::move_register(b),
        Chip::TinyMoveIf => tiny::control::move_if(b),
        Chip::TinyLogic => tiny::arithmetic::logic(b),
        Chip::TinyAdd => tiny::arithmetic::add(b),
        Chip::TinyMultiply => tiny::multiply::multiply(b),
        Chip::TinyMultiplySigned => tiny::multiply::multiply_signed(b),
        Chip::TinyDivide => tiny::multiply::divide(b),
        Chip::TinyShift => tiny::arithmetic::shift(b),
        Chip::TinyEqual => tiny::compare::equal(b),
        Chip::TinyAbove => tiny::compare::above(b),
        Chip::TinyGreater => tiny::compare::greater(b),
        Chip::TinyJump => tiny::control::jump(b),
        Chip::TinyBranch => tiny::control::branch(b),
        Chip::TinyBranchReg => tiny::control::branch_register(b),
        Chip::TinyLoadWord => tiny::access::load_word(b),
        Chip::TinyStoreWord => tiny::access::store_word(b),
        Chip::TinyLoadByte => tiny::access::load_byte(b),
        Chip::TinyStoreByte => tiny::access::store_byte(b),
        Chip::TinyRead => tiny::access::read(b),
    }
    builder.finish()
}

/// The rows of a refresh: the cell of a register moves forward in time, so that gaps between accesses have
/// one limb. Which register, and from when, stays the prover's: the key is that of a cell.
pub(crate) fn refresh(word: Word) -> Template {
    let mut builder = Builder::new(word);
    common::refresh(&mut builder);
    builder.finish()
}
