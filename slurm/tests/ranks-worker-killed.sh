# shellcheck shell=bash source-path=SCRIPTDIR
# A worker rank is killed in each phase; the job ends by itself, and the next one resumes with a different number of ranks.
. ./lib
for phase in commit prove aggregate; do
    run=$T/$phase
    ranks 3 --keys "$WORK/keys" --run "$run" >"$T/$phase.log" 2>&1 &
    wait_for 60 in_phase "$run" "$phase"
    kill_rank 2
    wait $! && fail "it succeeded with a killed rank ($phase)"
    all_gone 10
    ranks 2 --keys "$WORK/keys" --run "$run" --resume >"$T/$phase-2.log" 2>&1 || fail "resuming after $phase"
    # At most the subcircuit of the lost rank's prover and one more.
    verified "$run" 2
done
