//! `hekaton verify`.

use crate::app::App;
use crate::family::OpenedFamily;
use crate::hints::explain;
use crate::imported;
use crate::imports;
use crate::options::Verify;
use crate::public_values;
use crate::transcripts;
use hekaton_core::{
    Fr, LocalEngine, ProofError, Trust, VerifyError, VerifyingKey, verify, verify_with_test_keys,
};
use hekaton_storage::FamilyStore;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::{output, shell};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

// Above 60 lines, half of which are the verdict: as JSON and as text, with the same facts side by side.
pub(crate) fn run(command: &Verify, app: &App, json: bool) -> Result<(), Failure> {
    if command.context.is_some() {
        let why = "--context is for direct proofs, which have a direct key";
        return Err(Failure::new(exit::USAGE, why));
    }
    let key = read_key(command, app)?;
    // Before the proof is looked at: whoever knows the seed can forge any proof, so even a verdict
    // would mislead.
    if key.trust == Trust::InsecureSeed && !command.accept_test_keys {
        let message = format!(
            "{}: {}; a proof under these keys proves nothing",
            command.key.display(),
            key.trust.statement()
        );
        return Err(Failure::new(exit::REFUSED, message));
    }
    // A proof comes from the other side: without a limit, a huge file would exhaust the verifier's memory.
    let proof = exit::read_at_most(&command.proof, exit::PROOF_LIMIT)?;
    let public = read_public(&command.public, &command.key, app, &key)?;
    let start = Instant::now();
    verdict(&key, &public, &proof, command.accept_test_keys).map_err(|e| {
        if let VerifyError::PublicValues { .. } = &e {
            return wrong_public(&e);
        }
        let hint = match &e {
            VerifyError::Proof(ProofError::ForeignKey { .. }) if key.family.is_some() => {
                "; is it for the same parameters, and of the same family?"
            }
            _ => "",
        };
        let message = format!("{}: {}{hint}", command.proof.display(), explain(&e));
        Failure { message, ..refusal(&e) }
    })?;
    let elapsed = start.elapsed();
    let names = imports::names_beside(&command.key, &key, app);
    let by_name = match names.is_empty() {
        true => key.values_to_json(&public).or_fail(exit::FAILED)?,
        false => public_values::by_name(&names, &public),
    };
    let text = app
        .get(&key.circuit)
        .and_then(|application| application.show_public(&public))
        .unwrap_or_else(|| by_name.to_string());
    let shown = public_values::for_people(&text, &names, || key.public_names(), &public);
    let pinned = command.key_digest.is_some();
    let derived = FamilyStore::is_one(&command.key);
    let (ceremony, contributors) = match derived {
        true => transcripts::of_derived_key(&command.key, &key)?,
        false => transcripts::of_stored_key_if_readable(&command.key, &key, app),
    };
    let object = json!({
        "ok": true, "kind": "aggregated", "circuit": key.circuit, "parameters": parameters(&key),
        "public": text, "public_values": by_name, "subcircuits": key.instances,
        "zero_knowledge": key.zero_knowledge, "trust": key.trust.statement(),
        "ceremony": ceremony, "key_digest": hex::encode(key.digest()), "key_digest_pinned": pinned && !derived,
        "family": key.family.map(hex::encode), "family_pinned": pinned && derived,
        "seconds": elapsed.as_secs_f64(),
    });
    let (what, digest, of_itself) = match key.family {
        Some(family) if derived => ("family digest", family, "derived for:"),
        _ => ("key digest", key.digest(), "unverified claim of the key:"),
    };
    let lines = format!(
        "the proof holds (aggregated, {})\npublic values: {shown}\n{what}: {}{}\n\
         {of_itself} {}{}, {} subcircuits\nzero knowledge: {}\ntrust: {}{contributors}",
        output::seconds(elapsed),
        hex::encode(digest),
        match pinned {
            true => ", as required",
            false => " (compare it: name and parameters are unverified)",
        },
        if key.circuit == imported::NAME { "" } else { "circuit " },
        imported::describe(&key.circuit, &parameters(&key)),
        key.instances,
        if key.zero_knowledge { "yes" } else { "NO" },
        key.trust.statement(),
    );
    output::result(json, &object, &lines)
}

/// Verifies a proof, under keys made for tests only if they are accepted.
///
/// # Errors
/// Fails if the proof does not hold, is damaged, or is for another key or other public values.
pub fn verdict(
    key: &VerifyingKey,
    public: &[Fr],
    proof: &[u8],
    accept_test_keys: bool,
) -> Result<(), VerifyError> {
    match accept_test_keys {
        true => verify_with_test_keys(key, public, proof),
        false => verify(key, public, proof),
    }
}

/// The failure for a proof that does not verify, with the equations that fail.
pub fn refusal(error: &VerifyError) -> Failure {
    let code = match error {
        // A file that is no proof says nothing about the statement, so scripts must be able to tell
        // it from a proof that fails.
        VerifyError::Proof(_) => exit::BAD_FILE,
        _ => exit::REFUSED,
    };
    let details = match error {
        VerifyError::Equations { failing } => {
            json!({ "equations": failing.iter().map(ToString::to_string).collect::<Vec<_>>() })
        }
        _ => Value::Null,
    };
    Failure { code, message: error.to_string(), details }
}

/// Refuses keys with another digest than `--key-digest`.
pub(crate) fn check_digest(command: &Verify, found: [u8; 32]) -> Result<(), Failure> {
    match command.key_digest {
        Some(expected) if expected != found => {
            let (expected, found) = (hex::encode(expected), hex::encode(found));
            let why = format!("its digest is {found}, but --key-digest requires {expected}");
            Err(Failure::new(exit::REFUSED, format!("{}: {why}", command.key.display())))
        }
        _ => Ok(()),
    }
}

/// The verifying key: that of a file, or derived from a family. `--key-digest` is the digest of the key or
/// of the family. The family in a key file is an unverified claim, so the digest of a family pins only keys
/// that were derived here.
fn read_key(command: &Verify, app: &App) -> Result<VerifyingKey, Failure> {
    if FamilyStore::is_one(&command.key) {
        let input = command.file.as_deref().map(exit::input).transpose()?;
        let family = OpenedFamily::open(&command.key)?;
        // First, because nothing else in the files of a family shows that it is the family that the verifier trusts.
        check_digest(command, family.digest()?)?;
        let circuit = family.circuit(app, &command.parameters.map(), input.as_ref())?;
        let engine = LocalEngine::new(None).or_fail(exit::FAILED)?;
        return circuit.derive_verifying_key(&engine);
    }
    // Refused and not ignored: the reader of the verdict could take them for something that was
    // checked.
    if command.file.is_some() || !command.parameters.parameters.is_empty() {
        let why = "-p and --for are for key families; a verifying key is for one circuit";
        return Err(Failure::new(exit::USAGE, why));
    }
    let key = read_key_file(&command.key)?;
    check_digest(command, key.digest())?;
    Ok(key)
}

/// The public values: a JSON object by name, or the text form of the key's circuit.
pub(crate) fn read_public(
    public: &str,
    path: &Path,
    app: &App,
    key: &VerifyingKey,
) -> Result<Vec<Fr>, Failure> {
    let text = match public.strip_prefix('@') {
        None => public.to_owned(),
        Some(path) => {
            let bytes = exit::read_at_most(Path::new(path), exit::KEY_LIMIT)?;
            String::from_utf8(bytes).map_err(|_| wrong_public(&format!("{path} is not text")))?
        }
    };
    if text.trim_start().starts_with(['{', '[']) {
        let names = imports::names_beside(path, key, app);
        let read = match names.is_empty() {
            true => key.values_from_json(&text),
            // By the names in the circuit's source, or by those in the key: `hash` prints the former only where it finds
            // them.
            false => key
                .values_from_json_by(&names, &text)
                .or_else(|e| key.values_from_json(&text).map_err(|_| e)),
        };
        return read.map_err(|e| wrong_public(&e));
    }
    // To forget the `@` is an easy mistake, and the error about a path that is not a public value
    // would not point to it.
    if !public.starts_with('@') && Path::new(public).is_file() {
        let file = shell::word(public);
        return Err(wrong_public(&format!("to read the values from that file, write @{file}")));
    }
    let own = app.get(&key.circuit).and_then(|application| application.read_public(&text));
    own.unwrap_or_else(|| {
        let names = key.public_names().join(", ");
        Err(format!("expected a JSON object with a value for each of: {names}").into())
    })
    .map_err(|e| wrong_public(&e))
}

/// The failure for public values that cannot be read, or of the wrong number.
pub(crate) fn wrong_public(error: &dyn std::fmt::Display) -> Failure {
    let hint = "`hekaton hash FILE --keys KEYS` prints the public values of a file";
    Failure::new(exit::USAGE, format!("--public: {error}; {hint}"))
}

fn read_key_file(path: &Path) -> Result<VerifyingKey, Failure> {
    if path.is_dir() {
        let message = format!(
            "{} is a directory: --key takes a file, perhaps {}",
            path.display(),
            path.join("verifying.key").display()
        );
        return Err(Failure::new(exit::BAD_FILE, message));
    }
    if path.file_name().is_some_and(|name| name == "family.key") {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new(".")).display();
        let why = format!("{}: --key takes the directory of a family, {directory}", path.display());
        return Err(Failure::new(exit::BAD_FILE, why));
    }
    let bytes = exit::read_at_most(path, exit::KEY_LIMIT)?;
    VerifyingKey::from_bytes(&bytes)
        .map_err(|e| format!("{}: {e}", path.display()))
        .or_fail(exit::BAD_FILE)
}

/// The parameters of a verifying key as JSON. A key may come from anyone, so text that is not JSON is shown as text.
pub(crate) fn parameters(key: &VerifyingKey) -> Value {
    serde_json::from_str(&key.parameters).unwrap_or_else(|_| Value::String(key.parameters.clone()))
}
