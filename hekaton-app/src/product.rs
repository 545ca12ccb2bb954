//! Parts of a program from which [products](Product) are made: commands with circuits of their own.

use crate::commands::prove as on_threads;
#[cfg(feature = "mpi")]
use crate::commands::prove_mpi;

pub use crate::app::Product;
pub use crate::application::{
    Answered, Application, BadFile, CheckedSource, Imports, OpenCircuit, SourceCheck,
};
pub use crate::commands::estimate::{object as estimate_object, table as estimate_table};
pub use crate::commands::family::setup_of;
pub use crate::commands::verify::{refusal, verdict};
pub use crate::family::{OpenedFamily, failed as failed_to_derive};
pub use crate::hints::not_enough_memory;
pub use crate::imported::{NAME as IMPORTED, is_path};
pub use crate::opened_keys::{OpenedKeys, Parts};
pub use crate::options::{NewKeys, Prove, help_after, key_digest, rows};
pub use crate::programs::run as run_program;
pub use crate::public_values::distinct;
pub use crate::subject::Subject;
pub use crate::transcripts::of_derived_key;

use crate::app::App;
use hekaton_terminal::exit::Failure;

/// Proves a subject, on threads or on ranks.
///
/// # Errors
/// Fails if the options, the input or the keys cannot be used, or if the run fails.
pub fn prove(command: &Prove, subject: &dyn Subject, app: &App, json: bool) -> Result<(), Failure> {
    #[cfg(feature = "mpi")]
    if command.is_on_ranks() {
        return prove_mpi::run(command, subject, app, json);
    }
    on_threads::run(command, subject, app, json)
}
