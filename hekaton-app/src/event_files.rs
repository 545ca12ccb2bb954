//! Event files: one JSON object per line (docs/guide/events.md).

use hekaton_core::events::Record;
use hekaton_storage::RunDirectory;
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::output;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Writes each event to all attached files, and earlier events to files attached later.
#[derive(Debug, Default)]
pub(crate) struct EventFiles {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// all events so far, until no more files will be attached
    backlog: Option<Vec<String>>,
    files: Vec<Target>,
}

#[derive(Debug)]
struct Target {
    path: PathBuf,
    file: File,
    /// the run whose lease this process must hold to write
    run: Option<Arc<RunDirectory>>,
}

impl EventFiles {
    /// Keeps events until [`Self::start`].
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { backlog: Some(Vec::new()), files: Vec::new() }) }
    }

    /// Adds a file; with `append`, after its existing content.
    pub(crate) fn attach(
        &self,
        path: &Path,
        append: bool,
        run: Option<Arc<RunDirectory>>,
    ) -> Result<(), Failure> {
        let failure = |e: std::io::Error| {
            Failure::new(exit::BAD_FILE, format!("cannot write events to {}: {e}", path.display()))
        };
        let file = open(path, append).map_err(failure)?;
        if let Ok(mut state) = self.state.lock() {
            // Loading keys comes before the run directory is ours, and its events belong in the file, too.
            let backlog = state.backlog.iter().flatten().map(String::as_str).collect::<String>();
            let mut target = Target { path: path.to_owned(), file, run };
            target.file.write_all(backlog.as_bytes()).map_err(failure)?;
            state.files.push(target);
        }
        Ok(())
    }

    /// Declares that no more files will be attached, and drops the backlog.
    pub(crate) fn start(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.backlog = None;
        }
    }

    /// Writes an event; called from many threads.
    pub(crate) fn event(&self, record: &Record) {
        let mut line = serde_json::to_string(record).expect("events are numbers and texts");
        line.push('\n');
        // A thread that panicked while it wrote an event must not end the run.
        let Ok(mut state) = self.state.lock() else { return };
        let State { backlog, files } = &mut *state;
        files.retain_mut(|target| {
            if target.run.as_ref().is_some_and(|run| run.check_lease().is_err()) {
                // Another process took over the run, and the file with it.
                return false;
            }
            // A run is worth more than its events: if they cannot be written, it continues.
            match target.file.write_all(line.as_bytes()) {
                Ok(()) => true,
                Err(e) => {
                    output::say(format!(
                        "warning: {}: {e}; no more events are written to it",
                        target.path.display()
                    ));
                    false
                }
            }
        });
        if let Some(backlog) = backlog {
            backlog.push(line);
        }
    }
}

fn open(path: &Path, append: bool) -> std::io::Result<File> {
    if !append {
        return File::create(path);
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    // A killed process may have left an incomplete line: the next event must not continue it.
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}
