//! Limits of the connections of a server.

use crate::pace::Pace;
use std::time::Duration;

/// The longest time without a request, unless something else is said.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// The least number of bytes per second of a body: what a slow line has, and what makes holding hundreds of connections expensive.
const LEAST_RATE: u32 = 16 << 10;

/// The time for the head of a request that has begun, and the grace before the rate of its body counts.
const GRACE: Duration = Duration::from_secs(10);

/// The limits of the connections of a server.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Limits {
    pub(crate) connections: usize,
    pub(crate) life: Duration,
    pub(crate) silence: Duration,
    pub(crate) rate: u32,
    pub(crate) grace: Duration,
    pub(crate) http2: bool,
}

impl Limits {
    /// Allows `connections` at a time. Each is closed after `life`, even if it is in use, so that waiting clients get their turn, and
    /// after 30 seconds without a request. The head of a request must be there 10 seconds after its first byte; bodies must come and
    /// answers must be read with 16 KiB per second. All connections speak HTTP/1.1.
    ///
    /// While all connections are in use, the one that has kept the server waiting for longest, a second at least, is closed for the
    /// next one. If none has, 32 more are taken: `/healthz`, `/readyz` and `/metrics` are answered there, and other requests wait for a
    /// moment for one of the regular connections.
    pub const fn new(connections: usize, life: Duration) -> Self {
        let (silence, rate, grace) = (MAX_SILENCE, LEAST_RATE, GRACE);
        Self { connections, life, silence, rate, grace, http2: false }
    }

    /// Sets after how long without a request a connection is closed, and how long an answer may be left unread.
    pub const fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Sets the least number of bytes per second, and the grace: the time for a head, and for the silence within a body.
    pub const fn pace(mut self, rate: u32, grace: Duration) -> Self {
        (self.rate, self.grace) = (rate, grace);
        self
    }

    /// Sets whether connections may speak HTTP/2, too: without TLS, from their first byte on (h2c with prior knowledge).
    pub const fn http2(mut self, http2: bool) -> Self {
        self.http2 = http2;
        self
    }

    /// The pace of request bodies.
    pub(crate) fn receiving(&self) -> Pace {
        Pace::new(self.rate, self.grace)
    }

    /// The pace of response bodies.
    pub(crate) fn sending(&self) -> Pace {
        Pace::new(self.rate, self.silence)
    }
}
