//! Moving messages: one thread that sends, receives, and watches for signs of life. It never waits in MPI: every call here
//! comes back at once, so that a rank whose partner froze in the middle of a message still notices.

#![allow(unsafe_code)] // MPI is a C library; each block says why it is sound

use hekaton_core::distributed::Endpoint;
use hekaton_core::distributed::wire::{HEADER, Incoming, message_length};
use mpi::ffi;
use mpi::topology::{Communicator, SimpleCommunicator};
use std::collections::VecDeque;
use std::os::raw::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Bytes that go at once: MPI counts in C ints, and signs of life must get in between.
const PART: usize = 4 << 20;
/// The longest message that is taken: more is a broken header.
const LONGEST: u64 = 1 << 40;

/// The beginning of a message, header included.
const FIRST: c_int = 1;
/// What follows of it.
const MORE: c_int = 2;
/// Nothing but a sign of life.
const ALIVE: c_int = 3;

/// Between two looks for messages: short while there are some, longer when there have been none for a while.
const SHORTEST_NAP: Duration = Duration::from_micros(20);
const NAP_WHILE_BUSY: Duration = Duration::from_micros(80);
const LONGEST_NAP: Duration = Duration::from_micros(1000);
const BUSY_FOR: Duration = Duration::from_millis(20);

/// How long a rank whose partner is lost may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// No exit code was given.
const NONE: u16 = u16::MAX;

/// How ranks watch each other.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// A rank that says nothing for so long is lost.
    pub silence: Duration,
    /// Called when another rank is lost and this one does not end by itself within some seconds; gives the exit code.
    pub stuck: fn(usize, &str) -> u8,
}

/// Ends all ranks at once, from any thread.
#[derive(Clone, Debug)]
pub struct Abort(Arc<AtomicU16>);

impl Abort {
    /// Ends all ranks with this exit code. Does not come back.
    pub fn now(&self, code: u8) -> ! {
        self.0.store(code.into(), Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    }
}

/// A part on its way to or from another rank.
struct Moving<B> {
    request: ffi::MPI_Request,
    buffer: B,
}

/// What comes from one rank.
struct Coming {
    /// parts that are being received, in the order in which they were sent
    parts: VecDeque<(c_int, Moving<Vec<u8>>)>,
    /// what has come of a message, and its length
    partial: Option<(Vec<u8>, usize)>,
    heard: Instant,
    /// what it says no longer counts
    lost: bool,
}

struct Transport<'w> {
    world: &'w SimpleCommunicator,
    sending: VecDeque<Moving<Arc<Vec<u8>>>>,
    coming: Vec<Coming>,
    inbox: Sender<Incoming>,
    first_lost: Option<(Instant, usize, String)>,
}

pub(crate) fn run<R: Send>(
    world: &SimpleCommunicator,
    watch: &Watch,
    rank: impl FnOnce(Endpoint, Abort) -> R + Send,
) -> R {
    // SAFETY: `world` is a live communicator, and the handler is a constant of the library. The calls below look at their
    // return codes.
    unsafe { ffi::MPI_Comm_set_errhandler(raw(world), ffi::RSMPI_ERRORS_RETURN) };
    let (outgoing, to_send) = channel::<(usize, Vec<u8>)>();
    let post = move |to: usize, bytes: Vec<u8>| {
        // the transport ends after the rank
        let _ = outgoing.send((to, bytes));
    };
    let (endpoint, inbox) = Endpoint::new(world.rank() as usize, world.size() as usize, post);
    let now = Instant::now();
    let coming = || Coming { parts: VecDeque::new(), partial: None, heard: now, lost: false };
    let coming = (0..world.size()).map(|_| coming()).collect();
    let mut transport =
        Transport { world, sending: VecDeque::new(), coming, inbox, first_lost: None };
    let ended = AtomicBool::new(false);
    let code = Arc::new(AtomicU16::new(NONE));
    let out = std::thread::scope(|scope| {
        let (ended, asked) = (&ended, Abort(code.clone()));
        let spawned =
            std::thread::Builder::new().name("rank".into()).spawn_scoped(scope, move || {
                let result = catch_unwind(AssertUnwindSafe(|| rank(endpoint, asked)));
                ended.store(true, Ordering::SeqCst);
                result
            });
        let Ok(handle) = spawned else { abort(world, 4) };
        // with a panic behind it nothing can be put in order with the other ranks: all end
        if catch_unwind(AssertUnwindSafe(|| transport.pump(&to_send, watch, ended, &code))).is_err()
        {
            abort(world, 4);
        }
        match handle.join() {
            Ok(Ok(result)) => result,
            _ => abort(world, 4),
        }
    });
    // SAFETY: as above. What follows is rsmpi's, which looks at no codes.
    unsafe { ffi::MPI_Comm_set_errhandler(raw(world), ffi::RSMPI_ERRORS_ARE_FATAL) };
    out
}

/// Ends all ranks.
pub(crate) fn abort(world: &SimpleCommunicator, code: u8) -> ! {
    // MPI_Abort talks to a daemon that may be out of reach
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        leave(code);
    });
    // SAFETY: `world` is a live communicator; whatever this does, the process leaves behind it.
    unsafe { ffi::MPI_Abort(raw(world), c_int::from(code)) };
    leave(code)
}

/// Leaves the process at once: no core file, which would hold the witness.
pub(crate) fn leave(code: u8) -> ! {
    // SAFETY: `_exit` takes any code and does not come back.
    unsafe { libc::_exit(c_int::from(code)) }
}

fn is_done(request: &mut ffi::MPI_Request) -> Result<bool, c_int> {
    let mut done: c_int = 0;
    // SAFETY: the request came from MPI_Isend or MPI_Imrecv and was not completed: completed ones are dropped with their
    // `Moving`.
    let code = unsafe { ffi::MPI_Test(request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
    if code == ffi::MPI_SUCCESS as c_int { Ok(done != 0) } else { Err(code) }
}

impl Drop for Transport<'_> {
    /// What MPI may still read or write is never freed.
    fn drop(&mut self) {
        self.sending.drain(..).for_each(std::mem::forget);
        self.coming.iter_mut().flat_map(|coming| coming.parts.drain(..)).for_each(std::mem::forget);
    }
}

impl Transport<'_> {
    /// Moves messages until the rank has ended and all that it sent is away.
    fn pump(
        &mut self,
        to_send: &Receiver<(usize, Vec<u8>)>,
        watch: &Watch,
        ended: &AtomicBool,
        code: &AtomicU16,
    ) {
        let mut nap = SHORTEST_NAP;
        let between = (watch.silence / 5).clamp(Duration::from_millis(50), Duration::from_secs(2));
        let (mut sign, mut last_look, mut last_moved) =
            (Instant::now(), Instant::now(), Instant::now());
        let (mut silent_end, mut over_since) = (false, None);
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
                // the rank has said all that it will, and the others may leave; what comes must still be taken
                Err(RecvTimeoutError::Disconnected) => {
                    silent_end = true;
                    std::thread::sleep(nap);
                }
            }
            if let Ok(code) = u8::try_from(code.load(Ordering::SeqCst)) {
                abort(self.world, code);
            }
            self.forget_what_is_away();
            moved |= self.receive();
            // what is under way moves only while somebody looks
            moved |= !self.sending.is_empty()
                || self.coming.iter().any(|coming| !coming.parts.is_empty());
            if moved {
                (nap, last_moved) = (SHORTEST_NAP, Instant::now());
            } else {
                let longest =
                    if last_moved.elapsed() < BUSY_FOR { NAP_WHILE_BUSY } else { LONGEST_NAP };
                nap = (nap * 2).min(longest);
            }
            if over && self.sending.is_empty() {
                return;
            }
            if over && over_since.get_or_insert_with(Instant::now).elapsed() > watch.silence {
                let rank = self.partners().start;
                abort(self.world, (watch.stuck)(rank, "it does not take what was sent to it"));
            }
            if silent_end || over {
                // the others may have left already: nobody is watched any more
                continue;
            }
            // a machine that slept or was frozen must not blame the others for it
            if last_look.elapsed() > watch.silence / 2 {
                self.coming.iter_mut().for_each(|coming| coming.heard = Instant::now());
            }
            last_look = Instant::now();
            if sign.elapsed() >= between {
                sign = Instant::now();
                for rank in self.partners() {
                    if !self.coming[rank].lost {
                        self.start_send(rank, ALIVE, Arc::new(Vec::new()), 0, 0);
                    }
                    if self.coming[rank].heard.elapsed() > watch.silence {
                        self.is_lost(
                            rank,
                            format!("no sign of life for {:.0} s", watch.silence.as_secs_f64()),
                        );
                    }
                }
            }
            if let Some((since, rank, why)) = &self.first_lost
                && since.elapsed() > GRACE
            {
                abort(self.world, (watch.stuck)(*rank, why));
            }
        }
    }

    /// Whom this rank talks with: rank 0 with all, the others with rank 0.
    fn partners(&self) -> std::ops::Range<usize> {
        match self.world.rank() {
            0 => 1..self.coming.len(),
            _ => 0..1,
        }
    }

    /// The rank is told, once.
    fn is_lost(&mut self, rank: usize, why: String) {
        if !std::mem::replace(&mut self.coming[rank].lost, true) {
            self.first_lost.get_or_insert_with(|| (Instant::now(), rank, why.clone()));
            let _ = self.inbox.send(Incoming::Lost { rank, why });
        }
    }

    fn send(&mut self, to: usize, bytes: Vec<u8>) {
        let message = Arc::new(bytes);
        let mut at = 0;
        loop {
            let end = message.len().min(at + PART);
            self.start_send(to, if at == 0 { FIRST } else { MORE }, message.clone(), at, end);
            at = end;
            if at == message.len() {
                return;
            }
        }
    }

    fn start_send(
        &mut self,
        to: usize,
        tag: c_int,
        message: Arc<Vec<u8>>,
        start: usize,
        end: usize,
    ) {
        let part = &message[start..end];
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: MPI reads `part` until the request is complete. The bytes are on the heap, nobody writes to them, and the
        // `Arc` beside the request keeps them until `is_done` says so, or for ever. The length is at most PART, which is a
        // C int; the communicator lives as long as `self`; only the thread that started MPI gets here.
        let code = unsafe {
            ffi::MPI_Isend(
                part.as_ptr().cast(),
                part.len() as c_int,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                raw(self.world),
                &raw mut request,
            )
        };
        if code == ffi::MPI_SUCCESS as c_int {
            self.sending.push_back(Moving { request, buffer: message });
        } else {
            self.is_lost(to, format!("MPI can't send to it (error {code})"));
        }
    }

    /// Lets go of messages that are away.
    fn forget_what_is_away(&mut self) {
        self.sending.retain_mut(|sending| match is_done(&mut sending.request) {
            Ok(done) => !done,
            Err(_) => {
                // MPI may still read it; that the rank is lost its silence tells
                std::mem::forget(sending.buffer.clone());
                false
            }
        });
    }

    /// Begins to receive what is there, and takes what has come; whether anything has.
    fn receive(&mut self) -> bool {
        let mut moved = false;
        while self.begin_receive() {
            moved = true;
        }
        for from in 0..self.coming.len() {
            // in the order in which they were sent
            while let Some((_, part)) = self.coming[from].parts.front_mut() {
                match is_done(&mut part.request) {
                    Ok(false) => break,
                    Ok(true) => {
                        if let Some((tag, part)) = self.coming[from].parts.pop_front() {
                            self.took(from, tag, part.buffer);
                        }
                    }
                    Err(code) => {
                        self.coming[from].parts.pop_front().into_iter().for_each(std::mem::forget);
                        self.is_lost(from, format!("MPI can't receive from it (error {code})"));
                    }
                }
            }
        }
        moved
    }

    /// Begins to receive one part, if there is one.
    fn begin_receive(&mut self) -> bool {
        let mut found: c_int = 0;
        // SAFETY: plain integers and pointers, for which zero is a value.
        let (mut message, mut status): (ffi::MPI_Message, ffi::MPI_Status) =
            unsafe { (ffi::RSMPI_MESSAGE_NULL, std::mem::zeroed()) };
        // SAFETY: all three outputs are initialised and live; the constants are the library's.
        let code = unsafe {
            ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                ffi::RSMPI_ANY_TAG,
                raw(self.world),
                &raw mut found,
                &raw mut message,
                &raw mut status,
            )
        };
        if code != ffi::MPI_SUCCESS as c_int || found == 0 {
            return false;
        }
        let (from, tag) = (status.MPI_SOURCE as usize, status.MPI_TAG);
        let mut length: c_int = 0;
        // SAFETY: the status is of the message that was found.
        unsafe { ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut length) };
        let mut buffer = vec![0u8; length.max(0) as usize];
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: MPI writes to the buffer, which has as many bytes as the message, until the request is complete; it stays on
        // the heap beside the request until then, or for ever.
        let code = unsafe {
            ffi::MPI_Imrecv(
                buffer.as_mut_ptr().cast(),
                length,
                ffi::RSMPI_UINT8_T,
                &raw mut message,
                &raw mut request,
            )
        };
        let Some(coming) = self.coming.get_mut(from) else { return true };
        coming.heard = Instant::now();
        if code == ffi::MPI_SUCCESS as c_int {
            coming.parts.push_back((tag, Moving { request, buffer }));
        } else {
            std::mem::forget(buffer);
            self.is_lost(from, format!("MPI can't receive from it (error {code})"));
        }
        true
    }

    /// A part has come. Its length must be what the message's header says: the last one the rest, the others full.
    fn took(&mut self, from: usize, tag: c_int, bytes: Vec<u8>) {
        let coming = &mut self.coming[from];
        coming.heard = Instant::now();
        let fits = match (tag, &mut coming.partial) {
            (ALIVE, _) => return,
            (FIRST, None) => {
                let total = message_length(&bytes)
                    .filter(|length| *length <= LONGEST)
                    .map(|length| length as usize);
                let fits = total
                    .is_some_and(|total| bytes.len() >= HEADER && bytes.len() == total.min(PART));
                coming.partial = total.map(|total| (bytes, total));
                fits
            }
            (MORE, Some((all, total))) => {
                let fits = bytes.len() == (*total - all.len()).min(PART);
                all.extend_from_slice(&bytes);
                fits
            }
            _ => false,
        };
        if !fits {
            coming.partial = None;
            self.is_lost(from, "it sent something that is no message".into());
        } else if let Some((bytes, _)) = coming.partial.take_if(|(all, total)| all.len() == *total)
            && !coming.lost
        {
            let _ = self.inbox.send(Incoming::Message { from, bytes });
        }
    }
}

fn raw(communicator: &SimpleCommunicator) -> ffi::MPI_Comm {
    use mpi::raw::AsRaw;
    communicator.as_raw()
}
