//! Accepting connections, up to a limit.

use crate::activity::Activity;
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// How long a connection may take to send the head of its next request, unless something else is said.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// How long nothing is accepted after that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// How long answers that are on their way may take when a service stops.
const GRACE: Duration = Duration::from_secs(5);

/// The most bytes of a connection that HTTP/1.1 reads ahead. The heads of requests must fit, too.
const READ_AHEAD: usize = 1 << 17;

/// The bytes that HTTP/2 begins with. No request of HTTP/1.1 does.
const PREFACE: &[u8] = b"PRI";

/// How often somebody who has sent the beginning of that is looked at again.
const GLANCE: Duration = Duration::from_millis(10);

/// The window of a stream of HTTP/2, in bytes: the default of 64 KiB makes large bodies wait.
const WINDOW: u32 = 1 << 20;

/// How many requests a connection of HTTP/2 may have at a time.
const MAX_STREAMS: u32 = 8;

/// What the connections of a server may do.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Limits {
    connections: usize,
    life: Duration,
    silence: Duration,
    http2: bool,
}

impl Limits {
    /// Allows `connections` at a time. Each is closed after `life`, even if it is in use, so that waiting clients get their turn, and
    /// after 30 seconds in which it does not send the head of a request. All speak HTTP/1.1.
    pub const fn new(connections: usize, life: Duration) -> Self {
        Self { connections, life, silence: MAX_SILENCE, http2: false }
    }

    /// Sets after how long without a request a connection is closed.
    pub const fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Sets whether connections may speak HTTP/2, too: without TLS, from their first byte on (h2c with prior knowledge).
    pub const fn http2(mut self, http2: bool) -> Self {
        self.http2 = http2;
        self
    }
}

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
    let room = Arc::new(Semaphore::new(limits.connections.max(1)));
    loop {
        // Each has a file, and the rest of the process needs some, too.
        let next = async {
            let held = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await, held)
        };
        let (accepted, held) = tokio::select! {
            next = next => next,
            _ = end.wait_for(|ended| *ended) => return Open(open),
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let answer = TowerToHyperService::new(router.clone());
        let (open, end) = (open.watcher(), end.clone());
        tokio::spawn(async move {
            let _held = held;
            match tokio::time::timeout(limits.life, serve(stream, answer, limits, open, end)).await
            {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a connection ended"),
                Err(_) => tracing::debug!("a connection was open for long enough"),
            }
        });
    }
}

/// Answers the requests of a connection.
async fn serve(
    stream: TcpStream,
    answer: TowerToHyperService<Router>,
    limits: Limits,
    open: Watcher,
    mut end: watch::Receiver<bool>,
) -> hyper::Result<()> {
    if limits.http2 {
        let begun = tokio::select! {
            begun = tokio::time::timeout(limits.silence, is_http2(&stream)) => begun,
            _ = end.wait_for(|ended| *ended) => return Ok(()),
        };
        match begun {
            Ok(true) => return serve_http2(stream, answer, limits, open, end).await,
            Ok(false) => {}
            Err(_) => return Ok(()),
        }
    }
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.silence).max_buf_size(READ_AHEAD);
    open.watch(http.serve_connection(TokioIo::new(stream), answer)).await
}

/// Whether a connection begins as HTTP/2 does. Waits for as many bytes as tell.
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

/// Answers the requests of a connection that speaks HTTP/2, which has no time limit of its own for one that is silent.
async fn serve_http2(
    stream: TcpStream,
    answer: TowerToHyperService<Router>,
    limits: Limits,
    open: Watcher,
    mut end: watch::Receiver<bool>,
) -> hyper::Result<()> {
    // Whoever stops the server waits for this.
    let _open = open;
    let activity = Arc::new(Activity::default());
    let seen = Arc::clone(&activity);
    let answer = service_fn(move |request| {
        let busy = seen.begin();
        let answered = answer.call(request);
        async move {
            let answered = answered.await?;
            // From here on the caller must keep reading.
            let seen = busy.answered();
            Ok::<_, std::convert::Infallible>(answered.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    seen.touch();
                    frame
                }))
            }))
        }
    });
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .keep_alive_interval(limits.silence);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), answer));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = activity.silent(limits.silence) => {}
        _ = end.wait_for(|ended| *ended) => {}
    }
    // Callers are told that nothing more is accepted.
    connection.as_mut().graceful_shutdown();
    tokio::time::timeout(GRACE, connection).await.unwrap_or(Ok(()))
}
