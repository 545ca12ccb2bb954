//! The subcircuits that are not chips: cells of memory, and the boundary, which begins and ends a run.

use crate::address_space::{OUTPUT, OUTPUT_WORDS};
use crate::chips::{ADDRESS_BITS, REGISTER_BITS, TICKS};
use crate::isa::{A0, A7, EXIT, Isa, OPCODE, RS2};
use crate::machine::{Exit, SYS_EXIT};
use crate::rows::Buses;
use crate::run::Run;
use crate::word::{number, power};
use ark_ff::{One, Zero};
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{Bus, Fr, Subcircuit};
use serde::{Deserialize, Serialize};

/// The number of public words of the input in one subcircuit.
pub(crate) const PUBLIC: usize = 16;

/// The bits of a limb.
const LIMB: u32 = 16;

/// Cells of memory: for each one its address, and what the last access left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cells(Vec<CellValues>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct CellValues {
    address: u32,
    time: u64,
    value: u32,
    /// The value at the beginning.
    initial: u32,
}

impl Cells {
    pub(crate) fn of(run: &Run, words: Vec<u32>) -> Self {
        let end = run.cycles() + 1;
        let output = OUTPUT / 4;
        let cell = |address: u32| {
            let cell = run.memory.get(address);
            // The boundary reads the output at the end.
            #[allow(clippy::cast_possible_truncation, reason = "16 words")]
            // The boundary reads the output after the last cycle, so that is when these words are left.
            let is_output = (output..output + OUTPUT_WORDS as u32).contains(&address);
            let time = if is_output { end } else { cell.time.into() };
            let initial = run.initial(address);
            CellValues { address, time, value: cell.value, initial }
        };
        Self(words.into_iter().map(cell).collect())
    }

    fn get(cells: Option<&Self>, index: usize) -> Result<&CellValues, SynthesisError> {
        cells.and_then(|cells| cells.0.get(index)).ok_or(SynthesisError::AssignmentMissing)
    }
}

fn constant(value: impl Into<Fr>) -> FpVar<Fr> {
    FpVar::Constant(value.into())
}

/// The final entry of a cell, with a key and a value of the prover's choice: what the last access left
/// (spec: buses#cells).
fn last(
    subcircuit: &Subcircuit,
    bus: Bus<'_>,
    multiplicity: &FpVar<Fr>,
    key: impl FnOnce() -> Result<Fr, SynthesisError>,
    value: impl FnOnce() -> Result<Fr, SynthesisError>,
) -> Result<(), SynthesisError> {
    // Neither has a range. The bus balances only if both are those of the last access, whatever a prover
    // commits to.
    let (key, value) = (subcircuit.commit(key)?, subcircuit.commit(value)?);
    bus.add(&key, &value, multiplicity)
}

fn last_cell(
    subcircuit: &Subcircuit,
    bus: Bus<'_>,
    multiplicity: &FpVar<Fr>,
    cells: Option<&Cells>,
    index: usize,
) -> Result<(), SynthesisError> {
    let of = || Cells::get(cells, index);
    let key =
        || of().map(|cell| Fr::from(cell.address) + power(ADDRESS_BITS) * Fr::from(cell.time));
    last(subcircuit, bus, multiplicity, key, || of().map(|cell| Fr::from(cell.value)))
}

/// Words of the image: address and first value are a pair that the key fixes. Three rows a word.
pub(crate) fn image(
    subcircuit: &Subcircuit,
    buses: &Buses,
    count: usize,
    cells: Option<&Cells>,
) -> Result<(), SynthesisError> {
    let bus = subcircuit.bus(buses.memory)?;
    for index in 0..count {
        bus.add_pair(index, &constant(Fr::one()))?;
        last_cell(subcircuit, bus, &constant(-Fr::one()), cells, index)?;
    }
    Ok(())
}

/// Words that are zero at the beginning: addresses rise from the wire in slot 0 to that in slot 1. Five rows
/// a word.
pub(crate) fn zero(
    subcircuit: &Subcircuit,
    buses: &Buses,
    count: usize,
    cells: Option<&Cells>,
) -> Result<(), SynthesisError> {
    let bus = subcircuit.bus(buses.memory)?;
    let mut least = subcircuit.slot(0)?.clone();
    for index in 0..count {
        let address = subcircuit.commit(|| Ok(Fr::from(Cells::get(cells, index)?.address)))?;
        // The rise between two addresses is below 2^32, so a chain cannot wrap around in the field and come
        // back.
        subcircuit.range_check_limbs(LIMB, 2, &(&address - &least))?;
        bus.add(&address, &constant(Fr::zero()), &constant(Fr::one()))?;
        last_cell(subcircuit, bus, &constant(-Fr::one()), cells, index)?;
        least = address + constant(Fr::one());
    }
    subcircuit.range_check_limbs(LIMB, 2, &(subcircuit.slot(1)? - least))
}

/// Private words of the input, from the address in the parameter: words by their range. Six rows a word.
pub(crate) fn input(
    subcircuit: &Subcircuit,
    buses: &Buses,
    count: usize,
    cells: Option<&Cells>,
) -> Result<(), SynthesisError> {
    let bus = subcircuit.bus(buses.memory)?;
    for index in 0..count {
        let word = subcircuit.commit(|| Ok(Fr::from(Cells::get(cells, index)?.initial)))?;
        // Private words are the prover's; everything that computes with them takes them for words.
        subcircuit.range_check_limbs(LIMB, 2, &word)?;
        let address = subcircuit.parameter(0)? + constant(Fr::from(index as u64));
        bus.add(&address, &word, &constant(Fr::one()))?;
        last_cell(subcircuit, bus, &constant(-Fr::one()), cells, index)?;
    }
    Ok(())
}

/// Public words of the input, from the address in parameter 0. Parameters say which slots are used.
pub(crate) fn public(
    subcircuit: &Subcircuit,
    buses: &Buses,
    cells: Option<&Cells>,
) -> Result<(), SynthesisError> {
    let bus = subcircuit.bus(buses.memory)?;
    for index in 0..PUBLIC {
        let word = subcircuit.slot(index)?;
        // Public values are field elements: nothing but this row makes them words.
        subcircuit.range_check_limbs(LIMB, 2, word)?;
        let address = subcircuit.parameter(0)? + constant(Fr::from(index as u64));
        let is_used = subcircuit.parameter(1 + index)?;
        bus.add(&address, word, is_used)?;
        last_cell(subcircuit, bus, &(is_used * -Fr::one()), cells, index)?;
    }
    Ok(())
}

/// The values of a run that the boundary needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BoundaryValues {
    cycle: u64,
    pc: u32,
    code: u32,
    gaps: [u16; 2],
    /// The register and the immediate of the operand of `answer`, for TinyRAM.
    operand: (u8, u32),
    /// Values and last ticks of registers.
    registers: Vec<(u32, u64)>,
    /// Values of the output, and how long ago each word was accessed, in cycles less one.
    output: Vec<(u32, u32)>,
}

impl BoundaryValues {
    pub(crate) fn of(run: &Run, isa: Isa) -> Self {
        let Exit { cycle, pc, code, gaps, operand } = run.exit;
        let cells = run.registers.iter().map(|cell| (cell.value, cell.time));
        let registers = cells.take(isa.registers()).collect();
        #[allow(clippy::cast_possible_truncation, reason = "cycles are below 2^32")]
        let output = (OUTPUT / 4..)
            .zip(run.output)
            .map(|(word, value)| (value, cycle as u32 - run.memory.get(word).time))
            .collect();
        Self { cycle, pc, code, gaps, operand, registers, output }
    }
}

/// Beginning and end of a run: the first state and all registers at zero; the ECALL with 93 in a7 and the
/// exit code in a0, or TinyRAM's answer; the words of the output, read afterwards. It is there exactly once.
pub(crate) fn boundary(
    subcircuit: &Subcircuit,
    buses: &Buses,
    isa: Isa,
    values: Option<&BoundaryValues>,
) -> Result<(), SynthesisError> {
    let given = || values.ok_or(SynthesisError::AssignmentMissing);
    let (one, minus_one) = (constant(Fr::one()), constant(-Fr::one()));
    let zero = constant(Fr::zero());
    let state = subcircuit.bus(buses.state)?;
    // (entry, 1), which the key fixes.
    state.add_pair(0, &one)?;
    let pc = subcircuit.commit(|| Ok(Fr::from(given()?.pc)))?;
    let cycle = subcircuit.commit(|| Ok(Fr::from(given()?.cycle)))?;
    // The only state that is taken and not given back: the path of states ends here, and nowhere else.
    state.add(&pc, &cycle, &minus_one)?;
    // The row of an ECALL or an answer at this pc: the operand of an answer is x + imm, one of which is zero.
    let row = &pc + constant(power(OPCODE) * Fr::from(8 * u64::from(EXIT)));
    let code = subcircuit.slot(0)?;
    let operand = match isa {
        Isa::Rv32im => {
            subcircuit.table(buses.program)?.pair(&row, &zero)?;
            None
        }
        Isa::TinyRam => {
            // Which register is the prover's to say, and the program's row refuses all but one.
            let register = subcircuit.commit(|| Ok(Fr::from(given()?.operand.0)))?;
            let imm = subcircuit.commit(|| Ok(Fr::from(given()?.operand.1)))?;
            subcircuit.table(buses.program)?.pair(&(row + &register * power(RS2)), &imm)?;
            Some((register, code - imm))
        }
    };

    let registers = subcircuit.bus(buses.registers)?;
    for number in 0..isa.registers() {
        register(subcircuit, registers, number, values)?;
    }
    // a0 at the first tick of the cycle, a7 at the second: that is 93. Or the operand's register at the second.
    let call = constant(Fr::from(SYS_EXIT));
    let of = |register: u8| constant(Fr::from(register));
    let reads = match operand {
        None => vec![(0u64, of(A0), code.clone()), (1, of(A7), call)],
        Some((register, value)) => vec![(1, register, value)],
    };
    for (index, (place, register, value)) in reads.iter().enumerate() {
        let gap = subcircuit.commit(|| Ok(Fr::from(given()?.gaps[index])))?;
        // The boundary's own accesses to registers obey the same order as those of chips.
        subcircuit.range_check(LIMB, &gap)?;
        let tick = &cycle * number(TICKS) + constant(Fr::from(*place));
        let key = |tick: FpVar<Fr>| tick * power(REGISTER_BITS) + register;
        let shared = subcircuit.bus_value(value);
        registers.add_value(&key(&tick - gap - &one), &shared, &minus_one)?;
        registers.add_value(&key(tick), &shared, &one)?;
    }

    output(subcircuit, buses, &(cycle + &one), values)
}

/// The cell of a register: given at time 0 and taken at the end, so that each register has one, from zero
/// to what the run left.
fn register(
    subcircuit: &Subcircuit,
    registers: Bus<'_>,
    number: usize,
    values: Option<&BoundaryValues>,
) -> Result<(), SynthesisError> {
    let given = || {
        let cells = values.map(|values| &values.registers);
        cells.and_then(|cells| cells.get(number)).ok_or(SynthesisError::AssignmentMissing)
    };
    let own = Fr::from(number as u64);
    registers.add(&constant(own), &constant(Fr::zero()), &constant(Fr::one()))?;
    let key = || given().map(|(_, tick)| own + power(REGISTER_BITS) * Fr::from(*tick));
    let value = || given().map(|(value, _)| Fr::from(*value));
    last(subcircuit, registers, &constant(-Fr::one()), key, value)
}

/// The output of a run, read in the cycle after the last one.
fn output(
    subcircuit: &Subcircuit,
    buses: &Buses,
    end: &FpVar<Fr>,
    values: Option<&BoundaryValues>,
) -> Result<(), SynthesisError> {
    let given = || values.ok_or(SynthesisError::AssignmentMissing);
    let (zero, one, minus_one) = (constant(Fr::zero()), constant(Fr::one()), constant(-Fr::one()));
    let memory = subcircuit.bus(buses.memory)?;
    for word in 0..OUTPUT_WORDS {
        let of = || given()?.output.get(word).ok_or(SynthesisError::AssignmentMissing);
        let address = constant(Fr::from(u64::from(OUTPUT / 4) + word as u64));
        memory.add(&address, &zero, &one)?;
        let gap = subcircuit.commit(|| of().map(|(_, gap)| Fr::from(*gap)))?;
        subcircuit.range_check_limbs(LIMB, 2, &gap)?;
        let value = subcircuit.slot(1 + word)?;
        let shared = subcircuit.bus_value(value);
        let key = |time: FpVar<Fr>| time * power(ADDRESS_BITS) + &address;
        memory.add_value(&key(end - gap - &one), &shared, &minus_one)?;
        memory.add_value(&key(end.clone()), &shared, &one)?;
        let last_key = || {
            let end = given()?.cycle + 1;
            let address = Fr::from(u64::from(OUTPUT / 4) + word as u64);
            Ok(address + power(ADDRESS_BITS) * Fr::from(end))
        };
        last(subcircuit, memory, &minus_one, last_key, || of().map(|(value, _)| Fr::from(*value)))?;
    }
    Ok(())
}
