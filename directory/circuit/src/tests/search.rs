//! A search for steps that the rows accept although there is no such step, and for those that they refuse.
//!
//! The rows are those of [`step`] over the field of 101 elements, with a stack of 3 entries. Half a digest and an index have
//! 3 bits, version and epoch 1 bit each. So numbers of nodes are below 16, sums of two of them below 31, sums of two halves
//! below 15, and nothing wraps that does not in the large field. The two messages of a step are of a pool, on which the
//! digests differ. For everything else the rows are solved: flags, bits of the location, depth, products, inverses, and the
//! values of the states before and after. Where a row is not linear, there is a case for each factor that may be zero, or
//! for each element of the field. What is accepted is a set of linear spaces of pairs of states then, and they must be those
//! of [`meaning`], which is written from the specification.

use crate::form::{Form, Rows};
use crate::hash::{Block, Hash, Hashed, Sizes};
use crate::machine::Operation;
use crate::rule::Rule;
use crate::state::{Entry, State};
use crate::step::step;
use ark_ff::{AdditiveGroup, Field, Fp64, MontBackend, MontConfig, PrimeField};
use ark_relations::gr1cs::{ConstraintSystem, R1CS_PREDICATE_LABEL, SynthesisError, SynthesisMode};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::ops::Range;

#[derive(MontConfig)]
#[modulus = "101"]
#[generator = "2"]
struct SmallConfig;

type Small = Fp64<MontBackend<SmallConfig, 1>>;

/// The number of values of a state: three entries, root, chain, epoch.
const STATE: usize = 3 * 5 + 5;

/// The columns of the number 1 and of the state before. Behind them are those of the flags.
const ONE: usize = 0;
const BEFORE: Range<usize> = 1..1 + STATE;

/// The columns of numbers of nodes.
const NODES: [usize; 3] = [1, 6, 11];

/// The columns of both messages: of each its bits, the halves of its digest, and the last bit of that.
const GIVEN: Range<usize> = BEFORE.end + 7..BEFORE.end + 7 + 2 * 15;

/// The halves of a digest, and of two.
type Digest = [u8; 2];
type Message = [u8; 4];
const EMPTY: Digest = [0; 2];

/// The messages that are hashed, and their digests.
type Pool = BTreeMap<Message, Digest>;

/// Messages of nodes and of leaves, with digests that differ without their last bits, too.
fn pool() -> Pool {
    let octal = [
        0o0000, 0o0013, 0o0005, 0o0024, 0o1300, 0o6100, 0o2400, 0o1305, 0o0513, 0o0561, 0o6105,
        0o1324, 0o6124, 0o2413, 0o5061, 0o2450, 0o0250, // leaves
        0o5013, 0o5213, 0o5413, 0o5613, 0o5024, 0o5624, 0o5113, 0o5713, 0o2250, 0o2205, 0o2605,
        0o0061, 0o0461, 0o7200,
    ];
    let messages = octal.map(|octal: u16| [9, 6, 3, 0].map(|at| (octal >> at & 7) as u8));
    let digests = (1..).map(|number: u8| number << 1 | number >> 2 & 1);
    messages.into_iter().zip(digests.map(|digest| [digest >> 3, digest & 7])).collect()
}

/// A hash function of which the rows know nothing.
struct Unknown;

impl Hash<Small> for Unknown {
    fn sizes(&self) -> Sizes {
        Sizes { half: 3, version: 1, epoch: 1 }
    }

    fn hash(&self, rows: &Rows<Small>, _: Option<&Block>) -> Result<Hashed<Small>, SynthesisError> {
        let variables: Vec<_> = (0..15).map(|_| rows.variable(None)).collect::<Result<_, _>>()?;
        let number = |from: usize, to: usize| {
            let bits = &variables[from..to];
            bits.iter().fold(Form::zero(), |sum, bit| sum.times(Small::from(2)) + bit)
        };
        Ok(Hashed {
            halves: [number(0, 3), number(3, 6), number(6, 9), number(9, 12)],
            is_leaf: [number(5, 6), number(11, 12)],
            version: number(3, 4),
            epoch: number(4, 5),
            rest: number(5, 6),
            digest: [number(12, 13), number(13, 14)],
            last: number(14, 15),
        })
    }
}

/// A sum of columns with factors, none of which is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Sum(BTreeMap<usize, Small>);

impl Sum {
    fn column(at: usize) -> Self {
        Self([(at, Small::ONE)].into())
    }

    fn number(number: impl Into<Small>) -> Self {
        Self::default().plus(number.into(), &Self::column(ONE))
    }

    fn plus(mut self, factor: Small, other: &Self) -> Self {
        for (at, value) in &other.0 {
            let sum = self.0.entry(*at).or_default();
            *sum += factor * value;
            if *sum == Small::ZERO {
                self.0.remove(at);
            }
        }
        self
    }

    fn as_number(&self) -> Option<Small> {
        let is_number = self.0.keys().all(|at| *at == ONE);
        is_number.then(|| self.0.get(&ONE).copied().unwrap_or_default())
    }

    /// The only variable.
    fn variable(&self) -> Option<usize> {
        self.0.keys().copied().next().filter(|at| self.0.len() == 1 && *at != ONE)
    }

    fn is_of_given(&self) -> bool {
        self.0.range(GIVEN).next().is_some()
    }

    fn value(&self, of: impl Fn(usize) -> Small) -> Small {
        self.0.iter().map(|(at, factor)| of(*at) * factor).sum()
    }
}

/// The values of the states before and after a step.
type Pair = Vec<Sum>;

/// Rows that are solved as far as they are linear.
#[derive(Clone)]
struct System {
    /// The columns that are solved, in terms of others.
    solved: Vec<Option<Sum>>,
    /// Two factors and their product each.
    rows: Vec<[Sum; 3]>,
    /// Variables that are not zero.
    nonzero: Vec<usize>,
}

impl System {
    /// The rows of a step, without those of a rule. The last columns are the state after it.
    fn new(without: Option<Rule>) -> Self {
        let cs = ConstraintSystem::<Small>::new_ref();
        cs.set_mode(SynthesisMode::Setup);
        let rows = Rows { without, ..Rows::new(cs.clone()) };
        let before = state_of(|| rows.variable(None).unwrap());
        let after = step(&rows, &Unknown, &before, None).unwrap();
        after.list().iter().for_each(|value| drop(rows.named(value).unwrap()));
        cs.finalize();
        let matrices = cs.to_matrices().unwrap();
        let sum = |row: &Vec<(Small, usize)>| {
            row.iter()
                .fold(Sum::default(), |sum, (factor, at)| sum.plus(*factor, &Sum::column(*at)))
        };
        let [a, b, c] = &matrices[R1CS_PREDICATE_LABEL][..] else { panic!("three matrices") };
        let rows = a.iter().zip(b).zip(c).map(|((a, b), c)| [a, b, c].map(sum)).collect();
        let solved = vec![None; 1 + cs.num_witness_variables()];
        Self { solved, rows, nonzero: Vec::new() }
    }

    fn reduce(&self, mut sum: Sum) -> Sum {
        while let Some(at) = sum.0.keys().copied().find(|at| self.solved[*at].is_some()) {
            let factor = sum.0.remove(&at).unwrap_or_default();
            sum = self.solved[at].iter().fold(sum, |sum, solved| sum.plus(factor, solved));
        }
        sum
    }

    /// Makes a sum zero. Returns false if it is not.
    fn make_zero(&mut self, sum: &Sum) -> bool {
        let sum = self.reduce(sum.clone());
        let Some(last) = sum.0.keys().copied().next_back().filter(|last| *last != ONE) else {
            return sum.0.is_empty();
        };
        // Numbers of nodes are not negative, so their sum is zero only if all are.
        if sum.0.iter().all(|(at, value)| NODES.contains(at) && *value == sum.0[&last]) {
            sum.0.keys().for_each(|at| self.solved[*at] = Some(Sum::default()));
            return true;
        }
        self.solved[last] = Some(Sum::column(last).plus(-sum.0[&last].inverse().unwrap(), &sum));
        true
    }

    /// Solves rows until none of the rest is linear. Returns false if they contradict each other.
    fn settle(&mut self) -> bool {
        loop {
            let mut is_settled = true;
            for row in take(&mut self.rows) {
                let [a, b, c] = row.map(|sum| self.reduce(sum));
                let is_nonzero =
                    |a: &Sum| a.variable().is_some_and(|at| self.nonzero.contains(&at));
                let zero = match (a.as_number(), b.as_number()) {
                    (Some(a), _) => Sum::default().plus(a, &b).plus(-Small::ONE, &c),
                    (_, Some(b)) => Sum::default().plus(b, &a).plus(-Small::ONE, &c),
                    _ if c.0.is_empty() && is_nonzero(&a) => b,
                    _ if c.0.is_empty() && is_nonzero(&b) => a,
                    _ => {
                        self.rows.push([a, b, c]);
                        continue;
                    }
                };
                if zero.is_of_given() {
                    self.rows.push([zero, Sum::number(1), Sum::default()]);
                } else if self.make_zero(&zero) {
                    is_settled = false;
                } else {
                    return false;
                }
            }
            if is_settled {
                let is_zero = |at: &usize| self.reduce(Sum::column(*at)).0.is_empty();
                return !self.nonzero.iter().any(is_zero);
            }
        }
    }

    /// The cases of a row: each factor may be zero, or one of them is each element of the field. Before messages are given,
    /// only the former, without any of them.
    fn cases(&self) -> Option<Vec<Self>> {
        let has_messages = self.solved[GIVEN.start].is_some();
        let is_next = |[a, b, c]: &&[Sum; 3]| {
            has_messages || (c.0.is_empty() && !a.is_of_given() && !b.is_of_given())
        };
        let [a, b, c] = self.rows.iter().find(is_next)?;
        let with_zero = |sum: &Sum| {
            let mut case = self.clone();
            case.make_zero(sum).then_some(case)
        };
        if !c.0.is_empty() {
            let case = |value: u8| with_zero(&a.clone().plus(-Small::ONE, &Sum::number(value)));
            return Some((0..101).filter_map(case).collect());
        }
        let (a, b) = if a.variable().is_some() { (a, b) } else { (b, a) };
        let other = match a.variable() {
            Some(at) => Some(Self { nonzero: [&self.nonzero[..], &[at]].concat(), ..self.clone() }),
            None => with_zero(b),
        };
        Some(with_zero(a).into_iter().chain(other).collect())
    }

    /// Solutions, as many as there are or are wanted; before messages are given, up to what depends on them.
    fn solutions(self, most: usize) -> Vec<Self> {
        let (mut open, mut solutions) = (vec![self], Vec::new());
        while let Some(mut system) = open.pop().filter(|_| solutions.len() < most) {
            if system.settle() {
                match system.cases() {
                    None => solutions.push(system),
                    Some(cases) => open.extend(cases),
                }
            }
        }
        solutions
    }

    /// The same with messages that do not contradict it.
    fn with(&self, messages: &[Message; 2], pool: &Pool) -> Option<Self> {
        let mut given = Vec::with_capacity(GIVEN.len());
        for message in messages {
            given.extend(message.iter().flat_map(|half| [half >> 2, half >> 1 & 1, half & 1]));
            let [high, low] = pool[message];
            given.extend([high, low, low & 1]);
        }
        let value = |at| if at == ONE { Small::ONE } else { Small::from(given[at - GIVEN.start]) };
        let is_false = |[a, b, _]: &[Sum; 3]| {
            let is_given = a.0.keys().all(|at| *at == ONE || GIVEN.contains(at));
            is_given && *b == Sum::number(1) && a.value(value) != Small::ZERO
        };
        if self.rows.iter().any(is_false) {
            return None;
        }
        let mut system = self.clone();
        GIVEN.for_each(|at| system.solved[at] = Some(Sum::number(value(at))));
        Some(system)
    }

    fn pair(&self) -> Pair {
        let after = self.solved.len() - STATE..self.solved.len();
        BEFORE.chain(after).map(|at| self.reduce(Sum::column(at))).collect()
    }

    /// Values of all columns, if those of the state before are small.
    fn example(&self, number: usize) -> Option<Vec<Small>> {
        let of = |at| match at {
            ONE => Small::ONE,
            _ if BEFORE.contains(&at) => Small::from(((at + number) * number % 8) as u8),
            _ => Small::from((at * number) as u16),
        };
        let value = |at| self.reduce(Sum::column(at)).value(of);
        let values: Vec<Small> = (0..self.solved.len()).map(value).collect();
        let is_state = values[BEFORE].iter().all(|value| *value < Small::from(8));
        let is_case = self.nonzero.iter().all(|at| values[*at] != Small::ZERO);
        Some(values).filter(|_| is_state && is_case)
    }

    /// The values of a step that the rows accept although it is not meant.
    fn forged(self, meant: &Meant) -> Option<Vec<Small>> {
        let systems = self.solutions(usize::MAX);
        meant.pairs.iter().find_map(|(messages, pairs)| {
            let systems = systems.iter().filter_map(|system| system.with(messages, &meant.pool));
            let solutions = systems.flat_map(|system| system.solutions(100));
            solutions.filter(|solution| !pairs.contains(&solution.pair())).find_map(|solution| {
                let mut examples = (0..8).filter_map(|number| solution.example(number));
                examples.find(|values| !meant.has(values))
            })
        })
    }
}

/// A state with a stack of 3 entries.
fn state_of<W>(mut next: impl FnMut() -> W) -> State<W> {
    let mut entry = || Entry { node: next(), old: [next(), next()], new: [next(), next()] };
    let stack = vec![entry(), entry(), entry()];
    State { stack, root: [next(), next()], chain: [next(), next()], epoch: next() }
}

/// An operation, the index of what is pushed or the number of the node where a step goes, and the depth of what is pushed.
type Act = (Operation, u8, u8);

/// The states before and after a step, if there is one, in terms of what may be anything before (spec: directory#steps).
fn meaning(act: Act, [old, new]: [Message; 2], pool: &Pool) -> Option<Pair> {
    let (operation, location, depth) = act;
    let mut columns = BEFORE.map(Sum::column);
    let mut before = state_of(|| columns.next().unwrap());
    let [first, second, last] = &mut before.stack[..] else { panic!("three entries") };
    let numbers = |digest: Digest| digest.map(Sum::number);
    let entry = |node: u8, old, new| {
        let node = Sum::number(node);
        Entry { node, old: numbers(old), new: numbers(new) }
    };
    let is_leaf = |digest: Digest| digest[1] & 1 == 1;
    let hashed = |message: Message, is_leaf: bool| {
        let [high, low] = *pool.get(&message)?;
        Some([high, low & 0b110 | u8::from(is_leaf)])
    };
    let join = |[a, b, c, d]: Message| match ([a, b], [c, d]) {
        (EMPTY, right) if right == EMPTY || is_leaf(right) => Some(right),
        (left, EMPTY) if is_leaf(left) => Some(left),
        _ => hashed([a, b, c, d], false),
    };
    let sides = |[a, b, c, d]: Message| [[a, b], [c, d]];
    let ([old_left, old_right], [new_left, new_right]) = (sides(old), sides(new));
    let top = match operation {
        Operation::Idle => first.clone(),
        Operation::Insert | Operation::Update | Operation::Touch => {
            // Version, epoch, and a bit without meaning.
            let read = |message: Message| [2, 1, 0].map(|at| message[1] >> at & 1);
            let ([v, _, o], [w, epoch, p]) = (read(old), read(new));
            let is_next = match operation {
                Operation::Insert => w == 0,
                Operation::Update => w == v + 1 && old[0] == location && o == 0,
                _ => new == old,
            };
            if !is_next || p != 0 {
                return None;
            }
            last.node = Sum::number(0);
            if operation != Operation::Touch {
                before.epoch = Sum::number(epoch);
            }
            let was = if operation == Operation::Insert { EMPTY } else { hashed(old, true)? };
            entry((8 + location) >> (3 - depth), was, hashed(new, true)?)
        }
        Operation::UpLeft | Operation::UpRight => {
            let is_right = operation == Operation::UpRight;
            let ([was, is], [beside, still]) = match is_right {
                false => ([old_left, new_left], [old_right, new_right]),
                true => ([old_right, new_right], [old_left, new_left]),
            };
            if beside != still || (is_leaf(beside) && was == EMPTY) {
                return None;
            }
            *first = entry(2 * location + u8::from(is_right), was, is);
            entry(location, join(old)?, join(new)?)
        }
        Operation::Merge => {
            *first = entry(2 * location + 1, old_right, new_right);
            *second = entry(2 * location, old_left, new_left);
            entry(location, join(old)?, join(new)?)
        }
        Operation::End => {
            first.node = Sum::number(1);
            first.new = numbers(new_right);
            (second.node, last.node) = (Sum::number(0), Sum::number(0));
            before.root = first.old.clone();
            before.chain = numbers(new_left);
            entry(0, EMPTY, EMPTY)
        }
    };
    let mut after = before.clone();
    match operation {
        Operation::Insert | Operation::Update | Operation::Touch => after.stack.rotate_right(1),
        Operation::Merge => {
            after.stack[1] = entry(0, EMPTY, EMPTY);
            after.stack[1..].rotate_left(1);
        }
        Operation::End => {
            (after.root, after.chain) = (numbers(new_right), numbers(*pool.get(&new)?));
            after.epoch = after.epoch.plus(Small::ONE, &Sum::number(1));
        }
        _ => {}
    }
    after.stack[0] = top;
    Some([before.list(), after.list()].concat())
}

/// All pairs of states of steps with these messages.
fn pairs(messages: [Message; 2], pool: &Pool) -> impl Iterator<Item = Pair> {
    let pushes = [Operation::Insert, Operation::Update, Operation::Touch];
    let joins = [Operation::UpLeft, Operation::UpRight, Operation::Merge];
    let index = messages[1][0];
    let pushes = (0..4).flat_map(move |depth| pushes.map(|push| (push, index, depth)));
    let joins = (0..8).flat_map(move |location| joins.map(|join| (join, location, 0)));
    let acts = pushes.chain(joins).chain([(Operation::Idle, 0, 0), (Operation::End, 0, 0)]);
    acts.filter_map(move |act| meaning(act, messages, pool))
}

/// All that is meant.
struct Meant {
    pool: Pool,
    /// The pairs of states of steps with two messages of the pool.
    pairs: BTreeMap<[Message; 2], BTreeSet<Pair>>,
}

impl Meant {
    fn new() -> Self {
        let pool = pool();
        let messages = pool.keys().flat_map(|old| pool.keys().map(|new| [*old, *new]));
        let pairs = messages.map(|messages| (messages, pairs(messages, &pool).collect())).collect();
        Self { pairs, pool }
    }

    /// Reports whether there is a step with these states, whatever its messages are. An entry without a node is
    /// nothing.
    fn has(&self, values: &[Small]) -> bool {
        let live = |mut state: Vec<Small>| {
            let none = |entry: &&mut [Small]| entry[0] == Small::ZERO;
            state[..15].chunks_mut(5).filter(none).for_each(|entry| entry.fill(Small::ZERO));
            state
        };
        let before = &values[BEFORE];
        let after = live(values[values.len() - STATE..].to_vec());
        let value = |sum: &Sum| sum.value(|at| values[at]);
        let leads = |pair: &Pair| {
            pair.iter().map(value).zip(before).all(|(value, before)| value == *before)
                && live(pair[STATE..].iter().map(value).collect()) == after
        };
        // Messages of the top beside anything, of the second and the top, and of the chain and the top.
        let half = |at: usize| before[at].into_bigint().0[0] as u8;
        let message = |left: usize, right: usize| [left, left + 1, right, right + 1].map(half);
        let [old, new] = [message(1, 1), message(3, 3)];
        let beside = (0..64).flat_map(|digest| {
            let right = [old, new].map(|[a, b, ..]| [a, b, digest >> 3, digest & 7]);
            [right, right.map(|[a, b, c, d]| [c, d, a, b])]
        });
        let others = beside.chain([[message(6, 1), message(8, 3)], [old, message(17, 3)]]);
        self.pairs.values().flatten().any(leads)
            || others.flat_map(|messages| pairs(messages, &self.pool)).any(|pair| leads(&pair))
    }
}

/// The rows accept, for each pair of messages, exactly what is meant.
#[test]
fn rows_accept_what_is_meant() {
    let Meant { pool, pairs } = Meant::new();
    let systems = System::new(None).solutions(usize::MAX);
    for (messages, meant) in &pairs {
        let mut accepted = BTreeSet::new();
        for system in systems.iter().filter_map(|system| system.with(messages, &pool)) {
            accepted.extend(system.solutions(usize::MAX).iter().map(System::pair));
        }
        assert_eq!(accepted, *meant, "{messages:?}");
    }
    assert_eq!(pairs.values().map(BTreeSet::len).sum::<usize>(), 13_314);
}

/// The search finds what is forged without a rule.
#[test]
fn every_rule_refuses_something() {
    use Rule::*;
    let rules = [
        Prefix, Depth, Location, Parent, Sides, Room, Index, Zeros, First, Next, Epoch, Same,
        Nothing, Current, Beside, Displaced, Merged, Digest, Empty, Idle, AtRoot, Alone, Root,
        Chain, Stack,
    ];
    let meant = Meant::new();
    for rule in rules.into_iter().chain([OneOperation, LocationBits]) {
        let system = System::new(Some(rule));
        let (rows, forged) = (system.rows.clone(), system.forged(&meant));
        let values = forged.unwrap_or_else(|| panic!("{rule:?} refuses nothing"));
        let value = |sum: &Sum| sum.value(|at| values[at]);
        assert!(rows.iter().all(|[a, b, c]| value(a) * value(b) == value(c)), "{rule:?}");
    }
}
