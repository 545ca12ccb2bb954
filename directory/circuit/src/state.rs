//! The state that one step leaves for the next one.

use ark_ff::{BigInteger, PrimeField, Zero};
use hekaton_circuit::Fr;
use hekaton_circuit::parts::{Slot, Slots};
use hekaton_directory::{Digest, EMPTY, Index};

/// A subtree on the stack: the number of the node where it begins, and the halves of its digests before and after the
/// epoch. All are zero where there is no subtree.
#[derive(Clone, Debug, PartialEq, Eq, Slots)]
pub(crate) struct Entry<W> {
    /// The number of the node: 2^depth + prefix, so the root has 1, and a node's sides have twice its number and one more
    /// than that.
    pub(crate) node: W,
    /// The digest before the epoch.
    pub(crate) old: [W; 2],
    /// The digest after it.
    pub(crate) new: [W; 2],
}

/// The state between steps.
#[derive(Clone, Debug, PartialEq, Eq, Slots)]
pub(crate) struct State<W> {
    /// The stack, its top first.
    pub(crate) stack: Vec<Entry<W>>,
    /// The root of the last epoch that has ended.
    pub(crate) root: [W; 2],
    /// The chain up to that epoch.
    pub(crate) chain: [W; 2],
    /// The number of that epoch.
    pub(crate) epoch: W,
}

impl State<Slot> {
    /// The shape of a state with a stack of this size.
    pub(crate) fn slots(stack: usize) -> Self {
        let entry = Entry { node: Slot, old: [Slot; 2], new: [Slot; 2] };
        Self { stack: vec![entry; stack], root: [Slot; 2], chain: [Slot; 2], epoch: Slot }
    }
}

/// The values of slots, in their order.
pub(crate) fn list<W: Clone, S: Slots<W>>(slots: &S) -> Vec<W> {
    let mut values = Vec::new();
    slots.visit(&mut |value| values.push(value.clone()));
    values
}

impl<W: Clone> State<W> {
    /// The values, in the order of the slots.
    pub(crate) fn list(&self) -> Vec<W> {
        let mut values = Vec::new();
        for Entry { node, old, new } in &self.stack {
            values.push(node.clone());
            values.extend(old.iter().chain(new).cloned());
        }
        values.extend(self.root.iter().chain(&self.chain).cloned());
        values.push(self.epoch.clone());
        values
    }
}

/// The position of a node in the tree: where a subtree begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePosition {
    pub(crate) depth: u8,
    /// The bits on the way there; the last one says on which side of its parent it is.
    pub(crate) prefix: u128,
}

impl NodePosition {
    /// The position at a depth on the way to an index.
    pub(crate) fn of(index: &Index, depth: u8) -> Self {
        // At depth 0 there is no prefix, and a shift by all 128 bits overflows.
        let rest = 128 - u32::from(depth.min(128));
        Self { depth, prefix: u128::from_be_bytes(index.0).checked_shr(rest).unwrap_or(0) }
    }

    /// The position of the node with this number.
    pub(crate) fn of_number(node: &Fr) -> Option<Self> {
        let number = node.into_bigint();
        let depth = u8::try_from(number.num_bits()).ok()?.checked_sub(1)?;
        let [low, high, ..] = number.as_ref() else { return None };
        let prefix = u128::from(*high) << 64 | u128::from(*low);
        // Without the bit in front, which is that of 2^128 at the largest depth.
        let front = 1u128.checked_shl(depth.into()).unwrap_or(0);
        // A wire may have any value, and nodes have at most 128 bits behind the first.
        (depth <= 128).then(|| Self { depth, prefix: prefix.wrapping_sub(front) })
    }

    /// The position of the parent; none for the root.
    pub(crate) fn parent(self) -> Option<Self> {
        Some(Self { depth: self.depth.checked_sub(1)?, prefix: self.prefix >> 1 })
    }

    pub(crate) fn is_right(self) -> bool {
        self.prefix & 1 == 1
    }

    /// The number of the node here, if it is below 2^128: of every node but leaves at depth 128.
    pub(crate) fn number(self) -> Option<u128> {
        // 2^128 and more does not fit; no step goes to such a node, since it has nothing below it.
        Some(1u128.checked_shl(self.depth.into())? + self.prefix)
    }

    /// The number of the node here, 2^depth + prefix.
    pub(crate) fn field<F: PrimeField>(self) -> F {
        F::from(2u64).pow([self.depth.into()]) + F::from(self.prefix)
    }
}

/// A digest as two numbers, the more significant half first.
pub(crate) fn halves(digest: &Digest) -> [u128; 2] {
    let (high, low) = digest.split_at(16);
    [high, low].map(|half| half.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

/// The digest with these halves.
pub(crate) fn digest([high, low]: [u128; 2]) -> Digest {
    let mut digest = EMPTY;
    digest[..16].copy_from_slice(&high.to_be_bytes());
    digest[16..].copy_from_slice(&low.to_be_bytes());
    digest
}

/// A number below 2^128 from a field element.
pub(crate) fn number(value: &Fr) -> Option<u128> {
    let limbs = value.into_bigint();
    let [low, high, rest @ ..] = limbs.as_ref() else { return None };
    rest.iter().all(Zero::is_zero).then(|| u128::from(*high) << 64 | u128::from(*low))
}

/// Reports whether a field element is below 2^bits.
pub(crate) fn fits<F: PrimeField>(value: &F, bits: usize) -> bool {
    value.into_bigint().num_bits() as usize <= bits
}
