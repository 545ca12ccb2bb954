//! The summary of a run's events. Both the final table of `prove` and `hekaton report` print it.

use hekaton_core::events::{DeviceAccount, Outcome, Phase, RankAccount, TypeSummary};
use serde_json::Value;

/// One process of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) unix_time: f64,
    pub(crate) outcome: Option<Outcome>,
    /// the time of its last event
    pub(crate) end: f64,
    pub(super) open: Option<(Phase, f64)>,
}

/// One phase, summed over all processes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PhaseSummary {
    /// some process reported something about it
    pub(crate) started: bool,
    pub(crate) seconds: f64,
    /// CPU time of this process, and of the provers of other ranks
    pub(crate) cpu_seconds: f64,
    pub(crate) bytes: u64,
    /// subcircuits done, over all processes
    pub(crate) steps: u64,
    /// total time of these subcircuits
    pub(crate) step_seconds: f64,
    /// subcircuits that the last process found done
    pub(crate) found: u64,
    /// the maximum of bytes sent to and received from one subcircuit's prover
    pub(crate) most_bytes: u64,
    pub(crate) complete: bool,
}

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) circuit: String,
    pub(crate) parameters: String,
    pub(crate) subcircuits: u64,
    pub(crate) constraints: u64,
    pub(crate) types: Vec<TypeSummary>,
    pub(crate) threads: u64,
    pub(crate) provers: u64,
    pub(crate) ranks: u64,
    pub(crate) zero_knowledge: bool,
}

impl Parameters {
    /// The parameters as JSON. Events can come from anyone, so text that is not JSON is shown as text.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.parameters)
            .unwrap_or_else(|_| Value::String(self.parameters.clone()))
    }

    // With one rank, provers are at most the threads, and idle threads count, too: a rate per core-second must not look
    // better because the memory limit left cores idle.
    /// The number of cores in use.
    fn cores(&self) -> u64 {
        if self.ranks > 1 { self.provers } else { self.threads }
    }
}

/// The proof that was written, and how to verify it.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) public: String,
    /// The public values for people.
    pub(crate) shown: String,
    /// The arguments of the command that verifies it.
    pub(crate) verify: String,
}

/// One of the slowest subcircuits.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub(crate) phase: Phase,
    pub(crate) instance: u64,
    pub(crate) kind: String,
    pub(crate) seconds: f64,
    pub(crate) prover: String,
}

/// The summary of a run's events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) processes: Vec<Process>,
    pub(crate) parameters: Option<Parameters>,
    /// in the order of [`Phase::ALL`]
    phases: [PhaseSummary; Phase::ALL.len()],
    pub(crate) slowest: Vec<Slow>,
    /// work and traffic per rank and phase, in the last process
    pub(crate) ranks: Vec<RankAccount>,
    /// GPUs of the process that writes the events
    pub(crate) devices: Vec<DeviceAccount>,
    pub(crate) peak_memory: u64,
    pub(crate) notices: Vec<String>,
    pub(crate) errors: Vec<String>,
    pub(crate) written: Option<Written>,
    /// CPU time in the open phase: that of the subcircuits, until the phase's end reports that of the
    /// process
    pub(super) open_cpu: f64,
    /// the run is finished; later processes only looked at it
    pub(super) over: bool,
}

impl Process {
    /// Describes the end of the process in a word.
    pub(crate) fn ending(&self) -> &'static str {
        match self.outcome {
            Some(Outcome::Finished) => "finished",
            Some(Outcome::Interrupted) => "interrupted",
            Some(Outcome::Failed) => "failed",
            None => "killed or still running",
        }
    }
}

impl Summary {
    /// Returns the summary of a phase.
    pub(crate) fn phase(&self, phase: Phase) -> PhaseSummary {
        self.phases[phase as usize]
    }

    pub(super) fn phase_mut(&mut self, phase: Phase) -> &mut PhaseSummary {
        let summary = &mut self.phases[phase as usize];
        summary.started = true;
        summary
    }

    /// Declares that no more events follow.
    pub(crate) fn end(&mut self) {
        self.close();
    }

    /// Total time of all processes.
    pub(crate) fn seconds(&self) -> f64 {
        self.processes.iter().map(|p| p.end).sum()
    }

    /// The phase that ends with a proof.
    fn last_phase(&self) -> Phase {
        match self.phase(Phase::Assemble).started {
            true => Phase::Assemble,
            false => Phase::Aggregate,
        }
    }

    /// The phases of a run of its kind, in order.
    pub(crate) fn phases(&self) -> impl Iterator<Item = Phase> {
        let other = match self.last_phase() {
            Phase::Assemble => Phase::Aggregate,
            _ => Phase::Assemble,
        };
        Phase::ALL.into_iter().filter(move |phase| *phase != other)
    }

    /// Constraints per core-second, from execution to the verified proof.
    pub(crate) fn rate(&self) -> Option<f64> {
        let parameters = self.parameters.as_ref()?;
        // Loading keys is left out: it depends on the file system and the page cache.
        let work =
            [Phase::Execute, Phase::Commit, Phase::Prove, self.last_phase()].map(|p| self.phase(p));
        let seconds: f64 = work.iter().map(|p| p.seconds).sum();
        let complete = work[3].complete && seconds > 0.0;
        complete.then(|| parameters.constraints as f64 / seconds / parameters.cores() as f64)
    }

    /// CPU time of all provers and of the coordinator.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        Phase::ALL.iter().map(|phase| self.phase(*phase).cpu_seconds).sum()
    }

    /// Constraints per second of CPU time, from execution to the verified proof. Unlike the rate per
    /// core-second, it does not depend on the load of the machine.
    pub(crate) fn cpu_rate(&self) -> Option<f64> {
        let constraints = self.parameters.as_ref()?.constraints as f64;
        let cpu = self.cpu_seconds() - self.phase(Phase::LoadKeys).cpu_seconds;
        let complete = self.phase(self.last_phase()).complete && cpu > 0.0;
        complete.then(|| constraints / cpu)
    }

    /// The fraction of both rounds' time during which provers were busy.
    pub(crate) fn utilization(&self) -> Option<f64> {
        let rounds = [Phase::Commit, Phase::Prove].map(|p| self.phase(p));
        let wall: f64 = rounds.iter().map(|p| p.seconds).sum();
        let work: f64 = rounds.iter().map(|p| p.step_seconds).sum();
        let provers = self.parameters.as_ref()?.provers as f64;
        // At most 1: clocks of ranks and of this process are not read at the same moment.
        (wall > 0.0).then(|| (work / wall / provers).min(1.0))
    }

    /// Describes the end of the last process in a word.
    pub(super) fn state(&self) -> &'static str {
        self.processes.last().map_or("unknown", Process::ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_core::events::{Event, Record};

    fn record(at: f64, event: Event) -> Record {
        Record { at, event }
    }

    fn process() -> Event {
        Event::ProcessStart {
            schema: 1,
            program: "p".into(),
            host: "h".into(),
            pid: 1,
            unix_time: 1e9,
        }
    }

    fn step(instance: u64, seconds: f64) -> Event {
        Event::Subcircuit {
            phase: Phase::Commit,
            instance,
            kind: "leaf".into(),
            start: 0.0,
            seconds,
            cpu_seconds: seconds / 2.0,
            bytes: 1,
            prover: "prover-0".into(),
        }
    }

    /// A process that was killed in the middle of a phase, and one that resumes the run. The wall
    /// clock plays no part.
    #[test]
    fn two_processes_add_up() {
        let mut summary = Summary::default();
        let start = |done| Event::PhaseStart { phase: Phase::Commit, total: 3, done };
        let mut events =
            vec![record(0.0, process()), record(1.0, start(0)), record(3.0, step(0, 2.0))];
        events.extend([
            record(0.0, process()),
            record(2.0, start(1)),
            record(3.0, step(1, 0.5)),
            record(4.0, step(2, 1.0)),
        ]);
        let end =
            Event::PhaseEnd { phase: Phase::Commit, seconds: 3.0, cpu_seconds: 2.5, bytes: 9 };
        events.push(record(5.0, end));
        events.push(record(5.0, Event::RunEnd { outcome: Outcome::Failed, seconds: 5.0 }));
        events.iter().for_each(|r| summary.add(r));
        summary.end();
        let commit = summary.phase(Phase::Commit);
        assert_eq!(
            (commit.seconds, commit.steps, commit.found, commit.complete),
            (5.0, 3, 1, true)
        );
        assert_eq!(summary.seconds(), 8.0);
        assert_eq!(summary.slowest.iter().map(|s| s.instance).collect::<Vec<_>>(), [0, 2, 1]);
        let endings: Vec<_> = summary.processes.iter().map(Process::ending).collect();
        assert_eq!(endings, ["killed or still running", "failed"]);
        assert!(summary.table().contains("none yet"));
    }
}
