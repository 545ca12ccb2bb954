# shellcheck shell=bash source-path=SCRIPTDIR
# From sbatch to a verified proof on four machines, with srun and with mpirun.
. ./lib
. ./cluster
for launcher in srun mpirun; do
    job=$(submit "$T/$launcher" "LAUNCHER=$launcher") || fail "sbatch"
    ended "$job" 120
    state "$job" COMPLETED
    verified "$T/$launcher" 0
    [ "$(grep -o 'rank [0-9]* on node[0-9]' "$T/$launcher/events.jsonl" | sort -u | wc -l)" = 4 ] || fail "not all four machines worked"
done
