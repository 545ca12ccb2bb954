//! Transcripts as text: titles, contributors and receipts (spec: ceremony#receipts).

use crate::check::CeremonyError;
use crate::genesis::{Chain, Genesis, Import, Origin, Subject};
use crate::record::{Kind, Record};
use crate::transcript::Transcript;
use crate::verify::{Receipt, contributors, includes};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The first line of a receipt.
const RECEIPT: &str = "hekaton ceremony receipt 1";

/// A size of a domain, as people write it: `2^12` or `3 * 2^10`.
fn power(size: usize) -> String {
    match (size.is_power_of_two(), size.trailing_zeros()) {
        (true, k) => format!("2^{k}"),
        (false, k) => format!("{} * 2^{k}", size >> k),
    }
}

impl Genesis {
    /// The title of the ceremony: its subject in one line.
    pub fn title(&self) -> String {
        match &self.subject {
            Subject::Powers(powers) => format!(
                "powers for domains of up to {} rows and {} subcircuits",
                power(powers.domain),
                powers.instances
            ),
            Subject::Family(family) => format!(
                "keys of circuit {} {}, {}{} types, up to {} subcircuits",
                family.circuit,
                family.parameters,
                family.types.len(),
                if family.extends.is_some() { " more" } else { "" },
                family.instances
            ),
        }
    }

    /// The file from which a chain begins.
    pub(crate) fn import_of(&self, chain: Chain) -> Option<&Import> {
        match (&self.subject, chain) {
            (Subject::Powers(powers), Chain::Tau) => match &powers.origin {
                Origin::File(import) => Some(import),
                Origin::Generators | Origin::Powers(_) => None,
            },
            _ => None,
        }
    }

    /// The secrets of a chain, in a few words.
    fn title_of(&self, chain: Chain) -> String {
        match (chain, self.family()) {
            (Chain::Tau, _) => "tau, alpha, beta".to_owned(),
            (Chain::Phi, _) => "phi, psi".to_owned(),
            (Chain::Segment(number), Some(family)) => {
                let range = family.types_of(number);
                let before = match (family.extends, number) {
                    (Some(_), _) => "later ",
                    (None, 1) => "kappa, ",
                    (None, _) => "",
                };
                match range.len() {
                    1 => format!("{before}type {}", range.end),
                    _ => format!("{before}types {} to {}", range.start + 1, range.end),
                }
            }
            (chain, None) => format!("chain {chain}"),
        }
    }
}

/// A name, which cannot look like several.
fn quoted(name: &str) -> String {
    match name.contains([',', '(', '"']) {
        true => format!("{name:?}"),
        false => name.to_owned(),
    }
}

/// The records of a chain, those of earlier powers first.
fn all_records(transcript: &Transcript, chain: Chain) -> impl Iterator<Item = &Record> {
    transcript.lineage().into_iter().flat_map(move |one| one.records(chain))
}

/// The file from which a chain begins, or began in earlier powers.
fn import_of(transcript: &Transcript, chain: Chain) -> Option<&Import> {
    transcript.lineage().into_iter().find_map(|one| one.genesis.import_of(chain))
}

/// The contributors of each chain of some transcripts, one line each, and those of all chains.
pub fn chains_text(transcripts: &[&Transcript]) -> String {
    let mut lines = String::new();
    let mut everywhere: Option<Vec<&str>> = None;
    for transcript in transcripts {
        if let Some(earlier) = &transcript.earlier {
            let digest = hex::encode(earlier.digest());
            lines += &format!("  {:<24} transcript {digest}\n", "from earlier powers");
        }
        for log in &transcript.logs {
            let names = contributors(all_records(transcript, log.chain));
            let mut all = all_records(transcript, log.chain);
            let has_beacon = all.any(|record| record.kind != Kind::Contribution);
            let import = import_of(transcript, log.chain);
            let import =
                import.map(|import| format!("import {}..", &hex::encode(import.blake2b)[..8]));
            let shown = names.iter().map(|name| quoted(name));
            let shown: Vec<String> = import.into_iter().chain(shown).collect();
            lines += &format!(
                "  {:<24} {}{}\n",
                transcript.genesis.title_of(log.chain),
                if shown.is_empty() { "nobody yet".to_owned() } else { shown.join(", ") },
                if has_beacon { " (and a beacon)" } else { "" },
            );
            everywhere = Some(match everywhere {
                None => names,
                Some(all) => {
                    let names: HashSet<&str> = names.into_iter().collect();
                    all.into_iter().filter(|name| names.contains(name)).collect()
                }
            });
        }
    }
    if let Some(all) = everywhere.filter(|all| !all.is_empty()) {
        let all: Vec<_> = all.into_iter().map(quoted).collect();
        lines += &format!("  in all of these chains:  {}\n", all.join(", "));
    }
    lines + "Names are claims: signed receipts support them."
}

/// The chains of some transcripts for programs: contributors and records.
pub fn chains_json(transcripts: &[&Transcript]) -> Value {
    let of_transcript = |transcript: &&Transcript| -> Vec<Value> {
        let logs = transcript.logs.iter().map(|log| {
            let json_of = |one: &Transcript| -> Vec<Value> {
                one.records(log.chain).iter().map(record_json).collect()
            };
            let mut lineage = transcript.lineage();
            lineage.pop();
            let earlier = lineage.into_iter();
            let earlier = earlier.map(
                |one| json!({ "transcript": hex::encode(one.digest()), "records": json_of(one) }),
            );
            json!({
                "chain": log.chain.to_string(),
                "contributors": contributors(all_records(transcript, log.chain)),
                "import": import_of(transcript, log.chain).map(|import| hex::encode(import.blake2b)),
                "earlier": earlier.collect::<Vec<_>>(), "records": json_of(transcript),
                "torn": log.torn,
            })
        });
        logs.collect()
    };
    transcripts.iter().flat_map(of_transcript).collect()
}

/// A record for programs.
pub fn record_json(record: &Record) -> Value {
    json!({
        "chain": record.chain.to_string(), "place": record.place, "name": record.name,
        "program": record.program, "beacon": record.kind != Kind::Contribution,
        "head": hex::encode(record.head()), "record": hex::encode(record.digest()),
    })
}

/// The receipt for some records of a contributor, who signs and publishes it.
pub fn receipt(genesis: &Genesis, name: &str, program: &str, records: &[&Record]) -> String {
    let ceremony = hex::encode(genesis.digest());
    let mut text = format!("{RECEIPT}\nceremony {ceremony}\nname {name}\nprogram {program}\n");
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

/// Checks that all contributions in a receipt are in one of the transcripts. A signature may follow after an empty line.
///
/// # Errors
/// [`CeremonyError::Broken`] if one is not, and [`CeremonyError::Foreign`] if the text is not a receipt, or is for another ceremony.
pub fn check_receipt(text: &str, transcripts: &[&Transcript]) -> Result<(), CeremonyError> {
    let bad = |why: &str| CeremonyError::Foreign(why.to_owned());
    let mut lines = text.lines();
    if lines.next() != Some(RECEIPT) {
        return Err(bad("is not a receipt of a ceremony"));
    }
    let ceremony = lines.next().and_then(|line| line.strip_prefix("ceremony "));
    let ceremony = ceremony.ok_or_else(|| bad("does not name a ceremony"))?;
    let transcript = transcripts
        .iter()
        .flat_map(|transcript| transcript.lineage())
        .find(|transcript| hex::encode(transcript.genesis.digest()) == ceremony)
        .ok_or_else(|| bad("is for another ceremony"))?;
    let (mut found, mut name) = (0, None);
    for line in lines.take_while(|line| !line.is_empty() && !line.starts_with("-----")) {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["name", ..] = words[..] {
            name = line.strip_prefix("name ");
            continue;
        }
        let parsed = match words[..] {
            ["program", ..] => continue,
            ["chain", chain, "place", place, "head", head, "record", record] => {
                let digest =
                    |hex: &str| hex::decode(hex).ok().and_then(|bytes| bytes.try_into().ok());
                Chain::named(chain).zip(place.parse().ok()).zip(digest(head).zip(digest(record)))
            }
            _ => None,
        };
        let why = format!("has a line that cannot be read: {line}");
        let (((chain, place), (head, record)), name) = parsed.zip(name).ok_or_else(|| bad(&why))?;
        includes(transcript, &Receipt { name, chain, place, head, record })?;
        found += 1;
    }
    match found {
        0 => Err(bad("has no contribution")),
        _ => Ok(()),
    }
}
