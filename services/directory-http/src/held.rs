//! Large answers.

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;

/// What is handed to the connection at once: so the rest is here until it is sent.
const PART: usize = 64 << 10;

/// A body that holds a permit until it is sent, or its connection is gone.
pub(crate) struct Held {
    left: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl Held {
    pub(crate) fn new(bytes: Vec<u8>, permit: OwnedSemaphorePermit) -> Self {
        Self { left: bytes.into(), _permit: permit }
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let part = PART.min(self.left.len());
        Poll::Ready(Some(Ok(Frame::data(self.left.split_to(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}
