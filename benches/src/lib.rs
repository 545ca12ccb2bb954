//! Tools that the benchmarks share: timing in alternation, JSON lines, peak memory.
//!
//! Machines are shared and noisy, so Hekaton and the rival run in alternation in one process,
//! medians are compared, and only the ratio is worth quoting.
#![allow(clippy::print_stdout)]

pub mod directory;
pub mod experiment;
pub mod paper_workload;

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Options of every benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct Run {
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
    /// Number of repetitions of each measurement; medians are printed.
    #[arg(long, default_value_t = 3)]
    pub repetitions: usize,
}

/// One line of output.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The thing that was measured.
    pub bench: &'a str,
    /// Its size: constraints, or subcircuits.
    pub size: usize,
    /// Number of threads on both sides.
    pub threads: usize,
    /// The figure of Hekaton.
    pub ours: f64,
    /// The rival's name and version, or the target that the project holds itself to.
    pub rival: &'a str,
    /// The rival's figure; NaN if there is no rival.
    pub theirs: f64,
    /// The unit of both figures.
    pub unit: &'a str,
    /// `true` if larger figures are better.
    pub larger_is_better: bool,
}

impl Line<'_> {
    /// The ratio of the figures; above 1 means that Hekaton is better.
    pub fn ratio(&self) -> f64 {
        if self.larger_is_better { self.ours / self.theirs } else { self.theirs / self.ours }
    }

    /// Prints the line, as JSON or for people.
    pub fn print(&self, as_json: bool) {
        println!("{}", self.text(as_json, None));
    }

    /// Returns the line, as JSON or for people, with a note about what the figures mean.
    pub fn text(&self, as_json: bool, note: Option<&str>) -> String {
        let Self { bench, size, threads, ours, rival, theirs, unit, .. } = self;
        // Small ones keep their digits.
        let scale = if self.ratio() < 0.1 { 1e6 } else { 1e3 };
        let ratio = (self.ratio() * scale).round() / scale;
        let alone = theirs.is_nan();
        if as_json {
            // not a number is null
            let rival = (!alone).then_some(rival);
            let mut line = json!({
                "bench": bench, "size": size, "threads": threads, "ours": ours, "rival": rival, "theirs": theirs,
                "ratio": ratio, "unit": unit,
            });
            if let Some(note) = note {
                line["note"] = note.into();
            }
            return line.to_string();
        }
        let mut line = format!("{bench:<34} size {size:>8}  threads {threads}  ours {ours:>12.3}");
        line += &if alone {
            format!(" {unit}")
        } else {
            format!("  {rival} {theirs:>12.3} {unit}  ratio {ratio:.2}")
        };
        line + &note.map_or_else(String::new, |note| format!("  ({note})"))
    }
}

/// Calls a function and measures its time.
pub fn time<R>(f: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = f();
    (start.elapsed(), result)
}

/// Wall time and processor time of one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// The time from start to end.
    pub wall: Duration,
    /// The work of all threads of this process. Other programs on the machine do not count.
    pub cpu: Duration,
}

/// The processor time of all threads of this process.
pub fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("processor time is not negative")
}

/// Calls a function and measures its wall time and its processor time.
pub fn times<R>(f: impl FnOnce() -> R) -> (Times, R) {
    let before = cpu_time();
    let (wall, result) = time(f);
    (Times { wall, cpu: cpu_time().saturating_sub(before) }, result)
}

/// The medians of some wall times and of some processor times, each on its own.
pub fn medians(times: &[Times]) -> Times {
    let of = |part: fn(&Times) -> Duration| median(times.iter().map(part).collect());
    Times { wall: of(|t| t.wall), cpu: of(|t| t.cpu) }
}

/// The median of some times; zero if there are no times.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).map_or(Duration::ZERO, |time| *time)
}

/// Calls two functions in alternation, `repetitions` times each, and returns their median times.
pub fn alternate(
    repetitions: usize,
    ours: impl FnMut(),
    theirs: impl FnMut(),
) -> (Duration, Duration) {
    let (a, b) = alternate_times(repetitions, ours, theirs);
    (a.wall, b.wall)
}

/// [`alternate`] with processor time in addition to wall time.
pub fn alternate_times(
    repetitions: usize,
    mut ours: impl FnMut(),
    mut theirs: impl FnMut(),
) -> (Times, Times) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..repetitions {
        a.push(times(&mut ours).0);
        b.push(times(&mut theirs).0);
    }
    (medians(&a), medians(&b))
}

/// The private memory of this process in bytes, without mapped files; 0 except on Linux.
pub fn private_memory() -> u64 {
    status("RssAnon:")
}

/// The peak memory of this process, in bytes; 0 except on Linux.
pub fn peak_of_process() -> u64 {
    status("VmHWM:")
}

/// A size that the system reports for this process.
fn status(field: &str) -> u64 {
    // Only Linux reports it.
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|l| l.strip_prefix(field));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Runs `f` and returns the peak of private memory above `before`, sampled every millisecond.
pub fn peak_memory<R>(before: u64, f: impl FnOnce() -> R) -> (u64, R) {
    let (peak, stop) = (AtomicU64::new(before), AtomicBool::new(false));
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                peak.fetch_max(private_memory(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let result = f();
        stop.store(true, Ordering::Relaxed);
        result
    });
    (peak.into_inner().saturating_sub(before), result)
}
