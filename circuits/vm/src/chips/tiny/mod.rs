//! The chips of TinyRAM. Its second operand is a register or an immediate: as in RV32IM, where it is one of
//! both, the register is one that is always zero, or the immediate is. Most instructions write a flag, too,
//! which is a register of its own.

pub(super) mod access;
pub(super) mod arithmetic;
pub(super) mod compare;
pub(super) mod control;
pub(super) mod multiply;

use super::common::{Fields, Step, imm, rd, rs1, rs2, step};
use crate::form::{Form, constant};
use crate::isa::Chip;
use crate::template::{Builder, OfOp};

/// An instruction `op ri rj A`, or `op rj A` of those that write only the flag.
struct Binary {
    step: Step,
    x: Form,
    y: Form,
    fields: Fields,
}

impl Binary {
    fn new(b: &mut Builder, writes: bool) -> Self {
        let step = step(b);
        // TinyRAM's instructions have two words, and jumps have chips of their own.
        step.next(b, &step.after_tiny());
        let [rs1, rs2, imm] = [rs1(b), rs2(b), imm(b)];
        let rd = writes.then(|| rd(b));
        // The operand A is a register or an immediate; the other one of the two is zero by the row of the
        // program, so their sum is A.
        let (x, y) = (step.x(b, &rs1), step.y(b, &rs2) + &imm);
        let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), rd, imm: Some(imm) };
        Self { step, x, y, fields }
    }

    /// Writes the result, if there is one, and the flag.
    fn finish(self, b: &mut Builder, chip: Chip, variant: &Form, z: Option<&Form>, flag: &Form) {
        if let (Some(rd), Some(z)) = (&self.fields.rd, z) {
            self.step.write(b, rd, z);
        }
        self.step.write_flag(b, flag);
        self.step.fetch(b, chip, variant, &self.fields);
    }
}

/// Returns a bit that is 1 if a form is zero. The bit and the inverse of the form are committed under these names;
/// their functions return the bit, and the integer to invert.
fn is_zero(b: &mut Builder, form: &Form, [bit, inverse]: [(&'static str, OfOp); 2]) -> Form {
    let is_zero = b.commit(bit.0, bit.1);
    // Of zero, the inverse is any number: the first row makes the bit 1 whatever it is.
    let inverse = b.commit_inverse(inverse.0, inverse.1);
    b.row("eq", form, &inverse, &(constant(1) - &is_zero));
    b.row("eq", form, &is_zero, &constant(0));
    is_zero
}

pub(crate) use arithmetic::{add_of, logic_of, shift_of};
pub(crate) use compare::{above_of, equal_of, greater_of};
pub(crate) use multiply::{divide_of, multiply_of, multiply_signed_of};
