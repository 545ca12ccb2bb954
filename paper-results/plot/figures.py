"""One figure per experiment: ours filled with intervals, the paper's as they are known, peers grey."""

import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from data import value  # noqa: E402

OURS = ["#0b62a4", "#d1495b", "#2e8b57", "#7a4fa3", "#c77d0a", "#3d3d3d"]
PAPER, GREY, MODEL = "#000000", "#8c8c8c", "#c9a227"
LABELS = {
    "seconds": "proving time (s)", "constraints": "constraints", "subcircuits": "subcircuits",
    "constraints_per_core_second": "constraints per core-second", "aggregate_s": "aggregation (s)",
    "commit_request_bytes": "commit request (bytes)", "commit_response_bytes": "commit response (bytes)",
    "prove_request_bytes": "prove request (bytes)", "prove_response_bytes": "prove response (bytes)",
    "proof_bytes": "proof (bytes)", "verify_ms": "verification (ms)", "peak_memory_bytes": "peak memory (bytes)",
    "cores": "cores", "steps": "constraints per subcircuit", "units_per_second": "units per second",
    "batch": "updates per proof", "cycles": "cycles", "ranks": "ranks", "extra-wires": "extra wires",
    "leaf-bytes": "bytes per leaf", "adjusted_s": "proving time less other programs (s)",
}  # fmt: skip
plt.rcParams.update({
    "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#e4e4e4", "legend.fontsize": 7.5, "legend.frameon": False, "pdf.fonttype": 42,
    "font.family": "sans-serif",
})  # fmt: skip


def label(name):
    return LABELS.get(name, name)


def plain(x):
    if isinstance(x, str):
        return x
    return f"{x:,.0f}" if x == int(x) else f"{x:g}"


def draw(experiment, results, paper):
    """The figure of one experiment, and whether it has a point of ours."""
    columns = experiment["y"]
    wide = len(columns) > 2
    rows = 2 if wide else 1
    across = -(-len(columns) // rows)
    figure, axes = plt.subplots(rows, across, figsize=(4.7 * across, 3.4 * rows), squeeze=False, layout="constrained")
    points = [p for p in results.of(experiment) if p["repetitions"]]
    # A curve has one colour, whether it was measured or only the model knows it.
    rows = [(projected_curve(r, experiment), r) for r in results.projection if r["experiment"] == experiment["name"]]
    measured = [value(p, experiment["series"]) for p in results.of(experiment)]
    names = {curve(which[0]) for which in measured if which} | {name for name, _ in rows}
    ordered = sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))
    colors = {name: OURS[i % len(OURS)] for i, name in enumerate(ordered)}
    for ax, column in zip(axes.flat, columns):
        panel(ax, experiment, column, points, results, paper, rows, colors)
    for ax in axes.flat[len(columns):]:
        ax.set_visible(False)
    if not points:
        why = experiment["skipped"] or "not run"
        figure.suptitle(f"skipped: {why}" if experiment["skipped"] else why, color="#b00020", fontsize=10)
    return figure


def panel(ax, experiment, column, points, results, paper, rows, colors):
    x = experiment["x"]
    ours(ax, experiment, column, points, colors)
    seen = {"model": model(ax, experiment, column, points, results.model)}
    projected(ax, x, column, rows, colors)
    reference(ax, paper.of(experiment["name"], column))
    if column == "constraints_per_core_second" and experiment["name"] == "fig7":
        seen["peers"] = peers(ax, column, results.peers)
    ax.set_xlabel(label(x))
    units = {"batch": "updates per second", "cycles": "cycles per second"}
    ax.set_ylabel(units.get(x, label(column)) if column == "units_per_second" else label(column))
    ax.set_xscale("log", base=2)
    heights = [y for line in ax.lines for y in np.atleast_1d(line.get_ydata()) if y is not None and y > 0]
    ax.set_yscale("log", base=10)
    if heights and max(heights) < 12 * min(heights):
        middle = (max(heights) * min(heights)) ** 0.5
        ax.set_ylim(min(min(heights) / 1.3, middle / 4), max(max(heights) * 1.3, middle * 4))
    notes = [f"{name}: {what}" for name, what in seen.items() if what]
    for note in notes:
        ax.plot([], [], " ", label=note)
    if ax.get_legend_handles_labels()[0]:
        # Below the axes, where it covers no point.
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    else:
        ax.text(0.5, 0.5, "no point of the paper's text", transform=ax.transAxes, ha="center", color=GREY)


def ours(ax, experiment, column, points, colors):
    """Medians with their intervals, one curve per value of the series; noisy ones have a ring."""
    series = sorted({value(p, experiment["series"])[0] for p in points if value(p, experiment["series"])})
    for i, which in enumerate(series):
        own = [p for p in points if value(p, experiment["series"]) and value(p, experiment["series"])[0] == which]
        found = sorted(
            (value(p, experiment["x"])[0], *value(p, column), p["noisy"])
            for p in own if value(p, column) and value(p, experiment["x"])
        )  # fmt: skip
        if not found:
            continue
        xs, ys, lows, highs, noisy = (np.array(part) for part in zip(*found))
        color = colors.get(curve(which), OURS[i % len(OURS)])
        unit = label(experiment["series"])
        name = f"ours, {plain(which)}"
        if experiment["series"] != "variant":
            name += f" {unit.removesuffix('s') if which == 1 else unit}"
        ax.errorbar(xs, ys, yerr=[np.maximum(ys - lows, 0), np.maximum(highs - ys, 0)], fmt="o-", ms=4.5, lw=1.2,
                    capsize=2.5, color=color, label=name)  # fmt: skip
        if noisy.any() and column in ("seconds", "constraints_per_core_second", "aggregate_s"):
            first = not any(line.get_label() == "noisy" for line in ax.lines)
            ax.plot(xs[noisy], ys[noisy], "o", ms=9, mfc="none", mec=color, mew=0.7,
                    label="noisy" if first else "_noisy")  # fmt: skip


def reference(ax, values):
    """The paper's values, never rescaled."""
    named = set()
    lines = 0

    def once(name):
        fresh = name not in named
        named.add(name)
        return name if fresh else None

    for v in values:
        if v.x is None:
            if v.y is not None:
                ax.axhline(v.y, color=PAPER, lw=0.7, ls=(0, (1, 3)))
                # Values lie close together: labels side by side stay readable.
                ax.annotate(v.label, (0.995 - 0.13 * lines, v.y), xycoords=("axes fraction", "data"), fontsize=6,
                            ha="right", va="bottom")  # fmt: skip
                lines += 1
                if once("line"):
                    ax.plot([], [], color=PAPER, lw=0.7, ls=(0, (1, 3)), label="paper (size not stated)")
        elif v.how == "bound":
            if v.low is not None and v.high is not None:
                ax.plot([v.x, v.x], [v.low, v.high], "-", color=PAPER, lw=2.2, alpha=0.55, label=once("paper, bounds"))
            else:
                marker = "v" if v.low is None else "^"
                ax.plot([v.x], [v.high if v.low is None else v.low], marker, color=PAPER, ms=6, alpha=0.55,
                        label=once("paper, upper bound" if v.low is None else "paper, lower bound"))  # fmt: skip
        else:
            hollow = v.how == "derived"
            error = None
            if v.low is not None and v.high is not None and v.y is not None:
                error = [[max(v.y - v.low, 0)], [max(v.high - v.y, 0)]]
            ax.errorbar([v.x], [v.y], yerr=error, fmt="s" if hollow else "x", ms=5 if hollow else 6, mfc="none",
                        color=PAPER, lw=0.8, label=once("paper, derived" if hollow else "paper"))  # fmt: skip


def predicted(row, point, column):
    """Middle and ends of the model's band for a column; None if the model does not have it."""
    if column == "seconds":
        return [float(row[k]) for k in ("seconds", "lo_s", "hi_s")]
    if column == "aggregate_s":
        return [float(row[k]) for k in ("aggregate_s", "aggregate_lo_s", "aggregate_hi_s")]
    if column == "constraints_per_core_second" and value(point, "constraints") and value(point, "cores"):
        work = value(point, "constraints")[0] / value(point, "cores")[0]
        return [work / float(row[k]) for k in ("seconds", "hi_s", "lo_s")]
    if column == "units_per_second" and point.get("units"):
        return [point["units"] / float(row[k]) for k in ("seconds", "hi_s", "lo_s")]
    return None


def curve(which):
    """The name of a curve: that of a variant, or a number."""
    return which if isinstance(which, str) else f"{which:g}"


def projected_curve(row, experiment):
    """The curve of a row of projection.csv: its variant, or the value of the series' parameter, which is in its name."""
    found = re.search(rf"\.{re.escape(experiment['series'])}(\d+)(?:\.|$)", row["point"])
    return row["variant"] or (found.group(1) if found else "")


def projected(ax, x, column, rows, colors):
    """What the model says of machines that are not there: one broken line per curve and number of cores."""
    columns = {"seconds": lambda row: float(row["seconds"]), "aggregate_s": lambda row: float(row["aggregate_s"]),
               "units_per_second": lambda row: float(row["units"]) / float(row["seconds"]),
               "constraints_per_core_second":
                   lambda row: float(row["constraints"]) / float(row["cores"]) / float(row["seconds"])}  # fmt: skip
    if column not in columns:
        return
    named = set()
    # Over the cores, all of them are one line.
    group = (lambda row: None) if x == "cores" else (lambda row: int(row["cores"]))
    for j, count in enumerate(sorted({group(r) for _, r in rows})):
        for name in sorted({name for name, _ in rows}):
            own = [r for which, r in rows if which == name and group(r) == count]
            found = sorted((float(r["x"]), columns[column](r)) for r in own)
            if not found:
                continue
            xs, ys = zip(*found)
            text = "model, more cores" if count is None else f"model, {count:,} cores"
            label = None if count in named else text
            named.add(count)
            ax.plot(xs, ys, ["--", "-.", ":"][j % 3], lw=0.9, color=colors.get(name, GREY), alpha=0.75, label=label)


def model(ax, experiment, column, points, found):
    """The model's line and band from model.csv, one per curve; what to say if there is none."""
    if column not in ("seconds", "aggregate_s", "constraints_per_core_second", "units_per_second"):
        return None
    curves = {}
    for p in points:
        at, which = value(p, experiment["x"]), value(p, experiment["series"])
        row = (found or {}).get(p["point"])
        band = row and predicted(row, p, column)
        if at and which and band:
            curves.setdefault(which[0], []).append((at[0], *band))
    for i, (_, rows) in enumerate(sorted(curves.items())):
        xs, ys, lows, highs = zip(*sorted(rows))
        ax.fill_between(xs, lows, highs, color=MODEL, alpha=0.22, lw=0)
        ax.plot(xs, ys, ".-", ms=3, color=MODEL, lw=1, label="_model" if i else "model, with its interval")
    return None if curves else "not run"


def peers(ax, column, rows):
    """Other provers on this machine, as grey lines; what to say if there are none."""
    found = [r for r in rows if r["column"] == column and not r["note"] and r["peer"] != "hekaton"]
    for row in found:
        ax.axhline(float(row["value"]), color=GREY, lw=1)
        ax.annotate(f"{row['title']}, {row['cores']} cores, here", (0.01, float(row["value"])),
                    xycoords=("axes fraction", "data"), fontsize=6, color=GREY, va="bottom")  # fmt: skip
    return None if found else "not run"


def draw_peers(results):
    """Our throughput over that of other provers here; None if none was run."""
    names = {
        "ratio_constraints_per_core_second": "core-second",
        "ratio_constraints_per_cpu_second": "CPU-second",
        "ratio_blocks_per_core_second": "core-second",
        "ratio_blocks_per_cpu_second": "CPU-second",
    }
    rows = [r for r in results.peers if r["column"] in names]
    if not rows:
        return None
    bars = [
        (f"{r['title']}, {r['size']},\n{r['cores']} core{'s' if r['cores'] != '1' else ''}, "
         f"per {names[r['column']]}", float(r["value"]))
        for r in rows
    ]  # fmt: skip
    figure, ax = plt.subplots(figsize=(5.6, 0.7 + 0.5 * len(bars)), layout="constrained")
    ax.barh([f"{i}" for i in range(len(bars))], [ratio for _, ratio in bars], color=OURS[0], height=0.5)
    ax.set_yticks(range(len(bars)), [name for name, _ in bars], fontsize=7.5)
    ax.invert_yaxis()
    ax.axvline(1, color=GREY, lw=1)
    for i, (_, ratio) in enumerate(bars):
        ax.annotate(f"{ratio:.2f}", (ratio, i), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_xlabel("throughput of Hekaton over that of the other prover")
    ax.set_xlim(0, max(ratio for _, ratio in bars) * 1.15)
    return figure
