//! A small disk for tests of services whose disk is full.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// A small file system of its own, which only the processes that it starts can see.
#[derive(Debug)]
pub struct SmallDisk {
    folder: tempfile::TempDir,
    shell: Child,
    orders: ChildStdin,
    started: usize,
}

impl SmallDisk {
    /// Mounts a file system of this size, in the form of the `size` option of a tmpfs. Returns `None` if that is not possible here: it needs
    /// user namespaces, or root.
    pub fn new(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let mut shell = unshared()
            .arg("sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .current_dir(&folder)
            .spawn()
            .ok()?;
        let mut orders = shell.stdin.take().expect("it is piped");
        let mount = format!("mount -t tmpfs -o size={size},mode=700 hekaton-test disk");
        // Without namespaces, nothing reads it.
        let _ = writeln!(orders, "mkdir disk; {mount} && touch yes || touch no");
        let mut disk = Self { folder, shell, orders, started: 0 };
        let path = disk.folder.path().to_owned();
        wait("a small file system is mounted, or not", || {
            let has_ended = disk.shell.try_wait().is_ok_and(|ended| ended.is_some());
            has_ended || path.join("yes").exists() || path.join("no").exists()
        });
        path.join("yes").exists().then_some(disk)
    }

    /// Starts a service with a command of the shell, in which `disk` is the file system. It must print a JSON object with its `address`
    /// first; what it says on standard error is appended to a file.
    pub fn serve(&mut self, command: &str, errors: &Path) -> OnDisk {
        self.started += 1;
        let (out, pid) = (format!("out-{}", self.started), format!("pid-{}", self.started));
        writeln!(self.orders, "{command} >{out} 2>>'{}' & echo $! >{pid}", errors.display())
            .expect("the shell runs");
        let read = |name: &str| std::fs::read_to_string(self.folder.path().join(name));
        let has_ended = || read(&pid).is_ok_and(|pid| pid.ends_with('\n') && has_ended(pid.trim()));
        let mut address = None;
        wait("the service has started", || {
            // Until then it is not there, or not complete.
            let said = read(&out).ok().and_then(|line| serde_json::from_str::<Value>(&line).ok());
            address = said.and_then(|said| Some(said["address"].as_str()?.to_owned()));
            let errors = || std::fs::read_to_string(self.folder.path().join(errors));
            assert!(address.is_some() || !has_ended(), "the service has ended: {:?}", errors());
            address.is_some()
        });
        let pid = read(&pid).expect("the shell has written it").trim().to_owned();
        OnDisk { address: address.expect("it was waited for"), pid }
    }

    /// A path on the file system, as other processes find it.
    pub fn path(&self, name: &str) -> PathBuf {
        let inside = self.folder.path().join("disk").join(name);
        let inside = inside.strip_prefix("/").expect("temporary directories have absolute paths");
        PathBuf::from(format!("/proc/{}/root", self.shell.id())).join(inside)
    }

    /// Fills the file system to the last byte.
    pub fn fill(&self) {
        let mut file = std::fs::File::create(self.path("ballast")).expect("a file");
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
    }

    /// Makes space again.
    pub fn free(&self) {
        std::fs::remove_file(self.path("ballast")).expect("a full disk has its ballast");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// A command that runs another one in a namespace in which it may mount file systems.
pub(crate) fn unshared() -> Command {
    let id = Command::new("id").arg("-u").output().expect("id is a program");
    let mut command = Command::new("unshare");
    command.args(if id.stdout == b"0\n" { &["-m"][..] } else { &["-U", "-r", "-m"] });
    command
}

/// A service on a small disk. It is killed on drop.
#[derive(Debug)]
pub struct OnDisk {
    /// The address that it prints.
    pub address: String,
    pid: String,
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.pid]).status();
        // Nobody else may hold the lock of its folder when the next one starts.
        wait("it has ended", || has_ended(&self.pid));
    }
}

/// Reports whether a process has ended and its files are closed, though its parent may not know yet.
fn has_ended(pid: &str) -> bool {
    let process = Path::new("/proc").join(pid);
    let Ok(stat) = std::fs::read_to_string(process.join("stat")) else { return true };
    let state = stat.rsplit(')').next().map(str::trim_start);
    // Its memory, and with it the link to its program, goes before its files, which its other threads share: it has
    // closed them when it is a zombie and has no other threads.
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
        && std::fs::read_dir(process.join("task")).map_or(true, |threads| threads.count() <= 1)
}

/// Waits until this happens.
fn wait(what: &str, mut happens: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !happens() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
