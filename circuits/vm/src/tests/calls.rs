//! Calls of precompiles: what they do, what they trap on, and provers that lie about them.

use super::assembler::*;
use super::attacks::{Lie, Refused, at, forged, last, refused};
use super::instructions::execution;
use super::unique::tied;
use crate::precompile::Precompile;
use crate::{Chip, Input, Program, Run, RunError, TrapReason, run};

/// The address of states and blocks, in memory that is zero at the beginning.
const DATA: u32 = 0x1100_0000;

/// Calls a precompile, with a0 at the data and a1 behind that by some bytes.
fn call(number: i32, offset: i32) -> Vec<u32> {
    vec![lui(10, DATA), addi(11, 10, offset), li(17, number), ECALL]
}

const SHA256: i32 = 1001;
const KECCAK: i32 = 1002;

fn ran(words: &[u32], input: &Input) -> Run {
    run(&Program::from_elf(&program(words)).unwrap(), input, 1 << 20).unwrap()
}

fn words_at(run: &Run, address: u32, count: usize) -> Vec<u32> {
    (address / 4..).take(count).map(|word| run.memory.get(word).value).collect()
}

/// Each call does what it says and leaves 0 in a0; the circuit accepts that, with subcircuits that have one
/// operation and with some that have more, and what fills these up.
#[test]
fn calls_compute_what_they_say() {
    let zeros = Precompile::Sha256.compute(&[0; 24]).unwrap();
    let keccak_of_zeros = Precompile::Keccak.compute(&[0; 50]).unwrap();
    // Known answers: SHA-256 of "abc", the first lane of Keccak-f of zeros.
    let mut state = hekaton_standard::sha256::IV.to_vec();
    state.extend([u32::from_le_bytes(*b"abc\x80")]);
    state.extend([0; 14]);
    state.push(24u32.swap_bytes());
    assert_eq!(Precompile::Sha256.compute(&state).unwrap()[..2], [0xba78_16bf, 0x8f01_cfea]);
    assert_eq!(keccak_of_zeros[..2], [0x40e1_dde7, 0xf125_8f79]);
    let twice = [call(SHA256, 32), call(SHA256, 32), call(KECCAK, 0)].concat();
    let words = [&twice[..], &exit()].concat();
    let input = Input::default();
    let run = ran(&words, &input);
    let chained = Precompile::Sha256.compute(&[&zeros[..], &[0; 16]].concat()).unwrap();
    let last = Precompile::Keccak.compute(&[&chained[..], &[0; 42]].concat()).unwrap();
    assert_eq!(words_at(&run, DATA, 50), last);
    assert_eq!(run.exit_code(), 0);
    assert_eq!([Chip::Sha256, Chip::Keccak].map(|chip| run.count(chip)), [2, 1]);
    for rows in [1 << 12, 3 << 14] {
        let mut execution = execution(&words, &input);
        execution.sizes.rows = rows;
        execution.counts = crate::Counts::of(&run, &execution.program, &input, execution.sizes);
        tied(&execution, &input);
    }
}

/// A call traps on pointers that are misaligned, overlap, or have no memory.
#[test]
fn calls_trap_on_their_pointers() {
    let at = |address: u32, count: u32| address.wrapping_add(4 * count);
    let output = 0x3000_0000;
    // a0, a1 and the number of the call.
    let cases: [(u32, u32, i32, Option<TrapReason>); 12] = [
        (DATA, DATA + 32, SHA256, None),
        (DATA + 64, DATA, SHA256, None),
        (
            DATA + 2,
            DATA + 32,
            SHA256,
            Some(TrapReason::MisalignedAccess { address: DATA + 2, size: 4 }),
        ),
        (
            DATA,
            DATA + 33,
            SHA256,
            Some(TrapReason::MisalignedAccess { address: DATA + 33, size: 4 }),
        ),
        // Operands may overlap: what is read is read before anything is written.
        (DATA, DATA + 28, SHA256, None),
        (DATA, DATA - 60, SHA256, None),
        (0x2000_0000 - 20, DATA, SHA256, None),
        (0x2000_0000 - 16, DATA, SHA256, Some(TrapReason::Unmapped(0x2000_000c))),
        (DATA, output, SHA256, None),
        (DATA, output + 4, SHA256, Some(TrapReason::Unmapped(at(output, 16)))),
        (0xffff_fffc, DATA, SHA256, Some(TrapReason::Unmapped(0xffff_fffc))),
        // Keccak does not read a1.
        (DATA, 3, KECCAK, None),
    ];
    for (a0, a1, number, reason) in cases {
        let input = Input { public: vec![a0, a1], private: Vec::new() };
        let load = [lui(5, 0x2000_0000), load(2, 10, 5, 0), load(2, 11, 5, 4), li(17, number)];
        let words = [&load[..], &[ECALL], &exit()].concat();
        let program = Program::from_elf(&program(&words)).unwrap();
        match (run(&program, &input, 100), reason) {
            (Ok(_), None) => {}
            (Err(RunError::Trap(trap)), Some(reason)) => assert_eq!(trap.reason, reason),
            (found, reason) => panic!("{a0:#x} {a1:#x}: {:?}, not {reason:?}", found.map(drop)),
        }
    }
}

/// Changes the accesses of a call.
fn accesses(run: &mut Run, chip: Chip) -> &mut Vec<crate::op::Access> {
    &mut run.forged.as_mut().unwrap().accesses[chip.index()][0]
}

/// Makes the words of the call of SHA-256 follow from what it is given, and the cells at the end.
fn follow(run: &mut Run) {
    let given: Vec<u32> = accesses(run, Chip::Sha256).iter().map(|access| access.before).collect();
    for (word, made) in (DATA / 4..).zip(Precompile::Sha256.compute(&given).unwrap()) {
        accesses(run, Chip::Sha256)[(word - DATA / 4) as usize].after = made;
        run.memory.cell(word).value = made;
    }
}

/// Each lie continues honestly after its change.
#[test]
fn lies_about_calls_are_refused() {
    let bus = |name: &str| Refused::Buses(vec![name.into()]);
    let words = [&call(SHA256, 32)[..], &exit()].concat();
    // All operands are the same zeros, but for the modulus, which is code.
    let mut other = vec![lui(10, DATA), addi(11, 10, 0), addi(12, 10, 0), addi(13, 10, 0)];
    other.extend([i(0x17, 0, 14, 0, 0), li(17, 1004), ECALL]);
    other.extend(exit());
    let cases: Vec<(&str, &[u32], Lie, Refused)> = vec![
        ("nothing", &words, follow, Refused::Nothing),
        (
            "a word that the function does not make",
            &words,
            |run| {
                accesses(run, Chip::Sha256)[3].after ^= 1;
                run.memory.cell(DATA / 4 + 3).value ^= 1;
            },
            Refused::Rows,
        ),
        (
            "a block that is not the one in memory",
            &words,
            |run| {
                let access = &mut accesses(run, Chip::Sha256)[10];
                (access.before, access.after) = (1, 1);
                run.memory.cell(DATA / 4 + 10).value = 1;
                follow(run);
            },
            bus("memory"),
        ),
        (
            "a call that changes its block",
            &words,
            |run| {
                accesses(run, Chip::Sha256)[10].after = 1;
                run.memory.cell(DATA / 4 + 10).value = 1;
            },
            bus("memory"),
        ),
        (
            "a state that is not the one in memory",
            &words,
            |run| {
                accesses(run, Chip::Sha256)[0].before = 1;
                follow(run);
            },
            bus("memory"),
        ),
        (
            "a call with another pointer",
            &words,
            |run| {
                at(run, 4).y += 4;
                last(run, 11, 17, DATA + 36);
            },
            Refused::Buses(vec!["registers".into(), "memory".into()]),
        ),
        (
            "a pointer that is no multiple of four",
            &words,
            |run| {
                at(run, 4).x += 1;
            },
            Refused::Rows,
        ),
        (
            "a result that is not 0",
            &words,
            |run| {
                run.exit.code = 5;
                last(run, 10, 24, 5);
            },
            bus("registers"),
        ),
        (
            "a call that never happened",
            &words,
            |run| {
                forged(run)[Chip::Sha256.index()].clear();
                run.forged.as_mut().unwrap().accesses[Chip::Sha256.index()].clear();
            },
            Refused::Buses(vec!["state".into(), "registers".into(), "memory".into()]),
        ),
        (
            "a call of one function for another",
            &other,
            |run| {
                let of = |chip: Chip| chip.index();
                let op = forged(run)[of(Chip::MulMod384)].pop().unwrap();
                forged(run)[of(Chip::MulMod256)].push(op);
                let all = &mut run.forged.as_mut().unwrap().accesses;
                let long = all[of(Chip::MulMod384)].pop().unwrap();
                let words = long[..60].chunks(12).flat_map(|operand| &operand[..8]);
                all[of(Chip::MulMod256)].push(words.chain(&long[60..]).copied().collect());
                for word in
                    [DATA / 4, long[62].before / 4].into_iter().flat_map(|at| at + 8..at + 12)
                {
                    run.memory.cell(word).time = 0;
                }
            },
            bus("registers"),
        ),
    ];
    for (name, words, lie, expected) in cases {
        let mut execution = execution(words, &Input::default());
        // Room for the other call.
        execution.counts.raise(crate::Isa::Rv32im, "mulmod-256", 1);
        assert_eq!(refused(execution, &Input::default(), lie), expected, "{name}");
    }
}
