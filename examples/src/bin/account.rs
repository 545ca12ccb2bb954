//! `cargo run --release -p hekaton-examples --bin account -- DIR` makes keys for the circuit, proves
//! a statement in a run that can be interrupted with Ctrl-C and resumed by a second call, and
//! verifies the proof.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use hekaton_core::events::{Event, Recorder};
use hekaton_core::{
    Cancellation, Fr, LocalEngine, ProveError, ProveOptions, SetupOptions, VerifyingKey, prove,
    setup_into, verify,
};
use hekaton_examples::account::{Account, Statement};
use hekaton_storage::{KeyStore, RunDirectoryOptions, RunIdentity};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(
        std::env::args().nth(1).ok_or("usage: account DIR, a directory for keys and run")?,
    );
    let (keys_path, run_path) = (dir.join("keys"), dir.join("run"));
    let account = Account { batches: 16, batch: 64 };
    let payments: Vec<i64> = (0..1024).map(|i| (i * 7919 % 1001) - 500).collect();
    let statement = Statement { opening: 1_000_000, payments };

    let engine = LocalEngine::new(None)?;

    // Setup, once: writes the keys of all types to disk.
    if !keys_path.exists() {
        let mut keys = KeyStore::create(&keys_path)?;
        let parameters = serde_json::json!({ "batches": account.batches, "batch": account.batch });
        let options = SetupOptions::new("account").parameters(&parameters);
        setup_into(&account, &engine, &options, &mut keys, |step| println!("setup: {step}"))?;
    }
    let (_, keys) = KeyStore::open(&keys_path)?;

    // A run directory: calling this program again after Ctrl-C resumes the run.
    let identity = RunIdentity::new(&keys.verifying, digest_of(&statement));
    let run = RunDirectoryOptions::new().resume(&run_path, &identity)?;

    let stop = Cancellation::new();
    let handler = stop.clone();
    ctrlc::set_handler(move || handler.cancel())?;
    let recorder = Recorder::new("account example", |record| match &record.event {
        Event::Subcircuit { phase, instance, seconds, .. } => {
            println!("{}: batch {instance}, {seconds:.2} s", phase.name())
        }
        Event::Notice { message } => println!("note: {message}"),
        _ => {}
    });
    let options = ProveOptions::new().journal(&run).cancellation(&stop).recorder(&recorder);
    let proven = match prove(&account, &statement, &keys, &engine, &options) {
        Err(ProveError::Cancelled) => {
            println!("stopped: run this program again to resume");
            return Ok(());
        }
        other => other?,
    };

    // The verifier needs the proof, the verifying key and the public values.
    let key = VerifyingKey::from_bytes(&std::fs::read(keys_path.join("verifying.key"))?)?;
    let closing =
        statement.payments.iter().fold(statement.opening, |b, p| b.saturating_add_signed(*p));
    verify(&key, &[Fr::from(statement.opening), Fr::from(closing)], proven.proof.as_bytes())?;
    println!(
        "proven: {} to {closing} in {} payments, never overdrawn",
        statement.opening,
        statement.payments.len()
    );
    Ok(())
}

/// The digest of an input. It must cover all of it, because a run that resumed with another input
/// would not be zero-knowledge.
fn digest_of(statement: &Statement) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&statement.opening.to_le_bytes());
    for payment in &statement.payments {
        hasher.update(&payment.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}
