# shellcheck shell=bash source-path=SCRIPTDIR
# An array job over sizes: each task generates its keys, proves, and writes a line of results.
. ./lib
. ./cluster
sed 's/^SIZES=.*/SIZES=(50 120 200)/' "$(dirname "$CLUSTER")/sweep.sbatch" >"$T/sweep.sbatch"
job=$(env HEKATON="$HEKATON" WORK="$T/sweep" PARAMETERS="-p leaf-bytes=64" sbatch --parsable --array=0-2%2 --nodes=1 \
    --ntasks-per-node=2 --cpus-per-task=1 --mem-per-cpu=0 --time=5 --output="$T/array-%a.log" "$T/sweep.sbatch") ||
    fail "sbatch"
echo "$job" >>"$jobs_of_mine"
wait_for 200 bash -c "left=\$(squeue -h -j $job -t PENDING,RUNNING,COMPLETING,CONFIGURING) && [ -z \"\$left\" ]"
[ "$(cat "$T"/sweep/results/*.jsonl 2>/dev/null | grep -c '"state":"finished"')" = 3 ] || fail "results: $(ls -R "$T/sweep")"
