# shellcheck shell=bash source-path=SCRIPTDIR
# A circuit with a memory and tables on ranks: the same bytes as on one machine; a rank that is killed in any phase costs a
# resumed run nothing but its own work, and what subcircuits look up is counted again.
HEKATON=$(dirname "$HEKATON")/histogram
. ./lib
head -c 2048 "$HEKATON" >"$T/file"
INPUT=$T/file
"$HEKATON" setup histogram -p bytes=2048 -p part=64 -p byte=0 --keys "$T/keys" >"$T/setup.log" 2>&1 || fail "setup"
"$HEKATON" prove "$INPUT" --keys "$T/keys" --insecure-seed 5 --proof "$T/local" >"$T/local.log" 2>&1 || fail "proving locally"
public=$("$HEKATON" hash "$INPUT" --keys "$T/keys") || fail "the public values"
"$HEKATON" verify "$T/local" --key "$T/keys/verifying.key" --public "$public" >"$T/verify.log" 2>&1 || fail "the proof does not verify"
for n in 2 3; do
    for schedule in dynamic static; do
        ranks "$n" --keys "$T/keys" --insecure-seed 5 --proof "$T/p" --schedule "$schedule" >"$T/$n.log" 2>&1 ||
            fail "$n ranks, $schedule"
        cmp "$T/local" "$T/p" || fail "$n ranks, $schedule: the bytes differ"
    done
done
for phase in commit prove aggregate; do
    run=$T/$phase
    ranks 3 --keys "$T/keys" --run "$run" --insecure-seed 5 >"$T/$phase.log" 2>&1 &
    wait_for 60 in_phase "$run" "$phase"
    [ "$phase" = aggregate ] || wait_for 60 done_in "$run" "$phase" 5
    kill_rank 2
    wait $! && fail "it succeeded with a killed rank ($phase)"
    all_gone 10
    ranks 2 --keys "$T/keys" --run "$run" --insecure-seed 5 --resume >"$T/$phase-2.log" 2>&1 || fail "resuming after $phase"
    cmp "$T/local" "$run/proof" || fail "killed in $phase: the bytes differ"
done
