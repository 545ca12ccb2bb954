//! Files of events: one JSON object a line (docs/events.md).

use crate::exit::{self, Failure};
use crate::terminal::output;
use hekaton_core::events::Record;
use hekaton_storage::RunDirectory;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Writes each event to all files. Files that come later get what happened before.
#[derive(Debug, Default)]
pub(crate) struct EventFiles {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// what happened until the last file was attached
    backlog: Option<Vec<String>>,
    files: Vec<Target>,
}

#[derive(Debug)]
struct Target {
    path: PathBuf,
    file: File,
    /// the run whose lease is needed to write
    run: Option<Arc<RunDirectory>>,
}

impl EventFiles {
    /// Keeps events until [`Self::start`].
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { backlog: Some(Vec::new()), files: Vec::new() }) }
    }

    /// Adds a file; with `append` it keeps what it has.
    pub(crate) fn attach(
        &self,
        path: &Path,
        append: bool,
        run: Option<Arc<RunDirectory>>,
    ) -> Result<(), Failure> {
        let failure = |e: std::io::Error| {
            Failure::new(exit::BAD_FILE, format!("can't write events to {}: {e}", path.display()))
        };
        let file = open(path, append).map_err(failure)?;
        if let Ok(mut state) = self.state.lock() {
            let backlog = state.backlog.iter().flatten().map(String::as_str).collect::<String>();
            let mut target = Target { path: path.to_owned(), file, run };
            target.file.write_all(backlog.as_bytes()).map_err(failure)?;
            state.files.push(target);
        }
        Ok(())
    }

    /// No file follows.
    pub(crate) fn start(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.backlog = None;
        }
    }

    /// Takes an event; called from many threads.
    pub(crate) fn event(&self, record: &Record) {
        let Ok(mut line) = serde_json::to_string(record) else { return };
        line.push('\n');
        let Ok(mut state) = self.state.lock() else { return };
        let State { backlog, files } = &mut *state;
        files.retain_mut(|target| {
            if target.run.as_ref().is_some_and(|run| run.check_lease().is_err()) {
                return false; // the file is another process's now
            }
            // A run is worth more than its events: without room for them it goes on.
            match target.file.write_all(line.as_bytes()) {
                Ok(()) => true,
                Err(e) => {
                    output::say(format!(
                        "warning: {}: {e}: no more events are written there",
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
    // A process that was killed may have left half a line: ours must not continue it.
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
