//! TinyRAM: the assembler, the executor, and provers that lie about what happened.

use super::attacks::{Refused, at, forged, last, lying, refused};
use super::unique::tied;
use crate::chips::{FLAG, TAPE};
use crate::op::{self, Op};
use crate::run::run_with_checkpoints;
use crate::tinyram::{Opcode, Operand, decode, encode};
use crate::{Chip, Counts, Input, MachineCircuit, Program, RunError, Sizes, TrapReason, run};
use hekaton_circuit::Fr;
use hekaton_core::protocol::coordinator::CoordinatorError;
use hekaton_core::{
    LocalEngine, ProveError, ProveOptions, Randomness, SetupOptions, WitnessCheck, prove, setup,
    verify_with_test_keys,
};
use proptest::prelude::*;

const MAX_CYCLES: u64 = 1 << 20;

fn assembled(text: &str) -> Program {
    Program::from_tinyram(text).unwrap()
}

fn execution(program: Program, input: &Input) -> MachineCircuit {
    let sizes = Sizes::SMALL;
    let run = run(&program, input, MAX_CYCLES).unwrap();
    let counts = Counts::of(&run, &program, input, sizes);
    let public_words = input.public.len();
    MachineCircuit { program, sizes, counts, public_words, max_cycles: MAX_CYCLES }
}

fn tape(words: &[u32]) -> Input {
    let private = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Input { public: Vec::new(), private }
}

/// The answer of a program.
fn answer(text: &str, input: &Input) -> u32 {
    run(&assembled(text), input, MAX_CYCLES).unwrap().exit_code()
}

fn accepted(program: Program, input: &Input) -> Vec<Fr> {
    tied(&execution(program, input), input).public_values
}

/// The instructions with two operands on the edges of words: the result, and the flag.
#[test]
fn results_and_flags_are_those_of_the_architecture() {
    let top = 0x8000_0000u32;
    let ones = u32::MAX;
    let cases: [(&str, u32, u32, u32, u32); 58] = [
        ("and", 0xf0f0, 0xff00, 0xf000, 0),
        ("and", 0x00ff, 0xff00, 0, 1),
        ("or", 0xf0f0, 0xff00, 0xfff0, 0),
        ("or", 0, 0, 0, 1),
        ("xor", 0xf0f0, 0xff00, 0x0ff0, 0),
        ("xor", ones, ones, 0, 1),
        ("add", 5, 6, 11, 0),
        ("add", ones, 1, 0, 1),
        ("add", top, top, 0, 1),
        ("add", ones, 0, ones, 0),
        ("sub", 5, 6, ones, 1),
        ("sub", 6, 6, 0, 0),
        ("sub", 0, ones, 1, 1),
        ("sub", ones, 0, ones, 0),
        ("mull", 7, 6, 42, 0),
        ("mull", 0x1_0000, 0x1_0000, 0, 1),
        ("mull", ones, ones, 1, 1),
        ("umulh", 7, 6, 0, 0),
        ("umulh", ones, ones, ones - 1, 1),
        ("umulh", 0x1_0000, 0x1_0000, 1, 1),
        ("smulh", ones, ones, 0, 0),
        ("smulh", ones, 1, ones, 0),
        ("smulh", top, 1, ones, 0),
        ("smulh", top, ones, 0, 1),
        ("smulh", top, top, 0x4000_0000, 1),
        ("smulh", 0x7fff_ffff, 2, 0, 1),
        ("smulh", 0x7fff_ffff, 1, 0, 0),
        ("udiv", 43, 6, 7, 0),
        ("udiv", ones, 1, ones, 0),
        ("udiv", 9, 0, 0, 1),
        ("udiv", 9, ones, 0, 0),
        ("umod", 43, 6, 1, 0),
        ("umod", 9, 0, 0, 1),
        ("umod", 9, ones, 9, 0),
        ("shl", 3, 4, 48, 0),
        ("shl", top | 1, 1, 2, 1),
        ("shl", ones, 31, top, 1),
        ("shl", 1, 32, 0, 0),
        ("shl", ones, ones, 0, 1),
        ("shr", 48, 4, 3, 0),
        ("shr", ones, 31, 1, 1),
        ("shr", ones, 32, 0, 1),
        ("shr", 2, 0, 2, 0),
        ("shr", top, 0x1_0000, 0, 0),
        ("cmpe", 4, 4, 7, 1),
        ("cmpe", 4, 5, 7, 0),
        ("cmpa", ones, 1, 7, 1),
        ("cmpa", 4, 4, 7, 0),
        ("cmpa", 0, ones, 7, 0),
        ("cmpae", 4, 4, 7, 1),
        ("cmpae", 3, 4, 7, 0),
        ("cmpae", 0, ones, 7, 0),
        ("cmpg", ones, 1, 7, 0),
        ("cmpg", 1, top, 7, 1),
        ("cmpg", 4, 4, 7, 0),
        ("cmpge", 4, 4, 7, 1),
        ("cmpge", top, 0x7fff_ffff, 7, 0),
        ("cmpge", 0x7fff_ffff, top, 7, 1),
    ];
    // All of them in one program, whose answer counts those that are right, with both kinds of operand.
    let mut text = String::new();
    for (name, x, y, z, flag) in cases {
        let destination = if name.starts_with("cmp") { "" } else { "r2, " };
        for operand in ["r1".to_owned(), y.to_string()] {
            text += &format!("mov r0, {x}\nmov r1, {y}\nmov r2, 7\nmov r3, 0\n");
            text += &format!("{name} {destination}r0, {operand}\ncmov r3, 1\n");
            text += &format!("xor r2, r2, {z}\nxor r3, r3, {flag}\nor r2, r2, r3\ncmpe r2, 0\n");
            text += "mov r4, 0\ncmov r4, 1\nadd r5, r5, r4\n";
        }
    }
    let first_wrong = text.clone() + "answer r5";
    let input = Input::default();
    assert_eq!(answer(&first_wrong, &input), 2 * cases.len() as u32);
    accepted(assembled(&first_wrong), &input);
}

/// Every other instruction, registers as operands of jumps, words and bytes at addresses that are not aligned,
/// and the end of the tape.
const EVERYTHING: &str = "; TinyRAM V=2.000 W=32 K=16
        mov r0, 0x11000002
        mov r1, -2
        store.w r0, r1          ; the word that byte 2 is in
        store.b r0, r0          ; byte 2 becomes 2
        load.w r2, 0x11000003
        cmpe r2, 0xff02fffe
        cnjmp _wrong
        load.b r3, 0x11000001
        cmpe r3, 255
        cnjmp _wrong
        not r4, r3
        not r4, -1              ; 0, and the flag
        cjmp _on
_wrong: answer 1
_on:    mov r5, _next
        mov r6, r5
        jmp r6
        answer 2
_next:  cmpa r5, 1
        mov r7, _tape
        cnjmp r7
        cjmp r7
        answer 3
_tape:  read r8, 0              ; tape 0 is empty
        cnjmp _wrong
        read r8, 1
        cjmp _wrong
        mov r9, 1
        read r9, r9
        cjmp _wrong
        read r10, 1
        cnjmp _wrong            ; it has two words
        read r11, 1
        cnjmp _wrong
        add r8, r8, r9
        add r8, r8, r10
        load.w r12, 0x20000000  ; the public word
        store.w 0x30000004, r12
        cmov r8, 4
        jmp _end
_end:   answer r8
";

#[test]
fn every_instruction_of_tinyram() {
    let input = Input { public: vec![0xdead_beef], ..tape(&[20, 22]) };
    let values = accepted(assembled(EVERYTHING), &input);
    let mut expected = [0xdead_beefu32, 42, 0, 0xdead_beef].map(Fr::from).to_vec();
    expected.resize(2 + 16, Fr::from(0u64));
    assert_eq!(values, expected);
    // The flag of the last addition is 0: with another tape it is 1, and so is the answer 4.
    let input = Input { public: vec![0], ..tape(&[u32::MAX, 1]) };
    assert_eq!(answer(&EVERYTHING.replace("add r8, r8, r10\n", ""), &input), 4);
}

#[test]
fn texts_that_are_no_programs_are_refused_by_line() {
    let cases = [
        ("", "line 1: the program has no instructions"),
        ("\n; only a comment\n_label:\n", "line 1: the program has no instructions"),
        ("; TinyRAM V=2.000 W=64 K=16\nanswer 0", "line 1: W=64, but this machine has words of 32"),
        (
            "; TinyRAM V=2.000 W=32 K=32\nanswer 0",
            "line 1: K=32, but this machine has 16 registers",
        ),
        ("answer 0\nhalt", "line 2: 'halt' is not an instruction of TinyRAM"),
        ("add r1, r2", "line 1: 'add' has 2 operands, expected add ri, rj, A"),
        ("store.w r1, 4", "line 1: '4' is not a register"),
        ("mov r16, 1", "line 1: 'r16' is not a register; they are r0 to r15"),
        ("answer 4294967296", "line 1: '4294967296' is not a register, a label or a number"),
        ("answer -0x80000001", "line 1: '-0x80000001' is not"),
        ("answer 0x+1", "line 1: '0x+1' is not"),
        ("answer +1", "line 1: '+1' is not"),
        ("jmp _no", "line 1: label _no is not defined"),
        ("_a: answer 0\n_a: answer 1", "line 2: label _a is defined twice"),
        ("a: answer 0", "line 1: 'a' is not a label, such as _loop"),
        ("answer r+1", "line 1: 'r+1' is not a register"),
        ("answer r001", "line 1: 'r001' is not a register"),
        ("\u{1b}[31mx: answer 0", "line 1: '\\u{1b}[31mx' is not a label"),
    ];
    for (text, says) in cases {
        let error = Program::from_tinyram(text).unwrap_err().to_string();
        assert!(error.starts_with(says), "{text}: {error}");
    }
    // Texts of other kinds are refused early, with a message of the usual length.
    let long = "x".repeat(1000);
    for (text, says) in [
        (long.clone(), "line 1: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' is not an instr"),
        (long + &" a".repeat(13), "line 1: more than 1024 bytes before a comment"),
    ] {
        let error = Program::from_tinyram(&text).unwrap_err().to_string();
        assert!(error.starts_with(says) && error.len() < 120, "{error}");
    }
}

/// Programs of any words: what is not an instruction has no row, and fields that an instruction does not have
/// must be zero.
#[test]
fn decoding_is_strict() {
    let illegal = |words: [u32; 2]| {
        let found = decode(0, words);
        assert_eq!(found, crate::isa::Decoded::Illegal, "{words:x?}");
    };
    for opcode in 23..26 {
        illegal([opcode << 27 | 1 << 26, 0]);
    }
    for (opcode, _) in Opcode::ALL {
        let words = encode(opcode, 0, 0, Operand::Immediate(0));
        illegal([words[0] | 1, 0]);
        illegal([words[0] | 1 << 17, 0]);
        illegal([words[0] & !(1 << 26), 16]);
    }
    illegal(encode(Opcode::Mov, 1, 1, Operand::Immediate(0)));
    illegal(encode(Opcode::Cmpe, 1, 1, Operand::Immediate(0)));
    illegal(encode(Opcode::Answer, 1, 0, Operand::Immediate(0)));
}

#[test]
fn traps_say_where() {
    let cases = [
        ("_a: jmp 4", TrapReason::MisalignedJump { target: 4, size: 8 }, "(_a)"),
        ("cnjmp 12", TrapReason::MisalignedJump { target: 12, size: 8 }, "at pc 0x0"),
        ("_a: mov r1, 9\njmp r1", TrapReason::MisalignedJump { target: 9, size: 8 }, "(_a + 0x8)"),
        ("jmp 16", TrapReason::NoCode, "at pc 0x10"),
        ("load.w r1, 0x2fffffff", TrapReason::Unmapped(0x2fff_ffff), "in cycle 1"),
        ("mov r3, 5\nstore.b -1, r3", TrapReason::Unmapped(u32::MAX), "\nregisters: r3=0x5"),
        ("_a: jmp _a", TrapReason::TooLong(MAX_CYCLES), "has not ended"),
    ];
    for (text, reason, says) in cases {
        let RunError::Trap(trap) =
            run(&assembled(text), &Input::default(), MAX_CYCLES).unwrap_err()
        else {
            panic!("{text}")
        };
        assert_eq!(trap.reason, reason, "{text}");
        assert!(trap.to_string().contains(says), "{trap}");
    }
}

/// Stores into code change what loads see, and not what is executed.
#[test]
fn code_is_memory() {
    let text = "load.w r1, 4\nstore.w 20, r1\nanswer 5";
    // The second word of the first instruction is the address 4 that it loads from.
    assert_eq!(answer(text, &Input::default()), 5);
    accepted(assembled(text), &Input::default());
    assert_eq!(answer("load.w r1, 4\nanswer r1", &Input::default()), 4);
}

/// Replays from checkpoints are what the first pass did, reads of the tape included.
#[test]
fn replays_read_the_tape_where_it_was() {
    let text = "_loop: read r1, 1\ncjmp _end\nadd r2, r2, r1\njmp _loop\n_end: answer r2";
    let (program, input) = (assembled(text), tape(&(1..=100).collect::<Vec<_>>()));
    let all = |spacing| -> Vec<Vec<Op>> {
        let run = run_with_checkpoints(&program, &input, MAX_CYCLES, spacing, usize::MAX).unwrap();
        assert_eq!(run.exit_code(), 5050);
        let chips = program.isa().chips().iter();
        chips.map(|chip| run.ops(&program, chip.index(), 0..u64::MAX).unwrap()).collect()
    };
    let once = all(MAX_CYCLES);
    assert_eq!(once[Chip::TinyRead.place()].len(), 101);
    assert!(all(7) == once);
}

/// A random instruction without jumps, which may be anything but a trap.
fn any_instruction() -> impl Strategy<Value = String> {
    let register = || (0..16u32).prop_map(|r| format!("r{r}"));
    let edge = prop_oneof![0..40u32, Just(u32::MAX), Just(1 << 31), any::<u32>()];
    let operand = prop_oneof![register(), edge.prop_map(|value| value.to_string())];
    let place = (0..64u32).prop_map(|at| (0x1100_0000 + at).to_string());
    (0..29usize, register(), register(), operand, place).prop_map(|(at, ri, rj, a, place)| {
        match Opcode::ALL[at].1 {
            name @ ("jmp" | "cjmp" | "cnjmp" | "answer") => format!("cmov {ri}, {a} ; {name}"),
            name @ ("not" | "mov" | "cmov" | "read") => format!("{name} {ri}, {a}"),
            name @ ("store.b" | "store.w") => format!("{name} {place}, {ri}"),
            name @ ("load.b" | "load.w") => format!("{name} {ri}, {place}"),
            name if name.starts_with("cmp") => format!("{name} {rj}, {a}"),
            name => format!("{name} {ri}, {rj}, {a}"),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn the_chips_accept_what_the_executor_does(
        instructions in prop::collection::vec(any_instruction(), 1..200),
        words in prop::collection::vec(any::<u32>(), 0..8),
    ) {
        let text = instructions.join("\n") + "\nanswer r0";
        accepted(assembled(&text), &tape(&words));
    }
}

/// Lies about flag, tape and answer, each with its consequences, and what refuses them.
#[test]
fn lies_about_tinyram_are_refused() {
    let registers = || Refused::Buses(vec!["registers".into()]);
    let flag = usize::from(FLAG);
    type Lie = fn(&mut crate::Run);
    let cases: Vec<(&str, &str, Lie, Refused)> = vec![
        ("nothing", "cmpe r0, 0\ncmov r1, 7\nanswer r1", |_| {}, Refused::Nothing),
        (
            "a comparison with another flag",
            "cmpe r0, 1\ncmov r1, 7\nanswer r1",
            |run| {
                at(run, 2).bits = op::FLAG;
                last(run, 1, 4 * 3 + 1, 7);
                last(run, FLAG.into(), 4 * 2 + 3, 1);
                run.exit.code = 7;
            },
            registers(),
        ),
        (
            "the flag before the last comparison",
            "cmpe r0, 0\ncmpe r0, 1\ncmov r1, 7\nanswer r1",
            |run| {
                let op = at(run, 3);
                (op.bits, op.word_gap) = (op::FLAG, 7);
                last(run, 1, 4 * 4 + 1, 7);
                last(run, FLAG.into(), 4 * 2 + 3, 0);
                run.exit.code = 7;
            },
            registers(),
        ),
        (
            "a branch takes the row of the other flag",
            "cmpe r0, 0\ncjmp _end\nanswer 1\n_end: answer 0",
            |run| {
                let op = at(run, 2);
                (op.variant, op.imm) = (0, 16);
                (run.exit.pc, run.exit.code, run.exit.operand) = (16, 1, (17, 1));
            },
            Refused::Rows,
        ),
        (
            "a read after the end of the tape",
            "read r1, 1\nread r1, 1\nanswer r1",
            |run| {
                let op = at(run, 2);
                (op.bits, op.word) = (op.bits & !op::END, 5);
                last(run, 1, 4 * 3 + 1, 5);
                last(run, FLAG.into(), 4 * 2 + 3, 0);
                last(run, TAPE.into(), 8, 0);
                run.exit.code = 5;
            },
            Refused::Rows,
        ),
        ("another answer", "mov r1, 3\nanswer r1", |run| run.exit.code = 4, registers()),
        (
            "an answer with another immediate",
            "answer 3",
            |run| (run.exit.code, run.exit.operand.1) = (4, 4),
            Refused::Rows,
        ),
        (
            "an answer of another register",
            "mov r1, 3\nmov r2, 4\nanswer r1",
            |run| {
                (run.exit.code, run.exit.operand.0) = (4, 2);
                last(run, 1, 4 + 2, 3);
                last(run, 2, 4 * 3 + 1, 4);
                run.exit.gaps[0] = 2;
            },
            Refused::Rows,
        ),
        (
            "an instruction left out",
            "add r1, r1, 3\nanswer r1",
            |run| {
                forged(run)[Chip::TinyAdd.index()].clear();
                let (cycle, registers) = (run.exit.cycle, &mut run.registers);
                registers[1].value = 0;
                registers[usize::from(FLAG)].time = 0;
                registers[usize::from(crate::chips::ZERO)].time = 0;
                assert_eq!(cycle, 2);
                run.exit.code = 0;
                run.exit.gaps[0] = 8;
            },
            Refused::Buses(vec!["state".into()]),
        ),
    ];
    assert_eq!(flag, 16);
    for (name, text, lie, expected) in cases {
        let input = Input::default();
        let found = refused(execution(assembled(text), &input), &input, lie);
        assert_eq!(found, expected, "{name}");
    }
    // The prover may end the tape where it likes, and its words are any: that is another tape.
    let text = "read r1, 1\nread r2, 1\nadd r1, r1, r2\nanswer r1";
    let input = tape(&[1, 2]);
    let found = refused(execution(assembled(text), &input), &input, |run| {
        let op = at(run, 2);
        (op.bits, op.word) = (op.bits | op::END, 0);
        at(run, 3).y = 0;
        at(run, 3).bits = op::FLAG;
        last(run, 1, 4 * 4 + 1, 1);
        last(run, 2, 4 * 3 + 1, 0);
        last(run, TAPE.into(), 8, 1);
        run.exit.code = 1;
    });
    assert_eq!(found, Refused::Nothing);
}

/// A whole proof, with every instruction in it, and a prover that cheats to its end.
#[test]
fn runs_of_tinyram_are_proven() {
    let engine = LocalEngine::new(None).unwrap();
    let input = Input { public: vec![9], ..tape(&[20, 22]) };
    let execution = execution(assembled(EVERYTHING), &input);
    let options = SetupOptions::new("tinyram").insecure_seed(1);
    let keys = setup(&execution, &engine, &options).unwrap();
    let seeded = || ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(3));
    let proven = prove(&execution, &input, &keys, &engine, &seeded()).unwrap();
    let (key, proof) = (&keys.verifying, proven.proof.as_bytes());
    assert_eq!(verify_with_test_keys(key, &proven.public_values, proof), Ok(()));
    let mut other = proven.public_values.clone();
    other[1] += Fr::from(1u64);
    assert!(verify_with_test_keys(key, &other, proof).is_err());
    let cheat = lying(execution, |run| run.exit.code = 43);
    let options = seeded().witness_check(WitnessCheck::Skip);
    let error = prove(&cheat, &input, &keys, &engine, &options).unwrap_err();
    assert!(matches!(error, ProveError::Coordinator(CoordinatorError::Buses)), "{error}");
}
