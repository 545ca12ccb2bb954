# shellcheck shell=bash source-path=SCRIPTDIR
# A machine loses power in the prove round (its network first, so that no other machine notices). The job is requeued by
# SLURM or by its own script, and resumes on three machines.
. ./lib
. ./cluster
for launcher in srun mpirun; do
    run=$T/$launcher
    job=$(NODES=3 submit "$run" "LAUNCHER=$launcher")
    wait_for 60 done_in "$run" prove 30
    lost=$(machine_of "$run" 2)
    "$CLUSTER" power-off "$lost" >/dev/null || fail "power-off"
    wait_for 90 bash -c "[ \$(grep -c process_start '$run/events.jsonl') -ge 2 ]"
    ended "$job" 120
    state "$job" COMPLETED
    verified "$run" 4
    machines_back
done
