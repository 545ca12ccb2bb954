//! The events of a run, as values. Progress bars, tables, event files and reports are all made from
//! them.
//!
//! `docs/guide/events.md` is the schema of their JSON lines. Times are seconds of the process's
//! monotonic clock since its [`Recorder`] was created, so setting the wall clock does not affect
//! them; [`Event::ProcessStart`] reports the wall clock once.

use crate::system;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Version of the schema; the first line of each process names it.
pub const SCHEMA: u32 = 1;

/// Memory is reported at most this often.
const MEMORY_EVERY: Duration = Duration::from_millis(500);

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Opening the keys.
    LoadKeys,
    /// Computing all shared-wire values from the input.
    Execute,
    /// Committing to all subtraces.
    Commit,
    /// Proving all subcircuits.
    Prove,
    /// Aggregating the proofs into one, and verifying it.
    Aggregate,
    /// Putting a direct proof together, and verifying it.
    Assemble,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Self; 6] =
        [Self::LoadKeys, Self::Execute, Self::Commit, Self::Prove, Self::Aggregate, Self::Assemble];

    /// Returns the name of the phase, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::LoadKeys => "load keys",
            Self::Execute => "execute",
            Self::Commit => "commit round",
            Self::Prove => "prove round",
            Self::Aggregate => "aggregate",
            Self::Assemble => "assemble",
        }
    }
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A verified proof.
    Finished,
    /// A cancelled run; a run directory keeps the finished work.
    Interrupted,
    /// An error.
    Failed,
}

/// A subcircuit type in [`Event::RunStart`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeSummary {
    /// Its name.
    pub name: String,
    /// Constraints per subcircuit.
    pub constraints: u64,
    /// Number of instances of the type.
    pub instances: u64,
}

fn one() -> u64 {
    1
}

/// The account of one rank's work in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankAccount {
    /// The phase.
    pub phase: Phase,
    /// The rank.
    pub rank: u64,
    /// Name of its machine.
    pub host: String,
    /// Number of its provers.
    pub provers: u64,
    /// Number of answers received from it in this phase.
    pub subcircuits: u64,
    /// Seconds that its provers worked, summed over provers.
    pub busy_seconds: f64,
    /// Seconds that its provers waited, summed over provers, since the phase's first message to
    /// this rank.
    pub idle_seconds: f64,
    /// The CPU time of its provers: less than `busy_seconds` where others used the processors. In
    /// the aggregation, that of its process.
    #[serde(default)]
    pub cpu_seconds: f64,
    /// Bytes that the coordinator sent to it, headers included.
    pub sent_bytes: u64,
    /// Bytes that the coordinator received from it, headers included.
    pub received_bytes: u64,
    /// Its peak resident memory so far in bytes, mapped keys included.
    pub peak_memory: u64,
}

/// The account of the work of a device, for example a GPU, in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceAccount {
    /// The phase.
    pub phase: Phase,
    /// The name of the device, and of its rank if that is another.
    pub device: String,
    /// Its work.
    #[serde(flatten)]
    pub work: DeviceWork,
}

/// The work of a device. Assignments are copied while others are computed, so its times overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceWork {
    /// Number of batches that it computed.
    pub batches: u64,
    /// Number of subcircuits in them.
    pub subcircuits: u64,
    /// Seconds in which keys were copied to it, and prepared.
    pub key_seconds: f64,
    /// Seconds in which assignments and committed values were copied to it.
    pub copy_seconds: f64,
    /// Seconds in which it computed.
    pub compute_seconds: f64,
    /// Bytes of keys, assignments and committed values that were copied to it.
    pub copied_bytes: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The first line of each process.
    ProcessStart {
        /// Version of the schema.
        schema: u32,
        /// Program and version.
        program: String,
        /// Name of the machine.
        host: String,
        /// Process identifier.
        pid: u32,
        /// The wall clock: seconds since 1970.
        unix_time: f64,
    },
    /// A run starts or is resumed; all its parameters.
    RunStart {
        /// Name of the circuit.
        circuit: String,
        /// Its parameters as JSON text.
        parameters: String,
        /// Digest of the verifying key.
        verifying_key: String,
        /// Digest of the layout.
        layout: String,
        /// Number of subcircuits, n.
        subcircuits: u64,
        /// Constraints of all subcircuits.
        constraints: u64,
        /// The types.
        types: Vec<TypeSummary>,
        /// Threads of the engine.
        threads: u64,
        /// Maximum number of subcircuits proven at once.
        provers: u64,
        /// Number of ranks that take part; 1 if only this process does.
        #[serde(default = "one")]
        ranks: u64,
        /// `true` if the proof is zero-knowledge.
        zero_knowledge: bool,
        /// `true` if each prover checks its witness.
        check_constraints: bool,
        /// `true` if an earlier process started this run.
        resumed: bool,
    },
    /// A phase starts.
    PhaseStart {
        /// The phase.
        phase: Phase,
        /// Number of its steps.
        total: u64,
        /// Number of steps that earlier processes did.
        done: u64,
    },
    /// One subcircuit is done and, if there is a run directory, in its log.
    Subcircuit {
        /// The phase.
        phase: Phase,
        /// Index of the instance.
        instance: u64,
        /// Name of its type.
        #[serde(rename = "type")]
        kind: String,
        /// When work on it started.
        start: f64,
        /// The time it took, in seconds.
        seconds: f64,
        /// The CPU time it took: less than `seconds` where others used the processor.
        #[serde(default)]
        cpu_seconds: f64,
        /// Bytes to and from the prover: between ranks, the bytes sent, private inputs included;
        /// within one process, the bytes that would be sent, without private inputs.
        bytes: u64,
        /// The prover that did it: the thread, or the rank and the thread.
        prover: String,
    },
    /// A phase ends.
    PhaseEnd {
        /// The phase.
        phase: Phase,
        /// Its wall-clock time in this process.
        seconds: f64,
        /// The CPU time of this process in the phase, all threads together. That of other ranks is
        /// in their accounts.
        #[serde(default)]
        cpu_seconds: f64,
        /// Bytes that the phase handled: key bytes for loading; values, points and proofs for the
        /// rounds; the proof for the aggregation.
        bytes: u64,
    },
    /// The account of one rank's work in a phase.
    Rank(RankAccount),
    /// The work of a device in a phase.
    Device(DeviceAccount),
    /// Memory of the process.
    Memory {
        /// Resident bytes, mapped keys included.
        resident: u64,
        /// Peak resident bytes so far.
        peak: u64,
    },
    /// Everything restarts with new randomness: the challenges hit a pole (zero denominator), or a
    /// machine returned a wrong commitment. The notice before it names the cause.
    Restart {
        /// Number of the attempt that starts, from 2.
        attempt: u32,
    },
    /// Something that a user should know and that does not stop the run.
    Notice {
        /// The text.
        message: String,
    },
    /// Why the run ends without a proof.
    Error {
        /// The text.
        message: String,
    },
    /// The proof file is in place.
    ProofWritten {
        /// The file.
        path: String,
        /// Its length.
        bytes: u64,
        /// The public values as text, in the form that the verifying program reads.
        public: String,
        /// The public values for people: by name where they have names, the first few where there are
        /// many; empty in files of earlier versions.
        #[serde(default)]
        shown: String,
        /// The key argument for the verifying program: the verifying key's file, or a key family
        /// and the parameters that it leaves open, as words of a command, quoted for a shell.
        key: String,
        /// The arguments of the command that verifies it; empty in files of earlier versions.
        #[serde(default)]
        verify: String,
    },
    /// The process ends.
    RunEnd {
        /// The outcome of the run.
        outcome: Outcome,
        /// Seconds since the process started.
        seconds: f64,
    },
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Seconds since the process's recorder was created.
    pub at: f64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// Adds the time to events and passes them to an observer. Safe to share between threads.
pub struct Recorder<'a> {
    observer: Box<dyn Fn(&Record) + Send + Sync + 'a>,
    start: Instant,
    /// Milliseconds after `start` at which memory is reported next; `u64::MAX` means never.
    next_memory: AtomicU64,
    /// The CPU time of the process at the start of the phase, as the bits of a number of seconds.
    phase_cpu: AtomicU64,
}

impl std::fmt::Debug for Recorder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("start", &self.start).finish_non_exhaustive()
    }
}

impl<'a> Recorder<'a> {
    /// Creates a recorder whose clock starts now; the observer receives [`Event::ProcessStart`] at
    /// once. `program` is the name and version of the program. The observer is called from several
    /// threads.
    pub fn new(program: &str, observer: impl Fn(&Record) + Send + Sync + 'a) -> Self {
        let recorder = Self {
            observer: Box::new(observer),
            start: Instant::now(),
            next_memory: AtomicU64::new(0),
            phase_cpu: AtomicU64::new(0),
        };
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        recorder.emit(Event::ProcessStart {
            schema: SCHEMA,
            program: program.to_owned(),
            host: system::host(),
            pid: std::process::id(),
            unix_time: since.map_or(0.0, |t| t.as_secs_f64()),
        });
        recorder
    }

    /// Creates a recorder without an observer.
    pub fn silent() -> Self {
        Self {
            observer: Box::new(|_| {}),
            start: Instant::now(),
            next_memory: AtomicU64::new(u64::MAX),
            phase_cpu: AtomicU64::new(0),
        }
    }

    /// Returns the seconds since the recorder was created.
    pub fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Reports an event, and the memory in use at the start and end of phases and when the last
    /// report is a while ago.
    #[allow(clippy::cast_possible_truncation, reason = "2^64 milliseconds are 580 million years")]
    pub fn emit(&self, event: Event) {
        let around_phase = matches!(
            event,
            Event::PhaseStart { .. } | Event::PhaseEnd { .. } | Event::RunEnd { .. }
        );
        let last = matches!(event, Event::RunEnd { .. });
        let now = self.start.elapsed().as_millis() as u64;
        // Two threads may both find a report due: one report too many does no harm.
        let next = self.next_memory.load(Ordering::Relaxed);
        let due = next != u64::MAX && (around_phase || now >= next);
        let memory = if due {
            self.next_memory.store(now + MEMORY_EVERY.as_millis() as u64, Ordering::Relaxed);
            system::memory()
        } else {
            None
        };
        let report = |event| (self.observer)(&Record { at: self.now(), event });
        // Nothing follows RunEnd, so that readers can stop there.
        if last && let Some((resident, peak)) = memory {
            report(Event::Memory { resident, peak });
        }
        report(event);
        if !last && let Some((resident, peak)) = memory {
            report(Event::Memory { resident, peak });
        }
    }

    /// Reports [`Event::PhaseStart`]; returns the time for [`Self::phase_end`].
    pub fn phase_start(&self, phase: Phase, total: usize, done: usize) -> Instant {
        self.emit(Event::PhaseStart { phase, total: total as u64, done: done as u64 });
        self.phase_cpu.store(system::process_cpu_seconds().to_bits(), Ordering::Relaxed);
        Instant::now()
    }

    /// Reports [`Event::PhaseEnd`].
    pub fn phase_end(&self, phase: Phase, since: Instant, bytes: u64) {
        let seconds = since.elapsed().as_secs_f64();
        let before = f64::from_bits(self.phase_cpu.load(Ordering::Relaxed));
        let cpu_seconds = system::process_cpu_seconds() - before;
        self.emit(Event::PhaseEnd { phase, seconds, cpu_seconds, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn events_are_lines_that_read_back() {
        let lines = Mutex::new(Vec::new());
        let recorder = Recorder::new("test 1", |record| lines.lock().unwrap().push(record.clone()));
        let since = recorder.phase_start(Phase::Commit, 3, 1);
        recorder.emit(Event::Notice { message: "a \"quoted\"\nline".into() });
        recorder.phase_end(Phase::Commit, since, 7);
        recorder.emit(Event::RunEnd { outcome: Outcome::Finished, seconds: 1.0 });
        drop(recorder);
        let lines = lines.into_inner().unwrap();
        assert!(matches!(
            &lines[0].event,
            Event::ProcessStart { schema: SCHEMA, program, .. } if program == "test 1"
        ));
        assert!(
            matches!(lines.last().unwrap().event, Event::RunEnd { .. }),
            "nothing follows the end"
        );
        assert!(lines.iter().any(|r| matches!(
            r.event,
            Event::Memory { resident, peak } if 0 < resident && resident <= peak
        )));
        assert!(lines.windows(2).all(|w| w[0].at <= w[1].at));
        for record in &lines {
            let text = serde_json::to_string(record).unwrap();
            assert!(!text.contains('\n'));
            assert_eq!(&serde_json::from_str::<Record>(&text).unwrap(), record);
        }
        let text: Vec<String> =
            lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
        let phase = r#""event":"phase_start","phase":"commit","total":3,"done":1"#;
        assert!(text.iter().any(|line| line.contains(phase)), "{text:?}");
    }
}
