//! Setup of a whole circuit: proving keys of all types, aggregation key, verifying key.

use crate::keys::{AggregationKey, KeyFileError, ProverKeys, Sections};
use crate::mirage::{
    Bases, ProvingKey, SharedSecrets, TypeError, TypeSecrets, check_secrets, check_type, setup_type,
};
use crate::protocol::key_sink::KeySink;
use crate::verifier::verifying_key::{Trust, VerifyingKey, VerifyingKeyError};
use ark_ff::Zero;
use hekaton_arith::{
    Fr, G1Point, G2Point, Group, Gt, fr_from_uniform, inner_product, pairing, powers,
};
use hekaton_circuit::prover::{R1cs, VariableLayout, Wiring, synthesize_r1cs};
use hekaton_circuit::{Circuit, LayoutError, Masking, StarError, SynthesizeError};
use std::convert::Infallible;
use zeroize::Zeroizing;

/// What a setup needs to know beside the circuit, each option with a default.
#[derive(Clone, Debug)]
#[must_use]
pub struct SetupOptions {
    pub(crate) circuit: String,
    /// JSON, or why the parameters can't be written as such
    pub(crate) parameters: Result<String, String>,
    pub(crate) zero_knowledge: bool,
    pub(crate) insecure_seed: Option<u64>,
}

impl SetupOptions {
    /// Zero knowledge, fresh secrets, no parameters. The circuit's name is kept in the keys.
    pub fn new(circuit: impl Into<String>) -> Self {
        let parameters = Ok("{}".to_owned());
        Self { circuit: circuit.into(), parameters, zero_knowledge: true, insecure_seed: None }
    }

    /// The circuit's parameters, which are kept in the keys as JSON. Default: an empty object.
    pub fn parameters(mut self, parameters: &impl serde::Serialize) -> Self {
        self.parameters = serde_json::to_string(parameters).map_err(|e| e.to_string());
        self
    }

    /// Whether proofs are zero-knowledge. Default: yes; a chain of mask wires hides each subcircuit's share of the memory
    /// check, for two slots a subcircuit. Without it proofs leak: a guess of the witness can be confirmed. The keys say so.
    pub fn zero_knowledge(mut self, zero_knowledge: bool) -> Self {
        self.zero_knowledge = zero_knowledge;
        self
    }

    /// **For tests only.** Derives the trapdoors from a seed, so that everybody who reads the seed can forge. Default:
    /// trapdoors from the operating system's randomness.
    pub fn insecure_seed(mut self, seed: u64) -> Self {
        self.insecure_seed = Some(seed);
        self
    }
}

/// Why a setup failed. `E` is the error of the [`KeySink`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError<E = Infallible> {
    /// The parameters can't be written as JSON.
    #[error("the circuit's parameters can't be written as JSON: {0}")]
    Parameters(String),
    /// The layout is wrong.
    #[error("layout: {0}")]
    Layout(#[from] LayoutError),
    /// The wiring is no set of stars.
    #[error("wiring: {0}")]
    Star(#[from] StarError),
    /// The gadgets failed.
    #[error(transparent)]
    Synthesize(#[from] SynthesizeError),
    /// A type would be unsound.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The verifying key would be unreadable.
    #[error("the verifying key can't be written: {0}")]
    VerifyingKey(#[from] VerifyingKeyError),
    /// The keys can't be built.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The keys can't be kept.
    #[error(transparent)]
    Sink(E),
    /// No randomness.
    #[error("the operating system gives no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

/// Draws the trapdoors; they are wiped when they are dropped.
enum Trapdoors {
    Fresh,
    Seeded(u64, u64),
}

impl Trapdoors {
    fn draw(&mut self) -> Result<Fr, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; 64]);
        match self {
            Self::Fresh => getrandom::fill(bytes.as_mut())?,
            Self::Seeded(seed, counter) => {
                *counter += 1;
                let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 insecure setup");
                hasher.update(&seed.to_le_bytes()).update(&counter.to_le_bytes());
                hasher.finalize_xof().fill(bytes.as_mut());
            }
        }
        Ok(fr_from_uniform(&bytes))
    }
}

/// All secrets of a setup.
pub(crate) struct Secrets {
    pub(crate) shared: SharedSecrets,
    pub(crate) types: Vec<TypeSecrets>,
    pub(crate) phi: Zeroizing<Fr>,
    pub(crate) psi: Zeroizing<Fr>,
}

impl Secrets {
    pub(crate) fn draw(types: usize, insecure_seed: Option<u64>) -> Result<Self, getrandom::Error> {
        let mut source = insecure_seed.map_or(Trapdoors::Fresh, |seed| Trapdoors::Seeded(seed, 0));
        let mut draw = || source.draw();
        let shared = SharedSecrets {
            alpha: draw()?,
            beta: draw()?,
            gamma: draw()?,
            tau: draw()?,
            kappa: draw()?,
        };
        let (phi, psi) = (Zeroizing::new(draw()?), Zeroizing::new(draw()?));
        let mut list = Vec::with_capacity(types);
        for _ in 0..types {
            list.push(TypeSecrets { delta: draw()?, eta: draw()? });
        }
        Ok(Self { shared, types: list, phi, psi })
    }

    fn check(&self) -> Result<(), TypeError> {
        let s = &self.shared;
        let delta_eta: Zeroizing<Vec<Fr>> =
            Zeroizing::new(self.types.iter().flat_map(|t| [t.delta, t.eta]).collect());
        check_secrets(&[s.alpha, s.beta, s.tau, s.kappa, *self.phi, *self.psi], &delta_eta, s.gamma)
    }
}

/// Runs the setup of a circuit and returns all keys, in memory. See [`setup_into`].
///
/// # Errors
/// When the layout, the wiring or a type breaks a rule that soundness needs.
pub fn setup<C: Circuit>(circuit: &C, options: &SetupOptions) -> Result<ProverKeys, SetupError> {
    let mut types = Vec::new();
    let mut keep = |key, _| {
        types.push(key);
        Ok(())
    };
    let (aggregation, verifying) = setup_circuit(circuit, options, &mut keep, &mut |_| {})?;
    Ok(ProverKeys { verifying, aggregation, types })
}

/// Runs the setup of a circuit and passes each key to `sink` as soon as it is made, so that memory is bounded by the
/// largest type. `progress` is called with what is done next.
///
/// This is a *local* setup: it draws the trapdoors itself and wipes them, but anyone who runs it could keep them and
/// forge proofs. The keys say so.
///
/// Threads: those of the current rayon pool.
///
/// # Errors
/// When the layout, the wiring or a type breaks a rule that soundness needs, or the sink can't keep a key.
pub fn setup_into<C: Circuit, S: KeySink>(
    circuit: &C,
    options: &SetupOptions,
    sink: &mut S,
    mut progress: impl FnMut(&str),
) -> Result<VerifyingKey, SetupError<S::Error>> {
    let mut keep = |key, instances| sink.proving_key(key, instances).map_err(SetupError::Sink);
    let (aggregation, verifying) = setup_circuit(circuit, options, &mut keep, &mut progress)?;
    sink.finish(aggregation, &verifying).map_err(SetupError::Sink)?;
    Ok(verifying)
}

/// Takes the proving key of a type and its number of instances.
type Keep<'a, E> = dyn FnMut(ProvingKey, usize) -> Result<(), SetupError<E>> + 'a;

fn setup_circuit<C: Circuit, E>(
    circuit: &C,
    options: &SetupOptions,
    keep: &mut Keep<'_, E>,
    progress: &mut dyn FnMut(&str),
) -> Result<(AggregationKey, VerifyingKey), SetupError<E>> {
    let layout = circuit.layout()?;
    let wiring = layout.wiring(Masking::new(options.zero_knowledge));
    let secrets = Secrets::draw(wiring.types.len(), options.insecure_seed)?;
    let types = layout.type_ids().map(|kind| {
        let variables = wiring.variables(kind.index() as u32);
        Ok(synthesize_r1cs(circuit, kind, layout.type_name(kind), variables)?)
    });
    setup_wiring(&wiring, types, &secrets, options, keep, progress)
}

/// Setup from a wiring and the R1CS of its types; all asserts are here.
pub(crate) fn setup_wiring<E>(
    wiring: &Wiring,
    types: impl Iterator<Item = Result<R1cs, SetupError<E>>>,
    secrets: &Secrets,
    options: &SetupOptions,
    keep: &mut Keep<'_, E>,
    progress: &mut dyn FnMut(&str),
) -> Result<(AggregationKey, VerifyingKey), SetupError<E>> {
    let parameters = options.parameters.clone().map_err(SetupError::Parameters)?;
    wiring.check_stars()?;
    secrets.check()?;
    let n = wiring.instances();
    let padded = n.next_power_of_two();
    let bases = Bases::new(1 << 17);
    let mut logs: Vec<(Zeroizing<Vec<Fr>>, Fr)> = Vec::new();
    let mut elements: Vec<[G2Point; 3]> = Vec::new();
    let mut counts = vec![0usize; wiring.types.len()];
    wiring.type_of.iter().for_each(|kind| counts[*kind as usize] += 1);
    for ((r1cs, kind), (spec, count)) in
        types.zip(&secrets.types).zip(wiring.types.iter().zip(counts))
    {
        let r1cs = r1cs?;
        check_type(&r1cs)?;
        progress(&format!("type '{}': {} constraints", r1cs.name, r1cs.constraints()));
        let output = setup_type(&r1cs, &secrets.shared, kind, &bases)?;
        keep(ProvingKey::new(&spec.name, output.sections)?, count)?;
        elements.push([bases.one_g2(kind.delta), bases.one_g2(kind.eta), output.theta_2]);
        logs.push((Zeroizing::new(output.ic), output.theta));
    }

    progress(&format!("aggregation key for {n} subcircuits"));
    // S_i = St_i + g Sg_c + b Sb_i with St_i = IC_one + sum mu_ij IC_mu_j, Sb_i = sum a_ij IC_x_j
    let mut st = Zeroizing::new(Vec::with_capacity(n));
    let mut sb = Zeroizing::new(Vec::with_capacity(n));
    for (kind, slots) in wiring.by_instance() {
        let (ic, layout) = (&logs[kind as usize].0, wiring.variables(kind));
        let (addresses, multiplicities) = Wiring::preprocessed(slots);
        sb.push(inner_product(&addresses, &ic[layout.addresses()]));
        st.push(
            ic[VariableLayout::ONE] + inner_product(&multiplicities, &ic[layout.multiplicities()]),
        );
    }
    let g =
        |(kind, (ic, _)): (usize, &(Zeroizing<Vec<Fr>>, Fr))| ic[wiring.variables(kind as u32).g()];
    let sg: Zeroizing<Vec<Fr>> = Zeroizing::new(logs.iter().enumerate().map(g).collect());
    let phi = Zeroizing::new(powers(*secrets.phi, 2 * padded - 1));
    let psi = Zeroizing::new(powers(*secrets.psi, 2 * padded - 1));
    let mut sections = Sections::new(AggregationKey::KIND);
    sections.push("phi", bases.g1(&phi));
    sections.push("psi", bases.g2(&psi));
    sections.push("st", bases.g1(&st));
    sections.push("sb", bases.g1(&sb));
    sections.push("sg", bases.g1(&sg));
    sections.push("type_of", wiring.type_of.clone());
    sections.push("gamma", vec![bases.one_g2(secrets.shared.gamma)]);
    sections.push("elements", elements);
    let aggregation = AggregationKey::new(sections, n, wiring.types.len())?;

    // The key's commitments, in the exponent: v_i = psi^2i, w_i = phi^2i.
    let one = pairing(&G1Point::generator(), &G2Point::generator());
    let even = |powers: &[Fr]| {
        Zeroizing::new(powers.iter().copied().step_by(2).take(n).collect::<Vec<_>>())
    };
    let (v, w) = (even(&psi), even(&phi));
    let commit = |key: &[Fr], values: &dyn Fn(usize) -> Fr| -> Gt {
        one.mul(&key.iter().enumerate().fold(Fr::zero(), |sum, (i, k)| sum + *k * values(i)))
    };
    let kind = |i: usize| wiring.type_of[i] as usize;
    let shared = &secrets.shared;
    let verifying = VerifyingKey {
        circuit: options.circuit.clone(),
        parameters,
        trust: if options.insecure_seed.is_some() {
            Trust::InsecureSeed
        } else {
            Trust::SingleParty
        },
        zero_knowledge: wiring.masking.is_masked(),
        instances: n as u64,
        types: wiring.types.len() as u32,
        type_map: wiring.type_map_digest(),
        layout: wiring.digest(),
        public: wiring.public.clone(),
        cm_st: commit(&v, &|i| st[i]),
        cm_sg: commit(&v, &|i| sg[kind(i)]),
        cm_sb: commit(&v, &|i| sb[i]),
        cm_gamma: commit(&w, &|_| shared.gamma),
        cm_delta: commit(&w, &|i| secrets.types[kind(i)].delta),
        cm_eta: commit(&w, &|i| secrets.types[kind(i)].eta),
        cm_theta: commit(&w, &|i| logs[kind(i)].1),
        alpha_beta: one.mul(&(shared.alpha * shared.beta)),
        k: bases.one_g1(shared.kappa),
        psi_1: bases.one_g1(*secrets.psi),
        phi_2: bases.one_g2(*secrets.phi),
    };
    // What the reader would refuse must not be written: too many public wires, too long a name.
    VerifyingKey::from_bytes(&verifying.to_bytes())?;
    Ok((aggregation, verifying))
}
