//! The circuit of epochs in a row.

use crate::machine::{Machine, StepError, StepValues};
use crate::parts::{Edge, Steps};
use crate::state::{State, list};
use crate::tip::Tip;
use crate::witness_error::WitnessError;
use hekaton_circuit::named::{
    Family, InputFile, NamedCircuit, Parameter, ParameterError, ParameterMap, create,
};
use hekaton_circuit::parts::{Slots, Wire, WiredCircuit, Wires};
use hekaton_circuit::{CircuitError, Fr, LayoutError};
use hekaton_directory::{Change, Commitment, Index, Profile, STACK, Tree, Witness};
use serde::{Deserialize, Serialize};

/// The largest number of steps of a subcircuit.
const MAX_STEPS: usize = 1 << 10;

/// The largest number of subcircuits of a proof.
const MAX_SUBCIRCUITS: usize = 1 << 20;

/// Epochs in a row: every change between two roots inserted a leaf at version 0 or raised a version by one, and the chain
/// binds all roots in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epochs {
    /// The way the tree is hashed; in this circuit, one where lone leaves move up.
    pub profile: Profile,
    /// The number of steps of a subcircuit.
    pub steps: usize,
    /// The number of subcircuits with steps.
    pub subcircuits: usize,
}

/// The parameters by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochsParameters {
    /// `compress` or `sha256`.
    pub profile: String,
    /// [`Epochs::steps`].
    pub steps: usize,
    /// [`Epochs::subcircuits`].
    pub subcircuits: usize,
}

/// Steps that a circuit can prove, with the states between its subcircuits.
#[derive(Clone, Debug)]
pub struct Run {
    /// The steps of each subcircuit.
    pub(crate) steps: Vec<Vec<StepValues>>,
    /// The values of the states before the first one, between them, and after the last one.
    states: Vec<Vec<Fr>>,
}

impl Epochs {
    fn check(&self) -> Result<(), LayoutError> {
        if self.profile == Profile::Full || self.steps == 0 || self.subcircuits == 0 {
            return Err(
                "epochs in steps need the profile compress or sha256, at least one step of a \
                 subcircuit, and at least one subcircuit"
                    .into(),
            );
        }
        Ok(())
    }

    /// Carries out a witness.
    ///
    /// # Errors
    /// If it is of another profile, too long, or not one of an honest prover.
    pub fn run(&self, witness: &Witness) -> Result<Run, WitnessError> {
        let Witness { profile, epoch, root, chain, steps } = witness;
        // The types of the circuit hash with one profile, and keys are for one.
        if *profile != self.profile {
            let (found, expected) = (profile.name(), self.profile.name());
            return Err(WitnessError::Profile { found, expected });
        }
        let room = self.steps.saturating_mul(self.subcircuits);
        if steps.len() > room {
            return Err(WitnessError::Room { steps: steps.len(), room });
        }
        let mut machine = Machine::new(*profile, *root, *chain, *epoch);
        let mut numbered = steps.iter().enumerate();
        let mut run = Run { steps: Vec::new(), states: vec![list(&machine.state())] };
        for _ in 0..self.subcircuits {
            // Idle steps fill up the last subcircuits, so one layout proves any number of steps up to its
            // room.
            let mut values = vec![StepValues::IDLE; self.steps];
            for ((number, step), values) in numbered.by_ref().take(self.steps).zip(&mut values) {
                let failed = |why: StepError| WitnessError::Step { number, why: why.to_string() };
                *values = machine.apply(step).map_err(failed)?;
            }
            run.steps.push(values);
            run.states.push(list(&machine.state()));
        }
        match machine.is_between_epochs() && !steps.is_empty() {
            true => Ok(run),
            false => Err(WitnessError::Unfinished),
        }
    }
}

/// The offset of an epoch in the values of a state: root, chain, number.
const TIP: usize = 5 * STACK;

impl WiredCircuit for Epochs {
    type Input = Run;

    fn wire(&self, c: &mut Wires<Run>) -> Result<(), LayoutError> {
        self.check()?;
        let part = Steps { profile: self.profile, steps: self.steps };
        // The stack begins empty because it is read from this constant: a prover cannot begin with subtrees
        // of its own.
        let zero = c.constant(0u64);
        let mut next = 0..;
        let mut state = state_of(|| match next.next() {
            // Root, chain and number of the epoch before are the verifier's.
            Some(at) if at >= TIP => {
                let name = (at - TIP) as u64;
                c.public_input("before", name, move |run: &Run| run.value(0, at))
            }
            _ => zero,
        });
        for number in 1..=self.subcircuits {
            let mut next = 0..;
            let after = state_of(|| {
                let at = next.next().expect("the range has no end");
                let name = ((number - 1) * (TIP + 5) + at) as u64;
                // Every state follows from the input, so no subcircuit waits for another one.
                c.promise("state", name, move |run: &Run| run.value(number, at))
            });
            c.add_into(&part, state, after.clone(), move |run| {
                run.steps.get(number - 1).cloned().ok_or_else(|| OTHER.into())
            });
            state = after;
        }
        let State { stack, root, chain, epoch } = state;
        for (at, wire) in (0..).zip(root.into_iter().chain(chain).chain([epoch])) {
            c.output_at("after", at, wire);
        }
        // Nothing may be left on the stack: an epoch that has begun and not ended would be invisible in the
        // public values.
        c.add(&Edge, stack);
        Ok(())
    }
}

const OTHER: &str = "the run is of a circuit with another number of subcircuits";

impl Run {
    /// A value of a state.
    fn value(&self, state: usize, at: usize) -> Result<Fr, CircuitError> {
        let value = self.states.get(state).and_then(|state| state.get(at));
        value.copied().ok_or_else(|| OTHER.into())
    }
}

/// A state of wires, which are made in the order of a state's values.
fn state_of(mut wire: impl FnMut() -> Wire) -> State<Wire> {
    State::build(&State::slots(STACK).shape(), &mut wire)
}

impl NamedCircuit for Epochs {
    const NAME: &'static str = "epochs";
    const ABOUT: &'static str =
        "epochs of a key directory: every change inserted a key or raised its version by one";
    const INPUT: &'static str =
        "a witness of the directory's server, with the steps of some epochs";
    const PUBLIC: &'static str =
        "ROOT:CHAIN:EPOCH,ROOT:CHAIN:EPOCH before and after, digests as 64 hexadecimal digits";
    type Parameters = EpochsParameters;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "profile",
            help: "how the tree is hashed: compress or sha256; derived from the witness, if one is given",
            default: None,
        },
        Parameter {
            name: "steps",
            help: "steps of a subcircuit, each 53,743 constraints with compress and 92,175 with sha256",
            default: Some("19"),
        },
        Parameter {
            name: "subcircuits",
            help: "number of subcircuits with steps; derived from the witness, if one is given",
            default: None,
        },
    ];
    type Opened = Run;

    fn with(parameters: EpochsParameters) -> Result<Self, CircuitError> {
        let EpochsParameters { profile, steps, subcircuits } = parameters;
        let known = [Profile::Compress, Profile::Sha256];
        let profile = known.into_iter().find(|known| known.name() == profile).ok_or_else(|| {
            let why = format!("profile is '{profile}', expected compress or sha256");
            ParameterError::Invalid { circuit: Self::NAME, why }
        })?;
        let check = |name, value, range, text| {
            ParameterError::check_range(Self::NAME, name, value, range, text)
        };
        check("steps", steps, 1..=MAX_STEPS, "in 1..2^10")?;
        check("subcircuits", subcircuits, 1..=MAX_SUBCIRCUITS, "in 1..2^20")?;
        Ok(Self { profile, steps, subcircuits })
    }

    fn fit(parameters: &mut ParameterMap, input: &InputFile) -> Result<(), CircuitError> {
        let witness = read(input)?;
        let steps = parameters.get("steps").and_then(|value| value.as_u64()).unwrap_or(1).max(1);
        // A parameter that is not a number is refused when the circuit is created.
        let subcircuits = (witness.steps.len() as u64).div_ceil(steps).max(1);
        parameters.entry("subcircuits".to_owned()).or_insert_with(|| subcircuits.into());
        parameters.entry("profile".to_owned()).or_insert_with(|| witness.profile.name().into());
        Ok(())
    }

    fn family(parameters: &ParameterMap, bytes: u64) -> Result<Option<Family<Self>>, CircuitError> {
        let mut all = parameters.clone();
        let steps = all.get("steps").and_then(|value| value.as_u64()).unwrap_or(1).max(1);
        // A step has at least one byte.
        // So a file of this many bytes has no more steps than that.
        let largest = bytes.div_ceil(steps).clamp(1, MAX_SUBCIRCUITS as u64);
        let mut with = |subcircuits: u64| {
            all.insert("subcircuits".to_owned(), subcircuits.into());
            create::<Self>(&all, None).map(|(circuit, _)| circuit)
        };
        let instances = with(largest)?.instances();
        Ok(Some(Family { circuit: with(1)?, instances, open: &["subcircuits"] }))
    }

    fn subcircuits(&self) -> Option<usize> {
        Some(self.instances())
    }

    fn open(&self, input: &InputFile) -> Result<Run, CircuitError> {
        Ok(self.run(&read(input)?)?)
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(self.sample_witness().encode())
    }

    fn show(values: &[Fr]) -> Option<String> {
        Tip::show(values)
    }

    fn read(text: &str) -> Option<Result<Vec<Fr>, CircuitError>> {
        Some(Tip::read(text))
    }
}

fn read(input: &InputFile) -> Result<Witness, CircuitError> {
    Ok(Witness::decode(&input.read()?).map_err(WitnessError::Decode)?)
}

impl Epochs {
    /// The number of subcircuits, the edge included.
    fn instances(&self) -> usize {
        self.subcircuits + 1
    }

    /// A witness of epochs with one change each, which fill the circuit as far as they can.
    fn sample_witness(&self) -> Witness {
        let (room, mut tree) = (self.steps * self.subcircuits, Tree::new(self.profile));
        let (root, chain) = (tree.root(), [1; 32]);
        let mut witness =
            Witness { profile: self.profile, epoch: 0, root, chain, steps: Vec::new() };
        // The first epoch has two steps: one that inserts the only leaf, and the end. Later ones change that leaf. At most 2^29
        // of them, so its version does not end.
        for number in 0..room as u64 / 2 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            let change = Change { index: Index([0x5a; 16]), commitment: Commitment(digest) };
            witness.steps.extend(tree.steps(&[change]).expect("one change of a leaf is valid"));
            tree = tree.update(&[change]).expect("one change of a leaf is valid");
        }
        witness
    }
}
