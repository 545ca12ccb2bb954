//! The queue: whose turn it is, for how long, and who is invited.

use super::queue::{Admission, Event, NoSlot, Queue, Stage, Time, millis};
use crate::body::{SlotBody, SlotRequest};
use hekaton_ceremony::Chain;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(1_800);
const SECOND: Time = 1_000;
const POWERS: [Chain; 2] = [Chain::Tau, Chain::Phi];
const SEGMENTS: [Chain; 3] = [Chain::Segment(1), Chain::Segment(2), Chain::Segment(3)];

fn token(number: usize) -> String {
    format!("{number:064x}")
}

fn request(number: usize, chains: &[&str]) -> SlotRequest {
    SlotRequest {
        token: token(number),
        name: format!("contributor {number}"),
        chains: chains.iter().map(|&chain| chain.to_owned()).collect(),
        invitation: None,
    }
}

/// A queue with a clock.
struct Bench {
    queue: Queue,
    known: Vec<Chain>,
    admission: Admission,
    now: Time,
}

impl Bench {
    fn new(known: &[Chain]) -> Self {
        let known = known.to_vec();
        Self { queue: Queue::new(), known, admission: Admission::Open, now: 1_000_000 * SECOND }
    }

    fn join(&mut self, request: &SlotRequest) -> Result<(), NoSlot> {
        self.queue.join(self.now, request, &self.admission, &self.known)
    }

    fn advance(&mut self) -> Vec<Event> {
        self.queue.advance(self.now, DEADLINE)
    }

    /// The numbers of the slots whose turn it is.
    fn active(&self) -> Vec<usize> {
        let active =
            self.queue.slots.iter().filter(|slot| matches!(slot.stage, Stage::Active { .. }));
        active.map(|slot| usize::from_str_radix(&slot.token, 16).unwrap()).collect()
    }

    fn body(&self, number: usize) -> SlotBody {
        let slot = self.queue.find(&token(number)).unwrap();
        self.queue.body(slot, self.now, BTreeMap::new(), 0)
    }

    /// All contributors but these ask for their slots.
    fn ask(&mut self, but: &[usize]) {
        for slot in &mut self.queue.slots {
            if but.iter().all(|number| token(*number) != slot.token) {
                slot.seen = self.now;
            }
        }
    }
}

#[test]
fn one_contributor_at_a_time_works_on_powers() {
    let mut bench = Bench::new(&POWERS);
    for (number, chains) in [(1, &["phi"][..]), (2, &["tau"]), (3, &["tau", "phi"])] {
        bench.join(&request(number, chains)).unwrap();
    }
    assert_eq!(bench.advance().len(), 1);
    assert_eq!(bench.active(), [1]);
    assert_eq!(bench.body(2), SlotBody::Waiting { before: 1, ask_again: 1 });
    assert_eq!(bench.body(3), SlotBody::Waiting { before: 2, ask_again: 5 });
    // While a contribution is checked, nobody else begins, and no deadline ends it.
    bench.queue.find_mut(&token(1)).unwrap().stage = Stage::Complete;
    bench.now += 10 * millis(DEADLINE);
    bench.ask(&[]);
    assert_eq!(bench.advance(), []);
    assert_eq!(bench.body(1), SlotBody::Verifying { ask_again: 1, trouble: None });
    bench.queue.end(&token(1), bench.now, Stage::Accepted);
    bench.advance();
    assert_eq!(bench.active(), [2]);
    bench.queue.end(&token(2), bench.now, Stage::Refused { why: "wrong".into() });
    bench.advance();
    assert_eq!(bench.active(), [3]);
    assert_eq!(bench.body(1), SlotBody::Accepted);
    assert_eq!(bench.body(2), SlotBody::Refused { why: "wrong".into() });
}

#[test]
fn segments_have_turns_of_their_own() {
    let mut bench = Bench::new(&SEGMENTS);
    let all: [&[&str]; 5] = [&["1"], &["1", "2"], &["2"], &["3"], &["1", "2", "3"]];
    for (number, chains) in all.into_iter().enumerate() {
        bench.join(&request(number, chains)).unwrap();
    }
    bench.advance();
    // The third one does not overtake the second, which waits for segment 1 and then needs 2.
    assert_eq!(bench.active(), [0, 3]);
    for (ends, active) in [(0, &[1, 3][..]), (3, &[1]), (1, &[2]), (2, &[4])] {
        bench.queue.end(&token(ends), bench.now, Stage::Accepted);
        bench.advance();
        assert_eq!(bench.active(), active);
    }
}

/// All orders of arrival of small requests, with ends in all orders: no part has two contributors, everybody gets a turn, and nobody is
/// overtaken by a later one with a part in common.
#[test]
fn everybody_gets_a_turn_in_order() {
    let sets: [&[&str]; 7] =
        [&["1"], &["2"], &["3"], &["1", "2"], &["1", "3"], &["2", "3"], &["1", "2", "3"]];
    for code in 0..7usize.pow(4) {
        let chosen: Vec<&[&str]> = (0..4).map(|k| sets[code / 7usize.pow(k) % 7]).collect();
        for ends in 0..4 {
            let mut bench = Bench::new(&SEGMENTS);
            for (number, chains) in chosen.iter().enumerate() {
                bench.join(&request(number, chains)).unwrap();
            }
            let mut begun: Vec<usize> = Vec::new();
            bench.advance();
            loop {
                let active = bench.active();
                for number in active.iter().filter(|number| !begun.contains(number)) {
                    let shares = |other: &usize| {
                        chosen[*other].iter().any(|chain| chosen[*number].contains(chain))
                    };
                    assert!((0..*number).filter(shares).all(|first| begun.contains(&first)));
                }
                begun.extend(
                    active
                        .iter()
                        .filter(|number| !begun.contains(number))
                        .copied()
                        .collect::<Vec<_>>(),
                );
                let parts: Vec<&str> = active.iter().flat_map(|n| chosen[*n]).copied().collect();
                assert_eq!(parts.iter().collect::<HashSet<_>>().len(), parts.len());
                let Some(next) = active.get(ends % active.len().max(1)) else { break };
                bench.queue.end(&token(*next), bench.now, Stage::Accepted);
                bench.advance();
            }
            assert_eq!(begun.len(), 4);
        }
    }
}

#[test]
fn deadlines_end_turns_and_uploads_extend_them() {
    let mut bench = Bench::new(&POWERS);
    bench.join(&request(1, &["tau"])).unwrap();
    bench.join(&request(2, &["tau"])).unwrap();
    bench.advance();
    bench.now += millis(DEADLINE) - SECOND;
    bench.ask(&[]);
    assert_eq!(bench.advance(), []);
    // Not beyond the time of a slow connection, 16 KiB a second, and each byte once: not if the upload begins again.
    bench.queue.came(&token(1), bench.now, 160 << 10);
    bench.queue.came(&token(1), bench.now, 16 << 10);
    bench.queue.came(&token(1), bench.now, 160 << 10);
    let SlotBody::Active { seconds, .. } = bench.body(1) else { panic!("it is its turn") };
    assert_eq!(seconds, 11);
    bench.now += 10 * SECOND;
    bench.ask(&[]);
    assert_eq!(bench.advance(), []);
    bench.now += SECOND;
    let name = |number| format!("contributor {number}");
    let events = [Event::Expired { name: name(1) }, Event::Turn { name: name(2) }];
    assert_eq!(bench.advance(), events);
    assert_eq!(bench.body(1), SlotBody::Expired);
    // What comes too late extends nothing.
    bench.queue.came(&token(1), bench.now, 1 << 30);
    assert_eq!(bench.body(1), SlotBody::Expired);
}

/// Bytes that come quickly do not hold the turn for as long as they would have taken on a slow connection.
#[test]
fn turns_end_soon_after_the_last_bytes() {
    let mut bench = Bench::new(&POWERS);
    bench.join(&request(1, &["tau"])).unwrap();
    bench.advance();
    bench.now += millis(DEADLINE) - SECOND;
    bench.queue.came(&token(1), bench.now, 500 << 20);
    let seconds = |bench: &Bench| match bench.body(1) {
        SlotBody::Active { seconds, .. } => seconds,
        other => panic!("{other:?}"),
    };
    assert_eq!(seconds(&bench), 300);
    bench.now += 200 * SECOND;
    bench.queue.came(&token(1), bench.now, (500 << 20) + 1);
    assert_eq!(seconds(&bench), 300);
    bench.now += 300 * SECOND;
    bench.advance();
    assert_eq!(bench.body(1), SlotBody::Expired);
}

#[test]
fn whoever_is_absent_is_passed_over() {
    let mut bench = Bench::new(&POWERS);
    for number in 1..=3 {
        bench.join(&request(number, &["phi"])).unwrap();
    }
    bench.advance();
    // The second one does not ask any more.
    bench.now += 121 * SECOND;
    bench.ask(&[2]);
    assert_eq!(bench.body(3), SlotBody::Waiting { before: 1, ask_again: 1 });
    bench.queue.end(&token(1), bench.now, Stage::Accepted);
    bench.advance();
    assert_eq!(bench.active(), [3]);
    // It is back before the third one has ended, and has kept its place.
    bench.join(&request(2, &["phi"])).unwrap();
    bench.join(&request(4, &["phi"])).unwrap();
    bench.queue.end(&token(3), bench.now, Stage::Accepted);
    bench.advance();
    assert_eq!(bench.active(), [2]);
    bench.now += 3_600 * SECOND;
    assert!(bench.advance().contains(&Event::Left { name: "contributor 4".into() }));
    assert!(bench.queue.find(&token(4)).is_none());
}

#[test]
fn the_same_request_has_the_same_slot() {
    let mut bench = Bench::new(&POWERS);
    bench.join(&request(1, &["tau"])).unwrap();
    bench.join(&request(1, &["tau"])).unwrap();
    assert_eq!(bench.queue.slots.len(), 1);
    let with = |change: Change| {
        let mut changed = request(1, &["tau"]);
        change(&mut changed);
        changed
    };
    type Change = fn(&mut SlotRequest);
    let changes: [(&str, Change); 9] = [
        ("another name", |r| r.name = "Eve".into()),
        ("another name or other chains", |r| r.chains = vec!["phi".into()]),
        ("64 hexadecimal digits", |r| r.token = "../slots.json".into()),
        ("64 hexadecimal digits", |r| r.token = token(1).to_uppercase().replace('0', "A")),
        ("name: expected", |r| r.name = "\u{202e}ecilA".into()),
        ("chains: expected", |r| r.chains = vec![]),
        ("chains: expected", |r| r.chains = vec!["1".into()]),
        ("chains: expected", |r| r.chains = vec!["phi".into(), "tau".into()]),
        ("chains: expected", |r| r.chains = vec!["tau".into(), "tau".into()]),
    ];
    for (why, change) in changes {
        let told = bench.join(&with(change)).unwrap_err().to_string();
        assert!(told.contains(why), "{told}");
    }
    assert_eq!(bench.queue.slots.len(), 1);
}

#[test]
fn an_invitation_serves_once_for_each_chain() {
    let mut bench = Bench::new(&SEGMENTS);
    let (any, alices) = ("0123456789abcdef", "fedcba9876543210");
    let digest = Admission::digest;
    let invitations = [(digest(any), None), (digest(alices), Some("Alice".to_owned()))];
    bench.admission = Admission::Invited(BTreeMap::from(invitations));
    let invited = |number, chains: &[&str], code: &str| SlotRequest {
        invitation: Some(code.to_owned()),
        ..request(number, chains)
    };
    let refused = |bench: &mut Bench, request: SlotRequest, why: &str| {
        let told = bench.join(&request).unwrap_err().to_string();
        assert!(told.contains(why), "{told}");
    };
    refused(&mut bench, request(1, &["1"]), "need an invitation");
    refused(&mut bench, invited(1, &["1"], "0123456789abcdee"), "no such invitation");
    refused(&mut bench, invited(1, &["1"], alices), "for another name");
    bench.join(&SlotRequest { name: "Alice".into(), ..invited(1, &["1"], alices) }).unwrap();
    bench.join(&invited(2, &["1"], any)).unwrap();
    refused(
        &mut bench,
        invited(3, &["2"], any),
        "already has a slot, under the name contributor 2",
    );
    bench.advance();
    // A slot that has ended without a contribution costs no invitation.
    bench.queue.end(&token(2), bench.now, Stage::Expired);
    bench.join(&invited(4, &["1", "2"], any)).unwrap();
    bench.queue.end(&token(4), bench.now, Stage::Accepted);
    refused(
        &mut bench,
        invited(5, &["2"], any),
        "has already been used for a contribution to chain 2",
    );
    bench.join(&invited(6, &["3"], any)).unwrap();
}

#[test]
fn queues_are_bounded_and_survive_a_restart() {
    let mut bench = Bench::new(&POWERS);
    for number in 0..1_000 {
        bench.join(&request(number, &["tau"])).unwrap();
    }
    assert_eq!(bench.join(&request(1_000, &["tau"])), Err(NoSlot::Full));
    // Who is away for longest makes room.
    bench.now += 121 * SECOND;
    bench.ask(&[7]);
    bench.join(&request(1_000, &["tau"])).unwrap();
    assert!(bench.queue.find(&token(7)).is_none());
    bench.join(&request(7, &["tau"])).unwrap_err();
    bench.advance();
    bench.join(&request(7, &["tau"])).unwrap();
    // Of those that have ended, the last thousand are remembered.
    for number in 0..=1_000 {
        bench.queue.end(&token(number), bench.now, Stage::Expired);
    }
    bench.join(&request(2_000, &["phi"])).unwrap();
    bench.advance();
    assert!(bench.queue.find(&token(0)).is_none() && bench.queue.find(&token(1)).is_some());
    let text = serde_json::to_string(&bench.queue).unwrap();
    let mut read: Queue = serde_json::from_str(&text).unwrap();
    assert_eq!(read, bench.queue);
    // Nobody has lost time.
    bench.now += 5 * millis(DEADLINE);
    read.resume(bench.now, DEADLINE);
    bench.queue = read;
    assert_eq!(bench.advance(), []);
    assert_eq!(bench.active(), [2_000]);
}
