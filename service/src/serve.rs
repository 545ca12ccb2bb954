//! Accepting connections, up to a limit.

use crate::gate::{Gate, MAX_QUEUED};
use crate::limits::Limits;
use crate::pace::BUFFERED;
use crate::seats::{Seat, Seated, Seats};
use crate::stream::Stream;
use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// The time for which no connection is accepted after accepting one has failed.
const PAUSE: Duration = Duration::from_millis(100);

/// The maximum time for answers that are on their way when a service stops.
const GRACE: Duration = Duration::from_secs(5);

/// The bytes that the system takes of an answer before they can be sent. With more, a slow reader would seem to take a lot, and then
/// nothing for minutes.
#[cfg(any(target_os = "android", target_os = "linux"))]
const UNSENT: u32 = 1 << 17;

/// The bytes that HTTP/2 begins with. No request of HTTP/1.1 does.
const PREFACE: &[u8] = b"PRI";

/// The interval at which a connection that has sent only the beginning of those bytes is looked at again.
const GLANCE: Duration = Duration::from_millis(10);

/// The window of a stream of HTTP/2, in bytes: the default of 64 KiB makes large bodies wait.
pub(crate) const WINDOW: u32 = 512 << 10;

/// The maximum number of requests of a connection of HTTP/2 at a time. All their windows fit into that of the connection, or the
/// body of one request that nobody reads would keep the others waiting.
pub(crate) const MAX_STREAMS: u32 = 8;

/// The connections that are open when a service stops.
#[derive(Debug)]
pub struct Open(GracefulShutdown);

impl Open {
    /// Lets answers that are on their way end, for five seconds.
    pub async fn close(self) {
        if tokio::time::timeout(GRACE, self.0.shutdown()).await.is_err() {
            // Somebody keeps a connection open.
            tracing::warn!("connections that were still open are closed");
        }
    }
}

/// Accepts connections until `end` is true.
pub async fn accept(
    router: Router,
    listener: TcpListener,
    limits: Limits,
    mut end: watch::Receiver<bool>,
) -> Open {
    let open = GracefulShutdown::new();
    let seats = Seats::new(limits.connections);
    let (router, queue) = (TowerToHyperService::new(router), Arc::new(Semaphore::new(MAX_QUEUED)));
    let gate = Gate { router, limits, queue };
    loop {
        let next = async {
            let accepted = listener.accept().await;
            // Each has a file, and the rest of the process needs some, too.
            let seated = loop {
                match seats.sit() {
                    Some(seated) => break seated,
                    None => seats.changed().await,
                }
            };
            (accepted, seated)
        };
        let (accepted, seated) = tokio::select! {
            next = next => next,
            _ = end.wait_for(|ended| *ended) => return Open(open),
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Mostly, the process has no more file descriptors (EMFILE). Without a pause,
                // accepting would fail again at once, and the loop would take a whole core.
                tracing::warn!(%error, "a connection cannot be accepted");
                drop(seated);
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // A connection gets the listener's value when it is made, which may be before anything is set here.
        #[cfg(any(target_os = "android", target_os = "linux"))]
        if let Err(error) = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT) {
            tracing::warn!(%error, "a slow reader of answers may be given up too early");
        }
        let connection = Connection { gate: gate.clone(), seated, open: open.watcher() };
        tokio::spawn(connection.run(stream, end.clone()));
    }
}

/// A connection that was accepted.
struct Connection {
    gate: Gate,
    seated: Seated,
    open: Watcher,
}

impl Connection {
    /// Answers requests until the peer ends the connection, or has had enough time.
    async fn run(self, stream: TcpStream, end: watch::Receiver<bool>) {
        let (life, seat) = (self.gate.limits.life, Arc::clone(&self.seated.seat));
        tokio::select! {
            served = self.serve(stream, end) => {
                if let Err(error) = served {
                    tracing::debug!(%error, "a connection ended");
                }
            }
            () = seat.lost() => tracing::debug!("a connection makes room for another one"),
            () = tokio::time::sleep(life) => {
                tracing::debug!("a connection was open for long enough");
            }
        }
    }

    async fn serve(self, stream: TcpStream, mut end: watch::Receiver<bool>) -> hyper::Result<()> {
        let limits = self.gate.limits;
        let is_http2 = limits.http2 && {
            let begun = tokio::select! {
                begun = tokio::time::timeout(limits.silence, is_http2(&stream)) => begun,
                _ = end.wait_for(|ended| *ended) => return Ok(()),
            };
            let Ok(begun) = begun else { return Ok(()) };
            begun
        };
        let Self { gate, seated, open } = self;
        let Seated { seats, seat, .. } = &seated;
        let answer =
            service_fn(|request| gate.clone().answer(Arc::clone(seats), Arc::clone(seat), request));
        if is_http2 {
            seat.has_frames();
            let mut http = http2::Builder::new(TokioExecutor::new());
            http.timer(TokioTimer::new())
                .max_concurrent_streams(MAX_STREAMS)
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(MAX_STREAMS * WINDOW)
                .keep_alive_interval(limits.silence);
            let stream = Stream::new(stream, Arc::clone(seat));
            let mut connection = pin!(http.serve_connection(stream, answer));
            // Whoever stops the server waits for this.
            let _open = open;
            tokio::select! {
                ended = connection.as_mut() => return ended,
                () = overdue(seat, limits) => {}
                _ = end.wait_for(|ended| *ended) => {}
            }
            // This informs callers that nothing more is accepted.
            connection.as_mut().graceful_shutdown();
            return tokio::time::timeout(GRACE, connection).await.unwrap_or(Ok(()));
        }
        let mut http = http1::Builder::new();
        // Beyond the limit, a connection is there for one request.
        http.timer(TokioTimer::new()).max_buf_size(BUFFERED).keep_alive(!seat.is_spare());
        let stream = Stream::new(stream, Arc::clone(seat));
        tokio::select! {
            ended = open.watch(http.serve_connection(stream, answer)) => ended,
            () = overdue(seat, limits) => Ok(()),
        }
    }
}

async fn overdue(seat: &Seat, limits: Limits) {
    seat.overdue(limits.silence, limits.grace).await;
    tracing::debug!("a connection kept the server waiting for too long");
}

// `hyper_util`'s `auto` would find the version, too, but it reports it to no one: a seat must know before the first request whether bytes
// are heads or frames, or a silent connection of HTTP/2 would count as one that keeps its head back.
/// Reports whether a connection begins as HTTP/2 does. Waits for as many bytes as it takes to tell.
async fn is_http2(stream: &TcpStream) -> bool {
    let mut bytes = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut bytes).await {
            Ok(count @ 1..) if bytes[..count] == PREFACE[..count] => {
                if count == PREFACE.len() {
                    return true;
                }
                // Peeking returns at once while a byte is there; and the rest may never come.
                tokio::time::sleep(GLANCE).await;
                match stream.ready(Interest::READABLE).await {
                    Ok(ready) if !ready.is_read_closed() => {}
                    _ => return false,
                }
            }
            // Another version, or nothing at all: the other server says what is wrong.
            _ => return false,
        }
    }
}
