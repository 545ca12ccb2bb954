//! Reconstructs the sections of a finished family from its keys, so that the keys alone suffice for the whole check
//! (spec: ceremony#trust).

use crate::check::{CeremonyError, Check, io, require};
use crate::coordinator::write_named;
use crate::family::Start;
use crate::transcript::{Transcript, fixed_path, section_path};
use hekaton_core::FamilyKey;
use hekaton_core::mirage::ProvingKey;
use std::path::Path;

/// Writes a transcript with all its sections into an empty directory: the records of a finished family, and the points of its
/// keys, which must have the digests of the last records. Its types begin at type `first` of the keys. The caller has to compare
/// what no section contains: matrices, indices and single points.
///
/// # Errors
/// If the keys are not those of the last records, or a file cannot be written.
pub fn transcript_of_keys(
    records: &Transcript,
    directory: &Path,
    family: &FamilyKey,
    types: &[ProvingKey],
    first: usize,
) -> Result<Transcript, CeremonyError> {
    records.copy_records(directory)?;
    for name in ["sections", "fixed"] {
        let path = directory.join(name);
        std::fs::create_dir(&path).map_err(io(&path))?;
    }
    let foreign = || {
        let why = "the keys have other types than their ceremony";
        CeremonyError::Foreign(why.to_owned())
    };
    let genesis = records.genesis.family().ok_or_else(foreign)?;
    let digests = records.genesis.chains().into_iter().flat_map(|chain| {
        let digests = records.last_step(chain).digests();
        digests.into_iter().map(|digests| digests.new)
    });
    let end = first + genesis.types.len();
    let own = types.get(first..end).filter(|_| family.header().types.len() == types.len());
    let own = own.ok_or_else(foreign)?.iter().zip(first..);
    for (((key, number), kind), section) in own.zip(&genesis.types).zip(digests) {
        let start = Start {
            vectors: [
                key.l_query()?.to_vec(),
                key.x_query()?.points.to_vec(),
                key.h_query()?.to_vec(),
                key.d_query()?.to_vec(),
            ],
            ic: family.ic(number)?.to_vec(),
            a: key.a_query()?.points.to_vec(),
            b: key.b_query()?.points.to_vec(),
        };
        let found = [
            write_named(directory, section_path, |out| start.write_section(out))?,
            write_named(directory, fixed_path, |out| start.write_fixed(out))?,
        ];
        let at = || format!("the keys of type '{}'", kind.name);
        require(found == [section, kind.fixed], Check::Digest, at)?;
    }
    Transcript::open(directory)
}
