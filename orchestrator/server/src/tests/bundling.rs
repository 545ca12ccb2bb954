//! When bundles are made, in the simulated world.

use super::memory::Bug;
use super::simulation::{JOIN, SINGLE, published, settle, simulate, strict, submission, submit};
use super::world::{Shape, World, name};
use crate::record::{Bundles, Chain};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The first bundle of a chain that is new, whose blocks are all there, does not wait for the next sweep; nor does one whose last block
/// is published by another process.
#[test]
fn the_first_bundle_of_a_new_chain_is_made_at_once() {
    simulate(async || {
        for seed in 0..20 {
            let mut world = World::new(seed, Bug::None);
            let (single, join) = (world.workflow(SINGLE), world.workflow(JOIN));
            let submissions = world.submissions();
            submissions.make_chain(strict("strict")).await.unwrap();
            let _nodes = [(); 2].map(|()| world.start(Shape::default()));
            for (block, id, parent) in [(1, "one", "genesis"), (2, "two", "one")] {
                let wanted = submission("strict", block, id, Some(parent), single);
                submit(&submissions, &wanted).await.unwrap();
            }
            settle(&world).await;
            // Anywhere between two sweeps.
            sleep(Duration::from_millis(700 * seed)).await;
            let spec = Bundles {
                of: name("strict"),
                blocks: 2,
                workflow: join,
                input: name("a"),
                lane: 0,
            };
            let chain = Chain { bundles: Some(spec), ..strict("bundles") };
            submissions.make_chain(chain).await.unwrap();
            let begun = Instant::now();
            while published(&world.core.history(), "bundles").is_empty() {
                sleep(Duration::from_millis(10)).await;
                let late = begun.elapsed() > Duration::from_secs(8);
                assert!(!late, "seed {seed}: nothing after {:?}", begun.elapsed());
            }
        }
    });
}
