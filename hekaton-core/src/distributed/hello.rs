//! The handshake: each rank describes itself, and certain facts must be equal on all ranks
//! (spec: distributed#handshake).

use super::RankError;
use super::encoding::Writer;
use crate::encoding::{DecodeError, Reader};
use crate::keys::{CircuitMismatch, ProverKeys, check_circuit};
use crate::pool::LocalEngine;
use hekaton_circuit::PreparedCircuit;

/// The description that a rank sends before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The name of its machine.
    pub host: String,
    /// The number of subcircuits that it proves at the same time.
    pub provers: usize,
    /// Facts that must be equal on all ranks: name and value.
    pub facts: Vec<(String, String)>,
    /// Facts that may differ but that a user should know: name and value.
    pub notes: Vec<(String, String)>,
    /// Facts that must be equal on all ranks and that messages do not show: name, and a digest.
    pub secrets: Vec<(String, String)>,
}

impl Hello {
    /// Describes a rank with these keys, after a check that they belong to its circuit's code. Its
    /// facts are the digest of the verifying key, and those of the layout and of the constraints
    /// that its own code has.
    ///
    /// # Errors
    /// When the keys are not those of the circuit.
    pub fn new(
        circuit: &PreparedCircuit<'_>,
        keys: &ProverKeys,
        provers: usize,
        pool: &LocalEngine,
    ) -> Result<Self, CircuitMismatch> {
        check_circuit(circuit, keys, pool, provers)?;
        let facts = vec![("verifying key".to_owned(), hex::encode(keys.verifying.digest()))];
        let (notes, secrets) = (Vec::new(), Vec::new());
        // After the check, layout and types are those of the keys.
        let hello = Self { host: crate::system::host(), provers, facts, notes, secrets }
            .fact("layout", hex::encode(keys.verifying.layout));
        let types = keys.verifying.types.iter();
        Ok(types.fold(hello, |hello, kind| {
            hello.fact(&format!("digest of type '{}'", kind.name), hex::encode(kind.r1cs))
        }))
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl ToString) -> Self {
        self.facts.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a fact whose value no message shows, because it could confirm a guess. Ranks get a digest
    /// of it.
    #[must_use]
    pub fn secret(mut self, name: &str, value: &[u8]) -> Self {
        let digest = blake3::derive_key("hekaton-v4 secret fact of a rank", value);
        self.secrets.push((name.to_owned(), hex::encode(digest)));
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, name: &str, value: impl ToString) -> Self {
        self.notes.push((name.to_owned(), value.to_string()));
        self
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let list = |out: Writer, pairs: &[(String, String)]| {
            pairs
                .iter()
                .fold(out.count(pairs.len()), |out, (name, value)| out.text(name).text(value))
        };
        let out = Writer::default().text(&self.host).count(self.provers);
        [&self.facts, &self.notes, &self.secrets].into_iter().fold(out, |out, l| list(out, l)).0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let host = reader.text("host")?;
        let provers = reader.u32("provers")? as usize;
        // Scheduling divides by this number.
        if provers == 0 || provers > 1 << 16 {
            return Err(reader.invalid(
                "provers",
                4,
                format_args!("{provers} provers, expected 1 to 65536"),
            ));
        }
        let mut list = || -> Result<Vec<(String, String)>, DecodeError> {
            let n = reader.count(8, "number of facts")?;
            (0..n).map(|_| Ok((reader.text("name")?, reader.text("value")?))).collect()
        };
        let (facts, notes, secrets) = (list()?, list()?, list()?);
        reader.finish()?;
        Ok(Self { host, provers, facts, notes, secrets })
    }
}

/// Compares the descriptions of all ranks with that of rank 0, and returns the differences that are
/// allowed.
///
/// # Errors
/// All differences in facts.
pub(crate) fn compare(own: &Hello, others: &[(usize, Hello)]) -> Result<Vec<String>, RankError> {
    let differences = |list: &dyn Fn(&Hello) -> Vec<(String, String)>| {
        let mut out = Vec::new();
        for (rank, hello) in others {
            let (expected, found) = (list(own), list(hello));
            for (name, value) in &expected {
                match found.iter().find(|(n, _)| n == name) {
                    Some((_, v)) if v == value => {}
                    Some((_, v)) => {
                        out.push(format!(
                            "rank {rank} on {}: {name} is {v}, on rank 0 ({}) {value}",
                            hello.host, own.host
                        ));
                    }
                    None => out
                        .push(format!("rank {rank} on {} does not report its {name}", hello.host)),
                }
            }
        }
        out
    };
    let mut hard = differences(&|hello| hello.facts.clone());
    for (rank, hello) in others {
        let other = own.secrets.iter().find(|secret| !hello.secrets.contains(secret));
        if let Some((name, _)) = other {
            hard.push(format!(
                "rank {rank} on {} has another {name} than rank 0 ({})",
                hello.host, own.host
            ));
        }
    }
    if !hard.is_empty() {
        return Err(RankError::Handshake { differences: hard });
    }
    Ok(differences(&|hello| hello.notes.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_the_rank() {
        let hello = |build: &str, cpu: &str| {
            let (facts, notes, secrets) = (Vec::new(), Vec::new(), Vec::new());
            let hello = Hello { host: "node1".into(), provers: 2, facts, notes, secrets };
            hello.fact("build", build).note("processor", cpu).secret("input", cpu.as_bytes())
        };
        let own = hello("a", "x");
        assert_eq!(Hello::decode(&own.encode()), Ok(own.clone()));
        assert_eq!(compare(&own, &[(1, hello("a", "x"))]), Ok(vec![]));
        let with_secret = |cpu: &str| Hello { secrets: own.secrets.clone(), ..hello("a", cpu) };
        let notes = compare(&own, &[(1, with_secret("y")), (2, hello("a", "x"))]).unwrap();
        assert_eq!(notes, ["rank 1 on node1: processor is y, on rank 0 (node1) x"]);
        let error = compare(&own, &[(1, hello("a", "x")), (2, hello("b", "x"))]).unwrap_err();
        assert!(
            error.to_string().contains("rank 2 on node1: build is b, on rank 0 (node1) a"),
            "{error}"
        );
        let error = compare(&own, &[(2, hello("a", "other"))]).unwrap_err().to_string();
        assert!(error.contains("rank 2 on node1 has another input than rank 0 (node1)"), "{error}");
        assert!(own.secrets.iter().all(|(_, digest)| !error.contains(digest)), "{error}");
        let silent = Hello { facts: Vec::new(), ..own.clone() };
        assert!(
            compare(&own, &[(3, silent)])
                .unwrap_err()
                .to_string()
                .contains("rank 3 on node1 does not report its build")
        );
    }
}
