//! The rows of one step (spec: directory#steps).
//!
//! The prover chooses an operation, a location of as many bits as an index, a depth, and the messages of two hashes, one of the tree
//! before the epoch and one of the tree after it. Everything else follows. Numbers of nodes are below 2^129 as integers:
//! those of pushes are prefixes of an index behind a 1, and those of parents are locations.

use crate::form::{Form, Rows};
use crate::hash::{Block, Hash, Hashed, Sizes};
use crate::machine::{Operation, StepValues};
use crate::rule::Rule;
use crate::state::{Entry, State, fits};
use ark_ff::{BigInteger, PrimeField};
use ark_relations::gr1cs::SynthesisError;

type Made<T> = Result<T, SynthesisError>;

/// The values that the prover of a step chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<F> {
    pub(crate) operation: Operation,
    /// The index of what is pushed, or the number of the node to which the step goes.
    pub(crate) location: F,
    /// The depth of what is pushed.
    pub(crate) depth: u8,
    pub(crate) old: Block,
    pub(crate) new: Block,
}

impl<F: PrimeField> From<&StepValues> for Choice<F> {
    fn from(values: &StepValues) -> Self {
        let StepValues { operation, location, depth, old, new } = *values;
        Self { operation, location: F::from(location), depth, old, new }
    }
}

/// The operation of a step: each flag is 0 or 1, and at most one of them is 1.
struct Flags<F: PrimeField> {
    insert: Form<F>,
    update: Form<F>,
    touch: Form<F>,
    up_left: Form<F>,
    up_right: Form<F>,
    merge: Form<F>,
    end: Form<F>,
    /// The flag for none of these operations.
    idle: Form<F>,
    /// Something is pushed.
    push: Form<F>,
    /// Two digests are joined.
    join: Form<F>,
}

impl<F: PrimeField> Flags<F> {
    fn new(rows: &Rows<F>, operation: Option<Operation>) -> Made<Self> {
        // Flags and not a number: each row below is switched by one of them, which costs nothing.
        let flag = |which| {
            let value = operation.map(|operation| F::from(operation == which));
            rows.bit(Rule::OneOperation, which as usize, value)
        };
        let insert = flag(Operation::Insert)?;
        let update = flag(Operation::Update)?;
        let touch = flag(Operation::Touch)?;
        let up_left = flag(Operation::UpLeft)?;
        let up_right = flag(Operation::UpRight)?;
        let merge = flag(Operation::Merge)?;
        let end = flag(Operation::End)?;
        let push = &insert + &update + &touch;
        let join = &up_left + &up_right + &merge;
        let any = &push + &join + &end;
        let idle = Form::one() - &any;
        // The sum of the flags is 0 or 1, so at most one of them is 1.
        rows.zero_if(Rule::OneOperation, &any, &idle)?;
        Ok(Self { insert, update, touch, up_left, up_right, merge, end, idle, push, join })
    }
}

/// The rows of a step from one state to the next.
pub(crate) fn step<F: PrimeField, H: Hash<F>>(
    rows: &Rows<F>,
    hash: &H,
    before: &State<Form<F>>,
    values: Option<&Choice<F>>,
) -> Made<State<Form<F>>> {
    let sizes = hash.sizes();
    let flags = Flags::new(rows, values.map(|values| values.operation))?;
    let old = hash.hash(rows, values.map(|values| &values.old))?;
    let new = hash.hash(rows, values.map(|values| &values.new))?;
    let none = Entry {
        node: Form::zero(),
        old: [Form::zero(), Form::zero()],
        new: [Form::zero(), Form::zero()],
    };
    let top = before.stack.first().unwrap_or(&none);
    let second = before.stack.get(1).unwrap_or(&none);

    let node = location(rows, sizes, &flags, top, second, values)?;
    leaves(rows, &flags, &old, &new, &node.location, &before.epoch)?;
    messages(rows, &flags, &old, &new, [top, second], &before.chain)?;
    let (old_join, new_join) = (join(rows, &flags, &old, 0)?, join(rows, &flags, &new, 1)?);
    // A leaf beside nothing was alone, and no longer is: new digests are never that of nothing
    // (spec: directory#displaced).
    rows.zero_if(Rule::Displaced, &flags.up_left, &old_join.right_leaf_alone)?;
    rows.zero_if(Rule::Displaced, &flags.up_right, &old_join.left_leaf_alone)?;

    let written_old = Written { join: &old_join.digest, is_leaf: &flags.update + &flags.touch };
    let is_zero = &flags.insert + &flags.end;
    let old_digest = written_old.digest(rows, &flags, &is_zero, &top.old, 0)?;
    let written_new = Written { join: &new_join.digest, is_leaf: flags.push.clone() };
    let new_digest = written_new.digest(rows, &flags, &flags.end, &top.new, 2)?;
    let next_top = Entry { node: node.next, old: old_digest, new: new_digest };

    let [root, chain] = end(rows, &flags, before, top, &new)?;
    let stack = shift(rows, &flags, &before.stack, next_top)?;
    Ok(State { stack, root, chain, epoch: &before.epoch + &flags.end })
}

/// The location of a step.
struct Located<F: PrimeField> {
    /// The index of what is pushed, or the number of the node to which the step goes.
    location: Form<F>,
    /// The number of the node at the top of the stack afterwards.
    next: Form<F>,
}

/// A push is on the way to its index, a step up goes to the parent, and a merge is of the two sides of a node (spec:
/// directory#location).
fn location<F: PrimeField>(
    rows: &Rows<F>,
    sizes: Sizes,
    flags: &Flags<F>,
    top: &Entry<Form<F>>,
    second: &Entry<Form<F>>,
    values: Option<&Choice<F>>,
) -> Made<Located<F>> {
    let depths = sizes.half;
    // The bits, the least significant one first, and the numbers that they are up to each one.
    let mut low = vec![Form::zero()];
    for at in 0..depths {
        let value = values.map(|values| bit_of(&values.location, depths, at));
        let bit = rows.bit(Rule::LocationBits, at, value)?;
        let next = &low[at] + &bit.times(power(at));
        low.push(next);
    }
    // In many rows below: a combination of 128 bits in each of them would be larger than the rows.
    let location = rows.named(&low[depths])?;
    let value = values.map(|values| match values.operation {
        Operation::Insert | Operation::Update | Operation::Touch => values.prefix(depths),
        Operation::UpLeft | Operation::UpRight | Operation::Merge => values.location,
        Operation::End => F::ZERO,
        // A choice has values, and with it all forms do.
        Operation::Idle => top.node.value().unwrap_or(F::ZERO),
    });
    let next = rows.claim(Rule::Location, 0, value)?;
    // 2^(bits below) next + (location mod 2^(bits below)) = 2^128 + location for one number of bits, at least: it is
    // divisible then, so `next` is that number without its last bits.
    let mut any = Form::zero();
    let whole = &Form::one().times(power(depths)) + &location;
    for (below, rest) in low.iter().enumerate() {
        let value = values.map(|values| {
            let is_push = F::from(values.is_push());
            is_push * F::from(depths - usize::from(values.depth) == below)
        });
        let is_depth = rows.choice(Rule::Depth, below, value)?;
        let found = next.times(power(below)) + rest;
        rows.zero_if(Rule::Prefix, &is_depth, &(found - &whole))?;
        any = any + &is_depth;
    }
    // Exactly one depth for a push, and none for other operations, whose numbers follow from the location.
    rows.product(Rule::Depth, &any, &Form::one(), &flags.push)?;

    rows.zero_if(Rule::Location, &flags.join, &(&next - &location))?;
    rows.zero_if(Rule::Location, &flags.end, &next)?;
    rows.zero_if(Rule::Idle, &flags.idle, &(&next - &top.node))?;
    let left = location.times(F::from(2u64));
    let right = &left + &Form::one();
    rows.zero_if(Rule::Parent, &flags.up_left, &(&top.node - &left))?;
    rows.zero_if(Rule::Parent, &flags.up_right, &(&top.node - &right))?;
    rows.zero_if(Rule::Sides, &flags.merge, &(&top.node - &right))?;
    rows.zero_if(Rule::Sides, &flags.merge, &(&second.node - &left))?;
    Ok(Located { location, next })
}

/// The leaves of a push: of its index, with the version and the epoch that they must have.
fn leaves<F: PrimeField>(
    rows: &Rows<F>,
    flags: &Flags<F>,
    old: &Hashed<F>,
    new: &Hashed<F>,
    location: &Form<F>,
    epoch: &Form<F>,
) -> Made<()> {
    let Flags { insert, update, touch, push, .. } = flags;
    let has_old = update + touch;
    rows.zero_if(Rule::Index, push, &(&new.halves[0] - location))?;
    rows.zero_if(Rule::Index, &has_old, &(&old.halves[0] - location))?;
    // A leaf has one encoding; other bytes here would be a second digest of the same leaf.
    rows.zero_if(Rule::Zeros, push, &new.rest)?;
    rows.zero_if(Rule::Zeros, &has_old, &old.rest)?;
    rows.zero_if(Rule::First, insert, &new.version)?;
    rows.zero_if(Rule::Next, update, &(&new.version - &old.version - &Form::one()))?;
    rows.zero_if(Rule::Epoch, &(insert + update), &(&new.epoch - epoch))?;
    for half in 1..4 {
        rows.zero_if(Rule::Same, touch, &(&new.halves[half] - &old.halves[half]))?;
    }
    Ok(())
}

/// Constrains what is hashed in a step up, a merge, and at the end of an epoch (spec: directory#messages).
fn messages<F: PrimeField>(
    rows: &Rows<F>,
    flags: &Flags<F>,
    old: &Hashed<F>,
    new: &Hashed<F>,
    [top, second]: [&Entry<Form<F>>; 2],
    chain: &[Form<F>; 2],
) -> Made<()> {
    let Flags { up_left, up_right, merge, end, .. } = flags;
    for half in 0..2 {
        let (left, right) = (half, 2 + half);
        for (hashed, top, second) in [(old, &top.old, &second.old), (new, &top.new, &second.new)] {
            let (left, right) = (&hashed.halves[left], &hashed.halves[right]);
            rows.zero_if(Rule::Current, up_left, &(left - &top[half]))?;
            rows.zero_if(Rule::Current, up_right, &(right - &top[half]))?;
            rows.zero_if(Rule::Merged, merge, &(right - &top[half]))?;
            rows.zero_if(Rule::Merged, merge, &(left - &second[half]))?;
        }
        rows.zero_if(Rule::Beside, up_left, &(&old.halves[right] - &new.halves[right]))?;
        rows.zero_if(Rule::Beside, up_right, &(&old.halves[left] - &new.halves[left]))?;
        rows.zero_if(Rule::Chain, end, &(&new.halves[left] - &chain[half]))?;
        rows.zero_if(Rule::Chain, end, &(&new.halves[right] - &top.new[half]))?;
    }
    Ok(())
}

/// The digest of a node with two others below it.
struct Joined<F: PrimeField> {
    digest: [Form<F>; 2],
    /// The flags for a leaf on the right with nothing on the left, and the reverse.
    right_leaf_alone: Form<F>,
    left_leaf_alone: Form<F>,
}

/// Joins two sides. If one is nothing and the other one a leaf or nothing, the result is that other one: a lone leaf
/// moves up. Otherwise it is the hash of both. Where nothing is joined, nothing moves.
fn join<F: PrimeField>(
    rows: &Rows<F>,
    flags: &Flags<F>,
    hashed: &Hashed<F>,
    tree: usize,
) -> Made<Joined<F>> {
    let [l0, l1, r0, r1] = &hashed.halves;
    let left_is_empty = is_zero_if(rows, &flags.join, &(l0 + l1), 4 * tree)?;
    let right_is_empty = is_zero_if(rows, &flags.join, &(r0 + r1), 4 * tree + 2)?;
    let [left_is_leaf, right_is_leaf] = &hashed.is_leaf;
    let right_leaf_alone = rows.multiply(&left_is_empty, right_is_leaf)?;
    let left_leaf_alone = rows.multiply(&right_is_empty, left_is_leaf)?;
    let both_are_empty = rows.multiply(&left_is_empty, &right_is_empty)?;
    // Where both are empty, either one is the result: nothing.
    let takes_right = &right_leaf_alone + &both_are_empty;
    // Without its last bit, which is 0 for a node and 1 for a leaf.
    let node = [hashed.digest[0].clone(), &hashed.digest[1] - &hashed.last];
    let digest = both(|half| {
        let node = &node[half];
        let right = rows.multiply(&takes_right, &(&hashed.halves[2 + half] - node))?;
        let left = rows.multiply(&left_leaf_alone, &(&hashed.halves[half] - node))?;
        Ok(node + &right + &left)
    })?;
    Ok(Joined { digest, right_leaf_alone, left_leaf_alone })
}

/// A variable that is 1 if the flag is 1 and the form 0, and 0 otherwise.
fn is_zero_if<F: PrimeField>(
    rows: &Rows<F>,
    flag: &Form<F>,
    form: &Form<F>,
    number: usize,
) -> Made<Form<F>> {
    let values = flag.value().zip(form.value());
    let flag_of_zero = values.map(|(flag, form)| flag * F::from(form.is_zero()));
    let is_zero = rows.claim(Rule::Empty, number, flag_of_zero)?;
    // Zero has no inverse; any number will do, since the row multiplies it by zero.
    let inverse_value = values.map(|(flag, form)| flag * form.inverse().unwrap_or(F::ZERO));
    let inverse = rows.claim(Rule::Empty, number + 1, inverse_value)?;
    rows.product(Rule::Empty, form, &inverse, &(flag - &is_zero))?;
    rows.zero_if(Rule::Empty, form, &is_zero)?;
    Ok(is_zero)
}

/// The digest of the top of the stack afterwards.
struct Written<'a, F: PrimeField> {
    /// The digest of a node, which for a leaf has another last bit.
    join: &'a [Form<F>; 2],
    is_leaf: Form<F>,
}

impl<F: PrimeField> Written<'_, F> {
    /// Returns nothing if `is_zero`, what is there already in an idle step, and otherwise what is hashed.
    fn digest(
        &self,
        rows: &Rows<F>,
        flags: &Flags<F>,
        is_zero: &Form<F>,
        top: &[Form<F>; 2],
        number: usize,
    ) -> Made<[Form<F>; 2]> {
        let [high, low] = self.join;
        let hashed = [high.clone(), low + &self.is_leaf];
        let is_hashed = Form::one() - &flags.idle - is_zero;
        let is = |flag: &Form<F>| flag.value().map(|flag| flag == F::ONE);
        both(|half| {
            let own = &hashed[half];
            let value = match (is(&flags.idle), is(is_zero)) {
                (Some(true), _) => top[half].value(),
                (_, Some(true)) => Some(F::ZERO),
                _ => own.value(),
            };
            let digest = rows.claim(Rule::Digest, number + half, value)?;
            rows.zero_if(Rule::Digest, &is_hashed, &(&digest - own))?;
            // An insertion has no digest before the epoch, and the end of an epoch leaves nothing.
            rows.zero_if(Rule::Nothing, is_zero, &digest)?;
            rows.zero_if(Rule::Idle, &flags.idle, &(&digest - &top[half]))?;
            Ok(digest)
        })
    }
}

/// Ends an epoch: the stack has the whole tree and nothing else, as it was when the epoch began; its root goes into the
/// chain. Returns root and chain.
fn end<F: PrimeField>(
    rows: &Rows<F>,
    flags: &Flags<F>,
    before: &State<Form<F>>,
    top: &Entry<Form<F>>,
    new: &Hashed<F>,
) -> Made<[[Form<F>; 2]; 2]> {
    let end = &flags.end;
    rows.zero_if(Rule::AtRoot, end, &(&top.node - &Form::one()))?;
    // Numbers of nodes are below 2^129, so their sum is zero only if all are.
    // One row for the whole stack.
    let others = before.stack.iter().skip(1).fold(Form::zero(), |sum, entry| sum + &entry.node);
    rows.zero_if(Rule::Alone, end, &others)?;
    let root = both(|half| {
        rows.zero_if(Rule::Root, end, &(&top.old[half] - &before.root[half]))?;
        select(rows, (Rule::Root, half), end, &before.root[half], &top.new[half])
    })?;
    let chain = both(|half| {
        select(rows, (Rule::Chain, half), end, &before.chain[half], &new.digest[half])
    })?;
    Ok([root, chain])
}

/// Both halves of a digest.
fn both<T>(mut half: impl FnMut(usize) -> Made<T>) -> Made<[T; 2]> {
    Ok([half(0)?, half(1)?])
}

/// A variable with the second form if the flag is 1, with the first one if it is 0.
fn select<F: PrimeField>(
    rows: &Rows<F>,
    (rule, number): (Rule, usize),
    flag: &Form<F>,
    first: &Form<F>,
    second: &Form<F>,
) -> Made<Form<F>> {
    let value =
        flag.value().and_then(|flag| if flag == F::ONE { second.value() } else { first.value() });
    let chosen = rows.claim(rule, number, value)?;
    rows.product(rule, flag, &(second - first), &(&chosen - first))?;
    Ok(chosen)
}

/// The stack afterwards: what is behind the top moves down with a push, for which there must be room, and up with a merge.
fn shift<F: PrimeField>(
    rows: &Rows<F>,
    flags: &Flags<F>,
    before: &[Entry<Form<F>>],
    top: Entry<Form<F>>,
) -> Made<Vec<Entry<Form<F>>>> {
    if let Some(last) = before.last() {
        // Otherwise a push would drop the lowest subtree, and with it whatever it was to be merged with.
        rows.zero_if(Rule::Room, &flags.push, &last.node)?;
    }
    let mut stack = vec![top];
    let zero = Form::zero();
    for at in 1..before.len() {
        let moved = |number: usize, of: &dyn Fn(&Entry<Form<F>>) -> Form<F>| -> Made<Form<F>> {
            let here = of(&before[at]);
            let (above, below) = (of(&before[at - 1]), before.get(at + 1).map_or(zero.clone(), of));
            let pushed = rows.multiply(&flags.push, &(&above - &here))?;
            let value = match [&flags.merge, &here, &below, &pushed].map(Form::value) {
                [Some(merge), Some(here), Some(below), Some(pushed)] => {
                    Some(here + pushed + merge * (below - here))
                }
                _ => None,
            };
            let next = rows.claim(Rule::Stack, 5 * at + number, value)?;
            rows.product(Rule::Stack, &flags.merge, &(&below - &here), &(&next - &here - &pushed))?;
            Ok(next)
        };
        stack.push(Entry {
            node: moved(0, &|entry| entry.node.clone())?,
            old: [
                moved(1, &|entry| entry.old[0].clone())?,
                moved(2, &|entry| entry.old[1].clone())?,
            ],
            new: [
                moved(3, &|entry| entry.new[0].clone())?,
                moved(4, &|entry| entry.new[1].clone())?,
            ],
        });
    }
    Ok(stack)
}

/// 2^exponent.
fn power<F: PrimeField>(exponent: usize) -> F {
    F::from(2u64).pow([exponent as u64])
}

/// Returns a bit of a location. If the location has more bits, bit 0 is the location itself, which is not a bit and
/// violates the rows.
fn bit_of<F: PrimeField>(location: &F, bits: usize, at: usize) -> F {
    match fits(location, bits) {
        true => F::from(location.into_bigint().get_bit(at)),
        false if at == 0 => *location,
        false => F::ZERO,
    }
}

impl<F: PrimeField> Choice<F> {
    fn is_push(&self) -> bool {
        matches!(self.operation, Operation::Insert | Operation::Update | Operation::Touch)
    }

    /// The number of the node at the depth on the way to the index.
    fn prefix(&self, depths: usize) -> F {
        let mut prefix = self.location.into_bigint();
        let below = depths - usize::from(self.depth).min(depths);
        prefix >>= u32::try_from(below).expect("an index has 128 bits");
        let bits =
            F::from_bigint(prefix).expect("a prefix of a number below the modulus is below it");
        power::<F>(self.depth.into()) + bits
    }
}
