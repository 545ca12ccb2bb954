//! The check that all points of some sections are in the subgroup (spec: ceremony#verification).

use crate::check::{CeremonyError, Check, require};
use crate::random::VerifierRandomness;
use crate::sections::{Section, Visit};
use hekaton_arith::{G1Point, G2Point, Group, SubgroupCheck};
use rayon::prelude::*;

/// The check that all points of a sequence are in the subgroup, with an error of 2^-128: 16 rounds, each with a stream of
/// its own, in parallel. A few points are checked one by one, which takes less.
#[derive(Debug)]
struct Membership<G> {
    /// All points, while they are few.
    few: Vec<G>,
    rounds: Vec<(SubgroupCheck<G>, VerifierRandomness)>,
}

impl<G: Group> Membership<G> {
    const ROUNDS: usize = 16;
    /// The number of buckets of all rounds, each of which is checked like a point.
    const FEW: usize = Self::ROUNDS << 8;

    fn new(random: &mut VerifierRandomness) -> Self {
        let rounds = (0..Self::ROUNDS).map(|_| (SubgroupCheck::new(), random.fork())).collect();
        Self { few: Vec::new(), rounds }
    }

    fn take(&mut self, points: &[G]) {
        self.few.extend_from_slice(points);
        if self.few.len() > Self::FEW {
            let points = std::mem::take(&mut self.few);
            self.rounds.par_iter_mut().for_each(|(check, random)| {
                check.take(&points, &mut || random.next_u64());
            });
        }
    }

    fn passes(&self) -> bool {
        self.few.par_iter().all(Group::is_in_group)
            && self.rounds.par_iter().all(|(check, _)| check.passes())
    }
}

/// The check of all sections of a transcript or a contribution at once: many small sections take as long as one section of
/// their total length.
#[derive(Debug)]
pub(crate) struct Members {
    g1: Membership<G1Point>,
    g2: Membership<G2Point>,
    sections: Vec<Section>,
}

impl Members {
    pub(crate) fn new() -> Result<Self, CeremonyError> {
        let mut random = VerifierRandomness::new()?;
        let (g1, g2) = (Membership::new(&mut random), Membership::new(&mut random));
        Ok(Self { g1, g2, sections: Vec::new() })
    }

    /// Begins a section, whose points follow.
    pub(crate) fn begin(&mut self, section: &Section) {
        self.sections.push(section.clone());
    }

    pub(crate) fn take_g1(&mut self, points: &[G1Point]) {
        self.g1.take(points);
    }

    pub(crate) fn take_g2(&mut self, points: &[G2Point]) {
        self.g2.take(points);
    }

    /// Checks all points that were taken. If one is outside, reads the sections again to name it.
    pub(crate) fn finish(&self) -> Result<(), CeremonyError> {
        if self.g1.passes() && self.g2.passes() {
            return Ok(());
        }
        let mut found = "all sections".to_owned();
        for section in &self.sections {
            let mut search = Search { random: VerifierRandomness::new()?, found: None };
            section.visit(&mut search)?;
            if let Some((vector, at)) = search.found {
                found = section.place(vector, at);
                break;
            }
        }
        Ok(require(false, Check::Subgroup, || found)?)
    }
}

/// Looks for the first point outside.
struct Search {
    random: VerifierRandomness,
    found: Option<(usize, usize)>,
}

impl Search {
    fn look<G: Group>(&mut self, vector: usize, start: usize, points: &[G]) {
        if self.found.is_none() {
            let at = G::find_outside(points, &mut || self.random.next_u64());
            self.found = at.map(|at| (vector, start + at));
        }
    }
}

impl Visit for Search {
    fn g1(&mut self, vector: usize, start: usize, points: &[G1Point]) -> Result<(), CeremonyError> {
        self.look(vector, start, points);
        Ok(())
    }

    fn g2(&mut self, vector: usize, start: usize, points: &[G2Point]) -> Result<(), CeremonyError> {
        self.look(vector, start, points);
        Ok(())
    }
}
