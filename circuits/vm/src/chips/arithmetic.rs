//! Constants, sums, logic and comparisons.

use super::common::{Fields, imm, rd, rs1, rs2, step};
use crate::form::{Form, constant};
use crate::isa::Chip;
use crate::op::{Op, low, sign};
use crate::template::{Asked, Builder, OfOp};
use crate::word::power;

/// LI: rd = imm; both are values of entries, with the factor b_V.
pub(super) fn li(b: &mut Builder) {
    let step = step(b);
    step.next(b, &step.after());
    let (imm, rd) = (imm(b), rd(b));
    step.write(b, &rd, &imm);
    let fields = Fields { rd: Some(rd), imm: Some(imm), ..Fields::default() };
    step.fetch(b, Chip::Li, &constant(0), &fields);
}

/// ADDI: z = x + imm - 2^32 c.
pub(super) fn add_imm(b: &mut Builder) {
    let step = step(b);
    step.next(b, &step.after());
    let [rs1, rd, imm] = [rs1(b), rd(b), imm(b)];
    let x = step.x(b, &rs1);
    let z = sum(b, &x, &imm);
    b.word_range("z range", &z, "zl", |op| low(op.address()));
    step.write(b, &rd, &z);
    let fields = Fields { rs1: Some(rs1), rd: Some(rd), imm: Some(imm), rs2: None };
    step.fetch(b, Chip::AddImm, &constant(0), &fields);
}

/// x + imm without its carry. The caller checks that it is a word.
pub(super) fn sum(b: &mut Builder, x: &Form, imm: &Form) -> Form {
    // The carry is the prover's choice. Operands are below 2^32, so exactly one choice puts the sum below
    // 2^32, and the caller's range refuses the other one.
    let carry = b.bit("c", "carry", |op| op.x.checked_add(op.imm).is_none().into());
    x + imm - carry * b.word().modulus()
}

/// ADD, SUB: z = x + y - 2^32 c, or x - y + 2^32 (1 - c).
pub(super) fn add(b: &mut Builder) {
    let step = step(b);
    let subtract = b.bit("s", "flag", |op| op.is(1));
    step.next(b, &step.after());
    let [rs1, rs2, rd] = [rs1(b), rs2(b), rd(b)];
    let (x, y) = (step.x(b, &rs1), step.y(b, &rs2));
    let carry = b.bit("c", "carry", |op| match op.variant {
        0 => op.x.checked_add(op.y).is_none().into(),
        _ => (op.x >= op.y).into(),
    });
    // One chip for both, with a bit that is part of the opcode: two chips would be two subcircuit types, each with keys
    // of its own.
    let negative = b.product("select", &subtract, &y);
    let z = &x + &y - negative * 2 - (carry - &subtract) * b.word().modulus();
    b.word_range("z range", &z, "zl", |op| {
        low(match op.variant {
            0 => op.x.wrapping_add(op.y),
            _ => op.x.wrapping_sub(op.y),
        })
    });
    step.write(b, &rd, &z);
    let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), rd: Some(rd), imm: None };
    step.fetch(b, Chip::Add, &subtract, &fields);
}

pub(super) fn and(op: &Op) -> u32 {
    op.x & op.operand()
}

/// A byte of both operands and of their AND, as in the table.
fn bytes(op: &Op, byte: u32) -> i128 {
    let part = |word: u32| i128::from(word >> (8 * byte) & 0xff);
    // 40 and not 8 bits apart: what remains for the last byte is bounded only as part of the sum, and must
    // not reach into the next digit.
    part(op.x) | part(op.operand()) << 40 | part(and(op)) << 80
}

/// The AND of both operands: x + 2^40 y + 2^80 w is a sum of bytes' rows of the table. It may be a fraction
/// until the caller checks the range of what comes of it.
pub(super) fn conjunction(b: &mut Builder, x: &Form, y: &Form) -> Form {
    // AND alone has a table; OR and XOR follow from it and the sum of the operands, so one table of 65,536
    // rows serves all three.
    let w = b.commit("w", |op| and(op).into());
    let places: [(&'static str, OfOp); 3] =
        [("p1", |op| bytes(op, 1)), ("p2", |op| bytes(op, 2)), ("p3", |op| bytes(op, 3))];
    let byte = b.word().byte();
    let mut rest = x + y * power(40) + &w * power(80);
    for (place, (name, value)) in (1..).zip(places) {
        let packed = b.commit(name, value);
        b.ask("logic", Asked::Logic, &packed, &constant(0));
        rest = rest - packed * power(byte * place);
    }
    // The lowest byte is what the sum leaves, so it needs no committed value.
    b.ask("logic", Asked::Logic, &rest, &constant(0));
    w
}

/// AND, OR, XOR. OR is x + y - w, XOR x + y - 2 w.
pub(super) fn logic(b: &mut Builder) {
    let step = step(b);
    let or = b.bit("f1", "flag", |op| op.is(1));
    let xor = b.bit("f2", "flag", |op| op.is(2));
    step.next(b, &step.after());
    let [rs1, rs2, rd, imm] = [rs1(b), rs2(b), rd(b), imm(b)];
    // One of the two is zero: x0, or the immediate of an instruction without one.
    let (x, y) = (step.x(b, &rs1), step.y(b, &rs2) + &imm);
    let w = conjunction(b, &x, &y);
    let sum = b.product("select", &(&or + &xor), &(&x + &y));
    let rest = b.product("select", &(constant(1) - &or * 2 - &xor * 3), &w);
    let z = sum + rest;
    // Otherwise the AND could be a fraction, which makes up for other operands.
    b.word_range("z range", &z, "zl", |op| {
        low(match op.variant {
            0 => and(op),
            1 => op.x | op.operand(),
            _ => op.x ^ op.operand(),
        })
    });
    step.write(b, &rd, &z);
    let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), rd: Some(rd), imm: Some(imm) };
    step.fetch(b, Chip::Logic, &(or + xor * 2), &fields);
}

/// The difference of a comparison: x - y + 2^32 if that is negative, as signed numbers or not.
fn difference(op: &Op, signed: bool) -> u32 {
    let bias = if signed { 1 << 31 } else { 0 };
    // Flipping the sign bit adds 2^31 modulo 2^32: signed numbers then compare as unsigned ones do.
    (op.x ^ bias).wrapping_sub(op.operand() ^ bias)
}

fn is_less(op: &Op, signed: bool) -> i128 {
    let bias = if signed { 1 << 31 } else { 0 };
    ((op.x ^ bias) < (op.operand() ^ bias)).into()
}

/// SLT, SLTU: x - y - 2^32 s (sx - sy) + 2^32 lt is a word.
pub(super) fn set_less(b: &mut Builder) {
    let step = step(b);
    let signed = b.bit("s", "flag", |op| op.is(1));
    step.next(b, &step.after());
    let [rs1, rs2, rd, imm] = [rs1(b), rs2(b), rd(b), imm(b)];
    let (x, y) = (step.x(b, &rs1), step.y(b, &rs2) + &imm);
    let sign_x = b.sign(&x, ["xl", "sx"], |op| low(op.x), |op| sign(op.x));
    let sign_y = b.sign(&y, ["yl", "sy"], |op| low(op.operand()), |op| sign(op.operand()));
    // Signs are committed for SLTU, too, where this product drops them: one chip for both variants.
    let signs = b.product("select", &signed, &(sign_x - sign_y));
    let less = b.bit("lt", "lt bit", |op| is_less(op, op.variant == 1));
    let modulus = b.word().modulus();
    let difference_is = x - y - signs * modulus + &less * modulus;
    b.word_range("lt range", &difference_is, "dl", |op| low(difference(op, op.variant == 1)));
    step.write(b, &rd, &less);
    let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), rd: Some(rd), imm: Some(imm) };
    step.fetch(b, Chip::SetLess, &signed, &fields);
}
