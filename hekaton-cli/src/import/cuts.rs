//! The cut of a circuit into parts: its size, its cost, and notes on one that is worse than it could be.

use super::options::Import;
use hekaton_plan::{CutCost, CutType, Workers, cut_cost};
use hekaton_r1cs::partition::{Choice, Considered, Depth, PartSizes, Plan, Price};
use hekaton_r1cs::{ImportError, Monolith};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::output::{count, seconds_f64};
use hekaton_terminal::progress::Display;
use std::num::NonZeroUsize;
use std::time::Instant;

/// Rows that a cut adds to those of one part, as a fraction. Above the first, `import` prints a note. Above the second,
/// it refuses the cut if one part alone is faster.
const MANY: f64 = 0.25;
const TOO_MANY: f64 = 1.0;
/// Above this many times the number of parts that the constraints need, `import` prints a note.
const MANY_PARTS: u64 = 2;

/// A circuit in one piece, and the sizes of parts that were considered for it.
pub(super) struct Cuts {
    pub(super) monolith: Monolith,
    pub(super) plan: Plan,
    pub(super) considered: Vec<Considered>,
    /// The number of provers for which costs are computed.
    pub(super) provers: NonZeroUsize,
    /// The size of parts was given.
    has_rows: bool,
}

pub(super) fn failure(error: ImportError) -> Failure {
    let code = match &error {
        ImportError::DoesNotFit(_) | ImportError::Partition(_) | ImportError::Layout(_) => {
            exit::FAILED
        }
        _ => exit::BAD_FILE,
    };
    Failure::new(code, error)
}

/// The cost of parts on this number of provers.
fn cost_of(parts: &[PartSizes], provers: NonZeroUsize) -> CutCost {
    let kind = |sizes: &PartSizes| {
        let PartSizes { parts, constraints, slots, own, bits, in_a, in_b, terms, .. } = *sizes;
        CutType { parts, constraints, slots, own, bits, in_a, in_b, terms }
    };
    // One rank, as the network is the same for every cut.
    let types: Vec<CutType> = parts.iter().map(kind).collect();
    cut_cost(&types, Workers { ranks: 1, threads: provers.get() })
}

fn read(command: &Import, display: &Display) -> Result<Monolith, Failure> {
    let name = command.file.display();
    display.line(&format!("reading {name}"));
    let mut last = Instant::now();
    let progress = |row: u32, rows: u32| {
        if last.elapsed().as_secs() >= 2 {
            last = Instant::now();
            let (row, rows) = (count(row.into()), count(rows.into()));
            display.line(&format!("reading {name}: {row} of {rows} constraints"));
        }
    };
    Monolith::read(&command.file, command.sym.as_deref(), progress).map_err(failure)
}

impl Cuts {
    /// Reads the circuit, and plans the cut with the size of parts that was given, or the cheapest one.
    pub(super) fn of(command: &Import, display: &Display) -> Result<Self, Failure> {
        let monolith = read(command, display)?;
        let rows = monolith.system().rows() as u64;
        // Small circuits are cut before a line could be read.
        let mut last = None;
        let step = |step| {
            if rows >= 1 << 18 && last.replace(step) != Some(step) {
                display.line(&format!("{step}"));
            }
        };
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let provers = command.provers.unwrap_or_else(cores);
        let price = |parts: &[PartSizes]| {
            let cost = cost_of(parts, provers);
            Price { seconds: cost.seconds(), proving: cost.cpu_seconds }
        };
        let (plan, considered) = match command.rows {
            Some(most) => {
                let plan = monolith.cut(most, step).map_err(failure)?;
                let parts = monolith.sizes(&plan);
                let seconds = price(&parts).seconds;
                let only = Considered { most, depth: Depth::Plan, parts: Ok(parts), seconds };
                (plan, vec![only])
            }
            None => {
                let Choice { plan, considered, .. } =
                    monolith.choose(price, step).map_err(failure)?;
                (plan, considered)
            }
        };
        Ok(Self { monolith, plan, considered, provers, has_rows: command.rows.is_some() })
    }

    pub(super) fn cost(&self, parts: &[PartSizes]) -> CutCost {
        cost_of(parts, self.provers)
    }

    /// Notes on a cut that is worse than it could be.
    pub(super) fn notes(&self) -> Vec<String> {
        let (plan, monolith) = (&self.plan, &self.monolith);
        let mut notes = monolith.notices();
        let (parts, types) = (plan.parts.parts.len() as u64, plan.parts.types.len() as u64);
        let remedy = match self.has_rows {
            true => {
                "larger parts (--rows) may need fewer, and without --rows import takes the cheapest"
            }
            false => "larger parts would take longer in all",
        };
        if plan.beyond_one_part() > MANY {
            notes.push(format!(
                "the cut adds {:.0} % more rows, because the constraints of a part share most of their wires with \
                 others; {remedy}",
                100.0 * plan.beyond_one_part()
            ));
        }
        let least = plan.least_parts();
        if parts > MANY_PARTS * least {
            notes.push(format!(
                "{} parts, where the constraints alone would need {}: shared wires take the room; {remedy}",
                count(parts),
                count(least)
            ));
        }
        // circom's --O2 substitutes linear constraints away, so components that repeated are no longer equal.
        if parts >= 4 && types == parts && monolith.system().linear_rows() == 0 {
            notes.push(
                "no two parts are equal, and no constraint is linear: circom's --O1 often leaves parts that repeat, \
                 which share a key"
                    .to_owned(),
            );
        }
        notes
    }

    /// Refuses a cut that is slower than the circuit in one part.
    pub(super) fn refuse_waste(&self) -> Result<(), Failure> {
        let beyond = self.plan.beyond_one_part();
        if beyond <= TOO_MANY {
            return Ok(());
        }
        let cut = self.cost(&self.monolith.sizes(&self.plan)).run_seconds();
        let whole = self.cost(&[self.monolith.in_one_part()]).run_seconds();
        // With enough provers, even a wasteful cut is faster, and one part may not fit in memory.
        if cut < whole {
            return Ok(());
        }
        let why = format!(
            "the cut adds {:.0} % more rows, so a run takes about {}, and one part alone {}: leave out --rows, or \
             import it anyway with --force",
            100.0 * beyond,
            seconds_f64(cut),
            seconds_f64(whole)
        );
        Err(Failure::new(exit::FAILED, why))
    }
}
