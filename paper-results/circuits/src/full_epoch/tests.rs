//! Tests of the circuit with two paths per change.

use super::parts::{
    Close, CloseReads, NewLeaf, NewLeafReads, NewPath, NewReads, OldLeaf, OldLeafPrivate,
    OldLeafReads, OldPath, OldPrivate, OldReads, climbed, fields, quarters,
};
use super::values::list;
use super::{Changed, FullEpoch, FullEpochError};
use ark_ff::{One, Zero};
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::ConstraintSystem;
use hekaton_circuit::parts::{Part, Slots, Var};
use hekaton_circuit::{Fr, check};
use hekaton_directory::{
    Change, Commitment, Digest, EMPTY, Index, Leaf, Profile, Step, Tree, Witness,
};
use hekaton_directory_circuit::Tip;

/// An index whose first bits are those of a small number.
fn index(number: u128, bits: u32) -> Index {
    Index((number << (128 - bits)).to_be_bytes())
}

fn change(index: Index, number: u8) -> Change {
    Change { index, commitment: Commitment([number; 32]) }
}

/// The tree after epochs with these changes.
fn tree_of(profile: Profile, epochs: &[Vec<Change>]) -> Tree {
    epochs.iter().fold(Tree::new(profile), |tree, changes| tree.update(changes).unwrap())
}

/// The witness of epochs with these changes after a tree, and the tree after them.
fn witness_of(tree: &Tree, epochs: &[Vec<Change>]) -> (Witness, Tree) {
    let (profile, epoch, root) = (tree.profile(), tree.epoch(), tree.root());
    let mut witness = Witness { profile, epoch, root, chain: [9; 32], steps: Vec::new() };
    let mut last = tree.clone();
    for changes in epochs {
        witness.steps.extend(last.steps(changes).unwrap());
        last = last.update(changes).unwrap();
    }
    (witness, last)
}

/// Parts of paths are short here.
const LEVELS: usize = 2;

fn siblings() -> Vec<Digest> {
    vec![[0x12; 32], [0xf0; 32]]
}

/// Reports whether a part's rows hold with these slots.
fn holds<P: Part>(
    part: &P,
    reads: &P::Reads<Fr>,
    writes: &P::Writes<Fr>,
    private: &P::Private,
) -> bool {
    let cs = ConstraintSystem::<Fr>::new_ref();
    let variables = |values: Vec<Fr>| -> std::vec::IntoIter<Var> {
        let new = |value| FpVar::new_witness(cs.clone(), || Ok(value)).unwrap();
        values.into_iter().map(new).collect::<Vec<_>>().into_iter()
    };
    let mut read = variables(list(reads));
    let mut written = variables(list(writes));
    let reads = Slots::build(&reads.shape(), &mut || read.next().unwrap());
    let writes = Slots::build(&writes.shape(), &mut || written.next().unwrap());
    part.synthesize(cs.clone(), &reads, &writes, Some(private)).unwrap();
    cs.finalize();
    cs.is_satisfied().unwrap()
}

/// Slots of which one has another value.
fn with<S: Slots<Fr>>(slots: &S, at: usize, value: impl Fn(Fr) -> Fr) -> S {
    let mut values = list(slots);
    values[at] = value(values[at]);
    let mut values = values.into_iter();
    S::build(&slots.shape(), &mut || values.next().unwrap())
}

/// The honest slots hold, and with any slot changed but the given ones that are read, they do not.
#[track_caller]
fn check_part<P: Part>(part: &P, reads: &P::Reads<Fr>, private: &P::Private, free: &[usize])
where
    P::Reads<Fr>: Slots<Fr>,
    P::Writes<Fr>: Slots<Fr>,
{
    let writes = part.run(reads, private).unwrap();
    assert!(holds(part, reads, &writes, private));
    for at in 0..list::<Fr, _>(reads).len() {
        let changed = with(reads, at, |value| value + Fr::one());
        assert_eq!(holds(part, &changed, &writes, private), free.contains(&at), "slot {at}");
    }
    for at in 0..list::<Fr, _>(&writes).len() {
        let changed = with(&writes, at, |value| value - Fr::one());
        assert!(!holds(part, reads, &changed, private), "written slot {at}");
    }
}

const INDEX: u128 = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;

fn leaf(version: u32, epoch: u32, commitment: Digest) -> Leaf {
    let (index, commitment) = (Index(INDEX.to_be_bytes()), Commitment(commitment));
    Leaf { index, version, epoch, commitment }
}

#[test]
fn paths_before_a_change() {
    let below = leaf(3, 2, [7; 32]).digest(Profile::Full);
    let [number, ..] = quarters(INDEX);
    let above = fields(&climbed(below, number.into(), &siblings()));
    let reads = OldReads { above, index: number.into() };
    let private = OldPrivate { below, siblings: siblings() };
    check_part(&OldPath { levels: LEVELS }, &reads, &private, &[]);
    let wrong = OldReads { above: fields(&below), ..reads };
    assert!(OldPath { levels: LEVELS }.run(&wrong, &private).is_err());
}

#[test]
fn paths_after_a_change() {
    let below = fields(&leaf(3, 2, [7; 32]).digest(Profile::Full));
    let siblings = siblings().iter().map(fields).collect();
    let reads = NewReads { below, index: quarters(INDEX)[1].into(), siblings };
    check_part(&NewPath { levels: LEVELS }, &reads, &(), &[]);
}

#[test]
fn leaves_before_a_change() {
    let part = OldLeaf { levels: LEVELS };
    for (old, current) in [
        (Some((3, 2, [7; 32])), leaf(3, 2, [7; 32]).digest(Profile::Full)),
        (Some((u32::MAX, 2, [7; 32])), leaf(u32::MAX, 2, [7; 32]).digest(Profile::Full)),
        (None, EMPTY),
    ] {
        let above = fields(&climbed(current, INDEX, &siblings()));
        let private = OldLeafPrivate { index: INDEX, leaf: old, siblings: siblings() };
        // A bound may be smaller.
        check_part(&part, &OldLeafReads { above, least: Fr::zero() }, &private, &[2]);
        let reads = OldLeafReads { above, least: Fr::from(INDEX) };
        let writes = part.run(&reads, &private).unwrap();
        assert!(holds(&part, &reads, &writes, &private));
        for least in [Fr::from(INDEX) + Fr::one(), Fr::from(u128::MAX) + Fr::one()] {
            let reads = OldLeafReads { least, ..reads.clone() };
            assert!(!holds(&part, &reads, &writes, &private), "the index is not above {least}");
        }
        // Nothing where there is a leaf, a leaf where there is nothing, and another one.
        for other in [None, Some((3, 2, [7; 32])), Some((4, 2, [7; 32])), Some((3, 2, [8; 32]))] {
            let private = OldLeafPrivate { leaf: other, ..private.clone() };
            let honest = other == old;
            assert_eq!(part.run(&reads, &private).is_ok(), honest);
            assert_eq!(holds(&part, &reads, &writes, &private), honest);
        }
    }
}

#[test]
fn leaves_after_a_change() {
    let part = NewLeaf { levels: LEVELS };
    let siblings: Vec<[Fr; 2]> = siblings().iter().map(fields).collect();
    let reads = NewLeafReads {
        index: quarters(INDEX).map(Fr::from),
        version: Fr::from(4),
        epoch: Fr::from(9),
        siblings,
    };
    check_part(&part, &reads, &[5; 32], &[]);
    let writes = part.run(&reads, &[5; 32]).unwrap();
    let leaf = leaf(4, 9, [5; 32]).digest(Profile::Full);
    assert_eq!(writes, fields(&climbed(leaf, INDEX, &super::tests::siblings())));
    assert!(!holds(&part, &reads, &writes, &[6; 32]));
    // There is no version 2^32.
    let reads = NewLeafReads { version: Fr::from(1u64 << 32), ..reads };
    assert!(part.run(&reads, &[5; 32]).is_err());
    assert!(!holds(&part, &reads, &writes, &[5; 32]));
}

#[test]
fn epochs_are_closed() {
    let reads = CloseReads {
        chain: fields(&[3; 32]),
        root: fields(&[4; 32]),
        epoch: Fr::from(u32::MAX - 1),
    };
    check_part(&Close, &reads, &(), &[]);
    let writes = Close.run(&reads, &()).unwrap();
    assert_eq!(writes.chain, fields(&Profile::Full.combine(&[3; 32], &[4; 32])));
}

/// A whole change, from the server's tree to the public values.
#[test]
fn a_change_is_proven_by_two_paths() {
    let first = vec![change(index(0b001, 3), 1), change(index(0b100, 3), 2)];
    let tree = tree_of(Profile::Full, &[first]);
    let (witness, last) = witness_of(&tree, &[vec![change(index(0b100, 3), 3)]]);
    let circuit = FullEpoch { changes: 1 };
    let report = check(&circuit, &circuit.run(&witness).unwrap(), |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
    let chain = Profile::Full.combine(&witness.chain, &last.root());
    let from = Tip { epoch: 1, root: tree.root(), chain: witness.chain };
    let to = Tip { epoch: 2, root: last.root(), chain };
    assert_eq!(report.public_values, Tip::public_values(&from, &to));
    // Six parts of paths, the leaf before and after the change, the end of the epoch; and masks.
    let rows = 6 * 1_473_963 + 1_519_938 + 1_519_287 + 45_808 + 9 * 2;
    assert_eq!(report.constraints, rows);
}

/// Steps lead to the tree's next root, insertions and changes, in the order of indices.
#[test]
fn witnesses_are_carried_out() {
    let tree = tree_of(Profile::Full, &[vec![change(index(0b001, 3), 1)]]);
    let changes: Vec<_> = [0b111u128, 0b001, 0b000].map(|at| change(index(at, 3), 4)).to_vec();
    let (witness, last) = witness_of(&tree, &[changes]);
    let circuit = FullEpoch { changes: 3 };
    let run = circuit.run(&witness).unwrap();
    assert_eq!((run.to.root, run.to.epoch), (last.root(), 2));
    assert_eq!(run.changes.iter().map(|change| change.version).collect::<Vec<_>>(), [0, 1, 0]);

    let refused = |forge: &dyn Fn(&mut Witness)| {
        let mut witness = witness.clone();
        forge(&mut witness);
        circuit.run(&witness).unwrap_err()
    };
    let step = |error| match error {
        FullEpochError::Step { number, why } => (number, why),
        other => panic!("{other}"),
    };
    assert!(matches!(refused(&|w| w.profile = Profile::Sha256), FullEpochError::Profile { .. }));
    assert_eq!(refused(&|w| drop(w.steps.pop())), FullEpochError::Unfinished);
    assert_eq!(refused(&|w| w.steps.clear()), FullEpochError::Unfinished);
    let fewer = FullEpochError::Changes { found: 2, expected: 3 };
    assert_eq!(refused(&|w| drop(w.steps.remove(0))), fewer);
    assert_eq!(step(refused(&|w| w.steps[1] = Step::Merge)).0, 1);
    assert_eq!(step(refused(&|w| w.steps.swap(0, 1))).0, 0);
    assert_eq!(step(refused(&|w| w.root = [2; 32])).0, 0);
    let short = |w: &mut Witness| {
        let Step::Path { path, .. } = &mut w.steps[0] else { unreachable!() };
        path.siblings.pop();
    };
    assert_eq!(step(refused(&short)).0, 0);
    let mut last = witness_of(&tree, &[vec![change(index(0b001, 3), 4)]]).0;
    last.epoch = u32::MAX;
    assert_eq!(step(FullEpoch { changes: 1 }.run(&last).unwrap_err()).0, 1);
    // The same index twice, one path after the other.
    let twice = tree.update(&[change(index(0b001, 3), 4)]).unwrap();
    let mut forged = witness_of(&tree, &[vec![change(index(0b001, 3), 4)]]).0;
    let next = twice.steps(&[change(index(0b001, 3), 5)]).unwrap();
    forged.steps.splice(1..1, next.into_iter().take(1));
    let (number, why) = step(FullEpoch { changes: 2 }.run(&forged).unwrap_err());
    assert!(number == 1 && why.contains("not above that of the change before"), "{why}");
    let (index, path) = (Index(INDEX.to_be_bytes()), tree.path(&index(0b110, 3)).unwrap());
    let error = Changed::new((&index, &path, &Commitment([0; 32])), &tree.root(), 1).unwrap_err();
    assert!(error.contains("does not lead"), "{error}");
}
