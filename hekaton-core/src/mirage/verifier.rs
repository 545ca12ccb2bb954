//! Verification of single proofs, and of many by one random combination (spec: mirage#verify,
//! mirage#batch, mirage#find-bad).

use super::MirageProof;
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, MillerLoop};

/// The fixed elements in the verification equation.
#[derive(Clone, Debug)]
pub struct MirageVerifier {
    pub(crate) alpha_beta: Gt,
    pub(crate) k: G1Point,
    pub(crate) gamma: G2Point,
    /// The elements delta, eta and Theta of each type.
    pub(crate) types: Vec<[G2Point; 3]>,
}

/// A proof with the elements that it is verified against.
#[derive(Clone, Copy, Debug)]
pub struct MirageInstance {
    /// Index of the type.
    pub kind: usize,
    /// The public part `S = sum IC_j z_j` over the public wires.
    pub s: G1Point,
    /// The commitment D.
    pub d: G1Point,
    /// The proof.
    pub proof: MirageProof,
}

impl MirageVerifier {
    /// Checks `e(A,B) = e(alpha,beta) + e(S,gamma) + e(C,delta_c) + e(D,eta_c) + e(E,Theta_c)`
    /// (spec: mirage#verify).
    pub fn verify(&self, instance: &MirageInstance) -> bool {
        self.verify_all(&[*instance], &[Fr::ONE])
    }

    /// Checks the linear combination of all equations with the factors: n + 1 + 3 k Miller loops
    /// (spec: mirage#batch).
    ///
    /// # Panics
    /// When the number of factors differs from the number of instances.
    pub fn verify_all(&self, instances: &[MirageInstance], factors: &[Fr]) -> bool {
        assert_eq!(instances.len(), factors.len(), "one factor per instance");
        let a: Vec<G1Point> = instances.iter().map(|s| s.proof.a).collect();
        let b: Vec<G2Point> = instances.iter().map(|s| s.proof.b).collect();
        // A has factors and B is different in every equation: n Miller loops that nothing can
        // merge.
        let left = MillerLoop::new(&G1Point::mul_each(&a, factors), &b);
        let s: Vec<G1Point> = instances.iter().map(|s| s.s).collect();
        let mut points = vec![G1Point::msm(&s, factors).neg()];
        let mut bases = vec![self.gamma];
        // Right-hand sides collected by type: delta_c, eta_c and Theta_c pair once per type.
        for (kind, elements) in self.types.iter().enumerate() {
            let chosen: Vec<(&MirageInstance, Fr)> = instances
                .iter()
                .zip(factors.iter().copied())
                .filter(|(s, _)| s.kind == kind)
                .collect();
            if chosen.is_empty() {
                continue;
            }
            let weights: Vec<Fr> = chosen.iter().map(|(_, f)| *f).collect();
            let c: Vec<G1Point> = chosen.iter().map(|(s, _)| s.proof.c).collect();
            let d: Vec<G1Point> = chosen.iter().map(|(s, _)| s.d).collect();
            // E = e K, so the points E are combined as scalars.
            let e = chosen.iter().fold(Fr::zero(), |sum, (s, f)| sum + s.proof.e * f);
            points.extend([
                G1Point::msm(&c, &weights).neg(),
                G1Point::msm(&d, &weights).neg(),
                self.k.mul(&-e),
            ]);
            bases.extend(elements);
        }
        let sum: Fr = factors.iter().sum();
        left.combine(&MillerLoop::new(&points, &bases)).finish() == self.alpha_beta.mul(&sum)
    }

    /// Returns the indices of the instances that do not verify, by bisection over random
    /// combinations (spec: mirage#find-bad). `random` returns factors that the provers could not
    /// know.
    pub fn find_bad(
        &self,
        instances: &[MirageInstance],
        random: &mut dyn FnMut() -> Fr,
    ) -> Vec<usize> {
        // Fresh factors per set: errors that cancel in one combination do not cancel in the next.
        let factors: Vec<Fr> = instances.iter().map(|_| random()).collect();
        if instances.is_empty() || self.verify_all(instances, &factors) {
            return Vec::new();
        }
        if instances.len() == 1 {
            return vec![0];
        }
        let middle = instances.len() / 2;
        let mut bad = self.find_bad(&instances[..middle], random);
        bad.extend(self.find_bad(&instances[middle..], random).into_iter().map(|i| i + middle));
        bad
    }
}
