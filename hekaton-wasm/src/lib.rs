//! The Hekaton verifier for browsers and Node.
//!
//! [`verify`] and [`inspect_key`] accept any bytes and text, and answer with a JSON object: a refusal has
//! `"ok": false` and a `reason`. [`verify_look_up`] does the same for the answers of a key directory's
//! service. On WebAssembly, the module `exports` offers these functions to `js/hekaton.js`, which
//! JavaScript programs import. The WebAssembly module imports nothing: it has no access to the network,
//! files, clocks or random numbers.

mod directory;
#[cfg(target_arch = "wasm32")]
mod exports;

pub use directory::verify_look_up;

use hekaton_core::{Trust, VerifyingKey, verify_with_test_keys};
use serde_json::{Map, Value, json};

/// The requirements of a caller of [`verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The digest that the verifying key must have, as 64 hexadecimal digits.
    pub key_digest: Option<String>,
    /// **For tests only:** accepts keys from a known seed, under which anyone can forge proofs.
    pub accept_test_keys: bool,
}

/// Verifies a proof and returns the verdict as a JSON object.
///
/// `ok` is `true` if the proof holds for these public values under this key; otherwise, `reason` explains the
/// refusal. The other members describe the key, as in [`inspect_key`], if it can be read.
/// `public` is the JSON form of public values: an object by name, or an array in the key's order.
#[must_use]
pub fn verify(key: &[u8], proof: &[u8], public: &str, options: &Options) -> Value {
    let key = match VerifyingKey::from_bytes(key) {
        Ok(key) => key,
        Err(e) => return refusal(Map::new(), e),
    };
    let about = describe(&key);
    match check(&key, proof, public, options) {
        Ok(()) => verdict(about, None),
        Err(reason) => refusal(about, reason),
    }
}

/// Reads a verifying key and returns a JSON object: `ok`, `reason` if it cannot be read, and the
/// contents of the key.
///
/// `keyDigest`, `subcircuits`, `zeroKnowledge`, `trust`, `testKey`, `publicNames` and `constants`
/// follow from the key; `circuit` and `parameters` are unverified text in it.
#[must_use]
pub fn inspect_key(key: &[u8]) -> Value {
    match VerifyingKey::from_bytes(key) {
        Ok(key) => verdict(describe(&key), None),
        Err(e) => refusal(Map::new(), e),
    }
}

/// Verifies a proof under a key that could be read.
fn check(key: &VerifyingKey, proof: &[u8], public: &str, options: &Options) -> Result<(), String> {
    // The digest comes first: under another key, a valid proof is about another statement.
    if let Some(expected) = &options.key_digest {
        let found = hex::encode(key.digest());
        if expected.trim().to_ascii_lowercase() != found {
            return Err(format!(
                "the verifying key is not the required one: its digest is {found}, expected {}",
                shortened(expected.trim())
            ));
        }
    }
    let values = key.values_from_json(public).map_err(|e| e.to_string())?;
    let verdict = match options.accept_test_keys {
        true => verify_with_test_keys(key, &values, proof),
        false => hekaton_core::verify(key, &values, proof),
    };
    verdict.map_err(|e| e.to_string())
}

// It comes from a form of a web page, where a whole file can be pasted by mistake.
/// A text of the caller, shortened for an error message.
fn shortened(text: &str) -> String {
    match text.chars().count() {
        0..=80 => text.to_owned(),
        _ => text.chars().take(80).collect::<String>() + "...",
    }
}

/// Returns the facts about a key.
fn describe(key: &VerifyingKey) -> Map<String, Value> {
    let object = json!({
        "keyDigest": hex::encode(key.digest()),
        "circuit": key.circuit,
        // Text of the key's author, which need not be JSON.
        "parameters": serde_json::from_str::<Value>(&key.parameters)
            .unwrap_or_else(|_| Value::String(key.parameters.clone())),
        "subcircuits": key.instances,
        "zeroKnowledge": key.zero_knowledge,
        "trust": key.trust.statement(),
        "testKey": key.trust == Trust::InsecureSeed,
        "publicNames": key.public_names(),
        "constants": key.constants.len(),
    });
    let Value::Object(about) = object else { unreachable!("the macro was given an object") };
    about
}

fn refusal(about: Map<String, Value>, reason: impl ToString) -> Value {
    verdict(about, Some(reason.to_string()))
}

fn verdict(mut about: Map<String, Value>, reason: Option<String>) -> Value {
    about.insert("ok".to_owned(), Value::Bool(reason.is_none()));
    if let Some(reason) = reason {
        about.insert("reason".to_owned(), Value::String(reason));
    }
    Value::Object(about)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = include_bytes!("../../hekaton-core/tests/golden/v2.key");
    const PROOF: &[u8] = include_bytes!("../../hekaton-core/tests/golden/v2.proof");
    const TESTS: Options = Options { key_digest: None, accept_test_keys: true };

    fn reason(verdict: &Value) -> &str {
        assert_eq!(verdict["ok"], json!(false), "{verdict}");
        verdict["reason"].as_str().unwrap()
    }

    #[test]
    fn a_good_proof_holds() {
        let key = inspect_key(KEY);
        let names: Vec<&str> =
            key["publicNames"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let object = json!({ names[0]: "3", names[1]: 81 }).to_string();
        for public in [&object, "[3, \"0x51\"]"] {
            let verdict = verify(KEY, PROOF, public, &TESTS);
            assert_eq!(verdict["ok"], json!(true), "{verdict}");
            assert_eq!(verdict["subcircuits"], key["subcircuits"]);
            assert_eq!(verdict.get("reason"), None);
        }
        let digest = key["keyDigest"].as_str().unwrap().to_ascii_uppercase();
        let pinned = Options { key_digest: Some(format!(" {digest}\n")), ..TESTS };
        assert_eq!(verify(KEY, PROOF, &object, &pinned)["ok"], json!(true));
    }

    #[test]
    fn everything_else_is_refused_with_a_reason() {
        let public = "[3, 81]";
        let says = |verdict: Value, text: &str| {
            assert!(reason(&verdict).contains(text), "{verdict}");
        };
        says(verify(KEY, PROOF, "[3, 82]", &TESTS), "does not hold for these public values");
        says(verify(KEY, &PROOF[..PROOF.len() - 1], public, &TESTS), "malformed proof");
        says(verify(KEY, PROOF, public, &Options::default()), "test key");
        says(verify(KEY, PROOF, "[3]", &TESTS), "expected 2 public values, found 1");
        says(verify(KEY, PROOF, "{", &TESTS), "not a JSON object or array");
        says(verify(KEY, PROOF, "{\"z\": 1}", &TESTS), "'z' is not a public wire");
        let other = Options { key_digest: Some("00".repeat(32)), ..TESTS };
        says(verify(KEY, PROOF, public, &other), "not the required one");
        says(verify(&KEY[1..], PROOF, public, &TESTS), "not a Hekaton verifying key");
        says(inspect_key(b""), "not a Hekaton verifying key");
        let mut damaged = KEY.to_vec();
        damaged[200] ^= 1;
        says(inspect_key(&damaged), "damaged verifying key");
    }
}
