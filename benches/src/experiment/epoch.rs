//! Inputs of figure 9: an epoch of a directory.

use super::failure::{FAILED, Failure, USAGE};
use crate::directory::{batch as updates, tree};
use hekaton_directory::{Profile, Witness};
use std::collections::BTreeMap;

/// The circuit that proves epochs in steps; the other one proves each update by its own.
const STEPS: &str = "epochs";

/// An epoch of a directory, and the circuit that proves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch<'a> {
    /// The name of its point, for errors.
    pub(crate) point: &'a str,
    pub(crate) circuit: &'a str,
    /// The circuit's own parameters.
    pub(crate) options: &'a BTreeMap<String, String>,
    /// Labels before it, and updates.
    pub(crate) labels: u64,
    pub(crate) batch: u64,
}

impl Epoch<'_> {
    /// The witness, as the server of a directory writes it.
    pub(crate) fn input(&self) -> Result<Vec<u8>, Failure> {
        Ok(self.witness()?.encode())
    }

    /// The parameter of the circuit that follows from the epoch.
    pub(crate) fn parameter(&self) -> Result<String, Failure> {
        if self.circuit != STEPS {
            return Ok(format!("changes={}", self.batch));
        }
        let given = self.options.get("steps").and_then(|steps| steps.parse::<usize>().ok());
        let each = given.filter(|each| *each > 0).ok_or_else(|| {
            let why = "the variant needs \"steps\" in its options";
            Failure::new(USAGE, format!("{}: {why}", self.point))
        })?;
        Ok(format!("subcircuits={}", self.witness()?.steps.len().div_ceil(each)))
    }

    fn witness(&self) -> Result<Witness, Failure> {
        let failed = |why: String| Failure::new(FAILED, format!("{}: {why}", self.point));
        let name =
            match self.circuit {
                STEPS => self.options.get("profile").map(String::as_str).ok_or_else(|| {
                    failed("the variant needs \"profile\" in its options".to_owned())
                })?,
                _ => Profile::Full.name(),
            };
        let known = Profile::ALL.into_iter().find(|known| known.name() == name);
        let profile = known.ok_or_else(|| failed(format!("unknown profile {name:?}")))?;
        let made = || -> Result<Witness, Box<dyn std::error::Error + Send + Sync>> {
            let [labels, batch] = [self.labels, self.batch].map(usize::try_from);
            let (labels, batch) = (labels?, batch?);
            let before = tree(profile, labels)?;
            let steps = before.steps(&updates(labels, batch)?)?;
            let (epoch, root) = (before.epoch(), before.root());
            Ok(Witness { profile, epoch, root, chain: [1; 32], steps })
        };
        made().map_err(|e| failed(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Experiment;
    use super::*;
    use std::path::Path;

    #[test]
    fn an_epoch_has_its_updates_and_fits_its_circuit() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../paper-results/experiments/fig9.toml");
        let fig9 = Experiment::read(&file).unwrap_or_else(|e| panic!("{}", e.message));
        let points = fig9.points("tiny").unwrap_or_else(|e| panic!("{}", e.message));
        let point = |id: &str| points.iter().find(|point| point.id == id).unwrap();
        for (id, profile, each) in [
            ("fig9.c2.compress.batch4", Profile::Compress, 2),
            ("fig9.c2.sha256.batch1", Profile::Sha256, 1),
        ] {
            let point = point(id);
            let input = point.input_bytes().unwrap_or_else(|e| panic!("{}", e.message));
            let witness = Witness::decode(&input).unwrap();
            assert_eq!((witness.profile, witness.epoch), (profile, 1));
            let subcircuits = witness.steps.len().div_ceil(each);
            let arguments = point.arguments().unwrap_or_else(|e| panic!("{}", e.message));
            let all = format!(
                "-p profile={} -p steps={each} -p subcircuits={subcircuits}",
                profile.name()
            );
            assert_eq!(arguments.join(" "), all);
        }
        let laptop = fig9.points("laptop").unwrap_or_else(|e| panic!("{}", e.message));
        let full = laptop.iter().find(|point| point.id == "fig9.c2.full.batch4").unwrap();
        assert_eq!(full.circuit, "epoch-full");
        let arguments = full.arguments().unwrap_or_else(|e| panic!("{}", e.message));
        assert_eq!(arguments.join(" "), "-p changes=4");
        assert!(laptop.iter().all(|point| point.id != "fig9.c2.full.batch16"));
    }
}
