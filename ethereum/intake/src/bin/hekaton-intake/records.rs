//! The commands on the records of a running service: `list`, `get` and `resubmit`.

use crate::output::{Target, runtime, show};
use clap::Args;
use hekaton_intake::hash;
use hekaton_intake::record::Record;
use hekaton_intake::store::{Page, Place, RecordState};
use hekaton_service::program::{Failure, note, print};

#[derive(Args)]
#[command(after_help = "Examples:
  hekaton-intake list
  hekaton-intake list --status refused
  hekaton-intake --json list --limit 1000

The highest blocks come first. If there are more, standard error names the option that lists them. With --json, the list is
one object: `records`, `next` (the place for --after, or null on the last page), `unreadable`.")]
pub(crate) struct List {
    /// List only the records in this state; a record may be in several of them
    #[arg(long, value_enum)]
    status: Option<RecordState>,
    /// The largest number of records
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
    /// Continue after this place: the one that the previous list named
    #[arg(long, value_name = "HEIGHT-HASH")]
    after: Option<Place>,
    #[command(flatten)]
    target: Target,
}

#[derive(Args)]
pub(crate) struct OfBlock {
    /// The hash of the block
    #[arg(value_parser = block_hash)]
    block: String,
    #[command(flatten)]
    target: Target,
}

/// Parses a hash in the form that records and jobs use.
pub(crate) fn block_hash(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text).to_ascii_lowercase();
    match hash(&digits) {
        Some(_) => Ok(digits),
        None => Err("a block is named by its hash: 64 hexadecimal digits".into()),
    }
}

pub(crate) fn list(arguments: &List, json: bool) -> Result<(), Failure> {
    let List { status, limit, after, target } = arguments;
    let asked = target.client()?;
    let asked = runtime()?.block_on(asked.records(*status, after.as_ref(), *limit));
    let page: Page = target.read(&target.to, asked)?;
    let lines: Vec<String> = page.records.iter().map(line).collect();
    if json || !lines.is_empty() {
        print(json, &page, lines.join("\n"))?;
    }
    if page.unreadable > 0 {
        note(format_args!(
            "{} records cannot be read: see the log of the service",
            page.unreadable
        ));
    }
    if let Some(next) = &page.next {
        note(format_args!("there are more records: list them with --after {next}"));
    }
    Ok(())
}

/// Returns the line of a record in a list.
fn line(record: &Record) -> String {
    let Record { number, block, source, pending, aside, job, refused, .. } = record;
    let words = [(*pending, "pending"), (*aside, "aside"), (job.is_some(), "submitted")];
    let words = words.into_iter().filter_map(|(holds, word)| holds.then_some(word.to_owned()));
    // A reason may come from the orchestrator: a line break or a control sequence in it must not look like another record.
    let refused =
        refused.iter().map(|why| format!("refused: {}", why.replace(char::is_control, " ")));
    let words: Vec<String> =
        std::iter::once(source.name().to_owned()).chain(words).chain(refused).collect();
    format!("block {number} {block}: {}", words.join(", "))
}

pub(crate) fn get(arguments: &OfBlock, json: bool) -> Result<(), Failure> {
    let OfBlock { block, target } = arguments;
    let asked = runtime()?.block_on(target.client()?.record(block));
    let record: Record = target.read(&target.to, asked)?;
    let text = serde_json::to_string_pretty(&record).expect("records are JSON");
    print(json, &record, text)
}

pub(crate) fn resubmit(arguments: &OfBlock, json: bool) -> Result<(), Failure> {
    let OfBlock { block, target } = arguments;
    let asked = runtime()?.block_on(target.client()?.resubmit(block));
    let record: Record = target.read(&target.to, asked)?;
    show(json, &record)
}
