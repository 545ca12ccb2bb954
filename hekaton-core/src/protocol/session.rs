//! What stays the same over all attempts of a run, and one round with its log and events.

use crate::events::{Event, Phase, Recorder};
use crate::keys::ProverKeys;
use crate::pool::Pool;
use crate::protocol::answer::Answer;
use crate::protocol::engine::{Engine, Round, Work};
use crate::protocol::error::ProveError;
use crate::protocol::journal::{JournalErrorKind, LogKey, RoundLog};
use crate::protocol::options::ProveOptions;
use hekaton_circuit::Circuit;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How often a run starts over after a pole before it gives up; a pole has a probability of about 2^-230.
pub(crate) const ATTEMPTS: u32 = 4;

/// What stays the same over all attempts of a run.
pub(crate) struct Session<'a, C, E> {
    pub(crate) circuit: &'a C,
    pub(crate) keys: &'a ProverKeys,
    pub(crate) engine: &'a E,
    pub(crate) options: &'a ProveOptions<'a>,
    pub(crate) recorder: &'a Recorder<'a>,
}

/// The answers of a round.
pub(crate) struct Answers<'a, A> {
    /// The round's log, for answers that are made again later.
    pub(crate) log: Option<Box<dyn RoundLog + 'a>>,
    /// One answer per instance, in order.
    pub(crate) list: Vec<A>,
    /// Bytes exchanged with provers in this process's lifetime.
    pub(crate) bytes: u64,
}

impl<'a, C: Circuit, E: Engine> Session<'a, C, E> {
    /// How many subcircuits are proven at once.
    pub(crate) fn provers(&self) -> usize {
        self.engine.provers(self.options.provers)
    }

    /// Who made an answer, for messages.
    pub(crate) fn by(&self, instance: usize) -> String {
        self.engine.maker(instance).map_or_else(String::new, |maker| format!(" (by {maker})"))
    }

    /// Tells the user about something that stops nothing.
    pub(crate) fn notice(&self, message: impl Into<String>) {
        self.recorder.emit(Event::Notice { message: message.into() });
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), ProveError> {
        if self.options.cancellation.is_cancelled() { Err(ProveError::Cancelled) } else { Ok(()) }
    }

    /// Records what the ranks did in a phase, and its end.
    pub(crate) fn phase_end(
        &self,
        phase: Phase,
        since: Instant,
        bytes: u64,
    ) -> Result<(), ProveError> {
        for account in self.engine.account(phase)? {
            self.recorder.emit(Event::Rank(account));
        }
        self.recorder.phase_end(phase, since, bytes);
        Ok(())
    }

    /// One round (spec: distributed#rounds): takes from the log what is there, has the engine do the rest, and appends
    /// each answer to the log before anyone is told of it, so that an interrupted run loses none.
    pub(crate) fn round<A: Answer>(
        &self,
        round: &Round<'_, C>,
        name: &'static str,
        context: &[u8],
    ) -> Result<Answers<'a, A>, ProveError> {
        self.check_cancelled()?;
        let (log, mut answers) = self.open_log::<A>(round, name, context)?;
        let coordinator = round.coordinator;
        let mut order = coordinator.order();
        order.retain(|i| !answers.contains_key(i));
        self.recorder.phase_start(A::PHASE, coordinator.instances(), answers.len());
        let exchanged = AtomicU64::new(0);
        let new =
            self.engine.round::<C, A>(round, &order, &|answer, Work { seconds, bytes, prover }| {
                if let Some(log) = &log {
                    log.append(&answer.to_bytes())?;
                }
                exchanged.fetch_add(bytes, Ordering::Relaxed);
                self.recorder.emit(Event::Subcircuit {
                    phase: A::PHASE,
                    instance: answer.instance() as u64,
                    kind: coordinator.type_name(answer.instance()).to_owned(),
                    start: self.recorder.now() - seconds,
                    seconds,
                    bytes,
                    prover,
                });
                Ok(())
            });
        // Synced also when the round failed: what was done must outlive a power failure.
        let synced = log.as_ref().map_or(Ok(()), |log| log.sync());
        let new = new?;
        synced?;
        answers.extend(new.into_iter().map(|answer| (answer.instance(), answer)));
        Ok(Answers { log, list: answers.into_values().collect(), bytes: exchanged.into_inner() })
    }

    /// Opens the log of a round. A message counts only if it decodes as an answer of an instance of this run: points in
    /// their subgroups, scalars reduced, the instance below n. Of two answers of one instance the later counts.
    #[allow(clippy::type_complexity)]
    fn open_log<A: Answer>(
        &self,
        round: &Round<'_, C>,
        name: &'static str,
        context: &[u8],
    ) -> Result<(Option<Box<dyn RoundLog + 'a>>, BTreeMap<usize, A>), ProveError> {
        let mut answers = BTreeMap::new();
        let Some(journal) = self.options.journal else { return Ok((None, answers)) };
        let (instances, pool) = (round.coordinator.instances(), self.engine.pool());
        let key = LogKey { round: name, attempt: round.attempt, context, message_length: A::LEN };
        let opened = journal.log(key, &mut |messages| {
            let all = messages.len();
            let decode = |message: &[u8]| {
                A::from_bytes(message).ok().filter(|answer| answer.instance() < instances)
            };
            let intact: Vec<A> = pool.map(messages, decode).into_iter().flatten().collect();
            let refused = all - intact.len();
            answers.extend(intact.into_iter().map(|answer| (answer.instance(), answer)));
            refused
        });
        let (log, notices) = match opened {
            // The commitments are the same, or their log would not be this run's: so cm_D was another one then.
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
