//! Slices and leaders: what ranks report about values that rank 0 does not have, what travels, and
//! leaders that fail.

use super::super::groups::{pack, unpack};
use super::super::jobs::{Decoder, Taken, encode_taken};
use super::super::message::{Executed as Told, Revoke};
use super::*;
use crate::encoding::Reader;
use hekaton_circuit::{
    Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, Masking, PreparedCircuit,
    Subcircuit, WireId, WireValues,
};
use hekaton_testing::Root;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// Every rank executes its slice, without leaders and with them.
fn on_ranks(schedule: Scheduling) -> [Design; 2] {
    let [_, slices, _, both] = Design::all(schedule);
    [slices, both]
}

/// A rank that has another input has other values: it is named before anything is proven.
#[test]
fn a_rank_with_other_values_is_named() {
    let bench = bench(9);
    for design in on_ranks(Scheduling::Dynamic) {
        let options = ProveOptions::new();
        let answered = AtomicUsize::new(0);
        let run = run_with(&bench, &[0, 1, 1, 1], design, &options, &|rank, end, work| {
            if rank != 2 {
                return work(&end);
            }
            let other = Fr::from(INPUT + 1);
            let circuit = bench.with_input(&other);
            let (pool, keys) = (pool(1), &bench.keys);
            let hello = Hello::new(&circuit, keys, 1, &pool).unwrap();
            let serve_one = Serve {
                circuit: &circuit,
                keys,
                pool: &pool,
                accelerators: None,
                hello,
                failed: &|_| {},
            };
            assert_eq!(serve(&end, &serve_one), Ok(()));
            answered.fetch_add(1, SeqCst);
        });
        let error = run.unwrap_err();
        let is_it = |error: &ProveError| {
            let ProveError::Coordinator(CoordinatorError::Rank(error)) = error else {
                return false;
            };
            matches!(error, RankError::Values { rank: 2, instance: 3, .. })
        };
        assert!(is_it(&error), "{design:?}: {error}");
        assert!(error.to_string().contains("other values of subcircuit 3"), "{error}");
        assert_eq!(answered.load(SeqCst), 1, "the rank is released");
    }
}

/// A rank's report on its slice is checked; each wrong statement names the rank.
#[test]
fn wrong_statements_about_a_slice_are_named() {
    let bench = bench(12);
    type Change = fn(&mut Told);
    let cases: [(Change, &str); 6] = [
        (|told| told.summary.balance ^= 1, "a balance of other values"),
        (|told| told.summary.digests.truncate(1), "1 digests for"),
        (
            |told| told.summary.public.push((2, Fr::from(1u64))),
            "public value 2, of which there are 2",
        ),
        (
            |told| told.summary.public.iter_mut().for_each(|(_, v)| *v += Fr::from(1u64)),
            "public values",
        ),
        (|told| told.summary.public.clear(), "public values"),
        (|told| told.times.seconds = f64::NAN, "not a finite"),
    ];
    for (change, says) in cases {
        for design in on_ranks(Scheduling::Dynamic) {
            let (run, _) = tampered_in(design, &bench, &[0, 1, 1, 1, 1], move |rank, mut frame| {
                if rank == 4 && frame.kind == Kind::Executed {
                    let mut told = Told::decode(&frame.content).unwrap();
                    change(&mut told);
                    frame.content = told.encode();
                }
                vec![frame]
            });
            let error = run.map(drop).unwrap_err().to_string();
            assert!(error.contains("rank 4") && error.contains(says), "{says}: {error}");
        }
    }
    let twice = |rank, frame: Frame| match frame.kind {
        Kind::Executed if rank == 1 => vec![frame.clone(), frame],
        Kind::Executed => {
            std::thread::sleep(Duration::from_millis(50));
            vec![frame]
        }
        _ => vec![frame],
    };
    let (run, _) = tampered_in(on_ranks(Scheduling::Dynamic)[0], &bench, &[0, 1, 1], twice);
    let error = run.map(drop).unwrap_err().to_string();
    assert!(error.contains("rank 1 sent a wrong message"), "{error}");
}

/// Rank 0 asks for a slice of the layout, or the rank refuses.
#[test]
fn slices_are_of_the_layout() {
    use super::super::message::Execute;
    let good = Execute { range: 1..3, key: [7; 32] };
    assert_eq!(Execute::decode(&good.encode(), 3), Ok(good.clone()));
    assert!(Execute::decode(&good.encode(), 2).is_err());
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let reversed = Execute { range: 3..1, key: [7; 32] };
    assert!(Execute::decode(&reversed.encode(), 3).is_err());
    let revoke = Revoke { most: 5, with_values: true };
    assert_eq!(Revoke::decode(&revoke.encode()), Ok(revoke));
}

/// A rank without the input cannot execute its slice, and says so.
#[test]
fn a_rank_without_input_says_so() {
    let bench = bench(5);
    let options = ProveOptions::new();
    let [design, _] = on_ranks(Scheduling::Dynamic);
    let run = run_with(&bench, &[0, 1, 1], design, &options, &|rank, end, work| {
        if rank == 1 {
            return work(&end);
        }
        let (pool, keys, circuit) = (pool(1), &bench.keys, bench.prepared());
        let hello = Hello::new(&circuit, keys, 1, &pool).unwrap();
        let served = Serve {
            circuit: &circuit,
            keys,
            pool: &pool,
            accelerators: None,
            hello,
            failed: &|_| {},
        };
        assert_eq!(serve(&end, &served), Ok(()));
    });
    let error = run.unwrap_err().to_string();
    assert!(error.contains("rank 2 on ") && error.contains("without an input"), "{error}");
}

/// The squares, but with other values where a range does not begin at the first instance.
struct Odd(Squares);

impl Circuit for Odd {
    type Input = Fr;
    type Plan = Vec<Option<WireId>>;
    type Trace = ();
    type Private = Root;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Self::Plan, LayoutError> {
        self.0.layout(layout)
    }

    fn execute(
        &self,
        plan: &Self::Plan,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        self.0.execute(plan, input, values)
    }

    fn execute_range(
        &self,
        plan: &Self::Plan,
        input: &Fr,
        instances: Range<usize>,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        self.0.execute(plan, &(*input + Fr::from(u64::from(instances.start > 0))), values)
    }

    fn private_input(
        &self,
        plan: &Self::Plan,
        input: &Fr,
        trace: &(),
        instance: InstanceId,
    ) -> Result<Root, CircuitError> {
        self.0.private_input(plan, input, trace, instance)
    }

    fn synthesize(
        &self,
        plan: &Self::Plan,
        subcircuit: &Subcircuit,
        private: Option<&Root>,
    ) -> Result<(), ark_relations::gr1cs::SynthesisError> {
        self.0.synthesize(plan, subcircuit, private)
    }
}

/// A circuit whose values depend on the range is reported, with the wire, and no rank is blamed.
#[test]
fn a_circuit_that_executes_ranges_differently_is_named() {
    let bench = Bench::new(Odd(Squares::new(&[0; 6])), true);
    let input = Fr::from(INPUT);
    let circuit = bench.with_input(&input);
    let mut ends = Endpoint::network(3).into_iter();
    let (root, own) = (ends.next().unwrap(), pool(1));
    let hello = || Hello::new(&circuit, &bench.keys, 1, &own).unwrap();
    let error = std::thread::scope(|scope| {
        for end in ends {
            let (circuit, keys, pool, hello) = (&circuit, &bench.keys, &*own, hello());
            scope.spawn(move || {
                serve(
                    &end,
                    &Serve { circuit, keys, pool, accelerators: None, hello, failed: &|_| {} },
                )
            });
        }
        let (role, schedule) = (RootRole::Coordinates, Scheduling::Dynamic);
        let engine = RankEngine::start(root, pool(1), &hello(), role, schedule).unwrap();
        let engine = engine.executes(Executes::Ranks);
        crate::protocol::prove_prepared(&circuit, &bench.keys, &engine, &ProveOptions::new())
    });
    let error = error.unwrap_err();
    let ProveError::Coordinator(CoordinatorError::Slices { instance: 3, range, .. }) = &error
    else {
        panic!("{error}")
    };
    assert_eq!(*range, 3..6);
    assert!(error.to_string().contains("execute_range of 3..6 has another value of w["), "{error}");
}

/// The coordinator sends ranks that executed their slices no value of a wire, only secrets; a rank
/// that takes over a subcircuit gets its values from the one that gave it up.
#[test]
fn values_travel_only_with_subcircuits_that_move() {
    let bench = bench(24);
    let expected = local(&bench);
    let input = Fr::from(INPUT);
    let circuit: PreparedCircuit<'_> = bench.with_input(&input);
    let execution = circuit.execute().unwrap();
    let values: std::collections::BTreeSet<Vec<u8>> = (bench.layout.instance_ids())
        .flat_map(|id| execution.values.slots(&bench.layout, id))
        .map(|value| hekaton_arith::fr_to_bytes(&value).to_vec())
        // Short ones are in messages by chance: the last byte of a coordinate, and zeros behind it.
        .filter(|bytes| bytes[8..] != [0; 24])
        .collect();
    let carries = |bytes: &[u8]| bytes.windows(32).any(|part| values.contains(part));
    for (design, moves) in
        [(on_ranks(Scheduling::Static)[0], false), (on_ranks(Scheduling::Dynamic)[0], true)]
    {
        let sent: trust::Sent = Arc::default();
        let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(3));
        let ends = trust::recorded_network(3, &sent);
        let sponge = |_| -> Box<dyn Sponge> { Box::new(Merlin::new()) };
        let run = run_over(
            ends,
            &bench,
            &Fr::from(INPUT),
            &[0, 1, 1],
            design,
            &options,
            &sponge,
            &|rank, end, work| {
                // One rank is slow, so that the other takes over some of its subcircuits.
                let slow = end.tampering(move |frame| {
                    if moves && rank == 1 && [Kind::Committed, Kind::Proven].contains(&frame.kind) {
                        std::thread::sleep(Duration::from_millis(30));
                    }
                    vec![frame]
                });
                work(&slow);
            },
        );
        assert_eq!(run.unwrap().proof.as_bytes(), expected.proof.as_bytes());
        let sent = sent.lock().unwrap();
        let kind = |bytes: &[u8]| Frame::kind_of(bytes).unwrap();
        let with_values = sent.iter().filter(|(_, bytes)| carries(bytes)).count();
        let whole = [Kind::CommitJobs as u16, Kind::ProveJobs as u16];
        let jobs = sent.iter().filter(|(_, bytes)| whole.contains(&kind(bytes))).count();
        assert_eq!((with_values > 0, jobs > 0), (moves, moves), "{with_values} {jobs}");
        assert!(with_values <= jobs, "{with_values} {jobs}");
    }
}

/// A rank that gives up a subcircuit with other values than those it executed is named, and not the
/// rank that would have proven it.
#[test]
fn wrong_values_of_a_subcircuit_that_moves_are_named() {
    let bench = bench(24);
    let [design, _] = on_ranks(Scheduling::Dynamic);
    let lied = Arc::new(AtomicBool::new(false));
    let told = lied.clone();
    let input = Fr::from(INPUT);
    let circuit = Arc::new(Squares::new(&(0..24).map(|i| (i * i) % 3 % 2).collect::<Vec<_>>()));
    let (run, _) = tampered_in(design, &bench, &[0, 1, 1], move |rank, mut frame| {
        if rank == 1 && [Kind::Committed, Kind::Proven].contains(&frame.kind) {
            std::thread::sleep(Duration::from_millis(30));
        }
        if rank != 1 || frame.kind != Kind::Revoked {
            return vec![frame];
        }
        let circuit = PreparedCircuit::with_input(&*circuit, &input).unwrap();
        let decoder = Decoder { circuit: &circuit, masking: Masking::Unmasked };
        let mut reader = Reader::new(&frame.content);
        let (n, _) = (reader.count(4, "n").unwrap(), reader.u32("with values").unwrap());
        let mut out = Writer::default().count(n).u32(1);
        for _ in 0..n {
            let instance = decoder.instance(&mut reader).unwrap();
            let Taken { mut values, private } = decoder.taken(&mut reader, instance).unwrap();
            values[0] += Fr::from(1u64);
            told.store(true, SeqCst);
            out = encode_taken(out.count(instance), &Taken { values, private }, &circuit).unwrap();
        }
        frame.content = out.0;
        vec![frame]
    });
    assert!(lied.load(SeqCst), "no subcircuit moved");
    let error = run.unwrap_err().to_string();
    assert!(
        error.contains("rank 1 sent a wrong message")
            && error.contains("other values of subcircuit"),
        "{error}"
    );
}

/// A rank gives back only what it was asked for, and with values if it was asked for them.
#[test]
fn what_was_not_asked_for_is_refused() {
    let bench = bench(24);
    let returned = |n: usize, flag: u32| Writer::default().count(n).u32(flag).0;
    type Change = fn(&Frame, Vec<u8>) -> Vec<Frame>;
    let unasked: Change = |frame, content| {
        vec![Frame { kind: Kind::Revoked, content, ..frame.clone() }, frame.clone()]
    };
    let instead: Change =
        |frame, content| vec![Frame { kind: Kind::Revoked, content, ..frame.clone() }];
    let cases = [
        (Kind::Committed, returned(0, 0), unasked, "was not asked for any"),
        (Kind::Proven, returned(0, 1), unasked, "was not asked for any"),
        (Kind::Revoked, returned(0, 0), instead, "without values, or with them"),
        (Kind::Revoked, returned(0, 2), instead, "whether with values"),
    ];
    for (kind, content, change, says) in cases {
        let error_of_a_run = || {
            let [design, _] = on_ranks(Scheduling::Dynamic);
            let (done, content) = (Arc::new(AtomicBool::new(false)), content.clone());
            let (run, _) = tampered_in(design, &bench, &[0, 1, 1], move |rank, frame| {
                if rank == 1 && [Kind::Committed, Kind::Proven].contains(&frame.kind) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                if rank != 1 || frame.kind != kind || done.swap(true, SeqCst) {
                    return vec![frame];
                }
                change(&frame, content.clone())
            });
            run.map(drop).unwrap_err().to_string()
        };
        // On a busy machine, rank 0 may have asked by then, and miss the subcircuits.
        let asked = |error: &String| error.contains("without values, or with them");
        let mut errors = std::iter::repeat_with(error_of_a_run).take(10);
        let error = errors.find(|error| kind == Kind::Revoked || !asked(error));
        let error = error.expect("rank 0 has asked in each run");
        assert!(
            error.contains("rank 1 sent a wrong message") && error.contains(says),
            "{says}: {error}"
        );
    }
}

/// The private input of a subcircuit that moves has no digest: if the rank that takes it over fails,
/// the one that gave it is named, too.
#[test]
fn the_giver_of_a_private_input_is_named() {
    let bench = bench(24);
    let [design, _] = on_ranks(Scheduling::Dynamic);
    let (run, _) = tampered_in(design, &bench, &[0, 1, 1], |rank, frame| {
        let is_answer = [Kind::Committed, Kind::Proven].contains(&frame.kind);
        if rank == 1 && is_answer {
            std::thread::sleep(Duration::from_millis(30));
        }
        if rank != 2 || !is_answer {
            return vec![frame];
        }
        // The second slice is 12..24.
        match u32::from_le_bytes(frame.content[20..24].try_into().unwrap()) {
            moved @ 0..12 => {
                let content = Writer::default().u32(moved).u32(2).text("unsatisfied").0;
                vec![Frame { kind: Kind::Failed, content, ..frame }]
            }
            _ => vec![frame],
        }
    });
    let error = run.map(drop).unwrap_err().to_string();
    assert!(error.contains("rank 2 on "), "{error}");
    assert!(error.contains("unsatisfied (its private input came from rank 1 on "), "{error}");
}

/// A rank compares the values of each job with what it reported: a fault of its memory would
/// otherwise make every attempt fail, or make rank 0 draw masks for other values.
#[test]
fn values_that_changed_in_memory_are_noticed() {
    use super::super::jobs::Slice;
    use crate::protocol::executed::{digest_of, instance_id};
    let bench = bench(4);
    let input = Fr::from(INPUT);
    let circuit = bench.with_input(&input);
    let execution = circuit.execute_range(1..3).unwrap();
    let digest = |i| digest_of(&execution.values.slots(&bench.layout, instance_id(i)));
    let digests = vec![digest(1), [5; 32]];
    let slice = Slice { range: 1..3, execution, digests };
    assert!(slice.take(&circuit, 1).is_ok());
    let error = slice.take(&circuit, 2).map(drop).unwrap_err();
    assert!(error.contains("instance 2") && error.contains("its memory is faulty"), "{error}");
    for outside in [0, 3] {
        let error = slice.take(&circuit, outside).map(drop).unwrap_err();
        assert!(error.contains("not in the slice"), "{error}");
    }
}

/// The values that rank 0 computes again must be those that the rank reported; otherwise no rank
/// may be blamed.
#[test]
fn rank_0_compares_what_it_executes_again() {
    use crate::protocol::coordinator::Coordinator;
    use crate::protocol::executed::{Executed, OnRanks, Values};
    let bench = bench(4);
    let input = Fr::from(INPUT);
    let circuit = bench.with_input(&input);
    let Executed { public, mut digests, .. } = Executed::here(&circuit, &bench.engine).unwrap();
    digests[2] = [5; 32];
    let executed = Executed { values: Values::OnRanks(OnRanks::new(&circuit)), public, digests };
    let coordinator = Coordinator::of(&circuit, &bench.keys, None, executed);
    let randomness = Randomness::seeded_not_zero_knowledge(3);
    assert!(coordinator.prove_job(1, &randomness).is_ok());
    let error = coordinator.commit_job(2, &randomness).map(drop).unwrap_err();
    assert!(matches!(error, CoordinatorError::OtherValues { instance: 2 }), "{error}");
}

/// A leader that fails reports its own error, and not only that its worker lost rank 0.
#[test]
fn a_leader_reports_its_own_error() {
    let bench = bench(4);
    let circuit = bench.prepared();
    let mut ends = Endpoint::network(4).into_iter();
    let root = ends.next().unwrap().with_leaders(NonZeroUsize::new(2).unwrap());
    let leader = ends.next().unwrap().with_leaders(NonZeroUsize::new(2).unwrap());
    let (pool, keys) = (pool(1), &bench.keys);
    let hello = Hello::new(&circuit, keys, 1, &pool).unwrap();
    let reported = Mutex::new(Vec::new());
    let failed = |error: &RankError| reported.lock().unwrap().push(error.to_string());
    let served = std::thread::scope(|scope| {
        let served = Serve {
            circuit: &circuit,
            keys,
            pool: &pool,
            accelerators: None,
            hello,
            failed: &failed,
        };
        let running = scope.spawn(move || serve(&leader, &served));
        root.direct().send(1, Kind::Begin, 0, vec![1]);
        running.join().unwrap()
    });
    let error = served.unwrap_err().to_string();
    assert!(error.contains("unexpected Begin: leaders do not accept it"), "{error}");
    assert_eq!(reported.into_inner().unwrap()[0], error);
}

/// A part that does not fit the rank's blocks names the rank, also behind a leader.
#[test]
fn parts_that_do_not_fit_are_named() {
    let bench = bench(40);
    let expected = local(&bench);
    let [plain, .., leaders] = Design::all(Scheduling::Dynamic);
    for design in [plain, leaders] {
        for (bytes, says) in [(4, "GIPA rounds, expected"), (0, "elements remain, expected")] {
            let (run, events) =
                tampered_in(design, &bench, &[0, 1, 1, 1, 1], move |rank, mut frame| {
                    let is_part = rank == 2 && frame.kind == Kind::Part;
                    // The number of rounds, and a list of elements without any.
                    match frame.content.len() {
                        4 if is_part && bytes == 4 => frame.content[0] += 1,
                        // One list of elements: a count, and 576 bytes for each.
                        length if is_part && bytes == 0 && length > 4 && length % 576 == 4 => {
                            frame.content = vec![0; 4];
                        }
                        _ => {}
                    }
                    vec![frame]
                });
            let text = match run {
                Ok(run) => {
                    assert_eq!(run.proof.as_bytes(), expected.proof.as_bytes());
                    notices(&events)
                }
                Err(error) => error.to_string(),
            };
            assert!(text.contains("rank 2") && text.contains(says), "{design:?} {says}: {text}");
        }
    }
}

/// Reports whether a message, or one that it packs, has this kind.
fn has(frame: &Frame, kind: Kind) -> bool {
    let packed = match frame.kind {
        Kind::Bundle => unpack(&frame.content, &(1..6)).unwrap(),
        _ => Vec::new(),
    };
    let is_it = |(_, bytes): &(usize, Vec<u8>)| Frame::kind_of(bytes) == Some(kind as u16);
    frame.kind == kind || packed.iter().any(is_it)
}

/// A leader that is lost ends the run in every phase and is named; its group does not hang.
#[test]
fn a_lost_leader_is_named_in_every_phase() {
    let bench = bench(9);
    let kinds = [Kind::Hello, Kind::Executed, Kind::Committed, Kind::Proven, Kind::Part];
    for kind in kinds.into_iter().chain([Kind::Accounted]) {
        let [_, design] = on_ranks(Scheduling::Dynamic);
        let options = ProveOptions::new();
        let run = run_with(&bench, &[0, 1, 1, 1], design, &options, &|rank, end, work| {
            if rank != 1 {
                // Without its leader, a rank ends in order all the same.
                return work(&end);
            }
            let end = end.tampering(move |frame| {
                assert!(!has(&frame, kind), "a panic of this test");
                vec![frame]
            });
            let ended = catch_unwind(AssertUnwindSafe(|| work(&end)));
            assert!(ended.is_err());
        });
        let error = run.unwrap_err().to_string();
        assert!(error.contains("rank 1 is lost"), "{kind:?}: {error}");
    }
}

/// A rank of a group that is lost is named, too.
#[test]
fn a_lost_member_is_named_in_every_phase() {
    let bench = bench(20);
    for kind in [Kind::Hello, Kind::Executed, Kind::Committed, Kind::Proven, Kind::Part] {
        let [_, design] = on_ranks(Scheduling::Dynamic);
        let options = ProveOptions::new();
        let run = run_with(&bench, &[0, 1, 1, 1], design, &options, &|rank, end, work| {
            if rank != 2 {
                return work(&end);
            }
            let end = end.tampering(move |frame| {
                assert_ne!(frame.kind, kind, "a panic of this test");
                vec![frame]
            });
            // A prover that panics in its transport ends silently; the rank is gone with its end.
            let ended = catch_unwind(AssertUnwindSafe(|| work(&end)));
            drop((ended, end));
        });
        let error = run.unwrap_err().to_string();
        assert!(error.contains("rank 2"), "{kind:?}: {error}");
    }
}

/// A leader may pass on only complete messages, and only from its own group.
#[test]
fn leaders_speak_for_their_groups_only() {
    let bench = bench(9);
    type Change = fn(&mut Frame);
    let cases: [(Change, &str); 4] = [
        (|f| f.content = pack(&[(3, vec![1; 30])]), "rank 3 is not in the group 1..3"),
        (|f| f.content.truncate(9), "bytes"),
        (|f| f.content = pack(&[(1, f.to_bytes())]), "Bundle"),
        (|f| (f.kind, f.content) = (Kind::Report, super::super::groups::report(3, "x")), "not in"),
    ];
    for (change, says) in cases {
        let [_, design] = on_ranks(Scheduling::Dynamic);
        let (run, _) = tampered_in(design, &bench, &[0, 1, 1, 1], move |rank, mut frame| {
            if rank == 1 && frame.kind == Kind::Bundle {
                change(&mut frame);
            }
            vec![frame]
        });
        let error = run.unwrap_err().to_string();
        assert!(
            error.contains("rank 1 sent a wrong message") && error.contains(says),
            "{says}: {error}"
        );
    }
}
