//! Child processes that are stopped when this one is asked to stop, with their processor time.

use super::failure::{At, FAILED, Failure, STOPPED};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time that a child has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);
/// The time between looks at a child. Times of points come from events, not from this clock.
const INTERVAL: Duration = Duration::from_millis(5);

/// A flag that is set once this process was asked to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens to SIGTERM and Ctrl-C from now on.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let stop = Self::default();
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, stop.0.clone())
                .map_err(|e| Failure::new(FAILED, format!("cannot handle signal {signal}: {e}")))?;
        }
        Ok(stop)
    }

    /// Fails if this process was asked to stop.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Failure::new(STOPPED, "interrupted; `run --resume` continues")),
            false => Ok(()),
        }
    }
}

/// The end of a child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Processor time of the child and of the children that it waited for, in seconds. Linux only.
    pub(crate) cpu_seconds: Option<f64>,
}

/// Runs a child to its end; its process id is in `pid_file` meanwhile.
///
/// # Errors
/// If the child cannot be started, or if this process was asked to stop: the child is gone then.
pub(crate) fn watch(
    command: &mut Command,
    stop: &Stop,
    pid_file: Option<&Path>,
) -> Result<Ended, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .spawn()
        .map_err(|e| Failure::new(FAILED, format!("cannot start {program}: {e}")))?;
    if let Some(path) = pid_file {
        std::fs::write(path, child.id().to_string()).at(path)?;
    }
    loop {
        if let Err(e) = stop.check() {
            end(&mut child);
            return Err(e);
        }
        // A child that has ended is a zombie until it is waited for, and still has its account.
        let account = Account::of(child.id());
        let ended = match account {
            Some(Account { zombie, .. }) => zombie,
            None => child.try_wait().is_ok_and(|status| status.is_some()),
        };
        if ended {
            let status = child.wait().map_err(|e| Failure::new(FAILED, e))?;
            return Ok(Ended { status, cpu_seconds: account.map(|a| a.cpu_seconds) });
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Asks a child to end, and kills it if it does not.
fn end(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let asked = pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok());
    let start = Instant::now();
    while asked && start.elapsed() < GRACE {
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        std::thread::sleep(INTERVAL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Ends a process that an earlier, killed run of this program has left behind: it would disturb
/// the measurements. It must work in `directory`, so that no other process is hit.
pub(crate) fn end_leftover(pid_file: &Path, directory: &Path) {
    let Ok(text) = std::fs::read_to_string(pid_file) else { return };
    let Some(pid) = text.trim().parse::<i32>().ok().filter(|pid| *pid > 1).and_then(Pid::from_raw)
    else {
        return;
    };
    let Ok(works_in) = std::fs::read_link(format!("/proc/{}/cwd", text.trim())) else { return };
    if directory.canonicalize().is_ok_and(|directory| directory == works_in) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The account of a process in `/proc/PID/stat`.
#[derive(Clone, Copy, Debug)]
struct Account {
    zombie: bool,
    cpu_seconds: f64,
}

impl Account {
    fn of(pid: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain anything. Fields after it: state, then numbers.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        // utime, stime, cutime, cstime
        let ticks =
            fields.get(11..15)?.iter().map(|t| t.parse::<f64>().ok()).sum::<Option<f64>>()?;
        #[allow(clippy::cast_precision_loss, reason = "100")]
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        Some(Self { zombie: *fields.first()? == "Z", cpu_seconds: ticks / per_second })
    }
}

/// The first line that a program prints, if it can be run and succeeds.
pub(crate) fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim().to_owned();
    output.status.success().then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_of_grandchildren_counts() {
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; exit 3"]);
        let ended = watch(&mut command, &Stop::default(), None).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        if cfg!(target_os = "linux") {
            assert!(ended.cpu_seconds.unwrap() > 0.0);
        }
    }

    #[test]
    fn a_stop_ends_the_child() {
        let stop = Stop::default();
        stop.0.store(true, Ordering::Relaxed);
        let start = Instant::now();
        let e = watch(Command::new("sleep").arg("60"), &stop, None).unwrap_err();
        assert_eq!(e.code, STOPPED);
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
