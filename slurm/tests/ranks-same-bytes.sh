# shellcheck shell=bash source-path=SCRIPTDIR
# 1, 2, 3, and 5 ranks, both schedules, rank 0 proving or not, rank 0 or all ranks executing, with leaders and without:
# with one seed, the same bytes as on one machine.
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
    for leader in 0 2; do
        for execute in root ranks; do
            ranks "$n" --keys "$WORK/small-keys" --insecure-seed 5 --proof "$T/$n" --execute "$execute" --ranks-per-leader "$leader" \
                >"$T/$n.log" 2>&1 || fail "$n ranks, execute $execute, $leader ranks per leader"
            cmp "$T/local" "$T/$n" || fail "$n ranks, execute $execute, $leader ranks per leader: the bytes differ"
        done
    done
done
