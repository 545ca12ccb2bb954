//! The same with a real orchestrator.

#[path = "../common/orchestrator.rs"]
mod orchestrator;

use super::{Random, accept, arrivals, expected, folder, forest, id, parent, submitter};
use hekaton_orchestrator::http::RevertBody;
use hekaton_orchestrator::{Client, ClientError};
use orchestrator::orchestrator;
use std::time::{Duration, Instant};

/// Returns the blocks that a chain has published after its genesis, without those that were taken back.
fn path(client: &Client, genesis: &str) -> Result<Vec<(String, u64)>, ClientError> {
    let mut path = vec![(genesis.to_owned(), 0)];
    let mut from = 0;
    loop {
        let found = client.proofs("blocks", from)?;
        if found.proofs.is_empty() {
            return Ok(path);
        }
        for entry in found.proofs {
            match &entry.entry[..] {
                "revert" => {
                    let keep = path.iter().position(|(known, _)| *known == entry.id).unwrap();
                    path.truncate(keep + 1);
                }
                _ => {
                    let (before, _) = path.last().unwrap();
                    assert_eq!(Some(before), entry.parent.as_ref(), "out of order");
                    path.push((entry.id, entry.block));
                }
            }
            from = entry.rev;
        }
    }
}

/// Runs one schedule, which its number and the pace of the orchestrator determine.
fn run(number: u64) {
    let mut random = Random(number);
    let blocks = forest(&mut random, 5);
    let folder = folder();
    let (address, stop) = orchestrator(&folder.path().join("jobs"));
    let client = Client::new(&address, None);
    let genesis = parent(&blocks[0]);
    let data = folder.path().join("intake");
    let mut now = submitter(&data, &address, &genesis);
    let mut accepted = Vec::new();
    for next in arrivals(&mut random, blocks.len()) {
        accept(&now, &blocks[next]);
        accepted.push(next);
        for _ in 0..random.below(3) {
            match random.below(6) {
                0..=2 => drop(now.submit()),
                3 => {
                    drop(now);
                    now = submitter(&data, &address, &genesis);
                }
                4 => std::thread::sleep(Duration::from_millis(random.below(300) as u64)),
                // Operators take blocks back at random.
                _ => {
                    let Ok(path) = path(&client, &genesis) else { continue };
                    let (to, block) = path[random.below(path.len())].clone();
                    // It may have been taken back by now.
                    let _ = client.revert("blocks", &RevertBody { to, block });
                }
            }
        }
    }
    let branch = expected(&blocks, &accepted);
    let end = Instant::now() + Duration::from_secs(180);
    loop {
        let made = now.submit().unwrap();
        let path = path(&client, &genesis).unwrap();
        let published: Vec<&String> = path.iter().skip(1).map(|(id, _)| id).collect();
        if made == 0 && published == branch.iter().collect::<Vec<_>>() {
            break;
        }
        assert!(Instant::now() < end, "{published:?}, and not {branch:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Blocks that were published since the last look are noted now.
    now.submit().unwrap();
    for block in &blocks {
        let record = now.store().record(&id(block)).unwrap().unwrap();
        let on_branch = branch.contains(&record.block);
        let found = (record.pending, record.aside, record.refused);
        assert_eq!(found, (false, !on_branch, None), "{}", record.block);
    }
    let open = client.jobs().unwrap().jobs.into_iter().map(|view| view.job);
    let open: Vec<String> =
        open.filter(|job| job.state == "live" || job.state == "dead").map(|job| job.id).collect();
    assert_eq!(open, Vec::<String>::new(), "jobs that nobody wants");
    stop.ask();
    stop.ask();
}

/// Runs `HEKATON_REAL_SCHEDULES` schedules.
#[test]
fn a_real_orchestrator_publishes_the_last_branch() {
    let count = std::env::var("HEKATON_REAL_SCHEDULES").map_or(20, |text| text.parse().unwrap());
    for number in 0..count {
        let ran = std::panic::catch_unwind(|| run(number));
        assert!(ran.is_ok(), "schedule {number}");
    }
}
