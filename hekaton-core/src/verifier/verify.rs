//! The verifier: bytes in, a verdict with its reason out (spec: verifier#encoding,
//! verifier#challenges, verifier#merged).
//!
//! Everything is parsed and checked first; then the challenges are replayed; then five equations
//! are merged into one with factors drawn after the openings: seven Miller loops, one final
//! exponentiation, one multi-exponentiation in GT. Only if that fails are the equations evaluated
//! one by one, to name those that fail.

use super::polynomials::{fold_value, geometric_value};
use super::proof::{Decoded, ProofError};
use crate::verifier::transcript::{FiatShamir, Merlin, Sponge};
use crate::verifier::verifying_key::{Trust, VerifyingKey};
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, MillerLoop};
use hekaton_circuit::MemoryChallenges;

/// An equation that the verifier checks (spec: verifier#equations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Equation {
    /// The G1 side: the folded proofs open the commitments cm_A, cm_C, cm_D, V_e and the key's
    /// cm_S.
    T,
    /// The G2 side: the folded vectors open cm_B and the key's cm_gamma, cm_delta, cm_eta,
    /// cm_Theta.
    U,
    /// The statement: all subcircuits' Mirage equations and the memory check.
    Z,
    /// The folded key v_f follows from the challenges.
    KeyV,
    /// The folded key w_f and the ledger key W_r follow from the challenges.
    KeyW,
    /// The memory check of a direct proof (spec: direct#checks).
    Ledger,
    /// The subcircuits' equations of a direct proof.
    Pairings,
}

impl std::fmt::Display for Equation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::T => "T (commitments to A, C, D and the ledger sum)",
            Self::U => "U (commitment to B and the key's right-hand sides)",
            Self::Z => "Z (the subcircuits' proofs and the memory check)",
            Self::KeyV => "KZG for v (folded commitment key in G2)",
            Self::KeyW => "KZG for w (folded commitment key in G1)",
            Self::Ledger => "of the ledger sum (the memory check)",
            Self::Pairings => "of pairings (the subcircuits' proofs)",
        })
    }
}

/// Why a proof was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The bytes are not a proof under this key.
    #[error("{prefix}{0}", prefix = prefix(.0))]
    Proof(ProofError),
    /// The wrong number of public values.
    #[error(
        "expected {expected} public value{}, found {found}", if *.expected == 1 { "" } else { "s" }
    )]
    PublicValues {
        /// Number that the verifying key prescribes.
        expected: usize,
        /// Number supplied.
        found: usize,
    },
    /// The key is a test key: its trapdoors come from a known seed, so anyone can forge proofs.
    #[error(
        "the verifying key is a test key with trapdoors from a known seed: anybody can forge \
         proofs under it, so a proof under it proves nothing"
    )]
    TestKeys,
    /// A public value or a constant hits a pole of the memory check; no honest prover makes such a
    /// proof.
    #[error("the public wire at address {address} hits a pole (zero denominator)")]
    Pole {
        /// The address of the wire.
        address: u64,
    },
    /// The proof is wrong. With `{:#}`, the text names the equations that fail.
    #[error(fmt = does_not_hold)]
    Equations {
        /// The equations that fail when evaluated one by one. All of them fail whenever anything
        /// that the challenges depend on differs.
        failing: Vec<Equation>,
    },
}

impl From<ProofError> for VerifyError {
    fn from(error: ProofError) -> Self {
        Self::Proof(error)
    }
}

/// Explains to users what a wrong proof can mean; with `{:#}`, also which equations fail.
fn does_not_hold(failing: &[Equation], f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    f.write_str(
        "the proof does not hold for these public values: a public value, the proof, or the \
         verifying key is not the one that was proven",
    )?;
    if f.alternate() {
        let list = failing.iter().map(ToString::to_string).collect::<Vec<_>>();
        write!(f, "; equation {} fails", list.join(", equation "))?;
    }
    Ok(())
}

/// A proof for another key is not malformed.
fn prefix(error: &ProofError) -> &'static str {
    match error {
        ProofError::ForeignKey { .. } => "",
        _ => "malformed proof: ",
    }
}

/// Verifies an aggregate proof.
///
/// `public_values` are the values of the key's public wires, in the key's order. Accepts (`Ok`) or
/// returns the reason for the rejection; never panics, whatever the bytes. Test keys are refused:
/// see [`verify_with_test_keys`].
///
/// # Errors
/// See [`VerifyError`].
pub fn verify(vk: &VerifyingKey, public_values: &[Fr], proof: &[u8]) -> Result<(), VerifyError> {
    match vk.trust {
        Trust::InsecureSeed => Err(VerifyError::TestKeys),
        Trust::SingleParty | Trust::Ceremony(_) => verify_with_test_keys(vk, public_values, proof),
    }
}

/// **For tests only:** [`verify`] that also accepts proofs under test keys, which anyone who knows
/// the seed can forge.
///
/// # Errors
/// See [`VerifyError`].
pub fn verify_with_test_keys(
    vk: &VerifyingKey,
    public_values: &[Fr],
    proof: &[u8],
) -> Result<(), VerifyError> {
    verify_with(Merlin::new(), vk, public_values, proof)
}

/// [`verify`] over any sponge.
pub(crate) fn verify_with(
    sponge: impl Sponge,
    vk: &VerifyingKey,
    public_values: &[Fr],
    proof: &[u8],
) -> Result<(), VerifyError> {
    let digest = vk.digest();
    let proof = Decoded::parse(proof, vk, &digest)?;
    let replay = Replay::new(sponge, vk, &digest, public_values, &proof)?;
    if replay.merged(&proof) {
        return Ok(());
    }
    // Rejected: the single equations only name what fails and can no longer accept.
    let defects = replay.defects(&proof);
    Err(VerifyError::Equations {
        failing: defects.iter().filter(|d| !d.1.is_identity()).map(|d| d.0).collect(),
    })
}

/// The verifier's intermediate results, for tests: whether the merged equation holds, and the
/// defect of each single equation.
#[cfg(test)]
pub(crate) struct Verdict {
    pub(crate) merged: bool,
    pub(crate) defects: [(Equation, Gt); 5],
    /// The challenges s1, s2 and s3 of the block folds.
    pub(crate) s: [Fr; 3],
}

/// Evaluates everything without an early exit, with the ledger sum truncated at `ledger`
/// subcircuits instead of n.
#[cfg(test)]
pub(crate) fn examine(
    sponge: impl Sponge,
    vk: &VerifyingKey,
    public_values: &[Fr],
    bytes: &[u8],
    ledger: u64,
) -> Result<Verdict, VerifyError> {
    let digest = vk.digest();
    let proof = Decoded::parse(bytes, vk, &digest)?;
    let mut replay = Replay::new(sponge, vk, &digest, public_values, &proof)?;
    replay.truncate_at(ledger);
    Ok(Verdict { merged: replay.merged(&proof), defects: replay.defects(&proof), s: replay.s })
}

/// Returns the verifier's share of the ledger sum, `sum_w mu_w / (g + x_w + b a_w)`, over the public
/// wires with the values of the caller and the constants with those of the key
/// (spec: verifier#public-sum, memory-check#constants).
pub(crate) fn public_sum(
    vk: &VerifyingKey,
    values: &[Fr],
    memory: &MemoryChallenges,
) -> Result<Fr, VerifyError> {
    let public = (vk.public.iter().zip(values))
        .map(|(wire, value)| (wire.address, wire.multiplicity, value));
    let constants = vk.constants.iter().map(|wire| (wire.address, wire.multiplicity, &wire.value));
    let (mut fingerprints, mut multiplicities) = (Vec::new(), Vec::new());
    for (address, multiplicity, value) in public.chain(constants) {
        let fingerprint = memory.g + value + memory.b * Fr::from(address);
        // Reject a pole before inverting: batch inversion maps 0 to 0, which would drop the term.
        if fingerprint.is_zero() {
            return Err(VerifyError::Pole { address });
        }
        fingerprints.push(fingerprint);
        multiplicities.push(Fr::from(multiplicity));
    }
    hekaton_arith::batch_invert(&mut fingerprints);
    Ok(hekaton_arith::inner_product(&multiplicities, &fingerprints))
}

/// The terms of T, without those of the rounds.
///
/// T = cm_A - s3 (cm_S + s1 cm_C + s2 cm_D + s1 s2 cm_E), where cm_E = e(K, V_e) moves to the side of the pairings
/// (spec: aggregation#targets, verifier#merged).
fn target_t(
    vk: &VerifyingKey,
    proof: &Decoded<'_>,
    memory: &MemoryChallenges,
    [s1, s2, s3]: [Fr; 3],
) -> Vec<(Gt, Fr)> {
    let [cm_d, cm_a, _, cm_c] = proof.commitments();
    let mut t = vec![
        (cm_a, Fr::ONE),
        (cm_c, -s3 * s1),
        (cm_d, -s3 * s2),
        (vk.cm_st, -s3),
        (vk.cm_sg, -s3 * memory.g),
        (vk.cm_sb, -s3 * memory.b),
    ];
    // cm_S has the parts that b_T and b_V multiply, too (spec: buses#preprocessed).
    if let Some([cm_tag, cm_value]) = vk.buses.as_deref().copied() {
        t.extend([(cm_tag, -s3 * memory.b_t), (cm_value, -s3 * memory.b_v)]);
    }
    t
}

/// The challenges of a proof, in the order of the transcript.
struct Challenges {
    memory: MemoryChallenges,
    r: Fr,
    zeta: Fr,
    s: [Fr; 3],
    x_inverse: Vec<Fr>,
    z: Fr,
    rho: Fr,
    merging: [Fr; 4],
}

impl Challenges {
    /// Replays the transcript (spec: verifier#challenges) with the same code as the prover's, fed
    /// with the bytes that were parsed.
    fn replay(
        sponge: impl Sponge,
        vk: &VerifyingKey,
        vk_digest: &[u8; 32],
        public_values: &[Fr],
        proof: &Decoded<'_>,
    ) -> Self {
        let mut transcript = FiatShamir::begin(sponge, vk_digest, vk.instances, public_values);
        let mut codes = proof.codes.iter().copied();
        // A missing code could not be told from an empty one, and the transcript would not bind it.
        let mut next = || codes.next().expect("`Decoded` has the code of every field");
        let memory = transcript.memory(next(), vk.has_buses());
        let (r, zeta) = transcript.batching(next(), next(), next(), next());
        let s = [(); 3].map(|()| transcript.fold(next(), next()));
        let mut x_inverse = Vec::with_capacity(vk.rounds());
        for _ in 0..vk.rounds() {
            x_inverse.push(transcript.gipa_round([(); 6].map(|()| next())));
        }
        let (z, rho) = transcript.opening(next(), next(), next(), next(), next());
        let merging = transcript.merging(next(), next());
        Self { memory, r, zeta, s, x_inverse, z, rho, merging }
    }
}

/// A proof's challenges and what follows from them: the right-hand sides as exponents of known GT
/// elements.
struct Replay<'a> {
    vk: &'a VerifyingKey,
    public_sum: Fr,
    zeta: Fr,
    s: [Fr; 3],
    s_product_inverse: Fr,
    z: Fr,
    rho: Fr,
    merging: [Fr; 4],
    /// The value f_v(z).
    v_value: Fr,
    /// The value y = f_w(z) + rho f_W(z).
    w_value: Fr,
    /// GT elements with their exponents in the right-hand sides of T, U and Z.
    targets: [Vec<(Gt, Fr)>; 3],
    #[cfg(test)]
    r_inverse: Fr,
}

#[cfg(test)]
impl Replay<'_> {
    /// Test double: a verifier that truncates the ledger key at another length than n.
    fn truncate_at(&mut self, ledger: u64) {
        let cut = |length: u64| geometric_value(self.z.square() * self.r_inverse, length);
        self.w_value += self.rho * (cut(ledger) - cut(self.vk.instances));
    }
}

impl<'a> Replay<'a> {
    /// Replays the transcript and computes the right-hand sides.
    // Above 60 lines: the equations in the order of the specification, which is the order to compare them in.
    fn new(
        sponge: impl Sponge,
        vk: &'a VerifyingKey,
        vk_digest: &[u8; 32],
        public_values: &[Fr],
        proof: &Decoded<'_>,
    ) -> Result<Self, VerifyError> {
        if public_values.len() != vk.public.len() {
            return Err(VerifyError::PublicValues {
                expected: vk.public.len(),
                found: public_values.len(),
            });
        }
        let Challenges { memory, r, zeta, s, x_inverse, z, rho, merging } =
            Challenges::replay(sponge, vk, vk_digest, public_values, proof);
        let public_sum = public_sum(vk, public_values, &memory)?;
        // r, r - 1, s_j and x_j are nonzero (spec: verifier#redraw). Batch inversion costs one
        // inversion per call.
        let mut x = x_inverse.clone();
        let mut inverses = [r, s[0], s[1], s[2], r - Fr::ONE];
        hekaton_arith::batch_invert(&mut x);
        hekaton_arith::batch_invert(&mut inverses);
        let [r_inverse, s1_inverse, s2_inverse, s3_inverse, r_minus_one_inverse] = inverses;

        let [_, _, cm_b, _] = proof.commitments();
        let [s1, s2, s3] = s;
        let mut t = target_t(vk, proof, &memory, s);
        // U = cm_B + s3^-1 (cm_gamma + s1^-1 cm_delta + s2^-1 cm_eta + (s1 s2)^-1 cm_Theta'), where
        // the part -zeta e(W_r, H) of cm_Theta' moves to the side of the pairings.
        let s_product_inverse = s1_inverse * s2_inverse * s3_inverse;
        let mut u = vec![
            (cm_b, Fr::ONE),
            (vk.cm_gamma, s3_inverse),
            (vk.cm_delta, s3_inverse * s1_inverse),
            (vk.cm_eta, s3_inverse * s2_inverse),
            (vk.cm_theta, s_product_inverse),
        ];
        // Z = sigma e(alpha, beta) - zeta P_pub e(K, H) - cross terms, where the part with e(K, H)
        // moves to the side of the pairings. sigma has n terms, n from the key (spec:
        // aggregation#claim).
        let sigma = (r.pow([vk.instances]) - Fr::ONE) * r_minus_one_inverse;
        let cross_factors = [-s1, -s1_inverse, -s2, -s2_inverse, -s3, s3_inverse];
        let mut target_z = vec![(vk.alpha_beta, sigma)];
        target_z.extend(proof.cross_terms().iter().copied().zip(cross_factors));
        // Each GIPA round adds x (T_L, U_L, Z_L) + x^-1 (T_R, U_R, Z_R) (spec: aggregation#gipa).
        for (products, (x, x_inverse)) in proof.rounds().zip(x.iter().zip(&x_inverse)) {
            for (target, pair) in
                [&mut t, &mut u, &mut target_z].into_iter().zip(products.chunks_exact(2))
            {
                target.extend([(pair[0], *x), (pair[1], *x_inverse)]);
            }
        }
        // f_W has n terms, n from the key: pads have no part in the ledger sum
        // (spec: aggregation#truncation).
        let v_value = fold_value(&x_inverse, z.square() * r_inverse);
        let w_value = fold_value(&x, z.square())
            + rho * geometric_value(z.square() * r_inverse, vk.instances);
        Ok(Self {
            vk,
            public_sum,
            zeta,
            s,
            s_product_inverse,
            z,
            rho,
            merging,
            v_value,
            w_value,
            targets: [t, u, target_z],
            #[cfg(test)]
            r_inverse,
        })
    }

    /// Checks the five equations at once (spec: verifier#merged). The factors were drawn after the
    /// openings, so errors in different equations cannot cancel.
    fn merged(&self, p: &Decoded<'_>) -> bool {
        let [rho1, rho2, rho3, rho4] = self.merging;
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let [s1, s2, s3] = self.s;
        // All points that are paired with H, from U (W_r), Z (K), v (G) and w.
        let with_h = G1Point::msm(
            &[p.w_f, p.w_r, g, p.pi_w, self.vk.k],
            &[
                rho4,
                rho4 * self.rho + rho1 * self.zeta * self.s_product_inverse,
                rho3 * self.v_value - rho4 * self.w_value,
                rho4 * self.z,
                rho2 * self.zeta * self.public_sum,
            ],
        );
        let left = MillerLoop::new(
            &[
                p.l_f,
                p.w_f.mul(&rho1),
                g.mul(&-rho3),
                self.vk.psi_1.sub(&g.mul(&self.z)).mul(&rho3),
                with_h,
                p.pi_w.mul(&-rho4),
                self.vk.k.mul(&(s1 * s2 * s3)),
            ],
            &[p.v_f.add(&p.r_f.mul(&rho2)), p.r_f, p.v_f, p.pi_v, h, self.vk.phi_2, p.v_e],
        );
        // The right-hand sides T, U and Z with their merging factors, as one multi-exponentiation.
        let factors = [Fr::ONE, rho1, rho2];
        let terms = self
            .targets
            .iter()
            .zip(factors)
            .flat_map(|(t, f)| t.iter().map(move |(e, x)| (*e, *x * f)));
        let (elements, exponents): (Vec<_>, Vec<_>) = terms.unzip();
        left.finish() == Gt::msm(&elements, &exponents)
    }

    /// Evaluates the equations one by one: left-hand side minus right-hand side, the neutral
    /// element where they hold (spec: verifier#defects).
    fn defects(&self, p: &Decoded<'_>) -> [(Equation, Gt); 5] {
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let [s1, s2, s3] = self.s;
        let target = |i: usize| {
            let (elements, exponents): (Vec<_>, Vec<_>) = self.targets[i].iter().copied().unzip();
            Gt::msm(&elements, &exponents).neg()
        };
        let product = |a: &[G1Point], b: &[G2Point]| MillerLoop::new(a, b).finish();
        let t = product(&[p.l_f, self.vk.k.mul(&(s1 * s2 * s3))], &[p.v_f, p.v_e]).add(&target(0));
        let u = product(&[p.w_f, p.w_r.mul(&(self.zeta * self.s_product_inverse))], &[p.r_f, h])
            .add(&target(1));
        let z = product(&[p.l_f, self.vk.k.mul(&(self.zeta * self.public_sum))], &[p.r_f, h])
            .add(&target(2));
        let shifted = self.vk.psi_1.sub(&g.mul(&self.z));
        let v = product(&[g.neg(), shifted, g.mul(&self.v_value)], &[p.v_f, p.pi_v, h]);
        let opened =
            G1Point::msm(&[p.w_f, p.w_r, g, p.pi_w], &[Fr::ONE, self.rho, -self.w_value, self.z]);
        let w = product(&[opened, p.pi_w.neg()], &[h, self.vk.phi_2]);
        [
            (Equation::T, t),
            (Equation::U, u),
            (Equation::Z, z),
            (Equation::KeyV, v),
            (Equation::KeyW, w),
        ]
    }
}
