//! Each process killed alone, and each pair of them, at random times. The surviving processes keep running undisturbed, and all blocks
//! that were accepted are published in order.

#[cfg(feature = "nats")]
use super::nats::Server;
use super::support::*;
use hekaton_orchestrator::Client;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// A part that may be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A process that answers requests, makes tasks and publishes.
    Service,
    /// A process that only runs tasks.
    Worker,
    /// A process that runs tasks, makes them and publishes.
    Collector,
    /// The NATS server, with what it keeps in memory.
    #[cfg(feature = "nats")]
    Server,
}

struct World {
    place: Place,
    service: Option<Process>,
    worker: Option<Process>,
    collector: Option<Process>,
    #[cfg(feature = "nats")]
    server: Option<Server>,
    accepted: u64,
}

impl World {
    fn start(&mut self, part: Part) {
        match part {
            Part::Service => self.service = Some(self.place.serve(&["--slots", "1"])),
            Part::Worker => self.worker = Some(self.place.work()),
            Part::Collector => {
                let arguments = ["work", "--collect", "--slots", "1"];
                self.collector = Some(self.place.start(&arguments));
            }
            #[cfg(feature = "nats")]
            Part::Server => self.server.as_mut().unwrap().start(),
        }
    }

    fn kill(&mut self, part: Part) {
        match part {
            Part::Service => self.service.take().unwrap().kill(),
            Part::Worker => self.worker.take().unwrap().kill(),
            Part::Collector => self.collector.take().unwrap().kill(),
            #[cfg(feature = "nats")]
            Part::Server => self.server.as_mut().unwrap().kill(),
        }
    }

    fn client(&self) -> Client {
        self.service.as_ref().unwrap().client()
    }

    fn submit(&mut self, tenths: u64) {
        self.accepted += 1;
        let input = format!("0.{tenths} w{}", self.accepted);
        submit(&self.client(), &self.place, self.accepted, &input);
    }

    /// Kills some parts, starts them again in another order, and waits until all blocks that were accepted are published.
    fn schedule(&mut self, parts: &[Part], random: &mut ChaCha8Rng) {
        for _ in 0..random.gen_range(1..=3) {
            self.submit(random.gen_range(0..=3));
        }
        for part in parts {
            std::thread::sleep(Duration::from_millis(random.gen_range(0..250)));
            self.kill(*part);
        }
        let mut order = parts.to_vec();
        if random.gen_bool(0.5) {
            order.reverse();
        }
        for part in order {
            std::thread::sleep(Duration::from_millis(random.gen_range(0..250)));
            self.start(part);
        }
        if random.gen_bool(0.5) {
            self.submit(random.gen_range(0..=1));
        }
        let all: Vec<String> = (1..=self.accepted).map(|block| format!("b{block}")).collect();
        let client = self.client();
        let mut found = vec![];
        let is_published = within(Duration::from_secs(90), || {
            let proofs = client.proofs("main", 0);
            found = proofs.map_or(vec![], |it| it.proofs.into_iter().map(|it| it.id).collect());
            found == all
        });
        assert!(is_published, "{parts:?}: {found:?}, and not {all:?}\n{}", self.place.errors());
        let service = self.service.as_ref().unwrap();
        let is_ready = within(Duration::from_secs(60), || service.get("/readyz").status == 204);
        assert!(is_ready, "{parts:?}: {}", service.get("/readyz").body);
    }
}

/// Runs schedules over each part alone and each pair. `HEKATON_SCHEDULES` is their number, and `HEKATON_SEED` selects them.
fn schedules(mut world: World, all: &[Part], usually: usize) {
    let count = std::env::var("HEKATON_SCHEDULES").map_or(usually, |text| text.parse().unwrap());
    let seed = std::env::var("HEKATON_SEED").map_or(1, |text| text.parse().unwrap());
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for part in all.iter().rev() {
        world.start(*part);
    }
    wait("it is ready", || world.service.as_ref().unwrap().get("/readyz").status == 204);
    strict(&world.client());
    let mut sets: Vec<Vec<Part>> = all.iter().map(|part| vec![*part]).collect();
    for (at, one) in all.iter().enumerate() {
        sets.extend(all[at + 1..].iter().map(|other| vec![*one, *other]));
    }
    for round in 0..count {
        world.schedule(&sets[round % sets.len()], &mut random);
    }
    let World { place, service, worker, collector, .. } = world;
    drop((service, worker, collector));
    if place.path("data/orchestrator.db").exists() {
        place.check();
    }
}

#[test]
fn each_process_and_each_pair_may_be_killed() {
    let world = World {
        place: Place::new(""),
        service: None,
        worker: None,
        collector: None,
        #[cfg(feature = "nats")]
        server: None,
        accepted: 0,
    };
    schedules(world, &[Part::Service, Part::Worker, Part::Collector], 18);
}

/// The same with records in NATS JetStream, whose server is killed, too, alone and with each other part.
#[cfg(feature = "nats")]
#[test]
fn each_process_and_each_pair_may_be_killed_and_so_may_nats() {
    let mut place = Place::new("");
    let Some(server) = Server::new(&place) else { return };
    place.more = server.arguments("service");
    let (service, worker, collector) = (None, None, None);
    let world = World { place, service, worker, collector, server: Some(server), accepted: 0 };
    schedules(world, &[Part::Service, Part::Worker, Part::Collector, Part::Server], 10);
}

/// Each process has a different clock, up to four days wrong, and is killed and restarted with yet another one.
#[test]
fn clocks_may_be_set_back_and_forth() {
    let mut place = Place::new("");
    let client_of = |place: &Place| {
        let service = place.serve(&["--slots", "1"]);
        wait("it is ready", || service.get("/readyz").status == 204);
        (service.client(), service)
    };
    let set = |place: &mut Place, shift: &str| {
        place.launcher = vec!["faketime".into(), "-f".into(), shift.into()];
        place.environment = vec![("DONT_FAKE_MONOTONIC".into(), "1".into())];
    };
    set(&mut place, "+3d");
    let (client, service) = client_of(&place);
    strict(&client);
    let mut jobs = vec![];
    // The first one is given back, to be tried again after a pause; by then, it is days before.
    for (block, input) in [(1, "0 tired"), (2, "0.1 two"), (3, "30 three")] {
        jobs.push(submit(&client, &place, block, input));
    }
    wait("the first one was given back, and another one runs", || place.attempts() >= 3);
    service.kill();
    std::fs::write(
        place.path("prover"),
        PROVER
            .replace("tired) exit 75 ;;", "")
            .replace("LOG", &place.path("log").display().to_string()),
    )
    .unwrap();
    for shift in ["-4d", "+1d"] {
        set(&mut place, shift);
        let (client, service) = client_of(&place);
        jobs.push(submit(&client, &place, jobs.len() as u64 + 1, "0 more"));
        for job in &jobs {
            assert_eq!(ended(&client, job).state, "done", "{shift}: {}", place.errors());
        }
        wait("all are published", || published(&client).len() == jobs.len());
        service.kill();
    }
    place.check();
}
