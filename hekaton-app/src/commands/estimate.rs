//! `hekaton estimate`.

use super::ceremony_estimate::CeremonyEstimate;
#[cfg(feature = "gpu")]
use super::gpu_estimate::GpuEstimate;
use super::predict::PredictionInputs;
use crate::app::App;
use crate::application::OpenCircuit;
use crate::imported;
use crate::options;
use crate::transcripts::types_of;
use hekaton_ceremony::{Rates, ceremony_cost};
use hekaton_circuit::Masking;
use hekaton_circuit::named::{InputFile, ParameterMap};
use hekaton_core::LocalEngine;
use hekaton_core::events::Phase;
use hekaton_plan::{Calibration, Estimate, EstimateError, TypeEstimate, Workers, estimate};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, bytes, count, seconds_f64};
use hekaton_terminal::progress::Display;
use serde_json::{Value, json};
use std::num::NonZeroUsize;

pub(crate) fn run(command: &options::Estimate, app: &App, json: bool) -> Result<(), Failure> {
    if let Some(path) = &command.prediction.calibrate {
        return super::calibrate::run(path, command.threads.threads, json);
    }
    // Wrong files, and what cannot be estimated, are refused before the two seconds of measuring.
    #[cfg(not(feature = "gpu"))]
    if command.gpu.is_some() {
        let why = format!("--gpu: {}; {}", crate::gpu::WITHOUT, crate::gpu::BUILD);
        return Err(Failure::new(exit::USAGE, why));
    }
    let prediction = PredictionInputs::read(&command.prediction)?;
    let (name, circuit, parameters, input) = chosen(command, app)?;
    let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
    let display = Display::new();
    display.line("measuring this machine for two seconds");
    // A prediction starts from an idle core: constants of its own describe a busy node.
    let calibration = match &prediction {
        Some(_) => {
            let one = LocalEngine::new(NonZeroUsize::new(1)).or_fail(exit::FAILED)?;
            Calibration::measure(&one)
        }
        None => Calibration::measure(&engine),
    };
    display.line("counting constraints");
    let threads = command.provers_per_rank.map_or(engine.threads(), NonZeroUsize::get);
    let workers = Workers { ranks: command.ranks.map_or(1, NonZeroUsize::get), threads };
    let masking = Masking::new(!command.no_zero_knowledge);
    // Estimates count constraints, which do not depend on the values of an input of the right size.
    let measured = input.unwrap_or_else(|| circuit.sample());
    let estimated = circuit.on_input(&measured, |prepared| {
        estimate(prepared, masking, &calibration, workers, command.memory_limit)
    });
    let estimated = estimated.or_fail(exit::USAGE).map_err(|e| of_made_up_input(command, e))?;
    let found = estimated.map_err(|e| match e {
        EstimateError::Memory(e) => crate::hints::not_enough_memory(e),
        e => Failure::new(exit::FAILED, e),
    })?;
    // Progress must be gone before the table is printed.
    drop(display);
    let mut object = object(&found, &name, workers);
    object["parameters"] = json!(parameters);
    let mut text = table(&found, &format!("{name} {}", json!(parameters)), workers);
    #[cfg(feature = "gpu")]
    if let Some(memory) = command.gpu {
        let gpu = GpuEstimate::new(&found.types, memory);
        object["gpu"] = gpu.object();
        text += &gpu.table();
    }
    if command.ceremony {
        let (types, _) = types_of(&*circuit, !command.no_zero_knowledge)?;
        let instances = usize::try_from(found.subcircuits).or_fail(exit::FAILED)?;
        let cost = engine.install(|| ceremony_cost(&types, instances, &Rates::measure()));
        let ceremony = CeremonyEstimate::new(cost, command.contributors, command.bandwidth.max(1));
        object["ceremony"] = ceremony.object();
        text += &ceremony.table();
    }
    if let Some(inputs) = prediction {
        let predicted = inputs.predict(&found, masking)?;
        object["prediction"] = predicted.object();
        text += &predicted.table();
    }
    output::result(json, &object, &text)
}

/// A circuit: its name, the circuit, its parameters, and the input if there is one.
type Chosen = (String, Box<dyn OpenCircuit>, ParameterMap, Option<InputFile>);

/// The circuit of a command, whose input fits it.
fn chosen(command: &options::Estimate, app: &App) -> Result<Chosen, Failure> {
    let input = match (command.up_to, &command.file) {
        (Some(bytes), _) => Some(largest_input(bytes)?),
        (None, file) => file.as_deref().map(exit::input).transpose()?,
    };
    let chosen = app.choose(&command.circuit, input.as_ref());
    let (name, circuit, parameters) = chosen.map_err(|e| of_made_up_input(command, e))?;
    // `setup --up-to` and, of circuits with code, `ceremony new` would refuse it.
    if command.up_to.is_some() || (command.ceremony && circuit.directory().is_none()) {
        app.require_family(&name, &parameters)?;
    }
    if let (Some(path), Some(input)) = (&command.file, &input) {
        let fits = circuit.check_input(input);
        fits.map_err(|e| imported::input_failure(path, &e, exit::USAGE))?;
    }
    Ok((name, circuit, parameters, input))
}

/// A failure with the input that `--up-to` assumes, which not every circuit takes.
fn of_made_up_input(command: &options::Estimate, mut failure: Failure) -> Failure {
    if command.up_to.is_some() {
        failure.message +=
            "; --up-to assumes an input of zeros: where the circuit needs another, pass --for FILE";
    }
    failure
}

/// The largest input of a key family, of zeros.
fn largest_input(bytes: u64) -> Result<InputFile, Failure> {
    let mut input = Vec::new();
    let fits =
        usize::try_from(bytes).ok().and_then(|n| input.try_reserve_exact(n).ok().map(|()| n));
    let length = fits.ok_or_else(|| {
        let why = format!("--up-to: no memory for an input of {}", output::bytes(bytes));
        Failure::new(exit::USAGE, why)
    })?;
    input.resize(length, 0);
    Ok(InputFile::from_bytes(input))
}

/// The fraction of free processors below which the estimate also has the time at this load.
const BUSY: f64 = 0.9;

/// The fraction of the evaluation domain that constraints fill. Time and memory depend on the domain.
fn filled(kind: &TypeEstimate) -> f64 {
    kind.size.constraints as f64 / kind.size.domain as f64
}

/// An estimate as JSON.
pub fn object(e: &Estimate, circuit: &str, workers: Workers) -> Value {
    let types: Vec<Value> = (e.types.iter())
        .map(|t| {
            json!({
                "name": t.size.name, "constraints": t.size.constraints,
                "domain": t.size.domain, "filled": filled(t), "slots": t.size.slots,
                "instances": t.size.instances, "key_bytes": t.size.key_bytes,
                "prover_bytes": t.size.prover_bytes(), "commit_seconds": t.commit_seconds,
                "prove_seconds": t.prove_seconds,
            })
        })
        .collect();
    let phases: Vec<Value> =
        Phase::ALL.iter().zip(e.phases).map(|(p, t)| json!({ "phase": p, "seconds": t })).collect();
    json!({
        "ok": true, "circuit": circuit, "subcircuits": e.subcircuits,
        "constraints": e.constraints, "types": types, "key_bytes": e.key_bytes,
        "proof_bytes": e.proof_bytes, "ranks": workers.ranks, "threads": workers.threads,
        "provers": e.memory.provers, "drops_keys": e.memory.release,
        "peak_memory_bytes": e.memory.peak, "phases": phases, "seconds": e.seconds(),
        "cpu_seconds": e.cpu_seconds, "free_share_of_processors": e.share,
        "seconds_at_this_load": e.seconds_at_this_load(),
    })
}

/// An estimate as a table.
pub fn table(e: &Estimate, circuit: &str, workers: Workers) -> String {
    let mut out = format!(
        "{:<16} {:>12} {:>9} {:>7} {:>6} {:>10} {:>10} {:>12} {:>10}\n",
        "type",
        "constraints",
        "domain",
        "filled",
        "slots",
        "instances",
        "key",
        "prover",
        "time each"
    );
    for t in &e.types {
        out += &format!(
            "{:<16} {:>12} {:>9} {:>6.0}% {:>6} {:>10} {:>10} {:>12} {:>10}\n",
            t.size.name,
            count(t.size.constraints),
            count(t.size.domain),
            100.0 * filled(t),
            t.size.slots,
            count(t.size.instances),
            bytes(t.size.key_bytes),
            bytes(t.size.prover_bytes()),
            seconds_f64(t.commit_seconds + t.prove_seconds)
        );
    }
    out += "\n";
    for (phase, time) in Phase::ALL.iter().zip(e.phases) {
        out += &format!("{:<16} {:>10}\n", phase.name(), seconds_f64(time));
    }
    out += &format!("{:<16} {:>10}\n\n", "all", seconds_f64(e.seconds()));
    let mut row = |name: &str, value: String| out += &format!("{name:<16} {value}\n");
    row("CPU time", seconds_f64(e.cpu_seconds));
    if e.share < BUSY {
        let (free, time) = (100.0 * e.share, seconds_f64(e.seconds_at_this_load()));
        let what = format!("only {free:.0}% of its processors were free: at this load {time}");
        row("machine", what);
    }
    row("circuit", circuit.to_owned());
    row("subcircuits", count(e.subcircuits));
    row("constraints", count(e.constraints));
    row("keys on disk", bytes(e.key_bytes));
    row("proof", bytes(e.proof_bytes));
    let dropped = if e.memory.release { ", keys dropped from memory after use" } else { "" };
    let Workers { ranks, threads } = workers;
    let each = if ranks > 1 { " per rank" } else { "" };
    if ranks > 1 {
        row("ranks", count(ranks as u64));
    }
    row("provers", format!("{} on {threads} threads{each}{dropped}", e.memory.provers));
    row("peak memory", bytes(e.memory.peak) + each);
    out.trim_end().to_owned()
}
