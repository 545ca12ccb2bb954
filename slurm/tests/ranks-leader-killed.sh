# shellcheck shell=bash source-path=SCRIPTDIR
# A leader is killed in each phase while all ranks execute their slices; the job ends by itself, and its run directory goes
# on under another design, and under this one again.
. ./lib
tree=(--execute ranks --ranks-per-leader 2)
for phase in commit prove aggregate; do
    run=$T/$phase
    ranks 5 --keys "$WORK/keys" --run "$run" --root-proves no "${tree[@]}" >"$T/$phase.log" 2>&1 &
    wait_for 60 in_phase "$run" "$phase"
    kill_rank 3
    wait $! && fail "it succeeded with a killed leader ($phase)"
    all_gone 10
    if [ "$phase" = prove ]; then
        ranks 4 --keys "$WORK/keys" --run "$run" --resume --root-proves no "${tree[@]}" >"$T/$phase-2.log" 2>&1 ||
            fail "resuming after $phase in this design"
    else
        ranks 2 --keys "$WORK/keys" --run "$run" --resume --execute root >"$T/$phase-2.log" 2>&1 ||
            fail "resuming after $phase in another design"
    fi
    # At most the subcircuits of the lost rank's prover, of the rank behind it, and one more each.
    verified "$run" 4
done
# The other way round: a run of rank 0's design goes on where each rank executes its slice.
run=$T/other
ranks 3 --keys "$WORK/keys" --run "$run" >"$T/other.log" 2>&1 &
wait_for 60 in_phase "$run" prove
kill_rank 2
wait $! && fail "it succeeded with a killed rank"
all_gone 10
ranks 5 --keys "$WORK/keys" --run "$run" --resume --root-proves no "${tree[@]}" >"$T/other-2.log" 2>&1 || fail "resuming on slices"
verified "$run" 2
