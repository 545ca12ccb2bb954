# shellcheck shell=bash source-path=SCRIPTDIR
# Without --mpi under mpirun, with a bad file, and with no rank that proves: refused with a hint; no rank hangs.
. ./lib
env -u SLURM_CONF mpirun --oversubscribe -np 2 "$HEKATON" prove "$WORK/x" --keys "$WORK/small-keys" --proof "$T/p" >"$T/1.log" 2>&1
expect 2 "one of 2 tasks that mpirun or srun started, and --mpi is missing" "$T/1.log"
ranks 1 --keys "$WORK/small-keys" --proof "$T/p" --root-proves no >"$T/2.log" 2>&1
expect 2 "no other rank can prove" "$T/2.log"
ranks 3 --keys "$WORK/small-keys" --proof "$WORK/x" >"$T/3.log" 2>&1
expect 3 "that is the input" "$T/3.log"
all_gone 5
