//! The circuits that the program offers, by name.

use crate::application::{Application, OfType, OpenCircuit};
use hekaton_circuit::named::{Description, NamedCircuit, ParameterError, Parameters};
use std::marker::PhantomData;

/// The circuits that the program offers, by name.
///
/// ```
/// let registry = hekaton_cli::Registry::new().with::<hekaton_standard::Chain>();
/// assert_eq!(registry.descriptions()[0].name, "chain");
/// ```
#[derive(Default)]
pub struct Registry {
    applications: Vec<Box<dyn Application>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.descriptions().iter().map(|d| d.name)).finish()
    }
}

impl Registry {
    /// A registry without circuits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a circuit.
    #[must_use]
    pub fn with<C: NamedCircuit + 'static>(mut self) -> Self
    where
        C::Input: ToOwned,
    {
        self.applications.push(Box::new(OfType::<C>(PhantomData)));
        self
    }

    /// Descriptions of all circuits, in the order of registration.
    pub fn descriptions(&self) -> Vec<Description> {
        self.applications.iter().map(|application| application.description()).collect()
    }

    /// Looks up a circuit by name.
    pub(crate) fn get(&self, name: &str) -> Option<&dyn Application> {
        self.applications
            .iter()
            .find(|application| application.description().name == name)
            .map(|a| &**a)
    }

    /// A circuit by name, with its parameters. Parameters that are not given have their defaults or
    /// follow from the file.
    pub(crate) fn open(
        &self,
        name: &str,
        given: &Parameters,
        file: Option<&[u8]>,
    ) -> Result<(Box<dyn OpenCircuit>, Parameters), ParameterError> {
        let application = self.get(name).ok_or_else(|| {
            let known = self.descriptions().iter().map(|d| d.name).collect::<Vec<_>>().join(", ");
            ParameterError::NoSuchCircuit { name: name.to_owned(), known }
        })?;
        application.open(given, file)
    }
}
