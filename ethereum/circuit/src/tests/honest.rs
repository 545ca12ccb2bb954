//! Witnesses that are accepted, and the cost of the circuit.

use super::state::{Account, slot, string, witness};
use crate::assignment::Assignment;
use crate::blocks::Hashes;
use crate::chain::{Chain, StringKind, Tag};
use crate::circuit::{Plan, Private, Sponge, StateWitness};
use crate::code::SLOTS as STATE;
use crate::error::WitnessError;
use crate::sample::Strings;
use crate::sample::sample;
use crate::sizes::{Counts, Sizes};
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::Masking;
use hekaton_circuit::named::{NamedCircuit, ParameterMap};
use hekaton_circuit::{
    CheckOptions, CheckReport, Circuit, CircuitError, Fr, InstanceId, InstanceVerdicts,
    LayoutBuilder, LayoutError, PreparedCircuit, Subcircuit, WireId, WireValues, check, check_with,
    count,
};
use hekaton_witness_format::{EncodedWitness, keccak};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(super) const ONE_EACH: Counts = Counts { branches: 1, leaves: 1, codes: 1, mixed: 1 };

/// A prover that changes the assignment that it proves, and may leave out the hashing.
pub(super) struct Changed<F> {
    circuit: StateWitness,
    change: F,
    hashes: Hashes,
    /// `true` if the wires keep the values that they had before the change, W and N among them.
    pub(super) keeps_wires: bool,
    /// The state that the first code begins with: the prover's choice, in a layout that lets it choose.
    pub(super) start: Option<Sponge>,
}

impl<F> Changed<F> {
    pub(super) fn new(circuit: StateWitness, change: F, hashes: Hashes) -> Self {
        Self { circuit, change, hashes, keeps_wires: false, start: None }
    }
}

impl<F: Fn(&mut Assignment) + Sync + 'static> Circuit for Changed<F> {
    type Input = EncodedWitness;
    type Plan = (Plan, Vec<WireId>);
    type Trace = Assignment;
    type Private = Private;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Self::Plan, LayoutError> {
        if self.start.is_none() {
            return Ok((self.circuit.layout(layout)?, Vec::new()));
        }
        let zero = layout.constant(Fr::from(0u64));
        let start: [WireId; STATE] =
            std::array::from_fn(|slot| layout.public_input("start", slot as u64));
        Ok((self.circuit.plan(layout, zero, &start)?, start.to_vec()))
    }

    fn execute(
        &self,
        (plan, start): &Self::Plan,
        witness: &EncodedWitness,
        values: &mut WireValues,
    ) -> Result<Assignment, CircuitError> {
        let honest = Assignment::new(&witness.witness())?;
        let mut assignment = honest.clone();
        (self.change)(&mut assignment);
        let published = if self.keeps_wires { &honest } else { &assignment };
        self.circuit.publish(plan, published, values)?;
        for (wire, value) in start.iter().zip(self.start.iter().flat_map(Sponge::values)) {
            values.set(*wire, value);
        }
        Ok(assignment)
    }

    fn private_input(
        &self,
        (plan, _): &Self::Plan,
        witness: &EncodedWitness,
        assignment: &Assignment,
        instance: InstanceId,
    ) -> Result<Private, CircuitError> {
        self.circuit.private_input(plan, witness, assignment, instance)
    }

    fn synthesize(
        &self,
        (plan, _): &Self::Plan,
        subcircuit: &Subcircuit,
        private: Option<&Private>,
    ) -> Result<(), SynthesisError> {
        if plan.is_unused(subcircuit.kind()) {
            // Proving it would take most of the time of a test.
            let one: FpVar<Fr> = FpVar::one();
            return subcircuit.slots().iter().try_for_each(|slot| slot.mul_equals(&one, slot));
        }
        self.circuit.build(plan, subcircuit, private, self.hashes)
    }
}

/// Assigns the strings of a witness.
pub(super) fn assignment_of(witness: &Strings) -> Result<Assignment, WitnessError> {
    Assignment::new(&witness.encode().witness())
}

/// Returns a circuit for a witness, with room for one more branch and one more leaf.
pub(super) fn circuit_of(witness: &Strings) -> StateWitness {
    let sizes = Sizes::SMALL;
    let Counts { branches, leaves, codes, mixed } = assignment_of(witness).unwrap().counts(sizes);
    let counts = Counts { branches: branches + 1, leaves: leaves + 1, codes, mixed };
    StateWitness { sizes, counts }
}

/// Returns the report of the checks on a prover that changes an assignment, without the hashing.
pub(super) fn changed(
    witness: &Strings,
    change: impl Fn(&mut Assignment) + Sync + 'static,
) -> CheckReport {
    let circuit = Changed::new(circuit_of(witness), change, Hashes::Trusted);
    check(&circuit, &witness.encode(), |_, _| {}).unwrap()
}

pub(super) fn is_accepted(report: &CheckReport) -> bool {
    report.violations.is_empty() && report.unbalanced.is_empty()
}

/// Values that are not committed follow from those that are; there are no private inputs.
fn follows(report: &CheckReport) {
    for found in &report.unique {
        let InstanceVerdicts { kind, private_inputs, verdicts, .. } = found;
        let counts = (verdicts.free_counts(), verdicts.undecided_counts());
        let ([free_outputs, free], [undecided_outputs, undecided]) = counts;
        assert_eq!((*private_inputs, free_outputs), (0, 0), "{kind}");
        match &kind[..] {
            // There is no such node: what nobody reads is free.
            "mixed" => assert_eq!([undecided_outputs, undecided], [0, 0]),
            // Where a string ends, and what follows from that, is not decided. No second witness is found.
            "header" => assert_eq!([free, undecided_outputs], [0, 0]),
            "leaves" => assert_eq!(free, 0),
            kind => assert_eq!([free, undecided_outputs, undecided], [0; 3], "{kind}"),
        }
    }
    assert!(["branches", "codes"].iter().all(|kind| report.unique.iter().any(|f| f.kind == *kind)));
}

#[test]
fn the_sample_is_accepted() {
    let circuit = StateWitness { sizes: Sizes::SMALL, counts: ONE_EACH };
    let witness = sample();
    let encoded = witness.encode();
    let prepared = PreparedCircuit::with_input(&circuit, &encoded).unwrap();
    let options = CheckOptions::new().unique(true).committed_given(true);
    let report = check_with(&prepared, &options, &mut |_, _| {}).unwrap();
    follows(&report);
    let found = (&report.violations, &report.unbalanced, &report.notices);
    assert_eq!(format!("{found:?}"), "([], [], [])");
    let mut chain = Chain::default();
    chain.add_string(StringKind::Branch, Tag::Account, &witness.state[0]);
    chain.add_string(StringKind::Leaf, Tag::Account, &witness.state[1]);
    chain.add_string(StringKind::Leaf, Tag::Account, &witness.state[2]);
    chain.add_string(StringKind::Code, Tag::Code, &witness.codes[0]);
    assert_eq!(report.public_values[2..], [Fr::from(4u64), chain.digest]);
    let shown = StateWitness::show(&report.public_values).unwrap();
    assert!(shown.starts_with(&hex::encode(keccak(&witness.headers[0]))), "{shown}");
    assert_eq!(StateWitness::read(&shown).unwrap().unwrap(), report.public_values);
    for wrong in [
        "",
        "00:1:00",
        &shown.replacen(":4:", ":+4:", 1),
        &format!("{shown}:1"),
        &shown.replace(':', ";"),
    ] {
        assert!(StateWitness::read(wrong).unwrap().is_err());
    }
}

/// Returns a state with everything: large codes, extensions, small nodes inside others, words of all lengths.
fn varied(random: &mut ChaCha8Rng) -> Strings {
    let mut accounts = Vec::new();
    for number in 0..random.gen_range(1..12) {
        let mut account = Account::new();
        account.nonce = match random.gen_range(0..4) {
            0 => 0,
            1 => random.gen_range(0..300),
            _ => random.r#gen(),
        };
        account.balance = (0..random.gen_range(0..33)).map(|_| random.gen_range(1..=255)).collect();
        if random.gen_range(0..2) == 0 {
            let length =
                *[1, 135, 136, 137, 271, 272, 300, 700].get(random.gen_range(0..8)).unwrap();
            account.code = (0..length).map(|_| random.r#gen()).collect();
        }
        // Keys with the same beginning make extensions, and deep leaves, which are small.
        let shared = random.gen_range(0..26);
        for at in 0..random.gen_range(0..6) {
            let mut key = slot(1_000 * number + at);
            if at % 2 == 1 {
                let before = slot(1_000 * number + at - 1);
                key[..shared].copy_from_slice(&before[..shared]);
            }
            let word: Vec<u8> =
                (0..random.gen_range(1..33)).map(|_| random.gen_range(1..=255)).collect();
            account.storage.insert(key, string(&word));
        }
        let mut key = slot(number);
        if number % 3 == 2 {
            let before = slot(number - 1);
            key[..shared / 4].copy_from_slice(&before[..shared / 4]);
        }
        accounts.push((key, account));
    }
    witness(&accounts)
}

/// All nodes of 1,000 random states, whose tries `alloy-trie` makes, are reached, and their parts are where the circuit looks for them.
#[test]
fn random_tries_are_accepted() {
    let mut seen = [0; 5];
    for seed in 0..250 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let witness = varied(&mut random);
        let assignment = assignment_of(&witness).unwrap();
        let counts = [
            assignment.branches.len(),
            assignment.leaves.len(),
            assignment.codes.len(),
            assignment.mixed_branches.len(),
            assignment.mixed_leaves.len(),
        ];
        seen.iter_mut().zip(counts).for_each(|(seen, count)| *seen += count);
        let strings = counts[0] + counts[1] + counts[3] + counts[4];
        assert!(strings >= witness.state.len(), "{seed}");
        if seed < 8 {
            let report = changed(&witness, |_| {});
            assert!(is_accepted(&report), "{seed}: {report:?}");
        }
    }
    assert!(seen.iter().all(|seen| *seen > 25), "{seen:?}");
}

/// Two storage keys whose hashes share 8 nibbles: two leaves of 31 bytes inside a branch. Anyone can make them by one transaction.
#[test]
fn small_leaves_are_accepted() {
    let mut account = Account::new();
    account.storage = [40_364, 105_566].map(|number| (slot(number), string(&[1]))).into();
    let witness = witness(&[(slot(0), account)]);
    let assignment = assignment_of(&witness).unwrap();
    assert_eq!(assignment.mixed_branches.len(), 1);
    assert!(is_accepted(&changed(&witness, |_| {})));
}

#[test]
fn the_largest_and_the_smallest_are_accepted() {
    // A leaf of 148 bytes at the root, without a code.
    let mut account = Account::new();
    (account.nonce, account.balance) = (u64::MAX, vec![0xff; 32]);
    let largest = witness(&[(slot(0), account)]);
    assert_eq!(largest.state[0].len(), 148);
    assert!(is_accepted(&changed(&largest, |_| {})));
    // Nothing at all.
    let empty = witness(&[]);
    let report = changed(&empty, |_| {});
    assert!(is_accepted(&report));
    assert_eq!(report.public_values[2..], [Fr::from(0u64); 2]);
    // Two accounts that differ in the last nibble: leaves with a path of one byte, under an extension.
    let (first, mut second) = (slot(1), slot(1));
    second[31] ^= 1;
    let deep =
        witness(&[(first, Account::new()), (second, Account { nonce: 2, ..Account::new() })]);
    let short = deep.state.iter().filter(|node| node.len() == 72 + 2 + 1).count();
    assert_eq!((deep.state.len(), short), (4, 2));
    assert!(is_accepted(&changed(&deep, |_| {})));
}

#[test]
fn wrong_witnesses_are_refused_with_reasons() {
    let good = sample();
    let with = |change: &dyn Fn(&mut Strings)| {
        let mut witness = good.clone();
        change(&mut witness);
        assignment_of(&witness).unwrap_err().to_string()
    };
    for (change, why) in [
        ((&|it: &mut Strings| it.headers.clear()) as &dyn Fn(&mut Strings), "no header"),
        (&|it| it.headers[0][91] ^= 1, "state root is missing"),
        (&|it| it.headers[0][90] = 0xa1, "last header"),
        (&|it| it.headers[0].truncate(100), "last header"),
        (&|it| it.headers[0].extend([0; 900]), "last header"),
        (&|it| it.state[2][20] ^= 1, "node 2"),
        (&|it| it.state.push(vec![0xc0]), "node 3"),
        (&|it| it.codes.push(vec![1]), "code 1"),
    ] {
        let found = with(change);
        assert!(found.contains(why), "{found}, and not {why}");
    }
    // Strings that occur twice or are empty, as some nodes send them, are left out.
    let mut more = good.clone();
    more.state.extend([vec![0x80], good.state[1].clone()]);
    more.codes.extend([vec![], good.codes[0].clone()]);
    let [same, found] = [&good, &more].map(|it| changed(it, |_| {}).public_values);
    assert_eq!(same, found);
    // More than the circuit has room for.
    let counts = Counts { leaves: 0, ..ONE_EACH };
    let circuit = StateWitness { sizes: Sizes::SMALL, counts };
    let error = check(&circuit, &good.encode(), |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("1 subcircuits of type 'leaves', and the circuit has 0"), "{error}");
}

/// Any file is read or refused, and each string that is read has a place for everything.
#[test]
fn noise_is_refused() {
    let mut accepted = 0;
    for seed in 0..3_000 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut witness = if seed % 3 == 0 { sample() } else { varied(&mut random) };
        let lists = [&mut witness.state, &mut witness.codes, &mut witness.headers];
        for list in lists {
            let at = random.gen_range(0..list.len().max(1));
            let Some(string) = list.get_mut(at) else { continue };
            match random.gen_range(0..6) {
                0 => string.truncate(random.gen_range(0..=string.len())),
                1 => string.extend(vec![random.r#gen::<u8>(); random.gen_range(0..600)]),
                2..=4 => {
                    let byte = random.gen_range(0..string.len().max(1));
                    if let Some(byte) = string.get_mut(byte) {
                        *byte = random.r#gen();
                    }
                }
                _ => {}
            }
        }
        // A root that is one again, so that its node is read.
        if let (Some(root), true) = (witness.state.first(), random.gen_bool(0.5)) {
            witness.headers = vec![crate::sample::header_of(&keccak(root))];
        }
        accepted += usize::from(assignment_of(&witness).is_ok());
        let mut bytes = witness.encode().bytes().to_vec();
        let at = random.gen_range(0..bytes.len());
        bytes[at] = random.r#gen();
        if let Ok(witness) = EncodedWitness::new(bytes) {
            let _ = Assignment::new(&witness.witness());
        }
    }
    assert!((1..1_500).contains(&accepted), "{accepted}");
}

#[test]
fn parameters_come_from_the_witness() {
    let mut parameters = ParameterMap::new();
    let input = hekaton_circuit::named::InputFile::from_bytes(sample().encode().bytes().to_vec());
    StateWitness::fit(&mut parameters, &input).unwrap();
    let numbers: Vec<u64> = ["branches", "leaves", "codes", "mixed"]
        .iter()
        .map(|name| parameters[*name].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 1, 1, 0]);
    let family = StateWitness::family(&ParameterMap::new(), 100_000).unwrap().unwrap();
    assert_eq!(family.circuit.counts, ONE_EACH);
}

/// The numbers of constraints are pinned, so that a change of them is noticed.
#[test]
fn rows_are_these() {
    let circuit = StateWitness { sizes: Sizes::LARGE, counts: ONE_EACH };
    let rows: Vec<(String, usize)> = count(&circuit)
        .unwrap()
        .into_iter()
        .filter(|size| !size.name.starts_with("table"))
        .map(|size| (size.name, size.with_masks))
        .collect();
    let wanted = [
        ("branches", 254_037),
        ("leaves", 249_669),
        ("codes", 253_566),
        ("mixed", 240_032),
        ("header", 91_307),
    ];
    assert_eq!(rows, wanted.map(|(name, rows)| (name.to_owned(), rows)));
}

/// The matrices of all types are pinned, so that keys fit them: a change of any coefficient changes a digest.
#[test]
fn constraints_are_these() {
    let digests = |sizes: Sizes| -> Vec<String> {
        let circuit = StateWitness { sizes, counts: ONE_EACH };
        let prepared = PreparedCircuit::new(&circuit).unwrap();
        let layout = prepared.layout();
        let digest = |kind| {
            let r1cs = prepared.r1cs(kind, Masking::Unmasked).unwrap();
            format!("{} {}", r1cs.name, hex::encode(&r1cs.digest()[..8]))
        };
        layout.type_ids().map(digest).filter(|it| !it.starts_with("table")).collect()
    };
    assert_eq!(
        digests(Sizes::SMALL),
        [
            "branches 6e64133ae8e33b1c",
            "leaves 91943a4c6e2c22cd",
            "codes 3e7beca26dd41e94",
            "mixed 31403923154cc686",
            "header 918a4f739a9019ce",
        ]
    );
    assert_eq!(
        digests(Sizes::LARGE),
        [
            "branches 203ab60dd3bcad2d",
            "leaves e36dc9d87340e38a",
            "codes 226a2894e7c1fc3c",
            "mixed 4367e1a1ddf973a2",
            "header b839c2c5b2812460",
        ]
    );
}
