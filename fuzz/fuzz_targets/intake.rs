//! Fuzz target: what nodes and others send to the intake of witnesses.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::intake(data));
