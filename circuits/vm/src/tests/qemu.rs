//! Random programs against qemu-riscv32 (Debian's package qemu-user, which `scripts/test` installs; unit tests
//! run without it).

use super::assembler::*;
use super::run::{CODE, DATA, instruction, words};
use crate::{Input, Program, run};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The number of bytes that the programs leave at [`DATA`]: 32 words that they wrote, then registers.
const BYTES: usize = 256;

/// The registers that are kept there: not x8, which points to it.
fn kept() -> impl Iterator<Item = (u32, i32)> {
    (1..32).filter(|register| *register != 8).zip((128..).step_by(4))
}

/// A body, then stores of the registers; in qemu, also a call that writes all of it to standard output.
fn with_dump(body: &[u32], seeds: [u32; 4], writes: bool) -> Vec<u32> {
    let mut words = words(body.to_vec(), seeds);
    words.truncate(words.len() - exit().len());
    words.extend(kept().map(|(register, at)| store(2, register, 8, at)));
    if writes {
        // write(1, x8, 256)
        words.extend([
            li(17, 64),
            li(10, 1),
            addi(11, 8, 0),
            li(12, BYTES as i32),
            ECALL,
            li(10, 0),
        ]);
    }
    words.extend(exit());
    words
}

#[test]
#[ignore = "needs qemu-riscv32: scripts/test --all runs it"]
fn agrees_with_qemu() {
    let mut runner = TestRunner::deterministic();
    let strategy = (prop::collection::vec(instruction(), 1..120), any::<[u32; 4]>());
    let directory = std::env::temp_dir().join(format!("hekaton-qemu-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for case in 0..60 {
        let (body, seeds): (Vec<u32>, _) = strategy.new_tree(&mut runner).unwrap().current();
        let file = directory.join("program");
        std::fs::write(
            &file,
            program_with_data(&with_dump(&body, seeds, true), DATA, BYTES as u32),
        )
        .unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new("qemu-riscv32").arg(&file).output();
        let output = output.expect("qemu-riscv32, which is in Debian's package qemu-user");
        assert!(output.status.success(), "{case}: {:?} {body:x?}", output.status);
        let ours = Program::from_elf(&program(&with_dump(&body, seeds, false))).unwrap();
        assert_eq!(ours.summary().entry, CODE);
        let run = run(&ours, &Input::default(), 10_000).unwrap();
        let words = (DATA / 4..).take(BYTES / 4);
        let found: Vec<u8> =
            words.flat_map(|word| run.memory.get(word).value.to_le_bytes()).collect();
        assert_eq!(found, output.stdout, "{case}: {body:x?}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
