//! A process that MPI started: its rank, its communicators, and its end (MPI standard 4.0, chapters 7 and 11).

use crate::error::MpiError;
use crate::launch::Launch;
use crate::transport::{self, Abort, Watch};
use hekaton_core::distributed::Endpoint;
use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::{Color, Communicator, SimpleCommunicator};

/// A process that MPI started.
pub struct Mpi {
    pub(crate) world: SimpleCommunicator,
    pub(crate) node: SimpleCommunicator,
    // dropped last: MPI_Finalize
    _universe: Universe,
}

impl std::fmt::Debug for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mpi")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .finish_non_exhaustive()
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
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Funneled)
        else {
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
    pub(crate) fn leaders(&self) -> Option<SimpleCommunicator> {
        let color = if self.node.rank() == 0 { Color::with_value(0) } else { Color::undefined() };
        self.world.split_by_color(color)
    }
}
