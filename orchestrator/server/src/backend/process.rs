//! Child processes that end when their attempt ends, and when this process does.
//!
//! A child is started through a helper (`hekaton-orchestrator exec`), which asks the kernel to be killed with its parent and becomes the
//! program. To the kernel, the parent is the *thread* that started the child, so a thread that lives as long as the process starts all
//! children. Each has a process group of its own, which is killed as a whole: when the program ends, when the attempt is given up, and, as
//! the group is noted in the task's folder, by the next process on the same machine that takes the task over.

use hekaton_files::process::start_time;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process_group, setrlimit, waitid,
};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;

/// The number of bytes of a child's output that are kept, from its end.
const MAX_PRINTED: usize = 16 << 10;

/// The time that a program's output may take to arrive after its group was killed.
const PIPES: Duration = Duration::from_secs(1);

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

    /// Becomes a program that is killed with its parent, and that cannot have more than `memory` bytes of address space. Returns only if
    /// that fails.
    ///
    /// # Errors
    /// Why it failed.
    pub fn become_program(
        parent: u32,
        memory: Option<u64>,
        program: &[OsString],
    ) -> std::io::Error {
        if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
            return error.into();
        }
        // The parent may have died before this call.
        let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
        if now.map(i32::unsigned_abs) != Some(parent) {
            return std::io::Error::other("the process that started this one is gone");
        }
        if let Some(most) = memory {
            // Limits the address space, because Linux enforces no limit on resident memory
            // (setrlimit(2), RLIMIT_RSS). Sets the hard limit, too, so that the program cannot
            // raise it again.
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            if let Err(error) = setrlimit(Resource::As, limit) {
                return error.into();
            }
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
    /// The address space that the program may have, in bytes.
    pub(super) memory: Option<u64>,
}

/// The exit status and the output of a program.
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

    /// Describes how it ended, with the last line of its errors.
    pub(super) fn describe(&self) -> String {
        let last = self.errors.lines().rev().find(|line| !line.trim().is_empty());
        match last {
            Some(line) => format!("{}: {}", self.status, line.trim()),
            None => self.status.to_string(),
        }
    }
}

/// A child whose group is killed, and which is waited for, when it is dropped.
struct Running(Child);

impl Running {
    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The kernel does not give the child's number to another process until the child is waited for.
        let _ = kill(self.0.id());
        let _ = self.0.wait();
    }
}

type Start = (Command, oneshot::Sender<std::io::Result<Running>>);

/// The thread that starts children: they are killed when it ends.
fn starter() -> &'static mpsc::Sender<Start> {
    static STARTER: OnceLock<mpsc::Sender<Start>> = OnceLock::new();
    STARTER.get_or_init(|| {
        let (send, receive) = mpsc::channel::<Start>();
        let start = move || {
            for (mut command, answer) in receive {
                // If the caller is gone, the child is dropped, and so killed.
                let _ = answer.send(command.spawn().map(Running));
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

/// Kills a process group when it is dropped, unless its leader was waited for by then: after that, the number may belong to another group.
#[derive(Clone)]
struct Group(Arc<Mutex<Option<u32>>>);

impl Group {
    /// Kills the group now, and never again.
    fn end(&self) {
        let mut group = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = group.take() {
            let _ = kill(group);
        }
    }
}

/// Ends a group when the attempt is given up.
struct GivenUp(Group);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs the program of an attempt in a task's folder until it ends, like [`run`]. First kills what an earlier attempt has left
/// running there. Only for a caller that has just claimed the task.
pub(super) async fn attempt(
    helper: &Helper,
    program: &Program,
    folder: &Path,
    line: impl Fn(&str) + Send + 'static,
) -> std::io::Result<Ended> {
    kill_left_over(folder);
    run_noted(helper, program, folder, line, true).await
}

/// Runs a program in a task's folder until it ends. Dropping the future kills it and all that it started.
///
/// It leaves other processes in the folder alone: a caller that verifies an output may have lost the task to another process.
pub(super) async fn run(
    helper: &Helper,
    program: &Program,
    folder: &Path,
) -> std::io::Result<Ended> {
    run_noted(helper, program, folder, |_| {}, false).await
}

/// `line` is called with each line that the program prints. With `noted`, the group is noted, and the next process that takes the task over
/// kills it.
async fn run_noted(
    helper: &Helper,
    program: &Program,
    folder: &Path,
    line: impl Fn(&str) + Send + 'static,
    noted: bool,
) -> std::io::Result<Ended> {
    let mut command = Command::new(&helper.0);
    command.arg(Helper::ARGUMENT).arg(std::process::id().to_string());
    if let Some(memory) = program.memory {
        command.arg("--memory").arg(memory.to_string());
    }
    command.arg("--");
    command.arg(&program.program).args(&program.arguments);
    // The variable may hold a password, which provers must not see.
    command.env_remove("HEKATON_NATS");
    command.envs(program.environment.iter().map(|(name, value)| (name, value)));
    command.current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (answer, started) = oneshot::channel();
    let gone = || std::io::Error::other("the thread that starts programs is gone");
    starter().send((command, answer)).map_err(|_| gone())?;
    let mut child = started.await.map_err(|_| gone())??;
    let note = noted.then(|| Note::write(folder, child.0.id()));
    let group = Group(Arc::new(Mutex::new(Some(child.0.id()))));
    let _given_up = GivenUp(group.clone());
    let (out, errors) = (child.0.stdout.take(), child.0.stderr.take());
    let (answer, outcome) = oneshot::channel();
    // A thread for each, since they may run for days.
    let wait = move || {
        let printed = read(out, line);
        let errors = read(errors, |_| {});
        if let Some(pid) = child.pid() {
            // The number stays the child's until the child is waited for.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        }
        // Kills the processes that the program has left running, which could keep the pipes open.
        group.end();
        let status = child.0.wait();
        // A process that has left the group may keep the pipes open. Its output is not waited for: the status alone decides.
        let last = |read: mpsc::Receiver<String>| match read.recv_timeout(PIPES) {
            Ok(printed) => printed,
            Err(_) => "(what it printed could not be read)".into(),
        };
        let (printed, errors) = (last(printed), last(errors));
        let _ = answer.send(status.map(|status| Ended { status, printed, errors }));
    };
    std::thread::Builder::new().name("process-wait".into()).spawn(wait)?;
    let ended = outcome.await.map_err(|_| gone())?;
    if let Some(note) = note {
        note.remove();
    }
    ended
}

/// Reads a stream to its end on a thread of its own, which then sends the last part.
fn read(
    stream: Option<impl Read + Send + 'static>,
    line: impl Fn(&str) + Send + 'static,
) -> mpsc::Receiver<String> {
    let (send, end) = mpsc::channel();
    let read = move || {
        let printed = stream.map_or(String::new(), |stream| last_of(stream, line));
        // No receiver is left once the wait for the output is over.
        let _ = send.send(printed);
    };
    // If the thread cannot be started, nothing is read, and the wait for the output ends at once.
    let _ = std::thread::Builder::new().name("process-output".into()).spawn(read);
    end
}

/// Reads a stream to its end, and returns its last part.
fn last_of(stream: impl Read, line: impl Fn(&str)) -> String {
    let mut kept = Vec::new();
    let mut lines = BufReader::new(stream);
    let mut next = Vec::new();
    // A line without an end is cut, so that it does not fill the memory.
    while let Ok(1..) = (&mut lines).take(MAX_PRINTED as u64).read_until(b'\n', &mut next) {
        line(&String::from_utf8_lossy(&next));
        kept.append(&mut next);
        if kept.len() > 2 * MAX_PRINTED {
            kept.drain(..kept.len() - MAX_PRINTED);
        }
    }
    String::from_utf8_lossy(&kept[kept.len().saturating_sub(MAX_PRINTED)..]).into_owned()
}

/// The note of a process group: the machine's boot, the group's number and its start time.
struct Note {
    path: PathBuf,
    text: String,
}

impl Note {
    fn write(folder: &Path, group: u32) -> Self {
        // A leader that has already ended has no start time. `kill_left_over` then leaves the group alone, because it cannot tell it from
        // another group.
        let started = start_time(group).map_or(String::new(), |ticks| ticks.to_string());
        let text = format!("{} {group} {started}", crate::host::boot());
        let path = folder.join(GROUP);
        if let Err(error) = std::fs::write(&path, &text) {
            tracing::warn!(%error, path = %path.display(), "a process group is not noted");
        }
        Self { path, text }
    }

    /// Removes the note, unless another attempt has written its own by now.
    fn remove(&self) {
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Kills what an earlier attempt has left running in a task's folder, if that was on this machine.
///
/// The leader may be dead while other members of the group are alive. The kernel gives no new process the number of an existing group, so
/// only a living leader with a different start time is a different process.
fn kill_left_over(folder: &Path) {
    let path = folder.join(GROUP);
    let Ok(text) = std::fs::read_to_string(&path) else { return };
    if let [boot, group, ticks] = text.split_whitespace().collect::<Vec<_>>()[..]
        && boot == crate::host::boot()
        && let Ok(group) = group.parse()
        && start_time(group).is_none_or(|found| found.to_string() == ticks)
        && kill(group).is_ok()
    {
        tracing::warn!(group, folder = %folder.display(), "processes of an earlier attempt are killed");
    }
    let _ = std::fs::remove_file(&path);
}
