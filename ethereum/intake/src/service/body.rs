//! Bodies of requests: received up to a limit, counted while they come, and expanded.

use super::{Service, TURN, blocking};
use crate::problem::{self, kind};
use crate::received::Received;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use futures_util::StreamExt;
use hekaton_service::{Held, Problem, Room, is_late};
use std::io::Read;
use tokio::sync::OwnedSemaphorePermit;

/// The encoding of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    Plain,
    Gzip,
}

/// Reads `Content-Encoding` (RFC 9110, 8.4): names are case-insensitive, and `identity` means none.
fn coding(headers: &HeaderMap) -> Result<Coding, Problem> {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let texts = values.map(|value| value.to_str().unwrap_or("?"));
    let names = texts.flat_map(|text| text.split(',')).map(str::trim);
    let mut found = Coding::Plain;
    for name in names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity")) {
        // Both names mean the same (RFC 9110, 8.4.1.3). Twice gzip is refused: each layer would multiply what a body expands to.
        let is_gzip = ["gzip", "x-gzip"].iter().any(|gzip| name.eq_ignore_ascii_case(gzip));
        if !is_gzip || found == Coding::Gzip {
            let why = format!("the content encoding '{name}' is not gzip, or not the only one");
            return Err(Problem::new(kind::MEDIA_TYPE, why).with("accept-encoding", "gzip"));
        }
        found = Coding::Gzip;
    }
    Ok(found)
}

/// A body that has arrived, with the memory that it is counted in.
pub(super) struct Arrived {
    bytes: Received,
    held: Held,
}

/// Receives a body in its encoding, which must not be too large, whatever its headers say. Its memory is counted as it arrives,
/// so a slow body does not keep others waiting; the connection limits how slow it may be.
pub(super) async fn receive(
    room: &Room,
    headers: &HeaderMap,
    body: Body,
    limit: u64,
) -> Result<Arrived, Problem> {
    // Without a length, or with one that the server would have refused, nothing is announced.
    let length = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let announced: u64 = length.and_then(|text| text.parse().ok()).unwrap_or(0);
    if announced > limit {
        return Err(problem::too_large(limit));
    }
    let mut held = room.begin();
    let mut bytes = Received::with_room(usize::try_from(announced).unwrap_or(0));
    let mut stream = body.into_data_stream();
    while let Some(part) = stream.next().await {
        let data = part.map_err(|error| match is_late(&error) {
            true => Problem::new(kind::LATE, error),
            false => Problem::new(kind::INVALID_REQUEST, format!("the body: {error}")),
        })?;
        let length = bytes.len() + data.len();
        if length as u64 > limit {
            return Err(problem::too_large(limit));
        }
        if !held.grow(length, TURN).await {
            return Err(problem::busy());
        }
        bytes.push(&data);
    }
    Ok(Arrived { bytes, held })
}

/// A body, with its permit to be processed.
pub(super) struct Load {
    pub(super) bytes: Received,
    _held: Held,
    _turn: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Arrived {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Service {
    /// Receives a body, waits for a permit to process it, and expands it.
    pub(super) async fn body(
        &self,
        headers: &HeaderMap,
        body: Body,
        limit: u64,
    ) -> Result<Load, Problem> {
        let coding = coding(headers)?;
        let Arrived { bytes, held } = receive(&self.memory, headers, body, limit).await?;
        let turn = Self::turn(&self.room).await?;
        let bytes = match coding {
            Coding::Plain => bytes,
            Coding::Gzip => blocking(move || Ok(expand(&bytes, limit)?.into())).await?,
        };
        Ok(Load { bytes, _held: held, _turn: turn })
    }
}

/// Expands a body, up to a limit.
fn expand(bytes: &[u8], limit: u64) -> Result<Vec<u8>, Problem> {
    let mut expanded = Vec::new();
    // Reads one byte more than allowed, to tell a body that is too large from one that just fits. A few kB may expand to gigabytes.
    let mut decoder = flate2::read::MultiGzDecoder::new(bytes).take(limit + 1);
    decoder.read_to_end(&mut expanded).map_err(|error| {
        let why = format!("the body is not gzip: {error}");
        Problem::new(kind::INVALID_REQUEST, why)
    })?;
    match expanded.len() as u64 > limit {
        true => Err(problem::too_large(limit)),
        false => Ok(expanded),
    }
}
