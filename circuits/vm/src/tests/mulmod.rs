//! a b + c mod m: what the calls compute, and an exhaustive search for forgeries with short numbers.

use super::assembler::*;
use super::attacks::{Lie, Refused, refused};
use super::instructions::execution;
use super::search::solutions;
use super::unique::tied;
use crate::chips::remainder;
use crate::form::Form;
use crate::mulmod::{CARRY_BITS, Numbers};
use crate::op::{Access, Op};
use crate::precompile::Precompile;
use crate::sizes::template_of;
use crate::template::{Asked, Builder, Row, Source, Template, Variable};
use crate::word::Word;
use crate::{Chip, Input, Program, RunError, TrapReason, run};
use ark_bls12_381::Fq;
use ark_ff::{BigInteger, PrimeField};
use hekaton_circuit::Fr;
use num_bigint::BigUint;
use std::collections::BTreeSet;

/// The words of a number.
fn words(number: &BigUint, count: usize) -> Vec<u32> {
    let mut words = number.to_u32_digits();
    words.resize(count, 0);
    words
}

fn words_of(number: impl PrimeField) -> Vec<u32> {
    let bytes = number.into_bigint().to_bytes_le();
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Numbers that look random, from a seed.
fn numbers<F: PrimeField>(seed: u64) -> impl Iterator<Item = F> {
    (seed..).map(|n| F::from(n + 3).pow([0x1234_5678_9abc, 0xdef0_1234_5678]))
}

fn computed(precompile: Precompile, operands: [&[u32]; 4]) -> Option<Vec<u32>> {
    let given = [&vec![7; operands[0].len()], operands[0], operands[1], operands[2], operands[3]];
    precompile.compute(&given.concat())
}

/// In prime fields, the calls compute what fields do.
#[test]
fn calls_compute_as_fields_do() {
    fn field<F: PrimeField>(precompile: Precompile) {
        let modulus = F::MODULUS.to_bytes_le();
        let modulus = words(&BigUint::from_bytes_le(&modulus), precompile.call().changed);
        let all: Vec<F> = numbers(0).take(60).chain([F::zero(), F::one(), -F::one()]).collect();
        for three in all.windows(3) {
            let [a, b, c] = [0, 1, 2].map(|i| words_of(three[i]));
            let found = computed(precompile, [&a, &b, &c, &modulus]).unwrap();
            assert_eq!(found, words_of(three[0] * three[1] + three[2]));
        }
    }
    field::<Fr>(Precompile::MulMod256);
    field::<Fq>(Precompile::MulMod384);
}

/// Operands that are no residues: defined as long as the quotient has no more words than the modulus.
#[test]
fn operands_may_be_above_the_modulus() {
    for (precompile, count) in [(Precompile::MulMod256, 8), (Precompile::MulMod384, 12)] {
        let number = |value: u32| words(&value.into(), count);
        let [zero, one, two, three] = [0, 1, 2, 3].map(number);
        let most = vec![u32::MAX; count];
        let of = |a: &[u32], b: &[u32], c: &[u32], m: &[u32]| computed(precompile, [a, b, c, m]);
        assert_eq!(of(&one, &one, &zero, &zero), None);
        assert_eq!(of(&most, &one, &zero, &one), Some(zero.clone()));
        // 2^256 and 2^384 are 1 modulo 3.
        assert_eq!(of(&most, &one, &zero, &three), Some(zero.clone()));
        assert_eq!(of(&most, &one, &one, &two), Some(zero.clone()));
        assert_eq!(of(&most, &one, &most, &two), Some(zero.clone()));
        // The quotient is (2^n - 1) (2^n - 1) / 2.
        assert_eq!(of(&most, &most, &zero, &two), None);
        // 2^n exactly, by 1; and one less.
        assert_eq!(of(&most, &one, &one, &one), None);
        assert_eq!(of(&most, &most, &most, &most), None);
        assert_eq!(of(&most, &most, &zero, &most), Some(zero.clone()));
        assert_eq!(of(&most, &two, &one, &most), Some(one.clone()));
        // a and b above m: (2^31 3) (2^32 3) = m with a word that is 1, times 9 / 2.
        assert_eq!(of(&three, &three, &one, &number(4)), Some(two.clone()));
    }
}

const DATA: u32 = 0x1100_0000;
const INPUT: u32 = 0x2000_0000;

/// A program that calls with pointers: an offset from the input, of which there are four numbers, or from memory that is
/// zero at the beginning if it is negative.
fn calling(number: i32, pointers: [i32; 5]) -> Vec<u32> {
    let mut words = vec![lui(5, INPUT), addi(5, 5, 4), lui(6, DATA)];
    for (register, at) in (10..).zip(pointers) {
        words.push(if at < 0 { addi(register, 6, -at) } else { addi(register, 5, at) });
    }
    words.extend([li(17, number), ECALL]);
    words.extend(exit());
    words
}

fn input_of(operands: &[Vec<u32>]) -> Input {
    let bytes = operands.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    Input { public: Vec::new(), private: bytes }
}

/// Numbers at all limits satisfy the rows, with all ways in which operands may be the same words, and the result is that
/// of the call.
#[test]
fn operands_may_be_the_same_words() {
    for (number, count) in [(1003, 8), (1004, 12)] {
        let size = 4 * count as i32;
        let [a, b, c, m] = [0, 1, 2, 3].map(|which| which * size);
        let precompile = Precompile::of_call(number as u32).unwrap();
        let most = vec![u32::MAX; count];
        let one = words(&1u32.into(), count);
        let high: Vec<u32> = (0..count).map(|at| u32::from(at == count - 1) << 31).collect();
        let mixed: Vec<u32> =
            (0..count as u32).map(|n| (n + 1).wrapping_mul(0x9e37_79b9)).collect();
        let low: Vec<u32> =
            (0..count).map(|at| if at < count / 2 { u32::MAX } else { 1 }).collect();
        let lists = [
            [&mixed, &low, &most, &high],
            [&most, &most, &most, &most],
            [&high, &mixed, &one, &low],
            [&low, &high, &mixed, &most],
            [&most, &one, &most, &one],
        ];
        // r elsewhere; r = a; r = a = b = c; r in the middle of a and b; all but m the same; all of them.
        let places = [
            [-4, a, b, c, m],
            [a, a, b, c, m],
            [a, a, a, a, m],
            [a + 12, a, b, c, m],
            [-4, b, b, b, m],
            [m, m, m, m, m],
        ];
        for (list, place) in lists.iter().flat_map(|list| places.map(|place| (list, place))) {
            let list = list.map(Clone::clone);
            let input = input_of(&list);
            let code = calling(number, place);
            let all = list.concat();
            let at = |offset: i32| all[offset as usize / 4..][..count].to_vec();
            let [first, second, third, modulus] = [1, 2, 3, 4].map(|which| at(place[which]));
            let wanted = computed(precompile, [&first, &second, &third, &modulus]);
            let program = Program::from_elf(&program(&code)).unwrap();
            let found = run(&program, &input, 100);
            let Some(wanted) = wanted else {
                let trap = TrapReason::NoRemainder {
                    call: number as u32,
                    modulus: INPUT + 4 + place[4] as u32,
                    bits: 32 * count,
                };
                assert!(matches!(found, Err(RunError::Trap(found)) if found.reason == trap));
                continue;
            };
            let found = found.unwrap();
            assert_eq!(found.cycles(), 16);
            let r = if place[0] < 0 { DATA + 4 } else { INPUT + 4 + place[0] as u32 };
            let result = (r / 4..).take(count).map(|word| found.memory.get(word).value);
            assert_eq!(result.collect::<Vec<_>>(), wanted);
            tied(&execution(&code, &input), &input);
        }
    }
}

/// Pointers of calls with four operands that are read trap as those of others do.
#[test]
fn all_pointers_are_checked() {
    for operand in 0..5 {
        let mut pointers = [0; 5];
        pointers[operand] = 2;
        let one = words(&1u32.into(), 8);
        let input = input_of(&[one]);
        let trap = |pointers| {
            let program = Program::from_elf(&program(&calling(1003, pointers))).unwrap();
            match run(&program, &input, 100) {
                Err(RunError::Trap(trap)) => trap.reason,
                other => panic!("{other:?}"),
            }
        };
        let misaligned = TrapReason::MisalignedAccess { address: INPUT + 6, size: 4 };
        assert_eq!(trap(pointers), misaligned);
        pointers[operand] = 4;
        assert_eq!(trap(pointers), TrapReason::Unmapped(INPUT + 36));
    }
}

/// Provers that lie about a call, and continue honestly.
#[test]
fn lies_are_refused() {
    let lies: [(&str, Lie, Refused); 3] = [
        ("nothing", |_| {}, Refused::Nothing),
        (
            "another result",
            |run| {
                result(run)[0].after = 2;
                run.memory.cell(DATA / 4 + 1).value = 2;
            },
            Refused::Rows,
        ),
        (
            "another register than the third",
            |run| {
                let pointer = &mut result(run)[41];
                (pointer.before, pointer.after) = (pointer.before + 4, pointer.after + 4);
            },
            Refused::Buses(vec!["registers".into(), "memory".into()]),
        ),
    ];
    for (name, lie, expected) in lies {
        // 2 * 3 + 2 = 1 modulo 7.
        let operands = [2u32, 3, 2, 7].map(|n| words(&n.into(), 8));
        let input = input_of(&operands);
        let execution = execution(&calling(1003, [-4, 0, 32, 64, 96]), &input);
        assert_eq!(refused(execution, &input, lie), expected, "{name}");
    }
}

fn result(run: &mut crate::Run) -> &mut Vec<Access> {
    &mut run.forged.as_mut().unwrap().accesses[Chip::MulMod256.index()][0]
}

/// The rows of short numbers, in words of two bits.
struct Short {
    sizes: Numbers,
    template: Template,
}

impl Short {
    fn new(words: usize, limb: usize) -> Self {
        let sizes = Numbers { words, limb };
        let mut builder = Builder::new(Word(2));
        let b = &mut builder;
        let given: Vec<Form> = (0..5 * words).map(|word| b.given(word)).collect();
        let r: Vec<Form> = (0..words).map(|word| b.made(word)).collect();
        let operands = [1, 2, 3, 4].map(|which| &given[which * words..][..words]);
        remainder(b, sizes, operands, &r);
        Self { sizes, template: builder.finish() }
    }

    fn digits(&self, number: u64) -> Vec<i128> {
        (0..self.sizes.words).map(|word| (number >> (2 * word) & 3).into()).collect()
    }

    /// The results that the rows allow for a, b, c and m.
    fn allowed(&self, numbers: [u64; 4], without: Option<usize>) -> BTreeSet<Vec<Option<Fr>>> {
        let given = [vec![0; self.sizes.words], numbers.map(|number| self.digits(number)).concat()];
        let given = given.concat();
        let value = |variable: &Variable| match (variable.name, &variable.source) {
            ("v", Source::Access(access, _)) => Some(given[*access]),
            _ => None,
        };
        solutions(Chip::MulMod256, &self.template, 0, value, without)
    }

    fn wanted(&self, [a, b, c, m]: [u64; 4]) -> BTreeSet<Vec<Option<Fr>>> {
        let size = 1 << (2 * self.sizes.words);
        if m == 0 || (a * b + c) / m >= size {
            return BTreeSet::new();
        }
        let word = |value: i128| Some(Fr::from(value.unsigned_abs()));
        BTreeSet::from([self.digits((a * b + c) % m).into_iter().map(word).collect()])
    }
}

/// Numbers of two words with a limb each: with every quotient, every result and every carry, for numbers of four bits.
#[test]
fn short_numbers_have_one_remainder() {
    let short = Short::new(2, 1);
    for m in [0, 1, 2, 7, 8, 11, 15] {
        for (a, b) in (0..16).flat_map(|b| (0..=b).map(move |a| (a, b))) {
            let numbers = [a, b, (a + 3 * b + m) % 16, m];
            assert_eq!(short.allowed(numbers, None), short.wanted(numbers), "{numbers:?}");
        }
    }
}

/// Four limbs, as 256 bits have, and limbs of two words.
#[test]
#[ignore = "minutes"]
fn longer_numbers_have_one_remainder() {
    for short in [Short::new(4, 1), Short::new(4, 2)] {
        for numbers in [[200, 100, 77, 201], [255, 255, 0, 255], [16, 16, 255, 2]] {
            assert_eq!(short.allowed(numbers, None), short.wanted(numbers), "{numbers:?}");
        }
    }
}

/// Without any one of its rows, the call allows something else, but for carries and the borrow, since with short numbers
/// nothing wraps around the order of the field.
#[test]
fn every_row_of_short_numbers_is_needed() {
    let short = Short::new(2, 1);
    let inputs = [[3, 5, 7, 11], [15, 15, 0, 15], [1, 0, 0, 15], [4, 4, 0, 5], [3, 5, 0, 1]];
    let rows = short.template.rows.iter().enumerate();
    for (row, (name, _)) in rows.filter(|(_, (name, _))| !["carry", "borrow"].contains(name)) {
        let forged =
            |numbers: &[u64; 4]| short.allowed(*numbers, Some(row)) != short.wanted(*numbers);
        assert!(inputs.iter().any(forged), "{name}, row {row}");
    }
}

/// The rows of a call that do not hold.
fn broken(chip: Chip, values: &[Fr]) -> Vec<usize> {
    let rows = template_of(chip).rows.iter().enumerate();
    rows.filter(|(_, (_, row))| !holds(row, values)).map(|(at, _)| at).collect()
}

/// The rows of a call with a name.
fn rows_called(chip: Chip, name: &str) -> Vec<usize> {
    let rows = template_of(chip).rows.iter().enumerate();
    rows.filter(|(_, (it, _))| *it == name).map(|(at, _)| at).collect()
}

const CALLS: [(Chip, Numbers); 2] =
    [(Chip::MulMod256, Numbers::BITS_256), (Chip::MulMod384, Numbers::BITS_384)];

/// Without the range of any one part of a carry, a remainder can be forged that is one of a b + c plus a multiple of the
/// field's order.
#[test]
fn parts_of_carries_are_needed() {
    for (chip, sizes) in CALLS {
        let (count, bits) = (sizes.words, 32 * sizes.limb);
        let m = (BigUint::from(1u32) << (32 * count - 1)) + 12_345u32;
        let [a, b, c] = [3u32, 5, 7].map(|n| BigUint::from(n) << (16 * count));
        for place in (0..sizes.carries()).filter(|place| Numbers::has_range(*place)) {
            // All carries below this one are integers, so the sum is a multiple of as many limbs.
            let more = BigUint::from(Fr::MODULUS) << (bits * place.saturating_sub(1));
            let sum = &a * &b + &c + more;
            let (q, r) = (&sum / &m, &sum % &m);
            assert_ne!(r, (&a * &b + &c) % &m);
            let numbers = [&a, &b, &c, &m, &q, &r];
            for part in 0..=sizes.carry_halves() {
                let borrow = Fr::from(lower(&m, count) <= lower(&r, count));
                let values = claimed(chip, sizes, numbers, Some((place, part)), borrow);
                let own = rows_called(chip, "carry")[place / 2 * (sizes.carry_halves() + 1) + part];
                assert_eq!(broken(chip, &values), [own], "{chip:?}, carry {place}, part {part}");
            }
        }
    }
}

/// A borrow that is neither 0 nor 1 makes the modulus a remainder, by an overflow of the lower half.
#[test]
fn the_borrow_is_a_bit() {
    for (chip, sizes) in CALLS {
        let count = sizes.words;
        let m = (BigUint::from(1u32) << (32 * count)) - 0x1000_003d1u64;
        // 3 m - 3 + 3
        let (a, three, q) = (&m - 1u32, BigUint::from(3u32), BigUint::from(2u32));
        let wraps = BigUint::from(-Fr::from(1u64)) >> (16 * count);
        let numbers = [&a, &three, &three, &m, &q, &m];
        let values = claimed(chip, sizes, numbers, None, -Fr::from(wraps));
        assert_eq!(broken(chip, &values), rows_called(chip, "borrow"));
        // Honestly.
        let (q, r) = (three.clone(), BigUint::ZERO);
        let numbers = [&a, &three, &three, &m, &q, &r];
        let values = claimed(chip, sizes, numbers, None, Fr::from(0u64));
        assert_eq!(broken(chip, &values), [0; 0]);
    }
}

/// Reports whether a row holds that is no entry and asks no table but ranges.
fn holds(row: &Row, values: &[Fr]) -> bool {
    match row {
        Row::Product { a, b, c } => a.value(values) * b.value(values) == c.value(values),
        Row::Ask { table: Asked::Range(bits), key, .. } => {
            key.value(values).into_bigint().num_bits() <= *bits
        }
        _ => true,
    }
}

/// The lower half of a number.
fn lower(number: &BigUint, words: usize) -> BigUint {
    number % (BigUint::from(1u32) << (16 * words))
}

/// The halves of words of a number, from the lowest one on.
fn halves(number: &BigUint) -> impl Iterator<Item = Fr> {
    (0..).map(move |which| Fr::from((number >> (16 * which)) & BigUint::from(0xffffu32)))
}

/// The values of a call on a, b, c and m with a quotient and a remainder of a prover's choice, with the carries that these
/// have as field elements, all of one of them in one part; and with a borrow.
fn claimed(
    chip: Chip,
    sizes: Numbers,
    [a, b, c, m, q, r]: [&BigUint; 6],
    in_one_part: Option<(usize, usize)>,
    borrow: Fr,
) -> Vec<Fr> {
    let (count, bits) = (sizes.words, 32 * sizes.limb);
    let limbs = |number: &BigUint| -> Vec<Fr> {
        let of = |limb: &[u32]| Fr::from(BigUint::from_slice(limb));
        words(number, count).chunks(sizes.limb).map(of).collect()
    };
    let all = [a, b, c, m, q, r].map(limbs);
    let product = |a: &[Fr], b: &[Fr], place: usize| -> Fr {
        (0..=place).filter_map(|i| Some(*a.get(i)? * b.get(place - i)?)).sum()
    };
    let size = Fr::from(BigUint::from(1u32) << bits);
    let offset = Fr::from(1u64 << (CARRY_BITS - 1));
    let (mut carry, mut computed) = (Fr::from(0u64), halves(q).take(2 * count).collect::<Vec<_>>());
    for at in 0..sizes.carries() {
        let of = |limbs: &[Fr]| limbs.get(at).copied().unwrap_or(Fr::from(0u64));
        carry += product(&all[0], &all[1], at) + of(&all[2]);
        carry -= product(&all[4], &all[3], at) + of(&all[5]);
        carry /= size;
        match in_one_part {
            _ if !Numbers::has_range(at) => computed.push(carry),
            Some((place, part)) if place == at => {
                let unit = Fr::from(BigUint::from(1u32) << (16 * part));
                computed.extend((0..=sizes.carry_halves()).map(|number| {
                    let offset = if number == sizes.carry_halves() { offset } else { 0.into() };
                    if number == part { offset + carry / unit } else { offset }
                }));
            }
            _ => {
                let above = BigUint::from(carry + offset * size);
                computed.extend(halves(&above).take(sizes.carry_halves()));
                computed.push(Fr::from(above >> bits));
            }
        }
    }
    computed.push(borrow);
    let half = Fr::from(BigUint::from(1u32) << (16 * count));
    let upper = |number: &BigUint| Fr::from(number >> (16 * count));
    let below = Fr::from(lower(m, count)) - Fr::from(lower(r, count)) - Fr::from(1u64);
    for slack in [below + borrow * half, upper(m) - upper(r) - borrow] {
        computed.extend(halves(&BigUint::from(slack)).take(count - 1));
    }
    let accesses: Vec<Access> = [r, a, b, c, m]
        .into_iter()
        .flat_map(|number| words(number, count))
        .map(|word| Access { before: word, after: word, gap: 0 })
        .chain([Access::default(); 3])
        .collect();
    let template = template_of(chip);
    let mut values = template.values(&Op { enabled: true, ..Op::default() }, &accesses);
    for (at, variable) in template.variables.iter().enumerate() {
        match &variable.source {
            Source::Computed(which) => values[at] = computed[*which],
            Source::Product(a, b) => values[at] = a.value(&values) * b.value(&values),
            _ => {}
        }
    }
    values
}

/// Everything between two carries with a range is below the order of the field, so that rows hold for integers.
#[test]
fn nothing_wraps_around() {
    for sizes in [Numbers::BITS_256, Numbers::BITS_384] {
        let (n, bits) = (sizes.limbs() as u32, 32 * sizes.limb as u32);
        let order = BigUint::from(Fr::MODULUS);
        let size = BigUint::from(1u32) << bits;
        // Coefficients of a b + c - q m - r, of both signs.
        let coefficient = &size * &size * n + &size;
        let carry = BigUint::from(1u32) << (bits + CARRY_BITS - 1);
        // Carries that are honest have room.
        assert!((&coefficient + &carry) / &size < carry);
        // Both halves of m - 1 - r, with a borrow that is a bit.
        assert!((BigUint::from(1u32) << (32 * sizes.words / 2)) * 4u32 < order);
        // X^2 k'' = X d' + d + k, for all three signs.
        let most = &size * &size * &carry + &size * &coefficient + &coefficient + &carry;
        assert!(&most * 2u32 < order);
        // The last one is minus the highest coefficient.
        assert!(
            Numbers::has_range(sizes.carries() - 2) && !Numbers::has_range(sizes.carries() - 1)
        );
        assert!((&size * &coefficient + &coefficient + &carry) * 2u32 < order);
    }
}
