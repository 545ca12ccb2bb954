//! Runs whose ranks made wrong reports to rank 0, interrupted and resumed
//! (spec: distributed#repair, buses#counting).

use super::*;
use crate::Cancellation;
use crate::protocol::journal::{Accept, Journal, JournalError, JournalErrorKind, LogKey, RoundLog};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The context of a log and its messages, by round and attempt.
type Logs = BTreeMap<(String, u32), (Vec<u8>, Vec<Vec<u8>>)>;

/// A journal in memory.
#[derive(Debug)]
struct Memory(Randomness, Mutex<Logs>);

struct MemoryLog<'a>(&'a Memory, (String, u32));

impl RoundLog for MemoryLog<'_> {
    fn append(&self, message: &[u8]) -> Result<(), JournalError> {
        self.0.1.lock().unwrap().get_mut(&self.1).unwrap().1.push(message.to_vec());
        Ok(())
    }

    fn sync(&self) -> Result<(), JournalError> {
        Ok(())
    }
}

impl Journal for Memory {
    fn is_for(&self, _: &crate::VerifyingKey, _: Option<[u8; 32]>) -> bool {
        true
    }

    fn is_resumed(&self) -> bool {
        false
    }

    fn has_insecure_seed(&self) -> bool {
        true
    }

    fn has_seed(&self) -> bool {
        true
    }

    fn take_notices(&self) -> Vec<String> {
        Vec::new()
    }

    fn randomness(&self) -> Result<Randomness, JournalError> {
        Ok(self.0.clone())
    }

    fn log<'j>(
        &'j self,
        key: LogKey<'_>,
        accept: &mut Accept<'_>,
    ) -> Result<(Box<dyn RoundLog + 'j>, Vec<String>), JournalError> {
        let id = (key.round.to_owned(), key.attempt);
        let mut all = self.1.lock().unwrap();
        let (context, messages) =
            all.entry(id.clone()).or_insert_with(|| (key.context.to_vec(), Vec::new()));
        if *context != key.context {
            return Err(JournalError::new(JournalErrorKind::OtherExecution, "another context"));
        }
        accept(messages.iter().map(Vec::as_slice).collect());
        Ok((Box::new(MemoryLog(self, id)), Vec::new()))
    }

    fn proof(&self) -> Option<Vec<u8>> {
        None
    }

    fn finished_otherwise(&self) -> JournalError {
        JournalError::new(JournalErrorKind::Unusable, "finished otherwise")
    }

    fn finish(&self, _: &crate::Proof) -> Result<(), JournalError> {
        Ok(())
    }

    fn remove_seed(&self) -> Result<(), JournalError> {
        Ok(())
    }
}

/// When a run is cancelled.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    Never,
    AtRestart,
    /// After as many proofs.
    Proofs(usize),
}

fn histogram() -> (Bench<Histogram>, Digits) {
    let digits = (0..6).map(|i| i * i % BASE).collect();
    let circuit = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    (Bench::new(circuit, true), Digits { digits, asked: 4, clear: true })
}

/// A run on three ranks with changed frames, cancelled at some point, and then resumed in one process.
/// Returns whether the first part ended with a proof, and its notices.
fn run_and_resume(
    stop: Stop,
    tamper: impl Fn(usize, &mut Frame) + Send + Sync + Clone + 'static,
) -> (bool, String) {
    let (bench, input) = histogram();
    let journal = Memory(Randomness::seeded_not_zero_knowledge(3), Mutex::default());
    let (cancelled, proofs) = (Cancellation::new(), AtomicUsize::new(0));
    let events = Mutex::new(Vec::new());
    let recorder = Recorder::new("test", |record: &Record| {
        match &record.event {
            Event::Restart { .. } if stop == Stop::AtRestart => cancelled.cancel(),
            Event::Subcircuit { phase: crate::events::Phase::Prove, .. } => {
                let made = proofs.fetch_add(1, Ordering::Relaxed) + 1;
                if stop == Stop::Proofs(made) {
                    cancelled.cancel();
                }
            }
            _ => {}
        }
        events.lock().unwrap().push(record.event.clone());
    });
    let options =
        ProveOptions::new().journal(&journal).recorder(&recorder).cancellation(&cancelled);
    let sponge = |_| Box::new(Merlin::new()) as Box<dyn Sponge>;
    let double = |rank, end: Endpoint, work: &dyn Fn(&Endpoint)| {
        let tamper = tamper.clone();
        work(&end.tampering(move |mut frame| {
            tamper(rank, &mut frame);
            vec![frame]
        }));
    };
    let (ranks, design) = (Endpoint::network(3), Scheduling::Static.into());
    let first = run_over(ranks, &bench, &input, &[0, 1, 1], design, &options, &sponge, &double);
    drop(options);
    drop(recorder);
    let is_proven = first.is_ok();
    if let Err(error) = first {
        assert!(stop != Stop::Never && matches!(error, ProveError::Cancelled), "{error}");
    }
    // Once, and again: what was appended to the log meanwhile is right.
    for _ in 0..2 {
        let options = ProveOptions::new().journal(&journal);
        let run = prove(&bench.circuit, &input, &bench.keys, &bench.engine, &options).unwrap();
        verify(&bench.keys.verifying, &run.public_values, run.proof.as_bytes()).unwrap();
    }
    (is_proven, notices(&events.into_inner().unwrap()))
}

fn conceal(rank: usize, frame: &mut Frame) {
    if rank == 2 && frame.kind == Kind::Committed {
        let mut answered = Answered::<Commitment>::decode(&frame.content).unwrap();
        if !answered.look_ups.is_empty() {
            answered.look_ups = LookUps::default();
            frame.content = answered.encode();
        }
    }
}

/// A run whose tables committed to wrong multiplicities, interrupted before or after that was noticed: the
/// log has their commitments, and a resumed run, which counts correctly itself, starts again, too.
#[test]
fn wrong_counts_in_a_log_start_again() {
    for stop in [Stop::AtRestart, Stop::Proofs(1), Stop::Proofs(8)] {
        let (is_proven, _) = run_and_resume(stop, conceal);
        assert!(!is_proven);
    }
}

/// A wrong mark in an answer of the prove round is replaced, and the rank is named; the log has both. In
/// one of the commit round it is a wrong commitment, and the run starts again.
#[test]
fn wrong_marks_are_repaired() {
    let flip = |rank: usize, frame: &mut Frame| {
        if rank == 2 && frame.kind == Kind::Proven {
            let mut answered = Answered::<ProofResponse>::decode(&frame.content).unwrap();
            if answered.answer.mark != [0; 32] {
                answered.answer.mark[3] ^= 1;
                frame.content = answered.encode();
            }
        }
    };
    let (is_proven, said) = run_and_resume(Stop::Never, flip);
    assert!(is_proven && said.contains("have been recomputed"), "{said}");
    assert!(said.contains("(by rank 2 on"), "{said}");

    let done = Arc::new(Mutex::new(false));
    let once = move |rank: usize, frame: &mut Frame| {
        if rank == 2 && frame.kind == Kind::Committed {
            let mut answered = Answered::<Commitment>::decode(&frame.content).unwrap();
            let mut done = done.lock().unwrap();
            if answered.answer.mark != [0; 32] && !*done {
                *done = true;
                answered.answer.mark[3] ^= 1;
                frame.content = answered.encode();
            }
        }
    };
    let (is_proven, said) = run_and_resume(Stop::Never, once);
    assert!(is_proven && said.contains("was wrong: possible hardware fault"), "{said}");
}
