//! `key-directory`: a key directory from its first label to an audit, with the library alone. Try `cargo run --release -p
//! hekaton-examples --bin key-directory -- --help`.
//!
//! A server closes three epochs, a prover makes one proof of them, and a client that holds the parameters and a verifying key
//! looks up labels, reads a history, and audits all epochs.
#![allow(clippy::print_stdout, reason = "its output is for people")]

use clap::Parser;
use ed25519_dalek::SigningKey;
use hekaton_circuit::{Fr, PreparedCircuit};
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{
    FamilyKey, LocalEngine, ProveOptions, ProverKeys, SetupOptions, derive, prove, setup_family,
    verify,
};
use hekaton_directory::{Checked, EpochProof, Index, Parameters, Profile, SignedRecord, audit};
use hekaton_directory_circuit::Epochs;
use hekaton_directory_server::{Options, Server, Update, View};
use std::path::Path;
use std::time::Instant;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A key directory from its first label to an audit.
#[derive(Parser)]
struct Arguments {
    /// The number of labels.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    keys: u32,
    /// Change this many of them in each of the two epochs after the first one.
    #[arg(long, default_value_t = 4)]
    changes: u32,
    /// Steps of a subcircuit, of 53,743 constraints each.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    steps: u16,
}

const PROFILE: Profile = Profile::Compress;

/// The circuit for some number of steps.
fn circuit(arguments: &Arguments, steps: usize) -> Epochs {
    let each = usize::from(arguments.steps);
    Epochs { profile: PROFILE, steps: each, subcircuits: steps.div_ceil(each).max(1) }
}

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    let engine = LocalEngine::new(None)?;

    // Keys once for all epochs, by a party other than the server: the secrets of a setup allow false proofs.
    let (family, types) = keys(&arguments, &engine)?;

    // The server, with three epochs.
    let folder = tempfile::tempdir()?;
    let key = SigningKey::from_bytes(&random()?);
    let parameters =
        Parameters { profile: PROFILE, server: key.verifying_key(), proofs: family.digest()? };
    Server::create(folder.path(), &parameters, &key, 4)?;
    let server = three_epochs(folder.path(), &parameters, &key, &arguments)?;
    let last = server.view()?.record().epoch;
    println!("server: {last} epochs are signed, with {} labels", server.view()?.record().leaves);

    // The prover, which needs what changed, and no key of the server.
    let witness = server.witness(0, last)?;
    let (since, steps) = (Instant::now(), witness.steps.len());
    let circuit = circuit(&arguments, steps);
    let prepared = PreparedCircuit::new(&circuit)?;
    let (aggregation, verifying) = derive(&family, &prepared, "{}", &engine)?;
    let keys = ProverKeys { verifying, aggregation, types };
    let run = circuit.run(&witness)?;
    let proven = prove(&circuit, &run, &keys, &engine, &ProveOptions::new())?;
    let subcircuits = u32::try_from(circuit.subcircuits)?;
    let bytes = proven.proof.as_bytes().to_vec();
    let proof = EpochProof { from: 0, to: last, subcircuits, proof: bytes };
    let (bytes, seconds) = (proof.proof.len(), since.elapsed().as_secs_f64());
    println!(
        "prover: {steps} steps in {} subcircuits, a proof of {bytes} bytes, {seconds:.1} s",
        circuit.subcircuits
    );

    // A client, with answers of the server.
    let records = (0..=last).map(|epoch| server.record(epoch)).collect::<Result<Vec<_>, _>>()?;
    let since = Instant::now();
    let newest = audited(&parameters, &family, &circuit, &records, &proof)?;
    println!(
        "client: epochs 0 to {} are audited, {:.1} ms",
        newest.record().epoch,
        since.elapsed().as_secs_f64() * 1e3
    );
    look_up(&newest, &*server.view()?, "label 0")?;
    look_up(&newest, &*server.view()?, "nobody")?;
    server.drain()?;
    Ok(())
}

/// The keys for all epochs of the directory: those of the family, and of each type of subcircuit.
fn keys(
    arguments: &Arguments,
    engine: &LocalEngine,
) -> Result<(FamilyKey, Vec<ProvingKey>), Error> {
    let since = Instant::now();
    let steps = 64 * (arguments.keys as usize + 2 * arguments.changes as usize) + 8;
    let most = steps.div_ceil(usize::from(arguments.steps));
    let template = circuit(arguments, 1);
    let prepared = PreparedCircuit::new(&template)?;
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<_, std::convert::Infallible>(())
    };
    let family = setup_family(&prepared, most, engine, &SetupOptions::new("epochs"), keep, |_| {})?;
    println!("setup: keys for up to {most} subcircuits, {:.1} s", since.elapsed().as_secs_f64());
    Ok((family, types))
}

fn random() -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// All labels in the first epoch, and some of them again in two more.
fn three_epochs(
    folder: &Path,
    parameters: &Parameters,
    key: &SigningKey,
    arguments: &Arguments,
) -> Result<Server, Error> {
    let all = arguments.keys;
    // Epochs are closed by `flush` alone.
    let options = Options { max_updates: all as usize + 1, interval: None, ..Options::default() };
    let server = Server::open(folder, parameters, key, options)?;
    for (epoch, count) in
        [all, arguments.changes.min(all), arguments.changes.min(all)].iter().enumerate()
    {
        let update = |n: u32| Update::new(format!("label {n}"), format!("key {n}, epoch {epoch}"));
        for receipt in server.submit_all((0..*count).map(update).collect()) {
            receipt?;
        }
        server.flush()?;
    }
    Ok(server)
}

/// Audits as an auditor does: the key of these epochs comes from the family that the parameters name, and no more secrets are
/// needed.
fn audited(
    parameters: &Parameters,
    family: &FamilyKey,
    circuit: &Epochs,
    records: &[SignedRecord],
    proof: &EpochProof,
) -> Result<Checked, Error> {
    if family.digest()? != parameters.proofs {
        return Err("these are not the keys of the directory's proofs".into());
    }
    let engine = LocalEngine::new(None)?;
    let prepared = PreparedCircuit::new(circuit)?;
    let (_, verifying) = derive(family, &prepared, "{}", &engine)?;
    let last = u32::try_from(records.len())?.saturating_sub(1);
    let proofs = std::slice::from_ref(proof);
    let [_, newest] = audit(parameters, 0..=last, records, proofs, |proof, values| {
        let public_values = values.map(Fr::from);
        verify(&verifying, &public_values, &proof.proof)?;
        Ok(())
    })?;
    Ok(newest)
}

/// Looks a label up in a record that was audited, and reads all its values.
fn look_up(record: &Checked, view: &View, label: &str) -> Result<(), Error> {
    let index = Index::of(label.as_bytes())?;
    let answer = view.look_up(label.as_bytes())?;
    match (record.look_up(&index, &answer.path)?, answer.current) {
        (None, _) => println!("client: '{label}' is not in the directory"),
        (Some(leaf), Some(current)) => {
            current.verify(label.as_bytes(), &leaf)?;
            let (_, history) = view.history(label.as_bytes(), 1 << 20)?;
            history.verify(label.as_bytes(), &leaf)?;
            let value = String::from_utf8_lossy(&current.opening.value);
            let (version, values) = (leaf.version, history.0.len());
            println!("client: '{label}' is '{value}', version {version}, after {values} values");
        }
        (Some(_), None) => println!("client: the value of '{label}' is erased"),
    }
    Ok(())
}
