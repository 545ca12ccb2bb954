//! Opening a directory: everything above the head is removed, and what is left of commits up to it is finished.

use super::compute::load;
use super::damaged::Damaged;
use super::error::Error;
use super::folder::Directory;
use super::head::Head;
use super::rows::{self, Decode, Format, LAST, Written};
use super::store::{Rows, Store, Table};
use super::time::fail_point;
use super::update::{Accepted, Outcome};
use ed25519_dalek::SigningKey;
use hekaton_directory::{
    DecodeError, Digest, Parameters, Profile, Reader, Record, SignedRecord, Tree,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

/// Updates whose intake rows are removed at once.
const CHUNK: usize = 4096;

/// The state of a directory as its database has it.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) format: Format,
    pub(crate) signed: SignedRecord,
    pub(crate) record: Record,
    pub(crate) tree: Tree,
    /// Accepted updates without an outcome, in their order.
    pub(crate) pending: Vec<Accepted>,
    /// The number of the next update.
    pub(crate) next: u64,
}

impl Decode for Record {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::read(reader)
    }
}

impl Decode for [u8; 64] {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.array("signature")
    }
}

/// The rows of a new directory.
pub(crate) fn first_rows(parameters: &Parameters, levels: u8, now: u64, key: &SigningKey) -> Rows {
    let record = Record::first(parameters, now);
    let format = format(parameters, levels, (0, 0));
    let tree = Tree::new(parameters.profile);
    let mut rows = Rows::default();
    rows.put(Table::Format, rows::FORMAT, format.encode());
    for (place, tile) in tree.tiles(&[], usize::from(levels)) {
        rows.put(Table::Node, rows::at_epoch(&place.encode(), 0), tile);
    }
    rows.put(Table::Epoch, 0u32.to_be_bytes(), record.encode());
    rows.put(Table::Signature, 0u32.to_be_bytes(), record.sign(key).signature());
    rows
}

fn format(parameters: &Parameters, levels: u8, (pruned, next): (u32, u64)) -> Format {
    let Parameters { profile, server, proofs } = *parameters;
    let (digest, server_key) = (parameters.digest(), server.to_bytes());
    Format {
        parameters: digest,
        profile: profile.number(),
        server: server_key,
        proofs,
        levels,
        pruned,
        next,
    }
}

/// The record that was signed last, as a database has it.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) format: Format,
    pub(crate) signed: SignedRecord,
    pub(crate) record: Record,
}

impl Standing {
    /// Checks that a database has all that a head names, and is not ahead of it.
    pub(crate) fn of(
        store: &dyn Store,
        head: Head,
        parameters: &Parameters,
    ) -> Result<Self, Error> {
        let format = format_of(store)?;
        check_format(&format, parameters)?;
        let record = record_of(store, head.epoch, head.record)?;
        let behind = || Error::Behind { epoch: head.epoch, signed: head.record, found: None };
        // The creation of a directory is commit 0 and has no row in this table.
        if head.commit > 0 {
            let written: Option<Written> =
                rows::find(store, Table::Commit, &head.commit.to_be_bytes())?;
            written.ok_or_else(behind)?;
        }
        let signature = rows::get(store, Table::Signature, &head.epoch.to_be_bytes())?;
        let signed = SignedRecord::of(record, signature);
        // A damaged signature is found at the start, before clients reject every answer because of
        // it.
        signed.verify(parameters).map_err(|error| {
            Damaged::new(Table::Signature, &head.epoch.to_be_bytes(), error.to_string())
        })?;
        Ok(Self { format, signed, record })
    }
}

/// The description of a directory in its database, of this version.
fn format_of(store: &dyn Store) -> Result<Format, Error> {
    match store.get(Table::Format, &rows::FORMAT)?.as_deref() {
        Some([found, ..]) if *found < rows::VERSION => {
            Err(Error::OldFormat { found: *found, expected: rows::VERSION })
        }
        _ => rows::get(store, Table::Format, &rows::FORMAT),
    }
}

/// The record of an epoch, which must have this digest.
fn record_of(store: &dyn Store, epoch: u32, signed: Digest) -> Result<Record, Error> {
    let record: Option<Record> = rows::find(store, Table::Epoch, &epoch.to_be_bytes())?;
    match record {
        // By its digest, not by its number: a database with another history has a record of this
        // epoch, too.
        Some(record) if record.digest() == signed => Ok(record),
        found => {
            let digest = found.map(|record| record.digest());
            Err(Error::Behind { epoch, signed, found: digest })
        }
    }
}

/// Checks that a head is not older than one that the database knows of.
fn check_confirmed(store: &dyn Store, head: Head, path: &Path) -> Result<(), Error> {
    let confirmed: Option<Head> = rows::find(store, Table::Format, &rows::CONFIRMED)?;
    let Some(found) = confirmed else { return Ok(()) };
    if found.commit > head.commit {
        return Err(Error::OldHead {
            path: path.into(),
            head: Box::new(head),
            found: Box::new(found),
        });
    }
    // A later head may come from another copy of the directory, which never had what this database
    // has confirmed.
    record_of(store, found.epoch, found.record).map(drop)
}

/// Checks that a database has all that is known to be signed. Returns the head up to which that is: a record that somebody has seen
/// may be above the head that was found, if that one was put back, and is kept as it is.
pub(crate) fn signed_head(
    store: &dyn Store,
    head: Head,
    directory: &Directory,
) -> Result<Head, Error> {
    Standing::of(store, head, &directory.parameters)?;
    check_confirmed(store, head, &directory.heads.inner)?;
    let Some(seen) = &directory.seen else { return Ok(head) };
    let verified = seen.verify(&directory.parameters).map_err(Error::Seen)?;
    let (epoch, record) = (verified.record().epoch, verified.record().digest());
    // Even if the head is past this epoch: somebody has seen this record, and a second one must
    // never be signed.
    record_of(store, epoch, record)?;
    if epoch <= head.epoch {
        return Ok(head);
    }
    for (commit, (key, written)) in (head.commit + 1..).zip(above(store, head.commit)?) {
        // A gap: then not all of what was signed is here.
        if rows::number(Table::Commit, &key)? != commit {
            break;
        }
        if written.epoch == epoch {
            return Ok(Head { commit, epoch, record });
        }
    }
    Err(Error::Behind { epoch, signed: record, found: None })
}

/// Recovers a directory of which everything up to a head is on the disk.
pub(crate) fn recover(
    store: &dyn Store,
    head: Head,
    parameters: &Parameters,
) -> Result<Recovered, Error> {
    let Standing { format, signed, record } = Standing::of(store, head, parameters)?;
    // Not before it is certain that this is the database of the head.
    remove_above(store, head.commit)?;
    let mut settled = Rows::default();
    let (pending, after_last) = pending(store, &mut settled)?;
    // Pruning removes outcomes and the numbers with them, and no number may be given twice.
    let next = after_last.max(format.next);
    // A crash between two batches does no harm: the rows that are left have an outcome and are
    // found again.
    for rows in settled.0.chunks(CHUNK) {
        fail_point("settle");
        store.commit(Rows(rows.to_vec()))?;
    }
    let tree = Tree::away(parameters.profile, record.epoch, record.leaves, record.root);
    // The top of the tree is checked against the record.
    let tree =
        load(store, &tree, &[hekaton_directory::Index([0; 16])], usize::from(format.levels))?;
    Ok(Recovered { format, signed, record, tree, pending, next })
}

fn check_format(found: &Format, parameters: &Parameters) -> Result<(), Error> {
    let expected = format(parameters, found.levels, (found.pruned, found.next));
    if *found == expected {
        return Ok(());
    }
    // The digest covers the other fields, so one of them was changed in the row afterwards.
    if found.parameters == expected.parameters {
        let why = "its parameters have another digest than it says";
        return Err(Damaged::new(Table::Format, &rows::FORMAT, why).into());
    }
    let profile = Profile::of_number(found.profile);
    let what = if profile != Some(parameters.profile) {
        let found = profile.map_or("an unknown one", |profile| profile.name());
        format!("profile {found}, expected {}", parameters.profile.name())
    } else if found.server != expected.server {
        "the key of another server".into()
    } else {
        "another verifying key of proofs".into()
    };
    Err(Error::OtherDirectory(what))
}

/// The commits above a head, with their keys.
fn above(store: &dyn Store, head: u64) -> Result<Vec<(Vec<u8>, Written)>, Error> {
    let mut above = Vec::new();
    let mut failed = None;
    store.scan(Table::Commit, &(head + 1).to_be_bytes(), &LAST, &mut |key, value| {
        match rows::decode::<Written>(Table::Commit, key, value) {
            Ok(written) => above.push((key.to_vec(), written)),
            Err(error) => failed = Some(error),
        }
        ControlFlow::Continue(())
    })?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(above),
    }
}

/// The updates whose outcomes are of commits above a head.
pub(crate) fn unsettled(store: &dyn Store, head: u64) -> Result<BTreeSet<u64>, Error> {
    let above = above(store, head)?.into_iter();
    Ok(above.flat_map(|(_, written)| written.numbers).collect())
}

/// Removes all that commits above the head have written. Whether they are on the disk is open, and nobody has seen
/// anything of them.
fn remove_above(store: &dyn Store, head: u64) -> Result<(), Error> {
    // The last one first, so that what is left after a crash is again what is above the head.
    for (key, written) in above(store, head)?.into_iter().rev() {
        let mut rows = Rows::default();
        let epoch = written.epoch;
        for place in &written.places {
            rows.remove(Table::Node, rows::at_epoch(&place.encode(), epoch));
        }
        for place in &written.log {
            rows.remove(Table::Log, rows::at_epoch(&place.encode(), epoch));
        }
        for value in &written.values {
            rows.remove(Table::Value, *value);
        }
        for number in &written.numbers {
            rows.remove(Table::Outcome, number.to_be_bytes());
        }
        // A commit with refusals only closes no epoch. The record of epoch 0 is never removed.
        if epoch != 0 {
            rows.remove(Table::Changes, epoch.to_be_bytes());
            rows.remove(Table::Witness, epoch.to_be_bytes());
            rows.remove(Table::Epoch, epoch.to_be_bytes());
            rows.remove(Table::Signature, epoch.to_be_bytes());
        }
        rows.remove(Table::Commit, key);
        fail_point("remove-above");
        store.commit(rows)?;
    }
    Ok(())
}

/// The updates without an outcome, and the number of the next one. Those with one were settled.
fn pending(store: &dyn Store, settled: &mut Rows) -> Result<(Vec<Accepted>, u64), Error> {
    let mut rows = Vec::new();
    store.scan(Table::Intake, &[], &LAST, &mut |key, value| {
        rows.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    let mut pending = Vec::new();
    for (key, value) in rows {
        let number = rows::number(Table::Intake, &key)?;
        match rows::find::<Outcome>(store, Table::Outcome, &key)? {
            Some(_) => settled.remove(Table::Intake, key),
            None => pending.push(Accepted::decode(number, &value)?),
        }
    }
    let mut next = 0;
    // An update that is settled is only in the one table, and an update that waits is only in the
    // other.
    for table in [Table::Intake, Table::Outcome] {
        if let Some(last) = store.last(table)? {
            let following = rows::number(table, &last)?.checked_add(1);
            let after =
                following.ok_or_else(|| Damaged::new(table, &last, "it is the last number"))?;
            next = next.max(after);
        }
    }
    Ok((pending, next))
}
