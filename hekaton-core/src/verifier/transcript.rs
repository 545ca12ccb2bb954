//! The Fiat–Shamir transcript: one sponge, never restarted, and the order in which it absorbs
//! messages and produces challenges.
//!
//! [`FiatShamir`] is that order, written once and used by prover and verifier, so neither can draw
//! a challenge before it has absorbed everything the challenge must bind (spec:
//! verifier#challenges). The sponge is Merlin's STROBE, which absorbs label and length with each
//! message.

use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, fr_from_uniform, fr_to_bytes};
use hekaton_circuit::MemoryChallenges;

/// Absorbs messages and produces challenges; a trait so that tests can freeze the challenges.
pub(crate) trait Sponge {
    fn absorb(&mut self, label: &'static str, bytes: &[u8]);
    fn squeeze(&mut self, label: &'static str, out: &mut [u8]);
}

impl Sponge for Box<dyn Sponge> {
    fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
        (**self).absorb(label, bytes);
    }

    fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
        (**self).squeeze(label, out);
    }
}

/// The sponge of real proofs.
pub(crate) struct Merlin(merlin::Transcript);

impl Merlin {
    pub(crate) fn new() -> Self {
        Self(merlin::Transcript::new(b"hekaton-v1"))
    }
}

impl Sponge for Merlin {
    fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
        self.0.append_message(label.as_bytes(), bytes);
    }

    fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
        self.0.challenge_bytes(label.as_bytes(), out);
    }
}

/// The order of the transcript. Each step absorbs encodings exactly as they are in the proof.
pub(crate) struct FiatShamir<S> {
    sponge: S,
    instances: u64,
}

impl<S: Sponge> FiatShamir<S> {
    /// Step 0: absorbs the statement (spec: verifier#statement).
    ///
    /// The public values come before g and b: one chosen after them could repair any ledger sum
    /// (adversarial test 43).
    pub(crate) fn begin(
        mut sponge: S,
        vk_digest: &[u8; 32],
        instances: u64,
        public_values: &[Fr],
    ) -> Self {
        sponge.absorb("verifying key", vk_digest);
        sponge.absorb("public values: count", &(public_values.len() as u64).to_le_bytes());
        for value in public_values {
            sponge.absorb("public value", &fr_to_bytes(value));
        }
        Self { sponge, instances }
    }

    /// Step 1: absorbs the commitment to all subtraces, draws g and b, and for a circuit with buses
    /// b_T and b_V (spec: verifier#memory-challenges, buses#challenges).
    ///
    /// This fixes all values of shared wires, and all marked values, before the challenges of the
    /// memory check exist.
    pub(crate) fn memory(&mut self, cm_d: &[u8], buses: bool) -> MemoryChallenges {
        self.sponge.absorb("cm_D", cm_d);
        let memory = MemoryChallenges::new(self.scalar("g"), self.scalar("b"));
        match buses {
            false => memory,
            true => MemoryChallenges { b_t: self.scalar("b_T"), b_v: self.scalar("b_V"), ..memory },
        }
    }

    /// Step 2: absorbs the commitments to the proofs and the ledger element, draws r and zeta
    /// (spec: verifier#batching, verifier#redraw).
    pub(crate) fn batching(
        &mut self,
        cm_a: &[u8],
        cm_b: &[u8],
        cm_c: &[u8],
        v_e: &[u8],
    ) -> (Fr, Fr) {
        self.sponge.absorb("cm_A", cm_a);
        self.sponge.absorb("cm_B", cm_b);
        self.sponge.absorb("cm_C", cm_c);
        self.sponge.absorb("V_e", v_e);
        let r = loop {
            let r = self.scalar("r");
            // With r^n = 1 the weights r^i would repeat and sigma would degenerate.
            let excluded = r.is_zero() || r == Fr::ONE || r.pow([self.instances]) == Fr::ONE;
            // A key with 0 instances is refused when it is read, but r^0 = 1 must not loop forever.
            if !excluded || self.instances == 0 {
                break r;
            }
        };
        (r, self.scalar("zeta"))
    }

    /// Steps 3 to 5: absorbs the two cross terms of a block fold, draws its s
    /// (spec: verifier#fold-challenges).
    ///
    /// A cross term chosen after its challenge could repair any claim (adversarial test 35).
    pub(crate) fn fold(&mut self, plus: &[u8], minus: &[u8]) -> Fr {
        self.sponge.absorb("X+", plus);
        self.sponge.absorb("X-", minus);
        loop {
            let s = self.scalar("s");
            if !s.is_zero() {
                break s;
            }
        }
    }

    /// Step 6: absorbs the six products of a GIPA round, draws x_j^-1 (spec:
    /// verifier#round-challenges).
    ///
    /// The nonzero 128-bit challenge is the inverse of x_j because x_j^-1 multiplies in G2, where
    /// short scalars save most (spec: aggregation#gipa-challenges).
    pub(crate) fn gipa_round(&mut self, products: [&[u8]; 6]) -> Fr {
        for (label, product) in ["T_L", "T_R", "U_L", "U_R", "Z_L", "Z_R"].into_iter().zip(products)
        {
            self.sponge.absorb(label, product);
        }
        loop {
            let x = self.short("x");
            if !x.is_zero() {
                break x;
            }
        }
    }

    /// Step 7: absorbs the folded vectors and W_r, draws z and rho
    /// (spec: verifier#opening-challenges).
    ///
    /// The point z comes after everything that is opened at it.
    pub(crate) fn opening(
        &mut self,
        l: &[u8],
        r: &[u8],
        v: &[u8],
        w: &[u8],
        w_r: &[u8],
    ) -> (Fr, Fr) {
        for (label, element) in [("L_f", l), ("R_f", r), ("v_f", v), ("w_f", w), ("W_r", w_r)] {
            self.sponge.absorb(label, element);
        }
        (self.scalar("z"), self.scalar("rho"))
    }

    /// Step 8: absorbs the openings, draws the four factors that merge the equations
    /// (spec: verifier#merging-challenges).
    pub(crate) fn merging(&mut self, pi_v: &[u8], pi_w: &[u8]) -> [Fr; 4] {
        self.sponge.absorb("pi_v", pi_v);
        self.sponge.absorb("pi_w", pi_w);
        [(); 4].map(|()| self.short("rho"))
    }

    /// Draws a scalar: 64 bytes reduced mod r.
    fn scalar(&mut self, label: &'static str) -> Fr {
        let mut bytes = [0; 64];
        self.sponge.squeeze(label, &mut bytes);
        fr_from_uniform(&bytes)
    }

    /// Draws a scalar of 128 bits.
    fn short(&mut self, label: &'static str) -> Fr {
        let mut bytes = [0; 16];
        self.sponge.squeeze(label, &mut bytes);
        Fr::from(u128::from_le_bytes(bytes))
    }
}
