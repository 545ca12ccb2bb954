//! Events that components receive from the store.

use super::memory::{Bug, Faults, Loss};
use super::records;
use super::simulation::simulate;
use super::world::World;
use crate::feed::{Event, feed};
use crate::record::{JobKey, encode};
use crate::store::Rev;
use hekaton_orchestrator_client::Name;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep;

/// A store that has lost its last writes counts again from where it was: new writes must not be taken for those that were read already.
#[test]
fn a_counter_that_went_back_hides_nothing() {
    simulate(async || {
        let mut world = World::new(1, Bug::None);
        // All is found by sweeps.
        world.core.set_faults(Faults { dead_watches: 1_000, ..Faults::NONE });
        let (store, clock) = (world.store(), world.clock(1.0));
        let (send, mut events) = unbounded_channel();
        tokio::spawn(feed(world.store(), clock, vec![send]));
        let write = async |id: &str| {
            let job = records::job(vec![]);
            let job = crate::record::Job { id: id.parse().unwrap(), ..job };
            store.create_soon(&job.key().to_string(), encode(&job, 0)).await.unwrap();
        };
        let mut heard = async || {
            sleep(Duration::from_secs(60)).await;
            let mut heard: Vec<Name> = vec![];
            let mut resets = 0;
            while let Ok(event) = events.try_recv() {
                match event {
                    Event::Job(_, job) => heard.push(job.value.id.clone()),
                    Event::Reset => resets += 1,
                    _ => {}
                }
            }
            (heard.iter().map(Name::to_string).collect::<Vec<_>>(), resets)
        };
        assert_eq!(heard().await, (vec![], 1));
        for id in ["a", "b", "c"] {
            write(id).await;
        }
        assert_eq!(heard().await, (vec!["a".into(), "b".into(), "c".into()], 0));
        assert_eq!(world.core.crash(Loss::All), 3);
        for id in ["d", "e"] {
            write(id).await;
        }
        // Lost records are forgotten, and existing ones are reported.
        assert_eq!(heard().await, (vec!["d".into(), "e".into()], 1));
        // Removed ones are known a day later.
        let [d, e] = ["d", "e"].map(|id| {
            let jobs = world.core.history().jobs().into_keys();
            jobs.into_iter().find(|key| key.slot.as_str() == id).unwrap()
        });
        let rev = async |key: &JobKey| store.get(&key.to_string()).await.unwrap().unwrap().rev;
        let (removed, kept) = (rev(&d).await, rev(&e).await);
        store.remove(&d.to_string(), removed).await.unwrap();
        sleep(Duration::from_secs(25 * 3_600)).await;
        let mut listed = None;
        while let Ok(event) = events.try_recv() {
            if let Event::Listed(found) = event {
                listed = Some(found);
            }
        }
        let listed = listed.unwrap();
        assert!(listed.is_removed(&d, removed) && !listed.is_removed(&e, kept));
        let later = Rev { number: kept.number + 9, ..removed };
        assert!(!listed.is_removed(&d, later), "it was accepted again");
    });
}
