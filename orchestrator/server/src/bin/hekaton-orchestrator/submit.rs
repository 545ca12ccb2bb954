//! Submits files, and fetches their proofs.

use crate::arguments::Submit;
use crate::insist::insist;
use crate::output::{client, missing, show, text_of};
use crate::progress::Progress;
use hekaton_orchestrator::http::{ChainBody, ChainState, JobBody, JobStatus};
use hekaton_orchestrator::record::Order;
use hekaton_orchestrator::{Client, ClientError, Digest};
use hekaton_service::program::{Failure, exit, failure, note, print};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Stores the outputs of a job.
pub(crate) fn fetch(client: &Client, outputs: &[String], output: &Path) -> Result<(), Failure> {
    for (at, output_digest) in outputs.iter().enumerate() {
        let digest: Digest = output_digest.parse().map_err(|error| failure(exit::FAILED, error))?;
        let path = match outputs.len() {
            1 => output.to_owned(),
            _ => {
                let mut path = output.as_os_str().to_owned();
                path.push(format!(".{at}"));
                path.into()
            }
        };
        client.get_blob(&digest, &path)?;
    }
    Ok(())
}

/// Submits jobs, and waits for them if that is asked for.
pub(crate) fn submit(arguments: &Submit, json: bool) -> Result<u8, Failure> {
    let client = client(&arguments.to)?;
    let bodies = bodies(&client, arguments)?;
    check_names(&bodies, arguments)?;
    let chain = chain(&client, &arguments.chain)?;
    let accepted = send(&client, bodies, chain, arguments, json)?;
    match arguments.wait {
        true => wait(&client, accepted, arguments.output.as_deref(), json),
        false => Ok(0),
    }
}

/// Stores the inputs, and returns the jobs with the names of their files.
fn bodies(client: &Client, arguments: &Submit) -> Result<Vec<(String, JobBody)>, Failure> {
    let body =
        || JobBody { chain: arguments.chain.clone(), lane: arguments.lane, ..JobBody::default() };
    let Some(file) = &arguments.workflow else {
        let mut bodies = Vec::new();
        for file in &arguments.files {
            let blob = insist(|| client.put_file(file))?.to_string();
            let inputs = BTreeMap::from([("input".into(), vec![blob])]);
            let backend = Some(arguments.backend.clone());
            bodies.push((file.display().to_string(), JobBody { backend, inputs, ..body() }));
        }
        return Ok(bodies);
    };
    let workflow = Some(client.workflow(&text_of(file)?)?.workflow);
    let mut inputs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for input in &arguments.input {
        let Some((name, path)) = input.split_once('=') else {
            return Err(failure(exit::USAGE, format!("--input {input}: expected NAME=FILE")));
        };
        let blob = insist(|| client.put_file(Path::new(path)))?.to_string();
        inputs.entry(name.into()).or_default().push(blob);
    }
    Ok(vec![(file.display().to_string(), JobBody { workflow, inputs, ..body() })])
}

/// Finds mistakes that would otherwise be found only after hours of proving.
fn check_names(bodies: &[(String, JobBody)], arguments: &Submit) -> Result<(), Failure> {
    if bodies.is_empty() {
        return Err(failure(exit::USAGE, "name files, or use --workflow"));
    }
    if arguments.output.is_some() {
        let mut names = BTreeSet::new();
        let same = bodies.iter().find(|(name, _)| !names.insert(Path::new(name).file_name()));
        if let Some((name, _)) = same {
            let why = format!(
                "another file has the same name as {name}, so --output cannot hold both proofs"
            );
            return Err(failure(exit::USAGE, why));
        }
    }
    match bodies.len() > 1 && arguments.id.is_some() {
        true => Err(failure(exit::USAGE, "--id names a single block, but there are several files")),
        false => Ok(()),
    }
}

/// Returns the chain with a name, which is made if it does not exist.
fn chain(client: &Client, name: &str) -> Result<ChainState, Failure> {
    match client.chain(name) {
        Err(ClientError::Problem { problem, .. }) if problem.status == 404 => {
            let (order, genesis) = match name {
                "files" => (Order::None, None),
                _ => (Order::Strict, Some("genesis".to_owned())),
            };
            let body = ChainBody { order, genesis, bundles: None };
            let made = insist(|| client.make_chain(name, &body))?;
            if order == Order::Strict {
                note(format_args!("chain '{name}' did not exist, and was made with strict order"));
            }
            Ok(made)
        }
        found => Ok(found?),
    }
}

/// Submits the jobs, each after the one before it.
fn send(
    client: &Client,
    bodies: Vec<(String, JobBody)>,
    chain: ChainState,
    arguments: &Submit,
    json: bool,
) -> Result<Vec<(String, JobStatus)>, Failure> {
    let mut block = arguments.block.unwrap_or(chain.tip_height.map_or(0, |height| height + 1));
    let mut parent = match chain.order {
        Order::Strict => arguments.parent.clone().or(chain.tip),
        Order::None => None,
    };
    let mut accepted = Vec::new();
    for (name, body) in bodies {
        let id = match chain.order {
            // The same file given twice makes two blocks.
            Order::Strict => Some(arguments.id.clone().unwrap_or_else(|| {
                let content = format!("{:?} {:?} {block}", body.inputs, parent);
                Digest::of(content.as_bytes()).to_string()
            })),
            Order::None => arguments.id.clone(),
        };
        let job = JobBody { block, id, parent: parent.clone(), ..body };
        let status = insist(|| client.submit(&job))?;
        if !arguments.wait {
            if !status.missing.is_empty() {
                note(format_args!("{}: {}", status.job, missing(&status.missing)));
            }
            print(json, &status, &status.job)?;
        }
        (parent, block) = (parent.map(|_| status.id.clone()), block + 1);
        accepted.push((name, status));
    }
    Ok(accepted)
}

/// Waits until all jobs have ended, and stores the proofs of those that are done.
fn wait(
    client: &Client,
    accepted: Vec<(String, JobStatus)>,
    output: Option<&Path>,
    json: bool,
) -> Result<u8, Failure> {
    let mut code = 0;
    let several = accepted.len() > 1;
    if let Some(folder) = output.filter(|_| several) {
        std::fs::create_dir_all(folder)
            .map_err(|error| failure(exit::BAD_FILE, format!("{}: {error}", folder.display())))?;
    }
    let mut progress = Progress::new(accepted.len());
    for (name, status) in accepted {
        let ended = progress.wait(client, &status)?;
        show(json, &ended)?;
        if ended.state != "done" {
            // Still waits for the others, which are proven whether or not this program ends.
            code = exit::REFUSED;
        } else if let Some(output) = output {
            let path = match Path::new(&name).file_name() {
                Some(file) if several => output.join(format!("{}.proof", file.to_string_lossy())),
                None if several => {
                    return Err(failure(exit::USAGE, format!("{name}: not the name of a file")));
                }
                _ => output.to_owned(),
            };
            fetch(client, &ended.outputs, &path)?;
        }
    }
    Ok(code)
}
