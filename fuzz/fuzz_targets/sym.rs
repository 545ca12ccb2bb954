//! Fuzz target: a circom `.sym` file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::sym(data));
