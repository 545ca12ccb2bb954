//! Fuzz target: a circuit directory.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::circuit_directory(data));
