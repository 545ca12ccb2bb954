//! Segments: the memory of each is there, whatever their order; which are writable; and what the stack runs into.

use super::assembler::*;
use super::attacks::Changed;
use super::instructions::execution_of;
use crate::circuit::MachineCircuit;
use crate::machine::CLASSES;
use crate::run::{All, Run};
use crate::{Input, Program, RunError, TrapReason, run};
use hekaton_circuit::check;
use hekaton_testing::{Segment, elf_of};

/// Read and execute, read, read and write.
const RX: u32 = 5;
const R: u32 = 4;
const RW: u32 = 6;

/// The address of the code in these tests, with room below.
const TEXT: u32 = 0x2_0000;

fn bytes(words: &[u32]) -> u32 {
    4 * words.len() as u32
}

/// A program of this code, and of further segments before and behind it in the file.
fn of(code: &[u32], before: &[Segment<'_>], behind: &[Segment<'_>]) -> Program {
    let text = (TEXT, code, bytes(code), RX);
    let segments = [before, &[text], behind].concat();
    Program::from_elf(&elf_of(TEXT, &segments)).unwrap()
}

fn trap(program: &Program) -> TrapReason {
    trap_on(program, &Input::default())
}

fn trap_on(program: &Program, input: &Input) -> TrapReason {
    match run(program, input, 100) {
        Err(RunError::Trap(trap)) => trap.reason,
        other => panic!("{other:?}"),
    }
}

/// Memory of a segment without contents, below the code, where a link script may put the stack: it is there, is zero at the
/// beginning, and is proven as any other.
#[test]
fn memory_below_the_code_is_there() {
    let code = [
        lui(2, TEXT),
        load(2, 5, 2, -4),
        li(6, 7),
        store(2, 6, 2, -4),
        load(2, 10, 2, -4),
        r(0, 0, 10, 10, 5),
    ];
    let code = [&code[..], &exit()].concat();
    let program = of(&code, &[(0x1_f000, &[], 0x1000, RW)], &[]);
    assert_eq!((program.summary().start, program.summary().words), (0x1_f000, 0x400 + code.len()));
    let input = Input::default();
    assert_eq!(run(&program, &input, 100).unwrap().exit_code(), 7);
    let report = check(&execution_of(&program, &input), &input, |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
    // Without the segment, there is no memory.
    assert_eq!(trap(&of(&code, &[], &[])), TrapReason::Unmapped(0x1_fffc));
}

/// A stack that grows below everything else traps, and says what to do; a pointer to where nothing is does, too.
#[test]
fn stacks_that_overflow_trap() {
    let stack: Segment<'_> = (0x1_f000, &[], 0x1000, RW);
    // Each turn takes 256 bytes.
    let code = [lui(2, TEXT), addi(2, 2, -256), store(2, 0, 2, 0), jal(0, -8)];
    let program = of(&code, &[stack], &[]);
    let overflow = TrapReason::StackOverflow { address: 0x1_ef00, start: 0x1_f000 };
    assert_eq!(trap(&program), overflow);
    let says =
        "stack overflow: access at 0x1ef00, below the program's memory, which begins at 0x1f000";
    assert!(overflow.to_string().starts_with(says), "{overflow}");
    assert!(overflow.to_string().contains("-DSTACK_SIZE=N"), "{overflow}");
    let null = of(&[lui(2, TEXT), load(2, 5, 0, 8)], &[stack], &[]);
    assert_eq!(trap(&null), TrapReason::Unmapped(8));
}

/// The circuit stops a stack that overflows, whatever a prover executes: there are no cells below the image. The prover
/// here has an executor with memory there.
#[test]
fn no_prover_has_memory_below_the_image() {
    // The private bytes are an address, whose word is the exit code.
    let code = [lui(5, 0x2000_0000), load(2, 5, 5, 4), load(2, 10, 5, 0), li(5, 0)];
    let code = [&code[..], &exit()].concat();
    let (program, with_more) =
        (of(&code, &[], &[]), of(&code, &[(0x1_f000, &[], 0x1000, RW)], &[]));
    let input = |address: u32| Input { private: address.to_le_bytes().into(), ..Input::default() };
    let (honest, below) = (input(TEXT), input(TEXT - 4));
    assert_eq!(trap_on(&program, &below), TrapReason::Unmapped(TEXT - 4));
    let prover = |input: Input| {
        let with_more = with_more.clone();
        Changed(
            execution_of(&program, &honest),
            move |_: &MachineCircuit, _: &Input, run: &mut Run| {
                let mut other = crate::run(&with_more, &input, 100).unwrap();
                let all = |class| other.calls(&with_more, class, 0..u64::MAX).unwrap();
                let (ops, accesses) = (0..CLASSES).map(all).unzip();
                other.forged = Some(All { ops, accesses });
                other.zero_cells = std::mem::take(&mut run.zero_cells);
                *run = other;
            },
        )
    };
    let unbalanced = |input: &Input| {
        let report = check(&prover(input.clone()), &honest, |_, _| {}).unwrap();
        assert_eq!(report.violations, vec![]);
        report.unbalanced.iter().map(|bus| bus.bus.clone()).collect::<Vec<_>>()
    };
    assert_eq!(unbalanced(&honest), Vec::<String>::new());
    // An entry that nothing takes, and one that nothing gave.
    assert_eq!(unbalanced(&below), ["memory", "memory"]);
}

/// The flag that segments are writable is not part of the claim: with it, it is the same program, and its run is
/// proven.
#[test]
fn the_claim_does_not_say_which_segments_are_writable() {
    let code =
        [&[lui(5, TEXT + 0x1000), li(6, 9), store(2, 6, 5, 0), load(2, 10, 5, 0)][..], &exit()];
    let with = |flags: u32| of(&code.concat(), &[], &[(TEXT + 0x1000, &[7], 4, flags)]);
    let (constant, variable) = (with(R), with(RW));
    assert_eq!(constant.digest(), variable.digest());
    let segment = TEXT + 0x1000..TEXT + 0x1004;
    assert_eq!(trap(&constant), TrapReason::ReadOnly { address: segment.start, segment });
    let input = Input::default();
    assert_eq!(run(&variable, &input, 100).unwrap().exit_code(), 9);
    let report = check(&execution_of(&variable, &input), &input, |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
}

/// A prover whose executor lets a program store to its code executes what was there at the beginning, all the same.
#[test]
fn stores_to_code_change_nothing_that_is_executed() {
    // The word of li a0, 9 over that of li a0, 3.
    let word = li(10, 9);
    let code =
        [lui(5, TEXT), lui(6, word), addi(6, 6, (word & 0xfff).cast_signed()), store(2, 6, 5, 16)];
    let code = [&code[..], &[li(10, 3), load(2, 11, 5, 16)], &exit()].concat();
    let program = of(&code, &[], &[]).writable_everywhere();
    let input = Input::default();
    let run = run(&program, &input, 100).unwrap();
    assert_eq!((run.exit_code(), run.registers[11].value), (3, word));
    let report = check(&execution_of(&program, &input), &input, |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
}

/// Stores to code and constants trap, whole or in part, also those of system calls; what is between segments is memory.
#[test]
fn segments_that_are_not_writable_are_not_written() {
    let constants = [1, 2, 3];
    let segment = TEXT + 0x1000..TEXT + 0x100c;
    let behind: [Segment<'_>; 2] =
        [(segment.start, &constants, 12, R), (TEXT + 0x2000, &constants, 12, RW)];
    let at = |body: &[u32]| of(&[body, &exit()].concat(), &[], &behind);
    for (stores, address) in [
        (store(2, 6, 5, 8), segment.start + 8),
        (store(1, 6, 5, 2), segment.start + 2),
        (store(0, 6, 5, 11), segment.start + 11),
    ] {
        let found = trap(&at(&[lui(5, segment.start), stores]));
        assert_eq!(found, TrapReason::ReadOnly { address, segment: segment.clone() });
    }
    let found = trap(&at(&[lui(5, TEXT), store(0, 5, 5, 3)]));
    let code = TEXT..TEXT + 16;
    let expected = TrapReason::ReadOnly { address: TEXT + 3, segment: code };
    assert_eq!(found, expected);
    assert_eq!(
        expected.to_string(),
        "store at 0x20003, in the segment at 0x20000..0x20010, which is not writable"
    );
    // The state of the compression function ends in the constants.
    let call =
        [lui(10, segment.start), addi(10, 10, -28), lui(11, 0x1100_0000), li(17, 1001), ECALL];
    let found = trap(&at(&call));
    let address = segment.start - 28;
    assert_eq!(found, TrapReason::ReadOnly { address, segment: segment.clone() });
    // Behind the constants, in front of them, and in the data.
    for offset in [12, -4, 0x1000 - 4, 0x1000] {
        let body = [lui(5, segment.start), lui(6, 0x1000), addi(6, 6, offset - 0x1000)];
        let body = if offset >= 0x800 {
            body.to_vec()
        } else {
            vec![lui(5, segment.start), li(6, offset)]
        };
        let body = [&body[..], &[r(0, 0, 5, 5, 6), store(2, 6, 5, 0)]].concat();
        assert_eq!(
            run(&at(&body), &Input::default(), 100).unwrap().cycles(),
            body.len() as u64 + 2
        );
    }
}

/// The digest does not depend on the order of segments, on which are writable, or on those that have no memory.
#[test]
fn the_digest_is_of_what_is_proven() {
    let code = exit();
    let [low, high]: [Segment<'_>; 2] = [(0x1_f000, &[5], 8, R), (TEXT + 0x1000, &[6, 7], 8, R)];
    let expected = of(&code, &[low], &[high]);
    let writable = |(address, words, size, _): Segment<'static>| (address, words, size, RW);
    let same = [
        of(&code, &[high], &[low]),
        of(&code, &[], &[high, low]),
        of(&code, &[(0x1_f000, &[5], 8, RW)], &[high]),
        of(&code, &[low], &[high, (0, &[], 0, R)]),
        of(&code, &[low], &[high, writable((TEXT + 0x2000, &[], 0x1000, R))]),
    ];
    for (number, program) in same.iter().enumerate() {
        assert_eq!(program.digest(), expected.digest(), "{number}");
    }
    let other = [
        of(&code, &[(0x1_f000, &[4], 8, R)], &[high]),
        of(&code, &[(0x1_effc, &[], 4, RW), low], &[high]),
        of(&code, &[low], &[(TEXT + 0x1000, &[6, 7], 8, RX)]),
    ];
    for (number, program) in other.iter().enumerate() {
        assert_ne!(program.digest(), expected.digest(), "{number}");
    }
}

/// Words that are not executed, and why.
#[test]
fn words_that_are_not_executed_say_what_they_are() {
    for (word, says) in [
        (0xc000_1073, "the program stopped with unimp"),
        (0x0000_0000, "the program stopped with unimp, or ran into memory without code"),
        (0x0010_0073, "the program stopped with ebreak"),
        (0xc000_2573, "0xc0002573 is an access to a CSR"),
        (0x3020_0073, "0x30200073 is an instruction of privileged code"),
        (0x0000_100f, "0x0000100f is fence.i"),
        (0x1005_252f, "0x1005252f is an atomic instruction"),
        (0x0005_2507, "0x00052507 is an instruction for floating point"),
        (0x00a5_053b, "0x00a5053b is an instruction for 64 bits"),
        (0x0005_3503, "0x00053503 is an instruction for 64 bits"),
        (0x20a5_2533, "0x20a52533 is an instruction of an extension such as Zbb"),
        (0x0000_4505, "0x00004505 is a compressed instruction"),
        (0xffff_ffff, "0xffffffff is not an instruction of this machine"),
    ] {
        let reason = trap(&of(&[word], &[], &[]));
        assert_eq!(reason, TrapReason::Illegal(word));
        let text = reason.to_string();
        assert!(text.starts_with(says), "{says}: {text}");
        assert_eq!(
            text.contains("compile for rv32im"),
            text.contains("does not support"),
            "{text}"
        );
    }
    // The immediate of a JAL: forward by 2, and back by 6 from 0x20008.
    for (code, target) in
        [(vec![jal(0, 2)], TEXT + 2), (vec![li(5, 1), li(5, 1), jal(1, -6)], TEXT + 2)]
    {
        assert_eq!(trap(&of(&code, &[], &[])), TrapReason::MisalignedJump { target, size: 4 });
    }
}
