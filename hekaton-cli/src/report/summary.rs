//! The summary of a run's events. Both the final table of `prove` and `hekaton report` print it.

use crate::imported;
use crate::public_values;
use crate::terminal::output;
use hekaton_core::events::{Event, Outcome, Phase, RankAccount, Record, TypeSummary};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The number of the slowest subcircuits that are listed.
const SLOWEST: usize = 10;

/// The most rows that the table of ranks prints.
const RANK_ROWS: usize = 24;

/// One process of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) unix_time: f64,
    pub(crate) outcome: Option<Outcome>,
    /// the time of its last event
    pub(crate) end: f64,
    open: Option<(Phase, f64)>,
}

/// One phase, summed over all processes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PhaseSummary {
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
    /// the most bytes sent to and received from one subcircuit's prover
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
    pub(crate) phases: BTreeMap<usize, PhaseSummary>,
    pub(crate) slowest: Vec<Slow>,
    /// work and traffic per rank and phase, in the last process
    pub(crate) ranks: Vec<RankAccount>,
    pub(crate) peak_memory: u64,
    pub(crate) notices: Vec<String>,
    pub(crate) errors: Vec<String>,
    pub(crate) written: Option<Written>,
    /// CPU time in the phase that is open: of the subcircuits proven, until its end has that of the
    /// process
    open_cpu: f64,
    /// the run is finished; later processes only looked at it
    over: bool,
}

#[allow(clippy::cast_possible_truncation, reason = "a rate per core-second is far below 2^53")]
fn rounded(rate: f64) -> u64 {
    rate.round() as u64
}

fn index(phase: Phase) -> usize {
    Phase::ALL.iter().position(|p| *p == phase).unwrap_or_default()
}

impl Process {
    /// Returns the way in which the process ended, in a word.
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
        self.phases.get(&index(phase)).copied().unwrap_or_default()
    }

    fn phase_mut(&mut self, phase: Phase) -> &mut PhaseSummary {
        self.phases.entry(index(phase)).or_default()
    }

    /// Adds the next event.
    pub(crate) fn add(&mut self, record: &Record) {
        // a process that only found the run finished must not add to its time
        let started = matches!(record.event, Event::ProcessStart { .. });
        self.over |=
            started && self.processes.last().is_some_and(|p| p.outcome == Some(Outcome::Finished));
        if self.over && !matches!(record.event, Event::ProofWritten { .. } | Event::Error { .. }) {
            return;
        }
        if let Event::ProcessStart { host, pid, unix_time, .. } = &record.event {
            self.close();
            self.processes.push(Process {
                host: host.clone(),
                pid: *pid,
                unix_time: *unix_time,
                ..Process::default()
            });
        }
        if let Some(process) = self.processes.last_mut() {
            process.end = process.end.max(record.at);
        }
        match &record.event {
            Event::RunStart {
                circuit,
                parameters,
                subcircuits,
                constraints,
                types,
                threads,
                provers,
                ranks,
                zero_knowledge,
                ..
            } => {
                self.ranks.clear();
                self.parameters = Some(Parameters {
                    circuit: circuit.clone(),
                    parameters: parameters.clone(),
                    subcircuits: *subcircuits,
                    constraints: *constraints,
                    types: types.clone(),
                    threads: *threads,
                    provers: *provers,
                    ranks: *ranks,
                    zero_knowledge: *zero_knowledge,
                });
            }
            Event::PhaseStart { phase, done, .. } => {
                self.close();
                self.open_cpu = 0.0;
                if let Some(process) = self.processes.last_mut() {
                    process.open = Some((*phase, record.at));
                }
                let summary = self.phase_mut(*phase);
                (summary.found, summary.complete) = (*done, false);
            }
            Event::PhaseEnd { phase, bytes, cpu_seconds, .. } => {
                // that of the process, its provers included
                self.open_cpu = *cpu_seconds;
                self.close();
                let summary = self.phase_mut(*phase);
                (summary.bytes, summary.complete) = (*bytes, true);
            }
            Event::Rank(account) => {
                // what rank 0 proves is in the CPU time of its process
                if account.rank > 0 {
                    self.phase_mut(account.phase).cpu_seconds += account.cpu_seconds;
                }
                self.ranks.push(account.clone());
            }
            Event::Subcircuit {
                phase,
                instance,
                kind,
                seconds,
                cpu_seconds,
                prover,
                bytes,
                ..
            } => {
                self.open_cpu += cpu_seconds;
                let summary = self.phase_mut(*phase);
                summary.steps += 1;
                summary.most_bytes = summary.most_bytes.max(*bytes);
                summary.step_seconds += seconds;
                // checked before anything is cloned: there can be millions of subcircuits
                if self.slowest.len() < SLOWEST
                    || self.slowest.last().is_some_and(|s| s.seconds < *seconds)
                {
                    self.add_slow(Slow {
                        phase: *phase,
                        instance: *instance,
                        kind: kind.clone(),
                        seconds: *seconds,
                        prover: prover.clone(),
                    });
                }
            }
            Event::Memory { peak, .. } => self.peak_memory = self.peak_memory.max(*peak),
            Event::Notice { message } => self.notices.push(message.clone()),
            Event::Error { message } => self.errors.push(message.clone()),
            Event::ProofWritten { path, bytes, public, shown, verify, .. } => {
                let (path, public, verify) = (path.clone(), public.clone(), verify.clone());
                let shown = match shown.is_empty() {
                    true => public_values::for_people(&public, &[], Vec::new, &[]),
                    false => shown.clone(),
                };
                self.written = Some(Written { path, bytes: *bytes, public, shown, verify });
            }
            Event::RunEnd { outcome, .. } => {
                self.close();
                if let Some(process) = self.processes.last_mut() {
                    process.outcome = Some(*outcome);
                }
            }
            _ => {}
        }
    }

    /// Keeps the slowest subcircuits, slowest first.
    fn add_slow(&mut self, slow: Slow) {
        let at = self.slowest.partition_point(|s| s.seconds >= slow.seconds);
        self.slowest.insert(at, slow);
        self.slowest.truncate(SLOWEST);
    }

    /// Ends the phase that is open in the last process, at its last event.
    fn close(&mut self) {
        let open = self.processes.last_mut().and_then(|p| Some((p.open.take()?, p.end)));
        if let Some(((phase, start), end)) = open {
            let cpu = std::mem::take(&mut self.open_cpu);
            let summary = self.phase_mut(phase);
            summary.seconds += (end - start).max(0.0);
            summary.cpu_seconds += cpu;
        }
    }

    /// Declares that no more events follow.
    pub(crate) fn end(&mut self) {
        self.close();
    }

    /// Total time of all processes.
    pub(crate) fn seconds(&self) -> f64 {
        self.processes.iter().map(|p| p.end).sum()
    }

    /// Constraints per core-second, from execution to the verified proof.
    pub(crate) fn rate(&self) -> Option<f64> {
        let parameters = self.parameters.as_ref()?;
        let work =
            [Phase::Execute, Phase::Commit, Phase::Prove, Phase::Aggregate].map(|p| self.phase(p));
        let seconds: f64 = work.iter().map(|p| p.seconds).sum();
        let complete = work[3].complete && seconds > 0.0;
        complete.then(|| parameters.constraints as f64 / seconds / parameters.cores() as f64)
    }

    /// CPU time of all provers and of the coordinator.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        Phase::ALL.iter().map(|phase| self.phase(*phase).cpu_seconds).sum()
    }

    /// Constraints per second of CPU time, from execution to the verified proof: the speed of the
    /// program, whatever else the machine does.
    pub(crate) fn cpu_rate(&self) -> Option<f64> {
        let constraints = self.parameters.as_ref()?.constraints as f64;
        let cpu = self.cpu_seconds() - self.phase(Phase::LoadKeys).cpu_seconds;
        let complete = self.phase(Phase::Aggregate).complete && cpu > 0.0;
        complete.then(|| constraints / cpu)
    }

    /// The share of both rounds' time during which provers were busy.
    pub(crate) fn utilization(&self) -> Option<f64> {
        let rounds = [Phase::Commit, Phase::Prove].map(|p| self.phase(p));
        let wall: f64 = rounds.iter().map(|p| p.seconds).sum();
        let work: f64 = rounds.iter().map(|p| p.step_seconds).sum();
        let provers = self.parameters.as_ref()?.provers as f64;
        (wall > 0.0).then(|| (work / wall / provers).min(1.0))
    }

    /// The summary as the JSON object that `--json` prints.
    pub(crate) fn object(&self) -> Value {
        let phases: Vec<Value> = (Phase::ALL.iter())
            .map(|p| (p, self.phase(*p)))
            .map(|(p, s)| {
                json!({
                    "phase": p, "seconds": s.seconds, "cpu_seconds": s.cpu_seconds,
                    "bytes": s.bytes, "subcircuits": s.steps,
                    "found": s.found, "most_bytes_a_subcircuit": s.most_bytes,
                    "complete": s.complete,
                })
            })
            .collect();
        let processes: Vec<Value> = (self.processes.iter())
            .map(|p| {
                json!({
                    "host": p.host, "pid": p.pid, "unix_time": p.unix_time, "seconds": p.end,
                    "ending": p.ending(),
                })
            })
            .collect();
        let slowest: Vec<Value> = (self.slowest.iter())
            .map(|s| {
                json!({
                    "phase": s.phase, "instance": s.instance, "type": s.kind,
                    "seconds": s.seconds, "prover": s.prover,
                })
            })
            .collect();
        let run = self.parameters.as_ref();
        let written = self.written.as_ref();
        let parameters =
            run.map(|r| serde_json::from_str::<Value>(&r.parameters).unwrap_or_default());
        json!({
            "ok": true, "circuit": run.map(|r| &r.circuit), "parameters": parameters,
            "subcircuits": run.map(|r| r.subcircuits), "constraints": run.map(|r| r.constraints),
            "threads": run.map(|r| r.threads), "provers": run.map(|r| r.provers),
            "ranks": run.map(|r| r.ranks), "rank_accounts": self.ranks,
            "zero_knowledge": run.map(|r| r.zero_knowledge), "proof": written.map(|w| &w.path),
            "proof_bytes": written.map(|w| w.bytes), "public": written.map(|w| &w.public),
            "state": self.state(), "slowest": slowest, "phases": phases, "processes": processes,
            "seconds": self.seconds(), "cpu_seconds": self.cpu_seconds(),
            "constraints_a_core_second": self.rate(),
            "constraints_a_cpu_second": self.cpu_rate(),
            "utilisation": self.utilization(), "peak_memory_bytes": self.peak_memory,
            "notices": self.notices, "errors": self.errors,
        })
    }

    /// Returns the way in which the last process ended, in a word.
    fn state(&self) -> &'static str {
        self.processes.last().map_or("unknown", Process::ending)
    }

    /// The table of ranks: communication, as in the paper, and time busy and idle.
    fn rank_table(&self) -> String {
        if self.ranks.is_empty() {
            return String::new();
        }
        let head =
            ["rank", "phase", "subcircuits", "busy", "idle", "to rank", "from rank", "peak memory"];
        let mut out = format!(
            "{:<24} {:<13} {:>11} {:>9} {:>9} {:>9} {:>9} {:>11}\n",
            head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7]
        );
        for account in self.ranks.iter().take(RANK_ROWS) {
            let name = format!("{} {} ({} provers)", account.rank, account.host, account.provers);
            let (busy, idle) = (
                output::seconds_f64(account.busy_seconds),
                output::seconds_f64(account.idle_seconds),
            );
            let (sent, received) =
                (output::bytes(account.sent_bytes), output::bytes(account.received_bytes));
            out += &format!(
                "{name:<24} {:<13} {:>11} {busy:>9} {idle:>9} {sent:>9} {received:>9} {:>11}\n",
                account.phase.name(),
                account.subcircuits,
                output::bytes(account.peak_memory)
            );
        }
        if self.ranks.len() > RANK_ROWS {
            out +=
                &format!("and {} more rows: --json lists them all\n", self.ranks.len() - RANK_ROWS);
        }
        for phase in [Phase::Commit, Phase::Prove].map(|phase| (phase, self.phase(phase))) {
            let most = output::bytes(phase.1.most_bytes);
            out += &format!(
                "at most {most} to and from any one subcircuit's prover in the {}\n",
                phase.0.name()
            );
        }
        out + "\n"
    }

    /// The summary as a table for people.
    pub(crate) fn table(&self) -> String {
        let mut out = format!(
            "{:<16} {:>10} {:>10} {:>12} {:>12}\n",
            "phase", "time", "CPU", "bytes", "subcircuits"
        );
        for phase in Phase::ALL {
            let Some(summary) = self.phases.get(&index(phase)) else { continue };
            let bytes =
                if summary.bytes > 0 { output::bytes(summary.bytes) } else { String::new() };
            let steps = match phase {
                Phase::Commit | Phase::Prove if summary.complete => output::count(summary.steps),
                Phase::Commit | Phase::Prove => {
                    let all = self.parameters.as_ref().map_or(0, |p| p.subcircuits);
                    format!("{} of {all}", output::count(summary.steps))
                }
                _ => String::new(),
            };
            let state = if summary.complete { "" } else { "  not finished" };
            let time = output::seconds_f64(summary.seconds);
            let cpu = output::seconds_f64(summary.cpu_seconds);
            out += &format!(
                "{:<16} {time:>10} {cpu:>10} {bytes:>12} {steps:>12}{state}\n",
                phase.name()
            );
        }
        let (time, cpu) = (self.seconds(), self.cpu_seconds());
        let (time, cpu) = (output::seconds_f64(time), output::seconds_f64(cpu));
        out += &format!("{:<16} {time:>10} {cpu:>10}\n\n", "all");
        out += &self.rank_table();
        let mut row = |name: &str, value: String| out += &format!("{name:<16} {value}\n");
        row("state", self.state().to_owned());
        if self.processes.len() > 1 {
            let endings: Vec<&str> = self.processes.iter().map(Process::ending).collect();
            row("processes", format!("{} ({})", endings.len(), endings.join(", ")));
        }
        if let Some(run) = &self.parameters {
            let parameters = serde_json::from_str(&run.parameters).unwrap_or_default();
            row("circuit", imported::describe(&run.circuit, &parameters));
            row("subcircuits", output::count(run.subcircuits));
            let rate = |rate: Option<f64>, per: &str| {
                rate.map_or_else(String::new, |r| {
                    format!(", {} per {per}", output::count(rounded(r)))
                })
            };
            let rate = rate(self.rate(), "core-second") + &rate(self.cpu_rate(), "CPU-second");
            let on = if run.ranks > 1 {
                format!("{} ranks", run.ranks)
            } else {
                format!("{} threads", run.threads)
            };
            row("constraints", format!("{}{rate} on {on}", output::count(run.constraints)));
            if let Some(share) = self.utilization() {
                row(
                    "provers",
                    format!("{}, busy {:.0}% of both rounds", run.provers, share * 100.0),
                );
            }
        }
        for slow in self.slowest.iter().take(3) {
            let time = output::seconds_f64(slow.seconds);
            row(
                "slowest",
                format!(
                    "{time}: subcircuit {} ({}), {}",
                    slow.instance,
                    slow.kind,
                    slow.phase.name()
                ),
            );
        }
        row(
            "peak memory",
            if self.peak_memory > 0 { output::bytes(self.peak_memory) } else { "unknown".into() },
        );
        if let Some(run) = &self.parameters {
            row("zero knowledge", if run.zero_knowledge { "yes".into() } else { "NO".into() });
        }
        if let Some(written) = &self.written {
            row("public values", written.shown.clone());
            row("proof", format!("{} ({})", written.path, output::bytes(written.bytes)));
            if !written.verify.is_empty() {
                out += &format!("\nverify it with\n  {} {}", output::program(), written.verify);
            }
        } else {
            self.errors.iter().for_each(|error| row("error", error.clone()));
            row("proof", "none yet".into());
        }
        out.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
