//! The types of subcircuits: some steps, and the end of the proof.

use crate::form::{Form, Rows};
use crate::machine::{Machine, StepValues};
use crate::rule::Rule;
use crate::state::{Entry, State, list};
use crate::step::{Choice, step};
use ark_ff::Zero;
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::parts::{Cs, Leaf, Part, Slot, Synthesized, Var};
use hekaton_circuit::{CircuitError, Fr, Subcircuit};
use hekaton_directory::{Profile, STACK};

/// The form of a slot.
fn form(slot: &Var) -> Result<Form<Fr>, SynthesisError> {
    match slot {
        FpVar::Var(var) => Ok(Form::new(var.variable.into(), slot.value().ok())),
        FpVar::Constant(_) => Err(SynthesisError::Unsatisfiable),
    }
}

fn forms<const N: usize>(slots: &[Var; N]) -> Result<[Form<Fr>; N], SynthesisError> {
    let forms = slots.iter().map(form).collect::<Result<Vec<_>, _>>()?;
    forms.try_into().map_err(|_| SynthesisError::Unsatisfiable)
}

impl Entry<Var> {
    fn forms(&self) -> Result<Entry<Form<Fr>>, SynthesisError> {
        Ok(Entry { node: form(&self.node)?, old: forms(&self.old)?, new: forms(&self.new)? })
    }
}

impl State<Var> {
    fn forms(&self) -> Result<State<Form<Fr>>, SynthesisError> {
        Ok(State {
            stack: self.stack.iter().map(Entry::forms).collect::<Result<_, _>>()?,
            root: forms(&self.root)?,
            chain: forms(&self.chain)?,
            epoch: form(&self.epoch)?,
        })
    }
}

/// Some steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Steps {
    pub(crate) profile: Profile,
    pub(crate) steps: usize,
}

impl Part for Steps {
    const NAME: &'static str = "steps";
    type Reads<W: Leaf> = State<W>;
    type Writes<W: Leaf> = State<W>;
    type Private = Vec<StepValues>;

    fn reads(&self) -> State<Slot> {
        State::slots(STACK)
    }

    fn writes(&self) -> State<Slot> {
        State::slots(STACK)
    }

    fn run(&self, before: &State<Fr>, steps: &Vec<StepValues>) -> Result<State<Fr>, CircuitError> {
        let mut machine =
            Machine::of(self.profile, before).ok_or("the wires do not hold a state")?;
        steps.iter().for_each(|step| machine.carry_out(step));
        Ok(machine.state())
    }

    fn synthesize(
        &self,
        cs: Cs,
        before: &State<Var>,
        after: &State<Var>,
        values: Option<&Vec<StepValues>>,
    ) -> Synthesized {
        let rows = Rows::new(cs);
        let mut state = before.forms()?;
        for at in 0..self.steps {
            let missing = SynthesisError::AssignmentMissing;
            let of_step = values.map(|values| values.get(at).ok_or(missing)).transpose()?;
            let choice = of_step.map(Choice::from);
            state = step(&rows, &self.profile, &state, choice.as_ref())?;
        }
        for variable in rows.chosen.take() {
            let chosen = AllocatedFp::new(None, variable, rows.cs.clone());
            Subcircuit::given_value(&rows.cs, &FpVar::Var(chosen));
        }
        // The state after the last step is what the next subcircuit reads.
        for (found, slot) in state.list().iter().zip(list(after)) {
            rows.product(Rule::Definition, found, &Form::one(), &form(&slot)?)?;
        }
        Ok(())
    }
}

/// The end of the proof: nothing is left on the stack.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edge;

impl Part for Edge {
    const NAME: &'static str = "edge";
    type Reads<W: Leaf> = Vec<Entry<W>>;
    type Writes<W: Leaf> = ();
    type Private = ();

    fn reads(&self) -> Vec<Entry<Slot>> {
        State::slots(STACK).stack
    }

    fn run(&self, stack: &Vec<Entry<Fr>>, (): &()) -> Result<(), CircuitError> {
        match list::<Fr, _>(stack).iter().all(Zero::is_zero) {
            true => Ok(()),
            false => Err("the last epoch has not ended".into()),
        }
    }

    fn synthesize(&self, cs: Cs, stack: &Vec<Entry<Var>>, (): &(), _: Option<&()>) -> Synthesized {
        let rows = Rows::new(cs);
        for slot in list::<Var, _>(stack) {
            // Each slot on its own: a sum could be zero although its terms are not.
            rows.product(Rule::Alone, &form(&slot)?, &Form::one(), &Form::zero())?;
        }
        Ok(())
    }
}
