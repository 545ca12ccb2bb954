//! `hekaton check` of constraints that are not imported yet.

use super::unique::{self, Subject};
use crate::app::App;
use crate::application::SourceCheck;
use crate::options::Check;
use crate::public_values;
use hekaton_terminal::exit::Failure;
use hekaton_terminal::output;
use serde_json::json;
use std::path::Path;

pub(super) fn run(path: &Path, command: &Check, app: &App, json: bool) -> Result<(), Failure> {
    let checked = app.imports()?.check_source(&SourceCheck {
        source: path,
        symbols: command.sym.as_deref(),
        witness: &command.file,
        unique: command.unique.unique,
        second: command.unique.second.as_deref(),
    })?;
    let subjects: Vec<Subject> = checked.unique.into_iter().map(Subject::from).collect();
    unique::failure(&subjects, &command.unique)?;
    let (public, names, notices) = (&checked.public, &checked.names, &checked.notices);
    let text = json!(public.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string();
    let object = json!({
        "ok": true, "constraints": checked.constraints, "public": text, "public_values": public_values::by_name(names, public),
        "notices": notices,
        "unique": unique::object(&subjects),
    });
    let mut lines = format!(
        "all {} hold\npublic values: {}",
        output::counted(checked.constraints, "constraint"),
        public_values::for_people(&text, names, || names.clone(), public)
    );
    for notice in notices {
        lines += &format!("\nnotice: {notice}");
    }
    lines += &unique::lines(&subjects, &command.unique);
    output::result(json, &object, &lines)
}
