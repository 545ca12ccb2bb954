//! Loads, stores and read. Addresses are a register or an immediate; those of words mean the word that the
//! byte at the address is in.

use super::is_zero;
use crate::chips::access::{Offset, aligned_address};
use crate::chips::bytes::{lowest, offset, part, place};
use crate::chips::common::{Fields, Step, imm, rd, rs1, rs2, step};
use crate::form::{Form, constant};
use crate::isa::Chip;
use crate::op::{END, Op, low};
use crate::template::{Builder, OfOp};

/// A load or a store, up to its address.
struct Access {
    step: Step,
    fields: Fields,
    offset: Offset,
    address: Form,
    word: Form,
}

impl Access {
    fn new(b: &mut Builder) -> Self {
        let step = step(b);
        step.next(b, &step.after_tiny());
        let [rs1, imm] = [rs1(b), imm(b)];
        // No carry here: one of the two is zero, so the sum is a word already.
        let place = step.x(b, &rs1) + &imm;
        let offset = offset(b);
        let address = aligned_address(b, place, Some(&offset));
        let word = b.commit("v", |op| op.word.into());
        let fields = Fields { rs1: Some(rs1), imm: Some(imm), ..Fields::default() };
        Self { step, fields, offset, address, word }
    }

    /// A load of a value from the word.
    fn load(mut self, b: &mut Builder, chip: Chip, value: &Form) {
        self.step.memory(b, &self.address, &self.word, &self.word);
        let rd = rd(b);
        self.step.write(b, &rd, value);
        self.fields.rd = Some(rd);
        self.step.fetch(b, chip, &constant(0), &self.fields);
    }

    /// The register that a store takes its value from.
    fn stored(&mut self, b: &mut Builder) -> Form {
        let rs2 = rs2(b);
        let y = self.step.y(b, &rs2);
        self.fields.rs2 = Some(rs2);
        y
    }

    /// A store that leaves a value in place of the word.
    fn store(self, b: &mut Builder, chip: Chip, left: &Form) {
        self.step.memory(b, &self.address, &self.word, left);
        self.step.fetch(b, chip, &constant(0), &self.fields);
    }
}

/// load.w.
pub(in crate::chips) fn load_word(b: &mut Builder) {
    let access = Access::new(b);
    let word = access.word.clone();
    access.load(b, Chip::TinyLoadWord, &word);
}

/// load.b.
pub(in crate::chips) fn load_byte(b: &mut Builder) {
    let access = Access::new(b);
    let [_, byte] = part(b, &access.word, &access.offset);
    access.load(b, Chip::TinyLoadByte, &byte);
}

/// store.w.
pub(in crate::chips) fn store_word(b: &mut Builder) {
    let mut access = Access::new(b);
    let y = access.stored(b);
    access.store(b, Chip::TinyStoreWord, &y);
}

/// store.b: the word with another byte in its half.
pub(in crate::chips) fn store_byte(b: &mut Builder) {
    let (limb, byte_bits) = (b.word().limb(), b.word().byte());
    let mut access = Access::new(b);
    let y = access.stored(b);
    let [_, byte] = part(b, &access.word, &access.offset);
    let [_, new_byte] = lowest(b, &y);
    let Offset { odd, upper } = &access.offset;
    let in_half = b.product("select", &(new_byte - byte), &place(odd, byte_bits));
    let in_word = b.product("select", &in_half, &place(upper, limb));
    let left = &access.word + in_word;
    access.store(b, Chip::TinyStoreByte, &left);
}

/// The word of the tape that the operation gets, or 0.
fn got(op: &Op) -> u32 {
    if op.operand() == 1 && op.bits & END == 0 { op.word } else { 0 }
}

/// read: the next word of tape 1, which is the prover's, or 0 and the flag if the tape has ended; and so it
/// stays then. Other tapes are empty.
pub(in crate::chips) fn read(b: &mut Builder) {
    let step = step(b);
    step.next(b, &step.after_tiny());
    let [rs2, rd, imm] = [rs2(b), rd(b), imm(b)];
    let y = step.y(b, &rs2) + &imm;
    let values: [(&'static str, OfOp); 2] =
        [("t1", |op| (op.operand() == 1).into()), ("iv", |op| i128::from(op.operand()) - 1)];
    let is_tape = is_zero(b, &(y - constant(1)), values);
    let ended = b.commit("x", |op| op.x.into());
    let ends = b.bit("end", "end bit", |op| (op.bits & END != 0).into());
    step.tape(b, &ended, &ends);
    // The end of the tape is final: a prover who could take it back would choose which reads see a word.
    b.row("ended", &ended, &(constant(1) - &ends), &constant(0));
    // Reads of other tapes leave the register as it was.
    b.row("other tape", &(constant(1) - &is_tape), &(&ends - &ended), &constant(0));
    let gets = b.product("select", &is_tape, &(constant(1) - &ends));
    let value = b.commit("tv", |op| got(op).into());
    b.word_range("tape range", &value, "tl", |op| low(got(op)));
    // Without a word, the result is 0 and not a value of the prover's choice.
    b.row("no value", &value, &(constant(1) - &gets), &constant(0));
    step.write(b, &rd, &value);
    // The flag says that there was no word.
    step.write_flag(b, &(constant(1) - gets));
    let fields = Fields { rs2: Some(rs2), rd: Some(rd), imm: Some(imm), rs1: None };
    step.fetch(b, Chip::TinyRead, &constant(0), &fields);
}
