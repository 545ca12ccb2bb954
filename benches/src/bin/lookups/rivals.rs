//! gnark's look-up arguments, if its program is at hand.

use crate::{Error, Options};
use benches::{Line, Times};
use std::process::{Command, Stdio};

/// The rate of gnark for a workload of `items`, against ours of as many as in `line`.
pub(crate) fn gnark(
    options: &Options,
    workload: &str,
    items: usize,
    line: &Line<'_>,
    ours: Times,
) -> Result<(), Error> {
    let Some(program) = &options.gnark else {
        eprintln!("skipped: gnark, without --gnark");
        return Ok(());
    };
    let repetitions = options.run.repetitions.to_string();
    let output = Command::new(program)
        .args(["--workload", workload, "--items", &items.to_string(), "--cores", "1"])
        .args(["--repetitions", &repetitions, "--keys"])
        .arg(&options.gnark_keys)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", program.display(), output.status).into());
    }
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| {
        found[name].as_f64().ok_or_else(|| Error::from(format!("gnark printed no '{name}'")))
    };
    let per_second = |items: usize, seconds: f64| items as f64 / seconds;
    for (unit, time, name) in [
        ("items a core-second", ours.wall, "seconds"),
        ("items a CPU-second", ours.cpu, "cpu_seconds"),
    ] {
        let ours = per_second(line.size, time.as_secs_f64());
        let theirs = per_second(items, number(name)?);
        Line { rival: "gnark 0.16", ours, theirs, unit, ..*line }.print(options.run.json);
    }
    Ok(())
}
