//! Imported circuits: the command `import`, and circuits that are directories.

mod check;
mod command;
mod cuts;
mod keys;
mod options;
mod tables;
mod unique;

use clap::{ArgMatches, FromArgMatches, Subcommand};
use hekaton_app::App;
use hekaton_app::product::{
    Answered, Application, BadFile, CheckedSource, IMPORTED, Imports, OpenCircuit, Product,
    SourceCheck, distinct,
};
use hekaton_circuit::named::{Description, Family, InputFile, ParameterMap};
use hekaton_circuit::{CircuitError, Fr, LayoutError, PreparedCircuit};
use hekaton_core::{ProverKeys, VerifyingKey};
use hekaton_r1cs::WitnessFile;
use hekaton_r1cs::directory::{PROVING_FILES, Summary};
use hekaton_r1cs::{CircuitBundle, FileError, Imported};
use hekaton_storage::Manifest;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, one_line};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The stand-in for a witness file in estimates: a witness of ones.
const SAMPLE: &[u8] = b"hekaton: a witness of ones";

// Without a doc comment, which would become that of the whole program.
#[derive(Debug, Subcommand)]
enum Commands {
    /// Import a circuit of circom: cut it into parts that can be proven on many machines
    #[command(display_order = 1)]
    Import(options::Import),
}

/// Circuits of circom and gnark, which `import` cuts into parts.
#[derive(Clone, Copy, Debug)]
pub struct ImportedCircuits;

impl Product for ImportedCircuits {
    fn commands(&self, program: clap::Command) -> clap::Command {
        Commands::augment_subcommands(program)
    }

    fn run(&self, _: &App, matches: &ArgMatches, json: bool) -> Option<Result<(), Failure>> {
        let Commands::Import(command) = Commands::from_arg_matches(matches).ok()?;
        Some(command::run(&command, json))
    }

    fn imports(&self) -> Option<&dyn Imports> {
        Some(self)
    }
}

impl Application for ImportedCircuits {
    fn description(&self) -> Description {
        Description {
            name: IMPORTED,
            about: "An imported circuit",
            input: "A witness (.wtns)",
            public: "A JSON array: the outputs, then the public inputs, in decimal",
            parameters: &[],
        }
    }

    fn open(
        &self,
        _: &ParameterMap,
        _: Option<&InputFile>,
    ) -> Result<(Box<dyn OpenCircuit>, ParameterMap), CircuitError> {
        Err("an imported circuit is named by its directory, for example ./sha.hk".into())
    }

    fn family(
        &self,
        _: &ParameterMap,
        _: u64,
    ) -> Result<(Family<Box<dyn OpenCircuit>>, ParameterMap), CircuitError> {
        Err("an imported circuit has one size, so its keys are not a family".into())
    }

    fn show_public(&self, values: &[Fr]) -> Option<String> {
        Some(json!(values.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string())
    }
}

impl Imports for ImportedCircuits {
    fn open_directory(&self, path: &Path) -> Result<(Box<dyn OpenCircuit>, ParameterMap), Failure> {
        let imported = Imported::open(path).or_fail(exit::BAD_FILE)?;
        let directory = imported.directory();
        let mut parameters = ParameterMap::new();
        let source = &directory.summary().source;
        parameters.insert("name".to_owned(), Value::String(source.name.clone()));
        parameters.insert("source".to_owned(), Value::String(source.digest.clone()));
        let digest = hex::encode(directory.digest());
        parameters.insert("directory".to_owned(), Value::String(digest));
        Ok((Box::new(Opened { imported, path: path.to_owned() }), parameters))
    }

    fn proving_files(&self) -> &'static [&'static str] {
        &PROVING_FILES
    }

    fn public_names(&self, directory: &Path, key: &VerifyingKey) -> Vec<String> {
        bound_summary(&directory.join("circuit.json"), key).map_or_else(Vec::new, |s| names_in(&s))
    }

    fn compare_keys(
        &self,
        source: &Path,
        (path, manifest, keys): (&Path, &Manifest, &ProverKeys),
    ) -> Result<String, Failure> {
        keys::compare_keys(source, path, manifest, keys)
    }

    fn check_source(&self, source: &SourceCheck<'_>) -> Result<CheckedSource, Failure> {
        check::run(source)
    }

    fn inspect(&self, directory: &Path) -> Result<(Value, String), Failure> {
        describe(directory)
    }
}

/// The error for a file of another tool, which says itself where it is wrong.
fn bad_file(FileError { place, problem, .. }: FileError) -> BadFile {
    // Without the path: a pipe was read into memory.
    BadFile(format!("{place}{problem}"))
}

/// An opened circuit directory.
struct Opened {
    imported: Imported,
    path: PathBuf,
}

impl OpenCircuit for Opened {
    fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError> {
        PreparedCircuit::new(&self.imported)
    }

    fn with_input(
        &self,
        input: &InputFile,
        then: &mut dyn FnMut(Result<PreparedCircuit<'_>, LayoutError>),
    ) -> Result<(), CircuitError> {
        let wires = self.imported.directory().summary().source.wires;
        let witness = match (input.path(), input.length()?) {
            (Some(path), _) => WitnessFile::open(path),
            (None, length) if length == SAMPLE.len() as u64 && input.read()? == SAMPLE => {
                WitnessFile::ones(wires)
            }
            (None, _) => WitnessFile::from_bytes(input.read()?),
        };
        let witness = witness.map_err(bad_file)?;
        witness.check_wires(wires).map_err(bad_file)?;
        // Now, and not hours into a run, when the part with a damaged value is proven.
        witness.check_values().map_err(bad_file)?;
        then(PreparedCircuit::with_input(&self.imported, &witness));
        Ok(())
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(SAMPLE)
    }

    fn public_names(&self) -> Vec<String> {
        names_in(self.imported.directory().summary())
    }

    fn inspect(&self) -> Result<Vec<String>, Failure> {
        let directory = self.imported.directory();
        directory.check_files().or_fail(exit::BAD_FILE)?;
        directory.notices().or_fail(exit::BAD_FILE)
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn compare(&self, source: &Path) -> Result<(), Failure> {
        keys::compare(&self.path, source)
    }

    fn unique(&self, witness: &Path, second: Option<&Path>) -> Option<Result<Answered, Failure>> {
        Some(unique::of_directory(&self.path, witness, second))
    }
}

/// The names of public values in a circuit directory, if a `.sym` file had names; empty if two are
/// equal.
fn names_in(summary: &Summary) -> Vec<String> {
    let name = |(index, name): (usize, &String)| match name.is_empty() {
        true => format!("public[{index}]"),
        false => name.clone(),
    };
    distinct(summary.public_names.iter().enumerate().map(name).collect())
}

/// The summary of a circuit directory, if there is one and a verifying key names its digest. A file that the key does not
/// bind could swap the names of two public values.
fn bound_summary(path: &Path, key: &VerifyingKey) -> Option<Summary> {
    let parameters: Value = serde_json::from_str(&key.parameters).ok()?;
    let text = exit::read_at_most(path, exit::KEY_LIMIT).ok()?;
    let digest = blake3::hash(&text).to_hex();
    (parameters["directory"].as_str() == Some(digest.as_str()))
        .then(|| serde_json::from_slice(&text).ok())?
}

/// Describes a circuit directory.
fn describe(path: &Path) -> Result<(Value, String), Failure> {
    let directory = CircuitBundle::open(path).or_fail(exit::BAD_FILE)?;
    let summary = directory.summary();
    let source = &summary.source;
    let mut lines = vec![
        format!("imported circuit {}", one_line(&source.name)),
        format!("source digest   {}", one_line(&source.digest)),
        format!("digest          {}", hex::encode(directory.digest())),
        format!("constraints     {}", output::count(source.rows)),
        format!("wires           {}", output::count(source.wires.into())),
        format!("public values   {} outputs, {} inputs", source.outputs, source.inputs),
        format!("parts           {} of {} types", summary.parts, summary.types.len()),
        format!("slots           {}", output::count(summary.slots)),
        format!("written by      {}", one_line(&summary.written_by)),
    ];
    for t in &summary.types {
        lines.push(format!(
            "type {:<14} {} constraints, {} slots, {} own wires, {} parts",
            one_line(&t.name),
            output::count(t.rows.into()),
            t.slots,
            output::count(t.own.into()),
            t.parts,
        ));
    }
    Ok((json!({ "ok": true, "kind": "circuit directory", "circuit": summary }), lines.join("\n")))
}
