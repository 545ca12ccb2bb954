//! The program: processes are started, queried, killed and started again.

mod disk;
mod http;
mod kills;
mod liveness;
#[cfg(feature = "nats")]
mod nats;
mod requests;
mod slurm;
mod support;

use hekaton_orchestrator::http::{ChainBody, JobBody, JobStatus};
use hekaton_orchestrator::record::Order;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};
use support::*;

#[test]
fn jobs_are_proven_and_published_in_order() {
    let place = Place::new("");
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    // The first one takes longest.
    let inputs = ["1 one", "0.2 two", "0 three"];
    let jobs: Vec<JobStatus> =
        (1..).zip(inputs).map(|(block, input)| submit(&client, &place, block, input)).collect();
    let again = submit(&client, &place, 2, "0.2 two");
    assert_eq!((again.job, again.accepted), (jobs[1].job.clone(), jobs[1].accepted));
    for (job, word) in jobs.iter().zip(["ONE", "TWO", "THREE"]) {
        let status = ended(&client, job);
        assert_eq!(status.state, "done", "{status:?}");
        assert_eq!(output(&client, &place, &status), word);
    }
    wait("all are published", || published(&client) == ["b1", "b2", "b3"]);
    assert_eq!(place.attempts(), 3);
    place.check();
}

#[test]
fn a_worker_that_is_killed_is_replaced_within_seconds() {
    let place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    let first = place.work();
    // No other test, and no other run of this one, sleeps for so long.
    let seconds = format!("{}.{}", 600, std::process::id());
    let job = submit(&client, &place, 1, &format!("{seconds} one"));
    let sleeping = || {
        let found = Command::new("pgrep").args(["-x", "-f", &format!("sleep {seconds}")]).output();
        text(&found.unwrap().stdout).lines().count()
    };
    wait("it runs", || sleeping() == 1);
    let second = place.work();
    std::thread::sleep(Duration::from_secs(2));
    first.kill();
    let killed = Instant::now();
    let status = ended(&client, &job);
    // Not after the five reads of a session on another machine, since its lock is free. (A generous limit, for slow machines.)
    assert!(killed.elapsed() < Duration::from_secs(30));
    assert_eq!(status.state, "done", "{status:?}\n{}", place.errors());
    assert_eq!(place.attempts(), 2);
    wait("nothing is left of the first attempt", || sleeping() == 0);
    drop(second);
    place.check();
}

#[test]
fn a_frozen_worker_loses_its_lease_and_does_no_harm() {
    let place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    let frozen = place.work();
    // The next holder of the task kills its prover, which is not frozen.
    let job = submit(&client, &place, 1, "30 one");
    wait("it runs", || place.attempts() == 1);
    frozen.signal("-STOP");
    let other = place.work();
    wait("another one has it", || place.attempts() == 2);
    frozen.signal("-CONT");
    let status = ended(&client, &job);
    assert_eq!((status.state.as_str(), status.outputs.len()), ("done", 1), "{status:?}");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(client.job(&job.job, 0).unwrap(), status, "the first result stays");
    assert_eq!(place.attempts(), 2, "{}", place.errors());
    drop((frozen, other));
    place.check();
}

/// Everything may be killed at any time: `HEKATON_KILLS` is the number of rounds.
#[test]
fn everything_may_be_killed_at_any_time() {
    let rounds = std::env::var("HEKATON_KILLS").map_or(6, |text| text.parse().unwrap());
    let place = Place::new("");
    let mut service = place.serve(&[]);
    strict(&service.client());
    let mut worker = place.start(&["work", "--collect"]);
    let mut jobs = Vec::new();
    for round in 0..rounds {
        for at in 1..=3 {
            let block = 3 * round + at;
            jobs.push(submit(&service.client(), &place, block, &format!("0.{at} w{block}")));
        }
        std::thread::sleep(Duration::from_millis(100 + 131 * (round % 5)));
        match round % 3 {
            0 => {
                worker.kill();
                worker = place.start(&["work", "--collect"]);
            }
            1 => {
                service.kill();
                service = place.serve(&[]);
            }
            _ => {
                worker.kill();
                service.kill();
                (service, worker) = (place.serve(&[]), place.start(&["work", "--collect"]));
            }
        }
    }
    let client = service.client();
    for job in &jobs {
        let status = ended(&client, job);
        assert_eq!(status.state, "done", "{status:?}\n{}", place.errors());
        assert_eq!(output(&client, &place, &status), format!("W{}", status.block));
    }
    wait("all are published", || published(&client).len() == jobs.len());
    // Only tasks that ran when a process was killed ran again: at most four at a time.
    let again = place.attempts() - jobs.len();
    assert!(again <= 4 * usize::try_from(rounds).unwrap(), "{again} attempts too many");
    drop((service, worker));
    place.check();
}

/// The same with records in NATS JetStream, whose server is killed, too.
#[cfg(feature = "nats")]
#[test]
fn nats_and_everything_else_may_be_killed() {
    let mut place = Place::new("");
    let Some(mut server) = nats::Server::new(&place) else { return };
    server.start();
    let address = |user: &str| server.arguments(user)[1].clone();
    let (of_service, of_worker) = (address("service"), address("worker"));
    place.more = vec!["--nats".into(), of_service.clone()];
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    // The worker only runs tasks, and has no rights to do more.
    place.more.clear();
    place.environment = vec![("HEKATON_NATS".into(), of_worker)];
    let runs = place.start(&["work"]);
    place.environment.clear();
    place.more = vec!["--nats".into(), of_service];
    let mut jobs = vec![submit(&client, &place, 1, "0 w1")];
    assert_eq!(ended(&client, &jobs[0]).state, "done", "by the one that may do no more");
    let mut worker = place.start(&["work", "--collect", "--slots", "1"]);
    for round in 0..3 {
        for at in 1..=3 {
            let block = 3 * round + at + 1;
            jobs.push(submit(&client, &place, block, &format!("0.{at} w{block}")));
        }
        std::thread::sleep(Duration::from_millis(150));
        server.kill();
        std::thread::sleep(Duration::from_millis(500));
        // The worker dies after the server is back, and once while it is away.
        let away = (round == 1).then(|| worker.child.kill().unwrap());
        server.start();
        if away.is_none() {
            std::thread::sleep(Duration::from_millis(300));
        }
        worker.kill();
        worker = place.start(&["work", "--collect", "--slots", "1"]);
    }
    for job in &jobs {
        let status = ended(&client, job);
        assert_eq!(status.state, "done", "{status:?}\n{}", place.errors());
        assert_eq!(output(&client, &place, &status), format!("W{}", status.block));
    }
    let all: Vec<String> = (1..=10).map(|block| format!("b{block}")).collect();
    wait("all are published in order", || {
        client.proofs("main", 0).is_ok_and(|it| it.proofs.len() == 10)
    });
    assert_eq!(published(&client), all);
    drop((service, worker, runs));
}

#[test]
fn a_task_that_kills_its_worker_dies_at_last() {
    let place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    let job = submit(&client, &place, 1, "0 poison");
    let after = submit(&client, &place, 2, "0 two");
    let mut worker = place.work();
    let until = Instant::now() + Duration::from_secs(300);
    let status = loop {
        let status = client.job(&job.job, 0).unwrap();
        if status.state != "live" {
            break status;
        }
        assert!(Instant::now() < until, "{}", place.errors());
        if worker.child.try_wait().unwrap().is_some() {
            worker = place.work();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.state, "dead");
    assert!(status.reason.unwrap().contains("ended while it ran the task"));
    drop(worker);
    let worker = place.work();
    assert_eq!(ended(&client, &after).state, "done");
    assert_eq!(published(&client), [""; 0]);
    client.skip(&job.job).unwrap();
    wait("the chain goes on", || published(&client) == ["b1", "b2"]);
    drop(worker);
    place.check();
}

#[test]
fn wrong_and_impossible_tasks() {
    let place = Place::new("");
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    client
        .make_chain("files", &ChainBody { order: Order::None, genesis: None, bundles: None })
        .unwrap();
    let impossible = submit(&client, &place, 1, "0 impossible");
    let status = ended(&client, &impossible);
    assert_eq!((status.state.as_str(), place.attempts()), ("dead", 1));
    assert!(status.reason.unwrap().contains("not a witness"));
    assert_eq!(client.requeue(&impossible.job).unwrap().state, "live");
    let status = ended(&client, &impossible);
    assert_eq!((status.generation, place.attempts()), (1, 2));
    assert_eq!(client.cancel(&impossible.job).unwrap().state, "cancelled");

    // No task takes more memory than the settings allow.
    let hungry = submit(&client, &place, 1, "0 hungry");
    assert_eq!(ended(&client, &hungry).state, "dead");
    assert_eq!(client.cancel(&hungry.job).unwrap().state, "cancelled");

    // A prover that leaves a process running behind ends all the same.
    let leaves = submit(&client, &place, 1, "0 leaves");
    assert_eq!(ended(&client, &leaves).state, "done");
    // A task that is given back uncounted is not given back in a tight loop.
    let tired = submit(&client, &place, 2, "0 tired");
    std::thread::sleep(Duration::from_secs(3));
    assert!((1..8).contains(&(place.attempts() - 4)), "{} attempts", place.attempts());
    assert_eq!(client.cancel(&tired.job).unwrap().state, "cancelled");

    // Its outputs do not count, and its back-end is no longer used after three such tasks.
    let wrong = ["0 wrong", "0.0 wrong", "0.00 wrong"].map(|input| {
        std::fs::write(place.path("input"), format!("{input}\n")).unwrap();
        let blob = client.put_file(&place.path("input")).unwrap();
        let inputs = BTreeMap::from([("input".into(), vec![blob.to_string()])]);
        let backend = Some("prove".into());
        client
            .submit(&JobBody { chain: "files".into(), backend, inputs, ..JobBody::default() })
            .unwrap()
    });
    let metrics = || {
        let url = format!("{}/metrics", service.address);
        text(&Command::new("curl").args(["-s", &url]).output().unwrap().stdout)
    };
    wait("it is quarantined", || metrics().contains("quarantined{backend=\"prove\"} 1"));
    let live = wrong.iter().filter(|job| client.job(&job.job, 0).unwrap().state == "live").count();
    let unrunnable = format!("tasks_unrunnable {live}");
    wait("nobody can run them", || metrics().contains(&unrunnable));
    drop(service);
    place.check();
}

#[test]
fn a_process_stops_in_order() {
    let place = Place::new("");
    let mut service = place.serve(&["--grace", "60"]);
    let client = service.client();
    strict(&client);
    let job = submit(&client, &place, 1, "1 one");
    let later = submit(&client, &place, 2, "60 two");
    wait("both run", || place.attempts() == 2);
    service.signal("-TERM");
    assert_eq!(ended(&client, &job).state, "done", "what runs may end");
    assert_eq!(client.job(&later.job, 0).unwrap().state, "live");
    // A second signal ends the process at once.
    service.signal("-TERM");
    assert!(service.child.wait().unwrap().success(), "{}", place.errors());
    place.check();
    let again = place.serve(&[]);
    wait("it is claimed at once", || place.attempts() == 3);
    let log = std::fs::read_to_string(place.path("log")).unwrap();
    assert_eq!(log.lines().last(), Some("2 0"), "the attempt before is not counted");
    drop(again);
}
