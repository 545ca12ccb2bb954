//! Reports on standard error the progress of a job that a command waits for.

use crate::insist::insist;
use crate::output::missing;
use hekaton_orchestrator::Client;
use hekaton_orchestrator::http::{JobStatus, JobView};
use hekaton_service::program::{Failure, note};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The time that a request waits for the end of a job, in seconds. The service answers as soon as the job ends.
const LOOK: u32 = 2;

/// The time after which an unchanged line is repeated where lines cannot be replaced.
const REPEAT: Duration = Duration::from_secs(60);

/// The progress of jobs that are waited for one after the other, with the last line that was printed.
pub(crate) struct Progress {
    count: usize,
    at: usize,
    begun: Instant,
    /// `true` for a terminal, on which one line is rewritten again and again.
    is_live: bool,
    last: Option<(String, Instant)>,
}

impl Progress {
    /// Starts with no line printed, for the given number of jobs.
    pub(crate) fn new(count: usize) -> Self {
        let is_live = std::io::stderr().is_terminal();
        Self { count, at: 0, begun: Instant::now(), is_live, last: None }
    }

    /// Waits for the end of the next job.
    pub(crate) fn wait(&mut self, client: &Client, job: &JobStatus) -> Result<JobStatus, Failure> {
        self.at += 1;
        loop {
            let now = insist(|| client.view(&job.job, LOOK))?;
            if now.job.state != "live" {
                self.end();
                return Ok(now.job);
            }
            self.say(&now);
        }
    }

    fn say(&mut self, view: &JobView) {
        let JobStatus { block, chain, .. } = &view.job;
        let text = format!("block {block} of '{chain}' {}", describe(view));
        let which = match self.count {
            1 => String::new(),
            count => format!("[{} of {count}] ", self.at),
        };
        let seconds = self.begun.elapsed().as_secs();
        let line = format!("{which}{text} ({} min {:02} s)", seconds / 60, seconds % 60);
        if self.is_live {
            let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
            let _ = std::io::stderr().flush();
            return;
        }
        let is_said = |(last, at): &(String, Instant)| *last == text && at.elapsed() < REPEAT;
        if !self.last.as_ref().is_some_and(is_said) {
            note(line);
            self.last = Some((text, Instant::now()));
        }
    }

    /// Clears the line to make room for a result.
    fn end(&mut self) {
        self.last = None;
        if self.is_live {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Describes the state of a job, and what it waits for.
fn describe(view: &JobView) -> String {
    let count = |state: &str| view.tasks.get(state).copied().unwrap_or(0);
    let (ready, leased, done) = (count("ready"), count("leased"), count("done"));
    let all: u32 = view.tasks.values().sum();
    let tasks = |count: u32| if count == 1 { "1 task".into() } else { format!("{count} tasks") };
    let mut parts = Vec::new();
    if all == 0 {
        return "waits for its tasks to be made".into();
    }
    if leased > 0 {
        parts.push(format!("runs: {} at work", tasks(leased)));
    }
    if !view.job.missing.is_empty() {
        parts.push(missing(&view.job.missing));
    } else if ready > 0 {
        parts.push(match leased {
            0 => format!("waits: {} for a free slot, or for another attempt", tasks(ready)),
            _ => format!("{ready} more wait"),
        });
    } else if leased == 0 {
        parts.push("waits for its next stage".into());
    }
    parts.push(format!("{done} of {all} done"));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_a_job_waits_for_is_said() {
        let view = |tasks: &[(&str, u32)], missing: &[&str]| {
            let tasks: BTreeMap<String, u32> =
                tasks.iter().map(|(state, count)| ((*state).into(), *count)).collect();
            let job = serde_json::json!({
                "job": "j", "chain": "c", "block": 1, "id": "b", "state": "live", "generation": 0, "accepted": 0,
                "missing": missing, "tasks": tasks, "running": [],
            });
            describe(&serde_json::from_value(job).unwrap())
        };
        assert_eq!(view(&[], &[]), "waits for its tasks to be made");
        assert_eq!(
            view(&[("done", 3), ("leased", 1), ("ready", 2)], &[]),
            "runs: 1 task at work, 2 more wait, 3 of 6 done"
        );
        let waits = view(&[("ready", 1)], &[]);
        assert!(waits.contains("free slot"), "{waits}");
        let nobody = view(&[("ready", 1)], &["witness"]);
        assert!(nobody.contains("'witness', which no live process has"), "{nobody}");
    }
}
