//! Rounds that end early or must not: deadlines and cancellation.

use super::*;

/// Runs with one worker rank, whose messages are changed, under a deadline for each round.
fn under_deadline(
    bench: &Bench<Squares>,
    deadline: Duration,
    options: &ProveOptions<'_>,
    change: impl Fn(Frame) -> Vec<Frame> + Send + Sync + 'static,
) -> Result<ProvenRun, ProveError> {
    let mut ends = Endpoint::network(2).into_iter();
    let (root, worker) = (ends.next().unwrap(), ends.next().unwrap());
    let input = Fr::from(INPUT);
    let circuit = bench.with_input(&input);
    let hello = || Hello::new(&circuit, &bench.keys, 1, &bench.engine).unwrap();
    std::thread::scope(|scope| {
        let (circuit, hello) = (&circuit, &hello);
        scope.spawn(move || {
            let (end, pool) = (worker.tampering(change), pool(1));
            let (keys, failed) = (&bench.keys, &|_: &RankError| {});
            serve(
                &end,
                &Serve { circuit, keys, pool: &pool, accelerators: None, hello: hello(), failed },
            )
            .unwrap();
        });
        let role = RootRole::Coordinates;
        let engine = RankEngine::start(root, pool(1), &hello(), role, Scheduling::Dynamic).unwrap();
        let engine = engine.round_deadline(Some(deadline));
        prove(&bench.circuit, &input, &bench.keys, &engine, options)
    })
}

/// A round that takes too long ends the run, even though the rank is alive.
#[test]
fn a_round_has_a_deadline() {
    let run = under_deadline(
        &bench(3),
        Duration::from_millis(200),
        &ProveOptions::new(),
        // Commitments never arrive.
        |frame| if frame.kind == Kind::Committed { Vec::new() } else { vec![frame] },
    );
    let error = run.unwrap_err().to_string();
    assert!(
        error.contains("rank 1 is lost") && error.contains("commit round exceeded its deadline"),
        "{error}"
    );
}

/// A deadline is for the ranks: when all have answered, rank 0 may take longer to record answers.
#[test]
fn no_rank_is_lost_while_rank_0_works() {
    let bench = bench(1);
    let slow = Recorder::new("test", |record| {
        if matches!(record.event, Event::Subcircuit { .. }) {
            std::thread::sleep(Duration::from_millis(2500));
        }
    });
    let options = ProveOptions::new().recorder(&slow);
    let run = under_deadline(&bench, Duration::from_secs(2), &options, |frame| vec![frame]);
    run.unwrap();
}

/// A cancellation in the middle of a round: jobs in progress are answered, no others, and the ranks
/// are released.
#[test]
fn a_stop_is_orderly() {
    let bench = bench(40);
    let stop = crate::Cancellation::new();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let recorder = Recorder::new("test", |record: &Record| {
        if matches!(record.event, Event::Subcircuit { .. })
            && done.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 5
        {
            stop.cancel();
        }
    });
    let options = ProveOptions::new().cancellation(&stop).recorder(&recorder);
    let run =
        run_with(&bench, &[0, 1, 2], Scheduling::Dynamic, &options, &|_, end, work| work(&end));
    assert!(matches!(run, Err(ProveError::Cancelled)));
    assert!(done.load(std::sync::atomic::Ordering::SeqCst) < 40);
}
