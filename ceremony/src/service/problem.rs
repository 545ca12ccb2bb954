//! The kinds of problems that the service answers with.

use super::queue::NoSlot;
use hekaton_service::{Problem, ProblemKind};

/// Declares the kinds of problems.
macro_rules! kinds {
    ($($name:ident = $status:literal, $uri:literal, $title:literal $(, after $seconds:literal)?;)*) => {
        $(pub(crate) const $name: ProblemKind =
            ProblemKind::new($status, concat!("urn:hekaton:ceremony:", $uri), $title)$(.retry_after($seconds))?;)*
    };
}

kinds! {
    BAD_REQUEST = 400, "bad-request", "The request cannot be understood";
    INVITATION = 403, "invitation", "This contributor is not invited";
    ORIGIN = 403, "origin", "Pages cannot contribute";
    NOT_FOUND = 404, "not-found", "There is no such thing";
    METHOD = 405, "method", "The path has no such method";
    TIMEOUT = 408, "timeout", "The request came too slowly", after 1;
    CONFLICT = 409, "conflict", "The piece does not fit the upload";
    IN_USE = 409, "in-use", "The invitation is in use";
    FINISHED = 409, "finished", "The ceremony is finished";
    DAMAGED = 422, "damaged", "The upload is not what was sent";
    TOO_LARGE = 413, "too-large", "The request is too large";
    FULL = 429, "full", "The queue is full", after 60;
    BUSY = 503, "busy", "The service is working on this upload", after 1;
    UNAVAILABLE = 503, "unavailable", "The service cannot do that now", after 10;
}

impl From<NoSlot> for Problem {
    fn from(why: NoSlot) -> Self {
        let kind = match why {
            NoSlot::Bad(_) => BAD_REQUEST,
            NoSlot::NotInvited(_) => INVITATION,
            NoSlot::InUse(_) => IN_USE,
            NoSlot::Full => FULL,
        };
        Self::new(kind, why)
    }
}
