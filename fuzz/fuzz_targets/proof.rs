//! Fuzz target: a proof, under a fixed verifying key.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::proof(data));
