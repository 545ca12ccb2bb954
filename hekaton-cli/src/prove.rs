//! `hekaton prove`.

use crate::exit::{self, Failure, OrFail};
use crate::options::Prove;
use crate::output;
use crate::progress::Display;
use circuits::{AnyCircuit, Named, Parameters, with_circuit};
use hekaton_core::{KeyDirectory, LocalEngine, Phase, ProveOptions, ProverKeys, Randomness, Run, prove};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) fn run(command: &Prove, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let file = exit::read(&command.file)?;
    let path = command.proof.clone().unwrap_or_else(|| with_suffix(&command.file, ".proof"));
    check_writable(&path, command)?;
    let (manifest, keys) = KeyDirectory::open(&command.keys).or_fail(exit::BAD_FILE)?;
    let load = start.elapsed();
    let parameters: Parameters = serde_json::from_value(manifest.parameters.clone()).or_fail(exit::BAD_FILE)?;
    let (circuit, _) = AnyCircuit::new(&manifest.circuit, &parameters, None).or_fail(exit::BAD_FILE)?;
    let mut options = ProveOptions::new();
    if let Some(seed) = command.insecure_seed {
        eprintln!("WARNING: randomness from a seed: this proof is NOT zero-knowledge; for tests only");
        options.randomness = Some(Randomness::seeded_not_zero_knowledge(seed));
    }
    options.check_constraints = !command.no_check;
    let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
    let threads = hekaton_core::engine::Pool::threads(&engine);
    let run = with_circuit!(&circuit, circuit => prove_file(circuit, &file, &keys, &engine, &options))?;
    exit::finish();
    write(&path, run.proof.as_bytes())?;
    let public = AnyCircuit::show_public(&manifest.circuit, &run.public_values).unwrap_or_default();
    let key_bytes = keys.types.iter().map(|t| t.bytes()).sum::<u64>() + keys.aggregation.bytes();
    let zero_knowledge = manifest.zero_knowledge && command.insecure_seed.is_none();
    let report = Report {
        run: &run,
        load,
        total: start.elapsed(),
        threads,
        public: &public,
        proof: &path,
        zero_knowledge,
        key_bytes,
    };
    output::result(json, &report.object(), &report.table(&command.keys))
}

fn prove_file<'f, C: Named>(
    circuit: &C,
    file: &'f [u8],
    keys: &ProverKeys,
    engine: &LocalEngine,
    options: &ProveOptions,
) -> Result<Run, Failure>
where
    C::Input: ToOwned + 'f,
{
    let input = circuit.input(file).or_fail(exit::FAILED)?;
    // A proof is written at the very end: an interrupted run leaves nothing behind.
    let end = || {
        if exit::finishing() {
            return; // the proof is being written: let it
        }
        eprintln!("\ninterrupted: no proof was written");
        std::process::exit(exit::INTERRUPTED.into());
    };
    ctrlc::set_handler(end).or_fail(exit::FAILED)?;
    let display = Display::new();
    prove(circuit, &input, keys, engine, options, &|event| display.event(event)).or_fail(exit::FAILED)
}

/// `FILE` and a suffix.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Finds out before the work, not after it, that the proof can't be written.
fn check_writable(path: &Path, command: &Prove) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::new(exit::BAD_FILE, format!("{} is a directory: --proof takes a file", path.display())));
    }
    if let Ok(existing) = path.canonicalize() {
        let refuse = |why: &str| Err(Failure::new(exit::BAD_FILE, format!("--proof {}: {why}", path.display())));
        if command.file.canonicalize().is_ok_and(|input| input == existing) {
            return refuse("that is the input, which would be lost");
        }
        if command.keys.canonicalize().is_ok_and(|keys| existing.starts_with(keys)) {
            return refuse("that is inside the key directory");
        }
        if !existing.is_file() && !existing.is_dir() {
            return refuse("that is no regular file");
        }
    }
    tempfile::NamedTempFile::new_in(parent(path))
        .map(drop)
        .map_err(|e| Failure::new(exit::BAD_FILE, format!("can't write the proof to {}: {e}", path.display())))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let attempt = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(parent(path))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    attempt().map_err(|e| Failure::new(exit::FAILED, format!("can't write the proof to {}: {e}", path.display())))
}

struct Report<'a> {
    run: &'a Run,
    load: Duration,
    total: Duration,
    threads: usize,
    public: &'a str,
    proof: &'a Path,
    zero_knowledge: bool,
    key_bytes: u64,
}

impl Report<'_> {
    fn rate(&self) -> f64 {
        self.run.constraints as f64 / self.run.times.iter().sum::<Duration>().as_secs_f64() / self.threads as f64
    }

    fn object(&self) -> Value {
        let phases = Phase::ALL.iter().zip(self.run.times).zip(self.run.bytes);
        let phases: Vec<Value> =
            phases.map(|((p, t), b)| json!({ "phase": p.name(), "seconds": t.as_secs_f64(), "bytes": b })).collect();
        json!({
            "ok": true, "proof": self.proof, "proof_bytes": self.run.proof.as_bytes().len(), "public": self.public,
            "subcircuits": self.run.instances, "constraints": self.run.constraints, "threads": self.threads,
            "constraints_a_core_second": self.rate(), "load_keys_seconds": self.load.as_secs_f64(), "key_bytes": self.key_bytes, "phases": phases,
            "seconds": self.total.as_secs_f64(), "peak_memory_bytes": output::peak_memory(),
            "zero_knowledge": self.zero_knowledge,
        })
    }

    fn table(&self, keys: &Path) -> String {
        let mut out = format!("{:<16} {:>10} {:>12}\n", "phase", "time", "bytes");
        let key_bytes = output::bytes(self.key_bytes);
        out += &format!("{:<16} {:>10} {:>12}\n", "load keys", output::seconds(self.load), key_bytes);
        for ((phase, time), bytes) in Phase::ALL.iter().zip(self.run.times).zip(self.run.bytes) {
            out += &format!("{:<16} {:>10} {:>12}\n", phase.name(), output::seconds(time), output::bytes(bytes));
        }
        out += &format!("{:<16} {:>10}\n\n", "all", output::seconds(self.total));
        let mut row = |name: &str, value: String| out += &format!("{name:<16} {value}\n");
        row("subcircuits", output::count(self.run.instances as u64));
        let rate = output::count(self.rate().round() as u64);
        row(
            "constraints",
            format!("{}, {rate} a core-second on {} threads", output::count(self.run.constraints), self.threads),
        );
        row("peak memory", output::peak_memory().map_or_else(|| "unknown".into(), output::bytes));
        row("zero knowledge", if self.zero_knowledge { "yes".into() } else { "NO".into() });
        row("public values", self.public.to_owned());
        row("proof", format!("{} ({})", self.proof.display(), output::bytes(self.run.proof.as_bytes().len() as u64)));
        let key = keys.join("verifying.key");
        out += &format!(
            "\nverify it with\n  hekaton verify {} --key {} --public {}",
            self.proof.display(),
            key.display(),
            self.public
        );
        out
    }
}
