# shellcheck shell=bash source-path=SCRIPTDIR
# A program's run on ranks: each replays for itself what its subcircuits prove, or rank 0 sends it; the same bytes as on one
# machine; a rank that is killed costs a resumed run nothing but its own work; keys travel; a rank with another input is named.
. ./lib
"$(dirname "$0")/../../circuits/vm/guests/build" "$T" json fibonacci >"$T/build.log" 2>&1 || fail "the program; it needs clang and lld"
printf '{"a": [1, 2.5, "x", {"b": null}], "c": [true, [], "\\u00e9"]}' >"$T/text"
"$HEKATON" vm setup --rows 2^12 --subcircuits 256 --keys "$T/keys" >"$T/setup.log" 2>&1 || fail "setup"
common=(--input "$T/text" --keys "$T/keys" --insecure-seed 5)
"$HEKATON" vm prove "$T/json" "${common[@]}" --proof "$T/local" >"$T/local.log" 2>&1 || fail "proving locally"
"$HEKATON" vm verify "$T/local" --program "$T/json" --keys "$T/keys" >"$T/verify.log" 2>&1 || fail "the proof does not verify"

# programs N ARGUMENTS..: proves the run on N ranks.
programs() {
    local n=$1
    shift
    COMMAND="vm prove" INPUT=$T/json ranks "$n" "$@"
}
programs 3 "${common[@]}" --proof "$T/p" >"$T/3.log" 2>&1 || fail "3 ranks"
cmp "$T/local" "$T/p" || fail "3 ranks: the bytes differ"
programs 2 "${common[@]}" --proof "$T/p" --execute root --schedule static >"$T/root.log" 2>&1 || fail "--execute root"
cmp "$T/local" "$T/p" || fail "--execute root: the bytes differ"
programs 2 "${common[@]}" --proof "$T/p" --keys-from-root --stage-keys "$T/staged" >"$T/staged.log" 2>&1 || fail "keys that travel"
cmp "$T/local" "$T/p" || fail "keys that travel: the bytes differ"

for phase in commit prove; do
    run=$T/$phase
    programs 3 "${common[@]}" --run "$run" --proof "$T/p-$phase" >"$T/$phase.log" 2>&1 &
    wait_for 60 in_phase "$run" "$phase"
    [ "$phase" = commit ] || wait_for 60 done_in "$run" "$phase" 5
    kill_rank 2
    wait $! && fail "it succeeded with a killed rank ($phase)"
    all_gone 10
    programs 2 "${common[@]}" --run "$run" --proof "$T/p-$phase" --resume >"$T/$phase-2.log" 2>&1 || fail "resuming after $phase"
    cmp "$T/local" "$T/p-$phase" || fail "killed in $phase: the bytes differ"
done
