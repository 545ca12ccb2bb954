//! The data of a key in the places that the contract reads.

use crate::columns::Columns;
use crate::gas::{self, Sizes};
use hekaton_arith::{G1Point, G2Point, Group};
use hekaton_core::verifier::DirectKey;
use hekaton_core::verifier::direct::encoding::{put_point, put_scalar};
use std::collections::HashMap;

/// The data of a key, as the template reads it.
pub(crate) struct Data {
    wires: Vec<u8>,
    types: Vec<u8>,
    instances: Vec<u8>,
    slots: Vec<u8>,
    /// The points alpha and K, then those of S.
    g1: Vec<G1Point>,
    /// The negated points beta, gamma, delta and eta of each type, Theta.
    pub(crate) g2: Vec<G2Point>,
    thetas: usize,
}

/// Points with their numbers, equal ones once.
#[derive(Default)]
struct Distinct {
    points: Vec<G1Point>,
    numbers: HashMap<Vec<u8>, u16>,
}

impl Distinct {
    /// The number of a point.
    fn number(&mut self, point: &G1Point) -> u16 {
        let next = u16::try_from(self.points.len()).expect("at_least bounds the instances");
        *self.numbers.entry(point.to_compressed()).or_insert_with(|| {
            self.points.push(*point);
            next
        })
    }

    /// The number of the first of some points that follow each other.
    fn list(&mut self, points: &[G1Point]) -> u16 {
        let next = u16::try_from(self.points.len()).expect("fewer columns than points");
        self.points.extend(points);
        next
    }
}

/// The bytes of an access: address u64, multiplicity i64.
fn access(address: u64, multiplicity: i64) -> [u8; 16] {
    let mut out = [0; 16];
    out[..8].copy_from_slice(&address.to_be_bytes());
    out[8..].copy_from_slice(&multiplicity.to_be_bytes());
    out
}

impl Data {
    pub(crate) fn new(key: &DirectKey, columns: Option<&Columns>) -> Self {
        let vk = key.verifying();
        let mut wires = Vec::new();
        let word = |address, multiplicity| [[0; 16], access(address, multiplicity)].concat();
        vk.public.iter().for_each(|wire| wires.extend(word(wire.address, wire.multiplicity)));
        vk.constants.iter().for_each(|wire| wires.extend(word(wire.address, wire.multiplicity)));
        vk.constants.iter().for_each(|wire| put_scalar(&mut wires, &wire.value));

        let mut distinct = Distinct::default();
        let (beta, gamma) = (key.beta_and_gamma()[0], key.beta_and_gamma()[1]);
        let mut g2 = vec![beta.neg(), gamma.neg()];
        let mut thetas: Vec<G2Point> = Vec::new();
        // The columns of the types that take them, by their first point.
        let mut of_columns = Vec::new();
        let mut types = Vec::new();
        for (kind, of_type) in key.types().iter().enumerate() {
            let [delta, eta, theta] = of_type.elements;
            g2.extend([delta.neg(), eta.neg()]);
            let at = thetas.iter().position(|other| *other == theta).unwrap_or_else(|| {
                thetas.push(theta);
                thetas.len() - 1
            });
            let chosen = columns.and_then(|columns| columns.types[kind].as_deref());
            let chosen =
                chosen.filter(|points| points.len() > 1 && by_columns(key, kind, points.len()));
            let first = chosen.map(|points| distinct.list(points));
            let slots = chosen.map_or(0, |points| points.len() / 2);
            let sg = distinct.number(&of_type.sg);
            let tags = of_type.st.map_or(0, |point| distinct.number(&point));
            for number in [usize::from(sg), usize::from(tags), at, slots, 0, 0, 0, 0] {
                let number = u16::try_from(number).expect("small numbers");
                types.extend_from_slice(&number.to_be_bytes());
            }
            of_columns.push(first);
        }
        g2.extend(thetas.iter().map(Group::neg));

        let (mut instances, mut slots) = (Vec::new(), Vec::new());
        for (i, (kind, part)) in key.type_of().iter().zip(key.parts()).enumerate() {
            let [st, sb] = match (of_columns[*kind as usize], columns) {
                (Some(first), Some(columns)) => {
                    for slot in &columns.slots[i] {
                        slots.extend(access(slot.address, slot.multiplicity));
                    }
                    [first, first + 1]
                }
                _ => [distinct.number(&part.st), distinct.number(&part.sb)],
            };
            let sv = part.sv.map_or(0, |point| distinct.number(&point));
            let kind = u16::try_from(*kind).expect("fewer types than instances");
            [kind, st, sb, sv].iter().for_each(|n| instances.extend_from_slice(&n.to_be_bytes()));
        }
        let g1 = [&[*key.alpha(), vk.fixed_elements().k], &distinct.points[..]].concat();
        Self { wires, types, instances, slots, g1, g2, thetas: thetas.len() }
    }

    /// The sizes that the gas depends on.
    pub(crate) fn sizes(&self) -> Sizes {
        let accesses = self.slots.len() / 16;
        let (points, thetas, bytes) = (self.g1.len() - 2, self.thetas, self.bytes().len());
        Sizes { points, accesses, thetas, bytes }
    }

    /// The lengths of the parts before the points.
    pub(crate) fn tables(&self) -> [&[u8]; 4] {
        [&self.wires, &self.types, &self.instances, &self.slots]
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = self.tables().concat();
        self.g1.iter().for_each(|point| put_point(&mut out, point));
        self.g2.iter().for_each(|point| put_point(&mut out, point));
        out
    }
}

/// Reports whether the instances of a type cost less gas by this number of columns than by their points.
fn by_columns(key: &DirectKey, kind: usize, columns: usize) -> bool {
    let instances: Vec<usize> = key.instances_of(kind).collect();
    let mut own = Distinct::default();
    for i in &instances {
        own.number(&key.parts()[*i].st);
        own.number(&key.parts()[*i].sb);
    }
    let accesses = instances.len() * (columns / 2);
    gas::of_public_part(columns, accesses) < gas::of_public_part(own.points.len(), 0)
}
