//! Accelerators: devices, such as GPUs, that compute the sums of a proof for the provers (spec: distributed#accelerators).
//!
//! A prover synthesizes an assignment and queues it in [`Accelerators`]. One of the waiting provers takes a batch from the
//! queue and runs the device for all of them. Provers blind the proofs: a device sees assignments, but no other secrets.

use crate::events::DeviceWork;
use crate::mirage::{ProvingKey, Sums, Unsatisfied, WitnessCheck};
use hekaton_arith::{Fr, G1Point, Group};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A device that computes the sums of several subcircuits of one type at once, for example a GPU.
///
/// Its results must equal those of the CPU. Wrong ones are found when the proof is verified, at the end of a run.
///
/// Two threads may each ask for a batch at the same time, so that one is copied while the other is computed.
pub trait Accelerator: fmt::Debug + Send + Sync {
    /// Returns the name of the device, for events: for example "GPU 0 (NVIDIA H200)".
    fn name(&self) -> &str;

    /// Returns the number of subcircuits of a type that it takes at once; 0 for a type that does not fit into its
    /// memory.
    fn batch(&self, key: &ProvingKey) -> usize;

    /// Computes the sum of the query D with each vector of committed values (spec: mirage#commit).
    ///
    /// # Errors
    /// If the device fails or lacks memory.
    fn commit(
        &self,
        key: &ProvingKey,
        values: &[Vec<Fr>],
    ) -> Result<Vec<G1Point>, AcceleratorError>;

    /// Computes the sums of each assignment (spec: mirage#prove). With [`WitnessCheck::Check`], returns for a wrong
    /// assignment the first constraint that fails.
    ///
    /// # Errors
    /// If the device fails or lacks memory.
    fn prove(
        &self,
        key: &ProvingKey,
        assignments: &[Vec<Fr>],
        check: WitnessCheck,
    ) -> Result<Vec<Result<Sums, Unsatisfied>>, AcceleratorError>;

    /// Returns the work since the last call.
    fn take_work(&self) -> DeviceWork;
}

/// The reason that a device returned no sums. The CPU computes them then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcceleratorError {
    /// It cannot compute a type, for example for lack of memory. It can be asked for others.
    #[error("{0}")]
    Unfit(String),
    /// It failed, and is not used any more.
    #[error("{0}")]
    Failed(String),
}

/// A queue, from which batches are taken: one for each key and computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Queue {
    key: u64,
    computation: Computation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Computation {
    Commit,
    Prove { check: bool },
}

/// The place of a waiting prover.
type Ticket = u64;

/// The answer of a device for one vector.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "few exist at a time")]
enum Answer {
    Commit(G1Point),
    Prove(Result<Sums, Unsatisfied>),
}

/// An answer, and the number of the device that computed it.
type By<A> = (usize, A);

/// A vector, and its answer; `None` if the CPU has to compute it.
type Outcome<A> = (Vec<Fr>, Option<By<A>>);

#[derive(Debug, Default)]
struct DeviceState {
    /// The number of batches that it has, at most [`IN_FLIGHT`].
    running: usize,
    is_lost: bool,
    /// The batch of each key that was asked for: 0 if it does not fit.
    batches: BTreeMap<u64, usize>,
    last: Option<Queue>,
}

/// The most batches that a device has at a time: one that it computes, and one that is copied to it.
const IN_FLIGHT: usize = 2;

impl DeviceState {
    /// The batch for a key whose batch is known.
    fn batch(&self, key: u64) -> usize {
        if self.is_lost { 0 } else { self.batches.get(&key).copied().unwrap_or(0) }
    }
}

#[derive(Debug, Default)]
struct State {
    devices: Vec<DeviceState>,
    waiting: BTreeMap<Queue, VecDeque<(Ticket, Vec<Fr>)>>,
    outcomes: BTreeMap<Ticket, Outcome<Answer>>,
    /// Vectors that wait or are with a device.
    in_flight: usize,
    /// Provers that compute sums themselves.
    on_cores: usize,
    next: Ticket,
}

impl State {
    /// Returns the queue from which a device should take its next batch: the longest; of equal ones, the one that it used
    /// last. A device that computes takes only a full batch beside that: what waits for it meanwhile grows.
    fn best(&self, device: &DeviceState) -> Option<Queue> {
        let usable = self.waiting.iter().filter(|(queue, list)| {
            let batch = device.batch(queue.key);
            let enough = if device.running == 0 { 1 } else { batch };
            batch > 0 && list.len() >= enough && device.running < IN_FLIGHT
        });
        let best = usable.max_by_key(|(queue, list)| (list.len(), Some(**queue) == device.last));
        best.map(|(queue, _)| *queue)
    }

    /// Returns the most vectors of a key that may wait or be with a device: two batches for each, so that one is ready when the
    /// other is done.
    fn places(&self, key: u64) -> usize {
        IN_FLIGHT * self.devices.iter().map(|device| device.batch(key)).sum::<usize>()
    }

    /// Takes the vector of a prover that waits no longer.
    fn leave(&mut self, queue: Queue, ticket: Ticket) -> Option<Vec<Fr>> {
        let list = self.waiting.get_mut(&queue)?;
        let at = list.iter().position(|(other, _)| *other == ticket)?;
        self.in_flight -= 1;
        list.remove(at).map(|(_, vector)| vector)
    }
}

/// The devices of this process, and the provers that wait for them.
pub struct Accelerators {
    devices: Vec<Box<dyn Accelerator>>,
    /// Messages that users have not been told yet.
    messages: Mutex<Vec<String>>,
    state: Mutex<State>,
    changed: Condvar,
    /// The most subcircuits that may wait or be with a device, whatever the batches.
    most: usize,
    /// The most provers that compute sums themselves at a time.
    cores: AtomicUsize,
}

impl fmt::Debug for Accelerators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accelerators").field("devices", &self.devices).finish_non_exhaustive()
    }
}

impl Accelerators {
    /// Creates empty queues for these devices.
    pub fn new(devices: Vec<Box<dyn Accelerator>>) -> Self {
        let state = State {
            devices: devices.iter().map(|_| DeviceState::default()).collect(),
            ..State::default()
        };
        let (state, changed, messages) = (state.into(), Condvar::new(), Mutex::default());
        Self { devices, messages, state, changed, most: usize::MAX, cores: usize::MAX.into() }
    }

    /// Bounds the number of subcircuits that wait or are with a device, and so their memory. Default: no bound.
    #[must_use]
    pub fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Returns the number of provers that may wait for devices: two batches for each, of the type with the largest. A round
    /// needs this many provers in addition to those that compute on the CPU.
    pub fn places(&self, keys: &[ProvingKey]) -> usize {
        let mut state = self.lock();
        let places = |key| {
            self.learn(&mut state, key);
            state.places(key.id())
        };
        keys.iter().map(places).max().unwrap_or(0).min(self.most)
    }

    /// Sets the number of provers that may compute sums themselves at a time: there are more, which wait for devices, and
    /// all of them would have to if devices are lost.
    pub(crate) fn set_cores(&self, cores: usize) {
        self.cores.store(cores.max(1), Ordering::Relaxed);
    }

    fn has_core(&self, state: &State) -> bool {
        state.on_cores < self.cores.load(Ordering::Relaxed)
    }

    /// Computes sums in this thread, once fewer than all cores do.
    pub(crate) fn on_core<R>(&self, compute: impl FnOnce() -> R) -> R {
        struct Core<'a>(&'a Accelerators);
        impl Drop for Core<'_> {
            fn drop(&mut self) {
                self.0.lock().on_cores -= 1;
                self.0.changed.notify_all();
            }
        }
        let mut state = self.lock();
        while !self.has_core(&state) {
            state = self.wait(state);
        }
        state.on_cores += 1;
        drop(state);
        let _core = Core(self);
        compute()
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up all devices of this process, of which one computed a wrong answer.
    pub(crate) fn give_up_all(&self) {
        (0..self.devices.len()).for_each(|device| self.give_up(device));
    }

    /// Returns the messages since the last call: which devices were given up, and which types they do not take.
    pub(crate) fn take_messages(&self) -> Vec<String> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn say(&self, message: String) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Gives up a device that answered wrongly.
    pub(crate) fn give_up(&self, device: usize) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.devices[device].is_lost, true) {
            drop(state);
            self.changed.notify_all();
            self.say(given_up(self.devices[device].name(), "it computed wrong answers"));
        }
    }

    /// The name of a device.
    pub(crate) fn name(&self, device: usize) -> &str {
        self.devices[device].name()
    }

    /// Returns what each device has done since the last call, with its name.
    pub(crate) fn take_work(&self) -> Vec<(String, DeviceWork)> {
        let work = self.devices.iter().map(|device| (device.name().to_owned(), device.take_work()));
        work.filter(|(_, work)| work.batches > 0).collect()
    }

    /// Computes the sum of committed values.
    pub(crate) fn commit(&self, key: &ProvingKey, values: Vec<Fr>) -> Outcome<G1Point> {
        match self.compute(key, Computation::Commit, values) {
            (values, Some((device, Answer::Commit(sum))))
                if self.is_plausible(device, sum.is_in_group()) =>
            {
                (values, Some((device, sum)))
            }
            (values, _) => (values, None),
        }
    }

    /// Computes the sums of an assignment.
    pub(crate) fn prove(
        &self,
        key: &ProvingKey,
        z: Vec<Fr>,
        check: WitnessCheck,
    ) -> Outcome<Result<Sums, Unsatisfied>> {
        let computation = Computation::Prove { check: check == WitnessCheck::Check };
        match self.compute(key, computation, z) {
            (z, Some((device, Answer::Prove(Err(unsatisfied))))) => {
                (z, Some((device, Err(unsatisfied))))
            }
            (z, Some((device, Answer::Prove(Ok(sums))))) => {
                let Sums { a, b, x, l, h } = &sums;
                let are_points =
                    [a, x, l, h].into_iter().all(Group::is_in_group) && b.is_in_group();
                (z, self.is_plausible(device, are_points).then_some((device, Ok(sums))))
            }
            (z, _) => (z, None),
        }
    }

    /// Gives up a device that returned points outside of their groups, as most faults will.
    fn is_plausible(&self, device: usize, are_in_groups: bool) -> bool {
        if !are_in_groups {
            self.give_up(device);
        }
        are_in_groups
    }

    /// Locks the state. Devices run without the lock, so a poisoned one is consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks devices that have not seen a key for their batch.
    fn learn(&self, state: &mut State, key: &ProvingKey) {
        for (device, state) in self.devices.iter().zip(&mut state.devices) {
            state.batches.entry(key.id()).or_insert_with(|| {
                // At most half of what may be in flight, so that one batch can be copied while another is computed.
                let share = self.most / (IN_FLIGHT * self.devices.len());
                let batch = device.batch(key).min(share.max(1));
                if batch == 0 {
                    self.say(does_not_fit(device.name(), key, "its memory is too small"));
                }
                batch
            });
        }
    }

    /// Queues a vector until there is an answer, and meanwhile runs devices that are free.
    fn compute(
        &self,
        key: &ProvingKey,
        computation: Computation,
        vector: Vec<Fr>,
    ) -> Outcome<Answer> {
        let queue = Queue { key: key.id(), computation };
        let mut state = self.lock();
        self.learn(&mut state, key);
        // Further provers compute instead, if there are cores for them.
        while state.in_flight >= state.places(queue.key).min(self.most) {
            if self.has_core(&state) {
                return (vector, None);
            }
            state = self.wait(state);
        }
        let ticket = state.next;
        state.next += 1;
        state.in_flight += 1;
        state.waiting.entry(queue).or_default().push_back((ticket, vector));
        loop {
            if let Some(outcome) = state.outcomes.remove(&ticket) {
                return outcome;
            }
            let is_usable = |device: &DeviceState| device.batch(queue.key) > 0;
            if !state.devices.iter().any(is_usable)
                && let Some(vector) = state.leave(queue, ticket)
            {
                return (vector, None);
            }
            let mine = (state.devices.iter().enumerate())
                .filter(|(_, device)| state.best(device) == Some(queue))
                .min_by_key(|(_, device)| device.running);
            state = match mine.map(|(number, _)| number) {
                Some(device) => self.run(state, device, key, queue),
                None => self.wait(state),
            };
        }
    }

    /// Runs a device on the next batch of a queue.
    fn run<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        device: usize,
        key: &ProvingKey,
        queue: Queue,
    ) -> MutexGuard<'a, State> {
        let batch = state.devices[device].batch(queue.key);
        let Some(waiting) = state.waiting.get_mut(&queue) else { return state };
        let (tickets, vectors): (Vec<_>, Vec<_>) =
            waiting.drain(..batch.min(waiting.len())).unzip();
        state.devices[device].running += 1;
        drop(state);
        // Another queue may now be the longest for the other devices.
        self.changed.notify_all();
        let accelerator = &*self.devices[device];
        let answers = catch_unwind(AssertUnwindSafe(|| answers(accelerator, key, queue, &vectors)))
            .unwrap_or_else(|_| Err(AcceleratorError::Failed("its driver panicked".into())));

        let mut state = self.lock();
        state.in_flight -= vectors.len();
        let own = &mut state.devices[device];
        own.running -= 1;
        own.last = Some(queue);
        let (name, count) = (accelerator.name(), vectors.len());
        let (answers, message) = match answers {
            // Given up meanwhile: what it computed is worth nothing, and the reason was told.
            _ if own.is_lost => (vec![None; count], None),
            Ok(answers) => {
                (answers.into_iter().map(|answer| Some((device, answer))).collect(), None)
            }
            Err(AcceleratorError::Unfit(why)) => {
                let is_new = own.batches.insert(queue.key, 0) != Some(0);
                (vec![None; count], is_new.then(|| does_not_fit(name, key, &why)))
            }
            Err(AcceleratorError::Failed(why)) => {
                own.is_lost = true;
                (vec![None; count], Some(given_up(name, &why)))
            }
        };
        let outcomes = vectors.into_iter().zip(answers);
        state.outcomes.extend(tickets.into_iter().zip(outcomes));
        self.changed.notify_all();
        if let Some(message) = message {
            self.say(message);
        }
        state
    }
}

/// The answers of a device for a batch, one for each vector.
fn answers(
    device: &dyn Accelerator,
    key: &ProvingKey,
    queue: Queue,
    vectors: &[Vec<Fr>],
) -> Result<Vec<Answer>, AcceleratorError> {
    let answers: Vec<Answer> = match queue.computation {
        Computation::Commit => {
            device.commit(key, vectors)?.into_iter().map(Answer::Commit).collect()
        }
        Computation::Prove { check } => {
            let check = if check { WitnessCheck::Check } else { WitnessCheck::Skip };
            device.prove(key, vectors, check)?.into_iter().map(Answer::Prove).collect()
        }
    };
    if answers.len() != vectors.len() {
        let why = format!("{} answers for {} subcircuits", answers.len(), vectors.len());
        return Err(AcceleratorError::Failed(why));
    }
    Ok(answers)
}

fn given_up(device: &str, why: &str) -> String {
    format!("{device} is not used any more, and its subcircuits are computed again: {why}")
}

fn does_not_fit(device: &str, key: &ProvingKey, why: &str) -> String {
    format!(
        "{device} does not take subcircuits of type '{}', which the CPU proves: {why}",
        key.name()
    )
}
