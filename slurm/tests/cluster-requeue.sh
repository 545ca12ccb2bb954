# shellcheck shell=bash source-path=SCRIPTDIR
# An administrator requeues the job in the middle of a proof: it resumes.
. ./lib
. ./cluster
job=$(submit "$T/run" LAUNCHER=srun)
wait_for 60 done_in "$T/run" prove 30
scontrol requeue "$job" || fail "scontrol requeue"
wait_for 60 bash -c "[ \$(grep -c process_start '$T/run/events.jsonl') -ge 2 ]"
ended "$job" 120
state "$job" COMPLETED
verified "$T/run" 5
