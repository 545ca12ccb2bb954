//! The report as one self-contained page: no scripts, and no style sheets or fonts from elsewhere.

use super::Summary;
use hekaton_core::events::{Event, Phase, Record};
use hekaton_terminal::output;
use std::collections::BTreeMap;
// Writing to a string cannot fail, so the results of `write!` are ignored in this file.
use std::fmt::Write;

/// Width of the charts, in SVG units.
const WIDTH: f64 = 1100.0;
const LEFT: f64 = 110.0;
const ROW: f64 = 18.0;
/// Bars that are closer than this are merged, so that a page stays small for any number of subcircuits.
const MERGE: f64 = 0.4;

/// A bar of the chart; times are seconds since the first process started.
struct Bar {
    start: f64,
    end: f64,
    phase: Phase,
    label: String,
    count: usize,
}

#[derive(Default)]
struct Timeline {
    phases: Vec<Bar>,
    /// by length and name, so that prover-10 follows prover-9
    provers: BTreeMap<(usize, String), Vec<Bar>>,
    memory: Vec<(f64, u64)>,
    /// when processes after the first started
    restarts: Vec<f64>,
    end: f64,
}

impl Timeline {
    /// Places processes one after the other, without the time between them: the wall clocks of two machines
    /// need not agree.
    fn new(records: &[Record]) -> Self {
        let mut out = Self::default();
        let mut offset = 0.0;
        let mut open: Option<(Phase, f64)> = None;
        for record in records {
            // Files may be edited or damaged; a bar must not start before the chart.
            let at = offset + record.at.max(0.0);
            match &record.event {
                Event::ProcessStart { .. } => {
                    close(&mut out.phases, &mut open, out.end);
                    offset = out.end;
                    if offset > 0.0 {
                        out.restarts.push(offset);
                    }
                    continue;
                }
                Event::PhaseStart { phase, .. } => {
                    close(&mut out.phases, &mut open, out.end);
                    open = Some((*phase, at));
                }
                Event::PhaseEnd { .. } => close(&mut out.phases, &mut open, at),
                Event::Subcircuit { phase, instance, kind, start, seconds, prover, .. } => {
                    let label = format!(
                        "{}: subcircuit {instance} ({kind}), {}",
                        phase.name(),
                        output::seconds_f64(*seconds)
                    );
                    let start = offset + start.max(0.0);
                    let bar = Bar {
                        start,
                        end: start + seconds.max(0.0),
                        phase: *phase,
                        label,
                        count: 1,
                    };
                    out.provers.entry((prover.len(), prover.clone())).or_default().push(bar);
                }
                Event::Memory { resident, .. } => out.memory.push((at, *resident)),
                _ => {}
            }
            out.end = out.end.max(at);
        }
        close(&mut out.phases, &mut open, out.end);
        out
    }
}

fn close(phases: &mut Vec<Bar>, open: &mut Option<(Phase, f64)>, end: f64) {
    if let Some((phase, start)) = open.take() {
        let label = format!("{}: {}", phase.name(), output::seconds_f64(end - start));
        phases.push(Bar { start, end: end.max(start), phase, label, count: 1 });
    }
}

fn class(phase: Phase) -> &'static str {
    match phase {
        Phase::LoadKeys => "load",
        Phase::Execute => "execute",
        Phase::Commit => "commit",
        Phase::Prove => "prove",
        Phase::Aggregate | Phase::Assemble => "aggregate",
    }
}

// Event files come from elsewhere, and a page runs in the reader's browser: names of hosts, circuits and provers must not
// become markup.
/// Escapes text from a file for HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A round step for an axis of about `parts` steps: 1, 2 or 5 times a power of ten.
fn step(end: f64, parts: f64) -> f64 {
    let raw = (end / parts).max(1e-9);
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= raw).unwrap_or(10.0);
    factor * power
}

/// Draws one row of bars, and merges those that would be less than a pixel apart.
fn row(svg: &mut String, y: f64, name: &str, bars: &[Bar], scale: f64) {
    let _ = write!(
        svg,
        r#"<text class="name" x="{:.1}" y="{:.1}">{}</text>"#,
        LEFT - 8.0,
        y + ROW * 0.68,
        escape(name)
    );
    let mut merged: Option<Bar> = None;
    let mut sorted: Vec<&Bar> = bars.iter().collect();
    sorted.sort_by(|a, b| a.start.total_cmp(&b.start));
    for bar in sorted {
        if let Some(last) = &mut merged
            && last.phase == bar.phase
            && (last.end - last.start) * scale < MERGE
            && (bar.start - last.end) * scale < MERGE
        {
            last.end = last.end.max(bar.end);
            last.count += 1;
            last.label = format!("{}: {} subcircuits", bar.phase.name(), last.count);
            continue;
        }
        draw(svg, y, merged.take(), scale);
        merged = Some(Bar { label: bar.label.clone(), ..*bar });
    }
    draw(svg, y, merged, scale);
}

fn draw(svg: &mut String, y: f64, bar: Option<Bar>, scale: f64) {
    let Some(bar) = bar else { return };
    let _ = write!(
        svg,
        r#"<rect class="{}" x="{:.2}" y="{:.1}" width="{:.2}" height="{:.1}"><title>{}</title></rect>"#,
        class(bar.phase),
        LEFT + bar.start * scale,
        y + 1.0,
        // A bar of no width would be invisible.
        ((bar.end - bar.start) * scale).max(0.3),
        ROW - 3.0,
        escape(&bar.label)
    );
}

fn gantt(timeline: &Timeline) -> String {
    // A run that ended at once has no width to divide by.
    let scale = (WIDTH - LEFT - 10.0) / timeline.end.max(1e-6);
    let rows = timeline.provers.len() as f64 + 1.0;
    let height = rows * ROW + 30.0;
    let mut svg = format!(
        r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="Gantt chart of phases and provers">"#
    );
    axis(&mut svg, timeline, scale, rows * ROW);
    row(&mut svg, 0.0, "phases", &timeline.phases, scale);
    for (i, ((_, name), bars)) in timeline.provers.iter().enumerate() {
        row(&mut svg, (i as f64 + 1.0) * ROW, name, bars, scale);
    }
    svg + "</svg>"
}

/// Draws the grid, the times, and the starts of processes.
fn axis(svg: &mut String, timeline: &Timeline, scale: f64, height: f64) {
    let step = step(timeline.end, 10.0);
    for at in (0..=20).map(|i| f64::from(i) * step).take_while(|at| *at <= timeline.end) {
        let x = LEFT + at * scale;
        let _ =
            write!(svg, r#"<line class="grid" x1="{x:.1}" y1="0" x2="{x:.1}" y2="{height:.1}"/>"#);
        let _ = write!(
            svg,
            r#"<text class="tick" x="{x:.1}" y="{:.1}">{}</text>"#,
            height + 14.0,
            output::seconds_f64(at)
        );
    }
    for at in &timeline.restarts {
        let x = LEFT + at * scale;
        let _ = write!(
            svg,
            r#"<line class="restart" x1="{x:.1}" y1="0" x2="{x:.1}" y2="{height:.1}"><title>a new process resumes the run</title></line>"#
        );
    }
}

fn memory(timeline: &Timeline) -> String {
    let scale = (WIDTH - LEFT - 10.0) / timeline.end.max(1e-6);
    let (height, most) = (140.0, timeline.memory.iter().map(|(_, b)| *b).max().unwrap_or(1).max(1));
    let mut svg = format!(
        r#"<svg viewBox="0 0 {WIDTH} {:.0}" role="img" aria-label="memory over time">"#,
        height + 30.0
    );
    axis(&mut svg, timeline, scale, height);
    let mut points = String::new();
    let mut last = f64::NEG_INFINITY;
    for (at, bytes) in &timeline.memory {
        let x = LEFT + at * scale;
        // Memory is sampled twice a second: a long run has more samples than the chart has points.
        if x - last < MERGE {
            continue;
        }
        last = x;
        let _ =
            write!(points, "{x:.1},{:.1} ", height - *bytes as f64 / most as f64 * (height - 10.0));
    }
    let _ = write!(svg, r#"<polyline class="memory" points="{}"/>"#, points.trim_end());
    let _ = write!(
        svg,
        r#"<text class="name" x="{:.1}" y="12">{}</text>"#,
        LEFT - 8.0,
        output::bytes(most)
    );
    let _ = write!(svg, r#"<text class="name" x="{:.1}" y="{height:.1}">0</text>"#, LEFT - 8.0);
    svg + "</svg>"
}

fn slowest(summary: &Summary) -> String {
    let mut out =
        "<table><tr><th>subcircuit</th><th>type</th><th>round</th><th>time</th><th>prover</th></tr>".to_owned();
    for s in &summary.slowest {
        let time = output::seconds_f64(s.seconds);
        let (kind, prover) = (escape(&s.kind), escape(&s.prover));
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{kind}</td><td>{}</td><td>{time}</td><td>{prover}</td></tr>",
            s.instance,
            s.phase.name()
        );
    }
    out + "</table>"
}

fn types(summary: &Summary) -> String {
    let mut out = "<table><tr><th>type</th><th>constraints</th><th>instances</th></tr>".to_owned();
    for t in summary.parameters.iter().flat_map(|p| &p.types) {
        let (constraints, instances) = (output::count(t.constraints), output::count(t.instances));
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{constraints}</td><td>{instances}</td></tr>",
            escape(&t.name)
        );
    }
    out + "</table>"
}

fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
    format!("<h2>{title}</h2><ul>{items}</ul>")
}

fn processes(summary: &Summary) -> String {
    let mut out =
        "<table><tr><th>process</th><th>machine</th><th>time</th><th>ending</th></tr>".to_owned();
    for p in &summary.processes {
        let (host, time) = (escape(&p.host), output::seconds_f64(p.end));
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{host}</td><td>{time}</td><td>{}</td></tr>",
            p.pid,
            p.ending()
        );
    }
    out + "</table>"
}

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1c2430; --soft: #657085; --grid: #d9dee7; --back: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ef; --soft: #9aa4b5; --grid: #353c49; --back: #14181f; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1140px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
pre { overflow-x: auto; font-size: 13px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid var(--grid); }
svg { width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 11px; } .name { text-anchor: end; } .tick { text-anchor: middle; }
.grid { stroke: var(--grid); } .restart { stroke: #d1495b; stroke-dasharray: 4 3; } .memory { fill: none; stroke: #3d6fb6; stroke-width: 1.6; }
.load { fill: #9aa4b5; } .execute { fill: #8f63b8; } .commit { fill: #d9902f; } .prove { fill: #3d6fb6; } .aggregate { fill: #3a9a68; }
.key span { display: inline-block; width: .8em; height: .8em; margin: 0 .35em 0 1em; } .key .load { background: #9aa4b5; }
.key .execute { background: #8f63b8; } .key .commit { background: #d9902f; } .key .prove { background: #3d6fb6; } .key .aggregate { background: #3a9a68; }
";

/// Renders the page.
pub(super) fn page(summary: &Summary, records: &[Record]) -> String {
    let timeline = Timeline::new(records);
    let title = summary
        .parameters
        .as_ref()
        .map_or_else(|| "run".to_owned(), |p| format!("{} {}", p.circuit, p.parameters));
    let key: String = summary
        .phases()
        .map(|p| format!(r#"<span class="{}"></span>{}"#, class(p), p.name()))
        .collect();
    // The empty icon keeps browsers from asking a server for one: it would be the only request of the page.
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\"><title>Hekaton: {title}</title><style>{STYLE}</style></head><body>\n\
         <h1>Hekaton: {title}</h1>\n<pre>{table}</pre>\n{errors}{notices}\
         <h2>Phases and provers</h2><p class=\"key\">{key}</p>{gantt}\n<h2>Memory</h2>{memory}\n\
         <h2>Slowest subcircuits</h2>{slowest}\n<h2>Types</h2>{types}\n<h2>Processes</h2>{processes}\n</body></html>\n",
        title = escape(&title),
        table = escape(&summary.table()),
        errors = list("Errors", &summary.errors),
        notices = list("Notes", &summary.notices),
        gantt = gantt(&timeline),
        memory = memory(&timeline),
        slowest = slowest(summary),
        types = types(summary),
        processes = processes(summary),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_text_and_many_bars_become_few() {
        let mut records = vec![Record {
            at: 0.0,
            event: Event::ProcessStart {
                schema: 1,
                program: "p".into(),
                host: "<script>".into(),
                pid: 1,
                unix_time: 0.0,
            },
        }];
        for i in 0..20_000u64 {
            let start = i as f64 * 1e-3;
            records.push(Record {
                at: start + 1e-3,
                event: Event::Subcircuit {
                    cpu_seconds: 0.5,
                    phase: Phase::Prove,
                    instance: i,
                    kind: "<b>".into(),
                    start,
                    seconds: 1e-3,
                    bytes: 1,
                    prover: "\"p\"".into(),
                },
            });
        }
        let mut summary = Summary::default();
        records.iter().for_each(|r| summary.add(r));
        summary.end();
        let page = page(&summary, &records);
        assert!(
            !page.contains("<script>") && !page.contains("<b>") && page.contains("&lt;script&gt;")
        );
        let bars = page.matches("<rect").count();
        assert!((100..=3000).contains(&bars), "{bars} bars");
        assert!(page.len() < 1 << 20, "{} bytes", page.len());
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(
            [step(10.0, 10.0), step(33.0, 10.0), step(0.7, 10.0)].map(|s| (s * 1e3).round()),
            [1e3, 5e3, 100.0]
        );
    }
}
