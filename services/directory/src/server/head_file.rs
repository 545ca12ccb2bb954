//! The [head](Head) in a file of its own, in addition to the database.
//!
//! A record is signed after the head is on the disk, so no database that is older than what was signed, such as one from a
//! backup, ever gets a second record of an epoch. And what is above the head was never signed: it can be removed and
//! computed again, whatever a database shows after a crash or a failed write. The database says from time to time what the head was,
//! too: one that is older than that was put back from somewhere.

use super::error::Error;
use super::head::Head;
use super::time::fail_point;
use crate::hash::Digest;
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fs::{File, rename};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The first line of the file.
const TITLE: &str = "hekaton directory head 1";

/// Reads a file that has a head.
///
/// # Errors
/// If it cannot be read, or is damaged.
pub fn read_head(path: &Path) -> Result<Head, Error> {
    HeadFile::new(path).read()
}

/// Keeps the head: in a file, or in the memory of a test.
pub(crate) trait Keep: Send {
    /// Writes the head. When it returns, it is on the disk.
    fn advance(&mut self, head: Head) -> Result<(), Error>;
}

/// The head in a file.
#[derive(Debug)]
pub(crate) struct HeadFile {
    path: PathBuf,
}

impl HeadFile {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub(crate) fn read(&self) -> Result<Head, Error> {
        let bytes = std::fs::read(&self.path);
        let path = || self.path.clone();
        let bytes = bytes.map_err(|source| Error::Io { what: "read", path: path(), source })?;
        let head = String::from_utf8(bytes).ok().and_then(|text| parse(&text));
        head.ok_or_else(|| Error::Head { path: path() })
    }
}

impl Keep for HeadFile {
    fn advance(&mut self, head: Head) -> Result<(), Error> {
        let path = &self.path;
        let error = |what| move |source| Error::Io { what, path: path.clone(), source };
        let new = beside(path, ".new");
        let mut file = File::create(&new).map_err(error("write"))?;
        file.write_all(format(&head).as_bytes()).map_err(error("write"))?;
        file.sync_all().map_err(error("sync"))?;
        fail_point("head-written");
        rename(&new, &self.path).map_err(error("replace"))?;
        fail_point("head-renamed");
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(error("sync"))
    }
}

/// A path with something behind its name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn body(head: &Head) -> String {
    let Head { commit, epoch, record } = head;
    format!("{TITLE}\ncommit {commit}\nepoch {epoch}\nrecord {}\n", hex::encode(record))
}

fn format(head: &Head) -> String {
    let body = body(head);
    format!("{body}sha256 {}\n", hex::encode(Sha256::digest(&body)))
}

/// The head in a text, if it is exactly what [`format`] writes.
fn parse(text: &str) -> Option<Head> {
    let mut lines = text.lines().skip(1);
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let (commit, epoch) = (field("commit")?.parse().ok()?, field("epoch")?.parse().ok()?);
    let mut record = Digest::default();
    hex::decode_to_slice(field("record")?, &mut record).ok()?;
    let head = Head { commit, epoch, record };
    (format(&head) == text).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_head_is_refused() {
        let head = Head { commit: 17, epoch: 12, record: [0xa5; 32] };
        let text = format(&head);
        assert_eq!(parse(&text), Some(head));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert_eq!(parse(&String::from_utf8(bytes).unwrap()), None, "byte {at}");
            assert_eq!(parse(&text[..at]), None, "cut at {at}");
        }
        assert_eq!(parse(&format!("{text}x")), None);
    }
}
