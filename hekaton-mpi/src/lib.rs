//! MPI as the network between ranks (MPI standard 4.0, chapters 3 point-to-point, 7 groups and communicators, 11 process
//! initialisation).
//!
//! [`Mpi::run`] gives a rank its [`Endpoint`] on a thread of its own, and moves messages on the thread that started MPI:
//! threading level *funneled*, all that any MPI has. Messages may be of any length: they are split, because MPI counts in C
//! ints. Who has nothing to move sleeps, so a rank that shares its cores burns none.
//!
//! A rank that says nothing for a while is lost: every rank gives signs of life, whatever its provers do, because this
//! thread does nothing else. Errors are results; nothing here panics because of what another rank did.

#![allow(unsafe_code)] // MPI is a C library; each block says why it is sound

mod files;
mod transport;

pub use transport::{Abort, Watch};

use hekaton_core::ranks::{Endpoint, Launch, Strangers};
use mpi::environment::Universe;
use mpi::topology::{Color, Communicator, SimpleCommunicator};
use mpi::{Threading, ffi};
use std::path::PathBuf;

/// Why MPI can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// Not all ranks were started as one job.
    #[error(transparent)]
    Launch(#[from] Strangers),
    /// MPI does not start.
    #[error("MPI does not start: {0}; try `hekaton doctor`")]
    Start(&'static str),
    /// Files could not be given to all nodes.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The first rank of some node could not prepare its files; it says why itself.
    #[error("a node could not prepare the keys; its first rank says why")]
    Leader,
}

/// A process that MPI started.
pub struct Mpi {
    world: SimpleCommunicator,
    node: SimpleCommunicator,
    // dropped last: MPI_Finalize
    _universe: Universe,
}

impl std::fmt::Debug for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mpi").field("rank", &self.rank()).field("size", &self.size()).finish_non_exhaustive()
    }
}

impl Mpi {
    /// Starts MPI; all its functions must be called from this thread. What the environment says is looked at first: ranks
    /// that SLURM started as strangers to each other are refused.
    ///
    /// # Errors
    /// What is wrong with the launch, and what to do.
    pub fn start() -> Result<Self, MpiError> {
        let launch = Launch::of_environment();
        launch.check_before()?;
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Funneled) else {
            return Err(MpiError::Start("it was started before"));
        };
        if threading < Threading::Funneled {
            return Err(MpiError::Start("it allows no threads"));
        }
        let world = universe.world();
        launch.check_after(world.size() as usize)?;
        let node = world.split_shared(world.rank());
        Ok(Self { world, node, _universe: universe })
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.world.size() as usize
    }

    /// Ranks on this node.
    pub fn ranks_on_node(&self) -> usize {
        self.node.size() as usize
    }

    /// Runs `rank` on a thread of its own, with this rank's end of the network, and moves messages meanwhile. Comes back when
    /// it has ended and everything that it sent is on its way.
    pub fn run<R: Send>(&self, watch: &Watch, rank: impl FnOnce(Endpoint, Abort) -> R + Send) -> R {
        transport::run(&self.world, watch, rank)
    }

    /// The orderly end: all ranks leave MPI together. Rank 0, which has the result and comes last, waits ten seconds for
    /// the others and then leaves with the code; the others wait ten minutes for rank 0 to write what it has.
    pub fn finish(self, code: u8) {
        let patience = std::time::Duration::from_secs(if self.rank() == 0 { 10 } else { 600 });
        std::thread::spawn(move || {
            std::thread::sleep(patience);
            transport::leave(code);
        });
        drop(self);
    }

    /// Ends all ranks at once with this exit code.
    pub fn abort(&self, code: u8) -> ! {
        transport::abort(&self.world, code)
    }

    /// One communicator for the first rank of each node; `None` on the others.
    fn leaders(&self) -> Option<SimpleCommunicator> {
        let color = if self.node.rank() == 0 { Color::with_value(0) } else { Color::undefined() };
        self.world.split_by_color(color)
    }
}

fn raw(communicator: &SimpleCommunicator) -> ffi::MPI_Comm {
    use mpi::raw::AsRaw;
    communicator.as_raw()
}
