//! Proofs of epochs.

use crate::{Error, Options};
use benches::directory::{batch, tree};
use benches::{Line, peak_of_process, times};
use hekaton_core::{LocalEngine, ProveOptions, SetupOptions, prove, setup, verify};
use hekaton_directory::{Profile, Witness};
use hekaton_directory_circuit::Epochs;
use std::time::Duration;

/// The constraints of a change with two paths of 128 levels ([`hekaton_paper::FullEpoch`]).
const FULL: f64 = 11_883_000.0;

/// The constraints per step, and those that a subcircuit has in addition.
fn constraints(profile: Profile) -> (usize, usize) {
    match profile {
        Profile::Compress => (53_743, 378),
        Profile::Sha256 | Profile::Full => (92_175, 378),
    }
}

/// Proves an epoch of some updates, and estimates from it an epoch of a whole batch, whose steps are counted.
pub(crate) fn measure(options: &Options) -> Result<(), Error> {
    for profile in [Profile::Compress, Profile::Sha256] {
        let before = tree(profile, options.keys)?;
        let changes = batch(options.keys, options.proven)?;
        let (root, chain) = (before.root(), [1; 32]);
        let (epoch, steps) = (before.epoch(), before.steps(&changes)?);
        let witness = Witness { profile, epoch, root, chain, steps };
        let whole = before.steps(&batch(options.keys, options.updates)?)?.len();
        drop(before);
        let (step, own) = constraints(profile);
        let each = options.rows.saturating_sub(own) / step;
        if each == 0 {
            return Err(format!("--rows is below the {} of a step", step + own).into());
        }
        let subcircuits = witness.steps.len().div_ceil(each);
        let circuit = Epochs { profile, steps: each, subcircuits };
        let engine = LocalEngine::new(None)?;
        let keys = setup(&circuit, &engine, &SetupOptions::new("epochs"))?;
        let run = circuit.run(&witness)?;
        let (spent, result) = times(|| prove(&circuit, &run, &keys, &engine, &ProveOptions::new()));
        let proven = result?;
        let proof = proven.proof.as_bytes();
        let verified = || verify(&keys.verifying, &proven.public_values, proof);
        verified()?;
        let verifying = benches::median((0..9).map(|_| times(verified).0.wall).collect());

        let threads = engine.threads();
        let name = profile.name();
        let line = |what: &str, ours: f64, rival: &str, theirs: f64, unit, larger_is_better| {
            let (bench, size) = (&*format!("proof, {name}: {what}"), options.keys);
            let line = Line { bench, size, threads, ours, rival, theirs, unit, larger_is_better };
            line.print(options.run.json);
        };
        let rate = |time: Duration| (circuit.subcircuits * each) as f64 / time.as_secs_f64();
        let (cpu, wall) = (rate(spent.cpu), rate(spent.wall));
        let of_step = whole as f64 / options.updates as f64;
        let none = f64::NAN;
        line("steps", of_step, "", none, "an update of a batch", false);
        line("constraints", cpu * step as f64, "", none, "a CPU second", true);
        let full = cpu * step as f64 / FULL;
        line("updates of a batch", cpu / of_step, "full, by its rows", full, "a CPU second", true);
        line("updates of a batch", wall / of_step, "", none, "a second of wall time", true);
        line("subcircuits", subcircuits as f64, "", none, "proven", true);
        line("proof", proof.len() as f64, "akd 0.13, an audit of 1,024", 388_000.0, "bytes", false);
        let ms = verifying.as_secs_f64() * 1e3;
        line("verification", ms, "akd 0.13, an audit of 1,024", 250.0, "ms", false);
        line(
            "memory",
            peak_of_process() as f64 / 1e6,
            "",
            none,
            "MB of the process at most",
            false,
        );
    }
    Ok(())
}
