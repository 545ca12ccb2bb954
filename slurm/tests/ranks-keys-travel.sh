# shellcheck shell=bash source-path=SCRIPTDIR
# Keys copied once per node, and keys that only rank 0 has; a damaged copy is refused, and a second job reuses the copy.
. ./lib
"$HEKATON" prove "$WORK/x" --keys "$WORK/small-keys" --insecure-seed 5 --proof "$T/local" >"$T/local.log" 2>&1 || fail "proving locally"
for i in 1 2; do
    ranks 3 --keys "$WORK/small-keys" --stage-keys "$T/staged" --insecure-seed 5 --proof "$T/p" >"$T/s$i.log" 2>&1 || fail "proving with staged keys"
    cmp "$T/local" "$T/p" || fail "the bytes differ"
done
[ "$(find "$T/staged" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ] || fail "expected one copy per node, found: $(ls -A "$T/staged")"
cat >"$T/program" <<P
#!/bin/bash
keys=/no/such/keys
[ "\$OMPI_COMM_WORLD_RANK" = 0 ] && keys=$WORK/small-keys
exec "$HEKATON" "\$@" --keys "\$keys"
P
chmod +x "$T/program"
HEKATON=$T/program ranks 3 --keys-from-root --stage-keys "$T/sent" --insecure-seed 5 --proof "$T/p" >"$T/2.log" 2>&1 || fail "proving with keys sent by rank 0"
cmp "$T/local" "$T/p" || fail "the bytes differ"
for file in "$T"/sent/*/types/*.pk; do
    printf 'xyz' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 40)) conv=notrunc 2>/dev/null
done
HEKATON=$T/program ranks 2 --keys-from-root --stage-keys "$T/sent" --insecure-seed 5 --proof "$T/p" >"$T/3.log" 2>&1
expect 3 "damaged" "$T/3.log"
HEKATON=$T/program ranks 2 --insecure-seed 5 --proof "$T/p" >"$T/4.log" 2>&1
expect 3 "is not a key store" "$T/4.log"
