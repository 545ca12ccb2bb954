//! The data sent to ranks and the trust placed in them: their code, their secrets, and their claims
//! of poles (AUDIT F1, F7, nit 7).

use super::*;

/// Adversarial test of AUDIT F1: a rank whose code has other constraints than its keys cannot even
/// describe itself, and one with other keys and other code is refused with the type's name. Guards:
/// the comparison in `Hello::new`, and the digests of types among its facts.
#[test]
fn f1_ranks_with_other_code_are_refused() {
    let (old, new) =
        (Bench::new(Square(Rule::Forgotten), true), Bench::new(Square(Rule::First), true));
    let engine = &old.engine;
    for (code, keys) in [(&old, &new), (&new, &old)] {
        let error = Hello::new(&code.prepared(), &keys.keys, 1, engine).unwrap_err();
        assert!(
            matches!(&error, CircuitMismatch::Constraints { kind, .. } if kind == "square"),
            "{error}"
        );
        assert!(error.to_string().contains("type 'square'"), "{error}");
    }
    let mut ends = Endpoint::network(2).into_iter();
    let (root, worker) = (ends.next().unwrap(), ends.next().unwrap());
    let hello = |bench: &Bench<Square>| Hello::new(&bench.prepared(), &bench.keys, 1, engine);
    let (own, other) = (hello(&new).unwrap(), hello(&old).unwrap());
    worker.outbox().send(0, Kind::Hello, 0, other.encode());
    let (role, schedule) = (RootRole::Coordinates, Scheduling::Dynamic);
    let error = RankEngine::start(root, pool(1), &own, role, schedule).unwrap_err();
    let RankError::Handshake { differences } = &error else { panic!("{error}") };
    let named = |what: &str| differences.iter().filter(|d| d.contains(what)).count();
    assert_eq!((named("digest of type 'square'"), named("verifying key")), (1, 1), "{error}");
    assert_eq!((named("digest of type 'copy'"), named("layout")), (0, 0), "{error}");
    // The rank is released.
    assert!(matches!(worker.receive(Duration::ZERO), Ok(Some((0, f, _))) if f.kind == Kind::End));
}

/// Messages by receiver.
pub(super) type Sent = Arc<Mutex<Vec<(usize, Vec<u8>)>>>;

/// A network of threads that records what rank 0 sends to each rank.
pub(super) fn recorded_network(size: usize, sent: &Sent) -> Vec<Endpoint> {
    let inboxes: Arc<OnceLock<Vec<std::sync::mpsc::Sender<Incoming>>>> = Arc::default();
    let end = |rank: usize| {
        let (inboxes, sent) = (inboxes.clone(), sent.clone());
        Endpoint::new(rank, size, move |to, bytes| {
            if rank == 0 {
                sent.lock().unwrap().push((to, bytes.clone()));
            }
            let _ = inboxes.get().unwrap()[to].send(Incoming::Message { from: rank, bytes });
        })
    };
    let (ends, all): (Vec<_>, Vec<_>) = (0..size).map(end).unzip();
    inboxes.set(all).unwrap();
    ends
}

/// Adversarial test of AUDIT F7: no message has the seed of the run or the digest of its execution,
/// and a rank receives the secrets of the subcircuits that it proves and of no others. Guards: jobs
/// carry sub-seeds, and the start of a run nothing.
#[test]
fn f7_ranks_get_the_secrets_of_their_own_subcircuits() {
    let bench = bench(9);
    let randomness = Randomness::fresh().unwrap();
    let (events, sent) = (Mutex::new(Vec::new()), Arc::default());
    let recorder =
        Recorder::new("test", |record: &Record| events.lock().unwrap().push(record.event.clone()));
    let options = ProveOptions::new().randomness(randomness.clone()).recorder(&recorder);
    // A second attempt draws new secrets from the same seed: they must stay apart as well.
    let input = Fr::from(INPUT);
    let circuit = bench.with_input(&input);
    let cheater = Cheater::new(&bench, &input);
    let (value, address) = (cheater.values[2][1], cheater.slots[2][1].address);
    let b = Fr::from(10u64);
    let pole = MemoryChallenges::new(-(value + b * Fr::from(address)), b);
    let sponge = |attempt| -> Box<dyn Sponge> {
        if attempt == 1 { Box::new(Poled::new(pole)) } else { Box::new(Merlin::new()) }
    };
    let (ends, schedule) = (recorded_network(3, &sent), Scheduling::Static);
    let run = run_over(
        ends,
        &bench,
        &Fr::from(INPUT),
        &[0, 1, 1],
        schedule.into(),
        &options,
        &sponge,
        &|_, end, work| work(&end),
    );
    let run = run.unwrap();
    assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
    let mut rank_of = std::collections::BTreeMap::new();
    let mut restarts = 0;
    for event in events.lock().unwrap().iter() {
        match event {
            Event::Subcircuit { phase: Phase::Commit, instance, prover, .. } => {
                let rank = if prover.starts_with("rank 1 ") { 1 } else { 2 };
                // With static scheduling, both attempts deal the same subcircuits to each rank.
                assert!([None, Some(rank)].contains(&rank_of.insert(*instance as usize, rank)));
            }
            Event::Restart { .. } => restarts += 1,
            _ => {}
        }
    }
    assert_eq!((rank_of.len(), restarts), (9, 1));
    assert!([1, 2].iter().all(|rank| rank_of.values().any(|of| of == rank)));
    let sent = sent.lock().unwrap();
    let receivers = |needle: &[u8; 32]| -> Vec<usize> {
        let has = |(_, bytes): &&(usize, Vec<u8>)| bytes.windows(32).any(|part| part == needle);
        let mut to: Vec<usize> = sent.iter().filter(has).map(|(to, _)| *to).collect();
        to.dedup();
        to
    };
    assert_eq!(receivers(randomness.secret_seed()), [0; 0], "the seed");
    let coordinator = Coordinator::new(&circuit, &bench.keys, &bench.engine, 2).unwrap();
    assert_eq!(receivers(&coordinator.execution_digest()), [0; 0], "the digest");
    let key = bench.keys.verifying.digest();
    for randomness in [randomness.clone(), randomness.next_attempt()] {
        for (instance, rank) in &rank_of {
            let secret = randomness.of_instance(&key, *instance);
            assert_eq!(receivers(secret.secret_bytes()), [*rank], "subcircuit {instance}");
        }
    }
}

/// A claim that a subcircuit hits a pole costs an attempt, so it is checked (AUDIT nit 7): a false
/// one ends the run with the name of the rank, in either round; one about another rank's subcircuit
/// is a wrong message. Guards: `Attempt::check_pole`, and the look at what the rank was asked for.
#[test]
fn false_poles_are_named() {
    let bench = bench(5);
    let [plain, slices, ..] = Design::all(Scheduling::Dynamic);
    let claim = |design: Design, kind: Kind, instance: Option<usize>| {
        tampered_in(design, &bench, &[0, 1, 1], move |rank, frame| {
            if rank != 2 || frame.kind != kind {
                return vec![frame];
            }
            // The first number of an answer after the prover and its times is the instance.
            let own = u32::from_le_bytes(frame.content[TIMES..][..4].try_into().unwrap()) as usize;
            let instance = instance.unwrap_or(own);
            let content = Writer::default().count(instance).u32(super::serve::POLE).text("").0;
            vec![Frame { kind: Kind::Failed, content, ..frame }]
        })
    };
    let rounds = [Kind::Committed, Kind::Proven];
    for (design, kind) in [plain, slices].into_iter().flat_map(|d| rounds.map(|kind| (d, kind))) {
        let (run, events) = claim(design, kind, None);
        let error = run.unwrap_err();
        assert!(
            matches!(&error, ProveError::FalsePole { by, .. } if by.contains("rank 2 on ")),
            "{kind:?}: {error}"
        );
        assert!(error.to_string().contains("but does not"), "{error}");
        assert!(!events.iter().any(|e| matches!(e, Event::Restart { .. })), "{kind:?}");
    }
    // An instance of rank 1, or of nobody. With fixed shares it is the same in each run.
    let [fixed, ..] = Design::all(Scheduling::Static);
    let (_, events) = tampered_in(fixed, &bench, &[0, 1, 1], |_, frame| vec![frame]);
    let of_rank_1 = events.iter().find_map(|event| match event {
        Event::Subcircuit { instance, prover, .. } if prover.starts_with("rank 1 ") => {
            Some(*instance as usize)
        }
        _ => None,
    });
    for instance in [of_rank_1.unwrap(), 77] {
        for kind in [Kind::Committed, Kind::Proven] {
            let error = claim(fixed, kind, Some(instance)).0.unwrap_err().to_string();
            assert!(
                error.contains("rank 2 sent a wrong message")
                    && error.contains("which it was not asked for"),
                "{error}"
            );
        }
    }
}

/// A true pole at a subcircuit of a rank restarts the run.
#[test]
fn true_poles_restart() {
    let bench = bench(5);
    let input = Fr::from(INPUT);
    let cheater = Cheater::new(&bench, &input);
    let b = Fr::from(10u64);
    let at = |i: usize| -(cheater.values[i][1] + b * Fr::from(cheater.slots[i][1].address));
    // Written by subcircuit 2, and read by the next one.
    let pole = MemoryChallenges::new(at(2), b);
    let sponge = |attempt| -> Box<dyn Sponge> {
        if attempt == 1 { Box::new(Poled::new(pole)) } else { Box::new(Merlin::new()) }
    };
    let events = Mutex::new(Vec::new());
    let recorder =
        Recorder::new("test", |record: &Record| events.lock().unwrap().push(record.event.clone()));
    let options = ProveOptions::new().recorder(&recorder);
    let (ends, schedule) = (Endpoint::network(3), Scheduling::Dynamic);
    let run = run_over(
        ends,
        &bench,
        &Fr::from(INPUT),
        &[0, 1, 1],
        schedule.into(),
        &options,
        &sponge,
        &|_, end, work| work(&end),
    );
    let run = run.unwrap();
    assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
    let events = events.lock().unwrap();
    assert!(events.iter().any(|e| matches!(e, Event::Restart { attempt: 2 })));
    assert!(notices(&events).contains("pole"), "{events:?}");
}
