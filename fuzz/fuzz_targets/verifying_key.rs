//! Fuzz target: a verifying key.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::verifying_key(data));
