//! Ranks that answer wrongly, panic, or are lost: what they did is repaired or named (spec: distributed#blame).

use super::*;

fn change_proof(frame: &mut Frame, change: impl Fn(&mut ProofResponse)) {
    let mut answered = Answered::<ProofResponse>::decode(&frame.content).unwrap();
    change(&mut answered.answer);
    frame.content = answered.encode();
}

/// Adversarial test 49: a wrong C is found after the aggregation, the proof is recomputed, and the
/// rank is named.
#[test]
fn a49_a_wrong_proof_is_made_again_and_its_rank_named() {
    let bench = bench(5);
    for design in Design::all(Scheduling::Static) {
        let (run, events) = tampered_in(design, &bench, &[0, 1, 1, 1], |rank, mut frame| {
            if rank == 2 && frame.kind == Kind::Proven {
                change_proof(&mut frame, |r| r.proof.c = r.proof.c.add(&G1Point::generator()));
            }
            vec![frame]
        });
        assert_eq!(run.unwrap().proof.as_bytes(), local(&bench).proof.as_bytes(), "{design:?}");
        let said = notices(&events);
        assert!(
            said.contains("were wrong and have been recomputed") && said.contains("(by rank 2 on "),
            "{said}"
        );
        assert!(!said.contains("by rank 1") && !said.contains("by rank 3"), "{said}");
    }
}

/// Adversarial test 49: a wrong D moves the challenges, so everything restarts, and the rank is
/// named. The run gives up on a rank that always lies.
#[test]
fn a49_a_stale_commitment_is_named() {
    let bench = bench(5);
    let lies = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let runs = Design::all(Scheduling::Static)
        .into_iter()
        .flat_map(|design| [(1, true, design), (usize::MAX, false, design)]);
    for (most, ends_well, design) in runs {
        let lies = lies.clone();
        lies.store(0, std::sync::atomic::Ordering::SeqCst);
        let (run, events) = tampered_in(design, &bench, &[0, 1, 1, 1], move |rank, mut frame| {
            let lie = rank == 2 && frame.kind == Kind::Committed;
            if lie && lies.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < most {
                let mut answered = Answered::<Commitment>::decode(&frame.content).unwrap();
                answered.answer.d = G1Point::generator();
                frame.content = answered.encode();
            }
            vec![frame]
        });
        let said = notices(&events);
        assert!(said.contains("(by rank 2 on ") && said.contains("was wrong"), "{said}");
        assert_eq!(run.is_ok(), ends_well);
        if let Err(error) = run {
            assert!(
                matches!(&error, ProveError::WrongCommitment { by, .. } if by.contains("rank 2")),
                "{error}"
            );
        }
    }
}

/// A rank that conceals what its subcircuits look up makes tables commit to other multiplicities: the run
/// starts again with what rank 0 counts. Look-ups in rows that no table has are refused.
#[test]
fn wrong_look_ups_are_counted_again() {
    let digits = (0..6).map(|i| i * i % BASE).collect();
    let input = Digits { digits, asked: 4, clear: true };
    let histogram = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    let bench = Bench::new(histogram, true);
    let other = LookUps::decode(&[1, 100, 0, 1]).unwrap();
    for (lie, ends_well) in [(LookUps::default(), true), (other, false)] {
        let design = Scheduling::Static.into();
        let (run, events) =
            tampered_run(design, &bench, &input, &[0, 1, 1], move |rank, mut frame| {
                if rank == 2 && frame.kind == Kind::Committed {
                    let mut answered = Answered::<Commitment>::decode(&frame.content).unwrap();
                    if !answered.look_ups.is_empty() {
                        answered.look_ups = lie.clone();
                        frame.content = answered.encode();
                    }
                }
                vec![frame]
            });
        let said = notices(&events);
        assert_eq!(said.contains("look-ups were counted wrongly"), ends_well, "{said}");
        match run {
            Ok(run) => {
                assert!(ends_well);
                verify(&bench.keys.verifying, &run.public_values, run.proof.as_bytes()).unwrap();
            }
            Err(error) => {
                assert!(!ends_well, "{error}");
                let error = error.to_string();
                assert!(error.contains("look-ups of subcircuit"), "{error}");
                assert!(error.contains("(by rank 2 on"), "{error}");
            }
        }
    }
}

/// Adversarial test 49: answers that were not asked for are refused with the name of the rank; two
/// swapped answers among those that were asked for are found after the aggregation.
#[test]
fn a49_swapped_indices_are_named() {
    let bench = bench(5);
    let (run, _) = tampered(&bench, &[0, 1, 1], |rank, mut frame| {
        if rank == 2 && frame.kind == Kind::Proven {
            change_proof(&mut frame, |r| r.instance = 4 - r.instance.min(4) + 7);
        }
        vec![frame]
    });
    let error = run.unwrap_err().to_string();
    assert!(
        error.contains("rank 2 sent a wrong message")
            && error.contains("which it was not asked for"),
        "{error}"
    );

    let held = Arc::new(Mutex::new(None::<Frame>));
    let (run, events) = tampered(&bench, &[0, 1], move |_, mut frame| {
        if frame.kind != Kind::Proven {
            return vec![frame];
        }
        let mut held = held.lock().unwrap();
        match held.take() {
            // The first waits for the second, and they swap indices.
            None if Answered::<ProofResponse>::decode(&frame.content).unwrap().answer.instance
                < 2 =>
            {
                *held = Some(frame);
                Vec::new()
            }
            Some(mut first) => {
                let instance = |frame: &Frame| {
                    Answered::<ProofResponse>::decode(&frame.content).unwrap().answer.instance
                };
                let (a, b) = (instance(&first), instance(&frame));
                change_proof(&mut first, |r| r.instance = b);
                change_proof(&mut frame, |r| r.instance = a);
                vec![first, frame]
            }
            None => vec![frame],
        }
    });
    assert_eq!(run.unwrap().proof.as_bytes(), local(&bench).proof.as_bytes());
    assert!(notices(&events).contains("(by rank 1 on "), "{events:?}");
}

/// A point off the curve, a truncated message, or one of another kind: the rank is named.
#[test]
fn malformed_answers_name_the_rank() {
    let bench = bench(5);
    type Change = fn(&mut Frame);
    // After prover and times, the instance, and then the first point.
    const POINT: usize = TIMES + 8;
    let cases: [(Kind, Change, &str); 9] = [
        (Kind::Committed, |f| f.content[POINT] = 0, "D at byte 8"),
        (Kind::Proven, |f| f.content[POINT] = 0, "A at byte 8"),
        (
            Kind::Committed,
            |f| f.content[POINT..][..48].copy_from_slice(&outside_the_subgroup().0.to_compressed()),
            "not in the subgroup",
        ),
        (
            Kind::Proven,
            |f| f.content[POINT..][..48].copy_from_slice(&outside_the_subgroup().0.to_compressed()),
            "not in the subgroup",
        ),
        (
            Kind::Proven,
            |f| {
                let b = outside_the_subgroup().1.to_compressed();
                f.content[POINT + 48..][..96].copy_from_slice(&b);
            },
            "not in the subgroup",
        ),
        (Kind::Proven, |f| f.content.truncate(100), "bytes needed"),
        (Kind::Proven, |f| f.kind = Kind::Committed, "Committed in the prove round"),
        (Kind::Part, |f| f.content.truncate(100), "bytes needed"),
        (Kind::Part, |f| f.content[..48].fill(0xff), "unreduced coordinate"),
    ];
    let [plain, .., leaders] = Design::all(Scheduling::Static);
    let runs = cases.into_iter().flat_map(|case| [(case, plain), (case, leaders)]);
    for ((kind, change, says), design) in runs {
        let (run, _) = tampered_in(design, &bench, &[0, 1, 1, 1], move |rank, mut frame| {
            if rank == 2 && frame.kind == kind {
                change(&mut frame);
            }
            vec![frame]
        });
        let error = run.unwrap_err().to_string();
        assert!(
            error.contains("rank 2 sent a wrong message") && error.contains(says),
            "{says}: {design:?}: {error}"
        );
    }
    // Damage in transit.
    assert_eq!(
        Frame::from_bytes(vec![0; 3]).unwrap_err().to_string(),
        "3 bytes, but a message has at least 24"
    );
}

/// A wrong cm_D, under whose challenges all proofs were made: everything restarts with new
/// randomness, because the old randomness must not be used under a second pair of challenges.
#[test]
fn a_wrong_commitment_to_all_begins_again() {
    let bench = bench(20);
    let lied = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (run, events) = tampered(&bench, &[0, 1, 1], move |rank, mut frame| {
        if rank == 2
            && frame.kind == Kind::Part
            && !lied.swap(true, std::sync::atomic::Ordering::SeqCst)
        {
            frame.content[..48].copy_from_slice(&[1; 48]);
        }
        vec![frame]
    });
    let run = run.unwrap();
    verify(&bench.keys.verifying, &run.public_values, run.proof.as_bytes()).unwrap();
    assert_ne!(
        run.proof.as_bytes(),
        local(&bench).proof.as_bytes(),
        "the randomness of the second attempt"
    );
    assert!(notices(&events).contains("and therefore the challenges"), "{events:?}");
    assert!(events.iter().any(|e| matches!(e, Event::Restart { attempt: 2 })));
}

/// A rank whose listener panics is reported as lost; nothing hangs.
#[test]
fn a_rank_that_panics_does_not_hang() {
    let bench = bench(20);
    let options = ProveOptions::new();
    let run = run_with(&bench, &[0, 1, 1], Scheduling::Dynamic, &options, &|rank, end, work| {
        if rank == 1 {
            return work(&end);
        }
        let end = end.tampering(|frame| {
            assert_ne!(frame.kind, Kind::Part, "a panic of this test");
            vec![frame]
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&end)));
        assert!(ended.is_err());
    });
    let error = run.unwrap_err().to_string();
    assert!(error.contains("rank 2 is lost"), "{error}");
}

/// A rank that computes a wrong part of the aggregation does not spoil the proof.
#[test]
fn a_wrong_part_of_the_aggregation_is_made_again() {
    let bench = bench(20);
    let (run, events) = tampered(&bench, &[0, 1, 1], |rank, mut frame| {
        if rank == 2 && frame.kind == Kind::Part && frame.content.len() == 6 * 576 {
            frame.content.rotate_left(576);
        }
        vec![frame]
    });
    assert_eq!(run.unwrap().proof.as_bytes(), local(&bench).proof.as_bytes());
    assert!(notices(&events).contains("rank 0 repeats the aggregation alone"));
}

/// A lost rank ends the run in every phase, and is named.
#[test]
fn a_lost_rank_is_named_in_every_phase() {
    let bench = bench(9);
    for kind in [Kind::Hello, Kind::Committed, Kind::Proven, Kind::Part, Kind::Accounted] {
        let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(3));
        let root = Mutex::new(None);
        let lost = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let run = {
            let mut ends = Endpoint::network(2).into_iter();
            let (coordinator, worker) = (ends.next().unwrap(), ends.next().unwrap());
            *root.lock().unwrap() = Some(coordinator.inbox());
            let circuit = bench.prepared();
            let hello = || Hello::new(&circuit, &bench.keys, 1, &bench.engine).unwrap();
            std::thread::scope(|scope| {
                let (root, lost) = (root.lock().unwrap().take().unwrap(), lost.clone());
                let (bench, circuit, hello) = (&bench, &circuit, &hello);
                scope.spawn(move || {
                    let end = worker.tampering(move |frame| {
                        if frame.kind == kind || lost.load(std::sync::atomic::Ordering::SeqCst) {
                            lost.store(true, std::sync::atomic::Ordering::SeqCst);
                            let _ = root.send(Incoming::Lost { rank: 1, why: "silent".into() });
                            return Vec::new();
                        }
                        vec![frame]
                    });
                    let (pool, keys) = (pool(1), &bench.keys);
                    serve(
                        &end,
                        &Serve {
                            circuit,
                            keys,
                            pool: &pool,
                            accelerators: None,
                            hello: hello(),
                            failed: &|_| {},
                        },
                    )
                });
                let engine = RankEngine::start(
                    coordinator,
                    pool(1),
                    &hello(),
                    RootRole::Coordinates,
                    Scheduling::Dynamic,
                );
                let engine = engine.map_err(ProveError::from_rank)?;
                prove(&bench.circuit, &Fr::from(INPUT), &bench.keys, &engine, &options).map(drop)
            })
        };
        let error = run.unwrap_err();
        let rank = CoordinatorError::Rank(RankError::Lost { rank: 1, why: "silent".into() });
        assert_eq!(error.to_string(), rank.to_string(), "{kind:?}");
    }
}

/// Ranks with other keys or another program are refused before any work starts.
#[test]
fn the_handshake_names_what_differs() {
    let bench = bench(3);
    let options = ProveOptions::new();
    let run = run_with(&bench, &[0, 1, 1], Scheduling::Dynamic, &options, &|rank, end, _| {
        let pool = pool(1);
        let circuit = bench.prepared();
        let hello = Hello::new(&circuit, &bench.keys, 1, &pool).unwrap();
        let hello = if rank == 2 {
            Hello { facts: vec![("verifying key".into(), "abc".into())], ..hello }
        } else {
            hello
        };
        let served = serve(
            &end,
            &Serve {
                circuit: &circuit,
                keys: &bench.keys,
                pool: &pool,
                accelerators: None,
                hello,
                failed: &|_| {},
            },
        );
        assert_eq!(served, Ok(()));
    });
    let error = run.unwrap_err().to_string();
    assert!(error.contains("rank 2 on ") && error.contains("verifying key is abc"), "{error}");
    assert!(error.contains("does not report its layout") && !error.contains("rank 1"), "{error}");
}

/// A rank that cannot do a job is reported with its reason.
#[test]
fn a_rank_that_can_not_do_a_job_says_why() {
    let bench = bench(3);
    let (run, _) = tampered(&bench, &[0, 1], |_, mut frame| {
        if frame.kind == Kind::Committed {
            // As if a job had failed.
            frame = Frame {
                kind: Kind::Failed,
                content: Writer::default().u32(2).u32(2).text("why").0,
                ..frame
            };
        }
        vec![frame]
    });
    let error = run.unwrap_err().to_string();
    assert!(error.contains("rank 1 on ") && error.ends_with(": why"), "{error}");
}
