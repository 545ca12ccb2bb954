//! The way in which this process was started, as far as its environment shows.

use std::num::NonZeroUsize;

/// srun started several tasks without MPI between them: each would be a job of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "srun started {tasks} tasks that are not connected by MPI: each would be rank 0 of 1. Use \
     `srun --mpi=pmix` (`srun --mpi=list` prints what the cluster supports) or mpirun"
)]
pub struct SingletonLaunch {
    /// The number of tasks that srun started.
    pub tasks: usize,
}

/// The launch, as the environment reveals it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Number of tasks in SLURM's step, if `srun` started this process.
    pub slurm_tasks: Option<usize>,
    /// `true` if there is a process manager that MPI understands (PMIx, or mpirun's own).
    pub managed: bool,
    /// Number of ranks that mpirun announces.
    pub ranks: Option<usize>,
}

impl Launch {
    /// Reads the environment of this process.
    pub fn of_environment() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| variable(name)?.parse().ok();
        // SLURM_NTASKS also exists in a batch script without srun; these exist only in a step
        let step = variable("SLURM_PROCID").is_some() && variable("SLURM_STEP_ID").is_some();
        let managed = ["PMIX_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK"]
            .iter()
            .any(|name| variable(name).is_some());
        Self {
            slurm_tasks: if step { number("SLURM_STEP_NUM_TASKS") } else { None },
            managed,
            ranks: number("OMPI_COMM_WORLD_SIZE"),
        }
    }

    /// The number of ranks that the launcher announces, without asking MPI; 1 for a process started
    /// by hand.
    pub fn announced(&self) -> usize {
        self.ranks.or(self.slurm_tasks).unwrap_or(1)
    }

    /// Checks the launch before MPI starts, because without a process manager MPI would end the
    /// process with a message of its own.
    ///
    /// # Errors
    /// If srun started several tasks without a process manager.
    pub fn check_before(&self) -> Result<(), SingletonLaunch> {
        match self.slurm_tasks {
            Some(tasks) if tasks > 1 && !self.managed => Err(SingletonLaunch { tasks }),
            _ => Ok(()),
        }
    }

    /// Checks the launch against the number of ranks that MPI reports.
    ///
    /// # Errors
    /// If there is only one rank, but srun started several tasks.
    pub fn check_after(&self, size: usize) -> Result<(), SingletonLaunch> {
        match self.slurm_tasks {
            Some(tasks) if tasks > 1 && size == 1 && self.ranks != Some(1) => {
                Err(SingletonLaunch { tasks })
            }
            _ => Ok(()),
        }
    }
}

/// The default number of provers per rank: the cores per task that SLURM allows, or else those of
/// the affinity mask, divided among the ranks of the node if the mask covers the whole node.
pub fn default_provers(ranks_on_node: usize) -> usize {
    let slurm = std::env::var("SLURM_CPUS_PER_TASK").ok().and_then(|text| text.parse().ok());
    let bound = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let all = std::fs::read_to_string("/proc/cpuinfo")
        .map_or(bound, |text| text.lines().filter(|line| line.starts_with("processor")).count());
    provers(slurm, bound, all, ranks_on_node)
}

fn provers(slurm: Option<usize>, bound: usize, all: usize, ranks_on_node: usize) -> usize {
    match slurm {
        Some(cores) => cores.min(bound.max(1)).max(1),
        None if bound >= all => (bound / ranks_on_node.max(1)).max(1),
        None => bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Launch {
        Launch::of(|name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn singleton_launches_are_recognized() {
        let by_hand = launch(&[]);
        assert_eq!(by_hand.announced(), 1);
        assert!(by_hand.check_before().is_ok() && by_hand.check_after(1).is_ok());

        let without =
            launch(&[("SLURM_PROCID", "0"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "4")]);
        let error = without.check_before().unwrap_err().to_string();
        assert!(error.contains("srun --mpi=pmix") && error.contains("4 tasks"), "{error}");
        assert_eq!(without.announced(), 4);

        let pmix = Launch { managed: true, ..without };
        assert!(pmix.check_before().is_ok() && pmix.check_after(4).is_ok());
        assert!(pmix.check_after(1).is_err());

        // mpirun within sbatch: the job's own variables exist, and mean nothing here
        let mpirun = launch(&[
            ("SLURM_NTASKS", "4"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_RANK", "0"),
        ]);
        assert_eq!(mpirun.announced(), 2);
        assert!(mpirun.check_before().is_ok() && mpirun.check_after(2).is_ok());
    }

    #[test]
    fn provers_are_the_cores_that_a_rank_has() {
        assert_eq!(provers(Some(32), 128, 128, 4), 32);
        assert_eq!(provers(Some(4), 2, 2, 1), 2, "SLURM may promise more than the machine has");
        assert_eq!(provers(None, 8, 8, 2), 4);
        assert_eq!(provers(None, 2, 2, 5), 1);
        assert_eq!(provers(None, 3, 8, 2), 3, "mpirun has bound the rank");
    }
}
