//! A process that MPI started: its rank, its communicators, and its end (MPI standard 4.0, chapters
//! 7 and 11).

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
    /// Starts MPI; all its functions must be called from this thread. Refuses tasks that SLURM
    /// started without connecting them by MPI.
    ///
    /// # Errors
    /// If the launch is wrong, with what to do, or if MPI cannot be started.
    pub fn start() -> Result<Self, MpiError> {
        let launch = Launch::of_environment();
        launch.check_before()?;
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Funneled)
        else {
            return Err(MpiError::Start("this process has started it before"));
        };
        if threading < Threading::Funneled {
            let why = "it does not support threads (level funneled); use an MPI that does";
            return Err(MpiError::Start(why));
        }
        let world = universe.world();
        launch.check_after(world.size() as usize)?;
        let node = world.split_shared(world.rank());
        Ok(Self { world, node, _universe: universe })
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.world.size() as usize
    }

    /// The number of ranks on this node.
    pub fn ranks_on_node(&self) -> usize {
        self.node.size() as usize
    }

    /// The number of this rank among those on its node.
    pub fn rank_on_node(&self) -> usize {
        self.node.rank() as usize
    }

    /// Runs `rank` on a thread of its own, with this rank's end of the network, and moves messages
    /// meanwhile. Returns when it has ended and everything that it sent is on its way.
    pub fn run<R: Send>(&self, watch: &Watch, rank: impl FnOnce(Endpoint, Abort) -> R + Send) -> R {
        transport::run(&self.world, watch, rank)
    }

    /// Ends in order: all ranks leave MPI together. Rank 0, which has the result and comes last,
    /// waits ten seconds for the others and then exits with `code`; the others wait ten minutes for
    /// rank 0 to write its results.
    pub fn finish(self, code: u8) {
        let patience = std::time::Duration::from_secs(if self.rank() == 0 { 10 } else { 600 });
        std::thread::spawn(move || {
            std::thread::sleep(patience);
            transport::leave(code);
        });
        drop(self);
    }

    /// Ends all ranks immediately with this exit code.
    pub fn abort(&self, code: u8) -> ! {
        transport::abort(&self.world, code)
    }

    /// A communicator of the first ranks of all nodes; `None` on the other ranks.
    pub(crate) fn leaders(&self) -> Option<SimpleCommunicator> {
        let color = if self.node.rank() == 0 { Color::with_value(0) } else { Color::undefined() };
        self.world.split_by_color(color)
    }
}
