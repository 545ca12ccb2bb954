# shellcheck shell=bash source-path=SCRIPTDIR
# 1, 2, 3, and 5 ranks, both schedules, rank 0 proving or not: with one seed, the same bytes as on one machine.
. ./lib
"$HEKATON" prove "$WORK/x" --keys "$WORK/small-keys" --insecure-seed 5 --proof "$T/local" >"$T/local.log" 2>&1 || fail "proving locally"
for n in 1 2 3 5; do
    for schedule in dynamic static; do
        for root in yes no; do
            [ "$n$root" != 1no ] || continue
            ranks "$n" --keys "$WORK/small-keys" --insecure-seed 5 --proof "$T/$n" --schedule "$schedule" --root-proves "$root" \
                >"$T/$n.log" 2>&1 || fail "$n ranks, $schedule, root proves: $root"
            cmp "$T/local" "$T/$n" || fail "$n ranks, $schedule, root proves: $root: the bytes differ"
        done
    done
done
