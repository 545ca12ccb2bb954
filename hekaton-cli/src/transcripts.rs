//! Transcripts of ceremonies: opening them, their circuits, and their contributors for people and programs.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::hints::explain;
use hekaton_ceremony::{
    CeremonyError, Chain, FamilyGenesis, Genesis, Kind, Record, Subject, Transcript, contributors,
    key_has_last_points, verify_records,
};
use hekaton_circuit::named::ParameterMap;
use hekaton_circuit::{Masking, R1cs};
use hekaton_core::{FamilyKey, LocalEngine, Trust};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::options::Threads;
use hekaton_terminal::output::{self, one_line};
use hekaton_terminal::progress::Display;
use serde_json::{Value, json};
use std::path::Path;

/// The program that records name.
pub(crate) const PROGRAM: &str = concat!("hekaton ", env!("CARGO_PKG_VERSION"));
/// The folder of a family's keys with the logs of its ceremony.
pub(crate) const IN_KEYS: &str = "ceremony";

/// The failure for an error of a ceremony: a check that fails refuses a transcript, and everything else is a file that cannot be
/// used.
pub(crate) fn failed(error: &CeremonyError) -> Failure {
    let code = match error {
        CeremonyError::Broken(_) | CeremonyError::Type(_) => exit::REFUSED,
        CeremonyError::Randomness(_) => exit::FAILED,
        _ => exit::BAD_FILE,
    };
    Failure::new(code, error)
}

/// Calls a function on as many threads as were asked for.
pub(crate) fn on_threads<R: Send>(
    threads: &Threads,
    call: impl FnOnce() -> Result<R, CeremonyError> + Send,
) -> Result<R, Failure> {
    let engine = LocalEngine::new(threads.threads).or_fail(exit::FAILED)?;
    engine.install(call).map_err(|e| failed(&e))
}

pub(crate) fn open(path: &Path) -> Result<Transcript, Failure> {
    Transcript::open(path).map_err(|e| failed(&e))
}

/// Prints each step of a check.
pub(crate) fn steps(display: &Display) -> impl FnMut(&str) + Send + '_ {
    |step| display.line(&format!("checking {step}"))
}

/// The types of a circuit, and the names of its buses.
pub(crate) fn types_of(
    circuit: &dyn OpenCircuit,
    zero_knowledge: bool,
) -> Result<(Vec<R1cs>, Vec<String>), Failure> {
    let prepared = circuit.prepared().map_err(|e| format!("layout: {e}")).or_fail(exit::USAGE)?;
    let masking = Masking::new(zero_knowledge);
    let kinds = prepared.layout().type_ids();
    let types = kinds.map(|kind| prepared.r1cs(kind, masking)).collect::<Result<_, _>>();
    let buses = prepared.layout().wiring_without_slots(masking).buses;
    Ok((types.or_fail(exit::FAILED)?, buses))
}

/// The types of the circuit that a genesis names.
pub(crate) fn types_of_genesis(genesis: &FamilyGenesis, app: &App) -> Result<Vec<R1cs>, Failure> {
    let parameters: ParameterMap =
        serde_json::from_str(&genesis.parameters).or_fail(exit::BAD_FILE)?;
    let application = app.get(&genesis.circuit).ok_or_else(|| {
        let why = format!(
            "this program does not have the circuit '{}': use the program that began the ceremony",
            one_line(&genesis.circuit)
        );
        Failure::new(exit::BAD_FILE, why)
    })?;
    // Types do not depend on the size of inputs.
    let family = application.family(&parameters, 0).map_err(|e| explain(&*e));
    let (family, _) = family.or_fail(exit::BAD_FILE)?;
    Ok(types_of(&*family.circuit, genesis.zero_knowledge)?.0)
}

pub(crate) fn record_json(record: &Record) -> Value {
    json!({
        "chain": record.chain.to_string(), "place": record.place, "name": record.name,
        "program": record.program, "beacon": record.kind != Kind::Contribution,
        "head": hex::encode(record.head()), "record": hex::encode(record.digest()),
    })
}

/// The subject of a ceremony, for people.
pub(crate) fn subject_of(genesis: &Genesis) -> String {
    match &genesis.subject {
        Subject::Powers(powers) => format!(
            "powers for domains of up to {} rows and {} subcircuits",
            output::count(powers.domain as u64),
            output::count(powers.instances as u64)
        ),
        Subject::Family(family) => format!(
            "keys of circuit {} {}, {} types, up to {} subcircuits",
            one_line(&family.circuit),
            one_line(&family.parameters),
            family.types.len(),
            output::count(family.instances as u64)
        ),
    }
}

/// The name of a chain, for people.
pub(crate) fn title(chain: Chain, transcript: &Transcript) -> String {
    match (chain, transcript.genesis.family()) {
        (Chain::Tau, _) => "tau, alpha, beta".to_owned(),
        (Chain::Phi, _) => "phi, psi".to_owned(),
        (Chain::Segment(number), Some(family)) => {
            let range = family.types_of(number);
            let kappa = if number == 1 { "kappa, " } else { "" };
            match range.len() {
                1 => format!("{kappa}type {}", range.end),
                _ => format!("{kappa}types {} to {}", range.start + 1, range.end),
            }
        }
        (chain, None) => format!("chain {chain}"),
    }
}

/// A name, which cannot look like several.
fn quoted(name: &str) -> String {
    match name.contains([',', '(', '"']) {
        true => format!("{:?}", one_line(name)),
        false => one_line(name).into_owned(),
    }
}

/// The contributors of each chain of some transcripts, and those of all chains: names are claims.
pub(crate) fn chains_of(transcripts: &[&Transcript]) -> String {
    let mut lines = String::new();
    let mut everywhere: Option<Vec<&str>> = None;
    for transcript in transcripts {
        for log in &transcript.logs {
            let names = contributors(&log.records);
            let beacons = log.records.iter().filter(|r| r.kind != Kind::Contribution).count();
            let shown: Vec<_> = names.iter().map(|name| quoted(name)).collect();
            lines += &format!(
                "  {:<24} {}{}\n",
                title(log.chain, transcript),
                if shown.is_empty() { "nobody yet".to_owned() } else { shown.join(", ") },
                if beacons > 0 { " (and a beacon)" } else { "" },
            );
            everywhere = Some(match everywhere {
                None => names,
                Some(all) => all.into_iter().filter(|name| names.contains(name)).collect(),
            });
        }
    }
    if let Some(all) = everywhere.filter(|all| !all.is_empty()) {
        let all: Vec<_> = all.into_iter().map(quoted).collect();
        lines += &format!("  in all of these chains:  {}\n", all.join(", "));
    }
    lines + "Names are claims: signed receipts support them."
}

pub(crate) fn chains_json(transcripts: &[&Transcript]) -> Value {
    let logs = transcripts.iter().flat_map(|transcript| &transcript.logs);
    logs.map(|log| {
        let records: Vec<Value> = log.records.iter().map(record_json).collect();
        json!({
            "chain": log.chain.to_string(), "contributors": contributors(&log.records),
            "records": records, "torn": log.torn,
        })
    })
    .collect()
}

/// The contributors to the keys of a family, from the logs beside them, after a check of the records and that the keys end
/// with their points: for `inspect` and `keys verify`. Nothing, if the keys do not come from a ceremony.
pub(crate) fn about(path: &Path, family: &FamilyKey) -> Result<Option<(Value, String)>, Failure> {
    let Trust::Ceremony(_) = family.header().trust else { return Ok(None) };
    let folder = path.join(IN_KEYS);
    if !folder.exists() {
        let line = "the logs of the ceremony are not beside the keys, so its contributors were not checked";
        return Ok(Some((Value::Null, line.to_owned())));
    }
    let read = |name: &str| -> Result<Transcript, Failure> {
        let transcript = open(&folder.join(name))?;
        verify_records(&transcript).map_err(|e| failed(&e))?;
        Ok(transcript)
    };
    let (of_powers, of_family) = (read("powers")?, read("family")?);
    let transcripts = [&of_powers, &of_family];
    key_has_last_points(transcripts, family)
        .map_err(|e| Failure { message: format!("{}: {e}", folder.display()), ..failed(&e) })?;
    Ok(Some((chains_json(&transcripts), chains_of(&transcripts))))
}

/// The receipt for some records.
pub(crate) fn receipt_of(ceremony: &[u8; 32], name: &str, records: &[&Record]) -> String {
    let mut text = format!(
        "hekaton ceremony receipt 1\nceremony {}\nname {name}\nprogram {PROGRAM}\n",
        hex::encode(ceremony)
    );
    for record in records {
        text += &format!(
            "chain {} place {} head {} record {}\n",
            record.chain,
            record.place,
            hex::encode(record.head()),
            hex::encode(record.digest()),
        );
    }
    text
}
