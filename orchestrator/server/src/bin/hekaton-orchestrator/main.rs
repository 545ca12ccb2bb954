//! The program: starts processes, and sends them requests.

mod arguments;
mod dead;
mod insist;
mod named;
mod output;
mod progress;
mod serve;
mod submit;

use arguments::{
    Arguments, ChainCommand, Check, Command, Exec, Fetch, Proofs, Serve, Status, ToService, Work,
    WorkflowCommand,
};
use clap::{CommandFactory, Parser};
use dead::{requeue, skip};
use hekaton_orchestrator::backend::Helper;
use hekaton_orchestrator::history::{Liveness, Violation};
use hekaton_orchestrator::http::{
    BundlesBody, ChainBody, ChainState, JobStatus, JobView, JobsBody, ProofBody, ReorgBody,
    StandstillBody,
};
use hekaton_orchestrator::record::{JobState, Order};
use hekaton_orchestrator::service::{BLOBS, RECORDS, open_records};
use hekaton_orchestrator::{Blobs, Client, Clock, Digest, Workflow};
use hekaton_service::manual::Manual;
use hekaton_service::program::{Failure, exit, failure, finish, has_colors, note, print, say};
use named::{handle, published};
use output::{client, missing, show, text_of};
use serve::{serve, settings};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use submit::{fetch, submit};

fn main() -> ExitCode {
    let Arguments { json, command } = Arguments::parse();
    let filter =
        tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(has_colors())
        .with_writer(std::io::stderr)
        .init();
    finish(run(command, json))
}

fn run(command: Command, json: bool) -> Result<u8, Failure> {
    match command {
        Command::Serve(Serve { place, listen, keep_days }) => {
            let settings = settings(&place, keep_days)?;
            serve(place, settings, Some(&listen), true, json)
        }
        Command::Work(Work { place, collect }) => {
            let settings = settings(&place, None)?;
            serve(place, settings, None, collect, json)
        }
        Command::Submit(arguments) => submit(&arguments, json),
        Command::Status(Status { to, job: Some(job) }) => {
            let client = client(&to)?;
            show(json, &client.job(&handle(&client, &job)?, 0)?)?;
            Ok(0)
        }
        Command::Status(Status { to, job: None }) => status(&to, json),
        Command::Cancel(of) => {
            let client = client(&of.to)?;
            show(json, &client.cancel(&handle(&client, &of.job)?)?)?;
            Ok(0)
        }
        Command::Requeue(of) => requeue(&of, json),
        Command::Skip(of) => skip(&of, json),
        Command::Fetch(arguments) => fetch_job(&arguments, json),
        Command::Chain(arguments) => chain(&arguments, json),
        Command::Proofs(arguments) => proofs(&arguments, json),
        Command::Revert(arguments) => {
            let body =
                ReorgBody { to: arguments.last, block: arguments.block, next: arguments.next };
            let state = client(&arguments.to)?.reorg(&arguments.chain, &body)?;
            let tail = state.tail.as_deref().unwrap_or("-");
            print(json, &state, format_args!("chain {}: the last block is {tail}", state.chain))?;
            Ok(0)
        }
        Command::Workflow(WorkflowCommand { to, file }) => {
            let stored = client(&to)?.workflow(&text_of(&file)?)?;
            print(json, &stored, &stored.workflow)?;
            Ok(0)
        }
        Command::Drain(to) => {
            client(&to)?.drain()?;
            Ok(0)
        }
        Command::Check(Check { data, patience }) => check(&data, patience, json),
        Command::TokenDigest => token_digest(),
        Command::Manual(command) => manual(&command, json),
        Command::Exec(command) => Err(become_program(&command)),
    }
}

/// Stores the outputs of a published block or of a job.
fn fetch_job(Fetch { of, output }: &Fetch, json: bool) -> Result<u8, Failure> {
    let client = client(&of.to)?;
    if let Some(outputs) = published(&client, &of.job)? {
        fetch(&client, &outputs, output)?;
        return Ok(0);
    }
    let status = client.job(&handle(&client, &of.job)?, 0)?;
    if status.state != "done" {
        show(json, &status)?;
    }
    fetch(&client, &status.outputs, output)?;
    Ok(if status.state == "done" { 0 } else { exit::REFUSED })
}

/// Prints open jobs, the last ones that have ended, how far their chains are, and what stands still.
fn status(to: &ToService, json: bool) -> Result<u8, Failure> {
    let client = client(to)?;
    let JobsBody { mut jobs, standing_still } = client.jobs()?;
    jobs.sort_by(|one, other| {
        (&one.job.chain, one.job.block).cmp(&(&other.job.chain, other.job.block))
    });
    for view in &jobs {
        let JobView { job: JobStatus { chain, block, id, state, .. }, tasks, .. } = view;
        let counts: Vec<String> =
            tasks.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let counted = counts.join(", ");
        let waits = match &view.job.missing[..] {
            [] => String::new(),
            backends => format!(": {}", missing(backends)),
        };
        let text = format!("{chain} {block} {id}: {state} (tasks: {counted}){waits}");
        print(json, view, text)?;
    }
    if jobs.is_empty() && standing_still.is_empty() {
        note("no jobs are open, and none have ended recently");
    }
    let of_jobs = jobs.iter().map(|view| &view.job.chain);
    let chains: BTreeSet<_> = of_jobs.chain(standing_still.iter().map(|one| &one.chain)).collect();
    for chain in chains {
        let state = client.chain(chain)?;
        print(json, &state, progress_of(&state))?;
    }
    for one in &standing_still {
        let StandstillBody { chain, block, id, cause, seconds, .. } = one;
        let text = format!("stands still: {chain} {block} {id} {cause} (for {seconds} s)");
        print(json, one, text)?;
    }
    Ok(0)
}

/// The blocks that a chain has published and accepted last, as text.
fn progress_of(state: &ChainState) -> String {
    let block = |name: &Option<String>, height: Option<u64>| match (name, height) {
        (Some(name), Some(height)) => format!("{height}, {name}"),
        (Some(name), None) => name.clone(),
        (None, _) => "-".to_owned(),
    };
    let published = block(&state.tail, state.height);
    match &state.tip {
        // Chains without order have none.
        None => format!("chain {}: last published block {published}", state.chain),
        Some(_) => format!(
            "chain {}: last published block {published}; last accepted block {}",
            state.chain,
            block(&state.tip, state.tip_height)
        ),
    }
}

/// Makes a chain, or reads one, and prints its state.
fn chain(arguments: &ChainCommand, json: bool) -> Result<u8, Failure> {
    let client = client(&arguments.to)?;
    let order = match (&arguments.genesis, arguments.unordered) {
        (Some(_), _) => Some(Order::Strict),
        (None, true) => Some(Order::None),
        (None, false) => None,
    };
    let state = match order {
        Some(order) => {
            let bundles = bundles(&client, arguments)?;
            let body = ChainBody { order, genesis: arguments.genesis.clone(), bundles };
            client.make_chain(&arguments.chain, &body)?
        }
        None => client.chain(&arguments.chain)?,
    };
    print(json, &state, progress_of(&state))?;
    Ok(0)
}

/// Prints what a chain has published.
fn proofs(arguments: &Proofs, json: bool) -> Result<u8, Failure> {
    let client = client(&arguments.to)?;
    let mut from = arguments.from;
    loop {
        let page = client.proofs(&arguments.chain, from)?;
        // A page may be shorter than the limit without being the last one.
        if page.proofs.is_empty() {
            return Ok(0);
        }
        for proof in &page.proofs {
            let ProofBody { entry, id, block, outputs, .. } = proof;
            print(json, proof, format_args!("{entry} {block} {id} {}", outputs.join(" ")))?;
        }
        from = page.next;
    }
}

/// Starts a program that replaces this one; returns why that failed.
fn become_program(Exec { parent, memory, program }: &Exec) -> Failure {
    let error = Helper::become_program(*parent, *memory, program);
    let name = program.first().map_or("exec".into(), |name| name.display().to_string());
    // 127 is what shells return for a program that cannot be run.
    failure(127, format!("{name}: {error}"))
}

/// Prints completions, or writes the man pages.
fn manual(command: &Manual, json: bool) -> Result<u8, Failure> {
    let text = command.run(Arguments::command())?;
    print(json, &text, &text)?;
    Ok(0)
}

/// Prints the digest of the token on standard input.
fn token_digest() -> Result<u8, Failure> {
    let token = std::io::read_to_string(std::io::stdin())
        .map_err(|error| failure(exit::BAD_FILE, format!("standard input: {error}")))?;
    // Only the digest of a token is stored. A short token could be found from its digest by brute force.
    if token.trim().len() < 16 {
        return Err(failure(
            exit::USAGE,
            "a token must have at least 16 characters; use 32 random ones",
        ));
    }
    say(Digest::of(token.trim().as_bytes()))?;
    Ok(0)
}

/// Returns the source of a new chain's blocks, if it makes them from those of another chain.
fn bundles(client: &Client, arguments: &ChainCommand) -> Result<Option<BundlesBody>, Failure> {
    let (Some(of), Some(file)) = (&arguments.bundles_of, &arguments.workflow) else {
        return Ok(None);
    };
    let text = text_of(file)?;
    let workflow = Workflow::parse(&text);
    let workflow =
        workflow.map_err(|error| failure(exit::USAGE, format!("{}: {error}", file.display())))?;
    let mut names = workflow.inputs.keys();
    let (Some(input), None) = (names.next(), names.next()) else {
        let (file, count) = (file.display(), workflow.inputs.len());
        let why = format!("{file}: expected a workflow with one input for bundles, found {count}");
        return Err(failure(exit::USAGE, why));
    };
    let digest = client.workflow(&text)?.workflow;
    let (of, blocks, lane) = (of.clone(), arguments.blocks, arguments.lane);
    Ok(Some(BundlesBody { of, blocks, workflow: digest, input: input.to_string(), lane }))
}

fn check(data: &Path, patience: u64, json: bool) -> Result<u8, Failure> {
    if !data.join(RECORDS).is_file() {
        let why = format!("{}: there is no {RECORDS} in it", data.display());
        return Err(failure(exit::BAD_FILE, why));
    }
    let store = open_records(data).map_err(|error| failure(exit::BAD_FILE, error))?;
    let blobs = Blobs::open(&data.join(BLOBS)).map_err(|error| failure(exit::BAD_FILE, error))?;
    // The store has threads of its own, so a single-threaded runtime is enough to wait for them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| failure(exit::FAILED, error))?;
    let mut history =
        runtime.block_on(store.history()).map_err(|error| failure(exit::BAD_FILE, error))?;
    history.liveness =
        Some(Liveness { now: Clock::system().wall(), patience: Duration::from_secs(patience) });
    let mut violations = history.violations();
    let jobs = history.jobs();
    for job in jobs.values() {
        let JobState::Done { outputs, .. } = &job.state else { continue };
        let broken = outputs.iter().filter_map(|output| blobs.verify(output).err());
        violations.extend(broken.map(|error| Violation {
            rev: 0,
            key: job.key().to_string(),
            why: format!("an output of block '{}': {error}", job.id),
        }));
    }
    for violation in &violations {
        let line =
            serde_json::json!({ "rev": violation.rev, "key": violation.key, "why": violation.why });
        print(json, &line, violation)?;
    }
    let (jobs, records) = (jobs.len(), history.records.len());
    let summary =
        serde_json::json!({ "records": records, "jobs": jobs, "violations": violations.len() });
    let text = format!("{records} writes, {jobs} jobs, {} broken promises", violations.len());
    print(json, &summary, text)?;
    Ok(if violations.is_empty() { 0 } else { exit::REFUSED })
}
