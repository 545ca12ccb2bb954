//! Powers that begin where finished powers end (R29).

use super::*;
use crate::genesis::{Earlier, Genesis, Origin, Subject};
use crate::{Broken, chains_json, chains_text, check_receipt, new_powers_after, receipt};

/// Finished powers for domains of 16 rows and 4 subcircuits, by two contributors.
fn finished(directory: &Path) -> Transcript {
    let path = powers_of(directory, 16, 4, &[1, 2]);
    Coordinator::open(&path).unwrap().finish().unwrap();
    open(&path)
}

fn begin(
    path: &Path,
    earlier: &Transcript,
    (domain, instances): (usize, usize),
) -> Result<Transcript, CeremonyError> {
    new_powers_after(path, earlier, domain, instances, "", &|_| {}, &mut |_| {})
}

/// The content of the current sections of all chains.
fn sections(transcript: &Transcript) -> Vec<Vec<u8>> {
    let chains = transcript.genesis.chains().into_iter();
    let paths = chains.flat_map(|chain| transcript.sections(chain)).map(|section| section.path);
    paths.map(|path| std::fs::read(path).unwrap()).collect()
}

/// The secrets of both ceremonies are multiplied: the points are those of one ceremony by all contributors.
#[test]
fn secrets_of_earlier_powers_count() {
    for sizes in [(16, 4), (12, 4), (8, 2), (1, 1)] {
        let directory = tempfile::tempdir().unwrap();
        let earlier = finished(directory.path());
        let path = directory.path().join("more");
        let begun = begin(&path, &earlier, sizes).unwrap();
        if sizes == (16, 4) {
            assert_eq!(sections(&begun), sections(&earlier));
        }
        // These powers need a contribution of their own, too.
        assert_eq!(refusal(check_powers(&path)), Check::Contribution);
        step(&path, 3);
        check_powers(&path).unwrap();
        let whole = tempfile::tempdir().unwrap();
        let whole = powers_of(whole.path(), sizes.0, sizes.1, &[1, 2, 3]);
        assert_eq!(sections(&open(&path)), sections(&open(&whole)));
    }
}

/// Their records, names and receipts are those of the new powers, and of powers that begin at the end of these.
#[test]
fn contributors_to_earlier_powers_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let earlier = finished(directory.path());
    let [second, third] = ["second", "third"].map(|name| directory.path().join(name));
    begin(&second, &earlier, (12, 4)).unwrap();
    step(&second, 3);
    Coordinator::open(&second).unwrap().finish().unwrap();
    begin(&third, &open(&second), (8, 4)).unwrap();
    step(&third, 1);
    let transcript = open(&third);
    check_powers(&third).unwrap();
    let text = chains_text(&[&transcript]);
    let everybody = "contributor 1, contributor 2, contributor 3\n";
    assert!(text.contains(&format!("tau, alpha, beta         {everybody}")), "{text}");
    assert!(text.contains(&format!("in all of these chains:  {everybody}")), "{text}");
    let json = chains_json(&[&transcript]);
    assert_eq!(json[1]["contributors"].as_array().unwrap().len(), 3);
    let digests = [&earlier, &open(&second)].map(|one| hex::encode(one.digest()));
    for (older, digest) in digests.iter().enumerate() {
        assert_eq!(json[0]["earlier"][older]["transcript"], *digest);
    }
    assert_eq!(json[0]["earlier"][0]["records"][1]["name"], "contributor 2");
    assert!(
        text.contains(&format!("from earlier powers      transcript {}", digests[1])),
        "{text}"
    );
    // A receipt for the first powers.
    let record = &earlier.records(Chain::Phi)[1];
    let text = receipt(&earlier.genesis, "contributor 2", PROGRAM, &[record]);
    check_receipt(&text, &[&transcript]).unwrap();
    let other = text.replace("place 1", "place 0");
    assert_eq!(refusal(check_receipt(&other, &[&transcript])), Check::Head);
    // A state has the records, too.
    let state = directory.path().join("state");
    transcript.write_state(&state).unwrap();
    assert_eq!(open(&state).genesis, transcript.genesis);
}

/// Changes the earlier records in a genesis, and begins ceremonies with it.
struct Forger {
    directory: tempfile::TempDir,
    earlier: Transcript,
}

impl Forger {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let earlier = finished(directory.path());
        Self { directory, earlier }
    }

    /// Powers after changed records of the earlier ones, with the points at their end; those in the sections are of the honest records.
    fn after(&self, change: impl FnOnce(&mut Transcript)) -> PathBuf {
        let mut changed = self.earlier.clone();
        change(&mut changed);
        self.after_these(changed.as_earlier())
    }

    fn after_these(&self, earlier: Earlier) -> PathBuf {
        let path = self.directory.path().join("forged");
        let _ = std::fs::remove_dir_all(&path);
        let begun = begin(&path, &self.earlier, (16, 4)).unwrap();
        let Subject::Powers(mut powers) = begun.genesis.subject.clone() else { panic!("powers") };
        powers.origin = Origin::Powers(Box::new(earlier));
        let genesis = Genesis { subject: Subject::Powers(powers), ..begun.genesis };
        std::fs::write(path.join("genesis"), genesis.to_bytes()).unwrap();
        for chain in genesis.chains() {
            std::fs::write(log_path(&path, chain), crate::log::header(&genesis)).unwrap();
        }
        path
    }

    /// The verdict of a contributor on powers with changed records before them, and that of an auditor after it.
    fn verdicts(&self, change: impl FnOnce(&mut Transcript), also: &[Check]) -> [Broken; 2] {
        let path = self.after(change);
        let broken = |result: Result<(), CeremonyError>| match result {
            Err(CeremonyError::Broken(broken)) => broken,
            other => panic!("{other:?}"),
        };
        let out = self.directory.path().join("out");
        let chains = [Chain::Tau, Chain::Phi];
        let told = broken(contribute_as(&open(&path), 9, &chains, &out));
        without(&[&[told.check], also].concat(), || step(&path, 9));
        [told, broken(check_powers(&path).map(drop))]
    }
}

/// Everybody checks the earlier records: each rule is needed.
#[test]
fn forged_records_of_earlier_powers_are_refused() {
    let forger = Forger::new();
    let tau = 0;
    let told = |change: &dyn Fn(&mut Transcript), check: Check, also: &[Check]| {
        for broken in forger.verdicts(change, also) {
            assert_eq!(broken.check, check, "{broken}");
            assert!(broken.at.starts_with("earlier powers, "), "{broken}");
        }
        let path = forger.after(change);
        without(&[&[check], also].concat(), || step(&path, 9));
        refused_by_this_alone(check, also, || check_powers(&path));
    };
    // A name that was never there.
    let rename = |changed: &mut Transcript| changed.logs[tau].records[1].name = "Mallory".into();
    told(&rename, Check::Knowledge, &[]);
    // A record in the middle is left out.
    let skip = |changed: &mut Transcript| _ = changed.logs[tau].records.remove(0);
    told(&skip, Check::Head, &[Check::Place, Check::Knowledge, Check::Link]);
    let all_of_2 = |changed: &mut Transcript| {
        let record = &mut changed.logs[tau].records[1];
        let Step::Powers(step) = &mut record.step else { panic!("powers") };
        step.in_g2[1] = hekaton_arith::G2Point::generator();
    };
    told(&all_of_2, Check::Groups, &[Check::Knowledge, Check::End]);
}

/// Points of others than those at the end of the earlier records.
#[test]
fn points_are_those_at_the_end_of_earlier_powers() {
    let forger = Forger::new();
    let out = forger.directory.path().join("out");
    let contributed = |path: &Path| contribute_as(&open(path), 9, &[Chain::Tau], &out);
    let mut changed = forger.earlier.clone();
    changed.logs.iter_mut().for_each(|log| _ = log.records.pop());
    let shorter = changed.as_earlier();
    // Those of the sections.
    let path = forger.after_these(shorter.clone());
    assert_eq!(refusal(contributed(&path)), Check::End);
    // Those in the genesis: then the names in the records would be of others.
    let honest = forger.earlier.as_earlier();
    let path = forger.after_these(Earlier { records: shorter.records, ..honest });
    assert_eq!(refusal(contributed(&path)), Check::End);
    without(&[Check::End], || step(&path, 9));
    refused_by_this_alone(Check::End, &[], || check_powers(&path));
}

/// Nobody contributed to the earlier powers: all secrets are 1, or come from a beacon.
#[test]
fn earlier_powers_without_contributions_are_refused() {
    let forger = Forger::new();
    let path = forger.after(|changed| changed.logs.iter_mut().for_each(|log| log.records.clear()));
    let out = forger.directory.path().join("out");
    let contributed = || contribute_as(&open(&path), 9, &[Chain::Tau], &out);
    assert_eq!(refusal(contributed()), Check::Contribution);
    // Honest coordinators learn it at the beginning.
    let directory = tempfile::tempdir().unwrap();
    let empty = powers_of(directory.path(), 4, 1, &[]);
    Coordinator::open(&empty).unwrap().finish().unwrap();
    let begun = || begin(&directory.path().join("more"), &open(&empty), (4, 1));
    assert_eq!(refusal(begun()), Check::Contribution);
}

#[test]
fn other_transcripts_do_not_begin_powers() {
    let directory = tempfile::tempdir().unwrap();
    let earlier = finished(directory.path());
    let more = directory.path().join("more");
    let why = |transcript: &Transcript, sizes| {
        begin(&more, transcript, sizes).map(drop).unwrap_err().to_string()
    };
    for (sizes, needed) in [((24, 4), "a domain of 24 rows"), ((16, 5), "8 subcircuits")] {
        let told = why(&earlier, sizes);
        assert!(told.contains(needed) && told.contains("16 rows and 4 subcircuits"), "{told}");
    }
    std::fs::remove_file(earlier.path.join("final.json")).unwrap();
    let told = why(&earlier, (16, 4));
    assert!(told.contains("is not finished"), "{told}");
    assert!(!more.exists());
    // A point that is not the power that it should be, in the part that is taken.
    Coordinator::open(&earlier.path).unwrap().finish().unwrap();
    let section = earlier.sections(Chain::Phi).swap_remove(0).path;
    let mut bytes = std::fs::read(&section).unwrap();
    bytes.copy_within(96..2 * 96, 2 * 96);
    std::fs::write(&section, bytes).unwrap();
    for instances in [4, 2] {
        let told = why(&earlier, (16, instances));
        assert!(told.starts_with("earlier powers, section 'phi', phi_1"), "{told}");
    }
    assert!(!more.exists());
}

/// Readers bound how many powers stand behind each other, and take nothing but whole logs of powers.
#[test]
fn encodings_of_earlier_powers_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let earlier = finished(directory.path());
    let begun = begin(&directory.path().join("more"), &earlier, (16, 4)).unwrap().genesis;
    let bytes = begun.to_bytes();
    assert_eq!(Genesis::from_bytes(&bytes).unwrap(), begun);
    for cut in 0..bytes.len() {
        assert!(Genesis::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    let Subject::Powers(powers) = &begun.subject else { panic!("powers") };
    let Origin::Powers(inner) = &powers.origin else { panic!("earlier powers") };
    let with = |earlier: Earlier| {
        let origin = Origin::Powers(Box::new(earlier));
        let subject = Subject::Powers(crate::PowersGenesis { origin, ..powers.clone() });
        Genesis { subject, ..begun.clone() }
    };
    let read = |genesis: Genesis| Transcript::without_records(genesis).map_err(|e| e.to_string());
    let mut nested = begun.clone();
    for depth in 2..=17 {
        nested = with(Earlier {
            genesis: nested.to_bytes(),
            records: [vec![], vec![]],
            ..*inner.clone()
        });
        match read(nested.clone()) {
            Ok(transcript) => {
                assert_eq!((transcript.lineage().len(), depth < 17), (depth + 1, true))
            }
            Err(told) => assert!(depth == 17 && told.contains("more than 16"), "{depth}: {told}"),
        }
    }
    // Records that are cut off, and other ones than those of powers.
    let mut torn = inner.clone();
    torn.records[1].pop();
    let told = read(with(*torn)).unwrap_err();
    assert!(told.contains("phi.log: it ends in the middle of a record"), "{told}");
    let bench = Bench::new(&hekaton_testing::Squarings, true, None);
    let family = open(&bench.path()).genesis.to_bytes();
    let told = read(with(Earlier { genesis: family, ..*inner.clone() })).unwrap_err();
    assert!(told.contains("they are a family"), "{told}");
    let mut more = powers.clone();
    more.domain = 32;
    let told = read(Genesis { subject: Subject::Powers(more), ..begun.clone() }).unwrap_err();
    assert!(told.contains("use powers for more"), "{told}");
}
