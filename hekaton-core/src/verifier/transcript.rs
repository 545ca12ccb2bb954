//! The Fiat–Shamir transcript: one sponge, never restarted, and the order in which it absorbs and gives challenges.
//!
//! [`FiatShamir`] is that order, written once and used by prover and verifier, so neither can draw a challenge before it
//! has absorbed what the challenge must bind (spec: verifier#challenges). The sponge is Merlin's STROBE: labels and lengths
//! of all messages are absorbed with them.

use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, fr_from_uniform, fr_to_bytes};
use hekaton_circuit::MemoryChallenges;

/// What absorbs messages and gives challenges; a trait so that tests can freeze the challenges.
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

/// The schedule of the transcript. Each step absorbs encodings exactly as they stand in the proof.
pub(crate) struct FiatShamir<S> {
    sponge: S,
    instances: u64,
}

impl<S: Sponge> FiatShamir<S> {
    /// Step 0: the statement.
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

    /// Step 1: the commitment to all subtraces; gives g and b.
    pub(crate) fn memory(&mut self, cm_d: &[u8]) -> MemoryChallenges {
        self.sponge.absorb("cm_D", cm_d);
        MemoryChallenges { g: self.scalar("g"), b: self.scalar("b") }
    }

    /// Step 2: the commitments to the proofs and the ledger element; gives r and zeta.
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
            // no key has 0 instances; if one is made to, it must not end in a loop
            let excluded = r.is_zero() || r == Fr::ONE || r.pow([self.instances]) == Fr::ONE;
            if !excluded || self.instances == 0 {
                break r;
            }
        };
        (r, self.scalar("zeta"))
    }

    /// Steps 3 to 5: the two cross terms of a block fold; gives its s.
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

    /// Step 6: the six products of a GIPA round; gives x_j^-1, 128 bits, nonzero.
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

    /// Step 7: what is left of the vectors; gives z and rho.
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

    /// Step 8: the openings; gives the four factors that merge the equations.
    pub(crate) fn merging(&mut self, pi_v: &[u8], pi_w: &[u8]) -> [Fr; 4] {
        self.sponge.absorb("pi_v", pi_v);
        self.sponge.absorb("pi_w", pi_w);
        [(); 4].map(|()| self.short("rho"))
    }

    fn scalar(&mut self, label: &'static str) -> Fr {
        let mut bytes = [0; 64];
        self.sponge.squeeze(label, &mut bytes);
        fr_from_uniform(&bytes)
    }

    fn short(&mut self, label: &'static str) -> Fr {
        let mut bytes = [0; 16];
        self.sponge.squeeze(label, &mut bytes);
        Fr::from(u128::from_le_bytes(bytes))
    }
}
