//! Starts a process.

use crate::arguments::Place;
use hekaton_orchestrator::backend::Helper;
use hekaton_orchestrator::service::{self, Options, ServiceError, Stop};
use hekaton_orchestrator::settings::{BackendSettings, Settings};
#[cfg(feature = "nats")]
use hekaton_orchestrator::{Name, store::NatsSettings};
use hekaton_orchestrator::{Strategies, Traces};
use hekaton_service::program::{self, Failure, exit, failure, note, on_stop, print};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

/// Returns the place where records are kept.
#[cfg(feature = "nats")]
fn records(place: &Place) -> Result<service::Place, Failure> {
    let Some(address) = &place.nats else { return Ok(service::Place::Folder) };
    let namespace: Name = place.namespace.parse().map_err(|error| failure(exit::USAGE, error))?;
    Ok(service::Place::Nats(NatsSettings {
        address: address.clone(),
        namespace: namespace.to_string(),
        replicas: place.replicas,
        credentials: place.nats_credentials.clone(),
        versions: 1,
    }))
}

#[cfg(not(feature = "nats"))]
fn records(_: &Place) -> Result<service::Place, Failure> {
    Ok(service::Place::Folder)
}

/// Returns the settings of the file and the command line.
pub(crate) fn settings(place: &Place, keep_days: Option<u32>) -> Result<Settings, Failure> {
    let mut settings = match place.settings.as_deref() {
        Some(path) => Settings::read(path).map_err(|error| failure(exit::USAGE, error))?,
        None => Settings::default(),
    };
    if let Some(keys) = place.keys.clone() {
        let hekaton = match place.hekaton.components().count() {
            // Looked for in PATH.
            1 => place.hekaton.clone(),
            _ => std::path::absolute(&place.hekaton).unwrap_or_else(|_| place.hekaton.clone()),
        };
        let backend = BackendSettings::Hekaton { keys, program: hekaton, options: vec![] };
        settings.backends.insert("prove".parse().expect("a name"), backend);
    }
    settings.slots = place.slots.unwrap_or(settings.slots);
    settings.keep_days = keep_days.or(settings.keep_days);
    settings.check().map_err(|error| failure(exit::USAGE, error))?;
    if settings.backends.is_empty() && settings.slots > 0 {
        let why = "there is no back-end: set --keys, define back-ends in --settings, or run no tasks with --slots 0";
        return Err(failure(exit::USAGE, why));
    }
    Ok(settings)
}

/// Returns the destination of spans.
#[cfg(feature = "traces")]
fn traces(place: &Place) -> Result<Traces, Failure> {
    match &place.otlp {
        Some(address) => Traces::to(address)
            .map_err(|why| failure(exit::USAGE, format!("--otlp {address}: {why}"))),
        None => Ok(Traces::default()),
    }
}

#[cfg(not(feature = "traces"))]
fn traces(_: &Place) -> Result<Traces, Failure> {
    Ok(Traces::default())
}

/// Runs a process until it is asked to stop.
pub(crate) fn serve(
    place: Place,
    settings: Settings,
    listen: Option<&str>,
    collects: bool,
    json: bool,
) -> Result<u8, Failure> {
    let records = records(&place)?;
    if settings.keep_days.is_some() && collects && records != service::Place::Folder {
        let why = "jobs cannot be removed from NATS JetStream: leave out --keep-days and the setting 'keep_days'";
        return Err(failure(exit::USAGE, why));
    }
    let listener = match listen {
        Some(address) => Some(bind(address, &settings, json)?),
        None => {
            let started = serde_json::json!({ "pid": std::process::id() });
            print(json, &started, "working")?;
            None
        }
    };
    let stop = Stop::default();
    let asked = stop.clone();
    let ask = move |_| {
        note(match asked.is_asked() {
            true => "stopping at once",
            false => "stopping when running tasks have ended; a second signal stops at once",
        });
        asked.ask();
    };
    on_stop(ask).map_err(|error| failure(exit::FAILED, error))?;
    let traces = traces(&place)?;
    let program = std::env::current_exe().map_err(|error| failure(exit::FAILED, error))?;
    let options = Options {
        place: records,
        data: place.data,
        settings,
        listener,
        collects,
        grace: Duration::from_secs(place.grace),
        helper: Helper::new(program),
        backends: BTreeMap::new(),
        strategies: Strategies::default(),
        traces,
    };
    service::run(options, &stop).map_err(|error| match error {
        ServiceError::Store(_) => failure(exit::FAILED, error),
        error => failure(exit::BAD_FILE, error),
    })?;
    Ok(0)
}

/// Listens for requests, and prints where.
fn bind(address: &str, settings: &Settings, json: bool) -> Result<TcpListener, Failure> {
    let listener = program::listen(address)?;
    let bound = listener.local_addr().map_err(|error| failure(exit::FAILED, error))?;
    // Without tenants, requests have no tokens: any machine that could connect could run programs here.
    if settings.tenants.is_empty() && !bound.ip().is_loopback() {
        let why = "without tenants, any machine that reaches this address could use the service: name tenants in the settings, or listen on 127.0.0.1";
        return Err(failure(exit::USAGE, format!("--listen {address}: {why}")));
    }
    let url = format!("http://{bound}");
    let started = serde_json::json!({ "address": url, "pid": std::process::id() });
    print(json, &started, format_args!("serving at {url}"))?;
    Ok(listener)
}
