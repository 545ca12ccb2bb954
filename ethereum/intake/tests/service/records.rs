//! Records: pages of them, in any state, and blocks that are submitted again.

use super::*;
use hekaton_intake::store::Page;

fn page(address: &str, query: &str) -> Page {
    let (status, body) = send("GET", &format!("{address}/v1/witness{query}"), &[], &[]);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

fn numbers(page: &Page) -> Vec<u64> {
    page.records.iter().map(|record| record.number).collect()
}

#[test]
fn records_are_listed_page_by_page() {
    let world = World::new();
    let (_, address) = world.service(|_| {});
    assert_eq!(page(&address, ""), Page { records: vec![], next: None, unreadable: 0 });
    // Two blocks at height 4.
    let mut blocks = Block::chain(1, 2, 4, 3_000);
    blocks.push(Block::new(2, 4, 3_000));
    let url = format!("{address}/v1/witness");
    for block in &blocks {
        record(&post(&url, OCTETS, &block.push()));
    }
    let all = page(&address, "");
    assert_eq!((numbers(&all), &all.next), (vec![5, 4, 4, 3, 2], &None));
    for limit in 1..=5 {
        let (mut found, mut after) = (vec![], String::new());
        loop {
            let next = page(&address, &format!("?limit={limit}{after}"));
            assert!(next.records.len() <= limit);
            found.extend(next.records);
            match next.next {
                Some(place) => after = format!("&after={place}"),
                None => break,
            }
        }
        assert_eq!(found, all.records, "{limit}");
    }
    // In a state.
    let folder = world.folder.path().join("intake-0/blocks");
    let path = |block: &Block| folder.join(format!("{}.json", json_hash(block)));
    let set = |block: &Block, change: &dyn Fn(&mut Record)| {
        let text = std::fs::read(path(block)).unwrap();
        let mut record: Record = serde_json::from_slice(&text).unwrap();
        change(&mut record);
        std::fs::write(path(block), serde_json::to_vec(&record).unwrap()).unwrap();
    };
    set(&blocks[0], &|it| (it.pending, it.job) = (false, Some("a".repeat(64))));
    set(&blocks[1], &|it| (it.pending, it.aside) = (false, true));
    set(&blocks[3], &|it| it.refused = Some("full".into()));
    for (status, expected) in
        [("pending", &[5, 4, 4][..]), ("submitted", &[2]), ("aside", &[3]), ("refused", &[5])]
    {
        assert_eq!(numbers(&page(&address, &format!("?status={status}"))), expected, "{status}");
    }
    let first = page(&address, "?status=pending&limit=2");
    let last = page(&address, &format!("?status=pending&after={}", first.next.unwrap()));
    assert_eq!((numbers(&last), last.next), (vec![4], None));
    // A record that cannot be read is counted, unless the page ends before it.
    std::fs::write(path(&blocks[0]), "{").unwrap();
    let rest = page(&address, "");
    assert_eq!((numbers(&rest), rest.unreadable), (vec![5, 4, 4, 3], 1));
    let first = page(&address, "?limit=3");
    assert_eq!((numbers(&first), first.unreadable), (vec![5, 4, 4], 0));
    for (query, why) in [
        ("?limit=0", "limit 0, expected 1 to 1000"),
        ("?limit=1001", "limit 1001, expected 1 to 1000"),
        ("?limit=x", "limit"),
        ("?status=done", "done"),
        ("?after=5", "after '5': expected the `next` of a page"),
        ("?after=x-00", "after 'x-00'"),
        ("?before=5", "before"),
    ] {
        let refused = problem(send("GET", &format!("{url}{query}"), &[], &[]));
        assert_eq!(
            (refused.status, &refused.kind[..]),
            (400, "/engine-api/errors/invalid-request")
        );
        assert!(refused.detail.contains(why), "{refused:?}\nand not: {why}");
    }
}

/// Pages are read although all bodies that may be worked on wait for a node.
#[test]
fn pages_do_not_wait_for_bodies() {
    let world = World::new();
    let (listener, silent) = world.listen();
    let (_, address) = world.service(|service| {
        service.node = Some(Node::new(&silent, None, false, 1 << 20));
        service.codec = Some(Codec::Json);
    });
    let url = format!("{address}/v1/fetch");
    let body = Block::new(1, 2, 3_000).parameters.encode();
    for _ in 0..8 {
        let (url, body) = (url.clone(), body.clone());
        // These end with the node, or with the process.
        std::thread::spawn(move || {
            let agent = ureq::Agent::new_with_defaults();
            drop(agent.post(&url).content_type(JSON).send(&body[..]));
        });
    }
    let arrived = world.runtime.block_on(async {
        let mut arrived = vec![];
        while arrived.len() < 8 {
            arrived.push(listener.accept().await.unwrap());
        }
        arrived
    });
    assert_eq!(page(&address, "").records, []);
    drop(arrived);
}

#[test]
fn blocks_are_submitted_again() {
    let world = World::new();
    let (woken, wakes) = std::sync::mpsc::channel();
    let secret = Secret::new([3; 32]);
    let (submitter, address) = world.service(|service| {
        service.wake = woken;
        service.secret = Some(secret.clone());
    });
    let token = format!("Bearer {}", secret.token());
    let headers = [("authorization", &token[..]), ("content-type", OCTETS)];
    let url = format!("{address}/v1/witness");
    let block = Block::new(1, 2, 3_000);
    let sent = record(&send("POST", &url, &headers, &block.push()));
    let path = world.folder.path().join(format!("intake-0/blocks/{}.json", sent.block));
    let given_up = Record {
        pending: false,
        aside: true,
        refused: Some("its branch".into()),
        accepted: 5,
        ..sent.clone()
    };
    std::fs::write(path, serde_json::to_vec(&given_up).unwrap()).unwrap();
    wakes.try_iter().for_each(drop);
    let again = format!("{url}/{}/resubmit", sent.block);
    let found = record(&send("POST", &again, &headers, &[]));
    assert!(found.accepted >= sent.accepted && found.order > sent.order);
    let expected = Record { accepted: found.accepted, order: found.order, ..sent };
    assert_eq!(found, expected);
    assert_eq!(submitter.store().record(&found.block).unwrap(), Some(found));
    assert_eq!((submitter.store().waiting(), wakes.try_iter().count()), (1, 1));
    // Without a token, another block, a name that is not a hash.
    assert_eq!(problem(send("POST", &again, &[], &[])).status, 401);
    assert_eq!(problem(send("GET", &url, &[], &[])).status, 401);
    for (name, status) in [("0".repeat(64), 404), ("x".into(), 400)] {
        let refused = problem(send("POST", &format!("{url}/{name}/resubmit"), &headers, &[]));
        assert_eq!(refused.status, status);
    }
    assert_eq!(wakes.try_iter().count(), 0);
}
