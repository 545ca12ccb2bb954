//! Fuzz target: `manifest.json` and `run.json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hekaton_fuzzing::manifest(data));
