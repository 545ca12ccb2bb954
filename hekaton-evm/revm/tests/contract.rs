//! The contract in an EVM: the test vectors and forgeries of `hekaton-core` (adversarial tests D1 to D13),
//! and what else it must refuse.

use ark_ff::{Field, PrimeField};
use hekaton_arith::{G1Point, G2Point, Group};
use hekaton_core::verifier::ProofError;
use hekaton_core::verifier::direct::encoding::{put_point, put_scalar};
use hekaton_core::{DirectKey, DirectProof, Fr};
use hekaton_evm::{Contract, calldata};
use hekaton_evm_revm::{Chain, Outcome, Proven, proven};
use hekaton_testing::Doublings;
use revm::primitives::Address;
use revm::primitives::hardfork::SpecId;
use serde_json::Value;
use sha3::{Digest, Keccak256};
use std::path::PathBuf;
use std::str::FromStr;

/// A statement with a proof, as it is in a golden file.
struct Claim {
    key: DirectKey,
    public: Vec<Fr>,
    context: [u8; 32],
    proof: DirectProof,
    golden: Value,
}

fn golden(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hekaton-core/tests/golden");
    std::fs::read(PathBuf::from(folder).join(name)).expect("a golden file")
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().expect("text")).expect("hexadecimal digits")
}

fn claim(golden: Value, key: &[u8], proof: &[u8]) -> Claim {
    let key = DirectKey::from_bytes(key).expect("a key");
    let values = golden["public_values"].as_array().expect("a list").iter();
    let public =
        values.map(|x| Fr::from_str(x.as_str().expect("text")).expect("a number")).collect();
    let context = bytes(&golden["context"]).try_into().expect("32 bytes");
    let proof = match DirectProof::from_bytes(proof, &key) {
        // Of another key: that of the contract is what counts.
        Err(ProofError::ForeignKey { .. }) => {
            let own = [&proof[..10], &key.digest(), &proof[42..]].concat();
            DirectProof::from_bytes(&own, &key).expect("a proof")
        }
        other => other.expect("a proof"),
    };
    Claim { key, public, context, proof, golden }
}

fn vector(name: &str) -> Claim {
    let text = golden(&format!("{name}.json"));
    let read = |what: &str| golden(&format!("{name}.{what}"));
    claim(serde_json::from_slice(&text).expect("JSON"), &read("key"), &read("proof"))
}

fn forgery(name: &str) -> Claim {
    let text: Value =
        serde_json::from_slice(&golden(&format!("forgeries/{name}.json"))).expect("JSON");
    let (key, proof) = (bytes(&text["key"]), bytes(&text["proof"]));
    claim(text, &key, &proof)
}

impl Claim {
    fn contract(&self) -> Contract {
        Contract::new(&self.key, None).expect("a contract")
    }

    fn calldata(&self) -> Vec<u8> {
        calldata(&self.public, &self.context, &self.proof)
    }
}

/// The source with a text replaced, which occurs once.
fn without(source: &str, text: &str, by: &str) -> String {
    assert_eq!(source.matches(text).count(), 1, "{text}");
    source.replace(text, by)
}

/// Asserts that the contract refuses a forgery with this error, and accepts it without a check.
fn assert_forged(name: &str, error: &'static str, change: impl Fn(&str, &Claim) -> String) {
    let claim = forgery(name);
    let contract = claim.contract();
    let mut chain = Chain::new(SpecId::PRAGUE);
    let (whole, _) = chain.deploy(&contract);
    assert_eq!(chain.call(whole, claim.calldata()).0, Outcome::Reverted(error), "{name}");
    let (lax, _) = chain.deploy_as(&contract, &change(contract.source(), &claim));
    assert_eq!(chain.call(lax, claim.calldata()).0, Outcome::Accepted, "control of {name}");
}

/// The test vectors are accepted: one type and two, with and without masks, with buses.
#[test]
fn vectors_are_accepted() {
    for name in ["direct-1", "direct-2", "direct-5", "direct-buses"] {
        let claim = vector(name);
        let mut chain = Chain::new(SpecId::PRAGUE);
        let (address, _) = chain.deploy(&claim.contract());
        assert_eq!(chain.call(address, claim.calldata()).0, Outcome::Accepted, "{name}");
    }
}

/// D1 to D4, and D7: what the transcript must absorb.
#[test]
fn d1_to_d7_values_chosen_last() {
    let t0 = "abi.encodePacked(TAG, KEY, context, x, proof[:128 * INSTANCES])";
    let t1 = "proof[128 * INSTANCES:]";
    assert_forged("d", "WrongSum", |source, _| {
        without(source, t0, "abi.encodePacked(TAG, KEY, context, x)")
    });
    let rest = "proof[:128 * INSTANCES])";
    assert_forged("public", "WrongSum", |source, _| {
        without(source, t0, &format!("abi.encodePacked(TAG, KEY, context, {rest}"))
    });
    assert_forged("key", "WrongSum", |source, _| {
        without(source, t0, &format!("abi.encodePacked(TAG, context, x, {rest}"))
    });
    assert_forged("e", "WrongProof", |source, _| {
        without(source, t1, "proof[128 * INSTANCES:640 * INSTANCES]")
    });
    assert_forged("c", "WrongProof", |source, _| {
        without(source, t1, "proof[128 * INSTANCES:512 * INSTANCES], proof[640 * INSTANCES:]")
    });
    // A and B alternate: the hash of the others, concatenated.
    let others = |claim: &Claim, from: usize, to: usize| {
        let n = claim.key.instances();
        let part = |i: usize| {
            let at = 128 * n + 384 * i;
            format!("all = bytes.concat(all, proof[{}:{}]);", at + from, at + to)
        };
        (0..n).map(part).collect::<Vec<_>>().join("\n")
            + "all = bytes.concat(all, proof[512 * INSTANCES:]);"
    };
    let line = "bytes32 t1 = keccak256(abi.encodePacked(t0, proof[128 * INSTANCES:]));";
    let hash_of = |parts: &str| {
        format!(
            "bytes32 t1; {{ bytes memory all = abi.encodePacked(t0); {parts} t1 = keccak256(all); }}"
        )
    };
    assert_forged("a", "WrongProof", |source, claim| {
        without(source, line, &hash_of(&others(claim, 128, 384)))
    });
    assert_forged("b", "WrongProof", |source, claim| {
        without(source, line, &hash_of(&others(claim, 0, 128)))
    });
}

/// D8, D9 and D13: factors, the sum, its pole, and whose types count.
#[test]
fn d8_d9_d13_checks_left_out() {
    assert_forged("factors", "WrongProof", |source, _| {
        without(source, "challenge(t1, 5)", "(uint256(t1) & 0) | 1")
    });
    let sum = "if (addmod(numerator, mulmod(denominator, terms, R), R) != 0) revert WrongSum();";
    assert_forged("sum", "WrongSum", |source, _| without(source, sum, ""));
    // The pole with frozen challenges.
    let claim = forgery("pole");
    let contract = claim.contract();
    let [g, b] = ["g", "b"].map(|name| claim.golden[name].as_str().expect("text"));
    let frozen = without(contract.source(), "challenge(t0, 1)", g);
    let frozen = without(&frozen, "challenge(t0, 2)", b);
    let mut chain = Chain::new(SpecId::PRAGUE);
    let (whole, _) = chain.deploy_as(&contract, &frozen);
    assert_eq!(chain.call(whole, claim.calldata()).0, Outcome::Reverted("Pole"));
    let lax = without(&frozen, "if (denominator == 0) revert Pole();", "");
    let (lax, _) = chain.deploy_as(&contract, &lax);
    assert_eq!(chain.call(lax, claim.calldata()).0, Outcome::Accepted, "control");
    // The contract of the key whose types are the proof's, with the digest of the other key.
    let (claim, wanted) = (forgery("type"), forgery("type-of-proof"));
    let (whole, _) = chain.deploy(&claim.contract());
    assert_eq!(chain.call(whole, claim.calldata()).0, Outcome::Reverted("WrongProof"));
    let digest = |claim: &Claim| hex::encode(claim.key.digest());
    let source = without(wanted.contract().source(), &digest(&wanted), &digest(&claim));
    let (lax, _) = chain.deploy_as(&wanted.contract(), &source);
    assert_eq!(chain.call(lax, claim.calldata()).0, Outcome::Accepted, "control");
}

/// The order of the groups.
const R: &str = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";

/// The big-endian number in 32 bytes, plus r.
fn plus_r(word: &mut [u8]) {
    let r = hex::decode(R).expect("digits");
    let mut carry = 0;
    for (byte, r) in word.iter_mut().zip(r).rev() {
        let sum = u16::from(*byte) + u16::from(r) + carry;
        (*byte, carry) = ((sum & 0xff) as u8, sum >> 8);
    }
    assert_eq!(carry, 0, "it fits");
}

/// D10: a value plus r is refused; without the checks a term plus r is the same term.
#[test]
fn d10_unreduced_values() {
    let claim = vector("direct-2");
    let mut chain = Chain::new(SpecId::PRAGUE);
    let contract = claim.contract();
    let (whole, _) = chain.deploy(&contract);
    let check = "if (e >= R) revert NotReduced();";
    let (lax, _) = chain.deploy_as(&contract, &without(contract.source(), check, ""));
    let data = claim.calldata();
    // The last word is a term, and the first public value follows four words.
    let (term, value) = (data.len() - 32, 4 + 128);
    for at in [term, value] {
        let mut changed = data.clone();
        plus_r(&mut changed[at..at + 32]);
        assert_eq!(chain.call(whole, changed).0, Outcome::Reverted("NotReduced"));
    }
    // In T1 it has other bytes, so r is another one, under which all holds as well: proofs would have twins.
    let mut twin = data.clone();
    plus_r(&mut twin[term..]);
    assert_eq!(chain.call(lax, twin).0, Outcome::Accepted, "control");
}

/// D11 and D12: where the precompiles are missing, calls succeed and return nothing; and the word of the
/// pairing counts.
#[test]
fn d11_d12_results_of_precompiles() {
    let claim = forgery("factors");
    let contract = claim.contract();
    let source = contract.source();
    let (length, word) = ("done := and(done, eq(returndatasize(), 32))", "one := eq(mload(0), 1)");
    let of_sums = "done := and(done, eq(returndatasize(), 128))";
    // Whatever the pairing says.
    let no_word = without(source, word, "one := 1");
    let mut prague = Chain::new(SpecId::PRAGUE);
    let (lax, _) = prague.deploy_as(&contract, &no_word);
    assert_eq!(prague.call(lax, claim.calldata()).0, Outcome::Accepted, "control of D12");
    let (whole, _) = prague.deploy(&contract);
    assert_eq!(prague.call(whole, claim.calldata()).0, Outcome::Reverted("WrongProof"));
    // Before Prague, the lengths alone refuse.
    let mut cancun = Chain::new(SpecId::CANCUN);
    let (whole, _) = cancun.deploy_as(&contract, &no_word);
    assert_eq!(cancun.call(whole, claim.calldata()).0, Outcome::Reverted("PrecompileFailed"));
    let lax = without(&without(&no_word, length, ""), of_sums, "");
    let (lax, _) = cancun.deploy_as(&contract, &lax);
    assert_eq!(cancun.call(lax, claim.calldata()).0, Outcome::Accepted, "control of D11");
    let (only_pairing, _) = cancun.deploy_as(&contract, &without(&no_word, of_sums, ""));
    assert_eq!(
        cancun.call(only_pairing, claim.calldata()).0,
        Outcome::Reverted("PrecompileFailed")
    );
}

/// Other lengths, contexts, values and keys, and points that are in no group, in each place.
#[test]
fn wrong_proofs_are_refused() {
    let claim = vector("direct-2");
    let mut chain = Chain::new(SpecId::PRAGUE);
    let (address, _) = chain.deploy(&claim.contract());
    let mut refused = |claim: &Claim, error| {
        assert_eq!(chain.call(address, claim.calldata()).0, Outcome::Reverted(error));
    };
    refused(&Claim { context: [8; 32], ..vector("direct-2") }, "WrongSum");
    let public = claim.public.iter().rev().copied().collect();
    refused(&Claim { public, ..vector("direct-2") }, "WrongSum");
    let public = claim.public[..1].to_vec();
    refused(&Claim { public, ..vector("direct-2") }, "WrongNumberOfValues");
    refused(&vector("direct-1"), "WrongLength");
    refused(&vector("direct-5"), "WrongLength");
    // Lengths that are off by one byte.
    let data = claim.calldata();
    let at = data.len() - 672 * 2 - 32;
    for change in [1i16, -1] {
        let mut changed = data.clone();
        let length = (672 * 2 + change).to_be_bytes();
        changed[at + 30..at + 32].copy_from_slice(&length);
        changed.push(0);
        assert_eq!(chain.call(address, changed).0, Outcome::Reverted("WrongLength"));
    }
}

/// The words of a proof with e_0 such that the memory check holds, as anybody can choose it: so what the
/// precompiles check is reached whatever D is.
fn balanced(claim: &Claim, mut words: Vec<u8>) -> Vec<u8> {
    let vk = claim.key.verifying();
    let mut values = Vec::new();
    claim.public.iter().for_each(|x| put_scalar(&mut values, x));
    let n = claim.key.instances();
    let mut hasher = Keccak256::new();
    let mut tag = b"hekaton direct v1".to_vec();
    tag.resize(32, 0);
    for part in [&tag[..], &claim.key.digest(), &claim.context, &values, &words[..128 * n]] {
        hasher.update(part);
    }
    let t0 = hasher.finalize();
    let challenge = |number: u8| {
        let hash = Keccak256::new().chain_update(t0).chain_update([0; 31]).chain_update([number]);
        Fr::from_be_bytes_mod_order(&hash.finalize())
    };
    let (g, b) = (challenge(1), challenge(2));
    let mut sum = Fr::from(0u64);
    for (wire, x) in vk.public.iter().zip(&claim.public) {
        let fingerprint = g + x + b * Fr::from(wire.address);
        sum += Fr::from(wire.multiplicity) * fingerprint.inverse().expect("no pole");
    }
    assert!(vk.constants.is_empty());
    let terms = 640 * n;
    sum += words[terms + 32..].chunks(32).map(Fr::from_be_bytes_mod_order).sum::<Fr>();
    let mut first = Vec::new();
    put_scalar(&mut first, &-sum);
    words[terms..terms + 32].copy_from_slice(&first);
    words
}

/// A point that is on the curve and outside of its group.
fn outside<G: Group>() -> Vec<u8> {
    let at = |x: u8| {
        let mut code = vec![0; G::COMPRESSED];
        (code[0], code[G::COMPRESSED - 1]) = (0x80, x);
        G::on_curve_from_compressed(&code).ok().filter(|point| !point.is_in_group())
    };
    let mut out = Vec::new();
    put_point(&mut out, &(1..=255).find_map(at).expect("most points are outside"));
    out
}

/// Each point of a proof outside of its group, with an unreduced coordinate, and off the curve: all are
/// refused by the precompiles, also where a factor is 1 and nothing is multiplied.
#[test]
fn points_are_checked_in_each_place() {
    const Q: &str = "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
    let q = hex::decode(Q).expect("digits");
    let (g1, g2) = (outside::<G1Point>(), outside::<G2Point>());
    for name in ["direct-1", "direct-5"] {
        let claim = vector(name);
        let n = claim.key.instances();
        let mut chain = Chain::new(SpecId::PRAGUE);
        let (address, _) = chain.deploy(&claim.contract());
        let data = claim.calldata();
        let start = data.len() - 672 * n;
        let mut call = |words: Vec<u8>| {
            let data = [&data[..start], &balanced(&claim, words)].concat();
            chain.call(address, data).0
        };
        let words = data[start..].to_vec();
        // Control: with the e_0 that D has anyway nothing changes.
        assert_eq!(call(words.clone()), Outcome::Accepted);
        for i in [0, n - 1] {
            let a = 128 * n + 384 * i;
            for (at, point) in [(128 * i, &g1), (a, &g1), (a + 128, &g2), (512 * n + 128 * i, &g1)]
            {
                let mut changed = words.clone();
                changed[at..at + point.len()].copy_from_slice(point);
                assert_eq!(call(changed), Outcome::Reverted("PrecompileFailed"), "{name}: {at}");
                // The coordinate x, plus q.
                let mut changed = words.clone();
                let mut carry = 0;
                for (byte, q) in changed[at + 16..at + 64].iter_mut().zip(&q).rev() {
                    let sum = u16::from(*byte) + u16::from(*q) + carry;
                    (*byte, carry) = ((sum & 0xff) as u8, sum >> 8);
                }
                changed[at + 15] += carry as u8;
                assert_eq!(call(changed), Outcome::Reverted("PrecompileFailed"), "{name}: {at}");
                // Off the curve.
                let mut changed = words.clone();
                changed[at + point.len() - 1] ^= 1;
                assert_eq!(call(changed), Outcome::Reverted("PrecompileFailed"), "{name}: {at}");
            }
        }
    }
}

/// A thousand proofs with a changed bit, all over the calldata.
#[test]
fn a_thousand_mutations() {
    let claim = vector("direct-2");
    let mut chain = Chain::new(SpecId::PRAGUE);
    let (address, _) = chain.deploy(&claim.contract());
    let data = claim.calldata();
    for i in 0..1000usize {
        let mut changed = data.clone();
        let at = 4 + i * 7919 % (data.len() - 4);
        changed[at] ^= 1 << (i % 8);
        let outcome = chain.call(address, changed).0;
        assert_ne!(outcome, Outcome::Accepted, "byte {at}");
    }
}

/// The same contract for both forms of the public parts accepts the same proofs, and each refuses that of
/// another context; data contracts are compared with their hashes in each call.
#[test]
fn forms_and_data_contracts() {
    for (n, masks) in [(3, true), (24, false), (120, true)] {
        let Proven { key, columns, public, proof } =
            proven(&Doublings { links: n, extra: 0 }, &Fr::from(3u64), masks, [1; 32]);
        for columns in [None, Some(&columns)] {
            let contract = Contract::new(&key, columns).expect("a contract");
            // The same bytes for the same key.
            assert_eq!(contract.source(), Contract::new(&key, columns).expect("again").source());
            let mut chain = Chain::new(SpecId::OSAKA);
            let (address, _) = chain.deploy(&contract);
            let call = |context| calldata(&public, &context, &proof);
            let (outcome, gas) = chain.call(address, call([1; 32]));
            assert_eq!(outcome, Outcome::Accepted, "n = {n}");
            let estimate = contract.gas().total();
            assert!(estimate.abs_diff(gas) < gas / 50, "n = {n}: {gas}, estimate {estimate}");
            assert_eq!(chain.call(address, call([0; 32])).0, Outcome::Reverted("WrongSum"));
        }
    }
    // A contract that does not have the data of the key.
    let Proven { key, public, proof, .. } =
        proven(&Doublings { links: 120, extra: 0 }, &Fr::from(3u64), true, [1; 32]);
    let contract = Contract::new(&key, None).expect("a contract");
    assert!(!contract.data().is_empty());
    let creation = hekaton_evm_revm::compile(contract.source());
    let with = |addresses: &[Address]| {
        let words = addresses.iter().flat_map(|a| [&[0; 12], &a.as_slice()[..]].concat());
        creation.iter().copied().chain(words).collect::<Vec<u8>>()
    };
    let mut chain = Chain::new(SpecId::OSAKA);
    let mut addresses: Vec<Address> =
        contract.data().iter().map(|part| chain.create(part.creation.clone()).0).collect();
    let (address, _) = chain.create(with(&addresses));
    let data = calldata(&public, &[1; 32], &proof);
    assert_eq!(chain.call(address, data.clone()).0, Outcome::Accepted);
    // The account gets other code, as one whose code had deleted itself would.
    let mut other = contract.data()[0].creation.clone();
    *other.last_mut().expect("data") ^= 1;
    let changed = chain.create(other).0;
    chain.move_code(changed, addresses[0]);
    assert_eq!(chain.call(address, data).0, Outcome::Reverted("WrongData"));
    addresses[0] = changed;
    assert!(chain.try_create(with(&addresses)).is_err(), "also when it is created");
}
