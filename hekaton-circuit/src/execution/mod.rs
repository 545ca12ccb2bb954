//! The execution of a circuit on an input: the first step of proving and of checking.

pub(crate) mod pages;
pub(crate) mod panics;
pub(crate) mod prepared;
pub(crate) mod values;

use crate::buses::library::memory::Access;
use crate::buses::library::table::TableSpec;
use crate::buses::library::{BusKind, LibraryInput, LibraryType};
use crate::buses::look_ups::Counts;
use crate::circuit_error::CircuitError;
use crate::execution::panics::{CircuitPanic, Failure};
use crate::execution::values::{ValuesError, WireValues};
use crate::layout::Layout;
use crate::layout::error::LayoutError;
use crate::layout::ids::InstanceId;
use hekaton_arith::Fr;
use std::any::Any;
use std::sync::{Arc, PoisonError, RwLock};

/// The reason that a circuit cannot be executed on an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// The layout is invalid.
    #[error("layout: {0}")]
    Layout(LayoutError),
    /// The circuit was prepared without an input.
    #[error("the circuit was prepared without an input, so it cannot be executed")]
    NoInput,
    /// `execute` failed.
    #[error("execute: {0}")]
    Execute(CircuitError),
    /// A function of the circuit panicked.
    #[error(transparent)]
    Panic(CircuitPanic),
    /// `execute` left wires without a value, or set a constant.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The look-ups of an instance could not be counted.
    #[error("instance {instance}: {error}")]
    Count {
        /// The instance.
        instance: usize,
        /// The reason they could not be counted.
        error: CircuitError,
    },
    /// The private input of a table was asked for before all look-ups were counted.
    #[error("instance {instance} holds rows of a table whose look-ups have not been counted")]
    Uncounted {
        /// The instance.
        instance: usize,
    },
    /// `private_input` failed.
    #[error("private input of instance {instance} (type '{kind}'): {error}")]
    PrivateInput {
        /// The instance.
        instance: usize,
        /// The name of its type.
        kind: String,
        /// The circuit's error.
        error: CircuitError,
    },
    /// `private_input` panicked.
    #[error("instance {instance} (type '{kind}'): {panic}")]
    PrivateInputPanic {
        /// The instance.
        instance: usize,
        /// The name of its type.
        kind: String,
        /// The panic.
        panic: CircuitPanic,
    },
}

impl From<LayoutError> for ExecutionError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl ExecutionError {
    pub(crate) fn execute(failure: Failure<CircuitError>) -> Self {
        match failure {
            Failure::Returned(error) => Self::Execute(error),
            Failure::Panicked(panic) => Self::Panic(panic),
        }
    }
}

/// The private input of a subcircuit, of the circuit's own type, and the accesses to memories that the
/// execution made for it.
pub struct PrivateInput {
    input: Box<dyn Any + Send + Sync>,
    pub(crate) trace: Arc<Vec<Vec<Access>>>,
}

impl std::fmt::Debug for PrivateInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The value is secret.
        f.debug_struct("PrivateInput").finish_non_exhaustive()
    }
}

impl PrivateInput {
    pub(crate) fn new(private: impl Any + Send + Sync) -> Self {
        Self { input: Box::new(private), trace: Arc::default() }
    }

    pub(crate) fn with_trace(self, trace: Vec<Vec<Access>>) -> Self {
        Self { trace: Arc::new(trace), ..self }
    }

    pub(crate) fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.input.downcast_ref()
    }
}

/// The private inputs of one execution, on demand.
pub(crate) trait PrivateInputs: Send + Sync {
    fn get(&self, instance: InstanceId) -> Result<PrivateInput, Failure<CircuitError>>;
}

/// The values of all shared wires in a run, and private inputs on demand.
pub struct Execution<'r> {
    private: Box<dyn PrivateInputs + 'r>,
    /// The number of look-ups of each row of each table, once that is known.
    counts: RwLock<Option<Arc<Counts>>>,
    /// The values of all shared wires.
    pub values: WireValues,
}

impl std::fmt::Debug for Execution<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values are secret.
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}

impl<'r> Execution<'r> {
    pub(crate) fn new(private: Box<dyn PrivateInputs + 'r>, values: WireValues) -> Self {
        Self { private, counts: RwLock::default(), values }
    }

    /// Returns how often each row of each table is looked up; `None` until the look-ups have been
    /// counted.
    pub fn counts(&self) -> Option<Arc<Counts>> {
        // Nothing can panic between lock and unlock and leave a half-written value.
        self.counts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets how often each row of each table is looked up, from which the private inputs of tables
    /// follow.
    pub fn set_counts(&self, counts: Counts) {
        *self.counts.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(counts));
    }

    /// The private input of one instance.
    ///
    /// # Errors
    /// If the circuit's `private_input` fails, or the instance holds rows of a table and the look-ups have
    /// not been counted.
    pub fn private_input(
        &self,
        layout: &Layout,
        instance: InstanceId,
    ) -> Result<PrivateInput, ExecutionError> {
        if let Some(kind) = layout.library(layout.type_of(instance)) {
            let input = self.library_input(layout, kind, instance);
            return input.map(PrivateInput::new);
        }
        let private = self
            .private
            .get(instance)
            .map(|private| private.with_trace(self.values.memories.trace(instance)));
        private.map_err(|failure| {
            let kind = layout.type_name(layout.type_of(instance)).to_owned();
            let number = instance.index();
            match failure {
                Failure::Returned(error) => {
                    ExecutionError::PrivateInput { instance: number, kind, error }
                }
                Failure::Panicked(panic) => {
                    ExecutionError::PrivateInputPanic { instance: number, kind, panic }
                }
            }
        })
    }

    /// The input of an instance of a type that the library makes.
    fn library_input(
        &self,
        layout: &Layout,
        kind: LibraryType,
        instance: InstanceId,
    ) -> Result<LibraryInput, ExecutionError> {
        let part = layout.part(instance);
        match layout.buses.get(kind.bus.index()).map(|bus| &bus.kind) {
            Some(BusKind::Table(table)) => {
                let uncounted = ExecutionError::Uncounted { instance: instance.index() };
                let counts = self.counts().ok_or(uncounted)?;
                Ok(of_table(table, part, counts.of(kind.bus)))
            }
            _ => Ok(LibraryInput::Cells(self.values.memories.cells(kind, part))),
        }
    }

    /// The public values, in the order of their declaration.
    pub fn public(&self, layout: &Layout) -> Vec<Fr> {
        self.values.public(layout)
    }
}

/// The number of look-ups of each row of one instance of a table.
fn of_table(table: &TableSpec, part: usize, counts: &[u64]) -> LibraryInput {
    let (rows, starts) = table.starts();
    let start = starts[part];
    // The last instance repeats rows of the previous one, which counts their look-ups. Counting them in
    // both would give an entry twice its multiplicity, and the sum would not vanish.
    let first = starts.get(part.wrapping_sub(1)).map_or(0, |before| before + rows);
    // Rows beyond the end of a short table repeat its first rows, and are looked up there.
    let count = |row: usize| if row < first { 0 } else { counts.get(row).copied().unwrap_or(0) };
    LibraryInput::Counts((start..start + rows).map(count).collect())
}

impl Counts {
    /// The private input of an instance of a table, which follows from the counts alone; `None` for other
    /// instances.
    pub fn private_input(&self, layout: &Layout, instance: InstanceId) -> Option<PrivateInput> {
        let kind = layout.library(layout.type_of(instance))?;
        match &layout.buses.get(kind.bus.index())?.kind {
            BusKind::Table(table) => {
                let input = of_table(table, layout.part(instance), self.of(kind.bus));
                Some(PrivateInput::new(input))
            }
            BusKind::Raw | BusKind::Ram(_) => None,
        }
    }
}
