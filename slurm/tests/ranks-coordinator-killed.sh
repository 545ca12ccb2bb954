# shellcheck shell=bash source-path=SCRIPTDIR
# Rank 0 is killed in the middle of the prove round.
. ./lib
ranks 3 --keys "$WORK/keys" --run "$T/run" >"$T/1.log" 2>&1 &
wait_for 60 done_in "$T/run" prove 20
kill_rank 0
wait $! && fail "it succeeded without its coordinator"
all_gone 10
ranks 2 --keys "$WORK/keys" --run "$T/run" --resume >"$T/2.log" 2>&1 || fail "resuming"
verified "$T/run" 3
