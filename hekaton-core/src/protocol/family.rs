//! Key families: one setup for all layouts over its types (spec: key-family#derive).

use super::setup::{Keep, Secrets, SetupError, SetupOptions, setup_types};
use crate::keys::{
    AggregationKey, FamilyHeader, FamilyKey, FamilyPoints, FamilyType, KeyFileError, MAX_INSTANCES,
    Sections, SharedPoints,
};
use crate::mirage::{Bases, ProvingKey, wipe_stacks};
#[cfg(any(test, feature = "testing"))]
use crate::mirage::{SharedSecrets, TypeSecrets};
use crate::pool::LocalEngine;
use crate::verifier::verifying_key::{KeyType, Trust, VerifyingKey, VerifyingKeyError};
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop, pairing, powers};
use hekaton_circuit::prover::{BusShape, VariableLayout, Wiring};
use hekaton_circuit::{
    Masking, PreparedCircuit, Preprocessed, SlotAccess, StarError, SynthesizeError,
};
use rayon::prelude::*;
use zeroize::Zeroizing;

/// Why no key can be derived.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeriveError {
    /// The layout has more subcircuits than the family has powers for.
    #[error(
        "the circuit has {found} subcircuits, but the keys of this family are for at most {most}: \
         use keys of a larger family"
    )]
    TooMany {
        /// The number of subcircuits.
        found: usize,
        /// The number that the family allows.
        most: usize,
    },
    /// The circuit has a type that the family does not have.
    #[error("the family has no type '{kind}': its types are {known}")]
    NoType {
        /// The type.
        kind: String,
        /// The types of the family.
        known: String,
    },
    /// The circuit has a type of another shape.
    #[error(
        "type '{kind}' has {found} slots with masks, but {expected} in the family: it was made for \
         other parameters or other code"
    )]
    Slots {
        /// The type.
        kind: String,
        /// The slots of the circuit's type.
        found: usize,
        /// The slots of the family's type.
        expected: usize,
    },
    /// The circuit has other constraints than the family.
    #[error(
        "type '{kind}' has other constraints than in the family: it was made for other parameters \
         or other code"
    )]
    Constraints {
        /// The type.
        kind: String,
    },
    /// The synthesis of a type failed.
    #[error(transparent)]
    Synthesize(#[from] SynthesizeError),
    /// The wiring is not a set of stars: one writer and its readers per address.
    #[error("wiring: {0}")]
    Star(StarError),
    /// The verifying key would be refused when it is read.
    #[error("cannot write the verifying key: {0}")]
    VerifyingKey(VerifyingKeyError),
    /// The family key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

impl From<StarError> for DeriveError {
    fn from(error: StarError) -> Self {
        Self::Star(error)
    }
}

impl From<VerifyingKeyError> for DeriveError {
    fn from(error: VerifyingKeyError) -> Self {
        Self::VerifyingKey(error)
    }
}

/// Runs the setup of a family on the engine's threads: of all types of a circuit, for layouts with up
/// to `instances` subcircuits. The layout of `circuit` itself does not matter, but its types do: it
/// must have all that circuits of the family use. Passes each proving key to `keep` as soon as it is
/// made, and returns what [`derive()`] needs.
///
/// It draws the trapdoors itself and wipes them, but its operator could keep them and forge proofs
/// under all derived keys. The keys record that (spec: soundness#trusted).
///
/// # Errors
/// When a type violates a rule that soundness depends on, or `keep` fails.
pub fn setup_family<E: Send>(
    circuit: &PreparedCircuit<'_>,
    instances: usize,
    engine: &LocalEngine,
    options: &SetupOptions,
    mut keep: impl FnMut(ProvingKey) -> Result<(), E> + Send,
    mut progress: impl FnMut(&str) + Send,
) -> Result<FamilyKey, SetupError<E>> {
    // Before any work that would be lost.
    if instances == 0 || instances as u64 > MAX_INSTANCES {
        return Err(SetupError::FamilySize { instances });
    }
    engine.install(|| {
        let mut keep = |key, _| keep(key).map_err(SetupError::Sink);
        let family = setup_in_pool(circuit, instances, options, &mut keep, &mut progress);
        wipe_stacks();
        family
    })
}

#[inline(never)]
fn setup_in_pool<E>(
    circuit: &PreparedCircuit<'_>,
    instances: usize,
    options: &SetupOptions,
    keep: &mut Keep<'_, E>,
    progress: &mut dyn FnMut(&str),
) -> Result<FamilyKey, SetupError<E>> {
    let secrets = Secrets::draw(circuit.layout().type_ids().count(), options.insecure_seed)?;
    wipe_stacks();
    setup_with(circuit, instances, options, (options.trust(), &secrets), keep, progress)
}

fn setup_with<E>(
    circuit: &PreparedCircuit<'_>,
    instances: usize,
    options: &SetupOptions,
    (trust, secrets): (Trust, &Secrets),
    keep: &mut Keep<'_, E>,
    progress: &mut dyn FnMut(&str),
) -> Result<FamilyKey, SetupError<E>> {
    let parameters = options.parameters.clone().map_err(SetupError::Parameters)?;
    let masking = Masking::new(options.zero_knowledge);
    let wiring = circuit.layout().wiring_without_slots(masking);
    // One shared delta or eta breaks soundness completely (spec: mirage#asserts).
    secrets.check()?;
    let bases = Bases::new(1 << 17);
    let types = circuit.layout().type_ids().map(|kind| Ok(circuit.r1cs(kind, masking)?));
    let (logs, elements) = setup_types(&wiring, types, secrets, &bases, keep, progress)?;
    progress(&format!("family key for up to {instances} subcircuits"));
    let types = (wiring.types.iter().zip(&logs)).map(|(spec, logs)| FamilyType {
        kind: KeyType { name: spec.name.clone(), r1cs: logs.r1cs },
        slots: spec.slots,
        buses: logs.layout.shape(),
    });
    let (one_1, one_2) = (G1Point::generator(), G2Point::generator());
    let shared = &secrets.shared;
    let header = FamilyHeader {
        circuit: options.circuit.clone(),
        parameters,
        trust,
        zero_knowledge: options.zero_knowledge,
        instances,
        types: types.collect(),
        shared: SharedPoints {
            alpha_beta: pairing(&one_1, &one_2).mul(&(shared.alpha * shared.beta)),
            k: bases.one_g1(shared.kappa),
            psi_1: bases.one_g1(*secrets.psi),
            phi_2: bases.one_g2(*secrets.phi),
        },
    };
    // Powers of phi in G1 and of psi in G2, and of each in the other group the first only: binding of
    // the commitments rests on it (spec: key-family#powers).
    let count = 2 * instances.next_power_of_two() - 1;
    let powers = |base: &Fr| Zeroizing::new(powers(*base, count));
    let (phi, psi) = (bases.g1(&powers(&secrets.phi)), bases.g2(&powers(&secrets.psi)));
    let ic = logs.iter().flat_map(|logs| bases.g1(&logs.ic)).collect();
    let gamma = bases.one_g2(shared.gamma);
    let key = FamilyKey::new(FamilyKey::sections_of(&header, [phi, ic], psi, gamma, elements));
    wipe_stacks();
    Ok(key?)
}

/// Trapdoors for [`setup_family_from`].
#[cfg(any(test, feature = "testing"))]
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are those of the protocol")]
pub struct Trapdoors {
    pub tau: Fr,
    pub alpha: Fr,
    pub beta: Fr,
    pub kappa: Fr,
    pub phi: Fr,
    pub psi: Fr,
    /// Delta and eta of each type.
    pub types: Vec<[Fr; 2]>,
}

/// Test double: the setup of a family with given trapdoors, and gamma = 1.
///
/// # Errors
/// As for [`setup_family`].
#[cfg(any(test, feature = "testing"))]
pub fn setup_family_from(
    circuit: &PreparedCircuit<'_>,
    instances: usize,
    options: &SetupOptions,
    trust: Trust,
    trapdoors: &Trapdoors,
) -> Result<(FamilyKey, Vec<ProvingKey>), SetupError> {
    let Trapdoors { tau, alpha, beta, kappa, phi, psi, types } = trapdoors.clone();
    let secrets = Secrets {
        shared: SharedSecrets { alpha, beta, gamma: Fr::from(1u64), tau, kappa },
        types: types.into_iter().map(|[delta, eta]| TypeSecrets { delta, eta }).collect(),
        phi: Zeroizing::new(phi),
        psi: Zeroizing::new(psi),
    };
    let mut keys = Vec::new();
    let mut keep = |key, _| {
        keys.push(key);
        Ok(())
    };
    let made = (trust, &secrets);
    let family = setup_with(circuit, instances, options, made, &mut keep, &mut |_| {})?;
    Ok((family, keys))
}

/// Derives the keys of a circuit's layout from those of a family, on the engine's threads, without any
/// secret. The result depends on nothing but the family, the layout and `parameters`, the circuit's
/// parameters as JSON; it equals the key that a setup with the same trapdoors makes (spec: key-family#derive).
///
/// The circuit must have the constraints of the family: its types are synthesized, without a witness, unless those of the
/// family are [pinned](PreparedCircuit::with_pinned_types).
///
/// **Points are not checked.** If the family comes from a party you do not trust, compare the digest of the points that
/// were read, `family` of the verifying key, with one that you trust.
///
/// # Errors
/// When the circuit does not fit the family.
pub fn derive(
    family: &FamilyKey,
    circuit: &PreparedCircuit<'_>,
    parameters: &str,
    engine: &LocalEngine,
) -> Result<(AggregationKey, VerifyingKey), DeriveError> {
    // Bounded before anything is computed from it (spec: key-family#bounds).
    let (found, most) = (circuit.layout().instances(), family.header().instances);
    if found > most {
        return Err(DeriveError::TooMany { found, most });
    }
    let wiring = circuit.layout().wiring(Masking::new(family.header().zero_knowledge));
    engine.install(|| {
        same_constraints(family, circuit, &wiring)?;
        derive_wiring(family, &wiring, parameters)
    })
}

/// Reports whether a verifying key is the one that [`derive()`] makes from a family for this wiring, if the circuit has the constraints of
/// the family: it need not be at hand.
///
/// # Errors
/// When the wiring does not fit the family.
pub fn follows_from(
    family: &FamilyKey,
    wiring: &Wiring,
    key: &VerifyingKey,
    engine: &LocalEngine,
) -> Result<bool, DeriveError> {
    let derived = engine.install(|| derive_wiring(family, wiring, &key.parameters))?;
    Ok(derived.1.digest() == key.digest())
}

/// Checks that the types of a circuit have the digests of the family. Without it, keys of a layout
/// with one parameter could go with constraints of another (spec: key-family#derive).
fn same_constraints(
    family: &FamilyKey,
    circuit: &PreparedCircuit<'_>,
    wiring: &Wiring,
) -> Result<(), DeriveError> {
    let kinds: Vec<_> = circuit.layout().type_ids().zip(types_of(family, wiring)?).collect();
    if circuit.has_pinned_types(wiring.masking, &family.header().digest_of_types()) {
        return Ok(());
    }
    kinds.into_par_iter().try_for_each(|(kind, number)| {
        let r1cs = circuit.r1cs(kind, wiring.masking)?;
        match r1cs.digest() == family.header().types[number].kind.r1cs {
            true => Ok(()),
            false => Err(DeriveError::Constraints { kind: r1cs.name }),
        }
    })
}

/// [`derive()`] of a wiring.
pub(crate) fn derive_wiring(
    family: &FamilyKey,
    wiring: &Wiring,
    parameters: &str,
) -> Result<(AggregationKey, VerifyingKey), DeriveError> {
    let (found, most) = (wiring.instances(), family.header().instances);
    if found > most {
        return Err(DeriveError::TooMany { found, most });
    }
    let types = types_of(family, wiring)?;
    // No zero-sum proper subset at an address, or two values could live there
    // (spec: memory-check#stars).
    wiring.check_stars()?;
    let derivation = Derivation::new(family, wiring, &types)?;
    let verifying = derivation.verifying_key(parameters);
    let aggregation = derivation.aggregation_key()?;
    // Checked as its readers would check it, because points of a family are not checked.
    let verifying = VerifyingKey::from_bytes(&verifying.to_bytes())?;
    Ok((aggregation, verifying))
}

/// The number in the family of each type of a wiring.
fn types_of(family: &FamilyKey, wiring: &Wiring) -> Result<Vec<usize>, DeriveError> {
    let header = family.header();
    let find = |kind: &hekaton_circuit::prover::WiringType| {
        let number = family.type_named(&kind.name).ok_or_else(|| DeriveError::NoType {
            kind: kind.name.clone(),
            known: header.types.iter().map(|t| t.kind.name.as_str()).collect::<Vec<_>>().join(", "),
        })?;
        let of_family = &header.types[number];
        let (found, expected) = (kind.slots, of_family.slots);
        if found != expected {
            return Err(DeriveError::Slots { kind: kind.name.clone(), found, expected });
        }
        // The lists of the layout must fit the shape with which the type was set up: lists of other lengths
        // would be cut to the shorter one.
        let BusShape { buses, parameters, pairs, .. } = of_family.buses;
        let expected = (buses, parameters, pairs);
        match expected == (!wiring.buses.is_empty(), kind.parameters, kind.pairs) {
            true => Ok(number),
            false => Err(DeriveError::Constraints { kind: kind.name.clone() }),
        }
    };
    wiring.types.iter().map(find).collect()
}

/// Number of instances whose pairings one thread computes at a time.
const CHUNK: usize = 64;

/// Number of pairs whose points one thread adds up at a time; few in tests, whose tables are short.
const PAIRS: usize = if cfg!(test) { 4 } else { 1 << 14 };

/// The elements of derived keys, as points.
struct Derivation<'a> {
    header: &'a FamilyHeader,
    /// Everything below comes from this copy, whose digest the verifying key names.
    points: FamilyPoints,
    wiring: &'a Wiring,
    types: &'a [usize],
    st: Vec<G1Point>,
    sb: Vec<G1Point>,
    sg: Vec<G1Point>,
    /// In circuits with buses ST of each type and SV of each instance.
    buses: Option<[Vec<G1Point>; 2]>,
    elements: Vec<[G2Point; 3]>,
}

impl<'a> Derivation<'a> {
    fn new(
        family: &'a FamilyKey,
        wiring: &'a Wiring,
        types: &'a [usize],
    ) -> Result<Self, KeyFileError> {
        let points = family.copy(wiring.instances())?;
        let ic: Vec<&[G1Point]> = types.iter().map(|kind| points.ic(*kind)).collect();
        let layouts: Vec<VariableLayout> =
            types.iter().map(|kind| family.header().types[*kind].variables()).collect();
        let instances: Vec<_> = wiring.preprocessed_by_instance().collect();
        let fixed = |(kind, slots, constants): &(u32, &[SlotAccess], Preprocessed<'_>)| {
            let (ic, layout) = (ic[*kind as usize], &layouts[*kind as usize]);
            let (st, sv) = bus_parts(ic, layout, constants);
            (st_of(ic, layout, slots).add(&st), (sb_of(ic, layout, slots), sv))
        };
        // One at a time: an instance of a large table takes as long as thousands of others.
        let (st, (sb, sv)): (Vec<_>, (Vec<_>, Vec<_>)) =
            instances.par_iter().with_max_len(1).map(fixed).unzip();
        let per_type = |variable: &dyn Fn(&VariableLayout) -> Option<usize>| {
            let points = ic.iter().zip(&layouts).map(|(ic, layout)| Some(ic[variable(layout)?]));
            points.flatten().collect::<Vec<_>>()
        };
        let sg = per_type(&|layout| Some(layout.g()));
        let stag = per_type(&|layout| Some(layout.bus_challenges()?[0]));
        let buses = (!wiring.buses.is_empty()).then_some([stag, sv]);
        let elements = types.iter().map(|kind| points.elements[*kind]).collect();
        let header = family.header();
        Ok(Self { header, points, wiring, types, st, sb, sg, buses, elements })
    }

    fn aggregation_key(&self) -> Result<AggregationKey, KeyFileError> {
        let mut sections = Sections::new(AggregationKey::KIND);
        sections.push("phi", self.points.phi.clone());
        sections.push("psi", self.points.psi.clone());
        sections.push("st", self.st.clone());
        sections.push("sb", self.sb.clone());
        sections.push("sg", self.sg.clone());
        if let Some([tags, values]) = &self.buses {
            sections.push("stag", tags.clone());
            sections.push("sv", values.clone());
        }
        sections.push("type_of", self.wiring.type_of.clone());
        sections.push("gamma", vec![self.points.gamma]);
        sections.push("elements", self.elements.clone());
        AggregationKey::new(sections, self.wiring.instances(), self.wiring.types.len())
    }

    /// The products of the commitments to St, Sb and SV, which have an element per instance. SV is empty in
    /// circuits without buses.
    fn instance_loops(&self, v: &[G2Point]) -> [MillerLoop; 3] {
        let Self { st, sb, buses, .. } = self;
        let n = self.wiring.instances();
        let starts: Vec<usize> = (0..n).step_by(CHUNK).collect();
        let parts: Vec<[MillerLoop; 3]> = starts
            .par_iter()
            .map(|start| {
                let chunk = *start..(start + CHUNK).min(n);
                let sv = match buses {
                    Some([_, values]) => list_of(values, v, &chunk),
                    None => Vec::new(),
                };
                MillerLoop::many([list_of(st, v, &chunk), list_of(sb, v, &chunk), sv])
            })
            .collect();
        [0, 1, 2].map(|at| MillerLoop::product(parts.iter().map(|part| part[at])))
    }

    /// The verifying key, whose commitments are sums of pairings. Pads contribute nothing
    /// (spec: aggregation#padding).
    fn verifying_key(&self, parameters: &str) -> VerifyingKey {
        let Self { header, points, wiring, buses, .. } = self;
        let n = wiring.instances();
        // v_i = psi^2i and w_i = phi^2i, over n and not N (spec: aggregation#srs).
        let v: Vec<G2Point> = points.psi.iter().step_by(2).take(n).copied().collect();
        let w: Vec<G1Point> = points.phi.iter().step_by(2).take(n).copied().collect();
        let [st, sb, sv] = self.instance_loops(&v);
        // An element that all instances of a type share is paired once, with the sum of their keys.
        let mut of_type = vec![(Vec::new(), Vec::new()); self.types.len()];
        for (kind, (w, v)) in wiring.type_of.iter().zip(w.iter().zip(&v)) {
            of_type[*kind as usize].0.push(*w);
            of_type[*kind as usize].1.push(*v);
        }
        let sums = of_type.iter().map(|(w, v)| (G1Point::sum(w), G2Point::sum(v)));
        let (w_sums, v_sums): (Vec<G1Point>, Vec<G2Point>) = sums.unzip();
        let element = |j: usize| {
            let column: Vec<G2Point> = self.elements.iter().map(|e| e[j]).collect();
            MillerLoop::new(&w_sums, &column)
        };
        let gamma = MillerLoop::new(&[G1Point::sum(&w_sums)], &[points.gamma]);
        let sg = MillerLoop::new(&self.sg, &v_sums);
        let tags = match buses {
            Some([tags, _]) => MillerLoop::new(tags, &v_sums),
            None => MillerLoop::new(&[], &[]),
        };
        // Together, because several final exponentiations share the lanes of the vector kernels.
        let [delta, eta, theta] = [0, 1, 2].map(element);
        let loops = [st, sg, sb, gamma, delta, eta, theta, tags, sv];
        let [cm_st, cm_sg, cm_sb, cm_gamma, cm_delta, cm_eta, cm_theta, cm_tag, cm_value] =
            MillerLoop::finish_all(loops);
        VerifyingKey {
            circuit: header.circuit.clone(),
            parameters: parameters.to_owned(),
            trust: header.trust,
            zero_knowledge: header.zero_knowledge,
            instances: n as u64,
            types: self.types.iter().map(|kind| header.types[*kind].kind.clone()).collect(),
            type_map: wiring.type_map_digest(),
            layout: wiring.digest(),
            family: Some(points.digest),
            public: wiring.public.clone(),
            constants: wiring.constants.clone(),
            cm_st,
            cm_sg,
            cm_sb,
            buses: buses.is_some().then(|| Box::new([cm_tag, cm_value])),
            cm_gamma,
            cm_delta,
            cm_eta,
            cm_theta,
            alpha_beta: header.shared.alpha_beta,
            k: header.shared.k,
            psi_1: header.shared.psi_1,
            phi_2: header.shared.phi_2,
        }
    }
}

/// `St_i = IC_one + sum mu_ij IC_mu_j`. Readers have multiplicity -1, which would be a scalar of full
/// size: their points are subtracted.
fn st_of(ic: &[G1Point], layout: &VariableLayout, slots: &[SlotAccess]) -> G1Point {
    let mut once = vec![ic[VariableLayout::ONE]];
    let (mut points, mut scalars) = (Vec::new(), Vec::new());
    for (slot, point) in slots.iter().zip(&ic[layout.multiplicities()]) {
        match slot.multiplicity {
            0 => {}
            1 => once.push(*point),
            -1 => once.push(point.neg()),
            other => {
                points.push(*point);
                scalars.push(Fr::from(other));
            }
        }
    }
    if !points.is_empty() {
        once.push(G1Point::msm(&points, &scalars));
    }
    G1Point::sum(&once)
}

/// Returns what an instance's parameters and pairs add to St_i, and `SV_i = IC_bV + sum v IC_kv`,
/// which is zero in circuits without buses (spec: buses#preprocessed).
fn bus_parts(
    ic: &[G1Point],
    layout: &VariableLayout,
    constants: &Preprocessed<'_>,
) -> (G1Point, G1Point) {
    let Preprocessed { parameters, pairs, .. } = *constants;
    let st = G1Point::msm(&ic[layout.parameters()], parameters);
    let Some([_, b_v]) = layout.bus_challenges() else {
        return (st, G1Point::IDENTITY);
    };
    assert_eq!(ic[layout.pairs()].len(), pairs.len(), "an IC for each pair");
    let parts =
        ic[layout.pairs()].par_chunks(PAIRS).zip(pairs.par_chunks(PAIRS)).map(|(ic, pairs)| {
            [0, 1].map(|at| G1Point::msm(ic, &pairs.iter().map(|p| p[at]).collect::<Vec<Fr>>()))
        });
    let (keys, values): (Vec<_>, Vec<_>) = parts.map(|[keys, values]| (keys, values)).unzip();
    (st.add(&G1Point::sum(&keys)), ic[b_v].add(&G1Point::sum(&values)))
}

/// `Sb_i = sum a_ij IC_x_j`.
fn sb_of(ic: &[G1Point], layout: &VariableLayout, slots: &[SlotAccess]) -> G1Point {
    let addresses: Vec<Fr> = slots.iter().map(|slot| Fr::from(slot.address)).collect();
    G1Point::msm(&ic[layout.addresses()], &addresses)
}

/// Pairs of the points of some instances with their keys.
fn list_of<'a>(
    points: &'a [G1Point],
    keys: &'a [G2Point],
    range: &std::ops::Range<usize>,
) -> Vec<(&'a G1Point, &'a G2Point)> {
    points[range.clone()].iter().zip(&keys[range.clone()]).collect()
}
