//! Ranks as threads: the same bytes as on one machine, and ranks that fail, lie or become silent
//! (spec: adversarial-tests#distribution).

use super::encoding::Writer;
use super::endpoint::Endpoint;
use super::frame::{Frame, Kind};
use super::message::Answered;
use super::wire::Incoming;
use super::*;
use crate::events::{Event, Phase, Record, Recorder};
use crate::keys::CircuitMismatch;
use crate::pool::LocalEngine;
use crate::protocol::coordinator::{Coordinator, CoordinatorError};
use crate::protocol::messages::{Commitment, Message, ProofResponse};
use crate::protocol::{ProveError, ProveOptions, ProvenRun, prove, prove_with};
use crate::randomness::Randomness;
use crate::tests::bench::{Bench, Cheater, Poled, Squares, outside_the_subgroup};
use crate::tests::binding::{Rule, Square};
use crate::verifier::transcript::{Merlin, Sponge};
use crate::verifier::verify::verify_with_test_keys as verify;
use hekaton_arith::{Fr, G1Point, Group};
use hekaton_circuit::{Circuit, LookUps, MemoryChallenges};
use hekaton_testing::{BASE, Digits, Histogram, Shop, Shopping};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

mod designs;
mod endings;
mod resume;
mod trust;

const INPUT: u64 = 11;

/// Bytes before the answer of a prover: its number, and its times.
const TIMES: usize = 4 + 8 + 8;

fn bench(n: usize) -> Bench<Squares> {
    Bench::new(Squares::new(&(0..n).map(|i| (i * i) % 3 % 2).collect::<Vec<_>>()), true)
}

fn pool(threads: usize) -> Arc<LocalEngine> {
    Arc::new(LocalEngine::new(NonZeroUsize::new(threads)).unwrap())
}

/// The way in which a run uses its ranks.
#[derive(Clone, Copy, Debug, Default)]
struct Design {
    schedule: Scheduling,
    executes: Executes,
    /// The maximum number of ranks per leader, if there are leaders.
    fanout: Option<NonZeroUsize>,
}

impl From<Scheduling> for Design {
    fn from(schedule: Scheduling) -> Self {
        Self { schedule, ..Self::default() }
    }
}

impl Design {
    /// All four, with groups of two ranks, under this scheduling.
    fn all(schedule: Scheduling) -> [Self; 4] {
        let two = NonZeroUsize::new(2);
        let designs = [
            (Executes::Root, None),
            (Executes::Ranks, None),
            (Executes::Root, two),
            (Executes::Ranks, two),
        ];
        designs.map(|(executes, fanout)| Self { schedule, executes, fanout })
    }
}

/// The behavior of a worker rank at its end of the network. The last argument serves it honestly.
type Double<'a> = &'a (dyn Fn(usize, Endpoint, &dyn Fn(&Endpoint)) + Sync);

/// Runs with one rank per entry of `provers`; rank 0 proves if it has any. `double` acts for the
/// worker ranks.
fn run_with(
    bench: &Bench<Squares>,
    provers: &[usize],
    design: impl Into<Design>,
    options: &ProveOptions<'_>,
    double: Double<'_>,
) -> Result<ProvenRun, ProveError> {
    let ends = Endpoint::network(provers.len());
    let (input, sponge) = (Fr::from(INPUT), |_| Box::new(Merlin::new()) as Box<dyn Sponge>);
    run_over(ends, bench, &input, provers, design.into(), options, &sponge, double)
}

/// [`run_with`] of any circuit over any network and any sponge.
#[allow(clippy::too_many_arguments, reason = "all of them differ between tests")]
fn run_over<C: Circuit>(
    ends: Vec<Endpoint>,
    bench: &Bench<C>,
    input: &C::Input,
    provers: &[usize],
    design: Design,
    options: &ProveOptions<'_>,
    sponge: &dyn Fn(u32) -> Box<dyn Sponge>,
    double: Double<'_>,
) -> Result<ProvenRun, ProveError> {
    let Design { schedule, executes, fanout } = design;
    let mut ends = ends.into_iter().map(|end| match fanout {
        Some(fanout) => end.with_leaders(fanout),
        None => end,
    });
    let circuit = bench.with_input(input);
    let own = pool(2);
    let hello = |provers| Hello::new(&circuit, &bench.keys, provers, &*own).unwrap();
    let work = |rank: usize| {
        let pool = pool(provers[rank]);
        let (hello, circuit) = (&hello, &circuit);
        move |end: &Endpoint| {
            let keys = &bench.keys;
            let served = serve(
                end,
                &Serve {
                    circuit,
                    keys,
                    pool: &*pool,
                    hello: hello(provers[rank]),
                    failed: &|_| {},
                },
            );
            assert_eq!(served, Ok(()), "rank {rank}");
        }
    };
    let (root, own) = match (ends.next().unwrap(), provers[0]) {
        (end, 0) => (end, None),
        (end, _) => {
            let (root, own) = end.with_own_worker();
            (root, Some(own))
        }
    };
    std::thread::scope(|scope| {
        let role = if own.is_some() { RootRole::Proves } else { RootRole::Coordinates };
        if let Some(own) = own {
            let work = work(0);
            scope.spawn(move || work(&own));
        }
        for end in ends {
            let work = work(end.rank());
            scope.spawn(move || double(end.rank(), end, &work));
        }
        let engine = RankEngine::start(root, pool(2), &hello(1), role, schedule);
        let engine = engine.map_err(ProveError::from_rank)?.executes(executes);
        prove_with(&circuit, &bench.keys, &engine, options, sponge)
    })
}

fn run(bench: &Bench<Squares>, provers: &[usize], design: impl Into<Design>) -> ProvenRun {
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(3));
    run_with(bench, provers, design, &options, &|_, end, work| work(&end)).unwrap()
}

fn local(bench: &Bench<Squares>) -> ProvenRun {
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(3));
    prove(&bench.circuit, &Fr::from(INPUT), &bench.keys, &bench.engine, &options).unwrap()
}

/// Adversarial test 50: one seed leads to the same bytes with any number of ranks and provers, with
/// either scheduling, whoever executes the circuit, with and without leaders.
#[test]
fn a50_ranks_do_not_change_the_proof() {
    let every: &[&[usize]] = &[&[1], &[0, 1], &[1, 1], &[0, 2, 1], &[1, 1, 1, 3, 1]];
    let both = &[Scheduling::Static, Scheduling::Dynamic][..];
    for (n, ranks, schedules) in
        [(1, every, both), (5, every, both), (13, &every[3..], both), (33, &every[4..], &both[1..])]
    {
        let bench = bench(n);
        let expected = local(&bench);
        for provers in ranks {
            for design in schedules.iter().copied().flat_map(Design::all) {
                let run = run(&bench, provers, design);
                assert_eq!(run.public_values, expected.public_values);
                assert_eq!(
                    run.proof.as_bytes(),
                    expected.proof.as_bytes(),
                    "{n} {provers:?} {design:?}"
                );
            }
        }
        verify(&bench.keys.verifying, &expected.public_values, expected.proof.as_bytes()).unwrap();
    }
}

/// Adversarial test 50 with buses, tables and memories: masks depend on all private inputs, jobs carry
/// counts, cells and accesses, and marked values are synthesized on the ranks. Circuits with buses are
/// executed by rank 0, whatever the design says.
#[test]
fn a50_ranks_do_not_change_the_proof_with_buses() {
    let options = || ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(3));
    fn same<C: Circuit>(circuit: C, input: &C::Input, options: &dyn Fn() -> ProveOptions<'static>) {
        let bench = Bench::new(circuit, true);
        let expected =
            prove(&bench.circuit, input, &bench.keys, &bench.engine, &options()).unwrap();
        let vk = &bench.keys.verifying;
        verify(vk, &expected.public_values, expected.proof.as_bytes()).unwrap();
        for provers in [&[1][..], &[0, 1], &[0, 2, 1], &[1, 1, 1]] {
            for design in Design::all(Scheduling::Dynamic) {
                let ends = Endpoint::network(provers.len());
                let sponge = |_| Box::new(Merlin::new()) as Box<dyn Sponge>;
                let run = run_over(
                    ends,
                    &bench,
                    input,
                    provers,
                    design,
                    &options(),
                    &sponge,
                    &|_, end, work| work(&end),
                );
                let run = run.unwrap();
                assert_eq!(
                    run.proof.as_bytes(),
                    expected.proof.as_bytes(),
                    "{provers:?} {design:?}"
                );
            }
        }
    }
    same(Shop::new(3), &Shopping::new(3), &options);
    let digits = (0..6).map(|i| i * i % BASE).collect();
    let input = Digits { digits, asked: 4, clear: true };
    let histogram = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    same(histogram, &input, &options);
}

/// A run with events in which messages of worker ranks are changed. Scheduling is static, so that
/// each rank has something to change: otherwise a fast rank could take all jobs.
fn tampered(
    bench: &Bench<Squares>,
    provers: &[usize],
    change: impl Fn(usize, Frame) -> Vec<Frame> + Send + Sync + Clone + 'static,
) -> (Result<ProvenRun, ProveError>, Vec<Event>) {
    tampered_in(Scheduling::Static, bench, provers, change)
}

/// [`tampered`] in any design.
fn tampered_in(
    design: impl Into<Design>,
    bench: &Bench<Squares>,
    provers: &[usize],
    change: impl Fn(usize, Frame) -> Vec<Frame> + Send + Sync + Clone + 'static,
) -> (Result<ProvenRun, ProveError>, Vec<Event>) {
    tampered_run(design.into(), bench, &Fr::from(INPUT), provers, change)
}

/// [`tampered_in`] of any circuit.
fn tampered_run<C: Circuit>(
    design: Design,
    bench: &Bench<C>,
    input: &C::Input,
    provers: &[usize],
    change: impl Fn(usize, Frame) -> Vec<Frame> + Send + Sync + Clone + 'static,
) -> (Result<ProvenRun, ProveError>, Vec<Event>) {
    let events = Mutex::new(Vec::new());
    let recorder =
        Recorder::new("test", |record: &Record| events.lock().unwrap().push(record.event.clone()));
    let options = ProveOptions::new()
        .randomness(Randomness::seeded_not_zero_knowledge(3))
        .recorder(&recorder);
    let (ends, sponge) =
        (Endpoint::network(provers.len()), |_| Box::new(Merlin::new()) as Box<dyn Sponge>);
    let double = |rank, end: Endpoint, work: &dyn Fn(&Endpoint)| {
        let change = change.clone();
        work(&end.tampering(move |frame| change(rank, frame)));
    };
    let run = run_over(ends, bench, input, provers, design, &options, &sponge, &double);
    drop(options);
    drop(recorder);
    (run, events.into_inner().unwrap())
}

fn notices(events: &[Event]) -> String {
    let texts = events.iter().filter_map(|e| {
        if let Event::Notice { message } = e { Some(message.as_str()) } else { None }
    });
    texts.collect::<Vec<_>>().join("\n")
}

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
                        &Serve { circuit, keys, pool: &*pool, hello: hello(), failed: &|_| {} },
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
        let hello = Hello::new(&circuit, &bench.keys, 1, &*pool).unwrap();
        let hello = if rank == 2 {
            Hello { facts: vec![("verifying key".into(), "abc".into())], ..hello }
        } else {
            hello
        };
        let served = serve(
            &end,
            &Serve { circuit: &circuit, keys: &bench.keys, pool: &*pool, hello, failed: &|_| {} },
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

/// Every subcircuit is done once, by some rank, and the accounts have the bytes to and from it.
#[test]
fn accounts_and_events_are_complete() {
    let bench = bench(21);
    let (run, events) = tampered(&bench, &[1, 2], |_, frame| vec![frame]);
    run.unwrap();
    for phase in [Phase::Commit, Phase::Prove] {
        let mut done: Vec<(u64, u64)> = Vec::new();
        for event in &events {
            if let Event::Subcircuit { phase: p, instance, bytes, prover, .. } = event
                && *p == phase
            {
                assert!(prover.starts_with("rank "), "{prover}");
                done.push((*instance, *bytes));
            }
        }
        done.sort_unstable();
        assert_eq!(done.iter().map(|(i, _)| *i).collect::<Vec<_>>(), (0..21).collect::<Vec<_>>());
        let accounts: Vec<_> = events
            .iter()
            .filter_map(|e| if let Event::Rank(a) = e { Some(a) } else { None })
            .filter(|a| a.phase == phase)
            .collect();
        assert_eq!(accounts.iter().map(|a| a.subcircuits).sum::<u64>(), 21);
        assert_eq!(accounts.len(), 2);
        let most = match phase {
            // The values of 5 slots, the private input and the answer.
            Phase::Commit => 5 * 40 + 40 + 24 + TIMES + Commitment::LEN,
            _ => 24 + TIMES + ProofResponse::LEN,
        };
        if phase == Phase::Commit {
            assert!(done.iter().all(|(_, bytes)| *bytes <= most as u64), "{done:?}");
        } else {
            // Only jobs that moved to another rank are sent again.
            assert!(done.iter().filter(|(_, bytes)| *bytes > most as u64).count() < 21, "{done:?}");
        }
        assert!(
            accounts.iter().all(|a| a.received_bytes > 0 && a.sent_bytes > 0 && a.peak_memory > 0)
        );
    }
}

/// Rank 0 receives one part per leader in each phase of the aggregation, and one per rank without
/// leaders.
#[test]
fn leaders_join_the_parts_of_their_groups() {
    let bench = bench(40);
    let expected = local(&bench);
    let [plain, .., leaders] = Design::all(Scheduling::Dynamic);
    let mut messages = Vec::new();
    for design in [plain, leaders] {
        let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = count.clone();
        let (run, _) = tampered_in(design, &bench, &[0, 1, 1, 1, 1], move |_, frame| {
            // To rank 0 itself, not to a leader.
            let parts = match frame.kind {
                Kind::Bundle => groups::unpack(&frame.content, &(1..5)).unwrap(),
                _ => Vec::new(),
            };
            let is_part =
                |(_, bytes): &(usize, Vec<u8>)| Frame::kind_of(bytes) == Some(Kind::Part as u16);
            let parts = parts.iter().filter(|message| is_part(message)).count();
            let alone = design.fanout.is_none() && frame.kind == Kind::Part;
            counted.fetch_add(parts + usize::from(alone), std::sync::atomic::Ordering::SeqCst);
            vec![frame]
        });
        assert_eq!(run.unwrap().proof.as_bytes(), expected.proof.as_bytes());
        messages.push(count.load(std::sync::atomic::Ordering::SeqCst));
    }
    assert_eq!(messages[0], 2 * messages[1], "four ranks in two groups");
}

/// A larger aggregation, in which ranks do several GIPA rounds alone before the remaining elements
/// are joined.
#[test]
fn larger_blocks_are_folded_on_ranks() {
    let bench = bench(150);
    let expected = local(&bench);
    for design in Design::all(Scheduling::Dynamic) {
        let run = run(&bench, &[0, 1, 4, 2], design);
        assert_eq!(run.proof.as_bytes(), expected.proof.as_bytes(), "{design:?}");
    }
}
