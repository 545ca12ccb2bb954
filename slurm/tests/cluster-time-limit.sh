# shellcheck shell=bash source-path=SCRIPTDIR
# The warning before the time limit: the job finishes the work in progress, requeues itself, and ends with a proof.
. ./lib
. ./cluster
job=$(submit "$T/run" LAUNCHER=srun)
wait_for 60 done_in "$T/run" prove 30
# The signal that SLURM sends before the time limit, which it counts in minutes.
scancel --batch --signal=USR1 "$job" || fail "scancel"
wait_for 60 bash -c "[ \$(grep -c process_start '$T/run/events.jsonl') -ge 2 ]"
ended "$job" 120
state "$job" COMPLETED
grep -q "the time limit" "$T/run.log" || fail "the log does not mention the time limit"
verified "$T/run" 0
