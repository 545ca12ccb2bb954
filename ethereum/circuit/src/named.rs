//! The circuit by name, for command lines.

use crate::assignment::Assignment;
use crate::circuit::{MAX_COUNT, StateWitness};
use crate::error::WitnessError;
use crate::sample::sample;
use crate::sizes::{Counts, Sizes};
use ark_ff::PrimeField;
use hekaton_circuit::named::{
    Family, InputFile, NamedCircuit, Parameter, ParameterError, ParameterMap, create,
};
use hekaton_circuit::{CircuitError, Fr};
use hekaton_witness_format::EncodedWitness;
use serde::{Deserialize, Serialize};

/// The parameters by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateWitnessParameters {
    /// `large` or `small`.
    pub size: String,
    /// [`Counts::branches`].
    pub branches: usize,
    /// [`Counts::leaves`].
    pub leaves: usize,
    /// [`Counts::codes`].
    pub codes: usize,
    /// [`Counts::mixed`].
    pub mixed: usize,
}

const OPEN: [&str; 4] = ["branches", "leaves", "codes", "mixed"];

fn size(name: Option<&str>) -> Result<Sizes, CircuitError> {
    match name {
        Some("large") | None => Ok(Sizes::LARGE),
        Some("small") => Ok(Sizes::SMALL),
        Some(other) => {
            let why = format!("size is '{other}', expected large or small");
            Err(ParameterError::Invalid { circuit: StateWitness::NAME, why }.into())
        }
    }
}

fn size_of(parameters: &ParameterMap) -> Result<Sizes, CircuitError> {
    size(parameters.get("size").and_then(|size| size.as_str()))
}

impl NamedCircuit for StateWitness {
    const NAME: &'static str = "witness";
    const ABOUT: &'static str =
        "trie nodes and codes of a block's execution witness hang from its parent's state root";
    const INPUT: &'static str =
        "ExecutionWitness { state, codes, headers } in SSZ, as hekaton-intake stores it";
    const PUBLIC: &'static str = "HASH:N:W, the parent block's hash, the number of nodes and codes, and the digest of their contents";
    type Parameters = StateWitnessParameters;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "size",
            help: "large: subcircuits of up to 2^18 rows; small: for tests",
            default: Some("large"),
        },
        Parameter {
            name: "branches",
            help: "subcircuits of 4 branches; derived from the witness, if one is given",
            default: None,
        },
        Parameter {
            name: "leaves",
            help: "subcircuits of 15 leaves and extensions; derived from the witness",
            default: None,
        },
        Parameter {
            name: "codes",
            help: "subcircuits of 16 blocks of codes; derived from the witness",
            default: None,
        },
        Parameter {
            name: "mixed",
            help: "subcircuits of 2 branches with small children and 3 leaves of two blocks; derived from the witness",
            default: None,
        },
    ];
    type Opened = EncodedWitness;

    fn with(parameters: StateWitnessParameters) -> Result<Self, CircuitError> {
        let StateWitnessParameters { size: name, branches, leaves, codes, mixed } = parameters;
        let counts = Counts { branches, leaves, codes, mixed };
        for (name, count) in counts.all() {
            let range = 0..=MAX_COUNT;
            ParameterError::check_range(Self::NAME, name, count, range, "at most 2^20")?;
        }
        Ok(Self { sizes: size(Some(&name))?, counts })
    }

    fn fit(parameters: &mut ParameterMap, input: &InputFile) -> Result<(), CircuitError> {
        if OPEN.iter().all(|name| parameters.contains_key(*name)) {
            return Ok(());
        }
        let sizes = size_of(parameters)?;
        let counts = Assignment::new(&read(input)?.witness())?.counts(sizes).on_the_ladder();
        for (name, count) in counts.all() {
            parameters.entry(name.to_owned()).or_insert_with(|| count.into());
        }
        Ok(())
    }

    fn family(parameters: &ParameterMap, bytes: u64) -> Result<Option<Family<Self>>, CircuitError> {
        let sizes = size_of(parameters)?;
        let bytes = usize::try_from(bytes)
            .map_err(|_| format!("{bytes} bytes exceed this machine's memory"))?;
        // The shortest strings, with offsets of 4 bytes: a branch of two hashes, nodes of 32 bytes, a code of one.
        let most = |string: usize, size: usize| (bytes / string).div_ceil(size).clamp(1, MAX_COUNT);
        let largest = Counts {
            branches: most(87, sizes.branches),
            leaves: most(36, sizes.leaves),
            codes: most(5, sizes.codes),
            mixed: most(36, sizes.mixed_branches.min(sizes.mixed_leaves)),
        };
        let with = |counts: Counts| {
            let mut all = parameters.clone();
            for (name, count) in counts.all() {
                all.insert(name.to_owned(), count.into());
            }
            create::<Self>(&all, None).map(|(circuit, _)| circuit)
        };
        // They cannot all be there at once, and each is rounded up by half at most.
        let Counts { branches, leaves, codes, mixed } = largest;
        let most = branches.max(leaves).max(codes).max(mixed);
        let instances = 1 + sizes.tables() + ((3 * most).div_ceil(2) + 8).min(4 * MAX_COUNT);
        // Keys depend on the types alone, so one subcircuit of each is enough.
        let circuit = with(Counts { branches: 1, leaves: 1, codes: 1, mixed: 1 })?;
        Ok(Some(Family { circuit, instances, open: &OPEN }))
    }

    fn subcircuits(&self) -> Option<usize> {
        Some(StateWitness::subcircuits(self))
    }

    fn open(&self, input: &InputFile) -> Result<EncodedWitness, CircuitError> {
        read(input)
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(sample().encode().bytes().to_vec())
    }

    fn show(values: &[Fr]) -> Option<String> {
        let [low, high, count, digest] = values else { return None };
        let mut hash = [0; 32];
        for (half, value) in hash.chunks_exact_mut(16).zip([low, high]) {
            half.copy_from_slice(&half_of(value)?.to_le_bytes());
        }
        let count = u64::try_from(half_of(count)?).ok()?;
        let digest = hex::encode(be_bytes(&digest.into_bigint().0));
        Some(format!("{}:{count}:{digest}", hex::encode(hash)))
    }

    fn read(text: &str) -> Option<Result<Vec<Fr>, CircuitError>> {
        Some(parse(text).ok_or_else(|| {
            "expected HASH:N:W, where HASH and W are 64 hexadecimal digits and N is a number".into()
        }))
    }
}

fn be_bytes(limbs: &[u64; 4]) -> Vec<u8> {
    limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect()
}

/// A number below 2^128.
fn half_of(value: &Fr) -> Option<u128> {
    let [a, b, c, d] = value.into_bigint().0;
    (c == 0 && d == 0).then_some(u128::from(b) << 64 | u128::from(a))
}

fn parse(text: &str) -> Option<Vec<Fr>> {
    let mut parts = text.trim().split(':');
    let (hash, count, digest) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let bytes = |text: &str| -> Option<[u8; 32]> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        hex::decode(digits).ok()?.try_into().ok()
    };
    let [low, high] = crate::header::halves(&bytes(hash)?);
    let digest = bytes(digest)?;
    let number = Fr::from_be_bytes_mod_order(&digest);
    // A number at or above the field's order would be reduced, and be a second spelling of a
    // smaller one.
    if be_bytes(&number.into_bigint().0) != digest {
        return None;
    }
    let parsed: u64 = count.parse().ok()?;
    // Each number has one spelling, so that two texts differ only if the values do.
    (parsed.to_string() == count)
        .then(|| vec![Fr::from(low), Fr::from(high), Fr::from(parsed), number])
}

fn read(input: &InputFile) -> Result<EncodedWitness, CircuitError> {
    Ok(EncodedWitness::new(input.read()?).map_err(WitnessError::from)?)
}
