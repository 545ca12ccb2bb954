//! Serving until it is asked to stop.

use crate::routes::router;
use crate::service::Service;
use hekaton_directory_server::Prover;
use hekaton_directory_server::Server;
use hekaton_directory_server::Stop;
use hekaton_service::Limits;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// The maximum time that a connection may be open, whatever it does: others may wait for its place.
const MAX_LIFE: Duration = Duration::from_secs(300);

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
        // tokio requires this; a blocking listener would stop a thread of the runtime.
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
    let connections = service.options.max_connections;
    let answers =
        hekaton_service::accept(router(service), listener, Limits::new(connections, MAX_LIFE), end);
    let answers = tokio::spawn(answers);
    let drained = {
        let (stop, server) = (stop.clone(), Arc::clone(&service.server));
        // While the last updates become visible, look-ups are answered.
        let drained = tokio::task::spawn_blocking(move || drain(&server, &stop));
        drained.await.map_err(std::io::Error::other)
    };
    ended.send_replace(true);
    let open = answers.await.map_err(std::io::Error::other)?;
    open.close().await;
    // Only here, so that the connections are closed even if the directory has failed.
    drained?
}

/// Waits for the wish to stop, and ends the directory.
fn drain(server: &Server, stop: &Stop) -> std::io::Result<()> {
    while !stop.wait(Duration::from_secs(1)) {
        // A directory that has failed for good must not leave the service waiting for a signal.
        if let Err(hekaton_directory_server::Error::Stopped(_)) = server.view() {
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
