//! Setup ceremonies: a chain of contributors makes the keys of a family jointly, so that nobody can forge proofs under them
//! unless all contributors of one chain kept and pooled their secrets (spec: ceremony#purpose).
//!
//! There are two kinds of [transcript](Transcript). *Powers* of tau, phi and psi do not depend on a circuit and serve any
//! number of families. A *family* refers to finished powers, and has the delta and eta of each of its types.
//!
//! | step | function |
//! |---|---|
//! | begin | [`new_powers`], [`new_powers_from`], [`new_powers_after`], [`new_family`] |
//! | contribute | [`contribute()`], from a directory or a state file |
//! | accept | [`Coordinator::add`] |
//! | verify | [`verify_powers`], [`verify_family`]; the records alone: [`verify_records`] |
//! | keys | [`Family::key`], [`Family::proving_key`] |
//!
//! All long work runs on the threads of rayon's current pool.

#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "tests use small numbers"))]

mod chain;
mod check;
mod contribute;
mod coordinator;
mod cost;
mod family;
mod genesis;
mod import;
mod lagrange;
mod log;
mod membership;
mod of_keys;
mod powers;
mod random;
mod record;
mod secrets;
mod sections;
mod segment;
#[cfg(test)]
mod tests;
mod transcript;
mod verify;
mod words;

pub use chain::Checked;
pub use check::{Broken, CeremonyError, Check};
pub use contribute::{
    Contributor, Response, bytes_of_chains, contribute, most_response_bytes, points_of_chains,
};
pub use coordinator::{
    Coordinator, FamilyPlan, is_finished, new_family, new_powers, new_powers_after,
};
pub use cost::{CeremonyCost, Rates, StepCost, TypeCost, ceremony_cost, seconds_of_chains};
pub use genesis::{
    Chain, Earlier, FamilyGenesis, Genesis, Import, Layout, Origin, PowersGenesis, Subject,
    TypeGenesis, domain_for,
};
pub use import::{PowersFile, new_powers_from};
pub use log::{Log, MOST_LOG};
pub use of_keys::transcript_of_keys;
pub use record::{
    Digests, Kind, LedgerStep, MAX_NAME, PowersStep, Proof, Record, Step, TypeStep, first_head,
    is_name,
};
pub use secrets::Seed;
pub use sections::{Group, Section, Vector};
pub use transcript::{MOST_GENESIS, NamedFile, Transcript};
pub use verify::{
    Family, Powers, Receipt, contributors, includes, key_has_last_points, verify_family,
    verify_powers, verify_records,
};
pub use words::{chains_json, chains_text, check_receipt, receipt, record_json};
