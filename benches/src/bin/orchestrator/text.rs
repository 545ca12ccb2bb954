//! The experiments of push0's text other than overhead and scaling, with the program and its processes: kills, order, a join of two flows,
//! barriers, a burst, duplicates, a flood, and what a process needs. Provers are a shell that sleeps. The figures next to ours are the
//! text's own.

use crate::{Error, Options, print};
use hekaton_orchestrator::http::{ChainBody, JobBody, JobStatus};
use hekaton_orchestrator::record::Order;
use hekaton_orchestrator::{Client, ClientError};
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Notes when it starts and when it ends.
const PROVER: &str = r#"read -r seconds word <"$1"
echo "start $(date +%s.%N) $word" >>LOG
sleep "$seconds"
echo "end $(date +%s.%N) $word" >>LOG
echo "$word" >"$2"
"#;

/// Two flows that meet: one proposal, eight proofs.
const JOIN: &str = r#"
version = 1
name = "join"
[inputs.metadata]
[inputs.chunks]
[[stages]]
name = "propose"
from = ["metadata"]
backend = "propose"
[[stages]]
name = "prove"
from = ["chunks"]
backend = "prove"
[[stages]]
name = "join"
from = ["propose", "prove"]
collect = "all"
backend = "propose"
"#;

/// Groups of four that a barrier waits for.
const BARRIER: &str = r#"
version = 1
name = "barrier"
[inputs.chunks]
[[stages]]
name = "prove"
from = ["chunks"]
backend = "prove"
[[stages]]
name = "join"
from = ["prove"]
collect = "all"
backend = "prove"
"#;

/// Processes on one folder.
struct Fleet {
    program: PathBuf,
    folder: tempfile::TempDir,
    service: Option<Child>,
    workers: Vec<Option<Child>>,
    address: String,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in self.workers.iter_mut().chain([&mut self.service]).flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Fleet {
    /// A service that only collects and publishes, and workers with one slot each for each of some back-ends.
    fn start(program: &Path, workers: &[&str]) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(folder.path().join("prover"), PROVER.replace("LOG", &at("log")))?;
        for name in ["propose", "prove"] {
            let settings = format!(
                "version = 1\n[backends.{name}]\nkind = \"command\"\nunverified = true\n\
                 command = [\"sh\", {:?}, \"{{input}}\", \"{{output}}\"]\n",
                at("prover")
            );
            std::fs::write(folder.path().join(format!("{name}.toml")), settings)?;
        }
        let mut fleet = Self {
            program: program.to_owned(),
            folder,
            service: None,
            workers: vec![],
            address: String::new(),
        };
        fleet.serve("127.0.0.1:0")?;
        for name in workers {
            let worker = fleet.work(name)?;
            fleet.workers.push(Some(worker));
        }
        // Partitions have owners, and workers have listed what there is.
        std::thread::sleep(Duration::from_secs(2));
        Ok(fleet)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn process(&self, command: &str) -> Command {
        let mut process = Command::new(&self.program);
        process.arg("--json").arg(command).arg("--data").arg(self.path("data"));
        process.stdout(Stdio::piped()).stderr(Stdio::null());
        process
    }

    fn serve(&mut self, listen: &str) -> Result<(), Error> {
        let mut child = self.process("serve").args(["--slots", "0", "--listen", listen]).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let started: serde_json::Value = serde_json::from_str(&line)?;
        self.address =
            started["address"].as_str().ok_or("the service printed no address")?.to_owned();
        self.service = Some(child);
        Ok(())
    }

    fn work(&self, backend: &str) -> Result<Child, Error> {
        let mut work = self.process("work");
        work.arg("--settings").arg(self.path(&format!("{backend}.toml")));
        Ok(work.stdout(Stdio::null()).spawn()?)
    }

    fn client(&self) -> Client {
        Client::new(&self.address, None)
    }

    fn chain(&self, order: Order) -> Result<(), Error> {
        let genesis = (order == Order::Strict).then(|| "b0".to_owned());
        self.client().make_chain("text", &ChainBody { order, genesis, bundles: None })?;
        Ok(())
    }

    fn blob(&self, seconds: f64, word: &str) -> Result<String, Error> {
        let path = self.path("input");
        std::fs::write(&path, format!("{seconds} {word}\n"))?;
        Ok(self.client().put_file(&path)?.to_string())
    }

    /// Submits a block of tasks that sleep; 1 is the first.
    fn submit(&self, order: Order, block: usize, seconds: &[f64]) -> Result<JobStatus, Error> {
        let tasks = seconds.iter().enumerate();
        let blobs = tasks
            .map(|(at, seconds)| self.blob(*seconds, &format!("t{block}-{at}")))
            .collect::<Result<Vec<_>, _>>()?;
        let job = JobBody {
            chain: "text".into(),
            block: block as u64,
            id: Some(format!("b{block}")),
            parent: (order == Order::Strict).then(|| format!("b{}", block - 1)),
            backend: Some("prove".into()),
            inputs: BTreeMap::from([("input".into(), blobs)]),
            ..JobBody::default()
        };
        Ok(self.client().submit(&job)?)
    }

    /// The prover's notes of a kind, with their times and words.
    fn notes(&self, kind: &str) -> Vec<(f64, String)> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let notes = log.lines().filter_map(|line| {
            let mut words = line.split(' ');
            (words.next() == Some(kind)).then_some(())?;
            Some((words.next()?.parse().ok()?, words.next()?.to_owned()))
        });
        notes.collect()
    }

    /// The blocks that were published.
    fn published(&self) -> Vec<String> {
        let page = self.client().proofs("text", 0);
        page.map(|page| page.proofs.into_iter().map(|proof| proof.id).collect()).unwrap_or_default()
    }

    fn kill(child: &mut Option<Child>) -> Result<f64, Error> {
        let mut running = child.take().ok_or("it was killed before")?;
        running.kill()?;
        running.wait()?;
        Ok(now())
    }
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

fn wait(what: &str, mut until: impl FnMut() -> bool) -> Result<(), Error> {
    let end = Instant::now() + Duration::from_secs(300);
    while !until() {
        if Instant::now() > end {
            return Err(format!("it takes too long: {what}").into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The rival's name for figures that the text states.
const TEXT: &str = "push0's text";

pub(crate) fn run(options: &Options, program: &Path) -> Result<(), Error> {
    let less = |bench: &str, size: usize, ours: f64, theirs: f64, unit: &str| {
        print(options, bench, size, ours, (TEXT, theirs), unit, false);
    };
    recovery(program, &less)?;
    chaos(program, &less)?;
    collector(program, &less)?;
    order(program, &less)?;
    join(program, &less)?;
    barriers(program, &less)?;
    burst(program, &less)?;
    duplicates(program, &less)?;
    flood(program, &less)?;
    needs(program, &less)
}

type Print<'a> = &'a dyn Fn(&str, usize, f64, f64, &str);

/// Measures the time from a kill to the next start of the task: by an idle worker, and by one that is started after all were killed.
fn recovery(program: &Path, less: Print<'_>) -> Result<(), Error> {
    let mut times = Vec::new();
    for _ in 0..5 {
        let mut fleet = Fleet::start(program, &["prove", "prove"])?;
        fleet.chain(Order::None)?;
        fleet.submit(Order::None, 1, &[3.0])?;
        wait("the task starts", || !fleet.notes("start").is_empty())?;
        // The worker that runs it has a child process.
        let busy = (0..2).find(|&at| fleet.workers[at].as_ref().is_some_and(has_children));
        let killed = Fleet::kill(&mut fleet.workers[busy.ok_or("no worker runs it")?])?;
        wait("it starts again", || fleet.notes("start").len() == 2)?;
        times.push(fleet.notes("start")[1].0 - killed);
    }
    times.sort_by(f64::total_cmp);
    less("recovery, an idle worker on the same machine", 5, times[2], 0.5, "s");
    let mut times = Vec::new();
    for _ in 0..5 {
        let mut fleet = Fleet::start(program, &["prove"])?;
        fleet.chain(Order::None)?;
        fleet.submit(Order::None, 1, &[3.0])?;
        wait("the task starts", || !fleet.notes("start").is_empty())?;
        Fleet::kill(&mut fleet.workers[0])?;
        let started = now();
        fleet.workers[0] = Some(fleet.work("prove")?);
        wait("it starts again", || fleet.notes("start").len() == 2)?;
        times.push(fleet.notes("start")[1].0 - started);
    }
    times.sort_by(f64::total_cmp);
    less("recovery, all workers killed, one started at once", 5, times[2], 5.0, "s");
    Ok(())
}

/// Reports whether a process has children.
fn has_children(child: &Child) -> bool {
    let id = child.id();
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .any(|children| !children.trim().is_empty())
}

/// 50 tasks of a second, two workers, each killed once and started again.
fn chaos(program: &Path, less: Print<'_>) -> Result<(), Error> {
    let mut fleet = Fleet::start(program, &["prove", "prove"])?;
    fleet.chain(Order::None)?;
    let start = Instant::now();
    for block in 1..=50 {
        fleet.submit(Order::None, block, &[1.0])?;
    }
    for (worker, after) in [(0, 15), (1, 30)] {
        wait("some are done", || fleet.notes("end").len() >= after)?;
        // In the middle of others.
        std::thread::sleep(Duration::from_millis(500));
        Fleet::kill(&mut fleet.workers[worker])?;
        fleet.workers[worker] = Some(fleet.work("prove")?);
    }
    wait("all are published", || fleet.published().len() == 50)?;
    let seconds = start.elapsed().as_secs_f64();
    let ends = fleet.notes("end");
    let words: BTreeSet<&String> = ends.iter().map(|(_, word)| word).collect();
    less("chaos: tasks lost", 50, 50.0 - words.len() as f64, 0.0, "");
    less("chaos: completions of 50 tasks", 50, ends.len() as f64, 53.0, "");
    less("chaos: starts of 50 tasks", 50, fleet.notes("start").len() as f64, f64::NAN, "");
    less("chaos: time, 25 s without kills", 50, seconds, f64::NAN, "s");
    Ok(())
}

/// 20 blocks of four tasks; the collector is killed after five.
fn collector(program: &Path, less: Print<'_>) -> Result<(), Error> {
    let mut fleet = Fleet::start(program, &["prove", "prove", "prove", "prove"])?;
    fleet.chain(Order::Strict)?;
    let start = Instant::now();
    for block in 1..=20 {
        fleet.submit(Order::Strict, block, &[1.0; 4])?;
    }
    wait("five are published", || fleet.published().len() >= 5)?;
    Fleet::kill(&mut fleet.service)?;
    let started = Instant::now();
    let listen = fleet.address.trim_start_matches("http://").to_owned();
    fleet.serve(&listen)?;
    wait("it answers", || !fleet.published().is_empty())?;
    let before = fleet.published().len();
    let answers = started.elapsed().as_secs_f64();
    wait("more is published", || fleet.published().len() > before)?;
    less("collector killed: answers again after", 20, answers, 0.5, "s");
    less("collector killed: publishes again after", 20, started.elapsed().as_secs_f64(), 0.5, "s");
    wait("all are published", || fleet.published().len() == 20)?;
    let seconds = start.elapsed().as_secs_f64();
    less("collector killed: 20 blocks of 4 tasks, 20 s at best", 20, seconds, 32.3, "s");
    less("collector killed: completions", 80, fleet.notes("end").len() as f64, f64::NAN, "");
    Ok(())
}

/// 100 blocks of 0.1 to 2 seconds, published in order.
fn order(program: &Path, less: Print<'_>) -> Result<(), Error> {
    const WORKERS: usize = 8;
    let fleet = Fleet::start(program, &["prove"; WORKERS])?;
    fleet.chain(Order::Strict)?;
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    let naps: Vec<f64> = (0..100).map(|_| random.gen_range(0.1..2.0)).collect();
    let start = Instant::now();
    for (at, nap) in naps.iter().enumerate() {
        fleet.submit(Order::Strict, at + 1, &[*nap])?;
    }
    wait("all are published", || fleet.published().len() == 100)?;
    let seconds = start.elapsed().as_secs_f64();
    let wanted: Vec<String> = (1..=100).map(|block| format!("b{block}")).collect();
    let published = fleet.published();
    let wrong = published.iter().zip(&wanted).filter(|(found, wanted)| found != wanted).count();
    less("order: 100 blocks, out of order", 100, wrong as f64, 0.0, "");
    let work: f64 = naps.iter().sum();
    let best = work / WORKERS as f64;
    // The text has one worker's worth of work in its time.
    less("order: time over the provers' own", 100, seconds / best, 114.7 / work, "times");
    Ok(())
}

/// 30 blocks of eight proofs of 300 ms on four workers, one of them of 15 s, and a proposal of 10 ms.
fn join(program: &Path, less: Print<'_>) -> Result<(), Error> {
    let fleet = Fleet::start(program, &["prove", "prove", "prove", "prove", "propose"])?;
    fleet.chain(Order::Strict)?;
    let client = fleet.client();
    let workflow = client.workflow(JOIN)?.workflow;
    let start = Instant::now();
    for block in 1..=30 {
        let chunk = |at| {
            let slow = (block, at) == (5, 0);
            fleet.blob(if slow { 15.0 } else { 0.3 }, &format!("chunk-{block}-{at}"))
        };
        let chunks = (0..8).map(chunk).collect::<Result<Vec<_>, _>>()?;
        let metadata = fleet.blob(0.01, &format!("proposal-{block}"))?;
        client.submit(&JobBody {
            chain: "text".into(),
            block,
            id: Some(format!("b{block}")),
            parent: Some(format!("b{}", block - 1)),
            workflow: Some(workflow.clone()),
            inputs: BTreeMap::from([
                ("chunks".into(), chunks),
                ("metadata".into(), vec![metadata]),
            ]),
            ..JobBody::default()
        })?;
    }
    wait("all are published", || fleet.published().len() == 30)?;
    let seconds = start.elapsed().as_secs_f64();
    less("join: 30 blocks, 21.7 s at best", 30, seconds, 23.9, "s");
    // How many proposals were there when the slow proof was.
    let ends = fleet.notes("end");
    let slow = ends.iter().find(|(_, word)| word == "chunk-5-0").map_or(0.0, |(at, _)| *at);
    let ahead = ends.iter().filter(|(at, word)| word.starts_with("proposal") && *at < slow).count();
    less("join: proposals before the slow proof", 30, ahead as f64, 30.0, "");
    Ok(())
}

/// 100 tasks at 20 per second, four workers of 0.3 s: measures the time from the last task to the last result.
fn burst(program: &Path, less: Print<'_>) -> Result<(), Error> {
    let fleet = Fleet::start(program, &["prove", "prove", "prove", "prove"])?;
    fleet.chain(Order::None)?;
    let start = Instant::now();
    for block in 1..=100_u32 {
        let at = Duration::from_millis(50) * block;
        std::thread::sleep(at.saturating_sub(start.elapsed()));
        fleet.submit(Order::None, block as usize, &[0.3])?;
    }
    let last = Instant::now();
    wait("all are published", || fleet.published().len() == 100)?;
    less("burst of 100: drained after, 2.5 s at best", 100, last.elapsed().as_secs_f64(), 3.0, "s");
    Ok(())
}

/// 100 barriers of four inputs, four collectors: all must be completed whatever collector hears of their parts.
fn barriers(program: &Path, less: Print<'_>) -> Result<(), Error> {
    let mut fleet = Fleet::start(program, &["prove", "prove"])?;
    for _ in 1..4 {
        let mut command = fleet.process("work");
        let settings = fleet.path("prove.toml");
        command.args(["--collect", "--slots", "0", "--settings"]).arg(settings);
        let collector = command.stdout(Stdio::null()).spawn()?;
        fleet.workers.push(Some(collector));
    }
    // Partitions change owners.
    std::thread::sleep(Duration::from_secs(3));
    fleet.chain(Order::None)?;
    let client = fleet.client();
    let workflow = client.workflow(BARRIER)?.workflow;
    let start = Instant::now();
    for block in 1..=100 {
        let chunks = (0..4).map(|at| fleet.blob(0.0, &format!("chunk-{block}-{at}")));
        client.submit(&JobBody {
            chain: "text".into(),
            block,
            id: Some(format!("b{block}")),
            workflow: Some(workflow.clone()),
            inputs: BTreeMap::from([("chunks".into(), chunks.collect::<Result<Vec<_>, _>>()?)]),
            ..JobBody::default()
        })?;
    }
    wait("all are published", || fleet.published().len() == 100)?;
    let text = fleet.published().len() as f64;
    less("barriers of 4 completed, 4 collectors", 100, text, 100.0, "");
    less("barriers: 500 tasks", 100, start.elapsed().as_secs_f64(), f64::NAN, "s");
    Ok(())
}

/// 500 tasks, each submitted three times at about the same time: each runs once.
fn duplicates(program: &Path, less: Print<'_>) -> Result<(), Error> {
    let fleet = Fleet::start(program, &["prove", "prove"])?;
    fleet.chain(Order::None)?;
    let blob = fleet.blob(0.0, "same")?;
    let send = |client: Client| {
        (0..500).try_for_each(|block| submit_one(&client, &format!("b{block}"), &blob).map(drop))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let client = fleet.client();
                scope.spawn(move || send(client))
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| Ok::<_, Error>(thread.join().map_err(|_| "a client panicked")??))
    })?;
    wait("all are published", || fleet.published().len() == 500)?;
    let runs = fleet.notes("start").len() as f64;
    less("duplicates: runs of 500 tasks sent 3 times", 500, runs, 500.0, "");
    Ok(())
}

fn submit_one(client: &Client, id: &str, blob: &str) -> Result<JobStatus, ClientError> {
    client.submit(&JobBody {
        chain: "text".into(),
        id: Some(id.to_owned()),
        backend: Some("prove".into()),
        inputs: BTreeMap::from([("input".into(), vec![blob.to_owned()])]),
        ..JobBody::default()
    })
}

/// 1,500 tasks per second, ten times the rate of other experiments, without workers: until the first is refused.
fn flood(program: &Path, less: Print<'_>) -> Result<(), Error> {
    const CLIENTS: usize = 6;
    let fleet = Fleet::start(program, &[])?;
    fleet.chain(Order::None)?;
    let blob = fleet.blob(1.0, "one")?;
    let (accepted, refused) = (AtomicUsize::new(0), AtomicBool::new(false));
    let start = Instant::now();
    let flood = |client: Client, part: usize| {
        for at in (part..100_000).step_by(CLIENTS) {
            if refused.load(Ordering::Relaxed) {
                break;
            }
            let due = Duration::from_secs_f64(at as f64 / 1_500.0);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
            match submit_one(&client, &format!("b{at}"), &blob) {
                Ok(_) => drop(accepted.fetch_add(1, Ordering::Relaxed)),
                Err(ClientError::Problem { .. }) => refused.store(true, Ordering::Relaxed),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|part| {
                let (client, flood) = (fleet.client(), &flood);
                scope.spawn(move || flood(client, part))
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| Ok::<_, Error>(thread.join().map_err(|_| "a client panicked")??))
    })?;
    let before_refusal = accepted.into_inner();
    less(
        "flood of 1,500 a second: refused after",
        before_refusal,
        start.elapsed().as_secs_f64(),
        6.7,
        "s",
    );
    let service = fleet.service.as_ref().map_or(0, Child::id);
    less("flood: memory of the service", before_refusal, resident(service)?, 2_100.0, "MB");
    Ok(())
}

/// Memory and the time of a scrape with many open tasks.
fn needs(program: &Path, less: Print<'_>) -> Result<(), Error> {
    let mut fleet = Fleet::start(program, &[])?;
    fleet.chain(Order::None)?;
    let blob = fleet.blob(1.0, "one")?;
    let mut open = 0;
    for (wanted, scrape) in [(100, 1.2), (1_000, 0.4), (10_000, f64::NAN)] {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|part| {
                    let (client, blob) = (fleet.client(), &blob);
                    scope.spawn(move || {
                        (open..wanted).filter(|at| at % 4 == part).try_for_each(|at| {
                            submit_one(&client, &format!("b{at}"), blob).map(drop)
                        })
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| {
                Ok::<_, Error>(thread.join().map_err(|_| "a client panicked")??)
            })
        })?;
        open = wanted;
        // Its collector looks at the queue each second.
        std::thread::sleep(Duration::from_secs(3));
        let url = format!("{}/metrics", fleet.address);
        let mut times = Vec::new();
        for _ in 0..50 {
            let start = Instant::now();
            let text = ureq::get(&url).call()?.body_mut().read_to_string()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            if !text.contains(&format!("hekaton_orchestrator_tasks_ready {wanted}\n")) {
                return Err(format!("{wanted} tasks do not wait: {text}").into());
            }
        }
        times.sort_by(f64::total_cmp);
        less("scrape of the metrics, P50", wanted, times[25], scrape, "ms");
        less("scrape of the metrics, P99", wanted, times[49], f64::NAN, "ms");
        let service = fleet.service.as_ref().map_or(0, Child::id);
        less("memory of the service", wanted, resident(service)?, 8.0, "MB");
    }
    let worker = fleet.work("prove")?;
    let id = worker.id();
    fleet.workers.push(Some(worker));
    std::thread::sleep(Duration::from_secs(3));
    less("memory of a worker beside 10,000 tasks", open, resident(id)?, 14.0, "MB");
    Ok(())
}

/// The resident memory of a process, in megabytes.
fn resident(process: u32) -> Result<f64, Error> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1_024.0 / 1e6).ok_or_else(|| "no VmRSS".into())
}
