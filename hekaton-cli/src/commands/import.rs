//! `hekaton import` and `hekaton analyse`.

use crate::exit::{self, Failure, OrFail};
use crate::imported::is_path;
use crate::options::{Analyse, Import, Source};
use crate::terminal::output::{self, bytes, count, seconds_f64};
use crate::terminal::progress::Display;
use hekaton_plan::{CutCost, CutType, Workers, cut_cost, prover_bytes};
use hekaton_r1cs::directory::{Summary, check_free};
use hekaton_r1cs::partition::{Choice, Considered, Depth, PartSizes, Plan, Price};
use hekaton_r1cs::{ImportError, Monolith, Template};
use hekaton_terminal::{shell, signals};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Rows that a cut adds to those of one part, as a fraction: beyond the first, `import` says so, beyond the
/// second it refuses where one part alone is faster.
const MANY: f64 = 0.25;
const TOO_MANY: f64 = 1.0;
/// More parts than this times as many as the constraints need are worth a note.
const MANY_PARTS: u64 = 2;

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

/// Returns the cost of parts with the number of provers that will take part.
fn cost(parts: &[PartSizes], provers: NonZeroUsize) -> CutCost {
    let kind = |sizes: &PartSizes| {
        let PartSizes { parts, constraints, slots, own, bits, in_a, in_b, terms, .. } = *sizes;
        CutType { parts, constraints, slots, own, bits, in_a, in_b, terms }
    };
    let types: Vec<CutType> = parts.iter().map(kind).collect();
    cut_cost(&types, Workers { ranks: 1, threads: provers.get() })
}

fn provers(source: &Source) -> NonZeroUsize {
    let threads = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    source.provers.unwrap_or_else(threads)
}

/// The plan with the size of parts that was asked for, or the cheapest one.
fn cut(
    source: &Source,
    monolith: &Monolith,
    display: &Display,
) -> Result<(Plan, Vec<Considered>), Failure> {
    let rows = monolith.system().rows() as u64;
    // Small circuits are cut before a line could be read.
    let mut last = None;
    let step = |step| {
        if rows >= 1 << 18 && last.replace(step) != Some(step) {
            display.line(&format!("{step}"));
        }
    };
    let provers = provers(source);
    let price = |parts: &[PartSizes]| {
        let cost = cost(parts, provers);
        Price { seconds: cost.seconds(), proving: cost.cpu_seconds }
    };
    let Some(most) = source.rows else {
        let Choice { plan, considered, .. } = monolith.choose(price, step).map_err(failure)?;
        return Ok((plan, considered));
    };
    let plan = monolith.cut(most, step).map_err(failure)?;
    let parts = monolith.sizes(&plan);
    let seconds = price(&parts).seconds;
    Ok((plan, vec![Considered { most, depth: Depth::Plan, parts: Ok(parts), seconds }]))
}

/// Notes on a cut that is worse than it could be.
fn notes(source: &Source, monolith: &Monolith, plan: &Plan) -> Vec<String> {
    let mut notes = monolith.notices();
    let (parts, types) = (plan.parts.parts.len() as u64, plan.parts.types.len() as u64);
    let remedy = match source.rows {
        Some(_) => {
            "larger parts (--rows) may need fewer, and without --rows import takes the cheapest"
        }
        None => "larger parts would take longer in all",
    };
    if plan.beyond_one_part() > MANY {
        notes.push(format!(
            "the cut adds {:.0} % more rows, because the constraints of a part share most of their \
             wires with others; {remedy}",
            100.0 * plan.beyond_one_part()
        ));
    }
    let least = plan.least_parts();
    if parts > MANY_PARTS * least {
        notes.push(format!(
            "{} parts, where the constraints alone would need {}: shared wires take the room; {remedy}",
            count(parts),
            count(least)
        ));
    }
    // circom's --O2 removes linear constraints, so that components that repeated no longer do.
    if parts >= 4 && types == parts && monolith.system().linear_rows() == 0 {
        notes.push(
            "no two parts are equal, and no constraint is linear: circom's --O1 often leaves parts that \
             repeat, which share a key"
                .to_owned(),
        );
    }
    notes
}

/// Refuses a cut that is slower than the circuit in one part.
fn refuse_waste(source: &Source, monolith: &Monolith, plan: &Plan) -> Result<(), Failure> {
    if plan.beyond_one_part() <= TOO_MANY {
        return Ok(());
    }
    let seconds = |parts: &[PartSizes]| cost(parts, provers(source)).run_seconds();
    let (cut, whole) = (seconds(&monolith.sizes(plan)), seconds(&[monolith.in_one_part()]));
    if cut < whole {
        return Ok(());
    }
    let why = format!(
        "the cut adds {:.0} % more rows, so that a run takes about {} and one part alone {}: leave out \
         --rows, or import it all the same with --force",
        100.0 * plan.beyond_one_part(),
        seconds_f64(cut),
        seconds_f64(whole)
    );
    Err(Failure::new(exit::FAILED, why))
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
    let (plan, considered) = cut(source, &monolith, &display)?;
    let notes = notes(source, &monolith, &plan);
    notes.iter().for_each(|note| display.line(&format!("note: {note}")));
    if !command.force {
        refuse_waste(source, &monolith, &plan)?;
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
    object["cuts"] =
        considered.iter().map(|cut| cut_object(&monolith, cut, &plan, source)).collect();
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

/// A path as a circuit's name must be written in a command: with a slash, if it would be a name.
fn shown(path: &Path) -> String {
    match is_path(&path.to_string_lossy()) {
        true => shell::path(path),
        false => shell::path(&Path::new(".").join(path)),
    }
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

/// A size that was considered, as numbers.
fn cut_object(monolith: &Monolith, cut: &Considered, plan: &Plan, source: &Source) -> Value {
    let parts = match &cut.parts {
        Ok(parts) => parts,
        Err(error) => return json!({ "rows": cut.most, "error": error.to_string() }),
    };
    let cost = cost(parts, provers(source));
    let known = match cut.depth {
        Depth::Bound => "bound",
        Depth::Draft => "draft",
        Depth::Plan => "plan",
    };
    let mut object = json!({
        "rows": cut.most, "known": known, "parts": parts.iter().map(|kind| kind.parts).sum::<u64>(),
        "types": parts.len(), "slots": slots(parts), "rows_added": added(monolith, parts),
        "key_bytes": cost.key_bytes, "prover_bytes": memory(parts), "run_seconds": cost.run_seconds(),
        "setup_seconds": cost.setup_seconds, "cost_seconds": cost.seconds(),
        "chosen": cut.most == plan.most,
    });
    if cut.most == plan.most {
        let [sums, packs] = plan.parts.derived.counts();
        (object["sums"], object["packs"]) = (json!(sums), json!(packs));
    }
    object
}

fn slots(parts: &[PartSizes]) -> u64 {
    parts.iter().map(|kind| kind.parts * kind.slots).sum()
}

/// The rows that parts have beyond the constraints, as a fraction of these.
#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
fn added(monolith: &Monolith, parts: &[PartSizes]) -> f64 {
    let rows: u64 = parts.iter().map(|kind| kind.parts * kind.constraints).sum();
    let source = monolith.system().rows() as u64;
    (rows + slots(parts)).saturating_sub(source) as f64 / source.max(1) as f64
}

/// The memory of a prover of the largest part.
fn memory(parts: &[PartSizes]) -> u64 {
    let each =
        |kind: &PartSizes| prover_bytes(kind.constraints + kind.slots, kind.own + 2 * kind.slots);
    parts.iter().map(each).max().unwrap_or_default()
}

/// The sizes that were considered, for people.
fn cuts_table(
    monolith: &Monolith,
    considered: &[Considered],
    plan: &Plan,
    source: &Source,
) -> String {
    let mut lines = format!(
        "{:>11} {:>8} {:>7} {:>12} {:>8} {:>11} {:>11} {:>9} {:>9}\n",
        "rows a part", "parts", "types", "slots", "added", "keys", "memory each", "setup", "run"
    );
    for cut in considered {
        let parts = match &cut.parts {
            Ok(parts) => parts,
            Err(error) => {
                lines += &format!("{:>11}  {error}\n", count(cut.most));
                continue;
            }
        };
        let cost = cost(parts, provers(source));
        let mark = match cut.depth {
            Depth::Plan if cut.most == plan.most => "  <- import takes this",
            Depth::Plan => "",
            Depth::Draft => "  (a quick cut)",
            Depth::Bound => "  (at least: not cut)",
        };
        lines += &format!(
            "{:>11} {:>8} {:>7} {:>12} {:>6.2} % {:>11} {:>11} {:>9} {:>9}{mark}\n",
            count(cut.most),
            count(parts.iter().map(|kind| kind.parts).sum()),
            count(parts.len() as u64),
            count(slots(parts)),
            100.0 * added(monolith, parts),
            bytes(cost.key_bytes),
            bytes(memory(parts)),
            seconds_f64(cost.setup_seconds),
            seconds_f64(cost.run_seconds()),
        );
    }
    lines
}

pub(crate) fn analyse(command: &Analyse, json: bool) -> Result<(), Failure> {
    let display = Display::new();
    let source = &command.source;
    let monolith = read(source, &display)?;
    let (plan, considered) = cut(source, &monolith, &display)?;
    let notes = notes(source, &monolith, &plan);
    let mut lines = format!(
        "{}: {} constraints ({} linear), {} wires ({} public), {} terms\n\n",
        monolith.source().name,
        count(monolith.source().rows),
        count(monolith.system().linear_rows()),
        count(monolith.system().wires().into()),
        count(monolith.system().public().into()),
        count(monolith.system().terms() as u64),
    );
    lines += &cuts_table(&monolith, &considered, &plan, source);
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
    lines += &format!(
        "setup and run: on {} provers of a reference machine; `hekaton estimate` of an imported circuit \
         measures this one",
        count(provers(source).get() as u64)
    );
    let cuts = considered.iter().map(|cut| cut_object(&monolith, cut, &plan, source));
    let cuts: Vec<Value> = cuts.collect();
    let object = json!({
        "ok": true, "source": monolith.source(), "terms": monolith.system().terms(),
        "linear": monolith.system().linear_rows(), "cuts": cuts, "notes": notes,
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
