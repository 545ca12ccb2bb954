//! The constants of the program and the processor: their names, and the file that holds them.
//!
//! A constant is either measured on a node or stated by the user. There are no defaults: a
//! prediction that needs a constant that is neither is an error that names it.

use super::design::Design;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The version of the calibration file's format.
const FORMAT: u64 = 1;

macro_rules! constants {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, version $version:literal;)*) => {
        /// A constant of the program or the processor. All are seconds of one thread, except
        /// [`Constant::FullNodeRate`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Constant { $($(#[$doc])* $variant,)* }

        impl Constant {
            /// All constants.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in files and messages, which ends with the unit.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The version of the constant's definition and measurement. It changes when older values
            /// can no longer be used.
            pub fn version(self) -> u64 {
                match self { $(Self::$variant => $version,)* }
            }
        }
    };
}

constants! {
    /// The aggregation of one proof, with many proofs.
    AggregateProof = "aggregate_proof_seconds", version 1;
    /// A round of the GIPA, however short the vectors are.
    AggregateRound = "aggregate_round_seconds", version 1;
    /// Decoding a compressed point of G1, subgroup check included.
    DecodeG1Checked = "decode_g1_checked_seconds", version 1;
    /// Decoding a compressed point of G2, subgroup check included.
    DecodeG2Checked = "decode_g2_checked_seconds", version 1;
    /// Decoding a compressed point of G1 without the subgroup check.
    DecodeG1Unchecked = "decode_g1_unchecked_seconds", version 1;
    /// Decoding a compressed point of G2 without the subgroup check.
    DecodeG2Unchecked = "decode_g2_unchecked_seconds", version 1;
    /// The share of one point in a batched subgroup check in G1.
    MembershipG1Batched = "membership_g1_batched_seconds", version 1;
    /// The share of one point in a batched subgroup check in G2.
    MembershipG2Batched = "membership_g2_batched_seconds", version 1;
    /// A commitment without wires: blinding, digests and messages on the worker's side.
    CommitFixed = "commit_fixed_seconds", version 1;
    /// One more wire in a commitment.
    CommitWire = "commit_wire_seconds", version 1;
    /// One byte of a digest.
    HashByte = "hash_byte_seconds", version 1;
    /// The rate of a core while all cores of its node work, over its rate alone.
    FullNodeRate = "full_node_rate_ratio", version 1;
    /// Creating and encoding a job without wires and private input.
    EncodeJob = "encode_job_seconds", version 1;
    /// Encoding one more wire of a job.
    EncodeOccurrence = "encode_occurrence_seconds", version 1;
    /// Encoding one more byte of private input.
    EncodePrivateByte = "encode_private_byte_seconds", version 1;
    /// Recording an answer: its event, and its record in the log. Other threads can do it.
    RecordAnswer = "record_answer_seconds", version 1;
    /// Accepting an answer: the coordinator's own tables. Only the coordinator can do it.
    AcceptAnswer = "accept_answer_seconds", version 1;
    /// The time that each rank adds to handing out a job and to accepting an answer.
    ScanRank = "scan_rank_seconds", version 1;
    /// Laying out one wire of one subcircuit.
    LayoutOccurrence = "layout_occurrence_seconds", version 2;
    /// The share of one wire of one subcircuit in the digest of the layout, hashing included.
    DigestOccurrence = "digest_occurrence_seconds", version 1;
    /// Executing one wire of one subcircuit, without the circuit's own computation.
    ExecuteOccurrence = "execute_occurrence_seconds", version 1;
    /// Decoding a product of Miller loops from a rank and multiplying it.
    MillerProduct = "miller_product_seconds", version 1;
    /// The coordinator's work for one proof between the phases of the aggregation.
    CollectProof = "collect_proof_seconds", version 1;
    /// Creating and encoding a job for a rank that has its values.
    EncodeOwnJob = "encode_own_job_seconds", version 1;
    /// Digest and balance of one wire of one subcircuit, on the rank that executed it.
    SummarizeOccurrence = "summarize_occurrence_seconds", version 1;
    /// The work that remains on rank 0 for one subcircuit that another rank executes.
    SliceSubcircuit = "slice_subcircuit_seconds", version 1;
}

impl Constant {
    /// Returns the constant of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|constant| constant.name() == name)
    }

    /// The constants that the prediction of a design needs.
    pub fn of_design(design: &Design) -> Vec<Self> {
        let needed = |constant: &Self| match constant {
            Self::DecodeG1Checked | Self::DecodeG2Checked => !design.batch_check,
            Self::DecodeG1Unchecked
            | Self::DecodeG2Unchecked
            | Self::MembershipG1Batched
            | Self::MembershipG2Batched => design.batch_check,
            Self::EncodeOwnJob | Self::SummarizeOccurrence | Self::SliceSubcircuit => {
                design.sliced_execute
            }
            _ => true,
        };
        Self::ALL.iter().copied().filter(needed).collect()
    }
}

/// The source of a constant's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Measured, by the method that the text describes.
    Measured(String),
    /// Stated by the user.
    Assumed,
}

/// The value of a constant, with its source.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantValue {
    /// The value, in the unit that the constant's name ends with.
    pub value: f64,
    /// The lowest and the highest measurement, if that is known.
    pub interval: Option<[f64; 2]>,
    /// The source of the value.
    pub source: Source,
}

/// The constants that are known, and where they were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constants {
    /// The version of the program that measured.
    pub program: String,
    /// The name of the processor on which it measured.
    pub processor: String,
    values: BTreeMap<Constant, ConstantValue>,
    /// Constants of another version, with that version.
    outdated: BTreeMap<Constant, u64>,
}

/// The reason that constants cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstantError {
    /// The file is not a calibration file, or damaged.
    #[error("not a calibration file: {0}")]
    File(String),
    /// The file has another format.
    #[error("the calibration file has format {found}, expected {expected}: measure again")]
    Format {
        /// The format of this version of the program.
        expected: u64,
        /// The format in the file.
        found: u64,
    },
    /// A constant was not measured.
    #[error("the constant {name} was not measured, and is not stated as an assumption")]
    Missing {
        /// The name of the constant.
        name: &'static str,
    },
    /// A constant was measured by a program with another definition of it.
    #[error("the constant {name} has version {found}, expected {expected}: measure again")]
    Version {
        /// The name of the constant.
        name: &'static str,
        /// The version of this program.
        expected: u64,
        /// The version in the file.
        found: u64,
    },
    /// The value of a constant is negative or not a number.
    #[error("the constant {name} is {found}, expected a non-negative number")]
    Value {
        /// The name of the constant.
        name: &'static str,
        /// The value in the file.
        found: String,
    },
    /// The interval of a constant does not contain its value.
    #[error("the interval of {name} is {found}, expected two numbers around {value}")]
    Interval {
        /// The name of the constant.
        name: &'static str,
        /// The value in the file.
        value: f64,
        /// The interval in the file.
        found: String,
    },
}

/// An array of two numbers.
fn interval(value: &Value) -> Option<[f64; 2]> {
    let [low, high] = value.as_array()?.as_slice() else { return None };
    low.as_f64().zip(high.as_f64()).map(|(low, high)| [low, high])
}

impl Constants {
    /// No constants yet, measured by this version of `program` on `processor`.
    pub fn new(program: &str, processor: &str) -> Self {
        let (program, processor) = (program.to_owned(), processor.to_owned());
        Self { program, processor, ..Self::default() }
    }

    /// Adds a measured constant; `how` describes the measurement.
    pub fn measured(&mut self, constant: Constant, value: f64, how: &str) {
        let source = Source::Measured(how.to_owned());
        self.values.insert(constant, ConstantValue { value, interval: None, source });
    }

    /// Adds a constant that was measured several times, with the lowest and the highest result.
    pub fn measured_between(
        &mut self,
        constant: Constant,
        value: f64,
        interval: [f64; 2],
        how: &str,
    ) {
        let source = Source::Measured(how.to_owned());
        self.values.insert(constant, ConstantValue { value, interval: Some(interval), source });
    }

    /// Sets a constant that the user states. It replaces a measured one.
    pub fn assume(&mut self, constant: Constant, value: f64) {
        let source = Source::Assumed;
        self.values.insert(constant, ConstantValue { value, interval: None, source });
    }

    /// Returns a constant with its source.
    ///
    /// # Errors
    /// If it is unknown, or of another version.
    pub fn get(&self, constant: Constant) -> Result<&ConstantValue, ConstantError> {
        if let Some(value) = self.values.get(&constant) {
            return Ok(value);
        }
        let name = constant.name();
        Err(match self.outdated.get(&constant) {
            Some(found) => {
                ConstantError::Version { name, expected: constant.version(), found: *found }
            }
            None => ConstantError::Missing { name },
        })
    }

    /// All constants that are known.
    pub fn iter(&self) -> impl Iterator<Item = (Constant, &ConstantValue)> {
        self.values.iter().map(|(constant, value)| (*constant, value))
    }

    /// The constants at the ends of their intervals: those that make a run fastest, and those that
    /// make it slowest. A constant without an interval keeps its value.
    pub fn bounds(&self) -> [Self; 2] {
        let at = |slowest: bool| {
            let mut out = self.clone();
            for (constant, found) in &mut out.values {
                if let Some([low, high]) = found.interval.take() {
                    // The highest times are the slowest, and so is the lowest rate.
                    let high_end = slowest != (*constant == Constant::FullNodeRate);
                    found.value = if high_end { high } else { low };
                }
            }
            out
        };
        [at(false), at(true)]
    }

    /// The constants that are not known.
    pub fn absent(&self) -> Vec<Constant> {
        Constant::ALL.iter().copied().filter(|c| !self.values.contains_key(c)).collect()
    }

    /// Returns the measured constants as a calibration file.
    pub fn to_json(&self) -> Value {
        let constants: Map<String, Value> = (self.values.iter())
            .filter_map(|(constant, value)| match &value.source {
                Source::Measured(how) => {
                    let mut entry = json!({
                        "value": value.value, "version": constant.version(), "how": how,
                    });
                    if let Some(interval) = value.interval {
                        entry["interval"] = json!(interval);
                    }
                    Some((constant.name().to_owned(), entry))
                }
                // The file is a record of measurements: assumptions belong in a cluster file.
                Source::Assumed => None,
            })
            .collect();
        json!({
            "format": FORMAT, "program": self.program, "processor": self.processor,
            "constants": constants,
        })
    }

    /// Reads a calibration file. Constants of another version count as not measured; names that
    /// this version does not know are ignored, because a later one may measure more.
    ///
    /// # Errors
    /// If the text is not a calibration file, or has another format or an invalid value.
    pub fn from_json(text: &str) -> Result<Self, ConstantError> {
        let file = |why: &dyn std::fmt::Display| ConstantError::File(why.to_string());
        let root: Value = serde_json::from_str(text).map_err(|e| file(&e))?;
        let found = root["format"].as_u64().ok_or_else(|| file(&"it has no number \"format\""))?;
        if found != FORMAT {
            return Err(ConstantError::Format { expected: FORMAT, found });
        }
        let string = |key: &str| root[key].as_str().unwrap_or("unknown").to_owned();
        let mut out = Self::new(&string("program"), &string("processor"));
        let constants = root["constants"].as_object();
        for (name, entry) in constants.ok_or_else(|| file(&"it has no object \"constants\""))? {
            let Some(constant) = Constant::named(name) else { continue };
            let version = entry["version"].as_u64().unwrap_or(0);
            if version != constant.version() {
                // Kept, so that the error asks for a new measurement and not for a missing one.
                out.outdated.insert(constant, version);
                continue;
            }
            let invalid = || ConstantError::Value {
                name: constant.name(),
                found: entry["value"].to_string(),
            };
            let value = (entry["value"].as_f64())
                .filter(|value| constant.allows(*value))
                .ok_or_else(invalid)?;
            let how = entry["how"].as_str().unwrap_or("unknown");
            match interval(&entry["interval"]) {
                _ if entry["interval"].is_null() => out.measured(constant, value, how),
                Some([low, high])
                    if low <= value
                        && value <= high
                        && constant.allows(low)
                        && high.is_finite() =>
                {
                    out.measured_between(constant, value, [low, high], how);
                }
                _ => {
                    let (name, found) = (constant.name(), entry["interval"].to_string());
                    return Err(ConstantError::Interval { name, value, found });
                }
            }
        }
        Ok(out)
    }
}

impl Constant {
    /// Reports whether a value is possible. A rate of zero would make times infinite.
    pub(super) fn allows(self, value: f64) -> bool {
        value.is_finite() && (value > 0.0 || value == 0.0 && self != Self::FullNodeRate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_survives_writing_and_reading() {
        let mut constants = Constants::new("0.1.0", "a processor");
        for (i, constant) in Constant::ALL.iter().enumerate() {
            let value = 1e-6 * (i + 1) as f64;
            match i % 2 {
                0 => constants.measured(*constant, value, "a test"),
                _ => {
                    let interval = [0.5 * value, 2.0 * value];
                    constants.measured_between(*constant, value, interval, "a test");
                }
            }
        }
        assert!(constants.absent().is_empty());
        assert_eq!(Constants::from_json(&constants.to_json().to_string()), Ok(constants));
    }

    #[test]
    fn the_bounds_are_the_ends_of_intervals() {
        let mut constants = Constants::new("0.1.0", "a processor");
        constants.measured_between(Constant::HashByte, 2.0, [1.0, 3.0], "a test");
        constants.measured_between(Constant::FullNodeRate, 0.8, [0.7, 0.9], "a test");
        constants.assume(Constant::CommitWire, 5.0);
        let of = |constants: &Constants, constant| constants.get(constant).unwrap().value;
        let [fast, slow] = constants.bounds();
        let ends = |constant| [of(&fast, constant), of(&slow, constant)];
        assert_eq!(ends(Constant::HashByte), [1.0, 3.0]);
        assert_eq!(ends(Constant::FullNodeRate), [0.9, 0.7], "a high rate is fast");
        assert_eq!(ends(Constant::CommitWire), [5.0, 5.0]);
    }

    #[test]
    fn an_interval_contains_its_value() {
        let mut constants = Constants::new("0.1.0", "a processor");
        constants.measured_between(Constant::HashByte, 2.0, [1.0, 3.0], "a test");
        let text = constants.to_json().to_string();
        assert!(Constants::from_json(&text).is_ok());
        for wrong in ["[2.5,3.0]", "[-1.0,3.0]", "[1.0]", "1.0", "[1.0,\"3\"]"] {
            let error = Constants::from_json(&text.replace("[1.0,3.0]", wrong)).unwrap_err();
            assert!(matches!(error, ConstantError::Interval { .. }), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_was_not_measured_is_an_error_that_names_it() {
        let mut constants = Constants::new("0.1.0", "a processor");
        constants.measured(Constant::HashByte, 1e-9, "a test");
        let name = Constant::CommitWire.name();
        assert_eq!(constants.get(Constant::CommitWire), Err(ConstantError::Missing { name }));
        // The same holds for a constant of another version.
        let text = constants.to_json().to_string().replace("\"version\":1", "\"version\":7");
        let old = Constants::from_json(&text).unwrap();
        let error = old.get(Constant::HashByte).unwrap_err().to_string();
        assert_eq!(
            error,
            "the constant hash_byte_seconds has version 7, expected 1: measure again"
        );
        // What the user states takes its place.
        constants.assume(Constant::CommitWire, 2e-6);
        assert_eq!(constants.get(Constant::CommitWire).unwrap().source, Source::Assumed);
        assert!(!constants.to_json().to_string().contains(name), "assumptions are not written");
    }

    #[test]
    fn damaged_files_are_refused() {
        let value = r#"{"format":1,"constants":{"hash_byte_seconds":{"value":-1,"version":1}}}"#;
        for text in ["", "[]", "{}", r#"{"format":2}"#, r#"{"format":1}"#, value] {
            assert!(Constants::from_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn designs_need_only_what_they_use() {
        let flat = Constant::of_design(&Design::FLAT);
        assert!(flat.contains(&Constant::DecodeG1Checked));
        assert!(!flat.contains(&Constant::EncodeOwnJob));
        let tree = Constant::of_design(&Design::TREE);
        assert!(tree.contains(&Constant::EncodeOwnJob));
        assert!(!tree.contains(&Constant::DecodeG1Checked));
    }
}
