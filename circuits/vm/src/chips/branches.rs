//! Branches and jumps. A branch has two rows in the program, one for each outcome, with the place where the program
//! continues as immediate.

use super::common::{Fields, Step, imm, rd, rs1, rs2, step};
use crate::chips::arithmetic::sum;
use crate::form::{Form, constant};
use crate::isa::Chip;
use crate::op::{low, sign};
use crate::template::Builder;

struct Branch {
    step: Step,
    taken: Form,
    fields: Fields,
    x: Form,
    y: Form,
}

impl Branch {
    /// Starts a branch with the condition `taken`.
    fn new(b: &mut Builder, taken: Form) -> Self {
        let step = step(b);
        let [rs1, rs2, imm] = [rs1(b), rs2(b), imm(b)];
        step.next(b, &imm);
        // The immediate is the next pc for both outcomes, so no row adds an offset to the pc and checks
        // that it is a word.
        let (x, y) = (step.x(b, &rs1), step.y(b, &rs2));
        let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), imm: Some(imm), rd: None };
        Self { step, taken, fields, x, y }
    }

    fn fetch(&self, b: &mut Builder, chip: Chip) {
        self.step.fetch(b, chip, &self.taken, &self.fields);
    }
}

/// BEQ, BNE: (x - y) iv = 1 - t, (x - y) t = 0.
pub(super) fn equal(b: &mut Builder) {
    // Not a bit by a row of its own: where x and y differ, the second row below makes it 0, and where they
    // are equal, the first one makes it 1.
    let taken = b.commit("t", |op| (op.x == op.y).into());
    let branch = Branch::new(b, taken);
    let difference = &branch.x - &branch.y;
    let inverse = b.commit_inverse("iv", |op| i128::from(op.x) - i128::from(op.y));
    b.row("eq", &difference, &inverse, &(constant(1) - &branch.taken));
    b.row("eq", &difference, &branch.taken, &constant(0));
    branch.fetch(b, Chip::BranchEqual);
}

/// BLTU, BGEU: x - y + 2^32 t is a word.
pub(super) fn below(b: &mut Builder) {
    let taken = b.bit("t", "lt bit", |op| (op.x < op.y).into());
    let branch = Branch::new(b, taken);
    // Only one value of t puts the difference between 0 and 2^32 - 1.
    let difference = &branch.x - &branch.y + &branch.taken * b.word().modulus();
    b.word_range("lt range", &difference, "dl", |op| low(op.x.wrapping_sub(op.y)));
    branch.fetch(b, Chip::BranchBelow);
}

/// BLT, BGE: the same of signed numbers.
pub(super) fn less(b: &mut Builder) {
    let taken = b.bit("t", "lt bit", |op| (op.x.cast_signed() < op.y.cast_signed()).into());
    let branch = Branch::new(b, taken);
    let sign_x = b.sign(&branch.x, ["xl", "sx"], |op| low(op.x), |op| sign(op.x));
    let sign_y = b.sign(&branch.y, ["yl", "sy"], |op| low(op.y), |op| sign(op.y));
    let modulus = b.word().modulus();
    let difference = &branch.x - &branch.y - (sign_x - sign_y) * modulus + &branch.taken * modulus;
    b.word_range("lt range", &difference, "dl", |op| {
        low((op.x ^ 1 << 31).wrapping_sub(op.y ^ 1 << 31))
    });
    branch.fetch(b, Chip::BranchLess);
}

/// JAL: rd = pc + 4, and on to imm.
pub(super) fn jump(b: &mut Builder) {
    let step = step(b);
    let (imm, rd) = (imm(b), rd(b));
    step.next(b, &imm);
    step.write(b, &rd, &step.after());
    // The return address needs no range: the pc is that of a row of the program, and code is below 2^28.
    let fields = Fields { rd: Some(rd), imm: Some(imm), ..Fields::default() };
    step.fetch(b, Chip::Jump, &constant(0), &fields);
}

/// JALR: rd = pc + 4, and on to z = x + imm - 2^32 c without its lowest bit. The next instruction has a row
/// only if that is a multiple of four.
pub(super) fn jump_reg(b: &mut Builder) {
    let step = step(b);
    let [rs1, rd, imm] = [rs1(b), rd(b), imm(b)];
    let x = step.x(b, &rs1);
    let z = sum(b, &x, &imm);
    // JALR clears the lowest bit of its target (RISC-V unprivileged manual, "Unconditional Jumps").
    let odd = b.bit("o0", "offset", |op| (op.address() & 1).into());
    b.word_range("z range", &z, "zl", |op| low(op.address()));
    step.next(b, &(&z - &odd));
    step.write(b, &rd, &step.after());
    let fields = Fields { rs1: Some(rs1), rd: Some(rd), imm: Some(imm), rs2: None };
    step.fetch(b, Chip::JumpReg, &constant(0), &fields);
}
