//! Other machines on the same programs. Machines that are not available are skipped with a message.

use crate::guests::{Guest, SMALL_INPUT, SMALL_OUTPUT};
use crate::{Error, Options};
use benches::{median, time};
use hekaton_vm::Run;
use serde_json::Value;
use std::fs::File;
use std::process::Command;

/// The seconds that ckb-vm's interpreter takes.
pub(crate) fn ckb_vm(options: &Options, guest: &Guest, run: &Run) -> Result<Option<f64>, Error> {
    let Some(rival) = &options.ckb_vm else {
        eprintln!("skipped: ckb-vm, which --ckb-vm names");
        return Ok(None);
    };
    let memory = guest.small.with_extension("memory");
    std::fs::write(&memory, guest.memory())?;
    let output = Command::new(rival)
        .args([&guest.small, &memory])
        .args([SMALL_INPUT.to_string(), SMALL_OUTPUT.to_string()])
        .arg(options.run.repetitions.to_string())
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{}: {why}", rival.display()).into());
    }
    let line: Value = serde_json::from_slice(&output.stdout)?;
    if line["output"] != serde_json::json!(run.output()) {
        return Err(format!("{}: ckb-vm has another output", guest.name).into());
    }
    line["seconds"].as_f64().map(Some).ok_or_else(|| "no seconds".into())
}

/// The seconds that qemu takes, its start included.
pub(crate) fn qemu(options: &Options, guest: &Guest, run: &Run) -> Result<Option<f64>, Error> {
    let memory = guest.linux.with_extension("memory");
    std::fs::write(&memory, guest.memory())?;
    let mut seconds = Vec::new();
    for _ in 0..options.run.repetitions {
        let input = File::open(&memory)?;
        let (spent, output) =
            time(|| Command::new(&options.qemu).arg(&guest.linux).stdin(input).output());
        let output = match output {
            Ok(output) => output,
            Err(e) => {
                eprintln!("skipped: {}: {e}", options.qemu.display());
                return Ok(None);
            }
        };
        let ours: Vec<u8> = run.output().iter().flat_map(|word| word.to_le_bytes()).collect();
        if output.stdout != ours {
            return Err(format!("{}: qemu has another output", guest.name).into());
        }
        seconds.push(spent);
    }
    Ok(Some(median(seconds).as_secs_f64()))
}
