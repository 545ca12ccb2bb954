//! Directories to measure: labels that are numbers, and batches of updates.

use hekaton_directory::{Change, Commitment, Index, Profile, Tree};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The change of a label's number.
fn change(number: usize, value: u64) -> Result<Change, Error> {
    let mut commitment = [7; 32];
    commitment[..8].copy_from_slice(&value.to_be_bytes());
    let index = Index::of(&number.to_be_bytes())?;
    Ok(Change { index, commitment: Commitment(commitment) })
}

/// A tree with this many labels.
///
/// # Errors
/// If there cannot be as many.
pub fn tree(profile: Profile, labels: usize) -> Result<Tree, Error> {
    let all: Vec<Change> = (0..labels).map(|n| change(n, 0)).collect::<Result<_, _>>()?;
    let mut tree = Tree::new(profile);
    for some in all.chunks(1 << 16) {
        tree = tree.update(some)?;
    }
    Ok(tree)
}

/// A batch of updates: half are new, the others all over the tree.
///
/// # Errors
/// If there cannot be as many.
pub fn batch(labels: usize, updates: usize) -> Result<Vec<Change>, Error> {
    let each = |n: usize| match n % 2 {
        0 => change(labels + n, 1),
        _ => change(n * (labels / updates).max(1), 1),
    };
    (0..updates).map(each).collect()
}
