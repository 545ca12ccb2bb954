//! `POST /engine/v1/payloads/witness` of execution-apis 793 (merged) and 885 (open, so this may change), SSZ both ways.
//! Optional fields are lists of at most one element.

use super::{Answer, Status, status};
use crate::values::cut;
use hekaton_witness_format::ssz::{Field, OFFSET, Part, SszError, Writer, write_items};
use hekaton_witness_format::{ExecutionWitness, MAX_ENVELOPE, MAX_TRANSACTIONS, PUBLIC_KEY};
use std::borrow::Cow;

/// The path of the request.
pub const PATH: &str = "/engine/v1/payloads/witness";

/// The path at which a node reports its capabilities.
pub const CAPABILITIES: &str = "/engine/v1/capabilities";

/// The path at which a node reports its identity.
pub const IDENTITY: &str = "/engine/v1/identity";

/// The header that names the fork whose containers the request has.
pub const VERSION: &str = "eth-execution-version";

/// The fork whose blocks are requested. Witnesses are specified from it on, and those before it cannot all be told apart.
pub const FORK: &str = "amsterdam";

/// The version of this codec: of the pull requests it follows, as of September 2026.
pub const REVISION: u32 = 1;

/// The longest error, in bytes (`MAX_ERROR_BYTES`).
pub const MAX_ERROR: usize = 1_024;

/// The largest request, in bytes (`payload.max_bytes`).
pub const MAX_REQUEST: usize = MAX_ENVELOPE;

/// Reads an answer.
///
/// # Errors
/// The first fault, such as VALID without a witness, or another status with one.
pub fn decode(bytes: &[u8]) -> Result<Answer<'_>, SszError> {
    let message = Part::message(bytes, "PayloadStatusWithWitness")?;
    let fields = ["payload_status", "witness", "public_keys"].map(Field::Variable);
    let [payload_status, found, keys] = message.container(fields)?;
    let [state, hash, error] = payload_status.container([
        Field::Fixed("status", 1),
        Field::Variable("latest_valid_hash"),
        Field::Variable("validation_error"),
    ])?;
    let status = status(state, 4)?;
    // None or one of them, which the list's limit says.
    let latest_valid_hash = hash.elements(32, 1)?.first_chunk().copied();
    let validation_error = error.at_most_one()?.map(|error| error.text(MAX_ERROR)).transpose()?;
    let witness = found.at_most_one()?.map(ExecutionWitness::read).transpose()?;
    let public_keys = keys.elements(PUBLIC_KEY, MAX_TRANSACTIONS)?;
    let with = |what: &str| format!("{what} with status {}, expected VALID", status.name());
    match (status, &witness) {
        (Status::Valid, None) => Err(found.error("no witness with status VALID")),
        (Status::Valid, Some(_)) => Ok(()),
        (_, Some(_)) => Err(found.error(with("a witness"))),
        (_, None) if !public_keys.is_empty() => Err(keys.error(with("public keys"))),
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
    let payload_status = Writer::new(Vec::new(), 1 + 2 * OFFSET)
        .fixed(&[status.number()])
        .offset()
        .offset()
        .variable(|bytes| [&bytes, hash].concat())
        .variable(|bytes| write_items(bytes, error.into_iter()))
        .end();
    let list = witness.map_or(0, |witness| OFFSET + witness.encoded_len());
    let (fixed, status_length) = (3 * OFFSET, payload_status.len());
    let fields = Writer::new(Vec::new(), fixed)
        .offset_to(fixed)
        .offset_to(fixed + status_length)
        .offset_to(fixed + status_length + list)
        .fixed(&payload_status);
    // A list of one witness begins with its offset.
    let head = if witness.is_some() { fields.offset_to(OFFSET) } else { fields };
    let mut pieces = vec![Cow::Owned(head.end())];
    pieces.extend(witness.iter().flat_map(ExecutionWitness::parts));
    pieces.push(Cow::Borrowed(if valid { answer.public_keys } else { &[] }));
    pieces
}
