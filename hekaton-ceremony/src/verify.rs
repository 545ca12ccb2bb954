//! The whole check of a transcript, and the keys of a family whose transcript has passed it
//! (spec: ceremony#verification).

use crate::chain::{Checked, check_distinct, check_end};
use crate::check::{CeremonyError, Check, file, require};
use crate::family::{Shape, check_input_sums, check_thetas, check_type};
use crate::genesis::{Chain, FamilyGenesis, PowersGenesis, Subject, TypeGenesis};
use crate::membership::Members;
use crate::powers;
use crate::record::{LedgerStep, PowersStep, Record, Step, TypeStep};
use crate::sections::Section;
use crate::segment::{self, types_of};
use crate::transcript::{Transcript, fixed_path};
use hekaton_arith::{G1Point, G2Point, Group, pairing};
use hekaton_circuit::R1cs;
use hekaton_core::keys::{FamilyHeader, FamilyKey, FamilyType, SharedPoints};
use hekaton_core::mirage::{Elements, ProvingKey, Queries, check_type_with};
use hekaton_core::{KeyType, Trust};

/// Powers whose whole transcript was checked.
#[derive(Clone, Debug)]
pub struct Powers {
    pub(crate) genesis: PowersGenesis,
    pub(crate) tau: Section,
    pub(crate) phi: Section,
    /// The single points of tau and of phi.
    steps: [PowersStep; 2],
    /// The transcript digest.
    pub digest: [u8; 32],
}

/// A family whose whole transcript was checked.
#[derive(Debug)]
pub struct Family {
    genesis: FamilyGenesis,
    /// The family that this one extends, whose types come first.
    extends: Option<Box<Family>>,
    /// The last points of its own types.
    types: Vec<TypeStep>,
    /// K and all Theta.
    ledger: LedgerStep,
    pub(crate) sections: Vec<[Section; 2]>,
    /// The transcript digest.
    pub digest: [u8; 32],
}

/// The last points of all types of a transcript.
fn last_types(checked: &[Checked]) -> impl Iterator<Item = &TypeStep> {
    checked.iter().flat_map(|checked| match checked.last() {
        Step::Segment { types, .. } => &types[..],
        Step::Powers(_) => &[],
    })
}

fn chains_of<'a>(
    transcript: &'a Transcript,
    checked: &'a [Checked],
) -> Vec<(&'a [Record], &'a Checked)> {
    transcript.logs.iter().map(|log| &log.records[..]).zip(checked).collect()
}

/// Makes the record check of a transcript that is to be final: all logs, and that somebody has contributed to each chain.
///
/// # Errors
/// The first rule that is broken.
pub fn verify_records(transcript: &Transcript) -> Result<Vec<Checked>, CeremonyError> {
    if let Some(log) = transcript.logs.iter().find(|log| log.torn) {
        let why = format!("the log of chain {} ends in the middle of a record", log.chain);
        return Err(file(&transcript.path, why));
    }
    let checked = transcript.check()?;
    check_end(&chains_of(transcript, &checked))?;
    check_distinct(last_types(&checked))?;
    Ok(checked)
}

/// Makes the whole check of powers. `progress` is called with a description of each step.
///
/// # Errors
/// The first rule that is broken, or a file that cannot be read.
pub fn verify_powers(
    transcript: &Transcript,
    progress: &mut dyn FnMut(&str),
) -> Result<Powers, CeremonyError> {
    let Subject::Powers(genesis) = &transcript.genesis.subject else {
        let why = format!("{}: a family, expected powers", transcript.path.display());
        return Err(CeremonyError::Foreign(why));
    };
    progress("records");
    let checked = verify_records(transcript)?;
    let mut found = Vec::new();
    for checked in &checked {
        let Step::Powers(step) = checked.last() else { unreachable!("chains of powers") };
        let [mut section] = <[Section; 1]>::try_from(transcript.sections(checked.chain))
            .expect("a chain of powers has one section");
        progress(&format!("section '{}'", section.name));
        powers::check(&mut section, checked.chain, step, true)?;
        found.push((section, step.clone()));
    }
    let [(tau, of_tau), (phi, of_phi)] = <[_; 2]>::try_from(found).expect("powers have two chains");
    let (genesis, digest) = (genesis.clone(), transcript.digest());
    Ok(Powers { genesis, tau, phi, steps: [of_tau, of_phi], digest })
}

/// Makes the whole check of a family, whose circuit has these types: all logs, what each contributor worked on, and every
/// point of the last sections. If it extends another family, `extends` is that one, which was checked, and `types` are those that it
/// adds. `progress` is called with a description of each step.
///
/// # Errors
/// The first rule that is broken, or a file that cannot be read.
pub fn verify_family(
    transcript: &Transcript,
    powers: &Powers,
    extends: Option<Family>,
    types: &[R1cs],
    progress: &mut dyn FnMut(&str),
) -> Result<Family, CeremonyError> {
    let Subject::Family(genesis) = &transcript.genesis.subject else {
        let why = format!("{}: powers, expected a family", transcript.path.display());
        return Err(CeremonyError::Foreign(why));
    };
    if genesis.powers != powers.digest || genesis.largest != powers.genesis.domain {
        let why = format!(
            "the family was made from the powers of transcript {}, not {}",
            hex::encode(genesis.powers),
            hex::encode(powers.digest)
        );
        return Err(CeremonyError::Foreign(why));
    }
    if genesis.extends != extends.as_ref().map(|family| family.digest) {
        let shown = |digest: Option<[u8; 32]>| digest.map_or("no family".to_owned(), hex::encode);
        let why = format!(
            "the family extends {}, not {}",
            shown(genesis.extends),
            shown(extends.as_ref().map(|family| family.digest))
        );
        return Err(CeremonyError::Foreign(why));
    }
    let domain = genesis.types.iter().map(|kind| kind.domain).fold(1, usize::max);
    powers.genesis.fits(domain, genesis.instances)?;
    progress("records");
    let checked = verify_records(transcript)?;
    let shapes = same_circuit(genesis, types)?;
    if let Some(family) = &extends {
        family.goes_with((genesis.zero_knowledge, &genesis.buses), powers, types)?;
        let older = family.parts().into_iter().flat_map(|part| &part.types);
        check_distinct(older.chain(last_types(&checked)))?;
    } else {
        progress("Theta");
        check_thetas(&powers.tau, genesis, transcript.records(Chain::Segment(1)))?;
    }
    let (mut steps, mut sections) = (Vec::new(), Vec::new());
    let mut ledger = extends.as_ref().map(|family| family.ledger.clone());
    let mut members = Members::new()?;
    for checked in &checked {
        let (last, of_segment) = types_of(checked.last());
        ledger = ledger.or_else(|| of_segment.cloned());
        for (kind, (mut section, step)) in
            transcript.sections(checked.chain).into_iter().zip(last).enumerate()
        {
            let number = steps.len();
            let (shape, of_genesis) = (&shapes[number], &genesis.types[number]);
            progress(&format!("type '{}'", section.name));
            let records = transcript.records(checked.chain);
            check_input_sums(&powers.tau, shape, kind, records, &checked.steps)?;
            let mut fixed = fixed_section(transcript, of_genesis, shape);
            let both = [&mut section, &mut fixed];
            check_type(&powers.tau, shape, both, of_genesis.fixed, step, &mut members)?;
            steps.push(step.clone());
            sections.push([section, fixed]);
        }
    }
    members.finish()?;
    let ledger = ledger.expect("the first segment makes K");
    Ok(Family {
        genesis: genesis.clone(),
        extends: extends.map(Box::new),
        types: steps,
        ledger,
        sections,
        digest: transcript.digest(),
    })
}

fn fixed_section(transcript: &Transcript, kind: &TypeGenesis, shape: &Shape<'_>) -> Section {
    let path = fixed_path(&transcript.path, &kind.fixed);
    Section::file(path, kind.name.clone(), shape.fixed())
}

/// Checks that a circuit's types are those of the genesis, and obey the rules of setup.
fn same_circuit<'a>(
    genesis: &FamilyGenesis,
    types: &'a [R1cs],
) -> Result<Vec<Shape<'a>>, CeremonyError> {
    let mut shapes = Vec::new();
    for r1cs in types {
        check_type_with(r1cs, &genesis.buses)?;
        if (r1cs.layout.mask_slots() > 0) != genesis.zero_knowledge {
            let why = format!(
                "type '{}' has masks, and the ceremony is for keys without, or the other way round",
                r1cs.name
            );
            return Err(CeremonyError::Foreign(why));
        }
        shapes.push(Shape::new(r1cs));
    }
    let found = shapes.iter().zip(&genesis.types).map(|(shape, expected)| {
        let digests = [expected.start, expected.fixed];
        TypeGenesis::of(shape.r1cs, shape.domain, shape.points(), digests)
    });
    match types.len() == genesis.types.len() && found.eq(genesis.types.iter().cloned()) {
        true => Ok(shapes),
        false => Err(CeremonyError::Foreign(
            "the circuit has other types or other constraints than the ceremony: it was made for other \
             parameters or other code"
                .to_owned(),
        )),
    }
}

impl Family {
    /// The number of types, those of the family that it extends included.
    pub fn types(&self) -> usize {
        self.parts().iter().map(|part| part.types.len()).sum()
    }

    /// The chain of extended families, from the first one to this one.
    fn parts(&self) -> Vec<&Self> {
        let mut parts = self.extends.as_ref().map_or(Vec::new(), |family| family.parts());
        parts.push(self);
        parts
    }

    /// Checks that types can be added: from the same powers, with other names, and with the same buses and masks.
    pub(crate) fn goes_with(
        &self,
        (zero_knowledge, buses): (bool, &[String]),
        powers: &Powers,
        types: &[R1cs],
    ) -> Result<(), CeremonyError> {
        let foreign = |why: String| Err(CeremonyError::Foreign(why));
        if self.genesis.powers != powers.digest {
            return foreign("the family that is extended was made from other powers".to_owned());
        }
        if self.genesis.zero_knowledge != zero_knowledge {
            return foreign("of the two families, only one is zero-knowledge".to_owned());
        }
        // Tags are places in this list, and constraints have them.
        if !buses.starts_with(&self.genesis.buses) {
            return foreign(
                "the circuit does not have the buses of the extended family".to_owned(),
            );
        }
        let parts = self.parts();
        let mut older = parts.iter().flat_map(|part| &part.genesis.types);
        let twice = older.find(|kind| types.iter().any(|r1cs| r1cs.name == kind.name));
        match twice {
            Some(kind) => foreign(format!("the extended family has a type '{}'", kind.name)),
            None => Ok(()),
        }
    }

    /// The family key.
    ///
    /// # Errors
    /// If a section cannot be read.
    pub fn key(&self, powers: &Powers) -> Result<FamilyKey, CeremonyError> {
        let genesis = &self.genesis;
        let [tau, phi] = &powers.steps;
        let parts = self.parts();
        let types = parts.iter().flat_map(|part| &part.genesis.types).map(|kind| FamilyType {
            kind: KeyType { name: kind.name.clone(), r1cs: kind.r1cs },
            slots: kind.slots,
            buses: kind.buses,
        });
        let header = FamilyHeader {
            circuit: genesis.circuit.clone(),
            parameters: genesis.parameters.clone(),
            trust: Trust::Ceremony(self.digest),
            zero_knowledge: genesis.zero_knowledge,
            instances: genesis.instances,
            types: types.collect(),
            shared: SharedPoints {
                alpha_beta: pairing(&tau.in_g1[1], &tau.in_g2[1]),
                k: self.ledger.k,
                psi_1: phi.in_g1[1],
                phi_2: phi.in_g2[0],
            },
        };
        let count = 2 * genesis.instances.next_power_of_two() - 1;
        let sizes = crate::genesis::domains(genesis.largest);
        let theta = |n: usize| {
            let at = sizes.binary_search(&n).expect("a domain of a type is one of the powers'");
            self.ledger.thetas[at]
        };
        let (mut elements, mut ic) = (Vec::new(), Vec::new());
        for part in parts {
            for (step, kind) in part.types.iter().zip(&part.genesis.types) {
                elements.push([step.in_g2[0], step.in_g2[1], theta(kind.domain)]);
            }
            for [_, fixed] in &part.sections {
                ic.extend(fixed.read::<G1Point>(0, fixed.vectors[0].len)?);
            }
        }
        let points = [powers.phi.read::<G1Point>(0, count)?, ic];
        let psi = powers.phi.read::<G2Point>(1, count)?;
        let h = G2Point::generator();
        Ok(FamilyKey::of_points(&header, points, psi, h, elements)?)
    }

    /// The proving key of a type, which has this R1CS. Types of the family that it extends come first.
    ///
    /// # Errors
    /// If a section cannot be read.
    pub fn proving_key(
        &self,
        powers: &Powers,
        number: usize,
        r1cs: R1cs,
    ) -> Result<ProvingKey, CeremonyError> {
        if let Some(family) = &self.extends
            && number < family.types()
        {
            return family.proving_key(powers, number, r1cs);
        }
        let number = number - self.extends.as_ref().map_or(0, |family| family.types());
        let ([section, fixed], step) = (&self.sections[number], &self.types[number]);
        let read = |vector: usize| section.read::<G1Point>(vector, section.vectors[vector].len);
        let [tau, _] = &powers.steps;
        let shape = Shape::new(&r1cs);
        let (a, b, x) = (shape.a, shape.b, shape.x);
        let queries = Queries {
            elements: Elements {
                alpha_1: tau.in_g1[1],
                delta_1: step.in_g1[0],
                eta_1: step.in_g1[1],
                beta_2: tau.in_g2[1],
                delta_2: step.in_g2[0],
            },
            d: read(segment::D)?,
            a: (a, fixed.read(1, fixed.vectors[1].len)?),
            b: (b, fixed.read(2, fixed.vectors[2].len)?),
            l: read(segment::L)?,
            x: (x, read(segment::X)?),
            h: read(segment::H)?,
        };
        Ok(ProvingKey::of_queries(r1cs, queries)?)
    }
}

/// The names of those who made these records, in order, each once; beacons are left out, because they count for nobody.
pub fn contributors<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<&'a str> {
    let made = |record: &&Record| record.kind == crate::record::Kind::Contribution;
    let mut seen = std::collections::HashSet::new();
    let names = records.into_iter().filter(made).map(|record| record.name.as_str());
    names.filter(|name| seen.insert(*name)).collect()
}

/// A line of a receipt: a contribution to a chain.
#[derive(Clone, Debug)]
pub struct Receipt<'a> {
    /// The name that the record claims.
    pub name: &'a str,
    /// The chain.
    pub chain: Chain,
    /// The place of the record.
    pub place: usize,
    /// The head after the record.
    pub head: [u8; 32],
    /// The digest of the record.
    pub record: [u8; 32],
}

/// Checks that a record which somebody's receipt names is in the transcript.
///
/// # Errors
/// If it is not.
pub fn includes(transcript: &Transcript, receipt: &Receipt<'_>) -> Result<(), CeremonyError> {
    let Receipt { name, chain, place, head, record } = receipt;
    let log = transcript.logs.iter().find(|log| log.chain == *chain);
    let found = log.and_then(|log| log.records.get(*place));
    let same = |r: &Record| r.head() == *head && r.digest() == *record && r.name == *name;
    let at = || format!("chain {chain}, place {place}, by {name}, head {}", hex::encode(head));
    Ok(require(found.is_some_and(same), Check::Head, at)?)
}

/// Checks that the single points of a family key are those of the last records of its powers and of its families, of which each
/// extends the one before: a part of the record check, which needs no sections (spec: ceremony#trust).
///
/// # Errors
/// If a point is another one, or the key names other transcripts.
pub fn key_has_last_points(
    of_powers: &Transcript,
    families: &[&Transcript],
    key: &FamilyKey,
) -> Result<(), CeremonyError> {
    let foreign = || {
        let why = "the logs belong to another ceremony than the keys";
        CeremonyError::Foreign(why.to_owned())
    };
    let Subject::Powers(powers) = &of_powers.genesis.subject else { return Err(foreign()) };
    let (mut kinds, mut steps, mut ledger, mut before) = (Vec::new(), Vec::new(), None, None);
    for transcript in families {
        let genesis = transcript.genesis.family().ok_or_else(foreign)?;
        // Readers bound domains by `largest`, for which there is a Theta each.
        if (genesis.powers, genesis.largest) != (of_powers.digest(), powers.domain)
            || genesis.extends != before
        {
            return Err(foreign());
        }
        for chain in transcript.genesis.chains() {
            let step = transcript.last_step(chain);
            let (types, of_segment) = types_of(&step);
            steps.extend_from_slice(types);
            ledger = ledger.or_else(|| of_segment.cloned());
        }
        kinds.extend(&genesis.types);
        before = Some(transcript.digest());
    }
    let genesis = families.last().and_then(|last| last.genesis.family()).ok_or_else(foreign)?;
    if before.map(Trust::Ceremony) != Some(key.header().trust)
        || kinds.len() != key.header().types.len()
    {
        return Err(foreign());
    }
    check_distinct(&steps)?;
    let [Step::Powers(tau), Step::Powers(phi)] =
        [Chain::Tau, Chain::Phi].map(|chain| of_powers.last_step(chain))
    else {
        return Err(foreign());
    };
    let ledger = ledger.ok_or_else(foreign)?;
    let sizes = crate::genesis::domains(genesis.largest);
    let elements = steps.iter().zip(&kinds).map(|(step, kind)| {
        let theta = sizes.binary_search(&kind.domain).map(|at| ledger.thetas[at]);
        [step.in_g2[0], step.in_g2[1], theta.expect("readers bound domains by the largest")]
    });
    let (header, shared) = (key.header(), key.header().shared);
    let types = header.types.iter().zip(&kinds).all(|(found, expected)| {
        (&found.kind.name, found.kind.r1cs) == (&expected.name, expected.r1cs)
            && (found.slots, found.buses) == (expected.slots, expected.buses)
    });
    let about = types
        && (&header.circuit, &header.parameters) == (&genesis.circuit, &genesis.parameters)
        && (header.zero_knowledge, header.instances) == (genesis.zero_knowledge, genesis.instances);
    // Only the whole check covers the higher powers and IC.
    let (phi_1, psi_2) = (key.phi()?, key.psi()?);
    let powers = phi_1.len() < 2 || phi_1[1] == phi.in_g1[0] && psi_2[1] == phi.in_g2[1];
    let same = about
        && powers
        && elements.eq(key.elements()?.iter().copied())
        && *key.gamma()? == G2Point::generator()
        && shared.k == ledger.k
        && shared.psi_1 == phi.in_g1[1]
        && shared.phi_2 == phi.in_g2[0]
        && shared.alpha_beta == pairing(&tau.in_g1[1], &tau.in_g2[1]);
    Ok(require(same, Check::End, || "the family key".to_owned())?)
}
