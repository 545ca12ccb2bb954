//! The real worker of this project, on a subcircuit with the author's rows and slots of the
//! workload.

use super::Error;
use super::r1cs::author;
use ark_ff::Field;
use hekaton_arith::{Fr, powers};
use hekaton_circuit::{Closures, Masking, MemoryChallenges, PreparedCircuit};
use hekaton_core::protocol::coordinator::Coordinator;
use hekaton_core::protocol::messages::ProveRound;
use hekaton_core::protocol::worker::Worker;
use hekaton_core::{LocalEngine, Randomness, SetupOptions, WitnessCheck, setup};
use std::num::NonZeroUsize;

/// The sizes of our subcircuit.
#[derive(Clone, Copy, Debug)]
pub struct OurSizes {
    /// All rows, those of the memory check included.
    pub rows: usize,
    /// The committed variables.
    pub committed: usize,
    /// The size of the domain.
    pub domain: usize,
    /// The bytes of a job, framed: 37 for the instance, its secret, and lengths, and 32 per slot.
    pub job: usize,
}

/// The values of `slots` slots, of full size.
pub fn slot_values(slots: usize) -> Vec<Fr> {
    powers(Fr::from(u128::MAX - 172).square(), slots + 1).split_off(1)
}

/// A subcircuit with the author's rows whose slots are public inputs, so that it needs no second
/// type that writes them.
fn circuit(rows: usize, slots: usize) -> Closures {
    Closures::new(
        move |layout| {
            let kind = layout.subcircuit_type("products", slots);
            let instance = layout.instance(kind);
            let wires: Vec<_> = (0..slots).map(|j| layout.public_input("slot", j as u64)).collect();
            wires.iter().enumerate().for_each(|(j, wire)| layout.read(instance, j, *wire));
            Ok(wires)
        },
        move |wires, values| {
            let all = wires.iter().zip(slot_values(slots));
            all.for_each(|(wire, value)| values.set(*wire, value));
            Ok(())
        },
        |_| Ok(()),
        move |subcircuit, _| author(rows, subcircuit.slots()),
    )
}

/// Sets up the subcircuit, and passes its sizes and a function that does the work of both rounds,
/// as `--bin prover` times it, to `then`.
///
/// # Errors
/// If there are fewer rows than slots, or setup or `then` fails.
pub fn with_worker<R>(
    author_rows: usize,
    slots: usize,
    then: impl FnOnce(OurSizes, &dyn Fn() -> Result<(), Error>) -> Result<R, Error>,
) -> Result<R, Error> {
    if slots == 0 || author_rows < slots {
        return Err(format!(
            "{author_rows} constraints cannot use {slots} shared wires: there must be at least one \
             wire, and at least as many constraints as wires"
        )
        .into());
    }
    let circuit = circuit(author_rows, slots);
    let one = LocalEngine::new(NonZeroUsize::new(1))?;
    let prepared = PreparedCircuit::with_input(&circuit, &())?;
    let keys = setup(&circuit, &one, &SetupOptions::new("bench"))?;
    let randomness = Randomness::seeded_not_zero_knowledge(1);
    let coordinator = Coordinator::new(&prepared, &keys, &one, 1)?;
    let worker = Worker::new(&prepared, &keys.types, Masking::Masked, WitnessCheck::Check);
    let round =
        ProveRound { memory: MemoryChallenges::new(Fr::from(u128::MAX), Fr::from(u128::MAX - 4)) };
    let key = keys.types.first().ok_or("no type")?;
    let sizes = OurSizes {
        rows: key.constraints(),
        committed: key.d_query()?.len(),
        domain: key.domain().size(),
        job: 37 + 32 * coordinator.prove_job(0, &randomness)?.values.len(),
    };
    then(sizes, &|| {
        let job = coordinator.prove_job(0, &randomness)?;
        let (committed, _) = worker.commit(job)?;
        std::hint::black_box(committed.prove(&round)?);
        Ok(())
    })
}
