//! The program: starts processes, and sends them requests.

mod arguments;
mod insist;
mod output;
mod progress;
mod serve;
mod submit;

use arguments::{
    Arguments, ChainCommand, Check, Command, Exec, Fetch, Serve, Status, Work, WorkflowCommand,
};
use clap::Parser;
use hekaton_orchestrator::backend::Helper;
use hekaton_orchestrator::history::{Liveness, Violation};
use hekaton_orchestrator::http::{
    BundlesBody, ChainBody, JobStatus, JobView, JobsBody, ProofBody, ReorgBody, StandstillBody,
};
use hekaton_orchestrator::record::{JobState, Order};
use hekaton_orchestrator::service::{BLOBS, RECORDS, open_records};
use hekaton_orchestrator::{Blobs, Client, Clock, Digest, Workflow};
use hekaton_service::program::{Failure, exit, failure, finish, has_colors, print, say};
use output::{client, missing, show, text_of};
use serve::serve;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use submit::{fetch, submit};

fn main() -> ExitCode {
    let Arguments { json, command } = Arguments::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(has_colors())
        .with_writer(std::io::stderr)
        .init();
    finish(run(command, json))
}

fn run(command: Command, json: bool) -> Result<u8, Failure> {
    match command {
        Command::Serve(Serve { place, listen }) => serve(place, Some(&listen), true, json),
        Command::Work(Work { place, collect }) => serve(place, None, collect, json),
        Command::Submit(arguments) => submit(&arguments, json),
        Command::Status(Status { to, job: Some(job) }) => {
            show(json, &client(&to)?.job(&job, 0)?)?;
            Ok(0)
        }
        Command::Status(Status { to, job: None }) => {
            let JobsBody { mut jobs, standing_still } = client(&to)?.jobs()?;
            jobs.sort_by(|one, other| {
                (&one.job.chain, one.job.block).cmp(&(&other.job.chain, other.job.block))
            });
            for view in &jobs {
                let JobView { job: JobStatus { chain, block, id, state, .. }, tasks, .. } = view;
                let counts = tasks.iter().map(|(state, count)| format!("{count} {state}"));
                let counts = counts.collect::<Vec<_>>().join(", ");
                let waits = match &view.job.missing[..] {
                    [] => String::new(),
                    backends => format!(": {}", missing(backends)),
                };
                let text = format!("{chain} {block} {id}: {state} (tasks: {counts}){waits}");
                print(json, view, text)?;
            }
            for one in &standing_still {
                let StandstillBody { chain, block, id, cause, seconds, .. } = one;
                let text = format!("stands still: {chain} {block} {id} {cause} (for {seconds} s)");
                print(json, one, text)?;
            }
            Ok(0)
        }
        Command::Cancel(of) => {
            show(json, &client(&of.to)?.cancel(&of.job)?)?;
            Ok(0)
        }
        Command::Requeue(of) => {
            show(json, &client(&of.to)?.requeue(&of.job)?)?;
            Ok(0)
        }
        Command::Skip(of) => {
            client(&of.to)?.skip(&of.job)?;
            Ok(0)
        }
        Command::Fetch(Fetch { of, output }) => {
            let client = client(&of.to)?;
            let status = client.job(&of.job, 0)?;
            if status.state != "done" {
                show(json, &status)?;
            }
            fetch(&client, &status, &output)?;
            Ok(if status.state == "done" { 0 } else { exit::REFUSED })
        }
        Command::Chain(arguments) => {
            let client = client(&arguments.to)?;
            let order = match (&arguments.genesis, arguments.unordered) {
                (Some(_), _) => Some(Order::Strict),
                (None, true) => Some(Order::None),
                (None, false) => None,
            };
            let state = match order {
                Some(order) => {
                    let bundles = bundles(&client, &arguments)?;
                    let body = ChainBody { order, genesis: arguments.genesis.clone(), bundles };
                    client.make_chain(&arguments.chain, &body)?
                }
                None => client.chain(&arguments.chain)?,
            };
            let tail = state.tail.as_deref().unwrap_or("-");
            let height = state.height.map_or("-".into(), |height| height.to_string());
            print(
                json,
                &state,
                format_args!("chain {}: last published block {height}, {tail}", state.chain),
            )?;
            Ok(0)
        }
        Command::Proofs(arguments) => {
            let client = client(&arguments.to)?;
            let mut from = arguments.from;
            loop {
                let page = client.proofs(&arguments.chain, from)?;
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
        Command::TokenDigest => {
            let token = std::io::read_to_string(std::io::stdin());
            let token = token
                .map_err(|error| failure(exit::BAD_FILE, format!("standard input: {error}")))?;
            if token.trim().len() < 16 {
                return Err(failure(
                    exit::USAGE,
                    "a token has at least 16 characters, better 32 random ones",
                ));
            }
            say(Digest::of(token.trim().as_bytes()))?;
            Ok(0)
        }
        Command::Exec(Exec { parent, memory, program }) => {
            let error = Helper::become_program(parent, memory, &program);
            let program = program.first().map(|name| name.display().to_string());
            Err(failure(127, format!("{}: {error}", program.unwrap_or_default())))
        }
    }
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
    let input = match workflow.inputs.len() {
        1 => workflow.inputs.keys().next().map(ToString::to_string).unwrap_or_default(),
        count => {
            let why = format!("{}: it has {count} inputs, and bundles need one", file.display());
            return Err(failure(exit::USAGE, why));
        }
    };
    let workflow = client.workflow(&text)?.workflow;
    let (of, blocks, lane) = (of.clone(), arguments.blocks, arguments.lane);
    Ok(Some(BundlesBody { of, blocks, workflow, input, lane }))
}

fn check(data: &Path, patience: u64, json: bool) -> Result<u8, Failure> {
    if !data.join(RECORDS).is_file() {
        let why = format!("{}: there is no {RECORDS} in it", data.display());
        return Err(failure(exit::BAD_FILE, why));
    }
    let store = open_records(data).map_err(|error| failure(exit::BAD_FILE, error))?;
    let blobs = Blobs::open(&data.join(BLOBS)).map_err(|error| failure(exit::BAD_FILE, error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| failure(exit::FAILED, error))?;
    let history = runtime.block_on(store.history());
    let mut history = history.map_err(|error| failure(exit::BAD_FILE, error))?;
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
