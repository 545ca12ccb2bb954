//! The parts that all chips have: state, fetch, registers, memory.

use crate::form::{Form, constant};
use crate::isa::{self, Chip};
use crate::op::low;
use crate::template::{Asked, Builder, OfOp, Taken};
use crate::word::power;

/// Ticks of a cycle: the accesses to registers of one instruction have times of their own.
// Four, because an instruction may access one register up to three times, and TinyRAM's flag in addition:
// with one time for all, a prover could choose their order.
pub(crate) const TICKS: i128 = 4;

/// The number of bits that a register's number has in the keys of registers, below the time: 2^6 is more than the
/// number of any register.
// RV32IM has 33 registers, the sink included.
pub(crate) const REGISTER_BITS: u32 = 6;

/// The number of bits that an address has in the keys of words in memory, below the time.
pub(crate) const ADDRESS_BITS: u32 = 32;

/// TinyRAM's registers that no instruction names: the flag, one that is always zero, and whether the tape is
/// at its end.
pub(crate) const FLAG: u8 = 16;
pub(crate) const ZERO: u8 = 17;
pub(crate) const TAPE: u8 = 18;

/// The instruction under way: its pc and its cycle.
pub(super) struct Step {
    pub(super) pc: Form,
    cycle: Form,
}

/// Starts an instruction.
pub(super) fn step(b: &mut Builder) -> Step {
    // Neither has a range: the state bus joins all enabled operations to one path from (entry, 1), on which
    // both follow from the operation before (spec: machine#buses).
    let pc = b.commit("pc", |op| op.pc.into());
    let cycle = b.commit("k", |op| op.time.into());
    Step { pc, cycle }
}

impl Step {
    /// The address of the instruction behind it, in RV32IM.
    pub(super) fn after(&self) -> Form {
        &self.pc + constant(4)
    }

    /// The address of the instruction behind it, in TinyRAM.
    pub(super) fn after_tiny(&self) -> Form {
        &self.pc + constant(8)
    }

    /// Takes the state (pc, k) and gives the next one, (pc', k + 1).
    pub(super) fn next(&self, b: &mut Builder, pc: &Form) {
        self.next_after(b, pc, 1);
    }

    /// Takes the state (pc, k) and gives that some cycles later, (pc', k + n).
    pub(super) fn next_after(&self, b: &mut Builder, pc: &Form, cycles: i128) {
        b.entry("state", Taken::State, &self.pc, &self.cycle, 0, false);
        // The offset makes the later cycle without a row of its own: both entries share the row of k.
        b.entry("state", Taken::State, pc, &self.cycle, cycles, true);
    }

    /// The tick of an access to a register.
    fn tick(&self, place: i128) -> Form {
        &self.cycle * TICKS + constant(place)
    }

    /// Reads the first register.
    pub(super) fn x(&self, b: &mut Builder, rs1: &Form) -> Form {
        let x = b.commit("x", |op| op.x.into());
        // A read leaves what it found, so both entries have one value, which costs one row.
        self.register(b, rs1, 0, (&x, &x), ("l1", |op| op.gaps[0].into()));
        x
    }

    /// Reads the second register.
    pub(super) fn y(&self, b: &mut Builder, rs2: &Form) -> Form {
        let y = b.commit("y", |op| op.y.into());
        self.register(b, rs2, 1, (&y, &y), ("l2", |op| op.gaps[1].into()));
        y
    }

    /// Writes the result.
    pub(super) fn write(&self, b: &mut Builder, rd: &Form, value: &Form) {
        let old = b.commit("vd", |op| op.old.into());
        // What the register had is a value of the prover's choice, but no other one is on the bus at that
        // time.
        self.register(b, rd, 2, (&old, value), ("ld", |op| op.gaps[2].into()));
    }

    /// Writes a result that depends on what the register had before.
    pub(super) fn update(
        &self,
        b: &mut Builder,
        rd: &Form,
        value: impl FnOnce(&mut Builder, &Form) -> Form,
    ) {
        let old = b.commit("vd", |op| op.old.into());
        let new = value(b, &old);
        self.register(b, rd, 2, (&old, &new), ("ld", |op| op.gaps[2].into()));
    }

    /// Reads TinyRAM's flag, which is 0 or 1 since everything that is written to it is.
    pub(super) fn flag(&self, b: &mut Builder) -> Form {
        let flag = b.commit("flag", |op| op.flag().into());
        self.flag_entry(b, &flag, &flag);
        flag
    }

    /// Writes TinyRAM's flag.
    pub(super) fn write_flag(&self, b: &mut Builder, value: &Form) {
        let old = b.commit("flag", |op| op.flag().into());
        self.flag_entry(b, &old, value);
    }

    fn flag_entry(&self, b: &mut Builder, found: &Form, left: &Form) {
        let gap: (&'static str, OfOp) = ("lf", |op| op.word_gap.into());
        // The last tick of the cycle: an instruction that reads and writes registers has used the other
        // three.
        self.register(b, &constant(FLAG.into()), 3, (found, left), gap);
    }

    /// Writes whether the tape is at its end, in the place of the first register.
    pub(super) fn tape(&self, b: &mut Builder, found: &Form, left: &Form) {
        self.known_register(b, TAPE, 0, (found, left));
    }

    /// An access to a register: takes what the last one left, and gives what this one leaves. The gap
    /// between them has one limb. The register is a digit of the fetched row, and needs no range: a number
    /// that differs by a multiple of 64 would be in no row.
    fn register(
        &self,
        b: &mut Builder,
        register: &Form,
        place: i128,
        (found, left): (&Form, &Form),
        (name, value): (&'static str, OfOp),
    ) {
        let since = b.commit(name, value);
        self.register_since(b, register, place, (found, left), &since);
    }

    fn register_since(
        &self,
        b: &mut Builder,
        register: &Form,
        place: i128,
        (found, left): (&Form, &Form),
        since: &Form,
    ) {
        let now = self.tick(place);
        // At least one tick before: a prover cannot take what this access itself gives.
        let before = &now - since - constant(1);
        b.take("register", Taken::Registers, &(register + before * power(REGISTER_BITS)), found);
        b.give("register", Taken::Registers, &(register + now * power(REGISTER_BITS)), left);
        let limb = b.word().limb();
        // One limb is enough for 2^14 cycles. Longer gaps are bridged by refreshes, which are rare: a
        // second limb here would cost a row per access.
        b.range("gap", limb, since);
    }

    /// Reads a register whose number is known, at a tick, and leaves a value there.
    pub(super) fn known_register(
        &self,
        b: &mut Builder,
        register: u8,
        place: u8,
        (found, left): (&Form, &Form),
    ) {
        const GAPS: [(&str, OfOp); 3] = [
            ("l1", |op| op.gaps[0].into()),
            ("l2", |op| op.gaps[1].into()),
            ("ld", |op| op.gaps[2].into()),
        ];
        let gap = GAPS[usize::from(place)];
        self.register(b, &constant(register.into()), place.into(), (found, left), gap);
    }

    /// Reads a register of a precompile whose value is in the access with a number. Returns the value.
    pub(super) fn numbered_register(&self, b: &mut Builder, register: u8, number: usize) -> Form {
        let value = b.commit_access("pointer", number, |access| access.before.into());
        let since = b.commit_access("lp", number, |access| access.gap.into());
        // The tick is that of no other access of a call, though these are of other registers.
        self.register_since(b, &constant(register.into()), 3, (&value, &value), &since);
        value
    }

    /// An access to memory: takes what the last one left at the address, and gives what this one leaves.
    pub(super) fn memory(&self, b: &mut Builder, address: &Form, found: &Form, left: &Form) {
        let gaps = [
            b.commit("m0", |op| low(op.word_gap)),
            b.commit("m1", |op| (op.word_gap >> 16).into()),
        ];
        self.memory_with(b, 0, address, (found, left), gaps);
    }

    /// The access to memory with a number, of a precompile, some cycles after its first one.
    pub(super) fn numbered_memory(
        &self,
        b: &mut Builder,
        number: usize,
        later: i128,
        address: &Form,
        values: (&Form, &Form),
    ) {
        let gaps = [
            b.commit_access("m0", number, |access| low(access.gap)),
            b.commit_access("m1", number, |access| (access.gap >> 16).into()),
        ];
        self.memory_with(b, later, address, values, gaps);
    }

    fn memory_with(
        &self,
        b: &mut Builder,
        later: i128,
        address: &Form,
        (found, left): (&Form, &Form),
        gaps: [Form; 2],
    ) {
        let limb = b.word().limb();
        // Two limbs: cycles are below 2^32, and memory has no refreshes. The 1 keeps an access from taking
        // what it gives itself.
        let now = &self.cycle + constant(later);
        let before = &now - constant(1) - &gaps[0] - &gaps[1] * power(limb);
        b.take("memory", Taken::Memory, &(address + before * power(ADDRESS_BITS)), found);
        b.give("memory", Taken::Memory, &(address + now * power(ADDRESS_BITS)), left);
        for gap in &gaps {
            b.range("mem gap", limb, gap);
        }
    }

    /// Looks up the row of the program: chip and variant, registers, and the immediate as its value.
    pub(super) fn fetch(&self, b: &mut Builder, chip: Chip, variant: &Form, fields: &Fields) {
        let Fields { rs1, rs2, rd, imm } = fields;
        let mut key =
            &self.pc + (constant(8 * i128::from(chip.number())) + variant) * power(isa::OPCODE);
        for (register, place) in [(rs1, isa::RS1), (rs2, isa::RS2), (rd, isa::RD)] {
            if let Some(register) = register {
                // A register that the instruction does not have is 0 in the row, so it adds nothing.
                key = key + register * power(place);
            }
        }
        // The immediate is the value and not a digit of the key, where only sums with registers would bound
        // it (spec: machine#decoding has the forgery).
        let value = imm.clone().unwrap_or_else(|| constant(0));
        b.ask("fetch", Asked::Program, &key, &value);
    }
}

/// The fields that an instruction has.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) rs1: Option<Form>,
    pub(super) rs2: Option<Form>,
    pub(super) rd: Option<Form>,
    pub(super) imm: Option<Form>,
}

pub(super) fn rs1(b: &mut Builder) -> Form {
    b.commit("rs1", |op| op.rs1.into())
}

pub(super) fn rs2(b: &mut Builder) -> Form {
    b.commit("rs2", |op| op.rs2.into())
}

pub(super) fn rd(b: &mut Builder) -> Form {
    b.commit("rd", |op| op.rd.into())
}

pub(super) fn imm(b: &mut Builder) -> Form {
    b.commit("imm", |op| op.imm.into())
}

/// A refresh: takes (key, value), gives (key + 64 (gap + 1), value).
pub(super) fn refresh(b: &mut Builder) {
    // One number and not two: which register it is stays open, since what is given has the same digit as
    // what was taken.
    let key = b.commit("key", |op| i128::from(op.rs1) + (i128::from(op.time) << REGISTER_BITS));
    let value = b.commit("x", |op| op.x.into());
    let gap = b.commit("l1", |op| op.gaps[0].into());
    b.take("register", Taken::Registers, &key, &value);
    let after = &key + (&gap + constant(1)) * power(REGISTER_BITS);
    b.give("register", Taken::Registers, &after, &value);
    let limb = b.word().limb();
    b.range("gap", limb, &gap);
}
