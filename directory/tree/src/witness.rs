//! The witness for the prover of epochs: the steps from one root to the next, each of which the circuit checks.

use crate::hash::{DEPTH, Digest, EMPTY, Profile};
use crate::key::{Commitment, Index};
use crate::leaf::Leaf;
use crate::path::Path;
use crate::place::{Away, Place};
use crate::read::{DecodeError, Reader};
use crate::tree::{Change, Node, Numbered, Tree, UpdateError};

/// The first bytes of a file.
const MAGIC: [u8; 4] = *b"HKEW";

/// The version of the format.
const VERSION: u8 = 1;

/// The maximum number of subtrees that a prover can have waiting at a time. Random changes need 12 with 2^10 of them in
/// an epoch, and 18 with 2^16.
pub const STACK: usize = 24;

/// One step of the prover. Where lone leaves move up ([`Profile::Compress`], [`Profile::Sha256`]), it has a stack of subtrees,
/// each as it was before the epoch and as it is after it; both begin at the same place of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Pushes a place that was empty, and gets a leaf of version 0.
    Insert {
        /// The leaf's place.
        index: Index,
        /// The depth at which it is.
        depth: u8,
        /// The new leaf's commitment.
        commitment: Commitment,
    },
    /// Pushes a leaf that gets its next version.
    Update {
        /// The leaf as it was.
        leaf: Leaf,
        /// The depth at which it is after the epoch.
        depth: u8,
        /// The commitment that it gets.
        commitment: Commitment,
    },
    /// Pushes a leaf that stays as it is: it is no longer alone and moves down, or nothing changes in the epoch.
    Touch {
        /// The leaf.
        leaf: Leaf,
        /// The depth at which it is after the epoch.
        depth: u8,
    },
    /// Goes up from the top of the stack, beside a subtree that does not change.
    Up {
        /// The digest of that subtree.
        sibling: Digest,
    },
    /// Goes up from the two at the top of the stack, the left one of which was pushed first.
    Merge,
    /// Changes a leaf where all are at the same depth ([`Profile::Full`]): there is no stack, and each change is one of a whole
    /// tree.
    Path {
        /// The leaf's place.
        index: Index,
        /// The way to it in the tree after the changes before this one.
        path: Box<Path>,
        /// The commitment that it gets.
        commitment: Commitment,
    },
    /// Ends the epoch: what is on the stack is the whole tree.
    End,
}

/// Epochs in a row, as their prover needs them. It has everything that changes, so it is as secret as the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The way the tree is hashed.
    pub profile: Profile,
    /// The epoch before the first step.
    pub epoch: u32,
    /// The root of that epoch.
    pub root: Digest,
    /// The chain up to that epoch.
    pub chain: Digest,
    /// The steps, with an [`End`](Step::End) behind those of each epoch.
    pub steps: Vec<Step>,
}

impl Tree {
    /// The steps from this tree's root to the one that [`update`](Self::update) gives it with the same changes. Without changes,
    /// they go up from one leaf.
    ///
    /// # Errors
    /// As for `update`, and if there are neither changes nor leaves, or no changes and the profile is [`Profile::Full`].
    pub fn steps(&self, changes: &[Change]) -> Result<Vec<Step>, UpdateError> {
        let sorted = Self::sorted(changes)?;
        let mut steps = Vec::with_capacity(8 * sorted.len());
        match (self.profile.collapses(), changes.is_empty()) {
            (true, false) => push_steps(&self.root, 0, &sorted, &mut steps)?,
            (true, true) => self.push_touch(&mut steps)?,
            (false, false) => self.push_paths(&sorted, &mut steps)?,
            (false, true) => return Err(UpdateError::NoSteps),
        }
        steps.push(Step::End);
        Ok(steps)
    }

    /// Touches the leaf that is furthest to the left, and goes up from it.
    fn push_touch(&self, out: &mut Vec<Step>) -> Result<(), UpdateError> {
        let (mut node, mut prefix, mut siblings) = (&self.root, 0u128, Vec::new());
        let leaf = loop {
            match node {
                Node::Empty => return Err(UpdateError::NoSteps),
                Node::Leaf(lone) => break lone.leaf,
                Node::Away(_) => {
                    let index = Index(prefix.to_be_bytes());
                    return Err(Away(Place::of(&index, siblings.len())).into());
                }
                Node::Inner(inner) => {
                    let right = matches!(inner.sides[0], Node::Empty);
                    prefix |= u128::from(right) << (DEPTH - 1 - siblings.len());
                    siblings.push(inner.sides[usize::from(!right)].given().unwrap_or(EMPTY));
                    node = &inner.sides[usize::from(right)];
                }
            }
        };
        #[allow(clippy::cast_possible_truncation, reason = "at most 128")]
        out.push(Step::Touch { leaf, depth: siblings.len() as u8 });
        out.extend(siblings.into_iter().rev().map(|sibling| Step::Up { sibling }));
        Ok(())
    }

    /// Changes one after the other, each with its path.
    fn push_paths(&self, sorted: &[Numbered], out: &mut Vec<Step>) -> Result<(), UpdateError> {
        // Each change is proven against the root that the changes before it have left.
        let mut tree = self.clone();
        for numbered in sorted {
            let Change { index, commitment } = numbered.1;
            let path = Box::new(tree.path(&index)?);
            out.push(Step::Path { index, path, commitment });
            tree = tree.with_change(*numbered)?;
        }
        Ok(())
    }
}

/// A side of a node with what happens in it.
struct Side<'a> {
    node: Node,
    changes: &'a [Numbered],
}

impl Side<'_> {
    /// Reports whether there are steps for it: a leaf that was alone has one, too, once it has others next to it.
    fn has_steps(&self, was_lone: bool) -> bool {
        // A leaf that moves down does not change and still needs a step: the circuit allows no step
        // up from EMPTY beside a leaf, since that could hide the leaf from its own path
        // (docs/spec/11-directory.md).
        !self.changes.is_empty() || (was_lone && !matches!(self.node, Node::Empty))
    }
}

/// The work below a node in which something changes, or which moves down: the step of one leaf, or two sides.
enum Below<'a> {
    One(Step),
    Sides([Side<'a>; 2], bool),
}

fn below<'a>(node: &Node, depth: usize, changes: &'a [Numbered]) -> Result<Below<'a>, UpdateError> {
    #[allow(clippy::cast_possible_truncation, reason = "at most 128")]
    let at = depth as u8;
    let sides = match (node, changes) {
        (Node::Leaf(lone), []) => {
            return Ok(Below::One(Step::Touch { leaf: lone.leaf, depth: at }));
        }
        (Node::Empty, [(_, Change { index, commitment })]) => {
            let (index, commitment) = (*index, *commitment);
            return Ok(Below::One(Step::Insert { index, depth: at, commitment }));
        }
        (Node::Leaf(lone), [(_, Change { index, commitment })]) if lone.leaf.index == *index => {
            let (leaf, commitment) = (lone.leaf, *commitment);
            return Ok(Below::One(Step::Update { leaf, depth: at, commitment }));
        }
        (Node::Empty, _) => [Node::Empty, Node::Empty],
        (Node::Leaf(lone), _) => {
            let mut sides = [Node::Empty, Node::Empty];
            sides[usize::from(lone.leaf.index.bit(depth))] = node.clone();
            sides
        }
        (Node::Inner(inner), _) => inner.sides.clone(),
        (Node::Away(_), [(_, change), ..]) => {
            return Err(Away(Place::of(&change.index, depth)).into());
        }
        // Nothing changes below.
        (Node::Away(_), []) => return Err(UpdateError::NoSteps),
    };
    let middle = changes.partition_point(|(_, change)| !change.index.bit(depth));
    let (left, right) = changes.split_at(middle);
    let [a, b] = sides;
    let sides = [Side { node: a, changes: left }, Side { node: b, changes: right }];
    Ok(Below::Sides(sides, matches!(node, Node::Leaf(_))))
}

/// The steps after which a subtree is at the top of the stack.
fn push_steps(
    node: &Node,
    depth: usize,
    changes: &[Numbered],
    out: &mut Vec<Step>,
) -> Result<(), UpdateError> {
    let (sides, was_lone) = match below(node, depth, changes)? {
        Below::One(step) => {
            out.push(step);
            return Ok(());
        }
        Below::Sides(sides, was_lone) => (sides, was_lone),
    };
    let has_steps = [0, 1].map(|side: usize| sides[side].has_steps(was_lone));
    for (side, _) in sides.iter().zip(has_steps).filter(|(_, has_steps)| *has_steps) {
        push_steps(&side.node, depth + 1, side.changes, out)?;
    }
    out.push(match has_steps {
        [true, true] => Step::Merge,
        // A subtree without leaves has the same digest everywhere.
        [left, _] => Step::Up { sibling: sides[usize::from(left)].node.given().unwrap_or(EMPTY) },
    });
    Ok(())
}

mod tag {
    pub(super) const INSERT: u8 = 0;
    pub(super) const UPDATE: u8 = 1;
    pub(super) const TOUCH: u8 = 2;
    pub(super) const UP: u8 = 3;
    /// A step up beside a subtree without leaves.
    pub(super) const UP_ALONE: u8 = 4;
    pub(super) const MERGE: u8 = 5;
    pub(super) const END: u8 = 6;
    pub(super) const PATH: u8 = 7;
}

impl Step {
    /// Encodes steps, one after another.
    pub fn encode_all(steps: &[Self]) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 * steps.len());
        steps.iter().for_each(|step| step.write(&mut out));
        out
    }

    /// Decodes steps up to the end.
    ///
    /// # Errors
    /// If a step is cut off or is not a step.
    pub fn decode_all(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut steps = Vec::new();
        while !reader.rest().is_empty() {
            steps.push(Self::read(&mut reader)?);
        }
        Ok(steps)
    }

    /// Returns the maximum number of subtrees at a time while these steps are carried out.
    pub fn height(steps: &[Self]) -> usize {
        let (mut height, mut highest) = (0usize, 0);
        for step in steps {
            match step {
                Self::Insert { .. } | Self::Update { .. } | Self::Touch { .. } => height += 1,
                Self::Merge | Self::End => height = height.saturating_sub(1),
                Self::Up { .. } | Self::Path { .. } => {}
            }
            highest = highest.max(height);
        }
        highest
    }

    /// Appends the bytes: the kind, then for a push the depth, the index or the leaf, and the commitment; for a step up
    /// the digest of the sibling, unless it is that of nothing; for a path, index, commitment and path.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Insert { index, depth, commitment } => {
                out.extend([tag::INSERT, *depth]);
                out.extend(index.0);
                out.extend(commitment.0);
            }
            Self::Update { leaf, depth, commitment } => {
                out.extend([tag::UPDATE, *depth]);
                leaf.write(out);
                out.extend(commitment.0);
            }
            Self::Touch { leaf, depth } => {
                out.extend([tag::TOUCH, *depth]);
                leaf.write(out);
            }
            Self::Up { sibling } if *sibling == EMPTY => out.push(tag::UP_ALONE),
            Self::Up { sibling } => {
                out.push(tag::UP);
                out.extend(sibling);
            }
            Self::Path { index, path, commitment } => {
                out.push(tag::PATH);
                out.extend(index.0);
                out.extend(commitment.0);
                path.write(out);
            }
            Self::Merge => out.push(tag::MERGE),
            Self::End => out.push(tag::END),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let depth = |reader: &mut Reader<'_>| match reader.byte("step")? {
            depth if usize::from(depth) <= DEPTH => Ok(depth),
            depth => Err(DecodeError::Field(format!("step is at depth {depth}, at most {DEPTH}"))),
        };
        let commitment = |reader: &mut Reader<'_>| reader.array("step").map(Commitment);
        Ok(match reader.byte("step")? {
            tag::INSERT => {
                let (depth, index) = (depth(reader)?, Index(reader.array("step")?));
                Self::Insert { index, depth, commitment: commitment(reader)? }
            }
            tag::UPDATE => {
                let (depth, leaf) = (depth(reader)?, Leaf::read(reader)?);
                Self::Update { leaf, depth, commitment: commitment(reader)? }
            }
            tag::TOUCH => Self::Touch { depth: depth(reader)?, leaf: Leaf::read(reader)? },
            tag::UP => match reader.array("step")? {
                // This sibling has a tag of its own, so that every step has only one encoding.
                EMPTY => {
                    return Err(DecodeError::Field("step spells out an empty subtree".into()));
                }
                sibling => Self::Up { sibling },
            },
            tag::UP_ALONE => Self::Up { sibling: EMPTY },
            tag::MERGE => Self::Merge,
            tag::END => Self::End,
            tag::PATH => {
                let (index, commitment) = (Index(reader.array("step")?), commitment(reader)?);
                Self::Path { index, commitment, path: Box::new(Path::read(reader)?) }
            }
            other => return Err(DecodeError::Field(format!("step is of kind {other}: 0 to 7"))),
        })
    }
}

impl Witness {
    /// The bytes: `HKEW`, version, profile, epoch, root, chain, number of steps (8 bytes), steps. Numbers are big-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from(MAGIC);
        out.extend([VERSION, self.profile.number()]);
        out.extend(self.epoch.to_be_bytes());
        out.extend(self.root);
        out.extend(self.chain);
        out.extend((self.steps.len() as u64).to_be_bytes());
        out.extend(Step::encode_all(&self.steps));
        out
    }

    /// Decodes a witness. Its steps are not checked here; the prover checks them when it executes them.
    ///
    /// # Errors
    /// If the bytes are not what [`encode`](Self::encode) writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if reader.array("first bytes")? != MAGIC {
            return Err(DecodeError::Field("first bytes are not those of a witness".into()));
        }
        reader.version(VERSION)?;
        let number = reader.byte("profile")?;
        let unknown = || DecodeError::Field(format!("profile is number {number}, which is none"));
        let profile = Profile::of_number(number).ok_or_else(unknown)?;
        let epoch = reader.u32("epoch")?;
        let (root, chain) = (reader.array("root")?, reader.array("chain")?);
        let count = reader.u64("number of steps")?;
        let steps = Step::decode_all(reader.rest())?;
        // Steps have no end mark: only the number reveals a file that is cut off between two of
        // them.
        match steps.len() as u64 == count {
            true => Ok(Self { profile, epoch, root, chain, steps }),
            false => Err(DecodeError::Field(format!(
                "number of steps is {count}, but there are {}",
                steps.len()
            ))),
        }
    }
}
