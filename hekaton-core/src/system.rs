//! Information from the operating system about this machine and process.

/// Returns the name of this machine, or `unknown`.
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok());
    name.map_or_else(|| "unknown".to_owned(), |n| n.trim().to_owned())
}

/// Returns the name of the processor, or of its architecture where there is no `/proc`.
pub fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok();
    let name = info.iter().flat_map(|info| info.lines()).find_map(|line| {
        line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim())
    });
    name.unwrap_or(std::env::consts::ARCH).to_owned()
}

/// Returns the resident memory of this process and its peak, in bytes; `None` where there is no
/// `/proc`.
pub fn memory() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name))?;
        Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// The time that a piece of work took on one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Seconds by the clock.
    pub seconds: f64,
    /// Seconds that the thread had a processor: the cost of the work, independent of other work that the machine
    /// does.
    pub cpu_seconds: f64,
}

/// Measures the work of the thread that started it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall: std::time::Instant,
    cpu: std::time::Duration,
}

/// The reason that a CPU time is a duration.
const NOT_NEGATIVE: &str = "a CPU clock starts at zero and only rises";

/// The CPU time of this thread.
pub(crate) fn thread_cpu() -> std::time::Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.try_into().expect(NOT_NEGATIVE)
}

/// The CPU time of all threads of this process so far, in seconds.
pub fn process_cpu_seconds() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::try_from(now).expect(NOT_NEGATIVE).as_secs_f64()
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self { wall: std::time::Instant::now(), cpu: thread_cpu() }
    }

    /// The time since the start; must be called by the thread that started it.
    pub fn elapsed(&self) -> Times {
        Times {
            seconds: self.wall.elapsed().as_secs_f64(),
            cpu_seconds: thread_cpu().saturating_sub(self.cpu).as_secs_f64(),
        }
    }
}
