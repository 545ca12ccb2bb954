//! Execution on ranks, on rank 0: each rank executes a slice of the instances and keeps its values
//! (spec: distributed#slices).

use super::frame::Kind;
use super::message::{Execute, Executed as Told};
use super::ranks::{Ranks, Slices};
use super::round::LISTEN;
use super::scheduling::slices;
use crate::events::Phase;
use crate::keys::ProverKeys;
use crate::pool::LocalEngine;
use crate::protocol::ProveError;
use crate::protocol::coordinator::CoordinatorError;
use crate::protocol::executed::{
    Executed, OnRanks, SliceSummary, Values, balance_of_verifier, digest, instance_id,
};
use crate::rank_error::RankError;
use hekaton_circuit::{ExecutionError, Layout, PreparedCircuit};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

/// Who executes the circuit. The proof does not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Executes {
    /// Rank 0, which sends the values of each subcircuit with its job.
    #[default]
    Root,
    /// Every rank executes a slice, on the same input, and keeps the values. A value travels only
    /// when a subcircuit moves to another rank.
    Ranks,
}

/// Executes the circuit on all ranks, until a deadline.
pub(super) fn execute_on_ranks<'c>(
    ranks: &mut Ranks,
    circuit: &'c PreparedCircuit<'c>,
    keys: &ProverKeys,
    pool: &LocalEngine,
    deadline: Option<Instant>,
) -> Result<Executed<'c>, ProveError> {
    let (layout, vk) = (circuit.layout(), &keys.verifying);
    let ranges = ranks.cut(layout, keys);
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    for (index, range) in ranges.iter().enumerate() {
        ranks.send(index, Kind::Execute, Execute { range: range.clone(), key }.encode());
    }
    let told = gather(ranks, layout, &ranges, deadline)?;
    let times = told.iter().map(|told| told.times).collect();
    let slices: Vec<SliceSummary> = told.into_iter().map(|told| told.summary).collect();
    ranks.slices = Slices { ranges, times };
    let public = match public_values(layout, &slices) {
        Ok(public) if is_balanced(&key, keys, &public, &slices) => public,
        _ => return Err(who_is_wrong(ranks, circuit, &slices, &key, pool)),
    };
    debug_assert_eq!(public.len(), vk.public.len());
    let digests = slices.into_iter().flat_map(|slice| slice.digests).collect();
    Ok(Executed { values: Values::OnRanks(OnRanks::new(circuit)), public, digests })
}

/// Waits for all ranks, and checks the shape of their reports.
fn gather(
    ranks: &mut Ranks,
    layout: &Layout,
    ranges: &[Range<usize>],
    deadline: Option<Instant>,
) -> Result<Vec<Told>, ProveError> {
    let mut told: BTreeMap<usize, Told> = BTreeMap::new();
    let places = layout.public_wires().count();
    while told.len() < ranges.len() {
        let Some((index, frame, _)) = ranks.next(LISTEN)? else {
            ranks.check_deadline(deadline, Phase::Execute, |index, _| {
                usize::from(!told.contains_key(&index))
            })?;
            continue;
        };
        if frame.kind != Kind::Executed {
            let why = format_args!("expected an execution, found {:?}", frame.kind);
            return Err(ranks.wrong(index, &why));
        }
        let new = Told::decode(&frame.content).map_err(|e| ranks.wrong(index, &e))?;
        let SliceSummary { public, digests, .. } = &new.summary;
        let (found, expected) = (digests.len(), ranges[index].len());
        if found != expected {
            let why = format_args!("{found} digests for {expected} subcircuits");
            return Err(ranks.wrong(index, &why));
        }
        if let Some((place, _)) = public.iter().find(|(place, _)| *place as usize >= places) {
            let why = format_args!("public value {place}, of which there are {places}");
            return Err(ranks.wrong(index, &why));
        }
        if told.insert(index, new).is_some() {
            return Err(ranks.wrong(index, &"two executions of one slice"));
        }
    }
    Ok(told.into_values().collect())
}

impl Ranks {
    /// Cuts the instances into one slice per rank.
    pub(super) fn cut(&self, layout: &Layout, keys: &ProverKeys) -> Vec<Range<usize>> {
        let provers: Vec<usize> = self.ranks.iter().map(|rank| rank.hello.provers).collect();
        let weight = |id| match layout.is_table(id) {
            true => 0,
            false => keys.types[layout.type_index(id)].constraints() as u64,
        };
        let weights: Vec<u64> = layout.instance_ids().map(weight).collect();
        slices(&weights, &provers)
    }
}

/// The public values that the ranks of all slices report: each wire is in a slot of some rank, and
/// all ranks must agree. An error is the place of a value on which they do not.
pub(super) fn public_values(
    layout: &Layout,
    slices: &[SliceSummary],
) -> Result<Vec<hekaton_arith::Fr>, usize> {
    let mut values = vec![None; layout.public_wires().count()];
    for (index, value) in slices.iter().flat_map(|slice| &slice.public) {
        let place = *index as usize;
        if values[place].replace(*value).is_some_and(|other| other != *value) {
            return Err(place);
        }
    }
    let missing = values.iter().position(Option::is_none);
    missing.map_or_else(|| Ok(values.into_iter().flatten().collect()), Err)
}

/// Reports whether every wire has one value in all slots: the balances of all ranks and of the
/// verifier cancel.
pub(super) fn is_balanced(
    key: &[u8; 32],
    keys: &ProverKeys,
    public: &[hekaton_arith::Fr],
    slices: &[SliceSummary],
) -> bool {
    let verifier = balance_of_verifier(key, &keys.verifying, public);
    slices.iter().fold(verifier, |sum, slice| sum.wrapping_add(slice.balance)) == 0
}

/// Executes the circuit in this process, and names the rank whose report on its slice differs; if
/// there is none, the circuit's code is at fault.
fn who_is_wrong(
    inner: &Ranks,
    circuit: &PreparedCircuit<'_>,
    slices: &[SliceSummary],
    key: &[u8; 32],
    pool: &LocalEngine,
) -> ProveError {
    let layout = circuit.layout();
    let failed = |error: ExecutionError| ProveError::from(CoordinatorError::from(error));
    let whole = match circuit.execute_uncounted() {
        Ok(execution) => execution,
        Err(error) => return failed(error),
    };
    for (index, (range, told)) in inner.slices.ranges.iter().zip(slices).enumerate() {
        let own = match SliceSummary::new(circuit, &whole, range.clone(), key, pool) {
            Ok(own) => own,
            Err(error) => return failed(error),
        };
        let wrong = own.digests.iter().zip(&told.digests).position(|(own, told)| own != told);
        let Some(at) = wrong else {
            if own != *told {
                let why = "public values or a balance of other values than it has";
                return inner.wrong(index, &why);
            }
            continue;
        };
        // The rank is right if executing only its slice yields these values.
        let instance = range.start + at;
        let part = match circuit.execute_range(range.clone()) {
            Ok(execution) => execution,
            Err(error) => return failed(error),
        };
        let id = instance_id(instance);
        let of_part = match digest(circuit, &part, id) {
            Ok(digest) => digest,
            Err(error) => return failed(error),
        };
        if of_part != told.digests[at] {
            let rank = &inner.ranks[index];
            let (rank, host) = (rank.rank, rank.hello.host.clone());
            return ProveError::from_rank(RankError::Values { rank, host, instance });
        }
        let both = whole.values.slots(layout, id).into_iter().zip(part.values.slots(layout, id));
        let differs = layout.wires_of(id).zip(both).find(|(_, (whole, part))| whole != part);
        let wire = differs.and_then(|(wire, _)| wire).map(|wire| layout.wire_name(wire));
        let wire =
            wire.map_or_else(|| "an unused slot or its input".to_owned(), |name| name.to_string());
        return CoordinatorError::Slices { wire, instance, range: range.clone() }.into();
    }
    // Every rank reported its values correctly, and they are of one execution: rank 0 added them up
    // wrongly.
    CoordinatorError::Unbalanced.into()
}
