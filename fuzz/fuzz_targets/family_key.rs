//! Fuzz target: a family key, and keys derived from it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::family_key(data));
