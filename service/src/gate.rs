//! The way of a request to the router and back.

use crate::limits::Limits;
use crate::pace::{Received, Sent};
use crate::seats::{Seat, Seats};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The paths that are answered even while all connections are in use.
// Whoever watches the service must be able to tell a busy one from one that has failed.
const VITAL: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// The maximum number of requests that wait for a regular connection. They take half of the spare ones: the others are for what is
/// vital.
pub(crate) const MAX_QUEUED: usize = crate::seats::SPARE / 2;

/// The maximum time that they wait.
const TURN: Duration = Duration::from_secs(10);

/// The state that the requests of all connections share.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) router: TowerToHyperService<Router>,
    pub(crate) limits: Limits,
    pub(crate) queue: Arc<Semaphore>,
}

/// A request that is being answered; without an answer, it ends when this is dropped.
struct Open(Option<Arc<Seat>>);

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(seat) = self.0.take() {
            seat.end(Duration::ZERO);
        }
    }
}

impl Gate {
    /// Answers a request of a connection.
    pub(crate) async fn answer(
        self,
        seats: Arc<Seats>,
        seat: Arc<Seat>,
        request: Request<Incoming>,
    ) -> Result<Response<Sent<Body>>, Infallible> {
        let mut open = Open(Some(Arc::clone(&seat)));
        seat.begin();
        let has_turn = !seat.is_spare()
            || VITAL.contains(&request.uri().path())
            || self.turn(&seats, &seat).await;
        let response = match has_turn {
            true => {
                let pace = self.limits.receiving();
                let paced = request.map(|body| Received::new(body, pace, Arc::clone(&seat)));
                self.router.call(paced).await?
            }
            false => busy(self.limits.connections),
        };
        // From here on, the body ends the request: an answer is open until it is sent.
        open.0.take();
        Ok(response.map(|body| Sent::new(body, self.limits.sending(), seat)))
    }

    /// Waits for a regular connection.
    async fn turn(&self, seats: &Seats, seat: &Seat) -> bool {
        let Ok(_queued) = self.queue.try_acquire() else { return false };
        tokio::time::timeout(TURN, seats.promote(seat)).await.is_ok()
    }
}

/// The answer to a request that found no connection.
fn busy(connections: usize) -> Response<Body> {
    let text = format!(
        "{{\"type\":\"urn:hekaton:busy\",\"title\":\"The service is busy\",\"status\":503,\"retry_after\":1,\
         \"detail\":\"all {connections} connections are in use: send the request again later\"}}"
    );
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/problem+json");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::RETRY_AFTER, HeaderValue::from(1));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
