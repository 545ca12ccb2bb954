# shellcheck shell=bash source-path=SCRIPTDIR
# One rank has keys from another setup of the same circuit: refused before any work is done, naming the rank and the
# difference.
. ./lib
# Each rank passes its own --keys.
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
