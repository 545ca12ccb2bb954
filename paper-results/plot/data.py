"""What a result set and the paper's data contain."""

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path

SCHEMA = 1


class WrongData(Exception):
    """A file is missing, or of another schema."""


def read_json(path):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise WrongData(f"{path}: {e}") from e
    if content.get("schema") != SCHEMA:
        raise WrongData(f"{path}: schema {content.get('schema')}, expected {SCHEMA}")
    return content


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text):
    """A number, or None for an empty field, which is unknown and never 0."""
    return float(text) if text not in (None, "") else None


@dataclass
class Reference:
    """A value of the paper. Points are crosses, derived ones hollow, bounds bars; without x, a line."""

    how: str
    y: float | None
    x: float | None = None
    low: float | None = None
    high: float | None = None
    label: str = ""


@dataclass
class Results:
    environment: dict
    experiments: list
    points: list
    claims: list
    peers: list = field(default_factory=list)
    model: dict | None = None
    projection: list = field(default_factory=list)
    pipeline: list = field(default_factory=list)

    @classmethod
    def read(cls, directory):
        directory = Path(directory)
        environment, summary = read_json(directory / "env.json"), read_json(directory / "summary.json")
        claims = read_json(directory / "claims.json")
        for content, name in ((summary, "summary.json"), (claims, "claims.json")):
            if content["environment"] != environment["digest"]:
                raise WrongData(f"{directory / name}: of another environment; run `experiment collect`")
        peers, model = directory / "peers.csv", directory / "model.csv"
        predicted = {row["point"]: row for row in read_csv(model)} if model.exists() else None
        projected = directory / "projection.csv"
        projection = read_csv(projected) if projected.exists() else []
        for rows, path in (((predicted or {}).values(), model), (projection, projected)):
            if any(row.get("environment") != environment["digest"] for row in rows):
                raise WrongData(f"{path}: of another environment; run `experiment model`")
        return cls(
            environment,
            summary["experiments"],
            summary["points"],
            claims["claims"],
            read_csv(peers) if peers.exists() else [],
            predicted,
            projection,
            read_csv(directory / "pipeline.csv") if (directory / "pipeline.csv").exists() else [],
        )

    def of(self, experiment):
        return [p for p in self.points if p["experiment"] == experiment["name"]]


def value(point, name):
    """Median and interval of a column, or a parameter's value or the variant's name three times."""
    if name in point["columns"]:
        return point["columns"][name]
    if name == "variant":
        return [point["variant"]] * 3 if point.get("variant") else None
    return [point["parameters"][name]] * 3 if name in point["parameters"] else None


class Paper:
    """The paper's values by experiment and column."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.machine = {row["item"]: row["value"] for row in read_csv(self.directory / "machine.csv")}
        self.text = {row["id"]: row for row in read_csv(self.directory / "text_numbers.csv")}

    def read(self, name):
        return read_csv(self.directory / name)

    def of(self, experiment, column):
        part = getattr(self, f"_{experiment}", None)
        return part(column) if part else []

    def _fig7(self, column):
        out = []
        for row in self.read("fig7_proving.csv"):
            x = number(row["log2_constraints"])
            x = 2**x if x is not None else None
            label = f"{row['cores']} cores"
            if column == "seconds":
                y, low, high = (number(row[k]) for k in ("latency_s", "latency_lo_s", "latency_hi_s"))
                if x is not None and (y or high):
                    out.append(Reference(row["how"] if y else "bound", y, x, low, high, label))
            elif column == "constraints_per_core_second":
                y = number(row["throughput_constraints_per_core_s"])
                # A throughput beside a stated latency is derived; beside a bound it is a lower bound.
                derived = number(row["latency_s"]) is not None
                bound = not derived and number(row["latency_hi_s"]) is not None
                how = "derived" if derived else row["how"]
                out.append(Reference("bound", None, x, y, None, label) if bound else Reference(how, y, x, label=label))
        return out

    def _fig8(self, column):
        if column != "aggregate_s":
            return []
        return [
            Reference(r["how"], number(r["seconds"]), 2 ** number(r["log2_subcircuits"]), number(r["lo_s"]),
                      number(r["hi_s"]), "128 cores")
            for r in self.read("fig8_aggregation.csv")
        ]  # fmt: skip

    def _fig10(self, column):
        rows = [r for r in self.read("fig10_ram.csv") if r["series"] in ("portal", "merkle")]
        return [
            Reference("bound" if "bound" in r["how"] else r["how"], number(r["seconds"]),
                      2 ** number(r["log2_cycles"]), number(r["lo_s"]), number(r["hi_s"]), r["series"])
            for r in rows if column == "seconds"
        ]  # fmt: skip

    def _table2(self, column):
        name = column.removesuffix("bytes") + "B"
        return [
            Reference(r["how"], number(r[name]), 2 ** number(r["log2_subcircuits"]), label="10,000 occurrences")
            for r in self.read("table2_communication.csv") if name in r
        ]  # fmt: skip

    def _numbers(self, ids, factor, x):
        rows = [(self.text[i], x(self.text[i])) for i in ids]
        return [Reference(r["how"], float(r["value"]) * factor, at, label=r["id"]) for r, at in rows]

    def _proof(self, column):
        found = {"proof_bytes": ("T16", 1000), "verify_ms": ("T17", 1)}.get(column)
        return self._numbers([found[0]], found[1], lambda r: float(r["subcircuits"])) if found else []

    def _overhead(self, column):
        if column != "constraints_per_core_second":
            return []
        cores = {"T19": 1, "T20": 4, "T22": 128, "T23": 4096}
        return self._numbers(list(cores), 1, lambda r: cores[r["id"]])

    def _memory(self, column):
        if column != "peak_memory_bytes":
            return []
        most, size = (float(self.text[i]["value"]) for i in ("T11", "T12"))
        return [Reference("bound", None, size, None, most * 1e9, "T11")]
