//! The forgeries of the machine's model, on the rows of the chips and the sums of the buses as field elements: nothing
//! here is bound to what the executor could do. Each one continues honestly after its change, is refused, and is
//! accepted as soon as the check that it is about is left out.

use super::assembler::*;
use crate::address_space::{INPUT, OUTPUT, OUTPUT_WORDS};
use crate::chips::ZERO;
use crate::isa::{A0, A7, Chip, EXIT, Isa, OPCODE, RS2};
use crate::machine::{CLASSES, Machine, REFRESH, SYS_EXIT};
use crate::precompile::Precompile;
use crate::run::All;
use crate::sizes::{refresh_template, template_of};
use crate::tables::{logic_rows, powers_rows};
use crate::template::{Asked, Row, Source, Taken, Template};
use crate::word::{number, power};
use crate::{Input, Program, run};
use ark_ff::{BigInteger, Field, PrimeField, Zero};
use hekaton_circuit::Fr;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The address of the data of these programs: memory that is zero at the beginning.
const DATA: u32 = 0x1100_0000;

/// The position of the immediate in the key of a row in an earlier design.
const IMMEDIATE: u32 = 220;

/// An operation, with the values of all variables.
struct Worked {
    template: &'static Template,
    values: Vec<Fr>,
}

impl Worked {
    fn set(&mut self, name: &str, value: impl Into<Fr>) -> &mut Self {
        let of_name = |variable: &crate::template::Variable| variable.name == name;
        let at = self.template.variables.iter().position(of_name);
        self.values[at.unwrap_or_else(|| panic!("no variable {name}"))] = value.into();
        self
    }

    /// Sets one of several variables with the same name.
    fn set_nth(&mut self, name: &str, nth: usize, value: impl Into<Fr>) -> &mut Self {
        let all = self.template.variables.iter().enumerate();
        let (at, _) = all.filter(|(_, variable)| variable.name == name).nth(nth).unwrap();
        self.values[at] = value.into();
        self
    }

    /// Reports whether a precompile has made the right words from those that it was given.
    fn is_computed(&self) -> bool {
        let is_it = |which: &Precompile| std::ptr::eq(template_of(which.chip()), self.template);
        let Some(precompile) = Precompile::ALL.into_iter().find(is_it) else { return true };
        let words =
            |list: &[usize]| -> Vec<Fr> { list.iter().map(|at| self.values[*at]).collect() };
        let given: Vec<u32> =
            words(&self.template.given).iter().map(|word| word.into_bigint().0[0] as u32).collect();
        let made = precompile.compute(&given).unwrap();
        let made: Vec<Fr> = made.into_iter().map(Fr::from).collect();
        words(&self.template.given) == given.into_iter().map(Fr::from).collect::<Vec<_>>()
            && words(&self.template.made) == made
    }

    fn get(&self, name: &str) -> Option<Fr> {
        let at = self.template.variables.iter().position(|variable| variable.name == name)?;
        Some(self.values[at])
    }

    /// Products follow from the other values.
    fn finish(&mut self) {
        for (at, variable) in self.template.variables.iter().enumerate() {
            if let Source::Product(a, b) = &variable.source {
                self.values[at] = a.value(&self.values) * b.value(&self.values);
            }
        }
    }
}

/// Everything that the proof of a run is about.
struct Proof {
    program: Program,
    ops: Vec<Worked>,
    /// pc, cycle, and the ticks at which a0 and a7 were accessed before, or the register of an answer.
    exit: (u32, u64, [u64; 2]),
    /// The register and the immediate of an answer.
    operand: (u8, u32),
    code: u32,
    /// The keys and values at the end.
    registers: Vec<[Fr; 2]>,
    /// The addresses of zero cells, in order; the words of the input.
    zero: Vec<u32>,
    input: Vec<Fr>,
    /// Times and values at the end, by address; and final entries of the prover's own.
    cells: BTreeMap<u32, (u64, Fr)>,
    others: Vec<[Fr; 2]>,
    output: [Fr; OUTPUT_WORDS],
    public_output: [Fr; OUTPUT_WORDS],
}

/// The key of a register's cell.
fn key_of(register: u64, tick: u64) -> Fr {
    Fr::from(register) + Fr::from(64u64) * Fr::from(tick)
}

fn negative(value: i64) -> Fr {
    number(value.into())
}

fn fraction(above: i64, below: Fr) -> Fr {
    negative(above) * below.inverse().unwrap()
}

impl Proof {
    fn of(words: &[u32], private: &[u8]) -> Self {
        Self::of_program(Program::from_elf(&program(words)).unwrap(), private)
    }

    fn of_program(program: Program, private: &[u8]) -> Self {
        let isa = program.isa();
        let input = Input { public: Vec::new(), private: private.to_vec() };
        let mut all = All::with_room([0; CLASSES]);
        Machine::new(&program, &input).unwrap().run(1 << 20, &mut all).unwrap().unwrap();
        let found = run(&program, &input, 1 << 20).unwrap();
        let template = |class: usize| match class {
            REFRESH => refresh_template(),
            _ => template_of(Chip::every().nth(class).unwrap()),
        };
        let ops =
            all.ops.iter().zip(&all.accesses).enumerate().flat_map(|(class, (ops, calls))| {
                (0..).zip(ops).map(move |(number, op): (usize, _)| {
                    let accesses = calls.get(number).map_or(&[][..], Vec::as_slice);
                    let template = template(class);
                    Worked { template, values: template.values(op, accesses) }
                })
            });
        let registers = (0..isa.registers()).map(|number| {
            let cell = found.registers[number];
            [key_of(number as u64, cell.time), Fr::from(cell.value)]
        });
        let mut cells = BTreeMap::new();
        let end = found.cycles() + 1;
        let places = (program.base..).take(program.image.len());
        let zero: Vec<u32> = found.memory.accessed(DATA / 4..INPUT / 4).collect();
        let inputs = (INPUT / 4..).take(input.words(isa).count());
        for word in places.chain(zero.iter().copied()).chain(inputs) {
            let cell = found.memory.get(word);
            cells.insert(word, (cell.time.into(), Fr::from(cell.value)));
        }
        let output = found.output.map(Fr::from);
        for (word, value) in (OUTPUT / 4..).zip(output) {
            cells.insert(word, (end, value));
        }
        let crate::machine::Exit { cycle, pc, code, gaps, operand } = found.exit;
        let before = match isa {
            Isa::Rv32im => {
                [0, 1].map(|place| 4 * cycle + place - 1 - u64::from(gaps[place as usize]))
            }
            Isa::TinyRam => [4 * cycle - u64::from(gaps[0]), 0],
        };
        Self {
            ops: ops.collect(),
            exit: (pc, cycle, before),
            operand,
            code,
            registers: registers.collect(),
            zero,
            input: input.words(isa).map(Fr::from).collect(),
            cells,
            others: Vec::new(),
            output,
            public_output: output,
            program,
        }
    }

    /// The operation of a cycle.
    fn at(&mut self, cycle: u64) -> &mut Worked {
        let is_it = |op: &&mut Worked| op.get("k") == Some(Fr::from(cycle));
        self.ops.iter_mut().find(is_it).unwrap()
    }

    /// A register ends with a value, last accessed at a tick.
    fn last(&mut self, register: usize, tick: u64, value: impl Into<Fr>) -> &mut Self {
        self.registers[register] = [key_of(register as u64, tick), value.into()];
        self
    }

    fn cell(&mut self, address: u32, cycle: u64, value: impl Into<Fr>) -> &mut Self {
        self.cells.insert(address / 4, (cycle, value.into()));
        self
    }

    /// One more refresh.
    fn refresh(&mut self, enable: i64, key: i128, value: u32, gap: Fr) {
        let template = refresh_template();
        let mut op = Worked { template, values: vec![Fr::zero(); template.variables.len()] };
        op.set("en", negative(enable)).set("key", number(key)).set("x", value).set("l1", gap);
        self.ops.push(op);
    }

    /// One more operation of a chip.
    fn more(&mut self, chip: Chip, cycle: u64) -> &mut Worked {
        let template = template_of(chip);
        let mut op = Worked { template, values: vec![Fr::zero(); template.variables.len()] };
        op.set("en", 1).set("k", cycle);
        self.ops.push(op);
        self.ops.last_mut().unwrap()
    }

    /// Checks all rows and all sums, but the named ones.
    fn check(&mut self, without: &str) -> Result<(), String> {
        type Entry = (u8, Fr, Fr);
        let mut buses: HashMap<Entry, Fr> = HashMap::new();
        let mut asked: HashMap<(Asked, Fr, Fr), Fr> = HashMap::new();
        let packs = without == "imm exact";
        let packed = |[key, value]: [Fr; 2]| match packs {
            true => [key + value * power(IMMEDIATE), Fr::zero()],
            false => [key, value],
        };
        for op in &mut self.ops {
            op.finish();
            let (values, enable) = (&op.values, op.values[0]);
            if without != "en" && !(enable * (Fr::ONE - enable)).is_zero() {
                return Err("en".into());
            }
            if without != "function" && enable == Fr::ONE && !op.is_computed() {
                return Err("function".into());
            }
            for (name, row) in &op.template.rows {
                if *name == without {
                    continue;
                }
                match row {
                    Row::Product { a, b, c } => {
                        if a.value(values) * b.value(values) != c.value(values) {
                            return Err((*name).into());
                        }
                    }
                    Row::Ask { table, key, value } => {
                        let mut row = [key.value(values), value.value(values)];
                        if *table == Asked::Program {
                            row = packed(row);
                        }
                        *asked.entry((*table, row[0], row[1])).or_default() += enable;
                    }
                    Row::Entry { bus, key, value, offset, gives } => {
                        let value = value.value(values) + number(*offset);
                        let entry = (*bus as u8, key.value(values), value);
                        *buses.entry(entry).or_default() += if *gives { enable } else { -enable };
                    }
                }
            }
        }
        self.boundary(without, &mut asked, |bus, key, value, sign| {
            *buses.entry((bus as u8, key, value)).or_default() += Fr::from(sign);
        })?;
        let program: HashSet<[Fr; 2]> =
            self.program.code().flat_map(|(pc, decoded)| decoded.rows(pc)).map(packed).collect();
        let logic: HashSet<Fr> = logic_rows(crate::word::Word::RV32).into_iter().collect();
        let powers = powers_rows(crate::word::Word::RV32);
        for ((table, key, value), count) in &asked {
            let is_there = match table {
                Asked::Range(bits) => value.is_zero() && key.into_bigint().num_bits() <= *bits,
                Asked::Logic => value.is_zero() && logic.contains(key),
                Asked::Powers => powers.contains(&[*key, *value]),
                Asked::Program => program.contains(&[*key, *value]),
            };
            if !is_there && !count.is_zero() {
                return Err(format!("{table:?}"));
            }
        }
        match buses.iter().find(|(_, sum)| !sum.is_zero()) {
            Some(((bus, ..), _)) => Err(["state", "registers", "memory"][*bus as usize].into()),
            None => Ok(()),
        }
    }

    /// Adds everything that is not a chip: cells of memory, beginning and end.
    fn boundary(
        &self,
        without: &str,
        asked: &mut HashMap<(Asked, Fr, Fr), Fr>,
        mut add: impl FnMut(Taken, Fr, Fr, i64),
    ) -> Result<(), String> {
        let (pc, cycle, before) = self.exit;
        add(Taken::State, Fr::from(self.program.entry), Fr::ONE, 1);
        add(Taken::State, Fr::from(pc), Fr::from(cycle), -1);
        let mut key = Fr::from(pc) + power(OPCODE) * Fr::from(8 * u64::from(EXIT));
        let (register, imm) = self.operand;
        if self.program.isa() == Isa::TinyRam {
            key += power(RS2) * Fr::from(register);
        }
        *asked.entry((Asked::Program, key, Fr::from(imm))).or_default() += Fr::ONE;
        for (register, [key, value]) in (0u64..).zip(&self.registers) {
            add(Taken::Registers, Fr::from(register), Fr::zero(), 1);
            add(Taken::Registers, *key, *value, -1);
        }
        let seven = match without {
            "a7" => self.registers[usize::from(A7)][1],
            _ => Fr::from(SYS_EXIT),
        };
        let code = Fr::from(self.code);
        let reads = match self.program.isa() {
            Isa::Rv32im => vec![(0, A0, code), (1, A7, seven)],
            Isa::TinyRam => vec![(1, register, code - Fr::from(imm))],
        };
        for ((place, register, value), before) in reads.into_iter().zip(before) {
            let now = 4 * cycle + place;
            assert!(now > before && now - before - 1 < 1 << 16);
            add(Taken::Registers, key_of(register.into(), before), value, -1);
            add(Taken::Registers, key_of(register.into(), now), value, 1);
        }
        let key = |word: u32, cycle: u64| Fr::from(word) + power(32) * Fr::from(cycle);
        for (word, value) in (self.program.base..).zip(&self.program.image) {
            add(Taken::Memory, Fr::from(word), Fr::from(*value), 1);
        }
        let mut least = self.program.base + self.program.image.len() as u32;
        for word in &self.zero {
            if without != "rising" && *word < least {
                return Err("rising".into());
            }
            least = word + 1;
            add(Taken::Memory, Fr::from(*word), Fr::zero(), 1);
        }
        if without != "last" && least > INPUT / 4 {
            return Err("last".into());
        }
        for (word, value) in (INPUT / 4..).zip(&self.input) {
            if without != "input range" && value.into_bigint().num_bits() > 32 {
                return Err("input range".into());
            }
            add(Taken::Memory, Fr::from(word), *value, 1);
        }
        for (word, (output, public)) in
            (OUTPUT / 4..).zip(self.output.iter().zip(self.public_output))
        {
            if without != "public" && *output != public {
                return Err("public".into());
            }
            add(Taken::Memory, Fr::from(word), Fr::zero(), 1);
            // Nobody stores to the output here, so it was last accessed at the beginning.
            add(Taken::Memory, Fr::from(word), *output, -1);
            add(Taken::Memory, key(word, cycle + 1), *output, 1);
        }
        for (word, (cycle, value)) in &self.cells {
            add(Taken::Memory, key(*word, *cycle), *value, -1);
        }
        for [key, value] in &self.others {
            add(Taken::Memory, *key, *value, -1);
        }
        Ok(())
    }
}

/// A program that ends with an exit, which the model's programs do without a register.
fn code(body: &[u32]) -> Vec<u32> {
    [body, &exit()].concat()
}

fn honest(body: &[u32]) -> Proof {
    Proof::of(&code(body), &[])
}

fn tiny(text: &str) -> Proof {
    Proof::of_program(Program::from_tinyram(text).unwrap(), &[])
}

/// The run of another program as one of this, which no load sees.
fn as_if(words: &[u32], other: &[u32]) -> Proof {
    let program = Program::from_elf(&program(words)).unwrap();
    let mut proof = Proof { program, ..Proof::of(other, &[]) };
    for (word, value) in (proof.program.base..).zip(&proof.program.image) {
        proof.cells.insert(word, (0, Fr::from(*value)));
    }
    proof
}

#[test]
fn honest_runs_are_accepted() {
    let mut words = vec![li(5, -7), li(6, 2), lui(8, DATA)];
    words.extend((0..8).flat_map(|f| [r(1, f, 7, 5, 6), r(0, f, 7, 5, 6)]));
    words.extend([store(0, 5, 8, 3), store(1, 5, 8, 2), load(1, 7, 8, 2), load(4, 7, 8, 3)]);
    words.extend([lui(9, 0x4000), addi(9, 9, -1), branch(1, 9, 0, -4)]);
    let mut proof = honest(&words);
    assert!(proof.ops.iter().any(|op| std::ptr::eq(op.template, refresh_template())));
    assert_eq!(proof.check(""), Ok(()));
}

/// Each forgery, with what refuses it, and the check without which it is accepted.
#[test]
fn forgeries_are_refused_by_their_checks() {
    type Forgery = fn() -> Proof;
    let all: Vec<(&str, &str, &str, Forgery)> = vec![
        ("a register is read from the future", "Range(16)", "gap", || {
            let mut p = honest(&[li(5, 1), addi(6, 5, 0), li(5, 7)]);
            p.at(2).set("x", 7).set("zl", 7).set("l1", negative(8 - 14 - 1));
            p.at(3).set("vd", 1).set("ld", 14 - 6 - 1);
            p.last(5, 8, 7).last(6, 10, 7);
            p
        }),
        ("a register is read with a value that was overwritten", "registers", "", || {
            let mut p = honest(&[li(5, 1), li(5, 7), addi(6, 5, 0)]);
            p.at(3).set("x", 1).set("zl", 1).set("l1", 12 - 6 - 1);
            p.last(6, 14, 1);
            p
        }),
        ("a refresh by a fraction of a limb, to another register", "Range(16)", "gap", || {
            let mut p = honest(&[li(5, 1), li(6, 2), addi(7, 5, 0)]);
            p.refresh(1, 6 + 64 * 10, 2, -fraction(1, Fr::from(64u64)) - Fr::ONE);
            p.at(3).set("x", 2).set("zl", 2).set("l1", 12 - 10 - 1);
            p.last(5, 6, 1).last(7, 14, 2);
            p.registers[6] = [key_of(5, 12), Fr::from(2u64)];
            p
        }),
        ("an instruction reads another register than its own", "Program", "fetch", || {
            let mut p = honest(&[li(5, 1), li(6, 2), addi(7, 5, 0)]);
            p.at(3).set("rs1", 6).set("x", 2).set("zl", 2).set("l1", 1);
            p.last(5, 6, 1).last(6, 12, 2).last(7, 14, 2);
            p
        }),
        ("a load that writes in the past what it loads", "Program", "imm exact", || {
            // A pointer is stored and loaded. The load sends a value that is not a word back to the store, and its
            // register, which is in the past, is made up for by an immediate that only such a value allows.
            let body = |f| {
                let data = lui(8, DATA);
                [
                    lui(5, DATA),
                    data,
                    store(2, 5, 8, 0),
                    branch(f, 5, 8, 8),
                    li(10, 1),
                    load(2, 5, 5, 0),
                ]
            };
            let mut p = as_if(&code(&body(0)), &code(&body(1)));
            let imm = fraction(64 * 19, power(60));
            let value = Fr::from(DATA) - imm;
            p.at(3).set("y", value).set("l2", 5);
            let inverse = (value - Fr::from(DATA)).inverse().unwrap();
            p.at(4).set("t", 0).set("x", value).set("iv", inverse);
            let load = p.at(6).set("x", value).set("v", value).set("imm", imm);
            load.set("rd", negative(5 - 64 * 19)).set("ld", 0).set("vd", DATA);
            p.cell(DATA, 6, value).last(5, 24, value);
            p
        }),
        ("the same in TinyRAM, to another answer", "Program", "imm exact", || {
            let mut p = tiny(
                "mov r1, 0x11000000\nstore.w 0x11000000, r1\ncmpe r1, 0x11000000\nload.w r1, r1\n\
                 mov r2, 0\ncmov r2, 1\nanswer r2",
            );
            let imm = fraction(64 * 11, power(60));
            let value = Fr::from(DATA) - imm;
            p.at(2).set("y", value).set("l2", 1);
            p.at(3).set("x", value).set("t", 0).set("iv", -imm.inverse().unwrap());
            let load = p.at(4).set("x", value).set("v", value).set("imm", imm);
            load.set("rd", negative(1 - 64 * 11)).set("ld", 0).set("vd", DATA);
            p.at(6).set("flag", 0);
            p.cell(DATA, 4, value).last(1, 16, value).last(2, 29, 0).last(16, 27, 0);
            p.code = 0;
            p
        }),
        (
            "a jump to a place that is no word, and on to code out of reach",
            "Range(16)",
            "target",
            || {
                // From there on, the prover chooses the rows: they send back the place of the jump, and a flag
                // that is not a bit, which leads to the row of the last instruction.
                let mut p = tiny(
                    "mov r1, 40\njmp r1\nmov r0, r5\nmov r2, r7\nmov r15, r7\nanswer 0\nanswer 1\n\
                 mov r9, 48",
                );
                let past = 1 - 64 * 7;
                let place =
                    Fr::from(16u64) + power(100) * Fr::from(4u64) - power(160) * negative(past);
                let rows = p.program.code().flat_map(|(pc, decoded)| decoded.rows(pc));
                let row = rows.into_iter().find(|row| row[1] == Fr::from(48u64)).unwrap();
                let flag = (row[0] - place - Fr::from(24u64)) * power(32).inverse().unwrap();
                let flag = flag - Fr::from(112u64);
                p.at(2).set("y", place).set("l2", 1);
                for (cycle, at, (source, gap), (register, old, before), value) in [
                    (3u64, 0u64, (1i64, 3), (0i64, 40u32, 0), place),
                    (4, 8, (3, 5), (2, 0, 10), flag),
                    (5, 16, (3, 3), (15, 0, 14), flag),
                ] {
                    let op = p.more(Chip::TinyMove, cycle).set("pc", place + Fr::from(at));
                    op.set("rs2", negative(source)).set("rd", negative(past + register));
                    op.set("y", value).set("vd", old).set("l2", gap).set("ld", before);
                }
                let op =
                    p.more(Chip::TinyBranch, 6).set("pc", place + Fr::from(24u64)).set("imm", 48);
                op.set("flag", flag).set("lf", 27 - 15 - 1);
                p.last(1, 13, place).last(3, 21, flag).last(16, 27, flag).last(17, 29, 0);
                (p.exit, p.operand, p.code) = ((48, 7, [0, 0]), (ZERO, 1), 1);
                for word in 0..OUTPUT_WORDS as u32 {
                    p.cell(OUTPUT + 4 * word, 8, 0);
                }
                p
            },
        ),
        ("a shift reads x0, made up for by a factor in the key", "Program", "imm exact", || {
            let mut p = honest(&[li(5, 3), i(0x13, 1, 7, 5, 2)]);
            let imm = Fr::from(4u64) + fraction(5, power(IMMEDIATE)) * power(40);
            let op = p.at(2).set("rs1", 0).set("x", 0).set("imm", imm).set("l1", 8 - 1);
            op.set("lo", 0).set("hi", 0).set("lol", 0).set("hil", 0);
            p.last(5, 6, 3).last(0, 8, 0).last(7, 10, 0);
            p
        }),
        ("a flag of 1 + 1280, which carries into the register", "flag", "flag", || {
            let mut p = honest(&[li(5, 3), r(0, 6, 7, 5, 6)]);
            let op = p.at(2).set("f1", 1 + 5 * 256).set("rs1", 0).set("x", 0).set("w", 0);
            op.set("p1", 0).set("p2", 0).set("p3", 0).set("zl", 0).set("l1", 8 - 1);
            p.last(5, 6, 3).last(0, 8, 0).last(7, 10, 0);
            p
        }),
        ("enable bits 1 and -1: two refreshes whose limbs cancel", "en", "en", || {
            let mut p = honest(&[li(5, 1), addi(6, 5, 0), li(5, 7)]);
            p.at(3).set("vd", 1).set("ld", 14 - 6 - 1);
            p.refresh(1, 5 + 64 * 14, 7, negative(-8));
            p.refresh(-1, 9 + 64 * 7, 0, negative(-8));
            p.at(2).set("x", 7).set("zl", 7).set("l1", 0);
            p.last(5, 8, 7).last(6, 10, 7).last(9, 7, 0);
            p
        }),
        ("a load from another address, by a carry that is no bit", "carry", "carry", || {
            let words = code(&[lui(5, INPUT), load(2, 6, 5, 4)]);
            let mut p = Proof::of(&words, &[11, 0, 0, 0, 22, 0, 0, 0]);
            p.at(2).set("c", fraction(-4, power(32))).set("v", 22);
            p.cell(INPUT + 4, 0, 11).cell(INPUT + 8, 2, 22).last(6, 10, 22);
            p
        }),
        ("a load sees a store that comes later", "Range(16)", "mem gap", || {
            let mut p = honest(&[lui(5, DATA), load(2, 6, 5, 0), li(7, 9), store(2, 7, 5, 0)]);
            p.at(2).set("v", 9).set("m0", negative(2 - 1 - 4)).set("m1", 0);
            p.at(4).set("v", 0).set("m0", 3).set("m1", 0);
            p.cell(DATA, 2, 9).last(6, 10, 9);
            p
        }),
        ("a load sees the value before the last store", "memory", "", || {
            let mut p = honest(&[lui(5, DATA), li(7, 9), store(2, 7, 5, 0), load(2, 6, 5, 0)]);
            p.at(4).set("v", 0).set("m0", 3);
            p.last(6, 18, 0);
            p
        }),
        ("two initial entries for one address", "rising", "rising", || {
            let mut p = honest(&[lui(5, DATA), li(7, 9), store(2, 7, 5, 0), load(2, 6, 5, 0)]);
            p.at(4).set("v", 0).set("m0", 3);
            p.zero = vec![DATA / 4; 2];
            p.cell(DATA, 3, 9).last(6, 18, 0);
            p.others.push([Fr::from(DATA / 4) + power(32) * Fr::from(4u64), Fr::zero()]);
            p
        }),
        ("a cell of the image once more as a zero cell", "rising", "rising", || {
            let mut p = honest(&[lui(5, 0x1_0000), load(2, 6, 5, 0)]);
            p.at(2).set("v", 0);
            p.zero = vec![0x1_0000 / 4];
            let first = p.program.image[0];
            p.cell(0x1_0000, 0, first).last(6, 10, 0);
            p.others.push([Fr::from(0x1_0000u32 / 4) + power(32) * Fr::from(2u64), Fr::zero()]);
            p
        }),
        ("a cell of the input once more as a zero cell", "last", "last", || {
            let mut p = Proof::of(&code(&[lui(5, INPUT), load(2, 6, 5, 4)]), &[11, 0, 0, 0]);
            p.at(2).set("v", 0);
            p.zero = vec![INPUT / 4 + 1];
            p.cell(INPUT + 4, 0, 11).last(6, 10, 0);
            p.others.push([Fr::from(INPUT / 4 + 1) + power(32) * Fr::from(2u64), Fr::zero()]);
            p
        }),
        ("an input word that is a fraction", "input range", "input range", || {
            let mut p = Proof::of(&code(&[lui(5, INPUT), load(2, 6, 5, 4)]), &[11, 0, 0, 0]);
            let third = fraction(1, Fr::from(3u64));
            p.input[1] = third;
            p.at(2).set("v", third);
            p.cell(INPUT + 4, 2, third).last(6, 10, third);
            p
        }),
        ("a branch on an equality that is not there", "eq", "eq", || {
            let body = |f| [li(5, 1), li(6, 2), branch(f, 5, 6, 8), li(7, 1)];
            let mut p = as_if(&code(&body(0)), &code(&body(1)));
            p.at(3).set("t", 1);
            p
        }),
        ("an unsigned comparison the wrong way", "Range(16)", "lt range", || {
            let body = |f| [li(5, 1), li(6, 2), branch(f, 5, 6, 8), li(7, 1)];
            let mut p = as_if(&code(&body(6)), &code(&body(7)));
            p.at(3).set("t", 0);
            p
        }),
        ("a signed comparison with a wrong sign bit", "Range(15)", "sign", || {
            let body = |f| [li(5, -1), li(6, 2), branch(f, 5, 6, 8), li(7, 1)];
            let mut p = as_if(&code(&body(4)), &code(&body(5)));
            p.at(3).set("t", 0).set("sx", 0).set("dl", (u32::MAX - 2) & 0xffff);
            p
        }),
        ("a wrong AND", "Logic", "logic", || {
            let mut p = honest(&[li(5, 12), li(6, 10), r(0, 7, 7, 5, 6)]);
            p.at(3).set("w", 9).set("zl", 9);
            p.last(7, 14, 9);
            p
        }),
        ("AND of other operands, made up for by a fraction", "Range(16)", "z range", || {
            let mut p = honest(&[li(5, 12), li(6, 10), r(0, 7, 7, 5, 6)]);
            let w = Fr::from(3u64) + fraction(7 - 12, power(80)) + fraction(11 - 10, power(40));
            p.at(3).set("w", w);
            p.last(7, 14, w);
            p
        }),
        ("a product with 2^32 too much below", "Range(16)", "product range", || {
            let mut p = honest(&[li(5, 3), li(6, 5), r(1, 0, 7, 5, 6)]);
            let low = Fr::from(15u64) + power(32);
            p.at(3).set("lo", low).set("hi", negative(-1));
            p.last(7, 14, low);
            p
        }),
        ("7 / 2 = 2, remainder 3", "Range(16)", "remainder", || {
            let mut p = honest(&[li(5, 7), li(6, 2), r(1, 5, 7, 5, 6)]);
            p.at(3).set("Q", 2).set("ql", 2).set("R", 3).set("Rl", 3).set("rl", 3);
            p.last(7, 14, 2);
            p
        }),
        ("a shift by 0 instead of 1, the rest of which is 1/32", "Range(15)", "shamt", || {
            let mut p = honest(&[li(5, 3), li(6, 1), r(0, 1, 7, 5, 6)]);
            p.at(3).set("sh", 0).set("p", 1).set("lo", 3).set("lol", 3).set("h0", 0);
            p.last(7, 14, 3);
            p
        }),
        ("flags of a shift that are those of none", "Program", "fetch", || {
            let mut p = honest(&[li(5, 3), li(6, 1), r(0, 5, 7, 5, 6)]);
            let op = p.at(3).set("d", 0).set("a", 1).set("p", 2).set("lo", 6).set("hi", 0);
            op.set("lol", 6).set("hil", 0);
            p.last(7, 14, 6);
            p
        }),
        ("a byte of 0x111", "Range(8)", "bytes", || {
            let words = code(&[lui(5, INPUT), load(4, 6, 5, 4)]);
            let mut p = Proof::of(&words, &[0x11, 0x22, 0x33, 0x44]);
            p.at(2).set("b0", 0x111);
            p.last(6, 10, 0x111);
            p
        }),
        ("another immediate than the program has", "Program", "fetch", || {
            let mut p = honest(&[li(5, 1), addi(7, 5, 3)]);
            p.at(2).set("imm", 4).set("zl", 5);
            p.last(7, 10, 5);
            p
        }),
        ("an instruction left out", "state", "", || {
            let mut p = honest(&[li(5, 1), li(7, 3)]);
            p.ops.retain(|op| op.get("k") != Some(Fr::from(2u64)));
            p.last(7, 0, 0);
            p
        }),
        ("another public output than the memory has", "public", "public", || {
            let mut p = honest(&[]);
            p.public_output[0] = Fr::ONE;
            p
        }),
        ("another public output, with another value in memory", "memory", "", || {
            let mut p = honest(&[]);
            (p.public_output[0], p.output[0]) = (Fr::ONE, Fr::ONE);
            p
        }),
        ("another system call taken for an exit", "registers", "a7", || {
            let mut p = as_if(&[li(17, 64), ECALL], &[li(17, SYS_EXIT as i32), ECALL]);
            p.at(1).set("imm", 64);
            p.last(17, 9, 64);
            p
        }),
        ("a call that reads its own result", "Range(16)", "mem gap", || {
            // a = a + 0 mod 7 is 5 if a was read as 5, after it was written.
            let mut body = vec![lui(10, DATA), addi(11, 10, 0), lui(12, INPUT), addi(12, 12, 4)];
            body.extend([addi(13, 10, 64), addi(14, 12, 32), li(17, 1003), ECALL]);
            let mut input = [0; 64];
            (input[0], input[32]) = (1, 7);
            let mut p = Proof::of(&code(&body), &input);
            let call = p.at(8).set_nth("v", 8, 5).set_nth("m0", 8, negative(8 - 12 - 1));
            call.set_nth("w", 0, 5).set_nth("m0", 0, 11).set_nth("rl", 0, 5).set_nth("d", 0, 1);
            p.cell(DATA, 8, 5);
            p
        }),
        ("a call that makes another word", "function", "function", || {
            let mut p = honest(&[lui(10, DATA), li(17, 1002), ECALL]);
            p.at(3).set_nth("w", 49, 7);
            p.cell(DATA + 4 * 49, 3, 7);
            p
        }),
        ("another exit code", "registers", "", || {
            let mut p = honest(&[li(10, 3)]);
            p.code = 4;
            p
        }),
    ];
    for (name, refused_by, check, forgery) in all {
        let found = forgery().check("");
        assert_eq!(found, Err(refused_by.to_owned()), "{name}");
        // Others have no single check that stands in their way: whole buses do.
        if !check.is_empty() {
            assert_eq!(forgery().check(check), Ok(()), "{name} without '{check}'");
        }
    }
}
