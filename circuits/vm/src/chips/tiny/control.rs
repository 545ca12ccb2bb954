//! mov, cmov, jmp, cjmp and cnjmp: they leave the flag as it is.

use crate::chips::common::{Fields, imm, rd, rs2, step};
use crate::form::{Form, constant};
use crate::isa::Chip;
use crate::op::low;
use crate::template::{Builder, OfOp};

/// mov of an immediate.
pub(in crate::chips) fn move_imm(b: &mut Builder) {
    let step = step(b);
    step.next(b, &step.after_tiny());
    let (imm, rd) = (imm(b), rd(b));
    step.write(b, &rd, &imm);
    let fields = Fields { rd: Some(rd), imm: Some(imm), ..Fields::default() };
    step.fetch(b, Chip::TinyMoveImm, &constant(0), &fields);
}

/// mov of a register.
pub(in crate::chips) fn move_register(b: &mut Builder) {
    let step = step(b);
    step.next(b, &step.after_tiny());
    let [rs2, rd] = [rs2(b), rd(b)];
    let y = step.y(b, &rs2);
    step.write(b, &rd, &y);
    let fields = Fields { rs2: Some(rs2), rd: Some(rd), ..Fields::default() };
    step.fetch(b, Chip::TinyMove, &constant(0), &fields);
}

/// cmov: the register becomes y if the flag is 1, and is written as it was otherwise.
pub(in crate::chips) fn move_if(b: &mut Builder) {
    let step = step(b);
    step.next(b, &step.after_tiny());
    let [rs2, rd, imm] = [rs2(b), rd(b), imm(b)];
    let y = step.y(b, &rs2) + &imm;
    let flag = step.flag(b);
    // The register is written in both cases: an access that depends on the flag would need an enable bit of
    // its own.
    step.update(b, &rd, |b, old| b.select(&flag, &y, old));
    let fields = Fields { rs2: Some(rs2), rd: Some(rd), imm: Some(imm), rs1: None };
    step.fetch(b, Chip::TinyMoveIf, &constant(0), &fields);
}

/// The place that a register says is a word, whatever else is true: the pc is the lowest digit of the next
/// row's key, and the registers of that row, which make values words, are digits above it.
fn target(b: &mut Builder, place: &Form, low: OfOp) {
    b.word_range("target", place, "tl", low);
}

/// jmp.
pub(in crate::chips) fn jump(b: &mut Builder) {
    let step = step(b);
    let [rs2, imm] = [rs2(b), imm(b)];
    let y = step.y(b, &rs2) + &imm;
    target(b, &y, |op| low(op.operand()));
    step.next(b, &y);
    let fields = Fields { rs2: Some(rs2), imm: Some(imm), ..Fields::default() };
    step.fetch(b, Chip::TinyJump, &constant(0), &fields);
}

/// cjmp, cnjmp to an immediate: two rows in the program, one for each flag, with the place where the program continues.
pub(in crate::chips) fn branch(b: &mut Builder) {
    let step = step(b);
    let imm = imm(b);
    step.next(b, &imm);
    let flag = step.flag(b);
    let fields = Fields { imm: Some(imm), ..Fields::default() };
    step.fetch(b, Chip::TinyBranch, &flag, &fields);
}

/// cjmp, cnjmp to a register.
pub(in crate::chips) fn branch_register(b: &mut Builder) {
    let unless = b.bit("u", "variant", |op| op.is(1));
    let step = step(b);
    let rs2 = rs2(b);
    let y = step.y(b, &rs2);
    target(b, &y, |op| low(op.operand()));
    let flag = step.flag(b);
    let both = b.product("select", &unless, &flag);
    // The exclusive or of the flag and the variant: cjmp jumps on 1, cnjmp on 0.
    let taken = flag + &unless - both * 2;
    let next = b.select(&taken, &y, &step.after_tiny());
    step.next(b, &next);
    let fields = Fields { rs2: Some(rs2), ..Fields::default() };
    step.fetch(b, Chip::TinyBranchReg, &unless, &fields);
}
