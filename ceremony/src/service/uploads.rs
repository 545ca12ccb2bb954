//! Uploads, which grow piece by piece.

use super::queue::Stage;
use super::{HELD, Handle, Service, now, problem};
use crate::body::SlotBody;
use hekaton_ceremony::{Chain, most_response_bytes};
use hekaton_files::SECRET;
use hekaton_service::Problem;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

/// The right to work on an upload, which only one request at a time may have.
pub(super) struct Turn {
    service: Handle,
    pub(super) token: String,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut uploading = self.service.uploading.lock().expect(HELD);
        uploading.remove(&self.token);
    }
}

fn conflict(why: &str) -> Problem {
    Problem::new(problem::CONFLICT, why)
}

impl Service {
    /// Begins to work on an upload, whose contributor has the turn.
    pub(super) fn turn(self: &Handle, token: &str) -> Result<Turn, Problem> {
        self.check_active(token)?;
        let mut uploading = self.uploading.lock().expect(HELD);
        match uploading.insert(token.to_owned()) {
            true => Ok(Turn { service: Arc::clone(self), token: token.to_owned() }),
            false => Err(Problem::new(problem::BUSY, "another request works on this upload")),
        }
    }

    /// The most bytes of an upload whose contributor has the turn.
    pub(super) fn check_active(&self, token: &str) -> Result<u64, Problem> {
        let shared = self.lock();
        let slot = shared.queue.find(token).ok_or_else(|| {
            Problem::new(
                problem::NOT_FOUND,
                "there is no slot with this token, or it no longer exists",
            )
        })?;
        let named = slot.chains.iter().filter_map(|chain| Chain::named(chain));
        let chains: Vec<Chain> = named.collect();
        match slot.stage {
            Stage::Active { .. } => Ok(most_response_bytes(&self.genesis, &chains)),
            _ => Err(conflict("it is not the turn of this slot")),
        }
    }

    /// Appends a piece.
    pub(super) fn append(
        &self,
        turn: &Turn,
        offset: u64,
        piece: &[u8],
    ) -> Result<SlotBody, Problem> {
        let token = &turn.token;
        // Again, because the piece took time to come.
        let most = self.check_active(token)?;
        let broken = |e: std::io::Error| Problem::hidden(problem::UNAVAILABLE, e);
        let mut options = File::options();
        options.create(true).append(true).mode(SECRET);
        let mut file = options.open(self.upload(token)).map_err(broken)?;
        let length = file.metadata().map_err(broken)?.len();
        if offset != length {
            return Err(conflict(&format!(
                "the service has {length} bytes, so the next piece must be at {length}"
            )));
        }
        if piece.len() as u64 > most.saturating_sub(length) {
            let why = format!("a contribution to these chains has at most {most} bytes");
            return Err(Problem::new(problem::TOO_LARGE, why));
        }
        if let Err(error) = file.write_all(piece) {
            // If only part of a piece was written, the contributor sends the rest.
            return Err(broken(error));
        }
        let mut shared = self.lock();
        shared.queue.came(token, now(), length + piece.len() as u64);
        self.body(&shared, token)
    }

    /// Marks an upload as complete: from now on, it will be checked, whatever happens.
    pub(super) fn complete(&self, turn: &Turn, blake3: &str) -> Result<SlotBody, Problem> {
        let token = &turn.token;
        let broken = |e: std::io::Error| Problem::hidden(problem::UNAVAILABLE, e);
        let path = self.upload(token);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(conflict("nothing was uploaded"));
            }
            Err(e) => return Err(broken(e)),
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&file).map_err(broken)?;
        if hasher.finalize().to_hex().as_str() != blake3 {
            // A crash lost a part of the upload, or the network changed it.
            std::fs::remove_file(&path).map_err(broken)?;
            let why =
                "the upload does not have the stated digest: upload it again from the beginning";
            return Err(Problem::new(problem::DAMAGED, why));
        }
        file.sync_all().map_err(broken)?;
        let incoming = hekaton_files::folder_of(&path);
        hekaton_files::sync_folder(incoming).map_err(broken)?;
        let mut shared = self.lock();
        self.change(&mut shared, |queue| {
            let slot =
                queue.find_mut(token).filter(|slot| matches!(slot.stage, Stage::Active { .. }));
            slot.ok_or_else(|| conflict("the deadline has passed"))?.stage = Stage::Complete;
            Ok(())
        })?;
        self.body(&shared, token)
    }
}
