//! Provers that cheat. Each is refused by one rule, and accepted without it (spec: adversarial-tests#directory).

use super::script::Script;
use super::{CHAIN, change, commitment, index, tree_of};
use crate::machine::{Machine, Operation, StepValues, block, block_of};
use crate::parts::Edge;
use crate::rule::Rule;
use crate::state::{NodePosition, halves, list};
use crate::step::Choice;
use ark_ff::{BigInteger, Field, One, PrimeField, Zero};
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::ConstraintSystem;
use hekaton_circuit::Fr;
use hekaton_circuit::parts::{Part, Slots};
use hekaton_directory::{Change, Digest, EMPTY, Index, Leaf, Profile, STACK, Step, Tree};

const PROFILE: Profile = Profile::Compress;

/// A key that is alone on the left side of the root, and the other one.
fn victim() -> Index {
    index(0b0010, 4)
}

fn other() -> Index {
    index(1, 1)
}

fn tree() -> Tree {
    tree_of(PROFILE, &[vec![change(victim(), 1), change(other(), 2)]])
}

fn leaf(tree: &Tree, index: Index) -> Leaf {
    tree.leaf(&index).unwrap().unwrap()
}

fn digest(tree: &Tree, index: Index) -> Digest {
    leaf(tree, index).digest(PROFILE)
}

fn update(tree: &Tree, index: Index, depth: u8) -> Step {
    Step::Update { leaf: leaf(tree, index), depth, commitment: commitment(9) }
}

fn touch(tree: &Tree, index: Index, depth: u8) -> Step {
    Step::Touch { leaf: leaf(tree, index), depth }
}

fn insert(index: Index, depth: u8) -> Step {
    Step::Insert { index, depth, commitment: commitment(9) }
}

fn beside_other(tree: &Tree) -> Step {
    Step::Up { sibling: digest(tree, other()) }
}

/// A new version of the victim, as the prover forges it.
fn forged_update(forge: impl FnOnce(&mut StepValues)) -> Script {
    let tree = tree();
    let mut script = Script::new(&tree);
    script.forged(update(&tree, victim(), 1), forge).step(beside_other(&tree)).end();
    script
}

fn set_version(block: &mut [u128; 4], version: u32) {
    block[1] = block[1] << 32 >> 32 | u128::from(version) << 96;
}

fn set_epoch(block: &mut [u128; 4], epoch: u32) {
    block[1] = block[1] & !(0xffff_ffff << 64) | u128::from(epoch) << 64;
}

#[test]
fn the_honest_prover_is_accepted() {
    assert!(forged_update(|_| {}).is_accepted(None));
}

#[test]
fn versions_rise_by_one() {
    for version in [0, 2, 3, u32::MAX] {
        forged_update(|values| set_version(&mut values.new, version)).is_refused_by(Rule::Next);
    }
    // The largest version has no next one.
    let last = Leaf { version: u32::MAX, ..leaf(&tree(), victim()) };
    let mut script = Script::at(PROFILE, last.digest(PROFILE), CHAIN, 1);
    let new = block_of(&Leaf { version: 0, epoch: 1, ..last });
    let location = u128::from_be_bytes(last.index.0);
    let operation = Operation::Update;
    script.raw(StepValues { operation, location, depth: 0, old: block_of(&last), new }).end();
    script.is_refused_by(Rule::Next);
}

/// An insertion beside the victim, as the prover forges it.
fn forged_insertion(forge: impl FnOnce(&mut StepValues)) -> Script {
    let tree = tree();
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 2)).forged(insert(index(1, 2), 2), forge);
    script.step(Step::Merge).step(beside_other(&tree)).end();
    script
}

#[test]
fn new_leaves_have_version_0() {
    assert!(forged_insertion(|_| {}).is_accepted(None));
    forged_insertion(|values| set_version(&mut values.new, 1)).is_refused_by(Rule::First);
}

#[test]
fn written_leaves_say_the_epoch() {
    for epoch in [0, 2] {
        forged_insertion(|values| set_epoch(&mut values.new, epoch)).is_refused_by(Rule::Epoch);
        forged_update(|values| set_epoch(&mut values.new, epoch)).is_refused_by(Rule::Epoch);
    }
}

#[test]
fn bytes_that_say_nothing_are_zero() {
    forged_update(|values| values.new[1] |= 1).is_refused_by(Rule::Zeros);
    forged_insertion(|values| values.new[1] |= 1 << 63).is_refused_by(Rule::Zeros);
    // A root that was not proven has such a leaf.
    let old = leaf(&tree(), victim());
    let mut blocks = [block_of(&old), block_of(&Leaf { version: 1, ..old })];
    blocks[0][1] |= 1;
    let root = Machine::new(PROFILE, EMPTY, CHAIN, 0).hash(&blocks[0], true);
    let mut script = Script::at(PROFILE, root, CHAIN, old.epoch);
    let location = u128::from_be_bytes(old.index.0);
    let (operation, [old, new]) = (Operation::Update, blocks);
    script.raw(StepValues { operation, location, depth: 0, old, new }).end();
    script.is_refused_by(Rule::Zeros);
}

#[test]
fn leaves_are_of_the_index_where_they_are() {
    let foreign = u128::from_be_bytes(index(0b01, 2).0);
    forged_update(|values| values.new[0] = foreign).is_refused_by(Rule::Index);
    forged_insertion(|values| values.new[0] = u128::from_be_bytes(other().0))
        .is_refused_by(Rule::Index);
    // The leaf of another index becomes the victim's first one.
    let tree = tree();
    let mut script = Script::new(&tree);
    script.forged(touch(&tree, other(), 1), |values| values.location ^= 1);
    script.step(Step::Up { sibling: digest(&tree, victim()) }).end();
    script.is_refused_by(Rule::Index);
}

#[test]
fn leaves_that_only_move_stay_as_they_are() {
    let forged = |forge: &dyn Fn(&mut StepValues)| {
        let tree = tree();
        let mut script = Script::new(&tree);
        script.forged(touch(&tree, victim(), 1), forge).step(beside_other(&tree)).end();
        script.is_refused_by(Rule::Same);
    };
    forged(&|values| values.new[2] ^= 1);
    forged(&|values| values.new[3] ^= 1);
    forged(&|values| set_version(&mut values.new, 1));
}

#[test]
fn an_insertion_finds_nothing() {
    let tree = tree();
    let mut script = Script::new(&tree);
    let old = digest(&tree, victim());
    script.step(insert(victim(), 1)).top(|top| top.old = old);
    for (number, half) in halves(&old).into_iter().enumerate() {
        script.lie(Rule::Digest, number, half.into());
    }
    script.step(beside_other(&tree)).end();
    script.is_refused_by(Rule::Nothing);
}

/// A key is inserted deep below the victim, which is claimed to be beside it there: it would no longer be on its own
/// way.
#[test]
fn a_leaf_that_moves_is_pushed() {
    let tree = tree();
    for new in [0b0011, 0b0000] {
        let mut script = Script::new(&tree);
        script.step(insert(index(new, 4), 40)).up(&digest(&tree, victim()));
        for _ in 0..38 {
            script.up(&EMPTY);
        }
        script.step(beside_other(&tree)).end();
        script.is_refused_by(Rule::Displaced);
    }
}

#[test]
fn what_is_beside_does_not_change() {
    let evil = Leaf { commitment: commitment(66), ..leaf(&tree(), other()) }.digest(PROFILE);
    let [a, b] = halves(&evil);
    let tree = tree();
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 1));
    script.forged(beside_other(&tree), |values| (values.new[2], values.new[3]) = (a, b)).end();
    script.is_refused_by(Rule::Beside);
    let mut script = Script::new(&tree);
    script.step(touch(&tree, other(), 1));
    let beside = Step::Up { sibling: digest(&tree, victim()) };
    script.forged(beside, |values| (values.new[0], values.new[1]) = (a, b)).end();
    script.is_refused_by(Rule::Beside);
}

#[test]
fn steps_begin_with_what_is_on_the_stack() {
    let tree = tree();
    let evil = Leaf { commitment: commitment(66), ..leaf(&tree, victim()) }.digest(PROFILE);
    let [a, b] = halves(&evil);
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 1));
    script.forged(beside_other(&tree), |values| (values.new[0], values.new[1]) = (a, b)).end();
    script.is_refused_by(Rule::Current);
    let mut script = Script::new(&tree);
    script.step(touch(&tree, other(), 1));
    let beside = Step::Up { sibling: digest(&tree, victim()) };
    script.forged(beside, |values| (values.new[2], values.new[3]) = (a, b)).end();
    script.is_refused_by(Rule::Current);
    for forge in [0, 2] {
        let mut script = Script::new(&tree);
        script.step(touch(&tree, victim(), 1)).step(touch(&tree, other(), 1));
        let forge = |values: &mut StepValues| {
            (values.new[forge], values.new[forge + 1]) = (a, b);
        };
        script.forged(Step::Merge, forge).end();
        script.is_refused_by(Rule::Merged);
    }
}

/// A key of the right side of the root comes to be on its left side.
#[test]
fn merged_subtrees_are_the_sides_of_a_node() {
    let tree = tree();
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 2)).step(insert(index(0b11, 2), 2)).merge(2);
    script.top(|top| top.place = NodePosition { depth: 1, prefix: 0 });
    script.step(beside_other(&tree)).end();
    script.is_refused_by(Rule::Sides);
}

#[test]
fn steps_up_go_to_the_parent() {
    let tree = tree();
    for index in [index(0b111, 3), index(0b110, 3)] {
        let mut script = Script::new(&tree);
        script.step(touch(&tree, victim(), 2)).step(insert(index, 3));
        let values = script.up_values(&EMPTY);
        script.raw(StepValues { location: 0b101, ..values });
        script.top(|top| top.place = NodePosition { depth: 2, prefix: 1 });
        script.step(Step::Merge).step(beside_other(&tree)).end();
        script.is_refused_by(Rule::Parent);
        // The same with the right parent, from which another node is claimed.
        let mut script = Script::new(&tree);
        script.step(touch(&tree, victim(), 2)).step(insert(index, 3)).up(&EMPTY);
        script.lie(Rule::Location, 0, Fr::from(0b101));
        script.top(|top| top.place = NodePosition { depth: 2, prefix: 1 });
        script.step(Step::Merge).step(beside_other(&tree)).end();
        script.is_refused_by(Rule::Location);
    }
}

#[test]
fn pushes_are_on_the_way_to_their_index() {
    let tree = tree();
    let forged = |depth: Option<Fr>| {
        let mut script = Script::new(&tree);
        script.step(touch(&tree, victim(), 2)).step(insert(index(0b11, 2), 2));
        script.lie(Rule::Location, 0, Fr::from(0b101));
        script.top(|top| top.place = NodePosition { depth: 2, prefix: 1 });
        if let Some(depth) = depth {
            script.lie(Rule::Depth, 126, depth);
        }
        script.step(Step::Merge).step(beside_other(&tree)).end();
        script
    };
    forged(None).is_refused_by(Rule::Prefix);
    forged(Some(Fr::zero())).is_refused_by(Rule::Depth);
}

/// The number of a node that is not below 2^129 can be carried anywhere by 255 steps up, halving in the field: the victim
/// comes to be on the wrong side of its prefix, where nobody finds it.
#[test]
fn numbers_of_nodes_do_not_wrap() {
    let tree = tree();
    let (digest, target) = (digest(&tree, victim()), NodePosition { depth: 2, prefix: 1 });
    let mut script = Script::new(&tree);
    script.step(insert(index(0b0001, 4), 2)).step(touch(&tree, victim(), 128));
    let mut node: Fr = script.machine.stack[1].place.field();
    // node = target 2^255 + sum of bits 2^i
    let bits = (node - target.field::<Fr>() * Fr::from(2).pow([255])).into_bigint();
    let half = Fr::from(2).inverse().unwrap();
    for at in 0..255 {
        let is_right = bits.get_bit(at);
        node = (node - Fr::from(is_right)) * half;
        let (operation, message) = match is_right {
            false => (Operation::UpLeft, block(&digest, &EMPTY)),
            true => (Operation::UpRight, block(&EMPTY, &digest)),
        };
        let (old, new) = (message, message);
        script.choice(Choice { operation, location: node, depth: 0, old, new });
    }
    assert_eq!(node, target.field());
    script.top(|top| top.place = target);
    script.step(Step::Merge).step(beside_other(&tree)).end();
    script.is_refused_by(Rule::LocationBits);
}

/// A push without room is refused: the entry that falls off the stack would be forgotten.
#[test]
fn there_is_room_for_what_is_pushed() {
    let tree = Tree::new(PROFILE);
    let comb: Vec<Change> = (0..STACK as u32)
        .map(|length| change(Index((!0u128 << (127 - length) << 1).to_be_bytes()), 1))
        .collect();
    let mut script = Script::new(&tree);
    let steps = tree.steps(&comb).unwrap();
    script.steps(&steps);
    assert!(script.is_accepted(None));
    let mut script = Script::new(&tree);
    let forgotten = Leaf { index: other(), version: 3, epoch: 0, commitment: commitment(1) };
    script.step(Step::Touch { leaf: forgotten, depth: 1 });
    script.machine.stack.clear();
    script.steps(&steps);
    script.is_refused_by(Rule::Room);
}

#[test]
fn subtrees_have_their_digests() {
    let tree = tree();
    let evil = [7; 32];
    for step in [None, Some(beside_other(&tree))] {
        let mut script = Script::new(&tree);
        script.step(touch(&tree, victim(), 1));
        script.steps(step.as_slice());
        for (number, half) in (2..).zip(halves(&evil)) {
            script.lie(Rule::Digest, number, half.into());
        }
        script.top(|top| top.new = evil);
        if step.is_none() {
            script.step(beside_other(&tree));
        }
        script.end().is_refused_by(Rule::Digest);
    }
}

/// A subtree that is said to be nothing would be dropped; nothing that is said to be something would be a node.
#[test]
fn nothing_is_nothing_else() {
    let tree = tree();
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 1)).step(beside_other(&tree));
    script.lie(Rule::Empty, 6, Fr::one()).lie(Rule::Empty, 7, Fr::zero());
    let alone = digest(&tree, victim());
    script.top(|top| top.new = alone).end();
    script.is_refused_by(Rule::Empty);

    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 2)).up(&EMPTY);
    script.lie(Rule::Empty, 6, Fr::zero()).lie(Rule::Empty, 7, Fr::zero());
    let node = script.machine.hash(&block(&alone, &EMPTY), false);
    script.top(|top| top.new = node).step(beside_other(&tree)).end();
    script.is_refused_by(Rule::Empty);
}

#[test]
fn idle_steps_change_nothing() {
    let tree = tree();
    let evil = [6; 32];
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 1)).raw(StepValues::IDLE);
    for (number, half) in (2..).zip(halves(&evil)) {
        script.lie(Rule::Digest, number, half.into());
    }
    script.top(|top| top.new = evil).step(beside_other(&tree)).end();
    script.is_refused_by(Rule::Idle);
    // A subtree of the right side becomes one of the left side.
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 2)).step(insert(index(0b11, 2), 2)).raw(StepValues::IDLE);
    script.lie(Rule::Location, 0, Fr::from(0b101));
    script.top(|top| top.place = NodePosition { depth: 2, prefix: 1 });
    script.step(Step::Merge).step(beside_other(&tree)).end();
    script.is_refused_by(Rule::Idle);
}

#[test]
fn what_waits_on_the_stack_does_not_change() {
    let tree = tree();
    let evil = Leaf { commitment: commitment(66), ..leaf(&tree, victim()) }.digest(PROFILE);
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 1)).step(touch(&tree, other(), 1));
    for (number, half) in (5 + 3..).zip(halves(&evil)) {
        script.lie(Rule::Stack, number, half.into());
    }
    script.machine.stack[0].new = evil;
    script.step(Step::Merge).end();
    script.is_refused_by(Rule::Stack);
}

#[test]
fn epochs_end_at_the_root() {
    let tree = tree_of(PROFILE, &[vec![change(victim(), 1)]]);
    let mut script = Script::new(&tree);
    script.step(update(&tree, victim(), 3)).end();
    script.is_refused_by(Rule::AtRoot);
}

/// An epoch that leaves entries on the stack is refused at its end, and at the edge of the proof, too.
#[test]
fn epochs_end_with_nothing_left() {
    let tree = tree();
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 1)).step(update(&tree, other(), 1));
    script.up(&digest(&tree, victim())).end();
    assert!(!script.run(None).1);
    let (state, holds) = script.run(Some(Rule::Alone));
    assert!(holds && state.stack.iter().any(|entry| !entry.node.is_zero()));
    let stack = state.stack;
    assert!(Edge.run(&stack, &()).is_err());
    let none = Machine::new(PROFILE, EMPTY, CHAIN, 0).state().stack;
    for (stack, is_empty) in [(stack, false), (none, true)] {
        let cs = ConstraintSystem::<Fr>::new_ref();
        let mut values = list::<Fr, _>(&stack).into_iter();
        let mut variable =
            || FpVar::new_witness(cs.clone(), || Ok(values.next().unwrap())).unwrap();
        let stack = Vec::build(&stack.shape(), &mut variable);
        Edge.synthesize(cs.clone(), &stack, &(), None).unwrap();
        cs.finalize();
        assert_eq!(cs.is_satisfied().unwrap(), is_empty);
    }
}

#[test]
fn epochs_begin_with_the_root_of_the_one_before() {
    let tree = tree();
    let elsewhere = tree_of(PROFILE, &[vec![change(victim(), 3), change(other(), 2)]]);
    let mut script = Script::new(&tree);
    script.step(update(&elsewhere, victim(), 1)).step(beside_other(&elsewhere)).end();
    script.is_refused_by(Rule::Root);
    // Between two epochs, too.
    let mut script = Script::new(&tree);
    script.step(update(&tree, victim(), 1)).step(beside_other(&tree)).end();
    for (number, half) in halves(&elsewhere.root()).into_iter().enumerate() {
        script.lie(Rule::Root, number, half.into());
    }
    script.machine.root = elsewhere.root();
    script.step(touch(&elsewhere, victim(), 1)).step(beside_other(&elsewhere)).end();
    script.is_refused_by(Rule::Root);
}

#[test]
fn the_chain_has_every_root() {
    let tree = tree();
    for half in 0..4 {
        let mut script = Script::new(&tree);
        script.step(update(&tree, victim(), 1)).step(beside_other(&tree));
        script.forged(Step::End, |values| values.new[half] ^= 1);
        script.is_refused_by(Rule::Chain);
    }
    let mut script = Script::new(&tree);
    script.step(update(&tree, victim(), 1)).step(beside_other(&tree)).end();
    script.lie(Rule::Chain, 1, Fr::from(7u64));
    script.is_refused_by(Rule::Chain);
    // A step that is not the end leaves it as it is.
    let mut script = Script::new(&tree);
    script.step(update(&tree, victim(), 1)).lie(Rule::Chain, 0, Fr::from(7u64));
    script.machine.chain = crate::state::digest([7, halves(&CHAIN)[1]]);
    script.step(beside_other(&tree)).end();
    script.is_refused_by(Rule::Chain);
}

/// Flags are 0 or 1, and one at most is 1.
#[test]
fn a_step_does_one_thing() {
    let tree = tree();
    for operation in 1..8 {
        for value in [Fr::from(2u64), -Fr::one(), Fr::from(2u64).inverse().unwrap()] {
            let mut script = Script::new(&tree);
            script.step(update(&tree, victim(), 1)).step(beside_other(&tree)).end();
            script.raw(StepValues::IDLE);
            assert!(script.is_accepted(None));
            script.lie(Rule::OneOperation, operation, value);
            assert!(!script.is_accepted(None), "{operation} {value}");
        }
        let mut script = Script::new(&tree);
        script.step(update(&tree, victim(), 1)).step(beside_other(&tree)).end();
        script.lie(Rule::OneOperation, operation, Fr::one());
        assert_eq!(script.is_accepted(None), operation == Operation::End as usize);
    }
}

/// Flags that cancel each other do nothing to the top of the stack, but mix what is behind it: a leaf is carried to where
/// nobody finds it, beside a key with its prefix.
#[test]
fn flags_do_not_cancel() {
    let victim = index(0b0110, 4);
    let tree = tree_of(PROFILE, &[vec![change(victim, 1), change(other(), 2)]]);
    let alone = digest(&tree, victim);
    let mut script = Script::new(&tree);
    // Up from the root: the digest remains, and has no node.
    script.step(touch(&tree, victim, 0));
    let message = block(&EMPTY, &alone);
    let (old, new) = (message, message);
    script.choice(Choice {
        operation: Operation::UpRight,
        location: Fr::zero(),
        depth: 0,
        old,
        new,
    });
    script.machine.stack.clear();
    // 22 and 23 are the sides of 11.
    script.step(touch(&tree, victim, 4)).step(insert(index(0b0111, 4), 4));
    let top = script.machine.stack[1].new;
    let (old, new) = (block(&alone, &EMPTY), block(&alone, &top));
    let merge = Fr::one() - Fr::from(4) / Fr::from(22);
    script.choice(Choice {
        operation: Operation::Idle,
        location: Fr::from(11),
        depth: 0,
        old,
        new,
    });
    script.lie(Rule::OneOperation, Operation::Merge as usize, merge);
    script.lie(Rule::OneOperation, Operation::UpRight as usize, -merge);
    script.machine.stack[0].place = NodePosition { depth: 2, prefix: 0 };
    script.up(&EMPTY).up(&EMPTY).step(Step::Merge);
    let left = script.machine.stack[0].new;
    script.step(beside_other(&tree)).end();
    let root = script.machine.root;
    let below = block(&alone, &top);
    assert_eq!(left, script.machine.hash(&below, false));
    assert_eq!(root, script.machine.hash(&block(&left, &digest(&tree, other())), false));
    let (state, holds) = script.run(Some(Rule::OneOperation));
    assert!(holds && state.root == halves(&root).map(Fr::from));
    // The victim is gone.
    let leaf = Leaf { index: index(0b0111, 4), version: 0, epoch: 1, commitment: commitment(9) };
    let siblings = vec![Some(digest(&tree, other())), Some(alone)];
    let path = hekaton_directory::Path { siblings, end: hekaton_directory::End::Leaf(leaf) };
    assert_eq!(path.verify(PROFILE, &root, &victim), Ok(None));
    // What is left falls off the stack in the next epoch.
    let comb: Vec<Change> = (1..=STACK as u32)
        .map(|length| change(Index((!0u128 << (127 - length) << 1).to_be_bytes()), 1))
        .collect();
    let mut steps = tree.steps(&comb).unwrap();
    let at = steps.len() - 2;
    assert_eq!(steps[at], Step::Up { sibling: alone });
    steps[at] = Step::Up { sibling: left };
    script.steps(&steps);
    script.is_refused_by(Rule::OneOperation);
}

/// Without a leaf that is touched, an epoch has no end: nothing on the stack is not a tree.
#[test]
fn an_empty_epoch_has_no_end() {
    let mut script = Script::new(&Tree::new(PROFILE));
    let (operation, new) = (Operation::End, block(&CHAIN, &EMPTY));
    script.choice(Choice { operation, location: Fr::zero(), depth: 0, old: [0; 4], new });
    assert!(!script.is_accepted(None));
    assert!(script.is_accepted(Some(Rule::AtRoot)));
}

/// Steps up and merges of nothing lead nowhere: the number of no node is 0, and stays it.
#[test]
fn nothing_stays_nowhere() {
    let tree = tree();
    let mut script = Script::new(&tree);
    let old = block(&EMPTY, &EMPTY);
    for operation in [Operation::UpLeft, Operation::UpLeft] {
        script.choice(Choice { operation, location: Fr::zero(), depth: 0, old, new: old });
    }
    let (state, holds) = script.run(None);
    assert!(holds && state.stack.iter().all(|entry| entry.node.is_zero()));
    let mut script = Script::new(&tree);
    script.choice(Choice {
        operation: Operation::UpRight,
        location: Fr::zero(),
        depth: 0,
        old,
        new: old,
    });
    assert!(!script.run(None).1);
    // The root has no parent.
    let mut script = Script::new(&tree);
    script.step(touch(&tree, victim(), 0));
    let values = script.machine.stack[0];
    let (operation, sides) = (Operation::UpRight, block(&EMPTY, &values.old));
    script.choice(Choice { operation, location: Fr::zero(), depth: 0, old: sides, new: sides });
    let (state, holds) = script.run(None);
    assert!(holds && state.stack[0].node.is_zero());
}
