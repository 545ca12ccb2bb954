//! The GPUs of a run.

use crate::opened_keys::OpenedKeys;
use crate::options::{Gpus, Prove};
use hekaton_circuit::{InstanceId, PreparedCircuit};
use hekaton_core::ProverKeys;
#[cfg(feature = "gpu")]
use hekaton_core::protocol::accelerator::Accelerator;
use hekaton_core::protocol::accelerator::Accelerators;
#[cfg(feature = "gpu")]
use hekaton_gpu::{Error, Gpu};
use hekaton_terminal::exit::{self, Failure};

/// The number of constraints from which GPUs are used without being asked for. To open one takes about 15 s the first time
/// (docs/guide/gpu.md), in which four cores prove this many.
const ENOUGH: u64 = 1 << 25;

/// The reason that there are no GPUs, and how to get a program with them.
#[cfg(not(feature = "gpu"))]
pub(crate) const WITHOUT: &str = "this program was built without support for GPUs";
#[cfg(all(not(feature = "gpu"), not(target_env = "musl")))]
pub(crate) const BUILD: &str = "to use GPUs: cargo build --release --features hekaton-app/gpu";
// In the programs of a release.
#[cfg(all(not(feature = "gpu"), target_env = "musl"))]
pub(crate) const BUILD: &str = "to use GPUs: compile from source for glibc, because static programs cannot load NVIDIA's driver";

/// The provers of a process, and its GPUs.
pub(crate) struct Provers {
    /// The number of subcircuits that its cores prove at the same time.
    pub(crate) on_cores: usize,
    pub(crate) accelerators: Option<Accelerators>,
}

impl Provers {
    /// Provers without GPUs.
    pub(crate) fn on_cores(provers: usize) -> Self {
        Self { on_cores: provers, accelerators: None }
    }

    /// Returns the number of subcircuits that cores and GPUs prove at the same time.
    pub(crate) fn all(&self, keys: &OpenedKeys) -> usize {
        self.on_cores + self.accelerators.as_ref().map_or(0, |all| all.places(&keys.keys.types))
    }
}

/// Refuses options that ask for GPUs.
#[cfg(not(feature = "gpu"))]
pub(crate) fn check(command: &Prove) -> Result<(), Failure> {
    let option = match (&command.gpu, command.gpu_memory) {
        (Gpus::These(_), _) => "--gpu",
        (_, Some(_)) => "--gpu-memory",
        (Gpus::Auto | Gpus::Off, None) => return Ok(()),
    };
    Err(Failure::new(exit::USAGE, format!("{option}: {WITHOUT}; {BUILD}")))
}

/// Refuses GPUs that this machine does not have, before anything is written. Ranks know only when they have a place.
#[cfg(feature = "gpu")]
pub(crate) fn check(command: &Prove) -> Result<(), Failure> {
    let Gpus::These(numbers) = &command.gpu else { return Ok(()) };
    if command.ranks.mpi {
        return Ok(());
    }
    let refused = |number, why: String| {
        let why = format!("--gpu {number}: {why}; `hekaton doctor` lists the GPUs");
        Failure::new(exit::USAGE, why)
    };
    let count = hekaton_gpu::count().map_err(|error| refused(numbers[0], error.to_string()))?;
    match numbers.iter().find(|number| **number >= count) {
        Some(number) => Err(refused(*number, format!("this machine has {count}, numbered from 0"))),
        None => Ok(()),
    }
}

/// Returns provers on cores only; reports it, once on each node, if a program with support for GPUs would use some.
#[cfg(not(feature = "gpu"))]
pub(crate) fn open(
    command: &Prove,
    circuit: &PreparedCircuit<'_>,
    keys: &OpenedKeys,
    provers: usize,
    on_node: Option<usize>,
    report: &dyn Fn(String),
) -> Result<Provers, Failure> {
    let has_driver = std::path::Path::new("/proc/driver/nvidia/version").exists();
    let is_first = on_node.is_none_or(|rank| rank == 0);
    if command.gpu == Gpus::Auto
        && is_first
        && has_driver
        && constraints(circuit, &keys.keys) >= ENOUGH
    {
        report(format!("{WITHOUT}, so only the cores prove; {BUILD}"));
    }
    Ok(Provers::on_cores(provers))
}

/// Opens the GPUs that a command asks for. With a memory limit, the cores and the GPUs share `provers` subcircuits. A rank takes one GPU,
/// by its number on its node.
#[cfg(feature = "gpu")]
pub(crate) fn open(
    command: &Prove,
    circuit: &PreparedCircuit<'_>,
    keys: &OpenedKeys,
    provers: usize,
    on_node: Option<usize>,
    report: &dyn Fn(String),
) -> Result<Provers, Failure> {
    let without = Provers::on_cores(provers);
    let is_asked = matches!(command.gpu, Gpus::These(_));
    let numbers = match &command.gpu {
        Gpus::Off => return Ok(without),
        Gpus::Auto if constraints(circuit, &keys.keys) < ENOUGH => return Ok(without),
        Gpus::Auto => match hekaton_gpu::count() {
            Ok(count) => (0..count).collect(),
            Err(Error::NoDriver) => return Ok(without),
            Err(error) => {
                report(format!("{error}; this run does not use GPUs"));
                return Ok(without);
            }
        },
        Gpus::These(numbers) => numbers.clone(),
    };
    let own: Vec<usize> = match on_node {
        Some(rank) => numbers.iter().copied().cycle().nth(rank).into_iter().collect(),
        None => numbers,
    };
    // A waiting prover holds an assignment, and synthesizes it before: the limit counts it like another.
    let is_limited = command.memory_limit.is_some();
    if !own.is_empty() && is_limited && provers < 2 {
        let why = "--memory-limit leaves room for one subcircuit, and a GPU needs others that wait for it";
        return match is_asked {
            true => Err(Failure::new(exit::USAGE, format!("{why}; raise it, or pass --gpu off"))),
            false => {
                report(format!("{why}; this run does not use GPUs"));
                Ok(without)
            }
        };
    }
    let mut devices: Vec<Box<dyn Accelerator>> = Vec::new();
    for number in own {
        let opened = hekaton_gpu::open(number)
            .and_then(|device| Gpu::new(device, number, command.gpu_memory));
        match opened {
            Ok(gpu) => devices.push(Box::new(gpu)),
            Err(error) if is_asked => {
                let why = format!("--gpu {number}: {error}; `hekaton doctor` lists the GPUs");
                return Err(Failure::new(exit::FAILED, why));
            }
            Err(error) => report(format!("{error}; it is not used")),
        }
    }
    if devices.is_empty() {
        return Ok(without);
    }
    let all = Accelerators::new(devices);
    let waiting = if is_limited { provers / 2 } else { 0 };
    let accelerators = Some(if is_limited { all.at_most(waiting) } else { all });
    Ok(Provers { on_cores: provers - waiting, accelerators })
}

/// The constraints of all subcircuits.
fn constraints(circuit: &PreparedCircuit<'_>, keys: &ProverKeys) -> u64 {
    let layout = circuit.layout();
    let instances = (0u32..).zip(0..layout.instances()).map(|(id, _)| InstanceId::from_index(id));
    instances.map(|id| keys.types[layout.type_index(id)].constraints() as u64).sum()
}
