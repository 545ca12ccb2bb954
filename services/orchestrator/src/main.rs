//! The program: starts processes, and asks them.

use clap::{Args, Parser, Subcommand};
use hekaton_orchestrator::backend::Helper;
use hekaton_orchestrator::history::Violation;
use hekaton_orchestrator::http::{ChainBody, JobBody, JobStatus, ProofBody, RevertBody};
use hekaton_orchestrator::record::{JobState, Order};
use hekaton_orchestrator::service::{
    self, BLOBS, Options, RECORDS, ServiceError, Stop, open_records,
};
use hekaton_orchestrator::settings::{BackendSettings, Settings};
use hekaton_orchestrator::{Blobs, Client, ClientError, Digest, Strategies};
#[cfg(feature = "nats")]
use hekaton_orchestrator::{Name, store::NatsSettings};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The exit codes, as those of `hekaton`.
mod exit {
    pub(super) const REFUSED: u8 = 1;
    pub(super) const USAGE: u8 = 2;
    pub(super) const BAD_FILE: u8 = 3;
    pub(super) const FAILED: u8 = 4;
}

const EXIT_CODES: &str = "Exit codes:
  0  done
  1  the job is dead, skipped or cancelled; check: a promise is broken
  2  the command line or the settings are wrong
  3  a file or folder cannot be used
  4  the service refuses the request or does not answer";

/// Orchestrates provers: a stream of proving tasks that survives failures and is published in order
#[derive(Parser)]
#[command(name = "hekaton-orchestrator", version, after_help = EXIT_CODES)]
struct Arguments {
    /// Print results as JSON, one object per line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a process that takes jobs, runs them and publishes
    Serve(Serve),
    /// Start a process that only runs tasks, on the folder of another one
    Work(Work),
    /// Submit files, each as a job of its own, or one job with several inputs
    Submit(Submit),
    /// Print what is known of a job
    Status(OfJob),
    /// Cancel a job
    Cancel(OfJob),
    /// Have a dead or cancelled job live again; what is done stays done
    Requeue(OfJob),
    /// Have a chain go on without its dead next block
    Skip(OfJob),
    /// Store the proof of a job that is done in a file
    Fetch(Fetch),
    /// Make a chain, or print what is known of one
    Chain(ChainCommand),
    /// Print what a chain has published
    Proofs(Proofs),
    /// Tear a chain off after a block: a re-org
    Revert(Revert),
    /// Check a workflow file and store it; prints the digest that jobs name it by
    Workflow(WorkflowCommand),
    /// Have a process claim no more tasks; it ends when the ones that it runs have ended
    Drain(ToService),
    /// Check the whole history of a folder against what the orchestrator promises
    Check(Check),
    /// Print the digest of a token, for the settings; reads the token from standard input
    TokenDigest,
    /// Start a program that is killed with the process that starts it (used by the orchestrator itself)
    #[command(hide = true)]
    Exec(Exec),
}

#[derive(Args)]
struct Place {
    /// The folder of records, blobs and run directories; made if it does not exist
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The settings (docs/guide/orchestrator.md)
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Keep records in NATS JetStream instead of the folder, such as nats://HOST:4222; the folder must then be shared by all machines
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "ADDRESS", env = "HEKATON_NATS", hide_env_values = true)]
    nats: Option<String>,
    /// Tells orchestrators of one NATS server apart
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "NAME", default_value = "hekaton", requires = "nats")]
    namespace: String,
    /// On how many NATS servers records are kept; with 1, the server needs `sync_interval: always`
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "N", default_value_t = 1, requires = "nats")]
    replicas: usize,
    /// The user's JWT and NKEY seed for NATS, as nsc writes them
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "FILE", requires = "nats")]
    nats_credentials: Option<PathBuf>,
    /// Add a back-end `prove` that runs `hekaton prove` with these keys
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// The program of that back-end
    #[arg(long, value_name = "FILE", default_value = "hekaton")]
    hekaton: PathBuf,
    /// How many tasks run at the same time [default: 1, or what the settings say]
    #[arg(long)]
    slots: Option<usize>,
    /// How long running tasks may take when the process is asked to stop, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u64,
}

#[derive(Args)]
#[command(after_help = "Examples:
  hekaton-orchestrator serve --data jobs --keys FILE.keys
  hekaton-orchestrator serve --data jobs --settings orchestrator.toml --listen 127.0.0.1:8642

The first SIGINT or SIGTERM lets running tasks end for --grace seconds; a second one ends them at
once. Either way, the next process on the folder goes on where this one was.")]
struct Serve {
    #[command(flatten)]
    place: Place,
    /// Where to answer requests. Without tenants in the settings, only on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8642")]
    listen: String,
}

#[derive(Args)]
struct Work {
    #[command(flatten)]
    place: Place,
    /// Also make tasks and publish, so that the process that serves may die
    #[arg(long)]
    collect: bool,
}

#[derive(Args)]
struct ToService {
    /// The service
    #[arg(long, value_name = "ADDRESS", default_value = "http://127.0.0.1:8642")]
    service: String,
    /// A file with the token of a tenant
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "Examples:
  hekaton-orchestrator submit FILE --wait --output FILE.proof
  hekaton-orchestrator submit block-*.bin --chain main --wait   # in order, each after the one before
  hekaton-orchestrator submit --workflow zkevm.toml -i chunks=a.bin -i chunks=b.bin --chain main")]
struct Submit {
    #[command(flatten)]
    to: ToService,
    /// Files; each is a job for --backend
    files: Vec<PathBuf>,
    /// The chain. One that does not exist is made: with strict order from 'genesis' on, or without order, if it is 'files'
    #[arg(long, default_value = "files")]
    chain: String,
    /// The back-end
    #[arg(long, default_value = "prove")]
    backend: String,
    /// A workflow file instead of a back-end
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    workflow: Option<PathBuf>,
    /// An input of the workflow; may be repeated
    #[arg(short, long, value_name = "NAME=FILE", requires = "workflow")]
    input: Vec<String>,
    /// The height of the first block [default: after the last one that was accepted]
    #[arg(long)]
    block: Option<u64>,
    /// The name of the block [default: a digest of its content]
    #[arg(long)]
    id: Option<String>,
    /// The block before the first one [default: the last one that was accepted]
    #[arg(long)]
    parent: Option<String>,
    /// Urgency, 0 is the most urgent
    #[arg(long, default_value_t = 1)]
    lane: u8,
    /// Wait until all are done
    #[arg(long)]
    wait: bool,
    /// Store the proof in this file; of several jobs, in this folder
    #[arg(long, value_name = "PATH", requires = "wait")]
    output: Option<PathBuf>,
}

#[derive(Args)]
struct OfJob {
    #[command(flatten)]
    to: ToService,
    /// What `submit` printed
    job: String,
}

#[derive(Args)]
struct Fetch {
    #[command(flatten)]
    of: OfJob,
    /// The file; with several outputs, their numbers are appended
    output: PathBuf,
}

#[derive(Args)]
struct ChainCommand {
    #[command(flatten)]
    to: ToService,
    /// The chain
    chain: String,
    /// Make it, with strict order: the parent of its first block
    #[arg(long, value_name = "ID", conflicts_with = "unordered")]
    genesis: Option<String>,
    /// Make it, without order
    #[arg(long)]
    unordered: bool,
}

#[derive(Args)]
struct Proofs {
    #[command(flatten)]
    to: ToService,
    /// The chain
    chain: String,
    /// Only what is after this revision
    #[arg(long, value_name = "REV", default_value_t = 0)]
    from: u64,
}

#[derive(Args)]
struct Revert {
    #[command(flatten)]
    to: ToService,
    /// The chain
    chain: String,
    /// The last block that stays; the genesis for all
    last: String,
    /// Its height
    block: u64,
}

#[derive(Args)]
struct WorkflowCommand {
    #[command(flatten)]
    to: ToService,
    /// The workflow
    file: PathBuf,
}

#[derive(Args)]
struct Check {
    /// The folder
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

#[derive(Args)]
struct Exec {
    parent: u32,
    #[arg(last = true)]
    program: Vec<OsString>,
}

/// Why the program ends.
struct Failure {
    code: u8,
    message: String,
}

fn failure(code: u8, message: impl std::fmt::Display) -> Failure {
    Failure { code, message: message.to_string() }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match error {
            ClientError::File { .. } => exit::BAD_FILE,
            _ => exit::FAILED,
        };
        failure(code, error)
    }
}

fn main() -> ExitCode {
    let Arguments { json, command } = Arguments::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(command, json) {
        Ok(code) => code.into(),
        Err(Failure { code, message }) => {
            let _ = writeln!(std::io::stderr(), "error: {message}");
            code.into()
        }
    }
}

fn say(text: impl std::fmt::Display) -> Result<(), Failure> {
    // A reader that has seen enough is no failure.
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(failure(exit::FAILED, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value as JSON, or as text.
fn print(json: bool, value: &impl Serialize, text: impl std::fmt::Display) -> Result<(), Failure> {
    match json {
        true => say(serde_json::to_string(value).unwrap_or_default()),
        false => say(text),
    }
}

fn run(command: Command, json: bool) -> Result<u8, Failure> {
    match command {
        Command::Serve(Serve { place, listen }) => serve(place, Some(&listen), true, json),
        Command::Work(Work { place, collect }) => serve(place, None, collect, json),
        Command::Submit(arguments) => submit(&arguments, json),
        Command::Status(of) => {
            let status = client(&of.to)?.job(&of.job, 0)?;
            show(json, &status)?;
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
                    let body = ChainBody { order, genesis: arguments.genesis.clone() };
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
            let body = RevertBody { to: arguments.last, block: arguments.block };
            let state = client(&arguments.to)?.revert(&arguments.chain, &body)?;
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
        Command::Check(Check { data }) => check(&data, json),
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
        Command::Exec(Exec { parent, program }) => {
            let error = Helper::become_program(parent, &program);
            let program = program.first().map(|name| name.display().to_string());
            Err(failure(127, format!("{}: {error}", program.unwrap_or_default())))
        }
    }
}

fn text_of(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| failure(exit::BAD_FILE, format!("{}: {error}", path.display())))
}

fn client(to: &ToService) -> Result<Client, Failure> {
    let token = to.token.as_deref().map(text_of).transpose()?;
    Ok(Client::new(&to.service, token.map(|token| token.trim().to_owned())))
}

/// Where records are kept.
#[cfg(feature = "nats")]
fn records(place: &Place) -> Result<service::Place, Failure> {
    let Some(address) = &place.nats else { return Ok(service::Place::Folder) };
    let namespace: Name = place.namespace.parse().map_err(|error| failure(exit::USAGE, error))?;
    Ok(service::Place::Nats(NatsSettings {
        address: address.clone(),
        namespace: namespace.to_string(),
        replicas: place.replicas,
        credentials: place.nats_credentials.clone(),
        versions: 1,
    }))
}

#[cfg(not(feature = "nats"))]
fn records(_: &Place) -> Result<service::Place, Failure> {
    Ok(service::Place::Folder)
}

/// Runs a process until it is asked to stop.
fn serve(place: Place, listen: Option<&str>, collects: bool, json: bool) -> Result<u8, Failure> {
    let settings = place.settings.as_deref().map(Settings::read).transpose();
    let mut settings = settings.map_err(|error| failure(exit::USAGE, error))?.unwrap_or_default();
    if let Some(keys) = place.keys.clone() {
        let hekaton = match place.hekaton.components().count() {
            // Looked for in PATH.
            1 => place.hekaton.clone(),
            _ => std::path::absolute(&place.hekaton).unwrap_or_else(|_| place.hekaton.clone()),
        };
        let backend = BackendSettings::Hekaton { keys, program: hekaton, options: vec![] };
        settings.backends.insert("prove".parse().expect("a name"), backend);
    }
    settings.slots = place.slots.unwrap_or(settings.slots);
    settings.check().map_err(|error| failure(exit::USAGE, error))?;
    if settings.backends.is_empty() && settings.slots > 0 {
        let why = "there is no back-end: name keys with --keys, back-ends with --settings, or run nothing with --slots 0";
        return Err(failure(exit::USAGE, why));
    }
    let listener = match listen {
        Some(address) => {
            let listener = TcpListener::bind(address)
                .map_err(|error| failure(exit::USAGE, format!("--listen {address}: {error}")))?;
            let bound = listener.local_addr().map_err(|error| failure(exit::FAILED, error))?;
            if settings.tenants.is_empty() && !bound.ip().is_loopback() {
                let why = "everybody who can reach it could use it: name tenants in the settings, or listen on 127.0.0.1";
                return Err(failure(exit::USAGE, format!("--listen {address}: {why}")));
            }
            let address = format!("http://{bound}");
            let started = serde_json::json!({ "address": address, "pid": std::process::id() });
            print(json, &started, format_args!("serving at {address}"))?;
            Some(listener)
        }
        None => {
            let started = serde_json::json!({ "pid": std::process::id() });
            print(json, &started, "working")?;
            None
        }
    };
    let stop = Stop::default();
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
    ])
    .map_err(|error| failure(exit::FAILED, error))?;
    let asked = stop.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            let how = match asked.is_asked() {
                true => "stopping at once",
                false => "stopping: tasks that run may end; a second signal stops at once",
            };
            let _ = writeln!(std::io::stderr(), "{how}");
            asked.ask();
        }
    });
    let program = std::env::current_exe().map_err(|error| failure(exit::FAILED, error))?;
    let options = Options {
        place: records(&place)?,
        data: place.data,
        settings,
        listener,
        collects,
        grace: Duration::from_secs(place.grace),
        helper: Helper::new(program),
        backends: BTreeMap::new(),
        strategies: Strategies::default(),
    };
    service::run(options, &stop).map_err(|error| match error {
        ServiceError::Store(_) => failure(exit::FAILED, error),
        error => failure(exit::BAD_FILE, error),
    })?;
    Ok(0)
}

fn show(json: bool, status: &JobStatus) -> Result<(), Failure> {
    let JobStatus { job, block, state, reason, .. } = status;
    match reason {
        Some(reason) => print(json, status, format_args!("{job} block {block}: {state}: {reason}")),
        None => print(json, status, format_args!("{job} block {block}: {state}")),
    }
}

/// Stores the outputs of a job.
fn fetch(client: &Client, status: &JobStatus, output: &Path) -> Result<(), Failure> {
    for (at, digest) in status.outputs.iter().enumerate() {
        let digest: Digest = digest.parse().map_err(|error| failure(exit::FAILED, error))?;
        let path = match status.outputs.len() {
            1 => output.to_owned(),
            _ => {
                let mut path = output.as_os_str().to_owned();
                path.push(format!(".{at}"));
                path.into()
            }
        };
        client.get_blob(&digest, &path)?;
    }
    Ok(())
}

/// Sends again what may be sent again, for a minute.
fn insist<T>(ask: impl Fn() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let mut pause = Duration::from_millis(200);
    loop {
        match ask() {
            Err(error) if error.may_be_repeated() && pause < Duration::from_secs(30) => {
                std::thread::sleep(pause);
                pause *= 2;
            }
            other => return other,
        }
    }
}

fn submit(arguments: &Submit, json: bool) -> Result<u8, Failure> {
    let client = client(&arguments.to)?;
    let mut bodies: Vec<(String, JobBody)> = Vec::new();
    let body =
        || JobBody { chain: arguments.chain.clone(), lane: arguments.lane, ..JobBody::default() };
    match &arguments.workflow {
        Some(file) => {
            let workflow = client.workflow(&text_of(file)?)?.workflow;
            let mut inputs: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for input in &arguments.input {
                let Some((name, path)) = input.split_once('=') else {
                    return Err(failure(
                        exit::USAGE,
                        format!("--input {input}: it must be NAME=FILE"),
                    ));
                };
                let blob = insist(|| client.put_file(Path::new(path)))?.to_string();
                inputs.entry(name.into()).or_default().push(blob);
            }
            bodies.push((
                file.display().to_string(),
                JobBody { workflow: Some(workflow), inputs, ..body() },
            ));
        }
        None => {
            for file in &arguments.files {
                let blob = insist(|| client.put_file(file))?.to_string();
                let inputs = BTreeMap::from([("input".into(), vec![blob])]);
                let backend = Some(arguments.backend.clone());
                bodies.push((file.display().to_string(), JobBody { backend, inputs, ..body() }));
            }
        }
    }
    if bodies.is_empty() {
        return Err(failure(exit::USAGE, "name files, or a --workflow"));
    }
    if arguments.output.is_some() {
        let mut names = BTreeSet::new();
        let same = bodies.iter().find(|(name, _)| !names.insert(Path::new(name).file_name()));
        if let Some((name, _)) = same {
            let why =
                format!("two files are called as {name} is, so --output cannot hold both proofs");
            return Err(failure(exit::USAGE, why));
        }
    }
    if bodies.len() > 1 && arguments.id.is_some() {
        return Err(failure(exit::USAGE, "--id is for one job"));
    }
    let chain = match client.chain(&arguments.chain) {
        Err(ClientError::Problem { problem, .. }) if problem.status == 404 => {
            let (order, genesis) = match arguments.chain.as_str() {
                "files" => (Order::None, None),
                _ => (Order::Strict, Some("genesis".to_owned())),
            };
            insist(|| {
                client.make_chain(&arguments.chain, &ChainBody { order, genesis: genesis.clone() })
            })?
        }
        found => found?,
    };
    let mut block = arguments.block.unwrap_or(chain.tip_height.map_or(0, |height| height + 1));
    let mut parent = match chain.order {
        Order::Strict => arguments.parent.clone().or(chain.tip),
        Order::None => None,
    };
    let mut accepted = Vec::new();
    for (name, body) in bodies {
        let id = match chain.order {
            // A file that comes twice is two blocks.
            Order::Strict => Some(arguments.id.clone().unwrap_or_else(|| {
                let content = format!("{:?} {:?} {block}", body.inputs, parent);
                Digest::of(content.as_bytes()).to_string()
            })),
            Order::None => arguments.id.clone(),
        };
        let job = JobBody { block, id, parent: parent.clone(), ..body };
        let status = insist(|| client.submit(&job))?;
        if !arguments.wait {
            print(json, &status, &status.job)?;
        }
        (parent, block) = (parent.map(|_| status.id.clone()), block + 1);
        accepted.push((name, status));
    }
    if !arguments.wait {
        return Ok(0);
    }
    let mut code = 0;
    let several = accepted.len() > 1;
    if let Some(folder) = arguments.output.as_deref().filter(|_| several) {
        std::fs::create_dir_all(folder)
            .map_err(|error| failure(exit::BAD_FILE, format!("{}: {error}", folder.display())))?;
    }
    for (name, status) in accepted {
        let ended = loop {
            let now = insist(|| client.job(&status.job, 30))?;
            if now.state != "live" {
                break now;
            }
        };
        show(json, &ended)?;
        if ended.state != "done" {
            code = exit::REFUSED;
        } else if let Some(output) = &arguments.output {
            let file =
                Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let path = if several { output.join(file + ".proof") } else { output.clone() };
            fetch(&client, &ended, &path)?;
        }
    }
    Ok(code)
}

fn check(data: &Path, json: bool) -> Result<u8, Failure> {
    if !data.join(RECORDS).is_file() {
        let why = format!("{}: there is no {RECORDS} in it", data.display());
        return Err(failure(exit::BAD_FILE, why));
    }
    let store = open_records(data).map_err(|error| failure(exit::BAD_FILE, error))?;
    let blobs = Blobs::open(&data.join(BLOBS)).map_err(|error| failure(exit::BAD_FILE, error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| failure(exit::FAILED, error))?;
    let history = runtime.block_on(store.history());
    let history = history.map_err(|error| failure(exit::BAD_FILE, error))?;
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
