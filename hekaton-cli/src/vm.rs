//! `hekaton vm`: runs of programs for RISC-V and TinyRAM, and their proofs.

use crate::machine::options::{Compiler, Vm, VmCc, VmInspect, VmProve, VmRun, VmSetup, VmVerify};
use crate::machine::{self, Executed, FamilyParameters, NAME, ProgramRun, VmCircuits};
use clap::{ArgMatches, FromArgMatches, Subcommand};
use hekaton_app::App;
use hekaton_app::product::{
    Application, Product, estimate_object, estimate_table, not_enough_memory, of_derived_key,
    prove, refusal, setup_of, verdict,
};
use hekaton_circuit::named::ParameterMap;
use hekaton_circuit::{Masking, PreparedCircuit};
use hekaton_core::{LocalEngine, Trust};
use hekaton_plan::{Calibration, EstimateError, Workers};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, count};
use hekaton_terminal::progress::Display;
use hekaton_vm::{Claim, Input, Isa, MAGIC, MachineCircuit, Output, Program, Run, Sizes};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

// Without a doc comment, which would become that of the whole program.
#[derive(Debug, Subcommand)]
enum Commands {
    /// Prove runs of RISC-V programs: one set of keys serves all programs and all lengths
    #[command(subcommand)]
    Vm(Vm),
}

/// A machine for programs in RISC-V and TinyRAM.
#[derive(Clone, Copy, Debug)]
pub struct MachinePrograms;

impl Product for MachinePrograms {
    fn commands(&self, program: clap::Command) -> clap::Command {
        Commands::augment_subcommands(program)
    }

    fn run(&self, app: &App, matches: &ArgMatches, json: bool) -> Option<Result<(), Failure>> {
        let Commands::Vm(command) = Commands::from_arg_matches(matches).ok()?;
        Some(run(&command, app, json))
    }

    fn circuit(&self) -> Option<&dyn Application> {
        Some(&VmCircuits)
    }
}

fn run(command: &Vm, app: &App, json: bool) -> Result<(), Failure> {
    match command {
        Vm::Cc(command) => compile(command, json),
        Vm::Setup(command) => setup(command, json),
        Vm::Run(command) => run_program(command, json),
        Vm::Prove(command) => prove_run(command, app, json),
        Vm::Verify(command) => verify(command, json),
        Vm::Inspect(command) => inspect(command, json),
    }
}

fn compile(command: &VmCc, json: bool) -> Result<(), Failure> {
    let VmCc { files, output: path, compiler, options } = command;
    let inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let inputs = output::Inputs { files: &inputs, keys: None, run: None };
    output::check_output(path, "--output", &inputs)?;
    let compiler = Compiler::found(*compiler)?;
    let bytes = machine::compile(compiler, files, options)?;
    // Refused before it is written if the options made another kind of program.
    let program = machine::program_of(Path::new("the compiled program"), &bytes)?;
    output::write(path, &bytes)?;
    let (object, lines) = describe(&program);
    output::result(json, &object, &lines)
}

#[allow(clippy::cast_possible_truncation, reason = "the options are below 2^32")]
fn setup(command: &VmSetup, json: bool) -> Result<(), Failure> {
    let sizes = Sizes { rows: command.rows as usize };
    let kind = FamilyParameters::new(sizes, command.isa.into());
    let of_family = machine::family(kind, command.subcircuits as usize);
    let parameters: ParameterMap = serde_json::from_value(json!(kind)).or_fail(exit::FAILED)?;
    let serves = |most: &str| format!("keys for every program of up to {most} subcircuits a run");
    setup_of(&command.new, NAME, &of_family, &parameters, &serves, json)
}

fn prove_run(command: &VmProve, app: &App, json: bool) -> Result<(), Failure> {
    let subject = ProgramRun::open(&command.prove.file, &command.input)?;
    prove(&command.prove, &subject, app, json)
}

#[allow(clippy::cast_possible_truncation, reason = "the option is below 2^32")]
fn run_program(command: &VmRun, json: bool) -> Result<(), Failure> {
    let subject = ProgramRun::open(&command.program, &command.input)?;
    let keys = command.keys.as_deref().map(machine::keys::open).transpose()?;
    let sizes = match &keys {
        Some((_, kind)) => kind.sizes,
        None => Sizes { rows: command.rows as usize },
    };
    // Before the program runs, which may take minutes.
    check_outputs(command, &subject)?;
    let start = Instant::now();
    let Executed { run, output: bytes } = subject.run(sizes, true)?;
    let seconds = start.elapsed().as_secs_f64();
    let execution = subject.execution(&run, sizes)?;
    if let Some((family, kind)) = &keys {
        machine::keys::check(family, *kind, &execution)?;
    }
    // Prepared even without --estimate: a run whose circuit has no layout could not be proven.
    let prepared = PreparedCircuit::with_input(&execution, &subject.input).or_fail(exit::USAGE)?;
    let (mut object, mut lines) = report(&execution, &run, &subject.input, seconds);
    if command.estimate {
        let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
        let display = Display::new();
        display.line("measuring this machine for two seconds");
        let calibration = Calibration::measure(&engine);
        let workers = Workers { ranks: 1, threads: engine.threads() };
        let found = hekaton_plan::estimate(&prepared, Masking::Masked, &calibration, workers, None)
            .map_err(|e| match e {
                EstimateError::Memory(e) => not_enough_memory(e),
                e => Failure::new(exit::FAILED, e),
            })?;
        drop(display);
        object["estimate"] = estimate_object(&found, NAME, workers);
        lines += &format!("\n\n{}", estimate_table(&found, NAME, workers));
    }
    let name = command.program.display();
    if let Some(path) = &command.profile {
        let (profile, names) = (subject.profile(sizes)?, subject.lines());
        machine::profile::write(&profile, path, &name.to_string())?;
        object["profile"] = machine::profile::object(&profile, names.as_ref());
        lines = format!("{}\n{lines}", machine::profile::table(&profile, names.as_ref()));
    }
    if let Some(path) = &command.output {
        let why = "the words of its output are a digest, but the program does not show the bytes that have it";
        let bytes = bytes.ok_or_else(|| Failure::new(exit::FAILED, format!("{name}: {why}")))?;
        output::write(path, &bytes)?;
    }
    output::result(json, &object, &lines)
}

/// Refuses options for outputs that could not be written, or would overwrite an input.
fn check_outputs(command: &VmRun, subject: &ProgramRun) -> Result<(), Failure> {
    let mut files = vec![command.program.as_path()];
    files.extend(subject.input_files());
    let inputs = output::Inputs { files: &files, keys: command.keys.as_deref(), run: None };
    if let Some(path) = &command.output {
        output::check_output(path, "--output", &inputs)?;
    }
    let Some(path) = &command.profile else { return Ok(()) };
    if subject.program().isa() != Isa::Rv32im {
        let why = "--profile needs a program for RISC-V: programs for TinyRAM have no functions";
        return Err(Failure::new(exit::USAGE, why));
    }
    for path in machine::profile::files(path) {
        output::check_output(&path, "--profile", &inputs)?;
        if command.output.as_ref().is_some_and(|other| output::same_place(other, &path)) {
            let why = format!("--output and --profile would both write {}", path.display());
            return Err(Failure::new(exit::USAGE, why));
        }
    }
    Ok(())
}

/// Describes a run and the size of its proof.
fn report(execution: &MachineCircuit, run: &Run, input: &Input, seconds: f64) -> (Value, String) {
    let claim = Claim::of(execution, run);
    let cycles = run.cycles();
    let rows = execution.sizes.constraints_of(run);
    let isa = execution.program.isa();
    let mix: Vec<(&str, u64)> = isa
        .chips()
        .iter()
        .map(|chip| (chip.name(), run.count(*chip)))
        .chain([("refresh", run.refreshes())])
        .collect();
    let rows_a_cycle = rows as f64 / cycles as f64;
    let (cheapest, share) = machine::cheapest(execution, run, input);
    let cheapest_line = match 1 << cheapest == execution.sizes.rows || share > 0.97 {
        true => "none is much cheaper".to_owned(),
        false => format!("about {share:.2} of the work with --rows 2^{cheapest}"),
    };
    let object = json!({
        "ok": true, "program_exit_code": claim.exit_code, "output": claim.output,
        "output_bytes": machine::output_json(&claim), "cycles": cycles,
        "seconds": seconds, "operations": mix.iter().copied().collect::<std::collections::BTreeMap<_, _>>(),
        "constraints": rows, "constraints_a_cycle": rows_a_cycle, "rows": execution.sizes.rows,
        "cheapest_rows": 1u64 << cheapest, "cheapest_share": share,
        "subcircuits": execution.subcircuits(), "counts": machine::counts_json(isa, &execution.counts),
        "program": hex::encode(claim.program),
    });
    let mut lines = format!("{:<12} {:>14} {:>14}\n", "kind", "operations", "subcircuits");
    let counts = execution.counts.by_name(isa);
    for ((name, operations), (_, subcircuits)) in mix.iter().zip(counts) {
        if *operations > 0 || subcircuits > 0 {
            let (operations, subcircuits) = (count(*operations), count(subcircuits as u64));
            lines += &format!("{name:<12} {operations:>14} {subcircuits:>14}\n");
        }
    }
    lines += &format!(
        "\nresult       {}\ncycles       {} in {} ({:.1} million a second)\nconstraints  {} for \
         operations, {rows_a_cycle:.1} a cycle\nsubcircuits  {} of up to {} constraints, with memory \
         and tables\nother sizes  {cheapest_line}\nprogram      {}",
        machine::result(&claim),
        count(cycles),
        output::seconds_f64(seconds),
        cycles as f64 / seconds / 1e6,
        count(rows),
        count(execution.subcircuits() as u64),
        count(execution.sizes.rows as u64),
        hex::encode(claim.program),
    );
    (object, lines)
}

/// Reads the file of a proof.
fn read(path: &std::path::Path) -> Result<(Claim, Vec<u8>), Failure> {
    let bytes = exit::read_at_most(path, exit::PROOF_LIMIT)?;
    let read = Claim::read(&bytes).map(|(claim, proof)| (claim, proof.to_vec()));
    read.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)
}

// One piece: each step refuses before the next one costs more, and the verdict names what all of them found.
fn verify(command: &VmVerify, json: bool) -> Result<(), Failure> {
    let (claim, proof) = read(&command.proof)?;
    let (program, _) = machine::program(&command.program)?;
    let (public, _) = machine::public_words(command.public_input.as_deref())?;
    let refused =
        |why: String| Failure::new(exit::REFUSED, format!("{}: {why}", command.proof.display()));
    let (family, kind) = machine::keys::open(&command.keys)?;
    // First, because nothing else in the files of a family shows that it is the family that the verifier trusts.
    let digest = family.digest()?;
    if let Some(expected) = command.key_digest.filter(|expected| *expected != digest) {
        let (expected, found) = (hex::encode(expected), hex::encode(digest));
        let why = format!("its digest is {found}, but --key-digest requires {expected}");
        return Err(Failure::new(exit::REFUSED, format!("{}: {why}", command.keys.display())));
    }
    // From the manifest, before anything is derived; verification checks the derived key once more.
    let statement = Trust::InsecureSeed.statement();
    if family.manifest.trust == statement && !command.accept_test_keys {
        let why = format!("{statement}; a proof under these keys proves nothing");
        return Err(Failure::new(exit::REFUSED, format!("{}: {why}", command.keys.display())));
    }
    let execution =
        claim.execution(program, public.len(), kind.sizes).map_err(|e| refused(e.to_string()))?;
    // The claim is compared before anything is computed: if the verifier expects another result, the proof is of no use.
    if claim.exit_code != command.exit_code {
        let (found, expected) = (claim.exit_code, command.exit_code);
        let why = format!("the program exits with code {found}, expected {expected}");
        return Err(refused(why));
    }
    if let Some(path) = &command.output
        && !is_output(path, &claim)?
    {
        let found = machine::result(&claim);
        return Err(refused(format!("the program has another output than expected: {found}")));
    }
    // Before the key is derived, which may take seconds: a proof that cannot be right must not cost the verifier that much.
    machine::keys::check_proof((&family, kind), &command.proof, &execution, &proof)?;
    let start = Instant::now();
    let engine = LocalEngine::new(None).or_fail(exit::FAILED)?;
    let key = machine::keys::verifying_key(&family, &execution, &engine)?;
    let derived = start.elapsed();
    let start = Instant::now();
    let public = claim.public_values(&public);
    verdict(&key, &public, &proof, command.accept_test_keys).map_err(|e| {
        let message = format!("{}: {e}", command.proof.display());
        Failure { message, ..refusal(&e) }
    })?;
    let verified = start.elapsed();
    let pinned = command.key_digest.is_some();
    let (ceremony, contributors) = of_derived_key(&command.keys, &key)?;
    let lines = format!(
        "the proof holds: for some private input, the program exits with this result (key derived in \
         {}, verified in {})\nresult: {}\npublic input: {}\nprogram: {}\nfamily digest: \
         {}{}\n\
         zero knowledge: {}\ntrust: {}{contributors}",
        output::seconds(derived),
        output::seconds(verified),
        machine::result(&claim),
        match claim.public_words {
            0 => "none".to_owned(),
            words => format!("{words} words, as given"),
        },
        hex::encode(claim.program),
        hex::encode(digest),
        if pinned { ", as required" } else { " (compare it)" },
        if key.zero_knowledge { "yes" } else { "NO" },
        key.trust.statement(),
    );
    let object = json!({
        "ok": true, "program_exit_code": claim.exit_code, "output": claim.output,
        "output_bytes": machine::output_json(&claim), "public_words": claim.public_words, "program": hex::encode(claim.program),
        "counts": machine::counts_json(claim.isa(), &claim.counts),
        "subcircuits": key.instances, "zero_knowledge": key.zero_knowledge,
        "family": hex::encode(digest), "family_pinned": pinned, "trust": key.trust.statement(),
        "ceremony": ceremony, "derive_seconds": derived.as_secs_f64(), "seconds": verified.as_secs_f64(),
    });
    output::result(json, &object, &lines)
}

/// Reports whether a file has the output of a claim.
fn is_output(path: &Path, claim: &Claim) -> Result<bool, Failure> {
    // The memory of the machine: no program has a longer output.
    let bytes = exit::read_limited(path, 1 << 32, "; expected the output of a program")?;
    Ok(Output::of(&claim.output).is(&bytes))
}

fn inspect(command: &VmInspect, json: bool) -> Result<(), Failure> {
    let path = &command.file;
    let bytes = machine::read_program(path)?;
    if bytes.starts_with(MAGIC) {
        let read = Claim::read(&bytes);
        let (claim, proof) =
            read.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)?;
        let counts = machine::counts_json(claim.isa(), &claim.counts);
        let lines = format!(
            "proof of a program's run (not verified)\nresult         {}\nprogram        {}\npublic \
             input   {} words\nsubcircuits    {counts}\nproof          {}",
            machine::result(&claim),
            hex::encode(claim.program),
            claim.public_words,
            output::bytes(proof.len() as u64),
        );
        let object = json!({
            "ok": true, "kind": "proof of a run", "program_exit_code": claim.exit_code,
            "output": claim.output, "output_bytes": machine::output_json(&claim), "program": hex::encode(claim.program),
            "public_words": claim.public_words, "counts": counts, "proof_bytes": proof.len(),
        });
        return output::result(json, &object, &lines);
    }
    let (object, lines) = describe(&machine::program_of(path, &bytes)?);
    output::result(json, &object, &lines)
}

/// Describes a program.
fn describe(program: &Program) -> (Value, String) {
    let summary = program.summary();
    let lines = format!(
        "program for {}\ndigest         {}\nentry          {:#x}\nimage          {} words from \
         {:#x}\ninstructions   {}{}\nsymbols        {}",
        program.isa().name(),
        hex::encode(program.digest()),
        summary.entry,
        count(summary.words as u64),
        summary.start,
        count(summary.instructions as u64),
        match summary.illegal {
            0 => String::new(),
            n => format!(", and {} words of code that are not instructions", count(n as u64)),
        },
        count(summary.symbols as u64),
    );
    let object = json!({
        "ok": true, "kind": "program", "isa": program.isa().name(), "program": hex::encode(program.digest()),
        "entry": summary.entry, "start": summary.start, "words": summary.words,
        "instructions": summary.instructions, "illegal": summary.illegal,
        "symbols": summary.symbols,
    });
    (object, lines)
}
