//! Fuzz target: a circom `.wtns` file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::wtns(data));
