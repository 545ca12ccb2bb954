//! `hekaton verify`.

use crate::Registry;
use crate::exit::{self, Failure, OrFail};
use crate::hints::explain;
use crate::options::Verify;
use crate::terminal::output;
use hekaton_core::{Trust, VerifyError, VerifyingKey, verify};
use serde_json::json;
use std::time::Instant;

pub(crate) fn run(command: &Verify, registry: &Registry, json: bool) -> Result<(), Failure> {
    let key = read_key(&command.key)?;
    if key.trust == Trust::InsecureSeed && !command.accept_test_keys {
        let message = format!(
            "{}: {}; a proof under these keys proves nothing",
            command.key.display(),
            key.trust.statement()
        );
        return Err(Failure::new(exit::REFUSED, message));
    }
    let proof = exit::read_at_most(&command.proof, exit::PROOF_LIMIT)?;
    let application = registry.get(&key.circuit).ok_or_else(|| {
        let why = "this program does not have it and cannot read its public values";
        let what = format!("the key is for the circuit '{}': {why}", key.circuit);
        Failure::new(exit::BAD_FILE, format!("{}: {what}", command.key.display()))
    })?;
    let public = application.read_public(&command.public).map_err(|e| wrong_public(&e))?;
    let start = Instant::now();
    verify(&key, &public, &proof).map_err(|e| {
        let code = match &e {
            VerifyError::Proof(_) => exit::BAD_FILE,
            VerifyError::PublicValues { .. } => return wrong_public(&e),
            _ => exit::REFUSED,
        };
        Failure::new(code, format!("{}: {}", command.proof.display(), explain(&e)))
    })?;
    let elapsed = start.elapsed();
    let object = json!({
        "ok": true, "circuit": key.circuit, "parameters": parameters(&key),
        "public": command.public, "subcircuits": key.instances,
        "zero_knowledge": key.zero_knowledge, "trust": key.trust.statement(),
        "key_digest": hex::encode(key.digest()), "seconds": elapsed.as_secs_f64(),
    });
    let lines = format!(
        "the proof holds ({})\ncircuit: {} {}, {} subcircuits\npublic values: {}\nkey digest: {}\n\
         zero knowledge: {}\ntrust: {}",
        output::seconds(elapsed),
        key.circuit,
        key.parameters,
        key.instances,
        command.public,
        hex::encode(key.digest()),
        if key.zero_knowledge { "yes" } else { "NO" },
        key.trust.statement(),
    );
    output::result(json, &object, &lines)
}

/// The failure for public values that cannot be read, or of the wrong number.
fn wrong_public(error: &dyn std::fmt::Display) -> Failure {
    let hint = "`hekaton hash FILE --keys KEYS` prints the public values of a file";
    Failure::new(exit::USAGE, format!("--public: {error}; {hint}"))
}

fn read_key(path: &std::path::Path) -> Result<VerifyingKey, Failure> {
    if path.is_dir() {
        let message = format!(
            "{} is a directory: --key takes a file, perhaps {}",
            path.display(),
            path.join("verifying.key").display()
        );
        return Err(Failure::new(exit::BAD_FILE, message));
    }
    let bytes = exit::read_at_most(path, exit::KEY_LIMIT)?;
    VerifyingKey::from_bytes(&bytes)
        .map_err(|e| format!("{}: {e}", path.display()))
        .or_fail(exit::BAD_FILE)
}

/// The parameters of a verifying key as a JSON value.
pub(crate) fn parameters(key: &VerifyingKey) -> serde_json::Value {
    serde_json::from_str(&key.parameters).unwrap_or(serde_json::Value::Null)
}
