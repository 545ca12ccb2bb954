//! The program: its name, and the circuits that it offers.

use crate::application::{Application, OfType, OpenCircuit, OpenFamily};
use crate::exit::{self, Failure, OrFail};
use crate::hints::explain;
use crate::imported::{self, ImportedCircuits, is_path};
use crate::options;
use crate::programs::{self, Programs};
use hekaton_circuit::CircuitError;
use hekaton_circuit::named::{Description, InputFile, NamedCircuit, ParameterError, ParameterMap};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// A program for some circuits: setup, proving on threads and on MPI ranks, verification, checks,
/// estimates and reports. Its `main` has three lines:
///
/// ```no_run
/// use hekaton_cli::App;
///
/// fn main() -> std::process::ExitCode {
///     App::new("chain").circuit::<hekaton_standard::Chain>().run()
/// }
/// ```
///
/// A program with one circuit does not ask for its name: `chain setup --keys DIR`.
pub struct App {
    name: &'static str,
    applications: Vec<Box<dyn Application>>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let circuits: Vec<&str> = self.descriptions().iter().map(|d| d.name).collect();
        f.debug_struct("App").field("name", &self.name).field("circuits", &circuits).finish()
    }
}

/// The circuit that a command works with.
pub(crate) struct Chosen {
    pub(crate) name: String,
    pub(crate) circuit: Box<dyn OpenCircuit>,
    /// All parameters, also those that were not given.
    pub(crate) parameters: ParameterMap,
    /// The circuit directory of an imported circuit.
    pub(crate) directory: Option<PathBuf>,
}

impl App {
    /// A program without circuits. The name is that of the executable, for help texts and hints.
    pub fn new(name: &'static str) -> Self {
        Self { name, applications: Vec::new() }
    }

    /// Adds a circuit.
    #[must_use]
    pub fn circuit<C: NamedCircuit>(mut self) -> Self {
        self.applications.push(Box::new(OfType::<C>(PhantomData)));
        self
    }

    /// The name of the program.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Descriptions of all circuits, in the order in which they were added.
    pub fn descriptions(&self) -> Vec<Description> {
        self.applications.iter().map(|application| application.description()).collect()
    }

    /// Looks up a circuit by name.
    pub(crate) fn get(&self, name: &str) -> Option<&dyn Application> {
        if name == imported::NAME {
            return Some(&ImportedCircuits);
        }
        if name == programs::NAME {
            return Some(&Programs);
        }
        self.applications
            .iter()
            .find(|application| application.description().name == name)
            .map(|a| &**a)
    }

    /// The circuit of a command, with its parameters, for an input if there is one.
    pub(crate) fn choose(
        &self,
        options: &options::Circuit,
        input: Option<&InputFile>,
    ) -> Result<Chosen, Failure> {
        if let Some(path) = options.circuit.as_ref().filter(|name| is_path(name)) {
            if let Some((name, _)) = options.parameters.parameters.first() {
                let why = format!("-p {name}: imported circuits have no parameters");
                return Err(Failure::new(exit::USAGE, why));
            }
            let (circuit, parameters) = imported::open(Path::new(path))?;
            let directory = Some(PathBuf::from(path));
            return Ok(Chosen { name: imported::NAME.to_owned(), circuit, parameters, directory });
        }
        let name = self.name_of(options)?;
        let opened = self.open(&name, &options.parameters.map(), input);
        let (circuit, parameters) = opened.map_err(|e| explain(&*e)).or_fail(exit::USAGE)?;
        Ok(Chosen { name, circuit, parameters, directory: None })
    }

    /// The name of the circuit that a command works with.
    fn name_of(&self, options: &options::Circuit) -> Result<String, Failure> {
        match (&options.circuit, &self.applications[..]) {
            (Some(name), _) => Ok(name.clone()),
            (None, [only]) => Ok(only.description().name.to_owned()),
            (None, _) => {
                let why = format!("name the circuit; this program has {}", self.known());
                Err(Failure::new(exit::USAGE, why))
            }
        }
    }

    /// The family of a command's circuit for inputs of up to `bytes` bytes, with the name of the
    /// circuit and the parameters that all circuits of the family share.
    pub(crate) fn family(
        &self,
        options: &options::Circuit,
        bytes: u64,
    ) -> Result<(String, OpenFamily, ParameterMap), Failure> {
        let name = self.name_of(options)?;
        if is_path(&name) {
            let why = "--up-to is for circuits of this program; an imported circuit has one size";
            return Err(Failure::new(exit::USAGE, why));
        }
        let application = self.get(&name).ok_or_else(|| ParameterError::NoSuchCircuit {
            name: name.clone(),
            known: self.known(),
        });
        let application = application.map_err(|e| explain(&e)).or_fail(exit::USAGE)?;
        let family = application.family(&options.parameters.map(), bytes);
        let (family, shared) = family.map_err(|e| explain(&*e)).or_fail(exit::USAGE)?;
        Ok((name, family, shared))
    }

    /// A circuit by name, with its parameters. Parameters that are not given have their defaults or
    /// follow from the input.
    pub(crate) fn open(
        &self,
        name: &str,
        given: &ParameterMap,
        input: Option<&InputFile>,
    ) -> Result<(Box<dyn OpenCircuit>, ParameterMap), CircuitError> {
        let application = self.get(name).ok_or_else(|| ParameterError::NoSuchCircuit {
            name: name.to_owned(),
            known: self.known(),
        })?;
        application.open(given, input)
    }

    fn known(&self) -> String {
        self.descriptions().iter().map(|d| d.name).collect::<Vec<_>>().join(", ")
    }
}
