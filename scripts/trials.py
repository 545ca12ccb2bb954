"""Random trials of the program, for scripts/kills and scripts/memory-limits: options, a JSON line for each trial, and a table."""

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEKATON = os.environ.get("HEKATON") or str(Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug/hekaton")


class Deviation(Exception):
    """The program did not do what it promises; the text says what it did."""


def parser(doc, count):
    """Returns the options of both scripts, with this number of trials by default."""
    found = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("count", metavar="N", nargs="?", type=int, default=count, help=f"number of trials [{count}]")
    found.add_argument("--seed", type=int, help="a number that all random choices follow from [chosen at random]")
    found.add_argument("--only", metavar="NUMBER", type=int, help="repeat this trial of the run with the same --seed and --on")
    return found


def parse(options):
    """Parses the command line; a program that does not exist is refused."""
    found = options.parse_args()
    if not os.access(HEKATON, os.X_OK):
        sys.exit(f"program {HEKATON} not found; build it with: cargo build -p hekaton-cli --features mpi, or set HEKATON")
    if found.only is not None and found.seed is None:
        sys.exit("--only needs the --seed of the run whose trial it repeats")
    if found.seed is None:
        found.seed = random.randrange(1 << 32)
    return found


def run(options, trial):
    """Runs the trials, and prints a JSON line for each. `trial` takes its number and raises a `Deviation` if a promise is broken."""
    lines = []
    for number in range(options.count) if options.only is None else [options.only]:
        line, start = {"number": number, "seed": options.seed}, time.monotonic()
        try:
            trial(number, line)
        except Deviation as deviation:
            line["deviation"] = str(deviation)
        line["seconds"] = round(time.monotonic() - start, 1)
        print(json.dumps(line), flush=True)
        lines.append(line)
    return lines


def table(head, rows):
    """Prints a table in Markdown."""
    for row in [head, ["---"] * len(head), *rows]:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def finish(lines):
    """Ends the script: with exit code 1, and their numbers, if trials deviated."""
    failed = [line["number"] for line in lines if "deviation" in line]
    if failed:
        sys.exit(f"{len(failed)} of {len(lines)} trials deviated, with --seed {lines[0]['seed']}: {', '.join(map(str, failed))}")
