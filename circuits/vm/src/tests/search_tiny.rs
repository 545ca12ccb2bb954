//! The exhaustive search for forgeries of the chips of TinyRAM, as that of RV32IM.

use super::search::{Given, MODULUS, assert_exact, signed, spare_rows};
use crate::isa::{Chip, Isa};
use crate::word::number;
use hekaton_circuit::Fr;
use std::collections::BTreeSet;

const MASK: i128 = MODULUS - 1;

/// Returns the effects of an instruction, with words of four bits: the next pc; the values of the registers, including
/// those that it only reads; address and word of an access. There are several for `read`, whose tape is the prover's,
/// and none for a branch with the flag of its other row.
fn expected(chip: Chip, variant: u8, given: Given) -> Vec<Vec<i128>> {
    let Given { x, y, imm, word, old, flag } = given;
    let a = y + imm;
    let of = |holds: bool| i128::from(holds);
    // What a register instruction writes, and the flag.
    let binary = |z: i128, flag: bool| vec![vec![8, x, y, z & MASK, of(flag)]];
    let compare = |holds: bool| vec![vec![8, x, y, of(holds)]];
    let address = x + imm;
    let (place, lane) = (address >> 2, address & 3);
    match chip {
        Chip::TinyMoveImm => vec![vec![8, imm]],
        Chip::TinyMove => vec![vec![8, y, y]],
        Chip::TinyMoveIf => vec![vec![8, y, flag, if flag == 1 { a } else { old }]],
        Chip::TinyLogic => {
            let z = match variant {
                0 => x & a,
                1 => x | a,
                2 => x ^ a,
                _ => MASK - a,
            };
            binary(z, z == 0)
        }
        Chip::TinyAdd if variant == 0 => binary(x + a, x + a > MASK),
        Chip::TinyAdd => binary(x - a, x < a),
        Chip::TinyMultiply if variant == 0 => binary(x * a, x * a > MASK),
        Chip::TinyMultiply => binary(x * a / MODULUS, x * a > MASK),
        Chip::TinyMultiplySigned => {
            let product = signed(x) * signed(a);
            binary(product.div_euclid(MODULUS), !(-8..8).contains(&product))
        }
        Chip::TinyDivide if a == 0 => binary(0, true),
        Chip::TinyDivide if variant == 0 => binary(x / a, false),
        Chip::TinyDivide => binary(x % a, false),
        Chip::TinyShift if variant == 0 => binary(x << a, x >> 3 == 1),
        Chip::TinyShift => binary(x >> a, x & 1 == 1),
        Chip::TinyEqual => compare(x == a),
        Chip::TinyAbove if variant == 0 => compare(x > a),
        Chip::TinyAbove => compare(x >= a),
        Chip::TinyGreater if variant == 0 => compare(signed(x) > signed(a)),
        Chip::TinyGreater => compare(signed(x) >= signed(a)),
        Chip::TinyJump => vec![vec![a, y]],
        Chip::TinyBranch if flag != i128::from(variant) => vec![],
        Chip::TinyBranch => vec![vec![imm, flag]],
        Chip::TinyBranchReg => {
            let taken = (flag == 1) != (variant == 1);
            vec![vec![if taken { y } else { 8 }, y, flag]]
        }
        Chip::TinyLoadWord => vec![vec![8, x, word, place, word]],
        Chip::TinyLoadByte => vec![vec![8, x, word >> lane & 1, place, word]],
        Chip::TinyStoreWord => vec![vec![8, x, y, place, y]],
        Chip::TinyStoreByte => {
            let left = word & !(1 << lane) | (y & 1) << lane;
            vec![vec![8, x, y, place, left]]
        }
        Chip::TinyRead if a != 1 => vec![vec![8, y, x, 0, 1]],
        Chip::TinyRead => {
            let mut all = vec![vec![8, y, 1, 0, 1]];
            if x == 0 {
                all.extend((0..MODULUS).map(|word| vec![8, y, 0, word, 0]));
            }
            all
        }
        _ => unreachable!("a chip of TinyRAM"),
    }
}

fn variants(chip: Chip) -> &'static [u8] {
    match chip {
        Chip::TinyLogic => &[0, 1, 2, 4],
        Chip::TinyAdd | Chip::TinyMultiply | Chip::TinyDivide | Chip::TinyShift => &[0, 1],
        Chip::TinyAbove | Chip::TinyGreater | Chip::TinyBranch | Chip::TinyBranchReg => &[0, 1],
        _ => &[0],
    }
}

/// All inputs of a chip; of those with a word in memory, some.
fn inputs(chip: Chip, variant: u8) -> Vec<Given> {
    let nothing = Given::default();
    let pairs = || (0..MODULUS).flat_map(|a| (0..MODULUS).map(move |b| (a, b)));
    // The operand is a register, or an immediate with the register that is zero.
    let operand = |y: i128, x: i128, flag: i128| {
        [Given { x, y, flag, ..nothing }, Given { x, imm: y, flag, ..nothing }]
    };
    match chip {
        // not has the register that is zero as first operand.
        Chip::TinyLogic if variant == 4 => {
            (0..MODULUS).flat_map(|y| operand(y, 0, y & 1)).collect()
        }
        Chip::TinyMoveImm | Chip::TinyBranch => {
            pairs().map(|(imm, b)| Given { imm, flag: b & 1, ..nothing }).collect()
        }
        Chip::TinyMove => (0..MODULUS).map(|y| Given { y, ..nothing }).collect(),
        Chip::TinyMoveIf => pairs()
            .flat_map(|(y, old)| {
                [0, 1].map(|flag| operand(y, 0, flag).map(|given| Given { old, ..given }))
            })
            .flatten()
            .collect(),
        Chip::TinyBranchReg => pairs().map(|(y, b)| Given { y, flag: b & 1, ..nothing }).collect(),
        Chip::TinyLoadWord | Chip::TinyLoadByte => pairs()
            .flat_map(|(a, word)| operand(a, 0, 0).map(|given| (given, word)))
            .map(|(given, word)| Given { x: given.y, y: 0, word, ..given })
            .collect(),
        Chip::TinyStoreWord | Chip::TinyStoreByte => pairs()
            .flat_map(|(a, y)| operand(a, 0, 0).map(|given| (given, y)))
            .map(|(given, y)| Given { x: given.y, y, word: (3 * y + 5) % MODULUS, ..given })
            .collect(),
        Chip::TinyRead => (0..MODULUS)
            .flat_map(|y| [0, 1].map(|ended| operand(y, ended, y & 1)))
            .flatten()
            .collect(),
        _ => pairs().flat_map(|(x, y)| operand(y, x, (x + y) & 1)).collect(),
    }
}

fn wanted(chip: Chip, variant: u8, given: Given) -> BTreeSet<Vec<Option<Fr>>> {
    let values = |values: Vec<i128>| values.into_iter().map(|v| Some(number(v))).collect();
    expected(chip, variant, given).into_iter().map(values).collect()
}

/// Every chip and every instruction: the rows allow the right result, and no other.
#[test]
fn chips_of_tinyram_allow_what_instructions_do() {
    assert_exact(Isa::TinyRam, variants, inputs, wanted);
}

/// Control: without any one of its rows, a chip allows something else, but for rows that the search cannot
/// need: bits of variants, which guard the digits of registers, given here, and the range of a jump to a register,
/// which is given as a word.
#[test]
#[ignore = "minutes: in scripts/test --all"]
fn every_row_of_a_chip_of_tinyram_is_needed() {
    let spare = spare_rows(Isa::TinyRam, variants, inputs, wanted);
    let flags = [Chip::TinyAdd, Chip::TinyMultiply, Chip::TinyDivide, Chip::TinyShift];
    let mut expected: Vec<_> = flags.into_iter().map(|chip| (chip, "variant")).collect();
    expected.extend([Chip::TinyAbove, Chip::TinyGreater].map(|chip| (chip, "variant")));
    expected.extend([(Chip::TinyJump, "target"); 2]);
    expected.push((Chip::TinyBranchReg, "variant"));
    expected.extend([(Chip::TinyBranchReg, "target"); 2]);
    assert_eq!(spare, expected);
}
