//! A complete run on one engine: execution, then attempts until one produces a proof.

use crate::events::{Event, Outcome, Phase, Recorder};
use crate::keys::ProverKeys;
use crate::mirage::WitnessCheck;
use crate::protocol::attempt::Attempt;
use crate::protocol::coordinator::{Coordinator, CoordinatorError};
use crate::protocol::engine::Engine;
use crate::protocol::error::ProveError;
use crate::protocol::options::ProveOptions;
use crate::protocol::session::{ATTEMPTS, Session};
use crate::randomness::Randomness;
use crate::verifier::proof::Proof;
use crate::verifier::public_values::NamedValue;
use crate::verifier::transcript::{Merlin, Sponge};
use hekaton_arith::Fr;
use hekaton_circuit::{Circuit, ExecutionError, PreparedCircuit};
use std::sync::Mutex;

/// A finished run.
#[derive(Debug)]
pub struct ProvenRun {
    /// The proof, which has been verified.
    pub proof: Proof,
    /// The public values that the proof is for.
    pub public_values: Vec<Fr>,
    /// The same values with the names of their wires.
    pub public: Vec<NamedValue>,
    /// The number of subcircuits.
    pub instances: usize,
    /// The number of constraints of all subcircuits.
    pub constraints: u64,
}

/// Proves an execution of `circuit` on `input`.
///
/// The proof is verified before it is returned. With a [journal](ProveOptions::journal), every
/// answer is recorded, and answers recorded by an earlier process are not computed again.
///
/// # Errors
/// When the input, the circuit or the keys are wrong, with the names of the bad subcircuits, or
/// when the run was cancelled.
pub fn prove<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    keys: &ProverKeys,
    engine: &dyn Engine,
    options: &ProveOptions<'_>,
) -> Result<ProvenRun, ProveError> {
    let prepared = PreparedCircuit::with_input(circuit, input)
        .map_err(|e| CoordinatorError::Execution(ExecutionError::Layout(e)))?;
    prove_prepared(&prepared, keys, engine, options)
}

/// [`prove`] of a circuit that was prepared with its input.
///
/// # Errors
/// As for [`prove`].
pub fn prove_prepared(
    circuit: &PreparedCircuit<'_>,
    keys: &ProverKeys,
    engine: &dyn Engine,
    options: &ProveOptions<'_>,
) -> Result<ProvenRun, ProveError> {
    prove_with(circuit, keys, engine, options, &|_| Box::new(Merlin::new()))
}

/// [`prove_prepared`] with any sponge, created from the number of the attempt.
pub(crate) fn prove_with(
    circuit: &PreparedCircuit<'_>,
    keys: &ProverKeys,
    engine: &dyn Engine,
    options: &ProveOptions<'_>,
    sponge: &dyn Fn(u32) -> Box<dyn Sponge>,
) -> Result<ProvenRun, ProveError> {
    let silent = Recorder::silent();
    let recorder = options.recorder.unwrap_or(&silent);
    let devices = Mutex::default();
    let result = Session { circuit, keys, engine, options, recorder, devices }.run(sponge);
    let outcome = match &result {
        Ok(_) => Outcome::Finished,
        Err(ProveError::Cancelled) => Outcome::Interrupted,
        Err(error) => {
            recorder.emit(Event::Error { message: error.to_string() });
            Outcome::Failed
        }
    };
    recorder.emit(Event::RunEnd { outcome, seconds: recorder.now() });
    result
}

impl Session<'_> {
    fn run(&self, sponge: &dyn Fn(u32) -> Box<dyn Sponge>) -> Result<ProvenRun, ProveError> {
        let coordinator = self.start()?;
        // A finished run no longer has a seed: it returns its proof or fails, and never proves
        // again.
        let proof = match self.finished(&coordinator)? {
            Some(proof) => proof,
            None => self.attempts(&coordinator, sponge)?,
        };
        let public_values = coordinator.public_values().to_vec();
        // `Coordinator::of` has compared the keys with the circuit whose values these are.
        let public = (self.keys.verifying.name_values(&public_values))
            .expect("one value for each public wire of the layout");
        Ok(ProvenRun {
            proof,
            public_values,
            public,
            instances: coordinator.instances(),
            constraints: coordinator.total_constraints(),
        })
    }

    /// Attempts a proof until it succeeds, at most [`ATTEMPTS`] times.
    fn attempts(
        &self,
        coordinator: &Coordinator<'_>,
        sponge: &dyn Fn(u32) -> Box<dyn Sponge>,
    ) -> Result<Proof, ProveError> {
        let mut randomness = match (self.options.journal, &self.options.randomness) {
            (Some(journal), _) => journal.randomness()?,
            (None, Some(randomness)) => randomness.clone(),
            (None, None) => Randomness::fresh()?,
        };
        let mut number = 1;
        loop {
            match (Attempt { session: self, coordinator, number, randomness: &randomness, sponge })
                .run()
            {
                Err(error) if error.starts_over() && number < ATTEMPTS => {
                    tracing::warn!(%error, "starting again with new randomness");
                    number += 1;
                    self.notice(error.to_string());
                    self.recorder.emit(Event::Restart { attempt: number });
                    // All randomness is drawn anew: masks and k_D must not be used under two pairs
                    // of challenges, because two evaluations of e_i reveal more than one
                    // (spec: zero-knowledge#restart).
                    randomness = randomness.next_attempt();
                }
                // The logs keep all attempts, so repeating the command would replay them.
                Err(error) if error.starts_over() && self.options.journal.is_some() => {
                    return Err(ProveError::AttemptsExhausted(Box::new(error)));
                }
                other => return other,
            }
        }
    }

    /// Executes the circuit, and emits the event that describes the run.
    fn start(&self) -> Result<Coordinator<'_>, ProveError> {
        let (recorder, journal, direct) =
            (self.recorder, self.options.journal, self.options.direct);
        if direct.is_some_and(|run| *run.key.verifying() != self.keys.verifying) {
            return Err(ProveError::ForeignDirectKey);
        }
        let digest = direct.map(|run| run.digest());
        // The journal's answers and its seed are bound to a verifying key
        // (spec: zero-knowledge#resume).
        if journal.is_some_and(|journal| !journal.is_for(&self.keys.verifying, digest)) {
            return Err(ProveError::ForeignJournal);
        }
        let since = recorder.phase_start(Phase::Execute, 1, 0);
        // As many of this process's threads as may prove at once within its memory.
        let threads = self.engine.pool().threads();
        let own = self.options.provers.map_or(threads, |provers| provers.get().min(threads));
        Coordinator::check(self.circuit, self.keys, self.engine.pool(), own)?;
        let executed = self.engine.execute(self.circuit, self.keys)?;
        let coordinator = Coordinator::of(self.circuit, self.keys, direct, executed);
        self.phase_end(Phase::Execute, since, 0)?;
        let vk = &self.keys.verifying;
        // A proof with a known seed is not zero-knowledge, whatever the keys say
        // (spec: zero-knowledge#modes).
        let seeded = match journal {
            Some(journal) => journal.has_insecure_seed(),
            None => self.options.randomness.as_ref().is_some_and(Randomness::is_seeded),
        };
        recorder.emit(Event::RunStart {
            circuit: vk.circuit.clone(),
            parameters: vk.parameters.clone(),
            verifying_key: hex::encode(vk.digest()),
            layout: hex::encode(vk.layout),
            subcircuits: vk.instances,
            constraints: coordinator.total_constraints(),
            types: coordinator.type_summaries(),
            threads: self.engine.pool().threads() as u64,
            provers: self.provers() as u64,
            ranks: self.engine.ranks() as u64,
            zero_knowledge: vk.zero_knowledge && !seeded,
            check_constraints: self.options.witness_check == WitnessCheck::Check,
            resumed: journal.is_some_and(|journal| journal.is_resumed()),
        });
        let notices = journal.map(|journal| journal.take_notices());
        notices.into_iter().flatten().for_each(|message| self.notice(message));
        Ok(coordinator)
    }

    /// Returns the proof that an earlier process finished, if there is one.
    fn finished(&self, coordinator: &Coordinator<'_>) -> Result<Option<Proof>, ProveError> {
        let Some((journal, bytes)) =
            self.options.journal.and_then(|journal| Some((journal, journal.proof()?)))
        else {
            return Ok(None);
        };
        match coordinator.verify(&bytes) {
            Ok(()) => {
                self.notice("the run was already finished; its proof verifies");
                // The process that finished the run may have been killed before it removed the
                // seed.
                journal.remove_seed()?;
                Ok(Some(Proof::from_verified(bytes)))
            }
            // Without the seed the run cannot be repeated with its own randomness.
            Err(_) if !journal.has_seed() => Err(journal.finished_otherwise().into()),
            Err(error) => {
                self.notice(format!(
                    "the proof in the run directory does not verify ({error}) and is computed again"
                ));
                Ok(None)
            }
        }
    }
}
