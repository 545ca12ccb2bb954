//! Everything that may influence a measurement: code, compiler, processor, system, libraries.

use super::failure::{At, Failure};
use super::files;
use super::process::first_line;
use super::program::Program;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

/// The environment of a result set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Environment {
    /// All facts, for `env.json`.
    pub(crate) facts: Value,
    /// The digest of the facts, the load left out.
    pub(crate) digest: String,
}

impl Environment {
    /// Looks at this machine. `root` is in the checkout, `work` on the file system of the keys.
    pub(crate) fn capture(program: &Program, root: &Path, work: &Path) -> Self {
        let text = |value: Option<String>| value.map_or(Value::Null, Value::String);
        let git = |arguments: &[&str]| {
            let folder = root.to_string_lossy();
            let mut all = vec!["-C", &*folder];
            all.extend(arguments);
            first_line("git", &all)
        };
        let commit = git(&["rev-parse", "HEAD"]);
        // Results are written into the checkout, and do not make it dirty.
        let status = ["status", "--porcelain", "--", ":/", ":(top,exclude)paper-results/results"];
        let dirty = commit.as_ref().map(|_| git(&status).is_some());
        let found = |what: &str| text(program.finding(what).map(str::to_owned));
        let path = program.path.to_string_lossy();
        let mut facts = json!({
            "commit": text(commit),
            "dirty": dirty,
            "program": text(first_line(&path, &["--version"])),
            "program_sha256": program.digest,
            "build": found("program"),
            "rustc": text(first_line("rustc", &["--version"])),
            "rustflags": text(std::env::var("RUSTFLAGS").ok()),
            "backend": found("processor"),
            "backend_forced": text(std::env::var("HEKATON_ARITH").ok()),
            "cores": available_parallelism().map_or(0, std::num::NonZero::get),
            "kernel": text(read("/proc/sys/kernel/osrelease").map(|r| version_of(&r))),
            "glibc": text(first_line("getconf", &["GNU_LIBC_VERSION"])),
            "mpi": found("mpirun"),
            "slurm": text(first_line("sinfo", &["--version"])),
            "file_system": text(file_system(work)),
            "network": text(link_speed()),
            "infiniband": text(first_of("/sys/class/infiniband", "ports/1/rate")),
            "memory_gb": memory_bytes().map(|bytes| bytes / 1_000_000_000),
            "load_at_start": text(read("/proc/loadavg").map(|l| {
                l.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
            })),
        });
        if let Some(facts) = facts.as_object_mut() {
            facts.extend(processor());
        }
        let digest = Self::digest_of(&facts);
        Self { facts, digest }
    }

    /// The digest of facts without the load, 16 hexadecimal digits.
    fn digest_of(facts: &Value) -> String {
        let mut lasting = facts.clone();
        if let Some(fields) = lasting.as_object_mut() {
            fields.remove("load_at_start");
            fields.remove("digest");
            fields.remove("schema");
        }
        files::digest(lasting.to_string().as_bytes())[..16].to_owned()
    }

    /// Reads `env.json`; the digest is computed anew.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let facts: Value = files::read_json(path)?;
        let schema = &facts["schema"];
        if *schema != super::plan::SCHEMA {
            let expected = super::plan::SCHEMA;
            return Err(Failure::file(path, format!("schema {schema}, expected {expected}")));
        }
        let digest = Self::digest_of(&facts);
        if facts["digest"].as_str() != Some(&digest) {
            return Err(Failure::file(path, "the digest does not fit: the file was edited"));
        }
        Ok(Self { facts, digest })
    }

    /// The content of `env.json`.
    fn content(&self) -> Value {
        let mut content = self.facts.clone();
        content["schema"] = json!(super::plan::SCHEMA);
        content["digest"] = json!(self.digest);
        content
    }

    /// Writes `env.json`.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        files::write_json(path, &self.content())
    }

    /// Writes `env.json` unless another process has just done so.
    pub(crate) fn write_new(&self, path: &Path) -> Result<(), Failure> {
        let own = path.with_extension(format!("own-{}", std::process::id()));
        files::write_json(&own, &self.content())?;
        let linked = fs::hard_link(&own, path);
        fs::remove_file(&own).at(&own)?;
        match linked {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(Failure::file(path, e)),
            _ => Ok(()),
        }
    }
}

/// The names of facts that differ.
pub(crate) fn changes(a: &Environment, b: &Environment) -> String {
    let facts = b.facts.as_object().into_iter().flatten();
    let changed =
        facts.filter(|(name, value)| *name != "load_at_start" && a.facts[*name] != **value);
    changed.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The first line of a file.
fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

/// The numbers of a kernel release, without what a vendor appends.
fn version_of(release: &str) -> String {
    let end = release.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(release.len());
    release[..end].trim_end_matches(['-', '.', '_']).to_owned()
}

fn processor() -> Map<String, Value> {
    // Facts that this system does not have are null, which is part of the digest, too.
    let info = fs::read_to_string("/proc/cpuinfo").ok();
    let field = |name: &str| {
        let mut lines =
            info.iter().flat_map(|info| info.lines()).filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
    };
    let nodes = fs::read_dir("/sys/devices/system/node").map_or(0, |entries| {
        let names = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
        let digits = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
        names.filter(|n| n.strip_prefix("node").is_some_and(digits)).count()
    });
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let smt = read("/sys/devices/system/cpu/smt/active").map(|active| active == "1");
    let facts = json!({
        "cpu": field("model name").or_else(|| field("CPU part")),
        "cpu_family": field("cpu family"),
        "cpu_model": field("model"),
        "microcode": field("microcode"),
        "governor": governor,
        "smt": smt,
        "numa_nodes": nodes,
    });
    let Value::Object(facts) = facts else { unreachable!("the macro was given an object") };
    facts
}

/// The memory of this machine in bytes.
pub(crate) fn memory_bytes() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// The link speed of the interface that the default route uses; `None` if the driver does not say,
/// as in most virtual machines.
fn link_speed() -> Option<String> {
    let routes = fs::read_to_string("/proc/net/route").ok()?;
    let interface = default_interface(&routes)?;
    let text = read(&format!("/sys/class/net/{interface}/speed"))?;
    let speed: u64 = text.parse().ok()?;
    Some(format!("{speed} Mbit/s"))
}

/// The interface of the default route in `/proc/net/route`.
fn default_interface(routes: &str) -> Option<&str> {
    routes.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace();
        let (interface, destination) = (words.next()?, words.next()?);
        (destination == "00000000").then_some(interface)
    })
}

/// The first line of a file in the first of some directories.
fn first_of(directory: &str, file: &str) -> Option<String> {
    let mut all: Vec<_> = fs::read_dir(directory).ok()?.flatten().map(|e| e.path()).collect();
    all.sort();
    all.iter().find_map(|path| read(path.join(file).to_str()?))
}

/// The kind of file system that a directory is on: that of the longest mount point above it.
fn file_system(path: &Path) -> Option<String> {
    let absolute = path.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let above = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (at, kind) = (words.next()?, words.next()?);
        absolute.starts_with(at).then(|| (at.len(), kind.to_owned()))
    });
    above.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions() {
        assert_eq!(version_of("6.1.0-28-amd64"), "6.1.0-28");
        assert_eq!(version_of("6.12.3"), "6.12.3");
    }

    #[test]
    fn the_default_route_names_its_interface() {
        let head = "Iface\tDestination\tGateway\tFlags\n";
        let local = "ib0\t000200C0\t00000000\t0001\n";
        let default = "eth0\t00000000\t010200C0\t0003\n";
        assert_eq!(default_interface(&format!("{head}{local}{default}")), Some("eth0"));
        assert_eq!(default_interface(&format!("{head}{local}")), None);
    }

    #[test]
    fn the_load_does_not_change_the_digest() {
        let a = json!({ "commit": "c", "load_at_start": "1 2 3" });
        let b = json!({ "commit": "c", "load_at_start": "0 0 0", "schema": 1, "digest": "x" });
        let c = json!({ "commit": "d", "load_at_start": "0 0 0" });
        assert_eq!(Environment::digest_of(&a), Environment::digest_of(&b));
        assert_ne!(Environment::digest_of(&a), Environment::digest_of(&c));
    }
}
