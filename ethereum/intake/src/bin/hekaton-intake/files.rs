//! The commands on files with witnesses, in SSZ or JSON: `check`, and `push` to a service.

use crate::output::{Target, bad_file, runtime, show};
use clap::Args;
use hekaton_intake::canonical::{Admitted, Options, admit};
use hekaton_intake::check::{CheckError, check_block, check_keys, parent_of};
use hekaton_intake::codec::json::{JsonPush, Parameters, witness_from_json, witness_to_json};
use hekaton_intake::node::MAX_WITNESS;
use hekaton_intake::record::Record;
use hekaton_service::program::{Failure, exit, failure, print};
use hekaton_witness_format::{Envelope, ExecutionWitness, Push as Body};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file, in bytes: JSON takes two digits per byte, and the file may hold a block as well.
const MAX_FILE: u64 = 3 * MAX_WITNESS;

#[derive(Args)]
struct Files {
    /// The block of the files, as JSON with the parameters of `engine_newPayload`. The files are then witnesses alone, in SSZ or in
    /// the JSON form of `debug_executionWitness`
    #[arg(long, value_name = "FILE")]
    parameters: Option<PathBuf>,
    /// The files: bodies of `POST /v1/witness` in SSZ or JSON
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "Examples:
  hekaton-intake check block.ssz
  hekaton-intake check --parameters block.json witness.json
  hekaton-intake check witness.json --output witness.ssz

Without --parameters, a JSON witness alone is checked as the witness of the block after its last header.")]
pub(crate) struct Check {
    /// Convert witnesses in SSZ to canonical form, as for those in JSON: sort the items, and leave out those that are empty, repeated,
    /// or created by the block itself
    #[arg(long)]
    lenient: bool,
    /// Write the witness to this file, in SSZ and in canonical form, as `hekaton prove` takes it; only one input file is allowed
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    files: Files,
}

#[derive(Args)]
#[command(after_help = "Examples:
  hekaton-intake push block.ssz
  hekaton-intake push --parameters block.json witness.json --to http://127.0.0.1:8561")]
pub(crate) struct Push {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    target: Target,
}

/// Reads a file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let too_long = || {
        failure(exit::BAD_FILE, format!("{}: the file has more than {limit} bytes", path.display()))
    };
    let file = std::fs::File::open(path).map_err(bad_file(path))?;
    // A file with this length is refused before it is read. Pipes have no length, so the limit also
    // counts while bytes are read.
    if file.metadata().map_err(bad_file(path))?.len() > limit {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(bad_file(path))?;
    match bytes.len() as u64 > limit {
        true => Err(too_long()),
        false => Ok(bytes),
    }
}

/// Reads the parameters of `engine_newPayload`.
pub(crate) fn parameters(path: &Path) -> Result<Parameters, Failure> {
    let text = read(path, MAX_FILE)?;
    Parameters::decode(&text)
        .map_err(|(_, error)| failure(exit::BAD_FILE, format!("{}: {error}", path.display())))
}

/// A file that was read.
struct Found {
    is_json: bool,
    /// The block; `None` for a witness alone.
    block: Option<Envelope>,
    /// The hashes of the blobs, if they came with the block.
    blob_hashes: Option<Vec<[u8; 32]>>,
    /// The witness in SSZ, with its items as they came.
    witness: Vec<u8>,
    public_keys: Vec<u8>,
    /// The contents of the file.
    text: Vec<u8>,
}

impl Found {
    fn read(path: &Path, block: Option<&Parameters>) -> Result<Self, Failure> {
        let text = read(path, MAX_FILE)?;
        let wrong = |why: String| failure(exit::REFUSED, format!("{}: {why}", path.display()));
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        let is_json = first == Some(&b'{');
        if let (true, None, true) = (is_json, block, has_parameters(&text)) {
            let JsonPush { parameters, witness, public_keys } =
                JsonPush::decode(&text).map_err(|(_, error)| wrong(error.to_string()))?;
            let Parameters { envelope, blob_hashes } = parameters;
            let (block, blob_hashes) = (Some(envelope), Some(blob_hashes));
            return Ok(Self { is_json, block, blob_hashes, witness, public_keys, text });
        }
        if is_json || block.is_some() {
            let witness = match is_json {
                true => witness_from_json(&text).map_err(|error| wrong(error.to_string()))?,
                false => {
                    let witness = ExecutionWitness::decode(&text);
                    witness.map_err(|error| wrong(error.to_string()))?.encode()
                }
            };
            let blob_hashes = block.map(|block| block.blob_hashes.clone());
            let envelope = block.map(|block| block.envelope.clone());
            let public_keys = vec![];
            return Ok(Self { is_json, block: envelope, blob_hashes, witness, public_keys, text });
        }
        let push = Body::decode(&text).map_err(|error| wrong(error.to_string()))?;
        let (witness, public_keys) = (push.witness.encode(), push.public_keys.to_vec());
        let block = Some(push.envelope);
        Ok(Self { is_json, block, blob_hashes: None, witness, public_keys, text })
    }
}

/// Reports whether a JSON file also has a block.
fn has_parameters(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Body {
        parameters: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Body>(text).is_ok_and(|body| body.parameters.is_some())
}

pub(crate) fn check(arguments: &Check, json: bool) -> Result<(), Failure> {
    if arguments.output.is_some() && arguments.files.files.len() > 1 {
        return Err(failure(
            exit::USAGE,
            "--output takes the witness of one file: pass only one file",
        ));
    }
    let block = arguments.files.parameters.as_deref().map(parameters).transpose()?;
    for path in &arguments.files.files {
        let found = Found::read(path, block.as_ref())?;
        // JSON has no canonical form to insist on.
        let options = Options { lenient: arguments.lenient || found.is_json };
        let checked = check_one(&found, options);
        let (number, admitted) = checked
            .map_err(|error| failure(exit::REFUSED, format!("{}: {error}", path.display())))?;
        let Admitted { summary, changed, left_out } = admitted;
        if let Some(path) = &arguments.output {
            let witness = changed.as_ref().unwrap_or(&found.witness);
            std::fs::write(path, witness).map_err(bad_file(path))?;
        }
        let mut text = format!(
            "{}: block {number}; headers: {}, nodes: {}, codes: {}, references to nodes that are not in it: {}",
            path.display(),
            summary.headers,
            summary.nodes,
            summary.codes,
            summary.absent
        );
        if !left_out.is_nothing() {
            text += &format!("; left out: {left_out}");
        }
        let mut value = serde_json::json!(summary);
        value["left_out"] = serde_json::json!(left_out);
        print(json, &value, text)?;
    }
    Ok(())
}

fn check_one(found: &Found, options: Options) -> Result<(u64, Admitted), CheckError> {
    let Found { block, blob_hashes, public_keys, .. } = found;
    let witness = ExecutionWitness::decode(&found.witness)
        .map_err(|error| CheckError::Encoding(error.to_string()))?;
    let (parent, number) = match block {
        None => parent_of(&witness)?,
        Some(envelope) => {
            check_block(envelope, blob_hashes.as_deref())?;
            if !public_keys.is_empty() {
                check_keys(envelope, public_keys)?;
            }
            (envelope.payload.parent_hash, envelope.payload.block_number)
        }
    };
    Ok((number, admit(&witness, parent, number, options)?))
}

pub(crate) fn push(arguments: &Push, json: bool) -> Result<(), Failure> {
    let block = arguments.files.parameters.as_deref().map(parameters).transpose()?;
    let service = arguments.target.client()?;
    let runtime = runtime()?;
    for path in &arguments.files.files {
        let wrong = |why: String| failure(exit::REFUSED, format!("{}: {why}", path.display()));
        let Found { is_json, block: own, witness, text, .. } = Found::read(path, block.as_ref())?;
        let body = match (&own, &block) {
            (None, _) => {
                return Err(wrong("the file has no block: pass its --parameters".into()));
            }
            (Some(_), None) => text,
            (Some(envelope), Some(parameters)) => {
                let witness =
                    ExecutionWitness::decode(&witness).map_err(|error| wrong(error.to_string()))?;
                match is_json {
                    true => JsonPush::join(&parameters.encode(), &witness_to_json(&witness)),
                    false => body(envelope, witness),
                }
            }
        };
        let answer = runtime.block_on(service.push(is_json, body));
        let record: Record = arguments.target.read(path.display(), answer)?;
        show(json, &record)?;
    }
    Ok(())
}

/// Returns the body of a push of a witness alone.
fn body(envelope: &Envelope, witness: ExecutionWitness<'_>) -> Vec<u8> {
    Body { envelope: envelope.clone(), witness, public_keys: &[] }.encode()
}
