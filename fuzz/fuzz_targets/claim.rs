//! Fuzz target: a proof of a program's run.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::claim(data));
