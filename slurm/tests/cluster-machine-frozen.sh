# shellcheck shell=bash source-path=SCRIPTDIR
# A worker's machine is frozen, the job continues without it, and thawing it does no harm.
. ./lib
. ./cluster
job=$(NODES=3 submit "$T/run" LAUNCHER=srun)
wait_for 60 done_in "$T/run" prove 30
frozen=$(machine_of "$T/run" 1)
"$CLUSTER" freeze "$frozen" >/dev/null || fail "freeze"
wait_for 120 bash -c "[ \$(grep -c process_start '$T/run/events.jsonl') -ge 2 ]"
"$CLUSTER" thaw "$frozen" >/dev/null
ended "$job" 120
state "$job" COMPLETED
verified "$T/run" 4
machines_back
