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
mod devices;
mod endings;
mod faults;
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
    let hello = |provers| Hello::new(&circuit, &bench.keys, provers, &own).unwrap();
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
                    pool: &pool,
                    accelerators: None,
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
