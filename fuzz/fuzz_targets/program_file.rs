//! Fuzz target: a program of the machine, an ELF file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::program_file(data));
