//! Serving until it is asked to stop.

use crate::prover::Prover;
use crate::routes::router;
use crate::service::Service;
use crate::stop::Stop;
use hekaton_directory::server::Server;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a connection may take to send the head of its next request.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// How long a connection may be open, whatever it does: others may wait for its place.
const MAX_LIFE: Duration = Duration::from_secs(300);

/// How long nothing is accepted after that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// How long answers that are on their way may take when the service stops.
const GRACE: Duration = Duration::from_secs(5);

impl Service {
    /// Serves until it is asked to stop, and proves epochs meanwhile, if it has a prover. Returns once all updates that were
    /// accepted are visible; asked a second time, it leaves them for the next start.
    ///
    /// The connections are not encrypted: where that matters, something in front of it does that.
    ///
    /// # Errors
    /// If threads cannot be started, or the directory fails.
    pub fn run(
        self,
        listener: TcpListener,
        stop: &Stop,
        prover: Option<&dyn Prover>,
    ) -> Result<(), std::io::Error> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("directory-http")
            .enable_all()
            .build()?;
        let service = Arc::new(self);
        std::thread::scope(|scope| {
            let (proving, server) = (&service.proving, &service.server);
            if let Some(prover) = prover {
                let prove = move || proving.run(server, prover, stop);
                let thread = std::thread::Builder::new().name("directory-prover".into());
                thread.spawn_scoped(scope, prove)?;
            }
            let served = runtime.block_on(serve(&service, listener, stop));
            // Also where serving failed: the prover must end.
            stop.ask();
            served
        })
    }
}

/// Answers requests until it is asked to stop and the directory has ended.
async fn serve(service: &Arc<Service>, listener: TcpListener, stop: &Stop) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (ended, end) = tokio::sync::watch::channel(false);
    let answers = tokio::spawn(accept(Arc::clone(service), listener, end));
    let drained = {
        let (stop, server) = (stop.clone(), Arc::clone(&service.server));
        // While the last updates become visible, look-ups are answered.
        let drained = tokio::task::spawn_blocking(move || drain(&server, &stop));
        drained.await.map_err(std::io::Error::other)
    };
    ended.send_replace(true);
    let open = answers.await.map_err(std::io::Error::other)?;
    if tokio::time::timeout(GRACE, open.shutdown()).await.is_err() {
        // Somebody keeps a connection open.
        tracing::warn!("connections that were still open are closed");
    }
    drained?
}

/// Accepts connections up to the limit until the directory has ended. Returns the open ones.
async fn accept(
    service: Arc<Service>,
    listener: tokio::net::TcpListener,
    mut end: tokio::sync::watch::Receiver<bool>,
) -> GracefulShutdown {
    let (router, open) = (router(&service), GracefulShutdown::new());
    let room = Arc::new(Semaphore::new(service.options.max_connections.max(1)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(MAX_SILENCE);
    loop {
        // Each has a file, and the database needs some, too.
        let next = async {
            let held = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await, held)
        };
        let (accepted, held) = tokio::select! {
            next = next => next,
            _ = end.wait_for(|ended| *ended) => return open,
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
            match tokio::time::timeout(MAX_LIFE, connection).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a connection ended"),
                Err(_) => tracing::debug!("a connection was open for long enough"),
            }
        });
    }
}

/// Waits for the wish to stop, and ends the directory.
fn drain(server: &Server, stop: &Stop) -> std::io::Result<()> {
    while !stop.wait(Duration::from_secs(1)) {
        if let Err(hekaton_directory::server::Error::Stopped(_)) = server.view() {
            break;
        }
    }
    std::thread::scope(|scope| {
        let drained = scope.spawn(|| server.drain());
        while !drained.is_finished() {
            if stop.is_urgent() {
                // What is accepted stays where it is.
                let _ = server.close();
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        drained.join().unwrap_or(Ok(())).map_err(std::io::Error::other)
    })
}
