"""index.html: all figures inline, claims, environment; no script, and nothing from elsewhere."""

import html
import io
import re

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; }
th, td { text-align: left; padding: 0.25rem 0.6rem 0.25rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
figure { margin: 0.6rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption, .note { font-size: 0.86rem; color: #444; }
.holds { color: #1b7f3b; font-weight: 600; } .fails { color: #b00020; font-weight: 600; } .skipped { color: #777; }
"""


def svg_of(figure, name):
    """The SVG of a figure, with ids of its own, so that several fit on one page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", out.getvalue(), flags=re.S)
    text = re.sub(r"<\?xml[^>]*\?>|<!DOCTYPE[^>]*>", "", text, flags=re.S).strip()
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    return re.sub(r"[ \t]+$", "", text, flags=re.M) + "\n"


def caption(experiment, results, paper):
    environment = results.environment
    points = results.of(experiment)
    done, failed = sum(p["repetitions"] for p in points), sum(p["failed"] for p in points)
    noisy = sum(p["noisy"] for p in points if p["repetitions"])
    # Sets of earlier versions have no such sentence.
    parts = [experiment["shows"]] if experiment.get("shows") else []
    if done:
        scales = ", ".join(sorted({p["scale"] for p in points}))
        parts.append(f"Ours: {processor(environment)}, scale {scales}; medians of {done} repetitions of "
                     f"{sum(1 for p in points if p['repetitions'])} points with 95 % intervals (bootstrap).")  # fmt: skip
    parts.append(f"Paper: {paper.machine['processor']}, as printed, not rescaled.")
    if done or failed:
        parts.append(f"Failed repetitions: {failed}.")
    if noisy:
        parts.append(f"Noisy points (interval over 10 % of the median): {noisy}, with a ring.")
    if experiment["name"] == "fig7":
        parts.append("The paper's shared wires cost 10 % of its constraints (10,000 occurrences of 13 constraints in "
                     "1.3 million); here an occurrence costs one constraint.")  # fmt: skip
    if experiment["name"] == "table2":
        parts.append("Averages per subcircuit; messages of each rank are included.")
    if environment.get("dirty"):
        parts.append("Measured with uncommitted changes.")
    return " ".join(parts)


def processor(environment):
    family = f" (family {environment.get('cpu_family')}, model {environment.get('cpu_model')})"
    return f"{environment.get('cpu')}{family if environment.get('cpu_family') else ''}, {environment['cores']} cores"


def pipeline(ours, text):
    """The commit pipeline of the key directory by mode and regime, beside the figures of the text that it grew from."""
    e = html.escape
    out = ["<h2>Key directory: the commit pipeline by mode and regime</h2>"]
    if not ours:
        return [*out, '<p class="skipped">not run</p>']
    names = ["epochs_per_second", "compute_ms", "write_ms", "sign_ms", "wait_ms", "idle_ms", "cpu_ms", "gain",
             "predicted_gain"]  # fmt: skip
    heads = ["regime", "mode", "epochs/s", "compute", "write", "sign", "A waits", "B idle", "CPU", "gain", "predicted"]
    out.append("<table><tr>" + "".join(f"<th>{e(head)}</th>" for head in heads) + "</tr>")
    for row in ours:
        cells = [row["regime"], row["mode"], *(f"{float(row[name]):.2f}" for name in names)]
        out.append("<tr>" + "".join(f"<td>{e(cell)}</td>" for cell in cells) + "</tr>")
    out.append('</table><p class="note">Medians; milliseconds an epoch. Gain: epochs a second over serial on this machine, '
               "losses included. Predicted: from what the stages take in serial mode, (a + b) / max(a, b, W / N).</p>")  # fmt: skip
    out.append("<table><tr><th>the text, 8 cores, blocks</th><th>serial</th><th>pipelined</th></tr>")
    for row in text:
        out.append(f"<tr><td>{e(row['figure'])}</td><td>{e(row['serial'])}</td><td>{e(row['pipelined'])}</td></tr>")
    out.append("</table>")
    return out


def page(results, paper, svgs, peers):
    e = html.escape
    out = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
           "<title>Experiments of the Hekaton paper, repeated</title>", f"<style>{STYLE}</style></head><body>",
           "<h1>Experiments of the Hekaton paper, repeated</h1>"]  # fmt: skip
    commit = (results.environment.get("commit") or "unknown")[:12]
    dirty = ", with uncommitted changes" if results.environment.get("dirty") else ""
    out.append(f"<p>{e(processor(results.environment))}; commit {e(commit)}{dirty}; environment "
               f"{e(results.environment['digest'])}. Filled: ours. Crosses: the paper's text. Hollow: derived from "
               "it. Bars and triangles: bounds. Grey: other provers on this machine.</p>")  # fmt: skip
    loads = [p["columns"]["load_at_start"][0] for p in results.points if "load_at_start" in p["columns"]]
    if loads:
        out.append(f"<p>Load of the machine before a repetition: {min(loads):.1f} to {max(loads):.1f} (medians of "
                   f"points, earlier repetitions included) on {results.environment['cores']} cores. Where other "
                   "programs run, wall times are too long, and CPU times remain comparable.</p>")  # fmt: skip
    out.append("<h2>Claims</h2><table><tr><th></th><th>claim</th><th>holds when</th><th></th><th>found</th></tr>")
    for c in results.claims:
        out.append(f"<tr><td>{e(c['id'])}</td><td>{e(c['claim'])} ({e(c['experiment'])})</td>"
                   f"<td>{e(c['holds_when'])}</td><td class=\"{e(c['verdict'])}\">{e(c['verdict'])}</td>"
                   f"<td>{e(c['found'])}</td></tr>")  # fmt: skip
    out.append("</table>")
    for experiment in results.experiments:
        name = experiment["name"]
        out.append(f"<h2>{e(name)}: {e(experiment['title'])}</h2>")
        if experiment["skipped"]:
            out.append(f"<p class=\"skipped\">skipped: {e(experiment['skipped'])} ({e(experiment['circuit'])})</p>")
        out.append(f"<figure>{svgs[name]}<figcaption>{e(caption(experiment, results, paper))}</figcaption></figure>")
    out.extend(pipeline(results.pipeline, paper.read("pipeline.csv")))
    out.append("<h2>Other provers on this machine</h2>")
    if peers:
        out.append(f"<figure>{peers}<figcaption>In alternation with Hekaton; above 1, Hekaton is faster. Where "
                   "constraints are counted, a worker's part of one subcircuit in one process; where blocks are, "
                   "whole proofs of other circuits for as many blocks.</figcaption></figure>")  # fmt: skip
    notes = [f"<li>{e(r['title'])}: {e(r['note'])}</li>" for r in results.peers if r["note"]]
    out.append("<ul class=\"note\">" + "".join(notes) + "</ul>" if notes else "")
    if not results.peers:
        out.append('<p class="skipped">not run</p>')
    out.append("<h2>Environment</h2><table>")
    for name, fact in sorted(results.environment.items()):
        shown = "unknown" if fact is None else str(fact)
        out.append(f"<tr><td>{e(name.replace('_', ' '))}</td><td>{e(shown)}</td></tr>")
    out.append("</table></body></html>")
    return "\n".join(out) + "\n"
