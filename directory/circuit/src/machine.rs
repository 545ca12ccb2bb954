//! The steps natively: what the honest prover computes.

use crate::hash::Block;
use crate::state::{Entry, NodePosition, State, digest, halves, number};
use ark_ff::Zero;
use hekaton_circuit::Fr;
use hekaton_directory::{Commitment, Digest, EMPTY, Index, Leaf, Profile, STACK, Step};
use hekaton_standard::sha256::digest_halves;
use serde::{Deserialize, Serialize};

/// The operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    /// Nothing.
    Idle,
    Insert,
    Update,
    Touch,
    /// Up from a left side.
    UpLeft,
    /// Up from a right side.
    UpRight,
    Merge,
    End,
}

/// A step as the circuit has it: what its prover chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepValues {
    pub(crate) operation: Operation,
    /// The index of what is pushed, or the number of the node to which a step up or a merge goes.
    pub(crate) location: u128,
    /// The depth of what is pushed.
    pub(crate) depth: u8,
    /// The message that is hashed for the tree before the epoch.
    pub(crate) old: Block,
    /// The message that is hashed for the tree after it, or for the chain.
    pub(crate) new: Block,
}

/// A step that cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StepError {
    #[error("the stack has no room for more than {STACK} subtrees")]
    Full,
    #[error("the stack is empty")]
    Nothing,
    #[error("the two topmost subtrees of the stack are not the sides of one node")]
    NotSides,
    #[error("the subtree is at the root, which has no parent")]
    Root,
    #[error("the sibling is a leaf that was alone before the epoch, and would move unnoticed")]
    Displaced,
    #[error("the leaf already has the largest version")]
    Version,
    #[error("epoch {} is the last one", u32::MAX)]
    Epoch,
    #[error("it is a step of the profile full, in which every leaf is at the same depth")]
    Path,
    #[error("at the end of the epoch, the stack does not hold the tree of the previous epoch")]
    OtherTree,
}

/// A subtree on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subtree {
    pub(crate) place: NodePosition,
    pub(crate) old: Digest,
    pub(crate) new: Digest,
}

/// The state natively.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    profile: Profile,
    /// The last one is at the top.
    pub(crate) stack: Vec<Subtree>,
    pub(crate) root: Digest,
    pub(crate) chain: Digest,
    pub(crate) epoch: u32,
}

impl Machine {
    pub(crate) fn new(profile: Profile, root: Digest, chain: Digest, epoch: u32) -> Self {
        Self { profile, stack: Vec::new(), root, chain, epoch }
    }

    /// The machine in a state of the circuit.
    pub(crate) fn of(profile: Profile, state: &State<Fr>) -> Option<Self> {
        let of_halves = |[high, low]: &[Fr; 2]| Some(digest([number(high)?, number(low)?]));
        let subtree = |entry: &Entry<Fr>| {
            let place = NodePosition::of_number(&entry.node)?;
            Some(Subtree { place, old: of_halves(&entry.old)?, new: of_halves(&entry.new)? })
        };
        // 0 is the number of no node, so the first entry with it is where the stack ends.
        let used = state.stack.iter().take_while(|entry| !entry.node.is_zero());
        let mut stack = used.map(subtree).collect::<Option<Vec<_>>>()?;
        stack.reverse();
        let (root, chain) = (of_halves(&state.root)?, of_halves(&state.chain)?);
        Some(Self { profile, stack, root, chain, epoch: number(&state.epoch)?.try_into().ok()? })
    }

    /// Reports whether an epoch has just ended, or none has begun yet.
    pub(crate) fn is_between_epochs(&self) -> bool {
        self.stack.is_empty()
    }

    /// The state as the circuit has it.
    pub(crate) fn state(&self) -> State<Fr> {
        let entry = |entry: &Subtree| Entry {
            node: entry.place.field(),
            old: digest_halves(&entry.old),
            new: digest_halves(&entry.new),
        };
        let zero = Fr::zero();
        let none = Entry { node: zero, old: [zero; 2], new: [zero; 2] };
        let mut stack: Vec<_> = self.stack.iter().rev().map(entry).collect();
        stack.resize(STACK, none);
        let [root, chain] = [&self.root, &self.chain].map(digest_halves);
        State { stack, root, chain, epoch: Fr::from(self.epoch) }
    }

    /// The digest that a message has, with its last bit as the digest of a leaf or of an inner node has it.
    pub(crate) fn hash(&self, block: &Block, is_leaf: bool) -> Digest {
        let [a, b, c, d] = *block;
        let mut hashed = self.profile.combine(&digest([a, b]), &digest([c, d]));
        // The last bit is the kind: no digest is that of a leaf and of an inner node (spec:
        // directory#tree).
        hashed[31] = hashed[31] & 0xfe | u8::from(is_leaf);
        hashed
    }

    /// The digest of a node with these two below it: that of the only leaf, if there is no more.
    fn join(&self, block: &Block) -> Digest {
        let [a, b, c, d] = *block;
        let (left, right) = (digest([a, b]), digest([c, d]));
        let is_leaf = |digest: &Digest| digest[31] & 1 == 1;
        match (left == EMPTY, right == EMPTY) {
            (true, true) => EMPTY,
            // A lone leaf moves up without a hash: the tree has as many inner nodes as it has branches.
            (true, false) if is_leaf(&right) => right,
            (false, true) if is_leaf(&left) => left,
            _ => self.hash(block, false),
        }
    }

    /// Carries out a step, and returns it as the circuit has it.
    pub(crate) fn apply(&mut self, step: &Step) -> Result<StepValues, StepError> {
        let is_push =
            matches!(step, Step::Insert { .. } | Step::Update { .. } | Step::Touch { .. });
        // The server puts off changes that would need more; a witness from elsewhere may not have done so.
        if is_push && self.stack.len() == STACK {
            return Err(StepError::Full);
        }
        let values = match step {
            Step::Insert { index, depth, commitment } => {
                let new = self.written(*index, 0, *commitment);
                pushed(Operation::Insert, index, *depth, [0; 4], new)
            }
            Step::Update { leaf, depth, commitment } => {
                let version = leaf.version.checked_add(1).ok_or(StepError::Version)?;
                let new = self.written(leaf.index, version, *commitment);
                pushed(Operation::Update, &leaf.index, *depth, block_of(leaf), new)
            }
            Step::Touch { leaf, depth } => {
                let block = block_of(leaf);
                pushed(Operation::Touch, &leaf.index, *depth, block, block)
            }
            Step::Up { sibling } => self.step_up(sibling)?,
            Step::Merge => {
                let [.., left, right] = self.stack[..] else { return Err(StepError::NotSides) };
                let are_sides = !left.place.is_right()
                    && right.place.is_right()
                    && right.place.parent() == left.place.parent();
                let parent =
                    left.place.parent().filter(|_| are_sides).ok_or(StepError::NotSides)?;
                let (old, new) = (block(&left.old, &right.old), block(&left.new, &right.new));
                up(Operation::Merge, parent, old, new)?
            }
            Step::Path { .. } => return Err(StepError::Path),
            Step::End => {
                let [whole] = self.stack[..] else { return Err(StepError::OtherTree) };
                // The rows say the same; here, the message can say which step is wrong.
                if whole.place.depth != 0 || whole.old != self.root {
                    return Err(StepError::OtherTree);
                }
                self.epoch.checked_add(1).ok_or(StepError::Epoch)?;
                let new = block(&self.chain, &whole.new);
                let operation = Operation::End;
                StepValues { operation, location: 0, depth: 0, old: [0; 4], new }
            }
        };
        self.carry_out(&values);
        Ok(values)
    }

    /// The step from the topmost subtree to its parent, with the other side as the tree has it.
    fn step_up(&self, sibling: &Digest) -> Result<StepValues, StepError> {
        let current = self.stack.last().ok_or(StepError::Nothing)?;
        let parent = current.place.parent().ok_or(StepError::Root)?;
        // A leaf beside what was nothing was alone, so its path ended higher up: here, it would be
        // gone from its own path (spec: directory#displaced).
        if sibling[31] & 1 == 1 && current.old == EMPTY {
            return Err(StepError::Displaced);
        }
        let beside = |digest: &Digest| match current.place.is_right() {
            false => block(digest, sibling),
            true => block(sibling, digest),
        };
        let operation = match current.place.is_right() {
            false => Operation::UpLeft,
            true => Operation::UpRight,
        };
        let (old, new) = (beside(&current.old), beside(&current.new));
        up(operation, parent, old, new)
    }

    /// The leaf that a change writes in this epoch.
    fn written(&self, index: Index, version: u32, commitment: Commitment) -> Block {
        block_of(&Leaf { index, version, epoch: self.epoch, commitment })
    }

    /// Updates the state by a step, without checking it.
    pub(crate) fn carry_out(&mut self, values: &StepValues) {
        let StepValues { operation, location, depth, old, new } = values;
        let place = NodePosition::of(&Index(location.to_be_bytes()), *depth);
        let push = |old, new| Subtree { place, old, new };
        match operation {
            Operation::Idle => {}
            Operation::Insert => self.stack.push(push(EMPTY, self.hash(new, true))),
            Operation::Update | Operation::Touch => {
                self.stack.push(push(self.hash(old, true), self.hash(new, true)));
            }
            Operation::UpLeft | Operation::UpRight | Operation::Merge => {
                let (old, new) = (self.join(old), self.join(new));
                let top = self.stack.pop();
                if *operation == Operation::Merge {
                    self.stack.pop();
                }
                let place = top.and_then(|top| top.place.parent());
                self.stack.extend(place.map(|place| Subtree { place, old, new }));
            }
            Operation::End => {
                if let Some(whole) = self.stack.pop() {
                    self.root = whole.new;
                }
                self.chain = self.profile.combine(&self.chain, &self.root);
                // `apply` has checked that there is a next epoch.
                self.epoch += 1;
            }
        }
    }
}

fn pushed(operation: Operation, index: &Index, depth: u8, old: Block, new: Block) -> StepValues {
    StepValues { operation, location: u128::from_be_bytes(index.0), depth, old, new }
}

fn up(
    operation: Operation,
    parent: NodePosition,
    old: Block,
    new: Block,
) -> Result<StepValues, StepError> {
    let location = parent.number().ok_or(StepError::Root)?;
    Ok(StepValues { operation, location, depth: 0, old, new })
}

pub(crate) fn block(left: &Digest, right: &Digest) -> Block {
    let ([a, b], [c, d]) = (halves(left), halves(right));
    [a, b, c, d]
}

/// Returns the message whose hash is the digest of a leaf.
pub(crate) fn block_of(leaf: &Leaf) -> Block {
    let numbers = u128::from(leaf.version) << 96 | u128::from(leaf.epoch) << 64;
    let [c, d] = halves(&leaf.commitment.0);
    [u128::from_be_bytes(leaf.index.0), numbers, c, d]
}

impl StepValues {
    /// A step that does nothing.
    pub(crate) const IDLE: Self =
        Self { operation: Operation::Idle, location: 0, depth: 0, old: [0; 4], new: [0; 4] };
}
