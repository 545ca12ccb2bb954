//! `hekaton inspect`: shows what any Hekaton file contains.

use crate::app::App;
use crate::commands::export::{self, read_direct_key};
use crate::commands::family;
use crate::hints::explain;
use crate::imported;
use crate::options::Inspect;
use crate::transcripts;
use hekaton_core::keys::inspect_sections;
use hekaton_core::{DirectKey, DirectProof, Proof, VerifyingKey, VerifyingKeyError};
use hekaton_files::open_regular;
use hekaton_storage::{FamilyStore, KeyStore};
use hekaton_terminal::exit::{self, BAD_FILE, Failure, OrFail};
use hekaton_terminal::output::{self, one_line};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

pub(crate) fn run(command: &Inspect, app: &App, json: bool) -> Result<(), Failure> {
    let path = &command.path;
    let (object, lines) = if path.is_dir() { directory(path, app)? } else { file(path, app)? };
    output::result(json, &object, &lines)
}

fn directory(path: &Path, app: &App) -> Result<(Value, String), Failure> {
    if path.join("run.json").is_file() {
        let message = format!(
            "{0} is a run directory: `hekaton report {0}` shows what is in it",
            path.display()
        );
        return Err(Failure::new(BAD_FILE, message));
    }
    if path.join("circuit.json").is_file() {
        return app.imports()?.inspect(path);
    }
    if FamilyStore::is_one(path) {
        return family::inspect(path);
    }
    // Reads all files and compares them with the manifest, so what is shown is true of the keys.
    let (manifest, keys) = KeyStore::open(path).map_err(|e| explain(&e)).or_fail(BAD_FILE)?;
    let (ceremony, contributors) =
        transcripts::of_stored_key_if_readable(path, &keys.verifying, app);
    let mut lines = vec![
        format!(
            "key store for {}{}",
            if manifest.circuit == imported::NAME { "" } else { "circuit " },
            imported::describe(&manifest.circuit, &manifest.parameters)
        ),
        format!("subcircuits     {}", output::count(manifest.instances as u64)),
        format!("constraints     {}", output::count(manifest.total_constraints())),
        format!("zero knowledge  {}", if manifest.zero_knowledge { "yes" } else { "NO" }),
        format!("verifying key   {}", manifest.verifying_key_digest),
        format!("layout          {}", manifest.layout_digest),
        format!("written by      {}", one_line(&manifest.written_by)),
    ];
    for t in &manifest.types {
        lines.push(format!(
            "type {:<14} {} constraints, {} slots, {} instances, {}",
            t.name,
            output::count(t.constraints as u64),
            t.slots,
            t.instances,
            output::bytes(t.bytes)
        ));
    }
    lines.push(format!("trust: {}{contributors}", manifest.trust));
    let object =
        json!({ "ok": true, "kind": "key directory", "manifest": manifest, "ceremony": ceremony });
    Ok((object, lines.join("\n")))
}

/// The first eight bytes of a file; fewer of a shorter one.
fn magic(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |e: std::io::Error| Failure::new(BAD_FILE, format!("{}: {e}", path.display()));
    let mut magic = Vec::new();
    // A pipe or a device would block here, or have no end: only regular files are opened.
    open_regular(path).and_then(|file| file.take(8).read_to_end(&mut magic)).map_err(failure)?;
    Ok(magic)
}

fn file(path: &Path, app: &App) -> Result<(Value, String), Failure> {
    let magic = magic(path)?;
    // JSON files have no magic. What they describe is the directory that they are in.
    let parent = hekaton_files::folder_of(path);
    let is_named = |name: &str| path.file_name().is_some_and(|found| found == name);
    if is_named("manifest.json") || is_named("family.json") {
        return directory(parent, app);
    }
    if is_named("circuit.json") {
        return app.imports()?.inspect(parent);
    }
    match &magic[..] {
        b"HEKATNPF" => proof(path),
        b"HEKATNDP" => direct_proof(path),
        magic if magic == DirectKey::MAGIC => direct_key(path),
        b"HEKATNVK" => verifying_key(path, app),
        b"HEKATNKY" => key_file(path),
        _ => Err(Failure::new(
            BAD_FILE,
            format!(
                "{} is not a Hekaton file: expected a proof, verifying key, proving key or \
                 aggregation key",
                path.display()
            ),
        )),
    }
}

fn proof(path: &Path) -> Result<(Value, String), Failure> {
    let bytes = exit::read_at_most(path, exit::PROOF_LIMIT)?;
    let digest = Proof::key_digest(&bytes)
        .map_err(|e| format!("{}: {e}", path.display()))
        .or_fail(BAD_FILE)?;
    let digest = hex::encode(digest);
    // A proof does not state the number of subcircuits, but its length depends on the GIPA rounds alone.
    // More than 40 rounds would be more than 2^40 subcircuits, which no key has.
    let rounds = (0..=40).find(|rounds| Proof::encoded_len(*rounds) == bytes.len());
    let size = match rounds {
        Some(0) => "1 subcircuit".to_owned(),
        Some(l) => {
            let (least, most) = ((1u64 << (l - 1)) + 1, 1u64 << l);
            format!("{least} to {most} subcircuits ({l} GIPA rounds)")
        }
        None => {
            let why = "no proof has this length, so it is cut off or has trailing data";
            let found = bytes.len();
            return Err(Failure::new(
                BAD_FILE,
                format!("{}: {found} bytes: {why}", path.display()),
            ));
        }
    };
    let lines = format!(
        "proof of {}\nverifying key   {digest}\nsize            {size}\n\
         Group elements were not checked: `hekaton verify` does that.",
        output::bytes(bytes.len() as u64)
    );
    Ok((
        json!({
            "ok": true, "kind": "proof", "bytes": bytes.len(), "key_digest": digest,
            "halvings": rounds,
        }),
        lines,
    ))
}

fn direct_proof(path: &Path) -> Result<(Value, String), Failure> {
    let bytes = exit::read_at_most(path, export::PROOF_LIMIT)?;
    let digest = DirectProof::key_digest(&bytes)
        .map_err(|e| format!("{}: {e}", path.display()))
        .or_fail(BAD_FILE)?;
    let digest = hex::encode(digest);
    let instances =
        (1..=DirectKey::MAX_INSTANCES).find(|n| DirectProof::encoded_len(*n) == bytes.len());
    let Some(instances) = instances else {
        let why = "no direct proof has this length, so it is cut off or has trailing data";
        let found = bytes.len();
        return Err(Failure::new(BAD_FILE, format!("{}: {found} bytes: {why}", path.display())));
    };
    let lines = format!(
        "direct proof of {}\ndirect key      {digest}\nsize            {instances} subcircuits\n\
         Group elements were not checked: `hekaton verify` does that.",
        output::bytes(bytes.len() as u64)
    );
    let object = json!({
        "ok": true, "kind": "direct proof", "bytes": bytes.len(), "key_digest": digest,
        "subcircuits": instances,
    });
    Ok((object, lines))
}

fn direct_key(path: &Path) -> Result<(Value, String), Failure> {
    let key = read_direct_key(path)?;
    let (vk, digest) = (key.verifying(), hex::encode(key.digest()));
    let lines = format!(
        "direct key\ndigest          {digest}\nverifying key   {}\ncircuit         {}\nsubcircuits     {} of {} types\n\
         zero knowledge  {}\ncircuit and parameters are unchecked claims of the key's author: compare the digest\ntrust: {}",
        hex::encode(vk.digest()),
        imported::describe(&vk.circuit, &crate::commands::verify::parameters(vk)),
        vk.instances,
        vk.types.len(),
        if vk.zero_knowledge { "yes" } else { "NO" },
        vk.trust.statement(),
    );
    let object = json!({
        "ok": true, "kind": "direct key", "key_digest": digest, "verifying_key_digest": hex::encode(vk.digest()),
        "subcircuits": vk.instances, "trust": vk.trust.statement(),
    });
    Ok((object, lines))
}

fn verifying_key(path: &Path, app: &App) -> Result<(Value, String), Failure> {
    let bytes = exit::read_at_most(path, exit::KEY_LIMIT)?;
    let named = |e: VerifyingKeyError| format!("{}: {e}", path.display());
    let key = VerifyingKey::from_bytes(&bytes).map_err(named).or_fail(BAD_FILE)?;
    let digest = hex::encode(key.digest());
    let known = app.get(&key.circuit).is_some();
    let digests: String = (key.types.iter())
        .map(|t| format!("type {:<10} constraints {}\n", t.name, hex::encode(t.r1cs)))
        .collect();
    let lines = format!(
        "verifying key of {}\ndigest          {digest}\ncircuit         {}{}\n\
         subcircuits     {} of {} types\npublic values   {}\nlayout          {}\n{}\
         zero knowledge  {}\n{}circuit and parameters are unchecked claims of the key's author: \
         compare the digest\ntrust: {}",
        output::bytes(bytes.len() as u64),
        imported::describe(&key.circuit, &crate::commands::verify::parameters(&key)),
        if known { "" } else { " (not a circuit of this program)" },
        key.instances,
        key.types.len(),
        key.public.len(),
        hex::encode(key.layout),
        key.family.map_or_else(String::new, |f| format!("family          {}\n", hex::encode(f))),
        if key.zero_knowledge { "yes" } else { "NO" },
        digests,
        key.trust.statement(),
    );
    let types: Vec<Value> = (key.types.iter())
        .map(|t| json!({ "name": t.name, "r1cs_digest": hex::encode(t.r1cs) }))
        .collect();
    let object = json!({
        "ok": true, "kind": "verifying key", "bytes": bytes.len(), "digest": digest,
        "circuit": key.circuit, "parameters": crate::commands::verify::parameters(&key),
        "subcircuits": key.instances, "types": types, "public_values": key.public_names(), "constants": key.constants.len(),
        "layout": hex::encode(key.layout), "family": key.family.map(hex::encode),
        "zero_knowledge": key.zero_knowledge,
        "trust": key.trust.statement(),
    });
    Ok((object, lines))
}

fn key_file(path: &Path) -> Result<(Value, String), Failure> {
    let (kind, digest, sections) = inspect_sections(path).or_fail(BAD_FILE)?;
    let digest = hex::encode(digest);
    let trust = "trust: see verifying.key in the same key store".to_owned();
    let mut lines = vec![one_line(&kind).into_owned(), format!("digest {digest}"), trust];
    for s in &sections {
        let state = if s.intact { "" } else { "  DAMAGED" };
        lines.push(format!(
            "section {:<14} {:>12} bytes at {:>12}{state}",
            one_line(&s.name),
            s.bytes,
            s.offset
        ));
    }
    // The listing comes with the error: it shows which sections are intact.
    let damaged = sections.iter().filter(|s| !s.intact).map(|s| s.name.clone()).collect::<Vec<_>>();
    if !damaged.is_empty() {
        let message = format!(
            "{}\n{} is damaged in {}",
            lines.join("\n"),
            path.display(),
            damaged.join(", ")
        );
        return Err(Failure::new(BAD_FILE, message));
    }
    let list: Vec<Value> = sections
        .iter()
        .map(|s| json!({ "name": s.name, "offset": s.offset, "bytes": s.bytes }))
        .collect();
    Ok((json!({ "ok": true, "kind": kind, "digest": digest, "sections": list }), lines.join("\n")))
}
