//! `POST /new-payload-with-witness` of execution-apis 773, with the parameters of `engine_newPayloadV5` as JSON and an answer in
//! SSZ. Optional fields are unions with an empty option; the witness is nested as bytes.

use super::{Answer, Status, status};
use crate::values::cut;
use hekaton_witness_format::ExecutionWitness;
use hekaton_witness_format::ssz::{Field, OFFSET, Part, SszError, Writer};
use std::borrow::Cow;

/// The path of the request.
pub const PATH: &str = "/new-payload-with-witness";

/// The name in `engine_exchangeCapabilities`.
pub const CAPABILITY: &str = "rest_engine_newPayloadWithWitness";

/// The longest error, in bytes (`VALIDATION_ERROR_MAX`).
pub const MAX_ERROR: usize = 8_192;

/// The largest witness, in bytes (`MAX_WITNESS_BYTES`).
pub const MAX_WITNESS: usize = 1 << 30;

/// Reads an answer.
///
/// # Errors
/// The first fault, such as a witness with a status other than VALID.
pub fn decode(bytes: &[u8]) -> Result<Answer<'_>, SszError> {
    let message = Part::message(bytes, "NewPayloadWithWitnessResponseV1")?;
    let [state, hash, error, witness] = message.container([
        Field::Fixed("status", 1),
        Field::Variable("latest_valid_hash"),
        Field::Variable("validation_error"),
        Field::Variable("witness"),
    ])?;
    let status = status(state, 5)?;
    let latest_valid_hash = hash.union()?.map(|hash| hash.array().copied()).transpose()?;
    let validation_error = error.union()?.map(|error| error.text(MAX_ERROR)).transpose()?;
    let nested = witness.list(MAX_WITNESS)?;
    // The specification allows an empty field with VALID, and nothing else with any other status.
    if !nested.is_empty() && status != Status::Valid {
        let why = format!("a witness with status {}, expected VALID", status.name());
        return Err(witness.error(why));
    }
    let witness = (!nested.is_empty()).then(|| ExecutionWitness::read(witness)).transpose()?;
    Ok(Answer { status, latest_valid_hash, validation_error, witness, public_keys: &[] })
}

/// Encodes an answer. Longer errors are cut between two characters; a witness is only sent with VALID.
pub fn encode(answer: &Answer<'_>) -> Vec<u8> {
    pieces(answer).concat()
}

/// Encodes an answer in pieces, so that a large witness need not be copied.
pub fn pieces<'a>(answer: &Answer<'a>) -> Vec<Cow<'a, [u8]>> {
    let union = |some: Option<&[u8]>| match some {
        Some(some) => [&[1], some].concat(),
        None => vec![0],
    };
    let hash = union(answer.latest_valid_hash.as_ref().map(|hash| &hash[..]));
    // Longer errors must not cost the answer: they are cut to what the type allows.
    let error = union(answer.validation_error.map(|error| cut(error, MAX_ERROR).as_bytes()));
    let head = Writer::new(Vec::new(), 1 + 3 * OFFSET)
        .fixed(&[answer.status.number()])
        .offset()
        .offset()
        .offset()
        .variable(|bytes| [bytes, hash].concat())
        .variable(|bytes| [bytes, error].concat())
        .variable(|bytes| bytes)
        .end();
    let witness = answer.witness.filter(|_| answer.status == Status::Valid);
    // Nested as bytes, so the list has no offset of its own.
    let mut pieces = vec![Cow::Owned(head)];
    pieces.extend(witness.iter().flat_map(ExecutionWitness::parts));
    pieces
}
