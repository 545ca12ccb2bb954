//! Fuzz target: messages between workers, coordinator and ranks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::messages(data));
