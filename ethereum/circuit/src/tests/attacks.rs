//! Cheating provers, each next to the honest one. Hashing is proven only where it matters.

use super::honest::{Changed, changed, circuit_of, is_accepted};
use super::state::{Account, list, slot, string, trie, witness};
use crate::assignment::Assignment;
use crate::blocks::{BlockValues, Hashes};
use crate::chain::Tag;
use crate::circuit::Sponge;
use crate::header::{HeaderValues, halves};
use crate::node::StringValues;
use crate::sample::Strings;
use crate::sample::{header_of, sample};
use hekaton_circuit::{CheckReport, Fr, check};
use hekaton_witness_format::keccak;
use std::collections::BTreeMap;

/// Returns the report of the checks on a prover that lies, hashing included.
fn proven(witness: &Strings, change: impl Fn(&mut Assignment) + Sync + 'static) -> CheckReport {
    let circuit = Changed::new(circuit_of(witness), change, Hashes::Proven);
    check(&circuit, &witness.encode(), |_, _| {}).unwrap()
}

/// Returns the first three violations as text.
fn violated(report: &CheckReport) -> Vec<String> {
    let mut kinds: Vec<String> =
        report.violations.iter().map(|violation| format!("{violation:?}")).collect();
    kinds.truncate(3);
    kinds
}

fn refused(name: &str, report: &CheckReport) {
    assert!(!is_accepted(report), "{name} was accepted");
}

/// Returns a string as its prover has it, whose references are asked for once each.
fn values(bytes: &[u8], tag: Tag, places: &[usize], counts: &[u64]) -> StringValues {
    let blocks = BlockValues::of(bytes);
    StringValues { blocks, tag, places: places.to_vec(), counts: counts.to_vec() }
}

/// Returns a state with one account that has storage and a code, and another account.
fn world() -> Strings {
    let mut rich = Account::new();
    rich.storage = (0..3).map(|at| (slot(at), string(&[9; 32]))).collect();
    rich.code = (0..300u16).map(|at| at as u8).collect();
    witness(&[(slot(100), rich), (slot(101), Account::new())])
}

/// Returns the header of a state whose root is the digest of a string.
fn under(root: &[u8]) -> HeaderValues {
    HeaderValues { blocks: BlockValues::of(&header_of(&keccak(root))), count: 1 }
}

/// Changes an assignment to one under a root of the prover's choice, which is the only string.
fn alone(
    leaf: bool,
    string: StringValues,
    bytes: &[u8],
) -> impl Fn(&mut Assignment) + Sync + use<> {
    let (header, hash) = (under(bytes), keccak(&header_of(&keccak(bytes))));
    move |assignment| {
        let mut new = Assignment { header: Some(header.clone()), hash, ..Assignment::default() };
        match (leaf, string.blocks.len()) {
            (true, 1) => new.leaves.push(string.clone()),
            (true, _) => new.mixed_leaves.push(string.clone()),
            (false, _) => new.branches.push(string.clone()),
        }
        *assignment = new;
    }
}

/// The honest counterparts of the attacks below are accepted.
#[test]
fn the_controls_are_accepted() {
    assert!(is_accepted(&changed(&world(), |_| {})));
    assert!(is_accepted(&proven(&sample(), |_| {})));
}

#[test]
fn what_is_not_linked_is_refused() {
    let world = world();
    // A leaf without a reference to it, in a place that is free.
    let report = changed(&world, |it| {
        let mut leaf = it.leaves[0].clone();
        leaf.blocks = BlockValues::of(&[&[0xf8][..], &[7; 80]].concat());
        it.leaves.push(leaf);
    });
    refused("a leaf that nobody names", &report);
    // A genuine one, twice, and all that its parent gives.
    let twice = |it: &mut Assignment| {
        let leaf = it.leaves[0].clone();
        let copy = StringValues { counts: vec![0, 0], ..leaf };
        it.leaves.push(copy);
        for branch in &mut it.branches {
            branch.counts.iter_mut().for_each(|count| *count *= 2);
        }
    };
    refused("a leaf twice, all of whose siblings are given twice, too", &changed(&world, twice));
    // Digests that are asked for more often than the string occurs, or less often.
    for more in [2, 0] {
        let report = changed(&world, move |it| {
            for branch in &mut it.branches {
                branch.counts.iter_mut().for_each(|count| *count *= more);
            }
        });
        refused("another multiplicity", &report);
        assert!(report.violations.is_empty(), "the bus alone says so");
    }
    // The header gives nothing, or its root is another one.
    refused("no root", &changed(&world, |it| it.header.as_mut().unwrap().count = 0));
    refused(
        "another root",
        &changed(&world, |it| {
            it.header.as_mut().unwrap().blocks = BlockValues::of(&header_of(&[1; 32]));
        }),
    );
}

#[test]
fn nothing_of_a_state_may_be_left_out_at_the_root() {
    // N = 0 of a state that is not empty.
    let nothing = |it: &mut Assignment| {
        it.header.as_mut().unwrap().count = 0;
        let header = it.header.clone();
        *it = Assignment { header, hash: it.hash, ..Assignment::default() };
    };
    let report = changed(&sample(), nothing);
    refused("no strings under a root that is not empty", &report);
    assert!(report.unbalanced.is_empty(), "the header's rows alone say so");
    // N = 0 of an empty state is accepted: `the_largest_and_the_smallest_are_accepted`.
}

#[test]
fn w_is_of_the_contents() {
    let world = sample();
    let honest = changed(&world, |_| {}).public_values;
    let report = changed(&world, |it| it.codes[0].bytes[1] ^= 1);
    refused("another byte", &report);
    assert_ne!(report.public_values[3], honest[3]);
    // Another order is another W, which the proof reports.
    let report = changed(&world, |it| it.leaves.reverse());
    assert!(is_accepted(&report));
    assert_ne!(report.public_values[3], honest[3]);
}

/// Returns the report of the checks on a prover that proves another assignment with the wires of an honest one.
fn with_kept_wires(witness: &Strings, change: fn(&mut Assignment)) -> CheckReport {
    let mut circuit = Changed::new(circuit_of(witness), change, Hashes::Trusted);
    circuit.keeps_wires = true;
    check(&circuit, &witness.encode(), |_, _| {}).unwrap()
}

#[test]
fn w_and_n_do_not_stay_when_strings_change() {
    let world = sample();
    assert!(is_accepted(&with_kept_wires(&world, |_| {})));
    type Change = fn(&mut Assignment);
    for (name, change) in [
        ("another byte of a code", (|it| it.codes[0].bytes[1] ^= 1) as Change),
        ("another byte of a path", |it| it.leaves[0].blocks[0].bytes[10] ^= 1),
    ] {
        let report = with_kept_wires(&world, change);
        refused(name, &report);
        assert!(!report.violations.is_empty(), "{name}: the bus alone says so");
    }
    // Changes that the bus does not notice: another order, and one genuine leaf less.
    for (name, change) in [
        ("another order", (|it| it.leaves.reverse()) as Change),
        ("a leaf less", |it| {
            it.leaves.pop();
            let count = it.branches[0].counts.iter_mut().rfind(|count| **count > 0);
            *count.unwrap() = 0;
        }),
    ] {
        assert!(is_accepted(&changed(&world, change)), "{name}, with its own W");
        let report = with_kept_wires(&world, change);
        assert!(report.unbalanced.is_empty(), "{name}");
        assert_eq!(report.violated, if name == "a leaf less" { 2 } else { 1 }, "{name}");
    }
}

/// A code that begins with a state of the prover's choice can have any digest. The layout fixes the state; a layout that does not is the
/// control.
#[test]
fn codes_do_not_begin_with_any_state() {
    let world = sample();
    let [honest, evil] = [&world.codes[0][..], b"evil"].map(|code| BlockValues::of(code).remove(0));
    // The state before the permutation is the same.
    let lanes = |block: &BlockValues| -> Vec<u64> {
        let lanes = block.bytes.chunks_exact(8).map(|bytes| bytes.try_into().unwrap());
        lanes.map(u64::from_le_bytes).collect()
    };
    let mut start = Sponge { continues: true, ..Sponge::default() };
    for (lane, (honest, evil)) in
        start.lanes.iter_mut().zip(lanes(&honest).iter().zip(lanes(&evil)))
    {
        *lane = honest ^ evil;
    }
    let change = move |it: &mut Assignment| it.codes = vec![evil.clone()];
    refused("another code", &proven(&world, change.clone()));
    let mut circuit = Changed::new(circuit_of(&world), change, Hashes::Proven);
    circuit.start = Some(start);
    let report = check(&circuit, &world.encode(), |_, _| {}).unwrap();
    assert!(is_accepted(&report), "{:?}", violated(&report));
}

#[test]
fn tags_keep_tries_and_codes_apart() {
    let world = world();
    // Everything under another tag.
    for (name, from, to) in [
        ("accounts as storage", Tag::Account, Tag::Storage),
        ("storage as accounts", Tag::Storage, Tag::Account),
    ] {
        let report = changed(&world, move |it| {
            let strings = it.branches.iter_mut().chain(&mut it.leaves).chain(&mut it.mixed_leaves);
            strings.filter(|string| string.tag == from).for_each(|string| string.tag = to);
        });
        refused(name, &report);
    }
    // A leaf of the storage with an account in it: it gives neither a trie nor a code.
    let account = list(&[vec![1], vec![2], string(&[7; 32]), string(&keccak(b"evil"))]);
    let mut storage = BTreeMap::new();
    storage.insert(slot(1), account);
    let (_, nodes) = trie(&storage);
    let honest = alone(true, values(&nodes[0], Tag::Account, &[33, 36, 41], &[0, 0]), &nodes[0]);
    let base = witness(&[(slot(1), Account::new())]);
    assert!(is_accepted(&changed(&base, honest)), "as an account, it is one");
    // A code whose bytes are a branch gives nothing: its type has no such entries.
    let mut evil = Account::new();
    evil.storage = (0..3).map(|at| (slot(at), string(&[9; 32]))).collect();
    let (_, nodes) = trie(&evil.storage);
    let branch = nodes.iter().find(|node| node.len() > 83).unwrap().clone();
    let mut account = Account::new();
    account.code = branch.clone();
    let state = witness(&[(slot(5), account), (slot(6), Account::new())]);
    assert!(is_accepted(&changed(&state, |_| {})));
    let (node, child) = (branch, nodes.into_iter().find(|node| node.len() < 83).unwrap());
    let report = changed(&state, move |it| {
        it.branches.push(values(&node, Tag::Storage, &[1; 16], &[1; 16]));
        it.leaves.push(values(&child, Tag::Storage, &[33, 36, 0], &[0, 0]));
    });
    refused("a code that is read as a branch", &report);
}

#[test]
fn leaves_are_no_extensions() {
    // A word of 31 bytes whose encoding is a0 and 32 bytes, which look like a child of an extension.
    let word = [&[0x9f][..], &[5; 31]].concat();
    let path = |first: u8| [&[first][..], &[6; 32]].concat();
    let leaf = list(&[string(&path(0x20)), string(&word)]);
    let base = witness(&[(slot(1), Account::new())]);
    let as_word = alone(true, values(&leaf, Tag::Storage, &[33, 36, 0], &[0, 0]), &leaf);
    // Under the account trie nothing is asked for as storage: all but the bus holds.
    let report = changed(&base, as_word);
    assert!(report.violations.is_empty(), "{:?}", violated(&report));
    let extension = list(&[string(&path(0x00)), string(&word)]);
    let as_extension =
        alone(true, values(&extension, Tag::Account, &[33, 36, 0], &[0, 0]), &extension);
    assert!(is_accepted(&changed(&base, as_extension)), "an extension gives what it has");
    let liar = alone(true, values(&leaf, Tag::Account, &[33, 36, 0], &[1, 0]), &leaf);
    refused("a leaf that gives a child", &changed(&base, liar));
    // A nibble that is neither.
    for first in [0x40, 0x80, 0xf0, 0x21, 0x0f] {
        let node = list(&[string(&path(first)), string(&word)]);
        let liar = alone(true, values(&node, Tag::Account, &[33, 36, 0], &[0, 0]), &node);
        refused("another first nibble", &changed(&base, liar));
    }
}

/// An account's leaf with some bytes in place of nonce and balance, and lengths of headers.
fn leaf_of(middle: &[u8], shift: [i16; 4]) -> Vec<u8> {
    let mut inside = middle.to_vec();
    inside.extend(string(&[3; 32]));
    inside.extend(string(&[4; 32]));
    let with = |length: usize, by: i16| (length as i16 + by) as u8;
    let account = [&[0xf8, with(inside.len(), shift[0])][..], &inside].concat();
    let value = [&[0xb8, with(account.len(), shift[1])][..], &account].concat();
    let path = [&[with(0x80 + 33, shift[2]), 0x20][..], &[6; 32]].concat();
    let both = [path, value].concat();
    [&[0xf8, with(both.len(), shift[3])][..], &both].concat()
}

#[test]
fn an_account_is_read_to_its_end() {
    let base = witness(&[(slot(1), Account::new())]);
    let report = |leaf: &[u8], places: [usize; 3]| {
        changed(&base, alone(true, values(leaf, Tag::Account, &places, &[0, 0]), leaf))
    };
    assert!(is_accepted(&report(&leaf_of(&[1, 2], [0; 4]), [33, 36, 41])));
    assert!(is_accepted(&report(&leaf_of(&[0x82, 1, 2, 0x83, 5, 5, 5], [0; 4]), [33, 36, 43])));
    // Headers that say another length.
    for at in 0..4 {
        for by in [-1, 1] {
            let mut shift = [0; 4];
            shift[at] = by;
            let leaf = leaf_of(&[1, 2], shift);
            for places in [[33, 36, 41], [32, 35, 40]] {
                refused("another length", &report(&leaf, places));
            }
        }
    }
    // A nonce that is longer than it says, so that a hash would be in another place; a balance that is missing or too much.
    for middle in [&[0x82, 1, 2][..], &[1], &[1, 2, 3], &[0x81, 0x90, 0x82, 5], &[0x89; 12]] {
        let leaf = leaf_of(middle, [0; 4]);
        for balance in [41, 42, 43, 49] {
            refused("another nonce", &report(&leaf, [33, 36, balance]));
        }
    }
    // Another prefix before either hash.
    let good = leaf_of(&[1, 2], [0; 4]);
    for back in [33, 66] {
        let mut leaf = good.clone();
        let at = leaf.len() - back;
        leaf[at] = 0xa1;
        refused("another prefix", &report(&leaf, [33, 36, 41]));
    }
}

#[test]
fn branches_are_read_to_their_end() {
    let children = |count: usize| -> Vec<Vec<u8>> {
        let child = |at: usize| match at < count {
            true => string(&[at as u8 + 1; 32]),
            false => vec![0x80],
        };
        (0..17).map(child).collect()
    };
    let present =
        |count: usize| -> Vec<usize> { (0..16).map(|at| usize::from(at < count)).collect() };
    let base = sample();
    let report = |node: &[u8], places: &[usize]| {
        let string = values(node, Tag::Account, places, &[0; 16]);
        changed(&base, alone(false, string, node))
    };
    for count in [2, 3, 7, 8, 15, 16] {
        assert!(is_accepted(&report(&list(&children(count)), &present(count))), "{count}");
    }
    for count in [0, 1] {
        refused("a lonely branch", &report(&list(&children(count)), &present(count)));
    }
    // The 17th item.
    for value in [string(&[9; 32]), vec![0x81, 0x80], vec![0xc0], vec![0x01]] {
        let mut items = children(3);
        items[16] = value;
        refused("a value", &report(&list(&items), &present(3)));
    }
    // Bits that say something else.
    for at in [0, 4, 5, 15] {
        let mut wrong = present(5);
        wrong[at] = 1 - wrong[at];
        refused("another bit", &report(&list(&children(5)), &wrong));
    }
    // Headers that do.
    for (count, at) in [(5, 0), (5, 1), (12, 0), (12, 1), (12, 2)] {
        let mut node = list(&children(count));
        node[at] ^= 1;
        refused("another header", &report(&node, &present(count)));
    }
    // One byte more, and one less.
    let node = list(&children(5));
    refused("a byte more", &report(&[&node[..], &[0x80]].concat(), &present(5)));
    refused("a byte less", &report(&node[..node.len() - 1], &present(5)));
    // Two lists of one length that begin alike: a child's prefix in a hash.
    for prefix in [0x9f, 0xa1, 0xff] {
        let mut node = list(&children(5));
        node[2] = prefix;
        refused("another prefix", &report(&node, &present(5)));
    }
}

/// Branches some of whose children are inside them.
#[test]
fn small_children_are_where_they_are() {
    let leaf = |bytes: usize| list(&[string(&[0x35]), string(&vec![7; bytes - 3])]);
    let mut items: Vec<Vec<u8>> = vec![vec![0x80]; 17];
    items[2] = leaf(20);
    items[9] = leaf(31);
    items[12] = string(&[8; 32]);
    let starts = |items: &[Vec<u8>]| {
        let node = list(items);
        let mut at = node.len() - items.concat().len();
        let mut starts = Vec::new();
        for item in items {
            starts.push(at);
            at += item.len();
        }
        (node, starts)
    };
    let report = |node: &[u8], starts: &[usize]| {
        let string = values(node, Tag::Account, starts, &[0]);
        let (header, hash) = (under(node), keccak(&header_of(&keccak(node))));
        // A state with such a branch, so that there is a place for one.
        let mut account = Account::new();
        account.storage = [40_364, 105_566].map(|it| (slot(it), self::string(&[1]))).into();
        changed(&witness(&[(slot(0), account)]), move |assignment| {
            *assignment =
                Assignment { header: Some(header.clone()), hash, ..Assignment::default() };
            assignment.mixed_branches.push(string.clone());
        })
    };
    use super::state::string;
    let (node, places) = starts(&items);
    assert!(is_accepted(&report(&node, &places)));
    // Each item moved by one byte.
    for (at, by) in [(0, 1), (2, -1), (9, 1), (12, 1), (13, -1), (16, -1)] {
        let mut moved = places.clone();
        moved[at] = moved[at].wrapping_add_signed(by);
        refused("an item elsewhere", &report(&node, &moved));
    }
    // An item too many or too few.
    refused("16 items", &report(&starts(&items[..16]).0, &starts(&items[..16]).1));
    let mut more = items.clone();
    more.push(vec![0x80]);
    refused("18 items", &report(&starts(&more).0, &starts(&more).1));
    // Children that are neither nothing, nor a hash, nor small.
    for child in
        [vec![0xc0], leaf(32), vec![0x01], vec![0x81, 0x90], string(&[1; 31]), string(&[1; 33])]
    {
        let mut wrong = items.clone();
        wrong[4] = child;
        let (node, places) = starts(&wrong);
        refused("another child", &report(&node, &places));
    }
    for value in [leaf(20), string(&[3; 32])] {
        let mut wrong = items.clone();
        wrong[16] = value;
        let (node, places) = starts(&wrong);
        refused("a value", &report(&node, &places));
    }
    let mut wrong = node.clone();
    wrong[1] ^= 1;
    refused("another header", &report(&wrong, &places));
}

/// A place that is not used gives nothing, whatever its prover writes there.
#[test]
fn what_is_switched_off_gives_nothing() {
    let evil = list(&[string(&[0x35]), string(&[7; 80])]);
    let world = sample();
    let extension = list(&[string(&[0x00, 0x11]), string(&keccak(&evil))]);
    let account = leaf_of(&[1, 2], [0; 4]);
    for tag in [Tag::Account, Tag::Storage] {
        for (giver, places) in [(&extension, [2, 4, 0]), (&account, [33, 36, 41])] {
            let (giver, evil) = (giver.clone(), evil.clone());
            for is_there in [false, true] {
                let (giver, evil) = (giver.clone(), evil.clone());
                let report = changed(&world, move |it| {
                    let mut giver = values(&giver, tag, &places, &[1, 1]);
                    // Its bytes are there, and no end: so it does not ask for itself.
                    giver.blocks[0].end = None;
                    it.leaves.push(giver);
                    if is_there {
                        it.leaves.push(values(&evil, tag, &[0, 3, 0], &[0, 0]));
                    }
                });
                refused("an entry of a string that is not there", &report);
            }
        }
    }
    // Zeros are accepted there.
    let report = changed(&world, |it| {
        let mut nothing = values(&[0; 80], Tag::Account, &[0, 0, 0], &[0, 0]);
        nothing.blocks[0] = BlockValues { bytes: vec![0; 136], end: None };
        it.leaves.push(nothing);
    });
    assert!(is_accepted(&report), "{:?}", violated(&report));
}

/// A branch with small children whose first child's hash begins like a path, and whose second one is as long as a word's rest.
#[test]
fn branches_are_no_words() {
    let branch = hex::decode(concat!(
        "f880a03f11111111111111111111111111111111111111111111111111111111111111de953a070707070707070707070707",
        "07070707070707078786090909090909d7953a070707070707070707070707070707070707070705da953a07070707070707",
        "070707070707070707070707078382090980808080808080808080808080"
    ))
    .unwrap();
    let report = changed(&world(), move |it| {
        let (header, hash) = (under(&branch), keccak(&header_of(&keccak(&branch))));
        *it = Assignment { header: Some(header), hash, ..Assignment::default() };
        it.leaves.push(values(&branch, Tag::Storage, &[32, 35, 0], &[0, 0]));
    });
    assert!(!report.violations.is_empty(), "a branch was accepted as a word");
}

/// A leaf under an account's storage root that looks like an account gives no code.
#[test]
fn words_give_nothing() {
    let word = |value: &[u8]| list(&[string(&[&[0x20][..], &[6; 32]].concat()), string(value)]);
    let report = |leaf: Vec<u8>, has_code: bool| {
        let account = list(&[vec![1], vec![2], string(&keccak(&leaf)), string(&keccak(b""))]);
        let root = list(&[string(&[&[0x20][..], &[6; 32]].concat()), string(&account)]);
        let (header, hash) = (under(&root), keccak(&header_of(&keccak(&root))));
        changed(&world(), move |it| {
            *it = Assignment { header: Some(header.clone()), hash, ..Assignment::default() };
            it.leaves.push(values(&root, Tag::Account, &[33, 36, 41], &[1, 0]));
            it.leaves.push(values(&leaf, Tag::Storage, &[33, 36, 0], &[0, u64::from(has_code)]));
            if has_code {
                it.codes.extend(BlockValues::of(b"evil"));
            }
        })
    };
    let honest = report(word(&string(&[5; 31])), false);
    assert!(is_accepted(&honest), "{:?}", violated(&honest));
    let account = list(&[vec![1], vec![2], string(&[7; 32]), string(&keccak(b"evil"))]);
    refused("a code of a word", &report(word(&account), true));
    refused("a code of nobody", &report(word(&string(&[5; 31])), true));
}

#[test]
fn strings_end_where_their_padding_begins() {
    let world = world();
    let code = |change: fn(&mut Vec<BlockValues>)| move |it: &mut Assignment| change(&mut it.codes);
    // 300 bytes: two full blocks, and one with 28.
    type Attack = (&'static str, fn(&mut Vec<BlockValues>));
    let attacks: [Attack; 9] = [
        ("no 01", |blocks| blocks[2].bytes[28] = 0),
        ("no 80", |blocks| blocks[2].bytes[135] = 0),
        ("both, and more", |blocks| blocks[2].bytes[100] = 1),
        ("81 before the end", |blocks| blocks[2].bytes[135] = 0x81),
        ("a longer one", |blocks| blocks[2].end = Some(29)),
        ("a shorter one", |blocks| blocks[2].end = Some(27)),
        ("an end in the middle", |blocks| blocks[1].end = Some(100)),
        ("no end", |blocks| blocks[2].end = None),
        ("cut", |blocks| {
            blocks.pop();
        }),
    ];
    for (name, attack) in attacks {
        refused(name, &changed(&world, code(attack)));
    }
}

/// The rest of a code cannot be a code of its own: a code that begins does so from zeros, and only a continued code has another state.
#[test]
fn codes_begin_and_go_on() {
    // A code whose first block is another code with its padding: C = pad(M1) || M2.
    let first = BlockValues::of(b"another code").remove(0);
    let code = [&first.bytes[..], b"the rest of it"].concat();
    let mut account = Account::new();
    account.code = code;
    let state = witness(&[(slot(1), account), (slot(2), Account::new())]);
    assert!(is_accepted(&proven(&state, |_| {})));
    // M2 alone, with the digest of C, would need the state that M1 leaves.
    refused(
        "the rest of a code",
        &proven(&state, |it| {
            it.codes.remove(0);
        }),
    );
    // M1 as a code of its own, and then M2.
    refused("two codes in place of one", &proven(&state, |it| it.codes[0].end = Some(12)));
}

/// Three blocks in two subcircuits: the second one has the state of the first, in both places.
#[test]
fn codes_go_on_across_subcircuits() {
    let state = world();
    assert_eq!(circuit_of(&state).counts.codes, 2);
    assert!(is_accepted(&proven(&state, |_| {})));
    refused("blocks in another order", &proven(&state, |it| it.codes.swap(0, 1)));
    refused(
        "a block less",
        &proven(&state, |it| {
            it.codes.remove(1);
        }),
    );
}

#[test]
fn digests_are_proven() {
    // A child with another byte, whose parent's hash does not change: everything but the hash is right.
    let world = sample();
    let report = proven(&world, |it| it.leaves[0].blocks[0].bytes[10] ^= 1);
    refused("another byte of a leaf", &report);
    assert!(report.violations.is_empty(), "the leaf is one: {:?}", violated(&report));
    let public = |report: &CheckReport| report.public_values[..2].to_vec();
    let [low, high] = halves(&keccak(&world.headers[0]));
    assert_eq!(public(&report), [Fr::from(low), Fr::from(high)]);
    // Another block's hash.
    refused("another hash", &proven(&world, |it| it.hash[0] ^= 1));
    refused(
        "another header",
        &proven(&world, |it| {
            it.header.as_mut().unwrap().blocks[1].bytes[20] ^= 1;
        }),
    );
}
