#!/usr/bin/env python3
"""Prints scenarios without variance and what the model predicts for them, as JSON.

The test `hekaton-plan/tests/model.rs` predicts the same scenarios and compares. Standard library only.
"""
import json
from dataclasses import asdict, replace

from scaling_model import DESIGNS, PLATFORMS, Cluster, Load, run

# platform, workload, cores, provers per rank, log2 of the constraints, log2 of a subcircuit, wires, design, schedule
SCENARIOS = [
    ("zen3", "sha", 1, 1, 20, 14, 2, "flat", "dynamic"),
    ("zen5", "sha", 1, 1, 20, 12, 6, "pool", "dynamic"),
    ("zen5", "full", 2, 1, 22, 14, 100, "flat", "dynamic"),
    ("zen3", "full", 7, 7, 24, 16, 100, "flat", "static"),
    ("zen5", "sha", 8, 4, 24, 16, 1000, "slices", "dynamic"),
    ("zen3", "sha", 32, 32, 26, 18, 50, "pool", "dynamic"),
    ("zen5", "sha", 128, 32, 30, 20, 100, "flat", "dynamic"),
    ("zen5", "sha", 128, 32, 30, 20, 10000, "tree", "dynamic"),
    ("zen3", "full", 256, 16, 30, 18, 10000, "flat", "dynamic"),
    ("zen3", "sha", 384, 128, 31, 19, 2500, "pool", "static"),
    ("zen5", "full", 1024, 32, 33, 20, 100, "flat", "dynamic"),
    ("zen5", "sha", 1024, 32, 33, 20, 10000, "slices", "dynamic"),
    ("zen3", "sha", 2048, 32, 32, 18, 1000, "tree", "dynamic"),
    ("zen5", "sha", 2048, 64, 34, 20, 10000, "pool", "dynamic"),
    ("zen5", "sha", 4096, 32, 35, 20, 100, "flat", "dynamic"),
    ("zen3", "full", 4096, 32, 35, 20, 10000, "tree", "dynamic"),
    ("zen5", "full", 4096, 32, 34, 20, 1000, "slices", "static"),
    ("zen5", "sha", 8192, 32, 35, 20, 10000, "flat", "static"),
    ("zen5", "sha", 16384, 32, 35, 20, 100, "pool", "dynamic"),
    ("zen3", "sha", 16384, 32, 35, 20, 10000, "tree", "static"),
]


def main():
    out = []
    for platform, workload, cores, provers, log2, sub, wires, design, schedule in SCENARIOS:
        p, d = PLATFORMS[platform], replace(DESIGNS[design], schedule=schedule)
        c = Cluster(cores, provers=provers, sigma_job=0.0, sigma_rank=0.0, slow=0.0)
        keys = {"match": 4e-7 * 2**sub, "match_largest": 1e-7 * 2**sub}
        w = Load(2.0**log2, 2**sub, wires=wires, workload=workload, **keys)
        out.append({
            "name": f"{platform} {workload} {cores} cores 2^{log2} by 2^{sub}, {wires} wires, {design} {schedule}",
            "platform": asdict(p), "cluster": asdict(c), "load": {**asdict(w), "n": w.n, "domain": w.domain},
            "design": asdict(d), "result": run(p, c, w, d),
        })
    print(json.dumps(out))


if __name__ == "__main__":
    main()
