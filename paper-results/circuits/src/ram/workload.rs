//! A program of a given number of cycles: random accesses to a table of 64 kB, with arithmetic of all kinds
//! between them.

use hekaton_circuit::CircuitError;
use hekaton_vm::{Input, Isa, Program, run};

/// The least number of cycles.
pub(super) const LEAST: usize = 32;

/// The cycles of a turn, and those before and behind all turns.
const TURN: usize = 15;
const OTHERS: usize = 4;

/// The number of words of the table.
const WORDS: usize = 1 << 14;

/// The input with a word on the tape.
pub(super) fn input(seed: u32) -> Input {
    Input { public: Vec::new(), private: seed.to_le_bytes().to_vec() }
}

/// The word on the tape.
pub(super) fn seed(input: &Input) -> u32 {
    // As the machine has a tape: filled up with zeros to whole words.
    let mut word = [0; 4];
    word.iter_mut().zip(&input.private).for_each(|(to, byte)| *to = *byte);
    u32::from_le_bytes(word)
}

/// The maximum number of words of memory that are touched.
pub(super) fn most_cells(cycles: usize) -> usize {
    (cycles / TURN).min(WORDS)
}

/// The number of operations of each chip, which grows by the same in each turn. No register is left alone for so
/// long that it needs a refresh.
pub(super) fn operations(cycles: usize) -> Result<Vec<u64>, CircuitError> {
    let of = |cycles: usize| -> Result<Vec<u64>, CircuitError> {
        let run = run(&program(cycles)?, &input(0), cycles as u64)?;
        Ok(Isa::TinyRam.chips().iter().map(|chip| run.count(*chip)).collect())
    };
    let turns = cycles.saturating_sub(OTHERS) / TURN;
    let others = cycles.saturating_sub(turns * TURN);
    // Two short runs give the counts of any length, since all turns are equal: no long run is needed to
    // size a circuit.
    let (one, two) = (of(others + TURN)?, of(others + 2 * TURN)?);
    let all = one.iter().zip(two).map(|(one, two)| one + (two - one) * (turns as u64 - 1));
    Ok(all.collect())
}

/// The program. No instruction depends on the values, so that every run has the same ones.
pub(super) fn program(cycles: usize) -> Result<Program, CircuitError> {
    let turns = cycles.saturating_sub(OTHERS) / TURN;
    // Cycles that do not fill a turn are additions to a register that nothing else reads.
    let more = "add r9, r9, 1\n".repeat(cycles.saturating_sub(OTHERS) % TURN);
    let text = format!(
        "; TinyRAM V=2.000 W=32 K=16
        read r1, 1
        mov r7, {turns}
        mov r8, 0
        {more}
_turn:  mull r1, r1, 1664525
        add r1, r1, 1013904223
        shr r2, r1, 16
        and r2, r2, 0xfffc
        add r2, r2, 0x11000000
        load.w r3, r2
        xor r3, r3, r1
        cmpg r3, r4
        cmov r4, r3
        store.w r2, r3
        umod r5, r3, 1000
        add r8, r8, r5
        sub r7, r7, 1
        cmpe r7, 0
        cnjmp _turn
        answer r8
"
    );
    Ok(Program::from_tinyram(&text)?)
}
