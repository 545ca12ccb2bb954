//! The program: its name, and the circuits that it offers.

use crate::application::{Application, OfType, OpenCircuit};
use crate::hints::explain;
use crate::imported::{self, ImportedCircuits, is_path};
use crate::machine::VmCircuits;
use crate::options;
use hekaton_circuit::CircuitError;
use hekaton_circuit::named::{
    Description, Family, InputFile, NamedCircuit, ParameterError, ParameterMap,
};
use hekaton_terminal::exit::{self, Failure, OrFail};
use std::marker::PhantomData;
use std::path::Path;

/// The command line for some circuits: setup, proving on threads and on MPI ranks, verification, checks,
/// estimates and reports. The `main` of such a program has three lines:
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

/// The circuits that every program has. No list shows them, because they are not chosen by name: `import` and
/// `vm` make their keys, and keys name them.
static BUILT_IN: [&dyn Application; 2] = [&ImportedCircuits, &VmCircuits];

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let circuits: Vec<&str> = self.descriptions().iter().map(|d| d.name).collect();
        f.debug_struct("App").field("name", &self.name).field("circuits", &circuits).finish()
    }
}

impl App {
    /// A command line without circuits. Help texts and hints use the name of the executable.
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
        let own = self.applications.iter().map(|application| &**application);
        // Built-in ones first: keys made by `import` must never open as a program's circuit of the same name.
        let mut all = BUILT_IN.into_iter().chain(own);
        all.find(|application| application.description().name == name)
    }

    /// The circuit of a command, for an input if there is one: its name, the circuit, and all of its
    /// parameters, including those that were not given.
    pub(crate) fn choose(
        &self,
        options: &options::Circuit,
        input: Option<&InputFile>,
    ) -> Result<(String, Box<dyn OpenCircuit>, ParameterMap), Failure> {
        if let Some(path) = options.circuit.as_ref().filter(|name| is_path(name)) {
            if let Some((name, _)) = options.parameters.parameters.first() {
                let why = format!("-p {name}: imported circuits have no parameters");
                return Err(Failure::new(exit::USAGE, why));
            }
            let (circuit, parameters) = imported::open(Path::new(path))?;
            return Ok((imported::NAME.to_owned(), circuit, parameters));
        }
        let name = self.name_of(options)?;
        let opened = self.open(&name, &options.parameters.map(), input);
        let (circuit, parameters) = opened.map_err(|e| explain(&*e)).or_fail(exit::USAGE)?;
        Ok((name, circuit, parameters))
    }

    /// The name of the circuit that a command works with.
    pub(crate) fn name_of(&self, options: &options::Circuit) -> Result<String, Failure> {
        match (&options.circuit, &self.applications[..]) {
            (Some(name), _) => Ok(name.clone()),
            // A program with one circuit need not ask for its name.
            (None, [only]) => Ok(only.description().name.to_owned()),
            (None, _) => {
                let why = format!("name the circuit; this program has {}", self.known());
                Err(Failure::new(exit::USAGE, why))
            }
        }
    }

    /// The family of the circuit of this name for inputs of up to `bytes` bytes, and the parameters that all
    /// of its circuits share.
    pub(crate) fn family(
        &self,
        name: &str,
        given: &ParameterMap,
        bytes: u64,
    ) -> Result<(Family<Box<dyn OpenCircuit>>, ParameterMap), Failure> {
        if is_path(name) {
            let why = "--up-to: an imported circuit has one size, so its keys are not a family";
            return Err(Failure::new(exit::USAGE, why));
        }
        let application = self.require(name).map_err(|e| explain(&e)).or_fail(exit::USAGE)?;
        application.family(given, bytes).map_err(|e| explain(&*e)).or_fail(exit::USAGE)
    }

    /// A circuit by name, with its parameters. Parameters that are not given have their defaults or
    /// follow from the input.
    pub(crate) fn open(
        &self,
        name: &str,
        given: &ParameterMap,
        input: Option<&InputFile>,
    ) -> Result<(Box<dyn OpenCircuit>, ParameterMap), CircuitError> {
        self.require(name)?.open(given, input)
    }

    /// Looks up a circuit by a name that the user chose.
    fn require(&self, name: &str) -> Result<&dyn Application, ParameterError> {
        self.get(name).ok_or_else(|| ParameterError::NoSuchCircuit {
            name: name.to_owned(),
            known: self.known(),
        })
    }

    fn known(&self) -> String {
        self.descriptions().iter().map(|d| d.name).collect::<Vec<_>>().join(", ")
    }
}
