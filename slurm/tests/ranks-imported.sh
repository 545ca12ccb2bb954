# shellcheck shell=bash source-path=SCRIPTDIR
# An imported circuit on ranks: whoever reads the witness, wherever the keys are, the same bytes as on one machine; another
# witness on one rank is named.
. ./lib
"$(dirname "$HEKATON")/monolith" 2000 "$T/steps" || fail "writing the circuit"
"$HEKATON" import "$T/steps.r1cs" --rows 2^9 --out "$T/steps.hk" >"$T/import.log" 2>&1 || fail "importing"
"$HEKATON" setup "$T/steps.hk" --keys "$T/keys" >"$T/setup.log" 2>&1 || fail "setup"
INPUT=$T/steps.wtns
"$HEKATON" prove "$INPUT" --keys "$T/keys" --insecure-seed 5 --proof "$T/local" >"$T/local.log" 2>&1 || fail "proving locally"
for n in 1 2 4; do
    for execute in root ranks; do
        ranks "$n" --keys "$T/keys" --insecure-seed 5 --proof "$T/p" --execute "$execute" >"$T/$n.log" 2>&1 ||
            fail "$n ranks, execute $execute"
        cmp "$T/local" "$T/p" || fail "$n ranks, execute $execute: the bytes differ"
    done
done
cat >"$T/program" <<P
#!/bin/bash
keys=/no/such/keys
[ "\$OMPI_COMM_WORLD_RANK" = 0 ] && keys=$T/keys
exec "$HEKATON" "\$@" --keys "\$keys"
P
chmod +x "$T/program"
HEKATON=$T/program ranks 3 --keys-from-root --stage-keys "$T/sent" --insecure-seed 5 --proof "$T/p" >"$T/sent.log" 2>&1 ||
    fail "proving with keys sent by rank 0"
cmp "$T/local" "$T/p" || fail "the bytes differ"
"$HEKATON" verify "$T/p" --key "$T/keys/verifying.key" --public "$("$HEKATON" hash "$INPUT" --keys "$T/keys")" \
    >"$T/verify.log" 2>&1 || fail "the proof does not verify"
# A value in the middle, and only on rank 1.
cp "$INPUT" "$T/other.wtns"
printf 'x' | dd of="$T/other.wtns" bs=1 seek=100000 conv=notrunc 2>/dev/null
cat >"$T/program" <<P
#!/bin/bash
arguments=("\$@")
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && arguments[1]=$T/other.wtns
exec "$HEKATON" "\${arguments[@]}"
P
HEKATON=$T/program ranks 3 --keys "$T/keys" --witness-on-ranks --proof "$T/none" >"$T/other.log" 2>&1
expect 3 "rank 1 on .* has another input than rank 0" "$T/other.log"
# The same witness on all ranks, which is wrong.
INPUT=$T/other.wtns ranks 3 --keys "$T/keys" --proof "$T/none" >"$T/wrong.log" 2>&1
expect 4 "does not hold" "$T/wrong.log"
all_gone 10
[ ! -e "$T/none" ] || fail "there is a proof"
