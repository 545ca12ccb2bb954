//! Clients that are slow on purpose: others are answered all the same.

use crate::gate::MAX_QUEUED;
use crate::serve::{MAX_STREAMS, WINDOW};
use crate::{Limits, accept, is_late};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::{get, post};
use http_body::{Frame, SizeHint};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Longer than any of these tests takes.
const LONG: Duration = Duration::from_secs(600);

/// The bytes of an answer in one piece: more than systems take of it for a reader that takes nothing.
const WHOLE: usize = 16 << 20;

/// The state of the server's handlers, as the tests see it.
#[derive(Debug, Default)]
struct Inside {
    /// The requests for `/held` that have begun.
    held: AtomicUsize,
    /// The answers of `/large` that are not sent to the end.
    large: AtomicUsize,
    /// The bytes of them that connections have got.
    handed: AtomicUsize,
}

/// An answer without an end.
struct Endless(Arc<Inside>);

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.large.fetch_sub(1, Ordering::SeqCst);
    }
}

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.handed.fetch_add(1 << 16, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1 << 16])))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}

/// A server in a thread of its own, until it is dropped.
struct Running {
    address: String,
    inside: Arc<Inside>,
    /// Requests for `/held` are answered with these.
    release: Arc<Semaphore>,
    end: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.release.close();
        self.end.send_replace(true);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn router(inside: &Arc<Inside>, release: &Arc<Semaphore>) -> Router {
    let (seen, released) = (Arc::clone(inside), Arc::clone(release));
    // It has the body, and does not read it.
    let held = move |_body: Body| async move {
        seen.held.fetch_add(1, Ordering::SeqCst);
        if let Ok(permit) = released.acquire().await {
            permit.forget();
        }
        "held"
    };
    let seen = Arc::clone(inside);
    let large = move || async move {
        seen.large.fetch_add(1, Ordering::SeqCst);
        Body::new(Endless(seen))
    };
    let body = |body: Body| async move {
        match axum::body::to_bytes(body, 1 << 20).await {
            Ok(_) => StatusCode::OK,
            Err(error) if is_late(&error) => StatusCode::REQUEST_TIMEOUT,
            Err(_) => StatusCode::BAD_REQUEST,
        }
    };
    Router::new()
        .route("/healthz", get(|| async { "healthy" }))
        .route("/quick", get(|| async { "quick" }))
        .route("/held", get(held.clone()).post(held))
        .route("/large", get(large))
        .route("/whole", get(|| async { vec![b'x'; WHOLE] }))
        .route("/body", post(body))
}

impl Running {
    fn start(limits: Limits) -> Self {
        Self::on(listener(), limits)
    }

    fn on(listener: TcpListener, limits: Limits) -> Self {
        let (end, ended) = watch::channel(false);
        let (inside, release) = (Arc::new(Inside::default()), Arc::new(Semaphore::new(0)));
        let (router, address) = (router(&inside, &release), listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                accept(router, listener, limits, ended).await.close().await;
            });
        });
        Self { address: address.to_string(), inside, release, end, thread: Some(thread) }
    }

    fn send(&self, bytes: &[u8]) -> TcpStream {
        send(&self.address, bytes)
    }

    fn get(&self, path: &str) -> String {
        answer(self.send(&request(path)))
    }
}

/// A place where clients can connect before there is a server.
fn listener() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

fn send(address: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").into_bytes()
}

/// Everything that a connection answers with until it is closed.
fn answer(mut stream: TcpStream) -> String {
    let mut found = Vec::new();
    match stream.read_to_end(&mut found) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => panic!("{error}"),
        _ => String::from_utf8(found).unwrap(),
    }
}

/// Sends a byte now and then on each connection, until `stop` is set. Returns how many the server had closed by then.
fn drip(mut streams: Vec<TcpStream>, stop: &AtomicBool) -> usize {
    let mut closed = vec![false; streams.len()];
    while !stop.load(Ordering::SeqCst) {
        for (stream, closed) in streams.iter_mut().zip(&mut closed) {
            *closed |= stream.write_all(b"x").is_err();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    closed.into_iter().filter(|closed| *closed).count()
}

const HEAD: &[u8] = b"GET /quick HTTP/1.1\r\nHost: x\r\nX-Slow: ";
const BODY: &[u8] = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";

/// All connections are taken by clients that send a byte now and then, or read nothing, and none of them is over its time: others are
/// answered in their place.
#[test]
fn slow_clients_make_room() {
    for slow in [b"", HEAD, BODY, &request("/large")[..]] {
        // Without a seat for others, they would wait until these times are over.
        let limits = Limits::new(4, LONG).silence(LONG).pace(1 << 20, LONG);
        let server = Running::start(limits);
        let streams: Vec<TcpStream> = (0..4).map(|_| server.send(slow)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // An unread answer needs no bytes, and a request none before its first one.
            let drips = [HEAD, BODY].contains(&slow);
            let streams = if drips { streams } else { drop_later(scope, streams, &stop) };
            let dripping = scope.spawn(|| drip(streams, &stop));
            let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for path in ["/healthz", "/quick", "/healthz", "/quick"] {
                    let found = server.get(path);
                    assert!(found.starts_with("HTTP/1.1 200"), "{path}: {found}");
                    assert!(found.ends_with(if path == "/quick" { "quick" } else { "healthy" }));
                }
            }));
            stop.store(true, Ordering::SeqCst);
            let closed = dripping.join().unwrap();
            if let Err(panic) = seen {
                std::panic::resume_unwind(panic);
            }
            assert!(closed < 4, "one place was enough");
        });
    }
}

/// Holds connections until `stop` is set, and leaves none to drip on.
fn drop_later<'s>(
    scope: &'s std::thread::Scope<'s, '_>,
    streams: Vec<TcpStream>,
    stop: &'s AtomicBool,
) -> Vec<TcpStream> {
    scope.spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(streams);
    });
    Vec::new()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not in two minutes: {what}");
}

/// The server works on all connections. What is vital is answered; other requests get the next connection, or an answer that says when
/// to come back.
#[test]
fn vital_requests_are_answered_while_all_connections_work() {
    let server = Running::start(Limits::new(2, LONG).silence(LONG));
    let held: Vec<TcpStream> = (0..2).map(|_| server.send(&request("/held"))).collect();
    until("both are held", || server.inside.held.load(Ordering::SeqCst) == 2);
    let found = server.get("/healthz");
    assert!(found.starts_with("HTTP/1.1 200") && found.ends_with("healthy"), "{found}");
    // More than may wait: the excess ones get an error. All others stay, so what is counted does not depend on time.
    let held_too: Vec<TcpStream> =
        (0..=MAX_QUEUED).map(|_| server.send(&request("/held"))).collect();
    server.release.add_permits(3 + MAX_QUEUED);
    let (mut answered, mut refused) = (0, 0);
    for stream in held.into_iter().chain(held_too) {
        let found = answer(stream);
        if found.starts_with("HTTP/1.1 200") {
            answered += 1;
            continue;
        }
        assert!(found.starts_with("HTTP/1.1 503"), "{found}");
        assert!(found.contains("retry-after: 1") && found.contains("all 2 connections"), "{found}");
        refused += 1;
    }
    assert!(answered >= 2 && answered + refused == 3 + MAX_QUEUED, "{answered} {refused}");
    assert!(server.get("/quick").starts_with("HTTP/1.1 200"));
}

/// While the queue is full, the next request is refused, and a vital one is not.
#[test]
fn a_full_queue_says_when_to_come_back() {
    let server = Running::start(Limits::new(1, LONG).silence(LONG));
    let held = server.send(&request("/held"));
    until("it is held", || server.inside.held.load(Ordering::SeqCst) == 1);
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // More requests than may wait, at the same time: the surplus is refused before any of them has its turn.
        for _ in 0..MAX_QUEUED + 8 {
            scope.spawn(|| {
                let found = server.get("/quick");
                if found.starts_with("HTTP/1.1 503") {
                    refused.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        until("some are refused", || refused.load(Ordering::SeqCst) > 0);
        assert!(server.get("/healthz").starts_with("HTTP/1.1 200"));
        server.release.add_permits(1);
    });
    assert!(answer(held).starts_with("HTTP/1.1 200"));
    assert!(server.get("/quick").starts_with("HTTP/1.1 200"));
}

/// A body below the least rate is given up, however regularly its bytes come, and so is an answer that nobody reads.
#[test]
fn who_is_below_the_rate_is_given_up() {
    let limits = Limits::new(8, LONG).silence(Duration::from_secs(1));
    let server = Running::start(limits.pace(1 << 20, Duration::from_secs(1)));
    let body = server.send(BODY);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let dripping = scope.spawn(|| drip(vec![body.try_clone().unwrap()], &stop));
        let mut head = [0; 12];
        let read = (&body).read_exact(&mut head);
        stop.store(true, Ordering::SeqCst);
        dripping.join().unwrap();
        read.unwrap();
        assert_eq!(&head, b"HTTP/1.1 408");
    });
    let unread = server.send(&request("/large"));
    until("it is answered", || server.inside.large.load(Ordering::SeqCst) == 1);
    until("nobody reads it", || server.inside.large.load(Ordering::SeqCst) == 0);
    drop(unread);
}

/// An answer in one piece takes ten times as long as a silence may, for a reader that takes all of it four times as quickly as it must.
#[test]
fn who_reads_steadily_gets_the_whole_answer() {
    let limits = Limits::new(8, LONG).silence(Duration::from_secs(2));
    let server = Running::start(limits.pace(1 << 18, Duration::from_secs(2)));
    let mut stream = server.send(&request("/whole"));
    let (mut part, mut found) = (vec![0; 1 << 16], 0);
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => found += part[..count].iter().filter(|byte| **byte == b'x').count(),
            Err(error) => panic!("after {found} bytes: {error}"),
        }
        std::thread::sleep(Duration::from_millis(60));
    }
    // The head has one, too.
    assert!((WHOLE..WHOLE + 4).contains(&found), "{found} bytes");
}

/// The system takes less for a reader that takes nothing than a steady reader takes while an answer may be left unread: otherwise,
/// a steady reader would seem to stand still for that long.
#[cfg(target_os = "linux")]
#[test]
fn little_is_on_its_way_to_who_reads_nothing() {
    let limits = Limits::new(8, LONG).silence(Duration::from_secs(2));
    let listener = listener();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(1 << 16).unwrap();
    socket.connect(&listener.local_addr().unwrap().into()).unwrap();
    // What is set for the listener from here on is not set for this connection.
    let server = Running::on(listener, limits.pace(1 << 20, Duration::from_secs(2)));
    let mut stream = TcpStream::from(socket);
    stream.write_all(&request("/large")).unwrap();
    until("it is answered", || server.inside.large.load(Ordering::SeqCst) == 1);
    until("nobody reads it", || server.inside.large.load(Ordering::SeqCst) == 0);
    let (handed, steady) = (server.inside.handed.load(Ordering::SeqCst), 30 * (16 << 10));
    assert!(handed > 1 << 17 && handed < 2 * steady, "{handed} bytes");
}

/// The frame of HTTP/2 with this kind, flags, stream and content.
fn frame(kind: u8, flags: u8, stream: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], content].concat()
}

/// The next frame: its kind, flags, stream and content.
fn next_frame(stream: &mut TcpStream) -> (u8, u8, u8, Vec<u8>) {
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    let mut content = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    stream.read_exact(&mut content).unwrap();
    (head[3], head[4], head[8], content)
}

/// A handler that does not read its body leaves room on the connection for the bodies of others.
#[test]
fn one_unread_body_leaves_room_for_others() {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const GO_AWAY: u8 = 7;
    const WINDOW_UPDATE: u8 = 8;
    let server = Running::start(Limits::new(8, LONG).silence(LONG).http2(true));
    let mut stream = server.send(super::PREFACE);
    // Nothing may be sent before the server has announced its windows; a connection has 65,535 bytes without that.
    let (mut settings, mut window) = (false, 65_535);
    while !settings || window < MAX_STREAMS * WINDOW {
        match next_frame(&mut stream) {
            (SETTINGS, 0, ..) => settings = true,
            (WINDOW_UPDATE, _, 0, more) => {
                window += u32::from_be_bytes(more.try_into().unwrap());
            }
            (..) => {}
        }
    }
    stream.write_all(&frame(SETTINGS, 1, 0, b"")).unwrap();
    // POST, http, a path and a host, without compression tables.
    let post = |path: &str| [b"\x83\x86\x04\x05", path.as_bytes(), b"\x01\x09localhost"].concat();
    let unread = MAX_STREAMS - 1;
    for number in 0..unread {
        let number = u8::try_from(2 * number + 1).unwrap();
        stream.write_all(&frame(HEADERS, 4, number, &post("/held"))).unwrap();
        for _ in 0..WINDOW >> 14 {
            stream.write_all(&frame(DATA, 0, number, &[0; 1 << 14])).unwrap();
        }
    }
    let last = u8::try_from(2 * unread + 1).unwrap();
    stream.write_all(&frame(HEADERS, 4, last, &post("/body"))).unwrap();
    stream.write_all(&frame(DATA, 1, last, &[0; 1 << 14])).unwrap();
    loop {
        let (kind, _, number, content) = next_frame(&mut stream);
        assert_ne!(
            kind, GO_AWAY,
            "the windows of its streams are more than a connection has: {content:?}"
        );
        if kind == HEADERS && number == last {
            assert_eq!(content[0], 0x88, "200");
            break;
        }
    }
    until("all are held", || server.inside.held.load(Ordering::SeqCst) == unread as usize);
}
