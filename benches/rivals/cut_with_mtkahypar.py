"""Cuts a hypergraph with Mt-KaHyPar, a rival of `benches --bin partition`; needs `pip install mtkahypar==1.7.post1`.

python cut_with_mtkahypar.py FILE.hgr PARTS IMBALANCE THREADS OUT: writes the part of each vertex to OUT, one per line.
"""

import sys

import mtkahypar

source, parts, imbalance, threads, out = sys.argv[1:]
program = mtkahypar.initialize(int(threads))
context = program.context_from_preset(mtkahypar.PresetType.DEFAULT)
# Connectivity: for each net, the number of parts that it is in, less one.
context.set_partitioning_parameters(int(parts), float(imbalance), mtkahypar.Objective.KM1)
context.logging = False
mtkahypar.set_seed(1)
graph = program.hypergraph_from_file(source, context, mtkahypar.FileFormat.HMETIS)
cut = graph.partition(context)
with open(out, "w", encoding="ascii") as file:
    file.writelines(f"{part}\n" for part in cut.get_partition())
