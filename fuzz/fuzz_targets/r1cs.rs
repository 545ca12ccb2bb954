//! Fuzz target: a circom `.r1cs` file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::r1cs(data));
