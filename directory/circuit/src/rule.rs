//! Purposes of the rows of a step. Each rule has a test that shows what can be proven without it.

/// The rule that a row is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// A variable is a product.
    Definition,
    /// A step does one thing.
    OneOperation,
    /// The location has as many bits as an index, so a node's number is below 2^128 and has one parity.
    LocationBits,
    /// A leaf that is pushed is on the way to its index.
    Prefix,
    /// A leaf that is pushed has a depth.
    Depth,
    /// The top of the stack afterwards is at the location of the step.
    Location,
    /// A step up goes to the parent, from its left or its right side.
    Parent,
    /// Two that are merged are the sides of one node.
    Sides,
    /// A push finds room on the stack.
    Room,
    /// A leaf is of the index at whose place it is.
    Index,
    /// The unused bytes of a leaf are zero.
    Zeros,
    /// A new leaf has version 0.
    First,
    /// The next version is one more.
    Next,
    /// A leaf that is written has the number of the epoch.
    Epoch,
    /// A leaf that only moves stays as it is.
    Same,
    /// An insertion finds nothing.
    Nothing,
    /// A step up begins with what is on the stack.
    Current,
    /// The sibling of a step up is the same before and after the epoch.
    Beside,
    /// A leaf that is the sibling of a step up was not alone before the epoch: otherwise it moves down, and is pushed
    /// itself.
    Displaced,
    /// Two that are merged are those on the stack.
    Merged,
    /// A subtree has its digest on the stack.
    Digest,
    /// The test for the digest of nothing is exact.
    Empty,
    /// A step that does nothing leaves the top of the stack.
    Idle,
    /// An epoch ends at the root.
    AtRoot,
    /// An epoch ends with nothing else on the stack.
    Alone,
    /// An epoch begins with the root that the one before it ended with.
    Root,
    /// The chain is extended by the new root.
    Chain,
    /// The entries behind the top of the stack move with pushes and merges, and stay otherwise.
    Stack,
}
