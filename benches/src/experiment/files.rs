//! Reading and writing files: TOML with line numbers, JSON, digests, the paper's data.

use super::failure::{At, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The list of digests next to the paper's data, in the format of `sha256sum`.
const DIGESTS: &str = "DIGESTS";

/// Parses a TOML file; errors name file, line, and the known names.
pub(crate) fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = fs::read_to_string(path).at(path)?;
    toml::from_str(&text).map_err(|e| {
        let start = e.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes().iter().take(start).filter(|b| **b == b'\n').count() + 1;
        Failure::file(path, format!("line {line}: {}", e.message()))
    })
}

/// Parses a JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = fs::read_to_string(path).at(path)?;
    serde_json::from_str(&text).at(path)
}

/// Replaces a file; a reader sees the old content or the new one.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    hekaton_files::write(path, content).at(path)
}

/// Replaces a file by a value as indented JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).at(path)?;
    text.push('\n');
    write(path, text.as_bytes())
}

/// Replaces a file by a CSV table. A line break in a field becomes a space, so that a row is one line: shell tools read
/// these files, too.
pub(crate) fn write_csv<'n>(
    path: &Path,
    head: impl IntoIterator<Item = &'n str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<(), Failure> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(head).at(path)?;
    for row in rows {
        table.write_record(row.iter().map(|field| field.replace(['\n', '\r'], " "))).at(path)?;
    }
    write(path, &table.into_inner().at(path)?)
}

/// The SHA-256 digest of some bytes in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The SHA-256 digest of a file in hexadecimal digits.
pub(crate) fn digest_of(path: &Path) -> Result<String, Failure> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path).at(path)?, &mut hash).at(path)?;
    Ok(hex::encode(hash.finalize()))
}

/// Compares the paper's data with the list of digests, so that an edited figure is never compared with
/// ours by mistake.
pub(crate) fn check_paper_data(directory: &Path) -> Result<(), Failure> {
    let list = directory.join(DIGESTS);
    let text = fs::read_to_string(&list).at(&list)?;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (expected, name) = line.split_once("  ").ok_or("not a list of digests").at(&list)?;
        let path = directory.join(name);
        let found = digest_of(&path)?;
        if found != expected {
            let why = format!(
                "the digest is {found}, expected {expected} as in {DIGESTS}: the paper's data must not \
                 be edited; restore the file"
            );
            return Err(Failure::file(&path, why));
        }
    }
    for path in entries(directory)? {
        let name = path.file_name().expect("entries have names").to_string_lossy().into_owned();
        if name.ends_with(".csv") && !text.lines().any(|line| line.ends_with(&format!("  {name}")))
        {
            return Err(Failure::file(&path, format!("{DIGESTS} does not list this file")));
        }
    }
    Ok(())
}

/// Returns the entries of a directory, sorted by name.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let found: Result<Vec<_>, _> =
        fs::read_dir(directory).at(directory)?.map(|entry| entry.map(|e| e.path())).collect();
    let mut all = found.at(directory)?;
    all.sort();
    Ok(all)
}

/// The date in UTC, as in 2026-11-22.
pub(crate) fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edited_data_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("a.csv", "x\n1\n");
        write(DIGESTS, &format!("{}  a.csv\n", digest(b"x\n1\n")));
        check_paper_data(dir.path()).unwrap();
        write("b.csv", "x\n");
        assert!(check_paper_data(dir.path()).unwrap_err().message.contains("does not list"));
        fs::remove_file(dir.path().join("b.csv")).unwrap();
        write("a.csv", "x\n2\n");
        assert!(check_paper_data(dir.path()).unwrap_err().message.contains("must not be edited"));
    }
}
