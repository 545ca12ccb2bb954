//! The program: its name, and the circuits that it offers.

use crate::application::{Application, Imports, OfType, OpenCircuit};
use crate::hints::explain;
use crate::imported::{self, is_path};
use crate::options;
use clap::ArgMatches;
use hekaton_circuit::CircuitError;
use hekaton_circuit::named::{
    Description, Family, InputFile, NamedCircuit, ParameterError, ParameterMap,
};
use hekaton_terminal::exit::{self, Failure, OrFail};
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::path::Path;

/// The command line for some circuits: setup, proving on threads and on MPI ranks, verification, checks,
/// estimates and reports. The `main` of such a program has three lines:
///
/// ```no_run
/// use hekaton_app::App;
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
    products: Vec<Box<dyn Product>>,
    with_mpi: &'static str,
}

/// Commands of a program in addition to those of every program, with the circuits that they make keys for.
pub trait Product: Sync {
    /// Adds the commands to the command line.
    fn commands(&self, program: clap::Command) -> clap::Command;

    /// Runs the command that was given, if it is one of these. `matches` are those of the whole command line, and with `json` results
    /// are printed as JSON.
    fn run(&self, app: &App, matches: &ArgMatches, json: bool) -> Option<Result<(), Failure>>;

    /// The circuit that the commands make keys for. No list shows it, because it is not chosen by name: keys name it.
    fn circuit(&self) -> Option<&dyn Application> {
        None
    }

    /// The circuits from other tools, which are chosen by the paths of their directories.
    fn imports(&self) -> Option<&dyn Imports> {
        None
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let circuits: Vec<&str> = self.descriptions().iter().map(|d| d.name).collect();
        f.debug_struct("App").field("name", &self.name).field("circuits", &circuits).finish()
    }
}

/// The error for a family of an imported circuit.
const ONE_SIZE: &str = "--up-to: an imported circuit has one size, so its keys are not a family";

impl App {
    /// A command line without circuits. Help texts and hints use the name of the executable.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            applications: Vec::new(),
            products: Vec::new(),
            with_mpi: "cargo build --release --features hekaton-app/mpi",
        }
    }

    /// Adds commands with their circuits, for example `hekaton_cli::ImportedCircuits` for those of other tools.
    ///
    /// # Panics
    /// Panics if a circuit of the program has the name of the product's.
    #[must_use]
    pub fn with(mut self, product: impl Product + 'static) -> Self {
        let of_product = product.circuit().map(|circuit| circuit.description().name);
        let is_taken = |name| self.applications.iter().any(|it| it.description().name == name);
        assert!(
            !of_product.is_some_and(is_taken),
            "the keys of a product's circuit have this name"
        );
        self.products.push(Box::new(product));
        self
    }

    /// Sets the command that builds the program with MPI, for messages of a program without it
    /// [default: `cargo build --release --features hekaton-app/mpi`].
    #[must_use]
    pub fn built_with_mpi_by(mut self, command: &'static str) -> Self {
        self.with_mpi = command;
        self
    }

    /// Adds a circuit.
    ///
    /// # Panics
    /// Panics if the circuit has the name that keys of imported circuits have, `r1cs`.
    #[must_use]
    pub fn circuit<C: NamedCircuit>(mut self) -> Self {
        assert_ne!(C::NAME, imported::NAME, "keys of imported circuits have this name");
        self.applications.push(Box::new(OfType::<C>(PhantomData)));
        self
    }

    /// The name of the program.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The command that builds the program with MPI.
    pub(crate) fn with_mpi(&self) -> &'static str {
        self.with_mpi
    }

    /// The products that were added.
    pub(crate) fn products(&self) -> impl Iterator<Item = &dyn Product> {
        self.products.iter().map(|product| &**product)
    }

    /// The imports of the program.
    pub(crate) fn imports(&self) -> Result<&dyn Imports, Failure> {
        self.products().find_map(Product::imports).ok_or_else(|| {
            let why = format!("{} does not import circuits of other tools", self.name);
            Failure::new(exit::USAGE, why)
        })
    }

    /// Reports of each circuit, in the order in which they were added, whether it has key families.
    pub(crate) fn with_families(&self) -> impl Iterator<Item = bool> {
        self.applications.iter().map(|application| {
            // The author's code, which may take parameters without defaults for granted.
            let family = || application.family(&ParameterMap::new(), 1);
            let Ok(found) = std::panic::catch_unwind(AssertUnwindSafe(family)) else { return true };
            let why = found.err().and_then(|e| e.downcast::<ParameterError>().ok());
            !matches!(why.as_deref(), Some(ParameterError::NoFamily { .. }))
        })
    }

    /// Descriptions of all circuits, in the order in which they were added.
    pub fn descriptions(&self) -> Vec<Description> {
        self.applications.iter().map(|application| application.description()).collect()
    }

    /// Looks up a circuit by name.
    pub(crate) fn get(&self, name: &str) -> Option<&dyn Application> {
        let own = self.applications.iter().map(|application| &**application);
        let imports = self
            .products()
            .filter_map(|product| product.imports().map(|imports| imports as &dyn Application));
        // Own ones last: keys of an imported circuit must never open as a circuit of the same name with code.
        let mut all = imports.chain(self.products().filter_map(Product::circuit)).chain(own);
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
            let (circuit, parameters) = self.imports()?.open_directory(Path::new(path))?;
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
            return Err(Failure::new(exit::USAGE, ONE_SIZE));
        }
        let application = self.require(name).map_err(|e| explain(&e)).or_fail(exit::USAGE)?;
        application.family(given, bytes).map_err(|e| explain(&*e)).or_fail(exit::USAGE)
    }

    /// Refuses a circuit that has no key family.
    pub(crate) fn require_family(
        &self,
        name: &str,
        parameters: &ParameterMap,
    ) -> Result<(), Failure> {
        if name == imported::NAME {
            return Err(Failure::new(exit::USAGE, ONE_SIZE));
        }
        let family = self.require(name).or_fail(exit::USAGE)?.family(parameters, 1);
        let why = family.err().and_then(|e| e.downcast::<ParameterError>().ok());
        // Other errors are about values that a family leaves open.
        match why.filter(|e| matches!(**e, ParameterError::NoFamily { .. })) {
            Some(why) => Err(Failure::new(exit::USAGE, why)),
            None => Ok(()),
        }
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

    /// The names of the circuits.
    pub(crate) fn known(&self) -> String {
        self.descriptions().iter().map(|d| d.name).collect::<Vec<_>>().join(", ")
    }
}
