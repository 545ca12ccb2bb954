# shellcheck shell=bash source-path=SCRIPTDIR
# The time limit's warning (SIGUSR1, which mpirun passes on): subcircuits in progress are finished, and none is done twice.
. ./lib
ranks 3 --keys "$WORK/keys" --run "$T/run" >"$T/1.log" 2>&1 &
wait_for 60 done_in "$T/run" prove 20
pkill -USR1 -f "^mpirun .*$T" || fail "mpirun is not running"
wait $!
expect 5 "interrupted; completed work is kept" "$T/1.log"
all_gone 5
ranks 5 --keys "$WORK/keys" --run "$T/run" --resume >"$T/2.log" 2>&1 || fail "resuming"
verified "$T/run" 0
