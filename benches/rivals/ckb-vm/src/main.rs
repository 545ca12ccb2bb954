//! Runs a program of `circuits/vm/guests`, compiled for its 4 MiB of memory, in ckb-vm's interpreter for 32 bits, and prints
//! one line of JSON: the exit code, the output, and the median of the seconds. Files are trusted: this is a benchmark.
//!
//! `ckb-vm-rival PROGRAM MEMORY INPUT_AT OUTPUT_AT REPETITIONS`, where the file MEMORY is what the program finds at INPUT_AT.

use ckb_vm::memory::{flat::FlatMemory, wxorx::WXorXMemory};
use ckb_vm::{
    Bytes, CoreMachine, DefaultCoreMachine, DefaultMachineBuilder, DefaultMachineRunner, ISA_IMC,
    Memory, RISCV_MAX_MEMORY, SupportMachine, TraceMachine, machine::VERSION2,
};
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

fn number(text: &str) -> Result<u64, Error> {
    Ok(match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16)?,
        None => text.parse()?,
    })
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [program, memory, input_at, output_at, repetitions] = &args[..] else {
        return Err("ckb-vm-rival PROGRAM MEMORY INPUT_AT OUTPUT_AT REPETITIONS".into());
    };
    let (program, memory) = (Bytes::from(std::fs::read(program)?), std::fs::read(memory)?);
    let (input_at, output_at) = (number(input_at)?, number(output_at)?);
    let (mut times, mut result) = (Vec::new(), None);
    for _ in 0..number(repetitions)? {
        let core = DefaultCoreMachine::<u32, WXorXMemory<FlatMemory<u32>>>::new_with_memory(
            ISA_IMC,
            VERSION2,
            u64::MAX,
            RISCV_MAX_MEMORY,
        );
        let mut machine = TraceMachine::new(DefaultMachineBuilder::new(core).build());
        machine.load_program(&program, std::iter::empty())?;
        machine.machine.memory_mut().store_bytes(input_at, &memory)?;
        let start = Instant::now();
        let code = machine.run()?;
        times.push(start.elapsed().as_secs_f64());
        let output = machine.machine.memory_mut().load_bytes(output_at, 64)?;
        let words: Vec<String> = output
            .chunks(4)
            .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]).to_string())
            .collect();
        result = Some((code, words.join(",")));
    }
    times.sort_by(f64::total_cmp);
    let (code, output) = result.ok_or("no repetitions")?;
    println!(r#"{{"exit_code":{code},"output":[{output}],"seconds":{}}}"#, times[times.len() / 2]);
    Ok(())
}
