//! Fuzz target: an answer of a key directory.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::directory_answer(data));
