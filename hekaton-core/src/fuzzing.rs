//! Entry points for fuzzing: parsers that are not part of the API. May change at any time.

use crate::distributed::fuzzing;
use crate::keys::{AggregationKey, FamilyKey, KeyFileError, Sections, inspect_sections};
use crate::mirage::ProvingKey;
use crate::verifier::proof;
use std::ops::Range;
use std::path::Path;

/// Returns the byte range of each field of a proof with `rounds` GIPA rounds; a field has 48, 96 or
/// 192 bytes.
pub fn fields(rounds: usize) -> Vec<Range<usize>> {
    proof::ranges(rounds)
}

/// Opens a key file of either kind, whatever its digest, and builds the key.
///
/// # Errors
/// See [`KeyFileError`].
pub fn key_file(path: &Path) -> Result<(), KeyFileError> {
    let (kind, digest, sections) = inspect_sections(path)?;
    if kind == AggregationKey::KIND {
        let st = sections.iter().find(|section| section.name == "st");
        let bytes = st.and_then(|section| usize::try_from(section.bytes).ok());
        let instances = bytes.map_or(1, |bytes| bytes / 96).max(1);
        AggregationKey::new(Sections::open(path, AggregationKey::KIND, digest)?, instances, 2)
            .map(drop)
    } else {
        ProvingKey::new("fuzzed", Sections::open(path, ProvingKey::KIND, digest)?).map(drop)
    }
}

/// Opens a family key, whatever its digest.
///
/// # Errors
/// See [`KeyFileError`].
pub fn family_key(path: &Path) -> Result<FamilyKey, KeyFileError> {
    let (_, digest, _) = inspect_sections(path)?;
    FamilyKey::new(Sections::open(path, FamilyKey::KIND, digest)?)
}

/// Returns a valid message, or its content, of each kind that ranks exchange.
pub fn good_rank_messages() -> Vec<Vec<u8>> {
    fuzzing::good()
}

/// Decodes bytes as each message that ranks exchange; panics when a value has two encodings.
pub fn rank_message(bytes: &[u8]) {
    fuzzing::decode(bytes);
}
