//! Distributes a directory of files to all nodes: copied from a shared file system by one rank per
//! node, or sent by rank 0.

use crate::{Mpi, MpiError};
use mpi::collective::{CommunicatorCollectives, Root, SystemOperation};
use mpi::topology::{Communicator, SimpleCommunicator};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The maximum number of bytes per broadcast, so that reading, sending and writing overlap.
const PIECE: usize = 16 << 20;
/// The number of pieces that are read before they are sent, and received before they are written.
const AHEAD: usize = 2;

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> MpiError + '_ {
    move |error| MpiError::Io { path: path.to_owned(), error }
}

impl Mpi {
    /// Copies files below `from`, which all nodes see, to `to` on each node, unless `to` exists
    /// there. All ranks must call it.
    ///
    /// # Errors
    /// If the first rank of a node cannot copy.
    pub fn stage(&self, from: &Path, to: &Path, files: &[PathBuf]) -> Result<(), MpiError> {
        let copied = if self.node.rank() == 0 { copy_all(from, to, files) } else { Ok(()) };
        self.agree(copied)
    }

    /// Sends files below `from`, which only rank 0 sees, to `to` on each node; a node where `to`
    /// exists writes nothing. All ranks must call it; only rank 0's `files` matters.
    ///
    /// # Errors
    /// If rank 0 cannot read, or the first rank of a node cannot write.
    pub fn send_files(&self, from: &Path, to: &Path, files: &[PathBuf]) -> Result<(), MpiError> {
        let sent = match self.leaders() {
            Some(leaders) => send_all(&leaders, from, to, files),
            None => Ok(()),
        };
        self.agree(sent)
    }

    /// Sends rank 0's bytes to all ranks, which must all call it.
    pub fn broadcast(&self, bytes: &mut Vec<u8>) {
        broadcast(&self.world, bytes);
    }

    /// Waits for all ranks, and fails if one failed. Ranks start to watch each other only when all
    /// are ready, because copying can take longer than the silence after which a rank counts as
    /// lost.
    fn agree(&self, own: Result<(), MpiError>) -> Result<(), MpiError> {
        let (mine, mut all) = (u8::from(own.is_ok()), 0u8);
        self.world.all_reduce_into(&mine, &mut all, SystemOperation::min());
        own?;
        if all == 1 { Ok(()) } else { Err(MpiError::Leader) }
    }
}

fn broadcast(communicator: &SimpleCommunicator, bytes: &mut Vec<u8>) {
    let root = communicator.process_at_rank(0);
    let mut length = bytes.len() as u64;
    root.broadcast_into(&mut length);
    bytes.resize(whole(length), 0);
    bytes.chunks_mut(PIECE).for_each(|piece| root.broadcast_into(piece));
}

/// Creates a directory next to the final one, to be renamed when it is complete.
fn building(to: &Path) -> Result<tempfile::TempDir, MpiError> {
    let parent = to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(io(parent))?;
    tempfile::Builder::new().prefix(".hekaton-keys-").tempdir_in(parent).map_err(io(parent))
}

fn finish(building: tempfile::TempDir, to: &Path) -> Result<(), MpiError> {
    match std::fs::rename(building.path(), to) {
        Ok(()) => {
            let _ = building.keep();
            Ok(())
        }
        // another job on this node was faster
        Err(_) if to.is_dir() => Ok(()),
        Err(e) => Err(io(to)(e)),
    }
}

/// A length or count from rank 0, which runs the same program on the same kind of machine.
#[allow(clippy::cast_possible_truncation, reason = "64-bit machines only")]
fn whole(length: u64) -> usize {
    length as usize
}

fn make_parent(path: &Path) -> Result<(), MpiError> {
    path.parent().map_or(Ok(()), |parent| std::fs::create_dir_all(parent).map_err(io(parent)))
}

/// Reports whether there is a copy already. Refuses one that another user created or could change,
/// because that user could replace the keys with their own.
fn is_there(to: &Path) -> Result<bool, MpiError> {
    let found = match std::fs::symlink_metadata(to) {
        Ok(found) => found,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(io(to)(e)),
    };
    let own = std::fs::metadata("/proc/self").map_err(io(to))?.uid();
    if found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0 {
        return Ok(true);
    }
    let why = "it exists, but is not a directory that only you can change: remove it, or use another \
               path";
    Err(io(to)(std::io::Error::other(why)))
}

fn copy_all(from: &Path, to: &Path, files: &[PathBuf]) -> Result<(), MpiError> {
    if is_there(to)? {
        return Ok(());
    }
    let building = building(to)?;
    for file in files {
        let target = building.path().join(file);
        make_parent(&target)?;
        let source = from.join(file);
        std::fs::copy(&source, &target).map_err(io(&source))?;
        File::open(&target).and_then(|copy| copy.sync_all()).map_err(io(&target))?;
    }
    finish(building, to)
}

/// Sends one file in pieces, with an empty one after the last, even if rank 0 could not read it. While a
/// piece travels, the next ones are read and the previous ones are written, so that the slowest of the
/// three sets the pace. Returns the results of reading and writing.
fn send_file(
    leaders: &SimpleCommunicator,
    reading: Option<File>,
    writing: Option<File>,
) -> (std::io::Result<()>, std::io::Result<()>) {
    std::thread::scope(|scope| {
        // A leader without a thread still takes part, so that the others do not wait for it.
        let thread = || std::thread::Builder::new().name("key files".to_owned());
        let (mut read, mut written) = (Ok(()), Ok(()));
        let pieces = reading.and_then(|file| {
            let (sender, pieces) = sync_channel(AHEAD);
            let spawned = thread().spawn_scoped(scope, move || read_pieces(file, &sender));
            spawned.map_err(|e| read = Err(e)).ok().map(|_| pieces)
        });
        let writer = writing.and_then(|file| {
            let (sender, pieces) = sync_channel::<Vec<u8>>(AHEAD);
            let spawned = thread().spawn_scoped(scope, move || write_pieces(file, &pieces));
            spawned.map_err(|e| written = Err(e)).ok().map(|writer| (sender, writer))
        });
        loop {
            let mut piece = match pieces.as_ref().map(Receiver::recv) {
                Some(Ok(Ok(piece))) => piece,
                Some(Ok(Err(e))) => {
                    read = Err(e);
                    Vec::new()
                }
                // the end of the file, or a rank that only receives
                Some(Err(_)) | None => Vec::new(),
            };
            broadcast(leaders, &mut piece);
            if piece.is_empty() {
                break;
            }
            if let Some((sender, _)) = &writer {
                // a writer that failed has ended, and its error is returned below
                let _ = sender.send(piece);
            }
        }
        if let Some((sender, writer)) = writer {
            drop(sender);
            let panicked = |_| Err(std::io::Error::other("the writer panicked"));
            written = writer.join().unwrap_or_else(panicked);
        }
        (read, written)
    })
}

fn read_pieces(file: File, pieces: &SyncSender<std::io::Result<Vec<u8>>>) {
    loop {
        let mut piece = Vec::new();
        let read = (&file).take(PIECE as u64).read_to_end(&mut piece);
        let (next, last) = match read {
            Ok(0) => return,
            Ok(_) => (Ok(piece), false),
            Err(e) => (Err(e), true),
        };
        if pieces.send(next).is_err() || last {
            return;
        }
    }
}

fn write_pieces(mut file: File, pieces: &Receiver<Vec<u8>>) -> std::io::Result<()> {
    pieces.iter().try_for_each(|piece| file.write_all(&piece))?;
    file.sync_all()
}

/// Sends all files from rank 0 to the first ranks of all nodes. Every leader takes part in every
/// broadcast even after an error of its own, because the others would wait for it forever; errors
/// are returned at the end.
fn send_all(
    leaders: &SimpleCommunicator,
    from: &Path,
    to: &Path,
    files: &[PathBuf],
) -> Result<(), MpiError> {
    let root = leaders.rank() == 0;
    let mut building =
        is_there(to).and_then(|there| if there { Ok(None) } else { self::building(to).map(Some) });
    let mut trouble = None;
    let mut count = files.len() as u64;
    leaders.process_at_rank(0).broadcast_into(&mut count);
    for i in 0..whole(count) {
        // only rank 0's list matters: the broadcast replaces the name on all others
        let own = files.get(i).map(|file| file.to_string_lossy().into_owned().into_bytes());
        let mut bytes = own.unwrap_or_else(Vec::new);
        broadcast(leaders, &mut bytes);
        let name = PathBuf::from(String::from_utf8_lossy(&bytes).into_owned());
        // a name from rank 0 must not lead out of the directory
        if !name.components().all(|part| matches!(part, Component::Normal(_))) {
            trouble = Some(io(&name)(std::io::Error::other("not a valid name for a key file")));
        }
        let source = from.join(&name);
        let reading = match root.then(|| File::open(&source)) {
            Some(Ok(file)) => Some(file),
            Some(Err(e)) => {
                trouble = Some(io(&source)(e));
                None
            }
            None => None,
        };
        let mut writing = None;
        if let (Ok(Some(building)), None) = (&building, &trouble) {
            let target = building.path().join(&name);
            let made =
                make_parent(&target).and_then(|()| File::create(&target).map_err(io(&target)));
            writing = made.map_err(|e| trouble = Some(e)).ok().map(|file| (file, target));
        }
        let (target, writing) = writing.map_or((None, None), |(file, at)| (Some(at), Some(file)));
        let (read, written) = send_file(leaders, reading, writing);
        if let Err(e) = read {
            trouble = Some(io(&source)(e));
        }
        if let (Err(e), Some(target)) = (written, &target) {
            trouble = Some(io(target)(e));
        }
    }
    // if rank 0 could not read a file, no node has all of it
    let mut whole = vec![u8::from(trouble.is_none())];
    broadcast(leaders, &mut whole);
    if whole != [1] && trouble.is_none() {
        return Err(MpiError::Leader);
    }
    match (trouble, std::mem::replace(&mut building, Ok(None))) {
        (Some(error), _) | (None, Err(error)) => Err(error),
        (None, Ok(Some(building))) => finish(building, to),
        (None, Ok(None)) => Ok(()),
    }
}
