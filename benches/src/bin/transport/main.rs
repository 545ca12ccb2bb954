//! Benchmarks of fetching a witness from a node: SSZ over HTTP against JSON-RPC.
//!
//! The node is a stand-in that executes nothing, so that what is measured is encoding, transport and decoding alone. Both sides run on
//! this machine. Every measurement of ours alternates with one of the rival.

use benches::{Line, Run, alternate, peak_of_process};
use clap::Parser;
use hekaton_intake::canonical::Options as Strictness;
use hekaton_intake::check::{check_block, check_witness};
use hekaton_intake::codec::json::{Parameters, decode_hex, witness_to_json};
use hekaton_intake::codec::{Answer, Status, apis773, apis793};
use hekaton_intake::node::{Codec, Node};
use hekaton_intake::service::{self, Service};
use hekaton_intake::stand_in::{Block, StandIn};
use hekaton_intake::store::WitnessStore;
use hekaton_intake::submitter::JobSubmitter;
use hekaton_witness_format::ExecutionWitness;
use hekaton_witness_format::ssz::SszError;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The rival.
const JSON: &str = "JSON-RPC";

/// Benchmarks of fetching a witness from a node: SSZ over HTTP against JSON-RPC.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// Sizes of witnesses, in MB.
    #[arg(long, value_delimiter = ',', default_value = "1,17,100")]
    megabytes: Vec<usize>,
    /// The program hekaton-intake, to measure the memory of a service.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// The largest body that servers and clients accept here.
const LIMIT: u64 = 2_000_000_000;

/// A node and a service in front of it.
struct Servers {
    runtime: Runtime,
    end: watch::Sender<bool>,
    node: String,
    proxy: String,
    folder: tempfile::TempDir,
}

impl Servers {
    fn start(block: &Block) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let end = watch::channel(false).0;
        let folder = tempfile::tempdir()?;
        let listen = || runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let (first, second) = (listen()?, listen()?);
        let node = format!("http://{}", first.local_addr()?);
        let proxy = format!("http://{}", second.local_addr()?);
        runtime.spawn(StandIn::new(block.clone()).serve(first, end.subscribe()));
        let store = Arc::new(WitnessStore::open(folder.path(), Strictness::default())?);
        let submitter = Arc::new(JobSubmitter::new(store, None));
        let mut service = Service::new(submitter, None, LIMIT, std::sync::mpsc::channel().0);
        service.node = Some(Node::new(&node, None, false, LIMIT));
        service.proxy = true;
        runtime.spawn(service::serve(Arc::new(service), second, end.subscribe()));
        Ok(Self { runtime, end, node, proxy, folder })
    }

    /// Runs a client as a service does: on a worker thread, which its connection may share.
    fn run<T: Send + 'static>(&self, client: impl Future<Output = T> + Send + 'static) -> T {
        let ended = self.runtime.block_on(self.runtime.spawn(client));
        ended.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Fetches and reads an answer, which must have the whole witness.
    fn fetch(&self, address: &str, parameters: &Parameters, codec: Codec, bytes: usize) {
        let node = Node::new(address, None, false, LIMIT);
        let of_block = parameters.clone();
        let fetched = self
            .run(async move { node.fetch(&of_block, codec).await })
            .unwrap_or_else(|error| panic!("{error}"));
        let answer = fetched.answer().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(answer.witness.map(|witness| witness.encoded_len()), Some(bytes));
    }
}

impl Servers {
    /// The rival's round trip: one call, of which all bytes are wanted.
    fn call(&self, block: &Block, decode: Decode) {
        #[derive(serde::Deserialize)]
        struct Response {
            result: Items,
        }
        let node = Node::new(&self.node, None, false, LIMIT);
        let hash = serde_json::json!([hash_of(block)]);
        let text = self
            .run(async move { node.call("debug_executionWitness", &hash).await })
            .unwrap_or_else(|error| panic!("{error}"));
        let found: Response =
            serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{error}"));
        let witness = block.witness();
        let all = [witness.state, witness.codes, witness.headers];
        assert_eq!(
            found.result.bytes(decode),
            all.iter().map(|items| items.total()).sum::<usize>()
        );
    }
}

/// The hash of a block, as JSON has it.
fn hash_of(block: &Block) -> String {
    let hash = block.parameters.envelope.payload.block_hash;
    format!("0x{}", hash.map(|byte| format!("{byte:02x}")).concat())
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.end.send_replace(true);
    }
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    for &megabytes in &options.megabytes {
        let block = Block::new(1, 2, megabytes * 1_000_000);
        let size = block.witness.len();
        let print = |bench: &str, elapsed: Duration, rival: &str, theirs: f64| {
            let ours = elapsed.as_secs_f64() * 1e3;
            let line = Line {
                bench,
                size,
                threads: 2,
                ours,
                rival,
                theirs,
                unit: "ms",
                larger_is_better: false,
            };
            line.print(options.run.json);
        };
        let pair = |bench: &str, (ours, theirs): (Duration, Duration)| {
            print(bench, ours, JSON, theirs.as_secs_f64() * 1e3);
        };
        codecs(&options, &block, &pair);
        let servers = Servers::start(&block)?;
        clients(&options, &block, &servers, &pair)?;
        let witness = ExecutionWitness::decode(&block.witness)?;
        let envelope = &block.parameters.envelope;
        let check = || {
            check_block(envelope, None)?;
            let payload = &envelope.payload;
            check_witness(&witness, payload.parent_hash, payload.block_number)
        };
        let (checked, _) =
            alternate(options.run.repetitions, || drop(std::hint::black_box(check())), || ());
        check()?;
        print(
            "full check",
            checked,
            if megabytes == 17 { "target" } else { "" },
            if megabytes == 17 { 200.0 } else { f64::NAN },
        );
        proxy(&options, &block, &servers, &print)?;
        if let Some(program) = &options.program {
            memory(&options, program, &block)?;
        }
    }
    Line {
        bench: "memory of this process, node and rival included",
        size: 0,
        threads: 2,
        ours: peak_of_process() as f64 / 1e6,
        rival: "",
        theirs: f64::NAN,
        unit: "MB",
        larger_is_better: false,
    }
    .print(options.run.json);
    Ok(())
}

/// Encoding and decoding, without a connection.
fn codecs(options: &Options, block: &Block, pair: &impl Fn(&str, (Duration, Duration))) {
    let repetitions = options.run.repetitions;
    let witness = block.witness();
    let answer = Answer {
        status: Status::Valid,
        latest_valid_hash: None,
        validation_error: None,
        witness: Some(witness),
        public_keys: &block.public_keys,
    };
    for (name, encode, decode) in [
        (
            "codec A",
            apis773::encode as fn(&Answer<'_>) -> Vec<u8>,
            apis773::decode as for<'a> fn(&'a [u8]) -> Result<Answer<'a>, SszError>,
        ),
        ("codec B", apis793::encode, apis793::decode),
    ] {
        let mut encoded = Vec::new();
        let mut text = Vec::new();
        let times = alternate(
            repetitions,
            || encoded = std::hint::black_box(encode(&answer)),
            || text = std::hint::black_box(witness_to_json(&witness)),
        );
        pair(&format!("{name}: encode"), times);
        let times = alternate(
            repetitions,
            || drop(std::hint::black_box(decode(&encoded).map(|it| it.status))),
            || {
                std::hint::black_box(from_json(&text));
            },
        );
        pair(&format!("{name}: decode"), times);
    }
}

/// Decodes `0x` and hexadecimal digits.
type Decode = fn(&str) -> Vec<u8>;

/// Decodes an item as the intake does.
fn digits(text: &str) -> Vec<u8> {
    decode_hex(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A witness in JSON.
#[derive(serde::Deserialize)]
struct Items {
    state: Vec<String>,
    codes: Vec<String>,
    headers: Vec<String>,
}

impl Items {
    /// Returns the number of bytes of all items.
    fn bytes(&self, decode: Decode) -> usize {
        let items = self.state.iter().chain(&self.codes).chain(&self.headers);
        let bytes = items.map(|item| decode(item));
        // All of them at the same time, as somebody would need them.
        bytes.collect::<Vec<_>>().iter().map(Vec::len).sum()
    }
}

/// Reads a witness in JSON.
fn from_json(text: &[u8]) -> usize {
    let items: Items = serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}"));
    items.bytes(digits)
}

/// Whole round trips by three clients.
fn clients(
    options: &Options,
    block: &Block,
    servers: &Servers,
    pair: &impl Fn(&str, (Duration, Duration)),
) -> Result<(), Error> {
    let repetitions = options.run.repetitions;
    let bytes = block.witness.len();
    for (name, codec) in [("codec A", Codec::Apis773), ("codec B", Codec::Apis793)] {
        let times = alternate(
            repetitions,
            || servers.fetch(&servers.node, &block.parameters, codec, bytes),
            || servers.call(block, digits),
        );
        pair(&format!("{name}: round trip, hyper"), times);
    }
    // The clients that the text describes decode byte by byte.
    let by_bytes = |text: &str| hex::decode(&text[2..]).expect("the stand-in sends hexadecimal");
    let times = alternate(
        repetitions,
        || servers.fetch(&servers.node, &block.parameters, Codec::Apis773, bytes),
        || servers.call(block, by_bytes),
    );
    pair("codec A: round trip, hyper, the rival decodes with the crate hex", times);
    let call = servers.folder.path().join("call.json");
    std::fs::write(&call, block.parameters.encode())?;
    let rpc = servers.folder.path().join("rpc.json");
    let call_of_rival = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "debug_executionWitness", "params": [hash_of(block)],
    });
    std::fs::write(&rpc, call_of_rival.to_string())?;
    let curl = |url: String, body: &Path| {
        let mut command = Command::new("curl");
        command.args(["-sS", "-f", "-o", "/dev/null", "-H", "Content-Type: application/json"]);
        command.arg("--data-binary").arg(format!("@{}", body.display())).arg(url);
        succeed(command);
    };
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_ok() {
        let times = alternate(
            repetitions,
            || curl(format!("{}{}", servers.node, apis773::PATH), &call),
            || curl(format!("{}/", servers.node), &rpc),
        );
        pair("codec A: round trip, curl, without decoding", times);
    }
    let python = |url: String, body: &Path, kind: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", CLIENT, &url]).arg(body).arg(kind).arg(bytes.to_string());
        succeed(command);
    };
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_ok() {
        let times = alternate(
            repetitions,
            || python(format!("{}{}", servers.node, apis773::PATH), &call, "ssz"),
            || python(format!("{}/", servers.node), &rpc, "json"),
        );
        pair("codec A: round trip, Python", times);
    }
    Ok(())
}

/// A client in Python: asks, and takes the witness apart.
const CLIENT: &str = r"
import json, struct, sys, urllib.request
url, body, kind, size = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
data = open(body, 'rb').read()
request = urllib.request.Request(url, data, {'Content-Type': 'application/json'})
answer = urllib.request.urlopen(request).read()
def items(part):
    if not part: return []
    count = struct.unpack_from('<I', part)[0] // 4
    offsets = struct.unpack_from(f'<{count}I', part) + (len(part),)
    return [part[a:b] for a, b in zip(offsets, offsets[1:])]
if kind == 'ssz':
    witness = memoryview(answer)[struct.unpack_from('<I', answer, 9)[0]:]
    ends = struct.unpack_from('<3I', witness) + (len(witness),)
    parts = [items(witness[a:b]) for a, b in zip(ends, ends[1:])]
else:
    result = json.loads(answer)['result']
    parts = [[bytes.fromhex(item[2:]) for item in result[name]] for name in ('state', 'codes', 'headers')]
found = sum(len(item) + 4 for part in parts for item in part) + 12
assert found == size, (found, size)
";

fn succeed(mut command: Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "{command:?}: {status:?}"
    );
}

/// Measures the time that a service between a node and its caller adds.
fn proxy(
    options: &Options,
    block: &Block,
    servers: &Servers,
    print: &impl Fn(&str, Duration, &str, f64),
) -> Result<(), Error> {
    let bytes = block.witness.len();
    // Storing continues in the background: it must not disturb the next measurement.
    let settle = || std::thread::sleep(Duration::from_millis(200 + bytes as u64 / 50_000));
    // The difference is small compared with the noise of both.
    let repetitions = if bytes < 20_000_000 { 25 } else { 5 };
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..options.run.repetitions.max(repetitions) {
        let (direct, ()) = benches::time(|| {
            servers.fetch(&servers.node, &block.parameters, Codec::Apis773, bytes)
        });
        let (passed, ()) = benches::time(|| {
            servers.fetch(&servers.proxy, &block.parameters, Codec::Apis773, bytes)
        });
        times[0].push(direct);
        times[1].push(passed);
        settle();
    }
    let [direct, passed] = times.map(benches::median);
    let target =
        if (16_000_000..18_000_000).contains(&bytes) { ("target", 5.0) } else { ("", f64::NAN) };
    print("added by the proxy", passed.saturating_sub(direct), target.0, target.1);
    let kept = std::fs::read_dir(servers.folder.path().join("blocks"))?.count();
    assert_eq!(kept, 1, "a copy is kept");
    Ok(())
}

/// The peak memory of a service that is sent a witness, in bodies.
fn memory(options: &Options, program: &Path, block: &Block) -> Result<(), Error> {
    let folder = tempfile::tempdir()?;
    let body = folder.path().join("body");
    std::fs::write(&body, block.push())?;
    let mut child = Command::new(program)
        .args(["--json", "serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let address: serde_json::Value = serde_json::from_str(&line)?;
    let url = format!("{}/v1/witness", address["address"].as_str().ok_or("no address")?);
    let peak = |pid: u32| -> Result<f64, Error> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
        Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? * 1024.0)
    };
    let push = |body: &Path| {
        let mut command = Command::new("curl");
        command.args(["-sS", "-f", "-o", "/dev/null"]);
        command.args(["-H", "Content-Type: application/octet-stream", "-X", "POST"]);
        command.arg("-T").arg(body).arg(&url);
        succeed(command);
    };
    // Not counted: code, threads and buffers that any witness needs.
    let small = folder.path().join("small");
    std::fs::write(&small, Block::new(2, 2, 10_000).push())?;
    push(&small);
    let before = peak(child.id())?;
    push(&body);
    let after = peak(child.id())?;
    let _ = child.kill();
    let _ = child.wait();
    let size = block.witness.len();
    let ours = (after - before) / size as f64;
    let line = Line {
        bench: "memory of a service, above that of one with a small witness",
        size,
        threads: 2,
        ours,
        rival: "target",
        theirs: 1.1,
        unit: "bodies",
        larger_is_better: false,
    };
    line.print(options.run.json);
    Ok(())
}
