//! Moves messages: one thread that sends, receives, and watches for signs of life. It never blocks
//! in MPI: every call here returns immediately, so a rank whose partner froze in the middle of a
//! message still notices.

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

/// The maximum number of bytes per part of a message: MPI counts in C ints, and signs of life must get
/// through between two parts.
const PART: usize = 4 << 20;
/// The longest message that is accepted: a larger length means a damaged header.
const LONGEST: u64 = 1 << 40;

/// Tag of the first part of a message, which includes the header.
const FIRST: c_int = 1;
/// Tag of all further parts.
const MORE: c_int = 2;
/// Tag of an empty message that is only a sign of life.
const ALIVE: c_int = 3;

// Between two polls for messages: short while there are some, longer when there have been none for
// a while. 20 us keep the latency of a job small against its proof; 1 ms costs an idle rank no
// core.
const SHORTEST_NAP: Duration = Duration::from_micros(20);
const NAP_WHILE_BUSY: Duration = Duration::from_micros(80);
const LONGEST_NAP: Duration = Duration::from_micros(1000);
const BUSY_FOR: Duration = Duration::from_millis(20);

/// The time that a rank has to end in order after its partner is lost.
const GRACE: Duration = Duration::from_secs(5);

/// Stands for "no exit code yet".
const NONE: u16 = u16::MAX;

/// The rules by which ranks watch each other.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// A rank without a sign of life for this long is lost.
    pub silence: Duration,
    /// The function that is called with a lost rank and the reason if this rank does not end within
    /// some seconds after the loss; returns the exit code.
    pub stuck: fn(usize, &str) -> u8,
}

/// Ends all ranks immediately, from any thread.
#[derive(Clone, Debug)]
pub struct Abort(Arc<AtomicU16>);

impl Abort {
    /// Ends all ranks with this exit code. Does not return.
    pub fn now(&self, code: u8) -> ! {
        // only the thread that started MPI may call MPI_Abort: it looks at the code in each turn
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

/// The messages that are being received from one rank.
struct Coming {
    /// parts that are being received, in the order in which they were sent
    parts: VecDeque<(c_int, Moving<Vec<u8>>)>,
    /// the parts of a message received so far, and its whole length
    partial: Option<(Vec<u8>, usize)>,
    heard: Instant,
    /// the two ranks exchange messages, and watch each other
    partner: bool,
    /// the rank is lost; its messages are dropped
    lost: bool,
}

impl Coming {
    /// Starts to watch this rank: leaders and the ranks of their groups find each other so.
    fn is_partner(&mut self) {
        if !std::mem::replace(&mut self.partner, true) {
            self.heard = Instant::now();
        }
    }
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
    // SAFETY: `world` is a live communicator, and the handler is a constant of the library. The
    // calls below check their return codes.
    unsafe { ffi::MPI_Comm_set_errhandler(raw(world), ffi::RSMPI_ERRORS_RETURN) };
    let (outgoing, to_send) = channel::<(usize, Vec<u8>)>();
    let post = move |to: usize, bytes: Vec<u8>| {
        // cannot fail before the rank has ended, because the transport ends after it
        let _ = outgoing.send((to, bytes));
    };
    let (endpoint, inbox) = Endpoint::new(world.rank() as usize, world.size() as usize, post);
    let now = Instant::now();
    let coming = |partner| Coming {
        parts: VecDeque::new(),
        partial: None,
        heard: now,
        partner,
        lost: false,
    };
    // rank 0 has to do with all ranks, and the others with rank 0
    let coming = (0..world.size()).map(|rank| coming((rank == 0) != (world.rank() == 0))).collect();
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
        // after a panic this rank cannot end in order with the others: end all of them
        if catch_unwind(AssertUnwindSafe(|| transport.pump(&to_send, watch, ended, &code))).is_err()
        {
            abort(world, 4);
        }
        match handle.join() {
            Ok(Ok(result)) => result,
            _ => abort(world, 4),
        }
    });
    // SAFETY: as above. Later calls are those of rsmpi, which does not check return codes.
    unsafe { ffi::MPI_Comm_set_errhandler(raw(world), ffi::RSMPI_ERRORS_ARE_FATAL) };
    out
}

/// Ends all ranks.
pub(crate) fn abort(world: &SimpleCommunicator, code: u8) -> ! {
    // MPI_Abort talks to a daemon that may be unreachable: exit after three seconds in any case
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        leave(code);
    });
    // SAFETY: `world` is a live communicator, and the process exits right after the call.
    unsafe { ffi::MPI_Abort(raw(world), c_int::from(code)) };
    leave(code)
}

/// Exits immediately, without a core file, which would contain the witness.
pub(crate) fn leave(code: u8) -> ! {
    // SAFETY: `_exit` accepts any code and does not return.
    unsafe { libc::_exit(c_int::from(code)) }
}

fn is_done(request: &mut ffi::MPI_Request) -> Result<bool, c_int> {
    let mut done: c_int = 0;
    // SAFETY: the request came from MPI_Isend or MPI_Imrecv and was not completed: completed ones
    // are dropped with their `Moving`.
    let code = unsafe { ffi::MPI_Test(request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
    if code == ffi::MPI_SUCCESS as c_int { Ok(done != 0) } else { Err(code) }
}

impl Drop for Transport<'_> {
    /// Leaks the buffers that MPI may still read or write.
    fn drop(&mut self) {
        self.sending.drain(..).for_each(std::mem::forget);
        self.coming.iter_mut().flat_map(|coming| coming.parts.drain(..)).for_each(std::mem::forget);
    }
}

impl Transport<'_> {
    /// Moves messages until the rank has ended and all its messages have left.
    // One loop: its order is the protocol. Messages of the rank leave before its end is noticed, arrived ones are
    // taken before silence is judged.
    fn pump(
        &mut self,
        to_send: &Receiver<(usize, Vec<u8>)>,
        watch: &Watch,
        ended: &AtomicBool,
        code: &AtomicU16,
    ) {
        let mut nap = SHORTEST_NAP;
        // several signs per silence, so that one late sign loses no rank
        let between = (watch.silence / 5).clamp(Duration::from_millis(50), Duration::from_secs(2));
        let (mut sign, mut last_look, mut last_moved) =
            (Instant::now(), Instant::now(), Instant::now());
        let (mut silent_end, mut over_since) = (false, None);
        loop {
            let over = ended.load(Ordering::SeqCst);
            let mut moved = match to_send.recv_timeout(nap) {
                Ok((to, bytes)) => {
                    self.send(to, bytes);
                    to_send.try_iter().for_each(|(to, bytes)| self.send(to, bytes));
                    true
                }
                Err(RecvTimeoutError::Timeout) => false,
                // the rank sends nothing more, and the others may leave; their remaining messages must
                // be received, or their sends would never complete
                Err(RecvTimeoutError::Disconnected) => {
                    silent_end = true;
                    std::thread::sleep(nap);
                    false
                }
            };
            if let Ok(code) = u8::try_from(code.load(Ordering::SeqCst)) {
                abort(self.world, code);
            }
            self.drop_sent();
            moved |= self.receive();
            moved |= self.has_parts_in_flight();
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
                // any partner will do for the message: MPI does not report who does not receive
                let rank = self.coming.iter().position(|coming| coming.partner).unwrap_or(0);
                abort(self.world, (watch.stuck)(rank, "it does not receive the last messages"));
            }
            if silent_end || over {
                // the others may have left already: their silence no longer means anything
                continue;
            }
            // a machine that slept or was frozen must not blame the others for its own silence
            if last_look.elapsed() > watch.silence / 2 {
                self.coming.iter_mut().for_each(|coming| coming.heard = Instant::now());
            }
            last_look = Instant::now();
            if sign.elapsed() >= between {
                sign = Instant::now();
                self.exchange_signs(watch.silence);
            }
            self.end_if_stuck(watch);
        }
    }

    /// Reports whether parts are being sent or received. They progress only while this thread calls MPI, so
    /// it polls at the short interval.
    fn has_parts_in_flight(&self) -> bool {
        !self.sending.is_empty() || self.coming.iter().any(|coming| !coming.parts.is_empty())
    }

    /// Ends all ranks if this one does not end after the loss of another.
    fn end_if_stuck(&self, watch: &Watch) {
        // the rank was informed of the loss and should end in order; it hangs if it has not by now
        if let Some((since, rank, why)) = &self.first_lost
            && since.elapsed() > GRACE
        {
            abort(self.world, (watch.stuck)(*rank, why));
        }
    }

    /// Sends a sign of life to all partners, and declares those lost that have been silent too
    /// long.
    fn exchange_signs(&mut self, silence: Duration) {
        for rank in 0..self.coming.len() {
            if !self.coming[rank].partner {
                continue;
            }
            if !self.coming[rank].lost {
                self.start_send(rank, ALIVE, Arc::new(Vec::new()), 0, 0);
            }
            if self.coming[rank].heard.elapsed() > silence {
                self.is_lost(rank, format!("no sign of life for {:.0} s", silence.as_secs_f64()));
            }
        }
    }

    /// Reports to this rank that another one is lost, once.
    fn is_lost(&mut self, rank: usize, why: String) {
        if !std::mem::replace(&mut self.coming[rank].lost, true) {
            self.first_lost.get_or_insert_with(|| (Instant::now(), rank, why.clone()));
            let _ = self.inbox.send(Incoming::Lost { rank, why });
        }
    }

    fn send(&mut self, to: usize, bytes: Vec<u8>) {
        self.coming[to].is_partner();
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

    #[allow(
        clippy::cast_possible_truncation,
        reason = "a part has at most PART = 2^22 bytes, and ranks are C ints"
    )]
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
        // SAFETY: MPI reads `part` until the request is complete. The bytes are on the heap,
        // nothing writes to them, and the `Arc` next to the request keeps them until `is_done`
        // reports completion, or forever. The length is at most PART, which fits a C int; the
        // communicator lives as long as `self`; only the thread that started MPI gets here.
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
            self.is_lost(to, format!("MPI cannot send to it (error {code})"));
        }
    }

    /// Drops messages that have been sent.
    fn drop_sent(&mut self) {
        self.sending.retain_mut(|sending| match is_done(&mut sending.request) {
            Ok(done) => !done,
            Err(_) => {
                // MPI may still read the buffer, so leak it; the silence of the rank will show its
                // loss
                std::mem::forget(sending.buffer.clone());
                false
            }
        });
    }

    /// Starts to receive arrived parts, and takes those that are complete. Reports whether anything new
    /// arrived.
    fn receive(&mut self) -> bool {
        let mut moved = false;
        while self.begin_receive() {
            moved = true;
        }
        for from in 0..self.coming.len() {
            // only from the front: parts must be joined in the order in which they were sent
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
                        self.is_lost(from, format!("MPI cannot receive from it (error {code})"));
                    }
                }
            }
        }
        moved
    }

    /// Starts to receive one part, if one has arrived.
    fn begin_receive(&mut self) -> bool {
        let mut found: c_int = 0;
        // SAFETY: plain integers and pointers, for which zero is a valid value.
        let (mut message, mut status): (ffi::MPI_Message, ffi::MPI_Status) =
            unsafe { (ffi::RSMPI_MESSAGE_NULL, std::mem::zeroed()) };
        // SAFETY: all three outputs are initialized and live; the constants are the library's.
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
        // SAFETY: the status is that of the message that was found.
        unsafe { ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut length) };
        let mut buffer = vec![0u8; length.max(0) as usize];
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: MPI writes to the buffer, which has as many bytes as the message, until the
        // request is complete; it stays on the heap next to the request until then, or forever.
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
        coming.is_partner();
        coming.heard = Instant::now();
        if code == ffi::MPI_SUCCESS as c_int {
            coming.parts.push_back((tag, Moving { request, buffer }));
        } else {
            // MPI may still write to it
            std::mem::forget(buffer);
            self.is_lost(from, format!("MPI cannot receive from it (error {code})"));
        }
        true
    }

    /// Takes a part that has arrived. Its length must follow from the message's header: the last
    /// part has the rest, all others are full.
    fn took(&mut self, from: usize, tag: c_int, bytes: Vec<u8>) {
        let coming = &mut self.coming[from];
        coming.heard = Instant::now();
        let fits = match (tag, &mut coming.partial) {
            (ALIVE, _) => return,
            (FIRST, None) => {
                let total = message_length(&bytes)
                    .filter(|length| *length <= LONGEST)
                    .and_then(|length| usize::try_from(length).ok());
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
            self.is_lost(from, "it sent something that is not a message".into());
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
