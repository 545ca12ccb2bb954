//! Adds the events of a run to its summary.

use super::summary::{Parameters, Process, Slow, Summary, Written};
use crate::public_values;
use hekaton_core::events::{Event, Outcome, Phase, RankAccount, Record};

/// The number of the slowest subcircuits that are listed.
const SLOWEST: usize = 10;

impl Summary {
    /// Adds the next event.
    pub(crate) fn add(&mut self, record: &Record) {
        // A process that resumed a finished run only reports its proof: its time must not be added.
        let started = matches!(record.event, Event::ProcessStart { .. });
        self.over |=
            started && self.processes.last().is_some_and(|p| p.outcome == Some(Outcome::Finished));
        if self.over && !matches!(record.event, Event::ProofWritten { .. } | Event::Error { .. }) {
            return;
        }
        if let Event::ProcessStart { host, pid, unix_time, .. } = &record.event {
            // A killed process leaves its phase open.
            self.close();
            let (host, pid, unix_time) = (host.clone(), *pid, *unix_time);
            self.processes.push(Process { host, pid, unix_time, ..Process::default() });
        }
        if let Some(process) = self.processes.last_mut() {
            process.end = process.end.max(record.at);
        }
        match &record.event {
            Event::RunStart { .. } => self.start(&record.event),
            Event::PhaseStart { phase, done, .. } => self.start_phase(*phase, record.at, *done),
            Event::PhaseEnd { phase, bytes, cpu_seconds, .. } => {
                // The CPU time of the process, which includes that of its provers: it replaces their sum.
                self.open_cpu = *cpu_seconds;
                self.close();
                let summary = self.phase_mut(*phase);
                (summary.bytes, summary.complete) = (*bytes, true);
            }
            Event::Rank(account) => self.add_rank(account),
            Event::Device(account) => self.devices.push(account.clone()),
            Event::Subcircuit { .. } => self.add_subcircuit(&record.event),
            Event::Memory { peak, .. } => self.peak_memory = self.peak_memory.max(*peak),
            Event::Notice { message } => self.notices.push(message.clone()),
            Event::Error { message } => self.errors.push(message.clone()),
            Event::ProofWritten { .. } => self.written = proof(&record.event),
            Event::RunEnd { outcome, .. } => {
                self.close();
                if let Some(process) = self.processes.last_mut() {
                    process.outcome = Some(*outcome);
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, event: &Event) {
        let Event::RunStart {
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
        } = event
        else {
            return;
        };
        // Accounts are those of the last process: ranks of an earlier one may have other numbers.
        self.ranks.clear();
        self.devices.clear();
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

    fn start_phase(&mut self, phase: Phase, at: f64, done: u64) {
        self.close();
        self.open_cpu = 0.0;
        if let Some(process) = self.processes.last_mut() {
            process.open = Some((phase, at));
        }
        let summary = self.phase_mut(phase);
        (summary.found, summary.complete) = (done, false);
    }

    fn add_rank(&mut self, account: &RankAccount) {
        // The provers of rank 0 are threads of the process that writes the events, whose CPU time has theirs.
        if account.rank > 0 {
            self.phase_mut(account.phase).cpu_seconds += account.cpu_seconds;
        }
        self.ranks.push(account.clone());
    }

    fn add_subcircuit(&mut self, event: &Event) {
        let Event::Subcircuit {
            phase, instance, kind, seconds, cpu_seconds, prover, bytes, ..
        } = event
        else {
            return;
        };
        self.open_cpu += cpu_seconds;
        let summary = self.phase_mut(*phase);
        summary.steps += 1;
        summary.most_bytes = summary.most_bytes.max(*bytes);
        summary.step_seconds += seconds;
        // Compared before anything is cloned: there can be millions of subcircuits.
        if self.slowest.len() < SLOWEST || self.slowest.last().is_some_and(|s| s.seconds < *seconds)
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

    /// Keeps the slowest subcircuits, slowest first.
    fn add_slow(&mut self, slow: Slow) {
        let at = self.slowest.partition_point(|s| s.seconds >= slow.seconds);
        self.slowest.insert(at, slow);
        self.slowest.truncate(SLOWEST);
    }

    /// Ends the phase that is open in the last process, at its last event.
    pub(super) fn close(&mut self) {
        let open = self.processes.last_mut().and_then(|p| Some((p.open.take()?, p.end)));
        if let Some(((phase, start), end)) = open {
            let cpu = std::mem::take(&mut self.open_cpu);
            let summary = self.phase_mut(phase);
            summary.seconds += (end - start).max(0.0);
            summary.cpu_seconds += cpu;
        }
    }
}

fn proof(event: &Event) -> Option<Written> {
    let Event::ProofWritten { path, bytes, public, shown, verify, .. } = event else { return None };
    // Files of earlier versions have no text for people.
    let shown = match shown.is_empty() {
        true => public_values::for_people(public, &[], Vec::new, &[]),
        false => shown.clone(),
    };
    let (path, public, verify) = (path.clone(), public.clone(), verify.clone());
    Some(Written { path, bytes: *bytes, public, shown, verify })
}
