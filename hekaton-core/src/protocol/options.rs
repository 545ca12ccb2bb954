//! How a run is done: [`ProveOptions`] and [`Cancellation`].

use crate::events::Recorder;
use crate::mirage::WitnessCheck;
use crate::protocol::journal::Journal;
use crate::randomness::Randomness;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to stop. Clones stand for the same request.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Nothing is cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Subcircuits under way are finished and kept, no more are started; the run ends with
    /// [`ProveError::Cancelled`](crate::ProveError::Cancelled).
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether [`Self::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Options of [`prove`](crate::prove()), each with a default.
///
/// ```
/// use hekaton_core::{Cancellation, ProveOptions};
/// let stop = Cancellation::new();
/// let options = ProveOptions::new().provers(2).cancellation(&stop);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ProveOptions<'a> {
    pub(crate) randomness: Option<Randomness>,
    pub(crate) witness_check: WitnessCheck,
    pub(crate) provers: Option<NonZeroUsize>,
    pub(crate) cancellation: Cancellation,
    pub(crate) recorder: Option<&'a Recorder<'a>>,
    pub(crate) journal: Option<&'a dyn Journal>,
}

impl Default for ProveOptions<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> ProveOptions<'a> {
    /// Zero-knowledge proofs, fresh randomness for each run, witnesses checked, one prover a thread, nothing kept on
    /// disk.
    pub fn new() -> Self {
        let cancellation = Cancellation::new();
        Self {
            randomness: None,
            witness_check: WitnessCheck::Check,
            provers: None,
            cancellation,
            recorder: None,
            journal: None,
        }
    }

    /// The run's randomness. Default: drawn fresh for each run, or the run directory's. Giving it is for tests.
    pub fn randomness(mut self, randomness: Randomness) -> Self {
        self.randomness = Some(randomness);
        self
    }

    /// Whether each prover checks its witness against the constraints before it proves. Default:
    /// [`WitnessCheck::Check`].
    pub fn witness_check(mut self, check: WitnessCheck) -> Self {
        self.witness_check = check;
        self
    }

    /// How many subcircuits are proven at once, at most; memory grows with it. Default, and for 0: one a thread.
    pub fn provers(mut self, provers: usize) -> Self {
        self.provers = NonZeroUsize::new(provers);
        self
    }

    /// What stops the run from outside. Default: nothing.
    pub fn cancellation(mut self, cancellation: &Cancellation) -> Self {
        self.cancellation = cancellation.clone();
        self
    }

    /// Who is told what happens, for progress and reports. Default: nobody.
    pub fn recorder(mut self, recorder: &'a Recorder<'a>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Where answers are kept, so that an interrupted run can be resumed; a `RunDirectory` of the crate `hekaton-storage`.
    /// Default: nowhere. The journal's secret seed is the run's randomness.
    pub fn journal(mut self, journal: &'a dyn Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Whether answers are kept.
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }
}
