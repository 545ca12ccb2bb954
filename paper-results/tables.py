"""What the scripts that write tables of results share."""

import json
import sys
from pathlib import Path

# No compiled copy beside the sources.
sys.dont_write_bytecode = True

RESULTS = Path(__file__).resolve().parent.parent / "benches" / "results"


def newest(name):
    """The newest result set that has rows of a benchmark."""
    folders = [path.parent for path in RESULTS.glob(f"*/{name}.jsonl")]
    return max(folders, key=lambda path: json.loads((path / "machine.json").read_text())["committed"])


def rows(folder, name):
    """The rows of a benchmark, by what was measured and its size."""
    lines = (folder / f"{name}.jsonl").read_text().splitlines()
    return {(row["bench"], row["size"]): row for row in map(json.loads, lines)}


def show(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def table(header, body):
    line = lambda cells: "| " + " | ".join(cells) + " |"
    return "\n".join([line(header), line(["---"] * len(header)), *map(line, body)])


def write(path, text):
    """Writes a page or, with --check, fails if it differs."""
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit(f"{path}: differs from the results; run {path.parent}/tables")
