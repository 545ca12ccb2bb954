//! `hekaton circuits`.

use crate::app::App;
use hekaton_circuit::named::Description;
use hekaton_terminal::exit::Failure;
use hekaton_terminal::output;
use serde_json::{Value, json};

pub(crate) fn run(app: &App, json: bool) -> Result<(), Failure> {
    let all = app.descriptions();
    let object: Vec<Value> = all.iter().map(describe).collect();
    let mut lines = Vec::new();
    for d in &all {
        lines.push(format!("{}: {}", d.name, d.about));
        lines.push(format!("  input          {}", d.input));
        lines.push(format!("  public values  {}", d.public));
        for p in d.parameters {
            let default = p.default.map_or_else(String::new, |v| format!(" [default: {v}]"));
            lines.push(format!("  -p {:<12} {}{default}", p.name, p.help));
        }
        lines.push(String::new());
    }
    lines.push(
        "`setup` and `estimate` take missing parameters from --for FILE; `hash FILE` prints the \
         public values"
            .to_owned(),
    );
    output::result(json, &json!({ "ok": true, "circuits": object }), &lines.join("\n"))
}

fn describe(d: &Description) -> Value {
    let parameters: Vec<Value> = d
        .parameters
        .iter()
        .map(|p| json!({ "name": p.name, "help": p.help, "default": p.default }))
        .collect();
    json!({
        "name": d.name, "about": d.about, "input": d.input, "public": d.public,
        "parameters": parameters,
    })
}
