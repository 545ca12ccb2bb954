//! A key directory: its tree, durable commits in each mode of the pipeline, answers while epochs are closed, and opening
//! after the process was killed; next to jmt, akd and nomt.
//!
//! `cargo run --release -p benches --bin directory -- --json`
//!
//! Rivals are a program of their own, `rivals/directory`, which runs in alternation with ours on as many keys and updates.
//! Half of the updates insert labels. What depends on the disk says so.
#![allow(clippy::print_stderr, clippy::print_stdout)]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of benchmarks")]

mod load;
mod pipeline;
mod proofs;
mod server;
mod tree;

use benches::{Line, Run, Times};
use clap::Parser;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Benchmarks of key directories.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// The number of keys before anything is measured.
    #[arg(long, default_value_t = 1 << 20)]
    keys: usize,
    /// The updates of an epoch.
    #[arg(long, default_value_t = 1024)]
    updates: usize,
    /// The epochs of each mode of the pipeline, or of the load.
    #[arg(long, default_value_t = 32)]
    epochs: usize,
    /// The updates of the epoch that is proven; steps of `--updates` are counted.
    #[arg(long, default_value_t = 16)]
    proven: usize,
    /// The most constraints of a subcircuit.
    #[arg(long, default_value_t = 1 << 20)]
    rows: usize,
    /// The benchmarks to run; only if asked for: `load`, epochs for a long time, with memory and disk over it.
    #[arg(long, value_delimiter = ',', default_value = "tree,commit,pipeline,look-up,open,prove")]
    only: Vec<String>,
    /// Write a table (CSV) to this file, too: the pipeline's modes and regimes, which are on the page of a result set as
    /// `pipeline.csv`, or memory and disk over a load.
    #[arg(long)]
    table: Option<PathBuf>,
    /// The program of `rivals/directory`.
    #[arg(long)]
    rivals: Option<PathBuf>,
    /// The folder in which databases are made [default: the folder for temporary files].
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Options {
    fn has(&self, what: &str) -> bool {
        self.only.iter().any(|only| only == what)
    }

    fn folder(&self) -> Result<tempfile::TempDir, Error> {
        Ok(match &self.folder {
            Some(folder) => tempfile::tempdir_in(folder)?,
            None => tempfile::tempdir()?,
        })
    }

    /// Prints a figure for which less is better.
    fn line(&self, bench: &str, ours: f64, (rival, theirs): (&str, f64), unit: &str) {
        let (size, threads, larger_is_better) = (self.keys, 1, false);
        Line { bench, size, threads, ours, rival, theirs, unit, larger_is_better }
            .print(self.run.json);
    }

    /// Prints a rate.
    fn rate(&self, bench: &str, ours: f64, (rival, theirs): (&str, f64), unit: &str) {
        let (size, threads, larger_is_better) = (self.keys, 0, true);
        Line { bench, size, threads, ours, rival, theirs, unit, larger_is_better }
            .print(self.run.json);
    }

    /// One run of a rival: microseconds per update, of processor time and of wall time.
    fn rival(&self, name: &str) -> Result<Option<[f64; 2]>, Error> {
        let Some(program) = &self.rivals else {
            eprintln!("skipped: {name}, whose program --rivals names");
            return Ok(None);
        };
        let folder = self.folder()?;
        let output = Command::new(program)
            .arg(name)
            .args([self.keys.to_string(), self.updates.to_string()])
            .arg(folder.path())
            .output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{} {name}: {why}", program.display()).into());
        }
        let line: Value = serde_json::from_slice(&output.stdout)?;
        let figure = |name: &str| line[name].as_f64().ok_or_else(|| format!("no {name}"));
        Ok(Some([figure("cpu_us")?, figure("wall_us")?]))
    }
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    if options.has("tree") {
        tree::measure(&options)?;
    }
    if options.has("commit") || options.has("look-up") || options.has("open") {
        server::measure(&options)?;
    }
    if options.has("pipeline") {
        pipeline::measure(&options)?;
    }
    if options.has("load") {
        load::measure(&options)?;
    }
    if options.has("prove") {
        proofs::measure(&options)?;
    }
    Ok(())
}

/// The microseconds per update.
fn each(times: Times, updates: usize) -> [f64; 2] {
    let of = |time: Duration| time.as_secs_f64() * 1e6 / updates as f64;
    [of(times.cpu), of(times.wall)]
}
