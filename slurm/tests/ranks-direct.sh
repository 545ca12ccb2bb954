# shellcheck shell=bash source-path=SCRIPTDIR
# Direct proofs: the same bytes on many ranks as on one machine, which the exported key verifies; ranks of another kind or context
# are refused before anything is committed to; a run is resumed as what it was.
. ./lib
context=00000000000000000000000000000000000000000000000000000000000000c0
direct=(--keys "$WORK/small-keys" --insecure-seed 5 --direct --context "$context")
"$HEKATON" prove "$WORK/x" "${direct[@]}" --proof "$T/local" >"$T/local.log" 2>&1 || fail "proving locally"
for options in "--schedule static" "--execute ranks --ranks-per-leader 2"; do
    # shellcheck disable=SC2086
    ranks 3 "${direct[@]}" --proof "$T/3" $options >"$T/3.log" 2>&1 || fail "3 ranks, $options"
    cmp "$T/local" "$T/3" || fail "3 ranks, $options: the bytes differ"
done
"$HEKATON" export verifier "$WORK/small-keys" --out "$T/direct.key" || fail "exporting the key"
public=$("$HEKATON" hash "$WORK/x" --keys "$WORK/small-keys")
"$HEKATON" verify "$T/3" --key "$T/direct.key" --public "$public" --context "$context" || fail "the proof does not verify"

ranks 2 --keys "$WORK/small-keys" --direct --run "$T/run" >"$T/run.log" 2>&1 || fail "a run"
! ranks 2 --keys "$WORK/small-keys" --run "$T/run" --resume >"$T/other.log" 2>&1 || fail "resumed as the other kind"
grep -q "a direct proof then, an aggregated proof now" "$T/other.log" || fail "the kinds are not named"

# Rank 2 has another context, as when a variable of a job's script differs.
cat >"$T/program" <<P
#!/bin/bash
context=$context
[ "\$OMPI_COMM_WORLD_RANK" = 2 ] && context=\${context//c/d}
exec "$HEKATON" "\$@" --direct --context "\$context"
P
chmod +x "$T/program"
HEKATON=$T/program ranks 3 --keys "$WORK/small-keys" --proof "$T/mixed" >"$T/mixed.log" 2>&1
expect 3 "rank 2 on .*: kind of proof is direct, context .*d0" "$T/mixed.log"
[ ! -e "$T/mixed" ] || fail "there is a proof"
all_gone 5
