//! Codec B: `POST /engine/v1/payloads/witness` of execution-apis 793 (merged) and 885 (open, so this may change), SSZ both ways.
//! Optional fields are lists of at most one element.

use super::{Answer, Status, Witness, status};
use crate::payload::{MAX_ENVELOPE, MAX_TRANSACTIONS};
use crate::ssz::{Field, OFFSET, Part, SszError, Writer, write_items};
use crate::values::cut;
use std::borrow::Cow;

pub use crate::payload::Envelope;

/// The path of the request.
pub const PATH: &str = "/engine/v1/payloads/witness";

/// The path at which a node reports its capabilities.
pub const CAPABILITIES: &str = "/engine/v1/capabilities";

/// The path at which a node reports its identity.
pub const IDENTITY: &str = "/engine/v1/identity";

/// The header that names the fork whose containers the request has.
pub const VERSION: &str = "eth-execution-version";

/// The only fork whose payloads are supported.
pub const FORK: &str = "amsterdam";

/// The version of this codec: of the pull requests it follows, as of September 2026.
pub const REVISION: u32 = 1;

/// The longest error, in bytes (`MAX_ERROR_BYTES`).
pub const MAX_ERROR: usize = 1_024;

/// The largest request, in bytes (`payload.max_bytes`).
pub const MAX_REQUEST: usize = MAX_ENVELOPE;

/// The bytes of an uncompressed public key.
pub const PUBLIC_KEY: usize = 65;

/// Reads an answer.
///
/// # Errors
/// Where it is not one; if VALID comes without a witness, or another status with one.
pub fn decode(bytes: &[u8]) -> Result<Answer<'_>, SszError> {
    let message = Part::message(bytes, "PayloadStatusWithWitness");
    let fields = ["payload_status", "witness", "public_keys"].map(Field::Variable);
    let [payload_status, found, keys] = message.container(fields)?;
    let [state, hash, error] = payload_status.container([
        Field::Fixed("status", 1),
        Field::Variable("latest_valid_hash"),
        Field::Variable("validation_error"),
    ])?;
    let status = status(state, 4)?;
    let hash_bytes = hash.elements(32, 1)?;
    let latest_valid_hash = hash_bytes.try_into().ok();
    let validation_error = error.at_most_one()?.map(|error| error.text(MAX_ERROR)).transpose()?;
    let witness = found.at_most_one()?.map(Witness::read).transpose()?;
    let public_keys = keys.elements(PUBLIC_KEY, MAX_TRANSACTIONS)?;
    match (status, &witness) {
        (Status::Valid, None) => Err(found.error("the status is VALID, and there is no witness")),
        (Status::Valid, Some(_)) => Ok(()),
        (_, Some(_)) => {
            Err(found.error(format!("the status is {}, and there is a witness", status.name())))
        }
        (_, None) if !public_keys.is_empty() => {
            Err(keys.error(format!("the status is {}, and there are keys", status.name())))
        }
        (_, None) => Ok(()),
    }?;
    Ok(Answer { status, latest_valid_hash, validation_error, witness, public_keys })
}

/// Encodes an answer. Longer errors are cut between two characters; a witness and keys are only sent with VALID.
pub fn encode(answer: &Answer<'_>) -> Vec<u8> {
    pieces(answer).concat()
}

/// Encodes an answer in pieces, so that a large witness need not be copied.
pub fn pieces<'a>(answer: &Answer<'a>) -> Vec<Cow<'a, [u8]>> {
    let valid = answer.status == Status::Valid;
    let witness = answer.witness.filter(|_| valid);
    // This codec has no number for this status, which is INVALID here.
    let status = match answer.status {
        Status::InvalidBlockHash => Status::Invalid,
        other => other,
    };
    let hash: &[u8] = answer.latest_valid_hash.as_ref().map_or(&[], |hash| &hash[..]);
    let error = answer.validation_error.map(|error| cut(error, MAX_ERROR).as_bytes());
    let says = Writer::new(Vec::new(), 1 + 2 * OFFSET).fixed(&[status.number()]).offset().offset();
    let says = says.variable(|bytes| [&bytes, hash].concat());
    let says = says.variable(|bytes| write_items(bytes, error.into_iter())).end();
    // A list of one witness begins with its offset.
    let list = witness.map_or(0, |witness| OFFSET + witness.encoded_len());
    let ends = [0, says.len(), says.len() + list].map(|end| 3 * OFFSET + end);
    let offsets = ends.iter().flat_map(|end| u32::try_from(*end).unwrap_or(u32::MAX).to_le_bytes());
    let mut head: Vec<u8> = offsets.chain(says).collect();
    if witness.is_some() {
        head.extend([4, 0, 0, 0]);
    }
    let mut pieces = vec![Cow::Owned(head)];
    pieces.extend(witness.iter().flat_map(Witness::parts));
    pieces.push(Cow::Borrowed(if valid { answer.public_keys } else { &[] }));
    pieces
}
