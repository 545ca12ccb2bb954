//! Submits files, and fetches their proofs.

use crate::arguments::Submit;
use crate::insist::insist;
use crate::output::{client, missing, show, text_of};
use crate::progress::Progress;
use hekaton_orchestrator::http::{ChainBody, JobBody, JobStatus};
use hekaton_orchestrator::record::Order;
use hekaton_orchestrator::{Client, ClientError, Digest};
use hekaton_service::program::{Failure, exit, failure, note, print};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Stores the outputs of a job.
pub(crate) fn fetch(client: &Client, status: &JobStatus, output: &Path) -> Result<(), Failure> {
    for (at, digest) in status.outputs.iter().enumerate() {
        let digest: Digest = digest.parse().map_err(|error| failure(exit::FAILED, error))?;
        let path = match status.outputs.len() {
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

pub(crate) fn submit(arguments: &Submit, json: bool) -> Result<u8, Failure> {
    let client = client(&arguments.to)?;
    let mut bodies: Vec<(String, JobBody)> = Vec::new();
    let body =
        || JobBody { chain: arguments.chain.clone(), lane: arguments.lane, ..JobBody::default() };
    match &arguments.workflow {
        Some(file) => {
            let workflow = client.workflow(&text_of(file)?)?.workflow;
            let mut inputs: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for input in &arguments.input {
                let Some((name, path)) = input.split_once('=') else {
                    return Err(failure(
                        exit::USAGE,
                        format!("--input {input}: it must be NAME=FILE"),
                    ));
                };
                let blob = insist(|| client.put_file(Path::new(path)))?.to_string();
                inputs.entry(name.into()).or_default().push(blob);
            }
            bodies.push((
                file.display().to_string(),
                JobBody { workflow: Some(workflow), inputs, ..body() },
            ));
        }
        None => {
            for file in &arguments.files {
                let blob = insist(|| client.put_file(file))?.to_string();
                let inputs = BTreeMap::from([("input".into(), vec![blob])]);
                let backend = Some(arguments.backend.clone());
                bodies.push((file.display().to_string(), JobBody { backend, inputs, ..body() }));
            }
        }
    }
    if bodies.is_empty() {
        return Err(failure(exit::USAGE, "name files, or a --workflow"));
    }
    if arguments.output.is_some() {
        let mut names = BTreeSet::new();
        let same = bodies.iter().find(|(name, _)| !names.insert(Path::new(name).file_name()));
        if let Some((name, _)) = same {
            let why =
                format!("two files are called as {name} is, so --output cannot hold both proofs");
            return Err(failure(exit::USAGE, why));
        }
    }
    if bodies.len() > 1 && arguments.id.is_some() {
        return Err(failure(exit::USAGE, "--id is for one job"));
    }
    let chain = match client.chain(&arguments.chain) {
        Err(ClientError::Problem { problem, .. }) if problem.status == 404 => {
            let (order, genesis) = match arguments.chain.as_str() {
                "files" => (Order::None, None),
                _ => (Order::Strict, Some("genesis".to_owned())),
            };
            insist(|| {
                let body = ChainBody { order, genesis: genesis.clone(), bundles: None };
                client.make_chain(&arguments.chain, &body)
            })?
        }
        found => found?,
    };
    let mut block = arguments.block.unwrap_or(chain.tip_height.map_or(0, |height| height + 1));
    let mut parent = match chain.order {
        Order::Strict => arguments.parent.clone().or(chain.tip),
        Order::None => None,
    };
    let mut accepted = Vec::new();
    for (name, body) in bodies {
        let id = match chain.order {
            // A file that comes twice is two blocks.
            Order::Strict => Some(arguments.id.clone().unwrap_or_else(|| {
                let content = format!("{:?} {:?} {block}", body.inputs, parent);
                Digest::of(content.as_bytes()).to_string()
            })),
            Order::None => arguments.id.clone(),
        };
        let job = JobBody { block, id, parent: parent.clone(), ..body };
        let status = insist(|| client.submit(&job))?;
        if !arguments.wait && !status.missing.is_empty() {
            note(format_args!("{}: {}", status.job, missing(&status.missing)));
        }
        if !arguments.wait {
            print(json, &status, &status.job)?;
        }
        (parent, block) = (parent.map(|_| status.id.clone()), block + 1);
        accepted.push((name, status));
    }
    if !arguments.wait {
        return Ok(0);
    }
    let mut code = 0;
    let several = accepted.len() > 1;
    if let Some(folder) = arguments.output.as_deref().filter(|_| several) {
        std::fs::create_dir_all(folder)
            .map_err(|error| failure(exit::BAD_FILE, format!("{}: {error}", folder.display())))?;
    }
    let mut progress = Progress::new(accepted.len());
    for (name, status) in accepted {
        let ended = progress.wait(&client, &status)?;
        show(json, &ended)?;
        if ended.state != "done" {
            code = exit::REFUSED;
        } else if let Some(output) = &arguments.output {
            let file =
                Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let path = if several { output.join(file + ".proof") } else { output.clone() };
            fetch(&client, &ended, &path)?;
        }
    }
    Ok(code)
}
