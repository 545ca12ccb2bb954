//! Known answers, computed by another program from the definitions: formats do not change unnoticed.

use crate::log::{Frontier, entry};
use crate::{
    Commitment, Current, Digest, Entry, History, HistoryError, Index, Leaf, Opening, Parameters,
    Profile, Record,
};
use ed25519_dalek::{Signature, SigningKey};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn openings() -> [Opening; 2] {
    let salt: [u8; 32] = std::array::from_fn(|i| i as u8);
    let mut reversed = salt;
    reversed.reverse();
    let first = Opening { salt, value: b"first".to_vec() };
    [first, Opening { salt: reversed, value: b"second".to_vec() }]
}

fn alice() -> Leaf {
    let history = History(openings().map(Entry::Value).into());
    let commitment = history.commitment(b"alice").unwrap();
    let index = Index::of(b"alice").unwrap();
    Leaf { index, version: 1, epoch: 0x0102_0304, commitment }
}

#[test]
fn labels_values_and_leaves() {
    let leaf = alice();
    assert_eq!(hex(&leaf.index.0), "47662e8d6d9a0e8d8e022792d9dd9df7");
    let first = openings()[0].digest(b"alice").unwrap();
    assert_eq!(hex(&first), "5f8dd4fdbca21654f5ae179a86dbf234871ef1ae71b93a8d7cd0c9e590e365f7");
    let commitment = "f2f8b68269642ffe5f4cac39cf7fb959bc593019a8eba15b1caa7f5b7c435ba5";
    assert_eq!(hex(&leaf.commitment.0), commitment);
    // Fewer values than the leaf has had, and more.
    let history = |count: usize| {
        let all = openings().map(Entry::Value).into_iter().cycle();
        History(all.take(count).collect())
    };
    assert_eq!(history(2).verify(b"alice", &leaf), Ok(()));
    for found in [1, 3] {
        let error = history(found).verify(b"alice", &leaf).unwrap_err();
        assert_eq!(error, HistoryError::Count { found, expected: 2 });
    }
}

/// The last value alone.
#[test]
fn current_values() {
    let [first, second] = openings();
    let before = Commitment::NONE.then(&first.digest(b"alice").unwrap());
    let current = Current { before, opening: second.clone() };
    assert_eq!(current.verify(b"alice", &alice()), Ok(()));
    assert_eq!(current.verify(b"bob", &alice()), Err(HistoryError::OtherLabel));
    let stale = Current { before: Commitment::NONE, opening: first.clone() };
    assert_eq!(stale.verify(b"alice", &alice()), Err(HistoryError::Commitment));
    // What is before the value of version 0 is nothing.
    let leaf = Leaf { version: 0, ..alice() };
    assert_eq!(current.verify(b"alice", &leaf), Err(HistoryError::First));
    let leaf = Leaf { commitment: before, ..leaf };
    assert_eq!(stale.verify(b"alice", &leaf), Ok(()));
    assert_eq!(format!("{second:?}"), "Opening { bytes: 6, .. }");
}

/// The digest of the leaf, the root of a tree that has it alone, and the chains of epochs 0 and 1 are the known ones in
/// each profile.
#[test]
fn trees_and_chains() {
    let sha256 = "b7e19e0ce1dbf412935f0b34d7a193e46a83d0fbe09ba80362f70f8bfd727be5";
    let compress = "38f94f0e336c84a7bcdb52b7e8d03a6d2440996220a28e92c84fd8cd520e9aef";
    let expected = [
        [
            compress,
            compress,
            "13cdbf15dfaf2be6e2ab06e35f50c641f9e81108417f5974e900a451e314aed0",
            "b84f4fc36ccf021cc5739591c3509af2fb11d0225d750d3d71032a8799bf49be",
        ],
        [
            sha256,
            sha256,
            "85638db3e8b3532fa1f5ac64fb999fcac484bbde1f071a7b6e3ef45f404d00a5",
            "b449deb09d1facc337bac457448395b33cf964c6736a6c1f0fe80e5cd87de694",
        ],
        [
            sha256,
            "743e945607907212216fb824c3e1dfff46eb788d4407452537fa6371007955c0",
            "61d5bfc20e9c1022dcd772173383ba4d57615bdf89fcfc4c483fc1dd70923e95",
            "03632f2c64bf945a1d6cd671a57069062513b67264538859f5081759d77248f3",
        ],
    ];
    for (profile, expected) in Profile::ALL.into_iter().zip(expected) {
        let leaf = alice();
        let root = leaf.digest_at(profile, 0);
        let first = profile.combine(&[9; 32], &profile.empty(0));
        let found = [leaf.digest(profile), root, first, profile.combine(&first, &root)];
        assert_eq!(found.map(|digest| hex(&digest)), expected, "{profile:?}");
    }
}

/// The bytes of a record, and that its signature is of them behind the name of what they are.
#[test]
fn records() {
    let digests: [Digest; 6] = std::array::from_fn(|i| [i as u8; 32]);
    let [parameters, root, before, chain, log_root, records] = digests;
    let record = Record {
        parameters,
        epoch: 0x0102_0304,
        root,
        before,
        chain,
        leaves: 0x1112_1314,
        log_size: 0x2122_2324,
        log_root,
        records,
        closed: 0x3132_3334,
    };
    let line = |digit: &str| digit.repeat(32);
    let expected = [
        "02",
        &line("00"),
        "01020304",
        &line("01"),
        &line("02"),
        &line("03"),
        "0000000011121314",
        "0000000021222324",
        &line("04"),
        &line("05"),
        "0000000031323334",
    ];
    assert_eq!(hex(&record.encode()), expected.concat());
    let digest = "e6c07bab4b7c615cc4ff28efcf7ae6cfc00f892f7a71f5978aa30bc455be585e";
    let key = SigningKey::from_bytes(&[5; 32]);
    let server = key.verifying_key();
    let parameters = Parameters { profile: Profile::Sha256, server, proofs: [9; 32] };
    assert_eq!(hex(&parameters.digest()), digest);
    let bytes = record.sign(&key).encode();
    let signature = Signature::from_slice(&bytes[bytes.len() - 64..]).unwrap();
    let signed = [&b"hekaton directory record"[..], &record.encode()].concat();
    assert!(server.verify_strict(&signed, &signature).is_ok());
    assert_eq!(Commitment::NONE, Commitment([0; 32]));
}

/// The test vectors of certificate transparency.
#[test]
fn logs() {
    let entries: [&[u8]; 8] =
        [b"", b"\0", b"\x10", b" !", b"01", b"@ABC", b"PQRSTUVW", b"`abcdefghijklmno"];
    let roots = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut log = Frontier::default();
    for (bytes, root) in entries.iter().zip(roots) {
        log.append(&[entry(bytes)]);
        assert_eq!(hex(&log.root()), root);
    }
}
