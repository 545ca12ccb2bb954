//! Forgeries of direct proofs, adversarial tests D1 to D10 and D13: with one check or one absorbed
//! value taken out a forgery is accepted that is made from published elements alone; the verifier
//! refuses it (spec: direct#soundness).

use super::bench::{Bench, Cheater, Squares};
use super::constants::Chain;
use super::family::{derived, family, options};
use crate::mirage::{self, WitnessCheck};
use crate::verifier::direct::encoding::{keccak, put_point, put_scalar};
use crate::verifier::direct::transcript::{self, TAG};
use crate::verifier::direct::verify::{ledger_holds, pairings_hold, public_part};
use crate::verifier::direct::{Context, DirectKey, DirectProof, verify_direct_with_test_keys};
use crate::verifier::verify::{VerifyError, public_sum};
use crate::verifier::{Equation, ProofError};
use ark_ff::{BigInteger, Field, PrimeField, Zero};
use hekaton_arith::{Domain, Fr, G1Point, G2Point, Group, powers};
use hekaton_circuit::{Circuit, MemoryChallenges};

const INPUT: u64 = 5;
const CONTEXT: Context = [3; 32];

/// The part of the verifier that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// The commitments in T0.
    D,
    /// The public values in T0.
    Public,
    /// KEY in T0.
    Key,
    /// The terms in T1.
    E,
    A,
    B,
    C,
    /// The factors r^i.
    Factors,
    /// The sum of the terms.
    Sum,
}

/// T0.
fn committed(without: Without, key: &DirectKey, public: &[Fr], d: &[G1Point]) -> [u8; 32] {
    let mut values = Vec::new();
    public.iter().for_each(|value| put_scalar(&mut values, value));
    let (digest, d) = (key.digest(), DirectProof::words_of_d(d));
    let or_nothing = |part: Without, bytes: &[u8]| match part == without {
        true => Vec::new(),
        false => bytes.to_vec(),
    };
    let digest = or_nothing(Without::Key, &digest);
    let (values, d) = (or_nothing(Without::Public, &values), or_nothing(Without::D, &d));
    keccak(&[&TAG, &digest, &CONTEXT, &values, &d])
}

/// The factor r of T1.
fn factor(without: Without, committed: &[u8; 32], proof: &DirectProof) -> Fr {
    if without == Without::Factors {
        return Fr::ONE;
    }
    let mut seen = Vec::new();
    for (a, b) in &proof.ab {
        if without != Without::A {
            put_point(&mut seen, a);
        }
        if without != Without::B {
            put_point(&mut seen, b);
        }
    }
    if without != Without::C {
        proof.c.iter().for_each(|c| put_point(&mut seen, c));
    }
    if without != Without::E {
        proof.e.iter().for_each(|e| put_scalar(&mut seen, e));
    }
    transcript::factor(&keccak(&[committed, &seen]))
}

/// Reports whether a verifier without a part accepts a proof.
fn accepts(without: Without, key: &DirectKey, public: &[Fr], proof: &DirectProof) -> bool {
    let t0 = committed(without, key, public, &proof.d);
    let memory = transcript::memory(&t0, key.has_buses());
    let r = factor(without, &t0, proof);
    let sum = without == Without::Sum || ledger_holds(key, public, &memory, proof) == Ok(true);
    sum && pairings_hold(key, &memory, &r, proof)
}

pub(crate) fn verify(
    key: &DirectKey,
    public: &[Fr],
    proof: &DirectProof,
) -> Result<(), VerifyError> {
    verify_direct_with_test_keys(key, public, &CONTEXT, &proof.to_bytes(&key.digest()))
}

/// Asserts that a forgery is accepted without a part, and refused by the verifier.
#[track_caller]
fn assert_forged(without: Without, key: &DirectKey, public: &[Fr], proof: &DirectProof) {
    assert!(accepts(without, key, public, proof), "control: without {without:?}");
    assert!(!accepts(Without::Nothing, key, public, proof), "{without:?}");
    let verdict = verify(key, public, proof);
    assert!(matches!(verdict, Err(VerifyError::Equations { .. })), "{without:?}: {verdict:?}");
    let name = format!("{without:?}").to_lowercase();
    keep(&name, key, public, proof, &MemoryChallenges::new(Fr::zero(), Fr::zero()));
}

/// Compares a forgery with a golden file, for the tests of the contract. `HEKATON_WRITE_GOLDEN=1` writes it.
#[track_caller]
fn keep(
    name: &str,
    key: &DirectKey,
    public: &[Fr],
    proof: &DirectProof,
    frozen: &MemoryChallenges,
) {
    let number = |x: &Fr| x.into_bigint().to_string();
    let text = serde_json::json!({
        "key": hex::encode(key.to_bytes()),
        "public_values": public.iter().map(number).collect::<Vec<_>>(),
        "context": hex::encode(CONTEXT),
        "proof": hex::encode(proof.to_bytes(&key.digest())),
        "g": number(&frozen.g), "b": number(&frozen.b),
    });
    let text = serde_json::to_string_pretty(&text).unwrap() + "\n";
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/forgeries");
    let path = std::path::Path::new(folder).join(format!("{name}.json"));
    if std::env::var_os("HEKATON_WRITE_GOLDEN").is_some() {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == text, "{name}");
}

/// A prover of direct proofs that may lie.
pub(crate) struct Forger<'b, C: Circuit> {
    pub(crate) cheater: Cheater<'b, C>,
    pub(crate) key: DirectKey,
}

pub(crate) fn direct_key<C: Circuit>(bench: &Bench<C>) -> DirectKey {
    bench.keys.direct_key(&bench.engine).unwrap()
}

impl<'b, C: Circuit> Forger<'b, C> {
    pub(crate) fn new(bench: &'b Bench<C>, input: &C::Input) -> Self {
        Self { cheater: Cheater::new(bench, input), key: direct_key(bench) }
    }

    fn n(&self) -> usize {
        self.key.instances()
    }

    /// The commitments D.
    pub(crate) fn d(&self) -> Vec<G1Point> {
        let mut d = self.cheater.commitments();
        d.truncate(self.n());
        d
    }

    fn memory(&self, without: Without) -> MemoryChallenges {
        let t0 = committed(without, &self.key, &self.cheater.public, &self.d());
        transcript::memory(&t0, self.key.has_buses())
    }

    /// The answers of the prove round.
    pub(crate) fn proof(&self, memory: &MemoryChallenges) -> DirectProof {
        let prove = |i| self.cheater.prove_assignment(i, &self.cheater.witness(i, memory)).proof;
        let proofs: Vec<_> = (0..self.n()).map(prove).collect();
        DirectProof {
            d: self.d(),
            ab: proofs.iter().map(|proof| (proof.a, proof.b)).collect(),
            c: proofs.iter().map(|proof| proof.c).collect(),
            e: proofs.iter().map(|proof| proof.e).collect(),
        }
    }

    /// The amount by which the memory check fails.
    fn defect(&self, memory: &MemoryChallenges) -> Fr {
        let term = |i| {
            let key = &self.cheater.bench.keys.types[self.cheater.kind(i)];
            self.cheater.witness(i, memory)[key.layout().sum()]
        };
        let public = public_sum(self.key.verifying(), &self.cheater.public, memory).unwrap();
        (0..self.n()).map(term).sum::<Fr>() + public
    }

    /// Elements without any witness: D, A, B and C are infinity, and the terms balance the public sum.
    fn empty(&self, memory: &MemoryChallenges) -> DirectProof {
        let n = self.n();
        let mut e: Vec<Fr> = (0..n as u64).map(|i| Fr::from(100 + i)).collect();
        let public = public_sum(self.key.verifying(), &self.cheater.public, memory).unwrap();
        let sum: Fr = e.iter().sum();
        e[0] -= sum + public;
        let zero = G1Point::IDENTITY;
        DirectProof {
            d: vec![zero; n],
            ab: vec![(zero, G2Point::IDENTITY); n],
            c: vec![zero; n],
            e,
        }
    }
}

impl Forger<'_, Squares> {
    /// From subcircuit 3 on, the chain is that of another input, and so is the output.
    fn lie(mut self) -> Self {
        let other = Cheater::new(self.cheater.bench, &Fr::from(INPUT + 1));
        for i in 3..self.n() {
            self.cheater.values[i][..2].copy_from_slice(&other.values[i][..2]);
        }
        self.cheater.public[1] = other.public[1];
        self
    }
}

/// The value at an address with a multiplicity whose term is that of `value`, less `defect`.
fn repaired(
    memory: &MemoryChallenges,
    (address, multiplicity): (u64, i64),
    value: Fr,
    defect: Fr,
) -> Fr {
    let (mu, of_address) = (Fr::from(multiplicity), memory.b * Fr::from(address));
    let term = mu * (memory.g + value + of_address).inverse().unwrap();
    mu * (term - defect).inverse().unwrap() - memory.g - of_address
}

fn plain() -> Bench<Squares> {
    Bench::new(Squares::new(&[0, 1, 1, 0, 1]), false)
}

/// The honest proof is accepted, also by the verifier that the controls take parts from.
#[test]
fn honest_proofs_are_accepted() {
    for masks in [false, true] {
        let bench = Bench::new(Squares::new(&[0, 1, 1, 0, 1]), masks);
        let forger = Forger::new(&bench, &Fr::from(INPUT));
        let proof = forger.proof(&forger.memory(Without::Nothing));
        assert_eq!(verify(&forger.key, &forger.cheater.public, &proof), Ok(()));
        assert!(accepts(Without::Nothing, &forger.key, &forger.cheater.public, &proof));
        let lie = Forger::new(&bench, &Fr::from(INPUT)).lie();
        let proof = lie.proof(&lie.memory(Without::Nothing));
        let verdict = verify(&lie.key, &lie.cheater.public, &proof);
        assert_eq!(verdict, Err(VerifyError::Equations { failing: vec![Equation::Ledger] }));
    }
}

/// Adversarial test D1: a slot that no other constraint has takes the value that repairs the sum, after
/// the challenges.
#[test]
fn d1_a_value_chosen_last() {
    let bench = plain();
    let mut forger = Forger::new(&bench, &Fr::from(INPUT)).lie();
    let memory = forger.memory(Without::D);
    let defect = forger.defect(&memory);
    let access = forger.cheater.slots[3][2];
    let place = (access.address, access.multiplicity);
    let old = forger.cheater.values[3][2];
    forger.cheater.values[3][2] = repaired(&memory, place, old, defect);
    assert_forged(Without::D, &forger.key, &forger.cheater.public, &forger.proof(&memory));
}

/// Adversarial test D2: the output is chosen after the challenges.
#[test]
fn d2_an_output_chosen_last() {
    let bench = plain();
    let mut forger = Forger::new(&bench, &Fr::from(INPUT)).lie();
    let memory = forger.memory(Without::Public);
    let defect = forger.defect(&memory);
    let wire = &bench.keys.verifying.public[1];
    let place = (wire.address, wire.multiplicity);
    forger.cheater.public[1] = repaired(&memory, place, forger.cheater.public[1], defect);
    assert_forged(Without::Public, &forger.key, &forger.cheater.public, &forger.proof(&memory));
}

/// Adversarial test D3: a constant of the key is chosen after the challenges.
#[test]
fn d3_a_constant_chosen_last() {
    let bench = Bench::new(Chain::new(&[2u64, 3, 4].map(Fr::from)), false);
    let mut forger = Forger::new(&bench, &Fr::from(INPUT));
    // Another output than that of the circuit.
    forger.cheater.public[1] += Fr::ONE;
    let memory = forger.memory(Without::Key);
    let defect = forger.defect(&memory);
    let mut key = forger.key.clone();
    let wire = &mut key.verifying.constants[0];
    wire.value = repaired(&memory, (wire.address, wire.multiplicity), wire.value, defect);
    let key = key.checked().unwrap();
    assert_ne!(key.digest(), forger.key.digest());
    assert_forged(Without::Key, &key, &forger.cheater.public, &forger.proof(&memory));
}

/// Adversarial test D4: two terms are changed after r, so that the product stays and the sum is repaired.
#[test]
fn d4_terms_chosen_last() {
    let bench = plain();
    let forger = Forger::new(&bench, &Fr::from(INPUT)).lie();
    let memory = forger.memory(Without::E);
    let mut proof = forger.proof(&memory);
    let t0 = committed(Without::E, &forger.key, &forger.cheater.public, &proof.d);
    let r = factor(Without::E, &t0, &proof);
    // Subcircuits 1 and 2 have one Theta: r t - r^2 (t / r) = 0.
    let t = -forger.defect(&memory) * (Fr::ONE - r.inverse().unwrap()).inverse().unwrap();
    proof.e[1] += t;
    proof.e[2] -= t * r.inverse().unwrap();
    assert_forged(Without::E, &forger.key, &forger.cheater.public, &proof);
}

/// A proof without any witness whose A are chosen after r: B are beta, gamma and both Theta.
fn a_chosen_last(without: Without) {
    let bench = plain();
    let forger = Forger::new(&bench, &Fr::from(INPUT)).lie();
    let (key, public) = (&forger.key, &forger.cheater.public);
    let t0 = committed(without, key, public, &vec![G1Point::IDENTITY; forger.n()]);
    let memory = transcript::memory(&t0, false);
    let mut proof = forger.empty(&memory);
    let thetas = [key.types[0].elements[2], key.types[1].elements[2]];
    for ((_, b), base) in proof.ab.iter_mut().zip([key.beta, key.gamma, thetas[0], thetas[1]]) {
        *b = base;
    }
    let factors = powers(factor(without, &t0, &proof), forger.n());
    let over = |i: usize| factors[i].inverse().unwrap();
    proof.ab[0].0 = key.alpha.mul(&factors.iter().sum::<Fr>()).mul(&over(0));
    proof.ab[1].0 = public_part(key, &memory, &factors).mul(&over(1));
    for kind in 0..2 {
        let terms: Fr = key.instances_of(kind).map(|i| factors[i] * proof.e[i]).sum();
        proof.ab[2 + kind].0 = key.verifying.k.mul(&(terms * over(2 + kind)));
    }
    assert_forged(without, key, public, &proof);
}

/// Adversarial test D5: the A are chosen after r.
#[test]
fn d5_a_chosen_last() {
    a_chosen_last(Without::A);
}

/// Adversarial test D6: the B are chosen after r: A are alpha, K and the columns IC of a family.
#[test]
fn d6_b_chosen_last() {
    let circuit = Squares::new(&[0; 12]);
    let (family, types) = family(&circuit, 12, &options(1, false));
    let ic = family.ic(0).unwrap().to_vec();
    let bench = derived(circuit, &family, types);
    let mut forger = Forger::new(&bench, &Fr::from(INPUT));
    // The statement: any output.
    forger.cheater.public[1] = Fr::from(1u64);
    let (key, public, n) = (&forger.key, &forger.cheater.public, forger.n());
    let t0 = committed(Without::B, key, public, &vec![G1Point::IDENTITY; n]);
    let memory = transcript::memory(&t0, false);
    let mut proof = forger.empty(&memory);
    let points = [&[key.alpha, key.verifying.k][..], &ic].concat();
    assert!(points.len() <= n);
    for ((a, _), point) in proof.ab.iter_mut().zip(&points) {
        *a = *point;
    }
    let factors = powers(factor(Without::B, &t0, &proof), n);
    // The scalars of the columns in S.
    let layout = bench.keys.types[0].layout();
    let mut columns = vec![Fr::zero(); ic.len()];
    columns[0] = factors.iter().sum();
    columns[layout.g()] = memory.g * columns[0];
    for (r, slots) in factors.iter().zip(&forger.cheater.slots) {
        for (j, slot) in slots.iter().enumerate() {
            columns[layout.multiplicities().start + j] += *r * Fr::from(slot.multiplicity);
            columns[layout.addresses().start + j] += *r * memory.b * Fr::from(slot.address);
        }
    }
    let terms: Fr = factors.iter().zip(&proof.e).map(|(r, e)| *r * e).sum();
    let theta = key.types[0].elements[2];
    let mut bases = vec![(key.beta, factors.iter().sum()), (theta, terms)];
    bases.extend(columns.iter().map(|scalar| (key.gamma, *scalar)));
    for (i, (base, scalar)) in bases.into_iter().enumerate() {
        proof.ab[i].1 = base.mul(&(scalar * factors[i].inverse().unwrap()));
    }
    assert_forged(Without::B, key, public, &proof);
}

/// The product of two polynomials.
fn product(a: &[Fr], b: &[Fr]) -> Vec<Fr> {
    let mut out = vec![Fr::zero(); a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        b.iter().enumerate().for_each(|(j, y)| out[i + j] += *x * y);
    }
    out
}

/// Adds `factor b` to the polynomial `a`.
fn add_to(a: &mut Vec<Fr>, b: &[Fr], factor: Fr) {
    a.resize(a.len().max(b.len()), Fr::zero());
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
}

/// The polynomial with these values on a domain.
fn interpolated(domain: &Domain, mut values: Vec<Fr>) -> Vec<Fr> {
    values.resize(domain.size(), Fr::zero());
    domain.ifft(&mut values);
    values
}

/// The sum of a query H that stands for `p(tau) Z(tau) / delta`.
fn of_quotient(key: &mirage::ProvingKey, mut p: Vec<Fr>) -> G1Point {
    // The query is for products on the coset, where Z = -2 (spec: mirage#coset).
    p.resize(key.domain().size(), Fr::zero());
    key.domain().coset_fft(&mut p);
    let scalars: Vec<Fr> = p.iter().map(|value| -(*value + value)).collect();
    G1Point::msm(key.h_query().unwrap(), &scalars)
}

/// Adversarial test D7: the C are chosen after r. A query of type 1 pays for a row that is wrong in
/// subcircuit 0, of type 0.
#[test]
fn d7_c_chosen_last() {
    // Domains of 8 and 16 elements.
    let circuit = Squares { rows: 8, ..Squares::new(&[0, 1, 1, 0, 1]) };
    let bench = Bench::new(circuit, true);
    let forger = Forger::new(&bench, &Fr::from(INPUT)).lie();
    let [small, large] = [0, 1].map(|kind| &bench.keys.types[kind]);
    assert_eq!([small, large].map(|key| key.domain().size()), [8, 16]);
    let memory = forger.memory(Without::C);
    let mut proof = forger.proof(&memory);
    // The sum is repaired by a wrong inverse in subcircuit 0.
    let (layout, defect) = (small.layout(), forger.defect(&memory));
    let mut z = forger.cheater.witness(0, &memory);
    let [ma, mb, mc] = large.matrices().unwrap();
    // A variable t of type 1 that stands in one even row 2 i of A, where i is a row of the memory check, in odd
    // rows of C, and nowhere else: its column in A is L_2i of 16, which on the domain of 8 is L_i.
    let rows_of = |matrix: &hekaton_circuit::prover::Matrix<'_>, t: usize| {
        let rows = 0..large.constraints();
        let found = rows.flat_map(|row| matrix.terms(row).map(move |(x, j)| (row, x, j)));
        found.filter(|(_, _, j)| *j == t).map(|(row, x, _)| (row, x)).collect::<Vec<_>>()
    };
    let slot_of = |row: usize| (0..layout.slots()).find(|j| 2 * layout.fingerprint_row(*j) == row);
    let auxiliary = large.layout().auxiliary(large.variables());
    let (t, row, kappa, slot) = auxiliary
        .filter_map(|t| match (&rows_of(&ma, t)[..], &rows_of(&mb, t)[..], &rows_of(&mc, t)[..]) {
            ([(row, x)], [], in_c) if in_c.iter().all(|(row, _)| row % 2 == 1) => {
                Some((t, *row, *x, slot_of(*row)?))
            }
            _ => None,
        })
        .next()
        .unwrap();
    let u = layout.inverses().nth(slot).unwrap();
    z[u] -= defect;
    z[layout.sum()] -= defect;
    assert_eq!(forger.cheater.violations(0, &z), [layout.fingerprint_row(slot)]);
    let wrong = layout.fingerprint_row(slot);
    // y of t in A makes that row hold.
    let [a0, b0, c0] = small.matrices().unwrap();
    let at = |matrix: &hekaton_circuit::prover::Matrix<'_>| matrix.row(wrong, &z);
    let y = (at(&c0) * at(&b0).inverse().unwrap() - at(&a0)) * kappa.inverse().unwrap();
    let of_rows = |matrix: &hekaton_circuit::prover::Matrix<'_>| {
        let values = (0..small.constraints()).map(|row| matrix.row(row, &z)).collect();
        interpolated(small.domain(), values)
    };
    let unit = |rows: &[(usize, Fr)]| {
        let mut values = vec![Fr::zero(); 16];
        rows.iter().for_each(|(row, x)| values[*row] = *x);
        interpolated(large.domain(), values)
    };
    let (mut a, b, c) = (of_rows(&a0), of_rows(&b0), of_rows(&c0));
    add_to(&mut a, &unit(&[(row, kappa)]), y);
    let c_t = unit(&rows_of(&mc, t));
    // a b - c - y c_t is a multiple of X^8 - 1: h (X^8 - 1) = h1 (X^16 - 1) + h0 (X^8 - 1).
    let mut rest = product(&a, &b);
    add_to(&mut rest, &c, -Fr::ONE);
    add_to(&mut rest, &c_t, -y);
    let mut h = vec![Fr::zero(); rest.len() - 8];
    for i in (8..rest.len()).rev() {
        let x = rest[i];
        h[i - 8] += x;
        rest[i - 8] += x;
        rest[i] = Fr::zero();
    }
    assert!(rest.iter().all(Zero::is_zero), "a multiple of X^8 - 1");
    let h1 = h.split_off(8);
    let mut h0 = h;
    add_to(&mut h0, &h1, -Fr::ONE);
    // The queries L contain half of c times Z (spec: mirage#coset).
    let half = -Fr::from(2u64).inverse().unwrap();
    add_to(&mut h0, &c, half);
    let mut h1 = h1;
    add_to(&mut h1, &c_t, half * y);

    let sums = mirage::sums(small, &z, &Fr::ONE, WitnessCheck::Skip).unwrap();
    let a_query = large.a_query().unwrap();
    let place = a_query.variables.iter().position(|variable| *variable as usize == t).unwrap();
    let elements = small.elements();
    let a = G1Point::sum(&[elements.alpha_1, sums.a, a_query.points[place].mul(&y)]);
    let k_d = forger.cheater.blinding(0).commitment;
    proof.ab[0] = (a, elements.beta_2.add(&sums.b));
    proof.c[0] = G1Point::sum(&[sums.l, sums.x, of_quotient(small, h0), elements.eta_1.mul(&-k_d)]);
    proof.e[0] = z[layout.sum()];
    // What is left is paid with delta of type 1, in subcircuit 1, once r is known.
    let l_of_t = large.l_query().unwrap()[t - large.layout().auxiliary(large.variables()).start];
    let paid = l_of_t.mul(&y).add(&of_quotient(large, h1));
    let public = &forger.cheater.public;
    let t0 = committed(Without::C, &forger.key, public, &proof.d);
    let r = factor(Without::C, &t0, &proof);
    proof.c[1] = proof.c[1].add(&paid.mul(&r.inverse().unwrap()));
    assert_forged(Without::C, &forger.key, public, &proof);
}

/// Adversarial test D8: without factors the equations are not checked one by one.
#[test]
fn d8_no_factors() {
    a_chosen_last(Without::Factors);
}

/// Adversarial test D9: the sum is left out, or that a pole makes both sides of it zero.
#[test]
fn d9_no_sum() {
    let bench = plain();
    let mut forger = Forger::new(&bench, &Fr::from(INPUT)).lie();
    let memory = forger.memory(Without::Nothing);
    let proof = forger.proof(&memory);
    assert_forged(Without::Sum, &forger.key, &forger.cheater.public, &proof);
    // Frozen challenges, and both public values at poles: N = d = 0 for any sum.
    let wires = &bench.keys.verifying.public;
    for (value, wire) in forger.cheater.public.iter_mut().zip(wires) {
        *value = -memory.g - memory.b * Fr::from(wire.address);
    }
    let fraction = forger.cheater.public.iter().zip(wires).fold(
        (Fr::zero(), Fr::ONE),
        |(n, d), (value, wire)| {
            let f = memory.g + value + memory.b * Fr::from(wire.address);
            (n * f + Fr::from(wire.multiplicity) * d, d * f)
        },
    );
    assert_eq!(fraction, (Fr::zero(), Fr::zero()));
    let verdict = ledger_holds(&forger.key, &forger.cheater.public, &memory, &proof);
    assert_eq!(verdict, Err(VerifyError::Pole { address: wires[0].address }));
    let t0 = committed(Without::Nothing, &forger.key, &forger.cheater.public, &proof.d);
    let r = factor(Without::Nothing, &t0, &proof);
    assert!(pairings_hold(&forger.key, &memory, &r, &proof), "all else holds");
    keep("pole", &forger.key, &forger.cheater.public, &proof, &memory);
}

/// Adversarial test D10: a term plus r is the same term.
#[test]
fn d10_unreduced_terms() {
    let bench = plain();
    let forger = Forger::new(&bench, &Fr::from(INPUT));
    let proof = forger.proof(&forger.memory(Without::Nothing));
    let mut bytes = proof.to_bytes(&forger.key.digest());
    let place = bytes.len() - 32;
    let mut value = proof.e[4].into_bigint();
    assert!(!value.add_with_carry(&Fr::MODULUS), "it fits");
    bytes[place..].copy_from_slice(&value.to_bytes_be());
    assert_eq!(Fr::from_be_bytes_mod_order(&bytes[place..]), proof.e[4], "control");
    let verdict =
        verify_direct_with_test_keys(&forger.key, &forger.cheater.public, &CONTEXT, &bytes);
    assert!(matches!(verdict, Err(VerifyError::Proof(ProofError::Element(_)))), "{verdict:?}");
}

/// Adversarial test D13: types that are not the key's: instance 3 of type 0 is proven as one of type 2.
#[test]
fn d13_another_type() {
    // Types 0 and 2 differ in a constant of the author's alone.
    let bench = Bench::new(Squares::new(&[0, 1, 2, 0]), false);
    let other = Squares::new(&[0, 1, 2, 2]);
    let wiring = {
        let circuit = hekaton_circuit::PreparedCircuit::new(&other).unwrap();
        circuit.layout().wiring(bench.wiring.masking)
    };
    let lying = bench.with_wiring(other, wiring);
    let mut forger = Forger::new(&lying, &Fr::from(INPUT));
    // The verifier's key, and what a verifier makes of it that takes the types, and with them the columns
    // of S, from the proof.
    let (key, mut wanted) = (direct_key(&bench), forger.key.clone());
    wanted.verifying = key.verifying.clone();
    wanted.digest = key.digest();
    assert_ne!(key.type_of, wanted.type_of);
    let addresses = |key: &DirectKey| key.parts.iter().map(|part| part.sb).collect::<Vec<_>>();
    assert_eq!(addresses(&key), addresses(&wanted), "all else is the key's");
    forger.key = wanted;
    let proof = forger.proof(&forger.memory(Without::Nothing));
    let public = &forger.cheater.public;
    assert_ne!(*public, Cheater::new(&bench, &Fr::from(INPUT)).public, "a false output");
    assert_eq!(verify(&forger.key, public, &proof), Ok(()), "control: types of the prover");
    // Two keys: the second one has the types of the proof, in its verifying key, too.
    let frozen = MemoryChallenges::new(Fr::zero(), Fr::zero());
    keep("type", &key, public, &proof, &frozen);
    keep("type-of-proof", &direct_key(&lying), public, &proof, &frozen);
    let verdict = verify(&key, public, &proof);
    assert_eq!(verdict, Err(VerifyError::Equations { failing: vec![Equation::Pairings] }));
    assert!(forger.key.checked().is_err(), "readers compare the types with the verifying key");
}
