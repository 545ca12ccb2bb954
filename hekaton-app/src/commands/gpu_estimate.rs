//! `hekaton estimate --gpu`.

use hekaton_gpu::TypeMemory;
use hekaton_plan::TypeEstimate;
use hekaton_terminal::output::bytes;
use serde_json::{Value, json};

/// The subcircuits of a run that a GPU takes.
pub(crate) struct GpuEstimate<'a> {
    /// The GPU's memory, in bytes.
    memory: u64,
    types: Vec<TypeOnGpu<'a>>,
}

struct TypeOnGpu<'a> {
    kind: &'a TypeEstimate,
    /// The number of subcircuits of a batch; 0 if the type does not fit.
    batch: usize,
    /// The bytes that it takes.
    bytes: u64,
    /// Seconds per subcircuit on an H200.
    seconds: f64,
}

impl<'a> GpuEstimate<'a> {
    pub(crate) fn new(types: &'a [TypeEstimate], memory: u64) -> Self {
        Self { memory, types: types.iter().map(|kind| TypeOnGpu::new(kind, memory)).collect() }
    }

    fn total(&self, seconds: impl Fn(&TypeOnGpu<'_>) -> f64) -> f64 {
        let fitting = self.types.iter().filter(|on| on.batch > 0);
        fitting.map(|on| on.kind.size.instances as f64 * seconds(on)).sum()
    }

    /// The cores that synthesize as quickly as an H200 proves. 0 if no type fits.
    fn cores(&self) -> f64 {
        let seconds = self.total(|on| on.seconds);
        if seconds > 0.0 { self.total(|on| on.kind.synthesis_seconds) / seconds } else { 0.0 }
    }

    pub(crate) fn object(&self) -> Value {
        let types: Vec<Value> = (self.types.iter())
            .map(|on| {
                json!({
                    "name": on.kind.size.name, "batch": on.batch, "bytes": on.bytes,
                    "seconds_on_h200": on.seconds, "synthesis_seconds": on.kind.synthesis_seconds,
                })
            })
            .collect();
        json!({ "memory_bytes": self.memory, "types": types, "cores_for_h200": self.cores() })
    }

    pub(crate) fn table(&self) -> String {
        let mut out = format!("\n\non a GPU with {}\n", bytes(self.memory));
        for on in &self.types {
            let name = &on.kind.size.name;
            out += &match on.batch {
                0 => format!("{name:<16} does not fit ({}): the cores prove it\n", bytes(on.bytes)),
                batch => format!(
                    "{name:<16} {} with batches of {batch}; {:.1} ms each on an H200\n",
                    bytes(on.bytes),
                    on.seconds * 1e3
                ),
            };
        }
        let cores = self.cores();
        if cores > 0.0 {
            out += &format!(
                "{:<16} {cores:.2} like these synthesize as quickly as an H200 proves",
                "cores"
            );
        }
        out.trim_end().to_owned()
    }
}

impl<'a> TypeOnGpu<'a> {
    fn new(kind: &'a TypeEstimate, memory: u64) -> Self {
        let (size, columns) = (&kind.size, kind.columns);
        let count =
            |points: u64| usize::try_from(points).expect("counted from constraints in memory");
        let on_device = TypeMemory {
            variables: size.variables,
            constraints: size.constraints,
            domain: size.domain,
            entries: size.entries,
            g1: [columns.a, columns.c, columns.own, size.domain, size.slots].map(count),
            g2: count(columns.b),
        };
        let batch = on_device.batch(memory);
        Self {
            kind,
            batch,
            bytes: on_device.bytes(batch.max(1), false),
            seconds: on_device.seconds_on_h200(batch, kind.full_size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::{Fr, Masking, PreparedCircuit};
    use hekaton_core::{LocalEngine, SetupOptions, setup};
    use hekaton_plan::{Calibration, Workers, estimate};
    use hekaton_testing::Squares;

    /// Estimates without keys equal what a GPU finds with them.
    #[test]
    fn types_take_what_their_keys_take() {
        let (squares, engine) = (Squares::new(&[0, 1, 1]), LocalEngine::new(None).unwrap());
        let (input, workers) = (Fr::from(2u64), Workers { ranks: 1, threads: 2 });
        let circuit = PreparedCircuit::with_input(&squares, &input).unwrap();
        let calibration = Calibration::reference();
        let found = estimate(&circuit, Masking::Masked, &calibration, workers, None).unwrap();
        let keys = setup(&squares, &engine, &SetupOptions::new("squares")).unwrap();
        for memory in [1 << 10, 1 << 22, 1 << 34] {
            let gpu = GpuEstimate::new(&found.types, memory);
            for (on, key) in gpu.types.iter().zip(&keys.types) {
                let with_keys = TypeMemory::of(key);
                assert_eq!(on.batch, with_keys.batch(memory));
                assert_eq!(on.bytes, with_keys.bytes(on.batch.max(1), false));
            }
            let fits = gpu.types.iter().all(|on| on.batch > 0);
            assert_eq!((fits, gpu.cores() > 0.0), (memory > 1 << 10, memory > 1 << 10));
            assert_eq!(gpu.table().contains("the cores prove it"), !fits);
        }
    }
}
