//! `hekaton export`, and `hekaton verify` for direct proofs.

use crate::app::App;
use crate::commands::verify::{check_digest, parameters, read_public, refusal, wrong_public};
use crate::family::OpenedFamily;
use crate::hints::explain;
use crate::imported;
use crate::options::{Export, ExportProof, ExportVerifier, Verify};
use crate::public_values;
use hekaton_circuit::Masking;
use hekaton_core::keys::ExportError;
use hekaton_core::{
    DirectKey, DirectProof, Fr, LocalEngine, ProverKeys, Trust, VerifyError, verify_direct,
    verify_direct_with_test_keys,
};
use hekaton_evm::{Columns, Contract, ContractError, calldata};
use hekaton_storage::{FamilyStore, KeyStore};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, Inputs};
use hekaton_terminal::shell;
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(command: &Export, app: &App, json: bool) -> Result<(), Failure> {
    match command {
        Export::Verifier(command) => verifier(command, app, json),
        Export::Proof(command) => proof(command, app, json),
    }
}

/// The most bytes that are read of a direct proof.
pub(crate) const PROOF_LIMIT: u64 = 2 << 20;
const _: () = assert!(DirectProof::encoded_len(DirectKey::MAX_INSTANCES) as u64 <= PROOF_LIMIT);

/// The direct key of keys.
pub(crate) fn direct_key(keys: &ProverKeys, pool: &LocalEngine) -> Result<DirectKey, Failure> {
    keys.direct_key(pool).map_err(|e| match e {
        ExportError::Direct(_) | ExportError::Key(_) => Failure::new(exit::BAD_FILE, e),
        other => Failure::new(exit::FAILED, other),
    })
}

/// Reports whether a file starts like a direct key.
pub(crate) fn is_direct_key(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read = hekaton_files::open_regular(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *DirectKey::MAGIC
}

pub(crate) fn read_direct_key(path: &Path) -> Result<DirectKey, Failure> {
    let bytes = exit::read_at_most(path, exit::KEY_LIMIT)?;
    let named = |e| format!("{}: {e}", path.display());
    DirectKey::from_bytes(&bytes).map_err(named).or_fail(exit::BAD_FILE)
}

/// The command that writes the direct key of the keys of a run.
pub(crate) fn verifier_command(keys: &Path, key: &str) -> String {
    // Of a family, the option `--key` of `verify` has the parameters that it leaves open.
    let keys = match FamilyStore::is_one(keys) {
        true => key.to_owned(),
        false => shell::path(keys),
    };
    format!("export verifier {keys} --out direct.key")
}

/// Refuses test keys, with which anybody can forge proofs.
fn check_trust(key: &DirectKey, path: &Path, accepted: bool) -> Result<(), Failure> {
    match key.verifying().trust {
        Trust::InsecureSeed if !accepted => {
            let trust = key.verifying().trust.statement();
            let why =
                format!("{}: {trust}; a proof under these keys proves nothing", path.display());
            Err(Failure::new(exit::REFUSED, why))
        }
        _ => Ok(()),
    }
}

/// The direct key of a key store, a family, or a file, with the columns of the family.
fn opened(
    command: &ExportVerifier,
    app: &App,
    engine: &LocalEngine,
) -> Result<(DirectKey, Option<Columns>), Failure> {
    let path = &command.keys;
    let is_family = FamilyStore::is_one(path);
    if !is_family && (command.file.is_some() || !command.parameters.parameters.is_empty()) {
        let why = "-p and --for are for key families; these keys are for one circuit";
        return Err(Failure::new(exit::USAGE, why));
    }
    if is_family {
        let input = command.file.as_deref().map(exit::input).transpose()?;
        let family = OpenedFamily::open(path)?;
        let circuit = family.circuit(app, &command.parameters.map(), input.as_ref())?;
        let (_, keys) = circuit.derive(engine)?;
        let key = direct_key(&keys, engine)?;
        let masking = Masking::new(key.verifying().zero_knowledge);
        let prepared = circuit.circuit.prepared().or_fail(exit::USAGE)?;
        let wiring = prepared.layout().wiring(masking);
        let columns = Columns::new(&key, &family.key, &wiring).or_fail(exit::BAD_FILE)?;
        return Ok((key, Some(columns)));
    }
    if is_direct_key(path) {
        return Ok((read_direct_key(path)?, None));
    }
    let (_, keys) = KeyStore::open(path).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
    Ok((direct_key(&keys, engine)?, None))
}

/// The file of data contract `number`, beside that of its contract.
fn data_path(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".data{number}"));
    PathBuf::from(name)
}

/// Compares the file of `--check` with the one that would be written.
fn check_file(command: &ExportVerifier, bytes: &[u8], columns: bool) -> Result<(), Failure> {
    let Some(path) = &command.check else { return Ok(()) };
    if exit::read_at_most(path, exit::KEY_LIMIT)? == bytes {
        return Ok(());
    }
    let why = match (command.evm, columns) {
        (true, false) => {
            "not the file that this version exports from these keys; compare a contract that was exported \
             from a key family with the family"
        }
        _ => "not the file that this version exports from these keys",
    };
    Err(Failure::new(exit::REFUSED, format!("{}: {why}", path.display())))
}

/// Writes a file, and beside that of a contract those of its data. Returns their paths.
fn write_files(
    out: &Path,
    bytes: Vec<u8>,
    contract: Option<&Contract>,
    inputs: &Inputs<'_>,
) -> Result<Vec<PathBuf>, Failure> {
    let mut files = vec![(out.to_owned(), bytes)];
    let data = contract.into_iter().flat_map(Contract::data).enumerate();
    files.extend(data.map(|(number, part)| {
        (data_path(out, number), (hex::encode(&part.creation) + "\n").into_bytes())
    }));
    // All of them before the first is written: none of them may be the key.
    for (path, _) in &files {
        output::check_output(path, "--out", inputs)?;
    }
    for (path, bytes) in &files {
        output::write(path, bytes)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

fn verifier(command: &ExportVerifier, app: &App, json: bool) -> Result<(), Failure> {
    let engine = LocalEngine::new(None).or_fail(exit::FAILED)?;
    let keys = Some(command.keys.as_path()).filter(|keys| keys.is_dir());
    let inputs = Inputs { files: &[&command.keys], keys, run: None };
    if let Some(out) = &command.out {
        output::check_output(out, "--out", &inputs)?;
    }
    let (key, columns) = opened(command, app, &engine)?;
    check_trust(&key, &command.keys, command.accept_test_keys)?;
    let contract = match command.evm {
        true => Some(Contract::new(&key, columns.as_ref()).map_err(|e| match e {
            ContractError::Gas { .. } => Failure::new(exit::FAILED, e),
            other => Failure::new(exit::BAD_FILE, other),
        })?),
        false => None,
    };
    let bytes = match &contract {
        Some(contract) => contract.source().as_bytes().to_vec(),
        None => key.to_bytes(),
    };
    check_file(command, &bytes, columns.is_some())?;
    let written = match &command.out {
        Some(out) => write_files(out, bytes, contract.as_ref(), &inputs)?,
        None => Vec::new(),
    };
    let gas = contract.as_ref().map(|contract| contract.gas().total());
    let (digest, n) = (hex::encode(key.digest()), key.instances());
    let object = json!({
        "ok": true, "kind": if command.evm { "contract" } else { "direct key" }, "files": written,
        "same": command.check.is_some(), "key_digest": digest, "subcircuits": n, "gas_estimate": gas,
        "proof_bytes": DirectProof::encoded_len(n), "trust": key.verifying().trust.statement(),
    });
    let places: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    let what = match &command.check {
        Some(path) => format!("{}: the same file", path.display()),
        None => format!("wrote {}", places.join(", ")),
    };
    let gas = gas.map_or_else(String::new, |gas| {
        format!("gas of a proof: about {} (an estimate)\n", output::count(gas))
    });
    let lines = format!(
        "{what}\ndirect key digest: {digest}\nsubcircuits: {n}; proofs of {}\n{gas}trust: {}",
        output::bytes(DirectProof::encoded_len(n) as u64),
        key.verifying().trust.statement(),
    );
    output::result(json, &object, &lines)
}

/// Verifies a direct proof, under keys made for tests only if they are accepted.
fn verdict(
    key: &DirectKey,
    public: &[Fr],
    context: Option<[u8; 32]>,
    bytes: &[u8],
    accept_test_keys: bool,
) -> Result<(), VerifyError> {
    let context = context.unwrap_or([0; 32]);
    match accept_test_keys {
        true => verify_direct_with_test_keys(key, public, &context, bytes),
        false => verify_direct(key, public, &context, bytes),
    }
}

/// The failure for a direct proof that does not verify with this context.
fn refused(path: &Path, error: &VerifyError, context: Option<[u8; 32]>) -> Failure {
    // A proof that is bound to something else fails like a wrong one.
    let hint = match (error, context) {
        (VerifyError::PublicValues { .. }, _) => return wrong_public(error),
        (VerifyError::Equations { .. }, None) => "; if it is bound to a context, pass --context",
        (VerifyError::Equations { .. }, Some(_)) => "; is it bound to this --context?",
        _ => "",
    };
    Failure { message: format!("{}: {error}{hint}", path.display()), ..refusal(error) }
}

/// `hekaton verify` with a direct key.
pub(crate) fn verify(command: &Verify, app: &App, json: bool) -> Result<(), Failure> {
    let path = &command.key;
    if command.file.is_some() || !command.parameters.parameters.is_empty() {
        let why = "-p and --for are for key families; a direct key is for one circuit";
        return Err(Failure::new(exit::USAGE, why));
    }
    let key = read_direct_key(path)?;
    check_digest(command, key.digest())?;
    check_trust(&key, path, command.accept_test_keys)?;
    let bytes = exit::read_at_most(&command.proof, PROOF_LIMIT)?;
    let vk = key.verifying();
    let public = read_public(&command.public, path, app, vk)?;
    let start = Instant::now();
    verdict(&key, &public, command.context, &bytes, command.accept_test_keys)
        .map_err(|e| refused(&command.proof, &e, command.context))?;
    let elapsed = start.elapsed();
    let by_name = vk.values_to_json(&public).or_fail(exit::FAILED)?;
    let text = app
        .get(&vk.circuit)
        .and_then(|application| application.show_public(&public))
        .unwrap_or_else(|| by_name.to_string());
    let shown = public_values::for_people(&text, &[], || vk.public_names(), &public);
    let (digest, pinned) = (hex::encode(key.digest()), command.key_digest.is_some());
    let object = json!({
        "ok": true, "kind": "direct", "circuit": vk.circuit, "parameters": parameters(vk),
        "public": text, "public_values": by_name, "subcircuits": vk.instances,
        "context": hex::encode(command.context.unwrap_or([0; 32])),
        "zero_knowledge": vk.zero_knowledge, "trust": vk.trust.statement(),
        "key_digest": digest, "key_digest_pinned": pinned, "seconds": elapsed.as_secs_f64(),
    });
    let lines = format!(
        "the proof holds (direct, {})\npublic values: {shown}\ndirect key digest: {digest}{}\n\
         unverified claim of the key: {}{}, {} subcircuits\nzero knowledge: {}\ntrust: {}",
        output::seconds(elapsed),
        match pinned {
            true => ", as required",
            false => " (compare it: name and parameters are unverified)",
        },
        if vk.circuit == imported::NAME { "" } else { "circuit " },
        imported::describe(&vk.circuit, &parameters(vk)),
        vk.instances,
        if vk.zero_knowledge { "yes" } else { "NO" },
        vk.trust.statement(),
    );
    output::result(json, &object, &lines)
}

fn proof(command: &ExportProof, app: &App, json: bool) -> Result<(), Failure> {
    let key = read_direct_key(&command.key)?;
    check_trust(&key, &command.key, command.accept_test_keys)?;
    if let Some(out) = &command.out {
        let mut files = vec![command.proof.as_path(), &command.key];
        files.extend(command.public.strip_prefix('@').map(Path::new));
        let inputs = Inputs { files: &files, keys: None, run: None };
        output::check_output(out, "--out", &inputs)?;
    }
    let bytes = exit::read_at_most(&command.proof, PROOF_LIMIT)?;
    let public = read_public(&command.public, &command.key, app, key.verifying())?;
    // A call that reverts costs its sender gas.
    verdict(&key, &public, command.context, &bytes, command.accept_test_keys)
        .map_err(|e| refused(&command.proof, &e, command.context))?;
    let proof = DirectProof::from_bytes(&bytes, &key).or_fail(exit::FAILED)?;
    let context = command.context.unwrap_or([0; 32]);
    let text = format!("0x{}", hex::encode(calldata(&public, &context, &proof)));
    let object = json!({
        "ok": true, "kind": "calldata", "calldata": text, "key_digest": hex::encode(key.digest()),
        "context": hex::encode(context),
    });
    match &command.out {
        Some(out) => {
            output::write(out, (text + "\n").as_bytes())?;
            output::result(json, &object, &format!("wrote {}", out.display()))
        }
        None => output::result(json, &object, &text),
    }
}
