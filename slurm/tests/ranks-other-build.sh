# shellcheck shell=bash source-path=SCRIPTDIR
# One rank runs a different build of the same version.
. ./lib
cp "$HEKATON" "$T/other"
printf 'x' >>"$T/other"
cat >"$T/program" <<P
#!/bin/bash
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && exec "$T/other" "\$@"
exec "$HEKATON" "\$@"
P
chmod +x "$T/program"
HEKATON=$T/program ranks 2 --keys "$WORK/keys" --run "$T/run" >"$T/1.log" 2>&1
expect 3 "rank 1 on .*: build is hekaton" "$T/1.log"
all_gone 5
