# shellcheck shell=bash source-path=SCRIPTDIR
# The machine of rank 0 is cut off silently. Its lease expires and the job continues elsewhere; after the cut is healed,
# the old rank 0 cannot write to the run.
. ./lib
. ./cluster
job=$(NODES=3 submit "$T/run" LAUNCHER=srun)
wait_for 60 done_in "$T/run" prove 30
cut=$(machine_of "$T/run" 0)
"$CLUSTER" cut "$cut" >/dev/null || fail "cut"
wait_for 120 bash -c "[ \$(grep -c process_start '$T/run/events.jsonl') -ge 2 ]"
"$CLUSTER" heal "$cut" >/dev/null
ended "$job" 120
state "$job" COMPLETED
verified "$T/run" 5
machines_back
