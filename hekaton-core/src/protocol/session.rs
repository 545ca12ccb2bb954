//! The state that all attempts of a run share, and one round with its log and events.

use crate::events::{DeviceAccount, Event, Phase, Recorder};
use crate::keys::ProverKeys;
use crate::protocol::accelerator::Accelerators;
use crate::protocol::answer::{Answer, accept};
use crate::protocol::coordinator::Coordinator;
use crate::protocol::counting::{self, Counting};
use crate::protocol::engine::{Engine, Round, RoundAnswer, Work};
use crate::protocol::error::ProveError;
use crate::protocol::journal::{JournalErrorKind, LogKey, RoundLog};
use crate::protocol::options::ProveOptions;
use hekaton_circuit::PreparedCircuit;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The number of attempts before a run gives up. A pole (zero denominator) has a probability of
/// about 2^-230, so a second restart points to faulty hardware (spec: zero-knowledge#restart).
pub(crate) const ATTEMPTS: u32 = 4;

/// The state that all attempts of a run share.
pub(crate) struct Session<'a> {
    pub(crate) circuit: &'a PreparedCircuit<'a>,
    pub(crate) keys: &'a ProverKeys,
    pub(crate) engine: &'a dyn Engine,
    pub(crate) options: &'a ProveOptions<'a>,
    pub(crate) recorder: &'a Recorder<'a>,
    /// The device of this process that computed the sums of an answer during its lifetime.
    pub(crate) devices: Mutex<BTreeMap<(Phase, usize), usize>>,
}

/// The answers of a round.
pub(crate) struct Answers<'a, A> {
    /// The log of the round, for answers that are recomputed later.
    pub(crate) log: Option<Box<dyn RoundLog + 'a>>,
    /// One answer per instance, in order.
    pub(crate) list: Vec<A>,
    /// The bytes exchanged with provers during the lifetime of this process.
    pub(crate) bytes: u64,
}

/// Emits notices of devices that were given up, and of types that they do not take.
fn tell_of_devices(accelerators: Option<&Accelerators>, recorder: &Recorder<'_>) {
    for message in accelerators.iter().flat_map(|all| all.take_messages()) {
        recorder.emit(Event::Notice { message });
    }
}

impl<'a> Session<'a> {
    /// The number of subcircuits that are proven at the same time.
    pub(crate) fn provers(&self) -> usize {
        self.engine.provers(self.options.provers)
    }

    /// The rank or the device that computed an answer, as a suffix for messages; empty if unknown.
    pub(crate) fn by(&self, instance: usize) -> String {
        let device =
            || self.device(Phase::Prove, instance).or(self.device(Phase::Commit, instance));
        let name = || Some(self.options.accelerators?.name(device()?).to_owned());
        let maker = self.engine.maker(instance).or_else(name);
        maker.map_or_else(String::new, |maker| format!(" (by {maker})"))
    }

    /// The device of this process that computed the sums of an answer.
    fn device(&self, phase: Phase, instance: usize) -> Option<usize> {
        let devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        devices.get(&(phase, instance)).copied()
    }

    /// Gives up the device that computed a wrong answer; if it was another rank's, the devices of that rank.
    pub(crate) fn give_up_maker(&self, phase: Phase, instance: usize) {
        if let (Some(all), Some(device)) = (self.options.accelerators, self.device(phase, instance))
        {
            all.give_up(device);
        }
        self.engine.give_up_devices(instance);
    }

    /// Emits a notice for the user. The run continues.
    pub(crate) fn notice(&self, message: impl Into<String>) {
        self.recorder.emit(Event::Notice { message: message.into() });
    }

    /// Fails if the run was cancelled.
    pub(crate) fn check_cancelled(&self) -> Result<(), ProveError> {
        if self.options.cancellation.is_cancelled() { Err(ProveError::Cancelled) } else { Ok(()) }
    }

    /// Emits the events at the end of a phase: what each rank did, and the end itself.
    pub(crate) fn phase_end(
        &self,
        phase: Phase,
        since: Instant,
        bytes: u64,
    ) -> Result<(), ProveError> {
        for event in self.engine.account(phase)? {
            self.recorder.emit(event);
        }
        tell_of_devices(self.options.accelerators, self.recorder);
        let devices = self.options.accelerators.iter().flat_map(|all| all.take_work());
        for (device, work) in devices {
            self.recorder.emit(Event::Device(DeviceAccount { phase, device, work }));
        }
        self.recorder.phase_end(phase, since, bytes);
        Ok(())
    }

    /// Runs one round (spec: distributed#rounds): takes the answers that the log has, and lets the
    /// engine compute the others.
    // One piece: what is logged, counted and reported of an answer must stay in this order.
    pub(crate) fn round<A: RoundAnswer>(
        &self,
        round: &Round<'_>,
        name: &'static str,
        context: &[u8],
    ) -> Result<Answers<'a, A>, ProveError> {
        self.check_cancelled()?;
        let (log, mut answers) = self.open_log::<A>(round, name, context)?;
        let coordinator = round.coordinator;
        let mut order = coordinator.order();
        order.retain(|i| !answers.contains_key(i));
        self.recorder.phase_start(A::PHASE, coordinator.instances(), answers.len());
        let counting = match A::PHASE {
            _ if !order.iter().any(|i| coordinator.is_table(*i)) => None,
            Phase::Commit => Counting::start(coordinator),
            _ => {
                self.count_for_tables(coordinator)?;
                None
            }
        };
        if let Some(counting) = &counting
            && !answers.is_empty()
        {
            let known: Vec<usize> = answers.keys().copied().collect();
            self.notice_of_counting(known.len());
            counting.add_again(known, self.engine.pool(), &self.options.cancellation)?;
        }
        let exchanged = AtomicU64::new(0);
        let (devices, options, recorder) = (&self.devices, self.options, self.recorder);
        let run = |order: &[usize]| {
            A::round(self.engine, round, order, &|answer, work| {
                let Work { times, bytes, prover, look_ups, device } = work;
                tell_of_devices(options.accelerators, recorder);
                let key = (A::PHASE, answer.instance());
                let mut makers = devices.lock().unwrap_or_else(PoisonError::into_inner);
                // An earlier attempt's maker is not this one's.
                match device {
                    Some(device) => makers.insert(key, device),
                    None => makers.remove(&key),
                };
                drop(makers);
                if let Some(counting) = &counting {
                    counting.add(answer.instance(), &look_ups, &prover)?;
                }
                // Recorded before any event reports it, so an interrupted run loses no answer.
                if let Some(log) = &log {
                    log.append(&answer.to_bytes())?;
                }
                exchanged.fetch_add(bytes, Ordering::Relaxed);
                self.recorder.emit(Event::Subcircuit {
                    phase: A::PHASE,
                    instance: answer.instance() as u64,
                    kind: coordinator.type_name(answer.instance()).to_owned(),
                    start: self.recorder.now() - times.seconds,
                    seconds: times.seconds,
                    cpu_seconds: times.cpu_seconds,
                    bytes,
                    prover,
                });
                Ok(())
            })
        };
        let (tables, others): (Vec<usize>, Vec<usize>) =
            order.into_iter().partition(|i| counting.as_ref().is_some_and(|c| c.must_wait(*i)));
        let new = run(&others).and_then(|mut new| {
            if let Some(counting) = &counting {
                counting.finish();
                new.extend(run(&tables)?);
            }
            Ok(new)
        });
        // Synced even when the round failed: answers must survive a power failure.
        let synced = log.as_ref().map_or(Ok(()), |log| log.sync());
        // The round's own error comes first: it may be the cause of the other.
        let made = new?;
        synced?;
        answers.extend(made.into_iter().map(|answer| (answer.instance(), answer)));
        Ok(Answers { log, list: answers.into_values().collect(), bytes: exchanged.into_inner() })
    }

    /// Counts all look-ups for the proofs of tables, if the log has their commitments, so that the commit
    /// round has not counted.
    fn count_for_tables(&self, coordinator: &Coordinator<'_>) -> Result<(), ProveError> {
        if coordinator.counts().is_some() {
            return Ok(());
        }
        self.notice_of_counting(coordinator.instances());
        counting::count_again(coordinator, self.engine.pool(), &self.options.cancellation)
    }

    fn notice_of_counting(&self, instances: usize) {
        self.notice(format!(
            "counting what {instances} subcircuits look up, which the run's log does not say"
        ));
    }

    /// Opens the log of a round, and returns the answers in it.
    #[allow(clippy::type_complexity)]
    fn open_log<A: Answer>(
        &self,
        round: &Round<'_>,
        name: &'static str,
        context: &[u8],
    ) -> Result<(Option<Box<dyn RoundLog + 'a>>, BTreeMap<usize, A>), ProveError> {
        let mut answers = BTreeMap::new();
        let Some(journal) = self.options.journal else { return Ok((None, answers)) };
        let (instances, pool) = (round.coordinator.instances(), self.engine.pool());
        let key = LogKey { round: name, attempt: round.attempt, context, message_length: A::LEN };
        let opened =
            journal.log(key, &mut |messages| accept::<A>(messages, instances, pool, &mut answers));
        let (log, notices) = match opened {
            // The log of proofs is bound to g and b. The commitments in their own log are of this
            // execution, so cm_D must have been computed differently when the proofs were made.
            Err(error)
                if error.kind() == JournalErrorKind::OtherExecution
                    && A::PHASE == Phase::Prove
                    && round.attempt < ATTEMPTS =>
            {
                return Err(ProveError::WrongChallenges);
            }
            other => other?,
        };
        notices.into_iter().for_each(|message| self.notice(message));
        Ok((Some(log), answers))
    }
}
