//! The [head](Head) in a file of its own, in addition to the database.
//!
//! A record is signed after the head is on the disk, so no database that is older than what was signed, such as one from a
//! backup, ever gets a second record of an epoch. And what is above the head was never signed: it can be removed and
//! computed again, whatever a database shows after a crash or a failed write. The database says from time to time what the head was,
//! too: one that is older than that was put back from somewhere.

use super::error::Error;
use super::head::Head;
use super::time::fail_point;
use hekaton_directory::Digest;
use hekaton_files::sync_folder_of;
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fs::{File, rename};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The first line of the file.
const TITLE: &str = "hekaton directory head 1";

/// The beginning of the second line of a file that was left for another one.
const LEFT: &str = "moved to ";

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
        let read = std::fs::read(&self.path);
        let path = || self.path.clone();
        let bytes = read.map_err(|error| Error::Io { what: "read", path: path(), error })?;
        let text = String::from_utf8(bytes).map_err(|_| Error::Head { path: path() })?;
        match (parse(&text), parse_left(&text)) {
            (Some(head), _) => Ok(head),
            (None, Some(to)) => Err(Error::HeadLeft { path: path(), to }),
            (None, None) => Err(Error::Head { path: path() }),
        }
    }

    /// Makes sure that what was read is there after a loss of power, too: it may have been renamed and not synced.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let file = File::open(&self.path).and_then(|file| file.sync_all());
        match file.and_then(|()| sync_folder_of(&self.path)) {
            // A file that cannot be changed is as it was.
            Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => Ok(()),
            Err(error) => Err(Error::Io { what: "sync", path: self.path.clone(), error }),
            Ok(()) => Ok(()),
        }
    }

    /// Says in the file that another one has its place.
    pub(crate) fn leave(&self, to: &Path) -> Result<(), Error> {
        let text = left(to).ok_or_else(|| Error::Io {
            what: "name",
            path: to.into(),
            error: std::io::Error::new(ErrorKind::InvalidFilename, "it is not UTF-8"),
        })?;
        self.replace(&text)
    }

    fn replace(&self, text: &str) -> Result<(), Error> {
        let path = &self.path;
        let error = |what| move |error| Error::Io { what, path: path.clone(), error };
        // By hand, and not by `hekaton_files::write`, for the tests that end the process between two steps. The name is always
        // the same, so that no leftovers gather.
        let new = beside(path, ".new");
        let mut file = File::create(&new).map_err(error("write"))?;
        file.write_all(text.as_bytes()).map_err(error("write"))?;
        // Before the rename: after a loss of power, the name could otherwise lead to an empty file.
        file.sync_all().map_err(error("sync"))?;
        fail_point("head-written");
        rename(&new, &self.path).map_err(error("replace"))?;
        fail_point("head-renamed");
        // The rename itself is on the disk only once the folder is.
        sync_folder_of(path).map_err(error("sync"))
    }
}

impl Keep for HeadFile {
    fn advance(&mut self, head: Head) -> Result<(), Error> {
        self.replace(&format(&head))
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

fn with_sum(body: &str) -> String {
    format!("{body}sha256 {}\n", hex::encode(Sha256::digest(body)))
}

fn format(head: &Head) -> String {
    with_sum(&body(head))
}

/// The text of a file that was left for another one.
fn left(to: &Path) -> Option<String> {
    Some(with_sum(&format!("{TITLE}\n{LEFT}{}\n", to.to_str()?)))
}

/// The file that a text names, if it is exactly what [`left`] writes.
fn parse_left(text: &str) -> Option<PathBuf> {
    let rest = text.strip_prefix(TITLE)?.strip_prefix('\n')?.strip_prefix(LEFT)?;
    // The name may have line breaks; what follows it has always the same length.
    let to = Path::new(rest.get(..rest.len().checked_sub("\nsha256 \n".len() + 64)?)?);
    (left(to).as_deref() == Some(text)).then(|| to.into())
}

/// The head in a text, if it is exactly what [`format`] writes.
fn parse(text: &str) -> Option<Head> {
    let mut lines = text.lines().skip(1);
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let (commit, epoch) = (field("commit")?.parse().ok()?, field("epoch")?.parse().ok()?);
    let mut record = Digest::default();
    hex::decode_to_slice(field("record")?, &mut record).ok()?;
    let head = Head { commit, epoch, record };
    // Comparing the whole text accepts no second spelling of a head and verifies the sum as well.
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

    #[test]
    fn a_file_that_was_left_names_the_next_one() {
        for name in ["/other/disk/head", "a\nb\n", "ä", ""] {
            let text = left(Path::new(name)).unwrap();
            assert_eq!((parse(&text), parse_left(&text)), (None, Some(name.into())));
            for at in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1;
                let changed = String::from_utf8(bytes).ok();
                assert_eq!(changed.and_then(|text| parse_left(&text)), None, "byte {at}");
            }
            assert_eq!(parse_left(&format!("{text}x")), None);
        }
    }
}
