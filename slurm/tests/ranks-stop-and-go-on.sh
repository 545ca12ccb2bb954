# The time limit's warning (SIGUSR1, which mpirun passes on): subcircuits under way are finished, nothing is done twice.
. ./lib
ranks 3 --keys "$WORK/keys" --run "$T/run" >"$T/1.log" 2>&1 &
wait_for 60 done_in "$T/run" prove 20
pkill -USR1 -f "^mpirun .*$T" || fail "there is no mpirun"
wait $!
expect 5 "interrupted: what was done is kept" "$T/1.log"
all_gone 5
ranks 5 --keys "$WORK/keys" --run "$T/run" --resume >"$T/2.log" 2>&1 || fail "going on"
verified "$T/run" 0
