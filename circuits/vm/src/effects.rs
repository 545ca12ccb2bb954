//! Effects of single instructions: the registers and bytes that they access, and the results of those of RV32IM.

use crate::isa::Chip;
use crate::op::Op;

/// The number of bytes that an instruction accesses.
#[inline(always)]
pub(crate) fn access_size(chip: Chip, variant: u8) -> Option<u32> {
    match (chip, variant) {
        (Chip::LoadWord | Chip::StoreWord, _) => Some(4),
        (Chip::LoadByte, _) | (Chip::LoadPart | Chip::StorePart, 0) => Some(1),
        (Chip::LoadPart | Chip::StorePart, _) => Some(2),
        _ => None,
    }
}

impl Chip {
    /// Reports whether instructions read a first register.
    #[inline]
    pub(crate) fn reads_x(self) -> bool {
        !matches!(
            self,
            Self::Li
                | Self::Jump
                | Self::TinyMoveImm
                | Self::TinyMove
                | Self::TinyMoveIf
                | Self::TinyJump
                | Self::TinyBranch
                | Self::TinyBranchReg
                | Self::TinyRead
        )
    }

    /// Reports whether instructions read a second register; x0, if there is an immediate in its place.
    #[inline]
    pub(crate) fn reads_y(self) -> bool {
        matches!(
            self,
            Self::Add
                | Self::Logic
                | Self::Shift
                | Self::SetLess
                | Self::BranchEqual
                | Self::BranchBelow
                | Self::BranchLess
                | Self::StoreWord
                | Self::StorePart
                | Self::Multiply
                | Self::MultiplyHigh
                | Self::Divide
                | Self::TinyMove
                | Self::TinyMoveIf
                | Self::TinyLogic
                | Self::TinyAdd
                | Self::TinyMultiply
                | Self::TinyMultiplySigned
                | Self::TinyDivide
                | Self::TinyShift
                | Self::TinyEqual
                | Self::TinyAbove
                | Self::TinyGreater
                | Self::TinyJump
                | Self::TinyBranchReg
                | Self::TinyStoreWord
                | Self::TinyStoreByte
                | Self::TinyRead
        )
    }

    /// Reports whether instructions write a register.
    #[inline]
    pub(crate) fn writes(self) -> bool {
        !matches!(
            self,
            Self::BranchEqual
                | Self::BranchBelow
                | Self::BranchLess
                | Self::StoreWord
                | Self::StorePart
                | Self::TinyEqual
                | Self::TinyAbove
                | Self::TinyGreater
                | Self::TinyJump
                | Self::TinyBranch
                | Self::TinyBranchReg
                | Self::TinyStoreWord
                | Self::TinyStoreByte
        )
    }
}

/// Returns the value that an instruction of RV32IM writes to its register.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "halves of products")]
pub(crate) fn result(chip: Chip, op: &Op) -> u32 {
    let (x, y, variant) = (op.x, op.y, op.variant);
    let operand = op.operand();
    match chip {
        Chip::Li => op.imm,
        Chip::AddImm => x.wrapping_add(op.imm),
        Chip::Add if variant == 0 => x.wrapping_add(y),
        Chip::Add => x.wrapping_sub(y),
        Chip::Logic => match variant {
            0 => x & operand,
            1 => x | operand,
            _ => x ^ operand,
        },
        // The immediate is the factor, 2^n or 2^(32 - n): the chip has a product and no table.
        Chip::ShiftImm => ((u64::from(x) * u64::from(op.imm)) >> (32 * u32::from(variant))) as u32,
        Chip::Shift => match variant {
            0 => x << (operand & 31),
            1 => x >> (operand & 31),
            _ => (x.cast_signed() >> (operand & 31)).cast_unsigned(),
        },
        Chip::SetLess if variant == 0 => (x < operand).into(),
        Chip::SetLess => (x.cast_signed() < operand.cast_signed()).into(),
        Chip::Jump | Chip::JumpReg => op.pc.wrapping_add(4),
        Chip::LoadWord => op.word,
        Chip::LoadByte => op.part()[1],
        Chip::LoadPart => match variant {
            0 => i32::from(op.part()[1] as u8 as i8).cast_unsigned(),
            1 => i32::from(op.part()[0] as u16 as i16).cast_unsigned(),
            _ => op.part()[0],
        },
        Chip::Multiply => ((u64::from(x) * u64::from(y)) >> (32 * u32::from(variant))) as u32,
        Chip::MultiplyHigh if variant == 0 => {
            ((i64::from(x.cast_signed()) * i64::from(y.cast_signed())) >> 32) as u32
        }
        Chip::MultiplyHigh => ((i64::from(x.cast_signed()) * i64::from(y)) >> 32) as u32,
        Chip::Divide => {
            let (signed_x, signed_y) = (x.cast_signed(), y.cast_signed());
            match variant {
                // The manual gives divisions by zero a result, all bits set, and no exception.
                0 if y == 0 => u32::MAX,
                0 => signed_x.wrapping_div(signed_y).cast_unsigned(),
                1 if y == 0 => u32::MAX,
                1 => x / y,
                2 if y == 0 => x,
                // -2^31 / -1 overflows: the manual says quotient -2^31 and remainder 0, which is what
                // wrapping does.
                2 => signed_x.wrapping_rem(signed_y).cast_unsigned(),
                // The manual: a remainder by zero is the dividend.
                _ => x.checked_rem(y).unwrap_or(x),
            }
        }
        // They write nothing, or are TinyRAM's.
        _ => 0,
    }
}
