//! Profiles of runs: tables, and flame graphs as SVG.

use super::lines::Lines;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, count};
use hekaton_vm::{Cost, Profile};
use inferno::flamegraph::{Options, from_lines};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The number of functions and of loops in the tables.
const FUNCTIONS: usize = 12;
const LOOPS: usize = 6;

/// The maximum number of characters of a name in the tables.
const NAME: usize = 44;

/// The files of a profile: the flame graph in constraints, and that in cycles.
pub(crate) fn files(path: &Path) -> [PathBuf; 2] {
    [path.to_owned(), path.with_extension("cycles.svg")]
}

/// Writes both flame graphs.
pub(crate) fn write(profile: &Profile, path: &Path, name: &str) -> Result<(), Failure> {
    let [constraints, cycles] = files(path);
    // Semicolons separate functions, also in names such as [u8; 32].
    let names: Vec<String> = profile.functions.iter().map(|it| it.name.replace(';', ",")).collect();
    let graph = |unit: &str, of: &dyn Fn(&Cost) -> u64| -> Result<Vec<u8>, Failure> {
        let lines: Vec<String> = (profile.stacks.iter())
            .map(|(stack, cost)| {
                let stack: Vec<&str> = stack.iter().map(|at| names[*at].as_str()).collect();
                format!("{} {}", stack.join(";"), of(cost))
            })
            .collect();
        let mut options = Options::default();
        options.title = format!("{name}: {unit}");
        options.count_name = unit.to_owned();
        let mut svg = Vec::new();
        from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
            .or_fail(exit::FAILED)?;
        Ok(svg)
    };
    output::write(&constraints, &graph("constraints", &|cost| cost.constraints)?)?;
    output::write(&cycles, &graph("cycles", &|cost| cost.cycles)?)
}

/// A profile as JSON, all functions and loops included.
pub(crate) fn object(profile: &Profile, lines: Option<&Lines<'_>>) -> Value {
    let functions = profile.functions.iter().map(|it| {
        let chips: serde_json::Map<String, Value> =
            it.chips.iter().map(|(chip, cost)| (chip.name().to_owned(), json!(cost))).collect();
        json!({
            "name": it.name, "calls": it.calls, "cycles": it.own.cycles,
            "constraints": it.own.constraints, "total_cycles": it.total.cycles,
            "total_constraints": it.total.constraints, "chips": chips,
        })
    });
    let loops = profile.loops.iter().map(|it| {
        json!({
            "function": it.function, "start": it.start, "end": it.end, "iterations": it.iterations,
            "cycles": it.cost.cycles, "constraints": it.cost.constraints,
            "line": lines.and_then(|lines| lines.at(it.start)),
        })
    });
    json!({ "functions": functions.collect::<Vec<_>>(), "loops": loops.collect::<Vec<_>>() })
}

/// The functions and loops that cost most, for people.
pub(crate) fn table(profile: &Profile, lines: Option<&Lines<'_>>) -> String {
    let share = |cost: Cost| 100.0 * cost.constraints as f64 / profile.total.constraints as f64;
    let mut text = format!(
        "{:>7} {:>7} {:>14} {:>10}  {:<NAME$}  chips\n",
        "own", "total", "cycles", "calls", "function"
    );
    for it in profile.functions.iter().filter(|it| it.own.cycles > 0).take(FUNCTIONS) {
        let chips = it.chips.iter().take(3).map(|(chip, constraints)| {
            format!(
                "{} {:.0} %",
                chip.name(),
                100.0 * *constraints as f64 / it.own.constraints as f64
            )
        });
        text += &format!(
            "{:>5.1} % {:>5.1} % {:>14} {:>10}  {:<NAME$}  {}\n",
            share(it.own),
            share(it.total),
            count(it.own.cycles),
            count(it.calls),
            short(&it.name),
            chips.collect::<Vec<_>>().join(", ")
        );
    }
    text += &format!("\n{:>7} {:>14} {:>14}  loop\n", "own", "cycles", "iterations");
    for it in profile.loops.iter().take(LOOPS) {
        let line = lines.and_then(|lines| lines.at(it.start));
        let line = line.map_or_else(String::new, |line| format!(" at {line}"));
        text += &format!(
            "{:>5.1} % {:>14} {:>14}  {}, {:#x} to {:#x}{line}\n",
            share(it.cost),
            count(it.cost.cycles),
            count(it.iterations),
            short(&it.function),
            it.start,
            it.end
        );
    }
    text
}

/// The end of a name, which says most: the beginning is that of crates and modules.
fn short(name: &str) -> String {
    let characters = name.chars().count();
    match characters.checked_sub(NAME) {
        None | Some(0) => name.to_owned(),
        Some(more) => format!("..{}", name.chars().skip(more + 2).collect::<String>()),
    }
}
