//! Moving messages: one thread that sends, receives, and watches for signs of life.

use hekaton_core::ranks::{Endpoint, HEADER, Incoming, message_length};
use mpi::ffi;
use mpi::point_to_point::{Message, Source as _, Status};
use mpi::topology::{Communicator, SimpleCommunicator};
use std::collections::VecDeque;
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Bytes that go at once; MPI counts in C ints.
const CHUNK: usize = 64 << 20;
/// The longest message that is taken: more is a broken header.
const LONGEST: u64 = 1 << 40;

/// The beginning of a message, header included.
const FIRST: c_int = 1;
/// What follows of it.
const MORE: c_int = 2;
/// Nothing but a sign of life.
const ALIVE: c_int = 3;

/// Between two looks for messages: short while there are some, longer when there are none.
const SHORTEST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_micros(1000);

/// How long a rank whose partner is lost may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// How ranks watch each other.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// A rank that says nothing for so long is lost.
    pub silence: Duration,
    /// Called when another rank is lost and this one does not end by itself within some seconds; gives the exit code.
    pub stuck: fn(usize, &str) -> u8,
}

/// A chunk on its way, with the message that it belongs to.
struct Sending {
    request: ffi::MPI_Request,
    _message: Arc<Vec<u8>>,
}

struct Transport<'w> {
    world: &'w SimpleCommunicator,
    sending: VecDeque<Sending>,
    /// what has come of a message from each rank, and its length
    partial: Vec<Option<(Vec<u8>, usize)>>,
    heard: Vec<Instant>,
    lost: Vec<bool>,
    inbox: Sender<Incoming>,
}

pub(crate) fn run<R: Send>(world: &SimpleCommunicator, watch: &Watch, rank: impl FnOnce(Endpoint) -> R + Send) -> R {
    let (outgoing, to_send) = channel::<(usize, Vec<u8>)>();
    let post = move |to: usize, bytes: Vec<u8>| {
        // the transport ends after the rank
        let _ = outgoing.send((to, bytes));
    };
    let (endpoint, inbox) = Endpoint::new(world.rank() as usize, world.size() as usize, post);
    let size = world.size() as usize;
    let mut transport = Transport {
        world,
        sending: VecDeque::new(),
        partial: vec![None; size],
        heard: vec![Instant::now(); size],
        lost: vec![false; size],
        inbox,
    };
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ended = &ended;
        let spawned = std::thread::Builder::new().name("rank".into()).spawn_scoped(scope, move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rank(endpoint)));
            ended.store(true, Ordering::SeqCst);
            result
        });
        let Ok(handle) = spawned else { abort(world, 4) };
        transport.pump(&to_send, watch, ended);
        match handle.join().and_then(|result| result) {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

pub(crate) fn abort(world: &SimpleCommunicator, code: u8) -> ! {
    // MPI_Abort talks to a daemon that may be out of reach
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(3));
        std::process::abort();
    });
    world.abort(c_int::from(code))
}

impl Transport<'_> {
    /// Moves messages until the rank has ended and all that it sent is away.
    fn pump(&mut self, to_send: &Receiver<(usize, Vec<u8>)>, watch: &Watch, ended: &AtomicBool) {
        let mut nap = SHORTEST_NAP;
        let between = (watch.silence / 5).clamp(Duration::from_millis(50), Duration::from_secs(2));
        let mut sign = Instant::now();
        let mut last_look = Instant::now();
        let mut first_lost: Option<(Instant, usize, String)> = None;
        loop {
            let over = ended.load(Ordering::SeqCst);
            let mut moved = false;
            match to_send.recv_timeout(nap) {
                Ok((to, bytes)) => {
                    self.send(to, bytes);
                    to_send.try_iter().for_each(|(to, bytes)| self.send(to, bytes));
                    moved = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                // nothing more will be sent, but ends must still be heard of
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(nap),
            }
            self.forget_what_is_away();
            while self.receive() {
                moved = true;
            }
            nap = if moved { SHORTEST_NAP } else { (nap * 2).min(LONGEST_NAP) };
            if over && self.sending.is_empty() {
                return;
            }
            // a machine that slept or was frozen must not blame the others for it
            if last_look.elapsed() > watch.silence / 2 {
                self.heard.fill(Instant::now());
            }
            last_look = Instant::now();
            if sign.elapsed() >= between {
                sign = Instant::now();
                self.partners().for_each(|rank| self.start_send(rank, ALIVE, Arc::new(Vec::new()), 0, 0));
                if let Some((rank, why)) = self.silent(watch.silence) {
                    first_lost.get_or_insert((Instant::now(), rank, why));
                }
            }
            if let Some((since, rank, why)) = &first_lost
                && since.elapsed() > GRACE
            {
                abort(self.world, (watch.stuck)(*rank, why));
            }
        }
    }

    /// Whom this rank talks with: rank 0 with all, the others with rank 0.
    fn partners(&self) -> std::ops::Range<usize> {
        match self.world.rank() {
            0 => 1..self.heard.len(),
            _ => 0..1,
        }
    }

    /// A partner that became silent; the rank is told.
    fn silent(&mut self, silence: Duration) -> Option<(usize, String)> {
        let rank = self.partners().find(|rank| !self.lost[*rank] && self.heard[*rank].elapsed() > silence)?;
        self.lost[rank] = true;
        let why = format!("no sign of life for {:.0} s", silence.as_secs_f64());
        let _ = self.inbox.send(Incoming::Lost { rank, why: why.clone() });
        Some((rank, why))
    }

    fn send(&mut self, to: usize, bytes: Vec<u8>) {
        let message = Arc::new(bytes);
        let mut at = 0;
        loop {
            let end = message.len().min(at + CHUNK);
            self.start_send(to, if at == 0 { FIRST } else { MORE }, message.clone(), at, end);
            at = end;
            if at == message.len() {
                return;
            }
        }
    }

    fn start_send(&mut self, to: usize, tag: c_int, message: Arc<Vec<u8>>, start: usize, end: usize) {
        let part = &message[start..end];
        // SAFETY: the request is initialised by the call before it is read; a null handle is what the library says.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: MPI reads `part` until the request is complete. The bytes are on the heap, nobody writes to them, and the
        // `Arc` beside the request keeps them until `forget_what_is_away` sees that it is complete, or for ever. The
        // length is at most CHUNK, which is a C int; the communicator lives as long as `self`.
        let code = unsafe {
            ffi::MPI_Isend(
                part.as_ptr().cast(),
                part.len() as c_int,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                crate::raw(self.world),
                &raw mut request,
            )
        };
        if code == ffi::MPI_SUCCESS as c_int {
            self.sending.push_back(Sending { request, _message: message });
        } else {
            self.is_lost(to, format!("MPI can't send to it (error {code})"));
        }
    }

    /// Lets go of messages that are away.
    fn forget_what_is_away(&mut self) {
        self.sending.retain_mut(|sending| {
            let mut done: c_int = 0;
            // SAFETY: the request came from MPI_Isend and was not completed: completed ones leave the list.
            let code = unsafe { ffi::MPI_Test(&raw mut sending.request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
            if code != ffi::MPI_SUCCESS as c_int {
                // the message may still be read by MPI: it must never be freed
                std::mem::forget(sending._message.clone());
                return false;
            }
            done == 0
        });
    }

    fn is_lost(&mut self, rank: usize, why: String) {
        if !std::mem::replace(&mut self.lost[rank], true) {
            let _ = self.inbox.send(Incoming::Lost { rank, why });
        }
    }

    /// Takes one message, if there is one.
    fn receive(&mut self) -> bool {
        let Some((message, status)) = self.world.any_process().immediate_matched_probe() else { return false };
        let from = status.source_rank() as usize;
        self.heard[from] = Instant::now();
        let bytes = take(message, &status);
        match status.tag() {
            FIRST => {
                let total = message_length(&bytes).filter(|length| *length <= LONGEST);
                let (Some(total), None) = (total, &self.partial[from]) else {
                    self.is_lost(from, "it sent something that is no message".into());
                    return true;
                };
                self.partial[from] = Some((bytes, total as usize));
            }
            MORE => match &mut self.partial[from] {
                Some((all, total)) if all.len() + bytes.len() <= *total => all.extend_from_slice(&bytes),
                _ => {
                    self.is_lost(from, "it sent more than it had announced".into());
                    return true;
                }
            },
            _ => return true,
        }
        if let Some((bytes, _)) = self.partial[from].take_if(|(all, total)| all.len() == *total && *total >= HEADER) {
            let _ = self.inbox.send(Incoming::Message { from, bytes });
        }
        true
    }
}

fn take(message: Message, status: &Status) -> Vec<u8> {
    use mpi::datatype::Equivalence;
    let mut bytes = vec![0u8; status.count(u8::equivalent_datatype()).max(0) as usize];
    message.matched_receive_into(&mut bytes[..]);
    bytes
}
