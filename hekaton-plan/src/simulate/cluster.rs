//! The machines of a site: their number, network, file system, variance and price.

use super::constants::Constant;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// The version of the cluster file's format.
const FORMAT: i64 = 1;

/// The machines on which a run is predicted. None of these values is measured: they describe a
/// site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// The total number of cores, each with one single-threaded prover.
    pub cores: u64,
    /// The number of provers per rank.
    pub provers_per_rank: u64,
    /// The number of cores per node.
    pub cores_per_node: u64,
    /// The latency of a message, in seconds.
    pub latency: f64,
    /// The mean wait until the transport looks for messages again, in seconds.
    pub nap: f64,
    /// The bandwidth of a node's link, in bytes per second.
    pub bandwidth: f64,
    /// Processor time of a message on each side (frame, digest, channel), in seconds.
    pub message: f64,
    /// The bandwidth of the shared file system for all nodes together, in bytes per second.
    pub file_system: f64,
    /// The bandwidth of the shared file system for one node, in bytes per second.
    pub file_system_per_node: f64,
    /// The time that each level of nodes adds when keys go from node to node, in seconds.
    pub key_tree_step: f64,
    /// The standard deviation of the logarithm of a job's time.
    pub job_sigma: f64,
    /// The standard deviation of the logarithm of a rank's speed.
    pub rank_sigma: f64,
    /// The share of ranks that are 1.3 times slower, from 0 to 1.
    pub slow_rank_share: f64,
    /// The mean time between failures of a node, in seconds.
    pub node_mtbf: f64,
    /// The time from a lost node until the job runs again, in seconds.
    pub requeue: f64,
    /// The price of a core for an hour, in US dollars.
    pub price: f64,
}

impl Default for Cluster {
    /// One core of a cluster with nodes of 128 cores and InfiniBand. The paper states the price;
    /// the other values are assumptions.
    fn default() -> Self {
        Self {
            cores: 1,
            provers_per_rank: 32,
            cores_per_node: 128,
            latency: 5e-6,
            nap: 50e-6,
            bandwidth: 10e9,
            message: 6e-6,
            file_system: 20e9,
            file_system_per_node: 2.5e9,
            key_tree_step: 0.01,
            job_sigma: 0.03,
            rank_sigma: 0.015,
            slow_rank_share: 0.002,
            node_mtbf: 5.0 * 365.0 * 86400.0,
            requeue: 90.0,
            price: 0.00232,
        }
    }
}

/// The kind of a key of the file, with access to its field.
#[derive(Clone, Copy)]
enum Field {
    /// A whole number above zero.
    Count(fn(&mut Cluster) -> &mut u64),
    /// A number above zero.
    Positive(fn(&mut Cluster) -> &mut f64),
    /// A number that may be zero.
    NonNegative(fn(&mut Cluster) -> &mut f64),
    /// A number from 0 to 1.
    Share(fn(&mut Cluster) -> &mut f64),
}

/// The keys of the file.
const KEYS: [(&str, Field); 15] = [
    ("provers_per_rank", Field::Count(|c| &mut c.provers_per_rank)),
    ("cores_per_node", Field::Count(|c| &mut c.cores_per_node)),
    ("latency_seconds", Field::NonNegative(|c| &mut c.latency)),
    ("nap_seconds", Field::NonNegative(|c| &mut c.nap)),
    ("bandwidth_bytes_per_second", Field::Positive(|c| &mut c.bandwidth)),
    ("message_seconds", Field::NonNegative(|c| &mut c.message)),
    ("file_system_bytes_per_second", Field::Positive(|c| &mut c.file_system)),
    ("file_system_bytes_per_second_per_node", Field::Positive(|c| &mut c.file_system_per_node)),
    ("key_tree_step_seconds", Field::NonNegative(|c| &mut c.key_tree_step)),
    ("job_sigma", Field::NonNegative(|c| &mut c.job_sigma)),
    ("rank_sigma", Field::NonNegative(|c| &mut c.rank_sigma)),
    ("slow_rank_share", Field::Share(|c| &mut c.slow_rank_share)),
    ("node_mtbf_seconds", Field::Positive(|c| &mut c.node_mtbf)),
    ("requeue_seconds", Field::NonNegative(|c| &mut c.requeue)),
    ("usd_per_core_hour", Field::NonNegative(|c| &mut c.price)),
];

/// A cluster file: the statements of a site about its machines, and its assumptions for constants that were
/// not measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterFile {
    /// The cluster, with the default for each key that the file does not state.
    pub cluster: Cluster,
    /// The keys that the file states.
    pub stated: BTreeSet<String>,
    /// The constants that the file states under `[assumed]`.
    pub assumed: BTreeMap<Constant, f64>,
}

/// The reason that a cluster cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The text is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// The file has another format, or none.
    #[error("expected format = {expected}, found {found}")]
    Format {
        /// The format of this version of the program.
        expected: i64,
        /// The format in the file.
        found: String,
    },
    /// The file has a key that is unknown.
    #[error("unknown key {key}; known keys: {}", .known.join(", "))]
    UnknownKey {
        /// The key.
        key: String,
        /// All keys that are known in its place.
        known: Vec<&'static str>,
    },
    /// A value does not meet the requirement of its key.
    #[error("{key} = {found}: expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value in the file.
        found: String,
        /// The requirement of the key.
        expected: &'static str,
    },
    /// The cores cannot be divided into full ranks.
    #[error(
        "{cores} cores cannot be divided into ranks of {provers} provers: use a multiple, or state \
         another provers_per_rank in the cluster file"
    )]
    Ranks {
        /// The number of cores.
        cores: u64,
        /// The number of provers per rank.
        provers: u64,
    },
}

/// An integer or a float as a number.
fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|x| x as f64))
}

impl Field {
    fn set(self, cluster: &mut Cluster, key: &str, value: &Value) -> Result<(), ClusterError> {
        let wrong = |expected| ClusterError::Value {
            key: key.to_owned(),
            found: value.to_string(),
            expected,
        };
        let real = |expected, allowed: fn(f64) -> bool| {
            number(value).filter(|x| x.is_finite() && allowed(*x)).ok_or_else(|| wrong(expected))
        };
        match self {
            Self::Count(field) => {
                let count = (value.as_integer())
                    .and_then(|x| u64::try_from(x).ok())
                    .filter(|x| (1..=1 << 32).contains(x));
                *field(cluster) = count.ok_or_else(|| wrong("a whole number above 0"))?;
            }
            Self::Positive(field) => *field(cluster) = real("a number above 0", |x| x > 0.0)?,
            Self::NonNegative(field) => {
                *field(cluster) = real("a number that is not negative", |x| x >= 0.0)?;
            }
            Self::Share(field) => {
                *field(cluster) = real("a number from 0 to 1", |x| (0.0..=1.0).contains(&x))?;
            }
        }
        Ok(())
    }

    fn get(self, mut cluster: Cluster) -> f64 {
        match self {
            Self::Count(field) => *field(&mut cluster) as f64,
            Self::Positive(field) | Self::NonNegative(field) | Self::Share(field) => {
                *field(&mut cluster)
            }
        }
    }
}

impl Cluster {
    /// The number of provers of a rank, as a number of items.
    pub(super) fn provers(&self) -> usize {
        usize::try_from(self.provers_per_rank).expect("a cluster file has counts of up to 2^32")
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u64 {
        self.cores.div_ceil(self.provers_per_rank.max(1)).max(1)
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u64 {
        self.cores.div_ceil(self.cores_per_node.max(1)).max(1)
    }

    /// Returns the cluster with this number of cores. With fewer cores than a rank has provers, the
    /// only rank has one prover per core.
    ///
    /// # Errors
    /// If the cores cannot be divided into full ranks.
    pub fn with_cores(self, cores: u64) -> Result<Self, ClusterError> {
        let provers = self.provers_per_rank.min(cores).max(1);
        if cores == 0 || !cores.is_multiple_of(provers) {
            return Err(ClusterError::Ranks { cores, provers });
        }
        Ok(Self { cores, provers_per_rank: provers, ..self })
    }

    /// The values of all keys of a cluster file, in its units.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, f64)> {
        KEYS.iter().map(|(name, field)| (*name, field.get(*self)))
    }
}

impl ClusterFile {
    /// Reads a cluster file. Keys that it does not state keep their defaults.
    ///
    /// # Errors
    /// If the text is not TOML, has another format or an unknown key, or a value that its key does
    /// not allow.
    pub fn from_toml(text: &str) -> Result<Self, ClusterError> {
        let table: Table =
            text.parse().map_err(|e: toml::de::Error| ClusterError::Syntax(e.to_string()))?;
        // The format comes first: another one may have other keys.
        let mut out = Self::default();
        let format = table.get("format");
        if format.and_then(Value::as_integer) != Some(FORMAT) {
            let found = format.map_or_else(|| "no format".to_owned(), Value::to_string);
            return Err(ClusterError::Format { expected: FORMAT, found });
        }
        for (key, value) in &table {
            match (key.as_str(), KEYS.iter().find(|(name, _)| name == key)) {
                ("format", _) => {}
                ("assumed", _) => out.assume(value)?,
                (_, Some((_, field))) => {
                    field.set(&mut out.cluster, key, value)?;
                    out.stated.insert(key.clone());
                }
                // A misspelled key would leave a default in its place, unnoticed.
                (_, None) => {
                    let ends = ["format", "assumed"];
                    let known = KEYS.iter().map(|(name, _)| *name).chain(ends).collect();
                    return Err(ClusterError::UnknownKey { key: key.clone(), known });
                }
            }
        }
        Ok(out)
    }

    fn assume(&mut self, value: &Value) -> Result<(), ClusterError> {
        let wrong = |key: String, found: &Value, expected| ClusterError::Value {
            key,
            found: found.to_string(),
            expected,
        };
        let table =
            (value.as_table()).ok_or_else(|| wrong("assumed".to_owned(), value, "a table"))?;
        for (name, value) in table {
            let key = format!("assumed.{name}");
            let Some(constant) = Constant::named(name) else {
                let known = Constant::ALL.iter().map(|constant| constant.name()).collect();
                return Err(ClusterError::UnknownKey { key, known });
            };
            let allowed = number(value).filter(|x| constant.allows(*x));
            let expected = "a number that is possible for this constant";
            self.assumed.insert(constant, allowed.ok_or_else(|| wrong(key, value, expected))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changes_what_it_states() {
        let text = "format = 1\nprovers_per_rank = 16\nlatency_seconds = 1e-6\nrequeue_seconds = 5\n\
                    [assumed]\nencode_own_job_seconds = 1.5e-6\n";
        let file = ClusterFile::from_toml(text).unwrap();
        let expected =
            Cluster { provers_per_rank: 16, latency: 1e-6, requeue: 5.0, ..Cluster::default() };
        assert_eq!(file.cluster, expected);
        assert_eq!(file.stated.len(), 3);
        assert_eq!(file.assumed, BTreeMap::from([(Constant::EncodeOwnJob, 1.5e-6)]));
        let default = ClusterFile::from_toml("format = 1").unwrap();
        assert_eq!(default, ClusterFile::default());
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| ClusterFile::from_toml(text).unwrap_err().to_string();
        let unknown = error("format = 1\nlatency = 1e-6\n");
        assert!(unknown.starts_with("unknown key latency; known keys: provers_per_rank, "));
        assert!(unknown.contains("latency_seconds"));
        let assumed = error("format = 1\n[assumed]\nwire = 1\n");
        assert!(assumed.contains("unknown key assumed.wire") && assumed.contains("commit_wire"));
        assert_eq!(error("latency_seconds = 1"), "expected format = 1, found no format");
        assert_eq!(error("format = 2"), "expected format = 1, found 2");
        for line in [
            "cores_per_node = 0",
            "cores_per_node = 1.5",
            "bandwidth_bytes_per_second = 0",
            "nap_seconds = -1",
            "nap_seconds = nan",
            "nap_seconds = \"1\"",
            "slow_rank_share = 2",
            "assumed = 1",
            "assumed = { full_node_rate_ratio = 0 }",
        ] {
            let error = error(&format!("format = 1\n{line}\n"));
            assert!(error.contains(": expected "), "{line}: {error}");
        }
        assert!(matches!(ClusterFile::from_toml("format ="), Err(ClusterError::Syntax(_))));
    }

    #[test]
    fn ranks_are_full() {
        let cluster = Cluster::default();
        assert_eq!(cluster.with_cores(4096).unwrap().ranks(), 128);
        let small = cluster.with_cores(3).unwrap();
        assert_eq!((small.ranks(), small.provers_per_rank, small.nodes()), (1, 3, 1));
        for cores in [0, 33] {
            assert!(matches!(cluster.with_cores(cores), Err(ClusterError::Ranks { .. })));
        }
    }
}
