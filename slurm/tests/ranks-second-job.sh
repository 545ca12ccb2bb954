# shellcheck shell=bash source-path=SCRIPTDIR
# A second job on the same run directory is refused while the first one is running.
. ./lib
ranks 2 --keys "$WORK/keys" --run "$T/run" >"$T/1.log" 2>&1 &
wait_for 60 done_in "$T/run" prove 5
# The first job must not finish before the second one starts.
{ first=$(process_of 0) && kill -STOP "$first"; } || fail "rank 0 is not running"
ranks 2 --keys "$WORK/keys" --run "$T/run" --resume >"$T/2.log" 2>&1
expect 6 "is held by" "$T/2.log"
kill -CONT "$first"
wait $! || fail "the first job"
verified "$T/run" 0
