# shellcheck shell=bash source-path=SCRIPTDIR
# A program's run, from sbatch to a verified proof on four machines, each of which executes it for itself.
. ./lib
. ./cluster
"$(dirname "$0")/../../circuits/vm/guests/build" "$T" json >"$T/build.log" 2>&1 || fail "the program; it needs clang and lld"
printf '{"a": [1, 2.5, "x", {"b": null}], "c": [true, []]}' >"$T/text"
"$HEKATON" vm setup --rows 2^12 --subcircuits 256 --keys "$T/keys" >"$T/setup.log" 2>&1 || fail "setup"
job=$(submit "$T/run" "PROGRAM=$T/json" "FILE=$T/text" "KEYS=$T/keys" "PROOF=$T/proof") || fail "sbatch"
ended "$job" 120
state "$job" COMPLETED
"$HEKATON" vm verify "$T/proof" --program "$T/json" --keys "$T/keys" >"$T/verify.log" 2>&1 || fail "the proof does not verify"
[ "$(grep -o 'rank [0-9]* on node[0-9]' "$T/run/events.jsonl" | sort -u | wc -l)" = 4 ] || fail "not all four machines worked"
