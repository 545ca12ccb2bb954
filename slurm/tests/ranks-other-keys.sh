# One rank has keys of another setup, of the same circuit: refused before anything is done, with the rank and what differs.
. ./lib
# each rank has its own keys behind the same name
cat >"$T/program" <<P
#!/bin/bash
keys=$WORK/keys
[ "\$OMPI_COMM_WORLD_RANK" = 2 ] && keys=$WORK/other-keys
exec "$HEKATON" "\$@" --keys "\$keys"
P
chmod +x "$T/program"
HEKATON=$T/program ranks 3 --run "$T/run" >"$T/1.log" 2>&1
expect 3 "rank 2 on .*: verifying key is " "$T/1.log"
grep -q "rank 1 on" "$T/1.log" && fail "rank 1 is blamed"
all_gone 5
