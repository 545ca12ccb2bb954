//! A log on a simulated disk, which loses pages as Linux does.

use super::log::LogFile;
use super::schema;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The number of bytes that are written, or lost, together.
const PAGE: usize = 4096;

/// A log whose file is what processes see, and what is on disk is kept in memory.
#[derive(Clone)]
pub(super) struct Simulated(Arc<Mutex<State>>);

struct State {
    file: File,
    on_disk: Vec<u8>,
    /// Pages that a failed sync has marked as written, and was not able to write.
    lost: BTreeMap<usize, Vec<u8>>,
    is_failing: bool,
    /// The number of syncs.
    syncs: usize,
}

impl Simulated {
    /// The log of a database with open connections, of which nothing is on disk.
    pub(super) fn of(database: &Path) -> Self {
        let path = database.with_file_name("db-wal");
        let file = File::options().read(true).write(true).open(path).unwrap();
        let (on_disk, lost) = (vec![], BTreeMap::new());
        Self(Arc::new(Mutex::new(State { file, on_disk, lost, is_failing: false, syncs: 0 })))
    }

    /// Makes syncs fail from now on, or succeed.
    pub(super) fn fail(&self, is_failing: bool) {
        self.0.lock().unwrap().is_failing = is_failing;
    }

    /// Returns the number of syncs so far.
    pub(super) fn syncs(&self) -> usize {
        self.0.lock().unwrap().syncs
    }

    /// Returns the database as it is found after a power cut. Nothing of the log may have been put in the database.
    pub(super) fn after_power_cut(&self, database: &Path) -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        std::fs::copy(database, &path).unwrap();
        std::fs::write(folder.path().join("db-wal"), &self.0.lock().unwrap().on_disk).unwrap();
        let connection = schema::connect(&path).unwrap();
        (folder, connection)
    }
}

impl LogFile for Simulated {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(&self.0.lock().unwrap().file, buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let first = usize::try_from(offset).unwrap();
        let written = first / PAGE..(first + bytes.len()).div_ceil(PAGE);
        state.lost.retain(|page, _| !written.contains(page));
        FileExt::write_all_at(&state.file, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let State { file, on_disk, lost, is_failing, syncs } = &mut *state;
        *syncs += 1;
        let mut seen = vec![0; usize::try_from(file.metadata()?.len()).unwrap()];
        file.read_exact_at(&mut seen, 0)?;
        on_disk.resize(seen.len(), 0);
        for (page, (seen, on_disk)) in seen.chunks(PAGE).zip(on_disk.chunks_mut(PAGE)).enumerate() {
            if seen == on_disk || lost.get(&page).is_some_and(|lost| lost == seen) {
                continue;
            }
            match is_failing {
                true => drop(lost.insert(page, seen.to_vec())),
                false => {
                    lost.remove(&page);
                    on_disk.copy_from_slice(seen);
                }
            }
        }
        match is_failing {
            true => Err(io::Error::other("a broken disk")),
            false => Ok(()),
        }
    }
}
