//! Audits of records and proofs.

use super::{commitment, index};
use crate::{
    Audit, AuditError, Change, EpochProof, Frontier, Parameters, Profile, Record, RecordError,
    SignedRecord, Tree, audit,
};
use ed25519_dalek::SigningKey;

fn key() -> SigningKey {
    SigningKey::from_bytes(&[3; 32])
}

/// Six epochs with one change each.
fn records() -> (Parameters, Vec<SignedRecord>) {
    let profile = Profile::Compress;
    let parameters = Parameters { profile, server: key().verifying_key(), proofs: [1; 32] };
    let (mut tree, mut log) = (Tree::new(profile), Frontier::default());
    let mut earlier = Frontier::default();
    let mut record = Record::first(&parameters, 100);
    let mut records = vec![record.sign(&key())];
    for number in 0..6 {
        let change = Change { index: index(number, 8), commitment: commitment(number) };
        tree = tree.update(&[change]).unwrap();
        log.append(&[crate::log::entry(&[number as u8])]);
        earlier.append(&[record.entry()]);
        record = record.next(&tree, &log, &earlier, 100 + number);
        records.push(record.sign(&key()));
    }
    (parameters, records)
}

fn proof(from: u32, to: u32) -> EpochProof {
    EpochProof { from, to, subcircuits: 1, proof: vec![from as u8, to as u8] }
}

#[test]
fn proofs_cover_all_records() {
    let (parameters, records) = records();
    let proofs = [proof(0, 1), proof(1, 4), proof(4, 6)];
    let mut seen = Vec::new();
    let [first, last] = audit(&parameters, 0..=6, &records, &proofs, |proof, values| {
        seen.push((proof.clone(), values));
        Ok(())
    })
    .unwrap();
    assert_eq!((first.record().epoch, last.record().epoch), (0, 6));
    assert_eq!(seen.len(), 3);
    // The values are those of the records at both ends.
    for (proof, values) in &seen {
        let of = |epoch: u32| records[epoch as usize].verify(&parameters).unwrap();
        let expected =
            [of(proof.from), of(proof.to)].map(|checked| checked.record().public_values());
        assert_eq!(expected.concat(), values);
    }
    let [root, ..] = seen[1].1;
    let checked = records[1].verify(&parameters).unwrap();
    assert_eq!(root.to_be_bytes(), checked.record().root[..16]);
    assert_eq!(seen[1].1[4], 1);
    // From the middle on, too.
    audit(&parameters, 4..=6, &records[4..], &proofs[2..], |_, _| Ok(())).unwrap();
}

#[test]
fn gaps_and_overlaps_are_refused() {
    let (parameters, records) = records();
    let refused = |records: &[SignedRecord], proofs: &[EpochProof]| {
        audit(&parameters, 0..=6, records, proofs, |_, _| Ok(())).unwrap_err()
    };
    for proofs in [
        vec![proof(1, 6)],
        vec![proof(0, 2), proof(3, 6)],
        vec![proof(0, 4), proof(3, 6)],
        vec![proof(0, 6), proof(0, 6)],
        vec![proof(0, 3), proof(3, 3), proof(3, 6)],
        vec![proof(3, 6), proof(0, 3)],
        vec![proof(0, 7)],
        vec![proof(0, 6), proof(6, 7)],
        vec![proof(2, 1)],
    ] {
        assert!(matches!(refused(&records, &proofs), AuditError::Gap { .. }), "{proofs:?}");
    }
    for proofs in [vec![], vec![proof(0, 5)]] {
        assert!(matches!(refused(&records, &proofs), AuditError::Unproven { last: 6, .. }));
    }
    for few in 0..6 {
        assert!(matches!(refused(&records[..few], &[]), AuditError::TooFew));
    }
}

/// Records and proofs that hold are nothing if they are of other epochs than those that were asked for.
#[test]
fn an_audit_is_of_the_epochs_that_it_says() {
    let (parameters, records) = records();
    let shifted = |epochs, records: &[SignedRecord], proof: EpochProof| {
        audit(&parameters, epochs, records, &[proof], |_, _| Ok(())).map(|_| ())
    };
    shifted(2..=5, &records[2..6], proof(2, 5)).unwrap();
    let error = shifted(2..=5, &records[3..7], proof(3, 6)).unwrap_err();
    assert!(matches!(error, AuditError::Epoch { expected: 2, found: 3 }), "{error}");
    let error = shifted(0..=3, &records[3..7], proof(3, 6)).unwrap_err();
    assert!(matches!(error, AuditError::Epoch { expected: 0, found: 3 }), "{error}");
    let error = shifted(2..=5, &records[2..6], proof(3, 6)).unwrap_err();
    assert!(matches!(error, AuditError::Gap { expected: 2, from: 3, to: 6 }), "{error}");
    // One by one: a proof is of the epochs without one, up to the last record.
    let mut audit = Audit::begin(&parameters, &records[2], 2).unwrap();
    audit.record(&records[3]).unwrap();
    let early = audit.proof(&proof(2, 4), |_, _| Ok(())).unwrap_err();
    assert!(matches!(early, AuditError::Gap { expected: 2, .. }), "{early}");
    audit.record(&records[4]).unwrap();
    let late = audit.proof(&proof(2, 3), |_, _| Ok(())).unwrap_err();
    assert!(matches!(late, AuditError::Unproven { found: 3, last: 4 }), "{late}");
    assert!(audit.proof(&proof(2, 4), |_, _| Err("wrong".into())).is_err());
    assert_eq!(audit.proven().record().epoch, 2, "what was rejected proves nothing");
    audit.proof(&proof(2, 4), |_, _| Ok(())).unwrap();
    assert_eq!((audit.proven().record().epoch, audit.last().record().epoch), (4, 4));
}

/// A record whose tree is not that of the records that are shown is refused: from epoch 0 on, and from any other one with the records
/// before it.
#[test]
fn trees_of_records_are_audited() {
    let (parameters, records) = records();
    let record = |epoch: usize| *records[epoch].verify(&parameters).unwrap().record();
    let refused = |records: &[SignedRecord]| {
        let error = audit(&parameters, 0..=6, records, &[proof(0, 6)], |_, _| Ok(())).unwrap_err();
        let AuditError::Record(error) = error else { panic!("{error}") };
        error
    };
    let with = |epoch: usize, other: Record| {
        let mut changed = records.clone();
        changed[epoch] = other.sign(&key());
        changed
    };
    let other_tree = with(4, Record { records: [6; 32], ..record(4) });
    assert_eq!(refused(&other_tree), RecordError::Records(4));
    // Another record of the same chain: only the tree of the next one reveals it.
    let other_record = with(4, Record { closed: record(4).closed + 1, ..record(4) });
    assert_eq!(refused(&other_record), RecordError::Records(5));

    let mut before = Frontier::default();
    before.append(&[record(0).entry(), record(1).entry()]);
    let begin = || Audit::begin(&parameters, &records[2], 2).unwrap();
    for (records, expected) in [(&other_tree, 4), (&other_record, 5)] {
        let mut audit = begin().with_records(before.clone()).unwrap();
        let error = records[3..].iter().find_map(|record| audit.record(record).err()).unwrap();
        assert!(matches!(error, AuditError::Record(RecordError::Records(at)) if at == expected));
        let mut audit = begin();
        records[3..].iter().for_each(|record| audit.record(record).unwrap());
    }
    for wrong in [Frontier::default(), {
        let mut more = before.clone();
        more.append(&[record(2).entry()]);
        more
    }] {
        let error = begin().with_records(wrong).unwrap_err();
        assert!(matches!(error, AuditError::Record(RecordError::Records(2))), "{error}");
    }
}

#[test]
fn records_and_proofs_are_checked() {
    let (parameters, records) = records();
    let whole = [proof(0, 6)];
    let refused = |records: &[SignedRecord]| {
        let error = audit(&parameters, 0..=6, records, &whole, |_, _| Ok(())).unwrap_err();
        let AuditError::Record(error) = error else { panic!("{error}") };
        error
    };
    let mut missing = records.clone();
    missing[3] = missing[4];
    assert_eq!(refused(&missing), RecordError::Order { after: 2, found: 4 });
    let mut swapped = records.clone();
    swapped.swap(2, 3);
    assert_eq!(refused(&swapped), RecordError::Order { after: 1, found: 3 });
    // Signed by another key.
    let mut other = records.clone();
    let checked = records[2].verify(&parameters).unwrap();
    other[2] = checked.record().sign(&SigningKey::from_bytes(&[4; 32]));
    assert_eq!(refused(&other), RecordError::Signature(2));
    // Another root, with the chain that it has, does not continue.
    let mut forked = *records[3].verify(&parameters).unwrap().record();
    forked.root = [6; 32];
    forked.chain = Profile::Compress.combine(&forked.before, &forked.root);
    let mut fork = records.clone();
    fork[3] = forked.sign(&key());
    assert_eq!(refused(&fork), RecordError::Fork(4));
    // What the verifier rejects is named.
    let rejected = audit(&parameters, 0..=6, &records, &[proof(0, 2), proof(2, 6)], |proof, _| {
        if proof.from == 2 { Err("it is wrong".into()) } else { Ok(()) }
    });
    let error = rejected.unwrap_err().to_string();
    assert_eq!(error, "the proof from epoch 2 to 6 was rejected: it is wrong");
}
