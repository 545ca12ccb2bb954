//! Hints and profiles.

use super::assembler::*;
use super::instructions::execution;
use crate::{
    Cost, Input, Observer, Profile, Program, RunError, Sizes, TrapReason, run, run_observed,
};
use hekaton_circuit::check;

const CODE: u32 = 0x1_0000;

/// The hints to show text and an output.
const TEXT: u32 = 0x481 << 20 | 10 << 15 | 2 << 12 | 0x13;
const OUTPUT: u32 = 0x482 << 20 | 10 << 15 | 2 << 12 | 0x13;

/// The text and output that were shown.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    texts: Vec<Vec<u8>>,
    output: Option<Vec<u8>>,
}

impl Observer for Shown {
    fn text(&mut self, text: &[u8]) {
        self.texts.push(text.to_vec());
    }

    fn output(&mut self, output: &[u8]) {
        self.output = Some(output.to_vec());
    }
}

/// Code that shows `length` bytes at the code and `offset`, and exits.
fn code(hint: u32, offset: i32, length: i32) -> Vec<u32> {
    let code = [lui(10, CODE), addi(10, 10, offset), li(11, length), hint, li(10, 0)];
    [&code[..], &exit()].concat()
}

fn showing(hint: u32, offset: i32, length: i32) -> Program {
    Program::from_elf(&program(&code(hint, offset, length))).unwrap()
}

#[test]
fn hints_show_bytes_and_do_nothing_else() {
    let image: Vec<u8> =
        [lui(10, CODE), addi(10, 10, 1)].iter().flat_map(|it| it.to_le_bytes()).collect();
    for (hint, length) in [(TEXT, 0), (TEXT, 6), (OUTPUT, 7)] {
        let program = showing(hint, 1, length);
        let mut shown = Shown::default();
        let run = run_observed(&program, &Input::default(), 100, &mut shown).unwrap();
        assert_eq!(run.exit_code(), 0);
        let bytes = image[1..1 + usize::try_from(length).unwrap()].to_vec();
        let expected = match hint {
            TEXT => Shown { texts: vec![bytes], output: None },
            _ => Shown { texts: vec![], output: Some(bytes) },
        };
        assert_eq!(shown, expected);
        // As any other instruction in a proof.
        let execution = execution(&code(hint, 1, length), &Input::default());
        let report = check(&execution, &Input::default(), |_, _| {}).unwrap();
        assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
    }
}

/// A replay, whose memory comes from snapshots, shows nothing.
#[test]
fn hints_are_shown_once() {
    let program = showing(TEXT, 0, 4);
    let run = run(&program, &Input::default(), 100).unwrap();
    assert_eq!(run.replay(&program).unwrap(), run.cycles() - 1);
}

#[test]
fn hints_to_where_there_is_no_memory_trap() {
    for (offset, length, at) in [(-8, 4, CODE - 8), (-2, 8, CODE - 2), (0, -1, 0x2000_0004)] {
        let program = showing(TEXT, offset, length);
        let mut shown = Shown::default();
        match run_observed(&program, &Input::default(), 100, &mut shown) {
            Err(RunError::Trap(trap)) => assert_eq!(trap.reason, TrapReason::Unmapped(at)),
            other => panic!("{other:?}"),
        }
        assert_eq!(shown, Shown::default());
    }
    // No bytes are nowhere.
    run(&showing(TEXT, -8, 0), &Input::default(), 100).unwrap();
}

/// Two functions, one of which calls the other in a loop; symbols are missing, so addresses name them.
#[test]
fn profiles_add_up() {
    // Three calls; the callee adds 1 to x6 and returns.
    let code = [
        li(5, 3),
        jal(1, 28),
        addi(5, 5, -1),
        branch(1, 5, 0, -8),
        li(10, 0),
        exit()[0],
        exit()[1],
        0,
        addi(6, 6, 1),
        jalr(0, 1, 0),
    ];
    let program = Program::from_elf(&program(&code)).unwrap();
    let run = run(&program, &Input::default(), 1000).unwrap();
    let profile = Profile::of(&program, &Input::default(), 1000, Sizes::LARGE).unwrap();
    let constraints = Sizes::LARGE.constraints_of(&run);
    assert_eq!(profile.total, Cost { cycles: run.cycles(), constraints });
    let [main, callee] = [CODE, CODE + 32].map(|at| {
        let name = format!("{at:#x}");
        profile.functions.iter().find(|it| it.name == name).unwrap()
    });
    assert_eq!((main.calls, callee.calls), (1, 3));
    assert_eq!((main.own.cycles, main.total), (13, profile.total));
    assert_eq!((callee.own.cycles, callee.total), (6, callee.own));
    assert_eq!(main.own.constraints + callee.own.constraints, constraints);
    for function in [main, callee] {
        let sum: u64 = function.chips.iter().map(|(_, constraints)| constraints).sum();
        assert_eq!(sum, function.own.constraints);
    }
    let stacks: Vec<usize> = profile.stacks.iter().map(|(stack, _)| stack.len()).collect();
    assert_eq!(stacks, [1, 2]);
    let [only] = &profile.loops[..] else { panic!("{:?}", profile.loops) };
    assert_eq!((only.start, only.end, only.iterations), (CODE + 4, CODE + 12, 2));
    assert_eq!(only.cost.cycles, 9);

    match Profile::of(&program, &Input::default(), 5, Sizes::LARGE) {
        Err(RunError::Trap(trap)) => assert_eq!(trap.reason, TrapReason::TooLong(5)),
        other => panic!("{other:?}"),
    }
}

/// Two functions call themselves and each other, in 2^17 different chains: what they cost is still theirs.
#[test]
fn chains_of_calls_are_bounded() {
    // f(n) calls itself with n - 1 and then g(n - 1), which does the same; both end at 0. The stack is at x2.
    let half = |own: i32, other: i32| {
        [
            branch(0, 10, 0, 56),
            addi(2, 2, -8),
            store(2, 1, 2, 0),
            store(2, 10, 2, 4),
            addi(10, 10, -1),
            jal(1, own - 20),
            load(2, 10, 2, 4),
            addi(10, 10, -1),
            jal(1, other - 32),
            load(2, 1, 2, 0),
            addi(2, 2, 8),
            jalr(0, 1, 0),
            0,
            0,
            jalr(0, 1, 0),
        ]
    };
    let start = [lui(2, 0x1100_0000), li(10, 16), jal(1, 16), li(10, 0), exit()[0], exit()[1]];
    let code = [&start[..], &half(0, 60), &half(0, -60)].concat();
    let program = Program::from_elf(&program(&code)).unwrap();
    let run = run(&program, &Input::default(), 1 << 22).unwrap();
    let profile = Profile::of(&program, &Input::default(), 1 << 22, Sizes::LARGE).unwrap();
    let frames: usize = profile.stacks.iter().map(|(stack, _)| stack.len()).sum();
    assert!(frames <= (1 << 18) + 2, "{frames}");
    let own: u64 = profile.functions.iter().map(|it| it.own.cycles).sum();
    assert_eq!((own, profile.total.cycles), (run.cycles(), run.cycles()));
    let calls: u64 = profile.functions.iter().map(|it| it.calls).sum();
    assert_eq!(calls, 1 << 17);
    let [f, g] = [CODE + 24, CODE + 84].map(|at| {
        let name = format!("{at:#x}");
        profile.functions.iter().find(|it| it.name == name).unwrap().own.cycles
    });
    assert!(f > g && g > run.cycles() / 3, "{f} {g}");
}

/// Recursion is counted once in a function's total, and deep recursion is not told apart.
#[test]
fn recursion_is_counted_once() {
    for depth in [3, 2000] {
        // Keeps x1 on a stack at 0x11000000, and calls itself x5 times.
        let code = [
            lui(2, 0x1100_0000),
            li(5, depth),
            jal(1, 16),
            li(10, 0),
            exit()[0],
            exit()[1],
            store(2, 1, 2, 0),
            addi(2, 2, 4),
            addi(5, 5, -1),
            branch(0, 5, 0, 8),
            jal(1, -16),
            addi(2, 2, -4),
            load(2, 1, 2, 0),
            jalr(0, 1, 0),
        ];
        let program = Program::from_elf(&program(&code)).unwrap();
        let run = run(&program, &Input::default(), 1 << 20).unwrap();
        let profile = Profile::of(&program, &Input::default(), 1 << 20, Sizes::LARGE).unwrap();
        assert_eq!(profile.total.cycles, run.cycles());
        let name = format!("{:#x}", CODE + 24);
        let callee = profile.functions.iter().find(|it| it.name == name).unwrap();
        assert_eq!(callee.calls, u64::try_from(depth).unwrap());
        assert_eq!((callee.total, callee.own.cycles), (callee.own, run.cycles() - 6));
        assert!(profile.stacks.iter().all(|(stack, _)| stack.len() <= 502));
    }
}
