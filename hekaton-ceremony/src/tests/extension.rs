//! C50: later types. A family that extends another one has its types and K, and keys of the old one stay as they are.

use super::*;
use crate::{key_has_last_points, transcript_of_keys};
use hekaton_arith::Fr;
use hekaton_core::keys::FamilyHeader;
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{
    FamilyKey, LocalEngine, ProveOptions, ProverKeys, Trust, derive, prove, verify,
};
use hekaton_testing::{Shop, Shopping, Squarings};

/// A finished family, and one that adds the types of a shop to it, to which these have contributed.
struct Extended {
    old: Bench,
    more: Vec<R1cs>,
    buses: Vec<String>,
}

impl Extended {
    fn new(seeds: &[u64]) -> Self {
        let old = Bench::new(&Squarings, true, None);
        old.step(4);
        let (more, buses) = types_of(&Shop::new(2), true);
        let bench = Self { old, more, buses };
        let family = bench.old.check().unwrap();
        bench.begin(Some(&family), plan(bench.buses.clone(), true)).unwrap();
        seeds.iter().for_each(|seed| step(&bench.path(), *seed));
        bench
    }

    fn path(&self) -> PathBuf {
        self.old.directory.path().join("extended")
    }

    fn begin(
        &self,
        extends: Option<&Family>,
        plan: FamilyPlan,
    ) -> Result<Transcript, CeremonyError> {
        let powers = &self.old.powers;
        new_family(&self.path(), plan, powers, extends, &self.more, &|_| {}, &mut |_| {})
    }

    fn check_with(&self, extends: Option<Family>) -> Result<Family, CeremonyError> {
        let transcript = open(&self.path());
        verify_family(&transcript, &self.old.powers, extends, &self.more, &mut |_| {})
    }

    fn check(&self) -> Result<Family, CeremonyError> {
        self.check_with(Some(self.old.check().unwrap()))
    }

    /// The family key and all proving keys.
    fn keys(&self, family: &Family) -> (FamilyKey, Vec<ProvingKey>) {
        let all = self.old.types.iter().chain(&self.more).take(family.types());
        let types = all.enumerate().map(|(number, r1cs)| {
            family.proving_key(&self.old.powers, number, r1cs.clone()).unwrap()
        });
        (family.key(&self.old.powers).unwrap(), types.collect())
    }
}

fn proves<C: Circuit>(circuit: &C, input: &C::Input, (key, types): (&FamilyKey, Vec<ProvingKey>)) {
    let engine = LocalEngine::new(None).unwrap();
    let prepared = PreparedCircuit::new(circuit).unwrap();
    let (aggregation, verifying) = derive(key, &prepared, "{}", &engine).unwrap();
    let keys = ProverKeys { verifying, aggregation, types };
    let run = prove(circuit, input, &keys, &engine, &ProveOptions::new()).unwrap();
    verify(&keys.verifying, &run.public_values, run.proof.as_bytes()).unwrap();
}

#[test]
fn c50_later_types_join_a_family() {
    let bench = Extended::new(&[5, 6]);
    let old = bench.old.check().unwrap();
    let (old_key, old_types) = bench.keys(&old);
    let family = bench.check().unwrap();
    let (key, mut types) = bench.keys(&family);
    assert_eq!(family.types(), old_types.len() + bench.more.len());
    assert_eq!(key.header().shared, old_key.header().shared);
    assert_ne!(key.digest().unwrap(), old_key.digest().unwrap());
    // The old proving keys serve the new family as they are.
    for (old, new) in old_types.iter().zip(&types) {
        assert_eq!(old.sections().digest(), new.sections().digest());
    }
    // The record check of the keys needs all logs, in their order.
    let of_powers = open(&bench.old.directory.path().join("powers"));
    let [of_old, of_new] = [bench.old.path(), bench.path()].map(|path| open(&path));
    let last_points = |families: &[&Transcript]| key_has_last_points(&of_powers, families, &key);
    last_points(&[&of_old, &of_new]).unwrap();
    for families in [&[&of_new][..], &[&of_old], &[&of_new, &of_old], &[]] {
        assert!(matches!(last_points(families), Err(CeremonyError::Foreign(_))));
    }
    // Readers bound the domains of types by the largest one that a genesis claims, so it must be that of the powers.
    for largest in [1, 1 << 20] {
        let mut claims = of_new.clone();
        let crate::Subject::Family(genesis) = &mut claims.genesis.subject else { panic!() };
        genesis.largest = largest;
        let header =
            FamilyHeader { trust: Trust::Ceremony(claims.digest()), ..key.header().clone() };
        let ic = (0..family.types()).flat_map(|kind| key.ic(kind).unwrap().to_vec()).collect();
        let points = [key.phi().unwrap().to_vec(), ic];
        let (psi, elements) = (key.psi().unwrap().to_vec(), key.elements().unwrap().to_vec());
        let gamma = *key.gamma().unwrap();
        let names_it = FamilyKey::of_points(&header, points, psi, gamma, elements).unwrap();
        let found = key_has_last_points(&of_powers, &[&of_old, &claims], &names_it);
        assert!(matches!(found, Err(CeremonyError::Foreign(_))), "{found:?}");
    }
    // Whoever has the keys has all sections.
    let place = tempfile::tempdir().unwrap();
    let mut found = None;
    for (number, (records, kinds)) in
        [(&of_old, &bench.old.types), (&of_new, &bench.more)].into_iter().enumerate()
    {
        let directory = place.path().join(number.to_string());
        std::fs::create_dir(&directory).unwrap();
        let first = if number == 0 { 0 } else { old_types.len() };
        let transcript = transcript_of_keys(records, &directory, &key, &types, first).unwrap();
        found =
            Some(verify_family(&transcript, &bench.old.powers, found, kinds, &mut |_| {}).unwrap());
        // Sections at other types of the keys are not those of the records.
        let other = place.path().join(format!("{number}-other"));
        std::fs::create_dir(&other).unwrap();
        let result = transcript_of_keys(records, &other, &key, &types, 1 - number.min(1));
        assert!(result.is_err());
    }
    assert_eq!(found.unwrap().digest, family.digest);
    // Circuits of old types and of new ones, under keys of the new family.
    let shop = types.split_off(old_types.len());
    proves(&Shop::new(2), &Shopping::new(2), (&key, shop));
    proves(&Squarings, &Fr::from(3u64), (&key, types));
}

/// A contributor who has kept a delta of the old family, and one that takes the family for one of its own.
#[test]
fn c50_later_types_have_secrets_of_their_own() {
    // The secrets of a known seed are those of the same places of the old family.
    let bench = Extended::new(&[4]);
    refused_by_this_alone(Check::Distinct, &[], || bench.check());
    let bench = Extended::new(&[5]);
    bench.check().unwrap();
    let foreign = |result: Result<Family, CeremonyError>| {
        assert!(matches!(result, Err(CeremonyError::Foreign(_))));
    };
    foreign(bench.check_with(None));
    let other = Bench::new(&Squarings, true, None);
    other.step(4);
    foreign(bench.check_with(Some(other.check().unwrap())));
    // Of the old family itself nothing is extended.
    let old = bench.old.check().unwrap();
    let transcript = open(&bench.old.path());
    let types = &bench.old.types;
    foreign(verify_family(&transcript, &bench.old.powers, Some(old), types, &mut |_| {}));
}

#[test]
fn c50_what_cannot_join_a_family() {
    let bench = Extended::new(&[]);
    let old = bench.old.check().unwrap();
    std::fs::remove_dir_all(bench.path()).unwrap();
    let refused = |bench: &Extended, old: &Family, plan: FamilyPlan| {
        let result = bench.begin(Some(old), plan);
        assert!(matches!(&result, Err(CeremonyError::Foreign(_))), "{result:?}");
        assert!(!bench.path().exists());
    };
    // Masks in one of the two, a type of the same name, and powers of others.
    let (more, buses) = types_of(&Shop::new(2), false);
    let without = Extended { more, ..bench };
    refused(&without, &old, plan(buses.clone(), false));
    let twice = Extended { more: without.old.types.clone(), ..without };
    refused(&twice, &old, plan(Vec::new(), true));
    let other = Bench::new(&Squarings, true, None);
    other.step(4);
    let (more, buses) = types_of(&Shop::new(2), true);
    let bench = Extended { more, ..twice };
    refused(&bench, &other.check().unwrap(), plan(buses.clone(), true));
    // A circuit without the buses of the family that it would extend.
    let of_shop = Bench::new(&Shop::new(2), true, None);
    of_shop.step(4);
    let (more, _) = types_of(&Squarings, true);
    let bench = Extended { old: of_shop, more, buses };
    let old = bench.old.check().unwrap();
    refused(&bench, &old, plan(Vec::new(), true));
}
