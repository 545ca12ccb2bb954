//! `hekaton-ceremony serve`.

use super::queue::Admission;
use super::routes::router;
use super::{Service, invitations};
use crate::options::Serve;
use hekaton_ceremony::Coordinator;
use hekaton_core::{Cancellation, LocalEngine};
use hekaton_service::Limits;
use hekaton_terminal::ceremony::failed;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::signals::Handling;
use serde_json::json;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// The most connections at a time.
const CONNECTIONS: usize = 256;
/// The longest time that a connection is open: a download continues on the next one.
const LIFE: Duration = Duration::from_secs(3600);
/// The time between two looks at deadlines and at signals.
const TICK: Duration = Duration::from_millis(500);

pub(crate) fn run(command: &Serve, json: bool) -> Result<(), Failure> {
    let admission = match &command.invitations {
        Some(path) => invitations::read(path)?,
        None => Admission::Open,
    };
    let listener = TcpListener::bind(command.listen)
        .map_err(|e| format!("--listen {}: {e}", command.listen))
        .or_fail(exit::FAILED)?;
    let address = listener.local_addr().or_fail(exit::FAILED)?;
    let coordinator = Coordinator::open(&command.ceremony).map_err(|e| failed(&e))?;
    // Nothing can be added to a transcript that is already invalid.
    coordinator.transcript.check().map_err(|e| failed(&e))?;
    let service = Arc::new(Service::new(&coordinator, admission, command.deadline)?);
    let cancellation = Cancellation::new();
    Handling {
        cancellation: Some(cancellation.clone()),
        quiet: true,
        last: Box::new(|| true),
        ended: "ended immediately: complete uploads will be checked at the next start",
        json,
    }
    .start()?;
    let engine = LocalEngine::new(command.threads.threads).or_fail(exit::FAILED)?;
    let status = service.status();
    let lines = format!(
        "serving {} at http://{address}\nceremony: {}, {}",
        status.title,
        status.ceremony,
        match (status.finished, status.invited) {
            (true, _) => "finished: for downloads only",
            (false, true) => "open to contributors with an invitation",
            (false, false) => "open to everybody",
        },
    );
    let object = json!({
        "ok": true, "address": format!("http://{address}"), "ceremony": status.ceremony,
        "finished": status.finished, "invited": status.invited,
    });
    output::result(json, &object, &lines)?;
    listener.set_nonblocking(true).or_fail(exit::FAILED)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.or_fail(exit::FAILED)?;
    std::thread::scope(|scope| {
        let judge = scope.spawn(|| engine.install(|| service.judge(coordinator)));
        let alive = || !judge.is_finished() && !cancellation.is_cancelled();
        let served = runtime.block_on(answer(&service, listener, alive));
        // Also if serving has failed.
        service.stop();
        if !judge.is_finished() && service.lock().queue.complete().next().is_some() {
            output::say(
                "stopping: complete uploads are checked first; a second signal ends the service immediately",
            );
        }
        judge
            .join()
            .map_err(|_| "the thread that checks contributions has failed")
            .or_fail(exit::FAILED)?;
        served.or_fail(exit::FAILED)
    })
}

/// Answers requests while `alive` returns `true`.
async fn answer(
    service: &Arc<Service>,
    listener: TcpListener,
    alive: impl Fn() -> bool,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (ended, end) = tokio::sync::watch::channel(false);
    let limits = Limits::new(CONNECTIONS, LIFE);
    let router = router(Arc::clone(service));
    let answers = tokio::spawn(hekaton_service::accept(router, listener, limits, end));
    while alive() {
        tokio::time::sleep(TICK).await;
        let service = Arc::clone(service);
        tokio::task::spawn_blocking(move || service.tick()).await.map_err(std::io::Error::other)?;
    }
    ended.send_replace(true);
    answers.await.map_err(std::io::Error::other)?.close().await;
    Ok(())
}
