//! Exhaustive search for forgeries: the rows of each chip with words of four bits. Operands, immediate and
//! the word in memory are given, since buses make them exact; every other committed value is unknown. The
//! search branches over all rows of tables and solves the linear rows, so it finds all results that the rows
//! allow. There must be one, that of the instruction.

use crate::chips::{self, ADDRESS_BITS};
use crate::form::Form;
use crate::isa::{Chip, Isa, OPCODE};
use crate::precompile::{Call, Precompile};
use crate::tables::{logic_rows, powers_rows};
use crate::template::{Asked, Builder, Row, Source, Taken, Template, Variable};
use crate::word::{Word, number, power};
use ark_ff::{Field, One, Zero};
use hekaton_circuit::Fr;
use std::collections::{BTreeSet, HashMap};

pub(super) const WORD: Word = Word(4);
pub(super) const MODULUS: i128 = 16;
/// The control tries every fifth input where there are more than a few.
const STEP: usize = 5;
const FEW: usize = 100;

/// A constraint between unknowns.
#[derive(Clone)]
enum Constraint {
    /// The form is zero.
    Zero(Form),
    /// a b = c
    Product(Form, Form, Form),
    /// The key and the value are a row of a list.
    InList(usize, Form, Form),
}

/// The lists, and the values of the outputs that were found: `None` for one that may be anything.
struct Search {
    lists: Vec<Vec<[Fr; 2]>>,
    found: BTreeSet<Vec<Option<Fr>>>,
}

/// Puts a form in place of an unknown.
fn substitute(form: &Form, unknown: usize, by: &Form) -> Form {
    match form.terms.iter().find(|(index, _)| *index == unknown) {
        None => form.clone(),
        Some((_, factor)) => {
            let term = Form { constant: Fr::zero(), terms: vec![(unknown, *factor)] };
            (form - term) + by * *factor
        }
    }
}

impl Constraint {
    fn forms(&mut self) -> Vec<&mut Form> {
        match self {
            Self::Zero(a) => vec![a],
            Self::Product(a, b, c) => vec![a, b, c],
            Self::InList(_, a, b) => vec![a, b],
        }
    }
}

impl Search {
    /// Finds all values of the outputs.
    fn solve(&mut self, mut constraints: Vec<Constraint>, mut outputs: Vec<Form>) {
        // Linear rows first: each one gives an unknown as a form of the others.
        loop {
            let alone: BTreeSet<usize> = constraints
                .iter()
                .filter_map(|constraint| match constraint {
                    Constraint::InList(_, key, _) => key.as_variable(),
                    _ => None,
                })
                .collect();
            let is_free = |unknown: usize| !alone.contains(&unknown);
            let mut next: Option<(usize, Form)> = None;
            let mut rest = Vec::with_capacity(constraints.len());
            for constraint in constraints {
                let constraint = match constraint {
                    Constraint::Product(a, b, c) if a.terms.is_empty() => {
                        Constraint::Zero(b * a.constant - c)
                    }
                    Constraint::Product(a, b, c) if b.terms.is_empty() => {
                        Constraint::Zero(a * b.constant - c)
                    }
                    other => other,
                };
                match constraint {
                    Constraint::Zero(form) => match form.terms.first() {
                        None if form.constant.is_zero() => {}
                        None => return,
                        Some(_) if next.is_none() => {
                            // One that may be any number, if there is one: others are few when it is their turn.
                            let place = form
                                .terms
                                .iter()
                                .position(|(unknown, _)| is_free(*unknown))
                                .unwrap_or(0);
                            let (unknown, factor) = &form.terms[place];
                            let inverse = match factor.is_one() {
                                true => *factor,
                                false => factor.inverse().unwrap(),
                            };
                            let unknown = *unknown;
                            let mut others = form.clone();
                            others.terms.remove(place);
                            next = Some((unknown, others * -inverse));
                        }
                        Some(_) => rest.push(Constraint::Zero(form)),
                    },
                    Constraint::InList(list, key, value)
                        if key.terms.is_empty() && value.terms.is_empty() =>
                    {
                        let pair = [key.constant, value.constant];
                        if !self.lists[list].contains(&pair) {
                            return;
                        }
                    }
                    other => rest.push(other),
                }
            }
            constraints = rest;
            let Some((unknown, by)) = next else { break };
            for form in constraints.iter_mut().flat_map(Constraint::forms).chain(&mut outputs) {
                *form = substitute(form, unknown, &by);
            }
        }
        // Then the list with the fewest unknowns and rows.
        let weight = |constraint: &Constraint| match constraint {
            Constraint::InList(list, key, value) => {
                Some((key.terms.len() + value.terms.len(), self.lists[*list].len()))
            }
            _ => None,
        };
        let all = constraints.iter().enumerate();
        let best = all.filter_map(|(i, c)| Some((weight(c)?, i))).min().map(|(_, i)| i);
        let Some(best) = best else {
            let value = |form: &Form| form.terms.is_empty().then_some(form.constant);
            self.found.insert(outputs.iter().map(value).collect());
            return;
        };
        let Constraint::InList(list, key, value) = constraints.swap_remove(best) else {
            unreachable!()
        };
        for [k, v] in self.lists[list].clone() {
            let mut more = constraints.clone();
            more.push(Constraint::Zero(&key - Form { constant: k, terms: Vec::new() }));
            more.push(Constraint::Zero(&value - Form { constant: v, terms: Vec::new() }));
            self.solve(more, outputs.clone());
        }
    }
}

/// The input of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    pub(super) x: i128,
    pub(super) y: i128,
    pub(super) imm: i128,
    pub(super) word: i128,
    /// The previous value of the register that is written, and the flag of TinyRAM.
    pub(super) old: i128,
    pub(super) flag: i128,
}

/// The results that the rows of a chip allow, without the row with this number: the next pc, what is written
/// to the register, the address of the access, and the word that is left there; as far as the chip has them.
/// For a chip of TinyRAM, all registers that it accesses. The instruction is at pc 0.
fn results(
    chip: Chip,
    template: &Template,
    variant: u8,
    given: Given,
    without: Option<usize>,
) -> BTreeSet<Vec<Option<Fr>>> {
    let value = |variable: &Variable| match variable.name {
        "x" => Some(given.x),
        "y" => Some(given.y),
        "imm" => Some(given.imm),
        "v" => Some(given.word),
        "vd" => Some(given.old),
        "flag" => Some(given.flag),
        "pointer" => match variable.source {
            // Behind the words, of which all operands have as many.
            Source::Access(access, _) => Some([given.imm, given.old, given.flag][access % 5]),
            _ => unreachable!("pointers are in accesses"),
        },
        _ => None,
    };
    solutions(chip, template, variant, value, without)
}

/// [`results`] with the variables whose values are given. Without an instruction, the results are the words that are made.
pub(super) fn solutions(
    chip: Chip,
    template: &Template,
    variant: u8,
    given: impl Fn(&Variable) -> Option<i128>,
    without: Option<usize>,
) -> BTreeSet<Vec<Option<Fr>>> {
    let mut places: HashMap<Asked, usize> = HashMap::new();
    let mut lists: Vec<Vec<[Fr; 2]>> = Vec::new();
    let mut list = |asked: Asked| {
        *places.entry(asked).or_insert_with(|| {
            let keys = |list: Vec<Fr>| list.into_iter().map(|key| [key, Fr::zero()]).collect();
            lists.push(match asked {
                Asked::Range(bits) => keys((0..1u64 << bits).map(Fr::from).collect()),
                Asked::Logic => keys(logic_rows(template.word)),
                Asked::Powers => powers_rows(template.word),
                // The places where a program has instructions.
                Asked::Program => keys((0..MODULUS as u64).step_by(4).map(Fr::from).collect()),
            });
            lists.len() - 1
        })
    };
    let fixed = |value: Fr| Form { constant: value, terms: Vec::new() };
    let mut constraints = Vec::new();
    for (index, variable) in template.variables.iter().enumerate() {
        let value = match variable.name {
            "en" => 1,
            "pc" | "k" | "rs1" | "rs2" | "rd" | "l1" | "l2" | "ld" | "lf" | "lp" | "m0" | "m1" => 0,
            _ => match given(variable) {
                Some(value) => value,
                None => continue,
            },
        };
        assert!(!matches!(variable.source, Source::Product(..)));
        constraints.push(Constraint::Zero(Form::variable(index) - fixed(number(value))));
    }
    let (mut next, mut memory, mut given_registers) = (None, Vec::new(), Vec::new());
    for (place, (_, row)) in template.rows.iter().enumerate() {
        match row {
            // The row of the instruction.
            Row::Ask { table: Asked::Program, key, .. } => {
                let expected = number(i128::from(8 * chip.number() + variant)) * power(OPCODE);
                constraints.push(Constraint::Zero(key - fixed(expected)));
            }
            Row::Entry { bus, key, value, gives: true, .. } => match bus {
                Taken::State => next = Some(key.clone()),
                Taken::Registers => given_registers.push(value.clone()),
                Taken::Memory => memory.extend([key.clone(), value.clone()]),
            },
            Row::Entry { .. } => {}
            _ if Some(place) == without => {}
            Row::Product { a, b, c } => {
                let is_bit = *c == fixed(Fr::zero()) && a + b == fixed(Fr::one());
                constraints.push(match is_bit {
                    true => Constraint::InList(list(Asked::Range(1)), a.clone(), c.clone()),
                    false => Constraint::Product(a.clone(), b.clone(), c.clone()),
                });
            }
            Row::Ask { table, key, value } => {
                constraints.push(Constraint::InList(list(*table), key.clone(), value.clone()));
            }
        }
    }
    let Some(next) = next else {
        let outputs = template.made.iter().map(|made| Form::variable(*made)).collect();
        let mut search = Search { lists, found: BTreeSet::new() };
        search.solve(constraints, outputs);
        return search.found;
    };
    if chip == Chip::JumpReg {
        // The next instruction has a row.
        let place = list(Asked::Program);
        constraints.push(Constraint::InList(place, next.clone(), fixed(Fr::zero())));
    }
    let mut outputs = vec![next];
    match chip.isa() {
        Isa::TinyRam => outputs.extend(given_registers),
        Isa::Rv32im if Precompile::of(chip).is_some() => outputs.extend(given_registers),
        Isa::Rv32im if chip.writes() => outputs.push(given_registers.pop().unwrap()),
        Isa::Rv32im => {}
    }
    outputs.extend(memory);
    let mut search = Search { lists, found: BTreeSet::new() };
    search.solve(constraints, outputs);
    search.found
}

pub(super) fn signed(value: i128) -> i128 {
    if value >= MODULUS / 2 { value - MODULUS } else { value }
}

/// Returns the effect of an instruction, with words of four bits: `None` if it traps, or for the other outcome of a
/// branch.
fn expected(chip: Chip, variant: u8, given: Given) -> Option<Vec<i128>> {
    let Given { x, y, imm, word, .. } = given;
    let wrap = |value: i128| value.rem_euclid(MODULUS);
    let operand = y + imm;
    let (address, amount) = (wrap(x + imm), operand & 3);
    let (bit, half) = (word >> (address & 3) & 1, word >> (address & 2) & 3);
    let extend = |value: i128, bits: u32| wrap(value - (value >> (bits - 1) << bits));
    let written = |value: i128| Some(vec![4, wrap(value)]);
    let holds = |condition: bool| (condition == (variant == 1)).then(|| vec![imm]);
    match chip {
        Chip::Li => written(imm),
        Chip::AddImm => written(x + imm),
        Chip::Add => written(if variant == 0 { x + y } else { x - y }),
        Chip::Logic => written(match variant {
            0 => x & operand,
            1 => x | operand,
            _ => x ^ operand,
        }),
        Chip::ShiftImm => written(if variant == 0 { x * imm } else { x * imm / MODULUS }),
        Chip::Shift => written(match variant {
            0 => x << amount,
            1 => x >> amount,
            _ => signed(x) >> amount,
        }),
        Chip::SetLess if variant == 0 => written((x < operand).into()),
        Chip::SetLess => written((signed(x) < signed(operand)).into()),
        Chip::BranchEqual => holds(x == y),
        Chip::BranchBelow => holds(x < y),
        Chip::BranchLess => holds(signed(x) < signed(y)),
        Chip::Jump => Some(vec![imm, 4]),
        Chip::JumpReg => (address & 2 == 0).then(|| vec![address & !1, 4]),
        Chip::LoadWord => (address & 3 == 0).then(|| vec![4, word, address >> 2, word]),
        Chip::StoreWord => (address & 3 == 0).then(|| vec![4, address >> 2, y]),
        Chip::LoadByte => Some(vec![4, bit, address >> 2, word]),
        Chip::LoadPart => match variant {
            0 => Some(vec![4, extend(bit, 1), address >> 2, word]),
            _ if address & 1 == 1 => None,
            1 => Some(vec![4, extend(half, 2), address >> 2, word]),
            _ => Some(vec![4, half, address >> 2, word]),
        },
        Chip::StorePart => {
            let mask = if variant == 0 { 1 } else { 3 } << (address & 3);
            let left = word & !mask | y << (address & 3) & mask;
            (variant == 0 || address & 1 == 0).then(|| vec![4, address >> 2, left])
        }
        Chip::Multiply => written(if variant == 0 { x * y } else { x * y / MODULUS }),
        Chip::MultiplyHigh => {
            let other = if variant == 0 { signed(y) } else { y };
            written((signed(x) * other).div_euclid(MODULUS))
        }
        Chip::Divide => {
            let (a, b) = if variant & 1 == 0 { (signed(x), signed(y)) } else { (x, y) };
            written(match (variant >> 1, b) {
                (0, 0) => -1,
                (_, 0) => x,
                (0, _) => a / b,
                _ => a % b,
            })
        }
        _ => unreachable!("a chip of RV32IM"),
    }
}

fn variants(chip: Chip) -> &'static [u8] {
    match chip {
        Chip::Li | Chip::AddImm | Chip::Jump | Chip::JumpReg => &[0],
        Chip::LoadWord | Chip::StoreWord | Chip::LoadByte => &[0],
        Chip::Sha256 | Chip::Keccak | Chip::MulMod256 | Chip::MulMod384 => &[0],
        Chip::Logic | Chip::LoadPart => &[0, 1, 2],
        Chip::Shift => &[0, 1, 3],
        Chip::Divide => &[0, 1, 2, 3],
        _ => &[0, 1],
    }
}

/// All inputs of a chip; of those with a word in memory, some.
fn inputs(chip: Chip, variant: u8) -> Vec<Given> {
    let all = || 0..MODULUS;
    let two = |f: &dyn Fn(i128, i128) -> Given| -> Vec<Given> {
        all().flat_map(|a| all().map(move |b| (a, b))).map(|(a, b)| f(a, b)).collect()
    };
    let nothing = Given::default();
    match chip {
        Chip::Li | Chip::Jump => all().map(|imm| Given { imm, ..nothing }).collect(),
        Chip::Keccak => all().map(|x| Given { x, word: 5, ..nothing }).collect(),
        Chip::Sha256 => two(&|x, y| Given { x, y, word: 5, ..nothing }),
        // Each of five pointers alone, and all of them together.
        Chip::MulMod256 | Chip::MulMod384 => all()
            .flat_map(|pointer| {
                (0..6).map(move |which| {
                    let of = |at: i128| {
                        if which == at || which == 5 { pointer } else { 4 * at % MODULUS }
                    };
                    let [x, y, imm, old, flag] = [0, 1, 2, 3, 4].map(of);
                    Given { x, y, imm, old, flag, word: 5 }
                })
            })
            .collect(),
        Chip::AddImm | Chip::JumpReg => two(&|x, imm| Given { x, imm, ..nothing }),
        Chip::ShiftImm => {
            let factors = 1..WORD.0;
            let factor = |sh: u32| if variant == 0 { 1 << sh } else { 1 << (WORD.0 - sh) };
            factors
                .flat_map(|sh| all().map(move |x| Given { x, imm: factor(sh), ..nothing }))
                .collect()
        }
        Chip::BranchEqual | Chip::BranchBelow | Chip::BranchLess => {
            two(&|x, y| Given { x, y, imm: 8, ..nothing })
        }
        Chip::LoadWord | Chip::LoadByte | Chip::LoadPart => {
            two(&|a, word| Given { x: a, imm: (a * 7 + word) % MODULUS, word, ..nothing })
        }
        Chip::StoreWord | Chip::StorePart => two(&|a, y| {
            let (x, word) = ((a * 5 + y) % MODULUS, (3 * a + y) % MODULUS);
            Given { x, y, imm: a, word, ..nothing }
        }),
        // Immediate forms have x0 as second register.
        Chip::Logic | Chip::SetLess | Chip::Shift => {
            let mut list = two(&|x, y| Given { x, y, ..nothing });
            list.extend(all().map(|imm| Given { x: 11, imm, ..nothing }));
            list
        }
        _ => two(&|x, y| Given { x, y, ..nothing }),
    }
}

/// Returns the values of an ECALL: all registers that it reads, then all words, at the pointers. What it leaves in
/// words that it changes may be anything, as far as these rows are concerned.
fn wanted_of_call(call: Call, given: Given) -> BTreeSet<Vec<Option<Fr>>> {
    let Call { number: called, changed, read } = call;
    let mut values = vec![Some(4), Some(0)];
    let mut words = Vec::new();
    // What it changes is accessed in the last of its cycles.
    let last = i128::from(call.cycles() - 1) << ADDRESS_BITS;
    let mut take = |pointer: i128, count: usize, value: Option<i128>| {
        words.extend((0..).take(count).flat_map(|word| [Some((pointer >> 2) + word), value]));
        pointer & 3 == 0
    };
    let mut is_aligned = take(given.x + 4 * last, changed, None);
    let pointers = [given.y, given.imm, given.old, given.flag];
    for ((cycle, pointer), count) in (0..).zip(pointers).zip(read) {
        values.push(Some(pointer));
        is_aligned &= take(pointer + (cycle << (ADDRESS_BITS + 2)), *count, Some(given.word));
    }
    values.push(Some(called.into()));
    let values = values.into_iter().chain(words).map(|value| value.map(number));
    is_aligned.then(|| values.collect()).into_iter().collect()
}

fn wanted(chip: Chip, variant: u8, given: Given) -> BTreeSet<Vec<Option<Fr>>> {
    if let Some(precompile) = Precompile::of(chip) {
        return wanted_of_call(precompile.call(), given);
    }
    let values = |values: Vec<i128>| values.into_iter().map(|v| Some(number(v))).collect();
    expected(chip, variant, given).map(values).into_iter().collect()
}

type Variants = fn(Chip) -> &'static [u8];
type Inputs = fn(Chip, u8) -> Vec<Given>;
type Wanted = fn(Chip, u8, Given) -> BTreeSet<Vec<Option<Fr>>>;

/// The rows of a chip; of a call, without the rows that tie results to what is given.
fn template_of(chip: Chip) -> Template {
    match Precompile::of(chip) {
        Some(precompile) => {
            let mut builder = Builder::new(WORD);
            chips::call(&mut builder, chip, precompile.call());
            builder.finish()
        }
        None => chips::template(chip, WORD),
    }
}

/// The rows of each chip allow, on all inputs, what is wanted and nothing else.
pub(super) fn assert_exact(isa: Isa, variants: Variants, inputs: Inputs, wanted: Wanted) {
    for chip in isa.chips().iter().copied() {
        let template = template_of(chip);
        for variant in variants(chip) {
            for given in inputs(chip, *variant) {
                let found = results(chip, &template, *variant, given, None);
                assert_eq!(found, wanted(chip, *variant, given), "{chip:?} {variant} {given:?}");
            }
        }
    }
}

/// The rows without which nothing else is allowed.
pub(super) fn spare_rows(
    isa: Isa,
    variants: Variants,
    inputs: Inputs,
    wanted: Wanted,
) -> Vec<(Chip, &'static str)> {
    let mut spare = Vec::new();
    for chip in isa.chips().iter().copied() {
        let template = template_of(chip);
        for (row, (name, kind)) in template.rows.iter().enumerate() {
            if matches!(kind, Row::Entry { .. } | Row::Ask { table: Asked::Program, .. })
                || matches!(*name, "gap" | "mem gap")
            {
                continue;
            }
            let forged = variants(chip).iter().any(|variant| {
                let inputs = inputs(chip, *variant);
                let step = if inputs.len() > FEW { STEP } else { 1 };
                inputs.into_iter().step_by(step).any(|given| {
                    let found = results(chip, &template, *variant, given, Some(row));
                    found != wanted(chip, *variant, given)
                })
            });
            if !forged {
                spare.push((chip, *name));
            }
        }
    }
    spare
}

/// Every chip and every instruction: the rows allow the right result, and no other.
#[test]
fn chips_allow_what_instructions_do() {
    assert_exact(Isa::Rv32im, variants, inputs, wanted);
}

/// Control: without any one of its rows, a chip allows something else, but for rows that the search cannot
/// need: flags, which guard the digits of registers, given here; signs and results of comparisons whose
/// ranges allow no other number; and the range of a jump, which bounds the immediate, given here, too.
#[test]
#[ignore = "minutes: in scripts/test --all"]
fn every_row_of_a_chip_is_needed() {
    let spare = spare_rows(Isa::Rv32im, variants, inputs, wanted);
    let flags = [Chip::Add, Chip::ShiftImm, Chip::Shift, Chip::SetLess];
    let mut expected: Vec<_> = flags.into_iter().map(|chip| (chip, "flag")).collect();
    expected.extend([(Chip::BranchBelow, "lt bit"), (Chip::BranchLess, "lt bit")]);
    expected.extend([(Chip::JumpReg, "z range"), (Chip::JumpReg, "z range")]);
    expected.push((Chip::LoadPart, "sign bit"));
    let flags = [Chip::StorePart, Chip::Multiply, Chip::MultiplyHigh];
    expected.extend(flags.into_iter().map(|chip| (chip, "flag")));
    assert_eq!(spare, expected);
}
