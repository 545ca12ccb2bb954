//! Devices of ranks: the same bytes, and events of rank 0 that name them.

use super::*;
use crate::protocol::accelerator::Accelerators;
use crate::tests::accelerators::{Double, Fault};

/// Rank 0 reports the work of the devices of other ranks, and what became of them, with the names of their ranks.
#[test]
fn devices_of_ranks_are_named() {
    let bench = bench(5);
    let expected = local(&bench);
    for (fault, said) in [(Fault::None, None), (Fault::Fails, Some("it fell off the bus"))] {
        let events = Mutex::new(Vec::new());
        let recorder =
            Recorder::new("test", |record| events.lock().unwrap().push(record.event.clone()));
        let options = ProveOptions::new()
            .randomness(Randomness::seeded_not_zero_knowledge(3))
            .recorder(&recorder);
        let run = run_with(&bench, &[0, 2], Scheduling::Dynamic, &options, &|_, end, _| {
            let (input, pool, keys) = (Fr::from(INPUT), pool(2), &bench.keys);
            let circuit = bench.with_input(&input);
            let devices = Accelerators::new(vec![Box::new(Double::new(fault, 2))]);
            let rank = Serve {
                circuit: &circuit,
                keys,
                pool: &pool,
                accelerators: Some(&devices),
                hello: Hello::new(&circuit, keys, 2, &pool).unwrap(),
                failed: &|_| {},
            };
            assert_eq!(serve(&end, &rank), Ok(()));
        });
        assert_eq!(run.unwrap().proof.as_bytes(), expected.proof.as_bytes());
        drop(recorder);
        let (mut answers, mut notices) = (0, Vec::new());
        for event in events.into_inner().unwrap() {
            match event {
                Event::Device(account) => {
                    assert!(account.device.starts_with("double 7 of rank 1 on "));
                    answers += account.work.subcircuits;
                }
                Event::Notice { message } => notices.push(message),
                _ => {}
            }
        }
        assert!(answers > 0);
        let Some(said) = said else {
            assert_eq!(notices, Vec::<String>::new());
            continue;
        };
        assert!(notices.len() == 1 && notices[0].starts_with("rank 1 on "), "{notices:?}");
        assert!(notices[0].contains(said), "{notices:?}");
    }
}
