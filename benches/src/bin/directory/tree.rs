//! Batches of updates in memory.

use crate::{Error, Options, each};
use benches::directory::{batch, tree};
use benches::{medians, times};
use hekaton_directory::Profile;

/// Batches of updates, one by one and by rivals.
pub(crate) fn measure(options: &Options) -> Result<(), Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for profile in Profile::ALL {
        let tree = tree(profile, options.keys)?;
        let batch = batch(options.keys, options.updates)?;
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
