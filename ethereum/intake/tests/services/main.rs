//! The chain of services as processes: intake, orchestrator, worker with a prover. Each is killed alone while blocks of several
//! branches arrive; afterwards the branch of the last payload is published in order.

#[path = "../common/forest.rs"]
mod forest;

use forest::{Random, arrivals, expected, forest, id, parent};
use hekaton_intake::record::Record;
use hekaton_intake::stand_in::Block;
use hekaton_orchestrator::Client;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A prover that counts the bytes of a witness.
const PROVER: &str = "sleep 0.0$(( $(wc -c < \"$1\") % 10 )); wc -c < \"$1\" > \"$2\"\n";

const VERIFIER: &str = "[ \"$(cat \"$2\")\" = \"$(wc -c < \"$1\")\" ]\n";

/// Returns the program of the orchestrator, which is next to that of the intake once the workspace is built, and is built otherwise.
fn orchestrator() -> PathBuf {
    if let Some(program) = std::env::var_os("ORCHESTRATOR") {
        return program.into();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_hekaton-intake"));
    let program = program.with_file_name("hekaton-orchestrator");
    if !program.exists() {
        // With the features that the intake uses, so that little has to be built.
        let package =
            ["build", "--quiet", "--package", "hekaton-orchestrator", "--no-default-features"];
        let target = program.parent().and_then(Path::parent).unwrap();
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo).args(package).arg("--target-dir").arg(target).status();
        assert!(built.unwrap().success() && program.exists(), "{}", program.display());
    }
    program
}

/// A process that may be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Intake,
    Orchestrator,
    Worker,
}

const PARTS: [Part; 3] = [Part::Intake, Part::Orchestrator, Part::Worker];

/// A process, killed when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct World {
    folder: tempfile::TempDir,
    orchestrator: PathBuf,
    genesis: String,
    /// Addresses stay the same when a process is started again.
    addresses: [String; 2],
    parts: [Option<Process>; 3],
}

/// Returns an address that is free now.
fn free() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

impl World {
    fn new(genesis: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("prover"), PROVER).unwrap();
        std::fs::write(path("verifier"), VERIFIER).unwrap();
        let call =
            |name: &str| format!("[\"sh\", {:?}, \"{{input}}\", \"{{output}}\"]", path(name));
        let settings = format!(
            "version = 1\nslots = 1\n[backends.witness]\nkind = \"command\"\ncommand = {}\nverify = {}\n",
            call("prover"),
            call("verifier")
        );
        std::fs::write(path("settings.toml"), settings).unwrap();
        let (addresses, parts) = ([free(), free()], [None, None, None]);
        let orchestrator = orchestrator();
        let mut world = Self { folder, orchestrator, genesis, addresses, parts };
        for part in [Part::Orchestrator, Part::Worker, Part::Intake] {
            world.start(part);
        }
        world
    }

    fn url(&self, part: Part) -> String {
        format!("http://{}", self.addresses[usize::from(part == Part::Orchestrator)])
    }

    /// Starts a process, and waits until it reports that it has started.
    fn start(&mut self, part: Part) {
        let orchestrator = self.url(Part::Orchestrator);
        let [intake_at, orchestrator_at] = &self.addresses;
        let intake = env!("CARGO_BIN_EXE_hekaton-intake");
        let (program, arguments): (&Path, Vec<&str>) = match part {
            Part::Intake => (
                Path::new(intake),
                vec![
                    "serve",
                    "--data",
                    "witnesses",
                    "--listen",
                    intake_at,
                    "--orchestrator",
                    &orchestrator,
                    "--genesis",
                    &self.genesis,
                ],
            ),
            Part::Orchestrator => (
                &self.orchestrator,
                vec![
                    "serve",
                    "--data",
                    "jobs",
                    "--settings",
                    "settings.toml",
                    "--slots",
                    "0",
                    "--listen",
                    orchestrator_at,
                ],
            ),
            Part::Worker => {
                (&self.orchestrator, vec!["work", "--data", "jobs", "--settings", "settings.toml"])
            }
        };
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let mut log = std::fs::File::options();
            let log = log.create(true).append(true).open(self.folder.path().join("log")).unwrap();
            let mut command = Command::new(program);
            command.arg("--json").args(&arguments).current_dir(&self.folder);
            let child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
            let mut process = Process(child);
            let mut line = String::new();
            BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
            if serde_json::from_str::<serde_json::Value>(&line).is_ok() {
                self.parts[part as usize] = Some(process);
                return;
            }
            // The port may still be in use by another process.
            assert!(Instant::now() < end, "{part:?} does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn kill(&mut self, part: Part) {
        self.parts[part as usize] = None;
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn ask(&self, method: &str, path: &str, body: &[u8]) -> Option<(u16, String)> {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let url = format!("{}{path}", self.url(Part::Intake));
        let request = ureq::http::Request::builder().method(method).uri(url);
        let request = request.header("content-type", "application/octet-stream");
        let mut answer = agent.run(request.body(body).unwrap()).ok()?;
        Some((answer.status().as_u16(), answer.body_mut().read_to_string().ok()?))
    }

    fn push(&self, block: &Block) {
        let answer = self.ask("POST", "/v1/witness", &block.push());
        let (status, text) = answer.unwrap_or_else(|| panic!("no answer: {}", self.log()));
        assert_eq!(status, 202, "{text}");
    }

    /// Returns the published blocks, without those that were taken back; `None` while the orchestrator does not answer.
    fn published(&self) -> Option<Vec<String>> {
        let client = Client::new(&self.url(Part::Orchestrator), None);
        let mut path = vec![self.genesis.clone()];
        let mut from = 0;
        loop {
            let found = client.proofs("blocks", from).ok()?;
            if found.proofs.is_empty() {
                path.remove(0);
                return Some(path);
            }
            for entry in found.proofs {
                match &entry.entry[..] {
                    "revert" => {
                        let keep = path.iter().position(|known| *known == entry.id).unwrap();
                        path.truncate(keep + 1);
                    }
                    _ => {
                        assert_eq!(path.last(), entry.parent.as_ref(), "out of order");
                        path.push(entry.id);
                    }
                }
                from = entry.rev;
            }
        }
    }
}

/// Runs one schedule: blocks arrive while a part of one kind is killed repeatedly.
fn run(number: u64, victim: Part) {
    let mut random = Random(number);
    let blocks = forest(&mut random, 4);
    let mut world = World::new(parent(&blocks[0]));
    let mut accepted = Vec::new();
    for next in arrivals(&mut random, blocks.len()) {
        match random.below(4) {
            0 => {
                world.kill(victim);
                if victim != Part::Intake {
                    world.push(&blocks[next]);
                    accepted.push(next);
                }
                std::thread::sleep(Duration::from_millis(random.below(300) as u64));
                world.start(victim);
            }
            1 => std::thread::sleep(Duration::from_millis(random.below(600) as u64)),
            _ => {}
        }
        world.push(&blocks[next]);
        accepted.push(next);
    }
    world.kill(victim);
    world.start(victim);
    let branch = expected(&blocks, &accepted);
    let end = Instant::now() + Duration::from_secs(300);
    loop {
        let published = world.published();
        let records = blocks.iter().map(|block| {
            let (status, text) = world.ask("GET", &format!("/v1/witness/{}", id(block)), &[])?;
            assert_eq!(status, 200, "{text}");
            let record: Record = serde_json::from_str(&text).unwrap();
            let is_right = record.aside != branch.contains(&record.block) && !record.pending;
            is_right.then_some(record)
        });
        if published.as_ref() == Some(&branch) && records.into_iter().all(|it| it.is_some()) {
            break;
        }
        let late = Instant::now() > end;
        assert!(!late, "{published:?}, and not {branch:?}: {}", world.log());
        std::thread::sleep(Duration::from_millis(200));
    }
    PARTS.into_iter().for_each(|part| world.kill(part));
    let check = Command::new(&world.orchestrator)
        .args(["check", "--data", "jobs"])
        .current_dir(&world.folder)
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}

/// Runs `HEKATON_PROCESS_SCHEDULES` schedules, for each part in turn.
#[test]
fn each_service_may_be_killed_while_branches_change() {
    let count = std::env::var("HEKATON_PROCESS_SCHEDULES").map_or(3, |text| text.parse().unwrap());
    for (number, victim) in (0..count).zip(PARTS.into_iter().cycle()) {
        let ran = std::panic::catch_unwind(|| run(number, victim));
        assert!(ran.is_ok(), "schedule {number}, {victim:?}");
    }
}
