//! Codec A: `POST /new-payload-with-witness` of execution-apis 773, with the parameters of `engine_newPayloadV5` as JSON and an
//! answer in SSZ. Optional fields are unions with an empty option; the witness is nested as bytes.

use super::{Answer, Witness, status};
use crate::ssz::{Field, OFFSET, Part, SszError, Writer};
use crate::values::cut;
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
/// Where it is not one, or has a witness with a status other than VALID.
pub fn decode(bytes: &[u8]) -> Result<Answer<'_>, SszError> {
    let message = Part::message(bytes, "NewPayloadWithWitnessResponseV1");
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
    if !nested.is_empty() && status != super::Status::Valid {
        return Err(
            witness.error(format!("the status is {}, and there is a witness", status.name()))
        );
    }
    let witness = (!nested.is_empty()).then(|| Witness::read(witness)).transpose()?;
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
    let error = union(answer.validation_error.map(|error| cut(error, MAX_ERROR).as_bytes()));
    let head = Writer::new(Vec::new(), 1 + 3 * OFFSET).fixed(&[answer.status.number()]);
    let head = head.offset().offset().offset();
    let head = head.variable(|bytes| [bytes, hash].concat());
    let head = head.variable(|bytes| [bytes, error].concat()).variable(|bytes| bytes).end();
    let witness = answer.witness.filter(|_| answer.status == super::Status::Valid);
    let mut pieces = vec![Cow::Owned(head)];
    pieces.extend(witness.iter().flat_map(Witness::parts));
    pieces
}
