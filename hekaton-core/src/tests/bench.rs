//! The circuit of the adversarial tests, its keys, and a prover in which every step can be changed.

use crate::aggregation::block::{ProofVectors, Shared};
use crate::aggregation::blocks::LocalBlocks;
use crate::aggregation::prover::{Committing, Tamper};
use crate::keys::ProverKeys;
use crate::mirage::{self, Blinding, WitnessCheck};
use crate::pool::LocalEngine;
use crate::protocol::coordinator::padded_commitments;
use crate::protocol::executed::instance_id;
use crate::protocol::messages::{Commitment, ProofResponse};
use crate::protocol::{Secrets, SetupError, SetupOptions, setup, setup_wiring};
use crate::randomness::{Purpose, Randomness, Secret};
use crate::verifier::proof::{Field, fields};
use crate::verifier::transcript::{Merlin, Sponge};
use crate::verifier::verify::{Equation, VerifyError, examine, verify_with_test_keys};
use ark_ff::Field as _;
use hekaton_arith::{Fr, G1Point, G2Point, Group, fr_to_bytes};
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{
    Circuit, Layout, Masking, MemoryChallenges, PreparedCircuit, PrivateInput, SlotAccess,
};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

pub(crate) use hekaton_testing::{Root, Squares};

/// A point of each curve that is outside of its subgroup.
pub(crate) fn outside_the_subgroup() -> (G1Point, G2Point) {
    (outside(), outside())
}

fn outside<G: Group>() -> G {
    let at = |x: u8| {
        let mut code = vec![0; G::COMPRESSED];
        (code[0], code[G::COMPRESSED - 1]) = (0x80, x);
        G::on_curve_from_compressed(&code).ok().filter(|point| !point.is_in_group())
    };
    (1..=255).find_map(at).unwrap()
}

/// A circuit with its keys.
pub(crate) struct Bench<C> {
    pub(crate) circuit: C,
    pub(crate) keys: ProverKeys,
    pub(crate) layout: Layout,
    pub(crate) wiring: Wiring,
    pub(crate) engine: LocalEngine,
}

impl<C: Circuit> Bench<C> {
    pub(crate) fn new(circuit: C, zero_knowledge: bool) -> Self {
        let options = SetupOptions::new("test").insecure_seed(1).zero_knowledge(zero_knowledge);
        let engine = LocalEngine::new(None).unwrap();
        let keys = setup(&circuit, &engine, &options).unwrap();
        let layout = PreparedCircuit::new(&circuit).unwrap().layout().clone();
        let wiring = layout.wiring(Masking::new(zero_knowledge));
        Self { circuit, keys, layout, wiring, engine }
    }

    /// The circuit without an input.
    pub(crate) fn prepared(&self) -> PreparedCircuit<'_> {
        PreparedCircuit::new(&self.circuit).unwrap()
    }

    /// The circuit with an input.
    pub(crate) fn with_input<'a>(&'a self, input: &'a C::Input) -> PreparedCircuit<'a> {
        PreparedCircuit::with_input(&self.circuit, input).unwrap()
    }

    /// The same types under keys of another wiring, with the same trapdoors.
    pub(crate) fn with_wiring(&self, circuit: C, wiring: Wiring) -> Self {
        let options = SetupOptions::new("test").insecure_seed(1);
        let secrets = Secrets::draw(wiring.types.len(), Some(1)).unwrap();
        let prepared = self.prepared();
        let r1cs =
            |kind| Ok::<_, SetupError<Infallible>>(prepared.r1cs(kind, wiring.masking).unwrap());
        let (mut types, kinds) = (Vec::new(), prepared.layout().type_ids().map(r1cs));
        let mut keep = |key, _| {
            types.push(key);
            Ok(())
        };
        let (aggregation, verifying) =
            setup_wiring(&wiring, kinds, &secrets, &options, &mut keep, &mut |_| {}).unwrap();
        let keys = ProverKeys { verifying, aggregation, types };
        let engine = LocalEngine::new(None).unwrap();
        Self { circuit, keys, layout: self.layout.clone(), wiring, engine }
    }

    /// A private input that `Circuit::private_input` would not return.
    pub(crate) fn private(&self, private: &C::Private) -> PrivateInput {
        self.prepared().decode_private(&postcard::to_allocvec(private).unwrap()).unwrap()
    }

    pub(crate) fn padded(&self) -> usize {
        self.wiring.instances().next_power_of_two()
    }

    pub(crate) fn verify(&self, public: &[Fr], proof: &[u8]) -> Result<(), VerifyError> {
        verify_with_test_keys(&self.keys.verifying, public, proof)
    }
}

/// The bench of most tests: five subcircuits of two types, with a public input and output.
pub(crate) fn squares() -> Bench<Squares> {
    Bench::new(Squares::new(&[0, 1, 1, 0, 1]), true)
}

/// The secret of the masks of a [`Cheater`].
pub(crate) fn masks(randomness: &Randomness) -> Secret {
    randomness.of_masks(&[0; 32])
}

/// Any challenges.
pub(crate) fn some_challenges() -> MemoryChallenges {
    let [g, b, b_t, b_v] = [1, 2, 3, 4].map(|i| Fr::from(u128::MAX - 1_000 * i));
    MemoryChallenges { g, b, b_t, b_v }
}

/// A prover that runs the protocol step by step; all fields may be changed between steps.
pub(crate) struct Cheater<'b, C: Circuit> {
    pub(crate) bench: &'b Bench<C>,
    /// The code that synthesizes witnesses.
    pub(crate) circuit: PreparedCircuit<'b>,
    /// The values in the slots of each instance.
    pub(crate) values: Vec<Vec<Fr>>,
    /// The marked values of each instance.
    pub(crate) marked: Vec<Vec<Fr>>,
    /// The addresses and multiplicities that the prover uses in its witnesses.
    pub(crate) slots: Vec<Vec<SlotAccess>>,
    pub(crate) public: Vec<Fr>,
    pub(crate) private: Vec<PrivateInput>,
    /// The amounts to add to variables of instances, in [`with_marked`](Self::with_marked).
    pub(crate) shifted: Vec<(usize, usize, Fr)>,
    pub(crate) randomness: Randomness,
}

impl<'b, C: Circuit> Cheater<'b, C> {
    /// The honest execution.
    pub(crate) fn new(bench: &'b Bench<C>, input: &C::Input) -> Self {
        let randomness = Randomness::seeded_not_zero_knowledge(5);
        let circuit = bench.with_input(input);
        let execution = circuit.execute().unwrap();
        let masks = masks(&randomness);
        let mask = |i: u64| masks.scalar(Purpose::Mask, i);
        let slot_values = |i| match bench.wiring.masking {
            Masking::Masked => execution.values.masked_slots(&bench.layout, i, mask),
            Masking::Unmasked => execution.values.slots(&bench.layout, i),
        };
        let mut cheater = Self {
            bench,
            circuit: bench.prepared(),
            values: bench.layout.instance_ids().map(slot_values).collect(),
            marked: Vec::new(),
            slots: bench.wiring.by_instance().map(|(_, slots)| slots.to_vec()).collect(),
            public: execution.public(&bench.layout),
            private: bench
                .layout
                .instance_ids()
                .map(|i| execution.private_input(&bench.layout, i).unwrap())
                .collect(),
            shifted: Vec::new(),
            randomness,
        };
        // Honest ones do not depend on the challenges.
        cheater.marked = (0..cheater.values.len())
            .map(|i| cheater.marked_values(i, &some_challenges()))
            .collect();
        cheater
    }

    /// The marked values of an instance under these challenges.
    pub(crate) fn marked_values(&self, i: usize, memory: &MemoryChallenges) -> Vec<Fr> {
        let marked = self.bench.keys.types[self.kind(i)].layout().marked();
        match marked.is_empty() {
            true => Vec::new(),
            false => self.witness(i, memory)[marked].to_vec(),
        }
    }

    pub(crate) fn kind(&self, i: usize) -> usize {
        self.bench.wiring.type_of[i] as usize
    }

    pub(crate) fn blinding(&self, i: usize) -> Blinding {
        // The same for all keys and values, so that a change of those is the only change.
        let secret = self.randomness.of_instance(&[0; 32], i).of_committed(&[]);
        let scalar = |purpose| secret.scalar(purpose, 0);
        Blinding {
            commitment: scalar(Purpose::Commitment),
            additive: scalar(Purpose::ProofAdditive),
            multiplicative: scalar(Purpose::ProofMultiplicative),
        }
    }

    /// All commitments D, padded.
    pub(crate) fn commitments(&self) -> Vec<G1Point> {
        let responses: Vec<Commitment> = (0..self.values.len())
            .map(|i| {
                let key = &self.bench.keys.types[self.kind(i)];
                let committed = [&self.values[i][..], &self.marked[i]].concat();
                let sum = mirage::sum_of_committed(key, &committed).unwrap();
                let d = mirage::commit(key, &sum, self.blinding(i).commitment);
                Commitment { instance: i, d, mark: [0; 32] }
            })
            .collect();
        padded_commitments(&responses, self.bench.padded())
    }

    /// The full assignment of an instance, z in the order pub | com | e | aux.
    pub(crate) fn witness(&self, i: usize, memory: &MemoryChallenges) -> Vec<Fr> {
        let key = &self.bench.keys.types[self.kind(i)];
        let id = instance_id(i);
        let prefix = self.circuit.prefix(id, &self.slots[i], &self.values[i], memory).unwrap();
        let kind = self.bench.layout.type_ids().nth(self.kind(i)).unwrap();
        let masking = self.bench.wiring.masking;
        self.circuit.witness(kind, masking, &prefix, &self.private[i], key.variables()).unwrap()
    }

    /// The honest assignment of an instance with other marked values, and what the memory check computes
    /// from them: scaled values, inverses, and their sum.
    pub(crate) fn with_marked(
        &self,
        i: usize,
        memory: &MemoryChallenges,
        marked: &[Fr],
    ) -> Vec<Fr> {
        let key = &self.bench.keys.types[self.kind(i)];
        let layout = key.layout();
        let [a, b, c] = key.matrices().unwrap();
        let mut z = self.witness(i, memory);
        z[layout.marked()].copy_from_slice(marked);
        for (_, variable, amount) in self.shifted.iter().filter(|(instance, ..)| *instance == i) {
            z[*variable] += amount;
        }
        for (index, y) in layout.scaled().enumerate() {
            let row = layout.scaled_row(index);
            z[y] = a.row(row, &z) * b.row(row, &z);
        }
        for (index, u) in layout.inverses().enumerate() {
            let row = layout.fingerprint_row(index);
            z[u] = c.row(row, &z) * b.row(row, &z).inverse().unwrap();
        }
        z[layout.sum()] = z[layout.inverses()].iter().sum();
        z
    }

    /// The sum of the terms of the entries with a tag, over these assignments of all instances.
    pub(crate) fn sum_of_bus(&self, tag: u64, assignments: &[Vec<Fr>]) -> Fr {
        let mut sum = Fr::from(0u64);
        for (i, z) in assignments.iter().enumerate() {
            let key = &self.bench.keys.types[self.kind(i)];
            let layout = key.layout();
            let Some([b_t, _]) = layout.bus_challenges() else { continue };
            let [_, b, _] = key.matrices().unwrap();
            for (entry, u) in layout.inverses().skip(layout.slots()).enumerate() {
                let mut terms = b.terms(layout.entry_row(entry));
                if terms.any(|term| term == (Fr::from(tag), b_t)) {
                    sum += z[u];
                }
            }
        }
        sum
    }

    /// Completes the protocol with these marked values in place of the honest ones, committed to like
    /// them. Returns the proof, and the assignments of all instances.
    pub(crate) fn finish_marked(
        &mut self,
        changed: &[(usize, Vec<Fr>)],
    ) -> (Vec<u8>, Vec<Vec<Fr>>) {
        for (i, marked) in changed {
            self.marked[*i].clone_from(marked);
        }
        self.complete(Merlin::new())
    }

    /// Completes the protocol with the marked values as they are. Returns the proof, and the assignments
    /// of all instances.
    pub(crate) fn complete(&self, sponge: impl Sponge) -> (Vec<u8>, Vec<Vec<Fr>>) {
        let shared = self.shared();
        let committing = self.begin(&shared, sponge, &self.commitments());
        let memory = committing.memory();
        let assignments: Vec<Vec<Fr>> = (0..self.values.len())
            .map(|i| match self.marked[i].is_empty() {
                true => self.witness(i, &memory),
                false => self.with_marked(i, &memory, &self.marked[i]),
            })
            .collect();
        let proofs: Vec<_> =
            assignments.iter().enumerate().map(|(i, z)| self.prove_assignment(i, z)).collect();
        let proofs = proofs.iter().map(|response| (response.instance, &response.proof));
        let vectors = ProofVectors::new(proofs, self.bench.padded());
        (committing.finish(&vectors).unwrap().as_bytes().to_vec(), assignments)
    }

    /// The first row that an assignment violates.
    pub(crate) fn violated(&self, i: usize, z: &[Fr]) -> Option<usize> {
        self.violations(i, z).first().copied()
    }

    /// The rows that an assignment violates.
    pub(crate) fn violations(&self, i: usize, z: &[Fr]) -> Vec<usize> {
        let key = &self.bench.keys.types[self.kind(i)];
        let [a, b, c] = key.matrices().unwrap();
        let is_violated = |row: &usize| a.row(*row, z) * b.row(*row, z) != c.row(*row, z);
        (0..key.constraints()).filter(is_violated).collect()
    }

    /// Asserts that the row `x (1 - x) = 0` of a marked value is the only one that an assignment violates.
    #[track_caller]
    pub(crate) fn assert_no_bit(&self, i: usize, z: &[Fr], marked: usize) {
        let violations = self.violations(i, z);
        assert_eq!(violations.len(), 1, "{violations:?}");
        let key = &self.bench.keys.types[self.kind(i)];
        let [a, b, c] = key.matrices().unwrap();
        let (row, one, x) = (violations[0], Fr::from(1u64), key.layout().marked().start + marked);
        assert_eq!(a.terms(row).collect::<Vec<_>>(), [(one, x)]);
        let mut terms: Vec<_> = b.terms(row).collect();
        terms.sort_by_key(|(_, variable)| *variable);
        assert_eq!(terms, [(one, 0), (-one, x)]);
        assert_eq!(c.terms(row).count(), 0);
    }

    /// Proves an assignment without checking it.
    pub(crate) fn prove_assignment(&self, i: usize, z: &[Fr]) -> ProofResponse {
        let key = &self.bench.keys.types[self.kind(i)];
        ProofResponse {
            instance: i,
            proof: mirage::prove(
                key,
                z,
                &hekaton_arith::Fr::from(1u64),
                &self.blinding(i),
                WitnessCheck::Skip,
            )
            .unwrap(),
            mark: [0; 32],
        }
    }

    /// All proofs, padded.
    pub(crate) fn proofs(&self, memory: &MemoryChallenges) -> ProofVectors {
        let responses: Vec<_> = (0..self.values.len())
            .map(|i| self.prove_assignment(i, &self.witness(i, memory)))
            .collect();
        ProofVectors::new(
            responses.iter().map(|response| (response.instance, &response.proof)),
            self.bench.padded(),
        )
    }

    pub(crate) fn shared(&self) -> Shared<'_> {
        Shared::new(&self.bench.keys.aggregation, self.bench.keys.verifying.k)
    }

    /// Does the commit round with any sponge.
    pub(crate) fn begin<'s, S: Sponge>(
        &'s self,
        shared: &'s Shared<'s>,
        sponge: S,
        d: &[G1Point],
    ) -> Committing<'s, S> {
        let blocks = Box::new(LocalBlocks::all(shared, &self.bench.engine));
        Committing::new(shared, &self.bench.keys.verifying, sponge, &self.public, d, blocks)
            .unwrap()
    }

    /// Completes the protocol after the changes made so far, with `change` applied to the proofs
    /// before they are aggregated.
    pub(crate) fn finish_with(
        &self,
        change: impl FnOnce(&MemoryChallenges, &mut ProofVectors),
    ) -> Vec<u8> {
        let shared = self.shared();
        let committing = self.begin(&shared, Merlin::new(), &self.commitments());
        let memory = committing.memory();
        let mut vectors = self.proofs(&memory);
        change(&memory, &mut vectors);
        committing.finish(&vectors).unwrap().as_bytes().to_vec()
    }

    /// Completes the protocol honestly after the changes made so far.
    pub(crate) fn finish(&self) -> Vec<u8> {
        self.finish_with(|_, _| {})
    }

    /// Completes the protocol with a change to fields of the proof before the transcript absorbs
    /// them.
    pub(crate) fn finish_tampered(&self, tamper: Tamper) -> Vec<u8> {
        let shared = self.shared();
        let committing = self.begin(&shared, Merlin::new(), &self.commitments());
        let vectors = self.proofs(&committing.memory());
        committing.tampered(tamper).finish(&vectors).unwrap().as_bytes().to_vec()
    }

    /// Returns the equations that a proof fails in normal mode, and checks that the merged equation
    /// fails exactly when one of them does.
    pub(crate) fn failing(&self, proof: &[u8]) -> Vec<Equation> {
        failing(Merlin::new(), &self.bench.keys.verifying, &self.public, proof)
    }

    /// Asserts that the proof is refused in normal mode because of exactly these equations.
    #[track_caller]
    pub(crate) fn assert_fails(&self, proof: &[u8], equations: &[Equation]) {
        assert_eq!(self.failing(proof), equations);
        let verdict = self.bench.verify(&self.public, proof);
        assert_eq!(verdict, Err(VerifyError::Equations { failing: equations.to_vec() }));
    }
}

/// Returns the equations that fail, and checks that the merged equation fails exactly when one of
/// them does.
#[track_caller]
pub(crate) fn failing(
    sponge: impl Sponge,
    vk: &crate::VerifyingKey,
    public: &[Fr],
    proof: &[u8],
) -> Vec<Equation> {
    let verdict = examine(sponge, vk, public, proof, vk.instances).unwrap();
    let failing: Vec<Equation> =
        verdict.defects.iter().filter(|d| !d.1.is_identity()).map(|d| d.0).collect();
    assert_eq!(verdict.merged, failing.is_empty(), "the merged equation against {failing:?}");
    failing
}

/// Returns a proof with one field replaced.
pub(crate) fn with_field(
    bench: &Bench<impl Circuit>,
    proof: &[u8],
    field: Field,
    code: &[u8],
) -> Vec<u8> {
    let mut out = proof.to_vec();
    let (at, len) = place(bench, field);
    assert_eq!(code.len(), len);
    out[at..at + len].copy_from_slice(code);
    out
}

/// The bytes of a field of a proof.
pub(crate) fn field_of<'p>(bench: &Bench<impl Circuit>, proof: &'p [u8], field: Field) -> &'p [u8] {
    let (at, len) = place(bench, field);
    &proof[at..at + len]
}

/// Returns the offset and length of a field.
pub(crate) fn place(bench: &Bench<impl Circuit>, field: Field) -> (usize, usize) {
    let mut at = 42;
    for f in fields(bench.keys.verifying.rounds()) {
        if f == field {
            return (at, f.len());
        }
        at += f.len();
    }
    panic!("no field {field:?}");
}

/// The output of a [`Recording`] sponge.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Vec<u8>>>>);

/// A sponge that records what it squeezes.
pub(crate) struct Recording(Merlin, Log);

impl Recording {
    pub(crate) fn new() -> (Self, Log) {
        let log = Log::default();
        (Self(Merlin::new(), log.clone()), log)
    }
}

impl Sponge for Recording {
    fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
        self.0.absorb(label, bytes);
    }

    fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
        self.0.squeeze(label, out);
        self.1.0.lock().unwrap().push(out.to_vec());
    }
}

/// A sponge that repeats recorded challenges: the mode with frozen challenges.
pub(crate) struct Frozen {
    log: Vec<Vec<u8>>,
    at: usize,
}

impl Log {
    /// Returns a sponge with the challenges of the recorded run, whatever it absorbs.
    pub(crate) fn frozen(&self) -> Frozen {
        Frozen { log: self.0.lock().unwrap().clone(), at: 0 }
    }
}

impl Sponge for Frozen {
    fn absorb(&mut self, _: &'static str, _: &[u8]) {}

    fn squeeze(&mut self, _: &'static str, out: &mut [u8]) {
        out.copy_from_slice(&self.log[self.at]);
        self.at += 1;
    }
}

/// A sponge that returns chosen challenges g and b, to hit a pole.
pub(crate) struct Poled {
    inner: Merlin,
    scripted: Vec<Fr>,
}

impl Poled {
    pub(crate) fn new(memory: MemoryChallenges) -> Self {
        Self { inner: Merlin::new(), scripted: vec![memory.b, memory.g] }
    }
}

impl Sponge for Poled {
    fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
        self.inner.absorb(label, bytes);
    }

    fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
        self.inner.squeeze(label, out);
        if let Some(x) = self.scripted.pop() {
            out.fill(0);
            out[..32].copy_from_slice(&fr_to_bytes(&x));
        }
    }
}

/// Records the challenges that a verifier draws for a proof.
pub(crate) fn record(bench: &Bench<impl Circuit>, public: &[Fr], proof: &[u8]) -> Log {
    let (sponge, log) = Recording::new();
    let vk = &bench.keys.verifying;
    examine(sponge, vk, public, proof, vk.instances).unwrap();
    log
}
