//! Checks the kernels on a GPU against the CPU, makes whole proofs with it, and measures them. `scripts/gpu-check` runs it.

mod measure;
mod runs;

use hekaton_gpu::check::Check;
use hekaton_gpu::{Cuda, Device, Sizes};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde_json::{Value, json};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const HELP: &str = "\
Checks the kernels on a GPU against the CPU, makes whole proofs with it, and measures them. Prints a JSON object a line.

Usage: gpu-check [--device N] [--kernels FILE] [--small | --only-measure] [--seed N]

  --device N      the number of the device (0)
  --kernels FILE  use this PTX or cubin instead of the built-in kernels
  --small         only checks of small sizes, for compute-sanitizer
  --only-measure  only measurements
  --seed N        the seed of random inputs (1)
";

struct Options {
    device: usize,
    kernels: Option<String>,
    small: bool,
    only_measure: bool,
    seed: u64,
}

fn number<T: std::str::FromStr>(argument: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{argument} takes a number, not '{value}'"))
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options =
        Options { device: 0, kernels: None, small: false, only_measure: false, seed: 1 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value; see --help"));
        match argument.as_str() {
            "--device" => options.device = number(&argument, &value()?)?,
            "--kernels" => options.kernels = Some(value()?),
            "--seed" => options.seed = number(&argument, &value()?)?,
            "--small" => options.small = true,
            "--only-measure" => options.only_measure = true,
            _ => return Err(format!("unknown argument '{argument}'; see --help").into()),
        }
    }
    Ok(options)
}

#[allow(clippy::print_stdout)]
fn say(line: &Value) {
    println!("{line}");
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[allow(clippy::print_stderr, clippy::print_stdout)]
fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--help") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let start = Instant::now();
    let device: Arc<dyn Device> = match &options.kernels {
        Some(file) => Arc::new(Cuda::new(options.device, &std::fs::read(file)?)?),
        None => hekaton_gpu::open(options.device)?,
    };
    say(&json!({
        "device": device.name(), "cores": std::thread::available_parallelism()?,
        "arithmetic_of_cpu": format!("{:?}", hekaton_arith::Backend::current()),
        "open_ms": milliseconds(start.elapsed()), "kernels": options.kernels,
    }));
    if !options.only_measure {
        checks(&device, &options)?;
    }
    if !options.small {
        runs::end_to_end(&device, options.device)?;
        measure::all(&device, &mut ChaCha20Rng::seed_from_u64(options.seed))?;
    }
    Ok(())
}

fn checks(device: &Arc<dyn Device>, options: &Options) -> Result<(), Box<dyn Error>> {
    let mut check = Check::new(device, options.seed);
    let scale = if options.small { 0 } else { 1 };
    let start = Instant::now();
    let passed = |name: &str| {
        say(&json!({ "check": name, "seconds": start.elapsed().as_secs_f64() }));
    };
    check.fields([64, 20_000][scale])?;
    passed("fields");
    check.points([40, 4_000][scale])?;
    passed("points");
    let sizes: Vec<usize> = (1..=[11, 18][scale]).flat_map(|k| [1 << k, 3 << k]).collect();
    check.transforms(&sizes)?;
    passed("transforms");
    for count in [1, 2, 33] {
        check.products(count, &[Sizes::of(count, 2, false), Sizes::of(count, 2, true)])?;
    }
    let sizes = [
        Sizes { bits: 2, length: 2, segment: 0, multiples: false },
        Sizes { bits: 5, length: 3, segment: 4, multiples: false },
        Sizes { bits: 10, length: 64, segment: 5, multiples: true },
    ];
    check.products([150, 3_000][scale], &sizes)?;
    passed("products of hard vectors");
    check.workers(if options.small { &[7, 500] } else { &[1, 100, 3_000, 40_000] })?;
    passed("workers");
    if scale > 0 {
        check.products(1 << 15, &[Sizes::of(1 << 15, 2, true), Sizes::of(1 << 20, 1, false)])?;
        passed("products of 2^15 points");
        runs::golden(device, options.device)?;
        passed("golden proofs");
    }
    Ok(())
}
