//! The hash and the encodings of direct proofs, which are those of EIP-2537 (spec: direct#key): numbers of 32 bytes and coordinates of 64, all
//! big-endian. Infinity is all zeros.

use ark_ff::{BigInteger, PrimeField};
use hekaton_arith::{Fr, Group};
use sha3::{Digest, Keccak256};

/// Length in bytes of a coordinate in Fq of an uncompressed point.
const COORDINATE: usize = 48;

/// The Keccak-256 of these bytes, one after the other.
pub(crate) fn keccak(parts: &[&[u8]]) -> [u8; 32] {
    let hasher = parts.iter().fold(Keccak256::new(), |hasher, part| hasher.chain_update(part));
    hasher.finalize().into()
}

/// Appends a number.
pub fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&[0; 24]);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends a scalar.
pub fn put_scalar(out: &mut Vec<u8>, scalar: &Fr) {
    out.extend_from_slice(&scalar.into_bigint().to_bytes_be());
}

/// Appends a point: x and y, in G2 c0 before c1.
pub fn put_point<G: Group>(out: &mut Vec<u8>, point: &G) {
    let mut bytes = vec![0; G::UNCOMPRESSED];
    if !point.is_identity() {
        point.write_uncompressed(&mut bytes);
    }
    // Zcash's encoding has c1 first.
    let elements = bytes.chunks(G::UNCOMPRESSED / 2);
    for coordinate in elements.flat_map(|element| element.chunks(COORDINATE).rev()) {
        out.extend_from_slice(&[0; 64 - COORDINATE]);
        out.extend_from_slice(coordinate);
    }
}

/// Text with zeros to 32 bytes.
pub(crate) const fn tag(text: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.split_at_mut(text.len()).0.copy_from_slice(text);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_arith::{G1Point, G2Point};

    /// The generators in the encoding of EIP-2537, from its list of constants.
    #[test]
    fn points_have_the_encoding_of_the_precompiles() {
        let hex = |point: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            point(&mut out);
            hex::encode(out)
        };
        let g = hex(&|out| put_point(out, &G1Point::generator()));
        let h = hex(&|out| put_point(out, &G2Point::generator()));
        assert_eq!((g.len(), h.len()), (2 * 128, 2 * 256));
        assert!(g.starts_with(&("0".repeat(32) + "17f1d3a73197d7942695638c4fa9ac0f")), "{g}");
        assert!(g[128..].starts_with(&("0".repeat(32) + "08b3f481e3aaa0f1a09e30ed741d8ae4")));
        assert!(h.starts_with(&("0".repeat(32) + "024aa2b2f08f0a91260805272dc51051")), "{h}");
        assert!(h[128..].starts_with(&("0".repeat(32) + "13e02b6052719f607dacd3a088274f65")));
        assert_eq!(hex(&|out| put_point(out, &G2Point::IDENTITY)), "00".repeat(256));
        let number = hex(&|out| put_number(out, 0x0102));
        assert_eq!(number, hex(&|out| put_scalar(out, &Fr::from(0x0102u64))));
        assert_eq!(number, "00".repeat(30) + "0102");
    }
}
