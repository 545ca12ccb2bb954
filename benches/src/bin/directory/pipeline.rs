//! Epochs in each mode of the pipeline.

use crate::server::{batch, key, opener, parameters, send, server_options};
use crate::{Error, Options};
use benches::time;
use hekaton_directory_server::{Mode, Server};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

const MODES: [Mode; 4] = [Mode::Serial, Mode::Pipelined, Mode::AnyOrder, Mode::Auto];

/// The measurements of a mode: epochs per second, and milliseconds per epoch.
const COLUMNS: [&str; 7] =
    ["epochs_per_second", "compute_ms", "write_ms", "sign_ms", "wait_ms", "idle_ms", "cpu_ms"];

/// Measures epochs in each mode of the pipeline: where a sync is slow, on this disk, and next to provers on
/// all cores.
pub(crate) fn measure(options: &Options) -> Result<(), Error> {
    let mut table = format!("regime,mode,{},gain,predicted_gain\n", COLUMNS.join(","));
    for regime in ["slow disk", "this disk", "busy cores"] {
        let mut all = vec![Vec::new(); MODES.len()];
        let mut gains = Vec::new();
        for _ in 0..options.run.repetitions {
            for (mode, rows) in MODES.into_iter().zip(&mut all) {
                let (row, predicted) = once(options, regime, mode)?;
                rows.push(row);
                if mode == Mode::Serial {
                    gains.push(predicted);
                }
            }
        }
        let rows: Vec<[f64; COLUMNS.len()]> = all.iter().map(|rows| medians_of(rows)).collect();
        let (serial, predicted) = (rows[0][0], median(gains));
        for (mode, row) in MODES.into_iter().zip(&rows) {
            let numbers: Vec<String> = row.iter().map(|number| format!("{number:.3}")).collect();
            let (name, gain) = (mode.name(), row[0] / serial);
            writeln!(table, "{regime},{name},{},{gain:.3},{predicted:.3}", numbers.join(","))?;
            if mode != Mode::Serial {
                let bench = format!("pipeline, {regime}: {name}");
                options.rate(&bench, row[0], ("serial", serial), "epochs a second");
            }
        }
        let bench = format!("pipeline, {regime}: predicted gain");
        options.rate(&bench, predicted, ("", f64::NAN), "times serial");
    }
    match &options.table {
        Some(path) => Ok(std::fs::write(path, table)?),
        None => Ok(()),
    }
}

/// One run of a mode, and the gain that is expected from running its stages at the same time.
fn once(options: &Options, regime: &str, mode: Mode) -> Result<([f64; COLUMNS.len()], f64), Error> {
    let folder = options.folder()?;
    Server::create(folder.path(), &parameters(), &key(), 4)?;
    let server = Server::open_in(
        folder.path(),
        &parameters(),
        &key(),
        server_options(options, mode),
        opener(folder.path(), regime == "slow disk"),
    )?;
    let stop = AtomicBool::new(false);
    let spent = std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..if regime == "busy cores" { cores } else { 0 } {
            scope.spawn(|| {
                let mut number = 1u64;
                while !stop.load(Ordering::Relaxed) {
                    number = std::hint::black_box(number.wrapping_mul(3));
                }
            });
        }
        // Accepted before the clock runs: what is compared is closing epochs.
        let (spent, done) = time(|| {
            for epoch in 0..options.epochs {
                send(&server, batch(options, epoch))?;
            }
            Ok::<_, Error>(server.flush()?)
        });
        stop.store(true, Ordering::Relaxed);
        done.map(|()| spent)
    })?;
    let stats = server.stats();
    let ms = [stats.compute, stats.write, stats.sign, stats.wait, stats.idle, stats.cpu];
    let mut row = [options.epochs as f64 / spent.as_secs_f64(); COLUMNS.len()];
    row[1..].copy_from_slice(&ms.map(|seconds| 1e3 * seconds));
    Ok((row, stats.predicted_gain()))
}

fn medians_of(rows: &[[f64; COLUMNS.len()]]) -> [f64; COLUMNS.len()] {
    std::array::from_fn(|column| median(rows.iter().map(|row| row[column]).collect()))
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
