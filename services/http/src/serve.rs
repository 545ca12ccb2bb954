//! Accepting connections, up to a limit.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// How long a connection may take to send the head of its next request.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// How long nothing is accepted after that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// How long answers that are on their way may take when a service stops.
const GRACE: Duration = Duration::from_secs(5);

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

/// Accepts connections until `end` is true. At most `connections` are open, each for at most `life`, whatever it does, since
/// others may wait for its place; one that does not send the head of a request for 30 seconds is closed.
pub async fn accept(
    router: Router,
    listener: TcpListener,
    connections: usize,
    life: Duration,
    mut end: watch::Receiver<bool>,
) -> Open {
    let open = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(connections.max(1)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(MAX_SILENCE);
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
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), answer));
        tokio::spawn(async move {
            let _held = held;
            match tokio::time::timeout(life, connection).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a connection ended"),
                Err(_) => tracing::debug!("a connection was open for long enough"),
            }
        });
    }
}
