//! Commands of the program `hekaton` in addition to the [command line of any program](hekaton_app): imports of circuits from other
//! tools, a RISC-V machine, and a key directory. A program with its own circuits may have each of them, too:
//!
//! ```no_run
//! use hekaton_app::App;
//! use hekaton_cli::MachinePrograms;
//! use hekaton_standard::Chain;
//!
//! fn main() -> std::process::ExitCode {
//!     App::new("chain").circuit::<Chain>().with(MachinePrograms).run()
//! }
//! ```

mod directory;
mod import;
mod machine;
mod package;
mod vm;

pub use directory::KeyDirectory;
pub use import::ImportedCircuits;
pub use package::{NewPackage, package_name, write_project};
pub use vm::MachinePrograms;
