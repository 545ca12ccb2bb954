//! Rivals that are other programs. Each is skipped with a message if it is not available.

use crate::options::{Error, Options, WorkerRate};
use benches::{Line, Times, alternate_times, time};
use hekaton_r1cs::System;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A whole run of ours, which rivals repeat.
pub(crate) struct WholeRun<'a> {
    pub(crate) options: &'a Options,
    pub(crate) source: &'a Path,
    pub(crate) witness: &'a Path,
    pub(crate) ours: Times,
    /// The line of our result, in seconds.
    pub(crate) line: Line<'a>,
    pub(crate) worker: WorkerRate,
}

impl WholeRun<'_> {
    pub(crate) fn against_all(&self, ours: &mut dyn FnMut()) -> Result<(), Error> {
        self.gnark()?;
        self.gnark_blocks()?;
        self.legogroth16()?;
        self.snarkjs(ours)
    }

    /// legogroth16 with its own reader of circom's files: Groth16 with a commitment, as Mirage is.
    fn legogroth16(&self) -> Result<(), Error> {
        let Some(program) = &self.options.legogroth16 else {
            eprintln!("skipped: legogroth16, without --legogroth16");
            return Ok(());
        };
        let repetitions = self.options.run.repetitions.to_string();
        let on_threads = |threads: usize| {
            let mut command = Command::new(program);
            command.arg(self.source).arg(self.witness).arg(threads.to_string()).arg(&repetitions);
            times_of(&json_of(&mut command)?)
        };
        const RIVAL: &str = "legogroth16 0.18";
        self.against(RIVAL, on_threads(self.options.threads.get())?);
        self.worker.against(self.options, RIVAL, self.line.size, on_threads(1)?);
        Ok(())
    }

    /// Prints both times of a rival that proved the same R1CS.
    fn against(&self, rival: &str, theirs: Times) {
        for (unit, ours, theirs) in
            [("s", self.ours.wall, theirs.wall), ("CPU s", self.ours.cpu, theirs.cpu)]
        {
            let (ours, theirs) = (ours.as_secs_f64(), theirs.as_secs_f64());
            Line { rival, ours, theirs, unit, ..self.line }.print(self.options.run.json);
        }
    }

    /// gnark's Groth16 on the same R1CS.
    fn gnark(&self) -> Result<(), Error> {
        let options = self.options;
        let Some(program) = &options.gnark else {
            eprintln!("skipped: gnark, without --gnark");
            return Ok(());
        };
        let mut command = Command::new(program);
        command.arg("--r1cs").arg(self.source).arg("--wtns").arg(self.witness);
        command.args(["--cores", &options.threads.to_string()]);
        command.args(["--repetitions", &options.run.repetitions.to_string(), "--keys"]);
        let found = json_of(command.arg(&options.gnark_keys))?;
        self.against("gnark 0.16, the same R1CS", times_of(&found)?);
        Ok(())
    }

    /// SHA-256 blocks per second of CPU time, and per second, against gnark's own circuit for as
    /// many blocks as its keys are quickly made for. Its constraints are others, with look-ups.
    fn gnark_blocks(&self) -> Result<(), Error> {
        const BLOCKS: &str = "8";
        let options = self.options;
        let (Some(program), Some(blocks)) = (&options.gnark, options.blocks) else {
            eprintln!("skipped: gnark's own circuit, without --gnark and --blocks");
            return Ok(());
        };
        let mut command = Command::new(program);
        command.args(["--blocks", BLOCKS, "--cores", &options.threads.to_string()]);
        command.args(["--repetitions", &options.run.repetitions.to_string(), "--keys"]);
        let found = json_of(command.arg(&options.gnark_keys))?;
        let theirs = number(&found, "blocks")?;
        let (bench, rival) = ("whole run, SHA-256", "gnark 0.16");
        let line = Line { bench, rival, larger_is_better: true, ..self.line };
        for (unit, time, rival) in [
            ("blocks a second", self.ours.wall, number(&found, "seconds")?),
            ("blocks a CPU-second", self.ours.cpu, number(&found, "cpu_seconds")?),
        ] {
            let ours = f64::from(blocks) / time.as_secs_f64();
            Line { ours, theirs: theirs / rival, unit, ..line }.print(options.run.json);
        }
        Ok(())
    }

    /// snarkjs, in turns with `ours`.
    fn snarkjs(&self, ours: &mut dyn FnMut()) -> Result<(), Error> {
        let options = self.options;
        let (Some(snarkjs), Some(zkey)) = (&options.snarkjs, &options.zkey) else {
            eprintln!("skipped: snarkjs, without --snarkjs and --zkey");
            return Ok(());
        };
        let folder = tempfile::tempdir()?;
        let theirs = || {
            let mut command = Command::new("node");
            command.arg(snarkjs).args(["groth16", "prove"]).arg(zkey).arg(self.witness);
            command.arg(folder.path().join("proof")).arg(folder.path().join("public"));
            let status = command.stdout(Stdio::null()).status();
            let succeeded = status.unwrap_or_else(|e| panic!("node: {e}")).success();
            assert!(succeeded, "snarkjs failed");
        };
        let (a, b) = alternate_times(options.run.repetitions, ours, theirs);
        // The processor time of a child is not that of this process.
        let theirs = b.wall.as_secs_f64();
        Line { ours: a.wall.as_secs_f64(), rival: "snarkjs", theirs, ..self.line }
            .print(options.run.json);
        Ok(())
    }
}

/// The times in what a rival printed.
fn times_of(found: &serde_json::Value) -> Result<Times, Error> {
    let time = |name| Ok::<_, Error>(Duration::from_secs_f64(number(found, name)?));
    Ok(Times { wall: time("seconds")?, cpu: time("cpu_seconds")? })
}

/// The line of JSON that a program prints.
fn json_of(command: &mut Command) -> Result<serde_json::Value, Error> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", command.get_program().display(), output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn number(found: &serde_json::Value, name: &str) -> Result<f64, Error> {
    found[name].as_f64().ok_or_else(|| format!("the rival printed no '{name}'").into())
}

/// The rows of each wire, each row once; wire 0 is the constant, which costs nothing.
fn rows_of_wires(system: &System) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); system.wires() as usize];
    for (row, number) in (0..system.rows()).zip(0u32..) {
        for term in system.row(row).into_iter().flatten().filter(|term| term.wire != 0) {
            let of_wire: &mut Vec<u32> = &mut rows[term.wire as usize];
            if of_wire.last() != Some(&number) {
                of_wire.push(number);
            }
        }
    }
    rows
}

/// The rows that a cut by Mt-KaHyPar adds, and how long it takes, against ours. Only wires cost it
/// rows: a slot in each part of each wire that has several, and one for each public wire.
pub(crate) fn mtkahypar(
    options: &Options,
    system: &System,
    added: Line<'_>,
    ours: Duration,
) -> Result<(), Error> {
    /// The largest part may have this many more constraints than the mean.
    const IMBALANCE: &str = "0.03";
    let Some(python) = &options.mtkahypar else {
        eprintln!("skipped: Mt-KaHyPar, without --mtkahypar");
        return Ok(());
    };
    let wires = rows_of_wires(system);
    let folder = tempfile::tempdir()?;
    let [graph, out] = ["graph.hgr", "parts"].map(|name| folder.path().join(name));
    let mut file = std::io::BufWriter::new(std::fs::File::create(&graph)?);
    let nets = wires.iter().filter(|rows| rows.len() > 1);
    writeln!(file, "{} {}", nets.clone().count(), system.rows())?;
    for rows in nets {
        rows.iter().try_for_each(|row| write!(file, "{} ", row + 1))?;
        writeln!(file)?;
    }
    file.into_inner()?;
    let parts = system.rows().div_ceil(1 << options.log_rows).max(2);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals/cut_with_mtkahypar.py");
    let mut command = Command::new(python);
    command.arg(script).arg(&graph).args([&parts.to_string(), IMBALANCE]);
    let (elapsed, status) = time(|| command.arg(options.threads.to_string()).arg(&out).status());
    if !status?.success() {
        return Err("Mt-KaHyPar failed".into());
    }
    let lines = std::fs::read_to_string(&out)?;
    let part_of: Vec<u32> = lines.lines().map(str::parse).collect::<Result<_, _>>()?;
    if part_of.len() != system.rows() {
        return Err("Mt-KaHyPar has other constraints".into());
    }
    let mut slots = 0;
    for (wire, rows) in (0u32..).zip(&wires) {
        let mut seen: Vec<u32> = rows.iter().map(|row| part_of[*row as usize]).collect();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() > 1 || wire <= system.public() {
            slots += seen.len();
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
    let theirs = 100.0 * slots as f64 / system.rows() as f64;
    let line = Line { rival: "Mt-KaHyPar 1.7", ..added };
    Line { theirs, ..line }.print(options.run.json);
    let (ours, theirs) = (ours.as_secs_f64(), elapsed.as_secs_f64());
    Line { bench: "time of the cut", ours, theirs, unit: "s", ..line }.print(options.run.json);
    Ok(())
}
