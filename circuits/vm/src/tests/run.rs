//! The executor and the decoder against another simulator, and random programs through the chips.

use super::assembler::*;
use super::instructions::execution;
use crate::isa::{Decoded, decode};
use crate::{Input, Program, run};
use hekaton_circuit::check;
use proptest::prelude::*;
use rrs_lib::HartState;
use rrs_lib::instruction_executor::{InstructionException, InstructionExecutor};
use rrs_lib::memories::{MemorySpace, VecMemory};

pub(super) const CODE: u32 = 0x1_0000;
pub(super) const DATA: u32 = 0x1100_0000;
const DATA_WORDS: usize = 32;

/// An instruction that neither jumps far nor traps: registers 1 to 15 but 8, which points to data.
pub(super) fn instruction() -> impl Strategy<Value = u32> {
    let register = || prop_oneof![0u32..8, 9u32..16];
    let (rd, rs1, rs2) = (register(), register(), register());
    let operands = (rd, rs1, rs2, any::<u32>());
    (operands, 0..11u32).prop_map(|((rd, rs1, rs2, bits), kind)| {
        let imm = (bits >> 20).cast_signed() - 2048;
        let funct3 = bits & 7;
        let offset = |size: u32| ((bits >> 8) % 64 * size % 64).cast_signed();
        match kind {
            0 | 1 => r(0, funct3, rd, rs1, rs2),
            2 => r(0x20, if bits & 1 == 0 { 0 } else { 5 }, rd, rs1, rs2),
            3 | 4 => r(1, funct3, rd, rs1, rs2),
            5 if funct3 == 1 => i(0x13, 1, rd, rs1, (rs2 & 31).cast_signed()),
            5 if funct3 == 5 => i(0x13, 5, rd, rs1, (bits & 0x400 | rs2 & 31).cast_signed()),
            5 => i(0x13, funct3, rd, rs1, imm),
            6 => lui(rd, bits),
            7 => {
                let (funct3, size) = [(0, 1), (1, 2), (2, 4), (4, 1), (5, 2)][bits as usize % 5];
                load(funct3, rd, 8, offset(size))
            }
            8 => {
                let (funct3, size) = [(0, 1), (1, 2), (2, 4)][bits as usize % 3];
                store(funct3, rs2, 8, offset(size))
            }
            9 => branch([0, 1, 4, 5, 6, 7][bits as usize % 6], rs1, rs2, 8),
            _ => i(0x17, 0, rd, 0, 0) | bits & 0xffff_f000,
        }
    })
}

pub(super) fn words(body: Vec<u32>, seeds: [u32; 4]) -> Vec<u32> {
    let mut words = vec![lui(8, DATA)];
    for (rd, seed) in [1, 2, 5, 9].into_iter().zip(seeds) {
        words.extend([lui(rd, seed), addi(rd, rd, (seed & 0x7ff).cast_signed())]);
    }
    words.extend(body);
    // A branch may skip the next instruction.
    words.push(addi(0, 0, 0));
    words.extend(exit());
    words
}

/// Registers and data of the other simulator, when it meets the ECALL.
fn simulate(words: &[u32]) -> ([u32; 32], Vec<u32>) {
    let mut memory = MemorySpace::new();
    let code = VecMemory::new(words.to_vec());
    memory.add_memory(CODE, 4 * words.len() as u32, Box::new(code)).unwrap();
    let data = VecMemory::new(vec![0; DATA_WORDS]);
    let data = memory.add_memory(DATA, 4 * DATA_WORDS as u32, Box::new(data)).unwrap();
    let mut hart = HartState::new();
    hart.pc = CODE;
    loop {
        let step = InstructionExecutor { hart_state: &mut hart, mem: &mut memory }.step();
        match step {
            Ok(()) => {}
            Err(InstructionException::IllegalInstruction(_, ECALL)) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    (hart.registers, memory.get_memory_ref::<VecMemory>(data).unwrap().mem.clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_another_simulator(
        body in prop::collection::vec(instruction(), 1..120),
        seeds in any::<[u32; 4]>(),
    ) {
        let words = words(body, seeds);
        let program = Program::from_elf(&program(&words)).unwrap();
        let run = run(&program, &Input::default(), 10_000).unwrap();
        let (registers, data) = simulate(&words);
        for (number, cell) in run.registers[..32].iter().enumerate() {
            prop_assert_eq!(cell.value, registers[number], "x{}", number);
        }
        for (word, value) in (DATA / 4..).zip(data) {
            prop_assert_eq!(run.memory.get(word).value, value, "word {:#x}", word);
        }
    }

    /// An instruction that the other simulator does not have has no row here. The converse holds except for what is
    /// left out: CSRs, which it does not have either, and the ignored fields of FENCE.
    #[test]
    fn decodes_what_the_other_simulator_does(word in any::<u32>(), major in 0..12usize) {
        let opcodes = [0x37, 0x17, 0x13, 0x33, 0x63, 0x6f, 0x67, 0x03, 0x23, 0x0f, 0x73, 0x1b];
        let word = word & !0x7f | opcodes[major];
        let mut memory = MemorySpace::new();
        memory.add_memory(CODE, 4, Box::new(VecMemory::new(vec![word]))).unwrap();
        let mut hart = HartState::new();
        hart.pc = CODE;
        let stepped = InstructionExecutor { hart_state: &mut hart, mem: &mut memory }.step();
        let is_unknown = matches!(stepped, Err(InstructionException::IllegalInstruction(..)));
        let decoded = decode(CODE, word);
        if is_unknown {
            prop_assert!(matches!(decoded, Decoded::Illegal | Decoded::Call), "{decoded:?}");
        } else if decoded == Decoded::Illegal {
            // It ignores funct3 of JALR and FENCE, and funct7 of SLLI; JAL may go to a misaligned place.
            let is_shift = word & 0x7f == 0x13 && word >> 12 & 3 == 1;
            prop_assert!(is_shift || matches!(word & 0x7f, 0x6f | 0x67 | 0x0f), "{word:#x}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn random_programs_satisfy_their_chips(
        body in prop::collection::vec(instruction(), 150..200),
        seeds in any::<[u32; 4]>(),
    ) {
        let (words, input) = (words(body, seeds), Input::default());
        let report = check(&execution(&words, &input), &input, |_, _| {}).unwrap();
        prop_assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
    }
}
