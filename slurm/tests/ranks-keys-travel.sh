# Keys copied once a node, and keys that only rank 0 has; a damaged copy is refused, a second job finds them there.
. ./lib
"$HEKATON" prove "$WORK/x" --keys "$WORK/small-keys" --insecure-seed 5 --proof "$T/local" >"$T/local.log" 2>&1 || fail "locally"
for i in 1 2; do
    ranks 3 --keys "$WORK/small-keys" --stage-keys "$T/staged" --insecure-seed 5 --proof "$T/p" >"$T/s$i.log" 2>&1 || fail "staged"
    cmp "$T/local" "$T/p" || fail "other bytes"
done
[ "$(find "$T/staged" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ] || fail "one copy a node, found: $(ls -A "$T/staged")"
cat >"$T/program" <<P
#!/bin/bash
keys=/no/such/keys
[ "\$OMPI_COMM_WORLD_RANK" = 0 ] && keys=$WORK/small-keys
exec "$HEKATON" "\$@" --keys "\$keys"
P
chmod +x "$T/program"
HEKATON=$T/program ranks 3 --keys-from-root --stage-keys "$T/sent" --insecure-seed 5 --proof "$T/p" >"$T/2.log" 2>&1 || fail "sent"
cmp "$T/local" "$T/p" || fail "other bytes"
for file in "$T"/sent/*/types/*.pk; do
    printf 'xyz' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 40)) conv=notrunc 2>/dev/null
done
HEKATON=$T/program ranks 2 --keys-from-root --stage-keys "$T/sent" --insecure-seed 5 --proof "$T/p" >"$T/3.log" 2>&1
expect 3 "damaged" "$T/3.log"
HEKATON=$T/program ranks 2 --insecure-seed 5 --proof "$T/p" >"$T/4.log" 2>&1
expect 3 "is no key directory" "$T/4.log"
