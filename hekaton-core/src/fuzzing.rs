//! Entry points for fuzzing: parsers that are not part of the API. May change at any time.

use crate::distributed::fuzzing;
use crate::keys::{AggregationKey, KeyFileError, Sections, inspect_sections};
use crate::mirage::ProvingKey;
use crate::verifier::proof;
use std::ops::Range;
use std::path::Path;

/// The fields of a proof with `rounds` GIPA rounds: places in the file, by their kind: 48, 96 or 288 bytes.
pub fn fields(rounds: usize) -> Vec<Range<usize>> {
    proof::ranges(rounds)
}

/// Opens a key file of either kind with whatever digest it has, and builds the key.
///
/// # Errors
/// What is wrong with it.
pub fn key_file(path: &Path) -> Result<(), KeyFileError> {
    let (kind, digest, sections) = inspect_sections(path)?;
    if kind == AggregationKey::KIND {
        let st = sections.iter().find(|section| section.name == "st");
        let instances = st.map_or(1, |section| section.bytes as usize / 96).max(1);
        AggregationKey::new(Sections::open(path, AggregationKey::KIND, digest)?, instances, 2)
            .map(drop)
    } else {
        ProvingKey::new("fuzzed", Sections::open(path, ProvingKey::KIND, digest)?).map(drop)
    }
}

/// A good message of each kind that goes between ranks, or its content.
pub fn good_rank_messages() -> Vec<Vec<u8>> {
    fuzzing::good()
}

/// Decodes bytes as every message between ranks; panics when something has two encodings.
pub fn rank_message(bytes: &[u8]) {
    fuzzing::decode(bytes);
}
