//! All blocks that are accepted are published, or the client or the operator learns why not.

use super::support::*;
use hekaton_orchestrator::Digest;
use hekaton_orchestrator::http::{JobBody, JobStatus, ReorgBody};
use std::process::{Command, Output};
use std::time::Duration;

/// A generous time limit, since the machine may be busy with other tests.
const PATIENTLY: Duration = Duration::from_secs(300);

/// Returns numbers in an order that depends on the seed.
fn shuffled(count: u64, seed: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (1..=count).collect();
    numbers.sort_by_key(|number| (number * 7_919 + seed * 104_729) % 1_009);
    numbers
}

#[test]
fn blocks_in_any_order_from_several_clients_are_published() {
    let place = Place::new("");
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    std::fs::write(place.path("input"), "0 word\n").unwrap();
    let blob = client.put_file(&place.path("input")).unwrap().to_string();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (client, blob) = (service.client(), &blob);
            scope.spawn(move || {
                for block in shuffled(24, seed) {
                    client.submit(&body(block, blob)).unwrap();
                }
            });
        }
    });
    let all: Vec<String> = (1..=24).map(|block| format!("b{block}")).collect();
    assert!(within(PATIENTLY, || published(&client) == all), "{:?}", published(&client));
    // And another branch, of which all but the first block come before the old one is torn off.
    let branch = |block: u64| {
        let parent = if block == 11 { "b10".into() } else { format!("c{}", block - 1) };
        let job = body(block, &blob);
        client.submit(&JobBody { id: Some(format!("c{block}")), parent: Some(parent), ..job })
    };
    for block in [13, 12, 14] {
        branch(block).unwrap();
    }
    assert_eq!(status_of(branch(11)), 409);
    let to = ReorgBody { to: "b10".into(), block: 10, next: Some("c11".into()) };
    client.reorg("main", &to).unwrap();
    branch(11).unwrap();
    // Repeated, it changes nothing.
    client.reorg("main", &to).unwrap();
    let tail = || client.chain("main").unwrap().tail;
    assert!(within(PATIENTLY, || tail().as_deref() == Some("c14")), "{:?}", tail());
    place.check();
}

/// A worker whose prover fails at once.
fn bad_worker(place: &mut Place) -> Process {
    let prover = std::fs::read_to_string(place.path("prover")).unwrap();
    if !prover.contains("BROKEN") {
        let text =
            format!("[ -z \"$BROKEN\" ] || {{ echo 'no such device' >&2; exit 4; }}\n{prover}");
        std::fs::write(place.path("prover"), text).unwrap();
    }
    place.launcher = vec!["env".into(), "BROKEN=1".into()];
    let worker = place.work();
    place.launcher.clear();
    worker
}

#[test]
fn a_worker_that_fails_at_once_spoils_nothing() {
    let mut place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    let good = place.work();
    let bad = bad_worker(&mut place);
    let jobs: Vec<_> =
        (1..=20).map(|block| submit(&client, &place, block, &format!("0.2 w{block}"))).collect();
    let all = || {
        let states = jobs.iter().map(|job| client.job(&job.job, 0).unwrap().state);
        states.filter(|state| state != "done").collect::<Vec<_>>()
    };
    assert!(within(PATIENTLY, || all().is_empty()), "{:?}\n{}", all(), place.errors());
    assert!(within(PATIENTLY, || published(&client).len() == 20));
    assert!(place.errors().contains("quarantined: it failed tasks of three jobs in a row"));
    drop((good, bad));
    place.check();
}

/// Files that were damaged on this side do not count against a back-end.
#[test]
fn damaged_inputs_spoil_no_back_end() {
    let place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    let mut jobs = Vec::new();
    for block in 1..=4 {
        jobs.push(submit(&client, &place, block, &format!("0 w{block}")));
        let sent = std::fs::read(place.path("input")).unwrap();
        let digest = Digest::of(&sent).to_string();
        let stored = place.path("data/blobs").join(&digest[..2]).join(&digest);
        assert_eq!(std::fs::read(&stored).unwrap(), sent);
        std::fs::write(&stored, "0 other\n").unwrap();
    }
    let worker = place.work();
    let is_dead = |job: &JobStatus| client.job(&job.job, 0).unwrap().state == "dead";
    assert!(within(PATIENTLY, || jobs.iter().all(is_dead)), "{}", place.errors());
    let reason = client.job(&jobs[3].job, 0).unwrap().reason.unwrap();
    assert!(reason.contains("damaged"), "{reason}");
    assert!(!place.errors().contains("quarantined"), "{}", place.errors());
    assert_eq!(place.attempts(), 0);
    drop(worker);
    place.check();
}

/// A dead block that does not descend from the published chain holds nothing up, and keeps nothing out.
#[test]
fn a_dead_block_beside_the_chain_keeps_no_block_out() {
    let place = Place::new("");
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    let blob = |input: &str| {
        std::fs::write(place.path("input"), input).unwrap();
        client.put_file(&place.path("input")).unwrap().to_string()
    };
    let submit = |block: u64, id: &str, parent: &str, blob: &str| {
        let (id, parent) = (Some(id.to_owned()), Some(parent.to_owned()));
        client.submit(&JobBody { id, parent, ..body(block, blob) })
    };
    let impossible = blob("0 impossible\n");
    let beside = submit(5, "beside", "nowhere", &impossible).unwrap();
    assert_eq!(ended(&client, &beside).state, "dead");
    let blob = blob("0 word\n");
    // The first block of a chain that has published nothing, and the one after the last one.
    let first = submit(1_000, "b1", "genesis", &blob).unwrap();
    assert_eq!(ended(&client, &first).state, "done");
    assert!(within(PATIENTLY, || published(&client) == ["b1"]), "{}", place.errors());
    let above = submit(1_001, "above", "elsewhere", &impossible).unwrap();
    assert_eq!(ended(&client, &above).state, "dead");
    submit(1_100, "b2", "b1", &blob).unwrap();
    assert!(within(PATIENTLY, || published(&client) == ["b1", "b2"]), "{}", place.errors());
    place.check();
}

#[test]
fn where_all_workers_fail_somebody_is_told() {
    let mut place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    let bad = [bad_worker(&mut place), bad_worker(&mut place)];
    let jobs: Vec<_> = (1..=5).map(|block| submit(&client, &place, block, "0 word")).collect();
    let mut status = client.job(&jobs[0].job, 0).unwrap();
    let is_dead = within(PATIENTLY, || {
        status = client.job(&jobs[0].job, 0).unwrap();
        status.state == "dead"
    });
    assert!(is_dead, "{}", place.errors());
    let reason = status.reason.unwrap();
    assert!(reason.contains("back-end 'prove'") && reason.contains("no such device"), "{reason}");
    drop(bad);
    place.check();
}

/// The service reports on all channels what stands still, and why, for as long as it does.
#[test]
fn what_stands_still_is_named_everywhere() {
    let place = Place::new("standstill_seconds = 2\n");
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    submit(&client, &place, 1, "0 one");
    submit(&client, &place, 3, "0 three");
    submit(&client, &place, 4, "0 four");
    let why = "block 3 'b3' waits for its parent 'b2', which was never submitted";
    let mut ready = get(&service.address, "/readyz");
    let is_told = within(PATIENTLY, || {
        ready = get(&service.address, "/readyz");
        ready.status == 503
    });
    assert!(is_told && ready.body.contains(why), "{}", ready.body);
    assert_eq!(get(&service.address, "/healthz").status, 200);
    let run =
        |arguments: &[&str]| -> Output { Command::new(PROGRAM).args(arguments).output().unwrap() };
    let status = run(&["status", "--service", &service.address]);
    let why_in_a_line = "stands still: main 3 b3 waits for its parent 'b2'";
    assert!(text(&status.stdout).contains(why_in_a_line), "{}", text(&status.stdout));
    let progress = "chain main: last published block 1, b1; last accepted block ";
    assert!(text(&status.stdout).contains(progress), "{}", text(&status.stdout));
    let metrics = get(&service.address, "/metrics").body;
    assert!(metrics.contains("chains_standing_still 1"), "{metrics}");
    assert!(place.errors().contains(why), "{}", place.errors());
    let data = place.path("data").display().to_string();
    let checked = run(&["check", "--data", &data, "--patience", "1"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(text(&checked.stdout).contains(why), "{}", text(&checked.stdout));

    submit(&client, &place, 2, "0 two");
    let is_ready = || get(&service.address, "/readyz").status == 204;
    assert!(within(PATIENTLY, is_ready), "{}", get(&service.address, "/readyz").body);
    // Nothing stands still once the block is accepted; it is proven and published after that.
    let is_published = || published(&client) == ["b1", "b2", "b3", "b4"];
    assert!(within(PATIENTLY, is_published), "{:?}", published(&client));
    let checked = run(&["check", "--data", &data, "--patience", "1"]);
    assert!(checked.status.success(), "{}", text(&checked.stdout));
}
