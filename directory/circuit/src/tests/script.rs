//! A prover that may lie: steps that are not those of a tree, and values that are not those of the steps.

use super::CHAIN;
use crate::form::{Form, Rows};
use crate::hash::{Block, Hash, Hashed, SIZES, Sizes};
use crate::machine::{Machine, Operation, StepValues, Subtree, block};
use crate::rule::Rule;
use crate::state::{Entry, State, list};
use crate::step::{Choice, step};
use ark_ff::Zero;
use ark_relations::gr1cs::{ConstraintSystem, SynthesisError};
use hekaton_circuit::Fr;
use hekaton_circuit::parts::Slots;
use hekaton_directory::{Digest, Profile, Step, Tree};
use std::collections::BTreeMap;

/// A profile's hash function computed natively, without constraints, so that long proofs are quick to check.
struct Oracle(Profile);

impl Hash<Fr> for Oracle {
    fn sizes(&self) -> Sizes {
        SIZES
    }

    fn hash(&self, rows: &Rows<Fr>, block: Option<&Block>) -> Result<Hashed<Fr>, SynthesisError> {
        let block = block.ok_or(SynthesisError::AssignmentMissing)?;
        // Bits of the message are bits, and forms of them are exact.
        let mut bits = Vec::new();
        for half in block {
            for at in (0..128).rev() {
                let bit = rows.variable(Some(Fr::from(half >> at & 1)))?;
                rows.zero_if(Rule::Definition, &bit, &(Form::one() - &bit))?;
                bits.push(bit);
            }
        }
        let number = |from: usize, to: usize| {
            bits[from..to].iter().fold(Form::zero(), |sum, bit| sum.times(Fr::from(2)) + bit)
        };
        let [a, b, c, d] = block.map(u128::to_be_bytes);
        let digest =
            |high: [u8; 16], low: [u8; 16]| -> Digest { [high, low].concat().try_into().unwrap() };
        let hashed = self.0.combine(&digest(a, b), &digest(c, d));
        let [high, low] = crate::state::halves(&hashed).map(Fr::from);
        Ok(Hashed {
            halves: [number(0, 128), number(128, 256), number(256, 384), number(384, 512)],
            is_leaf: [bits[255].clone(), bits[511].clone()],
            version: number(128, 160),
            epoch: number(160, 192),
            rest: number(192, 256),
            digest: [constant(high), constant(low)],
            last: constant(Fr::from(hashed[31] & 1)),
        })
    }
}

pub(super) fn constant(value: Fr) -> Form<Fr> {
    Form::one().times(value)
}

type Lies = BTreeMap<(Rule, usize), Fr>;

/// The steps of a prover.
pub(super) struct Script {
    profile: Profile,
    pub(super) machine: Machine,
    start: State<Fr>,
    made: Vec<(Choice<Fr>, Lies)>,
}

impl Script {
    pub(super) fn new(tree: &Tree) -> Self {
        Self::at(tree.profile(), tree.root(), CHAIN, tree.epoch())
    }

    /// The steps of a prover that begins with any root and chain.
    pub(super) fn at(profile: Profile, root: Digest, chain: Digest, epoch: u32) -> Self {
        let machine = Machine::new(profile, root, chain, epoch);
        let start = machine.state();
        Self { profile, machine, start, made: Vec::new() }
    }

    /// An honest step.
    pub(super) fn step(&mut self, step: Step) -> &mut Self {
        let values = self.machine.apply(&step).unwrap();
        self.made.push((Choice::from(&values), Lies::new()));
        self
    }

    /// Honest steps.
    pub(super) fn steps(&mut self, steps: &[Step]) -> &mut Self {
        for step in steps {
            self.step(step.clone());
        }
        self
    }

    /// The step that would be made if it were honest, changed by the prover.
    pub(super) fn forged(&mut self, step: Step, forge: impl FnOnce(&mut StepValues)) -> &mut Self {
        let mut values = self.machine.clone().apply(&step).unwrap();
        forge(&mut values);
        self.raw(values)
    }

    /// A step of the prover's own.
    pub(super) fn raw(&mut self, values: StepValues) -> &mut Self {
        self.machine.carry_out(&values);
        self.made.push((Choice::from(&values), Lies::new()));
        self
    }

    /// A step up from the top of the stack, whatever is beside it.
    pub(super) fn up(&mut self, sibling: &Digest) -> &mut Self {
        let values = self.up_values(sibling);
        self.raw(values)
    }

    pub(super) fn up_values(&self, sibling: &Digest) -> StepValues {
        let Subtree { place, old, new } = *self.machine.stack.last().unwrap();
        let location = place.parent().unwrap().number().unwrap();
        let (operation, messages) = match place.is_right() {
            false => (Operation::UpLeft, [old, new].map(|digest| block(&digest, sibling))),
            true => (Operation::UpRight, [old, new].map(|digest| block(sibling, &digest))),
        };
        let [old, new] = messages;
        StepValues { operation, location, depth: 0, old, new }
    }

    /// A merge of the two at the top of the stack, as if they were the sides of a node.
    pub(super) fn merge(&mut self, location: u128) -> &mut Self {
        let [.., left, right] = self.machine.stack[..] else { panic!("two subtrees") };
        let (old, new) = (block(&left.old, &right.old), block(&left.new, &right.new));
        let operation = Operation::Merge;
        self.raw(StepValues { operation, location, depth: 0, old, new })
    }

    /// The end of an epoch, whatever is on the stack.
    pub(super) fn end(&mut self) -> &mut Self {
        let top = self.machine.stack.last().unwrap().new;
        let (operation, new) = (Operation::End, block(&self.machine.chain, &top));
        self.raw(StepValues { operation, location: 0, depth: 0, old: [0; 4], new })
    }

    /// Changes the top of the native stack, from which later steps are made.
    pub(super) fn top(&mut self, change: impl FnOnce(&mut Subtree)) -> &mut Self {
        change(self.machine.stack.last_mut().unwrap());
        self
    }

    /// A step that the native machine knows nothing of.
    pub(super) fn choice(&mut self, choice: Choice<Fr>) -> &mut Self {
        self.made.push((choice, Lies::new()));
        self
    }

    /// Gives variables of the last step other values.
    pub(super) fn lie(&mut self, rule: Rule, number: usize, value: Fr) -> &mut Self {
        self.made.last_mut().unwrap().1.insert((rule, number), value);
        self
    }

    /// The state after all steps, and whether all rows hold, without those of a rule.
    pub(super) fn run(&self, without: Option<Rule>) -> (State<Fr>, bool) {
        let cs = ConstraintSystem::<Fr>::new_ref();
        let start = list::<Fr, _>(&self.start);
        let mut forms = start.iter().map(|value| constant(*value));
        let entries = self.start.stack.len();
        let mut next = || forms.next().unwrap();
        let mut entry = || Entry { node: next(), old: [next(), next()], new: [next(), next()] };
        let stack = (0..entries).map(|_| entry()).collect();
        let mut state =
            State { stack, root: [next(), next()], chain: [next(), next()], epoch: next() };
        for (choice, lies) in &self.made {
            let rows = Rows { without, lies: lies.clone(), ..Rows::new(cs.clone()) };
            state = step(&rows, &Oracle(self.profile), &state, Some(choice)).unwrap();
        }
        let values: Vec<Fr> = state.list().iter().map(|form| form.value().unwrap()).collect();
        let mut values = values.into_iter();
        let state = State::build(&self.start.shape(), &mut || values.next().unwrap());
        cs.finalize();
        (state, cs.is_satisfied().unwrap())
    }

    /// Reports whether all rows hold, without those of a rule, and nothing is left at the end.
    pub(super) fn is_accepted(&self, without: Option<Rule>) -> bool {
        let (state, holds) = self.run(without);
        holds && list::<Fr, _>(&state.stack).iter().all(Zero::is_zero)
    }

    /// Checks that the rule is what refuses the steps, and nothing else.
    #[track_caller]
    pub(super) fn is_refused_by(&self, rule: Rule) {
        assert!(!self.is_accepted(None), "accepted, with {rule:?}");
        assert!(self.is_accepted(Some(rule)), "refused without {rule:?}, too");
    }
}
