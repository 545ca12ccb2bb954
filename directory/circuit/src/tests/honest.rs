//! Honest provers: all batches are proven, and lead to the roots of their trees.

use super::{change, commitment, index, tree_of, witness_of};
use crate::epochs::Run;
use crate::machine::Machine;
use crate::{Epochs, Tip, WitnessError};
use hekaton_circuit::named::NamedCircuit;
use hekaton_circuit::{
    CheckOptions, CheckReport, InstanceVerdicts, PreparedCircuit, check, check_with,
};
use hekaton_directory::{
    Change, Commitment, Index, Profile, STACK, Step, Tree, UpdateError, Witness,
};
use proptest::prelude::*;

/// Indices of 128 bits that share many.
fn indices() -> impl Strategy<Value = Index> {
    prop_oneof![
        any::<[u8; 16]>().prop_map(Index),
        (0u128..64).prop_map(|number| index(number, 6)),
        (0u128..64).prop_map(|number| Index(number.to_be_bytes())),
        (0u128..4, 0u32..127).prop_map(|(number, at)| Index((number << at).to_be_bytes())),
    ]
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::btree_map(indices(), any::<u8>(), 0..24).prop_map(|changes| {
        changes.into_iter().map(|(index, number)| change(index, number)).collect()
    })
}

/// At least one change.
fn change_list() -> impl Strategy<Value = Vec<Change>> {
    changes().prop_filter("without changes", |changes| !changes.is_empty())
}

proptest! {
    /// The steps of changes lead from root to root, epoch after epoch.
    #[test]
    fn steps_lead_to_the_next_root(
        epochs in prop::collection::vec(changes(), 1..5),
        sha256 in any::<bool>(),
    ) {
        let profile = if sha256 { Profile::Sha256 } else { Profile::Compress };
        let mut tree = Tree::new(profile);
        let mut machine = Machine::new(profile, tree.root(), [1; 32], 0);
        for changes in &epochs {
            if changes.is_empty() && tree.leaves() == 0 {
                prop_assert_eq!(tree.steps(changes), Err(UpdateError::NoSteps));
                continue;
            }
            let steps = tree.steps(changes).unwrap();
            prop_assert!(Step::height(&steps) <= STACK);
            for step in steps {
                machine.apply(&step).unwrap();
                let state = machine.state();
                prop_assert_eq!(Machine::of(profile, &state).unwrap().state(), state);
            }
            tree = tree.update(changes).unwrap();
            prop_assert!(machine.is_between_epochs());
            prop_assert_eq!((machine.root, machine.epoch), (tree.root(), tree.epoch()));
        }
    }

    /// A witness is read as it was written, and nothing else is.
    #[test]
    fn witnesses_are_read_back(
        first in change_list(),
        epochs in prop::collection::vec(changes(), 0..2),
        at in any::<prop::sample::Index>(),
    ) {
        let epochs = [vec![first], epochs].concat();
        let (witness, _) = witness_of(&Tree::new(Profile::Compress), &epochs);
        let bytes = witness.encode();
        prop_assert_eq!(Witness::decode(&bytes), Ok(witness.clone()));
        let cut = at.index(bytes.len());
        prop_assert!(Witness::decode(&bytes[..cut]).is_err());
        let mut changed = bytes.clone();
        changed[cut] ^= 1;
        prop_assert_ne!(Witness::decode(&changed).ok(), Some(witness));
        prop_assert!(Witness::decode(&[bytes, vec![0]].concat()).is_err());
    }
}

/// Two epochs in one proof, the second of which begins in the middle of a subcircuit, with all rows of the hash function.
#[test]
fn all_rows_hold() {
    for profile in [Profile::Compress, Profile::Sha256] {
        let first = vec![change(index(0b001, 3), 1), change(index(0b100, 3), 2)];
        let tree = tree_of(profile, &[first]);
        // One beside a leaf that moves down, and a new version.
        let epochs = [
            vec![change(index(0b0011, 4), 3), change(index(0b100, 3), 4)],
            vec![change(index(0b001, 3), 5)],
        ];
        let (witness, last) = witness_of(&tree, &epochs);
        let subcircuits = witness.steps.len().div_ceil(2);
        let circuit = Epochs { profile, steps: 2, subcircuits };
        let run = circuit.run(&witness).unwrap();
        let prepared = PreparedCircuit::with_input(&circuit, &run).unwrap();
        let options = CheckOptions::new().unique(true).every(true);
        let report = check_with(&prepared, &options, &mut |_, _| {}).unwrap();
        follows(&report, &run);
        assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
        let chain = [tree_of_epoch(&tree, &epochs[0]), last.clone()]
            .iter()
            .fold(witness.chain, |chain, tree| profile.combine(&chain, &tree.root()));
        let from = Tip { epoch: 1, root: tree.root(), chain: witness.chain };
        let to = Tip { epoch: 3, root: last.root(), chain };
        let values = Tip::public_values(&from, &to);
        assert_eq!(report.public_values, values);
        assert_eq!(Tip::of_public_values(&values), Some([from, to]));
        let text = Epochs::show(&values).unwrap();
        assert_eq!(Epochs::read(&text).unwrap().unwrap(), values);
    }
}

/// Epochs without changes keep the root, of one leaf or many, with all rows of the hash function. A tree without leaves has none.
#[test]
fn epochs_without_changes() {
    let profile = Profile::Compress;
    let leaves = [(0b001, 3), (0b0011, 4), (0b1, 1)].map(|(bits, len)| change(index(bits, len), 7));
    for count in 1..=leaves.len() {
        let tree = tree_of(profile, &[leaves[..count].to_vec()]);
        let (witness, last) = witness_of(&tree, &[vec![], vec![]]);
        assert_eq!((last.root(), last.epoch()), (tree.root(), tree.epoch() + 2));
        let circuit = Epochs { profile, steps: 2, subcircuits: witness.steps.len().div_ceil(2) };
        let report = check(&circuit, &circuit.run(&witness).unwrap(), |_, _| {}).unwrap();
        assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
        let [from, to] = Tip::of_public_values(&report.public_values).unwrap();
        assert_eq!((from.root, to.root, to.epoch - from.epoch), (tree.root(), tree.root(), 2));
        let chain = (0..2).fold(witness.chain, |chain, _| profile.combine(&chain, &tree.root()));
        assert_eq!(to.chain, chain);
    }
    assert_eq!(Tree::new(profile).steps(&[]), Err(UpdateError::NoSteps));
}

fn tree_of_epoch(tree: &Tree, changes: &[Change]) -> Tree {
    tree.update(changes).unwrap()
}

/// The height of steps says whether the stack has room for them: no less and no more.
#[test]
fn steps_have_the_height_that_the_stack_needs() {
    // Each is on the right of the place where the one before it went left.
    let comb: Vec<Change> = (0..40u32)
        .map(|length| change(Index((!0u128 << (127 - length) << 1).to_be_bytes()), length as u8))
        .collect();
    let heights = |tree: &Tree, changes: &[Change]| -> Vec<usize> {
        let one = |many: usize| {
            let steps = tree.steps(&changes[..many]).unwrap();
            let mut machine = Machine::new(Profile::Compress, tree.root(), [1; 32], tree.epoch());
            let applied = steps.iter().try_for_each(|step| machine.apply(step).map(drop));
            let height = Step::height(&steps);
            assert_eq!(applied.is_ok(), height <= STACK, "{many} changes, height {height}");
            assert!(applied.err().is_none_or(|why| why.to_string().contains("no room")));
            height
        };
        (1..=changes.len()).map(one).collect()
    };
    let tree = Tree::new(Profile::Compress);
    assert_eq!(heights(&tree, &comb), (1..=40).collect::<Vec<_>>());
    // A leaf that moves down counts, too.
    let deep = tree.update(&comb[..STACK]).unwrap();
    let beside: Vec<Change> = comb[..STACK]
        .iter()
        .map(|change| {
            let mut index = change.index;
            index.0[15] ^= 1;
            Change { index, commitment: commitment(7) }
        })
        .collect();
    assert!(heights(&deep, &beside).into_iter().max() > Some(STACK));
}

/// A wrong witness is refused with an error that names the step and says what is wrong.
#[test]
fn bad_witnesses_are_refused() {
    let tree = tree_of(Profile::Compress, &[vec![change(index(1, 3), 1), change(index(4, 3), 2)]]);
    let (witness, _) = witness_of(&tree, &[vec![change(index(1, 3), 3)]]);
    let circuit = Epochs { profile: Profile::Compress, steps: 2, subcircuits: 2 };
    assert!(circuit.run(&witness).is_ok());
    let refused = |forge: &dyn Fn(&mut Witness)| {
        let mut witness = witness.clone();
        forge(&mut witness);
        circuit.run(&witness).unwrap_err()
    };
    assert!(matches!(refused(&|w| w.profile = Profile::Sha256), WitnessError::Profile { .. }));
    assert_eq!(
        refused(&|w| w.steps.extend(vec![Step::Merge; 3])),
        WitnessError::Room { steps: 6, room: 4 }
    );
    assert_eq!(refused(&|w| w.steps.truncate(2)), WitnessError::Unfinished);
    assert_eq!(refused(&|w| w.steps.clear()), WitnessError::Unfinished);
    let step = |error| match error {
        WitnessError::Step { number, why } => (number, why),
        other => panic!("{other}"),
    };
    let (number, why) = step(refused(&|w| w.root = [2; 32]));
    assert_eq!(number, 2);
    assert!(why.contains("not hold the tree of the previous epoch"), "{why}");
    let (number, why) = step(refused(&|w| w.steps[0] = Step::Merge));
    assert_eq!(
        (number, why.as_str()),
        (0, "the two topmost subtrees of the stack are not the sides of one node")
    );
    assert_eq!(step(refused(&|w| w.steps[0] = Step::End)).0, 0);
    assert_eq!(step(refused(&|w| w.steps[2] = Step::Up { sibling: [0; 32] })).0, 2);
    assert_eq!(step(refused(&|w| w.epoch = u32::MAX)).0, 2);
    let insert = Step::Insert { index: index(1, 3), depth: 2, commitment: Commitment([3; 32]) };
    assert_eq!(
        step(refused(&|w| (w.steps[0], w.steps[1]) = (insert.clone(), up_beside_a_leaf()))).0,
        1
    );
    let full = |w: &mut Witness| {
        let Step::Update { leaf, .. } = &mut w.steps[0] else { unreachable!() };
        leaf.version = u32::MAX;
    };
    assert!(step(refused(&full)).1.contains("largest version"));
}

fn up_beside_a_leaf() -> Step {
    Step::Up { sibling: [1; 32] }
}

/// Whatever the prover chooses in a step, all else follows, except the inverse of each empty side, which changes nothing.
fn follows(report: &CheckReport, run: &Run) {
    for found in &report.unique {
        let InstanceVerdicts { instance, private_inputs, verdicts, .. } = found;
        // The last subcircuit, which only says that nothing is left, chooses nothing.
        let steps = run.steps.get(*instance).map_or(&[][..], |steps| steps);
        let sides = steps.iter().flat_map(|step| [step.old, step.new]);
        let sides = sides.flat_map(|[l0, l1, r0, r1]| [[l0, l1], [r0, r1]]);
        let nothing = sides.filter(|side| *side == [0, 0]).count();
        // Operations, the bits of a location, depths, and two messages.
        assert_eq!(*private_inputs, steps.len() * (7 + 128 + 129 + 2 * 512), "{instance}");
        let counts = (verdicts.free_counts(), verdicts.undecided_counts());
        assert_eq!(counts, ([0, nothing], [0, 0]), "{instance}");
    }
    assert_eq!(report.unique.len(), report.instances);
}
