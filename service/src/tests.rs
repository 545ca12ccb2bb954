//! Connections that are silent, whatever they speak, and those that are slow.

mod slow;

use crate::{Limits, accept};
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio::sync::watch;

const SILENCE: Duration = Duration::from_secs(1);

/// The first bytes of HTTP/2, with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// `GET /slow` at `localhost`, as a frame of headers of stream 1 without compression tables.
const REQUEST: &[u8] = b"\0\0\x14\x01\x05\0\0\0\x01\x82\x86\x04\x05/slow\x01\x09localhost";

/// A server that answers with a body of twelve parts, which takes three times as long as a silence may. It ends with `end`.
fn server(limits: Limits) -> (String, watch::Sender<bool>, std::thread::JoinHandle<()>) {
    let (end, ended) = watch::channel(false);
    let (bound, address) = std::sync::mpsc::channel();
    let running = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            bound.send(listener.local_addr().unwrap().to_string()).unwrap();
            let slow = || async {
                let parts = futures_util::stream::unfold(0, |part| async move {
                    tokio::time::sleep(SILENCE / 4).await;
                    (part < 12).then(|| (Ok::<_, std::convert::Infallible>("x"), part + 1))
                });
                Body::from_stream(parts)
            };
            let router = Router::new().route("/slow", get(slow));
            accept(router, listener, limits, ended).await.close().await;
        });
    });
    (address.recv().unwrap(), end, running)
}

/// Sends bytes, and reads until the other side closes. Returns what came, and after how long the connection was closed.
fn exchange(address: &str, bytes: &[u8]) -> (Vec<u8>, Duration) {
    let (mut found, begun) = (Vec::new(), Instant::now());
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(bytes).unwrap();
    // A reset is an end, too.
    match stream.read_to_end(&mut found) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => panic!("{error}"),
        _ => (found, begun.elapsed()),
    }
}

#[test]
fn silent_connections_are_closed() {
    let limits = Limits::new(16, Duration::from_secs(60)).silence(SILENCE);
    let (address, end, running) = server(limits.http2(true));
    // A client that reads nothing of its answer, but shows that it is alive.
    let no_window = [&PREFACE[..24], b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0", REQUEST].concat();
    std::thread::scope(|scope| {
        let address = &address;
        for begun in [
            &b""[..],
            b"P",
            b"PR",
            b"PO",
            b"GET /",
            &PREFACE[..3],
            &PREFACE[..20],
            PREFACE,
            &no_window,
        ] {
            scope.spawn(move || {
                let (found, after) = exchange(address, begun);
                assert!(after >= SILENCE, "{begun:?} was closed after {after:?}");
                assert!(after < 12 * SILENCE, "{begun:?} was closed after {after:?}");
                assert!(!found.contains(&b'x'), "{found:?}");
            });
        }
        // A connection whose answer is on its way is not silent.
        scope.spawn(move || {
            let (found, after) = exchange(address, &[PREFACE, REQUEST].concat());
            assert_eq!(found.iter().filter(|byte| **byte == b'x').count(), 12, "{found:?}");
            assert!(after >= 3 * SILENCE, "{after:?}");
        });
        scope.spawn(move || {
            let request = b"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            let (found, _) = exchange(address, request);
            assert!(found.starts_with(b"HTTP/1.1 200"), "{found:?}");
        });
    });
    // One that has begun and ends is not waited for.
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(b"P").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let begun = Instant::now();
    let _ = stream.read_to_end(&mut Vec::new());
    assert!(begun.elapsed() < SILENCE, "{:?}", begun.elapsed());
    end.send_replace(true);
    running.join().unwrap();
}

/// Without HTTP/2, its beginning is a wrong request; and a server that ends does not wait for one that has sent nothing.
#[test]
fn http2_is_a_choice() {
    let limits = Limits::new(8, Duration::from_secs(60)).silence(Duration::from_secs(30));
    let (address, end, running) = server(limits);
    let (found, _) = exchange(&address, PREFACE);
    assert!(found.is_empty() || found.starts_with(b"HTTP/1.1 4"), "{found:?}");
    end.send_replace(true);
    running.join().unwrap();
    let (address, end, running) = server(limits.http2(true));
    let silent = TcpStream::connect(&address).unwrap();
    // Connections are accepted in their order, so the silent one is open when this one is answered.
    let request = b"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert!(exchange(&address, request).0.starts_with(b"HTTP/1.1 404"));
    let begun = Instant::now();
    end.send_replace(true);
    running.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    drop(silent);
}
