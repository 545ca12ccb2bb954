//! Memory-mapped files: the only module of this crate with `unsafe`.
#![allow(unsafe_code)]

use memmap2::Mmap;
use std::fs::File;
use std::io;

/// Maps a file for reading.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: a mapping is undefined behavior only if the file is changed or truncated while it is
    // mapped. Key files are written under a temporary name and renamed into place, never modified;
    // the digest of every section is checked when the file is opened, and the values read from it
    // afterwards are plain integers for which every bit pattern is valid.
    unsafe { Mmap::map(file) }
}

/// Returns the pages of a part to the operating system, which reads them from the file again when
/// they are next used.
pub(crate) fn release(map: &Mmap, offset: usize, len: usize) {
    #[cfg(unix)]
    {
        // SAFETY: the mapping is shared, read-only and of a file: no write can be lost, and a page
        // that is dropped comes back with the file's content. Slices into it stay valid.
        let dropped =
            unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset, len) };
        if let Err(error) = dropped {
            tracing::debug!(%error, "cannot drop the pages of a key; they stay resident");
        }
    }
    #[cfg(not(unix))]
    let _ = (map, offset, len);
}
