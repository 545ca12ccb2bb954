//! The summary as a table for people, and as JSON.

use super::summary::{Parameters, Process, Summary};
use crate::imported;
use hekaton_core::events::{DeviceAccount, Phase};
use hekaton_terminal::output;
use serde_json::{Value, json};

/// The maximum number of rows in the table of ranks.
const RANK_ROWS: usize = 24;

#[allow(clippy::cast_possible_truncation, reason = "a rate per core-second is far below 2^53")]
fn rounded(rate: f64) -> u64 {
    rate.round() as u64
}

/// A line with a name and a value.
fn row(name: &str, value: &str) -> String {
    format!("{name:<16} {value}\n")
}

impl Summary {
    /// The summary as the JSON object that `--json` prints.
    pub(crate) fn object(&self) -> Value {
        let phases: Vec<Value> = self
            .phases()
            .map(|p| (p, self.phase(p)))
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
        let parameters = run.map(Parameters::value);
        // Names of fields, spelling included, stay: scripts read them, and so does `experiment`.
        json!({
            "ok": true, "circuit": run.map(|r| &r.circuit), "parameters": parameters,
            "subcircuits": run.map(|r| r.subcircuits), "constraints": run.map(|r| r.constraints),
            "threads": run.map(|r| r.threads), "provers": run.map(|r| r.provers),
            "ranks": run.map(|r| r.ranks), "rank_accounts": self.ranks,
            "device_accounts": self.devices,
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
        // A job of thousands of ranks must not push the result off the screen.
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

    /// The table of GPUs.
    fn device_table(&self) -> String {
        let row = |account: &DeviceAccount| {
            let DeviceAccount { phase, device, work } = account;
            format!(
                "{device}, {}: {} subcircuits in {} batches; computing {}, copying {} ({}), keys {}\n",
                phase.name(),
                work.subcircuits,
                work.batches,
                output::seconds_f64(work.compute_seconds),
                output::seconds_f64(work.copy_seconds),
                output::bytes(work.copied_bytes),
                output::seconds_f64(work.key_seconds),
            )
        };
        let rows: String = self.devices.iter().map(row).collect();
        if rows.is_empty() { rows } else { rows + "\n" }
    }

    /// The summary as a table for people.
    pub(crate) fn table(&self) -> String {
        let mut out = self.phase_table()
            + &self.rank_table()
            + &self.device_table()
            + &row("state", self.state());
        if self.processes.len() > 1 {
            let endings: Vec<&str> = self.processes.iter().map(Process::ending).collect();
            out += &row("processes", &format!("{} ({})", endings.len(), endings.join(", ")));
        }
        out += &self.run_rows();
        out += &self.result_rows();
        out.trim_end().to_owned()
    }

    /// The table of phases.
    fn phase_table(&self) -> String {
        let mut out = format!(
            "{:<16} {:>10} {:>10} {:>12} {:>12}\n",
            "phase", "time", "CPU", "bytes", "subcircuits"
        );
        for (phase, summary) in self.phases().map(|phase| (phase, self.phase(phase))) {
            if !summary.started {
                continue;
            }
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
        let time = output::seconds_f64(self.seconds());
        let cpu = output::seconds_f64(self.cpu_seconds());
        out + &format!("{:<16} {time:>10} {cpu:>10}\n\n", "all")
    }

    /// The rows on circuit and speed.
    fn run_rows(&self) -> String {
        let Some(run) = &self.parameters else { return String::new() };
        let rate = |rate: Option<f64>, per: &str| {
            rate.map_or_else(String::new, |r| format!(", {} per {per}", output::count(rounded(r))))
        };
        let rates = rate(self.rate(), "core-second") + &rate(self.cpu_rate(), "CPU-second");
        let on = match run.ranks {
            0 | 1 => format!("{} threads", run.threads),
            ranks => format!("{ranks} ranks"),
        };
        let constraints = format!("{}{rates} on {on}", output::count(run.constraints));
        let mut out = row("circuit", &imported::describe(&run.circuit, &run.value()))
            + &row("subcircuits", &output::count(run.subcircuits))
            + &row("constraints", &constraints);
        if let Some(share) = self.utilization() {
            let busy = format!("{}, busy {:.0}% of both rounds", run.provers, share * 100.0);
            out += &row("provers", &busy);
        }
        out
    }

    /// The rows on the slowest subcircuits, memory, and the proof.
    fn result_rows(&self) -> String {
        let mut out = String::new();
        for slow in self.slowest.iter().take(3) {
            let (time, phase) = (output::seconds_f64(slow.seconds), slow.phase.name());
            let slowest = format!("{time}: subcircuit {} ({}), {phase}", slow.instance, slow.kind);
            out += &row("slowest", &slowest);
        }
        // Some systems do not report it.
        let memory = match self.peak_memory {
            0 => "unknown".to_owned(),
            peak => output::bytes(peak),
        };
        out += &row("peak memory", &memory);
        if let Some(run) = &self.parameters {
            out += &row("zero knowledge", if run.zero_knowledge { "yes" } else { "NO" });
        }
        let Some(written) = &self.written else {
            self.errors.iter().for_each(|error| out += &row("error", error));
            return out + &row("proof", "none yet");
        };
        out += &row("public values", &written.shown);
        out += &row("proof", &format!("{} ({})", written.path, output::bytes(written.bytes)));
        // Events of earlier versions have no command.
        if !written.verify.is_empty() {
            out += &format!("\nverify it with\n  {} {}", output::program(), written.verify);
        }
        out
    }
}
