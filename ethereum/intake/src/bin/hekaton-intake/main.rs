//! Accepts execution witnesses over HTTP, checks them, and submits them for proving.

mod files;
mod output;
mod records;

use clap::{Args, CommandFactory, Parser, Subcommand};
use files::{Check, Push, check, push, read};
use hekaton_intake::Jobs;
use hekaton_intake::canonical::Options;
use hekaton_intake::codec::json::witness_to_json;
use hekaton_intake::node::{Codec, MAX_WITNESS, Node, NodeError};
use hekaton_intake::record::{Origin, Source};
use hekaton_intake::service::{Service, serve};
use hekaton_intake::stand_in::{Block, ForkName, StandIn};
use hekaton_intake::store::{StoreError, WitnessStore};
use hekaton_intake::submitter::JobSubmitter;
use hekaton_orchestrator_client::Client;
use hekaton_service::manual::Manual;
use hekaton_service::program::{
    self, Failure, exit, failure, finish, has_colors, note, on_stop, print,
};
use output::{bad_file, runtime, secret, show};
use records::{List, OfBlock, block_hash};
use serde::Serialize;
use std::collections::HashMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const EXIT_CODES: &str = "Exit codes:
  0  done
  1  a witness or its block is wrong, the node has not executed it, or there is no record of it
  2  the command line is wrong
  3  a file or folder cannot be used
  4  the node or the service does not answer, or the address of --listen cannot be used";

/// Accepts execution witnesses of Ethereum blocks over HTTP, checks them, and submits them for proving
#[derive(Parser)]
#[command(name = "hekaton-intake", version, after_help = EXIT_CODES)]
struct Arguments {
    /// Print results as JSON, one object per line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Accept witnesses that clients send, that it fetches from a node, or that pass through as a proxy
    Serve(Serve),
    /// Fetch the witnesses of blocks from a node; each block is a file with the parameters of `engine_newPayload`
    Fetch(Fetch),
    /// Check files that contain the body of `POST /v1/witness`, or a witness alone
    Check(Check),
    /// Send such files to a running service
    Push(Push),
    /// List the records of a running service, the highest blocks first
    List(List),
    /// Print the record of a block
    Get(OfBlock),
    /// Treat a block as if it had arrived again: its branch is followed, and its job is created if it is missing, dead or cancelled. If
    /// the block is on another branch, this can revert up to 1,024 published blocks
    Resubmit(OfBlock),
    /// Write a synthetic block with its witness to a file, as the body of `POST /v1/witness`
    StandIn(Make),
    /// Start a node that answers every request with a synthetic block
    StandInNode(MakeNode),
    #[command(flatten)]
    Manual(Manual),
}

#[derive(Args)]
struct Storage {
    /// The folder of witnesses and records; created if it does not exist
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Convert witnesses in SSZ to canonical form, as for those in JSON: sort the items, and leave out those that are empty, repeated,
    /// or created by the block itself. Without this option, witnesses that are not in canonical form are refused
    #[arg(long)]
    lenient: bool,
    /// Submit a job for each witness to the orchestrator at this address
    #[arg(long, value_name = "ADDRESS")]
    orchestrator: Option<String>,
    /// A file with the orchestrator's token
    #[arg(long, value_name = "FILE", requires = "orchestrator")]
    token: Option<PathBuf>,
    /// The chain of the jobs, which follows the branch of the last payload. If it does not exist, it is created with strict order
    #[arg(long, default_value = "blocks")]
    chain: String,
    /// The hash of the block before the first one of a new chain [default: the parent of the lowest block that has arrived]
    #[arg(long, value_name = "HASH", requires = "orchestrator", value_parser = block_hash)]
    genesis: Option<String>,
    /// The orchestrator's back-end that proves the witnesses
    #[arg(long, default_value = "witness")]
    backend: String,
}

#[derive(Args)]
struct NodeArguments {
    /// The codec for requests to the node [default: the best one that the node supports]
    #[arg(long, value_enum)]
    codec: Option<Codec>,
    /// A file with the secret shared with the node: 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    node_secret: Option<PathBuf>,
    /// For --codec json: the address of `debug_executionWitness`, if it differs from that of the Engine API. No token is sent there
    #[arg(long, value_name = "ADDRESS")]
    node_debug: Option<String>,
    /// Use HTTP/2 without TLS (h2c) for requests to the node
    #[arg(long)]
    http2: bool,
    /// The largest body, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = MAX_WITNESS)]
    limit: u64,
}

#[derive(Args)]
#[command(after_help = "Examples:
  hekaton-intake serve --data witnesses --orchestrator http://127.0.0.1:8642
  hekaton-intake serve --data witnesses --node http://127.0.0.1:8551 --proxy --listen 127.0.0.1:8561

With --proxy, the consensus client is given this service's address in place of the node's. Bytes pass unchanged, and the node
checks the tokens.")]
struct Serve {
    #[command(flatten)]
    place: Storage,
    #[command(flatten)]
    node_arguments: NodeArguments,
    /// The address to listen on. Without --secret, it must be on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8561")]
    listen: String,
    /// A file with the secret that senders share with this service: 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    secret: Option<PathBuf>,
    /// The node that `POST /v1/fetch` requests witnesses from
    #[arg(long, value_name = "ADDRESS")]
    node: Option<String>,
    /// Remove blocks and their witnesses that are older than this [default: keep all]. With --orchestrator, blocks that are not
    /// published are kept
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36_500))]
    keep_days: Option<u64>,
    /// Pass all other requests on to the node, and keep a copy of the witnesses in its answers
    #[arg(long, requires = "node")]
    proxy: bool,
}

#[derive(Args)]
struct Fetch {
    #[command(flatten)]
    place: Storage,
    #[command(flatten)]
    node_arguments: NodeArguments,
    /// The address of the node
    #[arg(long, value_name = "ADDRESS", default_value = "http://127.0.0.1:8551")]
    node: String,
    /// Files with the parameters of `engine_newPayload`, as JSON
    #[arg(required = true)]
    blocks: Vec<PathBuf>,
}

#[derive(Args)]
struct Make {
    /// The height of the block
    #[arg(long, default_value_t = 2)]
    number: u64,
    /// The seed of the random generator
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The approximate size of the witness, in bytes
    #[arg(long, default_value_t = 100_000)]
    bytes: usize,
    /// The fork of the block
    #[arg(long, value_enum, default_value_t = ForkName::Amsterdam)]
    fork: ForkName,
    /// The file to write
    output: PathBuf,
    /// Also write the parameters of `engine_newPayload` to this file
    #[arg(long, value_name = "FILE")]
    parameters: Option<PathBuf>,
    /// Also write the witness to this file, in the JSON form of `debug_executionWitness`
    #[arg(long, value_name = "FILE")]
    witness: Option<PathBuf>,
}

#[derive(Args)]
struct MakeNode {
    /// The approximate size of the witness, in bytes
    #[arg(long, default_value_t = 100_000)]
    bytes: usize,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8551")]
    listen: String,
}

/// The largest file with a token, in bytes.
const MAX_TOKEN: u64 = 4_096;

fn main() -> ExitCode {
    // If RUST_LOG is missing or malformed, the default must not hide warnings.
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| "warn,hekaton_intake=info".into());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(has_colors());
    log.with_writer(std::io::stderr).init();
    let Arguments { json, command } = Arguments::parse();
    let done = match command {
        Command::Serve(arguments) => run_service(arguments, json),
        Command::Fetch(arguments) => fetch(arguments, json),
        Command::Check(arguments) => check(&arguments, json),
        Command::Push(arguments) => push(&arguments, json),
        Command::List(arguments) => records::list(&arguments, json),
        Command::Get(arguments) => records::get(&arguments, json),
        Command::Resubmit(arguments) => records::resubmit(&arguments, json),
        Command::StandIn(arguments) => make(&arguments, json),
        Command::StandInNode(arguments) => make_node(&arguments, json),
        Command::Manual(manual) => {
            manual.run(Arguments::command()).and_then(|text| print(json, &text, &text))
        }
    };
    finish(done.map(|()| 0))
}

/// Reads the token of a tenant.
fn token(path: &Path) -> Result<String, Failure> {
    let bad = |_| failure(exit::BAD_FILE, format!("{}: it is not text", path.display()));
    let text = String::from_utf8(read(path, MAX_TOKEN)?).map_err(bad)?;
    Ok(text.trim().to_owned())
}

fn submitter(place: &Storage) -> Result<JobSubmitter, Failure> {
    let options = Options { lenient: place.lenient };
    let token = place.token.as_deref().map(token).transpose()?;
    let jobs = place.orchestrator.as_ref().map(|address| Jobs {
        client: Client::new(address, token),
        chain: place.chain.clone(),
        genesis: place.genesis.clone(),
        backend: place.backend.clone(),
    });
    let store =
        WitnessStore::open(&place.data, options).map_err(|error| failure(exit::BAD_FILE, error))?;
    Ok(JobSubmitter::new(Arc::new(store), jobs))
}

fn node(address: &str, arguments: &NodeArguments) -> Result<Node, Failure> {
    let secret = secret(arguments.node_secret.as_ref())?;
    let node = Node::new(address, secret, arguments.http2, arguments.limit);
    Ok(match &arguments.node_debug {
        // Requests to that address need no token.
        Some(debug) => node.with_debug(Node::new(debug, None, false, arguments.limit)),
        None => node,
    })
}

/// Listens at an address, which must be on this machine unless `open` is true.
fn listen(address: &str, open: bool) -> Result<(TcpListener, String), Failure> {
    let bad = |why: String| failure(exit::USAGE, format!("--listen {address}: {why}"));
    let listener = program::listen(address)?;
    let bound = listener.local_addr().map_err(|error| bad(error.to_string()))?;
    if !open && !bound.ip().is_loopback() {
        return Err(bad(
            "other machines could send witnesses: pass --secret, or listen on 127.0.0.1".into(),
        ));
    }
    listener.set_nonblocking(true).map_err(|error| bad(error.to_string()))?;
    Ok((listener, format!("http://{bound}")))
}

/// Returns a channel that turns `true` once the process is asked to stop.
fn stop() -> Result<tokio::sync::watch::Receiver<bool>, Failure> {
    let (asked, end) = tokio::sync::watch::channel(false);
    let ask = move |is_first: bool| {
        if !is_first {
            std::process::exit(exit::FAILED.into());
        }
        note("stopping; a second signal stops immediately");
        asked.send_replace(true);
    };
    on_stop(ask).map_err(|error| failure(exit::FAILED, error))?;
    Ok(end)
}

#[derive(Serialize)]
struct Started {
    address: String,
    pid: u32,
}

fn started(json: bool, address: String) -> Result<(), Failure> {
    let text = format!("serving at {address}");
    print(json, &Started { address, pid: std::process::id() }, text)
}

fn run_service(arguments: Serve, json: bool) -> Result<(), Failure> {
    let Serve { place, node_arguments, listen: address, secret: file, node: asked, .. } = arguments;
    let keep = arguments.keep_days.map(|days| Duration::from_secs(days * 86_400));
    let submitter = Arc::new(submitter(&place)?);
    let secret = secret(file.as_ref())?;
    let (listener, address) = listen(&address, secret.is_some())?;
    let (wake, woken) = std::sync::mpsc::channel();
    let submitting = Arc::clone(&submitter);
    std::thread::spawn(move || submitting.keep_submitting(&woken, keep));
    let mut service = Service::new(submitter, secret, node_arguments.limit, wake);
    service.node = asked.map(|address| node(&address, &node_arguments)).transpose()?;
    (service.codec, service.proxy) = (node_arguments.codec, arguments.proxy);
    let end = stop()?;
    runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|error| failure(exit::FAILED, error))?;
        started(json, address)?;
        // Not awaited: the identity only goes into the log, and witnesses are accepted even while
        // the node does not answer.
        if let Some(node) = service.node.clone() {
            tokio::spawn(async move { name(&node).await });
        }
        serve(Arc::new(service), listener, end).await;
        Ok(())
    })
}

/// Logs the identity of the node that supplies witnesses.
async fn name(node: &Node) {
    match node.identity().await {
        Some(identity) => tracing::info!(node = %identity, commit = identity.commit, "the node"),
        None => tracing::warn!("the node does not answer, or does not report its identity"),
    }
}

fn fetch(arguments: Fetch, json: bool) -> Result<(), Failure> {
    let submitter = submitter(&arguments.place)?;
    let node = node(&arguments.node, &arguments.node_arguments)?;
    let runtime = runtime()?;
    // The best codec of blocks of each fork, which the node is asked for once.
    let mut best = HashMap::new();
    for path in &arguments.blocks {
        let parameters = files::parameters(path)?;
        let fork = &parameters.envelope.fork;
        let codec = match arguments.node_arguments.codec.or(best.get(fork.name()).copied()) {
            Some(codec) => codec,
            None => {
                let found = runtime.block_on(node.best_codec(fork));
                best.insert(fork.name(), found);
                found
            }
        };
        let fetched = runtime.block_on(node.fetch(&parameters, codec)).map_err(|error| {
            let is_usage = matches!(error, NodeError::Fork { .. });
            failure(if is_usage { exit::USAGE } else { exit::FAILED }, error)
        })?;
        let answer = fetched.answer().map_err(|error| failure(exit::FAILED, error))?;
        let hashes = Some(&parameters.blob_hashes[..]);
        let origin = Origin { json: fetched.is_json(), ..Source::Fetch.into() };
        let answered = submitter.store().answer(origin, &parameters.envelope, hashes, &answer);
        let record = answered.map_err(|error| {
            let code = match error {
                StoreError::Blob(_) | StoreError::Record { .. } | StoreError::Full(_) => {
                    exit::BAD_FILE
                }
                _ => exit::REFUSED,
            };
            failure(code, format!("{}: {error}", path.display()))
        })?;
        show(json, &record)?;
    }
    // Once for all blocks, because each round compares all records with the chain.
    submitter.submit().map_err(|error| failure(exit::FAILED, error))?;
    Ok(())
}

fn make(arguments: &Make, json: bool) -> Result<(), Failure> {
    let block = Block::new(arguments.seed, arguments.number, arguments.bytes);
    let block = block.in_fork(arguments.fork);
    let body = block.push();
    std::fs::write(&arguments.output, &body).map_err(bad_file(&arguments.output))?;
    if let Some(path) = &arguments.parameters {
        std::fs::write(path, block.parameters.encode()).map_err(bad_file(path))?;
    }
    if let Some(path) = &arguments.witness {
        std::fs::write(path, witness_to_json(&block.witness())).map_err(bad_file(path))?;
    }
    let made = serde_json::json!({ "bytes": body.len(), "witness": block.witness.len() });
    let text =
        format!("{}: a witness of {} bytes", arguments.output.display(), block.witness.len());
    print(json, &made, text)
}

fn make_node(arguments: &MakeNode, json: bool) -> Result<(), Failure> {
    let node = StandIn::new(Block::new(1, 2, arguments.bytes));
    let (listener, address) = listen(&arguments.listen, false)?;
    let end = stop()?;
    runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|error| failure(exit::FAILED, error))?;
        started(json, address)?;
        node.serve(listener, end).await;
        Ok(())
    })
}
