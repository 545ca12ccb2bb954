//! Ready-made partitioned circuits.
//!
//! - [`merkle`]: the SHA-256 Merkle tree of a file, with the root as public value.
//! - [`chain`]: the smallest useful example, a long chain of squarings split into links.
//! - [`sha256`]: the SHA-256 gadget that `merkle` is built from, and one by look-ups.
//! - [`keccak`]: Keccak-256 and SHA3-256, by look-ups and by bits.

#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "small numbers of tests"))]

mod bits;
pub mod chain;
pub mod keccak;
pub mod merkle;
mod message;
pub mod sha256;
mod switch;

pub use chain::Chain;
pub use merkle::Merkle;
pub use message::Message;

/// The digest that format 1 had for a layout, to pin layouts across formats.
#[cfg(test)]
fn layout_digest_of_format_1(circuit: &impl hekaton_circuit::Circuit) -> String {
    use hekaton_circuit::{Masking, PreparedCircuit};
    let wiring = PreparedCircuit::new(circuit).unwrap().layout().wiring(Masking::Masked);
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 wiring");
    hasher.update(&[1]).update(&(wiring.types.len() as u64).to_le_bytes());
    for kind in &wiring.types {
        hasher.update(&(kind.name.len() as u64).to_le_bytes()).update(kind.name.as_bytes());
        hasher.update(&(kind.slots as u64).to_le_bytes());
    }
    hasher.update(&(wiring.type_of.len() as u64).to_le_bytes()).update(&wiring.type_map_digest());
    for slot in &wiring.slots {
        hasher.update(&slot.address.to_le_bytes()).update(&slot.multiplicity.to_le_bytes());
    }
    hasher.update(&(wiring.public.len() as u64).to_le_bytes());
    for wire in &wiring.public {
        hasher.update(&wire.address.to_le_bytes()).update(&wire.multiplicity.to_le_bytes());
    }
    hex::encode(hasher.finalize().as_bytes())
}
