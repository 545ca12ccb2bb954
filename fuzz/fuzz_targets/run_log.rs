//! Fuzz target: the log of a run.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::run_log(data));
