//! Child processes that end when their attempt ends, and when this process does.
//!
//! A child is started through a helper (`hekaton-orchestrator exec`), which asks the kernel to be killed with its parent, sets limits
//! and becomes the program. The kernel means the *thread* that started it, so all are started by a thread that lives as long as the
//! process. Each has a process group of its own, which is killed as a whole. The group is noted in the task's folder, so that
//! whoever takes the task over on the same machine first kills what is left of it.

use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use tokio::sync::oneshot;

/// How much of what a child prints is kept, from its end.
const MAX_PRINTED: usize = 16 << 10;

/// The file in a task's folder that names its process group.
const GROUP: &str = "process-group";

/// The program that starts children.
#[derive(Clone, Debug)]
pub struct Helper(PathBuf);

impl Helper {
    /// The first argument that makes the helper one.
    pub const ARGUMENT: &'static str = "exec";

    /// Uses a program that passes its arguments after [`Self::ARGUMENT`] to [`Self::become_program`].
    pub fn new(program: PathBuf) -> Self {
        Self(program)
    }

    /// Becomes a program that is killed with its parent. Returns only if that fails.
    ///
    /// # Errors
    /// Why it failed.
    pub fn become_program(parent: u32, program: &[OsString]) -> std::io::Error {
        if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
            return error.into();
        }
        // It may have died before.
        let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
        if now.map(i32::unsigned_abs) != Some(parent) {
            return std::io::Error::other("the process that started this one is gone");
        }
        match program {
            [program, arguments @ ..] => Command::new(program).args(arguments).exec(),
            [] => std::io::Error::other("no program is named"),
        }
    }
}

/// A program to start.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// What a program has done.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The end of what it printed.
    pub(super) printed: String,
    /// The end of its errors.
    pub(super) errors: String,
}

impl Ended {
    /// The exit code; none if a signal ended it.
    pub(super) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// How it ended, with the last line of its errors.
    pub(super) fn describe(&self) -> String {
        let last = self.errors.lines().rev().find(|line| !line.trim().is_empty());
        match last {
            Some(line) => format!("{}: {}", self.status, line.trim()),
            None => self.status.to_string(),
        }
    }
}

type Start = (Command, oneshot::Sender<std::io::Result<Child>>);

/// The thread that starts children: they are killed when it ends.
fn starter() -> &'static mpsc::Sender<Start> {
    static STARTER: OnceLock<mpsc::Sender<Start>> = OnceLock::new();
    STARTER.get_or_init(|| {
        let (send, receive) = mpsc::channel::<Start>();
        let start = move || {
            for (mut command, answer) in receive {
                let started = command.spawn();
                if let Err(Ok(mut child)) = answer.send(started) {
                    // Nobody waits for it anymore.
                    let _ = kill(child.id()).map(|()| child.wait());
                }
            }
        };
        std::thread::Builder::new()
            .name("process-starter".into())
            .spawn(start)
            .expect("a thread can be started");
        send
    })
}

fn kill(group: u32) -> rustix::io::Result<()> {
    let pid = i32::try_from(group).ok().and_then(Pid::from_raw);
    pid.map_or(Ok(()), |pid| kill_process_group(pid, Signal::KILL))
}

/// Kills a process group when it is dropped.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill(group);
        }
    }
}

/// Runs a program in a task's folder until it ends. Dropping the future kills it and all that it started.
pub(super) async fn run(
    helper: &Helper,
    program: &Program,
    folder: &Path,
) -> std::io::Result<Ended> {
    kill_left_over(folder);
    let mut command = Command::new(&helper.0);
    command.arg(Helper::ARGUMENT).arg(std::process::id().to_string()).arg("--");
    command.arg(&program.program).args(&program.arguments);
    command.envs(program.environment.iter().map(|(name, value)| (name, value)));
    command.current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (answer, started) = oneshot::channel();
    let gone = || std::io::Error::other("the thread that starts programs is gone");
    starter().send((command, answer)).map_err(|_| gone())?;
    let mut child = started.await.map_err(|_| gone())??;
    let mut group = Group(Some(child.id()));
    note(folder, child.id());
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let (answer, ended) = oneshot::channel();
    // A thread for each, since they may run for days.
    let wait = move || {
        let errors = std::thread::spawn(move || errors.map(last_of).unwrap_or_default());
        let printed = out.map(last_of).unwrap_or_default();
        let errors = errors.join().unwrap_or_default();
        let _ = answer.send(child.wait().map(|status| Ended { status, printed, errors }));
    };
    std::thread::Builder::new().name("process-wait".into()).spawn(wait)?;
    let ended = ended.await.map_err(|_| gone())?;
    // What it has left behind, too; its number is not given to another process while a member of the group lives.
    let _ = std::mem::take(&mut group.0).map(kill);
    let _ = std::fs::remove_file(folder.join(GROUP));
    ended
}

/// The end of a stream, which is read to its end.
fn last_of(mut stream: impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        if kept.len() > 2 * MAX_PRINTED {
            kept.drain(..kept.len() - MAX_PRINTED);
        }
    }
    String::from_utf8_lossy(&kept[kept.len().saturating_sub(MAX_PRINTED)..]).into_owned()
}

/// When a process was started, in ticks since the boot: tells it from a later one with the same number.
fn started(process: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name is in parentheses and may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // A zombie is dead already.
    if fields.first() == Some(&"Z") {
        return None;
    }
    fields.get(19).map(|ticks| (*ticks).to_owned())
}

/// Notes a process group: the boot that it is of, its number and when it was started.
fn note(folder: &Path, group: u32) {
    let text = format!("{} {group} {}", crate::host::boot(), started(group).unwrap_or_default());
    if let Err(error) = std::fs::write(folder.join(GROUP), text) {
        tracing::warn!(%error, folder = %folder.display(), "a process group is not noted");
    }
}

/// Kills what an earlier attempt has left running in a task's folder, if that was on this machine.
fn kill_left_over(folder: &Path) {
    let path = folder.join(GROUP);
    let Ok(text) = std::fs::read_to_string(&path) else { return };
    if let [boot, group, ticks] = text.split_whitespace().collect::<Vec<_>>()[..]
        && boot == crate::host::boot()
        && let Ok(group) = group.parse()
        && started(group).as_deref() == Some(ticks)
    {
        tracing::warn!(group, folder = %folder.display(), "processes of an earlier attempt are killed");
        let _ = kill(group);
    }
    let _ = std::fs::remove_file(&path);
}
