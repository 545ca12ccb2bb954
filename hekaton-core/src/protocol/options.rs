//! The options of a run: [`ProveOptions`] and [`Cancellation`].

use crate::events::Recorder;
use crate::mirage::WitnessCheck;
use crate::protocol::accelerator::Accelerators;
use crate::protocol::direct::DirectRun;
use crate::protocol::journal::Journal;
use crate::randomness::Randomness;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to stop. Clones share one request.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// A request that has not been made yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the run: subcircuits in progress are finished and kept, and no more are started. The
    /// run ends with [`ProveError::Cancelled`](crate::ProveError::Cancelled).
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Reports whether [`Self::cancel`] was called.
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
    pub(crate) accelerators: Option<&'a Accelerators>,
    pub(crate) direct: Option<DirectRun<'a>>,
}

impl Default for ProveOptions<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> ProveOptions<'a> {
    /// The defaults: fresh randomness for each run, witnesses checked, one prover per thread,
    /// nothing recorded. Whether proofs are zero-knowledge is a property of the keys.
    pub fn new() -> Self {
        let cancellation = Cancellation::new();
        Self {
            randomness: None,
            witness_check: WitnessCheck::Check,
            provers: None,
            cancellation,
            recorder: None,
            journal: None,
            accelerators: None,
            direct: None,
        }
    }

    /// Sets the randomness of the run, for tests. Default: drawn from the operating system for each
    /// run, or that of the journal.
    pub fn randomness(mut self, randomness: Randomness) -> Self {
        self.randomness = Some(randomness);
        self
    }

    /// Sets whether each prover checks its witness against the constraints before it proves.
    /// Default: [`WitnessCheck::Check`].
    pub fn witness_check(mut self, check: WitnessCheck) -> Self {
        self.witness_check = check;
        self
    }

    /// Sets the maximum number of subcircuits that are proven at the same time; memory grows with
    /// it. Default, and for 0: one per thread.
    pub fn provers(mut self, provers: usize) -> Self {
        self.provers = NonZeroUsize::new(provers);
        self
    }

    /// Sets the request that stops the run from outside. Default: none.
    pub fn cancellation(mut self, cancellation: &Cancellation) -> Self {
        self.cancellation = cancellation.clone();
        self
    }

    /// Sets the receiver of events, for progress and reports. Default: none.
    pub fn recorder(mut self, recorder: &'a Recorder<'a>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Sets where answers are recorded so that an interrupted run can be resumed, for example a
    /// `RunDirectory` of the crate `hekaton-storage`. Default: nowhere. The randomness of the run
    /// is then that of the journal.
    pub fn journal(mut self, journal: &'a dyn Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Sets the devices of this process that compute the sums of proofs. Each rank has its own, in
    /// [`Serve`](crate::distributed::Serve). Default: none.
    pub fn accelerators(mut self, accelerators: &'a Accelerators) -> Self {
        self.accelerators = Some(accelerators);
        self
    }

    /// Makes the run a direct one, with the proof that [`verify_direct`](crate::verify_direct) takes
    /// (spec: direct#run). The kind of a run is fixed before its first commitment; for both proofs, make two
    /// runs. Default: an aggregated proof.
    pub fn direct(mut self, run: DirectRun<'a>) -> Self {
        self.direct = Some(run);
        self
    }

    /// Reports whether answers are recorded.
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }
}
