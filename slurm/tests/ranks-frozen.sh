# shellcheck shell=bash source-path=SCRIPTDIR
# A frozen rank is lost after --silence, and is named; it may wake up later and does no harm.
. ./lib
ranks 3 --keys "$WORK/keys" --run "$T/run" --silence 3 >"$T/1.log" 2>&1 &
wait_for 60 done_in "$T/run" prove 10
frozen=$(process_of 2)
kill -STOP "$frozen"
wait_for 30 grep -q "rank 2 is lost: no sign of life for 3 s" "$T/1.log"
wait $!
code=$?
kill -CONT "$frozen" 2>/dev/null
[ "$code" != 0 ] || fail "it succeeded with a frozen rank"
all_gone 15
ranks 2 --keys "$WORK/keys" --run "$T/run" --resume >"$T/2.log" 2>&1 || fail "resuming"
verified "$T/run" 3
