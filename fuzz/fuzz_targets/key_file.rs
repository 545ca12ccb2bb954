//! Fuzz target: a proving key file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::key_file(data));
