//! The identity of a run: its keys and its input.

use hekaton_core::{DirectRun, VerifyingKey};
use serde::{Deserialize, Serialize};

/// The keys and the input of a run. Runs with the same identity and the same seed have the same
/// proof.
#[derive(Clone, PartialEq, Eq)]
pub struct RunIdentity {
    pub(crate) public: PublicIdentity,
    input: [u8; 32],
}

impl std::fmt::Debug for RunIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The plain digest of the input would let a reader of the output confirm a guess of the
        // input.
        f.debug_struct("RunIdentity").field("public", &self.public).finish_non_exhaustive()
    }
}

/// The part of the identity that may be public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublicIdentity {
    circuit: String,
    parameters: String,
    pub(crate) subcircuits: u64,
    verifying_key_digest: String,
    layout_digest: String,
    /// The run digest of a direct run (spec: direct#run); none for an aggregated proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    direct_run_digest: Option<String>,
}

impl RunIdentity {
    /// Creates the identity of a run under a key. `input` is a digest of **everything** that the
    /// witness depends on, for example BLAKE3 of the input file: resuming with another input under
    /// the same seed would not be zero-knowledge.
    pub fn new(key: &VerifyingKey, input: [u8; 32]) -> Self {
        let public = PublicIdentity {
            circuit: key.circuit.clone(),
            parameters: key.parameters.clone(),
            subcircuits: key.instances,
            verifying_key_digest: hex::encode(key.digest()),
            layout_digest: hex::encode(key.layout),
            direct_run_digest: None,
        };
        Self { public, input }
    }

    /// Makes it the identity of a direct run: a run of one kind, or under one key and context, is not
    /// resumed as another (spec: direct#run).
    #[must_use]
    pub fn direct(mut self, run: &DirectRun<'_>) -> Self {
        self.public.direct_run_digest = Some(hex::encode(run.digest()));
        self
    }

    /// The digest of the input as stored in `run.json`, keyed so that a guess of the input cannot be
    /// confirmed without the seed.
    pub(crate) fn hidden_input(&self, seed: &[u8; 32]) -> String {
        let key = blake3::derive_key("hekaton-v1 run input", seed);
        hex::encode(blake3::keyed_hash(&key, &self.input).as_bytes())
    }
}

impl PublicIdentity {
    /// Reports whether the run is under this key, and a direct one with this digest or an aggregated one.
    pub(crate) fn is_for(&self, key: &VerifyingKey, direct: Option<[u8; 32]>) -> bool {
        self.verifying_key_digest == hex::encode(key.digest())
            && self.direct_run_digest == direct.map(hex::encode)
    }

    /// The differences from `now`, one clause each.
    pub(crate) fn differences(&self, now: &Self) -> Vec<String> {
        let fields = [
            ("circuit", &self.circuit, &now.circuit),
            ("parameters", &self.parameters, &now.parameters),
            ("layout", &self.layout_digest, &now.layout_digest),
            ("verifying key", &self.verifying_key_digest, &now.verifying_key_digest),
        ];
        let differ = fields.into_iter().filter(|(_, then, now)| then != now);
        // The first digits of a digest suffice to tell two apart.
        let short = |text: &str| match text.len() {
            64 => format!("{}..", &text[..12]),
            _ => text.to_owned(),
        };
        let mut out: Vec<String> = differ
            .map(|(what, then, now)| {
                format!("its {what}: {} then, {} now", short(then), short(now))
            })
            .collect();
        let kind = |run: &Self| match run.direct_run_digest {
            Some(_) => "a direct proof",
            None => "an aggregated proof",
        };
        match (&self.direct_run_digest, &now.direct_run_digest) {
            (Some(then), Some(now)) if then != now => out.push(format!(
                "its direct key or its context: run digest {} then, {} now",
                short(then),
                short(now)
            )),
            (then, found) if then.is_some() != found.is_some() => {
                out.push(format!("its kind: {} then, {} now", kind(self), kind(now)));
            }
            _ => {}
        }
        if self.subcircuits != now.subcircuits {
            out.push(format!(
                "its number of subcircuits: {} then, {} now",
                self.subcircuits, now.subcircuits
            ));
        }
        out
    }
}
