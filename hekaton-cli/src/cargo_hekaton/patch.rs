//! Patches of crates: copies that use the calls of the machine.

use diffy::patch_set::{FileOperation, ParseOptions, PatchSet};
use hekaton_files::NewDirectory;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_vm::guests::PATCHES;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use toml_edit::{DocumentMut, InlineTable, Item, Table};

/// The folder of the copies, beside Cargo.toml.
const FOLDER: &str = "patched";

/// The source of crates of crates.io, as cargo writes it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The part of `cargo metadata` that is needed here.
#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    /// `None` for a package in a folder.
    source: Option<String>,
    manifest_path: PathBuf,
}

/// Patches crates of the package in this folder: those that are named, or all for which there is a patch.
pub(crate) fn patch(names: &[String]) -> Result<(), Failure> {
    let known: Vec<String> =
        PATCHES.iter().map(|(name, version, _)| format!("{name} {version}")).collect();
    let known = known.join(", ");
    let usage = |why: String| Failure::new(exit::USAGE, why);
    if let Some(name) = names.iter().find(|name| !PATCHES.iter().any(|(it, ..)| it == name)) {
        return Err(usage(format!("there is no patch of {name}, but of these: {known}")));
    }
    let Metadata { workspace_root: root, packages } = metadata()?;
    let mut lines = Vec::new();
    for (name, version, text) in PATCHES {
        let is_named = names.iter().any(|named| named == name);
        if !is_named && !names.is_empty() {
            continue;
        }
        let mut found = packages.iter().filter(|package| package.name == name);
        match (found.next(), found.next()) {
            (Some(package), None) => {
                lines.push(patch_one(package, version, text, &root)?);
            }
            (None, _) if is_named => {
                return Err(usage(format!("the package does not depend on {name}")));
            }
            (None, _) => {}
            (Some(_), Some(_)) => {
                return Err(usage(format!(
                    "the package depends on several versions of {name}: `cargo tree -i {name}` shows why"
                )));
            }
        }
    }
    if lines.is_empty() {
        return Err(usage(format!("the package depends on no crate with a patch: {known}")));
    }
    // Cargo.lock has the copies now, as `--locked` expects.
    metadata()?;
    output::result(false, &Value::Null, &lines.join("\n"))
}

/// Patches a crate that the package depends on. Returns what was done.
fn patch_one(package: &Package, version: &str, text: &str, root: &Path) -> Result<String, Failure> {
    let Package { name, version: found, source, manifest_path } = package;
    let place = manifest_path.display();
    match source.as_deref() {
        None => return Ok(format!("{name}: already in a folder: {place}")),
        Some(CRATES_IO) => {}
        Some(other) => {
            let why = format!("{name} is from {other}, and the patch is of crates.io's");
            return Err(Failure::new(exit::USAGE, why));
        }
    }
    if found != version {
        let why = format!(
            "{name} has version {found} here, and the patch is of {version}: try `cargo update -p {name} --precise \
             {version}`"
        );
        return Err(Failure::new(exit::USAGE, why));
    }
    let Some(source) = manifest_path.parent() else {
        return Err(Failure::new(exit::FAILED, format!("{place}: not a file in a folder")));
    };
    // Whatever may be wrong with the manifest is found before there is a copy.
    let manifest = root.join("Cargo.toml");
    let changed = using_copy(&manifest, name)?;
    copy(source, &root.join(FOLDER), name, text)?;
    std::fs::write(&manifest, changed).map_err(|e| failed(&manifest, &e))?;
    Ok(format!("{name} {version}: patched in {FOLDER}/{name}"))
}

/// Asks cargo about the package in this folder and all that it depends on, which it downloads.
fn metadata() -> Result<Metadata, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut call = Command::new(&cargo);
    call.args(["metadata", "--format-version", "1", "--filter-platform", crate::build::TARGET]);
    let found =
        call.stderr(Stdio::inherit()).output().map_err(|e| crate::failed(Path::new(&cargo), &e))?;
    if !found.status.success() {
        return Err(Failure::new(exit::FAILED, "cargo could not resolve the package"));
    }
    serde_json::from_slice(&found.stdout).or_fail(exit::FAILED)
}

/// Copies a crate to a folder of that name, and changes the copy.
fn copy(source: &Path, parent: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let target = &parent.join(name);
    if target.exists() {
        let why = "exists already, and Cargo.toml does not use it: remove it";
        return Err(Failure::new(exit::USAGE, format!("{}: {why}", target.display())));
    }
    std::fs::create_dir_all(parent).map_err(|e| failed(parent, &e))?;
    let folder = NewDirectory::beside(target).map_err(|e| failed(target, &e))?;
    copy_folder(source, folder.path())?;
    for patch in PatchSet::parse(text, ParseOptions::unidiff()) {
        let patch = patch.or_fail(exit::FAILED)?;
        let (Some(patch), FileOperation::Modify { modified, .. }) =
            (patch.patch().as_text(), patch.operation())
        else {
            return Err(Failure::new(exit::FAILED, "the patch has more than texts of files"));
        };
        let file = folder.path().join(modified.as_ref());
        let before = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            // A file that the patch adds.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(failed(&file, &e)),
        };
        let after = diffy::apply(&before, patch)
            .map_err(|e| Failure::new(exit::FAILED, format!("{}: {e}", file.display())))?;
        std::fs::write(&file, after).map_err(|e| failed(&file, &e))?;
    }
    folder.publish().map_err(|e| failed(target, &e))
}

/// Copies the files of a folder and of those in it. Files of cargo's own, which begin with a dot, stay behind.
fn copy_folder(source: &Path, target: &Path) -> Result<(), Failure> {
    for entry in std::fs::read_dir(source).map_err(|e| failed(source, &e))? {
        let entry = entry.map_err(|e| failed(source, &e))?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        let kind = entry.file_type().map_err(|e| failed(&from, &e))?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if kind.is_dir() {
            std::fs::create_dir(&to).map_err(|e| failed(&to, &e))?;
            copy_folder(&from, &to)?;
        } else {
            // Not `fs::copy`, which would keep a mode without the right to write.
            let bytes = std::fs::read(&from).map_err(|e| failed(&from, &e))?;
            std::fs::write(&to, bytes).map_err(|e| failed(&to, &e))?;
        }
    }
    Ok(())
}

/// Returns the text of Cargo.toml, changed to use the copy of a crate.
fn using_copy(manifest: &Path, name: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string(manifest).map_err(|e| failed(manifest, &e))?;
    let mut document: DocumentMut = text.parse().or_fail(exit::FAILED)?;
    let table = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let patches = document.entry("patch").or_insert_with(table);
    let of_registry = patches
        .as_table_like_mut()
        .map(|patches| patches.entry("crates-io").or_insert_with(|| Item::Table(Table::new())));
    let Some(crates) = of_registry.and_then(Item::as_table_like_mut) else {
        let why = format!("{}: patch.crates-io is not a table", manifest.display());
        return Err(Failure::new(exit::FAILED, why));
    };
    let mut place = InlineTable::new();
    place.insert("path", format!("{FOLDER}/{name}").into());
    crates.insert(name, Item::Value(place.into()));
    Ok(document.to_string())
}

/// The failure of an access to a file or a folder.
fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(exit::FAILED, format!("{}: {error}", path.display()))
}
