//! The coordinator's side of the aggregation (PROTOCOL, sections 3, 4 and 6).
//!
//! Two states: [`Committing`] has cm_D and the challenges of the memory check; with all proofs it makes the [`Proof`].

use super::block::{
    BlockSums, CommittedBlock, FoldingBlock, ProofCommitments, ProofVectors, ProvenBlock, Shared, padded_commitments,
};
use super::polynomials::{fold_coefficients, quotient};
use super::proof::{Field as ProofField, Proof};
use crate::encoding::Encode;
use crate::engine::Pool;
use crate::keys::KeyFileError;
use crate::messages::{Commitment, ProofResponse};
use crate::transcript::{MemoryChallenges, Schedule, Sponge};
use crate::verifying_key::VerifyingKey;
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, MillerLoop, powers};

/// Blocks are cut this small at least: below it, work a block does not pay for handing it out.
const SMALLEST_BLOCK: usize = 8;

/// The proof as it grows. Every field goes through [`ProofStream::send`] before the transcript absorbs it.
struct ProofStream {
    proof: Proof,
    /// A cheating prover's change to a field (test double).
    #[cfg(test)]
    tamper: Option<Tamper>,
}

/// Replaces the encoding of a field before it is absorbed.
#[cfg(test)]
pub(crate) type Tamper = Box<dyn FnMut(ProofField, Vec<u8>) -> Vec<u8> + Send>;

impl ProofStream {
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

/// After the commit round: cm_D is in the transcript.
pub(crate) struct Committing<'s, S> {
    shared: &'s Shared<'s>,
    vk: &'s VerifyingKey,
    schedule: Schedule<S>,
    proof: ProofStream,
    blocks: Vec<CommittedBlock<'s>>,
    memory: MemoryChallenges,
}

/// Contiguous ranges of a power of two each that cover 0..padded, several for each thread.
fn cut(padded: usize, threads: usize) -> Vec<std::ops::Range<usize>> {
    let size = (padded / (4 * threads).next_power_of_two()).max(SMALLEST_BLOCK).min(padded);
    (0..padded / size).map(|i| i * size..(i + 1) * size).collect()
}

impl<'s, S: Sponge> Committing<'s, S> {
    /// Phase A, and the challenges g and b.
    pub(crate) fn new(
        shared: &'s Shared<'s>,
        vk: &'s VerifyingKey,
        sponge: S,
        public_values: &[Fr],
        commitments: &[Commitment],
        pool: &impl Pool,
    ) -> Result<Self, KeyFileError> {
        let d = padded_commitments(commitments, shared.padded());
        Self::from_padded(shared, vk, sponge, public_values, &d, pool)
    }

    pub(crate) fn from_padded(
        shared: &'s Shared<'s>,
        vk: &'s VerifyingKey,
        sponge: S,
        public_values: &[Fr],
        d: &[G1Point],
        pool: &impl Pool,
    ) -> Result<Self, KeyFileError> {
        let digest = vk.digest();
        let mut schedule = Schedule::begin(sponge, &digest, vk.instances, public_values);
        let mut proof = ProofStream {
            proof: Proof::begin(&digest),
            #[cfg(test)]
            tamper: None,
        };
        let parts = pool.map(cut(shared.padded(), pool.threads()), |range| {
            let block = CommittedBlock::new(shared, range, d)?;
            let commitment = block.commitment();
            Ok::<_, KeyFileError>((block, commitment))
        });
        let (blocks, parts): (Vec<_>, Vec<_>) = parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let cm_d = proof.send(ProofField::CmD, &MillerLoop::product(parts).finish());
        let memory = schedule.memory(&cm_d);
        Ok(Self { shared, vk, schedule, proof, blocks, memory })
    }

    /// Test double: changes every field before it is absorbed.
    #[cfg(test)]
    pub(crate) fn tampered(mut self, tamper: Tamper) -> Self {
        self.proof.tamper = Some(tamper);
        self
    }

    /// Test double: other commitments D than those that were absorbed.
    #[cfg(test)]
    pub(crate) fn with_other_d(mut self, d: &[G1Point]) -> Result<Self, KeyFileError> {
        let ranges = cut(self.shared.padded(), 1);
        self.blocks =
            ranges.into_iter().map(|range| CommittedBlock::new(self.shared, range, d)).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The challenges for the prove round.
    pub(crate) fn memory(&self) -> MemoryChallenges {
        self.memory
    }

    /// Phases B to G.
    pub(crate) fn finish(self, responses: &[ProofResponse], pool: &impl Pool) -> Result<Proof, KeyFileError> {
        let padded = self.shared.padded();
        self.finish_vectors(&ProofVectors::new(responses, padded), pool)
    }

    pub(crate) fn finish_vectors(self, vectors: &ProofVectors, pool: &impl Pool) -> Result<Proof, KeyFileError> {
        let Self { shared, vk, mut schedule, mut proof, blocks, memory } = self;
        let key = shared.key;

        // B: commitments to the proofs, and the ledger element
        let parts = pool.map(blocks, |block| block.prove(vectors));
        let (blocks, parts): (Vec<ProvenBlock<'_>>, Vec<ProofCommitments>) =
            parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let [cm_a, cm_b, cm_c] = commitments(&parts);
        let cm_a = proof.send(ProofField::CmA, &cm_a);
        let cm_b = proof.send(ProofField::CmB, &cm_b);
        let cm_c = proof.send(ProofField::CmC, &cm_c);
        let v_e = G2Point::sum(&parts.iter().map(|p| p.v_e).collect::<Vec<_>>());
        let v_e = proof.send(ProofField::Ve, &v_e);
        let (r, zeta) = schedule.batching(&cm_a, &cm_b, &cm_c, &v_e);

        // C: sums by type, and the cross terms of the first two folds, which need nothing else
        let parts = pool.map(blocks, |block| block.weigh(r, &memory));
        let (blocks, sums): (Vec<_>, Vec<_>) = parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let Some(sums) = sums.into_iter().reduce(|a, b| a.add(&b)) else { return Ok(proof.proof) };
        let cross = CrossTerms { sums: &sums, k: shared.k, gamma: *key.gamma()?, elements: key.elements()?, zeta };
        let mut fold = |proof: &mut ProofStream, j: usize, plus: Gt, minus: Gt| {
            let plus = proof.send(ProofField::XPlus(j), &plus);
            let minus = proof.send(ProofField::XMinus(j), &minus);
            schedule.fold(&plus, &minus)
        };
        let (plus, minus) = cross.first();
        let s1 = fold(&mut proof, 0, plus, minus);
        let s1_inverse = s1.inverse().unwrap_or_default();
        let (plus, minus) = cross.second(s1, s1_inverse);
        let s2 = fold(&mut proof, 1, plus, minus);
        let s2_inverse = s2.inverse().unwrap_or_default();

        // D: P, and the third fold
        let parts = pool.map(blocks, |block| block.fold_blocks(s1, s2));
        let (blocks, parts): (Vec<_>, Vec<_>) = parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let q = cross.q(s1_inverse, s2_inverse);
        let plus = MillerLoop::product(parts).finish();
        let s3 = fold(&mut proof, 2, plus, cross.third_minus(&q, s1_inverse * s2_inverse));
        let s3_inverse = s3.inverse().unwrap_or_default();

        // E: halvings, block by block, then what is left of all blocks together
        let q = G2Point::mul_all(&q, &s3_inverse);
        let ledger = -zeta * s1_inverse * s2_inverse * s3_inverse;
        let mut blocks = pool.map(blocks, |block| block.start(s3, &q, ledger));
        let (mut x, mut x_inverse) = (Vec::new(), Vec::new());
        for j in 0..vk.rounds() {
            if blocks[0].len() == 1 {
                blocks = FoldingBlock::join(blocks).split_for(pool.threads());
            }
            let parts = pool.map((0..blocks.len()).collect(), |i: usize| blocks[i].products());
            let products: [Gt; 6] = std::array::from_fn(|i| MillerLoop::product(parts.iter().map(|p| p[i])).finish());
            let codes: [Vec<u8>; 6] = std::array::from_fn(|i| proof.send(ProofField::Round(j, i), &products[i]));
            let challenge = schedule.round(std::array::from_fn(|i| &codes[i][..]));
            let inverse = challenge.inverse().unwrap_or_default();
            x.push(inverse);
            x_inverse.push(challenge);
            blocks = pool.map(blocks, |block| block.fold(inverse, challenge));
        }

        // F: single elements
        let last = FoldingBlock::join(blocks);
        let codes = [
            proof.send(ProofField::Lf, &last.l[0]),
            proof.send(ProofField::Rf, &last.r[0]),
            proof.send(ProofField::Vf, &last.v[0]),
            proof.send(ProofField::Wf, &last.w[0]),
            proof.send(ProofField::Wr, &sums.w_r),
        ];
        let (z, rho) = schedule.opening(&codes[0], &codes[1], &codes[2], &codes[3], &codes[4]);

        // G: openings
        let r_inverse = r.inverse().unwrap_or_default();
        let f_v = fold_coefficients(&x_inverse, r_inverse);
        let mut f_w = fold_coefficients(&x, Fr::ONE);
        f_w.iter_mut().zip(powers(r_inverse, shared.ledger)).for_each(|(f, g)| *f += rho * g);
        proof.send(ProofField::PiV, &msm_in_pool(key.psi()?, &quotient(&f_v, z), pool));
        proof.send(ProofField::PiW, &msm_in_pool(key.phi()?, &quotient(&f_w, z), pool));
        Ok(proof.proof)
    }
}

impl FoldingBlock {
    /// Cuts what is left so that all threads have work, if there is enough.
    fn split_for(self, threads: usize) -> Vec<Self> {
        let size = (self.len() / threads.next_power_of_two()).max(2).min(self.len());
        self.split(size)
    }
}

fn commitments(parts: &[ProofCommitments]) -> [Gt; 3] {
    [
        MillerLoop::product(parts.iter().map(|p| p.a)).finish(),
        MillerLoop::product(parts.iter().map(|p| p.b)).finish(),
        MillerLoop::product(parts.iter().map(|p| p.c)).finish(),
    ]
}

/// An MSM over a prefix of the powers, cut into one part a thread.
fn msm_in_pool<G: Group>(bases: &[G], scalars: &[Fr], pool: &impl Pool) -> G {
    let bases = &bases[..scalars.len()];
    let size = scalars.len().div_ceil(pool.threads()).max(1);
    let parts: Vec<_> = bases.chunks(size).zip(scalars.chunks(size)).collect();
    G::sum(&pool.map(parts, |(bases, scalars)| G::msm(bases, scalars)))
}

/// The cross terms of the block folds, collapsed by type: every right-hand vector except B has k values or is r^-i H.
struct CrossTerms<'a> {
    sums: &'a BlockSums,
    k: G1Point,
    gamma: G2Point,
    /// delta, eta, Theta of each type
    elements: &'a [[G2Point; 3]],
    zeta: Fr,
}

impl CrossTerms<'_> {
    fn per_type(&self, element: usize) -> Vec<G2Point> {
        self.elements.iter().map(|e| e[element]).collect()
    }

    /// `E'` by type as points.
    fn e(&self) -> Vec<G1Point> {
        self.sums.e.by_type.iter().map(|e| self.k.mul(e)).collect()
    }

    /// X1+ = C'*gamma + E'*eta, X1- = S'*delta + D'*Theta'.
    fn first(&self) -> (Gt, Gt) {
        let h = G2Point::generator();
        let c = G1Point::sum(&self.sums.c.by_type);
        let plus = MillerLoop::new(&[c], &[self.gamma]).combine(&MillerLoop::new(&self.e(), &self.per_type(1)));
        // Theta'_i = Theta_c - zeta r^-i H, and D'_i r^-i = D_i
        let minus = MillerLoop::new(&self.sums.s.by_type, &self.per_type(0))
            .combine(&MillerLoop::new(&self.sums.d.by_type, &self.per_type(2)))
            .combine(&MillerLoop::new(&[self.sums.d.plain.mul(&-self.zeta)], &[h]));
        (plus.finish(), minus.finish())
    }

    /// X2+ = P2*Q1, X2- = P1*Q2.
    fn second(&self, s1: Fr, s1_inverse: Fr) -> (Gt, Gt) {
        let h = G2Point::generator();
        let p2: Vec<G1Point> = self.sums.d.by_type.iter().zip(self.e()).map(|(d, e)| d.add(&e.mul(&s1))).collect();
        let p1: Vec<G1Point> =
            self.sums.s.by_type.iter().zip(&self.sums.c.by_type).map(|(s, c)| s.add(&c.mul(&s1))).collect();
        // Q1 = gamma + s1^-1 delta, Q2 = eta + s1^-1 Theta'
        let q1: Vec<G2Point> = self.elements.iter().map(|e| self.gamma.add(&e[0].mul(&s1_inverse))).collect();
        let q2: Vec<G2Point> = self.elements.iter().map(|e| e[1].add(&e[2].mul(&s1_inverse))).collect();
        let plain = self.sums.s.plain.add(&self.sums.c.plain.mul(&s1));
        let minus = MillerLoop::new(&p1, &q2).combine(&MillerLoop::new(&[plain.mul(&(-self.zeta * s1_inverse))], &[h]));
        (MillerLoop::new(&p2, &q1).finish(), minus.finish())
    }

    /// The part of Q that depends on the type alone: `gamma + s1^-1 delta + s2^-1 eta + (s1 s2)^-1 Theta`.
    fn q(&self, s1_inverse: Fr, s2_inverse: Fr) -> Vec<G2Point> {
        let scalars = [Fr::ONE, s1_inverse, s2_inverse, s1_inverse * s2_inverse];
        self.elements
            .iter()
            .map(|[delta, eta, theta]| G2Point::msm(&[self.gamma, *delta, *eta, *theta], &scalars))
            .collect()
    }

    /// X3- = A'*Q.
    fn third_minus(&self, q: &[G2Point], s1_s2_inverse: Fr) -> Gt {
        let ledger = self.sums.a.plain.mul(&(-self.zeta * s1_s2_inverse));
        MillerLoop::new(&self.sums.a.by_type, q).combine(&MillerLoop::new(&[ledger], &[G2Point::generator()])).finish()
    }
}
