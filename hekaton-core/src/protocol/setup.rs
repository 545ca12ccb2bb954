//! Setup of a complete circuit: the proving keys of all types, the aggregation key, and the
//! verifying key.

use crate::keys::{AggregationKey, KeyFileError, ProverKeys, Sections};
use crate::mirage::{
    Bases, ProvingKey, SharedSecrets, TypeError, TypeSecrets, check_secrets, setup_type,
    wipe_stacks,
};
use crate::pool::LocalEngine;
use crate::protocol::key_sink::KeySink;
use crate::verifier::verifying_key::{KeyType, Trust, VerifyingKey, VerifyingKeyError};
use ark_ff::Zero;
use hekaton_arith::{
    Fr, G1Point, G2Point, Group, Gt, fr_from_uniform, inner_product, pairing, powers,
};
use hekaton_circuit::prover::{VariableLayout, Wiring};
use hekaton_circuit::{
    Circuit, LayoutError, Masking, PreparedCircuit, Preprocessed, R1cs, StarError, SynthesizeError,
};
use std::convert::Infallible;
use zeroize::Zeroizing;

/// Options of [`setup`], each with a default except the name of the circuit.
#[derive(Clone, Debug)]
#[must_use]
pub struct SetupOptions {
    pub(crate) circuit: String,
    /// JSON, or why the parameters cannot be written as JSON.
    pub(crate) parameters: Result<String, String>,
    pub(crate) zero_knowledge: bool,
    pub(crate) insecure_seed: Option<u64>,
}

impl SetupOptions {
    /// The defaults: zero knowledge, fresh secrets, no parameters. The keys contain the name of the
    /// circuit.
    pub fn new(circuit: impl Into<String>) -> Self {
        let parameters = Ok("{}".to_owned());
        Self { circuit: circuit.into(), parameters, zero_knowledge: true, insecure_seed: None }
    }

    /// Sets the parameters of the circuit, which the keys contain as JSON. Default: an empty
    /// object.
    pub fn parameters(mut self, parameters: &impl serde::Serialize) -> Self {
        self.parameters = serde_json::to_string(parameters).map_err(|e| e.to_string());
        self
    }

    /// Sets whether proofs are zero-knowledge. Default: yes; a chain of mask wires hides each
    /// subcircuit's term of the ledger sum, at the cost of two slots per subcircuit
    /// (spec: zero-knowledge#masks). Without masks, proofs leak: a guess of the witness can be
    /// confirmed. The keys record the mode.
    pub fn zero_knowledge(mut self, zero_knowledge: bool) -> Self {
        self.zero_knowledge = zero_knowledge;
        self
    }

    /// **For tests only.** Derives the trapdoors from a seed, so that everyone who knows the seed
    /// can forge proofs. Default: trapdoors from the randomness of the operating system.
    pub fn insecure_seed(mut self, seed: u64) -> Self {
        self.insecure_seed = Some(seed);
        self
    }
}

impl SetupOptions {
    /// The party that keys made with these options make their users trust.
    pub(super) fn trust(&self) -> Trust {
        match self.insecure_seed {
            Some(_) => Trust::InsecureSeed,
            None => Trust::SingleParty,
        }
    }
}

/// The error of a setup. `E` is the error of the [`KeySink`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError<E = Infallible> {
    /// The parameters cannot be written as JSON.
    #[error("cannot write the circuit's parameters as JSON: {0}")]
    Parameters(String),
    /// The layout is invalid.
    #[error("layout: {0}")]
    Layout(LayoutError),
    /// The wiring is not a set of stars: one writer and its readers per address.
    #[error("wiring: {0}")]
    Star(StarError),
    /// The synthesis of a type failed.
    #[error(transparent)]
    Synthesize(#[from] SynthesizeError),
    /// A type would be unsound.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The verifying key would be refused when it is read.
    #[error("cannot write the verifying key: {0}")]
    VerifyingKey(VerifyingKeyError),
    /// The keys cannot be built.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The keys cannot be stored.
    #[error(transparent)]
    Sink(E),
    /// A family needs room for at least one subcircuit, within the maximum.
    #[error("a family for {instances} subcircuits: expected 1 to 2^32")]
    FamilySize {
        /// The number of subcircuits.
        instances: usize,
    },
    /// The operating system provided no randomness.
    #[error("cannot get randomness from the operating system: {0}")]
    Randomness(getrandom::Error),
}

impl<E> From<LayoutError> for SetupError<E> {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl<E> From<StarError> for SetupError<E> {
    fn from(error: StarError) -> Self {
        Self::Star(error)
    }
}

impl<E> From<VerifyingKeyError> for SetupError<E> {
    fn from(error: VerifyingKeyError) -> Self {
        Self::VerifyingKey(error)
    }
}

impl<E> From<getrandom::Error> for SetupError<E> {
    fn from(error: getrandom::Error) -> Self {
        Self::Randomness(error)
    }
}

/// The source of the trapdoors.
enum Trapdoors {
    Fresh,
    Seeded(u64, u64),
}

impl Trapdoors {
    fn draw(&mut self) -> Result<Fr, getrandom::Error> {
        // 64 bytes are reduced mod r, so the bias is negligible; the bytes are wiped.
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

/// All trapdoors of a setup, wiped on drop.
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

    /// Checks that no trapdoor is zero and that no delta or eta is shared (spec: mirage#asserts).
    pub(crate) fn check(&self) -> Result<(), TypeError> {
        let s = &self.shared;
        let delta_eta: Zeroizing<Vec<Fr>> =
            Zeroizing::new(self.types.iter().flat_map(|t| [t.delta, t.eta]).collect());
        check_secrets(&[s.alpha, s.beta, s.tau, s.kappa, *self.phi, *self.psi], &delta_eta, s.gamma)
    }
}

/// Runs the setup of a circuit on the engine's threads and returns all keys, in memory. See [`setup_into`].
///
/// # Errors
/// When the layout, the wiring or a type violates a rule that soundness depends on.
pub fn setup<C: Circuit>(
    circuit: &C,
    engine: &LocalEngine,
    options: &SetupOptions,
) -> Result<ProverKeys, SetupError> {
    let circuit = PreparedCircuit::new(circuit)?;
    engine.install(|| {
        let keys = setup_in_memory(&circuit, options);
        wipe_stacks();
        keys
    })
}

#[inline(never)]
fn setup_in_memory(
    circuit: &PreparedCircuit<'_>,
    options: &SetupOptions,
) -> Result<ProverKeys, SetupError> {
    let mut types = Vec::new();
    let mut keep = |key, _| {
        types.push(key);
        Ok(())
    };
    let (aggregation, verifying) = setup_circuit(circuit, options, &mut keep, &mut |_| {})?;
    Ok(ProverKeys { verifying, aggregation, types })
}

/// Runs the setup of a circuit on the engine's threads and passes each key to `sink` as soon as it
/// is made, so that memory is bounded by the largest type. `progress` is called with a description
/// of each step before it starts.
///
/// This is a *local* setup: it draws the trapdoors itself and wipes them, but its operator could
/// keep them and forge proofs. The keys record that (spec: soundness#trusted).
///
/// # Errors
/// When the layout, the wiring or a type violates a rule that soundness depends on, or the sink
/// cannot store a key.
pub fn setup_into<C: Circuit, S: KeySink<Error: Send> + Send>(
    circuit: &C,
    engine: &LocalEngine,
    options: &SetupOptions,
    sink: &mut S,
    progress: impl FnMut(&str) + Send,
) -> Result<VerifyingKey, SetupError<S::Error>> {
    setup_prepared(&PreparedCircuit::new(circuit)?, engine, options, sink, progress)
}

/// [`setup_into`] of a prepared circuit.
///
/// # Errors
/// As for [`setup_into`].
pub fn setup_prepared<S: KeySink<Error: Send> + Send>(
    circuit: &PreparedCircuit<'_>,
    engine: &LocalEngine,
    options: &SetupOptions,
    sink: &mut S,
    mut progress: impl FnMut(&str) + Send,
) -> Result<VerifyingKey, SetupError<S::Error>> {
    let (aggregation, verifying) = engine.install(|| {
        let mut keep = |key, instances| sink.proving_key(key, instances).map_err(SetupError::Sink);
        let keys = setup_circuit(circuit, options, &mut keep, &mut progress);
        wipe_stacks();
        keys
    })?;
    sink.finish(aggregation, &verifying).map_err(SetupError::Sink)?;
    Ok(verifying)
}

/// Takes the proving key of a type, and the number of its instances.
pub(super) type Keep<'a, E> = dyn FnMut(ProvingKey, usize) -> Result<(), SetupError<E>> + 'a;

#[inline(never)]
fn setup_circuit<E>(
    circuit: &PreparedCircuit<'_>,
    options: &SetupOptions,
    keep: &mut Keep<'_, E>,
    progress: &mut dyn FnMut(&str),
) -> Result<(AggregationKey, VerifyingKey), SetupError<E>> {
    let masking = Masking::new(options.zero_knowledge);
    let wiring = circuit.layout().wiring(masking);
    let secrets = Secrets::draw(wiring.types.len(), options.insecure_seed)?;
    wipe_stacks();
    let types = circuit.layout().type_ids().map(|kind| Ok(circuit.r1cs(kind, masking)?));
    setup_wiring(&wiring, types, &secrets, options, keep, progress)
}

/// Runs the setup of a wiring and the R1CS of its types. All assertions that soundness needs are in
/// here (spec: memory-check#asserts, mirage#asserts).
pub(crate) fn setup_wiring<E>(
    wiring: &Wiring,
    types: impl Iterator<Item = Result<R1cs, SetupError<E>>>,
    secrets: &Secrets,
    options: &SetupOptions,
    keep: &mut Keep<'_, E>,
    progress: &mut dyn FnMut(&str),
) -> Result<(AggregationKey, VerifyingKey), SetupError<E>> {
    let parameters = options.parameters.clone().map_err(SetupError::Parameters)?;
    // No zero-sum proper subset at an address, or two values could live there
    // (spec: memory-check#stars).
    wiring.check_stars()?;
    // One shared delta or eta breaks soundness completely (spec: mirage#asserts). Both checks
    // precede the first key that is kept.
    secrets.check()?;
    let bases = Bases::new(1 << 17);
    let (logs, elements) = setup_types(wiring, types, secrets, &bases, keep, progress)?;
    progress(&format!("aggregation key for {} subcircuits", wiring.instances()));
    let exponents = Exponents::new(wiring, secrets, logs);
    let aggregation = exponents.aggregation_key(elements, &bases)?;
    let verifying = exponents.verifying_key(options, parameters, &bases);
    wipe_stacks();
    // Never write a key that the reader refuses: too many public wires, or too long a name
    // (spec: verifier#key).
    VerifyingKey::from_bytes(&verifying.to_bytes())?;
    Ok((aggregation, verifying))
}

/// The secrets of a type from which the verifying key is made: discrete logarithms, which are
/// trapdoors and are wiped on drop, and the digest of its R1CS.
pub(super) struct TypeLogs {
    /// The discrete logarithms of IC by variable.
    pub(super) ic: Zeroizing<Vec<Fr>>,
    /// The discrete logarithm of Theta, which is as good as one of tau (spec: mirage#queries).
    theta: Zeroizing<Fr>,
    pub(super) r1cs: [u8; 32],
    /// The order of the variables.
    pub(super) layout: VariableLayout,
}

/// The logarithms of all types, and delta, eta and Theta of each type in G2.
pub(super) type TypeOutputs = (Vec<TypeLogs>, Vec<[G2Point; 3]>);

/// Computes the proving keys and passes each on before the next one, so that memory is bounded by
/// the largest type.
pub(super) fn setup_types<E>(
    wiring: &Wiring,
    types: impl Iterator<Item = Result<R1cs, SetupError<E>>>,
    secrets: &Secrets,
    bases: &Bases,
    keep: &mut Keep<'_, E>,
    progress: &mut dyn FnMut(&str),
) -> Result<TypeOutputs, SetupError<E>> {
    // With room for all: growing would leave copies of the logarithms in freed memory.
    let mut logs: Vec<TypeLogs> = Vec::with_capacity(wiring.types.len());
    let mut elements: Vec<[G2Point; 3]> = Vec::new();
    let mut counts = vec![0usize; wiring.types.len()];
    wiring.type_of.iter().for_each(|kind| counts[*kind as usize] += 1);
    for ((synthesized, kind), (spec, count)) in
        types.zip(&secrets.types).zip(wiring.types.iter().zip(counts))
    {
        let r1cs = synthesized?;
        // spec: memory-check#asserts, memory-check#rank, buses#asserts
        wiring.check_type(logs.len(), &r1cs)?;
        progress(&format!("type '{}': {} constraints", r1cs.name, r1cs.constraints()));
        let (digest, layout) = (r1cs.digest(), r1cs.layout);
        let output = setup_type(r1cs, &secrets.shared, kind, bases)?;
        elements.push([bases.one_g2(kind.delta), bases.one_g2(kind.eta), output.theta_2]);
        // The proving key lives as long as its user wants.
        wipe_stacks();
        keep(ProvingKey::new(&spec.name, output.sections)?, count)?;
        logs.push(TypeLogs { ic: output.ic, theta: output.theta, r1cs: digest, layout });
    }
    Ok((logs, elements))
}

/// The discrete logarithms that aggregation key and verifying key are made of. They are trapdoors,
/// and are wiped on drop.
struct Exponents<'a> {
    wiring: &'a Wiring,
    secrets: &'a Secrets,
    logs: Vec<TypeLogs>,
    st: Zeroizing<Vec<Fr>>,
    sb: Zeroizing<Vec<Fr>>,
    sg: Zeroizing<Vec<Fr>>,
    /// In circuits with buses ST of each type and SV of each instance.
    buses: Option<[Zeroizing<Vec<Fr>>; 2]>,
    phi: Zeroizing<Vec<Fr>>,
    psi: Zeroizing<Vec<Fr>>,
}

impl<'a> Exponents<'a> {
    /// Computes what both keys need once the types are done.
    fn new(wiring: &'a Wiring, secrets: &'a Secrets, logs: Vec<TypeLogs>) -> Self {
        let n = wiring.instances();
        let padded = n.next_power_of_two();
        // Addresses and multiplicities are public inputs that never change, so each instance has
        // one element S_i that is affine in the challenges (spec: memory-check#preprocessed):
        // S_i = St_i + g Sg_c + b Sb_i
        // St_i = IC_one + sum mu_ij IC_mu_j
        // Sb_i = sum a_ij IC_x_j
        // and with parameters p and pairs (k, v), which are constants of the instance, too
        // (spec: buses#preprocessed):
        // St_i += sum p IC_p + sum k IC_kv
        // SV_i = IC_bV + sum v IC_kv
        let mut st = Zeroizing::new(Vec::with_capacity(n));
        let mut sb = Zeroizing::new(Vec::with_capacity(n));
        let mut sv = Zeroizing::new(Vec::with_capacity(n));
        for (kind, slots, Preprocessed { parameters, pairs, .. }) in
            wiring.preprocessed_by_instance()
        {
            let TypeLogs { ic, layout, .. } = &logs[kind as usize];
            let (addresses, multiplicities) = Wiring::preprocessed(slots);
            let [keys, values] = [0, 1].map(|at| pairs.iter().map(|p| p[at]).collect::<Vec<_>>());
            sb.push(inner_product(&addresses, &ic[layout.addresses()]));
            st.push(
                ic[VariableLayout::ONE]
                    + inner_product(&multiplicities, &ic[layout.multiplicities()])
                    + inner_product(parameters, &ic[layout.parameters()])
                    + inner_product(&keys, &ic[layout.pairs()]),
            );
            if let Some([_, b_v]) = layout.bus_challenges() {
                sv.push(ic[b_v] + inner_product(&values, &ic[layout.pairs()]));
            }
        }
        let per_type = |variable: &dyn Fn(&VariableLayout) -> Option<usize>| {
            let mut list = Zeroizing::new(Vec::with_capacity(logs.len()));
            list.extend(logs.iter().filter_map(|logs| Some(logs.ic[variable(&logs.layout)?])));
            list
        };
        let sg = per_type(&|layout| Some(layout.g()));
        let stag = per_type(&|layout| Some(layout.bus_challenges()?[0]));
        let buses = (!wiring.buses.is_empty()).then_some([stag, sv]);
        // The even powers are the commitment keys; the openings need all of them up to 2N - 2
        // (spec: aggregation#srs, aggregation#quotients).
        let phi = Zeroizing::new(powers(*secrets.phi, 2 * padded - 1));
        let psi = Zeroizing::new(powers(*secrets.psi, 2 * padded - 1));
        Self { wiring, secrets, logs, st, sb, sg, buses, phi, psi }
    }

    /// The aggregation key, whose constructor checks the lengths of its sections.
    fn aggregation_key(
        &self,
        elements: Vec<[G2Point; 3]>,
        bases: &Bases,
    ) -> Result<AggregationKey, KeyFileError> {
        let wiring = self.wiring;
        let mut sections = Sections::new(AggregationKey::KIND);
        sections.push("phi", bases.g1(&self.phi));
        sections.push("psi", bases.g2(&self.psi));
        sections.push("st", bases.g1(&self.st));
        sections.push("sb", bases.g1(&self.sb));
        sections.push("sg", bases.g1(&self.sg));
        if let Some([tags, values]) = &self.buses {
            sections.push("stag", bases.g1(tags));
            sections.push("sv", bases.g1(values));
        }
        sections.push("type_of", wiring.type_of.clone());
        sections.push("gamma", vec![bases.one_g2(self.secrets.shared.gamma)]);
        sections.push("elements", elements);
        AggregationKey::new(sections, wiring.instances(), wiring.types.len())
    }

    /// The verifying key. Its commitments to all that is fixed are computed in the exponent.
    fn verifying_key(
        &self,
        options: &SetupOptions,
        parameters: String,
        bases: &Bases,
    ) -> VerifyingKey {
        let Self { wiring, secrets, logs, st, sb, sg, .. } = self;
        let n = wiring.instances();
        let one = pairing(&G1Point::generator(), &G2Point::generator());
        // v_i = psi^2i and w_i = phi^2i, over n and not N: pads are the identity in all vectors of
        // the key (spec: aggregation#srs, aggregation#padding).
        let even = |powers: &[Fr]| {
            let mut even = Zeroizing::new(Vec::with_capacity(n));
            even.extend(powers.iter().copied().step_by(2).take(n));
            even
        };
        let (v, w) = (even(&self.psi), even(&self.phi));
        let commit = |key: &[Fr], values: &dyn Fn(usize) -> Fr| -> Gt {
            one.mul(&key.iter().enumerate().fold(Fr::zero(), |sum, (i, k)| sum + *k * values(i)))
        };
        let kind = |i: usize| wiring.type_of[i] as usize;
        let shared = &secrets.shared;
        VerifyingKey {
            circuit: options.circuit.clone(),
            parameters,
            trust: options.trust(),
            zero_knowledge: wiring.masking.is_masked(),
            instances: n as u64,
            types: (wiring.types.iter().zip(logs))
                .map(|(kind, logs)| KeyType { name: kind.name.clone(), r1cs: logs.r1cs })
                .collect(),
            type_map: wiring.type_map_digest(),
            layout: wiring.digest(),
            family: None,
            public: wiring.public.clone(),
            constants: wiring.constants.clone(),
            cm_st: commit(&v, &|i| st[i]),
            cm_sg: commit(&v, &|i| sg[kind(i)]),
            cm_sb: commit(&v, &|i| sb[i]),
            buses: self
                .buses
                .as_ref()
                .map(|[tags, values]| [commit(&v, &|i| tags[kind(i)]), commit(&v, &|i| values[i])])
                .map(Box::new),
            cm_gamma: commit(&w, &|_| shared.gamma),
            cm_delta: commit(&w, &|i| secrets.types[kind(i)].delta),
            cm_eta: commit(&w, &|i| secrets.types[kind(i)].eta),
            cm_theta: commit(&w, &|i| *logs[kind(i)].theta),
            alpha_beta: one.mul(&(shared.alpha * shared.beta)),
            k: bases.one_g1(shared.kappa),
            psi_1: bases.one_g1(*secrets.psi),
            phi_2: bases.one_g2(*secrets.phi),
        }
    }
}
