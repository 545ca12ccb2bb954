//! The layout of the circuit of a program. Keys and digests depend on the order of its calls.

use crate::address_space::{INPUT, OUTPUT_WORDS};
use crate::circuit::{MachineCircuit, Part, Plan, image_end};
use crate::isa::Isa;
use crate::parts::PUBLIC;
use crate::rows::Buses;
use crate::tables::{self, PrecompileTables};
use hekaton_circuit::{Fr, InstanceId, LayoutBuilder, LayoutError, Table, TypeId, WireId};
use std::ops::Range;

impl MachineCircuit {
    /// Declares all buses, tables, types, instances and wires.
    pub(crate) fn lay_out(&self, layout: &mut LayoutBuilder) -> Result<Plan, LayoutError> {
        self.check().map_err(|e| e.to_string())?;
        let buses = self.buses(layout);
        let mut parts = Parts { circuit: self, layout, groups: Vec::new(), public: Vec::new() };
        parts.chips();
        parts.image();
        let chain = parts.zero_memory();
        parts.private_words();
        parts.public_words();
        parts.boundary();
        let Parts { groups, public, .. } = parts;
        Ok(Plan { buses, groups, public, chain })
    }

    /// Declares buses and tables, always in the same order.
    fn buses(&self, layout: &mut LayoutBuilder) -> Buses {
        let [state, registers, memory] =
            ["state", "registers", "memory"].map(|name| layout.bus(name));
        let rows = self.sizes.table();
        for bits in tables::RANGES {
            layout.table(&format!("range-{bits}"), Table::range(bits).rows_per_subcircuit(rows));
        }
        let logic = layout.table("logic", tables::logic().rows_per_subcircuit(rows));
        let powers = layout.table("powers", tables::powers().rows_per_subcircuit(rows));
        let code = self.program.code().flat_map(|(pc, decoded)| decoded.rows(pc));
        let code_table = Table::pairs(code.map(|[key, value]| (key, value)));
        let program = layout.table("program", code_table.rows_in_each_subcircuit(rows));
        let has_calls = self.program.isa() == Isa::Rv32im;
        let precompiles =
            has_calls.then(|| PrecompileTables::new(layout, self.sizes, |which| self.uses(which)));
        Buses { state, registers, memory, logic, powers, program, precompiles }
    }
}

/// The subcircuits of a layout that is being made, without those of tables.
struct Parts<'a> {
    circuit: &'a MachineCircuit,
    layout: &'a mut LayoutBuilder,
    groups: Vec<(TypeId, Part, Range<usize>)>,
    public: Vec<WireId>,
}

impl Parts<'_> {
    /// Adds a type and its instances.
    fn add(
        &mut self,
        name: &str,
        slots: usize,
        part: Part,
        count: usize,
    ) -> (TypeId, Vec<InstanceId>) {
        let kind = self.layout.subcircuit_type(name, slots);
        let first = self.layout.instances();
        let instances = (0..count).map(|_| self.layout.instance(kind)).collect();
        self.groups.push((kind, part, first..first + count));
        (kind, instances)
    }

    fn chips(&mut self) {
        let MachineCircuit { program, counts, .. } = self.circuit;
        for chip in program.isa().chips().iter().copied() {
            self.add(chip.name(), 0, Part::Chip(chip), counts.chips[chip.place()]);
        }
        self.add("refresh", 0, Part::Refresh, counts.refresh);
    }

    /// Adds the image, whose words the key fixes.
    fn image(&mut self) {
        let MachineCircuit { program, sizes, .. } = self.circuit;
        let cells = sizes.image();
        let images = program.image.len().div_ceil(cells);
        let (image, instances) = self.add("image", 0, Part::Image, images);
        // The words are pairs, and so in the verifying key: a proof cannot be about another program's
        // words.
        self.layout.pairs(image, cells);
        for (number, address) in (program.base..image_end(program, *sizes)).enumerate() {
            // Cells that fill up the last subcircuit are zero, as the memory behind the image is.
            let value = program.image.get(number).copied().unwrap_or(0);
            let instance = instances[number / cells];
            self.layout.set_pair(instance, number % cells, Fr::from(address), Fr::from(value));
        }
    }

    /// Adds zero memory between the image and the input: a chain of rising addresses. Returns the wires
    /// between its subcircuits.
    fn zero_memory(&mut self) -> Vec<WireId> {
        let MachineCircuit { program, sizes, counts, .. } = self.circuit;
        let (_, instances) = self.add("zero", 2, Part::Zero, counts.zero);
        // Rising addresses from a constant to a constant: no word has two cells, and none overlaps the
        // image or the input. Two cells of one word would be two memories.
        let mut least = self.layout.constant(Fr::from(image_end(program, *sizes)));
        let end = self.layout.constant(Fr::from(INPUT / 4));
        let mut chain = Vec::new();
        for (number, instance) in (1..).zip(instances) {
            self.layout.read(instance, 0, least);
            if number == counts.zero {
                self.layout.read(instance, 1, end);
            } else {
                least = self.layout.wire("next word of zero memory", number as u64);
                chain.push(least);
                self.layout.write(instance, 1, least);
            }
        }
        chain
    }

    fn private_words(&mut self) {
        let MachineCircuit { sizes, counts, .. } = self.circuit;
        let (private, instances) = self.add("input", 0, Part::Input, counts.input);
        // The first address is a parameter, and not a constant of the type: subcircuits of one type are at
        // different addresses.
        self.layout.parameters(private, 1);
        for (number, instance) in instances.into_iter().enumerate() {
            let address = self.circuit.private_start() + (number * sizes.input()) as u64;
            self.layout.set_parameter(instance, 0, Fr::from(address));
        }
    }

    fn public_words(&mut self) {
        let words = self.circuit.public_words;
        let count = words.div_ceil(PUBLIC);
        let (shown, instances) = self.add("public", PUBLIC, Part::Public, count);
        self.layout.parameters(shown, 1 + PUBLIC);
        for number in 0..count * PUBLIC {
            let (instance, slot) = (instances[number / PUBLIC], number % PUBLIC);
            if slot == 0 {
                let address = u64::from(INPUT / 4) + number as u64;
                self.layout.set_parameter(instance, 0, Fr::from(address));
            }
            // The slots behind the last word are in no star; their parameter switches their cells off.
            let is_used = number < words;
            self.layout.set_parameter(instance, 1 + slot, Fr::from(u64::from(is_used)));
            if is_used {
                let wire = self.layout.public_input("input", number as u64);
                self.layout.read(instance, slot, wire);
                self.public.push(wire);
            } else {
                self.layout.unused(instance, slot);
            }
        }
    }

    /// Adds exactly one beginning and one end.
    fn boundary(&mut self) {
        let (boundary, ends) = self.add("boundary", 1 + OUTPUT_WORDS, Part::Boundary, 1);
        self.layout.pairs(boundary, 1);
        // The first state, (entry, 1), is in the key, so a run begins nowhere else.
        let entry = Fr::from(self.circuit.program.entry);
        self.layout.set_pair(ends[0], 0, entry, Fr::from(1u64));
        for slot in 0..=OUTPUT_WORDS {
            let wire = match slot {
                0 => self.layout.public_output("exit code", 0),
                slot => self.layout.public_output("output", slot as u64 - 1),
            };
            self.layout.write(ends[0], slot, wire);
            self.public.push(wire);
        }
    }
}
