#!/usr/bin/env bash
# The units of systemd: orchestrator/server/tests/systemd.sh ORCHESTRATOR. systemd accepts them, if it is there, and what they start
# works with the folders in other places: a job is taken and done, and both processes end when they are asked to.
set -euo pipefail
orchestrator=$(realpath "$1")
units=$(cd "$(dirname "$0")/../systemd" && pwd)
T=$(mktemp -d -t hekaton-systemd-XXXXXX)
processes=()
# shellcheck disable=SC2317  # called by the trap
cleanup() {
    for process in "${processes[@]}"; do kill -KILL "$process" 2>/dev/null || true; done
    wait
    rm -rf "$T"
}
trap cleanup EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 20 "$T"/*.log >&2
    exit 1
}
mkdir "$T/units" "$T/jobs"
for unit in "$units"/*.service; do
    sed "s#/usr/local/bin/hekaton-orchestrator#$orchestrator#" "$unit" >"$T/units/${unit##*/}"
done
if command -v systemd-analyze >/dev/null; then
    systemd-analyze verify --man=no "$T"/units/*.service >"$T/verify.log" 2>&1 || fail "systemd refuses the units"
    # Unknown settings are warnings.
    if grep "$T/units" "$T/verify.log" >&2; then fail "systemd warns of the units"; fi
else
    echo "SKIPPED: systemd-analyze verify, which is not there" >&2
fi
cat >"$T/settings.toml" <<TOML
version = 1
[backends.copy]
kind = "command"
command = ["cp", "{input}", "{output}"]
unverified = true
TOML
# start UNIT OPTION..
start() {
    local command
    command=$(sed -n 's/^ExecStart=//p' "$T/units/$1.service")
    command=${command//\/var\/lib\/hekaton-orchestrator/$T\/jobs}
    command=${command//\/etc\/hekaton\/orchestrator.toml/$T\/settings.toml}
    # shellcheck disable=SC2086  # the words of a command line
    $command --json "${@:2}" >"$T/$1.out" 2>"$T/$1.log" &
    processes+=($!)
    until [ -s "$T/$1.out" ]; do
        kill -0 "${processes[-1]}" 2>/dev/null || fail "$1 has ended"
        sleep 0.1
    done
}
# It takes jobs and leaves them to the other one.
start hekaton-orchestrator --listen 127.0.0.1:0 --slots 0
start hekaton-orchestrator-worker
address=$(sed 's/.*"address":"\([^"]*\)".*/\1/' "$T/hekaton-orchestrator.out")
echo "a file" >"$T/file"
"$orchestrator" submit "$T/file" --service "$address" --backend copy --wait --output "$T/result" >"$T/submit.log" 2>&1 || fail "submit"
cmp -s "$T/file" "$T/result" || fail "another result"
for process in "${processes[@]}"; do
    kill -TERM "$process"
    wait "$process" || fail "it ends with $?"
done
processes=()
echo "the units of systemd work"
