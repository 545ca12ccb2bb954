//! Batches of updates in memory.

use crate::{Error, Options, each};
use benches::{medians, times};
use hekaton_directory::{Change, Commitment, Index, Profile, Tree};

/// The change of a label's number.
fn change(number: usize, value: u64) -> Result<Change, Error> {
    let mut commitment = [7; 32];
    commitment[..8].copy_from_slice(&value.to_be_bytes());
    let index = Index::of(&number.to_be_bytes())?;
    Ok(Change { index, commitment: Commitment(commitment) })
}

/// The tree before anything is measured.
pub(crate) fn tree(options: &Options, profile: Profile) -> Result<Tree, Error> {
    let all: Vec<Change> = (0..options.keys).map(|n| change(n, 0)).collect::<Result<_, _>>()?;
    let mut tree = Tree::new(profile);
    for some in all.chunks(1 << 16) {
        tree = tree.update(some)?;
    }
    Ok(tree)
}

/// A batch of updates: half are new, the others all over the tree.
pub(crate) fn batch(options: &Options, updates: usize) -> Result<Vec<Change>, Error> {
    let each = |n: usize| match n % 2 {
        0 => change(options.keys + n, 1),
        _ => change(n * (options.keys / updates).max(1), 1),
    };
    (0..updates).map(each).collect()
}

/// Batches of updates, one by one and by rivals.
pub(crate) fn measure(options: &Options) -> Result<(), Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for profile in Profile::ALL {
        let tree = tree(options, profile)?;
        let batch = batch(options, options.updates)?;
        let (mut at_once, mut one_by_one, mut rivals) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.run.repetitions {
            let (spent, next) = pool.install(|| times(|| tree.update(&batch)));
            next?;
            at_once.push(spent);
            let (spent, next) = pool.install(|| {
                times(|| {
                    batch.iter().try_fold(tree.clone(), |tree, change| {
                        tree.update(std::slice::from_ref(change))
                    })
                })
            });
            next?;
            one_by_one.push(spent);
            if profile == Profile::Compress {
                rivals.extend(options.rival("jmt")?);
            }
        }
        let [ours, _] = each(medians(&at_once), options.updates);
        let [alone, _] = each(medians(&one_by_one), options.updates);
        let bench = format!("tree, {}: an update of a batch", profile.name());
        let unit = "us of CPU time";
        options.line(&bench, ours, ("one by one", alone), unit);
        if !rivals.is_empty() {
            rivals.sort_by(|a, b| a[0].total_cmp(&b[0]));
            options.line(&bench, ours, ("jmt 0.12", rivals[rivals.len() / 2][0]), unit);
        }
    }
    Ok(())
}
