//! Adversarial tests of buses and marked values (spec: adversarial-tests#buses): the entries of all
//! subcircuits cancel, what is in them is committed to before the challenges, and setup refuses types
//! in which it is not.

use super::bench::{Bench, Cheater, failing, record, some_challenges};
use crate::mirage::{TypeError, check_type_with};
use crate::pool::LocalEngine;
use crate::protocol::coordinator::{Coordinator, CoordinatorError};
use crate::protocol::messages::{Commitment, Job, ProveRound};
use crate::protocol::worker::{Worker, WorkerError, blinding};
use crate::protocol::{ProveError, ProveOptions, SetupError, SetupOptions, prove, setup};
use crate::randomness::Randomness;
use crate::verifier::VerifyingKey;
use crate::verifier::proof::ProofError;
use crate::verifier::transcript::{Merlin, Sponge};
use crate::verifier::verify::Equation::{T, Z};
use crate::verifier::verify::VerifyError;
use crate::{DeriveError, WitnessCheck, derive, setup_family};
use ark_ff::{Field, Zero};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::{Fr, Group, fr_to_bytes};
use hekaton_circuit::prover::{BusShape, Matrices, VariableLayout};
use hekaton_circuit::{
    BusId, CheckError, Closures, Masking, MemoryChallenges, NotDeterministic, PreparedCircuit,
    R1cs, Subcircuit, SynthesizeError, check,
};
use hekaton_testing::{Shop, Shopping};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::num::NonZeroUsize;

const TILLS: usize = 3;
/// The instance of the list of prices.
const LIST: usize = 2 * TILLS;

fn shop() -> Bench<Shop> {
    Bench::new(Shop::new(TILLS), true)
}

fn shopping() -> Shopping {
    Shopping::new(TILLS)
}

/// The private input of an instance.
fn of(bench: &Bench<Shop>, instance: usize) -> Vec<u64> {
    let input = shopping();
    let circuit = bench.with_input(&input);
    let execution = circuit.execute().unwrap();
    let id = bench.layout.instance_ids().nth(instance).unwrap();
    let private = execution.private_input(&bench.layout, id).unwrap();
    postcard::from_bytes(&circuit.encode_private(&private).unwrap()).unwrap()
}

/// A prover that uses another private input in an instance, with whatever follows from it.
fn lie(cheater: &mut Cheater<'_, Shop>, instance: usize, change: impl FnOnce(&mut Vec<u64>)) {
    let mut private = of(cheater.bench, instance);
    change(&mut private);
    cheater.private[instance] = cheater.bench.private(&private);
    // What the instance publishes follows, too.
    let output = match (instance, instance % 2) {
        (LIST, _) => None,
        (_, 0) => Some(private[0] + private[1]),
        _ => Some(private[1] + 2 * private[3] + private[5]),
    };
    if let Some(output) = output {
        cheater.values[instance][0] = Fr::from(output);
        cheater.public[instance] = Fr::from(output);
    }
    cheater.marked[instance] = cheater.marked_values(instance, &some_challenges());
}

fn cheater(bench: &Bench<Shop>) -> Cheater<'_, Shop> {
    Cheater::new(bench, &shopping())
}

#[test]
fn honest_proofs_are_accepted() {
    for zero_knowledge in [true, false] {
        for tills in [1, 2, 4] {
            let bench = Bench::new(Shop::new(tills), zero_knowledge);
            let input = Shopping::new(tills);
            let cheater = Cheater::new(&bench, &input);
            assert_eq!(cheater.failing(&cheater.finish()), []);
            let prove = |threads: usize, seed: u64| {
                let engine = LocalEngine::new(NonZeroUsize::new(threads)).unwrap();
                let randomness = Randomness::seeded_not_zero_knowledge(seed);
                let options = ProveOptions::new().randomness(randomness);
                prove(&bench.circuit, &input, &bench.keys, &engine, &options).unwrap()
            };
            let run = prove(1, 4);
            assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
            assert_eq!(run.public_values, cheater.public);
            assert_eq!(run.proof.as_bytes(), prove(2, 4).proof.as_bytes());
            assert_ne!(run.proof.as_bytes(), prove(2, 5).proof.as_bytes());
        }
    }
    let report = check(&Shop::new(TILLS), &shopping(), |_, _| {}).unwrap();
    assert_eq!((report.violated, report.unbalanced), (0, vec![]));
}

/// The variables and rows of the types are as the specification counts them.
#[test]
fn types_have_the_variables_of_their_entries() {
    let bench = shop();
    let shape = |kind: usize| bench.keys.types[kind].layout().shape();
    let counts = |parameters, pairs, marked, entries, scaled| BusShape {
        buses: true,
        parameters,
        pairs,
        marked,
        entries,
        scaled,
    };
    assert_eq!(shape(0), counts(1, 0, 2, 2, 2));
    assert_eq!(shape(1), counts(0, 0, 7, 3, 3));
    // The values of pairs are preprocessed, so the list needs one row for each.
    assert_eq!(shape(2), counts(0, 4, 4, 4, 0));
    let rows = |kind: usize| bench.keys.types[kind].constraints();
    // Row 0, slot and masks, entries with values, and the author's.
    assert_eq!([rows(0), rows(1), rows(2)], [1 + 3 + 2 + 2 + 1, 1 + 3 + 3 + 3 + 4, 1 + 2 + 4]);
}

/// A till takes a value that no shelf gave, or under another number; or the same one twice. Guards:
/// the entries in the sum, and so in Z.
#[test]
fn taken_values_are_given_ones() {
    let bench = shop();
    let changes: [fn(&mut Vec<u64>); 4] = [
        |till| till[1] += 1,
        |till| till[0] += 1,
        |till| (till[2], till[3]) = (till[0], till[1]),
        // The till is closed, and uses the value all the same.
        |till| till[6] = 0,
    ];
    for change in changes {
        let mut cheater = cheater(&bench);
        lie(&mut cheater, 1, change);
        cheater.assert_fails(&cheater.finish(), &[Z]);
    }
    // Two changes that cancel: tills exchange what they take.
    let mut cheater = cheater(&bench);
    let [one, other] = [of(&bench, 1), of(&bench, 3)];
    lie(&mut cheater, 1, |till| till[..4].copy_from_slice(&other[..4]));
    lie(&mut cheater, 3, |till| till[..4].copy_from_slice(&one[..4]));
    assert_eq!(cheater.failing(&cheater.finish()), []);
}

/// Another price, another article, another multiplicity. Guards: pairs in the key, multiplicities in
/// D.
#[test]
fn prices_are_those_of_the_list() {
    let bench = shop();
    for change in [|till: &mut Vec<u64>| till[5] -= 1, |till: &mut Vec<u64>| till[4] += 1] {
        let mut cheater = cheater(&bench);
        lie(&mut cheater, 1, change);
        cheater.assert_fails(&cheater.finish(), &[Z]);
    }
    for article in 0..4 {
        let mut cheater = cheater(&bench);
        lie(&mut cheater, LIST, |list| list[article] += 1);
        cheater.assert_fails(&cheater.finish(), &[Z]);
    }
    // An article that no row has.
    let mut cheater = cheater(&bench);
    lie(&mut cheater, 1, |till| till[4] = 9);
    cheater.assert_fails(&cheater.finish(), &[Z]);
}

/// A value and its number with the entries of another bus: prices taken from the shelves. Guards: the
/// tag.
#[test]
fn buses_are_apart() {
    let bench = shop();
    // The last till pays what a value of the shelves is, under the number of an article; the value
    // that it should have taken is the price.
    let (last, values) = (2 * TILLS - 1, shopping().values);
    let input = shopping();
    let article = input.articles[TILLS - 1];
    assert!(article < 2 * TILLS as u64);
    let swapped = |cheater: &mut Cheater<'_, Shop>| {
        let mut price = 0;
        lie(cheater, last, |till| {
            price = till[5];
            // Take (article, price) from the goods, and (number, value) from the prices.
            let taken = [till[0], till[1]];
            (till[0], till[1]) = (till[4], price);
            (till[4], till[5]) = (taken[0], taken[1]);
        });
        assert!(values.contains(&of(cheater.bench, last)[1]));
    };
    let mut cheater = cheater(&bench);
    swapped(&mut cheater);
    cheater.assert_fails(&cheater.finish(), &[Z]);
    // Control: with the challenge b_T = 0, all tags are the same one.
    let shared = cheater.shared();
    let committing = cheater.begin(&shared, Chosen::new(2), &cheater.commitments());
    let memory = committing.memory();
    assert!(memory.b_t.is_zero() && !memory.b_v.is_zero());
    let proof = committing.finish(&cheater.proofs(&memory)).unwrap();
    let vk = &bench.keys.verifying;
    assert_eq!(failing(Chosen::new(2), vk, &cheater.public, proof.as_bytes()), []);
}

/// A till takes under the right number another till's value. Guards: the value in the fingerprint.
#[test]
fn values_belong_to_their_keys() {
    let bench = shop();
    let other = of(&bench, 3);
    let mut cheater = cheater(&bench);
    let mine = of(&bench, 1);
    lie(&mut cheater, 1, |till| till[1] = other[1]);
    lie(&mut cheater, 3, |till| till[1] = mine[1]);
    cheater.assert_fails(&cheater.finish(), &[Z]);
    // Control: with the challenge b_V = 0, values are in no fingerprint.
    let shared = cheater.shared();
    let committing = cheater.begin(&shared, Chosen::new(3), &cheater.commitments());
    let memory = committing.memory();
    assert!(memory.b_v.is_zero() && !memory.b_t.is_zero());
    let proof = committing.finish(&cheater.proofs(&memory)).unwrap();
    let vk = &bench.keys.verifying;
    assert_eq!(failing(Chosen::new(3), vk, &cheater.public, proof.as_bytes()), []);
}

/// A sponge whose challenge at one place is zero.
struct Chosen(Merlin, usize);

impl Chosen {
    fn new(place: usize) -> Self {
        Self(Merlin::new(), place)
    }
}

impl Sponge for Chosen {
    fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
        self.0.absorb(label, bytes);
    }

    fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
        self.0.squeeze(label, out);
        if self.1 == 0 {
            out.fill(0);
        }
        self.1 = self.1.wrapping_sub(1);
    }
}

/// Adversarial test 20: a multiplicity of the list is chosen after the challenges, so that it repairs
/// the sum of a lie. Guards: marked values are in D.
#[test]
fn a20_multiplicity_changed_after_the_challenge() {
    let bench = shop();
    let mut cheater = cheater(&bench);
    lie(&mut cheater, 1, |till| till[5] += 100);
    let public = cheater.public.clone();
    let key = &bench.keys.types[2];
    let layout = key.layout();
    // What repairs the sum, given the challenges.
    let repaired = |cheater: &Cheater<'_, Shop>, memory: &MemoryChallenges| {
        let vectors = cheater.proofs(memory);
        let sum: Fr = vectors.e.iter().sum();
        let vk = &bench.keys.verifying;
        let missing =
            -(sum + crate::verifier::verify::public_sum(vk, &cheater.public, memory).unwrap());
        let mut z = cheater.witness(LIST, memory);
        // u = mu / F of the first entry, so mu grows by the missing term times F.
        let u = layout.inverses().start + layout.slots();
        let fingerprint = key.matrices().unwrap()[1].row(layout.entry_row(0), &z);
        z[layout.marked().start] += missing * fingerprint;
        z[u] += missing;
        z[layout.sum()] += missing;
        let response = cheater.prove_assignment(LIST, &z);
        let mut vectors = vectors;
        let proof = response.proof;
        (vectors.a[LIST], vectors.b[LIST], vectors.c[LIST], vectors.e[LIST]) =
            (proof.a, proof.b, proof.c, proof.e);
        (vectors, z[layout.marked()].to_vec())
    };
    let shared = cheater.shared();
    let committing = cheater.begin(&shared, Merlin::new(), &cheater.commitments());
    let (vectors, marked) = repaired(&cheater, &committing.memory());
    let proof = committing.finish(&vectors).unwrap().as_bytes().to_vec();
    cheater.assert_fails(&proof, &[Z]);
    // Control: with frozen challenges, a commitment to the new multiplicity is accepted.
    let log = record(&bench, &public, &proof);
    drop(shared);
    cheater.marked[LIST] = marked;
    let shared = cheater.shared();
    let committing = cheater.begin(&shared, log.frozen(), &cheater.commitments());
    let (vectors, _) = repaired(&cheater, &committing.memory());
    let proof = committing.finish(&vectors).unwrap();
    assert_eq!(failing(log.frozen(), &bench.keys.verifying, &public, proof.as_bytes()), []);
}

/// Adversarial test 9 for marked values: one is changed after the challenges, D is kept. Guards: D is
/// the commitment in the Mirage equation.
#[test]
fn a09_marked_value_changed_after_the_challenges() {
    let bench = shop();
    let mut cheater = cheater(&bench);
    let committed = cheater.marked.clone();
    lie(&mut cheater, 1, |till| (till[0], till[1]) = (till[2], till[3]));
    cheater.marked = committed;
    cheater.assert_fails(&cheater.finish(), &[Z]);
}

/// S without its parts of b_T or b_V, or with those of another instance. Guards: the commitments to ST
/// and SV.
#[test]
fn public_sums_have_the_parts_of_buses() {
    let bench = shop();
    for section in ["stag", "sv"] {
        let mut other = shop();
        let points: Vec<hekaton_arith::G1Point> =
            other.keys.aggregation.sections().get(section).unwrap().to_vec();
        let mut turned = points.clone();
        turned.rotate_left(1);
        other.keys.aggregation.sections_mut().replace(section, turned);
        let cheater = cheater(&other);
        let failing = cheater.failing(&cheater.finish());
        assert!(failing.contains(&T) && failing.contains(&Z), "{section}: {failing:?}");
    }
    // A verifying key with one changed commitment has another digest.
    let vk = &bench.keys.verifying;
    let [tag, value] = **vk.buses.as_ref().unwrap();
    let proof = cheater(&bench).finish();
    for buses in [Some([value, tag]), Some([tag.add(&value), value]), None] {
        let buses = buses.map(Box::new);
        let other = VerifyingKey { buses, ..vk.clone() };
        assert_ne!(other.digest(), vk.digest());
        let verdict =
            crate::verifier::verify::verify_with_test_keys(&other, &cheater(&bench).public, &proof);
        assert!(matches!(verdict, Err(VerifyError::Proof(_))), "{verdict:?}");
    }
    assert_eq!(VerifyingKey::from_bytes(&vk.to_bytes()).as_ref(), Ok(vk));
    assert_eq!(vk.to_bytes()[8..10], 4u16.to_le_bytes());
}

/// Adversarial test 79 with buses: derived keys are those of a setup, for every count of instances and
/// every list; and another list has other keys, though its types are the same (adversarial test 80).
#[test]
fn a79_derived_keys_have_the_parts_of_buses() {
    let engine = LocalEngine::new(None).unwrap();
    for zero_knowledge in [true, false] {
        let options = SetupOptions::new("test").insecure_seed(3).zero_knowledge(zero_knowledge);
        let largest = Shop::new(4);
        let prepared = PreparedCircuit::new(&largest).unwrap();
        let mut types = Vec::new();
        let keep = |key| {
            types.push(key);
            Ok::<_, Infallible>(())
        };
        let family = setup_family(&prepared, 9, &engine, &options, keep, |_| {}).unwrap();
        let mut digests = HashSet::new();
        for shop in [Shop::new(1), Shop::new(2), Shop::new(4), Shop { tills: 2, price: 8 }] {
            let made = setup(&shop, &engine, &options).unwrap();
            let circuit = PreparedCircuit::new(&shop).unwrap();
            let (aggregation, verifying) = derive(&family, &circuit, "{}", &engine).unwrap();
            let without_family = VerifyingKey { family: None, ..verifying.clone() };
            assert_eq!(without_family.to_bytes(), made.verifying.to_bytes());
            assert_eq!(VerifyingKey::from_bytes(&verifying.to_bytes()).as_ref(), Ok(&verifying));
            let memory = some_challenges();
            assert_eq!(aggregation.s(&memory).unwrap(), made.aggregation.s(&memory).unwrap());
            digests.insert(verifying.digest());
            drop(circuit);
            // Proven with derived keys, and with the proving keys of the family.
            let input = Shopping::new(shop.tills);
            let types = setup(&shop, &engine, &options).unwrap().types;
            let keys = crate::ProverKeys { verifying, aggregation, types };
            let run = prove(&shop, &input, &keys, &engine, &ProveOptions::new()).unwrap();
            let (vk, proof) = (&keys.verifying, run.proof.as_bytes());
            let verify = crate::verifier::verify::verify_with_test_keys;
            assert_eq!(verify(vk, &run.public_values, proof), Ok(()));
            assert!(verify(&made.verifying, &run.public_values, proof).is_err());
        }
        assert_eq!(digests.len(), 4);
        // A list of another length is another type.
        let fewer = Closures::<()>::new(
            |layout| {
                let kind = layout.subcircuit_type("prices", 0);
                let _ = [layout.bus("goods"), layout.bus("prices")];
                layout.pairs(kind, 3);
                let list = layout.instance(kind);
                (0..3).for_each(|i| layout.set_pair(list, i, Fr::from(1u64), Fr::from(1u64)));
                Ok(Vec::new())
            },
            |_, _| Ok(()),
            |_| Ok(()),
            |_, _| Ok(()),
        );
        let circuit = PreparedCircuit::new(&fewer).unwrap();
        let refused = derive(&family, &circuit, "{}", &engine);
        assert!(matches!(refused, Err(DeriveError::Constraints { .. })), "{refused:?}");
    }
}

/// Adversarial test 81: a price chosen after the challenges repairs the sum of a lie, if nothing binds
/// it before. Guards: the digest of the key in the transcript.
#[test]
fn a81_price_chosen_after_the_challenges() {
    let bench = shop();
    let mut honest = cheater(&bench);
    lie(&mut honest, 1, |till| till[5] += 100);
    // Challenges that do not depend on the key.
    let commitments = honest.commitments();
    let shared = honest.shared();
    let memory = honest.begin(&shared, WithoutKey(Merlin::new()), &commitments).memory();
    // The lie's term of the sum, which another pair of the list could cancel.
    let fingerprint =
        |key: Fr, value: Fr| memory.g + memory.b_t * Fr::from(2u64) + key + memory.b_v * value;
    let till = of(&bench, 1);
    let (article, price) = (Fr::from(till[4]), Fr::from(till[5]));
    let asked = shopping().articles.iter().filter(|a| **a == till[4]).count() as u64;
    let asked = Fr::from(asked);
    let claimed = price + Fr::from(100u64);
    let inverse = |x: Fr| x.inverse().unwrap();
    // asked / F' = (asked - 1) / F + 1 / F_claimed, solved for the price in F'.
    let sum = (asked - Fr::ONE) * inverse(fingerprint(article, price))
        + inverse(fingerprint(article, claimed));
    let needed = (asked * inverse(sum) - fingerprint(article, Fr::zero())) * inverse(memory.b_v);
    let balance = asked * inverse(fingerprint(article, needed)) - sum;
    assert!(balance.is_zero() && needed != price && needed != claimed);
    // A key with that price, whose digest the forger's transcript leaves out.
    let mut wiring = bench.wiring.clone();
    wiring.pairs[till[4] as usize][1] = needed;
    assert_ne!(wiring.digest(), bench.wiring.digest());
    let forged = bench.with_wiring(Shop::new(TILLS), wiring);
    assert_ne!(forged.keys.verifying.digest(), bench.keys.verifying.digest());
    let mut forger = cheater(&forged);
    lie(&mut forger, 1, |till| till[5] += 100);
    let layout = forged.keys.types[forger.kind(LIST)].layout();
    let pair = layout.pairs().start + till[4] as usize;
    forger.shifted.push((LIST, pair, memory.b_v * (needed - price)));
    assert_eq!(forger.commitments(), commitments);
    let (proof, _) = forger.complete(WithoutKey(Merlin::new()));
    let (vk, public) = (&forged.keys.verifying, &forger.public);
    assert!(!forger.failing(&proof).is_empty(), "with the digest it is refused");
    // Control: without it, all equations hold.
    assert_eq!(failing(WithoutKey(Merlin::new()), vk, public, &proof), []);
    let foreign = bench.verify(public, &proof);
    assert!(
        matches!(foreign, Err(VerifyError::Proof(ProofError::ForeignKey { .. }))),
        "{foreign:?}"
    );
}

/// A sponge that leaves the key out.
struct WithoutKey(Merlin);

impl Sponge for WithoutKey {
    fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
        if label != "verifying key" {
            self.0.absorb(label, bytes);
        }
    }

    fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
        self.0.squeeze(label, out);
    }
}

/// Adversarial test 76: k_D differs for two values of one marked wire and under two keys; s and x under
/// two b_V; masks for two private inputs with the same shared values.
#[test]
fn a76_randomness_depends_on_what_it_hides() {
    let bench = shop();
    let input = shopping();
    let circuit = bench.with_input(&input);
    let worker = Worker::new(&circuit, &bench.keys.types, Masking::Masked, WitnessCheck::Skip);
    let randomness = Randomness::seeded_not_zero_knowledge(9);
    let job = |private: &[u64], key: &[u8; 32]| {
        let c = cheater(&bench);
        Job {
            instance: 1,
            kind: 1,
            values: c.values[1].clone(),
            slots: c.slots[1].clone(),
            private: Some(bench.private(&private.to_vec())),
            randomness: randomness.of_instance(key, 1),
        }
    };
    let private = of(&bench, 1);
    let mut other = private.clone();
    other[2] += 1; // a number, which no shared value depends on
    let commit = |private: &[u64], key: &[u8; 32]| worker.commit(job(private, key)).unwrap();
    let same = commit(&private, &[1; 32]).1;
    assert_eq!(same, commit(&private, &[1; 32]).1);
    let [changed, rekeyed] = [commit(&other, &[1; 32]).1, commit(&private, &[2; 32]).1];
    // The difference of the commitments is not that of the values, so k_D differs.
    let key = &bench.keys.types[1];
    let d = key.d_query().unwrap()[key.layout().slots() + 2];
    assert_ne!(changed.d, same.d.add(&d));
    assert_ne!(rekeyed.d, same.d);
    assert_eq!(HashSet::from([same.mark, changed.mark, rekeyed.mark]).len(), 3);
    // s and x: A = x A0, where A0 depends on the witness; with the same witness but for b_V.
    let prove = |memory: MemoryChallenges| {
        worker.commit(job(&private, &[1; 32])).unwrap().0.prove(&ProveRound { memory }).unwrap()
    };
    let memory = some_challenges();
    let (first, second) =
        (prove(memory), prove(MemoryChallenges { b_v: memory.b_v + Fr::ONE, ..memory }));
    assert_ne!(first.proof.a, second.proof.a);
    assert_eq!(first.mark, second.mark);
    let secret = randomness.of_instance(&[1; 32], 1).of_committed(&[]);
    let bound = |b_v: Fr| {
        let memory = MemoryChallenges { b_v, ..memory };
        blinding(&secret, key.layout(), &[], &ProveRound { memory })
    };
    let (a, b) = (bound(memory.b_v), bound(memory.b_v + Fr::ONE));
    assert!(a.additive != b.additive && a.multiplicative != b.multiplicative);
    // Masks: two inputs with the same public and shared values.
    let digest = |input: &Shopping| {
        let circuit = bench.with_input(input);
        let coordinator = Coordinator::new(&circuit, &bench.keys, &bench.engine, 1).unwrap();
        coordinator.execution_digest()
    };
    // Articles and orders that change no total: the numbers of two equal values.
    let mut equal = shopping();
    equal.values = vec![5; 2 * TILLS];
    let mut permuted = equal.clone();
    permuted.order.swap(0, 1);
    assert_ne!(digest(&equal), digest(&permuted));
    assert_eq!(digest(&equal), digest(&equal));
}

/// Adversarial test 75: a marked value that depends on a challenge, in one branch only. The check names
/// it, and so does the prover.
#[test]
fn a75_marked_value_depends_on_a_challenge() {
    let circuit = |sneaky: bool| {
        Closures::<bool>::new(
            move |layout| {
                let bus = layout.bus("bus");
                assert_eq!(bus.index(), 0);
                let wire = layout.public_output("y", 0);
                let kind = layout.subcircuit_type("sneaky", 1);
                let instance = layout.instance(kind);
                layout.write(instance, 0, wire);
                Ok(vec![wire])
            },
            |wires, values| {
                values.set(wires[0], Fr::from(1u64));
                Ok(())
            },
            move |_| Ok(sneaky),
            |s, private| {
                let sneaky = private.copied().unwrap_or_default();
                let cs = s.cs();
                let marked = s.commit(|| {
                    // The assignment of g, which no gadget would look at.
                    let assignment = cs.instance_assignment()?;
                    Ok(if sneaky { assignment[1] } else { Fr::from(7u64) })
                })?;
                let bus = s.bus(bus_of(0))?;
                bus.add(&FpVar::zero(), &marked, &FpVar::one())?;
                bus.add(&FpVar::zero(), &marked, &FpVar::one().negate()?)?;
                let one = s.slot(0)?;
                s.cs().enforce_r1cs_constraint(
                    || ark_relations::lc![variable(one)],
                    || ark_relations::lc![variable(one)],
                    || ark_relations::lc![variable(one)],
                )
            },
        )
    };
    assert_eq!(check(&circuit(false), &(), |_, _| {}).unwrap().violated, 0);
    let error = check(&circuit(true), &(), |_, _| {}).unwrap_err();
    assert!(
        matches!(&error, CheckError::MarkedDepends { instance: 0, marked: 0, .. }),
        "{error:?}"
    );
    let engine = LocalEngine::new(None).unwrap();
    let options = SetupOptions::new("test").insecure_seed(1);
    for sneaky in [false, true] {
        let circuit = circuit(sneaky);
        let keys = setup(&circuit, &engine, &options).unwrap();
        let run = prove(&circuit, &(), &keys, &engine, &ProveOptions::new());
        match sneaky {
            false => assert!(run.is_ok(), "{run:?}"),
            true => assert!(
                matches!(
                    &run,
                    Err(ProveError::Coordinator(CoordinatorError::Marked { instance: 0, kind }))
                        if kind == "sneaky"
                ),
                "{run:?}"
            ),
        }
    }
}

/// Marked values in the order of a map, which the prover took for a hardware fault. Guards: `check_determinism`; without it,
/// the error is another one.
#[test]
fn values_by_chance_are_no_hardware_fault() {
    let circuit = Closures::<()>::new(
        |layout| {
            layout.bus("bus");
            let wire = layout.public_output("y", 0);
            let kind = layout.subcircuit_type("chance", 1);
            let instance = layout.instance(kind);
            layout.write(instance, 0, wire);
            Ok(vec![wire])
        },
        |wires, values| {
            values.set(wires[0], Fr::from(1u64));
            Ok(())
        },
        |_| Ok(()),
        |s, _| {
            let bus = s.bus(bus_of(0))?;
            let map: HashMap<u64, ()> = (0..20).map(|key| (key, ())).collect();
            for key in map.keys() {
                let marked = s.commit(|| Ok(Fr::from(*key)))?;
                bus.add(&FpVar::zero(), &marked, &FpVar::one())?;
                bus.add(&FpVar::zero(), &marked, &FpVar::one().negate()?)?;
            }
            let one = s.slot(0)?;
            one.mul_equals(one, one)
        },
    );
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&circuit, &engine, &SetupOptions::new("test").insecure_seed(1)).unwrap();
    let error = prove(&circuit, &(), &keys, &engine, &ProveOptions::new()).unwrap_err();
    assert!(
        matches!(error, ProveError::NotDeterministic(NotDeterministic { instance: 0, .. })),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains("instance 0 (type 'chance') is not deterministic: two calls"), "{text}");
    assert!(text.contains("different values of marked value ") && !text.contains("  "), "{text}");
}

/// The bus at a position; ids of other layouts look the same.
fn bus_of(index: usize) -> BusId {
    let mut layout = hekaton_circuit::Layout::builder();
    (0..=index).map(|i| layout.bus(&format!("bus{i}"))).last().unwrap()
}

fn variable(var: &FpVar<Fr>) -> ark_relations::gr1cs::Variable {
    match var {
        FpVar::Var(var) => var.variable,
        FpVar::Constant(_) => unreachable!("a shared wire is a variable"),
    }
}

/// Entries that do not cancel: the check names bus, key and value; the prover says what to do.
#[test]
fn unbalanced_buses_are_named() {
    let input = Shopping { articles: vec![3, 0, 1], ..shopping() };
    let wrong = Shopping { articles: vec![3, 3, 1], ..input.clone() };
    // A list that counts for another input.
    let report = check(&Shop::new(TILLS), &wrong, |_, _| {}).unwrap();
    assert_eq!(report.unbalanced, vec![]);
    let lost = Shopping { order: vec![0, 1, 2, 3, 4, 4], ..input };
    let report = check(&Shop::new(TILLS), &lost, |_, _| {}).unwrap();
    let [twice, never] = &report.unbalanced[..] else { panic!("{:?}", report.unbalanced) };
    assert_eq!((twice.bus.as_str(), twice.key, twice.instance), ("goods", Fr::from(4u64), 4));
    assert_eq!((twice.multiplicity, never.multiplicity), (-Fr::ONE, Fr::ONE));
    assert_eq!((never.key, never.kind.as_str()), (Fr::from(5u64), "shelf"));
    let text = twice.to_string();
    assert!(text.contains("bus 'goods'") && text.contains("instance 4 (type 'shelf')"), "{text}");
    let bench = shop();
    let options = ProveOptions::new();
    let run = prove(&bench.circuit, &lost, &bench.keys, &bench.engine, &options);
    assert!(matches!(&run, Err(ProveError::Coordinator(CoordinatorError::Buses))), "{run:?}");
}

/// A pole of an entry starts the run again; it is found by the worker and confirmed.
#[test]
fn a13_pole_of_an_entry() {
    let bench = shop();
    let input = shopping();
    let circuit = bench.with_input(&input);
    let worker = Worker::new(&circuit, &bench.keys.types, Masking::Masked, WitnessCheck::Check);
    let coordinator = Coordinator::new(&circuit, &bench.keys, &bench.engine, 1).unwrap();
    let randomness = Randomness::seeded_not_zero_knowledge(3);
    let till = of(&bench, 1);
    let memory = some_challenges();
    // The fingerprint of the first value that the till takes is zero.
    let g = -(memory.b_t + Fr::from(till[0]) + memory.b_v * Fr::from(till[1]));
    for (g, pole) in [(g, true), (g + Fr::ONE, false)] {
        let memory = MemoryChallenges { g, ..memory };
        let job = coordinator.prove_job(1, &randomness).unwrap();
        let answer = worker.resume(job).prove(&ProveRound { memory });
        match pole {
            true => assert!(matches!(answer, Err(WorkerError::Pole { instance: 1 })), "{answer:?}"),
            false => assert!(answer.is_ok(), "{answer:?}"),
        }
        assert_eq!(coordinator.hits_pole(1, &randomness, &memory).unwrap(), pole);
    }
}

/// The answers of the prove round must carry the marks of the commit round.
#[test]
fn marks_of_both_rounds_agree() {
    let bench = shop();
    let input = shopping();
    let circuit = bench.with_input(&input);
    let coordinator = Coordinator::new(&circuit, &bench.keys, &bench.engine, 1).unwrap();
    let worker = Worker::new(&circuit, &bench.keys.types, Masking::Masked, WitnessCheck::Check);
    let randomness = Randomness::seeded_not_zero_knowledge(3);
    let n = bench.wiring.instances();
    let job = |i| coordinator.prove_job(i, &randomness).unwrap();
    let commitments: Vec<Commitment> = (0..n).map(|i| worker.commit(job(i)).unwrap().1).collect();
    assert!(commitments.iter().all(|commitment| commitment.mark != [0; 32]));
    for wrong in [None, Some(0), Some(n - 1)] {
        let committed = coordinator.committed(commitments.clone(), &bench.engine).unwrap();
        let round = committed.prove_round();
        let mut responses: Vec<_> =
            (0..n).map(|i| worker.resume(job(i)).prove(&round).unwrap()).collect();
        if let Some(wrong) = wrong {
            responses[wrong].mark[0] ^= 1;
        }
        let proven = committed.proven(responses).map(|_| ());
        match wrong {
            None => assert!(proven.is_ok()),
            Some(wrong) => assert!(
                matches!(&proven, Err(CoordinatorError::Marked { instance, .. }) if instance == &wrong),
                "{proven:?}"
            ),
        }
    }
}

/// The R1CS of a type of the shop.
fn r1cs(kind: usize) -> (R1cs, Vec<String>) {
    let shop = Shop::new(TILLS);
    let circuit = PreparedCircuit::new(&shop).unwrap();
    let kind = circuit.layout().type_ids().nth(kind).unwrap();
    let buses = circuit.layout().wiring(Masking::Masked).buses;
    (circuit.r1cs(kind, Masking::Masked).unwrap(), buses)
}

/// The rows of A, B and C, written out.
type Lists = [Vec<Vec<(Fr, usize)>>; 3];

/// Setup refuses a type whose rows of entries are not as required: adversarial tests 72 to 74, and each
/// assert of the specification (buses#asserts).
#[test]
fn a72_setup_refuses_other_rows() {
    let one = Fr::ONE;
    let refused = |kind: usize, change: &dyn Fn(&mut Lists, &VariableLayout)| {
        let (good, buses) = r1cs(kind);
        assert_eq!(check_type_with(&good, &buses), Ok(()));
        let mut rows = good.matrices.to_rows();
        change(&mut rows, &good.layout);
        let [a, b, c] = &rows;
        let bad = R1cs { matrices: Matrices::new([a, b, c]).unwrap(), ..good };
        check_type_with(&bad, &buses).unwrap_err()
    };
    let till = |change: &dyn Fn(&mut Lists, &VariableLayout)| refused(1, change);
    let list = |change: &dyn Fn(&mut Lists, &VariableLayout)| refused(2, change);
    // (1) Row 0 sums every u, and each u is in one more row, its own.
    let error = till(&|[a, ..], l| a[0].retain(|(_, v)| *v != l.inverses().end - 1));
    assert!(matches!(error, TypeError::Row { row: 0, .. }), "{error}");
    let error = till(&|[a, ..], l| a[l.entry_row(1)].push((one, l.inverses().start)));
    assert!(matches!(error, TypeError::Entry { entry: 1, .. }), "{error}");
    let error = till(&|[_, b, _], l| b[l.entry_row(1)].push((one, l.inverses().start)));
    assert!(matches!(&error, TypeError::Entry { entry: 1, why, .. } if why.contains("inverse")));
    // (2) F has g once and one tag.
    let error = till(&|[_, b, _], l| b[l.entry_row(0)].retain(|(_, v)| *v != l.g()));
    assert!(matches!(&error, TypeError::Entry { entry: 0, why, .. } if why.contains("have g")));
    let error = till(&|[_, b, _], l| b[l.entry_row(0)].push((one, l.g())));
    assert!(matches!(&error, TypeError::Entry { entry: 0, why, .. } if why.contains("have g")));
    for tag in [-Fr::ONE, Fr::from(2u64)] {
        // Tags 0 and 3: that of slots, and one without a bus.
        let error = till(&|[_, b, _], l| {
            let [b_t, _] = l.bus_challenges().unwrap();
            b[l.entry_row(0)].push((tag, b_t));
        });
        assert!(
            matches!(&error, TypeError::Entry { entry: 0, why, .. } if why.contains("no bus has the tag")),
            "{error}"
        );
    }
    // (2) Nothing in F that is not committed, nor an address, a multiplicity, a mask or e.
    type Wire = fn(&VariableLayout) -> usize;
    let wires: [(Wire, &str); 5] = [
        (|l| l.len(), "not committed"),
        (|l| l.addresses().start, "the address of a slot"),
        (|l| l.multiplicities().start, "the multiplicity of a slot"),
        (|l| l.masks().start, "a mask"),
        (|l| l.sum(), "the sum e"),
    ];
    for (wire, name) in wires {
        let error = till(&|[_, b, _], l| b[l.entry_row(2)].push((one, wire(l))));
        let named = |why: &str| why.contains(name);
        assert!(
            matches!(&error, TypeError::Entry { entry: 2, why, .. } if named(why)),
            "{name}: {error}"
        );
    }
    // (2) y = b_V v is its only definition, of a v that is committed.
    let error = till(&|[a, ..], l| a[l.scaled_row(0)].push((one, l.len())));
    assert!(matches!(&error, TypeError::Scaled { why, .. } if why.contains("not committed")));
    let error = till(&|[a, ..], l| a[l.scaled_row(0)].push((one, l.g())));
    assert!(matches!(&error, TypeError::Scaled { why, .. } if why.contains("challenge g")));
    let error = till(&|[_, b, _], l| b[l.scaled_row(1)].push((one, l.g())));
    assert!(matches!(&error, TypeError::Scaled { why, .. } if why.contains("v b_V = y")));
    let error = till(&|[.., c], l| c[l.scaled_row(1)] = vec![(one, l.scaled().start)]);
    assert!(matches!(&error, TypeError::Scaled { why, .. } if why.contains("v b_V = y")));
    // (3) Adversarial test 72: a multiplicity with a pair, a challenge, or something not committed.
    let error = list(&|[.., c], l| c[l.entry_row(0)].push((one, l.pairs().start)));
    assert!(
        matches!(&error, TypeError::Entry { bus, why, .. }
            if bus.contains("prices") && why.contains("multiplicity has pair 0")),
        "{error}"
    );
    for wire in [VariableLayout::len, |l: &VariableLayout| l.g(), |l: &VariableLayout| l.g() + 2] {
        let error = till(&|[.., c], l| c[l.entry_row(0)].push((one, wire(l))));
        assert!(matches!(&error, TypeError::Entry { why, .. } if why.contains("multiplicity")));
    }
    // (4) Adversarial test 73: e, u, y, g, b_T, b_V, x, mu and pairs in no row of the author's.
    for side in 0..3 {
        let wires: [fn(&VariableLayout) -> usize; 8] = [
            |l| l.sum(),
            |l| l.inverses().end - 1,
            |l| l.scaled().start,
            |l| l.g(),
            |l| l.g() + 1,
            |l| l.g() + 2,
            |l| l.addresses().start,
            |l| l.multiplicities().start,
        ];
        for wire in wires {
            let error = till(&|rows, l| rows[side].last_mut().unwrap().push((one, wire(l))));
            assert!(matches!(error, TypeError::ReservedWire { .. }), "{error}");
        }
    }
    // (5) Adversarial test 74: a parameter or a pair in no row, a marked value in none.
    let error = list(&|[_, b, _], l| b[l.entry_row(3)].retain(|(_, v)| *v != l.pairs().start + 3));
    assert!(matches!(error, TypeError::UnusedConstant { what: "pair", index: 3, .. }), "{error}");
    let error = refused(0, &|[_, b, _], l| {
        b.iter_mut().for_each(|row| row.retain(|(_, v)| *v != l.parameters().start));
    });
    assert!(
        matches!(error, TypeError::UnusedConstant { what: "parameter", index: 0, .. }),
        "{error}"
    );
    let error = list(&|rows, l| {
        let marked = l.marked().start + 1;
        rows.iter_mut().flatten().for_each(|row| row.retain(|(_, v)| *v != marked));
    });
    assert!(matches!(error, TypeError::MarkedRank { marked: 1, .. }), "{error}");
}

/// A pair in a row of the author's, and mistakes of gadgets, named.
#[test]
fn a73_mistakes_of_authors_are_named() {
    let (good, buses) = r1cs(2);
    let mut rows = good.matrices.to_rows();
    rows.iter_mut().for_each(|side| side.push(Vec::new()));
    rows[0].last_mut().unwrap().push((Fr::ONE, good.layout.pairs().start));
    let [a, b, c] = &rows;
    let bad = R1cs { matrices: Matrices::new([a, b, c]).unwrap(), ..good };
    let error = check_type_with(&bad, &buses).unwrap_err();
    assert!(matches!(error, TypeError::ReservedWire { wire: "a preprocessed wire", .. }));

    type Author = fn(&Subcircuit) -> Result<(), SynthesisError>;
    let refused = |with_bus: bool, author: Author| {
        let circuit = Closures::<()>::new(
            move |layout| {
                if with_bus {
                    layout.bus("bus");
                }
                let kind = layout.subcircuit_type("t", 0);
                layout.parameters(kind, 0);
                layout.instance(kind);
                Ok(Vec::new())
            },
            |_, _| Ok(()),
            |_| Ok(()),
            move |s, _| author(s),
        );
        let engine = LocalEngine::new(None).unwrap();
        setup(&circuit, &engine, &SetupOptions::new("test").insecure_seed(1)).unwrap_err()
    };
    let cases: [(bool, Author, &str); 6] = [
        (true, |s| s.bus(bus_of(1)).map(drop), "bus 1 is not in this layout"),
        (false, |s| s.bus(bus_of(0)).map(drop), "bus 0 is not in this layout"),
        (false, |s| s.commit(|| Ok(Fr::zero())).map(drop), "no bus that could use it"),
        (true, |s| s.parameter(0).map(drop), "asked for parameter 0"),
        (true, |s| s.bus(bus_of(0))?.add_pair(2, &FpVar::one()), "asked for pair 2"),
        (true, |s| s.commit(|| Ok(Fr::zero())).map(drop), "marked value 0"),
    ];
    for (with_bus, author, says) in cases {
        let error = refused(with_bus, author);
        assert!(error.to_string().contains(says), "{says}: {error}");
    }
    // A key that is not committed.
    let error = refused(true, |s| {
        let free = FpVar::Var(ark_r1cs_std::fields::fp::AllocatedFp::new(
            None,
            s.cs().new_witness_variable(|| Ok(Fr::zero()))?,
            s.cs(),
        ));
        s.bus(bus_of(0))?.add(&free, &FpVar::zero(), &FpVar::one())
    });
    let SetupError::Type(TypeError::Entry { entry: 0, why, .. }) = &error else {
        panic!("{error}")
    };
    assert!(why.contains("mark it with commit"), "{why}");
    // A key with b_T, variable 2: an entry of the next bus.
    let error = refused(true, |s| {
        let b_t = ark_relations::gr1cs::Variable::instance(2);
        let b_t = ark_r1cs_std::fields::fp::AllocatedFp::new(None, b_t, s.cs());
        let marked = s.commit(|| Ok(Fr::zero()))?;
        s.bus(bus_of(0))?.add(&(FpVar::Var(b_t) + marked), &FpVar::zero(), &FpVar::one())
    });
    assert!(error.to_string().contains("contains the challenge b_T"), "{error}");
    // Values at setup.
    let error = refused(true, |s| s.commit(|| Ok(Fr::zero()))?.value().map(drop));
    assert!(
        matches!(error, SetupError::Synthesize(SynthesizeError::ValueAtSetup { .. })),
        "{error}"
    );
}

/// Two entries with one value, of which one is written as a sum of it alone: the constraint system of a
/// setup has one variable for both, that of a prover two.
#[test]
fn sums_of_one_variable_are_values_of_their_own() {
    let circuit = Closures::<u64>::new(
        |layout| {
            layout.bus("bus");
            let kind = layout.subcircuit_type("t", 0);
            layout.instance(kind);
            Ok(Vec::new())
        },
        |_, _| Ok(()),
        |_| Ok(7),
        |s, given| {
            let given = given.copied();
            let v = s.commit(|| given.map(Fr::from).ok_or(SynthesisError::AssignmentMissing))?;
            let w: FpVar<Fr> = [&v].into_iter().sum();
            let bus = s.bus(bus_of(0))?;
            bus.add(&FpVar::zero(), &v, &FpVar::one())?;
            bus.add(&FpVar::zero(), &w, &FpVar::constant(-Fr::from(1u64)))?;
            // And with one row for both, as the state of a machine.
            let shared = s.bus_value(&v);
            bus.add_value(&FpVar::one(), &shared, &FpVar::one())?;
            bus.add_value(&FpVar::one(), &shared.plus(Fr::from(1u64)), &FpVar::one())?;
            bus.add(
                &FpVar::one(),
                &FpVar::constant(Fr::from(7u64)),
                &FpVar::constant(-Fr::from(1u64)),
            )?;
            bus.add(
                &FpVar::one(),
                &FpVar::constant(Fr::from(8u64)),
                &FpVar::constant(-Fr::from(1u64)),
            )
        },
    );
    let bench = Bench::new(circuit, true);
    assert_eq!(bench.keys.types[0].layout().shape().scaled, 3);
    let run = prove(&bench.circuit, &(), &bench.keys, &bench.engine, &ProveOptions::new()).unwrap();
    assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
}

/// Proofs of a circuit without buses do not have the two challenges, whatever the key claims; and the
/// bytes of scalars are canonical.
#[test]
fn keys_with_buses_are_read_back() {
    let bench = shop();
    let vk = &bench.keys.verifying;
    let bytes = vk.to_bytes();
    // Every truncation, and every flag that is not 0 or 1, is refused.
    for length in 0..bytes.len() {
        assert!(VerifyingKey::from_bytes(&bytes[..length]).is_err());
    }
    for version in [2u16, 3, 5] {
        let mut other = bytes.clone();
        other[8..10].copy_from_slice(&version.to_le_bytes());
        let end = other.len() - 32;
        let checksum = blake3::hash(&other[..end]);
        other[end..].copy_from_slice(checksum.as_bytes());
        assert!(VerifyingKey::from_bytes(&other).is_err(), "version {version}");
    }
    let round = ProveRound { memory: some_challenges() };
    let encoded = crate::protocol::messages::Message::to_bytes(&round);
    assert_eq!(encoded[96..], fr_to_bytes(&round.memory.b_v));
}
