# A second job on the same run directory is refused while the first one works.
. ./lib
ranks 2 --keys "$WORK/keys" --run "$T/run" >"$T/1.log" 2>&1 &
wait_for 60 done_in "$T/run" prove 5
# it must not be through before the second one comes
first=$(process_of 0) && kill -STOP "$first" || fail "there is no rank 0"
ranks 2 --keys "$WORK/keys" --run "$T/run" --resume >"$T/2.log" 2>&1
expect 3 "is held by" "$T/2.log"
kill -CONT "$first"
wait $! || fail "the first job"
verified "$T/run" 0
