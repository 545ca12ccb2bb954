# shellcheck shell=bash source-path=SCRIPTDIR
# Epochs of a key directory, proven by jobs on four machines, and audited. The jobs outlive whoever submitted them.
. ./lib
. ./cluster
"$HEKATON" setup epochs -p profile=compress -p steps=2 --up-to 132 --keys "$T/keys" >"$T/setup.log" 2>&1 || fail "setup"
"$HEKATON" directory init "$T/d" --keys "$T/keys" >"$T/init.log" 2>&1 || fail "init"
for label in alice bob carol; do
    "$HEKATON" directory insert "$T/d" "$label" "the key of $label" >>"$T/insert.log" 2>&1 || fail "insert"
done
export SBATCH_TIMELIMIT=10
# The same script with one core on each of the four machines.
sed -e 's/^#SBATCH --ntasks-per-node=.*/#SBATCH --ntasks-per-node=1/' -e 's/^#SBATCH --cpus-per-task=.*/#SBATCH --cpus-per-task=1/' \
    -e 's/^#SBATCH --mem-per-cpu=.*/#SBATCH --mem-per-cpu=0/' "$(dirname "$CLUSTER")/prove.sbatch" >"$T/prove.sbatch"
prove=("$HEKATON" directory prove "$T/d" --keys "$T/keys" --slurm "$T/prove.sbatch")
"${prove[@]}" >"$T/first.log" 2>&1 &
prover=$!
wait_for 60 test -s "$T/d/proving/0-3/job"
cat "$T/d/proving/0-3/job" >>"$jobs_of_mine"
echo >>"$jobs_of_mine"
kill -TERM "$prover"
wait "$prover"
expect 5 "run the same command again to continue" "$T/first.log"
"${prove[@]}" >"$T/second.log" 2>&1
expect 0 "all epochs up to 3 are proven" "$T/second.log"
"$HEKATON" directory audit "$T/d" --keys "$T/keys" >"$T/audit.log" 2>&1
expect 0 "the audit holds: from epoch 0 to 3" "$T/audit.log"
