//! Loads and stores of words. A misaligned access has no witness.

use super::arithmetic::sum;
use super::common::{Fields, imm, rd, rs1, rs2, step};
use crate::form::{Form, constant};
use crate::isa::Chip;
use crate::template::Builder;
use crate::word::power;

/// The position of an address among the four bytes of a word.
pub(super) struct Offset {
    /// The bit that is 1 for the odd bytes.
    pub(super) odd: Form,
    /// The bit that is 1 for the upper half.
    pub(super) upper: Form,
}

/// The address of the word: x + imm - 2^32 c = 4 (q + 2^14 z1) + offset, where q has 14 bits and z1 has 16.
pub(super) fn word_address(b: &mut Builder, x: &Form, imm: &Form, offset: Option<&Offset>) -> Form {
    let z = sum(b, x, imm);
    aligned_address(b, z, offset)
}

/// The address of the word that a byte is in: z = 4 (q + 2^14 z1) + offset.
pub(super) fn aligned_address(b: &mut Builder, mut z: Form, offset: Option<&Offset>) -> Form {
    if let Some(Offset { odd, upper }) = offset {
        z = z - odd - upper * 2;
    }
    let high = b.commit("z1", |op| (op.address() >> 16).into());
    word_of(b, &z, &high)
}

/// The word at an aligned address: z = 4 (q + 2^14 z1), with z1 committed.
pub(super) fn word_of(b: &mut Builder, z: &Form, high: &Form) -> Form {
    let word = b.word();
    // The committed part is the upper one. The lower one is what is left, divided by 4: a fraction, and in
    // no range, if the address is not aligned.
    let low = b.rest(z, &(high * power(word.limb())), 2);
    // 14 and 16 bits: the word's address is below 2^30, which the digits of memory keys rely on, whatever
    // the register has.
    b.range("align", word.limb() - 2, &low);
    b.range("addr range", word.limb(), high);
    low + high * power(word.limb() - 2)
}

/// LW.
pub(super) fn load_word(b: &mut Builder) {
    let step = step(b);
    step.next(b, &step.after());
    let [rs1, rd, imm] = [rs1(b), rd(b), imm(b)];
    let x = step.x(b, &rs1);
    let address = word_address(b, &x, &imm, None);
    let value = b.commit("v", |op| op.word.into());
    // No range for the value: only words are ever written to memory, and the bus returns what was written.
    step.write(b, &rd, &value);
    step.memory(b, &address, &value, &value);
    let fields = Fields { rs1: Some(rs1), rd: Some(rd), imm: Some(imm), rs2: None };
    step.fetch(b, Chip::LoadWord, &constant(0), &fields);
}

/// SW.
pub(super) fn store_word(b: &mut Builder) {
    let step = step(b);
    step.next(b, &step.after());
    let [rs1, rs2, imm] = [rs1(b), rs2(b), imm(b)];
    let (x, y) = (step.x(b, &rs1), step.y(b, &rs2));
    let address = word_address(b, &x, &imm, None);
    let old = b.commit("v", |op| op.word.into());
    step.memory(b, &address, &old, &y);
    let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), imm: Some(imm), rd: None };
    step.fetch(b, Chip::StoreWord, &constant(0), &fields);
}
