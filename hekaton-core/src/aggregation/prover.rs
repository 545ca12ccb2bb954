//! The coordinator's side of the aggregation (spec: aggregation#weights, aggregation#folding,
//! aggregation#gipa, distributed#phases).
//!
//! [`Committing`] has cm_D and the challenges of the memory check; given all proofs, it produces
//! the [`Proof`]. Every element is sent, that is, appended to the proof, before the transcript
//! absorbs it and draws the next challenge.

use super::block::{BlockSums, FoldingBlock, ProofVectors, Shared};
use super::blocks::{AggregateError, Blocks, Openings};
use crate::encoding::Encode;
use crate::pool::LocalEngine;
use crate::verifier::proof::{Field as ProofField, Proof};
use crate::verifier::transcript::{FiatShamir, Sponge};
use crate::verifier::verifying_key::VerifyingKey;
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop, pairs};
use hekaton_circuit::MemoryChallenges;

/// The proof as it grows. Every field goes through [`ProofStream::send`] before the transcript
/// absorbs it.
struct ProofStream {
    proof: Proof,
    /// Test double: a cheating prover's change to a field.
    #[cfg(test)]
    tamper: Option<Tamper>,
}

/// Replaces the encoding of a field before it is absorbed.
#[cfg(test)]
pub(crate) type Tamper = Box<dyn FnMut(ProofField, Vec<u8>) -> Vec<u8> + Send>;

impl ProofStream {
    /// Appends a field; returns its encoding, for the transcript.
    #[cfg_attr(not(test), allow(unused_variables, clippy::unused_self))]
    fn send(&mut self, field: ProofField, element: &impl Encode) -> Vec<u8> {
        let code = element.encode();
        #[cfg(test)]
        let code = match &mut self.tamper {
            Some(tamper) => tamper(field, code),
            None => code,
        };
        self.proof.push(&code);
        code
    }
}

/// The state after the commit round: cm_D is in the transcript.
pub(crate) struct Committing<'s, S> {
    shared: &'s Shared<'s>,
    vk: &'s VerifyingKey,
    transcript: FiatShamir<S>,
    proof: ProofStream,
    /// The vectors, here or on ranks.
    blocks: Box<dyn Blocks + 's>,
    memory: MemoryChallenges,
}

impl<'s, S: Sponge> Committing<'s, S> {
    /// Runs phase A over the padded commitments D and draws g and b (spec: distributed#phase-a).
    pub(crate) fn new(
        shared: &'s Shared<'s>,
        vk: &'s VerifyingKey,
        sponge: S,
        public_values: &[Fr],
        d: &[G1Point],
        mut blocks: Box<dyn Blocks + 's>,
    ) -> Result<Self, AggregateError> {
        let digest = vk.digest();
        // The statement is absorbed first, public values included (spec: verifier#statement).
        let mut transcript = FiatShamir::begin(sponge, &digest, vk.instances, public_values);
        let mut proof = ProofStream {
            proof: Proof::begin(&digest),
            #[cfg(test)]
            tamper: None,
        };
        // All shared values are committed to before g and b exist (spec:
        // verifier#memory-challenges).
        let cm_d = proof.send(ProofField::CmD, &blocks.commit(d)?.finish());
        let memory = transcript.memory(&cm_d, vk.has_buses());
        Ok(Self { shared, vk, transcript, proof, blocks, memory })
    }

    /// Test double: changes every field before it is absorbed.
    #[cfg(test)]
    pub(crate) fn tampered(mut self, tamper: Tamper) -> Self {
        self.proof.tamper = Some(tamper);
        self
    }

    /// Test double: replaces the commitments D after cm_D was absorbed.
    #[cfg(test)]
    pub(crate) fn with_other_d(mut self, d: &[G1Point]) -> Result<Self, AggregateError> {
        self.blocks.commit(d)?;
        Ok(self)
    }

    /// Returns the challenges for the prove round.
    pub(crate) fn memory(&self) -> MemoryChallenges {
        self.memory
    }

    /// Runs phases B to G over the padded proofs.
    // One piece: the phases B to G of the specification, in the order of the transcript.
    pub(crate) fn finish(self, vectors: &ProofVectors) -> Result<Proof, AggregateError> {
        let Self { shared, vk, mut transcript, mut proof, mut blocks, memory } = self;

        // B (spec: distributed#phase-b): the commitments to the proofs and the ledger element fix
        // all proofs before r weights their equations (spec: verifier#batching).
        let parts = blocks.prove(vectors)?;
        let [cm_a, cm_b, cm_c] = MillerLoop::finish_all([parts.a, parts.b, parts.c]);
        let cm_a = proof.send(ProofField::CmA, &cm_a);
        let cm_b = proof.send(ProofField::CmB, &cm_b);
        let cm_c = proof.send(ProofField::CmC, &cm_c);
        let v_e = proof.send(ProofField::Ve, &parts.v_e);
        let (r, zeta) = transcript.batching(&cm_a, &cm_b, &cm_c, &v_e);

        // C (spec: distributed#phase-c): the sums by type are all that the cross terms of the first
        // two folds need (spec: aggregation#collapse). Cross terms are absorbed before their
        // challenge (spec: aggregation#folding).
        let sums = blocks.weigh(r, &memory)?;
        let key = shared.key;
        let (gamma, elements) = (*key.gamma()?, key.elements()?);
        let cross = CrossTerms { sums: &sums, k: shared.k, gamma, elements, zeta };
        let mut fold = |proof: &mut ProofStream, j: usize, plus: MillerLoop, minus: MillerLoop| {
            let [plus, minus] = MillerLoop::finish_all([plus, minus]);
            let plus = proof.send(ProofField::XPlus(j), &plus);
            let minus = proof.send(ProofField::XMinus(j), &minus);
            transcript.fold(&plus, &minus)
        };
        let [plus, minus] = cross.first();
        let s1 = fold(&mut proof, 0, plus, minus);
        let s1_inverse = s1.inverse().expect(NOT_ZERO);
        let [plus, minus] = cross.second(s1, s1_inverse);
        let s2 = fold(&mut proof, 1, plus, minus);
        let s2_inverse = s2.inverse().expect(NOT_ZERO);

        // D (spec: distributed#phase-d): P, and the third fold, whose X3+ = P*B needs all n
        // pairings.
        let plus = blocks.fold_blocks(s1, s2)?;
        let q = cross.q(s1_inverse, s2_inverse);
        let s3 = fold(&mut proof, 2, plus, cross.third_minus(&q, s1_inverse * s2_inverse));
        let s3_inverse = s3.inverse().expect(NOT_ZERO);

        // E and F (spec: distributed#phase-e, distributed#phase-f): GIPA rounds down to one
        // element.
        let q = G2Point::mul_all(&q, &s3_inverse);
        let ledger = -zeta * s1_inverse * s2_inverse * s3_inverse;
        let block_rounds = blocks.start(s3, &q, ledger)?;
        let Folded { x, x_inverse, last } =
            gipa(vk.rounds(), block_rounds, &mut *blocks, &mut transcript, &mut proof)?;
        let codes = [
            proof.send(ProofField::Lf, &last.l[0]),
            proof.send(ProofField::Rf, &last.r[0]),
            proof.send(ProofField::Vf, &last.v[0]),
            proof.send(ProofField::Wf, &last.w[0]),
            proof.send(ProofField::Wr, &sums.w_r),
        ];
        // The point z comes after all that is opened at it (spec: verifier#opening-challenges).
        let (z, rho) = transcript.opening(&codes[0], &codes[1], &codes[2], &codes[3], &codes[4]);

        // G (spec: distributed#phase-g): the folded keys and W_r are functions of the challenges.
        let r_inverse = r.inverse().expect(NOT_ZERO);
        let (pi_v, pi_w) = blocks.open(&Openings { x, x_inverse, r_inverse, z, rho })?;
        proof.send(ProofField::PiV, &pi_v);
        proof.send(ProofField::PiW, &pi_w);
        Ok(proof.proof)
    }
}

/// The reason that challenges have inverses (spec: aggregation#gipa-challenges).
const NOT_ZERO: &str = "the transcript draws challenges again until they are not zero";

/// The result of all GIPA rounds.
struct Folded {
    /// The challenges x_j.
    x: Vec<Fr>,
    /// Their inverses, the 128-bit challenges of the transcript.
    x_inverse: Vec<Fr>,
    /// One element of each vector.
    last: FoldingBlock,
}

/// Runs all GIPA rounds (spec: aggregation#gipa): the first `block_rounds` on the blocks, the
/// others here on the remainders of all blocks. The proof's bytes do not depend on where a round
/// runs.
fn gipa<S: Sponge>(
    rounds: usize,
    block_rounds: usize,
    blocks: &mut dyn Blocks,
    transcript: &mut FiatShamir<S>,
    proof: &mut ProofStream,
) -> Result<Folded, AggregateError> {
    let (mut x, mut x_inverse) = (Vec::new(), Vec::new());
    let mut joined: Option<Vec<FoldingBlock>> = None;
    for j in 0..rounds {
        // Blocks fold lazily: they receive the challenge of a round with the request for the next.
        let previous = x.last().copied().zip(x_inverse.last().copied());
        if j == block_rounds && joined.is_none() {
            joined = Some(blocks.take(previous)?.split_for(blocks.pool()));
        }
        // Blocks of one element have no pairs left: join them, in order, and cut again.
        if let Some(blocks_of_one) = joined.take_if(|joined| joined[0].len() == 1) {
            joined = Some(FoldingBlock::join(blocks_of_one).split_for(blocks.pool()));
        }
        let products = match &joined {
            None => blocks.halve(previous)?,
            Some(joined) => {
                let parts =
                    blocks.pool().map((0..joined.len()).collect(), |i: usize| joined[i].products());
                std::array::from_fn(|i| MillerLoop::product(parts.iter().map(|p| p[i])))
            }
        };
        let products = MillerLoop::finish_all(products);
        let codes: [Vec<u8>; 6] =
            std::array::from_fn(|i| proof.send(ProofField::Round(j, i), &products[i]));
        // The transcript draws x_j^-1, because the short scalar saves most in G2 (spec:
        // aggregation#gipa-challenges).
        let challenge = transcript.gipa_round(std::array::from_fn(|i| &codes[i][..]));
        let inverse = challenge.inverse().expect(NOT_ZERO);
        x.push(inverse);
        x_inverse.push(challenge);
        joined =
            joined.map(|joined| blocks.pool().map(joined, |block| block.fold(inverse, challenge)));
    }
    let last = match joined {
        Some(joined) => FoldingBlock::join(joined),
        None => blocks.take(x.last().copied().zip(x_inverse.last().copied()))?,
    };
    Ok(Folded { x, x_inverse, last })
}

impl FoldingBlock {
    /// Cuts the remaining vectors so that all threads have work, if there is enough.
    fn split_for(self, pool: &LocalEngine) -> Vec<Self> {
        let size = (self.len() / pool.threads().next_power_of_two()).max(2).min(self.len());
        self.split(size)
    }
}

/// The cross terms of the block folds, collapsed by type: every right-hand vector except B has one
/// value per type or is r^-i H (spec: aggregation#collapse).
struct CrossTerms<'a> {
    sums: &'a BlockSums,
    k: G1Point,
    gamma: G2Point,
    /// The elements delta, eta and Theta of each type.
    elements: &'a [[G2Point; 3]],
    zeta: Fr,
}

impl CrossTerms<'_> {
    /// Returns one of the elements for each type.
    fn per_type(&self, element: usize) -> Vec<G2Point> {
        self.elements.iter().map(|e| e[element]).collect()
    }

    /// Returns the sums of `E'` by type as points: E_i = e_i K.
    fn e(&self) -> Vec<G1Point> {
        self.sums.e.by_type.iter().map(|e| self.k.mul(e)).collect()
    }

    /// Returns `X1+ = C'*gamma + E'*eta` and `X1- = S'*delta + D'*Theta'` (spec:
    /// aggregation#cross-terms).
    fn first(&self) -> [MillerLoop; 2] {
        let h = G2Point::generator();
        let c = G1Point::sum(&self.sums.c.by_type);
        // Theta'_i = Theta_c - zeta r^-i H and D'_i r^-i = D_i: the part with H needs the plain
        // sum.
        let d = self.sums.d.plain.mul(&-self.zeta);
        let (e, [delta, eta, theta]) = (self.e(), [0, 1, 2].map(|element| self.per_type(element)));
        let plus = std::iter::once((&c, &self.gamma)).chain(pairs(&e, &eta));
        let minus = pairs(&self.sums.s.by_type, &delta).chain(pairs(&self.sums.d.by_type, &theta));
        MillerLoop::many([plus.collect(), minus.chain([(&d, &h)]).collect()])
    }

    /// Returns `X2+ = P2*Q1` and `X2- = P1*Q2`.
    fn second(&self, s1: Fr, s1_inverse: Fr) -> [MillerLoop; 2] {
        let h = G2Point::generator();
        let p2: Vec<G1Point> =
            self.sums.d.by_type.iter().zip(self.e()).map(|(d, e)| d.add(&e.mul(&s1))).collect();
        let p1: Vec<G1Point> = self
            .sums
            .s
            .by_type
            .iter()
            .zip(&self.sums.c.by_type)
            .map(|(s, c)| s.add(&c.mul(&s1)))
            .collect();
        // Q1 = gamma + s1^-1 delta, Q2 = eta + s1^-1 Theta'
        let q1: Vec<G2Point> =
            self.elements.iter().map(|e| self.gamma.add(&e[0].mul(&s1_inverse))).collect();
        let q2: Vec<G2Point> =
            self.elements.iter().map(|e| e[1].add(&e[2].mul(&s1_inverse))).collect();
        // The part of Theta' with H, again with the plain sum of P1.
        let sum = self.sums.s.plain.add(&self.sums.c.plain.mul(&s1));
        let plain = sum.mul(&(-self.zeta * s1_inverse));
        let minus = pairs(&p1, &q2).chain([(&plain, &h)]).collect();
        MillerLoop::many([pairs(&p2, &q1).collect(), minus])
    }

    /// Returns the part of Q that depends on the type alone, one value per type: `gamma + s1^-1
    /// delta + s2^-1 eta + (s1 s2)^-1 Theta`.
    fn q(&self, s1_inverse: Fr, s2_inverse: Fr) -> Vec<G2Point> {
        let scalars = [Fr::ONE, s1_inverse, s2_inverse, s1_inverse * s2_inverse];
        self.elements
            .iter()
            .map(|[delta, eta, theta]| G2Point::msm(&[self.gamma, *delta, *eta, *theta], &scalars))
            .collect()
    }

    /// Returns `X3- = A'*Q`.
    fn third_minus(&self, q: &[G2Point], s1_s2_inverse: Fr) -> MillerLoop {
        let ledger = self.sums.a.plain.mul(&(-self.zeta * s1_s2_inverse));
        MillerLoop::of_pairs(
            pairs(&self.sums.a.by_type, q).chain([(&ledger, &G2Point::generator())]),
        )
    }
}
