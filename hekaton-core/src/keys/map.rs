//! Memory-mapped files: the only place of this crate with `unsafe`.
#![allow(unsafe_code)]

use memmap2::Mmap;
use std::fs::File;
use std::io;

/// Maps a file for reading.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: a mapping is undefined behaviour only if the file is changed or cut under it. Key files are written to a
    // temporary name and renamed into place, never modified; the digest of every section is checked when it is opened,
    // and what is read from it afterwards are plain integers for which every bit pattern is valid.
    unsafe { Mmap::map(file) }
}
