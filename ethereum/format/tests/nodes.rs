//! Nodes that are read and nodes that are refused, each for a single fault, and against a second reader.

mod model;

use hekaton_witness_format::trie::{Child, Node, NodeError, Position, Reference, Trie};
use model::{Kind, Tag};
use proptest::prelude::*;

/// A string or a list, with its header.
fn string(bytes: &[u8]) -> Vec<u8> {
    alloy_rlp::encode(bytes)
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let inside = items.concat();
    let mut bytes = Vec::new();
    alloy_rlp::Header { list: true, payload_length: inside.len() }.encode(&mut bytes);
    [bytes, inside].concat()
}

#[test]
fn nodes_are_strict() {
    let hash = string(&[9; 32]);
    let nothing = string(&[]);
    let branch = |children: usize, value: &[u8]| {
        let mut items: Vec<Vec<u8>> =
            (0..16).map(|at| if at < children { hash.clone() } else { nothing.clone() }).collect();
        items.push(value.to_vec());
        list(&items)
    };
    let path = |first: u8| string(&[&[first], &[7; 31][..]].concat());
    let word = string(&string(&[5, 6]));
    // Of 63 nibbles.
    let leaf = |value: &[u8]| list(&[path(0x31), value.to_vec()]);
    let account = |items: &[Vec<u8>]| leaf(&string(&list(items)));
    let [one, two] = [string(&[1]), string(&[])];
    let whole = [one.clone(), two.clone(), hash.clone(), hash.clone()];
    let small = list(&[string(&[0x31]), string(&string(&[1]))]);
    let at = |node: &[u8], position: Position| {
        Node::read(node, position).map(|node| node.references().count())
    };
    let found = |node: &[u8], trie| at(node, Position { trie, depth: 1, branch: false });
    let (accounts, storage) = (Trie::Accounts, Trie::Storage);
    for (node, trie, expected) in [
        (branch(2, &nothing), accounts, Ok(2)),
        (branch(16, &nothing), storage, Ok(16)),
        (account(&whole), accounts, Ok(2)),
        (leaf(&word), storage, Ok(0)),
        (list(&[path(0x00), hash.clone()]), storage, Ok(1)),
        (list(&[string(&[0x15, 7]), hash.clone()]), storage, Ok(1)),
        // There must be a nibble left for the branch below.
        (list(&[path(0x15), hash.clone()]), storage, Err(NodeError::Depth(64))),
        (branch(1, &nothing), accounts, Err(NodeError::Lonely)),
        (branch(2, &string(&[5])), accounts, Err(NodeError::Value)),
        (branch(2, &list(&[])), accounts, Err(NodeError::Value)),
        ([branch(2, &nothing), vec![0]].concat(), accounts, Err(NodeError::Longer)),
        (list(&[hash.clone(), hash.clone(), hash.clone()]), accounts, Err(NodeError::Items(3))),
        (list(&[]), accounts, Err(NodeError::Items(0))),
        (list(&vec![nothing.clone(); 18]), accounts, Err(NodeError::Items(18))),
        (list(&[path(0x40), hash.clone()]), storage, Err(NodeError::Path)),
        (list(&[path(0x05), hash.clone()]), storage, Err(NodeError::Path)),
        (list(&[path(0x25), word.clone()]), storage, Err(NodeError::Path)),
        (list(&[nothing.clone(), hash.clone()]), storage, Err(NodeError::Path)),
        (list(&[string(&[0x20; 35]), word.clone()]), storage, Err(NodeError::Path)),
        // An extension by no nibble at all.
        (list(&[string(&[0x00]), hash.clone()]), storage, Err(NodeError::Path)),
        (list(&[path(0x00), nothing.clone()]), storage, Err(NodeError::Extension)),
        (list(&[path(0x00), string(&[9; 31])]), storage, Err(NodeError::Child(0))),
        // Small nodes under an extension.
        (list(&[string(&[0x15]), small.clone()]), storage, Err(NodeError::NoBranch)),
        (list(&[string(&[0x20]), word.clone()]), storage, Err(NodeError::Depth(1))),
        (leaf(&word), accounts, Err(NodeError::Account)),
        (account(&whole), storage, Err(NodeError::Word)),
        (leaf(&nothing), storage, Err(NodeError::Word)),
        (leaf(&string(&string(&[0, 1]))), storage, Err(NodeError::Word)),
        (leaf(&string(&string(&[1; 33]))), storage, Err(NodeError::Word)),
        (leaf(&string(&[string(&[5]), string(&[6])].concat())), storage, Err(NodeError::Word)),
        (leaf(&list(std::slice::from_ref(&one))), storage, Err(NodeError::Word)),
        (account(&whole[..3]), accounts, Err(NodeError::Account)),
        (account(&[&whole[..], &whole[..1]].concat()), accounts, Err(NodeError::Account)),
        (
            account(&[string(&[0, 1]), two.clone(), hash.clone(), hash.clone()]),
            accounts,
            Err(NodeError::Account),
        ),
        (
            account(&[string(&[1; 9]), two.clone(), hash.clone(), hash.clone()]),
            accounts,
            Err(NodeError::Account),
        ),
        (
            account(&[one.clone(), string(&[1; 33]), hash.clone(), hash.clone()]),
            accounts,
            Err(NodeError::Account),
        ),
        (
            account(&[one.clone(), two.clone(), string(&[9; 31]), hash.clone()]),
            accounts,
            Err(NodeError::Account),
        ),
    ] {
        agree(&node, 1).unwrap();
        let got = found(&node, trie);
        assert_eq!(got, expected, "{node:02x?}");
    }
    // A child of 31 bytes, one of 33, and a small node of 32.
    for child in [string(&[9; 31]), string(&[9; 33]), list(&[string(&[0x31]), string(&[1; 29])])] {
        let items = [vec![child, hash.clone()], vec![nothing.clone(); 15]].concat();
        assert_eq!(found(&list(&items), storage), Err(NodeError::Child(0)));
    }
    // Small nodes in a branch, deep enough for their paths to end.
    let items = [vec![small.clone(), small.clone()], vec![nothing.clone(); 15]].concat();
    let deep = |depth, branch| Position { trie: storage, depth, branch };
    assert_eq!(at(&list(&items), deep(62, false)), Ok(0));
    assert_eq!(at(&list(&items), deep(61, false)), Err(NodeError::Depth(63)));
    assert_eq!(at(&branch(2, &nothing), deep(63, true)), Ok(2));
    assert_eq!(at(&branch(2, &nothing), deep(64, false)), Err(NodeError::Depth(65)));
    assert_eq!(at(&leaf(&word), deep(1, true)), Err(NodeError::NoBranch));
    // A small branch under an extension: the circuit has no rows for one, and nobody can make one.
    let extension = list(&[string(&[0x15]), list(&items)]);
    assert_eq!(at(&extension, deep(61, false)), Err(NodeError::SmallChild));
    // Lengths in more bytes than they need.
    for node in
        [vec![0xf8, 0x02, 0x80, 0x80], vec![0xc2, 0x81, 0x05], vec![0xc0], vec![], vec![0xc5, 0x80]]
    {
        assert!(found(&node, storage).is_err(), "{node:?}");
    }
}

/// Items of nodes: children, paths, words, accounts, and parts of them.
fn an_item() -> impl Strategy<Value = Vec<u8>> {
    let number = || prop::collection::vec(any::<u8>(), 0..4).prop_map(|bytes| string(&bytes));
    let hash = || Just(string(&[7; 32]));
    let word = prop::collection::vec(any::<u8>(), 0..34).prop_map(|bytes| string(&string(&bytes)));
    let account = (number(), number(), hash(), hash())
        .prop_map(|(nonce, balance, root, code)| string(&list(&[nonce, balance, root, code])));
    let path = (0u8..0x50, prop::sample::select(vec![0, 30, 31, 32]))
        .prop_map(|(first, rest)| string(&[&[first], &vec![7; rest][..]].concat()));
    let small = Just(list(&[string(&[0x31]), string(&string(&[1]))]));
    prop_oneof![hash(), Just(string(&[])), path, word, account, number(), small]
}

/// Nodes, most of which are almost right.
fn a_node() -> impl Strategy<Value = Vec<u8>> {
    let few = prop::collection::vec(an_item(), 2..4);
    let child =
        prop_oneof![Just(string(&[7; 32])), Just(string(&[])), Just(string(&[])), an_item()];
    let branch = (prop::collection::vec(child, 16), prop_oneof![Just(string(&[])), an_item()])
        .prop_map(|(children, value)| [children, vec![value]].concat());
    prop_oneof![few, branch].prop_map(|items| list(&items))
}

/// Checks that nodes that are read here are read by the second reader, with the same kind and the same references.
fn agree(bytes: &[u8], depth: u8) -> Result<(), TestCaseError> {
    for (trie, tag) in [(Trie::Accounts, Tag::Account), (Trie::Storage, Tag::Storage)] {
        let (ours, theirs) = (
            Node::read(bytes, Position { trie, depth, branch: false }),
            model::Node::read(bytes, tag),
        );
        let Ok(ours) = ours else { continue };
        let kind = match ours {
            Node::Branch { children, .. } if children.contains(&Child::Small) => Kind::MixedBranch,
            Node::Branch { .. } => Kind::Branch,
            _ => Kind::Short,
        };
        let references = ours.references().map(|reference| match reference {
            Reference::Node(hash, _) => (*hash, tag),
            Reference::Root(hash) => (*hash, Tag::Storage),
            Reference::Code(hash) => (*hash, Tag::Code),
        });
        let theirs =
            theirs.map(|node| (node.kind, node.references.into_iter().flatten().collect()));
        prop_assert_eq!(theirs, Ok((kind, references.collect::<Vec<_>>())));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_second_reader_agrees(
        mut bytes in a_node(),
        change in any::<(prop::sample::Index, u8)>(),
        depth in prop::sample::select(vec![0u8, 1, 2, 3, 62, 63]),
    ) {
        agree(&bytes, depth)?;
        let at = change.0.index(bytes.len());
        bytes[at] = change.1;
        agree(&bytes, depth)?;
    }
}
