//! Tests of the gadget by bits, and of the one by look-ups.

use super::*;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::ConstraintSystem;
use hekaton_circuit::{Closures, check, count};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Mutex};

fn value(digest: &Digest) -> Vec<u8> {
    digest.iter().flat_map(|w| w.value.unwrap().to_be_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn agrees_with_sha256_and_is_satisfied(
        bytes in prop::collection::vec(any::<u8>(), 0..140),
        split in 0usize..140,
    ) {
        let split = split.min(bytes.len());
        let cs = ConstraintSystem::<Fr>::new_ref();
        let (constant, secret) = bytes.split_at(split);
        let message = Message::new().constant(constant);
        let message = message.witness(&cs, secret.len(), Some(secret)).unwrap();
        let digest = message.sha256(&cs).unwrap();
        prop_assert_eq!(value(&digest), Sha256::digest(&bytes).to_vec());
        cs.finalize();
        prop_assert!(cs.is_satisfied().unwrap());
    }
}

/// Every variable is constrained: flipping any witness bit violates a constraint.
#[test]
fn no_variable_is_free() {
    let cs = ConstraintSystem::<Fr>::new_ref();
    let digest = Message::new().witness(&cs, 3, Some(b"abc")).unwrap().sha256(&cs).unwrap();
    assert_eq!(
        hex::encode(value(&digest)),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    cs.finalize();
    let matrices = &cs.to_matrices().unwrap()[ark_relations::gr1cs::R1CS_PREDICATE_LABEL];
    let z = [cs.instance_assignment().unwrap(), cs.witness_assignment().unwrap()].concat();
    // rows by variable
    let mut rows = vec![Vec::new(); z.len()];
    for m in matrices {
        for (i, row) in m.iter().enumerate() {
            row.iter().for_each(|(_, v)| rows[*v].push(i));
        }
    }
    let dot = |row: &[(Fr, usize)], z: &[Fr]| row.iter().map(|(k, v)| *k * z[*v]).sum::<Fr>();
    let mut z2 = z.clone();
    for v in 1..z.len() {
        // a flipped bit is the most plausible lie
        z2[v] = Fr::ONE - z[v];
        let broken = rows[v].iter().any(|i| {
            dot(&matrices[0][*i], &z2) * dot(&matrices[1][*i], &z2) != dot(&matrices[2][*i], &z2)
        });
        assert!(broken, "variable {v} can be flipped");
        z2[v] = z[v];
    }
}

#[test]
fn constraint_counts_are_pinned() {
    let count = |constant: usize, witness: usize| {
        let cs = ConstraintSystem::<Fr>::new_ref();
        let bytes = vec![7u8; witness];
        let message = Message::new()
            .witness(&cs, witness, Some(&bytes))
            .unwrap()
            .constant(&vec![1; constant]);
        message.sha256(&cs).unwrap();
        cs.num_constraints()
    };
    let counts = [count(0, 55), count(1, 64), count(0, 119)];
    assert_eq!(counts, [26_253, 45_792, 53_181]);
    assert_eq!(count(40, 0), 0);
}

/// Hashes a message, with the halves of its digest as public values.
fn circuit(message: &[u8], longest: usize, claimed: [u8; 32]) -> Closures<Vec<u8>> {
    let (bytes, len) = (message.to_vec(), message.len());
    let tables = Arc::new(Mutex::new(None));
    let of_layout = Arc::clone(&tables);
    Closures::new(
        move |layout| {
            let tables = Tables::new(longest, |name, table| layout.table(name, table));
            *of_layout.lock().unwrap() = Some(tables);
            let wires = [0, 1].map(|i| layout.public_output("digest", i));
            let kind = layout.subcircuit_type("hash", 2);
            let instance = layout.instance(kind);
            (0..2).for_each(|slot| layout.write(instance, slot, wires[slot]));
            Ok(wires.to_vec())
        },
        move |wires, values| {
            let halves = digest_halves(&claimed);
            wires.iter().zip(halves).for_each(|(wire, half)| values.set(*wire, half));
            Ok(())
        },
        move |_| Ok(bytes.clone()),
        move |subcircuit, bytes| {
            let tables = tables.lock().unwrap().clone().unwrap();
            let bytes = bytes.map(Vec::as_slice);
            let message = Message::new().committed(subcircuit, len, bytes)?;
            let digest = LookUps::new(subcircuit, &tables)?.hash(message)?;
            for (slot, half) in digest.chunks_exact(4).enumerate() {
                let FpVar::Var(wire) = subcircuit.slot(slot)? else { unreachable!() };
                enforce_half(&subcircuit.cs(), half, wire.variable)?;
            }
            Ok(())
        },
    )
}

#[test]
fn look_ups_agree_with_sha256() {
    for (len, longest) in [
        (0, Tables::SMALL),
        (1, Tables::SMALL),
        (55, Tables::LARGE),
        (56, Tables::SMALL),
        (63, Tables::SMALL),
        (64, 7),
        (65, Tables::SMALL),
        (119, Tables::SMALL),
        (120, Tables::SMALL),
        (200, Tables::SMALL),
        (70, 5),
        (3, 1),
    ] {
        let message: Vec<u8> = (0..len).map(|i| (i * i + 5) as u8).collect();
        let mut digest: [u8; 32] = Sha256::digest(&message).into();
        let report = check(&circuit(&message, longest, digest), &(), |_, _| {}).unwrap();
        assert_eq!((report.violations, report.unbalanced), (vec![], vec![]), "{len} bytes");
        digest[7] ^= 1;
        let report = check(&circuit(&message, longest, digest), &(), |_, _| {}).unwrap();
        assert_eq!(report.violated, 1);
    }
}

#[test]
fn rows_of_look_ups_are_pinned() {
    let rows = |len: usize, longest: usize| {
        let types = count(&circuit(&vec![1; len], longest, [0; 32])).unwrap();
        let rows_of = |is_own: bool| {
            let own = types.iter().filter(|kind| (kind.name == "hash") == is_own);
            own.map(|kind| kind.constraints * kind.instances).sum::<usize>()
        };
        [rows_of(true), rows_of(false)]
    };
    let [one, two] = [55, 119].map(|len| rows(len, Tables::LARGE));
    assert_eq!([one[0], two[0] - one[0]], [5_077, 4_952]);
    assert_eq!(one[1], 159_524);
    assert_eq!(rows(55, Tables::SMALL), [8_181, 784]);
}

/// All lengths around the ends of blocks, by bits.
#[test]
fn padding_agrees_with_sha256() {
    for len in [0, 1, 55, 56, 63, 64, 65, 119, 120, 128] {
        let bytes: Vec<u8> = (0..len).map(|i| (i * 3 + 1) as u8).collect();
        let cs = ConstraintSystem::<Fr>::new_ref();
        let message = Message::new().witness(&cs, len, Some(&bytes)).unwrap();
        assert_eq!(value(&message.sha256(&cs).unwrap()), Sha256::digest(&bytes).to_vec());
        cs.finalize();
        assert!(cs.is_satisfied().unwrap(), "{len} bytes");
    }
}

/// Numbers that may be r or more have no row: a wire would be that of two digests.
#[test]
fn numbers_of_more_bits_than_r_are_refused() {
    let cs = ConstraintSystem::<Fr>::new_ref();
    let message = Message::new().witness(&cs, 32, Some(&[1; 32])).unwrap();
    assert!(message.enforce_number(&cs, 31, [Variable::One, Variable::Zero]).is_ok());
    assert!(message.enforce_number(&cs, 32, [Variable::One, Variable::Zero]).is_err());
    let digest = message.sha256(&cs).unwrap();
    assert!(enforce_half(&cs, &digest[..4], Variable::One).is_ok());
    for words in [3, 5, 8] {
        assert!(enforce_half(&cs, &digest[..words], Variable::One).is_err());
    }
}

/// Spread words: a sum of three has one split into two spread words, also modulo a prime that is larger
/// than all sums. Sums of dense words have one carry. All cases of words of three bits.
#[test]
fn sums_are_split_in_one_way() {
    let (len, prime) = (3u32, 257i64);
    let words: Vec<i64> = (0..1u32 << len).map(|bits| look_ups::spread(bits) as i64).collect();
    let (xor, majority) =
        (|[a, b, c]: [u32; 3]| a ^ b ^ c, |[a, b, c]: [u32; 3]| (a & b) ^ (a & c) ^ (b & c));
    for bits in 0..1u32 << (3 * len) {
        let three = [0, 1, 2].map(|i| bits >> (i * len) & ((1 << len) - 1));
        let sum: i64 = three.iter().map(|word| words[*word as usize]).sum();
        let mut found = Vec::new();
        for p in 0..words.len() {
            for q in 0..words.len() {
                if (sum - words[p] - 2 * words[q]) % prime == 0 {
                    found.push((p as u32, q as u32));
                }
            }
        }
        assert_eq!(found, [(xor(three), majority(three))]);
    }
    // carry = (total - sum) / 2^len mod p
    let inverse = (1..prime).find(|x| (x << len) % prime == 1).unwrap();
    let carries = 1 << look_ups::CARRY;
    let sums = |total: i64, len_of_sum: u32| -> Vec<i64> {
        let is_sum = |sum: &i64| ((total - sum) * inverse).rem_euclid(prime) < carries;
        (0..1 << len_of_sum).filter(is_sum).collect()
    };
    for total in 0..=7 * ((1i64 << len) - 1) {
        assert_eq!(sums(total, len), [total % (1 << len)]);
    }
    // Control: a sum that may have one bit more.
    assert_eq!(sums(12, len + 1), [4, 12]);
}

/// The compression function alone, and digests that change places.
#[test]
fn blocks_are_compressed_and_digests_change_places() {
    let block: [u8; 64] = std::array::from_fn(|i| (i * 7 + 3) as u8);
    let mut state = IV;
    sha2::compress256(&mut state, &[block.into()]);
    let expected: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
    for swap in [0u8, 1] {
        let cs = ConstraintSystem::<Fr>::new_ref();
        let message = Message::new().witness(&cs, 64, Some(&block)).unwrap();
        let before = cs.num_constraints();
        let compressed = message.compress(&cs).unwrap();
        assert_eq!(cs.num_constraints() - before, 26_064);
        assert_eq!(value(&compressed), expected);
        assert!(Message::new().witness(&cs, 63, Some(&block[1..])).unwrap().compress(&cs).is_err());

        let other = Message::new().sha256(&cs).unwrap();
        let bit = Message::new().witness(&cs, 1, Some(&[swap])).unwrap();
        let before = cs.num_constraints();
        let both = bit.swap(&cs, 7, &compressed, &other).unwrap();
        assert_eq!(cs.num_constraints() - before, 512);
        let mut expected = [value(&compressed), value(&other)];
        expected.rotate_left(swap.into());
        assert_eq!(both.map(|digest| value(&digest)), expected);
        assert_eq!(
            value(&compressed)[31] & !1 | 1,
            value(&[compressed[7].with_last_bit(true); 8])[3]
        );
        cs.finalize();
        assert!(cs.is_satisfied().unwrap());
        // The same variables with the bit the other way round.
        let mut bits = cs.witness_assignment().unwrap();
        let at = bits.len() - 512 - 1;
        assert_eq!(bits[at], Fr::from(swap));
        bits[at] = Fr::from(1 - swap);
        cs.borrow_mut().unwrap().assignments.witness_assignment = bits;
        assert!(!cs.is_satisfied().unwrap());
    }
}
