//! `hekaton import`.

use super::cuts::{Cuts, failure};
use super::options::Import;
use super::tables::{cut_object, cuts_table, template_table, types_table};
use hekaton_app::product::is_path;
use hekaton_r1cs::directory::{Summary, check_free};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, bytes, count, counted};
use hekaton_terminal::progress::Display;
use hekaton_terminal::shell;
use hekaton_terminal::unfinished::Unfinished;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

pub(super) fn run(command: &Import, json: bool) -> Result<(), Failure> {
    match &command.out {
        Some(out) => import(command, out, json),
        None => dry_run(command, json),
    }
}

fn import(command: &Import, out: &Path, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let unfinished = Unfinished::start("interrupted: nothing was imported", json)?;
    // Before minutes of reading and cutting.
    check_free(out).or_fail(exit::BAD_FILE)?;
    let display = Display::new();
    let cuts = Cuts::of(command, &display)?;
    let notes = cuts.notes();
    notes.iter().for_each(|note| display.line(&format!("note: {note}")));
    if !command.force {
        cuts.refuse_waste()?;
    }
    display.line("writing and checking the parts");
    let began = |path: &Path| unfinished.result(path);
    let (summary, report) = cuts.monolith.write_with(&cuts.plan, out, began).map_err(failure)?;
    drop(display);
    let plan = &cuts.plan;
    let object = json!({
        "ok": true, "circuit": out, "summary": summary, "rows_added": plan.added(),
        "key_bytes": plan.key_bytes(), "order": format!("{:?}", plan.order), "moved": plan.moved,
        "cuts": cuts.considered.iter().map(|cut| cut_object(&cuts, cut)).collect::<Vec<_>>(),
        "notes": notes, "seconds": start.elapsed().as_secs_f64(),
    });
    let lines = types_table(&summary)
        + &imported(&cuts, &summary, report.rows as u64, [&command.file, out]);
    output::result(json, &object, &lines)
}

/// Describes a finished import, and the next command.
fn imported(cuts: &Cuts, summary: &Summary, checked: u64, [source, out]: [&Path; 2]) -> String {
    format!(
        "{} of {} in {} of {}: {}\n\
         {} slots of shared wires, with {} sums and {} packs of bits in place of others, add {:.2} % to \
         the constraints; about {} of proving keys\n\
         checked: each of the {} constraints is in one part, and shared wires have one value\n\
         next: {} setup {} --r1cs {} --keys KEYS",
        counted(checked, "constraint"),
        summary.source.name,
        counted(summary.parts as u64, "part"),
        counted(summary.types.len() as u64, "type"),
        out.display(),
        count(summary.slots),
        count(summary.sums),
        count(summary.packs),
        100.0 * cuts.plan.added(),
        bytes(cuts.plan.key_bytes()),
        count(checked),
        output::program(),
        as_circuit(out),
        shell::path(source),
    )
}

/// A path in the position of a circuit's name: with a slash, so that it is not taken for a name.
fn as_circuit(path: &Path) -> String {
    match is_path(&path.to_string_lossy()) {
        true => shell::path(path),
        false => shell::path(&Path::new(".").join(path)),
    }
}

fn dry_run(command: &Import, json: bool) -> Result<(), Failure> {
    let display = Display::new();
    let cuts = Cuts::of(command, &display)?;
    let templates = match &command.sym {
        Some(path) => {
            display.line(&format!("reading {}", path.display()));
            cuts.monolith.templates(path).map_err(failure)?
        }
        None => Vec::new(),
    };
    drop(display);
    let notes = cuts.notes();
    let (source, system) = (cuts.monolith.source(), cuts.monolith.system());
    let lines = format!(
        "{}: {} constraints ({} linear), {} wires ({} public), {} terms\n\n{}{}{}setup and run: on {} provers of a \
         reference machine; `{} estimate` of an imported circuit measures this one",
        source.name,
        count(source.rows),
        count(system.linear_rows()),
        count(system.wires().into()),
        count(system.public().into()),
        count(system.terms() as u64),
        cuts_table(&cuts),
        template_table(&templates),
        notes.iter().map(|note| format!("note: {note}\n")).collect::<String>(),
        count(cuts.provers.get() as u64),
        output::program(),
    );
    let templates_json = templates.iter().map(|template| {
        json!({
            "example": template.example, "components": template.components,
            "constraints": template.rows, "interface": template.interface,
        })
    });
    let object = json!({
        "ok": true, "source": source, "terms": system.terms(), "linear": system.linear_rows(),
        "cuts": cuts.considered.iter().map(|cut| cut_object(&cuts, cut)).collect::<Vec<_>>(),
        "notes": notes, "templates": templates_json.collect::<Vec<Value>>(),
    });
    output::result(json, &object, &lines)
}
