//! Programs, executed and checked.

use super::assembler::*;
use super::unique::tied;
use crate::{Counts, Input, MachineCircuit, Program, RunError, Sizes, TrapReason, run};
use hekaton_circuit::{CheckReport, Fr};

/// The circuit of a run of these words on an input.
pub(crate) fn execution(words: &[u32], input: &Input) -> MachineCircuit {
    execution_of(&Program::from_elf(&program(words)).unwrap(), input)
}

pub(crate) fn execution_of(program: &Program, input: &Input) -> MachineCircuit {
    let (program, sizes) = (program.clone(), Sizes::SMALL);
    let run = run(&program, input, 1 << 20).unwrap();
    let counts = Counts::of(&run, &program, input, sizes);
    MachineCircuit { program, sizes, counts, public_words: input.public.len(), max_cycles: 1 << 20 }
}

fn checked(words: &[u32], input: &Input) -> CheckReport {
    tied(&execution(words, input), input)
}

/// Every instruction satisfies its chip, and the public values are the expected ones.
#[test]
fn every_instruction() {
    let mut words = vec![li(5, -7), li(6, 2)];
    words.extend((0..8).map(|f| r(1, f, 7, 5, 6)));
    words.extend([4, 5, 6, 7].map(|f| r(1, f, 7, 5, 0)));
    words.extend((0..8).map(|f| r(0, f, 7, 5, 6)));
    words.extend([r(32, 0, 7, 5, 6), r(32, 5, 7, 5, 6)]);
    words.extend((0..8).map(|f| i(0x13, f, 7, 5, 9)));
    words.extend([i(0x13, 5, 7, 5, 0x403), i(0x13, 5, 7, 5, 0), i(0x13, 1, 7, 5, 0)]);
    words.push(lui(8, 0x2000_0000));
    words.extend([0, 1, 4, 5].map(|f| load(f, 7, 8, 6)));
    words.extend([load(2, 7, 8, 0), lui(9, 0x1100_0000)]);
    words.extend([store(0, 5, 9, 3), store(1, 5, 9, 2), store(2, 5, 9, 0), load(2, 7, 9, 0)]);
    words.extend([0, 1, 4, 5, 6, 7].map(|f| branch(f, 5, 6, 4)));
    // jalr to behind itself, from its own address
    words.extend([jal(1, 4), jalr(1, 1, 4), i(0x17, 0, 9, 0, 0), lui(5, 0x8000_0000), li(6, -1)]);
    words.extend([4, 6, 1, 2].map(|f| r(1, f, 7, 5, 6)));
    // fence; the output
    words.extend([0x0ff0_000f, lui(9, 0x3000_0000), store(2, 6, 9, 4), li(10, 3)]);
    words.extend(exit());
    let input = Input { public: vec![0xdead_beef], private: vec![0x81, 0x92, 0xa3, 0xb4, 0xc5] };
    let report = checked(&words, &input);
    let mut expected = vec![Fr::from(0xdead_beefu32), Fr::from(3u64)];
    expected.extend([0, u32::MAX].map(Fr::from));
    expected.resize(2 + 16, Fr::from(0u64));
    assert_eq!(report.public_values, expected);
}

/// Public words in two subcircuits, of which the second one is almost empty.
#[test]
fn seventeen_public_words() {
    let mut words = vec![lui(5, 0x2000_0000), load(2, 10, 5, 64)];
    words.extend(exit());
    let input = Input { public: (100..117).collect(), private: Vec::new() };
    let report = checked(&words, &input);
    assert_eq!(report.public_values[17], Fr::from(116u64));
}

/// A register that is not accessed for long: its cell is refreshed.
#[test]
fn long_gaps_are_refreshed() {
    let words = [li(10, 5), lui(6, 0x9000), addi(6, 6, -1), branch(1, 6, 0, -4), li(17, 93), ECALL];
    let input = Input::default();
    let execution = execution(&words, &input);
    let run = run(&execution.program, &input, 1 << 20).unwrap();
    // Among others a0, for 2 * 36,864 cycles of four ticks.
    assert!(run.refreshes() > 4, "{}", run.refreshes());
    assert_eq!((run.cycles(), run.exit_code()), (4 + 2 * 0x9000, 5));
    checked(&words, &input);
}

/// A program that stops without an exit has a trap with the reason.
#[test]
fn traps_are_named() {
    let cases: [(&[u32], TrapReason); 10] = [
        (&[li(17, 64), ECALL], TrapReason::UnknownCall(64)),
        (&[0x0010_0073], TrapReason::Illegal(0x0010_0073)),
        (&[0xc000_1573], TrapReason::Illegal(0xc000_1573)),
        (&[li(5, 1)], TrapReason::NoCode),
        (&[jalr(0, 0, 2)], TrapReason::MisalignedJump { target: 2, size: 4 }),
        (&[jal(0, 2)], TrapReason::MisalignedJump { target: 0x1_0002, size: 4 }),
        (&[branch(0, 0, 0, 6)], TrapReason::MisalignedJump { target: 0x1_0006, size: 4 }),
        (&[load(2, 5, 0, 2)], TrapReason::MisalignedAccess { address: 2, size: 4 }),
        (&[store(2, 5, 0, 4)], TrapReason::Unmapped(4)),
        (&[jal(0, 0)], TrapReason::TooLong(100)),
    ];
    for (words, reason) in cases {
        let program = Program::from_elf(&program(words)).unwrap();
        match run(&program, &Input::default(), 100) {
            Err(RunError::Trap(trap)) => assert_eq!(trap.reason, reason),
            other => panic!("{other:?}"),
        }
    }
    let program = Program::from_elf(&program(&[li(5, 3), jalr(0, 5, 0)])).unwrap();
    let error = run(&program, &Input::default(), 100).unwrap_err().to_string();
    let says = "trap at pc 0x10004 in cycle 2: jump to 0x2, which is not a multiple of 4\n\
                registers: x5=0x3";
    assert_eq!(error, says);
}

/// One word outside of each region.
#[test]
fn regions_end_where_they_end() {
    let input = Input { public: vec![1], private: vec![2; 4] };
    for (base, inside, outside) in [
        (0x1_0000u32, 0, -4),
        (0x2000_0000, 8, 12),
        (0x3000_0000, 60, 64),
        (0x2000_0000, -4, 12),
        (0x3000_0000, 0, -4),
    ] {
        for (offset, works) in [(inside, true), (outside, false)] {
            let mut words = vec![lui(5, base), load(2, 6, 5, offset)];
            words.extend(exit());
            let program = Program::from_elf(&program(&words)).unwrap();
            let found = run(&program, &input, 100);
            assert_eq!(found.is_ok(), works, "{base:#x} {offset}: {found:?}");
        }
    }
}
