#!/usr/bin/env python3
"""Draws all figures of a result set as SVG and PDF, and index.html with all of them.

Usage: plot.py RESULTS --paper-data DIR. Needs Python 3.11 or later and the packages of requirements.txt.
"""

import argparse
import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit(f"error: Python 3.11 or later is needed, this is {sys.version.split()[0]}: pass --python PATH")
try:
    import matplotlib.pyplot as plt

    import figures
    import page
    from data import Paper, Results, WrongData
except ModuleNotFoundError as e:
    requirements = Path(__file__).resolve().parent / "requirements.txt"
    sys.exit(f"error: the package {e.name} is missing: {sys.executable} -m pip install --require-hashes -r {requirements}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the result set, after `experiment collect`")
    parser.add_argument("--paper-data", type=Path, required=True, help="the directory of the paper's data")
    arguments = parser.parse_args()
    try:
        results, paper = Results.read(arguments.results), Paper(arguments.paper_data)
    except WrongData as e:
        sys.exit(f"error: {e}")
    plt.rcParams["svg.hashsalt"] = "hekaton"
    directory = arguments.results / "figures"
    directory.mkdir(exist_ok=True)
    svgs = {}
    for experiment in results.experiments:
        svgs[experiment["name"]] = save(figures.draw(experiment, results, paper), experiment["name"], directory)
    compared = figures.draw_peers(results)
    peers = save(compared, "peers", directory) if compared else None
    index = arguments.results / "index.html"
    index.write_text(page.page(results, paper, svgs, peers), encoding="utf-8")
    print(index)


def save(figure, name, directory):
    svg = page.svg_of(figure, name)
    (directory / f"{name}.svg").write_text(svg, encoding="utf-8")
    figure.savefig(directory / f"{name}.pdf", metadata={"CreationDate": None})
    plt.close(figure)
    return svg


if __name__ == "__main__":
    main()
