mod forger;

use super::relations::{Alphabet, BASE};
use super::*;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{ConstraintSystem, Variable};
use hekaton_circuit::{Closures, Fr, TypeSize, check, count};
use hekaton_core::{LocalEngine, SetupOptions, setup};
use sha3::{Digest as _, Keccak256, Sha3_256};
use std::sync::{Arc, Mutex};

fn digest(message: &[u8], padding: Padding) -> [u8; 32] {
    match padding {
        Padding::Keccak => Keccak256::digest(message).into(),
        Padding::Sha3 => Sha3_256::digest(message).into(),
    }
}

/// The halves of a digest as field elements, little-endian.
fn halves(digest: [u8; 32]) -> [Fr; 2] {
    [0, 16].map(|i| {
        let half = digest[i..i + 16].iter().rev();
        Fr::from(half.fold(0u128, |number, byte| number << 8 | u128::from(*byte)))
    })
}

fn variable(wire: &FpVar<Fr>) -> Variable {
    match wire {
        FpVar::Var(wire) => wire.variable,
        FpVar::Constant(_) => Variable::One,
    }
}

/// Hashes a message, with its digest as public value.
fn circuit(
    message: &[u8],
    pieces: Pieces,
    padding: Padding,
    claimed: [u8; 32],
) -> Closures<Vec<u8>> {
    circuit_with(true, message, pieces, padding, claimed)
}

/// Hashes a message whose bits may be unmarked.
fn circuit_with(
    is_marked: bool,
    message: &[u8],
    pieces: Pieces,
    padding: Padding,
    claimed: [u8; 32],
) -> Closures<Vec<u8>> {
    let (bytes, len) = (message.to_vec(), message.len());
    let tables = Arc::new(Mutex::new(None));
    let of_layout = Arc::clone(&tables);
    Closures::new(
        move |layout| {
            let tables = Tables::new(pieces, |name, table| layout.table(name, table));
            *of_layout.lock().unwrap() = Some(tables);
            let wires = [0, 1].map(|i| layout.public_output("digest", i));
            let kind = layout.subcircuit_type("hash", 2);
            let instance = layout.instance(kind);
            (0..2).for_each(|slot| layout.write(instance, slot, wires[slot]));
            Ok(wires.to_vec())
        },
        move |wires, values| {
            wires.iter().zip(halves(claimed)).for_each(|(wire, half)| values.set(*wire, half));
            Ok(())
        },
        move |_| Ok(bytes.clone()),
        move |subcircuit, bytes| {
            let tables = tables.lock().unwrap().clone().unwrap();
            let bytes = bytes.map(Vec::as_slice);
            let message = match is_marked {
                true => Message::new().committed(subcircuit, len, bytes)?,
                false => Message::new().witness(&subcircuit.cs(), len, bytes)?,
            };
            let digest = LookUps::new(subcircuit, &tables)?.hash(message, padding)?;
            for slot in 0..2 {
                let wire = variable(subcircuit.slot(slot)?);
                digest.enforce_little_endian(&subcircuit.cs(), 16 * slot..16 * slot + 16, wire)?;
            }
            Ok(())
        },
    )
}

/// Bytes that are different, but not random.
fn message(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * i + 7 * i + 3) as u8).collect()
}

fn agrees(len: usize, pieces: Pieces, padding: Padding) {
    let message = message(len);
    let circuit = circuit(&message, pieces, padding, digest(&message, padding));
    let report = check(&circuit, &(), |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]), "{len} bytes");
}

#[test]
fn look_ups_agree_with_keccak_and_sha3() {
    // All lengths around the ends of blocks of 136 bytes.
    for len in [0, 134, 135, 136, 137] {
        agrees(len, Pieces::SMALL, Padding::Keccak);
        agrees(len, Pieces::SMALL, Padding::Sha3);
    }
    agrees(271, Pieces::SMALL, Padding::Keccak);
    agrees(272, Pieces::SMALL, Padding::Sha3);
    // Pieces that do not divide lanes.
    agrees(5, Pieces { binary: 5, ternary: 3 }, Padding::Keccak);
    agrees(3, Pieces { binary: 3, ternary: 7 }, Padding::Sha3);
    agrees(200, Pieces::LARGE, Padding::Keccak);
}

/// Bits that are chosen after the challenges could repair any look-up, and setup refuses them.
#[test]
fn unmarked_bits_are_refused_by_setup() {
    let engine = LocalEngine::new(None).unwrap();
    let [marked, unmarked] = [true, false].map(|is_marked| {
        let claimed = digest(b"abc", Padding::Keccak);
        let circuit = circuit_with(is_marked, b"abc", Pieces::SMALL, Padding::Keccak, claimed);
        setup(&circuit, &engine, &SetupOptions::new("keccak")).map(drop)
    });
    assert!(marked.is_ok());
    let refused = unmarked.unwrap_err().to_string();
    assert!(refused.contains("mark it with commit"), "{refused}");
}

#[test]
fn another_digest_is_refused() {
    let mut claimed = digest(b"abc", Padding::Keccak);
    claimed[31] ^= 0x80;
    let circuit = circuit(b"abc", Pieces::SMALL, Padding::Keccak, claimed);
    let report = check(&circuit, &(), |_, _| {}).unwrap();
    assert_eq!(report.violated, 1);
}

fn by_bits(message: &[u8], padding: Padding) -> (Vec<u8>, usize, bool) {
    let cs = ConstraintSystem::<Fr>::new_ref();
    let input = Message::new().witness(&cs, message.len(), Some(message)).unwrap();
    let digest = Bits::new(cs.clone()).hash(input, padding).unwrap();
    cs.finalize();
    (digest.value().unwrap(), cs.num_constraints(), cs.is_satisfied().unwrap())
}

#[test]
fn bits_agree_with_keccak_and_sha3() {
    for (len, padding) in [(0, Padding::Sha3), (135, Padding::Keccak), (140, Padding::Sha3)] {
        let message = message(len);
        let (value, _, is_satisfied) = by_bits(&message, padding);
        assert_eq!((value, is_satisfied), (digest(&message, padding).to_vec(), true));
    }
}

/// In base 7, no digit of a sum can be split in two ways, nor carry into the next one. Controls: in bases 5
/// and 6, some can.
#[test]
fn splits_are_unique() {
    assert_eq!([5, 6, 7].map(digits_are_unique), [false, false, true]);
    // What a sum of three bits and chi drop follows from what is kept.
    let chi = Alphabet::Chi.digits();
    for [a, b, c] in (0..8i64).map(|bits| [bits & 1, bits >> 1 & 1, bits >> 2]) {
        let kept = a ^ (1 - b) & c;
        assert!(chi.contains(&((3 - 2 * a + b - c + 2 * kept) as u64)));
    }
}

/// Reports whether each digit of a sum has one split in a base, for each of the relations.
fn digits_are_unique(base: u64) -> bool {
    let (bits, ternary) = (Alphabet::Binary.digits(), Alphabet::Ternary.digits());
    let chi = Alphabet::Chi.digits();
    let relations: [(&[u64], [i64; 2], Vec<i64>); 3] = [
        (ternary, [1, 2], (0..=5).collect()),
        (bits, [1, 2], (0..=3).collect()),
        (chi, [-2, 1], (0..=4).collect()),
    ];
    relations.into_iter().all(|(dropped, [x_factor, y_factor], sums)| {
        let split = |x: u64, y: u64| x_factor * x as i64 + y_factor * y as i64;
        let splits: Vec<i64> =
            bits.iter().flat_map(|x| dropped.iter().map(|y| split(*x, *y))).collect();
        let mut residues: Vec<i64> = splits.iter().map(|sum| sum.rem_euclid(base as i64)).collect();
        residues.sort_unstable();
        residues.dedup();
        sums.iter().for_each(|sum| assert!(splits.contains(sum), "{sum}"));
        residues.len() == splits.len()
    })
}

/// Lanes of four digits in pieces of two, in a field of 16,381 elements, all sums of three lanes: the pieces are unique. Controls: with
/// a piece that is looked up among longer ones, in one table for all lengths, or not at all, some are not.
#[test]
fn each_piece_needs_the_table_of_its_length() {
    const FIELD: i64 = 16_381;
    let numbers = |len: usize| -> Vec<i64> {
        Alphabet::Binary.numbers(len).into_iter().map(|number| number as i64).collect()
    };
    let base = BASE as i64;
    // Low and high piece of what is kept, low and high piece of what is dropped.
    let factors = [1, base.pow(2), 2, 2 * base.pow(2)];
    let sums = (0..256i64).map(|sum| (0..4).map(|at| (sum >> (2 * at) & 3) * base.pow(at)).sum());
    let sums: Vec<i64> = sums.collect();
    let splits = |tables: [&[i64]; 4]| {
        let mut found = vec![0usize; FIELD as usize];
        for &low in tables[0] {
            for &high in tables[1] {
                for &dropped_low in tables[2] {
                    for &dropped_high in tables[3] {
                        let parts = [low, high, dropped_low, dropped_high];
                        let sum: i64 = parts.iter().zip(factors).map(|(part, by)| part * by).sum();
                        found[sum.rem_euclid(FIELD) as usize] += 1;
                    }
                }
            }
        }
        sums.iter().map(|sum| found[*sum as usize]).collect::<Vec<usize>>()
    };
    let (right, longer) = (numbers(2), numbers(3));
    // One table for all lengths, with an offset for each of them.
    let moved: Vec<i64> = right.iter().copied().chain(longer.iter().map(|it| it + 49)).collect();
    let all: Vec<i64> = (0..FIELD).collect();
    assert!(splits([&right; 4]).iter().all(|count| *count == 1));
    for at in 0..4 {
        let mut tables: [&[i64]; 4] = [&right; 4];
        // Only the top piece of what is kept may be asked for among longer ones: nothing carries into it.
        for wrong in [&longer, &moved] {
            tables[at] = wrong;
            let ambiguous = splits(tables).into_iter().filter(|count| *count > 1).count();
            assert_eq!(ambiguous > 0, at % 2 == 0, "{at}: {ambiguous}");
        }
        tables[at] = &all;
        assert!(splits(tables).iter().all(|count| *count > 1), "{at}");
    }
}

/// 13,534 rows for a permutation of a full state, 8 of each byte of the message, 8 of each lane that is
/// absorbed later, and 235 of the bits of the digest: iota cuts some of them off anyway.
#[test]
fn rows_are_pinned() {
    assert_eq!([Pieces::LARGE, Pieces::SMALL].map(Tables::rows), [249_328, 1_156]);
    let rows = |len: usize, pieces: Pieces| {
        let message = message(len);
        let circuit = circuit(&message, pieces, Padding::Keccak, [0; 32]);
        let types = count(&circuit).unwrap();
        let own: Vec<&TypeSize> = types.iter().filter(|kind| kind.name == "hash").collect();
        own[0].constraints
    };
    let memory_check = 3;
    let digest = 235 + 2;
    let one = rows(135, Pieces::LARGE);
    assert_eq!(one, memory_check + 8 * 135 + 13_534 + digest);
    assert_eq!(rows(271, Pieces::LARGE) - one, 8 * 136 + 8 * 17 + 13_534);
    let small = rows(135, Pieces::SMALL);
    assert_eq!(rows(271, Pieces::SMALL) - small, 8 * 136 + 16 * 17 + 25_474);
    // A block and a full state without constants: the second block of two, before that of the padding.
    let [one, two] = [136, 272].map(|len| by_bits(&message(len), Padding::Keccak).1);
    assert_eq!(two - one, 8 * 136 + 8 * 136 + 145_920);
}
