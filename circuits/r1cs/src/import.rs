//! Imports a circuit: reads it, cuts it, writes a circuit directory, and checks what was written.

use crate::checker::{LocalRow, PartitionError, PartitionReport, check_partition};
use crate::directory::{BundleError, Source, Summary, WriteError, public_label, write};
use crate::error::FileError;
use crate::imported::Imported;
use crate::partition::{
    Choice, DoesNotFit, Occurrences, PartSizes, Plan, Price, Step, choose, one_part, part_sizes,
};
use crate::r1cs_file::R1csFile;
use crate::symbols::Symbols;
use crate::system::System;
use crate::templates::{Template, templates};
use hekaton_circuit::{LayoutError, Masking, PreparedCircuit};
use std::path::Path;

/// The reason why a circuit cannot be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The source, or the names of its wires, cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The circuit has no constraints.
    #[error(
        "the circuit has no constraints, so there is nothing to prove. circom's --O1 and --O2 remove \
         constraints that only copy signals; --O0 keeps them"
    )]
    Empty,
    /// No cut has parts that are small enough.
    #[error(transparent)]
    DoesNotFit(#[from] DoesNotFit),
    /// The directory cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The directory that was written cannot be read again.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The partition that was written has no layout.
    #[error("the partition has no layout: {0}; this is a bug in the partitioner")]
    Layout(LayoutError),
    /// The partition that was written is not the circuit.
    #[error("the partition differs from the circuit: {0}; this is a bug in the partitioner")]
    Partition(PartitionError),
}

impl From<LayoutError> for ImportError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl From<PartitionError> for ImportError {
    fn from(error: PartitionError) -> Self {
        Self::Partition(error)
    }
}

/// A circuit in one piece, to be cut.
#[derive(Debug)]
pub struct Monolith {
    source: Source,
    system: System,
    occurrences: Occurrences,
    symbols: Option<Symbols>,
}

impl Monolith {
    /// Reads a `.r1cs` file, and the names of wires from a `.sym` file. `progress` is called from time to time
    /// with the number of constraints read and the total.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if the circuit has no constraints.
    pub fn read(
        path: &Path,
        symbols: Option<&Path>,
        mut progress: impl FnMut(u32, u32),
    ) -> Result<Self, ImportError> {
        let file = R1csFile::open(path)?;
        let counts = file.counts();
        let names = symbols.map(|path| Symbols::read(path, counts.wires)).transpose()?;
        let system = file.read(|row| progress(row, counts.rows))?;
        let name = path.file_name().expect("a path that ends in `..` is not a regular file");
        let source = Source {
            // It is printed, and a control character could change what a terminal shows.
            name: name.to_string_lossy().replace(char::is_control, "?"),
            digest: hex::encode(file.digest()?),
            rows: counts.rows.into(),
            wires: counts.wires,
            outputs: counts.outputs,
            inputs: counts.inputs,
            private_inputs: file.private_inputs()?,
            without_wires: system.without_wires().to_vec(),
        };
        Self::new(source, system, names)
    }

    /// A system from elsewhere, for example [`system_of`](crate::system_of) an arkworks circuit.
    /// `name` and `digest` identify it, for people and for [`Imported`].
    ///
    /// # Errors
    /// Fails if the circuit has no constraints.
    pub fn of_system(name: &str, digest: [u8; 32], system: System) -> Result<Self, ImportError> {
        let source = Source {
            name: name.to_owned(),
            digest: hex::encode(digest),
            rows: (system.rows() + system.without_wires().len()) as u64,
            wires: system.wires(),
            // arkworks knows public inputs only.
            outputs: 0,
            inputs: system.public(),
            private_inputs: None,
            without_wires: system.without_wires().to_vec(),
        };
        Self::new(source, system, None)
    }

    fn new(source: Source, system: System, symbols: Option<Symbols>) -> Result<Self, ImportError> {
        if system.rows() == 0 {
            return Err(ImportError::Empty);
        }
        let occurrences = Occurrences::new(&system);
        Ok(Self { source, system, occurrences, symbols })
    }

    /// Returns the source of the circuit.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The constraints.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The names of wires, if a `.sym` file was read.
    pub fn symbols(&self) -> Option<&Symbols> {
        self.symbols.as_ref()
    }

    /// Describes what the circuit allows and its author probably did not intend: public wires that no constraint
    /// mentions.
    pub fn notices(&self) -> Vec<String> {
        let symbols = self.symbols.as_ref();
        let label = |wire| {
            let name = symbols.and_then(|symbols| symbols.name(wire));
            name.map_or_else(|| public_label(wire), str::to_owned)
        };
        let free = self.system.free_public_wires();
        crate::free_wires::notice(&free, &self.source, label).into_iter().collect()
    }

    /// The circom templates that repeat, from a `.sym` file: those with the most constraints first.
    ///
    /// # Errors
    /// If the file is not a `.sym` file of this circuit.
    pub fn templates(&self, symbols: &Path) -> Result<Vec<Template>, ImportError> {
        Ok(templates(symbols, &self.system, &self.occurrences)?)
    }

    /// Cuts it into parts of at most `most` rows.
    ///
    /// # Errors
    /// If a constraint and its wires are more than that.
    pub fn cut(&self, most: u64, step: impl FnMut(Step)) -> Result<Plan, ImportError> {
        Ok(Plan::new(&self.system, &self.occurrences, most, step)?)
    }

    /// Cuts it into parts of the size that costs least, by a price for parts.
    ///
    /// # Errors
    /// If no size has room for a constraint and its wires.
    pub fn choose(
        &self,
        price: impl Fn(&[PartSizes]) -> Price + Sync,
        step: impl FnMut(Step),
    ) -> Result<Choice, ImportError> {
        Ok(choose(&self.system, &self.occurrences, price, step)?)
    }

    /// The parts of a plan, as their price is counted from them.
    pub fn sizes(&self, plan: &Plan) -> Vec<PartSizes> {
        part_sizes(&self.system, &self.occurrences, &plan.parts)
    }

    /// The circuit in one part, as its price is counted from it.
    pub fn in_one_part(&self) -> PartSizes {
        one_part(&self.system, &self.occurrences)
    }

    /// Writes a cut as a circuit directory, reads it again, and checks it. Nothing is left at `path`
    /// if the check fails.
    ///
    /// # Errors
    /// If it cannot be written, or is not the circuit.
    pub fn write(
        &self,
        plan: &Plan,
        path: &Path,
    ) -> Result<(Summary, PartitionReport), ImportError> {
        self.write_with(plan, path, |_| {})
    }

    /// [`write`](Self::write), which calls `started` with the directory that it builds next to the
    /// final one: a program that exits early must remove it.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_with(
        &self,
        plan: &Plan,
        path: &Path,
        started: impl FnOnce(&Path),
    ) -> Result<(Summary, PartitionReport), ImportError> {
        // Before the work, and again when the result is renamed.
        crate::directory::check_free(path)?;
        let parent = hekaton_files::folder_of(path);
        let io = |error| WriteError::Io { path: parent.to_owned(), error };
        std::fs::create_dir_all(parent).map_err(io)?;
        // In the same folder, so that the last step is a rename within one file system.
        let building =
            tempfile::Builder::new().prefix(".hekaton-import-").tempdir_in(parent).map_err(io)?;
        started(building.path());
        let unchecked = building.path().join("circuit");
        let symbols = self.symbols.as_ref();
        let summary = write(&unchecked, self.source.clone(), plan.most, &plan.parts, symbols)?;
        // What was written, and not what is in memory: a mistake of the writer or of the partitioner must
        // not reach a prover.
        let report = self.check(&unchecked)?;
        crate::directory::rename(&unchecked, path)?;
        Ok((summary, report))
    }

    /// Checks that a circuit directory is this circuit.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, path: &Path) -> Result<PartitionReport, ImportError> {
        let imported = Imported::open(path)?;
        let found = &imported.directory().summary().source;
        // Outputs and inputs are one list of public wires for the checker; which is which matters to people
        // who read values.
        for (what, expected, found) in [
            ("public outputs", found.outputs, self.source.outputs),
            ("public inputs", found.inputs, self.source.inputs),
        ] {
            if expected != found {
                let (expected, found) = (expected.into(), found.into());
                return Err(PartitionError::Source { what, expected, found }.into());
            }
        }
        let prepared = PreparedCircuit::new(&imported)?;
        let wiring = prepared.layout().wiring(Masking::Unmasked);
        let directory = imported.directory();
        let rows = |kind| Ok(local_rows(&directory.rows(kind)?));
        let report = check_partition(&self.system, directory, &wiring, rows)?;
        // The checker reads no private inputs, on which verdicts of `check --unique` rest. Earlier versions did not write them.
        let of_source = self.source.private_inputs;
        if let Some(written) = found.private_inputs.filter(|written| of_source != Some(*written)) {
            let (what, expected) = ("private inputs", written.into());
            let found = of_source.map_or(0, u64::from);
            return Err(PartitionError::Source { what, expected, found }.into());
        }
        Ok(report)
    }
}

/// The rows of a type as the checker reads them.
fn local_rows(rows: &crate::partition::Rows) -> Vec<LocalRow> {
    let term = |[k, v]: &[u32; 2]| (rows.coefficients[*k as usize], *v as usize);
    rows.iter().map(|sides| sides.map(|side| side.iter().map(term).collect())).collect()
}
