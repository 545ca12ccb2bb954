//! Fuzz target: files of setup ceremonies.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::ceremony(data));
