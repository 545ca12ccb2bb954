//! Measurements of kernels, beside the CPU.

use crate::{milliseconds, say};
use ark_bls12_381::Fr;
use ark_ff::UniformRand;
use hekaton_arith::{Domain, G1Point, G2Point, Group, Scalars};
use hekaton_gpu::operations::multiply_often;
use hekaton_gpu::toy::{Toy, multiples};
use hekaton_gpu::{
    Bases, Buffer, Curve, Device, Kernel, Sizes, Timed, Transforms, TypeOnDevice, limbs,
};
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use serde_json::{Value, json};
use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The median time of several runs, after a first one that does not count.
fn median(
    device: &dyn Device,
    mut run: impl FnMut() -> Result<(), hekaton_gpu::Error>,
) -> Result<f64, hekaton_gpu::Error> {
    run()?;
    device.finish()?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        run()?;
        device.finish()?;
        times.push(milliseconds(start.elapsed()));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[2])
}

/// A row of `benches/results`, with the details of the measurement.
struct Row<'a> {
    bench: String,
    size: usize,
    ours: f64,
    rival: &'a str,
    theirs: f64,
    unit: &'a str,
    note: String,
}

impl Row<'_> {
    /// Adds the row to what is said of a measurement. Of times, the smaller is the better.
    fn with(self, mut details: Value) -> Value {
        let Self { bench, size, ours, rival, theirs, unit, note } = self;
        let ratio = if unit == "ms" { theirs / ours } else { ours / theirs };
        let row = json!({
            "bench": bench, "size": size, "threads": 1, "ours": ours, "rival": rival, "theirs": theirs, "ratio": ratio,
            "unit": unit, "note": note,
        });
        if let (Some(all), Value::Object(row)) = (details.as_object_mut(), row) {
            all.extend(row);
        }
        details
    }
}

/// Measures the kernels, one after the other, and a worker.
pub(crate) fn all(
    device: &Arc<dyn Device>,
    random: &mut ChaCha20Rng,
) -> Result<(), Box<dyn Error>> {
    let count = 1 << 19;
    for (name, kernel, words) in [("Fq", Kernel::ProductsFq, 6), ("Fr", Kernel::ProductsFr, 4)] {
        const TIMES: u32 = 256;
        // Any limbs below the modulus.
        let element =
            |i: usize| u64::try_from(i).map_or(1, |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8);
        let ms = if words == 6 {
            let a: Vec<[u64; 6]> = (0..count).map(|i| [element(i), 1, 2, 3, 4, 5]).collect();
            let a = Buffer::of(device, &a)?;
            median(&**device, || multiply_often(kernel, TIMES, &a, &a).map(drop))?
        } else {
            let a: Vec<[u64; 4]> = (0..count).map(|i| [element(i), 1, 2, 3]).collect();
            let a = Buffer::of(device, &a)?;
            median(&**device, || multiply_often(kernel, TIMES, &a, &a).map(drop))?
        };
        let rate = f64::from(TIMES) * count as f64 / ms / 1e6;
        say(
            &json!({ "measure": format!("products in {name}"), "ms": ms, "giga_per_second": rate }),
        );
    }
    for (size, vectors) in [(1 << 17, 1), (1 << 17, 16), (3 << 16, 16), (1 << 20, 1), (1 << 20, 4)]
    {
        let domain = Domain::new(size)?;
        let transforms = Transforms::new(device, &domain)?;
        let mut values: Vec<Fr> = (0..size).map(|_| Fr::rand(random)).collect();
        let on_device = Buffer::of(device, &limbs(&values.repeat(vectors)))?;
        let ms = median(&**device, || transforms.to_coset(&on_device))?;
        let start = Instant::now();
        domain.to_coset(&mut values);
        let row = Row {
            bench: "transform".into(),
            size,
            ours: ms / 2.0 / vectors as f64,
            rival: "one core",
            theirs: milliseconds(start.elapsed()) / 2.0,
            unit: "ms",
            note: format!("{vectors} at a time"),
        };
        say(&row.with(json!({ "measure": "transforms", "vectors": vectors, "ms": ms })));
    }
    workers(device, random)?;
    products::<G1Point>(
        "G1",
        device,
        random,
        &[(1 << 14, 1), (1 << 17, 1), (1 << 17, 8), (1 << 20, 1)],
    )?;
    products::<G2Point>(
        "G2",
        device,
        random,
        &[(1 << 14, 1), (1 << 17, 1), (1 << 17, 8), (1 << 20, 1)],
    )?;
    Ok(())
}

fn at_a_time(vectors: usize, multiples: bool) -> String {
    format!("{vectors} at a time{}", if multiples { ", with multiples" } else { "" })
}

/// Batches of assignments of a type: of random values, and of values like those of circuits with many bits.
// Above 60 lines: one measurement, and all that its row of the report says.
fn workers(device: &Arc<dyn Device>, random: &mut ChaCha20Rng) -> Result<(), Box<dyn Error>> {
    for (rows, vectors, multiples) in [
        (1 << 14, 16, true),
        (1 << 17, 8, false),
        (1 << 17, 8, true),
        (1 << 17, 16, true),
        (3 << 17, 4, true),
        (1 << 20, 1, false),
        (1 << 20, 2, true),
    ] {
        let toy = Toy::new(rows, random);
        let start = Instant::now();
        let on_device = TypeOnDevice::new(device, &toy.parts(), vectors, multiples)?;
        device.finish()?;
        let setup = milliseconds(start.elapsed());
        let full: Vec<Fr> = (0..=rows).map(|_| Fr::rand(random)).collect();
        // As a SHA-256 circuit: bits but for one value in twenty.
        let bits: Vec<Fr> = full
            .iter()
            .map(|x| match random.gen_range(0..20u8) {
                0 => *x,
                n => Fr::from(n % 2),
            })
            .collect();
        for (values, z) in [("full-size values", full), ("mostly bits", bits)] {
            let start = Instant::now();
            let expected = toy.sums(&z);
            let core = milliseconds(start.elapsed());
            // All cores at once, each with an assignment of its own, as provers on a CPU work.
            let cores = std::thread::available_parallelism()?.get();
            let all_cores = (rows <= 1 << 17).then(|| {
                let start = Instant::now();
                std::thread::scope(|scope| {
                    (0..cores).for_each(|_| drop(scope.spawn(|| toy.sums(&z))));
                });
                milliseconds(start.elapsed()) / cores as f64
            });
            let all = limbs(&z.repeat(vectors));
            let upload = median(&**device, || Buffer::of(device, &all).map(drop))?;
            let all = Buffer::of(device, &all)?;
            let mut results = Vec::new();
            let ms = median(&**device, || {
                results = on_device.prove(&all, false)?;
                Ok(())
            })?;
            if results != vec![Ok(expected); vectors] {
                return Err(format!("worker with {rows} rows: a wrong result").into());
            }
            let timed = Timed::new(device);
            let times = if multiples && rows == 1 << 17 {
                let device: Arc<dyn Device> = timed.clone();
                let on_device = TypeOnDevice::new(&device, &toy.parts(), vectors, multiples)?;
                timed.take();
                on_device.prove(&all, false)?;
                timed.take()
            } else {
                Default::default()
            };
            let kernels_ms: Vec<Value> = times
                .into_iter()
                .filter(|(_, time)| *time > Duration::from_micros(100))
                .map(|(kernel, time)| json!([kernel.name(), milliseconds(time)]))
                .collect();
            let details = json!({
                "measure": "worker", "rows": rows, "vectors": vectors, "values": values, "multiples": multiples, "ms": ms, "ms_of_upload": upload,
                "million_constraints_per_second": rows as f64 * vectors as f64 / ms / 1e3, "ms_of_setup": setup,
                "ms_of_one_by_a_core": core, "ms_of_one_by_all_cores": all_cores,
                "times_all_cores": all_cores.map(|cpu| cpu * vectors as f64 / ms), "kernels_ms": kernels_ms,
            });
            let rate = |ms: f64| rows as f64 / ms / 1e3;
            let row = all_cores.map(|all_cores| Row {
                bench: format!("worker part, {values}"),
                size: rows,
                ours: rate(ms / vectors as f64),
                rival: "all cores of the machine",
                theirs: rate(all_cores),
                unit: "million constraints per second",
                note: at_a_time(vectors, multiples),
            });
            say(&match row {
                Some(row) => row.with(details),
                None => details,
            });
        }
    }
    Ok(())
}

// Above 60 lines: one measurement, and all that its row of the report says.
fn products<P: Curve + Group>(
    group: &str,
    device: &Arc<dyn Device>,
    random: &mut ChaCha20Rng,
    sizes: &[(usize, usize)],
) -> Result<(), Box<dyn Error>> {
    let most = sizes.iter().map(|(count, _)| *count).max().unwrap_or(0);
    let random_scalars = |count: usize, random: &mut ChaCha20Rng| -> Vec<Fr> {
        (0..count).map(|_| Fr::rand(random)).collect()
    };
    let all_points: Vec<P> = multiples(most, random);
    let cores = std::thread::available_parallelism()?;
    for &(count, vectors) in sizes {
        let points = &all_points[..count];
        let scalars = random_scalars(count, random);
        let on_device = Buffer::of(device, &limbs(&scalars.repeat(vectors)))?;
        let prepared = Scalars::new(&scalars);
        let start = Instant::now();
        let expected = P::msm_on_threads(points, &prepared, NonZeroUsize::MIN.max(cores));
        let cpu = milliseconds(start.elapsed());
        let mut tried = Vec::new();
        for multiples in [false, true] {
            let best = Sizes::of(count, vectors, multiples);
            tried.push(best);
            if count >= 1 << 17 {
                tried.push(Sizes { bits: best.bits - 1, ..best });
                tried.push(Sizes { bits: (best.bits + 1).min(20), ..best });
                tried.push(Sizes { segment: best.segment - 1, ..best });
                tried.push(Sizes { segment: best.segment + 1, ..best });
                tried.push(Sizes { length: best.length * 2, ..best });
            }
        }
        let mut profiled = Vec::new();
        for sizes in tried {
            let start = Instant::now();
            let bases = Bases::with_sizes(device, points, sizes)?;
            device.finish()?;
            let setup = milliseconds(start.elapsed());
            let mut results = Vec::new();
            let ms = median(&**device, || {
                results = bases.multiply(&on_device)?;
                Ok(())
            })?;
            if results != vec![expected; vectors] {
                return Err(format!("{group}, {count} points, {sizes:?}: a wrong result").into());
            }
            let mut line = json!({
                "measure": format!("MSM in {group}"), "points": count, "vectors": vectors, "ms": ms,
                "ms_of_one": ms / vectors as f64, "bits": sizes.bits, "length": sizes.length,
                "segment": sizes.segment, "multiples": sizes.multiples, "ms_of_setup": setup, "ms_of_one_by_all_cores": cpu,
            });
            if !profiled.contains(&sizes.multiples) {
                profiled.push(sizes.multiples);
                let timed = Timed::new(device);
                let device: Arc<dyn Device> = timed.clone();
                let bases = Bases::with_sizes(&device, points, sizes)?;
                timed.take();
                bases.multiply(&Buffer::of(&device, &limbs(&scalars.repeat(vectors)))?)?;
                let times: Vec<Value> = timed
                    .take()
                    .into_iter()
                    .map(|(kernel, time)| json!([kernel.name(), milliseconds(time)]))
                    .collect();
                line["kernels_ms"] = times.into();
            }
            if sizes == Sizes::of(count, vectors, sizes.multiples) {
                let row = Row {
                    bench: format!("MSM {group}"),
                    size: count,
                    ours: ms / vectors as f64,
                    rival: "all cores of the machine",
                    theirs: cpu,
                    unit: "ms",
                    note: at_a_time(vectors, sizes.multiples),
                };
                line = row.with(line);
            }
            say(&line);
        }
    }
    Ok(())
}
