//! Setup of a whole circuit: proving keys of all types, aggregation key, verifying key.

use crate::circuit::wiring::Wiring;
use crate::circuit::{Circuit, LayoutError, R1cs, StarError, SynthesizeError, synthesize_r1cs};
use crate::keys::sections::Sections;
use crate::keys::{AggregationKey, KeyDirectoryError, KeyFileError, KeySink, Manifest, TypeEntry};
use crate::mirage::{ProvingKey, SharedSecrets, TypeError, TypeSecrets, check_secrets, check_type, setup_type};
use crate::verifying_key::{Trust, VerifyingKey, VerifyingKeyError};
use ark_ff::Zero;
use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, fr_from_uniform, inner_product, pairing, powers};
use zeroize::Zeroizing;

/// What a setup needs to know beside the circuit, each option with a default.
#[derive(Clone, Debug)]
#[must_use]
pub struct SetupOptions {
    pub(crate) circuit: String,
    pub(crate) parameters: String,
    pub(crate) zero_knowledge: bool,
    pub(crate) insecure_seed: Option<u64>,
}

impl SetupOptions {
    /// Zero knowledge, fresh secrets. The circuit's name and its parameters (JSON) are kept in the keys.
    pub fn new(circuit: impl Into<String>, parameters: impl Into<String>) -> Self {
        Self { circuit: circuit.into(), parameters: parameters.into(), zero_knowledge: true, insecure_seed: None }
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

/// Why a setup failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
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
    /// The keys can't be kept.
    #[error(transparent)]
    Keys(#[from] KeyDirectoryError),
    /// No randomness.
    #[error("the operating system gives no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

impl From<KeyFileError> for SetupError {
    fn from(e: KeyFileError) -> Self {
        Self::Keys(e.into())
    }
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
        let shared = SharedSecrets { alpha: draw()?, beta: draw()?, gamma: draw()?, tau: draw()?, kappa: draw()? };
        let (phi, psi) = (Zeroizing::new(draw()?), Zeroizing::new(draw()?));
        let mut list = Vec::with_capacity(types);
        for _ in 0..types {
            list.push(TypeSecrets { delta: draw()?, eta: draw()? });
        }
        Ok(Self { shared, types: list, phi, psi })
    }

    fn check(&self) -> Result<(), TypeError> {
        let s = &self.shared;
        let delta_eta: Zeroizing<Vec<Fr>> = Zeroizing::new(self.types.iter().flat_map(|t| [t.delta, t.eta]).collect());
        check_secrets(&[s.alpha, s.beta, s.tau, s.kappa, *self.phi, *self.psi], &delta_eta, s.gamma)
    }
}

/// Runs the setup of a circuit and gives all keys to `sink`, type after type: memory is bounded by the largest type.
///
/// This is a *local* setup: it draws the trapdoors itself and wipes them, but whoever runs it could keep them and forge
/// proofs. The keys say so.
///
/// Threads: those of the current rayon pool.
///
/// # Errors
/// When the layout, the wiring or a type breaks a rule that soundness needs, or keys can't be written.
pub fn setup<C: Circuit>(
    circuit: &C,
    options: &SetupOptions,
    sink: &mut dyn KeySink,
    mut progress: impl FnMut(&str),
) -> Result<VerifyingKey, SetupError> {
    let layout = circuit.layout()?;
    let wiring = layout.wiring(options.zero_knowledge);
    let masks = if options.zero_knowledge { 2 } else { 0 };
    let secrets = Secrets::draw(wiring.types.len(), options.insecure_seed)?;
    let synthesize = |kind: crate::circuit::TypeId| {
        let spec = &wiring.types[kind.index()];
        synthesize_r1cs(circuit, kind, &spec.name, spec.slots, masks)
    };
    let mut kinds = layout.type_ids();
    let types = std::iter::from_fn(|| Some(synthesize(kinds.next()?).map_err(SetupError::from)));
    setup_wiring(&wiring, types, &secrets, options, sink, &mut progress)
}

/// Setup from a wiring and the R1CS of its types; all asserts are here.
pub(crate) fn setup_wiring(
    wiring: &Wiring,
    types: impl Iterator<Item = Result<R1cs, SetupError>>,
    secrets: &Secrets,
    options: &SetupOptions,
    sink: &mut dyn KeySink,
    progress: &mut dyn FnMut(&str),
) -> Result<VerifyingKey, SetupError> {
    wiring.check_stars()?;
    secrets.check()?;
    let n = wiring.instances();
    let padded = n.next_power_of_two();
    let bases = crate::mirage::Bases::new(1 << 17);
    let mut entries = Vec::new();
    let mut logs: Vec<(Zeroizing<Vec<Fr>>, Fr)> = Vec::new();
    let mut elements: Vec<[G2Point; 3]> = Vec::new();
    let mut counts = vec![0usize; wiring.types.len()];
    wiring.type_of.iter().for_each(|kind| counts[*kind as usize] += 1);
    for ((r1cs, kind), (spec, count)) in types.zip(&secrets.types).zip(wiring.types.iter().zip(counts)) {
        let r1cs = r1cs?;
        check_type(&r1cs)?;
        progress(&format!("type '{}': {} constraints", r1cs.name, r1cs.constraints()));
        let output = setup_type(&r1cs, &secrets.shared, kind, &bases)?;
        let constraints = output.constraints;
        let (digest, bytes) = sink.proving_key(&spec.name, ProvingKey::new(&spec.name, output.sections)?)?;
        entries.push(TypeEntry {
            name: spec.name.clone(),
            slots: spec.slots,
            constraints,
            instances: count,
            bytes,
            digest: hex::encode(digest),
        });
        elements.push([bases.one_g2(kind.delta), bases.one_g2(kind.eta), output.theta_2]);
        logs.push((Zeroizing::new(output.ic), output.theta));
    }

    progress(&format!("aggregation key for {n} subcircuits"));
    // S_i = St_i + g Sg_c + b Sb_i with St_i = IC_one + sum mu_ij IC_mu_j, Sb_i = sum a_ij IC_x_j
    let mut st = Zeroizing::new(Vec::with_capacity(n));
    let mut sb = Zeroizing::new(Vec::with_capacity(n));
    for (kind, slots) in wiring.by_instance() {
        let (ic, s) = (&logs[kind as usize].0, slots.len());
        let (addresses, multiplicities) = Wiring::preprocessed(slots);
        sb.push(inner_product(&addresses, &ic[2..2 + s]));
        st.push(ic[0] + inner_product(&multiplicities, &ic[2 + s..]));
    }
    let sg: Zeroizing<Vec<Fr>> = Zeroizing::new(logs.iter().map(|(ic, _)| ic[1]).collect());
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
    let even = |powers: &[Fr]| Zeroizing::new(powers.iter().copied().step_by(2).take(n).collect::<Vec<_>>());
    let (v, w) = (even(&psi), even(&phi));
    let commit = |key: &[Fr], values: &dyn Fn(usize) -> Fr| -> Gt {
        one.mul(&key.iter().enumerate().fold(Fr::zero(), |sum, (i, k)| sum + *k * values(i)))
    };
    let kind = |i: usize| wiring.type_of[i] as usize;
    let shared = &secrets.shared;
    let verifying = VerifyingKey {
        circuit: options.circuit.clone(),
        parameters: options.parameters.clone(),
        trust: if options.insecure_seed.is_some() { Trust::InsecureSeed } else { Trust::SingleParty },
        zero_knowledge: wiring.masked,
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
    let manifest = Manifest::new(&verifying, entries);
    sink.finish(aggregation, verifying.clone(), manifest)?;
    Ok(verifying)
}
