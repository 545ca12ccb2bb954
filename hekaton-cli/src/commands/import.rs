//! `hekaton import` and `hekaton analyse`.

use crate::exit::{self, Failure, OrFail};
use crate::imported::is_path;
use crate::options::{Analyse, Import, Source};
use crate::terminal::output::{self, bytes, count};
use crate::terminal::progress::Display;
use crate::terminal::signals;
use hekaton_plan::prover_bytes;
use hekaton_r1cs::directory::{Summary, check_free};
use hekaton_r1cs::partition::{Plan, default_size};
use hekaton_r1cs::{ImportError, Monolith, Template};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Rows that a cut adds, as a fraction: beyond the first, `import` warns, beyond the second it refuses.
const MANY: f64 = 0.25;
const TOO_MANY: f64 = 1.0;

fn failure(error: ImportError) -> Failure {
    let code = match &error {
        ImportError::DoesNotFit(_) | ImportError::Partition(_) | ImportError::Layout(_) => {
            exit::FAILED
        }
        _ => exit::BAD_FILE,
    };
    Failure::new(code, error)
}

fn read(source: &Source, display: &Display) -> Result<Monolith, Failure> {
    let name = source.file.display();
    display.line(&format!("reading {name}"));
    let mut last = Instant::now();
    let progress = |row: u32, rows: u32| {
        if last.elapsed().as_secs() >= 2 {
            last = Instant::now();
            let (row, rows) = (count(row.into()), count(rows.into()));
            display.line(&format!("reading {name}: {row} of {rows} constraints"));
        }
    };
    Monolith::read(&source.file, source.sym.as_deref(), progress).map_err(failure)
}

/// The most rows of a part: as asked for, or so that all provers have some parts.
fn size(source: &Source, monolith: &Monolith) -> u64 {
    let threads = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let provers = source.provers.map_or_else(threads, NonZeroUsize::get);
    source.rows.unwrap_or_else(|| default_size(monolith.system().rows(), provers))
}

fn cut(monolith: &Monolith, most: u64, display: &Display) -> Result<Plan, Failure> {
    let rows = monolith.system().rows() as u64;
    // Small circuits are cut before a line could be read.
    let step = |step| {
        if rows >= 1 << 18 {
            display.line(&format!("parts of {}: {step}", count(most)));
        }
    };
    monolith.cut(most, step).map_err(failure)
}

/// Notes on a cut that is worse than it could be.
fn notes(monolith: &Monolith, plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    let (parts, types) = (plan.parts.parts.len(), plan.parts.types.len());
    if plan.added() > MANY {
        notes.push(format!(
            "the cut adds {:.0} % more rows: the constraints of a part share most of their wires with \
             others; larger parts (--rows) need fewer",
            100.0 * plan.added()
        ));
    }
    // circom's --O2 removes linear constraints, and what repeated does no longer.
    if parts >= 4 && types == parts && monolith.system().linear_rows() == 0 {
        notes.push(
            "no two parts are equal, and no constraint is linear: circom's --O1 often leaves parts that \
             repeat, which share a key"
                .to_owned(),
        );
    }
    notes
}

pub(crate) fn import(command: &Import, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let source = &command.source;
    // An interruption leaves nothing: what is written has no final name before it is checked.
    let building: Arc<Mutex<Option<PathBuf>>> = Arc::default();
    let interrupted = building.clone();
    signals::Handling {
        cancellation: None,
        quiet: false,
        last: Box::new(move || {
            let building = interrupted.lock().ok().and_then(|mut path| path.take());
            building.is_none_or(|path| std::fs::remove_dir_all(path).is_ok())
        }),
        ended: "interrupted: nothing was imported",
        json,
    }
    .start()?;
    check_free(&command.out).or_fail(exit::BAD_FILE)?;
    let display = Display::new();
    let monolith = read(source, &display)?;
    let plan = cut(&monolith, size(source, &monolith), &display)?;
    let notes = notes(&monolith, &plan);
    notes.iter().for_each(|note| display.line(&format!("note: {note}")));
    if plan.added() > TOO_MANY && !command.force {
        let why = "the cut adds more rows than the circuit has, so that one prover would be faster than \
                   two; --force imports it all the same";
        return Err(Failure::new(exit::FAILED, why));
    }
    display.line("writing and checking the parts");
    let (summary, report) = monolith
        .write_with(&plan, &command.out, |path| {
            if let Ok(mut building) = building.lock() {
                *building = Some(path.to_owned());
            }
        })
        .map_err(failure)?;
    drop(display);
    let mut object = object(&summary, &plan);
    object["ok"] = json!(true);
    object["circuit"] = json!(command.out);
    object["notes"] = json!(notes);
    object["seconds"] = json!(start.elapsed().as_secs_f64());
    let mut lines = table(&summary);
    lines += &format!(
        "{} constraints of {} in {} parts of {} types: {}\n\
         {} slots of shared wires, with {} sums and {} packs of bits in place of others, add {:.2} % to \
         the constraints; about {} of proving keys\n\
         checked: all {} constraints are in one part each, and wires are shared as they must be\n\
         next: hekaton setup {} --keys KEYS",
        count(report.rows as u64),
        summary.source.name,
        summary.parts,
        summary.types.len(),
        command.out.display(),
        count(summary.slots),
        count(summary.sums),
        count(summary.packs),
        100.0 * plan.added(),
        bytes(plan.key_bytes()),
        count(report.rows as u64),
        shown(&command.out),
    );
    output::result(json, &object, &lines)
}

/// A path as a circuit's name must be written: with a slash, if it would be a name.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if is_path(&text) { text } else { format!("./{text}") }
}

fn table(summary: &Summary) -> String {
    let mut lines = format!(
        "{:<8} {:>7} {:>12} {:>9} {:>12} {:>6}\n",
        "type", "parts", "constraints", "slots", "own wires", "full"
    );
    for kind in summary.types.iter().take(LISTED) {
        let rows = u64::from(kind.rows) + u64::from(kind.slots) + 3;
        #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
        let full = 100.0 * rows as f64 / summary.most as f64;
        lines += &format!(
            "{:<8} {:>7} {:>12} {:>9} {:>12} {:>4.0} %\n",
            kind.name,
            count(kind.parts.into()),
            count(kind.rows.into()),
            count(kind.slots.into()),
            count(kind.own.into()),
            full
        );
    }
    if let Some(more) = summary.types.len().checked_sub(LISTED).filter(|more| *more > 0) {
        lines += &format!("and {more} more types; --json lists all\n");
    }
    lines
}

/// The number of types that are listed for people.
const LISTED: usize = 20;

fn object(summary: &Summary, plan: &Plan) -> Value {
    json!({
        "summary": summary, "rows_added": plan.added(), "key_bytes": plan.key_bytes(),
        "order": format!("{:?}", plan.order), "moved": plan.moved,
    })
}

pub(crate) fn analyse(command: &Analyse, json: bool) -> Result<(), Failure> {
    let display = Display::new();
    let monolith = read(&command.source, &display)?;
    let chosen = size(&command.source, &monolith);
    let rows = monolith.system().rows() as u64;
    let mut sizes: Vec<u64> = match command.source.rows {
        Some(_) => Vec::new(),
        None => (14..=20).map(|log| 1 << log).filter(|size| size / 2 < rows).collect(),
    };
    sizes.push(chosen);
    sizes.sort_unstable();
    sizes.dedup();
    let mut list = Vec::new();
    let mut lines = format!(
        "{}: {} constraints ({} linear), {} wires ({} public), {} terms\n\n\
         {:>11} {:>8} {:>7} {:>12} {:>8} {:>11} {:>13}\n",
        monolith.source().name,
        count(monolith.source().rows),
        count(monolith.system().linear_rows()),
        count(monolith.system().wires().into()),
        count(monolith.system().public().into()),
        count(monolith.system().terms() as u64),
        "rows a part",
        "parts",
        "types",
        "slots",
        "added",
        "keys",
        "memory each"
    );
    let mut notes = Vec::new();
    for most in sizes {
        let plan = match monolith.cut(most, |_| {}) {
            Ok(plan) => plan,
            Err(e @ ImportError::DoesNotFit(_)) => {
                lines += &format!("{:>11}  {e}\n", count(most));
                list.push(json!({ "rows": most, "error": e.to_string() }));
                continue;
            }
            Err(e) => return Err(failure(e)),
        };
        let memory = prover_bytes(plan.parts.largest());
        let [sums, packs] = plan.parts.derived.counts();
        let mark = if most == chosen { "  <- import takes this" } else { "" };
        lines += &format!(
            "{:>11} {:>8} {:>7} {:>12} {:>6.2} % {:>11} {:>13}{mark}\n",
            count(most),
            count(plan.parts.parts.len() as u64),
            count(plan.parts.types.len() as u64),
            count(plan.slots()),
            100.0 * plan.added(),
            bytes(plan.key_bytes()),
            bytes(memory),
        );
        list.push(json!({
            "rows": most, "parts": plan.parts.parts.len(), "types": plan.parts.types.len(),
            "slots": plan.slots(), "sums": sums, "packs": packs, "rows_added": plan.added(), "key_bytes": plan.key_bytes(),
            "prover_bytes": memory, "chosen": most == chosen,
        }));
        if most == chosen {
            notes = self::notes(&monolith, &plan);
        }
    }
    let templates = match &command.source.sym {
        Some(path) => {
            display.line(&format!("reading {}", path.display()));
            monolith.templates(path).map_err(failure)?
        }
        None => Vec::new(),
    };
    drop(display);
    lines += &template_table(&templates);
    notes.iter().for_each(|note| lines += &format!("note: {note}\n"));
    lines += "`hekaton estimate` of an imported circuit says how long it takes";
    let object = json!({
        "ok": true, "source": monolith.source(), "terms": monolith.system().terms(),
        "linear": monolith.system().linear_rows(), "cuts": list, "notes": notes,
        "templates": templates.iter().map(|t| json!({
            "example": t.example, "components": t.components, "constraints": t.rows,
            "interface": t.interface,
        })).collect::<Vec<_>>(),
    });
    output::result(json, &object, &lines)
}

/// The templates that repeat, for people.
fn template_table(templates: &[Template]) -> String {
    if templates.is_empty() {
        return String::new();
    }
    let mut lines = format!(
        "\n{:>11} {:>12} {:>10}  templates that repeat, by their first component\n",
        "components", "constraints", "interface"
    );
    for template in templates.iter().take(LISTED) {
        lines += &format!(
            "{:>11} {:>12} {:>10}  {}\n",
            count(template.components),
            count(template.rows),
            count(template.interface),
            template.example
        );
    }
    if let Some(more) = templates.len().checked_sub(LISTED).filter(|more| *more > 0) {
        lines += &format!("and {more} more; --json lists all\n");
    }
    lines + "\n"
}
