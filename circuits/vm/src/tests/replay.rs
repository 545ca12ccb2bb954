//! Replays find the operations of the first pass, whatever the checkpoints.

use super::assembler::*;
use super::instructions::execution;
use crate::machine::{CLASSES, Machine, REFRESH};
use crate::run::{All, run_with_checkpoints};
use crate::{Chip, Input, Program, run};
use hekaton_circuit::check;

/// Writes to a page, waits until registers need refreshes, and reads it and others again.
fn words() -> Vec<u32> {
    let mut words = vec![lui(5, 0x1100_0000), li(7, 9), store(2, 7, 5, 0)];
    words.extend([lui(6, 0x3000), addi(6, 6, -1), branch(1, 6, 0, -4)]);
    words.extend([load(2, 8, 5, 0), lui(9, 0x1000), r(0, 0, 9, 9, 5), store(2, 8, 9, 16)]);
    words.extend([li(10, 4), load(2, 11, 9, 16), addi(10, 10, -1), branch(1, 10, 0, -8)]);
    words.extend([lui(6, 0x5000), addi(6, 6, -1), branch(1, 6, 0, -4), store(2, 5, 5, 0)]);
    words.extend(exit());
    words
}

#[test]
fn replays_find_all_operations() {
    let program = Program::from_elf(&program(&words())).unwrap();
    let input = Input { public: vec![3], private: vec![1, 2, 3] };
    let mut all = All::with_room([0; CLASSES]);
    let mut machine = Machine::new(&program, &input).unwrap();
    machine.run(1 << 20, &mut all).unwrap().unwrap();
    assert!(all.ops[REFRESH].len() > 2, "{}", all.ops[REFRESH].len());
    for spacing in [1000, 4096, 4097, 30_000, 1 << 18] {
        let run = run_with_checkpoints(&program, &input, 1 << 20, spacing, 6).unwrap();
        assert_eq!(
            run.replay(&program).unwrap(),
            all.ops.iter().map(|ops| ops.len() as u64).sum::<u64>()
        );
        for (class, ops) in all.ops.iter().enumerate() {
            let found = |range| run.ops(&program, class, range).unwrap();
            assert_eq!(&found(0..u64::MAX), ops, "{class} {spacing}");
            // Pieces of no common size with anything else, to the end and beyond.
            let pieces = (0..12u64).flat_map(|at| found(at * 5003..(at + 1) * 5003));
            assert_eq!(&pieces.collect::<Vec<_>>(), ops, "{class} {spacing}");
        }
    }
}

/// Calls of precompiles keep the words that belong to them, whatever part of a run is replayed.
#[test]
fn replays_find_the_words_of_calls() {
    let mut words = vec![li(8, 40), lui(9, 0x1100_0000)];
    // A turn of 10 cycles, with both calls.
    words.extend([addi(10, 9, 0), addi(11, 9, 256), li(17, 1001), ECALL, addi(10, 9, 0)]);
    words.extend([li(17, 1002), ECALL, store(2, 8, 9, 260), addi(8, 8, -1), branch(1, 8, 0, -36)]);
    words.extend(exit());
    let program = Program::from_elf(&program(&words)).unwrap();
    let input = Input::default();
    let mut all = All::with_room([0; CLASSES]);
    Machine::new(&program, &input).unwrap().run(1 << 20, &mut all).unwrap().unwrap();
    for spacing in [1, 7, 10, 13, 1 << 18] {
        let run = run_with_checkpoints(&program, &input, 1 << 20, spacing, usize::MAX).unwrap();
        for (chip, accesses) in [(Chip::Sha256, 24), (Chip::Keccak, 50)] {
            let (ops, calls) = (&all.ops[chip.index()], &all.accesses[chip.index()]);
            assert_eq!((ops.len(), calls.len(), calls[39].len()), (40, 40, accesses));
            for piece in [1, 3, 40] {
                let pieces = (0..=40 / piece).map(|at| at * piece..(at + 1) * piece);
                let found = pieces.map(|range| run.calls(&program, chip.index(), range).unwrap());
                let (some, words): (Vec<_>, Vec<_>) = found.unzip();
                assert_eq!((&some.concat(), &words.concat()), (ops, calls), "{spacing} {piece}");
            }
        }
    }
}

/// A gap of 65,535 ticks less one has one limb; one tick more needs a refresh, and 2^20 ticks need 15.
#[test]
fn gaps_at_the_limit_of_a_limb() {
    // The first instruction reads x6 at tick 5 and writes x5 at tick 6; the one in cycle c writes at 4 c + 2.
    for (cycle, register, expected) in
        [(16_385, 5, 0), (16_385, 6, 1), (16_386, 5, 1), ((1 << 18) + 1, 5, 15)]
    {
        let nothing = vec![addi(0, 0, 0); cycle - 2];
        let words = [&[r(0, 0, 5, 0, 6)][..], &nothing, &[li(register, 1)], &exit()].concat();
        let program = Program::from_elf(&program(&words)).unwrap();
        let run = run(&program, &Input::default(), 1 << 20).unwrap();
        let refreshes = run.ops(&program, REFRESH, 0..u64::MAX).unwrap();
        let found = refreshes.iter().filter(|op| u32::from(op.rs1) == register).count();
        assert_eq!(found, expected, "cycle {cycle}, x{register}");
        if cycle == 16_385 {
            let input = Input::default();
            let report = check(&execution(&words, &input), &input, |_, _| {}).unwrap();
            assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
        }
    }
}

#[test]
fn runs_end_where_their_cycles_do() {
    let program = Program::from_elf(&program(&words())).unwrap();
    let cycles =
        run_with_checkpoints(&program, &Input::default(), 1 << 20, 77, 100).unwrap().cycles();
    for spacing in [cycles - 1, cycles, cycles + 1, 100] {
        let run = |most| run_with_checkpoints(&program, &Input::default(), most, spacing, 100);
        assert_eq!(run(cycles).unwrap().cycles(), cycles);
        let error = run(cycles - 1).unwrap_err().to_string();
        let says =
            format!("in cycle {cycles}: the program has not ended after {} cycles", cycles - 1);
        assert!(error.contains(&says), "{error}");
    }
}

/// Checkpoints keep few pages, however many the program changes between two of them.
#[test]
fn checkpoints_have_a_budget() {
    // 64 pages, each written in every turn.
    let mut words = vec![li(10, 40), lui(5, 0x1100_0000), li(6, 64), lui(7, 0x1000)];
    words.extend([store(2, 10, 5, 0), r(0, 0, 5, 5, 7), addi(6, 6, -1), branch(1, 6, 0, -12)]);
    words.extend([addi(10, 10, -1), branch(1, 10, 0, -32)]);
    words.extend(exit());
    let program = Program::from_elf(&program(&words)).unwrap();
    let run = |most| run_with_checkpoints(&program, &Input::default(), 1 << 20, 100, most).unwrap();
    let (few, many) = (run(200), run(usize::MAX));
    // The program's own page and the input's are among them.
    assert!(few.kept_pages() <= 200 + 66 && many.kept_pages() > 1500, "{}", few.kept_pages());
    for class in 0..CLASSES {
        let ops = |run: &crate::Run| run.ops(&program, class, 3..u64::MAX).unwrap();
        assert_eq!(ops(&few), ops(&many));
    }
}
