# shellcheck shell=bash source-path=SCRIPTDIR
# Blocks of a chain, proven by jobs on four machines and published in order. The jobs outlive the process that submitted them, and the
# job of a cancelled task is cancelled. ORCHESTRATOR is the program hekaton-orchestrator [beside hekaton].
. ./lib
. ./cluster
ORCHESTRATOR=${ORCHESTRATOR:-$(dirname "$HEKATON")/hekaton-orchestrator}
[ -x "$ORCHESTRATOR" ] || fail "program $ORCHESTRATOR not found; build it with: cargo build -p hekaton-orchestrator"
export SBATCH_TIMELIMIT=10
# The same script with one core on each of the four machines.
sed -e 's/^#SBATCH --ntasks-per-node=.*/#SBATCH --ntasks-per-node=1/' -e 's/^#SBATCH --cpus-per-task=.*/#SBATCH --cpus-per-task=1/' \
    -e 's/^#SBATCH --mem-per-cpu=.*/#SBATCH --mem-per-cpu=0/' "$(dirname "$CLUSTER")/prove.sbatch" >"$T/prove.sbatch"
cat >"$T/settings.toml" <<TOML
version = 1
slots = 1
[backends.prove]
kind = "slurm"
program = "$HEKATON"
keys = "$WORK/keys"
script = "prove.sbatch"
poll_seconds = 1
TOML
serve() {
    rm -f "$T/serving"
    "$ORCHESTRATOR" --json serve --data "$T/d" --settings "$T/settings.toml" --listen 127.0.0.1:0 >"$T/serving" 2>>"$T/serve.log" &
    service=$!
    wait_for 20 test -s "$T/serving"
    to=(--service "$(sed 's/.*"address":"\([^"]*\)".*/\1/' "$T/serving")")
}
note() { cat "$T"/d/spool/*/slurm.json 2>/dev/null; }
has_number() { note | grep -q '"number":[0-9]'; }
serve
for input in 1 2 3; do echo "$input" >"$T/block-$input"; done
"$ORCHESTRATOR" submit "${to[@]}" "$T/block-1" "$T/block-2" --chain main >"$T/submit.log" 2>&1
expect 0 "" "$T/submit.log"
wait_for 60 has_number
first=$(note | grep -o '"number":[0-9]*' | grep -o '[0-9]*$')
echo "$first" >>"$jobs_of_mine"
kill -9 "$service"
wait "$service" 2>/dev/null
serve
published() { [ "$("$ORCHESTRATOR" proofs "${to[@]}" main | wc -l)" = 2 ]; }
wait_for 300 published
[ "$(job_state "$first")" = COMPLETED ] || fail "job $first is $(job_state "$first")"
grep -q "hk-" <(squeue --noheader --states=all --jobs="$first" --format=%j) || fail "job $first has another name"
[ "$(grep -c "submitted to SLURM" "$T/serve.log")" = 2 ] || fail "two blocks took other than two jobs: $(cat "$T/serve.log")"
# The job that is cancelled would end first on a fast machine.
sed -i '/^set -uo pipefail/a sleep 60' "$T/prove.sbatch"
grep -q '^sleep 60' "$T/prove.sbatch" || fail "prove.sbatch has no line to wait at"
"$ORCHESTRATOR" submit "${to[@]}" "$T/block-3" --chain main --json >"$T/third.log" 2>&1
third=$(grep -o '"job":"[^"]*"' "$T/third.log" | head -1 | cut -d'"' -f4)
wait_for 60 has_number
number=$(note | grep -o '"number":[0-9]*' | grep -o '[0-9]*$')
echo "$number" >>"$jobs_of_mine"
"$ORCHESTRATOR" cancel "${to[@]}" "$third" >"$T/cancel.log" 2>&1 || fail "cancel: $(cat "$T/cancel.log")"
ended "$number" 60
state "$number" CANCELLED
kill "$service"
wait "$service"
"$ORCHESTRATOR" check --data "$T/d" >"$T/check.log" 2>&1
expect 0 "" "$T/check.log"
