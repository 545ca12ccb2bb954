# shellcheck shell=bash source-path=SCRIPTDIR disable=SC2154  # jobs_of_mine comes from cluster
# An array of `experiment run --slurm`: six repetitions, and the machine of one loses power. SLURM restarts that element,
# and all points are there in the end.
. ./lib
. ./cluster
experiment=$(dirname "$HEKATON")/experiment
if [ ! -x "$experiment" ]; then
    echo "SKIPPED: $experiment was not built (cargo build -p benches --bin experiment)"
    exit 0
fi
mkdir -p "$T/own/experiments" "$T/own/paper-data"
cp "$(dirname "$CLUSTER")"/../paper-results/paper-data/* "$T/own/paper-data"
cat >"$T/own/experiments/small.toml" <<'TOML'
name = "small"
title = "Six repetitions"
circuit = "chain"
paper = []
x = "subcircuits"
y = ["seconds"]
series = "ranks"
claims = []
input = { text = "3" }
[scale.tiny]
parameters = { links = "subcircuits", steps = 400 }
subcircuits = [100, 200]
cores = [2]
provers-per-rank = 1
repetitions = 3
TOML
cat >"$T/site.toml" <<'TOML'
name = "local"
nodes = 4
cores-per-node = 1
memory-per-node-gb = 4
time = "10"
options = ["--mem-per-cpu=0"]
launcher = "srun --mpi=pmix --kill-on-bad-exit=1 --mem-per-cpu=0 --ntasks={ranks} --cpus-per-task={provers}"
TOML
places=(--hekaton "$HEKATON" --directory "$T/own" --results "$T/set" --work "$T/keys")
"$experiment" run small --slurm "$T/site.toml" "${places[@]}" >"$T/submit.log" 2>&1 || fail "run --slurm"
job=$(grep -o '^job [0-9]*' "$T/submit.log" | grep -o '[0-9]*$') || fail "no job number"
echo "$job" >>"$jobs_of_mine"
# The model is calibrated, keys are generated, and a repetition is being run.
wait_for 240 bash -c "ls '$T'/set/raw/*.part/pid"
lost=$(squeue -h -j "$job" -t RUNNING -o %B | head -1 | grep -o '[0-9]*$') || fail "no element is running"
"$CLUSTER" power-off "$lost" >/dev/null || fail "power-off"
# An element that starts again is in none of these states for an instant.
over() {
    local left i
    for i in 1 2; do
        left=$(squeue -h -j "$job" -t PENDING,RUNNING,COMPLETING,CONFIGURING,REQUEUED) && [ -z "$left" ] || return 1
        [ "$i" = 2 ] || sleep 3
    done
}
wait_for 240 over
"$experiment" status "${places[@]}" >"$T/status.log" 2>&1 || fail "status"
grep -q "^0 repetitions missing" "$T/status.log" || fail "repetitions are missing"
"$experiment" collect "${places[@]}" >"$T/collect.log" 2>&1 || fail "collect"
[ "$(grep -c ',true,' "$T/set/points.csv")" = 6 ] || fail "points.csv"
machines_back
