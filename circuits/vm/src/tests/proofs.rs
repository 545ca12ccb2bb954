//! Whole proofs: their bytes depend on neither ranks nor checkpoints, and provers that cheat get none.

use super::assembler::*;
use super::attacks::{Changed, at, forged, last, lying};
use super::instructions::execution;
use crate::circuit::MachineCircuit;
use crate::run::{Run, run_with_checkpoints};
use crate::sizes::Sizes;
use crate::{Chip, Input, Isa};
use hekaton_circuit::{Circuit, PreparedCircuit};
use hekaton_core::distributed::{
    Endpoint, Executes, Hello, RankEngine, RootRole, Scheduling, Serve, serve,
};
use hekaton_core::mirage::ProvingKey;
use hekaton_core::protocol::coordinator::CoordinatorError;
use hekaton_core::{
    FamilyKey, LocalEngine, ProveError, ProveOptions, ProvenRun, ProverKeys, Randomness,
    SetupOptions, WitnessCheck, derive, prove, prove_prepared, setup_family, verify_with_test_keys,
};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex};

/// Keys of the machine, and the engine that makes and uses them.
struct Keys {
    engine: LocalEngine,
    family: FamilyKey,
    types: Vec<ProvingKey>,
}

/// The keys of all tests here: making them takes as long as some proofs.
static KEYS: LazyLock<Mutex<Keys>> = LazyLock::new(|| Mutex::new(Keys::new()));

impl Keys {
    fn new() -> Self {
        let engine = LocalEngine::new(None).unwrap();
        let template = MachineCircuit::of_family(Isa::Rv32im, Sizes::SMALL);
        let prepared = PreparedCircuit::new(&template).unwrap();
        let options = SetupOptions::new("vm").insecure_seed(1);
        let mut types = Vec::new();
        let keep = |key| {
            types.push(key);
            Ok::<(), Infallible>(())
        };
        let family = setup_family(&prepared, 256, &engine, &options, keep, |_| {}).unwrap();
        Self { engine, family, types }
    }

    /// Calls `then` with the keys of a circuit that has all types.
    fn with<R>(
        &mut self,
        execution: &MachineCircuit,
        then: impl FnOnce(&LocalEngine, &ProverKeys) -> R,
    ) -> R {
        let prepared = PreparedCircuit::new(execution).unwrap();
        let derived = derive(&self.family, &prepared, "{}", &self.engine).unwrap();
        let (types, (aggregation, verifying)) = (std::mem::take(&mut self.types), derived);
        let keys = ProverKeys { verifying, aggregation, types };
        let result = then(&self.engine, &keys);
        self.types = keys.types;
        result
    }
}

/// The circuit of a run with subcircuits of all types.
fn every_type(words: &[u32], input: &Input) -> MachineCircuit {
    let execution = execution(words, input);
    MachineCircuit { counts: execution.counts.clone().with_every_kind(), ..execution }
}

fn seeded() -> ProveOptions<'static> {
    ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(3))
}

/// A prover with a checkpoint each `spacing` cycles.
fn spaced(execution: &MachineCircuit, spacing: u64) -> impl Circuit<Input = Input> + use<> {
    Changed(execution.clone(), move |execution: &MachineCircuit, input: &Input, run: &mut Run| {
        let (program, most) = (&execution.program, execution.max_cycles);
        let mut again = run_with_checkpoints(program, input, most, spacing, usize::MAX).unwrap();
        again.zero_cells = std::mem::take(&mut run.zero_cells);
        *run = again;
    })
}

/// Proves on ranks, each with one prover and checkpoints of its own.
fn on_ranks<C: Circuit<Input = Input>>(
    keys: &ProverKeys,
    ranks: &[C],
    input: &Input,
    executes: Executes,
) -> ProvenRun {
    let pool = || Arc::new(LocalEngine::new(NonZeroUsize::new(1)).unwrap());
    let circuits: Vec<PreparedCircuit<'_>> =
        ranks.iter().map(|rank| PreparedCircuit::with_input(rank, input).unwrap()).collect();
    let mut ends = Endpoint::network(ranks.len()).into_iter();
    let root = ends.next().unwrap();
    std::thread::scope(|scope| {
        for (end, circuit) in ends.zip(&circuits[1..]) {
            scope.spawn(move || {
                let pool = pool();
                let hello = Hello::new(circuit, keys, 1, &pool).unwrap();
                let work = Serve {
                    circuit,
                    keys,
                    pool: &pool,
                    accelerators: None,
                    hello,
                    failed: &|_| {},
                };
                assert_eq!(serve(&end, &work), Ok(()));
            });
        }
        let (role, schedule) = (RootRole::Coordinates, Scheduling::Dynamic);
        let own = pool();
        let hello = Hello::new(&circuits[0], keys, 1, &own).unwrap();
        let engine = RankEngine::start(root, own, &hello, role, schedule).unwrap();
        let engine = engine.executes(executes);
        prove_prepared(&circuits[0], keys, &engine, &seeded()).unwrap()
    })
}

/// Adversarial test 50 for the machine: one seed, one proof, on threads and on ranks that replay for
/// themselves, or get their operations from rank 0, whatever the checkpoints.
#[test]
fn the_proof_depends_on_neither_ranks_nor_checkpoints() {
    let input = Input { public: vec![7], private: vec![1, 2, 3, 4, 5] };
    let mut words = vec![lui(5, 0x2000_0000), load(2, 6, 5, 0), lui(7, 0x1100_0000)];
    // 0x9000 turns would take too many subcircuits; these do for some checkpoints.
    words.extend([li(8, 60), store(0, 8, 7, 1), load(4, 9, 7, 1), r(0, 0, 6, 6, 9)]);
    words.extend([addi(8, 8, -1), branch(1, 8, 0, -16), lui(9, 0x3000_0000), store(2, 6, 9, 0)]);
    // A call, whose words each rank finds for itself.
    words.extend([addi(10, 7, 64), addi(11, 7, 128), li(17, 1001), ECALL]);
    words.extend(exit());
    let execution = every_type(&words, &input);
    KEYS.lock().unwrap().with(&execution, |engine, keys| {
        let expected = prove(&execution, &input, keys, engine, &seeded()).unwrap();
        let proof = expected.proof.as_bytes();
        assert_eq!(verify_with_test_keys(&keys.verifying, &expected.public_values, proof), Ok(()));
        let again = prove(&spaced(&execution, 37), &input, keys, engine, &seeded()).unwrap();
        assert!(again.proof.as_bytes() == proof);
        for executes in [Executes::Ranks, Executes::Root] {
            let ranks = [1 << 18, 50, 101].map(|spacing| spaced(&execution, spacing));
            let again = on_ranks(keys, &ranks, &input, executes);
            assert!(again.proof.as_bytes() == proof, "{executes:?}");
        }
    });
}

/// Provers that cheat to the end, one for each bus, the last one with another public value: each
/// subcircuit's proof verifies, and the whole does not.
#[test]
fn cheats_end_without_a_proof() {
    // One public word, so that there are subcircuits of all types.
    let input = Input { public: vec![9], private: Vec::new() };
    let code = |body: &[u32]| [body, &exit()].concat();
    let stale = code(&[li(5, 1), li(5, 7), addi(6, 5, 0)]);
    let stored = code(&[lui(5, 0x1100_0000), li(7, 9), store(2, 7, 5, 0), load(2, 6, 5, 0)]);
    type Cheat = (&'static str, Vec<u32>, fn(&mut Run));
    let cheats: [Cheat; 3] = [
        ("an instruction left out", stale, |run| {
            forged(run)[Chip::AddImm.index()].clear();
            last(run, 5, 10, 7);
            last(run, 6, 0, 0);
        }),
        ("a load of what was there before the store", stored, |run| {
            let op = at(run, 4);
            (op.word, op.word_gap) = (0, 3);
            last(run, 6, 18, 0);
        }),
        ("another exit code", code(&[li(10, 3)]), |run| run.exit.code = 4),
    ];
    let mut keys = KEYS.lock().unwrap();
    for (name, words, cheat) in cheats {
        let execution = every_type(&words, &input);
        let error = keys.with(&execution, |engine, keys| {
            let options = ProveOptions::new().witness_check(WitnessCheck::Skip);
            prove(&lying(execution.clone(), cheat), &input, keys, engine, &options).unwrap_err()
        });
        let is_it = matches!(error, ProveError::Coordinator(CoordinatorError::Buses));
        assert!(is_it, "{name}: {error}");
    }
}
