//! Tests of the server.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

mod answers;
mod bad_input;
mod disk;
mod faults;
mod heartbeats;
mod kills;
mod logs;
mod modes;
mod proofs;
mod restores;
mod room;
mod schedules;

use super::compute::Tiling;
use super::{Error, Mode, Opener, Options, Outcome, Server, Status, Table, Update, View};
use ed25519_dalek::SigningKey;
use hekaton_directory::{Index, Leaf, Parameters, Profile};
use std::path::Path;

/// Returns the factor by which tests are longer with `HEKATON_DIRECTORY_SOAK` (`scripts/soak-directory`).
pub(crate) fn soak() -> usize {
    std::env::var("HEKATON_DIRECTORY_SOAK").map_or(1, |factor| factor.parse().unwrap())
}

/// Small tiles, so that there are some of each kind.
pub(crate) const TILING: Tiling =
    Tiling { levels: 4, resident: 4, has_witness: true, max_steps: usize::MAX };

pub(crate) fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

pub(crate) fn parameters(profile: Profile) -> Parameters {
    Parameters { profile, server: key().verifying_key(), proofs: [9; 32] }
}

/// Epochs are closed when they have four updates, or on demand.
pub(crate) fn options(mode: Mode) -> Options {
    Options {
        max_updates: 4,
        interval: None,
        mode,
        threads: 1,
        cache: 1 << 20,
        ..Options::default()
    }
}

/// A new directory in a folder.
pub(crate) fn create(folder: &Path, profile: Profile) {
    Server::create_in(folder, &parameters(profile), &key(), 4, database(folder)).unwrap();
}

/// The database of a folder.
pub(crate) fn database(folder: &Path) -> Box<Opener> {
    super::fjall_opener(folder, 1 << 20)
}

pub(crate) fn try_open(
    folder: &Path,
    parameters: &Parameters,
    key: &SigningKey,
    options: Options,
) -> Result<Server, Error> {
    Server::open_in(folder, parameters, key, options, database(folder))
}

pub(crate) fn open(folder: &Path, profile: Profile, options: Options) -> Server {
    try_open(folder, &parameters(profile), &key(), options).unwrap()
}

pub(crate) fn outcome(server: &Server, number: u64) -> Outcome {
    match server.outcome(number).unwrap() {
        Status::Done(outcome) => outcome,
        other => panic!("update {number}: {other:?}"),
    }
}

/// Submits updates and waits until they are visible.
pub(crate) fn update(server: &Server, updates: &[(&str, &str)]) {
    for (label, value) in updates {
        server.submit(Update::new(*label, *value)).unwrap();
    }
    server.flush().unwrap();
}

/// Returns what a client learns about a label, from the answers alone and with all of their checks: the leaf, and its
/// values.
pub(crate) fn client(
    parameters: &Parameters,
    view: &View,
    label: &[u8],
) -> Option<(Leaf, Vec<String>)> {
    let checked = view.signed().verify(parameters).unwrap();
    let index = Index::of(label).unwrap();
    let answer = view.look_up(label).unwrap();
    let leaf = checked.look_up(&index, &answer.path).unwrap()?;
    let current = answer.current.unwrap();
    current.verify(label, &leaf).unwrap();
    let (path, history) = view.history(label, usize::MAX).unwrap();
    assert_eq!(checked.look_up(&index, &path).unwrap(), Some(leaf));
    history.verify(label, &leaf).unwrap();
    let values: Vec<String> = history
        .0
        .into_iter()
        .map(|entry| match entry {
            hekaton_directory::Entry::Value(opening) => String::from_utf8(opening.value).unwrap(),
            hekaton_directory::Entry::Erased(_) => "erased".into(),
        })
        .collect();
    assert_eq!(values.last().unwrap().as_bytes(), current.opening.value);
    Some((leaf, values))
}

/// Small random numbers, the same in every run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
